"""What out-of-fold outputs say about new rows.

Prediction intervals of a regressor, from scaled residuals; probabilities and prediction sets of a
classifier, from scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.optimize import brentq, isotonic_regression
from scipy.special import expit, logsumexp, softmax

from lssvm._core.arrays import BoolArray, FloatArray, IntArray, tie_scores
from lssvm._core.blocks import run_blocks, slices
from lssvm._core.errors import InvalidInputError, NumericalWarning, not_usable
from lssvm.codes import Code, decode
from lssvm.data.folds import observation_weight, repeats_by_nature

METHODS = ("auto", "sigmoid", "isotonic")
"""How scores become probabilities."""

ISOTONIC_FROM = 1000.0
"""Total weight of the rows from which "auto" tries the isotonic map."""

FEW_ROWS = 250
"""Rows up to which outputs of other classes do not change the score of a class."""

_PRIOR_ROWS = 50.0  # rows' worth of sigmoid mixed into every step of the isotonic map
_FOLDS = 5
_ENOUGH = 100  # observations below which residuals are taken to be symmetric
_TESTED = 20  # of which a sign test is made
_CLEARLY = 2.5  # standard errors
_FEW_GROUPS = 20  # as many as intervals of 95 % need; fewer groups count as so many


def in_observations(weight: FloatArray) -> FloatArray:
    """Return weights whose sum is the number of observations.

    Whole numbers count observations: a weight of 2 is the row twice. The scale of others means
    nothing.
    """
    if len(weight) == 0 or np.array_equal(weight, np.round(weight)):
        return weight
    return weight * (observation_weight(len(weight), weight)[0] / float(weight.sum()))


Calibrator: TypeAlias = Callable[[FloatArray], FloatArray]
"""A monotone map from scores (n,) to probabilities of the positive class (n,)."""


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
    scores, positive, w = _usable(scores, positive, weight)
    return _fit(scores, positive, w, _method(scores, positive, w, method))


def _usable(
    scores: FloatArray, positive: BoolArray, weight: FloatArray | None
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Return finite scores, ties made equal, with their classes and weights in observations."""
    scores = np.asarray(scores, dtype=np.float64)
    w = np.ones(len(scores)) if weight is None else np.asarray(weight, dtype=np.float64)
    good = np.isfinite(scores) & (w > 0)
    return tie_scores(scores[good]), np.asarray(positive)[good], in_observations(w[good])


def _method(scores: FloatArray, positive: BoolArray, weight: FloatArray, method: str) -> str:
    """Return the method that "auto" stands for."""
    if method != "auto":
        return method
    return "sigmoid" if weight.sum() < ISOTONIC_FROM else _choose(scores, positive, weight)


def _fit(scores: FloatArray, positive: BoolArray, weight: FloatArray, method: str) -> Calibrator:
    sigmoid = fit_sigmoid(scores, positive, weight)
    return sigmoid if method == "sigmoid" else _fit_isotonic(scores, positive, weight, sigmoid)


