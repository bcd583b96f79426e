r"""Automatic relevance determination: one gamma per feature, by gradient ascent of the evidence.

The kernel is a function of :math:`q = \sum_l \gamma_l (x_l - z_l)^2` (eq. (3.69) of
[Suykens2002]_ with :math:`\gamma_l = 1 / (2 \sigma_l^2)`). Whatever the model, the derivatives of
its evidence by all d values follow from one matrix V of derivatives by the kernel's entries:

.. math::

    \frac{\partial L}{\partial \log \gamma_l}
    = \gamma_l \sum_{ij} W_{ij} (x_{il} - z_{jl})^2, \qquad W = V \circ K'(q),

three matrix products for all features together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from lssvm._core.arrays import FloatArray, IntArray, is_sparse
from lssvm._core.blocks import require, slices, small_problem
from lssvm._core.errors import InvalidInputError
from lssvm.backends.rows import Rows
from lssvm.data.folds import hash_rows
from lssvm.kernels import RBF, Kernel, Matern
from lssvm.kernels.dot import variances

PRIOR = 3.0
"""Standard deviation of log gamma_l around its start that the search assumes."""

_REACH = 4.0 * PRIOR  # how far from its start log gamma_l may go
_C_BOUNDS = (np.log(1e-3), np.log(1e6))
_ENOUGH = 1e-6  # relative change of the evidence that ends the search
_STEP = 0.05  # answers are rounded to it: rounding in the last bits must not show in them


def kernel_and_slope(kernel: Kernel, X: FloatArray, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Return a kernel and its derivative by :math:`q = \sum_l \gamma_l (x_l - z_l)^2`."""
    K = np.asarray(kernel(X, Z), dtype=np.float64)
    if isinstance(kernel, RBF):
        return K, -K
    if isinstance(kernel, Matern):
        rough = Matern(np.asarray(kernel.gamma) * 2.0 * kernel.nu, nu=0.5)
        decay = np.asarray(rough(X, Z), dtype=np.float64)  # exp(-t), t = 2 sqrt(nu q)
        if kernel.nu == 1.5:
            return K, -3.0 * decay
        t = -np.log(np.maximum(decay, np.finfo(np.float64).tiny))
        if kernel.nu == 2.5:
            return K, -(5.0 / 3.0) * (1.0 + t) * decay
        return K, np.where(t > 1e-12, -decay / np.maximum(t, 1e-12), 0.0)
    raise InvalidInputError(
        f"The relevance of features is learned for the rbf and matern kernels, not for {kernel!r}: "
        "use one of those, or give gamma as numbers."
    )


def feature_sums(W: FloatArray, X: FloatArray, Z: FloatArray) -> FloatArray:
    r"""Return :math:`\sum_{ij} W_{ij} (x_{il} - z_{jl})^2` for every feature l, shape (d,)."""
    centre = Z.mean(axis=0)
    X, Z = X - centre, Z - centre
    both = np.einsum("jl,jl->l", Z, W.T @ X)
    return np.asarray(W.sum(axis=1) @ X**2 + W.sum(axis=0) @ Z**2 - 2.0 * both)


@dataclass(frozen=True, eq=False)
class Relevance:
    """What `find_relevance` returns.

    Attributes
    ----------
    gamma : array of shape (d,)
        One width parameter for each feature.
    C : float
        Regularisation.
    value, start_value : float
        The log evidence there and where the search began.
    n_evaluations : int
        Of the evidence and its gradient.
    """

    gamma: FloatArray
    C: float
    value: float
    start_value: float
    n_evaluations: int


