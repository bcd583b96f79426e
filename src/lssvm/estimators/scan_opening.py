"""Rows of fixed-size estimators: what the caller gave, arrays or rows that are read in blocks.

First the scores of rows that are read in blocks, as sums over them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol, TypeGuard

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import (
    Array,
    FloatArray,
    IntArray,
    check_magnitude,
    compat,
    device,
    get_namespace,
    is_sparse,
    to_numpy,
)
from lssvm._core.blocks import as_bytes, require
from lssvm._core.device import Device, find_device, is_foreign
from lssvm._core.errors import InvalidInputError
from lssvm._core.progress import Listener
from lssvm.backends.rows import Blocks, Rows, ScanRows, Training
from lssvm.data import Scan, scan
from lssvm.data.dask import is_dask
from lssvm.data.frames import is_frame
from lssvm.data.prepare import Preparation, Survey, survey
from lssvm.data.raw import RawBlock, plain_features
from lssvm.data.scanning import as_scan
from lssvm.estimators.new_rows import (
    ClusterNewRows,
    DaskNewRows,
    DeviceNewRows,
    Fitted,
    HostNewRows,
    NewRows,
    ScanNewRows,
    check_new_device_rows,
    check_new_host_rows,
    light_copy,
)
from lssvm.estimators.opening import (
    Classifier,
    map_given,
    mapped_rows,
    number_rows,
    open_classes,
    open_numbers,
    target_centre,
    task_of,
    warn_of_scales,
    with_better_code,
)
from lssvm.fitting.settings import (
    KernelChoice,
    KernelParameters,
    UsesResources,
    class_rows,
    resources_of,
    seed_of,
)
from lssvm.kernels import Metric
from lssvm.kernels.dot import variances
from lssvm.solvers import PCG
from lssvm.tasks import Classes, ClassTable, Numbers, Task


def hits(task: Classes, blocks: Iterable[tuple[RawBlock, FloatArray]]) -> FloatArray:
    """Return the weight of the rows whose class is right, and of all."""
    right = total = 0.0
    for block, raw in blocks:
        hit = task.predict(raw) == block.target
        weight = np.ones(len(hit)) if block.weight is None else block.weight
        right, total = right + float(weight @ hit), total + float(weight.sum())
    return np.array([right, total])


@dataclass(frozen=True, eq=False)
class Spread:
    """Weight, means and squares of targets, and squares of residuals: they add."""

    weight: float
    mean: FloatArray
    squares: FloatArray
    residual: FloatArray

    def __add__(self, other: Spread) -> Spread:
        if self.weight == 0.0 or other.weight == 0.0:
            return other if self.weight == 0.0 else self
        total, step = self.weight + other.weight, other.mean - self.mean
        return Spread(
            total,
            self.mean + step * other.weight / total,
            self.squares + other.squares + step**2 * self.weight * other.weight / total,
            self.residual + other.residual,
        )

    def r_squared(self) -> float:
        """Return the mean over outputs, as scikit-learn's `r2_score`."""
        safe = np.where(self.squares > 0, self.squares, 1.0)
        ratio = np.where(self.squares > 0, self.residual / safe, self.residual > 0)
        return float(np.mean(1.0 - ratio))


def spread_of(blocks: Iterable[tuple[RawBlock, FloatArray]]) -> Spread:
    """Return the spread of the targets and of what the outputs leave of it."""
    total = Spread(0.0, np.zeros(1), np.zeros(1), np.zeros(1))
    for block, raw in blocks:
        Y = np.asarray(block.target, dtype=np.float64).reshape(len(raw), -1)
        s = np.ones(len(Y)) if block.weight is None else block.weight
        weight = float(s.sum())
        if weight > 0.0:
            mean = s @ Y / weight
            total += Spread(weight, mean, s @ (Y - mean) ** 2, s @ (Y - raw) ** 2)
    return total


SAMPLE_ROWS = 50_000
"""Rows in memory that prototypes are chosen from and gamma is searched on."""


class FixedEstimator(Fitted, UsesResources, KernelParameters, Protocol):
    """A fixed-size estimator, as its rows see it."""

    device: Any
    fit_intercept: bool | str
    dual_coef_: Any
    feature_names_in_: Any
    preparation_: Preparation
    metric: Any


class FixedClassifier(FixedEstimator, Classifier, Protocol):
    """A fixed-size classifier, as its rows see it."""


def _classifies(estimator: FixedEstimator) -> TypeGuard[FixedClassifier]:
    return bool(is_classifier(estimator))


def _is_centred(estimator: FixedEstimator) -> bool:
    """Return whether targets may be moved: a bias that is free moves with them."""
    return estimator.fit_intercept is True


