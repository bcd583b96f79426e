"""Small pictures as inline SVG, coloured by the page's style sheet.

First the scales, from data to places on a picture, and their ticks.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import MissingDependencyError
from lssvm.plots.base import Display
from lssvm.report.markup import MINUS, Markup, clean, short, tag

MARGIN = 0.04  # of the range of the values, on either side


@dataclass(frozen=True)
class Scale:
    """A straight line from values to places.

    Parameters
    ----------
    low, high : float
        Ends of the values (of their logarithms where ``log``).
    start, stop : float
        Their places.
    log : bool, default=False
        Whether places follow the decimal logarithm.

    Examples
    --------
    >>> from lssvm.report.charts import Scale
    >>> Scale(0.0, 10.0, 100.0, 0.0)(2.5), Scale(0.0, 2.0, 0.0, 10.0, log=True)(10.0)
    (75.0, 5.0)
    """

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    @classmethod
    def of(
        cls,
        values: Any,
        start: float,
        stop: float,
        *,
        log: bool = False,
        zero: bool = False,
        limits: tuple[float, float] | None = None,
    ) -> Scale:
        """Return the scale that shows all finite values, with a margin.

        Parameters
        ----------
        values : array-like
        start, stop : float
        log : bool, default=False
        zero : bool, default=False
            Whether it begins at zero.
        margin : float, default=0.04
            Part of the range, on every side.
        """
        if limits is not None:
            return cls(float(limits[0]), float(limits[1]), start, stop, log)
        array = np.asarray(values, dtype=np.float64).ravel()
        if log:
            array = np.log10(array[array > 0])
        array = array[np.isfinite(array)]
        low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 1.0)
        if zero:
            low = min(low, 0.0)
        if not high - low > 1e-9 * max(abs(low), abs(high), 1e-300):
            pad = 0.5 if log else (0.5 * abs(low) or 0.5)
            low, high = low - pad, high + pad
        edge = MARGIN * (high - low)
        return cls(low if zero and low == 0.0 else low - edge, high + edge, start, stop, log)

    def __call__(self, values: Any) -> Any:
        """Return the places of values."""
        array = np.asarray(values, dtype=np.float64)
        if self.log:
            array = np.log10(np.maximum(array, 1e-300))
        share = (array - self.low) / (self.high - self.low)
        found = self.start + share * (self.stop - self.start)
        return float(found) if array.ndim == 0 else found

    def ticks(self, count: int = 5) -> list[tuple[float, str]]:
        """Return about ``count`` values to mark, with their names."""
        if not self.log:
            values = nice_ticks(self.low, self.high, count)
            return list(zip(values, tick_names(values), strict=True))
        first, last = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
        if last > first:
            step = max(1, round((last - first) / count))
            return [(10.0**p, power_of_ten(p)) for p in range(first, last + 1, step)]
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        values = [digit * 10.0**power for power in powers for digit in (1.0, 2.0, 5.0)]
        return [(v, f"{v:g}") for v in values if self.low <= math.log10(v) <= self.high]


def power_of_ten(power: int) -> str:
    """Return a power of ten as a label.

    Examples
    --------
    >>> from lssvm.report.charts import power_of_ten
    >>> power_of_ten(2), power_of_ten(-5)
    ('100', '10⁻⁵')
    """
    if -3 <= power <= 4:
        return f"{10.0**power:,.{max(-power, 0)}f}"
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round values between two ends.

    Examples
    --------
    >>> from lssvm.report.charts import nice_ticks
    >>> nice_ticks(0.0, 1.0), nice_ticks(-13.0, 240.0, 4)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 50.0, 100.0, 150.0, 200.0])
    """
    span = high - low
    if not (span > 0 and math.isfinite(span)):
        return [low]
    rough = span / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(d for d in (1.0, 2.0, 5.0, 10.0) if d * power >= rough * 0.75)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step)) + 1)
    return [round(i * step, digits) + 0.0 for i in range(first, last + 1)]


