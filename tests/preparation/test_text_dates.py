"""Dates that are written as text."""

from __future__ import annotations

import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError
from lssvm.data.dates import date_style, parse_dates
from lssvm.preparation import TablePreparation

DAYS = np.datetime64("2023-01-01") + 3 * np.arange(300)


def written(pattern):
    return [pattern.format(d=d.day, m=d.month, y=d.year) for d in DAYS.tolist()]


@pytest.mark.parametrize(
    ("pattern", "order"),
    [
        ("{y}-{m:02}-{d:02}", "ymd"),
        ("{y}/{m}/{d}", "ymd"),
        ("{y}-{m:02}-{d:02}T06:30:15.5", "ymd"),
        ("{m}/{d}/{y}", "mdy"),
        ("{d}/{m}/{y} 6:30", "dmy"),
        ("{d}.{m}.{y}", "dmy"),
        ("{d}-{m}-{y}", "dmy"),
    ],
)
def test_dates_in_text_are_those_of_dates(pattern, order):
    texts = written(pattern)
    assert date_style(texts).order == order
    clock = {"T": 6.5 * 3600 + 15.5, " ": 6.5 * 3600}
    seconds = next((s for sign, s in clock.items() if sign in pattern), 0.0)
    moments = DAYS + np.timedelta64(int(seconds * 1e6), "us")
    for preparation in (TablePreparation(), TablePreparation("quantiles")):
        expected = preparation.fit_transform({"when": moments})
        np.testing.assert_allclose(preparation.fit_transform({"when": texts}), expected)
        np.testing.assert_allclose(preparation.transform({"when": texts}), expected)
        np.testing.assert_allclose(preparation.transform({"when": moments}), expected)
        assert preparation.report_["kind"] == ["date"]
        assert "written as" in preparation.report_["why"][0]


@pytest.mark.parametrize(
    "texts",
    [
        ["2024-13-01", "2024-01-01"],
        ["2024-02-30", "2024-02-01"],
        ["31/31/2024", "1/1/2024"],
        ["2024-01-01T10:00", "2024-01-01T10:00Z"],
        ["2024-01-01", "soon"],
        ["soon", "2024-01-01"],
        ["2024-01-01T25:00"],
        ["1.2", "3.4"],
        ["2001 Aug", "2001 a space odyssey"],
        [],
    ],
)
def test_what_is_no_date(texts):
    assert date_style(texts) is None


def test_points_put_the_day_first():
    assert date_style(["3.4.2024", "5.6.2024"]).order == "dmy"
    assert date_style(["12.31.2024"]).order == "mdy"


def test_new_text_that_is_no_such_date_is_an_error():
    preparation = TablePreparation().fit({"when": written("{m}/{d}/{y}")})
    assert np.all(np.isfinite(preparation.transform({"when": ["3/4/2024", None]})))
    for wrong in ("31/1/2024", "tomorrow"):
        with pytest.raises(InvalidInputError, match=f"'when' has the text '{wrong}'.*month, day"):
            preparation.transform({"when": ["3/4/2024", wrong]})


def test_rows_without_weight_do_not_decide():
    texts = [*written("{m}/{d}/{y}"), "never"]
    weight = np.r_[np.ones(300), 0.0]
    preparation = TablePreparation().fit({"when": texts}, sample_weight=weight)
    assert preparation.report_["kind"] == ["date"]
    with pytest.raises(InvalidInputError, match="'never'"):
        preparation.fit_transform({"when": texts}, sample_weight=weight)


def test_text_can_stay_text():
    y = np.arange(300.0)
    table = {"when": written("{y}-{m}-01"), "x": np.sin(y)}
    with pytest.warns(UserWarning, match="dates written as text"):
        preparation = TablePreparation(parse_dates=False).fit(table, y)
    assert preparation.report_["kind"][0] == "category"


FORMS = [
    ("2024-08-18T10:29:00Z", "UTC"),
    ("2024-08-18 10:29:00+00:00", "UTC"),
    ("2024-08-18T12:29:00+02:00", "UTC"),
    ("2024-08-18T06:29:00.000-0400", "UTC"),
    ("08/18/2024 10:29 AM", None),
    ("18.08.2024 10:29", None),
    ("18/08/2024 10:29:00", None),
    ("Aug 18, 2024 10:29", None),
    ("August 18, 2024, 10:29 am", None),
    ("18 Aug 2024 10:29", None),
    ("18-Aug-2024 10:29", None),
    ("Sun, 18 Aug 2024 10:29:00 GMT", "UTC"),
    ("2024/8/18 10:29", None),
    ("8/18/24 10:29 AM", None),
    ("18.8.24 10:29", None),
    ("20240818T102900Z", "UTC"),
    ("20240818102900", None),
    ("2024-08-18 12:29 CEST", "UTC"),
    ("2024-W33-7 10:29", None),
    ("2024 W33-7 10:29", None),
    ("2024 August 18 10:29", None),
    ("2024-Aug-18 10:29", None),
]


