"""Figures of merit with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.report.predictions import ClassPredictions, Intervals, NumberPredictions
from lssvm.report.scales import short

Statistic = Callable[[FloatArray], FloatArray]

Z95 = 1.959963984540054
DRAWS = (100, 1000)  # bootstrap samples, from and to
WORK = 5_000_000  # numbers that all samples of a figure have together
BLOCK = 2_000_000
ORDER = ("balanced_accuracy", "f1", "mcc", "roc_auc", "average_precision", "log_loss", "brier")


@dataclass(frozen=True)
class Measure:
    """A figure with its interval.

    Attributes
    ----------
    key : str
        Name for programs.
    name : str
        Name for people.
    value, low, high : float
    method : str
        How the interval was found: "Wilson" or "bootstrap".
    share : bool
        Whether it is shown as per cent.
    smaller : bool
        Whether smaller is better.
    meaning : str
        What it says, in a few words.
    """

    key: str
    name: str
    value: float
    low: float
    high: float
    method: str
    share: bool = False
    smaller: bool = False
    meaning: str = ""


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Return the Wilson score interval of a share.

    Parameters
    ----------
    successes : float
    n : float
        Trials; for weighted rows the effective number.

    Examples
    --------
    >>> from lssvm.report.measures import wilson
    >>> low, high = wilson(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.49, 0.943)
    """
    if n <= 0:
        return 0.0, 1.0
    p = successes / n
    centre = p + Z95**2 / (2 * n)
    half = Z95 * math.sqrt(max(p * (1 - p) / n + Z95**2 / (4 * n * n), 0.0))
    scale = 1 + Z95**2 / n
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def bootstrap(
    statistics: dict[str, Statistic],
    n: int,
    weight: FloatArray | None,
    seed: int = 0,
    cost: int = 1,
) -> dict[str, tuple[float, float, float]]:
    """Return value and percentile interval of statistics of weighted rows.

    Parameters
    ----------
    statistics : dict of functions
        From weights (b, n) to values (b,).
    n : int
    weight : array of shape (n,) or None
    seed : int, default=0
    cost : int, default=1
        How often a statistic goes over the rows; expensive ones are drawn less often.

    Notes
    -----
    Rows are drawn with replacement, 100 to 1,000 times; the ends are the 2.5 % and 97.5 %
    quantiles. O(draws n) per statistic.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.measures import bootstrap
    >>> x = np.arange(100.0)
    >>> value, low, high = bootstrap({"mean": lambda W: W @ x / W.sum(axis=1)}, 100, None)["mean"]
    >>> value, bool(low < 49.5 < high), bool(8 < high - low < 15)
    (49.5, True, True)
    """
    own = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    draws = int(np.clip(WORK // max(n * cost, 1), *DRAWS))
    found: dict[str, list[FloatArray]] = {name: [] for name in statistics}
    with np.errstate(invalid="ignore", divide="ignore"):
        for W in _draws(n, draws, own, np.random.default_rng(seed)):
            for name, statistic in statistics.items():
                found[name].append(statistic(W))
        whole = {name: float(statistic(own[None, :])[0]) for name, statistic in statistics.items()}
    result = {}
    for name, parts in found.items():
        values = np.concatenate(parts)
        values = values[np.isfinite(values)]
        ends = np.quantile(values, [0.025, 0.975]) if values.size else (math.nan, math.nan)
        result[name] = (whole[name], float(ends[0]), float(ends[1]))
    return result


def _draws(n: int, draws: int, own: FloatArray, rng: np.random.Generator) -> Iterator[FloatArray]:
    step = max(1, BLOCK // max(n, 1))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        index = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        yield np.bincount(index.ravel(), minlength=size * n).reshape(size, n) * own


# -- classes -----------------------------------------------------------------------------------


def confusion(found: ClassPredictions) -> FloatArray:
    """Return the weight of rows of every class (row) by predicted class (column)."""
    q = len(found.classes)
    counts = np.bincount(found.labels * q + found.decided, found.weight, minlength=q * q)
    return np.asarray(counts.reshape(q, q), dtype=np.float64)


def class_measures(found: ClassPredictions) -> list[Measure]:
    """Return the figures of a classifier, the most telling first.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.measures import class_measures
    >>> from lssvm.report.predictions import ClassPredictions
    >>> labels, decided = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    >>> found = ClassPredictions(np.array(["a", "b"]), labels, decided, None, None, None)
    >>> [(m.key, round(m.value, 3)) for m in class_measures(found)][:2]
    [('accuracy', 0.75), ('balanced_accuracy', 0.75)]
    """
    n, q = len(found.labels), len(found.classes)
    weight = np.ones(n) if found.weight is None else found.weight
    hit = (found.labels == found.decided).astype(np.float64)
    share = float(weight @ hit / weight.sum())
    effective = float(weight.sum() ** 2 / (weight @ weight))
    low, high = wilson(share * effective, effective)
    first = Measure(
        "accuracy", "Accuracy", share, low, high, "Wilson", True, meaning="rows that are right"
    )
    true, chosen = (np.eye(q)[codes] for codes in (found.labels, found.decided))
    statistics = _table_statistics(true, chosen, hit) | _probability_statistics(found, true)
    values = bootstrap(statistics, n, found.weight)
    ranking = _ranking_statistics(found, true)
    values |= bootstrap(ranking, n, found.weight, cost=1 if q == 2 else 4 * q)
    label = short(found.classes[1], 20)
    return [first] + [_measure(key, *values[key], label, q) for key in ORDER if key in values]


def _measure(key: str, value: float, low: float, high: float, label: str, q: int) -> Measure:
    two = q == 2
    share, smaller, name, meaning = {
        "balanced_accuracy": (
            True,
            False,
            "Balanced accuracy",
            "mean over classes of the rows found",
        ),
        "f1": (
            False,
            False,
            "F1" if two else "F1 (mean over classes)",
            f"precision and recall of “{label}” in one" if two else "precision and recall",
        ),
        "mcc": (False, False, "Matthews correlation", "0 is guessing, 1 is perfect"),
        "roc_auc": (
            False,
            False,
            "ROC AUC" if two else "ROC AUC (mean over classes)",
            "how well rows are ranked; 0.5 is guessing",
        ),
        "average_precision": (
            False,
            False,
            "Average precision" if two else "Average precision (mean over classes)",
            "area under the precision-recall curve",
        ),
        "log_loss": (False, True, "Log loss", "of the probabilities; smaller is better"),
        "brier": (
            False,
            True,
            "Brier score",
            "squared error of the probabilities; smaller is better",
        ),
    }[key]
    return Measure(key, name, value, low, high, "bootstrap", share, smaller, meaning)


def _table_statistics(
    true: FloatArray, chosen: FloatArray, hit: FloatArray
) -> dict[str, Statistic]:
    """Return the statistics of the confusion matrix."""
    right = true * hit[:, None]
    two = true.shape[1] == 2

    def balanced(W: FloatArray) -> FloatArray:
        return np.asarray(np.nanmean((W @ right) / (W @ true), axis=1))

    def f1(W: FloatArray) -> FloatArray:
        values = 2.0 * (W @ right) / (W @ true + W @ chosen)
        return np.asarray(values[:, 1] if two else np.nanmean(values, axis=1))

    def mcc(W: FloatArray) -> FloatArray:
        total, t, p = W.sum(axis=1), W @ true, W @ chosen
        above = (W @ hit) * total - (t * p).sum(axis=1)
        below = np.sqrt((total**2 - (p * p).sum(axis=1)) * (total**2 - (t * t).sum(axis=1)))
        return np.asarray(np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0))

    return {"balanced_accuracy": balanced, "f1": f1, "mcc": mcc}


def _ranking_statistics(found: ClassPredictions, true: FloatArray) -> dict[str, Statistic]:
    """Return the statistics of the order of scores."""
    made: dict[str, Statistic] = {}
    ranking, q = found.ranking, len(found.classes)
    if ranking is not None:
        columns = [1] if q == 2 else [c for c in range(q) if 0 < true[:, c].sum() < len(true)]
        groups = [_Groups(ranking[:, c], true[:, c]) for c in columns]
        if groups:
            made["roc_auc"] = lambda W: np.mean([g.roc_auc(W) for g in groups], axis=0)
            made["average_precision"] = lambda W: np.mean([g.precision(W) for g in groups], axis=0)
    return made


def _probability_statistics(found: ClassPredictions, true: FloatArray) -> dict[str, Statistic]:
    """Return the statistics of probabilities."""
    made: dict[str, Statistic] = {}
    if found.probability is not None:
        P, q = found.probability, len(found.classes)
        own = np.clip(P[np.arange(len(P)), found.labels], np.finfo(float).eps, 1.0)
        log = -np.log(own)
        made["log_loss"] = lambda W: (W @ log) / W.sum(axis=1)
        squares = (P[:, 1] - true[:, 1]) ** 2 if q == 2 else ((P - true) ** 2).sum(axis=1)
        made["brier"] = lambda W: (W @ squares) / W.sum(axis=1)
    return made


class _Groups:
    """Rows in descending order of their score, equal scores together."""

    def __init__(self, scores: FloatArray, true: FloatArray) -> None:
        self.order = np.argsort(-scores, kind="stable")
        ordered = scores[self.order]
        self.starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        self.true = true[self.order]
        self.last: tuple[Any, Any] = (None, None)  # weights and their sums

    def sums(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weight of the class and of the others in every group, shape (b, g)."""
        if self.last[0] is not W:
            ordered = W[:, self.order]
            mine = np.add.reduceat(ordered * self.true, self.starts, axis=1)
            self.last = W, (mine, np.add.reduceat(ordered, self.starts, axis=1) - mine)
        found: tuple[FloatArray, FloatArray] = self.last[1]
        return found

    def roc_auc(self, W: FloatArray) -> FloatArray:
        mine, others = self.sums(W)
        below = others.sum(axis=1, keepdims=True) - np.cumsum(others, axis=1) + 0.5 * others
        total = mine.sum(axis=1) * others.sum(axis=1)
        return np.asarray((mine * below).sum(axis=1) / total)

    def precision(self, W: FloatArray) -> FloatArray:
        mine, others = self.sums(W)
        hits, false = np.cumsum(mine, axis=1), np.cumsum(others, axis=1)
        both = hits + false
        precise = np.where(both > 0, hits / np.where(both > 0, both, 1.0), 0.0)
        return np.asarray((precise * mine).sum(axis=1) / hits[:, -1])

    def roc(self, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return false and true positive rates."""
        mine, others = (np.cumsum(part[0]) for part in self.sums(weight[None, :]))
        zero = np.zeros(1)
        return np.append(zero, others / others[-1]), np.append(zero, mine / mine[-1])

    def precision_recall(self, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return recall and precision."""
        mine, others = (np.cumsum(part[0]) for part in self.sums(weight[None, :]))
        precise = mine / np.maximum(mine + others, 1e-300)
        return np.append(0.0, mine / mine[-1]), np.append(precise[0], precise)


def ranking_curves(found: ClassPredictions, column: int) -> dict[str, Any] | None:
    """Return ROC and precision-recall curve of one class against the others; None without both."""
    ranking = found.ranking
    true = (found.labels == column).astype(np.float64)
    if ranking is None or not 0 < true.sum() < len(true):
        return None
    weight = np.ones(len(true)) if found.weight is None else found.weight
    groups = _Groups(ranking[:, column], true)
    return {
        "roc": groups.roc(weight),
        "precision": groups.precision_recall(weight),
        "auc": float(groups.roc_auc(weight[None, :])[0]),
        "average_precision": float(groups.precision(weight[None, :])[0]),
        "share": float(weight @ true / weight.sum()),
    }


# -- numbers -----------------------------------------------------------------------------------


def number_measures(found: NumberPredictions, j: int) -> list[Measure]:
    """Return the figures of a regressor for one output.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.measures import number_measures
    >>> from lssvm.report.predictions import NumberPredictions
    >>> Y = np.arange(10.0)[:, None]
    >>> found = NumberPredictions(Y, Y + 1.0, None, ("y",))
    >>> {m.key: round(m.value, 3) for m in number_measures(found, 0)}
    {'rmse': 1.0, 'mae': 1.0, 'r2': 0.879, 'median_absolute_error': 1.0}
    """
    y, error = found.Y[:, j], found.predicted[:, j] - found.Y[:, j]
    middle = y - y.mean()  # so that the variance does not cancel

    def mean(W: FloatArray, values: FloatArray) -> FloatArray:
        return np.asarray((W @ values) / W.sum(axis=1))

    def r2(W: FloatArray) -> FloatArray:
        total = mean(W, middle**2) - mean(W, middle) ** 2
        left = mean(W, error**2)
        return np.where(total > 0, 1.0 - left / np.where(total > 0, total, 1.0), np.nan)

    order = np.argsort(np.abs(error))
    size = np.abs(error)[order]

    def median(W: FloatArray) -> FloatArray:
        sums = np.cumsum(W[:, order], axis=1)
        half = 0.5 * sums[:, -1:]
        low = size[np.argmax(sums >= half * (1 - 1e-12), axis=1)]
        return np.asarray(0.5 * (low + size[np.argmax(sums > half * (1 + 1e-12), axis=1)]))

    statistics: dict[str, Statistic] = {
        "rmse": lambda W: np.sqrt(mean(W, error**2)),
        "mae": lambda W: mean(W, np.abs(error)),
        "r2": r2,
        "median_absolute_error": median,
    }
    values = bootstrap(statistics, len(y), found.weight)
    words = {
        "rmse": ("Root mean squared error", True, "large errors count more"),
        "mae": ("Mean absolute error", True, "how far off on average"),
        "r2": ("Explained variance R²", False, "0 is the mean, 1 is perfect"),
        "median_absolute_error": ("Median absolute error", True, "half of the rows are closer"),
    }
    return [
        Measure(key, words[key][0], *values[key], "bootstrap", False, words[key][1], words[key][2])
        for key in statistics
    ]


def coverage_measures(intervals: list[Intervals], j: int) -> list[tuple[float, Measure, float]]:
    """Return promised coverage, what it was, and the mean width of the intervals of one output."""
    found = []
    for part in intervals:
        inside = part.inside[:, j]
        n, hits = len(inside), int(inside.sum())
        low, high = wilson(hits, n)
        measure = Measure("coverage", "Coverage", hits / n, low, high, "Wilson", True)
        found.append((part.coverage, measure, float(part.width[j])))
    return found
