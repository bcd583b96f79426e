"""`lssvm train` and `lssvm tune`: what is detected, learned, tested and written."""

import re
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.running import QUICK, as_csv, good, lssvm, mixed_rows, write_csv

import lssvm as package
from lssvm import scan
from lssvm.cli.options import Reading
from lssvm.cli.tables import HoldOut, open_table, stratified
from lssvm.io import read_header

DROP = ("--drop", "id", "--drop", "value")


def train(*words):
    return good("train", *words, *QUICK, "--json").json


def column(values):
    rng = np.random.default_rng(1)
    return [{"x": round(float(rng.normal()), 3), "y": v} for v in values]


@pytest.mark.parametrize(
    ("values", "task", "reason"),
    [
        (["a", "b"] * 20, "classification", "text"),
        (["true", "false"] * 20, "classification", "true or false"),
        ([1, 2, 3, 4] * 10, "classification", "4 different whole numbers"),
        (list(range(20)) * 2, "classification", "20 different whole numbers"),
        (list(range(21)) * 2, "regression", "numbers"),
        (list(range(40)), "regression", "numbers"),
        ([0.5, 1.5] * 20, "regression", "numbers"),
    ],
)
def test_the_task_is_detected_and_said(tmp_path, values, task, reason):
    data = write_csv(tmp_path / "d.csv", column(values))
    words = ("train", data, "-t", "y", "-o", tmp_path / "m.lssvm", *QUICK)
    found = good(*words, "--json").json
    assert (found["task"], found["reason"]) == (task, reason)
    assert f"{task} of 'y'" in good(*words).err


@pytest.mark.parametrize("texts", [100, 101])
def test_more_than_100_texts_are_no_classes_unless_they_are_said_to_be(tmp_path, texts):
    values = [f"t{i}" for i in range(texts)] * 2
    data = write_csv(tmp_path / "d.csv", column(values))
    words = ("train", data, "-t", "y", "-o", tmp_path / "m.lssvm", *QUICK)
    if texts == 101:
        found = lssvm(*words)
        assert found.code == 2 and "--task" in found.err
    else:
        assert good(*words, "--json").json["task"] == "classification"


def test_labels_come_back_as_they_were_written(tmp_path):
    for values, kind in (
        ([1, 2] * 20, "iu"),
        (["true", "false"] * 20, "b"),
        (["a", "1"] * 20, "U"),
    ):
        data = write_csv(tmp_path / "d.csv", column(values))
        train(data, "-t", "y", "-o", tmp_path / "m.lssvm")
        model = package.load(tmp_path / "m.lssvm")
        assert model.classes_.dtype.kind in kind
        text = good("predict", tmp_path / "m.lssvm", data).out.lower().split()[1:]
        assert set(text) <= {str(v).lower() for v in values}


def test_another_task_can_be_asked_for(tmp_path):
    data = write_csv(tmp_path / "d.csv", column([1, 2, 3, 4] * 10))
    found = train(data, "-t", "y", "-o", tmp_path / "m.lssvm", "--task", "regression")
    assert (found["task"], found["reason"]) == ("regression", "as asked")
    assert not hasattr(package.load(tmp_path / "m.lssvm"), "classes_")


def test_the_test_error_is_that_of_rows_the_model_has_not_seen(here):
    found = train("data.csv", "-t", "income", *DROP, "-o", "m.lssvm")
    columns = ["age", "job", "pay", "kids"]
    income = np.array([row["income"] for row in mixed_rows()])
    rows = stratified(np.unique(income, return_inverse=True)[1], 0.2, 0)
    whole = scan("data.csv", "income", columns=columns)
    rest, held = whole.split(0.2, rows=rows)
    assert abs(np.mean(income[rows] == "high") - np.mean(income == "high")) < 0.02
    model = package.load("m.lssvm")
    assert found["test"]["rows"] == held.n_rows
    assert found["test"]["accuracy"] == pytest.approx(model.score(held))
    again = package.FixedSizeLSSVC(25, cv=4, random_state=0).fit(rest)
    np.testing.assert_array_equal(again.predict(held), model.predict(held))
    assert found["test"]["accuracy"] > 0.7


