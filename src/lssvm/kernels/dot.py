"""Kernels that are no function of a distance: linear, polynomial, and of varying length scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lssvm._core.arrays import Array, FloatArray, device, get_namespace, is_numpy, is_sparse
from lssvm._core.blocks import slices
from lssvm._core.errors import InvalidInputError, not_usable
from lssvm.kernels.base import Kernel

_CHUNK = 8192  # rows looked at at a time


def row_products(X: Array, Z: Array, out: FloatArray | None = None) -> Array:
    """Return x^T z for the rows of ``X`` (n, d) and ``Z`` (m, d), dense, shape (n, m)."""
    if is_sparse(X) or is_sparse(Z):
        product = X @ Z.T
        return product.toarray() if is_sparse(product) else np.asarray(product)
    if is_numpy(X):
        return np.matmul(X, Z.T, out=out)
    xp = get_namespace(X, Z)
    return xp.matmul(X, xp.permute_dims(Z, (1, 0)))


def row_squares(X: Array) -> Array:
    """Return x^T x for every row of ``X`` (n, d), shape (n,)."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return get_namespace(X).sum(X * X, axis=1)


def variances(X: Any, weight: FloatArray | None) -> FloatArray:
    """Return the weighted variance of every column of ``X`` (n, d), shape (d,)."""
    n = X.shape[0]
    s = np.full(n, 1.0 / n) if weight is None else np.asarray(weight) / np.sum(weight)
    if is_sparse(X):  # not centred: that would fill in the zeros
        mean = np.asarray(s @ X).ravel()
        squares = np.asarray(s @ X.multiply(X).tocsr()).ravel()
        return np.asarray(np.maximum(squares - mean**2, 0.0))
    parts = slices(n, _CHUNK)  # no copy of X
    mean = sum(s[part] @ X[part] for part in parts)
    return np.asarray(sum(s[part] @ (X[part] - mean) ** 2 for part in parts))


@dataclass(frozen=True, eq=False)
class Linear(Kernel):
    """Linear kernel x^T z.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    name: ClassVar[str] = "linear"
    accepts_sparse: ClassVar[bool] = True

    def __call__(self, X: Array, Z: Array, out: FloatArray | None = None) -> Array:
        """Return x^T z, shape (n, m)."""
        return row_products(X, Z, out)

    def diag(self, X: Array) -> Array:
        """Return x^T x, shape (n,)."""
        return row_squares(X)

    def gradient(self, X: FloatArray, Z: FloatArray, coef: FloatArray) -> FloatArray:
        """Return coef^T Z for every row, shape (n, k, d)."""
        return np.repeat((coef.T @ Z)[None], len(X), axis=0)


@dataclass(frozen=True, eq=False)
class Polynomial(Kernel):
    """Polynomial kernel (gamma x^T z + coef0)^degree.

    Parameters
    ----------
    degree : int, default=3
        At least 1.
    gamma : float or None, default=None
        Scale of the inner product, larger than 0; the chapter's 1/tau
        ([Suykens2002]_, section 3.4.2 shows that it must be tuned). None: that of the estimator,
        which may tune it.
    coef0 : float, default=1.0
        At least 0, otherwise the kernel is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Polynomial
    >>> Polynomial(degree=2, gamma=1.0)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    degree: int = 3
    gamma: Any = None
    coef0: float = 1.0
    name: ClassVar[str] = "poly"
    accepts_sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.gamma is not None and (np.ndim(self.gamma) != 0 or not self.gamma > 0):
            raise not_usable("gamma", self.gamma, "the polynomial kernel needs one value > 0.")
        if int(self.degree) != self.degree or self.degree < 1:
            needed = "the polynomial kernel needs an integer degree of at least 1."
            raise not_usable("degree", self.degree, needed)
        if not self.coef0 >= 0:
            needed = "below 0 the polynomial kernel is not positive definite; give a value >= 0."
            raise not_usable("coef0", self.coef0, needed)

    def __call__(self, X: Array, Z: Array, out: FloatArray | None = None) -> Array:
        """Return (gamma x^T z + coef0)^degree, shape (n, m)."""
        if self.gamma is None:
            raise InvalidInputError(f"{self!r} has no gamma yet: give it, or use an estimator's.")
        product = row_products(X, Z, out)
        with np.errstate(over="ignore"):  # what is no number is refused where it is solved for
            product *= self.gamma
            product += self.coef0
            base = product.copy() if is_numpy(product) else product
            for _ in range(int(self.degree) - 1):
                in_place = {"out": product} if is_numpy(base) else {}
                product = np.multiply(product, base, **in_place) if in_place else product * base
        return product

    def diag(self, X: Array) -> Array:
        """Return (gamma x^T x + coef0)^degree, shape (n,)."""
        with np.errstate(over="ignore"):
            return (self.gamma * row_squares(X) + self.coef0) ** int(self.degree)

    def gradient(self, X: FloatArray, Z: FloatArray, coef: FloatArray) -> FloatArray:
        """Return degree gamma sum_j coef_j (gamma x^T z_j + coef0)^(degree - 1) z_j, (n, k, d)."""
        (m, k), d = coef.shape, Z.shape[1]
        slope = (self.gamma * (X @ Z.T) + self.coef0) ** (int(self.degree) - 1)
        products = slope @ (coef[:, :, None] * Z[:, None, :]).reshape(m, k * d)
        return np.asarray(int(self.degree) * self.gamma * products.reshape(len(X), k, d))


