"""From what a caller gives to training rows and a task, or to rows that predictions are for."""

from __future__ import annotations

import operator
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Protocol, TypeGuard, cast

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.utils.validation import check_X_y, column_or_1d, validate_data

from lssvm._core.arrays import (
    AnyArray,
    Array,
    FloatArray,
    IntArray,
    check_magnitude,
    check_weight,
    get_namespace,
    is_sparse,
    on_host,
    same_place,
    take_rows,
)
from lssvm._core.blocks import as_bytes, require, slices
from lssvm._core.errors import (
    InvalidInputError,
    NumericalWarning,
    ScaleWarning,
    level_of_caller,
)
from lssvm._core.progress import Listener
from lssvm._core.random import RandomState, seed_of
from lssvm.backends.device import Backend
from lssvm.backends.host import Host, UsesResources, find_backend, host_of
from lssvm.backends.rows import Rows, ScanRows, Training, class_rows, number_targets
from lssvm.codes import Coding, make_code
from lssvm.data.arrow import write_table
from lssvm.data.columns import is_missing
from lssvm.data.dataset import Arrays, Dataset, open_dataset
from lssvm.data.preparation import Learned, PreparationSettings, PreparedTable, learn
from lssvm.data.raw import CHUNK
from lssvm.data.sampling import Sample
from lssvm.data.scanning import Scan
from lssvm.fitting.input_metric import check_metric, metric_of
from lssvm.fitting.record import Features, Fit, Scaling
from lssvm.kernels import Metric
from lssvm.kernels.factory import KernelChoice, KernelParameters
from lssvm.kernels.metric import IDENTITY
from lssvm.preparation.transformer import Scalings
from lssvm.solvers import PCG
from lssvm.tasks import Classes, Numbers, Task
from lssvm.tasks.losses import hits, spread_of
from lssvm.tasks.targets import (
    check_classes,
    check_labels,
    check_numbers,
    distinct_labels,
    target_centre,
)
from lssvm.tuning.fixed_size import better_code
from lssvm.tuning.searches import check_C

SAMPLE_ROWS = 50_000
"""Rows in memory that the preparation is learned from, prototypes are chosen from and gamma is
searched on."""


class Classifier(UsesResources, Protocol):
    """A classifier: its parameters say what y means."""

    C: Any
    multiclass: Any
    class_weight: Any
    random_state: RandomState


class Estimator(UsesResources, KernelParameters, Protocol):
    """A kernel estimator, as its rows see it; only those of fixed size have a device."""

    device: Any
    fit_intercept: Any
    record_: Fit[Any]
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


def _check_sparse(estimator: Estimator, backend: Backend) -> bool:
    """Return True, or say why sparse rows cannot be used."""
    choice, solver = KernelChoice.of(estimator), getattr(estimator, "solver", "auto")
    if not choice.accepts_sparse:
        raise InvalidInputError(
            f"X is sparse, and kernel={estimator.kernel!r} needs dense rows: use 'rbf', 'linear', "
            "'poly' or 'matern', or give X.toarray()."
        )
    backend.check(sparse=True)
    if isinstance(solver, PCG) or solver == "pcg":
        raise InvalidInputError(
            "X is sparse, and conjugate gradients need dense rows: use solver='auto', or give "
            "X.toarray()."
        )
    return True


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
    if Coding.of(estimator.multiclass).is_auto:
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
    if not isinstance(task, Classes) or choice.precomputed:
        return rows, task
    if not Coding.of(getattr(estimator, "multiclass", None)).is_open(task.n_classes):
        return rows, task
    assert rows.labels is not None
    if len(np.unique(rows.labels)) < task.n_classes:  # some come later
        return rows, task
    better = better_code(rows, task, choice, check_C(estimator.C))
    if better is task:
        return rows, task
    data = (rows.X, rows.labels, rows.sample_weight, Host(rows.budget, rows.threads))
    coded = class_rows(better, *data, by_class=by_class, counts=counts)
    return replace(rows, Y=coded.Y, weight=coded.weight, loss_weight=coded.loss_weight), better


def map_rows(rows: Rows, choice: KernelChoice, seed: int) -> tuple[Rows, Metric]:
    """Return rows after the metric that a parameter requests, and the metric."""
    if choice.metric is None:
        return rows, IDENTITY
    metric = metric_of(check_metric(choice), rows, choice, seed)
    return rows.mapped(metric), metric


