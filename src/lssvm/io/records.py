"""Records as JSON and arrays, and back: any value made of dataclasses of a closed list.

Python's plain values are themselves; everything else is an object of one name that says what it is:
``{"tuple": [...]}``, ``{"array": name}``, ``{"record": name, "fields": {...}}`` and so on. Nothing
is ever imported by a name that a file holds: a record has to stand in the schema. Fields have the
types that the annotations of the dataclass name; numbers are finite unless the schema says
otherwise. What lengths and values have to be is checked in `lssvm.io.models`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix

from lssvm._core.arrays import AnyArray
from lssvm._core.errors import InvalidInputError, ModelFileError, printable
from lssvm.io.container import DTYPES, MAX_AXES, as_raw

DEPTH = 24
"""How deeply values may be nested."""

_SHARED = 1024  # arrays of at least so many bytes are stored once where they are equal
_NUMBERS = frozenset(DTYPES.values())
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_CSR = ("data", "indices", "indptr")
_INTEGERS = (-(2**63), 2**64)
_ARRAYS: dict[str, Any] = {
    "FloatArray": NDArray[np.floating[Any]],
    "IntArray": NDArray[np.signedinteger[Any]],
}


class NotStorable(InvalidInputError):
    """A value that a file cannot hold."""


def need(condition: Any, problem: str) -> None:
    """Raise where what a file holds does not fit together."""
    if not condition:
        raise ModelFileError(f"The file does not fit together: {problem}.")


@dataclass(frozen=True)
class Record:
    """A dataclass whose objects a file may hold.

    Attributes
    ----------
    type : type
    not_stored : frozenset of str
        Fields that belong to the machine; they need defaults.
    nan : frozenset of str
        Fields whose numbers need not be finite.
    float64 : bool
        Whether all floats are float64, as LAPACK needs them.
    types : mapping from str
        To what names in annotations mean: a union of records for a protocol.
    unnamed : frozenset of str
        Fields that do not show in the names of arrays.
    cost : callable or None
        Bytes that making an object takes beyond the arrays it is given, from its fields.
    """

    type: type[Any]
    not_stored: frozenset[str] = frozenset()
    nan: frozenset[str] = frozenset()
    float64: bool = False
    types: Mapping[str, Any] = field(default_factory=dict)
    unnamed: frozenset[str] = frozenset()
    cost: Callable[[dict[str, Any]], int] | None = None

    @cached_property
    def fields(self) -> list[str]:
        """Names of the fields that are stored."""
        return [f.name for f in fields(self.type) if f.init and f.name not in self.not_stored]

    @cached_property
    def field_types(self) -> dict[str, Any]:
        """Types of fields, by their names."""
        return get_type_hints(self.type, localns={**_ARRAYS, **self.types})

    def check(self, values: Mapping[str, Any]) -> None:
        """Refuse values of other types than the fields have, and numbers that are not finite."""
        for name, value in values.items():
            if not has_type(value, self.field_types[name]):
                shown = type(value).__name__
                if value is None or isinstance(value, (bool, int, float, str)):
                    shown = printable(repr(value), 40)
                wanted = self.type.__dataclass_fields__[name].type
                need(False, f"{name} is of another type (it is {shown}; needed: {wanted})")
            need(name in self.nan or _is_finite(value), f"{name} holds NaN or infinity")
            need(not self.float64 or _is_float64(value), f"{name} is not an array of float64")


def has_type(value: Any, wanted: Any) -> bool:
    """Say whether a decoded value has the type of an annotation."""
    origin, parts = get_origin(wanted), get_args(wanted)
    if wanted is Any:
        return True
    if origin in (Union, UnionType):
        return any(has_type(value, part) for part in parts)
    if origin is Literal:
        return type(value) is str and value in parts
    if origin in (np.ndarray, NDArray):  # the alias itself from NumPy 2.5 on
        (numbers,) = get_args(parts[1]) if origin is np.ndarray else parts
        numbers = get_origin(numbers) or numbers
        plain = type(value) is np.ndarray
        return plain and (numbers is Any or bool(np.issubdtype(value.dtype, numbers)))
    if origin in (list, tuple):
        return type(value) is origin and all(has_type(one, parts[0]) for one in value)
    if origin is dict:
        pairs = value.items() if type(value) is dict else [(None, None)]
        return all(has_type(k, parts[0]) and has_type(v, parts[1]) for k, v in pairs)
    if is_dataclass(origin):  # generic, such as Fit[Any]
        return type(value) is origin
    if wanted is float:
        return type(value) in (int, float)
    if wanted in (bool, int, str, NoneType):
        return type(value) is wanted
    if isinstance(wanted, type) and not getattr(wanted, "_is_protocol", False):
        return isinstance(value, wanted)
    return not is_dataclass(value)  # protocols and aliases of plain values


def _is_finite(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_finite(part) for part in value)
    numbers = value.data if isinstance(value, (csr_array, csr_matrix)) else value
    if isinstance(numbers, np.ndarray) and numbers.dtype.kind == "f":
        return bool(np.all(np.isfinite(numbers)))
    return not isinstance(value, float) or math.isfinite(value)


def _is_float64(value: Any) -> bool:
    return not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.dtype == np.float64


Schema = Mapping[str, Record]
"""Records by their names in files, which stay when a class is renamed."""


def allowance(size: int) -> int:
    """Return the bytes that a file of a length may make, beyond the arrays that it holds."""
    return 2**25 + 16 * size


def encode(value: Any, schema: Schema) -> tuple[Any, dict[str, AnyArray]]:
    """Turn a value into JSON and arrays by name, equal large ones once.

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
    encoder = _Encoder(schema)
    return encoder.encode(value, ""), encoder.arrays


