"""Values as JSON and arrays: what parameters and fitted attributes are made of.

Python's plain values are themselves; everything else is an object of one name that says what it is:
``{"tuple": [...]}``, ``{"array": name}``, ``{"object": class, "fields": {...}}`` and so on. The
classes are those of a closed list (`lssvm.io.known`); nothing is ever imported by a name that a
file holds.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, issparse

from lssvm._core.errors import InvalidInputError, ModelFileError
from lssvm.io.container import DTYPES, as_raw
from lssvm.io.known import MAX_CLASSES, known, stored_fields

DEPTH = 24
"""How deeply values may be nested."""

_SHARED = 1024  # arrays of at least so many bytes are stored once where they are equal
_NUMBERS = frozenset(DTYPES.values())
_TEXTS = re.compile(r"<U[1-9][0-9]{0,7}")
_ODD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class NotStorable(InvalidInputError):
    """A value that a file cannot hold."""


class Writer:
    """Turns values into JSON, and collects their arrays by name.

    Parameters
    ----------
    model : callable, optional
        Turns an estimator, its place and this writer into a record; None: there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.io.values import Reader, Writer
    >>> writer = Writer()
    >>> stored = writer.write({"a": (1, np.arange(2.0))}, "x")
    >>> stored
    {'dict': [['a', {'tuple': [1, {'array': 'x.a.1'}]}]]}
    >>> Reader(writer.arrays).read(stored)
    {'a': (1, array([0., 1.]))}
    """

    def __init__(self, model: Callable[[Any, str, Writer], Any] | None = None) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._names: dict[Any, str] = {}
        self._model = model

    def write(self, value: Any, path: str) -> Any:
        """Return JSON for a value; ``path`` names its arrays."""
        if value is None or isinstance(value, (bool, str)):
            return str(value) if isinstance(value, str) else value
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, (int, np.integer)):
            return int(value)
        if isinstance(value, (float, np.floating)):
            number = float(value)
            return number if math.isfinite(number) else {"float": str(number)}
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if isinstance(value, list):
            return [self.write(part, f"{path}.{i}") for i, part in enumerate(value)]
        if type(value) is tuple:
            return {"tuple": [self.write(part, f"{path}.{i}") for i, part in enumerate(value)]}
        if type(value) is dict:
            return {
                "dict": [
                    [self.write(key, path), self.write(part, f"{path}.{key}")]
                    for key, part in value.items()
                ]
            }
        if isinstance(value, np.dtype) and value.str in _NUMBERS:
            return {"dtype": value.str}
        if issparse(value):
            return self._sparse(value, path)
        return self._object(value, path)

    def attempt(self, value: Any, path: str) -> Any:
        """Return JSON for a value; where it cannot be stored, none of its arrays is kept."""
        before = dict(self.arrays), dict(self._names)
        try:
            return self.write(value, path)
        except NotStorable:
            self.arrays, self._names = before
            raise

    def _object(self, value: Any, path: str) -> Any:
        kind: Any = type(value)
        name = kind.__name__
        if known().get(name) is kind:
            parts = {n: self.write(getattr(value, n), f"{path}.{n}") for n in stored_fields(kind)}
            return {"object": name, "fields": parts}
        if self._model is not None and hasattr(value, "get_params"):
            return {"model": self._model(value, path, self)}
        raise NotStorable(f"{value!r} cannot be stored in a model file.")

    def _array(self, value: NDArray[Any], path: str) -> Any:
        if type(value) is not np.ndarray or value.ndim > 4:
            raise NotStorable(f"An array of type {type(value).__name__} cannot be stored.")
        if value.dtype.kind in "OU":
            return self.labels(value, path)
        if value.dtype.newbyteorder("<").str not in _NUMBERS:
            raise NotStorable(f"An array of type {value.dtype} cannot be stored in a model file.")
        fortran = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        plain = np.ascontiguousarray(value.T if fortran else value).reshape(
            value.shape[::-1] if fortran else value.shape
        )
        name = self._name(plain, path)
        return {"array": name, "order": "F"} if fortran else {"array": name}

    def labels(self, value: NDArray[Any], path: str) -> Any:
        """Return JSON for an array of labels, which people may want to read."""
        kind = value.dtype.newbyteorder("<").str if value.dtype.kind != "O" else "object"
        plain = value.dtype.kind in "OU" or kind in _NUMBERS
        if value.ndim != 1 or not plain:
            raise NotStorable(f"Labels of type {value.dtype} cannot be stored in a model file.")
        return {"labels": [self.write(part, path) for part in value.tolist()], "dtype": kind}

    def _name(self, array: NDArray[Any], path: str) -> str:
        """Keep an array, unless an equal one is there, and return its name."""
        key: Any = None
        if array.nbytes >= _SHARED:
            digest = hashlib.sha256(as_raw(array)).digest()
            key = (array.dtype.str, array.shape, digest)
            if key in self._names:
                return self._names[key]
        name, i = path, 1
        while name in self.arrays:
            i += 1
            name = f"{path}:{i}"
        self.arrays[name] = array
        if key is not None:
            self._names[key] = name
        return name

    def _sparse(self, value: Any, path: str) -> Any:
        if value.format != "csr":
            raise NotStorable(f"A sparse matrix in format {value.format!r} cannot be stored.")
        parts = {n: self._array(getattr(value, n), f"{path}.{n}") for n in _CSR}
        kind = "array" if isinstance(value, csr_array) else "matrix"
        return {"csr": parts, "shape": list(value.shape), "kind": kind}


_CSR = ("data", "indices", "indptr")


class Reader:
    """Turns what a `Writer` has written back into values.

    Parameters
    ----------
    arrays : mapping from names to arrays
    model : callable, optional
        Turns a record and this reader into an estimator; None: records are refused.
    """

    def __init__(
        self,
        arrays: Mapping[str, NDArray[Any]],
        model: Callable[[Any, Reader], Any] | None = None,
    ) -> None:
        self.arrays = arrays
        self.used: set[str] = set()
        self._model = model
        self._depth = 0
        self._sparse: dict[Any, Any] = {}
        self._copied = 0  # bytes of arrays that classes may have copied
        self._most = 2**20 + 8 * sum(array.nbytes for array in arrays.values())

    def read(self, stored: Any) -> Any:
        """Return the value; raise a `ModelFileError` where it is none."""
        self._depth += 1
        if self._depth > DEPTH:
            raise ModelFileError("The file is nested too deeply.")
        try:
            return self._read(stored)
        finally:
            self._depth -= 1

    def _read(self, stored: Any) -> Any:
        if stored is None or isinstance(stored, (bool, int, float, str)):
            return stored
        if isinstance(stored, list):
            return [self.read(part) for part in stored]
        first = next((name for name in _KINDS if name in stored), None)
        if first is None or not set(stored) <= {first, *_KINDS[first]}:
            raise ModelFileError(f"The file holds a value of an unknown kind: {sorted(stored)}.")
        return getattr(self, f"_read_{first}")(stored)

    def _read_float(self, stored: dict[str, Any]) -> float:
        if not isinstance(stored["float"], str) or stored["float"] not in _ODD:
            raise ModelFileError(f"The file holds {stored['float']!r} in the place of a number.")
        return _ODD[stored["float"]]

    def _read_tuple(self, stored: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self.read(part) for part in _as_list(stored["tuple"]))

    def _read_dict(self, stored: dict[str, Any]) -> dict[Any, Any]:
        found = {}
        for pair in _as_list(stored["dict"]):
            if not isinstance(pair, list) or len(pair) != 2 or isinstance(pair[0], (list, dict)):
                raise ModelFileError("The file holds a mapping that is no list of pairs.")
            found[pair[0]] = self.read(pair[1])
        return found

    def _read_dtype(self, stored: dict[str, Any]) -> np.dtype[Any]:
        if not isinstance(stored["dtype"], str) or stored["dtype"] not in _NUMBERS:
            raise ModelFileError(f"The file names an unknown type of numbers: {stored['dtype']!r}.")
        return np.dtype(stored["dtype"])

    def _read_array(self, stored: dict[str, Any]) -> NDArray[Any]:
        name, order = stored["array"], stored.get("order", "C")
        if not isinstance(name, str) or name not in self.arrays or order not in ("C", "F"):
            raise ModelFileError(f"The file has no array {name!r}, which it refers to.")
        self.used.add(name)
        array = self.arrays[name]
        return array if order == "C" else array.T

    def _read_labels(self, stored: dict[str, Any]) -> NDArray[Any]:
        values, kind = _as_list(stored["labels"]), stored.get("dtype")
        plain = all(v is None or isinstance(v, (bool, int, float, str)) for v in values)
        if kind == "object" and plain:
            array = np.empty(len(values), dtype=object)
            array[:] = values
            return array
        if isinstance(kind, str) and kind in _NUMBERS and plain and None not in values:
            array = np.array(values, dtype=kind)
            if array.ndim == 1 and array.tolist() == values:
                return array
        size = int(kind[2:]) if isinstance(kind, str) and _TEXTS.fullmatch(kind) else 0
        fits = all(isinstance(v, str) and len(v) <= size for v in values)
        if 0 < size and size * len(values) <= 2**24 and fits:
            return np.array(values, dtype=kind)
        raise ModelFileError(f"The file holds labels that are no labels of type {kind!r}.")

    def _read_csr(self, stored: dict[str, Any]) -> Any:
        parts, shape = stored["csr"], _as_list(stored.get("shape"))
        if not isinstance(parts, dict) or set(parts) != set(_CSR):
            raise ModelFileError("The file holds a sparse matrix without its three arrays.")
        data, indices, indptr = (self.read(parts[name]) for name in _CSR)
        if len(shape) != 2 or not all(type(n) is int and n >= 0 for n in shape):
            raise ModelFileError(f"The file holds a sparse matrix of shape {shape!r}.")
        arrays = all(isinstance(a, np.ndarray) and a.ndim == 1 for a in (data, indices, indptr))
        if not arrays or any(a.dtype not in (np.int32, np.int64) for a in (indices, indptr)):
            raise ModelFileError("The file holds a sparse matrix whose arrays are not usable.")
        fits = len(indptr) == shape[0] + 1 and indptr[0] == 0 and np.all(np.diff(indptr) >= 0)
        fits = fits and indptr[-1] == len(indices) == len(data) and data.dtype.kind == "f"
        if not fits or (len(indices) and not 0 <= indices.min() <= indices.max() < shape[1]):
            raise ModelFileError("The file holds a sparse matrix that does not fit together.")
        kind = csr_array if stored.get("kind") == "array" else csr_matrix
        key = (kind, *shape, *(id(a) for a in (data, indices, indptr)))
        if key not in self._sparse:  # its indices may be a copy: one for all
            self._sparse[key] = kind((data, indices, indptr), shape=tuple(shape), copy=False)
        return self._sparse[key]

    def _read_object(self, stored: dict[str, Any]) -> Any:
        name, parts = stored["object"], stored.get("fields")
        kind = known().get(name) if isinstance(name, str) else None
        if kind is None or not isinstance(parts, dict):
            raise ModelFileError(f"The file holds an object of an unknown class, {name!r}.")
        names = set(stored_fields(kind))
        if not set(parts) <= names:  # parts that came later have defaults
            raise ModelFileError(f"The file holds a {name} with other parts than {sorted(names)}.")
        given = {key: self.read(part) for key, part in parts.items()}
        if hasattr(kind, "__post_init__"):
            self._copied += sum(a.nbytes for a in given.values() if isinstance(a, np.ndarray))
            if self._copied > self._most:
                raise ModelFileError("The file refers to its arrays too often.")
        matrix = given.get("matrix")  # of an output code
        if isinstance(matrix, (list, np.ndarray)) and len(matrix) > MAX_CLASSES:
            raise ModelFileError(f"The file has more than {MAX_CLASSES} classes.")
        return kind(**given)

    def _read_model(self, stored: dict[str, Any]) -> Any:
        if self._model is None:
            raise ModelFileError("The file holds an estimator where none can be.")
        return self._model(stored["model"], self)


_KINDS: dict[str, tuple[str, ...]] = {
    "float": (),
    "tuple": (),
    "dict": (),
    "array": ("order",),
    "labels": ("dtype",),
    "dtype": (),
    "csr": ("shape", "kind"),
    "object": ("fields",),
    "model": (),
}


def _as_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ModelFileError(f"The file holds {type(value).__name__} in the place of a list.")
    return value
