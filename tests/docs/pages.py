"""The Python code that the documentation prints, and how a page is run."""

from __future__ import annotations

import doctest
import re
import textwrap
from dataclasses import dataclass
from typing import Any

from tests.meta.tree import ROOT

_BLOCK = re.compile(r"^( *)\.\. code-block:: python\n\n((?:\1 +.*\n|\n)+)", re.MULTILINE)
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass(frozen=True)
class Piece:
    """A code block, or an example of an interactive session with what it has to print."""

    line: int
    source: str
    example: doctest.Example | None = None


def pieces(text: str) -> list[Piece]:
    """Return the code of a reStructuredText page in the order in which it is printed."""
    found = [
        Piece(text.count("\n", 0, match.start(2)) + 1, textwrap.dedent(match[2]))
        for match in _BLOCK.finditer(text)
        if ">>>" not in match[2]
    ]
    sessions = doctest.DocTestParser().get_examples(text)
    found += [Piece(session.lineno + 1, session.source, session) for session in sessions]
    return sorted(found, key=lambda piece: piece.line)


def pages() -> dict[str, list[Piece]]:
    """Return the pages that print Python code."""
    texts = {path.stem: path.read_text() for path in sorted((ROOT / "docs").glob("*.rst"))}
    return {name: code for name, text in texts.items() if (code := pieces(text))}


def run(name: str, code: list[Piece], names: dict[str, Any], skipped: tuple[str, ...] = ()) -> None:
    """Run a page in the namespace ``names``, but the blocks that hold one of ``skipped``.

    Raises whatever the code raises, and AssertionError where an example prints something else.
    """
    left = set(skipped)
    names["__name__"] = "__main__"
    for piece in code:
        reasons = {words for words in skipped if words in piece.source}
        left -= reasons
        if reasons:
            continue
        # The lines of the page are those of the error message.
        source = "\n" * (piece.line - 1) + piece.source
        if piece.example is None:
            exec(compile(source, f"{name}.rst", "exec"), names)
        else:
            _compare(name, piece, names)
    assert not left, f"{name}.rst has no block with {sorted(left)}"


def _compare(name: str, piece: Piece, names: dict[str, Any]) -> None:
    """Run an example and compare what it prints."""
    said: list[str] = []
    test = doctest.DocTest([piece.example], names, name, f"{name}.rst", 0, None)
    runner = doctest.DocTestRunner(verbose=False, optionflags=_FLAGS)
    runner.run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert runner.failures == 0, "".join(said)
