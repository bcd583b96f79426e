"""Criteria of the dual model that are named in ``scoring`` and need no folds of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.criteria.dual import DualObjective, Group
from lssvm.criteria.spectral import SPECTRAL
from lssvm.criteria.spectral_objective import SpectralObjective
from lssvm.folds.content import content_folds
from lssvm.kernels import Kernel
from lssvm.solvers import DualSystem

CRITERIA = (*SPECTRAL, "press")
"""What ``scoring`` may name beside scikit-learn's scorers."""


def is_criterion(scoring: Any) -> bool:
    """Say whether ``scoring`` names a criterion of this library.

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
class GroupSquaredError:
    """Mean squared error of problems that are trained on some of the rows.

    Parameters
    ----------
    Y : array of shape (n, k)
    used : bool array of shape (n, k)
        Which rows each problem is trained on; the others have no target.
    weight : array of shape (n,) or None, default=None
    """

    Y: FloatArray
    used: NDArray[np.bool_]
    weight: FloatArray | None = None
    pooled: bool = True

    def __call__(self, predictions: FloatArray, rows: IntArray) -> FloatArray:
        """Return the mean squared error of each candidate, shape (c,)."""
        mass = self.used[rows].astype(float)
        if self.weight is not None:
            mass *= self.weight[rows, None]
        errors = ((predictions - self.Y[rows][None]) ** 2 * mass).sum(axis=1)  # (c, k)
        total = mass.sum(axis=0)
        return np.asarray((errors[:, total > 0] / total[total > 0]).mean(axis=1))


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
    groups : sequence of Group
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
    weight = None if system.root_weight is None else system.root_weight**2
    rest = (weight, system.budget, system.threads, system.bias)
    if scoring != "press":
        return SpectralObjective(scoring, kernel, system.rows, system.basis, Y, groups, *rest)
    used = np.zeros(Y.shape, dtype=bool)
    for group in groups:
        used[np.ix_(np.arange(len(Y)) if group.rows is None else group.rows, group.columns)] = True
    content = np.arange(1.0, system.n + 1.0)[:, None] if positions else system.rows
    folds = content_folds(content, None)
    criterion = GroupSquaredError(Y, used, weight)
    return DualObjective(kernel, system.rows, system.basis, Y, folds, criterion, groups, *rest)