def test_categories_and_missing_values_are_stored_with_the_model(here):
    train("data.csv", "-t", "income", *DROP, "-o", "m.lssvm")
    ready = package.load("m.lssvm").preparation_
    assert ready.names == ("age", "job", "pay", "kids")
    (job,) = (column for column in ready.columns if column.name == "job")
    assert job.encoding.levels == ("clerk", "cook", "smith")
    assert job.encoding.suffixes == ("=clerk", "=cook", "=smith", "=(missing)")
    assert "age=(missing)" in ready.feature_names


def test_a_question_mark_is_a_missing_value_and_others_can_be_named(tmp_path):
    rows = mixed_rows()
    data = tmp_path / "d.csv"
    for sign, words in (("?", ()), ("none", ("--missing", "none"))):
        write_csv(data, rows, missing=sign)
        train(data, "-t", "income", *DROP, *words, "-o", tmp_path / "m.lssvm")
        ready = package.load(tmp_path / "m.lssvm").preparation_
        assert tuple(ready.kinds.values()) == ("number", "text", "number", "number")
        assert "job=(missing)" in ready.feature_names and f"job={sign}" not in ready.feature_names


def test_a_delimiter_a_weight_and_a_parquet_file(tmp_path):
    rows = [{**row, "w": 1 + row["kids"]} for row in mixed_rows()]
    (tmp_path / "d.csv").write_text(as_csv(rows, ";"))
    words = ("-t", "income", "--weight", "w", *DROP, "-o", tmp_path / "m.lssvm")
    first = train(tmp_path / "d.csv", "--delimiter", ";", *words)
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
    second = train(tmp_path / "d.parquet", *words)
    assert first["weight"] == "w"
    assert first["test"]["accuracy"] == pytest.approx(second["test"]["accuracy"])
    model = package.load(tmp_path / "m.lssvm")
    assert "w" not in model.preparation_.names


def test_columns_that_cannot_be_used_are_left_out_and_named(tmp_path):
    rows = mixed_rows(200)
    for i, row in enumerate(rows):
        row["day"], row["name"] = f"2020-01-{i % 28 + 1:02d}", f"name {i}"
    data = write_csv(tmp_path / "d.csv", rows)
    words = ("train", data, "-t", "income", *DROP, "-o", tmp_path / "m.lssvm", *QUICK)
    assert good(*words, "--json").json["left_out"] == ["name"]  # dates are used
    said = good(*words).err
    assert "column 'name' is dropped: every value is different" in said


def test_test_data_of_another_file(here):
    write_csv(here / "test.csv", mixed_rows(90, seed=5))
    found = train("data.csv", "-t", "income", *DROP, "-o", "m.lssvm", "--test-data", "test.csv")
    assert found["test"]["rows"] == 90
    measured = good("evaluate", "m.lssvm", "test.csv", "--json").json
    assert measured["accuracy"] == found["test"]["accuracy"]
    assert found["test_share"] == 0.0  # the model has seen all rows of data.csv


def test_no_test_and_a_refit_to_all_rows(here):
    words = ("data.csv", "-t", "income", *DROP, "-o", "m.lssvm")
    assert train(*words, "--test", "0")["test"] is None
    whole = package.load("m.lssvm")
    found = train(*words, "--refit")
    assert found["test"]["rows"] < 160
    again = package.load("m.lssvm")
    rows = {name: [row[name] for row in mixed_rows(20)] for name in whole.preparation_.names}
    expected = whole.preparation_.transform(rows)
    np.testing.assert_allclose(again.preparation_.transform(rows), expected)
    assert again.C_ != 0 and found["refit"] is True


def test_the_same_seed_gives_the_same_model(here):
    parts = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        train("data.csv", "-t", "income", *DROP, "-o", f"{name}.lssvm", "--seed", seed)
        parts.append(package.load(f"{name}.lssvm").dual_coef_)
    np.testing.assert_array_equal(parts[0], parts[1])
    assert parts[0].shape != parts[2].shape or np.any(parts[0] != parts[2])


