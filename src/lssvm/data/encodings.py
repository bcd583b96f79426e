"""How one raw column becomes numbers: frozen records, and how they are learned from a column."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from lssvm._core.arrays import LARGEST, AnyArray, BoolArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.data.columns import RawColumn, is_missing
from lssvm.data.dates import ORDERS, parse_dates

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
    >>> from lssvm.data.columns import read_table
    >>> from lssvm.data.encodings import NumberEncoding
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
        """Of the number, and of the feature that marks missing values."""
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
        with np.errstate(over="ignore"):  # halves: differences of the largest numbers are numbers
            x = (0.5 * x - 0.5 * self.mean) / (0.5 * self.scale)
        out[:, 0] = np.clip(x, -LARGEST, LARGEST)
        if self.indicator > 0:
            out[:, 1] = np.where(missing, self.indicator, -self.indicator)


@dataclass(frozen=True, eq=False)
class ValueEncoding:
    """Numbers, and the mean targets of the rows that share a value.

    Attributes
    ----------
    number : NumberEncoding
        Its features come first.
    values : array of shape (g,)
        The numbers of training, ascending.
    effects : array of shape (g, k)
        The encoded targets of their rows; between two numbers they are interpolated, beyond the
        ends they are constant.
    unknown : array of shape (k,)
        Those of missing numbers.
    endings : tuple of str
        Ends of the names of the k features.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.columns import read_table
    >>> from lssvm.data.encodings import NumberEncoding, ValueEncoding
    >>> age = NumberEncoding(40.0, 40.0, 10.0, np.empty(0), np.empty(0), 0.0)
    >>> values, effects = np.array([30.0, 40.0]), np.array([[1.0], [-1.0]])
    >>> known = ValueEncoding(age, values, effects, np.zeros(1), (":target",))
    >>> out = np.empty((3, 2))
    >>> known.encode(read_table({"age": [30, 35, None]}).columns[0], out)
    >>> out.tolist()
    [[-1.0, 1.0], [-0.5, 0.0], [0.0, 0.0]]
    """

    number: NumberEncoding
    values: FloatArray
    effects: FloatArray
    unknown: FloatArray
    endings: tuple[str, ...]
    way: ClassVar[str] = "value"

    @property
    def width(self) -> int:
        """Number of features."""
        return self.number.width + len(self.endings)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Those of the number, then of the encoded targets."""
        return (*self.number.suffixes, *self.endings)

    def encode(self, column: RawColumn, out: FloatArray) -> None:
        """Write the features of a column into ``out``, shape (n, width).

        Parameters
        ----------
        column : RawColumn
            Numbers.
        out : array of shape (n, width)
            Overwritten.
        """
        at = self.number.width
        self.number.encode(column, out[:, :at])
        missing = np.isnan(column.values)
        for j, effect in enumerate(self.effects.T):
            there = np.interp(column.values, self.values, effect)
            out[:, at + j] = np.where(missing, self.unknown[j], there)


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
    >>> from lssvm.data.columns import read_table
    >>> from lssvm.data.encodings import LevelEncoding
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
    def n_kept(self) -> int:
        """How many levels have features of their own."""
        width = self.width if self.width > 1 else 2
        return width - any(suffix == "=(rare)" for suffix in self.suffixes)

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.suffixes)

    @staticmethod
    def _place(level: str, place: dict[str, int]) -> int:
        """Return the place of a level; 1 is also 1.0: missing values turn integers into floats."""
        whole = level.removesuffix(".0")
        number = level not in place and whole.lstrip("-").isdigit()
        other = f"{level}.0" if whole == level else whole
        return place.get(other if number else level, -2)

    def place_of(self, level: str) -> int:
        """Return the place of a level; -2: it is not among them."""
        return self._place(level, {known: i for i, known in enumerate(self.levels)})

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
        table = [self._place(level, place) for level in column.levels]
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
    >>> from lssvm.data.encodings import days
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
    >>> from lssvm.data.encodings import phase
    >>> when = np.array(["2024-01-02T06:00"], "datetime64[us]")  # a Tuesday
    >>> [round(float(phase(when, cycle)[0]), 4) for cycle in ("year", "week", "day")]
    [0.0027, 0.1429, 0.25]
    """
    day = moments.astype("datetime64[D]")
    if cycle == "year":
        first = moments.astype("datetime64[Y]")
        begin = first.astype("datetime64[D]")
        length = (first + np.timedelta64(1, "Y")).astype("datetime64[D]") - begin
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
    >>> from lssvm.data.columns import read_table
    >>> from lssvm.data.encodings import DateEncoding, NumberEncoding
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


# -- numbers ----------------------------------------------------------------------------------

CLIP = 3.0
"""Normal scores are no larger than this."""

GRID = 1000
"""Steps of the normal scores between -CLIP and CLIP; numbers in between are interpolated."""

ROUNDING = 1e-12
"""Numbers that differ by less than this share of their size count as equal."""


@dataclass(frozen=True, eq=False)
class Distinct:
    """The different numbers of a column, ascending, with their weights."""

    values: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, x: FloatArray, weight: FloatArray | None) -> Distinct:
        """Sort numbers without missing ones; O(n log n) time."""
        if weight is None:
            ordered = np.sort(x)
        else:
            order = np.argsort(x, kind="stable")
            ordered = x[order]
        first = np.flatnonzero(np.concatenate([[len(x) > 0], ordered[1:] != ordered[:-1]]))
        if weight is None:
            sums = (np.concatenate([first[1:], [len(x)]]) - first).astype(np.float64)
        else:
            sums = np.add.reduceat(weight[order], first) if len(first) else np.empty(0)
        return cls(ordered[first], sums)

    @property
    def constant(self) -> bool:
        """Whether all numbers are equal but for rounding."""
        if len(self.values) < 2:
            return True
        low, high = float(self.values[0]), float(self.values[-1])
        return high / 2 - low / 2 <= ROUNDING * max(abs(low), abs(high))

    def median(self) -> float:
        """Return the median: that of the numbers repeated as often as their weights say."""
        total = np.cumsum(self.weight)
        half = total[-1] / 2
        low = self.values[np.searchsorted(total, half, side="left")]
        high = self.values[min(np.searchsorted(total, half, side="right"), len(total) - 1)]
        return float(low / 2 + high / 2)

    def moments(self) -> tuple[float, float]:
        """Return mean and standard deviation."""
        return weighted_moments(self.values, self.weight)


def weighted_moments(x: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation; numbers of any size, nothing overflows.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.encodings import weighted_moments
    >>> weighted_moments(np.array([1e200, 3e200]), np.ones(2))
    (2e+200, 1e+200)
    """
    size = float(np.abs(x).max(initial=0.0))
    unit = float(2.0 ** np.floor(np.log2(size))) if size > 0 else 1.0  # divides without rounding
    share = weight / weight.sum()
    scaled = x / unit
    mean = float(share @ scaled)
    mean += float(share @ (scaled - mean))  # what rounding has left
    return mean * unit, float(np.sqrt(share @ (scaled - mean) ** 2)) * unit


