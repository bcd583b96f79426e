"""Exact models of several outputs by the bordered system, in plain NumPy."""

import numpy as np


def dense_solution(K, Y, noise):
    """Solve [0 1'; 1 K + diag(noise)] [b; alpha] = [0; Y]; returns alpha (n, k), b (k,)."""
    n = len(K)
    M = np.zeros((n + 1, n + 1))
    M[0, 1:] = M[1:, 0] = 1.0
    M[1:, 1:] = K + np.diag(noise)
    solution = np.linalg.solve(M, np.vstack([np.zeros(Y.shape[1]), Y]))
    return solution[1:], solution[0]
