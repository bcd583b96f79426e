"""How one raw column becomes numbers: frozen records, each with a pure function of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.preparation.tables import RawColumn

HALF = float(np.sqrt(0.5))
"""Half the distance of two levels that share one column: they are sqrt(2) apart."""


class Encoding(Protocol):
    """Turns a raw column into features."""

    way: ClassVar[str]

    @property
    def width(self) -> int:
        """Number of features."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What the name of each feature has behind the name of the column."""

    def encode(self, column: RawColumn, out: FloatArray) -> None:
        """Write the features of a column into ``out``, shape (n, width)."""


@dataclass(frozen=True, eq=False)
class NumberEncoding:
    """Numbers, standardised or as normal scores, and whether they were missing.

    Attributes
    ----------
    fill : float
        What stands for a missing number.
    mean, scale : float
        A feature is (f(x) - mean) / scale, where f interpolates linearly between ``grid`` and
        ``scores`` and is constant outside them; without a grid, f(x) = x.
    grid, scores : arrays of shape (g,)
        Ascending numbers and their normal scores; empty for standardised numbers.
    indicator : float
        Half the distance between "there" and "missing" in a second feature; 0: no such feature.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.preparation import NumberEncoding, read_table
    >>> age = NumberEncoding(40.0, 40.0, 10.0, np.empty(0), np.empty(0), 0.0)
    >>> out = np.empty((3, 1))
    >>> age.encode(read_table({"age": [30, 40, None]}).columns[0], out)
    >>> out.ravel().tolist()
    [-1.0, 0.0, 0.0]
    """

    fill: float
    mean: float
    scale: float
    grid: FloatArray
    scores: FloatArray
    indicator: float
    way: ClassVar[str] = "number"

    @property
    def width(self) -> int:
        """Number of features, 1 or 2."""
        return 1 + (self.indicator > 0)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of the number, and of the feature that says whether it was missing."""
        return ("", "=(missing)")[: self.width]

    def encode(self, column: RawColumn, out: FloatArray) -> None:
        """Write the features of a column into ``out``, shape (n, width).

        Parameters
        ----------
        column : RawColumn
            Numbers.
        out : array of shape (n, width)
            Overwritten.
        """
        self.encode_values(column.values, out)

    def encode_values(self, x: FloatArray, out: FloatArray) -> None:
        """Write the features of numbers, NaN where missing, into ``out``.

        Parameters
        ----------
        x : array of shape (n,)
            Numbers.
        out : array of shape (n, width)
            Overwritten.
        """
        missing = np.isnan(x)
        if missing.any():
            x = np.where(missing, self.fill, x)
        if len(self.grid):
            x = np.interp(x, self.grid, self.scores)
        x = x - self.mean
        x /= self.scale
        out[:, 0] = x
        if self.indicator > 0:
            out[:, 1] = np.where(missing, self.indicator, -self.indicator)


@dataclass(frozen=True, eq=False)
class LevelEncoding:
    """Levels looked up in a table: indicators, two sides of one feature, or encoded targets.

    Attributes
    ----------
    levels : tuple of str
        The strings that training met.
    values : array of shape (len(levels), width)
        The features of each level.
    missing, unseen : arrays of shape (width,)
        Those of a missing value, and of a level that is not in the table.
    suffixes : tuple of str
        Ends of the names of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.preparation import LevelEncoding, read_table
    >>> names = ("=cook", "=smith", "=tailor")
    >>> jobs = LevelEncoding(("cook", "smith", "tailor"), np.eye(3), *np.zeros((2, 3)), names)
    >>> out = np.empty((2, 3))
    >>> jobs.encode(read_table({"job": ["smith", "pilot"]}).columns[0], out)
    >>> out.tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """

    levels: tuple[str, ...]
    values: FloatArray
    missing: FloatArray
    unseen: FloatArray
    suffixes: tuple[str, ...]
    way: ClassVar[str] = "levels"

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.suffixes)

    def positions(self, column: RawColumn) -> IntArray:
        """Return for every row its place among the levels; -1: missing, -2: not among them.

        Parameters
        ----------
        column : RawColumn
            A category.
        """
        if column.kind in ("boolean", "empty"):  # their values are 0, 1 and NaN
            return np.where(np.isnan(column.values), -1, column.values).astype(np.intp)
        place = {level: i for i, level in enumerate(self.levels)}
        table = [place.get(level, -2) for level in column.levels]
        return np.asarray(np.array([*table, -1], dtype=np.intp)[column.values])

    def encode(self, column: RawColumn, out: FloatArray) -> None:
        """Write the features of a column into ``out``, shape (n, width).

        Parameters
        ----------
        column : RawColumn
            A category.
        out : array of shape (n, width)
            Overwritten.
        """
        table = np.vstack([self.values, self.unseen, self.missing])  # found from the end
        out[:] = table[self.positions(column)]


CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}
"""The cycles of dates and their lengths in days."""

EPOCH = np.datetime64("1970-01-01T00:00:00", "us")


def days(moments: NDArray[np.datetime64]) -> FloatArray:
    """Return the days since 1970 of dates, NaN where missing.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.preparation.encodings import days
    >>> days(np.array(["1970-01-02T12:00"], "datetime64[us]")).tolist()
    [1.5]
    """
    return np.asarray((moments - EPOCH) / np.timedelta64(1, "D"), dtype=np.float64)


def phase(moments: NDArray[np.datetime64], cycle: str) -> FloatArray:
    """Return where in its year, week or day each moment is, as a share from 0 to 1.

    The year goes by days (the 1st of January is 0 in every year), the week by whole days from
    Monday on, the day by the clock.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.preparation.encodings import phase
    >>> when = np.array(["2024-01-02T06:00"], "datetime64[us]")  # a Tuesday
    >>> [round(float(phase(when, cycle)[0]), 4) for cycle in ("year", "week", "day")]
    [0.0027, 0.1429, 0.25]
    """
    day = moments.astype("datetime64[D]")
    if cycle == "year":
        first = moments.astype("datetime64[Y]")
        begin = first.astype("datetime64[D]")
        length = (first + 1).astype("datetime64[D]") - begin
        return np.asarray((day - begin) / length, dtype=np.float64)
    if cycle == "week":
        numbers = np.asarray((day - np.datetime64("1970-01-05", "D")) / np.timedelta64(1, "D"))
        return np.asarray(np.mod(numbers, 7.0) / 7.0, dtype=np.float64)
    return np.asarray((moments - day) / np.timedelta64(1, "D"), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class DateEncoding:
    """Dates as a position in days and as points on the circles of year, week and day.

    Attributes
    ----------
    position : NumberEncoding
        Of the days since 1970.
    cycles : tuple of str
        Those of `CYCLES` that are used; a missing date is in the middle of the circle.
    zone : str or None
        By whose clock dates are read.
    order : str
        The order of day, month and year where training had text, "" where it had dates.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.preparation import DateEncoding, NumberEncoding, read_table
    >>> position = NumberEncoding(19000.0, 19000.0, 100.0, np.empty(0), np.empty(0), 0.0)
    >>> DateEncoding(position, ("week",), None, "").suffixes
    ('', ':week_sin', ':week_cos')
    """

    position: NumberEncoding
    cycles: tuple[str, ...]
    zone: str | None
    order: str
    way: ClassVar[str] = "date"

    @property
    def width(self) -> int:
        """Number of features."""
        return self.position.width + 2 * len(self.cycles)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of the position (and whether it was missing), then sine and cosine of every cycle."""
        waves = [f":{cycle}_{wave}" for cycle in self.cycles for wave in ("sin", "cos")]
        return (*self.position.suffixes, *waves)

    def encode(self, column: RawColumn, out: FloatArray) -> None:
        """Write the features of a column into ``out``, shape (n, width).

        Parameters
        ----------
        column : RawColumn
            Dates, or text of them.
        out : array of shape (n, width)
            Overwritten.
        """
        moments = column.values
        if column.kind == "empty":
            moments = np.full(len(column), np.datetime64("NaT", "us"))
        at = self.position.width
        self.position.encode_values(days(moments), out[:, :at])
        missing = np.isnat(moments)
        for cycle in self.cycles:
            angle = 2.0 * np.pi * phase(moments, cycle)
            out[:, at] = np.where(missing, 0.0, np.sin(angle))
            out[:, at + 1] = np.where(missing, 0.0, np.cos(angle))
            at += 2
