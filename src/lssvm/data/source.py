"""What a pass over the data reads: blocks of rows, from arrays or whatever has the same face."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, float_rows, is_sparse
from lssvm._core.blocks import slices
from lssvm._core.errors import InvalidInputError


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

    The targets of a classifier are such: indexing gives the targets of the rows asked for, and
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

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.numbers), int(self.table.shape[1])

    @property
    def ndim(self) -> int:
        """Always 2."""
        return 2

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
