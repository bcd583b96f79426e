r"""Automatic relevance determination: one gamma per feature, by gradient ascent of the evidence.

The kernel is a function of :math:`q = \sum_l \gamma_l (x_l - z_l)^2` (eq. (3.69) of
[Suykens2002]_ with :math:`\gamma_l = 1 / (2 \sigma_l^2)`). Whatever the model, the derivatives of
its evidence by all d values follow from one matrix V of derivatives by the kernel's entries:

.. math::

    \frac{\partial L}{\partial \log \gamma_l}
    = \gamma_l \sum_{ij} W_{ij} (x_{il} - z_{jl})^2, \qquad W = V \circ K'(q),

three matrix products for all features together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.folds.content import hash_rows
from lssvm.kernels import RBF, Kernel, Matern

PRIOR = 3.0
"""Standard deviation of log gamma_l around its start that the search assumes."""

_REACH = 4.0 * PRIOR  # how far from its start log gamma_l may go
_C_BOUNDS = (np.log(1e-3), np.log(1e6))
_STEP = 0.05  # answers are rounded to it: rounding in the last bits must not show in them


def kernel_and_slope(kernel: Kernel, X: FloatArray, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Return a kernel and its derivative by :math:`q = \sum_l \gamma_l (x_l - z_l)^2`.

    Parameters
    ----------
    kernel : RBF or Matern
    X, Z : arrays of shape (n, d) and (m, d)

    Returns
    -------
    K, slope : arrays of shape (n, m)

    Notes
    -----
    For nu = 1/2 the derivative is infinite at q = 0, where what it is multiplied by is zero: zero
    stands there.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.criteria.ard import kernel_and_slope
    >>> K, slope = kernel_and_slope(RBF(0.5), np.array([[0.0]]), np.array([[2.0]]))
    >>> K.round(4), slope.round(4)
    (array([[0.1353]]), array([[-0.1353]]))
    """
    K = np.asarray(kernel(X, Z), dtype=np.float64)
    if isinstance(kernel, RBF):
        return K, -K
    if isinstance(kernel, Matern):
        rough = Matern(np.asarray(kernel.gamma) * 2.0 * kernel.nu, nu=0.5)
        decay = np.asarray(rough(X, Z), dtype=np.float64)  # exp(-t), t = 2 sqrt(nu q)
        if kernel.nu == 1.5:
            return K, -3.0 * decay
        t = -np.log(np.maximum(decay, np.finfo(np.float64).tiny))
        if kernel.nu == 2.5:
            return K, -(5.0 / 3.0) * (1.0 + t) * decay
        return K, np.where(t > 1e-12, -decay / np.maximum(t, 1e-12), 0.0)
    raise InvalidInputError(
        f"The relevance of features is found for the rbf and matern kernels, not for {kernel!r}: "
        "use one of those, or give gamma as numbers."
    )


def feature_sums(W: FloatArray, X: FloatArray, Z: FloatArray) -> FloatArray:
    r"""Return :math:`\sum_{ij} W_{ij} (x_{il} - z_{jl})^2` for every feature l, shape (d,).

    Parameters
    ----------
    W : array of shape (n, m)
    X, Z : arrays of shape (n, d) and (m, d)

    Notes
    -----
    2 n m d operations, m d numbers; rows are centred first, so that an offset costs no digits.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.criteria.ard import feature_sums
    >>> feature_sums(np.ones((1, 2)), np.zeros((1, 1)), np.array([[1.0], [2.0]]))
    array([5.])
    """
    centre = Z.mean(axis=0)
    X, Z = X - centre, Z - centre
    both = np.einsum("jl,jl->l", Z, W.T @ X)
    return np.asarray(W.sum(axis=1) @ X**2 + W.sum(axis=0) @ Z**2 - 2.0 * both)


