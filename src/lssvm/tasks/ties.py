"""Scores that differ by rounding alone are tied."""

from __future__ import annotations

import numpy as np

from lssvm._core.arrays import FloatArray

SAME = 1e-9
"""Scores that differ by less than this part of the largest are the same, but for rounding."""


def tie_scores(scores: FloatArray) -> FloatArray:
    """Return scores of which those that differ by rounding alone are equal.

    Equal rows get the same score, but for the last digits, which depend on where a row stands and
    on its own target: whatever ranks rows must not see them.

    Parameters
    ----------
    scores : array of shape (n,) or (n, k)
        Columns are judged by themselves; what is not finite stays as it is.

    Returns
    -------
    array of the same shape
        In ascending order a score begins another value where it is more than 1e-9 of the largest
        absolute one above the last; scores of a value become the smallest of them.

    Notes
    -----
    O(n log n) time for each column.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tasks.ties import tie_scores
    >>> len(np.unique(tie_scores(np.array([0.1 + 0.2, 0.3, 0.7]))))
    2
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 2:
        return np.column_stack([tie_scores(column) for column in values.T])
    good = np.flatnonzero(np.isfinite(values))
    if len(good) < 2:
        return values
    order = good[np.argsort(values[good], kind="stable")]
    ordered = values[order]
    least = SAME * max(abs(ordered[0]), abs(ordered[-1]))
    starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > least)
    if len(starts) == len(order):
        return values
    out = values.copy()
    out[order] = np.repeat(ordered[starts], np.diff(starts, append=len(order)))
    return out