def test_what_was_measured_is_in_the_file(here):
    found = train("data.csv", "-t", "income", *DROP, "-o", "m.lssvm", "--reduction", "spfs")
    card = read_header("m.lssvm")["metrics"]
    assert card["target"] == "income" and card["test"] == found["test"]
    assert card["test_share"] == 0.2


def test_the_report_of_a_refit_is_about_the_tested_model(here):
    words = ("data.csv", "-t", "income", *DROP, "-o", "m.lssvm", "--refit", "--report", "r.html")
    found = train(*words)
    page = (here / "r.html").read_text(encoding="utf-8")
    assert "also among the training rows" not in page
    assert "fitted again, to all rows" in page
    assert f"{100 * found['test']['accuracy']:.1f} %" in page


def test_a_report_is_written(here):
    found = train("data.csv", "-t", "income", *DROP, "-o", "m.lssvm", "--report", "r.html")
    assert found["report"] == "r.html"
    page = (here / "r.html").read_text(encoding="utf-8")
    assert "<html" in page and "income" in page


def test_options_reach_the_estimator(here):
    found = train(
        *("data.csv", "-t", "value", "--drop", "income", "-o", "m.lssvm"),
        *("--kernel", "matern", "--C", "3.5", "--gamma", "0.2", "--loss", "huber"),
        *("--selection", "random", "--search", "grid", "--jobs", "1", "--memory", "1 GB"),
    )["parameters"]
    expected = {
        "kernel": "matern",
        "C": 3.5,
        "gamma": 0.2,
        "loss": "huber",
        "selection": "random",
        "search": "grid",
        "n_jobs": 1,
        "memory_budget": "1 GB",
    }
    assert {name: found[name] for name in expected} == expected


def test_printed_settings_reach_the_estimator(here):
    words = ("data.csv", "-t", "income", *DROP, "-o", "m.lssvm")
    found = good(
        *("train", *words, "--prototypes", "2 sqrt(n)", "--intercept", "penalised", "--cv", "4"),
        *("--tuning", "separate", "--multiclass", "moc-counting", "--json"),
    ).json["parameters"]
    expected = {
        "n_prototypes": "2 sqrt(n)",
        "fit_intercept": "penalised",
        "multiclass": "moc-counting",
    }
    assert {name: found[name] for name in expected} == expected
    assert package.load("m.lssvm").n_prototypes_ == 23  # of 128 rows
    assert train(*words, "--reduction", "ssd-printed")["parameters"]["reduction"] == "ssd-printed"


def test_the_other_models_have_their_printed_settings(here):
    words = ("data.csv", "-t", "income", *DROP, "-o", "m.lssvm", "--model")
    good("train", *words, "greedy", "--gamma", "cv", "--C", "4", "--support", "5", "--cv", "3")
    greedy = package.load("m.lssvm").steps[-1][1]
    assert greedy.gamma == "cv" and greedy.gamma_ > 0 and len(greedy.support_) <= 5
    good("train", *words, "dual", "--C", "4", "--gamma", "0.1", "--reduction", "prune", "--cv", "4")
    dual = package.load("m.lssvm").steps[-1][1]
    assert dual.reduction == "prune" and len(dual.support_) < 128


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--reduction", "ssd-printed", "--support", "9"), "--reduction ssd"),
        (("--reduction", "prune"), "spfs, ssd, sv-l0, sd, spfs-printed"),
        (("--model", "dual", "--reduction", "spfs"), "prune, l0"),
        (("--model", "dual", "--intercept", "penalised"), "--model fixed-size"),
        (("--model", "greedy", "--tuning", "separate"), "fixed-size and dual"),
        (("--intercept", "small"), "free, penalised, none"),
        (("--multiclass", "binary"), "moc-counting"),
    ],
)
def test_settings_that_do_not_go_together_say_what_does(here, words, message):
    result = lssvm("train", "data.csv", "-t", "income", *DROP, "-o", "m.lssvm", *words)
    assert result.code != 0 and message in " ".join(result.err.split())


