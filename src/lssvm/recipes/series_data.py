"""Time series, the rows of lagged values they become, and the stretches that are held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import comb

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.magnitudes import check_magnitude
from lssvm.criteria.free_running import FreeRunObjective, Stretch
from lssvm.kernels import Kernel
from lssvm.recipes.record import Resources

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
    def learn(
        cls, series: Sequence[Series], lags: int, exog_lags: int, differencing: int
    ) -> Layout:
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