class _Encoder:
    def __init__(self, schema: Schema) -> None:
        self.arrays: dict[str, AnyArray] = {}
        self._shared: dict[Any, str] = {}
        self._schema = schema
        self._names = {record.type: name for name, record in schema.items()}

    def encode(self, value: Any, path: str) -> Any:
        if value is None or isinstance(value, (bool, np.bool_)):
            return None if value is None else bool(value)
        if isinstance(value, str):
            return str(value)
        if isinstance(value, (int, np.integer)):
            if not _INTEGERS[0] <= int(value) < _INTEGERS[1]:
                raise NotStorable(f"{printable(repr(value))} cannot be stored: it is too large.")
            return int(value)
        if isinstance(value, (float, np.floating)):
            number = float(value)
            return number if math.isfinite(number) else {"float": str(number)}
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if isinstance(value, list):
            return self._encode_all(value, path)
        if type(value) is tuple:
            return {"tuple": self._encode_all(value, path)}
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
        record, stored = self._schema[name], {}
        for field_name in record.fields:
            below = path if field_name in record.unnamed else f"{path}.{field_name}"
            stored[field_name] = self.encode(getattr(value, field_name), below)
        return {"record": name, "fields": stored}

    def _encode_all(self, values: Any, path: str) -> list[Any]:
        return [self.encode(part, f"{path}.{i}") for i, part in enumerate(values)]

    def _array(self, value: AnyArray, path: str) -> Any:
        kind = value.dtype.kind
        if type(value) is not np.ndarray or value.ndim > MAX_AXES:
            raise NotStorable(f"An array of type {type(value).__name__} cannot be stored.")
        if kind in "OU" and value.ndim == 1:
            values = value.tolist()
            if kind == "U" or (values and all(type(v) is str for v in values)):
                return self._texts(value, path)
            return {"objects": self._encode_all(values, path)}
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
            raise InvalidInputError(
                f"A name or label cannot be written as UTF-8: {error}"
            ) from error
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


def decode(tree: Any, arrays: Mapping[str, AnyArray], schema: Schema, limit: int) -> Any:
    """Turn JSON and arrays into the value that they were made from.

    Every array has to be referred to. All that is made takes at most ``limit`` bytes beyond the
    arrays (see `allowance`); what is not as `encode` writes it raises a `ModelFileError`.
    """
    decoder = _Decoder(arrays, schema, limit)
    value = decoder.decode(tree)
    left = sorted(set(arrays) - decoder.used)
    if left:
        raise ModelFileError(
            f"The file holds arrays that nothing refers to, such as {printable(left[0])}."
        )
    return value


