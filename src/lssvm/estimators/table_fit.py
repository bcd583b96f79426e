"""What the estimators for tables share: settings, preparation, the fit, new rows, updates."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, is_int
from lssvm._core.blocks import as_bytes, n_threads, one_blas_thread
from lssvm._core.device import find_device
from lssvm._core.errors import ColumnWarning, InvalidInputError, Stopped, not_known, not_usable
from lssvm._core.random import as_generator
from lssvm.backends.device import Torch
from lssvm.backends.host import Backend, host_of
from lssvm.data.dataset import as_scan
from lssvm.data.folds import observation_weight
from lssvm.data.preparation import PreparedTable
from lssvm.data.scanning import Scan
from lssvm.estimators.base import callback_of
from lssvm.estimators.inputs import ArrayInputs, BlockInputs, Inputs
from lssvm.estimators.opening import check_groups
from lssvm.estimators.table_source import (
    LargeTable,
    PreparedRows,
    ScanSource,
    chosen_rows,
    joined,
)
from lssvm.fitting.compression import compress
from lssvm.fitting.explaining import Columns, table_columns
from lssvm.fitting.input_metric import check_length, read_metric
from lssvm.fitting.problem import Problem
from lssvm.fitting.record import Features, Fit, Scaling
from lssvm.fitting.table import SMALL, Interrupted, fit_table
from lssvm.fitting.table_record import KERNELS, SCALINGS, Configuration, TableFit
from lssvm.fitting.table_scoring import make_scorer, read_scorer
from lssvm.fitting.table_updates import change_rows, column_importances
from lssvm.fitting.table_work import PRESETS, Clock, TableSettings
from lssvm.kernels import Metric
from lssvm.local import ClusterLeaves, LeafEngine
from lssvm.local.device import engine_of
from lssvm.preparation import TablePreparation
from lssvm.tasks import Classes, Task

if TYPE_CHECKING:
    from lssvm.estimators.table import LSSVMClassifier, LSSVMRegressor

_FEW_ROWS = 2000  # below them systems are too small for several threads of BLAS

Model = TypeVar("Model", bound="LSSVMClassifier | LSSVMRegressor")


@dataclass(frozen=True, eq=False)
class Targets:
    """Rows of a table with their targets as outputs.

    Attributes
    ----------
    X : table of n rows
        All rows, or a sample of very many.
    y : array of shape (n,) or (n, k)
        As the preparation takes them.
    Y : array of shape (n, k)
        As outputs: -1 and 1 for every class, or numbers of mean 0 and variance 1.
    weight : array of shape (n,)
        With the weights of classes.
    task : Classes or Numbers
    classes : int array of shape (n,) or None
        Class numbers.
    scored : array of shape (n,) or None
        Weights without those of classes.
    large : LargeTable or None
        All rows, where these are a sample.
    """

    X: Any
    y: AnyArray
    Y: FloatArray
    weight: FloatArray
    task: Task
    classes: IntArray | None = None
    scored: FloatArray | None = None
    large: LargeTable | None = None


# -- settings ------------------------------------------------------------------------------------


def backend_of_model(model: Model) -> Backend:
    """Return where a model is computed: threads of this machine, or a device."""
    place = find_device(model.device, None, dispatch=False)
    if place is None:
        return host_of(model)
    limit = None if model.memory_budget is None else as_bytes(model.memory_budget)
    return Torch(replace(place, limit=limit))


def _engine(model: Model, data: Scan | None = None) -> LeafEngine:
    """Return what computes leaves: threads, a device, or the cluster that has the data."""
    backend = backend_of_model(model)
    if data is not None and data.distributed and backend.device is None:
        return ClusterLeaves(backend.threads, getattr(data.reader, "client", None))
    return engine_of(backend)


def seed_of_model(model: Model) -> int:
    """Return the seed of samples and folds."""
    return int(as_generator(model.random_state).integers(2**31))


def _settings(model: Model, data: Scan | None) -> TableSettings:
    """Return the settings of the fit from the parameters."""
    if model.preset not in PRESETS:
        raise not_known("preset", model.preset, f"choose one of {', '.join(PRESETS)}.")
    scalings = _some_of("scaling", model.scaling, SCALINGS)
    kernels = _some_of("kernel", model.kernel, KERNELS)
    values: dict[str, Any] = {
        "configurations": tuple(Configuration(s, k) for k in kernels for s in scalings),
        "engine": _engine(model, data),
        "seed": seed_of_model(model),
    }
    if model.metric is None:
        values["rounds"] = 0
    elif not (isinstance(model.metric, str) and model.metric == "auto"):
        metric = read_metric(model.metric)
        given = isinstance(metric, Metric)
        values |= {"rounds": 0, "metric": metric} if given else {"shape": metric}
    sizes = {"leaf_size": model.leaf_size, "n_trees": model.n_trees}
    for name, size in (sizes | {"n_prototypes": model.n_prototypes}).items():
        least = 0 if name == "n_prototypes" else 1
        if isinstance(size, str) and size == "auto":
            continue
        if not is_int(size) or size < least:
            raise not_usable(name, size, f"give 'auto' or an int >= {least}.")
        values[name] = int(size)
    settings = TableSettings.preset(model.preset, **values)
    largest = _engine(model).largest_leaf(as_bytes(model.memory_budget))
    return replace(settings, largest=max(min(settings.largest, largest), 100))


def _some_of(name: str, given: Any, known: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values that a parameter names: "auto" is all of them."""
    if isinstance(given, str) and given == "auto":
        return known
    chosen = (given,) if isinstance(given, str) else tuple(given)
    if not chosen or any(value not in known for value in chosen):
        raise not_usable(name, given, f"give 'auto', or one or more of {', '.join(known)}.")
    return chosen


