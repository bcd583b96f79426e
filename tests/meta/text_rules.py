"""Rules about texts, as functions from text to a list of violations."""

from __future__ import annotations

import ast
import re

LINE_LIMIT = 1000

STUMBLES = {  # what reads as translated, and what to write instead
    r"\bbeside\b": "compared with, next to, in addition to",
    r"(?<!there )\b(?:is|are|was|were) no\b(?! (?:longer|more|less|better|worse))": "is not a",
    r"\b(?:the|in) print\b": "the paper",
    r"\banew\b": "again",
    r"\bholes\b": "missing values",
    r"\b(?:says?|said|saying|tells?|told)\b": "predicts, states, shows, names",
    r"\bas (?:they|it) (?:are|is|comes?)\b": "raw, unchanged",
    r"\b(?:does|do|will do) as well\b": "works too",
    r"\bsome (?:hundred|thousand|million)s?\b": "a few thousand",
    r"\bwhich model when\b": "choosing a model",
    r"\bwhat is not there yet\b": "limitations",
    r"\bmake it again\b": "reproduce",
    r"\bleft out\b": "held out, dropped",
}

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


def stumbles(name: str, text: str) -> list[str]:
    """Return the phrases of a text that a reader stumbles over, with what to write instead."""
    found = []
    for phrase, better in STUMBLES.items():
        for match in re.finditer(phrase, text, re.IGNORECASE):
            around = " ".join(text[max(0, match.start() - 40) : match.end() + 30].split())
            found.append(f"{name}: ...{around}... (write: {better})")
    return found


def shown_strings(source: str) -> str:
    """Return the strings of a module that are not docstrings, a line each."""
    tree = ast.parse(source)
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts
    ]
    return "\n".join(strings)


_REFUSES = {"need", "not_known", "not_usable", "require", "warn", "_wrong"}


def raised_strings(source: str) -> str:
    """Return the strings of a module's errors and warnings, a line each."""

    def refuses(node: ast.AST) -> bool:
        name = node.func if isinstance(node, ast.Call) else None
        return (
            isinstance(node, ast.Raise)
            or getattr(name, "id", getattr(name, "attr", "")) in _REFUSES
        )

    inside = [node for top in ast.walk(ast.parse(source)) if refuses(top) for node in ast.walk(top)]
    strings = [n.value for n in inside if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return "\n".join(dict.fromkeys(strings))


def extras(source: str) -> set[str]:
    """Return the extras of this package that a source names, such as "[plots]"."""
    named = re.findall(r"""["']\[([a-z,]+)\]["']""", source)
    return {extra for names in named for extra in names.split(",")}
