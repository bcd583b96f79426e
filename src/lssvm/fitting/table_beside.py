"""Prototypes beside exact parts: one model of all rows where the others see a part each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.data import ArraySource
from lssvm.fitting.configurations import Member
from lssvm.fitting.metric_rounds import N_FOLDS
from lssvm.fitting.table_prototypes import expansion
from lssvm.fitting.table_run import Candidate, TableRun
from lssvm.kernels import Kernel
from lssvm.local import PartsModel, Rows, Setting
from lssvm.local.leaf import STEPS, Walk
from lssvm.solvers.moments import Moments, accumulate, total
from lssvm.solvers.primal import solve_on_prototypes

FEWEST = 1000
"""Prototypes below which there are none: parts say more for their time."""

_WIDTHS = (0.25, 0.5, 1.0)  # factors of gamma: prototypes want wider kernels than parts
_NEAR = 1.1  # times the error of small parts: prototypes that are worse do not help
_TRIES = 8  # values of C
_TRIAL = 10.0  # operations for every row and pair of prototypes that `width_beside` takes
_LEFT = 1e-3  # of the weight, below which what is left is no difference of sums
_MATRICES = 24.0  # of m^2 numbers that fit into the budget
_SHARED = 8.0  # of them that are there whatever the number of threads: folds, sums, solutions


def size_beside(run: TableRun, n_rows: int) -> int:
    """Return how many prototypes are asked for, or operations and memory allow; 0 for none.

    n m^2 operations; five folds, the threads and the solution keep m^2 numbers each.
    """
    ask, most = run.ask, _most(run)
    if ask.n_prototypes is not None:
        return int(min(ask.n_prototypes, most, n_rows))
    if ask.engine.speed > 1.0:
        return 0  # its parts are larger, and prototypes are computed on the cores of this machine
    assert run.learned is not None
    trial = _TRIAL * len(run.learned) * FEWEST**2
    allowed = run.clock.affordable(ask.beside * ask.operations + trial, 0.5) - trial
    size = int(min(np.sqrt(max(allowed, 0.0) / n_rows), most, n_rows / 4))
    return size if size >= FEWEST else 0


def threads_beside(run: TableRun, size: int) -> int:
    """Return how many threads add up moments: each keeps two sums of m^2 numbers."""
    room = _MATRICES * (_most(run) / max(size, 1)) ** 2
    return int(min(max((room - _SHARED) / 2.0, 1.0), run.ask.engine.side_by_side))


def _most(run: TableRun) -> float:
    """Return how many prototypes may have `_MATRICES` matrices in memory.

    A part has two on every thread, in half of the budget: `HostParts.largest_part`.
    """
    return float(run.ask.largest * np.sqrt(run.ask.engine.side_by_side * 4.0 / _MATRICES))


def width_beside(run: TableRun, candidate: Candidate, size: int) -> float | None:
    """Return the gamma for prototypes, or None where they would not help.

    Some of ``size`` prototypes learn from the rows that the metric was learned on, and the rows
    that judged it judge them: unless a number of them is asked for, they have to be about as good
    as its small parts were.
    """
    problem, learned, judges = run.problem, run.learned, candidate.rows
    assert learned is not None
    assert judges is not None
    kind, metric = candidate.configuration, candidate.metric
    rows = problem.rows(kind.inputs, metric, np.concatenate([learned, judges]))
    cells = [slice(len(learned), len(rows.X)), slice(0, len(learned))]
    chosen = run.random.choice(len(learned), min(FEWEST, size, len(learned)), replace=False)
    Z = np.unique(rows.X[chosen], axis=0)
    found: list[tuple[float, float]] = []
    for factor in _WIDTHS:
        gamma = factor * candidate.setting.gamma
        kernel = kind.make_kernel(gamma)
        sums = moments_of(kernel, rows, Z, cells, threads_beside(run, len(Z)))
        found.append((_best_C(sums, np.asarray(kernel(Z, Z)))[1], gamma))
    error, gamma = min(found)
    wanted = run.ask.n_prototypes is not None or error < _NEAR * candidate.error
    return gamma if wanted else None


def fit_beside(
    run: TableRun, candidate: Candidate, parts: PartsModel, size: int, gamma: float
) -> tuple[Candidate, PartsModel, FloatArray]:
    """Fit prototypes to the rows of a model in parts.

    Parameters
    ----------
    run : TableRun
    candidate : Candidate
        Inputs, kernel and metric of the model.
    parts : PartsModel
        Whose rows are taken.
    size : int
        Prototypes.
    gamma : float
        Of the kernel.

    Returns
    -------
    candidate : Candidate
        With its own setting and error.
    model : PartsModel
        One part whose rows are the prototypes.
    outputs : array of shape (n, k)
        Of all rows, by models of the other folds.

    Notes
    -----
    The fixed-size model of [DeBrabanter2010]_ under the metric of the candidate, its prototypes
    drawn at random. A part sees its own rows only, so that what all rows have in common has to be
    learned in each of them; prototypes learn it once. Where that is most of what there is to learn
    (census data, for one) they are ahead of parts; elsewhere the stack leaves them out.
    O(n m (m + d)) time, O(m^2) memory.
    """
    random = run.random
    rows, positions = rows_of(parts)
    chosen = random.choice(len(rows.X), min(size, len(rows.X)), replace=False)
    Z = np.unique(rows.X[chosen], axis=0)
    kernel = candidate.configuration.make_kernel(gamma)
    folds = run.folds[positions]
    order = np.argsort(folds, kind="stable").astype(np.intp)
    rows, positions = rows.take(order), positions[order]
    starts = np.searchsorted(folds[order], np.arange(N_FOLDS + 1))
    # Groups may leave a fold empty, which is no judge of C.
    cells = [slice(int(a), int(b)) for a, b in itertools.pairwise(starts) if b > a]
    sums = moments_of(kernel, rows, Z, cells, threads_beside(run, len(Z)))
    run.clock.over(1.0)  # raises where who listens wants to stop
    gram = np.asarray(kernel(Z, Z))
    C, error = _best_C(sums, gram)
    setting = Setting(C, gamma)

    def model_of(moments: Moments) -> PartsModel:
        coef, intercept = solve_on_prototypes(moments, gram, C)
        return expansion(candidate.configuration.distance, Z, coef, intercept, setting, error)

    outputs = np.full(run.problem.Y.shape, np.nan)
    for v, cell in enumerate(cells):
        outputs[positions[cell]] = model_of(without(sums, v)).outputs(
            rows.X[cell], engine=run.ask.engine
        )
        run.clock.over(1.0)
    found = replace(candidate, setting=setting, error=error, stage="prototypes")
    return found, model_of(total(sums)), outputs


def change_beside(
    member: Member, parts: PartsModel, rows: Rows, *, forget: bool, threads: int
) -> Member:
    """Return prototypes with more rows, or fewer.

    Parameters
    ----------
    member : Member
        Made of prototypes.
    parts : PartsModel
        With the rows that the prototypes are to be fitted to: it has learned or forgotten already.
    rows : Rows
        That have come or left, mapped as the model's own are.
    forget : bool
        Whether they left.
    threads : int

    Notes
    -----
    Prototypes, C and gamma stay. The moments of all rows are summed up at the first change, O(n m
    (m + d)) time, and kept; any other takes O(m^3) time and what its own rows need. Where most of
    the weight leaves, differences would have no digits left: the rows are summed up again.
    """
    leaf = member.model.cuts[0].leaves[0]
    Z, kernel = leaf.rows.X, member.configuration.make_kernel(leaf.setting.gamma)
    before, moments = member.moments, None
    if before is not None:
        # Elsewhere the shift, a mean of kernel values, may differ in its last digit.
        new = moments_of(kernel, rows, Z, None, threads)[0].shifted(before.shift)
        moments = before - new if forget else before + new
        if moments.weight < _LEFT * before.weight:
            moments = None
    if moments is None:
        moments = moments_of(kernel, rows_of(parts)[0], Z, None, threads)[0]
    n = sum(len(part.rows.X) for part in parts.cuts[0].leaves)  # copies of a row are one
    moments = replace(moments, n=n)
    coef, intercept = solve_on_prototypes(moments, np.asarray(kernel(Z, Z)), leaf.setting.C)
    distance = member.model.distance
    model = expansion(distance, Z, coef, intercept, leaf.setting, leaf.error)
    return replace(member, model=model, moments=moments)


def rows_of(parts: PartsModel) -> tuple[Rows, IntArray]:
    """Return the rows of a model in parts, and their numbers where it knows them."""
    cut = parts.cuts[0]
    some = [leaf.rows for leaf in cut.leaves]
    X = np.concatenate([np.asarray(part.X, dtype=np.float64) for part in some])
    Y, weight = np.concatenate([p.Y for p in some]), np.concatenate([p.weight for p in some])
    known = np.concatenate(cut.members) if cut.members else np.arange(len(X))
    return Rows(X, Y, weight), np.asarray(known, dtype=np.intp)


def moments_of(
    kernel: Kernel, rows: Rows, Z: FloatArray, cells: Sequence[slice] | None, threads: int
) -> list[Moments]:
    """Return the moments of consecutive cells of rows; `size_beside` has looked at memory."""
    source = ArraySource(rows.X, rows.Y, weight=rows.weight)
    return accumulate(kernel, source, Z, cells, budget=2**62, threads=threads)


def without(sums: list[Moments], left_out: int) -> Moments:
    """Return the moments of all cells but one."""
    return total(part for v, part in enumerate(sums) if v != left_out)


def _best_C(sums: list[Moments], gram: FloatArray) -> tuple[float, float]:
    """Return the C of the smallest error of a row of the first cell, and that error."""
    train, test = without(sums, 0), sums[0]
    walk = Walk(Setting(10.0, 1.0), _TRIES, STEPS[:2])
    while (setting := walk.next()) is not None:
        coef, intercept = solve_on_prototypes(train, gram, setting.C)
        walk.tell(float(test.squared_error(coef[None], intercept[None]).sum() / test.weight))
    return walk.best.C, walk.error
