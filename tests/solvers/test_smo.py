"""Sequential minimal optimisation against its definition and the dense KKT system."""

import warnings

import numpy as np
import pytest
from tests.oracles.iterative import best_partner, kkt, quadratic_form, rbf

from lssvm._core.errors import (
    ConvergenceWarning,
    InvalidInputError,
    NotPositiveDefiniteError,
)
from lssvm.kernels import RBF, Precomputed
from lssvm.solvers.base import DualSystem, Status
from lssvm.solvers.smo import SMO, ColumnCache

GAMMA, C = 0.5, 5.0


def problem(n=60, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    Y = np.sin(X @ rng.standard_normal((3, k))) + 1.0
    return X, Y, rng.uniform(0.2, 3.0, n)


def system_of(X, weights=None, **options):
    root = None if weights is None else np.sqrt(weights).astype(X.dtype)
    return DualSystem(RBF(GAMMA), X, X, C=C, root_weight=root, **options)


def run(solver, system, Y, **options):
    return solver.solve(solver.factorise(system), Y, **options)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("budget", [2**31, 10_000])
def test_the_dense_kkt_system_is_solved(weighted, budget):
    X, Y, weights = problem()
    weights = weights if weighted else np.ones(len(X))
    alpha, b = kkt(rbf(X, X, GAMMA), C, weights, Y)
    found = run(SMO(tol=1e-8), system_of(X, weights if weighted else None, budget=budget), Y)
    assert found.status is Status.SOLVED
    assert found.residual <= 1e-8
    np.testing.assert_allclose(found.alpha, alpha, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.intercept, b, rtol=1e-6)


def test_a_small_cache_changes_nothing():
    X, Y, weights = problem()
    stored, least = system_of(X, weights), system_of(X, weights, budget=1)
    solver = SMO(tol=1e-9)
    assert solver.factorise(stored).cache.capacity == len(X)
    assert solver.factorise(least).cache.capacity == 2
    first, second = run(solver, stored, Y), run(solver, least, Y)
    np.testing.assert_allclose(first.alpha, second.alpha, rtol=1e-5, atol=1e-6)


def test_the_cache_drops_the_column_that_was_not_used_for_longest(monkeypatch):
    X, _, _ = problem(n=10)
    cache = ColumnCache(system_of(X, budget=4 * 10 * 8 * 3))
    assert cache.capacity == 3
    computed = []
    columns = DualSystem.columns

    def counted(self, index):
        computed.append(int(index[0]))
        return columns(self, index)

    monkeypatch.setattr(DualSystem, "columns", counted)
    K = rbf(X, X, GAMMA)
    for i in (0, 1, 2, 0, 3, 0, 1):
        np.testing.assert_allclose(cache.column(i), K[i])
    assert computed == [0, 1, 2, 3, 1]


def test_the_updates_are_those_of_the_definition():
    X, Y, weights = problem(n=25, k=1)
    H, y = rbf(X, X, GAMMA) + np.diag(1 / (C * weights)), Y[:, 0]
    a = np.zeros(25)
    for t in range(1, 40):
        F = H @ a - y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = run(SMO(max_iter=t), system_of(X, weights), Y).alpha[:, 0]
        choices = []  # after an update the two rows of its pair may both have the largest gradient
        for i in np.flatnonzero(F >= F.max() - 1e-10):
            j, decrease = best_partner(H, F, i)
            moved = a.copy()
            moved[i] -= (F[i] - F[j]) / (H[i, i] + H[j, j] - 2 * H[i, j])
            moved[j] += (F[i] - F[j]) / (H[i, i] + H[j, j] - 2 * H[i, j])
            lowered = quadratic_form(H, y, a) - quadratic_form(H, y, moved)
            assert lowered == pytest.approx(decrease, rel=1e-6)
            choices.append(moved)
        assert min(np.abs(found - moved).max() for moved in choices) < 1e-9
        a = found


def test_errors_of_the_updated_gradient_are_repaired(monkeypatch):
    X, Y, weights = problem()
    exact = ColumnCache.column
    monkeypatch.setattr(ColumnCache, "column", lambda self, i: exact(self, i) * (1 + 1e-4))
    found = run(SMO(tol=1e-7), system_of(X, weights), Y)
    alpha, _ = kkt(rbf(X, X, GAMMA), C, weights, Y)
    assert found.status is Status.SOLVED
    np.testing.assert_allclose(found.alpha, alpha, rtol=1e-5, atol=1e-6)


def test_rows_of_no_weight_have_no_support_value():
    X, Y, weights = problem()
    weights[::4] = 0
    kept = weights > 0
    alpha, b = kkt(rbf(X[kept], X[kept], GAMMA), C, weights[kept], Y[kept])
    found = run(SMO(tol=1e-9), system_of(X, weights), Y)
    assert not found.alpha[~kept].any()
    np.testing.assert_allclose(found.alpha[kept], alpha, atol=1e-6)
    np.testing.assert_allclose(found.intercept, b, rtol=1e-6)


def test_running_out_of_updates_warns_and_says_so():
    X, Y, _ = problem()
    with pytest.warns(ConvergenceWarning, match="after 15 pair updates"):
        found = run(SMO(max_iter=5), system_of(X), Y)
    assert found.status is Status.MAX_ITER
    assert found.residual > 1e-6
    assert found.iterations == 15


def test_float32_rows_reach_the_tolerance_and_stay_float32():
    X, Y, weights = problem()
    alpha, b = kkt(rbf(X, X, GAMMA), C, weights, Y)
    found = run(SMO(), system_of(X.astype(np.float32), weights), Y.astype(np.float32))
    assert found.alpha.dtype == np.float32
    assert found.intercept.dtype == np.float32
    assert found.residual <= 1e-6
    np.testing.assert_allclose(found.alpha, alpha, atol=1e-4 * np.abs(alpha).max())
    np.testing.assert_allclose(found.intercept, b, rtol=1e-4)


def test_a_column_of_zeros_has_a_zero_answer():
    X, Y, weights = problem()
    Y[:, 1] = 0
    found = run(SMO(), system_of(X, weights), Y)
    assert not found.alpha[:, 1].any()
    assert found.intercept[1] == 0
    assert found.alpha[:, 2].any()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n):
    X, Y, weights = problem(n=n, k=2)
    alpha, b = kkt(rbf(X, X, GAMMA), C, weights, Y)
    found = run(SMO(tol=1e-9), system_of(X, weights), Y)
    np.testing.assert_allclose(found.alpha, alpha, atol=1e-7)
    np.testing.assert_allclose(found.intercept, b, rtol=1e-7)


