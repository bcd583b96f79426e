"""The loaders of the bundled data sets.

Each set is one gzipped CSV file and one entry of the catalogue. Loading costs a few milliseconds
and returns fresh arrays every time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm.datasets.base import Dataset, read_columns, split_rows, to_frame
from lssvm.datasets.catalogue import CATALOGUE


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


def _matrix(columns: list[list[str]], numeric: list[bool]) -> NDArray[Any]:
    """Return the attributes as float64, or as object where some columns are strings."""
    if all(numeric):
        return np.array(columns, dtype=np.float64).T.copy()
    out = np.empty((len(columns[0]), len(columns)), dtype=object)
    for j, (column, is_number) in enumerate(zip(columns, numeric, strict=True)):
        out[:, j] = [float(value) for value in column] if is_number else column
    return out


def _load(name: str, as_frame: bool) -> Dataset:
    """Read one bundled file and join it with what the table says of it."""
    about = CATALOGUE[name]
    columns = read_columns(name)
    split = columns.pop("split", None)
    target = columns.pop("target")
    names = tuple(columns)
    numeric = [not (about.symbolic and key in about.categorical) for key in names]
    dataset = Dataset(
        name=name,
        data=_matrix(list(columns.values()), numeric),
        target=np.array(target).astype(about.target_type),
        feature_names=names,
        categorical_features=about.categorical,
        target_names=about.target_names,
        description=about.description,
        source=about.source,
        licence=about.licence,
        train=split_rows(split, "train"),
        test=split_rows(split, "test"),
    )
    if not as_frame:
        return dataset
    return to_frame(dataset, tuple(c for c in names if c not in about.categorical))


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
