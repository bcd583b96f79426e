"""A fitted estimator of this package as ONNX operators.

First kernels, expansions of them and partitions of the rows. Then in the order of a prediction:
from the outputs of binary problems to class scores and labels, to calibrated probabilities, to
prediction intervals; then the estimator, and one step of a `NARX`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import comb

from lssvm._core.arrays import AnyArray, FloatArray, is_sparse
from lssvm._core.errors import InvalidInputError
from lssvm.codes import Code
from lssvm.estimators import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC, GreedyLSSVR
from lssvm.estimators.base import KernelClassifier, KernelEstimator, KernelRegressor
from lssvm.fitting.record import Fit, Member, Scaling
from lssvm.fitting.series import SeriesFit
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
from lssvm.kernels.base import Expansion
from lssvm.kernels.metric import Metric
from lssvm.kernels.warp import Warp
from lssvm.local import Tree
from lssvm.onnx.graph import Graph, ModelGraph, Tensor, Value, element_type, loop_body
from lssvm.tasks import Classes, Numbers
from lssvm.uncertainty import DualPosterior, FixedPosterior, Isotonic, Probabilities, Sigmoid
from lssvm.uncertainty.probabilities import (
    CLASS_FLOOR,
    PAIR_FLOOR,
    TILT,
    by_problem,
    check_coverage,
)

_NOT_ITSELF = 1e30  # taken off the output of a class where those of the others are added up
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


def add_fit(features: Mapping[Scaling, Tensor], fit: Fit[Any]) -> Tensor:
    """Add the outputs (n, k) of a fit: the weighted sum of its members.

    Parameters
    ----------
    features : mapping from scalings to Tensor
        Rows (n, d), for every scaling that a member takes.
    fit : Fit
    """
    total: Tensor | None = None
    pieces: list[Tensor] = []
    order: list[int] = []
    for member in fit.used:
        values = add_member(features[member.scaling], member)
        values = values if member.weight == 1.0 else values * member.weight
        if member.outputs is None:
            total = values if total is None else total + values
        else:
            pieces.append(values)
            order += list(member.outputs)
    if pieces:
        total = pieces[0].graph.in_order(pieces, order)
    assert total is not None
    return total if fit.offset is None else total + fit.offset[None, :]


def add_member(X: Tensor, member: Member) -> Tensor:
    """Add the outputs of a member for the rows ``X`` (n, d)."""
    X, trees = add_map(X, member.metric), member.trees
    total = add_partition(X, trees[0], member.leaves())
    for i in range(1, len(trees)):
        total = total + add_partition(X, trees[i], member.leaves(i))
    return total if len(trees) == 1 else total * (1.0 / len(trees))


def add_partition(X: Tensor, tree: Tree | None, leaves: list[Expansion]) -> Tensor:
    """Add the outputs (n, k) of the leaves that the rows ``X`` (n, d) fall into."""
    if tree is None or len(leaves) == 1:
        return add_expansion(X, leaves[0])
    graph, place = X.graph, add_route(X, tree)
    out = graph.zeros(X, len(leaves[0].intercept))
    for number, leaf in enumerate(leaves):
        rows = graph.node("NonZero", graph.node("Equal", place, graph.integers(number)))  # (1, m)
        rows = graph.node("Transpose", rows, perm=[1, 0])
        outputs = add_expansion(graph.node("GatherND", X, rows), leaf)
        out = graph.node("ScatterND", out, rows, outputs)
    return out


def add_expansion(X: Tensor, one: Expansion) -> Tensor:
    """Add an expansion for mapped rows ``X`` (n, d), without basis functions that add nothing."""
    kernel = one.kernel
    check_kernel(kernel)
    used = np.any(one.coef != 0.0, axis=1)
    used[0] |= not used.any()
    Z, coef = dense(one.basis)[used], np.asarray(one.coef[used], dtype=np.float64)
    linear = type(kernel) is Linear  # x^T (sum_j coef_j z_j)
    values = X @ (Z.T @ coef) if linear else add_kernel(X, kernel, Z) @ coef
    return values + one.intercept[None, :]


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
    paths = np.zeros((len(tree.thresholds), tree.n_leaves))
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


def add_class_scores(code: Code, decoding: str | None, raw: Tensor) -> Tensor:
    """Add `lssvm.codes.decode`: from outputs (n, n_problems) to class scores (n, n_classes).

    With "argmax" the outputs are the scores, with "softmax" their log-odds against the others.
    """
    matrix = code.matrix.T.astype(np.float64)  # (n_problems, n_classes)
    confidence = raw @ matrix
    if code.n_problems == 1:
        return confidence
    if decoding == "argmax":
        return raw
    if decoding == "softmax":
        graph, K = raw.graph, code.n_classes
        others = raw.reshape(-1, 1, K) - _NOT_ITSELF * np.eye(K)[None]  # (n, K, K)
        largest = graph.node("ReduceMax", others, graph.integers([2]), keepdims=1)
        total = graph.node("Exp", others - largest).sums(2)
        return raw - (graph.node("Log", total) + largest).reshape(-1, K)
    if decoding is None:
        decoding = "loss" if code.shares_rows else "hamming"
    if decoding == "hamming":
        filled = float(np.count_nonzero(code.matrix, axis=1).max())
        lost = (filled - raw.graph.node("Sign", raw) @ matrix) / 2.0
        size = raw.graph.node("Abs", confidence) + 1.0
        return confidence / (size * 4.0) - lost
    return -(-raw @ (matrix > 0) + raw @ (matrix < 0))  # linear loss, in the order of `decode`


def add_decision(code: Code, decoding: str | None, raw: Tensor) -> tuple[Tensor, Tensor]:
    """Add decision values and class numbers.

    Returns
    -------
    scores : Tensor
        (n, 1) for two classes, positive for the second; else (n, n_classes).
    index : Tensor
        Class numbers (n,), int64.
    """
    if code.n_classes > 2:
        scores = add_class_scores(code, decoding, raw)
        return scores, raw.graph.node("ArgMax", scores, axis=1, keepdims=0)
    scores = raw if code.matrix[1, 0] > 0 else -raw
    second = raw.graph.node("Greater", scores, 0.0)
    return scores, second.cast(np.int64).reshape(-1)


def class_labels(classes: Any) -> np.ndarray[Any, Any]:
    """Return labels in a type that ONNX has: int64, strings (as objects), bool or float64."""
    array = np.asarray(classes)
    if array.dtype.kind in "OUT" and all(isinstance(label, str) for label in array.tolist()):
        return np.array([str(label) for label in array.tolist()], dtype=object)
    if array.dtype.kind == "O":
        array = np.asarray(array.tolist())  # numbers that were stored as objects
    if array.dtype.kind == "b":
        return array.astype(np.bool_)
    if array.dtype.kind in "iu" and array.max() <= np.iinfo(np.int64).max:
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    raise InvalidInputError(
        f"The classes {array.tolist()[:5]} have the type {array.dtype}, which ONNX labels cannot "
        "have: fit with labels that are integers, numbers, booleans or strings."
    )


def add_probabilities(
    calibrated: Probabilities, raw: Tensor, scores: Tensor, index: Tensor | None
) -> Tensor:
    """Add calibrated probabilities (n, n_classes), see `lssvm.uncertainty.Probabilities`.

    Parameters
    ----------
    calibrated : Probabilities
    raw : Tensor
        Outputs (n, n_problems).
    scores : Tensor
        Class scores (n, n_classes); not read where each problem has two classes.
    index : Tensor or None
        Class numbers (n,) that were decided, where probabilities are to agree with them.
    """
    code, maps = calibrated.code, calibrated.maps
    if not by_problem(code):
        p = _calibrated(maps, scores).clipped(CLASS_FLOOR, 1.0)
        p = (p / p.sums()).clipped(PAIR_FLOOR, 1.0)
        p = raw.graph.node("Pow", p / p.sums(), calibrated.sharpness)
        return _agreeing(p / p.sums(), index, code.n_classes)
    pairs = _calibrated(maps, raw).clipped(PAIR_FLOOR, 1.0 - PAIR_FLOOR)  # (n, n_problems)
    rest = 1.0 - pairs
    if code.n_classes > 2:
        return _agreeing(_coupled(code, pairs, rest), index, code.n_classes)
    both = [rest, pairs] if code.matrix[1, 0] > 0 else [pairs, rest]
    return _agreeing(raw.graph.concat(both), index, 2)


def _calibrated(maps: list[Any], scores: Tensor) -> Tensor:
    """Add the maps of the columns of ``scores`` (n, k)."""
    graph = scores.graph
    if all(isinstance(one, Sigmoid) for one in maps):
        slope, offset = ([[getattr(one, name) for one in maps]] for name in ("slope", "offset"))
        return 1.0 / (graph.node("Exp", -(scores * slope + offset)) + 1.0)
    if len(maps) > 1:
        return graph.concat([_calibrated([one], scores.columns([j])) for j, one in enumerate(maps)])
    (one,) = maps
    assert isinstance(one, Isotonic)
    lowest = float(one.values[0])
    if len(one.knots) == 1:
        return graph.zeros(scores, 1) + lowest
    width = np.maximum(np.diff(one.knots), np.finfo(graph.dtype).tiny)
    # The share of every piece that lies below a score, then the rise of the pieces so far.
    share = ((scores - one.knots[None, :-1]) / width[None, :]).clipped(0.0, 1.0)
    return share @ np.diff(one.values)[:, None] + lowest


def _coupled(code: Code, pairs: Tensor, rest: Tensor) -> Tensor:
    """Add `couple_pairs`: the p that minimises p^T Q p with sum one, by elimination.

    (Q + e e^T) x = e has the solution x = p / constant, and its matrix is positive definite: no
    pivots are needed, and one `Scan` over the classes eliminates the systems of all rows at once.
    """
    graph, K, k = pairs.graph, code.n_classes, code.n_problems
    place = {
        (int(np.argmax(column)), int(np.argmin(column))): j
        for j, column in enumerate(code.matrix.T)
    }
    # r (n, K, K): P(i of i and j); its entries are columns of pairs, rest and a zero.
    where = [
        2 * k if i == j else place[i, j] if (i, j) in place else k + place[j, i]
        for i in range(K)
        for j in range(K)
    ]
    entries = graph.concat([pairs, rest, graph.zeros(pairs, 1)])
    r = entries.columns(where).reshape(-1, K, K)
    turned = graph.node("Transpose", r, perm=[0, 2, 1])
    diagonal = (turned * turned).sums(2) * np.eye(K)[None]
    Q = diagonal - turned * r  # [Wu2004], the second method
    A = graph.concat([Q + np.ones((1, K, K)), graph.zeros(pairs, K, 1) + 1.0], axis=2)

    step = ModelGraph(graph.dtype, prefix="step/", taken=("A", "unit"))
    old, unit = step.tensor("A"), step.tensor("unit")  # one at the pivot
    wide = unit.reshape(1, 1, K + 1)
    tall = step.node("Gather", unit, step.integers(np.arange(K))).reshape(1, K, 1)
    row = (old * tall).sums(1)  # (n, 1, K + 1)
    row = row / (row * wide).sums(2)
    column = (old * wide).sums(2) - tall  # (n, K, 1)
    body = loop_body(step, ["A", "unit"], [old - column * row])
    (solved,) = graph.scan([A], [np.eye(K, K + 1)], body)
    p = graph.node("Max", graph.node("Gather", solved, graph.integers(K), axis=2), 0.0)
    return p / p.sums()


def _largest(values: Tensor, count: int, columns: int) -> Tensor:
    """Add the largest values of every row, in descending order."""
    graph = values.graph
    # One row more: versions of the runtime before 1.31 divide by the number of rows.
    padded = graph.node("Concat", values, np.zeros((1, columns)), axis=0)
    top, _ = graph.nodes_of(
        "TopK", padded, graph.integers([count]), n_outputs=2, axis=1, largest=1, sorted=1
    )
    return graph.node("Slice", top, *(graph.integers([i]) for i in (0, -1, 0)))


def _agreeing(p: Tensor, index: Tensor | None, K: int) -> Tensor:
    """Add `agree_with`: rows whose largest probability is not the decided class are projected."""
    if index is None:
        return p
    node, integers = p.graph.node, p.graph.integers
    decided = index.reshape(-1, 1)
    is_decided = node("Equal", decided, integers(np.arange(K)[None, :]))
    decided_p = node("Where", is_decided, p, 0.0).sums()
    others = node("Where", is_decided, -1.0, p)
    largest = _largest(others, K - 1, K)
    levels = (node("CumSum", largest, integers(1)) + decided_p) / np.arange(2, K + 1)[None, :]
    level = _largest(levels, 1, K - 1)
    new = node("Where", is_decided, level, node("Min", p, level))
    new = new * ((1.0 - TILT) / new.sums()) + node("Where", is_decided, TILT, 0.0)
    first = node("ArgMax", p, axis=1, keepdims=1)
    return node("Where", node("Equal", first, decided), p, new)


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
    X = add_map(X, model.record_.main.metric)
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


CLASSIFIERS = (LSSVC, FixedSizeLSSVC, GreedyLSSVC)
REGRESSORS = (LSSVR, FixedSizeLSSVR, GreedyLSSVR)


def probabilities_of(model: KernelClassifier, wanted: bool | None) -> Probabilities | None:
    """Return the calibrated maps of a classifier.

    Parameters
    ----------
    model : KernelClassifier
    wanted : bool or None
        None: None is returned where there are no maps; True: that is an error.
    """
    if wanted is False:
        return None
    if not hasattr(model, "predict_proba"):
        if wanted:
            raise InvalidInputError(
                "probabilities=True but the model has none: give Coding(calibration='auto'), or "
                "leave probabilities out."
            )
        return None
    try:
        return model._probabilities()
    except InvalidInputError:  # too few rows to calibrate on, or a model cut short
        if wanted:
            raise
        return None


def add_classifier(
    model: KernelClassifier, features: Mapping[Scaling, Tensor], wanted: bool | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Add a classifier for rows (n, d); return scores, class numbers and probabilities."""
    calibration, task = probabilities_of(model, wanted), model.record_.task
    assert isinstance(task, Classes)
    raw = add_fit(features, model.record_)
    scores, index = add_decision(task.code, task.decoding, raw)
    if calibration is None:
        return scores, index, None
    by_class, decided = scores, index if calibration.agrees else None
    if task.n_classes == 2 or task.decoding == "argmax":
        by_class = add_class_scores(task.code, calibration.decoding, raw)
    return scores, index, add_probabilities(calibration, raw, by_class, decided)


