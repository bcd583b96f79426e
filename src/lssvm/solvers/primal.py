"""The fixed-size model in the primal: ridge regression on features, from moments, for many C.

First the systems of all folds at once on a device of any array library; then one system on a host,
paths of C of several training sets, and leave-one-out predictions in closed form.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.linalg.lapack import dptsv

from lssvm._core.arrays import (
    Array,
    Device,
    FloatArray,
    IntArray,
    device,
    float_rows,
    get_namespace,
    is_numpy,
    to_numpy,
)
from lssvm._core.blocks import run_blocks, slices, small_problem
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError, NumericalWarning
from lssvm._core.lapack import reflect, tridiagonalise
from lssvm.kernels import Kernel
from lssvm.solvers.moments import Moments, NystromMap
from lssvm.solvers.pcg import FUNCTION, preconditioner_rows

METHODS = ("auto", "cholesky", "eigen", "tridiagonal")
"""How a path of C is solved."""
Bias: TypeAlias = Literal["free", "penalised", "none"]
"""Of a model: in no penalty, with the ridge of a weight [DeBrabanter2010, eq. (7)], or 0."""
DEVICE_METHODS = ("auto", "cholesky", "eigen")
"""How a path of C is solved on a device."""

_SHARE = 0.2  # part of the free memory that factorisations at a time may take
_FLOOR = 1e-10  # squared errors, relative to the variance of the targets, that count as zero


@dataclass(eq=False)
class PrimalBatch:
    """The centred normal equations of several training sets, for every C.

    The systems of `PrimalSystem`, one for each of v training sets, on a device.

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
        Where the bias is not free, the sums of the weights of the rows; B then has the mean of the
        features as one more column, see `bind_bias`. None: the bias is free.
    bias : {"free", "penalised", "none"}
    """

    map: NystromMap | None
    A: Array
    B: Array
    mean: Array = None
    target_mean: Array = None
    weight: FloatArray | None = None
    bias: Bias = "free"
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
            known = (self.B[..., -1], self.target_mean, self.weight)
            W, intercept = bind_bias(W, *known, C, self.bias)
            return W if self.map is None else xp.matmul(self.map.T, W), intercept
        coef = W if self.map is None else xp.matmul(self.map.T, W)
        fitted = xp.matmul(self.mean[:, None, None, :], coef)[:, :, 0, :]
        return coef, self.target_mean[:, None, :] - fitted

    def solve_features(self, C: FloatArray, method: str = "auto") -> Array:
        """Return (A + I/C)^{-1} B for all systems and values of C, shape (v, c, r, k)."""
        if method not in DEVICE_METHODS:
            raise InvalidInputError(
                f"solver={method!r} is not available on a device: choose one of "
                f"{DEVICE_METHODS}, or device=None."
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


def bind_bias(
    W: Array, mean: Array, target_mean: Array, weight: FloatArray, C: FloatArray, bias: Bias
) -> tuple[Array, Array]:
    r"""Turn solutions with a free bias into those whose bias is penalised like a weight, or none.

    .. math::

        (\Phi_e^T S \Phi_e + I_{m+1} / C) (w; b) = \Phi_e^T S Y

    of eq. (7) of [DeBrabanter2010] is, the bias eliminated, the centred system plus a matrix of
    rank one: with :math:`\mu` and :math:`\bar y` the means of features and targets, s the sum of
    the weights and :math:`\rho = s / (C s + 1)`,

    .. math::

        (A + I/C + \rho \mu \mu^T) w = B + \rho \mu \bar y^T, \qquad
        b = \frac{C s}{C s + 1} (\bar y - w^T \mu).

    Without a bias the ridge of b is infinite: :math:`\rho = s` and b = 0.
    """
    xp = get_namespace(W)
    C = np.asarray(C, dtype=np.float64)
    mass = np.asarray(weight, dtype=np.float64)[:, None]
    put = Device(xp, device(W)).put
    share = C * mass / (C * mass + 1.0) if bias == "penalised" else np.zeros_like(C * mass)
    rho, share = put(mass * (1.0 - share)), put(share)  # (v, c)
    X, x = W[..., :-1], W[..., -1:]
    X = X + rho[:, :, None, None] * x * target_mean[:, None, None, :]
    row = mean[:, None, None, :]
    fitted, own = xp.matmul(row, X), xp.matmul(row, x)  # (v, c, 1, k), (v, c, 1, 1)
    scale = rho[:, :, None, None] / (1.0 + rho[:, :, None, None] * own)
    X = X - x * (scale * fitted)
    fitted = xp.matmul(row, X)[:, :, 0, :]
    return X, share[:, :, None] * (target_mean[:, None, :] - fitted)


def primal_batch(
    training: Sequence[Moments], map: NystromMap | None, *, bias: Bias = "free"
) -> PrimalBatch:
    """Centre the moments of several training sets and carry them into feature space."""
    parts = [centred(moments, map, bias=bias) for moments in training]
    weight = None if bias == "free" else np.array([moments.weight for moments in training])
    xp = get_namespace(parts[0][0])
    if len(parts) == 1:  # no copy of what may be large
        A, B, mean, target_mean = (array[None, ...] for array in parts[0])
    else:
        A, B, mean, target_mean = (xp.stack(list(column)) for column in zip(*parts, strict=True))
    return PrimalBatch(map, A, B, mean, target_mean, weight, bias)


def centred(
    moments: Moments, map: NystromMap | None, *, bias: Bias = "free"
) -> tuple[Array, Array, Array, Array]:
    """Return A, B, the mean of K(x, Z) and that of the targets.

    Where the bias is not free, B has the mean of the features as one more column.
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
    if bias != "free":
        xp = get_namespace(B)
        own = mean if map is None else xp.permute_dims(map.T, (1, 0)) @ mean
        B = xp.concat([B, own[:, None]], axis=1)
    return A, B, mean, target_mean


