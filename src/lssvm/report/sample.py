"""A sample of rows in memory, of whatever the data set is, as the model takes them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import AnyArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.data import Scan, scan
from lssvm.data.folds import hash_rows
from lssvm.data.frames import FrameReader, is_frame, raw_block
from lssvm.data.raw import RawBlock, Schema, TextColumn, check_rows, plain_features
from lssvm.plots.fitted import Estimator, behind_steps, fitted_model
from lssvm.preparation import read_table
from lssvm.report.model_facts import column_kinds, columns_of, preparation_of

LIMIT = 50_000  # rows that are kept in memory


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Rows of a data set with their targets.

    Attributes
    ----------
    block : RawBlock
        Rows of positive weight, with targets.
    schema : Schema
        Columns of features.
    n_rows : int
        Rows there are, of which ``block`` holds all or a uniform sample.
    positions : int array
        Where the rows stand among all rows.
    target : tuple of str
        Names of the target, where it has any.
    files : tuple of str
        Where the rows come from, where that is files.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVC
    >>> from lssvm.report.sample import SampledRows
    >>> X, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 1])
    >>> rows = SampledRows.read(LSSVC(gamma=1.0).fit(X, y), (X, y))
    >>> rows.n_rows, rows.schema.names, rows.take([2]).y.tolist()
    (3, ('x0', 'x1'), [1])
    """

    block: RawBlock
    schema: Schema
    n_rows: int
    positions: IntArray
    target: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @classmethod
    def read(cls, estimator: Estimator, data: Any, limit: int = LIMIT, seed: int = 0) -> Self:
        """Read at most ``limit`` rows, drawn uniformly, of a scan or a pair (X, y).

        Parameters
        ----------
        estimator : object
            Fitted; its columns are read.
        data : Scan or (X, y)
        limit : int, default=50000
        seed : int, default=0

        Notes
        -----
        One pass over the data, one more to count the rows of files. Memory of the sample.
        """
        if isinstance(data, tuple) and len(data) == 2:
            block, schema = _from_pair(*data, typed=column_kinds(estimator) is not None)
            return cls._of(_sample([block], len(block), limit, seed), schema, len(block))
        if not isinstance(data, Scan):
            raise InvalidInputError(
                f"The rows of a report came as {type(data).__name__}: give lssvm.scan(...) with a "
                "target, or a pair (X, y)."
            )
        if not data.has_target:
            raise InvalidInputError(
                "The rows of a report have no target: give scan(..., target=...)."
            )
        data, ready = data.select(*columns_of(estimator)), preparation_of(estimator)
        if ready is not None and data.named:
            ready.schema.check(data.schema, "the data set")
        n = data.n_rows
        rows = cls._of(_sample(data.blocks(), n, limit, seed), data.schema, n)
        reader = innermost_reader(data)
        target, files = getattr(reader, "target", ()), getattr(reader, "files", ())
        names = target if isinstance(target, tuple) else ()
        return replace(rows, target=tuple(map(str, names)), files=tuple(map(str, files)))

    @classmethod
    def _of(cls, sampled: tuple[RawBlock, IntArray], schema: Schema, n: int) -> Self:
        block, positions = sampled
        check_rows(block)
        if block.weight is not None:
            used = np.flatnonzero(block.weight > 0)
            block, positions = block.take(used), positions[used]
        if len(block) == 0:
            raise InvalidInputError("The rows of a report are empty, or have no weight.")
        return cls(block, schema, n, positions)

    def __len__(self) -> int:
        return len(self.block)

    @property
    def complete(self) -> bool:
        """Whether these are all rows."""
        return len(self) == self.n_rows

    @property
    def y(self) -> AnyArray:
        """The targets, shape (n,) or (n, k)."""
        assert self.block.target is not None
        return self.block.target

    @property
    def weight(self) -> FloatArray | None:
        """The weights, shape (n,); None where all are one."""
        weight = self.block.weight
        return None if weight is None or np.all(weight == weight[0]) else weight

    def take(self, rows: Any) -> SampledRows:
        """Return some rows."""
        index = np.asarray(rows, dtype=np.intp)
        return replace(self, block=self.block.take(index), positions=self.positions[index])

    def some(self, limit: int, seed: int = 0) -> SampledRows:
        """Return at most so many rows, drawn at random, in their order."""
        if len(self) <= limit:
            return self
        rng = np.random.default_rng(seed)
        return self.take(np.sort(rng.choice(len(self), limit, replace=False)))

    def moved(self, name: str, places: IntArray) -> SampledRows:
        """Return rows where one column has values of other rows.

        Parameters
        ----------
        name : str
            Of the column.
        places : int array of shape (n,)
            Which row each of its values comes from.
        """
        column = self.columns()[name]
        moved = column.take(places) if isinstance(column, TextColumn) else column[places]
        return self.replaced({name: moved})

    def replaced(self, values: dict[str, Any]) -> SampledRows:
        """Return rows with other values in some columns: numbers (n,), texts (n,), or a column."""
        numbers, texts = self.block.numbers.copy(), list(self.block.texts)
        for name, column in values.items():
            if name in self.schema.texts:
                coded = column if isinstance(column, TextColumn) else TextColumn.of(list(column))
                texts[self.schema.texts.index(name)] = coded
            else:
                numbers[:, self.schema.numbers.index(name)] = column
        return replace(self, block=replace(self.block, numbers=numbers, texts=tuple(texts)))

    def columns(self) -> dict[str, FloatArray | TextColumn]:
        """Return the columns by their names, in the order of the schema."""
        numbers = dict(zip(self.schema.numbers, self.block.numbers.T, strict=True))
        texts = dict(zip(self.schema.texts, self.block.texts, strict=True))
        found: dict[str, FloatArray | TextColumn] = {**numbers, **texts}
        return {name: found[name] for name in self.schema.names}

    def values(self) -> dict[str, AnyArray]:
        """Return the columns by their names, strings as they are."""
        columns = self.columns().items()
        return {name: c.texts if isinstance(c, TextColumn) else c for name, c in columns}

    def codes(self) -> FloatArray:
        """Return all columns as numbers, strings by their position; only to tell rows apart."""
        return np.column_stack([self.block.numbers, *map(as_numbers, self.block.texts)])

    def keys(self) -> NDArray[np.uint64]:
        """Return a hash of every row with its target, the same for equal rows anywhere."""
        columns = [np.nan_to_num(self.block.numbers, nan=0.123456789)]
        for text in (*self.block.texts, TextColumn.of(map(str, self.y.tolist()))):
            levels = [zlib.crc32(level.encode("utf-8", "replace")) for level in text.levels]
            columns.append(np.array([*levels, 0], dtype=np.float64)[text.codes][:, None])
        return hash_rows(np.hstack(columns), 0)

    def given(self, estimator: Estimator) -> Any:
        """Return the rows as the estimator takes them for a prediction."""
        if preparation_of(estimator) is not None:
            return replace(self.block, target=None, weight=None)
        kinds = column_kinds(estimator)
        if kinds is not None:
            typed = {name: _typed(v, kinds.get(name, "")) for name, v in self.columns().items()}
            if columns_of(estimator)[0] is not None:
                return typed
            plain = np.column_stack([column.astype(object) for column in typed.values()])
            return plain if self.schema.texts else plain.astype(np.float64)
        if columns_of(estimator)[0] is not None:
            try:
                import pandas as pd
            except ImportError:  # our own models take columns by their names as well
                return self.values() if self.schema.texts else plain_features(self.block)
            return pd.DataFrame(self.values())
        if self.schema.texts:
            raise InvalidInputError(
                f"The columns {list(self.schema.texts)} hold text, but the model was fitted to an "
                "array of numbers: give the rows as it takes them."
            )
        return plain_features(self.block)

    def features(self, estimator: Estimator) -> Any:
        """Return the rows as a copy of the estimator is fitted to them, prepared if it prepares."""
        ready = preparation_of(estimator)
        return self.given(estimator) if ready is None else ready.transform(self.block)

    def inner(self, estimator: Estimator) -> FloatArray:
        """Return the features (n, d) that the model itself sees, behind all preparation."""
        return np.asarray(behind_steps(estimator, self.features(estimator)), dtype=np.float64)

    def seen(self, estimator: Estimator) -> Any:
        """Return the rows as the model at the end of an estimator takes them."""
        plain = fitted_model(estimator) is estimator
        return self.given(estimator) if plain else self.inner(estimator)