def _choose(scores: FloatArray, positive: BoolArray, weight: FloatArray) -> str:
    """Return the method of smaller cross-validated log loss; folds take the sorted scores in turn.

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
    # No step is 0 or 1, and a step of few rows is worth little.
    values = (hit + _PRIOR_ROWS * prior) / (total + _PRIOR_ROWS)
    smooth = np.asarray(isotonic_regression(values, weights=total).x)
    if not _few_values(len(knots), weight):
        return Isotonic(middle, smooth)
    ends = np.column_stack([knots[starts], knots[np.append(starts[1:], len(knots)) - 1]])
    wide = np.column_stack([np.ones(len(ends), bool), ends[:, 0] < ends[:, 1]])
    return Isotonic(ends[wide], np.repeat(smooth, wide.sum(axis=1)))


def _few_values(n_distinct: int, weight: FloatArray) -> bool:
    """Say whether equal scores are those of different observations, not of copies of one."""
    return repeats_by_nature(n_distinct, observation_weight(len(weight), weight)[0])


MAX_RESIDUALS = 10_000
"""Residuals that a model keeps; of more, as many quantiles."""


def check_coverage(coverage: float, name: str = "coverage") -> float:
    """Return a coverage or level as a float, or raise if it is not inside (0, 1)."""
    number = isinstance(coverage, (int, float, np.number)) and type(coverage) is not bool
    if not number or not 0.0 < float(coverage) < 1.0:
        raise not_usable(name, coverage, "give a number between 0 and 1, such as 0.95.")
    return float(coverage)


def conformal_quantile(values: FloatArray, weight: FloatArray, coverage: float) -> float:
    """Return the value that a new one does not exceed with probability ``coverage``."""
    total = float(weight.sum())
    wanted = coverage * (total + 1.0)
    position = int(np.searchsorted(np.cumsum(weight), wanted * (1.0 - 1e-12)))
    return float(values[position]) if position < len(values) else float("inf")


@dataclass(frozen=True, eq=False)
class Residuals:
    """Out-of-fold residuals in units of the local standard deviation, sorted, one set per output.

    Attributes
    ----------
    values : list of k arrays
        (y - prediction) / scale of every row.
    weight : list of k arrays
        Weights in the same order.
    nearby : int
        Of a model with leaves: training rows near a row whose errors are its local deviation; 0:
        those of its leaf.
    two_sided : bool
        Whether quantiles are those of the residuals themselves where these are clearly skewed;
        otherwise they are those of their absolute values.
    """

    values: list[FloatArray]
    weight: list[FloatArray]
    nearby: int = 0
    two_sided: bool = False

    def quantiles(self, levels: Sequence[float], output: int) -> FloatArray:
        """Return quantiles of a new residual of one output, non-decreasing in their levels.

        A new residual is below that of a level q > 1/2 with probability q at least, and above that
        of a level q < 1/2 with probability 1 - q at least. Levels that there are too few rows for
        are infinite.
        """
        values, weight = self.values[output], self.weight[output]
        size = np.abs(values)
        order = np.argsort(size, kind="stable")
        skewed = self.two_sided and is_skewed(values, weight)
        ends = []
        for level in levels:
            side = 1.0 if level >= 0.5 else -1.0
            end = conformal_quantile(size[order], weight[order], abs(2.0 * level - 1.0))
            if skewed:
                some = (values, weight) if side > 0.0 else (-values[::-1], weight[::-1])
                one = conformal_quantile(*some, max(level, 1.0 - level))
                # Of too few rows on one side the symmetric end, outside of all rows of the side.
                end = one if np.isfinite(one) else max(end, float(some[0][-1]))
            ends.append(side * end if skewed or level != 0.5 else 0.0)
        return np.array(ends)

    def factor(self, coverage: float, output: int) -> tuple[float, float]:
        """Return the ends of the interval of one output in units of the local deviation."""
        low, high = self.quantiles([0.5 - coverage / 2.0, 0.5 + coverage / 2.0], output)
        if not np.isfinite(high - low):
            self.warn_of_few(f"intervals of coverage {coverage:g}", "a lower coverage", output)
        return float(low), float(high)

    def warn_of_few(self, what: str, instead: str, output: int) -> None:
        """Warn that there are too few rows for the requested levels."""
        warnings.warn(
            f"{float(self.weight[output].sum()):.3g} rows (or groups of rows) are too few for "
            f"{what}, so they are infinite: give more rows, or {instead}.",
            NumericalWarning,
            stacklevel=5,
        )


def is_skewed(values: FloatArray, weight: FloatArray) -> bool:
    """Say whether the signs of residuals differ from those of a symmetric distribution.

    Sign tests of the largest 5, 10, 20, 50 and 100 % of the residuals, where these are at least 20
    observations; weights sum to the number of observations. One of them has to exceed 2.5 standard
    errors.
    """
    order = np.argsort(-np.abs(values), kind="stable")
    total, signed = np.cumsum(weight[order]), np.cumsum((np.sign(values) * weight)[order])
    if not len(total) or total[-1] < _ENOUGH:
        return False
    for share in (0.05, 0.1, 0.2, 0.5, 1.0):
        last = min(int(np.searchsorted(total, share * total[-1])), len(total) - 1)
        if total[last] >= _TESTED and abs(signed[last]) > _CLEARLY * np.sqrt(total[last]):
            return True
    return False


def scaled_residuals(
    residuals: FloatArray,
    scale: FloatArray,
    weight: FloatArray | None = None,
    groups: IntArray | None = None,
) -> Residuals:
    """Divide residuals by their scale and keep them sorted, at most 10,000 of each output.

    Rows of a group (n,) depend on each other: the number of observations is that of the groups,
    (sum of weights)^2 / (sum of squared weights) of them where they are of different size.
    """
    w = np.ones(len(residuals)) if weight is None else np.asarray(weight, dtype=np.float64)
    values, weights = [], []
    for e, s in zip(residuals.T, scale.T, strict=True):
        good = np.isfinite(e) & np.isfinite(s) & (w > 0)
        e, s, counts = e[good], s[good], in_observations(w[good])
        if groups is not None and len(counts):
            size = np.bincount(groups[good], counts)
            counts = counts * min(max(size.sum() / (size @ size), _FEW_GROUPS / size.sum()), 1.0)
        tiny = np.finfo(np.float64).tiny  # where there is no noise at all
        with np.errstate(over="ignore"):  # such residuals are cut off
            r = np.clip(e / np.maximum(s, tiny), -1e300, 1e300)
        order = np.argsort(r, kind="stable")
        r, counts = r[order], counts[order]
        if len(r) > MAX_RESIDUALS:
            r, counts = _thin(r, counts, MAX_RESIDUALS)
        values.append(r)
        weights.append(counts)
    return Residuals(values, weights)


def _thin(values: FloatArray, weight: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Return ``size`` quantiles of sorted values, each with the same part of the weight."""
    total = np.cumsum(weight)
    middle = (np.arange(size) + 0.5) / size * total[-1]
    return values[np.searchsorted(total, middle)], np.full(size, total[-1] / size)