def learn_standardised(distinct: Distinct, indicator: float) -> NumberEncoding:
    """Return the encoding to mean 0 and deviation 1."""
    mean, scale = distinct.moments()
    none = np.empty(0)
    return NumberEncoding(distinct.median(), mean, scale or 1.0, none, none, indicator)


def learn_normal_scores(distinct: Distinct, indicator: float) -> NumberEncoding:
    """Return the encoding by ranks: quantiles of a normal distribution, standardised again.

    Equal numbers share their middle rank p = (weight below + half their own) / weight; the score
    is that quantile of the normal distribution, between -3 and 3.

    Notes
    -----
    All numbers are kept where they are few; otherwise those next to evenly spaced scores and those
    that are so frequent that the score jumps there. Between them scores are interpolated, which
    keeps the order.
    """
    weight = distinct.weight / distinct.weight.sum()
    rank = np.cumsum(weight) - weight / 2
    scores = np.clip(ndtri(np.clip(rank, 0.0, 1.0)), -CLIP, CLIP)
    scores = np.maximum.accumulate(scores)  # rounding would let some fall, which no file takes
    grid, at_grid = distinct.values, scores
    if len(grid) > 2 * GRID:
        wanted = np.searchsorted(rank, ndtr(np.linspace(-CLIP, CLIP, GRID + 1)))
        heavy = np.flatnonzero(weight > 1.0 / GRID)
        kept = np.concatenate([[0, len(grid) - 1], wanted, heavy, heavy - 1, heavy + 1])
        kept = np.unique(np.clip(kept, 0, len(grid) - 1))
        grid, at_grid = grid[kept], scores[kept]
        scores = np.interp(distinct.values, grid, at_grid)
    mean, scale = weighted_moments(scores, distinct.weight)
    return NumberEncoding(
        distinct.median(), mean, scale or 1.0, grid.copy(), at_grid.copy(), indicator
    )


