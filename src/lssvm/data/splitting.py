"""A part of the rows of a data set, held out or left, without a list of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lssvm._core.errors import InvalidInputError
from lssvm._core.random import hash_positions
from lssvm._core.threads import slices
from lssvm.data.raw import RawBlock, Reader, Schema

_SALT = 0x3C6EF372  # the parts must not follow the folds, which are hashed with the seed
_COUNT_ROWS = 2**20


@dataclass(frozen=True, eq=False)
class SplitReader(Reader):
    """Rows of another reader, by a list of them or a seeded hash of their position.

    Parameters
    ----------
    reader : Reader
    share : float
        Of the rows that are held out, between 0 and 1.
    seed : int
    held_out : bool
        Whether the rows are those held out, or the others.
    rows : bool array of shape (n,) or None, default=None
        Which rows are held out, in place of the hash.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import scan
    >>> rest, held_out = scan(np.arange(6.0)[:, None]).split(0.5)
    >>> [len(block) for block in held_out.blocks()]
    [3]
    """

    reader: Reader
    share: float
    seed: int
    held_out: bool
    rows: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise InvalidInputError(
                f"A held-out share of {self.share!r} is not usable: give a number between 0 and 1."
            )

    @property
    def schema(self) -> Schema:
        """Columns of features."""
        return self.reader.schema

    @property
    def named(self) -> bool:  # type: ignore[override]
        """Whether the columns have names."""
        return self.reader.named

    def choose(self, names: tuple[str, ...], kinds: tuple[str, ...] | None) -> SplitReader:
        """Return a reader of some columns."""
        return replace(self, reader=self.reader.choose(names, kinds))

    def count(self) -> int:
        """Return the number of rows in this part."""
        parts = slices(self.reader.count(), _COUNT_ROWS)
        return int(sum(self._own(np.arange(p.start, p.stop)).sum() for p in parts))

    def blocks(self, batch_rows: int) -> Iterator[RawBlock]:
        """Yield the rows of this part in order."""
        part = "the held-out part" if self.held_out else "the part that is not held out"
        start = 0
        for block in self.reader.blocks(batch_rows):
            positions = np.arange(block.start, block.start + len(block))
            rows = np.flatnonzero(self._own(positions))
            if len(rows):
                yield replace(block.take(rows), start=start, places=((0, part, start),))
                start += len(rows)

    def _own(self, positions: NDArray[np.intp]) -> NDArray[np.bool_]:
        limit = np.uint64(int(self.share * 2.0**53) << 11)
        held: NDArray[np.bool_] = (
            hash_positions(positions, self.seed + _SALT) < limit
            if self.rows is None
            else self.rows[positions]
        )
        return held if self.held_out else ~held
