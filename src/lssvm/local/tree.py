"""A tree that splits rows into leaves of equal size along directions of much variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray

_SAMPLED = 250_000  # rows that a tree is grown from
_LOOKED_AT = 20_000  # rows from which a direction is computed
_WIDE = 256  # features beyond which directions are iterated
_WIDE_ENTRIES = 2**23  # numbers from which they are computed then
_DIRECTIONS = 4  # that a node tries
_ITERATIONS = 8


@dataclass(frozen=True, eq=False)
class Tree:
    """Where a row belongs: left while ``x @ direction <= threshold``, else right.

    Attributes
    ----------
    directions : array of shape (q, d)
        Of the q inner nodes; the first is the root.
    thresholds : array of shape (q,)
        Of the inner nodes.
    children : int array of shape (q, 2)
        Numbers of the nodes below; a leaf p is -1 - p.
    n_leaves : int
        How many leaves there are.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import grow_tree
    >>> tree = grow_tree(np.arange(8.0)[:, None], leaf_size=4)
    >>> tree.route(np.array([[0.0], [7.0], [1000.0]])).tolist()
    [0, 1, 1]
    """

    directions: FloatArray
    thresholds: FloatArray
    children: IntArray
    n_leaves: int

    def route(self, X: FloatArray) -> IntArray:
        """Return the number of the leaf of every row of X (n, d), shape (n,).

        Parameters
        ----------
        X : array of shape (n, d)
            Mapped rows.
        """
        out = np.zeros(len(X), dtype=np.intp)
        if not len(self.thresholds):
            return out
        waiting = [(0, np.arange(len(X), dtype=np.intp))]
        while waiting:
            node, rows = waiting.pop()
            right = X[rows] @ self.directions[node] > self.thresholds[node]
            for side, chosen in enumerate((rows[~right], rows[right])):
                child = int(self.children[node, side])
                if child < 0:
                    out[chosen] = -1 - child
                elif len(chosen):
                    waiting.append((child, chosen))
        return out

    def rows_by_leaf(self, X: FloatArray) -> list[IntArray]:
        """Return the row numbers of every leaf.

        Parameters
        ----------
        X : array of shape (n, d)
            Mapped rows.
        """
        return self.split(self.route(X))

    def split(self, leaf: IntArray) -> list[IntArray]:
        """Return the row numbers of every leaf, from the leaf of every row.

        Parameters
        ----------
        leaf : int array of shape (n,)
            Number of the leaf of every row.
        """
        order = np.argsort(leaf, kind="stable").astype(np.intp)
        counts = np.bincount(leaf, minlength=self.n_leaves)
        return np.split(order, np.cumsum(counts)[:-1])

    def without(self, leaf: int) -> Tree:
        """Return the tree in which the neighbour of a leaf takes its place.

        Parameters
        ----------
        leaf : int
            Number of the leaf; those after it count one less.
        """
        nodes: list[int] = []
        children: list[list[int]] = []

        def keep(node: int) -> int:
            if node < 0:
                return node + (-1 - node > leaf)
            left, right = self.children[node].tolist()
            if -1 - leaf in (left, right):
                return keep(right if left == -1 - leaf else left)
            number = len(nodes)
            nodes.append(node)
            children.append([])
            children[number] = [keep(left), keep(right)]
            return number

        keep(0)
        below = np.asarray(children, dtype=np.intp).reshape(-1, 2)
        return Tree(self.directions[nodes], self.thresholds[nodes], below, self.n_leaves - 1)


def grow_tree(X: FloatArray, leaf_size: int, *, random: np.random.Generator | None = None) -> Tree:
    """Split rows into leaves of about equal size, none larger than ``leaf_size`` where possible.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows, mapped by the metric.
    leaf_size : int
        Rows of a leaf at most.
    random : Generator, optional
        None splits along the direction of most variance. A generator draws directions in proportion
        to the spread of the rows along them: another tree each time.

    Returns
    -------
    Tree

    Notes
    -----
    A node of n rows holds q = ceil(n / leaf_size) leaves, q // 2 of them on its left: the threshold
    is the median where q is even. Equal rows are never separated; a leaf of equal rows only may
    therefore stay larger than ``leaf_size``. Of more than 250,000 rows every q-th is looked at:
    leaves then vary a little in size.

    O(n d^2 log(n / leaf_size)) time, of more than 256 features O(n d log(n / leaf_size)).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import grow_tree
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> [len(rows) for rows in grow_tree(X, 300).rows_by_leaf(X)]
    [300, 300, 300]
    """
    if len(X) > _SAMPLED:
        step = -(-len(X) // _SAMPLED)
        leaf_size, X = max(1, leaf_size // step), X[::step]
    directions: list[FloatArray] = []
    thresholds: list[float] = []
    children: list[list[int]] = []
    n_leaves = 0
    # (rows, node above or None, side of it)
    waiting: list[tuple[IntArray, int | None, int]] = [(np.arange(len(X), dtype=np.intp), None, 0)]
    while waiting:
        rows, above, side = waiting.pop()
        split = _split(X, rows, leaf_size, random)
        if split is None:
            number, n_leaves = -1 - n_leaves, n_leaves + 1
        else:
            number = len(thresholds)
            direction, threshold, right = split
            directions.append(direction)
            thresholds.append(threshold)
            children.append([0, 0])
            waiting += [(rows[right], number, 1), (rows[~right], number, 0)]
        if above is not None:
            children[above][side] = number
    d = X.shape[1]
    return Tree(
        np.asarray(directions, dtype=np.float64).reshape(-1, d),
        np.asarray(thresholds, dtype=np.float64),
        np.asarray(children, dtype=np.intp).reshape(-1, 2),
        n_leaves,
    )


def _split(
    X: FloatArray, rows: IntArray, leaf_size: int, random: np.random.Generator | None
) -> tuple[FloatArray, float, BoolArray] | None:
    """Return (direction, threshold, which rows go right), or None where a leaf is small enough."""
    n = len(rows)
    leaves = -(-n // max(leaf_size, 1))
    if leaves < 2:
        return None
    tried = _directions(X, rows, random)
    for direction in tried:
        # A sign that does not depend on the library that found the vector.
        direction = direction * (1.0 if direction[np.argmax(np.abs(direction))] > 0 else -1.0)
        along = X[rows] @ direction
        threshold = _between(along, n * (leaves // 2) // leaves)
        if threshold is not None:
            return direction, threshold, along > threshold
    return None


def _directions(
    X: FloatArray, rows: IntArray, random: np.random.Generator | None
) -> list[FloatArray]:
    """Return the directions of most variance of some rows, the first at random if one is given."""
    wide = X.shape[1] > _WIDE
    most = max(_WIDE_ENTRIES // X.shape[1], 4 * _DIRECTIONS) if wide else _LOOKED_AT
    looked = rows if len(rows) <= most else rows[:: -(-len(rows) // most)]
    spread = X[looked] - X[looked].mean(axis=0)
    if wide:
        tried = list(_iterated(spread))
        mixed = None if random is None else random.normal(size=len(spread)) @ spread
    else:
        values, vectors = np.linalg.eigh(spread.T @ spread)
        root = np.sqrt(np.maximum(values, 0.0))
        tried = list(vectors[:, ::-1].T[:_DIRECTIONS])
        mixed = None if random is None else vectors @ (root * random.normal(size=len(root)))
    norm = 0.0 if mixed is None else float(np.linalg.norm(mixed))
    return tried if mixed is None or norm == 0 else [mixed / norm, *tried]


def _iterated(spread: FloatArray) -> FloatArray:
    """Return directions of much variance of centred rows (m, d), as rows: subspace iteration.

    It begins with rows, so that the order of the features changes nothing.
    """
    basis = spread[:: -(-len(spread) // (2 * _DIRECTIONS))].T
    for _ in range(_ITERATIONS):
        basis = spread.T @ (spread @ np.linalg.qr(basis)[0])
    basis = np.linalg.qr(basis)[0]
    right = np.linalg.svd(spread @ basis, full_matrices=False)[2]
    return np.asarray((right @ basis.T)[:_DIRECTIONS])


def _between(values: FloatArray, count: int) -> float | None:
    """Return a threshold with about ``count`` values at or below it, between different values."""
    ordered = np.sort(values)
    tiny = 1e-9 * max(float(ordered[-1] - ordered[0]), abs(float(ordered[-1])) * 1e-3)
    changes = np.flatnonzero(np.diff(ordered) > tiny) + 1
    if not len(changes):
        return None
    place = int(changes[np.argmin(np.abs(changes - count))])
    return float((ordered[place - 1] + ordered[place]) / 2.0)
