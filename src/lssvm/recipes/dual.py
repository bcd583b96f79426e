"""The full dual model: tune, solve, reduce, remember [Suykens2002, chapter 3]."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from lssvm._core.errors import InvalidInputError, MemoryBudgetError
from lssvm._core.progress import Listener
from lssvm._core.threads import small_problem
from lssvm.codes import groups as code_groups
from lssvm.criteria.closed_form import is_criterion, press_folds, press_loss
from lssvm.criteria.fold_targets import FoldTargets, Group
from lssvm.engines.host import HostRows
from lssvm.kernels import Precomputed
from lssvm.kernels.given import check_kernel_matrix
from lssvm.recipes.ard import shares
from lssvm.recipes.dual_memory import DualDetails, DualMemory, DualPart
from lssvm.recipes.dual_settings import DualSettings
from lssvm.recipes.dual_solving import Part, alike, parts_of, reduce, solve, use_loss, weigh_down
from lssvm.recipes.dual_tuning import Chosen, DualProblem, as_given, spread, tune
from lssvm.recipes.record import Fit, Machine, Resources
from lssvm.recipes.robust import rounds
from lssvm.recipes.settings import make_folds
from lssvm.reductions import Prune
from lssvm.solvers import DualSystem
from lssvm.tasks import Classes, Numbers, Task, Truth


def fit_dual(rows: HostRows, task: Task, ask: DualSettings, tell: Listener) -> Fit:
    """Fit the dual model: least squares support vector machines of [Suykens2002, chapter 3].

    Parameters
    ----------
    rows : HostRows
    task : Classes or Numbers
    ask : DualSettings
    tell : Listener

    Returns
    -------
    Fit

    Notes
    -----
    Time n^3/3 + n^2 d for given parameters, an eigendecomposition per gamma for tuned ones.
    """
    problem = _open(rows, task, ask)
    with small_problem(rows.n_rows):
        chosen = as_given(problem, ask)
        if ask.tunes:
            chosen = tune(problem, ask, ask.choice, tell)
            for _ in range(rounds(ask.loss)):
                problem = weigh_down(problem, rows.weight, ask, chosen)
                chosen = tune(problem, ask, ask.choice, tell, again=True)
            if ask.choice.asks_ard:
                chosen = spread(problem, rows, ask, chosen, tell)
        solved = [
            reduce(use_loss(solve(part, problem, ask, chosen), problem, ask), problem, ask)
            for part in parts_of(problem, chosen)
        ]
        return _record(rows, task, ask, problem, chosen, solved)


def _open(rows: HostRows, task: Task, ask: DualSettings) -> DualProblem:
    choice, given = ask.choice, (rows.X, None) if rows.given is None else rows.given
    if choice.precomputed:
        check_kernel_matrix(given[0])
    gamma = choice.fixed_gamma(rows.X, rows.weight)
    system = DualSystem(
        choice.at(gamma),
        rows.X,
        rows.row_numbers if choice.precomputed else rows.X,
        ask.C or 1.0,
        None if rows.weight is None else np.sqrt(rows.weight),
        rows.budget,
        rows.threads,
        ask.fit_intercept,
    )
    cv = per_fold = None
    if ask.tunes or isinstance(ask.reduction, Prune):
        cv = make_folds(
            ask.cv,
            given[0],
            given[1],
            rows.row_numbers,
            labels=rows.labels,
            seed=ask.seed,
            positions=choice.precomputed,
        )
    Y = np.asarray(rows.Y, dtype=np.float64)
    if isinstance(task, Classes):  # [Suykens2002, eq. (3.12)]
        assert rows.labels is not None
        groups = [Group(g.columns, g.rows) for g in code_groups(task.code, rows.labels)]
    else:
        groups = [Group(np.arange(Y.shape[1]))]
    press = isinstance(ask.scoring, str) and ask.scoring == "press"
    folds = press_folds(system, choice.precomputed) if press else cv
    loss = press_loss(groups) if press else None
    if not is_criterion(ask.scoring):
        loss = task.loss(ask.scoring, ask.loss)
    if isinstance(task, Classes) and folds is not None:
        assert rows.labels is not None
        per_fold = FoldTargets.of(task, rows.labels, rows.sample_weight, folds)
    truth = Truth(Y, rows.labels, rows.weight, rows.sample_weight, rows.X)
    return DualProblem(system, truth, task, groups, gamma, loss, cv, folds, per_fold)


def _record(
    rows: HostRows,
    task: Task,
    ask: DualSettings,
    problem: DualProblem,
    chosen: Chosen,
    parts: list[Part],
) -> Fit:
    n, k = problem.truth.Y.shape
    coef, intercept, C = np.zeros((n, k)), np.zeros(k), np.empty(k)
    gamma: list[Any] = [None] * k
    for part in parts:
        own = np.arange(n) if part.rows is None else part.rows
        coef[np.ix_(own, part.columns)] = part.solved.alpha
        intercept[part.columns], C[part.columns] = part.solved.b, part.C
        for j in part.columns:
            gamma[j] = part.gamma
    if not (np.all(np.isfinite(coef)) and np.all(np.isfinite(intercept))):
        raise InvalidInputError(
            "The solution is not finite: the kernel matrix overflows or is singular for these "
            "data. Scale the features (StandardScaler), or lower C, degree or gamma."
        )
    used = np.flatnonzero(np.any(coef != 0, axis=1))
    used = used if len(used) else np.array([0])
    system, choice = problem.system, chosen.choice
    same = all(np.array_equal(gamma[0], value) for value in gamma)
    published = choice.by_feature(gamma[0]) if same else np.array(gamma)
    relevance = shares(published, rows.X, problem.truth.weight) if choice.asks_ard else None
    machines = alike(np.arange(k), np.ones(k), gamma)
    basis = system.basis[used]
    numbers = isinstance(task, Numbers)
    memory = _remember(rows, ask, problem, chosen, parts, basis if len(used) == n else None)
    return Fit(
        task=task,
        machines=tuple(Machine(choice.at(gamma[columns[0]]), columns) for columns in machines),
        basis=basis,
        coef=coef[used].astype(system.dtype, copy=False),
        intercept=intercept.astype(system.dtype, copy=False),
        C=C,
        gamma=published,
        support=rows.row_numbers[used],
        seed=ask.seed,
        memory=memory,
        loss=ask.loss,
        solver=parts[-1].solved.solver,
        residual=max(part.solved.residual for part in parts),
        iterations=max(1, *(part.solved.iterations for part in parts)),
        tuning=chosen.tuning,
        relevance=relevance,
        details=DualDetails(
            [part.path for part in parts if part.path is not None],
            max(part.n_reweightings for part in parts) if numbers else None,
        ),
    )


def _remember(
    rows: HostRows,
    ask: DualSettings,
    problem: DualProblem,
    chosen: Chosen,
    parts: list[Part],
    basis: Any,
) -> DualMemory:
    """Keep rows, targets and what cross-validation has predicted, as far as they are needed.

    ``basis`` are the rows, where all of them are support vectors.
    """
    held = held_rows = None
    if chosen.point is not None and len(set(chosen.C.tolist())) == 1:
        # A search without the kernel matrix may end where the matrix does not fit.
        with suppress(MemoryBudgetError):
            held = np.concatenate([p[0] for p in chosen.point.predictions(chosen.C[:1])])
            held_rows = np.concatenate(chosen.point.objective.folds.test)
    precomputed = isinstance(problem.system.kernel, Precomputed)
    kept = [] if precomputed or ask.loss != "squared" else parts
    memory = DualMemory(
        [
            DualPart(part.columns, part.rows, part.choice.at(part.gamma), float(part.C[0]))
            for part in kept
        ],
        (rows.X.copy() if basis is None else basis) if kept else rows.X[:0].copy(),
        np.array(problem.truth.Y),  # a regressor's may be the caller's array
        problem.truth.weight,
        rows.labels,
        ask.fit_intercept,
        ask.reduction_text,
        held,
        held_rows,
    )
    return memory.settled(Resources(rows.budget, rows.threads))
