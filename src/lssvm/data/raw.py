"""Rows as files hold them: columns of numbers (booleans, dates and durations too) and of text.

At the end what a pass over the data reads: blocks of rows, from arrays or any `RowSource`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, float_rows, is_sparse
from lssvm._core.blocks import slices
from lssvm._core.errors import InvalidInputError
from lssvm.data.columns import RawColumn, RawTable, category_column, moments_of

CHUNK = 8192  # rows of the blocks that every pass sees, whatever was read at once
SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_CHUNK_NUMBERS = 2**21  # but no more numbers than these, down to 1,024 rows


def chunk_rows(n_columns: int, most: int = CHUNK) -> int:
    """Return the rows of the blocks of a data set, which depend on its columns alone."""
    return int(max(1024, min(most, _CHUNK_NUMBERS // max(n_columns, 1))))


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of strings, every string stored once.

    Attributes
    ----------
    codes : int array of shape (b,)
        Position of each row's string in ``levels``; -1 where it is missing.
    levels : tuple of str

    Examples
    --------
    >>> from lssvm.data.raw import TextColumn
    >>> column = TextColumn.of(["red", None, "blue", "red"])
    >>> column.levels, column.codes.tolist()
    (('blue', 'red'), [1, -1, 0, 1])
    """

    codes: IntArray
    levels: tuple[str, ...]

    @classmethod
    def of(cls, values: Iterable[Any]) -> TextColumn:
        """Return the column of any values; None and NaN are missing."""
        return cls.of_column(category_column("", list(values)))

    @classmethod
    def of_column(cls, column: RawColumn) -> TextColumn:
        """Return typed values as text."""
        if column.kind == "empty":
            return cls(np.full(len(column), -1, dtype=np.intp), ())
        if column.kind == "date":
            column = category_column(column.name, column.values.tolist())
        elif column.kind != "category":
            column = column.as_category()
        return cls(column.values, column.levels)

    def column(self, name: str) -> RawColumn:
        """Return the texts as a typed column."""
        if not np.any(self.codes >= 0):
            return RawColumn(name, "empty", np.full(len(self.codes), np.nan))
        order = np.argsort(self.levels, kind="stable")
        place = np.append(np.argsort(order), -1)
        levels = tuple(self.levels[i] for i in order)
        return RawColumn(name, "category", place[self.codes], levels).take(slice(None))

    @property
    def texts(self) -> AnyArray:
        """The strings themselves, shape (n,); None where one is missing."""
        return np.array([*self.levels, None], dtype=object)[self.codes]

    def take(self, rows: Any) -> TextColumn:
        """Return some rows."""
        return TextColumn(self.codes[rows], self.levels)

    @classmethod
    def join(cls, parts: Sequence[TextColumn]) -> TextColumn:
        """Return the parts one after the other."""
        if all(part.levels == parts[0].levels for part in parts):
            return cls(np.concatenate([part.codes for part in parts]), parts[0].levels)
        levels = tuple(sorted({level for part in parts for level in part.levels}))
        code = {level: i for i, level in enumerate(levels)}
        tables = [np.array([code[level] for level in part.levels] + [-1]) for part in parts]
        codes = [table[part.codes] for table, part in zip(tables, parts, strict=True)]
        return cls(np.concatenate(codes).astype(np.intp), levels)


