"""The command line with the table model, and with models behind a preparation."""

from dataclasses import replace

import numpy as np
import pytest
from tests.cli.running import as_csv, good, lssvm, mixed_rows

from lssvm import LSSVC, GreedyLSSVC, LSSVMClassifier, LSSVMRegressor, load
from lssvm.cli.options import Columns, Reading
from lssvm.cli.tables import inspect_table, open_table
from lssvm.cli.training import too_large
from lssvm.data import Scan

pytestmark = pytest.mark.usefixtures("without_nested_folds")

FAST = ("--preset", "fast")
ONE = ("--model", "table", *FAST, "--kernel", "rbf")  # where which kernel does not matter


def rows_with_dates(n=120, seed=0):
    made = mixed_rows(n, seed)
    for i, row in enumerate(made):
        row["since"] = f"20{10 + i % 9}-0{1 + i % 8}-1{i % 9}"
        row["name"] = f"person number {i}"
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tables")
    (made / "data.csv").write_text(as_csv(rows_with_dates()))
    good("train", made / "data.csv", "-t", "income", "--drop", "value", *FAST, "-o", made / "c")
    return made


def test_the_table_model_is_the_default_and_says_what_it_leaves_out(folder):
    words = ("train", folder / "data.csv", "-t", "value", "--drop", "income", *FAST)
    said = good(*words, "-o", folder / "v")
    assert isinstance(load(folder / "v"), LSSVMRegressor)
    assert isinstance(load(folder / "c"), LSSVMClassifier)
    assert "column 'id' is dropped: it numbers the rows" in said.err
    assert "column 'name' is dropped: every value is different" in said.err
    assert "24 rows are held out" in said.err and "on 24 held-out rows" in said.out
    kinds = {
        c.name: c.kind for c in load(folder / "v").preparations_["standardised"].prepared_.columns
    }
    assert kinds["since"] == "date" and kinds["job"] == "category" and kinds["age"] == "number"


def test_a_model_for_tables_is_used_like_the_others(folder, tmp_path):
    data, model = folder / "data.csv", folder / "c"
    good("predict", model, data, "--proba", "--interval", "0.9", "-o", tmp_path / "p.csv")
    head, *body = (tmp_path / "p.csv").read_text().splitlines()
    assert head == "prediction,p_high,p_low,set" and len(body) == 120
    held = good("evaluate", model, data, "--held-out", "--json").json
    card = good("info", model, "--json").json
    assert held["rows"] == 24 and held["accuracy"] == card["card"]["test"]["accuracy"]
    assert card["columns"]["since"] == "date" and "name" not in card["columns"]
    new = [{k: v for k, v in row.items() if k not in ("id", "name", "income")} for row in
           rows_with_dates(30, 1)]  # fmt: skip
    (tmp_path / "new.csv").write_text(as_csv(new, ";"))
    said = good("predict", model, tmp_path / "new.csv", "-o", tmp_path / "q.csv")
    assert "fields separated by semicolons" in said.err


def test_a_model_for_tables_is_reduced_and_reduced_again(folder, tmp_path):
    made = folder / "c"
    for number, size in enumerate((30, 10)):
        small = tmp_path / str(number)
        shown = good("reduce", made, folder / "data.csv", "-o", small, "--support", str(size)).out
        assert f"model of {size} support vectors written" in shown
        assert sum(member.model.n_basis for member in load(small).record_.members) == size
        made = small
    assert good("evaluate", made, folder / "data.csv", "--held-out", "--json").json["rows"] == 24


