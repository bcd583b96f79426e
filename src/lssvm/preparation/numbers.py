"""What is learned of columns of numbers: median, mean and deviation, normal scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from lssvm._core.arrays import FloatArray
from lssvm.preparation.encodings import NumberEncoding

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
            sums = np.diff(first, append=len(x)).astype(np.float64)
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
    >>> from lssvm.preparation.numbers import weighted_moments
    >>> weighted_moments(np.array([1e200, 3e200]), np.ones(2))
    (2e+200, 1e+200)
    """
    size = float(np.max(np.abs(x), initial=0.0))
    unit = float(2.0 ** np.floor(np.log2(size))) if size > 0 else 1.0  # divides without rounding
    share = weight / weight.sum()
    scaled = x / unit
    mean = float(share @ scaled)
    mean += float(share @ (scaled - mean))  # what rounding has left
    deviation = float(np.sqrt(share @ (scaled - mean) ** 2))
    return mean * unit, deviation * unit


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
