"""Pruning of the support value spectrum by refits, in plain NumPy [Suykens2002, section 3.7]."""

from math import comb

import numpy as np

from tests.oracles.dual import kkt_regression


def sign_test(before, after):
    """P(at least as many of the changed rows got worse), at chance one half (McNemar)."""
    worse, better = int(np.sum(after > before)), int(np.sum(after < before))
    changed = worse + better
    return sum(comb(changed, k) for k in range(worse, changed + 1)) / 2.0**changed


def prune_loop(K, y, C, folds, level, step, previous, signed=False):
    """Drop the rows of the smallest support values until the errors of the folds rise.

    `y` holds -1 and +1, `folds` the test rows of each fold. A fold's model has the rows that are
    left outside it, and is tested on all its rows. Returns the rows kept, and of every step the
    number of rows and the p-value. ``signed`` sorts by the alpha of eq. (3.5) with its sign.
    """

    def errors(rows):
        out = np.empty(len(y))
        for test in folds:
            train = np.setdiff1d(rows, test)
            alpha, b = kkt_regression(K[np.ix_(train, train)], y[train], C)
            out[test] = (K[np.ix_(test, train)] @ alpha + b > 0) != (y[test] > 0)
        return out

    kept = rows = np.arange(len(y))
    reference, steps = errors(rows), []
    while len(rows) > 2:
        alpha, _ = kkt_regression(K[np.ix_(rows, rows)], y[rows], C)
        gone = max(1, int(step * len(rows) + 1e-9))
        value = alpha * y[rows] if signed else np.abs(alpha)
        rows = np.sort(rows[np.argsort(value, kind="stable")[gone:]])
        found = errors(rows)
        p_value = sign_test(reference, found)
        steps.append((len(rows), p_value))
        if p_value < level:
            break
        kept = rows
        if previous:
            reference = found
    return kept, steps
