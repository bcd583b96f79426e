"""The page as a whole: every kind of model, structure, escaping, what it returns."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score, f1_score, precision_score, recall_score
from tests.meta.tree import ROOT
from tests.report import cases
from tests.report.cases import CASES
from tests.report.pages import Page
from tests.report.rough import make_rough

from lssvm import LSSVC, LSSVR, NARX, FixedSizeLSSVC, LSSVMClassifier, LSSVMRegressor, scan
from lssvm._core.errors import InvalidInputError
from lssvm.data import CsvOptions
from lssvm.io import read_header, save
from lssvm.plots.rows import LIMIT
from lssvm.report import columns, comparison, performance, refits, write_report

# Sections of the page of a model with test rows, beside figures, data, columns and reproduce.
EXPECTED = {
    "binary": {"classes", "scores", "tuning", "size", "prototypes", "learning", "time"},
    "prepared": {"classes", "scores", "tuning", "size", "prototypes", "learning", "time"},
    "many_classes": {"classes", "scores", "prototypes", "learning"},
    "one_vs_one": {"classes", "scores", "tuning", "size", "prototypes", "learning", "time"},
    "regression": {"errors", "intervals", "tuning", "size", "prototypes", "learning", "time"},
    "outputs": {"errors", "intervals", "prototypes", "learning"},
    "dual_classifier": {"classes", "scores", "tuning", "learning", "time"},
    "dual_regressor": {"errors", "intervals", "tuning", "learning", "time"},
    "greedy_classifier": {"classes", "scores", "tuning", "size", "prototypes", "learning"},
    "greedy_regressor": {"errors", "size", "prototypes", "learning"},
    "pipeline": {"classes", "scores", "learning"},
    "reduced": {"classes", "scores", "tuning", "size", "prototypes", "learning", "time"},
    "bare": {"classes", "scores", "learning"},
    "robust": {"errors", "prototypes", "learning"},
    "table_classifier": {"classes", "scores", "configurations", "learning"},
    "table_regressor": {"errors", "intervals", "configurations", "learning"},
}


@pytest.fixture(autouse=True)
def few_repetitions(monkeypatch):
    make_rough(monkeypatch)


def made(tmp_path, case, **options):
    path = tmp_path / "report.html"
    options = {"train": case.train, "test": case.test} | options
    facts = write_report(case.model, path, **options)
    text = path.read_text(encoding="utf-8")
    return facts, Page(text), text


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_model_has_a_page_with_the_sections_that_apply(name, tmp_path):
    facts, page, text = made(tmp_path, CASES[name]())
    found = set(page.sections) - {"notes"}
    always = {"figures", "comparison", "data", "columns", "shapes", "rows", "help", "reproduce"}
    two = {"costs"} if len(facts.get("classes", ())) == 2 else set()
    assert found == EXPECTED[name] | always | two
    json.dumps(facts, allow_nan=False)  # plain types, and no NaN
    assert len(text) < 1_000_000
    assert facts["rows"]["evaluated"] == facts["rows"]["test"] > 0
    assert "nan" not in re.sub(r"[a-z]nan|nan[a-z]", "", page.text.lower())


@pytest.mark.parametrize("name", CASES)
def test_without_test_rows_figures_are_cross_validated_and_say_so(name, tmp_path):
    facts, page, _ = made(tmp_path, CASES[name](), test=None)
    assert facts["evaluated_on"] == "training rows, cross-validated"
    assert "No test rows were given" in page.text
    assert facts["rows"]["test"] is None
    assert facts["rows"]["evaluated"] == facts["rows"]["train"]


@pytest.mark.parametrize("name", ["prepared", "regression", "many_classes"])
def test_the_page_is_well_formed_and_can_be_read_by_everyone(name, tmp_path):
    _, page, text = made(tmp_path, CASES[name](), seconds={"reading": 0.5, "tuning": 2.0})
    assert text.startswith("<!doctype html>")
    assert page.attributes("html", "lang") == ["en"]
    assert page.count("h1") == 1
    assert page.count("h2") == page.count("section") == len(set(page.sections))
    assert page.count("table") == page.count("caption")
    assert page.count("figure") == page.count("figcaption") == page.count("svg") + page.count("img")
    assert len(page.attributes("img", "alt")) == page.count("img")
    assert all(page.attributes("svg", "aria-label"))
    assert len(page.attributes("svg", "role")) == page.count("svg")
    links = {link.removeprefix("#") for link in page.attributes("a", "href")}
    assert links == {*page.sections, "content"}
    ids = [found["id"] for _, found in page.tags if "id" in found]
    assert len(ids) == len(set(ids))
    scopes = page.attributes("th", "scope")
    assert len(scopes) == page.count("th")


@pytest.mark.parametrize("name", ["prepared", "outputs"])
def test_nothing_is_loaded_and_nothing_can_run(name, tmp_path):
    _, page, text = made(tmp_path, CASES[name]())
    assert page.count("script") == page.count("iframe") == 0
    sources = page.attributes("img", "src") + page.attributes("source", "srcset")
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    plain = re.sub(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", "", text)
    assert not re.search(r"https?://|//[a-z]|@import|url\(", plain)
    assert all(not key.startswith("on") for _, found in page.tags for key in found)
    (policy,) = [
        found["content"]
        for tag, found in page.tags
        if found.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy
    assert page.attributes("link", "href") == ["data:,"]


def test_hostile_names_are_text(tmp_path):
    hostile = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    facts, page, text = made(
        tmp_path,
        cases.prepared(),
        title=hostile,
        seconds={hostile: 1.0},
        settings={hostile: hostile, "command": ["train", hostile], "warnings": [hostile]},
    )
    assert "<script" not in text
    assert "<img" not in text.replace('<img src="data:image/svg+xml;base64,', "")
    assert hostile in page.text
    assert "<b>hours</b>" in page.text  # the column's name, in words
    assert "<script>yes</script>" in page.text  # the class
    assert facts["notes"][0] == hostile or hostile in facts["notes"]


def test_odd_characters_are_replaced(tmp_path):
    case = cases.binary()
    _, page, text = made(tmp_path, case, title="a\x00b\u202ec\ud800d")
    assert "a\ufffdb\ufffdc\ufffdd" in page.text
    assert "\x00" not in text


def test_the_headline_says_what_how_good_and_on_how_many_rows(tmp_path):
    case = cases.prepared()
    facts, page, _ = made(tmp_path, case)
    right = facts["metrics"]["accuracy"]["value"]
    assert right == pytest.approx(case.model.score(case.test))
    lead = page.text[: page.text.index("How good it is")]
    assert "outcome" in lead
    assert f"{100 * right:.1f} %" in lead or "100 %" in lead
    assert "90 rows that the model had not seen" in lead


def test_the_score_of_a_regressor_is_that_of_the_page(tmp_path):
    case = cases.regression()
    facts, _, _ = made(tmp_path, case)
    assert facts["metrics"]["r2"]["value"] == pytest.approx(case.model.score(*case.test))


def test_weights_count_as_they_do_in_score(tmp_path):
    frame, test = cases.table(150), cases.table(90, 1)
    test["w"] = np.arange(90) % 4
    frame["w"] = 1.0
    options = {"target": "outcome", "weight": "w"}
    data, checked = scan(frame, **options), scan(test, **options)
    model = FixedSizeLSSVC(20, C=1.0, gamma=0.1).fit(data)
    facts, _, _ = made(tmp_path, cases.Case(model, data, checked))
    assert facts["metrics"]["accuracy"]["value"] == pytest.approx(model.score(checked))
    assert facts["rows"]["evaluated"] == 67  # rows of weight zero are none


@pytest.mark.parametrize("odd", [False, True])
def test_the_lines_of_the_page_make_the_same_model(tmp_path, odd, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the lines write report.html
    frame = cases.table(120).rename(columns={"<b>hours</b>": "hours", "a & b": "ab"})
    frame["w"] = 1 + np.arange(120) % 2
    file, options = tmp_path / "people.csv", {}
    frame.to_csv(file, index=False, sep=";" if odd else ",")
    if odd:
        csv = CsvOptions(delimiter=";")
        options = {"columns": ["job", "income", "hours"], "weight": "w", "csv": csv}
    data = scan(str(file), target="outcome", **options)
    data = data.split(0.25, seed=5)[0] if odd else data
    model = FixedSizeLSSVC(15, C=1.0, gamma=0.1, random_state=3).fit(data)
    facts, page, _ = made(tmp_path, cases.Case(model, data, None))
    assert "command" not in facts  # which would have to name too much
    names: dict[str, Any] = {}
    exec(page.code[0], names)
    np.testing.assert_array_equal(names["model"].dual_coef_, model.dual_coef_)


def test_the_command_of_a_plain_file_is_known(tmp_path):
    file = tmp_path / "two words.csv"
    cases.table(90).rename(columns={"<b>hours</b>": "hours", "a & b": "ab"}).to_csv(
        file, index=False
    )
    data = scan(str(file), target="outcome")
    model = FixedSizeLSSVC(random_state=3).fit(data)
    facts, page, _ = made(tmp_path, cases.Case(model, data, None))
    words = shlex.split(facts["command"])
    assert words[:5] == ["lssvm", "train", str(file), "--target", "outcome"]
    assert words[-2:] == ["--seed", "3"]
    assert page.code[1] == facts["command"]


def test_the_settings_and_the_schema_are_written_down(tmp_path):
    case = cases.prepared()
    facts, page, _ = made(tmp_path, case, settings={"seed": 7, "command": "lssvm train x.csv"})
    assert facts["command"] == "lssvm train x.csv"
    assert facts["settings"] == {"seed": "7"}
    assert facts["schema_sha256"] in page.text
    assert set(facts["versions"]) >= {"lssvm", "Python", "NumPy", "SciPy", "scikit-learn"}
    for version in facts["versions"].values():
        assert version in page.text
    save(case.model, tmp_path / "m.lssvm")
    assert read_header(tmp_path / "m.lssvm")["schema_sha256"] == facts["schema_sha256"]
    again, _, _ = made(tmp_path, case)
    assert again["schema_sha256"] == facts["schema_sha256"]
    renamed = case.train.reader.data.rename(columns={"age": "years"})
    other = scan(renamed, target="outcome")
    model = FixedSizeLSSVC(15, C=1.0, gamma=0.1).fit(other)
    changed, _, _ = made(tmp_path, cases.Case(model, other, None))
    assert changed["schema_sha256"] != facts["schema_sha256"]


def test_figures_repeat(tmp_path):
    case = cases.regression()
    first, second = (made(tmp_path, case)[0] for _ in range(2))
    assert first == second


def test_the_documentation_has_the_bounds_of_the_cost():
    text = " ".join((ROOT / "docs" / "report.rst").read_text(encoding="utf-8").split())
    for bound in (
        f"metrics use at most {LIMIT:,} random test rows",
        f"scatter plots {performance.DOTS:,} rows",
        f"importances {columns.ROWS[1]:,} rows and {columns.COLUMNS} columns",
        f"partial dependence {columns.SHAPE_ROWS[1]} rows",
        f"at most {refits.CURVE_ROWS:,} rows ({refits.TABLE_ROWS:,} for models for tables,",
        f"and other models {comparison.ROWS:,} rows",
        f"each of up to {refits.FOLD_ROWS:,} training rows is predicted by one of five copies",
    ):
        assert bound in text, bound


def test_a_large_test_set_is_sampled_and_the_page_says_so(tmp_path, monkeypatch):
    from lssvm.plots.rows import SampledRows

    monkeypatch.setattr(SampledRows.read.__func__, "__defaults__", (100, 0))
    X, y = cases.rows(500, 2, 1)
    case = cases.binary()
    facts, page, _ = made(tmp_path, case, test=(X, y))
    assert facts["rows"]["test"] == 500
    assert facts["rows"]["evaluated"] == 100
    assert "100 rows drawn from 500" in page.text


def test_new_categories_are_noted(tmp_path):
    case = cases.prepared()
    test = cases.table(90, 1)
    test.loc[:4, "job"] = "pilot"
    checked = scan(test, target="outcome")
    facts, _, _ = made(tmp_path, case, test=checked)
    assert any("5 test rows have a category in “job”" in note for note in facts["notes"])


def test_test_rows_that_were_trained_on_are_noted(tmp_path):
    case = cases.prepared()
    facts, _, _ = made(tmp_path, case, test=case.train)
    assert any("150 of the 150 test rows (100 %) are also among" in n for n in facts["notes"])
    facts, _, _ = made(tmp_path, case)
    assert not any("also among" in note for note in facts["notes"])


def test_a_model_that_has_learned_nothing_is_called_so(tmp_path):
    rng = np.random.default_rng(0)
    train, test = [(rng.normal(size=(200, 3)), rng.integers(2, size=200)) for _ in range(2)]
    model = LSSVC(1.0, gamma=0.1).fit(*train)
    facts, _, _ = made(tmp_path, cases.Case(model, train, test))
    assert any("not clearly higher" in note for note in facts["notes"])


@pytest.mark.parametrize(("asked", "positive"), [(None, 0), ("good", 1)])
def test_the_page_is_about_the_rarer_class_or_the_one_that_is_named(tmp_path, asked, positive):
    X, y = cases.rows(200, 2)
    X = 0.4 * X  # so that some rows are wrong
    rare = np.where((y == 1) | (np.arange(200) % 4 != 0), "good", "bad")
    model = LSSVC(1.0, gamma=0.5).fit(X[:140], rare[:140])
    train, test = (X[:140], rare[:140]), (X[140:], rare[140:])
    facts, _, text = made(tmp_path, cases.Case(model, train, test), pos_label=asked)
    label = ["bad", "good"][positive]
    assert facts["pos_label"] == label
    predicted, score = model.predict(test[0]), model.decision_function(test[0])
    for key, metric in (("f1", f1_score), ("recall", recall_score), ("precision", precision_score)):
        assert facts["metrics"][key]["value"] == metric(test[1], predicted, pos_label=label)
    area = average_precision_score(test[1], score if positive else -score, pos_label=label)
    assert facts["metrics"]["average_precision"]["value"] == pytest.approx(area)
    truth = test[1] == label
    missed = float(np.mean(truth & (predicted != label)))
    alarms = float(np.mean(~truth & (predicted == label)))
    assert facts["costs"]["5"]["cost_of_the_model"] == pytest.approx(alarms + 5 * missed)
    assert f"ROC curve for “{label}”" in text and f"are for “{label}”" in text
    assert f"robability of “{label}”" in text.replace("&#x27;", "'")
    with pytest.raises(InvalidInputError, match="one of two classes"):
        made(tmp_path, cases.Case(model, train, test), pos_label="ugly")


def test_bars_of_a_row_point_to_the_positive_class(tmp_path):
    X = np.linspace(-1, 1, 80)[:, None] * [1.0, 0.1]
    y = np.where(X[:, 0] > 0.5, "bad", "good")
    case = cases.Case(LSSVC(10.0, gamma=1.0).fit(X, y), (X, y), (X[::3], y[::3]))
    _, _, text = made(tmp_path, case)
    rows = text[text.index('id="rows"') :]
    found = re.search(r"predicted “bad”.*?From (\S+) to (\S+)", rows, re.S)
    assert found and found[1].startswith("\u2212") and not found[2].startswith("\u2212")


def test_a_choice_at_the_edge_of_the_search_is_noted(tmp_path):
    X = np.linspace(0, 1, 60)[:, None]
    train = (np.hstack([X, X**2]), X[:, 0])  # without noise the largest C is the best
    model = LSSVR("cv", gamma=0.5, cv=3).fit(*train)
    facts, _, _ = made(tmp_path, cases.Case(model, train, train))
    assert any("is the largest that was tried" in note for note in facts["notes"])


def test_the_file_is_written_whole_or_not_at_all(tmp_path):
    case = cases.binary()
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(InvalidInputError, match="classes"):
        write_report(case.model, path, train=case.train, test=(case.test[0], case.test[1] + 5))
    assert path.read_text() == "old"
    with pytest.raises(InvalidInputError, match="folder"):
        write_report(case.model, tmp_path / "no" / "r.html", train=case.train, test=case.test)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("train", "match"),
    [
        ([[1.0, 2.0]], "give lssvm.scan"),
        ((np.ones((5, 4)), np.ones(4)), "one target per row"),
    ],
)
def test_rows_that_are_none_are_refused(train, match, tmp_path):
    with pytest.raises(InvalidInputError, match=match):
        write_report(cases.binary().model, tmp_path / "r.html", train=train)


def test_a_scan_without_a_target_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="target"):
        write_report(cases.binary().model, tmp_path / "r.html", train=scan(np.ones((5, 4))))


def test_models_that_are_not_fitted_or_no_machines_are_refused(tmp_path):
    X, y = cases.rows(20, 2)
    with pytest.raises(NotFittedError):
        write_report(LSSVC(), tmp_path / "r.html", train=(X, y))
    series = NARX(LSSVR(1.0, gamma=0.1), lags=3).fit(np.sin(np.arange(40.0)))
    with pytest.raises(InvalidInputError, match="give one series as a vector"):
        write_report(series, tmp_path / "r.html", train=(X, y))


def test_a_kernel_matrix_is_reported_with_test_rows_only(tmp_path):
    (X, y), (T, t) = cases.rows(60, 2), cases.rows(40, 2, 1)
    model = LSSVC(1.0, kernel="precomputed").fit(X @ X.T, y)
    facts, page, _ = made(tmp_path, cases.Case(model, (X @ X.T, y), (T @ X.T, t)))
    assert facts["metrics"]["accuracy"]["value"] == pytest.approx(model.score(T @ X.T, t))
    assert not {"data", "columns", "prototypes", "learning"} & set(page.sections)
    with pytest.raises(InvalidInputError, match="precomputed"):
        write_report(model, tmp_path / "r.html", train=(X @ X.T, y))


def test_a_pipeline_that_takes_columns_by_name(tmp_path):
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame, test = cases.table(150).drop(columns="age"), cases.table(80, 1).drop(columns="age")
    columns = make_column_transformer(
        (StandardScaler(), ["income"]), (OneHotEncoder(sparse_output=False), ["job"])
    )
    X, y = frame.drop(columns="outcome"), frame["outcome"]
    model = make_pipeline(columns, LSSVC(1.0, gamma=0.5)).fit(X, y)
    pairs = (X, y), (test.drop(columns="outcome"), test["outcome"])
    facts, page, _ = made(tmp_path, cases.Case(model, *pairs))
    score = model.score(*pairs[1])
    assert facts["metrics"]["accuracy"]["value"] == pytest.approx(score)
    assert "income" in facts["importance"]
    assert isinstance(X, pd.DataFrame)
    assert "Pipeline" in page.text


def test_copies_of_a_model_with_many_values_of_C_are_said_to_have_one(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = FixedSizeLSSVC(15, cv=3, random_state=0).fit(X, y)
    assert np.size(model.C_) == 3
    write_report(model, tmp_path / "many.html", train=(X, y))
    page = (tmp_path / "many.html").read_text(encoding="utf-8")
    assert "Every binary problem of the model has its own C" in page


def test_copies_do_not_warn_of_columns_of_the_training_rows(tmp_path, recwarn):
    """A copy of fewer rows has not seen every value that the model has seen."""
    n, random = 120, np.random.default_rng(0)
    job = [f"{i % 9}{i}" if i % 8 == 0 else None for i in range(n)]
    rows = pd.DataFrame({"age": random.normal(size=n), "job": job}), random.normal(size=n)
    options = {"scaling": "standardised", "kernel": "rbf", "metric": None, "n_jobs": 1}
    model = LSSVMRegressor("fast", keep=["job"], **options).fit(*rows)
    recwarn.clear()
    write_report(model, tmp_path / "report.html", train=rows)
    assert [str(warning.message) for warning in recwarn] == []


def test_a_class_with_one_row(tmp_path):
    """Other models cannot be fitted to the folds without it: they are not compared with."""
    n, random = 40, np.random.default_rng(0)
    rows = random.normal(size=(n, 2)), np.where(np.arange(n) == 3, "rare", "usual")
    options = {"scaling": "standardised", "kernel": "rbf", "metric": None, "n_jobs": 1}
    model = LSSVMClassifier("fast", **options).fit(*rows)
    facts = write_report(model, tmp_path / "report.html", train=rows)
    assert list(facts["comparison"]) == ["the most frequent class"]
