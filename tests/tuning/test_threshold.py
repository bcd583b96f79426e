"""The threshold of the fewest out-of-fold errors."""

import numpy as np
import pytest

from lssvm.tasks.losses import best_threshold


def test_fewest_errors():
    scores = np.array([-2.0, -1.0, -0.5, -0.4, -0.3, 1.0])
    y = np.array([-1, -1, -1, 1, 1, 1])
    assert best_threshold(scores, y) == pytest.approx(-0.45)
    assert best_threshold(-scores, -y) == pytest.approx(0.45)


def test_zero_where_it_is_as_good():
    assert best_threshold(np.array([-0.2, 1.0]), np.array([-1, 1])) == 0.0
    # one error in ten more than the fewest is within half a standard error
    scores = np.concatenate([np.linspace(-2, -1, 30), [0.1], np.linspace(1, 2, 29)])
    y = np.where(np.arange(60) < 31, -1, 1)
    flipped = y.copy()
    flipped[[3, 8, 15, 40, 45, 50]] *= -1
    assert best_threshold(scores, y) == pytest.approx(0.55)
    assert best_threshold(scores, flipped) == 0.0


def test_brute_force_with_weights_and_ties():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=200).round(1)
    targets = np.where(scores + rng.normal(size=200) > 0.8, 1, -1)
    weight = rng.uniform(0.5, 2.0, 200)
    found = best_threshold(scores, targets, weight)

    def errors(cut):
        return weight[(scores > cut) != (targets > 0)].sum() / weight.sum()

    cuts = np.unique(scores)
    cuts = np.concatenate([(cuts[1:] + cuts[:-1]) / 2, [cuts[0] - 1, cuts[-1] + 1]])
    rates = np.array([errors(cut) for cut in cuts])
    low = rates.min()
    alike = rates <= low + 0.5 * np.sqrt(low * (1 - low) * (weight**2).sum()) / weight.sum()
    assert found in cuts
    assert abs(found) == np.abs(cuts[alike]).min() > 0
    assert errors(found) < errors(0.0)


def test_rows_that_take_no_part():
    scores = np.array([-2.0, -0.6, -0.5, 1.0, np.nan, -5.0])
    targets = np.array([-1, -1, 1, 1, 1, 0])
    assert best_threshold(scores, targets) == pytest.approx(-0.55)
    assert best_threshold(scores[:2], targets[:2]) == 0.0
