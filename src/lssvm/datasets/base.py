"""The `Dataset` record and the reader of the bundled files.

A bundled file is a gzipped CSV with a header: the attributes, then ``target``, then (where there is
an official split) ``split`` with the words ``train`` and ``test``.
"""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.errors import MissingDependencyError


@dataclass(frozen=True, eq=False)
class Dataset:
    """One data set: attributes, target, names, origin and, where there is one, the split.

    Attributes
    ----------
    name : str
        The word under which `list_datasets` lists it.
    data : ndarray of shape (n, d), or pandas.DataFrame
        The attributes: float64, or object (numbers and strings) where some are symbolic. A frame
        when the loader was called with ``as_frame=True``.
    target : ndarray of shape (n,), or pandas.Series
        Class labels as the source writes them, or the float64 response.
    feature_names : tuple of str
        The d column names of ``data``.
    categorical_features : tuple of str
        Those columns whose values are categories, whether written as strings or as integer codes.
    target_names : tuple of str
        What the classes mean, in the order of ``numpy.unique(target)``; empty for regression.
    description : str
        The task in a few sentences.
    source : str
        Where the values come from.
    licence : str
        The terms the source states.
    train, test : ndarray of int64, or None
        Row numbers of the official split; None where there is no such split.

    Examples
    --------
    >>> from lssvm.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> ripley.data.shape, ripley.feature_names
    ((1250, 2), ('xs', 'ys'))
    >>> X_train, y_train = ripley.data[ripley.train], ripley.target[ripley.train]
    >>> X_train.shape
    (250, 2)
    >>> ripley
    Dataset('ripley', 1250 rows, 2 attributes, 2 classes, split 250/1000)
    """

    name: str
    data: Any
    target: Any
    feature_names: tuple[str, ...]
    categorical_features: tuple[str, ...]
    target_names: tuple[str, ...]
    description: str
    source: str
    licence: str
    train: NDArray[np.int64] | None = None
    test: NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        task = f"{len(self.target_names)} classes" if self.target_names else "regression"
        n, d = self.data.shape
        split = ""
        if self.train is not None and self.test is not None:
            split = f", split {len(self.train)}/{len(self.test)}"
        return f"Dataset({self.name!r}, {n} rows, {d} attributes, {task}{split})"


def read_columns(name: str) -> dict[str, list[str]]:
    """Return the columns of the bundled file ``name`` as strings, in the order of the file.

    Examples
    --------
    >>> from lssvm.datasets.base import read_columns
    >>> columns = read_columns("balance")
    >>> list(columns)[-1], columns["target"][:3]
    ('target', ['B', 'R', 'R'])
    """
    packed = files("lssvm.datasets").joinpath("data", f"{name}.csv.gz").read_bytes()
    header, *rows = csv.reader(gzip.decompress(packed).decode("utf-8").splitlines())
    return {key: list(column) for key, column in zip(header, zip(*rows, strict=True), strict=True)}


def split_rows(column: list[str] | None, part: str) -> NDArray[np.int64] | None:
    """Return the row numbers marked ``part`` in a split column; None where there is no column.

    Examples
    --------
    >>> from lssvm.datasets.base import split_rows
    >>> split_rows(["train", "test", "train"], "train")
    array([0, 2])
    """
    if column is None:
        return None
    return np.flatnonzero(np.asarray(column) == part).astype(np.int64)


def to_frame(dataset: Dataset, numeric: tuple[str, ...]) -> Dataset:
    """Return ``dataset`` with pandas containers; the columns not in ``numeric`` become categories.

    Examples
    --------
    >>> from lssvm.datasets import load_liver
    >>> from lssvm.datasets.base import to_frame
    >>> liver = load_liver()
    >>> to_frame(liver, liver.feature_names).data.columns.tolist()[:2]
    ['mcv', 'alkphos']
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingDependencyError(
            f"as_frame=True for the data set {dataset.name!r} needs pandas, which is not "
            "installed: run `pip install pandas`, or call the loader with as_frame=False."
        ) from error
    frame = pd.DataFrame(dataset.data, columns=list(dataset.feature_names))
    frame = frame.astype({c: "float64" if c in numeric else "category" for c in frame.columns})
    return replace(dataset, data=frame, target=pd.Series(dataset.target, name="target"))
