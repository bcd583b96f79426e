"""Coefficients of a fixed-size model: from moments, or by conjugate gradients without them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray, is_numpy, is_sparse, to_numpy
from lssvm._core.blocks import require, run_blocks, run_stream, slices
from lssvm._core.random import as_generator
from lssvm.backends.host import HostRows
from lssvm.fitting.fixed_settings import FixedProblem, groups_of
from lssvm.kernels import Kernel
from lssvm.moments import Moments, NystromMap
from lssvm.moments.cells import assemble
from lssvm.solvers import (
    PCG,
    PreconditionerRows,
    choose_primal,
    make_space,
    preconditioner_rows,
    solve_pcg,
    solve_primal,
)
from lssvm.tasks import Classes
from lssvm.tasks.weights import times

Coefficients: TypeAlias = tuple[FloatArray, FloatArray]
"""Of a model on its prototypes, (m, k), and its intercepts (k,)."""

TUNED_PROTOTYPES = 1000
"""Prototypes, the first of all, that C and gamma are tuned with where a fit takes no moments."""


def solve_moments(
    whole: list[Moments],
    map: NystromMap,
    task: Classes | None,
    C_of: FloatArray,
    *,
    penalised: bool = False,
    threads: int = 1,
) -> Coefficients:
    """Solve for the coefficients on the prototypes [DeBrabanter2010, eq. (7)].

    Parameters
    ----------
    whole : list of Moments
        One, or one per class.
    map : NystromMap
    task : Classes or None
        What puts problems together from the moments of the classes.
    C_of : array of shape (k,)
    penalised : bool, default=False
        Whether the bias is penalised like a weight, as printed there.
    threads : int, default=1
        That share the problems, where they are many.

    Returns
    -------
    coef : array of shape (m, k)
    intercept : array of shape (k,)
    """
    many = len(groups_of(task, len(C_of))) > 2 * len(whole) and is_numpy(map.T)

    def mapped(part: Moments) -> Moments:
        return part.mapped(map.whiten(part.gram), map.T)

    def solve(problem: tuple[IntArray, float, Moments]) -> tuple[IntArray, FloatArray, FloatArray]:
        columns, C, moments = problem
        own, b = solve_primal(moments, None if many else map, C, penalised=penalised)
        return columns, map.T @ own if many else own, b

    if many:  # problems of few classes, whose moments are mapped once
        whole = run_blocks(mapped, whole, threads)
    coef, intercept = np.zeros((map.T.shape[0], len(C_of))), np.zeros(len(C_of))
    todo = problems(whole, task, C_of)
    for columns, own, b in run_stream(solve, todo, threads) if many else (solve(p) for p in todo):
        coef[:, columns], intercept[columns] = own, b
    return coef, intercept


def problems(
    whole: list[Moments], task: Classes | None, C_of: FloatArray, only: IntArray | None = None
) -> Iterator[tuple[IntArray, float, Moments]]:
    """Yield outputs (all, or ``only`` some) that share rows and C, their C, and their moments."""
    counts = class_counts(whole)
    for columns in groups_of(task, len(C_of)):
        wanted = np.ones(len(columns), dtype=bool) if only is None else np.isin(columns, only)
        if not wanted.any():
            continue
        moments = whole[0] if task is None else assemble(task, whole, columns, counts)
        for C in dict.fromkeys(C_of[columns[wanted]].tolist()):
            inside = np.flatnonzero(wanted & (C_of[columns] == C))
            yield columns[inside], C, moments.outputs(inside)


def class_counts(whole: list[Moments]) -> FloatArray:
    """Return the weights of the classes."""
    return np.array([part.weight for part in whole])


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients (m, k) and intercepts (k,), the C of each, and how they were found."""

    coef: FloatArray
    intercept: FloatArray
    C: FloatArray
    solver: str = "direct"
    residual: float = 0.0
    iterations: int = 0


