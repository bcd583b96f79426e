"""Leave-one-out predictions of the fixed-size model in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.namespace import float_rows
from lssvm._core.threads import run_blocks, slices
from lssvm.kernels import Kernel
from lssvm.moments import Moments, NystromMap
from lssvm.solvers.primal import primal_system

_BLOCK = 1024


def leave_out_predictions(
    kernel: Kernel,
    X: NDArray[Any],
    Y: FloatArray,
    Z: NDArray[Any],
    folds: Sequence[IntArray],
    moments: Moments,
    map: NystromMap,
    C: FloatArray,
    weight: FloatArray | None,
    *,
    threads: int = 1,
) -> FloatArray:
    r"""Return what every row would be predicted by a model trained without its fold.

    Parameters
    ----------
    kernel : Kernel
    X, Y : arrays of shape (n, d) and (n, k)
    Z : array of shape (m, d)
        Prototypes.
    folds : sequence of int arrays
        They partition the rows; the rows of a fold have equal features.
    moments : Moments
        Of all rows.
    map : NystromMap
    C : array of shape (c,)
    weight : array of shape (n,) or None
        Rows of weight zero took no part in the training.
    threads : int, default=1

    Returns
    -------
    array of shape (c, n, k)

    Notes
    -----
    A fold of equal rows is one row of weight :math:`s` and target :math:`\bar y`. Its prediction
    p with the fold in the training set becomes :math:`\bar y - (\bar y - p) / (1 - s h)` without
    it, :math:`h = 1/S + \tilde\varphi^T (A + I/C)^{-1} \tilde\varphi` with the centred feature
    :math:`\tilde\varphi` and S the total weight ([Cawley2004]_). The prototypes are not left out:
    they only say where basis functions are.

    One eigendecomposition of A and one pass of n m (2 r + 2 c + 2 c k) operations; memory c n k
    numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import nystrom_map
    >>> from lssvm.kernels import Linear
    >>> from lssvm.moments import Moments
    >>> from lssvm.solvers.leave_out import leave_out_predictions
    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> out = leave_out_predictions(Linear(), x, x, np.eye(1), [np.array([i]) for i in range(3)],
    ...                             Moments.of(x, x), nystrom_map(Linear(), np.eye(1)),
    ...                             np.array([1e9]), None)
    >>> out.ravel().round(4)
    array([0., 1., 2.])
    """
    n, k = Y.shape
    system = primal_system(moments, map)
    lam, QB, Q = system.spectrum()
    d = 1.0 / (lam[:, None] + 1.0 / np.asarray(C, dtype=np.float64)[None, :])  # (r, c)
    W = (d[:, :, None] * QB[:, None]).reshape(len(lam), -1)  # (r, c k)
    rotation = map.T @ Q  # (m, r): centred kernel values to rotated features
    Z = float_rows(Z)
    fitted, hat = np.empty((len(C), n, k)), np.empty((len(C), n))

    def fill(part: slice) -> None:
        K = np.asarray(kernel(float_rows(X[part]), Z)) - system.mean
        P = K @ rotation
        values = (P @ W).reshape(-1, len(C), k) + system.target_mean
        fitted[:, part] = np.moveaxis(values, 1, 0)
        hat[:, part] = (np.square(P) @ d).T + 1.0 / moments.weight

    run_blocks(fill, slices(n, _BLOCK), threads)
    s = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    fold_of = np.empty(n, dtype=np.intp)
    fold_of[np.concatenate(folds)] = np.repeat(np.arange(len(folds)), [len(f) for f in folds])
    mass = np.bincount(fold_of, s)  # weight of each fold
    sums = np.stack([np.bincount(fold_of, s * Y[:, j]) for j in range(k)], 1)
    mean = (sums / np.where(mass > 0, mass, 1.0)[:, None])[fold_of]
    left = 1.0 - mass[fold_of] * hat  # (c, n)
    left = np.where(left > 1e-12, left, np.nan)  # nothing would be left to learn from
    return np.asarray(mean - (mean - fitted) / left[:, :, None])  # [Cawley2004]
