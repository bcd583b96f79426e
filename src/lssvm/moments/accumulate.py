"""One pass over the rows: the moments of every cell (fold, class) at the machine's speed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from lssvm._core.memory import block_rows, require
from lssvm._core.threads import run_blocks, slices
from lssvm.blocks import ArraySource, RowSource
from lssvm.kernels import Kernel
from lssvm.moments.moments import Moments

FloatArray = NDArray[np.float64]

_BLOCK = 1024  # rows whose kernel values stay in the cache between two products
_CHUNK = 8192  # rows added up before they are added to their cell


def accumulate(
    kernel: Kernel,
    source: RowSource | ArraySource,
    Z: NDArray[Any],
    cells: Sequence[slice] | None = None,
    *,
    budget: int = 2**31,
    threads: int = 1,
) -> list[Moments]:
    r"""Return the moments of consecutive cells of rows, in one pass.

    Parameters
    ----------
    kernel : Kernel
    source : RowSource
        Its rows are ordered so that every cell is consecutive.
    Z : array of shape (m, d)
        Prototypes.
    cells : sequence of slice, optional
        One per cell; they may be empty. By default one cell of all rows.
    budget : int, default=2**31
        Memory budget in bytes, for the moments and all buffers.
    threads : int, default=1

    Returns
    -------
    list of Moments
        In float64 whatever the type of the rows.

    Notes
    -----
    [DeBrabanter2010]_, algorithm 4 and eqs. (22)-(24), for any number of folds at once. n m^2
    operations for the symmetric products, 2 n m d for the kernel, n m evaluations of its scalar
    function; memory m^2 per cell and 2 m^2 + 1,000 m per thread. K (n, m) is never stored.

    Where kernel values vary little (their mean over the prototypes is more than a quarter of the
    diagonal), the column means of K(Z, Z) are subtracted first: see `Moments.shift`.

    Rows are added in chunks that depend on the cells alone, and chunks in their order: neither the
    number of threads nor their timing changes a bit of the result.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.blocks import ArraySource
    >>> from lssvm.kernels import Linear
    >>> from lssvm.moments import accumulate
    >>> X = np.arange(8.0).reshape(4, 2)
    >>> source, cells = ArraySource(X, X[:, :1]), [slice(0, 2), slice(2, 4)]
    >>> folds = accumulate(Linear(), source, np.eye(2), cells)
    >>> folds[1].plain().gram
    array([[52., 62.],
           [62., 74.]])
    """
    Z = np.asarray(Z, dtype=np.float64)
    m, k = Z.shape[0], source.n_targets
    cells = [slice(0, source.n_rows)] if cells is None else list(cells)
    need = 8 * m * (m + k + 1) * (len(cells) + 2 * threads)
    require(
        need,
        budget,
        what=f"The moments of {m} prototypes in {len(cells)} cells (folds and classes)",
        advice="Lower n_prototypes, use fewer folds or multiclass='ova', or raise memory_budget.",
    )
    rows = block_rows(8 * 2 * m * threads, budget, n_rows=_BLOCK, at_most=_BLOCK)
    shift = _shift(kernel, Z)
    store = _Store([Moments.zero(m, k, shift) for _ in cells])
    local = threading.local()

    def work(chunk: _Chunk) -> None:
        if not hasattr(local, "buffer"):
            local.buffer = np.empty((rows, m))
        store.put(chunk, _sum(kernel, source, Z, shift, chunk.rows, local.buffer))

    run_blocks(work, store.chunks(cells), threads)
    for moments in store.cells:
        _mirror(moments.gram)
    return store.cells


@dataclass(frozen=True)
class _Chunk:
    cell: int
    number: int
    rows: slice


@dataclass
class _Store:
    """Adds what chunks give to their cells, always in the order of the chunks."""

    cells: list[Moments]
    lock: threading.Lock = field(default_factory=threading.Lock)
    due: dict[int, int] = field(default_factory=dict)
    waiting: dict[tuple[int, int], Moments] = field(default_factory=dict)

    def chunks(self, cells: Sequence[slice]) -> list[_Chunk]:
        found = []
        for i, cell in enumerate(cells):
            n = cell.stop - cell.start
            parts = slices(n, -(-n // -(-n // _CHUNK))) if n else []
            for j, part in enumerate(parts):
                rows = slice(cell.start + part.start, cell.start + part.stop)
                found.append(_Chunk(i, j, rows))
        return found

    def put(self, chunk: _Chunk, part: Moments) -> None:
        with self.lock:
            self.waiting[chunk.cell, chunk.number] = part
            number = self.due.get(chunk.cell, 0)
            while (chunk.cell, number) in self.waiting:
                ready = self.waiting.pop((chunk.cell, number))
                self.cells[chunk.cell] = (
                    ready if number == 0 else _add_to(self.cells[chunk.cell], ready)
                )
                number += 1
            self.due[chunk.cell] = number


def _add_to(cell: Moments, part: Moments) -> Moments:
    for name in ("gram", "border", "cross", "target", "squares"):
        into = getattr(cell, name)
        into += getattr(part, name)
    return Moments(
        cell.gram,
        cell.border,
        cell.cross,
        cell.target,
        cell.squares,
        cell.weight + part.weight,
        cell.n + part.n,
        cell.shift,
    )


def _shift(kernel: Kernel, Z: FloatArray) -> FloatArray | None:
    """Return what is subtracted from the kernel values; it depends on kernel and prototypes."""
    K = np.asarray(kernel(Z, Z), dtype=np.float64)
    mean = K.mean(axis=0)
    return mean if float(mean.mean()) > 0.25 * float(np.trace(K)) / len(K) else None


def _sum(
    kernel: Kernel,
    source: Any,
    Z: FloatArray,
    shift: FloatArray | None,
    rows: slice,
    buffer: FloatArray,
) -> Moments:
    """Return the moments of one chunk; of the gram only the triangle that BLAS fills."""
    m, k = Z.shape[0], source.n_targets
    gram = np.zeros((m, m), order="F")
    cross, squares = np.zeros((m, k + 1)), np.zeros(k)
    target, weight = np.zeros(k), 0.0
    for part in slices(rows.stop - rows.start, buffer.shape[0]):
        block = source.read(slice(rows.start + part.start, rows.start + part.stop))
        view = buffer[: len(block.X)]
        K = kernel(block.X, Z, out=view)
        if shift is not None:
            K = np.subtract(K, shift, out=view)
        Y = np.column_stack([block.Y, np.ones(len(K))])
        if block.weight is not None:
            root = np.sqrt(block.weight)[:, None]
            K = np.multiply(K, root, out=view)
            Y *= root
        elif not K.flags.c_contiguous or K.dtype != np.float64:
            K = np.ascontiguousarray(K, dtype=np.float64)
        gram = dsyrk(1.0, K.T, beta=1.0, c=gram, lower=1, overwrite_c=1)
        cross += _skinny(K, Y)  # [DeBrabanter2010, eq. (23)]
        sums = Y[:, -1] @ Y
        target, weight = target + sums[:-1], weight + float(sums[-1])
        squares += np.einsum("ij,ij->j", Y[:, :-1], Y[:, :-1])
    n = rows.stop - rows.start
    border, products = cross[:, -1].copy(), cross[:, :-1].copy()
    return Moments(gram, border, products, target, squares, weight, n, shift)


def _skinny(K: FloatArray, Y: FloatArray) -> FloatArray:
    """Return K^T Y (m, k); few columns go faster as products with vectors."""
    if Y.shape[1] <= 4:
        return np.stack([K.T @ np.ascontiguousarray(column) for column in Y.T], axis=1)
    return np.asarray((Y.T @ K).T)


def _mirror(gram: FloatArray) -> None:
    """Fill the upper triangle from the lower one, in tiles."""
    m = gram.shape[0]
    for part in slices(m, 256):
        gram[part, part.stop :] = gram[part.stop :, part].T
        tile = gram[part, part]
        tile[...] = np.tril(tile) + np.tril(tile, -1).T
