r"""Criteria that need the spectrum of the kernel matrix and no folds.

With the weights' roots R, H = R K R + I/C and the lower right block G of the inverse of the
bordered matrix (H^-1 without a bias), the fitted model leaves the scaled residuals
:math:`\beta / C = G R y / C`, so that I - S = G/C for the matrix S from targets to fitted
values. Let W be the sum of the weights. Then

- the effective number of parameters is tr S = n - tr G / C, and with the mean squared residual
  :math:`r = |\beta|^2 / C^2 / W` Akaike's criterion is log r + 2 tr S / W, Schwarz's (BIC)
  log r + log(W) tr S / W, and Mallows' Cp :math:`r + 2 \delta^2 tr S / W`: the complexity
  criteria that section 6 of [DeBrabanter2010]_ names;
- generalised cross-validation is :math:`W |\beta|^2 / C^2 / (W - n + tr G / C)^2`;
- R(K) of eq. (29) of [Ding2011]_ is
  :math:`(y^T R \beta / C + \delta^2 (W - n + tr G / C)) / W`;
- the log evidence of the Gaussian process y = f + b + e, f of covariance :math:`\sigma^2 K`, e of
  variance :math:`\sigma^2 / C`, b with a flat prior, at the best :math:`\sigma^2`.

A weight of 2 counts as the row twice in all of them.

Then criteria by their names in ``scoring``, and those of the fixed-size model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import fft
from scipy.spatial import cKDTree

from lssvm._core.arrays import Array, BoolArray, FloatArray, IntArray, is_sparse, pick, to_numpy
from lssvm._core.errors import InvalidInputError
from lssvm.data.folds import Folds, assign_folds
from lssvm.kernels import Kernel
from lssvm.solvers import CirculantSolver, DualSystem
from lssvm.solvers.circulant import Circulant, Lattice, lay_rows
from lssvm.solvers.exact import EigenState, eigen_state
from lssvm.solvers.moments import Moments
from lssvm.solvers.primal import primal_system
from lssvm.tasks import Loss, SquaredError, Targets
from lssvm.tuning.fixed_size import FixedSizeObjective, FixedSizePoint
from lssvm.tuning.objective import SPECTRAL, Group, Losses


@dataclass(frozen=True)
class Spectrum:
    """A kernel matrix in coordinates in which it is diagonal.

    Attributes
    ----------
    lam : array of shape (n,)
        Eigenvalues of R K R.
    border : array of shape (n,)
        R 1 in the eigenvectors' coordinates.
    targets : array of shape (n, k)
        R Y in the eigenvectors' coordinates.
    mass : float
        Sum of the weights.
    bias : bool
        Whether the model has an intercept.
    """

    lam: FloatArray
    border: FloatArray
    targets: FloatArray
    mass: float
    bias: bool = True

    @classmethod
    def of_state(cls, state: EigenState, RY: FloatArray) -> Spectrum:
        """Take an eigendecomposition and the scaled targets (n, k)."""
        return cls(state.lam, state.Qu, state.Q.T @ RY, float(state.u @ state.u), state.bias)

    @classmethod
    def of_circulant(cls, matrix: Circulant, Y: FloatArray, bias: bool) -> Spectrum:
        """Take a circulant matrix and the targets (n, k) of its rows.

        Its real eigenvectors are cosines plus sines (those of the Hartley transform): O(k N log N).
        """
        lattice = matrix.lattice
        places = lattice.spread(np.column_stack([np.ones(len(Y)), Y]).astype(np.float64))
        transformed = fft.fftn(places, axes=lattice.axes, norm="ortho")
        values = (transformed.real - transformed.imag).reshape(len(lattice.places), -1)
        mass = float(len(lattice.places))
        return cls(matrix.eigenvalues.ravel(), values[:, 0], values[:, 1:], mass, bias)

    def definite(self, C: FloatArray) -> BoolArray:
        """Say for each C (c,) whether the regularised matrix is positive definite."""
        return np.asarray(np.min(self.lam) + 1.0 / np.asarray(C, dtype=float) > 0)

    def loss(self, name: str, C: FloatArray, noise: FloatArray | None = None) -> FloatArray:
        """Return a criterion, the mean over the outputs, for all C (c,); lower is better."""
        C = np.asarray(C, dtype=np.float64)
        definite = self.definite(C)
        out = np.full(len(C), np.inf)
        if np.any(definite):
            terms = Terms.of(self, C[definite])
            out[definite] = terms.loss(name, noise).mean(axis=1)
        return out


@dataclass(frozen=True)
class Terms:
    """What the criteria are made of, for c values of C and k outputs."""

    n: int
    mass: float
    bias: bool
    C: FloatArray  # (c, 1)
    squares: FloatArray  # |beta|^2, (c, k)
    fit: FloatArray  # y^T R beta, (c, k)
    trace: FloatArray  # tr G, (c, 1)
    log_det: FloatArray  # log |H|, (c, 1)
    s: FloatArray  # u^T H^-1 u, (c, 1)

    @classmethod
    def of(cls, spectrum: Spectrum, C: FloatArray) -> Terms:
        """Sum over the spectrum for all C (c,) of a definite matrix."""
        shifted = spectrum.lam[:, None] + 1.0 / C  # (n, c)
        d = 1.0 / shifted
        u, T = spectrum.border, spectrum.targets
        trace, s = d.sum(axis=0), np.ones_like(C)
        b = np.zeros((len(C), T.shape[1]))
        if spectrum.bias:
            s = u**2 @ d
            b = (d.T @ (u[:, None] * T)) / s[:, None]
            trace = trace - (u**2 @ d**2) / s
        # in place of beta = d (T - u b) of shape (n, c, k): its sums of squares and products
        squares = d.T**2 @ T**2 - 2 * b * (d.T**2 @ (u[:, None] * T))
        squares += b**2 * (d.T**2 @ u**2)[:, None]
        fit = d.T @ T**2 - b * (d.T @ (u[:, None] * T))
        return cls(
            len(spectrum.lam),
            spectrum.mass,
            spectrum.bias,
            C[:, None],
            np.maximum(squares, 0.0),
            np.maximum(fit, 0.0),
            trace[:, None],
            np.log(shifted).sum(axis=0)[:, None],
            s[:, None],
        )

    def loss(self, name: str, noise: FloatArray | None) -> FloatArray:
        """Return the criterion of every C and output, shape (c, k)."""
        free = self.mass - self.n + self.trace / self.C  # tr(I - S), (c, 1)
        if name == "gcv":
            return np.asarray(self.mass * self.squares / self.C**2 / free**2)
        used, mean = 1.0 - free / self.mass, self.squares / self.C**2 / self.mass  # tr S / W
        if name in ("aic", "bic"):
            price = 2.0 if name == "aic" else np.log(self.mass)
            return np.asarray(np.log(np.maximum(mean, np.finfo(float).tiny)) + price * used)
        if name in NOISY:
            if noise is None:
                raise InvalidInputError(f"{name!r} needs the variance of the noise: give noise.")
            if name == "cp":
                return np.asarray(mean + 2.0 * noise * used)
            # [Ding2011, eq. (29)]
            return np.asarray((self.fit / self.C + noise * free) / self.mass)
        if name == "evidence":
            return -self._log_evidence() / self.mass
        raise InvalidInputError(f"criterion={name!r} is not known: choose one of {SPECTRAL}.")

    def _log_evidence(self) -> FloatArray:
        """Return the log density of the targets at the best scale, shape (c, k)."""
        free = self.mass - 1.0 if self.bias else self.mass
        tiny = np.finfo(np.float64).tiny
        scale = np.maximum(self.fit / free, tiny)  # of the kernel, where the density is largest
        value = -0.5 * free * (np.log(2.0 * np.pi * scale) + 1.0) - 0.5 * self.log_det
        value += 0.5 * (self.mass - self.n) * np.log(self.C)
        return np.asarray(value - 0.5 * np.log(self.s) if self.bias else value)


NOISY = ("cp", "rk")
"""The criteria that need the variance of the noise."""
_FLOOR = 1e-12  # of the variance of the targets


def noise_variance(X: Array, Y: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Estimate the variance of the noise of each output, without a model.

    Half the mean squared difference between the target of a row and that of its nearest neighbour:
    where the function changes little between neighbours this is the variance of the noise. In many
    dimensions neighbours are far and it is too large; it is at most twice the
    variance of the targets.
    """
    if is_sparse(X):
        raise InvalidInputError(
            "scoring='rk' or 'cp' estimates the noise from nearest neighbours, which needs dense "
            "rows, but X is sparse: convert it with X.toarray(), or use another scoring."
        )
    rows, group = np.unique(to_numpy(X), axis=0, return_inverse=True)
    s = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
    mass = np.bincount(group.ravel(), s)
    mean = np.stack([np.bincount(group.ravel(), s * y) for y in Y.T], 1) / mass[:, None]
    within = s @ (Y - mean[group.ravel()]) ** 2  # what equal rows differ by
    spread = s @ (Y - s @ Y / s.sum()) ** 2 / s.sum()
    total = mass.sum()
    if len(rows) == 1:
        return np.asarray(np.maximum(within / total, _FLOOR * spread))
    near = np.asarray(cKDTree(rows).query(rows, k=2)[1])
    other = np.where(near[:, 0] == np.arange(len(rows)), near[:, 1], near[:, 0])
    # A mean over m rows has the variance 1/m: differences are weighted by their precision.
    information = 1.0 / (1.0 / mass + 1.0 / mass[other])
    differences = information @ (mean - mean[other]) ** 2 / len(rows)
    repeated = max(total - len(rows), 0.0)
    variance = (within + len(rows) * differences) / (repeated + len(rows))
    return np.asarray(np.maximum(variance, _FLOOR * spread))


