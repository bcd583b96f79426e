"""Fitted models, and pipelines whose other steps skl2onnx converts, as ONNX models and files.

First raw columns as ONNX operators: from the inputs of a model to its features. At the end the
converters for skl2onnx.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import AnyArray
from lssvm._core.atomic import replacing
from lssvm._core.errors import InvalidInputError
from lssvm._core.version import __version__
from lssvm.data.encodings import DateEncoding, LevelEncoding, NumberEncoding, ValueEncoding
from lssvm.data.preparation import PreparedTable
from lssvm.data.text import TextEncoding
from lssvm.estimators import NARX
from lssvm.estimators.base import KernelEstimator
from lssvm.fitting.record import Scaling
from lssvm.onnx.graph import (
    ML,
    OPSETS,
    Graph,
    ModelGraph,
    Tensor,
    Value,
    element_type,
    need_onnx,
    need_skl2onnx,
    tensor,
)
from lssvm.onnx.models import (
    CLASSIFIERS,
    REGRESSORS,
    add_classifier,
    add_fit,
    add_outputs,
    add_step,
    class_labels,
    series_inputs,
)
from lssvm.preparation import TablePreparation


def open_tables(
    tables: Sequence[PreparedTable], dtype: Any, missing: str, *, together: bool = False
) -> tuple[ModelGraph, list[Value], list[Tensor]]:
    """Begin a graph with several ways to prepare the same columns.

    Parameters
    ----------
    tables : sequence of PreparedTable
    dtype : float64 or float32
    missing : str
        The string that stands for a missing one.
    together : bool, default=False
        Whether columns that all are numbers are one input ``X`` of shape (n, n_columns).

    Returns
    -------
    graph : ModelGraph
    inputs : list of Value
        One of shape (n, 1) for each used column under its own name: strings for categories; numbers
        in ``dtype`` (NaN is missing), booleans as 0 and 1, durations in days; dates in float64, as
        days since 1970 by the clock of their time zone.
    features : list of Tensor
        The value (n, d) of every table.
    """
    kinds = {"category": element_type(object), "date": element_type(np.float64)}
    used = {c.name: c for table in tables for c in table.columns if c.encoding is not None}
    for column in used.values():
        if isinstance(column.encoding, TextEncoding):
            raise InvalidInputError(
                f"Column {column.name!r} is text, whose n-grams an ONNX graph cannot compute: fit "
                f"the model without it (drop=[{column.name!r}]), or use a model file (lssvm.save)."
            )
    numbers = NumberEncoding | ValueEncoding
    together = together and all(isinstance(c.encoding, numbers) for c in used.values())
    if together:
        inputs = [Value("X", element_type(dtype), (len(tables[0].columns),))]
    else:
        real = element_type(dtype)
        inputs = [Value(c.name, kinds.get(c.kind, real), (1,)) for c in used.values()]
    graph = ModelGraph(dtype, taken=[value.name for value in inputs])
    prepared = []
    for table in tables:
        features = []
        for place, column in enumerate(table.columns):
            encoding = column.encoding
            if isinstance(encoding, LevelEncoding):
                add = _add_booleans if column.kind == "boolean" else _add_levels
                features.append(add(encoding, graph.tensor(column.name), missing))
            elif isinstance(encoding, DateEncoding):
                features.append(_add_dates(encoding, graph.tensor(column.name, np.float64)))
            elif encoding is not None:
                x = graph.tensor("X").columns([place]) if together else graph.tensor(column.name)
                assert isinstance(encoding, numbers)
                features.append(_add_numbers(encoding, x))
        prepared.append(graph.concat(features))
    return graph, inputs, prepared


def _add_numbers(encoding: NumberEncoding | ValueEncoding, x: Tensor) -> Tensor:
    graph, unknown = x.graph, x.is_nan()
    if isinstance(encoding, ValueEncoding):
        number, x = _add_numbers(encoding.number, x), graph.node("Where", unknown, 0.0, x)
        features = [number]
        for effects, missing in zip(encoding.effects.T, encoding.unknown, strict=True):
            effect = _add_interpolation(encoding.values, effects, x)
            features.append(graph.node("Where", unknown, missing, effect).cast(graph.dtype))
        return graph.concat(features)
    side = encoding.indicator
    x = graph.node("Where", unknown, encoding.fill, x)
    if len(encoding.grid):
        x = _add_interpolation(encoding.grid, encoding.scores, x)
    x = ((x - encoding.mean) / encoding.scale).cast(graph.dtype)
    return graph.concat([x, graph.node("Where", unknown, side, -side)]) if side > 0 else x


def _add_interpolation(grid: AnyArray, scores: AnyArray, x: Tensor) -> Tensor:
    """Interpolate linearly, constant beyond the ends: n times the grid in memory."""
    graph = x.graph
    if len(grid) == 1:
        return x * 0.0 + scores[None, :]
    x = graph.node("Max", graph.node("Min", x, grid[-1]), grid[0])
    if len(grid) == 2:
        interval = (x * 0.0).cast(np.int64)
    else:
        interval = graph.node("GreaterOrEqual", x, grid[None, 1:-1]).cast(np.int64).sums()  # (n, 1)
    slopes = np.diff(scores) / np.diff(grid)
    pieces = [graph.real(values, x.dtype) for values in (grid[:-1], scores[:-1], slopes)]
    left, low, slope = (graph.node("Gather", values, interval) for values in pieces)
    return low + slope * (x - left)


def _add_levels(encoding: LevelEncoding, column: Tensor, missing: str) -> Tensor:
    if missing in encoding.levels:
        raise InvalidInputError(
            f"Column {column.name!r} has the string {missing!r} among its categories, which is to "
            "stand for a missing one: choose another string with missing=."
        )
    n_levels = len(encoding.levels)
    place = column.graph.node(
        "LabelEncoder",
        column,
        domain=ML,
        keys_strings=[*encoding.levels, missing],
        values_int64s=[*range(n_levels), n_levels + 1],
        default_int64=n_levels,
    )
    return _look_up([encoding.values, encoding.unseen, encoding.missing], place)


def _add_booleans(encoding: LevelEncoding, column: Tensor, missing: str) -> Tensor:
    place = column.graph.node("Where", column.is_nan(), 2.0, column).cast(np.int64)
    return _look_up([encoding.values, encoding.missing], place)


def _look_up(rows: list[AnyArray], place: Tensor) -> Tensor:
    return place.graph.node("Gather", np.vstack(rows), place.reshape(-1), axis=0)


def _add_dates(encoding: DateEncoding, days: Tensor) -> Tensor:
    graph, unknown = days.graph, days.is_nan()
    features = [_add_numbers(encoding.position, days)]
    days = graph.node("Where", unknown, 0.0, days)
    phases = {"year": _year_phase, "week": _week_phase, "day": _day_phase}
    for cycle in encoding.cycles:
        angle = phases[cycle](days) * (2.0 * np.pi)
        # A cosine is a sine a quarter turn on: older runtimes have no Cos of float64.
        turns = (angle, angle + np.pi / 2.0)
        waves = (graph.node("Sin", turn.cast(graph.dtype)) for turn in turns)
        features += [graph.node("Where", unknown, 0.0, wave) for wave in waves]
    return graph.concat(features)


def _floor(value: Tensor) -> Tensor:
    return value.graph.node("Floor", value)


def _day_phase(days: Tensor) -> Tensor:
    return days - _floor(days)


def _week_phase(days: Tensor) -> Tensor:
    monday = _floor(days) + 3.0  # the 1st of January 1970 is a Thursday
    return (monday - _floor(monday / 7.0) * 7.0) * (1.0 / 7.0)


def _year_phase(days: Tensor) -> Tensor:
    """Return the day of the year over the days of that year, in the Gregorian calendar."""
    node, day = days.graph.node, _floor(days)
    year = _floor(day / 365.2425) + 1970.0  # at most one year off
    year = node("Where", node("Less", day, _year_start(year)), year - 1.0, year)
    late = node("GreaterOrEqual", day, _year_start(year + 1.0))
    year = node("Where", late, year + 1.0, year)
    begin = _year_start(year)
    return (day - begin) / (_year_start(year + 1.0) - begin)


def _year_start(year: Tensor) -> Tensor:
    """Return the days from 1970 to the 1st of January of a year."""
    # One more for each leap year in between: 4 divides it, and not 100, or 400.
    fourths, centuries = _floor((year - 1969.0) / 4.0), _floor((year - 1901.0) / 100.0)
    return (year - 1970.0) * 365.0 + fourths - centuries + _floor((year - 1601.0) / 400.0)


Opened = tuple[ModelGraph, list[Value], dict[Scaling, Tensor]]
"""A graph, its inputs, and the features of rows in it, by their scaling."""


def final_model(model: object) -> Any:
    """Return what a search has found, or the model itself."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model


