"""Models as Gaussian processes: error bars, leave-one-out predictions and the evidence.

First the dual model; then the fixed-size model, from moments; last the evidence of the dual model
and its gradient in (log C, log gamma).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from lssvm._core.arrays import AnyArray, Array, FloatArray, IntArray, float_rows
from lssvm._core.blocks import block_rows, require, run_blocks, slices, small_problem
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError
from lssvm.kernels import RBF, Kernel, Laplacian, Matern, Polynomial
from lssvm.solvers import Cholesky, DualSystem
from lssvm.solvers.base import eliminate_bias
from lssvm.solvers.exact import CholeskyState, EigenState
from lssvm.solvers.moments import Moments, NystromMap
from lssvm.solvers.primal import number_folds, primal_system, without_fold


@dataclass(eq=False)
class DualPosterior:
    r"""What a dual model knows about its function, given the targets.

    The model is a Gaussian process with covariance :math:`\sigma_f^2 K`, noise of variance
    :math:`\sigma^2 = \sigma_f^2 / C` and a bias of unknown level:

    .. math::

        \sigma^2(x) = \sigma_f^2 \left[ K(x, x) - \theta^T H^{-1} \theta
        + (1 - u^T H^{-1} \theta)^2 / (u^T H^{-1} u) \right], \qquad \theta = R\, K(X, x),

    with H, R and u of `lssvm.solvers.DualSystem`. Without the bias the last term, the uncertainty
    of the bias, is absent and this is eq. (3.60) of [Suykens2002] with
    :math:`C_N = \Omega + I/\gamma`; its :math:`\nu` is :math:`K(x, x)`, so this is the variance of
    the function, not of a new observation, which has :math:`\sigma^2` more.

    The scale :math:`\sigma_f^2` is the one that maximises the (restricted) evidence at the given
    C: :math:`\hat\sigma_f^2 = y^T \alpha / (\sum_i s_i - 1)` (without a bias
    :math:`y^T \alpha / \sum_i s_i`), so :math:`\hat\sigma^2 = (\|e\|^2 + \|w\|^2 / C) / (n - 1)`.

    One Cholesky factorisation, n^3/3, when first needed; it is kept (n^2 numbers) but not pickled.
    Everything is computed in float64.
    """

    system: DualSystem
    Y: FloatArray

    def __post_init__(self) -> None:
        rows, basis = _as_double(self.system.rows), _as_double(self.system.basis)
        self.system = replace(self.system, rows=rows, basis=basis)

    def __getstate__(self) -> dict[str, Any]:
        return {"system": self.system, "Y": self.Y}

    @cached_property
    def state(self) -> CholeskyState:
        """The factorised system."""
        return Cholesky().factorise(self.system)

    @cached_property
    def solved(self) -> tuple[FloatArray, float, FloatArray, FloatArray]:
        """H^-1 u (n,), u^T H^-1 u, beta = G R Y (n, k) and the bias (k,)."""
        u = np.asarray(self.system.u, dtype=np.float64)
        RY = u[:, None] * np.asarray(self.Y, dtype=np.float64)
        solved = self.state.solve(np.asfortranarray(np.column_stack([u, RY])))
        eta, nu = solved[:, 0], solved[:, 1:]
        beta, b = eliminate_bias(eta, nu, u, self.system.bias)
        return eta, float(u @ eta), beta, b

    def expansion(self) -> tuple[FloatArray, FloatArray]:
        """Return the support values (n, k) and the bias (k,) of the model itself."""
        return self.system.u[:, None] * self.solved[2], self.solved[3]

    @cached_property
    def prior_variance(self) -> FloatArray:
        """The estimated scale sigma_f^2 of each output, shape (k,)."""
        u = np.asarray(self.system.u, dtype=np.float64)
        quadratic = np.einsum("nk,nk->k", u[:, None] * self.Y, self.solved[2])
        total = float(u @ u)
        return np.asarray(np.maximum(quadratic, 0.0) / degrees_of_freedom(total, self.system.bias))

    @property
    def noise_variance(self) -> FloatArray:
        """The estimated noise variance sigma^2 = sigma_f^2 / C of each output, shape (k,)."""
        return self.prior_variance / self.system.C

    def variance(self, X: Array) -> FloatArray:
        """Return the variance of the function at the rows ``X`` (t, d), shape (t,).

        In units of `prior_variance`. Cost: n^2 + n d operations a row, in blocks.
        """
        system = self.system
        eta, s, _, _ = self.solved
        X = _as_double(X)
        out = np.asarray(system.kernel.diag(X), dtype=np.float64).copy()
        size = 24 * system.n * system.threads
        rows = block_rows(size, system.budget, n_rows=max(X.shape[0], 1), at_most=512)

        def fill(part: slice) -> None:
            theta, V = self._half(X[part])
            out[part] -= np.einsum("nt,nt->t", V, V)  # [Suykens2002, eq. (3.60)]
            if system.bias:
                out[part] += (1.0 - theta @ eta) ** 2 / s

        run_blocks(fill, slices(X.shape[0], rows), system.threads)
        return np.maximum(out, 0.0)

    def covariance(self, X: Array) -> FloatArray:
        """Return the covariance of the function between the rows ``X`` (t, d), shape (t, t).

        In units of `prior_variance`. Cost: n^2 t + n t^2 operations, (n + t) t numbers.
        """
        eta, s, _, _ = self.solved
        X = _as_double(X)
        t = X.shape[0]
        _require_covariance(t, 2 * self.system.n + 2 * t, self.system.budget)
        theta, V = self._half(X)
        out: FloatArray = np.asarray(self.system.kernel(X, X), dtype=np.float64) - V.T @ V
        if self.system.bias:
            left = 1.0 - theta @ eta
            out += np.outer(left, left / s)
        return out

    def _half(self, X: Array) -> tuple[FloatArray, FloatArray]:
        """Return theta (t, n) and L^-1 theta^T (n, t), where H = L L^T."""
        system = self.system
        theta = np.asarray(system.kernel(X, system.basis), dtype=np.float64) * system.u
        lower = self.state.array  # in C order: its lower triangle is the factor L
        return theta, solve_triangular(lower, theta.T, lower=True, check_finite=False)

    def leave_out(
        self, folds: Sequence[IntArray], share: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        r"""Return what each row would be predicted without its fold, and how surely.

        With :math:`G = H^{-1} - \eta \eta^T / s` and :math:`\beta = G R y` the scaled residuals of
        a fold v are :math:`G_{vv}^{-1} \beta_v` ([An2007]) and their covariance
        :math:`G_{vv}^{-1}` in units of :math:`\sigma_f^2`, noise included. A row's own leverage is
        :math:`h = 1 - G_{ii} / C`; a part r of its weight leaves the residual
        :math:`\beta_i / C / (1 - r h)`. The inverse of H takes another 2 n^3/3 operations.
        """
        system, beta, G = self.system, self.solved[2], self.inverse()
        u = np.asarray(system.u, dtype=np.float64)
        residual, spread = np.empty_like(beta), np.empty(system.n)
        single = np.array([rows[0] for rows in folds if len(rows) == 1], dtype=np.intp)
        diagonal = np.diagonal(G)[single]
        left = diagonal
        if share is not None:  # 1 - r h, times C
            shares = share[single]
            left = (1.0 - shares) * system.C + shares * diagonal
        left = np.where(left > 0, left, np.nan)  # no other row determines this one
        residual[single] = beta[single] / left[:, None]  # [Cawley2004]
        spread[single] = 1.0 / system.C + np.maximum(1.0 - diagonal / system.C, 0.0) / left
        for rows in (rows for rows in folds if len(rows) > 1):
            if len(rows) == system.n:  # nothing would be left to learn from
                return np.full_like(beta, np.nan), np.full(system.n, np.nan)
            inverse = np.linalg.inv(G[np.ix_(rows, rows)])
            residual[rows] = inverse @ beta[rows]  # [An2007]
            spread[rows] = np.diagonal(inverse)
        variance = np.maximum(spread - 1.0 / system.C, 0.0) / u**2
        return self.Y - residual / u[:, None], variance

    def inverse(self) -> FloatArray:
        r"""Return :math:`G = H^{-1} - \eta \eta^T / s` (n, n), without a bias the inverse of H."""
        eta, s = self.solved[:2]
        require(
            24 * self.system.n**2,
            self.system.budget,
            what=f"The inverse of the kernel matrix of {self.system.n:,} rows",
            advice="Use a fixed-size model (FixedSizeLSSVC, FixedSizeLSSVR), or raise "
            "memory_budget.",
        )
        G = self.state.inverse()
        if self.system.bias:
            G -= np.outer(eta, eta / s)
        return G


def degrees_of_freedom(total: float, bias: bool) -> float:
    """Return the observations that are left when a bias has taken one.

    ``total`` is the sum of the weights. Weights that sum to less than 2 would leave nothing; half
    of them are kept.
    """
    return max(total - 1.0, 0.5 * total) if bias else total


def _require_covariance(t: int, numbers: int, budget: int) -> None:
    what = f"The covariance between {t:,} rows"
    advice = "Ask for fewer rows at once, for return_std=True, or raise memory_budget."
    require(8 * numbers * t, budget, what=what, advice=advice)


def _as_double(X: Any) -> Any:
    return X.astype(np.float64) if getattr(X, "dtype", None) == np.float32 else X


@dataclass(eq=False)
class FixedPosterior:
    r"""What a fixed-size model knows about its function, given the moments of its rows.

    With a prior :math:`w \sim N(0, \sigma_f^2 I)` on the weights of the features, noise of variance
    :math:`\sigma^2 = \sigma_f^2 / C` and a bias of unknown level,

    .. math::

        \sigma^2(x) = \sigma^2 \left[ \tilde\varphi^T (A + I/C)^{-1} \tilde\varphi + 1/s \right]
        + \sigma_f^2 \left[ K(x, x) - \varphi^T \varphi \right],

    where :math:`\varphi` are the Nystrom features of x, :math:`\tilde\varphi` the same less their
    mean, A and s the centred gram and the weight of `PrimalSystem`. The first bracket is the
    posterior of w and b, the second what the kernel holds that the prototypes cannot express:
    without it error bars would shrink away from the prototypes. With all rows as prototypes this is
    `DualPosterior`.

    The scale is estimated from the moments alone,
    :math:`\hat\sigma^2 = (\sum_i s_i (y_i - \bar y)^2 - B^T w) / (s - 1)`, which is
    :math:`(\|e\|^2 + \|w\|^2 / C) / (s - 1)` as in the dual model.

    5 m^3 operations when first needed, m^2 numbers kept (not pickled).
    """

    kernel: Kernel
    Z: FloatArray
    map: NystromMap
    moments: Moments
    C: float
    budget: int = 2**31
    threads: int = 1

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @cached_property
    def solved(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """P (m, r) with P^T k~ = L^-1 phi~, the mean (m,), B^T w (k,), and coefficients (m, k)."""
        with small_problem(self.moments.size):
            system = primal_system(self.moments, self.map)
            L = _factor(system.A, self.C)
            half = solve_triangular(L, system.B, lower=True, check_finite=False)
            P = solve_triangular(L, self.map.T.T, lower=True, check_finite=False).T
        return P, system.mean, np.einsum("rk,rk->k", half, half), P @ half

    @cached_property
    def noise_variance(self) -> FloatArray:
        """The estimated noise variance sigma^2 of each output, shape (k,)."""
        moments = self.moments
        centred = moments.squares - moments.target**2 / moments.weight
        left = np.maximum(centred - self.solved[2], 0.0)
        return np.asarray(left / degrees_of_freedom(moments.weight, True))

    @property
    def prior_variance(self) -> FloatArray:
        """The estimated scale sigma_f^2 = C sigma^2 of each output, shape (k,)."""
        return self.noise_variance * self.C

    def variance(self, X: AnyArray) -> FloatArray:
        """Return the variance of the function at the rows ``X`` (t, d), shape (t,).

        In units of `prior_variance`. Cost: 4 m^2 + 2 m d operations a row, in blocks.
        """
        learned, missing, _ = self._pass(X)
        return learned / self.C + missing

    def covariance(self, X: AnyArray) -> FloatArray:
        """Return the covariance of the function between the rows ``X`` (t, d), shape (t, t).

        In units of `prior_variance`. Cost: 4 m^2 t + 4 m t^2 operations, (2 m + t) t numbers.
        """
        X = float_rows(X)
        t, m = X.shape[0], self.Z.shape[0]
        _require_covariance(t, 3 * m + 3 * t, self.budget)
        P, mean, _, _ = self.solved
        K = np.asarray(self.kernel(X, self.Z))
        half, features = (K - mean) @ P, K @ self.map.T
        learned = half @ half.T + 1.0 / self.moments.weight
        return np.asarray(learned / self.C + self.kernel(X, X) - features @ features.T)

    def leave_out(
        self, X: AnyArray, Y: FloatArray, folds: Sequence[IntArray], weight: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        r"""Return what training rows would be predicted without their fold, and how surely.

        With :math:`h = 1/s + \tilde\varphi^T (A + I/C)^{-1} \tilde\varphi` and a fold of weight
        :math:`\mu` and mean target :math:`\bar y` a prediction p becomes
        :math:`\bar y - (\bar y - p) / (1 - \mu h)` ([Cawley2004]) and its variance
        :math:`\sigma^2 h / (1 - \mu h)`. Where a fold is all there is, the prediction is NaN.
        """
        fold_of = number_folds(folds, len(Y))
        learned, missing, fitted = self._pass(X)
        predictions, left = without_fold(fitted, learned, Y, fold_of, weight)
        return predictions, np.asarray(learned / left / self.C + missing)

    def _pass(self, X: AnyArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return h (t,), K(x, x) - phi^T phi (t,) and the fitted values (t, k)."""
        P, mean, _, coef = self.solved
        Z = float_rows(self.Z)
        t, m = X.shape[0], Z.shape[0]
        learned, missing = np.empty(t), np.empty(t)
        fitted = np.empty((t, coef.shape[1]))
        target = self.moments.target / self.moments.weight
        rows = block_rows(40 * m * self.threads, self.budget, n_rows=max(t, 1), at_most=1024)

        def fill(part: slice) -> None:
            block = float_rows(X[part])
            K = np.asarray(self.kernel(block, Z))
            features = K @ self.map.T
            missing[part] = self.kernel.diag(block) - np.einsum("tr,tr->t", features, features)
            K = K - mean
            half = K @ P
            learned[part] = np.einsum("tr,tr->t", half, half) + 1.0 / self.moments.weight
            fitted[part] = K @ coef + target

        run_blocks(fill, slices(t, rows), self.threads)
        return learned, np.maximum(missing, 0.0), fitted


