"""From the outputs of binary problems to class scores and labels, as operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm.codes import Code
from lssvm.onnx.graph import Tensor


def add_class_scores(code: Code, decoding: str | None, raw: Tensor) -> Tensor:
    """Add `lssvm.codes.decode`: from outputs (n, n_problems) to class scores (n, n_classes)."""
    matrix = code.matrix.T.astype(np.float64)  # (n_problems, n_classes)
    confidence = raw @ matrix
    if code.n_problems == 1:
        return confidence
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
