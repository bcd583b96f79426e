"""Messy files through train, report, predict, evaluate and the code of the report."""

from __future__ import annotations

import html
import json

import numpy as np
import pytest
from tests.cli.running import good, lssvm
from tests.first_hour.test_columns import CASES as COLUMNS
from tests.report.rough import make_rough

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
N = 60
RNG = np.random.default_rng(1)
X = RNG.normal(size=N).round(3)
WHEN = pd.date_range("2024-01-03", periods=N, freq="3D")
SIZE = RNG.choice(["S", "M", "L"], N)
VALUE = (X + WHEN.day_of_year / 200 + 0.1 * RNG.normal(size=N)).round(3)
CLASS = np.where(X + 0.3 * RNG.normal(size=N) > 0, "yes", "no")
RARE = np.where(np.arange(N) < 3, "seldom", CLASS)


def table(**more):
    return pd.DataFrame({"x": X, "size": SIZE, **more})


GAP = pd.array([None, *range(N - 1)], dtype="Int64")
WORDS = ["k.A." if i % 8 == 0 else str(i % 13) for i in range(N)]
CASES = {
    "American dates": (table(when=WHEN.strftime("%m/%d/%Y"), y=VALUE), (), "when"),
    "German dates": (table(when=WHEN.strftime("%d.%m.%Y"), y=VALUE), (), "when"),
    "dates with a zone": (table(when=WHEN.strftime("%Y-%m-%dT10:29:00Z"), y=VALUE), (), "when"),
    "names of months": (table(when=WHEN.strftime("%b %d, %Y"), y=CLASS), (), "when"),
    "dates as numbers": (table(when=WHEN.strftime("%Y%m%d"), y=VALUE), (), "when"),
    "an empty column": (table(empty="", one=1, y=VALUE), (), None),
    "a word for missing": (table(n=WORDS, y=VALUE), ("--missing", "k.A."), "n"),
    "ordered levels": (table(y=CLASS), ("--ordered", "size=S,M,L"), "size"),
    "rare classes": (table(y=RARE), (), None),
    "an id": (table(id=np.arange(N), key=[f"k{i}" for i in range(N)], y=VALUE), (), None),
    "a leak": (table(copy=VALUE, y=VALUE), (), "copy"),
    "integers with a gap": (
        table(n=pd.array([None, *range(N - 1)], dtype="Int64"), y=CLASS),
        (),
        "n",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_a_messy_file_is_trained_reported_and_predicted(name, tmp_path, monkeypatch):
    make_rough(monkeypatch)
    rows, words, column = CASES[name]
    data, model, page = (str(tmp_path / n) for n in ("rows.csv", "m.lssvm", "r.html"))
    rows.to_csv(data, index=False)
    options = ("--preset", "fast", "--json", *words)
    with_report = ("--report", page) if name in REPORTED else ()
    told = json.loads(good("train", data, "-t", "y", "-o", model, *options, *with_report).out)
    assert (column is None) or column not in told["left_out"]
    dropped = {"empty", "one", "id", "key"} & set(rows.columns)
    assert set(told["left_out"]) == dropped
    good("predict", model, data, "-o", str(tmp_path / "p.csv"))
    found = pd.read_csv(tmp_path / "p.csv")["prediction"]
    assert len(found) == N and found.notna().all()
    measured = json.loads(good("evaluate", model, data, "--json").out)
    assert measured["rows"] == N
    if with_report:
        text = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert all(f"{c}" in text for c in rows.columns if c != "y")


def reproduced(train, tmp_path):
    """Train with a report, run the code that the report shows, and compare both reports."""
    good("train", "rows.csv", "-t", "y", "--preset", "fast", "--report", "first.html", *train)
    first = (tmp_path / "first.html").read_text(encoding="utf-8")
    code = html.unescape(first.split("In Python</h3>")[1].split("<code>")[1].split("</code>")[0])
    exec(compile(code, "report", "exec"), {})
    again = (tmp_path / "report.html").read_text(encoding="utf-8")
    for key in ("figures", "data", "comparison", "columns"):
        one, other = (p.split(f'id="{key}"')[1].split("</section>")[0] for p in (first, again))
        assert one == other
    return first


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["German dates", "a word for missing", "ordered levels"])
def test_the_code_of_the_report_of_a_messy_file_gives_the_same_figures(name, tmp_path, monkeypatch):
    make_rough(monkeypatch)
    monkeypatch.chdir(tmp_path)
    rows, words, _ = CASES[name]
    rows.to_csv("rows.csv", index=False)
    reproduced(("-o", "m.lssvm", *words), tmp_path)


MESSY = [name for name, case in COLUMNS.items() if case.file and not case.options]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, len(MESSY), 10))
def test_every_messy_column_is_trained_reported_predicted_and_reproduced(
    first, tmp_path, monkeypatch
):
    make_rough(monkeypatch)
    monkeypatch.chdir(tmp_path)
    names = MESSY[first : first + 10]
    # Columns are turned, so that none equals another.
    rows = {
        n: np.roll(np.array(list(COLUMNS[n].values), dtype=object), i) for i, n in enumerate(names)
    }
    pd.DataFrame({"x": X, **rows, "y": VALUE}).to_csv("rows.csv", index=False)
    text = reproduced(("-o", "m.lssvm"), tmp_path)
    assert all(html.escape(n, quote=False) in text or n in text for n in names)
    good("predict", "m.lssvm", "rows.csv", "-o", "p.csv")
    predicted = pd.read_csv("p.csv")["prediction"]
    assert len(predicted) == N and predicted.notna().all()


REPORTED = {"American dates", "German dates", "dates as numbers", "an empty column", "rare classes"}


def test_train_reads_standard_input(tmp_path):
    text = table(y=VALUE).to_csv(index=False).encode()
    model = tmp_path / "m.lssvm"
    good("train", "-", "-t", "y", "-o", str(model), "--preset", "fast", stdin=text)
    assert model.exists()


def test_orders_that_cannot_be_used(tmp_path):
    data = tmp_path / "rows.csv"
    table(y=VALUE).to_csv(data, index=False)
    for words, error in (
        (("--ordered", "size"), "give COLUMN=LOW,...,HIGH"),
        (("--ordered", "length=S,M"), "names the columns"),
        (("--ordered", "size=S,M"), "has the level 'L'"),
        (("--ordered", "size=S,M,L", "--model", "fixed-size"), "option of the fixed-size model"),
    ):
        answer = lssvm("train", str(data), "-t", "y", "-o", str(tmp_path / "m.lssvm"), *words)
        assert answer.code == 2 and error in answer.err
