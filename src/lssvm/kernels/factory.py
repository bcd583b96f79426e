"""From an estimator's parameters to a kernel object; a function or a matrix the user brings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from lssvm._core.arrays import AnyArray, Array, FloatArray, device, get_namespace, is_sparse
from lssvm._core.blocks import slices
from lssvm._core.errors import InvalidInputError, not_known, not_usable
from lssvm.kernels.base import Kernel
from lssvm.kernels.dot import Linear, NonStationary, Polynomial
from lssvm.kernels.metric import MetricKernel
from lssvm.kernels.radial import RBF, Exponential, Laplacian, Matern


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

    def __call__(self, X: Array, Z: Array, out: AnyArray | None = None) -> Array:
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

    def __call__(self, X: Array, Z: Array, out: AnyArray | None = None) -> Array:
        """Return the columns ``Z`` (m,) of the rows ``X`` (n, n_train), shape (n, m)."""
        return X[:, Z]

    def diag(self, X: Array) -> Array:
        """Return the diagonal of a square ``X``, shape (n,)."""
        return np.diagonal(X).copy()


def check_kernel_matrix(K: AnyArray) -> None:
    """Refuse what cannot be the kernel matrix of the training rows."""
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


_SCALED: dict[str, Callable[[Any], Kernel]] = {
    "exponential": Exponential,
    "laplacian": Laplacian,
    "matern": Matern,
    "nonstationary": NonStationary,
    "rbf": RBF,
}
KERNEL_NAMES = tuple(sorted([*_SCALED, "linear", "poly", "precomputed"]))
"""The kernels that have a name."""

_ENTRIES = 2**17  # numbers that are looked at at a time


def has_gamma(kernel: str | Kernel | Callable[..., Any]) -> bool:
    """Return whether a kernel takes the estimator's gamma."""
    if isinstance(kernel, Kernel):
        return getattr(kernel, "gamma", 1.0) is None
    return isinstance(kernel, str) and kernel in {*_SCALED, "poly"}


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
        return kernel.with_gamma(gamma) if has_gamma(kernel) else kernel
    if callable(kernel):
        return FunctionKernel(kernel)
    if not isinstance(kernel, str) or kernel not in KERNEL_NAMES:
        known = f"choose one of {', '.join(KERNEL_NAMES)}, or pass a callable K(X, Z) that returns "
        raise not_known("kernel", kernel, f"{known}a matrix of shape (len(X), len(Z)).")
    if kernel == "poly":
        return Polynomial(degree, gamma, coef0)
    if kernel in _SCALED:
        return _SCALED[kernel](gamma)
    return Linear() if kernel == "linear" else Precomputed()


def resolve_gamma(gamma: Any, X: Array, sample_weight: AnyArray | None = None) -> float | AnyArray:
    """Turn a ``gamma`` parameter into numbers."""
    d = int(X.shape[1])
    if isinstance(gamma, str):
        if gamma == "auto":
            return 1.0 / d
        if gamma == "scale":
            variance = _variance(X, sample_weight)
            return 1.0 / (d * variance) if variance > 0 else 1.0
        known = "give a number > 0, 'scale', 'auto', an array with one value per feature, 'cv' to "
        known += (
            "choose it by cross-validation, or 'ard' for one value per feature by the evidence."
        )
        raise not_known("gamma", gamma, known)
    values = np.asarray(gamma, dtype=float)
    if values.ndim > 1 or not np.all(np.isfinite(values)) or not np.all(values >= 0):
        raise not_usable("gamma", gamma, "values must be finite and >= 0.")
    if values.ndim == 1:
        if values.shape[0] != d:
            raise InvalidInputError(
                f"gamma has {values.shape[0]} values but X has {d} features: give one per feature."
            )
        return values
    if not values > 0:
        raise not_usable("gamma", gamma, "give a number > 0.")
    return float(values)


