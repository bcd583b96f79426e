"""Time series by a regressor on lagged values, tuned by free runs [Suykens2002, section 3.5]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb
from scipy.stats import t
from sklearn.base import clone

from lssvm._core.arrays import FloatArray, IntArray, check_magnitude, is_int
from lssvm._core.blocks import slices, small_problem
from lssvm._core.errors import InvalidInputError, not_usable
from lssvm._core.progress import Listener
from lssvm._core.random import RandomState, seed_of
from lssvm.backends.host import Host, host_of
from lssvm.fitting.dual import DualFit
from lssvm.fitting.record import Fit, Tuning, check_form
from lssvm.kernels import Kernel
from lssvm.kernels.factory import KernelChoice, KernelParameters, resolve_gamma
from lssvm.solvers import DualSystem
from lssvm.tuning.dual import C_range
from lssvm.tuning.free_running import (
    RUNAWAY,
    FittedRegressors,
    FreeRunObjective,
    Models,
    Noise,
    Predicts,
    Stretch,
    free_run,
    level_errors,
    stack_exog,
)
from lssvm.tuning.search import Search, Space, TuningResult
from lssvm.tuning.searches import PathSearch, check_C, check_option, make_search

Times = NDArray[np.datetime64]

_DAY = 86_400_000_000  # microseconds
_SEASONS = {  # steps of a season, by the step in microseconds
    _DAY: 7,
    3_600_000_000: 24,
    1_800_000_000: 48,
    900_000_000: 96,
    60_000_000: 60,
    7 * _DAY: 52,
}


@dataclass(frozen=True)
class Calendar:
    """When the last value of a series was, and how the next times follow.

    Attributes
    ----------
    last : int
        Microseconds since 1970-01-01.
    step : int
        Microseconds between two values; 0 where months or working days are counted.
    months : int
        Months between two values, or 0.
    day : int
        Day of the month, where months are counted; 31 is the last one.
    weekdays : bool
        Whether values are one working day (Monday to Friday) apart.
    framed : bool
        Whether the series was one of pandas, so that forecasts are too.
    name : str or None
        Of the series.
    """

    last: int
    step: int = 0
    months: int = 0
    day: int = 0
    weekdays: bool = False
    framed: bool = False
    name: str | None = None

    @classmethod
    def of(cls, times: Any, what: str) -> Calendar:
        """Return the calendar of some times."""
        when = read_times(times, what, ascending=True)
        if len(when) < 2:
            raise InvalidInputError(f"The times of {what} are fewer than two: give all of them.")
        ticks = when.astype(np.int64)
        gaps = np.diff(ticks)
        last = int(ticks[-1])
        # Two or three dates that are evenly spaced may be months all the same.
        if np.all(gaps == gaps[0]) and (len(when) >= 4 or _monthly(when, 0) is None):
            return cls(last, step=int(gaps[0]))
        calendar = _monthly(when, last) or _working_days(ticks, last)
        if calendar is None and np.all(gaps == gaps[0]):
            return cls(last, step=int(gaps[0]))
        if calendar is None:
            usual = int(np.median(gaps))
            i = int(np.flatnonzero(gaps != usual)[0]) + 1
            raise InvalidInputError(
                f"The times of {what} are not evenly spaced: between positions {i - 1} and {i} "
                f"({when[i].astype('datetime64[s]')}) lie {_span(int(gaps[i - 1]))}, mostly "
                f"{_span(usual)}. Fill the gaps, or give the values without times."
            )
        return calendar

    def following(self, steps: int) -> Times:
        """Return the next times, shape (steps,)."""
        return self.at(np.arange(1, steps + 1))

    def at(self, ahead: IntArray) -> Times:
        """Return the times so many steps after the last one, or before it where they are < 0."""
        last = np.int64(self.last).astype("datetime64[us]")
        if self.step:
            return np.asarray(last + (ahead * self.step).astype("timedelta64[us]"))
        date = last.astype("datetime64[D]")
        clock = last - date
        if self.weekdays:
            return np.asarray(np.busday_offset(date, ahead).astype("datetime64[us]") + clock)
        first = last.astype("datetime64[M]") + (ahead * self.months).astype("timedelta64[M]")
        days = (np.minimum(self.day, _length(first)) - 1).astype("timedelta64[D]")
        return np.asarray((first.astype("datetime64[D]") + days).astype("datetime64[us]") + clock)

    @property
    def season(self) -> int | None:
        """Steps of the season that such times suggest: a year of months, a week of days, ..."""
        if self.months:
            return 12 // self.months if 12 % self.months == 0 and self.months < 12 else None
        return 5 if self.weekdays else _SEASONS.get(self.step)


def read_times(times: Any, what: str, *, ascending: bool = False) -> Times:
    """Return times as datetime64 in microseconds, by the clock of their own zone."""
    values = times
    if getattr(values, "tz", None) is not None:  # of pandas
        values = values.tz_localize(None)
    if type(values).__name__ == "PeriodIndex":
        values = values.to_timestamp()
    try:
        when: Times = np.asarray(values).astype("datetime64[us]")
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"The times of {what} are not dates: {error}.") from error
    if when.ndim != 1 or np.isnat(when).any():
        raise InvalidInputError(
            f"The times of {what} have shape {when.shape} and {int(np.isnat(when).sum())} missing "
            "ones: give one time for each value."
        )
    late = np.flatnonzero(np.diff(when) <= np.timedelta64(0, "us"))
    if ascending and len(late):
        i = int(late[0]) + 1
        this, before = when[i].astype("datetime64[s]"), when[i - 1].astype("datetime64[s]")
        raise InvalidInputError(
            f"The times of {what} do not ascend: {this} at position {i} comes after {before}. "
            "Sort the series by time (sort_index), and drop duplicates."
        )
    return when


def index_times(y: Any) -> Any:
    """Return the times that a series or frame of pandas has as its index; None without any."""
    index = getattr(y, "index", None)
    return index if type(index).__name__ in ("DatetimeIndex", "PeriodIndex") else None


def _ascending_times(y: Any, what: str) -> Times | None:
    """Return the times that are the index of a series or frame, if any; they have to ascend."""
    index = index_times(y)
    return None if index is None else read_times(index, what, ascending=True)


def _days(when: Times) -> Any:
    return (when.astype("datetime64[D]") - when.astype("datetime64[M]")).astype(int) + 1


def _length(month: Times) -> Any:
    """Return the days of months."""
    after = (month + np.timedelta64(1, "M")).astype("datetime64[D]")
    return (after - month.astype("datetime64[D]")).astype(int)


def _monthly(when: Times, last: int) -> Calendar | None:
    months = np.diff(when.astype("datetime64[M]").astype(int))
    longest = _length(when.astype("datetime64[M]"))
    days, clock = _days(when), when - when.astype("datetime64[D]")
    if months[0] < 1 or np.any(months != months[0]) or np.any(clock != clock[0]):
        return None
    day = 31 if np.all(days == longest) else int(days.max())
    if not np.array_equal(days, np.minimum(day, longest)):
        return None
    return Calendar(last, months=int(months[0]), day=day)


def _working_days(ticks: NDArray[np.int64], last: int) -> Calendar | None:
    days, rest = np.divmod(ticks, _DAY)
    if np.any(rest != rest[0]):
        return None
    dates = days.astype("datetime64[D]")
    whole = np.all(np.is_busday(dates)) and np.all(np.busday_count(dates[:-1], dates[1:]) == 1)
    return Calendar(last, weekdays=True) if whole else None


def _span(microseconds: int) -> str:
    for unit, size in (("days", _DAY), ("hours", 3_600_000_000), ("seconds", 1_000_000)):
        if microseconds >= size:
            return f"{microseconds / size:g} {unit}"
    return f"{microseconds} microseconds"


LONGEST = 100
"""Steps of the free runs of tuning, where there are rows enough."""


@dataclass(frozen=True)
class Series:
    """A series of n values, and the exogenous inputs of the same times."""

    values: FloatArray  # (n,)
    inputs: FloatArray | None  # (n, d)

    def __len__(self) -> int:
        return len(self.values)

    def after(self, before: Series) -> Series:
        """Return this series with the values of another one in front."""
        inputs = None
        if self.inputs is not None and before.inputs is not None:
            inputs = np.concatenate([before.inputs, self.inputs])
        return Series(np.concatenate([before.values, self.values]), inputs)

    def at(self, times: slice) -> Series:
        """Return the values and inputs of some times."""
        return Series(self.values[times], None if self.inputs is None else self.inputs[times])


def is_list_of_series(y: Any) -> bool:
    """Say whether ``y`` is a list or tuple of series rather than one series."""
    return isinstance(y, (list, tuple)) and len(y) > 0 and all(np.ndim(one) > 0 for one in y)


def open_series(y: Any, X: Any, name: str = "y", inputs_name: str = "X") -> list[Series]:
    """Check one series or a list of them, with their inputs."""
    if not is_list_of_series(y):
        return [_one_series(y, X, name, inputs_name)]
    inputs = [None] * len(y) if X is None else X
    if not isinstance(inputs, (list, tuple)) or len(inputs) != len(y):
        count = f"{len(inputs)} of them" if isinstance(inputs, (list, tuple)) else "not a list"
        raise InvalidInputError(
            f"{name} is a list of {len(y)} series but {inputs_name} is {count}: give a list with "
            "one table of inputs per series."
        )
    return [
        _one_series(values, table, f"{name}[{i}]", f"{inputs_name}[{i}]")
        for i, (values, table) in enumerate(zip(y, inputs, strict=True))
    ]


def _one_series(y: Any, X: Any, name: str, inputs_name: str) -> Series:
    values, when = _numbers(y, name), _ascending_times(y, name)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or len(values) == 0:
        raise InvalidInputError(
            f"{name} has shape {values.shape}: give one series as a vector of shape (n,), several "
            "as a list of vectors. The series comes first, its exogenous inputs second: "
            "fit(y, X)."
        )
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InvalidInputError(
            f"{name} has a missing or infinite value ({values[bad]}) at position {bad}: fill it "
            "in, or cut the series there and give the pieces as a list of series."
        )
    check_magnitude(values, name, "divide the series by a constant")
    inputs = None if X is None else check_inputs(X, len(values), inputs_name, when)
    return Series(values, inputs)


def check_inputs(X: Any, n: int, name: str, when: Times | None = None) -> FloatArray:
    """Return exogenous inputs as a table of n rows, of the times of the series if both have any."""
    table = _numbers(X, name)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or table.shape[0] != n or table.shape[1] == 0:
        raise InvalidInputError(
            f"{name} has shape {np.shape(X)}: give a table of {n} rows, one for each time, and at "
            "least one column."
        )
    then = _ascending_times(X, name)
    if when is not None and then is not None and (when != then).any():
        i = int(np.argmax(when != then))
        raise InvalidInputError(
            f"The times of {name} are not those of its series: at position {i} {then[i]} in place "
            f"of {when[i]}. Give the rows of the same times ({name}.loc[series.index])."
        )
    if not np.isfinite(table).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(table))[0])
        raise InvalidInputError(
            f"{name} has a missing or infinite value ({table[row, column]}) in row {row}, column "
            f"{column}: fill it in, or leave the column out."
        )
    check_magnitude(table, name, "divide the inputs by a constant", small=True)
    return table


def check_lengths(series: Sequence[Series], lags: int, exog_lags: int, differencing: int) -> None:
    """Raise where series have different inputs, or are too short for two rows."""
    widths = {0 if s.inputs is None else s.inputs.shape[1] for s in series}
    if len(widths) > 1:
        raise InvalidInputError(
            f"The series have inputs of {sorted(widths)} columns: give all of them the same."
        )
    needed = max(lags + differencing, exog_lags if widths != {0} else 0) + 2
    for i, s in enumerate(series):
        if len(s) < needed:
            name = "y" if len(series) == 1 else f"y[{i}]"
            raise InvalidInputError(
                f"{name} has {len(s)} values, but lags={lags}, differencing={differencing} and "
                f"exog_lags={exog_lags} need at least {needed}: give a longer series, or fewer "
                "lags."
            )


def _numbers(values: Any, name: str) -> FloatArray:
    try:
        return np.array(values, dtype=np.float64)  # a copy: the model keeps the end of a series
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} is not an array of numbers: {error}") from error


@dataclass(frozen=True)
class Layout:
    """Which values make up the row of a time, and in which units.

    The row of time t holds the ``lags`` latest values before t, the newest first, differenced and
    standardised, then the inputs of the times t, t - 1, ..., t - ``exog_lags``, standardised.
    """

    lags: int
    exog_lags: int
    differencing: int
    mean: float = 0.0
    scale: float = 1.0
    inputs_mean: FloatArray | None = None
    inputs_scale: FloatArray | None = None

    @classmethod
    def learn(cls, series: Sequence[Series], lags: int, exog_lags: int, differencing: int) -> Self:
        """Return the layout whose units are those of the given series."""
        values = np.concatenate([np.diff(s.values, n=differencing) for s in series])
        mean, scale = _units(values)
        inputs = [s.inputs for s in series if s.inputs is not None]
        units = _units(np.concatenate(inputs)) if inputs else (None, None)
        return cls(lags, exog_lags, differencing, float(mean), float(scale), *units)

    @property
    def n_exog(self) -> int:
        """Columns of the inputs."""
        return 0 if self.inputs_mean is None else len(self.inputs_mean)

    @property
    def history(self) -> int:
        """How many values the row of the next time needs."""
        past = 0 if self.inputs_mean is None else self.exog_lags
        return max(self.lags + self.differencing, past)

    def standard(self, series: Series) -> FloatArray:
        """Return the differenced, standardised values, shape (n - differencing,)."""
        differences = np.diff(series.values, n=self.differencing)
        return np.asarray((differences - self.mean) / self.scale)

    def table(self, series: Series) -> tuple[FloatArray, FloatArray]:
        """Return the rows of all times that have enough history, and their targets."""
        start, n = self.history, len(series)
        z = self.standard(series)
        windows = np.lib.stride_tricks.sliding_window_view(z, self.lags)[:-1, ::-1]
        rows = windows[start - self.differencing - self.lags :]
        if series.inputs is not None:
            rows = np.concatenate([rows, self.exog(series.inputs, start, n)], axis=1)
        return np.ascontiguousarray(rows), z[start - self.differencing :]

    def exog(self, inputs: FloatArray, start: int, stop: int) -> FloatArray:
        """Return the columns that come from the inputs, for the times ``start`` to ``stop``."""
        u = (inputs - self.inputs_mean) / self.inputs_scale
        return np.concatenate(
            [u[start - lag : stop - lag] for lag in range(self.exog_lags + 1)], axis=1
        )

    def newest_first(self, series: Series) -> FloatArray:
        """Return the latest ``lags`` standardised values, the newest first."""
        return self.standard(series)[-self.lags :][::-1]

    def one_step_levels(self, predicted: FloatArray, series: Series) -> FloatArray:
        """Turn predictions of the last values of a series into its own units."""
        out = predicted * self.scale + self.mean
        n, m = len(series), len(predicted)
        for j in range(1, self.differencing + 1):
            before = series.values[n - m - j : n - j]
            out = out - (-1.0) ** j * comb(self.differencing, j) * before
        return np.asarray(out)

    def levels(self, runs: FloatArray, series: Series) -> FloatArray:
        """Turn free runs (..., steps) from the end of a series into its own units."""
        out = runs * self.scale + self.mean
        for k in reversed(range(self.differencing)):
            last = np.diff(series.values[-self.differencing :], n=k)[-1]
            out = last + np.cumsum(out, axis=-1)
        return np.asarray(out)


def _units(values: FloatArray) -> tuple[Any, Any]:
    """Return mean and standard deviation of each column, one where a column is constant."""
    mean, scale = values.mean(axis=0), values.std(axis=0)
    rounding = 8 * np.finfo(float).eps * np.abs(values).max(axis=0)
    return mean, np.where(scale > rounding, scale, 1.0)


@dataclass(frozen=True, eq=False)
class Plan:
    """The training rows of all series, one series after the other, and how they are held out."""

    rows: FloatArray  # (n, p)
    targets: FloatArray  # (n,)
    sizes: list[int]  # rows of each series
    layout: Layout
    horizon: int
    n_origins: int
    rolling: bool

    @classmethod
    def of(
        cls,
        series: Sequence[Series],
        layout: Layout,
        horizon: int | None,
        n_origins: int,
        rolling: bool,
    ) -> Plan:
        """Make the table of rows; without a horizon choose one."""
        tables, columns = zip(*(layout.table(s) for s in series), strict=True)
        rows, targets = np.concatenate(tables), np.concatenate(columns)
        sizes = [len(column) for column in columns]
        steps = min(LONGEST, max(1, max(sizes) // 5)) if horizon is None else int(horizon)
        return cls(rows, targets, sizes, layout, steps, n_origins, rolling)

    def places(self) -> list[tuple[slice, int]]:
        """Return the rows of each stretch, and where what it leaves out ends.

        Origins are spread evenly over all places where a stretch fits; in rolling-origin
        validation over the second half of each series.
        """
        steps, starts = self.horizon, np.cumsum([0, *self.sizes])
        # Rows whose lags reach into a stretch know it; they go too, while half of all rows remain.
        purge = min(self.layout.lags, max(0, len(self.targets) // 2 - steps))
        possible = [
            (slice(int(start + origin), int(start + origin + steps)), int(start + end))
            for start, size in zip(starts, self.sizes, strict=False)
            for origin in range(size // 2 if self.rolling else 0, size - steps + 1)
            for end in [size if self.rolling else min(size, origin + steps + purge)]
            if len(self.targets) - (end - origin) >= 2
        ]
        if not possible:
            raise InvalidInputError(
                f"horizon={steps} is too long to be validated: the longest series has "
                f"{max(self.sizes)} rows after its lags, and some must be left for training. Give "
                "a smaller horizon, fewer lags, or a longer series."
            )
        chosen = np.linspace(0, len(possible) - 1, self.n_origins).round().astype(int)
        return [possible[i] for i in np.unique(chosen)]

    def stretches(self) -> list[Stretch]:
        """Return the stretches that are held out."""
        lags = self.layout.lags
        return [
            Stretch(
                self.rows[place.start, :lags],
                self.targets[place],
                np.arange(place.start, end),
                self.rows[place, lags:] if self.rows.shape[1] > lags else None,
            )
            for place, end in self.places()
        ]

    def objective(
        self, kernel: Callable[[float | None], Kernel], bias: bool, host: Host
    ) -> FreeRunObjective:
        """Return the free-run loss of dual models with these kernels."""
        data = (self.rows, self.targets, self.stretches(), self.layout.differencing)
        return FreeRunObjective(kernel, *data, host.budget, host.threads, bias)


_LEAST = 0.3  # autocorrelation that a season has


def repeat_last(y: FloatArray, steps: int) -> FloatArray:
    """Return the last value again and again."""
    return np.full(steps, float(y[-1]))


def drift(y: FloatArray, steps: int) -> FloatArray:
    """Return the line through the first and the last value, continued."""
    slope = (float(y[-1]) - float(y[0])) / max(len(y) - 1, 1)
    return np.asarray(float(y[-1]) + slope * np.arange(1, steps + 1))


def seasonal_naive(y: FloatArray, steps: int, season: int) -> FloatArray:
    """Return the last season again and again."""
    return np.asarray(np.resize(y[-season:], steps), dtype=np.float64)


def find_season(y: FloatArray, longest: int | None = None) -> int | None:
    """Return the length of the season of a series; None where none stands out."""
    n = len(y)
    most = min(n // 3, n - 2) if longest is None else min(longest, n - 2)
    if most < 3:
        return None
    times = np.arange(n)
    rest = y - np.polyval(np.polyfit(times, y, 1), times)
    if float(np.ptp(rest)) <= 1e-9 * max(float(np.abs(y).max()), 1e-300):
        return None
    spectrum = np.abs(np.fft.rfft(rest, 2 * n)) ** 2
    raw = np.fft.irfft(spectrum)[: most + 2]
    correlation = raw / raw[0] * n / (n - np.arange(most + 2))
    peaks = [
        k
        for k in range(2, most + 1)
        if correlation[k] >= correlation[k - 1]
        and correlation[k] >= correlation[k + 1]
        and correlation[k] >= _LEAST
    ]
    if not peaks:
        return None
    best = max(correlation[k] for k in peaks)
    return next(k for k in peaks if correlation[k] >= best - 0.05)  # not one of its multiples


def baselines(y: FloatArray, steps: int, season: int | None) -> dict[str, FloatArray]:
    """Return the forecasts by name: "repeating the last value", "drift", and a season's."""
    made = {"repeating the last value": repeat_last(y, steps), "drift": drift(y, steps)}
    if season is not None and 1 < season <= len(y):
        made[f"repeating the last {season} values"] = seasonal_naive(y, steps, season)
    return made


