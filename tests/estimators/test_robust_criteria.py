"""Robust losses with weights of zero, with criteria without folds, and with folds by position."""

import numpy as np
import pytest

from lssvm import FixedSizeLSSVR, scan
from lssvm.estimators import opening as scan_opening
from lssvm.tuning import GridSearch, PositionFolds, PositionHoldout

LOSSES = ["huber", "absolute", "weighted"]
GRID = GridSearch(C=[0.1, 10.0], gamma=[0.5])


def rows(n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)
    y[::17] += 8.0  # outliers
    weight = rng.integers(0, 3, n).astype(float)
    return X, y, weight


def fitted(X, y, weight, from_scan, **options):
    model = FixedSizeLSSVR(12, search=GRID, random_state=0, **options)
    if from_scan:
        return model.fit(scan(X, target=y, weight=weight, prepare=False))
    return model.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("cv", [PositionFolds(3), PositionHoldout(0.3), 0.25], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("where", ["array", "sample", "scan"])
def test_rows_of_weight_zero_are_as_if_they_were_not_there(loss, cv, where, monkeypatch):
    X, y, weight = rows(240 if where != "scan" else 1600)
    if where == "scan":  # more rows than are kept of the first pass
        monkeypatch.setattr(scan_opening, "SAMPLE_ROWS", 1000)
    models = []
    for other in (0.0, 1e4):  # whatever stands in such rows
        Y = np.where(weight == 0, other, y)
        models.append(fitted(X, Y, weight, where != "array", loss=loss, cv=cv))
    one, two = models
    assert (one.C_, one.gamma_) == (two.C_, two.gamma_)
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-7, atol=1e-9)
    assert np.median(np.abs(one.predict(X) - np.sin(2 * X[:, 0]))) < 0.3


@pytest.mark.parametrize("scoring", ["gcv", "evidence", "press"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_robust_losses_go_with_criteria_without_folds(loss, scoring, weighted):
    X, y, weight = rows()
    options = {"scoring": scoring, "search": GRID, "random_state": 0}
    given = weight if weighted else None
    robust = FixedSizeLSSVR(12, loss=loss, **options).fit(X, y, sample_weight=given)
    squared = FixedSizeLSSVR(12, **options).fit(X, y, sample_weight=given)
    truth = np.sin(2 * X[:, 0])
    errors = [np.median(np.abs(m.predict(X) - truth)) for m in (robust, squared)]
    assert errors[0] < 0.6 * errors[1]  # eight standard deviations of outliers pull the squared one
