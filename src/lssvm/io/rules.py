"""Rules for values that came from a file, written as short texts.

A rule is a kind, the lengths of the axes, and conditions; ``|`` separates alternatives::

    floats m k                  a finite array of float64 or float32 of shape (m, k)
    none | floats n >=0         nothing, or n numbers that are not negative
    wholes * >=0 <n distinct    any number of whole numbers from 0 to n - 1, none of them twice
    whole =d >=1                a whole number; d is its value from now on
    list k of Isotonic/Sigmoid  k objects of these classes
    DualPart n k q=2            a record whose own n and k are ours, and whose q is 2

A letter stands for the same length wherever it is; its first use says which.

Kinds: ``none bool text whole number``, ``score`` (a number, or NaN or infinite), arrays ``floats``
(finite), ``doubles`` (float64 alone), ``scores`` (floats, with NaN), ``wholes`` (signed),
``keys`` (uint64), ``mask``, ``rows`` (dense floats or sparse), ``list``, ``tuple``, ``dict``,
``any``, and names of records. Conditions: ``>= > <= <`` and a number or a letter (one that nothing
has said yet compares with nothing), ``sorted rising distinct some``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from lssvm._core.errors import ModelFileError
from lssvm._core.text import printable

Lengths = dict[str, int]
Check = Callable[[Any, Lengths], None]
"""Checks a record, whose letters it may use."""

_ARRAYS = {"floats": "f", "doubles": "f", "scores": "f", "rows": "f"}
_ARRAYS |= {"wholes": "i", "keys": "u", "mask": "b"}
_EXACT = {"doubles": np.float64, "keys": np.uint64}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}
_ORDER: dict[str, Callable[[Any], Any]] = {
    "sorted": lambda a: np.all(a[:-1] <= a[1:]),
    "rising": lambda a: np.all(a[:-1] < a[1:]),
    "distinct": lambda a: len(np.unique(a)) == len(a),
    "some": len,
}


@dataclass(frozen=True)
class Rule:
    """One alternative of a rule, taken apart."""

    kind: str
    axes: tuple[str, ...]
    conditions: tuple[str, ...]
    each: str


@cache
def parse(rule: str) -> tuple[Rule, ...]:
    """Take a rule apart into its alternatives.

    Examples
    --------
    >>> from lssvm.io.rules import parse
    >>> parse("none | floats m >=0")[1]
    Rule(kind='floats', axes=('m',), conditions=('>=0',), each='')
    """
    found = []
    for text in rule.split("|"):
        head, _, each = text.partition(" of ")
        kind, *rest = head.split()
        axes = [t for t in rest if re.fullmatch(r"\*|\d+|[a-z](=[a-z0-9]+)?", t)]
        found.append(Rule(kind, tuple(axes), tuple(t for t in rest if t not in axes), each.strip()))
    return tuple(found)


def table(text: str) -> dict[str, dict[str, str]]:
    """Read a table of rules: ``Name: field rule; field rule``, longer ones over indented lines.

    Examples
    --------
    >>> from lssvm.io.rules import table
    >>> table("Map: T floats m r; cut number")
    {'Map': {'T': 'floats m r', 'cut': 'number'}}
    """
    lines = re.sub(r"\n\s+", " ", text.strip()).splitlines()
    pairs = [line.split(":", 1) for line in lines]
    return {
        name: dict(one.split(maxsplit=1) for one in rules.split(";") if one.strip())
        for name, rules in pairs
    }


def check_parameters(values: dict[str, Any]) -> None:
    """Refuse parameters with sparse matrices, which no parameter is: comparing takes their shape.

    Examples
    --------
    >>> from lssvm.io.rules import check_parameters
    >>> check_parameters({"C": 1.0, "cv": [1, 2]})
    """
    waiting: list[Any] = [values]
    while waiting:
        value = waiting.pop()
        need(not isinstance(value, (csr_array, csr_matrix)), "a parameter is a sparse matrix")
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple)):
            waiting += value


def need(condition: Any, what: str) -> None:
    """Raise where what a file says does not fit together."""
    if not condition:
        raise ModelFileError(f"The file does not fit together: {what}.")


class Book:
    """The rules of records, by the names of their classes.

    Parameters
    ----------
    rules : mapping from names to mappings from fields to rules
        A field that ends in ``?`` may be missing.
    checks : mapping from names to callables
        What no rule says: each raises a `ModelFileError` for a record that is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.io.rules import Book
    >>> values = {"a": np.ones((2, 3)), "b": np.ones(3)}
    >>> Book({}).check(values, {"a": "floats m k", "b": "floats k"})
    {'m': 2, 'k': 3}
    """

    def __init__(
        self, rules: Mapping[str, Mapping[str, str]], checks: Mapping[str, Check] | None = None
    ) -> None:
        self._rules, self._checks = rules, checks or {}

    def check_record(self, record: Any, name: str, lengths: Lengths | None = None) -> Lengths:
        """Check a record of a class; return what its letters stand for."""
        found = self.check(vars(record), self._rules.get(name, {}), lengths)
        if name in self._checks:
            self._checks[name](record, found)
        return found

    def check(
        self, values: Mapping[str, Any], rules: Mapping[str, str], lengths: Lengths | None = None
    ) -> Lengths:
        """Check values by name; return what the letters stand for."""
        found = dict(lengths or {})
        for name, rule in rules.items():
            key = name.rstrip("?")
            if key in values or key == name:
                self.value(values.get(key), rule, found, key)
        return found

    def value(self, value: Any, rule: str, lengths: Lengths, what: str) -> None:
        """Check one value; what its letters stand for is added to ``lengths``."""
        problem = "is of another kind"
        for one in parse(rule):
            if not self._is(value, one):
                continue
            trial = dict(lengths)
            said = self._problem(value, one, trial, what)
            if said is None:
                lengths |= trial
                return
            problem = said
        shown = type(value).__name__
        if value is None or isinstance(value, (bool, int, float, str)):
            shown = printable(repr(value), 40)
        raise ModelFileError(
            f"The file does not fit together: {what} {problem} (it is {shown}; needed: {rule})."
        )

    def _is(self, value: Any, rule: Rule) -> bool:
        kind = rule.kind
        if kind in _ARRAYS:
            sparse = kind == "rows" and isinstance(value, (csr_array, csr_matrix))
            fits = isinstance(value, np.ndarray) or sparse
            return fits and value.dtype.kind in _ARRAYS[kind]
        plain: dict[str, Any] = {"bool": bool, "text": str, "whole": int, "list": list}
        plain |= {"dict": dict, "tuple": tuple, "none": type(None)}
        if kind in ("number", "score"):
            return type(value) in (int, float)
        if kind in plain:
            return type(value) is plain[kind]
        return kind == "any" or type(value).__name__ in kind.split("/")

    def _problem(self, value: Any, rule: Rule, lengths: Lengths, what: str) -> str | None:
        kind = rule.kind
        if kind in _ARRAYS:
            return self._array_problem(value, rule, lengths)
        if kind in ("whole", "number"):
            if kind == "number" and not abs(value) < np.inf:
                return "is not finite"
            for condition in rule.conditions:
                named = condition[0] == "="
                if named and lengths.setdefault(condition[1:], value) != value:
                    return f"is not {lengths[condition[1:]]}"
                if not named and not _holds(value, condition, lengths):
                    return f"is not {condition}"
        elif kind in ("list", "tuple"):
            if rule.axes and not _bind(rule.axes, (len(value),), lengths):
                return f"has {len(value)} entries"
            for part in value if rule.each else []:
                self.value(part, rule.each, lengths, f"an entry of {what}")
        elif kind[:1].isupper():
            pairs = [(axis[0], axis[2:] or axis) for axis in rule.axes]
            inner = {own: lengths.get(ours, ours) for own, ours in pairs}
            known = {own: int(n) for own, n in inner.items() if not str(n).isalpha()}
            found = self.check_record(value, type(value).__name__, known)
            lengths |= {ours: found[own] for own, ours in pairs if own in found and ours.isalpha()}
        return None

    def _array_problem(self, value: Any, rule: Rule, lengths: Lengths) -> str | None:
        if not _bind(rule.axes, value.shape, lengths):
            wanted = ", ".join(str(lengths.get(axis, axis)) for axis in rule.axes)
            return f"has shape {value.shape}, not ({wanted})"
        numbers: Any = value.data if isinstance(value, (csr_array, csr_matrix)) else value
        if rule.kind in ("floats", "doubles", "rows") and not np.all(np.isfinite(numbers)):
            return "holds NaN or infinity"
        if value.dtype != _EXACT.get(rule.kind, value.dtype):
            return f"is no array of {rule.kind}"
        for condition in rule.conditions:
            holds = _ORDER.get(condition, lambda a, c=condition: np.all(_holds(a, c, lengths)))
            if not holds(numbers):
                return f"is not {condition}"
        return None


def _bind(axes: tuple[str, ...], shape: tuple[int, ...], lengths: Lengths) -> bool:
    if len(axes) != len(shape):
        return False
    for axis, n in zip(axes, shape, strict=True):
        wanted = n if axis == "*" else int(axis) if axis.isdigit() else lengths.setdefault(axis, n)
        if wanted != n:
            return False
    return True


def _holds(value: Any, condition: str, lengths: Lengths) -> Any:
    sign = condition.rstrip("abcdefghijklmnopqrstuvwxyz0123456789.-")
    limit = condition[len(sign) :]
    if limit.isalpha() and limit not in lengths:
        return True
    return _COMPARE[sign](value, lengths[limit] if limit.isalpha() else float(limit))
