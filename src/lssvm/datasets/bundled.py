"""The bundled data sets: the `Dataset` record, the catalogue, and a loader for each.

A bundled file is a gzipped CSV with a header: the attributes, then ``target``, then (where there is
an official split) ``split`` with the words ``train`` and ``test``. What a file cannot say itself
(names, terms, types) stands in the catalogue. Loading costs a few milliseconds and returns fresh
arrays every time.
"""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lssvm._core.errors import library


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
    >>> from lssvm.datasets.bundled import read_columns
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
    >>> from lssvm.datasets.bundled import split_rows
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
    >>> from lssvm.datasets.bundled import to_frame
    >>> liver = load_liver()
    >>> to_frame(liver, liver.feature_names).data.columns.tolist()[:2]
    ['mcv', 'alkphos']
    """
    needed = f"as_frame=True for the data set {dataset.name!r} needs pandas"
    pd = library("pandas", needed, "pandas", ", or call the loader with as_frame=False")
    frame = pd.DataFrame(dataset.data, columns=list(dataset.feature_names))
    frame = frame.astype({c: "float64" if c in numeric else "category" for c in frame.columns})
    return replace(dataset, data=frame, target=pd.Series(dataset.target, name="target"))


_UCI = "UCI Machine Learning Repository, which publishes its data sets under CC BY 4.0"


class About(NamedTuple):
    """What the table knows of one bundled file, by the names that `Dataset` has for it."""

    description: str
    source: str
    licence: str
    target_names: tuple[str, ...] = ()
    categorical_features: tuple[str, ...] = ()


_GERMAN = (
    "status history purpose savings employment personal debtors "
    "property plans housing job telephone foreign"
)

CATALOGUE: dict[str, About] = {
    "balance": About(
        "Which way does a balance scale tip, from two weights and two distances? All 5^4 settings; "
        "the greater product of weight and distance wins.",
        "Siegler (1976), data set 'Balance Scale' (bal)",
        _UCI,
        ("balanced", "left", "right"),
    ),
    "concrete": About(
        "Compressive strength of concrete in MPa from its seven ingredients (kg per cubic metre) "
        "and its age in days.",
        "Yeh (1998), data set 'Concrete Compressive Strength' (ccs)",
        _UCI,
    ),
    "german_credit": About(
        "Good or bad credit risk of 1,000 bank customers from 20 attributes, 13 of them symbolic "
        "with the codes of the source (A11, A12, ...).",
        "Hofmann (1994), data set 'Statlog (German Credit Data)', symbolic version (gcr)",
        _UCI,
        ("good", "bad"),
        tuple(_GERMAN.split()),
    ),
    "heart": About(
        "Absence or presence of heart disease in 270 patients from 13 clinical attributes.",
        "Data set 'Statlog (Heart)' (hea)",
        _UCI,
        ("absence", "presence"),
        ("sex", "chest_pain", "fbs", "rest_ecg", "ex_angina", "thal"),
    ),
    "laser": About(
        "Intensity of a far-infrared laser in a chaotic state, a time series: its first 2,000 "
        "values. The competition gave 1,000 of them and asked for the next 100.",
        "Santa Fe Time Series Competition 1991, series A (Weigend and Gershenfeld 1994; "
        "measured by Huebner)",
        "competition data, none stated; redistributed under MIT by the package reservoirpy",
    ),
    "liver": About(
        "Five blood tests and the daily drinks of 345 men. The class is the donors' selector "
        "field, as in all benchmark papers; it marks a split of theirs, not a diagnosis.",
        "BUPA Medical Research Ltd, donated by R. S. Forsyth (1990), data set 'Liver Disorders' "
        "(bld)",
        _UCI,
        ("selector 1", "selector 2"),
    ),
    "ripley": About(
        "Two classes in the plane, each a mixture of two normal distributions; the best possible "
        "error is about 8%.",
        "Ripley (1994, 1996), the original realisation synth.tr and synth.te",
        "none stated by the author; redistributed under GPL-2 | GPL-3 by the R package MASS",
        ("class 0", "class 1"),
    ),
}


def list_datasets() -> list[str]:
    """Return the names of the bundled data sets; ``load_<name>()`` loads one.

    Returns
    -------
    list of str
        The names in alphabetical order.

    Examples
    --------
    >>> from lssvm.datasets import list_datasets
    >>> list_datasets()
    ['balance', 'concrete', 'german_credit', 'heart', 'laser', 'liver', 'ripley']
    """
    return sorted(CATALOGUE)


def _numbers(texts: list[str], kind: type) -> list[Any]:
    """Return texts as numbers of a kind, or as they are where they are none."""
    try:
        return [kind(text) for text in texts]
    except ValueError:
        return list(texts)


def _load(name: str, as_frame: bool) -> Dataset:
    """Read one bundled file and join it with what the table says of it."""
    about, columns = CATALOGUE[name], read_columns(name)
    split, target = columns.pop("split", None), columns.pop("target")
    values = [_numbers(column, float) for column in columns.values()]
    symbolic = any(isinstance(column[0], str) for column in values)
    dataset = Dataset(
        name=name,
        data=np.array(values, dtype=object if symbolic else np.float64).T.copy(),
        target=np.array(_numbers(target, int if about.target_names else float)),
        feature_names=tuple(columns),
        train=split_rows(split, "train"),
        test=split_rows(split, "test"),
        **about._asdict(),
    )
    if not as_frame:
        return dataset
    return to_frame(dataset, tuple(c for c in columns if c not in about.categorical_features))


def load_balance(*, as_frame: bool = False) -> Dataset:
    """Load the balance scale data: 625 rows, 4 attributes, 3 classes (49 B, 288 L, 288 R).

    Parameters
    ----------
    as_frame : bool, default=False
        Return pandas containers (needs pandas) instead of NumPy arrays.

    Returns
    -------
    Dataset
        Attributes, target, names and origin.

    Notes
    -----
    One of the multi-class sets of [Suykens2002, Table 3.2] under the name bal: 416 rows for
    tuning and 209 for testing there, drawn at random.
    Source and terms: Siegler (1976); UCI Machine Learning Repository, CC BY 4.0.

    Examples
    --------
    >>> from lssvm.datasets import load_balance
    >>> balance = load_balance()
    >>> balance.data[1], str(balance.target[1])
    (array([1., 1., 1., 2.]), 'R')
    """
    return _load("balance", as_frame)


def load_concrete(*, as_frame: bool = False) -> Dataset:
    """Load the concrete strength data: 1,030 rows, 8 attributes, a response in MPa.

    Parameters
    ----------
    as_frame : bool, default=False
        Return pandas containers (needs pandas) instead of NumPy arrays.

    Returns
    -------
    Dataset
        Attributes, target, names and origin.

    Notes
    -----
    One of the regression sets of [DeBrabanter2010] under the name ccs.
    Source and terms: Yeh (1998); UCI Machine Learning Repository, CC BY 4.0.

    Examples
    --------
    >>> from lssvm.datasets import load_concrete
    >>> concrete = load_concrete()
    >>> concrete.feature_names[0], float(concrete.data[0, 0]), float(concrete.target[0])
    ('cement', 540.0, 79.99)
    """
    return _load("concrete", as_frame)


def load_german_credit(*, as_frame: bool = False) -> Dataset:
    """Load the German credit data: 1,000 rows, 20 attributes, 700 good and 300 bad risks.

    Parameters
    ----------
    as_frame : bool, default=False
        Return pandas containers (needs pandas) instead of NumPy arrays.

    Returns
    -------
    Dataset
        Attributes, target, names and origin.

    Notes
    -----
    One of the binary sets of [Suykens2002, Table 3.1] under the name gcr. Thirteen attributes are
    symbolic, so ``data`` has dtype object (strings and floats): encode the columns named in
    ``categorical_features`` before fitting.
    Source and terms: Hofmann (1994); UCI Machine Learning Repository, CC BY 4.0.

    Examples
    --------
    >>> from lssvm.datasets import load_german_credit
    >>> credit = load_german_credit()
    >>> credit.data[0, :3].tolist()
    ['A11', 6.0, 'A34']
    >>> len(credit.categorical_features)
    13
    """
    return _load("german_credit", as_frame)


def load_heart(*, as_frame: bool = False) -> Dataset:
    """Load the Statlog heart data: 270 rows, 13 attributes, 150 without and 120 with disease.

    Parameters
    ----------
    as_frame : bool, default=False
        Return pandas containers (needs pandas) instead of NumPy arrays.

    Returns
    -------
    Dataset
        Attributes, target, names and origin.

    Notes
    -----
    One of the binary sets of [Suykens2002, Table 3.1] under the name hea. The six categorical
    attributes are integer codes.
    Source and terms: UCI Machine Learning Repository, CC BY 4.0.

    Examples
    --------
    >>> from lssvm.datasets import load_heart
    >>> heart = load_heart()
    >>> heart.data.shape, heart.target_names
    ((270, 13), ('absence', 'presence'))
    """
    return _load("heart", as_frame)


def load_laser(*, as_frame: bool = False) -> Dataset:
    """Load the Santa Fe laser series: its first 2,000 values, 1,000 for training, 100 to predict.

    Parameters
    ----------
    as_frame : bool, default=False
        Return pandas containers (needs pandas) instead of NumPy arrays.

    Returns
    -------
    Dataset
        Attributes, target, names and origin.

    Notes
    -----
    The time series of [Suykens2002, Fig. 3.6]. ``data`` holds the time index and ``target`` the
    intensity; rows 1,100 and later are in neither part of the split.
    Source and terms: Santa Fe Time Series Competition 1991, series A; redistributed under MIT by
    the package reservoirpy.

    Examples
    --------
    >>> from lssvm.datasets import load_laser
    >>> laser = load_laser()
    >>> series = laser.target
    >>> series[:4], len(laser.train), len(laser.test)
    (array([ 86., 141.,  95.,  41.]), 1000, 100)
    """
    return _load("laser", as_frame)


def load_liver(*, as_frame: bool = False) -> Dataset:
    """Load the BUPA liver data: 345 rows, 6 attributes, 145 of class 1 and 200 of class 2.

    Parameters
    ----------
    as_frame : bool, default=False
        Return pandas containers (needs pandas) instead of NumPy arrays.

    Returns
    -------
    Dataset
        Attributes, target, names and origin.

    Notes
    -----
    One of the binary sets of [Suykens2002, Table 3.1] under the name bld. The class is the donors'
    selector field, as in all benchmark papers.
    Source and terms: BUPA Medical Research Ltd (1990); UCI Machine Learning Repository, CC BY 4.0.

    Examples
    --------
    >>> from lssvm.datasets import load_liver
    >>> liver = load_liver()
    >>> liver.feature_names
    ('mcv', 'alkphos', 'sgpt', 'sgot', 'gammagt', 'drinks')
    """
    return _load("liver", as_frame)


def load_ripley(*, as_frame: bool = False) -> Dataset:
    """Load Ripley's synthetic data: 250 training and 1,000 test rows in the plane, 2 classes.

    Parameters
    ----------
    as_frame : bool, default=False
        Return pandas containers (needs pandas) instead of NumPy arrays.

    Returns
    -------
    Dataset
        Attributes, target, names and origin.

    Notes
    -----
    The two-dimensional example of [Suykens2002, Fig. 3.3] and [Mall2014, Figs. 1 and 2].
    Source and terms: Ripley (1994, 1996); redistributed under GPL-2 | GPL-3 by the R package MASS.

    Examples
    --------
    >>> from lssvm.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> ripley.data[0], int(ripley.target[0])
    (array([0.05100797, 0.16086164]), 0)
    """
    return _load("ripley", as_frame)
