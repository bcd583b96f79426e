"""The fixed-size systems of all folds at once, for every C, on a device of any array library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.device import Device
from lssvm._core.errors import InvalidInputError
from lssvm._core.namespace import Array, device, get_namespace, is_numpy, to_numpy
from lssvm.moments import Moments, NystromMap

METHODS = ("auto", "cholesky", "eigen")
"""How a path of C is solved on a device."""

_SHARE = 0.2  # part of the free memory that factorisations at a time may take
_FLOOR = 1e-10  # squared errors, relative to the variance of the targets, that count as zero


@dataclass(eq=False)
class PrimalBatch:
    r"""The centred normal equations of several training sets, for every C.

    The systems of `lssvm.solvers.PrimalSystem`, one for each of v training sets, on a device.

    Attributes
    ----------
    map : NystromMap or None
        On the device. None: the moments are those of the features already.
    A : array of shape (v, r, r)
    B : array of shape (v, r, k)
    mean : array of shape (v, m)
    target_mean : array of shape (v, k)
        Not needed for the coefficients of features.
    weight : array of shape (v,) or None
        Where the bias is penalised, the sums of the weights of the rows; B then has the mean of the
        features as one more column, see `penalise_bias`. None: the bias is free.

    Notes
    -----
    "cholesky" (torch) factorises all v c systems in batches; "eigen" decomposes the v matrices once
    and any C then takes 4 r^2 k. On an H200 10 folds and 60 values of C at r = 1,000 took 43 ms and
    110 ms, at r = 10,000 8 s and 9 s: "auto" is "cholesky" with torch, and "eigen" with libraries
    that know the array-API standard alone, which has no triangular solve.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import nystrom_map
    >>> from lssvm.kernels import Linear
    >>> from lssvm.moments import Moments
    >>> from lssvm.solvers.primal_batch import primal_batch
    >>> x = np.arange(4.0)[:, None]
    >>> both = [Moments.of(x, 2.0 * x + 1.0), Moments.of(x, 3.0 - x)]
    >>> batch = primal_batch(both, nystrom_map(Linear(), np.eye(1)))
    >>> coef, intercept = batch.solve(np.array([1e6]))
    >>> coef.ravel().round(2), intercept.ravel().round(2)
    (array([ 2., -1.]), array([1., 3.]))
    """

    map: NystromMap | None
    A: Array
    B: Array
    mean: Array = None
    target_mean: Array = None
    weight: FloatArray | None = None
    _spectrum: Any = field(default=None, repr=False)

    @property
    def engine(self) -> Device:
        """Where the systems are."""
        return Device(get_namespace(self.A), device(self.A))

    def solve(self, C: FloatArray, method: str = "auto") -> tuple[Array, Array]:
        """Return coefficients (v, c, m, k) on the prototypes and intercepts (v, c, k).

        Where a system is not positive definite to rounding they are NaN.
        """
        xp, W = get_namespace(self.A), self.solve_features(C, method)
        if self.weight is not None:
            W, intercept = penalise_bias(W, self.B[..., -1], self.target_mean, self.weight, C)
            return W if self.map is None else xp.matmul(self.map.T, W), intercept
        coef = W if self.map is None else xp.matmul(self.map.T, W)
        fitted = xp.matmul(self.mean[:, None, None, :], coef)[:, :, 0, :]
        return coef, self.target_mean[:, None, :] - fitted

    def solve_features(self, C: FloatArray, method: str = "auto") -> Array:
        """Return (A + I/C)^{-1} B for all systems and values of C, shape (v, c, r, k)."""
        if method not in METHODS:
            raise InvalidInputError(
                f"solver={method!r} is not available on a device: choose one of {METHODS}, or "
                "device=None."
            )
        xp, engine = get_namespace(self.A), self.engine
        v, r, k = self.B.shape
        inverse_C = engine.put(1.0 / np.asarray(C, dtype=np.float64))
        if r == 0:
            return engine.zeros(v, len(C), 0, k)
        if method == "eigen" or not engine.is_torch:
            return self._by_eigenvectors(xp, inverse_C)
        return self._by_factors(engine, inverse_C)

    def _by_eigenvectors(self, xp: Any, inverse_C: Array) -> Array:
        if self._spectrum is None:
            lam, Q = xp.linalg.eigh(self.A)
            zero = xp.zeros((), dtype=lam.dtype, device=device(lam))
            rotated = xp.matmul(xp.linalg.matrix_transpose(Q), self.B)
            self._spectrum = xp.maximum(lam, zero), Q, rotated
        lam, Q, rotated = self._spectrum
        scaled = rotated[:, None, :, :] / (lam[:, None, :] + inverse_C[None, :, None])[..., None]
        return xp.matmul(Q[:, None, :, :], scaled)

    def _by_factors(self, engine: Device, inverse_C: Array) -> Array:
        """Factorise as many systems at a time as fit."""
        torch = engine.xp
        v, r, k = self.B.shape
        room = int(_SHARE * engine.free_bytes() // (3 * 8 * r * r))
        folds, step = max(1, min(v, room)), max(1, room // v)
        solved = torch.empty((v, len(inverse_C), r, k), dtype=self.B.dtype, device=engine.device)
        for f in range(0, v, folds):
            for i in range(0, len(inverse_C), step):
                span = slice(i, i + step)
                H = self.A[f : f + folds, None].repeat(1, len(inverse_C[span]), 1, 1)
                H.diagonal(dim1=-2, dim2=-1).add_(inverse_C[None, span, None])
                factor, info = torch.linalg.cholesky_ex(H)  # [DeBrabanter2010, eq. (7)]
                del H
                B = self.B[f : f + folds, None].expand(*factor.shape[:2], -1, -1)
                W = torch.linalg.solve_triangular(factor, B, upper=False)
                W = torch.linalg.solve_triangular(factor.mT, W, upper=True)
                solved[f : f + folds, span] = W.masked_fill_((info != 0)[..., None, None], np.nan)
        return solved


def penalise_bias(
    W: Array, mean: Array, target_mean: Array, weight: FloatArray, C: FloatArray
) -> tuple[Array, Array]:
    r"""Turn solutions with a free bias into those whose bias is penalised like a weight.

    .. math::

        (\Phi_e^T S \Phi_e + I_{m+1} / C) (w; b) = \Phi_e^T S Y

    of eq. (7) of [DeBrabanter2010]_ is, the bias eliminated, the centred system plus a matrix of
    rank one: with :math:`\mu` and :math:`\bar y` the means of features and targets, s the sum of
    the weights and :math:`\rho = s / (C s + 1)`,

    .. math::

        (A + I/C + \rho \mu \mu^T) w = B + \rho \mu \bar y^T, \qquad
        b = \frac{C s}{C s + 1} (\bar y - w^T \mu).

    Parameters
    ----------
    W : array of shape (v, c, r, k + 1)
        :math:`(A + I/C)^{-1} [B, \mu]` of v training sets and c values of C.
    mean : array of shape (v, r)
        :math:`\mu`.
    target_mean : array of shape (v, k)
    weight : array of shape (v,)
    C : array of shape (c,)

    Returns
    -------
    W : array of shape (v, c, r, k)
    intercept : array of shape (v, c, k)

    Notes
    -----
    The formula of Sherman and Morrison; 6 r c k operations for each training set.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.solvers.primal_batch import penalise_bias
    >>> W = np.zeros((1, 1, 0, 2))  # no features: the bias alone, 4 rows with a mean of 3
    >>> penalise_bias(W, np.zeros((1, 0)), np.array([[3.0]]), np.array([4.0]), np.ones(1))[1]
    array([[[2.4]]])
    """
    xp = get_namespace(W)
    C = np.asarray(C, dtype=np.float64)
    mass = np.asarray(weight, dtype=np.float64)[:, None]
    put = Device(xp, device(W)).put
    rho, share = put(mass / (C * mass + 1.0)), put(C * mass / (C * mass + 1.0))  # (v, c)
    X, x = W[..., :-1], W[..., -1:]
    X = X + rho[:, :, None, None] * x * target_mean[:, None, None, :]
    row = mean[:, None, None, :]
    fitted, own = xp.matmul(row, X), xp.matmul(row, x)  # (v, c, 1, k), (v, c, 1, 1)
    scale = rho[:, :, None, None] / (1.0 + rho[:, :, None, None] * own)
    X = X - x * (scale * fitted)
    fitted = xp.matmul(row, X)[:, :, 0, :]
    return X, share[:, :, None] * (target_mean[:, None, :] - fitted)


def primal_batch(
    training: Sequence[Moments], map: NystromMap | None, *, penalised: bool = False
) -> PrimalBatch:
    """Centre the moments of several training sets and carry them into feature space.

    Parameters
    ----------
    training : sequence of Moments
        With arrays on one device.
    map : NystromMap or None
        On that device.
    penalised : bool, default=False
        Whether the bias is penalised, see `penalise_bias`.

    Notes
    -----
    4 m^3 operations for each.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Moments
    >>> from lssvm.solvers.primal_batch import primal_batch
    >>> primal_batch([Moments.of(np.eye(3), np.ones((3, 1)))] * 2, None).A.shape
    (2, 3, 3)
    """
    parts = [centred(moments, map, penalised=penalised) for moments in training]
    weight = np.array([moments.weight for moments in training]) if penalised else None
    xp = get_namespace(parts[0][0])
    if len(parts) == 1:  # no copy of what may be large
        A, B, mean, target_mean = (array[None, ...] for array in parts[0])
    else:
        A, B, mean, target_mean = (xp.stack(list(column)) for column in zip(*parts, strict=True))
    return PrimalBatch(map, A, B, mean, target_mean, weight)


def centred(
    moments: Moments, map: NystromMap | None, *, penalised: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Return A, B, the mean of K(x, Z) and that of the targets.

    With a penalised bias B has the mean of the features as one more column.
    """
    if not moments.weight > 0:
        raise InvalidInputError("A training set is empty: use fewer folds or more rows.")
    mean = moments.border / moments.weight
    if moments.shift is not None:
        mean = mean + moments.shift
    A, p, cross = moments.gram, moments.border, moments.cross
    if map is not None:
        T = get_namespace(map.T).permute_dims(map.T, (1, 0))
        A, p, cross = map.whiten(A), T @ p, T @ cross
    target_mean = moments.target / moments.weight
    if is_numpy(A):
        A = A if map is not None else np.array(A, order="F")
        A -= np.outer(p, p / moments.weight)
    elif map is not None and hasattr(A, "addr_"):  # torch, in place
        A.addr_(p, p, alpha=-1.0 / moments.weight)
    else:
        A = A - p[:, None] * (p / moments.weight)[None, :]
    B = cross - p[:, None] * target_mean[None, :]
    if penalised:
        xp = get_namespace(B)
        own = mean if map is None else xp.permute_dims(map.T, (1, 0)) @ mean
        B = xp.concat([B, own[:, None]], axis=1)
    return A, B, mean, target_mean