class _Decoder:
    def __init__(self, arrays: Mapping[str, AnyArray], schema: Schema, limit: int) -> None:
        self.used: set[str] = set()
        self._arrays, self._schema, self._left = arrays, schema, limit
        self._depth = 0
        self._made: dict[str, Any] = {}  # what costs memory is made once

    def decode(self, stored: Any) -> Any:
        if stored is None or isinstance(stored, (bool, float, str)):
            return stored
        if isinstance(stored, int):
            need(_INTEGERS[0] <= stored < _INTEGERS[1], "a whole number has more than 64 bits")
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

    def _charge(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ModelFileError("The file would make much more than its length explains.")

    def _once(self, stored: dict[str, Any], make: Callable[[], Any]) -> Any:
        key = json.dumps(stored)
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _float(self, stored: dict[str, Any]) -> float:
        return _NOT_FINITE[_expect(str, stored["float"])]

    def _tuple(self, stored: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self.decode(part) for part in _expect(list, stored["tuple"]))

    def _dict(self, stored: dict[str, Any]) -> dict[Any, Any]:
        decoded = {}
        for pair in _expect(list, stored["dict"]):
            if not isinstance(pair, list) or len(pair) != 2 or isinstance(pair[0], (list, dict)):
                raise ModelFileError("The file holds a mapping that is not a list of pairs.")
            decoded[pair[0]] = self.decode(pair[1])
        return decoded

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
        values = _expect(list, stored["objects"])
        if any(isinstance(v, list) for v in values):
            raise ModelFileError("The file holds lists in the place of labels.")
        return _objects([self.decode(v) for v in values])

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
        self._charge(80 * len(ends) + 4 * len(joined))
        data, places = joined.tobytes(), [0, *ends.tolist()]
        texts = [data[a:b].decode() for a, b in pairwise(places)]
        if objects:
            return _objects(texts)
        width = max((len(text) for text in texts), default=1) or 1
        self._charge(4 * width * len(texts))
        return np.array(texts, dtype=f"<U{width}")

    def _csr(self, stored: dict[str, Any]) -> Any:
        parts, shape = stored["csr"], _expect(list, stored.get("shape"))
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
            self._charge(indices.nbytes + indptr.nbytes)  # which may be copied
            return kind((data, indices, indptr), shape=tuple(shape), copy=False)

        return self._once(stored, make)

    def _record(self, stored: dict[str, Any]) -> Any:
        name, stored_fields = stored["record"], stored.get("fields")
        record = self._schema.get(name) if isinstance(name, str) else None
        if record is None or not isinstance(stored_fields, dict):
            raise ModelFileError(f"The file holds a record of an unknown name, {printable(name)}.")
        if not set(stored_fields) <= set(record.fields):  # fields that came later have defaults
            raise ModelFileError(f"The file holds a {name} with fields that it does not have.")
        if hasattr(record.type, "__post_init__") or record.cost is not None:
            return self._once(stored, lambda: self._make(record, stored_fields))
        return self._make(record, stored_fields)

    def _make(self, record: Record, stored_fields: dict[str, Any]) -> Any:
        values = {name: self.decode(value) for name, value in stored_fields.items()}
        record.check(values)
        if hasattr(record.type, "__post_init__"):  # which may copy
            self._charge(sum(a.nbytes for a in values.values() if isinstance(a, np.ndarray)))
        if record.cost is not None:
            self._charge(record.cost(values))
        return record.type(**values)


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


def _objects(values: list[Any]) -> AnyArray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _expect(kind: type[Any], value: Any) -> Any:
    if not isinstance(value, kind):
        raise ModelFileError(
            f"The file holds {type(value).__name__} in the place of {kind.__name__}."
        )
    return value