VALIDATIONS = ("free-run", "rolling-origin", "one-step")


class Regressor(Predicts, Protocol):
    """The regressor inside: it predicts, and it is fitted."""

    def fit(self, X: FloatArray, y: FloatArray) -> Any:
        """Learn from rows (n, d) and targets (n,)."""


class DualRegressor(Regressor, KernelParameters, Protocol):
    """An LS-SVM in the dual: its solutions without some of the rows follow in closed form."""

    fit_intercept: bool
    memory_budget: Any
    n_jobs: int | None
    record_: DualFit

    def set_params(self, **parameters: Any) -> Any:
        """Set parameters by name."""


@dataclass(frozen=True, eq=False)
class SeriesSettings:
    """The settings of a time-series model: the parameters of `NARX`, checked.

    Attributes
    ----------
    regressor : Regressor
        Not fitted yet.
    dual : DualRegressor or None
        The same, where it is a dual model: free runs may choose its C and gamma.
    """

    regressor: Regressor
    dual: DualRegressor | None
    lags: int
    exog_lags: int
    differencing: int
    validation: str
    horizon: int | None
    n_origins: int
    search: Any
    n_paths: int
    random_state: RandomState

    def __post_init__(self) -> None:
        smallest = {"lags": 1, "exog_lags": 0, "differencing": 0, "n_origins": 1, "n_paths": 2}
        for name, least in smallest.items():
            check_count(name, getattr(self, name), least)
        if self.horizon is not None:
            check_count("horizon", self.horizon, 1)
        check_option("validation", self.validation, VALIDATIONS)


