"""The solve-the-equation plug-in bandwidth by double sums, De Brabanter et al. (2010), 4.2-4.3.

psi_r is the expectation of the r-th derivative of the density; mu_2 is the second moment of the
kernel. Signs follow from R(f^(s)) = (-1)^s psi_(2s).
"""

import numpy as np


def hermite(order, u):
    """Return the order-th derivative of the standard normal density at u."""
    polynomial = {
        0: np.ones_like(u),
        4: u**4 - 6 * u**2 + 3,
        6: u**6 - 15 * u**4 + 45 * u**2 - 15,
    }[order]
    return polynomial * np.exp(-0.5 * u**2) / np.sqrt(2 * np.pi)


def functional(x, order, bandwidth):
    """Estimate psi_order by the double sum of eq. (14)."""
    u = (x[:, None] - x[None, :]) / bandwidth
    return hermite(order, u).sum() / (x.size**2 * bandwidth ** (order + 1))


def scale(x):
    """Return the smaller of the standard deviation and the scaled interquartile range."""
    low, high = np.quantile(x, [0.25, 0.75])
    return min(x.std(), (high - low) / 1.349)


def plug_in_bandwidth(x):
    """Solve eq. (15) by bisection."""
    n, sigma = x.size, scale(x)
    zero = np.zeros(1)
    psi6 = -15 / (16 * np.sqrt(np.pi)) * sigma**-7
    psi8 = 105 / (32 * np.sqrt(np.pi)) * sigma**-9
    g1 = (-2 * hermite(4, zero)[0] / (psi6 * n)) ** (1 / 7)
    g2 = (-2 * hermite(6, zero)[0] / (psi8 * n)) ** (1 / 9)
    roughness = 1 / (2 * np.sqrt(np.pi))
    ratio = -2 * hermite(4, zero)[0] * functional(x, 4, g1) / (roughness * functional(x, 6, g2))

    def excess(h):
        g = ratio ** (1 / 7) * h ** (5 / 7)
        return h - (roughness / (functional(x, 4, g) * n)) ** 0.2

    low, high = 1e-3 * sigma, 2 * sigma
    assert excess(low) < 0 < excess(high)
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return 0.5 * (low + high)
