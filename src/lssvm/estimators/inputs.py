"""Rows that predictions are wanted for: arrays on the host or a device, and scans."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from lssvm._core.arrays import AnyArray, Array, FloatArray
from lssvm._core.blocks import require, run_stream, slices
from lssvm._core.device import like, on_host
from lssvm.backends.host import Backend
from lssvm.data.arrow import write_table
from lssvm.data.preparation import PreparedTable, features
from lssvm.data.raw import CHUNK, RawBlock
from lssvm.data.scanning import Scan
from lssvm.fitting.record import Fit
from lssvm.tasks import Classes

Finish = Callable[[FloatArray], Any]
"""From outputs (b, k) to what a method returns for those rows."""


class Inputs(ABC):
    """Rows without targets; how their outputs are computed, and what holds the answer."""

    @abstractmethod
    def outputs(self, fit: Fit) -> FloatArray:
        """Return the outputs (n, k) as a NumPy array."""

    @abstractmethod
    def inputs(self, fit: Fit) -> Any:
        """Return the features (n, d) in main memory, before the metric."""

    @abstractmethod
    def raw(self) -> Any:
        """Return the rows as they were given, in main memory."""

    @abstractmethod
    def stream(self, fit: Fit) -> Iterator[FloatArray]:
        """Yield the outputs (b, k), block by block."""

    @abstractmethod
    def apply(self, fit: Fit, finish: Finish, empty: AnyArray, method: str) -> Any:
        """Return ``finish`` of the outputs of all rows, in the container of the rows.

        ``empty`` is such an answer for no rows, ``method`` the name of what was called.
        """

    def features(self, fit: Fit) -> Any:
        """Return the features (n, d) in main memory, after the metric."""
        return fit.metric.map_rows(self.inputs(fit))

    def give(self, array: Any) -> Any:
        """Return an array in the library of the rows."""
        return array

    def write(self, fit: Fit, finish: Finish, out: Any) -> str:
        """Write ``finish`` of the outputs to a file, which appears when it is complete."""
        blocks = ({"prediction": finish(raw)} for raw in self.stream(fit))
        return write_table(blocks, os.fspath(out))


def _outputs(fit: Fit, X: Any, backend: Backend) -> FloatArray:
    out = np.empty((int(X.shape[0]), fit.coef.shape[1]), fit.coef.dtype)
    X = fit.metric.map_rows(X)
    for columns, kernel, coef, intercept in fit.expansions():
        out[:, columns] = backend.outputs(kernel, X, fit.basis, coef, intercept)
    return out


@dataclass(frozen=True, eq=False)
class ArrayInputs(Inputs):
    """Arrays of the host or of a device; answers are as ``namespace_of`` is, where given."""

    X: Any
    backend: Backend
    namespace_of: Array | None = None
    given: Any = None

    def outputs(self, fit: Fit) -> FloatArray:
        """Return the outputs (n, k)."""
        return _outputs(fit, self.X, self.backend)

    def inputs(self, fit: Fit) -> Any:
        """Return the features before the metric."""
        return on_host(self.X)

    def raw(self) -> Any:
        """Return the rows as they were given."""
        return self.given

    def stream(self, fit: Fit) -> Iterator[FloatArray]:
        """Yield the outputs (b, k), block by block."""
        raw = self.outputs(fit)
        return (raw[part] for part in slices(len(raw), CHUNK))

    def apply(self, fit: Fit, finish: Finish, empty: AnyArray, method: str) -> Any:
        """Return ``finish`` of the outputs of all rows."""
        return self.give(finish(self.outputs(fit)))

    def give(self, array: Any) -> Any:
        """Return an array in the namespace and on the device of the caller's rows."""
        return like(array, self.namespace_of)


@dataclass(frozen=True, eq=False)
class ScanInputs(Inputs):
    """Rows that are read in blocks, here or by workers: the columns that a model was fitted to."""

    data: Scan
    preparation: PreparedTable | None
    backend: Backend

    def outputs(self, fit: Fit) -> FloatArray:
        """Return the outputs (n, k)."""
        return np.concatenate(list(self.stream(fit)))

    def inputs(self, fit: Fit) -> Any:
        """Return the features before the metric, where they fit."""
        n, d = self.data.n_rows, fit.basis.shape[1]
        require(
            8 * n * d,
            self.backend.budget,
            what=f"Keeping the features of {n} rows, as error bars need,",
            advice="Ask for them in parts of the rows, or raise memory_budget.",
        )
        return np.concatenate([features(block, self.preparation) for block in self.data.blocks()])

    def raw(self) -> RawBlock:
        """Return all rows."""
        return RawBlock.join(list(self.data.blocks()))

    def stream(self, fit: Fit) -> Iterator[FloatArray]:
        """Yield the outputs (b, k), block by block."""
        return chain.from_iterable(self.data.stream(self._job(fit, _block_outputs)))

    def reduce(self, fit: Fit, work: Callable[..., Any], combine: Callable[..., Any]) -> Any:
        """Combine what ``work(blocks)`` returns, for blocks of rows with their outputs."""
        return self.data.reduce(self._job(fit, work), combine)

    def apply(self, fit: Fit, finish: Finish, empty: AnyArray, method: str) -> Any:
        """Return ``finish`` of the outputs of all rows, as the data hold such an array."""
        work = self._job(fit, partial(_finished, finish))
        return self.data.collect(work, empty, "prediction" if method == "predict" else method)

    def _job(self, fit: Fit, work: Callable[..., Any]) -> Callable[[Scan], Any]:
        """Return what is done with a scan or with one part of it; it may travel to a worker."""
        nothing: Any = None
        _, threads = self.data.resources(self.backend.budget, self.backend.threads)
        backend = replace(self.backend, threads=threads)  # type: ignore[type-var]
        return partial(
            _on_part, ScanInputs(nothing, self.preparation, backend), stripped(fit), work
        )

    def blocks(self, fit: Fit) -> Iterator[tuple[RawBlock, FloatArray]]:
        """Yield blocks of rows with their outputs (b, k), computed on all threads."""
        single: Backend = replace(self.backend, threads=1)  # type: ignore[type-var]

        def work(block: RawBlock) -> tuple[RawBlock, FloatArray]:
            return block, _outputs(fit, features(block, self.preparation), single)

        return run_stream(work, self.data.blocks(), self.backend.threads)


def _on_part(inputs: ScanInputs, fit: Fit, work: Callable[..., Any], part: Scan) -> Any:
    return work(replace(inputs, data=part).blocks(fit))


def _block_outputs(blocks: Iterable[tuple[RawBlock, FloatArray]]) -> Iterator[FloatArray]:
    return (outputs for _, outputs in blocks)


def _finished(finish: Finish, blocks: Iterable[tuple[RawBlock, FloatArray]]) -> AnyArray:
    return np.asarray(finish(np.concatenate([outputs for _, outputs in blocks])))


def stripped(fit: Fit) -> Fit:
    """Return the record without what outputs do not need, to send it to workers."""
    return replace(fit, calibration=None, tuning=None, details=None)  # type: ignore[arg-type]


# -- scores as sums over blocks --------------------------------------------------------------------


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
