r"""The metric of the inputs: a linear map A, so that a kernel sees :math:`(x A, z A)`.

A is learned from gradients of a fitted model f: features, or directions, along which f does not
change are shortened, those along which it does are stretched. With the average outer product of
gradients

.. math::

    M = \frac{1}{n} \sum_i \sum_j \nabla f_j(x_i) \nabla f_j(x_i)^T

and :math:`A A^T = M` the distance becomes :math:`(x - z)^T M (x - z)` (recursive feature machines,
[Radhakrishnan2024]_).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from lssvm._core.arrays import FloatArray, device, get_namespace, is_sparse
from lssvm._core.blocks import run_blocks, slices
from lssvm._core.device import Device, is_foreign
from lssvm._core.errors import not_known
from lssvm.kernels.base import Kernel

Shape: TypeAlias = Literal["diagonal", "full"]

_ENTRIES = 2**22  # numbers of a block of gradients


@dataclass(frozen=True, eq=False)
class Metric:
    """A linear map of the inputs.

    Attributes
    ----------
    map : array of shape (d, d), (d,) or None
        A, or its diagonal; None for the identity.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Metric
    >>> Metric(np.array([1.0, 0.0])).apply(np.array([[3.0, 4.0]]))
    array([[3., 0.]])
    >>> Metric().apply(np.ones((1, 2)))
    array([[1., 1.]])
    """

    map: FloatArray | None = None

    @classmethod
    def of(cls, M: FloatArray) -> Metric:
        """Return the map of a matrix M (d, d) or of its diagonal (d,), scaled to mean diagonal 1.

        A matrix of zeros (nothing changes the output) gives the identity.

        Parameters
        ----------
        M : array of shape (d, d) or (d,)
            Symmetric and positive semi-definite, or its diagonal.
        """
        diagonal = M if M.ndim == 1 else M.diagonal()
        mean = float(diagonal.mean()) if len(diagonal) else 0.0
        if not mean > 0.0 or not np.isfinite(mean):
            return cls()
        if M.ndim == 1:
            return cls(np.sqrt(np.maximum(M / mean, 0.0)))
        values, vectors = np.linalg.eigh(M / mean)
        root = np.sqrt(np.maximum(values, 0.0))
        return cls(np.asarray((vectors * root) @ vectors.T))

    def apply(self, X: FloatArray) -> FloatArray:
        """Return x A for every row of X (n, d).

        Parameters
        ----------
        X : array of shape (n, d)
            Rows.
        """
        if self.map is None:
            return X
        return np.asarray(X * self.map if self.map.ndim == 1 else X @ self.map)

    def map_rows(self, X: Any) -> Any:
        """Return x A for rows of any array library, in its own type, or sparse rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Rows.
        """
        if self.map is None:
            return X
        if is_sparse(X):
            A = self.map.astype(X.dtype)
            return X.multiply(A[None, :]).tocsr() if A.ndim == 1 else X @ A
        if not is_foreign(X):
            A = self.map.astype(X.dtype if X.dtype.kind == "f" else np.float64)
            return X * A if A.ndim == 1 else X @ A
        xp = get_namespace(X)
        if not xp.isdtype(X.dtype, "real floating"):
            X = xp.astype(X, xp.float64)
        A = Device(xp, device(X)).put(self.map, X.dtype)
        return X * A if self.map.ndim == 1 else X @ A

    def unmap(self, Z: Any) -> Any:
        """Return inputs that the map sends to Z (n, d).

        Features that a diagonal map leaves out are 0; a full one is inverted in the sense of least
        squares.

        Parameters
        ----------
        Z : array of shape (n, d)
            Mapped rows.
        """
        if self.map is None:
            return Z
        if self.map.ndim == 2:
            return np.asarray(Z @ np.linalg.pinv(self.map))
        seen = self.map != 0
        inverse = np.where(seen, 1.0 / np.where(seen, self.map, 1.0), 0.0)
        if is_sparse(Z):
            return Z.multiply(inverse[None, :]).tocsr()
        return np.asarray(Z * inverse)

    def back(self, gradients: FloatArray) -> FloatArray:
        """Return gradients with respect to x from those with respect to x A, shape (..., d).

        Parameters
        ----------
        gradients : array of shape (..., d)
            With respect to the mapped inputs.
        """
        if self.map is None:
            return gradients
        return np.asarray(gradients * self.map if self.map.ndim == 1 else gradients @ self.map.T)

    def published(self, d: int, *, full: bool = False) -> FloatArray:
        """Return M = A A^T (d, d), or its diagonal (d,) where A is diagonal and not asked full.

        Parameters
        ----------
        d : int
            Number of features.
        full : bool, default=False
            Whether a matrix is returned where there is no map.
        """
        if self.map is None:
            return np.eye(d) if full else np.ones(d)
        return np.asarray(self.map**2) if self.map.ndim == 1 else self.matrix(d)

    def matrix(self, d: int) -> FloatArray:
        """Return M = A A^T, shape (d, d).

        Parameters
        ----------
        d : int
            Number of features.
        """
        if self.map is None:
            return np.eye(d)
        return np.diag(self.map**2) if self.map.ndim == 1 else np.asarray(self.map @ self.map.T)


IDENTITY = Metric()
"""The inputs as they are."""


@dataclass(frozen=True, eq=False)
class MetricKernel:
    """A kernel of mapped inputs, K(xA, zA), as an estimator takes it.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        Of the mapped inputs. C and gamma of the estimator are those of mapped inputs too.
    metric : {"diagonal", "full"} or array of shape (d,) or (d, d), default="diagonal"
        The map A, or its diagonal: given, or learned from gradients of a model
        ([Radhakrishnan2024]_) in at most 4 rounds, which are scored on other rows. If the gain is
        not clear, the inputs are not changed. A round costs m^3/3 + n m d operations for m <=
        2,000 and n <= 4,000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.kernels import MetricKernel
    >>> X = np.random.default_rng(0).normal(size=(120, 3))
    >>> model = LSSVR(C=100.0, kernel=MetricKernel("rbf", "diagonal")).fit(X, np.sin(2 * X[:, 0]))
    >>> int(np.argmax(model.metric_))
    0
    """

    kernel: Any = "rbf"
    metric: Any = "diagonal"


def mean_outer_product(
    kernel: Kernel,
    X: FloatArray,
    Z: FloatArray,
    coef: FloatArray,
    *,
    metric: Metric = IDENTITY,
    shape: Shape = "full",
    weight: FloatArray | None = None,
    threads: int = 1,
) -> FloatArray:
    """Return the average outer product of the gradients of an expansion."""
    if shape not in ("full", "diagonal"):
        raise not_known("metric", shape, "choose 'full' or 'diagonal'.")
    n, d = X.shape
    k = coef.shape[1]
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    rows = int(np.clip(_ENTRIES // max(k * d, len(Z)), 1, 512))

    def block(part: slice) -> FloatArray:
        slopes = kernel.gradient(X[part], Z, coef) * np.sqrt(share[part])[:, None, None]
        flat = metric.back(slopes).reshape(-1, d)
        if shape == "diagonal":
            return np.asarray(np.einsum("ij,ij->j", flat, flat))
        return np.asarray(flat.T @ flat)

    return np.asarray(np.sum(run_blocks(block, slices(n, rows), threads), axis=0))
