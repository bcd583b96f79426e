"""Arrays and texts in one file, in the safetensors format, with a checksum over all of it.

The format is 8 bytes for the length of a header, the header in JSON (for every array its type,
shape and place; under ``__metadata__`` texts by name), and the bytes of the arrays one after the
other, little-endian. Nothing in it can name code. Whatever is read is compared with the length of
the file before memory is taken for it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lssvm._core.atomic import replacing
from lssvm._core.errors import InvalidInputError, ModelFileError

MAX_HEADER = 16 * 2**20
"""The longest header in bytes that is read or written."""

DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
"""The types of arrays that a file may hold, as the format and as NumPy write them."""

_CODES = {kind: code for code, kind in DTYPES.items()}
_NO_SUM = "0" * 64
_STRANGE = (
    "it is no model file of lssvm (files of pickle, joblib and other libraries cannot be read), or "
    "it is damaged"
)


@dataclass(frozen=True)
class Entry:
    """Where an array stands in a file.

    Attributes
    ----------
    dtype : str
        A key of `DTYPES`.
    shape : tuple of int
    begin, end : int
        Its bytes, counted from the end of the header.
    """

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Container:
    """What the header of a file says.

    Attributes
    ----------
    path : str
    size : int
        Bytes of the file.
    metadata : dict of str
    entries : dict of Entry
        By the name of the array, in their order in the file.
    start : int
        Where the bytes of the arrays begin.
    digest : str
        The checksum that header and arrays ought to have.
    blank : bytes
        The header as it enters the checksum.
    """

    path: str
    size: int
    metadata: dict[str, str]
    entries: dict[str, Entry]
    start: int
    digest: str
    blank: bytes


def write_container(
    path: str, metadata: Mapping[str, str], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a file; it takes the place of an older one when it is complete.

    Parameters
    ----------
    path : str
    metadata : mapping from str to str
    arrays : mapping from str to arrays in C order
        Of a type in `DTYPES`.

    Notes
    -----
    Arrays are written as they are, without a copy (but for big-endian ones).

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from lssvm.io.container import read_container, write_container
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.safetensors")
    ...     write_container(path, {"note": "two"}, {"a": np.arange(2.0)})
    ...     found, arrays = read_container(path)
    >>> found.metadata["note"], arrays["a"]
    ('two', array([0., 1.]))
    """
    ready = {name: np.asarray(a, dtype=a.dtype.newbyteorder("<")) for name, a in arrays.items()}
    order = sorted(ready, key=lambda name: (-ready[name].itemsize, name))  # all stay aligned
    header: dict[str, Any] = {"__metadata__": {**metadata, "checksum": _NO_SUM}}
    at = 0
    for name in order:
        array = ready[name]
        header[name] = {
            "dtype": _CODES[array.dtype.str],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    try:
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"A name or label cannot be written as UTF-8: {error}") from error
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise InvalidInputError(
            f"The names, labels and settings of this model take {len(text):,} bytes; a model file "
            f"holds at most {MAX_HEADER:,}."
        )
    sum = hashlib.sha256(text)
    for name in order:
        sum.update(as_raw(ready[name]))
    place = f'"checksum":"{_NO_SUM}"'.encode()
    assert text.count(place) == 1  # within texts quotation marks are escaped
    text = text.replace(place, f'"checksum":"{sum.hexdigest()}"'.encode())
    with replacing(path) as temporary, open(temporary, "wb") as handle:
        handle.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            handle.write(as_raw(ready[name]))


def as_raw(array: NDArray[Any]) -> Any:
    """Return the bytes of an array in C order, without a copy."""
    flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(flat)


