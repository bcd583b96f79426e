"""Coefficients of a fixed-size model: from moments, or by conjugate gradients without them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.memory import require
from lssvm._core.namespace import to_numpy
from lssvm._core.progress import Listener
from lssvm._core.random import as_generator
from lssvm._core.threads import slices
from lssvm.engines.base import Rows
from lssvm.engines.host import HostRows
from lssvm.kernels import Kernel
from lssvm.moments import Moments, NystromMap
from lssvm.moments.cells import assemble
from lssvm.recipes.fixed_settings import FixedSettings
from lssvm.solvers import (
    PCG,
    FeatureSpace,
    PreconditionerRows,
    choose_primal,
    make_space,
    preconditioner_rows,
    solve_pcg,
    solve_primal,
)
from lssvm.tasks import Classes

TUNED_PROTOTYPES = 1000
"""Prototypes, the first of all, that C and gamma are tuned with where a fit takes no moments."""


def solve_moments(
    whole: list[Moments], map: NystromMap, task: Classes | None, C_of: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Solve for the coefficients on the prototypes [DeBrabanter2010, eq. (7)].

    Parameters
    ----------
    whole : list of Moments
        One, or one per class.
    map : NystromMap
    task : Classes or None
        What puts problems together from the moments of the classes.
    C_of : array of shape (k,)

    Returns
    -------
    coef : array of shape (m, k)
    intercept : array of shape (k,)
    """
    k = len(C_of)
    coef, intercept = np.zeros((map.T.shape[0], k)), np.zeros(k)
    for columns in [np.arange(k)] if task is None else task.groups():
        moments = whole[0]
        if task is not None:
            moments = assemble(task, whole, columns, class_counts(whole))
        for C in dict.fromkeys(C_of[columns].tolist()):
            inside = C_of[columns] == C
            solved, b = solve_primal(moments, map, C)
            coef[:, columns[inside]] = solved[:, inside]
            intercept[columns[inside]] = b[inside]
    return coef, intercept


def class_counts(whole: list[Moments]) -> FloatArray:
    """Return the weights of the classes."""
    return np.array([part.weight for part in whole])


@dataclass(frozen=True, eq=False)
class IterativeSolution:
    """What conjugate gradients have found."""

    coef: FloatArray
    intercept: FloatArray
    residual: float
    iterations: int


def choose_pcg(rows: Rows, ask: FixedSettings, Z: FloatArray, task: Classes | None) -> PCG | None:
    """Return the settings of conjugate gradients, or None where moments are the better way."""
    if isinstance(ask.solver, PCG):
        return ask.solver
    if ask.solver == "pcg":
        return PCG()
    if ask.solver != "auto" or ask.needs_moments is not None or rows.on_device:
        return None  # products are what a device is good at
    chosen = choose_primal(
        rows.n_rows,
        Z.shape[0],
        Z.shape[1],
        rows.n_outputs,
        n_cells=ask.n_folds * (1 if task is None else task.n_classes),
        n_groups=1 if task is None else len(task.groups()),
        budget=rows.budget,
        threads=rows.threads,
    )
    return PCG() if chosen == "pcg" else None


def solve_by_gradients(
    pcg: PCG,
    rows: Rows,
    task: Classes | None,
    kernel: Kernel,
    Z: FloatArray,
    C_of: FloatArray,
    seed: int,
    tell: Listener,
) -> IterativeSolution:
    """Solve by preconditioned conjugate gradients, in passes over the rows."""
    n, m, k = rows.n_rows, len(Z), len(C_of)
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
    groups = [np.arange(k)] if task is None else task.groups()
    systems = [
        (columns[C_of[columns] == C], float(C))
        for columns in groups
        for C in dict.fromkeys(C_of[columns].tolist())
    ]
    together = 1 + int(more // (8 * m * m))  # preconditioners that fit
    for part in slices(len(systems), together):
        space.clear()
        for columns, C in systems[part]:
            mass = to_numpy(products.sums.weight)
            _precondition(space, pcg, rows, task, m, columns, C, mass, seed)
        wanted = np.concatenate([columns for columns, _ in systems[part]])
        solution = solve_pcg(
            products,
            space,
            C_of,
            wanted,
            tol=pcg.tol,
            max_iter=pcg.max_iter,
            on_iteration=lambda i, r: tell.on_event({"text": f"iteration {i}, residual {r:.1e}"}),
        )
        coef[:, wanted] = to_numpy(solution.coef)
        intercept[wanted] = to_numpy(solution.intercept)
        residual = max(residual, solution.residual)
        iterations = max(iterations, solution.iterations)
    return IterativeSolution(coef, intercept, residual, iterations)


def _precondition(
    space: FeatureSpace,
    pcg: PCG,
    rows: Rows,
    task: Classes | None,
    m: int,
    columns: IntArray,
    C: float,
    total: FloatArray,
    seed: int,
) -> None:
    """Add the preconditioner of one system: the moments of prototypes and of some rows."""
    sample: HostRows = rows.sample
    used, weight = np.arange(sample.n_rows), sample.weight
    if task is not None:
        table = sample.table(task)
        assert sample.labels is not None
        factor = table.factors[sample.labels] * (table.targets[sample.labels, columns[0]] != 0)
        weight = factor if weight is None else weight * factor
        used = np.flatnonzero(factor)
    share = len(used) / max(1, sample.n_rows)
    size = pcg.n_rows
    if size is None:
        n = int(share * rows.n_rows)
        size = preconditioner_rows(n, m, sample.X.shape[1], len(columns))
    own = np.ones(len(used)) if weight is None else weight[used]
    mass = float(total[columns[0] if len(total) > 1 else 0])
    if rows.rereads and size >= len(used):  # all there are: nothing else is needed
        some = rows.put(sample.X[used])
        space.add(PreconditionerRows(columns, C, some, rows.put(own), 0.0))
        return
    chance = np.minimum(1.0, size * own / own.sum())
    drawn = np.flatnonzero(as_generator(seed).random(len(used)) < chance)
    each = mass / (len(drawn) + m)
    weight = own[drawn] / chance[drawn]
    weight *= each * len(drawn) / max(float(weight.sum()), np.finfo(np.float64).tiny)
    some = rows.put(sample.X[used[drawn]])
    space.add(PreconditionerRows(columns, C, some, rows.put(weight), each))
