"""The evidence of the dual model, and its gradient in (log C, log gamma)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.kernels import RBF, Kernel, Laplacian, Matern, Polynomial
from lssvm.solvers import DualSystem, EigenState
from lssvm.uncertainty.posterior import DualPosterior, degrees_of_freedom


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

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.uncertainty import Evidence
    >>> Evidence(-3.0, np.zeros(2), np.ones(1)).value
    -3.0
    """

    value: float
    gradient: FloatArray
    prior_variance: FloatArray


def log_evidence(system: DualSystem, Y: FloatArray, *, with_gradient: bool = True) -> Evidence:
    r"""Return the log evidence of a dual model, its scale chosen best, and its gradient.

    Parameters
    ----------
    system : DualSystem
        Its C and its kernel's gamma are the point.
    Y : array of shape (n, k)
        Targets; outputs are independent and share (C, gamma).
    with_gradient : bool, default=True
        Whether to compute the gradient; NaN otherwise.

    Returns
    -------
    Evidence

    Notes
    -----
    The evidence is the density of the targets as a Gaussian process with covariance
    :math:`\sigma_f^2 H` (eq. (3.56) of [Suykens2002]_ for :math:`y_{1:N}`). A bias of unknown level
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

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.solvers import DualSystem
    >>> from lssvm.uncertainty import log_evidence
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> wavy = log_evidence(DualSystem(RBF(0.5), X, X, C=100.0), np.sin(X))
    >>> rough = log_evidence(DualSystem(RBF(500.0), X, X, C=100.0), np.sin(X))
    >>> bool(wavy.value > rough.value), wavy.gradient.shape
    (True, (2,))
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
    """Return the log evidence of a path of C from one eigendecomposition, shape (c,).

    Parameters
    ----------
    state : EigenState
        Spectrum of the kernel matrix.
    RY : array of shape (n, k)
        Scaled targets.
    C : array of shape (c,)
        Values of C.

    Notes
    -----
    The value of `log_evidence` at every C for n (k + 2) operations each, after 2 n^2 k; -inf where
    the system is not definite.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.solvers import DualSystem, eigen_state
    >>> from lssvm.uncertainty import evidence_path
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> state = eigen_state(DualSystem(RBF(0.5), X, X, C=1.0))
    >>> low, high = evidence_path(state, np.sin(X), np.array([1e-3, 1e3]))
    >>> bool(low < high)
    True
    """
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
    """Return the derivative of K(X, Z) by log gamma, shape (n, m); None without a gamma.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X, Z : arrays of shape (n, d) and (m, d)
        Rows and prototypes.

    Notes
    -----
    Where gamma has one value per feature all of them are scaled together.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.uncertainty import log_gamma_slope
    >>> log_gamma_slope(RBF(1.0), np.array([[0.0]]), np.array([[1.0]])).round(4)
    array([[-0.3679]])
    """
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
