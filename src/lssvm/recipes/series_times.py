"""The times of a series: how they follow each other, and which come next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.errors import InvalidInputError

Times = NDArray[np.datetime64]

_DAY = 86_400_000_000  # microseconds
_SEASONS = {  # steps of a season, by the step in microseconds
    _DAY: 7,
    3_600_000_000: 24,
    1_800_000_000: 48,
    900_000_000: 96,
    60_000_000: 60,
    7 * _DAY: 52,
}


@dataclass(frozen=True)
class Calendar:
    """When the last value of a series was, and how the next times follow.

    Attributes
    ----------
    last : int
        Microseconds since 1970-01-01.
    step : int
        Microseconds between two values; 0 where months or working days are counted.
    months : int
        Months between two values, or 0.
    day : int
        Day of the month, where months are counted; 31 is the last one.
    weekdays : bool
        Whether values are one working day (Monday to Friday) apart.
    framed : bool
        Whether the series was one of pandas, so that forecasts are too.
    name : str or None
        Of the series.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.recipes.series_times import Calendar
    >>> months = np.array(["2024-01-31", "2024-02-29", "2024-03-31"], dtype="datetime64[D]")
    >>> Calendar.of(months, "y").following(2).astype("datetime64[D]").tolist()
    [datetime.date(2024, 4, 30), datetime.date(2024, 5, 31)]
    """

    last: int
    step: int = 0
    months: int = 0
    day: int = 0
    weekdays: bool = False
    framed: bool = False
    name: str | None = None

    @classmethod
    def of(cls, times: Any, what: str) -> Calendar:
        """Return the calendar of some times.

        Raises
        ------
        InvalidInputError
            Where they are no times, do not ascend, or follow no rule.
        """
        when = read_times(times, what)
        if len(when) < 2:
            raise InvalidInputError(f"The times of {what} are fewer than two: give all of them.")
        ticks = when.astype(np.int64)
        gaps = np.diff(ticks)
        if np.any(gaps <= 0):
            i = int(np.flatnonzero(gaps <= 0)[0]) + 1
            this, before = when[i].astype("datetime64[s]"), when[i - 1].astype("datetime64[s]")
            raise InvalidInputError(
                f"The times of {what} do not ascend: {this} at position {i} comes after {before}. "
                "Sort the series by time, and leave out what is there twice."
            )
        last = int(ticks[-1])
        if np.all(gaps == gaps[0]) and not _is_monthly(when):
            return cls(last, step=int(gaps[0]))
        found = _monthly(when, last) or _working_days(ticks, last)
        if found is None and np.all(gaps == gaps[0]):
            return cls(last, step=int(gaps[0]))
        if found is None:
            usual = int(np.median(gaps))
            i = int(np.flatnonzero(gaps != usual)[0]) + 1
            raise InvalidInputError(
                f"The times of {what} are not evenly spaced: between positions {i - 1} and {i} "
                f"({when[i].astype('datetime64[s]')}) lie {_said(int(gaps[i - 1]))}, mostly "
                f"{_said(usual)}. Fill the gaps, or give the values without times."
            )
        return found

    def following(self, steps: int) -> Times:
        """Return the next times, shape (steps,)."""
        ahead = np.arange(1, steps + 1)
        last = np.int64(self.last).astype("datetime64[us]")
        if self.step:
            return np.asarray(last + (ahead * self.step).astype("timedelta64[us]"))
        date = last.astype("datetime64[D]")
        clock = last - date
        if self.weekdays:
            return np.asarray(np.busday_offset(date, ahead).astype("datetime64[us]") + clock)
        first = last.astype("datetime64[M]") + ahead * self.months
        longest = ((first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")).astype(int)
        days = np.minimum(self.day, longest) - 1
        return np.asarray((first.astype("datetime64[D]") + days).astype("datetime64[us]") + clock)

    @property
    def season(self) -> int | None:
        """Steps of the season that such times suggest: a year of months, a week of days, ..."""
        if self.months:
            return 12 // self.months if 12 % self.months == 0 and self.months < 12 else None
        return 5 if self.weekdays else _SEASONS.get(self.step)


def read_times(times: Any, what: str) -> Times:
    """Return times as datetime64 in microseconds, by the clock of their own zone."""
    values = times
    if getattr(values, "tz", None) is not None:  # of pandas
        values = values.tz_localize(None)
    if type(values).__name__ == "PeriodIndex":
        values = values.to_timestamp()
    try:
        when: Times = np.asarray(values).astype("datetime64[us]")
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"The times of {what} are no dates: {error}.") from error
    if when.ndim != 1 or np.isnat(when).any():
        raise InvalidInputError(
            f"The times of {what} have shape {when.shape} and {int(np.isnat(when).sum())} missing "
            "ones: give one time for each value."
        )
    return when


def index_times(y: Any) -> Any:
    """Return the times that a series of pandas has as its index; None where it has none."""
    index = getattr(y, "index", None)
    dated = type(index).__name__ in ("DatetimeIndex", "PeriodIndex")
    return index if dated and getattr(y, "ndim", 1) == 1 else None


def _days(when: Times) -> Any:
    return (when.astype("datetime64[D]") - when.astype("datetime64[M]")).astype(int) + 1


def _is_monthly(when: Times) -> bool:
    """Say whether dates that are evenly spaced are months all the same, such as two of them."""
    return len(when) < 4 and _monthly(when, 0) is not None


def _monthly(when: Times, last: int) -> Calendar | None:
    months = np.diff(when.astype("datetime64[M]").astype(int))
    first = when.astype("datetime64[M]")
    longest = ((first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")).astype(int)
    days, clock = _days(when), when - when.astype("datetime64[D]")
    if months[0] < 1 or np.any(months != months[0]) or np.any(clock != clock[0]):
        return None
    day = 31 if np.all(days == longest) else int(days.max())
    if not np.array_equal(days, np.minimum(day, longest)):
        return None
    return Calendar(last, months=int(months[0]), day=day)


def _working_days(ticks: NDArray[np.int64], last: int) -> Calendar | None:
    days, rest = np.divmod(ticks, _DAY)
    if np.any(rest != rest[0]):
        return None
    dates = days.astype("datetime64[D]")
    whole = np.all(np.is_busday(dates)) and np.all(np.busday_count(dates[:-1], dates[1:]) == 1)
    return Calendar(last, weekdays=True) if whole else None


def _said(microseconds: int) -> str:
    for unit, size in (("days", _DAY), ("hours", 3_600_000_000), ("seconds", 1_000_000)):
        if microseconds >= size:
            return f"{microseconds / size:g} {unit}"
    return f"{microseconds} microseconds"
