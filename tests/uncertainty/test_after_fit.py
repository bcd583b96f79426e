"""Error bars belong to the fit: neither the caller's arrays nor later parameters change them."""

import numpy as np
import pytest

from lssvm import LSSVR, NARX, FixedSizeLSSVC, FixedSizeLSSVR, scan
from lssvm._core.errors import InvalidInputError, NumericalWarning

rng = np.random.default_rng(0)
X, new = rng.normal(size=(60, 3)), rng.normal(size=(7, 3))
y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)


@pytest.mark.parametrize("Model", [LSSVR, FixedSizeLSSVR])
def test_arrays_of_the_caller_may_change(Model):
    rows, targets = X.copy(), y.copy()
    model = Model(C=10.0, gamma=0.5).fit(rows, targets)
    rows[:], targets[:] = 0.0, 9.0
    same = Model(C=10.0, gamma=0.5).fit(X, y)
    np.testing.assert_array_equal(model.predict_interval(new), same.predict_interval(new))
    np.testing.assert_array_equal(
        model.predict(new, return_std=True)[1], same.predict(new, return_std=True)[1]
    )


def test_a_series_of_the_caller_may_change():
    series = np.sin(0.3 * np.arange(80)) + 0.05 * rng.normal(size=80)
    given = series.copy()
    model = NARX(LSSVR(C=10.0, gamma=0.1), lags=5, random_state=0).fit(given)
    given[:] = 0.0
    same = NARX(LSSVR(C=10.0, gamma=0.1), lags=5, random_state=0).fit(series)
    for mine, its in zip(
        model.forecast(4, return_interval=True),
        same.forecast(4, return_interval=True),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("Model", [LSSVR, FixedSizeLSSVR])
def test_the_loss_of_the_fit_counts(Model):
    robust = Model(C=10.0, gamma=0.5, loss="huber").fit(X, y).set_params(loss="squared")
    with pytest.raises(InvalidInputError, match="loss='huber' has no Gaussian posterior"):
        robust.predict(new, return_std=True)
    squared = Model(C=10.0, gamma=0.5).fit(X, y)
    usual = squared.predict_interval(new)
    squared = Model(C=10.0, gamma=0.5).fit(X, y).set_params(loss="huber")
    np.testing.assert_array_equal(squared.predict_interval(new), usual)


def test_the_reduction_of_the_fit_counts():
    reduced = LSSVR(C=10.0, gamma=0.5, reduction="prune").fit(X, y).set_params(reduction=None)
    with pytest.raises(InvalidInputError, match="reduction='prune' has replaced"):
        reduced.predict_interval(new)


def test_rows_added_under_squares_bring_the_error_bars_back():
    model = FixedSizeLSSVR(C=10.0, gamma=0.5, loss="huber").fit(X[:40], y[:40])
    model.set_params(loss="squared").partial_fit(X[40:], y[40:])
    assert np.isfinite(model.predict_interval(new)).all()


@pytest.mark.parametrize("tuned", [False, True])
def test_added_rows_calibrate_too(tuned):
    rng = np.random.default_rng(3)
    rows, later = rng.normal(size=(400, 2)), rng.normal(size=(300, 2))
    noise = np.where(np.arange(400) < 100, 0.05, 1.0) * rng.normal(size=400)
    targets = np.sin(rows[:, 0]) + noise
    options = {} if tuned else {"C": 1.0, "gamma": 0.3}
    model = FixedSizeLSSVR(20, random_state=0, **options).fit(rows[:100], targets[:100])
    model.partial_fit(rows[100:], targets[100:])
    truth = np.sin(later[:, 0]) + rng.normal(size=300)
    low, high = model.predict_interval(later, 0.9).T
    assert np.mean((low <= truth) & (truth <= high)) > 0.75  # 0.06 by the first rows alone

    labels = np.where(rows[:, 0] > 0, "p", "n")
    labels[100:] = np.where(rng.random(300) < 0.35, labels[100:][::-1], labels[100:])
    model = FixedSizeLSSVC(20, random_state=0, **options).fit(rows[:100], labels[:100])
    before = model.predict_proba(later).max(axis=1).mean()
    model.partial_fit(rows[100:], labels[100:])
    probability = model.predict_proba(later)
    assert probability.max(axis=1).mean() < before - 0.05
    np.testing.assert_array_equal(model.classes_[probability.argmax(1)], model.predict(later))


def test_rows_added_from_a_scan_that_do_not_calibrate_are_told():
    rows = np.linspace(-2.0, 2.0, 120)[:, None]
    targets = np.sin(rows[:, 0])
    model = FixedSizeLSSVR(10, C=10.0, gamma=0.5).fit(rows[::2], targets[::2])
    model.partial_fit(scan(rows[1::2], target=targets[1::2]))
    with pytest.warns(NumericalWarning, match="do not calibrate"):
        ends = model.predict_interval(rows)
    assert np.isfinite(ends).all()