def _variance(X: Array, sample_weight: AnyArray | None) -> float:
    """Variance of all entries of ``X``, rows weighted."""
    if is_sparse(X):
        weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight)
        total = float(weight.sum()) * X.shape[1]
        mean = float(weight @ np.asarray(X.sum(axis=1)).ravel()) / total
        square = float(weight @ np.asarray(X.multiply(X).sum(axis=1)).ravel()) / total
        return float(max(square - mean**2, 0.0))
    xp, d = get_namespace(X), X.shape[1]
    parts = slices(X.shape[0], max(1, _ENTRIES // d))  # no copy of X
    if sample_weight is None and len(parts) == 1:
        return float(xp.var(X))
    count, weight = X.shape[0] * d, xp.ones((X.shape[0], 1), dtype=X.dtype, device=device(X))
    if sample_weight is not None:
        count = d
        weight = xp.asarray(sample_weight, dtype=X.dtype)[:, None] / float(sample_weight.sum())
    mean = sum(float(xp.sum(weight[part] * X[part])) for part in parts) / count
    squares = (float(xp.sum(weight[part] * (X[part] - mean) ** 2)) for part in parts)
    return float(sum(squares) / count)


ARD_KERNELS = ("matern", "rbf")
"""Kernels whose width may differ between features."""


class KernelParameters(Protocol):
    """The parameters that all kernel estimators have."""

    C: Any
    kernel: Any
    gamma: Any
    random_state: Any


@dataclass(frozen=True, eq=False)
class KernelChoice:
    """A kernel whose parameter may still be open."""

    kernel: Any
    gamma: Any = "scale"
    metric: Any = None
    scales: FloatArray | None = None

    @classmethod
    def of(cls, estimator: KernelParameters) -> KernelChoice:
        """Read the parameters of an estimator."""
        kernel = estimator.kernel
        if isinstance(kernel, MetricKernel):
            return cls(kernel.kernel, estimator.gamma, kernel.metric)
        return cls(kernel, estimator.gamma)

    @property
    def has_gamma(self) -> bool:
        """Whether gamma matters."""
        return has_gamma(self.kernel)

    @property
    def name(self) -> str | None:
        """The name of the kernel; None for a function."""
        if isinstance(self.kernel, str):
            return self.kernel
        return self.kernel.name if isinstance(self.kernel, Kernel) else None

    @property
    def precomputed(self) -> bool:
        """Whether rows are rows of a kernel matrix."""
        return self.name == "precomputed" or isinstance(self.kernel, Precomputed)

    @property
    def accepts_sparse(self) -> bool:
        """Whether rows may be sparse."""
        if isinstance(self.kernel, Kernel):
            return self.kernel.accepts_sparse
        return self.name in ("rbf", "linear", "poly", "matern")

    @property
    def uses_ard(self) -> bool:
        """Whether a width for every feature is to be learned."""
        return isinstance(self.gamma, str) and self.gamma == "ard"

    @property
    def tunes_gamma(self) -> bool:
        """Whether gamma is to be chosen."""
        named = isinstance(self.gamma, str) and self.gamma in ("cv", "ard")
        return named and self.has_gamma

    def check_ard(self) -> None:
        """Refuse a width for every feature where the kernel has none."""
        if self.uses_ard and self.name not in ARD_KERNELS:
            raise InvalidInputError(
                f"gamma='ard' cannot be used with kernel={self.kernel!r}: choose one of "
                f"{ARD_KERNELS}, or another gamma."
            )

    def check(self) -> None:
        """Refuse what does not go together."""
        self.check_ard()
        if isinstance(self.gamma, str) and self.gamma == "cv" and not self.has_gamma:
            if not isinstance(self.kernel, str):
                raise InvalidInputError(
                    f"gamma='cv' cannot tune kernel={self.kernel!r}: name a kernel such as 'rbf', "
                    "or give a kernel object without gamma, such as Matern(nu=2.5)."
                )

    def fixed_gamma(self, X: Any, weight: FloatArray | None, scale: float | None = None) -> Any:
        """Return gamma as numbers; None where it is tuned or does not matter.

        ``scale`` is gamma="scale", where it is known for more rows than these.
        """
        if self.tunes_gamma or not self.has_gamma:
            return None
        gamma = "scale" if isinstance(self.gamma, str) and self.gamma == "cv" else self.gamma
        if isinstance(gamma, str) and gamma == "scale" and scale is not None:
            return scale
        return resolve_gamma(gamma, X, weight)

    def by_feature(self, gamma: Any) -> Any:
        """Return gamma with the factors of the features."""
        if self.scales is None or gamma is None or np.ndim(gamma) > 0:
            return gamma
        return gamma * self.scales

    def at(self, gamma: Any) -> Kernel:
        """Return the kernel at a value of gamma (None: it has none)."""
        return make_kernel(self.kernel, gamma=1.0 if gamma is None else self.by_feature(gamma))

    def scaled(self, scales: FloatArray | None) -> KernelChoice:
        """Return the same with factors of gamma by feature."""
        return replace(self, scales=scales)
