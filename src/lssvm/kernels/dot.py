"""Kernels of an inner product: linear and polynomial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import not_usable
from lssvm._core.namespace import Array, get_namespace, is_numpy, is_sparse
from lssvm.kernels.base import Kernel


def row_products(X: Array, Z: Array, out: NDArray[Any] | None = None) -> Array:
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

    def __call__(self, X: Array, Z: Array, out: NDArray[Any] | None = None) -> Array:
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
    gamma : float, default=1.0
        Scale of the inner product, larger than 0; the chapter's 1/tau
        ([Suykens2002]_, section 3.4.2 shows that it must be tuned).
    coef0 : float, default=1.0
        At least 0, otherwise the kernel is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Polynomial
    >>> Polynomial(degree=2)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0
    name: ClassVar[str] = "poly"
    accepts_sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if np.ndim(self.gamma) != 0 or not self.gamma > 0:
            raise not_usable("gamma", self.gamma, "the polynomial kernel needs one value > 0.")
        if int(self.degree) != self.degree or self.degree < 1:
            needed = "the polynomial kernel needs an integer degree of at least 1."
            raise not_usable("degree", self.degree, needed)
        if not self.coef0 >= 0:
            needed = "below 0 the polynomial kernel is not positive definite; give a value >= 0."
            raise not_usable("coef0", self.coef0, needed)

    def __call__(self, X: Array, Z: Array, out: NDArray[Any] | None = None) -> Array:
        """Return (gamma x^T z + coef0)^degree, shape (n, m)."""
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
        return (self.gamma * row_squares(X) + self.coef0) ** int(self.degree)

    def gradient(self, X: FloatArray, Z: FloatArray, coef: FloatArray) -> FloatArray:
        """Return degree gamma sum_j coef_j (gamma x^T z_j + coef0)^(degree - 1) z_j, (n, k, d)."""
        (m, k), d = coef.shape, Z.shape[1]
        slope = (self.gamma * (X @ Z.T) + self.coef0) ** (int(self.degree) - 1)
        products = slope @ (coef[:, :, None] * Z[:, None, :]).reshape(m, k * d)
        return np.asarray(int(self.degree) * self.gamma * products.reshape(len(X), k, d))
