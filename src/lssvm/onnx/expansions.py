"""Kernels, expansions of them and partitions of the rows as ONNX operators."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, is_sparse
from lssvm._core.errors import InvalidInputError
from lssvm.fitting import Member, TableFit
from lssvm.fitting.record import Fit
from lssvm.kernels import RBF, Exponential, Laplacian, Linear, Matern, NonStationary, Polynomial
from lssvm.kernels.base import Kernel
from lssvm.kernels.metric import Metric
from lssvm.kernels.warp import Warp
from lssvm.local import Cut, Leaf, Tree
from lssvm.onnx.graph import ModelGraph, Tensor, loop_body

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


def power(base: Tensor, degree: int) -> Tensor:
    """Add a whole power by products, as the kernel computes it."""
    value = base
    for _ in range(int(degree) - 1):
        value = value * base
    return value


def add_fit(X: Tensor, fit: Fit) -> Tensor:
    """Add the outputs (n, k) of a fit for rows ``X`` (n, d)."""
    X = add_map(X, fit.metric)
    terms, order, basis = [], [], dense(fit.basis)
    for columns, kernel, coef, _ in fit.expansions():
        terms.append(add_expansion(X, kernel, basis, coef))
        order += list(columns)
    return X.graph.in_order(terms, order) + fit.intercept[None, :]


def add_members(features: Mapping[str, Tensor], fit: TableFit) -> Tensor:
    """Add the weighted sum of the outputs (n, k) of all members."""
    total: Tensor | None = None
    for member in fit.used:
        X = add_map(features[member.configuration.inputs], member.metric)
        for cut in member.model.cuts:
            values = add_partition(X, member, cut) * (member.weight / len(member.model.cuts))
            total = values if total is None else total + values
    assert total is not None
    return total + fit.offset[None, :]


def add_partition(X: Tensor, member: Member, cut: Cut) -> Tensor:
    """Add the outputs (n, k) of the leaves that the rows ``X`` (n, d) fall into."""
    graph = X.graph

    def add_leaf(X: Tensor, leaf: Leaf) -> Tensor:
        kernel = member.configuration.make_kernel(leaf.setting.gamma)
        outputs = add_expansion(X, kernel, dense(leaf.rows.X), leaf.fit.coef)
        return outputs + leaf.fit.intercept[None, :]

    if len(cut.leaves) == 1:
        return add_leaf(X, cut.leaves[0])
    place = add_route(X, cut.tree)
    out = graph.zeros(X, cut.leaves[0].fit.coef.shape[1])
    for number, leaf in enumerate(cut.leaves):
        rows = graph.node("NonZero", graph.node("Equal", place, graph.integers(number)))  # (1, m)
        rows = graph.node("Transpose", rows, perm=[1, 0])
        outputs = add_leaf(graph.node("GatherND", X, rows), leaf)
        out = graph.node("ScatterND", out, rows, outputs)
    return out


def add_expansion(X: Tensor, kernel: Kernel, Z: FloatArray, coef: FloatArray) -> Tensor:
    """Add sum_j coef_j K(x, z_j) for rows ``X`` (n, d), without vectors that add nothing."""
    check_kernel(kernel)
    used = np.any(coef != 0.0, axis=1)
    used[0] |= not used.any()
    Z, coef = Z[used], np.asarray(coef[used], dtype=np.float64)
    linear = type(kernel) is Linear  # x^T (sum_j coef_j z_j)
    return X @ (Z.T @ coef) if linear else add_kernel(X, kernel, Z) @ coef


def add_map(X: Tensor, metric: Metric) -> Tensor:
    """Add the warp and the metric of the inputs."""
    if metric.warp is not None:
        X = add_warp(X, metric.warp)
    A = metric.map
    if A is None:
        return X
    return X * A[None, :] if A.ndim == 1 else X @ A


def add_warp(X: Tensor, warp: Warp) -> Tensor:
    """Add a piecewise linear map of every feature: a line and a hinge at every inner knot."""
    d, q = warp.knots.shape
    first, slope, hinge = np.zeros(d), np.ones(d), np.zeros((q, d))
    for j, (x, y) in enumerate(zip(warp.knots, warp.values, strict=True)):
        last = int(np.argmax(x == x[-1])) + 1
        first[j] = y[0] - x[0]
        if last > 1:
            steps = np.diff(y[:last]) / np.diff(x[:last])
            slope[j], first[j] = steps[0], y[0] - steps[0] * x[0]
            hinge[1 : last - 1, j] = np.diff(steps)
    total = X * slope[None, :] + first[None, :]
    for i in np.flatnonzero(hinge.any(axis=1)):
        total = total + X.graph.node("Relu", X - warp.knots[None, :, i]) * hinge[i][None, :]
    return total


def add_kernel(X: Tensor, kernel: Kernel, Z: FloatArray) -> Tensor:
    """Add K(x, z) for rows ``X`` (n, d) and fixed ``Z`` (m, d); return its value (n, m)."""
    node = X.graph.node
    if isinstance(kernel, Linear):
        return X @ Z.T
    if isinstance(kernel, Polynomial):
        return power(X @ (kernel.gamma * Z.T) + kernel.coef0, kernel.degree)
    if isinstance(kernel, RBF):
        return node("Exp", _exponents(X, kernel.gamma, Z))
    if isinstance(kernel, Laplacian):
        return node("Exp", -_differences(*_scaled(X, kernel.gamma, Z), "Abs"))
    if isinstance(kernel, Exponential):
        return node("Exp", -node("Sqrt", _differences(*_scaled(X, kernel.gamma, Z), "Square")))
    if isinstance(kernel, Matern):
        return _matern(X, kernel, Z)
    assert isinstance(kernel, NonStationary)
    return _nonstationary(X, kernel, Z)


def _scaled(X: Tensor, factors: Any, Z: FloatArray) -> tuple[Tensor, FloatArray]:
    factors = np.broadcast_to(np.asarray(factors, dtype=float), (Z.shape[1],))
    return X * factors[None, :], Z * factors


def _exponents(X: Tensor, gamma: Any, Z: FloatArray) -> Tensor:
    """Add -gamma ||x - z||^2 by one product, of rows moved to the middle of ``Z``: (n, m)."""
    graph = X.graph
    if np.ndim(gamma) == 1:
        (X, Z), gamma = _scaled(X, np.sqrt(np.asarray(gamma, dtype=float)), Z), 1.0
    centre = Z.mean(axis=0, keepdims=True)
    moved = Z - centre
    squares = gamma * np.sum(moved**2, axis=1)
    if squares.max() * math.sqrt(np.finfo(graph.dtype).eps) > 1.0:  # half the digits would be lost
        return _differences(X, Z, "Square") * float(-gamma)
    rows = X - centre
    left = graph.concat([rows, (rows * rows).sums() * -gamma])  # (n, d + 1)
    right = np.vstack([2.0 * gamma * moved.T, np.ones(len(Z))])
    return graph.node("Min", graph.node("Gemm", left, right, -squares), 0.0)


def _differences(X: Tensor, Z: FloatArray, of: str) -> Tensor:
    """Add sum_i f(x_i - z_i), f the absolute value or the square, feature by feature: (n, m)."""
    names = ["total", "x", "z"]
    step = ModelGraph(X.graph.dtype, prefix="step/", taken=names)
    total, x, z = (step.tensor(name) for name in names)
    gap = x.reshape(-1, 1) - z
    term = step.node("Abs", gap) if of == "Abs" else gap * gap
    body = loop_body(step, names, [total + term])
    features = X.graph.node("Transpose", X, perm=[1, 0])
    return X.graph.scan([X.graph.zeros(X, len(Z))], [features, Z.T], body)[0]


def _matern(X: Tensor, kernel: Matern, Z: FloatArray) -> Tensor:
    """Add the kernel of order 1/2, 3/2 or 5/2."""
    node = X.graph.node
    if kernel.nu == 0.5:  # by differences: the root of a rounded square would cost half the digits
        root = np.sqrt(np.asarray(kernel.gamma, dtype=float))
        square = _differences(*_scaled(X, root, Z), "Square")
    else:  # smooth in the square: nothing is lost
        square = -_exponents(X, kernel.gamma, Z)
    t = node("Sqrt", square) * (2.0 * math.sqrt(kernel.nu))
    decay = node("Exp", -t)
    if kernel.nu == 0.5:
        return decay
    factor = t + 1.0
    return (factor + t * t / 3.0 if kernel.nu == 2.5 else factor) * decay


def _nonstationary(X: Tensor, kernel: NonStationary, Z: FloatArray) -> Tensor:
    """Add the kernel feature by feature: states are the factor and the exponent, both (n, m)."""
    graph = X.graph
    names = ["factor", "exponent", "x", "z", "a", "b"]
    step = ModelGraph(graph.dtype, prefix="step/", taken=names)
    factor, exponent, x, z, a, b = (step.tensor(name) for name in names)
    x, a = x.reshape(-1, 1), a.reshape(-1, 1)
    total, gap = a * a + b * b, x - z
    body = loop_body(step, names, [factor * (a * 2.0 * b / total), exponent - gap * gap / total])

    scale = np.broadcast_to(1.0 / np.sqrt(2.0 * np.asarray(kernel.gamma)), (Z.shape[1],))
    lengths = (graph.node("Abs", X) + 1.0) * scale[None, :]
    zeros = graph.zeros(X, len(Z))
    x, a = (graph.node("Transpose", value, perm=[1, 0]) for value in (X, lengths))
    over = [x, Z.T, a, ((1.0 + np.abs(Z)) * scale).T]
    factor, exponent = graph.scan([zeros + 1.0, zeros], over, body)  # [Suykens2002, eq. (3.70)]
    return graph.node("Sqrt", factor) * graph.node("Exp", exponent)


def add_route(X: Tensor, tree: Tree) -> Tensor:
    """Add the number of the leaf of every row, (n,) int64.

    With answers -1 (left) and 1 (right) at all inner nodes, a row is in the leaf whose path they
    agree with at every node: a product with the paths counts where they do.
    """
    graph = X.graph
    right = graph.node("Greater", X @ tree.directions.T, tree.thresholds[None, :])
    answers = graph.node("Where", right, 1.0, -1.0)
    paths = tree_paths(tree)
    depth = np.abs(paths).sum(axis=0)
    return graph.node("ArgMax", answers @ paths - depth[None, :], axis=1, keepdims=0)


def tree_paths(tree: Tree) -> FloatArray:
    """Return the turn at every inner node on the way to every leaf, shape (q, n_leaves).

    1 is right, -1 left, 0 a node that is not on the way.
    """
    paths = np.zeros((len(tree.thresholds), tree.n_parts))
    waiting: list[tuple[int, list[tuple[int, float]]]] = [(0, [])]
    while waiting:
        node, before = waiting.pop()
        for side, turn in ((0, -1.0), (1, 1.0)):
            child, way = int(tree.children[node, side]), [*before, (node, turn)]
            if child >= 0:
                waiting.append((child, way))
                continue
            for at, value in way:
                paths[at, -1 - child] = value
    return paths
