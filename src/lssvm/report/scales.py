"""From data to places on a picture: scales, ticks and numbers as people write them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

UNKNOWN = "\u2013"  # a dash in the place of a number


@dataclass(frozen=True)
class Scale:
    """A straight line from values to places.

    Parameters
    ----------
    low, high : float
        Ends of the values (of their logarithms where ``log``).
    start, stop : float
        Their places.
    log : bool, default=False
        Whether places follow the decimal logarithm.

    Examples
    --------
    >>> from lssvm.report.scales import Scale
    >>> Scale(0.0, 10.0, 100.0, 0.0)(2.5), Scale(0.0, 2.0, 0.0, 10.0, log=True)(10.0)
    (75.0, 5.0)
    """

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    @classmethod
    def of(
        cls,
        values: Any,
        start: float,
        stop: float,
        *,
        log: bool = False,
        zero: bool = False,
        margin: float = 0.04,
    ) -> Scale:
        """Return the scale that shows all finite values, with a margin.

        Parameters
        ----------
        values : array-like
        start, stop : float
        log : bool, default=False
        zero : bool, default=False
            Whether it begins at zero.
        margin : float, default=0.04
            Part of the range, on every side.
        """
        array = np.asarray(values, dtype=np.float64).ravel()
        if log:
            array = np.log10(array[array > 0])
        array = array[np.isfinite(array)]
        low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 1.0)
        if zero:
            low = min(low, 0.0)
        if not high - low > 1e-9 * max(abs(low), abs(high), 1e-300):
            pad = 0.5 if log else (0.5 * abs(low) or 0.5)
            low, high = low - pad, high + pad
        edge = margin * (high - low)
        return cls(low if zero and low == 0.0 else low - edge, high + edge, start, stop, log)

    def __call__(self, values: Any) -> Any:
        """Return the places of values."""
        array = np.asarray(values, dtype=np.float64)
        if self.log:
            array = np.log10(np.maximum(array, 1e-300))
        share = (array - self.low) / (self.high - self.low)
        found = self.start + share * (self.stop - self.start)
        return float(found) if array.ndim == 0 else found

    def ticks(self, count: int = 5) -> list[tuple[float, str]]:
        """Return about ``count`` values to mark, with their names."""
        if self.log:
            return self._powers(count)
        values = nice_ticks(self.low, self.high, count)
        return list(zip(values, tick_names(values), strict=True))

    def _powers(self, count: int) -> list[tuple[float, str]]:
        first, last = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
        if last - first < 1:
            found = []
            for power in range(math.floor(self.low), math.ceil(self.high) + 1):
                for digit in (1.0, 2.0, 5.0):
                    value = digit * 10.0**power
                    if self.low <= math.log10(value) <= self.high:
                        found.append((value, number(value)))
            return found
        step = max(1, round((last - first) / count))
        return [(10.0**p, power_of_ten(p)) for p in range(first, last + 1, step)]


def power_of_ten(power: int) -> str:
    """Return a power of ten as a label.

    Examples
    --------
    >>> from lssvm.report.scales import power_of_ten
    >>> power_of_ten(2), power_of_ten(-5)
    ('100', '10⁻⁵')
    """
    if -3 <= power <= 4:
        return f"{10.0**power:,.{max(-power, 0)}f}"
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round values between two ends.

    Examples
    --------
    >>> from lssvm.report.scales import nice_ticks
    >>> nice_ticks(0.0, 1.0), nice_ticks(-13.0, 240.0, 4)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 50.0, 100.0, 150.0, 200.0])
    """
    span = high - low
    if not (span > 0 and math.isfinite(span)):
        return [low]
    rough = span / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(d for d in (1.0, 2.0, 5.0, 10.0) if d * power >= rough * 0.75)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step)) + 1)
    return [round(i * step, digits) + 0.0 for i in range(first, last + 1)]


def tick_names(values: list[float]) -> list[str]:
    """Return names for ticks with equally many digits.

    Examples
    --------
    >>> from lssvm.report.scales import tick_names
    >>> tick_names([0.0, 0.5, 1.0]), tick_names([0.0, 2e6])
    (['0.0', '0.5', '1.0'], ['0', '2,000,000'])
    """
    largest = max((abs(v) for v in values), default=0.0)
    if largest >= 1e7 or 0 < largest < 1e-3:
        return [f"{v:.3g}" for v in values]
    for digits in range(7):
        if all(abs(round(v, digits) - v) <= 1e-9 * max(largest, 1e-12) for v in values):
            break
    return [f"{v:,.{digits}f}".replace("-", "\u2212") for v in values]


def number(value: float, digits: int = 3) -> str:
    """Return a number to some significant digits, as people write it.

    Examples
    --------
    >>> from lssvm.report.scales import number
    >>> number(1234.5), number(0.00012345), number(0.5), number(-3.14159), number(float("nan"))
    ('1,234', '0.000123', '0.5', '−3.14', '\u2013')
    """
    value = float(value)
    if not math.isfinite(value):
        return UNKNOWN if math.isnan(value) else ("∞" if value > 0 else "\u2212∞")
    if value == 0.0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size >= 9 or size < -5:
        return f"{value:.{digits - 1}e}".replace("-", "\u2212")
    places = max(0, digits - 1 - size)
    text = f"{value:,.{places}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "\u2212")


def percent(share: float, digits: int = 1) -> str:
    """Return a share as per cent, never rounded to 0 or 100 where it is not.

    Examples
    --------
    >>> from lssvm.report.scales import percent
    >>> percent(0.8631), percent(1.0), percent(0.99996), percent(0.00001), percent(0.5, 0)
    ('86.3 %', '100 %', '> 99.9 %', '< 0.1 %', '50 %')
    """
    if not math.isfinite(share):
        return UNKNOWN
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    text = f"{100 * share:.{digits}f}"
    edge = 10.0**-digits
    if float(text) >= 100.0 and share < 1.0:
        return f"> {100 - edge:.{digits}f} %"
    if float(text) == 0.0 and share > 0.0:
        return f"< {edge:.{digits}f} %"
    return f"{text} %"


def count(n: int) -> str:
    """Return a whole number with its thousands marked.

    Examples
    --------
    >>> from lssvm.report.scales import count
    >>> count(12345)
    '12,345'
    """
    return f"{int(n):,}"


def duration(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> from lssvm.report.scales import duration
    >>> duration(0.012), duration(3.14), duration(75), duration(7300)
    ('12 ms', '3.1 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def short(text: Any, length: int = 18) -> str:
    """Return a text, its middle left out where it is long.

    Examples
    --------
    >>> from lssvm.report.scales import short
    >>> short("a_very_long_name_of_a_column", 13)
    'a_very…column'
    """
    words = " ".join(str(text).split())
    if len(words) <= length:
        return words
    head = (length - 1) // 2
    return f"{words[:head]}…{words[len(words) - (length - 1 - head) :]}"