def open_given(
    estimator: FixedEstimator, X: Any, y: Any = None, weight: Any = None, groups: Any = None
) -> GivenArrays | GivenBlocks:
    """Open what a caller gave, whatever it is: the only place that asks.

    Parameters
    ----------
    estimator : FixedSizeLSSVC or FixedSizeLSSVR
    X, y, weight
        As the caller gave them.
    groups : array or None, default=None
        Rows that are left out together; not of rows that are read in blocks.

    Returns
    -------
    GivenArrays or GivenBlocks
    """
    for value in (X, y, weight):
        _check_readable(value)
    data = as_scan(X, y, weight)
    dispatch = bool(get_config()["array_api_dispatch"]) and data is None
    place = find_device(estimator.device, X if data is None else None, dispatch=dispatch)
    if place is not None and estimator.memory_budget is not None:
        place = replace(place, limit=as_bytes(estimator.memory_budget))
    if data is None:
        return GivenArrays(estimator, X, y, weight, place, groups)
    if groups is not None:
        raise InvalidInputError(
            "groups cannot be given with rows that are read in blocks, which are dealt to folds by "
            "their positions: give arrays X and y, or leave groups out."
        )
    if place is not None and data.distributed:
        raise InvalidInputError(
            f"device={estimator.device!r} is not available for rows on a cluster: use device=None."
        )
    return GivenBlocks(estimator, data.watched(), place, X if is_dask(X) else None)


@dataclass(frozen=True, eq=False)
class GivenArrays:
    """Arrays, of NumPy or of another library.

    Attributes
    ----------
    estimator : FixedEstimator
    X, y, sample_weight
        As the caller gave them.
    place : Device or None
        None: NumPy.
    groups : array or None
    """

    estimator: FixedEstimator
    X: Any
    y: Any
    sample_weight: Any
    place: Device | None
    groups: Any = None

    @property
    def like(self) -> Array | None:
        """The caller's rows, where a device computes with arrays of their library."""
        return self.X if self.place is not None and is_foreign(self.X) else None

    def rows(self, tell: Listener) -> tuple[Training, Task, Metric]:
        """Return the rows of a new fit after their metric, what y means, and the metric."""
        return self._open(None)

    def further_rows(self, task: Task, tell: Listener, centre: FloatArray | None) -> Training:
        """Return rows that are added or taken, prepared as those of the fit were."""
        self._check_namespace("partial_fit")
        if not hasattr(self.estimator, "preparation_"):
            return self._open(task, centre)[0]
        X = self.estimator.preparation_.transform(self.X)
        data = scan(X, target=np.asarray(self.y), weight=self.sample_weight)
        return _further_rows(self.estimator, data, None, self.place, task, tell, centre)

    def _open(
        self, task: Task | None, centre: FloatArray | None = None
    ) -> tuple[Training, Task, Metric]:
        new = task is None
        values = _on_host(self.X, self.y, self.sample_weight)
        sparse = is_sparse(self.X) and _check_sparse(self.estimator, self.place)
        open_rows: Callable[..., tuple[Rows, Task]] = partial(open_classes, by_class=True)
        if not is_classifier(self.estimator):
            centred = _is_centred(self.estimator)
            open_rows = partial(open_numbers, centred=centred, centre=centre)
        rows, task = open_rows(
            self.estimator, *values, groups=self.groups, task=task, sparse=sparse
        )
        if new:
            rows, task, metric = _mapped_and_coded(self.estimator, rows, task)
        else:
            metric = self.estimator.record_.metric
            rows = mapped_rows(rows, metric)
        if self.place is None:
            return rows, task, metric
        X = self.like
        if X is not None and rows.positions is not None:
            X = self.place.xp.take(X, self.place.put(rows.positions), axis=0)
        return replace(rows, device=self.place, placed=metric.map_rows(X)), task, metric

    def new_rows(self, method: str) -> NewRows:
        """Return rows that something is asked for."""
        self._check_namespace(method)
        X, estimator, place = self.X, self.estimator, self.place
        if place is not None and self.like is not None:
            return DeviceNewRows(check_new_device_rows(estimator, X), place, X)
        (X,) = _on_host(X)
        if hasattr(estimator, "preparation_"):
            named = hasattr(estimator, "feature_names_in_") or not is_frame(X)
            X = estimator.preparation_.transform(X if named else np.asarray(X))
        else:
            X = check_new_host_rows(estimator, X)
        if place is None:
            return HostNewRows(X, resources_of(estimator))
        return DeviceNewRows(X, place, None)

    def score(self) -> float:
        """Return the accuracy of a classifier, R^2 of a regressor."""
        fit, (y, weight) = self.estimator.record_, _on_host(self.y, self.sample_weight)
        measure = accuracy_score if isinstance(fit.task, Classes) else r2_score
        predicted = fit.task.predict(self.new_rows("predict").outputs(fit))
        return float(measure(y, predicted, sample_weight=weight))

    def _check_namespace(self, method: str) -> None:
        """Refuse another library than that of the fit, as scikit-learn's dispatch asks for."""
        if not get_config()["array_api_dispatch"]:
            return
        X, own = self.X, self.estimator.dual_coef_
        if is_foreign(own) == is_foreign(X):
            if not is_foreign(X):
                return
            if get_namespace(own) is get_namespace(X) and device(own) == device(X):
                return
        raise InvalidInputError(
            f"Inputs passed to {type(self.estimator).__name__}.{method}() must use the same "
            "namespace and the same device as those passed to fit(), as everywhere in "
            "scikit-learn with array_api_dispatch: convert X, or fit again."
        )


