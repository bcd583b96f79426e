"""Where rows stand on a lattice, and how far apart its places are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from scipy.sparse.linalg import ArpackError, LinearOperator, svds

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, not_known, not_usable
from lssvm._core.namespace import Array, is_sparse, to_numpy
from lssvm._core.threads import slices

LAYOUTS = ("sorted", "plain")
"""How rows are laid on the lattice."""

_PAIRS = 4096  # pairs of places from which the spacings are estimated
_AT_ONCE = 2**20  # numbers of the pairs' rows that are held at once
_WIDE = 2000  # more features than this: principal directions without the covariance matrix


@dataclass(frozen=True)
class Lattice:
    """Rows laid on a lattice of p levels.

    Attributes
    ----------
    places : int array of shape (N,)
        The row at each place, the last level running fastest. A row may stand at two places.
    shape : tuple of int
        Sides n_0, ..., n_{p-1}; their product is N.
    spacing : array of shape (p,)
        Distances h_s between neighbours.
    n : int
        Number of rows, at most N.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.solvers import lay_rows
    >>> lattice = lay_rows(np.array([[3.0], [1.0], [2.0], [0.0]]), levels=1)
    >>> lattice.places, lattice.spacing.round(6)
    (array([3, 1, 2, 0]), array([1.]))
    """

    places: IntArray
    shape: tuple[int, ...]
    spacing: FloatArray
    n: int

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the levels in an array of shape ``(*shape, k)``."""
        return tuple(range(len(self.shape)))

    def spread(self, V: FloatArray) -> FloatArray:
        """Put the values of the rows (n, k) at their places, one array per column."""
        return V[self.places].reshape(*self.shape, V.shape[1])

    def gather(self, V: FloatArray) -> FloatArray:
        """Add the values (N, k) at all places of each row, shape (n, k)."""
        flat = V.reshape(len(self.places), -1)
        first = self.first()
        out = flat[first]
        if len(self.places) > self.n:
            spare = np.ones(len(self.places), dtype=bool)
            spare[first] = False
            np.add.at(out, self.places[spare], flat[spare])
        return out

    def first(self) -> IntArray:
        """Return one place of each row, shape (n,)."""
        place = np.empty(self.n, dtype=np.intp)
        place[self.places[::-1]] = np.arange(len(self.places))[::-1]
        return place


