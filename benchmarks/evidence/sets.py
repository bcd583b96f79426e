"""The data sets: from a name and a seed to training and test rows, by one rule for all methods.

A name is that of a file, ``spa``, of a real table in the folder ``tables``, ``ames``, or of a
generated family, ``gen_smooth_n1000_d10`` (see `benchmarks.evidence.generated`), and may have a
change behind it:

``spa@100``
    the first 100 training rows of the same split;
``spa+useless``
    as many columns again that are independent standard normal numbers;
``spa+rotated``
    the (standardised) numbers times a random rotation.

The split: 2/3 and 1/3 by the seed, stratified by class, rows
in the order of the file; the columns ``split`` and ``instant`` and constant ones are left out. Of
large sets the first `MOST_ROWS` training rows are taken, fewer where there are many columns
(`MOST_CELLS`), and the first `MOST_ROWS` test rows; a record says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from benchmarks.evidence.generated import FAMILIES, generate

Task = Literal["classes", "numbers"]
Size = Literal["small", "middle", "large"]

MOST_ROWS = 50_000
MOST_CELLS = 5_000_000
LEFT_OUT = frozenset({"split", "instant"})
REGRESSION = frozenset(
    (
        "bho ccs kin8nm bike_hour protein ames carseats chem_scores computers deliveries diamonds "
        "earnings78 gss_vocab gss_wages inst_eval nmes_visits nox slid_wages solder weather_temp "
        "yrbss_weight"
    ).split()
)
MOST_LEVELS = 50
"""Texts of more levels are numbered for peers that take numbers, others become indicators."""

# Names in the order of their rows.
_SMALL = (
    "iri win snr rae_thyroid hea rae_breast_cancer bld ion bho bal acr wbc pid veh ttt gcr ccs "
    "rae_flare_solar ripley cmc rae_titanic rae_image ims"
).split()
_MIDDLE = (
    "led spa rae_waveform wav rae_banana opt lan thy rae_ringnorm rae_twonorm kin8nm usp pen"
).split()
_LARGE = "bike_hour mgt let protein adu shu ftc mnist".split()

# Real tables with text, dates and missing values, in the folder "tables".
_SMALL_TABLES = (
    "pd_speech carseats solder credit_card leaves hmda ames slid_wages hpc nmes_visits resume"
).split()
_MIDDLE_TABLES = "wvs_poverty caravan computers flchain nox lending_club".split()
_LARGE_TABLES = (
    "deliveries yrbss_weight covid_tests earnings78 health_insurance weather_temp gss_vocab "
    "chem_scores rodents gss_wages mpls_stops diamonds inst_eval"
).split()

TABLES = (*_SMALL_TABLES, *_MIDDLE_TABLES, *_LARGE_TABLES)
"""Real tables, by their rows."""

STUDY = (*_SMALL, *_MIDDLE, *_LARGE)
"""The sets of the study: all files but those of `SAME_ROWS` and the time series."""

SAME_ROWS = {"gcr_numeric": "gcr", "rae_german": "gcr", "rae_diabetis": "pid", "a9a": "adu"}
"""Other codings of the rows and classes of a set of the study: they would count twice."""

THIRTY = tuple(
    "iri win snr hea bld ion bho bal acr wbc pid veh ttt gcr ccs cmc rae_image ims spa wav "
    "rae_banana opt lan kin8nm pen bike_hour mgt let protein adu".split()
)
"""Sets with five seeds, whatever their size."""

TITLES = {
    "acr": "Australian credit", "adu": "Adult", "bal": "balance scale", "bho": "Boston housing",
    "bike_hour": "bike sharing", "bld": "liver disorders", "ccs": "concrete",
    "cmc": "contraceptives", "ftc": "Covertype", "gcr": "German credit", "hea": "heart",
    "ims": "image segments", "ion": "ionosphere", "iri": "Iris", "kin8nm": "kin8nm",
    "lan": "Landsat", "led": "LED digits",
    "let": "Letter", "mgt": "Magic", "mnist": "MNIST", "opt": "optical digits", "pen": "pen digits",
    "pid": "Pima diabetes", "protein": "protein", "rae_banana": "banana",
    "rae_breast_cancer": "breast cancer (Ljubljana)", "rae_flare_solar": "solar flares",
    "rae_image": "image, two classes", "rae_ringnorm": "ringnorm", "rae_thyroid": "thyroid (IDA)",
    "rae_titanic": "Titanic", "rae_twonorm": "twonorm", "rae_waveform": "waveform, two classes",
    "ripley": "Ripley", "shu": "Shuttle", "snr": "sonar", "spa": "Spambase", "thy": "thyroid",
    "ttt": "tic-tac-toe", "usp": "USPS", "veh": "vehicles", "wav": "waveform",
    "wbc": "breast cancer", "win": "wine",
}  # fmt: skip

_NAME = re.compile(r"(?P<base>\w+?)(?:@(?P<rows>\d+))?(?:\+(?P<change>useless|rotated))?")


@dataclass(frozen=True)
class Split:
    """Training and test rows of a set; frames as they are, targets as in the file.

    Attributes
    ----------
    task : "classes" or "numbers"
    X_train, X_test : data frames
    y_train, y_test : arrays
    capped : int or None
        To how many training rows the set was cut.
    known : array or None
        For generated rows the best possible predictions of ``y_test``.
    """

    task: Task
    X_train: pd.DataFrame
    y_train: NDArray[Any]
    X_test: pd.DataFrame
    y_test: NDArray[Any]
    capped: int | None = None
    known: NDArray[Any] | None = None


def base_of(name: str) -> str:
    """Return the name without changes, or raise where it is not a name."""
    return _parts(name)[0]


def size_of(name: str) -> Size:
    """Return how large a set is; what is not a file of the study counts as small."""
    base = base_of(name)
    if base in _LARGE or base in _LARGE_TABLES:
        return "large"
    return "middle" if base in _MIDDLE or base in _MIDDLE_TABLES else "small"


def task_of(name: str) -> Task:
    """Return whether classes or numbers are to be predicted."""
    base = base_of(name)
    if base.startswith("gen_"):
        return FAMILIES[base.split("_")[1]].task
    return "numbers" if base in REGRESSION else "classes"


def split(folder: Path | None, name: str, seed: int) -> Split:
    """Return the rows of a set; without a folder those of `BUNDLED` are there."""
    base, rows, change = _parts(name)
    known = None
    if base.startswith("gen_"):
        table, y, known = generate(base, seed)
    else:
        table, y = load(folder, base)
    task = task_of(base)
    # Classes numbered in the order in which they appear: the split depends on it.
    codes = pd.factorize(y)[0] if task == "classes" else None
    place = np.arange(len(y))
    a, b = train_test_split(place, test_size=1 / 3, random_state=seed, stratify=codes)
    most = min(MOST_ROWS, max(1, MOST_CELLS // table.shape[1]), rows or len(a))
    found = Split(
        task,
        table.iloc[a[:most]],
        y[a[:most]],
        table.iloc[b[:MOST_ROWS]],
        y[b[:MOST_ROWS]],
        most if most < len(a) else None,
        None if known is None else known[b[:MOST_ROWS]],
    )
    return found if change is None else _changed(found, change, seed)


BUNDLED = {
    "iri": "iris", "win": "wine", "hea": "heart", "bld": "liver", "bal": "balance",
    "gcr": "german_credit", "ccs": "concrete", "ripley": "ripley",
}  # fmt: skip
"""Sets that come with the package or with scikit-learn."""


def load(folder: Path | None, name: str) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return the columns and the target of a file, rows in its order."""
    if folder is None:
        from sklearn import datasets as theirs

        from lssvm import datasets

        loader = f"load_{BUNDLED[name]}"
        found = getattr(datasets if hasattr(datasets, loader) else theirs, loader)(as_frame=True)
        return found.data, np.asarray(found.target)
    table = pd.read_parquet(folder / ("tables" if name in TABLES else "") / f"{name}.parquet")
    y = table.pop("target").to_numpy()
    table = table[[c for c in table.columns if c not in LEFT_OUT and table[c].nunique() > 1]]
    if "dteday" in table:
        days = pd.to_datetime(table["dteday"])
        table = table.assign(dteday=(days - days.min()).dt.days)
    return table, y