def test_a_report_is_written(folder, tmp_path):
    words = ("train", folder / "data.csv", "-t", "income", "--drop", "value", *ONE)
    good(*words, "-o", tmp_path / "m", "--report", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "LSSVMClassifier" in page and "it numbers the rows" in page


@pytest.mark.parametrize("kind", ["dual", "greedy"])
@pytest.mark.parametrize("target", ["income", "value"])
def test_other_models_stand_behind_a_preparation(folder, tmp_path, kind, target):
    other = {"income": "value", "value": "income"}[target]
    words = ("train", folder / "data.csv", "-t", target, "--drop", other, "--model", kind)
    found = good(*words, "-o", tmp_path / "m", "--json").json
    model = load(tmp_path / "m")
    assert type(model[0]).__name__ == "TablePreparation"
    assert found["parameters"]["support_vectors"] == len(model[-1].support_vectors_)
    test = good("evaluate", tmp_path / "m", folder / "data.csv", "--held-out", "--json").json
    assert test == {**test, **found["test"]}
    good("predict", tmp_path / "m", folder / "data.csv", "--check", "-o", tmp_path / "p.csv")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--model", "table", "--C", "1"), "--C is not an option of the table model"),
        (("--model", "fixed-size", *FAST), "--preset is not an option of the fixed-size model"),
        (("--prototypes", "9", "--time-limit", "5"), "--time-limit is not an option"),
        (("--model", "forest"), "--model forest is not known"),
        (("--preset", "slow"), "--preset slow is not known"),
        (("--model", "table", "--kernel", "poly"), "--kernel poly is not known"),
    ],
)
def test_options_of_other_models_are_refused(folder, tmp_path, words, part):
    data = ("train", folder / "data.csv", "-t", "income", "--drop", "value")
    answer = lssvm(*data, *words, "-o", tmp_path / "m")
    assert answer.code == 2 and part in answer.err


