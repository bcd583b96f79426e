"""From what a caller gives to training rows and a task, or to inputs of a prediction."""

from __future__ import annotations

import inspect
import operator
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol, TypeGuard

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from lssvm._core.arrays import (
    AnyArray,
    Array,
    FloatArray,
    IntArray,
    check_magnitude,
    check_weight,
    get_namespace,
    is_sparse,
)
from lssvm._core.blocks import as_bytes, require
from lssvm._core.device import Device, find_device, same_place
from lssvm._core.errors import InvalidInputError, NumericalWarning, ScaleWarning
from lssvm._core.progress import Listener
from lssvm._core.random import RandomState
from lssvm.backends.device import Torch
from lssvm.backends.host import Backend, Host
from lssvm.backends.rows import Blocks, Rows, ScanRows, Training
from lssvm.codes import Coding, make_code
from lssvm.data import scan
from lssvm.data.dataset import Arrays, open_dataset
from lssvm.data.preparation import Learned, PreparationSettings, PreparedTable, learn
from lssvm.data.raw import RawBlock, plain_features
from lssvm.data.sampling import Sample
from lssvm.data.scanning import Scan
from lssvm.estimators.inputs import ArrayInputs, Inputs, ScanInputs, hits, spread_of
from lssvm.fitting.input_metric import check_metric, metric_of
from lssvm.fitting.record import (
    Fit,
    KernelChoice,
    KernelParameters,
    Resources,
    UsesResources,
    better_code,
    check_C,
    class_rows,
    is_auto,
    is_open,
    resources_of,
    seed_of,
)
from lssvm.kernels import Metric
from lssvm.kernels.metric import IDENTITY
from lssvm.solvers import PCG
from lssvm.tasks import Classes, ClassTable, Numbers, Task
from lssvm.tasks.targets import check_labels, check_numbers, distinct_labels


