"""Synthetic objectives for the tests of the searches."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.tuning.objective import Losses

# The searches that work on any objective: circulant matrices stand in for a kernel matrix only.
GENERAL = ["csa", "grid", "path", "shrinking"]

Surface = Callable[[FloatArray, float], FloatArray]  # (log C, log gamma) -> loss


class SurfacePoint:
    def __init__(self, objective: SurfaceObjective, gamma: float | None) -> None:
        self.objective, self.gamma = objective, gamma

    def losses(self, C: FloatArray) -> Losses:
        return self.objective.losses(self.gamma, C)


class SurfaceObjective:
    """A loss surface over (log C, log gamma), spread over three folds of unequal weight.

    ``interrupt_at`` and ``interrupt_losses`` raise KeyboardInterrupt in that call (from 1).
    """

    offsets = np.array([0.0, 0.25, -0.5])
    weight = np.array([0.4, 0.4, 0.2])  # the offsets cancel

    def __init__(
        self,
        surface: Surface,
        tie: Surface | None = None,
        *,
        interrupt_at: int = 0,
        interrupt_losses: int = 0,
    ) -> None:
        self.surface, self.tie = surface, tie or surface
        self.interrupt_at, self.interrupt_losses = interrupt_at, interrupt_losses
        self.gammas: list[float | None] = []
        self.asked: list[tuple[float | None, float]] = []
        self.calls = 0
        self.most_alive = 0
        self._alive: weakref.WeakSet[SurfacePoint] = weakref.WeakSet()

    def at(self, gamma: float | None) -> SurfacePoint:
        self.gammas.append(gamma)
        if len(self.gammas) == self.interrupt_at:
            raise KeyboardInterrupt
        point = SurfacePoint(self, gamma)
        self._alive.add(point)
        self.most_alive = max(self.most_alive, len(self._alive))
        return point

    def losses(self, gamma: float | None, C: FloatArray) -> Losses:
        self.calls += 1
        if self.calls == self.interrupt_losses:
            raise KeyboardInterrupt
        self.asked += [(gamma, c) for c in C.tolist()]
        u = 0.0 if gamma is None else float(np.log(gamma))
        loss = self.surface(np.log(C), u)
        tie = self.tie(np.log(C), u)
        return Losses(loss[:, None] + self.offsets, self.weight, tie)


def bowl(c0: float = 2.0, g0: float = -1.0, tilt: float = 0.0) -> Surface:
    """A smooth bowl with its minimum 0 at (c0, g0)."""
    return lambda c, g: (c - c0) ** 2 / 20 + (g - g0) ** 2 / 10 + tilt * (c - c0) * (g - g0) / 10


def two_valleys(c: FloatArray, g: float) -> FloatArray:
    """Minimum 0.1 at g = 3.5; the other valley, at g = -3, has 0.4 and is seen first."""
    shallow = 0.6 * np.exp(-((c - 1) ** 2) / 20 - (g + 3.0) ** 2 / 2)
    deep = 0.9 * np.exp(-((c - 5) ** 2) / 20 - (g - 3.5) ** 2 / 2)
    return 1 - shallow - deep


def banana(c: FloatArray, g: float) -> FloatArray:
    """A narrow valley along which C and gamma replace each other; minimum 0 at (-0.4, 2)."""
    return np.log1p((c + 1.7 * g - 3) ** 2) + 0.02 * (g - 2) ** 2


def steps(surface: Surface) -> Surface:
    """Round a surface as a misclassification rate is: plateaus of height 1/20, at most 1/2."""
    return lambda c, g: np.minimum(np.round(2 * surface(c, g)) / 20, 0.5)


def rough(c: FloatArray, g: float) -> FloatArray:
    """A bowl with reproducible noise in every bit, and pairs without a finite loss."""
    noise = np.modf(np.sin(12.9898 * c + 78.233 * g) * 43758.5453)[0]
    loss = bowl(3.0, 1.0)(c, g) + 0.1 * noise
    return np.where(c > 10.0, np.inf, np.where(c < -6.0, np.nan, loss))
