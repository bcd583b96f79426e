"""The dual model by its printed systems, in plain NumPy."""

import numpy as np


def rbf(X, Z, gamma):
    return np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def kkt_regression(K, y, C, weight=None):
    """Solve eq. (3.32) with I/C replaced by diag(1/(C s)); returns alpha, b."""
    n = len(y)
    s = np.ones(n) if weight is None else weight
    M = np.zeros((n + 1, n + 1))
    M[0, 1:] = M[1:, 0] = 1.0
    M[1:, 1:] = K + np.diag(1.0 / (C * s))
    solution = np.linalg.solve(M, np.r_[0.0, y])
    return solution[1:], solution[0]


def kkt_classification(K, y, C):
    """Solve eq. (3.5) for labels -1, +1; returns alpha, b of eq. (3.7)."""
    n = len(y)
    M = np.zeros((n + 1, n + 1))
    M[0, 1:] = M[1:, 0] = y
    M[1:, 1:] = np.outer(y, y) * K + np.eye(n) / C
    solution = np.linalg.solve(M, np.r_[0.0, np.ones(n)])
    return solution[1:], solution[0]


def refit_predictions(K, y, C, folds, weight=None):
    """Predict every fold by a model refitted without it; folds are (train, test) pairs."""
    out = []
    for train, test in folds:
        w = None if weight is None else weight[train]
        alpha, b = kkt_regression(K[np.ix_(train, train)], y[train], C, w)
        out.append(K[np.ix_(test, train)] @ alpha + b)
    return out


def l0_loop(Q, y, C, start, iterations, weight=None):
    """The plain loop over eq. (13) of Mall2014, nothing dropped on the way."""
    n, m = Q.shape
    s = np.ones(n) if weight is None else weight
    alpha = start.copy()
    b = 0.0
    for _ in range(iterations):
        lam = 1.0 / alpha**2
        M = np.zeros((m + 1, m + 1))
        M[:m, :m] = Q.T @ (s[:, None] * Q) + np.diag(lam) / C
        M[:m, m] = M[m, :m] = Q.T @ s
        M[m, m] = s.sum()
        solution = np.linalg.solve(M, np.r_[Q.T @ (s * y), s @ y])
        alpha, b = solution[:m], solution[m]
    return alpha, b
