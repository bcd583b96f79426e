"""Pipelines in model files: known transformers of scikit-learn before one of our models.

A transformer is stored as its class, its parameters and what it has learned, by public names. It
is made again from these: attributes that are public are set; encoders and imputers are fitted to a
few rows that show them the same categories and statistics, so that no private name of
scikit-learn's is relied on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from lssvm._core.errors import (
    InvalidInputError,
    MissingDependencyError,
    ModelFileError,
    library,
    printable,
)
from lssvm.data.preparation import PreparedTable
from lssvm.io.models import check_parameters, check_storable, is_storable, read_model, write_model
from lssvm.io.records import NotStorable, encode, need
from lssvm.io.schema import Model, StoredPipeline, StoredTransformer, schema
from lssvm.preparation import TablePreparation

_SCALERS = (MinMaxScaler, QuantileTransformer, StandardScaler)
_ENCODERS = (OneHotEncoder, OrdinalEncoder)
_OTHERS = (ColumnTransformer, Pipeline, SimpleImputer, TablePreparation)
_CLASSES: dict[str, Any] = {kind.__name__: kind for kind in (*_SCALERS, *_ENCODERS, *_OTHERS)}
KNOWN = sorted(_CLASSES)
"""The transformers that a file may hold."""

_LEARNED = {
    "StandardScaler": ("mean_", "var_", "scale_", "n_samples_seen_"),
    "MinMaxScaler": ("min_", "scale_", "data_min_", "data_max_", "data_range_", "n_samples_seen_"),
    "QuantileTransformer": ("quantiles_", "references_", "n_quantiles_"),
}
_OF_THE_MACHINE = frozenset({"memory", "n_jobs", "verbose", "copy", "transform_input"})
_MOST_COLUMNS = 10**6


# -- writing -----------------------------------------------------------------------------------


def write_pipeline(pipeline: Pipeline, keep: str) -> StoredPipeline:
    """Return what a file holds of a fitted pipeline that ends in one of our models.

    Raises
    ------
    InvalidInputError
        Where a step is none that a file can hold.
    """
    *before, (name, model) = pipeline.steps
    if not is_storable(model):
        raise InvalidInputError(
            f"The pipeline ends in {type(model).__name__}, which is not a model of lssvm: save "
            "takes pipelines that end in one."
        )
    check_storable(model, keep)
    steps = [_write_step(step, part) for step, part in before]
    return StoredPipeline(steps, str(name), write_model(model, keep))


def _write_step(name: str, part: Any) -> StoredTransformer:
    if part is None or isinstance(part, str):
        return StoredTransformer(str(name), part or "passthrough", {}, {}, [])
    return write_transformer(str(name), part)


def write_transformer(name: str, part: Any) -> StoredTransformer:
    """Return what a file holds of a fitted transformer."""
    kind = type(part).__name__
    if _CLASSES.get(kind) is not type(part):
        raise InvalidInputError(
            f"The step {name!r} of the pipeline is a {kind}, which a model file cannot hold: it "
            f"holds {', '.join(KNOWN)}, and our models. Save what the step makes of the data, or "
            "use one of these."
        )
    if isinstance(part, Pipeline):
        return StoredTransformer(name, kind, {}, {}, [_write_step(*step) for step in part.steps])
    check_is_fitted(part)
    fitted: dict[str, Any] = {}
    parts: list[StoredTransformer] = []
    if isinstance(part, TablePreparation):
        fitted = {"prepared": part.prepared_, "texts": hasattr(part, "feature_names_in_")}
    else:
        names = getattr(part, "feature_names_in_", None)
        fitted = {"n_features_in_": int(part.n_features_in_), "feature_names_in_": names}
    if kind in _LEARNED:
        fitted |= {key: getattr(part, key) for key in _LEARNED[kind]}
    elif isinstance(part, (SimpleImputer, *_ENCODERS)):
        fitted |= _learned_state(name, part)
    elif isinstance(part, ColumnTransformer):
        fitted["sparse"] = bool(part.sparse_output_)
        parts = [_write_columns(*one) for one in part.transformers_]
    return StoredTransformer(name, kind, _parameters(name, part), fitted, parts)


def _write_columns(name: str, part: Any, columns: Any) -> StoredTransformer:
    """Return one part of a `ColumnTransformer`, with its columns."""
    passed = isinstance(part, FunctionTransformer) and part.func is None
    stored = _write_step(name, "passthrough" if passed else part)
    single = isinstance(columns, str | int)
    if isinstance(columns, slice):
        values = [columns.start, columns.stop, columns.step]
        spec: dict[str, Any] = {"slice": values}
    else:
        array = np.asarray([columns] if single else columns)
        values = (np.flatnonzero(array) if array.dtype.kind == "b" else array).tolist()
        spec = {"one": values[0]} if single else {"list": values}
    if not all(isinstance(v, str | int) or (v is None and "slice" in spec) for v in values):
        raise InvalidInputError(
            f"The columns of the step {name!r} cannot be stored in a model file: give names or "
            "positions."
        )
    return replace(stored, columns=spec)


def _learned_state(name: str, part: Any) -> dict[str, Any]:
    if isinstance(part, SimpleImputer):
        indicator = getattr(part, "indicator_", None)
        return {
            "statistics_": part.statistics_,
            "holes": None if indicator is None else indicator.features_,
        }
    if part.min_frequency is not None or part.max_categories is not None:
        raise InvalidInputError(
            f"The step {name!r} pools rare categories (min_frequency, max_categories), which a "
            "model file cannot hold: use lssvm.preparation.TablePreparation(rare=...), or do "
            "not pool them."
        )
    return {"categories_": list(part.categories_)}


def _parameters(name: str, part: Any) -> dict[str, Any]:
    """Return the parameters that matter after the fit."""
    parameters = {}
    for key, value in sorted(part.get_params(deep=False).items()):
        if key in _OF_THE_MACHINE or key in ("transformers", "random_state"):
            continue
        if key == "cv" and not isinstance(value, int):
            continue  # of a fit that is over
        plain = {"dtype": np.dtype(value).str} if isinstance(value, type) else value
        if key == "remainder" and not isinstance(value, str):
            plain = {"fitted": True}  # it stands among the parts
        try:
            encode(plain, schema())
        except NotStorable as error:
            raise InvalidInputError(
                f"{key}={printable(repr(value))} of the step {name!r} cannot be stored in a model "
                "file, which never holds code: give plain values."
            ) from error
        parameters[key] = plain
    return parameters


# -- reading -----------------------------------------------------------------------------------


def read_pipeline(stored: StoredPipeline) -> Pipeline:
    """Return the pipeline that a file holds, after everything has been checked."""
    names = [step.name for step in stored.steps]
    need(len({*names, stored.name}) == len(names) + 1, "two steps have the same name")
    need(isinstance(stored.model, Model), "the pipeline has no model")
    pipeline, model = _read_steps(stored.steps), read_model(stored.model)
    fits = _widths(pipeline)[1] in (None, getattr(model, "n_features_in_", 0))
    need(fits, "the model has other features than its pipeline makes")
    return Pipeline([*pipeline.steps, (stored.name, model)])


def _read_steps(stored: list[StoredTransformer]) -> Pipeline:
    """Return a pipeline of transformers, each of which takes what the one before it makes."""
    pipeline, n = Pipeline([(step.name, read_transformer(step)) for step in stored]), None
    for _, step in pipeline.steps:
        width_in, width_out = _widths(step)
        need(n is None or width_in in (None, n), "a step takes other columns than it is given")
        n = width_out or n
    return pipeline


def _widths(part: Any) -> tuple[int | None, int | None]:
    """Return how many columns a fitted transformer takes and makes, None where it takes any."""
    if isinstance(part, str):
        return None, None
    if isinstance(part, Pipeline):
        inner = [w for w in (_widths(step) for _, step in part.steps) if w[0] is not None]
        return (inner[0][0], inner[-1][1]) if inner else (None, None)
    if isinstance(part, ColumnTransformer):
        return part.n_features_in_, max(one.stop for one in part.output_indices_.values())
    return part.n_features_in_, len(part.get_feature_names_out())


def read_transformer(stored: StoredTransformer) -> Any:
    """Return a fitted transformer, or "passthrough" or "drop"."""
    if stored.kind in ("passthrough", "drop"):
        return stored.kind
    need(stored.kind in KNOWN, "a transformer is not known")
    try:
        return _read(stored)
    except (InvalidInputError, MissingDependencyError, ModelFileError):
        raise
    except Exception as error:  # what scikit-learn says of values that nobody has fitted
        raise ModelFileError(
            f"The file does not fit together: {stored.kind} cannot be made of what it holds "
            f"({printable(error, 200)})."
        ) from error


def _read(stored: StoredTransformer) -> Any:
    if stored.kind == "Pipeline":
        need(stored.parts, "a pipeline has no steps")
        return _read_steps(stored.parts)
    kind = _CLASSES[stored.kind]
    parameters = _read_parameters(stored, kind)
    if kind is TablePreparation:
        return _read_preparation(stored.fitted, parameters)
    n, names = _columns_of(stored)
    if kind is ColumnTransformer:
        return _read_column_transformer(stored, parameters, n, names)
    part = kind(**parameters)
    fill = _fill_encoder if kind in _ENCODERS else _fill_scaler
    (_fill_imputer if kind is SimpleImputer else fill)(part, stored.fitted, n)
    part.n_features_in_ = n
    if names is not None:
        part.feature_names_in_ = names
    return part


def _read_parameters(stored: StoredTransformer, kind: Callable[..., Any]) -> dict[str, Any]:
    parameters = dict(stored.parameters)
    known_names = set(inspect.signature(kind).parameters)
    need(set(parameters) <= known_names, f"{stored.kind} has other parameters")
    check_parameters(parameters)
    for key, value in parameters.items():
        if isinstance(value, dict) and set(value) == {"dtype"}:
            sort = np.dtype(str(value["dtype"]))
            need(sort.kind in "fiu", "a transformer has an odd type")
            parameters[key] = sort.type
    return parameters


def _columns_of(stored: StoredTransformer) -> tuple[int, Any]:
    n, names = stored.fitted.get("n_features_in_"), stored.fitted.get("feature_names_in_")
    need(isinstance(n, int) and 1 <= n <= _MOST_COLUMNS, "the number of columns is wrong")
    assert isinstance(n, int)
    if names is not None:
        fits = isinstance(names, np.ndarray) and names.shape == (n,)
        need(fits and all(isinstance(one, str) for one in names), "the names of columns are wrong")
    return n, names


def _fill_scaler(part: Any, fitted: dict[str, Any], n: int) -> None:
    kind = type(part).__name__
    for key in _LEARNED[kind]:
        value = fitted.get(key)
        if isinstance(value, np.ndarray):
            good = value.dtype.kind in "fi" and np.all(np.isfinite(value))
            wide = key == "references_" or value.shape[-1:] == (n,)
            need(good and wide, f"{key} of {kind} does not fit")
        else:
            optional = key in ("mean_", "var_", "scale_") and value is None
            need(optional or isinstance(value, (int, float)), f"{key} of {kind} is missing")
        setattr(part, key, value)


def _fill_imputer(part: Any, fitted: dict[str, Any], n: int) -> None:
    """Fit an imputer to rows of its statistics, which it then has."""
    row, holes = fitted.get("statistics_"), fitted.get("holes")
    need(isinstance(row, np.ndarray) and row.shape == (n,), "the statistics do not fit")
    assert isinstance(row, np.ndarray)
    rows = row[None, :]
    if holes is not None:
        good = isinstance(holes, np.ndarray) and holes.dtype.kind in "iu"
        need(good and np.all((holes >= 0) & (holes < n)), "the indicator does not fit")
        rows = np.vstack([rows, rows])
        rows[1, holes] = part.missing_values
    part.fit(rows)
    part.statistics_ = row


def _fill_encoder(part: Any, fitted: dict[str, Any], n: int) -> None:
    """Fit an encoder to rows of its categories."""
    levels = fitted.get("categories_")
    good = isinstance(levels, list) and len(levels) == n
    lists = [isinstance(c, np.ndarray) and c.ndim == 1 and len(c) for c in levels or ()]
    need(good and all(lists), "the categories do not fit")
    assert levels is not None
    kinds = {c.dtype.kind for c in levels}
    rows = np.empty((max(map(len, levels)), n), dtype=object)
    for j, column in enumerate(levels):
        rows[:, j] = column[np.minimum(np.arange(len(rows)), len(column) - 1)]
    if len(kinds) == 1 and kinds <= set("iuf"):
        rows = rows.astype(np.result_type(*levels))
    part.fit(rows)
    same = all(
        len(ours) == len(its)
        and all(a == b or (a != a and b != b) for a, b in zip(ours, its, strict=True))
        for ours, its in zip(part.categories_, levels, strict=True)
    )
    need(same, "the categories are not in order")
    part.categories_ = levels


def _read_preparation(fitted: dict[str, Any], parameters: dict[str, Any]) -> TablePreparation:
    prepared, texts = fitted.get("prepared"), fitted.get("texts")
    need(isinstance(prepared, PreparedTable) and isinstance(texts, bool), "no preparation")
    assert isinstance(prepared, PreparedTable)
    need(prepared.named or not texts, "columns without names have names")
    return TablePreparation.of(prepared, texts=bool(texts), **parameters)


def _read_column_transformer(
    stored: StoredTransformer, parameters: dict[str, Any], n: int, names: Any
) -> ColumnTransformer:
    """Return the transformer, fitted to zeros with nothing in it, then with its fitted parts."""
    inner = [(part.name, read_transformer(part), _read_columns(part)) for part in stored.parts]
    rest = parameters.get("remainder", "drop")
    named = [one for one in inner if one[0] != "remainder"]
    remainder = [one for one in inner if one[0] == "remainder"]
    parameters["remainder"] = rest if isinstance(rest, str) else "passthrough"
    part = ColumnTransformer(
        [(name, "drop" if one == "drop" else "passthrough", cols) for name, one, cols in named],
        **parameters,
    )
    rows: Any = np.zeros((2, n))
    if names is not None:
        needed = "A model file with a ColumnTransformer of named columns needs pandas"
        pd = library("pandas", needed, "pandas")
        rows = pd.DataFrame(rows, columns=list(names))
    part.fit(rows)
    part.transformers = [(name, _unfitted(one), cols) for name, one, cols in named]
    if remainder and not isinstance(rest, str):
        part.remainder = _unfitted(remainder[0][1])
    transformers = []
    places = {name: one for name, one, _ in inner}
    for name, now, columns in part.transformers_:
        need(name in places, "the parts do not fit their columns")
        saved = places[name]
        transformers.append((name, now if isinstance(saved, str) else saved, columns))
    part.transformers_ = transformers
    begin = 0
    for name, one, _ in transformers:
        place = part.output_indices_[name]  # as if it passed its columns on
        n_columns = place.stop - place.start
        passes = isinstance(one, (str, FunctionTransformer))
        width_in, width_out = (None, None) if passes else _widths(one)
        need(width_in in (None, n_columns), "a transformer takes other columns than it is given")
        end = begin + (n_columns if width_out is None else width_out)
        part.output_indices_[name], begin = slice(begin, end), end
    part.sparse_output_ = bool(stored.fitted.get("sparse"))
    return part


def _unfitted(part: Any) -> Any:
    return part if isinstance(part, str) else clone(part)


def _read_columns(part: StoredTransformer) -> Any:
    spec = part.columns or {}
    if set(spec) == {"slice"} and len(spec["slice"]) == 3:
        return slice(*spec["slice"])
    values: Sequence[Any] = [spec["one"]] if "one" in spec else spec.get("list", ())
    good = all(isinstance(value, (str, int)) for value in values)
    need(good and len(spec) == 1, "the columns of a part are missing")
    return spec["one"] if "one" in spec else list(values)
