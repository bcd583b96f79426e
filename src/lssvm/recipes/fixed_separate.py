"""A fixed-size model whose outputs have a C and a gamma each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import peak_memory
from lssvm.criteria.fixed_size import SeparateObjective, fold_models
from lssvm.engines.host import Rows
from lssvm.kernels import Kernel
from lssvm.recipes.fixed_memory import (
    SAMPLE,
    SCORES,
    FixedDetails,
    FixedMemory,
    draw_sample,
    with_thresholds,
)
from lssvm.recipes.fixed_settings import N_C, FixedProblem, folds_of, snap_gamma, snap_results
from lssvm.recipes.fixed_solution import problems
from lssvm.recipes.prototypes import Prototypes
from lssvm.recipes.record import Fit, Machine, Tuning, alike
from lssvm.search.base import Search, Space, TuningResult
from lssvm.search.path import ListedPathSearch, PathSearch, best_gammas
from lssvm.solvers import solve_primal
from lssvm.tasks import Classes, SquaredError
from lssvm.tasks.weights import times

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
    held = _Held(problem, shared) if ask.calibrates else None
    machines = []
    for columns in parts:
        gamma = gammas[columns[0]]
        kernel = ask.choice.at(gamma)
        machines.append(Machine(kernel, columns))
        _solve(problem, kernel, Z, columns, C, coef, intercept)
        if held is not None:
            held.add(kernel, Z, results[columns[0]].gamma, columns, C)
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
        FixedMemory() if held is None else held.memory(),
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
    ask, given = problem.ask, problem.gamma

    def kernel(value: float | None) -> Kernel:
        return ask.choice.at(snap_gamma(value) if ask.choice.tunes_gamma else given)

    objective = problem.objective(kernel, rows, Z, folds_of(rows, ask), SquaredError())
    by_error = ask.scoring is None and isinstance(problem.task, Classes)
    return SeparateObjective(objective, by_error, rows.budget // 4)


def _search(
    problem: FixedProblem, shared: SeparateObjective, output: int, Z: FloatArray
) -> TuningResult:
    """Search C and gamma of one output; on a sample first where rows are read in blocks."""
    rows, ask, tell = problem.rows, problem.ask, problem.tell
    tuned = ask.choice.tunes_gamma
    counted = None
    if shared.by_error:
        counted = max(1, round(rows.n_observations() * _share(problem, output)))
    space = Space(
        C=ask.C,
        tune_gamma=tuned,
        gamma_start=rows.gamma_scale() if tuned else 1.0,
        n_features=rows.sample.X.shape[1],
        counted_rows=counted,
        C_range=problem.C_range,
    )
    search: Search = ask.search
    if rows is not rows.sample and not rows.rereads and tuned:
        small = _shared(problem, rows.sample, Z).of(output)
        options: dict[str, Any] = {"random_state": ask.seed, "on_event": tell.on_event}
        found = search.run(small, space, resume=False, **options)
        n_C = search.n_C if isinstance(search, PathSearch) else N_C
        search = ListedPathSearch(n_C=n_C, gammas=best_gammas(found, 1))
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


def _solve(
    problem: FixedProblem,
    kernel: Kernel,
    Z: FloatArray,
    columns: IntArray,
    C: FloatArray,
    coef: FloatArray,
    intercept: FloatArray,
) -> None:
    """Fill the coefficients of some outputs, from the moments of all rows at their gamma."""
    rows, by_class = problem.rows, problem.by_class
    whole, map = rows.moments(kernel, Z, None, by_class).whole, rows.map(kernel, Z)
    for outputs, value, moments in problems(whole, by_class, C):
        inside = np.isin(outputs, columns)
        if inside.any():
            own = moments.outputs(np.flatnonzero(inside))
            solved = solve_primal(own, map, value, penalised=problem.ask.penalised)
            coef[:, outputs[inside]], intercept[outputs[inside]] = solved


class _Held:
    """Out-of-fold outputs of a sample of the rows, output by output."""

    def __init__(self, problem: FixedProblem, shared: SeparateObjective) -> None:
        rows, objective = problem.rows, shared.objective
        self.rows, self.shared = rows, shared
        self.folds = rows.tested(objective.folds)
        size = SCORES if rows.sample.labels is not None else SAMPLE
        drawn = draw_sample(rows, self.folds, problem.ask.seed, size)
        self.sample, self.numbers = drawn
        if problem.by_class is not None:
            factors = rows.sample.table(problem.by_class).factors[self.sample.labels]
            self.sample = replace(self.sample, weight=times(self.sample.weight, factors))
        self.held = np.full(self.sample.Y.shape, np.nan)

    def add(
        self, kernel: Kernel, Z: FloatArray, gamma: float | None, columns: IntArray, C: FloatArray
    ) -> None:
        """Fill the columns of outputs that share a kernel."""
        point, sample = self.shared.point(gamma), self.rows.sample
        models = [fold_models(point, float(C[j]), int(j)) for j in columns]
        for j, own in zip(columns, models, strict=True):
            if own is None:  # left out in closed form
                group = next(g for g in point.groups if j in g)
                outputs = point.left_out_outputs(C[[j]], group)[0, self.numbers]
                self.held[:, j] = outputs[:, int(np.searchsorted(group, j))]
        known = [own for own in models if own is not None]
        if not known:
            return
        for v, test in enumerate(self.folds.test):
            at = np.flatnonzero(np.isin(self.numbers, test))
            coef = np.concatenate([own[v][0] for own in known], axis=1)
            b = np.concatenate([own[v][1] for own in known])
            X = sample.X[self.numbers[at]]
            self.held[np.ix_(at, columns)] = self.rows.evaluate(kernel, X, Z, coef, b)

    def memory(self) -> FixedMemory:
        """Return what calibrates probabilities."""
        X = None if self.sample.labels is not None else self.sample.X
        return FixedMemory(replace(self.sample, X=X, held=self.held))
