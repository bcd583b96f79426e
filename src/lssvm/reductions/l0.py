r"""Few support vectors by an iteratively reweighted penalty that tends to the L0 norm."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import NumericalWarning
from lssvm.folds.content import hash_rows
from lssvm.kernels import Precomputed
from lssvm.moments import Moments
from lssvm.reductions.l0_system import L0System, reweighted_step, strongest
from lssvm.solvers import DualSystem

_VANISHED = 1e-9  # coefficients below this part of the first ones are all zero


@dataclass(frozen=True)
class L0:
    """Settings of the L0 reduction.

    Parameters
    ----------
    tol : float, default=1e-4
        Stop when the coefficients change by less than this per basis function, relative to the
        largest one, and none of them by more than a tenth of itself (those are on their way to
        zero).
    max_iter : int, default=50
    threshold : float, default=1e-6
        Coefficients below this part of the largest one are zero.

    Examples
    --------
    >>> from lssvm.reductions import L0
    >>> L0().max_iter
    50
    """

    tol: float = 1e-4
    max_iter: int = 50
    threshold: float = 1e-6


@dataclass(frozen=True)
class Reduced:
    """A reduced expansion: which basis functions are left, their coefficients, the intercepts.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.reductions import Reduced
    >>> len(Reduced(np.array([3]), np.ones((1, 1)), np.zeros(1), 5).support)
    1
    """

    support: IntArray  # (m',)
    coef: FloatArray  # (m', k)
    intercept: FloatArray  # (k,)
    iterations: int


def reduce_l0(moments: Moments, start: FloatArray, C: float, settings: L0 | None = None) -> Reduced:
    r"""Sparsify an expansion by reweighted ridge systems.

    Each step solves, with lambda_j = 1/beta_j^2 of the step before,

    .. math:: \min_{\beta, b} \tfrac12 \sum_j \lambda_j \beta_j^2 + \tfrac C2 \sum_i s_i
              (y_i - \sum_j \beta_j Q_{ij} - b)^2,

    which is eq. (8)-(10) and (12)-(13) of [Mall2014]_ and, with all training rows as the basis,
    the method of [Lopez2011]_. Several targets are reduced jointly: beta_j^2 is then the squared
    norm of a row.

    Parameters
    ----------
    moments : Moments
        Of the basis Q and the targets.
    start : array of shape (m, k)
        Coefficients to start from; lambda = 1/start^2 (the printed start lambda = beta may be
        negative).
    C : float
    settings : L0, optional

    Returns
    -------
    Reduced

    Notes
    -----
    With D = diag(abs(beta)) the step is beta = D (D A D + I/C)^-1 D c for the centred moments A, c:
    nothing is divided by a coefficient that tends to zero, and what has become zero leaves the
    active set, so that the systems shrink. m^3/3 operations per step at most, no pass over the
    data. If everything would vanish, the basis function that explains most is kept and a warning
    says so.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Moments
    >>> from lssvm.reductions import reduce_l0
    >>> Q = np.random.default_rng(0).normal(size=(100, 5))
    >>> y = Q[:, [1]] * 3.0 + 2.0
    >>> reduced = reduce_l0(Moments.of(Q, y), np.ones((5, 1)), C=10.0)
    >>> reduced.support, reduced.coef.round(2), reduced.intercept.round(2)
    (array([1]), array([[3.]]), array([2.]))
    """
    k = start.shape[1]
    return reduce_systems([L0System.of(moments, np.arange(k))], start, np.full(k, C), settings)


def reduce_systems(
    systems: Sequence[L0System], start: FloatArray, C: FloatArray, settings: L0 | None = None
) -> Reduced:
    """Sparsify several outputs jointly, also where they are trained on different rows.

    Parameters
    ----------
    systems : sequence of L0System
        Their columns make up all k outputs; the basis functions are the same.
    start : array of shape (m, k)
    C : array of shape (k,)
    settings : L0, optional

    Returns
    -------
    Reduced

    Notes
    -----
    See `reduce_l0`, which is the case of one system. m^3/3 operations per step and system.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Moments
    >>> from lssvm.reductions import L0System, reduce_systems
    >>> Q = np.random.default_rng(0).normal(size=(100, 5))
    >>> first = L0System.of(Moments.of(Q[:50], Q[:50, [1]]), np.array([0]))
    >>> second = L0System.of(Moments.of(Q[50:], 2.0 * Q[50:, [3]]), np.array([1]))
    >>> reduce_systems([first, second], np.ones((5, 2)), np.full(2, 10.0)).support
    array([1, 3])
    """
    settings = settings or L0()
    m = len(start)
    active = np.arange(m)
    beta = np.asarray(start, dtype=np.float64)
    parts = list(systems)
    largest = float(np.max(np.abs(beta), initial=0.0))
    iterations = 0
    while iterations < settings.max_iter:
        D = np.linalg.norm(beta, axis=1)
        keep = D > settings.threshold * D.max(initial=0.0)
        if not keep.any():
            break
        if not keep.all():
            active, beta, D = active[keep], beta[keep], D[keep]
            parts = [part.subset(np.flatnonzero(keep)) for part in parts]
        iterations += 1
        new = reweighted_step(parts, D, C)
        change = np.linalg.norm(new - beta) / m
        moving = np.linalg.norm(new - beta, axis=1) > 0.1 * D  # still on its way to zero
        beta = new
        if not np.max(np.abs(beta)) > _VANISHED * largest:
            break
        if change < settings.tol * np.max(np.abs(beta)) and not moving.any():
            break
    size = np.linalg.norm(beta, axis=1)
    keep = size > max(settings.threshold * size.max(initial=0.0), _VANISHED * largest)
    if keep.any():
        active, beta = active[keep], beta[keep]
        parts = [part.subset(np.flatnonzero(keep)) for part in parts]
    else:
        active, beta, parts = _keep_one(systems, C)
    intercept = np.empty(len(C))
    for part in parts:
        intercept[part.columns] = part.intercept(beta[:, part.columns])
    return Reduced(active, beta, intercept, iterations)


def _keep_one(
    systems: Sequence[L0System], C: FloatArray
) -> tuple[IntArray, FloatArray, list[L0System]]:
    """Return the basis function that explains most, with its ridge coefficients."""
    warnings.warn(
        "The L0 reduction would have dropped every support vector; the one that explains most was "
        "kept. Raise C, or do not reduce.",
        NumericalWarning,
        stacklevel=4,
    )
    best = np.array([strongest(systems)])
    parts = [system.subset(best) for system in systems]
    return best, reweighted_step(parts, np.ones(1), C), parts


def reduce_dual_l0(
    system: DualSystem, Y: FloatArray, alpha: FloatArray, settings: L0 | None = None
) -> tuple[FloatArray, Reduced]:
    """Reduce a dual model, every distinct training row being a basis function.

    Parameters
    ----------
    system : DualSystem
    Y : array of shape (n, k)
    alpha : array of shape (n, k)
        Support values to start from.
    settings : L0, optional

    Returns
    -------
    coef : array of shape (n, k)
        Zero but for the rows that are left.
    reduced : Reduced

    Notes
    -----
    The method of [Lopez2011]_. Equal rows are one basis function, so that a weight of 2 equals the
    row twice. n^3 operations for the moments, then those of `reduce_l0`.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.reductions import reduce_dual_l0
    >>> from lssvm.solvers import Cholesky, DualSystem
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> system, solver = DualSystem(RBF(1.0), X, X, C=100.0), Cholesky()
    >>> solution = solver.solve(solver.factorise(system), np.sin(X))
    >>> coef, reduced = reduce_dual_l0(system, np.sin(X), solution.alpha)
    >>> len(reduced.support) < 15
    True
    """
    u, k = system.u.astype(np.float64), alpha.shape[1]
    content = system.basis if isinstance(system.kernel, Precomputed) else system.rows
    keys = np.arange(system.n) if content.ndim == 1 else hash_rows(content)
    _, first, member = np.unique(keys, return_index=True, return_inverse=True)
    start = np.zeros((len(first), k))
    np.add.at(start, member, alpha)
    K = system.gram(
        copies=3,
        what="The L0 reduction's kernel matrix",
        advice="Do not reduce, or use a fixed-size model (FixedSizeLSSVC, FixedSizeLSSVR), or "
        "raise memory_budget.",
    )
    Q, RY = K[:, first] / u[None, first], u[:, None] * Y  # R K and R Y
    border, target = (Q.T @ u, u @ RY) if system.bias else (np.zeros(len(first)), np.zeros(k))
    squares, mass = (RY**2).sum(axis=0), float(u @ u)
    moments = Moments(Q.T @ Q, border, Q.T @ RY, target, squares, mass, system.n)
    reduced = reduce_l0(moments, start, system.C, settings)
    coef = np.zeros_like(alpha, dtype=np.float64)
    coef[first[reduced.support]] = reduced.coef
    return coef, reduced
