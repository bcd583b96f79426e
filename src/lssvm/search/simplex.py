"""The box of (log C, log gamma), the energy on it, and a simplex that walks in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from lssvm._core.arrays import FloatArray
from lssvm.search.recorder import Recorder
from lssvm.search.space import Space

NEVER = 1e100  # energy of a pair without a finite loss


def walk_simplex(box: Box, stage: str, start: FloatArray, edge: float, evaluations: int) -> None:
    """Walk downhill from ``start``, shape (dimension,), by the method of Nelder and Mead.

    Parameters
    ----------
    box : Box
    stage : str
        Name under which evaluations are recorded.
    start : ndarray of shape (dimension,)
    edge : float
        Edge of the first simplex, in log C and log gamma.
    evaluations : int
        Largest number of energies asked for; what is known already counts.
    """

    def energy(x: FloatArray) -> float:
        return box.energy(stage, box.reflect(x))

    options: Any = {
        "initial_simplex": np.vstack([start, start + edge * np.eye(box.dimension)]),
        "maxfev": evaluations,
        "xatol": 0.0,
        "fatol": 0.0,
    }
    minimize(energy, start, method="Nelder-Mead", options=options)


class Box:
    """The tuned coordinates, (log C, log gamma) or one of them, and the energy on them.

    Parameters
    ----------
    record : Recorder
        Where pairs are evaluated.
    space : Space
        What is tuned.
    """

    def __init__(self, record: Recorder, space: Space) -> None:
        bounds = [space.C_range] * space.tune_C + [space.gamma_bounds] * space.tune_gamma
        limits = np.log(np.array(bounds).reshape(-1, 2))
        self.low = limits[:, 0]
        self.width = limits[:, 1] - limits[:, 0]
        self.dimension = len(bounds)
        self.scale = 1.0
        self._tie_scale = 1.0
        self._record = record
        self._space = space

    def evaluate(self, stage: str, x: FloatArray) -> tuple[float, float]:
        """Return mean and tie loss at ``x``, shape (dimension,)."""
        space = self._space
        C = float(np.exp(x[0])) if space.C is None else space.C
        gamma = float(np.exp(x[-1])) if space.tune_gamma else space.gamma
        losses = self._record.evaluate(stage, gamma, np.array([C]))
        return float(losses.mean[0]), float(losses.tie[0])

    def start(self, found: list[tuple[float, float]]) -> None:
        """Fix the scales of the energy from the starters."""
        mean, tie = np.array([pair for pair in found if np.isfinite(pair).all()]).reshape(-1, 2).T
        if mean.size:
            self.scale = float(np.std(mean)) or float(np.abs(mean).max()) or 1.0
            self._tie_scale = float(np.median(np.abs(tie))) or 1.0

    def energy(self, stage: str, x: FloatArray) -> float:
        """Return the energy at ``x``: the mean loss, on plateaus with a slope of the tie loss."""
        mean, tie = self.evaluate(stage, x)
        if not np.isfinite(mean):
            return NEVER
        slope = tie / (self._tie_scale + abs(tie)) if np.isfinite(tie) else 1.0
        return mean + 1e-6 * self.scale * slope

    def reflect(self, x: FloatArray) -> FloatArray:
        """Return ``x``, shape (..., dimension), reflected at the walls; unchanged inside them."""
        t = (x - self.low) / self.width
        folded = 1.0 - np.abs(1.0 - np.mod(t, 2.0))
        return np.where((t >= 0.0) & (t <= 1.0), x, self.low + self.width * folded)
