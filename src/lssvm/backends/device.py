"""Rows on a device: a GPU of torch or CuPy, or any other array-API namespace.

Rows stay on the device where they fit, otherwise they are copied block by block (`DeviceBlocks`);
on them stand the kernel expansions, the moments of every cell in one pass, and the engine itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np

from lssvm._core.arrays import (
    Array,
    Device,
    FloatArray,
    Halving,
    IntArray,
    is_foreign,
    is_numpy,
    out_of_memory,
    to_numpy,
)
from lssvm._core.blocks import require, run_blocks, slices
from lssvm._core.errors import InvalidInputError
from lssvm.backends.host import FoldModels, Host, Named, Result
from lssvm.data.dataset import Dataset
from lssvm.data.folds import Folds
from lssvm.data.raw import LookedUp
from lssvm.kernels import Kernel
from lssvm.kernels.factory import FunctionKernel, Precomputed
from lssvm.solvers.moments import Cells, Moments

_KEPT = 0.5  # part of the free memory up to which rows stay on the device
_ROWS = 2**20  # rows of a block of those that stay
_COPIED = 2**25  # numbers of a block that is copied
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
    >>> from lssvm._core.arrays import Device
    >>> from lssvm._core.arrays import get_namespace
    >>> from lssvm.backends.device import DeviceBlocks
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
        entries = min(_COPIED, int(self.engine.free_bytes()) // (2 * 8 * (_SLOTS + 2)))
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
            numbers = cell_of[part]
            count = np.bincount(numbers + 1, minlength=len(cells) + 1)
            block = {name: array[part] for name, array in stored.items()}
            block["sorted"] = np.argsort(numbers, kind="stable")[count[0] :]
            yield [(c, int(n)) for c, n in enumerate(count[1:]) if n], block


def _stored(column: Any) -> FloatArray:
    return np.asarray(column.numbers if isinstance(column, LookedUp) else column)


def _dtype(engine: Device, X: FloatArray) -> Any:
    return engine.xp.float32 if X.dtype == np.float32 else engine.xp.float64


def _cell_of(order: IntArray, cells: Sequence[slice], n: int) -> FloatArray | None:
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

    def _staged(self, slot: int, name: str, array: FloatArray) -> Any:
        """Copy an array into pinned memory of its own, which later blocks use again."""
        torch, buffer = self.engine.xp, self.buffers[slot].get(name)
        if buffer is None or buffer.numel() < array.size:
            kind = torch.from_numpy(np.empty(0, dtype=array.dtype)).dtype
            buffer = torch.empty(array.size, dtype=kind, pin_memory=True)
            self.buffers[slot][name] = buffer
        staged = buffer[: array.size].reshape(array.shape)
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


_ENTRIES = 2**27  # numbers of a block
_SHARE = 0.2  # part of the free memory that a block may take


def check_device_kernel(kernel: Kernel) -> None:
    """Raise for kernels that are not written for other arrays than NumPy's.

    Examples
    --------
    >>> from lssvm.kernels import RBF
    >>> from lssvm.backends.device import check_device_kernel
    >>> check_device_kernel(RBF(1.0))
    """
    if isinstance(kernel, (FunctionKernel, Precomputed)):
        raise InvalidInputError(
            "A kernel that is a function of NumPy arrays cannot be computed on a device: give "
            "kernel='rbf', 'linear', 'poly', 'laplacian' or 'matern', an object of lssvm.kernels, "
            "or device=None."
        )


def block_size(engine: Device, width: int) -> int:
    """Return how many rows a block may have that needs ``width`` numbers for each."""
    entries = min(_ENTRIES, int(_SHARE * engine.free_bytes()) // (3 * 8))
    return max(256, entries // max(width, 1))


def use_outputs(
    kernel: Kernel,
    engine: Device,
    blocks: Iterable[Named],
    Z: FloatArray,
    coef: Array,
    intercept: Array,
    use: Callable[[Array, Named], None],
) -> None:
    """Evaluate c expansions on rows, in one pass on a device, and use what they say.

    Parameters
    ----------
    kernel : Kernel
    engine : Device
    blocks : iterable of dict
        Rows on the device, see `DeviceBlocks.in_order`.
    Z : array of shape (m, d)
    coef : array of shape (c, m, k)
    intercept : array of shape (c, k)
    use : callable
        ``use(outputs, block)`` with outputs of shape (b, c, k) and the columns of those b rows;
        called again with fewer rows where it has no memory, so that it must change nothing then.

    Notes
    -----
    2 n m (d + c k) operations; the kernel values of a block are all that is stored.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm._core.arrays import Device
    >>> from lssvm._core.arrays import get_namespace
    >>> from lssvm.backends.device import DeviceBlocks
    >>> from lssvm.kernels import Linear
    >>> from lssvm.backends.device import use_outputs
    >>> X = np.arange(4.0).reshape(2, 2)
    >>> engine, seen = Device(get_namespace(X), "cpu"), []
    >>> blocks = DeviceBlocks(engine, X, {}).in_order()
    >>> use_outputs(Linear(), engine, blocks, np.eye(2), np.ones((1, 2, 1)), np.zeros((1, 1)),
    ...             lambda outputs, block: seen.append(outputs.ravel()))
    >>> seen
    [array([1., 5.])]
    """
    check_device_kernel(kernel)
    xp, (c, m, k) = engine.xp, coef.shape
    flat = xp.reshape(xp.permute_dims(engine.put(coef), (1, 0, 2)), (m, c * k))
    threshold = engine.put(intercept)[None, ...]
    values = kernel.against(engine.put(np.asarray(Z, dtype=np.float64)))
    parts = Halving(engine, block_size(engine, m + 3 * c * k))
    for block in blocks:

        def work(part: slice, block: Named = block) -> None:
            outputs = xp.matmul(values(block["X"][part, ...]), flat)
            outputs = xp.reshape(outputs, (-1, c, k)) + threshold
            use(outputs, {name: array[part, ...] for name, array in block.items()})

        parts.run(work, int(block["X"].shape[0]))


_PANELS = 8  # the gram is computed in so many panels of columns, from the diagonal on


def accumulate_on_device(
    kernel: Kernel,
    rows: DeviceBlocks,
    Z: FloatArray,
    order: IntArray | None,
    cells: Sequence[slice],
    *,
    n_targets: int,
) -> list[Moments]:
    r"""Return the moments of cells of rows, in one pass on a device.

    Parameters
    ----------
    kernel : Kernel
    rows : DeviceBlocks
        With the column "weight" where rows have weights, and "Y" where ``n_targets`` > 0.
    Z : array of shape (m, d)
        Prototypes.
    order : int array or None
        Rows, cell after cell; None: as they are.
    cells : sequence of slice
        Into ``order``.
    n_targets : int
        Columns of "Y".

    Returns
    -------
    list of Moments
        Their arrays are on the device, in float64.

    Notes
    -----
    What `accumulate` does, [DeBrabanter2010]_, algorithm 4, with blocks of about 10^8 kernel values
    and torch's products in place (of the gram only panels on and above the diagonal: n m^2
    operations and little more). Where a block does not fit, blocks are halved and the pass goes on.
    Memory m^2 per cell and three blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm._core.arrays import Device
    >>> from lssvm._core.arrays import get_namespace
    >>> from lssvm.backends.device import DeviceBlocks
    >>> from lssvm.kernels import Linear
    >>> from lssvm.backends.device import accumulate_on_device
    >>> X = np.arange(8.0).reshape(4, 2)
    >>> rows = DeviceBlocks(Device(get_namespace(X), "cpu"), X, {"Y": X[:, :1]})
    >>> cells = [slice(0, 2), slice(2, 4)]
    >>> folds = accumulate_on_device(Linear(), rows, np.eye(2), None, cells, n_targets=1)
    >>> folds[1].plain().gram
    array([[52., 62.],
           [62., 74.]])
    """
    engine, m = rows.engine, len(Z)
    require(
        8 * m * (m + n_targets + 1) * (len(cells) + 1),
        engine.free_bytes(),
        what=f"The moments of {m} prototypes in {len(cells)} cells (folds and classes)",
        advice="Lower n_prototypes, use fewer folds or multiclass='ova', or solver='pcg'.",
    )
    wanted = ("Y", "weight") if n_targets else ("weight",)
    names = [name for name in wanted if name in rows.columns]
    on_device = engine.put(np.asarray(Z, dtype=np.float64))
    shift, values = device_shift(engine, kernel, on_device), kernel.against(on_device)
    sums = [_Sums(engine, m, n_targets) for _ in cells]
    blocks = Halving(engine, block_size(engine, m))
    for number, block in rows.blocks(order, cells, names):

        def work(part: slice, into: _Sums = sums[number], block: Named = block) -> None:
            into.add(*_weighted(engine, values(block["X"][part, ...]), shift, block, part))

        blocks.run(work, int(block["X"].shape[0]))
    return [
        one.moments(cell.stop - cell.start, shift) for one, cell in zip(sums, cells, strict=True)
    ]


def device_shift(engine: Device, kernel: Kernel, Z: Array) -> Array | None:
    """Return what is subtracted from the kernel values, as `accumulate` does."""
    xp, m = engine.xp, int(Z.shape[0])
    values, total = kernel.against(Z), engine.zeros(m)
    blocks = Halving(engine, block_size(engine, m))

    def work(part: slice) -> None:
        nonlocal total
        total = total + xp.sum(values(Z[part, ...]), axis=0)

    blocks.run(work, m)
    mean = total / m
    diagonal = float(xp.mean(kernel.diag(Z)))
    return mean if float(xp.mean(mean)) > 0.25 * diagonal else None


def _weighted(
    engine: Device, K: Array, shift: Array | None, block: Named, part: slice
) -> tuple[Array, Array]:
    """Return kernel values and [Y, 1], each row times the root of its weight."""
    xp = engine.xp
    one = xp.ones((K.shape[0], 1), dtype=K.dtype, device=engine.device)
    Y = one
    if "Y" in block:
        Y = xp.concat([xp.astype(block["Y"][part, ...], K.dtype, copy=False), one], axis=1)
    if shift is not None:
        K -= shift
    if "weight" in block:
        root = xp.sqrt(block["weight"][part])[:, None]
        K *= root
        Y = Y * root
    return K, Y


class _Sums:
    """Sums over rows of K^T K, K^T [Y, 1] and [Y, 1]^T [Y, 1]."""

    def __init__(self, engine: Device, m: int, k: int) -> None:
        self.engine = engine
        self.gram = engine.zeros(m, m)
        self.side = engine.zeros(m, k + 1)
        self.corner = engine.zeros(k + 1, k + 1)
        width = max(512, -(-m // (128 * _PANELS)) * 128)
        self.panels = slices(m, width) if engine.is_torch else []

    def add(self, K: Array, Y: Array) -> None:
        """Add the rows of a block."""
        xp = self.engine.xp
        if not self.engine.is_torch:
            transposed = xp.permute_dims(K, (1, 0))
            self.gram, self.side, self.corner = (
                self.gram + xp.matmul(transposed, K),
                self.side + xp.matmul(transposed, Y),
                self.corner + xp.matmul(xp.permute_dims(Y, (1, 0)), Y),
            )
            return
        for part in self.panels:
            self.gram[part, part.start :].addmm_(K[:, part].T, K[:, part.start :])
        self.side.addmm_(K.T, Y)  # [DeBrabanter2010, eq. (23)]
        self.corner.addmm_(Y.T, Y)

    def moments(self, n: int, shift: Array | None) -> Moments:
        """Return the sums as moments; the gram is mirrored in place."""
        for part in self.panels:
            self.gram[part.stop :, part] = self.gram[part, part.stop :].T
        return Moments.of_sums(self.gram, self.side, self.corner, n, shift)


@dataclass(frozen=True, eq=False)
class Torch:
    """A device of torch, or of any other array-API namespace.

    Rows are kept there where they fit, else copied in blocks.

    Parameters
    ----------
    device : Device
        What computes.
    threads : int, default=1
        Threads of the host.
    """

    device: Device
    threads: int = 1
    prefers_moments: ClassVar[bool] = True  # products are what a device is good at

    @property
    def budget(self) -> int:
        """Bytes that may be used on the device."""
        free = self.device.free_bytes()
        return int(0.7 * free) if self.device.limit is None else free

    def has_room(self, n_bytes: int) -> bool:
        """Return whether so much memory of the device is free."""
        return self.device.free_bytes() >= n_bytes

    def check(
        self,
        loss: str = "squared",
        criterion: str | None = None,
        *,
        kernel: Kernel | None = None,
        leaves_out: bool = False,
        sparse: bool = False,
        features: bool = False,
    ) -> None:
        """Refuse what is computed on the host alone."""
        if features:
            raise InvalidInputError(
                "solver='features' is not available on a device: use device=None, or solver='auto'."
            )
        if sparse:
            raise InvalidInputError(
                "X is sparse, and a device needs dense rows: use device=None, or give X.toarray()."
            )
        if kernel is not None:
            check_device_kernel(kernel)
        if loss != "squared" or criterion is not None:
            raise InvalidInputError(
                f"loss={loss!r} with scoring={criterion!r} is not available on a device: give "
                "loss='squared' and scoring=None or a scorer, or device=None."
            )
        if leaves_out:
            raise InvalidInputError(
                "Leaving out single rows is not available on a device: give cv=10 or another "
                "number of folds of several rows, or device=None."
            )

    def check_data(self, data: Dataset, *, added: bool = False) -> None:
        """Refuse rows on a cluster, and rows that are added from a scan."""
        if data.distributed:
            raise InvalidInputError(
                f"device={str(self.device.device)!r} is not available for rows on a cluster: use "
                "device=None."
            )
        if added:
            raise InvalidInputError(
                f"device={str(self.device.device)!r} is not available for rows that are added from "
                "a scan: give arrays, or set_params(device=None)."
            )

    def sample_size(self, data: Dataset, size: int, budget: int) -> int:
        """Return all rows, which are loaded from main memory."""
        n, columns = max(1, data.n_rows), len(data.schema.names)
        require(
            8 * n * (columns + 2),
            budget,
            what=f"The {n:,} rows of a scan, which a device takes from main memory,",
            advice="Use device=None, which reads them in blocks, or raise memory_budget.",
        )
        return n

    def is_cheap(self, operations: float) -> bool:
        """Return False: nothing is tried there unrequested."""
        return False

    def native(self, X: Any) -> Array | None:
        """Return rows that are arrays of another library than NumPy."""
        return X if is_foreign(X) else None

    def put(self, array: Any) -> Array:
        """Return the numbers on the device."""
        return self.device.put(np.asarray(array, dtype=np.float64))

    def load(self, X: Any, columns: dict[str, Any]) -> DeviceBlocks:
        """Return the rows as blocks on the device."""
        return DeviceBlocks(self.device, X, columns)

    def content(self, data: DeviceBlocks) -> Array | None:
        """Return the features on the device, where they are kept there and torch can hash them."""
        kept = data.kept if self.device.is_torch else None
        return None if kept is None else kept["X"]

    def moments(
        self, kernel: Kernel, data: DeviceBlocks, Z: FloatArray, layout: Cells, n_targets: int
    ) -> list[Moments]:
        """Return the moments of cells, in one pass on the device."""
        check_device_kernel(kernel)
        cells = (layout.order, layout.cells)
        return accumulate_on_device(kernel, data, Z, *cells, n_targets=n_targets)

    def outputs(
        self, kernel: Kernel, X: Any, Z: FloatArray, coef: FloatArray, intercept: FloatArray
    ) -> FloatArray:
        """Return K(X, Z) coef + intercept as an array of NumPy, computed on the device."""
        kept = [np.empty((0, coef.shape[1]))]

        def keep(outputs: Array, block: Named) -> None:
            kept.append(to_numpy(outputs[:, 0, :]))

        blocks = DeviceBlocks(self.device, X, {}).in_order()
        use_outputs(kernel, self.device, blocks, Z, coef[None], intercept[None], keep)
        return np.concatenate(kept)

    def fold_outputs(
        self,
        data: DeviceBlocks,
        held_out: FoldModels,
        columns: tuple[str, ...],
        use: Callable[[int, IntArray, Array, Named], Result],
    ) -> Iterator[tuple[int, Result]]:
        """Yield what ``use`` makes of blocks of the test rows of every fold, read forwards."""
        kernel, Z, models, folds = held_out
        assert isinstance(folds, Folds)
        xp = self.device.xp
        for v, (model, rows) in enumerate(zip(models, folds.test, strict=True)):
            order = np.argsort(rows, kind="stable")
            results: list[Result] = []
            done = 0

            def block_use(
                outputs: Array,
                block: Named,
                v: int = v,
                order: IntArray = order,
                results: list[Result] = results,
            ) -> None:
                nonlocal done
                at = order[done : done + int(outputs.shape[0])]
                results.append(use(v, at, xp.permute_dims(outputs, (1, 0, 2)), block))
                done += len(at)

            blocks = data.in_order(rows[order], columns)
            use_outputs(kernel, self.device, blocks, Z, *model, block_use)
            yield from ((v, result) for result in results)

    def row_blocks(self, data: DeviceBlocks, columns: tuple[str, ...]) -> Iterator[Named]:
        """Yield all rows in their order, with those of the named columns that there are."""
        return data.in_order(None, columns)


Backend: TypeAlias = Host | Torch
"""What computes with rows; both classes have the same members."""
