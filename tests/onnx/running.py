"""Exports a model, checks the file and runs it in onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime

from lssvm.onnx import to_onnx

STANDARD = {("", schema.name) for schema in onnx.defs.get_all_schemas_with_history()}
ML = {("ai.onnx.ml", "OneHotEncoder"), ("ai.onnx.ml", "LabelEncoder")}


def nodes(graph: Any) -> list[Any]:
    """Return all nodes of a graph and of the graphs inside it."""
    found = list(graph.node)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found += nodes(attribute.g)
    return found


def operators(model: Any) -> set[tuple[str, str]]:
    """Return domain and name of every operator."""
    return {(node.domain, node.op_type) for node in nodes(model.graph)}


def run_proto(proto: Any, feed: dict[str, Any]) -> dict[str, Any]:
    """Check a model, run it and return its outputs by name."""
    onnx.checker.check_model(proto, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # waiting threads would only take each other's time
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


def run(model: Any, feed: Any, **options: Any) -> dict[str, Any]:
    """Export a model of this package and run it; an array is fed as X."""
    proto = to_onnx(model, **options)
    assert operators(proto) <= {("", name) for domain, name in STANDARD if not domain} | ML
    return run_proto(proto, feed if isinstance(feed, dict) else {"X": feed})


def as_table(values: Any) -> np.ndarray[Any, Any]:
    """Return values (n,) or (n, k) as (n, k)."""
    return np.asarray(values).reshape(len(values), -1)


def check_classifier(model: Any, rows: Any, found: dict[str, Any], atol: float = 1e-9) -> None:
    """Compare what a file answers with the model itself."""
    labels = model.predict(rows)
    assert found["label"].shape == (len(labels),)
    assert found["label"].tolist() == labels.tolist()
    scores = as_table(model.decision_function(rows))
    assert found["scores"].shape == scores.shape
    np.testing.assert_allclose(found["scores"], scores, rtol=0, atol=atol)
    if not hasattr(model, "predict_proba"):
        assert "probabilities" not in found
    else:
        expected = model.predict_proba(rows)
        np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=atol)
