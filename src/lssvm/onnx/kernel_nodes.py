"""Kernels K(x, z) for fixed z, and expansions of them, as ONNX operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.namespace import is_sparse
from lssvm.kernels import (
    RBF,
    Exponential,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    NonStationary,
    Polynomial,
)
from lssvm.onnx.graph import Graph, ModelGraph, loop_body
from lssvm.recipes.record import Fit

_KERNELS = (RBF, Linear, Polynomial, Exponential, Laplacian, Matern, NonStationary)


def check_kernel(kernel: Kernel) -> None:
    """Raise where a kernel cannot be written with standard operators."""
    if type(kernel) is NonStationary and kernel.lengths is not None:
        raise InvalidInputError(
            "The kernel has length scales that a Python function gives, which ONNX cannot hold: "
            "fit with NonStationary(gamma) and its own length scales, or another kernel."
        )
    if type(kernel) not in _KERNELS:
        raise InvalidInputError(
            f"The kernel {kernel.name!r} ({type(kernel).__name__}) cannot be exported: ONNX has "
            "no way to hold a Python function or a kernel matrix. Fit with kernel='rbf', "
            "'linear', 'poly', 'exponential', 'laplacian', 'matern' or 'nonstationary'."
        )


def dense(rows: Any) -> FloatArray:
    """Return rows as a dense array of float64."""
    return np.asarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64)


def add_expansion(graph: Graph, X: str, fit: Fit) -> str:
    """Add sum_j coef_j K(x, z_j) + b for rows ``X`` (n, d) and return its value (n, k)."""
    Z, parts, order = dense(fit.basis), [], []
    for columns, kernel, coef, _ in fit.expansions():
        check_kernel(kernel)
        used = np.any(coef != 0.0, axis=1)  # the others add nothing
        used[0] |= not used.any()
        part, weights = Z[used], np.asarray(coef[used], dtype=np.float64)
        if type(kernel) is Linear:  # x^T (sum_j coef_j z_j)
            parts.append(graph.node("MatMul", X, graph.real(part.T @ weights)))
        else:
            values = add_kernel(graph, X, kernel, part)
            parts.append(graph.node("MatMul", values, graph.real(weights)))
        order += list(columns)
    together = parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)
    if order != sorted(order):
        together = graph.columns(together, np.argsort(order))
    return graph.node("Add", together, graph.real(fit.intercept[None, :]))


def add_kernel(graph: Graph, X: str, kernel: Kernel, Z: FloatArray) -> str:
    """Add K(x, z) for rows ``X`` (n, d) and fixed ``Z`` (m, d); return its value (n, m)."""
    if isinstance(kernel, Linear):
        return graph.node("MatMul", X, graph.real(Z.T))
    if isinstance(kernel, Polynomial):
        scaled = graph.node("MatMul", X, graph.real(kernel.gamma * Z.T))
        base = value = graph.node("Add", scaled, graph.real(kernel.coef0))
        for _ in range(int(kernel.degree) - 1):
            value = graph.node("Mul", value, base)
        return value
    if isinstance(kernel, RBF):
        return graph.node("Exp", _exponents(graph, X, kernel.gamma, Z))
    if isinstance(kernel, (Exponential, Laplacian)):
        factors = np.broadcast_to(np.asarray(kernel.gamma, dtype=float), (Z.shape[1],))
        euclidean = isinstance(kernel, Exponential)
        scaled, of = _scaled(graph, X, factors), "Square" if euclidean else "Abs"
        total = _differences(graph, scaled, Z * factors, of)
        distance = graph.node("Sqrt", total) if euclidean else total
        return graph.node("Exp", graph.node("Neg", distance))
    if isinstance(kernel, Matern):
        return _matern(graph, X, kernel, Z)
    assert isinstance(kernel, NonStationary)
    return _nonstationary(graph, X, kernel, Z)


def _scaled(graph: Graph, X: str, factors: FloatArray) -> str:
    return graph.node("Mul", X, graph.real(factors[None, :]))


def _exponents(graph: Graph, X: str, gamma: Any, Z: FloatArray) -> str:
    """Add -gamma ||x - z||^2 by one product, of rows moved to the middle of ``Z``: (n, m)."""
    if np.ndim(gamma) == 1:
        root = np.sqrt(np.asarray(gamma, dtype=float))
        X, Z, gamma = _scaled(graph, X, root), Z * root, 1.0
    gamma = float(gamma)
    centre = Z.mean(axis=0, keepdims=True)
    moved = Z - centre
    squares = gamma * np.sum(moved**2, axis=1)
    if squares.max() * math.sqrt(np.finfo(graph.dtype).eps) > 1.0:  # half the digits would be lost
        distances = _differences(graph, X, Z, "Square")
        return graph.node("Mul", distances, graph.real(-gamma))
    rows = graph.node("Sub", X, graph.real(centre))
    own = graph.row_sums(graph.node("Mul", rows, rows))
    own = graph.node("Mul", own, graph.real(-gamma))
    left = graph.node("Concat", rows, own, axis=1)  # (n, d + 1)
    right = np.vstack([2.0 * gamma * moved.T, np.ones(len(Z))])
    exponents = graph.node("Gemm", left, graph.real(right), graph.real(-squares))
    return graph.node("Min", exponents, graph.real(0.0))


def _differences(graph: Graph, X: str, Z: FloatArray, of: str) -> str:
    """Add sum_i f(x_i - z_i), f the absolute value or the square, feature by feature: (n, m)."""
    step = ModelGraph(graph.dtype, prefix="step/", taken=("total", "x", "z"))
    column = step.node("Reshape", "x", step.integers([-1, 1]))
    gap = step.node("Sub", column, "z")
    term = step.node("Abs", gap) if of == "Abs" else step.node("Mul", gap, gap)
    total = step.node("Add", "total", term)
    body = loop_body(step, ["total", "x", "z"], [total])
    features = graph.node("Transpose", X, perm=[1, 0])
    return graph.scan([graph.zeros(X, len(Z))], [features, graph.real(Z.T)], body)[0]


def _matern(graph: Graph, X: str, kernel: Matern, Z: FloatArray) -> str:
    if kernel.nu == 0.5:  # by differences: the root of a rounded square would cost half the digits
        root = np.broadcast_to(np.sqrt(np.asarray(kernel.gamma, dtype=float)), (Z.shape[1],))
        square = _differences(graph, _scaled(graph, X, root), Z * root, "Square")
    else:  # smooth in the square: nothing is lost
        square = graph.node("Neg", _exponents(graph, X, kernel.gamma, Z))
    distance = graph.node("Sqrt", square)
    t = graph.node("Mul", distance, graph.real(2.0 * math.sqrt(kernel.nu)))
    decay = graph.node("Exp", graph.node("Neg", t))
    if kernel.nu == 0.5:
        return decay
    factor = graph.node("Add", t, graph.real(1.0))
    if kernel.nu == 2.5:
        third = graph.node("Div", graph.node("Mul", t, t), graph.real(3.0))
        factor = graph.node("Add", factor, third)
    return graph.node("Mul", factor, decay)


def _nonstationary(graph: Graph, X: str, kernel: NonStationary, Z: FloatArray) -> str:
    """Add the kernel feature by feature: states are the factor and the exponent, both (n, m)."""
    names = ["factor", "exponent", "x", "z", "a", "b"]
    step = ModelGraph(graph.dtype, prefix="step/", taken=names)
    as_column = step.integers([-1, 1])
    x, a = (step.node("Reshape", name, as_column) for name in ("x", "a"))
    total = step.node("Add", step.node("Mul", a, a), step.node("Mul", "b", "b"))
    twice = step.node("Mul", step.node("Mul", a, step.real(2.0)), "b")
    factor = step.node("Mul", "factor", step.node("Div", twice, total))
    gap = step.node("Sub", x, "z")
    term = step.node("Div", step.node("Mul", gap, gap), total)
    exponent = step.node("Sub", "exponent", term)
    body = loop_body(step, names, [factor, exponent])

    scale = np.broadcast_to(1.0 / np.sqrt(2.0 * np.asarray(kernel.gamma)), (Z.shape[1],))
    lengths = graph.node("Add", graph.node("Abs", X), graph.real(1.0))
    lengths = _scaled(graph, lengths, scale)
    nothing = graph.zeros(X, len(Z))
    ones = graph.node("Add", nothing, graph.real(1.0))
    over = [graph.node("Transpose", value, perm=[1, 0]) for value in (X, lengths)]
    fixed = [graph.real(Z.T), graph.real(((1.0 + np.abs(Z)) * scale).T)]
    factor, exponent = graph.scan(
        [ones, nothing], [over[0], fixed[0], over[1], fixed[1]], body
    )  # [Suykens2002, eq. (3.70)]
    return graph.node("Mul", graph.node("Sqrt", factor), graph.node("Exp", exponent))
