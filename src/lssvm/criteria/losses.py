"""What cross-validation minimises: losses of out-of-fold predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray


class Criterion(Protocol):
    """A loss of predictions that their rows took no part in.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import Criterion, SquaredError
    >>> criterion: Criterion = SquaredError(np.zeros((3, 1)))
    >>> criterion.pooled
    True
    """

    @property
    def pooled(self) -> bool:
        """Whether a fold's loss is a weighted mean over its rows.

        Then folds may be pooled and are weighted by the weight of their rows; otherwise (a
        scorer) they count alike.
        """

    def __call__(self, predictions: FloatArray, rows: IntArray) -> FloatArray:
        """Return the loss of each of c candidates.

        ``predictions`` has shape (c, t, k): c candidates, the t rows ``rows``, k outputs.
        """


@runtime_checkable
class RowCriterion(Protocol):
    """A criterion that is a weighted mean over rows, which can therefore be met block by block.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import SquaredError
    >>> from lssvm.criteria.losses import RowCriterion
    >>> isinstance(SquaredError(np.zeros((3, 1))), RowCriterion)
    True
    """

    @property
    def weight(self) -> FloatArray | None:
        """The weights of all rows, None where they are one."""

    def rows(self, predictions: FloatArray, rows: IntArray) -> FloatArray:
        """Return the loss of each candidate on each row, shape (c, t)."""

    def finish(self, mean: FloatArray) -> FloatArray:
        """Return what is minimised from the means over the rows, shape (c,)."""


def _mean(values: FloatArray, weight: FloatArray | None, rows: IntArray) -> FloatArray:
    """Weighted mean over the rows of ``values`` (c, t)."""
    if weight is None:
        return np.asarray(values.mean(axis=1))
    part = weight[rows]
    return np.asarray(values @ part / part.sum())


@dataclass(frozen=True)
class SquaredError:
    """Mean squared error, averaged over the outputs.

    Parameters
    ----------
    Y : array of shape (n, k)
    weight : array of shape (n,) or None

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import SquaredError
    >>> SquaredError(np.zeros((2, 1)))(np.ones((1, 2, 1)), np.arange(2))
    array([1.])
    """

    Y: FloatArray
    weight: FloatArray | None = None
    pooled: bool = True

    def __call__(self, predictions: FloatArray, rows: IntArray) -> FloatArray:
        """Return the mean squared error of each candidate, shape (c,)."""
        return _mean(self.rows(predictions, rows), self.weight, rows)

    def rows(self, predictions: FloatArray, rows: IntArray) -> FloatArray:
        """Return the squared error on each row, shape (c, t)."""
        return np.asarray(((predictions - self.Y[rows][None]) ** 2).mean(axis=2))

    def finish(self, mean: FloatArray) -> FloatArray:
        """Return the mean as it is."""
        return mean


@dataclass(frozen=True)
class AbsoluteError:
    """Mean absolute error, averaged over the outputs.

    Parameters
    ----------
    Y : array of shape (n, k)
    weight : array of shape (n,) or None

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import AbsoluteError
    >>> AbsoluteError(np.zeros((2, 1)))(np.full((1, 2, 1), -3.0), np.arange(2))
    array([3.])
    """

    Y: FloatArray
    weight: FloatArray | None = None
    pooled: bool = True

    def __call__(self, predictions: FloatArray, rows: IntArray) -> FloatArray:
        """Return the mean absolute error of each candidate, shape (c,)."""
        return _mean(self.rows(predictions, rows), self.weight, rows)

    def rows(self, predictions: FloatArray, rows: IntArray) -> FloatArray:
        """Return the absolute error on each row, shape (c, t)."""
        return np.asarray(np.abs(predictions - self.Y[rows][None]).mean(axis=2))

    def finish(self, mean: FloatArray) -> FloatArray:
        """Return the mean as it is."""
        return mean


@dataclass(frozen=True)
class Misclassification:
    """Minus the accuracy (so that a score is its negative).

    Parameters
    ----------
    labels : int array of shape (n,)
    decide : callable
        From scores (t, k) to labels (t,).
    weight : array of shape (n,) or None

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import Misclassification
    >>> loss = Misclassification(np.array([0, 1]), lambda s: (s[:, 0] > 0).astype(int))
    >>> loss(np.array([[[-1.0], [-2.0]]]), np.arange(2))
    array([-0.5])
    """

    labels: IntArray
    decide: Callable[[FloatArray], IntArray]
    weight: FloatArray | None = None
    pooled: bool = True

    def __call__(self, predictions: FloatArray, rows: IntArray) -> FloatArray:
        """Return minus the accuracy of each candidate, shape (c,)."""
        return self.finish(_mean(self.rows(predictions, rows), self.weight, rows))

    def rows(self, predictions: FloatArray, rows: IntArray) -> FloatArray:
        """Return 1 for every row that is classified rightly, shape (c, t)."""
        c, t, k = predictions.shape
        decided = self.decide(predictions.reshape(c * t, k)).reshape(c, t)
        return np.asarray(decided == self.labels[rows][None], dtype=np.float64)

    def finish(self, mean: FloatArray) -> FloatArray:
        """Return minus the accuracy, rounded."""
        return -np.round(mean, 9)  # rows of next to no weight must not outvote the tie loss
