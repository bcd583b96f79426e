"""One-vs-one on many rows: fewer folds, few prototypes for gamma, features of classes shared."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from lssvm import FixedSizeLSSVC
from lssvm.backends.rows import Rows
from lssvm.codes import one_vs_one
from lssvm.data.folds import Folds
from lssvm.fitting.fixed_size import enough_folds, searched_prototypes
from lssvm.fitting.fixed_solution import problems, solve_moments
from lssvm.kernels import RBF
from lssvm.solvers.moments import nystrom_map
from lssvm.solvers.primal import solve_primal
from lssvm.tasks import Classes
from lssvm.tuning import PositionFolds


def _blobs(n, k, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    centres = 2.5 * rng.normal(size=(k, d))
    return centres[y] + rng.normal(size=(n, d)), y


@pytest.mark.parametrize(
    ("size", "n_folds", "n_pairs", "left_out"),
    [
        (8_000, 10, 45, 3),  # 2,400 rows
        (40_000, 10, 325, 2),
        (8_000, 10, 10, 10),  # few systems
        (1_000, 10, 45, 10),  # few rows
        (3_000, 10, 45, 7),
    ],
)
def test_as_many_folds_as_hold_enough_rows(size, n_folds, n_pairs, left_out):
    folds = Folds(np.split(np.arange(size), n_folds))
    assert len(enough_folds(folds, n_pairs)) == left_out


def test_folds_of_others_stay():
    train = Folds([np.arange(5_000)] * 10, [np.arange(5_000, 9_000)] * 10)
    assert enough_folds(train, 45) is train
    by_position = PositionFolds(10)
    assert enough_folds(by_position, 45) is by_position


def test_problems_of_pairs_are_solved_as_one_by_one():
    X, y = _blobs(240, 6)
    task = Classes(np.arange(6), one_vs_one(6), class_weight={c: 1.0 + c for c in range(6)})
    rows = Rows(X, np.zeros((240, 15)), labels=y)
    kernel, Z = RBF(0.1), X[:30]
    whole, map = rows.moments(kernel, Z, None, task).whole, nystrom_map(kernel, Z)
    C_of = np.geomspace(0.1, 100, 15)
    coef, intercept = solve_moments(whole, map, task, C_of, threads=2)
    for columns, C, moments in problems(whole, task, C_of):
        own, b = solve_primal(moments, map, C)
        np.testing.assert_allclose(
            RBF(0.1)(X, Z) @ coef[:, columns] + intercept[columns],
            RBF(0.1)(X, Z) @ own + b,
            atol=1e-7,
        )


def test_gamma_is_searched_with_few_prototypes():
    X, y = _blobs(2_400, 6)
    X, new, y, truth = X[:1_200], X[1_200:], y[:1_200], y[1_200:]
    model = FixedSizeLSSVC(400, cv=5, random_state=0).fit(X, y)
    assert searched_prototypes(400, 15) == 200
    assert len(model.sample_results_["params"]) > 2
    assert len(model.cv_results_["params"]) == 1
    best = np.argmin(model.sample_results_["rank_test_score"])
    assert model.gamma_ == float(f"{model.sample_results_['param_gamma'][best]:.3g}")
    bayes = LinearDiscriminantAnalysis().fit(X, y)  # classes of equal covariance
    assert model.score(new, truth) > bayes.score(new, truth) - 0.02
    assert abs(model.best_score_ - model.score(new, truth)) < 0.05


def test_best_score_is_that_of_the_rows_left_out():
    X, y = _blobs(5_000, 6)
    model = FixedSizeLSSVC(40, gamma=0.1, random_state=0).fit(X, y)
    held = model.record_.calibration.sample
    task = model.record_.task
    right = task.predict(held.held_out) == held.labels
    assert len(held.labels) == 2_000  # four folds of ten
    assert right.mean() == pytest.approx(model.best_score_, abs=0.02)
    assert model.predict_proba(X[:5]).sum(axis=1) == pytest.approx(1.0)
