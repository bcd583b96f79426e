"""Generalised cross-validation, R(K), evidence and leave-one-out of the fixed-size model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.criteria.base import Losses
from lssvm.criteria.fixed_size import FixedSizeObjective, FixedSizePoint
from lssvm.criteria.noise import noise_variance
from lssvm.criteria.spectral import Terms
from lssvm.folds.content import Folds, content_folds
from lssvm.moments import Moments
from lssvm.moments.cells import FoldMoments
from lssvm.solvers.primal import primal_system
from lssvm.tasks import SquaredError


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
        weight = sample.truth.weight
        Y = np.asarray(sample.Y)
        used = Y != 0 if self.objective.task is not None else np.ones(Y.shape, dtype=bool)
        return np.array(
            [
                noise_variance(
                    sample.X[rows], Y[rows, j : j + 1], None if weight is None else weight[rows]
                )[0]
                for j, rows in enumerate(used.T)
            ]
        )

    def at(self, gamma: float | None) -> FixedCriterionPoint:
        """Do the pass over the rows at one kernel parameter."""
        return FixedCriterionPoint(self, self.inner.at(gamma))


@dataclass(eq=False)
class FixedCriterionPoint:
    """A fixed-size model at one kernel parameter, for every C.

    Attributes
    ----------
    owner : FixedCriterionObjective
    point : FixedSizePoint
        The model whose moments these are.
    C_of : array of shape (k,) or None
        The C of every problem where each has its own; filled by `losses`.
    """

    owner: FixedCriterionObjective
    point: FixedSizePoint
    C_of: FloatArray | None = None

    @property
    def objective(self) -> FixedSizeObjective:
        """Data and settings."""
        return self.point.objective

    @property
    def gamma(self) -> float | None:
        """The kernel parameter."""
        return self.point.gamma

    @property
    def Z(self) -> NDArray[np.float64]:
        """The prototypes."""
        return self.point.Z

    @property
    def whole(self) -> list[Moments]:
        """The moments of all rows, per class where there is a table."""
        return self.point.whole

    @property
    def moments(self) -> FoldMoments:
        """The moments of the criterion's own folds."""
        return self.point.moments

    def prefix(self, size: int) -> FixedCriterionPoint:
        """Return the point for the first ``size`` prototypes, from the same moments."""
        return FixedCriterionPoint(self.owner, self.point.prefix(size))

    def losses(self, C: FloatArray) -> Losses:
        """Return the criterion of a path of C."""
        if self.owner.name == "press":
            losses = self.point.losses(C)
            self.C_of = self.point.C_of
            return losses
        groups = self.point.groups
        if len(groups) == 1:
            return _one_fold(self._group(groups[0], np.asarray(C, dtype=np.float64)))
        assert self.objective.C_grid is not None
        grid = np.asarray(self.objective.C_grid, dtype=np.float64)
        self.C_of = np.empty(self.objective.rows.n_outputs)
        total = 0.0
        for columns in groups:  # each problem its own C
            values = self._group(columns, grid)
            best = int(np.argmin(values))
            self.C_of[columns] = grid[best]
            total += float(values[best]) * len(columns)
        return _one_fold(np.array([total / self.objective.rows.n_outputs]))

    def _group(self, columns: IntArray, C: FloatArray) -> FloatArray:
        """Return the criterion of problems that share their rows, shape (c,)."""
        moments = self.point.moments.training(None, columns)
        lam, QB, _ = primal_system(moments, self.point.map).spectrum()
        noise = self.owner.noise
        terms = fixed_terms(moments, lam, QB, C)
        values = terms.loss(self.owner.name, None if noise is None else noise[columns])
        return np.asarray(values.mean(axis=1))


def _one_fold(loss: FloatArray) -> Losses:
    loss = np.where(np.isfinite(loss), loss, np.inf)
    return Losses(loss[:, None], np.ones(1), loss)
