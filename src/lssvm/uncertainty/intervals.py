"""Prediction intervals from scaled out-of-fold residuals."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError, NumericalWarning

MAX_RESIDUALS = 10_000
"""Residuals that a model keeps; of more, as many quantiles."""


def check_coverage(coverage: float) -> float:
    """Return ``coverage`` as a float, or raise if it is not inside (0, 1).

    Parameters
    ----------
    coverage : float
        Share of the values that intervals are to contain.

    Examples
    --------
    >>> from lssvm.uncertainty import check_coverage
    >>> check_coverage(0.9)
    0.9
    """
    number = isinstance(coverage, (int, float, np.number)) and type(coverage) is not bool
    if not number or not 0.0 < float(coverage) < 1.0:
        raise InvalidInputError(
            f"coverage={coverage!r} is not usable: give a number between 0 and 1, such as 0.95."
        )
    return float(coverage)


def conformal_quantile(values: FloatArray, weight: FloatArray, coverage: float) -> float:
    r"""Return the value that a new one does not exceed with probability ``coverage``.

    Parameters
    ----------
    values : array of shape (t,)
        Sorted.
    weight : array of shape (t,)
        How often each was seen.
    coverage : float
        Between 0 and 1.

    Returns
    -------
    float
        The :math:`\lceil (1 + 1/W) c W \rceil`-th smallest of W values (the correction for a new
        value, [Vovk2005]_); infinite where there are too few.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.uncertainty import conformal_quantile
    >>> conformal_quantile(np.arange(1.0, 20.0), np.ones(19), 0.9)
    18.0
    >>> conformal_quantile(np.arange(5.0), np.ones(5), 0.9)
    inf
    """
    total = float(weight.sum())
    wanted = coverage * (total + 1.0)
    position = int(np.searchsorted(np.cumsum(weight), wanted * (1.0 - 1e-12)))
    return float(values[position]) if position < len(values) else float("inf")


@dataclass(frozen=True, eq=False)
class Residuals:
    """Out-of-fold residuals in units of the local standard deviation, sorted, one set per output.

    Attributes
    ----------
    values : list of k arrays
        (y - prediction) / scale of every row.
    weight : list of k arrays
        Weights in the same order.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.uncertainty import scaled_residuals
    >>> residuals = scaled_residuals(np.linspace(-1, 1, 99)[:, None], np.ones((99, 1)))
    >>> np.round(residuals.factor(0.9, 0), 2)
    array([-0.92,  0.92])
    """

    values: list[FloatArray]
    weight: list[FloatArray]

    def factor(self, coverage: float, output: int) -> tuple[float, float]:
        """Return the ends of the interval of one output in units of the local deviation."""
        values, weight = self.values[output], self.weight[output]
        size = np.abs(values)
        order = np.argsort(size, kind="stable")
        q = conformal_quantile(size[order], weight[order], coverage)
        if not np.isfinite(q):
            warnings.warn(
                f"{float(weight.sum()):.3g} rows are too few for intervals of coverage "
                f"{coverage:g}, so they are infinite: give more rows, or a lower coverage.",
                NumericalWarning,
                stacklevel=4,
            )
        return -q, q


def scaled_residuals(
    residuals: FloatArray, scale: FloatArray, weight: FloatArray | None = None
) -> Residuals:
    """Divide residuals by their scale and keep them sorted, at most 10,000 of each output.

    Parameters
    ----------
    residuals : array of shape (t, k)
        y - prediction by a model that had not seen the row; what is not finite is left out.
    scale : array of shape (t, k)
        Standard deviation of a new observation there.
    weight : array of shape (t,) or None, default=None
        Weights of the rows; None: all are one.

    Returns
    -------
    Residuals

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.uncertainty import scaled_residuals
    >>> scaled_residuals(np.array([[2.0], [-1.0]]), np.full((2, 1), 2.0)).values[0]
    array([-0.5,  1. ])
    """
    w = np.ones(len(residuals)) if weight is None else np.asarray(weight, dtype=np.float64)
    values, weights = [], []
    for e, s in zip(residuals.T, scale.T, strict=True):
        good = np.isfinite(e) & np.isfinite(s) & (w > 0)
        e, s, own = e[good], s[good], w[good]
        tiny = np.finfo(np.float64).tiny  # where there is no noise at all
        with np.errstate(over="ignore"):  # such residuals are cut off
            r = np.clip(e / np.maximum(s, tiny), -1e300, 1e300)
        order = np.argsort(r, kind="stable")
        r, own = r[order], own[order]
        if len(r) > MAX_RESIDUALS:
            r, own = _thin(r, own, MAX_RESIDUALS)
        values.append(r)
        weights.append(own)
    return Residuals(values, weights)


def _thin(values: FloatArray, weight: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Return ``size`` quantiles of sorted values, each with the same part of the weight."""
    total = np.cumsum(weight)
    middle = (np.arange(size) + 0.5) / size * total[-1]
    return values[np.searchsorted(total, middle)], np.full(size, total[-1] / size)