def takes_tables(tags: Any) -> Any:
    """Return the tags of an estimator that takes raw tables."""
    tags.input_tags.allow_nan = True
    tags.input_tags.string = True
    tags.input_tags.categorical = True
    tags.input_tags.sparse = True
    return tags


# -- the fit -------------------------------------------------------------------------------------


def _preparation(model: Model, scaling: Scaling, task: Task, seed: int) -> dict[str, Any]:
    """Return the parameters of the preparation for one scaling."""
    target = "classes" if isinstance(task, Classes) else "numbers"
    columns = {"drop": model.drop, "keep": model.keep, "ordered": model.ordered}
    return columns | {"numbers": scaling, "target": target, "random_state": seed % 2**31}


def fit_model(model: Model, rows: Targets, groups: Any) -> Model:
    """Prepare the rows of positive weight, fit, score and publish the record."""
    limit, large = model.time_limit, rows.large
    if limit is not None and not (isinstance(limit, (int, float)) and limit > 0):
        raise not_usable("time_limit", limit, "give a number of seconds > 0, or None.")
    clock = Clock(None if limit is None else float(limit))
    read_scorer(model.scoring)
    scan = large.source.scan if large is not None and isinstance(large.source, ScanSource) else None
    settings = _settings(model, scan)
    if large is not None and settings.n_prototypes:
        raise not_usable(
            "n_prototypes",
            model.n_prototypes,
            f"a global model of prototypes needs the rows in memory, and {large.source.n_rows:,} "
            "are too many: give 'auto' or 0.",
        )
    labels = None
    if groups is not None:
        groups = check_groups(groups, len(rows.Y))
        labels = np.unique(groups, return_inverse=True)[1].ravel().astype(np.intp)
        if len(np.unique(labels[rows.weight > 0])) < 2:
            raise InvalidInputError(
                "Rows are left out by groups, but all rows of positive weight are in one: give "
                "at least 2 groups, or leave groups out."
            )
    callback = callback_of(model).on_event
    prepared: dict[Scaling, PreparedTable] = {}
    tables: dict[Scaling, FloatArray] = {}
    scalings = sorted({c.scaling for c in settings.configurations}, key=SCALINGS.index)
    for number, scaling in enumerate(scalings):
        if prepared and (clock.stopped or clock.over(0.3)):
            break  # without time for the other scaling
        text = f"preparation: {scaling}, {number + 1} of {len(scalings)}, {clock.spent():.1f} s"
        try:
            callback({"stage": "preparation", "text": text})
        except Stopped:  # the fit ends with whatever model there can be
            clock.stop()
        preparation = TablePreparation(**_preparation(model, scaling, rows.task, settings.seed))
        with warnings.catch_warnings():
            if prepared:  # the columns are the same
                warnings.simplefilter("ignore", ColumnWarning)
            table = preparation.fit_transform(
                rows.X, rows.y, sample_weight=rows.weight, groups=groups
            )
        prepared[scaling], tables[scaling] = preparation.prepared_, table
        d = table.shape[1]
        check_length(settings.metric, d, f"the {scaling} columns of X are {d} prepared features")
    used = np.flatnonzero(rows.weight > 0)
    problem = Problem(
        {scaling: table[used] for scaling, table in tables.items()},
        rows.Y[used],
        rows.weight[used],
        None if labels is None else labels[used],
        None if rows.classes is None else rows.classes[used],
        None if rows.scored is None else rows.scored[used],
    )
    problem = problem.merged() if large is None else problem
    # C counts rows of mean weight.
    weight_scale = float(problem.weight.mean())
    scaled = problem.divided(weight_scale)
    # Calibration counts observations, whatever the scale of the weights.
    each = problem.score_weight
    problem = problem.divided(each.sum() / observation_weight(problem.n, each)[0])
    scorer = make_scorer(problem, rows.task, model.scoring)
    scorer.check()
    everything = None
    if large is not None:
        everything = PreparedRows(
            large.source,
            prepared,
            large.scaled_by(weight_scale),
            large.sample[used],
            problem.inputs,
            as_bytes(model.memory_budget),
            n_threads(model.n_jobs),
        )

    def finish(fit: TableFit) -> None:
        fit = replace(fit, task=rows.task, prepared=prepared)
        state = replace(
            fit.state,
            n_rows=problem.n if large is None else large.source.n_rows,
            weight_scale=weight_scale,
            importances=column_importances(fit),
            named=hasattr(preparation, "feature_names_in_"),
        )
        model._publish(scorer.calibrate(replace(fit, state=state), problem, clock))

    try:
        # Leaves share the threads; only an exact model of many rows uses those of BLAS.
        single = n_threads(model.n_jobs) == 1 or not _FEW_ROWS <= problem.n < SMALL
        with one_blas_thread() if single else nullcontext():
            finish(fit_table(scaled, settings, clock, callback, scorer, everything))
    except Interrupted as interrupted:
        finish(interrupted.fit)
        raise KeyboardInterrupt("The fit was interrupted; its best model is kept.") from None
    return model


