"""Weights of rows: as a caller gives them, and checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError


def check_weight(sample_weight: Any, n: int) -> FloatArray | None:
    """Return weights of shape (n,), or None where all of them are 1."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise InvalidInputError(
            f"sample_weight has shape {weight.shape} but X has {n} rows: give one weight per row. "
            "(Sample weights must be 1D array or scalar.)"
        )
    if not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise InvalidInputError(
            "sample_weight has negative, NaN or infinite values: weights must be finite and >= 0."
        )
    used = weight[weight > 0]
    if len(used) and (used.max() > 1e30 or used.min() < 1e-30):
        raise InvalidInputError(
            f"sample_weight has values from {used.min():.3g} to {used.max():.3g}: weights must be "
            "zero or lie within 1e-30 and 1e30. Divide them by a constant, or set what is next to "
            "nothing to zero."
        )
    if not np.any(weight > 0):
        raise InvalidInputError(
            "sample_weight is zero for every row: at least one row must have a positive weight."
        )
    return None if np.all(weight == 1.0) else weight


def times(weight: FloatArray | None, factor: FloatArray | None) -> FloatArray | None:
    """Return the product of two vectors of weights, None standing for ones."""
    if weight is None or factor is None:
        return factor if weight is None else weight
    return np.asarray(weight * factor)


def pick(values: Any, rows: Any) -> Any:
    """Return some rows of what may be None, which stays None."""
    return None if values is None else values[rows]