def add_outputs(
    model: KernelEstimator,
    features: Mapping[Scaling, Tensor],
    wanted: bool | None,
    interval: float | None,
) -> dict[str, Value]:
    """Add a model for rows (n, d); return its outputs by their usual names.

    Parameters
    ----------
    model : classifier or regressor
    features : mapping from scalings to Tensor
        For every scaling that a member takes.
    wanted : bool or None
        Whether a classifier is to have probabilities, see `probabilities_of`.
    interval : float or None
        Coverage of a regressor's intervals, where it is to have some.
    """
    (X, *_), task = features.values(), model.record_.task
    if wanted and not isinstance(task, Classes):
        raise InvalidInputError("probabilities=True but the model is a regressor: leave it out.")
    if interval is not None and not isinstance(model, KernelRegressor):
        raise InvalidInputError(
            f"interval= is for LSSVR and FixedSizeLSSVR; {type(model).__name__} has no prediction "
            "intervals in ONNX: leave it out."
        )
    if isinstance(model, KernelClassifier):
        labels = class_labels(model.classes_)
        return class_outputs(labels, *add_classifier(model, features, wanted))
    raw = add_fit(features, model.record_)
    if isinstance(task, Numbers) and task.scale is not None and task.shift is not None:
        L, constant = task.linear_scores()
        raw = raw * np.diag(L)[None, :] + constant[None, :]
        raw = raw if task.smearing is None else X.graph.node("Exp", raw)
    values = {"prediction": raw}
    if isinstance(model, KernelRegressor) and interval is not None:
        ends = add_interval(model, X, values["prediction"], interval)
        values |= dict(zip(("lower", "upper"), ends, strict=True))
    kind = element_type(X.graph.dtype)
    return {name: Value(value.name, kind, (task.n_outputs,)) for name, value in values.items()}


