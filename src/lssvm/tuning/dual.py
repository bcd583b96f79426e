r"""Exact cross-validation of the dual model from one factorisation per kernel parameter.

Let M be the bordered matrix of :class:`lssvm.solvers.DualSystem` and write its inverse by blocks,
G the one that belongs to the support values. Leaving out the rows v of a fold changes the solution
in closed form:

.. math::

    e_v = G_{vv}^{-1} \beta_v, \qquad
    \beta^{(-v)} = \beta - G_{:v} e_v, \qquad
    b^{(-v)} = b - \eta_v^T e_v / s,

where e_v are the scaled residuals of the left-out rows, y - prediction ([An2007]_ for folds,
[Cawley2004]_ for single rows). With an eigendecomposition of the kernel matrix G_vv costs one
product per fold and value of C, its diagonal alone O(n) per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lssvm._core.arrays import Array, FloatArray, IntArray
from lssvm._core.blocks import require, slices
from lssvm.data.folds import Folds
from lssvm.kernels import Kernel, Linear, Precomputed
from lssvm.solvers import DualSystem
from lssvm.solvers.base import relative_residual
from lssvm.solvers.exact import BorderedPath, EigenState, eigen_state, leave_folds_out
from lssvm.tasks import Loss, RowLoss, Targets
from lssvm.tuning.objective import FoldScorer, FoldTargets, Group, Losses, Predictions

_CHUNK = 4_000_000  # numbers in the largest temporary of a fold


@dataclass(frozen=True)
class DualObjective:
    """The cross-validated loss of a dual model as a function of (C, gamma)."""

    kernel: Callable[[float | None], Kernel]
    system: DualSystem
    targets: Targets
    folds: Folds
    loss: Loss
    groups: Sequence[Group]
    per_fold: FoldTargets | None = None

    @cached_property
    def solved_for(self) -> tuple[FloatArray, Sequence[Group]]:
        """The targets that systems are solved for, and their groups."""
        if self.per_fold is None or not self.per_fold.fisher:
            return np.asarray(self.targets.Y, dtype=np.float64), self.groups
        return self.per_fold.indicators(self.groups)

    def combine(self, out: Predictions) -> Predictions:
        """Return predictions of the targets from those of what was solved for."""
        if self.per_fold is None or not self.per_fold.fisher:
            return out
        return self.per_fold.combine(out, self.groups, self.solved_for[1])

    @cached_property
    def scorer(self) -> FoldScorer:
        """What predictions are compared with."""
        targets = replace(self.targets, X=None) if isinstance(self.loss, RowLoss) else self.targets
        trained = None if self.per_fold is None else self.per_fold.targets(self.folds)
        return FoldScorer(targets, self.folds, self.loss, trained)

    @cached_property
    def root_weights(self) -> list[tuple[IntArray, FloatArray | None]]:
        """Folds that share the weights of their training rows, and the roots of these."""
        if self.per_fold is None or not self.per_fold.balanced:
            return [(np.arange(len(self.folds)), self.system.root_weight)]
        return self.per_fold.root_weights()

    def at(self, gamma: float | None) -> DualPoint:
        """Prepare the kernel matrix of every group at ``gamma``."""
        kernel = self.kernel(gamma)
        Y, groups = self.solved_for
        self._require()
        parts: list[_Part] = []
        for which, root in self.root_weights:
            system = replace(self.system, kernel=kernel, root_weight=root)
            for group in groups:
                parts += _parts_of(system, group, self.folds, which, Y)
        return DualPoint(self, parts)

    def _require(self) -> None:
        """Refuse more factorisations than fit."""
        n, train, sets = self.system.n, self.folds.train, len(self.root_weights)
        if train is None and sets == 1:  # whose memory is checked where it is made
            return
        groups = [np.arange(n) if group.rows is None else group.rows for group in self.groups]
        trained = [np.arange(n)] * sets if train is None else train
        sizes = [
            int(np.isin(rows_of_fold, rows).sum()) for rows in groups for rows_of_fold in trained
        ]
        require(
            self.system.dtype.itemsize * (sum(m**2 for m in sizes) + 2 * max(sizes) ** 2),
            self.system.budget,
            what=f"Cross-validation on {len(self.folds)} training sets that are not the rows "
            "outside a fold, or have their own class weights,",
            advice="Use a number of folds as cv, fewer splits, or raise memory_budget.",
        )


@dataclass(frozen=True)
class DualPoint:
    """A dual model at one kernel parameter, for every C."""

    objective: DualObjective
    parts: list[_Part]

    def predictions(self, C: FloatArray) -> list[FloatArray]:
        """Return the out-of-fold predictions of each fold, each of shape (c, t, k)."""
        out = self._predict(C)
        return [out.fold(v) for v in range(len(self.objective.folds))]

    def _predict(self, C: FloatArray) -> Predictions:
        out = Predictions.zeros(self.objective.folds, len(C), self.objective.solved_for[0].shape[1])
        for part in self.parts:
            part.predict(C, out)
        return self.objective.combine(out)

    def solution(
        self, group: int, C: float, Y: FloatArray
    ) -> tuple[FloatArray, FloatArray, float] | None:
        """Return (alpha, b, relative residual) of one group trained on all its rows.

        None where folds were factorised one by one, or one value of C was not worth a spectrum.
        Cost: O(n^2 k), nothing is factorised.
        """
        per_fold = self.objective.per_fold
        if self.objective.folds.train is not None or not self.parts[group].decomposed:
            return None
        if per_fold is not None and per_fold.balanced:  # no fold has the weights of all rows
            return None
        state = self.parts[group].state
        RY = state.u[:, None] * Y
        path = state.bordered(np.array([C]), RY)
        beta, b = path.beta[:, 0], path.b[0]
        H_beta = state.Q @ ((state.lam + 1.0 / C)[:, None] * (state.Q.T @ beta))
        # Relative to the targets without their offset, which the bias takes up.
        centre = state.u @ RY / (state.u @ state.u) if state.bias else np.zeros_like(b)
        centred = RY - state.u[:, None] * centre
        residual = relative_residual(H_beta, beta, b - centre, state.u, centred, state.bias)
        return state.u[:, None] * beta, b, residual

    def losses(self, C: FloatArray) -> Losses:
        """Return the losses of a path of C; several passes if predictions would not fit."""
        for part in self.parts:
            if len(C) > 1:
                _ = part.state
        return self.objective.scorer.losses_in_passes(
            self._predict, C, self.objective.system.budget
        )


@dataclass(frozen=True)
class _Part:
    """One factorisation, of the training rows of a fold, or of all rows: then all folds follow."""

    system: DualSystem
    columns: IntArray
    RY: FloatArray  # scaled targets of the group's rows and columns
    folds: IntArray  # those that have the weights of the system
    local: list[IntArray]  # rows of the factorisation in each fold
    place: list[IntArray]  # their places within the fold
    others: list[IntArray]  # places within the fold of rows outside the group
    cross: list[FloatArray]  # kernel between those and the group's rows, times R

    @cached_property
    def state(self) -> EigenState:
        """The spectrum, computed for a whole path of C."""
        return eigen_state(self.system)

    @property
    def decomposed(self) -> bool:
        """Whether the spectrum is at hand."""
        return "state" in self.__dict__

    def predict(self, C: FloatArray, out: Predictions) -> None:
        if len(C) == 1 and not self.decomposed and self._predict_one(float(C[0]), out):
            return
        path = self.state.bordered(C, self.RY)
        n = len(self.state.lam)
        folds = zip(self.local, self.others, strict=True)
        single = np.array([n > 1 and len(rows) == 1 and len(others) == 0 for rows, others in folds])
        if np.any(single):
            self._predict_singles(path, np.flatnonzero(single), out)
        for i in np.flatnonzero(~single):
            at_once = max(1, _CHUNK // (n * max(1, len(self.RY[0])) + len(self.local[i]) ** 2))
            fold = out.fold(int(self.folds[i]))
            for candidates in slices(len(C), at_once):
                self._predict_fold(path, candidates, int(i), fold)
        lost = np.flatnonzero(~path.definite)
        out.values[np.ix_(lost, np.arange(out.values.shape[1]), self.columns)] = np.inf

    def _predict_one(self, C: float, out: Predictions) -> bool:
        """Predict all folds for one C without the spectrum; False where it is needed."""
        columns = self.columns
        predicted = leave_folds_out(self.system, self.RY, C, self.local, self.cross)
        if predicted is None:
            return False
        for i, (inside, outside) in enumerate(predicted):
            fold = out.fold(int(self.folds[i]))
            fold[0, self.place[i][:, None], columns] = inside
            fold[0, self.others[i][:, None], columns] = outside
        return True

    def _predict_singles(self, path: BorderedPath, single: IntArray, out: Predictions) -> None:
        """Predict folds of one row each: only the diagonal of G is needed."""
        predicted = (self.RY[:, None, :] - path.row_errors()) / self.state.u[:, None, None]
        rows = np.array([self.local[i][0] for i in single])
        places = out.starts[self.folds[single]]
        out.values[:, places[:, None], self.columns] = np.moveaxis(predicted[rows], 1, 0)

    def _predict_fold(self, path: BorderedPath, part: slice, i: int, out: FloatArray) -> None:
        """Predict one fold for some values of C at once."""
        rows, columns, u = self.local[i], self.columns, self.state.u
        if len(rows) == len(u):  # nothing is left to train on
            out[part, :, columns] = 0.0
            return
        if len(rows):
            e = path.errors(rows, part)  # (c, t, k)
            out[part, self.place[i][:, None], columns] = (self.RY[rows] - e) / u[rows, None]
        if len(self.others[i]):
            beta, b = np.moveaxis(path.beta[:, part], 1, 0), path.b[part]  # (c, n, k), (c, k)
            if len(rows):
                beta, b = path.without(rows, e, part)
            out[part, self.others[i][:, None], columns] = self.cross[i] @ beta + b[:, None, :]


def _parts_of(
    system: DualSystem, group: Group, folds: Folds, which: IntArray, Y: FloatArray
) -> Iterator[_Part]:
    """Yield the factorisation of a group, or one for each fold whose training rows were given."""
    everyone = np.arange(system.n) if group.rows is None else group.rows
    if folds.train is None:
        position = np.full(system.n, -1, dtype=np.intp)
        position[everyone] = np.arange(len(everyone))
        yield _part_of(system, everyone, group.columns, folds.test, which, Y, position)
        return
    for v in which:
        rows = folds.train[v][np.isin(folds.train[v], everyone)]
        if len(rows):
            outside = np.full(system.n, -1, dtype=np.intp)  # whatever a splitter returns
            yield _part_of(system, rows, group.columns, folds.test, np.array([v]), Y, outside)


def _part_of(
    system: DualSystem,
    rows: IntArray,
    columns: IntArray,
    tests: list[IntArray],
    which: IntArray,
    Y: FloatArray,
    position: IntArray,
) -> _Part:
    """Return the factorisation of some rows; ``position`` is where it has a row, -1: nowhere."""
    local, place, others, cross = [], [], [], []
    sub = _subsystem(system, rows)
    for test in (tests[v] for v in which):
        inside = position[test] >= 0
        local.append(position[test[inside]])
        place.append(np.flatnonzero(inside))
        others.append(np.flatnonzero(~inside))
        cross.append(_cross(sub, system.rows, test[~inside]))
    RY = sub.u[:, None] * Y[np.ix_(rows, columns)]
    return _Part(sub, columns, RY, which, local, place, others, cross)


def _subsystem(system: DualSystem, rows: IntArray) -> DualSystem:
    if len(rows) == system.n and np.array_equal(rows, np.arange(system.n)):
        return system
    return system.subset(rows)


def _cross(sub: DualSystem, rows: Array, test: IntArray) -> FloatArray:
    """Return K(rows, basis) R, the part of a prediction that multiplies beta."""
    if len(test) == 0:
        return np.empty((0, sub.n), sub.dtype)
    return np.asarray(sub.kernel(rows[test], sub.basis)) * sub.u[None, :]


def C_range(system: DualSystem, low: float = 1e-3, high: float = 1e6) -> tuple[float, float]:
    """Return the range of C that is searched, in units of the kernel.

    C times the kernel has no unit. Radial kernels are at most one; the scale of a linear or a
    precomputed kernel is the mean diagonal of its centred matrix, and the range is divided by it,
    so that multiplying X by a constant changes nothing.
    """
    weight = system.u.astype(np.float64) ** 2
    weight = weight / weight.sum()
    if isinstance(system.kernel, Linear):
        squares = np.asarray(system.kernel.diag(system.rows), dtype=np.float64)
        mean = np.asarray(weight @ system.rows).ravel()
        scale = float(weight @ squares - mean @ mean)
    elif isinstance(system.kernel, Precomputed):
        K = np.asarray(system.kernel(system.rows, system.basis), dtype=np.float64)
        scale = float(weight @ np.diagonal(K) - weight @ K @ weight)
    else:
        scale = 1.0
    unit = scale if np.isfinite(scale) and scale > 0 else 1.0
    return low / unit, high / unit
