"""Fitted models, and pipelines whose other steps skl2onnx converts, as ONNX models and files."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import AnyArray
from lssvm._core.atomic import replacing
from lssvm._core.errors import InvalidInputError
from lssvm._core.version import __version__
from lssvm.estimators import NARX, LSSVMClassifier, LSSVMRegressor
from lssvm.estimators.base import KernelEstimator
from lssvm.onnx.columns import add_preparation, column_inputs, open_tables
from lssvm.onnx.graph import (
    OPSETS,
    ModelGraph,
    Tensor,
    Value,
    element_type,
    need_onnx,
    need_skl2onnx,
)
from lssvm.onnx.models import add_outputs, add_step, series_inputs
from lssvm.onnx.registration import convert_imputer, register
from lssvm.preparation import TablePreparation

Opened = tuple[ModelGraph, list[Value], Tensor]
"""A graph, its inputs, and the features of rows in it."""


def final_model(model: object) -> Any:
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
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    real = DoubleTensorType if np.dtype(dtype) == np.float64 else FloatTensorType

    def declared(values: AnyArray, width: int) -> Any:
        return (real if values.dtype.kind in "biuf" else StringTensorType)([None, width])

    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return [(str(name), declared(np.asarray(X[name]), 1)) for name in X.columns]
    if X is not None:
        return [("X", declared(np.asarray(X), np.asarray(X).shape[1]))]
    width = getattr(model, "n_features_in_", None)
    if width is None:
        raise InvalidInputError(
            f"{type(model).__name__} does not say how many columns it was fitted with: give some "
            "of its rows with X=."
        )
    return [("X", real([None, int(width)]))]


def convert(part: Any, whole: Any, X: Any, dtype: Any, **options: Any) -> Any:
    """Convert a part of a model by skl2onnx, and say what to do where that gives up."""
    skl2onnx, own = need_skl2onnx(), {SimpleImputer: convert_imputer}
    options |= {"target_opset": dict(OPSETS), "custom_conversion_functions": own}
    try:
        types = input_types(whole, X, dtype)
        return skl2onnx.convert_sklearn(part, initial_types=types, **options)
    except InvalidInputError:
        raise
    except Exception as error:
        advice = "Use steps that skl2onnx supports."
        if X is None:
            advice += " Where columns have names or hold strings, give some training rows with X=."
        reason = str(error).strip().splitlines()
        raise InvalidInputError(
            f"skl2onnx could not convert {type(whole).__name__}: "
            f"{reason[0].rstrip('.') if reason else type(error).__name__}. {advice}"
        ) from error


def open_transformers(transformers: Any, whole: Any, X: Any, dtype: Any) -> Opened:
    """Convert the transformers of a pipeline into a graph that the model can be added to.

    Returns
    -------
    graph : ModelGraph
    inputs : list of Value
    features : str
        The value (n, d) in the type of the graph.
    """
    part = convert(transformers, whole, X, dtype).graph
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


_IR_VERSION = 8
_LIMIT = 2**31 - 2**20  # more than 2 GiB cannot be one file
_DTYPES = ("float64", "float32")
_TABLES = (LSSVMClassifier, LSSVMRegressor)


def to_onnx(
    model: Any,
    *,
    X: Any = None,
    dtype: str = "float64",
    probabilities: bool | None = None,
    interval: float | None = None,
    missing: str = "",
) -> Any:
    """Convert a fitted model to an ONNX model.

    Parameters
    ----------
    model : estimator
        A fitted classifier or regressor of this package, those for tables among them; a `NARX`
        model (one step of it); a
        pipeline of scikit-learn that ends in one of ours, or a search over such; anything else that
        contains one of ours and that skl2onnx converts.
    X : data frame or array, optional
        Some rows of the training data, for pipelines whose columns have names or hold strings:
        each column of a data frame becomes an input.
    dtype : {"float64", "float32"}, default="float64"
        Type of the inputs, of the scores and of everything in between. "float32" halves the
        file; scores then have about six digits, and labels may differ where they are in doubt.
    probabilities : bool or None, default=None
        Whether a classifier's calibrated probabilities become an output; None: where it has them.
    interval : float or None, default=None
        Coverage of prediction intervals, such as 0.95: `LSSVR` and `FixedSizeLSSVR` get the outputs
        ``lower`` and ``upper``, at the price of m^2 more numbers in the file.
    missing : str, default=""
        What stands for a missing string in the columns of text, as ONNX has none.

    Returns
    -------
    onnx.ModelProto

    Notes
    -----
    *Inputs*: ``X`` of shape (rows, d); for models that were fitted to a scan with columns to
    prepare, one input of shape (rows, 1) for each raw column under its own name, numbers as
    ``dtype`` (NaN is missing) and text as strings; for a model for tables, and for a pipeline of
    `TablePreparation` and a model, the same for each column that is used, with booleans as 0 and 1,
    durations in days and dates as days since 1970, in float64; a model for tables that was fitted
    to an array of numbers has ``X``. `NARX`: ``history`` of shape
    (rows, lags + differencing), the newest value last, and ``inputs`` of shape
    (rows, exog_lags + 1, d) where it has such, the time that is predicted last.

    *Outputs* of a classifier: ``label`` (rows,), integers, strings, booleans or numbers as in
    ``classes_``; ``probabilities`` (rows, n_classes) where it has them, second, where tools look
    for them; ``scores``, the `decision_function`, (rows, 1) for two classes and else
    (rows, n_classes). Of a regressor: ``prediction`` (rows, n_outputs), with ``interval`` also
    ``lower`` and ``upper``. An output that has the name of a column gets an underscore at its end.

    The operators are those of the domain ai.onnx, version 18, and for columns of text
    OneHotEncoder or LabelEncoder of ai.onnx.ml, version 3. A run takes n m (d + k) operations and
    n m numbers of memory for n rows and m support vectors: run many rows in parts.

    What the models refuse with an error has no such answer here: an infinite number, and NaN where
    the model does not impute, give scores of NaN.

    Examples
    --------
    >>> from lssvm import LSSVC
    >>> from lssvm.datasets import load_ripley
    >>> from lssvm.onnx import to_onnx
    >>> ripley = load_ripley()
    >>> model = LSSVC(C=10.0, gamma=2.0).fit(ripley.data, ripley.target)
    >>> [output.name for output in to_onnx(model).graph.output]
    ['label', 'probabilities', 'scores']
    """
    onnx = need_onnx()
    if dtype not in _DTYPES:
        raise InvalidInputError(f"dtype={dtype!r} is not known: choose one of {_DTYPES}.")
    model = final_model(model)
    transformers, last = split_pipeline(model)
    if not isinstance(last, (KernelEstimator, NARX, *_TABLES)):
        _check_contains_ours(model)
        if probabilities is not None or interval is not None:
            raise InvalidInputError(
                "probabilities= and interval= are for models of this package, not for "
                f"{type(model).__name__}: leave them out."
            )
        register()
        options = {id(model): {"zipmap": False}} if hasattr(model, "classes_") else None
        proto = convert(model, model, X, dtype, options=options)
        _describe(proto, model, {})
        return proto
    check_is_fitted(last)
    if isinstance(last, _TABLES) and transformers is not None:
        raise InvalidInputError(
            f"{type(last).__name__} prepares its columns itself: export it without a pipeline."
        )
    if isinstance(last, (NARX, *_TABLES)) or transformers is None:
        if X is not None:
            raise InvalidInputError("X= is for pipelines of scikit-learn: leave it out.")
        graph, inputs, outputs = _own_graph(last, np.dtype(dtype), probabilities, interval, missing)
    else:
        graph, inputs, features = _open_pipeline(transformers, model, X, dtype, missing)
        outputs = add_outputs(last, {"": features}, probabilities, interval)
    if graph.n_bytes > _LIMIT:
        raise InvalidInputError(
            f"The model has {graph.n_bytes / 2**30:.1f} GiB of numbers, but an ONNX file holds at "
            "most 2 GiB: reduce the model (reduction=, fewer prototypes), or use dtype='float32'."
        )
    declared = []
    names = {value.name for value in inputs}
    for name, value in outputs.items():
        while name in names:
            name += "_"
        names.add(name)
        declared.append(Value(graph.rename(value.name, name), value.kind, value.tail).info())
    helper = onnx.helper
    title, given = type(last).__name__, [value.info() for value in inputs]
    whole = helper.make_graph(graph.nodes, title, given, declared, graph.initializers)
    versions = [helper.make_opsetid(*opset) for opset in OPSETS.items()]
    proto = helper.make_model(whole, opset_imports=versions, ir_version=_IR_VERSION)
    texts = any(value.kind == element_type(object) for value in inputs) and X is None
    _describe(proto, last, {"missing_string": missing} if texts else {})
    onnx.checker.check_model(proto)
    return proto


def export(
    model: Any,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    dtype: str = "float64",
    probabilities: bool | None = None,
    interval: float | None = None,
    missing: str = "",
) -> str:
    """Write a fitted model to an ONNX file.

    Parameters
    ----------
    model : estimator
        Fitted.
    path : str or path-like
        The file appears, or takes the place of an older one, when it is complete.
    X, dtype, probabilities, interval, missing
        See `to_onnx`.

    Returns
    -------
    str
        The path.

    Notes
    -----
    The file holds 8 m (d + k + 2) bytes of numbers (half of that with ``dtype="float32"``) for m
    support vectors of d features and k outputs, and some kilobytes of operators. It holds numbers,
    strings and standard operators, nothing that runs by itself.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import onnxruntime
    >>> from lssvm import LSSVR
    >>> from lssvm.onnx import export
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = LSSVR(C=100.0, gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     session = onnxruntime.InferenceSession(export(model, os.path.join(folder, "sine.onnx")))
    >>> (prediction,) = session.run(["prediction"], {"X": X})
    >>> bool(np.abs(prediction[:, 0] - model.predict(X)).max() < 1e-9)
    True
    """
    proto = to_onnx(
        model, X=X, dtype=dtype, probabilities=probabilities, interval=interval, missing=missing
    )
    content = proto.SerializeToString()
    path = os.fspath(path)
    with replacing(path, private=True) as name, open(name, "wb") as file:
        file.write(content)
    return path


def _own_graph(
    model: KernelEstimator | NARX | LSSVMClassifier | LSSVMRegressor,
    dtype: np.dtype[Any],
    probabilities: bool | None,
    interval: float | None,
    missing: str,
) -> tuple[ModelGraph, list[Value], dict[str, Value]]:
    """Return graph, inputs and outputs of a model of this package."""
    if isinstance(model, _TABLES):
        fit, context = model.record_, model.record_.context
        assert context is not None
        prepared = context.prepared
        names = [n for n in prepared if n in {m.configuration.inputs for m in fit.used}]
        tables = [prepared[name] for name in names]
        graph, inputs, tensors = open_tables(tables, dtype, missing, together=not tables[0].named)
        by_name: dict[str, Tensor] = dict(zip(names, tensors, strict=True))
        return graph, inputs, add_outputs(model, by_name, probabilities, interval)
    if isinstance(model, NARX):
        if probabilities or interval is not None:
            raise InvalidInputError(
                "NARX has no probabilities and its intervals are simulated, which ONNX cannot do: "
                "leave probabilities and interval out."
            )
        inputs = series_inputs(model.record_, dtype)
        graph = ModelGraph(dtype, taken=[value.name for value in inputs])
        return graph, inputs, add_step(graph, model.record_)
    ready = getattr(model, "preparation_", None)
    if ready is None:
        inputs = [Value("X", element_type(dtype), (int(model.n_features_in_),))]
    else:
        inputs = column_inputs(ready, dtype)
    graph = ModelGraph(dtype, taken=[value.name for value in inputs])
    features = graph.tensor("X")
    if ready is not None:
        features = add_preparation(graph, ready, inputs, missing)
    return graph, inputs, add_outputs(model, {"": features}, probabilities, interval)


def _open_pipeline(transformers: Any, model: Any, X: Any, dtype: str, missing: str) -> Opened:
    """Return graph, inputs and features of what stands before the model."""
    steps = [step for _, step in transformers.steps]
    if not any(isinstance(step, TablePreparation) for step in steps):
        return open_transformers(transformers, model, X, dtype)
    if len(steps) > 1:
        raise InvalidInputError(
            "A pipeline with TablePreparation can be exported where it is the only transformer, "
            f"but there are {[type(step).__name__ for step in steps]}."
        )
    if X is not None:
        raise InvalidInputError("TablePreparation knows its columns: leave X= out.")
    check_is_fitted(steps[0])
    graph, inputs, (features,) = open_tables([steps[0].prepared_], np.dtype(dtype), missing)
    return graph, inputs, features


def _check_contains_ours(model: object) -> None:
    """Raise where nothing in a model is from this package."""
    todo, seen = [model], set[int]()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, (KernelEstimator, *_TABLES)):
            return
        if isinstance(one, (list, tuple)):
            todo += list(one)
        elif hasattr(one, "get_params") or type(one).__module__.startswith("sklearn."):
            todo += list(getattr(one, "__dict__", {}).values())
    raise InvalidInputError(
        f"{type(model).__name__} is no model of this package: export takes LSSVC, LSSVR, "
        "FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC, GreedyLSSVR, NARX, and pipelines of them."
    )


def _describe(proto: Any, model: object, more: dict[str, Any]) -> None:
    """Say in the file what it is and where it comes from."""
    proto.producer_name, proto.producer_version = "lssvm", __version__
    proto.doc_string = f"{type(model).__name__}, a least squares support vector machine"
    facts: dict[str, Any] = {"estimator": type(model).__name__, **more}
    if hasattr(model, "feature_names_in_"):
        facts["feature_names"] = [str(name) for name in model.feature_names_in_]
    if hasattr(model, "classes_"):
        facts["classes"] = np.asarray(model.classes_).tolist()
    kept = {k: v if isinstance(v, str) else json.dumps(v) for k, v in facts.items()}
    need_onnx().helper.set_model_props(proto, kept)
