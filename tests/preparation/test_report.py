"""Columns that say nothing are noticed, named and dropped."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from lssvm import LSSVMClassifier, LSSVMRegressor
from lssvm._core.errors import ColumnWarning, InvalidInputError
from lssvm.data.preparation import PreparedTable
from lssvm.preparation import TablePreparation

N = 60
RNG = np.random.default_rng(0)
USEFUL = RNG.normal(size=N)


NOISE = RNG.normal(size=N)


def outcome(values, y=None, **parameters):
    """Return what was done with a column next to a useful one, and why."""
    preparation = TablePreparation(**parameters).fit({"useful": USEFUL, "col": values}, y)
    report = preparation.report_
    assert report["done"][0] == "standardised"
    return report["done"][1], report["why"][1]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (np.full(N, 3.5), "it is 3.5 in every row"),
        (1e6 + 1e-8 * RNG.uniform(size=N), "it is 1e+06 in every row"),
        (np.full(N, True), "it is True in every row"),
        (["same"] * N, "it is 'same' in every row"),
        (np.full(N, np.datetime64("2024-01-01")), "the same date"),
        ([None] * N, "all its values are missing"),
        (USEFUL.copy(), "it equals column 'useful'"),
        ([f"AB-{i}" for i in range(N)], "every value is different"),
        ([f"AB-{max(i, 3)}" for i in range(N)], "95% of the values are different"),
        (np.arange(N), "it numbers the rows"),
        (np.arange(1, N + 1)[::-1], "it numbers the rows"),
        (np.full(N, np.datetime64("NaT", "us")), "all its values are missing"),
        (np.full(N, np.nan), "all its values are missing"),
        (
            [f"a long remark about the order, {i % 40}, that somebody wrote" for i in range(N)],
            "free text of 5",
        ),
        ([f"{i // 2}" for i in range(N)], "every level is rare"),
    ],
)
def test_useless_columns_are_dropped_with_the_reason(values, why):
    with pytest.warns(UserWarning, match="Columns of X are dropped. 'col': ") as warned:
        done, reason = outcome(values, NOISE)
    assert done == "dropped"
    assert why in reason
    assert reason in str(warned[0].message)


@pytest.mark.parametrize(
    "values",
    [
        RNG.integers(0, 1000, N),
        RNG.permutation(2 * N)[:N],  # an area, although it predicts nothing
        np.arange(N) + 1960,
        np.arange(N) / 2,
        np.where(np.arange(N) == 3, np.nan, 7.0),
        ["same"] * 30 + [None] * 30,
        [f"kind {i % 6}" for i in range(N)],
        np.arange(N) % 2 == 0,
    ],
)
def test_useful_columns_are_not(values):
    done, _ = outcome(values, NOISE)
    assert done != "dropped"


@pytest.mark.parametrize(
    ("values", "y"),
    [
        (np.arange(N), np.arange(N) / 10.0 + NOISE),  # a time index with a trend
        (RNG.permutation(2 * N)[:N], None),  # an area
        (np.arange(N), np.arange(N) // 20),  # classes
    ],
)
def test_whole_numbers_that_predict_are_kept(values, y):
    y = 0.3 * values + NOISE if y is None else y
    done, why = outcome(values, y)
    assert done == "standardised" and "different numbers" in why


@pytest.mark.parametrize("name", ["id", "customer_id", "CustomerID", "row", "Unnamed: 0"])
def test_what_is_called_an_id_is_dropped_where_it_predicts_nothing(name):
    numbers = RNG.permutation(10 * N)[:N]
    with pytest.warns(ColumnWarning, match=f"'{name}': it numbers the rows"):
        TablePreparation().fit({"useful": USEFUL, name: numbers}, NOISE)
    kept = TablePreparation().fit({"useful": USEFUL, name: numbers}, 0.1 * numbers + NOISE)
    assert not kept.prepared_.dropped
    assert not TablePreparation().fit({"useful": USEFUL, "paid": numbers}, NOISE).prepared_.dropped


def test_without_targets_a_running_number_is_kept():
    done, why = outcome(np.arange(N))
    assert done == "standardised" and why == "60 different numbers"


def test_columns_are_dropped_and_kept_by_name():
    table = {"useful": USEFUL, "id": np.arange(N), "other": USEFUL**2}
    preparation = TablePreparation(drop=["other"], keep=["id"]).fit(table, NOISE)
    assert preparation.get_feature_names_out().tolist() == ["useful", "id"]
    assert preparation.report_["why"][2] == "drop= names it"
    with pytest.raises(InvalidInputError, match=r"keep= names the columns \['idd'\]"):
        TablePreparation(keep=["idd"]).fit(table)
    with pytest.raises(InvalidInputError, match="drop= and keep= both name"):
        TablePreparation(drop=["id"], keep=["id"]).fit(table)
    with pytest.raises(InvalidInputError, match="give a list of column names"):
        TablePreparation(drop="id").fit(table)


def test_a_column_that_only_rows_of_weight_zero_have_is_dropped():
    late = np.where(np.arange(N) < 40, np.nan, USEFUL)
    when = np.where(np.arange(N) < 40, np.datetime64("NaT", "us"), np.datetime64("2024-01-01"))
    weight = (np.arange(N) < 40).astype(float)
    table = {"useful": USEFUL, "late": late, "when": when}
    with pytest.warns(UserWarning, match="'late': all its values are missing"):
        preparation = TablePreparation().fit(table, NOISE, sample_weight=weight)
    assert preparation.get_feature_names_out().tolist() == ["useful"]


def test_all_columns_can_be_kept():
    y = RNG.normal(size=N)
    table = {"one": np.ones(N), "same": USEFUL, "twin": USEFUL, "id": np.arange(N)}
    table["name"] = [f"n{i}" for i in range(N)]
    preparation = TablePreparation(drop=False)
    Z = preparation.fit_transform(table, y)
    assert Z.shape == (N, 5)
    assert np.all(np.isfinite(Z))
    np.testing.assert_array_equal(Z[:, 0], 0.0)
    np.testing.assert_array_equal(Z[:, 1], Z[:, 2])


def test_a_repeated_row_is_no_repeated_id():
    names = np.array([f"n{i}" for i in range(N)])
    table = {"useful": USEFUL, "name": names}
    twice = np.r_[0, np.arange(N)]
    with pytest.warns(UserWarning, match="Columns of X are dropped"):
        weighted = TablePreparation().fit(table, sample_weight=np.r_[2, np.ones(N - 1)])
        repeated = TablePreparation().fit({name: v[twice] for name, v in table.items()})
    assert weighted.report_ == repeated.report_


def test_values_that_nearly_all_differ_are_not_100_per_cent():
    table = {"useful": np.arange(300) % 7, "col": [f"AB-{max(i, 1)}" for i in range(300)]}
    with pytest.warns(ColumnWarning, match="'col': 99% of the values are different"):
        TablePreparation().fit(table)


def test_nothing_left_is_an_error_with_the_reasons():
    with pytest.raises(InvalidInputError, match=r"No column of X is usable .*'a': it is 1 in"):
        TablePreparation().fit({"a": [1, 1], "b": [None, None]})


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ([f"{i % 7},5" for i in range(N)], "numbers"),
        ([f"{i % 7}.25 %" for i in range(N)], "numbers"),
        ([f"€ 1.{i % 7}00,00" for i in range(N)], "numbers"),
        ([f"{i % 7}" if i % 8 else "k.A." for i in range(N)], "numbers but for 'k.A.' in 8 of 60"),
        ([f"{i % 7 + 1}.12.24" if i % 10 else "?" for i in range(N)], "dates but for '[?]' in 6"),
    ],
)
def test_numbers_and_dates_written_as_text_are_said(values, what):
    what = f"{what} written as text" if " " not in what else what
    with pytest.warns(ColumnWarning, match=f"Column 'col': {what}"):
        preparation = TablePreparation().fit({"useful": USEFUL, "col": values})
    assert preparation.report_["done"][1].startswith("indicators")
    assert set(preparation.prepared_.guesses) == {"col"}
    again = PreparedTable.from_record(preparation.prepared_.to_record())
    assert again.guesses == preparation.prepared_.guesses


@pytest.mark.parametrize("cls", [LSSVMRegressor, LSSVMClassifier])
def test_a_warning_of_columns_points_at_the_line_of_the_user(cls):
    table = {"useful": USEFUL, "one": np.ones(N), "job": ["cook", "nurse"] * (N // 2)}
    with pytest.warns(ColumnWarning, match="Columns of X are dropped") as warned:
        model = cls("fast").fit(table, USEFUL > 0)
    assert {warning.filename for warning in warned} == {__file__}
    with pytest.warns(ColumnWarning, match="'job' has no value seen in training") as warned:
        model.predict(table | {"job": ["pilot"] * N})
    assert {warning.filename for warning in warned} == {__file__}
    with pytest.warns(UserWarning, match="columns are taken by position") as warned:
        model.predict(np.column_stack([np.asarray(v, dtype=object) for v in table.values()]))
    assert {warning.filename for warning in warned} == {__file__}


MEASURED = [f"{i}.25" for i in range(1, N)]
DATED = [f"{i % 30 + 1}.{i % 12 + 1}.24" for i in range(1, N)]


@pytest.mark.parametrize(
    ("values", "what", "remedy"),
    [
        ([".", *MEASURED[1:-1], "."], "numbers but for '.' in 2 of 59 rows", "errors='coerce'"),
        (MEASURED, "numbers written as text ('1.25')", "If they are numbers"),
        ([*DATED[:-1], "late"], "dates but for 'late' in 1 of 59 rows", "errors='coerce'"),
        ([f"A{i}" for i in range(1, N)], "an id", ""),
        ([f"{i:05}" for i in range(1, N)], "an id", ""),
    ],
)
def test_a_dropped_id_that_may_be_numbers_is_named_so(values, what, remedy):
    """A measurement that is text, as points stand for missing values, looks like an id."""
    with pytest.warns(ColumnWarning, match="Columns of X are dropped. 'col'") as warned:
        preparation = TablePreparation().fit({"useful": USEFUL[1:], "col": values}, NOISE[1:])
    assert preparation.report_["done"][1] == "dropped"
    why, message = preparation.report_["why"][1], str(warned[0].message)
    assert what in why and remedy in why and why in message
    assert ("turn " in why) == bool(remedy)


def test_dropped_and_guessed_columns_are_listed_in_one_warning():
    table = {"useful": USEFUL, "one": np.ones(N), "day": ["3/4/2024", "5/6/2024"] * 30}
    table["id"] = [f"n{i}" for i in range(N)]
    with pytest.warns(ColumnWarning) as warned:
        preparation = TablePreparation(drop=["id"]).fit(table)
    assert len(warned) == 1  # what the user drops is not in it
    assert str(warned[0].message) == (
        "Columns of X are dropped. 'one': it is 1 in every row. Column 'day': no value "
        "distinguishes day and month: they are read as month, day, year. If that is wrong, "
        "write them as 2024-12-31."
    )
    assert preparation.prepared_.dropped == {
        "one": "it is 1 in every row",
        "id": "drop= names it",
    }


def test_codes_of_digits_are_categories_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done, _ = outcome([f"00{i % 7}" for i in range(N)])
    assert done.startswith("indicators")


def test_the_report_prints_as_a_table_and_makes_a_frame():
    with pytest.warns(UserWarning, match="'one': it is 1 in every row"):
        preparation = TablePreparation().fit({"useful": USEFUL, "one": np.ones(N)})
    lines = str(preparation.report_).splitlines()
    assert [line.split()[0] for line in lines] == ["column", "useful", "one"]
    assert len({len(line) for line in lines}) == 1
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(preparation.report_)
    assert frame.loc[1, "why"] == "it is 1 in every row"
