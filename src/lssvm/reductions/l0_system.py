"""The reweighted systems of the L0 reductions, for one or several sets of training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.namespace import Array, device, get_namespace, is_numpy, take_square, to_numpy
from lssvm.moments import Moments
from lssvm.solvers.primal_batch import PrimalBatch


@dataclass(frozen=True, eq=False)
class L0System:
    r"""The centred normal equations of some outputs that are trained on the same rows.

    Attributes
    ----------
    columns : int array of shape (q,)
        Which outputs of the model these are.
    A : array of shape (m, m)
        :math:`Q^T S Q - g g^T / s` with :math:`g = Q^T S 1` and s the sum of the weights. On a
        device where the moments are; the systems are then solved there.
    c : array of shape (m, q)
        :math:`Q^T S Y - g t^T / s` with :math:`t = Y^T S 1`.
    mean : array of shape (m,)
        Means of the basis functions.
    target_mean : array of shape (q,)

    Notes
    -----
    Eliminating the bias from eqs. (10) and (13) of [Mall2014]_ leaves
    :math:`(A + \mathrm{diag}(\lambda) / C) \beta = c` and the bias is the mean target minus
    :math:`\beta` times the means. Nothing of this changes when a constant is subtracted from a
    basis function, so moments may stay shifted.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Moments
    >>> from lssvm.reductions import L0System
    >>> Q = np.array([[0.0], [1.0], [2.0]])
    >>> system = L0System.of(Moments.of(Q, 2.0 * Q + 1.0), np.array([0]))
    >>> system.A, system.target_mean
    (array([[2.]]), array([3.]))
    """

    columns: IntArray
    A: Array
    c: FloatArray
    mean: FloatArray
    target_mean: FloatArray

    @classmethod
    def of(cls, moments: Moments, columns: IntArray) -> L0System:
        """Return the system of a training set from its moments: O(m^2)."""
        border, target = to_numpy(moments.border), to_numpy(moments.target)
        mean, target_mean = border / moments.weight, target / moments.weight
        if is_numpy(moments.gram):
            A = moments.gram - np.outer(border, mean)
        else:
            A = moments.gram - moments.border[:, None] * (moments.border / moments.weight)[None, :]
        c = to_numpy(moments.cross) - np.outer(mean, target)
        mean = mean if moments.shift is None else mean + to_numpy(moments.shift)
        return cls(columns, A, c, mean, target_mean)

    def subset(self, index: IntArray) -> L0System:
        """Return the system of some of its basis functions."""
        A, c, mean = take_square(self.A, index), self.c[index], self.mean[index]
        return replace(self, A=A, c=c, mean=mean)

    def outputs(self, columns: IntArray) -> L0System:
        """Return the same system for those of its outputs that are among ``columns``."""
        inside = np.isin(self.columns, columns)
        place = np.searchsorted(columns, self.columns[inside])
        c, target_mean = self.c[:, inside], self.target_mean[inside]
        return replace(self, columns=place, c=c, target_mean=target_mean)

    def intercept(self, beta: FloatArray) -> FloatArray:
        """Return the bias (q,) that belongs to coefficients (m, q)."""
        return np.asarray(self.target_mean - self.mean @ beta)


def reweighted_step(systems: Sequence[L0System], D: FloatArray, C: FloatArray) -> FloatArray:
    r"""Solve the systems with :math:`\lambda_j = 1 / D_j^2`.

    Parameters
    ----------
    systems : sequence of L0System
        Of m basis functions; their columns make up all k outputs.
    D : array of shape (m,)
        Magnitudes of the coefficients of the step before.
    C : array of shape (k,)

    Returns
    -------
    array of shape (m, k)

    Notes
    -----
    Eqs. (10) and (13) of [Mall2014]_ as :math:`\beta = D (D A D + I/C)^{-1} D c`: nothing is
    divided by a coefficient that tends to zero. m^3/3 operations for each system and value of C.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Moments
    >>> from lssvm.reductions import L0System
    >>> from lssvm.reductions.l0_system import reweighted_step
    >>> Q = np.array([[0.0], [1.0], [2.0]])
    >>> system = L0System.of(Moments.of(Q, 2.0 * Q), np.array([0]))
    >>> reweighted_step([system], np.ones(1), np.array([0.5]))  # 4 / (2 + 1 / 0.5)
    array([[1.]])
    """
    out = np.zeros((len(D), len(C)))  # outputs without rows stay zero
    for system in systems:
        scaled = _scaled(system.A, D)
        for value in dict.fromkeys(C[system.columns].tolist()):
            inside = C[system.columns] == value
            solved = _ridge(scaled, D[:, None] * system.c[:, inside], value)
            out[:, system.columns[inside]] = D[:, None] * solved  # [Mall2014, eqs. (10), (13)]
    return out


def strongest(systems: Sequence[L0System]) -> int:
    """Return the basis function that alone explains most of the targets' squares.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Moments
    >>> from lssvm.reductions import L0System
    >>> from lssvm.reductions.l0_system import strongest
    >>> Q = np.array([[0.0, 1.0], [1.0, 1.5], [0.0, 2.0]])
    >>> strongest([L0System.of(Moments.of(Q, Q[:, [1]]), np.array([0]))])
    1
    """
    gain = np.zeros(systems[0].A.shape[0])
    for system in systems:
        variance = _diagonal(system.A)
        floor = np.finfo(np.float64).eps * max(float(np.max(variance, initial=0.0)), 1e-300)
        gain += np.sum(system.c**2, axis=1) / np.maximum(variance, floor)
    return int(np.argmax(gain))


def _scaled(A: Array, D: FloatArray) -> Array:
    """Return D A D."""
    if is_numpy(A):
        return A * np.outer(D, D)
    own = get_namespace(A).asarray(D, device=device(A))
    return A * own[:, None] * own[None, :]


def _diagonal(A: Array) -> FloatArray:
    if is_numpy(A):
        return np.diagonal(A)
    return to_numpy(get_namespace(A).linalg.diagonal(A))


def _solve_shifted(A: Array, B: FloatArray, shift: float) -> FloatArray | None:
    """Solve A + shift I; None where it is not positive definite to rounding."""
    if not is_numpy(A):
        right = get_namespace(A).asarray(B, device=device(A))[None, ...]
        batch = PrimalBatch(None, A[None, ...], right)
        solved = to_numpy(batch.solve_features(np.array([1.0 / shift])))[0, 0]
        return solved if np.all(np.isfinite(solved)) else None
    H = A.copy()
    H[np.diag_indices_from(H)] += shift
    try:
        factor = cho_factor(H.T, lower=True, overwrite_a=True, check_finite=False)
        return np.asarray(cho_solve(factor, B, check_finite=False))
    except LinAlgError:
        return None


def _ridge(A: Array, B: FloatArray, C: float) -> FloatArray:
    eps = float(np.finfo(np.float64).eps)
    rounding = 10.0 * A.shape[0] * eps * float(np.max(_diagonal(A)))
    jitter = 0.0 if C * rounding < 0.01 else rounding  # as large as 1/C: the rest is noise
    for _ in range(4):
        solved = _solve_shifted(A, B, 1.0 / C + jitter)
        if solved is not None:
            return solved
        jitter = max(100.0 * jitter, rounding)
    raise LinAlgError("The reduced system is not positive definite.")
