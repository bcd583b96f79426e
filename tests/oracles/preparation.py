"""Preparation of columns, row by row in plain loops."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm


def repeated(values, weight):
    """Return the values, each as often as its (whole) weight says."""
    return np.repeat(np.asarray(values), np.asarray(weight, dtype=int), axis=0)


def normal_scores(x, weight):
    """Middle ranks among the repeated numbers, as quantiles of a normal distribution up to 3.

    Standardised again over the repeated numbers.
    """
    everyone = repeated(x, weight)
    scores = []
    for value in x:
        below = sum(1 for other in everyone if other < value)
        equal = sum(1 for other in everyone if other == value)
        scores.append(norm.ppf((below + equal / 2) / len(everyone)))
    scores = np.clip(scores, -3.0, 3.0)
    over_rows = repeated(scores, weight)
    return (scores - over_rows.mean()) / over_rows.std()


def shrunken_means(levels, y, smoothing):
    """Return for every level its shrunken distance from the mean of all rows, on one scale.

    With smoothing=None the ratio of the variance within levels to that between them is estimated
    by equating the two sums of squares of a one-way layout with random effects to their
    expectations.
    """
    names = sorted(set(levels))
    n, mean = len(y), float(np.mean(y))
    rows = {
        name: [v for level, v in zip(levels, y, strict=True) if level == name] for name in names
    }
    if smoothing is None:
        within = sum(sum((v - np.mean(vs)) ** 2 for v in vs) for vs in rows.values())
        between = sum(len(vs) * (np.mean(vs) - mean) ** 2 for vs in rows.values())
        average = (n - sum(len(vs) ** 2 for vs in rows.values()) / n) / max(len(names) - 1, 1)
        if n == len(names) or len(names) == 1:
            smoothing = np.inf
        else:
            s = within / (n - len(names))
            t = (between / (len(names) - 1) - s) / average
            smoothing = s / t if t > 0 else np.inf
    effect = {
        name: 0.0
        if np.isinf(smoothing)
        else len(vs) / (len(vs) + smoothing) * (float(np.mean(vs)) - mean)
        for name, vs in rows.items()
    }
    spread = np.sqrt(np.mean([effect[level] ** 2 for level in levels]))
    scale = max(spread, 0.1 * float(np.std(y)))
    return {name: value / scale if scale > 0 else value for name, value in effect.items()}


def out_of_fold_encoding(levels, y, weight, fold, smoothing):
    """Encode every row by the rows of the other folds, one row at a time."""
    levels, y, weight, fold = map(np.asarray, (levels, y, weight, fold))
    encoded = []
    for i in range(len(y)):
        others = fold != fold[i]
        table = shrunken_means(
            repeated(levels[others], weight[others]).tolist(),
            repeated(y[others], weight[others]),
            smoothing,
        )
        encoded.append(table.get(levels[i], 0.0))
    return np.array(encoded)
