"""One pass over the rows: the moments of every cell (fold, class) at the machine's speed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray
from lssvm._core.lapack import add_gram, mirror
from lssvm._core.magnitudes import check_gram
from lssvm._core.memory import block_rows, require
from lssvm._core.namespace import float_rows
from lssvm._core.threads import run_blocks, slices
from lssvm.data import ArraySource, RowSource
from lssvm.kernels import Kernel
from lssvm.kernels.base import Evaluate
from lssvm.moments.moments import Moments

BLOCK = 1024  # rows whose kernel values are still near when the product reads them
_CHUNK = 8192  # rows added up before they are added to their cell; few: threads end together


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
    >>> from lssvm.data import ArraySource
    >>> from lssvm.kernels import Linear
    >>> from lssvm.moments import accumulate
    >>> X = np.arange(8.0).reshape(4, 2)
    >>> source, cells = ArraySource(X, X[:, :1]), [slice(0, 2), slice(2, 4)]
    >>> folds = accumulate(Linear(), source, np.eye(2), cells)
    >>> folds[1].plain().gram
    array([[52., 62.],
           [62., 74.]])
    """
    Z = float_rows(Z)
    m, k = Z.shape[0], source.n_targets
    cells = [slice(0, source.n_rows)] if cells is None else list(cells)
    require(
        8 * m * (m + k + 1) * (len(cells) + 2 * threads),
        budget,
        what=f"The moments of {m} prototypes in {len(cells)} cells (folds and classes)",
        advice="Lower n_prototypes, use fewer folds or multiclass='ova', or raise memory_budget.",
    )
    rows = block_rows(8 * 2 * m * threads, budget, n_rows=BLOCK, at_most=BLOCK)
    shift = kernel_shift(kernel, Z)
    store = _Store([None for _ in cells])
    local, values = threading.local(), kernel.against(Z)

    def work(chunk: tuple[int, int, slice]) -> None:
        cell, number, part = chunk
        if not hasattr(local, "buffer"):
            local.buffer = np.empty((rows, m))
        sums = store.room(m, k)
        add_rows(sums, values, source, shift, part, local.buffer)
        store.put(cell, number, sums)

    chunks = [(i, j, rows) for i, c in enumerate(cells) for j, rows in enumerate(_even(c, _CHUNK))]
    run_blocks(work, chunks, threads)
    return [
        Moments.zero(m, k, shift) if sums is None else sums.moments(cell.stop - cell.start, shift)
        for sums, cell in zip(store.cells, cells, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class RowSums:
    """Sums over rows of K^T K, K^T [Y, 1] and [Y, 1]^T [Y, 1]."""

    gram: FloatArray  # (m, m), its upper triangle
    side: FloatArray  # (m, k + 1)
    corner: FloatArray  # (k + 1, k + 1)

    @classmethod
    def room(cls, m: int, k: int) -> RowSums:
        """Return room for sums; only the gram is zero."""
        return cls(np.zeros((m, m)), np.empty((m, k + 1)), np.empty((k + 1, k + 1)))

    def add(self, other: RowSums) -> None:
        """Add other sums to these."""
        np.add(self.gram, other.gram, out=self.gram)
        np.add(self.side, other.side, out=self.side)
        np.add(self.corner, other.corner, out=self.corner)

    def moments(self, n: int, shift: FloatArray | None) -> Moments:
        """Return the moments that n rows have given."""
        return Moments.of_sums(mirror(self.gram), self.side, self.corner, n, shift)


@dataclass
class _Store:
    """Adds what chunks give to their cells, always in the order of the chunks."""

    cells: list[RowSums | None]
    lock: threading.Lock = field(default_factory=threading.Lock)
    due: Counter[int] = field(default_factory=Counter)
    waiting: dict[tuple[int, int], RowSums] = field(default_factory=dict)
    spares: list[RowSums] = field(default_factory=list)

    def room(self, m: int, k: int) -> RowSums:
        """Return room for a chunk, used before where there is some: fresh pages cost time."""
        try:
            return self.spares.pop()
        except IndexError:
            return RowSums.room(m, k)

    def put(self, cell: int, number: int, sums: RowSums) -> None:
        """Take the sums of chunk ``number`` of a cell and add what is due."""
        with self.lock:
            self.waiting[cell, number] = sums
            while (ready := self.waiting.pop((cell, self.due[cell]), None)) is not None:
                total = self.cells[cell]
                if total is None:
                    self.cells[cell] = ready
                else:
                    total.add(ready)
                    self.spares.append(ready)
                self.due[cell] += 1


def _even(span: slice, most: int) -> list[slice]:
    """Cut a span into as few slices of at most ``most`` as there can be, nearly equal.

    Multiples of 32 rows, where there are many, suit the inner loops of BLAS.
    """
    n = span.stop - span.start
    rows = -(-n // max(1, -(-n // most)))
    return slices(span.stop, max(1, min(most, -(-rows // 32) * 32)), span.start)


def kernel_shift(kernel: Kernel, Z: FloatArray) -> FloatArray | None:
    """Return what is subtracted from the kernel values; it depends on kernel and prototypes."""
    K = np.asarray(kernel(Z, Z), dtype=np.float64)
    check_gram(K.diagonal())
    mean = K.mean(axis=0)
    return mean if float(mean.mean()) > 0.25 * float(np.trace(K)) / len(K) else None


def add_rows(
    sums: RowSums,
    values: Evaluate,
    source: Any,
    shift: FloatArray | None,
    rows: slice,
    buffer: FloatArray,
) -> None:
    """Sum the rows of one chunk; ``buffer`` (b, m) is room to work in."""
    sums.side.fill(0.0)
    sums.corner.fill(0.0)
    for i, part in enumerate(_even(rows, buffer.shape[0])):
        block = source.read(part)
        view = buffer[: block.X.shape[0]]
        K = values(block.X, out=view)
        if shift is not None:
            K = np.subtract(K, shift, out=view)
        Y = np.column_stack([block.Y, np.ones(len(K))])
        if block.weight is not None:
            root = np.sqrt(block.weight)[:, None]
            K = np.multiply(K, root, out=view)
            Y *= root
        elif not K.flags.c_contiguous or K.dtype != np.float64:
            K = np.ascontiguousarray(K, dtype=np.float64)
        add_gram(sums.gram, K, new=i == 0)
        _add_skinny(sums.side, K, Y)  # [DeBrabanter2010, eq. (23)]
        np.add(sums.corner, Y.T @ Y, out=sums.corner)


def _add_skinny(side: FloatArray, K: FloatArray, Y: FloatArray) -> None:
    """Add K^T Y (m, k); few columns go faster as products with vectors."""
    if Y.shape[1] > 4:
        np.add(side, (Y.T @ K).T, out=side)
        return
    for j in range(Y.shape[1]):
        side[:, j] += K.T @ np.ascontiguousarray(Y[:, j])