def check_count(name: str, value: Any, smallest: int) -> None:
    """Refuse what is no whole number of at least ``smallest``."""
    if not is_int(value) or value < smallest:
        raise not_usable(name, value, f"give a whole number >= {smallest}.")


# -- the record --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SeriesFit:
    """A fitted time-series model.

    Attributes
    ----------
    regressor : Regressor
        Fitted on the standardised rows.
    layout : Layout
        Which values make up a row, and in which units.
    ends : tuple of Series
        What the row of the next time needs of every training series.
    listed : bool
        Whether a list of series was given.
    horizon : int
        Steps of the free runs of validation.
    seed : int
    plan : Plan or None
        The training rows; None where they are not needed any more.
    tuning : Tuning or None
        Where free runs have chosen C or gamma.
    calibration : Calibration or None
        What intervals are computed from, once there was one.
    stored : str
        "all", or the form of the file that the model was loaded from.
    calendars : tuple of Calendar
        The times of the training series; empty where they have none.
    """

    regressor: Regressor
    layout: Layout
    ends: tuple[Series, ...]
    listed: bool
    horizon: int
    seed: int
    plan: Plan | None = None
    tuning: Tuning | None = None
    calibration: Calibration | None = None
    stored: str = "all"
    calendars: tuple[Calendar, ...] = ()

    @property
    def inner(self) -> Fit[Any] | None:
        """The record of a regressor of this package that takes features; None for others."""
        fit = getattr(self.regressor, "record_", None)
        return fit if isinstance(fit, Fit) and not fit.prepared else None

    @property
    def models(self) -> FittedRegressors:
        """The regressor, for any number of free runs side by side."""
        return FittedRegressors([self.regressor])

    def stripped(self, form: str) -> SeriesFit:
        """Return what a file of this form keeps, the regressor as it is."""
        if form == "all":
            return self
        calibration = None if form == "support" else self.calibration
        return replace(
            self,
            plan=self.plan if form == "prediction" and calibration is None else None,
            tuning=None if self.tuning is None else self.tuning.stripped(),
            calibration=calibration,
            stored=form,
        )

    def past(self, history: Any, X_history: Any) -> tuple[Series, ...]:
        """Return the series that are continued: those of the training, or the one given."""
        if history is None:
            if X_history is not None:
                raise InvalidInputError("X_history came without history: give both, or neither.")
            return self.ends
        dated = index_times(history) is not None
        values = history if dated else np.asarray(history)
        (past,) = open_series(values, X_history, "history", "X_history")
        self._check_width(past.inputs, "X_history")
        if len(past) < self.layout.history:
            raise InvalidInputError(
                f"history has {len(past)} values but the model looks back {self.layout.history}: "
                "give at least as many."
            )
        return (past,)

    def continued(
        self, y: Any, X: Any, history: Any = None, X_history: Any = None
    ) -> list[tuple[Series, Series]]:
        """Return pairs of a series and what follows it."""
        later, past = open_series(y, X), self.past(history, X_history)
        if len(later) != len(past):
            raise InvalidInputError(
                f"y has {len(later)} series but {len(past)} are to be continued: give a list with "
                "one continuation for each training series, or one series and its history."
            )
        for series in later:
            self._check_width(series.inputs, "X")
        return list(zip(past, later, strict=True))

    def future_inputs(
        self, X_future: Any, past: Sequence[Series], steps: int, listed: bool
    ) -> list[FloatArray | None]:
        """Check the inputs of the times that are forecast, one table for each series."""
        if X_future is None or self.layout.n_exog == 0:
            self._check_width(None if X_future is None else np.empty((0, 1)), "X_future")
            return [None] * len(past)
        tables = X_future if listed else [X_future]
        if not isinstance(tables, (list, tuple)) or len(tables) != len(past):
            raise InvalidInputError(
                f"X_future must be a list of {len(past)} tables, one for each training series."
            )
        inputs: list[FloatArray | None] = [check_inputs(t, steps, "X_future") for t in tables]
        for table in inputs:
            self._check_width(table, "X_future")
        return inputs

    def _check_width(self, inputs: FloatArray | None, name: str) -> None:
        width = 0 if inputs is None else inputs.shape[1]
        if width != self.layout.n_exog:
            raise InvalidInputError(
                f"{name} has {width} columns of inputs but the model was trained with "
                f"{self.layout.n_exog}: give the same columns as in fit."
            )

    def predict(self, past: Series, later: Series) -> FloatArray:
        """Predict each of some values from the true ones before it, shape (n,)."""
        whole = later.after(past)
        rows = self.layout.table(whole)[0][-len(later) :]
        raw = np.asarray(self.regressor.predict(rows)).reshape(len(rows))
        return self.layout.one_step_levels(raw, whole)

    def run(
        self, past: Sequence[Series], inputs: Sequence[FloatArray | None], steps: int
    ) -> FreeRun:
        """Run freely from the ends of some series, with the inputs of the times to come."""
        start = np.stack([self.layout.newest_first(series) for series in past])[:, None]
        columns = [
            self.layout.exog(np.concatenate([s.inputs, table]), len(s), len(s) + steps)
            for s, table in zip(past, inputs, strict=True)
            if s.inputs is not None and table is not None
        ]
        return FreeRun.of(self.models, start, np.stack(columns) if columns else None, steps)

    def levels(self, run: FreeRun, past: Sequence[Series]) -> FloatArray:
        """Return free runs in the units of the series that they continue, shape (m, steps)."""
        pairs = zip(run.values, past, strict=True)
        return np.stack([self.layout.levels(values, series) for values, series in pairs])

    def half_widths(self, run: FreeRun, coverage: float, n_paths: int) -> FloatArray:
        """Return half the widths of intervals around free runs, shape (m, steps)."""
        assert self.calibration is not None
        noise = self.calibration.residuals.noise([self.seed, 1])
        spread = run.spread(self.models, noise, n_paths, self.layout.differencing)
        return self.calibration.half_widths(spread, coverage) * self.layout.scale

    def score(self, pairs: Sequence[tuple[Series, Series]]) -> float:
        """Return R^2 of free runs of ``horizon`` steps through what follows some series."""
        errors, targets = [], []
        for past, later in pairs:
            for start in range(0, len(later), self.horizon):
                piece = later.at(slice(start, start + self.horizon))
                before = later.at(slice(0, start)).after(past)
                run = self.run([before], [piece.inputs], len(piece))
                errors.append(self.levels(run, [before])[0] - piece.values)
                targets.append(piece.values)
        values = np.concatenate(targets)
        lost = float((np.concatenate(errors) ** 2).sum())
        spread = float(((values - values.mean()) ** 2).sum())
        if spread == 0.0:
            return 1.0 if lost == 0.0 else 0.0  # as scikit-learn's r2_score
        return 1.0 - lost / spread