def validated(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return what `sklearn.utils.validation.validate_data` returns.

    Missing and infinite values, and numbers whose squares would leave the range of floating-point
    numbers, are errors that name the column and say what to do.

    Parameters
    ----------
    estimator : estimator
    X : array or data frame of shape (n, d)
    y : array, default="no_validation"
        By default there is no target to check: rows to predict, which may be as small as they like.
    **options
        As scikit-learn takes them.

    Returns
    -------
    X, or X and y
    """
    alone = isinstance(y, str) and y == "no_validation"
    try:
        checked = validate_data(estimator, X, y, **options)
    except ValueError as error:
        text = str(error)
        if text.startswith("Input X contains"):
            raise _not_finite(X, text) from error
        if text.startswith("Input y contains"):
            raise InvalidInputError(
                f"{_first_sentence(text)} A model needs a target for every row: leave out the rows "
                "without one."
            ) from error
        raise
    change = "bring its columns to one scale (sklearn.preprocessing.StandardScaler)"
    check_magnitude(checked if alone else checked[0], "X", change, small=alone)
    return checked


def _not_finite(X: Any, text: str) -> InvalidInputError:
    """Return the error of a missing or infinite value, with its place."""
    missing = "NaN" in text
    change = (
        "Remove such rows, fill the gaps (sklearn.impute.SimpleImputer in a Pipeline before the "
        "model; lssvm.scan(..., missing='impute') for files), or use LSSVMClassifier or "
        "LSSVMRegressor, which take tables with missing values."
        if missing
        else "Remove such rows, or replace the infinite values by finite ones."
    )
    return InvalidInputError(f"{_first_sentence(text)}{_place(X, missing)} {change}")


def _first_sentence(text: str) -> str:
    return text.splitlines()[0].split(". ")[0].rstrip(".") + "."


def _place(X: Any, missing: bool) -> str:
    """Return the first place of a value that is missing, or infinite."""
    try:
        numbers = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return ""
    if numbers.ndim != 2:
        return ""
    bad = np.argwhere(np.isnan(numbers) if missing else ~np.isfinite(numbers))
    if len(bad) == 0:
        return ""
    row, column = bad[0].tolist()
    names = list(getattr(X, "columns", ()))
    name = repr(str(names[column])) if names else str(column)
    return f" The first is in row {row}, column {name}."


class Classifier(UsesResources, Protocol):
    """A classifier: its parameters say what y means."""

    C: Any
    multiclass: Any
    class_weight: Any
    random_state: RandomState


def map_given(rows: Rows, choice: KernelChoice, seed: int) -> tuple[Rows, Metric]:
    """Return rows after the metric that a parameter asks for, and the metric."""
    if choice.metric is None:
        return rows, IDENTITY
    metric = metric_of(check_metric(choice), rows, choice, seed)
    return mapped_rows(rows, metric), metric


def mapped_rows(rows: Rows, metric: Metric) -> Rows:
    """Return rows, and what a splitter sees of them, after a metric."""
    if metric.map is None:
        return rows
    X, given = metric.map_rows(rows.X), rows.given
    if given is not None:
        given = X if given[0] is rows.X else metric.map_rows(given[0]), given[1]
    return replace(rows, X=X, given=given)


def open_classes(
    estimator: Classifier,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    groups: Any = None,
    task: Classes | None = None,
    by_class: bool = False,
    sparse: bool = False,
    classes: Any = None,
) -> tuple[Rows, Classes]:
    """Check arrays of a classifier.

    Parameters
    ----------
    estimator : classifier
        Whose parameters `multiclass`, `decoding`, `targets` and `class_weight` say what y means.
    X, y, sample_weight, groups
        As the caller gave them.
    task : Classes or None, default=None
        What the model has learned, where further rows are opened; None: a new fit.
    by_class : bool, default=False
        Whether the recipe keeps moments per class, where the task asks for that: weights of rows
        are then without those of classes, and targets are looked up.
    sparse : bool, default=False
        Whether X may be a sparse matrix.
    classes : array-like or None, default=None
        All labels of a new fit, where some come with later rows.

    Returns
    -------
    rows : Rows
    task : Classes
    """
    X, y = _validated(estimator, X, check_labels(y), task, sparse)
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    given, weight = (X, y), check_weight(sample_weight, X.shape[0])
    X, y, weight, positions = _positive(X, y, weight)
    if task is None:
        task = _task_of_labels(estimator, distinct_labels(y), classes)
    rows = class_rows(task, X, task.numbers(y), weight, resources_of(estimator), by_class=by_class)
    groups = check_groups(groups, given[0].shape[0])
    return replace(rows, positions=positions, given=given, groups=groups), task


def check_groups(groups: Any, n: int) -> AnyArray | None:
    """Return groups as an array of n entries, none of them missing."""
    if groups is None:
        return None
    array = np.asarray(column_or_1d(groups))
    missing = array != array  # NaN is not equal to itself
    if array.shape[0] != n or np.any(missing) or any(entry is None for entry in array):
        raise InvalidInputError(
            f"groups has {array.shape[0]} entries, {int(np.sum(missing))} of them NaN, but X has "
            f"{n} rows: give one group for every row, and none that is missing."
        )
    return array


def _validated(
    estimator: Any, X: Any, y: Any, task: Task | None, sparse: bool, **options: Any
) -> tuple[Any, Any]:
    layout = {"accept_sparse": "csr"} if sparse else {"order": "C"}  # rows are read in blocks
    reset, dtype = task is None, [np.float64, np.float32]
    X, y = validated(estimator, X, y, reset=reset, dtype=dtype, **layout, **options)
    if reset:
        warn_of_scales(estimator, X, getattr(estimator, "feature_names_in_", None))
    return X, y


_SCALES = 100.0  # how many times as much one column may vary as another
_LOOKED_AT = 10_000  # rows


def warn_of_scales(estimator: Any, X: Any, names: Any = None) -> None:
    """Warn where columns differ in scale so much that the small ones do not count.

    Parameters
    ----------
    estimator : estimator
        Nothing is said where its kernel has a width for each feature, or takes no features.
    X : array of shape (n, d)
    names : array of str, optional
        Of the columns.

    Notes
    -----
    The largest standard deviation is compared with the smallest one, which for rare indicators is
    taken to be at least a tenth of the range.
    """
    gamma: Any = getattr(estimator, "gamma", None)
    own = not isinstance(getattr(estimator, "kernel", "rbf"), str) or np.ndim(gamma) > 0
    if own or estimator.kernel == "precomputed" or (isinstance(gamma, str) and gamma == "ard"):
        return
    if not isinstance(X, np.ndarray) or X.shape[0] < 2 or X.shape[1] < 2:
        return
    some = X[:: max(1, len(X) // _LOOKED_AT)]
    spread, extent = some.std(axis=0), np.ptp(some, axis=0)
    lowest = np.where(extent > 0, np.maximum(spread, 0.1 * extent), np.inf)
    large, small = int(np.argmax(spread)), int(np.argmin(lowest))
    if not spread[large] > _SCALES * lowest[small]:
        return
    which = [f"column {j}" if names is None else repr(str(names[j])) for j in (large, small)]
    times = 10 ** int(np.log10(spread[large] / lowest[small]))
    warnings.warn(
        f"{which[0]} of X varies more than {times:,} times as much as {which[1]}, which therefore "
        "hardly counts in the kernel: standardise the columns "
        "(make_pipeline(StandardScaler(), model)), or use LSSVMClassifier or LSSVMRegressor.",
        ScaleWarning,
        stacklevel=_level_of_caller(),
    )


def _level_of_caller() -> int:
    """Return the level of the line that has called this package, for a warning about it."""
    frame, level, inner = inspect.currentframe(), 0, ("lssvm", "sklearn", "contextlib")
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] in inner:
        frame, level = frame.f_back, level + 1
    return level


def _task_of_labels(estimator: Classifier, labels: AnyArray, classes: Any) -> Classes:
    """Return the task of labels that rows have, and of classes that come later."""
    every = labels if classes is None else distinct_labels(np.asarray(check_labels(classes)))
    unknown = np.setdiff1d(labels, every)
    if len(unknown):
        raise InvalidInputError(
            f"y has labels {unknown.tolist()}, which are not among classes={every.tolist()}: name "
            "all of them."
        )
    if len(every) == len(labels):
        return task_of(estimator, labels)
    task = task_of(estimator, every)
    if is_auto(estimator.multiclass):
        task = replace(task, code=make_code("ova", len(every)))
    if task.per_class:
        raise InvalidInputError(
            f"The first rows have none of the classes {np.setdiff1d(every, labels).tolist()}, of "
            "which one-vs-one, class_weight='balanced' and targets='fisher' need some: give first "
            "rows of every class, or multiclass='ova' with other weights and targets."
        )
    return task


def task_of(estimator: Classifier, classes: AnyArray) -> Classes:
    """Return the task that the parameters of a classifier describe."""
    coding = Coding.of(estimator.multiclass)
    return Classes.of(
        classes,
        multiclass=coding.code,
        decoding=coding.decoding,
        targets=coding.targets,
        class_weight=estimator.class_weight,
        random_state=estimator.random_state,
    )


def with_better_code(
    estimator: KernelParameters,
    rows: Rows,
    task: Task,
    choice: KernelChoice,
    *,
    by_class: bool,
    counts: FloatArray | None = None,
) -> tuple[Rows, Task]:
    """Return rows and task with the better code, where there are many classes and none was named.

    The parameters are those of `class_rows` and `better_code`.
    """
    named = getattr(estimator, "multiclass", None)
    if not isinstance(task, Classes) or not is_open(named, task, choice):
        return rows, task
    assert rows.labels is not None
    if len(np.unique(rows.labels)) < task.n_classes:  # some come later
        return rows, task
    better = better_code(rows, task, choice, check_C(estimator.C))
    if better is task:
        return rows, task
    data = (rows.X, rows.labels, rows.sample_weight, Resources(rows.budget, rows.threads))
    own = class_rows(better, *data, by_class=by_class, counts=counts)
    return replace(rows, Y=own.Y, weight=own.weight, loss_weight=own.loss_weight), better


def open_numbers(
    estimator: UsesResources,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    groups: Any = None,
    task: Numbers | None = None,
    sparse: bool = False,
    by_moments: bool = True,
    centred: bool = False,
    centre: FloatArray | None = None,
) -> tuple[Rows, Numbers]:
    """Check arrays of a regressor; the parameters are those of `open_classes`.

    ``by_moments`` says that squares of the targets are summed, which an offset costs digits:
    ``centred`` takes about the weighted means off the targets of a new fit, ``centre`` (k,) is what
    is taken off those of further rows.
    """
    y = check_numbers(y)
    X, y = _validated(estimator, X, y, task, sparse, multi_output=True, y_numeric=True)
    y = np.asarray(y, dtype=np.float64)
    given, weight = (X, y), check_weight(sample_weight, X.shape[0])
    X, y, weight, positions = _positive(X, y, weight)
    Y = y.reshape(len(y), -1)
    change = "standardise it (sklearn.compose.TransformedTargetRegressor)"
    check_magnitude(Y, "y", change, dtype=X.dtype)
    if task is None:
        task = Numbers(Y.shape[1], y.ndim == 1)
        centre = target_centre(Y, weight) if centred else None
    if by_moments and not centred:
        _warn_of_offset(Y)
    Y = task.check_outputs(Y)
    rows = number_rows(X, Y, weight, resources_of(estimator), centre)
    groups = check_groups(groups, given[0].shape[0])
    return replace(rows, positions=positions, given=given, groups=groups), task


def target_centre(Y: FloatArray, weight: FloatArray | None) -> FloatArray | None:
    """Return about the weighted means (k,) of targets; None where they are near 0, or overflow.

    In steps of a power of two above 8 standard deviations: a sample has the same as all rows, and
    nothing is taken off that costs no digits.
    """
    with np.errstate(all="ignore"):
        mean = np.average(Y, axis=0, weights=weight)
        spread = np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=weight))
        step = 2.0 ** np.ceil(np.log2(8.0 * spread))
        centre = np.where(spread > 1e-12 * np.abs(mean), step * np.round(mean / step), mean)
    centre = np.where(np.isfinite(centre), centre, 0.0)
    return centre if np.any(centre != 0.0) else None


def number_rows(
    X: Any,
    Y: FloatArray,
    weight: FloatArray | None,
    resources: Resources,
    centre: FloatArray | None = None,
) -> Rows:
    """Return rows with numbers as targets, less their centre."""
    return Rows(
        X,
        Y if centre is None else Y - centre,
        weight,
        sample_weight=weight,
        centre=centre,
        budget=resources.budget,
        threads=resources.threads,
    )


def _positive(
    X: Any, y: Any, weight: FloatArray | None
) -> tuple[Any, Any, FloatArray | None, IntArray | None]:
    """Leave out rows of weight zero, which are as if they were not there."""
    if weight is None:
        return X, y, None, None
    positions = np.flatnonzero(weight > 0)
    return X[positions], y[positions], weight[positions], positions


def _warn_of_offset(Y: FloatArray) -> None:
    spread = Y.std(axis=0)
    if np.any((spread > 0) & (np.abs(Y.mean(axis=0)) > 1e6 * spread)):
        warnings.warn(
            "The targets vary by less than a millionth of their mean, so that rounding shows in "
            "the cross-validated errors: subtract a constant from y before the fit.",
            NumericalWarning,
            stacklevel=_level_of_caller(),
        )


# -- what the caller gave --------------------------------------------------------------------------

SAMPLE_ROWS = 50_000
"""Rows in memory that prototypes are chosen from and gamma is searched on."""


class Estimator(UsesResources, KernelParameters, Protocol):
    """A kernel estimator, as its rows see it; only those of fixed size have a device."""

    device: Any
    fit_intercept: Any
    record_: Fit
    dual_coef_: Any
    n_features_in_: int
    feature_names_in_: Any
    preparation_: PreparedTable

    def __sklearn_tags__(self) -> Any:
        """Return what it takes."""


class _EstimatorOfClasses(Estimator, Classifier, Protocol):
    """A classifier."""


def _classifies(estimator: Estimator) -> TypeGuard[_EstimatorOfClasses]:
    return bool(is_classifier(estimator))


def _is_centred(estimator: Estimator) -> bool:
    """Return whether targets may be moved: a bias that is free moves with them."""
    return estimator.fit_intercept is True


def open_given(
    estimator: Estimator, X: Any, y: Any = None, weight: Any = None, groups: Any = None
) -> GivenArrays | GivenBlocks:
    """Open what a caller gave, whatever it is: the only place that asks."""
    data = open_dataset(X, y, weight, groups)
    if isinstance(data, Arrays):
        return GivenArrays(estimator, data, _device_of(estimator, X))
    place = _device_of(estimator, None)
    if place is not None and data.distributed:
        raise InvalidInputError(
            f"device={estimator.device!r} is not available for rows on a cluster: use device=None."
        )
    return GivenBlocks(estimator, data, place)


def _device_of(estimator: Estimator, X: Any) -> Device | None:
    """Return the device that computes, within the memory budget; None: the host."""
    if not estimator.__sklearn_tags__().array_api_support:
        return None
    dispatch = bool(get_config()["array_api_dispatch"]) and X is not None
    place = find_device(estimator.device, X, dispatch=dispatch)
    if place is None or estimator.memory_budget is None:
        return place
    return replace(place, limit=as_bytes(estimator.memory_budget))


def _backend_of(estimator: Estimator, place: Device | None) -> Backend:
    resources = resources_of(estimator)
    return Host(resources.budget, resources.threads) if place is None else Torch(place)


@dataclass(frozen=True, eq=False)
class GivenArrays:
    """Arrays, of NumPy or of another library."""

    estimator: Estimator
    data: Arrays
    place: Device | None

    @property
    def namespace_of(self) -> Array | None:
        """The caller's rows, where a device computes with arrays of their library."""
        return None if self.place is None else self.data.foreign

    def in_memory(self, **options: Any) -> tuple[Rows, Task]:
        """Return all rows, and what y means; the options are those of `open_classes`."""
        open_rows: Any = open_classes if is_classifier(self.estimator) else open_numbers
        options["groups"] = self.data.groups
        rows, task = open_rows(self.estimator, *self.data.on_host(), **options)
        return rows, task

    def rows(self, callback: Listener, classes: Any) -> tuple[Training, Task, Metric]:
        """Return the rows of a new fit after their metric, what y means, and the metric."""
        rows, task = self._all_rows(None, classes=classes)
        rows, task, metric = _mapped_and_coded(self.estimator, rows, task)
        return self._placed(rows, metric), task, metric

    def further_rows(self, task: Task, callback: Listener, centre: FloatArray | None) -> Training:
        """Return rows that are added or removed, prepared as those of the fit were."""
        self._check_namespace("partial_fit")
        if not hasattr(self.estimator, "preparation_"):
            rows, _ = self._all_rows(task, centre)
            metric = self.estimator.record_.metric
            return self._placed(mapped_rows(rows, metric), metric)
        X = self.estimator.preparation_.transform(self.data.X)
        data = scan(
            X, target=np.asarray(self.data.y), weight=self.data.sample_weight, prepare=False
        )
        return _further_rows(self.estimator, data, None, self.place, task, callback, centre)

    def _all_rows(
        self, task: Task | None, centre: FloatArray | None = None, classes: Any = None
    ) -> tuple[Rows, Task]:
        sparse = is_sparse(self.data.X) and _check_sparse(self.estimator, self.place)
        options: dict[str, Any] = {"task": task, "sparse": sparse, "by_class": True}
        options["classes"] = classes
        if not is_classifier(self.estimator):
            options = {"task": task, "sparse": sparse, "centre": centre}
            options["centred"] = _is_centred(self.estimator)
        return self.in_memory(**options)

    def _placed(self, rows: Rows, metric: Metric) -> Rows:
        """Return the rows for the device that computes, with the caller's rows there."""
        if self.place is None:
            return rows
        X = self.namespace_of
        if X is not None and rows.positions is not None:
            X = self.place.xp.take(X, self.place.put(rows.positions), axis=0)
        return replace(rows, device=self.place, placed=metric.map_rows(X))

    def inputs(self, method: str) -> Inputs:
        """Return rows that predictions are wanted for, checked against those of the fit."""
        self._check_namespace(method)
        estimator, namespace_of = self.estimator, self.namespace_of
        backend = _backend_of(estimator, self.place)
        if namespace_of is not None:
            return ArrayInputs(_check_on_device(estimator, namespace_of), backend, namespace_of)
        X = raw = self.data.on_host()[0]
        if hasattr(estimator, "preparation_"):
            X = estimator.preparation_.transform(X)
        else:
            sparse = "csr" if estimator.__sklearn_tags__().input_tags.sparse else False
            layout = {"accept_sparse": sparse, "dtype": [np.float64, np.float32]}
            X = validated(estimator, X, reset=False, **layout)
        return ArrayInputs(X, backend, given=raw)

    def score(self) -> float:
        """Return the accuracy of a classifier, R^2 of a regressor."""
        fit, (_, y, weight) = self.estimator.record_, self.data.on_host()
        measure = accuracy_score if isinstance(fit.task, Classes) else r2_score
        predicted = fit.task.predict(self.inputs("predict").outputs(fit))
        return float(measure(y, predicted, sample_weight=weight))

    def _check_namespace(self, method: str) -> None:
        """Refuse another library than that of the fit, as scikit-learn's dispatch asks for."""
        supported = self.estimator.__sklearn_tags__().array_api_support
        if not get_config()["array_api_dispatch"] or not supported:
            return
        if same_place(self.data.X, self.estimator.dual_coef_):
            return
        raise InvalidInputError(
            f"Inputs passed to {type(self.estimator).__name__}.{method}() must use the same "
            "namespace and the same device as those passed to fit(), as everywhere in "
            "scikit-learn with array_api_dispatch: convert X, or fit again."
        )


def _check_on_device(estimator: Estimator, X: Array) -> Array:
    """Check rows on a device against those of the fit, without bringing them to the host."""
    name, d = type(estimator).__name__, estimator.n_features_in_
    xp = get_namespace(X)
    if X.ndim != 2 or X.shape[1] != d:
        raise InvalidInputError(
            f"X has shape {tuple(X.shape)} but {name} was fitted with {d} features: give an array "
            f"of shape (n, {d})."
        )
    if X.shape[0] == 0:
        raise InvalidInputError("X has no rows: give at least one.")
    if not xp.isdtype(X.dtype, "real floating"):
        X = xp.astype(X, xp.float64)
    if not bool(xp.all(xp.isfinite(X))):
        raise InvalidInputError("X has NaN or infinity: impute or drop those rows.")
    return X


@dataclass(frozen=True, eq=False)
class GivenBlocks:
    """Rows that are read in blocks."""

    estimator: Estimator
    data: Scan
    place: Device | None
    namespace_of: ClassVar[None] = None

    def in_memory(self, **options: Any) -> tuple[Rows, Task]:
        """Refuse: the model needs all rows at once."""
        name = type(self.estimator).__name__
        instead = "FixedSizeLSSVC" if is_classifier(self.estimator) else "FixedSizeLSSVR"
        raise InvalidInputError(
            f"{name} takes arrays, as it needs all rows at once, but X is a scan, which is "
            f"read in blocks: use {instead}, which reads scans, or give arrays X and y."
        )

    def rows(self, callback: Listener, classes: Any) -> tuple[Training, Task, Metric]:
        """Return a sample where it is all there is, else rows that are read in blocks."""
        drawn = self._first_pass()
        learned = self._learn(drawn)
        sample, task = _sample_of(self.estimator, drawn, learned, classes)
        sample, task, metric = _mapped_and_coded(self.estimator, sample, task, drawn.counts)
        if drawn.complete:
            return replace(sample, device=self.place), task, metric
        known = learned, drawn.counts, sample.centre
        blocks, table = _blocks(task, self.data, *known, callback, metric)
        budget, threads = sample.budget, sample.threads
        return ScanRows(blocks, drawn.n_rows, sample, table, budget, threads), task, metric

    def _first_pass(self) -> Sample:
        """Draw a sample of the rows, and count rows and classes."""
        estimator, data = self.estimator, self._with_target()
        budget, columns = as_bytes(estimator.memory_budget), len(data.schema.names)
        size = int(max(1000, min(SAMPLE_ROWS, 0.05 * budget // (8 * (columns + 2)))))
        if self.place is not None:  # a device takes the rows from main memory
            size = max(1, data.n_rows)
            require(
                8 * size * (columns + 2),
                budget,
                what=f"The {size:,} rows of a scan, which a device takes from main memory,",
                advice="Use device=None, which reads them in blocks, or raise memory_budget.",
            )
        seed = seed_of(estimator.random_state)
        return data.sample(size, seed=seed, classes=_classifies(estimator))

    def _learn(self, drawn: Sample) -> Learned | None:
        """Learn from the sample how to prepare the columns, where that is wanted."""
        estimator, data, block = self.estimator, self.data, drawn.block
        estimator.n_features_in_ = len(data.schema.names)
        if data.named:
            estimator.feature_names_in_ = np.array(data.schema.names, dtype=object)
        if not data.prepare:
            return None
        classes = _classifies(estimator)
        targets = block.target if classes else number_targets(block)
        kind = "classes" if classes else "numbers"
        settings = PreparationSettings(target=kind, seed=seed_of(estimator.random_state))
        learned = learn(block.table, targets, block.weight, None, settings)
        learned.prepared.warn_of_columns()
        estimator.preparation_ = learned.prepared
        return replace(learned, positions=drawn.positions)

    def further_rows(self, task: Task, callback: Listener, centre: FloatArray | None) -> Training:
        """Return rows that are added or taken."""
        self._with_target()
        preparation = getattr(self.estimator, "preparation_", None)
        data = self._columns_of_model()
        return _further_rows(self.estimator, data, preparation, self.place, task, callback, centre)

    def inputs(self, method: str) -> ScanInputs:
        """Return rows that predictions are wanted for: the columns of the fit."""
        preparation = getattr(self.estimator, "preparation_", None)
        backend = _backend_of(self.estimator, self.place)
        return ScanInputs(self._columns_of_model(), preparation, backend)

    def score(self) -> float:
        """Return the accuracy of a classifier, R^2 of a regressor, as sums over the blocks."""
        self._with_target()
        rows, fit = self.inputs("score"), self.estimator.record_
        if isinstance(fit.task, Classes):
            right, total = rows.reduce(fit, partial(hits, fit.task), np.add)
            return float(right / total)
        return float(rows.reduce(fit, spread_of, operator.add).r_squared())

    def _with_target(self) -> Scan:
        if not self.data.has_target:
            raise InvalidInputError(
                "The rows have no target to learn: give scan(..., target=...), or y beside a Dask "
                "collection."
            )
        return self.data

    def _columns_of_model(self) -> Scan:
        """Return a scan of the columns that the model was fitted with."""
        estimator = self.estimator
        names = tuple(str(name) for name in getattr(estimator, "feature_names_in_", ()))
        kinds = dict.fromkeys(names, "number")
        if hasattr(estimator, "preparation_"):
            kinds = estimator.preparation_.kinds
            names = estimator.preparation_.used if names else ()
        return self.data.select(names or None, estimator.n_features_in_, kinds)


def _further_rows(
    estimator: Estimator,
    data: Scan,
    preparation: Any,
    place: Device | None,
    task: Task,
    callback: Listener,
    centre: FloatArray | None,
) -> ScanRows:
    if place is not None:
        raise InvalidInputError(
            f"device={estimator.device!r} is not available for rows that are added from a scan, or "
            "to a model of one: give arrays to a model of arrays, or set_params(device=None)."
        )
    learned = None
    if preparation is not None:
        learned = Learned(preparation, {}, np.empty(0, dtype=np.intp))
    blocks, _ = _blocks(task, data, learned, None, centre, callback, estimator.record_.metric)
    return ScanRows(blocks, budget=as_bytes(estimator.memory_budget))


def _blocks(
    task: Task,
    data: Scan,
    learned: Learned | None,
    counts: FloatArray | None,
    centre: FloatArray | None,
    callback: Listener,
    metric: Metric,
) -> tuple[Blocks, ClassTable | None]:
    """Return the blocks, and targets and weights of classes that are kept apart."""
    use: dict[str, Any] = {"on_event": callback.on_event, "metric": metric}
    if isinstance(task, Numbers):
        encode = partial(encode_numbers, task=task, centre=centre)
        return Blocks(data, learned, encode, task.n_outputs, **use), None
    # of further rows no counts are known: targets of classes follow from all moments
    table = task.table(np.ones(task.n_classes) if counts is None else counts)
    factors = table.factors if np.any(table.factors != 1.0) and not task.per_class else None
    encode = partial(encode_classes, task=task, targets=table.targets)
    blocks = Blocks(data, learned, encode, task.n_outputs, factors, **use)
    return blocks, table if task.per_class else None


def _mapped_and_coded(
    estimator: Estimator, rows: Rows, task: Task, counts: FloatArray | None = None
) -> tuple[Rows, Task, Metric]:
    """Return the rows of a new fit after their metric, the task with its code, and the metric."""
    choice = KernelChoice.of(estimator)
    seed = seed_of(estimator.random_state) if choice.metric is not None else 0
    rows, metric = map_given(rows, choice, seed)
    rows, task = with_better_code(estimator, rows, task, choice, by_class=True, counts=counts)
    return rows, task, metric


def _check_sparse(estimator: Estimator, place: Device | None) -> bool:
    """Return True, or say why sparse rows cannot be used."""
    choice, solver = KernelChoice.of(estimator), getattr(estimator, "solver", "auto")
    if not choice.accepts_sparse:
        raise InvalidInputError(
            f"X is sparse, and kernel={estimator.kernel!r} needs dense rows: use 'rbf', 'linear', "
            "'poly' or 'matern', or give X.toarray()."
        )
    if place is not None:
        raise InvalidInputError(
            "X is sparse, and a device needs dense rows: use device=None, or give X.toarray()."
        )
    if isinstance(solver, PCG) or solver == "pcg":
        raise InvalidInputError(
            "X is sparse, and conjugate gradients need dense rows: use solver='auto', or give "
            "X.toarray()."
        )
    return True


def _sample_of(
    estimator: Estimator, surveyed: Sample, learned: Learned | None, classes: Any
) -> tuple[Rows, Task]:
    """Return the rows of the sample, and what y means."""
    block, resources = surveyed.block, resources_of(estimator)
    if learned is None:
        X = plain_features(block)
        warn_of_scales(estimator, X, getattr(estimator, "feature_names_in_", None))
    else:
        X = learned.transform(block, surveyed.positions)
    equal = block.weight is not None and np.all(block.weight == 1.0)
    weight = None if equal else block.weight
    task: Task
    if _classifies(estimator):
        assert surveyed.classes is not None
        if classes is not None and not np.array_equal(np.unique(classes), surveyed.classes):
            raise InvalidInputError(
                f"classes={np.unique(classes).tolist()} but the rows have "
                f"{surveyed.classes.tolist()}: rows that are read in blocks have to show every "
                "class at first."
            )
        task = task_of(estimator, surveyed.classes)
        labels, counts = task.numbers(block.target), surveyed.counts
        rows = class_rows(task, X, labels, weight, resources, by_class=True, counts=counts)
    else:
        Y = number_targets(block)
        assert block.target is not None
        task = Numbers(Y.shape[1], block.target.ndim == 1)
        centre = target_centre(Y, weight) if _is_centred(estimator) else None
        rows = number_rows(X, Y, weight, resources, centre)
    given = X, block.target
    return replace(rows, positions=surveyed.positions, given=given, by_position=True), task


def encode_classes(
    block: RawBlock, task: Classes, targets: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Return the targets (b, k) and the class numbers (b,) of a raw block."""
    labels = task.numbers(block.target, f" in the block of row {block.start}")
    return targets[labels], labels.astype(np.intp)


def number_targets(block: RawBlock) -> FloatArray:
    """Return the targets (b, k) of a raw block."""
    assert block.target is not None
    if block.target.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"The target holds text in {block.place(0)}, but a regression needs numbers: use "
            "FixedSizeLSSVC for labels."
        )
    Y = np.asarray(block.target, dtype=np.float64).reshape(len(block), -1)
    check_magnitude(Y, "The target", "divide it by a constant")
    return Y


def encode_numbers(
    block: RawBlock, task: Numbers, centre: FloatArray | None
) -> tuple[FloatArray, IntArray]:
    """Return the targets of a raw block less their centre, and class numbers, which are all 0."""
    Y = task.check_outputs(number_targets(block))
    return Y if centre is None else Y - centre, np.zeros(len(block), dtype=np.intp)