def _factor(A: FloatArray, C: float) -> FloatArray:
    """Return the lower Cholesky factor of A + I/C, and of a little more where it has none."""
    largest = float(np.max(np.diagonal(A), initial=0.0))
    for jitter in (0.0, 1e-14, 1e-12, 1e-10):
        H = np.array(A, order="F")  # as LAPACK takes it
        H[np.diag_indices_from(H)] += 1.0 / C + jitter * largest
        try:
            return np.asarray(cholesky(H, lower=True, overwrite_a=True, check_finite=False))
        except np.linalg.LinAlgError:
            continue
    raise NotPositiveDefiniteError(
        f"The posterior cannot be computed for C={C:.3g}: the system is not positive definite to "
        "rounding. Lower C, or take fewer prototypes."
    )


def left_out_scores(
    moments: Moments,
    C: float,
    features: FloatArray,
    Y: FloatArray,
    fold_of: IntArray,
    weight: FloatArray | None = None,
) -> FloatArray:
    """Return the predictions of a problem on features for rows, by models without their fold."""
    with small_problem(moments.size):
        system = primal_system(moments, None)
        L = _factor(system.A, C)
        half = solve_triangular(L, system.B, lower=True, check_finite=False)
        coef = solve_triangular(L, half, lower=True, trans="T", check_finite=False)
        scores = np.asarray(features @ coef + (system.target_mean - system.mean @ coef))
        used = np.flatnonzero(Y[:, 0])
        centred = (features[used] - system.mean).T
        V = solve_triangular(L, centred, lower=True, overwrite_b=True, check_finite=False)
    leverage = np.einsum("rt,rt->t", V, V) + 1.0 / moments.weight
    numbers = np.unique(fold_of[used], return_inverse=True)[1]
    weight = None if weight is None else weight[used]
    scores[used] = without_fold(scores[used], leverage, Y[used], numbers, weight)[0]
    return scores


