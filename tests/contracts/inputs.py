"""The data sets of the contract cases: small, seeded, rounded to six decimals.

Rounded, so that another mathematical library does not change the rows (and with them the folds,
which are dealt by content).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

NEW_ROWS = 6  # rows that outputs are recorded for
MANY = 9000  # rows of the data sets that are streamed: little memory holds only a sample


@dataclass(frozen=True, eq=False)
class Rows:
    """Training rows, targets and weights, and the rows that outputs are recorded for."""

    task: str
    X: Any
    y: NDArray[Any]
    weight: NDArray[np.float64]
    new: Any

    @property
    def groups(self) -> NDArray[np.intp]:
        """Groups of about six rows that are not neighbours."""
        return np.arange(len(self.y)) * 7 % max(2, len(self.y) // 6)


def _noise(seed: int, n: int, d: int) -> NDArray[np.float64]:
    return np.round(np.random.default_rng(seed).normal(size=(n, d)), 6)


def _features(seed: int, n: int, d: int) -> NDArray[np.float64]:
    """Return rows whose first three columns matter; the others are small."""
    X = _noise(seed, n, d)
    X[:, 3:] *= 0.1
    return np.round(X, 6)


def _surface(X: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]


def _weights(n: int, seed: int) -> NDArray[np.float64]:
    """Weights between a half and two; every seventh is zero."""
    weight = np.round(np.random.default_rng(seed).uniform(0.5, 2.0, size=n), 6)
    return weight * (np.arange(n) % 7 > 0)


def _classes(n: int, edges: list[float], names: list[int], seed: int, d: int = 3) -> Rows:
    X = _features(seed, n, d)
    value = _surface(X) + 0.5 * _noise(seed + 1, n, 1)[:, 0]
    y = np.array(names)[np.digitize(value, edges)]
    task = "classes2" if len(names) == 2 else "classes3+"
    return Rows(task, X, y, _weights(n, seed + 2), _features(seed + 3, NEW_ROWS, d))


def _numbers(n: int, outputs: int, seed: int, d: int = 3, *, spoiled: bool = False) -> Rows:
    X = _features(seed, n, d)
    value = np.stack([_surface(X), X[:, 0] - X[:, 1] ** 2][:outputs], axis=1)
    Y = np.round(value + 0.3 * _noise(seed + 1, n, outputs), 6)
    if spoiled:
        rng = np.random.default_rng(seed + 4)
        for j in range(outputs):  # other rows for other outputs
            Y[rng.permutation(n)[: n // 8], j] += 8.0 + 4.0 * j
        Y = np.round(Y, 6)
    new, weight = _features(seed + 3, NEW_ROWS, d), _weights(n, seed + 2)
    if outputs == 1:
        return Rows("numbers", X, Y[:, 0], weight, new)
    return Rows("outputs", X, Y, weight, new)


def _rough(n: int, outputs: int, seed: int) -> Rows:
    """Targets that need narrow kernels, whose systems rounding does not show in."""
    X = np.round(np.random.default_rng(seed).uniform(-2.0, 2.0, size=(n, 2)), 6)
    value = np.stack([np.sin(4.0 * X[:, 0]) + np.cos(3.0 * X[:, 1]), np.sin(5.0 * X.sum(axis=1))])
    Y = np.round(value[:outputs].T + 0.4 * _noise(seed + 1, n, outputs), 6)
    task, y = ("numbers", Y[:, 0]) if outputs == 1 else ("outputs", Y)
    new = np.round(np.random.default_rng(seed + 3).uniform(-2.0, 2.0, size=(NEW_ROWS, 2)), 6)
    return Rows(task, X, y, _weights(n, seed + 2), new)


def _gram(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    squares = ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)
    return np.round(np.exp(-0.4 * squares), 9)


def _precomputed(rows: Rows) -> Rows:
    return Rows(rows.task, _gram(rows.X, rows.X), rows.y, rows.weight, _gram(rows.new, rows.X))


def _repeated(n: int, seed: int) -> Rows:
    """Few distinct rows, some of them several times."""
    rows = _numbers(n, 1, seed)
    X = np.concatenate([rows.X, rows.X[: n // 3]])
    y = np.concatenate([rows.y, rows.y[: n // 3] + 0.1])
    return Rows(rows.task, X, np.round(y, 6), _weights(len(X), seed + 2), rows.new)


def _frame(name: str) -> Rows:
    """Columns with names, one of them text with three values and one with gaps."""
    import pandas as pd

    plain = rows(name)

    def table(X: Any) -> Any:
        frame = pd.DataFrame(
            np.asarray(X) * [1.0, 10.0, 0.1] + [0.0, 5.0, 0.0], columns=list("abc")
        )
        kinds = np.array(["north", "south", "west"])
        frame["kind"] = kinds[np.digitize(frame["a"], [-0.5, 0.5])]
        frame.loc[np.arange(len(frame)) % 9 == 4, "c"] = np.nan
        return frame

    y = plain.y
    if plain.task.startswith("classes"):
        y = np.array([f"class {label}" for label in y])
    return Rows(plain.task, table(plain.X), y, plain.weight, table(plain.new))


def _mixed(name: str) -> Rows:
    """Columns of every kind: numbers with gaps, few and many texts, dates and truth values."""
    import pandas as pd

    plain = rows(name)

    def table(X: Any) -> Any:
        rng = np.random.default_rng(7)
        level = (np.asarray(X)[:, 1] * 6).astype(int) + rng.integers(0, 4, size=len(X))
        day = np.round(100 * np.asarray(X)[:, 2]).astype("timedelta64[D]")
        frame = pd.DataFrame(
            {
                "size": np.where(np.arange(len(X)) % 9 == 4, np.nan, np.asarray(X)[:, 0]),
                "kind": np.array(["north", "south", "west"])[np.digitize(X[:, 0], [-0.5, 0.5])],
                "town": [f"town {number}" for number in level],  # more than thirty of them
                "day": np.datetime64("2020-01-01") + day,
                "open": np.asarray(X)[:, 1] > 0,
            }
        )
        frame.loc[np.arange(len(X)) % 11 == 5, "kind"] = None
        return frame

    y = plain.y
    if plain.task.startswith("classes"):
        y = np.array([f"class {label}" for label in y])
    return Rows(plain.task, table(plain.X), y, plain.weight, table(plain.new))


def _series(n: int, seed: int, *, inputs: bool) -> Rows:
    noise, drive = _noise(seed, n, 1)[:, 0], _noise(seed + 1, n + NEW_ROWS, 1)
    y = np.zeros(n)
    for t in range(2, n):
        y[t] = 1.5 * y[t - 1] - 0.8 * y[t - 2] + 0.3 * np.sin(2.0 * y[t - 1]) + 0.1 * noise[t]
        if inputs:
            y[t] += 0.5 * drive[t, 0]
    y = np.round(y, 6)
    past, future = (drive[:n], drive[n:]) if inputs else (None, None)
    return Rows("series", past, y, np.ones(n), future)


_MAKERS = {
    "two": lambda: _classes(120, [0.2], [0, 1], 10),
    "uneven": lambda: _classes(140, [1.1], [-1, 1], 20),
    "three": lambda: _classes(150, [-0.4, 0.9], [1, 4, 7], 30),
    "five": lambda: _classes(180, [-1.0, -0.3, 0.4, 1.2], [0, 1, 2, 3, 4], 40),
    "numbers": lambda: _numbers(120, 1, 50),
    "outputs": lambda: _numbers(120, 2, 60),
    "spoiled": lambda: _numbers(120, 1, 70, spoiled=True),
    "spoiled outputs": lambda: _numbers(120, 2, 80, spoiled=True),
    "rough": lambda: _rough(120, 1, 180),
    "rough outputs": lambda: _rough(120, 2, 190),
    "repeated": lambda: _repeated(90, 90),
    "lattice": lambda: _numbers(280, 1, 100),
    "frame three": lambda: _frame("three"),
    "frame numbers": lambda: _frame("numbers"),
    "mixed two": lambda: _mixed("two"),
    "mixed three": lambda: _mixed("three"),
    "mixed numbers": lambda: _mixed("numbers"),
    "parts two": lambda: _classes(3200, [0.2], [0, 1], 200),
    "parts numbers": lambda: _numbers(3200, 1, 210),
    "gram two": lambda: _precomputed(rows("two")),
    "gram three": lambda: _precomputed(rows("three")),
    "gram numbers": lambda: _precomputed(rows("numbers")),
    "many two": lambda: _classes(MANY, [0.9], [0, 1], 110),
    "many three": lambda: _classes(MANY, [-0.4, 0.9], [1, 4, 7], 120),
    "many numbers": lambda: _numbers(MANY, 1, 130),
    "many outputs": lambda: _numbers(MANY, 2, 140),
    "many spoiled": lambda: _numbers(MANY, 2, 150, spoiled=True),
    "series": lambda: _series(160, 160, inputs=False),
    "driven series": lambda: _series(160, 170, inputs=True),
}


@cache
def rows(name: str) -> Rows:
    """Return a data set by its name."""
    return _MAKERS[name]()


def folds(n: int, count: int = 4, seed: int = 5) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return splits (train, test) of n rows, each row tested once, that any estimator takes."""
    part = np.random.default_rng(seed).integers(0, count, size=n)
    return [(np.flatnonzero(part != v), np.flatnonzero(part == v)) for v in range(count)]
