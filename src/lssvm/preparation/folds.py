"""Folds of raw rows by their content, for encodings that must not see a row's own target."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.random import mix_bits
from lssvm.preparation.tables import RawColumn

Hashes = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def hash_text(text: str) -> int:
    """Return 64 bits of a text, the same on every machine."""
    return int.from_bytes(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
    )


def column_bits(column: RawColumn) -> Hashes:
    """Return 64 bits for every value, equal for equal values of columns of one kind."""
    if column.kind == "category":
        levels = [hash_text(level) for level in column.levels]
        return np.asarray(np.array([*levels, 0], dtype=np.uint64)[column.values])
    if column.kind == "date":
        return np.ascontiguousarray(column.values).view(np.uint64)
    values = np.where(np.isnan(column.values), np.nan, column.values + 0.0)  # -0 is 0
    return np.ascontiguousarray(values).view(np.uint64)


def hash_raw_rows(columns: Iterable[RawColumn], n_rows: int, seed: int = 0) -> Hashes:
    """Return a seeded 64-bit hash of each row's content.

    Equal rows have equal hashes; neither the order of the rows nor that of the columns matters.

    Examples
    --------
    >>> from lssvm.preparation import read_table
    >>> from lssvm.preparation.folds import hash_raw_rows
    >>> table = read_table({"job": ["cook", "smith", "cook"], "age": [30, 30, 30]})
    >>> h = hash_raw_rows(table.columns, 3)
    >>> bool(h[0] == h[2]), bool(h[0] == h[1])
    (True, False)
    """
    with np.errstate(over="ignore"):
        start = mix_bits(np.array([seed], dtype=np.uint64) * _GOLDEN + _GOLDEN)
        total = np.repeat(start, n_rows)
        for column in columns:
            key = np.uint64(hash_text(column.name)) ^ start
            total += mix_bits(mix_bits(column_bits(column) + _GOLDEN) ^ key)
        return mix_bits(total)


def hash_groups(groups: Any, n_rows: int, seed: int = 0) -> Hashes:
    """Return a hash of each row's group."""
    labels = np.asarray(groups)
    if labels.shape != (n_rows,):
        raise InvalidInputError(
            f"groups has shape {labels.shape} but X has {n_rows} rows: give one group for each row."
        )
    distinct, inverse = np.unique(labels.astype(str), return_inverse=True)
    column = RawColumn("groups", "category", inverse.astype(np.intp), tuple(distinct.tolist()))
    return hash_raw_rows([column], n_rows, seed)


def hash_targets(hashes: Hashes, targets: FloatArray) -> Hashes:
    """Return hashes of rows and of their targets, shape (n, k)."""
    columns = [RawColumn(str(j), "number", targets[:, j]) for j in range(targets.shape[1])]
    with np.errstate(over="ignore"):
        return mix_bits(hashes * _GOLDEN + hash_raw_rows(columns, len(hashes)))


def split_folds(cv: Any, y: Any, groups: Any, n_rows: int) -> IntArray:
    """Return the fold of every row as a scikit-learn splitter or pairs of row numbers say.

    Examples
    --------
    >>> from lssvm.preparation.folds import split_folds
    >>> split_folds([([0, 1], [2]), ([2], [0, 1])], None, None, 3).tolist()
    [1, 1, 0]
    """
    splits = cv.split(np.zeros((n_rows, 1)), y, groups) if hasattr(cv, "split") else cv
    fold = np.full(n_rows, -1, dtype=np.intp)
    count = 0
    for f, (_, test) in enumerate(splits):
        rows = np.arange(n_rows)[np.asarray(test)]
        fold[rows] = f
        count += len(rows)
    if count != n_rows or np.any(fold < 0):
        raise InvalidInputError(
            f"cv tests {count} rows of {n_rows}, or some of them twice: encoding by the target "
            "needs folds that hold every row once, such as those of KFold."
        )
    return fold


def deal_folds(
    hashes: Hashes, weight: FloatArray, n_folds: int, targets: FloatArray | None
) -> IntArray:
    """Deal rows into folds: equal hashes into the same one, in the order of the hashes.

    Parameters
    ----------
    hashes : uint64 array of shape (n,)
    weight : array of shape (n,)
        Rows of weight 0 do not change how the others are dealt.
    n_folds : int
    targets : array of shape (n, k) or None
        None: equal hashes always stay together. Otherwise, where fewer than half of the rows
        differ, repeats are observations and not copies, and rows are dealt one by one, in the order
        of hash, target and occurrence.

    Returns
    -------
    int array of shape (n,)

    Notes
    -----
    O(n log n) time.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.preparation.folds import deal_folds
    >>> h = np.array([7, 3, 7, 9], dtype=np.uint64)
    >>> deal_folds(h, np.ones(4), 2, None).tolist()
    [1, 0, 1, 0]
    """
    counted = weight > 0
    distinct = np.unique(hashes[counted])
    if targets is not None and 2 * len(distinct) < np.count_nonzero(counted):
        order = np.lexsort((weight, hash_targets(hashes, targets), hashes, ~counted))
        fold = np.empty(len(hashes), dtype=np.intp)
        fold[order] = np.arange(len(hashes)) % n_folds
        return fold
    place = np.searchsorted(distinct, hashes)
    return np.asarray(place % n_folds, dtype=np.intp)
