"""Records as JSON and arrays: any value made of dataclasses of a closed list, and back.

Python's plain values are themselves; everything else is an object of one name that says what it is:
``{"tuple": [...]}``, ``{"array": name}``, ``{"record": class, "fields": {...}}`` and so on. Nothing
is ever imported by a name that a file holds: a class has to stand in the registry.

What came from a file is held against rules, which are short texts. A rule is a kind, the lengths
of the axes, and conditions; ``|`` separates alternatives::

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

import hashlib
import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from lssvm._core.arrays import AnyArray
from lssvm._core.errors import InvalidInputError, ModelFileError
from lssvm._core.text import printable
from lssvm.io.container import DTYPES, MAX_AXES, as_raw

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
    >>> from lssvm.io.records import parse
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
    >>> from lssvm.io.records import table
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
    >>> from lssvm.io.records import check_parameters
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
    >>> from lssvm.io.records import Book
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


DEPTH = 24
"""How deeply values may be nested."""

_SHARED = 1024  # arrays of at least so many bytes are stored once where they are equal
_NUMBERS = frozenset(DTYPES.values())
_ODD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_CSR = ("data", "indices", "indptr")


class NotStorable(InvalidInputError):
    """A value that a file cannot hold."""


@dataclass(frozen=True)
class Known:
    """A class whose objects a file may hold.

    Attributes
    ----------
    kind : type
        A dataclass.
    check : callable or None
        Raises a `ModelFileError` where an object that was read is wrong.
    left_out : frozenset of str
        Fields that belong to the machine and are not stored; they need defaults.
    cost : callable or None
        Bytes that making an object takes beyond the arrays it is given, from its fields.
    unnamed : frozenset of str
        Fields that do not show in the names of arrays.
    """

    kind: type[Any]
    check: Callable[[Any], object] | None = None
    left_out: frozenset[str] = frozenset()
    cost: Callable[[dict[str, Any]], int] | None = None
    unnamed: frozenset[str] = frozenset()

    def names(self) -> list[str]:
        """Return the fields that are stored."""
        return [f.name for f in fields(self.kind) if f.init and f.name not in self.left_out]


Registry = Mapping[str, Known]
"""Classes by the names that files call them, which stay when a class is renamed."""


def allowance(size: int) -> int:
    """Return the bytes that a file of a length may make, beyond the arrays that it holds."""
    return 2**25 + 16 * size


def encode(value: Any, registry: Registry) -> tuple[Any, dict[str, AnyArray]]:
    """Turn a value into JSON and arrays by name.

    Parameters
    ----------
    value : object
        Made of dataclasses in the registry, arrays, CSR matrices, numbers, texts, None, lists,
        tuples and dicts.
    registry : mapping from str to Known

    Returns
    -------
    tree : object
        Plain JSON.
    arrays : dict of arrays
        In C order, equal large ones once.

    Raises
    ------
    NotStorable
        Where there is anything else in it.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.io.records import decode, encode
    >>> tree, arrays = encode({"a": (1, np.arange(2.0))}, {})
    >>> tree
    {'dict': [['a', {'tuple': [1, {'array': 'a.1'}]}]]}
    >>> decode(tree, arrays, {}, limit=1000)
    {'a': (1, array([0., 1.]))}
    """
    encoder = _Encoder(registry)
    return encoder.encode(value, ""), encoder.arrays


class _Encoder:
    def __init__(self, registry: Registry) -> None:
        self.arrays: dict[str, AnyArray] = {}
        self._shared: dict[Any, str] = {}
        self._names = {known.kind: name for name, known in registry.items()}
        self._registry = registry

    def encode(self, value: Any, path: str) -> Any:
        if value is None or isinstance(value, (bool, np.bool_)):
            return None if value is None else bool(value)
        if isinstance(value, str):
            return str(value)
        if isinstance(value, (int, np.integer)):
            return int(value)
        if isinstance(value, (float, np.floating)):
            number = float(value)
            return number if math.isfinite(number) else {"float": str(number)}
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if isinstance(value, list):
            return self._parts(value, path)
        if type(value) is tuple:
            return {"tuple": self._parts(value, path)}
        if type(value) is dict:
            pairs = value.items()
            coded = [[self.encode(k, path), self.encode(v, f"{path}.{k}")] for k, v in pairs]
            return {"dict": coded}
        if isinstance(value, np.dtype) and value.str in _NUMBERS:
            return {"dtype": value.str}
        if isinstance(value, (csr_array, csr_matrix)):
            csr = {name: self._array(getattr(value, name), f"{path}.{name}") for name in _CSR}
            kind = "array" if isinstance(value, csr_array) else "matrix"
            return {"csr": csr, "shape": list(value.shape), "kind": kind}
        name = self._names.get(type(value))
        if name is None:
            raise NotStorable(f"{printable(repr(value))} cannot be stored in a model file.")
        known, parts = self._registry[name], {}
        for field in known.names():
            below = path if field in known.unnamed else f"{path}.{field}"
            parts[field] = self.encode(getattr(value, field), below)
        return {"record": name, "fields": parts}

    def _parts(self, values: Any, path: str) -> list[Any]:
        return [self.encode(part, f"{path}.{i}") for i, part in enumerate(values)]

    def _array(self, value: AnyArray, path: str) -> Any:
        kind = value.dtype.kind
        if type(value) is not np.ndarray or value.ndim > MAX_AXES:
            raise NotStorable(f"An array of type {type(value).__name__} cannot be stored.")
        if kind in "OU" and value.ndim == 1:
            values = value.tolist()
            if kind == "U" or (values and all(type(v) is str for v in values)):
                return self._texts(value, path)
            return {"objects": self._parts(values, path)}
        if value.dtype.newbyteorder("<").str not in _NUMBERS:
            raise NotStorable(f"An array of type {value.dtype} cannot be stored in a model file.")
        fortran = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        plain = np.ascontiguousarray(value.T if fortran else value)
        plain = plain.reshape(value.shape[::-1] if fortran else value.shape)  # of no axes too
        name = self._name(plain, path)
        return {"array": name, "order": "F"} if fortran else {"array": name}

    def _texts(self, value: AnyArray, path: str) -> Any:
        """Store texts as UTF-8, one after the other, with the places where each ends."""
        try:
            parts = [text.encode() for text in value.tolist()]
        except UnicodeEncodeError as error:
            raise InvalidInputError(f"A name or label is no text of UTF-8: {error}") from error
        joined = np.frombuffer(b"".join(parts), dtype=np.uint8)
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        if value.dtype.kind == "U" and value.nbytes > allowance(joined.nbytes + ends.nbytes):
            raise NotStorable(
                "These labels cannot be stored: one is much longer than the others. Make them "
                "shorter, or an array of objects."
            )
        names = {"texts": self._name(joined, path), "ends": self._name(ends, f"{path}.ends")}
        return {**names, "objects": value.dtype.kind == "O"}

    def _name(self, array: AnyArray, path: str) -> str:
        """Keep an array, unless an equal one is there, and return its name."""
        key: Any = None
        if array.nbytes >= _SHARED:
            key = (array.dtype.str, array.shape, hashlib.sha256(as_raw(array)).digest())
            if key in self._shared:
                return self._shared[key]
        first = path.removeprefix(".") or "value"
        name, i = first, 1
        while name in self.arrays:
            i += 1
            name = f"{first}:{i}"
        self.arrays[name] = array
        if key is not None:
            self._shared[key] = name
        return name


def decode(tree: Any, arrays: Mapping[str, AnyArray], registry: Registry, limit: int) -> Any:
    """Turn JSON and arrays into the value that they were made from.

    Parameters
    ----------
    tree : object
        Plain JSON.
    arrays : mapping from names to arrays
        Each has to be referred to.
    registry : mapping from str to Known
    limit : int
        The bytes that all of it may take beyond ``arrays``; see `allowance`.

    Returns
    -------
    object

    Raises
    ------
    ModelFileError
        Where anything is not as `encode` would have written it, or takes more than ``limit``.
    """
    decoder = _Decoder(arrays, registry, limit)
    value = decoder.decode(tree)
    left = sorted(set(arrays) - decoder.used)
    if left:
        raise ModelFileError(
            f"The file holds arrays that nothing refers to, such as {printable(left[0])}."
        )
    return value


class _Decoder:
    def __init__(self, arrays: Mapping[str, AnyArray], registry: Registry, limit: int) -> None:
        self.used: set[str] = set()
        self._arrays, self._registry, self._left = arrays, registry, limit
        self._depth = 0
        self._made: dict[str, Any] = {}  # what costs memory is made once

    def decode(self, stored: Any) -> Any:
        if stored is None or isinstance(stored, (bool, int, float, str)):
            return stored
        self._depth += 1
        if self._depth > DEPTH:
            raise ModelFileError("The file is nested too deeply.")
        try:
            if isinstance(stored, list):
                return [self.decode(part) for part in stored]
            for name, others in _KINDS.items():
                if name in stored and set(stored) - {name} <= others:
                    return getattr(self, f"_{name}")(stored)
        finally:
            self._depth -= 1
        raise ModelFileError(
            f"The file holds a value of an unknown kind: {printable(sorted(stored))}."
        )

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ModelFileError("The file would make much more than its length explains.")

    def _once(self, stored: dict[str, Any], make: Callable[[], Any]) -> Any:
        key = json.dumps(stored)
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _float(self, stored: dict[str, Any]) -> float:
        return _ODD[_as(str, stored["float"])]

    def _tuple(self, stored: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self.decode(part) for part in _as(list, stored["tuple"]))

    def _dict(self, stored: dict[str, Any]) -> dict[Any, Any]:
        found = {}
        for pair in _as(list, stored["dict"]):
            if not isinstance(pair, list) or len(pair) != 2 or isinstance(pair[0], (list, dict)):
                raise ModelFileError("The file holds a mapping that is no list of pairs.")
            found[pair[0]] = self.decode(pair[1])
        return found

    def _dtype(self, stored: dict[str, Any]) -> np.dtype[Any]:
        if stored["dtype"] not in _NUMBERS:
            raise ModelFileError("The file names an unknown type of numbers.")
        kind: np.dtype[Any] = np.dtype(stored["dtype"])
        return kind

    def _array(self, stored: dict[str, Any]) -> AnyArray:
        array = self._named(stored["array"])
        return array.T if stored.get("order") == "F" else array

    def _named(self, name: Any) -> AnyArray:
        if not isinstance(name, str) or name not in self._arrays:
            raise ModelFileError(f"The file has no array {printable(name)}, which it refers to.")
        self.used.add(name)
        return self._arrays[name]

    def _objects(self, stored: dict[str, Any]) -> AnyArray:
        values = _as(list, stored["objects"])
        if any(isinstance(v, list) for v in values):
            raise ModelFileError("The file holds lists in the place of labels.")
        array = np.empty(len(values), dtype=object)
        array[:] = [self.decode(v) for v in values]
        return array

    def _texts(self, stored: dict[str, Any]) -> AnyArray:
        joined, ends = self._named(stored["texts"]), self._named(stored.get("ends"))
        objects = stored.get("objects") is True
        array: AnyArray = self._once(stored, lambda: self._split(joined, ends, objects))
        return array

    def _split(self, joined: AnyArray, ends: AnyArray, objects: bool) -> AnyArray:
        kinds = (joined.dtype.str, ends.dtype.str) == ("|u1", "<i8")
        fits = kinds and joined.ndim == ends.ndim == 1 and np.all(np.diff(ends, prepend=0) >= 0)
        if not fits or (ends[-1] if len(ends) else 0) != len(joined):
            raise ModelFileError("The file holds texts whose ends do not fit.")
        self._take(80 * len(ends) + 4 * len(joined))
        data, places = joined.tobytes(), [0, *ends.tolist()]
        texts = [data[a:b].decode() for a, b in pairwise(places)]
        if objects:
            array = np.empty(len(texts), dtype=object)
            array[:] = texts
            return array
        width = max((len(text) for text in texts), default=1) or 1
        self._take(4 * width * len(texts))
        return np.array(texts, dtype=f"<U{width}")

    def _csr(self, stored: dict[str, Any]) -> Any:
        parts, shape = stored["csr"], _as(list, stored.get("shape"))
        if not isinstance(parts, dict) or set(parts) != set(_CSR):
            raise ModelFileError("The file holds a sparse matrix without its three arrays.")
        data, indices, indptr = (self.decode(parts[name]) for name in _CSR)
        if len(shape) != 2 or not all(type(n) is int and n >= 0 for n in shape):
            raise ModelFileError(f"The file holds a sparse matrix of shape {printable(shape)}.")
        arrays = all(isinstance(a, np.ndarray) and a.ndim == 1 for a in (data, indices, indptr))
        if not arrays or any(a.dtype not in (np.int32, np.int64) for a in (indices, indptr)):
            raise ModelFileError("The file holds a sparse matrix whose arrays are not usable.")
        fits = len(indptr) == shape[0] + 1 and indptr[0] == 0 and np.all(np.diff(indptr) >= 0)
        fits = fits and indptr[-1] == len(indices) == len(data) and data.dtype.kind == "f"
        if not fits or (len(indices) and not 0 <= indices.min() <= indices.max() < shape[1]):
            raise ModelFileError("The file holds a sparse matrix that does not fit together.")
        kind = csr_array if stored.get("kind") == "array" else csr_matrix

        def make() -> Any:
            self._take(indices.nbytes + indptr.nbytes)  # which may be copied
            return kind((data, indices, indptr), shape=tuple(shape), copy=False)

        return self._once(stored, make)

    def _record(self, stored: dict[str, Any]) -> Any:
        name, parts = stored["record"], stored.get("fields")
        known = self._registry.get(name) if isinstance(name, str) else None
        if known is None or not isinstance(parts, dict):
            raise ModelFileError(f"The file holds a record of an unknown class, {printable(name)}.")
        if not set(parts) <= set(known.names()):  # parts that came later have defaults
            raise ModelFileError(f"The file holds a {name} with parts that it does not have.")
        if hasattr(known.kind, "__post_init__") or known.cost is not None:
            return self._once(stored, lambda: self._make(known, parts))
        return self._make(known, parts)

    def _make(self, known: Known, parts: dict[str, Any]) -> Any:
        given = {key: self.decode(part) for key, part in parts.items()}
        if hasattr(known.kind, "__post_init__"):  # which may copy
            self._take(sum(a.nbytes for a in given.values() if isinstance(a, np.ndarray)))
        if known.cost is not None:
            self._take(known.cost(given))
        record = known.kind(**given)
        if known.check is not None:
            known.check(record)
        return record


_KINDS: dict[str, set[str]] = {
    "float": set(),
    "tuple": set(),
    "dict": set(),
    "array": {"order"},
    "texts": {"ends", "objects"},
    "objects": set(),
    "dtype": set(),
    "csr": {"shape", "kind"},
    "record": {"fields"},
}


def _as(kind: type[Any], value: Any) -> Any:
    if not isinstance(value, kind):
        raise ModelFileError(
            f"The file holds {type(value).__name__} in the place of {kind.__name__}."
        )
    return value