def choose_pcg(problem: FixedProblem, Z: FloatArray) -> PCG | None:
    """Return the settings of conjugate gradients, or None where moments are the better way."""
    rows, ask, task = problem.rows, problem.ask, problem.by_class
    if isinstance(ask.solver, PCG):
        return ask.solver
    if ask.solver == "pcg":
        return PCG()
    if ask.solver != "auto" or ask.needs_moments is not None or rows.on_device or is_sparse(Z):
        return None  # products are what a device is good at
    chosen = choose_primal(
        rows.n_rows,
        Z.shape[0],
        Z.shape[1],
        rows.n_outputs,
        n_cells=ask.n_folds * (1 if task is None else task.n_classes),
        n_groups=len(groups_of(task, rows.n_outputs)),
        budget=rows.budget,
        threads=rows.threads,
    )
    return PCG() if chosen == "pcg" else None


def solve_by_gradients(
    problem: FixedProblem, pcg: PCG, kernel: Kernel, Z: FloatArray, C_of: FloatArray
) -> Solution:
    """Solve by preconditioned conjugate gradients, in passes over the rows."""
    rows, task, on_event = problem.rows, problem.by_class, problem.tell.on_event
    n, m, k = rows.n_rows, Z.shape[0], len(C_of)
    budget, threads = rows.budget, rows.threads
    factor, block = 8 * m * (m + 1), 8 * (512 * m + threads * (2**19 + 128 * m))
    require(
        factor + block + 8 * m * 8 * k,
        budget,
        what=f"The factors of {m:,} prototypes",
        advice="Lower n_prototypes, or raise memory_budget.",
    )
    room = budget - factor - block
    keep = 8 * n * (m + k) <= room // 2
    products = rows.products(kernel, Z, task, keep=keep)
    space = make_space(kernel, rows.put(Z), threads=threads)
    more = max(0, room - (8 * n * (m + k) if keep else 0)) // 2
    coef, intercept = np.empty((m, k)), np.empty(k)
    residual, iterations = 0.0, 0
    systems = [
        (columns[C_of[columns] == C], float(C))
        for columns in groups_of(task, k)
        for C in dict.fromkeys(C_of[columns].tolist())
    ]
    together = 1 + int(more // (8 * m * m))  # preconditioners that fit
    for part in slices(len(systems), together):
        space.clear()
        for columns, C in systems[part]:
            mass = to_numpy(products.sums.weight)
            own = float(mass[columns[0] if len(mass) > 1 else 0])
            space.add(_precondition(problem, pcg, m, columns, C, own))
        wanted = np.concatenate([columns for columns, _ in systems[part]])
        solution = solve_pcg(
            products,
            space,
            C_of,
            wanted,
            tol=pcg.tol,
            max_iter=pcg.max_iter,
            on_iteration=lambda i, r: on_event({"text": f"iteration {i}, residual {r:.1e}"}),
        )
        coef[:, wanted] = to_numpy(solution.coef)
        intercept[wanted] = to_numpy(solution.intercept)
        residual = max(residual, solution.residual)
        iterations = max(iterations, solution.iterations)
    return Solution(coef, intercept, C_of, "pcg", residual, iterations)


def _precondition(
    problem: FixedProblem, pcg: PCG, m: int, columns: IntArray, C: float, mass: float
) -> PreconditionerRows:
    """Return the preconditioner of one system: the moments of prototypes and of some rows."""
    rows, task = problem.rows, problem.by_class
    sample: HostRows = rows.sample
    used, weight = np.arange(sample.n_rows), sample.weight
    if task is not None:
        table = sample.table(task)
        assert sample.labels is not None
        factor = table.factors[sample.labels] * (table.targets[sample.labels, columns[0]] != 0)
        weight, used = times(weight, factor), np.flatnonzero(factor)
    size = pcg.n_rows
    if size is None:
        n = int(len(used) / max(1, sample.n_rows) * rows.n_rows)
        size = preconditioner_rows(n, m, sample.X.shape[1], len(columns))
    own = np.ones(len(used)) if weight is None else weight[used]
    each = 0.0
    if not rows.rereads or size < len(used):  # else all there are: nothing else is needed
        chance = np.minimum(1.0, size * own / own.sum())
        drawn = np.flatnonzero(as_generator(problem.ask.seed).random(len(used)) < chance)
        used, own, each = used[drawn], own[drawn] / chance[drawn], mass / (len(drawn) + m)
        own *= each * len(drawn) / max(float(own.sum()), np.finfo(np.float64).tiny)
    return PreconditionerRows(columns, C, rows.put(sample.X[used]), rows.put(own), each)
