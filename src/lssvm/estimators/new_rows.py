"""Rows that predictions are asked for: arrays, arrays on a device, scans, Dask collections.

What they are is found out once, where they are opened; then each kind has the same verbs.
"""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from lssvm._core.arrays import AnyArray, Array, FloatArray, device, get_namespace, to_numpy
from lssvm._core.blocks import require, run_stream, slices
from lssvm._core.device import Device, is_foreign
from lssvm._core.errors import InvalidInputError
from lssvm.backends.device import Torch
from lssvm.data.arrow import write_table
from lssvm.data.raw import CHUNK, RawBlock, plain_features
from lssvm.data.scanning import Scan
from lssvm.estimators.opening import validated
from lssvm.fitting.record import Fit, Resources

Finish = Callable[[FloatArray], Any]
Estimator = TypeVar("Estimator", bound="Fitted")


class Fitted(Protocol):
    """A fitted estimator, as rows see it."""

    record_: Fit
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        """Return what it takes."""


class NewRows(ABC):
    """Rows that something is asked for."""

    @abstractmethod
    def outputs(self, fit: Fit) -> FloatArray:
        """Return the outputs (n, k) as a NumPy array."""

    def features(self, fit: Fit) -> Any:
        """Return the features (n, d) in main memory, after the metric."""
        return fit.metric.map_rows(self.inputs(fit))

    @abstractmethod
    def inputs(self, fit: Fit) -> Any:
        """Return the features (n, d) in main memory, before the metric."""

    def stream(self, fit: Fit) -> Iterator[FloatArray]:
        """Yield the outputs (b, k), block by block."""
        raw = self.outputs(fit)
        return (raw[part] for part in slices(len(raw), CHUNK))

    def give(self, array: Any) -> Any:
        """Return an array as the caller's rows are."""
        return array

    def apply(self, fit: Fit, finish: Finish, empty: AnyArray, method: str) -> Any:
        """Return ``finish`` of the outputs of all rows, as the kind of rows wants it."""
        return self.give(finish(self.outputs(fit)))

    def write(self, fit: Fit, finish: Finish, out: Any) -> str:
        """Write ``finish`` of the outputs to a file, which appears when it is complete."""
        blocks = ({"prediction": finish(raw)} for raw in self.stream(fit))
        return write_table(blocks, os.fspath(out))


@dataclass(frozen=True, eq=False)
class HostNewRows(NewRows):
    """Rows in main memory."""

    X: Any
    resources: Resources

    def outputs(self, fit: Fit) -> FloatArray:
        """Return the outputs (n, k)."""
        return fit.outputs(self.features(fit), self.resources)

    def inputs(self, fit: Fit) -> Any:
        """Return the features before the metric."""
        return self.X


@dataclass(frozen=True, eq=False)
class DeviceNewRows(NewRows):
    """Rows that a device computes with; answers are as the caller's arrays are."""

    X: Any
    place: Device
    like: Array | None

    def outputs(self, fit: Fit) -> FloatArray:
        """Return the outputs (n, k) as a NumPy array."""
        out = np.empty((int(self.X.shape[0]), fit.coef.shape[1]))
        X = fit.metric.map_rows(self.X)
        for columns, kernel, coef, intercept in fit.expansions():
            out[:, columns] = Torch(self.place).outputs(kernel, X, fit.basis, coef, intercept)
        return out

    def inputs(self, fit: Fit) -> Any:
        """Return the features before the metric."""
        return np.asarray(to_numpy(self.X), dtype=np.float64)

    def give(self, array: Any) -> Any:
        """Return an array in the namespace and on the device of the caller's rows."""
        return array if self.like is None else like(array, self.like)


@dataclass(frozen=True, eq=False)
class ScanNewRows(NewRows):
    """Rows that are read in blocks; a scan of the columns that the model was fitted with."""

    data: Scan
    preparation: Any
    resources: Resources
    place: Device | None = None

    def _features(self, block: RawBlock) -> FloatArray:
        if self.preparation is None:
            return plain_features(block)
        return np.asarray(self.preparation.transform(block))

    def blocks(self, fit: Fit) -> Iterator[tuple[RawBlock, FloatArray]]:
        """Yield blocks of rows with their outputs (b, k)."""
        if self.place is not None:
            return (
                (block, DeviceNewRows(self._features(block), self.place, None).outputs(fit))
                for block in self.data.blocks()
            )
        one = replace(self.resources, threads=1)

        def work(block: RawBlock) -> tuple[RawBlock, FloatArray]:
            return block, fit.outputs(fit.metric.map_rows(self._features(block)), one)

        return run_stream(work, self.data.blocks(), self.resources.threads)

    def stream(self, fit: Fit) -> Iterator[FloatArray]:
        """Yield the outputs (b, k), block by block."""
        return (outputs for _, outputs in self.blocks(fit))

    def reduce(self, fit: Fit, work: Callable[..., Any], combine: Callable[..., Any]) -> Any:
        """Return what ``work(blocks)`` returns for the rows."""
        return work(self.blocks(fit))

    def outputs(self, fit: Fit) -> FloatArray:
        """Return the outputs (n, k)."""
        return np.concatenate(list(self.stream(fit)))

    def inputs(self, fit: Fit) -> Any:
        """Return the features before the metric, where they fit."""
        n, d = self.data.n_rows, fit.basis.shape[1]
        require(
            8 * n * d,
            self.resources.budget,
            what=f"Keeping the features of {n} rows, as error bars need,",
            advice="Ask for them in parts of the rows, or raise memory_budget.",
        )
        return np.concatenate([self._features(block) for block in self.data.blocks()])


