"""From the outputs of binary problems to class scores and labels, as operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm.codes import Code
from lssvm.onnx.graph import Graph


def add_class_scores(graph: Graph, code: Code, decoding: str | None, raw: str) -> str:
    """Add `lssvm.codes.decode`: from outputs (n, n_problems) to class scores (n, n_classes)."""
    matrix = code.matrix.T.astype(np.float64)  # (n_problems, n_classes)
    words = graph.real(matrix)
    confidence = graph.node("MatMul", raw, words)
    if code.n_problems == 1:
        return confidence
    if decoding is None:
        decoding = "loss" if code.shares_rows else "hamming"
    if decoding == "hamming":
        filled = int(np.count_nonzero(code.matrix, axis=1).max())
        agreed = graph.node("MatMul", graph.node("Sign", raw), words)
        lost = graph.node("Sub", graph.real(filled), agreed)
        lost = graph.node("Div", lost, graph.real(2.0))
        size = graph.node("Add", graph.node("Abs", confidence), graph.real(1.0))
        bonus = graph.node("Div", confidence, graph.node("Mul", size, graph.real(4.0)))
        return graph.node("Sub", bonus, lost)
    against = graph.node("Neg", raw)  # linear loss, in the order of `decode`
    cost = graph.node("MatMul", against, graph.real(matrix > 0))
    cost = graph.node("Add", cost, graph.node("MatMul", raw, graph.real(matrix < 0)))
    return graph.node("Neg", cost)


def add_decision(graph: Graph, code: Code, decoding: str | None, raw: str) -> tuple[str, str]:
    """Add decision values and class numbers.

    Returns
    -------
    scores : str
        (n, 1) for two classes, positive for the second; else (n, n_classes).
    index : str
        Class numbers (n,), int64.
    """
    if code.n_classes > 2:
        scores = add_class_scores(graph, code, decoding, raw)
        return scores, graph.node("ArgMax", scores, axis=1, keepdims=0)
    scores = raw if code.matrix[1, 0] > 0 else graph.node("Neg", raw)
    second = graph.node("Greater", scores, graph.real(0.0))
    index = graph.cast(second, np.int64)
    return scores, graph.node("Reshape", index, graph.integers([-1]))


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
