"""Selection of prototypes, point by point: De Brabanter et al. (2010), eq. (12) and algorithm 1."""

import numpy as np


def renyi_entropy(Z, h):
    """Return the quadratic Renyi entropy by the double sum, normalised as the integral of f^2."""
    m, d = Z.shape
    total = 0.0
    for k in range(m):
        for j in range(m):
            u = (Z[k] - Z[j]) / (h * np.sqrt(2))
            total += np.exp(-0.5 * u @ u) / (2 * np.pi) ** (d / 2)
    return -np.log(total / (m**2 * np.prod(h) * 2 ** (d / 2)))


def renyi_entropy_by_quadrature(z, h, points=20001):
    """Return -log of the integral of the squared density estimate, one dimension."""
    grid = np.linspace(z.min() - 10 * h, z.max() + 10 * h, points)
    u = (grid[:, None] - z[None, :]) / h
    density = np.exp(-0.5 * u**2).sum(axis=1) / (z.size * h * np.sqrt(2 * np.pi))
    return -np.log(np.sum(density**2) * (grid[1] - grid[0]))


def entropy_by_quadrature(Z, h, order, points=401):
    """Return eq. (9) (order 1) or (10) of the density (11), on a grid in one or two dimensions."""
    ends = [(z.min() - 9 * w, z.max() + 9 * w) for z, w in zip(Z.T, h, strict=True)]
    axes = [np.linspace(low, high, points) for low, high in ends]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, Z.shape[1])
    density = np.zeros(len(grid))
    for z in Z:
        u = (grid - z) / h
        density += np.exp(-0.5 * (u**2).sum(axis=1)) / np.prod(np.sqrt(2 * np.pi) * h)
    density /= len(Z)
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    if order == 1:
        logs = np.log(np.where(density > 0, density, 1.0))
        return -np.sum(density * logs) * cell
    return np.log(np.sum(density**order) * cell) / (1 - order)


def active_selection(X, m, h, trials, rng):
    """Run algorithm 1 as printed for a number of trials."""
    chosen = rng.choice(X.shape[0], m, replace=False)
    entropy = renyi_entropy(X[chosen], h)
    for _ in range(trials):
        trial = chosen.copy()
        trial[rng.integers(m)] = rng.integers(X.shape[0])
        if np.unique(trial).size == m and renyi_entropy(X[trial], h) > entropy:
            chosen, entropy = trial, renyi_entropy(X[trial], h)
    return chosen, entropy


def probabilities_of_two_pivots(K, weight):
    """Return the probability of every pair of pivots drawn one by one."""
    n = K.shape[0]
    first = weight * np.diag(K)
    probability = np.zeros((n, n))
    for s in range(n):
        residual = np.diag(K) - K[:, s] ** 2 / K[s, s]
        residual[s] = 0.0
        second = weight * residual
        probability[s] = first[s] / first.sum() * second / second.sum()
    return probability


def residual_trace(K, pivots):
    """Return the trace of K less its Nystrom approximation from the pivots."""
    part = K[:, pivots]
    return np.trace(K - part @ np.linalg.pinv(K[np.ix_(pivots, pivots)], rcond=1e-12) @ part.T)


def rule_of_thumb(X):
    """Return the best bandwidths of a Gaussian product kernel for independent normal columns.

    With h_j = a s_j the asymptotic error is R(K) / (n a^d) + a^4 / 4 times the integral of
    (sum_j f_jj)^2, in units of the deviations; its derivative in a vanishes at
    a^(d+4) = d R(K) / (n times that integral).
    """
    n, d = X.shape
    roughness = (4 * np.pi) ** (-d / 2)  # of the product kernel, and of the normal density
    # E over the squared density: (sum_j (u_j^2 - 1))^2 with u ~ N(0, 1/2), d columns
    second = d * 0.75 + d * (d - 1) * 0.25
    a = (d * roughness / (n * roughness * second)) ** (1 / (d + 4))
    return a * X.std(axis=0)


def root_size(k, n):
    """Return M = ceil(k sqrt(N)), section IV-A of Mall and Suykens (2014)."""
    m = 0
    while m * m < k * k * n:
        m += 1
    return m