def preparations_of(model: Model, fit: Fit[Any]) -> dict[Scaling, TablePreparation]:
    """Return the preparations of a record as transformers."""
    return {
        scaling: TablePreparation.of(
            prepared, texts=fit.state.named, **_preparation(model, scaling, fit.task, fit.seed)
        )
        for scaling, prepared in fit.prepared.items()
    }


# -- rows of a fitted model ----------------------------------------------------------------------


def _prepare(model: Model, X: Any) -> Features:
    return {scaling: one.transform(X) for scaling, one in model.preparations_.items()}


def inputs_of(model: Model, X: Any) -> Inputs:
    """Return the rows that a method was called with, prepared; those of a scan in blocks."""
    check_is_fitted(model)
    backend, data = backend_of_model(model), as_scan(X)
    if data is None:
        return ArrayInputs(_prepare(model, X), backend)
    source = _columns_of(model, data)

    def blocks() -> Iterator[Features]:
        return (_prepare(model, block.table) for block in source.blocks())

    return BlockInputs(blocks, backend)


def _columns_of(model: Model, data: Scan) -> ScanSource:
    """Return the columns of a scan that the model was fitted to."""
    names = tuple(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None
    return ScanSource(data.select(names, model.n_features_in_))


def explained_columns(model: Model, X: Any) -> Columns:
    """Return the raw columns of rows that are explained."""
    data = as_scan(X)
    if data is not None:
        X = joined([block.table for block in _columns_of(model, data).blocks()])
    return table_columns(X, model.record_.any_prepared)


def with_targets(model: Model, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return rows, targets and weights; those of a scan are read."""
    check_is_fitted(model)
    data = as_scan(X, y, sample_weight)
    if data is None:
        return X, y, sample_weight
    rows = chosen_rows(_columns_of(model, data), None)
    return rows.table, rows.y, rows.weight


def change_model(model: Model, X: Any, Y: FloatArray, weight: FloatArray, *, forget: bool) -> Model:
    """Add rows to a fitted model, or remove them."""
    check_is_fitted(model)
    fit: TableFit = model.record_
    fit.need("all", "Adding or removing rows")
    features = _prepare(model, X)
    model._publish(
        change_rows(fit, features, Y, weight, forget=forget, backend=backend_of_model(model))
    )
    return model


def compress_model(model: Model, n_support: int | Sequence[int]) -> Model | list[Model]:
    """Return small models in place of a fitted one."""
    check_is_fitted(model)
    several = isinstance(n_support, Sequence)
    sizes = list(n_support) if isinstance(n_support, Sequence) else [n_support]
    if not sizes or not all(map(is_int, sizes)) or min(sizes) < 1:
        raise not_usable("n_support", n_support, "give an int >= 1, or a list of them.")
    small = compress(model.record_, sizes, model.scoring, n_threads(model.n_jobs))
    models: list[Model] = [clone(model) for _ in small]
    for one, record in zip(models, small, strict=True):
        one._publish(record)
    return models if several else models[0]
