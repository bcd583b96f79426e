r"""Warps: monotone maps of single features, learned from slopes.

A diagonal metric gives a feature one scale. A warp gives it a scale that depends on the place: with
:math:`w_l(t)` the root mean squared slope of a fitted model along feature l among rows with
:math:`x_l` near t, :math:`x_l \mapsto \int^{x_l} w_l(t) \, dt`. The feature is stretched where the
model changes and shrunk where it does not. The map is piecewise linear and increasing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lssvm._core.arrays import SAME, FloatArray, tie_scores

N_BINS = 24
"""Quantile bins of a feature, and the levels up to which it is discrete."""

_PSEUDO = 20.0  # rows of the feature's mean slope that every bin is shrunk towards
_FLATTEST = 1e-3  # of the root mean squared slope, so that a warp can be inverted


@dataclass(frozen=True, eq=False)
class Warp:
    """A piecewise linear increasing map of every feature.

    Attributes
    ----------
    knots : array of shape (d, q)
        Places, increasing along the second axis; the last one is repeated where a feature has
        fewer.
    values : array of shape (d, q)
        What the knots are mapped to. Beyond the first and the last knot the map goes on with the
        slope of the last piece.
    """

    knots: FloatArray
    values: FloatArray

    def apply(self, X: FloatArray) -> FloatArray:
        """Return the mapped rows of X (n, d)."""
        return self._interpolate(X, self.knots, self.values)

    def invert(self, U: FloatArray) -> FloatArray:
        """Return the rows (n, d) that are mapped to U."""
        return self._interpolate(U, self.values, self.knots)

    def slopes(self, X: FloatArray) -> FloatArray:
        """Return the derivative of the map at every entry of X (n, d)."""
        out = np.empty(X.shape)
        for j, (x, y) in enumerate(zip(self.knots, self.values, strict=True)):
            x, y = _distinct(x, y)
            if len(x) < 2:
                out[:, j] = 1.0
                continue
            piece = np.clip(np.searchsorted(x, X[:, j], side="right") - 1, 0, len(x) - 2)
            out[:, j] = (np.diff(y) / np.diff(x))[piece]
        return out

    @staticmethod
    def _interpolate(X: FloatArray, source: FloatArray, target: FloatArray) -> FloatArray:
        out = np.empty(X.shape)
        for j, (x, y) in enumerate(zip(source, target, strict=True)):
            x, y = _distinct(x, y)
            column = np.asarray(X[:, j], dtype=np.float64)
            if len(x) < 2:
                out[:, j] = column - x[0] + y[0]
                continue
            first = (y[1] - y[0]) / (x[1] - x[0])
            last = (y[-1] - y[-2]) / (x[-1] - x[-2])
            mapped = np.interp(column, x, y)
            mapped += np.minimum(column - x[0], 0.0) * first
            mapped += np.maximum(column - x[-1], 0.0) * last
            out[:, j] = mapped
        return out


def _distinct(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return knots and values without the repeated last knot."""
    last = int(np.argmax(x == x[-1])) + 1
    return x[:last], y[:last]


def _at_knots(t: FloatArray, x: FloatArray) -> FloatArray:
    """Return places (n,), those of knots but for rounding exactly there."""
    nearest = x[np.searchsorted(0.5 * (x[1:] + x[:-1]), t)]
    return np.where(np.abs(t - nearest) <= SAME * np.abs(x[[0, -1]]).max(), nearest, t)


@dataclass(frozen=True, eq=False)
class SquaredSlopes:
    """Squared slopes of a model at some rows, summed over outputs.

    Attributes
    ----------
    at : array of shape (n, d)
        The rows.
    right, left : arrays of shape (n, d)
        Along every feature, towards the next larger and the next smaller value; equal where a
        feature is continuous.
    weight : array of shape (n,)
    """

    at: FloatArray
    right: FloatArray
    left: FloatArray
    weight: FloatArray

    @property
    def means(self) -> FloatArray:
        """The weighted mean over the rows of the mean of both sides, shape (d,)."""
        return np.asarray(np.average((self.right + self.left) / 2.0, axis=0, weights=self.weight))

    @staticmethod
    def joined(several: Sequence[SquaredSlopes]) -> SquaredSlopes:
        """Return all rows of several."""
        return SquaredSlopes(
            *(
                np.concatenate([getattr(one, name) for one in several])
                for name in ("at", "right", "left", "weight")
            )
        )


def learn_warp(slopes: SquaredSlopes, rows: FloatArray) -> Warp | None:
    """Return the warp of squared slopes, scaled to a mean squared slope of 1; None where all are 0.

    Parameters
    ----------
    slopes : SquaredSlopes
        With respect to the features.
    rows : array of shape (n, d)
        Whose quantiles are the knots; features of at most `N_BINS` values have a piece for every
        gap between neighbouring values.

    Notes
    -----
    Every bin's mean is shrunk to the feature's with `_PSEUDO` rows. O(n d log n) time.
    """
    means = slopes.means
    total = float(means.mean()) if len(means) else 0.0
    if not total > 0.0 or not np.isfinite(total):
        return None
    pieces: list[tuple[FloatArray, FloatArray]] = []
    share = slopes.weight / slopes.weight.mean()
    rows = tie_scores(rows)
    for j, mean in enumerate(means):
        levels = np.unique(rows[:, j])
        discrete = len(levels) <= N_BINS + 1
        x = (
            levels
            if discrete
            else np.unique(np.quantile(rows[:, j], np.linspace(0, 1, N_BINS + 1)))
        )
        if len(x) < 2:
            pieces.append((x[:1], x[:1]))
            continue
        t, q = _at_knots(slopes.at[:, j], x), len(x) - 1
        above = np.clip(np.searchsorted(x, t, side="right") - 1, 0, q - 1)
        below = np.clip(np.searchsorted(x, t, side="left") - 1, 0, q - 1)
        mass, square = np.full(q, _PSEUDO), np.full(q, _PSEUDO * mean)
        sides = [(above, slopes.right[:, j], t < x[-1]), (below, slopes.left[:, j], t > x[0])]
        for piece, values, there in sides:
            np.add.at(mass, piece[there], 0.5 * share[there])
            np.add.at(square, piece[there], 0.5 * (share * values)[there])
        scale = np.sqrt(np.maximum(square / mass / total, _FLATTEST**2))
        pieces.append((x, np.concatenate([[0.0], np.cumsum(scale * np.diff(x))])))
    q = max(len(x) for x, _ in pieces)
    knots, values = (
        np.array([np.concatenate([one[i], np.full(q - len(one[i]), one[i][-1])]) for one in pieces])
        for i in (0, 1)
    )
    return Warp(knots, values)
