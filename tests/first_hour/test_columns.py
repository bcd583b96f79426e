"""Small messy tables, in memory and in files: the features that a person would expect."""

from __future__ import annotations

import datetime
import uuid
import warnings
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from tests.data.messy import workbook

from lssvm import scan
from lssvm._core.errors import ColumnWarning, InvalidInputError
from lssvm.data import CsvOptions
from lssvm.preparation import TablePreparation

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=N).round(3)
Y = (X + RNG.normal(size=N)).round(3)
WHEN = pd.date_range("2023-01-05", periods=N, freq="9D") + pd.to_timedelta(
    RNG.integers(0, 86_400, N), unit="s"
)
TYPED = pd.Series(WHEN)
CYCLES = ("year", "week", "day")
MONTH = WHEN.to_period("M").to_timestamp()


@dataclass(frozen=True)
class Case:
    """A column next to a useful one.

    Attributes
    ----------
    values : list or array
    kind : str
        What it is for a person; "dropped" where it says nothing.
    why : str
        A part of the reason.
    guess : str
        A part of the guess that is to be reported.
    names : tuple of str or None
        Ends of the names of its features.
    file : bool
        Whether a CSV file has the same features.
    """

    values: Any
    kind: str
    why: str = ""
    guess: str = ""
    names: tuple[str, ...] | None = None
    file: bool = True
    options: dict[str, Any] = field(default_factory=dict)


def dates(form: str, why: str = "", **more: Any) -> Case:
    return Case(WHEN.strftime(form).tolist(), "date", why, **more)


