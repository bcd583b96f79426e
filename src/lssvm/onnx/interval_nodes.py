"""Prediction intervals of the regressors, as ONNX operators."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from lssvm._core.errors import InvalidInputError
from lssvm.estimators.base import KernelRegressor
from lssvm.kernels import Kernel, Linear, Polynomial
from lssvm.onnx.graph import Graph
from lssvm.onnx.kernel_nodes import add_kernel, check_kernel, dense
from lssvm.uncertainty import DualPosterior, FixedPosterior, check_coverage


def add_interval(
    graph: Graph, model: KernelRegressor, X: str, prediction: str, coverage: float
) -> tuple[str, str]:
    """Add `predict_interval`: lower and upper ends, both (n, k).

    Parameters
    ----------
    graph : Graph
    model : LSSVR or FixedSizeLSSVR
    X : str
        Rows (n, d).
    prediction : str
        Predictions (n, k).
    coverage : float

    Notes
    -----
    The variance of the function needs m^2 more numbers in the file and m^2 operations a row.
    """
    coverage = check_coverage(coverage)
    parts, order = [], []
    for columns, posterior in model._posteriors():
        if isinstance(posterior, FixedPosterior):
            variance = _fixed_variance(graph, posterior, X)
        else:
            variance = _dual_variance(graph, posterior, X)
        prior = graph.real(np.asarray(posterior.prior_variance)[None, :])
        noise = graph.real(np.asarray(posterior.noise_variance)[None, :])
        parts.append(graph.node("Add", graph.node("Mul", variance, prior), noise))
        order += list(columns)
    variance = parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)
    if order != sorted(order):
        variance = graph.columns(variance, np.argsort(order))
    residuals = model._residuals()
    factors = np.array([residuals.factor(coverage, j) for j in range(len(order))])
    if not np.all(np.isfinite(factors)):
        raise InvalidInputError(
            f"interval={coverage:g} has infinite ends, as there are too few rows for it: give more "
            "rows to fit, or a lower coverage."
        )
    scale = graph.node("Sqrt", variance)
    ends = [graph.node("Mul", scale, graph.real(factor[None, :])) for factor in factors.T]
    low, high = (graph.node("Add", prediction, end) for end in ends)
    return low, high


def _fixed_variance(graph: Graph, posterior: FixedPosterior, X: str) -> str:
    """Add the variance (n, 1) of the function in units of the prior variance."""
    check_kernel(posterior.kernel)
    P, mean, _, _ = posterior.solved
    K = add_kernel(graph, X, posterior.kernel, dense(posterior.Z))
    features = _squares(graph, graph.node("MatMul", K, graph.real(posterior.map.T)))
    missing = graph.node("Sub", _diagonal(graph, posterior.kernel, X), features)
    missing = graph.node("Max", missing, graph.real(0.0))
    moved = graph.node("Sub", K, graph.real(np.asarray(mean)[None, :]))
    learned = _squares(graph, graph.node("MatMul", moved, graph.real(P)))
    learned = graph.node("Add", learned, graph.real(1.0 / posterior.moments.weight))
    learned = graph.node("Div", learned, graph.real(posterior.C))
    return graph.node("Add", learned, missing)


def _dual_variance(graph: Graph, posterior: DualPosterior, X: str) -> str:
    """Add the same for a dual model."""
    system = posterior.system
    check_kernel(system.kernel)
    eta, s, _, _ = posterior.solved
    u = np.asarray(system.u, dtype=np.float64)
    K = add_kernel(graph, X, system.kernel, dense(system.basis))
    lower = np.tril(posterior.state.array)
    inverse = solve_triangular(lower, np.eye(len(u)), lower=True, check_finite=False)
    half = graph.node("MatMul", K, graph.real(u[:, None] * inverse.T))
    variance = graph.node("Sub", _diagonal(graph, system.kernel, X), _squares(graph, half))
    if system.bias:
        part = graph.node("MatMul", K, graph.real((u * eta)[:, None]))
        left = graph.node("Sub", graph.real(1.0), part)
        square = graph.node("Mul", left, left)
        variance = graph.node("Add", variance, graph.node("Div", square, graph.real(s)))
    return graph.node("Max", variance, graph.real(0.0))


def _squares(graph: Graph, value: str) -> str:
    return graph.row_sums(graph.node("Mul", value, value))


def _diagonal(graph: Graph, kernel: Kernel, X: str) -> str:
    """Add K(x, x), shape (n, 1) or a number."""
    if not isinstance(kernel, (Linear, Polynomial)):
        return graph.real(1.0)
    own = _squares(graph, X)
    if isinstance(kernel, Linear):
        return own
    own = graph.node("Mul", own, graph.real(kernel.gamma))
    base = value = graph.node("Add", own, graph.real(kernel.coef0))
    for _ in range(int(kernel.degree) - 1):
        value = graph.node("Mul", value, base)
    return value