# -- levels -----------------------------------------------------------------------------------

SMALLEST_SCALE = 0.1
"""An encoded target is not blown up more than to this share of the target's own deviation."""


@dataclass(frozen=True, eq=False)
class Targets:
    """What levels are encoded by: numbers, or one column of 0 and 1 for every class but the first.

    Attributes
    ----------
    values : array of shape (n, k)
    suffixes : tuple of str
    """

    values: FloatArray
    suffixes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LevelWeights:
    """The levels of a column and their weights; the last weight is that of missing values."""

    levels: tuple[str, ...]
    codes: IntArray  # missing ones are the last level
    weight: FloatArray  # (levels + 1,)

    @classmethod
    def of(cls, column: RawColumn, weight: FloatArray) -> LevelWeights:
        """Add up the weights of the rows of every level."""
        n_levels = len(column.levels)
        codes = np.where(column.values < 0, n_levels, column.values)
        total = np.bincount(codes, weight, minlength=n_levels + 1)
        return cls(column.levels, codes, np.asarray(total, dtype=np.float64))

    @property
    def n_levels(self) -> int:
        """Number of levels that occur, missing ones not counted."""
        return int(np.count_nonzero(self.weight[:-1]))


def learn_indicators(
    counts: LevelWeights, rare: float, most: int, scale: float
) -> LevelEncoding | None:
    """Return one feature for every level, rare ones pooled; None where all rows are alike.

    Parameters
    ----------
    counts : LevelWeights
    rare : float
        Levels of less weight are pooled.
    most : int
        No more levels than these, the most frequent ones, have features of their own (and missing
        values).
    scale : float
        Two levels are sqrt(2) times this apart: with three or more, every level has a feature that
        is ``scale`` where the level is there; with two, one feature is +- sqrt(1/2) ``scale``.

    Notes
    -----
    A missing value is a level like the others where it occurs. Levels that are not in the table,
    and missing values where there were none, are in the pool; without a pool they are 0 everywhere.
    """
    weight, levels = counts.weight, counts.levels
    order = np.argsort(-weight[:-1], kind="stable")
    keep = weight >= max(rare * (1.0 - 1e-9), np.finfo(float).tiny)  # sums of weights are rounded
    keep[order[most:]] = False
    pooled = (weight > 0) & ~keep
    kept = np.flatnonzero(keep)
    names = [f"={levels[i]}" if i < len(levels) else "=(missing)" for i in kept]
    names += ["=(rare)"] * bool(pooled.any())
    if len(names) < 2:
        return None
    sides = np.eye(len(names)) * scale
    if len(names) == 2:
        sides, names = np.array([[-HALF], [HALF]]) * scale, names[1:]
    unseen = sides[-1] if pooled.any() else np.zeros(len(names))
    table = np.tile(unseen, (len(levels) + 1, 1))
    table[kept] = sides[: len(kept)]
    present = np.flatnonzero(weight[:-1] > 0)
    return LevelEncoding(
        tuple(levels[i] for i in present), table[present], table[-1], unseen, tuple(names)
    )


def learn_target_encoding(
    counts: LevelWeights, weight: FloatArray, targets: Targets, smoothing: float | None
) -> LevelEncoding:
    """Return the mean target of every level, drawn towards the mean of all: `level_effects`."""
    sums = _sums_of_cells(counts.codes, weight, targets.values, len(counts.weight))
    squares = weight @ targets.values**2
    effects = level_effects(counts.weight, sums, squares, smoothing)
    present = np.flatnonzero(counts.weight[:-1] > 0)
    return LevelEncoding(
        tuple(counts.levels[i] for i in present),
        effects[present],
        effects[-1],
        np.zeros(len(targets.suffixes)),
        targets.suffixes,
    )


