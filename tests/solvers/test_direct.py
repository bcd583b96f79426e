"""Cholesky and the eigen path against the printed systems."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from tests.oracles.dual import kkt_regression, rbf

from lssvm._core.errors import (
    InvalidInputError,
    MemoryBudgetError,
    NotPositiveDefiniteError,
    NumericalWarning,
)
from lssvm.kernels import RBF, Linear, Precomputed
from lssvm.solvers import Cholesky, DualSystem, Status, make_solver
from lssvm.solvers.exact import choose_solver, eigen_state

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2, np.ones(90)])
weight = rng.uniform(0.2, 3.0, size=90)
K = rbf(X, X, 0.4)


@pytest.mark.parametrize("weights", [None, weight])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e5])
def test_cholesky_solves_the_printed_system(C, weights):
    root = None if weights is None else np.sqrt(weights)
    solver = Cholesky()
    solution = solver.solve(solver.factorise(DualSystem(RBF(0.4), X, X, C, root)), Y)
    for j in range(3):
        alpha, b = kkt_regression(K, Y[:, j], C, weights)
        scale = max(1.0, np.abs(alpha).max())
        np.testing.assert_allclose(solution.alpha[:, j], alpha, atol=1e-8 * scale)
        np.testing.assert_allclose(solution.intercept[j], b, atol=1e-8)
    assert solution.residual < 1e-11 and solution.status is Status.SOLVED


@pytest.mark.parametrize("weights", [None, weight])
def test_eigen_path_equals_cholesky(weights):
    root = None if weights is None else np.sqrt(weights)
    system = DualSystem(RBF(0.4), X, X, 1.0, root)
    grid = np.array([1e-2, 1.0, 1e3])
    state = eigen_state(system)
    path = state.bordered(grid, system.u[:, None] * Y)
    for c, C in enumerate(grid):
        direct = Cholesky().solve(Cholesky().factorise(DualSystem(RBF(0.4), X, X, C, root)), Y)
        alpha = system.u[:, None] * path.beta[:, c]
        np.testing.assert_allclose(alpha, direct.alpha, atol=1e-8)
        np.testing.assert_allclose(path.b[c], direct.intercept, atol=1e-9)


@pytest.mark.parametrize("bias", [True, False])
def test_without_bias_it_is_kernel_ridge(bias):
    solver = Cholesky()
    system = DualSystem(RBF(0.4), X, X, 10.0, None, bias=bias)
    solution = solver.solve(solver.factorise(system), Y)
    plain = np.linalg.solve(K + np.eye(90) / 10.0, Y)
    assert np.allclose(solution.alpha, plain) != bias
    path = eigen_state(system).bordered(np.array([10.0]), Y)
    np.testing.assert_allclose(path.beta[:, 0], solution.alpha, atol=1e-9)
    if not bias:
        assert np.all(solution.intercept == 0) and np.all(path.b == 0)


def test_parts_of_the_system():
    root = np.sqrt(weight)
    system = DualSystem(RBF(0.4), X, X, 2.0, root, budget=20_000, threads=2)
    H = root[:, None] * K * root[None, :] + np.eye(90) / 2.0
    np.testing.assert_allclose(system.diagonal(), np.diag(H))
    np.testing.assert_allclose(system.product(Y), H @ Y, rtol=1e-10)
    np.testing.assert_allclose(
        system.columns(np.array([4, 2])), (H - np.eye(90) / 2.0)[:, [4, 2]], rtol=1e-10
    )


def test_memory_is_refused_before_it_is_taken():
    big = np.zeros((200_000, 1))
    with pytest.raises(MemoryBudgetError, match="solver='cg'"):
        DualSystem(Linear(), big, big, 1.0, budget=10**8).gram()
    with pytest.raises(MemoryBudgetError, match="eigendecomposition"):
        eigen_state(DualSystem(RBF(0.4), X, X, 1.0, budget=90 * 90 * 8))


def test_nearly_singular_is_jittered_with_a_warning():
    A = np.repeat(rng.normal(size=(3, 2)), 40, axis=0)
    system = DualSystem(Linear(), 1e8 * A, 1e8 * A, 1e6)
    with pytest.warns(NumericalWarning, match="positive definite"):
        state = Cholesky().factorise(system)
    solution = Cholesky().solve(state, rng.normal(size=(120, 1)))
    assert state.status is Status.JITTERED and np.all(np.isfinite(solution.alpha))


def test_indefinite_kernel_is_an_error():
    M = np.diag([1.0, -5.0, 1.0])
    with pytest.raises(NotPositiveDefiniteError, match="negative eigenvalues"):
        Cholesky().factorise(DualSystem(Precomputed(), M, np.arange(3), 1.0))
    d = eigen_state(DualSystem(Precomputed(), M, np.arange(3), 1.0)).inverse_spectrum([0.1, 1.0])
    assert np.all(d[:, 0] > 0) and np.any(d[:, 1] == 0)


def test_choice():
    system = DualSystem(RBF(0.4), X, X, 1.0)
    assert choose_solver(1000, 8 * 10**6) == "cholesky" and choose_solver(1001, 8 * 10**6) == "cg"
    for name in ("cholesky", "cg", "smo"):
        got, solver = make_solver(name, system, seed=0)
        assert got == name and getattr(solver, "tol", 1e-6) == 1e-6
    mine = Cholesky()
    assert make_solver(mine, system, seed=0) == ("cholesky", mine)
    for bad in ("qr", 3):
        with pytest.raises(InvalidInputError, match="cholesky"):
            make_solver(bad, system, seed=0)


@pytest.mark.parametrize("name", ["cholesky", "cg", "smo"])
@pytest.mark.parametrize("weights", [None, weight])
@pytest.mark.parametrize("bias", [True, False])
def test_all_solvers_agree(name, weights, bias):
    root = None if weights is None else np.sqrt(weights)
    system = DualSystem(RBF(0.4), X, X, 5.0, root, bias=bias)
    _, solver = make_solver(name, system, seed=0)
    if name != "cholesky":
        solver = replace(solver, tol=1e-9)
    if name == "smo" and not bias:
        with pytest.raises(InvalidInputError, match="fit_intercept=True"):
            solver.factorise(system)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = solver.solve(solver.factorise(system), Y)
    direct = Cholesky().solve(Cholesky().factorise(system), Y)
    np.testing.assert_allclose(solution.alpha, direct.alpha, atol=1e-6)
    np.testing.assert_allclose(solution.intercept, direct.intercept, atol=1e-6)
    assert solution.residual <= 1e-8