# -- the recipe --------------------------------------------------------------------------------


def fit_series(
    series: Sequence[Series], listed: bool, settings: SeriesSettings, callback: Listener
) -> SeriesFit:
    """Learn the next value from those before it [Suykens2002, section 3.5]."""
    check_lengths(series, settings.lags, settings.exog_lags, settings.differencing)
    layout = Layout.learn(series, settings.lags, settings.exog_lags, settings.differencing)
    rolling = settings.validation == "rolling-origin"
    plan = Plan.of(series, layout, settings.horizon, settings.n_origins, rolling)
    seed, tuning = seed_of(settings.random_state), None
    if settings.dual is not None and settings.validation != "one-step" and _is_open(settings.dual):
        search = PathSearch(n_C=13) if settings.search is None else make_search(settings.search)
        result = _tune(settings.dual, plan, search, seed, callback)
        tuning = Tuning.of([result], result.n_evaluations)
        settings.dual.set_params(C=result.C)
        if KernelChoice.of(settings.dual).tunes_gamma:
            settings.dual.set_params(gamma=result.gamma)
    settings.regressor.fit(plan.rows, plan.targets)
    ends = tuple(s.at(slice(len(s) - layout.history, None)) for s in series)
    return SeriesFit(settings.regressor, layout, ends, listed, plan.horizon, seed, plan, tuning)


