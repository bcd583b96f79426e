"""From a table with categories and missing values to labels from onnxruntime; other commands."""

import csv
import html
import io
import re
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from tests.cli.running import QUICK, good, mixed_rows, write_csv

import lssvm as package
from lssvm import scan
from lssvm.cli.models import model_rows
from lssvm.datasets import load_german_credit

NEW = mixed_rows(60, seed=9)


@pytest.mark.parametrize("target", ["income", "value"])
def test_train_evaluate_predict_export_and_run(tmp_path, target):
    onnxruntime = pytest.importorskip("onnxruntime")
    data = write_csv(tmp_path / "data.csv", mixed_rows())
    new = write_csv(tmp_path / "new.csv", NEW)
    model, out = tmp_path / "m.lssvm", tmp_path / "m.onnx"
    other = "value" if target == "income" else "income"
    good("train", data, "-t", target, "--drop", other, "--drop", "id", "-o", model, *QUICK)
    measured = good("evaluate", model, new, "--json").json
    predicted = list(csv.DictReader(io.StringIO(good("predict", model, new).out)))
    good("export", model, out)
    session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    feed = {
        "age": np.array([[np.nan if r["age"] is None else r["age"]] for r in NEW]),
        "job": np.array([["" if r["job"] is None else r["job"]] for r in NEW], dtype=object),
        "pay": np.array([[r["pay"]] for r in NEW]),
        "kids": np.array([[float(r["kids"])] for r in NEW]),
    }
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(names, feed), strict=True))
    if target == "income":
        labels = [row["prediction"] for row in predicted]
        assert found["label"].tolist() == labels
        right = np.mean([a == row["income"] for a, row in zip(labels, NEW, strict=True)])
        assert measured["accuracy"] == pytest.approx(right)
        assert right > 0.7
    else:
        values = [float(row["prediction"]) for row in predicted]
        np.testing.assert_allclose(found["prediction"][:, 0], values, rtol=0, atol=1e-9)


def test_info_says_what_a_file_holds(here):
    facts = good("info", "classes.lssvm", "--json").json
    kinds = {"age": "number", "job": "category", "pay": "number", "kids": "number"}
    assert facts["columns"] == kinds
    assert facts["classes"] == ["high", "low"] and facts["support_vectors"] == 25
    assert facts["bytes"] == (here / "classes.lssvm").stat().st_size
    said = good("info", "classes.lssvm").out
    assert "job (category)" in said and "test accuracy" in said


def test_reduce_shows_the_trade_off_and_writes_a_smaller_model(here):
    words = ("reduce", "classes.lssvm", "data.csv", "-o", "small.lssvm")
    found = good(*words, "--json").json
    sizes = [row["support"] for row in found["trade_off"]]
    assert sizes == sorted(sizes) and sizes[-1] == 25
    best = min(found["trade_off"], key=lambda row: row["error"])
    limit = best["error"] + best["std_error"]
    taken = min(row["support"] for row in found["trade_off"] if row["error"] <= limit)
    assert found["support_vectors"] == taken < found["support_vectors_before"] == 25
    assert found["test_before"]["rows"] == found["test"]["rows"] < 60
    assert len(package.load("small.lssvm").support_vectors_) == taken
    assert "taken" in good(*words).out
    printed = good(*words, "--method", "spfs-printed", "--json").json
    assert 0 < printed["support_vectors"] <= 25 and printed["trade_off"] == []
    four = good(*words, "--support", "4", "--json").json
    assert (
        four["support_vectors"] == 4 and four["bytes"] < four["bytes_before"] + 500
    )  # 25 rows are as small as what a reduction notes
    last = good(*words, "--json").json["test"]
    again = good("evaluate", "small.lssvm", "data.csv", "--held-out", "--json").json
    assert again["accuracy"] == pytest.approx(last["accuracy"])


_OURS = ("", "FixedSizeLSSV", "LSSV")