def test_a_code_of_classes_is_not_for_numbers(here):
    words = ("data.csv", "-t", "value", "--drop", "income", "-o", "m.lssvm", "--multiclass", "moc")
    result = lssvm("train", *words)
    assert result.code != 0 and "--multiclass is for a classification" in result.err


def test_support_asks_for_a_reduction(here):
    found = train("data.csv", "-t", "income", *DROP, "-o", "m.lssvm", "--support", "6")
    assert found["parameters"]["support_vectors"] == 6
    assert "method='spfs', size=6" in found["parameters"]["reduction"]


def test_tune_lists_the_best_settings_and_writes_no_model_unasked(here):
    before = sorted(here.iterdir())
    words = ("tune", "data.csv", "-t", "income", *DROP, *QUICK, "--best", "3")
    found = good(*words, "--json").json
    assert [row["rank"] for row in found["best"]] == [1, 2, 3]
    assert (found["best"][0]["C"], found["best"][0]["gamma"]) == (found["C"], found["gamma"])
    scores = [row["score"] for row in found["trace"]]
    assert scores == sorted(scores) and scores[-1] >= found["score"]
    assert "The best of" in good(*words).out
    assert sorted(here.iterdir()) == before
    good(*words, "-o", "t.lssvm")
    assert package.load("t.lssvm").C_ == found["C"]


def test_where_no_row_can_be_held_out_the_model_is_not_tested(tmp_path):
    data = write_csv(tmp_path / "d.csv", column(["a", "b"] * 3))
    found = train(data, "-t", "y", "-o", tmp_path / "m.lssvm", "--test", "0.01")
    assert found["test"] is None and found["test_share"] == 0.0


def test_numbers_can_be_names_of_categories(here):
    rows = mixed_rows()
    parquet.write_table(pa.Table.from_pylist(rows), here / "d.parquet")
    answers = []
    for data in ("data.csv", "d.parquet"):
        words = (data, "-t", "income", *DROP, "--category", "kids", "-o", "m.lssvm")
        answers.append(train(*words)["test"]["accuracy"])
        ready = package.load("m.lssvm").preparation_
        assert tuple(ready.kinds.values()) == ("number", "text", "number", "text")
        assert ready.columns[-1].encoding.levels == ("0", "1", "2", "3")
    assert answers[0] == answers[1]
    out = [good("predict", "m.lssvm", data).out for data in ("data.csv", "d.parquet")]
    assert out[0] == out[1]


def test_models_of_python_are_described_and_used_by_the_names_of_their_columns(here):
    import pandas as pd

    frame = pd.DataFrame(mixed_rows())[["pay", "kids"]]
    model = package.LSSVC(C=1.0).fit(frame, [row["income"] for row in mixed_rows()])
    package.save(model, "dual.lssvm")
    assert good("info", "dual.lssvm", "--json").json["model"] == "LSSVC"
    answer = good("predict", "dual.lssvm", "data.csv", "-q")
    assert answer.out.split()[1:] == model.predict(frame).tolist() and answer.err == ""
    assert good("evaluate", "dual.lssvm", "data.csv", "-t", "income").err == ""


def test_a_linear_kernel_has_no_gamma_to_tell_of(here):
    words = ("train", "data.csv", "-t", "income", *DROP, "--kernel", "linear", *QUICK)
    assert "gamma" not in good(*words, "-o", "line.lssvm").out


def test_large_identifiers_do_not_outweigh_the_other_columns(tmp_path):
    rows = [
        {"id": 10**24 + i, "a": (7 * i) % 100, "y": int((7 * i) % 100 > 50)} for i in range(200)
    ]
    data = write_csv(tmp_path / "d.csv", rows)
    words = ("train", data, "-t", "y", *QUICK, "-o", tmp_path / "m.lssvm", "--json")
    assert good(*words).json["test"]["accuracy"] > 0.9


