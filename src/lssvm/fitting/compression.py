"""A very sparse fixed-size model fitted to what a model for tables says about its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import run_blocks
from lssvm._core.errors import InvalidInputError
from lssvm.fitting.table_prototypes import (
    C_GRID,
    expansion,
    fold_moments,
    judge_widths,
    prototypes_of,
)
from lssvm.fitting.table_record import Member, TableFit
from lssvm.kernels import Kernel
from lssvm.local import Rows, Setting
from lssvm.local.leaf import weighted_error
from lssvm.local.model import middle_setting
from lssvm.reductions.l0 import L0System, l0_order
from lssvm.solvers.moments import Moments, nystrom_map
from lssvm.solvers.primal import primal_system

_WIDTHS = (0.25, 1.0)  # factors of gamma: few points want wide kernels
_LOOKED_AT = 2000  # rows that choose configuration and width
_MOST, _LEAST = 1000, 300  # prototypes that the reduction starts from
_MANY = 5000  # rows from which one fold is judged, not five, and outputs are learned, not targets


@dataclass(frozen=True, eq=False)
class Teacher:
    """What a large model says about its rows.

    Attributes
    ----------
    Y : array of shape (n, k)
        Targets.
    said : array of shape (n, k)
        Outputs of its parts for rows that they had not seen.
    weight : array of shape (n,)
    inputs : list of arrays of shape (n, d)
        Mapped rows of every member.

    Examples
    --------
    >>> from lssvm.fitting.compression import Teacher
    >>> list(Teacher.__dataclass_fields__)
    ['Y', 'said', 'weight', 'inputs']
    """

    Y: FloatArray
    said: FloatArray
    weight: FloatArray
    inputs: list[FloatArray]

    @property
    def aim(self) -> FloatArray:
        """What a small model learns, shape (n, k): outputs of many rows, targets of few."""
        return self.Y if len(self.Y) < _MANY else self.said

    @classmethod
    def of(cls, fit: TableFit) -> Teacher:
        """Return what the members of a fit keep."""
        n = len(fit.held_out)
        members = fit.in_parts
        if not n or any(not partition.rows for m in members for partition in m.model.partitions):
            raise InvalidInputError(
                "compress needs what the model says about its rows, which it does not know after "
                "partial_fit or forget and for very many rows: fit anew to fewer rows and compress "
                "that model."
            )
        k = fit.held_out.shape[1]
        Y, weight = np.full((n, k), np.nan), np.zeros(n)
        said, inputs = np.zeros((n, k)), []
        share = sum(m.weight for m in fit.members) / max(sum(m.weight for m in members), 1e-12)
        for member in members:
            partition = member.model.partitions[0]
            X = np.zeros((n, partition.leaves[0].rows.X.shape[1]))
            for leaf, rows in zip(partition.leaves, partition.rows, strict=True):
                X[rows], Y[rows], weight[rows] = leaf.rows.X, leaf.rows.Y, leaf.rows.weight
            inputs.append(X)
            said += share * max(member.weight, 1e-12) * member.model.leave_one_out(n)
        said += fit.offset
        good = np.isfinite(said).all(axis=1)
        return cls(Y[good], said[good], weight[good], [X[good] for X in inputs])


@dataclass(frozen=True, eq=False)
class Compressed:
    """A compressed model and what it says about rows that it was not fitted to.

    Attributes
    ----------
    member : Member
        One part whose rows are the support vectors.
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
        What it says about them.
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
    rows that were not fitted (by models that learned from targets, to be honest). They learn the
    out-of-sample outputs of the large model, below 5,000 rows the targets: what is said about a row
    of few is no better than its target. O(n m^2) time and
    O(m^2) memory for m prototypes, at most 1,000.

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
    >>> small.member.model.leaves[0].rows.X.shape
    (12, 2)
    """
    n = len(teacher.Y)
    random = np.random.default_rng(seed)
    n_folds = min(5, n)
    folds = random.permutation(n) % n_folds
    most = min(max(sizes), n)
    number, gamma = choose_width(fit, teacher, most, folds, random)
    member, X = fit.in_parts[number], teacher.inputs[number]
    kernel = member.configuration.make_kernel(gamma)
    m = min(n, max(_LEAST, min(4 * most, max(_MOST, most))))
    Z = prototypes_of(X, m, kernel, random)
    aimed, true = (
        [fold_moments(kernel, X, Z, T, teacher.weight, folds == v, threads) for v in range(n_folds)]
        for T in (teacher.aim, teacher.Y)
    )
    judged = range(1 if n >= _MANY else n_folds)
    # What the large model says about other rows has met the targets of a fold: models that are
    # judged on it learn from targets.
    solved = run_blocks(
        lambda v: Sparse.of(kernel, Z, aimed if v is None else true, v), [*judged, None], threads
    )
    out = []
    for size in [min(size, len(Z)) for size in sizes]:
        errors = np.zeros(len(C_GRID))
        shown: list[list[FloatArray]] = []
        for v, part in zip(judged, solved, strict=False):
            support, coef, intercept = part.along(size, C_GRID)
            test = np.flatnonzero(folds == v)
            K = np.asarray(kernel(X[test], Z[support]))
            values = [K @ a + b for a, b in zip(coef, intercept, strict=True)]
            weight = teacher.weight[test]
            errors += [weighted_error(teacher.Y[test], F, weight) * weight.sum() for F in values]
            shown.append(values)
        best = int(np.argmin(errors))
        rows = np.concatenate([np.flatnonzero(folds == v) for v in judged])
        outputs = np.concatenate([values[best] for values in shown])
        support, coef, intercept = solved[-1].along(size, C_GRID[[best]])
        error = float(errors[best] / teacher.weight[rows].sum())
        setting = Setting(float(C_GRID[best]), gamma)
        distance = member.model.distance
        model = expansion(distance, Z[support], coef[0], intercept[0], setting, error)
        kept = replace(member, model=model, weight=1.0)
        out.append(Compressed(kept, rows, outputs))
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
    found: list[tuple[float, int, float]] = []
    for number, member in enumerate(fit.in_parts):
        X = teacher.inputs[number]
        learned = Rows(X[train], teacher.aim[train], teacher.weight[train])
        tested = Rows(X[test], teacher.Y[test], teacher.weight[test])
        gammas = [factor * middle_setting(member.model.leaves).gamma for factor in _WIDTHS]
        judged = judge_widths(member.configuration, gammas, learned, tested, size, random)
        found += [(error, number, gamma) for error, gamma, _ in judged]
    _, number, gamma = min(found)
    return number, gamma
