"""Dask arrays and data frames, and files that the workers of a cluster read, as raw rows.

First what their parts are on the worker that has them; then the collections themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, ClassVar, Protocol

import numpy as np

from lssvm._core.arrays import AnyArray, is_dask
from lssvm._core.blocks import slices
from lssvm._core.errors import InvalidInputError
from lssvm.data.arrow import ArrowReader
from lssvm.data.cluster import (
    Combine,
    Part,
    active_client,
    delayed_parts,
    has_futures,
    map_in_order,
    map_reduce,
    need_dask,
    task_resources,
)
from lssvm.data.columns import read_column, read_table
from lssvm.data.plain import (
    ArrayReader,
    FrameReader,
    LibsvmReader,
    frame_numbers,
    frame_target,
)
from lssvm.data.raw import RawBlock, Reader, Schema, stacked


class Opener(Protocol):
    """How the values of a part become rows, on the worker that has them."""

    def schema(self, columns: tuple[str, ...] | None) -> Schema:
        """Return the columns of features; all but those of target and weight for None."""

    def open(self, part: Part, schema: Schema) -> Any:
        """Return a reader of the rows of a part."""

    def length(self, part: Part) -> int:
        """Return the rows of a part."""
        return len(part.values[0])

    def where(self, part: Part) -> str:
        """Return what errors call the part."""
        return f"partition {part.number}"


@dataclass(frozen=True)
class ArrayParts(Opener):
    """Chunks of a Dask array, with those of target and weight."""

    n_columns: int

    def schema(self, columns: tuple[str, ...] | None) -> Schema:
        """All columns hold numbers."""
        return Schema.of_numbers(self.n_columns)

    def open(self, part: Part, schema: Schema) -> ArrayReader:
        """Return the rows of a chunk."""
        X, target, weight = (None if v is None else np.asarray(v) for v in part.values)
        assert X is not None
        for what, column in (("target", target), ("weight", weight)):
            _same_length(what, column, len(X))
        return ArrayReader(X, target, weight, schema.names, None, self.where(part))


def _same_length(what: str, column: Any, rows: int) -> None:
    if column is not None and len(column) != rows:
        raise InvalidInputError(
            f"the {what} has {len(column)} rows but X has {rows}: cut both at the same rows."
        )


@dataclass(frozen=True, eq=False)
class FrameParts(Opener):
    """Partitions of a Dask data frame.

    Parameters
    ----------
    meta : data frame
        Without rows: names and types of the columns.
    target : tuple of str
        Columns of the frame; not where the target is a collection of its own.
    weight : str or None
    target_kind : str or None
        "number" or "text", of a target that is a collection of its own.
    """

    meta: Any
    target: tuple[str, ...] = ()
    weight: str | None = None
    target_kind: str | None = None

    def schema(self, columns: tuple[str, ...] | None) -> Schema:
        """Return the columns as Dask knows them."""
        return FrameReader(self.meta, self.target, self.weight, columns).schema

    def open(self, part: Part, schema: Schema) -> _TableRows:
        """Return the rows of a partition."""
        frame, target, weight = part.values
        targets = [frame[name] for name in self.target]
        if target is not None:
            targets = [target[name] for name in target.columns] if is_wide(target) else [target]
        if self.weight is not None:
            weight = frame[self.weight]
        for what, column in (*(("target", y) for y in targets), ("weight", weight)):
            _same_length(what, column, len(frame))
        kinds: list[str | None] = [_kind(self.meta[name]) for name in self.target]
        for kind, y in zip(kinds or [self.target_kind] * len(targets), targets, strict=True):
            if len(y) and _kind(y) != kind:
                raise InvalidInputError(
                    f"the target holds {_kind(y)}s, but {kind}s were expected: make it of one type."
                )
        return _TableRows(frame, targets, weight, schema, self.where(part))


def _kind(values: Any) -> str:
    """Return what targets hold: "text" or "number"."""
    return "text" if read_column("", values).kind in ("category", "empty") else "number"


def is_wide(values: Any) -> bool:
    """Say whether a target is a frame of several columns."""
    return getattr(values, "ndim", 1) == 2 and hasattr(values, "columns")


@dataclass(frozen=True, eq=False)
class _TableRows:
    """Rows of a table in memory, turned into numbers block by block."""

    frame: Any
    targets: list[Any]
    weight: Any
    schema: Schema
    where: str

    def blocks(self, batch_rows: int) -> Iterator[RawBlock]:
        for part in slices(len(self.frame), batch_rows):
            table = read_table(self.frame.iloc[part], self.schema.names)
            raw = RawBlock.of_table(table, self.schema, self.where)
            targets = [
                frame_target(str(getattr(y, "name", "y")), _cut(y, part), part.start)
                for y in self.targets
            ]
            weight = self.weight
            if weight is not None:
                weight = frame_numbers("weight", _cut(weight, part))
            yield replace(raw, target=stacked(targets), weight=weight)


def _cut(values: Any, part: slice) -> Any:
    return values.iloc[part] if hasattr(values, "iloc") else values[part]


@dataclass(frozen=True, eq=False)
class FileParts(Opener):
    """Files that every worker can read; a part is a file.

    Parameters
    ----------
    reader : ArrowReader or LibsvmReader
        Of all files.
    """

    reader: Any

    def schema(self, columns: tuple[str, ...] | None) -> Schema:
        """Return the columns as the first file has them."""
        reader = self.reader if columns is None else replace(self.reader, columns=columns)
        return reader.schema  # type: ignore[no-any-return]

    def open(self, part: Part, schema: Schema) -> Any:
        """Return the rows of a file, checked against the first one."""
        one = replace(self.reader, files=[part.values[0]], columns=schema.names)
        if isinstance(one, ArrowReader):
            schema.check(one.schema, part.values[0])
            if one._others:
                self.reader._outcome.check(one._outcome, part.values[0])
        return one

    def where(self, part: Part) -> str:
        """Return the name of the file."""
        return str(part.values[0])

    def length(self, part: Part) -> int:
        """Return the rows of a file."""
        return int(replace(self.reader, files=[part.values[0]]).count())


@dataclass(frozen=True, eq=False)
class DaskReader(Reader):
    """Rows in parts that Dask computes; a pass is made where they are.

    Parameters
    ----------
    values : tuple of tuples
        For every part what its rows are read from: delayed values, or the name of a file.
    opener : Opener
    client : Client or None
        None: whatever Dask uses when a pass is made.
    sizes : tuple of int or None
        Rows of every part, where they are known.
    columns : tuple of str or None
        Columns of features to use.
    count_rows : callable or None
        Gives the sizes where they are not known; None: the length of every part is computed.
    """

    values: tuple[tuple[Any, ...], ...]
    opener: Opener
    client: Any = None
    sizes: tuple[int, ...] | None = None
    columns: tuple[str, ...] | None = None
    count_rows: Callable[[Any], Any] | None = None
    collection: Any = None
    distributed: ClassVar[bool] = True

    @cached_property
    def schema(self) -> Schema:
        """The columns of features."""
        return self.opener.schema(self.columns)

    @cached_property
    def parts(self) -> list[Part]:
        """Return the parts that have rows; where their sizes are not known they are counted."""
        if self.sizes is not None:
            sizes = list(self.sizes)
        elif self.count_rows is not None:
            sizes = [int(size) for size in self.count_rows(active_client(self.client))]
        else:
            whole = [Part(i, 0, 0, values) for i, values in enumerate(self.values)]
            sizes = list(map_in_order(whole, self.opener.length, self.client))
        starts = accumulate(sizes, initial=0)
        every = zip(starts, sizes, self.values, strict=False)
        return [Part(i, start, n, values) for i, (start, n, values) in enumerate(every) if n > 0]

    def count(self) -> int:
        """Return the number of rows."""
        return sum(part.rows for part in self.parts)

    def blocks(self, batch_rows: int) -> Iterator[RawBlock]:
        """Yield the rows in order, fetched part by part to this side."""
        work = partial(_fetch, self.opener, self.schema, batch_rows)
        for blocks in map_in_order(self.parts, work, self.client):
            yield from blocks

    def reduce(self, scan: Any, work: Callable[[Any], Any], combine: Combine) -> Any:
        """Apply ``work`` to a scan of every part where it is, and combine what comes out."""
        if not self.parts:
            raise InvalidInputError("There are no rows to read: all partitions are empty.")
        return map_reduce(self.parts, self._job(scan, work), combine, self.client)

    def collect(self, scan: Any, work: Callable[[Any], Any], empty: AnyArray, name: str) -> Any:
        """Return what ``work`` returns for every part as a lazy collection."""
        import dask.array as da

        job, X = self._job(scan, work), self.collection
        kind = {"dtype": empty.dtype, "meta": empty}
        if X is None:
            delayed = zip(delayed_parts(self.parts, job), self.parts, strict=True)
            shape = empty.shape[1:]
            return da.concatenate(
                [da.from_delayed(value, (part.rows, *shape), **kind) for value, part in delayed]
            )
        of_rows = partial(_of_rows, job, empty)
        if self.schema.named:
            meta = _framed(empty, X._meta.index[:0], name)
            return X.map_partitions(partial(_of_frame, of_rows, name), meta=meta)
        X = X.rechunk({1: -1})
        wide = empty.ndim == 2
        options = {"chunks": (X.chunks[0], empty.shape[1:])} if wide else {"drop_axis": 1}
        return X.map_blocks(of_rows, **kind, **options)

    def stream(self, scan: Any, work: Callable[[Any], Any]) -> Iterator[Any]:
        """Apply ``work`` to a scan of every part where it is; yield the results in order."""
        return map_in_order(self.parts, self._job(scan, partial(_listed, work)), self.client)

    def _job(self, scan: Any, work: Callable[[Any], Any]) -> Callable[[Part], Any]:
        return partial(
            _on_part, work, replace(scan, reader=None, watch=None), self.opener, self.schema
        )

    def check_split(self) -> None:
        """Refuse: positions are not known before all parts are read."""
        raise InvalidInputError(
            "Rows on a cluster cannot be split by position: split the Dask collection "
            "(random_split), or hold out some of the files."
        )

    def resources(self, budget: int, threads: int) -> tuple[int, int]:
        """Return memory in bytes and threads for a pass over one part."""
        return task_resources(budget, self.client), 1


def _of_rows(job: Callable[[Part], Any], empty: AnyArray, X: Any) -> AnyArray:
    return np.asarray(job(Part(0, 0, len(X), (X, None, None)))) if len(X) else empty


def _of_frame(work: Callable[[Any], AnyArray], name: str, X: Any) -> Any:
    return _framed(work(X), X.index, name)


def _framed(values: AnyArray, index: Any, name: str) -> Any:
    import pandas as pd

    if values.ndim == 2:
        return pd.DataFrame(values, index=index)
    return pd.Series(values, index=index, name=name)


def _listed(work: Callable[[Any], Any], scan: Any) -> Any:
    """Return what ``work`` yields as a list, which can travel."""
    result = work(scan)
    return list(result) if isinstance(result, Iterator) else result


def _on_part(
    work: Callable[[Any], Any], scan: Any, opener: Opener, schema: Schema, part: Part
) -> Any:
    return work(replace(scan, reader=PartitionReader(opener, schema, part)))


def _fetch(opener: Opener, schema: Schema, batch_rows: int, part: Part) -> list[RawBlock]:
    return list(PartitionReader(opener, schema, part).blocks(batch_rows))


@dataclass(frozen=True, eq=False)
class PartitionReader:
    """The rows of one part, at their positions among all rows; what a worker reads."""

    opener: Opener
    schema: Schema
    part: Part

    def count(self) -> int:
        """Return the number of rows."""
        return self.part.rows

    def blocks(self, batch_rows: int) -> Iterator[RawBlock]:
        """Yield the rows in order."""
        inside, where = 0, self.opener.where(self.part)
        try:
            for block in self.opener.open(self.part, self.schema).blocks(batch_rows):
                start = self.part.start + inside
                yield replace(block, start=start, places=((0, where, inside),))
                inside += len(block)
        except InvalidInputError as error:
            if where in str(error):
                raise
            raise InvalidInputError(f"In {where}: {error}") from error
        if inside != self.part.rows:
            raise InvalidInputError(
                f"{where} has {inside} rows but {self.part.rows} were counted: the data changed "
                "while they were read. Persist them, or read from files that do not change."
            )


# -- arrays ------------------------------------------------------------------------------------


def array_reader(X: Any, target: Any, weight: Any, client: Any) -> DaskReader:
    """Return the reader of a Dask array (n, d) with arrays of targets and weights."""
    if X.ndim != 2 or X.dtype.kind not in "biuf" or X.shape[1] == 0:
        raise InvalidInputError(
            f"X has shape {X.shape} and type {X.dtype}: a Dask array of numbers, one row per "
            "sample, is needed."
        )
    if not X.shape[1] == X.shape[1]:  # unknown
        raise InvalidInputError("X has an unknown number of columns: give a Dask array of (n, d).")
    X = X.rechunk({1: -1})
    columns = [_chunks(X), _aligned("y", target, X), _aligned("sample_weight", weight, X)]
    known = all(size == size for size in X.chunks[0])
    sizes = tuple(int(size) for size in X.chunks[0]) if known else None
    return DaskReader(tuple(zip(*columns, strict=True)), ArrayParts(int(X.shape[1])), client, sizes)


def _aligned(what: str, column: Any, X: Any) -> list[Any]:
    """Return the chunks of a target or of weights, cut where X is."""
    import dask.array as da

    number = X.numblocks[0]
    if column is None:
        return [None] * number
    if hasattr(column, "to_dask_array"):  # a series or a frame
        column = column.to_dask_array()
    if not isinstance(column, da.Array):
        if hasattr(column, "to_delayed") or np.ndim(column) not in (1, 2):
            raise InvalidInputError(
                f"{what} is not usable together with a Dask array: give an array."
            )
        array = np.asarray(column)
        same = len(array) == X.shape[0]
        column = da.from_array(array, chunks=(X.chunks[0] if same else -1, *array.shape[1:]))
    if column.ndim not in (1, 2):
        raise InvalidInputError(f"{what} has {column.ndim} dimensions: give one value per row.")
    known = [size == size for size in (*X.chunks[0], *column.chunks[0])]
    if all(known):
        if column.shape[0] != X.shape[0]:
            raise InvalidInputError(
                f"{what} has {column.shape[0]} rows but X has {X.shape[0]}: give one per row."
            )
        column = column.rechunk({0: X.chunks[0]} | ({1: -1} if column.ndim == 2 else {}))
    elif column.numblocks[0] != number:
        raise InvalidInputError(
            f"{what} has {column.numblocks[0]} chunks but X has {number}, and their sizes are not "
            "known: call compute_chunk_sizes() on both."
        )
    return _chunks(column)


def _chunks(X: Any) -> list[Any]:
    # Dask's optimiser loses the futures of what lies on workers, and so where it lies.
    return list(X.to_delayed(optimize_graph=not has_futures(X)).ravel())


# -- data frames -------------------------------------------------------------------------------


def frame_reader(
    X: Any,
    target: Any,
    weight: Any,
    client: Any,
    columns: tuple[str, ...] | None = None,
    names: tuple[str, ...] = (),
    weight_name: str | None = None,
) -> DaskReader:
    """Return the reader of a Dask data frame.

    ``names`` and ``weight_name`` are columns of the frame; ``target`` and ``weight`` go with
    it, in the same partitions.
    """
    target_kind = None
    if target is not None:
        _check_aligned("y", target, X)
        sample = target._meta
        target_kind = _kind(sample[sample.columns[0]] if is_wide(sample) else sample)
    if weight is not None:
        _check_aligned("sample_weight", weight, X)
    lists = [
        [None] * X.npartitions if collection is None else list(collection.to_delayed())
        for collection in (X, target, weight)
    ]
    values = tuple(zip(*lists, strict=True))
    opener = FrameParts(X._meta, names, weight_name, target_kind)
    return DaskReader(values, opener, client, None, columns, partial(_frame_sizes, X))


def _check_aligned(what: str, column: Any, X: Any) -> None:
    if not is_dask(column) or not hasattr(column, "npartitions") or not hasattr(column, "_meta"):
        raise InvalidInputError(
            f"{what} is of the type {type(column).__name__}, which does not go with a Dask data "
            "frame: give a Dask series with the same partitions, or scan(frame, target='column')."
        )
    if hasattr(column, "chunks") or column.npartitions != X.npartitions:
        raise InvalidInputError(
            f"{what} has {column.npartitions} partitions but X has {X.npartitions}: give a Dask "
            "series with the same partitions, or scan(frame, target='column')."
        )


def _frame_sizes(X: Any, client: Any) -> Any:
    """Count the rows of every partition; of files Dask reads no more columns than it must."""
    sizes = X.map_partitions(len, meta=(None, "int64"))
    return sizes.compute() if client is None else client.compute(sizes).result()


# -- files -------------------------------------------------------------------------------------


def files_reader(reader: Any, client: Any) -> DaskReader:
    """Return the reader of files that the workers of a client read, each file by one of them."""
    if not isinstance(reader, (ArrowReader, LibsvmReader)):
        raise InvalidInputError(
            "client= is for files of Parquet, Arrow, CSV or LIBSVM text, and for Dask arrays and "
            "data frames: turn other data into a Dask array (dask.array.from_array)."
        )
    need_dask()
    if isinstance(reader, ArrowReader):
        _ = (
            reader.schema,
            reader._others and reader._outcome,
        )  # known to the workers, which need not open a file for it
    values = tuple((file,) for file in reader.files)
    return DaskReader(values, FileParts(reader), client, columns=reader.columns)
