r"""How many nodes a Gauss-Legendre rule needs for a product of linear factors.

On [-1, 1] the integrands of `lssvm.explanations.product` are products of d factors
:math:`1 + \tau h_l` with :math:`|h_l| \le 1`: a rule of d/2 nodes is exact. Far fewer suffice to
rounding. On the ellipse around the interval whose half axes sum to :math:`e^s` (foci at its ends) a
factor is at most :math:`1 + |h_l| \cosh s`, and Chebyshev coefficients of an integrand that is at
most M there are at most :math:`2 M e^{-ks}`. A rule of q nodes is exact up to degree 2q - 1; for
every even degree beyond, integral and rule of a Chebyshev polynomial differ by at most 2 + 2/15
(q >= 2). So the error, in units of the largest value of the product on the interval, is at most

.. math::

    \frac{64}{15} \frac{e^{-2qs}}{1 - e^{-2s}} \prod_l \frac{1 + |h_l| \cosh s}{1 + |h_l|}

for every s > 0. The logarithm of a factor is concave in :math:`|h_l|`: the mean of the
:math:`|h_l|` stands for all of them.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from lssvm._core.arrays import FloatArray

_ELLIPSES = np.linspace(0.05, 9.0, 180)  # s
_COSH = np.cosh(_ELLIPSES)
_LEADING = np.log(64.0 / 15.0) - np.log1p(-np.exp(-2.0 * _ELLIPSES))


def n_nodes(n_factors: int, mean_size: float = 1.0, error: float = 2.0**-52) -> int:
    r"""Return how many nodes integrate a product of factors 1 + tau h_l.

    Parameters
    ----------
    n_factors : int
        Number d of factors; the integrand leaves out one of them.
    mean_size : float, default=1.0
        Mean of :math:`|h_l|` over the factors, between 0 and 1.
    error : float, default=2**-52
        In units of the largest value of the product.

    Returns
    -------
    int
        Even, as no node may lie at 0. At most d/2 + 1, and of the order of sqrt(d) for many
        factors.

    Examples
    --------
    >>> from lssvm.explanations.quadrature import n_nodes
    >>> n_nodes(10), n_nodes(50), n_nodes(50, mean_size=0.05), n_nodes(1000)
    (6, 22, 10, 98)
    """
    exact = (n_factors + 1) // 2
    size = min(max(mean_size, 0.0), 1.0)
    growth = n_factors * (np.log1p(size * _COSH) - np.log1p(size))
    needed = int(np.ceil(np.min((_LEADING + growth - np.log(error)) / (2.0 * _ELLIPSES))))
    few = max(1, min(exact, needed))
    return few + few % 2


@cache
def rule(n: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the Gauss-Legendre rule on [-1, 1], each of shape (n,).

    Examples
    --------
    >>> from lssvm.explanations.quadrature import rule
    >>> nodes, weights = rule(4)
    >>> round(float(weights @ nodes**6), 12) == round(2 / 7, 12)
    True
    """
    nodes, weights = np.polynomial.legendre.leggauss(n)
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights
