"""Prototypes of all rows under a learned metric: a member of the stack, or in place of leaves.

A leaf sees its own rows only, so that what all rows have in common has to be learned in each of
them; prototypes learn it once. Where rows are too many for leaves, they are fitted in one pass.
"""

from __future__ import annotations

import itertools
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import run_stream, slices
from lssvm._core.errors import NumericalWarning
from lssvm.backends.host import Host
from lssvm.data import ArraySource
from lssvm.fitting.record import Member
from lssvm.fitting.stacking import StackRule, cross_stack, mean_loss
from lssvm.fitting.table_record import AllRows
from lssvm.fitting.table_work import N_FOLDS, Candidate, Fitted, Plan, Work
from lssvm.kernels import Kernel
from lssvm.kernels.base import Expansion
from lssvm.local import LocalModel, Rows, Setting
from lssvm.local.leaf import STEPS, LocalSearch, weighted_error
from lssvm.prototypes import RPCholesky, select_prototypes
from lssvm.solvers.moments import Moments, accumulate, nystrom_map, total
from lssvm.solvers.primal import primal_system, solve_on_prototypes

C_GRID = 10.0 ** np.arange(-2.0, 6.1, 0.5)
"""Values of C that prototypes choose among."""

FEWEST = 1000
"""Prototypes below which there are none: leaves gain more for their time."""

_ONE_PASS_WIDTHS = (0.125, 0.25, 0.5, 1.0)  # factors of gamma: prototypes want wider kernels
_WIDTHS = (0.5, 0.25, 1.0)
_TRIAL = 500  # prototypes of the trial
_TRIAL_ROWS = 8000
_HOPE = 4.0  # times the gain of the first width that another one may have
_TRIES = 8  # values of C
_LEFT = 1e-3  # of the weight, below which what is left is no difference of sums
_MATRICES = 24.0  # of m^2 numbers that fit into the budget
_SHARED = 8.0  # of them that are there whatever the number of threads: folds, sums, solutions
_LOOKED_AT = 10_000  # rows of the sample that choose the width
_BLOCK = 4096
_BUDGET = 2**28  # bytes of kernel values while outputs are computed


def add_prototypes(work: Work, plan: Plan, fitted: list[Fitted]) -> list[Fitted]:
    """Return prototypes of all rows under the best metric, where the gain of some is worth it."""
    leaves = len(local_of(fitted[0]).leaves) if fitted else 1
    if leaves < 2 or plan.candidates[0].stage != "metric" or work.clock.over(0.7):
        return []
    size = number_of_prototypes(work)
    if not size:
        return []
    best = min(fitted, key=lambda one: one[0].error)
    candidate = best[0]
    work.report("prototypes", str(candidate.configuration), 0, 1)
    begin = work.clock.now()
    cost = operations_of_prototypes(work.problem.n, size) / work.unit(work.problem.n)
    gain, gamma = width_of_prototypes(work, plan, candidate, size, cost)
    text = f"{size:,} prototypes of all rows"
    if gamma is None:
        work.tried("prototypes", text, begin)
        work.step("prototypes", text, gain, cost, None)
        return []
    new, model, outputs = fit_global(work, candidate, local_of(best), size, gamma)
    step = work.step("prototypes", text, gain, cost, begin)
    return [(replace(new, seconds=work.clock.now() - begin, step=step), model, outputs)]


def local_of(fitted: Fitted) -> LocalModel:
    """Return the exact models of a fitted configuration."""
    assert isinstance(fitted[1], LocalModel)
    return fitted[1]


def number_of_prototypes(work: Work) -> int:
    """Return the given number of prototypes, or what cost and memory allow; 0 for none.

    Half of the unit of cost by default; five folds, the threads and the solution keep m^2 numbers
    each.
    """
    settings, most, n = work.settings, _most(work), work.problem.n
    if settings.n_prototypes is not None:
        return int(min(settings.n_prototypes, most, n))
    if settings.engine.speed > 1.0:
        return 0  # its leaves are larger, and prototypes are computed on the cores of this machine
    allowed = work.clock.affordable(work.unit(n) * 0.0025 / max(settings.gain, 0.001), 0.5)
    sizes = range(FEWEST, 4 * FEWEST + 1)
    more = bisect_right(sizes, allowed, key=lambda size: operations_of_prototypes(n, size))
    size = int(min(FEWEST - 1 + more, most, n / 4))
    return size if size >= FEWEST else 0


