"""Free runs of a forecasting model through values it has not seen, beside simple rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t
from sklearn.base import clone
from sklearn.linear_model import RidgeCV

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.estimators import NARX
from lssvm.recipes.series_data import Series, is_list_of_series, open_series

RUNS = 20  # free runs that errors come from
INTERVAL_RUNS = 6
COVERAGES = (0.5, 0.8, 0.9, 0.95)
SIZES = 6  # points of the learning curve
SHORTEST = 5  # steps of a run, at least
SEASON = 0.3  # autocorrelation from which on a season is believed


@dataclass(frozen=True, eq=False)
class Runs:
    """Forecasts from several origins beside what came.

    Attributes
    ----------
    origins : int array of shape (r,)
        Values of the tested part before each run.
    truth, forecast : arrays of shape (r, h)
    """

    origins: Any
    truth: FloatArray
    forecast: FloatArray

    @property
    def errors(self) -> FloatArray:
        """True minus forecast, shape (r, h)."""
        return self.truth - self.forecast


def read_series(data: Any) -> Series:
    """Return the one series of a report: y, or a pair (y, X) of it and its inputs."""
    y, X = data, None
    if isinstance(data, tuple) and len(data) == 2 and np.ndim(data[0]) > 0:
        y, X = data
    if is_list_of_series(y) and len(y) > 1:
        raise InvalidInputError(
            f"A report of a forecast is about one series, but {len(y)} came: write one for each."
        )
    (found,) = open_series(y, X)
    return found


def same_model(model: NARX) -> NARX:
    """Return an unfitted copy with the parameters that tuning has found."""
    copy = clone(model)
    inner: Any = model.estimator_
    params = inner.get_params(deep=False)
    fixed = clone(inner)
    chosen = {key: getattr(inner, f"{key}_", None) for key in ("C", "gamma")}
    known = {k: v for k, v in chosen.items() if k in params and v is not None}
    known = {k: float(v) if np.size(v) == 1 else v for k, v in known.items()}
    copy.set_params(estimator=fixed.set_params(**known), search=None)
    return copy


def fit_same(model: NARX, past: Series) -> NARX:
    """Return a copy with the same parameters, fitted to another series."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say was said when the model was fitted
        return same_model(model).fit(past.values, past.inputs)


def origins_of(n: int, horizon: int) -> tuple[Any, int]:
    """Return where runs through n values begin, and their length."""
    h = max(1, min(horizon, n // 2 if n >= 2 * SHORTEST else n))
    step = max(1, -(-(n - h) // (RUNS - 1)))
    return np.arange(0, n - h + 1, step), h


def free_runs(model: NARX, past: Series, test: Series, horizon: int) -> Runs:
    """Run a model freely from several origins of the tested part."""
    origins, h = origins_of(len(test), horizon)
    made = [_forecast(model, past, test, int(o), h) for o in origins]
    truth = np.stack([test.values[o : o + h] for o in origins])
    return Runs(origins, truth, np.stack(made))


def _forecast(model: NARX, past: Series, test: Series, origin: int, h: int, **more: Any) -> Any:
    before = test.at(slice(0, origin)).after(past) if origin else past
    future = None if test.inputs is None else test.inputs[origin : origin + h]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run that diverges shows in its errors
        return model.forecast(h, future, history=before.values, X_history=before.inputs, **more)


def interval_runs(model: NARX, past: Series, test: Series, horizon: int) -> dict[float, Any]:
    """Return for several coverages which values were inside, (r, h), and the mean width."""
    origins, h = origins_of(len(test), horizon)
    some = origins[np.unique(np.linspace(0, len(origins) - 1, INTERVAL_RUNS).round().astype(int))]
    found = {}
    for coverage in COVERAGES:
        inside, width = [], []
        for origin in some:
            asked = {"return_interval": True, "coverage": coverage}
            _, ends = _forecast(model, past, test, int(origin), h, **asked)
            truth = test.values[origin : origin + h]
            inside.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
            width.append(float((ends[:, 1] - ends[:, 0]).mean()))
        found[coverage] = (np.array(inside), float(np.mean(width)))
    return found


def find_season(values: FloatArray, most: int) -> int:
    """Return the lag at which a series repeats itself, 1 where it does not.

    The first peak of the autocorrelation of the series without its straight line.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.series_runs import find_season
    >>> find_season(np.sin(2 * np.pi * np.arange(120) / 12), 50)
    12
    """
    n = len(values)
    x = values - np.polyval(np.polyfit(np.arange(n), values, 1), np.arange(n))
    if not x @ x > 0:
        return 1
    shift = range(1, min(most, n // 2) + 1)
    r = np.array([1.0, *[float(x[k:] @ x[:-k] / (x @ x)) for k in shift]])
    peaks = [
        k for k in range(2, len(r) - 1) if r[k] > SEASON and r[k] >= r[k - 1] and r[k] >= r[k + 1]
    ]
    return max(peaks, key=lambda k: r[k]) if peaks else 1


def simple_rules(season: int) -> dict[str, Callable[[FloatArray, int], FloatArray]]:
    """Return rules that continue a series: from its values and the steps to the forecast."""

    def last(y: FloatArray, h: int) -> FloatArray:
        return np.full(h, y[-1])

    def drift(y: FloatArray, h: int) -> FloatArray:
        return np.asarray(y[-1] + (y[-1] - y[0]) / max(len(y) - 1, 1) * np.arange(1, h + 1))

    def seasonal(y: FloatArray, h: int) -> FloatArray:
        return np.resize(y[-season:], h)

    rules: dict[str, Callable[[FloatArray, int], FloatArray]]
    rules = {"repeating the last value": last, "going on in a straight line": drift}
    return rules | ({f"repeating the last {season} values": seasonal} if season > 1 else {})


def compared_runs(model: NARX, past: Series, test: Series, horizon: int) -> dict[str, Runs]:
    """Return the runs of simple rules and of a linear model of the same lags."""
    origins, h = origins_of(len(test), horizon)
    truth = np.stack([test.values[o : o + h] for o in origins])
    known = [np.concatenate([past.values, test.values[:o]]) for o in origins]
    season = find_season(past.values, max(2 * model.lags, 60))
    found = {
        name: Runs(origins, truth, np.stack([rule(y, h) for y in known]))
        for name, rule in simple_rules(season).items()
    }
    linear = NARX(
        RidgeCV(np.logspace(-6, 3, 10)),
        lags=model.lags,
        exog_lags=model.exog_lags,
        differencing=model.differencing,
        horizon=model.horizon_,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        linear.fit(past.values, past.inputs)
    found["linear autoregression (ridge)"] = free_runs(linear, past, test, horizon)
    return found


def mean_with_interval(values: FloatArray) -> tuple[float, float, float]:
    """Return the mean over runs (r,) with its 95 % interval by Student's t; NaN ends for one."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return mean, float("nan"), float("nan")
    half = float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def series_curve(model: NARX, past: Series, test: Series, horizon: int) -> tuple[Any, FloatArray]:
    """Return lengths of the past, and mean absolute errors of runs (sizes, r) of models of them."""
    least = model.lags + model.differencing + max(20, model.lags)
    if len(past) < 2 * least:
        return np.empty(0, dtype=int), np.empty((0, 0))
    sizes = np.unique(np.geomspace(least, len(past), SIZES).round().astype(int))
    errors = []
    for size in sizes:
        part = past.at(slice(len(past) - int(size), None))
        runs = free_runs(fit_same(model, part), part, test, horizon)
        errors.append(np.abs(runs.errors).mean(axis=1))
    return sizes, np.array(errors)
