"""Rows that come and go: moments add and subtract, so a fixed-size model follows exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError
from lssvm._core.namespace import is_sparse
from lssvm.engines.base import Rows
from lssvm.kernels import Linear
from lssvm.moments import Moments, total
from lssvm.recipes.fixed_memory import SAMPLE, SCORES, CalibrationSample, FixedMemory, draw_sample
from lssvm.recipes.fixed_record import FixedDetails
from lssvm.recipes.fixed_reduction import solve_used
from lssvm.recipes.fixed_settings import fold_task
from lssvm.recipes.fixed_solution import solve_moments
from lssvm.recipes.record import Fit, Resources
from lssvm.reductions import PrototypeBasis, SparsityPath, cross_validate_sizes


def add_rows(fit: Fit, rows: Rows, resources: Resources) -> Fit:
    """Return the model of the old rows and these, with the same prototypes and parameters."""
    return _updated(fit, rows, resources, sign=1)


def forget_rows(fit: Fit, rows: Rows, resources: Resources) -> Fit:
    """Return the model as if these rows had never been there."""
    return _updated(fit, rows, resources, sign=-1)


def _updated(fit: Fit, rows: Rows, resources: Resources, *, sign: int) -> Fit:
    details: FixedDetails = fit.details
    fit.need("all", "Adding or removing rows")
    if details.no_update is not None:
        raise InvalidInputError(f"{details.no_update}, or fit again.")
    task = fold_task(fit.task)
    change = [part.on_host() for part in rows.moments(fit.kernel, fit.basis, None, task).whole]
    whole = _summed(details.moments, change, sign)
    if task is not None and min(min(part.n, part.weight) for part in whole) <= 0:
        raise InvalidInputError(
            "forget would leave a class without rows: keep at least one row of each class."
        )
    try:
        if details.used is None:
            assert details.map is not None
            bias = {"penalised": details.penalised}
            coef, intercept = solve_moments(whole, details.map, task, fit.C, **bias)
        else:
            coef, intercept = solve_used(whole, fit.kernel, fit.basis, task, fit.C, details.used)
    except NotPositiveDefiniteError as error:
        if sign > 0:
            raise
        raise InvalidInputError(
            "What is left without these rows is no sum over rows: forget was given rows that the "
            "model has not learned. Give only rows (with their labels and weights) that fit or "
            "partial_fit has seen."
        ) from error
    intercept = intercept if details.centre is None else intercept + details.centre
    memory = fit.memory
    assert isinstance(memory, FixedMemory)
    sample = memory.sample
    if sample is not None and sign > 0:
        sample = _sample_with(fit, sample, rows, resources)
    elif sample is not None:
        sample = sample.take(np.flatnonzero(~rows.holds(sample.keys, fit.seed)))
    return replace(
        fit,
        coef=coef,
        intercept=intercept if fit.threshold is None else intercept - fit.threshold,
        memory=FixedMemory(sample),
        loss="squared",  # only such models take rows
        details=replace(details, moments=whole, kept=None, paths=()),
    )


def _summed(old: list[Moments], change: list[Moments], sign: int) -> list[Moments]:
    pairs = [(a, b.shifted(a.shift)) for a, b in zip(old, change, strict=True)]
    whole = [a + b if sign > 0 else a - b for a, b in pairs]
    short = [part.weight < -1e-9 * a.weight for part, (a, _) in zip(whole, pairs, strict=True)]
    if any(short) or min(part.n for part in whole) < 0 or sum(part.n for part in whole) < 1:
        raise InvalidInputError(
            "forget was given more rows than the model has learned: give only rows (with their "
            "labels and weights) that fit or partial_fit has seen."
        )
    return whole


def _sample_with(
    fit: Fit, old: CalibrationSample, rows: Rows, resources: Resources
) -> CalibrationSample:
    if not rows.rereads:
        return replace(old, behind=True)
    size = SAMPLE if old.held is None or old.labels is None else SCORES
    new, _ = draw_sample(rows, None, fit.seed, size)
    if old.X is not None:  # rows are left out of the model with all rows
        old = replace(old, held=None)
    else:
        assert new.X is not None
        new = replace(new, X=None, held=fit.outputs(new.X, resources))
    both = old.joined(new)
    if len(both.keys) <= size:
        return both
    end = int(np.searchsorted(both.keys, both.keys[size - 1], side="right"))
    return both.take(np.arange(end))


def _spread(basis: PrototypeBasis) -> float:
    """Return the sum of the variances of the features, where they are the basis; else 1."""
    if is_sparse(basis.Z) or not np.array_equal(basis.Z, np.eye(*basis.Z.shape)):
        return 1.0
    moments = total(basis.moments.whole)
    spread = float(np.trace(moments.gram) - moments.border @ moments.border / moments.weight)
    return spread / moments.weight if spread > 0 else 1.0


def sparsity_path(fit: Fit, C_grid: FloatArray | None) -> tuple[Fit, list[SparsityPath]]:
    """Return the cross-validated errors of all numbers of support vectors, and a record with them.

    Parameters
    ----------
    fit : Fit
        Of a fixed-size model.
    C_grid : array or None
        Values of C among which every size chooses; None: the C of the model.

    Returns
    -------
    fit : Fit
    paths : list of SparsityPath
        One, or one per output where each has its own support vectors.
    """
    details: FixedDetails = fit.details
    if details.paths:
        return fit, list(details.paths)
    if details.kept is None:
        raise InvalidInputError(
            "sparsity_path needs the moments of the folds, which this model does not have: they "
            "are there after a fit that tunes something by cross-validation (not leave-one-out), "
            "as long as they fit into 5 % of memory_budget, no rows were added or removed and the "
            "model was not pickled. Fit with reduction='spfs', which computes the path inside fit, "
            "or raise memory_budget."
        )
    every = np.arange(len(details.kept.C))
    if C_grid is not None and isinstance(fit.kernel, Linear):
        C_grid = C_grid / _spread(details.kept)
    paths = [cross_validate_sizes(details.kept, every, C_grid)]
    return replace(fit, details=replace(details, paths=tuple(paths))), paths
