"""Tables of very many rows, in memory or in files: passed over in blocks, looked at in a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, check_weight
from lssvm._core.blocks import run_stream
from lssvm._core.errors import InvalidInputError
from lssvm.data import Scan
from lssvm.data.columns import RawColumn, RawTable, read_table
from lssvm.data.dataset import as_scan
from lssvm.data.preparation import PreparedTable
from lssvm.data.raw import TextColumn
from lssvm.fitting.problem import TableBlock
from lssvm.fitting.table_record import Inputs

MANY = 400_000
"""Rows from which on everything but the parts is chosen by a sample."""
SAMPLE = 100_000
"""Rows of that sample."""
_BLOCK = 50_000  # rows of a block of a table in memory

Encode = Callable[[AnyArray, FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, eq=False)
class SourceBlock:
    """Consecutive or chosen rows of a table.

    Attributes
    ----------
    table : RawTable
    y : array of shape (n,) or (n, k), or None
    weight : array of shape (n,)
    start : int
    """

    table: RawTable
    y: AnyArray | None
    weight: FloatArray
    start: int


@dataclass(frozen=True, eq=False)
class MemorySource:
    """A table in memory.

    Attributes
    ----------
    table : RawTable
    y : array of shape (n,) or (n, k)
    weight : array of shape (n,)
    """

    table: RawTable
    y: AnyArray
    weight: FloatArray

    @classmethod
    def of(cls, X: Any, y: Any, weight: FloatArray) -> MemorySource:
        """Read a table of any kind."""
        return cls(read_table(X), np.asarray(y), weight)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.table.n_rows

    def blocks(self) -> Iterator[SourceBlock]:
        """Yield slices of the table."""
        for start in range(0, self.n_rows, _BLOCK):
            rows = slice(start, start + _BLOCK)
            yield SourceBlock(self.table.take(rows), self.y[rows], self.weight[rows], start)


@dataclass(frozen=True, eq=False)
class ScanSource:
    """A data set in files, or on a cluster.

    Attributes
    ----------
    scan : Scan
    """

    scan: Scan

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.scan.n_rows

    def blocks(self) -> Iterator[SourceBlock]:
        """Yield the blocks of the scan as tables."""
        for raw in self.scan.blocks():
            weight = np.ones(len(raw)) if raw.weight is None else raw.weight
            yield SourceBlock(raw.table, raw.target, weight, raw.start)


TableSource: TypeAlias = MemorySource | ScanSource
"""Rows of a table that are passed over in blocks."""


def chosen_rows(source: TableSource, positions: IntArray | None) -> SourceBlock:
    """Return some rows, or all of them, in one pass.

    Parameters
    ----------
    source : TableSource
    positions : int array, ascending, or None for all rows
    """
    if isinstance(source, MemorySource):
        rows: Any = slice(None) if positions is None else positions
        return SourceBlock(source.table.take(rows), source.y[rows], source.weight[rows], 0)
    taken = []
    for block in source.blocks():
        if positions is None:
            taken.append(block)
            continue
        begin, end = np.searchsorted(positions, [block.start, block.start + block.table.n_rows])
        own = positions[begin:end] - block.start
        y = None if block.y is None else block.y[own]
        taken.append(SourceBlock(block.table.take(own), y, block.weight[own], block.start))
    if any(block.y is None for block in taken):
        raise InvalidInputError(
            "The scan has no target: name the column to predict with scan(..., target=...)."
        )
    return SourceBlock(
        joined([block.table for block in taken]),
        np.concatenate([block.y for block in taken if block.y is not None]),
        np.concatenate([block.weight for block in taken]),
        0,
    )


def joined(tables: Sequence[RawTable]) -> RawTable:
    """Return tables with the same columns one below the other.

    Examples
    --------
    >>> from lssvm.estimators.table_source import joined
    >>> from lssvm.data.columns import read_table
    >>> both = joined([read_table({"job": ["cook"]}), read_table({"job": ["smith", None]})])
    >>> both.columns[0].levels, both.columns[0].values.tolist()
    (('cook', 'smith'), [0, 1, -1])
    """
    columns = []
    for same in zip(*[table.columns for table in tables], strict=True):
        name = same[0].name
        kinds = {column.kind for column in same} - {"empty"}
        if kinds == {"category"}:
            texts = [
                TextColumn(
                    np.full(len(c), -1, dtype=np.intp) if c.kind == "empty" else c.values, c.levels
                )
                for c in same
            ]
            columns.append(TextColumn.join(texts).column(name))
        else:
            kind, nothing = next(iter(kinds), "empty"), np.datetime64("NaT", "us")
            parts = [
                np.full(len(c), nothing) if kind == "date" and c.kind == "empty" else c.values
                for c in same
            ]
            zone = next((c.zone for c in same if c.zone is not None), None)
            columns.append(RawColumn(name, kind, np.concatenate(parts), zone=zone))
    return RawTable(tuple(columns), tables[0].named, sum(table.n_rows for table in tables))


@dataclass(frozen=True, eq=False)
class LargeTable:
    """A table of very many rows, and the sample that everything but the parts is chosen by.

    Attributes
    ----------
    source : TableSource
    sample : int array of shape (m,)
        Positions of the rows of the sample, ascending.
    encode : callable
        From targets and weights to (Y, weight).
    """

    source: TableSource
    sample: IntArray
    encode: Encode

    def scaled_by(self, scale: float) -> Encode:
        """Return the encoding with weights divided by a number."""

        def encode(y: AnyArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
            Y, w = self.encode(y, weight)
            return Y, w / scale

        return encode


def open_table(
    X: Any, y: Any, sample_weight: Any, groups: Any
) -> TableSource | tuple[Any, Any, FloatArray]:
    """Return very many rows as what is passed over in blocks, others as X, y and their weights."""
    data = as_scan(X, y, sample_weight)
    if data is not None:
        if groups is not None:
            raise InvalidInputError(
                "groups= cannot be given with a scan: read the table into memory and give it as a "
                "data frame."
            )
        source = ScanSource(data.watched())
        if source.n_rows > MANY:
            return source
        block = chosen_rows(source, None)
        X, y, sample_weight = block.table, block.y, block.weight
    weight = weight_of(X, sample_weight)
    if not len(weight):
        raise InvalidInputError("X has 0 sample(s) while a minimum of 1 is required.")
    few = data is not None or y is None or groups is not None or len(weight) <= MANY
    return (X, y, weight) if few else MemorySource.of(X, y, weight)


def weight_of(X: Any, sample_weight: Any) -> FloatArray:
    """Return one weight per row of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.estimators.table_source import weight_of
    >>> weight_of(np.ones((3, 1)), None)
    array([1., 1., 1.])
    """
    n = n_rows_of(X)
    weight = check_weight(sample_weight, n)
    return np.ones(n) if weight is None else weight


def n_rows_of(X: Any) -> int:
    """Return the number of rows of a table, whatever it is."""
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    if isinstance(X, Mapping):
        return max((len(column) for column in X.values()), default=0)
    if hasattr(X, "__len__"):
        return len(X)
    if hasattr(X, "__array__"):
        return len(np.asarray(X))
    raise InvalidInputError(
        f"X is a {type(X).__name__}: give a data frame, an Arrow table, a mapping of columns or an "
        "array of shape (n, d)."
    )


def draw_sample(source: TableSource, seed: int) -> IntArray:
    """Return the positions of the sample, ascending."""
    random = np.random.default_rng(seed)
    return np.sort(random.choice(source.n_rows, SAMPLE, replace=False)).astype(np.intp)


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """All rows of a source, prepared block by block.

    Attributes
    ----------
    source : TableSource
    prepared : mapping from inputs to PreparedTable
    encode : callable
        From targets and weights to (Y, weight).
    sample : int array of shape (m,)
    features : mapping from inputs to arrays of shape (m, d)
        Of the rows of the sample, encoded out of fold.
    budget : int
    threads : int
    """

    source: TableSource
    prepared: Mapping[Inputs, PreparedTable]
    encode: Encode
    sample: IntArray
    features: Mapping[Inputs, FloatArray]
    budget: int
    threads: int

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.source.n_rows

    def blocks(self, inputs: Sequence[Inputs]) -> Iterator[TableBlock]:
        """Yield all rows in order with the inputs that are asked for."""

        def work(block: SourceBlock) -> TableBlock:
            begin, end = np.searchsorted(
                self.sample, [block.start, block.start + block.table.n_rows]
            )
            features = {}
            for name in inputs:
                prepared = self.prepared[name]
                X = prepared.transform(block.table)
                X[self.sample[begin:end] - block.start] = self.features[name][begin:end]
                features[name] = X
            assert block.y is not None
            Y, weight = self.encode(block.y, block.weight)
            return TableBlock(features, Y, weight, block.start)

        return run_stream(work, self.source.blocks(), self.threads)
