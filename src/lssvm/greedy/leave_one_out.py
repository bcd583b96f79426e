"""Leave-one-out predictions on a selected basis, for a whole list of values of C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.linalg import eigh, solve_triangular

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.greedy.path import GreedyPath, cholesky, support_gram
from lssvm.kernels import evaluate_expansion
from lssvm.solvers import DualSystem


@dataclass(frozen=True, eq=False)
class Observations:
    """Single observations of rows that were merged because they are equal.

    Attributes
    ----------
    member : int array of shape (t,)
        The merged row of each observation.
    y : array of shape (t,)
        Its own target.
    share : array of shape (t,)
        Its part of the weight of the merged row.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.greedy import Observations
    >>> Observations(np.array([0, 0]), np.array([1.0, -1.0]), np.full(2, 0.5)).share
    array([0.5, 0.5])
    """

    member: IntArray
    y: FloatArray
    share: FloatArray

    def left_out(self, fitted: FloatArray, leverage: FloatArray) -> FloatArray:
        """Return the outputs (c, t) without each observation, from those of the rows (c, n).

        Parameters
        ----------
        fitted : array of shape (c, n)
            Outputs of c models for the merged rows.
        leverage : array of shape (c, n)
            Change of the output of each row with its own target.
        """
        fitted, leverage = fitted[:, self.member], leverage[:, self.member]
        left = np.maximum(1.0 - self.share * leverage, np.finfo(float).eps)
        return np.asarray(self.y - (self.y - fitted) / left)


def greedy_leave_one_out(
    system: DualSystem,
    y: FloatArray,
    path: GreedyPath,
    Cs: FloatArray,
    criterion: str = "fsals",
    observations: Observations | None = None,
) -> FloatArray:
    r"""Predict every row by the model that has not seen it, at each of several values of C.

    Parameters
    ----------
    system : DualSystem
        Its own C plays no part.
    y : array of shape (n,)
        Targets.
    path : GreedyPath
        The basis; it stays as it is.
    Cs : array of shape (c,)
        Values of C.
    criterion : {"fsals", "kmp", "sggp"}, default="fsals"
        The loss under which the coefficients are fitted.
    observations : Observations or None, default=None
        Left out one by one in the place of rows.

    Returns
    -------
    array of shape (c, n), or (c, t) of observations

    Notes
    -----
    A model of "fsals" is the LS-SVM of the rows P. Rows outside P take no part in it, so its
    prediction is their leave-one-out prediction; for a row of P the residual is
    alpha_i / (R)_ii with R the inverse of the bordered matrix (eq. (13) of [Jiao2007]_). "kmp" and
    "sggp" are ridge regressions on all rows with a fixed basis: the residual divided by one minus
    the leverage. One eigendecomposition serves all C: 10 m^3 + n m (d + c) operations, or n m^2
    more for "kmp" and "sggp". What leaving a row out would change in the selection of the basis is
    not accounted for.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.greedy import Greedy, greedy_leave_one_out, greedy_paths
    >>> from lssvm.solvers import DualSystem
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> system = DualSystem(RBF(1.0), X, X, C=8.0)
    >>> (path,) = greedy_paths(system, y[:, None], Greedy(epsilon=0.1))
    >>> left_out = greedy_leave_one_out(system, y, path, np.array([0.1, 1000.0]))
    >>> errors = np.mean((left_out - y) ** 2, axis=1)
    >>> bool(errors[1] < errors[0])
    True
    """
    Cs, y = np.asarray(Cs, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(path.support) == 0:
        n = len(y) if observations is None else len(observations.y)
        return np.full((len(Cs), n), path.intercept)
    if criterion == "fsals":
        left_out, fitted, leverage = _dual(system, y, path, Cs)
    else:
        left_out, fitted, leverage = _primal(system, y, path, Cs, criterion)
    return left_out if observations is None else observations.left_out(fitted, leverage)


Outputs: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
"""What is predicted without each row, what with it, and its leverage, each of shape (c, n)."""


def _dual(system: DualSystem, y: FloatArray, path: GreedyPath, Cs: FloatArray) -> Outputs:
    P, leverage = path.support, np.zeros((len(Cs), len(y)))
    u = np.asarray(system.u, dtype=np.float64)[P]
    values, Q = eigh(u[:, None] * support_gram(system, path.support) * u, check_finite=False)
    squares, Qu, Qy = Q * Q, Q.T @ u, Q.T @ (u * y[P])
    coef, b, own = np.empty((len(P), len(Cs))), np.zeros(len(Cs)), np.zeros((len(Cs), len(P)))
    for c, C in enumerate(Cs):
        inverse = 1.0 / (np.maximum(values, 0.0) + 1.0 / C)
        beta, diagonal = Q @ (inverse * Qy), squares @ inverse
        if system.bias:
            eta = Q @ (inverse * Qu)
            b[c] = (u @ beta) / (u @ eta)
            beta, diagonal = beta - b[c] * eta, diagonal - eta**2 / (u @ eta)
        coef[:, c] = u * beta
        if len(P) > 1 or not system.bias:  # nothing is left of a basis of one: the model is 0
            own[c] = y[P] - beta / (diagonal * u)
        leverage[c, P] = 1.0 - diagonal / C
    limits = {"budget": system.budget, "threads": system.threads}
    fitted = evaluate_expansion(system.kernel, system.rows, system.basis[P], coef, b, **limits).T
    left_out = fitted.copy()
    left_out[:, P] = own
    return left_out, fitted, leverage


def _primal(
    system: DualSystem, y: FloatArray, path: GreedyPath, Cs: FloatArray, criterion: str
) -> Outputs:
    w = np.asarray(system.u, dtype=np.float64) ** 2
    total = float(w.sum())
    Phi = np.asarray(system.kernel(system.rows, system.basis[path.support]), dtype=np.float64)
    mean = float(w @ y / total) if system.bias else 0.0
    if system.bias:
        Phi = Phi - w @ Phi / total
    A = Phi.T @ (w[:, None] * Phi)
    if criterion == "sggp":  # (A + D/C) a = t as an ordinary eigenproblem of L^-1 A L^-T, D = L L^T
        D = support_gram(system, path.support)
        L = cholesky(D + np.diag(np.full(len(D), 1e-12 * np.trace(D))))
        A = solve_triangular(L, solve_triangular(L, A, lower=True).T, lower=True)
        Phi = solve_triangular(L, Phi.T, lower=True).T
    values, Q = eigh(0.5 * (A + A.T), check_finite=False)
    Phi = Phi @ Q
    t, squares = Phi.T @ (w * (y - mean)), Phi * Phi
    inverse = 1.0 / (np.maximum(values, 0.0)[:, None] + 1.0 / Cs)  # (m, c)
    fitted = Phi @ (inverse * t[:, None]) + mean
    leverage = w[:, None] * (squares @ inverse) + (w[:, None] / total if system.bias else 0.0)
    residual = (y[:, None] - fitted) / np.maximum(1.0 - leverage, np.finfo(float).eps)
    return (y[:, None] - residual).T, fitted.T, leverage.T
