"""An objective that keeps its best points, so that the final model needs no further pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.criteria.base import Losses


@dataclass(eq=False)
class KeptPoints:
    """A fixed-size objective that remembers the best of the points it was asked for.

    Parameters
    ----------
    objective : FixedSizeObjective or FixedCriterionObjective
    room : int
        Bytes that points may take; the best one is kept whatever it takes.

    Notes
    -----
    A search decides at its end, and not always for the smallest loss (accuracies that differ by
    chance count as equal): several points are kept, the worst is dropped first.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.tasks import SquaredError
    >>> from lssvm.tuning import FixedSizeObjective, HostRows, content_folds
    >>> from lssvm.search.kept_points import KeptPoints
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> rows, folds = HostRows(X, np.sin(X)), content_folds(X, 5)
    >>> objective = FixedSizeObjective(RBF, rows, X[::10], folds, SquaredError())
    >>> kept = KeptPoints(objective, room=10**6)
    >>> losses = kept.at(1.0).losses(np.ones(1))
    >>> kept.point(1.0).gamma
    1.0
    """

    objective: Any
    room: int
    _kept: list[tuple[tuple[float, float], Any]] = field(default_factory=list, repr=False)

    def at(self, gamma: float | None) -> _Watched:
        """Return the point at ``gamma``."""
        return _Watched(self, self.objective.at(gamma))

    def point(self, gamma: float | None) -> Any:
        """Return the point that was chosen, from memory where it is there."""
        for _, point in self._kept:
            if point.gamma == gamma:
                return point
        return self.objective.at(gamma)

    def keep(self, key: tuple[float, float], point: Any) -> None:
        """Put a point among the kept ones; the worst leave where there is no room."""
        if any(known is point for _, known in self._kept):
            return
        self._kept = sorted([*self._kept, (key, point)], key=lambda pair: pair[0])
        while len(self._kept) > 1 and len(self._kept) * _size(point) > self.room:
            self._kept.pop()


def _size(point: Any) -> int:
    """Return the bytes of a point: the moments of its cells, and as much for their systems."""
    m = int(point.Z.shape[0])
    return 2 * 8 * m * m * max(1, len(point.moments.cells))


@dataclass(frozen=True, eq=False)
class _Watched:
    memory: KeptPoints
    point: Any

    def losses(self, C: FloatArray) -> Losses:
        """Return the losses of a path of C."""
        losses: Losses = self.point.losses(C)
        mean = np.where(np.isnan(losses.mean), np.inf, losses.mean)
        i = np.lexsort((losses.tie, mean))[0]
        self.memory.keep((float(mean[i]), float(losses.tie[i])), self.point)
        return losses
