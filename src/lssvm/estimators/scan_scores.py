"""Scores of rows that are read in blocks, as sums over them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.data.raw import RawBlock
from lssvm.tasks import Classes


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
