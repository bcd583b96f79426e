"""HTML, in which everything is escaped unless it is markup already, and charts as inline SVG."""

from __future__ import annotations

import html
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from itertools import chain, repeat
from typing import Any

import numpy as np
from scipy.interpolate import griddata

from lssvm._core.arrays import FloatArray
from lssvm._core.atomic import replacing
from lssvm._core.version import __version__
from lssvm.plots import charts
from lssvm.report.text import MINUS, clean, short

VOID = {"br", "img", "link", "meta", "source"}  # these have no end tag
SVG_VOID = {"line", "path"}  # nor have these where they hold nothing


class Markup(str):
    """Text that is HTML already; everything else is escaped when it becomes part of a page.

    Examples
    --------
    >>> from lssvm.report.html import Markup, tag
    >>> tag("p", "1 < 2", Markup("<br>"))
    '<p>1 &lt; 2<br></p>'
    """

    __slots__ = ()


def escape(value: Any) -> Markup:
    """Return any value as text of a page; `Markup` is not changed, None is nothing.

    Characters that a page must not hold, or that turn the direction of the text around them, are
    replaced.

    Examples
    --------
    >>> from lssvm.report.html import escape
    >>> escape("<script>"), escape(3)
    ('&lt;script&gt;', '3')
    """
    if value is None:
        return Markup()
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(clean(value), quote=True))


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """Return an element.

    Parameters
    ----------
    name : str
    *children : any
        Text is escaped; lists are joined; None is omitted.
    **attributes : any
        A trailing underscore is dropped and other underscores become hyphens; None and False are
        omitted, True is a bare attribute.

    Examples
    --------
    >>> from lssvm.report.html import tag
    >>> tag("a", "see", href="#x", aria_label='"x"', class_=None)
    '<a href="#x" aria-label="&quot;x&quot;">see</a>'
    """
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        parts.append(f" {key}" if value is True else f' {key}="{escape(_number(value))}"')
    if not children and name in VOID | SVG_VOID:
        return Markup("".join(parts) + ("/>" if name in SVG_VOID else ">"))
    return Markup("".join(parts) + f">{join(children)}</{name}>")


def _number(value: Any) -> Any:
    """Return coordinates with as many digits as a screen shows."""
    return f"{value:.6g}" if isinstance(value, float) else value


def join(children: Iterable[Any]) -> Markup:
    """Return children one after the other, lists among them opened.

    Examples
    --------
    >>> from lssvm.report.html import join, tag
    >>> join(["a & b", [tag("b", "c"), None]])
    'a &amp; b<b>c</b>'
    """
    each = (join(c) if isinstance(c, (list, tuple)) else escape(c) for c in children)
    return Markup("".join(each))


def table(
    caption: Any, head: list[Any], rows: Iterable[Iterable[Any]], *, class_: str | None = "numbers"
) -> Markup:
    """Return a table in a box that scrolls by itself where it is wider than the page.

    Parameters
    ----------
    caption : str or Markup
    head : list
        Names of the columns.
    rows : iterable of rows
        The first cell of each is its heading; cells that are <td> or <th> are not changed.
    class_ : str or None, default="numbers"
        Cells after the first are aligned as numbers by default.

    Examples
    --------
    >>> from lssvm.report.html import table
    >>> "a</th><td>1</td>" in table("t", ["x", "y"], [["a", 1]])
    True
    """

    def cell(value: Any, **heading: str) -> Markup:
        if isinstance(value, Markup) and value.startswith(("<td", "<th")):
            return value
        return tag("th", value, **heading) if heading else tag("td", value)

    body = [tag("tr", cell(first, scope="row"), list(map(cell, rest))) for first, *rest in rows]
    if len(body) > LONG:
        class_ = f"{class_ or ''} long".strip()
    inner = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", [tag("th", name, scope="col") for name in head])),
        tag("tbody", body),
        class_=class_,
    )
    # Scrolled with the keyboard too, hence the tab stop and the name.
    named = {"role": "region", "aria_label": plain(caption)}
    return tag("div", inner, class_="scroll", tabindex="0", **named)


LONG = 14  # rows from which on a table may be broken between two sheets of paper


