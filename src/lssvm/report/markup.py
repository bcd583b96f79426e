"""Markup that is escaped unless it says that it is markup already."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable
from typing import Any

VOID = {"br", "circle", "line", "link", "meta", "path", "rect"}  # these have no end tag here


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
    return "".join(c if c in "\n\t" or not _odd(c) else "\ufffd" for c in text)


def _odd(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn")


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
    if name in VOID and not children:
        return Markup("".join(parts) + ("/>" if name in SVG_VOID else ">"))
    return Markup("".join(parts) + f">{join(children)}</{name}>")


SVG_VOID = {"circle", "line", "path", "rect"}


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
    found = []
    for child in children:
        nested = isinstance(child, (list, tuple))
        found.append(join(child) if nested else escape(child))
    return Markup("".join(found))


def table(
    caption: Any, head: list[Any], rows: Iterable[Iterable[Any]], *, numbers: bool = True
) -> Markup:
    """Return a table in a box that scrolls by itself where it is wider than the page.

    Parameters
    ----------
    caption : str or Markup
    head : list
        Names of the columns.
    rows : iterable of rows
        The first cell of each is its heading.
    numbers : bool, default=True
        Whether cells after the first are aligned as numbers.

    Examples
    --------
    >>> from lssvm.report.markup import table
    >>> "a</th><td>1</td>" in table("t", ["x", "y"], [["a", 1]])
    True
    """
    body = []
    for row in rows:
        first, *rest = row
        body.append(tag("tr", tag("th", first, scope="row"), [tag("td", cell) for cell in rest]))
    inner = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", [tag("th", name, scope="col") for name in head])),
        tag("tbody", body),
        class_="numbers" if numbers else None,
    )
    # Scrolled with the keyboard too, hence the tab stop and the name.
    return tag(
        "div", inner, class_="scroll", tabindex="0", role="region", aria_label=plain(caption)
    )


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
    inside, out = False, []
    for c in value:
        if c == "<":
            inside = True
        elif c == ">":
            inside = False
        elif not inside:
            out.append(c)
    return html.unescape("".join(out))
