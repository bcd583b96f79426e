"""One way to turn ``random_state`` into a generator."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from lssvm._core.blocks import slices
from lssvm._core.errors import not_usable

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a NumPy generator for any accepted ``random_state``."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    if random_state is None or (isinstance(random_state, (int, np.integer)) and random_state >= 0):
        return np.random.default_rng(random_state)
    needed = "give a non-negative int, a numpy.random.Generator, a RandomState or None."
    raise not_usable("random_state", random_state, needed)


def seed_of(random_state: RandomState) -> int:
    """Return the seed of prototypes, folds and searches; a fixed one for None."""
    if random_state is None:
        return 0
    return int(as_generator(random_state).integers(2**31 - 1))


GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""What multiples of give different bits."""

_ENTRIES = 2**17  # numbers that are hashed at a time: they fit into the cache
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def mix_bits(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit integers (the finaliser of the splitmix generator)."""
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))


def mix_signed(values: Any) -> Any:
    """Scramble 64-bit integers as `mix_bits` does, in an array of signed ones of any library."""
    values = (values ^ _shifted(values, 30)) * int(_MIX_1.view(np.int64))
    values = (values ^ _shifted(values, 27)) * int(_MIX_2.view(np.int64))
    return values ^ _shifted(values, 31)


def _shifted(values: Any, bits: int) -> Any:
    """Shift to the right and fill with zeros, not with the sign."""
    return (values >> bits) & (2 ** (64 - bits) - 1)


def hash_positions(positions: NDArray[np.integer], seed: int) -> NDArray[np.uint64]:
    """Return a seeded 64-bit hash of each row's position: the same however rows are cut."""
    with np.errstate(over="ignore"):
        key = mix_bits(np.array([seed], dtype=np.uint64) * GOLDEN + GOLDEN)
        return mix_bits(positions.astype(np.uint64) * GOLDEN + key)


def draw_rows(keys: NDArray[np.uint64], size: int, labels: AnyArray | None = None) -> IntArray:
    """Return sorted numbers of ``size`` rows, those of the smallest keys.

    Parameters
    ----------
    keys : uint64 array of shape (n,)
        Random numbers.
    size : int
        How many rows.
    labels : array of shape (n,), optional
        Classes, which are drawn in proportion.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm._core.random import draw_rows
    >>> draw_rows(np.array([7, 3, 8, 9], dtype=np.uint64), 2, np.array([0, 0, 1, 1]))
    array([1, 2])
    """
    order = np.argsort(keys, kind="stable")
    if labels is not None:  # the j-th row of N_c comes at the place (j + 1/2) / N_c
        group, sizes = np.unique(labels[order], return_inverse=True, return_counts=True)[1:]
        by_class = np.argsort(group, kind="stable")
        place = np.empty(len(order))
        first = np.cumsum(sizes) - sizes
        place[by_class] = np.arange(len(order)) - np.repeat(first, sizes) + 0.5
        order = order[np.argsort(place / sizes[group], kind="stable")]
    return np.sort(order[:size]).astype(np.intp)


def rank_hashes(
    X: FloatArray, seed: int = 0, counted: BoolArray | None = None
) -> NDArray[np.uint64]:
    """Return a seeded 64-bit hash of each row that neither order nor units of columns change.

    A value counts by its rank among the distinct values of its column, and a column by the set of
    its distinct rows: permuted columns, and columns times a positive number plus a constant, give
    the same hashes (as far as rounding keeps different values different). Rows that are repeated
    change nothing either. Time O(n d log n), memory O(n d).

    Parameters
    ----------
    X : array of shape (n, d)
        Rows; NaN is a value like the others.
    seed : int, default=0
        Of the hash.
    counted : bool array of shape (n,), optional
        The rows that ranks are made of; other rows do not change the hashes of these.

    Returns
    -------
    uint64 array of shape (n,)
    """
    X = np.asarray(X, dtype=np.float64)
    n, d = X.shape
    ranks = np.empty((d, n), dtype=np.uint64)  # columns one after the other in memory
    blocks = list(slices(d, max(1, _ENTRIES // max(n, 1))))
    for part in blocks:
        ranks[part] = _ranks(np.ascontiguousarray(X[:, part].T), counted)
    chosen = np.arange(n) if counted is None else np.flatnonzero(counted)
    with np.errstate(over="ignore"):
        index = mix_bits(np.arange(d, dtype=np.uint64) * GOLDEN + GOLDEN)
        rows = np.zeros(n, dtype=np.uint64)
        for part in blocks:
            bits = ranks[part].astype(np.float64).view(np.uint64)
            bits = np.where(bits != 0, mix_bits(bits ^ index[part, None]), np.uint64(0))
            rows += bits.sum(axis=0, dtype=np.uint64)
        first = np.unique(rows[chosen], return_index=True)[1]
        distinct = None if len(first) == n else chosen[first]
        whole = np.zeros(len(first), dtype=np.uint64)
        for part in blocks:
            some = ranks[part] if distinct is None else ranks[part][:, distinct]
            whole += mix_bits(some + GOLDEN).sum(axis=0, dtype=np.uint64)
        whole, total = mix_bits(whole), np.zeros(n, dtype=np.uint64)
        for part in blocks:
            some = ranks[part] if distinct is None else ranks[part][:, distinct]
            key = mix_bits(some * GOLDEN + whole).sum(axis=1, dtype=np.uint64)
            mixed = mix_bits(mix_bits(ranks[part] + GOLDEN) ^ mix_bits(key)[:, None])
            total += mixed.sum(axis=0, dtype=np.uint64)
        return mix_bits(total + np.uint64(seed) * GOLDEN)


def _ranks(columns: FloatArray, counted: BoolArray | None) -> NDArray[np.uint64]:
    """Return the places of values (d, n) among the distinct ones of their row; NaN is the last.

    Where some columns are ``counted``, the places are those among their values.
    """
    ranks = np.empty(columns.shape, dtype=np.uint64)
    if counted is not None:
        for j, values in enumerate(columns):
            ranks[j] = np.searchsorted(np.unique(values[counted]), values)
        return ranks
    order = np.argsort(columns, axis=1)
    ordered = np.take_along_axis(columns, order, axis=1)
    before = ordered[:, :-1]
    place = np.zeros(columns.shape, dtype=np.uint64)
    np.cumsum((ordered[:, 1:] != before) & ~np.isnan(before), axis=1, out=place[:, 1:])
    np.put_along_axis(ranks, order, place, axis=1)
    return ranks
