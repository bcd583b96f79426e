"""Numbers, texts and the page: everything is escaped unless it is markup already."""

from __future__ import annotations

import html
import math
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from itertools import chain, repeat
from typing import Any

from lssvm._core.atomic import replacing
from lssvm._core.version import __version__

UNKNOWN = "\u2013"  # a dash in the place of a number
MINUS = "\u2212"


def number(value: float) -> str:
    """Return a number to three significant digits (whole ones without zeros behind a point).

    Thousands are marked from 10,000 on, so that a year is a year.

    Examples
    --------
    >>> from lssvm.report.markup import number
    >>> number(2005), number(12345.6), number(0.00012345), number(0.5), number(-3.14159)
    ('2005', '12,346', '0.000123', '0.500', '−3.14')
    """
    value = float(value)
    if not math.isfinite(value):
        return UNKNOWN if math.isnan(value) else ("∞" if value > 0 else f"{MINUS}∞")
    whole = value.is_integer()
    value = value if abs(value) >= 1000 else float(f"{value:.3g}")  # 0.9999 is 1.00, not 1.000
    size = math.floor(math.log10(abs(value))) if value else 0
    if not -5 <= size < 9:
        return f"{value:.2e}".replace("-", MINUS)
    mark = "," if size >= 4 else ""
    return f"{value:{mark}.{0 if whole else max(0, 2 - size)}f}".replace("-", MINUS)


def plus_minus(value: float, error: float, *, sign: bool = False) -> str:
    """Return a number with its uncertainty: both to the second digit of the latter.

    Examples
    --------
    >>> from lssvm.report.markup import plus_minus
    >>> plus_minus(2.5412, 0.737), plus_minus(-0.0334, 0.0021, sign=True), plus_minus(12.345, 0.0)
    ('2.54 ± 0.74', '−0.0334 ± 0.0021', '12.3')
    """
    lead = "+" if sign and value > 0 else ""
    if not (error > 0 and math.isfinite(error) and math.isfinite(value)):
        return lead + number(value)
    size = math.floor(math.log10(error))
    if not -7 < size < 6:
        return f"{lead}{number(value)} ± {number(error)}"
    digits = max(0, 1 - size)
    return lead + f"{value:,.{digits}f} ± {error:,.{digits}f}".replace("-", MINUS)


def percent(share: float, digits: int = 1) -> str:
    """Return a share as per cent, never rounded to 0 or 100 where it is not.

    Examples
    --------
    >>> from lssvm.report.markup import percent
    >>> percent(0.8631), percent(1.0), percent(0.99996), percent(0.00001), percent(0.5, 0)
    ('86.3 %', '100 %', '> 99.9 %', '< 0.1 %', '50 %')
    """
    if not math.isfinite(share):
        return UNKNOWN
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    text = f"{100 * share:.{digits}f}"
    edge = 10.0**-digits
    if float(text) >= 100.0 and share < 1.0:
        return f"> {100 - edge:.{digits}f} %"
    if float(text) == 0.0 and share > 0.0:
        return f"< {edge:.{digits}f} %"
    return f"{text} %"


def duration(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> from lssvm.report.markup import duration
    >>> duration(0.012), duration(3.14), duration(75), duration(7300)
    ('12 ms', '3.1 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def short(text: Any, length: int = 18) -> str:
    """Return a text, its middle left out where it is long.

    Examples
    --------
    >>> from lssvm.report.markup import short
    >>> short("a_very_long_name_of_a_column", 13)
    'a_very…column'
    """
    words = " ".join(str(text).split())
    if len(words) <= length:
        return words
    head = (length - 1) // 2
    return f"{words[:head]}…{words[len(words) - (length - 1 - head) :]}"


def quoted(text: Any, length: int = 40) -> str:
    """Return a text in quotation marks, shortened where it is long.

    Examples
    --------
    >>> from lssvm.report.markup import quoted
    >>> quoted("age")
    '“age”'
    """
    return f"“{short(text, length)}”"


def listing(names: Sequence[str]) -> str:
    """Return names in a sentence.

    Examples
    --------
    >>> from lssvm.report.markup import listing
    >>> listing(["a", "b", "c"]), listing(["a"]), listing([])
    ('a, b and c', 'a', '')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


VOID = {"br", "img", "link", "meta", "source"}  # these have no end tag
SVG_VOID = {"line", "path"}  # nor have these where they hold nothing


class Markup(str):
    """Text that is HTML already; everything else is escaped when it becomes part of a page.

    Examples
    --------
    >>> from lssvm.report.markup import Markup, tag
    >>> tag("p", "1 < 2", Markup("<br>"))
    '<p>1 &lt; 2<br></p>'
    """

    __slots__ = ()


def escape(value: Any) -> Markup:
    """Return any value as text of a page; `Markup` stays as it is, None is nothing.

    Characters that a page must not hold, or that turn the direction of the text around them, are
    replaced.

    Examples
    --------
    >>> from lssvm.report.markup import escape
    >>> escape("<script>"), escape(3)
    ('&lt;script&gt;', '3')
    """
    if value is None:
        return Markup()
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(clean(value), quote=True))


def clean(value: Any) -> str:
    """Return a value as text without control characters and lone surrogates.

    Examples
    --------
    >>> from lssvm.report.markup import clean
    >>> clean("a" + chr(0) + "b"), clean("x" + chr(0x202E) + "y") == "x" + chr(0xFFFD) + "y"
    ('a\ufffdb', True)
    """
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    odd = ("Cc", "Cf", "Cs", "Co", "Cn")
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in odd else "\ufffd" for c in text
    )


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """Return an element.

    Parameters
    ----------
    name : str
    *children : any
        Text is escaped; lists are joined; None is left out.
    **attributes : any
        A trailing underscore is dropped and other underscores become hyphens; None and False are
        left out, True is a bare attribute.

    Examples
    --------
    >>> from lssvm.report.markup import tag
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
    >>> from lssvm.report.markup import join, tag
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
        The first cell of each is its heading; cells that are <td> or <th> already stay as they are.
    class_ : str or None, default="numbers"
        Cells after the first are aligned as numbers by default.

    Examples
    --------
    >>> from lssvm.report.markup import table
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
    >>> from lssvm.report.markup import bar_table
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


def more(title: str, *inner: Any) -> Markup:
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
    >>> from lssvm.report.markup import plain, tag
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
    words : str, list or None
        The first paragraph: what the section shows.
    body : list of Markup
        One below the other; None is nothing.
    """

    key: str
    title: str
    menu: str
    words: Any
    body: Sequence[Any] = ()

    def html(self) -> Markup:
        """Return the part with its heading."""
        return tag(
            "section",
            tag("h2", self.title, id=f"{self.key}-title"),
            tag("p", self.words, class_="why") if self.words else None,
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
    given = [clean(note) for key in ("warnings", "notes") for note in settings.get(key) or ()]
    notes[:] = dict.fromkeys([*notes, *given, *others])
    made = []
    for section in filter(None, sections):
        made.append(section)
        if section.key == "figures" and notes:
            listed = bullets(notes)
            made.append(Section("notes", "What to keep in mind", "Notes", None, [listed]))
    return made


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
    >>> from lssvm.report.markup import Markup
    >>> from lssvm.report.markup import page
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
