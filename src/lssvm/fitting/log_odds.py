"""Log-odds in the leaves of the model for tables: two classes fitted again by their log loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lssvm._core.arrays import FloatArray
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
from lssvm.local import LeafTask, LocalModel, Setting
from lssvm.local.leaf import Leaf
from lssvm.local.model import middle_setting
from lssvm.solvers import ExactFit

_LOG_LOSS_COST = 0.25  # share of the cost that counts: rankings gain more than the log loss shows
_TRIAL_ROWS = 1000  # of a single leaf that are tried at least
_LOG_LOSS_TIME = 2.0  # that all leaves take, relative to the trial leaves and their cubed sizes


def log_odds_pay(work: Work, plan: Plan, before: list[Fitted], after: list[Fitted]) -> bool:
    """Return whether stacks of models with log-odds have a clearly smaller log loss.

    Rows that made no metric are compared, by stacks of other folds: a metric flatters the
    leave-one-out outputs of the rows that made it, and those of log-odds most. Where they do not
    pay, their steps are recorded as not kept.
    """
    pays = _smaller_log_loss(work, plan, before, after)
    if not pays:
        work.steps[:] = [replace(s, taken=s.taken and s.stage != "log loss") for s in work.steps]
    return pays


def _smaller_log_loss(work: Work, plan: Plan, before: list[Fitted], after: list[Fitted]) -> bool:
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
    return bool(mean > error)


def fit_log_odds(work: Work, fitted: Fitted) -> Fitted:
    """Return a model whose leaves minimise the log loss of two classes, or the given model.

    Every tenth leaf of both classes (with a single leaf, half of its rows) is tried first, and all
    leaves follow if the log loss of leave-one-out outputs falls enough for the cost. The new model
    is returned if that loss of all rows falls. Where there is no time for it, the given one is.
    """
    candidate, model, outputs = fitted
    clock, problem = work.clock, work.problem
    if not isinstance(model, LocalModel) or clock.over(0.7):
        return fitted
    operations = work.settings.n_trees * problem.n * model.leaf_size**2 * 4.0 / 3.0
    cost = operations / work.unit(problem.n)
    if clock.affordable(operations, 0.5) < operations:
        return fitted
    begin, n, engine = clock.now(), problem.n, work.settings.engine
    configuration, text = candidate.configuration, f"log-odds of {candidate.configuration}"
    work.report("log loss", text, 0, 1)
    squared = middle_setting(model.leaves)
    # A leaf of one class would not show whether it pays.
    mixed = [leaf for leaf in model.leaves if np.ptp(leaf.rows.Y) > 0.0] or list(model.leaves)
    trial_leaves = mixed[len(mixed) // 2 % 10 :: 10]
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

    def tasks(leaves: Sequence[Leaf], setting: Setting, near: list[ExactFit]) -> list[LeafTask]:
        return [
            LeafTask(leaf.rows, configuration.distance, setting, fit)
            for leaf, fit in zip(leaves, near, strict=True)
        ]

    trial_begin = clock.now()
    near = [rescaled(leaf.fit, stack) for leaf in trial_leaves]
    trial = engine.fit(
        tasks(trial_leaves, start, near), tries=4, stop=lambda: clock.over(0.8), draft=True
    )
    after = log_odds_scale(np.concatenate([leaf.fit.left_out for leaf in trial]), Y, weight)[1]
    gain = 1.0 - after / before if before > 0 else 0.0
    leaves = [leaf for partition in model.partitions for leaf in partition.leaves]
    share = sum(len(x.rows.X) ** 3 for x in leaves) / sum(len(x.rows.X) ** 3 for x in trial)
    expected = _LOG_LOSS_TIME * share * (clock.now() - trial_begin)
    if not work.worth(gain, _LOG_LOSS_COST * cost) or expected > clock.left():
        work.tried("log loss", text, begin)
        work.step("log loss", text, gain, cost, None)
        return fitted

    def stop() -> bool:
        if clock.over(1.0):
            raise OutOfTime
        return False

    same = len(leaves) == 1 and trial[0].rows is leaves[0].rows
    near = [trial[0].fit] if same else [rescaled(leaf.fit, stack) for leaf in leaves]
    try:
        new_leaves = iter(
            engine.fit(tasks(leaves, middle_setting(trial), near), stop=stop, on_error=clock.stop)
        )
    except OutOfTime:
        clock.resume()
        work.tried("log loss", text, begin)
        work.step("log loss", text, np.nan, cost, None)
        return fitted
    new = replace(
        model,
        partitions=tuple(
            replace(partition, leaves=tuple(next(new_leaves) for _ in partition.leaves))
            for partition in model.partitions
        ),
    )
    log_odds = new.leave_one_out(n)
    losses = [log_odds_scale(F, problem.Y, problem.weight)[1] for F in (outputs, log_odds)]
    gain = 1.0 - losses[1] / losses[0] if losses[0] > 0 else 0.0
    work.step("log loss", text, gain, cost, begin)
    work.steps[-1] = replace(work.steps[-1], taken=gain > 0)
    return (replace(candidate, stage="log loss"), new, log_odds) if gain > 0 else fitted


def log_odds_scale(outputs: FloatArray, Y: FloatArray, weight: FloatArray) -> tuple[Stack, float]:
    """Return the scale and offset that make leave-one-out outputs log-odds, and their log loss."""
    stack = fit_stack([outputs], Y, weight, "log")
    return stack, mean_loss(stack.outputs([outputs]), Y, weight, "log")


def rescaled(fit: ExactFit, stack: Stack) -> ExactFit:
    """Return a model with the weight and offset of a stack of this model alone applied."""
    w = stack.weights[0]
    return ExactFit(w * fit.coef, w * fit.intercept + stack.offset, fit.left_out)
