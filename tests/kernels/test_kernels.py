"""Every kernel against its formula, scikit-learn, blocks and sparse input."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Matern as GPMatern
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from lssvm._core.errors import InvalidInputError
from lssvm.kernels import (
    RBF,
    Exponential,
    FunctionKernel,
    Laplacian,
    Linear,
    Matern,
    NonStationary,
    Polynomial,
    Precomputed,
    make_kernel,
)
from lssvm.kernels.base import evaluate_expansion, fill_gram
from lssvm.kernels.factory import has_gamma, resolve_gamma

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 5)) + 3.0
Z = rng.normal(size=(17, 5)) + 3.0
gammas = np.array([0.1, 0.0, 2.0, 0.5, 1.0])


def gibbs(A, B, gamma, lengths):
    """[Suykens2002, eq. (3.70)] row by row."""
    out = np.empty((len(A), len(B)))
    a, b = lengths(A) / np.sqrt(2 * gamma), lengths(B) / np.sqrt(2 * gamma)
    for i in range(len(A)):
        total = a[i] ** 2 + b**2
        factor = np.prod(2 * a[i] * b / total, axis=1) ** 0.5
        out[i] = factor * np.exp(-np.sum((A[i] - B) ** 2 / total, axis=1))
    return out


def wavy(A):
    return 1.5 + np.sin(A)


TABLE = [
    (RBF(0.3), lambda A, B: rbf_kernel(A, B, gamma=0.3)),
    (RBF(gammas), lambda A, B: rbf_kernel(A * np.sqrt(gammas), B * np.sqrt(gammas), gamma=1.0)),
    (Laplacian(0.3), lambda A, B: laplacian_kernel(A, B, gamma=0.3)),
    (Laplacian(gammas), lambda A, B: laplacian_kernel(A * gammas, B * gammas, gamma=1.0)),
    (Exponential(0.3), lambda A, B: np.exp(-0.3 * cdist(A, B))),
    (Exponential(gammas), lambda A, B: np.exp(-cdist(A * gammas, B * gammas))),
    (Linear(), lambda A, B: A @ B.T),
    (Polynomial(3, 0.2, 1.5), lambda A, B: polynomial_kernel(A, B, 3, 0.2, 1.5)),
    (Matern(0.3, 0.5), lambda A, B: GPMatern(1 / np.sqrt(0.6), nu=0.5)(A, B)),
    (Matern(0.3, 1.5), lambda A, B: GPMatern(1 / np.sqrt(0.6), nu=1.5)(A, B)),
    (Matern(0.3, 2.5), lambda A, B: GPMatern(1 / np.sqrt(0.6), nu=2.5)(A, B)),
    (NonStationary(0.3), lambda A, B: gibbs(A, B, 0.3, lambda R: 1 + np.abs(R))),
    (NonStationary(gammas + 0.1, wavy), lambda A, B: gibbs(A, B, gammas + 0.1, wavy)),
    (FunctionKernel(lambda A, B: (A @ B.T) ** 2), lambda A, B: (A @ B.T) ** 2),
]
IDS = [f"{type(k).__name__}-{i}" for i, (k, _) in enumerate(TABLE)]


@pytest.mark.parametrize(("kernel", "formula"), TABLE, ids=IDS)
class TestEveryKernel:
    def test_values(self, kernel, formula):
        np.testing.assert_allclose(kernel(X, Z), formula(X, Z), rtol=1e-11, atol=1e-13)

    def test_diag(self, kernel, formula):
        np.testing.assert_allclose(kernel.diag(X), np.diag(formula(X, X)), rtol=1e-10)

    def test_out(self, kernel, formula):
        out = np.full((40, 17), np.nan)
        values = kernel(X, Z, out=out)
        np.testing.assert_allclose(values, formula(X, Z), rtol=1e-11, atol=1e-13)

    @pytest.mark.parametrize("threads", [1, 3])
    def test_gram_is_symmetric_and_equal(self, kernel, formula, threads):
        A = np.random.default_rng(1).normal(size=(700, 5))
        K = np.full((700, 700), np.nan)
        fill_gram(kernel, A, A, K, threads=threads)
        assert np.array_equal(K, K.T) or np.allclose(K, K.T, rtol=1e-13)
        np.testing.assert_allclose(K, formula(A, A), rtol=1e-9, atol=1e-12)

    def test_positive_semidefinite(self, kernel, formula):
        assert np.linalg.eigvalsh(kernel(X, X)).min() > -1e-8 * np.trace(kernel(X, X))

    def test_sparse(self, kernel, formula):
        if not kernel.accepts_sparse:
            pytest.skip("dense only")
        A, B = sparse.csr_matrix(X), sparse.csr_matrix(Z)
        np.testing.assert_allclose(kernel(A, B), formula(X, Z), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(kernel(A, Z), formula(X, Z), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(kernel.diag(A), kernel.diag(X))

    def test_float32_stays(self, kernel, formula):
        values = kernel(X.astype(np.float32), Z.astype(np.float32))
        assert values.dtype == np.float32
        np.testing.assert_allclose(values, formula(X, Z), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize(
    "kernel", [RBF(0.3), Laplacian(0.3), Matern(0.3), Linear(), Polynomial(gamma=1.0)]
)
@pytest.mark.parametrize(
    "library", ["array_api_strict", pytest.param("torch", marks=pytest.mark.torch)]
)
def test_other_array_libraries(kernel, library):
    xp = pytest.importorskip(library)
    values = kernel(xp.asarray(X), xp.asarray(Z))
    np.testing.assert_allclose(np.asarray(values), kernel(X, Z), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(kernel.diag(xp.asarray(X))), kernel.diag(X))


def test_common_offset_costs_no_digits():
    far = RBF(0.3)(X + 1e6, Z + 1e6)
    np.testing.assert_allclose(far, RBF(0.3)(X, Z), rtol=1e-8)


def test_never_above_one():
    A = np.repeat(rng.normal(size=(3, 4)) * 1e4, 50, axis=0)
    assert RBF(1e-3)(A, A).max() <= 1.0


def test_precomputed_takes_columns():
    K = rbf_kernel(X)
    np.testing.assert_array_equal(Precomputed()(K, np.array([3, 1])), K[:, [3, 1]])
    np.testing.assert_array_equal(Precomputed().diag(K), np.diag(K))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("budget", [1000, 10**9])
def test_expansion_in_blocks(threads, budget):
    coef, b = rng.normal(size=(17, 3)), np.arange(3.0)
    got = evaluate_expansion(RBF(0.2), X, Z, coef, b, budget=budget, threads=threads)
    np.testing.assert_allclose(got, rbf_kernel(X, Z, 0.2) @ coef + b, rtol=1e-10)


def test_expansion_of_no_rows():
    got = evaluate_expansion(
        RBF(0.2), X[:0], Z, np.ones((17, 2)), np.zeros(2), budget=10**6, threads=2
    )
    assert got.shape == (0, 2)


def test_resolve_gamma():
    assert resolve_gamma("auto", X) == pytest.approx(0.2)
    assert resolve_gamma("scale", X) == pytest.approx(1 / (5 * X.var()))
    assert resolve_gamma("scale", sparse.csr_matrix(X)) == pytest.approx(1 / (5 * X.var()))
    assert resolve_gamma("scale", np.ones((3, 2))) == 1.0
    weight = rng.integers(1, 4, size=40)
    again = np.repeat(X, weight, axis=0)
    assert resolve_gamma("scale", X, weight.astype(float)) == pytest.approx(
        resolve_gamma("scale", again)
    )
    assert resolve_gamma("scale", sparse.csr_matrix(X), weight.astype(float)) == pytest.approx(
        resolve_gamma("scale", again)
    )


def test_the_scale_of_many_rows_is_found_in_parts_without_a_copy():
    many = 1e3 + np.random.default_rng(3).standard_normal((200_000, 8))
    weight = np.full(len(many), 0.5)
    tracemalloc.start()
    gamma = resolve_gamma("scale", many)
    weighted = resolve_gamma("scale", many, weight)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert gamma == pytest.approx(1 / (8 * many.var()), rel=1e-12)
    assert weighted == pytest.approx(gamma, rel=1e-10)
    assert peak < 0.9 * many.nbytes


@pytest.mark.parametrize("gamma", ["wide", -1.0, 0.0, np.nan, [1.0], np.ones((2, 2)), -gammas])
def test_bad_gamma(gamma):
    with pytest.raises(InvalidInputError, match="gamma"):
        resolve_gamma(gamma, X)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: make_kernel("gauss"), "rbf"),
        (lambda: make_kernel(3), "callable"),
        (lambda: make_kernel("poly", degree=0), "degree"),
        (lambda: make_kernel("poly", degree=1.5), "degree"),
        (lambda: make_kernel("poly", coef0=-1.0), "coef0"),
        (lambda: make_kernel("poly", gamma=0.0), "gamma"),
        (lambda: Matern(nu=1.0), "nu"),
        (lambda: RBF(-1.0), "gamma"),
        (lambda: FunctionKernel(lambda A, B: np.ones(3))(X, Z), "shape"),
        (lambda: FunctionKernel(lambda A, B: np.full((40, 17), np.nan))(X, Z), "NaN"),
    ],
)
def test_bad_kernels_say_what_is_wrong(make, word):
    with pytest.raises(InvalidInputError, match=word):
        make()


def test_make_kernel_passes_kernels_through():
    kernel = RBF(2.0)
    assert make_kernel(kernel) is kernel
    assert isinstance(make_kernel(lambda A, B: A @ B.T), FunctionKernel)
    assert has_gamma("matern") and not has_gamma("linear") and not has_gamma(kernel)


def test_the_non_stationary_kernel_of_constant_lengths_is_gaussian():
    kernel = NonStationary(0.3, lambda A: np.ones((len(A), 1)))
    np.testing.assert_allclose(kernel(X, Z), RBF(0.3)(X, Z), rtol=1e-12)


def test_the_non_stationary_kernel_is_positive_definite():
    points = np.random.default_rng(1).normal(size=(60, 3)) * 3.0
    for lengths in (None, lambda A: 0.1 + A**2, lambda A: np.exp(A[:, :1])):
        values = np.linalg.eigvalsh(NonStationary(0.2, lengths)(points, points))
        assert values.min() > -1e-10


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((0.0,), "gamma"),
        ((np.array([1.0, 0.0]),), "gamma"),
        ((1.0, 3.0), "lengths"),
    ],
)
def test_bad_non_stationary_kernels(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        NonStationary(*arguments)


def test_bad_length_functions():
    with pytest.raises(InvalidInputError, match="shape"):
        NonStationary(1.0, lambda A: np.ones(len(A)))(X, Z)
    with pytest.raises(InvalidInputError, match="positive"):
        NonStationary(1.0, lambda A: 0.0 * A)(X, Z)


@pytest.mark.parametrize("kernel", [RBF(0.5), Laplacian(0.5), Linear(), Polynomial(gamma=1.0)])
def test_an_expansion_of_no_functions_is_its_intercept(kernel):
    X, none = np.random.default_rng(0).standard_normal((4, 2)), np.empty((0, 2))
    values = evaluate_expansion(
        kernel, X, none, np.empty((0, 3)), np.array([1.0, 2.0, 3.0]), budget=10**6, threads=2
    )
    np.testing.assert_array_equal(values, np.tile([1.0, 2.0, 3.0], (4, 1)))


@pytest.mark.parametrize(
    "kernel",
    [RBF(1e30), Exponential(1e31), Laplacian(1e31), *(Matern(1e60, nu=v) for v in (0.5, 1.5, 2.5))],
)
def test_exponents_beyond_single_precision_are_kernels_of_zero(kernel):
    far = (1e8 * rng.normal(size=(6, 3))).astype(np.float32)
    with np.errstate(over="raise", invalid="raise"):
        K = kernel(far, far)
    assert K.dtype == np.float32
    np.testing.assert_array_equal(K, np.eye(6))