@pytest.mark.parametrize(("target", "other"), [("income", "value"), ("value", "income")])
def test_compare_puts_all_models_beside_each_other(here, target, other):
    words = ("compare", "data.csv", "-t", target, "--drop", other, "--drop", "id")
    found = good(*words, "--json").json
    names = [row["model"] for row in found["models"]]
    kinds = "CCC" if target == "income" else "RRR"
    ours = [f"{name}{kind}" for name, kind in zip(_OURS, kinds, strict=True)]
    ours[0] = "LSSVMClassifier" if target == "income" else "LSSVMRegressor"
    assert list(dict.fromkeys(names))[:3] == ours and "Nystroem + Ridge" in names
    others = ("catboost", "lightgbm", "xgboost")
    assert len(names) == 7 + sum(find_spec(name) is not None for name in others)
    assert found["rows"] + found["test_rows"] == 160
    assert all(row["fit_seconds"] > 0 and row["bytes"] > 0 for row in found["models"])
    baseline = 0.5 if target == "income" else np.std([row["value"] for row in mixed_rows()])
    assert max(row["error"] for row in found["models"][:4]) < baseline


@pytest.mark.parametrize("target", ["income", "value"])
def test_compare_takes_the_boosting_that_is_installed(here, monkeypatch, target):
    kinds = HistGradientBoostingClassifier, HistGradientBoostingRegressor

    def boosting(kind):
        class Boosting:
            def __init__(self, random_state=None, verbose=0, verbosity=0, **of_catboost):
                if of_catboost:  # which else leaves a folder where it runs
                    assert of_catboost == {"random_seed": 0, "allow_writing_files": False}
                self.inner = kind(max_iter=5)

            def fit(self, X, y):
                if kind is kinds[0]:  # XGBoost takes nothing but codes
                    assert sorted(set(y.tolist())) == [0, 1]
                self.inner.fit(X, y)

            def predict(self, X):
                return self.inner.predict(X)[:, None]  # as CatBoost does

        return Boosting

    monkeypatch.setattr("lssvm.cli.comparing._bytes", lambda model: 1)
    libraries = {"catboost": "CatBoost", "lightgbm": "LGBM", "xgboost": "XGB"}
    for library, name in libraries.items():
        ends = ("Classifier", "Regressor")
        both = {f"{name}{end}": boosting(k) for k, end in zip(kinds, ends, strict=True)}
        monkeypatch.setitem(sys.modules, library, SimpleNamespace(**both))
    other = "value" if target == "income" else "income"
    words = ("compare", "data.csv", "-t", target, "--drop", other, "--drop", "id", "--json")
    found = good(*words).json["models"]
    end = "Classifier" if target == "income" else "Regressor"
    assert [row["model"] for row in found][-3:] == [f"{n}{end}" for n in libraries.values()]
    worst = 0.5 if target == "income" else np.std([row["value"] for row in mixed_rows()])
    assert found[0]["model"].startswith("LSSVM") and found[-1]["error"] < worst


def test_compare_reads_no_more_rows_than_asked_for(here):
    words = ("compare", "data.csv", "-t", "income", "--drop", "id", "--rows", "60")
    said = good(*words)
    assert "42 rows to train on, 18 to test on" in said.err
    assert all(name in said.out for name in ("LSSVMClassifier", "FixedSizeLSSVC", "SVC"))


def test_forecast_continues_a_series_with_intervals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    series = 5 + np.sin(0.5 * np.arange(170)) + 0.02 * rng.normal(size=170)
    write_csv(tmp_path / "s.csv", [{"t": i, "x": float(v)} for i, v in enumerate(series[:160])])
    words = ("forecast", "s.csv", "-c", "x", "--horizon", "10", "--lags", "12")
    found = good(*words, "-o", "f.csv", "--report", "f.html", "--json").json
    truth = series[160:]
    assert np.abs(np.array(found["forecast"]) - truth).max() < 0.3
    inside = (np.array(found["lower"]) <= truth) & (truth <= np.array(found["upper"]))
    assert inside.mean() >= 0.7
    assert found["check"]["rmse"] < 0.3 < found["check"]["naive_rmse"]
    rows = list(csv.DictReader((tmp_path / "f.csv").open()))
    assert [float(row["forecast"]) for row in rows] == found["forecast"]
    page = (tmp_path / "f.html").read_text(encoding="utf-8")
    assert "<svg" in page and "Content-Security-Policy" in page and "<script" not in page
    assert "10 forecasts" in page and "the last 10 values were forecast" in page
    for section in ("next", "figures", "errors", "intervals", "comparison", "learning", "time"):
        assert f'id="{section}"' in page
    assert "lssvm" in page.split('id="reproduce"')[1] and "fit and forecast" in page
    assert "check: the last 10 values" in good(*words).out


