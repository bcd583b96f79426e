"""Kernels of a distance: Gaussian (RBF), Matern, exponential and Laplacian."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist

from lssvm._core.arrays import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    device,
    get_namespace,
    is_numpy,
    is_sparse,
)
from lssvm._core.blocks import run_blocks, slices
from lssvm._core.errors import InvalidInputError, not_known, not_usable
from lssvm.kernels import compiled
from lssvm.kernels.base import Evaluate, Kernel, pull
from lssvm.kernels.dot import row_products, row_squares

Distance: TypeAlias = Literal["sqeuclidean", "euclidean", "cityblock"]

DISTANCES: tuple[Distance, ...] = ("sqeuclidean", "euclidean", "cityblock")
"""Squared Euclidean, Euclidean, and the sum of absolute differences."""

_CLOSE = 1e-6  # squared distances below this share of the squared norms are computed anew
_FILLED = 256  # rows of a block
_TWO_VALUED = 4  # columns of two values from which on a product is faster than differences


Between: TypeAlias = Callable[[slice, slice], FloatArray]
"""From a range of rows of X and one of Z to their distances."""


def distances(
    X: FloatArray, Z: FloatArray, kind: Distance, *, pairs: int | None = None
) -> FloatArray:
    """Return the distances between two sets of rows.

    Euclidean ones are one matrix product of n m d multiplications, with rows centred on the mean of
    ``Z``; pairs that lie so close that rounding would show are computed anew by differences. In the
    sum of absolute differences a column of two values a and b needs no absolute value, since there
    :math:`|x - z| = (x - z)^2 / |a - b|`: such columns (the levels of a category) go through the
    matrix product too, ten times as fast. No temporary of n m d numbers.
    """
    return _between(X, Z, kind, pairs)(slice(len(X)), slice(len(Z)))


def _between(
    X: FloatArray,
    Z: FloatArray,
    kind: Distance,
    pairs: int | None = None,
    dtype: type[np.floating[Any]] = np.float64,
) -> Between:
    """Return what computes the distances of ranges of rows; absolute ones in the given type."""
    if kind == "cityblock":
        return _cityblock(X, Z, pairs, dtype)
    if kind not in DISTANCES:
        raise not_known("distance", kind, f"choose one of {DISTANCES}.")
    squares = _squares(X, Z)
    if kind == "sqeuclidean":
        return squares

    def roots(rows: slice, columns: slice) -> FloatArray:
        D = squares(rows, columns)
        return np.sqrt(D, out=D)

    return roots


def _squares(X: FloatArray, Z: FloatArray) -> Between:
    """Return what computes squared Euclidean distances."""
    centre = Z.mean(axis=0) if len(Z) else np.zeros(Z.shape[1])
    X, Z = X - centre, Z - centre
    xx, zz = np.einsum("ij,ij->i", X, X), np.einsum("ij,ij->i", Z, Z)
    A, B = _factors(X, xx, Z, zz)

    def between(rows: slice, columns: slice) -> FloatArray:
        D = A[rows] @ B[columns].T
        x, z = xx[rows], zz[columns]
        if D.size:
            near = np.flatnonzero(D < _CLOSE * (x.max() + z.max()))
            i, j = np.divmod(near, D.shape[1])
            close = D[i, j] < _CLOSE * (x[i] + z[j])
            i, j = i[close], j[close]
            for part in slices(len(i), 2**16):
                gap = X[rows][i[part]] - Z[columns][j[part]]
                D[i[part], j[part]] = np.einsum("ij,ij->i", gap, gap)
        return np.asarray(D)

    return between


def _factors(
    X: FloatArray, xx: FloatArray, Z: FloatArray, zz: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return A and B with A B^T = xx + zz - 2 X Z^T: one product in place of three passes."""
    A = np.column_stack([X, xx, np.ones_like(xx)])
    return A, np.column_stack([-2.0 * Z, np.ones_like(zz), zz])


