"""The 20 data sets of [Suykens2002, tables 3.1 and 3.2] and their random splits."""

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SetSpec:
    """What tables 3.1 and 3.2 say about a data set.

    Parameters
    ----------
    n_train, n_test
        N_CV and N_test of the tables.
    n_attributes
        n of the tables, after `dropped` columns are gone (`wav` has 21 where the print has 19).
    categorical
        Names of the categorical attributes; ``"strings"`` means every column of strings,
        ``"all"`` every column, ``"binary"`` every column of zeros and ones.
    dropped
        Constant columns that the tables do not count.
    fit_rows
        Largest number of training rows that a kernel machine is trained on (`adu` only).
    """

    n_train: int
    n_test: int
    n_attributes: int
    categorical: tuple[str, ...] | str = ()
    dropped: tuple[str, ...] = ()
    fit_rows: int | None = None


SETS: dict[str, SetSpec] = {
    "acr": SetSpec(460, 230, 14, ("A1", "A4", "A5", "A6", "A8", "A9", "A11", "A12")),
    "bld": SetSpec(230, 115, 6),
    "gcr": SetSpec(666, 334, 20, "strings"),
    "hea": SetSpec(180, 90, 13, ("sex", "chest_pain", "fbs", "rest_ecg", "ex_angina", "thal")),
    "ion": SetSpec(234, 117, 33, dropped=("x1",)),
    "pid": SetSpec(512, 256, 8),
    "snr": SetSpec(138, 70, 60),
    "ttt": SetSpec(638, 320, 9, "strings"),
    "wbc": SetSpec(455, 228, 9),
    "adu": SetSpec(33000, 12222, 14, "strings", fit_rows=4000),
    "bal": SetSpec(416, 209, 4),
    "cmc": SetSpec(
        982,
        491,
        9,
        (
            "wife_edu",
            "husband_edu",
            "wife_religion",
            "wife_working",
            "husband_occupation",
            "living_standard",
            "media_exposure",
        ),
    ),
    "ims": SetSpec(1540, 770, 18, dropped=("region_pixel_count",)),
    "iri": SetSpec(100, 50, 4),
    "led": SetSpec(2000, 1000, 7, "all"),
    "thy": SetSpec(4800, 2400, 21, "binary"),
    "usp": SetSpec(6000, 3298, 256),
    "veh": SetSpec(564, 282, 18),
    "wav": SetSpec(2400, 1200, 21),
    "win": SetSpec(118, 60, 13),
}


@dataclass(frozen=True)
class StudyData:
    """A data set as numbers: `X` (n, d), `y` (n,) class codes, `categorical` (d,) flags."""

    name: str
    X: Array
    y: NDArray[np.int64]
    categorical: NDArray[np.bool_]

    @property
    def spec(self) -> SetSpec:
        """The sizes of tables 3.1 and 3.2."""
        return SETS[self.name]

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes."""
        return bool(self.y.max() == 1)


@dataclass(frozen=True)
class Split:
    """One randomisation, its inputs standardised by the mean and spread of the training part."""

    X_train: Array
    y_train: NDArray[np.int64]
    X_test: Array
    y_test: NDArray[np.int64]


def encode(frame: Any, name: str) -> StudyData:
    """Turn a data frame with a `target` column into numbers.

    Rows with an unknown value (null or the string ``"?"``) are removed. Every column of strings
    becomes one column of integer codes, its values in sorted order, so that the number of
    attributes stays the n of the tables.
    """
    spec = SETS[name]
    frame = frame.drop(columns=[c for c in ("split", *spec.dropped) if c in frame.columns])
    frame = frame[~(frame.isna() | frame.eq("?")).any(axis=1)]
    inputs = frame.drop(columns="target")
    columns = []
    categorical = []
    for column in inputs.columns:
        values = inputs[column].to_numpy()
        is_text = not np.issubdtype(values.dtype, np.number)
        codes = np.unique(values.astype(str), return_inverse=True)[1] if is_text else values
        columns.append(codes.astype(float))
        categorical.append(_is_categorical(spec, column, is_text, columns[-1]))
    y = np.unique(frame["target"].to_numpy().astype(str), return_inverse=True)[1]
    return StudyData(name, np.column_stack(columns), y.astype(np.int64), np.array(categorical))


def _is_categorical(spec: SetSpec, column: str, is_text: bool, values: Array) -> bool:
    if spec.categorical == "strings":
        return is_text
    if spec.categorical == "all":
        return True
    if spec.categorical == "binary":
        return bool(np.isin(values, (0.0, 1.0)).all())
    return column in spec.categorical


def load(folder: Path, name: str) -> StudyData:
    """Read ``folder/name.parquet`` and check its size against the tables."""
    import pandas as pd

    data = encode(pd.read_parquet(folder / f"{name}.parquet"), name)
    spec = data.spec
    if data.X.shape[1] != spec.n_attributes or len(data.y) < spec.n_train + spec.n_test:
        raise ValueError(
            f"{name}: came with {data.X.shape[0]} complete rows and {data.X.shape[1]} attributes; "
            f"the study needs at least {spec.n_train + spec.n_test} rows and exactly "
            f"{spec.n_attributes} attributes. Use the file described in table 3.1 or 3.2."
        )
    return data


def split(data: StudyData, randomisation: int) -> Split:
    """Draw N_CV training and N_test test rows at random, without stratification.

    The draw depends on the name of the set and the number of the randomisation only, so all methods
    see the same rows. `wav` has more rows than N_CV + N_test: the rest is left out.
    """
    rng = np.random.default_rng([randomisation, zlib.crc32(data.name.encode())])
    order = rng.permutation(len(data.y))
    train = order[: data.spec.n_train]
    test = order[data.spec.n_train : data.spec.n_train + data.spec.n_test]
    X_train = data.X[train]
    mean, spread = X_train.mean(axis=0), X_train.std(axis=0)
    spread[spread == 0.0] = 1.0
    return Split(
        (X_train - mean) / spread,
        data.y[train],
        (data.X[test] - mean) / spread,
        data.y[test],
    )
