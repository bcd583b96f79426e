"""The posterior of the fixed-size model: error bars and leave-one-out predictions from moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import NotPositiveDefiniteError
from lssvm._core.memory import block_rows, require
from lssvm._core.namespace import float_rows
from lssvm._core.threads import run_blocks, slices, small_problem
from lssvm.kernels import Kernel
from lssvm.moments import Moments, NystromMap
from lssvm.solvers.primal import primal_system
from lssvm.uncertainty.posterior_dual import degrees_of_freedom


@dataclass(eq=False)
class FixedPosterior:
    r"""What a fixed-size model knows about its function, given the moments of its rows.

    With a prior :math:`w \sim N(0, \sigma_f^2 I)` on the weights of the features, noise of variance
    :math:`\sigma^2 = \sigma_f^2 / C` and a bias of unknown level,

    .. math::

        \sigma^2(x) = \sigma^2 \left[ \tilde\varphi^T (A + I/C)^{-1} \tilde\varphi + 1/s \right]
        + \sigma_f^2 \left[ K(x, x) - \varphi^T \varphi \right],

    where :math:`\varphi` are the Nystrom features of x, :math:`\tilde\varphi` the same less their
    mean, A and s the centred gram and the weight of `lssvm.solvers.PrimalSystem`. The first bracket
    is the posterior of w and b, the second what the kernel holds that the prototypes cannot
    express: without it error bars would shrink away from the prototypes. With all rows as
    prototypes this is `DualPosterior`.

    Parameters
    ----------
    kernel : Kernel
    Z : array of shape (m, d)
        Prototypes.
    map : NystromMap
    moments : Moments
        Of the training rows.
    C : float
    budget, threads : int

    Notes
    -----
    The scale is estimated from the moments alone,
    :math:`\hat\sigma^2 = (\sum_i s_i (y_i - \bar y)^2 - B^T w) / (s - 1)`, which is
    :math:`(\|e\|^2 + \|w\|^2 / C) / (s - 1)` as in the dual model.

    5 m^3 operations when first needed, m^2 numbers kept (not pickled).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import nystrom_map
    >>> from lssvm.kernels import RBF
    >>> from lssvm.moments import Moments
    >>> from lssvm.uncertainty import FixedPosterior
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> kernel, Z = RBF(1.0), X[::8]
    >>> moments = Moments.of(kernel(X, Z), np.sin(X))
    >>> posterior = FixedPosterior(kernel, Z, nystrom_map(kernel, Z), moments, 100.0)
    >>> near, far = posterior.variance(np.array([[1.5], [9.0]]))
    >>> bool(near < 0.01), bool(far > 1.0)  # in units of the prior variance
    (True, True)
    """

    kernel: Kernel
    Z: FloatArray
    map: NystromMap
    moments: Moments
    C: float
    budget: int = 2**31
    threads: int = 1

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @cached_property
    def solved(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """P (m, r) with P^T k~ = L^-1 phi~, the mean (m,), B^T w (k,), and coefficients (m, k)."""
        with small_problem(self.moments.size):
            system = primal_system(self.moments, self.map)
            L = _factor(system.A, self.C)
            half = solve_triangular(L, system.B, lower=True, check_finite=False)
            P = solve_triangular(L, self.map.T.T, lower=True, check_finite=False).T
        return P, system.mean, np.einsum("rk,rk->k", half, half), P @ half

    @cached_property
    def noise_variance(self) -> FloatArray:
        """The estimated noise variance sigma^2 of each output, shape (k,)."""
        moments = self.moments
        centred = moments.squares - moments.target**2 / moments.weight
        left = np.maximum(centred - self.solved[2], 0.0)
        return np.asarray(left / degrees_of_freedom(moments.weight, True))

    @property
    def prior_variance(self) -> FloatArray:
        """The estimated scale sigma_f^2 = C sigma^2 of each output, shape (k,)."""
        return self.noise_variance * self.C

    def variance(self, X: NDArray[Any]) -> FloatArray:
        """Return the variance of the function at the rows ``X`` (t, d), shape (t,).

        In units of `prior_variance`. Cost: 4 m^2 + 2 m d operations a row, in blocks.
        """
        learned, missing, _ = self._pass(X)
        return learned / self.C + missing

    def covariance(self, X: NDArray[Any]) -> FloatArray:
        """Return the covariance of the function between the rows ``X`` (t, d), shape (t, t).

        In units of `prior_variance`. Cost: 4 m^2 t + 4 m t^2 operations, (2 m + t) t numbers.
        """
        X = float_rows(X)
        t, m = X.shape[0], self.Z.shape[0]
        require(
            8 * (3 * m + 3 * t) * t,
            self.budget,
            what=f"The covariance between {t:,} rows",
            advice="Ask for fewer rows at once, for return_std=True, or raise memory_budget.",
        )
        P, mean, _, _ = self.solved
        K = np.asarray(self.kernel(X, self.Z))
        half, features = (K - mean) @ P, K @ self.map.T
        learned = half @ half.T + 1.0 / self.moments.weight
        return np.asarray(learned / self.C + self.kernel(X, X) - features @ features.T)

    def leave_out(
        self, X: NDArray[Any], Y: FloatArray, folds: Sequence[IntArray], weight: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        r"""Return what training rows would be predicted without their fold, and how surely.

        Parameters
        ----------
        X, Y : arrays of shape (t, d) and (t, k)
            Some of the rows that the moments have counted, or rows of weight zero.
        folds : sequence of int arrays
            They partition those rows; the rows of a fold have equal features.
        weight : array of shape (t,) or None

        Returns
        -------
        predictions : array of shape (t, k)
        variance : array of shape (t,)
            Of the function, in units of `prior_variance`.

        Notes
        -----
        With :math:`h = 1/s + \tilde\varphi^T (A + I/C)^{-1} \tilde\varphi` and a fold of weight
        :math:`\mu` and mean target :math:`\bar y` a prediction p becomes
        :math:`\bar y - (\bar y - p) / (1 - \mu h)` ([Cawley2004]_) and its variance
        :math:`\sigma^2 h / (1 - \mu h)`. Where a fold is all there is, the prediction is NaN.
        """
        fold_of = np.empty(len(Y), dtype=np.intp)
        fold_of[np.concatenate(folds)] = np.repeat(np.arange(len(folds)), [len(f) for f in folds])
        learned, missing, fitted = self._pass(X)
        predictions, left = _without_fold(fitted, learned, Y, fold_of, weight)
        return predictions, np.asarray(learned / left / self.C + missing)

    def _pass(self, X: NDArray[Any]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return h (t,), K(x, x) - phi^T phi (t,) and the fitted values (t, k)."""
        P, mean, _, coef = self.solved
        Z = float_rows(self.Z)
        t, m = X.shape[0], Z.shape[0]
        learned, missing = np.empty(t), np.empty(t)
        fitted = np.empty((t, coef.shape[1]))
        target = self.moments.target / self.moments.weight
        rows = block_rows(40 * m * self.threads, self.budget, n_rows=max(t, 1), at_most=1024)

        def fill(part: slice) -> None:
            block = float_rows(X[part])
            K = np.asarray(self.kernel(block, Z))
            features = K @ self.map.T
            missing[part] = self.kernel.diag(block) - np.einsum("tr,tr->t", features, features)
            K = K - mean
            half = K @ P
            learned[part] = np.einsum("tr,tr->t", half, half) + 1.0 / self.moments.weight
            fitted[part] = K @ coef + target

        run_blocks(fill, slices(t, rows), self.threads)
        return learned, np.maximum(missing, 0.0), fitted


