"""The solve-the-equation plug-in bandwidth, one per column.

It needs the density-derivative functionals psi_r = E f^(r)(X) for r = 4 and 6. Their kernel
estimate is a double sum over all pairs of points [DeBrabanter2010, eq. (14)]; here it is a single
sum over frequencies, in linear time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.fft import next_fast_len, rfft

from lssvm._core.arrays import BoolArray, FloatArray, check_weight
from lssvm._core.errors import InvalidInputError, not_usable
from lssvm._core.random import RandomState, as_generator
from lssvm.prototypes.selection import as_rows, random_order

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

    [DeBrabanter2010, eq. (14)], evaluated there by the improved fast Gauss transform. The error
    is bounded after the fact by adding up three terms: aliasing of the grid (at most the sum of
    |theta / (theta + 2 pi k)|^4 over k != 0, with theta the frequency times the cell width, since
    |e| <= 1), the frequencies left out, and the periodic images. Gaps between neighbours of more
    than 9 bandwidths are shortened to 9, so outliers do not stretch the grid. While the bound
    exceeds ``tol``, the cells are halved.

    Time O(u + G log G) per grid, memory O(u + G), with G about 24 cells per smallest bandwidth.
    """

    def __init__(self, values: FloatArray, weights: FloatArray, tol: float) -> None:
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


def _spread(position: FloatArray, weight: FloatArray, size: int) -> FloatArray:
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


_LARGE = 64  # binary exponents up to which columns are taken as they are
_CONSTANT = "the column is constant"
_FEW_VALUES = 10
_HEAVY_TIE = 0.05
_MAX_STEPS = 100


@dataclass(frozen=True, eq=False)
class Bandwidth:
    """Bandwidths of a product kernel and where each comes from.

    Attributes
    ----------
    value : ndarray of shape (d,)
        Positive. 1 for a constant column.
    method : tuple of d str
        ``"plug-in"``, ``"normal-reference"`` or ``"rule-of-thumb"``, or ``"given"`` where a caller
        gave the number.
    reason : tuple of d str
        Why a column fell back on the normal reference; empty where it did not.
    """

    value: FloatArray
    method: tuple[str, ...]
    reason: tuple[str, ...]

    @property
    def constant(self) -> BoolArray:
        """Which columns are constant, shape (d,)."""
        return np.array([reason == _CONSTANT for reason in self.reason])


@dataclass(frozen=True, eq=False)
class _Column:
    """The distinct values of a column in increasing order, their probabilities and the count."""

    values: FloatArray
    weights: FloatArray
    count: float

    @property
    def deviation(self) -> float:
        mean = float(self.weights @ self.values)
        return math.sqrt(float(self.weights @ (self.values - mean) ** 2))

    @property
    def scale(self) -> float:
        """The smaller of the standard deviation and the scaled interquartile range."""
        iqr = self._quantile(0.75) - self._quantile(0.25)
        deviation = self.deviation
        return min(deviation, iqr / 1.349) if iqr > 0.0 else deviation

    @property
    def spacing(self) -> float:
        """The median distance from a draw to the nearest other value."""
        gaps = np.diff(self.values)
        nearest = np.minimum(np.append(gaps, np.inf), np.insert(gaps, 0, np.inf))
        order = np.argsort(nearest)
        half = int(np.searchsorted(np.cumsum(self.weights[order]), 0.5))
        return float(nearest[order[min(half, order.size - 1)]])

    def _quantile(self, level: float) -> float:
        """Interpolate between the order statistics of the sample with its repetitions."""
        position = max(level * (self.count - 1.0), 0.0)
        upto = np.cumsum(self.weights) * self.count
        upto[-1] = np.inf
        # a repetition count that is off by rounding must not move to the next value
        ranks = np.array([math.floor(position), math.floor(position) + 1.0]) + 1e-6
        lower, upper = np.take(self.values, np.searchsorted(upto, ranks))
        return float(lower + (position - math.floor(position)) * (upper - lower))


