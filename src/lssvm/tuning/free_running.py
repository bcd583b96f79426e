r"""Free-run validation: how far a model's own predictions carry it, for every C at once.

A series model that predicts one step well can still diverge when it is fed its own predictions. So
the loss here is that of the free run itself: stretches of the series are left out, the model is
trained on the rest and then runs through each stretch from the true values before it.

At one kernel parameter the kernel matrix is decomposed once. Leaving out the rows v of a stretch
changes the solution in closed form ([An2007]_, see :mod:`lssvm.tuning.dual`),

.. math::

    \beta^{(-v)} = \beta - G_{:v} G_{vv}^{-1} \beta_v, \qquad
    b^{(-v)} = b - \eta_v^T G_{vv}^{-1} \beta_v / s,

and all models, of every stretch and every C, run side by side as the rows of one matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import slices
from lssvm.kernels import Kernel
from lssvm.solvers import DualSystem
from lssvm.solvers.exact import EigenState, eigen_state
from lssvm.tuning.objective import Losses

RUNAWAY = 1e6
"""A free run is held within this many units: it has diverged, but numbers stay finite."""

Noise: TypeAlias = Callable[[FloatArray], FloatArray]
"""From the rows of a step (m, p, d) to what is added to their predictions (m, p)."""

_CHUNK = 4_000_000  # numbers in the largest temporary


@dataclass(frozen=True)
class Stretch:
    """A piece of a series through which models run freely.

    Attributes
    ----------
    history : array of shape (lags,)
        Values before the stretch, the newest first.
    targets : array of shape (steps,)
        Values of the stretch.
    left_out : int array
        Training rows that a model of this stretch must not have seen.
    exog : array of shape (steps, e) or None, default=None
        Further columns of the rows of the stretch.
    """

    history: FloatArray
    targets: FloatArray
    left_out: IntArray
    exog: FloatArray | None = None


Models: TypeAlias = Callable[[FloatArray], FloatArray]
"""m models: from rows (m, p, d), those of each of them, to predictions (m, p)."""


@dataclass(frozen=True)
class Expansions:
    """Dual models that share their kernel and their training rows."""

    kernel: Kernel
    basis: FloatArray
    alpha: FloatArray
    b: FloatArray

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Predict ``rows`` (m, p, d), those of each of the m models, and return (m, p)."""
        m, p, d = rows.shape
        out = np.empty((m, p))
        at_once = max(1, _CHUNK // (p * len(self.basis)))
        for part in slices(m, at_once):
            K = np.asarray(self.kernel(rows[part].reshape(-1, d), self.basis))
            K = K.reshape(-1, p, len(self.basis))
            out[part] = (K @ self.alpha[part, :, None])[:, :, 0]  # [Suykens2002, eq. (3.34)]
        return out + self.b[:, None]


class Predicts(Protocol):
    """A fitted regressor of any library."""

    def predict(self, X: FloatArray) -> Any:
        """Return predictions (n,) for rows (n, d)."""


@dataclass(frozen=True)
class FittedRegressors:
    """Fitted regressors, one for each model; a single one serves all."""

    regressors: Sequence[Predicts]

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Predict ``rows`` (m, p, d), those of each of the m models, and return (m, p)."""
        if len(self.regressors) == 1:
            flat = self.regressors[0].predict(rows.reshape(-1, rows.shape[2]))
            return np.asarray(flat, dtype=float).reshape(rows.shape[:2])
        pairs = zip(self.regressors, rows, strict=True)
        return np.stack(
            [np.asarray(one.predict(inputs), dtype=float).ravel() for one, inputs in pairs]
        )


def free_run(
    models: Models,
    history: FloatArray,
    steps: int,
    exog: FloatArray | None = None,
    noise: Noise | None = None,
) -> FloatArray:
    r"""Let models run on their own predictions.

    Iterates :math:`\hat y_{k+1} = f(\hat y_k, \hat y_{k-1}, \dots) + \epsilon_k` from given values,
    for m models and p paths of each at once.
    """
    m, p, lags = history.shape
    # Newest last, so that a step appends: the window moves, nothing is copied.
    track = np.empty((m, p, lags + steps))
    track[:, :, :lags] = history[:, :, ::-1]
    rows = np.empty((m, p, lags + (0 if exog is None else exog.shape[2])))
    for step in range(steps):
        rows[:, :, :lags] = track[:, :, step : step + lags][:, :, ::-1]
        if exog is not None:
            rows[:, :, lags:] = exog[:, None, step]
        value = models(rows)  # [Suykens2002, Section 3.5]
        if noise is not None:
            value = value + noise(rows)
        track[:, :, lags + step] = np.clip(np.nan_to_num(value, nan=RUNAWAY), -RUNAWAY, RUNAWAY)
    return track[:, :, lags:]


@dataclass(frozen=True)
class FreeRunObjective:
    """The mean squared error of free runs as a function of (C, gamma)."""

    kernel: Callable[[float | None], Kernel]
    rows: FloatArray
    targets: FloatArray
    stretches: Sequence[Stretch]
    sums: int = 0
    budget: int = 2**31
    threads: int = 1
    bias: bool = True

    def at(self, gamma: float | None) -> FreeRunPoint:
        """Decompose the kernel matrix at ``gamma``."""
        kernel, limits = self.kernel(gamma), (self.budget, self.threads)
        system = DualSystem(kernel, self.rows, self.rows, 1.0, None, *limits, self.bias)
        return FreeRunPoint(self, kernel, eigen_state(system))


@dataclass(frozen=True)
class FreeRunPoint:
    """Free runs at one kernel parameter, for every C."""

    objective: FreeRunObjective
    kernel: Kernel
    state: EigenState

    def models(self, C: FloatArray) -> Expansions:
        """Return the model of each stretch and C, stretch by stretch."""
        objective = self.objective
        path = self.state.bordered(np.asarray(C, dtype=float), objective.targets[:, None])
        solved = [path.without(s.left_out, path.errors(s.left_out)) for s in objective.stretches]
        alpha = np.concatenate([alpha[:, :, 0] for alpha, _ in solved])
        alpha[np.tile(~path.definite, len(solved))] = np.nan
        b = np.concatenate([b[:, 0] for _, b in solved])
        return Expansions(self.kernel, objective.rows, alpha, b)

    def runs(self, C: FloatArray) -> FloatArray:
        """Return the free runs of all stretches and C, shape (o, c, steps)."""
        stretches, c = self.objective.stretches, len(C)
        history = np.repeat(np.stack([s.history for s in stretches]), c, axis=0)
        exog, steps = stack_exog(stretches), len(stretches[0].targets)
        exog = None if exog is None else np.repeat(exog, c, axis=0)
        runs = free_run(self.models(C), history[:, None], steps, exog)
        return runs.reshape(len(stretches), c, steps)

    def losses(self, C: FloatArray) -> Losses:
        """Return the mean squared error of every stretch for the values ``C``, shape (c,)."""
        objective = self.objective
        targets = np.stack([s.targets for s in objective.stretches])[:, None]
        at_once = max(1, _CHUNK // (len(targets) * len(objective.targets)))
        pieces = []
        for part in slices(len(C), at_once):
            errors = level_errors(self.runs(C[part]) - targets, objective.sums)
            pieces.append((errors**2).mean(axis=2).T)
        fold = np.concatenate(pieces)  # (c, o)
        weight = np.full(len(targets), 1.0 / len(targets))
        return Losses(fold, weight, fold.mean(axis=1))


def level_errors(errors: FloatArray, sums: int) -> FloatArray:
    """Sum errors of differences (..., steps) up to errors of levels."""
    for _ in range(sums):
        errors = np.cumsum(errors, axis=-1)
    return errors


def stack_exog(stretches: Sequence[Stretch]) -> FloatArray | None:
    """Return the further columns of all stretches, shape (o, steps, e), None without any."""
    if stretches[0].exog is None:
        return None
    return np.stack([s.exog for s in stretches if s.exog is not None])
