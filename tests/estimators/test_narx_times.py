"""Series with dates: forecasts carry them, files keep them."""

import numpy as np
import pandas as pd
import pytest

from lssvm import LSSVR, NARX, load, save
from lssvm._core.errors import InvalidInputError
from lssvm.fitting.series import Calendar, drift, find_season, repeat_last, seasonal_naive


def wave(n=60):
    return np.sin(0.5 * np.arange(n)) + 0.05 * np.random.default_rng(0).normal(size=n)


RULES = {
    "days": "D",
    "hours": "h",
    "weeks": "W-TUE",
    "month_ends": "ME",
    "month_starts": "MS",
    "quarter_ends": "QE",
    "years": "YS",
    "working_days": "B",
    "ten_minutes": "10min",
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_next_times_are_those_of_the_calendar(rule):
    expected = pd.date_range("2023-01-02 00:00", periods=75, freq=rule)
    model = NARX(LSSVR(), 3).fit(pd.Series(wave(60), index=expected[:60], name="load"))
    made = model.forecast(15)
    assert isinstance(made, pd.Series) and made.name == "load"
    np.testing.assert_array_equal(made.index.to_numpy(), expected[60:].to_numpy())
    plain = NARX(LSSVR(), 3).fit(wave(60), times=expected[:60].to_numpy())
    forecast = plain.forecast(15)
    assert isinstance(forecast, np.ndarray)
    np.testing.assert_array_equal(forecast, made.to_numpy())
    np.testing.assert_array_equal(plain.forecast_times(15), expected[60:].to_numpy())


def test_files_keep_the_dates(tmp_path):
    index = pd.date_range("2024-01-31", periods=60, freq="ME")
    model = NARX(LSSVR(), 3).fit(pd.Series(wave(), index=index))
    for keep in ("prediction", "all", "support"):
        save(model, tmp_path / "m.lssvm", keep=keep)
        again = load(tmp_path / "m.lssvm")
        pd.testing.assert_series_equal(again.forecast(5), model.forecast(5))
        assert (
            again.calendar_
            == model.calendar_
            == Calendar(model.calendar_.last, months=1, day=31, framed=True)
        )


def test_a_history_brings_its_own_dates():
    index = pd.date_range("2024-01-01", periods=90, freq="D")
    whole = pd.Series(wave(90), index=index)
    model = NARX(LSSVR(), 3).fit(whole[:60])
    made = model.forecast(5, history=whole[:80])
    assert made.index[0] == index[80]
    assert isinstance(model.forecast(5, history=whole[:80].to_numpy()), np.ndarray)
    zoned = pd.Series(wave(60), index=index[:60].tz_localize("Europe/Brussels"))
    assert NARX(LSSVR(), 3).fit(zoned).forecast_times(1)[0] == index[60].to_numpy()


def test_several_series_have_times_each():
    days = pd.date_range("2024-01-01", periods=60, freq="D").to_numpy()
    model = NARX(LSSVR(), 3).fit([wave(60), wave(50)], times=[days, days[:50]])
    assert model.forecast(4).shape == (2, 4)
    np.testing.assert_array_equal(
        model.forecast_times(1)[:, 0], [days[-1] + np.timedelta64(1, "D"), days[50]]
    )


def test_intervals_have_the_name_that_they_have_elsewhere():
    model = NARX(LSSVR(), 3, horizon=5).fit(wave())
    values, ends = model.forecast(5, return_interval=True, coverage=0.8)
    np.testing.assert_array_equal(model.predict_interval(5, coverage=0.8), ends)
    assert np.all((ends[:, 0] < values) & (values < ends[:, 1]))


def test_times_that_follow_no_rule():
    days = pd.date_range("2024-01-01", periods=60, freq="D").to_numpy()
    uneven = np.delete(np.append(days, days[-1] + np.timedelta64(1, "D")), 30)
    with pytest.raises(InvalidInputError, match="not evenly spaced: between positions 29 and 30"):
        NARX(LSSVR(), 3).fit(wave(), times=uneven)
    with pytest.raises(InvalidInputError, match="do not ascend"):
        NARX(LSSVR(), 3).fit(wave(), times=days[::-1])
    with pytest.raises(InvalidInputError, match="times has other lengths"):
        NARX(LSSVR(), 3).fit(wave(), times=days[:-1])
    with pytest.raises(InvalidInputError, match="are not dates"):
        NARX(LSSVR(), 3).fit(wave(), times=["soon"] * 60)
    quiet = NARX(LSSVR(), 3).fit(pd.Series(wave(), index=pd.DatetimeIndex(uneven)))
    assert isinstance(quiet.forecast(3), np.ndarray) and quiet.calendar_ is None
    with pytest.raises(InvalidInputError, match="no times, or they are not evenly spaced"):
        quiet.forecast_times(3)


def test_a_series_whose_dates_do_not_ascend_is_refused():
    days = pd.date_range("2024-01-01", periods=60, freq="D")
    sorted_one = pd.Series(wave(), index=days)
    shuffled = sorted_one.sample(frac=1.0, random_state=0)
    with pytest.raises(InvalidInputError, match=r"The times of y do not ascend.*sort_index"):
        NARX(LSSVR(), 3).fit(shuffled)
    with pytest.raises(InvalidInputError, match="do not ascend"):
        NARX(LSSVR(), 3).fit([sorted_one, shuffled.to_period("D")])
    model = NARX(LSSVR(), 3).fit(shuffled.sort_index())
    np.testing.assert_array_equal(model.forecast(5), NARX(LSSVR(), 3).fit(wave()).forecast(5))
    with pytest.raises(InvalidInputError, match="The times of history do not ascend"):
        model.forecast(5, history=shuffled)


def test_a_frame_of_one_column_is_a_series_with_its_dates():
    days = pd.date_range("2024-01-01", periods=60, freq="D")
    frame = pd.DataFrame({"load": wave()}, index=days)
    with pytest.raises(InvalidInputError, match="The times of y do not ascend"):
        NARX(LSSVR(), 3).fit(frame[::-1])
    forecast = NARX(LSSVR(), 3).fit(frame).forecast(5)
    assert forecast.index[0] == days[-1] + pd.Timedelta("1D")


def test_inputs_whose_dates_are_not_those_of_the_series_are_refused():
    days = pd.date_range("2024-01-01", periods=65, freq="D")
    y, X = pd.Series(wave(), index=days[:60]), pd.DataFrame({"u": wave(65)}, index=days)
    model = NARX(LSSVR(), 3, exog_lags=1)
    with pytest.raises(InvalidInputError, match="The times of X do not ascend"):
        model.fit(y, X[:60][::-1])
    with pytest.raises(
        InvalidInputError, match=r"times of X are not those of its series: at position 0"
    ):
        model.fit(y, X[1:61])
    model.fit(y, X[:60].to_period("D"))
    assert len(model.forecast(5, X[60:])) == 5
    with pytest.raises(InvalidInputError, match="The times of X_future do not ascend"):
        model.forecast(5, X[60:][::-1])
    with pytest.raises(InvalidInputError, match="times of X_history are not those of its"):
        model.forecast(5, X[60:], history=y[:40], X_history=X[1:41])


def test_a_calendar_goes_both_ways():
    for freq in ("D", "h", "B", "MS", "ME", "QS"):
        times = pd.date_range("2024-01-31", periods=30, freq=freq).to_numpy()
        calendar = Calendar.of(times[:20], "y")
        np.testing.assert_array_equal(calendar.at(np.arange(-19, 11)), times.astype("M8[us]"))


def test_baselines():
    y = np.array([1.0, 4.0, 2.0, 5.0, 3.0, 6.0])
    np.testing.assert_array_equal(repeat_last(y, 3), [6, 6, 6])
    np.testing.assert_array_equal(drift(y, 2), [7, 8])
    np.testing.assert_array_equal(seasonal_naive(y, 5, 3), [5, 3, 6, 5, 3])
    rng = np.random.default_rng(0)
    times = np.arange(300)
    seasonal = np.sin(2 * np.pi * times / 24) + 0.3 * rng.normal(size=300) + 0.01 * times
    assert find_season(seasonal) == 24
    assert find_season(rng.normal(size=300)) is None and find_season(3.0 * times) is None
    months = np.datetime64("2024-01") + np.arange(6)
    assert Calendar.of(months, "y").season == 12
