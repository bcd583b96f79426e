"""Held-out outputs of small data: every choice again without the fold, against plain refits."""

from dataclasses import replace

import numpy as np
import pytest

from lssvm.fitting import Configuration, Problem, TableSettings
from lssvm.fitting.screening import (
    folds_of_equal_size,
    median_distance,
    nested_outputs,
    tune,
    tune_outside_folds,
)
from lssvm.fitting.table_record import subset
from lssvm.fitting.table_work import Clock, Work
from lssvm.kernels.radial import distances
from lssvm.local import fit_leaf

SETS = (Configuration("standardised", "rbf"), Configuration("standardised", "laplacian"))
rng = np.random.default_rng(0)


def make_work(n=40, *, grouped=False, signal=1.0):
    X = rng.normal(size=(n, 2))
    Y = np.column_stack([signal * np.sin(2 * X[:, 0]), signal * X[:, 1]])
    Y += 0.5 * rng.normal(size=Y.shape)
    labels = np.arange(n) // 2 if grouped else None
    problem = Problem({"standardised": X}, Y, rng.uniform(0.5, 2.0, n), labels)
    folds = problem.folds(5, np.random.default_rng(1))
    settings = TableSettings(configurations=SETS)
    return Work(problem, settings, Clock(), None, folds, lambda event: None)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_fold_is_tuned_as_its_other_rows_would_be_alone(grouped, monkeypatch):
    work = make_work(grouped=grouped)
    folds = work.problem.folds(7, np.random.default_rng(2))
    for configuration in SETS:
        rows = work.problem.rows("standardised")
        D = distances(rows.X, rows.X, configuration.distance)
        found = tune_outside_folds(work, configuration, folds)
        median = median_distance(D)
        for v in range(7):
            inside, outside = np.flatnonzero(folds == v), np.flatnonzero(folds != v)
            other = subset(work.problem, outside).rows("standardised")
            D_outside = D[np.ix_(outside, outside)]
            with monkeypatch.context() as patch:
                patch.setattr("lssvm.fitting.screening.median_distance", lambda D, all=median: all)
                alone = tune(other, configuration, D_outside, work.folds[outside])
            leaf = fit_leaf(other, configuration.distance, alone.setting)
            np.testing.assert_allclose(found.outputs[v, outside], leaf.fit.left_out, atol=1e-7)
            np.testing.assert_allclose(found.nested[v, outside], alone.nested, atol=1e-7)
            new = leaf.outputs(rows.X[inside], configuration.distance)
            np.testing.assert_allclose(found.outputs[v, inside], new, atol=1e-7)


@pytest.mark.parametrize("at_most", [1, 2])
def test_the_targets_of_a_fold_do_not_reach_its_outputs(at_most):
    work = make_work()
    n, k = work.problem.Y.shape
    learned = [rng.normal(size=(n, k))]
    out = nested_outputs(work, learned, at_most)
    assert out.shape == (n, k) and np.isfinite(out).all()
    folds = work.problem.folds(30, np.random.default_rng(work.settings.seed))
    inside = folds == folds[0]
    Y = work.problem.Y.copy()
    Y[inside] += 100.0
    changed = replace(work, problem=replace(work.problem, Y=Y))
    again = nested_outputs(changed, learned, at_most)
    np.testing.assert_allclose(again[inside], out[inside], atol=1e-6)
    assert np.abs(again[~inside] - out[~inside]).max() > 0.1


def test_folds_of_one_size_come_together():
    folds = np.array([0, 1, 2, 0, 1, 3, 3])
    pairs = [(numbers.tolist(), rows.tolist()) for numbers, rows in folds_of_equal_size(folds, 2)]
    assert pairs == [([2], [[2]]), ([0, 1], [[0, 3], [1, 4]]), ([3], [[5, 6]])]