def plug_in_bandwidth(
    X: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    tol: float = 1e-3,
    max_rows: int | None = None,
    random_state: RandomState = None,
) -> Bandwidth:
    r"""Choose the bandwidth of a Gaussian kernel density estimate for every column.

    The bandwidth h that minimises the asymptotic mean integrated squared error solves

    .. math:: h = \left(\frac{R(\kappa)}{\mu_2(\kappa)^2 \hat\psi_4(\gamma(h)) n}\right)^{1/5},
       \qquad \gamma(h) = \left(\frac{-2 \kappa^{(4)}(0) \mu_2(\kappa) \hat\psi_4(g_1)}
                                     {R(\kappa) \hat\psi_6(g_2)}\right)^{1/7} h^{5/7}

    with psi_r = E f^(r)(X), the pilot bandwidths g_1 and g_2 from a normal density of the same
    scale, and for the Gaussian kernel R = 1/(2 sqrt(pi)), mu_2 = 1,
    kappa^(4)(0) = 3/sqrt(2 pi), kappa^(6)(0) = -15/sqrt(2 pi).

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows, finite.
    sample_weight : array-like of shape (n,), optional
        How often each row counts. A weight of 2 equals the row twice, so the *sum* of the weights
        is the sample size.
    tol : float, default=1e-3
        Relative accuracy of every functional; the bandwidth itself is about as accurate.
    max_rows : int, optional
        Use a random sample of so many rows and scale the result to the full sample size with the
        rate n^(-1/5). None uses all rows.
    random_state : int, Generator, RandomState or None
        Draws that sample; nothing else is random.

    Returns
    -------
    Bandwidth

    Notes
    -----
    [DeBrabanter2010, algorithm 2 and eqs. (13)-(17)]. Deviations from the paper, which follow from
    deriving the equations: mu_2 is the second moment of kappa, not of its square; what eqs.
    (14)-(17) write R(f^(r)) is psi_r, for which R(f^(s)) = (-1)^s psi_(2s), so psi_4 > 0 > psi_6
    and both roots above are of positive numbers. The scale of the pilot is the smaller of the
    standard deviation and the interquartile range / 1.349, which does not oversmooth a column with
    several modes or with outliers.

    The logarithm of the equation is solved by Newton's method inside a bracket, with the exact
    derivative d psi_4/dg = g psi_6, from the largest bandwidth that is optimal for any density of
    this scale.

    Columns for which a density makes no sense take the normal reference, the standard deviation
    times (4/(3n))^(1/5), with the reason recorded: fewer than 10 distinct values, a value that
    holds over 5 % of the weight (and over three times its share), a solution narrower than the
    spacing of the values (rounded data), or no solution. A constant column gets 1, which changes
    neither a distance nor a determinant.

    Time O(n log n) per column (the sort; all else is linear), memory O(n).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.prototypes import plug_in_bandwidth
    >>> X = np.random.default_rng(0).standard_normal((2000, 1))
    >>> h = plug_in_bandwidth(np.hstack([X, X > 0]))
    >>> h.method
    ('plug-in', 'normal-reference')
    >>> bool(abs(h.value[0] / (1.06 * 2000**-0.2) - 1) < 0.1)
    True
    """
    data = as_rows(X)
    n = data.shape[0]
    if not tol > 0.0:
        raise not_usable("tol", tol, "give a positive relative accuracy.")
    weight = check_weight(sample_weight, n)
    count = float(n) if weight is None else float(weight.sum())
    if max_rows is not None and n > max_rows:
        usable = None if weight is None else (weight > 0.0).astype(np.float64)
        rows = random_order(n, max_rows, as_generator(random_state), usable)
        data, weight = data[rows], None if weight is None else weight[rows]
    columns = [_in_unit(_column(x, weight, j), tol) for j, x in enumerate(data.T)]
    sample = float(data.shape[0]) if weight is None else float(weight.sum())
    rate = (sample / count) ** 0.2
    value = np.array([1.0 if reason == _CONSTANT else h * rate for h, _, reason in columns])
    return Bandwidth(value, tuple(c[1] for c in columns), tuple(c[2] for c in columns))