@dataclass(frozen=True)
class SpectralObjective:
    """A criterion of a dual model that needs its spectrum and no folds.

    `at` costs one eigendecomposition per group, or with a circulant matrix O(k n log n) and no
    kernel matrix; a value of C then costs O(n k). The loss is the mean over all outputs.

    R(K) is printed for the unknown true outputs and without a bias ([Ding2011], eqs. (27) to
    (29)). Here the observed outputs, less the bias where the model has one, stand in for the
    true ones, so that M carries the noise once more, and the variance of the noise is
    that of `noise_variance`.
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
        solver, rows = self.solver, [self._rows(group) for group in self.groups]
        X = [self.system.rows[part] for part in rows]
        return [lay_rows(part, levels=solver.levels, layout=solver.layout) for part in X]

    @cached_property
    def noise(self) -> list[FloatArray | None]:
        """The variance of the noise of each group's outputs, where it is needed."""
        if self.name not in NOISY:
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
        return Losses.single(np.stack(each, 1) @ (shares / shares.sum()))


@dataclass(frozen=True)
class CodedSquaredError:
    """Mean squared error of problems that are trained on some of the classes.

    A problem is scored on the rows that it has a target for: those where that is not zero.
    """

    def __call__(self, outputs: FloatArray, targets: Targets) -> FloatArray:
        """Return the mean squared error of each candidate, shape (c,)."""
        mass = (targets.Y != 0).astype(float)
        if targets.weight is not None:
            mass *= targets.weight[:, None]
        errors = ((outputs - targets.Y[None]) ** 2 * mass).sum(axis=1)  # (c, k)
        total = mass.sum(axis=0)
        return np.asarray((errors[:, total > 0] / total[total > 0]).mean(axis=1))


