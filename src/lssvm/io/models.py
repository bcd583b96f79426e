"""From an estimator to what a file holds of it, and back.

First whether the parts of a model that came from a file fit together. What one record says of
itself is checked where it is read (`lssvm.io.known`); here stands what the record, the columns and
the parameters of an estimator say of each other. Letters: d features, m support vectors, k outputs,
c classes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from lssvm import estimators
from lssvm._core.arrays import is_sparse
from lssvm._core.blocks import n_threads
from lssvm._core.errors import InvalidInputError, MemoryBudgetError, ModelFileError
from lssvm._core.text import printable
from lssvm.codes import make_code
from lssvm.data import Preparation
from lssvm.estimators import LSSVR, NARX, FixedSizeLSSVR, GreedyLSSVR
from lssvm.estimators.base import KernelClassifier, KernelEstimator, KernelRegressor
from lssvm.estimators.table_model import TableModel
from lssvm.fitting.dual import DualMemory
from lssvm.fitting.fixed_solution import FixedDetails, FixedMemory
from lssvm.fitting.greedy import GreedyDetails
from lssvm.fitting.record import FORMS, Fit
from lssvm.fitting.series import SeriesFit
from lssvm.fitting.table import TableFit
from lssvm.io.known import BOOK, MAX_CLASSES, MOST, Model, is_zone, known
from lssvm.io.records import Lengths, NotStorable, check_parameters, encode, need, table
from lssvm.kernels.factory import has_gamma
from lssvm.preparation import DateEncoding
from lssvm.tasks import Classes
from lssvm.uncertainty import Probabilities, Residuals
from lssvm.uncertainty.probabilities import by_problem

_PREPARATION = table(
    """
preparation: names list n of text; kinds list n of text; mean list a of number;
    scale list a of number >0; fill none | list a of number; categories list b of list
