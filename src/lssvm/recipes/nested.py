"""Outputs of small data from nested folds: every choice is made again without the fold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm.kernels import fill_distances
from lssvm.parts import fit_leaf
from lssvm.parts.leaf import weighted_error
from lssvm.recipes.problem import deal
from lssvm.recipes.screening import along_paths, distinct, median_of
from lssvm.recipes.table_run import TableRun

NESTED = 250
"""Up to as many rows held-out outputs come from nested folds.

A choice among hundreds of settings, configurations and weights by so few rows looks better than it
is, even where every output is a leave-one-out output.
"""


_FOLDS = 10  # of few rows, a model of four fifths of them is clearly worse than one of all


def nested_outputs(run: TableRun, learned: list[FloatArray], at_most: int) -> FloatArray:
    """Return outputs of rows by stacks that were screened, tuned and weighed without their fold.

    Parameters
    ----------
    run : TableRun
    learned : list of arrays of shape (n, k)
        Held-out outputs of configurations with a metric, which were made in folds.
    at_most : int
        Configurations without a metric that a stack may use.

    Returns
    -------
    array of shape (n, k)

    Notes
    -----
    One screening of the rows outside for every fold.
    """
    problem = run.problem
    # Not stratified: the shares of the classes outside would tell which class a fold has most of.
    random = np.random.default_rng(run.ask.seed)
    folds = deal(replace(problem, classes=None), _FOLDS, random)
    sets = distinct(problem, run.ask.configurations)
    plain = np.array([True] * len(sets) + [False] * len(learned)) if learned else None
    out = np.full(problem.Y.shape, np.nan)

    def work(v: int) -> None:
        inside, outside = np.flatnonzero(folds == v), np.flatnonzero(folds != v)
        Y, weight = problem.Y[outside], problem.weight[outside]
        known, new = [], []
        for configuration in sets:
            run.clock.over(1.0)  # whether to go on at all
            rows = problem.rows(configuration.inputs, run.ask.metric, outside)
            n, kind = len(rows.X), configuration.distance
            D = fill_distances(rows.X, kind, np.empty((n, n)))
            settings, outputs = along_paths(rows, D, median_of(D))
            best = int(np.argmin([weighted_error(Y, F, weight) for F in outputs]))
            leaf = fit_leaf(rows, kind, settings[best], D=D)
            known.append(leaf.fit.left_out)
            X = problem.rows(configuration.inputs, run.ask.metric, inside).X
            new.append(leaf.outputs(X, kind))
        known += [F[outside] for F in learned]
        new += [F[inside] for F in learned]
        weights = stack(run, known, Y, weight, outside, at_most, plain)
        out[inside] = np.sum([w * F for w, F in zip(weights, new, strict=True)], axis=0)

    run.side_by_side(work, [int(v) for v in np.unique(folds)])
    return out


def stack(
    run: TableRun,
    outputs: list[FloatArray],
    Y: FloatArray,
    weight: FloatArray,
    rows: IntArray,
    at_most: int,
    plain: BoolArray | None,
) -> FloatArray:
    """Return the weights of the best few models without a metric and of those with one."""
    n_plain = len(outputs) if plain is None else int(plain.sum())
    first = run.rule(at_most=at_most).weights(outputs[:n_plain], Y, weight, rows)
    chosen = np.r_[np.flatnonzero(first > 0), np.arange(n_plain, len(outputs))].astype(np.intp)
    few = None if plain is None else plain[chosen]
    found = run.rule(plain=few).weights([outputs[i] for i in chosen], Y, weight, rows)
    weights = np.zeros(len(outputs))
    weights[chosen] = found
    return weights
