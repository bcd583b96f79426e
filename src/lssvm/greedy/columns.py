"""Columns of the kernel matrix of the training rows, computed once and kept within a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray, is_sparse
from lssvm._core.blocks import run_blocks, slices
from lssvm.greedy.path import Greedy, OnEvent
from lssvm.kernels import RBF
from lssvm.solvers import DualSystem

Rows = IntArray | slice

_WIDTH = 512  # columns per piece of a store


class ColumnStore:
    """Columns over all rows, one after the other: grows without copying what is there.

    Parameters
    ----------
    n : int
        Length of a column.
    dtype : dtype
    limit : int
        Most columns it may hold.

    Notes
    -----
    Memory n (size + 512) numbers at most. Blocks of columns come and go as arrays (m, n), each
    column contiguous.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.greedy.columns import ColumnStore
    >>> store = ColumnStore(3, np.float64, 10)
    >>> store.append(np.eye(3)[:2])
    >>> store.size, store.rows(np.array([1])).ravel()
    (2, array([0., 1.]))
    """

    def __init__(self, n: int, dtype: Any, limit: int) -> None:
        self.n, self.dtype, self.limit, self.size = n, np.dtype(dtype), limit, 0
        self._width = max(1, min(_WIDTH, limit))
        self._pieces: list[FloatArray] = []

    def append(self, block: FloatArray) -> None:
        """Add columns (m, n); the caller keeps to the limit."""
        done, m = 0, block.shape[0]
        while done < m:
            at = self.size % self._width
            if at == 0:
                self._pieces.append(np.empty((self._width, self.n), self.dtype))
            take = min(m - done, self._width - at)
            self._pieces[-1][at : at + take] = block[done : done + take]
            done, self.size = done + take, self.size + take

    def _used(self) -> list[tuple[slice, FloatArray]]:
        spans = slices(self.size, self._width)
        return [
            (span, piece[: span.stop - span.start])
            for span, piece in zip(spans, self._pieces, strict=True)
        ]

    def rows(self, index: IntArray) -> FloatArray:
        """Return the entries of all columns at some rows, shape (size, len(index))."""
        parts = [np.take(piece, index, axis=1) for _, piece in self._used()]
        return np.concatenate(parts) if parts else np.empty((0, len(index)), self.dtype)

    def column(self, slot: int) -> FloatArray:
        """Return one column, shape (n,)."""
        return np.asarray(self._pieces[slot // self._width][slot % self._width])

    def combine(self, factors: FloatArray) -> FloatArray:
        """Return combinations of the columns with ``factors`` (m, size), shape (m, n)."""
        out = np.zeros((factors.shape[0], self.n), self.dtype)
        for span, piece in self._used():
            if span.start == 0:
                np.matmul(factors[:, span], piece, out=out)
            else:
                out += factors[:, span] @ piece
        return out

    def correlate(self, right: FloatArray) -> FloatArray:
        """Return the inner products of the columns with ``right`` (n, m), shape (size, m)."""
        out = np.empty((self.size, right.shape[1]), self.dtype)
        for span, piece in self._used():
            np.matmul(piece, right, out=out[span])
        return out


@dataclass(frozen=True, eq=False)
class Search:
    """What the problems of a search by algorithm 1 or 2 have in common.

    Attributes
    ----------
    columns : KernelColumns
    ridge : array of shape (n,)
        1/(C s_i), what is added to the diagonal of the kernel matrix.
    H : array of shape (n,)
        The diagonal of the system, K_ii + ridge.
    settings : Greedy
    bias : bool
    usable : bool array of shape (n,)
        Rows that may be chosen; the others are held out.
    weight : array of shape (n,)
    on_event : callable or None
    """

    columns: KernelColumns
    ridge: FloatArray
    H: FloatArray
    settings: Greedy
    bias: bool
    usable: BoolArray
    weight: FloatArray
    on_event: OnEvent | None = None

    @property
    def held(self) -> IntArray:
        """Rows that are held out."""
        return np.flatnonzero(~self.usable)


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
    centred and extended by their squares once, so that the exponents are one product.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.greedy.columns import KernelColumns
    >>> from lssvm.solvers import DualSystem
    >>> KernelColumns(DualSystem(Linear(), np.eye(3), np.eye(3), 1.0)).columns(np.array([2]))
    array([[0., 0., 1.]])
    """

    def __init__(self, system: DualSystem, share: float = 0.4) -> None:
        self.n, self.dtype, self.threads = system.n, system.dtype, system.threads
        self._system = system
        self.limit = min(self.n, int(share * system.budget / (self.n * self.dtype.itemsize)))
        self.store = ColumnStore(self.n, self.dtype, self.limit)
        self._slot = np.full(self.n, -1, dtype=np.intp)  # where a kept column is
        self._gaussian = _extended(system)

    def block(self, rows: Rows, index: IntArray) -> FloatArray:
        """Return K(rows, index) from the kernel, shape (len(rows), len(index))."""
        if self._gaussian is None:
            system = self._system
            return np.asarray(system.kernel(system.rows[rows], system.basis[index]), self.dtype)
        exponents = self._gaussian[rows] @ _partners(self._gaussian[index]).T
        return np.asarray(np.exp(exponents, out=exponents))

    def near(self, rows: IntArray) -> Callable[[int], FloatArray]:
        """Return a function that gives single columns at some rows, shape (len(rows),)."""
        extended = None if self._gaussian is None else self._gaussian[rows]

        def column(row: int) -> FloatArray:
            slot = int(self._slot[row])
            if slot >= 0:
                return self.store.column(slot)[rows]
            if extended is None or self._gaussian is None:
                return self.block(rows, np.array([row]))[:, 0]
            exponents = extended @ _partners(self._gaussian[row : row + 1])[0]
            return np.asarray(np.exp(exponents, out=exponents))

        return column

    def columns(self, index: IntArray) -> FloatArray:
        """Return whole columns, shape (len(index), n), and keep those that are new."""
        out = np.empty((len(index), self.n), self.dtype)
        slots = self._slot[index]
        for j in np.flatnonzero(slots >= 0):
            out[j] = self.store.column(int(slots[j]))
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            fresh = self.compute(index[missing])
            out[missing] = fresh
            keep = min(len(missing), self.store.limit - self.store.size)
            self._slot[index[missing[:keep]]] = self.store.size + np.arange(keep)
            self.store.append(fresh[:keep])
        return out

    def compute(self, index: IntArray) -> FloatArray:
        """Compute whole columns, shape (len(index), n), without keeping them."""
        out = np.empty((len(index), self.n), self.dtype)
        self.fill(index, out.T)
        return out

    def fill(self, index: IntArray, out: FloatArray) -> None:
        """Write whole columns into ``out`` (n, len(index)), rows shared out among the threads."""
        partners = None if self._gaussian is None else _partners(self._gaussian[index])

        def work(part: slice) -> None:
            if partners is None or self._gaussian is None:
                out[part] = self.block(part, index)
                return
            exponents = partners @ self._gaussian[part].T  # the long side inside: faster
            out[part] = np.exp(exponents, out=exponents).T

        run_blocks(work, slices(self.n, 2048), self.threads if self.n > 2048 else 1)