def two_valued(X: FloatArray, Z: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Return which columns hold two values in both sets of rows, and how far apart they are."""
    d = X.shape[1]
    if not len(X) or not len(Z):
        return np.zeros(d, dtype=bool), np.ones(d)
    low = np.minimum(X.min(axis=0), Z.min(axis=0))
    high = np.maximum(X.max(axis=0), Z.max(axis=0))
    few = np.logical_and(*(((A == low) | (A == high)).all(axis=0) for A in (X, Z)))
    return few, np.where(high > low, high - low, 1.0)


def _cityblock(
    X: FloatArray, Z: FloatArray, pairs: int | None, dtype: type[np.floating[Any]]
) -> Between:
    """Return what computes sums of absolute differences; columns of two values by a product."""
    few, gap = two_valued(X, Z)
    if few.sum() < _TWO_VALUED:
        few[:] = False
    many_X, many_Z = (np.ascontiguousarray(rows[:, ~few], dtype=dtype) for rows in (X, Z))

    def absolute(rows: slice, columns: slice) -> FloatArray:
        x, z = many_X[rows], many_Z[columns]
        D = compiled.cityblock(x, z, pairs)
        return np.asarray(cdist(x, z, "cityblock")) if D is None else D

    if not few.any():
        return absolute
    factor = 1.0 / np.sqrt(gap[few])
    # One of the two values becomes 0: a common offset costs no digits.
    A, B = ((rows[:, few] - Z[0, few]) * factor for rows in (X, Z))
    squares = (np.einsum("ij,ij->i", rows, rows) for rows in (A, B))
    A, B = (rows.astype(dtype) for rows in _factors(A, next(squares), B, next(squares)))

    def between(rows: slice, columns: slice) -> FloatArray:
        D = A[rows] @ B[columns].T
        # Rounding of equal rows is taken away: sums of the gaps are no smaller than the least gap.
        D[D < 1e-9 * gap[few].min()] = 0.0
        return D if few.all() else np.add(D, absolute(rows, columns), out=D)

    return between


def fill_distances(
    X: FloatArray,
    kind: Distance,
    out: FloatArray,
    *,
    threads: int = 1,
    half: bool = False,
    pairs: int | None = None,
) -> FloatArray:
    """Write the distances of all pairs of rows into a symmetric matrix; return it.

    With ``half`` only the triangle above the diagonal is written, and some numbers below it. With
    many ``pairs`` (by default those of the matrix) compiled loops are used, in the type of ``out``.
    """
    pairs = len(X) ** 2 // 2 if pairs is None else pairs
    between = _between(X, X, kind, pairs, out.dtype.type)

    def fill(block: slice) -> None:
        if half:
            out[block, block.start :] = between(block, slice(block.start, len(X)))
            return
        values = between(block, slice(block.stop))
        out[block, : block.stop] = values
        out[: block.start, block] = values[:, : block.start].T

    run_blocks(fill, slices(len(X), _FILLED), threads)
    np.fill_diagonal(out, 0.0)
    return out


_NARROW = 18  # columns
_NO_DIGITS = 1e-3  # rounding of an exponent above which a product has no digits left
_FARTHEST = 1e4  # scaled distance beyond which a kernel is 0, and a polynomial of it might overflow
_EXACT = 1e-13  # rounding of an exponent that does not show


def _scaled(X: Array, factors: Any) -> Array:
    """Multiply the columns of ``X`` (n, d) by ``factors`` (d,)."""
    if is_sparse(X):
        return X.multiply(np.asarray(factors)[None, :]).tocsr()
    xp = get_namespace(X)
    return X * xp.asarray(np.array(factors), dtype=X.dtype, device=device(X))[None, :]


def _in_double(X: FloatArray, Z: FloatArray, factors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rows times factors in double precision: single precision may not hold them."""
    return np.asarray(X, np.float64) * factors, np.asarray(Z, np.float64) * factors


def _by_differences(X: Array, Z: Array, *, squared: bool) -> Array:
    """Return the sums over features of |x - z| or (x - z)^2, shape (n, m), one feature at a time.

    For arrays that SciPy does not take; on a GPU four times as fast as torch.cdist.
    """
    xp = get_namespace(X, Z)
    total = xp.zeros((X.shape[0], Z.shape[0]), dtype=X.dtype, device=device(X))
    for j in range(X.shape[1]):
        gap = X[:, j][:, None] - Z[:, j][None, :]
        total += gap * gap if squared else xp.abs(gap)
    return total


@dataclass(frozen=True, eq=False)
class _Exponents:
    """-gamma ||x - z||^2 for fixed ``Z``, as one product A B^T of inner size d + 2.

    Rows are centred on the mean of ``Z`` first, so that a common offset costs no digits.
    """

    Z: Array
    gamma: float
    centre: Array
    B: Array  # (m, d + 2)
    largest: float  # of gamma ||z||^2
    local: threading.local = field(default_factory=threading.local)

    @classmethod
    def of(cls, Z: Array, gamma: float, xp: Any) -> _Exponents:
        centre = xp.mean(Z, axis=0, keepdims=True)
        moved = Z - centre
        zz = xp.sum(moved * moved, axis=1, keepdims=True)
        with np.errstate(over="ignore"):  # beyond float32: then differences are taken
            B = xp.concat([2.0 * gamma * moved, xp.ones_like(zz), -gamma * zz], axis=1)
        largest = gamma * float(xp.max(zz)) if zz.shape[0] else 0.0
        return cls(Z, gamma, centre, B, largest)

    def __call__(self, X: Array, out: FloatArray | None) -> Array:
        """Return the exponents (n, m); rounding leaves them below 1e-12 where they should be 0."""
        if not is_numpy(X):
            return self._on_device(X)
        if X.dtype != self.B.dtype:
            X = X.astype(np.result_type(X.dtype, self.B.dtype))
        n, d = X.shape
        A = self._room(n, X.dtype)
        moved = np.subtract(X.T, self.centre.T, out=A.T[:d])
        with np.errstate(over="ignore"):
            np.multiply(np.einsum("ij,ij->j", moved, moved), -self.gamma, out=A[:, d])
        lost = max(self.largest, -float(A[:, d].min(initial=0.0))) * float(np.finfo(A.dtype).eps)
        if lost > _NO_DIGITS:
            with np.errstate(over="ignore"):  # exp(-inf) is 0
                return (-self.gamma * cdist(X, self.Z, "sqeuclidean")).astype(A.dtype, copy=False)
        result = np.matmul(A, self.B.T, out=out)
        return result if lost < _EXACT else np.minimum(result, 0.0, out=result)

    def _room(self, n: int, dtype: Any) -> FloatArray:
        """Return this thread's room for A (n, d + 2), kept as fresh pages cost time.

        Its last column is ones. Few columns are filled faster one by one.
        """
        room = getattr(self.local, "room", None)
        if room is None or len(room) < n or room.dtype != dtype:
            width = self.B.shape[1]
            room = np.ones((n, width), dtype=dtype, order="F" if width <= _NARROW else "C")
            self.local.room = room
        return np.asarray(room[:n])

    def _on_device(self, X: Array) -> Array:
        xp = get_namespace(X, self.B)
        moved = X - self.centre
        xx = xp.sum(moved * moved, axis=1, keepdims=True)
        largest = self.gamma * float(xp.max(xx)) if xx.shape[0] else 0.0
        lost = max(self.largest, largest) * float(xp.finfo(X.dtype).eps)
        if lost > _NO_DIGITS:
            return -self.gamma * _by_differences(X, self.Z, squared=True)
        A = xp.concat([moved, -self.gamma * xx, xp.ones_like(xx)], axis=1)
        product = xp.matmul(A, xp.permute_dims(self.B, (1, 0)))
        if lost < _EXACT:
            return product
        return xp.minimum(product, xp.zeros((), dtype=product.dtype, device=device(product)))


def _minus_scaled_squares(Z: Array, gamma: Any) -> Callable[[Array, FloatArray | None], Array]:
    """Return the function of (X, out) that gives -gamma ||x - z||^2, shape (n, m)."""
    root = np.sqrt(np.asarray(gamma)) if np.ndim(gamma) == 1 else None
    Z, gamma = (Z, float(gamma)) if root is None else (_scaled(Z, root), 1.0)
    dense = None if is_sparse(Z) else _Exponents.of(Z, gamma, get_namespace(Z))

    def evaluate(X: Array, out: FloatArray | None) -> Array:
        X = X if root is None else _scaled(X, root)
        if dense is not None and not is_sparse(X):
            return dense(X, out)
        squares = row_squares(X)[:, None] + row_squares(Z)[None, :]
        return np.minimum(gamma * (2.0 * row_products(X, Z) - squares), 0.0)

    return evaluate


@dataclass(frozen=True, eq=False)
class _Radial(Kernel):
    """What kernels of a distance have in common: a scale for all features, or one for each."""

    gamma: Any = 1.0
    radial: ClassVar[bool] = True
    compiled_distance: ClassVar[str | None] = None  # where loops beat matrix products

    def __post_init__(self) -> None:
        values = np.asarray(0.0 if self.gamma is None else self.gamma)
        if not (values.ndim <= 1 and np.all(np.isfinite(values)) and np.all(values >= 0)):
            needed = "a kernel needs a finite value >= 0, or one such value per feature."
            raise not_usable("gamma", self.gamma, needed)

    def diag(self, X: Array) -> Array:
        """Return ones, shape (n,)."""
        if is_sparse(X):
            return np.ones(X.shape[0], dtype=X.dtype)
        return get_namespace(X).ones(X.shape[0], dtype=X.dtype, device=device(X))

    def _per_feature(self, X: Array) -> FloatArray:
        """Return gamma for every column of ``X``, shape (d,)."""
        return np.broadcast_to(np.asarray(self.gamma, dtype=float), (X.shape[1],))

    def fused(self, Z: Array, coef: FloatArray, *, pairs: int, dtype: Any) -> compiled.AddTo | None:
        """Return compiled loops that add K(x, Z) coef to outputs of blocks of rows, or None."""
        if self.compiled_distance is None:
            return None
        factors, dtype = self._per_feature(Z), np.result_type(dtype, np.float32)
        add = compiled.expansion(
            self.compiled_distance, Z * factors, coef, pairs=pairs, dtype=dtype
        )
        return None if add is None else lambda rows, out: add(rows * factors, out)


@dataclass(frozen=True, eq=False)
class RBF(_Radial):
    """Gaussian kernel exp(-gamma ||x - z||^2).

    Parameters
    ----------
    gamma : float or array of shape (d,)
        1/sigma^2 of [Suykens2002]_, eq. (3.13); one value per feature gives eq. (3.69) with
        gamma_i = 1/(2 sigma_i^2) (automatic relevance determination).

    Notes
    -----
    One matrix product of inner size d + 2 yields the exponents, one pass over the block finishes
    it: n m (2 d + 4) operations and n m exponentials, no temporary of size (n, m).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> RBF(0.5)(np.array([[0.0], [2.0]]), np.array([[0.0]])).round(4).ravel()
    array([1.    , 0.1353])
    """

    name: ClassVar[str] = "rbf"
    accepts_sparse: ClassVar[bool] = True

    def __call__(self, X: Array, Z: Array, out: FloatArray | None = None) -> Array:
        """Return exp(-gamma ||x - z||^2), shape (n, m)."""
        return self.against(Z)(X, out)

    def against(self, Z: Array) -> Evaluate:
        """Return the kernel with fixed ``Z`` (m, d), a function of ``X`` and ``out``."""
        exponents = _minus_scaled_squares(Z, self.gamma)

        def evaluate(X: Array, out: FloatArray | None = None) -> Array:
            exponent = exponents(X, out)
            if is_numpy(exponent):
                return np.exp(exponent, out=exponent)
            return get_namespace(exponent).exp(exponent)

        return evaluate

    def gradient(self, X: FloatArray, Z: FloatArray, coef: FloatArray) -> FloatArray:
        """Return -2 gamma sum_j coef_j K(x, z_j) (x - z_j), shape (n, k, d)."""
        return -2.0 * np.asarray(self.gamma) * pull(self(X, Z), X, Z, coef)


@dataclass(frozen=True, eq=False)
class Matern(_Radial):
    """Matern kernel of order nu = 1/2, 3/2 or 5/2.

    Parameters
    ----------
    gamma : float, array of shape (d,) or None, default=None
        Inverse squared length scale: the length scale is 1/sqrt(2 gamma), so that the kernel tends
        to ``RBF(gamma)`` as nu grows. None: that of the estimator, which may tune it.
    nu : {0.5, 1.5, 2.5}, default=1.5
        The order: functions of the model are nu - 1/2 times differentiable.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Matern
    >>> Matern(0.5, nu=0.5)(np.array([[0.0]]), np.array([[1.0]])).round(4)
    array([[0.3679]])
    """

    gamma: Any = None
    nu: float = 1.5
    name: ClassVar[str] = "matern"
    accepts_sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu not in (0.5, 1.5, 2.5):
            raise not_usable("nu", self.nu, "the Matern kernel has nu = 0.5, 1.5 or 2.5.")

    def __call__(self, X: Array, Z: Array, out: FloatArray | None = None) -> Array:
        """Return the kernel values, shape (n, m)."""
        if self.gamma is None:
            raise InvalidInputError(f"{self!r} has no gamma yet: give it, or use an estimator's.")
        root = np.sqrt(self._per_feature(X))
        if is_numpy(X) and is_numpy(Z):  # the root of a rounded square would cost half the digits
            distance = np.minimum(cdist(*_in_double(X, Z, root)), _FARTHEST).astype(X.dtype)
        elif is_sparse(X) or is_sparse(Z):
            distance = np.sqrt(-_minus_scaled_squares(Z, self.gamma)(X, None))
        else:
            square = _by_differences(_scaled(X, root), _scaled(Z, root), squared=True)
            distance = get_namespace(square).sqrt(square)
        xp = get_namespace(distance)
        t = distance * (2.0 * math.sqrt(self.nu))  # sqrt(2 nu) ||x - z|| sqrt(2 gamma)
        if self.nu == 0.5:
            return xp.exp(-t)
        return (1.0 + t if self.nu == 1.5 else 1.0 + t + t * t / 3.0) * xp.exp(-t)

    def gradient(self, X: FloatArray, Z: FloatArray, coef: FloatArray) -> FloatArray:
        """Return sum_j coef_j K'(t_j) dt_j/dx with t the scaled distance, shape (n, k, d)."""
        root = np.sqrt(self._per_feature(X))
        U, V = X * root, Z * root
        c = 2.0 * math.sqrt(self.nu)
        t = c * cdist(U, V)
        decay = np.exp(-t)  # K'(t) / t: -e^-t / t, -e^-t, -(1 + t) e^-t / 3
        if self.nu == 0.5:
            slope = np.divide(-decay, t, out=np.zeros_like(t), where=t > 0)
        else:
            slope = -decay if self.nu == 1.5 else -(1.0 + t) * decay / 3.0
        return c * c * root * pull(slope, U, V, coef)


@dataclass(frozen=True, eq=False)
class Exponential(_Radial):
    """Exponential kernel exp(-gamma ||x - z||).

    Parameters
    ----------
    gamma : float or array of shape (d,)
        Inverse length; one value per feature multiplies the features before the norm.

    Notes
    -----
    The Matern kernel of order 1/2: its functions are continuous but have kinks, which suits tables
    better than the Gaussian kernel's smooth ones. Unlike the product kernel `Laplacian` it knows
    the Euclidean norm, so that a rotation of the inputs changes nothing.

    One matrix product of n m d multiplications, n m roots and exponentials; pairs too close for
    the product are computed by differences.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Exponential
    >>> Exponential(0.2)(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).round(4)
    array([[0.3679]])
    """

    name: ClassVar[str] = "exponential"
    compiled_distance: ClassVar[str | None] = "euclidean"

    def __call__(self, X: Array, Z: Array, out: FloatArray | None = None) -> Array:
        """Return exp(-gamma ||x - z||), shape (n, m)."""
        factors = self._per_feature(X)
        if is_numpy(X):
            kind = np.result_type(X.dtype, Z.dtype)
            D = distances(*_in_double(X, Z, factors), "euclidean")
            return np.exp(np.negative(D, out=D), out=D).astype(kind, copy=False)
        xp = get_namespace(X)
        square = _by_differences(_scaled(X, factors), _scaled(Z, factors), squared=True)
        return xp.exp(-xp.sqrt(square))

    def gradient(self, X: FloatArray, Z: FloatArray, coef: FloatArray) -> FloatArray:
        """Return -gamma sum_j coef_j K(x, z_j) (u - v_j) / ||u - v_j||, shape (n, k, d).

        u and v are the rows times gamma.
        """
        factors = self._per_feature(X)
        U, V = X * factors, Z * factors
        r = distances(U, V, "euclidean")
        slope = np.divide(-np.exp(-r), r, out=np.zeros_like(r), where=r > 0)
        return factors * pull(slope, U, V, coef)


@dataclass(frozen=True, eq=False)
class Laplacian(_Radial):
    """Laplacian kernel exp(-gamma ||x - z||_1).

    Parameters
    ----------
    gamma : float or array of shape (d,)
        Inverse width: one for all features, or one for each.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Laplacian
    >>> Laplacian(1.0)(np.array([[0.0, 0.0]]), np.array([[0.5, -0.5]])).round(4)
    array([[0.3679]])
    """

    name: ClassVar[str] = "laplacian"
    compiled_distance: ClassVar[str | None] = "cityblock"

    def __call__(self, X: Array, Z: Array, out: FloatArray | None = None) -> Array:
        """Return exp(-sum_i gamma_i |x_i - z_i|), shape (n, m)."""
        return self._values(X, Z)

    def against_many(self, Z: Array, pairs: int | None) -> Evaluate:
        """Return the kernel with fixed ``Z`` (m, d), a function of ``X`` and ``out``."""
        return lambda X, out=None: self._values(X, Z, pairs)

    def _values(self, X: Array, Z: Array, pairs: int | None = None) -> Array:
        factors = self._per_feature(X)
        if is_numpy(X):
            D = distances(*_in_double(X, Z, factors), "cityblock", pairs=pairs)
            return np.exp(np.negative(D, out=D), out=D).astype(X.dtype, copy=False)
        X, Z = _scaled(X, factors), _scaled(Z, factors)
        return get_namespace(X).exp(-_by_differences(X, Z, squared=False))

    def gradient(self, X: FloatArray, Z: FloatArray, coef: FloatArray) -> FloatArray:
        """Return -gamma_i sum_j coef_j K(x, z_j) sign(x_i - z_ji), shape (n, k, d).

        One pass over the kernel block per feature; columns of two values go through matrix
        products.
        """
        factors = self._per_feature(X)
        K = self.values(X, Z)
        less, most = ordered_sums(K, X, Z, coef)
        return np.asarray(-factors * (less + most - (K @ coef)[:, :, None]))

    def values(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        """Return K(X, Z) by loops that slopes are worth sooner than values alone.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows.
        Z : array of shape (m, d)
            Other rows.

        Returns
        -------
        array of shape (n, m)
        """
        return np.asarray(self._values(X, Z, 4 * len(X) * len(Z)))


_TILE = 2**16  # kernel values that stay near while all features pass over them
_RANKS = 4096  # columns of a tile at most; two bytes hold a rank


def ordered_sums(
    K: FloatArray, X: FloatArray, Z: FloatArray, coef: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return sums of K_ij coef_jk over z_jf < x_if and over z_jf <= x_if, shape (n, k, d) each."""
    n, k, d = len(X), coef.shape[1], X.shape[1]
    less, most = np.zeros((n, k, d)), np.zeros((n, k, d))
    few, _ = two_valued(X, Z)
    if few.any():
        low = np.minimum(X[:, few].min(axis=0), Z[:, few].min(axis=0))
        of_low = coef[:, :, None] * (Z[:, few] == low)[:, None, :]
        sums = (K @ of_low.reshape(len(Z), -1)).reshape(n, k, -1)
        at_low = (X[:, few] == low)[:, None, :]
        less[:, :, few] = np.where(at_low, 0.0, sums)
        most[:, :, few] = np.where(at_low, sums, (K @ coef)[:, :, None])
    if not few.all():
        many = ~few
        some = compiled.ordered_sums(K, X[:, many], Z[:, many], coef)
        if some is None:
            some = _ordered_by_ranks(K, X[:, many], Z[:, many], coef)
        less[:, :, many], most[:, :, many] = some
    return less, most


def _ordered_by_ranks(
    K: FloatArray, X: FloatArray, Z: FloatArray, coef: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what `ordered_sums` does, without compiled loops.

    The rows of Z with z <= x are the first ones in the order of a feature: ranks of two bytes are
    compared, which takes a fifth of the time of values. Tiles of K stay in the cache meanwhile.
    """
    n, k, d = len(X), coef.shape[1], X.shape[1]
    sums = np.zeros((2, d, n, k))  # over z <= x and over z < x
    room, chosen = np.empty(max(_TILE, _RANKS)), np.empty(max(_TILE, _RANKS), dtype=bool)
    for columns in slices(len(Z), _RANKS):
        m = columns.stop - columns.start
        ranks, ends = np.empty((d, m), np.int16), np.empty((2, d, n, 1), np.int16)
        tied = np.zeros(d, dtype=bool)
        for f in range(d):
            order = np.argsort(Z[columns, f])
            ranks[f, order] = np.arange(m, dtype=np.int16)
            z = Z[columns, f][order]
            start, stop = (np.searchsorted(z, X[:, f], side) for side in ("left", "right"))
            ends[0, f, :, 0], ends[1, f, :, 0] = stop, start
            tied[f] = (stop - start).sum() > n * m // 16
            if not tied[f]:  # the few pairs of equal values are looked up
                sums[1, f] -= _equal_sums(K[:, columns], coef[columns], order, start, stop)
        for rows in slices(n, max(1, _TILE // m)):
            tile = K[rows, columns]
            S, before = (a[: tile.size].reshape(tile.shape) for a in (room, chosen))
            for f in range(d):
                for end, out in zip(ends[: 2 if tied[f] else 1], sums, strict=False):
                    np.copyto(S, np.less(ranks[f], end[f, rows], out=before))
                    out[f, rows] += np.multiply(S, tile, out=S) @ coef[columns]
                if not tied[f]:
                    sums[1, f, rows] += S @ coef[columns]
    return np.moveaxis(sums[1], 0, 2), np.moveaxis(sums[0], 0, 2)


def _equal_sums(
    K: FloatArray, coef: FloatArray, order: IntArray, start: IntArray, stop: IntArray
) -> FloatArray:
    """Return sum_j K_ij coef_j over j = order[start_i], ..., order[stop_i - 1], shape (n, k)."""
    counts = stop - start
    i = np.repeat(np.arange(len(K)), counts)
    within = np.arange(len(i)) - np.repeat(np.cumsum(counts) - counts, counts)
    j = order[np.repeat(start, counts) + within]
    out = np.zeros((len(K), coef.shape[1]))
    np.add.at(out, i, K[i, j][:, None] * coef[j])
    return out


KERNEL_OF: dict[Distance, type[RBF] | type[Exponential] | type[Laplacian]] = {
    "sqeuclidean": RBF,
    "euclidean": Exponential,
    "cityblock": Laplacian,
}
"""The kernel exp(-gamma distance) of each distance."""