def is_number(column: pd.Series) -> bool:
    """Return whether a column holds numbers (a category of numbers does not)."""
    return pd.api.types.is_numeric_dtype(column) and not isinstance(
        column.dtype, pd.CategoricalDtype
    )


def with_dates_expanded(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which texts that are dates are numbers, for peers that cannot read them."""
    columns: dict[str, pd.Series] = {}
    for name in table:
        column = table[name]
        known = column.dropna()
        if (
            is_number(column)
            or not len(known)
            or not re.match(r"\d{4}-\d\d-\d\d", str(known.iloc[0]))
        ):
            columns[name] = column
            continue
        when = pd.to_datetime(column, errors="coerce", utc=True)
        parts = {"year": when.dt.year, "month": when.dt.month, "day": when.dt.day}
        parts |= {"weekday": when.dt.day_of_week, "hour": when.dt.hour}
        parts["days"] = (when - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
        columns |= {f"{name} {part}": values.astype(float) for part, values in parts.items()}
    return pd.DataFrame(columns, index=table.index)


def numeric(
    train: pd.DataFrame, test: pd.DataFrame
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return numbers with missing ones filled by the median, categories one-hot, of both parts.

    Dates are expanded; categories of more than `MOST_LEVELS` levels are numbered.
    """
    columns = []
    train, test = with_dates_expanded(train), with_dates_expanded(test)
    for name in train:
        a, b = train[name], test[name]
        if is_number(a):
            median = float(a.median())
            columns.append((a.fillna(median).to_numpy(float), b.fillna(median).to_numpy(float)))
            continue
        a, b = (c.astype(object).map(str) for c in (a, b))
        levels = sorted(a.unique())
        if len(levels) > MOST_LEVELS:
            place = {level: float(i) for i, level in enumerate(levels)}
            numbered = (c.map(place).fillna(-1.0).to_numpy(float) for c in (a, b))
            columns.append(tuple(numbered))
            continue
        columns += [
            ((a == level).to_numpy(float), (b == level).to_numpy(float)) for level in levels
        ]
    A, B = (np.column_stack([pair[i] for pair in columns]) for i in (0, 1))
    return A, B


def _parts(name: str) -> tuple[str, int | None, str | None]:
    found = _NAME.fullmatch(name)
    if found is None:
        raise SystemExit(f"{name!r} is no name of a set: NAME, NAME@ROWS, NAME+useless or +rotated")
    rows = found["rows"]
    return found["base"], None if rows is None else int(rows), found["change"]


def _changed(given: Split, change: str, seed: int) -> Split:
    random = np.random.default_rng([seed, 20_260])
    d = given.X_train.shape[1]
    if change == "useless":
        names = [f"useless{j}" for j in range(d)]

        def more(X: pd.DataFrame) -> pd.DataFrame:
            new = pd.DataFrame(random.normal(size=(len(X), d)), columns=names, index=X.index)
            return pd.concat([X, new], axis=1)

        return replace(given, X_train=more(given.X_train), X_test=more(given.X_test))
    A, B = numeric(given.X_train, given.X_test)
    mean, spread = A.mean(axis=0), A.std(axis=0)
    spread[spread == 0] = 1.0
    turn = np.linalg.qr(random.normal(size=(A.shape[1],) * 2))[0]
    names = [f"x{j}" for j in range(A.shape[1])]
    a, b = (pd.DataFrame((X - mean) / spread @ turn, columns=names) for X in (A, B))
    return replace(given, X_train=a, X_test=b)
