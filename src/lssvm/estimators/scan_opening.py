"""From arrays, devices, scans and Dask collections to the rows of a fixed-size model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.device import Device, find_device, is_foreign
from lssvm._core.errors import InvalidInputError
from lssvm._core.memory import as_bytes, require
from lssvm._core.namespace import Array, compat, device, get_namespace, to_numpy
from lssvm._core.progress import Listener
from lssvm._core.random import RandomState
from lssvm.data import Scan, scan
from lssvm.data.dask import is_dask
from lssvm.data.frames import is_frame
from lssvm.data.prepare import Preparation
from lssvm.data.raw import RawBlock, plain_features
from lssvm.data.scanning import as_scan, is_stream
from lssvm.data.survey import Survey, survey
from lssvm.engines.base import Rows
from lssvm.engines.device import DeviceRows
from lssvm.engines.host import HostRows
from lssvm.engines.scan import Blocks, ScanRows, blocks_of
from lssvm.estimators.new_rows import (
    DaskNewRows,
    DeviceNewRows,
    Fitted,
    HostNewRows,
    NewRows,
    ScanNewRows,
    check_new_device_rows,
    check_new_host_rows,
    light_copy,
    scan_new_rows,
)
from lssvm.estimators.opening import (
    Classifier,
    class_rows,
    number_rows,
    open_classes,
    open_numbers,
    task_of,
)
from lssvm.recipes.settings import UsesResources, resources_of, seed_of
from lssvm.tasks import Classes, ClassTable, Numbers

SAMPLE_ROWS = 50_000
"""Rows in memory that prototypes are chosen from and gamma is searched on."""


class FixedEstimator(Fitted, UsesResources, Protocol):
    """A fixed-size estimator, as its rows see it."""

    device: Any
    random_state: RandomState
    dual_coef_: Any
    feature_names_in_: Any
    preparation_: Preparation


class FixedClassifier(FixedEstimator, Classifier, Protocol):
    """A fixed-size classifier."""


# -- training rows ---------------------------------------------------------------------------------


def open_class_rows(
    estimator: FixedClassifier,
    X: Any,
    y: Any,
    sample_weight: Any,
    tell: Listener,
    task: Classes | None = None,
    groups: Any = None,
) -> tuple[Rows, Classes]:
    """Open the rows of a classifier, whatever they are.

    Parameters
    ----------
    estimator : FixedSizeLSSVC
    X, y, sample_weight
        As the caller gave them.
    tell : Listener
    task : Classes or None, default=None
        What the model has learned, where further rows are opened; None: a new fit.
    groups : array or None, default=None
        Rows that are left out together; not of rows that are read in blocks.

    Returns
    -------
    rows : Rows
    task : Classes
    """
    place = Place.of(estimator, X, y, sample_weight)
    _refuse_groups(place, groups)
    if task is not None:
        _check_namespace(estimator, place, X, "partial_fit")
    if not place.reads_blocks and not _prepares(estimator, task):
        host, task = open_classes(
            estimator, *place.on_host(X, y, sample_weight), groups=groups, task=task, by_class=True
        )
        return place.placed(host), task
    if task is not None:
        data, preparation = _further_rows(estimator, place, X, y, sample_weight)
        counts = np.ones(task.n_classes)  # targets of classes follow from all moments
        blocks, _ = _class_blocks(task, data, preparation, counts, tell)
        return ScanRows(blocks, budget=as_bytes(estimator.memory_budget)), task
    data, found = _first_pass(estimator, place, X, y, sample_weight, classes=True)
    assert found.classes is not None and found.counts is not None
    task = task_of(estimator, found.classes)
    features, target, weight = _sample_of(found)
    resources = resources_of(estimator)
    sample = class_rows(
        task,
        features,
        task.numbers(target),
        weight,
        resources,
        by_class=True,
        counts=found.counts,
    )
    blocks, table = _class_blocks(task, data, found.preparation, found.counts, tell)
    return _from_survey(place, found, sample, blocks, target, table), task


def _class_blocks(
    task: Classes, data: Scan, preparation: Any, counts: FloatArray, tell: Listener
) -> tuple[Blocks, ClassTable | None]:
    """Return the blocks, and targets and weights of classes that are kept apart."""
    table = task.table(counts)
    factors = table.factors if np.any(table.factors != 1.0) and not task.per_class else None
    encode = EncodeClasses(task, table.targets)
    blocks = blocks_of(data, preparation, encode, task.n_outputs, factors, tell.on_event)
    return blocks, table if task.per_class else None


def open_number_rows(
    estimator: FixedEstimator,
    X: Any,
    y: Any,
    sample_weight: Any,
    tell: Listener,
    task: Numbers | None = None,
    groups: Any = None,
) -> tuple[Rows, Numbers]:
    """Open the rows of a regressor; the parameters are those of `open_class_rows`."""
    place = Place.of(estimator, X, y, sample_weight)
    _refuse_groups(place, groups)
    if task is not None:
        _check_namespace(estimator, place, X, "partial_fit")
    if not place.reads_blocks and not _prepares(estimator, task):
        host, task = open_numbers(
            estimator, *place.on_host(X, y, sample_weight), groups=groups, task=task
        )
        return place.placed(host), task
    if task is not None:
        data, preparation = _further_rows(estimator, place, X, y, sample_weight)
        encode = partial(encode_numbers, task=task)
        blocks = blocks_of(data, preparation, encode, task.n_outputs, on_event=tell.on_event)
        return ScanRows(blocks, budget=as_bytes(estimator.memory_budget)), task
    data, found = _first_pass(estimator, place, X, y, sample_weight, classes=False)
    features, target, weight = _sample_of(found)
    Y = number_targets(found.sample)
    task = Numbers(Y.shape[1], target.ndim == 1)
    sample = number_rows(features, Y, weight, resources_of(estimator))
    encode = partial(encode_numbers, task=task)
    blocks = blocks_of(data, found.preparation, encode, task.n_outputs, on_event=tell.on_event)
    return _from_survey(place, found, sample, blocks, target), task


def _refuse_groups(place: Place, groups: Any) -> None:
    if groups is not None and place.reads_blocks:
        raise InvalidInputError(
            "groups cannot be given with rows that are read in blocks, which are dealt to folds by "
            "their positions: give arrays X and y, or leave groups out."
        )


def _prepares(estimator: FixedEstimator, task: Classes | Numbers | None) -> bool:
    """Return whether rows that are added have to be prepared as those of the scan were."""
    return task is not None and hasattr(estimator, "preparation_")


def _further_rows(
    estimator: FixedEstimator, place: Place, X: Any, y: Any, sample_weight: Any
) -> tuple[Scan, Any]:
    """Return rows to add or remove as a scan, and the preparation that is left to do."""
    if place.device is not None:
        raise InvalidInputError(
            f"device={estimator.device!r} is not available for rows that are added from a scan, or "
            "to a model of one: give arrays to a model of arrays, or set_params(device=None)."
        )
    if place.reads_blocks:
        data = _with_target(columns_of_model(estimator, as_scan(X, y, sample_weight)))
        return data, getattr(estimator, "preparation_", None)
    features = estimator.preparation_.transform(X)
    return scan(features, target=np.asarray(y), weight=sample_weight), None


def _first_pass(
    estimator: FixedEstimator, place: Place, X: Any, y: Any, sample_weight: Any, *, classes: bool
) -> tuple[Scan, Survey]:
    """Survey the rows, and store what the fitted model has to know about their columns."""
    budget = as_bytes(estimator.memory_budget)
    data = _with_target(as_scan(X, y, sample_weight))
    if is_dask(X) and data.schema.texts:
        raise InvalidInputError(
            f"The columns {list(data.schema.texts)} hold text, but numbers are needed: use "
            "scan(X, target=...) to have them prepared, or leave them out."
        )
    columns = len(data.schema.names)
    size = int(max(1000, min(SAMPLE_ROWS, 0.05 * budget // (8 * (columns + 2)))))
    if place.device is not None:  # a device takes the rows from main memory
        size = max(1, data.n_rows)
        require(
            8 * size * (columns + 2),
            budget,
            what=f"The {size:,} rows of a scan, which a device takes from main memory,",
            advice="Use device=None, which reads them in blocks, or raise memory_budget.",
        )
    found = survey(data, size, seed=seed_of(estimator.random_state), classes=classes)
    estimator.n_features_in_ = columns
    if data.named:
        estimator.feature_names_in_ = np.array(data.schema.names, dtype=object)
    if found.preparation is not None:
        estimator.preparation_ = found.preparation
    return data, found


def _with_target(data: Scan) -> Scan:
    if not data.has_target:
        raise InvalidInputError(
            "The rows have no target to learn: give scan(..., target=...), or y beside a Dask "
            "collection."
        )
    return data


def _sample_of(found: Survey) -> tuple[FloatArray, Any, FloatArray | None]:
    """Return features, target and weights of the rows that the survey has kept."""
    block, ready = found.sample, found.preparation
    X = plain_features(block) if ready is None else ready.transform(block)
    weight = block.weight
    if weight is not None and np.all(weight == 1.0):
        weight = None
    return X, block.target, weight


def _from_survey(
    place: Place,
    found: Survey,
    sample: HostRows,
    blocks: Blocks,
    target: Any,
    table: ClassTable | None = None,
) -> Rows:
    """Return the sample where it is all there is, else rows that are read in blocks."""
    sample = replace(sample, positions=found.positions, given=(sample.X, target), by_position=True)
    if found.complete:
        return place.placed(sample)
    return ScanRows(blocks, found, sample, table, sample.budget, sample.threads)


@dataclass(frozen=True, eq=False)
class EncodeClasses:
    """From a raw block to targets and class numbers."""

    task: Classes
    targets: FloatArray

    def __call__(self, block: RawBlock) -> tuple[FloatArray, IntArray]:
        """Return targets (b, k) and class numbers (b,)."""
        labels = self.task.numbers(block.target, f" in the block of {block.place(0)}")
        return self.targets[labels], labels.astype(np.intp)


def number_targets(block: RawBlock) -> FloatArray:
    """Return the targets (b, k) of a raw block."""
    assert block.target is not None
    if block.target.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"The target holds text in {block.place(0)}, but a regression needs numbers: use "
            "FixedSizeLSSVC for labels."
        )
    return np.asarray(block.target, dtype=np.float64).reshape(len(block), -1)


def encode_numbers(block: RawBlock, task: Numbers) -> tuple[FloatArray, IntArray]:
    """Return the targets of a raw block, and class numbers, which are all 0."""
    return task.check_outputs(number_targets(block)), np.zeros(len(block), dtype=np.intp)


# -- where the computations are --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Place:
    """Where what a caller gives is computed.

    Attributes
    ----------
    device : Device or None
        None: NumPy.
    X : array or None
        The caller's rows, where they are arrays of another library.
    reads_blocks : bool
        Whether they are a scan, a row source or a Dask collection.
    """

    device: Device | None
    X: Array | None
    reads_blocks: bool

    @classmethod
    def of(cls, estimator: FixedEstimator, X: Any, *others: Any) -> Place:
        """Find out, once for every call."""
        reads_blocks = is_stream(X)
        for value in (X, *others):
            _check_readable(value)
        dispatch = bool(get_config()["array_api_dispatch"])
        found = find_device(
            estimator.device, None if reads_blocks else X, dispatch=dispatch and not reads_blocks
        )
        if found is not None and reads_blocks and (is_dask(X) or getattr(X, "distributed", False)):
            raise InvalidInputError(
                f"device={estimator.device!r} is not available for rows on a cluster: use "
                "device=None."
            )
        if found is not None and estimator.memory_budget is not None:
            found = replace(found, limit=as_bytes(estimator.memory_budget))
        foreign = found is not None and is_foreign(X)
        return cls(found, X if foreign else None, reads_blocks)

    def on_host(self, *values: Any) -> tuple[Any, ...]:
        """Return arrays of other libraries as NumPy's."""
        return tuple(to_numpy(value) if is_foreign(value) else value for value in values)

    def placed(self, rows: HostRows) -> Rows:
        """Return rows where they are computed with."""
        if self.device is None:
            return rows
        X = self.X
        if X is not None and rows.positions is not None and not rows.by_position:
            X = self.device.xp.take(X, self.device.put(rows.positions), axis=0)
        return DeviceRows(rows, self.device, X)


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


