"""Huber and absolute loss for the fixed-size model, by reweighted least squares."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.errors import ConvergenceWarning, NumericalWarning
from lssvm.blocks import ArraySource
from lssvm.features import NystromMap
from lssvm.kernels import Kernel, evaluate_expansion
from lssvm.moments import accumulate
from lssvm.solvers.primal import solve_primal

FloatArray = NDArray[np.float64]

_TUNING = 1.345  # of Huber's loss, in robust standard deviations: 95 % efficient at the normal
_MAD = 1.4826  # median absolute deviation to standard deviation of a normal


def robust_weights(residual: FloatArray, loss: str, scale: float) -> FloatArray:
    r"""Return the weights that turn squared into robust loss at given residuals.

    Parameters
    ----------
    residual : array of shape (n,)
    loss : {"huber", "absolute"}
        Huber: :math:`L(e) = e^2` up to :math:`\delta = 1.345` scales and
        :math:`2 \delta |e| - \delta^2` beyond. Absolute: :math:`L(e) = |e|`.
    scale : float
        Robust standard deviation of the residuals.

    Notes
    -----
    The weight is L'(e) / (2 e); residuals below 1e-6 scales count as that for the absolute loss.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.solvers.reweighting import robust_weights
    >>> robust_weights(np.array([0.1, 13.45]), "huber", 1.0)
    array([1. , 0.1])
    """
    size = np.abs(residual)
    if loss == "huber":
        return np.asarray(np.minimum(1.0, _TUNING * scale / np.maximum(size, 1e-300)))
    return np.asarray(0.5 / np.maximum(size, max(1e-6 * scale, 1e-300)))


def residual_scale(residual: FloatArray, weight: FloatArray | None = None) -> float:
    """Return the robust standard deviation of residuals: 1.4826 times their median size.

    Parameters
    ----------
    residual : array of n numbers
    weight : array of shape (n,) or None, default=None
        A weight of 2 counts as the residual twice.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.solvers.reweighting import residual_scale
    >>> round(residual_scale(np.array([1.0, -2.0, 9.0]), np.array([1.0, 2.0, 0.0])), 4)
    2.9652
    """
    size = np.abs(residual).ravel()
    if weight is None:
        return float(_MAD * np.median(size))
    order = np.argsort(size)
    counted = np.cumsum(np.asarray(weight, dtype=np.float64)[order])
    half = 0.5 * counted[-1]
    at = [np.searchsorted(counted, half * (1.0 + sign * 1e-12)) for sign in (-1, 1)]
    return float(_MAD * size[order[at]].mean())


def solve_reweighted(
    kernel: Kernel,
    X: NDArray[Any],
    y: FloatArray,
    Z: NDArray[Any],
    map: NystromMap,
    C: float,
    loss: str,
    start: tuple[FloatArray, FloatArray],
    weight: FloatArray | None = None,
    *,
    budget: int = 2**31,
    threads: int = 1,
    tol: float = 1e-4,
    max_iter: int = 50,
) -> tuple[FloatArray, FloatArray, int]:
    r"""Minimise :math:`\tfrac12 w^T w + \tfrac C2 \sum_i s_i L(e_i)` for one target.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d)
    y : array of shape (n, 1)
    Z : array of shape (m, d)
    map : NystromMap
    C : float
    loss : {"huber", "absolute"}
        The scale of Huber's loss is that of the residuals of the start.
    start : (array of shape (m, 1), array of shape (1,))
        Coefficients and intercept of the least squares model.
    weight : array of shape (n,) or None
    budget, threads : int
    tol : float, default=1e-4
        Ends when predictions change by less than this part of the scale (root mean square).
    max_iter : int, default=50

    Returns
    -------
    coef : array of shape (m, 1)
    intercept : array of shape (1,)
    iterations : int

    Notes
    -----
    The L1 remark under [DeBrabanter2010]_, eq. (8), which solves a quadratic programme. Reweighting
    takes one pass over the data per iteration, n m^2 operations, and never increases the objective.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.features import nystrom_map
    >>> from lssvm.kernels import Linear
    >>> from lssvm.solvers.reweighting import solve_reweighted
    >>> X = np.arange(9.0)[:, None]
    >>> y = X.copy()
    >>> y[8] = 100.0
    >>> start = (np.array([[5.0]]), np.array([0.0]))
    >>> coef, b, _ = solve_reweighted(Linear(), X, y, np.eye(1), nystrom_map(Linear(), np.eye(1)),
    ...                               1e6, "absolute", start)
    >>> coef.round(3)
    array([[1.]])
    """
    coef, intercept = start

    def fit(coef: FloatArray, intercept: FloatArray) -> FloatArray:
        return evaluate_expansion(kernel, X, Z, coef, intercept, budget=budget, threads=threads)

    fitted = fit(coef, intercept)
    scale = residual_scale(y - fitted, weight)
    if scale == 0.0:
        return coef, intercept, 0
    steps, change = 0, np.inf
    while change > tol * scale and steps < max_iter:
        steps += 1
        factors = robust_weights((y - fitted)[:, 0], loss, scale)
        rows = factors if weight is None else weight * factors
        source = ArraySource(X, y, rows)
        moments = accumulate(kernel, source, Z, budget=budget, threads=threads)[0]
        with warnings.catch_warnings(record=True) as repaired:  # of these systems, the last tells
            warnings.simplefilter("always", NumericalWarning)
            coef, intercept = solve_primal(moments, map, C)
        new = fit(coef, intercept)
        change = float(np.sqrt(np.average(np.square(new - fitted)[:, 0], weights=weight)))
        fitted = new
    for warning in repaired:
        warnings.warn(warning.message, stacklevel=2)
    if change > tol * scale:
        warnings.warn(
            f"loss={loss!r}: predictions still changed by {change / scale:.2g} residual scales "
            f"after {max_iter} reweightings; the model is usable. A smaller C converges faster.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return coef, intercept, steps