"""
)["preparation"]


def read_preparation(state: dict[str, Any]) -> Preparation:
    """Return the preparation of raw columns that a file describes."""
    need(set(state) == set(_PREPARATION), "the preparation is not complete")
    lengths = BOOK.check(state, _PREPARATION)
    names, kinds = state["names"], state["kinds"]
    need(len(set(names)) == len(names), "two columns of the preparation have the same name")
    need(set(kinds) <= {"number", "text"}, "a column has an unknown kind")
    fits = (kinds.count("number"), kinds.count("text")) == (lengths["a"], lengths["b"])
    need(fits, "the preparation does not fit its columns")
    for part in state["categories"]:
        texts = all(c is None or isinstance(c, str) for c in part)
        need(texts and len(set(part)) == len(part), "categories are no distinct texts")
    return Preparation.from_dict(state)


def check_columns(stored: Model, ready: Preparation | None) -> int:
    """Check names and number of the raw columns; return the number of features."""
    raw, names = stored.n_features or 0, stored.feature_names
    need(raw, "the number of columns is missing")
    if names is not None:
        fits = isinstance(names, np.ndarray) and names.dtype == object and names.shape == (raw,)
        need(fits and all(isinstance(n, str) for n in names), "the names of columns do not fit")
    if ready is None:
        return raw
    need(len(ready.schema.names) == raw, "the preparation has other columns than the model")
    same = names is None or list(names) == list(ready.schema.names)
    need(same, "the preparation has other names")
    return int(ready.n_features)


def check_fit(
    model: KernelEstimator, fit: Fit, d: int, calibration: Probabilities | Residuals | None
) -> None:
    """Raise a `ModelFileError` where the parts of a fit do not fit together."""
    lengths = BOOK.check_record(fit, "Fit", {"d": d})
    m, k = lengths["m"], lengths["k"]
    task, memory, details = fit.task, fit.memory, fit.details
    classes, all_kept = isinstance(task, Classes), fit.stored == "all"
    family = type(details).__name__.removesuffix("Details")
    own = {"Fixed": "FixedSize", "Dual": ""}.get(family, family)
    wanted = f"{own}LSSV{'C' if classes else 'R'}"
    same = type(model).__name__ == wanted and type(memory).__name__ == f"{family}Memory"
    need(same, "the record is one of another estimator")
    need(fit.stored in FORMS, "how much is stored is not known")

    _check_resources(model)
    model._resources()
    if isinstance(model, KernelClassifier):
        model._check_calibration()
    kernels = [machine.kernel for machine in fit.machines]
    if isinstance(memory, DualMemory):
        kernels += [part.kernel for part in memory.parts]
    choice = model._kernel_choice()
    named = all(kernel.name == choice.name and not has_gamma(kernel) for kernel in kernels)
    need(named, "a kernel is not the one that the parameters name")
    served = sorted(j for machine in fit.machines for j in machine.columns.tolist())
    need(served == list(range(k)), "the kernels do not serve every output once")
    numbers = not is_sparse(fit.basis) and fit.basis.dtype.kind != "f"
    need(numbers == choice.precomputed, "the basis does not fit the kernel")
    tables = [fit.basis, memory.X] if isinstance(memory, DualMemory) else [fit.basis]
    dense = not any(is_sparse(one) for one in tables)
    need(dense or choice.accepts_sparse, "the support is sparse")
    need(len(fit.support) == m or (family == "Fixed" and not len(fit.support)), "support")

    if isinstance(memory, DualMemory):
        need((memory.labels is not None) == classes, "the labels do not fit")
    if isinstance(details, FixedDetails) and isinstance(memory, FixedMemory):
        need(fit.threshold is not None or not classes, "the threshold is missing")
        count, q = (lengths["c"], 0) if task.per_class else (1, k)
        fits = all(one.cross.shape[1] == q for one in details.moments)
        need(fits and len(details.moments) in (0, count), "the moments do not fit")
        bars = fit.stored == "prediction" and not classes and fit.loss == "squared"
        needed = details.is_posterior_of_model and (all_kept or bars)
        need(details.moments or not needed, "the moments are missing")
        need(details.map is not None or not details.moments, "the map is missing")
        if (sample := memory.sample) is not None:
            need((sample.labels is not None) == classes, "the labels of the sample do not fit")
            need(sample.X is not None or classes, "the rows of the sample are missing")
    if isinstance(details, GreedyDetails) and (details.paths or all_kept):
        runs = list(zip(details.paths, details.places, details.ridges, strict=True))
        need(len(runs) == k, "the runs do not serve every output")
        same = all(len(run.support) == len(place) == len(ridge) for run, place, ridge in runs)
        need(same, "a run does not fit")
        need(details.gram is not None or not choice.precomputed, "the kernel matrix is missing")

    if isinstance(calibration, Probabilities):
        assert isinstance(task, Classes)
        _check_probabilities(calibration, task, fit.stored)
    if isinstance(calibration, Residuals):
        BOOK.value(calibration, "Residuals k", lengths, "the residuals")
    need(calibration is None or isinstance(calibration, Probabilities) == classes, "calibration")


def check_table(model: TableModel, fit: TableFit, stored: Model) -> None:
    """Raise a `ModelFileError` where the parts of a model for tables do not fit together."""
    context = fit.context
    assert context is not None  # by its rule
    lengths = BOOK.check_record(fit, "TableFit")
    task, calibration, columns = context.task, context.calibration, context.any_prepared.columns
    wanted = estimators.LSSVMClassifier if isinstance(task, Classes) else estimators.LSSVMRegressor
    need(type(model) is wanted, "the record is one of another estimator")
    need(fit.stored in FORMS, "how much is stored is not known")
    _check_resources(model)
    names = stored.feature_names
    named = names is not None and [c.name for c in columns] == list(names)
    need(check_columns(stored, None) == len(columns), "the columns do not fit")
    need(named if context.texts else names is None, "the names of columns do not fit")
    need(stored.preparation is None and stored.calibration is None, "there are parts too many")

    need(fit.members and "k" in lengths, "there is no configuration")
    rows, all_kept = lengths["t"], fit.stored == "all"
    need(all_kept or not rows, "there are outputs that were not to be kept")
    need(fit.used, "no configuration has a weight")
    for member in fit.members:
        beside = [m for m in fit.in_parts if m.is_of(member)] if member.beside else [member]
        need(len(beside) == 1, "there are prototypes without the parts that they are beside")
        maps: list[Any] = [one.metric.map for one in (beside[0], member)]
        need(
            np.array_equal(*maps),
            "prototypes have another metric than the parts that they are beside",
        )
        need(member.moments is None or all_kept, "there are moments that were not to be kept")
        ready = context.prepared.get(member.configuration.inputs)
        d = -1 if ready is None else ready.n_features
        for cut in member.model.cuts:
            need(cut.tree.directions.shape[1] == d, "a configuration has other inputs")
            with_targets = all_kept and not member.beside
            kept = all(len(leaf.rows.Y) == with_targets * len(leaf.rows.X) for leaf in cut.leaves)
            need(kept, "the targets of the parts do not fit")
            need(all(np.all(part < rows) for part in cut.members), "rows are not there")
    if isinstance(task, Classes):
        assert lengths["k"] == task.n_outputs
        code = make_code("ova", task.n_classes)
        need(np.array_equal(task.code.matrix, code.matrix), "the classes have another code")
        need(task.decoding is None, "the classes are decoded otherwise")
        need(isinstance(calibration, Probabilities), "the probabilities are missing")
        assert isinstance(calibration, Probabilities)
        _check_probabilities(calibration, task, fit.stored)
    elif calibration is not None or fit.stored != "support":
        BOOK.value(calibration, "Residuals k", lengths, "the residuals")


def _check_resources(model: KernelEstimator | TableModel) -> None:
    BOOK.check(vars(model), {"n_jobs": "none | whole >=-4096 <=4096", "verbose": "bool | whole"})
    n_threads(model.n_jobs)


def _check_probabilities(found: Probabilities, task: Classes, stored: str) -> None:
    same = np.array_equal(found.code.matrix, task.code.matrix)
    need(same and found.decoding == task.decoding, "the probabilities have another code")
    count = task.n_outputs if by_problem(task.code) else task.n_classes
    need(len(found.maps) == count, "maps are missing")
    need(stored == "support" or len(found.threshold), "the quantiles of the sets are missing")


def check_series(model: NARX, fit: SeriesFit) -> None:
    """Raise a `ModelFileError` where the parts of a time-series model do not fit together."""
    inner, layout = fit.regressor, fit.layout
    lengths: Lengths = {}
    BOOK.value(model.n_paths, f"whole >=2 <={MOST}", lengths, "n_paths")
    BOOK.value(layout, "Layout w", lengths, "the layout")
    need(isinstance(inner, (LSSVR, FixedSizeLSSVR, GreedyLSSVR)), "the regressor is none")
    assert isinstance(inner, KernelEstimator)
    fitted = hasattr(inner, "record_") and inner.record_.coef.shape[1] == 1
    need(fitted and inner.n_features_in_ == lengths["w"], "the regressor does not fit")
    need(not hasattr(inner, "preparation_"), "the regressor prepares columns")
    need(fit.stored in FORMS, "how much is stored is not known")
    need(len(fit.ends) == 1 or (fit.listed and fit.ends), "the ends of the series do not fit")
    need(len(fit.calendars) in (0, len(fit.ends)), "the times of the series do not fit")
    plan = fit.plan
    same = plan is None or plan.layout.differencing == layout.differencing
    need(same, "the plan has other differences")
    known = fit.stored == "support" or fit.calibration is not None or plan is not None
    need(known, "what intervals need is missing")


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
        series, inner = model.record_.in_form(keep), model.record_.regressor
        assert isinstance(inner, KernelEstimator)  # as `estimator` was
        regressor: Any = write_model(inner, keep)
        return replace(stored, record=replace(series, regressor=regressor))
    names = getattr(model, "feature_names_in_", None)
    stored = replace(stored, n_features=int(model.n_features_in_), feature_names=names)
    if isinstance(model, TableModel):
        return replace(stored, record=_table_record(model, keep))
    ready, fit = getattr(model, "preparation_", None), model.record_.in_form(keep)
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
    return fit.in_form(keep)


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
            encode(plain, known())
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
    if kept.memory is model.record_.memory:  # as it is: computed when first asked for
        return None
    with suppress(InvalidInputError, MemoryBudgetError):  # then there is none after loading either
        if isinstance(model, KernelClassifier) and model.calibration is not None:
            calibrated, none = model._probabilities(), np.empty(0)
            whole = kept.stored != "support"
            return calibrated if whole else replace(calibrated, threshold=none, weight=none)
        if isinstance(model, KernelRegressor) and kept.stored == "prediction":
            return model._residuals()
    return None


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
