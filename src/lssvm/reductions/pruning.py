"""Sparseness by pruning the spectrum of support values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special, stats

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, not_known
from lssvm.data.folds import Folds, hash_rows
from lssvm.kernels import Precomputed
from lssvm.solvers import DualSystem
from lssvm.tasks import RowLoss, Targets
from lssvm.tuning.dual import DualObjective
from lssvm.tuning.objective import Group


@dataclass(frozen=True)
class Prune:
    r"""Settings of the pruning.

    Parameters
    ----------
    step : float, default=0.05
        Part of the rows that are left which is removed per step; at least one.
    level : float, default=0.05
        Significance level at which a fall of the cross-validated performance ends the pruning
        (table 3.5 of [Suykens2002]_ uses 0.05 and 0.01).
    retune : bool, default=False
        When the performance falls, choose (C, gamma) again on the remaining rows, and continue if
        that restores it. Needs an estimator whose C or gamma is "cv".
    against : {"full", "previous"}, default="full"
        What a step is tested against: the model of all rows, or the model of the step before. The
        chapter leaves it open ("decreases significantly"). Small falls add up where each is tested
        against the one before, so "previous" keeps fewer rows, and no bound on the fall in all.
    by : {"size", "sign"}, default="size"
        Which rows leave: those of the smallest :math:`|\alpha_k|`, or those of the smallest
        :math:`\alpha_k` with its sign, the most negative first. Those of a classifier (eq. (3.5))
        are negative beyond their target, far from the boundary; regressors have no such sign.

    Notes
    -----
    Steps and tests count observations: a row of weight 2 is the row twice, and equal rows of equal
    targets leave together.

    Examples
    --------
    >>> from lssvm.reductions import Prune
    >>> Prune(level=0.01).step
    0.05
    """

    step: float = 0.05
    level: float = 0.05
    retune: bool = False
    against: Literal["full", "previous"] = "full"
    by: Literal["size", "sign"] = "size"

    def __post_init__(self) -> None:
        if not 0 < self.step < 1 or not 0 < self.level < 1:
            raise InvalidInputError(
                f"Prune(step={self.step!r}, level={self.level!r}) is not usable: both must lie "
                "between 0 and 1."
            )
        if self.against not in ("full", "previous"):
            raise InvalidInputError(
                f"Prune(against={self.against!r}) is not known: use 'full' (each step is tested "
                "against the model of all rows) or 'previous' (against the step before)."
            )
        if self.by not in ("size", "sign"):
            raise not_known("by", self.by, "give 'size' or 'sign'.")


@dataclass(frozen=True)
class WrongSides(RowLoss):
    """Share of the binary problems of a row whose output lies on the wrong side of zero."""

    def rows(self, outputs: FloatArray, targets: Targets) -> FloatArray:
        """Return the share of each row, shape (c, t)."""
        return np.asarray(np.mean((outputs > 0) != (targets.Y > 0)[None], axis=2))


@dataclass(frozen=True)
class PruneStep:
    """One stage: how many rows were left, their mean loss, the p-value of its rise."""

    n_rows: int
    loss: float
    p_value: float


@dataclass(frozen=True)
class Pruned:
    """Rows that are left, the parameters they were trained with, and the stages."""

    rows: IntArray
    C: float
    gamma: float | None
    steps: list[PruneStep]


def prune(
    system: DualSystem,
    Y: FloatArray,
    folds: Folds,
    loss: RowLoss,
    alpha: FloatArray,
    solve: Callable[[DualSystem, FloatArray], FloatArray],
    settings: Prune,
    retune: Callable[[IntArray], tuple[float | None, DualSystem]] | None = None,
    gamma: float | None = None,
    weight: FloatArray | None = None,
) -> Pruned:
    r"""Remove the rows of the smallest support values, step by step.

    The algorithm of section 3.7 of [Suykens2002]: train, remove the 5 % of the rows that are left
    with the smallest :math:`|\alpha|` (a row norm where there are several outputs), or the smallest
    :math:`\alpha y` (their mean), train again, until the cross-validated performance falls
    significantly.
    """
    rows = kept = np.arange(system.n)
    count = np.ones(system.n) if weight is None else np.asarray(weight, dtype=np.float64)
    unit = _equal_observations(system, Y)
    tested = np.unique(np.concatenate(folds.test))  # a splitter may leave rows out
    targets, mass = Targets(Y[tested]), count[tested]

    def mean(losses: FloatArray) -> float:
        return float(np.average(losses, weights=mass))

    def losses_of(system: DualSystem, rows: IntArray) -> FloatArray:
        outputs = _out_of_fold(system, Y, folds, rows, loss)[tested]
        return np.asarray(loss.rows(outputs[None], targets)[0])

    reference = losses_of(system, rows)
    steps = [PruneStep(system.n, mean(reference), 1.0)]
    C, current, kept_gamma = system.C, system, gamma
    while True:
        values = alpha if settings.by == "size" else np.sign(Y[rows]) * alpha
        left = _without_smallest(
            values, unit[rows], count[rows], settings.step, settings.by == "sign"
        )
        if len(np.unique(unit[rows[left]])) < 2:
            break
        rows = rows[left]
        losses = losses_of(current, rows)
        p_value = _rise(reference, losses, mass)
        if p_value < settings.level and settings.retune and retune is not None:
            new_gamma, candidate = retune(rows)
            again = losses_of(candidate, rows)
            if mean(again) < mean(losses):
                losses, p_value = again, _rise(reference, again, mass)
                current, gamma = candidate, new_gamma
        steps.append(PruneStep(len(rows), mean(losses), p_value))
        if p_value < settings.level:
            break
        kept, C, kept_gamma = rows, current.C, gamma
        if settings.against == "previous":
            reference = losses
        alpha = solve(current.subset(rows), Y[rows])
    return Pruned(kept, C, kept_gamma, steps)


def _equal_observations(system: DualSystem, Y: FloatArray) -> IntArray:
    """Return a number for every row (n,), in the order of the rows; equal observations share it."""
    if isinstance(system.kernel, Precomputed):
        return np.arange(system.n)
    keys = np.column_stack([hash_rows(system.rows), hash_rows(Y)])
    _, first, member = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[member.ravel()], dtype=np.intp)


def _without_smallest(
    alpha: FloatArray, unit: IntArray, count: FloatArray, step: float, signed: bool = False
) -> IntArray:
    """Return the rows that are left without a part of the observations, of small support values."""
    numbers, member = np.unique(unit, return_inverse=True)
    mass = np.bincount(member, count)
    total = np.stack([np.bincount(member, column) for column in alpha.T], 1)
    size = total.mean(axis=1) if signed else np.linalg.norm(total, axis=1)
    order = np.argsort(size / mass, kind="stable")
    within = np.cumsum(mass[order]) <= step * mass.sum() * (1.0 + 1e-12)
    dropped = np.zeros(len(numbers), dtype=bool)
    dropped[order[: max(1, int(within.sum()))]] = True
    return np.flatnonzero(~dropped[member])


def _out_of_fold(
    system: DualSystem, Y: FloatArray, folds: Folds, rows: IntArray, loss: RowLoss
) -> FloatArray:
    """Predict every row by the model of the kept rows outside its fold, shape (n, k)."""
    group = Group(np.arange(Y.shape[1]), rows)
    objective = DualObjective(lambda _: system.kernel, system, Targets(Y), folds, loss, [group])
    predictions = objective.at(None).predictions(np.array([system.C]))
    out = np.full(Y.shape, np.nan)
    for test, values in zip(folds.test, predictions, strict=True):
        out[test] = values[0]
    return out


def _rise(before: FloatArray, after: FloatArray, mass: FloatArray) -> float:
    """One-sided p-value that the paired losses of observations have risen."""
    tested = np.isfinite(before) & np.isfinite(after)
    before, after, mass = before[tested], after[tested], mass[tested]
    difference = after - before
    worse, better = float(mass[difference > 0].sum()), float(mass[difference < 0].sum())
    if worse + better == 0:
        return 1.0
    if set(np.unique(before)) | set(np.unique(after)) <= {0.0, 1.0}:
        # P(at least ``worse`` of ``worse + better``) at chance one half.
        return float(special.betainc(worse, better + 1.0, 0.5)) if worse > 0 else 1.0
    total = float(mass.sum())
    variance = float(mass @ (before - np.average(before, weights=mass)) ** 2) / total
    error = np.sqrt(variance / total)
    return float(stats.norm.sf(float(mass @ difference) / total / error)) if error > 0 else 0.0
