"""One pass over the rows on a device of any array library: the moments of every cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import IntArray
from lssvm._core.device import Device, Halving
from lssvm._core.memory import require
from lssvm._core.namespace import Array
from lssvm._core.threads import slices
from lssvm.engines.device_blocks import DeviceBlocks, Named
from lssvm.engines.device_expansion import block_size
from lssvm.kernels import Kernel
from lssvm.moments.moments import Moments

_PANELS = 8  # the gram is computed in so many panels of columns, from the diagonal on


def accumulate_on_device(
    kernel: Kernel,
    rows: DeviceBlocks,
    Z: NDArray[Any],
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
    >>> from lssvm._core.device import Device
    >>> from lssvm._core.namespace import get_namespace
    >>> from lssvm.engines.device_blocks import DeviceBlocks
    >>> from lssvm.kernels import Linear
    >>> from lssvm.engines.device_moments import accumulate_on_device
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
