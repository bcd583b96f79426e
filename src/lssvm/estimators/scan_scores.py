"""Scores of rows that are read in blocks, as sums over them."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from lssvm._core.arrays import FloatArray
from lssvm.data.raw import RawBlock
from lssvm.estimators.scan_opening import FixedEstimator, Place, open_scored_rows
from lssvm.tasks import Classes


class Predicting(FixedEstimator, Protocol):
    """A fixed-size estimator that predicts."""

    def predict(self, X: Any) -> Any:
        """Return predictions."""


def accuracy(estimator: Predicting, X: Any, y: Any, sample_weight: Any) -> float:
    """Return the share of rows whose class is right, whatever the rows are."""
    place = Place.of(estimator, X, y, sample_weight)
    if place.reads_blocks:
        rows = open_scored_rows(estimator, X, y, sample_weight, place)
        fit = estimator.record_
        assert isinstance(fit.task, Classes)
        right, total = rows.reduce(fit, partial(_hits, fit.task), np.add)
        return float(right / total)
    predicted, y, weight = place.on_host(estimator.predict(X), y, sample_weight)
    return float(accuracy_score(y, predicted, sample_weight=weight))


def r_squared(estimator: Predicting, X: Any, y: Any, sample_weight: Any) -> float:
    """Return the coefficient of determination, whatever the rows are."""
    place = Place.of(estimator, X, y, sample_weight)
    if place.reads_blocks:
        rows = open_scored_rows(estimator, X, y, sample_weight, place)
        spread: Spread = rows.reduce(estimator.record_, _spread, operator.add)
        return spread.r_squared()
    predicted, y, weight = place.on_host(estimator.predict(X), y, sample_weight)
    return float(r2_score(y, predicted, sample_weight=weight))


def _hits(task: Classes, blocks: Iterable[tuple[RawBlock, FloatArray]]) -> FloatArray:
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


def _spread(blocks: Iterable[tuple[RawBlock, FloatArray]]) -> Spread:
    total = Spread(0.0, np.zeros(1), np.zeros(1), np.zeros(1))
    for block, raw in blocks:
        Y = np.asarray(block.target, dtype=np.float64).reshape(len(raw), -1)
        s = np.ones(len(Y)) if block.weight is None else block.weight
        weight = float(s.sum())
        if weight > 0.0:
            mean = s @ Y / weight
            total += Spread(weight, mean, s @ (Y - mean) ** 2, s @ (Y - raw) ** 2)
    return total
