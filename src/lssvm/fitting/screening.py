"""The first stage of the fit for tables: every configuration on some rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.fitting.problem import Problem, sample_rows
from lssvm.fitting.record import Scaling
from lssvm.fitting.table_record import SCALINGS, Configuration
from lssvm.fitting.table_work import Candidate, Work, ordered
from lssvm.kernels.radial import fill_distances
from lssvm.local import Rows, Setting, fit_leaf
from lssvm.solvers.exact import ExactPath

CS = 10.0 ** np.arange(-2.0, 4.51, 0.5)
"""Values of C that are screened where an eigendecomposition gives them all."""

_WIDTHS = (0.5, 0.25, 1.0, 0.125, 2.0, 0.0625, 4.0, 8.0)  # times the inverse median distance
_PATH_ROWS = 250  # up to as many rows one eigendecomposition gives all C


def screen(work: Work) -> list[Candidate]:
    """Return all configurations with the setting that leave-one-out on some rows prefers."""
    problem, settings, clock = work.problem, work.settings, work.clock
    size = settings.screened
    if clock.limit is not None:
        size = min(size, int(100 + 60 * clock.limit))
    chosen = sample_rows(problem, min(size, problem.n), work.random("screening"))
    sets = distinct(problem, settings.configurations)
    begin = clock.now()
    squares: dict[Scaling, FloatArray] = {}
    out: list[Candidate] = []

    def tuned(numbered: tuple[int, Configuration]) -> Candidate | None:
        number, kind = numbered
        if number and clock.over(0.25):
            return None
        work.report("screening", str(kind), number, len(sets))
        start = clock.now()
        rows = problem.rows(kind.scaling, settings.metric, chosen)
        D = _distances(rows.X, kind, squares)
        candidate = tune(rows, kind, D, work.folds[chosen], lambda: clock.over(0.25))
        took = clock.now() - start
        clock.measured(10.0 * len(chosen) ** 3, took / settings.engine.n_workers)
        return work.scored(replace(candidate, metric=settings.metric, rows=chosen, seconds=took))

    out = [c for c in work.parallel(tuned, list(enumerate(sets))) if c is not None]
    cost = len(sets) * 10.0 * len(chosen) ** 3 / work.unit(problem.n)
    text = f"{len(out)} configurations on {len(chosen):,} rows"
    work.step("screening", text, np.nan, cost, begin)
    # Scaling of categories alone are the same on every scale.
    different = {(c.configuration.kernel, float(f"{c.loss:.5g}")): c for c in reversed(out)}
    return ordered(list(different.values()))


def _distances(
    X: FloatArray, kind: Configuration, squares: dict[Scaling, FloatArray]
) -> FloatArray:
    """Return the distances of all pairs; those of Euclidean kernels are computed once."""
    n = len(X)
    if kind.distance == "cityblock":
        return fill_distances(X, "cityblock", np.empty((n, n)))
    if (known := squares.get(kind.scaling)) is None:
        known = squares[kind.scaling] = fill_distances(X, "sqeuclidean", np.empty((n, n)))
    return known if kind.distance == "sqeuclidean" else np.sqrt(known)


def distinct(
    problem: Problem, configurations: tuple[Configuration, ...]
) -> tuple[Configuration, ...]:
    """Return the configurations without those whose inputs are equal to ones before them."""
    if set(problem.inputs) >= set(SCALINGS):
        same = np.array_equal(problem.inputs["standardised"], problem.inputs["quantiles"])
        if same and any(c.scaling == "standardised" for c in configurations):
            return tuple(c for c in configurations if c.scaling == "standardised")
    return tuple(c for c in configurations if c.scaling in problem.inputs)


def tune(
    rows: Rows,
    configuration: Configuration,
    D: FloatArray,
    folds: IntArray,
    stop: Callable[[], bool] = lambda: False,
) -> Candidate:
    """Return C and gamma of the smallest leave-one-out error of an exact model."""
    median = median_of(D)
    if len(D) <= _PATH_ROWS:
        setting, error, nested = by_paths(rows, D, median, folds, stop)
        return Candidate(configuration, setting, error, 0.0, outputs=nested, nested=nested)
    start = Setting(10.0, 0.5 / median)
    leaf = fit_leaf(rows, configuration.distance, start, tries=12, stop=stop, D=D, draft=True)
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
        known += list(path.left_out(CS))
    outputs = np.array(known)  # (settings, n, k)
    losses = ((rows.Y - outputs) ** 2).sum(axis=2) * rows.weight
    best = int(np.argmin(losses.sum(axis=1)))
    nested = chosen_elsewhere(losses, outputs, folds)
    return settings[best], float(losses[best].sum() / rows.weight.sum()), nested


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
    nested = np.empty(outputs.shape[1:])
    for v in np.unique(folds):
        inside = folds == v
        chosen = int(np.argmin(losses[:, ~inside].sum(axis=1)))
        nested[inside] = outputs[chosen][inside]
    return nested


def median_of(D: FloatArray) -> float:
    """Return the median distance between different rows (1 where all are equal)."""
    n = len(D)
    step = max(1, n // 300)
    some = D[::step, ::step]
    some = some[some > 0]
    return float(np.median(some)) if len(some) else 1.0
