"""One eigendecomposition, then every value of C for O(n^2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from lssvm._core.arrays import FloatArray
from lssvm.solvers.base import DualSystem


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
        """Return d = 1/(lam + 1/C), shape (n, c); zero where the system is not definite."""
        shifted = self.lam[:, None] + 1.0 / np.asarray(C, dtype=float)[None, :]
        return np.where(shifted > 0, 1.0 / np.where(shifted > 0, shifted, 1.0), 0.0)

    def bordered(self, C: FloatArray, RY: FloatArray) -> BorderedPath:
        """Solve the bordered system for all ``C`` (c,) and all scaled targets ``RY`` (n, k).

        Cost: 2 n^2 c (k + 1) operations.
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
    definite: NDArray[np.bool_]


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
