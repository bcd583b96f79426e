"""Generated families with known answers: where a kernel machine wins, and where trees do.

``gen_FAMILY_nROWS_dCOLUMNS``: ROWS training rows (default 1,000) and half as many test rows of
COLUMNS columns (default 10). The answer that made the rows is kept, so that the smallest possible
error is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]
Random = np.random.Generator
_NAME = re.compile(r"gen_(?P<family>[a-z]+)(?:_n(?P<n>\d+))?(?:_d(?P<d>\d+))?")


@dataclass(frozen=True)
class Family:
    """A way of making rows: ``make(n, d, random)`` returns X, the target and the best answer."""

    task: Literal["classes", "numbers"]
    about: str
    make: Callable[[int, int, Random], tuple[Array, NDArray[Any], NDArray[Any]]]


def generate(name: str, seed: int) -> tuple[pd.DataFrame, NDArray[Any], NDArray[Any]]:
    """Return columns, target and best answer of a generated set (training and test together)."""
    found = _NAME.fullmatch(name)
    if found is None or found["family"] not in FAMILIES:
        raise SystemExit(f"{name!r} is no generated set: gen_FAMILY_nROWS_dCOLUMNS with FAMILY of "
                         f"{', '.join(FAMILIES)}")  # fmt: skip
    n, d = int(found["n"] or 1000), int(found["d"] or 10)
    if d < 4:
        raise SystemExit(f"{name!r} has {d} columns: the families need at least 4")
    random = np.random.default_rng([seed, 7])
    X, y, best = FAMILIES[found["family"]].make(n + n // 2, d, random)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(d)]), y, best


def _smooth(n: int, d: int, random: Random) -> tuple[Array, Array, Array]:
    X = random.normal(size=(n, d))
    f = np.sin(X[:, 0] + X[:, 1]) + np.cos(X[:, 2] - X[:, 3]) + 0.5 * X[:, 0] * X[:, 2]
    return X, f + 0.1 * random.normal(size=n), f


def _boxes(X: Array) -> Array:
    """Return a sum of constants on boxes along the axes, the same for all draws."""
    fixed = np.random.default_rng(3)
    f = np.zeros(len(X))
    for _ in range(12):
        chosen = fixed.choice(4, 2, replace=False)
        low = fixed.uniform(-1.5, 0.5, 2)
        inside = ((X[:, chosen] > low) & (X[:, chosen] < low + 1.2)).all(axis=1)
        f += fixed.normal() * inside
    return f


def _axis(n: int, d: int, random: Random) -> tuple[Array, Array, Array]:
    X = random.normal(size=(n, d))
    f = _boxes(X)
    return X, f + 0.1 * random.normal(size=n), f


def _rotated(n: int, d: int, random: Random) -> tuple[Array, Array, Array]:
    X, y, f = _axis(n, d, random)
    return X @ np.linalg.qr(random.normal(size=(d, d)))[0], y, f


def _sparse(n: int, d: int, random: Random) -> tuple[Array, NDArray[Any], NDArray[Any]]:
    X = random.normal(size=(n, d))
    best = (X[:, 0] * X[:, 1] > 0).astype(int)
    return X, _flipped(best, 0.05, random), best


def _noise(n: int, d: int, random: Random) -> tuple[Array, NDArray[Any], NDArray[Any]]:
    X = random.normal(size=(n, d))
    best = (X @ np.linspace(1, 0, d) + 0.5 * np.sin(2 * X[:, 1]) > 0).astype(int)
    return X, _flipped(best, 0.25, random), best


def _imbalance(n: int, d: int, random: Random) -> tuple[Array, NDArray[Any], NDArray[Any]]:
    """Draw a rare class of its own normal distribution; the answer is Bayes' rule."""
    rare, shift, width = 0.04, 1.5, 0.5
    y = (random.uniform(size=n) < rare).astype(int)
    y[:2] = 1
    X = random.normal(size=(n, d)) * np.where(y == 1, width, 1.0)[:, None]
    X[:, :2] += shift * y[:, None]
    centre = np.zeros(d)
    centre[:2] = shift
    common = -0.5 * (X**2).sum(axis=1) + np.log(1 - rare)
    other = -0.5 * (((X - centre) / width) ** 2).sum(axis=1) - d * np.log(width) + np.log(rare)
    return X, y, (other > common).astype(int)


def _duplicates(n: int, d: int, random: Random) -> tuple[Array, NDArray[Any], NDArray[Any]]:
    """Draw every row three times, each time with a label of its own: equal rows disagree."""
    few = -(-n // 3)
    X = random.normal(size=(few, d))
    best = (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int)
    order = random.permutation(np.repeat(np.arange(few), 3))[:n]
    return X[order], _flipped(best[order], 0.2, random), best[order]


def _flipped(y: NDArray[Any], share: float, random: Random) -> NDArray[Any]:
    return np.where(random.uniform(size=len(y)) < share, 1 - y, y)


FAMILIES: dict[str, Family] = {
    "smooth": Family("numbers", "a smooth function of four columns", _smooth),
    "axis": Family("numbers", "constants on boxes along the axes", _axis),
    "rotated": Family("numbers", "the same boxes after a random rotation", _rotated),
    "sparse": Family("classes", "the sign of a product of two columns, 5 % flipped", _sparse),
    "noise": Family("classes", "a nearly linear boundary, 25 % flipped", _noise),
    "imbalance": Family("classes", "4 % of a rare class", _imbalance),
    "duplicates": Family("classes", "every row three times, 20 % flipped", _duplicates),
}