def out_of_fold(
    counts: LevelWeights,
    weight: FloatArray,
    targets: Targets,
    smoothing: float | None,
    fold: IntArray,
) -> FloatArray:
    """Return for every row what `learn_target_encoding` on the other folds makes of it.

    Returns
    -------
    array of shape (n, k)

    Notes
    -----
    Sums over the other folds are the total less the fold's own: O(n k + folds levels k) time.
    """
    n_folds, n_levels = int(fold.max()) + 1, len(counts.weight)
    cells = fold * n_levels + counts.codes
    weights = np.bincount(cells, weight, minlength=n_folds * n_levels).reshape(n_folds, n_levels)
    sums = _sums_of_cells(cells, weight, targets.values, n_folds * n_levels)
    sums = sums.reshape(n_folds, n_levels, -1)
    squares = _sums_of_cells(fold, weight, targets.values**2, n_folds)
    effects = np.empty_like(sums)
    for f in range(n_folds):
        others = np.arange(n_folds) != f
        effects[f] = level_effects(
            weights[others].sum(axis=0),
            sums[others].sum(axis=0),
            squares[others].sum(axis=0),
            smoothing,
        )
    return np.asarray(effects[fold, counts.codes])


def _sums_of_cells(
    cells: IntArray, weight: FloatArray, values: FloatArray, n_cells: int
) -> FloatArray:
    sums = [np.bincount(cells, weight * y, minlength=n_cells) for y in values.T]
    return np.column_stack(sums) if sums else np.empty((n_cells, 0))


def level_effects(
    weight: FloatArray, sums: FloatArray, squares: FloatArray, smoothing: float | None
) -> FloatArray:
    """Return how far the mean target of every level is from the mean of all, shrunken and scaled.

    Parameters
    ----------
    weight : array of shape (levels,)
        W_l, the weight of every level.
    sums : array of shape (levels, k)
        S_l, the weighted sums of the targets.
    squares : array of shape (k,)
        The weighted sum of their squares.
    smoothing : float or None
        m; None: estimated for each target.

    Returns
    -------
    array of shape (levels, k)
        W_l / (W_l + m) (S_l / W_l - mean) / scale; 0 for a level without weight. The scale is the
        deviation of these effects over the rows, but at least a tenth of the target's own: what
        tells nothing stays small.

    Notes
    -----
    The shrinkage is that of the best linear predictor of a level's mean when levels have means of
    variance t and rows vary about them with variance s: m = s / t, both estimated by moments from
    the sums of squares between and within levels. Where levels differ by no more than chance makes
    them (t <= 0), all effects are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.encodings import level_effects
    >>> effects = level_effects(np.full(2, 8.0), np.array([[8.0], [0.0]]), np.array([8.0]), 0.0)
    >>> effects.ravel().tolist()
    [1.0, -1.0]
    """
    effects = np.zeros_like(sums)
    total = float(weight.sum())
    there = weight > 0
    if total <= 0 or not there.any():
        return effects
    W = weight[there][:, None]
    mean = sums[there].sum(axis=0) / total
    differences = sums[there] / W - mean
    between = (W * differences**2).sum(axis=0)
    around = np.maximum(squares - total * mean**2, 0.0)  # of all rows about their mean
    if smoothing is None:
        m = _estimated_smoothing(W[:, 0], total, between, np.maximum(around - between, 0.0))
    else:
        m = np.full(len(mean), float(smoothing))
    shrunken = np.where(np.isinf(m), 0.0, W / (W + np.where(np.isinf(m), 1.0, m))) * differences
    spread = np.sqrt((W * shrunken**2).sum(axis=0) / total)
    scale = np.maximum(spread, SMALLEST_SCALE * np.sqrt(around / total))
    effects[there] = shrunken / np.where(scale > 0, scale, 1.0)
    return effects