def class_outputs(
    labels: AnyArray, scores: Tensor, index: Tensor, p: Tensor | None
) -> dict[str, Value]:
    """Return the outputs of a classifier: labels, probabilities where there are, scores."""
    graph, kind, K = scores.graph, element_type(scores.graph.dtype), len(labels)
    label = graph.node("Gather", graph.constant(labels), index)
    # Tools look for probabilities in the second output, as skl2onnx writes them.
    outputs = {"label": Value(label.name, element_type(labels.dtype), ())}
    if p is not None:
        outputs["probabilities"] = Value(p.name, kind, (K,))
    return outputs | {"scores": Value(scores.name, kind, (1 if K == 2 else K,))}


def series_inputs(record: SeriesFit, dtype: np.dtype[np.floating]) -> list[Value]:
    """Return the inputs of a step: the latest values, and the exogenous inputs where there are."""
    layout, kind = record.layout, element_type(dtype)
    inputs = [Value("history", kind, (layout.lags + layout.differencing,))]
    if layout.n_exog:
        inputs.append(Value("inputs", kind, (layout.exog_lags + 1, layout.n_exog)))
    return inputs


def add_step(graph: Graph, record: SeriesFit) -> dict[str, Value]:
    """Add the prediction of the next value from what `series_inputs` declares.

    ``history`` holds the latest values, the newest last; ``inputs`` those of the times up to and
    including the one that is predicted, the newest last.
    """
    inner, layout = record.inner, record.layout
    if inner is None:
        raise InvalidInputError(
            f"The estimator of NARX is a {type(record.regressor).__name__}, which cannot be "
            "exported: use one of this package, such as LSSVR or FixedSizeLSSVR."
        )
    lags, order = layout.lags, layout.differencing
    z = history = graph.tensor("history")
    for level in range(order):
        width = lags + order - level
        z = z.columns(np.arange(1, width)) - z.columns(np.arange(width - 1))
    row = ((z - layout.mean) / layout.scale).columns(np.arange(lags)[::-1])
    if layout.n_exog:
        u = graph.tensor("inputs").columns(np.arange(layout.exog_lags + 1)[::-1])
        u = (u - layout.inputs_mean) / layout.inputs_scale
        row = graph.concat([row, u.reshape(-1, (layout.exog_lags + 1) * layout.n_exog)])
    out = add_fit({"none": row}, inner) * layout.scale + layout.mean
    for j in range(1, order + 1):
        out -= history.columns([lags + order - j]) * ((-1.0) ** j * comb(order, j))
    return {"prediction": Value(out.name, element_type(graph.dtype), (1,))}