def test_the_bound_is_reported_after_every_sweep_and_holds():
    X, Y, _ = problem()
    calls = []
    found = run(SMO(), system_of(X), Y, on_iteration=lambda i, value: calls.append((i, value)))
    numbers = [i for i, _ in calls]
    assert numbers[0] == len(X)
    assert numbers[-1] == found.iterations
    assert np.all(np.diff(numbers) > 0)
    assert [value for _, value in calls] == found.history
    assert found.residual <= max(v for v in found.history if v <= 1e-6)


def test_a_matrix_that_is_not_positive_definite_is_refused():
    K = np.array([[1.0, 3.0], [3.0, 1.0]])
    system = DualSystem(Precomputed(), K, np.arange(2), C=100.0)
    with pytest.raises(NotPositiveDefiniteError, match="positive definite"):
        run(SMO(), system, np.array([[1.0], [-1.0]]))


def test_curvatures_of_next_to_nothing_are_refused():
    system = DualSystem(Precomputed(), np.zeros((4, 4)), np.arange(4), C=1e308)
    with pytest.raises(NotPositiveDefiniteError, match="Lower C"):
        run(SMO(), system, np.array([[8.0], [-8.0], [8.0], [-8.0]]))


@pytest.mark.parametrize("options", [{"tol": -1.0}, {"max_iter": 0}])
def test_unusable_options_are_refused(options):
    X, _, _ = problem(n=5)
    with pytest.raises(InvalidInputError, match="not usable"):
        SMO(**options).factorise(system_of(X))
