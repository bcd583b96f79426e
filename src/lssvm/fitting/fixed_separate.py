"""A fixed-size model whose outputs have a C and a gamma each."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import peak_memory
from lssvm.backends.host import Rows
from lssvm.fitting.fixed_memory import (
    FixedDetails,
    FixedMemory,
    held_outputs,
    remember,
    with_thresholds,
)
from lssvm.fitting.fixed_settings import FixedProblem, folds_of, snap_gamma, snap_results
from lssvm.fitting.fixed_solution import problems
from lssvm.fitting.prototypes import Prototypes
from lssvm.fitting.record import Fit, Machine, Tuning, alike
from lssvm.solvers import solve_primal
from lssvm.tasks import Classes, SquaredError
from lssvm.tuning.fixed_size import SeparateObjective, fold_models
from lssvm.tuning.search import TuningResult

NO_ROWS = (
    "tuning='separate' has a kernel for every output and keeps the moments of none, so rows cannot "
    "be added or removed: use tuning='joint'"
)


def fit_separate(problem: FixedProblem, chosen: Prototypes) -> Fit:
    """Fit a fixed-size model with a (C, gamma) for each output.

    Parameters
    ----------
    problem : FixedProblem
    chosen : Prototypes

    Returns
    -------
    Fit

    Notes
    -----
    Section 8 of [DeBrabanter2010]_ tunes the classifiers of a code as it does a binary one; eq.
    (3.13) of [Suykens2002]_ has a (gamma_i, sigma_i) for each. The outputs share prototypes, and
    the passes over the rows of kernel parameters that several of them ask for.
    """
    rows, task, ask, Z = problem.rows, problem.task, problem.ask, chosen.Z
    shared = _shared(problem, rows, Z)
    results = [_search(problem, shared, j, Z) for j in range(rows.n_outputs)]
    C = np.array([result.C for result in results])
    tuned = ask.choice.tunes_gamma
    gammas = [snap_gamma(r.gamma) if tuned else problem.gamma for r in results]
    parts = alike(gammas)
    coef, intercept = np.zeros((Z.shape[0], len(C))), np.zeros(len(C))
    machines = [Machine(ask.choice.at(gammas[columns[0]]), columns) for columns in parts]
    for kernel, columns in ((machine.kernel, machine.columns) for machine in machines):
        whole = rows.moments(kernel, Z, None, problem.by_class).whole
        map = rows.map(kernel, Z)
        for outputs, value, moments in problems(whole, problem.by_class, C, columns):
            solved = solve_primal(moments, map, value, penalised=ask.penalised)
            coef[:, outputs], intercept[outputs] = solved
    memory = FixedMemory()
    if ask.calibrates:
        table = None if problem.by_class is None else rows.sample.table(problem.by_class)
        searched = [result.gamma for result in results]
        held = partial(_held, problem, shared, machines, searched, C)
        memory = remember(rows, ask.seed, table, rows.tested(shared.objective.folds), held)
    published = ask.choice.by_feature(gammas[0]) if len(parts) == 1 else np.array(gammas)
    sample = rows.sample
    tuning = Tuning(
        tuple(replace(_snapped(r) if tuned else r, point=None) for r in results),
        float(np.mean([-result.loss for result in results])),
        int(sum(result.n_evaluations for result in results)),
    )
    fit = Fit(
        task,
        tuple(machines),
        Z,
        coef,
        intercept + problem.centre,
        C,
        published,
        chosen.support,
        ask.seed,
        memory,
        tuning=tuning,
        details=FixedDetails(
            Z.shape[0],
            [],
            selection=chosen.selection,
            no_update=NO_ROWS,
            centre=sample.centre,
            peak_memory=peak_memory() if sample.by_position else None,
        ),
    )
    return with_thresholds(fit, ask.threshold)


def _shared(problem: FixedProblem, rows: Rows, Z: FloatArray) -> SeparateObjective:
    """Return what all outputs read their losses from."""
    ask = problem.ask
    objective = problem.objective(ask.choice, rows, Z, folds_of(rows, ask), SquaredError())
    by_error = ask.scoring is None and isinstance(problem.task, Classes)
    return SeparateObjective(objective, by_error, rows.budget // 4)


def _search(
    problem: FixedProblem, shared: SeparateObjective, output: int, Z: FloatArray
) -> TuningResult:
    """Search C and gamma of one output; on a sample first where rows are read in blocks."""
    rows, ask, tell = problem.rows, problem.ask, problem.tell
    counted = rows.n_observations() * _share(problem, output) if shared.by_error else None
    space, search = problem.space(rows, ask.C, counted), ask.search
    if rows is not rows.sample and not rows.rereads and ask.choice.tunes_gamma:
        search, _ = problem.narrowed(_shared(problem, rows.sample, Z).of(output), space, 1)
    return replace(ask, search=search).run_search(shared.of(output), space, tell, resume=False)


def _share(problem: FixedProblem, output: int) -> float:
    """Return the part of the rows that a problem is trained on."""
    task, labels = problem.task, problem.rows.sample.labels
    if not isinstance(task, Classes) or labels is None:
        return 1.0
    return float(np.mean(task.code.matrix[labels, output] != 0))


def _snapped(result: TuningResult) -> TuningResult:
    """Return the result with the values of gamma that models were made with."""
    table = snap_results(result.cv_results)
    return replace(result, gamma=snap_gamma(result.gamma), cv_results=table)


def _held(
    problem: FixedProblem,
    shared: SeparateObjective,
    machines: list[Machine],
    searched: list[float | None],
    C: FloatArray,
    numbers: IntArray,
) -> FloatArray:
    """Return out-of-fold outputs of rows, (t, k), kernel by kernel."""
    rows, objective = problem.rows, shared.objective
    held = np.full((len(numbers), len(C)), np.nan)
    for columns in (machine.columns for machine in machines):
        point = shared.points.at(searched[columns[0]])
        if objective.leave_out:  # in closed form
            for j in columns:
                group = next(g for g in point.groups if j in g)
                outputs = point.left_out_outputs(C[[j]], group)[0, numbers]
                held[:, j] = outputs[:, int(np.searchsorted(group, j))]
            continue
        models = []
        for fold in zip(*(fold_models(point, float(C[j]), int(j)) for j in columns), strict=True):
            coef, b = zip(*fold, strict=True)
            models.append((np.concatenate(coef, axis=1), np.concatenate(b)))
        folds = rows.tested(objective.folds)
        held[:, columns] = held_outputs(rows, folds, point.kernel, point.Z, models, numbers)
    return held
