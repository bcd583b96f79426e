"""Probabilities of classes from those of pairs, and their agreement with a decision."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray
from lssvm._core.threads import slices

TILT = 1e-9
"""What the decided class gets over its equals."""


def couple_pairs(pairs: FloatArray) -> FloatArray:
    r"""Return class probabilities that fit the probabilities of all pairs best.

    Parameters
    ----------
    pairs : array of shape (n, K, K)
        ``pairs[:, i, j]`` estimates P(class i given class i or j); the diagonal is not read, and
        ``pairs[:, j, i] = 1 - pairs[:, i, j]``.

    Returns
    -------
    array of shape (n, K)

    Notes
    -----
    Minimises :math:`\sum_i \sum_{j \ne i} (r_{ji} p_i - r_{ij} p_j)^2` subject to
    :math:`\sum_i p_i = 1`, the second method of [Wu2004]_: one linear system of K + 1 equations per
    row, whose solution is not negative. The printed algorithm iterates; here it is solved directly,
    all rows at once. O(n K^3) time.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.uncertainty import couple_pairs
    >>> p = np.array([0.6, 0.3, 0.1])
    >>> couple_pairs((p[:, None] / (p[:, None] + p[None, :]))[None]).round(6)
    array([[0.6, 0.3, 0.1]])
    """
    n, K, _ = pairs.shape
    out = np.empty((n, K))
    for part in slices(n, max(1, 2_000_000 // (K + 1) ** 2)):
        r = np.array(pairs[part])
        r[:, np.arange(K), np.arange(K)] = 0.0
        Q = np.empty((len(r), K + 1, K + 1))
        Q[:, :K, :K] = -np.swapaxes(r, 1, 2) * r  # [Wu2004], the second method
        Q[:, np.arange(K), np.arange(K)] = np.sum(np.swapaxes(r, 1, 2) ** 2, axis=2)
        Q[:, K, :K] = Q[:, :K, K] = 1.0
        Q[:, K, K] = 0.0
        right = np.zeros((len(r), K + 1, 1))
        right[:, K] = 1.0
        p = np.maximum(np.linalg.solve(Q, right)[:, :K, 0], 0.0)
        out[part] = p / p.sum(axis=1, keepdims=True)
    return out


def agree_with(probabilities: FloatArray, decided: NDArray[np.intp]) -> FloatArray:
    r"""Return the nearest probabilities whose largest belongs to the decided class.

    Parameters
    ----------
    probabilities : array of shape (n, K)
        Rows sum to one.
    decided : int array of shape (n,)

    Returns
    -------
    array of shape (n, K)
        Rows sum to one; the first argmax of every row is ``decided``.

    Notes
    -----
    Rows that agree are left alone. In the others the decided class and those above it share
    their mean: the Euclidean projection onto the vectors whose entry ``decided`` is a largest one,
    then 1e-9 for the decided class to break the tie. O(n K log K) time.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.uncertainty import agree_with
    >>> agree_with(np.array([[0.2, 0.5, 0.3]]), np.array([2])).round(3)
    array([[0.2, 0.4, 0.4]])
    """
    out = np.array(probabilities, dtype=np.float64)
    wrong = np.flatnonzero(np.argmax(out, axis=1) != decided)
    if len(wrong) == 0:
        return out
    p, d = out[wrong], decided[wrong]
    rows = np.arange(len(wrong))
    own = p[rows, d]
    others = p.copy()
    others[rows, d] = -np.inf
    largest = np.sort(others, axis=1)[:, ::-1][:, :-1]  # the others, largest first
    counts = np.arange(2, p.shape[1] + 1)
    level = np.max((own[:, None] + np.cumsum(largest, axis=1)) / counts, axis=1)
    p = np.minimum(p, level[:, None])
    p[rows, d] = level
    p *= (1.0 - TILT) / p.sum(axis=1, keepdims=True)
    p[rows, d] += TILT
    out[wrong] = p
    return out
