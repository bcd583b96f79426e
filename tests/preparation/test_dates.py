"""Dates as position and cycles."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from lssvm.data.columns import RawColumn
from lssvm.data.encodings import DateEncoding, NumberEncoding, days, phase
from lssvm.preparation import TablePreparation

RNG = np.random.default_rng(0)


def moments(start, span, unit, n=200):
    return np.datetime64(start, unit) + RNG.integers(0, span, n)


def test_the_phases_are_those_of_the_calendar():
    when = moments("1890-01-01T00:00", 90_000_000, "m", 500).astype("datetime64[us]")
    for moment in when:
        date = moment.astype(datetime.datetime)
        length = 366 if (date.year % 4 == 0 and date.year % 100) or date.year % 400 == 0 else 365
        expected = {
            "year": (date.timetuple().tm_yday - 1) / length,
            "week": date.weekday() / 7,
            "day": (date.hour * 60 + date.minute) / 1440,
        }
        for cycle, value in expected.items():
            np.testing.assert_allclose(phase(np.array([moment]), cycle), value, atol=1e-12)
    epoch = datetime.datetime(1970, 1, 1)
    first = when[0].astype(datetime.datetime)
    assert abs(days(when[:1])[0] - (first - epoch).total_seconds() / 86400) < 1e-9


@pytest.mark.parametrize(
    ("when", "cycles"),
    [
        (moments("2020-01-01T00:00", 3_000_000, "m"), ["year", "week", "day"]),
        (moments("2020-01-01", 2000, "D"), ["year", "week"]),
        (moments("2020-01-01T00", 24 * 30, "h"), ["week", "day"]),
        (moments("2020-01-01T00:00", 1200, "m"), []),
        (np.datetime64("2020-01-06", "D") + 7 * np.arange(200), ["year"]),
    ],
)
def test_only_cycles_that_the_rows_go_through_are_used(when, cycles):
    preparation = TablePreparation().fit({"when": when})
    waves = [f"when:{cycle}_{wave}" for cycle in cycles for wave in ("sin", "cos")]
    assert preparation.get_feature_names_out().tolist() == ["when", *waves]


def test_position_and_circle():
    when = moments("2020-01-01T00:00", 3_000_000, "m")
    Z = TablePreparation().fit_transform({"when": when})
    position = when.astype(float)
    expected = (position - position.mean()) / position.std()
    np.testing.assert_allclose(Z[:, 0], expected, atol=1e-9)
    for first in (1, 3, 5):
        np.testing.assert_allclose(Z[:, first] ** 2 + Z[:, first + 1] ** 2, 1.0)
    scores = TablePreparation("quantiles").fit_transform({"when": when})
    by_number = TablePreparation("quantiles").fit_transform({"x": position})
    np.testing.assert_allclose(scores[:, 0], by_number[:, 0], atol=1e-12)
    np.testing.assert_array_equal(scores[:, 1:], Z[:, 1:])


def test_missing_dates_are_filled_and_marked():
    when = moments("2020-01-01T00:00", 3_000_000, "m")
    when[3] = np.datetime64("NaT", "D")
    preparation = TablePreparation().fit({"when": when})
    assert preparation.get_feature_names_out()[1] == "when=(missing)"
    Z = preparation.transform({"when": when})
    known = np.delete(when, 3)
    middle = np.median(known.astype("datetime64[us]").astype(float)).astype("datetime64[us]")
    np.testing.assert_allclose(Z[3, 0], preparation.transform({"when": [middle]})[0, 0], atol=1e-9)
    np.testing.assert_allclose(Z[3, 1], np.sqrt(0.5))
    np.testing.assert_array_equal(Z[3, 2:], 0.0)


def test_the_report_writes_the_date_that_missing_ones_get():
    when = np.array(["2020-03-01", "NaT", "2020-03-05", "2020-03-05T12:00"], "datetime64[m]")
    assert TablePreparation().fit({"when": when[[0, 1, 2, 2]]}).report_["why"] == (
        ["4 days; missing ones get the median, 2020-03-05"]
    )
    assert TablePreparation().fit({"when": when[[0, 1, 3, 3]]}).report_["why"] == (
        ["4 days; missing ones get the median, 2020-03-05T12:00"]
    )


def test_cycles_are_whole_circles():
    days = np.array(["2023-01-01", "2023-07-02", "2023-12-31", "2022-12-31"], "datetime64[us]")
    column = RawColumn("when", "date", days)
    position = NumberEncoding(0.0, 0.0, 1.0, np.empty(0), np.empty(0), 0.0)
    encoding = DateEncoding(position, ("year",), None, "")
    out = np.empty((4, encoding.width))
    encoding.encode(column, out)
    points = out[:, -2:]
    np.testing.assert_allclose((points**2).sum(axis=1), 1.0)
    np.testing.assert_allclose(points[1], -points[0], atol=0.01)  # half a year is the other side
    for last in points[2:]:  # and New Year's Eve is next to New Year
        assert np.abs(last - points[0]).max() < 0.02