def _is_open(dual: DualRegressor) -> bool:
    """Say whether C or gamma are to be chosen; a gamma per feature the model finds by itself."""
    choice = KernelChoice.of(dual)
    return not choice.uses_ard and (check_C(dual.C) is None or choice.tunes_gamma)


def _tune(
    dual: DualRegressor, plan: Plan, search: Search, seed: int, callback: Listener
) -> TuningResult:
    """Choose C and gamma by free runs through stretches that models have not seen."""
    choice = KernelChoice.of(dual)
    if choice.precomputed:
        raise InvalidInputError(
            "NARX cannot tune kernel='precomputed': the rows of a free run are made on the way. "
            "Name a kernel such as 'rbf'."
        )
    gamma = choice.fixed_gamma(plan.rows, None)

    def kernel(value: float | None) -> Kernel:
        return choice.at(value if gamma is None else gamma)

    space = Space(
        C=check_C(dual.C),
        tune_gamma=choice.tunes_gamma,
        gamma_start=float(resolve_gamma("scale", plan.rows)) if choice.tunes_gamma else 1.0,
        n_features=plan.rows.shape[1],
        C_range=C_range(DualSystem(kernel(None), plan.rows, plan.rows, 1.0)),
    )
    objective = plan.objective(kernel, bool(dual.fit_intercept), host_of(dual))
    with small_problem(len(plan.rows)):
        return search.run(objective, space, random_state=seed, on_event=callback.on_event)


