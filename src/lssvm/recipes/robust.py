"""Losses that few wrong targets do not decide, around fits by least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.solvers.reweighting import residual_scale, robust_weights

ROUNDS = 2
"""How often a regressor with a robust loss is tuned again."""
ROUGH: dict[str, Any] = {"tol": 1e-2, "max_iter": 30}
"""Of the fit that only says which rows are far off."""


def lower_weights(
    Y: FloatArray, predictions: FloatArray, weight: FloatArray | None, before: FloatArray | None
) -> FloatArray:
    """Return weights of rows, lowered where any output is far from its prediction.

    Parameters
    ----------
    Y, predictions : array of shape (n, k)
        Rows whose predictions are not finite keep the weight that they had ``before``.
    weight, before : array of shape (n,) or None
        Weights of the caller, and of the last round.

    Returns
    -------
    array of shape (n,)
    """
    factors = np.ones(len(Y))
    known = np.flatnonzero(np.isfinite(predictions).all(axis=1))
    own = None if weight is None else weight[known]
    for y, values in zip(np.asarray(Y)[known].T, predictions[known].T, strict=True):
        scale = residual_scale(y - values, own)
        if scale > 0:
            far = robust_weights(y - values, "weighted", scale)
            factors[known] = np.minimum(factors[known], far)
    lowered = factors if weight is None else factors * weight
    if before is not None:
        unknown = np.setdiff1d(np.arange(len(Y)), known)
        lowered[unknown] = before[unknown]
    return lowered


def absolute_C(C: float, residual: FloatArray, weight: FloatArray | None) -> float:
    """Return the C of absolute loss that weighs residuals as C weighs their squares."""
    return C * 2.0 * max(residual_scale(residual, weight) / 1.4826, 1e-12)