def _estimated_smoothing(
    W: FloatArray, total: float, between: FloatArray, within: FloatArray
) -> FloatArray:
    n_levels = len(W)
    free = total - n_levels
    spread = total - float(W @ W) / total
    if free <= 0 or spread <= 0:
        return np.full(len(between), np.inf)  # one row a level, or one level: no estimate
    s = within / free
    t = (between - (n_levels - 1) * s) / spread
    return np.where(t > 0, s / np.where(t > 0, t, 1.0), np.inf)


_CLEARLY = 6.0  # standard errors by which values predict better than their neighbourhood

FEWEST_ROWS = 10_000
"""Rows below which values of numbers are not encoded: models see all rows of a value then."""

_SMALLEST_SHARE = 0.003  # of the variance of the targets that values have to explain
_BINS = 32  # neighbourhoods of a value
_MOST_TARGETS = 3  # encoded by the values of a number; more make too many features


def learn_value_encoding(
    number: NumberEncoding,
    x: FloatArray,
    weight: FloatArray,
    targets: Targets,
    smoothing: float | None,
    fold: IntArray,
) -> tuple[ValueEncoding, FloatArray] | None:
    """Return the encoding of numbers whose values stand out, and the features of their rows.

    Parameters
    ----------
    number : NumberEncoding
    x : array of shape (n,)
        NaN where missing.
    weight : array of shape (n,)
    targets : Targets
    smoothing : float or None
        As in `level_effects`.
    fold : int array of shape (n,)

    Returns
    -------
    tuple of ValueEncoding and array of shape (n, width), or None
        The features are out of fold. None where values hardly repeat, or predict no better than
        the values next to them.

    Notes
    -----
    Some numbers are codes, or amounts that have a meaning of their own: a kernel that is smooth in
    the number does not see them. Every held-out row is predicted by the mean target of the other
    folds as a function of the number, linear between 32 bins, with and without the shrunken
    deviation of its very value from that. The second has to be better by six standard errors and
    by 0.3 % of the variance. O(n log n + n k) time and O(folds g k) memory.
    """
    missing = np.isnan(x)
    values, codes = np.unique(x[~missing & (weight > 0)], return_inverse=True)
    k, total = len(targets.suffixes), float(weight[~missing].sum())
    if not 0 < k <= _MOST_TARGETS or not 4 <= len(values) <= total / 3.0:
        return None
    places = np.full(len(x), len(values), dtype=np.intp)  # missing ones are the last level
    places[~missing] = np.searchsorted(values, x[~missing]).clip(max=len(values) - 1)
    rows = np.flatnonzero(~missing & (weight > 0))
    if not values_stand_out(codes.ravel(), weight[rows], targets.values[rows], fold[rows]):
        return None
    n_levels = len(values) + 1
    counts = LevelWeights((), places, np.bincount(places, weight, minlength=n_levels))
    sums = _sums_of_cells(places, weight, targets.values, n_levels)
    effects = level_effects(counts.weight, sums, weight @ targets.values**2, smoothing)
    encoding = ValueEncoding(number, values, effects[:-1], effects[-1], targets.suffixes)
    features = np.empty((len(x), encoding.width))
    number.encode_values(x, features[:, : number.width])
    features[:, number.width :] = out_of_fold(counts, weight, targets, smoothing, fold)
    return encoding, features


