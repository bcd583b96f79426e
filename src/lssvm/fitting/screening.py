"""The first stage of the recipe for tables: every configuration on some rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.fitting.configurations import INPUTS, Configuration
from lssvm.fitting.problem import Problem, sample_rows
from lssvm.fitting.table_run import Candidate, TableRun
from lssvm.kernels.radial import fill_distances
from lssvm.local import Rows, Setting, fit_leaf
from lssvm.solvers.exact import ExactPath

CS = 10.0 ** np.arange(-2.0, 4.51, 0.5)
"""Values of C that are screened."""

_WIDTHS = (0.5, 0.25, 1.0, 0.125, 2.0, 0.0625, 4.0, 8.0)  # times the inverse median distance
_PATH_ROWS = 400  # up to as many rows one eigendecomposition gives all C


def screen(run: TableRun) -> list[Candidate]:
    """Return all configurations with the setting that leave-one-out on some rows prefers."""
    problem, ask, clock = run.problem, run.ask, run.clock
    size = ask.screened if clock.limit is None else min(ask.screened, int(100 + 60 * clock.limit))
    chosen = sample_rows(problem, min(size, problem.n), run.random)
    sets = distinct(problem, ask.configurations)
    done: list[Configuration] = []

    def work(configuration: Configuration) -> Candidate | None:
        if clock.over(0.25) and done:
            return None
        run.begin("screening", str(configuration), len(done), len(sets))
        begin = clock.now()
        rows = problem.rows(configuration.inputs, ask.metric, chosen)
        candidate = tune(rows, configuration, run.folds[chosen], lambda: clock.over(0.25))
        took = clock.now() - begin
        clock.measured(10.0 * len(chosen) ** 3, took / ask.engine.side_by_side)
        candidate = replace(candidate, metric=ask.metric, rows=chosen, seconds=took)
        candidate = run.judged(candidate)
        done.append(configuration)
        run.found.append(candidate)
        return candidate

    found = [c for c in run.side_by_side(work, sets) if c is not None]
    run.found = run.ordered(found)
    return run.found


def distinct(
    problem: Problem, configurations: tuple[Configuration, ...]
) -> tuple[Configuration, ...]:
    """Return the configurations without those whose inputs are equal to ones before them."""
    if set(problem.inputs) >= set(INPUTS):
        same = np.array_equal(problem.inputs["standardised"], problem.inputs["quantiles"])
        if same and any(c.inputs == "standardised" for c in configurations):
            return tuple(c for c in configurations if c.inputs == "standardised")
    return tuple(c for c in configurations if c.inputs in problem.inputs)


def tune(
    rows: Rows,
    configuration: Configuration,
    folds: IntArray,
    stop: Callable[[], bool] = lambda: False,
) -> Candidate:
    """Return C and gamma of the smallest leave-one-out error of an exact model."""
    n = len(rows.X)
    D = fill_distances(rows.X, configuration.distance, np.empty((n, n)))
    median = median_of(D)
    if n <= _PATH_ROWS:
        setting, error, crossed = by_paths(rows, D, median, folds, stop)
        return Candidate(configuration, setting, error, 0.0, outputs=crossed, crossed=crossed)
    start = Setting(10.0, 0.5 / median)
    leaf = fit_leaf(rows, configuration.distance, start, tries=14, stop=stop, D=D)
    return Candidate(configuration, leaf.setting, leaf.error, 0.0, outputs=leaf.fit.left_out)


def by_paths(
    rows: Rows, D: FloatArray, median: float, folds: IntArray, stop: Callable[[], bool]
) -> tuple[Setting, float, FloatArray]:
    """Return the best setting of a grid: one eigendecomposition for every width.

    Also its error, and leave-one-out outputs whose setting was chosen without the row's fold: the
    smallest of many errors is too small, these are not.
    """
    settings: list[Setting] = []
    known: list[FloatArray] = []
    for gamma, path in exact_paths(rows, D, median, stop):
        settings += [Setting(float(C), gamma) for C in CS]
        known += path.left_out(CS)
    outputs = np.array(known)  # (settings, n, k)
    losses = ((rows.Y - outputs) ** 2).sum(axis=2) * rows.weight
    best = int(np.argmin(losses.sum(axis=1)))
    crossed = chosen_elsewhere(losses, outputs, folds)
    return settings[best], float(losses[best].sum() / rows.weight.sum()), crossed


def exact_paths(
    rows: Rows, D: FloatArray, median: float, stop: Callable[[], bool] = lambda: False
) -> Iterator[tuple[float, ExactPath]]:
    """Yield the widths of the grid as gamma, each with the decomposition of its kernel matrix."""
    repeats = rows.repeats()
    for number, width in enumerate(_WIDTHS):
        if number and stop():
            break
        gamma = width / median
        yield gamma, ExactPath.of(np.exp(-gamma * D), rows.Y, rows.weight, repeats)


def chosen_elsewhere(losses: FloatArray, outputs: FloatArray, folds: IntArray) -> FloatArray:
    """Return outputs (n, k) of the setting that is best for the rows of the other folds.

    Parameters
    ----------
    losses : array of shape (q, n)
        Of every row with every setting.
    outputs : array of shape (q, n, k)
        With every setting.
    folds : int array of shape (n,)
        Of the rows.
    """
    crossed = np.empty(outputs.shape[1:])
    for v in np.unique(folds):
        inside = folds == v
        chosen = int(np.argmin(losses[:, ~inside].sum(axis=1)))
        crossed[inside] = outputs[chosen][inside]
    return crossed


def median_of(D: FloatArray) -> float:
    """Return the median distance between different rows (1 where all are equal)."""
    n = len(D)
    step = max(1, n // 300)
    some = D[::step, ::step]
    some = some[some > 0]
    return float(np.median(some)) if len(some) else 1.0
