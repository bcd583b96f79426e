"""Sequential minimal optimisation: two support values at a time, a few kernel columns in memory."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import blas

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError
from lssvm.solvers.base import (
    DualSystem,
    OnIteration,
    Solution,
    check_limits,
    relative_residual,
    warn_unsolved,
)

_RESTARTS = 5


class ColumnCache:
    """Columns of a system's kernel matrix, the least recently used one makes room."""

    def __init__(self, system: DualSystem) -> None:
        self._system = system
        n = system.n
        self.capacity = min(n, max(2, system.budget // (4 * n * system.dtype.itemsize)))
        self._slots: OrderedDict[int, int] = OrderedDict()
        self._all: list[FloatArray] = []
        if self.capacity == n and n**2 * system.dtype.itemsize <= system.budget:
            self._stored = system.gram()
            self._all = list(self._stored)
        else:
            self._stored = np.empty((self.capacity, n), system.dtype)

    def column(self, i: int) -> FloatArray:
        """Return column ``i``, shape (n,); valid until `capacity` other columns were computed."""
        if self._all:
            return self._all[i]
        if i in self._slots:
            self._slots.move_to_end(i)
        else:
            full = len(self._slots) == self.capacity
            slot = self._slots.popitem(last=False)[1] if full else len(self._slots)
            self._stored[slot] = self._system.columns(np.array([i]))[:, 0]
            self._slots[i] = slot
        return np.asarray(self._stored[self._slots[i]])


@dataclass(frozen=True)
class SMOState:
    """What does not depend on the targets.

    Attributes
    ----------
    system : DualSystem
    kept : array of shape (p,)
        Indices of the rows whose weight is not zero; the support values of the others are zero.
    cache : ColumnCache
        Columns of the kernel matrix of those rows, without weights.
    ridge : array of shape (p,)
        1 / (C s_i).
    diagonal : array of shape (p,)
        K(x_i, x_i) + 1 / (C s_i).
    """

    system: DualSystem
    kept: IntArray
    cache: ColumnCache
    ridge: FloatArray
    diagonal: FloatArray


@dataclass(frozen=True)
class SMO:
    r"""Sequential minimal optimisation with second-order choice of the pair.

    For every column y of the targets it minimises

    .. math::

        \tfrac12 \alpha^T H \alpha - y^T \alpha \quad \text{such that} \quad 1^T \alpha = 0,
        \qquad H = K + diag(1 / (C s_i)),

    whose optimality conditions are the bordered system, with -b the common value of the gradient.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative residual of the bordered system that every column has to reach.
    max_iter : int, default=1000000
        Most pair updates for each column.

    Notes
    -----
    The method is that of [Keerthi2003]_ (no equation of it is cited: written from the problem).
    One update takes i where the gradient F = H alpha - y is largest and j where the decrease
    (F_i - F_j)^2 / (2 (H_ii + H_jj - 2 H_ij)) of the objective is largest, moves alpha_i down and
    alpha_j up by (F_i - F_j) / (H_ii + H_jj - 2 H_ij), and updates F with the two columns. With -b
    the mean of F under the weights s the residual of the bordered system is at most
    (max F - min F) / 2 sqrt(sum s), which is what the stop compares with tol times the norm of
    the scaled targets. At the end the gradient is recomputed; where it shows more than tol, the
    updates go on from it, up to five times.

    An update costs 9 p operations and no kernel evaluation while its two columns are in the cache
    (p d operations each when not); how many are needed grows with C and the required accuracy.
    Memory: a quarter of the budget for columns and a few vectors. The columns stay in the cache
    from one right-hand side to the next.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.solvers.base import DualSystem
    >>> from lssvm.solvers.smo import SMO
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> solver = SMO(tol=1e-8)
    >>> solution = solver.solve(solver.factorise(DualSystem(RBF(1.0), X, X, C=10.0)), np.sin(X))
    >>> solution.status.name, solution.residual < 1e-8
    ('SOLVED', True)
    """

    tol: float = 1e-6
    max_iter: int = 1_000_000

    def factorise(self, system: DualSystem) -> SMOState:
        """Prepare the cache of kernel columns.

        Parameters
        ----------
        system : DualSystem
            Rows, kernel and C.

        Returns
        -------
        SMOState
        """
        check_limits(self.tol, self.max_iter)
        if not system.bias:
            raise InvalidInputError(
                "SMO moves pairs along the constraint that belongs to the bias, but this system "
                "has no bias: use solver='cholesky' or solver='cg', or fit_intercept=True."
            )
        u = system.u.astype(np.float64)
        kept = np.flatnonzero(u)
        plain = replace(system, rows=system.rows[kept], basis=system.basis[kept], root_weight=None)
        ridge = 1.0 / (system.C * u[kept] ** 2)
        diagonal = plain.diagonal().astype(np.float64) - 1.0 / system.C + ridge
        return SMOState(system, kept, ColumnCache(plain), ridge, diagonal)

    def solve(
        self, state: SMOState, Y: FloatArray, *, on_iteration: OnIteration = None
    ) -> Solution:
        """Solve for the targets, one column after the other.

        Parameters
        ----------
        state : SMOState
            What `factorise` returned.
        Y : array of shape (n, k)
            Targets.
        on_iteration : callable, optional
            Called after every n pair updates, and at the last one of a column, with the number of
            updates so far, over all columns, and the bound on the column's relative residual.

        Returns
        -------
        Solution
            ``iterations`` counts pair updates over all columns; ``history`` holds the bounds that
            ``on_iteration`` was called with.
        """
        system, kept = state.system, state.kept
        u = system.u.astype(np.float64)
        RY = u[:, None] * Y
        scale = np.linalg.norm(RY, axis=0)
        half_root = 0.5 * math.sqrt(float(u @ u))
        alpha, beta = np.zeros(RY.shape), np.zeros(RY.shape)
        gradient = -np.asarray(Y, dtype=np.float64)[kept]
        history: list[float] = []
        updates = np.zeros(RY.shape[1], dtype=int)

        def report(column: int, done: int, gap: float) -> None:
            updates[column] += done
            history.append(gap * half_root / scale[column])
            if on_iteration is not None:
                on_iteration(int(updates.sum()), history[-1])

        for _ in range(1 + _RESTARTS):
            for j in range(RY.shape[1]):
                a, F = alpha[kept, j], gradient[:, j].copy()
                goal = self.tol * scale[j] / half_root
                self._minimise(
                    state, a, F, goal, self.max_iter - updates[j], lambda *at, j=j: report(j, *at)
                )
                alpha[kept, j] = a
            beta[kept] = alpha[kept] / u[kept, None]
            H_beta = system.product(beta)
            b = u @ (RY - H_beta) / (u @ u)  # the least squares choice
            residual = relative_residual(H_beta, beta, b, u, RY)
            if residual <= self.tol or np.any(updates >= self.max_iter):
                break
            gradient = (H_beta - RY)[kept] / u[kept, None]
        total = int(updates.sum())
        advice = f"Raise max_iter ({self.max_iter}) or tol, lower C, or use solver='cg' or "
        how = f"SMO stopped after {total} pair updates"
        status = warn_unsolved(how, residual, self.tol, f"{advice}solver='cholesky'.")
        alpha, b = alpha.astype(system.dtype, copy=False), b.astype(system.dtype, copy=False)
        return Solution(alpha, b, status, residual, total, history)

    @staticmethod
    def _minimise(
        state: SMOState,
        a: FloatArray,
        F: FloatArray,
        goal: float,
        max_updates: int,
        report: Callable[[int, float], None],
    ) -> None:
        """Update pairs of ``a`` (p,) and the gradient ``F`` (p,) in place until its range is small.

        ``report`` is called with the updates since its last call and the range.
        """
        eta, gain, ridge = np.empty_like(F), np.empty_like(F), state.ridge
        H = 0.5 * state.diagonal
        equal = float(H[0]) if len(H) and np.all(H == H[0]) else None  # as of most kernels
        curvature = np.full(len(F), np.inf)  # the smallest of a pair with i, where i was met
        column, least, axpy = state.cache.column, np.minimum.reduce, blas.daxpy
        unreported, largest = 0, np.finfo(gain.dtype).max
        for _ in range(max_updates):
            i = int(F.argmax())
            top = float(F[i])
            gap = top - float(least(F))
            if unreported and (gap <= goal or unreported == len(F)):
                report(unreported, gap)
                unreported = 0
            if gap <= goal:
                return
            K_i = column(i)
            if equal is None:  # (H_ii + H_jj - 2 H_ij) / 2
                np.subtract(H, K_i, out=eta)
                eta += H[i]
            else:
                np.subtract(2.0 * equal, K_i, out=eta)
            if curvature[i] == np.inf:
                curvature[i] = least(eta)
            if curvature[i] <= 0.5 * gap * gap / largest:  # nothing, or next to it
                raise NotPositiveDefiniteError(
                    f"A pair with H_ii + H_jj - 2 H_ij = {2.0 * curvature[i]:.1e} was met, so the "
                    "kernel matrix is not positive definite. Lower C, use a positive definite "
                    "kernel, or use solver='cholesky'."
                )
            np.subtract(top, F, out=gain)
            gain *= gain
            gain /= eta
            j = int(gain.argmax())
            step = 0.5 * (top - float(F[j])) / float(eta[j])
            a[i] -= step
            a[j] += step
            axpy(K_i, F, a=-step)  # in place
            axpy(column(j), F, a=step)
            F[i] -= step * ridge[i]
            F[j] += step * ridge[j]
            unreported += 1
        if unreported:
            report(unreported, float(np.ptp(F)))
