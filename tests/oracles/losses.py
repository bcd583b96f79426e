"""A general differentiable loss: the conditions (3.52)-(3.53) of [Suykens2002], in plain NumPy."""

import numpy as np


def optimality(K, y, alpha, b, C, derivative, weight=None):
    """Return how far alpha_k = C s_k L'(y_k - sum_l alpha_l K_lk - b) and sum alpha = 0 are off."""
    s = np.ones(len(y)) if weight is None else weight
    error = y - K @ alpha - b
    return np.abs(alpha - C * s * derivative(error)).max() / C, abs(alpha.sum()) / C


def objective(w_squares, error, C, value):
    """Eq. (3.51)."""
    return 0.5 * w_squares + C * np.sum(value(error))


def log_cosh(error):
    """Return the derivative of log cosh."""
    return np.tanh(error)


def logistic(signs):
    """Return the derivative, in e = y - f, of log(1 + exp(-y f)) for y = 1 or -1."""
    return lambda error: signs / (1.0 + np.exp(1.0 - signs * error))


def pinball(quantile, width):
    """Return the derivative of the loss of a quantile, a parabola between -width and width."""

    def derivative(error):
        outside = np.where(error > 0, quantile, quantile - 1.0)
        return np.where(np.abs(error) < width, 0.5 * error / width + quantile - 0.5, outside)

    return derivative