PAIR_FLOOR = 1e-7
"""No class of a pair or of several is less probable than this before it is sharpened."""

CLASS_FLOOR = 1e-30
"""The smallest value of a class before probabilities are normalised, where all may be tiny."""


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Outputs of models for rows that they had not seen.

    Attributes
    ----------
    scores : array of shape (t, k)
        Outputs of all problems; NaN where a problem has nothing to say.
    labels : int array of shape (t,)
        Class numbers.
    weight : array of shape (t,) or None
        Weights of the rows; None: all are one.
    """

    scores: FloatArray
    labels: IntArray
    weight: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Calibrated probabilities of a classifier with an output code.

    Attributes
    ----------
    code : Code
        Output code.
    decoding : str or None
        How the classifier decodes: see `lssvm.codes.decode`; "argmax" where the outputs are the
        scores of the classes, "softmax" where each score is that of `odds_against_others`.
    maps : list of Calibrator
        One per binary problem (two classes, one-vs-one), or one per class.
    threshold : array of shape (t,)
        Quantiles of 1 - p(true class) over the out-of-fold rows, sorted.
    weight : array of shape (t,)
        Weights in the same order.
    sharpness : float
        The power that normalised probabilities are raised to before they are normalised again;
        1 where there is nothing to normalise.
    agrees : bool
        Whether the decided class is always the most probable one; not where decisions were tuned.
    """

    code: Code
    decoding: str | None
    maps: list[Calibrator]
    threshold: FloatArray
    weight: FloatArray
    sharpness: float = 1.0
    agrees: bool = True

    def of(self, raw: FloatArray, decided: IntArray | None) -> FloatArray:
        """Return the probabilities of the classes, shape (n, K).

        They agree with the decided classes, where these are given and ``agrees`` is true.
        """
        free = sharpened(
            _raw_probabilities(self.code, self.decoding, self.maps, raw), self.sharpness
        )
        return free if decided is None or not self.agrees else agree_with(free, decided)

    def sets(self, raw: FloatArray, decided: IntArray, coverage: float) -> BoolArray:
        """Return which classes belong to the prediction set of each row, shape (n, K)."""
        p = self.of(raw, decided)
        limit = conformal_quantile(self.threshold, self.weight, coverage)
        chosen = 1.0 - p <= limit
        chosen[np.arange(len(p)), decided] = True
        return np.asarray(chosen)


