"""Conjugate gradients against the printed algorithm and the dense KKT system."""

import warnings

import numpy as np
import pytest
from tests.oracles.iterative import hestenes_stiefel, kkt, quadratic_form, rbf

from lssvm._core.errors import (
    ConvergenceWarning,
    InvalidInputError,
    NotPositiveDefiniteError,
)
from lssvm.kernels import RBF, Precomputed
from lssvm.solvers.base import DualSystem, Status
from lssvm.solvers.cg import ConjugateGradient

GAMMA, C = 0.4, 20.0


def problem(n=90, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    Y = np.sin(X @ rng.standard_normal((3, k))) + 2.0
    return X, Y, rng.uniform(0.2, 3.0, n)


def system_of(X, weights=None, C=C, **options):
    root = None if weights is None else np.sqrt(weights).astype(X.dtype)
    return DualSystem(RBF(GAMMA), X, X, C=C, root_weight=root, **options)


def run(solver, system, Y, **options):
    return solver.solve(solver.factorise(system), Y, **options)


def stopped(solver, system, Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return run(solver, system, Y)


@pytest.mark.parametrize("preconditioner", [None, "nystrom"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("budget", [2**31, 2**17])
def test_the_dense_kkt_system_is_solved(preconditioner, weighted, budget):
    X, Y, weights = problem()
    weights = weights if weighted else np.ones(len(X))
    alpha, b = kkt(rbf(X, X, GAMMA), C, weights, Y)
    system = system_of(X, weights if weighted else None, budget=budget)
    found = run(ConjugateGradient(tol=1e-9, preconditioner=preconditioner), system, Y)
    assert found.status is Status.SOLVED
    assert found.residual <= 1e-9
    np.testing.assert_allclose(found.alpha, alpha, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.intercept, b, rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_without_a_stored_matrix_the_answer_is_the_same(threads):
    X, Y, weights = problem(n=60)
    solver = ConjugateGradient(tol=1e-10)
    stored = system_of(X, weights)
    blocked = system_of(X, weights, budget=1000, threads=threads)
    assert solver.factorise(stored).gram is not None
    assert solver.factorise(blocked).gram is None
    first, second = run(solver, stored, Y), run(solver, blocked, Y)
    np.testing.assert_allclose(first.alpha, second.alpha, rtol=1e-7, atol=1e-8)
    assert abs(first.iterations - second.iterations) <= 6  # rounding decides the last of some 65


def test_the_iterates_are_those_of_the_printed_algorithm():
    X, Y, _ = problem(n=40, k=1)
    H = rbf(X, X, GAMMA) + np.eye(len(X)) / C
    ones = np.ones(len(X))
    # Rounding errors grow some tenfold a step here, in the printed algorithm too: nine steps.
    etas, nus = hestenes_stiefel(H, ones, 9), hestenes_stiefel(H, Y[:, 0], 9)
    for i, (eta, nu) in enumerate(zip(etas, nus, strict=True), start=1):
        b = (ones @ nu) / (ones @ eta)
        found = stopped(ConjugateGradient(tol=1e-12, max_iter=i), system_of(X), Y)
        assert found.iterations == i
        np.testing.assert_allclose(found.intercept[0], b, rtol=1e-7)
        np.testing.assert_allclose(found.alpha[:, 0], nu - eta * b, rtol=1e-6, atol=1e-7)


def test_the_quadratic_form_falls_at_every_step():
    X, Y, _ = problem(n=50, k=1)
    Y = Y - Y.mean()
    H = rbf(X, X, GAMMA) + np.eye(len(X)) / C
    # Without the border a bias-free right-hand side shows nu itself: alpha = nu - eta b.
    values = []
    for i in range(1, 15):
        found = stopped(ConjugateGradient(tol=1e-14, max_iter=i), system_of(X), Y)
        eta = hestenes_stiefel(H, np.ones(len(X)), i)[-1]
        nu = found.alpha[:, 0] + eta * found.intercept[0]
        values.append(quadratic_form(H, Y[:, 0], nu))
    assert np.all(np.diff(values) < 0)


def test_a_converged_column_leaves_the_pass(monkeypatch):
    X, Y, _ = problem(n=80, k=2)
    K = rbf(X, X, GAMMA)
    Y = np.column_stack([Y[:, 0], np.linalg.eigh(K)[1][:, -1]])  # an eigenvector: one step
    widths = []
    product = DualSystem.product

    def counted(self, V):
        widths.append(V.shape[1])
        return product(self, V)

    monkeypatch.setattr(DualSystem, "product", counted)
    run(ConjugateGradient(), system_of(X, budget=1000), Y)
    assert widths[0] == 3
    assert widths[-1] == 3  # the recomputed residual
    assert min(widths) < 3


def test_the_decrease_of_the_form_is_asked_for_too():
    # One step leaves little of the residual, but half of the decrease of the form is to come.
    K = np.diag([1e4, 1e-4])
    Y = np.array([[1e4], [-1.0]])
    one_step = hestenes_stiefel(K, Y[:, 0], 1)[0]
    assert np.linalg.norm(Y[:, 0] - K @ one_step) < 0.5e-2 * np.linalg.norm(Y)
    found = run(ConjugateGradient(tol=1e-2), DualSystem(Precomputed(), K, np.arange(2), C=1e12), Y)
    alpha, b = kkt(K, 1e12, np.ones(2), Y)
    np.testing.assert_allclose(found.alpha, alpha, rtol=1e-3)
    np.testing.assert_allclose(found.intercept, b, rtol=1e-3)


def test_a_large_bias_does_not_carry_the_residual_above_the_tolerance():
    # The border lies along large eigenvalues, the targets along small ones: b ||u|| >> ||y||.
    n = 60
    eigenvalues = np.logspace(-2, 3, n)
    border = np.sqrt(eigenvalues) / np.linalg.norm(np.sqrt(eigenvalues))
    mirror = border - 1 / np.sqrt(n)
    Q = np.eye(n) - 2 * np.outer(mirror, mirror) / (mirror @ mirror)  # takes the border to u
    K = Q @ np.diag(eigenvalues) @ Q
    Y = Q[:, :20].sum(axis=1, keepdims=True)
    alpha, b = kkt(K, 1e9, np.ones(n), Y)
    assert np.abs(b[0]) * np.sqrt(n) > 5 * np.linalg.norm(Y)
    found = run(ConjugateGradient(), DualSystem(Precomputed(), K, np.arange(n), C=1e9), Y)
    assert found.status is Status.SOLVED
    rest = Y - K @ found.alpha - found.alpha / 1e9 - found.intercept
    assert np.linalg.norm(rest) <= 1.001e-6 * np.linalg.norm(Y)
    np.testing.assert_allclose(found.alpha, alpha, atol=1e-4 * np.abs(alpha).max())


@pytest.mark.parametrize("preconditioner", [None, "nystrom"])
def test_running_out_of_passes_warns_and_says_so(preconditioner):
    X, Y, _ = problem()
    solver = ConjugateGradient(tol=1e-12, max_iter=2, preconditioner=preconditioner)
    with pytest.warns(ConvergenceWarning, match="after 2 passes"):
        found = run(solver, system_of(X, C=1e4, budget=2**14), Y)
    assert found.status is Status.MAX_ITER
    assert found.residual > 1e-12
    assert found.iterations == 2


def test_a_tolerance_below_rounding_ends_with_a_warning():
    X, Y, _ = problem(n=40)
    with pytest.warns(ConvergenceWarning, match="relative residual"):
        found = run(ConjugateGradient(tol=1e-17), system_of(X), Y)
    assert found.status is Status.MAX_ITER
    assert found.residual < 1e-12


@pytest.mark.parametrize("preconditioner", [None, "nystrom"])
def test_float32_rows_reach_the_tolerance_and_stay_float32(preconditioner):
    X, Y, weights = problem()
    alpha, b = kkt(rbf(X, X, GAMMA), C, weights, Y)
    system = system_of(X.astype(np.float32), weights)
    found = run(ConjugateGradient(preconditioner=preconditioner), system, Y.astype(np.float32))
    assert found.alpha.dtype == np.float32
    assert found.intercept.dtype == np.float32
    assert found.residual <= 1e-6
    np.testing.assert_allclose(found.alpha, alpha, atol=2e-4 * np.abs(alpha).max())
    np.testing.assert_allclose(found.intercept, b, rtol=1e-4)


def test_a_column_of_zeros_has_a_zero_answer():
    X, Y, weights = problem()
    Y[:, 1] = 0
    found = run(ConjugateGradient(), system_of(X, weights), Y)
    assert not found.alpha[:, 1].any()
    assert found.intercept[1] == 0
    assert found.alpha[:, 0].any()
    assert not run(ConjugateGradient(), system_of(X), 0 * Y).alpha.any()


@pytest.mark.parametrize("preconditioner", [None, "nystrom"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n, preconditioner):
    X, Y, weights = problem(n=n, k=2)
    alpha, b = kkt(rbf(X, X, GAMMA), C, weights, Y)
    solver = ConjugateGradient(tol=1e-10, preconditioner=preconditioner)
    found = run(solver, system_of(X, weights), Y)
    np.testing.assert_allclose(found.alpha, alpha, atol=1e-8)
    np.testing.assert_allclose(found.intercept, b, rtol=1e-8)


def test_every_pass_is_reported():
    X, Y, _ = problem()
    calls = []
    found = run(
        ConjugateGradient(), system_of(X), Y, on_iteration=lambda i, value: calls.append((i, value))
    )
    assert [i for i, _ in calls] == list(range(1, found.iterations + 1))
    assert [value for _, value in calls] == found.history
    assert found.history[-1] <= 0.5e-6 < found.history[0]


def test_a_matrix_that_is_not_positive_definite_is_refused():
    K = np.array([[1.0, 3.0], [3.0, 1.0]])
    system = DualSystem(Precomputed(), K, np.arange(2), C=100.0)
    with pytest.raises(NotPositiveDefiniteError, match="positive definite"):
        run(ConjugateGradient(), system, np.array([[1.0], [-1.0]]))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"tol": 0.0}, "tol=0.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"preconditioner": "jacobi"}, "jacobi"),
        ({"n_landmarks": 5}, "needs preconditioner"),
    ],
)
def test_unusable_options_are_refused(options, match):
    X, _, _ = problem(n=5)
    with pytest.raises(InvalidInputError, match=match):
        ConjugateGradient(**options).factorise(system_of(X))
