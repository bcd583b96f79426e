"""Columns that say nothing are noticed, named and left out."""

from __future__ import annotations

import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError
from lssvm.preparation import TablePreparation

N = 60
RNG = np.random.default_rng(0)
USEFUL = RNG.normal(size=N)


def outcome(values, **parameters):
    """Return what was done with a column beside a useful one, and why."""
    preparation = TablePreparation(**parameters).fit({"useful": USEFUL, "col": values})
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
        (RNG.permutation(2 * N)[:N], "it numbers the rows"),
        (
            [f"a long remark about the order, {i % 40}, that somebody wrote" for i in range(N)],
            "free text of 5",
        ),
        ([f"{i // 2}" for i in range(N)], "every level is rare"),
    ],
)
def test_useless_columns_are_left_out_with_the_reason(values, why):
    done, reason = outcome(values)
    assert done == "left out"
    assert why in reason


@pytest.mark.parametrize(
    "values",
    [
        RNG.integers(0, 1000, N),
        np.arange(N) + 1960,
        np.arange(N) / 2,
        np.where(np.arange(N) == 3, np.nan, 7.0),
        ["same"] * 30 + [None] * 30,
        [f"kind {i % 6}" for i in range(N)],
        np.arange(N) % 2 == 0,
    ],
)
def test_useful_columns_are_not(values):
    done, _ = outcome(values)
    assert done != "left out"


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
    weighted = TablePreparation().fit(table, sample_weight=np.r_[2, np.ones(N - 1)])
    twice = np.r_[0, np.arange(N)]
    repeated = TablePreparation().fit({name: v[twice] for name, v in table.items()})
    assert weighted.report_ == repeated.report_


def test_nothing_left_is_an_error_with_the_reasons():
    with pytest.raises(InvalidInputError, match=r"No column of X is usable .*'a': it is 1 in"):
        TablePreparation().fit({"a": [1, 1], "b": [None, None]})


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ([f"{i % 7},5" for i in range(N)], "numbers"),
        ([f"{i % 7}.25 %" for i in range(N)], "numbers"),
        ([f"€ 1.{i % 7}00,00" for i in range(N)], "numbers"),
        ([f"{i % 7 + 1}/5/2024" for i in range(N)], "dates"),
        ([f"{i % 7 + 1}.12.24" for i in range(N)], "dates"),
    ],
)
def test_numbers_and_dates_written_as_text_are_said(values, what):
    with pytest.warns(UserWarning, match=f"Column 'col' has {what} written as text"):
        done, why = outcome(values)
    assert done.startswith("indicators")
    assert f"look like {what} written as text" in why


def test_codes_of_digits_are_categories_without_a_word():
    done, why = outcome([f"00{i % 7}" for i in range(N)])
    assert done.startswith("indicators")
    assert "look like" not in why


def test_the_report_prints_as_a_table_and_makes_a_frame():
    preparation = TablePreparation().fit({"useful": USEFUL, "one": np.ones(N)})
    lines = str(preparation.report_).splitlines()
    assert [line.split()[0] for line in lines] == ["column", "useful", "one"]
    assert len({len(line) for line in lines}) == 1
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(preparation.report_)
    assert frame.loc[1, "why"] == "it is 1 in every row"
