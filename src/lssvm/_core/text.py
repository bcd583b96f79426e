"""Names that came from outside, written so that a terminal shows what is in them."""

from __future__ import annotations

import unicodedata

# Control characters, format characters (direction marks, zero widths), surrogates, code points
# without a character, and the two separators that break a line.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})


def printable(text: object, limit: int = 200) -> str:
    """Write a name for a message: what a terminal would obey or hide becomes an escape.

    Names of files, columns and labels come from other people. An escape sequence in one could
    repaint the screen, a direction mark could show a name in another order than it has.
    """
    whole = text if isinstance(text, str) else str(text)
    shown = "".join(map(_visible, whole[:limit]))
    return shown if len(whole) <= limit else shown + "..."


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN:
        return character
    return character.encode("unicode_escape").decode("ascii")
