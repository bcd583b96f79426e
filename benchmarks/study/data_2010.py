"""The twelve data sets of [DeBrabanter2010, tables 5 to 7] and their random splits.

As printed: records with unknown values are removed, 2/3 of the rows (`SIZES`) are drawn at random
for training, and every input is brought to zero mean and unit variance by the training part. What
the print leaves open: categorical strings (`adu` only) become one column of zeros and ones per
value, and these columns together have unit variance, so that the 14 attributes of the print count
alike (with unit variance for each of the 104 columns rare values outweigh all else: 84.8 % instead
of 85.2 % on training rows that were held out); `ftc` comes with such columns, which the print
counts as attributes. The target of a regression is standardised like an input: the
printed errors are in that unit.
"""

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.study.printed_2010 import BINARY_SETS, REGRESSION_SETS, SIZES, Sizes

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Data2010:
    """A data set as numbers: `X` (n, d), `y` (n,), `attribute` (d,) says whose a column is."""

    name: str
    X: Array
    y: NDArray[Any]
    attribute: NDArray[np.intp]

    @property
    def sizes(self) -> Sizes:
        """What the tables say about it."""
        return SIZES[self.name]

    @property
    def kind(self) -> str:
        """One of "binary", "multiclass" and "regression"."""
        if self.name in REGRESSION_SETS:
            return "regression"
        return "binary" if self.name in BINARY_SETS else "multiclass"


@dataclass(frozen=True)
class Part2010:
    """One randomisation, standardised by the mean and spread of its training part."""

    X_train: Array
    y_train: NDArray[Any]
    X_test: Array
    y_test: NDArray[Any]


def encode_2010(frame: Any, name: str) -> Data2010:
    """Turn a data frame with a `target` column into numbers; `ftc` is class 2 against the rest."""
    frame = frame.drop(columns="split", errors="ignore")
    frame = frame[~(frame.isna() | frame.eq("?")).any(axis=1)]
    target = frame["target"].to_numpy()
    inputs = frame.drop(columns="target")
    columns = []
    for column in inputs.columns:
        values = inputs[column].to_numpy()
        if np.issubdtype(values.dtype, np.number):
            columns.append(values.astype(float)[:, None])
        else:
            text = values.astype(str)
            columns.append((text[:, None] == np.unique(text)).astype(float))
    if name in REGRESSION_SETS:
        y = target.astype(float)
    elif name == "ftc":
        y = (target.astype(int) == 2).astype(np.int64)
    else:
        y = np.unique(target.astype(str), return_inverse=True)[1].astype(np.int64)
    attribute = np.repeat(np.arange(len(columns)), [part.shape[1] for part in columns])
    return Data2010(name, np.hstack(columns), y, attribute)


def load_2010(folder: Path, name: str) -> Data2010:
    """Read ``folder/name.parquet`` and check its size against the tables."""
    import pandas as pd

    data = encode_2010(pd.read_parquet(folder / f"{name}.parquet"), name)
    wanted = data.sizes.n_train + data.sizes.n_test
    if len(data.y) != wanted:
        raise ValueError(
            f"{name}: came with {len(data.y)} complete rows; the study needs {wanted}. Use the "
            "file described in tables 5 to 7 of the paper."
        )
    return data


def split_2010(data: Data2010, randomisation: int) -> Part2010:
    """Draw the training and test rows of a randomisation; all methods see the same."""
    rng = np.random.default_rng([randomisation, zlib.crc32(data.name.encode())])
    order = rng.permutation(len(data.y))
    train, test = np.split(order, [data.sizes.n_train])
    X_train, X_test = standardised(data.X[train], data.X[test], data.attribute)
    y_train, y_test = data.y[train], data.y[test]
    if data.kind == "regression":
        y_train, y_test = (y_train[:, None], y_test[:, None])
        y_train, y_test = standardised(y_train, y_test, np.zeros(1, dtype=np.intp))
        y_train, y_test = y_train[:, 0], y_test[:, 0]
    return Part2010(X_train, y_train, X_test, y_test)


def standardised(train: Array, test: Array, attribute: NDArray[np.intp]) -> tuple[Array, Array]:
    """Bring every attribute to zero mean and unit (total) variance on the training rows."""
    mean = train.mean(axis=0)
    spread = np.sqrt(np.bincount(attribute, train.var(axis=0)))[attribute]
    spread = np.where(spread == 0.0, 1.0, spread)
    return (train - mean) / spread, (test - mean) / spread
