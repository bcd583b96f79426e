"""Outputs of small data from nested folds: every choice is made again without the fold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import slices
from lssvm.fitting.screening import CS, chosen_elsewhere, distinct, exact_paths, median_of
from lssvm.fitting.stacking import most_used
from lssvm.fitting.table_record import Configuration
from lssvm.fitting.table_work import Work
from lssvm.kernels.radial import fill_distances

NESTED = 250
"""Up to as many rows held-out outputs come from nested folds.

A choice among hundreds of settings, configurations and weights by so few rows looks better than it
is, even where every output is a leave-one-out output.
"""

# A model of nine tenths of few rows is clearly worse than one of all. For classes that is less so,
# and the smaller a fold, the more the shares of the classes outside tell which of them it has.
_FOLDS = {"numbers": 30, "classes": 20}
_ENTRIES = 2**22  # numbers of the outputs that are looked at together


def nested_outputs(work: Work, learned: list[FloatArray], at_most: int) -> FloatArray:
    """Return outputs of rows by stacks that were screened, tuned and weighed without their fold.

    Parameters
    ----------
    work : Work
    learned : list of arrays of shape (n, k)
        Held-out outputs of configurations with a metric, which were made in folds.
    at_most : int
        Configurations without a metric that a stack may use.

    Returns
    -------
    array of shape (n, k)

    Notes
    -----
    What is done to all rows is done to those outside of every fold: a setting for each
    configuration by leave-one-out, the configurations that a stack of outputs with settings of
    other folds needs, weights by leave-one-out outputs. One eigendecomposition for every
    configuration and width serves all folds (`lssvm.solvers.exact.ExactPath.left_out_of_folds`).
    """
    problem = work.problem
    # Not stratified: the shares of the classes outside would tell which class a fold has most of.
    random = np.random.default_rng(work.settings.seed)
    n_folds = _FOLDS["numbers" if problem.classes is None else "classes"]
    folds = replace(problem, classes=None).folds(n_folds, random)
    sets = distinct(problem, work.settings.configurations)
    tuned = work.parallel(lambda c: tuned_outside(work, c, folds), sets)
    out = np.full(problem.Y.shape, np.nan)
    for v in np.unique(folds):
        inside, outside = np.flatnonzero(folds == v), np.flatnonzero(folds != v)
        Y, weight = problem.Y[outside], problem.weight[outside]
        chosen = np.arange(len(sets), dtype=np.intp)
        if at_most < len(sets):
            crossed = [one.crossed[v, outside] for one in tuned]
            rule = work.rule(at_most=at_most)
            chosen = most_used(rule.fit(crossed, Y, weight, outside).weights)
        outputs = [tuned[i].outputs[v] for i in chosen] + learned
        plain = np.arange(len(outputs)) < len(chosen) if learned else None
        stack = work.rule(plain=plain).fit([F[outside] for F in outputs], Y, weight, outside)
        out[inside] = stack.outputs([F[inside] for F in outputs])
    return out


@dataclass(frozen=True, eq=False)
class TunedOutside:
    """Outputs of a configuration without each of some folds.

    Attributes
    ----------
    outputs : array of shape (f, n, k)
        Of the setting that is best for the rows outside of the fold. Rows of the fold by the model
        without it, every other row by the model without the fold and the row.
    crossed : array of shape (f, n, k)
        The same for rows outside, of the setting that rows outside of this fold and of the row's
        own fold in ``work.folds`` prefer.
    """

    outputs: FloatArray
    crossed: FloatArray


def tuned_outside(work: Work, configuration: Configuration, folds: IntArray) -> TunedOutside:
    """Tune a configuration without each of the folds (n,), numbered from 0."""
    problem = work.problem
    rows = problem.rows(configuration.scaling, work.settings.metric)
    D = fill_distances(rows.X, configuration.distance, np.empty((problem.n, problem.n)))
    paths = [path for _, path in exact_paths(rows, D, median_of(D))]
    f = int(folds.max()) + 1
    found = TunedOutside(*(np.empty((f, *problem.Y.shape)) for _ in range(2)))
    at_once = max(1, _ENTRIES // (len(paths) * len(CS) * problem.Y.size))
    for numbers, members in of_equal_size(folds, at_once):
        work.clock.over(1.0)  # whether to go on at all
        outputs = np.concatenate([path.left_out_of_folds(CS, members) for path in paths])
        losses = ((problem.Y - outputs) ** 2).sum(axis=3) * problem.weight  # (settings, g, n)
        for g, v in enumerate(numbers):
            outside = folds != v
            L, F = losses[:, g, outside], outputs[:, g]
            found.outputs[v] = F[int(np.argmin(L.sum(axis=1)))]
            found.crossed[v, outside] = chosen_elsewhere(L, F[:, outside], work.folds[outside])
    return found


def of_equal_size(folds: IntArray, at_once: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield numbers (g,) and rows (g, s) of folds of one size, at most ``at_once`` together."""
    size = np.bincount(folds)
    for s in np.unique(size[size > 0]):
        same = np.flatnonzero(size == s)
        for part in slices(len(same), at_once):
            numbers = same[part]
            yield numbers, np.array([np.flatnonzero(folds == v) for v in numbers])