def bar_table(
    caption: str,
    head: list[str],
    rows: Iterable[tuple[Any, float, Any]],
    colours: Iterable[str] = (),
    *,
    signed: bool = False,
) -> Markup:
    """Return a table whose middle column is a bar.

    Parameters
    ----------
    caption : str
    head : list of 3 str
    rows : list of (name, value, text)
        Values below zero have no bar, or one to the left where bars are ``signed``.
    colours : list of str, default=()
        Classes of the bars ("s0", ...); one colour for all by default.
    signed : bool, default=False
        Whether bars begin in the middle.

    Examples
    --------
    >>> from lssvm.report.html import bar_table
    >>> rows = [("x", 2.0, "2"), ("y", -1.0, "-1")]
    >>> "width:100.0%" in bar_table("c", ["a", "", "b"], rows)
    True
    >>> "margin-left:25.0%;width:25.0%" in bar_table("c", ["a", "", "b"], rows, signed=True)
    True
    """
    lines = [(name, value if signed else max(value, 0.0), text) for name, value, text in rows]
    scale = (50.0 if signed else 100.0) / (max((abs(v) for _, v, _ in lines), default=0.0) or 1.0)
    body = []
    for (name, value, text), colour in zip(lines, chain(colours, repeat("main")), strict=False):
        left = f"margin-left:{50.0 + min(scale * value, 0.0):.1f}%;" if signed else ""
        width = f"{left}width:{abs(scale * value):.1f}%"
        bar = tag("div", style=width, class_=colour if value or signed else "none")
        heading = tag("th", short(name, 50), scope="row", title=str(name))
        body.append([heading, tag("td", bar, class_="track sign" if signed else "track"), text])
    return table(caption, head, body, class_=f"bars {'signed ' if signed else ''}numbers")


def paragraph(text: Any) -> Markup:
    """Return the paragraph that explains what follows."""
    return tag("p", text, class_="why")


def details(title: str, *inner: Any) -> Markup:
    """Return what is shown when its title is pressed."""
    return tag("details", tag("summary", title), *inner)


def bullets(lines: Iterable[Any]) -> Markup:
    """Return a list of lines."""
    return tag("ul", [tag("li", line) for line in lines], class_="notes")


def tiles(lines: Iterable[tuple[str, str, str]]) -> Markup:
    """Return values that stand out: the name of each, its value, and the words below it."""
    each = []
    for name, value, below in lines:
        inner = tag("div", value, class_="value"), tag("div", below, class_="range")
        each.append(tag("div", tag("dt", name), tag("dd", *inner), class_="tile"))
    return tag("dl", each, class_="tiles")


def plain(value: Any) -> str:
    """Return text without tags, for a label.

    Examples
    --------
    >>> from lssvm.report.html import plain, tag
    >>> plain(tag("b", "x < y"))
    'x < y'
    """
    if not isinstance(value, Markup):
        return clean(value)
    return html.unescape(re.sub("<[^>]*>", "", value))


