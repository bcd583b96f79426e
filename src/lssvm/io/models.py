"""From an estimator to what a file holds of it, and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from lssvm import estimators
from lssvm._core.errors import InvalidInputError, MemoryBudgetError, ModelFileError
from lssvm._core.text import printable
from lssvm.data.encodings import DateEncoding
from lssvm.estimators import NARX
from lssvm.estimators.base import KernelClassifier, KernelEstimator, KernelRegressor
from lssvm.estimators.table_model import TableModel
from lssvm.fitting.record import FORMS, Fit
from lssvm.fitting.series import SeriesFit
from lssvm.fitting.table_record import TableFit
from lssvm.io.checks import (
    check_columns,
    check_fit,
    check_series,
    check_table,
    is_zone,
    read_preparation,
)
from lssvm.io.records import NotStorable, encode, need
from lssvm.io.schema import MAX_CLASSES, Model, schema
from lssvm.uncertainty import Probabilities, Residuals

Estimator: TypeAlias = KernelEstimator | NARX | TableModel

OF_THE_MACHINE = frozenset({"device"})
"""Parameters that say something about a machine and are never stored."""

OF_THE_ROWS = frozenset({"cv", "selection"})
"""Parameters that are not stored where they are lists or arrays: they belong to training rows."""


@cache
def models() -> dict[str, Callable[..., Estimator]]:
    """Return the estimators that a file may hold, by name."""
    listed = {name: getattr(estimators, name) for name in estimators.__all__}
    return {name: kind for name, kind in listed.items() if issubclass(kind, Estimator)}


def is_storable(value: object) -> bool:
    """Say whether an object is an estimator that a file may hold."""
    return models().get(type(value).__name__) is type(value)


def check_storable(model: Any, keep: str) -> None:
    """Raise where a model is none of ours, not fitted, or has less than is to be kept."""
    from sklearn.utils.validation import check_is_fitted

    if not is_storable(model):
        raise InvalidInputError(
            f"{type(model).__name__} cannot be saved: give a fitted model of "
            f"{', '.join(sorted(models()))}."
        )
    check_is_fitted(model)
    if len(getattr(model, "classes_", ())) > MAX_CLASSES:
        raise InvalidInputError(
            f"A model file holds at most {MAX_CLASSES} classes; this model has "
            f"{len(model.classes_)}."
        )
    if keep not in FORMS:
        raise InvalidInputError(f"keep={keep!r} is not known: choose one of {', '.join(FORMS)}.")
    stored = model.record_.stored
    if FORMS.index(stored) < FORMS.index(keep):
        raise InvalidInputError(
            f"keep={keep!r} asks for more than this model has: it was loaded from a file that was "
            f"saved with keep={stored!r}. Give that, or save the original model."
        )


# -- writing -----------------------------------------------------------------------------------


def write_model(model: Estimator, keep: str) -> Model:
    """Return what a file holds of an estimator: its parameters and what is kept of its fit."""
    parameters, left_out = _parameters(model, keep)
    stored = Model(type(model).__name__, parameters, left_out)
    if not hasattr(model, "record_"):
        return stored
    if isinstance(model, NARX):
        series, inner = model.record_.stripped(keep), model.record_.regressor
        assert isinstance(inner, KernelEstimator)  # as `estimator` was
        regressor: Any = write_model(inner, keep)
        return replace(stored, record=replace(series, regressor=regressor))
    names = getattr(model, "feature_names_in_", None)
    stored = replace(stored, n_features=int(model.n_features_in_), feature_names=names)
    if isinstance(model, TableModel):
        return replace(stored, record=_table_record(model, keep))
    ready, fit = getattr(model, "preparation_", None), model.record_.stripped(keep)
    return replace(
        stored,
        preparation=None if ready is None else ready.to_dict(),
        record=fit,
        calibration=_calibration(model, fit),
    )


def _table_record(model: TableModel, keep: str) -> TableFit:
    """Return what is kept of a model for tables, after a look at what no file can hold."""
    fit: TableFit = model.record_
    assert fit.context is not None
    for column in fit.context.any_prepared.columns:
        encoding = column.encoding
        if isinstance(encoding, DateEncoding) and not is_zone(encoding.zone):
            raise InvalidInputError(
                f"The dates of column {printable(column.name)} have the time zone "
                f"{printable(encoding.zone)}, which a model file cannot hold: give them a zone "
                "with a name, such as 'Europe/Brussels', or hours from UTC, such as 'UTC+01:00'."
            )
    return fit.stripped(keep)


def _parameters(model: Estimator, keep: str) -> tuple[dict[str, Any], list[str]]:
    """Return the parameters, and the names of those that are not stored."""
    parameters: dict[str, Any] = {}
    left_out = []
    for name, value in sorted(model.get_params(deep=False).items()):
        rows = name in OF_THE_ROWS and isinstance(value, (list, tuple, np.ndarray))
        if name in OF_THE_MACHINE or rows:
            left_out += [name] if value is not None else []
            continue
        nested = is_storable(value) and isinstance(value, KernelEstimator)
        plain = write_model(value, keep) if nested else value
        try:
            encode(plain, schema())
        except NotStorable as error:
            if name in ("kernel", "estimator"):
                raise InvalidInputError(
                    f"{name}={printable(repr(value))} cannot be stored in a model file, which "
                    "never holds code: use one of the kernels and regressors of lssvm."
                ) from error
            left_out.append(name)
            continue
        parameters[name] = plain
        left_out += [f"{name}.checkpoint"] if getattr(value, "checkpoint", None) else []
    return parameters, left_out


def _calibration(model: KernelEstimator, kept: Fit) -> Probabilities | Residuals | None:
    """Return what has to be computed now, because the rows that it rests on are not kept."""
    if kept.calibration is model.record_.calibration:  # as it is: computed when first asked for
        return None
    with suppress(InvalidInputError, MemoryBudgetError):  # then there is none after loading either
        if isinstance(model, KernelClassifier) and hasattr(model, "predict_proba"):
            calibrated, none = model._probabilities(), np.empty(0)
            whole = kept.stored != "support"
            return calibrated if whole else replace(calibrated, threshold=none, weight=none)
        if isinstance(model, KernelRegressor) and kept.stored == "prediction":
            return model._residuals()
    return None


def check_parameters(values: dict[str, Any]) -> None:
    """Refuse sparse matrices, which no parameter is: comparing them takes their shape."""
    waiting: list[Any] = [values]
    while waiting:
        value = waiting.pop()
        need(not isinstance(value, (csr_array, csr_matrix)), "a parameter is a sparse matrix")
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple)):
            waiting += value


# -- reading -----------------------------------------------------------------------------------


def read_model(stored: Model) -> Estimator:
    """Return the estimator that a file holds, after everything has been checked."""
    kind = models().get(stored.kind)
    if kind is None:
        raise ModelFileError("The file does not name one of the estimators of lssvm.")
    if not set(stored.parameters) <= set(inspect.signature(kind).parameters) - OF_THE_MACHINE:
        raise ModelFileError(f"The file holds parameters that {stored.kind} does not have.")
    check_parameters(stored.parameters)
    given = {n: read_model(v) if isinstance(v, Model) else v for n, v in stored.parameters.items()}
    model: Estimator = kind(**given)
    record = stored.record
    if isinstance(model, NARX) and isinstance(record, SeriesFit):
        inner: Any = record.regressor
        regressor: Any = read_model(inner)
        record = replace(record, regressor=regressor)
        check_series(model, record)
        model._publish(record)
    elif isinstance(model, TableModel) and isinstance(record, TableFit):
        check_table(model, record, stored)
        model._publish(record)
    elif isinstance(model, KernelEstimator) and isinstance(record, Fit):
        ready = None if stored.preparation is None else read_preparation(stored.preparation)
        check_fit(model, record, check_columns(stored, ready), stored.calibration)
        columns = ("n_features_in_", stored.n_features), ("preparation_", ready)
        for name, value in (*columns, ("feature_names_in_", stored.feature_names)):
            if value is not None:
                setattr(model, name, value)
        model._publish(record)
        if stored.calibration is not None:
            name = "residuals" if isinstance(stored.calibration, Residuals) else "probabilities"
            model._cache[name] = stored.calibration
    else:
        need(record is None, "the record is one of another estimator")
    return model