def calibrate(
    table: OutOfFold,
    code: Code,
    decoding: str | None = None,
    method: str = "auto",
    threads: int = 1,
) -> Probabilities:
    """Fit the maps from scores to probabilities, those of several classes on threads."""
    return _calibrated(table, code, decoding, method, threads)[0]


def calibrate_log_odds(table: OutOfFold, code: Code, threads: int = 1) -> Probabilities:
    """Fit the maps from outputs whose softmax are probabilities of three classes or more.

    The score of a class is its output, or its log-odds against the other classes where these have a
    log loss that is smaller by more than its standard error, for rows that their maps were not
    fitted to, and there are more than `FEW_ROWS`. The outputs of the other classes help where they
    are sure; where they are not, they are noise: the offset of a rare class is uncertain. Takes
    twice the time of `calibrate`.
    """
    alone, p = _calibrated(table, code, "argmax", "auto", threads)
    if len(p) <= FEW_ROWS:
        return alone
    against, q = _calibrated(table, code, "softmax", "auto", threads)
    weight = np.ones(len(table.labels)) if table.weight is None else table.weight
    used = np.all(np.isfinite(table.scores), axis=1) & (weight > 0)
    at, w = (np.arange(len(p)), table.labels[used]), weight[used] / weight[used].sum()
    gain = np.log(np.maximum(q[at], CLASS_FLOOR) / np.maximum(p[at], CLASS_FLOOR))
    mean = float(w @ gain)
    error = float(np.sqrt(np.square(w * (gain - mean)).sum()))
    return against if mean > error else alone


def _calibrated(
    table: OutOfFold, code: Code, decoding: str | None, method: str, threads: int
) -> tuple[Probabilities, FloatArray]:
    """Return the maps, and probabilities (m, K) of the rows that have outputs of all problems."""
    labels = table.labels
    weight = np.ones(len(labels)) if table.weight is None else table.weight
    good = np.all(np.isfinite(table.scores), axis=1) & (weight > 0)
    if not np.any(good):
        raise InvalidInputError(
            "There is no row that every problem was tried on without having seen it: give more "
            "rows, or more rows of each class."
        )
    maps: list[Calibrator] = []
    if by_problem(code):
        for column, score in zip(code.matrix.T, table.scores.T, strict=True):
            used = column[labels] != 0
            positive = column[labels[used]] > 0
            maps.append(fit_calibrator(score[used], positive, weight[used], method))
        p, sharpness = _raw_probabilities(code, decoding, maps, table.scores[good]), 1.0
        labels, weight = labels[good], weight[good]
    else:
        labels, weight = labels[good], weight[good]
        scores = _class_scores(code, decoding, table.scores[good])
        maps, p = _class_maps(scores, labels, weight, method, threads)
        sharpness = fit_sharpness(p, labels, weight)
        p = sharpened(p, sharpness)
    misfit = 1.0 - p[np.arange(len(p)), labels]
    order = np.argsort(misfit, kind="stable")
    return Probabilities(code, decoding, maps, misfit[order], weight[order], sharpness), p


