"""Shapley values of any function of rows: all coalitions where they are few, else permutations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.threads import slices

Mixed: TypeAlias = Callable[[IntArray, IntArray, BoolArray], FloatArray]
"""From rows (N,), background rows (N,) and present columns (N, p) to outputs (N, k)."""

_BATCH = 16_384  # rows that are evaluated at a time


@dataclass(frozen=True, eq=False)
class SampledValues:
    """Means over background rows, with their standard errors.

    Attributes
    ----------
    values : array of shape (n, p, k)
    errors : array of shape (n, p, k)
        Standard errors of the values; zeros where all coalitions were evaluated.

    Examples
    --------
    >>> from lssvm.explanations.sampling import SampledValues
    >>> list(SampledValues.__dataclass_fields__)
    ['values', 'errors']
    """

    values: FloatArray
    errors: FloatArray


def sampled_values(
    evaluate: Mixed,
    n: int,
    n_background: int,
    n_columns: int,
    *,
    n_permutations: int,
    random: np.random.Generator,
) -> SampledValues:
    """Return Shapley values of a function, averaged over background rows.

    Parameters
    ----------
    evaluate : callable
        The function at rows of which some columns are a background row's.
    n, n_background, n_columns : int
        Numbers n of rows, B of background rows and p of columns.
    n_permutations : int
        Orders of the columns for every pair of row and background row, each with its reverse; at
        least 2, as their differences make the standard errors.
    random : numpy Generator

    Returns
    -------
    SampledValues

    Notes
    -----
    Along an order columns change one by one from the background row's value to the row's; every
    order's steps add up to the difference of the two outputs, so the sums are exact whatever the
    orders are. An order and its reverse make antithetic pairs ([Mitchell2022]_): effects of pairs
    of columns cancel in their mean. All background rows are used equally often, and standard errors
    are those of the orders within them.

    2 B s (p - 1) evaluations for every row with s orders; where 2^p - 2 is not more than
    2 s (p - 1), all coalitions are evaluated in their place and the values are exact.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.explanations.sampling import sampled_values
    >>> def product(rows, backgrounds, present):  # of three ones, against zeros
    ...     return present.all(axis=1, keepdims=True).astype(float)
    >>> found = sampled_values(product, 1, 1, 3, n_permutations=2, random=np.random.default_rng(0))
    >>> found.values[0, :, 0].round(4), found.errors.max()
    (array([0.3333, 0.3333, 0.3333]), np.float64(0.0))
    """
    if n_permutations < 2:
        raise InvalidInputError(
            f"n_permutations={n_permutations!r} is not usable: give at least 2, as the differences "
            "between orders make the standard errors."
        )
    p = n_columns
    every = p < 60 and 2**p - 2 <= 2 * n_permutations * max(p - 1, 1)
    per_pair = 2**p if every else 2 * n_permutations * (p + 1)
    size = max(1, _BATCH // per_pair)
    total: FloatArray | None = None
    squares: FloatArray | None = None
    for some in slices(n * n_background, size):
        i, b = np.divmod(np.arange(some.start, some.stop, dtype=np.intp), n_background)
        if every:
            value = _all_coalitions(evaluate, i, b, p)
            variance = np.zeros_like(value)
        else:
            value, variance = _orders(evaluate, i, b, p, n_permutations, random)
        if total is None or squares is None:
            total = np.zeros((n, p, value.shape[2]))
            squares = np.zeros_like(total)
        np.add.at(total, i, value)
        np.add.at(squares, i, variance)
    if total is None or squares is None:
        raise InvalidInputError("There is no row to explain: give at least one.")
    return SampledValues(total / n_background, np.sqrt(squares) / n_background)


def _all_coalitions(evaluate: Mixed, i: IntArray, b: IntArray, p: int) -> FloatArray:
    """Return the Shapley values of pairs of rows from all coalitions, shape (N, p, k)."""
    present = (np.arange(2**p)[:, None] >> np.arange(p)) % 2 == 1  # (2^p, p)
    n, s = len(i), len(present)
    v = evaluate(np.repeat(i, s), np.repeat(b, s), np.tile(present, (n, 1))).reshape(n, s, -1)
    size = present.sum(axis=1)
    # The weight of a coalition in the value of a member, and of one that is not.
    inside = np.array([1.0 / (p * math.comb(p - 1, c - 1)) if c else 0.0 for c in size])
    outside = np.array([1.0 / (p * math.comb(p - 1, c)) if c < p else 0.0 for c in size])
    weights = np.where(present, inside[:, None], -outside[:, None])  # (2^p, p)
    return np.asarray(np.einsum("nsk,sp->npk", v, weights))


def _orders(
    evaluate: Mixed, i: IntArray, b: IntArray, p: int, s: int, random: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return means over antithetic pairs of orders and their variances, each (N, p, k)."""
    n = len(i)
    rank = np.argsort(random.random((n, s, p)), axis=2)
    rank = np.stack([rank, p - 1 - rank], axis=2)  # (n, s, 2, p): an order and its reverse
    inner = np.arange(1, p)[:, None]
    present = rank[:, :, :, None, :] < inner  # (n, s, 2, p - 1, p)
    each = 2 * s * (p - 1)
    between = evaluate(np.repeat(i, each), np.repeat(b, each), present.reshape(-1, p))
    k = between.shape[1]
    none, all_ = np.zeros((n, p), dtype=bool), np.ones((n, p), dtype=bool)
    v = np.empty((n, s, 2, p + 1, k))
    v[:, :, :, 1:-1] = between.reshape(n, s, 2, p - 1, k)
    v[:, :, :, 0] = evaluate(i, b, none)[:, None, None]
    v[:, :, :, -1] = evaluate(i, b, all_)[:, None, None]
    steps = np.take_along_axis(np.diff(v, axis=3), rank[..., None], axis=3)  # (n, s, 2, p, k)
    pairs = steps.mean(axis=2)
    return pairs.mean(axis=1), pairs.var(axis=1, ddof=1) / s
