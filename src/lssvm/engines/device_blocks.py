"""Rows on their way to a device: kept there where they fit, otherwise copied block by block."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import IntArray
from lssvm._core.device import Device, out_of_memory
from lssvm._core.namespace import Array, is_numpy
from lssvm._core.threads import run_blocks, slices
from lssvm.data.source import LookedUp

Named = dict[str, Array]

_KEPT = 0.5  # part of the free memory up to which rows stay on the device
_ROWS = 2**20  # rows of a block of those that stay
_ENTRIES = 2**25  # numbers of a block that is copied
_SLOTS = 3  # blocks that may be under way: one read, one copied, one computed
_COPIERS = 4  # threads that fill a block


@dataclass(frozen=True, eq=False)
class DeviceBlocks:
    """Rows of arrays, as a pass on a device is to see them.

    Parameters
    ----------
    engine : Device
    X : array of shape (n, d)
        On the host, or on the device already.
    columns : dict of str to (array of shape (n, ...) or LookedUp)
        What belongs to the rows (targets, weights, labels), on the host.

    Notes
    -----
    Rows that take at most half of the free memory of the device are copied once and stay for all
    passes. Others come in blocks with every pass: a thread copies the next one into pinned memory
    and starts its transfer on a stream of its own while the device computes. Results do not depend
    on which it is beyond rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm._core.device import Device
    >>> from lssvm._core.namespace import get_namespace
    >>> from lssvm.engines.device_blocks import DeviceBlocks
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> rows = DeviceBlocks(Device(get_namespace(X), "cpu"), X, {"y": np.arange(3)})
    >>> cells = [slice(0, 1), slice(1, 3)]
    >>> [(c, part["y"].tolist()) for c, part in rows.blocks(np.array([2, 0, 1]), cells, ["y"])]
    [(0, [2]), (1, [0, 1])]
    """

    engine: Device
    X: Any
    columns: dict[str, Any]

    @property
    def n_rows(self) -> int:
        """Rows there are."""
        return int(self.X.shape[0])

    @cached_property
    def kept(self) -> Named | None:
        """Everything on the device; None where it does not fit."""
        engine = self.engine
        if is_numpy(self.X):
            size = self.X.nbytes + sum(_stored(c).nbytes for c in self.columns.values())
            if size > _KEPT * engine.free_bytes():
                return None
        try:
            put = {name: engine.put(_stored(column)) for name, column in self.columns.items()}
            X = engine.put(self.X, dtype=None if not is_numpy(self.X) else _dtype(engine, self.X))
        except Exception as error:
            if not out_of_memory(error) or not is_numpy(self.X):
                raise
            engine.release()
            return None
        return {"X": X, **put}

    def blocks(
        self, order: IntArray | None, cells: Sequence[slice], names: Sequence[str]
    ) -> Iterator[tuple[int, Named]]:
        """Yield cell numbers and rows of them on the device.

        Parameters
        ----------
        order : int array or None
            Rows in the order of the cells; None: as they are.
        cells : sequence of slice
            Into ``order``.
        names : sequence of str
            Which columns are wanted besides "X".
        """
        if self.kept is not None:
            return self._from_device(self.kept, order, cells, names)
        return self._from_host(order, cells, names)

    def in_order(self, order: IntArray | None = None, names: Sequence[str] = ()) -> Iterator[Named]:
        """Yield the rows in an order (None: their own), with those named columns there are."""
        used = [name for name in names if name in self.columns]
        cells = [slice(0, self.n_rows if order is None else len(order))]
        return (block for _, block in self.blocks(order, cells, used))

    def _finish(self, block: Named) -> Named:
        xp = self.engine.xp
        block["X"] = xp.astype(block["X"], xp.float64, copy=False)
        for name in block:
            column = self.columns.get(name)
            if isinstance(column, LookedUp):
                table = self.engine.put(column.table)
                block[name] = xp.take(table, xp.astype(block[name], xp.int64), axis=0)
        return block

    def _from_device(
        self, kept: Named, order: IntArray | None, cells: Sequence[slice], names: Sequence[str]
    ) -> Iterator[tuple[int, Named]]:
        xp, used = self.engine.xp, ["X", *names]
        index = None if order is None else self.engine.put(order)
        entries = int(self.engine.free_bytes()) // (4 * 8)  # a block and what it is made from
        rows = max(1, min(_ROWS, entries // max(1, int(self.X.shape[1]))))
        for number, cell in enumerate(cells):
            for span in slices(cell.stop, rows, cell.start):
                if index is None:
                    block = {name: kept[name][span, ...] for name in used}
                else:
                    block = {name: xp.take(kept[name], index[span], axis=0) for name in used}
                yield number, self._finish(block)

    # -- rows that do not fit ----------------------------------------------------------------------

    def _from_host(
        self, order: IntArray | None, cells: Sequence[slice], names: Sequence[str]
    ) -> Iterator[tuple[int, Named]]:
        xp, used = self.engine.xp, ["X", *names]
        # At most half of what is free for the blocks under way and one that is put in order.
        entries = min(_ENTRIES, int(self.engine.free_bytes()) // (2 * 8 * (_SLOTS + 2)))
        rows = max(1, entries // max(1, int(self.X.shape[1])))
        for counts, part in _transfer(self.engine, self._host_blocks(order, cells, used, rows)):
            if "sorted" in part:
                by_cell = part.pop("sorted")
                part = {name: xp.take(array, by_cell, axis=0) for name, array in part.items()}
            ready = self._finish(part)
            begin = 0
            for number, count in counts:
                span = slice(begin, begin + count)
                yield number, {name: array[span, ...] for name, array in ready.items()}
                begin += count

    def _host_blocks(
        self, order: IntArray | None, cells: Sequence[slice], used: Sequence[str], rows: int
    ) -> Iterator[tuple[list[tuple[int, int]], dict[str, Any]]]:
        """Yield (cell, count) of the rows of a block, and the block."""
        stored = {name: self.X if name == "X" else _stored(self.columns[name]) for name in used}
        cell_of = None if order is None else _cell_of(order, cells, self.n_rows)
        if cell_of is None:  # rows that come as they are, or several times
            for number, cell in enumerate(cells):
                for span in slices(cell.stop, rows, cell.start):
                    some = span if order is None else order[span]
                    counts = [(number, span.stop - span.start)]
                    yield counts, {name: array[some] for name, array in stored.items()}
            return
        for part in slices(self.n_rows, rows):  # memory is read forwards, sorted on the device
            own = cell_of[part]
            count = np.bincount(own + 1, minlength=len(cells) + 1)
            block = {name: array[part] for name, array in stored.items()}
            block["sorted"] = np.argsort(own, kind="stable")[count[0] :]
            yield [(c, int(n)) for c, n in enumerate(count[1:]) if n], block


def _stored(column: Any) -> NDArray[Any]:
    return np.asarray(column.numbers if isinstance(column, LookedUp) else column)


def _dtype(engine: Device, X: NDArray[Any]) -> Any:
    return engine.xp.float32 if X.dtype == np.float32 else engine.xp.float64


def _cell_of(order: IntArray, cells: Sequence[slice], n: int) -> NDArray[Any] | None:
    """Return the cell of every row, -1 for none; None where a row is in several."""
    kind = np.min_scalar_type(-len(cells) - 1)
    cell_of, total = np.full(n, -1, dtype=kind), 0
    for number, cell in enumerate(cells):
        cell_of[order[cell]] = number
        total += cell.stop - cell.start
    return cell_of if np.count_nonzero(cell_of >= 0) == total else None


def _transfer(engine: Device, blocks: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Named]]:
    """Bring blocks to the device, the next ones while the caller computes."""
    if not engine.is_cuda:
        for what, block in blocks:
            yield what, {name: engine.put(array) for name, array in block.items()}
        return
    copier = _Copier(engine)
    with ThreadPoolExecutor(1) as pool:
        pending: deque[tuple[Any, Future[tuple[Named, Any]]]] = deque()
        try:
            for what, block in blocks:
                pending.append((what, pool.submit(copier.send, block)))
                if len(pending) == _SLOTS - 1:
                    yield copier.receive(*pending.popleft())
            while pending:
                yield copier.receive(*pending.popleft())
        finally:
            for _, future in pending:
                future.cancel()


class _Copier:
    """Copies blocks to a GPU through pinned memory, on a stream of its own."""

    def __init__(self, engine: Device) -> None:
        self.engine = engine
        self.stream = engine.xp.cuda.Stream(engine.device)
        self.buffers: list[dict[str, Any]] = [{} for _ in range(_SLOTS)]
        self.copied: list[Any] = [None] * _SLOTS
        self.turn = 0

    def send(self, block: dict[str, Any]) -> tuple[Named, Any]:
        """Start the transfer of a block; called by one other thread."""
        torch, slot = self.engine.xp, self.turn
        self.turn = (slot + 1) % _SLOTS
        if self.copied[slot] is not None:
            self.copied[slot].synchronize()  # its pinned memory is read until then
        sent = {}
        with torch.cuda.stream(self.stream):
            for name, array in block.items():
                staged = self._staged(slot, name, np.asarray(array))
                sent[name] = staged.to(self.engine.device, non_blocking=True)
            event = torch.cuda.Event()
            event.record(self.stream)
        self.copied[slot] = event
        return sent, event

    def _staged(self, slot: int, name: str, array: NDArray[Any]) -> Any:
        """Copy an array into pinned memory of its own, which later blocks use again."""
        torch, held = self.engine.xp, self.buffers[slot].get(name)
        if held is None or held.numel() < array.size:
            kind = torch.from_numpy(np.empty(0, dtype=array.dtype)).dtype
            held = torch.empty(array.size, dtype=kind, pin_memory=True)
            self.buffers[slot][name] = held
        staged = held[: array.size].reshape(array.shape)
        into = staged.numpy()

        def fill(part: slice) -> None:
            into[part] = array[part]

        run_blocks(fill, slices(len(array), -(-len(array) // _COPIERS) or 1), _COPIERS)
        return staged

    def receive(self, what: Any, future: Future[tuple[Named, Any]]) -> tuple[Any, Named]:
        """Wait for a block on the stream that computes."""
        torch = self.engine.xp
        sent, event = future.result()
        stream = torch.cuda.current_stream(self.engine.device)
        stream.wait_event(event)
        for array in sent.values():
            array.record_stream(stream)
        return what, sent
