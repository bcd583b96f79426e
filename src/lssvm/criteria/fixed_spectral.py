"""Generalised cross-validation, R(K), evidence and leave-one-out of the fixed-size model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.criteria.base import Losses
from lssvm.criteria.fixed_size import FixedSizeObjective, FixedSizePoint
from lssvm.criteria.spectral import Terms, noise_variance
from lssvm.folds.content import Folds, content_folds
from lssvm.moments import Moments
from lssvm.solvers.primal import primal_system
from lssvm.tasks import SquaredError
from lssvm.tasks.weights import pick


def fixed_terms(moments: Moments, lam: FloatArray, QB: FloatArray, C: FloatArray) -> Terms:
    r"""Return what the criteria are made of, from the spectrum of the centred normal equations.

    Parameters
    ----------
    moments : Moments
        Of all rows.
    lam : array of shape (r,)
        Eigenvalues of A of `lssvm.solvers.PrimalSystem`.
    QB : array of shape (r, k)
        Its right-hand sides in the eigenvectors' coordinates.
    C : array of shape (c,)

    Notes
    -----
    The features are a kernel matrix of rank r. On the n - 1 directions orthogonal to the border it
    has the eigenvalues lam and, n - 1 - r times, zero; the targets have the components
    :math:`(Q^T B)_i / \sqrt{\lambda_i}` and, in the null space, what is left of their
    squares. :math:`|H| u^T H^{-1} u = |u|^2 \prod (\lambda_i + 1/C)` over those directions.
    """
    mass = moments.weight
    spread = np.maximum(moments.squares - moments.target**2 / mass, 0.0)  # (k,)
    kept = lam > len(lam) * np.finfo(np.float64).eps * lam.max(initial=0.0)
    lam, T = lam[kept], QB[kept] ** 2 / lam[kept, None]  # squares of the components
    rest = np.maximum(spread - T.sum(axis=0), 0.0)
    null = max(moments.n - 1 - len(lam), 0)
    d = 1.0 / (lam[:, None] + 1.0 / C)  # (r, c)
    C = C[:, None]
    return Terms(
        moments.n,
        mass,
        True,
        C,
        d.T**2 @ T + C**2 * rest,
        d.T @ T + C * rest,
        d.sum(axis=0)[:, None] + null * C,
        -np.log(d).sum(axis=0)[:, None] - null * np.log(C),
        np.full_like(C, mass),
    )


@dataclass(frozen=True, eq=False)
class FixedCriterionObjective:
    """A criterion of a fixed-size model that needs no folds of the user's.

    Parameters
    ----------
    name : {"press", "gcv", "rk", "evidence"}
        As `lssvm.tuning.criterion_objective` has them for the dual model; with all rows as
        prototypes the values are the same.
    objective : FixedSizeObjective
        Data, prototypes and settings; its folds and criterion are not used.

    Notes
    -----
    `at` takes one pass (n m^2) for the moments and one eigendecomposition (9 m^3); a value of C
    then costs O(m k). "press" takes one more pass, see `FixedSizeObjective`.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.tasks import SquaredError
    >>> from lssvm.tuning import FixedCriterionObjective, FixedSizeObjective
    >>> from lssvm.tuning import HostRows, content_folds
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> rows, folds = HostRows(X, np.sin(X)), content_folds(X, 5)
    >>> plain = FixedSizeObjective(RBF, rows, X[::10], folds, SquaredError())
    >>> losses = FixedCriterionObjective("gcv", plain).at(1.0).losses(np.array([1e-3, 1e3]))
    >>> bool(losses.mean[1] < losses.mean[0])
    True
    """

    name: str
    objective: FixedSizeObjective

    @cached_property
    def inner(self) -> FixedSizeObjective:
        """What gives the moments: of all rows, or with single rows left out."""
        X = self.objective.rows.sample.X
        folds = content_folds(X, None) if self.name == "press" else Folds([])
        return replace(self.objective, folds=folds, loss=SquaredError())

    @cached_property
    def noise(self) -> FloatArray | None:
        """Variance of the noise of every output, which R(K) needs."""
        if self.name != "rk":
            return None
        sample = self.objective.rows.sample
        X, Y, weight = sample.X, np.asarray(sample.Y), sample.truth.weight
        used = Y != 0 if self.objective.task is not None else np.ones(Y.shape, dtype=bool)
        each = [
            noise_variance(X[rows], Y[rows, j : j + 1], pick(weight, rows))
            for j, rows in enumerate(used.T)
        ]
        return np.concatenate(each)

    def at(self, gamma: float | None) -> FixedCriterionPoint:
        """Do the pass over the rows at one kernel parameter."""
        point = self.inner.at(gamma)
        basis = (point.objective, point.kernel, point.Z, point.moments)
        return FixedCriterionPoint(*basis, gamma, owner=self)


@dataclass(eq=False, kw_only=True)
class FixedCriterionPoint(FixedSizePoint):
    """A fixed-size model at one kernel parameter, for every C.

    Attributes
    ----------
    owner : FixedCriterionObjective
    """

    owner: FixedCriterionObjective
    has_folds: ClassVar[bool] = False

    def losses(self, C: FloatArray) -> Losses:
        """Return the criterion of a path of C."""
        if self.owner.name == "press":
            return super().losses(C)
        groups = self.groups
        if len(groups) == 1:
            return Losses.single(self._group(groups[0], np.asarray(C, dtype=np.float64)))
        grid = np.asarray(self.objective.C_grid, dtype=np.float64)
        self.C_of = np.empty(self.rows.n_outputs)
        total = 0.0
        for columns in groups:  # each problem its own C
            values = self._group(columns, grid)
            best = int(np.argmin(values))
            self.C_of[columns] = grid[best]
            total += float(values[best]) * len(columns)
        return Losses.single(np.array([total / self.rows.n_outputs]))

    def _group(self, columns: IntArray, C: FloatArray) -> FloatArray:
        """Return the criterion of problems that share their rows, shape (c,)."""
        moments = self.moments.training(None, columns)
        lam, QB, _ = primal_system(moments, self.map).spectrum()
        terms = fixed_terms(moments, lam, QB, C)
        values = terms.loss(self.owner.name, pick(self.owner.noise, columns))
        return np.asarray(values.mean(axis=1))