def press_folds(system: DualSystem, Y: FloatArray, positions: bool) -> Folds:
    """Return the folds of "press": every row alone, equal rows together.

    ``positions`` means that rows have no content of their own, as with a precomputed kernel.
    """
    content = np.arange(1.0, system.n + 1.0)[:, None] if positions else system.rows
    return assign_folds(content, None, targets=Y)


def press_loss(groups: Sequence[Group]) -> Loss:
    """Return the loss of "press"."""
    everyone = all(group.rows is None for group in groups)
    return SquaredError() if everyone else CodedSquaredError()


def fixed_terms(moments: Moments, lam: FloatArray, QB: FloatArray, C: FloatArray) -> Terms:
    r"""Return what the criteria are made of, from the spectrum of the centred normal equations.

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
    """A criterion of a fixed-size model that needs no folds of the user's."""

    name: str
    objective: FixedSizeObjective

    @cached_property
    def inner(self) -> FixedSizeObjective:
        """What gives the moments: of all rows, or with single rows left out."""
        rows = self.objective.rows.sample
        folds = (
            assign_folds(rows.X, None, targets=np.asarray(rows.Y))
            if self.name == "press"
            else Folds([])
        )
        return replace(self.objective, folds=folds, loss=SquaredError())

    @cached_property
    def noise(self) -> FloatArray | None:
        """Variance of the noise of every output, where it is needed."""
        if self.name not in NOISY:
            return None
        sample = self.objective.rows.sample
        X, Y, weight = sample.X, np.asarray(sample.Y), sample.targets.weight
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
