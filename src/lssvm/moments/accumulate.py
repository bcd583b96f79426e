"""One pass over the rows: the moments of every cell (fold, class) at the machine's speed.

First rows in memory, sorted by cell; then rows that come in blocks, in any order of cells, and sums
over their predictions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray, check_gram, float_rows
from lssvm._core.blocks import block_rows, require, run_stream, slices
from lssvm._core.lapack import add_gram, mirror
from lssvm.data import ArraySource, RowSource
from lssvm.kernels import Kernel
from lssvm.moments.moments import Moments

BLOCK = 1024  # rows whose kernel values are still near when the product reads them
_CHUNK = 8192  # rows added up before they are added to their cell; few: threads end together


def accumulate(
    kernel: Kernel,
    source: RowSource | ArraySource,
    Z: FloatArray,
    cells: Sequence[slice] | None = None,
    *,
    budget: int = 2**31,
    threads: int = 1,
) -> list[Moments]:
    """Return the moments of consecutive cells of rows, in one pass.

    [DeBrabanter2010], algorithm 4 and eqs. (22)-(24), for any number of folds at once. n m^2
    operations for the symmetric products, 2 n m d for the kernel, n m evaluations of its scalar
    function; memory m^2 per cell and 2 m^2 + 1,000 m per thread. K (n, m) is never stored.

    Where kernel values vary little (their mean over the prototypes is more than a quarter of the
    diagonal), the column means of K(Z, Z) are subtracted first: see `Moments.shift`.

    Rows are added in chunks that depend on the cells alone, and chunks in their order: neither the
    number of threads nor their timing changes a bit of the result.
    """
    Z = float_rows(Z)
    m, k = Z.shape[0], source.n_targets
    cells = [slice(0, source.n_rows)] if cells is None else list(cells)
    one = _Pass(kernel, Z, len(cells), k, budget, threads)

    def work(chunk: tuple[int, slice]) -> tuple[int, int, RowSums]:
        cell, part = chunk
        return cell, part.stop - part.start, one.sums(source, part)

    chunks = [(i, part) for i, cell in enumerate(cells) for part in _even(cell, _CHUNK)]
    if threads <= 1 or len(chunks) <= 1:
        return one.moments(map(work, chunks))
    operations = source.n_rows * m * (m + Z.shape[1])
    return one.moments(run_stream(work, chunks, threads, operations=operations))


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


class _Pass:
    """One pass over rows: what chunks of them give is added to their cells, in their order."""

    def __init__(
        self,
        kernel: Kernel,
        Z: FloatArray,
        n_cells: int,
        n_targets: int,
        budget: int,
        threads: int,
        held: int = 0,
    ) -> None:
        m = Z.shape[0]
        require(
            8 * (m * (m + n_targets + 1) * (n_cells + 2 * threads) + held),
            budget,
            what=f"The moments of {m} prototypes in {n_cells} cells (folds and classes)",
            advice="Lower n_prototypes, use fewer folds or multiclass='ova', or raise "
            "memory_budget.",
        )
        self.shape, self.n_cells = (m, n_targets), n_cells
        self.rows = block_rows(8 * 2 * m * threads, budget, n_rows=BLOCK, at_most=BLOCK)
        self.shift, self.values = kernel_shift(kernel, Z), kernel.against(Z)
        self.local = threading.local()
        self.spares: list[RowSums] = []  # room that was used before: fresh pages cost time

    def sums(self, source: RowSource | ArraySource, rows: slice) -> RowSums:
        """Return the sums of one chunk of rows, on any thread."""
        if not hasattr(self.local, "buffer"):
            self.local.buffer = np.empty((self.rows, self.shape[0]))
        try:
            sums = self.spares.pop()
        except IndexError:
            sums = RowSums.room(*self.shape)
        sums.side.fill(0.0)
        sums.corner.fill(0.0)
        for i, part in enumerate(_even(rows, self.rows)):
            block = source.read(part)
            view = self.local.buffer[: block.X.shape[0]]
            K = self.values(block.X, out=view)
            if self.shift is not None:
                K = np.subtract(K, self.shift, out=view)
            Y = np.ones((len(K), block.Y.shape[1] + 1))
            Y[:, :-1] = block.Y
            if block.weight is not None:
                root = np.sqrt(block.weight)[:, None]
                K = np.multiply(K, root, out=view)
                Y *= root
            elif not K.flags.c_contiguous or K.dtype != np.float64:
                K = np.ascontiguousarray(K, dtype=np.float64)
            np.add(sums.side, (Y.T @ K).T, out=sums.side)  # [DeBrabanter2010, eq. (23)]
            add_gram(sums.gram, K, new=i == 0)
            np.add(sums.corner, Y.T @ Y, out=sums.corner)
        return sums

    def moments(self, chunks: Iterable[tuple[int, int, RowSums]]) -> list[Moments]:
        """Return the moments of the cells, from cell, number of rows and sums of all chunks."""
        cells: list[RowSums | None] = [None] * self.n_cells
        count = [0] * self.n_cells
        for cell, n, sums in chunks:
            total, count[cell] = cells[cell], count[cell] + n
            if total is None:
                cells[cell] = sums
            else:
                total.add(sums)
                self.spares.append(sums)
        return [
            Moments.zero(*self.shape, self.shift) if sums is None else sums.moments(n, self.shift)
            for sums, n in zip(cells, count, strict=True)
        ]


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


Result = TypeVar("Result")

_PACKET = 8192  # rows of a cell that are collected before they are added up
_HELD = 2**23  # numbers that packets of all cells hold, unless they would be too small


class Piece(NamedTuple):
    """Some rows of a stream, each with the cell (fold, class) it belongs to.

    Attributes
    ----------
    X : array of shape (b, d)
        Rows.
    Y : array of shape (b, k)
        Targets.
    weight : array of shape (b,) or None
        None in all pieces of a stream, or in none.
    cell : int array of shape (b,)
        Which cell each row belongs to.
    position : int array of shape (b,)
        Where the rows stand in the data.
    label : int array of shape (b,)
        Class numbers; zeros where there are no classes.
    """

    X: FloatArray
    Y: FloatArray
    weight: FloatArray | None
    cell: IntArray
    position: IntArray
    label: IntArray

    def take(self, rows: slice) -> Piece:
        """Return some of the rows."""
        return Piece(*(None if a is None else a[rows] for a in self))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Packet:
    """Rows of one cell, as they were collected from a stream."""

    number: int
    rows: Piece


def packet_rows(n_cells: int, n_features: int) -> int:
    """Return the rows of a packet: 8,192, or fewer where many cells or long rows are held."""
    return max(1024, min(_PACKET, _HELD // max(1, n_cells * n_features)))


def route(pieces: Iterable[Piece], n_cells: int) -> Iterator[Packet]:
    """Collect the rows of every cell and pass them on in packets of equal size.

    Packets depend on the order of the rows, not on the pieces they came in: sums over them have
    the same bits for every chunking. Rows of cell -1 are left out. Memory: one packet per cell.
    """
    pieces = iter(pieces)
    first = next(pieces, None)
    if first is None:
        return
    size = packet_rows(n_cells, first.X.shape[1])
    held: list[Piece | None] = [None] * n_cells
    filled = [0] * n_cells
    for piece in chain([first], pieces):
        order = np.argsort(piece.cell, kind="stable")
        cuts = np.searchsorted(piece.cell[order], np.arange(n_cells + 1))
        for c in range(n_cells):
            begin = int(cuts[c])
            while begin < cuts[c + 1]:
                into = held[c]
                if into is None:
                    into = held[c] = Piece(*(_room(array, size) for array in piece))
                taken = min(size - filled[c], int(cuts[c + 1]) - begin)
                rows = order[begin : begin + taken]
                for target, values in zip(into, piece, strict=True):
                    if target is not None and values is not None:
                        _gather(values, rows, target[filled[c] : filled[c] + taken])
                filled[c], begin = filled[c] + taken, begin + taken
                if filled[c] == size:
                    yield Packet(c, into)
                    held[c], filled[c] = None, 0
    for c, rest in enumerate(held):
        if rest is not None:
            yield Packet(c, rest.take(slice(filled[c])))


def _gather(values: Any, rows: IntArray, out: Any) -> None:
    """Copy some rows; without a mode NumPy would fill a copy of ``out`` first."""
    if values.dtype == out.dtype:
        np.take(values, rows, axis=0, out=out, mode="clip")
    else:
        out[...] = values[rows]


def _room(array: Any, size: int) -> Any:
    return None if array is None else np.empty((size, *array.shape[1:]), dtype=array.dtype)


def accumulate_stream(
    kernel: Kernel,
    pieces: Iterable[Piece],
    Z: FloatArray,
    n_cells: int,
    n_targets: int,
    *,
    budget: int = 2**31,
    threads: int = 1,
    source: Callable[[Piece], RowSource] | None = None,
) -> list[Moments]:
    """Return the moments of cells whose rows come in any order, in one pass.

    [DeBrabanter2010], algorithm 4: blocks of rows are read, mapped and added up. There the blocks
    are of one training set; here rows are collected per cell (fold, class) first, so that one pass
    serves all folds. The operations are those of `accumulate`. Memory m^2 per cell and for each of
    ``threads + 2`` packets on the way; it does not depend on the number of rows.

    Moments add: what several workers have read is added with ``+``.
    """
    Z = np.asarray(Z, dtype=np.float64)
    m = Z.shape[0]
    held = packet_rows(n_cells, Z.shape[1]) * Z.shape[1] * (n_cells + threads + 2)
    held += 2 * m * (m + n_targets + 1)
    one = _Pass(kernel, Z, n_cells, n_targets, budget, threads, held)

    def work(packet: Packet) -> tuple[int, int, RowSums]:
        rows, n = packet.rows, len(packet.rows.X)
        read = ArraySource(rows.X, rows.Y, rows.weight) if source is None else source(rows)
        return packet.number, n, one.sums(read, slice(0, n))

    return one.moments(run_stream(work, route(pieces, n_cells), threads))


def map_outputs(
    kernel: Kernel,
    pieces: Iterable[Piece],
    Z: FloatArray,
    models: Sequence[tuple[FloatArray, FloatArray]],
    use: Callable[[int, Piece, FloatArray], Result],
    *,
    threads: int = 1,
) -> Iterator[tuple[int, Result]]:
    """Evaluate the models of every cell on its rows, in one pass, and use what they say."""
    kernel_values = kernel.against(np.asarray(Z, dtype=np.float64))
    flat = []
    for coef, b in models:
        c, m, k = coef.shape
        flat.append((np.ascontiguousarray(np.moveaxis(coef, 1, 0)).reshape(m, c * k), b))

    def work(packet: Packet) -> list[tuple[int, Result]]:
        coef, b = flat[packet.number]
        found = []
        for span in slices(len(packet.rows.X), BLOCK):
            part = packet.rows.take(span)
            values = (np.asarray(kernel_values(part.X)) @ coef).reshape(-1, *b.shape)
            outputs = np.ascontiguousarray(np.moveaxis(values, 1, 0)) + b[:, None, :]
            found.append((packet.number, use(packet.number, part, outputs)))
        return found

    for found in run_stream(work, route(pieces, len(models)), threads):
        yield from found
