"""The multilevel circulant approximation by its printed equations, in plain NumPy."""

import itertools

import numpy as np


def lattice_kernel(gamma, spacing, steps):
    """Eq. (12) for the RBF kernel: k of the length of a step on the lattice."""
    r2 = sum((j * h) ** 2 for j, h in zip(steps, spacing, strict=True))
    return np.exp(-gamma * r2)


def first_row_set(gamma, spacing, shape):
    """Eq. (13) as printed: the sum of t over the set D_j, in which j = n - j stands once."""
    u = np.empty(shape)
    for j in itertools.product(*map(range, shape)):
        sides = [{0} if js == 0 else {js, ns - js} for js, ns in zip(j, shape, strict=True)]
        u[j] = sum(lattice_kernel(gamma, spacing, steps) for steps in itertools.product(*sides))
    return u


def first_row_sum(gamma, spacing, shape):
    """The periodic sum: both ways round, also where they are equally long (j = n/2)."""
    u = np.empty(shape)
    for j in itertools.product(*map(range, shape)):
        sides = [(0,) if js == 0 else (js, ns - js) for js, ns in zip(j, shape, strict=True)]
        u[j] = sum(lattice_kernel(gamma, spacing, steps) for steps in itertools.product(*sides))
    return u


def lattice_gram(gamma, spacing, shape):
    """The kernel matrix of the points (j_s h_s), (N, N)."""
    places = list(itertools.product(*map(range, shape)))
    differences = [[np.subtract(a, b) for b in places] for a in places]
    return np.array([[lattice_kernel(gamma, spacing, d) for d in row] for row in differences])


def circulant(row):
    """Eq. (14): the matrix with entries a_{(l - j) mod n}, (N, N)."""
    shape = row.shape
    places = list(itertools.product(*map(range, shape)))
    matrix = np.empty((len(places), len(places)))
    for a, j in enumerate(places):
        for b, i in enumerate(places):
            matrix[a, b] = row[tuple((y - x) % n for x, y, n in zip(j, i, shape, strict=True))]
    return matrix


def nearest_circulant(matrix, shape):
    """First row of the circulant matrix nearest in the Frobenius norm: means over equal steps."""
    places = list(itertools.product(*map(range, shape)))
    total, count = np.zeros(shape), np.zeros(shape)
    for a, j in enumerate(places):
        for b, i in enumerate(places):
            step = tuple((y - x) % n for x, y, n in zip(j, i, shape, strict=True))
            total[step] += matrix[a, b]
            count[step] += 1
    return total / count


def eigenvalues(row):
    """Lemma 1, by its double sum."""
    shape = row.shape
    places = np.array(list(itertools.product(*map(range, shape))), dtype=float)
    phase = (places / np.array(shape)) @ places.T
    return (np.exp(2j * np.pi * phase) @ row.ravel()).reshape(shape)


def bordered_solution(H, Y):
    """Eq. (5), dense: alpha (N, k) and b (k,)."""
    n = len(H)
    M = np.zeros((n + 1, n + 1))
    M[:n, :n], M[:n, n], M[n, :n] = H, 1.0, 1.0
    solution = np.linalg.solve(M, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return solution[:n], solution[n]


def expected_risk(K, y, mu, variance):
    """Eq. (29): M(K) + V(K)."""
    n = len(y)
    lam = np.linalg.eigvalsh(K)
    M = mu / n * y @ np.linalg.solve(K + mu * np.eye(n), y)
    return M + mu * variance / n * np.sum(1.0 / (lam + mu))


def regularised_risk(K, y, mu):
    """Eq. (27): the minimum over f = K alpha of the mean squared error plus the norm's share."""
    n = len(y)
    alpha = np.linalg.solve(K + mu * np.eye(n), y)
    return (np.sum((K @ alpha - y) ** 2) + mu * alpha @ K @ alpha) / n


def gp_evidence(K, y, C, bias, scale):
    """Log density of y under y = f + b + e, f ~ N(0, scale K), e ~ N(0, scale/C), b flat."""
    n = len(y)
    S = scale * (K + np.eye(n) / C)
    inverse = np.linalg.inv(S)
    one = np.ones(n)
    value = -0.5 * np.linalg.slogdet(S)[1] - 0.5 * n * np.log(2 * np.pi)
    if not bias:
        return value - 0.5 * y @ inverse @ y
    precision = one @ inverse @ one
    b = one @ inverse @ y / precision
    r = y - b
    # the integral over b of the Gaussian in b
    return value - 0.5 * r @ inverse @ r + 0.5 * np.log(2 * np.pi / precision)


def hat_matrix(K, C, bias):
    """The matrix from targets to fitted values."""
    n = len(K)
    H = np.linalg.inv(K + np.eye(n) / C)
    G = H - np.outer(H.sum(1), H.sum(0)) / H.sum() if bias else H
    return np.eye(n) - G / C


def gcv(K, y, C, bias):
    """Generalised cross-validation: n |y - Sy|^2 / tr(I - S)^2."""
    S = hat_matrix(K, C, bias)
    n = len(y)
    return n * np.sum((y - S @ y) ** 2) / np.trace(np.eye(n) - S) ** 2


def complexity(name, K, y, C, bias, noise=None):
    """Akaike's and Schwarz's criterion over n, and Mallows' Cp, of y = Sy + e."""
    S = hat_matrix(K, C, bias)
    n, p = len(y), np.trace(S)
    mean = np.sum((y - S @ y) ** 2) / n
    return {
        "aic": np.log(mean) + 2 * p / n,
        "bic": np.log(mean) + np.log(n) * p / n,
        "cp": None if noise is None else mean + 2 * noise * p / n,
    }[name]
