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
bias is not regularised, so rows of one class alone would otherwise have no finite minimum.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from scipy.special import expit, log_expit

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import NotPositiveDefiniteError
from lssvm.solvers.exact import ALONE, ExactFit, Repeats, refine, solve_exact

_MAX_STEPS = 20  # Newton steps in the working precision
_FIRST_TOL = 2e-2  # largest change of a probability after which these steps end
_DRAFT_TOL = 0.1  # the same of models that are only compared
_MAX_FINAL_STEPS = 10  # in double precision: each about squares the error that is left
_FINAL_TOL = 1e-6  # largest change of a probability after which they end: its square is left
_SETTLED_TOL = 1e-3  # larger last changes mean that the steps have not settled
_MIN_CURVATURE = 1e-8  # of the loss of a row: a smaller one is rounding
_MAX_HALVINGS = 6  # of a step that does not lower the loss

MAX_LOG_ODDS = 30.0
"""Of leave-one-out outputs."""


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
        -1 and 1, or means of them.
    C : float
        Regularisation.
    weight : array of shape (n,)
        s, larger than 0.
    repeats : Repeats, default=ALONE
        Rows that are left out together.
    start : ExactFit, optional
        A model of the same rows and kernel from which the steps start.
    single : bool, default=False
        Whether systems are factorised in single precision; the model is refined to double.
    draft : bool, default=False
        Whether the refinement is omitted.

    Returns
    -------
    ExactFit
        Its outputs are the log-odds of class 1.

    Notes
    -----
    About four Cholesky factorisations and one inverse: 5/6 n^3 multiplications and additions, less
    from a good start. Single precision needs n^2 further numbers of four bytes, double precision as
    many of eight bytes.

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
    last_attempt = start is None and dtype is np.float64
    n = len(K)
    y = Y[:, 0]
    target, strength = smoothed_targets(y, weight), C * weight
    A = np.empty((n, n), dtype=dtype)

    def loss(f: FloatArray, coef: FloatArray, b: float) -> float:
        log_likelihood = target * log_expit(f) + (1.0 - target) * log_expit(-f)
        return float(0.5 * coef @ (f - b) - strength @ log_likelihood)

    f, coef, b = np.zeros(n), np.zeros(n), 0.0
    current_loss = loss(f, coef, b)
    if start is not None:
        given = K @ start.coef[:, 0] + start.intercept[0], start.coef[:, 0], start.intercept[0]
        if (given_loss := loss(*given)) < current_loss:  # a worse one may be too far for the steps
            (f, coef, b), current_loss = given, given_loss
    settled = False
    for _ in range(_MAX_STEPS):
        z, noise = linearised(f, target, strength)
        np.copyto(A, K)
        fit = solve_exact(A, z[:, None], noise, quiet=True, held_out=False)
        new_coef, new_b = fit.coef[:, 0], float(fit.intercept[0])
        new_f = z - noise * new_coef  # the outputs of that solution
        share = 1.0
        for _ in range(_MAX_HALVINGS):
            tried = (
                f + share * (new_f - f),
                coef + share * (new_coef - coef),
                b + share * (new_b - b),
            )
            tried_loss = loss(*tried)
            if tried_loss <= current_loss:
                break
            share /= 2.0
        else:
            break
        change = float(np.abs(expit(tried[0]) - expit(f)).max())
        (f, coef, b), current_loss = tried, tried_loss
        settled = change < (_DRAFT_TOL if draft else _FIRST_TOL) * share
        if settled:
            break
    if not (last_attempt or settled):
        raise NotPositiveDefiniteError("The steps have not settled.")
    z, noise = linearised(f, target, strength)
    np.copyto(A, K)
    fit = solve_exact(A, z[:, None], noise, repeats, quiet=True)
    left_out, diagonal = np.clip(fit.left_out, -MAX_LOG_ODDS, MAX_LOG_ODDS), fit.diagonal
    inverted = True  # A is the inverse of a factor
    for step in range(0 if draft else _MAX_FINAL_STEPS):
        if step or dtype is np.float32:
            better = refine(K, z[:, None], noise, A) if inverted else None
            if better is None and dtype is np.float32:
                raise NotPositiveDefiniteError("Single precision is not enough.")
            if better is None:
                np.copyto(A, K)
                better = solve_exact(A, z[:, None], noise, quiet=True, held_out=False)
                inverted = False
            fit = better
        new_f = z - noise * fit.coef[:, 0]
        change = float(np.abs(expit(new_f) - expit(f)).max())
        slope = float(np.abs((new_f - f) / (strength * noise)).max())  # of saturated rows too
        if change < _FINAL_TOL:
            break
        f = new_f
        z, noise = linearised(f, target, strength)
    if not (draft or last_attempt or max(change, slope) < _SETTLED_TOL):
        raise NotPositiveDefiniteError("The steps have not settled.")
    return ExactFit(fit.coef, fit.intercept, left_out, diagonal)


def linearised(
    f: FloatArray, target: FloatArray, strength: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return targets and noise of the LS-SVM whose solution is a Newton step from the outputs f.

    ``target`` are probabilities of class 1, ``strength`` is C s; all of shape (n,).
    """
    p = expit(f)
    curvature = np.maximum(p * (1.0 - p), _MIN_CURVATURE)
    return f + (target - p) / curvature, 1.0 / (strength * curvature)


def smoothed_targets(y: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the target probabilities (n,) of class 1 for labels -1 and 1, or means [Platt2000].

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.solvers.logistic import smoothed_targets
    >>> smoothed_targets(np.array([1.0, 1.0, -1.0]), np.ones(3))
    array([0.75      , 0.75      , 0.33333333])
    """
    positive = 0.5 * (1.0 + y)
    high, low = float(weight @ positive), float(weight @ (1.0 - positive))
    return positive * (high + 1.0) / (high + 2.0) + (1.0 - positive) / (low + 2.0)
