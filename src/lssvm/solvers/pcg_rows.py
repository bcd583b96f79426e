"""Passes over the rows for conjugate gradients: products with K and its transpose, in blocks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from lssvm._core.arrays import IntArray
from lssvm._core.namespace import Array, device, get_namespace, is_numpy
from lssvm._core.threads import run_stream, slices
from lssvm.kernels import Kernel

_ENTRIES, _ON_DEVICE = 2**19, 2**26  # kernel values of a block: near the processor, on a device
_LEAST = 128  # rows of a block, where prototypes are many
_CHUNK = 8192  # rows whose sums are added up before they are added to the others


class RowBlock(NamedTuple):
    """Some rows of a training set.

    Attributes
    ----------
    X : array of shape (b, d)
        Rows.
    Y : array of shape (b, k)
        Targets.
    weight : array of shape (b,) or (b, k), or None
        Weights of the rows, or of the rows in every output (0: it is not trained on them); None
        where all are one. The same kind in all parts of a training set.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.solvers import RowBlock
    >>> RowBlock(np.ones((3, 2)), np.ones((3, 1)), None).X.shape
    (3, 2)
    """

    X: Array
    Y: Array
    weight: Array | None


class Sums(NamedTuple):
    """What one pass over the rows says, with weights S_j of output j and targets less an offset.

    Attributes
    ----------
    cross : array of shape (m, k)
        K^T S_j (y_j - offset_j).
    border : array of shape (m, 1) or (m, k)
        K^T S_j 1; one column where all outputs have the same weights.
    target : array of shape (k,)
        1^T S_j (y_j - offset_j).
    weight : array of shape (1,) or (k,)
        1^T S_j 1.
    offset : array of shape (k,)
        Something near the mean of the targets, which keeps their digits.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.solvers import KernelProducts, array_rows
    >>> x = np.arange(4.0)[:, None]
    >>> rows = KernelProducts(Linear(), array_rows(x, 2.0 * x), np.eye(1), 1)
    >>> rows.sums.cross.item(), rows.sums.weight.item()
    (28.0, 4.0)
    """

    cross: Array
    border: Array
    target: Array
    weight: Array
    offset: Array


class NormalProducts(Protocol):
    """What `solve_pcg` needs of the rows; any engine that has these two can be solved with.

    Examples
    --------
    >>> from lssvm.solvers import KernelProducts
    >>> callable(KernelProducts.product)
    True
    """

    @property
    def sums(self) -> Sums:
        """The sums that do not depend on the coefficients."""

    def product(self, V: Array, b: Array, columns: IntArray) -> Array:
        """Return K^T S_j (K v_j + b_j) for the outputs ``columns`` (a,), V (m, a) and b (a,)."""


def array_rows(
    X: Array, Y: Array, weight: Array | None = None, *, chunk: int | None = None
) -> Callable[[], Iterator[RowBlock]]:
    """Return the function that begins a pass over rows in memory.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows.
    Y : array of shape (n, k)
        Targets.
    weight : array of shape (n,) or (n, k), optional
        Weights of the rows; None: all are one.
    chunk : int, optional
        Rows of a part; by default a sixteenth, between 1,024 and 8,192.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.solvers import array_rows
    >>> [len(part.X) for part in array_rows(np.ones((5, 1)), np.ones((5, 1)), chunk=3)()]
    [3, 2]
    """
    n = X.shape[0]
    size = int(np.clip(n // 16, 1024, _CHUNK)) if chunk is None else chunk

    def begin() -> Iterator[RowBlock]:
        for part in slices(n, size):
            yield RowBlock(X[part, :], Y[part, :], None if weight is None else weight[part, ...])

    return begin


class KernelProducts:
    r"""Products with the kernel matrix K (n, m) of the rows and the prototypes.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    rows : callable
        Begins a pass: returns an iterable of `RowBlock`, the same at every call.
    Z : array of shape (m, d)
        Prototypes.
    n_targets : int
        k.
    offset : array of shape (k,), optional
        What is taken off the targets.
    keep : bool, default=False
        Whether K is kept from the first pass on, n m numbers, and the rows are not read again;
        else its blocks are computed anew in every pass.
    threads : int, default=1
        For NumPy arrays; other libraries have their own.

    Notes
    -----
    A pass takes n m (2 d + 4 a) operations and n m evaluations of the kernel's function for a
    outputs, or 4 n m a where K is kept. Sums are added in the order of the rows, whatever the
    number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.solvers import KernelProducts, array_rows
    >>> x = np.arange(4.0)[:, None]
    >>> rows = KernelProducts(Linear(), array_rows(x, x), np.eye(1), 1)
    >>> rows.product(np.full((1, 1), 2.0), np.ones(1), np.arange(1)).item()
    34.0
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: Callable[[], Iterable[RowBlock]],
        Z: Array,
        n_targets: int,
        *,
        offset: Array | None = None,
        keep: bool = False,
        threads: int = 1,
    ) -> None:
        xp = self._xp = get_namespace(Z)
        self._rows, self._evaluate = rows, kernel.against(Z)
        self._m, self._numpy = int(Z.shape[0]), is_numpy(Z)
        self._threads, self._local = threads, threading.local()
        entries = _ENTRIES if self._numpy else _ON_DEVICE
        self._step = max(_LEAST, entries // max(self._m, 1))
        self._kept: list[list[tuple[Array, Array, Array | None]]] | None = [] if keep else None
        self._complete = False
        self._like = {"dtype": Z.dtype, "device": device(Z)}
        self._offset = xp.zeros(n_targets, **self._like) if offset is None else offset

    @cached_property
    def sums(self) -> Sums:
        """The sums that do not depend on the coefficients: the first pass."""
        xp = self._xp

        def work(K: Array, Y: Array, weight: Array | None) -> list[Array]:
            Y = Y - self._offset[None, :]
            if weight is None:
                weight = xp.ones(Y.shape[0], **self._like)
            S = weight if weight.ndim == 2 else weight[:, None]
            SY, transposed = S * Y, xp.permute_dims(K, (1, 0))
            return [transposed @ SY, transposed @ S, xp.sum(SY, axis=0), xp.sum(S, axis=0)]

        cross, border, target, weight = self._pass(work)
        return Sums(cross, border, target, weight, self._offset)

    def product(self, V: Array, b: Array, columns: IntArray) -> Array:
        """Return K^T S_j (K v_j + b_j) for the outputs ``columns`` (a,), V (m, a) and b (a,)."""
        xp = self._xp

        def work(K: Array, Y: Array, weight: Array | None) -> list[Array]:
            F = K @ V + b[None, :]
            if weight is not None and weight.ndim == 2:
                F = F * xp.take(weight, xp.asarray(columns, device=device(weight)), axis=1)
            elif weight is not None:
                F = F * weight[:, None]
            return [xp.permute_dims(K, (1, 0)) @ F]

        return self._pass(work)[0]

    def _pass(self, work: Callable[[Array, Array, Array | None], list[Array]]) -> list[Array]:
        """Apply ``work`` to the blocks of every part of the rows and add up what it returns."""
        kept, complete = self._kept, self._complete

        def use(item: Any) -> tuple[list[Array], Any]:
            blocks = item if complete else self._blocks(item)
            if kept is not None:
                blocks = list(blocks)
            return _sum(work(*block) for block in blocks), blocks

        items: Iterable[Any] = kept if complete and kept is not None else self._rows()
        done = run_stream(use, items, self._threads) if self._numpy else map(use, items)

        def sums() -> Iterator[list[Array]]:
            for total, blocks in done:
                if kept is not None and not complete:
                    kept.append(blocks)
                yield total

        total = _sum(sums())
        self._complete = kept is not None
        return total

    def _blocks(self, rows: RowBlock) -> Iterator[tuple[Array, Array, Array | None]]:
        """Yield kernel values, targets and weights of a part, some rows at a time."""
        for part in slices(rows.X.shape[0], self._step):
            X = rows.X[part, :]
            if self._numpy:
                X = np.asarray(X, dtype=np.float64)
                K = np.asarray(self._evaluate(X, self._room(len(X))), dtype=np.float64)
            else:
                K = self._evaluate(X)
            weight = None if rows.weight is None else rows.weight[part, ...]
            yield K, rows.Y[part, :], weight

    def _room(self, n: int) -> Any:
        """Return this thread's room for a block of K (n, m), or None where blocks are kept."""
        if self._kept is not None:
            return None
        if not hasattr(self._local, "room"):
            self._local.room = np.empty((self._step, self._m))
        return self._local.room[:n]


def _sum(lists: Iterable[list[Array]]) -> list[Array]:
    total: list[Array] = []
    for arrays in lists:
        total = [a + b for a, b in zip(total, arrays, strict=True)] if total else arrays
    return total