def test_classes_have_their_share_of_the_rows_held_out_and_rare_ones_are_named(tmp_path):
    rng = np.random.default_rng(0)
    labels = ["a"] * 150 + ["b"] * 25 + ["c"] * 1
    rows = [{"x": round(float(rng.normal()), 3), "y": label} for label in labels]
    data = write_csv(tmp_path / "d.csv", rows)
    words = ("train", data, "-t", "y", "-o", tmp_path / "m.lssvm", *QUICK)
    counts = [entry["rows"] for entry in good(*words, "--json").json["test"]["classes"]]
    assert counts == [30, 5, 0]
    said = good(*words, "--report", tmp_path / "r.html").err
    assert "class 'c' is too rare to be tested (1 row)" in said
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "No test row is of class “c”" in page
    words = re.sub(r"base64,[^\"]*", "", page)  # letters of an embedded picture mean nothing
    assert "nan" not in words.lower()


def test_groups_are_held_out_whole_and_do_not_count_as_a_column(tmp_path):
    rows = [{**row, "who": f"p{i % 23}"} for i, row in enumerate(mixed_rows())]
    data = write_csv(tmp_path / "d.csv", rows)
    words = (data, "-t", "income", *DROP, "-o", tmp_path / "m.lssvm", "--group", "who")
    found = train(*words)
    assert found["held_out"]["by"] == "group"
    assert "who" not in package.load(tmp_path / "m.lssvm").preparation_.names
    whole = scan(str(data), "income", columns=["age", "job", "pay", "kids"])
    table = open_table(str(data), Reading())
    held = HoldOut(**found["held_out"]).rows(table, whole, "income")
    groups = np.array([row["who"] for row in rows])
    assert not set(groups[held]) & set(groups[~held])
    assert held.sum() == found["test"]["rows"] and 0.1 < held.mean() < 0.3
    again = good("evaluate", tmp_path / "m.lssvm", data, "--held-out", "--json").json
    assert again["accuracy"] == found["test"]["accuracy"]


@pytest.mark.parametrize("kind", ["number", "date", "moment", "parquet"])
def test_the_last_rows_by_time_are_held_out(tmp_path, kind):
    rng = np.random.default_rng(0)
    day = rng.permutation(160)
    dates = [datetime(2024, 1, 1) + timedelta(days=int(d)) for d in day]
    write = {
        "number": day.tolist(),
        "date": [d.date().isoformat() for d in dates],
        "moment": [d.isoformat() for d in dates],
        "parquet": dates,
    }[kind]
    rows = [{**row, "when": w} for row, w in zip(mixed_rows(), write, strict=True)]
    if kind == "parquet":
        data = tmp_path / "d.parquet"
        parquet.write_table(pa.Table.from_pylist(rows), data)
    else:
        data = write_csv(tmp_path / "d.csv", rows)
    found = train(data, "-t", "income", *DROP, "-o", tmp_path / "m.lssvm", "--time", "when")
    assert found["test"]["rows"] == 32
    table = open_table(str(data), Reading())
    whole = table.scan("income", ["pay"])
    np.testing.assert_array_equal(
        HoldOut(**found["held_out"]).rows(table, whole, "income"), day >= 128
    )


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--group", "wage"), "no column 'wage'"),
        (("--group", "same"), "one value only"),
        (("--time", "job"), "--time job"),
        (("--time", "pay", "--group", "job"), "give one of them"),
        (("--group", "job", "--test", "0"), "neither"),
    ],
)
def test_rows_that_cannot_be_held_out_so(tmp_path, words, part):
    rows = [{**row, "same": 1, "job": row["job"] or "none"} for row in mixed_rows()]
    data = write_csv(tmp_path / "d.csv", rows)
    answer = lssvm("train", data, "-t", "income", "-o", tmp_path / "m.lssvm", *words)
    assert answer.code == 2 and part in answer.err and answer.err.count("lssvm: error") == 1