def split_pipeline(model: Any) -> tuple[Any, Any]:
    """Return the transformers of a pipeline, None where there are none, and its last step."""
    before: list[tuple[str, Any]] = []
    while isinstance(model, Pipeline):
        first = len(before)
        steps = [step for step in model.steps[:-1] if step[1] not in (None, "passthrough")]
        before += [(f"{first}_{name}", step) for name, step in steps]
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
            f"{type(model).__name__} does not state how many columns it was fitted with: give some "
            "of its rows with X=."
        )
    return [("X", real([None, int(width)]))]


def convert(part: Any, whole: Any, X: Any, dtype: Any, **options: Any) -> Any:
    """Convert a part of a model by skl2onnx, and say what to do where that gives up."""
    skl2onnx, converters = need_skl2onnx(), {SimpleImputer: convert_imputer}
    options |= {"target_opset": dict(OPSETS), "custom_conversion_functions": converters}
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
    return graph, inputs, {"none": features}


def _value(info: Any) -> Value:
    kind = info.type.tensor_type
    return Value(info.name, kind.elem_type, tuple(d.dim_value for d in kind.shape.dim[1:]))


_IR_VERSION = 8
_LIMIT = 2**31 - 2**20  # more than 2 GiB cannot be one file
_DTYPES = ("float64", "float32")


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
    if not isinstance(last, (KernelEstimator, NARX)):
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
    prepares = isinstance(last, KernelEstimator) and bool(last.record_.prepared)
    if prepares and transformers is not None:
        raise InvalidInputError(
            f"{type(last).__name__} prepares its columns itself: export it without a pipeline."
        )
    if X is not None and (isinstance(last, NARX) or transformers is None):
        raise InvalidInputError("X= is for pipelines of scikit-learn: leave it out.")
    if isinstance(last, NARX):
        if probabilities or interval is not None:
            raise InvalidInputError(
                "NARX has no probabilities and its intervals are simulated, which ONNX cannot do: "
                "leave probabilities and interval out."
            )
        inputs = series_inputs(last.record_, np.dtype(dtype))
        graph = ModelGraph(dtype, taken=[value.name for value in inputs])
        outputs = add_step(graph, last.record_)
    else:
        if transformers is None:
            graph, inputs, features = _open_model(last, np.dtype(dtype), missing)
        else:
            graph, inputs, features = _open_pipeline(transformers, model, X, dtype, missing)
        outputs = add_outputs(last, features, probabilities, interval)
    if graph.n_bytes > _LIMIT:
        raise InvalidInputError(
            f"The model has {graph.n_bytes / 2**30:.1f} GiB of numbers, but an ONNX file holds at "
            "most 2 GiB: reduce the model (reduction=, fewer prototypes), or use dtype='float32'."
        )
    outputs_info = []
    names = {value.name for value in inputs}
    for name, value in outputs.items():
        while name in names:
            name += "_"
        names.add(name)
        outputs_info.append(Value(graph.rename(value.name, name), value.kind, value.tail).info())
    helper = onnx.helper
    title, inputs_info = type(last).__name__, [value.info() for value in inputs]
    whole = helper.make_graph(graph.nodes, title, inputs_info, outputs_info, graph.initializers)
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


