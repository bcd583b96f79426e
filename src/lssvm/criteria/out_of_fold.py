"""Out-of-fold predictions, and the losses that are made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.criteria.base import Losses, pools
from lssvm.folds.content import Folds
from lssvm.tasks import Loss, RowLoss, SquaredError, Truth
from lssvm.tasks.weights import pick


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


@dataclass(frozen=True, eq=False)
class FoldTruth:
    """What out-of-fold predictions are compared with.

    Parameters
    ----------
    truth : Truth
        Of all rows.
    folds : Folds
    loss : Loss
    trained : Truth or None, default=None
        Targets and weights of the test rows, one fold after the other, as their folds have them;
        None: those of all rows.
    """

    truth: Truth
    folds: Folds
    loss: Loss
    trained: Truth | None = None

    def losses_in_passes(
        self, predict: Callable[[FloatArray], Predictions], C: FloatArray, budget: int
    ) -> Losses:
        """Return the losses of a path of C; several passes if predictions would not fit."""
        n, k = self.truth.Y.shape
        at_once = max(1, int(0.1 * budget) // (8 * n * (4 * k + 4)))
        pieces = [
            self.losses(predict(np.asarray(C[i : i + at_once], dtype=float)))
            for i in range(0, len(C), at_once)
        ]
        return Losses.joined(pieces)

    def losses(self, out: Predictions) -> Losses:
        """Return the losses of predictions; the squared error decides between equals."""
        tests, loss, squares = self.folds.test, self.loss, SquaredError()
        definite = np.isfinite(out.values).all(axis=(1, 2))
        out.values[~definite] = 0.0
        if pools(loss, np.array([len(rows) for rows in tests])):
            known, trained = self._known(np.concatenate(tests), slice(None))
            losses, share = loss(out.values, known)[:, None], np.ones(1)
            tie = squares(out.values, trained)
        else:
            spans = [slice(*ends) for ends in zip(out.starts[:-1], out.starts[1:], strict=True)]
            truths = [self._known(rows, span) for rows, span in zip(tests, spans, strict=True)]
            parts = [out.values[:, span] for span in spans]
            both = list(zip(parts, truths, strict=True))
            losses = np.stack([loss(part, known) for part, (known, _) in both], 1)
            mass = np.array([_mass(known) for known, _ in truths])
            share = mass / mass.sum()
            tie = np.stack([squares(part, trained) for part, (_, trained) in both], 1) @ share
            if not isinstance(loss, RowLoss):
                share = np.full(len(tests), 1.0 / len(tests))
        finite = definite & np.isfinite(tie)
        losses[~finite] = np.inf
        return Losses(losses, share, np.where(finite, tie, np.inf))

    def _known(self, rows: IntArray, span: slice) -> tuple[Truth, Truth]:
        """Return what the loss and the squared error compare some rows with."""
        known = self.truth.take(rows)
        if self.trained is None:
            return known, known
        Y = self.trained.Y[span]
        return replace(known, Y=Y), Truth(Y, known.labels, pick(self.trained.weight, span))


def _mass(truth: Truth) -> float:
    return float(len(truth.Y) if truth.weight is None else truth.weight.sum())
