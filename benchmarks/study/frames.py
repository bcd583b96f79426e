"""Data sets as plain numbers, for studies that draw their own rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BINARY_OF = {"ftc": 2}  # the papers' task: this class against the rest
LEFT_OUT = {
    "ims": ("region_pixel_count",),  # constant
    "bike_hour": ("instant", "dteday"),  # the number and the date of the row
}


@dataclass(frozen=True)
class Rows:
    """A data set: `X` (n, d); `y` (n,) class codes, or numbers where `regression` is true."""

    name: str
    X: Array
    y: NDArray[Any]
    regression: bool


@dataclass(frozen=True)
class Drawn:
    """Training and test rows, the inputs standardised by the training part."""

    X_train: Array
    y_train: NDArray[Any]
    X_test: Array
    y_test: NDArray[Any]


def encode(frame: Any, name: str, regression: bool) -> Rows:
    """Turn a data frame with a `target` column into numbers.

    Rows with an unknown value (null or the string ``"?"``) are removed; a column of strings becomes
    one column of integer codes in sorted order.
    """
    left_out = ("split", *LEFT_OUT.get(name, ()))
    frame = frame.drop(columns=[c for c in left_out if c in frame.columns])
    frame = frame[~(frame.isna() | frame.eq("?")).any(axis=1)]
    columns = []
    for column in frame.columns.drop("target"):
        values = frame[column].to_numpy()
        is_text = not np.issubdtype(values.dtype, np.number)
        codes = np.unique(values.astype(str), return_inverse=True)[1] if is_text else values
        columns.append(codes.astype(float))
    target = frame["target"].to_numpy()
    if name in BINARY_OF:
        target = target == BINARY_OF[name]
    y = target.astype(float) if regression else np.unique(target, return_inverse=True)[1]
    return Rows(name, np.column_stack(columns), y, regression)


def load(folder: Path, name: str, *, regression: bool = False) -> Rows:
    """Read ``folder/name.parquet``."""
    import pandas as pd

    return encode(pd.read_parquet(folder / f"{name}.parquet"), name, regression)


def draw(rows: Rows, seed: int, n_train: int, n_test: int) -> Drawn:
    """Draw two thirds of the rows, at most ``n_train``, for training, and others for testing."""
    order = np.random.default_rng(seed).permutation(len(rows.y))
    n_train = min(n_train, 2 * len(order) // 3)
    train, test = order[:n_train], order[n_train : n_train + n_test]
    X = rows.X[train]
    mean, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread == 0.0] = 1.0
    return Drawn((X - mean) / spread, rows.y[train], (rows.X[test] - mean) / spread, rows.y[test])