def find_relevance(
    evidence: Evidence, gamma: float, C: float, *, tune_C: bool = True, max_iter: int = 30
) -> Relevance:
    r"""Find one gamma per feature, and C, that make the data most likely.

    Maximises the log evidence less :math:`\tfrac12 \sum_l (\log(\gamma_l / \gamma) / 3)^2`:
    a feature that the data say nothing about stays where it was, one that they clearly do not need
    goes down by a factor of e^3 per standard deviation. Bounds keep the values within e^12 of the
    start. L-BFGS-B of SciPy; an evaluation is one evidence with its gradient. The answers are
    rounded to steps of 5 %, so that the order of the rows does not show in them.
    """
    d = evidence.n_features
    start = np.append(np.full(d, np.log(gamma)), np.clip(np.log(C), *_C_BOUNDS))
    calls: list[float] = []

    def minus(point: FloatArray) -> tuple[float, FloatArray]:
        value, slope = evidence(point[:d], float(point[d]) if tune_C else float(np.log(C)))
        calls.append(value)
        away = (point[:d] - start[:d]) / PRIOR
        penalised = value - 0.5 * float(away @ away)
        slope = slope - np.append(away / PRIOR, 0.0)
        if not tune_C:
            slope[d] = 0.0
        if not (np.isfinite(penalised) and np.all(np.isfinite(slope))):
            return 1e100, np.zeros(d + 1)
        return -penalised, -slope

    bounds = [(v - _REACH, v + _REACH) for v in start[:d]] + [_C_BOUNDS]
    options: Any = {"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": _ENOUGH, "gtol": 1e-4}
    result = minimize(minus, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    steps = np.round((result.x - start) / _STEP) * _STEP
    best = start + steps
    log_C = float(best[d]) if tune_C else float(np.log(C))
    value = float(evidence(best[:d], log_C)[0])
    C = float(np.exp(log_C)) if tune_C else float(C)
    return Relevance(np.exp(best[:d]), C, value, calls[0], len(calls) + 1)


def sample_rows(X: Any, size: int, seed: int) -> IntArray:
    """Return the rows of the ``size`` smallest hashes: sets of equal rows, in the order of X."""
    hashes = hash_rows(X, seed)
    distinct = np.unique(hashes)
    if len(distinct) <= size:
        return np.arange(X.shape[0])
    return np.flatnonzero(hashes <= distinct[size - 1])


KernelOf = Callable[[FloatArray], Kernel]


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
        with small_problem(len(self.Y)):
            return self._value(log_gamma, log_C)

    def _value(self, log_gamma: FloatArray, log_C: float) -> tuple[float, FloatArray]:
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
    gradient. :math:`\tilde K_{ZZ}` has the cut-off of `nystrom_map` added to its
    diagonal instead of directions dropped, so that L is smooth. With all rows as prototypes it is
    `DualRelevance` up to that and a constant.

    2 n m (m + 3 d) + 5 m^3 operations per evaluation, in blocks of rows.
    """

    kernel: KernelOf
    X: FloatArray
    Y: FloatArray
    Z: FloatArray
    weight: FloatArray | None = None

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.X.shape[1])

    def __call__(self, log_gamma: FloatArray, log_C: float) -> tuple[float, FloatArray]:
        """Return the log evidence and its derivatives by (log gamma, log C), shape (d + 1,)."""
        with small_problem(len(self.Z)):
            return self._value(log_gamma, log_C)

    def _value(self, log_gamma: FloatArray, log_C: float) -> tuple[float, FloatArray]:
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
        for part in slices(len(self.X), _BLOCK):
            K, slope = kernel_and_slope(kernel, self.X[part], self.Z)
            V = 2.0 * (K - mean) @ by_Q + Y[part] @ (alpha * factor).T
            by_gamma += feature_sums(V * s[part, None] * slope, self.X[part], self.Z)
        return value, np.append(gamma * by_gamma, by_C)

    def _moments(
        self, kernel: Kernel, s: FloatArray, Y: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the mean of K(x, Z) and the centred moments of it and of the targets."""
        shift = np.asarray(kernel(self.X[:1], self.Z), dtype=np.float64)[0]
        m = len(self.Z)
        G, c, g = np.zeros((m, m)), np.zeros((m, Y.shape[1])), np.zeros(m)
        for part in slices(len(self.X), _BLOCK):
            K = np.asarray(kernel(self.X[part], self.Z), dtype=np.float64) - shift
            SK = K * s[part, None]
            G += SK.T @ K
            c += SK.T @ Y[part]
            g += SK.sum(axis=0)
        total = float(s.sum())
        return g / total + shift, G - np.outer(g, g / total), c


Evidence: TypeAlias = DualRelevance | FixedRelevance
"""The log evidence of a model and its slopes, as a function of log gamma (d,) and log C."""

DUAL_ROWS, FIXED_ROWS, FIXED_PROTOTYPES = 500, 2000, 150
"""The search for relevance sees so many distinct rows, and so many prototypes, at most."""

POWERS = (1.0, 0.5)
"""How far cross-validation may go from one gamma (0) to the maximum of the evidence (1)."""


class Tuned(Protocol):
    """What tuning has chosen, a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def tuning(self) -> Any:
        """The record of the search."""


T = TypeVar("T", bound=Tuned)


def spread_gamma(
    evidence: Evidence,
    gamma: float,
    C: float,
    tuned: T,
    tune: Callable[[FloatArray], T],
    *,
    tune_C: bool,
) -> T:
    """Search for the widths of features, tune again with them, and keep the better model."""
    relevance = find_relevance(evidence, gamma, C, tune_C=tune_C)
    spread = variances(evidence.X, evidence.weight)
    best, (score, evaluations) = tuned, _score(tuned)
    for power in POWERS:
        factors = (relevance.gamma / gamma) ** power
        # the mean distance between rows stays as it was, and with it the range of gamma
        again = tune(factors * (spread.sum() / max(float(factors @ spread), 1e-300)))
        new, more = _score(again)
        evaluations += more
        if new > score or (best is tuned and new == score):
            best, score = again, new
    assert best.tuning is not None
    return replace(best, tuning=replace(best.tuning, n_evaluations=evaluations))


def _score(tuned: Tuned) -> tuple[float, int]:
    assert tuned.tuning is not None
    return tuned.tuning.best_score, tuned.tuning.n_evaluations


def relevance_sample(
    rows: Rows, weight: FloatArray | None, size: int, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return features, targets and weights of the rows that the search sees.

    Of classes it sees one output each, whatever the code; ``weight`` has those of classes in it.
    Copies are one row of their weight, and rows stand in the order of their values, so that neither
    repeating nor shuffling rows changes a digit.
    """
    some = sample_rows(rows.X, size, seed)
    X = dense_rows(rows.X[some], rows.budget)
    if rows.labels is None:
        Y = np.asarray(rows.Y[some], dtype=np.float64)
    else:
        Y = np.where(rows.labels[some][:, None] == np.arange(rows.labels.max() + 1), 1.0, -1.0)
        Y = Y[:, 1:] if Y.shape[1] == 2 else Y
    row_weight = np.ones(len(Y)) if weight is None else weight[some]
    table, place = np.unique(np.column_stack([X, Y]), axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), row_weight)
    d = X.shape[1]
    even = weight is None and len(table) == len(row_weight)
    return table[:, :d], table[:, d:], None if even else total


def dense_rows(X: Any, budget: int) -> Any:
    """Return some rows as an array, as derivatives by every feature need them."""
    if not is_sparse(X):
        return X
    require(
        4 * 8 * X.shape[0] * X.shape[1],
        budget,
        what=f"gamma='ard' with {X.shape[0]:,} rows of {X.shape[1]:,} sparse features made dense",
        advice="Use one gamma, fewer features, or raise memory_budget.",
    )
    return X.toarray()


def shares(gamma: Any, X: Any, weight: FloatArray | None) -> FloatArray:
    """Return the shares (d,) of the features in the mean exponent of the kernel."""
    share = np.broadcast_to(gamma, (X.shape[1],)) * variances(X, weight)
    total = float(share.sum())
    return share / total if total > 0 else np.zeros(len(share))
