"""The page around the sections."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import resources
from typing import Any

from lssvm._core.atomic import replacing
from lssvm.report.markup import Markup, tag

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
    title : str
    menu : str
        Title in the list at the top.
    body : list of Markup
        One below the other; None is nothing.
    """

    key: str
    title: str
    menu: str
    body: list[Any]

    def html(self) -> Markup:
        """Return the part with its heading."""
        return tag(
            "section",
            tag("h2", self.title, id=f"{self.key}-title"),
            self.body,
            id=self.key,
            class_="attention" if self.key == "notes" else None,
            aria_labelledby=f"{self.key}-title",
        )


def style() -> Markup:
    """Return the style sheet."""
    text = resources.files("lssvm.report").joinpath("style.css").read_text(encoding="utf-8")
    return Markup(" ".join(text.split()))


def page(title: str, facts: Markup, lead: Markup, sections: list[Section], footer: str) -> Markup:
    """Return the whole page.

    Parameters
    ----------
    title : str
    facts : Markup
        The line under the title.
    lead : Markup
        What was learned, in a sentence.
    sections : list of Section
    footer : str

    Examples
    --------
    >>> from lssvm.report.markup import Markup
    >>> from lssvm.report.page import page
    >>> made = page("a < b", Markup(), Markup("<p>x</p>"), [], "")
    >>> made.startswith("<!doctype html>"), "<title>a &lt; b</title>" in made
    (True, True)
    """
    links = [tag("li", tag("a", part.menu, href=f"#{part.key}")) for part in sections]
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
        tag("a", "Skip to the figures", href="#content", class_="skip"),
        tag("header", tag("h1", title), facts, lead),
        tag("nav", tag("ul", links), aria_label="Sections"),
        tag("main", [part.html() for part in sections], id="content"),
        tag("footer", tag("p", footer)),
    )
    return Markup("<!doctype html>\n" + tag("html", head, body, lang="en") + "\n")


def write_file(path: str | os.PathLike[str], text: str) -> None:
    """Write a page, which appears when it is complete."""
    with replacing(os.fspath(path)) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