# Nothing may be loaded and nothing may run, whatever text the data brought into the page.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes
    ----------
    key : str
        For links.
    title, menu : str
        The title, and a short one for the list at the top.
    text : str, list or None
        The first paragraph: what the section shows.
    body : list of Markup
        One below the other; None is nothing.
    """

    key: str
    title: str
    menu: str
    text: Any
    body: Sequence[Any] = ()

    def html(self) -> Markup:
        """Return the part with its heading."""
        return tag(
            "section",
            tag("h2", self.title, id=f"{self.key}-title"),
            paragraph(self.text) if self.text else None,
            self.body,
            id=self.key,
            class_="attention" if self.key == "notes" else None,
            aria_labelledby=f"{self.key}-title",
        )


def with_notes(
    sections: Iterable[Section | None],
    notes: list[str],
    settings: Mapping[str, Any],
    others: Iterable[str] = (),
) -> list[Section]:
    """Return the sections that are not None, with one of the notes behind the metrics.

    Warnings and notes of the settings, and others, are added; equal notes are listed once.
    """
    supplied = [clean(note) for key in ("warnings", "notes") for note in settings.get(key) or ()]
    notes[:] = dict.fromkeys([*notes, *supplied, *others])
    result = []
    for section in filter(None, sections):
        result.append(section)
        if section.key == "figures" and notes:
            listed = bullets(notes)
            result.append(Section("notes", "What to keep in mind", "Notes", None, [listed]))
    return result


def style() -> Markup:
    """Return the style sheet."""
    text = resources.files("lssvm.report").joinpath("style.css").read_text(encoding="utf-8")
    return Markup(" ".join(text.split()))


def page(title: str, facts: str, lead: Markup, sections: Iterable[Section]) -> Markup:
    """Return the whole page.

    Parameters
    ----------
    title : str
    facts : str
        The line under the title.
    lead : Markup
        The first sentences.
    sections : list of Section

    Examples
    --------
    >>> from lssvm.report.html import Markup
    >>> from lssvm.report.html import page
    >>> made = page("a < b", "", Markup("<p>x</p>"), [])
    >>> made.startswith("<!doctype html>"), "<title>a &lt; b</title>" in made
    (True, True)
    """
    parts, title = list(sections), clean(title)
    links = [tag("li", tag("a", part.menu, href=f"#{part.key}")) for part in parts]
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="lssvm"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", style()),
    )
    body = tag(
        "body",
        tag("a", "Skip to the metrics", href="#content", class_="skip"),
        tag("header", tag("h1", title), tag("p", facts, class_="facts"), lead),
        tag("nav", tag("ul", links), aria_label="Sections"),
        tag("main", [part.html() for part in parts], id="content"),
        tag(
            "footer", tag("p", f"Written on {now} by lssvm {__version__}. This page loads nothing.")
        ),
    )
    return Markup("<!doctype html>\n" + tag("html", head, body, lang="en") + "\n")


def write_page(path: str | os.PathLike[str], *contents: Any) -> None:
    """Write a page of these contents (see `page`), which appears when it is complete."""
    with replacing(os.fspath(path)) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write(page(*contents))


MARGIN = 0.04  # of the range of the values, on either side
WIDTH = 400  # of a picture in its own units, about as many pixels as a telephone shows
LETTER = 6.6  # mean width of a letter in them
BAR = 52.0  # width of the scale of a heat map with its names
SHADES = 12  # of a heat map
LAYERS = 6  # of half transparent points, so that dense places look dense
N_COLOURS = 8
KEYS = 7  # entries of a legend that are listed below each other where there is room


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic map from values to places of a picture.

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
    >>> from lssvm.report.html import Scale
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
        limits: tuple[float, float] | None = None,
        *,
        log: bool = False,
        zero: bool = False,
        margin: float = MARGIN,
    ) -> Scale:
        """Return the scale between limits, or else of all finite values with a margin."""
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
        edge = margin * (high - low)
        return cls(low if zero and low == 0.0 else low - edge, high + edge, start, stop, log)

    def __call__(self, values: Any) -> Any:
        """Return the places of values."""
        array = np.asarray(values, dtype=np.float64)
        if self.log:
            array = np.log10(np.maximum(array, 1e-300))
        share = (array - self.low) / (self.high - self.low)
        places = self.start + share * (self.stop - self.start)
        return float(places) if array.ndim == 0 else places

    def ticks(self, count: int = 5) -> charts.Ticks:
        """Return about ``count`` round values, with their names."""
        if self.log:
            return [(10.0**p, name) for p, name in charts.log_ticks(self.low, self.high, count)]
        values = nice_ticks(self.low, self.high, count)
        return list(zip(values, tick_names(values), strict=True))


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round values between two ends.

    Examples
    --------
    >>> from lssvm.report.html import nice_ticks
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
    >>> from lssvm.report.html import tick_names
    >>> tick_names([0.0, 0.5, 1.0]), tick_names([0.0, 2e6])
    (['0.0', '0.5', '1.0'], ['0', '2,000,000'])
    """
    largest = max((abs(v) for v in values), default=0.0)
    if largest >= 1e7 or 0 < largest < 1e-3:
        return [f"{v:.3g}" for v in values]
    for digits in range(7):
        if all(abs(round(v, digits) - v) <= 1e-9 * max(largest, 1e-12) for v in values):
            break
    comma = "," if largest >= 1e4 else ""  # years have none
    return [f"{v:{comma}.{digits}f}".replace("-", MINUS) for v in values]


