"""Figures against scikit-learn's, intervals against what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from lssvm.report.measures import (
    bootstrap,
    class_measures,
    confusion,
    coverage_measures,
    number_measures,
    ranking_curves,
    wilson,
)
from lssvm.report.predictions import ClassPredictions, Intervals, NumberPredictions


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


def expected(found):
    y, p, w = found.labels, found.decided, found.weight
    q = len(found.classes)
    P = found.probability
    values = {
        "accuracy": metrics.accuracy_score(y, p, sample_weight=w),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, p, sample_weight=w),
        "mcc": metrics.matthews_corrcoef(y, p, sample_weight=w),
        "log_loss": metrics.log_loss(y, P, sample_weight=w),
    }
    if q == 2:
        return values | {
            "f1": metrics.f1_score(y, p, sample_weight=w),
            "roc_auc": metrics.roc_auc_score(y, P[:, 1], sample_weight=w),
            "average_precision": metrics.average_precision_score(y, P[:, 1], sample_weight=w),
            "brier": metrics.brier_score_loss(y, P[:, 1], sample_weight=w),
        }
    each = np.eye(q)[y]
    return values | {
        "f1": metrics.f1_score(y, p, average="macro", sample_weight=w),
        "roc_auc": metrics.roc_auc_score(each, P, sample_weight=w),
        "average_precision": metrics.average_precision_score(each, P, sample_weight=w),
        "brier": float(np.average(((P - each) ** 2).sum(axis=1), weights=w)),
    }


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("q", [2, 4])
def test_class_figures_are_those_of_scikit_learn(q, weighted):
    found = predictions(q, weighted)
    measures = {m.key: m for m in class_measures(found)}
    assert {key: m.value for key, m in measures.items()} == pytest.approx(expected(found))
    for m in measures.values():
        assert m.low < m.value < m.high
    assert measures["accuracy"].method == "Wilson"
    table = metrics.confusion_matrix(found.labels, found.decided, sample_weight=found.weight)
    np.testing.assert_allclose(confusion(found), table)


@pytest.mark.parametrize("weighted", [False, True])
def test_number_figures_are_those_of_scikit_learn(weighted):
    rng = np.random.default_rng(0)
    y = rng.normal(1e6, 2.0, size=200)
    f = y + rng.normal(0.3, 1.0, size=200)
    w = rng.uniform(0.5, 2.0, size=200) if weighted else None
    measures = {
        m.key: m for m in number_measures(NumberPredictions(y[:, None], f[:, None], w, ("y",)), 0)
    }
    values = {
        "rmse": metrics.root_mean_squared_error(y, f, sample_weight=w),
        "mae": metrics.mean_absolute_error(y, f, sample_weight=w),
        "r2": metrics.r2_score(y, f, sample_weight=w),
    }
    assert {k: measures[k].value for k in values} == pytest.approx(values)
    if not weighted:
        assert measures["median_absolute_error"].value == metrics.median_absolute_error(y, f)
    assert all(m.low < m.value < m.high for m in measures.values())


@pytest.mark.parametrize("weighted", [False, True])
def test_curves_are_those_of_scikit_learn(weighted):
    found = predictions(2, weighted)
    curves = ranking_curves(found, 1)
    score = found.probability[:, 1]
    x, y, _ = metrics.roc_curve(
        found.labels, score, sample_weight=found.weight, drop_intermediate=False
    )
    np.testing.assert_allclose(curves["roc"], (x, y))
    precision, recall, _ = metrics.precision_recall_curve(
        found.labels, score, sample_weight=found.weight
    )
    np.testing.assert_allclose(curves["precision"][0][1:], recall[-2::-1])
    np.testing.assert_allclose(curves["precision"][1][1:], precision[-2::-1])


def test_a_class_without_rows_has_no_curve_and_breaks_nothing():
    found = predictions(3)
    some = found.labels != 2
    parts = {
        name: getattr(found, name)[some] for name in ("labels", "decided", "probability", "scores")
    }
    left = ClassPredictions(found.classes, **parts, weight=None)
    assert ranking_curves(left, 2) is None
    assert all(np.isfinite(m.value) for m in class_measures(left))


def test_the_score_interval_is_wilsons():
    from scipy.stats import binomtest

    for hits, n in ((0, 10), (7, 10), (995, 1000)):
        ends = binomtest(hits, n).proportion_ci(method="wilson")
        assert wilson(hits, n) == pytest.approx((ends.low, ends.high))


def test_bootstrap_intervals_hold_the_mean_as_often_as_promised():
    rng = np.random.default_rng(0)
    inside = 0
    for seed in range(200):
        x = rng.normal(size=60)
        _, low, high = bootstrap({"m": lambda W, x=x: W @ x / W.sum(axis=1)}, 60, None, seed)["m"]
        inside += low <= 0.0 <= high
    assert 178 <= inside <= 199  # 95 % of 200, less three deviations, and the bias of 60 rows


def test_coverage_counts_the_rows_inside():
    Y = np.arange(10.0)[:, None]
    ends = np.stack([Y - 1.0, Y + 1.0], axis=-1)
    ends[:2, :, 1] -= 5.0
    ((promised, measure, width),) = coverage_measures([Intervals(0.9, ends, Y)], 0)
    assert (promised, measure.value, width) == (0.9, 0.8, 1.0)
    assert (measure.low, measure.high) == wilson(8, 10)
