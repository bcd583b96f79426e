"""The reweighted systems of very sparse models as printed, in plain NumPy."""

import numpy as np


def nystrom(K_zz):
    """T of the Nystrom map, eq. (3): features are K(x, Z) T."""
    lam, U = np.linalg.eigh(K_zz)
    return U / np.sqrt(lam)


def primal(Q, y, C, K_zz, s):
    """Eq. (5) with weights; returns the coefficients T w of the prototypes, and b."""
    T = nystrom(K_zz)
    Phi = Q @ T
    m = Phi.shape[1]
    H = np.zeros((m + 1, m + 1))
    H[:m, :m] = Phi.T @ (s[:, None] * Phi) + np.eye(m) / C
    H[:m, m] = H[m, :m] = Phi.T @ s
    H[m, m] = s.sum()
    solution = np.linalg.solve(H, np.append(Phi.T @ (s * y), s @ y))
    return T @ solution[:m], solution[m]


def system_10(Q, y, C, lam, s):
    """Eqs. (10) and (13): one reweighted system, dense; returns coefficients and b."""
    m = Q.shape[1]
    H = np.zeros((m + 1, m + 1))
    H[:m, :m] = Q.T @ (s[:, None] * Q) + np.diag(lam) / C
    H[:m, m] = H[m, :m] = Q.T @ s
    H[m, m] = s.sum()
    solution = np.linalg.solve(H, np.append(Q.T @ (s * y), s @ y))
    return solution[:m], solution[m]


def loop(Q, y, C, start, iterations, s, threshold=1e-6):
    """Algorithms 3 and 4: lambda = 1 / beta^2 again and again; zeros leave.

    Solved for beta / start-of-the-step (a scaling of the columns), so that the printed matrix does
    not overflow when a coefficient tends to zero.
    """
    active = np.arange(Q.shape[1])
    beta = np.array(start, dtype=float)
    b = 0.0
    for _ in range(iterations):
        keep = np.abs(beta) > threshold * np.abs(beta).max()
        active, beta = active[keep], beta[keep]
        ratio, b = system_10(Q[:, active] * beta, y, C, np.ones(len(active)), s)
        beta = ratio * beta
    keep = np.abs(beta) > threshold * np.abs(beta).max()
    return active[keep], beta[keep], b


def surrogate(Q, y, C, beta, b, s):
    """What the reweighting descends: sum log abs(beta) + C/2 sum s e^2."""
    residual = y - Q @ beta - b
    return np.sum(np.log(np.abs(beta))) + 0.5 * C * np.sum(s * residual**2)


def dual(K, y, C, s):
    """Eq. (2) with weights: the dual model; returns alpha and b."""
    n = len(y)
    H = np.zeros((n + 1, n + 1))
    H[0, 1:] = H[1:, 0] = 1.0
    H[1:, 1:] = K + np.diag(1.0 / (C * s))
    solution = np.linalg.solve(H, np.append(0.0, y))
    return solution[1:], solution[0]


def primal_weights(Q, y, C, K_zz, s):
    """w of eq. (5): one for each eigenvector of the prototypes, largest eigenvalue first.

    An eigenvector has no sign: each is turned so that its largest entry is positive.
    """
    lam, U = np.linalg.eigh(K_zz)
    lam, U = lam[::-1], U[:, ::-1]
    U = U * np.sign(U[np.argmax(np.abs(U), axis=0), np.arange(len(lam))])
    Phi = Q @ (U / np.sqrt(lam))
    m = Phi.shape[1]
    H = np.zeros((m + 1, m + 1))
    H[:m, :m] = Phi.T @ (s[:, None] * Phi) + np.eye(m) / C
    H[:m, m] = H[m, :m] = Phi.T @ s
    H[m, m] = s.sum()
    return np.linalg.solve(H, np.append(Phi.T @ (s * y), s @ y))[:m]


def algorithms_3_and_4(Q, y, C, start, s):
    """The loop as printed: lambda <- beta first, then 1 / beta^2; section IV's absolute tolerances.

    Returns the indices with abs(beta) > 1e-6, their coefficients, b and the number of steps.
    """
    m = Q.shape[1]
    beta, lam = np.array(start, dtype=float), np.array(start, dtype=float)
    steps = 0
    while steps < 50:
        before, steps = beta, steps + 1
        beta, b = system_10(Q, y, C, lam, s)
        lam = 1.0 / np.maximum(beta**2, 1e-150)  # a coefficient of zero stays one
        if np.linalg.norm(beta - before) / m < 1e-4:
            break
    indices = np.flatnonzero(np.abs(beta) > 1e-6)
    return indices, beta[indices], b, steps
