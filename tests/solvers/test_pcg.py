"""Conjugate gradients for many prototypes against dense normal equations."""

import numpy as np
import pytest
from tests.oracles import fixed_size as oracle

from lssvm._core.errors import ConvergenceWarning, InvalidInputError, NotPositiveDefiniteError
from lssvm.kernels import RBF
from lssvm.kernels.factory import FunctionKernel
from lssvm.solvers import PCG, Status
from lssvm.solvers.pcg import (
    ArraySpace,
    KernelProducts,
    PackedSpace,
    PreconditionerRows,
    RowBlock,
    array_rows,
    make_space,
    preconditioner_rows,
    solve_pcg,
)
from lssvm.solvers.primal import choose_primal

N, M, GAMMA = 1500, 120, 0.3
rng = np.random.default_rng(0)
X = rng.standard_normal((N, 4))
Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], np.sign(X[:, 3])])
Y += 0.1 * rng.standard_normal(Y.shape) + np.array([50.0, 0.0])
S = rng.uniform(0.2, 3.0, N)
Z = X[:M]
kernel = RBF(GAMMA)
K, K_ZZ = oracle.rbf(X, Z, GAMMA), oracle.rbf(Z, Z, GAMMA)


def solve(C, weight=None, *, sample=4 * M, convert=np.asarray, prototypes=Z, Y=Y, **options):
    """Solve with every output in a group of its own C."""
    C = np.broadcast_to(np.asarray(C, dtype=float), (Y.shape[1],))
    x, z = convert(X), convert(np.ascontiguousarray(prototypes))
    s = None if weight is None else convert(weight)
    kept = {name: options.pop(name) for name in ("keep", "threads", "offset") if name in options}
    rows = KernelProducts(kernel, array_rows(x, convert(Y), s), z, Y.shape[1], **kept)
    space = make_space(kernel, z)
    mass = N if weight is None else weight.sum()
    each = mass / (sample + len(prototypes))
    for j, value in enumerate(C):
        part = PreconditionerRows(
            np.array([j]), value, x[:sample, ...], convert(np.full(sample, each)), each
        )
        space.add(part)
    return solve_pcg(rows, space, C, **options)


@pytest.mark.parametrize("weight", [None, S])
@pytest.mark.parametrize("C", [0.1, 10.0, [1.0, 1e4]])
def test_solves_the_normal_equations(C, weight):
    found = solve(C, weight)
    assert found.status is Status.SOLVED and found.residual < 1e-6
    assert found.iterations <= 40 and len(found.history) == found.iterations
    C = np.broadcast_to(C, 2)
    residual, mean_error = oracle.normal_residual(
        K, K_ZZ, Y, found.coef, found.intercept, C, weight
    )
    assert residual.max() < 1e-6
    assert np.abs(mean_error).max() < 1e-8  # the bias is exact
    F = oracle.features(K, K_ZZ, 1e-9)
    for j in range(2):
        w, b = oracle.ridge(F, Y[:, [j]], C[j], weight)
        wanted = (F @ w + b)[:, 0]
        np.testing.assert_allclose(K @ found.coef[:, j] + found.intercept[j], wanted, atol=2e-4)


def test_a_smaller_tolerance_gives_the_direct_solution():
    found = solve(10.0, tol=1e-11)
    F = oracle.features(K, K_ZZ, 1e-10)
    w, b = oracle.ridge(F, Y, 10.0)
    np.testing.assert_allclose(K @ found.coef + found.intercept, F @ w + b, atol=1e-7)


def test_with_all_rows_in_the_preconditioner_one_step_is_enough():
    space = PackedSpace(kernel, Z)
    space.add(PreconditionerRows(np.arange(2), 10.0, X, S, 0.0))
    rows = KernelProducts(kernel, array_rows(X, Y, S), Z, 2)
    assert solve_pcg(rows, space, np.full(2, 10.0)).iterations <= 2


def test_more_rows_in_the_preconditioner_save_iterations():
    few, many = solve(1e3, sample=0).iterations, solve(1e3, sample=8 * M).iterations
    assert many < few / 2