@dataclass(frozen=True, eq=False)
class RawBlock:
    """Consecutive rows (or a choice of rows) before they are prepared.

    Attributes
    ----------
    schema : Schema
        The columns of features.
    numbers : array of shape (b, p)
        The columns of numbers in their order; NaN is missing. Booleans are 0 and 1, dates days
        since 1970, durations days.
    texts : tuple of TextColumn
        The columns of text in their order.
    target : array of shape (b,) or (b, k), or None
    weight : array of shape (b,) or None
    start : int
        Position of the first row among all rows of the scan.
    places : tuple of (int, str, int)
        For each file that rows come from: first row in the block, file, row there.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.raw import RawBlock, Schema
    >>> places = ((0, "a.csv", 5), (2, "b.csv", 0))
    >>> block = RawBlock(Schema.of_numbers(2), np.ones((3, 2)), (), None, None, 5, places)
    >>> len(block), block.place(2), block.cut(1, 3).place(0)
    (3, 'line 2 of b.csv', 'line 8 of a.csv')
    """

    schema: Schema
    numbers: FloatArray
    texts: tuple[TextColumn, ...]
    target: AnyArray | None
    weight: FloatArray | None
    start: int
    places: tuple[tuple[int, str, int], ...] = ()

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def of_table(
        cls, table: RawTable, schema: Schema | None = None, where: str = "the table"
    ) -> RawBlock:
        """Return typed columns as rows; raise where they do not go with a given schema."""
        actual = Schema.of_table(table)
        if schema is None:
            schema = actual
        else:
            known = dict(zip(schema.names, schema.kinds, strict=True))
            kinds = [  # a column without values goes with every kind
                known.get(column.name, kind) if column.kind == "empty" else kind
                for column, kind in zip(table.columns, actual.kinds, strict=True)
            ]
            schema.check(replace(actual, kinds=tuple(kinds)), where)
        columns = dict(zip(table.names, table.columns, strict=True))
        numbers = [_as_numbers(columns[name]) for name in schema.numbers]
        texts = tuple(TextColumn.of_column(columns[name]) for name in schema.texts)
        stacked = np.column_stack([np.empty((table.n_rows, 0)), *numbers])
        return cls(schema, stacked, texts, None, None, 0)

    @cached_property
    def table(self) -> RawTable:
        """The rows as typed columns."""
        texts, numbers = iter(self.texts), iter(self.numbers.T)
        zones = dict(self.schema.zones)
        columns = []
        for name, kind in zip(self.schema.names, self.schema.kinds, strict=True):
            if kind == "text":
                columns.append(next(texts).column(name))
                continue
            values: Any = np.ascontiguousarray(next(numbers))
            if len(values) and np.isnan(values).all():
                kind = "empty"
            elif kind == "date":
                values = moments_of(values)
            columns.append(RawColumn(name, kind, values, zone=zones.get(name)))
        return RawTable(tuple(columns), self.schema.named, len(self), self.place)

    def features(self, preparation: Any) -> FloatArray:
        """Return the features: prepared, or the numbers as they are (None)."""
        if preparation is None:
            return plain_features(self)
        return preparation.transform(self)  # type: ignore[no-any-return]

    def place(self, row: int) -> str:
        """Say where a row of the block comes from."""
        inside = [place for place in self.places if place[0] <= row]
        if not inside:
            return f"row {self.start + row}"
        first, name, offset = inside[-1]
        return file_place(name, offset + row - first)

    def cut(self, start: int, stop: int) -> RawBlock:
        """Return consecutive rows; nothing is copied."""
        rows = slice(start, stop)
        before = [p for p in self.places if p[0] <= start][-1:]
        places = [(0, name, offset + start - first) for first, name, offset in before]
        places += [(f - start, name, o) for f, name, o in self.places if start < f < stop]
        return replace(self.take(rows), start=self.start + start, places=tuple(places))

    def take(self, rows: IntArray | slice) -> RawBlock:
        """Return chosen rows; where they come from is not kept."""
        return RawBlock(
            self.schema,
            self.numbers[rows],
            tuple(text.take(rows) for text in self.texts),
            None if self.target is None else self.target[rows],
            None if self.weight is None else self.weight[rows],
            self.start,
        )

    @classmethod
    def join(cls, parts: Sequence[RawBlock]) -> RawBlock:
        """Return the rows of the parts one after the other."""
        if len(parts) == 1:
            return parts[0]
        starts = np.cumsum([0] + [len(part) for part in parts]).tolist()
        first = parts[0]
        texts = zip(*[part.texts for part in parts], strict=True)
        return cls(
            first.schema,
            np.concatenate([part.numbers for part in parts]),
            tuple(TextColumn.join(columns) for columns in texts),
            None if first.target is None else np.concatenate([p.target for p in parts]),
            None if first.weight is None else np.concatenate([p.weight for p in parts]),
            first.start,
            tuple(
                (begin + row, name, offset)
                for begin, part in zip(starts, parts, strict=False)
                for row, name, offset in part.places
            ),
        )


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of a table in memory, as a `RawBlock` has those of files."""

    table: RawTable
    target: AnyArray | None = None
    weight: FloatArray | None = None
    start: int = 0

    def __len__(self) -> int:
        return self.table.n_rows

    def features(self, preparation: Any) -> FloatArray:
        """Return the features."""
        return preparation.transform(self.table)  # type: ignore[no-any-return]


def _as_numbers(column: RawColumn) -> FloatArray:
    """Return the numbers of a column; texts may be written numbers."""
    if column.kind != "category":
        return column.numbers()
    try:
        levels = np.array([*column.levels, "nan"], dtype=np.float64)
    except ValueError as error:
        raise InvalidInputError(
            f"Column {column.name!r} has values that are not numbers ({error}), but numbers are "
            "expected there."
        ) from error
    return np.asarray(levels[column.values])


def file_place(name: str, row: int) -> str:
    """Say where a row is that is counted from 0: its line in text files, the first one is 1.

    Examples
    --------
    >>> from lssvm.data.raw import file_place
    >>> file_place("a.csv", 0), file_place("a.xlsx", 0), file_place("a.parquet", 0)
    ('line 2 of a.csv', 'row 2 of a.xlsx', 'row 0 of a.parquet')
    """
    base = name.lower().removesuffix(".gz")
    if base.endswith((".csv", ".tsv", ".txt")):
        from lssvm.data.csv_files import csv_place

        return csv_place(name, row)
    if base.endswith((".jsonl", ".ndjson")):
        return f"line {row + 1} of {name}"
    return f"row {row + 2 if base.endswith(SHEETS) else row} of {name}"


def stacked(targets: Sequence[AnyArray]) -> AnyArray | None:
    """Return the targets of a block: None, one (n,), or several side by side (n, k)."""
    if len(targets) < 2:
        return targets[0] if targets else None
    return np.column_stack(targets)


def rechunk(blocks: Iterable[RawBlock], rows: int = CHUNK) -> Iterator[RawBlock]:
    """Cut a stream of blocks anew, into blocks of ``rows`` rows (the last may be shorter).

    What is computed block by block then has the same bits whatever was read at once.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.raw import RawBlock, Schema, rechunk
    >>> one = Schema.of_numbers(1)
    >>> parts = [RawBlock(one, np.ones((b, 1)), (), None, None, s) for b, s in ((3, 0), (4, 3))]
    >>> [(len(block), block.start) for block in rechunk(parts, 5)]
    [(5, 0), (2, 5)]
    """
    waiting: list[RawBlock] = []
    count = 0
    for block in blocks:
        begin = 0
        while len(block) - begin >= rows - count:
            stop = begin + rows - count
            yield RawBlock.join([*waiting, block.cut(begin, stop)])
            waiting, count, begin = [], 0, stop
        if begin < len(block):
            waiting.append(block.cut(begin, len(block)))
            count += len(waiting[-1])
    if waiting:
        yield RawBlock.join(waiting)


@dataclass(frozen=True)
class Schema:
    """Names of the columns of features and what they hold.

    That is "number", "boolean", "date" or "duration", which all are numbers of a `RawBlock`, or
    "text". ``zones`` are pairs of columns of dates and their time zones. ``named`` is whether
    the columns have names of their own, by which they are found again; those of an array are x0,
    x1 and so on.

    Examples
    --------
    >>> from lssvm.data.raw import Schema
    >>> Schema(("age", "job"), ("number", "text")).texts
    ('job',)
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    zones: tuple[tuple[str, str], ...] = ()
    named: bool = True

    @classmethod
    def of_numbers(cls, d: int) -> Schema:
        """Return the schema of an array of d columns."""
        return cls(tuple(f"x{j}" for j in range(d)), ("number",) * d, named=False)

    @classmethod
    def of_table(cls, table: RawTable) -> Schema:
        """Return the schema of typed columns; those without values are text."""
        kinds = [_WORDS.get(column.kind, column.kind) for column in table.columns]
        zones = tuple((c.name, c.zone) for c in table.columns if c.zone is not None)
        return cls(table.names, tuple(kinds), zones, table.named)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that are numbers of a block."""
        return tuple(n for n, k in zip(self.names, self.kinds, strict=True) if k != "text")

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of text."""
        return tuple(n for n, k in zip(self.names, self.kinds, strict=True) if k == "text")

    def check(self, other: Schema, where: str) -> None:
        """Raise where ``other``, found at ``where``, holds something else."""
        actual = dict(zip(other.names, other.kinds, strict=True))
        for name, kind in zip(self.names, self.kinds, strict=True):
            if name not in actual:
                raise InvalidInputError(
                    f"{where} has no column {name!r}; it has {sorted(actual)}. Give files with the "
                    "same columns, or name the ones to use with columns=."
                )
            if _GROUPS[actual[name]] != _GROUPS[kind] and {actual[name], kind} != {"date", "text"}:
                raise InvalidInputError(
                    f"Column {name!r} of {where} holds {actual[name]}s, but {kind}s were expected "
                    "there. Convert that file, or leave the column out with columns=."
                )


