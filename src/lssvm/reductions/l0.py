r"""Few support vectors by an iteratively reweighted penalty that tends to the L0 norm."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, LinAlgWarning, cho_factor, cho_solve, solve

from lssvm._core.arrays import (
    Array,
    FloatArray,
    IntArray,
    device,
    get_namespace,
    is_numpy,
    take_square,
    to_numpy,
)
from lssvm._core.errors import NotPositiveDefiniteError, NumericalWarning
from lssvm.data.folds import hash_rows
from lssvm.kernels import Precomputed
from lssvm.solvers import DualSystem
from lssvm.solvers.moments import Moments
from lssvm.solvers.primal import PrimalBatch

_RATIO = 10.0**0.25  # by which C is divided
_STEPS = 3  # reweightings at each C
_COMPACT = 0.85  # part of the functions still there below which the systems are made smaller
_THRESHOLD = 1e-6  # [Mall2014, section IV]
_VANISHED = 1e-9  # coefficients below this part of the first ones are all zero
_CONSTANT = 1e-14  # of the squares of a function: less about its mean is rounding


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
        Iterations at most.
    threshold : float, default=1e-6
        Coefficients below this part of the largest one are zero.
    printed : bool, default=False
        Algorithms 3 and 4 of [Mall2014]_ to the letter, see `reduce_printed`: the first penalties
        are the coefficients themselves, and tol and threshold are absolute.

    Examples
    --------
    >>> from lssvm.reductions import L0
    >>> L0().max_iter
    50
    """

    tol: float = 1e-4
    max_iter: int = 50
    threshold: float = 1e-6
    printed: bool = False


@dataclass(frozen=True)
class Reduced:
    """A reduced expansion: which basis functions are left, their coefficients, the intercepts."""

    support: IntArray  # (m',)
    coef: FloatArray  # (m', k)
    intercept: FloatArray  # (k,)
    iterations: int


def reduce_l0(
    moments: Moments,
    start: FloatArray,
    C: float,
    settings: L0 | None = None,
    scale: FloatArray | None = None,
) -> Reduced:
    r"""Sparsify an expansion by reweighted ridge systems.

    Each step solves, with lambda_j = 1/beta_j^2 of the step before,

    .. math:: \min_{\beta, b} \tfrac12 \sum_j \lambda_j \beta_j^2 + \tfrac C2 \sum_i s_i
              (y_i - \sum_j \beta_j Q_{ij} - b)^2,

    which is eq. (8)-(10) and (12)-(13) of [Mall2014] and, with all training rows as the basis,
    the method of [Lopez2011]. Several targets are reduced jointly: beta_j^2 is then the squared
    norm of a row.
    """
    k = start.shape[1]
    system = L0System.of(moments, np.arange(k), scale)
    return reduce_systems([system], start, np.full(k, C), settings)


def target_scale(moments: Moments) -> FloatArray:
    """Return the standard deviations (k,) of the targets, 1 where they are constant."""
    squares, target = to_numpy(moments.squares), to_numpy(moments.target)
    mean = target / moments.weight
    variance = squares / moments.weight - mean**2
    noise = 1e-12 * np.maximum(mean**2, np.finfo(np.float64).tiny)
    return np.asarray(np.sqrt(np.where(variance > noise, variance, 1.0)))


def reduce_systems(
    systems: Sequence[L0System], start: FloatArray, C: FloatArray, settings: L0 | None = None
) -> Reduced:
    """Sparsify several outputs jointly, also where they are trained on different rows."""
    settings = settings or L0()
    m, scale = len(start), _scales(systems, len(C))
    active = np.arange(m)
    beta = np.asarray(start, dtype=np.float64) / scale
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
    intercept, beta = np.empty(len(C)), beta * scale
    for part in parts:
        intercept[part.columns] = part.intercept(beta[:, part.columns])
    return Reduced(active, beta, intercept, iterations)