def test_neither_blocks_nor_threads_nor_keeping_matter():
    first = solve(10.0, S, tol=1e-10)
    for options in ({"keep": True}, {"threads": 3}, {"keep": True, "threads": 2}):
        other = solve(10.0, S, tol=1e-10, **options)
        np.testing.assert_array_equal(other.coef, first.coef)
    offset = solve(10.0, S, tol=1e-10, offset=np.array([50.0, 0.0]))
    wanted = K @ first.coef + first.intercept
    np.testing.assert_allclose(K @ offset.coef + offset.intercept, wanted, atol=1e-6)


def test_outputs_on_different_rows():
    """One-vs-one: weights per output equal problems of their own."""
    used = np.column_stack([X[:, 0] > 0, X[:, 1] < 0.5]).astype(float)

    def passes():
        yield RowBlock(X[:700], Y[:700], used[:700] * S[:700, None])
        yield RowBlock(X[700:], Y[700:], used[700:] * S[700:, None])

    space = make_space(kernel, Z)
    for j in range(2):
        space.add(
            PreconditionerRows(np.array([j]), 10.0, X[:600], used[:600, j] * S[:600] * 2.5, 1.0)
        )
    rows = KernelProducts(kernel, passes, Z, 2)
    found = solve_pcg(rows, space, np.full(2, 10.0), tol=1e-10)
    for j in range(2):
        residual, mean_error = oracle.normal_residual(
            K, K_ZZ, Y[:, [j]], found.coef[:, [j]], found.intercept[j], 10.0, used[:, j] * S
        )
        assert residual < 1e-6 and abs(mean_error) < 1e-8
    alone = solve_pcg(rows, space, np.full(2, 10.0), np.array([1]), tol=1e-10)
    np.testing.assert_allclose(K @ alone.coef[:, 0], K @ found.coef[:, 1], atol=1e-6)


def test_equal_prototypes_do_no_harm():
    twice = np.concatenate([Z, Z[:40], Z[:10]])
    found = solve(10.0, prototypes=twice)
    plain = solve(10.0)
    outputs = oracle.rbf(X, twice, GAMMA) @ found.coef + found.intercept
    np.testing.assert_allclose(outputs, K @ plain.coef + plain.intercept, atol=1e-4)


def test_constant_targets_leave_the_bias():
    found = solve(10.0, Y=np.column_stack([np.full(N, 3.0), Y[:, 1]]))
    outputs = K @ found.coef + found.intercept
    np.testing.assert_allclose(outputs[:, 0], 3.0, atol=1e-6)
    assert outputs[:, 1].std() > 0.5


def test_too_few_iterations_warn():
    with pytest.warns(ConvergenceWarning, match="after 3 iterations .* Raise max_iter"):
        found = solve(100.0, max_iter=3)
    assert found.status is Status.MAX_ITER and found.residual > 1e-6 and found.iterations == 3


def test_a_tolerance_below_rounding_warns():
    with pytest.warns(ConvergenceWarning, match="Rounding leaves no more digits: raise tol"):
        found = solve(10.0, tol=1e-18)
    assert found.status is Status.MAX_ITER and found.residual < 1e-8


def test_every_iteration_is_told():
    seen = []
    found = solve(10.0, on_iteration=lambda *event: seen.append(event))
    assert [i for i, _ in seen] == list(range(1, found.iterations + 1))
    assert [r for _, r in seen] == found.history


def test_rows_are_read_again_only_if_they_are_not_kept():
    passes = []

    def begin():
        passes.append(1)
        return array_rows(X, Y)()

    for keep, at_most in ((True, 1), (False, 100)):
        passes.clear()
        space = make_space(kernel, Z)
        space.add(PreconditionerRows(np.arange(2), 10.0, X[:500], np.full(500, 3.0), 0.0))
        found = solve_pcg(KernelProducts(kernel, begin, Z, 2, keep=keep), space, np.full(2, 10.0))
        assert len(passes) == (1 if keep else found.iterations + 2) <= at_most


