"""A kernel with explicit trend functions, whose coefficients are random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize

from lssvm._core.arrays import Array, FloatArray, device, get_namespace
from lssvm._core.errors import InvalidInputError, not_known, not_usable
from lssvm.kernels.base import Kernel

TRENDS = ("constant", "linear", "quadratic")
"""Trend functions that have a name."""

Functions = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Trend(Kernel):
    r"""A kernel plus explicit functions :math:`f_i` with Gaussian coefficients :math:`a_i`.

    The random function :math:`Z_t = \sum_i a_i f_i(t) + X_t` (eq. (3.67) of [Suykens2002]_), with
    coefficients that are independent of :math:`X_t`, has the expectation and the covariance

    .. math::

        \mathcal E [Z_t] = \sum_i \mathcal E [a_i] f_i(t), \qquad
        \mathrm{Cov}(Z_t, Z_s) = \sum_{i,j} \mathrm{Cov}(a_i, a_j) f_i(t) f_j(s) + \rho(t - s)

    of eq. (3.68), which is what this kernel is.

    Parameters
    ----------
    kernel : Kernel
        :math:`\rho`, such as ``RBF(1.0)``. One without gamma takes that of the estimator.
    functions : {"constant", "linear", "quadratic"} or callable, default="linear"
        The functions :math:`f_i`: 1; the features; the features and their products; or a function
        from rows (n, d) to values (n, q). Without a bias "constant" is
        :math:`\theta_2` of eq. (3.69).
    covariance : float or array of shape (q, q), default=1.0
        :math:`\mathrm{Cov}(a_i, a_j)` in units of :math:`\rho(0)`; a number stands for that times
        the identity. Symmetric and positive semi-definite. The larger, the freer the trend.

    Notes
    -----
    A model's noise variance is 1/C in units of the kernel, so its output is the predictive mean of
    the random function, with the trend and what is left of it estimated together (kriging); far
    from the data it follows the trend where a stationary kernel falls back to the bias. `mean` is
    the expectation for known :math:`\mathcal E [a_i]`: subtract it from the targets and add it to
    the outputs. `coefficients` are the :math:`a_i` that a model has found, less their expectation.
    `learned` finds the variances of the coefficients, and C, by the evidence.

    2 n m q operations beyond those of the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.kernels import RBF, Trend
    >>> X = np.linspace(0, 10, 60)[:, None]
    >>> y = 2.0 * X[:, 0] + np.sin(3 * X[:, 0])
    >>> model = LSSVR(1e3, kernel=Trend(RBF(2.0), "linear", 10.0)).fit(X, y)
    >>> model.predict([[20.0]]).round(0)  # without the trend it would be near the mean of y, 10
    array([40.])
    >>> kernel = model.record_.expansion.kernel
    >>> kernel.coefficients(model.support_vectors_, model.dual_coef_).round(1)
    array([[2.]])
    """

    kernel: Kernel
    functions: Any = "linear"
    covariance: Any = 1.0
    name: ClassVar[str] = "trend"

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel) or isinstance(self.kernel, Trend):
            needed = "give another object of lssvm.kernels, such as RBF(1.0)."
            raise not_usable("kernel", self.kernel, needed)
        if isinstance(self.functions, str):
            if self.functions not in TRENDS:
                needed = f"choose one of {TRENDS}, or a function from rows (n, d) to values (n, q)."
                raise not_known("functions", self.functions, needed)
        elif not callable(self.functions):
            needed = f"choose one of {TRENDS}, or a function from rows (n, d) to values (n, q)."
            raise not_usable("functions", self.functions, needed)
        values = np.asarray(self.covariance, dtype=float)
        square = values.ndim == 0 or (values.ndim == 2 and values.shape[0] == values.shape[1])
        usable = square and bool(np.all(np.isfinite(values)))
        if usable and values.ndim == 2:
            scale = float(np.abs(values).max(initial=0.0))
            usable = bool(np.allclose(values, values.T, atol=1e-12 * scale))
            usable = usable and float(np.linalg.eigvalsh(values).min()) >= -1e-12 * scale
        if not usable or (values.ndim == 0 and values < 0):
            needed = "give a number >= 0, or a symmetric positive semi-definite matrix (q, q)."
            raise not_usable("covariance", self.covariance, needed)

    @property
    def gamma(self) -> Any:
        """That of the kernel; None where the estimator is to give it."""
        return getattr(self.kernel, "gamma", 1.0)

    def with_gamma(self, gamma: Any) -> Trend:
        """Return the same with another gamma of its kernel."""
        return replace(self, kernel=self.kernel.with_gamma(gamma))

    def values(self, X: Array) -> Array:
        """Return the trend functions of the rows, shape (n, q).

        Parameters
        ----------
        X : array of shape (n, d)
            Rows.
        """
        xp = get_namespace(X)
        if self.functions == "constant":
            return xp.ones((X.shape[0], 1), dtype=X.dtype, device=device(X))
        if self.functions == "linear":
            return X
        if self.functions == "quadratic":
            products = [X * X[:, i, None] for i in range(X.shape[1])]
            return xp.concat([X, *(part[:, i:] for i, part in enumerate(products))], axis=1)
        values = xp.asarray(self.functions(X), dtype=X.dtype)
        if values.ndim != 2 or values.shape[0] != X.shape[0]:
            raise InvalidInputError(
                f"functions returned shape {tuple(values.shape)} for rows of shape "
                f"{tuple(X.shape)}: it has to return a value of each function per row, (n, q)."
            )
        return values

    def mean(self, X: Array, expectation: FloatArray) -> Array:
        """Return the expectation (n,) of the rows for given expectations (q,) of the coefficients.

        Eq. (3.68) of [Suykens2002]_.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows.
        expectation : array of shape (q,)
            Expectation of each coefficient.
        """
        values = self.values(X)
        xp = get_namespace(values)
        on_device = xp.asarray(np.asarray(expectation, dtype=np.float64), device=device(values))
        return xp.matmul(values, xp.astype(on_device, values.dtype)[:, None])[:, 0]

    def coefficients(self, Z: FloatArray, dual_coef: FloatArray) -> FloatArray:
        r"""Return the posterior means (q, k) of the coefficients of a model, less expectations.

        :math:`\mathrm{Cov}(a, Z_{1:N}) \alpha = S f(Z)^T \alpha` for support vectors ``Z`` (m, d)
        and coefficients ``dual_coef`` (m, k).

        Parameters
        ----------
        Z : array of shape (m, d)
            Support vectors.
        dual_coef : array of shape (m, k)
            Coefficients of the model.
        """
        return np.asarray(self._spread(self.values(Z).T @ dual_coef))

    def learned(
        self, X: FloatArray, y: FloatArray, *, C: float = 1.0, bias: bool = True
    ) -> tuple[Trend, float]:
        r"""Return the kernel with variances of its coefficients, and C, that make y most likely.

        The evidence is the density of the targets of the random function with noise of variance
        1/C in units of the kernel, at its best scale; a bias has a flat prior. The covariance found
        is diagonal, gamma stays. A few dozen evaluations of n^3 operations each.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows.
        y : array of shape (n,)
            Targets.
        C : float, default=1.0
            Where the search for C starts.
        bias : bool, default=True
            Whether the model has a bias.

        Returns
        -------
        Trend, float
            The kernel and C, for ``LSSVR(C, kernel=kernel)``.
        """
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        F, R, n = np.asarray(self.values(X)), np.asarray(self.kernel(X, X)), len(X)

        def minus(point: FloatArray) -> tuple[float, FloatArray]:
            S, ridge = np.exp(point[:-1]), float(np.exp(-point[-1]))
            H = R + (F * S) @ F.T + ridge * np.eye(n)
            G, log_det, free = np.linalg.inv(H), float(np.linalg.slogdet(H)[1]), n
            if bias:
                total = G.sum(axis=0)
                log_det, free = log_det + np.log(total.sum()), n - 1
                G = G - np.outer(total, total) / total.sum()
            alpha = G @ y
            scale = max(float(y @ alpha) / free, np.finfo(np.float64).tiny)
            value = -0.5 * (free * (np.log(2.0 * np.pi * scale) + 1.0) + log_det)
            slope = 0.5 * S * ((F.T @ alpha) ** 2 / scale - np.einsum("iq,ij,jq->q", F, G, F))
            noise = 0.5 * ridge * (np.trace(G) - alpha @ alpha / scale)
            return -value, -np.append(slope, noise)

        start = np.append(np.zeros(F.shape[1]), np.log(C))
        bounds = [(-20.0, 20.0)] * F.shape[1] + [(-7.0, 14.0)]
        solution = minimize(minus, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        return replace(self, covariance=np.diag(np.exp(solution[:-1]))), float(np.exp(solution[-1]))

    def _spread(self, values: Array) -> Array:
        """Return S times values (q, m)."""
        xp = get_namespace(values)
        if np.ndim(self.covariance) == 0:
            return float(self.covariance) * values
        matrix = np.asarray(self.covariance, dtype=np.float64)
        if matrix.shape[0] != values.shape[0]:
            raise InvalidInputError(
                f"covariance has {matrix.shape[0]} rows but there are {values.shape[0]} trend "
                "functions: give one row and column for each."
            )
        on_device = xp.asarray(matrix, dtype=values.dtype, device=device(values))
        return xp.matmul(on_device, values)

    def __call__(self, X: Array, Z: Array, out: FloatArray | None = None) -> Array:
        """Return the kernel values, shape (n, m)."""
        xp, F, G = get_namespace(X), self.values(X), self.values(Z)
        trend = xp.matmul(F, self._spread(xp.permute_dims(G, (1, 0))))
        rest = self.kernel(X, Z, out)
        if out is not None and rest is out:
            out += trend
            return out
        return rest + trend  # [Suykens2002, eq. (3.68)]

    def diag(self, X: Array) -> Array:
        """Return the variances of the rows, shape (n,)."""
        xp, F = get_namespace(X), self.values(X)
        spread = xp.permute_dims(self._spread(xp.permute_dims(F, (1, 0))), (1, 0))
        return self.kernel.diag(X) + xp.sum(F * spread, axis=1)

    def gradient(self, X: FloatArray, Z: FloatArray, coef: FloatArray) -> FloatArray:
        """Return the gradients of expansions, shape (n, k, d), for the trends that have a name."""
        if not isinstance(self.functions, str):
            raise InvalidInputError(
                "A trend of one's own functions has no gradient in closed form: name one of "
                f"{TRENDS}, or choose a metric of None."
            )
        d, k = X.shape[1], coef.shape[1]
        out = self.kernel.gradient(X, Z, coef)
        if self.functions == "constant":
            return out
        slopes = self.coefficients(Z, coef)  # (q, k)
        out = out + slopes[:d].T[None]
        if self.functions == "quadratic":
            pairs = np.zeros((d, d, k))
            upper = [(i, j) for i in range(d) for j in range(i, d)]
            for slope, (i, j) in zip(slopes[d:], upper, strict=True):
                pairs[i, j] += slope
                pairs[j, i] += slope
            out = out + np.einsum("nj,ijk->nki", X, pairs)
        return np.asarray(out)
