"""`lssvm predict` and `lssvm evaluate`: files, pipes, types, probabilities, intervals, metrics."""

import csv
import io

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn import metrics
from tests.cli.running import QUICK, as_csv, good, lssvm, mixed_rows, write_csv

import lssvm as package
from lssvm import scan

NEW = mixed_rows(50, seed=7)


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_classes_and_probabilities_are_those_of_the_model(here):
    write_csv(here / "new.csv", NEW)
    found = table(good("predict", "classes.lssvm", "new.csv", "--proba").out)
    model = package.load("classes.lssvm")
    rows = scan("new.csv", columns=["age", "job", "pay", "kids"])
    assert [row["prediction"] for row in found] == model.predict(rows).tolist()
    p = np.array([[float(row["p_high"]), float(row["p_low"])] for row in found])
    np.testing.assert_allclose(p, model.predict_proba(rows))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_intervals_of_numbers_and_sets_of_classes(here):
    write_csv(here / "new.csv", NEW)
    found = table(good("predict", "numbers.lssvm", "new.csv", "--interval", "0.9").out)
    lower, value, upper = (
        np.array([float(row[name]) for row in found]) for name in ("lower", "prediction", "upper")
    )
    assert np.all(lower < value) and np.all(value < upper)
    truth = np.array([row["value"] for row in NEW])
    assert np.mean((lower <= truth) & (truth <= upper)) > 0.75
    sets = table(good("predict", "classes.lssvm", "new.csv", "--interval", "0.99").out)
    assert {row["set"] for row in sets} <= {"high", "low", "high|low"}
    assert all(row["prediction"] in row["set"].split("|") for row in sets)


def test_pipes_and_files_give_the_same(here):
    text = as_csv(NEW).encode()
    piped = good("predict", "classes.lssvm", "-", stdin=text)
    assert piped.err == "lssvm: 50 rows predicted\n"
    (here / "new.csv").write_bytes(text)
    good("predict", "classes.lssvm", "new.csv", "-o", "p.csv")
    assert (here / "p.csv").read_text() == piped.out
    parquet.write_table(pa.Table.from_pylist(NEW), here / "new.parquet")
    good("predict", "classes.lssvm", "new.parquet", "-o", "p.parquet")
    labels = [row["prediction"] for row in table(piped.out)]
    assert parquet.read_table(here / "p.parquet")["prediction"].to_pylist() == labels
    again = good("predict", "classes.lssvm", "-", stdin=(here / "new.parquet").read_bytes())
    assert again.out == piped.out


def test_kept_columns_stand_beside_their_own_rows(here):
    rows = mixed_rows(40) * 500  # several blocks of rows, and of the reader
    for i, row in enumerate(rows):
        rows[i] = {**row, "id": i}
    write_csv(here / "long.csv", rows)
    words = ("predict", "classes.lssvm", "long.csv", "--keep", "id", "--keep", "job")
    found = table(good(*words).out)
    assert [int(row["id"]) for row in found] == list(range(20_000))
    assert [row["job"] for row in found] == [row["job"] or "" for row in rows]
    labels = [row["prediction"] for row in found]
    assert labels == labels[:40] * 500
    every = table(good("predict", "classes.lssvm", "data.csv", "--keep", "*").out)
    assert list(every[0]) == [*rows[0], "prediction"]


def test_a_file_is_read_with_the_types_of_the_training(tmp_path):
    rows = [{"code": ["7", "8", "x"][i % 3], "n": i, "y": "ab"[i % 3 == 2]} for i in range(90)]
    data = write_csv(tmp_path / "d.csv", rows)
    good("train", data, "-t", "y", "-o", tmp_path / "m.lssvm", *QUICK)
    model = package.load(tmp_path / "m.lssvm")
    assert tuple(model.preparation_.kinds.values()) == ("text", "number")
    for code, n in (("7", "1"), ("", "1"), ("new", ""), ("8", "1.5")):
        answer = good("predict", tmp_path / "m.lssvm", "-", stdin=f"n,code\n{n},{code}\n".encode())
        features = {"code": np.array([code or None], dtype=object), "n": [float(n or "nan")]}
        assert table(answer.out)[0]["prediction"] == model.predict(features)[0]


