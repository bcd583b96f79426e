"""Whether the parts of a time-series model fit together."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm.estimators import LSSVR, FixedSizeLSSVR, GreedyLSSVR
from lssvm.estimators.narx_fitting import Plan
from lssvm.estimators.narx_intervals import Calibration, SeriesResiduals
from lssvm.estimators.narx_series import Layout, Series
from lssvm.io.need import floats, instance, is_number, is_whole, need, wholes

_MOST = 10**6  # paths, origins, steps: what a later call would loop over


def check_series(model: Any, fitted: dict[str, Any]) -> None:
    """Raise a `ModelFileError` where the parts of a `NARX` do not fit together."""
    needed = ("estimator_", "horizon_", "n_series_", "n_exog_", "_listed", "_layout", "_ends")
    for name in (*needed, "_seed"):
        need(name in fitted, f"{name} is missing")
    for name in ("n_paths", "n_origins"):
        value = getattr(model, name)
        need(is_whole(value) and 1 <= value <= _MOST, f"{name} is {value!r}")
    need(model.n_paths >= 2, "n_paths is below 2")
    for name in ("horizon_", "n_series_"):
        need(is_whole(fitted[name]) and 1 <= fitted[name] <= _MOST, f"{name} is no number")
    for name in ("n_exog_", "_seed"):
        need(is_whole(fitted[name]) and 0 <= fitted[name] < 2**63, f"{name} is no number")
    need(type(fitted["_listed"]) is bool, "_listed is no answer")
    regressors = (LSSVR, FixedSizeLSSVR, GreedyLSSVR)
    need(model.estimator is None or isinstance(model.estimator, regressors), "no regressor")
    inner = instance(fitted["estimator_"], regressors, "estimator_")
    need(
        hasattr(inner, "dual_coef_") and inner.dual_coef_.shape[1] == 1, "estimator_ is not fitted"
    )
    layout, exog = fitted["_layout"], fitted["n_exog_"]
    width = _check_layout(layout, exog)
    need(
        inner.n_features_in_ == width and not hasattr(inner, "preparation_"), "the lags do not fit"
    )
    ends = instance(fitted["_ends"], list, "_ends")
    need(len(ends) == fitted["n_series_"], "the ends of the series do not fit")
    need(fitted["_listed"] or len(ends) == 1, "the ends of the series do not fit")
    for end in ends:
        instance(end, Series, "the end of a series")
        floats(end.values, (layout.history,), "the end of a series")
        need((end.inputs is None) == (exog == 0), "the inputs of a series do not fit")
        if end.inputs is not None:
            floats(end.inputs, (layout.history, exog), "the inputs of a series")
    if "_plan" in fitted:
        _check_plan(fitted["_plan"], layout, fitted["horizon_"], width)
    if "_calibration" in fitted:
        _check_calibration(fitted["_calibration"], width)


def _check_layout(layout: Any, exog: int) -> int:
    """Check the units of the series; return the number of columns of a row."""
    instance(layout, Layout, "_layout")
    counts = (layout.lags, layout.exog_lags, layout.differencing)
    need(all(is_whole(n) and 0 <= n <= _MOST for n in counts) and layout.lags >= 1, "lags are none")
    need(is_number(layout.mean) and is_number(layout.scale) and layout.scale > 0, "no units")
    for name in ("inputs_mean", "inputs_scale"):
        value = getattr(layout, name)
        need((value is None) == (exog == 0), "the units of the inputs do not fit")
        if value is not None:
            floats(value, (exog,), "the units of the inputs")
    if exog:
        need(np.all(layout.inputs_scale > 0), "the units of the inputs are not positive")
    return int(layout.lags + exog * (layout.exog_lags + 1))


def _check_plan(plan: Any, layout: Any, horizon: int, width: int) -> None:
    instance(plan, Plan, "_plan")
    n = len(floats(plan.rows, (None, width), "the rows of the series"))
    floats(plan.targets, (n,), "the targets of the series")
    need(isinstance(plan.sizes, list) and all(map(is_whole, plan.sizes)), "sizes are no numbers")
    need(min(plan.sizes, default=-1) >= 0 and sum(plan.sizes) == n, "sizes do not fit")
    same = all(getattr(plan.layout, a) == getattr(layout, a) for a in ("lags", "exog_lags"))
    need(isinstance(plan.layout, Layout) and same, "the plan has other lags")
    need(plan.layout.differencing == layout.differencing, "the plan has other differences")
    need(is_whole(plan.horizon) and plan.horizon == horizon, "the plan has another horizon")
    need(is_whole(plan.n_origins) and 1 <= plan.n_origins <= _MOST, "the plan has no origins")
    need(type(plan.rolling) is bool, "the plan does not say how it rolls")


def _check_calibration(found: Any, width: int) -> None:
    instance(found, Calibration, "_calibration")
    residuals = instance(found.residuals, SeriesResiduals, "the residuals")
    n = len(floats(residuals.values, (None,), "the residuals"))
    need(n >= 1, "there are no residuals")
    floats(residuals.rows, (n, width), "the rows of the residuals")
    wholes(residuals.index, (n,), "the places of the residuals", 0)
    horizon = len(floats(found.mean_spread, (None,), "the spread"))
    ratios = floats(found.ratios, (None, horizon), "the ratios")
    need(horizon >= 1 and len(ratios) >= 1, "there are no ratios")
