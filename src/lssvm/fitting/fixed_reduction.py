"""Second level of sparsity of a fixed-size model: which prototypes are left [Mall2014]."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm.backends.host import HostRows, Rows
from lssvm.data.folds import Folds, hash_rows, restrict_folds
from lssvm.fitting.dual import DualSettings, fit_dual
from lssvm.fitting.fixed_memory import FixedDetails
from lssvm.fitting.fixed_settings import FixedProblem, FixedSettings, fold_task, folds_of, groups_of
from lssvm.fitting.output_code import class_rows
from lssvm.fitting.prototypes import Prototypes
from lssvm.fitting.record import Fit, Resources
from lssvm.kernels import Kernel
from lssvm.moments import Moments
from lssvm.moments.cells import FoldMoments
from lssvm.reductions import (
    FixedSizeL0,
    L0System,
    PrototypeBasis,
    SparsityPath,
    cross_validate_sizes,
    l0_order,
    reduce_as_printed,
    target_scale,
)
from lssvm.tasks import Classes, SquaredError, Task
from lssvm.tuning.fixed_size import FixedSizeObjective

KEEP = 0.05
"""Part of the memory budget up to which the moments of the folds are kept."""
SD_KEEPS_NO_ROWS = (
    "reduction='sd' has learned from the prototypes alone, so there are no other rows to add or "
    "remove: use reduction='ssd'"
)
REWEIGHTED = (
    "a reduction with refit=False ends in a reweighted system, so rows cannot be added or removed "
    "exactly: use refit=True"
)


# -- the dual model on the prototypes: the start of SSD, and SD itself ----------------------------


@dataclass(frozen=True, eq=False)
class PrototypeRows:
    """The training rows that are prototypes: one for each different pair of row and class.

    Attributes
    ----------
    rows : int array of shape (t,)
        Rows of the sample.
    member : int array of shape (t,)
        Prototypes that they are.
    labels : int array or None
    Y : array of shape (t, k)
        Weighted means of the targets of equal rows.
    weight : array of shape (t,)
        Sums of their weights.
    """

    rows: IntArray
    member: IntArray
    labels: IntArray | None
    Y: FloatArray
    weight: FloatArray


def prototype_rows(sample: HostRows, chosen: Prototypes, what: str) -> PrototypeRows:
    """Find the training rows that are prototypes."""
    Z, support = chosen.Z, chosen.support
    if len(support) != Z.shape[0] or np.any(support < 0):
        raise InvalidInputError(
            f"reduction={what!r} needs the targets of the prototypes, which must be rows of X: "
            "choose another selection (not 'kmeans' or given points, and not the linear kernel, "
            "which has none), or reduction='spfs'."
        )
    keys, names = hash_rows(sample.X), hash_rows(Z)
    order = np.argsort(names, kind="stable")
    at = np.minimum(np.searchsorted(names[order], keys), Z.shape[0] - 1)
    rows = np.flatnonzero(names[order][at] == keys)
    member = order[at[rows]]
    s = np.ones(len(keys)) if sample.weight is None else np.asarray(sample.weight, float)
    labels = np.zeros(len(keys), np.intp) if sample.labels is None else sample.labels
    classes = labels[rows].astype(np.intp)
    pair = member * (int(labels.max()) + 1) + classes
    _, first, group = np.unique(pair, return_index=True, return_inverse=True)
    weight = np.bincount(group, s[rows])
    Y = np.asarray(sample.Y[rows], dtype=np.float64)
    means = [np.bincount(group, s[rows] * column) / weight for column in Y.T]
    own = None if sample.labels is None else classes[first]
    return PrototypeRows(rows[first], member[first], own, np.stack(means, 1), weight)


@dataclass(frozen=True, eq=False)
class DualStart:
    """The dual model that was tuned and trained on the prototypes alone."""

    fit: Fit
    coef: FloatArray  # (m, k)


def fit_on_prototypes(problem: FixedProblem, chosen: Prototypes) -> DualStart | None:
    """Train the dual model on the prototypes [Mall2014, algorithm 4]; None where not asked for."""
    rows, task, ask, gamma = problem.rows, problem.task, problem.ask, problem.gamma
    if ask.method not in ("ssd", "sd"):
        return None
    if ask.sizes_by_cv:
        raise InvalidInputError(
            f"n_prototypes='cv' cannot be used with reduction={ask.method!r}, which tunes on "
            "the prototypes alone: give a number, or 'auto'."
        )
    if ask.search.checkpoint is not None:
        raise InvalidInputError(
            "A checkpoint cannot be used with reduction='ssd' or 'sd', which tune on the "
            "prototypes alone: leave it out."
        )
    sample: HostRows = rows.sample
    part = prototype_rows(sample, chosen, ask.method)
    X, resources = chosen.Z[part.member], Resources(sample.budget, sample.threads)
    if isinstance(task, Classes):
        assert part.labels is not None
        missing = np.setdiff1d(np.arange(task.n_classes), part.labels)
        if len(missing):
            raise InvalidInputError(
                f"No prototype is of the classes {task.classes[missing].tolist()}, which the dual "
                "model on the prototypes has to learn: raise n_prototypes, or use "
                "reduction='spfs'."
            )
        inner = class_rows(task, X, part.labels, part.weight, resources, by_class=False)
        y = task.classes[part.labels]
    else:
        y = part.Y if sample.centre is None else part.Y + sample.centre
        inner = HostRows(X, y, part.weight, budget=sample.budget, threads=sample.threads)
    # the groups are those of the first of equal rows
    groups = None if sample.groups is None else sample.groups[sample.row_numbers[part.rows]]
    inner = replace(inner, given=(X, y), groups=groups)
    settings = DualSettings(
        C=ask.C,
        choice=ask.choice if gamma is None else replace(ask.choice, gamma=gamma),
        cv=_cv_on_prototypes(rows, ask, part),
        search=ask.search,
        scoring=ask.scoring,
        seed=ask.seed,
    )
    fit = fit_dual(inner, task, settings, problem.tell)
    coef = np.zeros((chosen.Z.shape[0], fit.coef.shape[1]))
    np.add.at(coef, part.member[fit.support], fit.coef)
    return DualStart(fit, coef)


def _cv_on_prototypes(rows: Rows, ask: FixedSettings, part: PrototypeRows) -> Any:
    if isinstance(ask.cv, (int, np.integer, str)):
        return ask.cv
    given = folds_of(rows.sample, ask)  # folds of all rows: what is left of them
    assert isinstance(given, Folds)
    folds = restrict_folds(given, part.rows, rows.sample.n_rows)
    everyone = np.arange(len(part.rows))
    train = folds.train or [np.setdiff1d(everyone, test) for test in folds.test]
    return [pair for pair in zip(train, folds.test, strict=True) if len(pair[0])]


# -- which prototypes are left ---------------------------------------------------------------------


def moments_to_reduce(problem: FixedProblem, kernel: Kernel, Z: FloatArray) -> FoldMoments | None:
    """Return the moments of the folds for a reduction whose model was not tuned on all rows."""
    rows, ask = problem.rows, problem.ask
    if ask.method in (None, "sd"):
        return None
    data = (rows, Z, folds_of(rows, ask), SquaredError(), problem.by_class)
    return FixedSizeObjective(lambda _: kernel, *data).at(None).moments


def prototype_basis(
    problem: FixedProblem,
    fit: Fit,
    chosen: Prototypes,
    moments: FoldMoments,
    start: DualStart | None,
) -> PrototypeBasis:
    """Return what reductions work on."""
    given, rows, kernel, scale = None, problem.rows, fit.kernel, None
    reduction = problem.ask.reduction
    printed = reduction is not None and reduction.settings.printed  # in whatever unit y is
    if not printed and not isinstance(problem.task, Classes):
        scale = target_scale(moments.whole[0])
    if problem.ask.method == "sv-l0":
        part = prototype_rows(rows.sample, chosen, "sv-l0")
        given = _prototype_systems(kernel, chosen.Z, part, problem.task, scale)
    first = None if start is None else start.coef
    return PrototypeBasis(kernel, chosen.Z, moments, fit.C, first, given, rows.threads, scale)


def _prototype_systems(
    kernel: Kernel, Z: FloatArray, part: PrototypeRows, task: Task, scale: FloatArray | None
) -> list[L0System]:
    K = np.asarray(kernel(Z, Z), dtype=np.float64)[part.member]
    systems, by_class = [], fold_task(task)
    for columns in groups_of(by_class, task.n_outputs):
        weight, Y = part.weight, part.Y[:, columns]
        if by_class is not None:
            assert part.labels is not None
            table = by_class.table(by_class.counts(part.labels, part.weight))
            Y = table.targets[np.ix_(part.labels, columns)]
            weight = weight * table.factors[part.labels] * (Y[:, 0] != 0)
        if weight.sum() > 0:
            own = None if scale is None else scale[columns]
            systems.append(L0System.of(Moments.of(K, Y, weight), columns, own))
    return systems


def worth_keeping(basis: PrototypeBasis, budget: int) -> PrototypeBasis | None:
    """Return the moments of the folds, on the host, where they are small beside the budget."""
    size = 8 * basis.Z.shape[0] ** 2 * len(basis.moments.cells)
    if basis.n_folds < 2 or size > KEEP * budget:
        return None
    return replace(basis, moments=basis.moments.on_host())


def reduce_model(
    fit: Fit, rows: Rows, basis: PrototypeBasis, reduction: FixedSizeL0, C_grid: FloatArray | None
) -> Fit:
    """Drop prototypes [Mall2014, algorithms 3 and 4]."""
    m, k = basis.Z.shape[0], len(basis.C)
    size = reduction.size if isinstance(reduction.size, (int, np.integer)) else None
    if size is not None and size > m:
        raise InvalidInputError(
            f"size={size} support vectors were asked for, but there are only {m} prototypes: give "
            f"at most {m}, or raise n_prototypes."
        )
    jobs = [np.arange(k)] if reduction.joint else [np.array([j]) for j in range(k)]
    coef, intercept, C = np.zeros((m, k)), np.zeros(k), np.empty(k)
    used = np.zeros((m, k), dtype=bool)
    paths = []
    for columns in jobs:
        path = None
        if reduction.size != "l0" and basis.n_folds > 1:
            path = cross_validate_sizes(basis, columns, C_grid)
            paths.append(path)
        support, C[columns], solved = _choose(basis, columns, reduction, size, path)
        if solved is None:
            solved = basis.solve(None, columns, support, C[columns])
        coef[np.ix_(support, columns)], intercept[columns] = solved
        used[np.ix_(support, columns)] = True
    left = np.flatnonzero(used.any(axis=1))
    if len(left) == 0:  # only as printed
        left = np.zeros(1, dtype=np.intp)
        warnings.warn(
            "The reduction has dropped every prototype: the model is a constant. Raise C, or use "
            "reduction='spfs', which keeps those that matter.",
            NumericalWarning,
            stacklevel=5,
        )
    details: FixedDetails = replace(
        fit.details,
        moments=[whole.subset(left) for whole in basis.moments.whole],
        map=rows.map(fit.kernel, basis.Z[left]),
        used=None if reduction.joint else used[left],
        no_update=None if reduction.refit else REWEIGHTED,
        paths=tuple(paths),
    )
    support = fit.support[left] if len(fit.support) else fit.support
    fit = replace(fit, basis=basis.Z[left], coef=coef[left], intercept=intercept, C=C)
    return replace(fit, support=support, details=details)


def _choose(
    basis: PrototypeBasis,
    columns: IntArray,
    reduction: FixedSizeL0,
    size: int | None,
    path: SparsityPath | None,
) -> tuple[IntArray, FloatArray, tuple[FloatArray, FloatArray] | None]:
    C = basis.C[columns]
    if size is not None:
        if path is not None:
            return path.support(size), path.C_at(size), None
        order = l0_order(basis.systems(None, columns), basis.first(None, columns), C)
        return np.sort(order[:size]), C, None
    if path is None:
        reduced = reduce_as_printed(basis, columns, reduction.settings)
        solution = None if reduction.refit else (reduced.coef, reduced.intercept)
        return reduced.support, C, solution
    size = path.chosen
    if path.constant <= path.limit:
        size = 1
        warnings.warn(
            "The reduction would have dropped every prototype: the cross-validated error of the "
            f"bias alone is {path.constant:.3g}, that of the best model {path.mean.min():.3g}. The "
            "one that left last was kept. Give a size for more, or other features.",
            NumericalWarning,
            stacklevel=6,
        )
    return path.support(size), path.C_at(size), None


def solve_used(fit: Fit, whole: list[Moments], used: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Solve for outputs that each have their own prototypes."""
    moments = FoldMoments.without_folds(whole, fold_task(fit.task))
    basis = PrototypeBasis(fit.kernel, fit.basis, moments, fit.C)
    coef, intercept = np.zeros(used.shape), np.zeros(used.shape[1])
    for j in range(used.shape[1]):
        columns, support = np.array([j]), np.flatnonzero(used[:, j])
        solved, b = basis.solve(None, columns, support, fit.C[columns])
        coef[np.ix_(support, columns)], intercept[columns] = solved, b
    return coef, intercept
