"""Robust losses of the regressors: tune, weigh down what is far off, tune again, reweight."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.solvers.reweighting import residual_scale, robust_weights

ROUNDS = 2
"""How often a robust model is tuned again: the parameters were at first those of outliers."""


ROUGH: dict[str, Any] = {"tol": 1e-2, "max_iter": 30, "warn": False}
"""Of the fit that only says which rows are far off."""


def rounds(loss: str) -> int:
    """Return how often a model of this loss is tuned again."""
    return 0 if loss == "squared" else ROUNDS


def reweights(loss: str, lowered: bool) -> bool:
    """Return whether coefficients are still to be reweighted.

    ``lowered`` says that tuning has left the weights of "weighted" on the rows.
    """
    return loss != "squared" and not (loss == "weighted" and lowered)


def lower_weights(
    Y: FloatArray, predictions: FloatArray, weight: FloatArray | None, before: FloatArray | None
) -> FloatArray:
    """Return the weights of rows (n,) for the next tuning: those that are far off count little.

    Parameters
    ----------
    Y : array of shape (n, k)
    predictions : array of shape (n, k)
        NaN where there is none. A row is as far off as its worst output.
    weight : array of shape (n,) or None
        As the caller gave them.
    before : array of shape (n,) or None
        Of the tuning before, which rows without a prediction keep.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting.robust import lower_weights
    >>> y = np.array([0.1, -0.1, 0.1, -0.1, 9.0])[:, None]
    >>> lower_weights(y, np.zeros((5, 1)), None, None)
    array([1.e+00, 1.e+00, 1.e+00, 1.e+00, 1.e-04])
    """
    factors = np.ones(len(Y))
    known = np.flatnonzero(np.isfinite(predictions).all(axis=1))
    own = None if weight is None else weight[known]
    if len(known) == 0:  # a criterion without folds: the rows keep what the rough fit gave them
        ones = np.ones(len(Y)) if weight is None else weight
        return np.asarray(ones if before is None else before, dtype=np.float64)
    for y, values in zip(Y[known].T, predictions[known].T, strict=True):
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
    """Return the C of absolute loss that weighs as much as C did for squares."""
    return C * 2.0 * max(residual_scale(residual, weight) / 1.4826, 1e-12)
