"""Prototypes where rows are too many for parts: one pass of moments under a learned metric."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import run_blocks, slices
from lssvm._core.errors import NumericalWarning
from lssvm.fitting.configurations import Configuration
from lssvm.fitting.metric_rounds import N_FOLDS
from lssvm.fitting.table_rows import AllRows
from lssvm.fitting.table_run import Candidate, TableRun
from lssvm.kernels import Kernel
from lssvm.kernels.radial import Distance
from lssvm.local import Cut, Leaf, PartsModel, Rows, Setting
from lssvm.local.leaf import weighted_error
from lssvm.local.tree import Tree
from lssvm.prototypes import RPCholesky, select_prototypes
from lssvm.solvers import ExactFit
from lssvm.solvers.moments import Moments, nystrom_map
from lssvm.solvers.primal import primal_system

C_GRID = 10.0 ** np.arange(-2.0, 6.1, 0.5)
"""Values of C that prototypes choose among."""

_WIDTHS = (0.125, 0.25, 0.5, 1.0)  # factors of gamma: prototypes want wider kernels than parts
_LOOKED_AT = 10_000  # rows of the sample that choose the width
_BLOCK = 4096


def fit_prototypes(
    run: TableRun, everything: AllRows, candidate: Candidate, size: int
) -> tuple[Candidate, PartsModel, FloatArray]:
    """Fit prototypes of the sample to all rows.

    Parameters
    ----------
    run : TableRun
        Of the sample.
    everything : AllRows
    candidate : Candidate
        Its inputs, kernel, metric, and a width to start from.
    size : int
        Prototypes at most.

    Returns
    -------
    candidate : Candidate
    model : PartsModel
        One part whose rows are the prototypes.
    outputs : array of shape (m, k)
        For the rows of the sample, from models that were fitted without them.

    Notes
    -----
    The fixed-size model of [DeBrabanter2010]_ under the candidate's metric: prototypes are pivots
    of a randomly pivoted Cholesky factorisation of rows of the sample, the width is what some of
    its rows say, and C what all of it says: its rows are dealt into five folds, whose moments are
    kept apart in the one pass over all rows. On the cores of this machine, whatever the engine;
    O(n m (m + d)) time, O(m^2) memory for m prototypes.
    """
    problem, random = run.problem, run.random
    configuration, threads = candidate.configuration, max(1, run.ask.engine.side_by_side)
    X = problem.rows(configuration.inputs, candidate.metric).X
    folds = random.permutation(problem.n) % N_FOLDS
    gamma, Z = _best_width(run, candidate, X, folds, size)
    kernel = configuration.make_kernel(gamma)
    sums: list[Moments | None] = [None] * (N_FOLDS + 1)  # the last one: rows outside of the sample
    for block in everything.blocks([configuration.inputs]):
        run.clock.over(1.0)  # raises where who listens wants to stop
        mapped = candidate.metric.apply(block.inputs[configuration.inputs])
        fold = np.full(len(mapped), N_FOLDS)
        begin, end = np.searchsorted(everything.sample, [block.start, block.start + len(mapped)])
        fold[everything.sample[begin:end] - block.start] = folds[begin:end]
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
    model = expansion(configuration.distance, Z, coef[best], intercept[best], setting, error)
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
    run: TableRun, candidate: Candidate, X: FloatArray, folds: IntArray, size: int
) -> tuple[float, FloatArray]:
    """Return the gamma that some rows of the sample prefer, and its prototypes."""
    problem, random = run.problem, run.random
    some = np.sort(random.choice(problem.n, min(problem.n, _LOOKED_AT), replace=False))
    train, test = some[folds[some] != 0], some[folds[some] == 0]
    learned, tested = (Rows(X[at], problem.Y[at], problem.weight[at]) for at in (train, test))
    gammas = [factor * candidate.setting.gamma for factor in _WIDTHS]
    judged = judge_widths(candidate.configuration, gammas, learned, tested, size, random)
    _, gamma, Z = min(judged, key=lambda one: one[0])
    return gamma, Z


def judge_widths(
    configuration: Configuration,
    gammas: Sequence[float],
    learned: Rows,
    tested: Rows,
    size: int,
    random: np.random.Generator,
) -> Iterator[tuple[float, float, FloatArray]]:
    """Yield the held-out error of prototypes, the gamma that they have, and the prototypes."""
    for gamma in gammas:
        kernel = configuration.make_kernel(gamma)
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

    return reduce(add, run_blocks(block, slices(len(rows), _BLOCK), threads))


def expansion(
    distance: Distance,
    Z: FloatArray,
    coef: FloatArray,
    intercept: FloatArray,
    setting: Setting,
    error: float,
) -> PartsModel:
    """Return an expansion on support vectors as a model of one part, without targets."""
    k = coef.shape[1]
    rows = Rows(Z, np.empty((0, k)), np.empty(0))
    leaf = Leaf(rows, setting, ExactFit(coef, intercept, np.empty((0, k))), error)
    tree = Tree(np.empty((0, Z.shape[1])), np.empty(0), np.empty((0, 2), dtype=np.intp), 1)
    return PartsModel(distance, (Cut(tree, (leaf,)),), len(Z))