DMY, MDY, YMD = "day, month, year", "month, day, year", "year, month, day"
QUARTERS = [f"{t.year}Q{(t.month - 1) // 3 + 1}" for t in WHEN]
NOTHING = "all its values are missing"
IN_WORDS = ["small", "medium", "large"]
CASES = {
    # dates as people write them
    "iso with Z": dates("%Y-%m-%dT%H:%M:%SZ"),
    "iso with an offset": dates("%Y-%m-%dT%H:%M:%S+02:00"),
    "iso with two offsets": Case(
        [t.strftime("%Y-%m-%dT%H:%M:%S") + ("+01:00", "+02:00")[i % 2] for i, t in enumerate(WHEN)],
        "date",
        "UTC",
    ),
    "iso with fractions": dates("%Y-%m-%d %H:%M:%S.%f"),
    "iso without a time": dates("%Y-%m-%d"),
    "iso with slashes": dates("%Y/%m/%d", YMD),
    "American": dates("%m/%d/%Y", MDY),
    "American with a time": dates("%m/%d/%Y %I:%M %p", MDY),
    "American, two digits": dates("%m/%d/%y", MDY),
    "British": dates("%d/%m/%Y", DMY),
    "German": dates("%d.%m.%Y", DMY),
    "German with a time": dates("%d.%m.%Y %H:%M", DMY),
    "German, two digits": dates("%d.%m.%y", DMY),
    "with dashes, day first": dates("%d-%m-%Y", DMY),
    "name of the month first": dates("%b %d, %Y"),
    "full name of the month": dates("%d %B %Y"),
    "Oracle": dates("%d-%b-%Y"),
    "mail": dates("%a, %d %b %Y %H:%M:%S +0000", "UTC"),
    "eight digits": dates("%Y%m%d", YMD, guess="read as dates", file=False),
    "compact": dates("%Y%m%dT%H%M%SZ", "UTC"),
    "months": dates("%Y-%m", names=("", ":year_sin", ":year_cos")),
    "month and year": dates("%m/%Y"),
    "name of the month and year": dates("%b %Y"),
    "quarters": Case(QUARTERS, "date"),
    "weeks": dates("%G-W%V-%u"),
    "a named zone": dates("%Y-%m-%d %H:%M:%S EST", "UTC"),
    "date objects": Case([t.date() for t in WHEN], "date"),
    "timestamps": Case(TYPED, "date"),
    "timestamps with a zone": Case(TYPED.dt.tz_localize("UTC"), "date", file=False),
    "numbers of eight digits": Case(
        WHEN.strftime("%Y%m%d").astype(int), "date", YMD, guess="read as dates"
    ),
    "missing dates": Case(TYPED.where(np.arange(N) % 7 > 0), "date", "missing ones get"),
    "an order that is a guess": Case(
        [f"{1 + i % 9}/{1 + i % 8}/2024" for i in range(N)], "date", MDY, guess="day and month"
    ),
    "times of the day": Case(WHEN.strftime("%H:%M:%S").tolist(), "duration"),
    "time objects": Case([t.time() for t in WHEN], "duration", file=False),
    "durations": Case(pd.to_timedelta(RNG.integers(1, 99, N), unit="h"), "duration", file=False),
    "dates but for a word": Case(
        ["never" if i % 10 == 0 else f"{1 + i % 5}.3.2024" for i in range(N)],
        "category",
        guess="dates but for 'never' in 6 of 60 rows",
    ),
    # columns of nothing
    "NaN": Case(np.full(N, np.nan), "dropped", NOTHING),
    "None": Case([None] * N, "dropped", NOTHING),
    "NaT": Case(pd.Series([pd.NaT] * N), "dropped", NOTHING),
    "Int64 without a value": Case(pd.array([None] * N, dtype="Int64"), "dropped", NOTHING),
    "string without a value": Case(pd.array([None] * N, dtype="string"), "dropped", NOTHING),
    "categorical without a value": Case(
        pd.Categorical([None] * N, categories=["a"]), "dropped", NOTHING
    ),
    "timedelta without a value": Case(pd.to_timedelta([None] * N), "dropped", NOTHING),
    "a constant": Case(np.full(N, 7), "dropped", "it is 7 in every row"),
    "one level": Case(["same"] * N, "dropped", "it is 'same' in every row"),
    "always true": Case([True] * N, "dropped", "it is True in every row"),
    "one date": Case(["2024-03-01"] * N, "dropped", "the same date"),
    "a copy of another column": Case(X.copy(), "dropped", "it equals column 'x'"),
    # names and numbers of rows
    "running number": Case(np.arange(1, N + 1)[RNG.permutation(N)], "dropped", "numbers the rows"),
    "key of text": Case([f"K-{i}" for i in range(N)], "dropped", "every value is different"),
    "uuid": Case([str(uuid.UUID(int=i)) for i in range(N)], "dropped", "every value is different"),
    "an area": Case(20 + RNG.permutation(2 * N)[:N], "number"),
    "years": Case(1960 + np.arange(N), "number"),
    "notes": Case([f"called on day {i // 2}, said that it is fine" for i in range(N)], "dropped"),
    # numbers
    "whole numbers with a gap": Case(pd.array([None, *range(N - 1)], dtype="Int64"), "number"),
    "numbers and a word": Case(
        ["k.A." if i % 8 == 0 else str(i % 13) for i in range(N)],
        "category",
        guess="numbers but for 'k.A.' in 8 of 60 rows",
    ),
    "numbers with units as text": Case(
        [f"{i % 6}.50 %" for i in range(N)], "category", guess="numbers written", file=False
    ),
    "codes with zeros in front": Case([f"00{i % 7}" for i in range(N)], "category"),
    "decimals": Case([Decimal(str(round(2 * x, 3))) for x in X.tolist()], "number"),
    "large whole numbers": Case(10**14 + RNG.integers(0, 10**6, N), "number"),
    "booleans": Case(X > 0, "boolean"),
    "booleans with a gap": Case(pd.array([None, *(X > 0)[1:]], dtype="boolean"), "boolean"),
    # categories
    "few levels": Case(RNG.choice(IN_WORDS, N), "category"),
    "ordered categorical": Case(
        pd.Categorical(RNG.choice(IN_WORDS, N), categories=IN_WORDS, ordered=True),
        "category",
        "small < medium < large",
        names=("",),
        file=False,
    ),
    "ordered by name": Case(
        RNG.choice(IN_WORDS, N).tolist(),
        "category",
        "small < medium < large",
        names=("",),
        options={"ordered": {"col": IN_WORDS}},
    ),
    "rare levels": Case(
        [f"rare {i}" if i < 6 else IN_WORDS[i % 3] for i in range(N)], "category", "pooled"
    ),
    "missing levels": Case([None if i % 4 == 0 else IN_WORDS[i % 3] for i in range(N)], "category"),
    "letters beyond ASCII": Case(RNG.choice(["Köln", "Zürich", "Málaga"], N), "category"),
}


def outcome(table: Any, options: dict[str, Any]) -> tuple[TablePreparation, Any]:
    """Return the fitted preparation, and its features."""
    preparation = TablePreparation(**options)
    return preparation, preparation.fit_transform(table, Y)


def test_there_are_enough_cases():
    assert len(CASES) >= 60
    assert sum(case.kind == "date" for case in CASES.values()) >= 24