def _open_model(model: KernelEstimator, dtype: np.dtype[Any], missing: str) -> Opened:
    """Return graph, inputs and features of a model that is not behind other steps."""
    fit = model.record_
    if not fit.prepared:
        graph = ModelGraph(dtype, taken=["X"])
        inputs = [Value("X", element_type(dtype), (int(model.n_features_in_),))]
        return graph, inputs, {"none": graph.tensor("X")}
    used = {member.scaling for member in fit.used}
    tables = {scaling: one for scaling, one in fit.prepared.items() if scaling in used}
    ready, together = list(tables.values()), not fit.any_prepared.named
    graph, inputs, tensors = open_tables(ready, dtype, missing, together=together)
    return graph, inputs, dict(zip(tables, tensors, strict=True))


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
    return graph, inputs, {"none": features}


def _check_contains_ours(model: object) -> None:
    """Raise where nothing in a model is from this package."""
    todo, seen = [model], set[int]()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, KernelEstimator):
            return
        if isinstance(one, (list, tuple)):
            todo += list(one)
        elif hasattr(one, "get_params") or type(one).__module__.startswith("sklearn."):
            todo += list(getattr(one, "__dict__", {}).values())
    raise InvalidInputError(
        f"{type(model).__name__} is not a model of this package: export takes LSSVC, LSSVR, "
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
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in facts.items()}
    need_onnx().helper.set_model_props(proto, texts)


