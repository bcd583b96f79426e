"""Conjugate gradients for the dual model: the kernel matrix need not be stored.

First their preconditioner, a Nystrom approximation of the kernel matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from lssvm._core.arrays import FloatArray
from lssvm._core.blocks import require, run_blocks, slices
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError, not_known, not_usable
from lssvm._core.random import RandomState, as_generator
from lssvm.solvers.base import (
    DualSystem,
    OnIteration,
    Solution,
    check_limits,
    eliminate_bias,
    relative_residual,
    warn_unsolved,
)

_LANDMARKS_PER_ROOT = 16
_SHARE = 0.7


@dataclass(frozen=True)
class NystromPreconditioner:
    """The inverse of P = B B^T + delta I, a low-rank stand-in for H = R K R + I/C.

    Attributes
    ----------
    B : array of shape (n, m)
        Root of the Nystrom approximation of R K R.
    factor : array of shape (m, m)
        Lower Cholesky factor of B^T B + delta I.
    delta : float
        1/C plus the mean of the diagonal that the approximation leaves out.
    """

    B: FloatArray
    factor: FloatArray
    delta: float

    def __call__(self, R: FloatArray) -> FloatArray:
        """Return P^{-1} R for R (n, k)."""
        inner = cho_solve((self.factor, True), self.B.T @ R, check_finite=False)
        return np.asarray((R - self.B @ inner) / self.delta)


def default_landmarks(system: DualSystem) -> int:
    """Return how many landmarks a preconditioner takes when the caller names no number.

    16 sqrt(n), at most n, and no more than 70 % of the memory budget can hold (the blocks of the
    kernel take the rest); at least one. A pass over the kernel costs n^2 (d + k) operations and
    n^2 kernel evaluations, the factors 2 n m^2 operations: with m in proportion to sqrt(n) that is
    a few passes at every n.
    """
    most = min(system.n, math.ceil(_LANDMARKS_PER_ROOT * math.sqrt(system.n)))
    # Largest m whose arrays fit: the positive root of 3 m^2 + row m - room = 0, in numbers.
    row = system.n * _bytes_per_entry(system) / 8
    room = _SHARE * system.budget / 8
    fits = int((math.sqrt(row**2 + 12 * room) - row) / 6)
    return max(1, min(most, fits))


def _bytes_per_entry(system: DualSystem) -> int:
    # Landmark columns of float32 rows exist once as computed and once in float64.
    return 8 if system.dtype == np.float64 else 12


def nystrom_preconditioner(
    system: DualSystem, n_landmarks: int | None = None, random_state: RandomState = 0
) -> NystromPreconditioner:
    """Build the preconditioner on landmarks drawn uniformly without replacement.

    Section 3.4.1 of [Suykens2002] leaves the preconditioner open. W is factorised with the
    smallest multiple of the identity that lets its Cholesky factorisation pass, starting at
    rounding level, so repeated rows and kernels of low rank do no harm.

    Cost: n m d operations for the columns, 2 n m^2 for B and B^T B, m^3 for the two Cholesky
    factors. Memory: n m + 3 m^2 numbers; the columns are overwritten by B.
    """
    n = system.n
    m = default_landmarks(system) if n_landmarks is None else n_landmarks
    if not 1 <= m <= n:
        raise not_usable("n_landmarks", m, f"give a number from 1 to the {n} rows, or None.")
    require(
        n * m * _bytes_per_entry(system) + 24 * m**2,
        system.budget,
        what=f"A Nystrom preconditioner of {m:,} landmarks for {n:,} rows",
        advice="Lower n_landmarks, leave it None, or raise memory_budget.",
    )
    index = np.sort(as_generator(random_state).choice(n, size=m, replace=False))
    B = system.columns(index).astype(np.float64, copy=False)
    L = _jittered_cholesky(B[index], float(np.finfo(system.dtype).eps))

    def replace(part: slice) -> None:
        B[part] = solve_triangular(L, B[part].T, lower=True, check_finite=False).T

    run_blocks(replace, slices(n, 512), system.threads)
    left_out = system.diagonal() - np.einsum("ij,ij->i", B, B)  # includes 1/C
    delta = max(float(np.mean(left_out)), 1.0 / system.C)
    inner = B.T @ B
    inner.flat[:: m + 1] += delta
    factor = _jittered_cholesky(inner, float(np.finfo(np.float64).eps))
    return NystromPreconditioner(B, factor, delta)


def _jittered_cholesky(matrix: FloatArray, eps: float) -> FloatArray:
    """Return the lower Cholesky factor of ``matrix`` + jitter I; overwrites the diagonal."""
    diagonal = matrix.diagonal().copy()
    jitter = eps * max(float(diagonal.sum()), eps)
    for _ in range(6):
        matrix.flat[:: len(matrix) + 1] = diagonal + jitter
        try:
            return np.asarray(cholesky(matrix, lower=True, check_finite=False))
        except LinAlgError:
            jitter *= 100
    raise NotPositiveDefiniteError(
        "The kernel matrix of the landmarks is not positive definite even after "
        f"{jitter / 100:.1e} was added to its diagonal. Use a positive definite kernel, or "
        "preconditioner=None."
    )


_RESTARTS = 5


@dataclass(frozen=True)
class CGState:
    """What does not depend on the targets.

    Attributes
    ----------
    system : DualSystem
    gram : array of shape (n, n) or None
        R K R, kept only where n^2 float64 numbers take no more than a quarter of the budget.
    preconditioner : NystromPreconditioner or None
    """

    system: DualSystem
    gram: FloatArray | None
    preconditioner: NystromPreconditioner | None

    def product(self, V: FloatArray) -> FloatArray:
        """Return H V for V (n, k), from the stored matrix or block by block."""
        if self.gram is None:
            return self.system.product(V)
        product: FloatArray = self.gram @ V
        product += V / self.system.C
        return product

    def precondition(self, R: FloatArray) -> FloatArray:
        """Return P^-1 R for R (n, k), R itself without a preconditioner."""
        return R if self.preconditioner is None else self.preconditioner(R)


@dataclass
class _Iterate:
    """Where the k + 1 recurrences stand; all arrays have one column, or one entry, for each."""

    X: FloatArray  # (n, k + 1), what is solved for
    R: FloatArray  # (n, k + 1), residuals
    scale: FloatArray  # (k + 1,), norms of the right-hand sides
    goal: FloatArray  # (k + 1,), residual norms to reach
    lowered: FloatArray  # (k + 1,), twice the decrease of V so far
    history: list[float]  # largest relative residual after every pass


@dataclass(frozen=True)
class ConjugateGradient:
    r"""Conjugate gradients on the positive definite form of the bordered system.

    Solves H eta = u and H nu_j = R y_j and combines them,

    .. math::

        s = u^T \eta, \qquad b_j = u^T \nu_j / s, \qquad \beta_j = \nu_j - \eta b_j,

    section 3.4.1 and eqs. (3.24) to (3.25) of [Suykens2002]_ with u for y.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative residual of the bordered system that every column has to reach.
    max_iter : int, default=1000
        Most passes over the kernel, restarts included.
    preconditioner : {None, "nystrom"}, default=None
        "nystrom" builds a `NystromPreconditioner`; see eqs. (3.26) and (3.27).
    n_landmarks : int or None, default=None
        Landmarks of the preconditioner, None for a number from n and the memory budget.
    random_state : int, Generator, RandomState or None, default=0
        Draws the landmarks.

    Notes
    -----
    The border u and the k targets are the columns of one iteration: k + 1 independent recurrences
    of Hestenes and Stiefel share every pass over the kernel, and a column that has converged
    leaves the pass. A column has converged when its residual is small, ||r_i|| <= tol/2 ||r_0||,
    and the last step lowered the quadratic form V(x) = x^T H x / 2 - x^T r_0 by no more than tol
    times all that it was lowered so far. The chapter advises the second because V never rises;
    alone it could stop at a step that happens to be short, so here both must hold.

    At the end all residuals are recomputed by one more pass. The residual of column j of the
    bordered system is r_j - b_j r_u, so where a large bias carries the residual of eta above tol,
    or rounding has parted the recurrence from the truth, the goal is tightened and the iteration
    starts again from where it is, up to five times.

    The vectors are float64 for float32 rows too; alpha is rounded to the rows' type at the end
    and ``residual`` is the one before that rounding.

    Cost: n^2 (d + k) operations and n^2 kernel evaluations for each pass; memory of 6 n (k + 1)
    numbers and one block of the kernel. Where n^2 float64 numbers fit into a quarter of the budget
    the matrix is computed once and kept, and a pass costs n^2 k.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.solvers.base import DualSystem
    >>> from lssvm.solvers.cg import ConjugateGradient
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> system = DualSystem(RBF(1.0), X, X, C=10.0)
    >>> solver = ConjugateGradient(tol=1e-8)
    >>> solution = solver.solve(solver.factorise(system), np.sin(X))
    >>> solution.status.name, solution.residual < 1e-8
    ('SOLVED', True)
    """

    tol: float = 1e-6
    max_iter: int = 1000
    preconditioner: Literal["nystrom"] | None = None
    n_landmarks: int | None = None
    random_state: RandomState = 0

    def factorise(self, system: DualSystem) -> CGState:
        """Keep the kernel matrix if it is small, and build the preconditioner.

        Parameters
        ----------
        system : DualSystem
            Rows, kernel and C.

        Returns
        -------
        CGState
        """
        self._check()
        gram = preconditioner = None
        if 8 * system.n**2 <= system.budget // 4:
            gram = system.gram().astype(np.float64, copy=False)
        if self.preconditioner == "nystrom":
            preconditioner = nystrom_preconditioner(system, self.n_landmarks, self.random_state)
        return CGState(system, gram, preconditioner)

    def solve(self, state: CGState, Y: FloatArray, *, on_iteration: OnIteration = None) -> Solution:
        """Solve for the targets.

        Parameters
        ----------
        state : CGState
            What `factorise` returned.
        Y : array of shape (n, k)
            Targets.
        on_iteration : callable, optional
            Called after every pass with its number, from 1, and the largest relative residual of
            the k + 1 columns.

        Returns
        -------
        Solution
            ``history`` holds the numbers that ``on_iteration`` was called with.
        """
        system = state.system
        u = system.u.astype(np.float64)
        RY = u[:, None] * Y
        rhs = np.column_stack([u if system.bias else np.zeros_like(u), RY])
        scale = np.linalg.norm(rhs, axis=0)
        at = _Iterate(np.zeros_like(rhs), rhs, scale, self.tol / 2 * scale, 0 * scale, [])
        for _ in range(1 + _RESTARTS):
            self._descend(state, at, on_iteration)
            HX = state.product(at.X)
            beta, b = eliminate_bias(at.X[:, 0], at.X[:, 1:], u, system.bias)
            residual = relative_residual(HX[:, 1:] - HX[:, :1] * b, beta, b, u, RY, system.bias)
            if residual <= self.tol or len(at.history) >= self.max_iter:
                break
            at.R = rhs - HX
            biased = b != 0
            at.goal[0] = np.min(at.goal[1:][biased] / np.abs(b[biased]), initial=at.goal[0])
        status = warn_unsolved(
            f"Conjugate gradients stopped after {len(at.history)} passes",
            residual,
            self.tol,
            f"Raise max_iter ({self.max_iter}) or tol, lower C, or use preconditioner='nystrom' "
            "(more n_landmarks if it is used already) or solver='cholesky'.",
        )
        alpha = (u[:, None] * beta).astype(system.dtype, copy=False)
        intercept = b.astype(system.dtype, copy=False)
        return Solution(alpha, intercept, status, residual, len(at.history), at.history)

    def _descend(self, state: CGState, at: _Iterate, on_iteration: OnIteration) -> None:
        """Run the recurrences from where they stand until all columns reach their goals."""
        at.R = at.R.copy()
        size = np.linalg.norm(at.R, axis=0)
        active = np.flatnonzero(size > at.goal)
        P = rho_before = None
        while active.size and len(at.history) < self.max_iter:
            r = at.R[:, active]
            z = state.precondition(r)
            rho = np.einsum("ij,ij->j", r, z)
            P = z if P is None else z + P * (rho / rho_before)  # [Suykens2002, section 3.4.1]
            HP = state.product(P)
            curvature = np.einsum("ij,ij->j", P, HP)
            if not np.all(curvature > 0):
                raise NotPositiveDefiniteError(
                    f"A direction p with p^T H p = {np.min(curvature):.1e} was met, so H = R K R + "
                    "I/C is not positive definite to rounding; conjugate gradients need that it "
                    "is. Lower C, use a positive definite kernel, or use solver='cholesky'."
                )
            step = rho / curvature  # [Suykens2002, section 3.4.1, lambda_i]
            at.X[:, active] += step * P
            r = r - step * HP
            at.R[:, active] = r
            size[active] = np.linalg.norm(r, axis=0)
            decrease = step * rho  # twice V(x_{i-1}) - V(x_i), [Suykens2002, section 3.4.1]
            at.lowered[active] += decrease
            at.history.append(float(np.max(size / np.where(at.scale > 0, at.scale, 1.0))))
            if on_iteration is not None:
                on_iteration(len(at.history), at.history[-1])
            left = size[active] > at.goal[active]
            left |= (decrease > self.tol * at.lowered[active]) & (size[active] > 0)
            active, P, rho_before = active[left], P[:, left], rho[left]

    def _check(self) -> None:
        check_limits(self.tol, self.max_iter)
        if self.preconditioner not in (None, "nystrom"):
            raise not_known("preconditioner", self.preconditioner, "give None or 'nystrom'.")
        if self.preconditioner is None and self.n_landmarks is not None:
            raise InvalidInputError(
                f"n_landmarks={self.n_landmarks} needs preconditioner='nystrom', which is None."
            )