def calibrate_intervals(fit: SeriesFit, dual: DualRegressor | None, n_paths: int) -> SeriesFit:
    """Return the record with what intervals rest on."""
    if fit.calibration is not None:
        return fit
    check_form(fit.stored, "prediction", "Forecast intervals")
    assert fit.plan is not None
    plan = replace(fit.plan, rolling=False)
    models = _refitted(fit.regressor, plan) if dual is None else _left_out(dual, plan)
    return replace(fit, calibration=calibrate(models, plan, n_paths, fit.seed))


def _left_out(dual: DualRegressor, plan: Plan) -> Models:
    """Return models of every stretch without the rows it leaves out [An2007]."""
    one, bias = dual.record_.expansion, bool(dual.fit_intercept)
    return plan.objective(lambda _: one.kernel, bias, host_of(dual)).at(None).models(one.C)


def _refitted(regressor: Regressor, plan: Plan) -> Models:
    """Return regressors that are fitted without the rows that each stretch leaves out."""
    kept = [np.delete(np.arange(len(plan.targets)), s.left_out) for s in plan.stretches()]
    fits = [clone(regressor).fit(plan.rows[rows], plan.targets[rows]) for rows in kept]
    return FittedRegressors(fits)


NEIGHBOURS = 5
WINDOW = 0.1  # ratios are pooled over this part of the horizon on either side of a step
_CHUNK = 4_000_000  # numbers in the largest temporary