_OLDEST = 13  # version of the operators from which ReduceSum takes its axes as an input
_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [False, True],
    "raw_scores": [True, False],
}


def register() -> None:
    """Register with skl2onnx converters for the classifiers and regressors of this package.

    Importing `lssvm.onnx` does it already where skl2onnx is installed; doing it again changes
    nothing.

    Notes
    -----
    A classifier has the outputs that skl2onnx gives to `sklearn.svm.SVC`: ``label`` and
    ``probabilities``. The second one holds decision values, of shape (rows, n_classes), with the
    option ``raw_scores=True`` or where the model was fitted with ``calibration=None``; for two
    classes these are -s and s. The options ``zipmap``, ``nocl`` and ``output_class_labels`` mean
    what they mean there. A regressor has the output ``variable``.

    Inside the graph numbers are float64 whatever the inputs are; the outputs have the type of the
    inputs. With float32 inputs the steps before ours compute in float32: give float64 inputs
    (``X.astype(float)``) where labels have to agree exactly.

    Examples
    --------
    >>> import numpy as np
    >>> import skl2onnx
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from lssvm import LSSVC
    >>> from lssvm.onnx import register
    >>> register()
    >>> X = np.arange(20.0)[:, None]
    >>> model = make_pipeline(StandardScaler(), LSSVC(C=1.0)).fit(X, X[:, 0] > 9)
    >>> converted = skl2onnx.to_onnx(model, X, options={"zipmap": False})
    >>> [output.name for output in converted.graph.output]
    ['label', 'probabilities']
    """
    skl2onnx = need_skl2onnx()
    add = skl2onnx.update_registered_converter
    for classifier in CLASSIFIERS:
        alias = f"Lssvm{classifier.__name__}"
        add(classifier, alias, _classifier_shapes, _convert, options=_OPTIONS)
    for regressor in REGRESSORS:
        add(regressor, f"Lssvm{regressor.__name__}", _regressor_shapes, _convert)


class ContainerGraph(Graph):
    """A part of a graph that skl2onnx puts together."""

    def __init__(self, scope: Any, container: Any) -> None:
        super().__init__(np.float64)
        self.scope, self.container = scope, container

    def new_name(self, hint: str) -> str:
        """Return a name that no other value has."""
        return str(self.scope.get_unique_variable_name(f"lssvm_{hint}"))

    def _add(
        self, op: str, inputs: list[str], outputs: list[str], domain: str, attributes: Any
    ) -> None:
        name = self.scope.get_unique_operator_name(f"lssvm_{op}")
        self.container.add_node(op, inputs, outputs, op_domain=domain, name=name, **attributes)

    def _store(self, array: AnyArray, name: str) -> None:
        content = tensor(array, name)
        values = list(content.string_data) if array.dtype.kind in "OUS" else content
        self.container.add_initializer(name, content.data_type, list(array.shape), values)


def convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    """Convert `SimpleImputer` of float64 by standard operators.

    The operator Imputer that skl2onnx takes keeps its values in float32, and onnxruntime has it for
    float32 alone.
    """
    from skl2onnx.common.data_types import DoubleTensorType
    from skl2onnx.operator_converters.imputer_op import convert_sklearn_imputer

    imputer, values = operator.raw_operator, operator.inputs
    double = all(isinstance(value.type, DoubleTensorType) for value in values)
    missing = imputer.missing_values
    all_columns = len(imputer.statistics_) == operator.outputs[0].type.shape[1]
    if not (double and all_columns and isinstance(missing, float) and np.isnan(missing)):
        convert_sklearn_imputer(scope, operator, container)
        return
    graph = ContainerGraph(scope, container)
    x = graph.concat([graph.tensor(value.full_name) for value in values])
    filled = graph.node("Where", x.is_nan(), imputer.statistics_[None, :], x)
    graph.rename(filled.name, operator.outputs[0].full_name)


def _check_input(operator: Any) -> None:
    from skl2onnx.common.data_types import StringTensorType

    model = operator.raw_operator
    if hasattr(model, "preparation_"):
        raise InvalidInputError(
            f"{type(model).__name__} was fitted to a scan and prepares raw columns itself: use "
            "lssvm.onnx.export(model, path)."
        )
    if any(isinstance(value.type, StringTensorType) for value in operator.inputs):
        raise InvalidInputError(
            f"{type(model).__name__} needs numbers but a step before it gives strings: encode them."
        )


def _labels(operator: Any) -> AnyArray:
    """Return the labels as skl2onnx writes them: integers or strings."""
    model = operator.raw_operator
    if operator.scope_inst.get_options(model, {"nocl": False})["nocl"]:
        return np.arange(len(model.classes_))
    labels = class_labels(model.classes_)
    if labels.dtype.kind != "O":
        whole = labels.astype(np.int64)
        if not np.array_equal(whole, labels):
            raise InvalidInputError(
                f"The classes {labels.tolist()[:5]} are not whole numbers, as labels of skl2onnx "
                "have to be: use lssvm.onnx.export, or fit with integers or strings."
            )
        labels = whole
    return labels


def _real_type(operator: Any) -> Any:
    """Return the type of outputs: double for double inputs, else float."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    double = isinstance(operator.inputs[0].type, DoubleTensorType)
    return DoubleTensorType if double else FloatTensorType


def _classifier_shapes(operator: Any) -> None:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    _check_input(operator)
    labels = _labels(operator)
    n = operator.inputs[0].get_first_dimension()
    kind = StringTensorType if labels.dtype.kind == "O" else Int64TensorType
    operator.outputs[0].set_type(kind([n]))
    operator.outputs[1].set_type(_real_type(operator)([n, len(labels)]))


def _regressor_shapes(operator: Any) -> None:
    _check_input(operator)
    n = operator.inputs[0].get_first_dimension()
    width = operator.raw_operator.record_.task.n_outputs
    operator.outputs[0].set_type(_real_type(operator)([n, width]))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    model = operator.raw_operator
    if container.target_opset < _OLDEST:
        raise InvalidInputError(
            f"target_opset={container.target_opset} is too old for models of this package: give "
            f"{_OLDEST} or more."
        )
    graph = ContainerGraph(scope, container)
    inputs = [graph.tensor(value.full_name).cast(np.float64) for value in operator.inputs]
    X = graph.concat(inputs)
    outputs = operator.outputs
    if not is_classifier(model):
        value = add_fit({"none": X}, model.record_)
        _finish(operator, value, outputs[0])
        return
    raw_scores = container.get_options(model, {"raw_scores": False})["raw_scores"]
    scores, index, p = add_classifier(model, {"none": X}, False if raw_scores else None)
    label = graph.node("Gather", graph.constant(_labels(operator)), index)
    graph.rename(label.name, outputs[0].full_name)
    if p is None:
        p = graph.concat([-scores, scores]) if len(model.classes_) == 2 else scores
    _finish(operator, p, outputs[1])


def _finish(operator: Any, value: Tensor, output: Any) -> None:
    """Give a value to an output, in the type of that."""
    from skl2onnx.common.data_types import DoubleTensorType

    double = _real_type(operator) is DoubleTensorType
    typed = value.cast(np.float64 if double else np.float32)
    typed.graph.rename(typed.name, output.full_name)
