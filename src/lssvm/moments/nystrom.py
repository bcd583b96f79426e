"""The Nystrom map from kernel values at the prototypes to features of finite dimension."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from lssvm._core.arrays import (
    Array,
    FloatArray,
    IntArray,
    float_rows,
    get_namespace,
    is_numpy,
    to_numpy,
)
from lssvm._core.blocks import small_problem
from lssvm._core.device import is_foreign
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError, NumericalWarning
from lssvm._core.lapack import congruence
from lssvm._core.magnitudes import check_gram
from lssvm.kernels import Kernel

_NOT_FINITE = (
    "The kernel between prototypes is not finite: scale the features (StandardScaler), or lower "
    "degree or gamma."
)
_FACTORED = 12_000  # prototypes above which the eigenvectors of K(Z, Z) take too long on a GPU
_ITERATIONS = 8
_NOISE = 0.1  # rounding of the gram in any direction, in units of eps n (measured)


@dataclass(frozen=True, eq=False)
class NystromMap:
    r"""The map :math:`\varphi(x) = T^T k(x)` with :math:`k(x) = K(x, Z)`.

    Attributes
    ----------
    T : array of shape (m, r)
        :math:`U \Lambda^{-1/2}` of the eigenpairs that were kept: :math:`T^T K_{ZZ} T = I`.
    eigenvalues : array of shape (r,)
        Descending.
    cut : float
        Eigenvalues up to this one were dropped.

    Notes
    -----
    Features whose inner products reproduce the kernel between prototypes; the model
    :math:`w^T \varphi(x) + b` is the expansion with coefficients :math:`T w` on the prototypes.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import nystrom_map
    >>> from lssvm.kernels import Linear
    >>> nystrom_map(Linear(), np.eye(2)).transform(np.array([[3.0, 4.0]])).shape
    (1, 2)
    """

    T: FloatArray
    eigenvalues: FloatArray
    cut: float

    @property
    def rank(self) -> int:
        """Number of features r."""
        return int(self.T.shape[1])

    def transform(self, K: FloatArray) -> FloatArray:
        """Return the features (n, r) of rows given by their kernel values ``K`` (n, m).

        Parameters
        ----------
        K : array of shape (n, m)
            Kernel values of the rows and the prototypes.
        """
        return np.asarray(K @ self.T)  # [DeBrabanter2010, eq. (5)]

    def on_host(self) -> NystromMap:
        """Return the same as NumPy arrays, where they are on a device."""
        return NystromMap(to_numpy(self.T), to_numpy(self.eigenvalues), self.cut)

    def whiten(self, gram: FloatArray) -> FloatArray:
        r"""Return :math:`T^T G T` for a symmetric ``gram`` G (m, m), shape (r, r).

        Parameters
        ----------
        gram : array of shape (m, m)
            Symmetric.

        Notes
        -----
        With G = L + L^T (L lower triangular, half the diagonal) it is
        :math:`(L^T T)^T T + T^T (L^T T)`: a triangular product and a symmetric rank-2r update,
        3 m^3 operations instead of 4. Only the lower triangle is filled.
        """
        if not is_numpy(self.T):
            T = get_namespace(self.T).permute_dims(self.T, (1, 0))
            return T @ (gram @ self.T)  # type: ignore[no-any-return]
        half = np.array(gram, order="F")
        half[np.diag_indices_from(half)] *= 0.5
        return congruence(half, np.asfortranarray(self.T))


def nystrom_map(
    kernel: Kernel, Z: FloatArray, *, tol: float | None = None, gram: FloatArray | None = None
) -> NystromMap:
    r"""Build the Nystrom map of a kernel on prototypes.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    Z : array of shape (m, d)
        Prototypes; duplicates are harmless, they only add eigenvalues of zero. An array of another
        library than NumPy gives a map on its device.
    tol : float, optional
        Eigenvalues up to ``tol`` times the trace of K(Z, Z) are dropped. By default
        :math:`\sqrt{\epsilon / (10 m)}`, about 1.5e-10 for 1,000 prototypes.
    gram : array of shape (m, m), optional
        K(Z, Z) where it is known.

    Returns
    -------
    NystromMap

    Notes
    -----
    [DeBrabanter2010]_, eq. (5). The printed map divides by the square root of every eigenvalue.
    The gram :math:`G = K_{nm}^T K_{nm}` that it is applied to carries a rounding error of about
    :math:`\epsilon n / 10` in every direction (once near-constant kernels are shifted, see
    `lssvm.moments.Moments`), which becomes :math:`\epsilon n / (10 \lambda)` after the map,
    while the signal in a direction of eigenvalue :math:`\lambda` is about
    :math:`(n / m) \lambda` (G is about (n/m) K^2 where the prototypes represent the rows). The
    default keeps the directions whose signal exceeds the error,
    :math:`\lambda^2 > \epsilon m / 10` for a kernel with unit diagonal; n cancels. What is dropped
    contributed at most :math:`C n \lambda / m` to the fit.

    About 9 m^3 operations, 3 m^2 numbers at the peak. With torch on a device, more than 12,000
    prototypes are mapped by the Cholesky factor of K(Z, Z) instead: features with the same inner
    products. Where an eigenvalue is below what would be dropped, that much is added to all.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import nystrom_map
    >>> from lssvm.kernels import RBF
    >>> Z = np.array([[0.0], [1.0], [2.0], [2.0]])
    >>> map = nystrom_map(RBF(1.0), Z)
    >>> F = map.transform(RBF(1.0)(Z, Z))
    >>> map.rank, bool(np.allclose(F @ F.T, RBF(1.0)(Z, Z)))
    (3, True)
    """
    m = int(np.shape(Z)[0])
    if tol is None:
        tol = float(np.sqrt(_NOISE * np.finfo(np.float64).eps / m))
    if is_foreign(Z):
        return _device_map(kernel(Z, Z) if gram is None else gram, tol)
    Z = float_rows(Z)
    K = np.array(kernel(Z, Z), dtype=np.float64) if gram is None else np.array(gram)
    if not np.all(np.isfinite(K)):
        raise InvalidInputError(_NOT_FINITE)
    check_gram(np.diagonal(K))
    trace = float(np.trace(K))
    with small_problem(m):
        lam, U = eigh(K.T, overwrite_a=True, check_finite=False, driver="evd")
    keep, cut = _kept(lam, trace, tol)
    if len(keep) == 0:  # a kernel that is zero on the prototypes: no features, the bias is left
        return NystromMap(np.zeros((m, 0)), np.zeros(0), cut)
    T = np.asfortranarray(U[:, keep] / np.sqrt(lam[keep]))
    return NystromMap(T, lam[keep], cut)


def _kept(lam: FloatArray, trace: float, tol: float) -> tuple[IntArray, float]:
    """Return which eigenvalues (ascending) are kept, largest first, and the cut."""
    cut = tol * max(trace, 0.0)
    if lam[0] < -1e3 * cut or trace <= 0.0:
        warnings.warn(
            f"The kernel is not positive semidefinite on the prototypes (eigenvalue {lam[0]:.3g}, "
            f"largest {lam[-1]:.3g}): negative directions are left out.",
            NumericalWarning,
            stacklevel=3,
        )
    return np.flatnonzero(lam > cut)[::-1], cut


def _device_map(K: Array, tol: float) -> NystromMap:
    """Return the map on the device of ``K`` (m, m)."""
    xp, m = get_namespace(K), int(K.shape[0])
    if not bool(xp.all(xp.isfinite(K))):
        raise InvalidInputError(_NOT_FINITE)
    trace = float(xp.linalg.trace(K))
    if m > _FACTORED and hasattr(xp.linalg, "solve_triangular"):
        return _factor_map(K, tol * max(trace, 0.0))
    lam, U = xp.linalg.eigh(K)
    keep, cut = _kept(to_numpy(lam), trace, tol)
    first = m - len(keep)  # ascending: what is kept comes last
    U, lam = xp.flip(U[:, first:], axis=1), xp.flip(lam[first:])
    return NystromMap(U / xp.sqrt(lam)[None, :], lam, cut)


def _factor_map(K: Array, cut: float) -> NystromMap:
    """Return the map by the Cholesky factor of K: the same inner products, not the same axes.

    Where K is singular to the precision that is left (an eigenvalue below ``cut``), ``cut`` is
    added to its diagonal.
    """
    torch = get_namespace(K)
    factor, info = torch.linalg.cholesky_ex(K)
    if int(info) != 0 or _smallest(torch, factor) < cut:
        K = K.clone()
        K.diagonal().add_(cut)
        factor, info = torch.linalg.cholesky_ex(K)
        if int(info) != 0:
            raise NotPositiveDefiniteError(
                "The kernel is not positive definite on the prototypes: use another kernel, or at "
                f"most {_FACTORED} prototypes, whose negative directions are left out."
            )
        warnings.warn(
            f"The kernel between {K.shape[0]} prototypes is singular to rounding; {cut:.3g} was "
            "added to its diagonal. A larger gamma or fewer prototypes avoid that.",
            NumericalWarning,
            stacklevel=4,
        )
    diagonal = factor.diagonal() ** 2
    eye = torch.eye(K.shape[0], dtype=K.dtype, device=K.device)
    return NystromMap(torch.linalg.solve_triangular(factor.T, eye, upper=True), diagonal, cut)


def _smallest(torch: Any, factor: Array) -> float:
    """Estimate the smallest eigenvalue of L L^T by inverse iteration."""
    vector = torch.ones((factor.shape[0], 1), dtype=factor.dtype, device=factor.device)
    vector[::2] = -1.0
    size = 1.0
    for _ in range(_ITERATIONS):
        vector = vector / torch.linalg.vector_norm(vector)
        vector = torch.cholesky_solve(vector, factor)
        size = float(torch.linalg.vector_norm(vector))
    return 1.0 / size