@dataclass(frozen=True, eq=False)
class GivenBlocks:
    """Rows that are read in blocks.

    Attributes
    ----------
    estimator : FixedEstimator
    data : Scan
    place : Device or None
        None: NumPy.
    collection : Dask array or data frame, or None
        What the caller gave, where answers are to be of its kind.
    """

    estimator: FixedEstimator
    data: Scan
    place: Device | None
    collection: Any
    like: ClassVar[None] = None

    def rows(self, tell: Listener) -> tuple[Training, Task, Metric]:
        """Return a sample where it is all there is, else rows that are read in blocks."""
        surveyed = self._first_pass()
        sample, task = _sample_of(self.estimator, surveyed)
        sample, task, metric = _mapped_and_coded(self.estimator, sample, task, surveyed.counts)
        if surveyed.complete:
            return replace(sample, device=self.place), task, metric
        known = surveyed.preparation, surveyed.counts, sample.centre
        blocks, table = _blocks(task, self.data, *known, tell, metric)
        surveyed = _after(surveyed, metric, sample)
        budget, threads = sample.budget, sample.threads
        return ScanRows(blocks, surveyed, sample, table, budget, threads), task, metric

    def _first_pass(self) -> Survey:
        """Learn preparation, classes and a sample of the rows."""
        estimator, data = self.estimator, self._with_target()
        if self.collection is not None and data.schema.texts:
            raise InvalidInputError(
                f"The columns {list(data.schema.texts)} hold text, but numbers are needed: use "
                "scan(X, target=...) to have them prepared, or leave them out."
            )
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
        surveyed = survey(data, size, seed=seed, classes=_classifies(estimator))
        estimator.n_features_in_ = columns
        if data.named:
            estimator.feature_names_in_ = np.array(data.schema.names, dtype=object)
        if surveyed.preparation is not None:
            estimator.preparation_ = surveyed.preparation
        return surveyed

    def further_rows(self, task: Task, tell: Listener, centre: FloatArray | None) -> Training:
        """Return rows that are added or taken."""
        self._with_target()
        preparation = getattr(self.estimator, "preparation_", None)
        data = self._columns_of_model()
        return _further_rows(self.estimator, data, preparation, self.place, task, tell, centre)

    def new_rows(self, method: str) -> NewRows:
        """Return rows that something is asked for."""
        return self._scan_rows()

    def score(self) -> float:
        """Return the accuracy of a classifier, R^2 of a regressor, as sums over the blocks."""
        self._with_target()
        rows, fit = self._scan_rows(), self.estimator.record_
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

    def _scan_rows(self) -> ScanNewRows:
        estimator, data = self.estimator, self._columns_of_model()
        preparation = getattr(estimator, "preparation_", None)
        known = (data, preparation, resources_of(estimator), self.place)
        if self.collection is None:
            return (ClusterNewRows if data.distributed else ScanNewRows)(*known)
        open_rows = partial(open_new_rows, light_copy(estimator))
        return DaskNewRows(*known, collection=self.collection, open_rows=open_rows)

    def _columns_of_model(self) -> Scan:
        """Return a scan of the columns that the model was fitted with."""
        estimator = self.estimator
        names = tuple(str(n) for n in getattr(estimator, "feature_names_in_", ())) or None
        known = estimator.preparation_.schema if hasattr(estimator, "preparation_") else None
        kinds = known.kinds if known is not None and known.names == names else None
        data = self.data.select(names, estimator.n_features_in_, kinds)
        if known is not None and names is not None and data.named:
            known.check(data.schema, "the data set")
        elif data.schema.texts != (() if known is None else known.texts):
            raise InvalidInputError(
                f"The columns {list(data.schema.texts)} hold text, which is not what the model was "
                "fitted with: give its columns with columns=."
            )
        return data


