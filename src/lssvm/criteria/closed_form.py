"""Criteria of the dual model that are named in ``scoring`` and need no folds of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.criteria.dual import DualObjective
from lssvm.criteria.fold_targets import Group
from lssvm.criteria.spectral import SPECTRAL, SpectralObjective
from lssvm.folds.content import Folds, content_folds
from lssvm.kernels import Kernel
from lssvm.solvers import DualSystem
from lssvm.tasks import Loss, SquaredError, Truth

CRITERIA = (*SPECTRAL, "press")
"""What ``scoring`` may name beside scikit-learn's scorers."""


def is_criterion(scoring: Any) -> bool:
    """Say whether ``scoring`` names a criterion of this library.

    Parameters
    ----------
    scoring : object
        As the estimators take it.

    Examples
    --------
    >>> from lssvm.tuning import is_criterion
    >>> is_criterion("gcv"), is_criterion("accuracy"), is_criterion(None)
    (True, False, False)
    """
    return isinstance(scoring, str) and scoring in CRITERIA


def check_criterion(scoring: str, C: float | None) -> None:
    """Raise where a criterion cannot choose C.

    Examples
    --------
    >>> from lssvm.criteria.closed_form import check_criterion
    >>> check_criterion("rk", 1.0)
    """
    if scoring == "rk" and C is None:
        raise InvalidInputError(
            "scoring='rk' cannot choose C: R(K) falls as C grows, for any kernel. Give a number "
            "for C, or use scoring='gcv', 'press' or 'evidence'."
        )


@dataclass(frozen=True)
class CodedSquaredError:
    """Mean squared error of problems that are trained on some of the classes.

    A problem is judged by the rows that it has a target for: those where that is not zero.
    """

    def __call__(self, outputs: FloatArray, truth: Truth) -> FloatArray:
        """Return the mean squared error of each candidate, shape (c,)."""
        mass = (truth.Y != 0).astype(float)
        if truth.weight is not None:
            mass *= truth.weight[:, None]
        errors = ((outputs - truth.Y[None]) ** 2 * mass).sum(axis=1)  # (c, k)
        total = mass.sum(axis=0)
        return np.asarray((errors[:, total > 0] / total[total > 0]).mean(axis=1))


def press_folds(system: DualSystem, positions: bool) -> Folds:
    """Return the folds of "press": every row alone, equal rows together.

    ``positions`` says that rows have no content of their own, as with a precomputed kernel.
    """
    return content_folds(
        np.arange(1.0, system.n + 1.0)[:, None] if positions else system.rows, None
    )


def press_loss(groups: Sequence[Group]) -> Loss:
    """Return the loss of "press"."""
    everyone = all(group.rows is None for group in groups)
    return SquaredError() if everyone else CodedSquaredError()


def criterion_objective(
    scoring: str,
    kernel: Callable[[float | None], Kernel],
    system: DualSystem,
    Y: FloatArray,
    groups: Sequence[Group],
    *,
    positions: bool,
) -> DualObjective | SpectralObjective:
    """Return the objective that a criterion's name stands for.

    Parameters
    ----------
    scoring : {"press", "gcv", "rk", "evidence"}
        "press" is the mean squared error of leave-one-out predictions ([Cawley2004]_), equal
        rows left out together; the others are those of `SpectralObjective`.
    kernel : callable
        From gamma to a `Kernel`.
    system : DualSystem
        Rows, weights, budget, threads and bias; its kernel and C are not used.
    Y : array of shape (n, k)
        Targets.
    groups : sequence of Group
        Problems that are trained on the same rows, see `Group`.
    positions : bool
        Whether rows have no content of their own, as with a precomputed kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.solvers import DualSystem
    >>> from lssvm.tuning import Group, criterion_objective
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> system = DualSystem(RBF(1.0), X, X, C=1.0)
    >>> press = criterion_objective("press", RBF, system, np.sin(X), [Group(np.array([0]))],
    ...                             positions=False)
    >>> bool(press.at(1.0).losses(np.array([1e3])).mean[0] < 1e-4)
    True
    """
    if scoring != "press":
        return SpectralObjective(scoring, kernel, system, Y, groups)
    truth = Truth(Y, weight=None if system.root_weight is None else system.root_weight**2)
    folds, loss = press_folds(system, positions), press_loss(groups)
    return DualObjective(kernel, system, truth, folds, loss, groups)