def test_very_many_rows_have_the_fixed_size_model(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("lssvm.cli.training.MOST_ROWS", 100)
    words = ("train", folder / "data.csv", "-t", "income", "--drop", "value", "-o", tmp_path / "m")
    said = good(*words)
    assert "more than 100 rows: the fixed-size model reads the rows block by block" in said.err
    assert "column 'name' is dropped: " in said.err
    assert type(load(tmp_path / "m")).__name__ == "FixedSizeLSSVC"
    refused = lssvm(*words, *FAST)
    assert refused.code == 2 and "which has no --preset" in refused.err


@pytest.fixture
def few_are_many(monkeypatch):
    """Let 1,100 rows be more than the table model takes at once."""
    monkeypatch.setattr("lssvm.estimators.table_fit.MANY", 1100)
    monkeypatch.setattr("lssvm.estimators.table_fit.SAMPLE", 1000)


def test_the_table_model_reads_many_rows_block_by_block(tmp_path, monkeypatch, few_are_many):
    (tmp_path / "many.csv").write_text(as_csv(rows_with_dates(1500)))
    given = []
    fit = LSSVMRegressor.fit
    monkeypatch.setattr(
        LSSVMRegressor, "fit", lambda self, X, *more: given.append(X) or fit(self, X, *more)
    )
    data = ("-t", "value", "--drop", "income", *FAST, "--memory", "400 MB")
    said = good("train", tmp_path / "many.csv", *data, "-o", tmp_path / "m", "--json").json
    assert [type(X) for X in given] == [Scan] and given[0].n_rows == 1200
    model = load(tmp_path / "m")
    assert isinstance(model, LSSVMRegressor) and said["test"]["r2"] > 0.9
    columns = {c.name: c for c in model.preparations_["standardised"].prepared_.columns}
    assert columns["since"].kind == "date" and columns["id"].encoding is None
    grouped = good(
        "train", tmp_path / "many.csv", *data[:4], "--group", "job", "-o", tmp_path / "g"
    )
    assert "too many for groups: the fixed-size model" in grouped.err


@pytest.mark.parametrize(
    ("rows", "memory", "grouped", "why"),
    [
        (400_000, "2 GB", False, ""),
        (400_000, "300 MB", False, "more memory than the budget"),
        (2_000_000, "2 GB", False, ""),
        (2_000_000, "400 MB", False, "more memory than the budget"),
        (2_000_001, "900 GB", False, "more than 2,000,000 rows"),
        (400_000, "2 GB", True, ""),
        (400_001, "2 GB", True, "too many for groups"),
    ],
)
def test_which_rows_are_too_many_for_the_table_model(folder, rows, memory, grouped, why):
    table = open_table(str(folder / "data.csv"), Reading(), str)
    inspected = replace(inspect_table(table, Columns(target="income")), n_rows=rows)
    said = too_large(inspected, memory, grouped)
    assert why in said and bool(said) == bool(why)


def test_groups_stay_together_within_the_table_model(tmp_path, monkeypatch):
    seen = {}
    fit = LSSVMClassifier.fit

    def spy(self, X, y, sample_weight=None, groups=None):
        seen["groups"] = groups
        return fit(self, X, y, sample_weight, groups)

    monkeypatch.setattr(LSSVMClassifier, "fit", spy)
    rows = [{**row, "who": f"p{i // 4}"} for i, row in enumerate(mixed_rows(120))]
    (tmp_path / "g.csv").write_text(as_csv(rows))
    words = ("train", tmp_path / "g.csv", "-t", "income", "--drop", "value", "--group", "who")
    said = good(*words, *ONE, "-o", tmp_path / "m")
    assert "24 rows are held out: whole groups of 'who'" in said.err
    assert len(seen["groups"]) == 96 and len(np.unique(seen["groups"])) == 24
    assert "who" not in load(tmp_path / "m").feature_names_in_


@pytest.mark.parametrize(("kind", "made"), [("dual", LSSVC), ("greedy", GreedyLSSVC)])
def test_groups_stay_together_behind_a_preparation(tmp_path, monkeypatch, kind, made):
    seen = []
    fit = made.fit
    monkeypatch.setattr(
        made, "fit", lambda self, X, y, **more: seen.append(more) or fit(self, X, y, **more)
    )
    rows = [{**row, "who": f"p{i // 4}"} for i, row in enumerate(mixed_rows(120))]
    (tmp_path / "g.csv").write_text(as_csv(rows))
    words = ("train", tmp_path / "g.csv", "-t", "income", "--drop", "value", "--group", "who")
    good(*words, "--model", kind, "-o", tmp_path / "m")
    assert len(seen[0]["groups"]) == 96 and len(np.unique(seen[0]["groups"])) == 24


@pytest.mark.parametrize("words", [ONE, ("--prototypes", "25", "--cv", "4"), ("--model", "dual")])
def test_new_rows_are_compared_with_those_of_training(tmp_path, words):
    (tmp_path / "a.csv").write_text(as_csv(mixed_rows(120)))
    train = ("train", tmp_path / "a.csv", "-t", "income", "--drop", "value", "--drop", "id")
    good(*train, *words, "-o", tmp_path / "m", "-q")
    rows = mixed_rows(60, seed=5)
    (tmp_path / "like.csv").write_text(as_csv(rows))
    predict = ("predict", tmp_path / "m", "-o", tmp_path / "p.csv", "--check")
    assert "check: the rows are like those of training" in good(*predict, tmp_path / "like.csv").err
    rows = [{**r, "pay": r["pay"] + 2, "job": "pilot" if i % 10 == 0 else r["job"]} for i, r in
            enumerate(rows)]  # fmt: skip
    rows[4]["pay"] = 500.0
    (tmp_path / "new.csv").write_text(as_csv(rows))
    found = good(*predict, tmp_path / "new.csv", "--json").json["check"]
    assert found["unseen_categories"] == {"job": {"pilot": 6}}
    assert set(found["shifted_columns"]) == {"pay"} and found["shifted_columns"]["pay"] > 2
    assert found["far_rows"] >= 1 and found["first_far_row"] <= 4
    said = good(*predict, tmp_path / "new.csv").err
    assert "column 'pay' is shifted" in said and "far from all training rows" in said


def test_a_class_too_rare_to_be_tested_is_named(tmp_path):
    rows = mixed_rows(120)
    rows[7]["income"] = rows[8]["income"] = "none"
    (tmp_path / "r.csv").write_text(as_csv(rows))
    words = ("train", tmp_path / "r.csv", "-t", "income", "--drop", "value", *ONE)
    said = good(*words, "-o", tmp_path / "m", "--report", tmp_path / "r.html")
    assert "class 'none' is too rare to be tested (2 rows)" in said.err
    assert "nan" not in (tmp_path / "r.html").read_text().lower().replace("nano", "")