@dataclass(frozen=True, eq=False)
class ClusterNewRows(ScanNewRows):
    """Rows that the workers of a cluster read; what is asked for is computed there."""

    def _light(self) -> ScanNewRows:
        """Return what travels: everything but the data, for one thread."""
        one = replace(self.resources, threads=1)
        return ScanNewRows(None, self.preparation, one)  # type: ignore[arg-type]

    def stream(self, fit: Fit) -> Iterator[FloatArray]:
        """Yield the outputs (b, k), block by block."""
        work = partial(_outputs_of_part, self._light(), light_record(fit))
        return chain.from_iterable(self.data.stream(work))

    def reduce(self, fit: Fit, work: Callable[..., Any], combine: Callable[..., Any]) -> Any:
        """Combine what ``work(blocks)`` returns for the parts of workers."""
        part = partial(_on_part, self._light(), light_record(fit), work)
        return self.data.reduce(part, combine)

    def apply(self, fit: Fit, finish: Finish, empty: AnyArray, method: str) -> Any:
        """Return ``finish`` of the outputs as a lazy Dask array."""
        import dask.array as da

        reader: Any = self.data.reader
        work = partial(_finished_part, self._light(), light_record(fit), finish)
        delayed = zip(reader.delayed(self.data, work), reader.parts, strict=True)
        kind = {"dtype": empty.dtype, "meta": empty}
        return da.concatenate(
            [da.from_delayed(value, (p.rows, *empty.shape[1:]), **kind) for value, p in delayed]
        )


def _outputs_of_part(rows: ScanNewRows, fit: Fit, part: Scan) -> list[FloatArray]:
    return [outputs for _, outputs in replace(rows, data=part).blocks(fit)]


def _on_part(rows: ScanNewRows, fit: Fit, work: Callable[..., Any], part: Scan) -> Any:
    return work(replace(rows, data=part).blocks(fit))


def _finished_part(rows: ScanNewRows, fit: Fit, finish: Finish, part: Scan) -> AnyArray:
    return np.asarray(finish(np.concatenate(_outputs_of_part(rows, fit, part))))


@dataclass(frozen=True, eq=False, kw_only=True)
class DaskNewRows(ClusterNewRows):
    """A Dask array or data frame; answers are lazy collections."""

    collection: Any
    open_rows: Callable[[Any], NewRows]  # opens the rows of a partition

    def apply(self, fit: Fit, finish: Finish, empty: AnyArray, method: str) -> Any:
        """Return ``finish`` of the outputs as a lazy collection."""
        X, light = self.collection, light_record(fit)
        work = partial(_of_array, self.open_rows, light, finish=finish, empty=empty)
        if hasattr(X, "columns"):
            meta = _framed(empty, X._meta.index[:0], method)
            return X.map_partitions(partial(_of_frame, work=work, method=method), meta=meta)
        X = X.rechunk({1: -1})
        wide = empty.ndim == 2
        options = {"chunks": (X.chunks[0], empty.shape[1:])} if wide else {"drop_axis": 1}
        return X.map_blocks(work, dtype=empty.dtype, meta=empty, **options)


def _of_array(
    open_rows: Callable[[Any], NewRows], fit: Fit, X: Any, finish: Finish, empty: AnyArray
) -> AnyArray:
    return np.asarray(open_rows(X).apply(fit, finish, empty, "")) if len(X) else empty


def _of_frame(X: Any, work: Callable[[Any], AnyArray], method: str) -> Any:
    return _framed(work(X), X.index, method)


def _framed(values: AnyArray, index: Any, method: str) -> Any:
    import pandas as pd

    if values.ndim == 2:
        return pd.DataFrame(values, index=index)
    return pd.Series(values, index=index, name="prediction" if method == "predict" else method)


def light_record(fit: Fit) -> Fit:
    """Return the record without what outputs do not need, to send it to workers."""
    return replace(fit, memory=None, tuning=None, details=None)  # type: ignore[arg-type]


def light_copy(estimator: Estimator) -> Estimator:
    """Return an estimator without what outputs do not need, for one thread of a worker."""
    light: Any = copy.copy(estimator)
    kept = ("n_features_in_", "feature_names_in_", "preparation_")
    for name in [n for n in vars(light) if n.endswith("_") and n not in kept]:
        vars(light).pop(name)
    light._cache = {}
    light.record_ = light_record(estimator.record_)
    return cast(Estimator, light.set_params(n_jobs=1))


def check_new_host_rows(estimator: Fitted, X: Any) -> Any:
    """Check rows in main memory against those of the fit."""
    sparse = estimator.__sklearn_tags__().input_tags.sparse
    layout = {"accept_sparse": "csr" if sparse else False, "dtype": [np.float64, np.float32]}
    return validated(estimator, X, reset=False, **layout)


def check_new_device_rows(estimator: Fitted, X: Array) -> Array:
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


def like(result: Any, X: Array) -> Any:
    """Return numbers in the namespace and on the device of ``X``; what else there is as it is."""
    if isinstance(result, tuple):
        return tuple(like(part, X) for part in result)
    if not isinstance(result, np.ndarray) or result.dtype.kind not in "biuf" or not is_foreign(X):
        return result
    return Device(get_namespace(X), device(X)).put(result)