SCANNED = ("number", "boolean", "date", "duration", "text")
"""What a column of a scan can hold."""

_WORDS = {"category": "text", "empty": "text"}
_GROUPS = {"number": 0, "boolean": 0, "duration": 0, "date": 1, "text": 2}
"""What a column may hold in place of another kind; dates may also be written as text."""


class Reader(Protocol):
    """What a format has to give, and how rows of one machine are passed over."""

    distributed: ClassVar[bool] = False

    @property
    def schema(self) -> Schema:
        """Columns of features."""

    def count(self) -> int:
        """Return the number of rows."""

    def blocks(self, batch_rows: int) -> Iterator[RawBlock]:
        """Yield all rows in order, in blocks of any size."""

    def choose(self, names: tuple[str, ...], kinds: Mapping[str, str]) -> Self:
        """Return a reader of some columns, where they have names."""
        return replace(self, columns=names)  # type: ignore[type-var]

    def reduce(self, scan: Any, work: Callable[[Any], Any], combine: Callable[..., Any]) -> Any:
        """Combine what ``work`` returns for the parts of a scan: here it is one."""
        return work(scan)

    def stream(self, scan: Any, work: Callable[[Any], Any]) -> Iterator[Any]:
        """Yield what ``work`` returns for the parts of a scan."""
        return iter([work(scan)])

    def collect(self, scan: Any, work: Callable[[Any], Any], empty: AnyArray, name: str) -> Any:
        """Return what ``work`` returns for the rows of a scan, as one array.

        Where the rows lie in parts, it is a lazy collection: ``empty`` is the array of no rows, and
        ``name`` that of a series.
        """
        return work(scan)

    def check_split(self) -> None:
        """Raise where rows cannot be split by their positions."""
        return

    def resources(self, budget: int, threads: int) -> tuple[int, int]:
        """Return memory in bytes and threads for a pass over one part."""
        return budget, threads


