"""Kernel expansions evaluated on a device, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.device import Device, Halving
from lssvm._core.errors import InvalidInputError
from lssvm._core.namespace import Array, to_numpy
from lssvm.engines.device_blocks import DeviceBlocks, Named
from lssvm.kernels.base import Kernel
from lssvm.kernels.given import FunctionKernel, Precomputed

_ENTRIES = 2**27  # numbers of a block
_SHARE = 0.2  # part of the free memory that a block may take


def check_device_kernel(kernel: Kernel) -> None:
    """Raise for kernels that are not written for other arrays than NumPy's.

    Examples
    --------
    >>> from lssvm.kernels import RBF
    >>> from lssvm.engines.device_expansion import check_device_kernel
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
    >>> from lssvm._core.device import Device
    >>> from lssvm._core.namespace import get_namespace
    >>> from lssvm.engines.device_blocks import DeviceBlocks
    >>> from lssvm.kernels import Linear
    >>> from lssvm.engines.device_expansion import use_outputs
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


def expand_on_device(
    engine: Device, kernel: Kernel, X: Any, Z: FloatArray, coef: FloatArray, intercept: FloatArray
) -> FloatArray:
    """Return K(X, Z) coef + intercept as a NumPy array, computed on a device.

    Parameters
    ----------
    engine : Device
    kernel : Kernel
    X : array of shape (n, d)
        On the host or on the device.
    Z : array of shape (m, d)
    coef : array of shape (m, k)
    intercept : array of shape (k,)

    Returns
    -------
    array of shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm._core.device import Device
    >>> from lssvm._core.namespace import get_namespace
    >>> from lssvm.kernels import Linear
    >>> from lssvm.engines.device_expansion import expand_on_device
    >>> X = np.eye(2)
    >>> engine = Device(get_namespace(X), "cpu")
    >>> expand_on_device(engine, Linear(), X, X, np.ones((2, 1)), np.ones(1))
    array([[2.],
           [2.]])
    """
    kept = [np.empty((0, coef.shape[1]))]

    def keep(outputs: Array, block: Named) -> None:
        kept.append(to_numpy(outputs[:, 0, :]))

    blocks = DeviceBlocks(engine, X, {}).in_order()
    use_outputs(kernel, engine, blocks, Z, coef[None], intercept[None], keep)
    return np.concatenate(kept)