def open_new_rows(estimator: FixedEstimator, X: Any, method: str = "predict") -> NewRows:
    """Return rows that something is asked for, whatever they are."""
    check_is_fitted(estimator)
    place = Place.of(estimator, X)
    resources = resources_of(estimator)
    if place.reads_blocks:
        data = columns_of_model(estimator, as_scan(X))
        rows = scan_new_rows(
            data, getattr(estimator, "preparation_", None), resources, place.device
        )
        if not is_dask(X):
            return rows
        return DaskNewRows(X, partial(open_new_rows, light_copy(estimator)), rows)
    _check_namespace(estimator, place, X, method)
    if place.device is None:
        return HostNewRows(_host_features(estimator, *place.on_host(X)), resources)
    if place.X is None:
        return DeviceNewRows(_host_features(estimator, X), place.device, None)
    return DeviceNewRows(check_new_device_rows(estimator, X), place.device, X)


def open_scored_rows(
    estimator: FixedEstimator, X: Any, y: Any, sample_weight: Any, place: Place
) -> ScanNewRows:
    """Return rows of a scan, with their targets."""
    check_is_fitted(estimator)
    data = columns_of_model(estimator, _with_target(as_scan(X, y, sample_weight)))
    preparation = getattr(estimator, "preparation_", None)
    return scan_new_rows(data, preparation, resources_of(estimator), place.device)


