"""Numbers that can be squared twice without leaving those that a computer has."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from lssvm._core.arrays import AnyArray
from lssvm._core.errors import InvalidInputError

LARGEST = 1e60  # squares of squared distances and residuals stay within floating-point numbers
LARGEST32 = 1e15  # and squares themselves where numbers are float32
_GRAM, _GRAM32 = 1e50, 1e25  # the same for kernels


def check_magnitude(
    values: Any, name: str, change: str, *, small: bool = False, dtype: Any = None
) -> None:
    """Raise where numbers are so large or so small that their squares are no numbers.

    Parameters
    ----------
    values : array or sparse matrix
    name : str
        What the error calls them.
    change : str
        What to do.
    small : bool, default=False
        Whether small numbers are as good as zero.
    dtype : dtype or None, default=None
        What is computed with; None: the type of the values.
    """
    numbers: AnyArray = np.asarray(getattr(values, "data", ()) if issparse(values) else values)
    if numbers.size == 0 or numbers.dtype.kind != "f":
        return
    largest = max(float(numbers.max()), -float(numbers.min()))
    computed = numbers.dtype if dtype is None else np.dtype(dtype)
    most = LARGEST if computed.itemsize > 4 else LARGEST32
    if largest > most or (not small and 0.0 < largest < 1.0 / most):
        size = "large" if largest > 1.0 else "small"
        raise InvalidInputError(
            f"{name} has values of magnitude {largest:.3g}, too {size} to compute with as "
            f"{computed}: they have to lie within {1.0 / most:.0e} and {most:.0e}. Use other "
            f"units, or {change}."
        )


def check_gram(diagonal: AnyArray) -> None:
    """Raise where a kernel has values whose squares, or the squares of these, are no numbers."""
    most = _GRAM if diagonal.dtype.itemsize > 4 else _GRAM32
    largest = float(np.max(np.abs(diagonal), initial=0.0))
    if largest > most:
        raise InvalidInputError(
            f"The kernel has values of {largest:.3g}, more than {most:.0e}, to which no system can "
            "be solved: bring the columns of X to one scale (sklearn.preprocessing."
            "StandardScaler), or lower gamma, degree or coef0."
        )
