"""What an objective promises a search: losses of a path of C at one kernel parameter.

An objective is expensive per kernel parameter and cheap per value of C: :meth:`Objective.at` does
the data pass and the factorisation, :meth:`Point.losses` reads a whole path of C from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.tasks import Loss, RowLoss

POOL_ABOVE = 50
"""With more folds than this losses that are means over rows are pooled into one."""
SCORED_ROWS = 3
"""Scores of folds are averaged; where a fold has fewer rows than this, all rows are one."""


def pools(loss: Loss, sizes: IntArray) -> bool:
    """Return whether the rows of all folds are judged as one, instead of fold by fold.

    Parameters
    ----------
    loss : Loss
        A mean over rows is pooled for speed where there are many folds, which changes nothing; a
        score only where a fold has next to no rows, so that its score would mean nothing.
    sizes : int array of shape (v,)
        Test rows of each fold; folds without any do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.criteria.base import pools
    >>> from lssvm.tasks import SquaredError
    >>> pools(SquaredError(), np.full(51, 9)), pools(lambda outputs, truth: outputs, np.full(51, 9))
    (True, False)
    """
    if isinstance(loss, RowLoss):
        return len(sizes) > POOL_ABOVE
    return bool(np.any((sizes > 0) & (sizes < SCORED_ROWS)))


@dataclass(frozen=True)
class Losses:
    """Cross-validated losses of a path of C at one kernel parameter; lower is better.

    Parameters
    ----------
    fold : ndarray of shape (c, v)
        Loss of each of c values of C on each of v folds. Use minus a score for a score.
    weight : ndarray of shape (v,)
        Non-negative weights of the folds that sum to one. A fold of weight zero is ignored, even
        where its loss is not a number.
    tie : ndarray of shape (c,)
        A smooth second loss (such as the mean squared error) that decides between equal means.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import Losses
    >>> losses = Losses(fold=np.array([[1.0, 3.0]]), weight=np.array([0.5, 0.5]), tie=np.zeros(1))
    >>> losses.mean, losses.std
    (array([2.]), array([1.]))
    """

    fold: FloatArray
    weight: FloatArray
    tie: FloatArray

    def __post_init__(self) -> None:
        for name in ("fold", "weight", "tie"):
            value = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, value)
        rows, folds = self.fold.shape if self.fold.ndim == 2 else (-1, -1)
        if self.weight.shape != (folds,) or self.tie.shape != (rows,):
            raise InvalidInputError(
                f"Losses got fold {self.fold.shape}, weight {self.weight.shape} and tie "
                f"{self.tie.shape}: give (c, v), (v,) and (c,)."
            )
        if np.any(self.weight < 0) or not np.isclose(self.weight.sum(), 1.0):
            raise InvalidInputError(
                f"Losses got fold weights {self.weight}: give non-negative weights that sum to 1."
            )

    @classmethod
    def single(cls, loss: FloatArray, tie: FloatArray | None = None) -> Losses:
        """Return losses (c,) of one fold; what has no finite tie loss has no finite loss."""
        tie = loss if tie is None else tie
        finite = np.isfinite(tie)
        loss = np.where(finite, loss, np.inf)
        return cls(loss[:, None], np.ones(1), np.where(finite, tie, np.inf))

    @classmethod
    def joined(cls, pieces: Sequence[Losses]) -> Losses:
        """Return the losses of several stretches of a path of C."""
        fold, tie = (np.concatenate([getattr(p, name) for p in pieces]) for name in ("fold", "tie"))
        return cls(fold, pieces[0].weight, tie)

    @property
    def mean(self) -> FloatArray:
        """Weighted mean over the folds, shape (c,), to 13 digits: beyond them, equals are equal."""
        # A plain sum, not a BLAS product: a row's mean must not depend on the rows beside it.
        mean: FloatArray = (self._weighed * self.weight).sum(axis=1)
        size = np.where(np.isfinite(mean) & (mean != 0), np.abs(mean), 1.0)
        unit = 10.0 ** np.clip(12.0 - np.floor(np.log10(size)), -290.0, 290.0)
        rounded = np.round(mean * unit) / unit
        return np.where(np.isfinite(rounded), rounded, mean)

    @property
    def std(self) -> FloatArray:
        """Weighted standard deviation over the folds, shape (c,)."""
        with np.errstate(invalid="ignore"):  # an infinite loss has no deviation
            deviation = self._weighed - self.mean[:, None]
            std: FloatArray = np.sqrt((deviation**2 * self.weight).sum(axis=1))
        return std

    @property
    def _weighed(self) -> FloatArray:
        return np.where(self.weight > 0, self.fold, 0.0)


class Point(Protocol):
    """What was factorised at one kernel parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import Losses
    >>> class Bowl:
    ...     def losses(self, C):
    ...         loss = (np.log(C) - 1.0) ** 2
    ...         return Losses(loss[:, None], np.ones(1), loss)
    >>> Bowl().losses(np.array([1.0])).mean
    array([1.])
    """

    def losses(self, C: FloatArray) -> Losses:
        """Return the losses of the values ``C``, shape (c,), without another data pass."""
        ...


class Objective(Protocol):
    """What is minimised.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import Losses, PathSearch, Space
    >>> class Bowl:
    ...     def at(self, gamma):
    ...         self.gamma = gamma
    ...         return self
    ...
    ...     def losses(self, C):
    ...         loss = np.log(C) ** 2 + np.log(self.gamma) ** 2
    ...         return Losses(loss[:, None], np.ones(1), loss)
    >>> result = PathSearch().run(Bowl(), Space(gamma_start=3.0))
    >>> bool(result.loss < 0.05)
    True
    """

    def at(self, gamma: float | None) -> Point:
        """Do the expensive part at one kernel parameter; None where the kernel has none."""
        ...
