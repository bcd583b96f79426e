"""How C and gamma of a dual model are chosen."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import ConvergenceWarning, InvalidInputError
from lssvm._core.progress import Listener
from lssvm.criteria.ard_evidence import DualRelevance
from lssvm.criteria.closed_form import check_criterion, is_criterion
from lssvm.criteria.dual import C_range, DualObjective, DualPoint
from lssvm.criteria.fold_targets import FoldTargets, Group
from lssvm.criteria.spectral_objective import SpectralObjective
from lssvm.engines.host import HostRows, count_distinct
from lssvm.folds.content import Folds, restrict_folds
from lssvm.kernels import Kernel, resolve_gamma
from lssvm.recipes.ard import DUAL_ROWS, relevance_sample, spread_gamma
from lssvm.recipes.dual_settings import DualSettings
from lssvm.recipes.record import Tuning
from lssvm.recipes.settings import KernelChoice, fingerprint
from lssvm.search.space import Space, TuningResult
from lssvm.solvers import DualSystem
from lssvm.tasks import Classes, Loss, Misclassification, Numbers, SquaredError, Task, Truth


@dataclass(frozen=True, eq=False)
class DualProblem:
    """Outputs that are trained and tuned together.

    Attributes
    ----------
    system : DualSystem
        Of all rows; its kernel is that of the given gamma, or of 1.
    truth : Truth
        Targets (n, k), classes and weights.
    task : Classes or Numbers
    groups : list of Group
        Outputs that are trained on the same rows.
    gamma : float, array or None
        As given; None: tuned, or the kernel has none.
    loss : Loss or None
        What tuning minimises; None for a criterion that needs no folds.
    cv : Folds or None
        Folds that the caller asked for.
    folds : Folds or None
        Folds that are tuned on.
    per_fold : FoldTargets or None
    lowered : bool
        Whether a robust loss has changed the weights.
    """

    system: DualSystem
    truth: Truth
    task: Task
    groups: list[Group]
    gamma: Any
    loss: Loss | None
    cv: Folds | None
    folds: Folds | None
    per_fold: FoldTargets | None
    lowered: bool = False

    def targets(self, rows: IntArray | None, columns: IntArray) -> FloatArray:
        """Return the targets of a part."""
        Y = self.truth.Y
        return np.asarray(Y[:, columns] if rows is None else Y[np.ix_(rows, columns)])

    @property
    def n_outputs(self) -> int:
        """Number of outputs, k."""
        return int(self.truth.Y.shape[1])


@dataclass(frozen=True, eq=False)
class Chosen:
    """C and gamma of every output.

    Attributes
    ----------
    C : array of shape (k,)
    gamma : list of float, array or None
    choice : KernelChoice
        With the factors of gamma by feature.
    tuning : Tuning or None
    point : DualPoint or None
        What was factorised at the chosen gamma, where one choice serves all outputs.
    """

    C: FloatArray
    gamma: list[Any]
    choice: KernelChoice
    tuning: Tuning | None = None
    point: DualPoint | None = None


def as_given(problem: DualProblem, ask: DualSettings) -> Chosen:
    """Return C and gamma as the caller gave them; what is to be tuned is not a number yet."""
    k = problem.n_outputs
    C = np.full(k, np.nan if ask.C is None else ask.C)
    return Chosen(C, [problem.gamma] * k, ask.choice)


def tune(
    problem: DualProblem,
    ask: DualSettings,
    choice: KernelChoice,
    tell: Listener,
    *,
    again: bool = False,
) -> Chosen:
    """Choose C and gamma, jointly for all outputs or for each by itself [Suykens2002, (3.13)].

    A checkpoint holds the first search of a fit; ``again`` says that this is a later one.
    """
    if is_criterion(ask.scoring):
        check_criterion(ask.scoring, ask.C)
    space, k = space_of(problem, ask, problem.system), problem.n_outputs
    counts = problem.truth.labels is not None and ask.scoring is None
    chosen, results = as_given(problem, ask), []
    for columns in [np.array([j]) for j in range(k)] if ask.separate else [np.arange(k)]:
        own = _single(problem, ask, int(columns[0])) if ask.separate else problem
        objective, n = _objective(own, ask, choice), own.system.n
        distinct = (
            (n if choice.precomputed else count_distinct(own.system.rows)) if counts else None
        )
        result = ask.search.run(
            objective,
            replace(space, counted_rows=distinct),
            random_state=ask.seed,
            on_event=tell.on_event,
            fingerprint=_fingerprint(problem, ask) if ask.search.checkpoint else "",
            resume=not again,
        )
        results.append(result)
        chosen.C[columns] = result.C
        if choice.tunes_gamma:
            for j in columns:
                chosen.gamma[j] = result.gamma
        if result.interrupted and not tell.stopped:
            warnings.warn(
                "Tuning was interrupted; the best parameters found so far are used.",
                ConvergenceWarning,
                stacklevel=4,
            )
    point = result.point if len(results) == 1 else None
    if len(results) == 1 and not isinstance(point, DualPoint):
        at_hand = ask.needs_folds and isinstance(objective, DualObjective)
        point = objective.at(result.gamma) if at_hand else None
    assert point is None or isinstance(point, DualPoint)
    return replace(chosen, choice=choice, tuning=_tuning(results), point=point)


def _tuning(results: list[TuningResult]) -> Tuning:
    every = [r for result in results for r in (result, result.approximate) if r is not None]
    return Tuning(
        tuple(replace(result, point=None) for result in results),
        float(np.mean([-result.loss for result in results])),
        int(sum(r.n_evaluations for r in every)),
    )


def _fingerprint(problem: DualProblem, ask: DualSettings) -> str:
    choice, truth = ask.choice, problem.truth
    settings = [ask.C, choice.gamma, choice.kernel, choice.degree, choice.coef0, ask.fit_intercept]
    settings += [ask.cv, ask.scoring, ask.loss, ask.seed]
    if isinstance(problem.task, Classes):
        task = problem.task
        settings += [task.code.matrix, task.decoding, task.targets, task.class_weight]
    return fingerprint((problem.system.rows, truth.Y, truth.weight), settings)


def space_of(problem: DualProblem, ask: DualSettings, system: DualSystem) -> Space:
    """Return what is searched; the range of C is in units of the kernel of ``system``."""
    X, tuned = problem.system.rows, ask.choice.tunes_gamma
    return Space(
        C=ask.C,
        tune_gamma=tuned,
        gamma_start=float(resolve_gamma("scale", X, problem.truth.weight)) if tuned else 1.0,
        n_features=max(1, X.shape[1]),
        C_range=C_range(system),
    )


def _objective(
    problem: DualProblem, ask: DualSettings, choice: KernelChoice
) -> DualObjective | SpectralObjective:
    def kernel(value: float | None) -> Kernel:
        return choice.at(value if choice.tunes_gamma else problem.gamma)

    system, truth, folds = problem.system, problem.truth, problem.folds
    if problem.loss is None:
        return SpectralObjective(ask.scoring, kernel, system, truth.Y, problem.groups)
    assert folds is not None
    return DualObjective(
        kernel, system, truth, folds, problem.loss, problem.groups, problem.per_fold
    )


def _single(problem: DualProblem, ask: DualSettings, j: int) -> DualProblem:
    """Return the problem of one output, on the rows that it is trained on."""
    truth, column = problem.truth, np.array([j])
    group = next(g for g in problem.groups if j in g.columns)
    rows = np.arange(problem.system.n) if group.rows is None else group.rows
    if truth.labels is not None and not (ask.scoring is None or is_criterion(ask.scoring)):
        raise InvalidInputError(
            "tuning='separate' judges each binary problem by its accuracy; scoring cannot be "
            "given with it. Use tuning='joint'."
        )
    loss: Loss | None = Misclassification(_side)
    if is_criterion(ask.scoring):
        loss = None if problem.loss is None else SquaredError()
    elif truth.labels is None:
        loss = Numbers(1).loss(ask.scoring, ask.loss)
    folds, per_fold, system = problem.folds, problem.per_fold, problem.system
    if group.rows is not None:
        system, truth = system.subset(rows), truth.take(rows)
        if folds is not None:
            folds = restrict_folds(folds, rows, problem.system.n)
    if per_fold is not None and problem.folds is not None:
        per_fold = per_fold.restricted(_kept(problem.folds, rows), rows, column)
    Y = truth.Y[:, column]
    truth = replace(truth, Y=Y, labels=None if truth.labels is None else _side(Y))
    only = [Group(np.array([0]))]
    return replace(
        problem, system=system, truth=truth, groups=only, loss=loss, folds=folds, per_fold=per_fold
    )


def _side(raw: FloatArray) -> IntArray:
    return (raw[:, 0] > 0).astype(np.intp)


def _kept(folds: Folds, rows: IntArray) -> IntArray:
    """Return the folds that have some of the rows to test, and some to train on."""
    trains = folds.test if folds.train is None else folds.train
    pairs = zip(folds.test, trains, strict=True)
    return np.flatnonzero([np.isin(t, rows).any() and np.isin(s, rows).any() for t, s in pairs])


def spread(
    problem: DualProblem, rows: HostRows, ask: DualSettings, chosen: Chosen, tell: Listener
) -> Chosen:
    """Give every feature a gamma of its own, where cross-validation is not against it."""
    sample = relevance_sample(rows, problem.truth.weight, DUAL_ROWS, ask.seed)
    best, evaluations = spread_gamma(
        DualRelevance(ask.choice.at, *sample, bias=ask.fit_intercept),
        float(chosen.gamma[0]),
        float(chosen.C[0]),
        chosen,
        lambda scales: tune(problem, ask, ask.choice.scaled(scales), tell, again=True),
        tune_C=ask.C is None,
    )
    assert best.tuning is not None
    return replace(best, tuning=replace(best.tuning, n_evaluations=evaluations))
