"""Which rows are left out together: folds by row content, or as a splitter says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import IntArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.namespace import Array, compat, get_namespace, is_sparse, to_numpy
from lssvm._core.random import mix_bits, mix_signed
from lssvm._core.threads import slices

_BLOCK = 8192
_CHUNK = 65_536  # rows whose hashes are held at a time
_LARGE = 200_000  # more rows than this are dealt by their hashes alone
_DEVICE_BLOCK = 2**20  # rows whose hashes are fetched at a time from a device
_DEVICE_ENTRIES = 2**22  # numbers that are hashed at a time there
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Folds:
    """Test rows of each fold, and its training rows where they are not all the others.

    Attributes
    ----------
    test : list of int arrays
    train : list of int arrays or None
        None means the complement of the test rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import Folds
    >>> len(Folds([np.array([0, 1]), np.array([2])]))
    2
    """

    test: list[IntArray]
    train: list[IntArray] | None = None

    def __len__(self) -> int:
        return len(self.test)


def hash_rows(X: Array, seed: int = 0) -> NDArray[np.uint64]:
    """Return a seeded 64-bit hash of each row's content.

    Equal rows have equal hashes wherever they stand; a row has the same hash in dense and in
    sparse form. Time O(n d), memory O(n).

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    seed : int, default=0

    Returns
    -------
    uint64 array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import hash_rows
    >>> h = hash_rows(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    >>> bool(h[0] == h[2]), bool(h[0] == h[1])
    (True, False)
    """
    with np.errstate(over="ignore"):
        key = mix_bits(np.arange(X.shape[1], dtype=np.uint64) * _GOLDEN + np.uint64(seed) + _GOLDEN)
        total = np.zeros(X.shape[0], dtype=np.uint64)
        if compat.is_torch_array(X):
            total = _device_sums(X, key)
        elif is_sparse(X):
            table = X.tocoo()
            bits = np.ascontiguousarray(table.data, dtype=np.float64).view(np.uint64)
            parts = np.where(table.data != 0, mix_bits(bits ^ key[table.col]), np.uint64(0))
            np.add.at(total, table.row, parts)
        else:
            values = to_numpy(X)
            for part in slices(len(values), _BLOCK):
                block = np.ascontiguousarray(values[part], dtype=np.float64)
                bits = np.where(block != 0, mix_bits(block.view(np.uint64) ^ key), np.uint64(0))
                total[part] = bits.sum(axis=1, dtype=np.uint64)
        return mix_bits(total + np.uint64(seed) * _GOLDEN)


def _device_sums(X: Array, key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the sums of the mixed bits of every row, computed where a torch tensor is.

    torch has no unsigned 64-bit arithmetic; that of signed integers has the same bits.
    """
    torch = get_namespace(X)
    place = {"dtype": torch.int64, "device": X.device}
    keys = torch.asarray(key.view(np.int64).copy(), **place)
    total = torch.empty(X.shape[0], **place)
    for part in slices(X.shape[0], max(1, _DEVICE_ENTRIES // max(1, X.shape[1]))):
        block = X[part].to(torch.float64).contiguous()
        bits = mix_signed(block.view(torch.int64) ^ keys)
        total[part] = torch.where(block != 0, bits, 0).sum(dim=1)
    return to_numpy(total).view(np.uint64)


def content_folds(
    X: Array, n_folds: int | None, *, labels: NDArray[Any] | None = None, seed: int = 0
) -> Folds:
    """Assign rows to folds by their content.

    Equal rows share a fold, so that duplicates never leak from a training set into its test set,
    a weight of 2 equals the row twice, and neither the order nor the chunking of the data matters.
    Up to 200,000 rows the folds have the same number of distinct rows (of each class). Of more
    rows, the hash alone decides: the sizes of the folds then differ a little, by about
    ``sqrt(n / n_folds)`` rows, and nothing is sorted.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    n_folds : int or None
        None leaves out one distinct row at a time (leave-one-out when all rows differ); there
        are never more folds than distinct rows.
    labels : array of shape (n,), optional
        Class labels to stratify by. (Equal rows of several classes count for the smallest label.)
    seed : int, default=0

    Returns
    -------
    Folds

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import content_folds
    >>> folds = content_folds(np.array([[1.0], [2.0], [3.0], [1.0]]), 3)
    >>> [len(rows) for rows in folds.test]
    [2, 1, 1]
    """
    if n_folds is not None and X.shape[0] > max(_LARGE, 100 * n_folds) and not is_sparse(X):
        folds = _by_hash(X, n_folds, seed)
        if min(len(rows) for rows in folds.test) > 0:
            return folds
    order, new = _distinct(X, labels, seed)
    n_distinct = int(new.sum())
    n_folds = n_distinct if n_folds is None else min(n_folds, n_distinct)
    if n_folds < 2:
        raise _too_few(n_distinct, len(order))
    kind = np.min_scalar_type(n_folds)  # sorted in linear time where it is small
    dealt = (np.arange(n_distinct) % n_folds).astype(kind)
    fold = _spread(dealt, order, new, labels)
    del order, new  # 9 bytes a row: nothing is kept longer than it is needed
    return _from_assignment(fold, n_folds)


def _chunk(X: Array) -> int:
    return _DEVICE_BLOCK if compat.is_torch_array(X) else _CHUNK


def _by_hash(X: Array, n_folds: int, seed: int) -> Folds:
    """Deal rows by their hashes: 1 byte a row, and 4 for the numbers of the rows."""
    fold = np.empty(X.shape[0], dtype=np.min_scalar_type(n_folds))
    for part in slices(X.shape[0], _chunk(X)):
        high = hash_rows(X[part], seed) >> np.uint64(32)
        fold[part] = (high * np.uint64(n_folds)) >> np.uint64(32)
    return _from_assignment(fold, n_folds)


def smallest_hashes(
    X: Array, size: int, seed: int = 0, among: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.uint64], IntArray]:
    """Draw rows by their content: those of the smallest hashes (of another hash than `hash_rows`).

    The order of the rows does not change the draw, and equal rows are drawn together. A row that is
    there twice counts as two of ``size``.

    Parameters
    ----------
    X : array of shape (n, d)
    size : int
        How many rows; more where rows equal to the last of them follow.
    seed : int, default=0
    among : bool array of shape (n,), optional
        Which rows may be drawn.

    Returns
    -------
    hashes : uint64 array of shape (t,)
        Ascending.
    rows : int array of shape (t,)

    Notes
    -----
    O(n d) time and O(size) memory.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import smallest_hashes
    >>> X = np.array([[1.0], [2.0], [3.0], [1.0]])
    >>> hashes, rows = smallest_hashes(X, 3)
    >>> len(rows) in (3, 4) and 0 in rows and 3 in rows
    True
    """
    hashes, rows = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.intp)
    limit = np.uint64(np.iinfo(np.uint64).max)
    for part in slices(X.shape[0], max(_chunk(X), size)):
        new = hash_rows(X[part], seed)
        small = _rank(new) <= limit
        if among is not None:
            small &= among[part]
        index = np.flatnonzero(small)
        hashes = np.concatenate([hashes, new[index]])
        rows = np.concatenate([rows, part.start + index])
        ranks = _rank(hashes)
        order = np.argsort(ranks, kind="stable")
        if len(order) > size:
            limit = ranks[order[size - 1]]
            order = order[: int(np.searchsorted(ranks[order], limit, side="right"))]
        hashes, rows = hashes[order], rows[order]
    order = np.argsort(hashes, kind="stable")
    return hashes[order], rows[order]


def _rank(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return other hashes of hashes: those of rows of zeros are small, and must not come first."""
    with np.errstate(over="ignore"):
        return mix_bits(hashes + _GOLDEN)


def content_holdout(
    X: Array, share: float, *, labels: NDArray[Any] | None = None, seed: int = 0
) -> Folds:
    """Hold out a share of the distinct rows, chosen by their content.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    share : float
        Between 0 and 1.
    labels : array of shape (n,), optional
        Class labels to stratify by.
    seed : int, default=0

    Returns
    -------
    Folds
        One fold; its training rows are all the others.

    Notes
    -----
    The validation sequence of [DeBrabanter2010]_, algorithm 4. Equal rows are held out together.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import content_holdout
    >>> [len(rows) for rows in content_holdout(np.arange(20.0)[:, None], 0.25).test]
    [5]
    """
    order, new = _distinct(X, labels, seed)
    n_distinct = int(new.sum())
    held = np.diff(np.floor(np.arange(n_distinct + 1) * share + 0.5)) > 0
    if n_distinct < 2:
        raise _too_few(n_distinct, len(order))
    if not 0 < held.sum() < n_distinct:
        missing = "train" if held.any() else "test"
        raise InvalidInputError(
            f"cv={share!r} of {n_distinct} distinct rows leaves none to {missing} on: give a share "
            "nearer to one half, or more rows."
        )
    return Folds([np.flatnonzero(_spread(held, order, new, labels))])


def _distinct(
    X: Array, labels: NDArray[Any] | None, seed: int
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the rows in the order of their hashes, and where another content begins."""
    hashes = hash_rows(X, seed)
    order = np.lexsort((hashes,) if labels is None else (labels, hashes))
    hashes.sort()  # in place, which hashes[order] is not
    new = np.ones(len(order), dtype=bool)
    np.not_equal(hashes[1:], hashes[:-1], out=new[1:])
    return order, new


def _spread(
    dealt: NDArray[Any], order: IntArray, new: NDArray[np.bool_], labels: NDArray[Any] | None
) -> NDArray[Any]:
    """Give every row what was dealt to its content."""
    if labels is not None:
        # Deal the rows of one class after the other, continuing where the last class stopped.
        by_class = np.empty_like(dealt)
        by_class[np.argsort(labels[order[new]], kind="stable")] = dealt
        dealt = by_class
    values = np.empty(len(order), dtype=dealt.dtype)
    values[order] = np.repeat(dealt, np.diff(np.flatnonzero(new), append=len(order)))
    return values


def _too_few(n_distinct: int, n: int) -> InvalidInputError:
    return InvalidInputError(
        f"Cross-validation needs at least 2 distinct rows, some of them to test on, but there is "
        f"{n_distinct} (n_samples={n}): give fixed numbers for C and gamma."
    )


def _from_assignment(fold: NDArray[Any], n_folds: int) -> Folds:
    small: Any = np.int32 if len(fold) < 2**31 else np.intp
    if n_folds <= 50:
        return Folds([np.flatnonzero(fold == v).astype(small) for v in range(n_folds)])
    order = np.argsort(fold, kind="stable").astype(small)
    return Folds(np.split(order, np.cumsum(np.bincount(fold, minlength=n_folds))[:-1]))


def splitter_folds(splits: Iterable[tuple[Any, Any]], n: int) -> Folds:
    """Take the folds of a scikit-learn splitter as they are.

    Parameters
    ----------
    splits : iterable of (train, test) index arrays
    n : int
        Number of rows.

    Returns
    -------
    Folds
        With ``train=None`` when every training set is the complement of its test set.

    Examples
    --------
    >>> from lssvm.tuning import splitter_folds
    >>> splitter_folds([([0, 1], [2]), ([2], [0, 1])], 3).train is None
    True
    """
    train, test = [], []
    complementary = True
    for split in splits:
        pair = _pair(split, n)
        train.append(pair[0])
        test.append(pair[1])
        used = np.bincount(np.concatenate(pair) % n, minlength=n)  # rows may count from the end
        complementary &= bool(np.all(used == 1))
    if not test or any(len(rows) == 0 for rows in [*train, *test]):
        raise InvalidInputError(
            "The splitter given as cv produced no split, or one with an empty training or test "
            "set: every split needs rows in both."
        )
    return Folds(test, None if complementary else train)


def restrict_folds(folds: Folds, rows: IntArray, n: int) -> Folds:
    """Return the folds of a subset of the rows, numbered within the subset.

    Folds whose test or training set has no row in the subset are dropped.

    Parameters
    ----------
    folds : Folds
    rows : int array
        The subset, ascending.
    n : int
        Number of rows that ``folds`` speaks of.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import Folds, restrict_folds
    >>> restrict_folds(Folds([np.array([0, 1]), np.array([2, 3])]), np.array([1, 3]), 4).test
    [array([0]), array([1])]
    """
    position = np.full(n, -1, dtype=np.intp)
    position[rows] = np.arange(len(rows))

    def inside(index: IntArray) -> IntArray:
        at = position[index]
        return at[at >= 0]

    test = [inside(t) for t in folds.test]
    if folds.train is None:
        return Folds([t for t in test if len(t)])
    pairs = [(t, inside(r)) for t, r in zip(test, folds.train, strict=True)]
    pairs = [(t, r) for t, r in pairs if len(t) and len(r)]
    return Folds([t for t, _ in pairs], [r for _, r in pairs])


def _pair(split: Any, n: int) -> tuple[IntArray, IntArray]:
    try:
        train, test = split
        rows = _indices(train), _indices(test)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            "cv has an entry that is no pair of training and test row numbers: give an iterable "
            "of (train, test)."
        ) from error
    if any(part.size and (part.min() < -n or part.max() >= n) for part in rows):
        raise InvalidInputError(
            f"cv names rows that do not exist: X has {n} rows, numbered from 0 to {n - 1}."
        )
    return rows


def _indices(rows: Any) -> IntArray:
    index = np.asarray(rows)
    return np.flatnonzero(index) if index.dtype == bool else index.astype(np.intp)
