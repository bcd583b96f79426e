"""What the estimators for tables share: settings, preparation, the fit, new rows, updates."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, check_weight, is_int, on_host
from lssvm._core.blocks import as_bytes, n_threads, one_blas_thread
from lssvm._core.errors import ColumnWarning, InvalidInputError, Stopped, not_known, not_usable
from lssvm._core.random import as_generator
from lssvm.backends.device import Backend
from lssvm.backends.host import find_backend, host_of
from lssvm.data.columns import RawTable
from lssvm.data.dataset import Dataset, open_dataset
from lssvm.data.folds import observation_weight
from lssvm.data.preparation import Learned, PreparedTable
from lssvm.data.raw import RawBlock, TableRows
from lssvm.data.sampling import Sample
from lssvm.estimators.base import callback_of, lock_of
from lssvm.estimators.opening import Inputs, check_groups
from lssvm.fitting.compression import compress
from lssvm.fitting.record import Fit, Scaling, Step
from lssvm.fitting.table import Interrupted, fit_table
from lssvm.fitting.table_record import (
    KERNELS,
    SCALINGS,
    AllRows,
    Configuration,
    Encode,
    Problem,
    TableFit,
    column_importances,
)
from lssvm.fitting.table_scoring import make_scorer, read_scorer
from lssvm.fitting.table_updates import change_rows
from lssvm.fitting.table_work import PRESETS, Clock, TableSettings
from lssvm.kernels import Metric
from lssvm.kernels.metric import check_length, read_metric
from lssvm.local.engine import find_engine
from lssvm.preparation import TablePreparation
from lssvm.preparation.transformer import fit_features
from lssvm.tasks import Classes, Task

if TYPE_CHECKING:
    from lssvm.estimators.table import LSSVMClassifier, LSSVMRegressor

MANY = 400_000
"""Rows beyond which everything but the leaves is chosen by a sample."""
SAMPLE = 100_000
"""Rows of that sample."""

_SHORT = 0.7  # of the time limit: a preparation that takes longer leaves time for little else

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
    large : AllRows or None
        All rows, where these are a sample.
    """

    X: Any
    y: AnyArray
    Y: FloatArray
    weight: FloatArray
    task: Task
    classes: IntArray | None = None
    scored: FloatArray | None = None
    large: AllRows | None = None


# -- settings ------------------------------------------------------------------------------------


def backend_of_model(model: Model) -> Backend:
    """Return where a model is computed: threads of this machine, or a device."""
    limit = None if model.memory_budget is None else as_bytes(model.memory_budget)
    return find_backend(model.device, None, dispatch=False, limit=limit, **vars(host_of(model)))


def seed_of_model(model: Model) -> int:
    """Return the seed of samples and folds."""
    return int(as_generator(model.random_state).integers(2**31))


def settings_of(model: Model, data: Dataset | None) -> TableSettings:
    """Return the settings of the fit from the parameters."""
    if model.preset not in PRESETS:
        raise not_known("preset", model.preset, f"choose one of {', '.join(PRESETS)}.")
    scalings, backend = _some_of("scaling", model.scaling, SCALINGS), backend_of_model(model)
    kernels = _some_of("kernel", model.kernel, KERNELS)
    values: dict[str, Any] = {
        "configurations": tuple(Configuration(s, k) for k in kernels for s in scalings),
        "engine": find_engine(backend, data),
        "seed": seed_of_model(model),
    }
    if model.metric is None:
        values["rounds"] = 0
    elif not (isinstance(model.metric, str) and model.metric == "auto"):
        metric = read_metric(model.metric)
        fixed = isinstance(metric, Metric)
        values |= {"rounds": 0, "metric": metric} if fixed else {"shape": metric}
    sizes = {"leaf_size": model.leaf_size, "n_trees": model.n_trees}
    for name, size in (sizes | {"n_prototypes": model.n_prototypes}).items():
        least = 0 if name == "n_prototypes" else 1
        if isinstance(size, str) and size == "auto":
            continue
        if not is_int(size) or size < least:
            raise not_usable(name, size, f"give 'auto' or an int >= {least}.")
        values[name] = int(size)
    settings = TableSettings.preset(model.preset, **values)
    largest = find_engine(backend).largest_leaf(as_bytes(model.memory_budget))
    return replace(settings, largest=max(min(settings.largest, largest), 100))


