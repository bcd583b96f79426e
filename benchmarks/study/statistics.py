"""Average accuracy, average rank, sign test and signed rank test over data sets.

These are the last columns of [Suykens2002, tables 3.3 and 3.4]: methods are compared by their mean
test accuracies on every data set, each set counting as one pair.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """The comparison of all methods; every array has one entry per method."""

    average_accuracy: Array
    average_rank: Array
    p_sign: Array
    p_wilcoxon: Array
    best: int


def average_ranks(accuracy: Array) -> Array:
    """Average rank of each method, rank 1 the highest accuracy, ties sharing their mean rank.

    Parameters
    ----------
    accuracy
        Shape (methods, sets).
    """
    return np.asarray(stats.rankdata(-accuracy, axis=0, method="average").mean(axis=1))


def sign_test(first: Array, second: Array) -> float:
    """Two-sided probability of the observed signs under equal medians; ties are left out."""
    wins, losses = int(np.sum(first > second)), int(np.sum(first < second))
    if wins + losses == 0:
        return 1.0
    return float(stats.binomtest(wins, wins + losses).pvalue)


def wilcoxon_test(first: Array, second: Array) -> float:
    """Two-sided probability of the Wilcoxon signed rank test; equal pairs are left out.

    The null distribution of the rank sum is enumerated exactly over all signs (ties share mean
    ranks), so at most 20 differing pairs are accepted.
    """
    difference = np.asarray(first) - np.asarray(second)
    difference = difference[difference != 0.0]
    n = len(difference)
    if n == 0:
        return 1.0
    if n > 20:
        raise ValueError(f"{n} differing pairs came; the enumeration of signs is for at most 20.")
    ranks = stats.rankdata(np.round(np.abs(difference), 10))
    signs = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    centre = ranks.sum() / 2
    null = np.abs(signs @ ranks - centre)
    observed = abs(ranks[difference > 0].sum() - centre)
    return float(np.mean(null >= observed - 1e-9))


def summarise(accuracy: Array) -> Summary:
    """Compare every method with the one of the highest average accuracy.

    Parameters
    ----------
    accuracy
        Mean test accuracy, shape (methods, sets), without gaps. Rounding beyond 1e-10 is ignored.
    """
    accuracy = np.round(accuracy, 10)
    average = accuracy.mean(axis=1)
    best = int(np.argmax(average))
    return Summary(
        average,
        average_ranks(accuracy),
        np.array([sign_test(row, accuracy[best]) for row in accuracy]),
        np.array([wilcoxon_test(row, accuracy[best]) for row in accuracy]),
        best,
    )
