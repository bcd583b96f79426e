"""Average ranks, critical differences, wins and losses, ratios, exponents. Arrays in, numbers out.

Errors have the shape (sets, methods); an infinite one is a method that gave none there, and ranks
last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
EQUAL = 1e-9
"""Errors in per cent that differ by less are ties."""


def average_ranks(errors: Array) -> Array:
    """Return the average rank of every method, 1 the smallest error, ties sharing their mean."""
    rounded = np.round(errors / EQUAL) * EQUAL
    return np.asarray(stats.rankdata(rounded, axis=1).mean(axis=0))


def critical_difference(n_methods: int, n_sets: int, level: float = 0.05) -> float:
    r"""Return the difference of average ranks that Nemenyi's test calls significant.

    :math:`q_\alpha \sqrt{k (k + 1) / (6 N)}` with the studentised range divided by the root of 2.
    """
    q = stats.studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def friedman(errors: Array) -> float:
    """Return the probability of such ranks if all methods were equal (Iman and Davenport's F)."""
    n, k = errors.shape
    if n < 2 or k < 3:
        return float("nan")
    ranks = average_ranks(errors)
    chi = 12 * n / (k * (k + 1)) * float(np.sum(ranks**2) - k * (k + 1) ** 2 / 4)
    if chi >= n * (k - 1):
        return 0.0
    F = (n - 1) * chi / (n * (k - 1) - chi)
    return float(stats.f.sf(F, k - 1, (k - 1) * (n - 1)))


def cliques(ranks: Array, difference: float) -> list[tuple[int, int]]:
    """Return the longest runs of methods, in the order of their ranks, that do not differ.

    Pairs of places in that order, first and last; single methods are left out.
    """
    ordered = np.sort(ranks)
    found: list[tuple[int, int]] = []
    for first in range(len(ordered)):
        last = int(np.searchsorted(ordered, ordered[first] + difference, side="right")) - 1
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


@dataclass(frozen=True)
class Duel:
    """One method against another over sets: smaller errors, equal ones, larger ones."""

    wins: int
    ties: int
    losses: int
    ratio: float
    p_sign: float

    @property
    def sets(self) -> int:
        """Sets that both have an error on."""
        return self.wins + self.ties + self.losses


def duel(ours: Array, theirs: Array, half_rows: Array) -> Duel:
    """Compare two columns of errors.

    Parameters
    ----------
    ours, theirs : arrays of shape (n_sets,)
        A failure (infinite) loses; two failures are a tie.
    half_rows : array of shape (n_sets,)
        Half a test row in per cent, added to both errors in the ratio, which is the geometric mean
        over sets where both have an error: an error of 0 does not make it 0.
    """
    both = np.isfinite(ours) & np.isfinite(theirs)
    same = ~np.isfinite(ours) & ~np.isfinite(theirs)
    same[both] = np.abs(ours[both] - theirs[both]) < EQUAL
    won = (ours < theirs) & ~same
    lost = (ours > theirs) & ~same
    wins, losses = int(won.sum()), int(lost.sum())
    logs = np.log((ours[both] + half_rows[both]) / (theirs[both] + half_rows[both]))
    p = float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
    return Duel(wins, int(same.sum()), losses, float(np.exp(logs.mean())) if len(logs) else 1.0, p)


def exponent(sizes: Array, values: Array) -> float:
    """Return the slope of a line through the logarithms: values grow with that power of sizes."""
    if len(sizes) < 3:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
