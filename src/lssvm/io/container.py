"""Arrays and one header of JSON in one file, in the safetensors format, with a checksum.

The library of that format compares types, shapes and places of the arrays with the length of the
file. Above it stand a checksum of all that the file says, and our own limits: few types, few axes,
a short header. Nothing in such a file can name code.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from lssvm._core.arrays import AnyArray
from lssvm._core.atomic import replacing
from lssvm._core.errors import InvalidInputError, ModelFileError, printable
from lssvm._core.version import __version__

FORMAT = 4
"""The number of the format that is written."""

READ = (2, 3, FORMAT)
"""The numbers of the formats that are read; 2 is that of version 0.2."""

MAX_HEADER = 16 * 2**20
"""The longest header in bytes that is read or written, with the table of the arrays."""

MAX_VALUES = 2**21
"""Brackets, commas and colons of a header: what Python makes of each takes about 100 bytes."""

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

MAX_AXES = 4
"""The most axes that an array of a file may have."""

_BEGIN = '{"checksum":"'
_STRANGE = (
    "it is not a model file of lssvm (pickles, joblib files and those of other libraries cannot be "
    "read), or it is damaged"
)


@dataclass(frozen=True)
class Container:
    """What the header of a file says.

    Attributes
    ----------
    path : str
        As messages show it.
    size : int
        Bytes of the file.
    header : dict
        What was given to `write_container`.
    arrays : dict
        For every array its ``shape`` and ``dtype``, where the header alone was read.
    """

    path: str
    size: int
    header: dict[str, Any]
    arrays: dict[str, dict[str, Any]]


def write_container(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, AnyArray]
) -> None:
    """Write a file for its owner alone; it takes the place of an older one when it is complete.

    Parameters
    ----------
    path : str or path
    header : mapping from str
        To what JSON holds.
    arrays : mapping from str to arrays in C order
        Of a type in `DTYPES`.

    Notes
    -----
    Takes memory for one copy of the arrays.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from lssvm.io.container import read_container, write_container
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.safetensors")
    ...     write_container(path, {"note": "two"}, {"a": np.arange(2.0)})
    ...     container, arrays = read_container(path)
    >>> container.header["note"], arrays["a"]
    ('two', array([0., 1.]))
    """
    from safetensors.numpy import save

    whole = {"format": FORMAT, "lssvm": __version__, **header}
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
    ready = {name: np.asarray(a, dtype=a.dtype.newbyteorder("<")) for name, a in arrays.items()}
    try:
        sealed = f'{_BEGIN}{_checksum(text, ready)}",{text[1:]}'
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"A name or label cannot be written as UTF-8: {error}") from error
    content = save(ready, {"header": sealed})
    length = int.from_bytes(content[:8], "little")
    n_values = _count_values(content[8 : 8 + length])
    if length > MAX_HEADER or n_values > MAX_VALUES:
        raise InvalidInputError(
            f"The names and settings of this model, and the table of its {len(arrays):,} arrays, "
            f"take {length:,} bytes and {n_values:,} values; a model file holds at most "
            f"{MAX_HEADER:,} and {MAX_VALUES:,}."
        )
    with replacing(path, private=True) as name, open(name, "wb") as file:
        file.write(content)


def _count_values(header: bytes) -> int:
    """Return a bound of the values that a header of JSON makes."""
    return sum(header.count(sign) for sign in (b"[", b"{", b",", b":"))


def _checksum(text: str, arrays: Mapping[str, AnyArray]) -> str:
    """Return SHA-256 of a header and of names, types, shapes and bytes of arrays."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name!r} {array.dtype.str} {array.shape}\n".encode())
        digest.update(as_raw(array))
    return digest.hexdigest()


def as_raw(array: AnyArray) -> Any:
    """Return the bytes of an array in C order, without a copy."""
    flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(flat)


