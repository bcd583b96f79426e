"""Exact cross-validation against refitting every fold."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, TimeSeriesSplit
from tests.oracles.dual import kkt_regression, rbf, refit_predictions

from lssvm.codes import groups, make_code, targets
from lssvm.kernels import RBF, Precomputed
from lssvm.tuning import (
    AbsoluteError,
    DualObjective,
    Group,
    SquaredError,
    content_folds,
    splitter_folds,
)

rng = np.random.default_rng(0)
n = 60
X = rng.normal(size=(n, 2))
y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)
weight = rng.uniform(0.3, 2.0, size=n)
K = rbf(X, X, 0.5)
grid = np.array([0.05, 3.0, 500.0])


def pairs(folds):
    train = folds.train or [np.setdiff1d(np.arange(n), t) for t in folds.test]
    return list(zip(train, folds.test, strict=True))


FOLDS = {
    "loo": content_folds(X, None),
    "7": content_folds(X, 7),
    "2": content_folds(X, 2),
    "LeaveOneOut": splitter_folds(LeaveOneOut().split(X), n),
    "KFold": splitter_folds(KFold(4).split(X), n),
    "ShuffleSplit": splitter_folds(ShuffleSplit(3, random_state=0).split(X), n),
    "TimeSeriesSplit": splitter_folds(TimeSeriesSplit(4).split(X), n),
}


@pytest.mark.parametrize("weights", [None, weight], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", FOLDS)
def test_equals_refits(name, weights):
    folds = FOLDS[name]
    Y = np.column_stack([y, X[:, 1]])
    objective = DualObjective(
        RBF, X, X, Y, folds, SquaredError(Y, weights), [Group(np.arange(2))], weights
    )
    got = objective.at(0.5).predictions(grid)
    for c, C in enumerate(grid):
        for j in range(2):
            wanted = refit_predictions(K, Y[:, j], C, pairs(folds), weights)
            for have, want in zip(got, wanted, strict=True):
                np.testing.assert_allclose(have[c, :, j], want, atol=1e-8)


@pytest.mark.parametrize("name", ["7", "loo", "ShuffleSplit"])
def test_one_vs_one_predicts_every_row_of_a_fold(name):
    folds = FOLDS[name]
    labels = np.digitize(y, [-0.4, 0.4])
    code = make_code("ovo", 3)
    Y = targets(code, labels)
    parts = [Group(g.columns, g.rows) for g in groups(code, labels)]
    objective = DualObjective(RBF, X, X, Y, folds, SquaredError(Y), parts)
    got = objective.at(0.5).predictions(grid)
    for v, (train, test) in enumerate(pairs(folds)):
        for group in parts:
            rows = train[np.isin(train, group.rows)]
            for c, C in enumerate(grid):
                alpha, b = kkt_regression(K[np.ix_(rows, rows)], Y[rows, group.columns[0]], C)
                wanted = K[np.ix_(test, rows)] @ alpha + b
                np.testing.assert_allclose(got[v][c, :, group.columns[0]], wanted, atol=1e-8)


def test_losses_are_means_over_rows():
    folds = FOLDS["7"]
    Y = y[:, None]
    objective = DualObjective(
        RBF, X, X, Y, folds, AbsoluteError(Y, weight), [Group(np.array([0]))], weight
    )
    losses = objective.at(0.5).losses(grid)
    wanted = refit_predictions(K, y, grid[1], pairs(folds), weight)
    errors = np.empty(n)
    for (_, test), prediction in zip(pairs(folds), wanted, strict=True):
        errors[test] = np.abs(prediction - y[test])
    assert losses.mean[1] == pytest.approx(np.average(errors, weights=weight), abs=1e-9)
    assert losses.fold.shape == (3, 7)


def test_many_folds_are_pooled_into_one():
    Y = y[:, None]
    objective = DualObjective(RBF, X, X, Y, FOLDS["loo"], SquaredError(Y), [Group(np.array([0]))])
    losses = objective.at(0.5).losses(grid)
    assert losses.fold.shape == (3, 1)


def test_small_budget_gives_the_same_path():
    Y = y[:, None]
    args = (RBF, X, X, Y, FOLDS["7"], SquaredError(Y), [Group(np.array([0]))])
    wide = DualObjective(*args).at(0.5).losses(grid)
    narrow = DualObjective(*args, budget=3 * n * n * 8).at(0.5).losses(grid)
    np.testing.assert_allclose(wide.fold, narrow.fold, rtol=1e-12)


def test_indefinite_values_of_C_lose():
    M = rng.normal(size=(n, n))
    M = M + M.T
    Y = y[:, None]
    objective = DualObjective(
        lambda _: Precomputed(),
        M,
        np.arange(n),
        Y,
        FOLDS["7"],
        SquaredError(Y),
        [Group(np.array([0]))],
    )
    losses = objective.at(None).losses(np.array([1e-3, 1e3]))
    assert np.isfinite(losses.mean[0]) and np.isinf(losses.mean[1])