def _host_features(estimator: FixedEstimator, X: Any) -> Any:
    if hasattr(estimator, "preparation_"):
        named = hasattr(estimator, "feature_names_in_") or not is_frame(X)
        return estimator.preparation_.transform(X if named else np.asarray(X))
    return check_new_host_rows(estimator, X)


def columns_of_model(estimator: FixedEstimator, data: Scan) -> Scan:
    """Return a scan of the columns that the model was fitted with."""
    names = tuple(str(n) for n in getattr(estimator, "feature_names_in_", ())) or None
    known = estimator.preparation_.schema if hasattr(estimator, "preparation_") else None
    kinds = known.kinds if known is not None and known.names == names else None
    data = data.select(names, estimator.n_features_in_, kinds)
    if known is not None and names is not None and data.named:
        known.check(data.schema, "the data set")
    elif data.schema.texts != (() if known is None else known.texts):
        raise InvalidInputError(
            f"The columns {list(data.schema.texts)} hold text, which is not what the model was "
            "fitted with: give its columns with columns=."
        )
    return data


def _check_namespace(estimator: FixedEstimator, place: Place, X: Any, method: str) -> None:
    """Refuse another library than that of the fit, as scikit-learn's dispatch asks for."""
    if place.reads_blocks or not get_config()["array_api_dispatch"]:
        return
    mine: Any = estimator.dual_coef_
    if is_foreign(mine) == is_foreign(X):
        if not is_foreign(X):
            return
        if get_namespace(mine) is get_namespace(X) and device(mine) == device(X):
            return
    raise InvalidInputError(
        f"Inputs passed to {type(estimator).__name__}.{method}() must use the same namespace and "
        "the same device as those passed to fit(), as everywhere in scikit-learn with "
        "array_api_dispatch: convert X, or fit again."
    )
