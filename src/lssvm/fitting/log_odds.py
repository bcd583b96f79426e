"""Log-odds in the leaves of the model for tables: two classes fitted again by their log loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.fitting.stacking import (
    Stack,
    StackRule,
    cross_stack,
    fit_stack,
    known_rows,
    mean_loss,
    row_losses,
)
from lssvm.fitting.table_work import Fitted, OutOfTime, Plan, Work
from lssvm.kernels.radial import Distance
from lssvm.local import LeafTask, LocalModel, Setting
from lssvm.local.leaf import Leaf
from lssvm.local.model import middle_setting
from lssvm.solvers import ExactFit

_LOG_LOSS_COST = 0.25  # share of the cost that counts: rankings gain more than the log loss shows
_TRIAL_ROWS = 1000  # of a single leaf that are tried at least
_LOG_LOSS_TIME = 2.0  # that all leaves take, relative to the trial leaves and their cubed sizes
_HALF_ERRORS = 0.7  # of half of the rows, as large as one of all rows


def log_odds_pay(
    work: Work, plan: Plan, before: list[Fitted], after: list[Fitted], errors: float = 1.0
) -> bool:
    """Return whether stacks of models with log-odds have a clearly smaller log loss.

    The difference is more than its standard error times ``errors``. Rows that made no metric are
    compared, by stacks of other folds: a metric flatters the leave-one-out outputs of the rows that
    made it, and those of log-odds most.
    """
    problem, losses = work.problem, []
    unseen = np.ones(problem.n, dtype=bool)
    if plan.learned is not None and any(c.rounds for c, _, _ in before):
        unseen[plan.learned] = False
    for models in (before, after):
        outputs = [F for _, _, F in models]
        good = np.flatnonzero(known_rows(outputs) & unseen)
        if not len(good):
            return False
        Y, weight = problem.Y[good], problem.weight[good]
        rule = StackRule("log")  # whatever the scorer: it knows rows by their numbers among all
        stacked = cross_stack([F[good] for F in outputs], Y, weight, work.folds[good], rule)
        losses.append(row_losses(stacked, Y, "log"))
    gain = losses[0] - losses[1]
    mean = float(np.average(gain, weights=weight))
    error = np.sqrt(np.square(weight * (gain - mean)).sum()) / weight.sum()
    return bool(mean > errors * error)


@dataclass(frozen=True, eq=False)
class LogOddsTrial:
    """Some leaves of a model fitted by the log loss, which gains enough for its cost.

    Attributes
    ----------
    stack : Stack
        The scale and offset that make outputs of squared errors log-odds.
    squared, leaves : list of Leaf
        The leaves before and after.
    half : int array or None
        Numbers of the rows, where they are half of those of a single leaf.
    text : str
        What the step is called.
    gain, cost, took, seconds : float
        Of the trial; of all leaves, in units; seconds of the trial; what all leaves will take.
    """

    stack: Stack
    squared: list[Leaf]
    leaves: list[Leaf]
    half: IntArray | None
    text: str
    gain: float
    cost: float
    took: float
    seconds: float


def refit_by_log_loss(work: Work, plan: Plan, fitted: list[Fitted]) -> list[Fitted] | None:
    """Return the models with leaves that minimise the log loss, or None where these do not pay.

    Halves of single leaves have the same rows in all models. Where a stack of their log-odds is not
    clearly better than one of their squared errors, all rows are not fitted.
    """
    pairs = [(one, try_log_odds(work, one)) for one in fitted]
    halves = [(one, trial) for one, trial in pairs if trial is not None and trial.half is not None]
    if halves:
        before = [of_half(work, one, trial, trial.squared) for one, trial in halves]
        after = [of_half(work, one, trial, trial.leaves) for one, trial in halves]
        if not log_odds_pay(work, plan, before, after, _HALF_ERRORS):
            for _, trial in halves:
                work.tried("log loss", trial.text, work.clock.now() - trial.took)
                work.step("log loss", trial.text, trial.gain, trial.cost, None)
            return None
    first = len(work.steps)
    refitted = [one if trial is None else fit_log_odds(work, one, trial) for one, trial in pairs]
    if log_odds_pay(work, plan, fitted, refitted):
        return refitted
    work.not_kept(range(first, len(work.steps)))
    return None


def of_half(work: Work, fitted: Fitted, trial: LogOddsTrial, leaves: list[Leaf]) -> Fitted:
    """Return a model with the leave-one-out outputs of a trial; NaN for the rows outside of it."""
    outputs = np.full(work.problem.Y.shape, np.nan)
    outputs[trial.half] = leaves[0].fit.left_out
    return fitted[0], fitted[1], outputs


def try_log_odds(work: Work, fitted: Fitted) -> LogOddsTrial | None:
    """Return a trial of log-odds where all leaves are worth their cost, otherwise None.

    Every tenth leaf of both classes (with a single leaf, half of its rows) is tried.
    """
    candidate, model, _ = fitted
    clock, problem = work.clock, work.problem
    if not isinstance(model, LocalModel) or clock.over(0.7):
        return None
    operations = work.settings.n_trees * problem.n * model.leaf_size**2 * 4.0 / 3.0
    cost = operations / work.unit(problem.n)
    if clock.affordable(operations, 0.5) < operations:
        return None
    begin, n, engine = clock.now(), problem.n, work.settings.engine
    configuration, text = candidate.configuration, f"log-odds of {candidate.configuration}"
    work.report("log loss", text, 0, 1)
    squared = middle_setting(model.leaves)
    # A leaf of one class would not show whether it pays.
    mixed = [leaf for leaf in model.leaves if np.ptp(leaf.rows.Y) > 0.0] or list(model.leaves)
    trial_leaves, half = mixed[len(mixed) // 2 % 10 :: 10], None
    if len(model.leaves) == 1 and n > _TRIAL_ROWS:
        half = problem.sample(max(n // 2, _TRIAL_ROWS), work.random("log loss"))
        rows = problem.rows(configuration.scaling, candidate.metric, half)
        trial_leaves = engine.fit([LeafTask(rows, configuration.distance, squared)], draft=True)
    Y = np.concatenate([leaf.rows.Y for leaf in trial_leaves])
    weight = np.concatenate([leaf.rows.weight for leaf in trial_leaves])
    stack, before = log_odds_scale(
        np.concatenate([leaf.fit.left_out for leaf in trial_leaves]), Y, weight
    )
    start = Setting(4.0 * squared.C, squared.gamma, "logistic")  # 1/4 is the largest curvature
    trial_begin = clock.now()
    near = [rescaled(leaf.fit, stack) for leaf in trial_leaves]
    tasks = tasks_of(trial_leaves, model.distance, start, near)
    trial = engine.fit(tasks, tries=4, stop=lambda: clock.over(0.8), draft=True)
    after = log_odds_scale(np.concatenate([leaf.fit.left_out for leaf in trial]), Y, weight)[1]
    gain = 1.0 - after / before if before > 0 else 0.0
    leaves = [leaf for partition in model.partitions for leaf in partition.leaves]
    share = sum(len(x.rows.X) ** 3 for x in leaves) / sum(len(x.rows.X) ** 3 for x in trial)
    expected = _LOG_LOSS_TIME * share * (clock.now() - trial_begin)
    if not work.worth(gain, _LOG_LOSS_COST * cost):
        work.tried("log loss", text, begin)
        work.step("log loss", text, gain, cost, None)
        return None
    took = clock.now() - begin
    return LogOddsTrial(stack, trial_leaves, trial, half, text, gain, cost, took, expected)


def fit_log_odds(work: Work, fitted: Fitted, trial: LogOddsTrial) -> Fitted:
    """Return a model whose leaves minimise the log loss of two classes, or the given model.

    The new model is returned if the log loss of leave-one-out outputs of all rows falls. Where
    there is no time for it, the given one is.
    """
    candidate, model, outputs = fitted
    assert isinstance(model, LocalModel)
    clock, problem, engine = work.clock, work.problem, work.settings.engine
    if trial.seconds > clock.left():
        work.tried("log loss", trial.text, clock.now() - trial.took)
        work.step("log loss", trial.text, trial.gain, trial.cost, None)
        return fitted

    def stop() -> bool:
        if clock.over(1.0):
            raise OutOfTime
        return False

    begin = clock.now()
    leaves = [leaf for partition in model.partitions for leaf in partition.leaves]
    if len(leaves) == 1 and trial.leaves[0].rows is leaves[0].rows:
        near = [trial.leaves[0].fit]
    else:
        near = [rescaled(leaf.fit, trial.stack) for leaf in leaves]
    tasks = tasks_of(leaves, model.distance, middle_setting(trial.leaves), near)
    try:
        new_leaves = iter(engine.fit(tasks, stop=stop, on_error=clock.stop))
    except OutOfTime:
        clock.resume()
        work.tried("log loss", trial.text, begin - trial.took)
        work.step("log loss", trial.text, np.nan, trial.cost, None)
        return fitted
    new = replace(
        model,
        partitions=tuple(
            replace(partition, leaves=tuple(next(new_leaves) for _ in partition.leaves))
            for partition in model.partitions
        ),
    )
    log_odds = new.leave_one_out(problem.n)
    losses = [log_odds_scale(F, problem.Y, problem.weight)[1] for F in (outputs, log_odds)]
    gain = 1.0 - losses[1] / losses[0] if losses[0] > 0 else 0.0
    step = work.step("log loss", trial.text, gain, trial.cost, begin - trial.took)
    if gain > 0:
        return replace(candidate, stage="log loss"), new, log_odds
    work.not_kept([step])
    return fitted


def tasks_of(
    leaves: Sequence[Leaf], distance: Distance, setting: Setting, near: list[ExactFit]
) -> list[LeafTask]:
    """Return what fits leaves again, each from a model that is near."""
    return [
        LeafTask(leaf.rows, distance, setting, fit) for leaf, fit in zip(leaves, near, strict=True)
    ]


def log_odds_scale(outputs: FloatArray, Y: FloatArray, weight: FloatArray) -> tuple[Stack, float]:
    """Return the scale and offset that make leave-one-out outputs log-odds, and their log loss."""
    stack = fit_stack([outputs], Y, weight, "log")
    return stack, mean_loss(stack.outputs([outputs]), Y, weight, "log")


def rescaled(fit: ExactFit, stack: Stack) -> ExactFit:
    """Return a model with the weight and offset of a stack of this model alone applied."""
    w = stack.weights[0]
    return ExactFit(w * fit.coef, w * fit.intercept + stack.offset, fit.left_out)
