"""Prediction intervals of the regressors, as ONNX operators."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from lssvm._core.errors import InvalidInputError
from lssvm.estimators.base import KernelRegressor
from lssvm.kernels import Kernel, Linear, Polynomial
from lssvm.onnx.graph import Tensor
from lssvm.onnx.kernel_nodes import add_kernel, add_map, check_kernel, dense, power
from lssvm.uncertainty import DualPosterior, FixedPosterior, check_coverage


def add_interval(
    model: KernelRegressor, X: Tensor, prediction: Tensor, coverage: float
) -> tuple[Tensor, Tensor]:
    """Add `predict_interval`: lower and upper ends, both (n, k).

    Parameters
    ----------
    model : LSSVR or FixedSizeLSSVR
    X : Tensor
        Rows (n, d).
    prediction : Tensor
        Predictions (n, k).
    coverage : float

    Notes
    -----
    The variance of the function needs m^2 more numbers in the file and m^2 operations a row.
    """
    coverage = check_coverage(coverage)
    X = add_map(X, model.record_)
    variances: list[Tensor] = []
    order: list[int] = []
    for columns, posterior in model._posteriors():
        if isinstance(posterior, FixedPosterior):
            variance = _fixed_variance(posterior, X)
        else:
            variance = _dual_variance(posterior, X)
        prior = np.asarray(posterior.prior_variance)[None, :]
        variances.append(variance * prior + np.asarray(posterior.noise_variance)[None, :])
        order += list(columns)
    residuals = model._residuals()
    factors = np.array([residuals.factor(coverage, j) for j in range(len(order))])
    if not np.all(np.isfinite(factors)):
        raise InvalidInputError(
            f"interval={coverage:g} has infinite ends, as there are too few rows for it: give more "
            "rows to fit, or a lower coverage."
        )
    scale = X.graph.node("Sqrt", X.graph.in_order(variances, order))
    low, high = (prediction + scale * factor[None, :] for factor in factors.T)
    return low, high


def _fixed_variance(posterior: FixedPosterior, X: Tensor) -> Tensor:
    """Add the variance (n, 1) of the function in units of the prior variance."""
    check_kernel(posterior.kernel)
    P, mean, _, _ = posterior.solved
    K = add_kernel(X, posterior.kernel, dense(posterior.Z))
    missing = _diagonal(posterior.kernel, X) - _squares(K @ posterior.map.T)
    learned = _squares((K - np.asarray(mean)[None, :]) @ P) + 1.0 / posterior.moments.weight
    return learned / posterior.C + X.graph.node("Max", missing, 0.0)


def _dual_variance(posterior: DualPosterior, X: Tensor) -> Tensor:
    """Add the same for a dual model."""
    system = posterior.system
    check_kernel(system.kernel)
    eta, s, _, _ = posterior.solved
    u = np.asarray(system.u, dtype=np.float64)
    K = add_kernel(X, system.kernel, dense(system.basis))
    lower = np.tril(posterior.state.array)
    inverse = solve_triangular(lower, np.eye(len(u)), lower=True, check_finite=False)
    variance = _diagonal(system.kernel, X) - _squares(K @ (u[:, None] * inverse.T))
    if system.bias:
        left = 1.0 - K @ (u * eta)[:, None]
        variance += left * left / s
    return X.graph.node("Max", variance, 0.0)


def _squares(value: Tensor) -> Tensor:
    """Add the sums of squares of the rows."""
    return (value * value).sums()


def _diagonal(kernel: Kernel, X: Tensor) -> Tensor | float:
    """Add K(x, x), shape (n, 1) or a number."""
    if isinstance(kernel, Linear):
        return _squares(X)
    if isinstance(kernel, Polynomial):
        return power(_squares(X) * kernel.gamma + kernel.coef0, kernel.degree)
    return 1.0