def svg(chart: charts.Chart, height: int = 290) -> Markup:
    """Return a chart as SVG.

    Examples
    --------
    >>> from lssvm.plots.charts import Chart, Line
    >>> from lssvm.report.html import svg
    >>> made = svg(Chart("a line", "x", "y", [Line([0, 1], [0, 2])]))
    >>> made.startswith("<svg"), "a line" in made
    (True, True)
    """
    maps = [mark for mark in chart.marks if isinstance(mark, charts.HeatMap)]
    margin = 0.0 if any(np.ndim(mark.values) == 2 for mark in maps) else MARGIN
    vertical = chart.values("y"), height - 44.0, 10.0, chart.y_limits
    y = Scale.of(*vertical, zero=chart.y_zero, margin=margin)
    y_ticks = y.ticks() if chart.y_ticks is None else chart.y_ticks
    left = 26.0 + LETTER * min(max((len(name) for _, name in y_ticks), default=1), 12)
    horizontal = chart.values("x"), left, WIDTH - 10.0 - BAR * bool(maps), chart.x_limits
    x = Scale.of(*horizontal, log=chart.x_log, margin=margin)
    x_ticks = x.ticks() if chart.x_ticks is None else chart.x_ticks
    text = [_label(short(name, 12), left - 6, y(value) + 4, "end") for value, name in y_ticks]
    text += [_label(short(name, 12), x(value), y.start + 16) for value, name in x_ticks]
    lines = [f"M{left:.1f} {y(value):.1f}H{x.stop:.1f}" for value, _ in y_ticks]
    lines += [f"M{x(value):.1f} {y.stop:.1f}V{y.start:.1f}" for value, _ in x_ticks]
    turned = (y.start + y.stop) / 2
    turn = f"rotate(-90 13 {turned:.1f})"
    return tag(
        "svg",
        tag("title", chart.title),
        [tag("g", list(_heat_map(mark, x, y)), shape_rendering="crispEdges") for mark in maps],
        None if maps else tag("path", d="".join(lines), class_="grid"),
        tag("g", text, class_="ticks"),
        _label(short(chart.x_label, 56), (left + x.stop) / 2, height - 7, class_="axis"),
        _label(short(chart.y_label, 46), 13, turned, transform=turn, class_="axis"),
        [list(_mark_elements(mark, x, y)) for mark in chart.marks],
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_label=clean(chart.title),
    )


def _mark_elements(mark: charts.Mark, x: Scale, y: Scale) -> Iterator[Markup]:
    """Yield the elements of a mark."""
    colour, opacity = colour_class(mark.colour), None if mark.opacity == 1.0 else mark.opacity
    match mark:
        case charts.Line(width=width):
            path = _path(_places(mark.x, mark.y, x, y))
            if mark.outlined:
                yield tag("path", d=path, class_="ln paper", stroke_width=width + 2.0)
            style = {"stroke_width": width, "stroke_opacity": opacity}
            dashes = "5 4" if mark.dashed else None
            yield tag("path", d=path, class_=f"ln {colour}", stroke_dasharray=dashes, **style)
        case charts.Band():
            low, high = (_places(mark.x, ends, x, y) for ends in mark.y)
            outline = "L".join([*high, *low[::-1]])
            yield tag("path", d=f"M{outline}Z", class_=f"fl {colour}", fill_opacity=opacity)
        case charts.Whiskers():
            low, high = (_places(mark.x, ends, x, y) for ends in mark.y)
            path = "".join(f"M{a}L{b}" for a, b in zip(low, high, strict=True))
            style = {"stroke_width": mark.width, "stroke_opacity": opacity}
            yield tag("path", d=path, class_=f"ln {colour}", **style)
        case charts.Bars():
            base, edges = y(0.0), x(mark.x)
            path = "".join(
                f"M{a:.1f} {base:.1f}V{top:.1f}H{b:.1f}V{base:.1f}Z"
                for a, b, top in zip(edges[:-1], edges[1:], y(mark.y), strict=True)
                if base - top > 0.05
            )
            yield tag("path", d=path, class_=f"fl bar {colour}", opacity=opacity)
        case charts.Rule():
            across, up = [x.start, x.stop], [y.stop, y.start]
            across = across if mark.x is None else [x(mark.x)] * 2
            up = up if mark.y is None else [y(mark.y)] * 2
            yield tag("line", class_="rule", x1=across[0], x2=across[1], y1=up[0], y2=up[1])
        case charts.Star():
            angle = np.arange(10) * np.pi / 5
            radius = np.where(np.arange(10) % 2 == 0, 9.5, 4.0)
            corners = x(mark.x) + radius * np.sin(angle), y(mark.y) - radius * np.cos(angle)
            inner = tag("path", tag("title", mark.label), d=f"M{'L'.join(_decimals(*corners))}Z")
            yield tag("g", inner, class_=f"fl star {colour}")
        case charts.Words():
            for text, a, b in zip(mark.texts, x(mark.x), y(mark.y), strict=True):
                yield _label(text, a, b, class_="word")
        case charts.Points():
            yield from _points(mark, _places(mark.x, mark.y, x, y), colour, opacity)