def tick_names(values: list[float]) -> list[str]:
    """Return names for ticks with equally many digits.

    Examples
    --------
    >>> from lssvm.report.charts import tick_names
    >>> tick_names([0.0, 0.5, 1.0]), tick_names([0.0, 2e6])
    (['0.0', '0.5', '1.0'], ['0', '2,000,000'])
    """
    largest = max((abs(v) for v in values), default=0.0)
    if largest >= 1e7 or 0 < largest < 1e-3:
        return [f"{v:.3g}" for v in values]
    for digits in range(7):
        if all(abs(round(v, digits) - v) <= 1e-9 * max(largest, 1e-12) for v in values):
            break
    mark = "," if largest >= 1e4 else ""  # years have none
    return [f"{v:{mark}.{digits}f}".replace("-", MINUS) for v in values]


WIDTH = 400  # of a picture in its own units, about as many pixels as a telephone shows
LETTER = 6.6  # mean width of a letter in them
LAYERS = 6  # of half transparent dots, so that dense places look dense
N_COLOURS = 8
LONG = 7  # entries of a legend that stand below each other where there is room
SHAPES = ("dot", "square", "up", "diamond", "down", "cross")


class Chart:
    """A picture with two axes.

    Parameters
    ----------
    label : str
        What the picture shows, for those who cannot see it.
    x, y : array-like or (float, float)
        Values that have to be in the picture.
    x_label, y_label : str
    height : int, default=290
    x_log, y_log, y_zero : bool, default=False
        Logarithmic axes; an axis that begins at zero.
    x_limits, y_limits : (float, float) or None, default=None
        Ends of the axes instead.
    x_names, y_names : list of (float, str) or None, default=None
        Ticks instead.
    bar_room : float, default=0.0
        Room to the right for a `colour_bar`.

    Examples
    --------
    >>> from lssvm.report.charts import Chart
    >>> chart = Chart("a line", [0, 1], [0, 2], "x", "y")
    >>> svg = chart.line([0, 1], [0, 2]).svg()
    >>> svg.startswith("<svg"), "a line" in svg
    (True, True)
    """

    def __init__(
        self,
        label: str,
        x: Any,
        y: Any,
        x_label: str,
        y_label: str,
        *,
        height: int = 290,
        x_log: bool = False,
        y_log: bool = False,
        y_zero: bool = False,
        x_limits: tuple[float, float] | None = None,
        y_limits: tuple[float, float] | None = None,
        x_names: list[tuple[float, str]] | None = None,
        y_names: list[tuple[float, str]] | None = None,
        bar_room: float = 0.0,
    ) -> None:
        self.label, self.x_label, self.y_label, self.height = label, x_label, y_label, height
        self.y = Scale.of(y, height - 44.0, 10.0, log=y_log, zero=y_zero, limits=y_limits)
        self.y_names = self.y.ticks() if y_names is None else y_names
        widest = max((len(name) for _, name in self.y_names), default=1)
        left = 26.0 + LETTER * min(widest, 12)
        self.x = Scale.of(x, left, WIDTH - 10.0 - bar_room, log=x_log, limits=x_limits)
        self.x_names = self.x.ticks() if x_names is None else x_names
        self.parts: list[Markup] = []
        self.under: list[Markup] = []  # beneath the grid

    @classmethod
    def unit(cls, label: str, x_label: str, y_label: str, *, diagonal: bool = False) -> Chart:
        """Return a picture of two shares, with the dashed diagonal where it means something."""
        ends = (-0.02, 1.02)
        name = f"{label}: {y_label} against {x_label}"
        chart = cls(name, [0, 1], [0, 1], x_label, y_label, x_limits=ends, y_limits=ends)
        if diagonal:
            chart.line([0, 1], [0, 1], "st", dashed=True, width=1.2, opacity=0.5)
        return chart

    # -- what can be drawn -----------------------------------------------------------------------

    def line(
        self,
        x: Any,
        y: Any,
        colour: str = "sa",
        *,
        dashed: bool = False,
        width: float = 2.2,
        opacity: float | None = None,
    ) -> Chart:
        """Join points by a line; ``colour="st"`` is that of the text."""
        places = _decimals(*self._places(x, y))
        if not places:
            return self
        d = f"M{places[0]}" + ("L" + " ".join(places[1:]) if len(places) > 1 else "h0")
        dash = "5 4" if dashed else None
        style = {"stroke_width": width, "stroke_dasharray": dash, "stroke_opacity": opacity}
        return self._path(f"ln {colour}", d, **style)

    def band(self, x: Any, low: Any, high: Any, colour: str = "sa") -> Chart:
        """Fill what lies between two lines."""
        there, back = (_decimals(*self._places(x, ends)) for ends in (high, low))
        d = f"M{' L'.join([*there, *back[::-1]])}Z"
        return self._path(f"fl {colour}", d, fill_opacity=0.18)

    def dots(
        self,
        x: Any,
        y: Any,
        colour: str = "sa",
        *,
        size: float = 4.0,
        shape: str = "dot",
        opacity: float = 1.0,
        outlined: bool = False,
    ) -> Chart:
        """Draw marks; many half transparent ones add up where they are dense."""
        px, py = self._places(x, y)
        keep = np.isfinite(px) & np.isfinite(py)
        px, py = px[keep], py[keep]
        layers = LAYERS if opacity < 1.0 and len(px) > 50 else 1
        kind, width = ("dt", size) if shape == "dot" else ("fl", None)
        style = {"stroke_width": width, "opacity": None if opacity == 1.0 else opacity}
        for layer in range(layers):
            marks = _decimals(px[layer::layers], py[layer::layers])
            d = "".join(_mark(place, shape, size) for place in marks)
            if d and outlined:
                self._path("dt ring", d, stroke_width=(width or 0.0) + 2.2)
            if d:
                self._path(f"{kind} {colour}", d, **style)
        return self

    def star(self, x: float, y: float, title: str = "") -> Chart:
        """Mark one place as the chosen one."""
        px, py = self.x(x), self.y(y)
        angle = np.arange(10) * np.pi / 5
        radius = np.where(np.arange(10) % 2 == 0, 9.5, 4.0)
        places = _decimals(px + radius * np.sin(angle), py - radius * np.cos(angle))
        inner = tag("path", tag("title", title), d=f"M{'L'.join(places)}Z")
        self.parts.append(tag("g", inner, class_="fl star sb"))
        return self

    def bars(self, edges: Any, heights: Any, colour: str = "sa", opacity: float = 0.75) -> Chart:
        """Draw a histogram."""
        left, base = self.x(np.asarray(edges)), self.y(0.0)
        top = self.y(np.asarray(heights))
        d = "".join(
            f"M{a:.1f} {base:.1f}V{t:.1f}H{b:.1f}V{base:.1f}Z"
            for a, b, t in zip(left[:-1], left[1:], top, strict=True)
            if base - t > 0.05
        )
        return self._path(f"fl bar {colour}", d, opacity=opacity)

    def rule(self, *, x: float | None = None, y: float | None = None, title: str = "") -> Chart:
        """Draw a dashed line across the picture."""
        ends = {"x1": self.x.start, "x2": self.x.stop, "y1": self.y.stop, "y2": self.y.start}
        if x is not None:
            ends["x1"] = ends["x2"] = self.x(x)
        else:
            ends["y1"] = ends["y2"] = self.y(0.0 if y is None else y)
        inner = [tag("title", title)] if title else []
        self.parts.append(tag("line", *inner, class_="rule", **ends))
        return self

    def text(self, x: float, y: float, words: Any) -> Chart:
        """Write a word at a place of the data."""
        self.parts.append(_words(words, self.x(x), self.y(y), class_="word"))
        return self

    def cells(
        self, x_edges: FloatArray, y_edges: FloatArray, levels: IntArray, colour: str = "sa"
    ) -> Chart:
        """Fill a grid of cells by levels from 0; below zero is left empty.

        Parameters
        ----------
        x_edges : array of shape (c + 1,)
            In the units of the axis (logarithms where it is logarithmic).
        y_edges : array of shape (r + 1,)
        levels : int array of shape (r, c)
        colour : str, default="sa"
        """
        px, py = (
            replace(scale, log=False)(edges)
            for scale, edges in ((self.x, x_edges), (self.y, y_edges))
        )
        n = int(levels.max()) + 1
        for level in range(n):
            d = []
            for i in range(len(levels)):
                inside = np.concatenate(([False], levels[i] == level, [False]))
                (changes,) = np.nonzero(inside[1:] != inside[:-1])
                for a, b in changes.reshape(-1, 2):
                    d.append(f"M{px[a]:.1f} {py[i]:.1f}H{px[b]:.1f}V{py[i + 1]:.1f}H{px[a]:.1f}Z")
            style = {"class_": f"fl {colour} cell", "fill_opacity": _shade(level, n)}
            self.under.append(tag("path", d="".join(d), **style))
        return self

    def colour_bar(self, ends: tuple[str, str], steps: int, colour: str = "sa") -> Chart:
        """Draw the shades of `cells` to the right of the picture, with what the ends stand for."""
        left, top, bottom = self.x.stop + 10.0, self.y.stop + 14.0, self.y.start - 14.0
        edges = np.linspace(bottom, top, steps + 1)
        for level, (a, b) in enumerate(pairwise(edges)):
            d = f"M{left:.1f} {a:.1f}H{left + 12:.1f}V{b:.1f}H{left:.1f}Z"
            style = {"class_": f"fl {colour} cell", "fill_opacity": _shade(level, steps)}
            self.under.append(tag("path", d=d, **style))
        words = [
            _words(ends[0], left, bottom + 13.0, "start"),
            _words(ends[1], left, top - 5.0, "start"),
        ]
        self.parts.append(tag("g", words, class_="ticks"))
        return self

    # -- the whole -------------------------------------------------------------------------------

    def svg(self) -> Markup:
        """Return the picture."""
        return tag(
            "svg",
            tag("title", self.label),
            tag("g", self.under, shape_rendering="crispEdges") if self.under else None,
            self._axes(),
            self.parts,
            viewBox=f"0 0 {WIDTH} {self.height}",
            role="img",
            aria_label=clean(self.label),
        )

    def _axes(self) -> list[Markup]:
        left, right, bottom, top = self.x.start, self.x.stop, self.y.start, self.y.stop
        grid, words = [], []
        for value, name in self.y_names:
            place = self.y(value)
            grid.append(f"M{left:.1f} {place:.1f}H{right:.1f}")
            words.append(_words(short(name, 12), left - 6, place + 4, "end"))
        for value, name in self.x_names:
            place = self.x(value)
            grid.append(f"M{place:.1f} {top:.1f}V{bottom:.1f}")
            words.append(_words(short(name, 12), place, bottom + 16))
        middle, turned = (left + right) / 2, (top + bottom) / 2
        turn = f"rotate(-90 13 {turned:.1f})"
        if self.under:  # lines over a map would hide it
            grid = []
        return [
            tag("path", d="".join(grid), class_="grid"),
            tag("g", words, class_="ticks"),
            _words(short(self.x_label, 56), middle, self.height - 7, class_="axis"),
            _words(short(self.y_label, 40), 13, turned, transform=turn, class_="axis"),
        ]

    def _path(self, classes: str, d: str, **style: Any) -> Chart:
        self.parts.append(tag("path", d=d, class_=classes, **style))
        return self

    def _places(self, x: Any, y: Any) -> tuple[FloatArray, FloatArray]:
        px, py = np.broadcast_arrays(
            np.atleast_1d(self.x(np.asarray(x))), np.atleast_1d(self.y(np.asarray(y)))
        )
        # What lies outside the axes is drawn at their ends, not outside the picture.
        top, bottom = sorted((self.y.start, self.y.stop))
        return np.clip(px, self.x.start, self.x.stop), np.clip(py, top, bottom)