def open_new_rows(estimator: FixedEstimator, X: Any, method: str = "predict") -> NewRows:
    """Return rows that something is asked for, whatever they are."""
    check_is_fitted(estimator)
    return open_given(estimator, X).new_rows(method)


def _further_rows(
    estimator: FixedEstimator,
    data: Scan,
    preparation: Any,
    place: Device | None,
    task: Task,
    tell: Listener,
    centre: FloatArray | None,
) -> ScanRows:
    if place is not None:
        raise InvalidInputError(
            f"device={estimator.device!r} is not available for rows that are added from a scan, or "
            "to a model of one: give arrays to a model of arrays, or set_params(device=None)."
        )
    blocks, _ = _blocks(task, data, preparation, None, centre, tell, estimator.record_.metric)
    return ScanRows(blocks, budget=as_bytes(estimator.memory_budget))


def _blocks(
    task: Task,
    data: Scan,
    preparation: Any,
    counts: FloatArray | None,
    centre: FloatArray | None,
    tell: Listener,
    metric: Metric,
) -> tuple[Blocks, ClassTable | None]:
    """Return the blocks, and targets and weights of classes that are kept apart."""
    use: dict[str, Any] = {"on_event": tell.on_event, "metric": metric}
    if isinstance(task, Numbers):
        encode = partial(encode_numbers, task=task, centre=centre)
        return Blocks(data, preparation, encode, task.n_outputs, **use), None
    # of further rows no counts are known: targets of classes follow from all moments
    table = task.table(np.ones(task.n_classes) if counts is None else counts)
    factors = table.factors if np.any(table.factors != 1.0) and not task.per_class else None
    encode = partial(encode_classes, task=task, targets=table.targets)
    blocks = Blocks(data, preparation, encode, task.n_outputs, factors, **use)
    return blocks, table if task.per_class else None


def _mapped_and_coded(
    estimator: FixedEstimator, rows: Rows, task: Task, counts: FloatArray | None = None
) -> tuple[Rows, Task, Metric]:
    """Return the rows of a new fit after their metric, the task with its code, and the metric."""
    seed = seed_of(estimator.random_state) if estimator.metric is not None else 0
    choice = KernelChoice.of(estimator)
    rows, metric = map_given(rows, estimator.metric, choice, seed)
    rows, task = with_better_code(estimator, rows, task, choice, by_class=True, counts=counts)
    return rows, task, metric


def _check_sparse(estimator: FixedEstimator, place: Device | None) -> bool:
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


def _after(surveyed: Survey, metric: Metric, sample: Rows) -> Survey:
    """Return what was found of all rows after a metric; for a full one, from the sample."""
    if metric.map is None:
        return surveyed
    if metric.map.ndim == 1:
        A = metric.map
        return replace(surveyed, mean=surveyed.mean * A, variance=surveyed.variance * A**2)
    mean = np.average(sample.X, axis=0, weights=sample.sample_weight)
    return replace(surveyed, mean=mean, variance=variances(sample.X, sample.sample_weight))


def _sample_of(estimator: FixedEstimator, surveyed: Survey) -> tuple[Rows, Task]:
    """Return the rows that the survey has kept, and what y means."""
    block, ready, resources = surveyed.sample, surveyed.preparation, resources_of(estimator)
    X = plain_features(block) if ready is None else ready.transform(block)
    if ready is None or np.all(ready.scale == 1.0):
        warn_of_scales(estimator, X, None if ready is None else ready.feature_names)
    equal = block.weight is not None and np.all(block.weight == 1.0)
    weight = None if equal else block.weight
    task: Task
    if _classifies(estimator):
        assert surveyed.classes is not None
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


def _on_host(*values: Any) -> tuple[Any, ...]:
    return tuple(to_numpy(value) if is_foreign(value) else value for value in values)


def _check_readable(value: Any) -> None:
    if not compat.is_torch_array(value):
        return
    layout, kind = str(value.layout), str(value.dtype)
    if value.device.type == "meta":
        why, change = "is on the device 'meta', which holds no numbers", "give one that has some"
    elif layout != "torch.strided":
        why, change = f"has the layout {layout}", "give a dense one (to_dense())"
    elif value.is_complex() or value.is_quantized or kind == "torch.bfloat16":
        why, change = f"has the type {kind}", "convert it to torch.float64 or torch.float32"
    else:
        return
    raise InvalidInputError(f"A tensor of shape {tuple(value.shape)} {why}: {change}.")


# -- rows that predictions are asked for -----------------------------------------------------------
