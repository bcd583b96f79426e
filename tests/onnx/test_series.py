"""One step of NARX."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from tests.onnx.running import run

from lssvm import LSSVR, NARX, FixedSizeLSSVR
from lssvm._core.errors import InvalidInputError
from lssvm.onnx import to_onnx

T = np.arange(160)
SERIES = 5.0 + np.sin(0.3 * T) + 0.02 * T
INPUTS = np.column_stack([np.cos(0.1 * T), T % 7])
LAGS, BEGIN = 4, 120


@pytest.mark.parametrize("differencing", [0, 1, 2])
@pytest.mark.parametrize("exog_lags", [None, 0, 2])
def test_a_step_from_raw_values(differencing, exog_lags):
    model = NARX(LSSVR(C=10.0, gamma=0.1), LAGS, exog_lags or 0, differencing)
    u = None if exog_lags is None else INPUTS
    model.fit(SERIES[:BEGIN], None if u is None else u[:BEGIN])
    expected = model.predict(SERIES[BEGIN:], None if u is None else u[BEGIN:])
    times = range(BEGIN, len(T))
    feed = {"history": np.stack([SERIES[t - LAGS - differencing : t] for t in times])}
    if u is not None:
        feed["inputs"] = np.stack([u[t - exog_lags : t + 1] for t in times])
    found = run(model, feed)["prediction"]
    np.testing.assert_allclose(found[:, 0], expected, rtol=0, atol=1e-9)


def test_steps_one_after_the_other_are_the_forecast():
    model = NARX(FixedSizeLSSVR(30, C=10.0, gamma=0.1), LAGS).fit(SERIES[:BEGIN])
    past = list(SERIES[:BEGIN])
    for _ in range(3):
        (value,) = run(model, {"history": np.array([past[-LAGS:]])}).values()
        past.append(float(value[0, 0]))
    np.testing.assert_allclose(past[BEGIN:], model.forecast(3), rtol=0, atol=1e-9)


def test_an_estimator_of_another_library_is_refused():
    model = NARX(Ridge(), LAGS).fit(SERIES)
    with pytest.raises(InvalidInputError, match="Ridge"):
        to_onnx(model)


@pytest.mark.parametrize("option", [{"probabilities": True}, {"interval": 0.9}])
def test_a_step_is_a_number_alone(option):
    model = NARX(LSSVR(C=1.0, gamma=1.0), LAGS).fit(SERIES)
    with pytest.raises(InvalidInputError, match="NARX has no"):
        to_onnx(model, **option)