def read_container(path: Any) -> tuple[Container, dict[str, NDArray[Any]]]:
    """Read a file, header and arrays, and compare its checksum.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Container
    dict of arrays

    Raises
    ------
    ModelFileError
        Where anything is wrong with what the file holds.
    """
    with open(path, "rb") as handle:
        found = _read_header(handle, os.fspath(path))
        sum, arrays = hashlib.sha256(found.blank), {}
        for name, entry in found.entries.items():
            array = np.empty(entry.shape, dtype=DTYPES[entry.dtype])
            room = as_raw(array) if array.size else memoryview(bytearray())
            if handle.readinto(room) != len(room):
                raise _wrong(found.path, "it became shorter while it was read")
            sum.update(room)
            if entry.dtype == "BOOL" and array.size and array.view(np.uint8).max() > 1:
                raise _wrong(found.path, f"array {name!r} holds values that are not 0 or 1")
            arrays[name] = array
        if sum.hexdigest() != found.digest:
            raise _wrong(found.path, "its checksum is another one: it was changed or damaged")
    return found, arrays


def read_container_header(path: Any) -> Container:
    """Read the header of a file; the bytes of its arrays are not looked at."""
    with open(path, "rb") as handle:
        return _read_header(handle, os.fspath(path))


def _wrong(path: Any, reason: str) -> ModelFileError:
    return ModelFileError(f"{os.fsdecode(path)} cannot be loaded: {reason}.")


def _read_header(handle: BinaryIO, path: Any) -> Container:
    about = os.fstat(handle.fileno())
    size = about.st_size
    if not stat.S_ISREG(about.st_mode) or size < 10:
        raise _wrong(path, f"it has {size} bytes; {_STRANGE}")
    length = int.from_bytes(handle.read(8), "little")
    if not 2 <= length <= min(MAX_HEADER, size - 8):
        raise _wrong(path, f"it begins with no length of a header within its {size:,} bytes")
    text = handle.read(length)
    try:
        header = parse_json(text.decode())
    except (UnicodeDecodeError, ValueError) as error:
        raise _wrong(path, f"{_STRANGE} ({error})") from error
    metadata = header.pop("__metadata__", None) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(t, str) for t in metadata.values()):
        raise _wrong(path, f"it has no texts under __metadata__; {_STRANGE}")
    entries = _entries(path, header, size - 8 - length)
    digest = metadata.pop("checksum", "")
    place = f'"checksum":"{digest}"'.encode()
    if len(digest) != 64 or text.count(place) != 1:
        raise _wrong(path, f"it has no checksum; {_STRANGE}")
    blank = text.replace(place, f'"checksum":"{_NO_SUM}"'.encode())
    return Container(os.fsdecode(path), size, metadata, entries, 8 + length, digest, blank)


def parse_json(text: str) -> Any:
    """Parse JSON strictly: no name twice, no NaN, no depth that would end the interpreter."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a name stands there twice")
        return found

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is no number of JSON")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _entries(path: Any, header: dict[str, Any], room: int) -> dict[str, Entry]:
    """Check that the arrays fill the file exactly, one after the other."""
    found = {}
    for name, given in header.items():
        if not isinstance(given, dict) or set(given) != {"dtype", "shape", "data_offsets"}:
            raise _wrong(path, f"array {name!r} is not described by type, shape and place")
        code, shape, place = given["dtype"], given["shape"], given["data_offsets"]
        whole = all(isinstance(part, list) for part in (shape, place)) and all(
            type(number) is int and 0 <= number <= room for number in (*shape, *place)
        )
        if not isinstance(code, str) or code not in DTYPES or not whole:
            raise _wrong(
                path, f"array {name!r} has type {code!r}, shape {shape!r}, place {place!r}"
            )
        if len(shape) > 4 or len(place) != 2:
            raise _wrong(path, f"array {name!r} has shape {shape!r} and place {place!r}")
        needed = math.prod(shape) * np.dtype(DTYPES[code]).itemsize
        if place[1] - place[0] != needed:
            raise _wrong(path, f"array {name!r} of shape {shape!r} has place {place!r}")
        found[name] = Entry(code, tuple(shape), place[0], place[1])
    found = dict(sorted(found.items(), key=lambda item: (item[1].begin, item[1].end)))
    at = 0
    for name, entry in found.items():
        if entry.begin != at:
            raise _wrong(path, f"array {name!r} begins at {entry.begin}, not at {at}")
        at = entry.end
    if at != room:
        raise _wrong(path, f"its arrays end after {at:,} bytes but there are {room:,}")
    return found
