"""The feature space of many prototypes: a Cholesky factor of their kernel, and preconditioners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lssvm._core.arrays import (
    Array,
    FloatArray,
    IntArray,
    device,
    get_namespace,
    is_numpy,
    to_numpy,
)
from lssvm._core.blocks import run_blocks, slices
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError
from lssvm._core.lapack import add_outer, factorise_triangle, solve_triangle
from lssvm.kernels import Kernel

_JITTER = 1e-12  # added to the kernel's diagonal, relative to its sum


_ROUNDING = 1e-15  # added to a preconditioner's diagonal, relative to its sum


_RETRIES = 6


_BLOCK = 512


@dataclass(frozen=True, eq=False)
class PreconditionerRows:
    """Outputs that are trained on the same rows with the same C, and rows that stand for theirs.

    Attributes
    ----------
    columns : int array
        Which outputs.
    C : float
        Regularisation.
    X : array of shape (p, d)
        Rows of the training set, or all of it.
    weight : array of shape (p,)
        Of the rows of X.
    prototype_weight : float
        Weight of every prototype, taken as one more row.
    """

    columns: IntArray
    C: float
    X: Array
    weight: Array
    prototype_weight: float


class FeatureSpace(Protocol):
    """Coordinates w = U beta with K(Z, Z) = U^T U, and preconditioners in them."""

    def lift(self, V: Array) -> Array:
        """Return the coefficients U^-1 V on the prototypes, shape (m, k)."""

    def lower(self, G: Array) -> Array:
        """Return U^-T G for gradients G (m, k) with respect to the coefficients."""

    def add(self, group: PreconditionerRows) -> None:
        """Factorise the preconditioner of a group."""

    def clear(self) -> None:
        """Forget the preconditioners."""

    def precondition(self, R: Array, columns: IntArray) -> Array:
        """Solve with the preconditioners of the outputs ``columns`` (k,), for R (m, k)."""


def make_space(kernel: Kernel, Z: Array, *, threads: int = 1) -> FeatureSpace:
    """Return the feature space of prototypes ``Z`` (m, d), on the device that they are on."""
    if is_numpy(Z):
        return PackedSpace(kernel, np.asarray(Z, dtype=np.float64), threads=threads)
    return ArraySpace(kernel, Z)


class PackedSpace:
    r"""A feature space in main memory: two triangular factors in one buffer of (m + 1) m numbers.

    Attributes
    ----------
    jitter : float
        What was added to the diagonal of K(Z, Z).

    The upper triangle of rows 0 to m - 1 holds U, the lower triangle of rows 1 to m the factor L of
    the first group's preconditioner

    .. math:: L L^T = \sum_j q_j (u_j - \bar u)(u_j - \bar u)^T + I/C, \qquad u_j = U^{-T} k(x_j),

    over some rows of weight q_j (further groups have a matrix of their own). With the prototypes
    alone and no centring that is the preconditioner of [Rudi2017], section 3,
    :math:`T T^T / M + \lambda I` up to a factor. Nothing else of size m^2 is allocated: a
    factorisation that fails is started again from the kernel, with a hundred times the jitter.

    Cost: m^2 d + m^3/3 operations, and for a group of p rows 2 p m^2 + 2/3 m^3.
    """

    def __init__(self, kernel: Kernel, Z: FloatArray, *, threads: int = 1) -> None:
        m = len(Z)
        self.kernel, self.Z, self.threads = kernel, Z, threads
        self._room = np.empty((m + 1, m), order="F")
        self._upper, self._first = self._room[:m], self._room[1:]
        self._groups: list[tuple[IntArray, FloatArray]] = []
        scale = _JITTER * _kernel_trace(kernel, Z)
        for attempt in range(_RETRIES):
            self.jitter = scale * 100.0**attempt
            self._fill()
            if factorise_triangle(self._upper, lower=False):
                return
        raise _indefinite(self.jitter)

    def _fill(self) -> None:
        m = len(self.Z)

        def fill(part: slice) -> None:
            values = np.asarray(self.kernel(self.Z[part], self.Z[: part.stop]))
            self._upper[: part.stop, part] = values.T

        run_blocks(fill, slices(m, _BLOCK), self.threads)
        self._upper[np.diag_indices(m)] += self.jitter

    def lift(self, V: FloatArray) -> FloatArray:
        """Return the coefficients U^-1 V on the prototypes, shape (m, k)."""
        out = np.array(V, order="F")
        solve_triangle(self._upper, out, lower=False, transposed=False)
        return out

    def lower(self, G: FloatArray) -> FloatArray:
        """Return U^-T G for gradients G (m, k) with respect to the coefficients."""
        out = np.array(G, order="F")
        solve_triangle(self._upper, out, lower=False, transposed=True)
        return out

    def clear(self) -> None:
        """Forget the preconditioners."""
        self._groups = []

    def add(self, group: PreconditionerRows) -> None:
        """Factorise the preconditioner of a group."""
        m = len(self.Z)
        L = np.empty((m, m), order="F") if self._groups else self._first
        ridge = 1.0 / group.C
        for attempt in range(_RETRIES):
            size = self._moments(L, group)
            L[np.diag_indices(m)] += ridge + (_ROUNDING * size * 100.0**attempt)
            if factorise_triangle(L, lower=True):
                self._groups.append((group.columns, L))
                return
        raise _indefinite(_ROUNDING * size * 100.0**attempt)

    def _moments(self, L: FloatArray, group: PreconditionerRows) -> float:
        """Put the centred second moments of a group into the lower triangle; return their trace."""
        m = len(self.Z)
        for j in range(m):
            L[j:, j] = 0.0
        mean, total = np.zeros(m), 0.0
        root = np.sqrt(np.asarray(group.weight, dtype=np.float64))
        for part in slices(len(group.X), _BLOCK):
            X = np.asarray(group.X[part], dtype=np.float64)
            K = np.ascontiguousarray(self.kernel(X, self.Z), dtype=np.float64)
            B = (K * root[part, None]).T
            solve_triangle(self._upper, B, lower=False, transposed=True)
            mean += B @ root[part]
            total += float(root[part] @ root[part])
            add_outer(L, B)
        for part in slices(m, _BLOCK) if group.prototype_weight > 0 else []:
            B = np.array(self._upper[: part.stop, part], order="F")
            B[part.start :] = np.triu(B[part.start :])  # below lies the other factor
            mean[: part.stop] += group.prototype_weight * B.sum(axis=1)
            total += group.prototype_weight * B.shape[1]
            add_outer(L[: part.stop, : part.stop], B, group.prototype_weight)
        trace = float(L.diagonal().sum())
        add_outer(L, np.asfortranarray(mean[:, None]), -1.0 / total)
        return trace

    def precondition(self, R: FloatArray, columns: IntArray) -> FloatArray:
        """Solve with the preconditioners of the outputs ``columns`` (k,), for R (m, k)."""
        out = np.empty_like(R, order="F")
        for own, L in self._groups:
            at = np.flatnonzero(np.isin(columns, own))
            if len(at):
                part = np.array(R[:, at], order="F")
                solve_triangle(L, part, lower=True, transposed=False)
                solve_triangle(L, part, lower=True, transposed=True)
                out[:, at] = part
        return out


class ArraySpace:
    """A feature space of any array library, on the device of its prototypes.

    Attributes
    ----------
    jitter : float
    """

    def __init__(self, kernel: Kernel, Z: Array) -> None:
        self.kernel, self.Z = kernel, Z
        self._xp = get_namespace(Z)
        self._groups: list[tuple[IntArray, _Triangle]] = []
        scale = _JITTER * _kernel_trace(kernel, Z)
        self._root, self.jitter = self._factorise(kernel(Z, Z), 0.0, scale)

    def _factorise(self, A: Array, ridge: float, scale: float) -> tuple[_Triangle, float]:
        """Return the lower factor of A + (ridge + jitter) I, and the jitter."""
        xp = self._xp
        eye = xp.eye(A.shape[0], dtype=A.dtype, device=device(A))
        for attempt in range(_RETRIES):
            jitter = float(scale * 100.0**attempt)
            try:
                factor = xp.linalg.cholesky(A + (ridge + jitter) * eye)
            except Exception as error:  # every library has an error of its own
                if "LinAlg" not in type(error).__name__:
                    raise
                continue
            if bool(xp.all(xp.isfinite(xp.linalg.diagonal(factor)))):
                return _Triangle.of(xp, factor), jitter
        raise _indefinite(jitter)

    def lift(self, V: Array) -> Array:
        """Return the coefficients U^-1 V on the prototypes, shape (m, k)."""
        return self._root.solve(V, transposed=True)

    def lower(self, G: Array) -> Array:
        """Return U^-T G for gradients G (m, k) with respect to the coefficients."""
        return self._root.solve(G)

    def clear(self) -> None:
        """Forget the preconditioners."""
        self._groups = []

    def add(self, group: PreconditionerRows) -> None:
        """Factorise the preconditioner of a group."""
        xp, m, like = self._xp, self.Z.shape[0], self._root.L
        W = xp.zeros((m, m), dtype=like.dtype, device=device(like))
        mean = xp.zeros((m, 1), dtype=like.dtype, device=device(like))
        each, total = float(group.prototype_weight), float(xp.sum(group.weight))
        total += m * each
        for part in slices(group.X.shape[0], 8 * _BLOCK):
            root = xp.sqrt(group.weight[part])[:, None]
            K = self.kernel(group.X[part, :], self.Z) * root
            B = self._root.solve(xp.permute_dims(K, (1, 0)))
            W = W + B @ xp.permute_dims(B, (1, 0))
            mean = mean + B @ root
        if each > 0:
            U = xp.permute_dims(like, (1, 0))
            W = W + each * (U @ like)
            mean = mean + each * xp.sum(U, axis=1, keepdims=True)
        size = float(xp.sum(xp.linalg.diagonal(W)))
        W = W - mean @ xp.permute_dims(mean, (1, 0)) / total
        factor, _ = self._factorise(W, 1.0 / float(group.C), _ROUNDING * size)
        self._groups.append((group.columns, factor))

    def precondition(self, R: Array, columns: IntArray) -> Array:
        """Solve with the preconditioners of the outputs ``columns`` (k,), for R (m, k)."""
        xp = self._xp
        solved: dict[int, Array] = {}
        for own, L in self._groups:
            at = np.flatnonzero(np.isin(columns, own))
            if len(at):
                some = xp.take(R, xp.asarray(at, device=device(R)), axis=1)
                some = L.solve(L.solve(some), transposed=True)
                solved.update({int(j): some[:, i] for i, j in enumerate(at)})
        return xp.stack([solved[j] for j in range(len(columns))], axis=1)


@dataclass(frozen=True, eq=False)
class _Triangle:
    """A lower triangular matrix L, or its inverse where the library solves no triangles."""

    xp: Any
    L: Array
    inverse: Array | None

    @classmethod
    def of(cls, xp: Any, L: Array) -> _Triangle:
        solves = hasattr(xp.linalg, "solve_triangular")  # as torch has it
        return cls(xp, L, None if solves else xp.linalg.inv(L))

    def solve(self, B: Array, *, transposed: bool = False) -> Array:
        xp = self.xp
        A = self.L if self.inverse is None else self.inverse
        A = xp.permute_dims(A, (1, 0)) if transposed else A
        if self.inverse is not None:
            return A @ B
        return xp.linalg.solve_triangular(A, B, upper=transposed)


def _kernel_trace(kernel: Kernel, Z: Array) -> float:
    trace = float(np.sum(to_numpy(kernel.diag(Z))))
    if not np.isfinite(trace):
        raise InvalidInputError(
            "The kernel between prototypes is not finite: scale the features (StandardScaler), or "
            "lower degree or gamma."
        )
    return max(trace, float(np.finfo(np.float64).tiny))


def _indefinite(jitter: float) -> NotPositiveDefiniteError:
    return NotPositiveDefiniteError(
        "The kernel matrix of the prototypes is not positive definite even after "
        f"{jitter:.1e} was added to its diagonal. Use a positive definite kernel, or "
        "solver='cholesky', which leaves negative directions out."
    )
