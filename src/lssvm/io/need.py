"""Checks of single values that a model file holds; each raises a `ModelFileError`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.errors import ModelFileError

Shape = Sequence[int | None]


def need(condition: Any, what: str) -> None:
    """Raise where what a file says does not fit together."""
    if not condition:
        raise ModelFileError(f"The file does not fit together: {what}.")


def is_whole(value: Any) -> bool:
    """Say whether a value is a whole number (and no bool)."""
    return type(value) is int


def is_number(value: Any) -> bool:
    """Say whether a value is a finite number (and no bool)."""
    return type(value) in (int, float) and bool(abs(value) < float("inf"))


def _shaped(value: Any, shape: Shape | None, kinds: str, what: str) -> NDArray[Any]:
    need(isinstance(value, np.ndarray) and value.dtype.kind in kinds, f"{what} is no such array")
    if shape is not None:
        fits = len(shape) == value.ndim and all(
            n is None or n == m for n, m in zip(shape, value.shape, strict=True)
        )
        wanted = tuple("any" if n is None else n for n in shape)
        need(fits, f"{what} has shape {value.shape}, not {wanted}")
    array: NDArray[Any] = value
    return array


def floats(value: Any, shape: Shape | None, what: str, *, finite: bool = True) -> NDArray[Any]:
    """Return an array of float64 or float32 of a shape; None stands for any length."""
    array = _shaped(value, shape, "f", what)
    need(not finite or np.all(np.isfinite(array)), f"{what} holds NaN or infinity")
    return array


def wholes(
    value: Any, shape: Shape | None, what: str, low: int | None = None, high: int | None = None
) -> NDArray[Any]:
    """Return an array of whole numbers, at least ``low`` and below ``high``."""
    array = _shaped(value, shape, "iu", what)
    if array.size:
        inside = (low is None or array.min() >= low) and (high is None or array.max() < high)
        need(inside, f"{what} holds numbers outside {low} ... {high}")
    return array


def weights(value: Any, shape: Shape, what: str) -> None:
    """Check weights of rows, or that there are none."""
    if value is not None:
        need(np.all(floats(value, shape, what) >= 0), f"{what} holds negative numbers")


def positive(value: Any, length: int, what: str) -> None:
    """Check one positive number, or as many as there are outputs."""
    if isinstance(value, np.ndarray):
        need(np.all(floats(value, (length,), what) > 0), f"{what} is not positive")
    else:
        need(is_number(value) and value > 0, f"{what} is not positive")


def option(value: Any, options: Sequence[Any], what: str) -> None:
    """Check that a value is one of some."""
    need(
        any(type(value) is type(one) and value == one for one in options),
        f"{what} is {value!r}, not one of {list(options)}",
    )


def instance(value: Any, kind: Any, what: str) -> Any:
    """Return a value of a class."""
    need(isinstance(value, kind), f"{what} is a {type(value).__name__}")
    return value