def _extended(system: DualSystem) -> FloatArray | None:
    """Return rows [2 x, -x'x, 1] of the scaled centred data, None where K is not of that form.

    Their product with the partners [z, 1, -z'z] is -gamma ||x - z||^2.
    """
    X = system.rows
    if not isinstance(system.kernel, RBF) or is_sparse(X) or not isinstance(X, np.ndarray):
        return None
    n, d = X.shape
    out = np.empty((n, d + 2), X.dtype)
    scaled = out[:, :d]
    np.subtract(X, X.mean(axis=0), out=scaled)
    scaled *= np.sqrt(np.asarray(system.kernel.gamma, dtype=X.dtype))
    squares = np.einsum("ij,ij->i", scaled, scaled)
    if np.max(squares, initial=0.0) * np.finfo(X.dtype).eps > 1e-3:
        return None  # the differences would have no digits left
    scaled *= 2.0
    out[:, d], out[:, d + 1] = -squares, 1.0
    return out


def _partners(rows: FloatArray) -> FloatArray:
    """Turn extended rows [2 x, -x'x, 1] into [x, 1, -x'x]."""
    out = np.empty_like(rows)
    np.multiply(rows[:, :-2], 0.5, out=out[:, :-2])
    out[:, -2], out[:, -1] = 1.0, rows[:, -2]
    return out
