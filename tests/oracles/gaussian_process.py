"""Gaussian processes, calibration and conformal quantiles by their definitions, in plain NumPy."""

import numpy as np


def predict(K, k_star, k_star_star, y, C):
    """Return mean and covariance by eq. (3.60), with C_N = K + I/C; K (n, n), k_star (t, n)."""
    C_N = K + np.eye(len(K)) / C
    inverse = np.linalg.inv(C_N)
    return k_star @ inverse @ y, k_star_star - k_star @ inverse @ k_star.T


def predict_with_bias(K, k_star, k_star_star, y, C):
    """Return mean and covariance from the bordered matrix: the bias has a flat prior."""
    n, t = len(K), len(k_star)
    bordered = np.zeros((n + 1, n + 1))
    bordered[0, 1:] = bordered[1:, 0] = 1.0
    bordered[1:, 1:] = K + np.eye(n) / C
    inverse = np.linalg.inv(bordered)
    v = np.column_stack([np.ones(t), k_star])
    return v @ inverse @ np.r_[0.0, y], k_star_star - v @ inverse @ v.T


def restricted_evidence(K, y, C):
    """Return the log density of the contrasts A y, A (n - 1, n) orthonormal and A 1 = 0."""
    n = len(y)
    basis = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, :-1]]))[0][:, 1:].T
    H, z = basis @ (K + np.eye(n) / C) @ basis.T, basis @ y
    scale = z @ np.linalg.solve(H, z) / (n - 1)
    return gaussian_log_density(z, scale * H), scale


def evidence(K, y, C):
    """Return the log density of y with the best scale, and that scale."""
    H = K + np.eye(len(y)) / C
    scale = y @ np.linalg.solve(H, y) / len(y)
    return gaussian_log_density(y, scale * H), scale


def gaussian_log_density(y, covariance):
    sign, log_det = np.linalg.slogdet(covariance)
    assert sign > 0
    return -0.5 * (len(y) * np.log(2 * np.pi) + log_det + y @ np.linalg.solve(covariance, y))


def platt_loss(slope, offset, scores, positive, weight):
    """Return the cross-entropy to Platt's smoothed targets."""
    plus, minus = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (plus + 1) / (plus + 2), 1 / (minus + 2))
    p = 1 / (1 + np.exp(-(slope * scores + offset)))
    return -(weight * (target * np.log(p) + (1 - target) * np.log(1 - p))).sum()


def coupling_loss(p, pairs):
    """Return the sum over pairs of (r_ji p_i - r_ij p_j)^2 for p (K,), pairs (K, K)."""
    K = len(p)
    return sum(
        (pairs[j, i] * p[i] - pairs[i, j] * p[j]) ** 2 for i in range(K) for j in range(K) if i != j
    )


def with_trend(F, F_new, R, R_new, S, expectation, y, C):
    """Condition the trend coefficients and the stationary part on y, each written out.

    Z_t = sum_i a_i f_i(t) + X_t, eq. (3.67) of [Suykens2002], observed with noise of variance 1/C:
    a ~ N(expectation, S) and X ~ N(0, R) are jointly Gaussian with y. Returns the predictive means
    of Z at the new rows and of a.
    """
    n, t, q = len(F), len(F_new), len(S)
    joint = np.zeros((q + n + t, q + n + t))  # of a, X at the data, X at the new rows
    joint[:q, :q] = S
    joint[q : q + n, q : q + n] = R
    joint[q + n :, q : q + n], joint[q : q + n, q + n :] = R_new, R_new.T
    see = np.column_stack([F, np.eye(n), np.zeros((n, t))])  # y = see (a, X, X_new) + noise
    gain = joint @ see.T @ np.linalg.inv(see @ joint @ see.T + np.eye(n) / C)
    found = gain @ (y - F @ expectation)
    a = expectation + found[:q]
    return F_new @ a + found[q + n :], a
