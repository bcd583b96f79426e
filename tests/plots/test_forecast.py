from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from lssvm import NARX
from lssvm._core.errors import InvalidInputError, MissingDependencyError
from lssvm.plots import ForecastDisplay

Y = np.sin(0.3 * np.arange(80)) + 0.1 * np.random.default_rng(0).standard_normal(80)


@pytest.fixture
def model():
    return NARX(LinearRegression(), lags=3, n_origins=4).fit(Y[:60])


def labels(display):
    return [text.get_text() for text in display.legend_.get_texts()]


def test_truth_is_solid_and_the_forecast_dashed_as_in_print(model):
    display = ForecastDisplay.from_estimator(model, y=Y[60:], coverage=None)
    steps, values = display.forecast_line_.get_data()
    np.testing.assert_array_equal(steps, np.arange(1, 21))
    np.testing.assert_array_equal(values, model.forecast(20))
    assert display.forecast_line_.get_linestyle() == "--"
    assert display.truth_line_.get_linestyle() == "-"
    np.testing.assert_array_equal(display.truth_line_.get_ydata(), Y[60:])
    assert display.band_ is None and display.past_line_ is None
    assert labels(display) == ["truth", "forecast"]
    assert display.figure_ is display.ax_.figure


def test_the_band_is_the_interval(model):
    display = ForecastDisplay.from_estimator(model, steps=10, coverage=0.8)
    _, ends = model.forecast(10, return_interval=True, coverage=0.8)
    drawn = display.band_.get_paths()[0].vertices
    for step, (low, high) in enumerate(ends, start=1):
        heights = drawn[drawn[:, 0] == step, 1]
        np.testing.assert_allclose([heights.min(), heights.max()], [low, high])
    assert labels(display) == ["forecast", "80 % interval"]


def test_the_past_ends_at_step_zero_and_meets_the_truth():
    display = ForecastDisplay([1.0, 2.0], truth=[5.0], past=[3.0, 4.0]).plot()
    np.testing.assert_array_equal(display.past_line_.get_data(), [[-1, 0], [3.0, 4.0]])
    np.testing.assert_array_equal(display.truth_line_.get_data(), [[0, 1], [4.0, 5.0]])


def test_inputs_history_and_axes_are_passed_on():
    X = np.arange(80.0)[:, None] % 4
    model = NARX(LinearRegression(), lags=3).fit([Y[:30], Y[30:60]], [X[:30], X[30:60]])
    given = {"history": Y[:40], "X_history": X[:40]}
    first = ForecastDisplay.from_estimator(model, X[40:45], coverage=None, **given)
    np.testing.assert_array_equal(first.forecast, model.forecast(5, X[40:45], **given))
    second = ForecastDisplay(first.forecast).plot(first.ax_)
    assert second.ax_ is first.ax_
    with pytest.raises(InvalidInputError, match="trained on 2 series"):
        ForecastDisplay.from_estimator(model, [X[:5], X[:5]], steps=5, coverage=None)


@pytest.mark.parametrize("values", [[], [[1.0]], [1.0, np.nan]])
@pytest.mark.parametrize("name", ["forecast", "truth", "past"])
def test_values_that_are_no_series_are_refused(name, values):
    given = {"forecast": [1.0], name: values}
    with pytest.raises(InvalidInputError, match=f"{name} has shape"):
        ForecastDisplay(given.pop("forecast"), **given)


def test_how_far_to_forecast_has_to_be_said(model):
    with pytest.raises(InvalidInputError, match="Give steps="):
        ForecastDisplay.from_estimator(model)
    with pytest.raises(InvalidInputError, match="has no forecast"):
        ForecastDisplay.from_estimator(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]), steps=3)


def test_an_interval_of_another_length_is_refused():
    with pytest.raises(InvalidInputError, match="for a forecast of 2 steps"):
        ForecastDisplay([1.0, 2.0], interval=[[0.0, 1.0]])


def test_without_matplotlib_the_extra_is_named(without_matplotlib):
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[plots\]'"):
        ForecastDisplay([1.0]).plot()