def _mapped_and_coded(
    estimator: Estimator, rows: Rows, task: Task, counts: FloatArray | None = None
) -> tuple[Rows, Task, Metric]:
    """Return the rows of a new fit after their metric, the task with its code, and the metric."""
    choice = KernelChoice.of(estimator)
    seed = seed_of(estimator.random_state) if choice.metric is not None else 0
    rows, metric = map_rows(rows, choice, seed)
    rows, task = with_better_code(estimator, rows, task, choice, by_class=True, counts=counts)
    return rows, task, metric


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
            stacklevel=level_of_caller(),
        )


# -- checks of arrays -----------------------------------------------------------------------------


def validated(estimator: Estimator, X: Any, y: Any = "no_validation", **options: Any) -> Any:
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
    without_targets = isinstance(y, str) and y == "no_validation"
    try:
        with np.errstate(invalid="ignore"):  # sums of what is too large
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
    check_magnitude(checked if without_targets else checked[0], "X", change, small=without_targets)
    return checked


def _not_finite(X: Any, text: str) -> InvalidInputError:
    """Return the error of a missing or infinite value, with its place."""
    missing = "NaN" in text
    change = (
        "Remove such rows, fill the gaps (sklearn.impute.SimpleImputer in a Pipeline before the "
        "model; files are filled by lssvm.scan), or use LSSVMClassifier or "
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


def check_groups(groups: Any, n: int) -> AnyArray | None:
    """Return groups as an array of n entries, none of them missing."""
    if groups is None:
        return None
    if len(np.shape(groups)) > 1 and np.shape(groups)[1] != 1:
        raise InvalidInputError(
            f"groups has shape {np.shape(groups)}: give one column with one group for every row."
        )
    array = np.asarray(column_or_1d(groups))
    missing = sum(map(is_missing, array.tolist())) if array.dtype.kind in "fmMO" else 0
    if array.shape[0] != n or missing:
        raise InvalidInputError(
            f"groups has {array.shape[0]} entries, {missing} of them missing, but X has {n} rows: "
            "give one group for every row, and none that is missing."
        )
    if array.dtype == object and len({isinstance(entry, str) for entry in array}) > 1:
        raise InvalidInputError("groups has text and other values: give one kind for all rows.")
    return array


_SCALES = 100.0  # how many times as much one column may vary as another
_LOOKED_AT = 10_000  # rows


def warn_of_scales(estimator: Estimator, X: Any, names: Any = None) -> None:
    """Warn where columns differ in scale so much that the small ones do not count.

    Parameters
    ----------
    estimator : estimator
        There is no warning where its kernel has a width for each feature, or takes no features.
    X : array of shape (n, d)
    names : array of str, optional
        Of the columns.

    Notes
    -----
    The largest standard deviation is compared with the smallest one, which for rare indicators is
    taken to be at least a tenth of the range.
    """
    gamma: Any = getattr(estimator, "gamma", None)
    weighs_columns = not isinstance(getattr(estimator, "kernel", "rbf"), str) or np.ndim(gamma) > 0
    if (
        weighs_columns
        or estimator.kernel == "precomputed"
        or (isinstance(gamma, str) and gamma == "ard")
    ):
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
        stacklevel=level_of_caller(),
    )


def check_on_device(estimator: Estimator, X: Array) -> Array:
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


def check_namespace(estimator: Estimator, X: Any, method: str) -> None:
    """Refuse another library than that of the fit, as scikit-learn's dispatch requires."""
    supported = estimator.__sklearn_tags__().array_api_support
    if not get_config()["array_api_dispatch"] or not supported:
        return
    if same_place(X, estimator.dual_coef_):
        return
    raise InvalidInputError(
        f"Inputs passed to {type(estimator).__name__}.{method}() must use the same "
        "namespace and the same device as those passed to fit(), as everywhere in "
        "scikit-learn with array_api_dispatch: convert X, or fit again."
    )


# -- what the caller gave --------------------------------------------------------------------------


def open_rows(
    estimator: Estimator, X: Any, y: Any = None, weight: Any = None, groups: Any = None
) -> Opened:
    """Open what a caller gave, whatever it is."""
    return Opened.of(estimator, open_dataset(X, y, weight, groups))


