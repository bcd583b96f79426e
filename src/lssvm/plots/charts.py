"""What a chart shows, as plain data: axes and marks.

`lssvm.plots` draws charts with matplotlib, `lssvm.report` as SVG.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lssvm._core.arrays import FloatArray

Colour: TypeAlias = int | str
"""The number of a class or series, or a role: main, text, grey, wrong, paper, q0 to q4."""
Ticks: TypeAlias = Sequence[tuple[float, str]]
"""Values on an axis with their names."""

SHAPES = ("dot", "square", "up", "diamond", "down", "cross")


@dataclass(frozen=True, eq=False)
class Mark:
    """Something that is drawn at values of x and y; its label is in the legend."""

    x: Any
    y: Any
    label: str = ""
    colour: Colour = "main"
    opacity: float = 1.0


@dataclass(frozen=True, eq=False)
class Line(Mark):
    """A line from point to point."""

    width: float = 2.2
    dashed: bool = False
    outlined: bool = False


@dataclass(frozen=True, eq=False)
class Points(Mark):
    """A marker at each point."""

    size: float = 4.0
    shape: str = "dot"  # one of SHAPES; "": that of the class
    outlined: bool = False


@dataclass(frozen=True, eq=False)
class Band(Mark):
    """The area between two lines, y = (low, high)."""

    opacity: float = 0.18


@dataclass(frozen=True, eq=False)
class Whiskers(Mark):
    """A vertical line at each x, y = (low, high)."""

    opacity: float = 0.6
    width: float = 1.4


@dataclass(frozen=True, eq=False)
class Bars(Mark):
    """A histogram: heights y between edges x."""

    opacity: float = 0.75


@dataclass(frozen=True, eq=False)
class Rule(Mark):
    """A dashed line across the chart, at a value of x or of y; the other one is None."""


@dataclass(frozen=True, eq=False)
class Star(Mark):
    """The chosen point."""


@dataclass(frozen=True, eq=False)
class Words(Mark):
    """Texts at points."""

    texts: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class HeatMap(Mark):
    """Values as shades: (r, c) of cells between edges x and y, or (n,) at scattered points.

    ``ends`` are names of the smallest and the largest value, which is the strongest shade unless
    the values are a ``loss``.
    """

    values: Any = ()
    ends: tuple[str, str] = ("", "")
    loss: bool = False


@dataclass(frozen=True, eq=False)
class Chart:
    """Two axes and what is drawn between them, the first mark at the bottom.

    Parameters
    ----------
    title : str
        What the chart shows.
    x_label, y_label : str
    marks : sequence of Mark
    x_log, y_zero : bool, default=False
        Whether x is logarithmic, and whether y begins at zero.
    x_limits, y_limits : (float, float) or None, default=None
        Ends of the axes; None: those of the marks, with a margin.
    x_ticks, y_ticks : list of (float, str) or None, default=None
        Values on the axes with their names; None: round numbers.

    Examples
    --------
    >>> from lssvm.plots.charts import Chart, Line
    >>> chart = Chart("lines", "x", "y", [Line([0, 1], [0, 2]), Line([0, 4], [1, 1], "flat")])
    >>> chart.values("x").tolist()
    [0.0, 1.0, 0.0, 4.0]
    """

    title: str
    x_label: str
    y_label: str
    marks: Sequence[Mark]
    x_log: bool = False
    y_zero: bool = False
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None
    x_ticks: Ticks | None = None
    y_ticks: Ticks | None = None

    def values(self, axis: str) -> FloatArray:
        """Return all values of the marks on the axis "x" or "y"."""
        coordinates = [vars(mark)[axis] for mark in self.marks]
        parts = [np.asarray(v, dtype=np.float64).ravel() for v in coordinates if v is not None]
        return np.concatenate([np.empty(0), *parts])


def log_ticks(low: float, high: float, count: int = 5) -> list[tuple[float, str]]:
    """Return about ``count`` decimal logarithms between two, named as the numbers they are of.

    Examples
    --------
    >>> from lssvm.plots.charts import log_ticks
    >>> log_ticks(-5.2, 1.5, 3), [name for _, name in log_ticks(0.2, 0.8)]
    ([(-5.0, '10⁻⁵'), (-3.0, '0.001'), (-1.0, '0.1'), (1.0, '10')], ['2', '5'])
    """
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if last > first:
        step = max(1, round((last - first) / count))
        return [(float(p), power_of_ten(p)) for p in range(first, last + 1, step)]
    powers = range(math.floor(low), math.ceil(high) + 1)
    values = [digit * 10.0**power for power in powers for digit in (1.0, 2.0, 5.0)]
    return [(math.log10(v), f"{v:g}") for v in values if low <= math.log10(v) <= high]


def power_of_ten(power: int) -> str:
    """Return a power of ten as a label.

    Examples
    --------
    >>> from lssvm.plots.charts import power_of_ten
    >>> power_of_ten(2), power_of_ten(-5)
    ('100', '10⁻⁵')
    """
    if -3 <= power <= 4:
        return f"{10.0**power:,.{max(-power, 0)}f}"
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
