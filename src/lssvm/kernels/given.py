"""Kernels that the user brings: a function, or the matrix itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lssvm._core.errors import InvalidInputError
from lssvm._core.namespace import Array
from lssvm.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class FunctionKernel(Kernel):
    """Any function of two matrices of rows, as `sklearn.svm.SVC` takes it.

    Parameters
    ----------
    function : callable
        ``function(X, Z)`` with ``X`` (n, d) and ``Z`` (m, d) returns an array of shape (n, m).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import FunctionKernel
    >>> FunctionKernel(lambda X, Z: X @ Z.T)(np.eye(2), np.ones((1, 2))).shape
    (2, 1)
    """

    function: Callable[[Array, Array], Array]
    name: ClassVar[str] = "callable"

    def __call__(self, X: Array, Z: Array, out: NDArray[Any] | None = None) -> Array:
        """Return ``function(X, Z)`` after checking its shape, (n, m)."""
        values = np.asarray(self.function(X, Z))
        if values.shape != (X.shape[0], Z.shape[0]):
            problem = (
                f"an array of shape {values.shape} for {X.shape[0]} and {Z.shape[0]} rows; it "
            )
            problem += f"must return shape {(X.shape[0], Z.shape[0])}"
        elif values.dtype.kind not in "biuf":
            problem = f"values of the type {values.dtype}; it must return real numbers"
        elif not np.all(np.isfinite(values)):
            problem = "NaN or infinity; it must return finite numbers"
        else:
            return values.astype(np.result_type(X.dtype, np.float32), copy=False)
        raise InvalidInputError(f"The kernel function returned {problem}.")

    def diag(self, X: Array) -> Array:
        """Return K(x, x) by evaluating one row at a time, shape (n,)."""
        return np.array([self(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(len(X))])


@dataclass(frozen=True, eq=False)
class Precomputed(Kernel):
    """The kernel matrix itself: a row of ``X`` is a row of the matrix, ``Z`` are column indices.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Precomputed
    >>> Precomputed()(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([1]))
    array([[0.5],
           [1. ]])
    """

    name: ClassVar[str] = "precomputed"

    def __call__(self, X: Array, Z: Array, out: NDArray[Any] | None = None) -> Array:
        """Return the columns ``Z`` (m,) of the rows ``X`` (n, n_train), shape (n, m)."""
        return X[:, Z]

    def diag(self, X: Array) -> Array:
        """Return the diagonal of a square ``X``, shape (n,)."""
        return np.diagonal(X).copy()


def check_kernel_matrix(K: NDArray[Any]) -> None:
    """Refuse what cannot be the kernel matrix of the training rows.

    Parameters
    ----------
    K : array of shape (n, n)

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels.given import check_kernel_matrix
    >>> check_kernel_matrix(np.eye(3))
    """
    if K.shape[0] != K.shape[1]:
        raise InvalidInputError(
            f"kernel='precomputed' needs a square kernel matrix of the training rows but X has "
            f"shape {K.shape}."
        )
    scale = float(np.max(np.abs(K), initial=0.0))
    if not np.allclose(K, K.T, rtol=1e-7, atol=1e-10 * scale):
        raise InvalidInputError(
            "kernel='precomputed' needs a symmetric kernel matrix but X differs from its "
            "transpose: pass K with K[i, j] = K[j, i], for example (K + K.T) / 2."
        )
