"""The commands that README and documentation print."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from tests.meta.tree import ROOT

_MARKDOWN = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_RST = re.compile(r"^\.\. code-block:: console\n\n((?:   .*\n|\n)+)", re.MULTILINE)
SETUP = ("make ", "pip install ", "git clone ", "cd ")  # what makes an environment; CI does it


@dataclass(frozen=True)
class Page:
    """A page and its commands in their order, those that set up an environment left out."""

    name: str
    commands: tuple[str, ...]


def blocks(name: str, text: str) -> list[str]:
    """Return the console blocks of a Markdown or reStructuredText page."""
    if name.endswith(".md"):
        return _MARKDOWN.findall(text)
    return [textwrap.dedent(block) for block in _RST.findall(text)]


def commands(block: str) -> list[str]:
    """Return the commands of a block: what stands behind a dollar sign."""
    joined = block.replace("\\\n", " ")
    return [line[2:].strip() for line in joined.splitlines() if line.startswith("$ ")]


def pages() -> list[Page]:
    """Return all pages that print a command to run."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.rst"))]
    files += sorted((ROOT / "docs").glob("*.md"))
    found = []
    for path in files:
        name = str(path.relative_to(ROOT))
        every = [c for b in blocks(name, path.read_text(encoding="utf-8")) for c in commands(b)]
        used = tuple(c for c in every if not c.startswith(SETUP))
        if used:
            found.append(Page(name, used))
    return found
