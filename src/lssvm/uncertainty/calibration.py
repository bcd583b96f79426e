"""From the score of a binary problem to a probability: sigmoid and isotonic maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit

from lssvm._core.arrays import BoolArray, FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.data.folds import observation_weight, repeats_by_nature
from lssvm.tasks.losses import tie_scores

METHODS = ("auto", "sigmoid", "isotonic")
"""How scores become probabilities."""

ISOTONIC_FROM = 1000.0
"""Total weight of the rows from which "auto" tries the isotonic map."""

_PSEUDO = 50.0  # rows' worth of sigmoid mixed into every step of the isotonic map
_FOLDS = 5


def in_observations(weight: FloatArray) -> FloatArray:
    """Return weights whose sum is the number of observations.

    Whole numbers count observations: a weight of 2 is the row twice. The scale of others means
    nothing.
    """
    if len(weight) == 0 or np.array_equal(weight, np.round(weight)):
        return weight
    return weight * (observation_weight(len(weight), weight)[0] / float(weight.sum()))


class Calibrator(Protocol):
    """A monotone map from scores to probabilities."""

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities (n,) of the positive class for scores (n,)."""
        ...


@dataclass(frozen=True)
class Sigmoid:
    """The map 1 / (1 + exp(-(slope s + offset))).

    Attributes
    ----------
    slope : float
        Not negative.
    offset : float
        The log odds at a score of 0.
    """

    slope: float
    offset: float

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities (n,)."""
        return np.asarray(expit(self.slope * scores + self.offset))


@dataclass(frozen=True, eq=False)
class Isotonic:
    """A non-decreasing map, linear between knots and constant outside.

    Attributes
    ----------
    knots : array of shape (q,)
        Increasing.
    values : array of shape (q,)
        Non-decreasing, inside (0, 1).
    """

    knots: FloatArray
    values: FloatArray

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities (n,)."""
        return np.asarray(np.interp(scores, self.knots, self.values))


def fit_calibrator(
    scores: FloatArray, positive: BoolArray, weight: FloatArray | None = None, method: str = "auto"
) -> Calibrator:
    """Fit a map from scores to probabilities."""
    if method not in METHODS:
        raise InvalidInputError(f"calibration={method!r} is not known: choose one of {METHODS}.")
    scores = np.asarray(scores, dtype=np.float64)
    w = np.ones(len(scores)) if weight is None else np.asarray(weight, dtype=np.float64)
    good = np.isfinite(scores) & (w > 0)
    scores, positive, w = tie_scores(scores[good]), np.asarray(positive)[good], w[good]
    w = in_observations(w)
    if method == "auto":
        method = "sigmoid" if w.sum() < ISOTONIC_FROM else _choose(scores, positive, w)
    return _fit(scores, positive, w, method)


def _fit(scores: FloatArray, positive: BoolArray, weight: FloatArray, method: str) -> Calibrator:
    sigmoid = fit_sigmoid(scores, positive, weight)
    return sigmoid if method == "sigmoid" else _fit_isotonic(scores, positive, weight, sigmoid)


def _choose(scores: FloatArray, positive: BoolArray, weight: FloatArray) -> str:
    """Return the method of smaller cross-validated log loss; folds deal out the sorted scores.

    Rows of the same score share a fold, unless scores repeat by nature.
    """
    distinct, place = np.unique(scores, return_inverse=True)
    fold = place % _FOLDS
    if _few_values(len(distinct), weight):
        fold[np.lexsort((weight, positive, scores))] = np.arange(len(scores)) % _FOLDS

    def log_loss(method: str) -> float:
        p = np.empty(len(scores))
        for v in range(_FOLDS):
            train, test = fold != v, fold == v
            p[test] = _fit(scores[train], positive[train], weight[train], method)(scores[test])
        return -float(weight @ np.log(np.maximum(np.where(positive, p, 1.0 - p), 1e-15)))

    return min(("sigmoid", "isotonic"), key=log_loss)