def as_numbers(values: FloatArray | TextColumn) -> FloatArray:
    """Return a column as numbers, strings by their position."""
    array = values.codes if isinstance(values, TextColumn) else values
    return np.asarray(array, dtype=np.float64)


def innermost_reader(data: Scan) -> Any:
    """Return what reads the rows of a scan, of which it may take a part."""
    reader: Any = data.reader
    while hasattr(reader, "reader"):
        reader = reader.reader
    return reader


def _typed(values: FloatArray | TextColumn, kind: str) -> AnyArray:
    """Return a column as a model for tables has met it: texts, dates, booleans, durations."""
    if isinstance(values, TextColumn):
        return values.texts.astype("datetime64[us]") if kind == "date" else values.texts
    if kind == "boolean" and not np.isnan(values).any():
        return values.astype(bool)
    if kind == "duration":
        return np.asarray((values * 86_400e6).astype("timedelta64[us]"))
    return values


def _read_typed(X: Any) -> tuple[RawBlock, Schema]:
    """Read a table of any kind: dates become texts, booleans and durations (days) numbers."""
    columns: dict[str, Any] = {}
    for column in read_table(X).columns:
        values: Any = column.values
        if column.kind == "category":
            values = TextColumn(np.asarray(values, dtype=np.intp), column.levels)
        elif column.kind == "date":
            known = ~np.isnat(values)
            said = np.datetime_as_string(values, unit="s").astype(object)
            said[~known] = None
            values = TextColumn.of(said.tolist())
        columns[column.name] = values
    names = tuple(columns)
    texts = tuple(name for name in names if isinstance(columns[name], TextColumn))
    schema = Schema(names, tuple("text" if name in texts else "number" for name in names))
    numbers = [columns[name] for name in names if name not in texts]
    n = len(columns[names[0]].codes if names[0] in texts else columns[names[0]])
    stacked = np.column_stack([np.empty((n, 0)), *numbers])
    return RawBlock(stacked, tuple(columns[name] for name in texts), None, None, 0), schema


