"""Time series, the rows of lagged values they become, and the stretches that are held out.

First their times: how they follow each other, and which come next. Last the forecasts that anybody
can make, beside which a model has to stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.magnitudes import check_magnitude
from lssvm.fitting.record import Resources
from lssvm.kernels import Kernel
from lssvm.tuning.free_running import FreeRunObjective, Stretch

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

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting.series_data import Calendar
    >>> months = np.array(["2024-01-31", "2024-02-29", "2024-03-31"], dtype="datetime64[D]")
    >>> Calendar.of(months, "y").following(2).astype("datetime64[D]").tolist()
    [datetime.date(2024, 4, 30), datetime.date(2024, 5, 31)]
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
        """Return the calendar of some times.

        Raises
        ------
        InvalidInputError
            Where they are no times, do not ascend, or follow no rule.
        """
        when = read_times(times, what)
        if len(when) < 2:
            raise InvalidInputError(f"The times of {what} are fewer than two: give all of them.")
        ticks = when.astype(np.int64)
        gaps = np.diff(ticks)
        if np.any(gaps <= 0):
            i = int(np.flatnonzero(gaps <= 0)[0]) + 1
            this, before = when[i].astype("datetime64[s]"), when[i - 1].astype("datetime64[s]")
            raise InvalidInputError(
                f"The times of {what} do not ascend: {this} at position {i} comes after {before}. "
                "Sort the series by time, and leave out what is there twice."
            )
        last = int(ticks[-1])
        if np.all(gaps == gaps[0]) and not _is_monthly(when):
            return cls(last, step=int(gaps[0]))
        found = _monthly(when, last) or _working_days(ticks, last)
        if found is None and np.all(gaps == gaps[0]):
            return cls(last, step=int(gaps[0]))
        if found is None:
            usual = int(np.median(gaps))
            i = int(np.flatnonzero(gaps != usual)[0]) + 1
            raise InvalidInputError(
                f"The times of {what} are not evenly spaced: between positions {i - 1} and {i} "
                f"({when[i].astype('datetime64[s]')}) lie {_said(int(gaps[i - 1]))}, mostly "
                f"{_said(usual)}. Fill the gaps, or give the values without times."
            )
        return found

    def following(self, steps: int) -> Times:
        """Return the next times, shape (steps,)."""
        ahead = np.arange(1, steps + 1)
        last = np.int64(self.last).astype("datetime64[us]")
        if self.step:
            return np.asarray(last + (ahead * self.step).astype("timedelta64[us]"))
        date = last.astype("datetime64[D]")
        clock = last - date
        if self.weekdays:
            return np.asarray(np.busday_offset(date, ahead).astype("datetime64[us]") + clock)
        first = last.astype("datetime64[M]") + ahead * self.months
        longest = ((first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")).astype(int)
        days = np.minimum(self.day, longest) - 1
        return np.asarray((first.astype("datetime64[D]") + days).astype("datetime64[us]") + clock)

    @property
    def season(self) -> int | None:
        """Steps of the season that such times suggest: a year of months, a week of days, ..."""
        if self.months:
            return 12 // self.months if 12 % self.months == 0 and self.months < 12 else None
        return 5 if self.weekdays else _SEASONS.get(self.step)


def read_times(times: Any, what: str) -> Times:
    """Return times as datetime64 in microseconds, by the clock of their own zone."""
    values = times
    if getattr(values, "tz", None) is not None:  # of pandas
        values = values.tz_localize(None)
    if type(values).__name__ == "PeriodIndex":
        values = values.to_timestamp()
    try:
        when: Times = np.asarray(values).astype("datetime64[us]")
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"The times of {what} are no dates: {error}.") from error
    if when.ndim != 1 or np.isnat(when).any():
        raise InvalidInputError(
            f"The times of {what} have shape {when.shape} and {int(np.isnat(when).sum())} missing "
            "ones: give one time for each value."
        )
    return when


def index_times(y: Any) -> Any:
    """Return the times that a series of pandas has as its index; None where it has none."""
    index = getattr(y, "index", None)
    dated = type(index).__name__ in ("DatetimeIndex", "PeriodIndex")
    return index if dated and getattr(y, "ndim", 1) == 1 else None


def _days(when: Times) -> Any:
    return (when.astype("datetime64[D]") - when.astype("datetime64[M]")).astype(int) + 1


def _is_monthly(when: Times) -> bool:
    """Say whether dates that are evenly spaced are months all the same, such as two of them."""
    return len(when) < 4 and _monthly(when, 0) is not None


def _monthly(when: Times, last: int) -> Calendar | None:
    months = np.diff(when.astype("datetime64[M]").astype(int))
    first = when.astype("datetime64[M]")
    longest = ((first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")).astype(int)
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


def _said(microseconds: int) -> str:
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
        inputs = None if self.inputs is None else self.inputs[times]
        return Series(self.values[times], inputs)


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
    values = _numbers(y, name)
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
    return Series(values, None if X is None else check_inputs(X, len(values), inputs_name))


def check_inputs(X: Any, n: int, name: str) -> FloatArray:
    """Return exogenous inputs as a table of n rows."""
    table = _numbers(X, name)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or table.shape[0] != n or table.shape[1] == 0:
        raise InvalidInputError(
            f"{name} has shape {np.shape(X)}: give a table of {n} rows, one for each time, and at "
            "least one column."
        )
    if not np.isfinite(table).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(table))[0])
        raise InvalidInputError(
            f"{name} has a missing or infinite value ({table[row, column]}) in row {row}, column "
            f"{column}: fill it in, or leave the column out."
        )
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
        self, kernel: Callable[[float | None], Kernel], bias: bool, resources: Resources
    ) -> FreeRunObjective:
        """Return the free-run loss of dual models with these kernels."""
        data = (self.rows, self.targets, self.stretches(), self.layout.differencing)
        return FreeRunObjective(kernel, *data, resources.budget, resources.threads, bias)


_LEAST = 0.3  # autocorrelation that a season has


def repeat_last(y: FloatArray, steps: int) -> FloatArray:
    """Return the last value again and again.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting.series_data import drift, repeat_last, seasonal_naive
    >>> y = np.array([1.0, 5.0, 2.0, 6.0, 3.0, 7.0])
    >>> repeat_last(y, 2), drift(y, 2).round(1), seasonal_naive(y, 3, 2)
    (array([7., 7.]), array([8.2, 9.4]), array([3., 7., 3.]))
    """
    return np.full(steps, float(y[-1]))


def drift(y: FloatArray, steps: int) -> FloatArray:
    """Return the line through the first and the last value, continued."""
    slope = (float(y[-1]) - float(y[0])) / max(len(y) - 1, 1)
    return np.asarray(float(y[-1]) + slope * np.arange(1, steps + 1))


def seasonal_naive(y: FloatArray, steps: int, season: int) -> FloatArray:
    """Return the last season again and again."""
    return np.asarray(np.resize(y[-season:], steps), dtype=np.float64)


def find_season(y: FloatArray, longest: int | None = None) -> int | None:
    """Return the length of the season of a series; None where none stands out.

    Parameters
    ----------
    y : array of shape (n,)
    longest : int, optional
        In steps; by default a third of the series.

    Notes
    -----
    The lag, from 2 on, with the largest autocorrelation of the series without its line, where that
    is a peak of at least 0.3. O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting.series_data import find_season
    >>> find_season(np.sin(2 * np.pi * np.arange(120) / 12) + 0.01 * np.arange(120))
    12
    """
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
    found = raw / raw[0] * n / (n - np.arange(most + 2))
    peaks = [
        k
        for k in range(2, most + 1)
        if found[k] >= found[k - 1] and found[k] >= found[k + 1] and found[k] >= _LEAST
    ]
    if not peaks:
        return None
    best = max(found[k] for k in peaks)
    return next(k for k in peaks if found[k] >= best - 0.05)  # not one of its multiples


def baselines(y: FloatArray, steps: int, season: int | None) -> dict[str, FloatArray]:
    """Return the forecasts by name: "repeating the last value", "drift", and a season's.

    Parameters
    ----------
    y : array of shape (n,)
    steps : int
    season : int or None
        Steps of a season; None: there is none.
    """
    made = {"repeating the last value": repeat_last(y, steps), "drift": drift(y, steps)}
    if season is not None and 1 < season <= len(y):
        made[f"repeating the last {season} values"] = seasonal_naive(y, steps, season)
    return made