@dataclass(frozen=True)
class Evidence:
    """The log evidence of a model at one pair (C, gamma).

    Attributes
    ----------
    value : float
        Log evidence, summed over the outputs.
    gradient : array of shape (2,)
        Its derivatives by log C and log gamma; NaN where the kernel has no gamma.
    prior_variance : array of shape (k,)
        The scale of each output that maximises it.
    """

    value: float
    gradient: FloatArray
    prior_variance: FloatArray


def log_evidence(system: DualSystem, Y: FloatArray, *, with_gradient: bool = True) -> Evidence:
    r"""Return the log evidence of a dual model, its scale chosen best, and its gradient.

    The evidence is the density of the targets as a Gaussian process with covariance
    :math:`\sigma_f^2 H` (eq. (3.56) of [Suykens2002] for :math:`y_{1:N}`). A bias of unknown level
    is integrated out, which leaves :math:`\nu = n - 1` observations and
    :math:`G = H^{-1} - \eta \eta^T / s` in the place of :math:`H^{-1}`; without a bias
    :math:`\nu = n`. At :math:`\hat\sigma_f^2 = y^T G y / \nu` it is

    .. math::

        \log p = -\tfrac12 \left[ \nu \log(2 \pi \hat\sigma_f^2) + \nu + \log \det H
        + \log (u^T H^{-1} u) - \log n \right]

    (the last two terms with a bias only; :math:`-\log n` makes it a density in the contrasts of the
    targets), and

    .. math::

        \frac{\partial \log p}{\partial t} = \tfrac12 \left[
        \beta^T \dot H \beta / \hat\sigma_f^2 - \mathrm{tr}(G \dot H) \right], \qquad
        \beta = G y.

    With weights the noise of a row has the variance :math:`\sigma^2 / s_i`, y is R y and
    :math:`\log \det H` becomes :math:`\log \det(R^{-1} H R^{-1})`.

    One Cholesky factorisation and one inverse: n^3 operations, 3 n^2 numbers (n^3/3 and n^2
    without the gradient).
    """
    Y, u = np.asarray(Y, dtype=np.float64), np.asarray(system.u, dtype=np.float64)
    n, k = Y.shape
    posterior = DualPosterior(system, Y)
    _, s, beta, _ = posterior.solved
    pivots = np.diagonal(posterior.state.array)
    log_det = 2.0 * float(np.sum(np.log(pivots))) - 2.0 * np.sum(np.log(u))
    quadratic = np.einsum("nk,nk->k", u[:, None] * Y, beta)
    value, scale = _value(quadratic, log_det, s, n, system.bias)
    if not with_gradient:
        return Evidence(value, np.full(2, np.nan), scale)
    scaled = beta / np.sqrt(np.where(scale > 0, scale, 1.0))
    # sum over outputs of beta beta^T / scale - G
    inner = scaled @ scaled.T - k * posterior.inverse()
    by_C = 0.5 * float(np.trace(inner)) * (-1.0 / system.C)
    slope = log_gamma_slope(system.kernel, system.rows, system.basis)
    by_gamma = np.nan if slope is None else 0.5 * float(u @ (inner * slope) @ u)
    return Evidence(value, np.array([by_C, by_gamma]), scale)