def _from_pair(X: Any, y: Any, *, typed: bool = False) -> tuple[RawBlock, Schema]:
    target = np.asarray(y)
    if typed:
        block, schema = _read_typed(X)
    elif is_frame(X):
        schema = FrameReader(X, (), None, None).schema
        block = raw_block(X, schema)
    else:
        source = scan(np.asarray(X))
        schema, block = source.schema, RawBlock.join(list(source.blocks()))
    if target.ndim not in (1, 2) or len(target) != len(block):
        raise InvalidInputError(
            f"y has shape {target.shape} but X has {len(block)} rows: give one target per row."
        )
    return replace(block, target=target, places=()), schema


def _sample(blocks: Any, n: int, limit: int, seed: int) -> tuple[RawBlock, IntArray]:
    """Return at most ``limit`` of n rows, and their positions."""
    if n <= limit:
        whole = RawBlock.join(list(blocks))
        return whole, np.arange(len(whole))
    positions = np.sort(np.random.default_rng(seed).choice(n, limit, replace=False))
    parts, start = [], 0
    for block in blocks:
        first, last = np.searchsorted(positions, (start, start + len(block)))
        if last > first:
            check_rows(block)
            parts.append(block.take(positions[first:last] - start))
        start += len(block)
    return RawBlock.join(parts), positions
