r"""Criteria that need the spectrum of the kernel matrix and no folds.

With the weights' roots R, H = R K R + I/C and the lower right block G of the inverse of the
bordered matrix (H^-1 without a bias), the fitted model leaves the scaled residuals
:math:`\beta / C = G R y / C`, so that I - S = G/C for the matrix S from targets to fitted
values. Let W be the sum of the weights. Then

- generalised cross-validation is :math:`W |\beta|^2 / C^2 / (W - n + tr G / C)^2`;
- R(K) of eq. (29) of [Ding2011]_ is
  :math:`(y^T R \beta / C + \delta^2 (W - n + tr G / C)) / W`;
- the log evidence of the Gaussian process y = f + b + e, f of covariance :math:`\sigma^2 K`, e of
  variance :math:`\sigma^2 / C`, b with a flat prior, at the best :math:`\sigma^2`.

A weight of 2 counts as the row twice in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.solvers import Circulant, EigenState

SPECTRAL = ("evidence", "gcv", "rk")
"""The criteria that come from the spectrum alone."""


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

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.solvers import DualSystem, eigen_state
    >>> from lssvm.tuning import Spectrum
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> state = eigen_state(DualSystem(RBF(1.0), X, X, C=1.0))
    >>> gcv = Spectrum.of_state(state, np.sin(X)).loss("gcv", np.array([1e-2, 1e2]))
    >>> bool(gcv[1] < gcv[0])
    True
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

    def definite(self, C: FloatArray) -> NDArray[np.bool_]:
        """Say for each C (c,) whether the regularised matrix is positive definite."""
        return np.asarray(np.min(self.lam) + 1.0 / np.asarray(C, dtype=float) > 0)

    def loss(self, name: str, C: FloatArray, noise: FloatArray | None = None) -> FloatArray:
        """Return a criterion, the mean over the outputs, for all C (c,); lower is better.

        Parameters
        ----------
        name : {"gcv", "rk", "evidence"}
            "evidence" is minus the log evidence per row.
        C : array of shape (c,)
        noise : array of shape (k,) or None, default=None
            Variance of the noise of each output; needed for "rk".

        Returns
        -------
        array of shape (c,)
            Infinity where the regularised matrix is not positive definite.

        Notes
        -----
        O(n c k) operations.
        """
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
        if name == "rk":
            if noise is None:
                raise InvalidInputError("R(K) needs the variance of the noise: give noise.")
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
