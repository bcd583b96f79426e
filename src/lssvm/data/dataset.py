"""What a caller gave, opened in one place: rows in memory, or rows that are read in blocks.

`Arrays` and `Scan` have the same members, so that no other code depends on where rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np

from lssvm._core.arrays import AnyArray, FloatArray, check_weight, compat, is_dask, like, on_host
from lssvm._core.blocks import slices
from lssvm._core.errors import InvalidInputError
from lssvm.data.columns import RawTable, count_rows, read_table
from lssvm.data.dask import array_reader, frame_reader
from lssvm.data.preparation import PreparedTable
from lssvm.data.raw import RawBlock, Schema, TableRows, chunk_rows, is_source
from lssvm.data.sampling import Sample, Sampler
from lssvm.data.scanning import Scan, scan

_IN_MEMORY = 2**16  # rows of a block at most


@dataclass(frozen=True, eq=False)
class Arrays:
    """Rows in memory as they were given: arrays of any library, sparse matrices and frames."""

    X: Any
    y: Any = None
    sample_weight: Any = None
    groups: Any = None
    start: int = 0
    distributed: ClassVar[bool] = False  # no row is on a cluster
    client: ClassVar[None] = None

    def __len__(self) -> int:
        return self.n_rows

    @cached_property
    def n_rows(self) -> int:
        """Rows there are."""
        return count_rows(self.X)

    @cached_property
    def table(self) -> RawTable:
        """The rows as typed columns."""
        return read_table(on_host(self.X))

    @property
    def schema(self) -> Schema:
        """Columns of features and what they hold."""
        return Schema.of_table(self.table)

    @property
    def target(self) -> AnyArray | None:
        """The targets in main memory, one for each row."""
        y = None if self.y is None else np.asarray(on_host(self.y))
        if y is not None and (y.ndim not in (1, 2) or len(y) != self.n_rows):
            raise InvalidInputError(
                f"y has shape {y.shape} but X has {self.n_rows} rows: give one target per row."
            )
        return y

    @cached_property
    def weight(self) -> FloatArray | None:
        """The weights (n,), checked; None where all are one."""
        return check_weight(on_host(self.sample_weight), self.n_rows)

    @property
    def has_target(self) -> bool:
        """Whether rows come with targets."""
        return self.y is not None

    @property
    def native(self) -> Any:
        """The rows as they were given."""
        return self.X

    def in_memory(self, who: str) -> Arrays:
        """Return the rows, all of which are in memory."""
        return self

    def on_host(self) -> tuple[Any, Any, Any]:
        """Return X, y and the weights in main memory, as they were given."""
        return on_host(self.X), on_host(self.y), on_host(self.sample_weight)

    def read(self) -> TableRows:
        """Return all rows, with targets as they were given."""
        return TableRows(self.table, on_host(self.y), self.weight)

    def blocks(self) -> Iterator[TableRows]:
        """Yield all rows in order, in larger blocks than a scan: fewer calls for as many rows."""
        y, weight = self.target, self.weight
        for part in slices(self.n_rows, chunk_rows(len(self.table.columns), _IN_MEMORY)):
            target, row_weight = (
                None if values is None else values[part] for values in (y, weight)
            )
            yield TableRows(self.table.take(part), target, row_weight, part.start)

    def sample(self, size: int, *, seed: int = 0, classes: bool = False) -> Sample:
        """Draw the rows that `Scan.sample` draws."""
        none = np.empty((self.n_rows, 0))
        positions = RawBlock(Schema.of_numbers(0), none, (), self.target, self.weight, 0)
        drawn = Sampler(size, seed, classes).add([positions]).sample()
        rows = self.table.take(drawn.positions)
        return replace(drawn, block=TableRows(rows, drawn.block.target, drawn.block.weight))

    def select(
        self, names: tuple[str, ...] | None, n_columns: int, kinds: Mapping[str, str]
    ) -> Arrays:
        """Return the rows as they are: columns are looked for where they are prepared."""
        return self

    def checked(self, check: Callable[[Any], Any]) -> Arrays:
        """Return the rows as ``check`` returns them."""
        return replace(self, X=check(self.X))

    def with_validation(self, cv: Any) -> tuple[Arrays, Any]:
        """Return the rows, and ``cv`` as it is."""
        return self, cv

    def features(self, preparation: PreparedTable | None) -> Any:
        """Return the features: prepared, or the rows as they are."""
        return self.X if preparation is None else preparation.transform(on_host(self.X))

    def map(self, work: Callable[[Any, int], Any], threads: int) -> Iterator[Any]:
        """Yield what ``work`` returns for all rows at once, which may use all threads."""
        yield work(self, threads)

    def reduce(self, work: Callable[[Any], Any], combine: Callable[[Any, Any], Any]) -> Any:
        """Return what ``work`` returns for the rows."""
        return work(self)

    def stream(self, work: Callable[[Any], Any]) -> Iterator[Any]:
        """Yield what ``work`` returns for the rows."""
        yield work(self)

    def collect(self, work: Callable[[Any], Any], empty: AnyArray, name: str) -> Any:
        """Return what ``work`` returns, in the library and on the device of the rows."""
        return self.like(work(self))

    def like(self, result: Any) -> Any:
        """Return numbers in the library and on the device of the rows."""
        return like(result, self.X)

    def resources(self, budget: int, threads: int) -> tuple[int, int]:
        """Return memory in bytes and threads for a pass: those of the model."""
        return budget, threads


Dataset: TypeAlias = Arrays | Scan
"""Rows, wherever they are: arrays, or a scan, which may be of files or of a Dask collection."""


def open_dataset(X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Dataset:
    """Return rows of any kind with their targets, weights and groups, as far as they were given.

    No other code depends on the type of X. A scan, a `RowSource` or a Dask collection becomes a
    `Scan`. A scan brings its own targets; a Dask collection may come with targets and weights, and
    its numbers are taken as they are, as those of arrays in memory.
    """
    for value in (X, y, sample_weight):
        _check_tensor(value)
    streamed = isinstance(X, Scan) or is_source(X)
    if streamed and (y is not None or sample_weight is not None):
        raise InvalidInputError(
            "A scan brings its own target and weights: give them to scan(..., target=..., "
            "weight=...) and leave y and sample_weight out."
        )
    if not streamed and not is_dask(X):
        return Arrays(X, y, sample_weight, groups)
    if groups is not None:
        raise InvalidInputError(
            "groups cannot be given with rows that are read in blocks, which are assigned to folds "
            "by their positions: give arrays X and y, or leave groups out."
        )
    if is_dask(X):
        read = frame_reader if hasattr(X, "_meta") and hasattr(X, "columns") else array_reader
        reader = replace(read(X, y, sample_weight, None), collection=X)
        return Scan(reader, y is not None, prepare=False).watched()
    return (X if isinstance(X, Scan) else scan(X)).watched()


def _check_tensor(value: Any) -> None:
    """Raise for tensors of torch that hold no numbers that can be read."""
    if not compat.is_torch_array(value):
        return
    layout, kind = str(value.layout), str(value.dtype)
    if value.device.type == "meta":
        why, change = "is on the device 'meta', which has no values", "give one that has some"
    elif layout != "torch.strided":
        why, change = f"has the layout {layout}", "give a dense one (to_dense())"
    elif value.is_complex() or value.is_quantized or kind == "torch.bfloat16":
        why, change = f"has the type {kind}", "convert it to torch.float64 or torch.float32"
    else:
        return
    raise InvalidInputError(f"A tensor of shape {tuple(value.shape)} {why}: {change}.")
