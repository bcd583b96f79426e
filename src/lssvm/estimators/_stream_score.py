"""Scores of the fixed-size model on rows that are read in blocks, here or on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.data import Scan
from lssvm.data.scanning import as_scan
from lssvm.estimators.fixed_stream import light_copy, model_rows, stream_blocks, with_target


def summed(model: Any, X: Any, y: Any, sample_weight: Any, work: Any, combine: Any) -> Any:
    """Apply ``work(model, scan)`` to all rows, or to those of every part where Dask has it."""
    rows = model_rows(model, with_target(as_scan(X, y, sample_weight)))
    return rows.reduce(partial(work, light_copy(model) if rows.distributed else model), combine)


def hits(model: Any, rows: Scan) -> FloatArray:
    """Return the weight of the rows that are classified rightly, and that of all."""
    right = total = 0.0
    for block, raw in stream_blocks(model, rows):
        hit = model.classes_[model._decide(raw)] == block.target
        weight = np.ones(len(hit)) if block.weight is None else block.weight
        right, total = right + float(weight @ hit), total + float(weight.sum())
    return np.array([right, total])


@dataclass(frozen=True, eq=False)
class Spread:
    """Weight, mean and squared deviations of targets, and squared residuals."""

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
        """Return the coefficient of determination, averaged over the outputs."""
        safe = np.where(self.squares > 0, self.squares, 1.0)
        ratio = np.where(self.squares > 0, self.residual / safe, self.residual > 0)
        return float(np.mean(1.0 - ratio))


def spread(model: Any, rows: Scan) -> Spread:
    """Return what R^2 needs of all rows."""
    found = Spread(0.0, np.zeros(1), np.zeros(1), np.zeros(1))
    for block, raw in stream_blocks(model, rows):
        Y = np.asarray(block.target, dtype=np.float64).reshape(len(raw), -1)
        s = np.ones(len(Y)) if block.weight is None else block.weight
        weight = float(s.sum())
        if weight > 0.0:
            mean = s @ Y / weight
            found += Spread(weight, mean, s @ (Y - mean) ** 2, s @ (Y - raw) ** 2)
    return found