def _some_of(name: str, option: Any, known: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values that a parameter names: "auto" is all of them."""
    if isinstance(option, str) and option == "auto":
        return known
    single = isinstance(option, str) or not isinstance(option, Iterable)
    chosen = (option,) if single else tuple(option)
    if not chosen or any(value not in known for value in chosen):
        raise not_usable(name, option, f"give 'auto', or one or more of {', '.join(known)}.")
    return chosen


# -- the fit -------------------------------------------------------------------------------------


def open_table(
    model: Model, X: Any, y: Any, sample_weight: Any, groups: Any
) -> tuple[Dataset, Sample | None]:
    """Open the rows of a fit; where there are very many, also draw a sample of them."""
    data = open_dataset(X, y, sample_weight, groups)
    if data.n_rows == 0:
        raise InvalidInputError("X has 0 sample(s) while a minimum of 1 is required.")
    if data.n_rows <= MANY or groups is not None or not data.has_target:
        return data, None
    return data, data.sample(SAMPLE, seed=seed_of_model(model), classes=is_classifier(model))


def rows_of(data: Dataset) -> tuple[Any, Any, FloatArray]:
    """Return all rows with targets and weights: X as it was given, or a table that was read."""
    X, y, weight = data.on_host()
    weight = check_weight(weight, data.n_rows)
    return X, y, np.ones(data.n_rows) if weight is None else weight


def weights_of(rows: RawBlock | TableRows) -> FloatArray:
    """Return the weights (n,) of rows."""
    return np.ones(len(rows)) if rows.weight is None else rows.weight


def all_rows(model: Model, data: Dataset, drawn: Sample, encode: Encode) -> AllRows:
    """Return all rows of very many, of which some were drawn."""
    host = host_of(model)
    return AllRows(data, encode, drawn.positions, host.budget, host.threads)


def _preparation(model: Model, scaling: Scaling, task: Task, seed: int) -> dict[str, Any]:
    """Return the parameters of the preparation for one scaling."""
    target = "classes" if isinstance(task, Classes) else "numbers"
    columns = {"drop": model.drop, "keep": model.keep, "ordered": model.ordered}
    return columns | {"numbers": scaling, "target": target, "random_state": seed % 2**31}


def fit_model(model: Model, rows: Targets, groups: Any, before: Step | None = None) -> Model:
    """Prepare the rows of positive weight, fit, score and publish the record.

    The time of a step ``before`` counts for ``time_limit``.
    """
    limit, large = model.time_limit, rows.large
    if limit is not None and not (isinstance(limit, (int, float)) and limit > 0):
        raise not_usable("time_limit", limit, "give a number of seconds > 0, or None.")
    earlier = () if before is None else (before,)
    clock = Clock(None if limit is None else float(limit))
    clock.started -= sum(step.seconds for step in earlier)
    read_scorer(model.scoring)
    settings = settings_of(model, None if large is None else large.data)
    if large is not None and settings.n_prototypes:
        raise not_usable(
            "n_prototypes",
            model.n_prototypes,
            f"a global model of prototypes needs the rows in memory, and {large.n_rows:,} "
            "are too many: give 'auto' or 0.",
        )
    labels = None
    if groups is not None:
        groups = check_groups(groups, len(rows.Y))
        labels = np.unique(groups, return_inverse=True)[1].ravel().astype(np.intp)
        if len(np.unique(labels[rows.weight > 0])) < 2:
            raise InvalidInputError(
                "Rows are held out by groups, but all rows of positive weight are in one: give "
                "at least 2 groups, or leave groups out."
            )
    callback = callback_of(model).on_event
    prepared: dict[Scaling, PreparedTable] = {}
    tables: dict[Scaling, FloatArray] = {}
    known: tuple[RawTable, Learned] | None = None  # what the columns share is learned once
    scalings = sorted({c.scaling for c in settings.configurations}, key=SCALINGS.index)
    for number, scaling in enumerate(scalings):
        # Another scaling takes as long as those before it did on average.
        if prepared and (clock.stopped or clock.over(0.3 * number / (number + 1))):
            break
        text = f"preparation: {scaling}, {number + 1} of {len(scalings)}, {clock.spent():.1f} s"
        try:
            callback({"stage": "preparation", "text": text})
        except Stopped:  # the fit ends with whatever model there can be
            clock.stop()
        preparation = TablePreparation(
            **_preparation(model, scaling, rows.task, settings.seed), encode_values=settings.values
        )
        with warnings.catch_warnings():
            if prepared:  # the columns are the same
                warnings.simplefilter("ignore", ColumnWarning)
            table, known = fit_features(preparation, rows.X, rows.y, rows.weight, groups, known)
        prepared[scaling], tables[scaling] = preparation.prepared_, table
        d = table.shape[1]
        check_length(settings.metric, d, f"the {scaling} columns of X are {d} prepared features")
    used = np.flatnonzero(rows.weight > 0)
    problem = Problem(
        {s: X if len(used) == len(X) else X[used] for s, X in tables.items()},
        rows.Y[used],
        rows.weight[used],
        None if labels is None else labels[used],
        None if rows.classes is None else rows.classes[used],
        None if rows.scored is None else rows.scored[used],
    )
    if large is None:
        problem = problem.merged(ranked=clock.stopped or not clock.over(_SHORT))
    # C counts rows of mean weight.
    weight_scale = float(problem.weight.mean())
    scaled = problem.divided(weight_scale)
    # Calibration counts observations, whatever the scale of the weights.
    each = problem.score_weight
    problem = problem.divided(each.sum() / observation_weight(problem.n, each)[0])
    scorer = make_scorer(problem, rows.task, model.scoring, settings.other_classes)
    scorer.check()
    if large is not None:
        drawn = large.sample[used]
        learned = {s: Learned.of(prepared[s], X, drawn) for s, X in problem.inputs.items()}
        large = replace(large, sample=drawn, learned=learned, scale=weight_scale)

    threads = n_threads(model.n_jobs)
    prepared_in = clock.spent() - sum(step.seconds for step in earlier)

    def finish(fit: TableFit) -> None:
        begin = clock.now()
        fit = replace(fit, task=rows.task, prepared=prepared)
        state = replace(
            fit.state,
            n_rows=problem.n if large is None else large.n_rows,
            weight_scale=weight_scale,
            importances=column_importances(
                fit, threads, 0.1 if clock.left() <= 0 else 1.0, settings.engine.slopes
            ),
            named=hasattr(preparation, "feature_names_in_"),
        )
        fit = scorer.calibrate(replace(fit, state=state), problem, clock, threads)
        assert fit.tuning is not None
        first = Step("preparation", ", ".join(prepared), np.nan, 0.0, prepared_in, True)
        took = clock.now() - begin
        last = Step("calibration", "held-out outputs, importances", np.nan, 0.0, took, True)
        steps = (*earlier, first, *fit.tuning.steps, last)
        model._publish(replace(fit, tuning=replace(fit.tuning, steps=steps)))

    try:
        # Configurations and leaves share the threads; BLAS keeps to one.
        with one_blas_thread():
            finish(fit_table(scaled, settings, clock, callback, scorer, large))
    except Interrupted as interrupted:
        finish(interrupted.fit)
        raise KeyboardInterrupt("The fit was interrupted; its best model is kept.") from None
    return model


def preparations_of(model: Model, fit: Fit[Any]) -> dict[Scaling, TablePreparation]:
    """Return the preparations of a record as transformers, which always return arrays."""
    return {
        scaling: TablePreparation.of(
            prepared, texts=fit.state.named, **_preparation(model, scaling, fit.task, fit.seed)
        ).set_output(transform="default")
        for scaling, prepared in fit.prepared.items()
    }


# -- rows of a fitted model ----------------------------------------------------------------------


def inputs_of(model: Model, X: Any) -> Inputs:
    """Return the rows that a method was called with, and how they are prepared."""
    data = _columns_of(model, X).checked(on_host)
    return Inputs(data, model.preparations_, backend_of_model(model))


def _columns_of(model: Model, X: Any, y: Any = None, sample_weight: Any = None) -> Dataset:
    """Return a data set with the columns that the model was fitted to."""
    check_is_fitted(model)
    ready = model.record_.any_prepared
    names = ready.used if model.record_.state.named else None
    return open_dataset(X, y, sample_weight).select(names, model.n_features_in_, ready.kinds)


def with_targets(model: Model, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, FloatArray]:
    """Return rows, targets and weights; those of a scan are read."""
    return rows_of(_columns_of(model, X, y, sample_weight))


def change_model(model: Model, X: Any, Y: FloatArray, weight: FloatArray, *, forget: bool) -> Model:
    """Add rows to a fitted model, or remove them."""
    check_is_fitted(model)
    with lock_of(model):  # what another thread adds meanwhile must not be lost
        fit: TableFit = model.record_
        fit.need("all", "Adding or removing rows")
        features = {scaling: one.transform(X) for scaling, one in model.preparations_.items()}
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
