"""NARX models of [Suykens2002, Section 3.5] by loops and dense solves."""

from __future__ import annotations

import numpy as np


def lag_rows(y, X=None, lags=1, exog_lags=0, differencing=0):
    """Return rows and targets of all times with enough history, unscaled, one time after another.

    The row of t: Delta y_{t-1}, ..., Delta y_{t-lags}, then x_t, ..., x_{t-exog_lags}.
    """
    y = np.asarray(y, dtype=float)
    difference = y
    for _ in range(differencing):
        difference = difference[1:] - difference[:-1]
    rows, targets = [], []
    for t in range(len(y)):
        i = t - differencing  # place in the differenced series
        if i < lags or (X is not None and t < exog_lags):
            continue
        row = [difference[i - lag] for lag in range(1, lags + 1)]
        if X is not None:
            for lag in range(exog_lags + 1):
                row.extend(X[t - lag])
        rows.append(row)
        targets.append(difference[i])
    return np.array(rows), np.array(targets)


def rbf(A, B, gamma):
    return np.exp(-gamma * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


def solve(rows, targets, C, gamma):
    """Solve the bordered system (3.32) densely; return (alpha, b)."""
    n = len(targets)
    M = np.zeros((n + 1, n + 1))
    M[0, 1:] = M[1:, 0] = 1.0
    M[1:, 1:] = rbf(rows, rows, gamma) + np.eye(n) / C
    solution = np.linalg.solve(M, np.concatenate([[0.0], targets]))
    return solution[1:], solution[0]


def free_run(rows, alpha, b, gamma, history, steps, exog=None):
    """Run on predictions, one at a time; ``history`` has the newest value first."""
    past, out = list(history), []
    for k in range(steps):
        row = np.array(past + ([] if exog is None else list(exog[k])))[None]
        value = float((rbf(row, rows, gamma) @ alpha)[0] + b)
        out.append(value)
        past = [value, *past[:-1]]
    return np.array(out)


def free_run_loss(rows, targets, C, gamma, history, truth, left_out, sums=0, exog=None):
    """Train without some rows, run freely and return the mean squared error of the levels."""
    kept = np.setdiff1d(np.arange(len(targets)), left_out)
    alpha, b = solve(rows[kept], targets[kept], C, gamma)
    errors = free_run(rows[kept], alpha, b, gamma, history, len(truth), exog) - truth
    for _ in range(sums):
        errors = np.cumsum(errors)
    return float(np.mean(errors**2))
