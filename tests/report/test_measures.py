"""Figures against their definitions in plain NumPy, intervals against what they promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lssvm.report.measures import (
    NUMBER_METRICS,
    ClassPredictions,
    Intervals,
    NumberPredictions,
    calibration_bins,
    class_measures,
    class_table,
    confusion,
    coverage_measures,
    jackknife,
    metric_values,
    number_measures,
    proportion_interval,
    ranking_curves,
)


def predictions(q, weighted=False, n=300):
    rng = np.random.default_rng(q)
    labels = rng.integers(q, size=n)
    P = rng.dirichlet(np.ones(q), size=n) + 0.6 * np.eye(q)[labels]
    P = np.round(P, 1) + 0.05  # with ties
    P /= P.sum(axis=1, keepdims=True)
    weight = rng.uniform(0.5, 2.0, size=n) if weighted else None
    scores = np.column_stack([-P[:, 1], P[:, 1]]) if q == 2 else P
    classes = np.array([f"c{i}" for i in range(q)])
    return ClassPredictions(classes, labels, P.argmax(axis=1), P, scores, weight)


def area(truth, score, w):
    """Return how often a row of the class is ranked above another one, ties by half."""
    above = (score[truth][:, None] > score[~truth]) + 0.5 * (score[truth][:, None] == score[~truth])
    return (w[truth] @ above @ w[~truth]) / (w[truth].sum() * w[~truth].sum())


def average_precision(truth, score, w):
    """Return the sum of precision times gain of recall over the different scores."""
    total, before = 0.0, 0.0
    for s in np.unique(score)[::-1]:
        said = score >= s
        recall = w[said & truth].sum() / w[truth].sum()
        total += (recall - before) * w[said & truth].sum() / w[said].sum()
        before = recall
    return total


def expected(found):
    y, p, q, P = found.labels, found.predicted, len(found.classes), found.probability
    w = np.ones(len(y)) if found.weight is None else found.weight
    table = np.array([[w[(y == i) & (p == j)].sum() for j in range(q)] for i in range(q)])
    true, said, right, all_ = table.sum(1), table.sum(0), np.diag(table), table.sum()
    f1 = 2 * right / (true + said)
    root = np.sqrt((all_**2 - (said**2).sum()) * (all_**2 - (true**2).sum()))
    squares = ((P - np.eye(q)[y]) ** 2).sum(axis=1)
    c = found.positive
    ranked = [c] if q == 2 else range(q)
    recall, precision = right / true, right / said
    return {
        "accuracy": right.sum() / all_,
        "balanced_accuracy": recall.mean(),
        "recall": recall[c] if q == 2 else recall.mean(),
        "precision": precision[c] if q == 2 else precision.mean(),
        "f1": f1[c] if q == 2 else f1.mean(),
        "mcc": (right.sum() * all_ - true @ said) / root,
        "log_loss": np.average(-np.log(P[np.arange(len(y)), y]), weights=w),
        "brier": np.average(squares, weights=w) / (2 if q == 2 else 1),
        "roc_auc": np.mean([area(y == c, P[:, c], w) for c in ranked]),
        "average_precision": np.mean([average_precision(y == c, P[:, c], w) for c in ranked]),
    }, table


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("q", "positive"), [(2, 1), (2, 0), (4, 1)])
def test_class_metrics_are_what_their_names_say(q, positive, weighted):
    found = replace(predictions(q, weighted), positive=positive)
    measures = {m.key: m for m in class_measures(found)}
    values, table = expected(found)
    assert {key: m.value for key, m in measures.items()} == pytest.approx(values)
    for m in measures.values():
        assert m.low < m.value < m.high
    assert measures["accuracy"].method == "Wilson"
    np.testing.assert_allclose(confusion(found), table)
    for c, entry in enumerate(class_table(found)):
        assert entry["recall"] == pytest.approx(table[c, c] / table[c].sum())
        assert entry["precision"] == pytest.approx(table[c, c] / table[:, c].sum())
        assert entry["recall_interval"][0] < entry["recall"] < entry["recall_interval"][1]


@pytest.mark.parametrize("weighted", [False, True])
def test_number_figures_are_what_their_names_say(weighted):
    rng = np.random.default_rng(0)
    y = rng.normal(1e6, 2.0, size=200)
    f = y + rng.normal(0.3, 1.0, size=200)
    w = rng.uniform(0.5, 2.0, size=200) if weighted else None
    found = NumberPredictions(y[:, None], f[:, None], w, ("y",))
    measures = {m.key: m for m in number_measures(found, 0)}
    error = f - y
    spread = np.average((y - np.average(y, weights=w)) ** 2, weights=w)
    values = {
        "rmse": np.sqrt(np.average(error**2, weights=w)),
        "mae": np.average(np.abs(error), weights=w),
        "r2": 1.0 - np.average(error**2, weights=w) / spread,
    }
    assert {k: measures[k].value for k in values} == pytest.approx(values)
    if not weighted:
        assert measures["median_absolute_error"].value == np.median(np.abs(error))
    assert all(m.low < m.value < m.high for m in measures.values())


@pytest.mark.parametrize("weighted", [False, True])
def test_curves_pass_through_every_threshold(weighted):
    found = predictions(2, weighted)
    curves = ranking_curves(found, 1)
    truth, score = found.labels == 1, found.probability[:, 1]
    w = np.ones(len(score)) if found.weight is None else found.weight
    assert curves["auc"] == pytest.approx(area(truth, score, w))
    assert curves["average_precision"] == pytest.approx(average_precision(truth, score, w))
    assert curves["share"] == pytest.approx(w[truth].sum() / w.sum())
    for s in np.unique(score):
        said = score >= s
        recall = w[said & truth].sum() / w[truth].sum()
        false = w[said & ~truth].sum() / w[~truth].sum()
        x, y = curves["roc"]  # corners may be left out, not what lies on the line
        assert np.min(np.hypot(x - false, y - recall)) < 1e-9 or np.isclose(
            np.interp(false, x, y), recall
        )
        at = np.flatnonzero(np.isclose(curves["precision"][0], recall))
        precision = w[said & truth].sum() / w[said].sum()
        assert np.min(np.abs(curves["precision"][1][at] - precision)) < 1e-9


def test_a_class_without_rows_has_no_curve_and_breaks_nothing():
    found = predictions(3)
    left = found.take(np.flatnonzero(found.labels != 2))
    assert ranking_curves(left, 2) is None
    assert all(np.isfinite(m.value) for m in class_measures(left))
    assert class_table(left)[2]["recall"] is None
    alone = found.take(np.flatnonzero(found.labels == 1))
    keys = {m.key for m in class_measures(alone)}
    assert "accuracy" in keys and not keys & {"roc_auc", "average_precision"}


def test_the_interval_of_a_share_is_wilsons():
    from scipy.stats import binomtest

    for hits, n in ((0, 10), (7, 10), (995, 1000)):
        ends = binomtest(hits, n).proportion_ci(method="wilson")
        expected = (hits / n, ends.low, ends.high)
        assert proportion_interval(np.arange(n) < hits) == pytest.approx(expected)
    share, *ends = proportion_interval([])
    assert np.isnan(share) and ends == [0.0, 1.0]


def test_weighted_shares_have_the_interval_of_the_effective_number_of_rows():
    hits = np.arange(40) < 30
    equal = proportion_interval(hits)
    assert proportion_interval(hits, np.full(40, 7.0)) == pytest.approx(equal)  # units say nothing
    w = np.where(np.arange(40) % 4 == 0, 9.0, 1.0)
    share, low, high = proportion_interval(hits, w)
    assert share == pytest.approx(w[hits].sum() / w.sum())
    rows = w.sum() ** 2 / (w**2).sum()
    assert rows < 18
    # Wilson's ends solve (p - share)^2 = z^2 p (1 - p) / rows.
    for end in (low, high):
        spread = 1.959963984540054**2 * end * (1 - end) / rows
        assert (end - share) ** 2 == pytest.approx(spread)
    nothing = np.where(hits, 1.0, 0.0)  # rows of no weight are no rows
    assert proportion_interval(hits, nothing) == pytest.approx(proportion_interval(hits[:30]))


def test_jackknife_intervals_hold_the_value_as_often_as_promised():
    rng = np.random.default_rng(0)
    table = {"mae": NUMBER_METRICS["mae"]}
    inside = 0
    for seed in range(100):
        error = rng.exponential(size=(80, 1))
        found = NumberPredictions(np.zeros((80, 1)), error, None, ("y",))
        (mae,) = jackknife(table, found, 20, seed)
        inside += mae.low <= 1.0 <= mae.high
    assert 86 <= inside <= 99  # 95 % of 100, less three deviations and the skew of 80 rows


def test_the_jackknife_of_single_rows_is_the_standard_error_of_a_mean():
    from scipy.stats import t

    error = np.random.default_rng(1).normal(size=(30, 1))
    found = NumberPredictions(np.zeros((30, 1)), error, None, ("y",))
    (mae,) = jackknife({"mae": NUMBER_METRICS["mae"]}, found, 30)
    half = t.ppf(0.975, 29) * np.abs(error).std(ddof=1) / np.sqrt(30)
    assert (mae.low, mae.high) == pytest.approx((mae.value - half, mae.value + half))
    assert metric_values(NUMBER_METRICS, found)["mae"] == mae.value == np.abs(error).mean()


def test_coverage_counts_the_weight_of_the_rows_inside():
    Y = np.arange(10.0)[:, None]
    ends = np.stack([Y - 1.0, Y + 1.0], axis=-1)
    ends[:2, :, 1] -= 5.0
    ((promised, measure, width),) = coverage_measures([Intervals(0.9, ends, Y)], 0)
    assert (promised, measure.value, width) == (0.9, 0.8, 1.0)
    assert (measure.value, measure.low, measure.high) == proportion_interval(np.arange(10) < 8)
    w = np.where(np.arange(10) < 2, 3.0, 1.0)
    ((_, measure, _),) = coverage_measures([Intervals(0.9, ends, Y, w)], 0)
    assert measure.value == pytest.approx(8 / 14)


def test_groups_of_a_calibration_curve_hold_all_rows():
    rng = np.random.default_rng(0)
    p = np.round(rng.uniform(size=400), 2)
    hit = rng.uniform(size=400) < p
    mean, share, sizes = calibration_bins(p, hit)
    assert len(mean) == len(share) == len(sizes) == 10
    assert sizes.sum() == 400
    assert mean @ sizes / 400 == pytest.approx(p.mean())
    assert share @ sizes / 400 == pytest.approx(hit.mean())
    assert np.abs(mean - share).max() < 0.25