def evidence_path(state: EigenState, RY: FloatArray, C: FloatArray) -> FloatArray:
    """Return the log evidence of a path of C from one eigendecomposition, shape (c,)."""
    C = np.asarray(C, dtype=np.float64)
    QY = state.Q.T @ np.asarray(RY, dtype=np.float64)
    n = len(state.lam)
    out = np.full(len(C), -np.inf)
    for i, d in enumerate(state.inverse_spectrum(C).T):
        if not np.all(d > 0):
            continue
        quadratic = d @ QY**2
        s = float(d @ state.Qu**2)
        if state.bias:
            quadratic = quadratic - ((d * state.Qu) @ QY) ** 2 / s
        log_det = -float(np.sum(np.log(d))) - 2.0 * float(np.sum(np.log(state.u)))
        out[i] = _value(quadratic, log_det, s, n, state.bias)[0]
    return out


def _value(
    quadratic: FloatArray, log_det: float, s: float, n: int, bias: bool
) -> tuple[float, FloatArray]:
    """Return the log evidence and the scales from y^T G y (k,) and log det H."""
    freedom = n - 1.0 if bias else float(n)
    k = len(quadratic)
    scale = np.maximum(quadratic, 0.0) / degrees_of_freedom(float(n), bias)
    if bias:
        log_det = log_det + np.log(s) - np.log(n)
    tiny = np.finfo(np.float64).tiny
    logs = freedom * np.log(2.0 * np.pi * np.maximum(scale, tiny))
    return -0.5 * float(np.sum(logs) + k * (freedom + log_det)), np.asarray(scale)


