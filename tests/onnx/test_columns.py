"""Models that prepare raw columns: text, missing values and scaling are in the file."""

from __future__ import annotations

import numpy as np
import onnx
import pandas as pd
import pytest
from tests.onnx.running import as_table, check_classifier, operators, run

from lssvm import FixedSizeLSSVC, FixedSizeLSSVR, scan
from lssvm._core.errors import InvalidInputError
from lssvm.codes import Coding
from lssvm.onnx import export, to_onnx

rng = np.random.default_rng(0)
N = 120
TABLE = pd.DataFrame(
    {
        "age": rng.normal(40.0, 12.0, N),
        "job": rng.choice(["cook", "smith", "poet"], N).astype(object),
        "hours": rng.integers(0, 80, N),
        "pay": rng.lognormal(3.0, 1.0, N),
        "town": rng.choice(["Köln", "Gent", "New York"], N).astype(object),
    }
)
SCORE = TABLE["age"] / 12 + (TABLE["job"] == "poet") - (TABLE["town"] == "Gent")
TARGET = np.array(["low", "middle", "high"], dtype=object)[np.digitize(SCORE, [2.5, 3.7])]


def damaged(table):
    table = table.copy()
    table.loc[::7, "age"] = np.nan
    table.loc[3::5, "job"] = None
    table.loc[::11, "pay"] = np.nan
    return table


def new_rows():
    table = damaged(TABLE.iloc[::-1].reset_index(drop=True))
    table.loc[1::6, "job"] = "astronaut"
    table.loc[2::6, "town"] = None
    return table


def feed(table, missing=""):
    return {
        name: (
            table[name].to_numpy(np.float64)
            if table[name].dtype.kind in "if"
            else table[name].fillna(missing).to_numpy(object)
        )[:, None]
        for name in table
    }


def fitted(table, size=25, **options):
    data = scan(table.assign(target=TARGET), target="target", **options)
    return FixedSizeLSSVC(size, C=1.0, gamma=0.2, random_state=0).fit(data)


def test_each_raw_column_is_an_input_of_its_own():
    model = fitted(damaged(TABLE))
    proto = to_onnx(model)
    kinds = {i.name: i.type.tensor_type.elem_type for i in proto.graph.input}
    text, number = onnx.TensorProto.STRING, onnx.TensorProto.DOUBLE
    assert list(kinds.items()) == [
        ("age", number),
        ("job", text),
        ("hours", number),
        ("pay", number),
        ("town", text),
    ]
    assert {domain for domain, _ in operators(proto)} == {"", "ai.onnx.ml"}


def test_missing_and_unknown_values():
    model = fitted(damaged(TABLE))
    assert "job=(missing)" in model.preparation_.feature_names
    rows = new_rows()
    check_classifier(model, rows, run(model, feed(rows)), atol=1e-9)


def test_a_missing_string_that_training_never_saw():
    model = fitted(TABLE)
    assert "job=(missing)" not in model.preparation_.feature_names
    rows = new_rows()
    check_classifier(model, rows, run(model, feed(rows)))


def test_another_word_for_missing():
    table = damaged(TABLE)
    table.loc[4::5, "job"] = ""  # a string like any other
    model = fitted(table)
    assert {"job=", "job=(missing)"} <= set(model.preparation_.feature_names)
    with pytest.raises(InvalidInputError, match=r"'job'.*missing="):
        to_onnx(model)
    rows = new_rows()
    rows.loc[4::6, "job"] = ""
    check_classifier(model, rows, run(model, feed(rows, "<none>"), missing="<none>"))


def test_regression_of_columns():
    y = np.column_stack([TABLE["age"] / 10, TABLE["hours"] / 50])
    data = scan(damaged(TABLE).assign(a=y[:, 0], b=y[:, 1]), target=["a", "b"])
    model = FixedSizeLSSVR(25, C=10.0, gamma=1e-3, random_state=0).fit(data)
    rows = new_rows()
    found = run(model, feed(rows))["prediction"]
    np.testing.assert_allclose(found, model.predict(rows), rtol=0, atol=1e-9)


def test_columns_of_text_alone():
    model = fitted(TABLE[["town", "job"]], size=9)
    rows = new_rows()[["job", "town"]]
    check_classifier(model, rows, run(model, feed(rows)))


def test_columns_of_numbers_alone():
    model = fitted(TABLE[["age", "pay"]])
    rows = new_rows()[["age", "pay"]]
    check_classifier(model, rows, run(model, feed(rows)))
    assert {domain for domain, _ in operators(to_onnx(model))} == {""}


def test_a_column_named_as_an_output_keeps_its_name():
    names = {"age": "label", "job": "scores", "hours": "probabilities", "pay": "lssvm/Concat_7"}
    table = TABLE.rename(columns=names)
    model = fitted(table)
    rows = new_rows().rename(columns=names)
    found = run(model, feed(rows))
    assert list(found) == ["label_", "probabilities_", "scores_"]
    check_classifier(model, rows, {name[:-1]: value for name, value in found.items()})


def test_single_precision_of_columns():
    model = fitted(damaged(TABLE))
    rows = new_rows()
    given = {
        name: value.astype(np.float32) if value.dtype == np.float64 else value
        for name, value in feed(rows).items()
    }
    found = run(model, given, dtype="float32")
    scores = as_table(model.decision_function(rows))
    np.testing.assert_allclose(found["scores"], scores, rtol=0, atol=1e-4)


def test_a_file_scanned_and_exported(tmp_path):
    path = tmp_path / "table.csv"
    damaged(TABLE).assign(target=TARGET).to_csv(path, index=False)
    data = scan(path, target="target")
    model = FixedSizeLSSVC(25, C=1.0, gamma=0.2, multiclass=Coding(threshold="zero")).fit(data)
    rows = new_rows()
    check_classifier(model, rows, run(model, feed(rows)))
    proto = onnx.load(export(model, tmp_path / "model.onnx"))
    facts = {entry.key: entry.value for entry in proto.metadata_props}
    assert facts["feature_names"] == '["age", "job", "hours", "pay", "town"]'


def test_a_scan_of_plain_rows_has_one_input():
    X = rng.normal(size=(60, 3))
    new = rng.normal(size=(30, 3))
    for prepare in (True, False):
        data = scan(X, target=(X[:, 0] > 0).astype(int), prepare=prepare)
        model = FixedSizeLSSVC(20, C=1.0, gamma=0.5).fit(data)
        assert hasattr(model, "preparation_") == prepare
        check_classifier(model, new, run(model, new))