def read_container(path: str | os.PathLike[str]) -> tuple[Container, dict[str, AnyArray]]:
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

    Notes
    -----
    Takes memory for twice the length of the file at most, and a multiple of its header. The
    file is read, not mapped, so that one that becomes shorter meanwhile does no harm.
    """
    from safetensors import SafetensorError, deserialize

    shown = printable(os.fsdecode(path))
    with open(path, "rb") as file:
        size, length = _lengths(file, shown)
        file.seek(0)
        content = file.read(size)
    arrays = {}
    try:
        entries: Any = deserialize(content)  # type: ignore[no-untyped-call]
        for name, entry in entries:
            _check_entry(shown, name, entry["dtype"], entry["shape"])
            arrays[name] = np.ndarray(entry["shape"], DTYPES[entry["dtype"]], buffer=entry["data"])
        metadata = parse_json(content[8 : 8 + length].decode(), arrays=False)["__metadata__"]
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise _wrong(shown, f"{_STRANGE} ({printable(error)})") from error
    header, text = _read_header(shown, metadata)
    if _checksum(text, arrays) != header.pop("checksum"):
        raise _wrong(shown, "its checksum is another one: it was changed or damaged")
    for name, array in arrays.items():
        if array.dtype == bool and array.size and array.view(np.uint8).max() > 1:
            raise _wrong(shown, f"array {printable(name)} holds values that are not 0 or 1")
    return Container(shown, size, header, {}), arrays


@contextmanager
def open_container(
    path: str | os.PathLike[str],
) -> Iterator[tuple[Container, Callable[[str], AnyArray]]]:
    """Read the header of a file; the checksum is not compared.

    Parameters
    ----------
    path : str or path

    Yields
    ------
    Container
    callable
        Reads an array, given its name.

    Raises
    ------
    ModelFileError
        Where there is no such header.
    """
    from safetensors import SafetensorError, safe_open

    shown = printable(os.fsdecode(path))
    with open(path, "rb") as plain:
        size, _ = _lengths(plain, shown)
    try:
        with safe_open(os.fsdecode(path), framework="np") as file:
            header, _ = _read_header(shown, file.metadata())
            arrays = {}
            for name in file.keys():
                entry = file.get_slice(name)
                kind, shape = entry.get_dtype(), tuple(entry.get_shape())
                _check_entry(shown, name, kind, shape)
                arrays[name] = {"shape": shape, "dtype": DTYPES[kind]}
            del header["checksum"]
            yield Container(shown, size, header, arrays), file.get_tensor
    except SafetensorError as error:
        raise _wrong(shown, f"{_STRANGE} ({printable(error)})") from error


def _wrong(shown: str, reason: object) -> ModelFileError:
    return ModelFileError(f"{shown} cannot be loaded: {reason}.")


def _lengths(file: BinaryIO, shown: str) -> tuple[int, int]:
    """Return the bytes of a file and of its header, if they may be those of a model file."""
    about = os.fstat(file.fileno())
    if not stat.S_ISREG(about.st_mode) or about.st_size < 10:
        raise _wrong(shown, f"it has {about.st_size} bytes; {_STRANGE}")
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(MAX_HEADER, about.st_size - 8):
        raise _wrong(shown, f"it does not begin with the length of a header; {_STRANGE}")
    if (n_values := _count_values(file.read(length))) > MAX_VALUES:
        raise _wrong(shown, f"its header has {n_values:,} values, more than {MAX_VALUES:,}")
    return about.st_size, length


def _check_entry(shown: str, name: str, kind: str, shape: Sequence[int]) -> None:
    if kind not in DTYPES or len(shape) > MAX_AXES:
        raise _wrong(shown, f"array {printable(name)} has type {kind} and {len(shape)} axes")


def _read_header(shown: str, metadata: Any) -> tuple[dict[str, Any], str]:
    """Return our header with its checksum, and the text that the checksum is of."""
    metadata = metadata if isinstance(metadata, dict) else {}
    text = metadata.get("header", "")
    if not text and {"format", "lssvm", "checksum"} <= set(metadata):  # formats before 2
        raise _other_format(shown, metadata["format"], metadata["lssvm"])
    if not isinstance(text, str) or not text.startswith(_BEGIN):
        raise _wrong(shown, f"it has no header of lssvm; {_STRANGE}")
    try:
        header = parse_json(text)
    except ValueError as error:
        raise _wrong(shown, f"{_STRANGE} ({printable(error)})") from error
    if not isinstance(header.get("checksum"), str) or not isinstance(header.get("lssvm"), str):
        raise _wrong(shown, f"its header is not complete; {_STRANGE}")
    if header.get("format") not in READ or type(header["format"]) is not int:
        raise _other_format(shown, header.get("format"), header["lssvm"])
    return header, "{" + text[len(_BEGIN) + 66 :]


def _other_format(shown: str, number: object, version: object) -> ModelFileError:
    number, version = printable(number, 20), printable(version, 20)
    return _wrong(
        shown,
        f"it has format {number}, which lssvm {version} has written; this is lssvm {__version__}, "
        f"which reads formats {READ[0]} to {FORMAT}. Load it with lssvm {version}, or fit the "
        "model again and save it",
    )


def parse_json(text: str, *, arrays: bool = True) -> Any:
    """Parse JSON strictly: no name twice, no NaN, no depth that would end the interpreter.

    The table of the arrays, which the library reads, may be left out.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any] | None:
        parsed = dict(pairs)
        if len(parsed) != len(pairs):
            raise ValueError("a name stands there twice")
        return parsed if arrays or "data_offsets" not in parsed else None

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not a number of JSON")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