def log_gamma_slope(kernel: Kernel, X: Any, Z: Any) -> FloatArray | None:
    """Return the derivative of K(X, Z) by log gamma, shape (n, m); None without a gamma."""
    if isinstance(kernel, (RBF, Laplacian)):  # K = exp(-gamma q): dK / dlog gamma = K log K
        K = np.asarray(kernel(X, Z), dtype=np.float64)
        return K * np.log(np.maximum(K, np.finfo(np.float64).tiny))
    if isinstance(kernel, Matern):
        # exp(-t) of the rougher kernel at the same length; t goes with the root of gamma
        rough = Matern(np.asarray(kernel.gamma) * 2.0 * kernel.nu, nu=0.5)
        t = -np.log(np.maximum(np.asarray(rough(X, Z), dtype=np.float64), 1e-300))
        if kernel.nu == 0.5:
            return np.asarray(-0.5 * t * np.exp(-t))
        if kernel.nu == 1.5:
            return np.asarray(-0.5 * t**2 * np.exp(-t))
        return np.asarray(-t * t * (1.0 + t) * np.exp(-t) / 6.0)
    if isinstance(kernel, Polynomial):
        if kernel.degree == 1:
            return np.asarray(kernel(X, Z), dtype=np.float64) - kernel.coef0
        base = replace(kernel, degree=1)(X, Z)
        lower = replace(kernel, degree=kernel.degree - 1)(X, Z)
        return np.asarray(kernel.degree * (base - kernel.coef0) * lower, dtype=np.float64)
    if hasattr(kernel, "gamma"):
        raise InvalidInputError(
            f"The derivative of {kernel!r} by its gamma is not known: use an rbf, laplacian, "
            "matern or polynomial kernel, or with_gradient=False."
        )
    return None