def squared_errors(test: Moments, coef: Array, intercept: Array) -> Array:
    """Return the mean squared errors of candidates on a fold from its moments, shape (c, k).

    Parameters
    ----------
    test : Moments
        On the device.
    coef : array of shape (c, m, k)
    intercept : array of shape (c, k)

    Notes
    -----
    2 m^2 c k operations. Below 1e-10 of the variance of the targets an error is rounding, and 1e-10
    of it is returned.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Moments
    >>> from lssvm.solvers.primal_batch import squared_errors
    >>> test = Moments.of(np.array([[1.0], [2.0]]), np.array([[1.0], [4.0]]))
    >>> squared_errors(test, np.ones((1, 1, 1)), np.zeros((1, 1)))
    array([[2.]])
    """
    xp = get_namespace(coef)
    c, m, k = coef.shape
    flat = xp.reshape(xp.permute_dims(coef, (1, 0, 2)), (m, c * k))
    if test.shift is not None:
        intercept = intercept + xp.reshape(xp.matmul(test.shift[None, :], flat), (c, k))
    fitted = xp.reshape(xp.matmul(test.gram, flat), (m, c, k)) - 2.0 * test.cross[:, None, :]
    quadratic = xp.sum(xp.reshape(flat, (m, c, k)) * fitted, axis=0)
    shift = xp.reshape(xp.matmul(test.border[None, :], flat), (c, k))
    linear = 2.0 * intercept * (shift - test.target[None, :])
    total = test.squares[None, :] + quadratic + linear + test.weight * intercept**2
    variance = test.squares / test.weight - (test.target / test.weight) ** 2
    zero = xp.zeros((), dtype=variance.dtype, device=device(variance))
    return xp.maximum(total / test.weight, _FLOOR * xp.maximum(variance, zero)[None, :])


def solve_on_device(
    moments: Moments, map: NystromMap | None, *, penalised: bool = False
) -> tuple[Callable[[float], tuple[FloatArray, FloatArray]], float]:
    """Return how one training set on a device is solved for a C, and its largest diagonal entry.

    Parameters
    ----------
    moments : Moments
    map : NystromMap or None
    penalised : bool, default=False

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import nystrom_map
    >>> from lssvm.kernels import Linear
    >>> from lssvm.moments import Moments
    >>> from lssvm.solvers.primal_batch import solve_on_device
    >>> x = np.arange(4.0)[:, None]
    >>> solve, _ = solve_on_device(Moments.of(x, 3.0 - x), nystrom_map(Linear(), np.eye(1)))
    >>> solve(1e9)[0].round(6)
    array([[-1.]])
    """
    batch = primal_batch([moments], map, penalised=penalised)
    xp = get_namespace(batch.A)
    largest = float(xp.max(xp.linalg.diagonal(batch.A))) if batch.A.shape[1] else 0.0

    def solve(C: float) -> tuple[FloatArray, FloatArray]:
        coef, intercept = batch.solve(np.array([C]))
        return to_numpy(coef)[0, 0], to_numpy(intercept)[0, 0]

    return solve, largest
