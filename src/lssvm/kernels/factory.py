"""From an estimator's parameters to a kernel object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.errors import InvalidInputError
from lssvm._core.namespace import Array, get_namespace, is_sparse
from lssvm._core.threads import slices
from lssvm.kernels.base import Kernel
from lssvm.kernels.dot import Linear, Polynomial
from lssvm.kernels.given import FunctionKernel, Precomputed
from lssvm.kernels.nonstationary import NonStationary
from lssvm.kernels.radial import RBF, Exponential, Laplacian, Matern

KERNEL_NAMES = (
    "exponential",
    "laplacian",
    "linear",
    "matern",
    "nonstationary",
    "poly",
    "precomputed",
    "rbf",
)
"""The kernels that have a name."""

_ENTRIES = 2**17  # numbers that are looked at at a time


def has_gamma(kernel: str | Kernel | Callable[..., Any]) -> bool:
    """Return whether a kernel takes the estimator's gamma: by its name, or where it has none yet.

    Examples
    --------
    >>> from lssvm.kernels import Matern, has_gamma
    >>> has_gamma("rbf"), has_gamma("linear"), has_gamma(Matern(nu=2.5))
    (True, False, True)
    """
    if isinstance(kernel, Kernel):
        return getattr(kernel, "gamma", 1.0) is None
    named = ("exponential", "laplacian", "matern", "nonstationary", "poly", "rbf")
    return isinstance(kernel, str) and kernel in named


def make_kernel(
    kernel: str | Kernel | Callable[..., Any],
    *,
    gamma: Any = 1.0,
    degree: int = 3,
    coef0: float = 1.0,
) -> Kernel:
    """Build a kernel from its name and parameters.

    Parameters
    ----------
    kernel : str, Kernel or callable
        A name of `KERNEL_NAMES`, an object that is one already, or a function of two matrices.
    gamma, degree, coef0
        Parameters of the named kernels that have them.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> from lssvm.kernels import make_kernel
    >>> make_kernel("poly", gamma=0.5, degree=2)
    Polynomial(degree=2, gamma=0.5, coef0=1.0)
    """
    if isinstance(kernel, Kernel):
        return replace(kernel, gamma=gamma) if has_gamma(kernel) else kernel  # type: ignore[type-var]
    if callable(kernel):
        return FunctionKernel(kernel)
    builders: dict[str, Callable[[], Kernel]] = {
        "rbf": lambda: RBF(gamma),
        "linear": Linear,
        "poly": lambda: Polynomial(degree, gamma, coef0),
        "exponential": lambda: Exponential(gamma),
        "laplacian": lambda: Laplacian(gamma),
        "matern": lambda: Matern(gamma),
        "nonstationary": lambda: NonStationary(gamma),
        "precomputed": Precomputed,
    }
    if not isinstance(kernel, str) or kernel not in builders:
        raise InvalidInputError(
            f"kernel={kernel!r} is not known: choose one of {', '.join(KERNEL_NAMES)}, or pass a "
            "callable K(X, Z) that returns a matrix of shape (len(X), len(Z))."
        )
    return builders[kernel]()


def resolve_gamma(
    gamma: Any, X: Array, sample_weight: NDArray[Any] | None = None
) -> float | NDArray[Any]:
    """Turn a ``gamma`` parameter into numbers.

    Parameters
    ----------
    gamma : float, array of shape (d,), "scale" or "auto"
        "scale" is 1/(d var(X)), "auto" is 1/d, as in `sklearn.svm.SVC`.
    X : array or sparse matrix of shape (n, d)
    sample_weight : array of shape (n,), optional
        Weights for the variance, so that a weight of 2 equals the row twice.

    Returns
    -------
    float or array of shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import resolve_gamma
    >>> resolve_gamma("scale", np.array([[0.0], [2.0]]))
    1.0
    """
    d = int(X.shape[1])
    if isinstance(gamma, str):
        if gamma == "auto":
            return 1.0 / d
        if gamma == "scale":
            variance = _variance(X, sample_weight)
            return 1.0 / (d * variance) if variance > 0 else 1.0
        raise InvalidInputError(
            f"gamma={gamma!r} is not known: give a number > 0, 'scale', 'auto', an array with one "
            "value per feature, 'cv' to choose it by cross-validation, or 'ard' for one value per "
            "feature by the evidence."
        )
    values = np.asarray(gamma, dtype=float)
    if values.ndim > 1 or not np.all(np.isfinite(values)) or not np.all(values >= 0):
        raise InvalidInputError(f"gamma={gamma!r} is not usable: values must be finite and >= 0.")
    if values.ndim == 1:
        if values.shape[0] != d:
            raise InvalidInputError(
                f"gamma has {values.shape[0]} values but X has {d} features: give one per feature."
            )
        return values
    if not values > 0:
        raise InvalidInputError(f"gamma={gamma!r} is not usable: give a number > 0.")
    return float(values)


def _variance(X: Array, sample_weight: NDArray[Any] | None) -> float:
    """Variance of all entries of ``X``, rows weighted."""
    if is_sparse(X):
        weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight)
        total = float(weight.sum()) * X.shape[1]
        mean = float(weight @ np.asarray(X.sum(axis=1)).ravel()) / total
        square = float(weight @ np.asarray(X.multiply(X).sum(axis=1)).ravel()) / total
        return float(max(square - mean**2, 0.0))
    xp = get_namespace(X)
    parts = slices(X.shape[0], max(1, _ENTRIES // X.shape[1]))  # no copy of X
    if sample_weight is None:
        if len(parts) == 1:
            return float(xp.var(X))
        count = X.shape[0] * X.shape[1]
        mean = sum(float(xp.sum(X[part])) for part in parts) / count
        return float(sum(float(xp.sum((X[part] - mean) ** 2)) for part in parts) / count)
    weight = xp.asarray(sample_weight, dtype=X.dtype)[:, None] / float(sample_weight.sum())
    mean = sum(float(xp.sum(weight[part] * X[part])) for part in parts) / X.shape[1]
    squares = (float(xp.sum(weight[part] * (X[part] - mean) ** 2)) for part in parts)
    return float(sum(squares) / X.shape[1])