def _points(mark: charts.Points, places: list[str], colour: str, opacity: Any) -> Iterator[Markup]:
    """Yield markers; many half transparent ones add up where they are dense."""
    layers = LAYERS if opacity is not None and len(places) > 50 else 1
    outline = _outline(shape := _shape(mark), mark.size)
    kind, width = ("dt", mark.size) if shape == "dot" else ("fl", None)
    style = {"class_": f"{kind} {colour}", "stroke_width": width, "opacity": opacity}
    for layer in range(layers):
        path = "".join(f"M{at}{outline}" for at in places[layer::layers])
        if path and mark.outlined:
            yield tag("path", d=path, class_="dt ring", stroke_width=(width or 0.0) + 2.2)
        if path:
            yield tag("path", d=path, **style)


def _shape(mark: charts.Points) -> str:
    """Return the shape of points; that of a class changes where colours begin again."""
    turn = mark.colour // N_COLOURS if isinstance(mark.colour, int) else 0
    return mark.shape or charts.SHAPES[turn % len(charts.SHAPES)]


def _outline(shape: str, size: float) -> str:
    """Return the path of a marker from its middle."""
    r = size / 2
    a, b = 1.3 * r, 2 * r / 3
    right, left = f"h{b:g}", f"h{-b:g}"
    steps = f"{right}v{b:g}" * 2 + f"{left}v{b:g}" + f"{left}v{-b:g}" * 2 + right
    return {
        "dot": "h.01",
        "square": f"m{-r:g} {-r:g}h{size:g}v{size:g}h{-size:g}z",
        "diamond": f"m0 {-a:g}l{a:g} {a:g} {-a:g} {a:g} {-a:g} {-a:g}z",
        "up": f"m0 {-1.2 * r:g}l{1.2 * r:g} {2.1 * r:g}h{-2.4 * r:g}z",
        "down": f"m0 {1.2 * r:g}l{1.2 * r:g} {-2.1 * r:g}h{-2.4 * r:g}z",
        "cross": f"m{-r / 3:g} {-r:g}{steps}z",
    }[shape]