Lengths = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class NonStationary(Kernel):
    r"""Gaussian kernel with length scales :math:`\sigma_i(x)` that depend on where x is.

    .. math::

        K(x, z) = \prod_i \left( \frac{2 \sigma_i(x) \sigma_i(z)}
        {\sigma_i^2(x) + \sigma_i^2(z)} \right)^{1/2}
        \exp \left( -\sum_i \frac{(x_i - z_i)^2}{\sigma_i^2(x) + \sigma_i^2(z)} \right)

    Parameters
    ----------
    gamma : float or array of shape (d,), default=1.0
        Larger than 0; :math:`\sigma_i(x) = f_i(x) / \sqrt{2 \gamma_i}`, so that with f = 1 it is
        ``RBF(gamma)``.
    lengths : callable or None, default=None
        f, from rows (n, d) to positive factors (n, d) or (n, 1). None is
        :math:`f_i(x) = 1 + |x_i|`: fine detail around the origin, where standardised features have
        most of their rows, and less of it further out.

    Notes
    -----
    Eq. (3.70) of [Suykens2002]_ with :math:`\theta_1 = 1`, whose place C takes. It is positive
    definite for any positive functions :math:`\sigma_i` ([Gibbs1997]_). The text leaves the
    functions open; the default is ours.

    About 8 n m d operations in d passes over the block, n m roots and exponentials; three
    temporaries of size (n, m).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import NonStationary
    >>> x = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> K = NonStationary(0.5)(x, x)
    >>> K[0, 1].round(3), K[2, 3].round(3)  # the same distance, further out
    (np.float64(0.732), np.float64(0.994))
    """

    gamma: Any = 1.0
    lengths: Lengths | None = None
    name: ClassVar[str] = "nonstationary"

    def __post_init__(self) -> None:
        values = np.asarray(self.gamma, dtype=float)
        if values.ndim > 1 or not np.all(np.isfinite(values)) or not np.all(values > 0):
            needed = (
                "the non-stationary kernel needs a finite value > 0, or one such value per feature."
            )
            raise not_usable("gamma", self.gamma, needed)
        if self.lengths is not None and not callable(self.lengths):
            raise InvalidInputError(
                f"lengths={self.lengths!r} is not usable: give a function from rows (n, d) to "
                "positive factors (n, d) or (n, 1), or None."
            )

    def _lengths(self, X: Array) -> Array:
        """Return sigma_i(x) of every row, shape (n, d)."""
        xp = get_namespace(X)
        if self.lengths is None:
            factors = 1.0 + xp.abs(X)
        else:
            factors = xp.asarray(self.lengths(X), dtype=X.dtype)
            if tuple(factors.shape) not in (tuple(X.shape), (X.shape[0], 1)):
                raise InvalidInputError(
                    f"lengths returned shape {tuple(factors.shape)} for rows of shape "
                    f"{tuple(X.shape)}: it has to return one factor per row, (n, 1), or one per "
                    "entry, (n, d)."
                )
            if not bool(xp.all(factors > 0)):
                raise InvalidInputError(
                    "lengths returned values that are not larger than 0: length scales have to be "
                    "positive everywhere, for example 0.1 + x**2."
                )
        scale = np.broadcast_to(1.0 / np.sqrt(2.0 * np.asarray(self.gamma)), (X.shape[1],))
        return factors * xp.asarray(scale.copy(), dtype=X.dtype, device=device(X))[None, :]

    def __call__(self, X: Array, Z: Array, out: FloatArray | None = None) -> Array:
        """Return the kernel values, shape (n, m)."""
        xp = get_namespace(X)
        a, b = self._lengths(X), self._lengths(Z)
        shape = (X.shape[0], Z.shape[0])
        factor = xp.ones(shape, dtype=X.dtype, device=device(X))
        exponent = xp.zeros(shape, dtype=X.dtype, device=device(X))
        for i in range(X.shape[1]):
            total = a[:, i, None] ** 2 + b[None, :, i] ** 2
            factor = factor * (2.0 * a[:, i, None] * b[None, :, i] / total)
            exponent = exponent - (X[:, i, None] - Z[None, :, i]) ** 2 / total
        return xp.sqrt(factor) * xp.exp(exponent)  # [Suykens2002, eq. (3.70)]

    def diag(self, X: Array) -> Array:
        """Return ones, shape (n,)."""
        xp = get_namespace(X)
        return xp.ones(X.shape[0], dtype=X.dtype, device=device(X))

    def gradient(self, X: FloatArray, Z: FloatArray, coef: FloatArray) -> FloatArray:
        r"""Return the gradients for the default length scales, shape (n, k, d).

        With :math:`s = \sigma_i(x)`, :math:`t = \sigma_i(z)`, :math:`\delta = x_i - z_i` the
        logarithm of the kernel has the slope
        :math:`s' (1 / (2 s) - s / (s^2 + t^2) + 2 s \delta^2 / (s^2 + t^2)^2) - 2 \delta /
        (s^2 + t^2)`.
        """
        if self.lengths is not None:
            raise InvalidInputError(
                "A non-stationary kernel with its own lengths has no gradient in closed form: "
                "leave lengths at None, or choose a metric of None."
            )
        K = np.asarray(self(X, Z))
        S, T = self._lengths(X), self._lengths(Z)
        rise = np.sign(X) / np.sqrt(2.0 * np.asarray(self.gamma))  # of 1 + |x|
        out = np.empty((len(X), coef.shape[1], X.shape[1]))
        for i in range(X.shape[1]):
            s, gap = S[:, i][:, None], X[:, i][:, None] - Z[:, i]
            square = s * s + T[:, i] ** 2
            slope = rise[:, i][:, None] * (0.5 / s - s / square + 2.0 * s * (gap / square) ** 2)
            slope -= 2.0 * gap / square
            out[:, :, i] = (K * slope) @ coef
        return out