@dataclass(frozen=True, eq=False)
class Opened:
    """A data set that an estimator is to learn from, or to predict, and what computes."""

    estimator: Estimator
    data: Dataset
    backend: Backend

    @classmethod
    def of(cls, estimator: Estimator, data: Dataset) -> Opened:
        """Choose what computes, within the memory budget."""
        tags, limit = estimator.__sklearn_tags__(), estimator.memory_budget
        backend = find_backend(
            estimator.device if tags.array_api_support else None,
            data.native if tags.array_api_support else None,
            dispatch=bool(get_config()["array_api_dispatch"]),
            limit=None if limit is None else as_bytes(limit),
            **vars(host_of(estimator)),
        )
        backend.check_data(data)
        return cls(estimator, data, backend)

    @property
    def native(self) -> Array | None:
        """The caller's rows, where a device computes with arrays of their library."""
        return self.backend.native(self.data.native)

    @property
    def preparation(self) -> PreparedTable | None:
        """How the model of an earlier fit prepares raw columns; None: it does not."""
        return getattr(self.estimator, "preparation_", None)

    # -- training

    def in_memory(self, **options: Any) -> tuple[Rows, Task]:
        """Return all rows, and what y means; the options are those of `_rows_of_arrays`."""
        data = self.data.in_memory(type(self.estimator).__name__)
        return _rows_of_arrays(self.estimator, data, **options)

    def rows(self, callback: Listener, classes: Any) -> tuple[Training, Task, Metric]:
        """Return the rows of a new fit after their metric, what y means, and the metric."""
        if not isinstance(self.data, Arrays):
            return self._rows_of_scan(self.data, callback, classes)
        rows, task = self.in_memory(**self._options(classes=classes))
        rows, task, metric = _mapped_and_coded(self.estimator, rows, task)
        return self._placed(rows, metric), task, metric

    def _rows_of_scan(
        self, data: Scan, callback: Listener, classes: Any
    ) -> tuple[Training, Task, Metric]:
        """Return a sample where it is all there is, else rows that are read in blocks."""
        estimator, drawn = self.estimator, self._first_pass(data)
        learned = _learned(estimator, data, drawn)
        rows, task = _rows_of_sample(estimator, drawn, learned, classes)
        rows, task, metric = _mapped_and_coded(estimator, rows, task, drawn.counts)
        if drawn.complete:
            return self._placed(rows, metric), task, metric
        use = {"on_event": callback.on_event, "metric": metric, "sample": rows}
        use |= {"n_rows": drawn.n_rows, "budget": rows.budget, "threads": rows.threads}
        return ScanRows.of(task, data, learned, drawn.counts, rows.centre, **use), task, metric

    def further_rows(self, task: Task, callback: Listener, centre: FloatArray | None) -> Training:
        """Return rows that are added or removed, prepared as those of the fit were."""
        estimator, data, metric = self.estimator, self.data, self.estimator.record_.main.metric
        if isinstance(data, Arrays):
            check_namespace(estimator, data.X, "partial_fit")
            rows, _ = self.in_memory(task=task, **self._options(centre=centre))
            return self._placed(rows.mapped(metric), metric)
        self.backend.check_data(data, added=True)
        ready, none = self.preparation, np.empty(0, dtype=np.intp)
        learned = None if ready is None else Learned(ready, {}, none)
        use = {"on_event": callback.on_event, "metric": metric}
        use |= {"budget": as_bytes(estimator.memory_budget)}
        return ScanRows.of(
            task, _with_target(self._columns_of_model()), learned, None, centre, **use
        )

    def _options(self, classes: Any = None, centre: FloatArray | None = None) -> dict[str, Any]:
        """Return how a fixed-size model reads arrays."""
        sparse = is_sparse(self.data.native) and _check_sparse(self.estimator, self.backend)
        if is_classifier(self.estimator):
            return {"sparse": sparse, "by_class": True, "classes": classes}
        centred = self.estimator.fit_intercept is True  # a bias that is free moves with the targets
        return {"sparse": sparse, "centre": centre, "centred": centred}

    def _placed(self, rows: Rows, metric: Metric) -> Rows:
        """Return the rows for what computes, with the caller's rows where they are there."""
        X, device = self.native, self.backend.device
        if X is not None and rows.positions is not None:
            X = take_rows(X, rows.positions)
        return replace(rows, device=device, placed=None if X is None else metric.map_rows(X))

    def _first_pass(self, data: Scan) -> Sample:
        """Draw a sample of the rows, and count rows and classes."""
        budget, columns = as_bytes(self.estimator.memory_budget), len(data.schema.names)
        size = int(max(1000, min(SAMPLE_ROWS, 0.05 * budget // (8 * (columns + 2)))))
        size = self.backend.sample_size(_with_target(data), size, budget)
        seed = seed_of(self.estimator.random_state)
        return data.sample(size, seed=seed, classes=_classifies(self.estimator))

    # -- prediction

    def inputs(self, method: str) -> Inputs:
        """Return rows that predictions are wanted for, checked against those of the fit."""
        data = self._columns_of_model().checked(partial(self._checked, method=method))
        return Inputs(data, {"none": self.preparation}, self.backend)

    def _checked(self, X: Any, method: str) -> Any:
        """Return arrays as the model takes them, on the device that computes or on the host."""
        estimator = self.estimator
        check_namespace(estimator, X, method)
        if self.native is not None:
            return check_on_device(estimator, X)
        if self.preparation is not None:
            return on_host(X)
        sparse = "csr" if estimator.__sklearn_tags__().input_tags.sparse else False
        layout = {"accept_sparse": sparse, "dtype": [np.float64, np.float32]}
        return validated(estimator, on_host(X), reset=False, **layout)

    def _columns_of_model(self) -> Any:
        """Return the columns that the model was fitted with."""
        estimator, ready = self.estimator, self.preparation
        names = tuple(str(name) for name in getattr(estimator, "feature_names_in_", ()))
        kinds = dict.fromkeys(names, "number")
        if ready is not None:
            names, kinds = ready.used if names else (), ready.kinds
        return self.data.select(names or None, estimator.n_features_in_, kinds)

    def score(self) -> float:
        """Return the accuracy of a classifier, R^2 of a regressor, as sums over the blocks."""
        _with_target(self.data)
        rows, fit = self.inputs("score"), self.estimator.record_
        if isinstance(fit.task, Classes):
            right, total = rows.reduce(fit, partial(hits, fit.task), np.add)
            return float(right / total)
        return float(rows.reduce(fit, spread_of, operator.add).r_squared())


def _with_target(data: Any) -> Any:
    """Return a data set that has targets."""
    if data.has_target:
        return data
    raise InvalidInputError(
        "The rows have no target to learn: give scan(..., target=...), or y with a Dask collection."
    )


# -- training rows ---------------------------------------------------------------------------------


def _rows_of_arrays(
    estimator: Estimator,
    data: Arrays,
    *,
    task: Task | None = None,
    sparse: bool = False,
    classes: Any = None,
    by_class: bool = False,
    **centring: Any,
) -> tuple[Rows, Task]:
    """Check arrays.

    Parameters
    ----------
    estimator : estimator
        Whose parameters say what y means.
    data : Arrays
    task : Classes, Numbers or None, default=None
        What the model has learned, where further rows are opened; None: a new fit.
    sparse : bool, default=False
        Whether X may be a sparse matrix.
    classes : array-like or None, default=None
        All labels of a new fit, where some come with later rows.
    by_class : bool, default=False
        Whether the recipe keeps moments per class, where the task needs that: weights of rows
        are then without those of classes, and targets are looked up.
    **centring
        For regressors: ``by_moments``, ``centred`` and ``centre`` of `_number_rows`.
    """
    X, y, weight = data.on_host()
    options: dict[str, Any] = {"accept_sparse": "csr"} if sparse else {"order": "C"}
    options["dtype"] = [np.float64, np.float32]  # rows are read in blocks
    labels = _classifies(estimator)
    y = check_labels(y) if labels else check_numbers(y)
    options |= {} if labels else {"multi_output": True, "y_numeric": True}
    ready = None if task is None else getattr(estimator, "preparation_", None)
    if ready is not None:
        X, y = check_X_y(ready.transform(X), y, **options)
    else:
        X, y = validated(estimator, X, y, reset=task is None, **options)
    if task is None:
        warn_of_scales(estimator, X, getattr(estimator, "feature_names_in_", None))
    y = column_or_1d(y, warn=True) if labels else np.asarray(y, dtype=np.float64)
    if labels:
        check_classes(y)
    caller_data, weight = (X, y), check_weight(weight, X.shape[0])
    X, y, weight, positions = _positive(X, y, weight)
    if _classifies(estimator):
        assert not isinstance(task, Numbers)
        if task is None:
            task = _task_of_labels(estimator, distinct_labels(y), classes)
        host = host_of(estimator)
        rows = class_rows(task, X, task.numbers(y), weight, host, by_class=by_class)
    else:
        assert not isinstance(task, Classes)
        rows, task = _number_rows(estimator, X, y, weight, task, **centring)
    groups = check_groups(data.groups, caller_data[0].shape[0])
    return replace(rows, positions=positions, caller_data=caller_data, groups=groups), task


def _number_rows(
    estimator: Estimator,
    X: Any,
    y: FloatArray,
    weight: FloatArray | None,
    task: Numbers | None = None,
    *,
    by_moments: bool = True,
    centred: bool = False,
    centre: FloatArray | None = None,
) -> tuple[Rows, Numbers]:
    """Return rows with numbers as targets, less their centre.

    ``by_moments`` means that squares of the targets are summed, which an offset costs digits:
    ``centred`` takes about the weighted means off the targets of a new fit, ``centre`` (k,) is what
    is taken off those of further rows.
    """
    Y = y.reshape(len(y), -1)
    change = "standardise it (sklearn.compose.TransformedTargetRegressor)"
    check_magnitude(Y, "y", change, dtype=X.dtype)
    if task is None:
        task = Numbers(Y.shape[1], y.ndim == 1)
        centre = target_centre(Y, weight) if centred else None
    if by_moments and not centred:
        _warn_of_offset(Y)
    Y, host = task.check_outputs(Y), host_of(estimator)
    Y = Y if centre is None else Y - centre
    rows = Rows(X, Y, weight, sample_weight=weight, centre=centre)
    return replace(rows, budget=host.budget, threads=host.threads), task


def _learned(estimator: Estimator, data: Scan, drawn: Sample) -> Learned | None:
    """Learn from a sample how to prepare the columns; None: numbers are taken as they are."""
    block, classes, seed = drawn.block, _classifies(estimator), seed_of(estimator.random_state)
    estimator.n_features_in_ = len(data.schema.names)
    if data.named:
        estimator.feature_names_in_ = np.array(data.schema.names, dtype=object)
    if not data.prepare:
        return None
    settings = PreparationSettings(target="classes" if classes else "numbers", seed=seed)
    targets = block.target if classes else number_targets(block)
    learned = learn(block.table, targets, block.weight, None, settings)
    learned.prepared.warn_of_columns()
    estimator.preparation_ = learned.prepared
    return replace(learned, positions=drawn.positions)


def _rows_of_sample(
    estimator: Estimator, drawn: Sample, learned: Learned | None, classes: Any
) -> tuple[Rows, Task]:
    """Return the rows of a sample, and what y means."""
    block = drawn.block
    if learned is None:
        X = block.features(None)
        warn_of_scales(estimator, X, getattr(estimator, "feature_names_in_", None))
    else:
        X = learned.transform(block, drawn.positions)
    equal = block.weight is not None and np.all(block.weight == 1.0)
    weight = None if equal else block.weight
    task: Task
    if _classifies(estimator):
        assert drawn.classes is not None
        if classes is not None and not np.array_equal(np.unique(classes), drawn.classes):
            raise InvalidInputError(
                f"classes={np.unique(classes).tolist()} but the rows have "
                f"{drawn.classes.tolist()}: rows that are read in blocks have to show every "
                "class at first."
            )
        task, host = task_of(estimator, drawn.classes), host_of(estimator)
        labels, counts = task.numbers(block.target), drawn.counts
        rows = class_rows(task, X, labels, weight, host, by_class=True, counts=counts)
    else:
        targets = number_targets(block)
        assert block.target is not None
        targets = targets[:, 0] if block.target.ndim == 1 else targets
        centred = estimator.fit_intercept is True
        rows, task = _number_rows(estimator, X, targets, weight, centred=centred, by_moments=False)
    caller_data = X, block.target
    return replace(rows, positions=drawn.positions, caller_data=caller_data, by_position=True), task


# -- rows that predictions are wanted for ----------------------------------------------------------

Finish = Callable[[FloatArray], Any]
"""From outputs (b, k) to what a method returns for those rows."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """Rows without targets, here or on workers: how their outputs are computed.

    Attributes
    ----------
    data : Dataset
    prepared : mapping from scalings to PreparedTable, TablePreparation or None
        How raw columns become features; None: they are features.
    backend : Backend
    """

    data: Dataset
    prepared: Mapping[Scaling, Any]
    backend: Backend

    def outputs(self, fit: Fit[Any]) -> FloatArray:
        """Return the outputs (n, k) as a NumPy array."""
        return np.asarray(_joined(list(self._blocks(fit))))

    def stream(self, fit: Fit[Any]) -> Iterator[FloatArray]:
        """Yield the outputs (b, k), block by block."""
        for raw in self._blocks(fit):
            yield from (raw[part] for part in slices(len(raw), CHUNK))

    def features(self) -> Features:
        """Return the features of all rows in main memory, before the metrics."""
        blocks = list(self.data.map(partial(_host_features, self.prepared), 1))
        return {scaling: _joined([block[scaling] for block in blocks]) for scaling in self.prepared}

    def mapped(self, fit: Fit[Any]) -> Any:
        """Return the features (n, d) in main memory, after the metric that all members share."""
        n, d = self.data.n_rows, fit.expansion.basis.shape[-1]
        require(
            8 * n * d,
            self.backend.budget,
            what=f"Keeping the features of {n} rows, as error bars need,",
            advice="Ask for them in parts of the rows, or raise memory_budget.",
        )
        return fit.main.mapped(self.features())

    def apply(self, fit: Fit[Any], finish: Finish, empty: AnyArray, method: str) -> Any:
        """Return ``finish`` of the outputs of all rows, in the container of the rows.

        ``empty`` is such an answer for no rows, ``method`` the name of what was called.
        """
        work = self._job(fit, partial(_finished, finish))
        return self.data.collect(work, empty, "prediction" if method == "predict" else method)

    def reduce(self, fit: Fit[Any], work: Callable[..., Any], combine: Callable[..., Any]) -> Any:
        """Combine what ``work(blocks)`` returns, for blocks of rows with their outputs."""
        return self.data.reduce(self._job(fit, work), combine)

    def write(self, fit: Fit[Any], finish: Finish, out: Any) -> str:
        """Write ``finish`` of the outputs to a file, which appears when it is complete."""
        blocks = ({"prediction": finish(raw)} for raw in self.stream(fit))
        return write_table(blocks, os.fspath(out))

    def give(self, array: Any) -> Any:
        """Return an array in the library of the rows."""
        return self.data.like(array)

    def _blocks(self, fit: Fit[Any]) -> Iterator[FloatArray]:
        return chain.from_iterable(self.data.stream(self._job(fit, _block_outputs)))

    def _job(self, fit: Fit[Any], work: Callable[..., Any]) -> Callable[[Dataset], Any]:
        """Return what is done with the data or with one part of it; it may travel to a worker."""
        _, threads = self.data.resources(self.backend.budget, self.backend.threads)
        backend = replace(self.backend, threads=threads)
        scalings = {member.scaling for member in fit.members}
        prepared = {name: one for name, one in self.prepared.items() if name in scalings}
        return partial(_on_part, stripped(fit), prepared, backend, work)


def stripped(fit: Fit[Any]) -> Fit[Any]:
    """Return the record without what outputs do not need, to send it to workers."""
    return replace(fit, state=None, calibration=None, calibrated=None, tuning=None, prepared={})


def _on_part(
    fit: Fit[Any],
    prepared: Mapping[Scaling, Any],
    backend: Backend,
    work: Callable[..., Any],
    part: Dataset,
) -> Any:
    """Apply ``work`` to blocks of rows with their outputs (b, k), computed on all threads."""

    def outputs(block: Any, threads: int) -> tuple[Any, FloatArray]:
        features = _features(prepared, block)
        return block, fit.outputs(features, replace(backend, threads=threads))

    return work(part.map(outputs, backend.threads))


def _features(prepared: Mapping[Scaling, Any], block: Any) -> Features:
    """Return the features of a block of rows, which are read once."""
    if len(prepared) > 1:
        return cast(Features, block.features(Scalings(prepared)))
    return {scaling: block.features(one) for scaling, one in prepared.items()}


def _host_features(prepared: Mapping[Scaling, Any], block: Any, threads: int) -> Features:
    return {scaling: on_host(X) for scaling, X in _features(prepared, block).items()}


def _joined(blocks: list[Any]) -> Any:
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def _block_outputs(blocks: Iterable[tuple[Any, FloatArray]]) -> Iterator[FloatArray]:
    return (outputs for _, outputs in blocks)


def _finished(finish: Finish, blocks: Iterable[tuple[Any, FloatArray]]) -> AnyArray:
    return np.asarray(finish(np.concatenate([outputs for _, outputs in blocks])))
