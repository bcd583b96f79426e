"""The fixed-size model in the primal: ridge regression on features, from moments, for many C."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.linalg.lapack import dptsv

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import NotPositiveDefiniteError, NumericalWarning
from lssvm._core.lapack import reflect, tridiagonalise
from lssvm._core.namespace import is_numpy
from lssvm._core.threads import small_problem
from lssvm.moments import Moments, NystromMap
from lssvm.solvers.primal_batch import centred, penalise_bias, solve_on_device

METHODS = ("auto", "cholesky", "eigen", "tridiagonal")
"""How a path of C is solved."""

_FEW = 5
"""Up to so many values of C a Cholesky factorisation for each is cheaper than a reduction."""


@dataclass(eq=False)
class PrimalSystem:
    r"""The centred normal equations of a training set in feature space, for every C.

    .. math::

        (A + I/C) w = B, \quad
        A = T^T (G - g g^T / s) T, \quad B = T^T (c - g t^T / s), \quad
        b = (t - g^T T w) / s,

    with G, g, c, t, s the gram, border, cross, target and weight of `lssvm.moments.Moments`. This
    is [DeBrabanter2010]_, eq. (7), with the bias eliminated instead of regularised, so that with
    all rows as prototypes it is the dual model. With ``weight`` it is eq. (7) as printed.

    Attributes
    ----------
    map : NystromMap or None
        None: the moments are those of the features already, and so are the coefficients.
    A : array of shape (r, r)
        Its lower triangle; overwritten by a reduction.
    B : array of shape (r, k)
    mean : array of shape (m,)
        Mean of K(x, Z): g / s, the shift of the moments added.
    target_mean : array of shape (k,)
        t / s.
    weight : float or None
        s, where the bias is penalised like a weight; B then has the mean of the features as one
        more column, see `lssvm.solvers.primal_batch.penalise_bias`. None: the bias is free.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import nystrom_map
    >>> from lssvm.kernels import Linear
    >>> from lssvm.moments import Moments
    >>> from lssvm.solvers.primal import primal_system
    >>> x = np.arange(4.0)[:, None]
    >>> system = primal_system(Moments.of(x, 2.0 * x + 1.0), nystrom_map(Linear(), np.eye(1)))
    >>> coef, intercept = system.solve(np.array([1e-3, 1e6]))
    >>> coef.ravel().round(2), intercept.ravel().round(2)
    (array([0.01, 2.  ]), array([3.99, 1.  ]))
    """

    map: NystromMap | None
    A: FloatArray
    B: FloatArray
    mean: FloatArray
    target_mean: FloatArray
    weight: float | None = None
    _reduced: Any = field(default=None, repr=False)

    def solve(self, C: FloatArray, method: str = "auto") -> tuple[FloatArray, FloatArray]:
        """Return coefficients on the prototypes (c, m, k) and intercepts (c, k) for all ``C``.

        Parameters
        ----------
        C : array of shape (c,)
        method : {"auto", "cholesky", "eigen", "tridiagonal"}, default="auto"
            "cholesky" factorises once per value (m^3/3 each); "tridiagonal" reduces A once to
            tridiagonal form (4 m^3/3, half of it at the speed of memory), then every value takes
            O(m); "eigen" decomposes A once (about 9 m^3). "auto" takes Cholesky up to 5 values,
            else the reduction.

        Notes
        -----
        4 m^2 c k operations besides. Where a system is not positive definite to rounding its
        coefficients are NaN.
        """
        C = np.asarray(C, dtype=np.float64)
        (r, k), few = self.B.shape, len(C) <= _FEW
        if r == 0:
            W = np.zeros((0, len(C), k))
        elif method == "cholesky" or r == 1 or (method == "auto" and few and not self._reduced):
            W = np.stack([self._cholesky(value) for value in C], axis=1)
        elif method == "eigen":
            lam, QB, Q = self.spectrum()
            shrunk = 1.0 / (lam[:, None] + 1.0 / C)  # (r, c)
            W = (Q @ (shrunk[:, :, None] * QB[:, None]).reshape(r, -1)).reshape(r, len(C), k)
        else:
            W = self._tridiagonal(C)
        intercept = None
        if self.weight is not None:
            free, k = np.moveaxis(W, 1, 0)[None], k - 1
            mean, target = self.B[None, :, -1], self.target_mean[None]
            bound, b = penalise_bias(free, mean, target, np.array([self.weight]), C)
            W, intercept = np.moveaxis(bound[0], 0, 1), b[0]
        coef = W
        if self.map is not None:
            coef = (self.map.T @ W.reshape(r, len(C) * k)).reshape(-1, len(C), k)
        if intercept is None:
            intercept = self.target_mean - np.einsum("m,mck->ck", self.mean, coef)
        return np.moveaxis(coef, 1, 0), intercept

    def spectrum(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return eigenvalues (r,) of A, Q^T B (r, k) and the eigenvectors Q (r, r)."""
        if self._reduced is None or len(self._reduced) != 3:
            lam, Q = eigh(self.A, lower=True, driver="evd", check_finite=False, overwrite_a=True)
            self._reduced = (np.maximum(lam, 0.0), Q.T @ self.B, Q)
        return self._reduced  # type: ignore[no-any-return]

    def _cholesky(self, C: float) -> FloatArray:
        H = self.A.copy(order="F")
        H[np.diag_indices_from(H)] += 1.0 / C  # [DeBrabanter2010, eq. (7)]
        try:
            factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return np.full(self.B.shape, np.nan)
        return np.asarray(cho_solve(factor, self.B, check_finite=False))

    def _tridiagonal(self, C: FloatArray) -> FloatArray:
        """Solve with A = H S H^T, S tridiagonal: S + I/C is tridiagonal for every C."""
        r, k = self.B.shape
        if self._reduced is None:
            factor = self.A if self.A.flags.f_contiguous else np.asfortranarray(self.A)
            d, e, tau = tridiagonalise(factor)
            self._reduced = (factor, d, e, tau, _rotate(factor, tau, self.B, transposed=True))
        factor, d, e, tau, rotated = self._reduced
        W = np.empty((r, len(C), k), order="F")
        for i, value in enumerate(C):
            _, _, solved, info = dptsv(d + 1.0 / value, e, rotated)
            W[:, i] = solved if info == 0 else np.nan
        return _rotate(factor, tau, W.reshape(r, -1, order="C"), transposed=False).reshape(W.shape)