def _shade(level: int, steps: int) -> float:
    """Return how strong a step of colour is."""
    return 0.04 + 0.86 * (level / max(steps - 1, 1))


def _words(words: Any, x: float, y: float, anchor: str = "middle", **more: Any) -> Markup:
    return tag("text", words, x=x, y=y, text_anchor=anchor, **more)


def _decimals(px: Any, py: Any) -> list[str]:
    """Return places to a tenth of a unit."""
    return [f"{a:.1f} {b:.1f}".replace(".0", "") for a, b in zip(px, py, strict=True)]


def _mark(place: str, shape: str, size: float) -> str:
    r = size / 2
    a, b = 1.3 * r, 2 * r / 3
    right, left = f"h{b:g}", f"h{-b:g}"
    steps = f"{right}v{b:g}" * 2 + f"{left}v{b:g}" + f"{left}v{-b:g}" * 2 + right
    outline = {
        "dot": "h.01",
        "square": f"m{-r:g} {-r:g}h{size:g}v{size:g}h{-size:g}z",
        "diamond": f"m0 {-a:g}l{a:g} {a:g} {-a:g} {a:g} {-a:g} {-a:g}z",
        "up": f"m0 {-1.2 * r:g}l{1.2 * r:g} {2.1 * r:g}h{-2.4 * r:g}z",
        "down": f"m0 {1.2 * r:g}l{1.2 * r:g} {-2.1 * r:g}h{-2.4 * r:g}z",
        "cross": f"m{-r / 3:g} {-r:g}{steps}z",
    }
    return f"M{place}{outline[shape]}"