_FEW = 5
"""Up to so many values of C a Cholesky factorisation for each is cheaper than a reduction."""


@dataclass(eq=False)
class PrimalSystem:
    r"""The centred normal equations of a training set in feature space, for every C.

    .. math::

        (A + I/C) w = B, \quad
        A = T^T (G - g g^T / s) T, \quad B = T^T (c - g t^T / s), \quad
        b = (t - g^T T w) / s,

    with G, g, c, t, s the gram, border, cross, target and weight of `Moments`. This
    is [DeBrabanter2010], eq. (7), with the bias eliminated instead of regularised, so that with
    all rows as prototypes it is the dual model. With ``weight`` it is eq. (7) as printed.

    Attributes
    ----------
    map : NystromMap or None
        None: the moments are those of the features already, and so are the coefficients.
    A : array of shape (r, r)
        Its lower triangle; overwritten by a reduction.
    B : array of shape (r, k)
        Centred products of features and targets.
    mean : array of shape (m,)
        Mean of K(x, Z): g / s, the shift of the moments added.
    target_mean : array of shape (k,)
        t / s.
    weight : float or None
        s, where the bias is not free; B then has the mean of the features as one more column, see
        `bind_bias`. None: the bias is free.
    bias : {"free", "penalised", "none"}
    """

    map: NystromMap | None
    A: FloatArray
    B: FloatArray
    mean: FloatArray
    target_mean: FloatArray
    weight: float | None = None
    bias: Bias = "free"
    _reduced: Any = field(default=None, repr=False)

    def solve(self, C: FloatArray, method: str = "auto") -> tuple[FloatArray, FloatArray]:
        """Return coefficients on the prototypes (c, m, k) and intercepts (c, k) for all ``C``."""
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
            bound, b = bind_bias(free, mean, target, np.array([self.weight]), C, self.bias)
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


def primal_system(moments: Moments, map: NystromMap | None, *, bias: Bias = "free") -> PrimalSystem:
    """Centre the moments of a training set and carry them into feature space."""
    weight = None if bias == "free" else moments.weight
    return PrimalSystem(map, *centred(moments, map, bias=bias), weight, bias)