def test_a_broken_input_leaves_an_older_file_as_it_was(here):
    (here / "p.csv").write_text("old")
    (here / "new.csv").write_text(as_csv(NEW) + "1,2,cook,much,1,low,3\n")
    answer = lssvm("predict", "classes.lssvm", "new.csv", "-o", "p.csv")
    assert answer.code == 2 and "much" in answer.err
    assert (here / "p.csv").read_text() == "old"
    assert not [path for path in here.iterdir() if "partial" in path.name]


def test_metrics_of_classes_are_scikit_learns(here):
    write_csv(here / "new.csv", NEW)
    found = good("evaluate", "classes.lssvm", "new.csv", "--json").json
    predicted = table(good("predict", "classes.lssvm", "new.csv", "--proba").out)
    truth = [row["income"] for row in NEW]
    labels = [row["prediction"] for row in predicted]
    p = np.array([[float(row["p_high"]), float(row["p_low"])] for row in predicted])
    low = np.array(truth) == "low"
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(truth, labels))
    assert found["error"] == pytest.approx(1 - found["accuracy"])
    balanced = metrics.balanced_accuracy_score(truth, labels)
    assert found["balanced_accuracy"] == pytest.approx(balanced)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(truth, p))
    assert found["roc_auc"] == pytest.approx(metrics.roc_auc_score(low, p[:, 1]))
    np.testing.assert_array_equal(found["confusion"], metrics.confusion_matrix(truth, labels))
    precision, recall, _, _ = metrics.precision_recall_fscore_support(truth, labels)
    assert [c["precision"] for c in found["classes"]] == pytest.approx(precision.tolist())
    assert [c["recall"] for c in found["classes"]] == pytest.approx(recall.tolist())
    said = good("evaluate", "classes.lssvm", "new.csv").out
    assert "balanced accuracy" in said and "called high" in said and "on 50 rows" in said
    assert found["baseline"] == max(np.mean(low), 1 - np.mean(low))


def test_weighted_metrics_of_numbers_are_scikit_learns(here):
    write_csv(here / "new.csv", [{**row, "w": row["kids"]} for row in NEW])
    found = good("evaluate", "numbers.lssvm", "new.csv", "--weight", "w", "--json").json
    predicted = table(good("predict", "numbers.lssvm", "new.csv").out)
    made = np.array([float(row["prediction"]) for row in predicted])
    truth = np.array([row["value"] for row in NEW])
    w = {"sample_weight": [row["kids"] for row in NEW]}
    weights = {"weights": w["sample_weight"]}
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(truth, made, **w))
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(truth, made, **w))
    spread = np.average((truth - np.average(truth, weights=w["sample_weight"])) ** 2, **weights)
    assert found["baseline_rmse"] == pytest.approx(np.sqrt(spread))
    assert found["r2"] == pytest.approx(metrics.r2_score(truth, made, **w))


def test_the_held_out_rows_can_be_measured_again(here):
    words = ("train", "data.csv", "-t", "income", "--drop", "value", "-o", "m.lssvm", *QUICK)
    first = good(*words, "--json").json["test"]
    again = good("evaluate", "m.lssvm", "data.csv", "--held-out", "--json").json
    assert {name: again[name] for name in first} == first
    assert good("evaluate", "m.lssvm", "data.csv", "--json").json["rows"] == 160


def test_a_class_that_the_model_does_not_know_counts_as_wrong(here):
    write_csv(here / "new.csv", [{**row, "income": "none"} for row in NEW[:10]] + NEW[10:])
    found = good("evaluate", "classes.lssvm", "new.csv", "--json").json
    known = good("evaluate", "classes.lssvm", "-", "--json", stdin=as_csv(NEW[10:]).encode()).json
    assert found["rows_of_unknown_classes"] == 10
    assert found["accuracy"] == pytest.approx(known["accuracy"] * 40 / 50)
    assert "classes that the model has not seen" in good("evaluate", "classes.lssvm", "new.csv").out