def _scales(systems: Sequence[L0System], k: int) -> FloatArray:
    """Return the units of all outputs, shape (k,)."""
    scale = np.ones(k)
    for system in systems:
        scale[system.columns] = system.scale
    return scale


def reduce_printed(
    system: L0System, start: FloatArray, C: float, settings: L0 | None = None
) -> Reduced:
    r"""Run the loop of algorithms 3 and 4 of [Mall2014] to the letter, for one output.

    .. math::

        \lambda \leftarrow \beta; \quad \text{while not convergence:} \quad
        H \leftarrow Q^T Q + \mathrm{diag}(\lambda)/\gamma, \quad
        \text{solve (10) or (13) for } \beta, b, \quad
        \lambda_i \leftarrow 1/\beta_i^2

    The first penalties may be negative, and the first system indefinite or singular; it is then
    solved in the sense of least squares. All later systems are solved as
    :math:`\beta = D (D A D + I/C)^{-1} D c` with :math:`D = \mathrm{diag}(|\beta|)`, which is the
    printed system where no coefficient is zero, and no basis function leaves before the end.
    `reduce_systems` differs in its start (1/beta^2), in tolerances that are relative to the largest
    coefficient, and in that it keeps one function at least. m^3/3 operations per step.
    """
    settings = settings or L0(printed=True)
    beta, value, m = np.array(start, dtype=np.float64), np.array([C]), len(start)
    A, c = to_numpy(system.A), system.c[:, 0]
    penalties, iterations = beta, 0
    while iterations < settings.max_iter:
        if iterations == 0:
            new = _solve_indefinite(A + np.diag(penalties) / C, c)
        else:
            new = reweighted_step([system], np.abs(beta), value)[:, 0]
        iterations += 1
        change, beta = float(np.linalg.norm(new - beta)) / m, new
        if change < settings.tol:
            break
    support = np.flatnonzero(np.abs(beta) > settings.threshold)
    left = beta[support, None]
    return Reduced(support, left, system.subset(support).intercept(left), iterations)


def _solve_indefinite(H: FloatArray, c: FloatArray) -> FloatArray:
    """Solve a symmetric system; in the sense of least squares where it is singular to rounding."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", LinAlgWarning)
        try:
            return np.asarray(solve(H, c, assume_a="sym", check_finite=False))
        except (LinAlgError, LinAlgWarning):
            return np.asarray(np.linalg.lstsq(H, c)[0])


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
    system: DualSystem,
    Y: FloatArray,
    alpha: FloatArray,
    settings: L0 | None = None,
    *,
    numbers: bool = False,
) -> tuple[FloatArray, Reduced]:
    """Reduce a dual model, every distinct training row being a basis function.

    The method of [Lopez2011]. Equal rows are one basis function, so that a weight of 2 equals the
    row twice. n^3 operations for the moments, then those of `reduce_l0`.
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
    scale = target_scale(moments) if numbers else None
    reduced = reduce_l0(moments, start, system.C, settings, scale)
    coef = np.zeros_like(alpha, dtype=np.float64)
    coef[first[reduced.support]] = reduced.coef
    return coef, reduced


