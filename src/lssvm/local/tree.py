"""A tree that cuts rows into parts of equal size along directions of much variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray

_SAMPLED = 250_000  # rows that a tree is grown from
_LOOKED_AT = 20_000  # rows from which a direction is computed


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
        Numbers of the nodes below; a part p is -1 - p.
    n_parts : int
        How many parts there are.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import grow_tree
    >>> tree = grow_tree(np.arange(8.0)[:, None], part_size=4)
    >>> tree.route(np.array([[0.0], [7.0], [1000.0]])).tolist()
    [0, 1, 1]
    """

    directions: FloatArray
    thresholds: FloatArray
    children: IntArray
    n_parts: int

    def route(self, X: FloatArray) -> IntArray:
        """Return the number of the part of every row of X (n, d), shape (n,).

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

    def members(self, X: FloatArray) -> list[IntArray]:
        """Return the row numbers of every part.

        Parameters
        ----------
        X : array of shape (n, d)
            Mapped rows.
        """
        return self.split(self.route(X))

    def split(self, part: IntArray) -> list[IntArray]:
        """Return the row numbers of every part, from the part of every row.

        Parameters
        ----------
        part : int array of shape (n,)
            Number of the part of every row.
        """
        order = np.argsort(part, kind="stable").astype(np.intp)
        counts = np.bincount(part, minlength=self.n_parts)
        return np.split(order, np.cumsum(counts)[:-1])

    def without(self, part: int) -> Tree:
        """Return the tree in which the neighbour of a part takes its place.

        Parameters
        ----------
        part : int
            Number of the part; those after it count one less.
        """
        nodes: list[int] = []
        children: list[list[int]] = []

        def keep(node: int) -> int:
            if node < 0:
                return node + (-1 - node > part)
            left, right = self.children[node].tolist()
            if -1 - part in (left, right):
                return keep(right if left == -1 - part else left)
            number = len(nodes)
            nodes.append(node)
            children.append([])
            children[number] = [keep(left), keep(right)]
            return number

        keep(0)
        below = np.asarray(children, dtype=np.intp).reshape(-1, 2)
        return Tree(self.directions[nodes], self.thresholds[nodes], below, self.n_parts - 1)


def grow_tree(X: FloatArray, part_size: int, *, random: np.random.Generator | None = None) -> Tree:
    """Cut rows into parts of about equal size, none larger than ``part_size`` where possible.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows, mapped by the metric.
    part_size : int
        Rows of a part at most.
    random : Generator, optional
        None cuts along the direction of most variance. A generator draws directions in proportion
        to the spread of the rows along them: another tree each time.

    Returns
    -------
    Tree

    Notes
    -----
    A node of n rows holds q = ceil(n / part_size) parts, q // 2 of them on its left: the cut is
    the median where q is even. Equal rows are never separated; a part of equal rows only may
    therefore stay larger than ``part_size``. Of more than 250,000 rows every q-th is looked at:
    parts then vary a little in size.

    O(n d^2 log(n / part_size)) time.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import grow_tree
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> [len(rows) for rows in grow_tree(X, 300).members(X)]
    [300, 300, 300]
    """
    if len(X) > _SAMPLED:
        step = -(-len(X) // _SAMPLED)
        part_size, X = max(1, part_size // step), X[::step]
    directions: list[FloatArray] = []
    thresholds: list[float] = []
    children: list[list[int]] = []
    n_parts = 0
    # (rows, node above or None, side of it)
    waiting: list[tuple[IntArray, int | None, int]] = [(np.arange(len(X), dtype=np.intp), None, 0)]
    while waiting:
        rows, above, side = waiting.pop()
        cut = _cut(X, rows, part_size, random)
        if cut is None:
            number, n_parts = -1 - n_parts, n_parts + 1
        else:
            number = len(thresholds)
            direction, threshold, right = cut
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
        n_parts,
    )


def _cut(
    X: FloatArray, rows: IntArray, part_size: int, random: np.random.Generator | None
) -> tuple[FloatArray, float, BoolArray] | None:
    """Return (direction, threshold, which rows go right), or None where a part is small enough."""
    n = len(rows)
    parts = -(-n // max(part_size, 1))
    if parts < 2:
        return None
    looked = rows if n <= _LOOKED_AT else rows[:: -(-n // _LOOKED_AT)]
    spread = X[looked] - X[looked].mean(axis=0)
    values, vectors = np.linalg.eigh(spread.T @ spread)
    root = np.sqrt(np.maximum(values, 0.0))
    main = vectors[:, ::-1].T
    tried = list(main[: min(len(main), 4)])
    if random is not None:
        mixed = vectors @ (root * random.normal(size=len(root)))
        norm = float(np.linalg.norm(mixed))
        tried = [mixed / norm, *tried] if norm > 0 else tried
    for direction in tried:
        # A sign that does not depend on the library that found the vector.
        direction = direction * (1.0 if direction[np.argmax(np.abs(direction))] > 0 else -1.0)
        along = X[rows] @ direction
        threshold = _between(along, n * (parts // 2) // parts)
        if threshold is not None:
            return direction, threshold, along > threshold
    return None


def _between(values: FloatArray, count: int) -> float | None:
    """Return a threshold with about ``count`` values at or below it, between different values."""
    ordered = np.sort(values)
    tiny = 1e-9 * max(float(ordered[-1] - ordered[0]), abs(float(ordered[-1])) * 1e-3)
    changes = np.flatnonzero(np.diff(ordered) > tiny) + 1
    if not len(changes):
        return None
    place = int(changes[np.argmin(np.abs(changes - count))])
    return float((ordered[place - 1] + ordered[place]) / 2.0)
