"""Dates that are written as text."""

from __future__ import annotations

import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError
from lssvm.preparation import TablePreparation
from lssvm.preparation.text_dates import date_order

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
    assert date_order(texts) == order
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
        ["3/4/2024", "5/6/2024"],
        ["2024-13-01", "2024-01-01"],
        ["2024-02-30", "2024-02-01"],
        ["31/31/2024", "1/1/2024"],
        ["2024-01-01", "1/31/2024"],
        ["2024-01-01", "soon"],
        ["soon", "2024-01-01"],
        ["2024-01-01T25:00"],
        ["1.2", "3.4"],
        [],
    ],
)
def test_what_is_in_doubt_is_no_date(texts):
    assert date_order(texts) is None


def test_points_put_the_day_first():
    assert date_order(["3.4.2024", "5.6.2024"]) == "dmy"
    assert date_order(["12.31.2024"]) == "mdy"


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
