"""The fixed-size model: prototypes, tuning, primal solution, second level of sparsity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.memory import peak_memory
from lssvm._core.progress import Listener
from lssvm.criteria.threshold import best_threshold
from lssvm.engines.base import Rows
from lssvm.kernels import Kernel
from lssvm.moments import NystromMap
from lssvm.moments.cells import FoldMoments
from lssvm.recipes.ard import shares
from lssvm.recipes.fixed_memory import FixedMemory, remember
from lssvm.recipes.fixed_record import FixedDetails
from lssvm.recipes.fixed_reduction import (
    SD_KEEPS_NO_ROWS,
    DualStart,
    fit_on_prototypes,
    moments_to_reduce,
    prototype_basis,
    reduce_model,
    worth_keeping,
)
from lssvm.recipes.fixed_settings import NO_OUTPUTS, FixedSettings
from lssvm.recipes.fixed_solution import (
    TUNED_PROTOTYPES,
    Solution,
    choose_pcg,
    class_counts,
    solve_by_gradients,
    solve_moments,
)
from lssvm.recipes.fixed_tuning import Tuned, fold_task, tune_fixed_size
from lssvm.recipes.prototypes import Prototypes, choose_prototypes
from lssvm.recipes.record import Fit, Machine
from lssvm.recipes.robust import absolute_C, reweights
from lssvm.tasks import Classes, Task
from lssvm.tasks.weights import times

NO_MOMENTS = (
    "solver='pcg' keeps no moments, so rows cannot be added or removed: use solver='cholesky'"
)


def fit_fixed_size(rows: Rows, task: Task, ask: FixedSettings, tell: Listener) -> Fit:
    """Fit a fixed-size model [DeBrabanter2010, algorithms 1-4].

    Parameters
    ----------
    rows : Rows
        Training rows, wherever they are.
    task : Classes or Numbers
    ask : FixedSettings
    tell : Listener

    Returns
    -------
    Fit

    Notes
    -----
    1. Prototypes are chosen (algorithm 1). 2. C and gamma are tuned, from the moments of the folds
    (algorithm 3 and section 6), or on the prototypes alone (reductions "ssd" and "sd").
    3. The system of all rows is solved (eq. (7)), from its moments or by conjugate gradients.
    4. Another loss than the squares is met by reweighting. 5. A reduction drops prototypes.
    6. Rows that calibrate probabilities and intervals are kept.
    """
    rows.check(ask.loss, ask.criterion)
    sample = rows.sample
    gamma = ask.choice.fixed_gamma(sample.X, sample.weight, rows.gamma_scale())
    chosen = choose_prototypes(rows, ask, gamma)
    pcg = choose_pcg(rows, ask, chosen.Z, fold_task(task))
    basis = chosen if pcg is None else chosen.first(TUNED_PROTOTYPES)

    start = fit_on_prototypes(rows, task, ask, chosen, gamma, tell)
    tuned = _tuned(rows, task, ask, basis, gamma, start, tell)
    kernel, by_class, moments = tuned.choice.at(tuned.gamma), fold_task(task), None
    if pcg is not None:
        solution = solve_by_gradients(
            pcg, rows, by_class, kernel, chosen.Z, tuned.C_of, ask.seed, tell
        )
        details = FixedDetails(len(chosen.Z), [], no_update=NO_MOMENTS)
    else:
        chosen = chosen.first(tuned.size)
        moments = _moments_of_folds(rows, task, ask, tuned, kernel, chosen.Z)
        map = rows.map(kernel, chosen.Z)
        if start is not None:
            coef, intercept = start.coef, start.fit.intercept
        else:
            coef, intercept = solve_moments(moments.whole, map, by_class, tuned.C_of)
        solution = _refined(ask, tuned, kernel, chosen.Z, map, coef, intercept)
        details = FixedDetails(len(chosen.Z), moments.whole, map)
    fit = Fit(
        task,
        (Machine(kernel, np.arange(task.n_outputs)),),
        chosen.Z,
        solution.coef,
        solution.intercept,
        solution.C,
        tuned.choice.by_feature(tuned.gamma),
        chosen.support,
        ask.seed,
        FixedMemory(),
        ask.loss,
        solution.solver,
        solution.residual,
        solution.iterations,
        tuned.tuning,
        details=details,
    )
    if moments is None:
        return _finished(fit, rows, ask, tuned, basis.Z, chosen)
    fit = _reduced(fit, rows, task, ask, chosen, moments, start)
    point = tuned if ask.reduction is None else replace(tuned, point=None)
    return _finished(fit, rows, ask, point, fit.basis, chosen)


def _tuned(
    rows: Rows,
    task: Task,
    ask: FixedSettings,
    basis: Prototypes,
    gamma: Any,
    start: DualStart | None,
    tell: Listener,
) -> Tuned:
    """Return C and gamma: of the model on the prototypes, tuned, or as given."""
    m, k = len(basis.Z), rows.n_outputs
    if start is not None:
        fit = start.fit
        return Tuned(fit.C.copy(), fit.gamma, ask.choice, m, rows, None, fit.tuning)
    if ask.tunes:
        return tune_fixed_size(rows, task, ask, basis.Z, gamma, tell)
    assert ask.C is not None
    return Tuned(np.full(k, ask.C), gamma, ask.choice, m, rows)


def _moments_of_folds(
    rows: Rows, task: Task, ask: FixedSettings, tuned: Tuned, kernel: Kernel, Z: FloatArray
) -> FoldMoments:
    """Return the moments of tuning's folds, or of one more pass over the rows."""
    point, by_class = tuned.point, fold_task(task)
    if point is not None and point.has_folds:
        moments: FoldMoments | None = point.moments
    else:
        moments = moments_to_reduce(rows, task, ask, kernel, Z)
    if moments is not None and moments.whole:
        return moments
    whole = [] if point is None or moments is not None else point.whole
    if not whole and ask.method != "sd":  # not tuned, or trained on less than all but a fold
        whole = tuned.rows.moments(kernel, Z, None, by_class).whole
    if moments is None:
        return FoldMoments.without_folds(whole, by_class)
    return moments.with_whole(whole)