def check_rows(block: RawBlock) -> None:
    """Raise where a row has no target, or a target or weight that cannot be learned from."""
    y = block.target
    if y is None:
        raise InvalidInputError("The data set has no target: give scan(..., target=...).")
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        row = int(np.flatnonzero(~np.isfinite(y.reshape(len(y), -1)).all(axis=1))[0])
        raise InvalidInputError(
            f"The target is missing or infinite (NaN, inf) in {block.place(row)}: remove such rows."
        )
    if block.weight is None:
        return
    bad = np.flatnonzero(~(np.isfinite(block.weight) & (block.weight >= 0)))
    if len(bad):
        raise InvalidInputError(
            f"The weight is negative, missing or infinite in {block.place(int(bad[0]))}: weights "
            "must be finite and >= 0."
        )


def check_features(block: RawBlock, missing: str) -> None:
    """Raise where a feature is infinite, or missing where that is to be refused."""
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(block.numbers.sum())
    if finite and not block.texts:
        return
    infinite = np.isinf(block.numbers)
    if infinite.any():
        row, column = (int(i[0]) for i in np.nonzero(infinite))
        raise InvalidInputError(
            f"Column {block.schema.numbers[column]!r} has an infinite value in {block.place(row)}: "
            "replace it by a number or by a missing value, or leave out the row or the column."
        )
    if missing == "fill":
        return
    gaps = [*np.isnan(block.numbers).T, *(text.codes < 0 for text in block.texts)]
    names = (*block.schema.numbers, *block.schema.texts)
    for name, absent in zip(names, gaps, strict=True):
        if absent.any():
            raise InvalidInputError(
                f"Column {name!r} has a missing value (NaN) in "
                f"{block.place(int(np.argmax(absent)))}: remove such rows, or have them filled "
                "(missing='fill')."
            )


def plain_features(block: RawBlock) -> FloatArray:
    """Return the numbers of a block as they are; raise where one is missing, or a text."""
    if block.texts:
        raise InvalidInputError(
            f"The columns {list(block.schema.texts)} hold text, but numbers are needed: have them "
            "prepared with scan(X, target=...), or leave them out."
        )
    if np.isnan(block.numbers).any():
        row, column = (int(i[0]) for i in np.nonzero(np.isnan(block.numbers)))
        raise InvalidInputError(
            f"Column {block.schema.numbers[column]!r} has a missing value (NaN) in "
            f"{block.place(row)}: remove such rows, or fill the gaps before the fit (scan(X, "
            "target=...) has them filled)."
        )
    return block.numbers


class Block(NamedTuple):
    """Consecutive rows of a source.

    Attributes
    ----------
    X : array of shape (b, d)
        Rows.
    Y : array of shape (b, k)
        Targets.
    weight : array of shape (b,) or None
        None where all weights are one.
    start : int
        Position of the first row in the source.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data import ArraySource
    >>> ArraySource(np.ones((5, 2)), np.ones((5, 1))).read(slice(2, 4)).start
    2
    """

    X: FloatArray
    Y: FloatArray
    weight: FloatArray | None
    start: int


