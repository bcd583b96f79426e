"""Generalised cross-validation, R(K) and evidence of the dual model as objectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.criteria.base import Losses
from lssvm.criteria.fold_targets import Group
from lssvm.criteria.noise import noise_variance
from lssvm.criteria.spectral import Spectrum
from lssvm.kernels import Kernel
from lssvm.solvers import Circulant, CirculantSolver, DualSystem, Lattice, eigen_state, lay_rows


@dataclass(frozen=True)
class SpectralObjective:
    """A criterion of a dual model that needs its spectrum and no folds.

    Parameters
    ----------
    name : {"gcv", "rk", "evidence"}
        See `lssvm.criteria.spectral`. "rk" falls as C grows, for any kernel: it compares
        kernels at one C.
    kernel : callable
        From gamma to a `Kernel`.
    system : DualSystem
        Rows, weights, budget, threads and bias; its kernel and C are not used.
    Y : array of shape (n, k)
        Targets of all problems.
    groups : sequence of Group
    solver : CirculantSolver or None, default=None
        Replace the kernel matrix by a circulant one.

    Notes
    -----
    `at` costs one eigendecomposition per group, or with a circulant matrix O(k n log n) and no
    kernel matrix; a value of C then costs O(n k). The loss is the mean over all outputs.

    R(K) is printed for the unknown true outputs and without a bias ([Ding2011]_, eqs. (27) to
    (29)). Here the observed outputs, less the bias where the model has one, stand in for the
    true ones, so that M carries the noise once more, and the variance of the noise is
    that of `noise_variance`.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.solvers import DualSystem
    >>> from lssvm.tuning import Group, SpectralObjective
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> system = DualSystem(RBF(), X, X, C=1.0)
    >>> objective = SpectralObjective("evidence", RBF, system, np.sin(X), [Group(np.array([0]))])
    >>> losses = objective.at(1.0).losses(np.array([1e-3, 1e3]))
    >>> bool(losses.mean[1] < losses.mean[0])
    True
    """

    name: str
    kernel: Callable[[float | None], Kernel]
    system: DualSystem
    Y: FloatArray
    groups: Sequence[Group]
    solver: CirculantSolver | None = None

    def at(self, gamma: float | None) -> SpectralPoint:
        """Decompose the kernel matrix of every group at ``gamma``."""
        kernel = self.kernel(gamma)
        whole = replace(self.system, kernel=kernel)
        spectra = []
        for i, group in enumerate(self.groups):
            Y = self._targets(group)
            if self.solver is not None:
                matrix = Circulant.of(kernel, self.lattices[i], self.solver.wrap)
                spectra.append(Spectrum.of_circulant(matrix, Y, whole.bias))
            else:
                system = whole if group.rows is None else whole.subset(group.rows)
                state = eigen_state(system)
                spectra.append(Spectrum.of_state(state, system.u[:, None] * Y))
        return SpectralPoint(self, spectra)

    @cached_property
    def lattices(self) -> list[Lattice]:
        """The lattice of each group; it does not depend on gamma."""
        assert self.solver is not None
        return [
            lay_rows(
                self.system.rows[self._rows(group)],
                levels=self.solver.levels,
                layout=self.solver.layout,
            )
            for group in self.groups
        ]

    @cached_property
    def noise(self) -> list[FloatArray | None]:
        """The variance of the noise of each group's outputs, where it is needed."""
        if self.name != "rk":
            return [None] * len(self.groups)
        return [
            noise_variance(self.system.rows[rows], self._targets(group), self._weights(rows))
            for group in self.groups
            for rows in [self._rows(group)]
        ]

    def _rows(self, group: Group) -> IntArray:
        return np.arange(self.system.n) if group.rows is None else group.rows

    def _weights(self, rows: IntArray) -> FloatArray | None:
        root = self.system.root_weight
        return None if root is None else root[rows] ** 2

    def _targets(self, group: Group) -> FloatArray:
        """Return a group's targets without their mean, which the bias takes up."""
        rows = self._rows(group)
        Y = np.asarray(self.Y[np.ix_(rows, group.columns)], dtype=np.float64)
        return Y - np.average(Y, axis=0, weights=self._weights(rows)) if self.system.bias else Y


@dataclass(frozen=True)
class SpectralPoint:
    """The spectra of a model at one kernel parameter, for every C."""

    objective: SpectralObjective
    spectra: list[Spectrum] = field(repr=False)

    def losses(self, C: FloatArray) -> Losses:
        """Return the criterion of a path of C (c,), one fold."""
        objective = self.objective
        shares = np.array([len(group.columns) for group in objective.groups], dtype=float)
        each = [
            spectrum.loss(objective.name, C, noise)
            for spectrum, noise in zip(self.spectra, objective.noise, strict=True)
        ]
        loss = np.stack(each, 1) @ (shares / shares.sum())
        loss = np.where(np.isfinite(loss), loss, np.inf)
        return Losses(loss[:, None], np.ones(1), loss)