@pytest.mark.parametrize(("text", "zone"), FORMS)
def test_every_usual_form_is_the_same_moment(text, zone):
    style = date_style([text])
    assert style.zone == zone and not style.ambiguous
    (moment,) = parse_dates([text], style.order, style.zoned)
    assert moment == np.datetime64("2024-08-18T10:29")


def test_months_are_their_first_day():
    texts = ["2024-08", "Aug 2024", "August 2024", "2024/8", "08/2024", "20240801"]
    texts += ["2024 Aug", "2024, August", "2024-aug"]  # as tables of R have months
    assert set(parse_dates(texts, "ymd").tolist()) == {np.datetime64("2024-08-01", "us").item()}
    assert set(parse_dates(["2024Q3", "2024-Q3", "Q3 2024", "2024-W27-1"], "ymd").tolist()) == {
        np.datetime64("2024-07-01", "us").item()
    }
    preparation = TablePreparation().fit(
        {"when": [f"{2000 + i // 12}-{1 + i % 12}" for i in range(40)]}
    )
    assert "week" not in preparation.report_["done"][0]


@pytest.mark.filterwarnings("ignore::lssvm._core.errors.ColumnWarning")
@pytest.mark.parametrize("dtype", [int, float, str])
def test_numbers_of_eight_digits_are_dates(dtype):
    days = np.datetime64("2024-01-01") + 7 * np.arange(60)
    numbers = np.array([str(day).replace("-", "") for day in days]).astype(dtype)
    preparation = TablePreparation().fit({"when": numbers})
    assert preparation.report_["kind"] == ["date"]
    assert len(preparation.prepared_.guesses) == (dtype is not str)
    want = TablePreparation().fit_transform({"when": days})
    np.testing.assert_array_equal(preparation.transform({"when": numbers}), want)
    other = numbers.astype(int if dtype is str else str)
    if dtype is not float:
        np.testing.assert_array_equal(preparation.transform({"when": other}), want)
    with pytest.raises(InvalidInputError, match="'20241341'"):
        preparation.transform({"when": [20240101, 20241341]})
    shifted = TablePreparation().fit({"when": np.arange(60) + 20240101})
    assert shifted.report_["kind"] == ["number"]  # 20240132 is not a date


def test_times_of_the_day_are_parts_of_it():
    texts = [f"{i % 24}:{i % 60:02}" for i in range(60)]
    preparation = TablePreparation().fit({"at": texts})
    assert preparation.report_["kind"] == ["duration"]
    Z = preparation.transform({"at": ["12:00", "12:00:00", "12:00 PM", None]})
    assert np.all(Z[:3] == Z[0]) and preparation.prepared_.columns[0].width == 1
    with pytest.raises(InvalidInputError, match="'noon' in row 0"):
        preparation.transform({"at": ["noon"]})


def test_noon_and_midnight():
    found = parse_dates(["1/31/2024 12:05 AM", "1/31/2024 12:05 PM"], "mdy")
    assert found.astype(str).tolist() == [
        "2024-01-31T00:05:00.000000",
        "2024-01-31T12:05:00.000000",
    ]


def test_an_order_that_no_value_shows_is_a_guess_and_is_reported():
    texts = [f"0{1 + i % 9}/0{1 + i % 7}/2024" for i in range(60)]
    with pytest.warns(UserWarning, match="they are read as month, day, year"):
        preparation = TablePreparation().fit({"when": texts})
    assert preparation.report_["kind"] == ["date"]
    assert "a guess: no value distinguishes day and month" in preparation.report_["why"][0]


def test_zones_are_named_and_new_rows_need_one():
    texts = [f"{text}T12:00:00+02:00" for text in written("{y}-{m:02}-{d:02}")]
    preparation = TablePreparation().fit({"when": texts})
    assert "in UTC" in preparation.report_["why"][0]
    moments = DAYS.astype("datetime64[us]") + np.timedelta64(10, "h")
    utc = preparation.transform({"when": np.datetime_as_string(moments, timezone="UTC").tolist()})
    np.testing.assert_allclose(utc, preparation.transform({"when": texts}), atol=1e-12)
    with pytest.raises(InvalidInputError, match="with a time zone in training"):
        preparation.transform({"when": ["2024-01-01T12:00:00"]})
