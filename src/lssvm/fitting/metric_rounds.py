"""Rounds of a metric, judged on rows that made no gradient: in folds, or on other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.fitting.problem import Problem
from lssvm.fitting.screening import median_of
from lssvm.fitting.table_run import Candidate, TableRun, TableSettings
from lssvm.kernels import Metric
from lssvm.kernels.radial import distances
from lssvm.local import PartsEngine, PartsModel, Setting, fit_parts
from lssvm.local.leaf import weighted_error

N_FOLDS = 5
"""Folds of small data, each with a metric of its own."""

FEW = 1000
"""Rows below which a metric has to be much better than none."""

_GRADIENTS = 6000  # rows at which gradients are taken


def learn_in_folds(run: TableRun, candidate: Candidate) -> Candidate | None:
    """Return the candidate with a metric, or None where folds with their own do not gain clearly.

    Every fold's outputs come from a metric and a model that have not seen its rows. Out of time
    there is no metric.
    """
    problem, folds, ask, clock = run.problem, run.folds, run.ask, run.clock
    begin, engine = clock.now(), ask.engine.alone()
    losses: list[FloatArray] = []  # of every round, by row
    outputs: list[FloatArray] = []
    state = [(candidate.metric, candidate.setting)] * N_FOLDS
    for done in range(ask.rounds + 1):
        if done > 1 and clock.over(0.6):
            break
        held = np.empty(problem.Y.shape)
        for v in range(N_FOLDS):
            if done <= 1 and clock.over(0.7):
                return None
            inside, outside = np.flatnonzero(folds == v), np.flatnonzero(folds != v)
            metric, setting = state[v]
            tries = 1 if not done else 3
            model = one_round(problem, candidate, metric, setting, outside, tries, engine)
            new = problem.rows(candidate.configuration.inputs, metric, inside)
            held[inside] = model.outputs(new.X, engine=engine)
            if done < ask.rounds:
                state[v] = next_round(run, candidate, model, metric, outside, engine)
        outputs.append(held)
        losses.append(((problem.Y - held) ** 2).sum(axis=1) * problem.weight)
        if done and losses[-1].mean() > 0.99 * losses[-2].mean():
            break
    table = np.array(losses)
    best = clearly_best(table)
    if not best:
        return None
    crossed = np.empty(problem.Y.shape)
    for v in range(N_FOLDS):
        inside = folds == v
        crossed[inside] = outputs[clearly_best(table[:, ~inside])][inside]
    every = np.arange(problem.n, dtype=np.intp)
    metric, setting = candidate.metric, candidate.setting
    for done in range(best):
        if clock.over(0.8):
            return None
        tries = 1 if not done else 3
        model = one_round(problem, candidate, metric, setting, every, tries, engine)
        metric, setting = next_round(run, candidate, model, metric, every, engine)
    return run.judged(
        replace(
            candidate,
            metric=metric,
            setting=setting,
            rounds=best,
            error=float(losses[best].sum() / problem.weight.sum()),
            outputs=outputs[best],
            rows=every,
            crossed=crossed,
            seconds=candidate.seconds + clock.now() - begin,
            stage="metric",
        )
    )


def clearly_best(losses: FloatArray) -> int:
    """Return the round of the smallest loss, or 0 where its gain over no metric is not clear.

    Parameters
    ----------
    losses : array of shape (rounds + 1, n)
        Of every row after every round.
    """
    n = losses.shape[1]
    best = int(np.argmin(losses.mean(axis=1)))
    gain = losses[0] - losses[best]
    wanted = (2.5 if n < FEW else 1.0) * gain.std() / np.sqrt(n)
    least = 2.0 / np.sqrt(n) * losses[0].mean() if n < FEW else 0.0
    return best if gain.mean() > max(wanted, least) else 0


def learn_on_rows(
    run: TableRun, candidate: Candidate, learn: IntArray, judge: IntArray, ask: TableSettings
) -> Candidate:
    """Learn a metric on some rows in rounds; keep the round that is best for the others.

    Begins at the round that the candidate has reached.
    """
    problem, clock = run.problem, run.clock
    begin, engine = clock.now(), ask.engine.alone()
    configuration = candidate.configuration
    best, error = candidate, np.inf
    metric, setting = candidate.metric, candidate.setting
    for rounds in range(candidate.rounds, ask.rounds + 1):
        tries = 6 if candidate.stage == "screening" and not rounds else 3
        model = one_round(
            problem,
            candidate,
            metric,
            setting,
            learn,
            tries,
            engine,
            ask.learned_part,
            stop=lambda: clock.over(0.4),
        )
        new = problem.rows(configuration.inputs, metric, judge)
        values = model.outputs(new.X, engine=engine)
        now = weighted_error(new.Y, values, new.weight)
        if now < error:
            best = replace(
                candidate,
                setting=middle_setting(model),
                error=now,
                metric=metric,
                rounds=rounds,
                outputs=values,
                rows=judge,
                crossed=None,
                stage="metric",
            )
        cost = len(learn) * min(ask.learned_part, len(learn)) ** 2 * 2.0
        took = (clock.now() - begin) / (rounds - candidate.rounds + 1)
        clock.measured(cost, took / ask.engine.side_by_side)
        last = now > 0.995 * error or rounds == ask.rounds
        error = min(now, error)
        if last or clock.over(0.5):
            break
        metric, setting = next_round(run, candidate, model, metric, learn, engine)
    return run.judged(replace(best, seconds=candidate.seconds + clock.now() - begin))


def next_round(
    run: TableRun,
    candidate: Candidate,
    model: PartsModel,
    metric: Metric,
    chosen: IntArray,
    engine: PartsEngine,
) -> tuple[Metric, Setting]:
    """Return the metric of the gradients of a model, fitted under ``metric``, and its setting.

    The setting is the mean one of the model's parts, of the same width relative to the distances
    of the chosen rows.
    """
    kind = candidate.configuration
    learned = kind.learn_metric(model, metric, engine, at_most=_GRADIENTS, shape=run.ask.shape)
    some = chosen[:: max(1, len(chosen) // 300)]
    rows = [run.problem.rows(kind.inputs, each, some).X for each in (metric, learned)]
    before, after = (median_of(distances(X, X, kind.distance)) for X in rows)
    middle = middle_setting(model)
    return learned, Setting(middle.C, middle.gamma * before / after)


def one_round(
    problem: Problem,
    candidate: Candidate,
    metric: Metric,
    setting: Setting,
    chosen: IntArray,
    tries: int,
    engine: PartsEngine,
    part_size: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> PartsModel:
    """Fit the models of some rows under a metric; without a part size one exact model."""
    rows = problem.rows(candidate.configuration.inputs, metric, chosen)
    size = len(chosen) if part_size is None else part_size
    distance = candidate.configuration.distance
    return fit_parts(rows, distance, setting, part_size=size, tries=tries, stop=stop, engine=engine)


def middle_setting(model: PartsModel) -> Setting:
    """Return the geometric mean of the settings of a model's parts."""
    logs = [
        [np.log(leaf.setting.C), np.log(leaf.setting.gamma)]
        for cut in model.cuts
        for leaf in cut.leaves
    ]
    C, gamma = np.exp(np.mean(logs, axis=0))
    return Setting(float(C), float(gamma))
