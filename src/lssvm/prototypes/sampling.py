"""Rows at random: distinct contents, weights, shares of classes, orders with usable prefixes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.data.folds import hash_rows

Keys = npt.NDArray[np.uint64]


def as_rows(X: npt.ArrayLike) -> FloatArray:
    """Return X as a two-dimensional array of floats (float32 and float64 are kept)."""
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.size == 0:
        raise InvalidInputError(
            f"X has shape {rows.shape}; a non-empty two-dimensional array (rows, features) is "
            "needed, so reshape a single feature with X.reshape(-1, 1)."
        )
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    return rows


def random_order(
    n: int, size: int, rng: np.random.Generator, weight: FloatArray | None
) -> IntArray:
    """Draw ``size`` of n rows without replacement, one after the other, weights as probabilities.

    Rows of weight 0 are never drawn. With weights, exponential variables divided by the weights
    are sorted. Time and memory O(n); O(size) without weights where size is below n / 50.
    """
    if weight is None:
        return rng.choice(n, min(size, n), replace=False).astype(np.intp, copy=False)
    positive = np.flatnonzero(weight > 0.0)
    wait = rng.standard_exponential(positive.size) / weight[positive]
    if size < positive.size:
        nearest = np.argpartition(wait, size)[:size]
        positive, wait = positive[nearest], wait[nearest]
    return positive[np.argsort(wait)]


def draw_distinct(
    X: FloatArray,
    size: int,
    rng: np.random.Generator,
    weight: FloatArray | None = None,
    rows: IntArray | None = None,
    taken: Keys | None = None,
) -> IntArray:
    """Draw rows with different contents at random, in random order.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows.
    size : int
        How many to draw; fewer come back if there are not enough different ones.
    rng : numpy.random.Generator
        Source of randomness.
    weight : ndarray of shape (n,), optional
        Rows are drawn one after the other with probabilities proportional to these.
    rows : ndarray of int, optional
        Draw among these only.
    taken : ndarray of uint64, optional
        Keys of contents that may not be drawn.

    Notes
    -----
    Time O(n) at most (`random_order`), O(n d) where duplicates exhaust a first try of 2 size rows.
    """
    n = X.shape[0] if rows is None else rows.size
    own = weight if weight is None or rows is None else weight[rows]
    for tried in (min(2 * size, n), n):
        order = random_order(n, tried, rng, own)
        drawn = order if rows is None else rows[order]
        keys = hash_rows(X[drawn])
        first = np.sort(np.unique(keys, return_index=True)[1])
        if taken is not None:
            first = first[~np.isin(keys[first], taken)]
        drawn = drawn[first]
        if drawn.size >= size or tried == n:
            break
    return drawn[:size]


def class_quotas(weights: FloatArray, size: int, limits: IntArray) -> IntArray:
    """Share ``size`` places among classes in proportion to their weights.

    Parameters
    ----------
    weights : ndarray of shape (k,)
        Weight of each class.
    size : int
        Places. Fewer are given out only if the limits do not allow more.
    limits : ndarray of shape (k,)
        The most a class can take; a class that can take one gets at least one, unless there are
        fewer places than such classes: then the heaviest classes get one each.

    Returns
    -------
    ndarray of int, shape (k,)

    Notes
    -----
    Shares are clipped to [1, limit] and scaled until they add up; fractions are settled by the
    largest remainder (the first of equal ones).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.prototypes.sampling import class_quotas
    >>> class_quotas(np.array([900.0, 95.0, 5.0]), 20, np.array([900, 95, 5])).tolist()
    [17, 2, 1]
    """
    if limits.sum() <= size:
        return limits.copy()
    least = np.minimum(limits, 1)
    if least.sum() >= size:
        quotas = np.zeros_like(limits)
        quotas[np.argsort(-np.where(least > 0, weights, -1.0), kind="stable")[:size]] = 1
        return quotas
    low, high = 0.0, float(limits.max() / weights[limits > 0].min())
    for _ in range(200):  # bisection to the last bit
        factor = 0.5 * (low + high)
        if np.clip(factor * weights, least, limits).sum() < size:
            low = factor
        else:
            high = factor
    shares = np.clip(high * weights, least, limits)
    quotas = np.floor(shares + 1e-9).astype(np.intp)
    remainder = np.where(quotas < limits, shares - quotas, -1.0)
    quotas[np.argsort(-remainder, kind="stable")[: size - int(quotas.sum())]] += 1
    return quotas


def interleaved(parts: list[IntArray]) -> IntArray:
    """Return the rows of all classes in the order of `interleave`."""
    sequence = interleave(np.array([part.size for part in parts], dtype=np.intp))
    rows = np.empty(sequence.size, dtype=np.intp)
    for c, part in enumerate(parts):
        rows[sequence == c] = part
    return rows


def interleave(quotas: IntArray) -> IntArray:
    """Order places so that every prefix shares them about as the whole does.

    Returns
    -------
    ndarray of int, shape (sum of quotas,)
        The class of each place. Every class comes once before any comes twice.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.prototypes.sampling import interleave
    >>> interleave(np.array([4, 2, 1])).tolist()
    [0, 1, 2, 0, 0, 1, 0]
    """
    classes = np.repeat(np.arange(quotas.size), quotas)
    nth = np.concatenate([np.arange(q) for q in quotas]) if quotas.size else classes
    due = np.where(nth == 0, -1.0, (nth + 0.5) / np.maximum(quotas[classes], 1))
    return classes[np.lexsort((-quotas[classes], due))]
