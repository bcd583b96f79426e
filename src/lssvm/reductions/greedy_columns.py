"""Columns of the kernel matrix of the training rows, computed once and kept within a budget."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.namespace import is_sparse
from lssvm._core.threads import run_blocks, slices
from lssvm.kernels import RBF
from lssvm.solvers import DualSystem

FloatArray = NDArray[Any]
IntArray = NDArray[np.intp]

_WIDTH = 512  # columns per piece of a store
_TOGETHER = 32  # columns that are computed together: one product with all rows


class ColumnStore:
    """Columns over all rows in pieces, row after row: grows without copying what is there.

    Parameters
    ----------
    n : int
        Rows.
    dtype : dtype
    limit : int
        Most columns it may hold.

    Notes
    -----
    Memory n (size + 512) numbers at most.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.reductions.greedy_columns import ColumnStore
    >>> store = ColumnStore(3, np.float64, 10)
    >>> store.append(np.eye(3)[:, :2])
    >>> store.size, store.rows(np.array([1]))
    (2, array([[0., 1.]]))
    """

    def __init__(self, n: int, dtype: Any, limit: int) -> None:
        self.n, self.dtype, self.limit, self.size = n, np.dtype(dtype), limit, 0
        self._width = max(1, min(_WIDTH, limit))
        self._pieces: list[FloatArray] = []

    def append(self, columns: FloatArray) -> None:
        """Add columns (n, m); the caller keeps to the limit."""
        done, m = 0, columns.shape[1]
        while done < m:
            at = self.size % self._width
            if at == 0:
                self._pieces.append(np.empty((self.n, self._width), self.dtype))
            take = min(m - done, self._width - at)
            self._pieces[-1][:, at : at + take] = columns[:, done : done + take]
            done, self.size = done + take, self.size + take

    def _used(self) -> list[tuple[slice, FloatArray]]:
        spans = slices(self.size, self._width)
        return [
            (span, piece[:, : span.stop - span.start])
            for span, piece in zip(spans, self._pieces, strict=True)
        ]

    def rows(self, index: IntArray) -> FloatArray:
        """Return some rows of all columns, shape (len(index), size)."""
        out = np.empty((len(index), self.size), self.dtype)
        self.rows_into(index, out)
        return out

    def rows_into(self, index: IntArray, out: FloatArray) -> None:
        """Write some rows of all columns into ``out`` (len(index), size)."""
        for span, piece in self._used():
            out[:, span] = piece[index]

    def columns(self, index: IntArray) -> FloatArray:
        """Return some columns, shape (n, len(index))."""
        out = np.empty((self.n, len(index)), self.dtype)
        for p, piece in enumerate(self._pieces):
            here = np.flatnonzero(index // self._width == p)
            out[:, here] = piece[:, index[here] - p * self._width]
        return out

    def product(self, right: FloatArray) -> FloatArray:
        """Return all columns times ``right`` (size, m), shape (n, m)."""
        out = np.zeros((self.n, right.shape[1]), self.dtype)
        for span, piece in self._used():
            out += piece @ right[span]
        return out

    def transposed_product(self, right: FloatArray) -> FloatArray:
        """Return the transposed columns times ``right`` (n, m), shape (size, m)."""
        out = np.empty((self.size, right.shape[1]), self.dtype)
        for span, piece in self._used():
            np.matmul(piece.T, right, out=out[span])
        return out


class KernelColumns:
    """Kernel values between training rows; whole columns are kept while the budget lasts.

    Parameters
    ----------
    system : DualSystem
        Kernel, rows and threads; its weights play no part here.
    share : float, default=0.4
        Part of the system's memory budget that kept columns may take.

    Notes
    -----
    A column costs n d operations, and nothing when it is kept. For the Gaussian kernel the rows are
    centred and their squares summed once, so that a column is one product with the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.reductions.greedy_columns import KernelColumns
    >>> from lssvm.solvers import DualSystem
    >>> KernelColumns(DualSystem(Linear(), np.eye(3), np.eye(3), 1.0)).columns(np.array([2]))
    array([[0.],
           [0.],
           [1.]])
    """

    def __init__(self, system: DualSystem, share: float = 0.4) -> None:
        self.n, self.dtype, self.threads = system.n, system.dtype, system.threads
        self._system = system
        limit = int(share * system.budget / (max(1, self.n) * self.dtype.itemsize))
        self.store = ColumnStore(self.n, self.dtype, min(self.n, limit))
        self._slot = np.full(self.n, -1, dtype=np.intp)  # where a kept column is
        self._gaussian = _centred(system)

    def block(self, rows: IntArray | slice, index: IntArray) -> FloatArray:
        """Return K(rows, index) from the kernel, shape (len(rows), len(index))."""
        if self._gaussian is None:
            system = self._system
            return np.asarray(system.kernel(system.rows[rows], system.basis[index]), self.dtype)
        X, squares = self._gaussian
        values = X[rows] @ X[index].T  # -||x - z||^2 of scaled rows = 2 x'z - x'x - z'z
        values *= 2.0
        values -= squares[rows][:, None]
        values -= squares[index][None, :]
        np.minimum(values, 0.0, out=values)
        return np.asarray(np.exp(values, out=values))

    def columns(self, index: IntArray) -> FloatArray:
        """Return whole columns, shape (n, len(index)), and keep those that are new."""
        out = np.empty((self.n, len(index)), self.dtype)
        kept = self._slot[index] >= 0
        if kept.any():
            out[:, kept] = self.store.columns(self._slot[index[kept]])
        missing = index[~kept]
        if len(missing):
            fresh = self.compute(missing)
            out[:, ~kept] = fresh
            self._keep(missing, fresh)
        return out

    def keep(self, index: IntArray) -> int:
        """Compute and keep whole columns not kept yet, in order; return how many are kept."""
        room = self.store.limit - self.store.size
        todo = index[self._slot[index] < 0][:room]
        for part in slices(len(todo), 4 * _TOGETHER):
            self._keep(todo[part], self.compute(todo[part]))
        return len(todo)

    def _keep(self, index: IntArray, columns: FloatArray) -> None:
        room = self.store.limit - self.store.size
        index, columns = index[:room], columns[:, :room]
        self._slot[index] = self.store.size + np.arange(len(index))
        self.store.append(columns)

    def compute(self, index: IntArray) -> FloatArray:
        """Compute whole columns, shape (n, len(index)), without keeping them."""
        out = np.empty((self.n, len(index)), self.dtype)

        def fill(part: slice) -> None:
            out[part] = self.block(part, index)

        run_blocks(fill, slices(self.n, 2048), self.threads if self.n > 2048 else 1)
        return out


def _centred(system: DualSystem) -> tuple[FloatArray, FloatArray] | None:
    """Return scaled centred rows and their squares, None where K is not of that form."""
    X = system.rows
    if not isinstance(system.kernel, RBF) or is_sparse(X) or not isinstance(X, np.ndarray):
        return None
    scaled = (X - X.mean(axis=0)) * np.sqrt(np.asarray(system.kernel.gamma, dtype=X.dtype))
    squares = np.einsum("ij,ij->i", scaled, scaled)
    if np.max(squares, initial=0.0) * np.finfo(X.dtype).eps > 1e-3:
        return None  # the differences would have no digits left
    return scaled, squares
