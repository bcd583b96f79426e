"""Scores that differ by rounding alone are tied, for calibration and for scorers that rank."""

import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from lssvm import LSSVC, FixedSizeLSSVC
from lssvm._core.arrays import tie_scores
from lssvm.tasks import Classes, ScorerLoss, Targets
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


def test_columns_without_dust_stay_as_they_are():
    scores, _, dusty = noisy()
    tied = tie_scores(np.column_stack([scores, dusty, -scores]))
    np.testing.assert_array_equal(tied[:, 1], tie_scores(dusty))
    np.testing.assert_array_equal(tied[:, [0, 2]], np.column_stack([scores, -scores]))


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
    truth = Targets(np.where(positive, 1.0, -1.0)[:, None], positive.astype(int))
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


def of_cells(shares, sizes):
    """Return scores of one value a cell, and classes of the given shares, in a random order."""
    scores = np.repeat(np.linspace(-0.7, 0.7, len(shares)), sizes)
    within = np.concatenate([np.arange(n) / n for n in sizes])
    order = np.random.default_rng(3).permutation(len(scores))
    return scores[order], (within < np.repeat(shares, sizes))[order]


@pytest.mark.parametrize("method", ["auto", "isotonic"])
def test_every_value_of_few_has_its_share(method):
    """Nothing between the values pulls at them, and those of one step have one probability."""
    shares, sizes = np.array([0.1, 0.3, 0.2, 0.25, 0.5, 0.9]), np.full(6, 4000)
    scores, positive = of_cells(shares, sizes)
    p = fit_calibrator(scores, positive, method=method)(np.unique(scores))
    np.testing.assert_allclose(p, [0.1, 0.25, 0.25, 0.25, 0.5, 0.9], atol=0.01)


def test_counts_are_observations_of_a_value():
    scores, positive = of_cells(np.array([0.1, 0.2, 0.8, 0.7]), np.full(4, 500))
    cell, weight = np.unique(np.column_stack([scores, positive]), axis=0, return_counts=True)
    values, hits, counts = cell[:, 0], cell[:, 1] > 0, weight.astype(float)
    whole = fit_calibrator(scores, positive, method="isotonic")(np.unique(scores))
    few = fit_calibrator(values, hits, counts, method="isotonic")(np.unique(scores))
    np.testing.assert_allclose(few, whole, atol=1e-9)
    np.testing.assert_allclose(whole, [0.1, 0.2, 0.75, 0.75], atol=0.02)


def test_the_better_map_of_few_values_is_found_by_observations():
    """Values left out as a whole say nothing of steps: rows are dealt one by one."""
    scores, positive = of_cells(np.array([0.05, 0.05, 0.05, 0.95, 0.95, 0.95]), np.full(6, 200))
    step = fit_calibrator(scores, positive)(np.unique(scores))
    np.testing.assert_allclose(step, np.repeat([0.05, 0.95], 3), atol=0.02)
    order = np.random.default_rng(4).permutation(len(scores))
    again = fit_calibrator(scores[order], positive[order])(np.unique(scores))
    np.testing.assert_array_equal(again, step)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_order_of_rows_does_not_choose_the_map(seed):
    scores, positive, _ = noisy(seed, 1200)
    orders = [np.random.default_rng(k).permutation(1200) for k in range(6)]
    orders.append(np.lexsort((positive, scores)))
    maps = [fit_calibrator(scores[order], positive[order]) for order in orders]
    assert len({type(one) for one in maps}) == 1


def test_scores_that_differ_are_joined_in_the_middle_of_steps():
    scores = np.linspace(-1.0, 1.0, 2001)
    map = fit_calibrator(scores, scores > 0.0, method="isotonic")
    assert np.all(np.diff(map.knots) > 0.5)


@pytest.mark.parametrize("cls", [LSSVC, FixedSizeLSSVC])
def test_tuning_by_rank_on_a_few_categories(cls):
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (300, 2)).astype(float)
    y = (rng.random(300) < 0.2 + 0.3 * X.sum(axis=1)).astype(int)
    model = cls(C="cv", gamma=0.5, cv=5, scoring="roc_auc").fit(X, y)
    share = np.array([y[(X == row).all(axis=1)].mean() for row in X])
    assert abs(model.best_score_ - roc_auc_score(y, share)) < 0.05


def test_many_columns_need_no_memory_but_their_own():
    """Of a wide table some columns are sorted at a time."""
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 3, size=(300, 20_000)).astype(float)
    scores += 1e-13 * rng.random(scores.shape)
    tracemalloc.start()
    tied = tie_scores(scores)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * scores.nbytes
    for j in (0, 7_000, 19_999):
        np.testing.assert_array_equal(tied[:, j], tie_scores(scores[:, j]))
    assert len(np.unique(tied[:, 0])) == 3
