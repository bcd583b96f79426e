"""Files of every format give the outputs that the version that wrote them gave.

``version_0_2`` has files of format 2, ``format_3`` and ``format_4`` of formats 3 and 4 (those of
today's format are written by `stored`), one or more of every family of estimators and mode.
``expected.json`` names for every file the new rows and what the model returned for them. Intervals
of the one model of version 0.2 with weights that keeps its rows are not among them: they are
calibrated when first asked for, by today's rule for the scale of weights. Nor are intervals of
forecasts, which count stretches of errors that do not overlap today, and probabilities and
prediction sets of dual models with one score per class (`CALIBRATED_TODAY`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from lssvm import load, save
from lssvm.io import older, read_header

pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories")

HERE = Path(__file__).parent
FORMATS = {"version_0_2": 2, "format_3": 3, "format_4": 4}
# Their files hold out-of-fold scores of several classes, from which probabilities are computed when
# first asked for, by today's rule: how sharp they may be is learned from maps of other rows.
CALIBRATED_TODAY = ("version_0_2/dual_code.lssvm", "format_3/dual_separate.lssvm")
EXPECTED: dict[str, dict[str, Any]] = {
    f"{folder}/{file}": expected
    for folder in FORMATS
    for file, expected in json.loads((HERE / folder / "expected.json").read_text()).items()
}
for file in CALIBRATED_TODAY:
    for name in ("predict_proba", "predict_set"):
        del EXPECTED[file]["outputs"][name]


def rows_of(stored: dict[str, Any] | None) -> Any:
    """Return new rows as the stored model was given them."""
    if stored is None:
        return None
    if "array" in stored:
        return np.array(stored["array"])
    if "sparse" in stored:
        return sparse.csr_matrix(np.array(stored["sparse"]))
    columns = {
        name: np.array(one["dates"], dtype="datetime64[D]") if "dates" in one else one["values"]
        for name, one in next(iter(stored.values())).items()
    }
    if "columns" in stored:
        return columns
    import pandas as pd

    return pd.DataFrame(columns)


def assert_outputs(model: Any, rows: Any, expected: dict[str, Any], tol: float = 1e-10) -> None:
    for name, wanted in expected.items():
        if name == "forecast":
            actual, interval = model.forecast(6, rows, return_interval=True)
            assert np.all(interval[..., 0] < actual) and np.all(actual < interval[..., 1])
        elif name == "std":
            actual = model.predict(rows, return_std=True)[1]
        elif name == "predict_interval":
            actual = model.predict_interval(rows, 0.8)
        elif name == "predict_set":
            actual = model.predict_set(rows, 0.7)
        else:
            actual = getattr(model, name)(rows)
        actual, wanted = np.asarray(actual), np.asarray(wanted)
        if wanted.dtype.kind == "f":
            # Maps to probabilities are fitted when they are first asked for, up to a tolerance.
            near = 1e-7 if name == "predict_proba" else tol
            np.testing.assert_allclose(actual, wanted, rtol=near, atol=near, err_msg=name)
        else:
            np.testing.assert_array_equal(actual, wanted, err_msg=name)


@pytest.mark.parametrize("file", EXPECTED)
def test_a_file_of_an_older_format_gives_the_same_outputs(file: str, tmp_path: Path) -> None:
    expected = EXPECTED[file]
    rows = rows_of(expected["rows"])
    model = load(HERE / file)
    assert_outputs(model, rows, expected["outputs"])
    save(model, tmp_path / "m", keep=expected["keep"])
    assert_outputs(load(tmp_path / "m"), rows, expected["outputs"])


@pytest.mark.parametrize("file", [f for f, one in EXPECTED.items() if "added" in one])
def test_rows_are_added_to_a_model_of_an_older_format(file: str) -> None:
    added = EXPECTED[file]["added"]
    model = load(HERE / file).partial_fit(np.array(added["X"]), added["y"])
    assert_outputs(model, rows_of(EXPECTED[file]["rows"]), added["outputs"], 1e-7)


@pytest.mark.parametrize("file", ["table_mixed.lssvm", "table_regressor_parts.lssvm"])
def test_rows_are_added_to_a_table_model_of_version_0_2(file: str) -> None:
    file = f"version_0_2/{file}"
    model, rows = load(HERE / file), rows_of(EXPECTED[file]["rows"])
    before = model.predict_proba(rows) if "mixed" in file else model.predict(rows)
    columns = {name: [values[0]] * 3 for name, values in {**rows, "one": [1.0]}.items()}
    labels = ["low", "middle", "high"] if "mixed" in file else [5.0, 5.5, 6.0]
    model.partial_fit(columns, labels)
    after = model.predict_proba(rows) if "mixed" in file else model.predict(rows)
    assert np.all(np.isfinite(after))
    assert np.any(before != after)


@pytest.mark.parametrize("file", [f for f, one in EXPECTED.items() if "truncated" in one])
def test_a_greedy_model_of_an_older_format_is_truncated(file: str) -> None:
    expected = EXPECTED[file]
    model = load(HERE / file).truncate(4)
    assert_outputs(model, rows_of(expected["rows"]), expected["truncated"])


@pytest.mark.parametrize("file", EXPECTED)
def test_the_header_of_a_file_of_an_older_format_is_read(file: str) -> None:
    header = read_header(HERE / file)
    model = load(HERE / file)
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    assert header["format"] == FORMATS[file.split("/")[0]]
    assert header["class"] == type(last).__name__
    assert header["keep"] == EXPECTED[file]["keep"]
    assert header["metrics"] == {"error": 0.25}
    if hasattr(last, "classes_"):
        assert header["classes"] == list(last.classes_)


def test_records_and_fields_are_renamed_and_converted_from_step_to_step() -> None:
    first = older.Step(
        {"Old": "New"}, {"Old": {"a": "b"}}, {"Old": lambda fields, _: {**fields, "c": 2}}
    )
    old = {"record": "Old", "fields": {"a": {"record": "Old", "fields": {"a": {"array": "a"}}}}}
    inner = {"record": "New", "fields": {"b": {"array": "a"}, "c": 2}}
    assert first.convert([old]) == [{"record": "New", "fields": {"b": inner, "c": 2}}]


def test_parameters_of_models_for_tables_are_renamed() -> None:
    given = [["drop", True], ["inputs", "quantiles"], ["part_size", 50]]
    for kind, wanted in (("LSSVMClassifier", ["drop", "scaling", "leaf_size"]), ("LSSVC", None)):
        model = {"kind": kind, "parameters": {"dict": given}, "left_out": []}
        converted = older.convert({"record": "Model", "fields": model}, 3)["fields"]
        names = [name for name, _ in converted["parameters"]["dict"]]
        assert names == (wanted or [name for name, _ in given])