def _factor(A: FloatArray, C: float) -> FloatArray:
    """Return the lower Cholesky factor of A + I/C, and of a little more where it has none."""
    largest = float(np.max(np.diagonal(A), initial=0.0))
    for jitter in (0.0, 1e-14, 1e-12, 1e-10):
        H = np.tril(A)
        H[np.diag_indices_from(H)] += 1.0 / C + jitter * largest
        try:
            return np.asarray(cholesky(H, lower=True, overwrite_a=True, check_finite=False))
        except np.linalg.LinAlgError:
            continue
    raise NotPositiveDefiniteError(
        f"The posterior cannot be computed for C={C:.3g}: the system is not positive definite to "
        "rounding. Lower C, or take fewer prototypes."
    )


def _without_fold(
    fitted: FloatArray,
    leverage: FloatArray,
    Y: FloatArray,
    fold_of: IntArray,
    weight: FloatArray | None,
) -> tuple[FloatArray, FloatArray]:
    """Return predictions (t, k) by models without the fold of a row, and 1 - mu h (t,)."""
    t, k = Y.shape
    s = np.ones(t) if weight is None else np.asarray(weight, dtype=np.float64)
    mass = np.bincount(fold_of, s)
    sums = np.stack([np.bincount(fold_of, s * Y[:, j]) for j in range(k)], 1)
    mean = (sums / np.where(mass > 0, mass, 1.0)[:, None])[fold_of]
    left = 1.0 - mass[fold_of] * leverage
    left = np.where(left > 1e-12, left, np.nan)  # nothing would be left to learn from
    return np.asarray(mean - (mean - fitted) / left[:, None]), left  # [Cawley2004]


def left_out_scores(
    moments: Moments,
    C: float,
    features: FloatArray,
    Y: FloatArray,
    fold_of: IntArray,
    weight: FloatArray | None = None,
) -> FloatArray:
    """Return what a problem on features says of rows by models without their fold.

    Parameters
    ----------
    moments : Moments
        Of the features of all training rows, as `Moments.mapped` gives them.
    C : float
    features : array of shape (t, r)
        Of some rows.
    Y : array of shape (t, k)
        Their targets; the rows whose first target is 0 were not in the training set.
    fold_of : int array of shape (t,)
        Numbers of the folds; the rows of a fold have equal features.
    weight : array of shape (t,) or None, default=None
        Weights that leave with the rows.

    Returns
    -------
    array of shape (t, k)

    Notes
    -----
    As `FixedPosterior.leave_out`, for many problems on the same features: m^3/3 operations for a
    problem and m^2 for each of its own rows, m k for the others.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Moments
    >>> from lssvm.uncertainty import left_out_scores
    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> left_out_scores(Moments.of(x, x + 1.0), 1e9, x, x + 1.0, np.arange(3)).ravel().round(4)
    array([1., 2., 3.])
    """
    with small_problem(moments.size):
        system = primal_system(moments, None)
        L = _factor(system.A, C)
        half = solve_triangular(L, system.B, lower=True, check_finite=False)
        coef = solve_triangular(L, half, lower=True, trans="T", check_finite=False)
        scores = np.asarray(features @ coef + (system.target_mean - system.mean @ coef))
        used = np.flatnonzero(Y[:, 0])
        centred = (features[used] - system.mean).T
        V = solve_triangular(L, centred, lower=True, overwrite_b=True, check_finite=False)
    leverage = np.einsum("rt,rt->t", V, V) + 1.0 / moments.weight
    own = np.unique(fold_of[used], return_inverse=True)[1]
    weight = None if weight is None else weight[used]
    scores[used] = _without_fold(scores[used], leverage, Y[used], own, weight)[0]
    return scores