def _class_maps(
    scores: FloatArray, labels: IntArray, weight: FloatArray, method: str, threads: int
) -> tuple[list[Calibrator], FloatArray]:
    """Return a map per class, and probabilities (n, K) by maps that were fitted to other rows.

    Those show how sure the maps may be: with their own rows each class of a few rows looks certain.
    Rows of the same scores share a fold; neither their number nor the last digits of scores, which
    depend on the order of rows, change the folds.
    """
    tied = tie_scores(scores.ravel()).reshape(scores.shape)
    order = np.lexsort((*tied.T, np.argmax(tied, axis=1)))
    new = np.any(np.diff(tied[order], axis=0) != 0.0, axis=1)
    folds = np.empty(len(labels), dtype=np.intp)
    folds[order] = np.concatenate([[0], np.cumsum(new)]) % _FOLDS
    p = np.empty(scores.shape)

    def fit_class(c: int) -> Calibrator:
        score, positive, w = _usable(scores[:, c], labels == c, weight)
        chosen = _method(score, positive, w, method)
        whole = _fit(score, positive, w, chosen)
        for v in range(_FOLDS):
            test = folds == v
            one = whole
            if test.any() and not test.all():
                rest = ~test
                one = fit_calibrator(scores[rest, c], labels[rest] == c, weight[rest], chosen)
            p[test, c] = one(scores[test, c])
        return whole

    maps = run_blocks(fit_class, range(scores.shape[1]), threads, operations=1e4 * scores.size)
    return maps, _normalised(p)


def _class_scores(code: Code, decoding: str | None, raw: FloatArray) -> FloatArray:
    """Return one score per class, shape (n, K)."""
    if decoding == "softmax":
        return odds_against_others(raw)
    return raw if decoding == "argmax" else np.asarray(decode(code, raw, decoding))


def odds_against_others(outputs: FloatArray) -> FloatArray:
    r"""Return :math:`f_c - \log\sum_{j \ne c} e^{f_j}`, the log-odds of each class by the softmax.

    Shape (n, K) of outputs (n, K) of two classes or more, in O(n K) time. Nothing is subtracted
    from a sum that it dominates: the sum of the largest output's others is computed anew.
    """
    rows, top = np.arange(len(outputs)), np.argmax(outputs, axis=1)
    largest = outputs[rows, top]
    shares = np.exp(outputs - largest[:, None])
    shares[rows, top] = 0.0
    others = np.log1p(shares.sum(axis=1, keepdims=True) - shares) + largest[:, None]
    rest = outputs.copy()
    rest[rows, top] = -np.inf
    others[rows, top] = logsumexp(rest, axis=1)
    return np.asarray(outputs - others)


def _normalised(p: FloatArray) -> FloatArray:
    """Return probabilities (n, K) that sum to 1, none so small that one row counts like many."""
    p = np.maximum(p, CLASS_FLOOR)
    p = np.maximum(p / p.sum(axis=1, keepdims=True), PAIR_FLOOR)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def fit_sharpness(
    probabilities: FloatArray, labels: IntArray, weight: FloatArray | None = None
) -> float:
    """Return the power t for which p^t, normalised, has the smallest log loss.

    Temperature scaling ([Guo2017]), with 1/t for the temperature and a Gaussian prior of standard
    deviation 1 on log t, so that few rows, or rows that are all right, do not make it certain.
    O(n K) time for each of some thirty values.
    """
    w = np.ones(len(labels)) if weight is None else weight
    logs = np.log(np.maximum(probabilities, CLASS_FLOOR))
    logs_of_labels = logs[np.arange(len(logs)), labels]

    def slope(log_t: float) -> float:
        t = float(np.exp(log_t))
        mean = np.sum(softmax(t * logs, axis=1) * logs, axis=1)
        return log_t + t * float(w @ (mean - logs_of_labels))

    limit = float(np.log(8.0))
    if slope(-limit) >= 0.0 or slope(limit) <= 0.0:
        return float(np.exp(-limit if slope(-limit) >= 0.0 else limit))
    return float(np.exp(brentq(slope, -limit, limit, xtol=1e-13, rtol=1e-13)))