def figure(picture: Markup, caption: Any, legend: Sequence[tuple[str, Any]] = ()) -> Markup:
    """Return a picture with its caption and legend.

    Parameters
    ----------
    picture : Markup
    caption : str or Markup
    legend : list of (str, str)
        Style of the mark ("s0 line", "sa dash", "s2 dot", "sb area", ...) and what it stands for.
        s0 to s7 are classes or outputs, sa what a picture shows, sb what stands out in it.

    Examples
    --------
    >>> from lssvm.report.charts import figure
    >>> from lssvm.report.markup import Markup
    >>> figure(Markup("<svg></svg>"), "a & b")
    '<figure><svg></svg><figcaption>a &amp; b</figcaption></figure>'
    """
    keys = None
    if legend:
        items = [
            tag("li", tag("span", class_=f"key {style}", aria_hidden="true"), " ", name)
            for style, name in legend
        ]
        keys = tag("ul", items, class_="legend" if len(items) <= LONG else "legend long")
    return tag("figure", picture, keys, tag("figcaption", caption))


def pictures(*figures: Any) -> Markup:
    """Return figures (and tables) beside each other where there is room."""
    return tag("div", *figures, class_="pictures")


def embedded(display: Display, caption: str) -> Markup:
    """Return a picture of `lssvm.plots`, light and dark; without matplotlib its caption alone."""
    try:
        light, dark = (
            "data:image/svg+xml;base64," + b64encode(display.svg(dark).encode()).decode()
            for dark in (False, True)
        )
    except MissingDependencyError as error:
        return tag("p", f"{caption} ({error})")
    scheme = "(prefers-color-scheme: dark)"
    source = tag("source", media=f"screen and {scheme}", srcset=dark)
    picture = tag("picture", source, tag("img", src=light, alt=caption))
    return tag("div", figure(picture, caption), class_="alone")


def alone(chart: Chart, caption: Any, legend: Sequence[tuple[str, Any]] = ()) -> Markup:
    """Return a picture that stands alone, its caption beside it where there is room."""
    return tag("div", figure(chart.svg(), caption, legend), class_="alone")