@dataclass(frozen=True, eq=False)
class SeriesResiduals:
    """Out-of-sample one-step residuals, and the rows they belong to."""

    rows: FloatArray  # (k, d)
    values: FloatArray  # (k,)
    index: IntArray  # (k,), places among the training rows

    def noise(self, seed: list[int], left_out: list[IntArray] | None = None) -> Noise:
        """Return a function that draws the residual of a near row, see `free_run`.

        ``left_out`` names the training rows that each of the m models may not use; a model to
        which too few are left may use all.
        """
        rng = np.random.default_rng(seed)
        squares, k = (self.rows**2).sum(axis=1), min(NEIGHBOURS, len(self.values))
        barred = None
        if left_out is not None:
            barred = np.stack([np.isin(self.index, rows) for rows in left_out])
            barred[(~barred).sum(axis=1) < k] = False

        def draw(rows: FloatArray) -> FloatArray:
            m, p, d = rows.shape
            out = np.empty((m, p))
            rank = rng.integers(k, size=(m, p))
            for some in slices(m, max(1, _CHUNK // (p * len(squares)))):
                # Squared distances less what is the same for all rows.
                far = squares - 2.0 * (rows[some].reshape(-1, d) @ self.rows.T)
                far = far.reshape(-1, p, len(squares))
                if barred is not None:
                    far = np.where(barred[some, None], np.inf, far)
                near = np.argpartition(far, k - 1, axis=2)[:, :, :k]
                picked = np.take_along_axis(near, rank[some, :, None], axis=2)[:, :, 0]
                out[some] = self.values[picked]
            return out

        return draw


@dataclass(frozen=True, eq=False)
class Calibration:
    """What held-out stretches say about the size of errors."""

    residuals: SeriesResiduals
    mean_spread: FloatArray  # (horizon,)
    ratios: FloatArray  # (o, horizon), absolute error over unit

    def half_widths(self, spread: FloatArray, coverage: float) -> FloatArray:
        """Return half the widths k_h u_h of intervals for a simulated spread (m, steps)."""
        steps = spread.shape[1]
        units = np.sqrt(spread * self.mean_spread[self._step(steps)])
        return np.asarray(self.factors(coverage, steps) * units)

    def _step(self, steps: int) -> IntArray:
        """Return the calibrated step that stands for each step: the last one for all beyond."""
        return np.minimum(np.arange(steps), len(self.mean_spread) - 1)

    def factors(self, coverage: float, steps: int) -> FloatArray:
        """Return k_h for every step.

        Ratios of one stretch, and of stretches that overlap, go together: as many count as
        stretches of h steps have rows of their own, times the steps that are pooled over their
        design effect. Where these are too few for the coverage, Student's t for the root mean
        square ratio widens what the largest one gives.
        """
        n_stretches, horizon = self.ratios.shape
        reach = int(np.ceil(WINDOW * horizon)) if horizon > 1 else 0
        factors = np.empty(horizon)
        for h in range(horizon):
            pool = self.ratios[:, max(0, h - reach) : h + reach + 1]
            count = float(max(1, min(n_stretches, len(self.residuals.index) // (h + 1))))
            spread, width = float(pool.var()), pool.shape[1]
            effect = width * float(pool.mean(axis=1).var()) / spread if spread > 0 else width
            count *= width / min(max(effect, 1.0), width)
            level = coverage * (count + 1) / count
            factors[h] = np.quantile(pool, min(level, 1.0))
            if level > 1.0:
                root = float(np.sqrt((pool**2).mean()))
                factors[h] = max(factors[h], root * float(t.ppf((1.0 + coverage) / 2.0, count)))
        return np.asarray(factors[self._step(steps)])


@dataclass(frozen=True, eq=False)
class FreeRun:
    """Forecasts of m series on their own predictions, in units of the rows.

    Attributes
    ----------
    start : array of shape (m, 1, lags)
        Values before the first step, the newest first.
    exog : array of shape (m, steps, e) or None
        Columns that come from the inputs.
    values : array of shape (m, steps)
    """

    start: FloatArray
    exog: FloatArray | None
    values: FloatArray

    @classmethod
    def of(cls, models: Models, start: FloatArray, exog: FloatArray | None, steps: int) -> FreeRun:
        """Let models run from given values."""
        return cls(start, exog, free_run(models, start, steps, exog)[:, 0])

    @property
    def diverged(self) -> bool:
        """Whether it was held at its limit."""
        return bool(np.abs(self.values).max() >= RUNAWAY)

    def spread(self, models: Models, noise: Noise, n_paths: int, sums: int) -> FloatArray:
        """Return the root mean square deviation of noisy free runs from this one, (m, steps)."""
        starts, steps = np.repeat(self.start, n_paths, axis=1), self.values.shape[1]
        paths = free_run(models, starts, steps, self.exog, noise)
        deviations = level_errors(paths - self.values[:, None], sums)
        floor = np.finfo(float).eps * (1.0 + np.abs(self.values))
        return np.asarray(np.sqrt((deviations**2).mean(axis=1)) + floor)


def calibrate(models: Models, plan: Plan, n_paths: int, seed: int) -> Calibration:
    """Compare simulated spread and true errors on the stretches that are held out."""
    stretches, sums = plan.stretches(), plan.layout.differencing
    targets = np.stack([s.targets for s in stretches])
    places = [place for place, _ in plan.places()]
    errors = (targets - models(np.stack([plan.rows[place] for place in places]))).ravel()
    index, first = np.unique(
        np.concatenate([np.arange(place.start, place.stop) for place in places]), return_index=True
    )
    residuals = SeriesResiduals(plan.rows[index], errors[first], index)
    start = np.stack([s.history for s in stretches])[:, None]
    run = FreeRun.of(models, start, stack_exog(stretches), plan.horizon)
    noise = residuals.noise([seed, 0], [s.left_out for s in stretches])
    scale = run.spread(models, noise, n_paths, sums)
    mean = scale.mean(axis=0)
    ratios = np.abs(level_errors(run.values - targets, sums)) / np.sqrt(scale * mean)
    return Calibration(residuals, mean, ratios)
