"""Kernel logistic regression against a minimiser of its objective and against refits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from lssvm.local import Rows, Setting, fit_leaf
from lssvm.solvers.exact import ExactFit, Repeats, solve_exact
from lssvm.solvers.logistic import smoothed_targets, solve_logistic


def problem(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs, kernel matrix, labels and weights of two overlapping classes."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.4 * random.normal(size=n) > 0, 1.0, -1.0)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    return X, K, y[:, None], random.uniform(0.5, 2.0, n)


def test_the_model_minimises_the_penalised_log_loss():
    _, K, Y, weight = problem(40)
    C, target = 3.0, smoothed_targets(Y[:, 0], weight)

    def objective(p: np.ndarray) -> float:
        f = K @ p[:-1] + p[-1]
        loss = -(target * log_expit(f) + (1.0 - target) * log_expit(-f))
        return 0.5 * p[:-1] @ K @ p[:-1] + C * weight @ loss

    def gradient(p: np.ndarray) -> np.ndarray:
        f = K @ p[:-1] + p[-1]
        slope = C * weight * (expit(f) - target)
        return np.append(K @ (p[:-1] + slope), slope.sum())

    expected = minimize(objective, np.zeros(41), jac=gradient, tol=1e-12, method="BFGS")
    fit = solve_logistic(K, Y, C, weight)
    outputs = (K @ fit.coef + fit.intercept)[:, 0]
    np.testing.assert_allclose(outputs, K @ expected.x[:-1] + expected.x[-1], atol=1e-3)
    # The conditions of the minimum hold to working precision.
    np.testing.assert_allclose(fit.coef[:, 0], C * weight * (target - expit(outputs)), atol=1e-10)
    assert abs(fit.coef.sum()) < 1e-10


def test_single_precision_is_refined_to_double():
    _, K, Y, weight = problem(250)
    double, single = (solve_logistic(K, Y, 20.0, weight, single=single) for single in (False, True))
    np.testing.assert_allclose(single.coef, double.coef, atol=1e-8)
    np.testing.assert_allclose(single.left_out, double.left_out, atol=2e-3)


def test_steps_may_begin_anywhere():
    _, K, Y, weight = problem(60)
    first = solve_logistic(K, Y, 20.0, weight)
    far = solve_logistic(K, Y, 0.1, weight)
    again = solve_logistic(K, Y, 20.0, weight, start=far)
    np.testing.assert_allclose(again.coef, first.coef, atol=1e-9)


@pytest.mark.parametrize(("C", "gap", "single"), [(3e4, 1.0, True), (1e4, 0.0, False)])
def test_leaves_take_single_precision_by_the_curvature_of_their_rows(C, gap, single, monkeypatch):
    """Rows that are nearly certain hardly count: a C that is large for others is not for them."""
    random = np.random.default_rng(0)
    y = np.where(np.arange(400) % 2 > 0, 1.0, -1.0)
    X = random.normal(size=(400, 2))
    X[:, 0] = y * (gap + np.abs(X[:, 0])) if gap else X[:, 0] + y
    asked = []

    def solve(*given, **options):
        asked.append(options["single"])
        return solve_logistic(*given, **options)

    monkeypatch.setattr("lssvm.local.leaf.solve_logistic", solve)
    rows, setting = Rows(X, y[:, None], np.ones(400)), Setting(C, 0.5, "logistic")
    near = fit_leaf(rows, "sqeuclidean", setting).fit
    leaf = fit_leaf(rows, "sqeuclidean", setting, near=near)
    assert bool(asked[-1]) == single
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    double = solve_logistic(K, y[:, None], C, np.ones(400), start=near)
    # The median: with a large C the output of a single row left out may depend on rounding of K.
    off = np.median(np.abs(leaf.fit.left_out - double.left_out))
    assert off < 1e-3 * np.abs(double.left_out).mean()


@pytest.mark.parametrize(("C", "factor"), [(20.0, 12.0), (300.0, 12.0), (5e3, 1e4)])
@pytest.mark.parametrize("single", [False, True])
def test_steps_that_begin_too_far_away_begin_again(C, factor, single):
    _, K, _, weight = problem(80, 1)
    Y = np.where(np.arange(80) < 4, 1.0, -1.0)[:, None]  # a rare class that the inputs do not tell
    first = solve_logistic(K, Y, C, weight)
    squared = solve_exact(K.copy(), Y, 4.0 / (C * weight))
    start = ExactFit(factor * squared.coef, factor * squared.intercept, squared.left_out)
    again = solve_logistic(K, Y, C, weight, start=start, single=single)
    outputs = [K @ fit.coef + fit.intercept for fit in (again, first)]
    np.testing.assert_allclose(*outputs, atol=1e-6)


@pytest.mark.parametrize("groups", [False, True])
def test_left_out_outputs_are_nearly_those_of_refits(groups):
    _, K, Y, weight = problem(80, 1)
    labels = np.repeat(np.arange(40), 2) if groups else np.arange(80)
    fit = solve_logistic(K, Y, 2.0, weight, Repeats.of(labels) if groups else Repeats())
    refits = np.empty(80)
    for label in np.unique(labels):
        out = labels == label
        less = solve_logistic(K[np.ix_(~out, ~out)], Y[~out], 2.0, weight[~out])
        refits[out] = (K[np.ix_(out, ~out)] @ less.coef + less.intercept)[:, 0]
    assert np.abs(fit.left_out[:, 0] - refits).max() < 0.15 * refits.std()
    assert np.corrcoef(fit.left_out[:, 0], refits)[0, 1] > 0.999


def test_rows_of_one_class_have_a_finite_model():
    _, K, _, weight = problem(30)
    fit = solve_logistic(K, np.ones((30, 1)), 10.0, weight)
    total = weight.sum()
    expected = np.log(total + 1.0)  # the log-odds of (N + 1) / (N + 2)
    np.testing.assert_allclose(K @ fit.coef + fit.intercept, expected, atol=1e-8)


def test_left_out_outputs_are_bounded():
    """So that the log loss of one row does not count like those of all others."""
    x = np.linspace(0.0, 1.0, 40)
    y = np.where(np.sin(12.0 * x) > 0.0, 1.0, -1.0)[:, None]
    y[20] *= -1.0
    K = np.exp(-100.0 * (x[:, None] - x) ** 2)
    assert np.abs(solve_logistic(K, y, 1e9, np.ones(40)).left_out).max() <= 30.0


def test_a_weight_of_two_is_the_row_twice():
    _, K, Y, _ = problem(50)
    weight = np.ones(50)
    weight[:10] = 2.0
    twice = np.concatenate([np.arange(50), np.arange(10)])
    one = solve_logistic(K, Y, 5.0, weight)
    two = solve_logistic(K[np.ix_(twice, twice)], Y[twice], 5.0, np.ones(60))
    outputs = [K @ one.coef + one.intercept, K[:, twice] @ two.coef + two.intercept]
    np.testing.assert_allclose(*outputs, atol=1e-9)


def test_a_logistic_leaf_chooses_C_by_the_log_loss_of_rows_left_out():
    X, _, Y, weight = problem(120)
    rows, start = Rows(X, Y, weight), Setting(400.0, 0.5, "logistic")
    kept = fit_leaf(rows, "sqeuclidean", start)
    tuned = fit_leaf(rows, "sqeuclidean", start, tries=6)
    assert tuned.setting.C < start.C
    assert tuned.setting.loss == "logistic"
    assert tuned.error < kept.error
    loss = np.average(-log_expit(Y * tuned.fit.left_out)[:, 0], weights=weight)
    assert tuned.error == pytest.approx(loss)
