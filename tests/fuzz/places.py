"""Places of the sources by function and meaning, whatever their files and local names are.

A pattern is an expression or a statement of Python in which a single capital letter stands for any
expression, the same one wherever the letter is repeated::

    1.0 / (A[:, None] + 1.0 / B)

A place is the function in which a pattern occurs, ``Class.method`` or a name; where no function is
called so any more, all functions are looked through. Files and local names play no part.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ANY = re.compile(r"[A-Z]\Z")
TOP = "(top)"
"""The place of what stands outside of functions, in a module or a class."""

_SKIPPED = ("ctx", "type_comment", "kind", "type_params")

Bound = dict[str, ast.AST]


class NotOnePlace(LookupError):
    """A pattern that occurs nowhere, or at several places."""


@dataclass(frozen=True)
class Place:
    """Where a pattern occurs: a file, the node in it, and what the letters stand for."""

    path: Path
    function: str
    node: ast.AST
    bound: tuple[tuple[str, ast.AST], ...]

    def changed(self, replacement: str) -> str:
        """Return the text of the file with the node replaced."""
        node = _Filled(dict(self.bound)).visit(_parsed(replacement))
        text = ast.unparse(node)
        if isinstance(node, ast.expr):
            text = f"({text})"
        lines = self.path.read_bytes().splitlines(keepends=True)
        first, last = self.node.lineno - 1, self.node.end_lineno - 1  # type: ignore[attr-defined]
        before = b"".join(lines[:first]) + lines[first][: self.node.col_offset]  # type: ignore[attr-defined]
        after = lines[last][self.node.end_col_offset :] + b"".join(lines[last + 1 :])  # type: ignore[attr-defined]
        return (before + text.encode() + after).decode()


class _Filled(ast.NodeTransformer):
    """Puts in what the letters stand for."""

    def __init__(self, bound: Bound) -> None:
        self.bound = bound

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.bound.get(node.id, node)


def _parsed(pattern: str) -> ast.AST:
    (statement,) = ast.parse(pattern).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def _same(mine: ast.AST, its: ast.AST) -> bool:
    return re.sub(r", ctx=\w+\(\)", "", ast.dump(mine)) == re.sub(
        r", ctx=\w+\(\)", "", ast.dump(its)
    )


def matches(pattern: object, node: object, bound: Bound) -> bool:
    """Return whether a node is what a pattern says; what its letters stand for goes to bound."""
    if isinstance(pattern, ast.Name) and _ANY.match(pattern.id):
        if not isinstance(node, ast.expr):
            return False
        return _same(bound.setdefault(pattern.id, node), node)
    if isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and all(
            matches(value, getattr(node, name), bound)
            for name, value in ast.iter_fields(pattern)
            if name not in _SKIPPED
        )
    if isinstance(pattern, list):
        return (
            isinstance(node, list)
            and len(pattern) == len(node)
            and all(matches(a, b, bound) for a, b in zip(pattern, node, strict=True))
        )
    return pattern == node


@cache
def functions(package: Path) -> tuple[tuple[Path, str, ast.AST], ...]:
    """Return the functions of a package, then what is outside of them: file, name, node."""

    def walk(path: Path, node: ast.AST, outer: str) -> Iterator[tuple[Path, str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                name = f"{outer}.{child.name}".lstrip(".")
                if isinstance(child, ast.FunctionDef):
                    yield path, name, child
                yield from walk(path, child, name)
            elif not isinstance(child, ast.expr):
                yield from walk(path, child, outer)

    parsed = {path: ast.parse(path.read_text("utf-8")) for path in sorted(package.rglob("*.py"))}
    inside = [one for path, module in parsed.items() for one in walk(path, module, "")]
    return (*inside, *((path, TOP, _Bare().visit(module)) for path, module in parsed.items()))


class _Bare(ast.NodeTransformer):
    """Leaves functions out."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        return None


@cache
def _nodes(top: ast.AST) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(top))


def find(package: Path, function: str, pattern: str, at: int | None = None) -> Place:
    """Return the one place where a pattern occurs.

    Parameters
    ----------
    package : Path
        A folder of sources.
    function : str
        ``name`` or ``Class.method``; where there is none of that name, all functions.
    pattern : str
    at : int, default=None
        Which of several occurrences, in the order of the text; by default there has to be one.
    """
    known = functions(package)
    inside = [one for one in known if one[1] == function or one[1].endswith(f".{function}")]
    places: dict[tuple[Path, int, int], Place] = {}
    wanted = _parsed(pattern)
    for path, name, top in inside or known:
        for node in _nodes(top):
            bound: Bound = {}
            if type(node) is type(wanted) and matches(wanted, node, bound):
                key = (path, node.lineno, node.col_offset)  # type: ignore[attr-defined]
                places[key] = Place(path, name, node, tuple(bound.items()))
    ordered = [places[key] for key in sorted(places, key=lambda k: (str(k[0]), k[1], k[2]))]
    if at is not None and at < len(ordered):
        return ordered[at]
    if len(ordered) == 1:
        return ordered[0]
    where = f"in {function}" if inside else f"anywhere ({function} is no function)"
    found = [f"{p.path.relative_to(package)}: {p.function}" for p in ordered]
    raise NotOnePlace(f"{pattern!r} occurs {len(ordered)} times {where}: {found}")
