"""From what `scan` is told about files, arrays and Dask collections to what reads them."""

from __future__ import annotations

import glob as globbing
import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.errors import InvalidInputError
from lssvm.data.arrow import FORMATS, ArrowReader
from lssvm.data.csv_files import CsvOptions
from lssvm.data.dask import DaskReader, frame_reader, is_dask
from lssvm.data.dask import array_reader as dask_array_reader
from lssvm.data.plain import ArrayReader, LibsvmReader
from lssvm.data.watching import FileStamps

_LIBSVM = (".svm", ".libsvm", ".svmlight")
_ARRAY = (".npy",)
_KNOWN = (*FORMATS, *_LIBSVM, *_ARRAY)


def dask_reader(
    data: Any, target: Any, columns: Sequence[Any] | None, weight: Any, client: Any
) -> DaskReader:
    """Return the reader of a Dask array or data frame, from what `scan` was told."""
    if hasattr(data, "_meta") and hasattr(data, "columns"):
        y, w = (given if is_dask(given) else None for given in (target, weight))
        names, own = (
            () if y is not None else _names(target),
            None if w is not None else _one(weight),
        )
        return frame_reader(data, y, w, client, roles(names, own, columns)[2], names, own)
    taken: list[int] = []

    def column(given: Any) -> Any:
        if not isinstance(given, (int, np.integer)) or isinstance(given, bool):
            return given
        if not -data.shape[1] <= given < data.shape[1]:
            raise InvalidInputError(
                f"There is no column {given}: the array has {data.shape[1]}, counted from 0."
            )
        taken.append(int(given) % data.shape[1])
        return data[:, int(given)]

    y, w = column(target), column(weight)
    used = [j for j in range(data.shape[1]) if j not in taken] if columns is None else columns
    whole = len(used) == data.shape[1]
    return dask_array_reader(data if whole else data[:, list(used)], y, w, client)


def refuse(what: str, **given: Any) -> None:
    """Raise for a role that the data itself gives."""
    for name, value in given.items():
        if value is not None:
            raise InvalidInputError(f"{what} says itself what its {name} is: leave {name}= out.")


def _names(target: Any) -> tuple[str, ...]:
    if target is None:
        return ()
    names = [target] if isinstance(target, str) else target
    if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
        raise InvalidInputError(f"target={target!r} is not usable here: give the name of a column.")
    return tuple(names)


def _one(weight: Any) -> str | None:
    if weight is None or isinstance(weight, str):
        return weight
    raise InvalidInputError(f"weight={weight!r} is not usable here: give the name of a column.")


def roles(
    target: Any, weight: Any, columns: Sequence[Any] | None
) -> tuple[tuple[str, ...], str | None, tuple[str, ...] | None]:
    """Return the names of target, weight and features, each of them in one role."""
    names = _names(target), _one(weight), _columns(columns)
    every = [*names[0], *([] if names[1] is None else [names[1]]), *(names[2] or ())]
    twice = sorted({name for name in every if every.count(name) > 1})
    if twice:
        raise InvalidInputError(
            f"The columns {twice} are named more than once: a column is a feature, the target or "
            "the weight. Name it once in columns=, target= and weight=."
        )
    return names