def _heat_map(mark: charts.HeatMap, x: Scale, y: Scale) -> Iterator[Markup]:
    """Yield the cells of a heat map by their shades, and the scale to its right."""
    values, across, up = np.asarray(mark.values), np.asarray(mark.x), np.asarray(mark.y)
    if values.ndim == 1:  # scattered: interpolated on a grid
        corners = across, up
        across, up = (np.linspace(v.min(), v.max(), 61) for v in corners)
        middles = np.meshgrid(*((edges[1:] + edges[:-1]) / 2 for edges in (across, up)))
        values = griddata(np.column_stack(corners), values, tuple(middles), rescale=True)
    low, high = np.nanmin(values), np.nanmax(values)
    share = (values - low) / ((high - low) or 1.0)
    share = 1.0 - share if mark.loss else share
    levels = np.where(np.isnan(share), -1, np.floor(SHADES * share).clip(0, SHADES - 1))
    px, py, colour = x(across), y(up), colour_class(mark.colour)
    left, bar = x.stop + 10.0, np.linspace(y.start - 14.0, y.stop + 14.0, SHADES + 1)
    for level in range(SHADES):
        cells = [f"M{left:.1f} {bar[level]:.1f}h12V{bar[level + 1]:.1f}h-12Z"]
        for i, row in enumerate(levels == level):
            (changes,) = np.nonzero(np.diff(row, prepend=False, append=False))
            for a, b in changes.reshape(-1, 2):
                cells.append(f"M{px[a]:.1f} {py[i]:.1f}H{px[b]:.1f}V{py[i + 1]:.1f}H{px[a]:.1f}Z")
        style = {"class_": f"fl {colour} cell", "fill_opacity": 0.04 + 0.86 * level / (SHADES - 1)}
        yield tag("path", d="".join(cells), **style)
    ends = mark.ends[::-1] if mark.loss else mark.ends
    places = zip(ends, (bar[0] + 13.0, bar[-1] - 5.0), strict=True)
    names = [_label(name, WIDTH - 2.0, at, "end") for name, at in places]
    yield tag("g", names, class_="ticks")


def _places(values: Any, heights: Any, x: Scale, y: Scale) -> list[str]:
    """Return finite points as places; those outside the axes are drawn at their ends."""
    px, py = np.broadcast_arrays(np.atleast_1d(x(values)), np.atleast_1d(y(heights)))
    keep = np.isfinite(px) & np.isfinite(py)
    return _decimals(np.clip(px[keep], x.start, x.stop), np.clip(py[keep], y.stop, y.start))


def _decimals(px: FloatArray, py: FloatArray) -> list[str]:
    """Return places to a tenth of a unit."""
    return [f"{a:.1f} {b:.1f}".replace(".0", "") for a, b in zip(px, py, strict=True)]


def _path(places: list[str]) -> str:
    return f"M{places[0]}" + ("L" + " ".join(places[1:]) if places[1:] else "h0") if places else ""


def _label(text: Any, x: float, y: float, anchor: str = "middle", **more: Any) -> Markup:
    return tag("text", text, x=x, y=y, text_anchor=anchor, **more)


def colour_class(colour: charts.Colour) -> str:
    """Return the class of the style sheet for a colour."""
    return f"s{colour % N_COLOURS}" if isinstance(colour, int) else colour


def figure(chart: charts.Chart, caption: Any, *, height: int = 290, alone: bool = False) -> Markup:
    """Return a chart with a legend of its labelled marks and a caption.

    Parameters
    ----------
    chart : Chart
    caption : str or Markup
    height : int, default=290
    alone : bool, default=False
        Whether nothing is next to it but its caption, where there is room.

    Examples
    --------
    >>> from lssvm.plots.charts import Chart, Line
    >>> from lssvm.report.html import figure
    >>> made = figure(Chart("t", "x", "y", [Line([0, 1], [0, 2], "up")]), "a & b")
    >>> 'class="key main line"' in made, "<figcaption>a &amp; b</figcaption>" in made
    (True, True)
    """
    kinds = {charts.Band: "area", charts.Bars: "square", charts.Star: "star", charts.Rule: "dash"}
    items = []
    for mark in chart.marks:
        if mark.label and not isinstance(mark, charts.HeatMap):
            kind = kinds.get(type(mark), "line")
            if isinstance(mark, charts.Points):
                kind = "ring" if mark.outlined and _shape(mark) == "dot" else _shape(mark)
            elif isinstance(mark, charts.Line) and mark.dashed:
                kind = "dash"
            style = f"key {colour_class(mark.colour)} {kind}"
            items.append(tag("li", tag("span", class_=style, aria_hidden="true"), " ", mark.label))
    listed = tag("ul", items, class_="legend" if len(items) <= KEYS else "legend long")
    block = tag("figure", svg(chart, height), listed if items else None, tag("figcaption", caption))
    return tag("div", block, class_="alone") if alone else block


def pictures(*figures: Any) -> Markup:
    """Return figures (and tables) next to each other where there is room."""
    return tag("div", *figures, class_="pictures")