@dataclass(frozen=True, eq=False)
class L0System:
    r"""The centred normal equations of some outputs that are trained on the same rows.

    Attributes
    ----------
    columns : int array of shape (q,)
        Which outputs of the model these are.
    A : array of shape (m, m)
        :math:`Q^T S Q - g g^T / s` with :math:`g = Q^T S 1` and s the sum of the weights. On a
        device where the moments are; the systems are then solved there.
    c : array of shape (m, q)
        :math:`Q^T S Y - g t^T / s` with :math:`t = Y^T S 1`, in units of ``scale``.
    mean : array of shape (m,)
        Means of the basis functions.
    target_mean : array of shape (q,)
        Means of the targets.
    scale : array of shape (q,)
        Units of the targets.

    Eliminating the bias from eqs. (10) and (13) of [Mall2014] leaves
    :math:`(A + \mathrm{diag}(\lambda) / C) \beta = c` and the bias is the mean target minus
    :math:`\beta` times the means. Nothing of this changes when a constant is subtracted from a
    basis function, so moments may stay shifted.
    """

    columns: IntArray
    A: Array
    c: FloatArray
    mean: FloatArray
    target_mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, moments: Moments, columns: IntArray, scale: FloatArray | None = None) -> L0System:
        """Return the system of a training set from its moments: O(m^2)."""
        scale = np.ones(len(columns)) if scale is None else scale
        border, target = to_numpy(moments.border), to_numpy(moments.target)
        mean, target_mean = border / moments.weight, target / moments.weight
        A = moments.gram - moments.border[:, None] * (moments.border / moments.weight)[None, :]
        c = to_numpy(moments.cross) - np.outer(mean, target)
        diagonal, whole = _diagonal(A), _diagonal(moments.gram)
        c[diagonal <= _CONSTANT * whole] = 0.0  # constants: what is left is rounding
        mean = mean if moments.shift is None else mean + to_numpy(moments.shift)
        return cls(columns, A, c / scale, mean, target_mean, scale)

    def subset(self, index: IntArray) -> L0System:
        """Return the system of some of its basis functions."""
        A, c, mean = take_square(self.A, index), self.c[index], self.mean[index]
        return replace(self, A=A, c=c, mean=mean)

    def outputs(self, columns: IntArray) -> L0System:
        """Return the same system for those of its outputs that are among ``columns``."""
        inside = np.isin(self.columns, columns)
        place = np.searchsorted(columns, self.columns[inside])
        c, target_mean, scale = self.c[:, inside], self.target_mean[inside], self.scale[inside]
        return replace(self, columns=place, c=c, target_mean=target_mean, scale=scale)

    def intercept(self, beta: FloatArray) -> FloatArray:
        """Return the bias (q,) that belongs to coefficients (m, q), both in the caller's units."""
        return np.asarray(self.target_mean - self.mean @ beta)


def reweighted_step(systems: Sequence[L0System], D: FloatArray, C: FloatArray) -> FloatArray:
    r"""Solve the systems with :math:`\lambda_j = 1 / D_j^2`.

    Eqs. (10) and (13) of [Mall2014] as :math:`\beta = D (D A D + I/C)^{-1} D c`: nothing is
    divided by a coefficient that tends to zero. m^3/3 operations for each system and value of C.
    """
    out = np.zeros((len(D), len(C)))  # outputs without rows stay zero
    for system in systems:
        scaled = _scaled(system.A, D)
        for value in dict.fromkeys(C[system.columns].tolist()):
            inside = C[system.columns] == value
            solved = _ridge(scaled, D[:, None] * system.c[:, inside], value)
            out[:, system.columns[inside]] = D[:, None] * solved  # [Mall2014, eqs. (10), (13)]
    return out


def strongest(systems: Sequence[L0System]) -> int:
    """Return the basis function that alone explains most of the targets' squares."""
    gain = np.zeros(systems[0].A.shape[0])
    for system in systems:
        variance = _diagonal(system.A)
        floor = np.finfo(np.float64).eps * max(float(np.max(variance, initial=0.0)), 1e-300)
        gain += np.sum(system.c**2, axis=1) / np.maximum(variance, floor)
    return int(np.argmax(gain))


def _scaled(A: Array, D: FloatArray) -> Array:
    """Return D A D."""
    if is_numpy(A):
        return A * np.outer(D, D)
    factors = get_namespace(A).asarray(D, device=device(A))
    return A * factors[:, None] * factors[None, :]


def _diagonal(A: Array) -> FloatArray:
    if is_numpy(A):
        return np.diagonal(A)
    return to_numpy(get_namespace(A).linalg.diagonal(A))


