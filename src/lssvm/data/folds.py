"""Which rows are left out together: folds by row content, or those of a splitter.

Then folds by the position of a row: for data that come in blocks, and for arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import (
    AnyArray,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    compat,
    get_namespace,
    is_sparse,
    to_numpy,
)
from lssvm._core.blocks import slices
from lssvm._core.errors import InvalidInputError, not_usable
from lssvm._core.random import GOLDEN, hash_positions, mix_bits, mix_signed, rank_hashes

_ENTRIES = 2**17  # numbers that are hashed at a time: they fit into the cache
_CHUNK = 65_536  # rows whose hashes are held at a time
_LARGE = 200_000  # more rows than this are assigned by their hashes alone
_DEVICE_BLOCK = 2**20  # rows whose hashes are fetched at a time from a device
_DEVICE_ENTRIES = 2**22  # numbers that are hashed at a time there
_COUNTED = 2**15  # different rows that are counted one by one


@dataclass(frozen=True)
class Folds:
    """Test rows of each fold, and its training rows where they are not all the others.

    Attributes
    ----------
    test : list of int arrays
        One for each fold.
    train : list of int arrays or None
        None means the complement of the test rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.folds import Folds
    >>> len(Folds([np.array([0, 1]), np.array([2])]))
    2
    """

    test: list[IntArray]
    train: list[IntArray] | None = None

    def __len__(self) -> int:
        return len(self.test)

    def numbers(self, n: int) -> IntArray:
        """Return the fold of each row; raise where one is tested never, or twice.

        Parameters
        ----------
        n : int
            Number of rows.
        """
        count = np.zeros(n, dtype=np.intp)
        fold = np.full(n, -1, dtype=np.intp)
        for f, rows in enumerate(self.test):
            count[rows] += 1
            fold[rows] = f
        if np.any(count != 1):
            raise InvalidInputError(
                f"cv tests {int(count.sum())} rows of {n}, or some of them twice: folds that hold "
                "every row once are needed here, such as those of KFold."
            )
        return fold


def hash_rows(X: Array, seed: int = 0) -> NDArray[np.uint64]:
    """Return a seeded 64-bit hash of each row's content.

    Equal rows have equal hashes wherever they stand; a row has the same hash in dense and in
    sparse form. Time O(n d), memory O(n).

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Rows.
    seed : int, default=0
        Of the random numbers; the same seed gives the same result.

    Returns
    -------
    uint64 array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.folds import hash_rows
    >>> h = hash_rows(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    >>> bool(h[0] == h[2]), bool(h[0] == h[1])
    (True, False)
    """
    with np.errstate(over="ignore"):
        key = mix_bits(np.arange(X.shape[1], dtype=np.uint64) * GOLDEN + np.uint64(seed) + GOLDEN)
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
            for part in slices(len(values), max(1, _ENTRIES // max(values.shape[1], 1))):
                block = np.ascontiguousarray(values[part], dtype=np.float64)
                bits = np.where(block != 0, mix_bits(block.view(np.uint64) ^ key), np.uint64(0))
                total[part] = bits.sum(axis=1, dtype=np.uint64)
        return mix_bits(total + np.uint64(seed) * GOLDEN)


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


class DistinctRows:
    """Counts different rows from their hashes, chunk by chunk, in bounded memory.

    Beyond 32,768 different rows the number is an estimate, from the smallest hashes.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.folds import DistinctRows, hash_rows
    >>> counted = DistinctRows()
    >>> counted.add(hash_rows(np.array([[1.0], [2.0], [1.0]])))
    >>> counted.n_rows, counted.n_distinct()
    (3, 2)
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self._smallest = np.empty(0, dtype=np.uint64)
        self._new: list[NDArray[np.uint64]] = []
        self._waiting = 0

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Count some more rows."""
        self.n_rows += len(hashes)
        ranks = _rank(hashes)
        if len(self._smallest) > _COUNTED:
            ranks = ranks[ranks < self._smallest[-1]]
        self._new.append(ranks)
        self._waiting += len(ranks)
        if self._waiting > _COUNTED:
            self._merge()

    def _merge(self) -> None:
        self._smallest = np.unique(np.concatenate([self._smallest, *self._new]))[: _COUNTED + 1]
        self._new, self._waiting = [], 0

    def n_distinct(self) -> int:
        """Return the number of different rows so far."""
        self._merge()
        if len(self._smallest) <= _COUNTED:
            return len(self._smallest)
        return min(self.n_rows, round(_COUNTED * (2.0**64 / float(self._smallest[-1]))))


REPEATS = 10
"""Rows for each distinct row, on average, from which on equal rows may be observations."""

DISAGREEING = 0.1
"""How often targets of equal rows differ, of how often any two do, where rows are observations."""

NEARLY_EQUAL = 0.01
"""Share of the interquartile range of targets by which two of them may lie apart and be equal."""


def repeats_by_nature(n_distinct: int, n: float) -> bool:
    """Return whether there are ten values or more, on average, for each distinct one.

    Parameters
    ----------
    n_distinct : int
        Values that differ.
    n : float
        All of them, or their total weight.

    Examples
    --------
    >>> from lssvm.data.folds import repeats_by_nature
    >>> repeats_by_nature(13, 1100), repeats_by_nature(150, 450)
    (True, False)
    """
    return REPEATS * n_distinct <= n


def are_observations(
    keys: AnyArray,
    targets: AnyArray | None,
    weight: AnyArray | None = None,
    n_observations: float | None = None,
) -> bool:
    r"""Return whether equal rows are observations, each with a target of its own, or copies.

    Copies of a row are held out together: otherwise a model that knows its training rows by heart
    would seem to predict. Rows of a few categories (Titanic: 2,201 rows of which 14 differ) are
    observations, and are held out one by one: otherwise every fold would miss a category. What
    tells the two apart is the target. Copies of a row share it, observations draw it again. Equal
    rows are observations where there are ten of each or more, on average, and their targets differ
    at least a tenth as often as those of any two rows. Numbers that lie a hundredth of their
    interquartile range apart, or less, are equal: noise of rounding makes no observations. With
    targets :math:`v` of which a row :math:`r` has the share :math:`p_{v|r}`,

    .. math:: \sum_r p_r \big(1 - \sum_v p_{v|r}^2\big)
              \ge \tfrac{1}{10} \big(1 - \sum_v p_v^2\big).

    The left side is 0 for copies, and one changed target in n moves it by at most :math:`2 / n`;
    it is not changed by repeating the table, nor by weights in place of repeats.

    Parameters
    ----------
    keys : array of shape (n,)
        Equal for equal rows: hashes or numbers.
    targets : array of shape (n,) or (n, k), or None
        Targets or class labels. None: nothing is known of them, and equal rows are copies.
    weight : array of shape (n,), optional
        Weights of the rows.
    n_observations : float, optional
        How many observations the weights count (`observation_weight`); by default rows.

    Notes
    -----
    O(n log n) time where there are ten rows for each distinct one, O(n) memory.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.folds import are_observations
    >>> rows, random = np.repeat([1, 2], 20), np.random.default_rng(0)
    >>> are_observations(rows, random.random(40)), are_observations(rows, 0.5 * rows)
    (True, False)
    """
    if targets is None or not len(keys):
        return False
    rows, place = np.unique(keys, return_inverse=True)
    n = len(keys) if n_observations is None else n_observations
    if not repeats_by_nature(len(rows), n):
        return False
    weight = np.ones(len(keys)) if weight is None else np.asarray(weight, dtype=np.float64)
    within = overall = 0.0
    for column in np.asarray(targets, dtype=np.float64).reshape(len(keys), -1).T:
        one, two = _differing(column, (place.ravel(), np.zeros(len(keys), dtype=np.intp)), weight)
        within, overall = within + one, overall + two
    return within > 0 and within >= DISAGREEING * overall


def _differing(
    values: FloatArray, groupings: tuple[IntArray, ...], weight: FloatArray
) -> list[float]:
    """Return how often two values (n,) of a group differ, on average, for each grouping."""
    distinct, rank = np.unique(values, return_inverse=True)
    reached = np.cumsum(np.bincount(rank.ravel(), weight))
    ends = np.searchsorted(reached, np.array([0.25, 0.75]) * reached[-1])
    near = NEARLY_EQUAL * float(np.ptp(distinct[np.minimum(ends, len(distinct) - 1)]))
    low, high = np.searchsorted(distinct, values - near), np.searchsorted(distinct, values + near)
    high += distinct[np.minimum(high, len(distinct) - 1)] == values + near
    found = []
    for group in groupings:
        cell = group * (len(distinct) + 1)
        order = np.argsort(cell + rank.ravel(), kind="stable")
        ordered, until = (cell + rank.ravel())[order], np.append(0.0, np.cumsum(weight[order]))
        equal = until[np.searchsorted(ordered, cell + high)]
        equal -= until[np.searchsorted(ordered, cell + low)]
        mass = np.bincount(group, weight)[group]
        share = np.divide(equal, mass, out=np.ones(len(mass)), where=mass > 0)
        found.append(float(weight @ np.where(share < 1.0 - 1e-9, 1.0 - share, 0.0)))
    return found


def count_observations(X: Array, targets: AnyArray | None = None) -> int:
    """Return the number of different rows, or of all where these are observations.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.folds import count_observations
    >>> X = np.zeros((20, 1))
    >>> count_observations(X), count_observations(X, np.arange(20.0))
    (1, 20)
    """
    n, counted = int(X.shape[0]), DistinctRows()
    for part in slices(n, n if is_sparse(X) else _chunk(X)):
        counted.add(hash_rows(X[part]))
    distinct = counted.n_distinct()
    if targets is None or not repeats_by_nature(distinct, n):
        return distinct
    return n if are_observations(hash_rows(X), targets) else distinct


def observation_weight(
    n: int, weight: AnyArray | None, labels: AnyArray | None = None
) -> tuple[float, FloatArray | None]:
    """Return the number of observations, and the part of a row's weight that one of them has.

    Where equal rows are observations, one of them is left out, not all of its kind. Weights
    that are whole multiples of the smallest one (of the class) are counts of observations: a weight
    of 2 is then the row twice. Any other row is one observation with all of its weight.

    Parameters
    ----------
    n : int
        Rows.
    weight : array of shape (n,) or None
        None: all 1.
    labels : int array of shape (n,) or None, default=None
        Classes, which may have weights of their own.

    Returns
    -------
    n_observations : float
    weight : array of shape (n,) or None

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.folds import observation_weight
    >>> observation_weight(2, np.array([1.0, 3.0])), observation_weight(2, np.array([1.0, 2.5]))
    ((4.0, array([1., 1.])), (2.0, array([1. , 2.5])))
    """
    if weight is None:
        return float(n), None
    weight = np.asarray(weight, dtype=np.float64)
    number = np.zeros(len(weight), dtype=np.intp) if labels is None else labels
    units = np.full(int(number.max(initial=0)) + 1, np.inf)
    np.minimum.at(units, number, np.where(weight > 0, weight, np.inf))
    unit = units[number]
    count = weight / unit
    if np.allclose(count, np.round(count), rtol=1e-9, atol=0.0):
        return float(np.round(count).sum()), np.where(weight > 0, unit, 0.0)
    return float(np.count_nonzero(weight > 0)), weight


def assign_folds(
    X: Array,
    n_folds: int | None,
    *,
    labels: AnyArray | None = None,
    targets: AnyArray | None = None,
    weight: AnyArray | None = None,
    groups: AnyArray | None = None,
    seed: int = 0,
    by_rank: bool = False,
) -> Folds:
    """Assign rows to folds by their content.

    - Equal rows share a fold, so that copies never leak from a training set into its test set and
      a weight of 2 is the row twice. Only where targets show that equal rows are observations (a
      few categories, see `are_observations`), these are assigned one by one, by row, target and
      occurrence.
    - Rows of one group share a fold, whatever their content.
    - Every class is spread evenly over the folds.
    - Neither order nor chunking of the rows matters; with ``by_rank``, neither do order and units
      of the columns. Rows of weight 0 do not change where the others go.

    Up to 200,000 rows the folds have the same number of distinct rows (of each class), or of
    observations. Of more rows most of which differ, the hash alone decides: the sizes of the folds
    then differ a little, by about ``sqrt(n / n_folds)`` rows, and nothing is sorted.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Rows.
    n_folds : int or None
        None leaves out one distinct row, or observation, at a time (leave-one-out when all rows
        differ); there are never more folds than distinct rows, observations or groups.
    labels : array of shape (n,), optional
        Class labels to stratify by. (Rows of several classes that share a fold count for the
        smallest label.)
    targets : array of shape (n,) or (n, k), optional
        Targets, which distinguish observations of the same row.
    weight : array of shape (n,), optional
        Weights, which distinguish them too, and count them.
    groups : array of shape (n,), optional
        Rows of a group share a fold, whatever their content.
    seed : int, default=0
        Of the random numbers; the same seed gives the same result.
    by_rank : bool, default=False
        Whether rows are known by the ranks of their values (`rank_hashes`), not by the values.

    Returns
    -------
    Folds

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.folds import assign_folds
    >>> folds = assign_folds(np.array([[1.0], [2.0], [3.0], [1.0]]), 3)
    >>> [len(rows) for rows in folds.test]
    [2, 1, 1]
    >>> few, y = np.repeat([[1.0], [2.0]], 12, axis=0), np.tile([0, 1, 1], 8)
    >>> [len(rows) for rows in assign_folds(few, 3, labels=y).test]
    [8, 8, 8]
    """
    large = n_folds is not None and X.shape[0] > max(_LARGE, 100 * n_folds) and not is_sparse(X)
    if n_folds is not None and large and groups is None and not by_rank:
        folds = _by_hash(X, n_folds, seed)
        if folds is not None and min(len(rows) for rows in folds.test) > 0:
            return folds
    counted = None if weight is None or np.all(weight > 0) else np.asarray(weight) > 0
    rows: Any = slice(None) if counted is None else counted
    hashes = _hashes(X, groups, seed, by_rank, counted)
    labels, targets, weight = (None if v is None else v[rows] for v in (labels, targets, weight))
    keys = _keys(hashes[rows], labels, targets, weight, groups is not None, seed)
    fold, n_folds = fold_numbers(keys, n_folds, labels)
    if n_folds < 2:
        raise _too_few(n_folds, len(fold), groups is not None)
    if counted is not None:
        fold = _with_others(fold, hashes, counted, n_folds)
    return _from_assignment(fold, n_folds)


def fold_numbers(
    keys: NDArray[np.uint64], n_folds: int | None, labels: AnyArray | None = None
) -> tuple[AnyArray, int]:
    """Return the fold of every row (n,), and the number of folds.

    Parameters
    ----------
    keys : uint64 array of shape (n,)
        Random numbers, overwritten; rows of the same one share a fold. Folds take turns in their
        order.
    n_folds : int or None
        At most; None: every key is a fold.
    labels : array of shape (n,), optional
        Classes, each of which is spread evenly over the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.folds import fold_numbers
    >>> fold_numbers(np.array([7, 3, 7, 9, 1], dtype=np.uint64), 2)[0]
    array([0, 1, 0, 1, 0], dtype=uint8)
    """
    order, new = _ordered(keys, labels)
    n_units = int(new.sum())
    n_folds = n_units if n_folds is None else min(n_folds, n_units)
    kind = np.min_scalar_type(max(n_folds, 1))  # sorted in linear time where it is small
    turns = (np.arange(n_units) % max(n_folds, 1)).astype(kind)
    return _spread(turns, order, new, labels), n_folds


def _with_others(
    fold: AnyArray, hashes: NDArray[np.uint64], counted: BoolArray, n_folds: int
) -> AnyArray:
    """Return the folds of all rows: those of weight 0 go where equal rows are, or by the hash."""
    known, first = np.unique(hashes[counted], return_index=True)
    place = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    everywhere = np.where(
        known[place] == hashes, fold[first[place]], hashes % np.uint64(n_folds)
    ).astype(fold.dtype)
    everywhere[counted] = fold
    return everywhere


def _chunk(X: Array) -> int:
    return _DEVICE_BLOCK if compat.is_torch_array(X) else _CHUNK


def _by_hash(X: Array, n_folds: int, seed: int) -> Folds | None:
    """Assign rows by their hashes: 1 byte a row, and 4 for the numbers of the rows.

    None where there are many for each distinct row.
    """
    fold, counted = np.empty(X.shape[0], dtype=np.min_scalar_type(n_folds)), DistinctRows()
    for part in slices(X.shape[0], _chunk(X)):
        hashes = hash_rows(X[part], seed)
        counted.add(hashes)
        fold[part] = ((hashes >> np.uint64(32)) * np.uint64(n_folds)) >> np.uint64(32)
    if repeats_by_nature(counted.n_distinct(), counted.n_rows):
        return None
    return _from_assignment(fold, n_folds)


def smallest_hashes(
    X: Array,
    size: int,
    seed: int = 0,
    among: BoolArray | None = None,
    *,
    labels: AnyArray | None = None,
    targets: AnyArray | None = None,
    weight: AnyArray | None = None,
) -> tuple[NDArray[np.uint64], IntArray]:
    """Draw rows by their content: those of the smallest hashes (of another hash than `hash_rows`).

    The order of the rows does not change the draw, and equal rows are drawn together. A row that is
    there twice counts as two of ``size``. Where they are observations, they are drawn one by one.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows.
    size : int
        How many rows; more where rows equal to the last of them follow.
    seed : int, default=0
        Of the random numbers; the same seed gives the same result.
    among : bool array of shape (n,), optional
        Which rows may be drawn.
    labels, targets, weight : arrays, optional
        What distinguishes observations of the same row, as in `assign_folds`.

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
    >>> from lssvm.data.folds import smallest_hashes
    >>> X = np.array([[1.0], [2.0], [3.0], [1.0]])
    >>> hashes, rows = smallest_hashes(X, 3)
    >>> len(rows) in (3, 4) and 0 in rows and 3 in rows
    True
    """
    counted = DistinctRows()
    hashes, rows = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.intp)
    limit = np.uint64(np.iinfo(np.uint64).max)
    for part in slices(X.shape[0], max(_chunk(X), size)):
        new = hash_rows(X[part], seed)
        counted.add(new)
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
    many = len(rows) > size and repeats_by_nature(counted.n_distinct(), counted.n_rows)
    known = targets if labels is None else labels
    if many and are_observations(every := hash_rows(X, seed), known, weight):
        ranks = _rank(_of_observations(every, (labels, targets, weight), seed))
        rows = np.arange(len(ranks)) if among is None else np.flatnonzero(among)
        rows = rows[np.argsort(ranks[rows], kind="stable")[:size]]
        hashes = hash_rows(X[rows], seed)
    order = np.argsort(hashes, kind="stable")
    return hashes[order], rows[order]


def _of_observations(
    hashes: NDArray[np.uint64], known: tuple[AnyArray | None, ...], seed: int
) -> NDArray[np.uint64]:
    """Return hashes of rows, of what is known of them, and of the occurrence of both."""
    columns = [np.asarray(c, dtype=np.float64) for c in known if c is not None]
    if columns:
        with np.errstate(over="ignore"):
            others = mix_bits(hash_rows(np.column_stack(columns), seed) + GOLDEN)
            hashes = mix_bits(hashes + others)
    return occurrences(hashes)


def _rank(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return other hashes of hashes: those of rows of zeros are small, and must not come first."""
    with np.errstate(over="ignore"):
        return mix_bits(hashes + GOLDEN)


def content_holdout(
    X: Array,
    share: float,
    *,
    labels: AnyArray | None = None,
    targets: AnyArray | None = None,
    weight: AnyArray | None = None,
    groups: AnyArray | None = None,
    seed: int = 0,
) -> Folds:
    """Hold out a share of the distinct rows, chosen by their content.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Rows.
    share : float
        Between 0 and 1.
    labels, targets, weight, groups : arrays, optional
        As in `assign_folds`.
    seed : int, default=0
        Of the random numbers; the same seed gives the same result.

    Returns
    -------
    Folds
        One fold; its training rows are all the others.

    Notes
    -----
    The validation sequence of [DeBrabanter2010]_, algorithm 4. Equal rows are held out together;
    where they are observations (`are_observations`), one by one.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.folds import content_holdout
    >>> [len(rows) for rows in content_holdout(np.arange(20.0)[:, None], 0.25).test]
    [5]
    """
    hashes = _hashes(X, groups, seed)
    keys = _keys(hashes, labels, targets, weight, groups is not None, seed)
    order, new = _ordered(keys, labels)
    n_distinct = int(new.sum())
    held_out = np.diff(np.floor(np.arange(n_distinct + 1) * share + 0.5)) > 0
    if n_distinct < 2:
        raise _too_few(n_distinct, len(order), groups is not None)
    if not 0 < held_out.sum() < n_distinct:
        missing = "train" if held_out.any() else "test"
        raise InvalidInputError(
            f"cv={share!r} of {n_distinct} distinct rows leaves none to {missing} on: give a share "
            "nearer to one half, or more rows."
        )
    return Folds([np.flatnonzero(_spread(held_out, order, new, labels))])


def _keys(
    hashes: NDArray[np.uint64],
    labels: AnyArray | None,
    targets: AnyArray | None,
    weight: AnyArray | None,
    grouped: bool,
    seed: int,
) -> NDArray[np.uint64]:
    """Return keys of rows, the same for those that share a fold.

    These are equal rows, single rows where equal ones are observations, or groups.
    """
    n = observation_weight(len(hashes), weight, labels)[0]
    known = targets if labels is None else labels
    alike = len(hashes) < 2 or not np.any(hashes != hashes[0])
    if grouped or alike or not are_observations(hashes, known, weight, n):
        return hashes.copy()
    return _of_observations(hashes, (labels, targets, weight), seed)


def _hashes(
    X: Array,
    groups: AnyArray | None,
    seed: int,
    by_rank: bool = False,
    counted: BoolArray | None = None,
) -> NDArray[np.uint64]:
    """Return the hashes of groups, or of rows."""
    if groups is not None:
        return hash_rows(np.unique(groups, return_inverse=True)[1].reshape(-1, 1) + 1.0, seed)
    return rank_hashes(to_numpy(X), seed, counted) if by_rank else hash_rows(X, seed)


def _ordered(hashes: NDArray[np.uint64], labels: AnyArray | None) -> tuple[IntArray, BoolArray]:
    """Return rows in the order of their hashes (overwritten), and where another one begins."""
    order = np.lexsort((hashes,) if labels is None else (labels, hashes))
    hashes.sort()  # in place, which hashes[order] is not
    new = np.ones(len(order), dtype=bool)
    np.not_equal(hashes[1:], hashes[:-1], out=new[1:])
    return order, new


def occurrences(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return hashes that distinguish equal rows: of a hash and of how often it came before.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.folds import occurrences
    >>> len(set(occurrences(np.array([3, 3, 5], dtype=np.uint64)).tolist()))
    3
    """
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(np.diff(hashes[order], prepend=~hashes[order[:1]]) != 0)
    sizes = np.diff(same, append=len(order))
    count = np.arange(len(order)) - np.repeat(same, sizes)
    out = np.empty_like(hashes)
    with np.errstate(over="ignore"):
        out[order] = mix_bits(hashes[order] + count.astype(np.uint64) * GOLDEN)
    return out


def _spread(turns: AnyArray, order: IntArray, new: BoolArray, labels: AnyArray | None) -> AnyArray:
    """Give every row what was assigned to its content."""
    if labels is not None:
        # The rows of one class after the other, continuing where the last class stopped.
        by_class = np.empty_like(turns)
        by_class[np.argsort(labels[order[new]], kind="stable")] = turns
        turns = by_class
    values = np.empty(len(order), dtype=turns.dtype)
    values[order] = np.repeat(turns, np.diff(np.flatnonzero(new), append=len(order)))
    return values


def _too_few(n_distinct: int, n: int, grouped: bool) -> InvalidInputError:
    if grouped:
        return InvalidInputError(
            f"Cross-validation needs at least 2 groups, one of them to test on, but there is "
            f"{n_distinct} (n_samples={n}): give more groups, or leave groups out."
        )
    return InvalidInputError(
        f"Cross-validation needs at least 2 distinct rows, some of them to test on, but there is "
        f"{n_distinct} (n_samples={n}): give fixed numbers for C and gamma."
    )


def _from_assignment(fold: AnyArray, n_folds: int) -> Folds:
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
        As ``split`` of a splitter yields them.
    n : int
        Number of rows.

    Returns
    -------
    Folds
        With ``train=None`` when every training set is the complement of its test set.

    Examples
    --------
    >>> from lssvm.data.folds import splitter_folds
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
        Which rows are left out together.
    rows : int array
        The subset, ascending.
    n : int
        Number of rows that ``folds`` speaks of.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.folds import Folds, restrict_folds
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
        train, test = (np.asarray(part) for part in split)
        rows = [np.flatnonzero(p) if p.dtype == bool else p.astype(np.intp) for p in (train, test)]
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            "cv has an entry that is not a pair of training and test row numbers: give an iterable "
            "of (train, test)."
        ) from error
    if any(part.size and (part.min() < -n or part.max() >= n) for part in rows):
        raise InvalidInputError(
            f"cv names rows that do not exist: X has {n} rows, numbered from 0 to {n - 1}."
        )
    return rows[0], rows[1]


class _PositionSplitter:
    """What splitters by the position of a row share."""

    def get_n_splits(self: Any, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups : any, default=None
            Not looked at; splitters take them.
        """
        return int(self.n_test)

    def split(
        self: Any, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield training and test rows, as scikit-learn's splitters do.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows; only their number counts.
        y, groups : any, default=None
            Not looked at; splitters take them.
        """
        part = self.assign(np.arange(len(X)))
        for v in range(self.n_test):
            yield np.flatnonzero(part != v), np.flatnonzero(part == v)


@dataclass(frozen=True)
class PositionFolds(_PositionSplitter):
    """Rows are assigned to folds by a seeded hash of their position.

    Blocks, files and threads do not matter: a row is in the same fold however the data were cut.
    Other than folds by content, equal rows may come into different folds.

    Parameters
    ----------
    n_folds : int, default=10
        How many folds.
    seed : int, default=0
        Of the random numbers; the same seed gives the same result.
    numbers : int array of shape (n,) or None, default=None
        The fold of every row in place of the hash; -1: always trained on.

    Notes
    -----
    Folds differ in size by about the square root of it. What ``cv=10`` is for a `lssvm.Scan`; give
    it as ``cv`` to have the same folds of an array.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import PositionFolds
    >>> folds = PositionFolds(3)
    >>> folds.assign(np.arange(6))
    array([1, 0, 2, 2, 0, 2])
    >>> len(list(folds.split(np.zeros((6, 1)))))
    3
    """

    n_folds: int = 10
    seed: int = 0
    numbers: IntArray | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        least = 2 if self.numbers is None else 1
        if not isinstance(self.n_folds, (int, np.integer)) or self.n_folds < least:
            raise not_usable("n_folds", self.n_folds, f"give at least {least}.")

    @property
    def n_cells(self) -> int:
        """Number of parts that rows are assigned to."""
        return self.n_folds + (self.numbers is not None)

    @property
    def n_test(self) -> int:
        """Number of parts, the first ones, that are left out in turn."""
        return self.n_folds

    def assign(self, positions: IntArray) -> IntArray:
        """Return the fold of each position.

        Parameters
        ----------
        positions : int array of shape (n,)
            Row numbers.
        """
        if self.numbers is not None:
            fold = self.numbers[positions]
            return np.where(fold < 0, self.n_folds, fold).astype(np.intp)
        return (hash_positions(positions, self.seed) % np.uint64(self.n_folds)).astype(np.intp)


@dataclass(frozen=True)
class PositionHoldout(_PositionSplitter):
    """A share of the rows, by a seeded hash of their position, is held out for validation.

    Parameters
    ----------
    share : float, default=0.25
        Between 0 and 1.
    seed : int, default=0
        Of the random numbers; the same seed gives the same result.
    rows : tuple (start, stop) or None, default=None
        Hold out these consecutive rows, in place of a share.

    Notes
    -----
    [DeBrabanter2010]_, algorithm 4, for data of which one validation set is enough. What
    ``cv=0.25`` is for a `lssvm.Scan`.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import PositionHoldout
    >>> (train, test), = PositionHoldout(0.25).split(np.zeros((1000, 1)))
    >>> len(test) / 1000
    0.247
    """

    share: float = 0.25
    seed: int = 0
    rows: tuple[int, int] | None = None
    n_cells: ClassVar[int] = 2  # held out, and the rest
    n_test: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise InvalidInputError(
                f"A held-out share of {self.share!r} is not usable: give a number between 0 and 1."
            )

    def assign(self, positions: IntArray) -> IntArray:
        """Return 0 for the positions held out, 1 for the others.

        Parameters
        ----------
        positions : int array of shape (n,)
            Row numbers.
        """
        if self.rows is not None:
            start, stop = self.rows
            return np.asarray((positions < start) | (positions >= stop), dtype=np.intp)
        limit = np.uint64(int(self.share * 2.0**53) << 11)
        return (hash_positions(positions, self.seed) >= limit).astype(np.intp)
