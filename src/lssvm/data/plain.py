"""LIBSVM text, NumPy arrays and memory maps, tables in memory, and any `RowSource`.

First the watch over files that have to stay as they are while somebody passes over them again.
"""

from __future__ import annotations

import gzip
import mmap
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from lssvm._core.arrays import AnyArray, FloatArray
from lssvm._core.blocks import slices
from lssvm._core.errors import InvalidInputError
from lssvm.data.columns import RawTable, named_columns, read_column, read_table
from lssvm.data.raw import RawBlock, Reader, Schema, stacked


def _mark(file: str) -> tuple[int, int] | None:
    """Return size and time of a file, None where there is none."""
    try:
        state = os.stat(file)
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns


def changed_file(files: str, what: str) -> InvalidInputError:
    """Return the error of a file that changed while it was read."""
    return InvalidInputError(
        f"{files} changed while it was read: {what}. A fit passes over its rows several times and "
        "needs the same ones each time: wait until nobody writes there, or read a copy, and call "
        "scan(...) again."
    )


@dataclass(frozen=True)
class FileStamps:
    """Sizes and times of some files at one moment.

    Parameters
    ----------
    files : tuple of str
    marks : tuple of (int, int) or None
        Bytes and nanoseconds of each; None for a file that was not there.

    Examples
    --------
    >>> import os, tempfile
    >>> from lssvm.data.plain import FileStamps
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "rows.csv")
    ...     _ = open(name, "w").write("a,b")
    ...     stamps = FileStamps.of([name])
    ...     stamps.check()
    ...     _ = open(name, "w").write("a,b,c")
    ...     stamps.check()
    Traceback (most recent call last):
    ...
    lssvm._core.errors.InvalidInputError: ...rows.csv changed while it was read: ...
    """

    files: tuple[str, ...]
    marks: tuple[tuple[int, int] | None, ...]

    @classmethod
    def of(cls, files: Iterable[str]) -> FileStamps:
        """Return the stamps of files as they are now."""
        names = tuple(str(file) for file in files)
        return cls(names, tuple(_mark(name) for name in names))

    def check(self) -> None:
        """Raise where a file is not what it was."""
        for name, before in zip(self.files, self.marks, strict=True):
            now = _mark(name)
            if now == before or before is None:
                continue
            if now is None:
                raise changed_file(name, "it is gone")
            if now[0] != before[0]:
                raise changed_file(name, f"it had {before[0]:,} bytes and has {now[0]:,}")
            raise changed_file(name, "it was written to")


@dataclass
class Watch:
    """What the first pass over some files has seen, which every later pass is compared with.

    Attributes
    ----------
    stamps : FileStamps
    first : dict or None
        Rows and a checksum of the targets by where they came from; None before the first pass.
    """

    stamps: FileStamps
    first: dict[str, tuple[int, int]] | None = field(default=None)

    @classmethod
    def over(cls, files: Sequence[str]) -> Watch:
        """Begin to watch."""
        return cls(FileStamps.of(files))

    def over_blocks(self, blocks: Iterable[RawBlock]) -> Iterator[RawBlock]:
        """Yield the blocks of one pass, and look after it whether it was like the first one."""
        self.stamps.check()
        seen: dict[str, tuple[int, int]] = {}
        for block in blocks:
            where = block.places[0][1] if block.places else ""
            rows, digest = seen.get(where, (0, 0))
            seen[where] = rows + len(block), _checksum(block, digest)
            yield block
        self.stamps.check()
        self.first = seen if self.first is None else self.first
        for where, (rows, digest) in seen.items():
            known = self.first.get(where, (0, 0))
            name = where if where in self.stamps.files else ", ".join(self.stamps.files[:5])
            if known[0] != rows:
                raise changed_file(name, f"the first pass saw {known[0]:,} rows, this one {rows:,}")
            if known[1] != digest:
                raise changed_file(name, "its targets are not those of the first pass")


def _checksum(block: RawBlock, digest: int) -> int:
    if block.target is None or block.target.dtype.kind == "O":
        return digest
    return zlib.crc32(np.ascontiguousarray(block.target).tobytes(), digest)


