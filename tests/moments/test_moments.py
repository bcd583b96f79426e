import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError, MemoryBudgetError
from lssvm.data import ArraySource
from lssvm.kernels import RBF, Laplacian, Linear, Matern, Polynomial
from lssvm.solvers.moments import Moments, accumulate, total

NAMES = ("gram", "border", "cross", "target", "squares", "weight", "n")


def data(n=3000, d=3, k=2):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)), rng.normal(size=(n, k)), rng.random(n) + 0.1


def same(a, b, rtol=1e-11):
    a, b = a.plain(), b.plain()
    for name in NAMES:
        x, y = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * (1.0 + np.abs(y).max()))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gamma", [0.001, 2.0])  # shifted and not
def test_every_cell_has_the_moments_of_its_rows(weighted, gamma):
    X, Y, s = data()
    weight = s if weighted else None
    order = np.random.default_rng(1).permutation(len(X))
    cells = [slice(0, 5), slice(5, 5), slice(5, 1200), slice(1200, 3000)]
    kernel = RBF(gamma)
    found = accumulate(kernel, ArraySource(X, Y, weight, order), X[:40], cells)
    assert (found[0].shift is not None) == (gamma == 0.001)
    K = kernel(X, X[:40])
    for cell, moments in zip(cells, found, strict=True):
        rows = order[cell]
        same(moments, Moments.of(K[rows], Y[rows], None if weight is None else s[rows]))
        np.testing.assert_array_equal(moments.gram, moments.gram.T)


@pytest.mark.parametrize(
    "kernel",
    [Linear(), Polynomial(2, 1.0), Laplacian(0.3), Matern(0.3, nu=2.5)],
    ids=lambda k: k.name,
)
def test_all_kernels(kernel):
    X, Y, s = data(500)
    found = accumulate(kernel, ArraySource(X, Y, s), X[:20], threads=2)[0]
    same(found, Moments.of(np.asarray(kernel(X, X[:20])), Y, s))


def test_threads_change_no_bit():
    X, Y, s = data(40_000)
    source, cells = ArraySource(X, Y, s), [slice(0, 21_000), slice(21_000, 40_000)]
    one, three = (accumulate(RBF(0.3), source, X[:30], cells, threads=t) for t in (1, 3))
    for a, b in zip(one, three, strict=True):
        for name in NAMES:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_single_precision_rows_are_accumulated_in_double():
    X, Y, _ = data(500)
    X = X.astype(np.float32)
    found = accumulate(RBF(0.3), ArraySource(X, Y), X[:20])[0]
    X = X.astype(np.float64)
    same(found, Moments.of(RBF(0.3)(X, X[:20]), Y))


def test_moments_add_subtract_and_total():
    X, Y, s = data(300)
    K = RBF(0.3)(X, X[:10])
    parts = [Moments.of(K[r], Y[r], s[r]) for r in np.split(np.arange(300), 3)]
    whole = Moments.of(K, Y, s)
    same(total(parts), whole)
    same(parts[0] + parts[1] + parts[2], whole)
    same(whole - parts[1], parts[0] + parts[2])
    with pytest.raises(InvalidInputError, match="do not add"):
        whole + whole.prefix(5)


def test_different_shifts_do_not_add():
    X, Y, _ = data(50)
    a = accumulate(RBF(0.001), ArraySource(X, Y), X[:10])[0]
    b = accumulate(RBF(0.002), ArraySource(X, Y), X[:10])[0]
    with pytest.raises(InvalidInputError, match="do not add"):
        a + b


def test_prefix_and_scaled():
    X, Y, s = data(300)
    K = RBF(0.3)(X, X[:10])
    moments = Moments.of(K, Y, s)
    same(moments.prefix(4), Moments.of(K[:, :4], Y, s))
    same(moments.scaled(2.5), Moments.of(K, Y, 2.5 * s))
    wanted = Moments.of(K, np.tile([1.0, -2.0], (300, 1)), 2.5 * s)
    same(moments.scaled(2.5, np.array([1.0, -2.0])), wanted)


@pytest.mark.parametrize("gamma", [0.001, 2.0])
def test_squared_errors_without_a_pass(gamma):
    X, Y, s = data(400)
    rng = np.random.default_rng(2)
    coef, b = rng.normal(size=(5, 10, 2)), rng.normal(size=(5, 2))
    moments = accumulate(RBF(gamma), ArraySource(X, Y, s), X[:10])[0]
    K = RBF(gamma)(X, X[:10])
    wanted = [s @ (Y - K @ a - c) ** 2 for a, c in zip(coef, b, strict=True)]
    np.testing.assert_allclose(moments.squared_error(coef, b), wanted, rtol=1e-10)


def test_the_budget_is_kept():
    X, Y, _ = data(100)
    with pytest.raises(MemoryBudgetError, match="Lower n_prototypes"):
        accumulate(RBF(1.0), ArraySource(X, Y), X, budget=100_000)


def test_shifts_are_undone_and_changed():
    X, Y, s = data(200)
    K = RBF(0.01)(X, X[:10])
    found = accumulate(RBF(0.01), ArraySource(X, Y, s), X[:10])[0]
    assert found.shift is not None
    same(found.plain(), Moments.of(K, Y, s))
    other = np.linspace(0.0, 1.0, 10)
    moved = found.shifted(other)
    wanted = Moments.of(K - other, Y, s)
    np.testing.assert_allclose(moved.gram, wanted.gram, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moved.border, wanted.border, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moved.cross, wanted.cross, rtol=1e-9, atol=1e-9)
