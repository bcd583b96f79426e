"""Rules about texts, as functions from text to a list of violations."""

from __future__ import annotations

import re

LINE_LIMIT = 1000

_CITATION = re.compile(r"\[([A-Z][A-Za-z]*(?:19|20)\d\d[a-z]?)\b")
_BIB_ENTRY = re.compile(r"^@\w+\{([^,\s]+),", re.MULTILINE)
_OWNERS = "|".join(("home", "root", "work", "Users"))  # joined, or this file would break the rule
_MACHINE_PATH = re.compile(rf"(?<![\w.\-/~>)])/(?:{_OWNERS})/[\w.~]+|\b[A-Z]:\\Users\\\w+")


def bibliography_keys(bibliography: str) -> list[str]:
    """Return the keys of a BibTeX text, in its order."""
    return _BIB_ENTRY.findall(bibliography)


def cited_keys(source: str) -> set[str]:
    """Return the keys cited as ``[Key]`` or ``[Key, eq. (n)]`` in a source."""
    return set(_CITATION.findall(source))


def unknown_citations(name: str, source: str, bibliography: str) -> list[str]:
    """Return the citations of ``source`` that the bibliography does not hold."""
    unknown = cited_keys(source) - set(bibliography_keys(bibliography))
    return [f"{name} cites [{key}], which is not in the bibliography" for key in sorted(unknown)]


def length_violations(name: str, source: str) -> list[str]:
    """Return a violation for a module past the line limit."""
    lines = len(source.splitlines())
    return [f"{name} has {lines} lines; {LINE_LIMIT} is the limit"] * (lines > LINE_LIMIT)


def machine_paths(name: str, text: str) -> list[str]:
    """Return the absolute paths into somebody's own folders that a text holds."""
    return [f"{name} names {found}" for found in _MACHINE_PATH.findall(text)]
