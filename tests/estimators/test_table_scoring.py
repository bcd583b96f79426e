"""R2 of held-out predictions estimates that of new rows: over many draws, weights and groups."""

import numpy as np
import pytest
from sklearn.metrics import r2_score

from lssvm.estimators.table_scoring import NumberScorer, held_out_r2


def mean_of_others(y, weight, labels):
    """Return the prediction of the mean, for every row without its group."""
    other = labels[:, None] != labels
    return other @ (weight[:, None] * y) / (other @ weight)[:, None]


def draw(own, n, case):
    weight = own.choice([0.3, 1.0, 3.0], n) if case == "weights" else np.ones(n)
    labels = own.integers(0, n // 4, n) if case == "groups" else np.arange(n)
    shared = own.normal(size=(2, n))[:, labels] if case == "groups" else own.normal(size=(2, n))
    f, e = np.sqrt(0.5) * (shared + own.normal(size=(2, n)))
    return weight, labels, f[:, None], e[:, None]


@pytest.mark.parametrize("case", ["plain", "weights", "groups"])
def test_no_bias_with_signal(case):
    """The prediction is known exactly, so that R2 of new rows is the share of its variance."""
    own = np.random.default_rng(1)
    gaps, plain = [], []
    for _ in range(1000):
        weight, labels, f, e = draw(own, 80 if case == "groups" else 40, case)
        y = np.sqrt(0.6) * f + np.sqrt(0.4) * e
        groups = labels if case == "groups" else None
        gaps.append(held_out_r2(y, np.sqrt(0.6) * f, weight, groups) - 0.6)
        variance = np.average((y - np.average(y, axis=0, weights=weight)) ** 2, 0, weight)
        plain.append(0.4 - 0.4 * np.average(e**2, 0, weight) / variance)
    error = np.std(gaps) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps)) < 2.5 * error + 0.003 < -np.mean(plain)
    assert np.mean(gaps) < 2.5 * error  # never better than new rows say


@pytest.mark.parametrize("case", ["plain", "weights", "groups"])
def test_the_mean_of_noise_scores_what_it_does_on_new_rows(case):
    own = np.random.default_rng(3)
    gaps, n = [], 40
    for _ in range(600):
        weight, labels, _, e = draw(own, n, case)
        groups = labels if case == "groups" else None
        same = labels[:, None] == labels
        covariance = 0.5 * same + 0.5 * np.eye(n)
        true = -(weight @ covariance @ weight) / weight.sum() ** 2
        gaps.append(held_out_r2(e, mean_of_others(e, weight, labels), weight, groups) - true)
    assert -0.012 < np.mean(gaps) < 3 * np.std(gaps) / np.sqrt(len(gaps))


def test_a_weight_of_two_is_the_row_twice():
    own = np.random.default_rng(0)
    y, p, weight = own.normal(size=(20, 2)), own.normal(size=(20, 2)), own.integers(1, 4, 20)
    twice = np.repeat(np.arange(20), weight)
    once = held_out_r2(y, p, weight.astype(float))
    assert held_out_r2(y[twice], p[twice], np.ones(len(twice)), twice) == pytest.approx(once)
    assert held_out_r2(y, p, 7.0 * weight) == pytest.approx(once)


def test_many_rows_need_no_correction():
    own = np.random.default_rng(0)
    y = own.normal(size=(20_000, 1))
    p = y + own.normal(size=y.shape)
    assert held_out_r2(y, p, np.ones(20_000)) == pytest.approx(r2_score(y, p), abs=3e-4)


def test_what_cannot_be_corrected_is_plain():
    y = np.array([[1.0], [2.0], [4.0]])
    assert held_out_r2(y, y, np.ones(3)) == 1.0
    assert held_out_r2(np.ones((3, 1)), y, np.ones(3)) == r2_score(np.ones(3), y)
    one_group = held_out_r2(y, y - 1.0, np.ones(3), np.zeros(3, dtype=int))
    assert one_group == pytest.approx(r2_score(y, y - 1.0))


def test_one_outlier_that_is_predicted_well_does_not_run_away():
    y = np.r_[np.random.default_rng(0).normal(size=(30, 1)), [[1e4]]]
    p = np.r_[np.zeros((30, 1)), [[1e4 - 1.0]]]
    assert 0.9 < held_out_r2(y, p, np.ones(31)) <= 1.0


def test_a_score_that_is_asked_for_is_scikit_learns():
    own = np.random.default_rng(0)
    y, p = own.normal(size=(9, 1)), own.normal(size=(9, 1))
    judge = NumberScorer(y, np.zeros(1), np.ones(1), np.ones(9), True, "r2")
    assert judge.score(p, np.arange(9)) == pytest.approx(r2_score(y, p))
    judge = NumberScorer(y, np.zeros(1), np.ones(1), np.ones(9), True)
    assert judge.score(p, np.arange(9)) == held_out_r2(y, p, np.ones(9))
