"""The variance of the noise, from rows that are near each other."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.namespace import Array, is_sparse, to_numpy

_FLOOR = 1e-12  # of the variance of the targets


def noise_variance(X: Array, Y: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Estimate the variance of the noise of each output, without a model.

    Half the mean squared difference between the target of a row and that of its nearest neighbour:
    where the function changes little between neighbours this is the variance of the noise. In many
    dimensions neighbours are far and it is too large; it is at most twice the
    variance of the targets.

    Parameters
    ----------
    X : array of shape (n, d)
    Y : array of shape (n, k)
    weight : array of shape (n,) or None, default=None

    Returns
    -------
    array of shape (k,)

    Notes
    -----
    O(n log n) time in few dimensions, O(n) memory. Equal rows are one row with their mean
    target; what their targets differ by adds to the estimate. A model-free estimate is
    needed because R(K) compares models: noise estimated from each model's own residuals would
    reward models that fit badly or too well.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import noise_variance
    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 6, 2000)[:, None]
    >>> Y = np.sin(X) + 0.1 * rng.standard_normal(X.shape)
    >>> bool(abs(noise_variance(X, Y)[0] - 0.01) < 1e-3)
    True
    """
    if is_sparse(X):
        raise InvalidInputError(
            "scoring='rk' estimates the noise from nearest neighbours, which needs dense rows, but "
            "X is sparse: convert it with X.toarray(), or use another scoring."
        )
    rows, group = np.unique(to_numpy(X), axis=0, return_inverse=True)
    s = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
    mass = np.bincount(group.ravel(), s)
    mean = np.stack([np.bincount(group.ravel(), s * y) for y in Y.T], 1) / mass[:, None]
    within = s @ (Y - mean[group.ravel()]) ** 2  # what equal rows differ by
    spread = s @ (Y - s @ Y / s.sum()) ** 2 / s.sum()
    total = mass.sum()
    if len(rows) == 1:
        return np.asarray(np.maximum(within / total, _FLOOR * spread))
    near = np.asarray(cKDTree(rows).query(rows, k=2)[1])
    other = np.where(near[:, 0] == np.arange(len(rows)), near[:, 1], near[:, 0])
    # A mean over m rows has the variance 1/m: differences are weighed by what they tell.
    tells = 1.0 / (1.0 / mass + 1.0 / mass[other])
    differences = tells @ (mean - mean[other]) ** 2 / len(rows)
    repeated = max(total - len(rows), 0.0)
    variance = (within + len(rows) * differences) / (repeated + len(rows))
    return np.asarray(np.maximum(variance, _FLOOR * spread))