def _columns(columns: Sequence[Any] | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if isinstance(columns, str) or len(columns) == 0:
        raise InvalidInputError(f"columns={columns!r} is not usable: give a list of columns.")
    return tuple(str(column) for column in columns)


def find_files(data: Any) -> list[str]:
    """Return the files that a path, a folder, a pattern or a list of these stands for."""
    if isinstance(data, (list, tuple)):
        found = [file for entry in data for file in find_files(entry)]
        if not found:
            raise InvalidInputError("The list of files to scan is empty.")
        return found
    path = os.fspath(data)
    if os.path.isdir(path):
        inside = globbing.glob(os.path.join(globbing.escape(path), "**", "*"), recursive=True)
        named = [f for f in inside if not os.path.basename(f).startswith(("_", "."))]
        found = sorted(f for f in named if os.path.isfile(f) and ending(f) in _KNOWN)
    elif os.path.exists(path):
        found = [path]
    else:
        found = sorted(f for f in globbing.glob(path, recursive=True) if os.path.isfile(f))
    if not found:
        raise InvalidInputError(
            f"No file matches {path!r}: give a file, a folder that holds files ending in one of "
            f"{', '.join(_KNOWN)}, or a pattern such as 'folder/*.parquet'."
        )
    return found


def ending(file: str) -> str:
    """Return the ending of a file's name, without that of a compression."""
    base = file[:-3] if file.endswith(".gz") else file
    return os.path.splitext(base)[1].lower()


def file_reader(
    data: Any, target: Any, columns: Sequence[Any] | None, weight: Any, csv: CsvOptions
) -> tuple[Any, bool]:
    """Return the reader of some files, and whether it gives targets."""
    files = find_files(data)
    endings = {ending(file) for file in files}
    if len(endings) > 1 or not endings <= set(_KNOWN):
        raise InvalidInputError(
            f"The files end in {sorted(endings)}: give files of one kind, ending in one of "
            f"{', '.join(_KNOWN)}."
        )
    for file in files:
        if os.path.getsize(file) == 0:
            raise InvalidInputError(f"{file} is empty: it has no bytes. Remove it.")
    (kind,) = endings
    if kind in FORMATS:
        arrow = ArrowReader(files, FORMATS[kind], *roles(target, weight, columns), csv)
        _ = arrow.schema  # a wrong name is found at once
        return arrow, target is not None
    if kind in _LIBSVM:
        refuse("LIBSVM text", target=target, weight=weight)
        return LibsvmReader(files, _columns(columns)), True
    if len(files) > 1:
        raise InvalidInputError(f"{len(files)} .npy files were given: give one array of all rows.")
    X = _map(files[0])
    return array_reader(X, target, columns, weight, files[0], (X,)), target is not None


def _map(file: Any) -> NDArray[Any]:
    try:
        found: NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInputError(
            f"{file} cannot be mapped as a NumPy array: {error}. Save it with numpy.save."
        ) from error
    return found


def array_reader(
    X: NDArray[Any],
    target: Any,
    columns: Sequence[Any] | None,
    weight: Any,
    where: str,
    mapped: tuple[NDArray[Any], ...] = (),
) -> ArrayReader:
    """Return the reader of an array, from what `scan` was told."""
    if X.ndim != 2 or X.dtype.kind not in "biuf" or X.shape[1] == 0:
        raise InvalidInputError(
            f"{where} has shape {X.shape} and type {X.dtype}: an array of numbers, one row per "
            "sample, is needed."
        )
    taken, files = [], list(mapped)

    def column(given: Any, what: str) -> NDArray[Any] | None:
        if given is None:
            return None
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            if not -X.shape[1] <= given < X.shape[1]:
                raise InvalidInputError(
                    f"{what}={given} but {where} has {X.shape[1]} columns, numbered from 0."
                )
            taken.append(int(given) % X.shape[1])
            return np.asarray(X[:, given])
        if isinstance(given, (str, os.PathLike)):
            values = _map(given)
            files.append(values)
        else:
            values = np.asanyarray(given)
        if values.ndim not in (1, 2) or len(values) != len(X):
            raise InvalidInputError(
                f"{what} has shape {values.shape} but {where} has {len(X)} rows: one per row."
            )
        return values

    y, w = column(target, "target"), column(weight, "weight")
    used = [j for j in range(X.shape[1]) if j not in taken] if columns is None else list(columns)
    if not used or not all(isinstance(j, (int, np.integer)) and 0 <= j < X.shape[1] for j in used):
        raise InvalidInputError(
            f"columns={columns!r} is not usable: {where} has columns 0 to {X.shape[1] - 1}."
        )
    names = tuple(f"x{j}" for j in used)
    plain = used == list(range(X.shape[1]))
    found: list[Any] = [file.base for file in files]
    maps = [m for m in found if isinstance(m, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED")]
    stamps = FileStamps.of(file.filename for file in files) if files else None  # type: ignore[attr-defined]
    return ArrayReader(X, y, w, names, None if plain else used, where, tuple(maps), stamps)
