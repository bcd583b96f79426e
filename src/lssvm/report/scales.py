"""From data to places on a picture: scales and their ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lssvm.report.formats import MINUS

MARGIN = 0.04  # of the range of the values, on either side


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
        limits: tuple[float, float] | None = None,
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
        if limits is not None:
            return cls(float(limits[0]), float(limits[1]), start, stop, log)
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
        edge = MARGIN * (high - low)
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
        if not self.log:
            values = nice_ticks(self.low, self.high, count)
            return list(zip(values, tick_names(values), strict=True))
        first, last = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
        if last > first:
            step = max(1, round((last - first) / count))
            return [(10.0**p, power_of_ten(p)) for p in range(first, last + 1, step)]
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        values = [digit * 10.0**power for power in powers for digit in (1.0, 2.0, 5.0)]
        return [(v, f"{v:g}") for v in values if self.low <= math.log10(v) <= self.high]


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
    return [f"{v:,.{digits}f}".replace("-", MINUS) for v in values]
