"""Direct solution by an in-place Cholesky factorisation.

One eigendecomposition, then every value of C for O(n^2).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, eigh, lapack

from lssvm._core.arrays import BoolArray, FloatArray
from lssvm._core.errors import NotPositiveDefiniteError, NumericalWarning
from lssvm._core.lapack import factorise_triangle
from lssvm.solvers.base import (
    DualSystem,
    OnIteration,
    Solution,
    Status,
    eliminate_bias,
    relative_residual,
)

_POOR = 1e-2  # relative residual
_FEW = 4  # columns up to which products with vectors are faster: a symmetric one copies the matrix


@dataclass(frozen=True)
class CholeskyState:
    """One array, Fortran order: the factor below the diagonal, H above it, both diagonals."""

    system: DualSystem
    array: FloatArray
    diagonal: FloatArray
    status: Status

    def solve(self, B: FloatArray) -> FloatArray:
        """Return H^-1 B for B (n, k)."""
        potrs = lapack.spotrs if self.array.dtype == np.float32 else lapack.dpotrs
        result, _ = potrs(self.array, B, lower=1)
        return np.asarray(result)

    def product(self, B: FloatArray) -> FloatArray:
        """Return H B from the triangle the factorisation left alone, B (n, k)."""
        single = self.array.dtype == np.float32
        factor_diagonal = np.diagonal(self.array).copy()
        np.fill_diagonal(self.array, self.diagonal)
        if B.shape[1] <= _FEW:
            symv = blas.ssymv if single else blas.dsymv
            result = np.empty_like(B, order="F")
            for j in range(B.shape[1]):
                result[:, j] = symv(1.0, self.array, B[:, j], lower=0)
        else:
            symm = blas.ssymm if single else blas.dsymm
            result = np.asarray(symm(1.0, self.array, B, lower=0))
        np.fill_diagonal(self.array, factor_diagonal)
        return result


@dataclass(frozen=True)
class Cholesky:
    """Cholesky factorisation of H = R K R + I/C, in place, one kernel matrix in memory.

    Notes
    -----
    The two systems of section 3.4.1 of [Suykens2002]_ (here H eta = u and H nu = R Y, all
    columns at once) are solved directly and combined as in eq. (3.25). LAPACK factorises one
    triangle in place; the other one keeps H, so that the residual is that of the system, not of
    its factor, and one step of refinement is free of a second matrix.

    Time n^3/3 + n^2 (d + k), memory n^2 numbers. A factorisation that breaks down is repeated
    with a growing multiple of the identity and a `NumericalWarning`; a matrix that stays
    indefinite raises `NotPositiveDefiniteError`.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.solvers import Cholesky, DualSystem
    >>> X, Y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]])
    >>> solver = Cholesky()
    >>> solution = solver.solve(solver.factorise(DualSystem(Linear(), X, X, C=1e6)), Y)
    >>> slope = X.T @ solution.alpha
    >>> slope.round(3), solution.intercept.round(3)
    (array([[2.]]), array([1.]))
    """

    def factorise(self, system: DualSystem) -> CholeskyState:
        """Factorise; see the class."""
        jitter, eps = 0.0, float(np.finfo(system.dtype).eps)
        for attempt in range(4):
            array = system.gram().T  # symmetric: the same in the order that LAPACK works in
            scale = float(np.max(np.abs(np.diagonal(array))))
            if attempt or 1.0 / system.C < 10.0 * eps * scale:  # lost when added to the diagonal
                jitter = max(100.0 * jitter, 10.0 * system.n * eps * scale)
            diagonal = np.diagonal(array) + (1.0 / system.C + jitter)
            np.fill_diagonal(array, diagonal)
            if _factorise(array):
                if not jitter:
                    return CholeskyState(system, array, diagonal, Status.SOLVED)
                text = f"{Status.JITTERED.value} (Added: {jitter:.1e}.)"
                warnings.warn(text, NumericalWarning, stacklevel=3)
                return CholeskyState(system, array, diagonal, Status.JITTERED)
        raise NotPositiveDefiniteError(
            f"The regularised kernel matrix is not positive definite, even with {jitter:.1e} added "
            "to its diagonal: the kernel has negative eigenvalues larger than 1/C. Use a positive "
            "definite kernel, or a smaller C."
        )

    def solve(
        self, state: CholeskyState, Y: FloatArray, *, on_iteration: OnIteration = None
    ) -> Solution:
        """Solve for the targets ``Y`` (n, k); nothing iterates, so nothing is reported."""
        u, bias = state.system.u, state.system.bias
        RY = u[:, None] * Y
        right = np.asfortranarray(np.column_stack([u, RY]))
        solved = state.solve(right)
        solved += state.solve(right - state.product(solved))  # one step of refinement
        beta, b = eliminate_bias(solved[:, 0], solved[:, 1:], u, bias)
        residual = relative_residual(state.product(np.asfortranarray(beta)), beta, b, u, RY, bias)
        if residual > _POOR:
            warnings.warn(
                f"The solution has a relative residual of {residual:.1e}: the kernel matrix is too "
                "ill-conditioned for this C. Scale the features, or lower C.",
                NumericalWarning,
                stacklevel=3,
            )
        return Solution(u[:, None] * beta, b, state.status, residual)


def _factorise(array: FloatArray) -> bool:
    """Put the Cholesky factor into the lower triangle; say whether there is one."""
    if array.dtype == np.float64:
        return factorise_triangle(array, lower=True)
    return int(lapack.spotrf(array, lower=1, overwrite_a=1, clean=0)[1]) == 0


@dataclass(frozen=True)
class EigenState:
    r"""The spectrum of R K R = Q diag(lam) Q^T, from which every C follows.

    Attributes
    ----------
    lam : array of shape (n,)
        Eigenvalues.
    Q : array of shape (n, n)
        Eigenvectors, in columns.
    u : array of shape (n,)
        The border R 1.
    Qu : array of shape (n,)
        Q^T u.
    bias : bool
        Without a bias G is H^-1 itself.

    Notes
    -----
    For a given C let d = 1/(lam + 1/C). Then H^-1 = Q diag(d) Q^T and the lower right block of
    the inverse of the bordered matrix is G = H^-1 - eta eta^T / s with eta = H^-1 u, s = u^T eta.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.solvers import DualSystem, eigen_state
    >>> state = eigen_state(DualSystem(Linear(), np.eye(2), np.eye(2), C=1.0))
    >>> state.bordered(np.array([0.5, 2.0]), np.array([[1.0], [-1.0]])).beta.shape
    (2, 2, 1)
    """

    lam: FloatArray
    Q: FloatArray
    u: FloatArray
    Qu: FloatArray
    bias: bool = True

    def inverse_spectrum(self, C: FloatArray) -> FloatArray:
        """Return d = 1/(lam + 1/C), shape (n, c); zero where the system is not definite.

        Parameters
        ----------
        C : array of shape (c,)
            Regularisation, one value for each candidate.
        """
        shifted = self.lam[:, None] + 1.0 / np.asarray(C, dtype=float)[None, :]
        return np.where(shifted > 0, 1.0 / np.where(shifted > 0, shifted, 1.0), 0.0)

    def bordered(self, C: FloatArray, RY: FloatArray) -> BorderedPath:
        """Solve the bordered system for all ``C`` (c,) and all scaled targets ``RY`` (n, k).

        Cost: 2 n^2 c (k + 1) operations.

        Parameters
        ----------
        C : array of shape (c,)
            Regularisation, one value for each candidate.
        RY : array of shape (n, k)
            Targets times the roots of the weights.
        """
        d = self.inverse_spectrum(C)  # (n, c)
        definite = np.all(d > 0, axis=0)
        d = np.where(definite, d, 1.0)  # any finite stand-in: the caller discards these
        n, c, k = len(self.lam), d.shape[1], RY.shape[1]
        QY = self.Q.T @ RY  # (n, k)
        spectral = np.concatenate(
            [(d * self.Qu[:, None])[:, :, None], d[:, :, None] * QY[:, None]], 2
        )
        solved = (self.Q @ spectral.reshape(n, -1)).reshape(n, c, k + 1)
        eta, nu = solved[:, :, 0], solved[:, :, 1:]
        if not self.bias:
            return BorderedPath(d, np.zeros_like(eta), np.ones(c), nu, np.zeros((c, k)), definite)
        s = self.u @ eta  # (c,)
        b = np.einsum("n,nck->ck", self.u, nu) / s[:, None]  # [Suykens2002, eq. (3.25)]
        beta = nu - eta[:, :, None] * b[None]
        return BorderedPath(d, eta, s, beta, b, definite)


@dataclass(frozen=True)
class BorderedPath:
    """Solutions of the bordered system along a path of C.

    Attributes
    ----------
    d : array of shape (n, c)
    eta : array of shape (n, c)
    s : array of shape (c,)
    beta : array of shape (n, c, k)
    b : array of shape (c, k)
    definite : bool array of shape (c,)
        Where False, a negative eigenvalue outweighs 1/C and the rest means nothing.
    """

    d: FloatArray
    eta: FloatArray
    s: FloatArray
    beta: FloatArray
    b: FloatArray
    definite: BoolArray


def eigen_state(system: DualSystem) -> EigenState:
    """Decompose R K R of a system (its C is not used).

    Parameters
    ----------
    system : DualSystem
        Rows, kernel, weights, memory budget and threads.

    Returns
    -------
    EigenState

    Notes
    -----
    About 9 n^3 operations (LAPACK's divide and conquer), three matrices of n^2 numbers at the
    peak, one kept.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.solvers import DualSystem, eigen_state
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> eigen_state(DualSystem(Linear(), X, X, C=1.0)).lam.round(6)[-1]
    np.float64(5.0)
    """
    K = system.gram(
        copies=3,
        what="Tuning or pruning by the eigendecomposition of the kernel matrix",
        advice="Give numbers for C and gamma and no reduction, or use a fixed-size model "
        "(FixedSizeLSSVC, FixedSizeLSSVR), or raise memory_budget.",
    )
    lam, Q = eigh(K.T, overwrite_a=True, check_finite=False, driver="evd")
    floor = len(lam) * float(np.finfo(lam.dtype).eps) * float(np.max(np.abs(lam), initial=0.0))
    lam[np.abs(lam) <= floor] = 0.0
    u = system.u
    return EigenState(lam, Q, u, Q.T @ u, system.bias)