def test_the_page_of_a_short_series_is_the_forecast_alone(tmp_path):
    rows = [{"x": float(np.sin(i))} for i in range(30)]
    data = write_csv(tmp_path / "s.csv", rows)
    good("forecast", data, "-c", "x", "--horizon", "3", "--report", tmp_path / "f.html")
    page = (tmp_path / "f.html").read_text()
    assert 'id="next"' in page and "too short to be tested" in page
    assert 'id="figures"' not in page


def test_a_short_series_is_refused(tmp_path):
    data = write_csv(tmp_path / "s.csv", [{"x": float(i)} for i in range(6)])
    from tests.cli.running import lssvm

    answer = lssvm("forecast", data, "-c", "x")
    assert answer.code == 2 and "6 values" in answer.err


def test_demo_shows_concrete_first_and_credit_second(tmp_path, monkeypatch):
    monkeypatch.setattr("lssvm.cli.demo.PRESET", "fast")
    answer = good("demo", tmp_path / "out")
    files = {path.name for path in (tmp_path / "out").iterdir()}
    endings = (".csv", ".lssvm", ".html", "-predictions.csv")
    assert files == {f"{name}{end}" for name in ("concrete", "german_credit") for end in endings}
    lines = [text for text in answer.out.splitlines() if text.startswith("test ")]
    assert lines[0].startswith("test R2 0.9") and "predicting the mean: RMSE" in lines[0]
    assert lines[1].startswith("test accuracy 7") and "most frequent class: 70.0 %" in lines[1]
    assert lines[2].startswith("test class 'bad': precision")
    rows = (tmp_path / "out" / "concrete-predictions.csv").read_text().splitlines()
    assert rows[0] == "prediction,lower,upper" and len(rows) == 1031
    rows = (tmp_path / "out" / "german_credit-predictions.csv").read_text().splitlines()
    assert rows[0] == "prediction,p_bad,p_good" and len(rows) == 1001
    table = answer.out[answer.out.index("What the first row's columns add") :].splitlines()
    mean, total = (float(word.rstrip(":")) for word in table[0].split()[-2:])
    added = [float(line.split()[-1]) for line in table[3:11]]
    assert len(added) == 8 and mean + sum(added) == pytest.approx(total, abs=0.5)


def test_datasets_are_listed_and_written(tmp_path):
    names = [entry["name"] for entry in good("datasets", "--json").json["datasets"]]
    assert "german_credit" in names and "laser" in names
    good("datasets", "german_credit", "-o", tmp_path / "c.csv")
    rows = list(csv.DictReader((tmp_path / "c.csv").open()))
    credit = load_german_credit()
    assert list(rows[0]) == [*credit.feature_names, "target"]
    good_risks = int(np.sum(credit.target == 1))
    assert sum(row["target"] == "good" for row in rows) == good_risks
    assert good("datasets", "ripley").out.splitlines()[0] == "xs,ys,target"


def test_a_forecast_has_the_dates_of_its_series(tmp_path):
    rng = np.random.default_rng(0)
    times = np.arange(96)
    values = 5 + np.sin(2 * np.pi * times / 12) + 0.05 * rng.normal(size=96)
    months = (np.datetime64("2016-01") + times).astype("datetime64[D]").astype(str)
    rows = [{"month": m, "x": float(v)} for m, v in zip(months, values, strict=True)]
    data = write_csv(tmp_path / "m.csv", rows[::-1])  # the newest first
    words = ("forecast", data, "-c", "x", "--horizon", "6", "--lags", "14")
    found = good(*words, "-o", tmp_path / "f.csv", "--report", tmp_path / "f.html", "--json").json
    assert found["time"] == [f"2024-0{m}-01" for m in range(1, 7)] and found["season"] == 12
    assert set(found["check"]["baselines"]) == {
        "repeating the last value",
        "drift",
        "repeating the last 12 values",
    }
    assert np.abs(np.array(found["forecast"]) - 5 - np.sin(np.pi * np.arange(6) / 6)).max() < 0.4
    head, first, *_ = (tmp_path / "f.csv").read_text().splitlines()
    assert head == "step,time,forecast,lower,upper" and first.startswith("1,2024-01-01,")
    assert "2024-06-01" in (tmp_path / "f.html").read_text()
    assert "repeating the last 12 values gives" in good(*words).out


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda rows: rows[40].update(x=None), "missing or infinite value in line 42 of"),
        (lambda rows: rows[40].update(day="2024-01-40"), "could be read in two ways"),
        (lambda rows: rows[41].update(day=rows[40]["day"]), "in line 42 of .* and line 43 of"),
        (lambda rows: rows.pop(40), "not evenly spaced"),
    ],
)
def test_a_series_whose_times_are_wrong(tmp_path, change, part):
    import re

    from tests.cli.running import lssvm

    days = (np.datetime64("2024-01-01") + np.arange(80)).astype(str)
    rows = [{"day": day, "x": float(i % 7)} for i, day in enumerate(days)]
    change(rows)
    data = write_csv(tmp_path / "s.csv", rows)
    answer = lssvm("forecast", data, "-c", "x", "--time", "day", "--lags", "8")
    assert answer.code == 2 and re.search(part, answer.err), answer.err