def _refined(
    ask: FixedSettings,
    tuned: Tuned,
    kernel: Kernel,
    Z: FloatArray,
    map: NystromMap,
    coef: FloatArray,
    intercept: FloatArray,
) -> Solution:
    """Minimise another loss than the squares, output by output, from the least squares model."""
    lowered = tuned.point is not None and tuned.rows is tuned.rows.sample
    if not reweights(ask.loss, lowered):
        return Solution(coef, intercept, tuned.C_of)
    C_of, steps, sample = tuned.C_of.copy(), 0, tuned.rows.sample
    for j in range(len(C_of)):
        first = (coef[:, [j]], intercept[[j]])
        if ask.loss == "absolute" and ask.C is None:
            residual = sample.Y[:, [j]] - sample.evaluate(kernel, sample.X, Z, *first)
            C_of[j] = absolute_C(float(C_of[j]), residual, sample.weight)
        coef[:, [j]], intercept[[j]], own = tuned.rows.reweighted(
            kernel, Z, map, float(C_of[j]), ask.loss, first, j
        )
        steps = max(steps, own)
    return Solution(coef, intercept, C_of, iterations=steps)


def _reduced(
    fit: Fit,
    rows: Rows,
    task: Task,
    ask: FixedSettings,
    chosen: Prototypes,
    moments: FoldMoments,
    start: DualStart | None,
) -> Fit:
    """Drop prototypes, or keep what `sparsity_path` needs."""
    if ask.method == "sd":
        return replace(fit, details=replace(fit.details, no_update=SD_KEEPS_NO_ROWS))
    if ask.method is None and moments.n_folds < 2:
        return fit
    basis = prototype_basis(rows, task, ask, fit.kernel, chosen, moments, fit.C, start)
    if ask.reduction is None:
        kept = worth_keeping(basis, rows.sample.budget)
        return replace(fit, details=replace(fit.details, kept=kept))
    return reduce_model(fit, rows, basis, ask.reduction, ask.reduced_C_grid())


def _finished(
    fit: Fit, rows: Rows, ask: FixedSettings, tuned: Tuned, Z: FloatArray, chosen: Prototypes
) -> Fit:
    """Bring the record to the host, and add what is remembered of the rows."""
    details: FixedDetails = fit.details
    task, sample = fit.task, rows.sample
    details = replace(
        details,
        moments=[part.on_host() for part in details.moments],
        map=None if details.map is None else details.map.on_host(),
        selection=chosen.selection,
        peak_memory=peak_memory() if sample.by_position else None,
    )
    memory, by_class = FixedMemory(), fold_task(task)
    if ask.calibrates:
        table = None if by_class is None or fit.solver != "pcg" else sample.table(by_class)
        memory = remember(rows, tuned.point, fit.kernel, Z, fit.C, ask.seed, table)
    relevance = shares(fit.gamma, sample.X, sample.weight) if ask.choice.asks_ard else None
    fit = replace(fit, details=details, memory=memory, relevance=relevance)
    if not isinstance(task, Classes):
        return fit
    fit = replace(fit, threshold=np.zeros(task.n_outputs))
    return fit if ask.threshold == "zero" else _with_thresholds(fit, task)


def _with_thresholds(fit: Fit, task: Classes) -> Fit:
    """Move the thresholds to where the out-of-fold outputs make the fewest errors."""
    memory, details = fit.memory, fit.details
    sample = memory.sample if isinstance(memory, FixedMemory) else None
    if sample is None or sample.held is None or sample.labels is None:
        raise InvalidInputError(NO_OUTPUTS)
    weight = sample.weight
    if task.per_class and details.moments:  # else the weights are in the rows
        factors = task.table(class_counts(details.moments)).factors[sample.labels]
        weight = times(weight, factors)
    outputs = zip(sample.held.T, sample.Y.T, strict=True)
    moved = np.array([best_threshold(scores, targets, weight) for scores, targets in outputs])
    held = replace(sample, held=sample.held - moved)
    return replace(fit, threshold=moved, intercept=fit.intercept - moved, memory=FixedMemory(held))
