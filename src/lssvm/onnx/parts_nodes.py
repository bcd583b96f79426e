"""The stacked exact models of a table, in parts, as ONNX operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.estimators import LSSVMClassifier, LSSVMRegressor
from lssvm.onnx.decision_nodes import add_class_scores, class_labels
from lssvm.onnx.graph import ModelGraph, Tensor, Value, element_type
from lssvm.onnx.kernel_nodes import add_kernel
from lssvm.onnx.probability_nodes import add_probabilities
from lssvm.onnx.table_nodes import open_tables
from lssvm.parts import Cut, Tree
from lssvm.recipes import Member, TableFit
from lssvm.recipes.configurations import Inputs
from lssvm.tasks import Classes
from lssvm.uncertainty import Probabilities


def table_graph(
    model: LSSVMClassifier | LSSVMRegressor,
    dtype: np.dtype[Any],
    probabilities: bool | None,
    interval: float | None,
    missing: str,
) -> tuple[ModelGraph, list[Value], dict[str, Value]]:
    """Return graph, inputs and outputs of a model for tables.

    Parameters
    ----------
    model : LSSVMClassifier or LSSVMRegressor
    dtype : float64 or float32
    probabilities : bool or None
        Whether a classifier is to have probabilities; None: it has.
    interval : None
        A coverage is refused: intervals of these models need their rows' errors.
    missing : str
        The string that stands for a missing one.
    """
    if interval is not None:
        raise InvalidInputError(
            f"interval= is for LSSVR and FixedSizeLSSVR; {type(model).__name__} has no prediction "
            "intervals in ONNX: leave it out."
        )
    fit = model.record_
    context = fit.context
    assert context is not None
    names = [name for name in context.prepared if _uses(fit, name)]
    tables = [context.prepared[n] for n in names]
    together = not tables[0].named
    graph, inputs, features = open_tables(tables, dtype, missing, together=together)
    raw = add_stack(fit, dict(zip(names, features, strict=True)))
    kind = element_type(graph.dtype)
    if not isinstance(context.task, Classes):
        if probabilities:
            raise InvalidInputError(
                "probabilities=True but the model is a regressor: leave it out."
            )
        prediction = raw * context.scale[None, :] + context.shift[None, :]
        return graph, inputs, {"prediction": Value(prediction.name, kind, (len(context.scale),))}
    labels = class_labels(context.task.classes)
    K = len(labels)
    if K == 2:
        index = graph.node("Greater", raw, 0.0).cast(np.int64).reshape(-1)
    else:
        index = graph.node("ArgMax", raw, axis=1, keepdims=0)
    label = graph.node("Gather", graph.constant(labels), index)
    outputs = {
        "label": Value(label.name, element_type(labels.dtype), ()),
        "scores": Value(raw.name, kind, (1 if K == 2 else K,)),
    }
    if probabilities is not False:
        calibrated = context.calibration
        assert isinstance(calibrated, Probabilities)
        by_class = add_class_scores(context.task.code, context.task.decoding, raw)
        p = add_probabilities(calibrated, raw, by_class, index)
        outputs["probabilities"] = Value(p.name, kind, (K,))
    return graph, inputs, outputs


def _uses(fit: TableFit, name: Inputs) -> bool:
    return any(member.configuration.inputs == name for member in fit.members)


def add_stack(fit: TableFit, features: Mapping[Inputs, Tensor]) -> Tensor:
    """Add the weighted sum of the outputs of all members: (n, k)."""
    total: Tensor | None = None
    for member in fit.members:
        X = features[member.configuration.inputs]
        A = member.metric.map
        if A is not None:
            X = X * A[None, :] if A.ndim == 1 else X @ A
        cuts = member.model.cuts
        for cut in cuts:
            values = add_cut(member, cut, X) * (member.weight / len(cuts))
            total = values if total is None else total + values
    assert total is not None
    return total


def add_cut(member: Member, cut: Cut, X: Tensor) -> Tensor:
    """Add the outputs (n, k) of the parts that the rows X (n, d) fall into."""
    graph = X.graph
    if len(cut.leaves) == 1:
        return _add_leaf(member, cut, 0, X)
    part = add_route(cut.tree, X)
    out = graph.zeros(X, cut.leaves[0].fit.coef.shape[1])
    for p in range(len(cut.leaves)):
        rows = graph.node("NonZero", graph.node("Equal", part, graph.integers(p)))  # (1, m)
        rows = graph.node("Transpose", rows, perm=[1, 0])
        own = graph.node("GatherND", X, rows)
        out = graph.node("ScatterND", out, rows, _add_leaf(member, cut, p, own))
    return out


def _add_leaf(member: Member, cut: Cut, p: int, X: Tensor) -> Tensor:
    leaf = cut.leaves[p]
    kernel = member.configuration.make_kernel(leaf.setting.gamma)
    Z = np.asarray(leaf.rows.X, dtype=np.float64)
    return add_kernel(X, kernel, Z) @ leaf.fit.coef + leaf.fit.intercept[None, :]


def add_route(tree: Tree, X: Tensor) -> Tensor:
    """Add the number of the part of every row, (n,) int64.

    With answers -1 (left) and 1 (right) at all inner nodes, a row is in the part whose path they
    agree with at every node: a product with the paths counts where they do.
    """
    graph = X.graph
    right = graph.node("Greater", X @ tree.directions.T, tree.thresholds[None, :])
    answers = graph.node("Where", right, 1.0, -1.0)
    paths = tree_paths(tree)
    depth = np.abs(paths).sum(axis=0)
    return graph.node("ArgMax", answers @ paths - depth[None, :], axis=1, keepdims=0)


def tree_paths(tree: Tree) -> FloatArray:
    """Return the turn at every inner node on the way to every part, shape (q, n_parts).

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
