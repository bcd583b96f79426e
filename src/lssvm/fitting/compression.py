"""A very sparse fixed-size model fitted to the outputs of a model for tables."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import run_blocks
from lssvm._core.errors import InvalidInputError
from lssvm.backends.host import Host
from lssvm.fitting.record import Member
from lssvm.fitting.stacking import StackLoss, fit_stack
from lssvm.fitting.table_prototypes import C_GRID, fold_moments, prototypes_of, score_widths
from lssvm.fitting.table_record import Problem, TableFit
from lssvm.fitting.table_scoring import make_scorer
from lssvm.fitting.table_work import Clock
from lssvm.kernels import Kernel
from lssvm.kernels.base import Expansion
from lssvm.kernels.radial import KERNEL_OF
from lssvm.local import Rows
from lssvm.local.leaf import weighted_error
from lssvm.local.model import middle_setting
from lssvm.reductions.l0 import L0System, l0_order
from lssvm.solvers.moments import Moments, nystrom_map
from lssvm.solvers.primal import primal_system
from lssvm.tasks import Classes

_WIDTHS = (0.25, 1.0)  # factors of gamma: few points want wide kernels
_LOOKED_AT = 2000  # rows that choose configuration and width
_MOST, _LEAST = 1000, 300  # prototypes that the reduction starts from
_MANY = 5000  # rows from which one fold is scored, not five, and outputs are learned, not targets


@dataclass(frozen=True, eq=False)
class Teacher:
    """The rows of a large model, and its outputs for them.

    Attributes
    ----------
    Y : array of shape (n, k)
        Targets.
    held_out : array of shape (n, k)
        Outputs of its leaves for rows that they had not seen, without the offset of the stack.
    weight : array of shape (n,)
    inputs : list of arrays of shape (n, d)
        Mapped rows of every member.
    labels : int array of shape (n,)
        Rows of one label are held out together: equal ones, or those of a group.

    Examples
    --------
    >>> from lssvm.fitting.compression import Teacher
    >>> list(Teacher.__dataclass_fields__)
    ['Y', 'held_out', 'weight', 'inputs', 'labels']
    """

    Y: FloatArray
    held_out: FloatArray
    weight: FloatArray
    inputs: list[FloatArray]
    labels: IntArray

    @property
    def aim(self) -> FloatArray:
        """What a small model learns, shape (n, k): outputs of many rows, targets of few."""
        return self.Y if len(self.Y) < _MANY else self.held_out

    @classmethod
    def of(cls, fit: TableFit) -> Teacher:
        """Return what the members of a fit keep."""
        n, k = fit.state.held_out.shape
        members = fit.local_members
        if not n or any(not partition.rows for m in members for partition in m.local.partitions):
            raise InvalidInputError(
                "compress needs outputs for held-out training rows, which the model does not have "
                "after partial_fit or forget and for very many rows: fit again to fewer rows and "
                "compress that model."
            )
        Y, weight = np.full((n, k), np.nan), np.zeros(n)
        held_out, inputs = np.zeros((n, k)), []
        labels = np.arange(n)
        share = sum(m.weight for m in fit.members) / max(sum(m.weight for m in members), 1e-12)
        for member in members:
            partition = member.local.partitions[0]
            X = np.zeros((n, partition.leaves[0].rows.X.shape[1]))
            for leaf, rows in zip(partition.leaves, partition.rows, strict=True):
                X[rows], Y[rows], weight[rows] = leaf.rows.X, leaf.rows.Y, leaf.rows.weight
                same = leaf.rows.labels
                labels[rows] = rows[leaf.rows.together()] if same is None else same
            inputs.append(X)
            held_out += share * max(member.weight, 1e-12) * member.local.leave_one_out(n)
        good = np.isfinite(held_out).all(axis=1)
        return cls(Y[good], held_out[good], weight[good], [X[good] for X in inputs], labels[good])


def compress(
    fit: TableFit, sizes: Sequence[int], scoring: Any = None, threads: int = 1
) -> list[TableFit]:
    """Return small models in place of a model for tables, scored and calibrated.

    Parameters
    ----------
    fit : Fit
        With all its rows.
    sizes : sequence of int
        Numbers of support vectors.
    scoring : str, callable or None
        As of the fit.
    threads : int, default=1
    """
    fit.need("all", "A small model")
    assert fit.tuning is not None
    teacher, task = Teacher.of(fit), fit.task
    classes = scored = None
    if isinstance(task, Classes):
        classes = np.asarray(task.decide(teacher.Y))
        # A scorer does not get the weights of classes.
        scored = teacher.weight / task.table(np.ones(task.n_classes)).factors[classes]
    grouped = fit.local_members[0].local.leaves[0].rows.labels is not None
    labels = teacher.labels if grouped else None
    problem = Problem({}, teacher.Y, teacher.weight, labels, classes, scored)
    scorer = make_scorer(problem, task, scoring)
    loss: StackLoss = "squared" if classes is None else "log"
    if loss == "log":  # what is learned are log-odds, however the fit was scored
        log_odds = fit_stack([teacher.held_out], teacher.Y, teacher.weight, loss)
        teacher = replace(teacher, held_out=log_odds.outputs([teacher.held_out]))
    kept = sum(member.model.n_basis for member in fit.local_members)
    before, models = _seconds(fit.used), []
    for one in compress_table(fit, teacher, sizes, seed=fit.seed, threads=threads):
        Y, weight = teacher.Y[one.rows], teacher.weight[one.rows]
        stack = fit_stack([one.outputs], Y, weight, loss)
        held_out = np.full(teacher.Y.shape, np.nan)
        held_out[one.rows] = stack.outputs([one.outputs])
        if loss == "log" and teacher.aim is teacher.held_out:  # other folds learned targets
            stack = replace(stack, weights=np.ones(1), offset=np.zeros_like(stack.offset))
        member = replace(one.member, weight=float(stack.weights[0]))
        state = replace(fit.state, held_out=held_out, leaf_size=member.model.n_basis, moments=None)
        small = replace(
            fit,
            members=(member,),
            offset=stack.offset,
            prepared={member.scaling: fit.prepared[member.scaling]},
            state=state,
            tuning=replace(fit.tuning, trials=()),
        )
        small = scorer.calibrate(small, problem, Clock())
        assert small.tuning is not None
        note = (
            f"{member.model.n_basis:,} support vectors in place of {kept:,} kept rows ({member}): "
            f"held-out score {small.tuning.best_score:.4g} against {fit.tuning.best_score:.4g}; "
            f"1,000 rows take {_seconds([member]):.2g} s against {before:.2g} s."
        )
        state = replace(state, held_out=held_out[:0], note=note)
        models.append(replace(small, state=state, stored="prediction"))
    return models


def _seconds(members: Sequence[Member]) -> float:
    """Return the seconds that the outputs of 1,000 rows take."""
    total, host = 0.0, Host()
    for member in members:
        X = member.leaves()[0].basis
        some = X[np.arange(1000) % len(X)]
        begin = time.perf_counter()
        member.evaluate(some, host)
        total += time.perf_counter() - begin
    return total


@dataclass(frozen=True, eq=False)
class Compressed:
    """A compressed model, and outputs for rows that it was not fitted to.

    Attributes
    ----------
    member : Member
        An expansion on the support vectors.
    rows : int array of shape (m,)
        Of the teacher.
    outputs : array of shape (m, k)
        For these rows, of models of the same size that were fitted without them.

    Examples
    --------
    >>> from lssvm.fitting.compression import Compressed
    >>> list(Compressed.__dataclass_fields__)
    ['member', 'rows', 'outputs']
    """

    member: Member
    rows: IntArray
    outputs: FloatArray


def compress_table(
    fit: TableFit, teacher: Teacher, sizes: Sequence[int], *, seed: int = 0, threads: int = 1
) -> list[Compressed]:
    """Fit sparse fixed-size models in place of a model for tables.

    Parameters
    ----------
    fit : TableFit
        With all its rows.
    teacher : Teacher
        These rows, and its outputs for them.
    sizes : sequence of int
        Numbers of support vectors.
    seed : int, default=0
    threads : int, default=1

    Returns
    -------
    list of Compressed
        One for every size.

    Notes
    -----
    The configuration, its metric and a width are those of the members whose few prototypes follow
    the large model best. Prototypes are pivots of a randomly pivoted Cholesky factorisation; they
    leave one after the other by the reweighting of SPFS ([Mall2014]_, algorithm 3, continued by
    `l0_order`), and the fixed-size model of what is left is solved again, with a C of its own by
    rows that were not fitted (by models that learned from targets, so that the error is not too
    small). They learn the out-of-sample outputs of the large model, below 5,000 rows the targets,
    than which an output of few rows is no better. O(n m^2) time and O(m^2) memory for m prototypes,
    at most 1,000.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting import Problem, TableSettings, fit_table
    >>> from lssvm.fitting.table_work import Clock
    >>> from lssvm.fitting.compression import Teacher, compress_table
    >>> X = np.random.default_rng(0).normal(size=(150, 2))
    >>> problem = Problem({"standardised": X}, np.sin(X[:, :1]), np.ones(150))
    >>> fit = fit_table(problem, TableSettings.preset("fast"), Clock(), lambda event: None)
    >>> (small,) = compress_table(fit, Teacher.of(fit), [12])
    >>> small.member.expansion.basis.shape
    (12, 2)
    """
    n = len(teacher.Y)
    random = np.random.default_rng(seed)
    group = np.unique(teacher.labels, return_inverse=True)[1].ravel()
    n_folds = min(5, int(group.max()) + 1)
    folds = (random.permutation(int(group.max()) + 1) % n_folds)[group]
    most = min(max(sizes), n)
    number, gamma = choose_width(fit, teacher, most, folds, random)
    member, X = fit.local_members[number], teacher.inputs[number]
    kernel = KERNEL_OF[member.local.distance](gamma)
    m = min(n, max(_LEAST, min(4 * most, max(_MOST, most))))
    Z = prototypes_of(X, m, kernel, random)
    aimed, true = (
        [fold_moments(kernel, X, Z, T, teacher.weight, folds == v, threads) for v in range(n_folds)]
        for T in (teacher.aim, teacher.Y)
    )
    scored = range(1 if n >= _MANY else n_folds)
    # Outputs of the large model for other rows have met the targets of a fold: models that are
    # scored on it learn from targets.
    solved = run_blocks(
        lambda v: Sparse.of(kernel, Z, aimed if v is None else true, v), [*scored, None], threads
    )
    out = []
    for size in [min(size, len(Z)) for size in sizes]:
        errors = np.zeros(len(C_GRID))
        by_C: list[list[FloatArray]] = []
        for v, sparse in zip(scored, solved, strict=False):
            support, coef, intercept = sparse.along(size, C_GRID)
            test = np.flatnonzero(folds == v)
            K = np.asarray(kernel(X[test], Z[support]))
            values = [K @ a + b for a, b in zip(coef, intercept, strict=True)]
            weight = teacher.weight[test]
            errors += [weighted_error(teacher.Y[test], F, weight) * weight.sum() for F in values]
            by_C.append(values)
        best = int(np.argmin(errors))
        rows = np.concatenate([np.flatnonzero(folds == v) for v in scored])
        outputs = np.concatenate([values[best] for values in by_C])
        support, coef, intercept = solved[-1].along(size, C_GRID[[best]])
        error = float(errors[best] / teacher.weight[rows].sum())
        C = np.full(teacher.Y.shape[1], C_GRID[best])
        model = Expansion(kernel, Z[support], np.ascontiguousarray(coef[0]), intercept[0], C)
        small = replace(member, model=model, weight=1.0, error=error)
        out.append(Compressed(small, rows, outputs))
    return out


@dataclass(frozen=True, eq=False)
class Sparse:
    """The fixed-size models of all sizes on some training rows."""

    kernel: Kernel
    Z: FloatArray
    moments: Moments
    order: IntArray

    @classmethod
    def of(cls, kernel: Kernel, Z: FloatArray, parts: list[Moments], v: int | None) -> Sparse:
        """Return the models of the rows outside of fold v (None: of all rows)."""
        moments = reduce(add, [part for u, part in enumerate(parts) if u != v])
        k = moments.cross.shape[1]
        C = np.full(k, 1e3)
        start = primal_system(moments, nystrom_map(kernel, Z)).solve(C[:1], "eigen")[0][0]
        system = L0System.of(moments, np.arange(k, dtype=np.intp))
        return cls(kernel, Z, moments, l0_order([system], start, C))

    def along(self, size: int, grid: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the support of a size, coefficients (c, size, k), intercepts (c, k) of all C."""
        support = np.sort(self.order[:size])
        part = self.moments.subset(support)
        coef, intercept = primal_system(part, nystrom_map(self.kernel, self.Z[support])).solve(
            grid, "eigen"
        )
        return support, np.asarray(coef), np.asarray(intercept)


def choose_width(
    fit: TableFit, teacher: Teacher, size: int, folds: IntArray, random: np.random.Generator
) -> tuple[int, float]:
    """Return the number of the member and the gamma whose prototypes follow the teacher best."""
    n = len(teacher.Y)
    some = np.sort(random.choice(n, min(n, _LOOKED_AT), replace=False))
    train, test = some[folds[some] != 0], some[folds[some] == 0]
    errors: list[tuple[float, int, float]] = []
    for number, member in enumerate(fit.local_members):
        X = teacher.inputs[number]
        learned = Rows(X[train], teacher.aim[train], teacher.weight[train])
        tested = Rows(X[test], teacher.aim[test], teacher.weight[test])
        gammas = [factor * middle_setting(member.local.leaves).gamma for factor in _WIDTHS]
        kernel = KERNEL_OF[member.local.distance]
        scored = score_widths(kernel, gammas, learned, tested, size, random)
        errors += [(error, number, gamma) for error, gamma, _ in scored]
    return min(errors)[1:]