def lattice_shape(n: int, levels: int) -> tuple[int, ...]:
    """Return sides of a lattice that has room for ``n`` rows.

    Sides within a quarter of the p-th root of n are tried; the fewest spare places win, then the
    most equal sides: theorems 5 and 6 of [Ding2011]_ ask for a long shortest side, and the
    transform is fast for sides of any length.

    Parameters
    ----------
    n, levels : int
        Rows.

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> from lssvm.solvers import lattice_shape
    >>> lattice_shape(1300, 2), lattice_shape(1009, 3), lattice_shape(7, 1)
    ((31, 42), (9, 9, 13), (7,))
    """
    if levels == 1:
        return (n,)
    root = n ** (1.0 / levels)
    sides = {round(root), *range(math.ceil(0.8 * root), math.floor(1.25 * root) + 1)}
    shapes = [(side, *lattice_shape(-(-n // side), levels - 1)) for side in sorted(sides)]
    return min(shapes, key=lambda shape: (int(np.prod(shape)), max(shape) - min(shape)))


def check_layout(levels: int, layout: str) -> None:
    """Raise where `lay_rows` does not know a setting."""
    if levels not in (1, 2, 3):
        raise not_usable("levels", levels, "give 1, 2 or 3.")
    if layout not in LAYOUTS:
        raise not_known("layout", layout, f"choose one of {LAYOUTS}.")


def lay_rows(X: Array, *, levels: int = 2, layout: str = "sorted") -> Lattice:
    """Lay rows on a lattice and estimate its spacings.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Rows.
    levels : {1, 2, 3}, default=2
        At most d of them are used by the sorted layout.
    layout : {"sorted", "plain"}, default="sorted"
        "sorted" sorts all rows along the first principal direction, cuts them into n_0 parts, sorts
        each along the second direction, and so on. "plain" leaves them as they come.

    Returns
    -------
    Lattice

    Notes
    -----
    [Ding2011]_ says neither how rows are laid nor how h is set. Here h^2 is the non-negative least
    squares fit of squared lattice distances, sum_s (j_s - l_s)^2 h_s^2, to the squared distances
    of 4,096 pairs of rows (always the same pairs of places). Where n has no product with sides
    of nearly equal length, the next larger lattice is taken and its spare places (in two levels
    fewer than the shorter side) repeat rows, evenly spread over the order: such a row counts twice.

    Time O(n d^2 + p n log n), memory O(n p + d^2).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.solvers import lay_rows
    >>> lattice = lay_rows(np.random.default_rng(0).random((100, 3)))
    >>> lattice.shape, len(lattice.spacing)
    ((10, 10), 2)
    """
    check_layout(levels, layout)
    n = int(X.shape[0])
    if layout == "sorted":
        levels = max(1, min(levels, int(X.shape[1])))
    shape = lattice_shape(n, levels)
    spare = int(np.prod(shape)) - n
    filled = np.sort(np.concatenate([np.arange(n), (np.arange(spare) * n) // max(1, spare)]))
    if layout == "plain":
        places = filled
    else:
        P = _projections(X, levels)
        places = np.argsort(P[:, 0], kind="stable")[filled]
        size = len(places)
        for level in range(1, levels):
            size //= shape[level - 1]
            part = np.arange(len(places)) // size
            places = places[np.lexsort((P[places, level], part))]
    places = places.astype(np.intp)
    return Lattice(places, shape, _spacing(X, places, shape), n)


def _projections(X: Array, levels: int) -> FloatArray:
    """Return the rows along the leading principal directions, shape (n, levels)."""
    n, d = X.shape
    if is_sparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
    else:
        X = to_numpy(X).astype(np.float64, copy=False)
        mean = X.mean(axis=0)
    if d > _WIDE and levels < min(n, d):
        centred = LinearOperator(
            (n, d),
            matvec=lambda v: X @ v.ravel() - mean @ v.ravel(),
            rmatvec=lambda v: X.T @ v.ravel() - mean * v.sum(),
            dtype=np.float64,
        )
        start = np.random.default_rng(0).standard_normal(min(n, d))
        try:
            directions = svds(centred, levels, rng=0, v0=start)[2][::-1].T
        except ArpackError:  # equal rows have no directions: any do
            directions = np.eye(d, levels)
    else:
        if is_sparse(X):
            product = (X.T @ X).toarray() - n * np.outer(mean, mean)
        else:  # centred first: far from the origin the difference would be all rounding
            X, mean = X - mean, np.zeros(d)
            product = X.T @ X
        _, vectors = np.linalg.eigh(product)
        directions = vectors[:, ::-1][:, :levels]
    return np.asarray(X @ directions - mean @ directions)


def _spacing(X: Array, places: IntArray, shape: tuple[int, ...]) -> FloatArray:
    """Fit the spacings to the distances of pairs of rows, shape (p,)."""
    rng = np.random.default_rng(0)
    pairs = rng.integers(len(places), size=(2, min(_PAIRS, len(places) ** 2)))
    rows = places[pairs]
    squares = np.empty(rows.shape[1])
    for part in slices(len(squares), max(1, _AT_ONCE // X.shape[1])):
        difference = X[rows[0, part]] - X[rows[1, part]]
        if is_sparse(difference):
            squares[part] = np.asarray(difference.multiply(difference).sum(axis=1)).ravel()
        else:
            squares[part] = (to_numpy(difference).astype(np.float64) ** 2).sum(axis=1)
    if not np.all(np.isfinite(squares)):
        raise InvalidInputError(
            "Squared distances between the rows overflow, so they cannot be laid on a lattice: "
            "scale the features (StandardScaler)."
        )
    j, i = (np.stack(np.unravel_index(side, shape), 1).astype(float) for side in pairs)
    scale = float(squares.max(initial=0.0)) or 1.0
    h2, _ = nnls((j - i) ** 2, squares / scale)
    return np.asarray(np.sqrt(h2 * scale))
