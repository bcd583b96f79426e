r"""Kernel logistic regression: a sequence of weighted LS-SVMs, with leave-one-out outputs.

With labels y = -1, 1 the model minimises

.. math::

    \tfrac12 w^T w + C \sum_i s_i \log(1 + e^{-y_i f(x_i)}), \qquad f(x) = w^T \varphi(x) + b .

A Newton step from the outputs f solves the dual system of an LS-SVM with the targets
:math:`z_i = f_i + (t_i - p_i) / q_i` and the noise :math:`1 / (C s_i q_i)`, where
:math:`p = \sigma(f)` and :math:`q = p (1 - p)` ([Karsmakers2007]_). At the minimum the
leave-one-out residuals of that LS-SVM give those of the model to first order ([Cawley2008]_).

Deviation: the targets t are not 0 and 1 but :math:`1 / (N_- + 2)` and
:math:`(N_+ + 1) / (N_+ + 2)` ([Platt2000]_), with the sums N of the weights of the classes. The
bias is not regularised, and rows of one class alone would have no finite minimum.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from scipy.special import expit, log_expit

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import NotPositiveDefiniteError
from lssvm.solvers.exact import ALONE, ExactFit, Repeats, refine, solve_exact

_STEPS = 20  # Newton steps at most
_CLOSE = 2e-2  # of a probability: the next step is the last in single precision
_POLISHED = 10  # steps in double precision at most: each about squares the error that is left
_ROUGH = 1e-3  # of a probability: steps whose last one is longer have not settled
_SETTLED = 1e-9  # of a probability: the last step in double precision
_FLATTEST = 1e-4  # curvature that a row has at least
_HALVINGS = 6  # of a step that does not help
_FAR = 30.0  # log-odds beyond which nothing changes


def solve_logistic(
    K: FloatArray,
    Y: FloatArray,
    C: float,
    weight: FloatArray,
    repeats: Repeats = ALONE,
    *,
    start: ExactFit | None = None,
    single: bool = False,
    draft: bool = False,
) -> ExactFit:
    """Fit kernel logistic regression to two classes.

    Parameters
    ----------
    K : array of shape (n, n), contiguous
        The kernel matrix in float64.
    Y : array of shape (n, 1)
        -1 and 1.
    C : float
        Regularisation.
    weight : array of shape (n,)
        s, larger than 0.
    repeats : Repeats, default=ALONE
        Rows that are left out together.
    start : ExactFit, optional
        A model of the same rows and kernel where the steps begin.
    single : bool, default=False
        Whether systems are factorised in single precision; the model is refined to double.
    draft : bool, default=False
        Without that refinement.

    Returns
    -------
    ExactFit
        Outputs are log-odds of the class 1.

    Notes
    -----
    About four Cholesky factorisations and one inverse: 5/6 n^3 multiplications and additions, less
    from a good start. Single
    precision needs n^2 further numbers of four bytes, double precision as many of eight bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.solvers.logistic import solve_logistic
    >>> y = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    >>> fit = solve_logistic(np.eye(4) + y @ y.T, y, 1.0, np.ones(4))
    >>> bool(np.all(fit.coef * y > 0)), bool(abs(fit.intercept[0]) < 1e-9)
    (True, True)
    """
    if single:
        with suppress(NotPositiveDefiniteError):
            return _newton(K, Y, C, weight, repeats, np.float32, start, draft)
    if start is not None:
        with suppress(NotPositiveDefiniteError):
            return _newton(K, Y, C, weight, repeats, np.float64, start, draft)
    return _newton(K, Y, C, weight, repeats, np.float64, None, draft)


def _newton(
    K: FloatArray,
    Y: FloatArray,
    C: float,
    weight: FloatArray,
    repeats: Repeats,
    dtype: type[np.float32] | type[np.float64],
    start: ExactFit | None,
    draft: bool,
) -> ExactFit:
    """Return the model; raise NotPositiveDefiniteError where another attempt is needed.

    That is where single precision is not enough, and where the steps have not settled; those from
    0 in double precision end where they are.
    """
    last = start is None and dtype is np.float64
    n = len(K)
    y = Y[:, 0]
    target, strength = smoothed_targets(y, weight), C * weight
    A = np.empty((n, n), dtype=dtype)

    def loss(f: FloatArray, coef: FloatArray, b: float) -> float:
        both = target * log_expit(f) + (1.0 - target) * log_expit(-f)
        return float(0.5 * coef @ (f - b) - strength @ both)

    def linearised(f: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = expit(f)
        curvature = np.maximum(p * (1.0 - p), _FLATTEST)
        return f + (target - p) / curvature, 1.0 / (strength * curvature)

    f, coef, b = np.zeros(n), np.zeros(n), 0.0
    now = loss(f, coef, b)
    if start is not None:
        tried = K @ start.coef[:, 0] + start.intercept[0], start.coef[:, 0], start.intercept[0]
        if (after := loss(*tried)) < now:  # a worse one may be too far for the steps
            (f, coef, b), now = tried, after
    moved = np.inf
    for _ in range(_STEPS):
        z, noise = linearised(f)
        np.copyto(A, K)
        fit = solve_exact(A, z[:, None], noise, quiet=True, held_out=False)
        new, to = fit.coef[:, 0], float(fit.intercept[0])
        full = z - noise * new  # the outputs of that solution
        share = 1.0
        for _ in range(_HALVINGS):
            tried = (
                f + share * (full - f),
                coef + share * (new - coef),
                b + share * (to - b),
            )
            after = loss(*tried)
            if after <= now:
                break
            share /= 2.0
        else:
            break
        moved = float(np.abs(expit(tried[0]) - expit(f)).max())
        (f, coef, b), now = tried, after
        if moved < _CLOSE * share:
            break
        moved = np.inf
    if not (last or moved < np.inf):
        raise NotPositiveDefiniteError("The steps have not settled.")
    z, noise = linearised(f)
    np.copyto(A, K)
    fit = solve_exact(A, z[:, None], noise, repeats, quiet=True)
    left_out = np.clip(fit.left_out, -_FAR, _FAR)
    for _ in range(0 if draft else _POLISHED):
        if dtype is np.float32:
            better = refine(K, z[:, None], noise, A)
            if better is None:
                raise NotPositiveDefiniteError("Single precision is not enough.")
            fit = better
        new = z - noise * fit.coef[:, 0]
        moved = float(np.abs(expit(new) - expit(f)).max())
        slope = float(np.abs((new - f) / (strength * noise)).max())  # where all rows are saturated
        if moved < _SETTLED:
            break
        f = new
        z, noise = linearised(f)
        if dtype is np.float64:
            np.copyto(A, K)
            fit = solve_exact(A, z[:, None], noise, quiet=True, held_out=False)
    if not (draft or last or max(moved, slope) < _ROUGH):
        raise NotPositiveDefiniteError("The steps have not settled.")
    return ExactFit(fit.coef, fit.intercept, left_out)


def smoothed_targets(y: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the probabilities of the class 1 that labels -1 and 1 (n,) stand for, [Platt2000].

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.solvers.logistic import smoothed_targets
    >>> smoothed_targets(np.array([1.0, 1.0, -1.0]), np.ones(3))
    array([0.75      , 0.75      , 0.33333333])
    """
    positive = y > 0
    high, low = float(weight[positive].sum()), float(weight[~positive].sum())
    return np.where(positive, (high + 1.0) / (high + 2.0), 1.0 / (low + 2.0))