def rule_of_thumb_bandwidth(
    X: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> Bandwidth:
    r"""Choose the bandwidths of a Gaussian product kernel by the multivariate rule of thumb.

    .. math:: h_j = \sigma_j \left(\frac{4}{(d + 2) n}\right)^{1/(d+4)}

    Step 1 of algorithm 2 of [Mall2014], "the multivariate rule-of-thumb", for which it cites Scott
    and Sain and prints no equation: it is the bandwidth that is best for a normal density with
    independent columns. With its usual rounding of the constant, between 0.92 and 1.06, to 1 it is
    :math:`h_j = \sigma_j n^{-1/(d+4)}`. Here :math:`\sigma_j` is the standard deviation over n.
    Time O(n d).
    """
    data = as_rows(X).astype(np.float64, copy=False)
    weight = check_weight(sample_weight, data.shape[0])
    if not np.isfinite(data).all():
        raise InvalidInputError("X has values that are not finite; impute or drop those rows.")
    count = float(data.shape[0]) if weight is None else float(weight.sum())
    mean = np.average(data, axis=0, weights=weight)
    deviation = np.sqrt(np.average((data - mean) ** 2, axis=0, weights=weight))
    present = data if weight is None else data[weight > 0.0]
    constant = np.ptp(present, axis=0) == 0.0
    d = max(1, int(np.count_nonzero(~constant)))
    factor = (4.0 / ((d + 2.0) * count)) ** (1.0 / (d + 4.0))
    reasons = tuple(_CONSTANT if column else "" for column in constant)
    value = np.where(constant, 1.0, deviation * factor)
    return Bandwidth(value, ("rule-of-thumb",) * len(value), reasons)


def _column(column: FloatArray, weight: FloatArray | None, index: int) -> _Column:
    """Sort a column and merge equal values."""
    order = np.argsort(column)
    x = column[order].astype(np.float64)
    if not (np.isfinite(x[0]) and np.isfinite(x[-1])):
        raise InvalidInputError(
            f"Column {index} of X has values that are not finite; impute or drop those rows."
        )
    first = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
    if weight is None:
        counts = np.diff(first, append=x.size).astype(np.float64)
    else:
        counts = np.add.reduceat(weight[order], first)
        first, counts = first[counts > 0.0], counts[counts > 0.0]
    total = float(counts.sum())
    return _Column(x[first], counts / total, total)


def _in_unit(column: _Column, tol: float) -> tuple[float, str, str]:
    """Return bandwidth, method and reason; very large or small values in a unit of their own.

    The ninth power of the scale would overflow otherwise.
    """
    unit = math.frexp(max(abs(float(column.values[0])), abs(float(column.values[-1]))))[1]
    if abs(unit) <= _LARGE:
        return _bandwidth(column, tol)
    values = np.ldexp(column.values, -unit)
    h, method, reason = _bandwidth(_Column(values, column.weights, column.count), tol)
    return (h if reason == _CONSTANT else math.ldexp(h, unit)), method, reason


def _bandwidth(column: _Column, tol: float) -> tuple[float, str, str]:
    """Return bandwidth, method and reason for one column."""
    distinct = column.values.size
    if distinct == 1:
        return 1.0, "normal-reference", _CONSTANT
    reference = column.deviation * (4.0 / (3.0 * column.count)) ** 0.2
    heaviest = float(column.weights.max())
    reason = ""
    if distinct < _FEW_VALUES:
        reason = f"only {distinct} distinct values"
    elif heaviest > max(_HEAVY_TIE, 3.0 / distinct):
        reason = f"one value holds {100 * heaviest:.0f} % of the weight"
    else:
        try:
            # from the largest bandwidth that is optimal for any density of this scale
            start = math.log(1.144 * column.scale * column.count**-0.2)
            h = _newton(_equation(column, tol), start, tol)
        except InvalidInputError:
            h, reason = math.nan, "the functionals cannot be evaluated to the asked accuracy"
        if math.isnan(h):
            reason = reason or "the equation has no solution in the bracket"
        elif h < column.spacing:
            reason = "the solution is narrower than the spacing of the values"
        else:
            return h, "plug-in", ""
    return reference, "normal-reference", reason


def _equation(column: _Column, tol: float) -> Callable[[float], tuple[float, float]]:
    """Return the plug-in equation as a function of t = log h, with its derivative."""
    n, sigma = column.count, column.scale
    roughness = 0.5 / math.sqrt(math.pi)  # R(kappa)
    kappa4, kappa6 = 3.0 / math.sqrt(2.0 * math.pi), -15.0 / math.sqrt(2.0 * math.pi)
    psi6 = -15.0 / (16.0 * math.sqrt(math.pi)) * sigma**-7  # [DeBrabanter2010, eq. (17)]
    psi8 = 105.0 / (32.0 * math.sqrt(math.pi)) * sigma**-9  # [DeBrabanter2010, eq. (17)]
    g1 = (-2.0 * kappa4 / (psi6 * n)) ** (1.0 / 7.0)  # [DeBrabanter2010, eq. (16)]
    g2 = (-2.0 * kappa6 / (psi8 * n)) ** (1.0 / 9.0)  # [DeBrabanter2010, eq. (16)]
    psi = DensityFunctionals(column.values, column.weights, tol)
    pilot = (-2.0 * kappa4 * psi(4, g1) / (roughness * psi(6, g2))) ** (1.0 / 7.0)

    def equation(t: float) -> tuple[float, float]:
        g = pilot * math.exp(5.0 * t / 7.0)
        psi4 = psi(4, g)
        value = t - 0.2 * math.log(roughness / (psi4 * n))  # [DeBrabanter2010, eq. (15)]
        return value, 1.0 + g**2 * psi(6, g) / (7.0 * psi4)

    return equation


def _newton(equation: Callable[[float], tuple[float, float]], t: float, tol: float) -> float:
    """Find the exponential of a root by Newton steps inside a bracket; NaN without a bracket."""
    low, high = -math.inf, math.inf
    floor, ceiling = t - math.log(1e5), t + math.log(16.0)
    for _ in range(_MAX_STEPS):
        if not floor <= t <= ceiling:
            break
        value, slope = equation(t)
        low, high = (low, t) if value > 0.0 else (t, high)
        step = -value / slope if slope > 0.0 else math.copysign(1.0, -value)
        following = t + max(-2.0, min(step, 2.0))
        if value != 0.0 and not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - t) <= 0.1 * tol:
            return math.exp(following)
        t = following
    return math.nan
