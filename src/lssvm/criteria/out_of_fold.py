"""Out-of-fold predictions, and the losses that a criterion makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.criteria.base import Losses
from lssvm.criteria.losses import Criterion, SquaredError
from lssvm.folds.content import Folds

POOL_ABOVE = 50
"""With more folds than this losses that are means over rows are pooled into one."""


@dataclass(frozen=True)
class Predictions:
    """Out-of-fold predictions of all folds, one fold after the other.

    Attributes
    ----------
    values : array of shape (c, t, k)
        c candidates, t rows of all folds, k outputs; what is not finite rules a candidate out.
    starts : int array of shape (v + 1,)
        Where each fold begins, and the end.
    """

    values: FloatArray
    starts: IntArray

    @classmethod
    def zeros(cls, folds: Folds, c: int, k: int) -> Predictions:
        """Return room for c candidates; zero is what a problem without training rows predicts."""
        starts = np.cumsum([0, *(len(rows) for rows in folds.test)])
        return cls(np.zeros((c, int(starts[-1]), k)), starts)

    def fold(self, v: int) -> FloatArray:
        """Return a view of the predictions of fold ``v``."""
        return self.values[:, self.starts[v] : self.starts[v + 1]]


def losses_in_passes(
    predict: Callable[[FloatArray], Predictions],
    C: FloatArray,
    folds: Folds,
    Y: FloatArray,
    criterion: Criterion,
    weight: FloatArray | None,
    budget: int,
) -> Losses:
    """Return the losses of a path of C; several passes if predictions would not fit."""
    n, k = Y.shape
    at_once = max(1, int(0.1 * budget) // (8 * n * (4 * k + 4)))
    pieces = [
        losses_of(predict(np.asarray(C[i : i + at_once], dtype=float)), folds, Y, criterion, weight)
        for i in range(0, len(C), at_once)
    ]
    return Losses(
        np.concatenate([p.fold for p in pieces]),
        pieces[0].weight,
        np.concatenate([p.tie for p in pieces]),
    )


def losses_of(
    out: Predictions,
    folds: Folds,
    Y: FloatArray,
    criterion: Criterion,
    weight: FloatArray | None,
) -> Losses:
    """Return the losses of out-of-fold predictions; the squared error decides between equals."""
    tests = folds.test
    squares = SquaredError(Y, weight)
    sizes = np.array([len(r) if weight is None else weight[r].sum() for r in tests], float)
    definite = np.isfinite(out.values).all(axis=(1, 2))
    out.values[~definite] = 0.0
    if _pools(tests, criterion):
        rows = np.concatenate(tests)
        losses = criterion(out.values, rows)[:, None]
        share, tie = np.ones(1), squares(out.values, rows)
    else:
        predictions = [out.fold(v) for v in range(len(tests))]
        losses = np.stack([criterion(p, r) for p, r in zip(predictions, tests, strict=True)], 1)
        share = sizes / sizes.sum()
        tie = np.stack([squares(p, r) for p, r in zip(predictions, tests, strict=True)], 1) @ share
        if not criterion.pooled:
            share = np.full(len(tests), 1.0 / len(tests))
    finite = definite & np.isfinite(tie)
    losses[~finite] = np.inf
    return Losses(losses, share, np.where(finite, tie, np.inf))


def _pools(tests: list[IntArray], criterion: Criterion) -> bool:
    """Say whether all folds get one loss: for speed, or as their scores would mean nothing."""
    if criterion.pooled:
        return len(tests) > POOL_ABOVE
    return sum(len(rows) for rows in tests) < 3 * len(tests)
