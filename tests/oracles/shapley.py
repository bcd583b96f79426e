"""Shapley values by their definition: all coalitions, one by one, in plain NumPy."""

from itertools import combinations
from math import factorial

import numpy as np


def _masks(p):
    for size in range(p + 1):
        for chosen in combinations(range(p), size):
            yield frozenset(chosen)


def coalition_values(f, x, background, groups):
    """Return the mean output of f over background rows for every set of present groups."""
    out = {}
    for chosen in _masks(len(groups)):
        rows = background.copy()
        for g in chosen:
            rows[:, groups[g]] = x[groups[g]]
        out[chosen] = np.asarray(f(rows), dtype=float).mean(axis=0)
    return out


def shapley(f, X, background, groups=None):
    """Return the values (n, p, k) of f: rows (n, d) -> (n, k), by the sum over all coalitions."""
    X, background = np.asarray(X, float), np.asarray(background, float)
    groups = [[i] for i in range(X.shape[1])] if groups is None else groups
    p, out = len(groups), []
    for x in X:
        v = coalition_values(f, x, background, groups)
        phi = []
        for i in range(p):
            total = 0.0
            for chosen in v:
                if i not in chosen:
                    s = len(chosen)
                    weight = factorial(s) * factorial(p - s - 1) / factorial(p)
                    total = total + weight * (v[chosen | {i}] - v[chosen])
            phi.append(total)
        out.append(phi)
    return np.array(out)


def interactions(f, X, background):
    """Return the interaction index (n, p, p, k) of all pairs; zero on the diagonal."""
    p = X.shape[1]
    groups, out = [[i] for i in range(p)], []
    for x in X:
        v = coalition_values(f, x, background, groups)
        k = len(v[frozenset()])
        table = np.zeros((p, p, k))
        for i in range(p):
            for j in range(p):
                if i == j:
                    continue
                for chosen in v:
                    if i in chosen or j in chosen:
                        continue
                    s = len(chosen)
                    weight = factorial(s) * factorial(p - s - 2) / factorial(p - 1)
                    step = v[chosen | {i, j}] - v[chosen | {i}] - v[chosen | {j}] + v[chosen]
                    table[i, j] += weight * step
        out.append(table)
    return np.array(out)
