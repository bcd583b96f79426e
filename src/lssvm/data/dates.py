"""Dates that are written as text: one parser for frames, files, scans and reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Moments = NDArray[np.datetime64]

ORDERS = {"ymd": "year, month, day", "dmy": "day, month, year", "mdy": "month, day, year"}
"""In which order day, month and year are written."""

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_FULL = (
    "january february march april may june july august september october november december".split()
)
_NAME = r"(?P<name>[A-Za-z]{3,9})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DATES = (
    r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})",
    r"(?P<a>\d{1,2})(?P<sign>[-/.])(?P<b>\d{1,2})(?P=sign)(?P<year>\d{4})",
    r"(?P<a>\d{1,2})(?P<sign>[/.])(?P<b>\d{1,2})(?P=sign)(?P<year>\d{2})",
    r"(?P<a>\d{2})(?P<sign>-)(?P<b>\d{2})-(?P<year>\d{2})",
    rf"{_DAY}[ .-]{{0,2}}{_NAME},?[ -](?P<year>\d{{4}}|\d{{2}})",
    rf"{_NAME}[ -]{_DAY},? (?P<year>\d{{4}})",
    r"(?P<year>\d{4})[-/](?P<month>\d{1,2})",
    r"(?P<month>\d{1,2})[-/.](?P<year>\d{4})",
    rf"{_NAME},?[ -](?P<year>\d{{4}})",
    rf"(?P<year>\d{{4}})(?:,? {{1,2}}|-){_NAME}(?:[ -]{_DAY})?",
    r"(?P<year>\d{4})[ -]?Q(?P<quarter>[1-4])",
    r"Q(?P<quarter>[1-4])[ /-]?(?P<year>\d{4})",
    r"(?P<year>\d{4})[ -]?W(?P<week>\d{2})(?:-?(?P<weekday>[1-7]))?",
)
_ZONES = {"Z": 0, "UTC": 0, "GMT": 0, "BST": 60, "CET": 60, "CEST": 120}
_ZONES |= {"EST": -300, "EDT": -240, "CST": -360, "CDT": -300}
_ZONES |= {"MST": -420, "MDT": -360, "PST": -480, "PDT": -420}
_ZONE = rf"(?P<zone>{'|'.join(_ZONES)}|[+-]\d{{2}}(?::?\d{{2}})?)?"
_CLOCK = (
    r"(?:(?:[T ]|, ?)\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})"
    r"(?:[.,](?P<part>\d{1,9}))?)?\s*(?P<half>[AaPp]\.?[Mm]\.?)?"
    rf"\s*{_ZONE})?"
)
_COMPACT = (  # 20240131, 20240131T102900Z
    r"(?P<year>(?:19|20)\d{2})(?P<month>\d{2})(?P<day>\d{2})"
    rf"(?:T?(?P<hour>\d{{2}})(?P<minute>\d{{2}})(?P<second>\d{{2}})?{_ZONE})?"
)
_WEEKDAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?"
_PATTERNS = (
    *(re.compile(rf"\s*{_WEEKDAY}{form}{_CLOCK}\s*") for form in _DATES),
    re.compile(rf"\s*{_COMPACT}\s*"),
)
_TIME = re.compile(
    r"\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<part>\d{1,9}))?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*"
)
_TWO_DIGITS = 70
"""Years of two digits from this one on are in the 20th century."""


class Written(NamedTuple):
    """A date as it is written: numbers whose order may be open, and the time of the day."""

    year: int
    first: int  # the month, or the first number of two whose order is open
    second: int  # the day, or the second number
    open: bool  # whether first and second are day and month in an order that the text leaves open
    sign: str
    micros: int  # since midnight
    offset: int | None  # minutes from UTC
    half: bool  # AM or PM is given


@dataclass(frozen=True)
class DateStyle:
    """How the dates of a column are written.

    Attributes
    ----------
    order : str
        A key of `ORDERS`.
    zoned : bool
        Whether the texts name an offset from UTC; the dates are then those of UTC.
    ambiguous : bool
        Whether day and month may be the other way round.
    """

    order: str
    zoned: bool = False
    ambiguous: bool = False

    @property
    def zone(self) -> str | None:
        """The time zone of the dates."""
        return "UTC" if self.zoned else None

    def describe(self) -> str:
        """Return the style in words."""
        words = f"written as {ORDERS[self.order]}"
        if self.ambiguous:
            words += " (a guess: no value distinguishes day and month)"
        return words + (", in UTC" if self.zoned else "")


@lru_cache(maxsize=2**14)  # columns of dates repeat them, and are read more than once
def read_text(text: str) -> Written | None:
    """Return the parts of a written date; None where it is none."""
    for pattern in _PATTERNS:
        match = pattern.fullmatch(text)
        if match is not None:
            break
    else:
        return None
    parts = match.groupdict()
    year = int(parts["year"])
    if len(parts["year"]) == 2:
        year += 1900 if year >= _TWO_DIGITS else 2000
    if parts.get("week"):
        try:
            day = date.fromisocalendar(year, int(parts["week"]), int(parts["weekday"] or 1))
        except ValueError:
            return None
        year, first, second, is_open = day.year, day.month, day.day, False
    else:
        first, second, is_open = _month_and_day(parts)
    if first < 0:
        return None
    micros = _micros(parts)
    if micros < 0:
        return None
    offset = _offset(parts["zone"])
    sign = parts.get("sign") or ""
    return Written(year, first, second, is_open, sign, micros, offset, bool(parts.get("half")))


def times_of_day(texts: Sequence[str]) -> list[float] | None:
    """Return times of the day (10:29, 7:05:30 PM) as parts of it; None where one is none.

    Examples
    --------
    >>> from lssvm.data.dates import times_of_day
    >>> times_of_day(["6:00", "18:00:00", "6:00 PM"]), times_of_day(["6:00", "six"])
    ([0.25, 0.75, 0.75], None)
    """
    matches = [_TIME.fullmatch(text) for text in texts]
    micros = [-1 if match is None else _micros(match.groupdict()) for match in matches]
    return None if min(micros, default=-1) < 0 else [value / 86_400e6 for value in micros]


def _month_and_day(parts: dict[str, Any]) -> tuple[int, int, bool]:
    """Return month, day and False, or two numbers of open order and True; -1: no such month."""
    if parts.get("a") is not None:
        return int(parts["a"] or 0), int(parts["b"] or 0), True
    month = int(parts.get("month") or 3 * int(parts.get("quarter") or 0) - 2)
    name = (parts.get("name") or "").lower()
    if name:
        if name not in _FULL and name not in (*_MONTHS, "sept"):
            return -1, 0, False
        month = _MONTHS.index(name[:3]) + 1
    return month, int(parts.get("day") or 1), False


def _micros(parts: dict[str, Any]) -> int:
    """Return the microseconds since midnight; -1 where there is no such time."""
    hour, minute, second = (int(parts[key] or 0) for key in ("hour", "minute", "second"))
    half = parts.get("half")
    if half:
        if not 1 <= hour <= 12:
            return -1
        hour = hour % 12 + 12 * (half[0] in "Pp")
    if hour > 23 or minute > 59 or second > 59:
        return -1
    fraction = int((parts.get("part") or "0").ljust(6, "0")[:6])
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction


def _offset(zone: str | None) -> int | None:
    if zone is None:
        return None
    if zone in _ZONES:
        return _ZONES[zone]
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return (-1 if zone[0] == "-" else 1) * (60 * int(digits[:2]) + int(digits[2:]))


def date_style(texts: Sequence[str]) -> DateStyle | None:
    """Return how all texts of a column are written as dates; None where one is no date.

    Notes
    -----
    Where a number is above 12, it is the day. Where no text decides between day and month, points
    mean that the day is first, an AM or PM that the month is, and so do slashes; dashes mean
    the day. The style is then marked as a guess.

    Examples
    --------
    >>> from lssvm.data.dates import date_style
    >>> date_style(["1/1/2011", "1/31/2011"]).order, date_style(["Aug 18, 2024"]).order
    ('mdy', 'ymd')
    >>> date_style(["3/4/2024"]).describe()
    'written as month, day, year (a guess: no value distinguishes day and month)'
    """
    written = []
    for text in texts:
        one = read_text(text)
        if one is None:
            return None
        written.append(one)
    if not written or len({one.offset is None for one in written}) > 1:
        return None
    zoned = written[0].offset is not None
    numeric = [one for one in written if one.open]
    if not numeric:
        return DateStyle("ymd", zoned) if _moments(written, "ymd") is not None else None
    possible = [order for order in ("mdy", "dmy") if _moments(written, order) is not None]
    if len(possible) < 2:
        return DateStyle(possible[0], zoned) if possible else None
    american = any(one.half for one in numeric) or numeric[0].sign == "/"
    open_points = numeric[0].sign == "."
    same = all(one.first == one.second for one in numeric)
    return DateStyle("mdy" if american else "dmy", zoned, not (open_points or same))


def parse_dates(texts: Iterable[str], order: str, zoned: bool = False) -> Moments | None:
    """Return the dates (of UTC where they name an offset), None where one is none in this order.

    Examples
    --------
    >>> from lssvm.data.dates import parse_dates
    >>> parse_dates(["31.1.2011 6:30", "1 Feb 2011"], "dmy").astype("datetime64[m]").tolist()
    [datetime.datetime(2011, 1, 31, 6, 30), datetime.datetime(2011, 2, 1, 0, 0)]
    >>> parse_dates(["31.1.2011"], "mdy") is None
    True
    """
    written = []
    for text in texts:
        one = read_text(text)
        if one is None or (one.offset is not None) != zoned:
            return None
        written.append(one)
    return _moments(written, order)


def _moments(written: list[Written], order: str) -> Moments | None:
    days, micros = [], []
    for one in written:
        month, day = one.first, one.second
        if one.open and order == "dmy":
            month, day = day, month
        if one.open and order == "ymd":
            return None
        days.append(f"{one.year:04}-{month:02}-{day:02}")
        micros.append(one.micros - 60_000_000 * (one.offset or 0))
    try:
        whole = np.array(days, dtype="datetime64[D]")
    except ValueError:
        return None
    clock = np.array(micros, dtype="timedelta64[us]")
    return np.asarray(whole.astype("datetime64[us]") + clock)
