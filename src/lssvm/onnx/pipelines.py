"""Pipelines of scikit-learn, whose other steps skl2onnx converts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline

from lssvm._core.errors import InvalidInputError
from lssvm.onnx.graph import ML, ML_OPSET, OPSET, ModelGraph, Tensor, Value, need_skl2onnx
from lssvm.onnx.registration import convert_imputer, register


def _settings() -> dict[str, Any]:
    """Return what every conversion by skl2onnx is asked for."""
    return {
        "target_opset": {"": OPSET, ML: ML_OPSET},
        "custom_conversion_functions": {SimpleImputer: convert_imputer},
    }


def final_model(model: Any) -> Any:
    """Return what a search has found, or the model itself."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model


def split_pipeline(model: Any) -> tuple[Any, Any]:
    """Return the transformers of a pipeline, None where there are none, and its last step."""
    before: list[tuple[str, Any]] = []
    while isinstance(model, Pipeline):
        steps = [
            (name, step) for name, step in model.steps[:-1] if step not in (None, "passthrough")
        ]
        before += [(f"{len(before)}_{name}", step) for name, step in steps]
        model = final_model(model.steps[-1][1])
    return (Pipeline(before) if before else None), model


def input_types(model: Any, X: Any, dtype: Any) -> list[tuple[str, Any]]:
    """Return the inputs of a pipeline as skl2onnx declares them.

    A data frame ``X`` gives one input for each column, strings as strings and everything else as
    numbers; without it there is one input ``X`` of all columns.
    """
    need_skl2onnx()
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    real = DoubleTensorType if np.dtype(dtype) == np.float64 else FloatTensorType
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        kinds = [np.asarray(X[name]).dtype.kind for name in X.columns]
        return [
            (str(name), (real if kind in "biuf" else StringTensorType)([None, 1]))
            for name, kind in zip(X.columns, kinds, strict=True)
        ]
    if X is not None:
        width, kind = np.asarray(X).shape[1], np.asarray(X).dtype.kind
        return [("X", (real if kind in "biuf" else StringTensorType)([None, width]))]
    width = getattr(model, "n_features_in_", None)
    if width is None:
        raise InvalidInputError(
            f"{type(model).__name__} does not say how many columns it was fitted with: give some "
            "of its rows with X=."
        )
    return [("X", real([None, int(width)]))]


@contextmanager
def _explained(model: Any, X: Any) -> Iterator[None]:
    """Say what to do where skl2onnx gives up."""
    try:
        yield
    except InvalidInputError:
        raise
    except Exception as error:
        advice = "Use steps that skl2onnx supports."
        if X is None:
            advice += " Where columns have names or hold strings, give some training rows with X=."
        reason = str(error).strip().splitlines()
        raise InvalidInputError(
            f"skl2onnx could not convert {type(model).__name__}: "
            f"{reason[0].rstrip('.') if reason else type(error).__name__}. {advice}"
        ) from error


def open_transformers(
    transformers: Any, whole: Any, X: Any, dtype: Any
) -> tuple[ModelGraph, list[Value], Tensor]:
    """Convert the transformers of a pipeline into a graph that the model can be added to.

    Returns
    -------
    graph : ModelGraph
    inputs : list of Value
    features : str
        The value (n, d) in the type of the graph.
    """
    skl2onnx = need_skl2onnx()
    with _explained(whole, X):
        types = input_types(whole, X, dtype)
        converted = skl2onnx.convert_sklearn(transformers, initial_types=types, **_settings())
    part = converted.graph
    taken = {name for node in part.node for name in (*node.input, *node.output)}
    taken |= {t.name for t in part.initializer} | {v.name for v in part.input}
    graph = ModelGraph(dtype, taken=taken)
    graph.nodes += list(part.node)
    graph.initializers += list(part.initializer)
    inputs = [_value(info) for info in part.input]
    features = graph.tensor(part.output[0].name).cast(graph.dtype)
    return graph, inputs, features


def _value(info: Any) -> Value:
    kind = info.type.tensor_type
    return Value(info.name, kind.elem_type, tuple(d.dim_value for d in kind.shape.dim[1:]))


def convert_whole(model: Any, X: Any, dtype: Any) -> Any:
    """Convert a model of scikit-learn that contains estimators of this package somewhere."""
    register()
    skl2onnx = need_skl2onnx()
    options = {id(model): {"zipmap": False}} if hasattr(model, "classes_") else None
    with _explained(model, X):
        types = input_types(model, X, dtype)
        return skl2onnx.convert_sklearn(model, initial_types=types, options=options, **_settings())
