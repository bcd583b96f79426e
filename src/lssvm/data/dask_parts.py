"""What the parts of a Dask collection, or files on a cluster, are on the worker that has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm._core.threads import slices
from lssvm.data.arrow import ArrowReader
from lssvm.data.frames import FrameReader, frame_numbers, frame_target, kind_of_values, raw_block
from lssvm.data.placement import Part
from lssvm.data.plain import ArrayReader
from lssvm.data.raw import RawBlock, Schema, stacked


class Opener(Protocol):
    """How the values of a part become rows, on the worker that has them."""

    @property
    def named(self) -> bool:
        """Whether columns have names of their own."""

    def schema(self, columns: tuple[str, ...] | None) -> Schema:
        """Return the columns of features; all but those of target and weight for None."""

    def open(self, part: Part, schema: Schema) -> Any:
        """Return a reader of the rows of a part."""

    def length(self, part: Part) -> int:
        """Return the rows of a part."""

    def where(self, part: Part) -> str:
        """Return what errors call the part."""


@dataclass(frozen=True)
class ArrayParts:
    """Chunks of a Dask array, with those of target and weight."""

    n_columns: int
    named: bool = False

    def schema(self, columns: tuple[str, ...] | None) -> Schema:
        """All columns hold numbers."""
        names = tuple(f"x{j}" for j in range(self.n_columns))
        return Schema(names, ("number",) * len(names))

    def open(self, part: Part, schema: Schema) -> ArrayReader:
        """Return the rows of a chunk."""
        X, target, weight = (None if v is None else np.asarray(v) for v in part.values)
        assert X is not None
        for what, given in (("target", target), ("weight", weight)):
            _same_length(what, given, len(X))
        return ArrayReader(X, target, weight, schema.names, None, self.where(part))

    def where(self, part: Part) -> str:
        """Return the number of the chunk."""
        return f"partition {part.number}"

    def length(self, part: Part) -> int:
        """Return the rows of a chunk."""
        return len(part.values[0])


def _same_length(what: str, given: Any, rows: int) -> None:
    if given is not None and len(given) != rows:
        raise InvalidInputError(
            f"the {what} has {len(given)} rows but X has {rows}: cut both at the same rows."
        )


@dataclass(frozen=True, eq=False)
class FrameParts:
    """Partitions of a Dask data frame.

    Parameters
    ----------
    meta : data frame
        Without rows: names and types of the columns.
    target : tuple of str
        Columns of the frame; not where the target stands beside it.
    weight : str or None
    beside : str or None
        "number" or "text" where a target stands beside the frame.
    """

    meta: Any
    target: tuple[str, ...] = ()
    weight: str | None = None
    beside: str | None = None
    named: bool = True

    def schema(self, columns: tuple[str, ...] | None) -> Schema:
        """Return the columns as Dask knows them."""
        return FrameReader(self.meta, self.target, self.weight, columns).schema

    def open(self, part: Part, schema: Schema) -> _TableRows:
        """Return the rows of a partition."""
        frame, target, weight = part.values
        found = FrameReader(frame, self.target, self.weight, schema.names).schema
        schema.check(found, self.where(part))
        targets = [frame[name] for name in self.target]
        if target is not None:
            targets = [target[name] for name in target.columns] if is_wide(target) else [target]
        if self.weight is not None:
            weight = frame[self.weight]
        for what, given in (*(("target", y) for y in targets), ("weight", weight)):
            _same_length(what, given, len(frame))
        kinds: list[str | None] = [kind_of_values(self.meta[n]) for n in self.target]
        kinds = kinds or [self.beside] * len(targets)
        for kind, y in zip(kinds, targets, strict=True):
            if len(y) and kind_of_values(y) != kind:
                raise InvalidInputError(
                    f"the target holds {kind_of_values(y)}s, but {kind}s were expected: make it "
                    "of one type."
                )
        return _TableRows(frame, targets, weight, schema)

    def length(self, part: Part) -> int:
        """Return the rows of a partition."""
        return len(part.values[0])

    def where(self, part: Part) -> str:
        """Return the number of the partition."""
        return f"partition {part.number}"


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

    def blocks(self, batch_rows: int) -> Iterator[RawBlock]:
        for part in slices(len(self.frame), batch_rows):
            raw = raw_block(self.frame.iloc[part], self.schema)
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
class FileParts:
    """Files that every worker can read; a part is a file.

    Parameters
    ----------
    reader : ArrowReader or LibsvmReader
        Of all files.
    """

    reader: Any
    named: bool = True

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