@pytest.mark.parametrize("target", ["income", "value"])
def test_few_rows_are_cross_validated_and_the_terminal_says_so(tmp_path, target):
    data = write_csv(tmp_path / "d.csv", mixed_rows(60))
    drop = ("--drop", "id", "--drop", "value" if target == "income" else "income")
    words = ("train", data, "-t", target, *drop, "-o", tmp_path / "m.lssvm", *QUICK)
    found = good(*words, "--json").json
    assert (found["tested"], found["test"]["rows"]) == ("cross-validated", 60)
    assert found["test_share"] == 0.0 and found["held_out"] is None
    answer = good(*words)
    assert "60 rows are too few to hold some out: metrics are cross-validated" in answer.err
    assert "on 60 cross-validated rows" in answer.out
    assert "on 60 cross-validated rows" in good("info", tmp_path / "m.lssvm").out
    assert good(*words, "--test", "0.2", "--json").json["test"]["rows"] == 12  # as asked
    inside = good("evaluate", tmp_path / "m.lssvm", data, "--json").json
    name = "accuracy" if target == "income" else "r2"
    assert found["test"][name] < inside[name]  # the model itself has seen the rows


def test_a_target_of_many_texts_is_asked_about(tmp_path):
    rows = [{"x": i % 7, "name": f"n{i % 130}"} for i in range(520)]
    data = write_csv(tmp_path / "d.csv", rows)
    words = ("train", data, "-t", "name", "-o", tmp_path / "m.lssvm", *QUICK)
    answer = lssvm(*words)
    assert answer.code == 2
    assert "130 different texts" in answer.err and "--task classification" in answer.err
    asked = ("--task", "classification", "--C", "1", "--gamma", "1", "--test", "0")
    assert len(package.load(tmp_path / "m.lssvm").classes_ if good(*words, *asked) else ()) == 130


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("target", ["income", "value"])
def test_rows_without_a_target_are_left_out_and_counted(tmp_path, target, kind):
    rows = mixed_rows()
    holes = [{**row, target: None} if i % 9 == 0 else row for i, row in enumerate(rows)]
    full = [row for row in holes if row[target] is not None]
    models, drop = [], ("--drop", "id", "--drop", "value" if target == "income" else "income")
    for name, part in (("holes", holes), ("full", full)):
        data = tmp_path / f"{name}.{kind}"
        if kind == "csv":
            write_csv(data, part, missing="?")
        else:
            parquet.write_table(pa.Table.from_pylist(part), data)
        words = ("train", data, "-t", target, *drop, "-o", tmp_path / f"{name}.lssvm", *QUICK)
        models.append((good(*words, "--json").json, good(*words).err))
    (found, said), (expected, _) = models
    assert "18 rows have no target and are dropped" in said
    assert (found["rows"], found["rows_without_target"]) == (142, 18)
    assert found["test"] == expected["test"]
    again = [
        good("evaluate", tmp_path / "holes.lssvm", tmp_path / f"holes.{kind}", *more, "--json").json
        for more in (("--held-out",), ())
    ]
    assert again[0]["rows"] == found["test"]["rows"] and again[1]["rows"] == 142
    assert {key: again[0][key] for key in found["test"]} == found["test"]


@pytest.mark.parametrize(("asked", "label"), [((), "high"), (("--positive", "low"), "low")])
def test_precision_and_recall_are_of_the_rarer_class_or_the_one_named(here, asked, label):
    rows = [row for row in mixed_rows(220) if row["income"] == "low" or row["id"] % 3 == 0]
    write_csv(here / "d.csv", rows)
    words = ("train", "d.csv", "-t", "income", *DROP, "-o", "m.lssvm", *QUICK, *asked)
    found = good(*words, "--json").json
    assert found["positive"] == found["test"]["positive"] == label
    (entry,) = [each for each in found["test"]["classes"] if each["class"] == label]
    assert found["test"]["recall"] == entry["recall"]
    assert found["test"]["precision"] == entry["precision"]
    answer = good(*words)
    assert f"test class {label!r}: precision {100 * entry['precision']:.1f} %" in answer.out
    again = good("evaluate", "m.lssvm", "d.csv", "--held-out", "--json").json
    assert (again["positive"], again["f1"]) == (label, found["test"]["f1"])