def test_info_names_the_hash_of_the_training_schema(here):
    found = good("info", "classes.lssvm", "--json").json
    assert len(found["schema_sha256"]) == 64


def test_cells_that_a_spreadsheet_would_run_are_escaped_unless_told_otherwise(tmp_path):
    labels = ["=HYPERLINK(1)", "+x", "-y", "@z", "plain"]
    rows = [
        {"x": i % 5 + 0.1 * (i % 3), "d": -i, "=name": f"-n{i}", "y": labels[i % 5]}
        for i in range(150)
    ]
    data = write_csv(tmp_path / "d.csv", rows)
    model = tmp_path / "m.lssvm"
    good("train", data, "-t", "y", "--drop", "=name", "-o", model, *QUICK)
    words = (
        "predict",
        model,
        data,
        "--proba",
        "--interval",
        "0.99",
        "--keep",
        "=name",
        "--keep",
        "d",
    )
    safe, raw = good(*words).out, good(*words, "--no-escape").out
    assert table(safe)[0].keys() == {
        "'=name",
        "d",
        "prediction",
        "set",
        *(f"p_{v}" for v in labels),
    }
    for row, same in zip(table(safe), table(raw), strict=True):
        assert row["d"] == same["d"]  # a number that was kept, with its sign
        for name in ("prediction", "set"):
            run = same[name].startswith(("=", "+", "-", "@"))
            assert row[name] == ("'" if run else "") + same[name]
    cells = [cell for row in csv.reader(io.StringIO(safe)) for cell in row]
    assert not [c for c in cells if c.startswith(("=", "+", "@")) or c.startswith("-n")]
    assert "=HYPERLINK(1)" in {row["prediction"] for row in table(raw)}


def test_names_are_shown_and_never_obeyed(tmp_path):
    import pandas as pd

    evil = "pay\x1b[2J\u202e"
    frame = pd.DataFrame(mixed_rows()).rename(columns={"pay": evil})
    frame["income"] = frame["income"].map({"high": "hi\x1b]0;x\x07", "low": "low"})
    data, model = tmp_path / "d.parquet", tmp_path / "m.lssvm"
    frame.to_parquet(data)
    answers = [
        good("train", data, "-t", "income", "--drop", "value", "-o", model, *QUICK),
        good("info", model),
        good("evaluate", model, data),
        lssvm("train", data, "-t", "pya\x1b", "-o", model),
        lssvm("predict", model, tmp_path / "no\x1b[1m.csv"),
    ]
    for answer in answers:
        said = answer.out + answer.err
        assert "\x1b" not in said and "\u202e" not in said and "\x07" not in said
    assert "\\x1b[2J\\u202e" in answers[1].out and "\\x1b]0;x\\x07" in answers[2].out


@pytest.mark.parametrize("name", ["classes", "numbers"])
def test_the_report_and_the_command_line_say_the_same_of_weighted_rows(here, name):
    from lssvm.report import write_report

    write_csv(here / "new.csv", [{**row, "w": 1 + row["kids"] ** 2} for row in NEW])
    said = good("evaluate", f"{name}.lssvm", "new.csv", "--weight", "w", "--json").json
    columns = ["age", "job", "pay", "kids"]
    target = "income" if name == "classes" else "value"
    rows = scan("new.csv", target, columns=columns, weight="w")
    model = package.load(f"{name}.lssvm")
    figures = write_report(model, here / "r.html", train=rows, test=rows)["metrics"]
    shared = set(figures) & set(said)
    assert len(shared) >= (8 if name == "classes" else 4)
    assert {key: said[key] for key in shared} == {key: figures[key]["value"] for key in shared}
    if name == "classes":
        ends = [figures["accuracy"]["low"], figures["accuracy"]["high"]]
        assert said["accuracy_interval"] == ends
        w = np.array([1 + row["kids"] ** 2 for row in NEW])
        assert w.sum() ** 2 / (w**2).sum() < 0.7 * len(w)  # so that the rule matters
