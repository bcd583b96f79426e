"""Prototypes next to the centres of clusters."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from lssvm.prototypes.sampling import (
    Array,
    Indices,
    Keys,
    Rows,
    draw_distinct,
    interleaved,
    row_keys,
)
from lssvm.prototypes.selection import Selection, Task

_BLOCK = 4096
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

    def select(self, task: Task) -> Selection:
        """Select prototypes, see `select_prototypes`."""
        start = task.draw()  # how many distinct rows each class has to give
        if task.labels is None:
            usable = np.ones(len(task.X)) if task.weight is None else task.weight
            groups, starts = [np.flatnonzero(usable > 0.0)], [start]
        else:
            groups = task.class_rows()[0]
            starts = [start[task.labels[start] == c] for c in range(len(groups))]
        taken = np.empty(0, dtype=np.uint64)
        parts = []
        for rows, own in zip(groups, starts, strict=True):
            parts.append(self._cluster(task, rows, own.size, taken) if own.size else own)
            taken = np.append(taken, row_keys(task.X[parts[-1]]))
        return Selection(interleaved(parts), n_trials=sum(rows.size for rows in groups))

    def _cluster(self, task: Task, rows: Indices, size: int, taken: Keys) -> Indices:
        """Return so many of the rows, heaviest cluster first."""
        from sklearn.cluster import MiniBatchKMeans

        weight = None if task.weight is None else task.weight[rows]
        model = MiniBatchKMeans(
            n_clusters=size,
            n_init=1,
            max_iter=self.max_iter,
            batch_size=max(1024, 2 * size),
            random_state=int(task.rng.integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # clusters that stay empty are filled below
            member = model.fit_predict(task.X[rows], sample_weight=weight)
        mass = np.bincount(member, weight, minlength=size)
        centres = model.cluster_centers_[np.argsort(-mass, kind="stable")]
        return _nearest_distinct(task, rows, centres, taken)


def _nearest_distinct(task: Task, rows: Indices, centres: Rows, taken: Keys) -> Indices:
    """Return for every centre the nearest row with a content that no other one has."""
    chosen = np.full(centres.shape[0], -1, dtype=np.intp)
    open_ = np.arange(centres.shape[0])
    for _ in range(_PASSES):
        nearest = rows[_nearest(task.X, rows, centres[open_])]
        keys = row_keys(task.X[nearest])
        first = np.sort(np.unique(keys, return_index=True)[1])
        first = first[~np.isin(keys[first], taken)]
        chosen[open_[first]] = nearest[first]
        taken = np.append(taken, keys[first])
        open_ = np.delete(open_, first)
        if open_.size == 0:
            return chosen
        rows = rows[~np.isin(row_keys(task.X[rows]), taken)]
        if rows.size == 0:
            return chosen[chosen >= 0]
    rest = draw_distinct(task.X, open_.size, task.rng, task.weight, rows, taken)
    chosen[open_[: rest.size]] = rest
    return chosen[chosen >= 0]


def _nearest(X: Rows, rows: Indices, centres: Rows) -> Indices:
    """Return the position in ``rows`` of the row nearest to each centre."""
    best = np.full(centres.shape[0], np.inf)
    position = np.zeros(centres.shape[0], dtype=np.intp)
    for start in range(0, rows.size, _BLOCK):
        block = X[rows[start : start + _BLOCK]]
        squares: Array = np.einsum("ij,ij->i", block, block)[:, None] - 2.0 * (block @ centres.T)
        nearest = np.argmin(squares, axis=0)
        distance = squares[nearest, np.arange(centres.shape[0])]
        closer = distance < best
        best[closer] = distance[closer]
        position[closer] = start + nearest[closer]
    return position