@pytest.mark.parametrize("name", CASES)
def test_a_column_of_a_frame_gives_what_a_person_expects(name):
    case, table = CASES[name], pd.DataFrame({"x": X, "col": CASES[name].values})
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        preparation, Z = outcome(table, case.options)
    column, prepared = preparation.prepared_.columns[1], preparation.prepared_
    assert np.all(np.isfinite(Z)) and Z.shape[1] == prepared.n_features
    assert [w.category for w in warned] == [ColumnWarning] * bool(
        case.kind == "dropped" or prepared.guesses
    )
    if case.kind == "dropped":
        assert column.encoding is None and list(prepared.dropped) == ["col"]
        assert "'col'" in str(warned[0].message) and column.why in str(warned[0].message)
    else:
        assert (column.kind, prepared.dropped) == (case.kind, {})
    assert case.why in column.why
    if name != "eight digits":  # text is not a guess, numbers are
        assert bool(case.guess) == bool(column.guess) and case.guess in column.guess
    if case.names is not None:
        assert column.encoding.suffixes == case.names
    if case.kind == "date" and "missing" not in name and not case.guess:
        start = {"months": MONTH, "month and year": MONTH, "name of the month and year": MONTH}
        want = start.get(name)
        if want is None and name not in ("quarters", "weeks"):
            want = WHEN if {":day_sin"} & {*column.encoding.suffixes} else WHEN.normalize()
        if want is not None and len(set(want)) == N:
            days = (want - want[0]) / pd.Timedelta("1D")
            place = Z[:, list(preparation.get_feature_names_out()).index("col")]
            assert np.corrcoef(days, place)[0, 1] > 0.99999
    few, all_rows = preparation.transform(table.iloc[:7]), preparation.transform(table)
    np.testing.assert_allclose(few, all_rows[:7])


@pytest.mark.filterwarnings("ignore::lssvm._core.errors.ColumnWarning")
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.file])
def test_a_column_of_a_file_gives_the_features_of_the_frame(name, tmp_path):
    case, table = CASES[name], pd.DataFrame({"x": X, "col": CASES[name].values})
    table.assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    rows = scan(tmp_path / "t.csv", target="y").read()
    preparation, Z = outcome(rows.table, case.options)
    frame, want = outcome(table, case.options)
    assert preparation.prepared_.dropped == frame.prepared_.dropped
    assert list(preparation.prepared_.guesses) == list(frame.prepared_.guesses)
    np.testing.assert_allclose(Z, want, atol=1e-9)
    np.testing.assert_allclose(frame.transform(rows.table), frame.transform(table), atol=1e-9)


@pytest.mark.filterwarnings("ignore::lssvm._core.errors.ColumnWarning")
def test_cells_of_excel_that_are_dates_are_dates(tmp_path):
    pytest.importorskip("python_calamine")
    days = [t.date() for t in WHEN]
    cells = [["x", "when", "y"], *([x, d, y] for x, d, y in zip(X, days, Y, strict=True))]
    (tmp_path / "t.xlsx").write_bytes(workbook(cells))
    rows = scan(tmp_path / "t.xlsx", target="y").read()
    _, Z = outcome(rows.table, {})
    np.testing.assert_allclose(Z, outcome(pd.DataFrame({"x": X, "when": days}), {})[1], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("t.csv", lambda text: text.encode("latin-1")),
        ("t.csv", lambda text: text.encode("utf-8-sig")),
        ("t.csv", lambda text: text.encode("utf-16")),
        ("t.tsv", lambda text: text.replace(",", "\t").encode()),
        ("t.txt", lambda text: text.replace(",", "\t").encode()),
        ("t.txt", lambda text: text.replace(",", ";").replace(".", ",").encode()),
    ],
)
def test_text_files_of_other_encodings_and_signs(name, encode, tmp_path):
    table = pd.DataFrame({"x": X, "town": RNG.choice(["Köln", "Zürich"], N), "y": Y})
    (tmp_path / name).write_bytes(encode(table.to_csv(index=False)))
    rows = scan(tmp_path / name, target="y").read()
    want = TablePreparation().fit_transform(table[["x", "town"]])
    np.testing.assert_allclose(TablePreparation().fit_transform(rows.table), want, atol=1e-9)
    np.testing.assert_allclose(rows.target, Y)


def test_a_word_that_means_missing_makes_numbers(tmp_path):
    words = ["k.A." if i % 8 == 0 else str(i % 13) for i in range(N)]
    pd.DataFrame({"n": words, "y": Y}).to_csv(tmp_path / "t.csv", index=False)
    data = scan(tmp_path / "t.csv", target="y", csv=CsvOptions(null_values=("k.A.",)))
    preparation = TablePreparation().fit(data.read().table)
    assert preparation.report_["kind"] == ["number"]
    assert preparation.get_feature_names_out().tolist() == ["n", "n=(missing)"]


def test_what_cannot_be_a_column_is_an_error_that_names_it():
    for values, words in (
        ([1, "two", 3.5], "mixes values of different kinds"),
        ([{"a": 1}, {"b": 2}, None], "values of type dict"),
        ([1.0, np.inf, 2.0], "has an infinite value"),
        ([datetime.date(2024, 1, 1), "later", None], "mixes values of different kinds"),
    ):
        with pytest.raises(InvalidInputError, match=f"Column 'col' .*{words}"):
            TablePreparation().fit({"col": values})


def test_halves_of_surrogate_pairs_are_levels():
    levels = [("\ud800a", "b", "c")[i % 3] for i in range(N)]
    assert TablePreparation().fit({"col": levels}).report_["why"] == ["3 levels"]
