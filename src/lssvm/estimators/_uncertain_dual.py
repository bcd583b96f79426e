"""What the dual model keeps for error bars and probabilities, and how they are computed from it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, MemoryBudgetError
from lssvm.criteria.dual import DualPoint
from lssvm.estimators._uncertain import IntervalMixin, ProbabilityMixin
from lssvm.folds.content import content_folds
from lssvm.kernels import Precomputed, evaluate_expansion
from lssvm.solvers import DualSystem
from lssvm.uncertainty import DualPosterior, OutOfFold, Residuals, scaled_residuals


@dataclass(frozen=True, eq=False)
class DualPart:
    """Problems that share rows, C and gamma."""

    columns: IntArray
    rows: IntArray | None  # None: all
    system: DualSystem  # of all rows


@dataclass(frozen=True, eq=False)
class DualMemory:
    """What a fit leaves behind: its systems (no copies of the rows), targets and predictions.

    ``held`` are out-of-fold predictions (t, k) of the rows ``held_rows`` (t,), where
    cross-validation has made some.
    """

    parts: list[DualPart]
    Y: FloatArray
    weight: FloatArray | None
    held: FloatArray | None
    held_rows: IntArray | None
    loss: str  # of the fit, and its reduction: parameters may be set later
    reduction: Any


def needs_folds(model: Any) -> bool:
    """Say whether leave-one-out predictions could not stand in for those of the folds.

    The folds of a splitter may keep groups together; a precomputed matrix is not kept to leave rows
    out later.
    """
    return model._precomputed() or not (hasattr(model.cv, "__index__") or model.cv == "loo")


def remember(
    model: Any,
    problem: Any,
    system: DualSystem,
    parts: list[tuple[IntArray, IntArray | None, float, Any]],
    point: DualPoint | None,
) -> DualMemory:
    """Return what a fit leaves behind.

    ``parts`` are (columns, rows, C, gamma). The rows are those that the model holds as support
    vectors, which they nearly always all are.
    """
    held = held_rows = None
    regression = problem.labels is None
    C = {part[2] for part in parts}
    if point is not None and len(C) == 1:
        # A search without the kernel matrix may end where the matrix does not fit.
        with contextlib.suppress(MemoryBudgetError):
            held = np.concatenate([p[0] for p in point.predictions(np.array([C.pop()]))])
            held_rows = np.concatenate(point.objective.folds.test)
    rows = model._basis if len(model.support_) == system.n else problem.X.copy()
    if isinstance(system.kernel, Precomputed) or (model.reduction is not None and regression):
        systems = []  # neither the matrix nor rows that the model does without are kept
    else:
        whole = replace(system, rows=rows, basis=rows)
        systems = [
            DualPart(columns, own, replace(whole, kernel=model._kernel_at(gamma), C=C))
            for columns, own, C, gamma in parts
        ]
    Y = problem.Y.copy() if regression else problem.Y  # a regressor's may be the caller's array
    loss = getattr(model, "loss", "squared")
    return DualMemory(systems, Y, problem.weight, held, held_rows, loss, model.reduction)


def posterior_of(part: DualPart, Y: FloatArray) -> DualPosterior:
    """Return the posterior of some problems."""
    if part.rows is None:
        return DualPosterior(part.system, Y[:, part.columns])
    return DualPosterior(part.system.subset(part.rows), Y[np.ix_(part.rows, part.columns)])


def leave_one_out(posterior: DualPosterior) -> tuple[FloatArray, FloatArray]:
    """Return leave-one-out predictions and variances, equal rows left out together."""
    system = posterior.system
    if system.n < 2:
        raise InvalidInputError(
            f"Out-of-fold predictions need at least 2 rows but a problem has {system.n}."
        )
    return posterior.leave_out(content_folds(system.rows, None).test)


class DualIntervalMixin(IntervalMixin):
    """Error bars of `LSSVR`."""

    _memory: DualMemory

    def _make_posteriors(self) -> list[tuple[IntArray, DualPosterior]]:
        memory = self._memory
        if memory.reduction is not None:
            raise InvalidInputError(
                f"reduction={memory.reduction!r} has replaced the model that the error bars belong "
                "to: use reduction=None for standard deviations and intervals."
            )
        if memory.loss != "squared":
            raise InvalidInputError(
                f"loss={memory.loss!r} has no Gaussian posterior: use loss='squared' for standard "
                "deviations and intervals."
            )
        if not memory.parts:
            raise InvalidInputError(
                "kernel='precomputed' does not give K(x, x) of new rows, which their variance "
                "needs: pass the kernel as a function, or by name."
            )
        return [(part.columns, posterior_of(part, memory.Y)) for part in memory.parts]

    def _make_residuals(self) -> Residuals:
        memory = self._memory
        n, k = memory.Y.shape
        residuals, scale = np.empty((n, k)), np.empty((n, k))
        for columns, posterior in self._posteriors():
            assert isinstance(posterior, DualPosterior)
            left, variance = leave_one_out(posterior)
            residuals[:, columns] = memory.Y[:, columns] - left
            scale[:, columns] = np.sqrt(
                variance[:, None] * posterior.prior_variance + posterior.noise_variance
            )
        if memory.held is None or memory.held_rows is None:
            return scaled_residuals(residuals, scale, memory.weight)
        rows = memory.held_rows
        weight = None if memory.weight is None else memory.weight[rows]
        return scaled_residuals(memory.Y[rows] - memory.held, scale[rows], weight)


class DualProbabilityMixin(ProbabilityMixin):
    """Probabilities of `LSSVC`."""

    _memory: DualMemory
    _labels: IntArray
    _early: OutOfFold | None

    def _remember_scores(self, labels: IntArray) -> None:
        """Keep the out-of-fold scores that are at hand, or that would be lost."""
        self._labels = labels
        memory = self._memory
        self._early = None
        if memory.held is not None and memory.held_rows is not None:
            rows = memory.held_rows
            weight = None if memory.weight is None else memory.weight[rows]
            self._early = OutOfFold(memory.held, labels[rows], weight)
        elif self.reduction is not None and memory.parts:
            try:  # the reduced model does not keep the rows
                self._early = self._leave_one_out()
            except MemoryBudgetError:
                self._early = None
        if self.reduction is not None or self._early is not None:
            self._memory = replace(memory, parts=[], held=None, held_rows=None, Y=memory.Y[:0])

    def _make_out_of_fold(self) -> OutOfFold:
        if self._early is not None:
            return self._early
        if not self._memory.parts:
            raise InvalidInputError(
                "There are no out-of-fold scores to calibrate probabilities on: with a "
                "precomputed kernel, or a reduction of a model too large for the memory budget, "
                "they come from tuning. Set C='cv'."
            )
        return self._leave_one_out()

    def _leave_one_out(self) -> OutOfFold:
        memory = self._memory
        scores = np.empty(memory.Y.shape)
        for part in memory.parts:
            posterior = posterior_of(part, memory.Y)
            left, _ = leave_one_out(posterior)
            if part.rows is None:
                scores[:, part.columns] = left
                continue
            # Rows of other classes were not in the training set of these problems.
            system = posterior.system
            scores[:, part.columns] = evaluate_expansion(
                system.kernel,
                part.system.rows,
                system.basis,
                *posterior.expansion(),
                budget=system.budget,
                threads=system.threads,
            )
            scores[np.ix_(part.rows, part.columns)] = left
        return OutOfFold(scores, self._labels, memory.weight)