def _solve_shifted(A: Array, B: FloatArray, shift: float) -> FloatArray | None:
    """Solve A + shift I; None where it is not positive definite to rounding."""
    if not is_numpy(A):
        right = get_namespace(A).asarray(B, device=device(A))[None, ...]
        batch = PrimalBatch(None, A[None, ...], right)
        solved = to_numpy(batch.solve_features(np.array([1.0 / shift])))[0, 0]
        return solved if np.all(np.isfinite(solved)) else None
    H = A.copy()
    H[np.diag_indices_from(H)] += shift
    try:
        factor = cho_factor(H.T, lower=True, overwrite_a=True, check_finite=False)
        return np.asarray(cho_solve(factor, B, check_finite=False))
    except LinAlgError:
        return None


def _ridge(A: Array, B: FloatArray, C: float) -> FloatArray:
    eps = float(np.finfo(np.float64).eps)
    rounding = 10.0 * A.shape[0] * eps * float(np.max(np.abs(_diagonal(A))))
    jitter = 0.0 if C * rounding < 0.01 else rounding  # as large as 1/C: the rest is noise
    for _ in range(12):  # nearly equal columns leave nothing but rounding in A, of any sign
        solved = _solve_shifted(A, B, 1.0 / C + jitter)
        if solved is not None:
            return solved
        jitter = max(100.0 * jitter, rounding)
    raise NotPositiveDefiniteError(
        f"The system of an L0 reduction is not positive definite (C={C:.3g}): lower C, or do not "
        "reduce."
    )


def l0_order(systems: Sequence[L0System], start: FloatArray, C: FloatArray) -> IntArray:
    """Return the basis functions from the last to the first that leaves.

    Algorithms 3 and 4 of [Mall2014] end at one size, which follows from C and is found by
    accident. Here their reweighting goes on, C divided by :math:`10^{1/4}` after every 3 steps,
    until one basis function is left. A function leaves when the norm of its coefficients falls
    below 1e-6 of the largest. On nine data sets three reweightings for each C gave supports as good
    as fifty, one reweighting somewhat worse ones, a start at 100 times the C no better ones; small
    supports were much better than those of backward elimination by the rise of the objective.

    About 40 systems of the shrinking active set, in all some 7 times m^3/3 operations; no pass over
    the data.
    """
    beta = np.array(start, dtype=np.float64) / _scales(systems, len(C))
    active = np.arange(len(beta))  # what the systems in hand are about
    alive = np.ones(len(beta), dtype=bool)  # which of them have not left
    left: list[int] = []
    parts = list(systems)
    largest = float(np.max(np.abs(beta), initial=0.0))
    if not largest > 0.0:
        first = strongest(systems)
        return np.concatenate([active[first : first + 1], np.delete(active, first)])
    step, value = 0, C.astype(np.float64)
    while np.count_nonzero(alive) > 1:
        D = np.linalg.norm(beta, axis=1)
        dropped = np.flatnonzero(alive & ~(D > _THRESHOLD * D.max()))
        left.extend(active[dropped[np.argsort(D[dropped], kind="stable")]].tolist())
        alive[dropped] = False
        if np.count_nonzero(alive) < _COMPACT * len(alive):
            index = np.flatnonzero(alive)
            active, alive, D = active[index], alive[index], D[index]
            parts = [part.subset(index) for part in parts]
        D[~alive] = 0.0  # without effect on the others
        beta = reweighted_step(parts, D, value)
        if not np.max(np.abs(beta)) > _VANISHED * largest:  # all at once
            order = np.flatnonzero(alive)[np.argsort(D[alive], kind="stable")]
            left.extend(active[order[:-1]].tolist())
            alive[order[:-1]] = False
        step += 1
        if step % _STEPS == 0:
            value = value / _RATIO
    return np.array([*active[alive].tolist(), *left[::-1]], dtype=np.intp)
