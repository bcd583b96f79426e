import numpy as np
import pytest
from tests.oracles import fixed_size as oracle

from lssvm._core.errors import ConvergenceWarning, NumericalWarning
from lssvm.data import ArraySource
from lssvm.kernels import RBF
from lssvm.solvers.moments import Moments, accumulate, nystrom_map
from lssvm.solvers.primal import primal_system, solve_primal
from lssvm.solvers.reweighting import residual_scale, solve_reweighted

C = np.array([1e-3, 0.1, 3.0, 1e2, 1e3, 1e4])


@pytest.fixture
def setting():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    Y = np.sin(X[:, :2]) + 5.0 + 0.1 * rng.normal(size=(300, 2))
    return X, Y, rng.random(300) + 0.2


@pytest.mark.parametrize("method", ["auto", "cholesky", "eigen", "tridiagonal"])
@pytest.mark.parametrize("gamma", [0.01, 0.5])
def test_all_routes_solve_the_ridge_problem(setting, method, gamma):
    X, Y, s = setting
    Z, kernel = X[:50], RBF(gamma)
    map = nystrom_map(kernel, Z)
    moments = accumulate(kernel, ArraySource(X, Y, s), Z)[0]
    coef, b = primal_system(moments, map).solve(C, method)
    F = oracle.features(oracle.rbf(X, Z, gamma), oracle.rbf(Z, Z, gamma), map.cut)
    for i, value in enumerate(C):
        w, c = oracle.ridge(F, Y, value, s)
        found = kernel(X, Z) @ coef[i] + b[i]
        np.testing.assert_allclose(found, F @ w + c, atol=1e-9 * (1.0 + value))


def test_a_second_path_reuses_the_reduction(setting):
    X, Y, _ = setting
    map = nystrom_map(RBF(0.5), X[:30])
    system = primal_system(Moments.of(RBF(0.5)(X, X[:30]), Y), map)
    first = system.solve(C)
    again = system.solve(C[:2])
    np.testing.assert_allclose(again[0], first[0][:2], rtol=1e-9, atol=1e-12)


def test_the_bias_is_not_regularised(setting):
    X, Y, _ = setting
    map = nystrom_map(RBF(0.5), X[:30])
    K = RBF(0.5)(X, X[:30])
    coef, b = solve_primal(Moments.of(K, Y), map, 2.0)
    far, c = solve_primal(Moments.of(K, Y + 1e3), map, 2.0)
    np.testing.assert_allclose(far, coef, atol=1e-7)
    np.testing.assert_allclose(c, b + 1e3, rtol=1e-9)
    errors = Y - K @ coef - b
    np.testing.assert_allclose(errors.sum(axis=0), 0.0, atol=1e-8)


def test_an_indefinite_system_is_repaired_with_a_warning():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(50, 5))
    Y = rng.normal(size=(50, 1))
    moments = Moments.of(K, Y)
    gram = moments.gram - 1e-6 * np.eye(5)
    gram -= (np.linalg.eigvalsh(gram - np.outer(K.sum(0), K.sum(0)) / 50)[0]) * np.eye(5)
    spoiled = Moments(gram - 1e-10 * np.eye(5), moments.border, moments.cross, moments.target,
                      moments.squares, moments.weight, moments.n)  # fmt: skip
    map = nystrom_map(RBF(1.0), np.eye(5), gram=np.eye(5))
    with pytest.warns(NumericalWarning, match="not positive definite"):
        coef, _ = solve_primal(spoiled, map, 1e12)
    assert np.all(np.isfinite(coef))


@pytest.mark.parametrize("loss", ["huber", "absolute"])
def test_reweighting_reaches_the_optimum_of_the_robust_loss(setting, loss):
    X, _, s = setting
    rng = np.random.default_rng(3)
    y = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(300, 1))
    y[:15] += 20.0
    Z, kernel, value = X[:20], RBF(0.5), 5.0
    map = nystrom_map(kernel, Z)
    K = kernel(X, Z)
    start = solve_primal(Moments.of(K, y, s), map, value)
    coef, b, steps = solve_reweighted(
        kernel, X, y, Z, map, value, loss, start, s, tol=1e-7, max_iter=500
    )
    delta = 1.345 * residual_scale(y - K @ coef - b, s)

    def objective(coef, b):
        e = (y - K @ coef - b)[:, 0]
        if loss == "huber":
            cost = np.where(np.abs(e) <= delta, e**2, 2 * delta * np.abs(e) - delta**2)
        else:
            cost = np.abs(e)
        norm = float(coef[:, 0] @ kernel(Z, Z) @ coef[:, 0])
        return 0.5 * norm + 0.5 * value * float(s @ cost)

    assert steps > 1
    best = objective(coef, b)
    assert best < objective(*start)
    for _ in range(20):
        moved = coef + 1e-3 * rng.normal(size=coef.shape), b + 1e-3 * rng.normal(size=1)
        assert objective(*moved) > best - 1e-6 * abs(best)
    clean = np.abs(np.sin(X[15:, :1]) - (K @ coef + b)[15:]).mean()
    spoiled = np.abs(np.sin(X[15:, :1]) - (K @ start[0] + start[1])[15:]).mean()
    assert clean < 0.5 * spoiled


def test_reweighting_says_when_it_was_stopped(setting):
    X, Y, _ = setting
    map = nystrom_map(RBF(0.5), X[:20])
    start = solve_primal(Moments.of(RBF(0.5)(X, X[:20]), Y[:, :1]), map, 1.0)
    with pytest.warns(ConvergenceWarning, match="reweightings"):
        solve_reweighted(RBF(0.5), X, Y[:, :1], X[:20], map, 1.0, "absolute", start, max_iter=1)
