"""All rows of a table, prepared and passed over in blocks: what very large tables are fitted to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.fitting.table_record import Inputs


@dataclass(frozen=True, eq=False)
class TableBlock:
    """Some of all rows, prepared.

    Attributes
    ----------
    inputs : mapping from names of inputs to arrays of shape (n, d)
    Y : array of shape (n, k)
    weight : array of shape (n,)
    start : int
        Position of the first row.
    """

    inputs: Mapping[Inputs, FloatArray]
    Y: FloatArray
    weight: FloatArray
    start: int


class AllRows(Protocol):
    """All rows of a table, passed over in blocks.

    Attributes
    ----------
    n_rows : int
    sample : int array of shape (m,)
        Positions of the rows that everything else is chosen by, ascending.
    budget : int
        Bytes of memory.
    """

    @property
    def n_rows(self) -> int:
        """How many rows there are."""

    @property
    def sample(self) -> IntArray:
        """Positions of the rows of the sample."""

    @property
    def budget(self) -> int:
        """Bytes of memory that may be used."""

    def blocks(self, inputs: Sequence[Inputs]) -> Iterator[TableBlock]:
        """Yield all rows in order with the inputs that are asked for."""