def sharpened(probabilities: FloatArray, sharpness: float) -> FloatArray:
    """Return powers of probabilities, normalised, shape (n, K)."""
    if sharpness == 1.0:
        return probabilities
    p = probabilities**sharpness
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def by_problem(code: Code) -> bool:
    """Say whether every binary problem separates one class from one other."""
    plus, minus = (code.matrix > 0).sum(axis=0), (code.matrix < 0).sum(axis=0)
    K = code.n_classes
    return bool(np.all(plus == 1) and np.all(minus == 1) and code.n_problems == K * (K - 1) // 2)


def _raw_probabilities(
    code: Code, decoding: str | None, maps: list[Calibrator], raw: FloatArray
) -> FloatArray:
    """Return the probabilities before they are made to agree with a decision, shape (n, K)."""
    K = code.n_classes
    if not by_problem(code):
        scores = _class_scores(code, decoding, raw)
        return _normalised(np.column_stack([maps[c](scores[:, c]) for c in range(K)]))
    pairs = np.full((len(raw), K, K), 0.5)
    for calibrator, column, score in zip(maps, code.matrix.T, raw.T, strict=True):
        plus, minus = int(np.argmax(column)), int(np.argmin(column))
        p = np.clip(calibrator(score), PAIR_FLOOR, 1.0 - PAIR_FLOOR)
        pairs[:, plus, minus], pairs[:, minus, plus] = p, 1.0 - p
    if K == 2:
        return np.asarray(pairs[:, [0, 1], [1, 0]])
    return couple_pairs(pairs)


TILT = 1e-9
"""What the decided class gets over its equals."""


def couple_pairs(pairs: FloatArray) -> FloatArray:
    r"""Return class probabilities that fit the probabilities of all pairs best.

    Minimises :math:`\sum_i \sum_{j \ne i} (r_{ji} p_i - r_{ij} p_j)^2` subject to
    :math:`\sum_i p_i = 1`, the second method of [Wu2004]: one linear system of K + 1 equations per
    row, whose solution is not negative. The printed algorithm iterates; here it is solved directly,
    all rows at once. O(n K^3) time.
    """
    n, K, _ = pairs.shape
    out = np.empty((n, K))
    for part in slices(n, max(1, 2_000_000 // (K + 1) ** 2)):
        r = np.array(pairs[part])
        r[:, np.arange(K), np.arange(K)] = 0.0
        Q = np.empty((len(r), K + 1, K + 1))
        Q[:, :K, :K] = -np.swapaxes(r, 1, 2) * r  # [Wu2004], the second method
        Q[:, np.arange(K), np.arange(K)] = np.sum(np.swapaxes(r, 1, 2) ** 2, axis=2)
        Q[:, K, :K] = Q[:, :K, K] = 1.0
        Q[:, K, K] = 0.0
        right = np.zeros((len(r), K + 1, 1))
        right[:, K] = 1.0
        p = np.maximum(np.linalg.solve(Q, right)[:, :K, 0], 0.0)
        out[part] = p / p.sum(axis=1, keepdims=True)
    return out


def agree_with(probabilities: FloatArray, decided: IntArray) -> FloatArray:
    """Return the nearest probabilities whose largest belongs to the decided class."""
    out = np.array(probabilities, dtype=np.float64)
    wrong = np.flatnonzero(np.argmax(out, axis=1) != decided)
    if len(wrong) == 0:
        return out
    p, d = out[wrong], decided[wrong]
    rows = np.arange(len(wrong))
    chosen = p[rows, d]
    others = p.copy()
    others[rows, d] = -np.inf
    largest = np.sort(others, axis=1)[:, ::-1][:, :-1]  # the others, largest first
    counts = np.arange(2, p.shape[1] + 1)
    level = np.max((chosen[:, None] + np.cumsum(largest, axis=1)) / counts, axis=1)
    p = np.minimum(p, level[:, None])
    p[rows, d] = level
    p *= (1.0 - TILT) / p.sum(axis=1, keepdims=True)
    p[rows, d] += TILT
    out[wrong] = p
    return out