def _section(path, key):
    text = path.read_text(encoding="utf-8")
    return text[text.index(f'id="{key}"') :].split("</section>")[0]


FAST = ("--model", "table", "--preset", "fast")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("income", FAST),
        ("value", (*FAST, "--seed", "3", "--weight", "kids", "--category", "region")),
        ("income", (*FAST, "--group", "region", "--positive", "low", "--test", "0.3")),
        ("value", ("--prototypes", "20", "--cv", "3", "--time", "id")),
        ("income", ("--model", "dual", "--cv", "3", "--test-data", "other.csv")),
        ("income", (*FAST, "--test", "0", "--delimiter", ";")),
    ],
)
def test_the_code_of_a_report_gives_the_same_rows_model_and_figures(
    tmp_path, monkeypatch, target, words
):
    monkeypatch.chdir(tmp_path)
    rows = [{**row, "region": row["id"] % 12, "kids": row["kids"] + 1} for row in mixed_rows(140)]
    rows[5][target] = None  # which is left out
    delimiter = ";" if ";" in words else ","
    write_csv(tmp_path / "data.csv", rows, delimiter=delimiter)
    write_csv(tmp_path / "other.csv", [{**row, "region": 1} for row in NEW])
    other = "value" if target == "income" else "income"
    drop = ("--drop", other) if "--time" in words else ("--drop", other, "--drop", "id")
    options = ("-o", "m.lssvm", "--report", "first.html", *words)
    good("train", "data.csv", "-t", target, *drop, *options)
    page = (tmp_path / "first.html").read_text(encoding="utf-8")
    code = html.unescape(page.split("In Python</h3>")[1].split("<code>")[1].split("</code>")[0])
    made: dict = {}
    exec(compile(code, "report", "exec"), made)
    for key in ("figures", "data", "comparison", "columns"):
        assert _section(tmp_path / "report.html", key) == _section(tmp_path / "first.html", key)
    X = scan("other.csv", columns=list(made["columns"]))
    saved = package.load("m.lssvm")
    block = next(X.blocks())
    given = [model_rows(model, block) for model in (saved, made["model"])]
    np.testing.assert_array_equal(saved.predict(given[0]), made["model"].predict(given[1]))


def test_a_forecast_sees_a_season_and_shows_dates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    months = np.arange("2012-01", "2022-01", dtype="M8[M]")
    rng = np.random.default_rng(0)
    level = 10 + 2 * np.sin(2 * np.pi * np.arange(120) / 12) + 0.1 * rng.normal(size=120)
    rows = [{"when": f"{m}-01", "x": float(v)} for m, v in zip(months, level, strict=True)]
    write_csv(tmp_path / "s.csv", rows[30:])  # a quarter of the values is less than two seasons
    words = ("forecast", "s.csv", "-c", "x", "--horizon", "6", "--no-test")
    assert good(*words, "--json").json["lags"] >= 12
    found = good("forecast", "s.csv", "-c", "x", "--season", "28", "--json", "--no-test").json
    assert found["lags"] == 28 and good(*words, "--lags", "5", "--json").json["lags"] == 5
    good(*words, "--report", "f.html", "--lags", "12")
    page = (tmp_path / "f.html").read_text(encoding="utf-8")
    for key in ("next", "forecast"):
        part = page[page.index(f'id="{key}"') :].split("</section>")[0]
        axis = part.split('class="ticks"')[1].split("</g>")[0]
        assert re.findall(r">(20\d\d-\d\d)</text>", axis), key
