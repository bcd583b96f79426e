"""Dates that are written as text, where the order of day, month and year is beyond doubt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

ORDERS = {"ymd": "year, month, day", "mdy": "month, day, year", "dmy": "day, month, year"}

_CLOCK = r"(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d{1,6})?))?)?"
_YEAR_FIRST = re.compile(r"\s*(\d{4})([-/.])(\d{1,2})\2(\d{1,2})" + _CLOCK + r"\s*")
_YEAR_LAST = re.compile(r"\s*(\d{1,2})([-/.])(\d{1,2})\2(\d{4})" + _CLOCK + r"\s*")


def date_order(texts: Sequence[str]) -> str | None:
    """Return in which order all texts have day, month and year; None where they are no dates.

    Parameters
    ----------
    texts : sequence of str

    Returns
    -------
    str or None
        A key of `ORDERS`. None also where day and month could be either: 3/4/2024 alone is the 3rd
        of April or the 4th of March. (With points, the day comes first.)

    Examples
    --------
    >>> from lssvm.preparation.text_dates import date_order
    >>> date_order(["1/1/2011", "1/31/2011"]), date_order(["2011-01-31"]), date_order(["3/4/2024"])
    ('mdy', 'ymd', None)
    """
    if not texts or (_YEAR_FIRST.fullmatch(texts[0]) or _YEAR_LAST.fullmatch(texts[0])) is None:
        return None
    first = [_YEAR_FIRST.fullmatch(text) for text in texts]
    if all(first):
        return "ymd" if parse_dates(texts, "ymd") is not None else None
    last = [_YEAR_LAST.fullmatch(text) for text in texts]
    found = [match for match in last if match is not None]
    if len(found) < len(texts):
        return None
    points = {match[2] for match in found} == {"."}
    possible = [order for order in ("dmy", "mdy") if parse_dates(texts, order) is not None]
    if len(possible) == 1:
        return possible[0]
    return "dmy" if possible and points else None


def parse_dates(texts: Iterable[str], order: str) -> NDArray[np.datetime64] | None:
    """Return the dates, None where one is none in this order.

    Examples
    --------
    >>> from lssvm.preparation.text_dates import parse_dates
    >>> parse_dates(["31.1.2011 6:30"], "dmy").astype("datetime64[m]").tolist()
    [datetime.datetime(2011, 1, 31, 6, 30)]
    >>> parse_dates(["31.1.2011"], "mdy") is None
    True
    """
    pattern = _YEAR_FIRST if order == "ymd" else _YEAR_LAST
    written = []
    for text in texts:
        match = pattern.fullmatch(text)
        if match is None:
            return None
        a, _, b, c, hour, minute, second = match.groups()
        year, month, day = {"ymd": (a, b, c), "mdy": (c, a, b), "dmy": (c, b, a)}[order]
        clock = f"{int(hour or 0):02}:{minute or '00'}:{second or '00'}"
        written.append(f"{year}-{int(month):02}-{int(day):02}T{clock}")
    try:
        return np.array(written, dtype="datetime64[us]")
    except ValueError:
        return None
