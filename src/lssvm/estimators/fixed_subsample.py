"""The rows that are prototypes, and the dual model on them alone (SD-LSSVM)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.estimators.dual_classifier import LSSVC
from lssvm.estimators.dual_regressor import LSSVR
from lssvm.folds.content import hash_rows
from lssvm.kernels import Kernel, has_gamma
from lssvm.moments import Moments
from lssvm.moments.cells import ClassTable
from lssvm.reductions import L0System

if TYPE_CHECKING:
    from lssvm.estimators._problem import FixedProblem


@dataclass(frozen=True, eq=False)
class DualFit:
    """The dual model on the prototypes alone (SD-LSSVM), in terms of the prototypes."""

    coef: FloatArray  # (m, k)
    intercept: FloatArray  # (k,)
    C: FloatArray  # (k,)
    gamma: Any

    @property
    def solution(self) -> tuple[FloatArray, FloatArray]:
        """Coefficients and intercepts."""
        return self.coef, self.intercept


@dataclass(frozen=True, eq=False)
class Subsample:
    """The rows that are prototypes: what the dual model and "sv-l0" see.

    Attributes
    ----------
    rows : int array of shape (r,)
        One row of the problem for each.
    member : int array of shape (r,)
        Which prototype each row is.
    labels : int array of shape (r,) or None
    Y : array of shape (r, k)
    weight : array of shape (r,)
        Total weight of the equal rows.
    """

    rows: IntArray
    member: IntArray
    labels: IntArray | None
    Y: FloatArray
    weight: FloatArray


def subsample(problem: FixedProblem, Z: FloatArray, support: IntArray, what: str) -> Subsample:
    """Find the rows that are prototypes; equal rows (of a class) become one of their total weight.

    So that a weight of 2 equals the row twice. O(n d).
    """
    if len(support) != len(Z) or np.any(support < 0):
        raise InvalidInputError(
            f"reduction={what!r} needs the targets of the prototypes, which must be rows of X: "
            "choose another selection (not 'kmeans' or given points, and not the linear kernel, "
            "which has none), or reduction='spfs'."
        )
    keys, names = hash_rows(problem.X), hash_rows(Z)
    order = np.argsort(names, kind="stable")
    at = np.minimum(np.searchsorted(names[order], keys), len(Z) - 1)
    rows = np.flatnonzero(names[order][at] == keys)
    member = order[at[rows]]
    s = np.ones(len(keys)) if problem.weight is None else np.asarray(problem.weight, float)
    classes = None if problem.labels is None else problem.labels[rows]
    pair = member if classes is None else member * (int(problem.labels.max()) + 1) + classes  # type: ignore[union-attr]
    _, first, group = np.unique(pair, return_index=True, return_inverse=True)
    weight = np.bincount(group, s[rows])
    Y = np.asarray(problem.Y[rows], dtype=np.float64)
    means = [np.bincount(group, s[rows] * column) / weight for column in Y.T]
    labels = None if classes is None else classes[first]
    return Subsample(rows[first], member[first], labels, np.stack(means, 1), weight)


def fit_subsample(model: Any, part: Subsample, Z: FloatArray, gamma: Any, cv: Any) -> DualFit:
    """Fit the dual model to the prototypes alone, its parameters tuned on them.

    [Mall2014, eq. (6)].

    Parameters
    ----------
    model : FixedSizeLSSVC or FixedSizeLSSVR
    part : Subsample
    Z : array of shape (m, d)
    gamma : float, array or None
        None: to be tuned, where the kernel has one.
    cv : int, "loo" or list of (train, test)

    Returns
    -------
    DualFit
    """
    if model.checkpoint is not None:
        raise InvalidInputError(
            "checkpoint cannot be used with reduction='ssd' or 'sd', which tune on the prototypes "
            "alone: leave it out."
        )
    names = ["C", "kernel", "degree", "coef0", "nu", "search", "scoring"]
    names += ["memory_budget", "n_jobs", "random_state", "verbose"]
    options = {name: getattr(model, name) for name in names}
    if gamma is None:
        gamma = model.gamma if has_gamma(model.kernel) else "scale"
    options |= {"gamma": gamma, "cv": cv}
    if part.labels is None:
        inner: Any = LSSVR(**options)
        y = part.Y
    else:
        missing = np.setdiff1d(np.arange(len(model.classes_)), part.labels)
        if len(missing):
            raise InvalidInputError(
                f"No prototype is of the classes {model.classes_[missing].tolist()}, which the "
                "dual model on the prototypes has to learn: raise n_prototypes, or use "
                "reduction='spfs'."
            )
        more = {name: getattr(model, name) for name in ("decoding", "targets", "class_weight")}
        inner = LSSVC(**options, **more, multiclass=model.code_)
        y = model.classes_[part.labels]
    inner.fit(Z[part.member], y, part.weight)
    k = inner.dual_coef_.shape[1]
    coef = np.zeros((len(Z), k))
    np.add.at(coef, part.member[inner.support_], inner.dual_coef_)
    for name in ("cv_results_", "best_score_", "n_evaluations_"):
        if hasattr(inner, name):
            setattr(model, name, getattr(inner, name))
    C = np.broadcast_to(np.asarray(inner.C_, dtype=np.float64), (k,)).copy()
    return DualFit(coef, np.asarray(inner.intercept_, dtype=np.float64), C, inner.gamma_)


def prototype_systems(
    kernel: Kernel, Z: FloatArray, part: Subsample, groups: list[IntArray], table: ClassTable | None
) -> list[L0System]:
    """Return the systems of a loss that sees the prototypes only."""
    K = np.asarray(kernel(Z, Z), dtype=np.float64)[part.member]
    systems = []
    for columns in groups:
        weight, Y = part.weight, part.Y[:, columns]
        if table is not None:
            assert part.labels is not None
            Y = table.targets[np.ix_(part.labels, columns)]
            weight = weight * table.factors[part.labels] * (Y[:, 0] != 0)
        if weight.sum() > 0:
            systems.append(L0System.of(Moments.of(K, Y, weight), columns))
    return systems
