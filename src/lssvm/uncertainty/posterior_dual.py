"""The dual model as a Gaussian process: error bars and leave-one-out predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotri

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.memory import block_rows, require
from lssvm._core.namespace import Array
from lssvm._core.threads import run_blocks, slices
from lssvm.solvers import Cholesky, DualSystem
from lssvm.solvers.base import eliminate_bias
from lssvm.solvers.cholesky import CholeskyState


@dataclass(eq=False)
class DualPosterior:
    r"""What a dual model knows about its function, given the targets.

    The model is a Gaussian process with covariance :math:`\sigma_f^2 K`, noise of variance
    :math:`\sigma^2 = \sigma_f^2 / C` and a bias of unknown level:

    .. math::

        \sigma^2(x) = \sigma_f^2 \left[ K(x, x) - \theta^T H^{-1} \theta
        + (1 - u^T H^{-1} \theta)^2 / (u^T H^{-1} u) \right], \qquad \theta = R\, K(X, x),

    with H, R and u of `lssvm.solvers.DualSystem`. Without the bias the last term, the uncertainty
    of the bias, is absent and this is eq. (3.60) of [Suykens2002]_ with
    :math:`C_N = \Omega + I/\gamma`; its :math:`\nu` is :math:`K(x, x)`, so this is the variance of
    the function, not of a new observation, which has :math:`\sigma^2` more.

    Parameters
    ----------
    system : DualSystem
        Of the training rows.
    Y : array of shape (n, k)
        Targets.

    Notes
    -----
    The scale :math:`\sigma_f^2` is the one that maximises the (restricted) evidence at the given
    C: :math:`\hat\sigma_f^2 = y^T \alpha / (\sum_i s_i - 1)` (without a bias
    :math:`y^T \alpha / \sum_i s_i`), so :math:`\hat\sigma^2 = (\|e\|^2 + \|w\|^2 / C) / (n - 1)`.

    One Cholesky factorisation, n^3/3, when first needed; it is kept (n^2 numbers) but not pickled.
    Everything is computed in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.solvers import DualSystem
    >>> from lssvm.uncertainty import DualPosterior
    >>> X = np.linspace(0, 3, 7)[:, None]
    >>> posterior = DualPosterior(DualSystem(RBF(1.0), X, X, C=100.0), np.sin(X))
    >>> near, far = posterior.variance(np.array([[1.5], [9.0]]))
    >>> bool(near < 0.01), bool(far > 1.0)  # in units of the prior variance
    (True, True)
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
        require(
            8 * (2 * self.system.n + 2 * t) * t,
            self.system.budget,
            what=f"The covariance between {t:,} rows",
            advice="Ask for fewer rows at once, for return_std=True, or raise memory_budget.",
        )
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

        Parameters
        ----------
        folds : sequence of int arrays
            They partition the rows.
        share : array of shape (n,) or None, default=None
            Which part of its weight leaves with a row that is a fold of its own; None: all.

        Returns
        -------
        predictions : array of shape (n, k)
            NaN where one fold holds all rows.
        variance : array of shape (n,)
            Of the function, in units of `prior_variance`.

        Notes
        -----
        With :math:`G = H^{-1} - \eta \eta^T / s` and :math:`\beta = G R y` the scaled residuals of
        a fold v are :math:`G_{vv}^{-1} \beta_v` ([An2007]_) and their covariance
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
            own = share[single]
            left = (1.0 - own) * system.C + own * diagonal
        left = np.where(left > 0, left, np.nan)  # nothing else says anything of the row
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
        # The transpose is in Fortran order, with the factor in its upper triangle.
        inverse, _ = dpotri(np.array(self.state.array.T, order="F"), lower=0, overwrite_c=1)
        G = np.triu(inverse) + np.triu(inverse, 1).T
        if self.system.bias:
            G -= np.outer(eta, eta / s)
        return np.asarray(G)


def degrees_of_freedom(total: float, bias: bool) -> float:
    """Return the observations that are left when a bias has taken one.

    ``total`` is the sum of the weights. Weights that sum to less than 2 would leave nothing; half
    of them are kept.

    Examples
    --------
    >>> from lssvm.uncertainty.posterior_dual import degrees_of_freedom
    >>> degrees_of_freedom(10.0, True), degrees_of_freedom(10.0, False)
    (9.0, 10.0)
    """
    return max(total - 1.0, 0.5 * total) if bias else total


def _as_double(X: Any) -> Any:
    return X.astype(np.float64) if getattr(X, "dtype", None) == np.float32 else X