def test_a_positive_class_that_is_none_is_refused_before_the_fit(here):
    words = ("train", "data.csv", *DROP[:2], "-o", "new.lssvm")
    for more, text in (
        (("-t", "income", "--drop", "value", "--positive", "rich"), "has 'high', 'low'"),
        (("-t", "value", "--drop", "income", "--positive", "1"), "has numbers"),
    ):
        answer = lssvm(*words, *more)
        assert answer.code == 2 and text in answer.err
    assert not (here / "new.lssvm").exists()


@pytest.mark.parametrize("report", [(), ("--report", "r.html")])
def test_a_leak_is_a_warning_of_the_terminal(here, report):
    rows = [{**row, "copy": 2.0 * row["value"] + 1.0} for row in mixed_rows()]
    write_csv(here / "d.csv", rows)
    drop = ("--drop", "id", "--drop", "income")
    answer = good("train", "d.csv", "-t", "value", *drop, "-o", "m.lssvm", *QUICK, *report)
    (line,) = [line for line in answer.err.splitlines() if "may be a leak" in line]
    assert "column 'copy' alone predicts" in line and "--drop copy" in line
    assert (
        "leak" not in good("train", "data.csv", "-t", "value", *drop, "-o", "m.lssvm", *QUICK).err
    )


def test_a_report_that_fails_leaves_the_model_and_an_exit_code_of_its_own(here, monkeypatch):
    def fail(*_, **__):
        raise ValueError("no picture")

    monkeypatch.setattr("lssvm.report.write_report", fail)
    words = ("train", "data.csv", "-t", "income", *DROP, "-o", "m.lssvm", *QUICK)
    answer = lssvm(*words, "--report", "r.html")
    assert answer.code == 1 and "the model is in m.lssvm" in answer.err
    assert "its report failed: no picture" in answer.err and "model written" in answer.out
    assert package.load("m.lssvm").score(scan("data.csv", "income")) > 0.7
    assert "report" not in lssvm(*words, "--report", "r.html", "--json").json


def test_a_model_is_written_as_onnx_where_the_name_says_so(here):
    onnxruntime = pytest.importorskip("onnxruntime")
    words = ("train", "data.csv", "-t", "income", *DROP, "--model", "table", "--preset", "fast")
    good(*words, "-o", "m.onnx")
    good(*words, "-o", "m.lssvm")
    session = onnxruntime.InferenceSession("m.onnx")
    assert {each.name for each in session.get_inputs()} == {"age", "job", "pay", "kids"}
    good("export", "m.lssvm", "again.onnx")
    assert (here / "m.onnx").read_bytes() == (here / "again.onnx").read_bytes()


def test_a_model_for_tables_is_compressed(here):
    words = ("train", "data.csv", "-t", "income", *DROP, "--model", "table", "--preset", "fast")
    good(*words, "-o", "m.lssvm", "--quiet")
    found = good("reduce", "m.lssvm", "data.csv", "--support", "12", "-o", "s.lssvm", "--json").json
    assert found["support_vectors"] == 12 < found["support_vectors_before"] == 128
    assert found["bytes"] < found["bytes_before"] and found["test"]["accuracy"] > 0.6
    columns = ["age", "job", "pay", "kids"]
    rows = scan("data.csv", "income", columns=columns)
    table = open_table("data.csv", Reading())
    rest, held = HoldOut(0.2, 0, "class", "income").split(table, rows, "income")
    small = package.LSSVMClassifier("fast", random_state=0).fit(rest).compress(12)
    np.testing.assert_array_equal(package.load("s.lssvm").predict(held), small.predict(held))
    answer = lssvm("reduce", "m.lssvm", "data.csv", "--method", "ssd", "-o", "x.lssvm")
    assert answer.code == 2 and "leave --method out" in answer.err