class RowSource(Protocol):
    """Rows that can be read in blocks; what a pass over the data needs.

    Examples
    --------
    Whatever has these three members can be passed over, for example rows that are made up:

    >>> import numpy as np
    >>> from lssvm.data import Block
    >>> from lssvm.kernels import Linear
    >>> from lssvm.solvers.moments import accumulate
    >>> class Ones:
    ...     n_rows, n_targets = 5, 1
    ...     def read(self, part):
    ...         b = part.stop - part.start
    ...         return Block(np.ones((b, 2)), np.ones((b, 1)), None, part.start)
    >>> accumulate(Linear(), Ones(), np.eye(2))[0].weight
    5.0
    """

    @property
    def n_rows(self) -> int:
        """Rows there are."""

    @property
    def n_targets(self) -> int:
        """Columns of Y."""

    def read(self, part: slice) -> Block:
        """Return the rows ``part`` (start and stop given, no step) as float64.

        Parameters
        ----------
        part : slice
            Positions in the source.
        """


def is_source(data: Any) -> bool:
    """Say whether ``data`` is a `RowSource`."""
    return hasattr(data, "read") and hasattr(data, "n_targets")


@dataclass(frozen=True, eq=False)
class LookedUp:
    """An array (n, k) of few different rows, of which only the numbers are stored.

    The targets of a classifier are such: indexing gives the targets of the indexed rows, and
    `numpy.asarray` those of all.

    Parameters
    ----------
    table : array of shape (q, k)
        The different rows.
    numbers : int array of shape (n,)
        Which row of the table each row is.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data import LookedUp
    >>> targets = LookedUp(np.array([[-1.0], [1.0]]), np.array([0, 1, 1]))
    >>> targets.shape, targets[1:].tolist(), np.asarray(targets).tolist()
    ((3, 1), [[1.0], [1.0]], [[-1.0], [1.0], [1.0]])
    """

    table: FloatArray
    numbers: NDArray[np.integer[Any]]
    ndim: ClassVar[int] = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.numbers), int(self.table.shape[1])

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> FloatArray:
        return np.asarray(self.table[self.numbers[rows]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        if copy is False:
            raise ValueError("The rows are looked up: there is no array of them without a copy.")
        return np.asarray(self.table[self.numbers], dtype=dtype)


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Rows of arrays in memory, in the order of a pass.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Rows.
    Y : array of shape (n, k) or LookedUp
        Targets; `LookedUp` where few of them differ.
    weight : array of shape (n,) or None, default=None
        Weights of the rows; None: all are one.
    order : int array of shape (r,) or None, default=None
        Rows of ``X`` in the order of the pass; a row may come several times or never. None: as
        they are.

    Notes
    -----
    Rows are gathered block by block: no copy of ``X`` is made.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data import ArraySource
    >>> source = ArraySource(np.arange(6.0).reshape(3, 2), np.ones((3, 1)), order=np.array([2, 0]))
    >>> [block.X.tolist() for block in source.blocks(1)]
    [[[4.0, 5.0]], [[0.0, 1.0]]]
    """

    X: AnyArray
    Y: AnyArray | LookedUp
    weight: FloatArray | None = None
    order: IntArray | None = None

    def __post_init__(self) -> None:
        n = self.X.shape[0]
        if self.Y.ndim != 2 or self.Y.shape[0] != n:
            raise InvalidInputError(
                f"Y has shape {self.Y.shape} but X has {n} rows: give targets of shape ({n}, k)."
            )
        if self.weight is not None and self.weight.shape != (n,):
            raise InvalidInputError(
                f"weight has shape {self.weight.shape} but X has {n} rows: give one per row."
            )

    @property
    def n_rows(self) -> int:
        """Rows that a pass sees."""
        return int(self.X.shape[0] if self.order is None else len(self.order))

    @property
    def n_targets(self) -> int:
        """Columns of Y."""
        return int(self.Y.shape[1])

    def read(self, part: slice) -> Block:
        """Return the rows ``part`` of the pass as float64.

        Parameters
        ----------
        part : slice
            Positions in the pass; start and stop given, no step.
        """
        rows: Any = part if self.order is None else self.order[part]
        weight = None if self.weight is None else self.weight[rows]
        gathered = self.order is not None and not is_sparse(self.X)
        X = float_rows(np.take(self.X, rows, axis=0) if gathered else self.X[rows])
        return Block(X, np.asarray(self.Y[rows], dtype=np.float64), weight, int(part.start))

    def blocks(self, rows: int) -> Iterator[Block]:
        """Iterate over all rows in blocks of at most ``rows`` rows.

        Parameters
        ----------
        rows : int
            Of a block at most.
        """
        for part in slices(self.n_rows, rows):
            yield self.read(part)