def operations_of_prototypes(n: int, size: int) -> float:
    """Return the operations of prototypes of n rows: their moments, and systems that are solved."""
    return n * size**2 + (_TRIES + N_FOLDS + 1) * size**3 / 3.0


def threads_for(work: Work, size: int) -> int:
    """Return how many threads add up moments: each keeps two sums of m^2 numbers."""
    room = _MATRICES * (_most(work) / max(size, 1)) ** 2
    return int(min(max((room - _SHARED) / 2.0, 1.0), work.settings.engine.n_workers))


def _most(work: Work) -> float:
    """Return for how many prototypes `_MATRICES` matrices fit into memory.

    A leaf has two on every thread, in half of the budget: `LeafEngine.largest_leaf`.
    """
    settings = work.settings
    return float(settings.largest * np.sqrt(settings.engine.n_workers * 4.0 / _MATRICES))


def width_of_prototypes(
    work: Work, plan: Plan, candidate: Candidate, size: int, cost: float
) -> tuple[float, float | None]:
    """Return the gain of prototypes, and their gamma, or None where they are not worth the cost.

    Some prototypes are fitted to rows that the metric was learned from. The gain is that of a stack
    of their outputs with those of the small leaves of the metric, over the leaves alone, on the
    rows on which rounds were compared. Those of a given number are taken whatever they gain.
    """
    problem, learned, scored = work.problem, plan.learned, candidate.rows
    assert learned is not None
    assert scored is not None
    leaves = candidate.outputs
    assert leaves is not None
    learned = learned[:: -(-len(learned) // _TRIAL_ROWS)]
    kind, metric = candidate.configuration, candidate.metric
    rows = problem.rows(kind.scaling, metric, np.concatenate([learned, scored]))
    cells = [slice(len(learned), len(rows.X)), slice(0, len(learned))]
    random = work.random("trial")
    chosen = random.choice(len(learned), min(_TRIAL, size, len(learned)), replace=False)
    Z = np.unique(rows.X[chosen], axis=0)
    wanted = work.settings.n_prototypes is not None
    Y, weight, folds = problem.Y[scored], problem.weight[scored], work.folds[scored]

    def loss_with(outputs: FloatArray) -> float:
        stacked = cross_stack([leaves, outputs], Y, weight, folds, StackRule(work.loss))
        return mean_loss(stacked, Y, weight, work.loss)

    before = loss_with(leaves)
    tried: list[tuple[float, float]] = []
    for factor in _WIDTHS:
        gamma = factor * candidate.setting.gamma
        kernel = kind.make_kernel(gamma)
        sums = moments_of(kernel, rows, Z, cells, threads_for(work, len(Z)))
        gram = np.asarray(kernel(Z, Z))
        C, _ = _best_C(sums, gram)
        coef, intercept = solve_on_prototypes(sums[1], gram, C)
        outputs = np.asarray(kernel(rows.X[cells[0]], Z)) @ coef + intercept
        gain = 1.0 - loss_with(outputs) / before if before else 0.0
        tried.append((gain, gamma))
        if not wanted and factor == _WIDTHS[0] and not work.worth(_HOPE * gain, cost):
            break
    gain, gamma = max(tried)
    return gain, gamma if wanted or work.worth(gain, cost) else None


def fit_global(
    work: Work, candidate: Candidate, local: LocalModel, size: int, gamma: float
) -> tuple[Candidate, Expansion, FloatArray]:
    """Fit prototypes to the rows of a local model.

    Parameters
    ----------
    work : Work
    candidate : Candidate
        Inputs, kernel and metric of the model.
    local : LocalModel
        The model whose rows are fitted.
    size : int
        Number of prototypes.
    gamma : float
        Of the kernel.

    Returns
    -------
    candidate : Candidate
        With its own setting and error.
    model : Expansion
        On the prototypes.
    outputs : array of shape (n, k)
        Of all rows, by models of the other folds.

    Notes
    -----
    The fixed-size model of [DeBrabanter2010]_ under the metric of the candidate, its prototypes
    drawn at random. A leaf is fitted to its rows only, so what all rows have in common has to be
    learned in each leaf; prototypes learn it once. Where that is most of what there is to learn
    (such as in census data) they are ahead of leaves; elsewhere the stack gives them no weight.
    O(n m (m + d)) time, O(m^2) memory.
    """
    random = work.random("prototypes")
    rows, positions = rows_of(local)
    chosen = random.choice(len(rows.X), min(size, len(rows.X)), replace=False)
    Z = np.unique(rows.X[chosen], axis=0)
    kernel = candidate.configuration.make_kernel(gamma)
    folds = work.folds[positions]
    order = np.argsort(folds, kind="stable").astype(np.intp)
    rows, positions = rows.take(order), positions[order]
    starts = np.searchsorted(folds[order], np.arange(N_FOLDS + 1))
    # Groups may leave a fold empty; such a fold cannot compare values of C.
    cells = [slice(int(a), int(b)) for a, b in itertools.pairwise(starts) if b > a]
    sums = moments_of(kernel, rows, Z, cells, threads_for(work, len(Z)))
    work.clock.over(1.0)  # raises if the fit was stopped
    gram = np.asarray(kernel(Z, Z))
    C, error = _best_C(sums, gram)
    setting = Setting(C, gamma)

    outputs = np.full(work.problem.Y.shape, np.nan)
    host = Host(2**28, work.settings.engine.n_workers)
    for v, cell in enumerate(cells):
        coef, intercept = solve_on_prototypes(without(sums, v), gram, C)
        outputs[positions[cell]] = host.outputs(kernel, rows.X[cell], Z, coef, intercept)
        work.clock.over(1.0)
    tuned = replace(candidate, setting=setting, error=error, stage="prototypes")
    coef, intercept = solve_on_prototypes(total(sums), gram, C)
    return tuned, Expansion(kernel, Z, coef, intercept, np.full(len(intercept), C)), outputs


def change_global(
    member: Member,
    before: Moments | None,
    local: LocalModel,
    rows: Rows,
    *,
    forget: bool,
    threads: int,
) -> tuple[Member, Moments]:
    """Return prototypes with more rows, or fewer, and the moments of all rows.

    Parameters
    ----------
    member : Member
        Made of prototypes.
    before : Moments or None
        Those of the rows so far; None if they were not computed yet.
    local : LocalModel
        The leaves after the change, whose rows the prototypes are fitted to.
    rows : Rows
        Rows that were added or removed, mapped by the metric of the member.
    forget : bool
        Whether they were removed.
    threads : int

    Notes
    -----
    Prototypes, C and gamma stay. The moments of all rows are computed at the first change, in
    O(n m (m + d)) time, and kept; a later change takes O(m^3) time and the moments of its rows. If
    most of the weight is removed, differences would lose all digits: the moments are computed
    again.
    """
    one, moments = member.expansion, None
    Z, kernel = one.basis, one.kernel
    if before is not None:
        # Elsewhere the shift, a mean of kernel values, may differ in its last digit.
        new = moments_of(kernel, rows, Z, None, threads)[0].shifted(before.shift)
        moments = before - new if forget else before + new
        if moments.weight < _LEFT * before.weight:
            moments = None
    if moments is None:
        moments = moments_of(kernel, rows_of(local)[0], Z, None, threads)[0]
    n = sum(len(leaf.rows.X) for leaf in local.leaves)  # copies of a row are one
    moments = replace(moments, n=n)
    coef, intercept = solve_on_prototypes(moments, np.asarray(kernel(Z, Z)), float(one.C[0]))
    return replace(member, model=replace(one, coef=coef, intercept=intercept)), moments


def rows_of(local: LocalModel) -> tuple[Rows, IntArray]:
    """Return the rows of a local model, and their numbers (in order if they are not known)."""
    partition = local.partitions[0]
    some = [leaf.rows for leaf in partition.leaves]
    X = np.concatenate([np.asarray(part.X, dtype=np.float64) for part in some])
    Y, weight = np.concatenate([p.Y for p in some]), np.concatenate([p.weight for p in some])
    known = np.concatenate(partition.rows) if partition.rows else np.arange(len(X))
    return Rows(X, Y, weight), np.asarray(known, dtype=np.intp)


def moments_of(
    kernel: Kernel, rows: Rows, Z: FloatArray, cells: Sequence[slice] | None, threads: int
) -> list[Moments]:
    """Return the moments of consecutive cells of rows, as `number_of_prototypes` allows."""
    source = ArraySource(rows.X, rows.Y, weight=rows.weight)
    return accumulate(kernel, source, Z, cells, budget=2**62, threads=threads)


def without(sums: list[Moments], left_out: int) -> Moments:
    """Return the moments of all cells but one."""
    return total(part for v, part in enumerate(sums) if v != left_out)


def _best_C(sums: list[Moments], gram: FloatArray) -> tuple[float, float]:
    """Return the C of the smallest error of a row of the first cell, and that error."""
    train, test = without(sums, 0), sums[0]
    search = LocalSearch(Setting(10.0, 1.0), _TRIES, STEPS[:2])
    while (setting := search.propose()) is not None:
        coef, intercept = solve_on_prototypes(train, gram, setting.C)
        search.update(float(test.squared_error(coef[None], intercept[None]).sum() / test.weight))
    return search.best.C, search.error


def fit_prototypes(
    work: Work, all_rows: AllRows, candidate: Candidate, size: int
) -> tuple[Candidate, Expansion, FloatArray]:
    """Fit prototypes of the sample to all rows.

    Parameters
    ----------
    work : Work
        Of the sample.
    all_rows : AllRows
    candidate : Candidate
        Its inputs, kernel, metric, and a width to start from.
    size : int
        Prototypes at most.

    Returns
    -------
    candidate : Candidate
    model : Expansion
        On the prototypes.
    outputs : array of shape (m, k)
        For the rows of the sample, from models that were fitted without them.

    Notes
    -----
    The fixed-size model of [DeBrabanter2010]_ under the candidate's metric: prototypes are pivots
    of a randomly pivoted Cholesky factorisation of rows of the sample. The width is chosen on some
    of its rows and C on all of it, by five folds whose moments are kept apart in the one pass over
    all rows. It runs on the cores of this machine, whatever the engine;
    O(n m (m + d)) time, O(m^2) memory for m prototypes.
    """
    problem, random = work.problem, work.random("prototypes")
    configuration, threads = candidate.configuration, max(1, work.settings.engine.n_workers)
    X = problem.rows(configuration.scaling, candidate.metric).X
    folds = random.permutation(problem.n) % N_FOLDS
    gamma, Z = _best_width(work, candidate, X, folds, size)
    kernel = configuration.make_kernel(gamma)
    sums: list[Moments | None] = [None] * (N_FOLDS + 1)  # the last one: rows outside of the sample
    for block in all_rows.blocks([configuration.scaling]):
        work.clock.over(1.0)  # raises if the fit was stopped
        mapped = candidate.metric.apply(block.inputs[configuration.scaling])
        fold = np.full(len(mapped), N_FOLDS)
        begin, end = np.searchsorted(all_rows.sample, [block.start, block.start + len(mapped)])
        fold[all_rows.sample[begin:end] - block.start] = folds[begin:end]
        for v in np.unique(fold):
            new = fold_moments(kernel, mapped, Z, block.Y, block.weight, fold == v, threads)
            old = sums[v]
            sums[v] = new if old is None else old + new
    root = nystrom_map(kernel, Z)

    def along(left_out: int | None) -> tuple[FloatArray, FloatArray]:
        kept = [m for v, m in enumerate(sums) if v != left_out and m is not None]
        coef, intercept = primal_system(reduce(add, kept), root).solve(C_GRID, "eigen")
        return np.asarray(coef), np.asarray(intercept)

    without = [along(v) for v in range(N_FOLDS)]
    losses, outputs = np.zeros(len(C_GRID)), np.empty(problem.Y.shape)
    for v, rows, K in _sample_blocks(kernel, X, Z, folds):
        weight, Y = problem.weight[rows], problem.Y[rows]
        losses += [
            weighted_error(Y, K @ a + b, weight) * weight.sum()
            for a, b in zip(*without[v], strict=True)
        ]
    best = int(np.argmin(losses))
    for v, rows, K in _sample_blocks(kernel, X, Z, folds):
        outputs[rows] = K @ without[v][0][best] + without[v][1][best]
    coef, intercept = along(None)
    setting, error = Setting(float(C_GRID[best]), gamma), float(losses[best] / problem.weight.sum())
    C = np.full(problem.Y.shape[1], setting.C)
    model = Expansion(kernel, Z, np.ascontiguousarray(coef[best]), intercept[best], C)
    return replace(candidate, setting=setting, error=error, stage="all rows"), model, outputs


def _sample_blocks(
    kernel: Kernel, X: FloatArray, Z: FloatArray, folds: IntArray
) -> Iterator[tuple[int, IntArray, FloatArray]]:
    """Yield folds, rows of theirs and the kernel between these and the prototypes."""
    for v in range(N_FOLDS):
        inside = np.flatnonzero(folds == v)
        for part in slices(len(inside), _BLOCK):
            yield v, inside[part], np.asarray(kernel(X[inside[part]], Z))


def _best_width(
    work: Work, candidate: Candidate, X: FloatArray, folds: IntArray, size: int
) -> tuple[float, FloatArray]:
    """Return the gamma that some rows of the sample prefer, and its prototypes."""
    problem, random = work.problem, work.random("width")
    some = np.sort(random.choice(problem.n, min(problem.n, _LOOKED_AT), replace=False))
    train, test = some[folds[some] != 0], some[folds[some] == 0]
    learned, tested = (Rows(X[at], problem.Y[at], problem.weight[at]) for at in (train, test))
    gammas = [factor * candidate.setting.gamma for factor in _ONE_PASS_WIDTHS]
    kernel = candidate.configuration.make_kernel
    scored = score_widths(kernel, gammas, learned, tested, size, random)
    return min(scored, key=lambda one: one[0])[1:]


def score_widths(
    make_kernel: Callable[[float], Kernel],
    gammas: Sequence[float],
    learned: Rows,
    tested: Rows,
    size: int,
    random: np.random.Generator,
) -> Iterator[tuple[float, float, FloatArray]]:
    """Yield the held-out error of prototypes, the gamma that they have, and the prototypes."""
    for gamma in gammas:
        kernel = make_kernel(gamma)
        Z = prototypes_of(learned.X, size, kernel, random)
        yield held_out_error(kernel, Z, learned, tested), gamma, Z


def held_out_error(kernel: Kernel, Z: FloatArray, learned: Rows, tested: Rows) -> float:
    """Return the smallest error over C of prototypes Z on rows that were not learned."""
    moments = Moments.of(np.asarray(kernel(learned.X, Z)), learned.Y, learned.weight)
    coef, intercept = primal_system(moments, nystrom_map(kernel, Z)).solve(C_GRID, "eigen")
    K = np.asarray(kernel(tested.X, Z))
    return min(
        weighted_error(tested.Y, K @ a + b, tested.weight)
        for a, b in zip(coef, intercept, strict=True)
    )


def prototypes_of(
    X: FloatArray, size: int, kernel: Kernel, random: np.random.Generator
) -> FloatArray:
    """Return at most ``size`` different rows of X that represent the others."""
    size = min(size, len(np.unique(X, axis=0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)  # fewer are as good
        chosen = select_prototypes(X, size, RPCholesky(), kernel=kernel, random_state=random)
    return np.asarray(X[chosen.indices], dtype=np.float64)


def fold_moments(
    kernel: Kernel,
    X: FloatArray,
    Z: FloatArray,
    T: FloatArray,
    weight: FloatArray,
    inside: NDArray[np.bool_],
    threads: int,
) -> Moments:
    """Return the moments of the rows of a fold, in blocks."""
    rows = np.flatnonzero(inside)

    def block(part: slice) -> Moments:
        at = rows[part]
        K = np.asarray(kernel(X[at], Z))
        return Moments.of(K, T[at], weight[at])

    return reduce(add, run_stream(block, slices(len(rows), _BLOCK), threads))
