"""Scores that differ by rounding alone are tied, for calibration and for scorers that rank."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from lssvm import LSSVC, FixedSizeLSSVC
from lssvm.tasks import Classes, ScorerLoss, Truth
from lssvm.tasks.losses import tie_scores
from lssvm.uncertainty import fit_calibrator


def noisy(seed=0, n=2000):
    """Return scores of 5 values, the classes, and the scores with dust that follows the classes."""
    rng = np.random.default_rng(seed)
    scores = np.linspace(-0.8, 0.8, 5)[rng.integers(0, 5, n)]
    positive = rng.random(n) < (1 + scores) / 2
    return scores, positive, scores + 1e-15 * np.where(positive, -1, 1) * rng.random(n)


def test_dust_is_taken_off():
    scores, _, dusty = noisy()
    tied = tie_scores(dusty)
    assert len(np.unique(tied)) == 5
    np.testing.assert_allclose(tied, scores, atol=1e-14)
    both = tie_scores(np.column_stack([dusty, 1e3 * dusty]))
    assert [len(np.unique(column)) for column in both.T] == [5, 5]


def test_what_differs_stays():
    scores = np.random.default_rng(1).standard_normal(500)
    assert tie_scores(scores) is scores
    odd = np.array([np.nan, 1.0, np.inf, 1.0 + 1e-12, -np.inf])
    np.testing.assert_array_equal(tie_scores(odd), [np.nan, 1.0, np.inf, 1.0, -np.inf])


@pytest.mark.parametrize(
    ("scoring", "measure"),
    [("average_precision", average_precision_score), ("roc_auc", roc_auc_score)],
)
def test_scorers_that_rank_see_ties(scoring, measure):
    scores, positive, dusty = noisy()
    task = Classes.of(np.array([0, 1]), multiclass="auto")
    truth = Truth(np.where(positive, 1.0, -1.0)[:, None], positive.astype(int))
    loss = ScorerLoss(scoring, task)(dusty[None, :, None], truth)[0]
    assert -loss == pytest.approx(measure(positive, scores), abs=1e-12)
    assert abs(measure(positive, dusty) - measure(positive, scores)) > 0.01


def test_dust_makes_no_knots():
    scores, positive, dusty = noisy()
    values = np.unique(scores)
    clean = fit_calibrator(scores, positive, method="isotonic")(values)
    np.testing.assert_allclose(
        fit_calibrator(dusty, positive, method="isotonic")(values), clean, atol=1e-9
    )


@pytest.mark.parametrize("cls", [LSSVC, FixedSizeLSSVC])
def test_tuning_by_rank_on_a_few_categories(cls):
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (300, 2)).astype(float)
    y = (rng.random(300) < 0.2 + 0.3 * X.sum(axis=1)).astype(int)
    model = cls(C="cv", gamma=0.5, cv=5, scoring="roc_auc").fit(X, y)
    share = np.array([y[(X == row).all(axis=1)].mean() for row in X])
    assert abs(model.best_score_ - roc_auc_score(y, share)) < 0.05
