"""Distances between rows, computed once and used for many widths of a kernel."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist

from lssvm._core.arrays import BoolArray, FloatArray
from lssvm._core.blocks import run_blocks, slices
from lssvm._core.errors import not_known

Distance: TypeAlias = Literal["sqeuclidean", "euclidean", "cityblock"]

DISTANCES: tuple[Distance, ...] = ("sqeuclidean", "euclidean", "cityblock")
"""Squared Euclidean, Euclidean, and the sum of absolute differences."""

_CLOSE = 1e-6  # squared distances below this share of the squared norms are computed anew
_FILLED = 256  # rows of a block


def distances(X: FloatArray, Z: FloatArray, kind: Distance) -> FloatArray:
    """Return the distances between two sets of rows.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows.
    Z : array of shape (m, d)
        Other rows.
    kind : {"sqeuclidean", "euclidean", "cityblock"}
        Squared Euclidean, Euclidean, or the sum of absolute differences.

    Returns
    -------
    array of shape (n, m)

    Notes
    -----
    Euclidean ones are one matrix product of n m d multiplications, with rows centred on the mean of
    ``Z``; pairs that lie so close that rounding would show are computed anew by differences. In the
    sum of absolute differences a column of two values a and b needs no absolute value, since there
    :math:`|x - z| = (x - z)^2 / |a - b|`: such columns (the levels of a category) go through the
    matrix product too, ten times as fast. No temporary of n m d numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import distances
    >>> distances(np.zeros((1, 2)), np.array([[3.0, 4.0]]), "euclidean")
    array([[5.]])
    >>> distances(np.zeros((1, 2)), np.array([[3.0, 4.0]]), "cityblock")
    array([[7.]])
    """
    if kind == "cityblock":
        return _cityblock(X, Z)
    if kind not in DISTANCES:
        raise not_known("distance", kind, f"choose one of {DISTANCES}.")
    D = _squares(X, Z)
    return np.sqrt(D, out=D) if kind == "euclidean" else D


def _squares(X: FloatArray, Z: FloatArray) -> FloatArray:
    """Return the squared Euclidean distances (n, m)."""
    centre = Z.mean(axis=0) if len(Z) else np.zeros(Z.shape[1])
    X, Z = X - centre, Z - centre
    xx, zz = np.einsum("ij,ij->i", X, X), np.einsum("ij,ij->i", Z, Z)
    D = X @ (-2.0 * Z.T)
    D += xx[:, None]
    D += zz
    if D.size:
        near = np.flatnonzero(D < _CLOSE * (xx.max() + zz.max()))
        i, j = np.divmod(near, D.shape[1])
        close = D[i, j] < _CLOSE * (xx[i] + zz[j])
        i, j = i[close], j[close]
        for part in slices(len(i), 2**16):
            gap = X[i[part]] - Z[j[part]]
            D[i[part], j[part]] = np.einsum("ij,ij->i", gap, gap)
    return np.asarray(D)


def two_valued(X: FloatArray, Z: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Return which columns hold two values in both sets of rows, and how far apart they are.

    Parameters
    ----------
    X : array of shape (n, d)
    Z : array of shape (m, d)

    Returns
    -------
    tuple of (bool array (d,), array (d,))

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels.distances import two_valued
    >>> columns, gap = two_valued(np.array([[0.0, 1.0], [2.0, 5.0]]), np.array([[2.0, 3.0]]))
    >>> columns, gap[0]
    (array([ True, False]), np.float64(2.0))
    """
    d = X.shape[1]
    if not len(X) or not len(Z):
        return np.zeros(d, dtype=bool), np.ones(d)
    low = np.minimum(X.min(axis=0), Z.min(axis=0))
    high = np.maximum(X.max(axis=0), Z.max(axis=0))
    few = [all(np.isin(A[:, j], (low[j], high[j])).all() for A in (X, Z)) for j in range(d)]
    return np.array(few, dtype=bool), np.where(high > low, high - low, 1.0)


def _cityblock(X: FloatArray, Z: FloatArray) -> FloatArray:
    """Return the sums of absolute differences (n, m)."""
    few, gap = two_valued(X, Z)
    if few.sum() < 4:
        return np.asarray(cdist(X, Z, "cityblock"))
    factor = 1.0 / np.sqrt(gap[few])
    A, B = X[:, few] * factor, Z[:, few] * factor
    D = A @ (-2.0 * B.T)
    D += np.einsum("ij,ij->i", A, A)[:, None]
    D += np.einsum("ij,ij->i", B, B)
    np.maximum(D, 0.0, out=D)
    # Rounding of equal rows is taken away: sums of the gaps are no smaller than the least gap.
    D[D < 1e-9 * gap[few].min()] = 0.0
    if not few.all():
        D += cdist(X[:, ~few], Z[:, ~few], "cityblock")
    return np.asarray(D)


def fill_distances(
    X: FloatArray, kind: Distance, out: FloatArray, *, threads: int = 1
) -> FloatArray:
    """Write the distances of all pairs of rows into a symmetric matrix; return it.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows.
    kind : {"sqeuclidean", "euclidean", "cityblock"}
        As for `distances`.
    out : array of shape (n, n), float32 or float64
        Overwritten.
    threads : int, default=1
        How many threads compute.

    Returns
    -------
    array of shape (n, n)
        ``out``.

    Notes
    -----
    Blocks on and below the diagonal are computed, the others mirrored. Distances are computed in
    float64 and rounded to the type of ``out``: float32 keeps seven digits of every distance, where
    the matrix product itself in float32 would lose those of near rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import fill_distances
    >>> fill_distances(np.array([[0.0], [3.0]]), "cityblock", np.empty((2, 2), np.float32))
    array([[0., 3.],
           [3., 0.]], dtype=float32)
    """

    def fill(block: slice) -> None:
        values = distances(X[block], X[: block.stop], kind)
        out[block, : block.stop] = values
        out[: block.start, block] = values[:, : block.start].T

    run_blocks(fill, slices(len(X), _FILLED), threads)
    np.fill_diagonal(out, 0.0)
    return out
