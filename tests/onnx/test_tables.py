"""Pipelines that begin with a prepared table: every kind of column is in the file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.onnx.running import as_table, run

from lssvm import LSSVC, LSSVR
from lssvm._core.errors import InvalidInputError
from lssvm.onnx import to_onnx
from lssvm.preparation import TablePreparation

N = 300


def rentals(seed=0, start="1999-01-01T00:00"):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "number": np.arange(N),
            "pay": rng.lognormal(3.0, 1.0, N),
            "age": np.where(rng.uniform(size=N) < 0.1, np.nan, rng.normal(40.0, 12.0, N)),
            "job": rng.choice(["cook", "smith", "poet", None], N).astype(object),
            "town": [f"town {i}" for i in rng.integers(0, 70, N)],
            "sex": rng.choice(["f", "m"], N),
            "member": rng.uniform(size=N) < 0.3,
            "when": np.datetime64(start) + rng.integers(0, 3_000_000, N),
            "wait": rng.integers(0, 100, N).astype("timedelta64[h]").astype("timedelta64[s]"),
        }
    )
    frame.loc[::17, "when"] = pd.NaT
    return frame


def feed(frame, dtype=np.float64):
    day = np.timedelta64(1, "D")
    return {
        "pay": as_table(frame["pay"].to_numpy(dtype)),
        "age": as_table(frame["age"].to_numpy(dtype)),
        "job": as_table(frame["job"].fillna("").to_numpy(object)),
        "town": as_table(frame["town"].to_numpy(object)),
        "sex": as_table(frame["sex"].to_numpy(object)),
        "member": as_table(frame["member"].to_numpy(dtype)),
        "when": as_table((frame["when"].to_numpy() - np.datetime64("1970-01-01")) / day),
        "wait": as_table((frame["wait"].to_numpy() / day).astype(dtype)),
    }


def new_rows():
    frame = rentals(1, "1897-02-27T00:00")  # over the end of a century that is no leap year
    frame.loc[::7, "job"] = "astronaut"
    frame.loc[::5, "town"] = "elsewhere"
    frame.loc[3::9, "pay"] = np.nan
    frame.loc[4::9, "pay"] = 1e6
    return frame


def target(frame):
    hour = frame["when"].dt.hour.fillna(12)
    return (np.sin(hour / 4) + frame["pay"] / 50 + (frame["sex"] == "f")).to_numpy()


@pytest.mark.parametrize("numbers", ["standardised", "quantiles"])
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-8), ("float32", 1e-3)])
def test_a_regressor_with_every_kind_of_column(numbers, dtype, atol):
    frame = rentals()
    model = make_pipeline(TablePreparation(numbers), LSSVR(C=1.0, gamma=0.05))
    model.fit(frame, target(frame))
    for rows in (frame, new_rows()):
        found = run(model, feed(rows, dtype), dtype=dtype)
        expected = model.predict(rows)
        assert np.std(expected) > 0.1
        np.testing.assert_allclose(found["prediction"][:, 0], expected, atol=atol)


def test_a_classifier_and_its_missing_string():
    frame = rentals()
    labels = np.where(target(frame) > 1.0, "high", "low")
    model = make_pipeline(TablePreparation(), LSSVC(C=1.0, gamma=0.05)).fit(frame, labels)
    given = feed(new_rows())
    given["job"] = np.where(given["job"] == "", "unknown", given["job"])
    found = run(model, given, missing="unknown")
    assert found["label"].tolist() == model.predict(new_rows()).tolist()
    proto = to_onnx(model, missing="unknown")
    assert {p.key: p.value for p in proto.metadata_props}["missing_string"] == "unknown"


def test_grids_of_one_and_two_numbers():
    X = np.column_stack([np.ones(40), np.arange(40) % 2, np.arange(40) ** 2]).astype(float)
    model = make_pipeline(TablePreparation("quantiles", drop=False), LSSVR(C=1.0, gamma=0.5))
    model.fit(X, X[:, 1] + X[:, 2] / 100)
    new = np.array([[1.0, 0.5, 30.0], [2.0, -1.0, 1e9], [0.0, 3.0, -5.0], [np.nan] * 3])
    found = run(model, {f"x{j}": new[:, [j]] for j in range(3)})
    np.testing.assert_allclose(found["prediction"][:, 0], model.predict(new), atol=1e-9)


def test_what_cannot_be_exported_is_said():
    frame = rentals()
    model = make_pipeline(TablePreparation(), LSSVR(C=1.0, gamma=0.05)).fit(frame, target(frame))
    with pytest.raises(InvalidInputError, match="leave X= out"):
        to_onnx(model, X=frame)
    with pytest.raises(InvalidInputError, match=r"'sex' has the string 'm'.*missing="):
        to_onnx(model, missing="m")
    longer = make_pipeline(TablePreparation(), StandardScaler(), LSSVR(C=1.0, gamma=0.05))
    with pytest.raises(InvalidInputError, match="the only transformer"):
        to_onnx(longer.fit(frame, target(frame)))