def solve_primal(
    moments: Moments, map: NystromMap | None, C: float, *, bias: Bias = "free"
) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients (m, k) and intercepts (k,) of one model.

    A system that is not positive definite to rounding is solved with a little more
    regularisation, with a warning.
    """
    with small_problem(moments.size):
        paths, jitter = fold_paths([moments], map, bias=bias), 0.0
        for _ in range(6):
            repaired = 1.0 / (1.0 / C + jitter)
            ((coefs, intercepts),) = paths.solve(np.array([repaired]), "cholesky")
            coef, intercept = to_numpy(coefs)[0], to_numpy(intercepts)[0]
            if np.all(np.isfinite(coef)) and np.all(np.isfinite(intercept)):
                if jitter > 0:
                    warnings.warn(
                        f"The system for C={C:.3g} is not positive definite to rounding; it was "
                        f"solved with C={repaired:.3g}. Lower C, or take fewer prototypes.",
                        NumericalWarning,
                        stacklevel=2,
                    )
                return coef, intercept
            jitter = max(100.0 * jitter, 1e-14 * paths.largest)
    raise NotPositiveDefiniteError(
        f"The fixed-size system cannot be solved for C={C:.3g}: the moments overflow or are not "
        "finite. Scale the features (StandardScaler), or lower C, degree or gamma."
    )


_RIDGE = 1e-11  # of the gram's mean diagonal: what rounding takes from wide Gaussian kernels


def solve_on_prototypes(
    moments: Moments, gram: FloatArray, C: float
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients (m, k) on the prototypes and intercepts (k,), without a map to features.

    Minimises a'K a / 2 + C/2 sum s (y - a'k(x) - b)^2 for every output: [DeBrabanter2010], eq.
    (7), in the coordinates of the prototypes, the bias eliminated. One Cholesky factorisation, m^3
    / 3 operations, where the map of `solve_primal` takes nine times m^3 first: for some thousand
    prototypes with a few values of C. A tiny ridge gives back what rounding takes
    from a smooth kernel.
    """
    A, B, mean, target_mean = centred(moments, None)
    ridge = _RIDGE * max(float(np.diagonal(A).mean()), np.finfo(np.float64).tiny)
    A += gram / C
    for _ in range(6):
        A[np.diag_indices_from(A)] += ridge
        try:
            factor = cho_factor(A, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            ridge = max(100.0 * ridge, 1e-14 * float(np.diagonal(moments.gram).max()))
            continue
        coef = np.asarray(cho_solve(factor, B, check_finite=False))
        return coef, np.asarray(target_mean - mean @ coef)
    raise NotPositiveDefiniteError(
        f"The system of {len(A)} prototypes is not positive definite for C={C:.3g}: scale the "
        "features, or lower C or gamma."
    )


@dataclass(frozen=True, eq=False)
class FoldPaths:
    """Systems of several training sets, reduced so that every further value of C is cheap.

    They are systems of the host, one each, or a batch on a device.
    """

    systems: list[PrimalSystem] | PrimalBatch
    threads: int = 1

    @property
    def largest(self) -> float:
        """The largest diagonal entry of the first system."""
        A = self.systems[0].A if isinstance(self.systems, list) else self.systems.A[0, ...]
        return float(np.max(to_numpy(get_namespace(A).linalg.diagonal(A)), initial=0.0))

    def solve(self, C: FloatArray, method: str = "auto") -> list[tuple[Array, Array]]:
        """Return coefficients (c, m, k) and intercepts (c, k) of each training set."""
        if isinstance(self.systems, list):
            m = max(len(system.B) for system in self.systems)
            return run_blocks(
                lambda system: system.solve(C, method),
                self.systems,
                self.threads,
                operations=len(self.systems) * m**2 * (m + len(C)),
            )
        coef, intercept = self.systems.solve(C, method)
        return [(coef[v, ...], intercept[v, ...]) for v in range(int(coef.shape[0]))]


def fold_paths(
    training: Sequence[Moments],
    map: NystromMap | None,
    *,
    threads: int = 1,
    bias: Bias = "free",
) -> FoldPaths:
    """Prepare the systems of several training sets."""
    if is_numpy(training[0].gram):

        def prepare(moments: Moments) -> PrimalSystem:
            return primal_system(moments, map, bias=bias)

        operations = len(training) * len(training[0].gram) ** 3
        return FoldPaths(run_blocks(prepare, training, threads, operations=operations), threads)
    return FoldPaths(primal_batch(training, map, bias=bias))


def output_errors(test: Moments, coef: Array, intercept: Array) -> FloatArray:
    """Return the mean squared errors (c, k) of models on the rows of some moments, by output.

    Nothing is read again: y^T y - 2 w^T cross + w^T gram w. No rows: zero. Errors that rounding
    makes negative are a small part of the variance.
    """
    if not test.weight > 0:
        return np.zeros(intercept.shape)
    errors = to_numpy(test.squared_error(coef, intercept)) / test.weight
    variance = to_numpy(test.squares) / test.weight - (to_numpy(test.target) / test.weight) ** 2
    errors = np.maximum(errors, _FLOOR * np.maximum(variance, 0.0))
    return np.asarray(np.where(np.isnan(errors), np.inf, errors))


def mean_squared_error(test: Moments, coef: Array, intercept: Array) -> FloatArray:
    """Return the mean squared errors (c,) of models, averaged over the outputs."""
    return np.asarray(output_errors(test, coef, intercept).mean(axis=1))


_BLOCK = 1024


def leave_out_predictions(
    kernel: Kernel,
    X: FloatArray,
    Y: FloatArray,
    Z: FloatArray,
    folds: Sequence[IntArray],
    moments: Moments,
    map: NystromMap,
    C: FloatArray,
    weight: FloatArray | None,
    *,
    threads: int = 1,
) -> FloatArray:
    r"""Return what every row would be predicted by a model trained without its fold.

    A fold of equal rows is one row of weight :math:`s` and target :math:`\bar y`. Its prediction
    p with the fold in the training set becomes :math:`\bar y - (\bar y - p) / (1 - s h)` without
    it, :math:`h = 1/S + \tilde\varphi^T (A + I/C)^{-1} \tilde\varphi` with the centred feature
    :math:`\tilde\varphi` and S the total weight ([Cawley2004]). The prototypes are not left out:
    they only say where basis functions are.

    One eigendecomposition of A and one pass of n m (2 r + 2 c + 2 c k) operations; memory c n k
    numbers.
    """
    n, k = Y.shape
    system = primal_system(moments, map)
    lam, QB, Q = system.spectrum()
    d = 1.0 / (lam[:, None] + 1.0 / np.asarray(C, dtype=np.float64)[None, :])  # (r, c)
    W = (d[:, :, None] * QB[:, None]).reshape(len(lam), -1)  # (r, c k)
    rotation = map.T @ Q  # (m, r): centred kernel values to rotated features
    Z = float_rows(Z)
    fitted, hat = np.empty((len(C), n, k)), np.empty((len(C), n))

    def fill(part: slice) -> None:
        K = np.asarray(kernel(float_rows(X[part]), Z)) - system.mean
        P = K @ rotation
        values = (P @ W).reshape(-1, len(C), k) + system.target_mean
        fitted[:, part] = np.moveaxis(values, 1, 0)
        hat[:, part] = (np.square(P) @ d).T + 1.0 / moments.weight

    run_blocks(fill, slices(n, _BLOCK), threads)
    return without_fold(fitted, hat, Y, number_folds(folds, n), weight)[0]


def number_folds(folds: Sequence[IntArray], n: int) -> IntArray:
    """Return the number of the fold of each of n rows, all of which are in one."""
    fold_of = np.empty(n, dtype=np.intp)
    fold_of[np.concatenate(folds)] = np.repeat(np.arange(len(folds)), [len(f) for f in folds])
    return fold_of


def without_fold(
    fitted: FloatArray, hat: FloatArray, Y: FloatArray, fold_of: IntArray, weight: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return predictions (..., n, k) by models without the fold of a row, and 1 - mass hat.

    ``fitted`` (..., n, k) are the outputs of the model of all rows, ``hat`` (..., n) the diagonal
    of its hat matrix for rows of weight one.
    """
    n, k = Y.shape
    s = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    mass = np.bincount(fold_of, s)  # weight of each fold
    sums = np.stack([np.bincount(fold_of, s * Y[:, j]) for j in range(k)], 1)
    mean = (sums / np.where(mass > 0, mass, 1.0)[:, None])[fold_of]
    left = 1.0 - mass[fold_of] * hat
    left = np.where(left > 1e-12, left, np.nan)  # nothing would be left to learn from
    return np.asarray(mean - (mean - fitted) / left[..., None]), left  # [Cawley2004]


_ITERATIONS = 25  # that "auto" reckons with
_MANY = 2000  # prototypes up to which it does not reckon: moments are a matter of seconds
_GAIN = 2.0  # how many times fewer operations "auto" requires: moments can be used again


def choose_primal(
    n: int,
    m: int,
    d: int,
    k: int,
    *,
    n_cells: int = 1,
    n_groups: int = 1,
    budget: int,
    threads: int = 1,
) -> str:
    """Return what ``solver="auto"`` of the fixed-size model means: "direct" or "pcg".

    Conjugate gradients where the moments of all cells do not fit into the memory budget, or where,
    for more than 2,000 prototypes, they and the direct solution take more than twice as many
    operations as 25 iterations and the preconditioner. (Moments are worth something: rows can be
    added, error bars computed.)
    """
    moments = 8 * m * (m + k + 1) * (n_cells + max(2 * threads, 4))
    if moments > budget or m <= _MANY:
        return "pcg" if moments > budget else "direct"
    direct = 2 * n * m**2 + 2 * n * m * d + (13 + 4 * (n_groups - 1)) * m**3
    iterate = _ITERATIONS * n * m * (2 * d + 4 * k + FUNCTION)
    group = 2 * preconditioner_rows(n, m, d, k) * m**2 + m**3
    return "pcg" if direct > _GAIN * (iterate + n_groups * group) else "direct"
