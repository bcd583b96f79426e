"""[Jiao2007] as printed, by dense solves: algorithm 1 and the losses (36) and (37).

Deviations that the paper itself asks for: step 7 gets its -y, and 1/(2 gamma) is called ridge.
"""

import numpy as np


def bordered_solve(K, y, ridge, P, bias=True):
    """Solve the system of (13) and (16) on the rows P: returns b, alpha_P, the inverse R."""
    n = len(P)
    H = K[np.ix_(P, P)] + np.diag(ridge[P])
    if not bias:
        R = np.linalg.inv(H)
        return 0.0, R @ y[P], R
    M = np.zeros((n + 1, n + 1))
    M[0, 1:] = M[1:, 0] = 1.0
    M[1:, 1:] = H
    R = np.linalg.inv(M)
    solution = np.linalg.solve(M, np.r_[0.0, y[P]])
    return solution[0], solution[1:], R


def fsals_states(K, y, ridge, epsilon, prefit=False, bias=True, max_support=None):
    """Algorithm 1: list of dicts, one per iteration."""
    n = len(y)
    P, Q = [], list(range(n))
    b, alpha = 0.0, np.zeros(0)
    r = -y.astype(float)
    states = []
    while Q and np.max(np.abs(r[Q])) > epsilon and len(P) != max_support:
        gain = []
        for i in Q:
            curvature = K[i, i] + ridge[i]
            if prefit and P:  # (23)
                _, _, R = bordered_solve(K, y, ridge, P, bias)
                k = K[P, i]
                k = np.r_[1.0, k] if bias else k
                curvature -= k @ R @ k
            gain.append(r[i] ** 2 / (2.0 * curvature))  # (30)
        s = Q[int(np.argmax(gain))]
        P.append(s)
        Q.remove(s)
        b, alpha, _ = bordered_solve(K, y, ridge, P, bias)
        r = K[:, P] @ alpha + b - y
        objective = 0.5 * alpha @ (K[np.ix_(P, P)] + np.diag(ridge[P])) @ alpha - alpha @ y[P]
        states.append(
            {"P": list(P), "b": b, "alpha": alpha, "r": r.copy(), "f": objective, "gain": max(gain)}
        )
    return states


def pursuit_states(K, y, C, criterion, steps, prefit=False, bias=False, weight=None):
    """Greedy minimisation of (36) "kmp" or (37) "sggp", 1/gamma being 1/C."""
    n = len(y)
    s = np.ones(n) if weight is None else weight
    centre = np.eye(n) - np.outer(np.ones(n), s) / s.sum() if bias else np.eye(n)
    Kc, yc = centre @ K, centre @ y
    D = np.eye(n) if criterion == "kmp" else K
    S = Kc.T @ (s[:, None] * Kc) + D / C
    t = Kc.T @ (s * yc)
    P, states = [], []
    a = np.zeros(0)
    for _ in range(steps):
        Q = [i for i in range(n) if i not in P]
        gain = []
        for i in Q:
            gradient = S[i, P] @ a - t[i]
            curvature = S[i, i]
            if prefit and P:
                curvature -= S[i, P] @ np.linalg.solve(S[np.ix_(P, P)], S[P, i])
            gain.append(gradient**2 / (2.0 * curvature))
        P.append(Q[int(np.argmax(gain))])
        a = np.linalg.solve(S[np.ix_(P, P)], t[P])
        b = (s @ y - s @ K[:, P] @ a) / s.sum() if bias else 0.0
        states.append(
            {"P": list(P), "b": b, "alpha": a, "f": 0.5 * a @ S[np.ix_(P, P)] @ a - t[P] @ a}
        )
    return states


def leave_one_out(K, y, ridge, P):
    """Predict every row without it, by refits on the given basis rows P."""
    out = np.empty(len(y))
    for i in range(len(y)):
        rest = [p for p in P if p != i]
        b, alpha, _ = bordered_solve(K, y, ridge, rest)
        out[i] = K[i, rest] @ alpha + b
    return out


def cross_validated(X, y, gamma, C, folds, epsilon, grown_at=None, size=None):
    """Share of rows that algorithm 1 classifies right, grown anew in every fold.

    ``size`` is the most functions, ``grown_at`` is the C of the growth where the coefficients are
    solved at another one.
    [Jiao2007, section VII-C]: all free parameters by tenfold cross-validation.
    """
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    K, right = np.exp(-gamma * squares), 0
    for train, test in folds:
        k, t = K[np.ix_(train, train)], y[train]
        grow = np.full(len(train), 1.0 / (grown_at or C))
        P = fsals_states(k, t, grow, epsilon, max_support=size)[-1]["P"]
        b, alpha, _ = bordered_solve(k, t, np.full(len(train), 1.0 / C), P)
        right += np.sum((K[np.ix_(test, train[P])] @ alpha + b > 0) == (y[test] > 0))
    return right / len(y)