def values_stand_out(codes: IntArray, weight: FloatArray, Y: FloatArray, fold: IntArray) -> bool:
    """Return whether the means of values predict held-out rows clearly better than bins do."""
    n_levels, n_folds = int(codes.max()) + 1, int(fold.max()) + 1
    at_level = np.bincount(codes, weight, minlength=n_levels)
    total = float(at_level.sum())
    rank = (np.cumsum(at_level) - at_level / 2.0) / total
    bins = np.unique(np.minimum(rank * _BINS, _BINS - 1).astype(int), return_index=True)[1]
    cells = fold * n_levels + codes
    W = np.bincount(cells, weight, minlength=n_folds * n_levels).reshape(n_folds, n_levels)
    S = _sums_of_cells(cells, weight, Y, n_folds * n_levels).reshape(n_folds, n_levels, -1)
    smooth, exact = np.empty_like(S), np.empty_like(S)
    for f in range(n_folds):
        w, s = W.sum(axis=0) - W[f], S.sum(axis=0) - S[f]
        in_bin, mean = np.add.reduceat(w, bins), s.sum(axis=0) / max(float(w.sum()), 1e-300)
        there = in_bin > 0
        middle = np.add.reduceat(w * rank, bins)[there] / in_bin[there]
        means = (np.add.reduceat(s, bins) + 5.0 * mean) / (in_bin[:, None] + 5.0)
        for j in range(s.shape[1]):
            smooth[f, :, j] = np.interp(rank, middle, means[there, j])
        exact[f] = smooth[f] + (s - w[:, None] * smooth[f]) / (w[:, None] + 10.0)
    a, b = smooth[fold, codes], exact[fold, codes]
    gain = ((b - a) * (2.0 * Y - a - b)).sum(axis=1)
    mean = float(weight @ gain) / total
    around = float(weight @ ((Y - (weight @ Y) / total) ** 2).sum(axis=1)) / total
    error = np.sqrt(float(weight @ (gain - mean) ** 2)) / total
    return mean > _CLEARLY * error and mean > _SMALLEST_SHARE * around


def learn_ordered(
    column: RawColumn, weight: FloatArray | None, indicator: float
) -> LevelEncoding | None:
    """Return levels in an order of their own as one number: their standardised place.

    Missing levels, and those that are not in the order, have the median place; where some are
    missing, one more feature marks them. None where all rows are alike.
    """
    observed = column.values >= 0
    weight = None if weight is None else weight[observed]
    distinct = Distinct.of(column.values[observed].astype(np.float64), weight)
    if not len(distinct.values) or (distinct.constant and not indicator):
        return None
    number = learn_standardised(distinct, indicator)
    places = np.append(np.arange(len(column.levels), dtype=np.float64), np.nan)
    table = np.empty((len(places), number.width))
    number.encode_values(places, table)
    unseen = table[-1].copy()
    if indicator:
        unseen[1] = -indicator
    return LevelEncoding(column.levels, table[:-1], table[-1], unseen, number.suffixes)


FEW_CLASSES = 50
"""Whole numbers with at most so many different values are classes by default."""


def read_targets(y: Any, n_rows: int, kind: str, counted: BoolArray) -> Targets:
    """Return y as numbers.

    Parameters
    ----------
    y : array of shape (n,) or (n, k)
    n_rows : int
    kind : {"auto", "classes", "numbers"}
        "auto": text, booleans and whole numbers with at most 50 different values are classes.
    counted : bool array of shape (n,)
        The rows of positive weight; classes that no such row has do not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.encodings import read_targets
    >>> read_targets(["no", "yes", "no"], 3, "auto", np.ones(3, dtype=bool)).values.ravel().tolist()
    [0.0, 1.0, 0.0]
    """
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim not in (1, 2) or len(labels) != n_rows:
        raise InvalidInputError(
            f"y has shape {labels.shape} but X has {n_rows} rows: give one target for each row."
        )
    if labels.dtype.kind in "OUT" and any(is_missing(v) for v in set(labels.ravel().tolist())):
        raise InvalidInputError("y has missing values: leave out the rows without a target.")
    if kind == "auto":
        kind = "classes" if _looks_like_classes(labels[counted]) else "numbers"
    if kind == "numbers":
        return _numeric_targets(labels)
    if labels.ndim == 2:
        raise InvalidInputError(
            f"y has shape {labels.shape}, but classes are given in one column: give shape "
            f"({n_rows},)."
        )
    if labels.dtype == object:
        labels = labels.astype(str)
    classes = np.unique(labels[counted])
    if len(classes) < 2:
        return Targets(np.zeros((n_rows, 0)), ())
    values = (labels[:, None] == classes[None, 1:]).astype(np.float64)
    return Targets(values, tuple(f":target={label}" for label in classes[1:].tolist()))