@pytest.mark.parametrize("make", [PackedSpace, ArraySpace])
def test_spaces_hold_both_factors(make):
    """One buffer for two triangles: each is what a dense factorisation gives."""
    narrow = 8.0  # well-conditioned
    for m in (1, 7, 60, 700):  # more than one block
        z = X[:m]
        space = make(RBF(narrow), z)
        A = oracle.rbf(z, z, narrow) + space.jitter * np.eye(m)
        U = np.linalg.cholesky(A).T
        weight = S[:90]
        for j, C in enumerate((10.0, 0.5)):
            space.add(PreconditionerRows(np.array([j]), C, X[-90:], weight, 2.0))
        V = rng.standard_normal((m, 2))
        B = np.linalg.solve(U.T, np.hstack([oracle.rbf(X[-90:], z, narrow).T, A]))
        q = np.concatenate([weight, np.full(m, 2.0)])
        centred = B - (B @ q / q.sum())[:, None]
        for j, C in enumerate((10.0, 0.5)):
            P = (centred * q) @ centred.T + np.eye(m) / C
            wanted = np.linalg.solve(P, V[:, j])
            found = space.precondition(V, np.arange(2))[:, j]
            np.testing.assert_allclose(found, wanted, atol=1e-8 * np.abs(wanted).max())
        np.testing.assert_allclose(U @ space.lift(V), V, atol=1e-8)
        np.testing.assert_allclose(U.T @ space.lower(V), V, atol=1e-8)


@pytest.mark.parametrize("make", [PackedSpace, ArraySpace])
def test_a_kernel_that_is_no_kernel_is_refused(make):
    wrong = FunctionKernel(lambda A, B: -oracle.rbf(A, B, GAMMA))
    with pytest.raises(NotPositiveDefiniteError, match="solver='cholesky'"):
        make(wrong, Z)
    infinite = FunctionKernel(lambda A, B: np.full((len(A), len(B)), np.inf))
    with pytest.raises(InvalidInputError, match="finite"):
        make(infinite, Z)


def test_an_empty_training_set_is_refused():
    rows = KernelProducts(kernel, array_rows(X, Y, np.zeros(N)), Z, 2)
    with pytest.raises(InvalidInputError, match="empty"):
        solve_pcg(rows, make_space(kernel, Z), np.ones(2))


def test_settings_are_checked():
    for wrong in (
        *({"tol": 0.0}, {"tol": "1e-6"}, {"tol": np.nan}, {"max_iter": 0}, {"max_iter": 2.5}),
        *({"max_iter": None}, {"n_rows": -1}, {"n_rows": 2.5}, {"n_rows": True}),
    ):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            PCG(**wrong)


def test_choice_by_memory_and_by_operations():
    large = 10**12
    assert choose_primal(10**6, 1000, 30, 1, budget=large) == "direct"
    assert choose_primal(10**6, 20_000, 30, 1, budget=large) == "pcg"
    assert choose_primal(10**4, 2000, 30, 1, budget=large) == "direct"
    # moments of ten folds: 8 m^2 bytes each, and room for two threads
    needed = 8 * 2000 * 2002 * 14
    assert choose_primal(10**4, 2000, 30, 1, n_cells=10, threads=2, budget=needed) == "direct"
    assert choose_primal(10**4, 2000, 30, 1, n_cells=10, threads=2, budget=needed - 1) == "pcg"
    # many outputs make passes dear, and moments do not depend on them
    assert choose_primal(10**6, 6000, 10, 1, budget=large) == "pcg"
    assert choose_primal(10**6, 6000, 10, 200, budget=large) == "direct"


def test_size_of_the_sample():
    assert preconditioner_rows(50_000, 5000, 54) == 4 * 5000
    assert preconditioner_rows(10**6, 4000, 54) == 12 * 4000  # little beside a pass
    assert preconditioner_rows(3000, 2000, 54) == 3000  # all there are
    assert preconditioner_rows(30_000, 20_000, 54) < 20_000  # dear beside a pass


@pytest.mark.torch
def test_torch_gives_what_numpy_gives():
    torch = pytest.importorskip("torch")
    for weight in (None, S):
        ours = solve(10.0, weight, tol=1e-9)
        theirs = solve(10.0, weight, tol=1e-9, convert=torch.from_numpy)
        assert isinstance(theirs.coef, torch.Tensor)
        assert abs(theirs.iterations - ours.iterations) <= 1
        found = K @ theirs.coef.numpy() + theirs.intercept.numpy()
        np.testing.assert_allclose(found, K @ ours.coef + ours.intercept, atol=1e-5)


def test_only_functions_of_the_array_standard_are_used():
    strict = pytest.importorskip("array_api_strict")
    ours, theirs = (solve(10.0, S, tol=1e-9, convert=kind) for kind in (np.asarray, strict.asarray))
    found = K @ np.asarray(theirs.coef) + np.asarray(theirs.intercept)
    np.testing.assert_allclose(found, K @ ours.coef + ours.intercept, atol=1e-5)
