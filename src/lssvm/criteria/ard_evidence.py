"""The evidence of the dual and of the fixed-size model with one gamma per feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from lssvm._core.arrays import FloatArray
from lssvm.criteria.ard import KernelOf, feature_sums, kernel_and_slope

_TINY = np.finfo(np.float64).tiny
_BLOCK = 2048


def _failed(d: int) -> tuple[float, FloatArray]:
    """Return what stands for a system that is not positive definite to rounding."""
    return -np.inf, np.full(d + 1, np.nan)


def _factor(H: FloatArray) -> FloatArray | None:
    try:
        return np.asarray(cholesky(H, lower=True, check_finite=False))
    except np.linalg.LinAlgError:
        return None


@dataclass(frozen=True, eq=False)
class DualRelevance:
    r"""The log evidence of a dual model as a function of log gamma (d,) and log C.

    Parameters
    ----------
    kernel : callable
        From gamma (d,) to an `lssvm.kernels.RBF` or `lssvm.kernels.Matern`.
    X : array of shape (n, d)
    Y : array of shape (n, k)
        Outputs are independent and share the parameters; their evidences add.
    weight : array of shape (n,) or None
        A weight of 2 is the row twice.
    bias : bool, default=True

    Notes
    -----
    As `lssvm.uncertainty.log_evidence` without weights, up to a constant: with N the sum of the
    weights, :math:`\nu = N - 1` (N without a bias), H, G and u of `lssvm.solvers.DualSystem`,

    .. math::

        L = -\tfrac12 \sum_j \nu \log(y_j^T G y_j) - \tfrac k2 \left[ \log \det H
        - (N - n) \log C + \log (u^T H^{-1} u) \right], \qquad
        \frac{\partial L}{\partial H}
        = \tfrac12 \sum_j \nu \frac{\beta_j \beta_j^T}{y_j^T G y_j} - \tfrac k2 G.

    A weight there is a smaller noise; here it is a number of observations, so that it equals the
    row as often: :math:`\log \det` of the matrix with all repetitions is
    :math:`\log \det H - (N - n) \log C`.

    n^3 + 4 n^2 d operations and 4 n^2 numbers per evaluation.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.tuning import DualRelevance
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> value, slope = DualRelevance(RBF, X, np.sin(X[:, :1]))(np.zeros(2), np.log(100.0))
    >>> bool(slope[1] < 0), slope.shape  # the second feature is not needed
    (True, (3,))
    """

    kernel: KernelOf
    X: FloatArray
    Y: FloatArray
    weight: FloatArray | None = None
    bias: bool = True

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.X.shape[1])

    def __call__(self, log_gamma: FloatArray, log_C: float) -> tuple[float, FloatArray]:
        """Return the log evidence and its derivatives by (log gamma, log C), shape (d + 1,)."""
        n, k = self.Y.shape
        gamma = np.exp(log_gamma)
        K, slope = kernel_and_slope(self.kernel(gamma), self.X, self.X)
        s = np.ones(n) if self.weight is None else np.asarray(self.weight, dtype=np.float64)
        u = np.sqrt(s)
        H = K * u[:, None] * u[None, :]
        H[np.diag_indices(n)] += np.exp(-log_C)
        L = _factor(H)
        if L is None:
            return _failed(len(gamma))
        G = cho_solve((L, True), np.eye(n), check_finite=False)
        log_det, freedom = 2.0 * float(np.log(np.diagonal(L)).sum()), float(s.sum())
        if self.bias:
            eta = G @ u
            border = float(u @ eta)
            G -= np.outer(eta, eta / border)
            log_det, freedom = log_det + np.log(border), freedom - 1.0
        RY = u[:, None] * self.Y
        beta = G @ RY
        squares = np.einsum("nk,nk->k", RY, beta)
        spare = float(s.sum()) - n  # repetitions beyond the first
        value = -0.5 * freedom * float(np.log(np.maximum(squares, _TINY)).sum())
        value -= 0.5 * k * (log_det - spare * log_C)
        scaled = beta * np.sqrt(np.where(squares > _TINY, freedom / np.maximum(squares, _TINY), 0))
        inner = 0.5 * (scaled @ scaled.T - k * G)  # derivative by H
        by_C = -np.exp(-log_C) * float(np.trace(inner)) + 0.5 * k * spare
        W = inner * slope * u[:, None] * u[None, :]
        return value, np.append(gamma * feature_sums(W, self.X, self.X), by_C)


@dataclass(frozen=True, eq=False)
class FixedRelevance:
    r"""The log evidence of a fixed-size model as a function of log gamma (d,) and log C.

    Parameters
    ----------
    kernel : callable
        From gamma (d,) to an `lssvm.kernels.RBF` or `lssvm.kernels.Matern`.
    X : array of shape (n, d)
    Y : array of shape (n, k)
    Z : array of shape (m, d)
        Prototypes.
    weight : array of shape (n,) or None

    Notes
    -----
    The data are seen through the centred moments :math:`G = \sum_i s_i \tilde k_i
    \tilde k_i^T` and :math:`c = \sum_i s_i \tilde k_i \tilde y_i^T`. With
    :math:`Q = G + \tilde K_{ZZ} / C`, :math:`\alpha = Q^{-1} c`, N the sum of the weights and
    :math:`q_j = C (\tilde y_j^T \tilde y_j - c_j^T \alpha_j)`

    .. math::

        L = -\tfrac12 \sum_j \nu \log q_j - \tfrac k2 \left[ \log \det Q
        - \log \det \tilde K_{ZZ} - (\nu - m) \log C \right], \qquad \nu = N - 1,

        \bar Q = -\tfrac12 \sum_j \tfrac{\nu C}{q_j} \alpha_j \alpha_j^T - \tfrac k2 Q^{-1},
        \qquad \bar K_{ZZ} = \bar Q / C + \tfrac k2 \tilde K_{ZZ}^{-1},

        \bar k_i = s_i \Big( 2 \bar Q \tilde k_i + \sum_j \tfrac{\nu C}{q_j} \alpha_j
        \tilde y_{ij} \Big),

    bars for derivatives of L: the first pass over the rows gives the value, the second the
    gradient. :math:`\tilde K_{ZZ}` has the cut-off of `lssvm.moments.nystrom_map` added to its
    diagonal instead of directions dropped, so that L is smooth. With all rows as prototypes it is
    `DualRelevance` up to that and a constant.

    2 n m (m + 3 d) + 5 m^3 operations per evaluation, in blocks of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.tuning import FixedRelevance
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> value, slope = FixedRelevance(RBF, X, np.sin(X[:, :1]), X[:20])(np.zeros(2), np.log(10.0))
    >>> bool(slope[1] < 0), slope.shape  # the second feature is not needed
    (True, (3,))
    """

    kernel: KernelOf
    X: NDArray[np.float64]
    Y: FloatArray
    Z: FloatArray
    weight: FloatArray | None = None

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.X.shape[1])

    def __call__(self, log_gamma: FloatArray, log_C: float) -> tuple[float, FloatArray]:
        """Return the log evidence and its derivatives by (log gamma, log C), shape (d + 1,)."""
        gamma, C = np.exp(log_gamma), float(np.exp(log_C))
        kernel = self.kernel(gamma)
        m, k = len(self.Z), self.Y.shape[1]
        s = np.ones(len(self.X)) if self.weight is None else self.weight
        freedom = float(s.sum()) - 1.0
        Y = self.Y - s @ self.Y / s.sum()
        KZ, slope_Z = kernel_and_slope(kernel, self.Z, self.Z)
        jittered = KZ + np.sqrt(0.1 * np.finfo(np.float64).eps * m) * np.eye(m)
        mean, G, c = self._moments(kernel, s, Y)
        L, root = _factor(jittered), _factor(G + jittered / C)
        if L is None or root is None:
            return _failed(len(gamma))
        alpha = cho_solve((root, True), c, check_finite=False)
        squares = C * (s @ Y**2 - np.einsum("mk,mk->k", c, alpha))
        log_det = 2.0 * float(np.log(np.diagonal(root)).sum() - np.log(np.diagonal(L)).sum())
        value = -0.5 * freedom * float(np.log(np.maximum(squares, _TINY)).sum())
        value -= 0.5 * k * (log_det - (freedom - m) * log_C)
        factor = np.where(squares > _TINY, freedom * C / np.maximum(squares, _TINY), 0.0)
        half = solve_triangular(root, np.eye(m), lower=True, check_finite=False)
        by_Q = -0.5 * ((alpha * factor) @ alpha.T + k * half.T @ half)
        by_C = -float(np.einsum("ij,ij->", by_Q, jittered)) / C - 0.5 * k * m
        inverse = cho_solve((L, True), np.eye(m), check_finite=False)
        W = (by_Q / C + 0.5 * k * inverse) * slope_Z
        by_gamma = feature_sums(W, self.Z, self.Z)
        for start in range(0, len(self.X), _BLOCK):
            part = slice(start, start + _BLOCK)
            K, slope = kernel_and_slope(kernel, self.X[part], self.Z)
            V = 2.0 * (K - mean) @ by_Q + Y[part] @ (alpha * factor).T
            by_gamma += feature_sums(V * s[part, None] * slope, self.X[part], self.Z)
        return value, np.append(gamma * by_gamma, by_C)

    def _moments(
        self, kernel: object, s: FloatArray, Y: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the mean of K(x, Z) and the centred moments of it and of the targets."""
        assert callable(kernel)
        shift = np.asarray(kernel(self.X[:1], self.Z), dtype=np.float64)[0]
        m = len(self.Z)
        G, c, g = np.zeros((m, m)), np.zeros((m, Y.shape[1])), np.zeros(m)
        for start in range(0, len(self.X), _BLOCK):
            part = slice(start, start + _BLOCK)
            K = np.asarray(kernel(self.X[part], self.Z), dtype=np.float64) - shift
            SK = K * s[part, None]
            G += SK.T @ K
            c += SK.T @ Y[part]
            g += SK.sum(axis=0)
        total = float(s.sum())
        return g / total + shift, G - np.outer(g, g / total), c