def fit_sigmoid(
    scores: FloatArray, positive: BoolArray, weight: FloatArray, max_iter: int = 100
) -> Sigmoid:
    """Fit the sigmoid of [Platt2000] by Newton's method.

    Minimises the cross-entropy to the targets :math:`(N_+ + 1) / (N_+ + 2)` and
    :math:`1 / (N_- + 2)` ([Platt2000]), which keep the slope finite where the classes do not
    overlap, by the safeguarded Newton iteration of [Lin2007]. N are sums of weights. A slope that
    comes out negative (scores worse than chance) is set to zero, since a larger score must not mean
    a smaller probability.
    """
    plus, minus = float(weight[positive].sum()), float(weight[~positive].sum())
    target = np.where(positive, (plus + 1.0) / (plus + 2.0), 1.0 / (minus + 2.0))  # [Platt2000]
    level = float(np.log((plus + 1.0) / (minus + 1.0)))
    spread = float(np.max(np.abs(scores), initial=0.0))
    if not spread > 0.0:
        return Sigmoid(0.0, level)
    x = scores / spread  # scores of order one, whatever their unit

    def loss(a: float, b: float) -> float:
        z = a * x + b
        return float(weight @ (np.logaddexp(0.0, z) - target * z))

    a, b, ridge = 0.0, level, 1e-12 * (plus + minus)  # whatever the unit of the weights
    value = loss(a, b)
    for _ in range(max_iter):
        p = expit(a * x + b)
        gap, curve = weight * (p - target), weight * p * (1.0 - p)
        g_a, g_b = float(gap @ x), float(gap.sum())
        if max(abs(g_a), abs(g_b)) < 1e-9 * (plus + minus):
            break
        h_aa, h_ab = float(curve @ x**2) + ridge, float(curve @ x)
        h_bb = float(curve.sum()) + ridge
        det = h_aa * h_bb - h_ab**2
        d_a, d_b = -(h_bb * g_a - h_ab * g_b) / det, -(h_aa * g_b - h_ab * g_a) / det
        step = 1.0
        while step > 1e-10:
            new = loss(a + step * d_a, b + step * d_b)
            if new < value + 1e-4 * step * (g_a * d_a + g_b * d_b):
                break
            step /= 2.0
        else:
            break
        a, b, value = a + step * d_a, b + step * d_b, new
    return Sigmoid(a / spread, b) if a > 0 else Sigmoid(0.0, level)


def _fit_isotonic(
    scores: FloatArray, positive: BoolArray, weight: FloatArray, sigmoid: Sigmoid
) -> Calibrator:
    """Fit a step function, smooth its steps by the sigmoid, and join them by lines.

    The lines join the middles of steps; of scores of a few values only, which do not say what is
    between them, the ends of steps, so that all values of a step have its probability.
    """
    knots, place = np.unique(scores, return_inverse=True)
    if len(knots) < 2:
        return sigmoid
    mass = np.bincount(place, weight)
    hits = np.bincount(place, weight * positive)
    steps = isotonic_regression(hits / mass, weights=mass)
    starts = np.asarray(steps.blocks[:-1])
    total, hit = np.add.reduceat(mass, starts), np.add.reduceat(hits, starts)
    middle = np.add.reduceat(mass * knots, starts) / total
    prior = np.add.reduceat(mass * sigmoid(knots), starts) / total
    # No step says 0 or 1, and a step of few rows is worth little.
    values = (hit + _PSEUDO * prior) / (total + _PSEUDO)
    smooth = np.asarray(isotonic_regression(values, weights=total).x)
    if not _few_values(len(knots), weight):
        return Isotonic(middle, smooth)
    ends = np.column_stack([knots[starts], knots[np.append(starts[1:], len(knots)) - 1]])
    wide = np.column_stack([np.ones(len(ends), bool), ends[:, 0] < ends[:, 1]])
    return Isotonic(ends[wide], np.repeat(smooth, wide.sum(axis=1)))


def _few_values(n_distinct: int, weight: FloatArray) -> bool:
    """Say whether equal scores are those of different observations, not of copies of one."""
    return repeats_by_nature(n_distinct, observation_weight(len(weight), weight)[0])
