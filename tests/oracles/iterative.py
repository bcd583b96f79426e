"""The dual system and its iterative solvers as printed, in plain NumPy.

Suykens et al. (2002), chapter 3: the KKT system (3.32) and the Hestenes-Stiefel algorithm of
section 3.4.1; the quadratic problem of sequential minimal optimisation by its definition.
"""

import numpy as np


def rbf(X, Z, gamma):
    """exp(-gamma ||x - z||^2) from explicit differences."""
    X, Z = np.asarray(X, float), np.asarray(Z, float)
    return np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def kkt(K, C, weights, Y):
    """Solve [0 1'; 1 K + diag(1/(C s))] [b; alpha] = [0; y] for every column of Y, densely."""
    n = len(K)
    A = np.zeros((n + 1, n + 1))
    A[0, 1:] = A[1:, 0] = 1
    A[1:, 1:] = K + np.diag(1 / (C * np.asarray(weights, float)))
    solved = np.linalg.solve(A, np.vstack([np.zeros((1, Y.shape[1])), Y]))
    return solved[1:], solved[0]


def hestenes_stiefel(A, B, steps):
    """The printed algorithm: the iterates x_1 ... x_steps for one right-hand side."""
    x, r = np.zeros(len(B)), np.array(B, float)
    p, r_before = r, r
    iterates = []
    for i in range(1, steps + 1):
        if i > 1:
            beta = (r @ r) / (r_before @ r_before)
            p = r + beta * p
        step = (r @ r) / (p @ A @ p)
        x = x + step * p
        r_before, r = r, r - step * (A @ p)
        iterates.append(x)
    return iterates


def quadratic_form(A, B, x):
    """V(x) = 1/2 x'Ax - x'B."""
    return 0.5 * x @ A @ x - x @ B


def nystrom_inverse(K, index, delta):
    """(K[:, J] K[J, J]^-1 K[J, :] + delta I)^-1 by dense inverses."""
    columns = K[:, index]
    low_rank = columns @ np.linalg.inv(K[np.ix_(index, index)]) @ columns.T
    return np.linalg.inv(low_rank + delta * np.eye(len(K)))


def best_partner(H, F, i):
    """The row j that lowers the SMO objective most when moved against row i, and the decrease."""
    decreases = [
        (F[i] - F[j]) ** 2 / (2 * (H[i, i] + H[j, j] - 2 * H[i, j])) if j != i else 0.0
        for j in range(len(F))
    ]
    return int(np.argmax(decreases)), max(decreases)