class RelevanceEvidence(Protocol):
    """The evidence of a model as a function of log gamma (d,) and log C.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.tuning import DualRelevance, RelevanceEvidence
    >>> X = np.linspace(0, 3, 9)[:, None]
    >>> evidence: RelevanceEvidence = DualRelevance(RBF, X, np.sin(X))
    >>> evidence.n_features
    1
    """

    @property
    def n_features(self) -> int:
        """Number of features d."""

    def __call__(self, log_gamma: FloatArray, log_C: float) -> tuple[float, FloatArray]:
        """Return the log evidence and its derivatives by (log gamma, log C), shape (d + 1,)."""


@dataclass(frozen=True, eq=False)
class Relevance:
    """What `find_relevance` returns.

    Attributes
    ----------
    gamma : array of shape (d,)
    C : float
    value, start_value : float
        The log evidence there and where the search began.
    n_evaluations : int

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import Relevance
    >>> Relevance(np.array([1.0, 0.01]), 10.0, -3.0, -9.0, 12).gamma[0]
    np.float64(1.0)
    """

    gamma: FloatArray
    C: float
    value: float
    start_value: float
    n_evaluations: int


def find_relevance(
    evidence: RelevanceEvidence, gamma: float, C: float, *, tune_C: bool = True, max_iter: int = 60
) -> Relevance:
    r"""Find one gamma per feature, and C, that make the data most likely.

    Parameters
    ----------
    evidence : RelevanceEvidence
        `DualRelevance` or `FixedRelevance`.
    gamma, C : float
        Where the search begins: the same gamma for every feature.
    tune_C : bool, default=True
        Whether C is searched too.
    max_iter : int, default=60
        Steps of L-BFGS.

    Returns
    -------
    Relevance

    Notes
    -----
    Maximises the log evidence less :math:`\tfrac12 \sum_l (\log(\gamma_l / \gamma) / 3)^2`:
    a feature that the data say nothing about stays where it was, one that they clearly do not need
    goes down by a factor of e^3 per standard deviation. Bounds keep the values within e^12 of the
    start. L-BFGS-B of SciPy; an evaluation is one evidence with its gradient. The answers are
    rounded to steps of 5 %, so that the order of the rows does not show in them.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.tuning import DualRelevance, find_relevance
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> found = find_relevance(DualRelevance(RBF, X, np.sin(2 * X[:, :1])), 0.3, 100.0)
    >>> int(np.argmax(found.gamma)), bool(found.value > found.start_value)
    (0, True)
    """
    d = evidence.n_features
    start = np.append(np.full(d, np.log(gamma)), np.clip(np.log(C), *_C_BOUNDS))
    calls: list[float] = []

    def minus(point: FloatArray) -> tuple[float, FloatArray]:
        value, slope = evidence(point[:d], float(point[d]) if tune_C else float(np.log(C)))
        calls.append(value)
        away = (point[:d] - start[:d]) / PRIOR
        penalised = value - 0.5 * float(away @ away)
        slope = slope - np.append(away / PRIOR, 0.0)
        if not tune_C:
            slope[d] = 0.0
        if not (np.isfinite(penalised) and np.all(np.isfinite(slope))):
            return 1e100, np.zeros(d + 1)
        return -penalised, -slope

    bounds = [(v - _REACH, v + _REACH) for v in start[:d]] + [_C_BOUNDS]
    options: Any = {"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 1e-9, "gtol": 1e-4}
    result = minimize(minus, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    steps = np.round((result.x - start) / _STEP) * _STEP
    found = start + steps
    return Relevance(
        np.exp(found[:d]),
        float(np.exp(found[d])) if tune_C else float(C),
        float(evidence(found[:d], float(found[d]) if tune_C else float(np.log(C)))[0]),
        calls[0],
        len(calls) + 1,
    )


def sample_rows(X: Any, size: int, seed: int) -> IntArray:
    """Return the rows of the ``size`` smallest hashes: sets of equal rows, in the order of X.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.criteria.ard import sample_rows
    >>> sample_rows(np.array([[1.0], [2.0], [1.0]]), 2, 0)
    array([0, 1, 2])
    """
    hashes = hash_rows(X, seed)
    distinct = np.unique(hashes)
    if len(distinct) <= size:
        return np.arange(X.shape[0])
    return np.flatnonzero(hashes <= distinct[size - 1])


KernelOf = Callable[[FloatArray], Kernel]