def _rotate(factor: FloatArray, tau: FloatArray, B: FloatArray, *, transposed: bool) -> FloatArray:
    """Multiply ``B`` (r, q) by the orthogonal matrix of a tridiagonal reduction."""
    out = np.array(B, order="F")
    if len(tau) == 0 or B.shape[1] == 0:
        return out
    # The reflectors of a lower reduction act on rows 2 to r, as those of a QR factorisation.
    part = np.asfortranarray(out[1:])
    reflectors = np.asfortranarray(factor[1:, :-1])
    reflect(reflectors, tau, part, transposed=transposed)
    out[1:] = part
    return out


def primal_system(
    moments: Moments, map: NystromMap | None, *, penalised: bool = False
) -> PrimalSystem:
    """Centre the moments of a training set and carry them into feature space.

    Parameters
    ----------
    moments : Moments
    map : NystromMap or None
        None where the moments are those of the features already (`Moments.mapped`).
    penalised : bool, default=False
        Whether the bias is penalised like a weight, eq. (7) of [DeBrabanter2010]_ as printed.

    Returns
    -------
    PrimalSystem

    Notes
    -----
    3 m^3 operations. Centring eliminates the bias exactly: it is not regularised, unless asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data import ArraySource
    >>> from lssvm.kernels import Linear
    >>> from lssvm.moments import accumulate
    >>> from lssvm.solvers import primal_system
    >>> X = np.arange(8.0).reshape(4, 2)
    >>> moments = accumulate(Linear(), ArraySource(X, X[:, :1]), np.eye(2), [slice(0, 4)])[0]
    >>> type(primal_system(moments, None)).__name__
    'PrimalSystem'
    """
    weight = moments.weight if penalised else None
    return PrimalSystem(map, *centred(moments, map, penalised=penalised), weight)


def solve_primal(
    moments: Moments, map: NystromMap | None, C: float, *, penalised: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients (m, k) and intercepts (k,) of one model.

    A system that is not positive definite to rounding is solved with a little more
    regularisation, with a warning.

    Parameters
    ----------
    moments : Moments
        Where they are on a device, so is the work; what comes back is NumPy's.
    map : NystromMap or None
        None where the moments are those of the features already.
    C : float
    penalised : bool, default=False
        Whether the bias is penalised like a weight, eq. (7) of [DeBrabanter2010]_ as printed.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import nystrom_map
    >>> from lssvm.kernels import Linear
    >>> from lssvm.moments import Moments
    >>> from lssvm.solvers.primal import solve_primal
    >>> x = np.arange(4.0)[:, None]
    >>> coef, b = solve_primal(Moments.of(x, 3.0 - x), nystrom_map(Linear(), np.eye(1)), 1e9)
    >>> coef.round(6), b.round(6)
    (array([[-1.]]), array([3.]))
    """
    if not is_numpy(moments.gram):
        return _solve_repaired(*solve_on_device(moments, map, penalised=penalised), C)
    with small_problem(moments.size):
        system = primal_system(moments, map, penalised=penalised)
        largest = float(np.max(np.diagonal(system.A), initial=0.0))

        def solve(value: float) -> tuple[FloatArray, FloatArray]:
            coef, intercept = system.solve(np.array([value]), "cholesky")
            return coef[0], intercept[0]

        return _solve_repaired(solve, largest, C)


def _solve_repaired(
    solve: Callable[[float], tuple[FloatArray, FloatArray]], largest: float, C: float
) -> tuple[FloatArray, FloatArray]:
    """Solve for one C, with more regularisation where the system is not definite to rounding."""
    jitter = 0.0
    for _ in range(6):
        coef, intercept = solve(1.0 / (1.0 / C + jitter))
        if np.all(np.isfinite(coef)) and np.all(np.isfinite(intercept)):
            if jitter > 0:
                warnings.warn(
                    f"The system for C={C:.3g} is not positive definite to rounding; it was solved "
                    f"with C={1.0 / (1.0 / C + jitter):.3g}. Lower C, or take fewer prototypes.",
                    NumericalWarning,
                    stacklevel=3,
                )
            return coef, intercept
        jitter = max(100.0 * jitter, 1e-14 * largest)
    raise NotPositiveDefiniteError(
        f"The fixed-size system cannot be solved for C={C:.3g}: the moments overflow or are not "
        "finite. Scale the features (StandardScaler), or lower C, degree or gamma."
    )