def _looks_like_classes(labels: AnyArray) -> bool:
    if labels.ndim == 2:
        return False
    if labels.dtype.kind not in "iuf":
        return not (labels.dtype == object and all(isinstance(v, int | float) for v in labels))
    with np.errstate(invalid="ignore"):
        whole = bool(np.all(labels == np.floor(labels)))
    return whole and len(np.unique(labels)) <= FEW_CLASSES


def _numeric_targets(labels: AnyArray) -> Targets:
    try:
        values = labels.astype(np.float64).reshape(len(labels), -1)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"y has values that are not numbers ({error}): give numbers, or target='classes'."
        ) from error
    if not np.all(np.isfinite(values)):
        raise InvalidInputError(
            "y has NaN or infinite values: leave out the rows without a target."
        )
    k = values.shape[1]
    values = values - values.mean(
        axis=0
    )  # effects are differences: nothing is to cancel in squares
    return Targets(values, tuple(":target" + ("" if k == 1 else str(j)) for j in range(k)))


NEIGHBOURS = 8
"""Rows on each side that predict a row, where a column is tested for predicting anything."""

SHUFFLES = 19
"""Shuffles of the rows that a column has to beat."""


def predicts(x: FloatArray, targets: FloatArray) -> bool:
    """Say whether held-out targets are nearer to those of the nearest x than chance has it.

    Every row is predicted by the mean of the 16 rows next to it in the order of x, itself left out.
    The squared error has to be below that of each of 19 shuffles of the rows, for one of the
    targets: O(n k) time for each shuffle.
    """
    if targets.shape[1] == 0 or len(x) < 3:
        return True
    Y = targets[np.argsort(x, kind="stable")]
    random = np.random.default_rng(0)
    shuffled = [_neighbour_errors(Y[random.permutation(len(Y))]) for _ in range(SHUFFLES)]
    return bool(np.any(_neighbour_errors(Y) < np.min(shuffled, axis=0)))


def _neighbour_errors(Y: FloatArray) -> FloatArray:
    """Return the squared errors of rows that are predicted by their neighbours, summed."""
    n, m = len(Y), min(NEIGHBOURS, (len(Y) - 1) // 2)
    sums = np.vstack([np.zeros(Y.shape[1]), np.cumsum(Y, axis=0)])
    low = np.clip(np.arange(n) - m, 0, n - 1 - 2 * m)
    mean = (sums[low + 2 * m + 1] - sums[low] - Y) / (2 * m)
    return np.asarray(((Y - mean) ** 2).sum(axis=0))


_ID = re.compile(
    r"(.*[^a-z])?(id|ids|key|index|idx|no|nr|number|row|rownum|unnamed.*)", re.IGNORECASE
)


def may_number_rows(column: RawColumn) -> bool:
    """Return whether whole numbers run from 0 or 1 on, or are called an id and have few gaps."""
    n = len(column)
    if column.kind != "number" or n < 10:
        return False
    low, high = float(np.min(column.values)), float(np.max(column.values))
    running = low in (0, 1) and high - low == n - 1
    named = n >= 50 and low >= 0 and _ID.fullmatch(re.sub("(?<=[a-z])(?=I[Dd]$)", "_", column.name))
    if not (running or named):  # NaN is neither
        return False
    return bool(np.all(column.values == np.floor(column.values)))


def read_dates(column: RawColumn, encoding: DateEncoding) -> RawColumn:
    """Return a column as the dates that it had in training, where it can be read so."""
    if column.kind not in ("category", "number") or (
        column.kind == "number" and not encoding.order
    ):
        return column
    order, zoned = encoding.order, encoding.zone is not None
    if not order:  # dates in training, text now
        style = column.date_style()
        usable = style is not None and not style.ambiguous and style.zoned == zoned
        return column.as_dates(style.order, zoned) or column if style and usable else column
    dates = column.as_dates(order, zoned)
    if dates is None:
        texts = column.levels if column.kind == "category" else column.as_category().levels
        wrong = next(t for t in texts if parse_dates([t], order, zoned) is None)
        raise InvalidInputError(
            f"Column {column.name!r} has the text {wrong!r}, but had dates written as "
            f"{ORDERS[order]}{' with a time zone' * zoned} in training: write it in the same way, "
            "or make it missing (None)."
        )
    return dates
