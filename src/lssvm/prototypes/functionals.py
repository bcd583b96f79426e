"""Density-derivative functionals psi_r of a univariate sample, in linear time.

The plug-in bandwidth needs psi_r = E f^(r)(X) for r = 4 and 6. The kernel estimate is a double sum
over all pairs of points [DeBrabanter2010, eq. (14)]; here it is a single sum over frequencies.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.fft import next_fast_len, rfft

from lssvm._core.errors import InvalidInputError

Array = npt.NDArray[np.float64]

_REACH = 9.0  # in bandwidths: the Gaussian and its derivatives are negligible beyond
_MAX_CELLS = 2**22


class DensityFunctionals:
    r"""The functionals psi_r of one weighted sample, for any even r and any bandwidth.

    For a Gaussian kernel phi and weights p that sum to one

    .. math:: \hat\psi_r(g) = g^{-(r+1)} \sum_{ij} p_i p_j \phi^{(r)}((x_i - x_j)/g)
              = \frac{(-1)^{r/2}}{\pi} \int_0^\infty \omega^r |e(\omega)|^2
                e^{-g^2 \omega^2 / 2} d\omega

    where e is the empirical characteristic function. All terms of the integral have one sign, so
    nothing cancels. The points are spread on a grid by cubic B-splines, one FFT gives e on the
    frequencies that matter, and every further bandwidth costs as many operations as there are
    frequencies (some hundreds).

    Parameters
    ----------
    values : ndarray of shape (u,)
        Distinct points in increasing order.
    weights : ndarray of shape (u,)
        Their probabilities, positive, with sum one.
    tol : float
        Bound on the relative error of every returned value.

    Notes
    -----
    [DeBrabanter2010, eq. (14)], evaluated there by the improved fast Gauss transform. The error
    is bounded after the fact by adding up three terms: aliasing of the grid (at most the sum of
    |theta / (theta + 2 pi k)|^4 over k != 0, with theta the frequency times the cell width, since
    |e| <= 1), the frequencies left out, and the periodic images. Gaps between neighbours of more
    than 9 bandwidths are shortened to 9, so outliers do not stretch the grid. While the bound
    exceeds ``tol``, the cells are halved.

    Time O(u + G log G) per grid, memory O(u + G), with G about 24 cells per smallest bandwidth.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.prototypes.functionals import DensityFunctionals
    >>> psi = DensityFunctionals(np.array([0.0, 1.0]), np.array([0.5, 0.5]), tol=1e-6)
    >>> phi = lambda u: np.exp(-0.5 * u**2) / np.sqrt(2 * np.pi)
    >>> direct = 0.5 * 3 * phi(0.0) + 0.5 * (1 - 6 + 3) * phi(1.0)
    >>> bool(abs(psi(4, 1.0) - direct) < 1e-6 * direct)
    True
    """

    def __init__(self, values: Array, weights: Array, tol: float) -> None:
        self._values = values - values[0]
        self._weights = weights
        self._tol = tol
        self._cells = 8  # per smallest bandwidth
        self._shortest = math.inf  # the bandwidths the present grid serves
        self._longest = 0.0

    def __call__(self, order: int, bandwidth: float) -> float:
        """Return psi of this order (even, at least 2) at this bandwidth."""
        if not self._shortest <= bandwidth <= self._longest:
            self._shortest = min(self._shortest, bandwidth / 3.0)
            self._longest = max(self._longest, bandwidth * 2.0)
            self._build()
        while True:
            value, error = self._evaluate(order, bandwidth)
            if error <= self._tol * value:
                return value if order % 4 == 0 else -value
            self._cells *= 2
            self._build()

    def _evaluate(self, order: int, g: float) -> tuple[float, float]:
        """Return |psi| and a bound on its error."""
        density = self._omega**order * np.exp(-0.5 * (g * self._omega) ** 2)
        density *= self._omega[0] / math.pi  # the spacing of the frequencies
        value = float(density @ self._power)  # [DeBrabanter2010, eq. (14)]
        aliased = float(density @ self._alias)
        top = g * float(self._omega[-1])
        left_out = top ** (order - 1) * math.exp(-0.5 * top**2) / (1.0 - (order - 1) / top**2)
        far = _REACH * self._longest / g
        images = 4.5 * far**order * math.exp(-0.5 * far**2) / math.sqrt(2.0 * math.pi)
        return value, aliased + (left_out / math.pi + images) * g ** -(order + 1)

    def _build(self) -> None:
        """Spread the points on a grid and transform."""
        reach = _REACH * self._longest
        steps = np.minimum(np.diff(self._values, prepend=0.0), reach)
        points = np.cumsum(steps)
        cell = self._shortest / self._cells
        cells = (points[-1] + reach) / cell
        if not cells < _MAX_CELLS:
            raise InvalidInputError(
                f"A grid of {cells:.2g} cells is needed for the relative accuracy {self._tol:.1e} "
                f"at bandwidth {self._shortest:.3g}, at most {_MAX_CELLS} are used; rescale or "
                "clip the column, or ask for less accuracy."
            )
        size = next_fast_len(max(math.ceil(cells), 32), real=True)
        grid = _spread(points / cell, self._weights, size)
        top = min(math.ceil(_REACH * size / (2.0 * math.pi * self._cells)), size // 2)
        theta = np.arange(1, top + 1) * (2.0 * math.pi / size)
        half = 0.5 * theta
        sine = np.sin(half)
        ratio = (half / sine) ** 2
        modulus = np.abs(rfft(grid)[1 : top + 1]) * ratio**2
        # sum of (half / (half + pi k))^4 over all integers k, less the term k = 0
        fold = np.maximum(ratio**2 - (2.0 / 3.0) * half**2 * ratio - 1.0, 0.0) + 1e-14
        self._omega = theta / cell
        self._power = modulus**2
        self._alias = fold * (2.0 * modulus + fold)


def _spread(position: Array, weight: Array, size: int) -> Array:
    """Spread weights at fractional grid positions by cubic B-splines, periodically."""
    left = position.astype(np.int64)
    f = position - left
    square, cube = f * f, f * f * f
    shares = (
        (1.0 - f) ** 3,
        4.0 - 6.0 * square + 3.0 * cube,
        1.0 + 3.0 * (f + square - cube),
        cube,
    )
    grid = np.zeros(size)
    for offset, share in enumerate(shares):
        counts = np.bincount(left + offset, weight * share / 6.0, minlength=size)
        grid += counts[:size]
        grid[: counts.size - size] += counts[size:]
    return grid
