"""One entry point for all selection rules.

First two of them: rows next to the centres of clusters, and randomly pivoted Cholesky factorisation
of the kernel matrix.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.random import Generator
from scipy.linalg import solve_triangular

from lssvm._core.arrays import Device, FloatArray, IntArray, check_weight
from lssvm._core.errors import InvalidInputError, NumericalWarning, not_known, not_usable
from lssvm._core.random import RandomState, as_generator
from lssvm.data.folds import hash_rows
from lssvm.prototypes.renyi import RenyiEntropy
from lssvm.prototypes.selection import (
    Candidates,
    Kernel,
    Keys,
    Rule,
    Selection,
    Uniform,
    as_labels,
    as_rows,
    class_quotas,
    draw_distinct,
    interleaved,
    random_order,
    warn_if_short,
)

_PASSES = 4


@dataclass(frozen=True)
class KMeans:
    """Take the rows nearest to the centres of a mini-batch k-means clustering.

    Parameters
    ----------
    max_iter : int, default=20
        Passes over the data at most.

    Notes
    -----
    Clusters by `sklearn.cluster.MiniBatchKMeans`, then replaces every centre by the nearest row
    whose content is not taken, so that prototypes remain training rows. With labels, each class is
    clustered by itself, with its share of the prototypes. The order is that of decreasing cluster
    weight, classes interleaved: a prefix stands for most of the data. Distances are Euclidean:
    scale the columns first.

    Time O(n m d) per pass over the data, memory O(n d + m d) (a copy of the rows) besides blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.prototypes import KMeans, select_prototypes
    >>> X = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    >>> chosen = select_prototypes(X, 2, KMeans(), random_state=0)
    >>> sorted(X[chosen.indices, 0].tolist())
    [0.1, 9.1]
    """

    max_iter: int = 20

    def select(self, candidates: Candidates) -> Selection:
        """Select prototypes, see `select_prototypes`."""
        start = candidates.draw()  # how many distinct rows each class has to give
        if candidates.labels is None:
            usable = np.ones(len(candidates.X)) if candidates.weight is None else candidates.weight
            groups, starts = [np.flatnonzero(usable > 0.0)], [start]
        else:
            groups = candidates.class_rows()[0]
            starts = [start[candidates.labels[start] == c] for c in range(len(groups))]
        taken = np.empty(0, dtype=np.uint64)
        parts = []
        for rows, own in zip(groups, starts, strict=True):
            parts.append(self._cluster(candidates, rows, own.size, taken) if own.size else own)
            taken = np.append(taken, hash_rows(candidates.X[parts[-1]]))
        return Selection(interleaved(parts), n_trials=sum(rows.size for rows in groups))

    def _cluster(self, candidates: Candidates, rows: IntArray, size: int, taken: Keys) -> IntArray:
        """Return so many of the rows, heaviest cluster first."""
        from sklearn.cluster import MiniBatchKMeans

        weight = None if candidates.weight is None else candidates.weight[rows]
        model = MiniBatchKMeans(
            n_clusters=size,
            n_init=1,
            max_iter=self.max_iter,
            batch_size=max(1024, 2 * size),
            random_state=int(candidates.rng.integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # clusters that stay empty are filled below
            member = model.fit_predict(candidates.X[rows], sample_weight=weight)
        mass = np.bincount(member, weight, minlength=size)
        centres = model.cluster_centers_[np.argsort(-mass, kind="stable")]
        return _nearest_distinct(candidates, rows, centres, taken)


def _nearest_distinct(
    candidates: Candidates, rows: IntArray, centres: FloatArray, taken: Keys
) -> IntArray:
    """Return for every centre the nearest row with a content that no other one has."""
    from sklearn.metrics import pairwise_distances_argmin

    chosen = np.full(centres.shape[0], -1, dtype=np.intp)
    open_ = np.arange(centres.shape[0])
    for _ in range(_PASSES):
        nearest = rows[pairwise_distances_argmin(centres[open_], candidates.X[rows])]
        keys = hash_rows(candidates.X[nearest])
        first = np.sort(np.unique(keys, return_index=True)[1])
        first = first[~np.isin(keys[first], taken)]
        chosen[open_[first]] = nearest[first]
        taken = np.append(taken, keys[first])
        open_ = np.delete(open_, first)
        if open_.size == 0:
            return chosen
        rows = rows[~np.isin(hash_rows(candidates.X[rows]), taken)]
        if rows.size == 0:
            return chosen[chosen >= 0]
    rest = draw_distinct(candidates.X, open_.size, candidates.rng, candidates.weight, rows, taken)
    chosen[open_[: rest.size]] = rest
    return chosen[chosen >= 0]


_DRAWN = 64
_RANK = 1e-12


@dataclass(frozen=True)
class RPCholesky:
    """Select pivots with probabilities proportional to the diagonal of the residual kernel matrix.

    Each pivot is drawn with probability proportional to the diagonal of the residual
    K - K_S (K_SS)^-1 K_S^T, times the sample weight: rows that the prototypes represent badly. The
    expected trace of the residual is close to the best of its rank.

    Parameters
    ----------
    max_rows : int, default=20000
        With more rows, a uniform sample of so many is factorised; the memory is 8 max_rows m bytes.

    Notes
    -----
    Randomly pivoted Cholesky of Chen, Epperly, Tropp and Webber (Communications on Pure and Applied
    Mathematics, 2025), in the block form with rejection sampling of Epperly, Tropp and Webber
    (2024): candidates are drawn 64 at a time from the present diagonal, each is accepted with
    probability (diagonal after the ones before it) / (diagonal when drawn), and all accepted
    columns are eliminated by matrix products. The pivots have exactly the distribution of
    one-by-one draws. It needs the kernel of the model (``select_prototypes(..., kernel=...)``).

    Rows whose residual is below 1e-12 of their diagonal count as represented, so duplicates are
    never taken and a kernel of low rank gives fewer prototypes, with a warning. With labels, a
    class that has its share of prototypes takes no more. The order is the order of the pivots: a
    prefix is a run with fewer (shares of classes hold for the whole set only).

    Time O(n m^2) with the kernel's own, memory O(n m), n at most ``max_rows``.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.prototypes import RPCholesky, select_prototypes
    >>> class Linear:
    ...     def __call__(self, X, Z):
    ...         return X @ Z.T
    ...     def diag(self, X):
    ...         return (X**2).sum(axis=1)
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> select_prototypes(X, 3, RPCholesky(), kernel=Linear(), random_state=0).indices.size
    3
    """

    max_rows: int = 20_000

    def select(self, candidates: Candidates) -> Selection:
        """Select prototypes, see `select_prototypes`."""
        if candidates.kernel is None:
            raise InvalidInputError(
                "rule='rpcholesky' needs the kernel of the model: give kernel=, an object with "
                "kernel(X, Z) and kernel.diag(X)."
            )
        usable = None if candidates.weight is None else (candidates.weight > 0.0).astype(np.float64)
        rows = np.sort(random_order(candidates.X.shape[0], self.max_rows, candidates.rng, usable))
        labels = (
            np.zeros(rows.size, dtype=np.intp)
            if candidates.labels is None
            else candidates.labels[rows]
        )
        weight = np.ones(rows.size) if candidates.weight is None else candidates.weight[rows]
        size = min(candidates.size, rows.size)
        mass = np.bincount(labels, weight).astype(np.float64)
        room = class_quotas(mass, size, np.bincount(labels))
        X = candidates.X[rows].astype(np.float64)  # residuals in float32 are mostly rounding
        pivots, trials = _factorise(X, weight, labels, room, candidates.kernel, candidates.rng)
        warn_if_short(candidates.size, pivots.size, "rows that the kernel can tell apart")
        return Selection(rows[pivots], n_trials=trials, n_swaps=pivots.size)


def _factorise(
    X: FloatArray,
    weight: FloatArray,
    labels: IntArray,
    room: IntArray,
    kernel: Kernel,
    rng: Generator,
) -> tuple[IntArray, int]:
    """Return the pivots and how many candidates were drawn."""
    n, m = X.shape[0], int(room.sum())
    room = room.copy()
    factor = np.empty((n, m))
    residual = np.array(kernel.diag(X), dtype=np.float64)
    negligible = _RANK * residual
    pivots = np.empty(0, dtype=np.intp)
    trials = 0
    while pivots.size < m:
        chance = np.cumsum(weight * residual * (room[labels] > 0))
        if not chance[-1] > 0.0:
            break
        drawn = np.searchsorted(chance, rng.random(_DRAWN) * chance[-1], side="right")
        drawn = np.minimum(drawn, n - 1)
        trials += drawn.size
        known = factor[:, : pivots.size]
        block = np.asarray(kernel(X[drawn], X[drawn]), dtype=np.float64)
        block -= known[drawn] @ known[drawn].T
        level = rng.random(drawn.size) * residual[drawn]
        accepted, lower = _reject(block, level, negligible[drawn], labels[drawn], room)
        if accepted.size == 0:  # rounding: what was drawn has nothing left
            residual[drawn] = 0.0
            continue
        new = drawn[accepted]
        columns = np.asarray(kernel(X, X[new]), dtype=np.float64) - known @ known[new].T
        part = solve_triangular(lower, columns.T, lower=True, check_finite=False).T
        factor[:, pivots.size : pivots.size + new.size] = part
        residual -= np.einsum("ij,ij->i", part, part)
        residual[residual <= negligible] = 0.0
        residual[new] = 0.0
        pivots = np.append(pivots, new)
    return pivots, trials


def _reject(
    block: FloatArray, level: FloatArray, negligible: FloatArray, labels: IntArray, room: IntArray
) -> tuple[IntArray, FloatArray]:
    """Accept candidates in turn; return their positions and the Cholesky factor of their block.

    ``block`` is destroyed and ``room`` counted down.
    """
    accepted: list[int] = []
    columns = np.zeros_like(block)
    for j in range(level.size):
        left = block[j, j]
        if left <= max(level[j], negligible[j]) or room[labels[j]] == 0:
            continue
        column = block[:, j] / math.sqrt(left)
        block -= np.outer(column, column)
        columns[:, len(accepted)] = column
        accepted.append(j)
        room[labels[j]] -= 1
    chosen = np.array(accepted, dtype=np.intp)
    return chosen, np.tril(columns[chosen, : chosen.size])


RuleLike: TypeAlias = str | Rule | Callable[..., Any] | npt.ArrayLike

RULES: dict[str, type[RenyiEntropy] | type[Uniform] | type[KMeans] | type[RPCholesky]] = {
    "renyi": RenyiEntropy,
    "random": Uniform,
    "uniform": Uniform,
    "kmeans": KMeans,
    "rpcholesky": RPCholesky,
}


def select_prototypes(
    X: npt.ArrayLike,
    n_prototypes: int | None,
    rule: RuleLike = "random",
    *,
    y: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    kernel: Kernel | None = None,
    engine: Device | None = None,
    random_state: RandomState = None,
) -> Selection:
    """Choose the rows of X that become prototypes.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Training rows.
    n_prototypes : int or None
        How many. More than there are distinct rows of positive weight are reduced, with a warning.
        None only where ``rule`` is an array: all of it.
    rule : str, rule object, callable or array, default="random"
        ``"renyi"`` (`RenyiEntropy`), ``"random"`` or ``"uniform"`` (`Uniform`), ``"kmeans"``
        (`KMeans`), ``"rpcholesky"`` (`RPCholesky`), an object of one of these classes, or of any
        class with the method ``select(candidates)``;
        a function ``rule(X, n_prototypes, random_state)`` with an int as last argument that returns
        indices of rows or rows; or such indices, shape (m,), or rows, shape (m, d), themselves, of
        which the first ``n_prototypes`` are taken.
    y : array-like of int, shape (n,), optional
        Class labels: every class gets its share of the prototypes by weight, at least one. Not
        used with functions and arrays.
    sample_weight : array-like of shape (n,), optional
        Rows are drawn with probabilities proportional to these; rows of weight 0 are never chosen.
        Not used with functions and arrays.
    kernel : object, optional
        The model's kernel, with ``kernel(X, Z)`` and ``kernel.diag(X)``: needed by
        ``"rpcholesky"``, and by no other rule.
    engine : Device, optional
        What computes the entropies of ``"renyi"``: a device, useful from a few thousand prototypes
        on. By default NumPy.
    random_state : int, Generator, RandomState or None
        The same seed gives the same selection.

    Returns
    -------
    Selection
        Its ``indices`` are in an order of which every prefix is a selection.

    Notes
    -----
    [DeBrabanter2010, sections 4 and 5]. Costs are given with the rules; none but ``"rpcholesky"``
    uses memory of order n m.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.prototypes import select_prototypes
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> select_prototypes(X, 20, "renyi", random_state=0).prototypes(X).shape
    (20, 3)
    >>> select_prototypes(X, 2, [7, 5, 3]).indices.tolist()
    [7, 5]
    """
    rows = as_rows(X)
    if isinstance(rule, str):
        if rule not in RULES:
            raise not_known("rule", rule, f"give one of {sorted(RULES)}.")
        rule = RULES[rule]()
    rng = as_generator(random_state)
    if isinstance(rule, Rule):
        candidates = _task(rows, _size(n_prototypes), y, sample_weight, kernel, rng)
        return rule.select(replace(candidates, engine=engine))
    if callable(rule):
        size = _size(n_prototypes)
        return _of_rows(rows, rule(rows, size, int(rng.integers(2**31))), size)
    return _of_rows(rows, rule, None if n_prototypes is None else _size(n_prototypes))


def _size(n_prototypes: object) -> int:
    """Check the number of prototypes."""
    whole = isinstance(n_prototypes, numbers.Integral) and not isinstance(n_prototypes, bool)
    if not whole or int(n_prototypes) < 1:  # type: ignore[call-overload]
        raise not_usable("n_prototypes", n_prototypes, "give a positive int.")
    return int(n_prototypes)  # type: ignore[call-overload, no-any-return]


def _task(
    X: FloatArray,
    size: int,
    y: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
    kernel: Kernel | None,
    rng: np.random.Generator,
) -> Candidates:
    """Check the data."""
    n = X.shape[0]
    weight = check_weight(sample_weight, n)
    labels = None if y is None else as_labels(y, n)
    usable = n if weight is None else int(np.count_nonzero(weight))
    if labels is not None:
        classes = np.count_nonzero(np.bincount(labels, weight))
        if size < classes:
            warnings.warn(
                f"n_prototypes={size} is less than the {classes} classes: only the heaviest "
                f"classes get a prototype. Give n_prototypes={classes} or more, or leave y out.",
                NumericalWarning,
                stacklevel=3,
            )
    if size > usable:
        warn_if_short(size, usable, "rows of positive weight")
    return Candidates(X, min(size, usable), rng, weight, labels, kernel)


def _of_rows(X: FloatArray, chosen: npt.ArrayLike, size: int | None) -> Selection:
    """Take over indices or rows that somebody else chose."""
    array = np.asarray(chosen)
    n, d = X.shape
    if array.ndim == 2 and array.shape[1] == d and array.shape[0] > 0:
        rows = as_rows(array)[:size]
        selection = Selection(np.full(rows.shape[0], -1), rows=rows)
    elif array.ndim == 1 and array.size > 0 and array.dtype.kind in "iu":
        if array.min() < 0 or array.max() >= n or np.unique(array).size < array.size:
            raise InvalidInputError(
                f"The given indices of prototypes range from {array.min()} to {array.max()} with "
                f"{np.unique(array).size} different ones of {array.size}; different row numbers "
                f"from 0 to {n - 1} are needed."
            )
        selection = Selection(array.astype(np.intp)[:size])
    else:
        raise InvalidInputError(
            f"Prototypes were given with shape {array.shape} and type {array.dtype}; needed are "
            f"integer row numbers, shape (m,), or rows, shape (m, {d})."
        )
    if size is not None and array.shape[0] < size:
        raise InvalidInputError(
            f"n_prototypes={size} but only {array.shape[0]} prototypes were given; give more, or "
            f"n_prototypes={array.shape[0]} or less."
        )
    return selection