@dataclass(frozen=True, eq=False)
class ArrayReader(Reader):
    """Arrays in memory or memory maps; rows are touched block by block.

    Parameters
    ----------
    X : array of shape (n, d)
    target : array of shape (n,) or (n, k), or None
    weight : array of shape (n,) or None
    names : tuple of str
        Of the columns that are used.
    used : sequence of int or None
        Columns of ``X`` that are used; None: all.
    where : str
        What errors call the array.
    maps : tuple of mmap
        Read-only maps of files whose pages are given back after every block: they would count as
        resident memory.
    stamps : FileStamps or None
        Of these files when they were mapped: they must not be cut off or written over.
    """

    X: AnyArray
    target: AnyArray | None
    weight: AnyArray | None
    names: tuple[str, ...]
    used: Sequence[int] | None
    where: str
    maps: tuple[mmap.mmap, ...] = ()
    stamps: FileStamps | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that are mapped."""
        return () if self.stamps is None else self.stamps.files

    @property
    def schema(self) -> Schema:
        """All columns hold numbers."""
        return Schema(self.names, ("number",) * len(self.names), named=False)

    def count(self) -> int:
        """Return the number of rows."""
        return len(self.X)

    def blocks(self, batch_rows: int) -> Iterator[RawBlock]:
        """Yield the rows in order."""
        for part in slices(len(self.X), batch_rows):
            if self.stamps is not None:  # reading beyond the end of a file would end the process
                self.stamps.check()
            rows = self.X[part] if self.used is None else self.X[part][:, list(self.used)]
            yield RawBlock(
                self.schema,
                np.asarray(rows, dtype=np.float64),
                (),
                None if self.target is None else np.asarray(self.target[part]),
                None if self.weight is None else np.asarray(self.weight[part], dtype=np.float64),
                part.start,
                ((0, self.where, part.start),),
            )
            for map in self.maps:
                map.madvise(mmap.MADV_DONTNEED)


@dataclass(frozen=True, eq=False)
class SourceReader(Reader):
    """A `RowSource`: rows of numbers that some object gives on request.

    Parameters
    ----------
    source : RowSource
    """

    source: Any

    @cached_property
    def schema(self) -> Schema:
        """Columns are numbered: x0, x1, ..."""
        return Schema.of_numbers(self.source.read(slice(0, min(1, self.source.n_rows))).X.shape[1])

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.source.n_rows)

    def blocks(self, batch_rows: int) -> Iterator[RawBlock]:
        """Yield the rows in order."""
        for part in slices(self.count(), batch_rows):
            block = self.source.read(part)
            Y = np.asarray(block.Y)
            target = Y[:, 0] if Y.ndim == 2 and Y.shape[1] == 1 else Y
            X = np.asarray(block.X, dtype=np.float64)
            yield RawBlock(self.schema, X, (), target, block.weight, part.start)


@dataclass(frozen=True, eq=False)
class LibsvmReader(Reader):
    """Text files of lines ``label index:value index:value ...``, indices from 1.

    Features are made dense; what a line does not name is zero.

    Parameters
    ----------
    files : sequence of str
    columns : tuple of str or None
        Indices to use, as text; None: from 1 to the largest one, for which the files are read once.
    """

    files: Sequence[str]
    columns: tuple[str, ...] | None

    @cached_property
    def _extent(self) -> tuple[int, int]:
        """Rows and largest index."""
        n = largest = 0
        for lines, file, first in self._lines(65_536):
            index = self._parse(lines, file, first)[1]
            n, largest = n + len(lines), max(largest, int(index.max(initial=0)))
        return n, largest

    @cached_property
    def schema(self) -> Schema:
        """Columns are called by their index."""
        names = self.columns
        if names is None:
            names = tuple(str(j + 1) for j in range(self._extent[1]))
        if not names:
            raise InvalidInputError(f"{self.files[0]} has lines without a single index:value.")
        return Schema(names, ("number",) * len(names))

    def count(self) -> int:
        """Return the number of rows."""
        return self._extent[0]

    def blocks(self, batch_rows: int) -> Iterator[RawBlock]:
        """Yield the rows of all files in order."""
        column = {int(name): j for j, name in enumerate(self.schema.names)}
        table = np.full(max(column) + 1, -1, dtype=np.intp)
        table[list(column)] = list(column.values())
        start = 0
        for lines, file, first in self._lines(batch_rows):
            row, index, value, label = self._parse(lines, file, first)
            if self.columns is None and index.max(initial=0) >= len(table):
                raise InvalidInputError(
                    f"{file} has the index {index.max()} but {len(table) - 1} features are "
                    "expected: it changed while it was read."
                )
            known = index < len(table)
            place = np.where(known, table[np.where(known, index, 0)], -1)
            numbers = np.zeros((len(lines), len(column)))
            inside = place >= 0
            numbers[row[inside], place[inside]] = value[inside]
            yield RawBlock(self.schema, numbers, (), label, None, start, ((0, file, first),))
            start += len(lines)

    def _lines(self, batch_rows: int) -> Iterator[tuple[list[str], str, int]]:
        """Yield batches of lines with their file and the number of the first one."""
        for file in self.files:
            first = 0
            try:
                opened = gzip.open if file.endswith(".gz") else open
                with opened(file, "rt", encoding="utf-8") as handle:
                    while batch := list(islice(handle, batch_rows)):
                        lines = [line.partition("#")[0] for line in batch]
                        lines = [line for line in lines if line.strip()]
                        if lines:
                            yield lines, file, first
                        first += len(lines)
            except (OSError, EOFError, UnicodeDecodeError) as error:
                raise InvalidInputError(f"{file} cannot be read as text: {error}.") from error
            if first == 0:
                raise InvalidInputError(f"{file} is empty: it has no rows. Remove it.")

    @staticmethod
    def _parse(lines: list[str], file: str, first: int) -> tuple[AnyArray, ...]:
        """Return row, index and value of every entry, and the labels."""
        pairs = np.array([line.count(":") for line in lines])
        try:
            flat = np.array(" ".join(lines).replace(":", " ").split(), dtype=np.float64)
            if len(flat) != len(lines) + 2 * int(pairs.sum()):
                raise ValueError
        except ValueError:
            row = next(i for i, line in enumerate(lines) if not _is_libsvm(line))
            raise InvalidInputError(
                f"Row {first + row} of {file} is not a line of LIBSVM text: "
                f"{lines[row].strip()[:60]!r}. Needed is 'label index:value index:value ...'."
            ) from None
        ends = np.cumsum(1 + 2 * pairs)
        heads = ends - 1 - 2 * pairs
        entry = np.ones(len(flat), dtype=bool)
        entry[heads] = False
        rest = flat[entry].reshape(-1, 2)
        index = rest[:, 0].astype(np.intp)
        if np.any(index < 1):
            raise InvalidInputError(f"{file} has an index below 1; LIBSVM text counts from 1.")
        return np.repeat(np.arange(len(lines)), pairs), index, rest[:, 1], flat[heads]


def _is_libsvm(line: str) -> bool:
    try:
        label, *pairs = line.split()
        float(label)
        for pair in pairs:
            index, value = pair.split(":")
            int(index), float(value)
    except ValueError:
        return False
    return True


def is_frame(data: Any) -> bool:
    """Say whether ``data`` is a table with named columns."""
    return isinstance(data, Mapping) or hasattr(data, "columns") or hasattr(data, "column_names")


def frame_numbers(name: str, values: Any) -> FloatArray:
    """Return the numbers of a column of a data frame."""
    return RawBlock.of_table(read_table({name: values}), Schema((name,), ("number",))).numbers[:, 0]


def frame_target(name: str, values: Any, first: int = 0) -> AnyArray:
    """Return the targets of a column of a data frame, which may not be missing.

    Numbers keep their type, for labels that are whole numbers stay whole.
    """
    column = read_column(name, values)
    if column.kind in ("date", "duration"):
        raise InvalidInputError(
            f"The target {name!r} holds {column.kind}s: give numbers or classes."
        )
    if column.missing.any():
        row = first + int(np.flatnonzero(column.missing)[0])
        raise InvalidInputError(f"The target {name!r} is missing in row {row}: remove such rows.")
    if column.kind == "category":
        return np.array(column.levels)[column.values]
    array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    array = np.array(array.tolist()) if array.dtype == object else array  # Python's own numbers
    return column.values if array.dtype.kind not in "biuf" else array


@dataclass(frozen=True, eq=False)
class FrameReader(Reader):
    """A table in memory.

    Parameters
    ----------
    data : data frame, Arrow table, or mapping from names to arrays
    target : tuple of str
    weight : str or None
    columns : tuple of str or None
    """

    data: Any
    target: tuple[str, ...]
    weight: str | None
    columns: tuple[str, ...] | None

    @cached_property
    def _native(self) -> dict[str, Any]:
        return named_columns(self.data) or {}

    @cached_property
    def _table(self) -> RawTable:
        names = self.columns
        others = [*self.target, *([] if self.weight is None else [self.weight])]
        if names is None:
            names = tuple(name for name in self._native if name not in others)
        missing = [name for name in (*names, *others) if name not in self._native]
        if missing or not names:
            raise InvalidInputError(
                f"The table has no columns {missing}; it has {sorted(self._native)}. Name some of "
                "these."
            )
        return read_table(self.data, names)

    @cached_property
    def schema(self) -> Schema:
        """The columns of features."""
        return Schema.of_table(self._table)

    def count(self) -> int:
        """Return the number of rows."""
        return self._table.n_rows

    def blocks(self, batch_rows: int) -> Iterator[RawBlock]:
        """Yield the rows in order."""
        columns, name = self._native, self.weight
        whole = replace(
            RawBlock.of_table(self._table),
            target=stacked([frame_target(name, columns[name]) for name in self.target]),
            weight=None if name is None else frame_numbers(name, columns[name]),
            places=((0, "the table", 0),),
        )
        for part in slices(len(whole), batch_rows):
            yield whole.cut(part.start, part.stop)
