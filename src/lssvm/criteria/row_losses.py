"""Losses that are sums over rows, for predictions that are made block by block and not kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.criteria.losses import Criterion
from lssvm.moments import Piece


class RowLoss(Protocol):
    """A loss per row whose weighted mean is minimised.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Piece
    >>> from lssvm.criteria.row_losses import AbsoluteRows
    >>> zero = np.zeros(1, dtype=int)
    >>> AbsoluteRows().rows(np.full((2, 1, 1), 3.0), Piece(None, np.ones((1, 1)), None, zero, zero,
    ...                                                    zero))
    array([[2.],
           [2.]])
    """

    def rows(self, outputs: FloatArray, rows: Piece) -> FloatArray:
        """Return the losses (c, b) of c candidates on b rows; ``outputs`` is (c, b, k)."""

    def finish(self, mean: FloatArray) -> FloatArray:
        """Return what is minimised from the weighted means."""


@dataclass(frozen=True)
class AbsoluteRows:
    """Absolute error, averaged over the outputs."""

    def rows(self, outputs: FloatArray, rows: Piece) -> FloatArray:
        """Return the losses of every row."""
        return np.asarray(np.abs(outputs - rows.Y[None]).mean(axis=2))

    def finish(self, mean: FloatArray) -> FloatArray:
        """Return the mean absolute error."""
        return mean


@dataclass(frozen=True)
class WrongRows:
    """Misclassification; what is minimised is minus the accuracy.

    Parameters
    ----------
    decide : callable
        From outputs (t, k) to class numbers (t,).
    """

    decide: Callable[[FloatArray], IntArray]

    def rows(self, outputs: FloatArray, rows: Piece) -> FloatArray:
        """Return 1 for every row that is classified wrongly."""
        c, b, k = outputs.shape
        decided = self.decide(outputs.reshape(c * b, k)).reshape(c, b)
        return np.asarray(decided != rows.label[None], dtype=np.float64)

    def finish(self, mean: FloatArray) -> FloatArray:
        """Return minus the accuracy."""
        # as in Misclassification: rows of next to no weight must not outvote the tie loss
        return -np.round(1.0 - mean, 9)


@dataclass(frozen=True)
class StoredScores:
    """Any other criterion: it needs the predictions of all rows, which are then kept.

    Parameters
    ----------
    criterion : callable
        From targets (n, k), class numbers (n,) and weights (n,) or None, to a `Criterion`.
    """

    criterion: Callable[[FloatArray, IntArray, FloatArray | None], Criterion]
