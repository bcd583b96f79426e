"""A kernel expansion sum_j coef_j K(x, z_j) + b, evaluated in blocks."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.memory import block_rows
from lssvm._core.namespace import Array, is_numpy
from lssvm._core.threads import run_blocks, slices
from lssvm.kernels.base import Kernel

_ENTRIES = 2**19  # kernel values of a block, where rows are not NumPy's
_NEAR_VALUES, _NEAR_ROWS = 2**15, 2**17  # numbers of a block that are still near when read again


def _rows_at_once(m: int, d: int) -> int:
    """Return the rows of a block, so that neither they nor their kernel values leave the cache."""
    return int(np.clip(min(_NEAR_VALUES // max(m, 1), _NEAR_ROWS // (d + 2)), 256, 4096))


def evaluate_expansion(
    kernel: Kernel,
    X: Array,
    Z: Array,
    coef: NDArray[Any],
    intercept: NDArray[Any],
    *,
    budget: int,
    threads: int,
) -> NDArray[Any]:
    """Return K(X, Z) coef + intercept.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d)
    Z : array of shape (m, d)
    coef : array of shape (m, k)
    intercept : array of shape (k,)
    budget : int
        Memory budget in bytes for the blocks of K.
    threads : int

    Returns
    -------
    array of shape (n, k)

    Notes
    -----
    n m (d + k) operations; the n x m kernel matrix is never stored.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear, evaluate_expansion
    >>> evaluate_expansion(Linear(), np.eye(2), np.eye(2), np.ones((2, 1)), np.ones(1),
    ...                    budget=10**6, threads=1)
    array([[2.],
           [2.]])
    """
    n, m = X.shape[0], coef.shape[0]
    out = np.empty((n, coef.shape[1]), dtype=coef.dtype)
    most = _rows_at_once(m, X.shape[1]) if is_numpy(X) else max(256, _ENTRIES // max(m, 1))
    rows = block_rows(3 * m * coef.itemsize * threads, budget, n_rows=max(n, 1), at_most=most)
    if threads > 1:
        rows = max(1, min(rows, -(-n // threads)))

    values, local = kernel.against(Z), threading.local()
    kind = np.result_type(X.dtype, Z.dtype) if is_numpy(X) and is_numpy(Z) else None

    def fill(part: slice) -> None:
        if kind is not None and not hasattr(local, "room"):  # fresh pages for every block cost time
            local.room = np.empty((rows, m), dtype=kind)
        room = None if kind is None else local.room[: part.stop - part.start]
        np.matmul(np.asarray(values(X[part], room)), coef, out=out[part])

    run_blocks(fill, slices(n, rows), threads)
    out += intercept
    return out
