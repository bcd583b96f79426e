"""Free runs and their losses against loops, refits and dense solves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from tests.oracles import narx as oracle

from lssvm.kernels import RBF, Linear
from lssvm.solvers import DualSystem
from lssvm.solvers.exact import eigen_state
from lssvm.tuning import GridSearch, PathSearch, Space
from lssvm.tuning.free_running import (
    RUNAWAY,
    Expansions,
    FittedRegressors,
    FreeRunObjective,
    Stretch,
    free_run,
)

LAGS = 3


@pytest.fixture
def series():
    rng = np.random.default_rng(0)
    t = np.arange(80.0)
    return np.sin(0.7 * t) + 0.3 * np.cos(1.9 * t) + 0.05 * rng.standard_normal(80)


def stretches(rows, targets, starts, steps, purge=0):
    return [
        Stretch(rows[s, :LAGS], targets[s : s + steps], np.arange(s, s + steps + purge))
        for s in starts
    ]


@pytest.mark.parametrize("sums", [0, 1])
def test_losses_equal_refits_and_loops(series, sums):
    rows, targets = oracle.lag_rows(series, lags=LAGS)
    parts = stretches(rows, targets, (0, 20, 51), 9, purge=LAGS)
    C, gamma = np.array([0.3, 20.0, 1e4]), 0.4
    losses = FreeRunObjective(RBF, rows, targets, parts, sums).at(gamma).losses(C)
    expected = [
        [
            oracle.free_run_loss(rows, targets, c, gamma, s.history, s.targets, s.left_out, sums)
            for s in parts
        ]
        for c in C
    ]
    np.testing.assert_allclose(losses.fold, expected, rtol=1e-6)
    np.testing.assert_allclose(losses.mean, np.mean(expected, axis=1), rtol=1e-6)


def test_inputs_take_part_in_the_runs(series):
    inputs = np.cos(0.3 * np.arange(80.0))[:, None]
    rows, targets = oracle.lag_rows(series, inputs, lags=LAGS, exog_lags=1)
    place = slice(30, 40)
    part = Stretch(rows[30, :LAGS], targets[place], np.arange(30, 43), rows[place, LAGS:])
    loss = FreeRunObjective(RBF, rows, targets, [part]).at(0.2).losses(np.array([50.0])).mean
    expected = oracle.free_run_loss(
        rows, targets, 50.0, 0.2, part.history, part.targets, part.left_out, exog=part.exog
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


@pytest.mark.parametrize("bias", [True, False])
def test_left_out_rows_are_as_if_never_there(series, bias):
    rows, targets = oracle.lag_rows(series, lags=LAGS)
    C, gamma, out = np.array([1.0, 1e3]), 0.5, np.arange(10, 31)
    state = eigen_state(DualSystem(RBF(gamma), rows, rows, 1.0, bias=bias))
    path = state.bordered(C, targets[:, None])
    alpha, b = (part[..., 0] for part in path.without(out, path.errors(out)))
    kept = np.setdiff1d(np.arange(len(targets)), out)
    for i, c in enumerate(C):
        if bias:
            expected, offset = oracle.solve(rows[kept], targets[kept], c, gamma)
        else:
            K = oracle.rbf(rows[kept], rows[kept], gamma)
            expected, offset = np.linalg.solve(K + np.eye(len(kept)) / c, targets[kept]), 0.0
        np.testing.assert_allclose(alpha[i, kept], expected, rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(b[i], offset, atol=1e-8)
        assert np.all(alpha[i, out] == 0.0)


def test_the_losses_of_a_c_do_not_depend_on_the_others(series, monkeypatch):
    rows, targets = oracle.lag_rows(series, lags=LAGS)
    point = FreeRunObjective(RBF, rows, targets, stretches(rows, targets, (5, 40), 8)).at(0.3)
    C = np.geomspace(0.1, 1e3, 5)
    whole = point.losses(C).fold
    monkeypatch.setattr("lssvm.tuning.free_running._CHUNK", 1)  # one C and one model at a time
    np.testing.assert_allclose(point.losses(C).fold, whole, rtol=1e-9)


def test_searches_minimise_it(series):
    rows, targets = oracle.lag_rows(series, lags=LAGS)
    objective = FreeRunObjective(RBF, rows, targets, stretches(rows, targets, (0, 30, 60), 10))
    grid = GridSearch(C=[1e-3, 10.0, 1e3], gamma=[1e-2, 0.5]).run(objective, Space())
    assert grid.C > 1e-3
    path = PathSearch(n_C=9).run(objective, Space(gamma_start=0.5))
    assert path.loss <= 1.05 * grid.loss


def test_models_and_paths_run_side_by_side():
    models = Expansions(Linear(), np.eye(2), np.array([[0.5, 0.0], [0.0, 1.0]]), np.zeros(2))
    history = np.array([[[8.0, 1.0], [4.0, 1.0]], [[8.0, 1.0], [4.0, 2.0]]])
    runs = free_run(models, history, 3)
    np.testing.assert_allclose(runs[0], [[4.0, 2.0, 1.0], [2.0, 1.0, 0.5]])
    np.testing.assert_allclose(runs[1], [[1.0, 8.0, 1.0], [2.0, 4.0, 2.0]])  # y_t = y_{t-2}


def test_regressors_predict_their_own_rows_and_one_serves_all():
    X = np.array([[0.0], [1.0]])
    double, triple = (LinearRegression().fit(X, slope * X[:, 0]) for slope in (2.0, 3.0))
    rows = np.arange(6.0).reshape(2, 3, 1)
    each = FittedRegressors([double, triple])(rows)
    np.testing.assert_allclose(each, [[0.0, 2.0, 4.0], [9.0, 12.0, 15.0]], atol=1e-12)
    one = FittedRegressors([double])(rows)
    np.testing.assert_allclose(one, 2.0 * rows[:, :, 0], atol=1e-12)


def test_noise_sees_the_rows_and_is_fed_back():
    halve = Expansions(Linear(), np.array([[1.0]]), np.array([[0.5]]), np.zeros(1))
    seen = []

    def noise(rows):
        seen.append(rows.copy())
        return np.ones(rows.shape[:2])

    runs = free_run(halve, np.array([[[4.0]]]), 3, noise=noise)
    np.testing.assert_allclose(runs, [[[3.0, 2.5, 2.25]]])
    np.testing.assert_allclose(np.concatenate(seen).ravel(), [4.0, 3.0, 2.5])


def test_a_run_that_diverges_stays_finite():
    explode = Expansions(Linear(), np.array([[1.0]]), np.array([[100.0]]), np.zeros(1))
    runs = free_run(explode, np.array([[[1.0]]]), 500)
    assert np.isfinite(runs).all()
    assert runs.max() == RUNAWAY
