"""Forecasts that anybody can make, beside which a model has to stand."""

from __future__ import annotations

import numpy as np

from lssvm._core.arrays import FloatArray

_LEAST = 0.3  # autocorrelation that a season has


def repeat_last(y: FloatArray, steps: int) -> FloatArray:
    """Return the last value again and again.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.recipes.series_baselines import drift, repeat_last, seasonal_naive
    >>> y = np.array([1.0, 5.0, 2.0, 6.0, 3.0, 7.0])
    >>> repeat_last(y, 2), drift(y, 2).round(1), seasonal_naive(y, 3, 2)
    (array([7., 7.]), array([8.2, 9.4]), array([3., 7., 3.]))
    """
    return np.full(steps, float(y[-1]))


def drift(y: FloatArray, steps: int) -> FloatArray:
    """Return the line through the first and the last value, continued."""
    slope = (float(y[-1]) - float(y[0])) / max(len(y) - 1, 1)
    return np.asarray(float(y[-1]) + slope * np.arange(1, steps + 1))


def seasonal_naive(y: FloatArray, steps: int, season: int) -> FloatArray:
    """Return the last season again and again."""
    return np.asarray(np.resize(y[-season:], steps), dtype=np.float64)


def find_season(y: FloatArray, longest: int | None = None) -> int | None:
    """Return the length of the season of a series; None where none stands out.

    Parameters
    ----------
    y : array of shape (n,)
    longest : int, optional
        In steps; by default a third of the series.

    Notes
    -----
    The lag, from 2 on, with the largest autocorrelation of the series without its line, where that
    is a peak of at least 0.3. O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.recipes.series_baselines import find_season
    >>> find_season(np.sin(2 * np.pi * np.arange(120) / 12) + 0.01 * np.arange(120))
    12
    """
    n = len(y)
    most = min(n // 3, n - 2) if longest is None else min(longest, n - 2)
    if most < 3:
        return None
    times = np.arange(n)
    rest = y - np.polyval(np.polyfit(times, y, 1), times)
    if float(np.ptp(rest)) <= 1e-9 * max(float(np.abs(y).max()), 1e-300):
        return None
    spectrum = np.abs(np.fft.rfft(rest, 2 * n)) ** 2
    raw = np.fft.irfft(spectrum)[: most + 2]
    found = raw / raw[0] * n / (n - np.arange(most + 2))
    peaks = [
        k
        for k in range(2, most + 1)
        if found[k] >= found[k - 1] and found[k] >= found[k + 1] and found[k] >= _LEAST
    ]
    if not peaks:
        return None
    best = max(found[k] for k in peaks)
    return next(k for k in peaks if found[k] >= best - 0.05)  # not one of its multiples


def baselines(y: FloatArray, steps: int, season: int | None) -> dict[str, FloatArray]:
    """Return the forecasts by name: "repeating the last value", "drift", and a season's.

    Parameters
    ----------
    y : array of shape (n,)
    steps : int
    season : int or None
        Steps of a season; None: there is none.
    """
    made = {"repeating the last value": repeat_last(y, steps), "drift": drift(y, steps)}
    if season is not None and 1 < season <= len(y):
        made[f"repeating the last {season} values"] = seasonal_naive(y, steps, season)
    return made
