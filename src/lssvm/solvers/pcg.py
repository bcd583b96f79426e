"""Conjugate gradients for the fixed-size model with many prototypes: no moments are formed.

First the passes over the rows: products with K and its transpose, in blocks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias

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
from lssvm._core.blocks import run_blocks, run_stream, slices
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError, not_usable
from lssvm._core.lapack import add_outer, factorise_triangle, solve_triangle
from lssvm.kernels import Kernel
from lssvm.solvers.base import OnIteration, Status, warn_unsolved

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


FeatureSpace: TypeAlias = PackedSpace | ArraySpace
"""Coordinates w = U beta with K(Z, Z) = U^T U, and preconditioners in them."""


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


_ENTRIES, _ON_DEVICE = 2**19, 2**26  # kernel values of a block: near the processor, on a device
_LEAST = 128  # rows of a block, where prototypes are many
_CHUNK = 8192  # rows whose sums are added up before they are added to the others


class RowBlock(NamedTuple):
    """Some rows of a training set.

    Attributes
    ----------
    X : array of shape (b, d)
        Rows.
    Y : array of shape (b, k)
        Targets.
    weight : array of shape (b,) or (b, k), or None
        Weights of the rows, or of the rows in every output (0: it is not trained on them); None
        where all are one. The same kind in all parts of a training set.
    """

    X: Array
    Y: Array
    weight: Array | None


class Sums(NamedTuple):
    """Sums of one pass over the rows, with weights S_j of output j and targets less an offset.

    Attributes
    ----------
    cross : array of shape (m, k)
        K^T S_j (y_j - offset_j).
    border : array of shape (m, 1) or (m, k)
        K^T S_j 1; one column where all outputs have the same weights.
    target : array of shape (k,)
        1^T S_j (y_j - offset_j).
    weight : array of shape (1,) or (k,)
        1^T S_j 1.
    offset : array of shape (k,)
        Something near the mean of the targets, which keeps their digits.
    """

    cross: Array
    border: Array
    target: Array
    weight: Array
    offset: Array


class NormalProducts(Protocol):
    """What `solve_pcg` needs of the rows; any engine that has these two can be solved with."""

    @property
    def sums(self) -> Sums:
        """The sums that do not depend on the coefficients."""

    def product(self, V: Array, b: Array, columns: IntArray) -> Array:
        """Return K^T S_j (K v_j + b_j) for the outputs ``columns`` (a,), V (m, a) and b (a,)."""


def array_rows(
    X: Array, Y: Array, weight: Array | None = None, *, chunk: int | None = None
) -> Callable[[], Iterator[RowBlock]]:
    """Return the function that begins a pass over rows in memory."""
    n = X.shape[0]
    size = int(np.clip(n // 16, 1024, _CHUNK)) if chunk is None else chunk

    def begin() -> Iterator[RowBlock]:
        for part in slices(n, size):
            yield RowBlock(X[part, :], Y[part, :], None if weight is None else weight[part, ...])

    return begin


class KernelProducts:
    """Products with the kernel matrix K (n, m) of the rows and the prototypes."""

    def __init__(
        self,
        kernel: Kernel,
        rows: Callable[[], Iterable[RowBlock]],
        Z: Array,
        n_targets: int,
        *,
        offset: Array | None = None,
        keep: bool = False,
        threads: int = 1,
    ) -> None:
        xp = self._xp = get_namespace(Z)
        self._rows, self._evaluate = rows, kernel.against(Z)
        self._m, self._numpy = int(Z.shape[0]), is_numpy(Z)
        self._threads, self._local = threads, threading.local()
        entries = _ENTRIES if self._numpy else _ON_DEVICE
        self._step = max(_LEAST, entries // max(self._m, 1))
        self._kept: list[list[tuple[Array, Array, Array | None]]] | None = [] if keep else None
        self._complete = False
        self._like = {"dtype": Z.dtype, "device": device(Z)}
        self._offset = xp.zeros(n_targets, **self._like) if offset is None else offset

    @cached_property
    def sums(self) -> Sums:
        """The sums that do not depend on the coefficients: the first pass."""
        xp = self._xp

        def work(K: Array, Y: Array, weight: Array | None) -> list[Array]:
            Y = Y - self._offset[None, :]
            if weight is None:
                weight = xp.ones(Y.shape[0], **self._like)
            S = weight if weight.ndim == 2 else weight[:, None]
            SY, transposed = S * Y, xp.permute_dims(K, (1, 0))
            return [transposed @ SY, transposed @ S, xp.sum(SY, axis=0), xp.sum(S, axis=0)]

        cross, border, target, weight = self._pass(work)
        return Sums(cross, border, target, weight, self._offset)

    def product(self, V: Array, b: Array, columns: IntArray) -> Array:
        """Return K^T S_j (K v_j + b_j) for the outputs ``columns`` (a,), V (m, a) and b (a,)."""
        xp = self._xp

        def work(K: Array, Y: Array, weight: Array | None) -> list[Array]:
            F = K @ V + b[None, :]
            if weight is not None and weight.ndim == 2:
                F = F * xp.take(weight, xp.asarray(columns, device=device(weight)), axis=1)
            elif weight is not None:
                F = F * weight[:, None]
            return [xp.permute_dims(K, (1, 0)) @ F]

        return self._pass(work)[0]

    def _pass(self, work: Callable[[Array, Array, Array | None], list[Array]]) -> list[Array]:
        """Apply ``work`` to the blocks of every part of the rows and add up what it returns."""
        kept, complete = self._kept, self._complete

        def use(item: Any) -> tuple[list[Array], Any]:
            blocks = item if complete else self._blocks(item)
            if kept is not None:
                blocks = list(blocks)
            return _sum(work(*block) for block in blocks), blocks

        items: Iterable[Any] = kept if complete and kept is not None else self._rows()
        done = run_stream(use, items, self._threads) if self._numpy else map(use, items)

        def sums() -> Iterator[list[Array]]:
            for total, blocks in done:
                if kept is not None and not complete:
                    kept.append(blocks)
                yield total

        total = _sum(sums())
        self._complete = kept is not None
        return total

    def _blocks(self, rows: RowBlock) -> Iterator[tuple[Array, Array, Array | None]]:
        """Yield kernel values, targets and weights of a part, some rows at a time."""
        for part in slices(rows.X.shape[0], self._step):
            X = rows.X[part, :]
            if self._numpy:
                X = np.asarray(X, dtype=np.float64)
                K = np.asarray(self._evaluate(X, self._room(len(X))), dtype=np.float64)
            else:
                K = self._evaluate(X)
            weight = None if rows.weight is None else rows.weight[part, ...]
            yield K, rows.Y[part, :], weight

    def _room(self, n: int) -> Any:
        """Return this thread's room for a block of K (n, m), or None where blocks are kept."""
        if self._kept is not None:
            return None
        if not hasattr(self._local, "room"):
            self._local.room = np.empty((self._step, self._m))
        return self._local.room[:n]


def _sum(lists: Iterable[list[Array]]) -> list[Array]:
    total: list[Array] = []
    for arrays in lists:
        total = [a + b for a, b in zip(total, arrays, strict=True)] if total else arrays
    return total


_RESTARTS = 5
_TINY = np.finfo(np.float64).tiny
_SAMPLES = ((4, 60), (12, 20))  # rows per prototype, and iterations that they may cost at most
FUNCTION = 20  # operations that an evaluation of the kernel's scalar function counts for


@dataclass(frozen=True)
class PCG:
    """Settings of conjugate gradients for the fixed-size model.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative residual of the normal equations in feature space that every output has to reach.
    max_iter : int, default=200
        Most iterations, one pass over the rows each.
    n_rows : int or None, default=None
        Rows of the preconditioner in addition to the prototypes; None: see `preconditioner_rows`.

    Notes
    -----
    What needs moments is not available: `partial_fit` and `forget`, error bars and intervals,
    reductions, losses other than squares, and ``n_prototypes="cv"``. With ``C="cv"`` or
    ``gamma="cv"`` both are tuned, by moments, with the first 1,000 prototypes (a selection of its
    own: every prefix is one) and are used unchanged; out-of-fold outputs, hence probabilities
    and thresholds, are those of that smaller model.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import FixedSizeLSSVR
    >>> from lssvm.solvers import PCG
    >>> X = np.linspace(0, 6, 400)[:, None]
    >>> model = FixedSizeLSSVR(20, C=100.0, gamma=1.0, solver=PCG(tol=1e-8))
    >>> model.fit(X, np.sin(X[:, 0])).residual_ < 1e-8
    True
    """

    tol: float = 1e-6
    max_iter: int = 200
    n_rows: int | None = None

    def __post_init__(self) -> None:
        number = isinstance(self.tol, (int, float, np.number)) and type(self.tol) is not bool
        if not number or not self.tol > 0 or not _whole(self.max_iter, 1):
            raise InvalidInputError(
                f"tol={self.tol!r} and max_iter={self.max_iter!r} are not usable: tol must be "
                "positive and max_iter a whole number of at least 1."
            )
        if self.n_rows is not None and not _whole(self.n_rows, 0):
            raise not_usable("n_rows", self.n_rows, "give None, or a whole number of 0 or more.")


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, (int, np.integer)) and type(value) is not bool and int(value) >= least


@dataclass(frozen=True, eq=False)
class PCGSolution:
    """What `solve_pcg` returns.

    Attributes
    ----------
    coef : array of shape (m, k)
        Coefficients, a column for each output.
    intercept : array of shape (k,)
        What is added to every output.
    status : Status
        Whether it converged.
    residual : float
        Largest relative residual over the outputs, recomputed at the end.
    iterations : int
        How many there were.
    history : list of float
        Largest relative residual after every iteration.
    """

    coef: Array
    intercept: Array
    status: Status
    residual: float
    iterations: int
    history: list[float] = field(default_factory=list)


def solve_pcg(
    rows: NormalProducts,
    space: FeatureSpace,
    C: FloatArray,
    columns: IntArray | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 200,
    on_iteration: OnIteration = None,
) -> PCGSolution:
    r"""Solve the normal equations of the fixed-size model without forming them.

    .. math::

        \bigl(K^T S (K - 1 \mu^T) + (K_{ZZ} + \delta I)/C\bigr)\,\beta = K^T S (y - \bar y),
        \qquad b = \bar y - \mu^T \beta,
        \qquad \mu = K^T s / 1^T s, \quad \bar y = s^T y / 1^T s,

    which is [DeBrabanter2010], eq. (7), with the bias eliminated instead of regularised.

    The idea is that of [Rudi2017]: conjugate gradients on the Nystrom normal equations, one pass
    over the rows for each step, with a preconditioner from Cholesky factors of size m. With
    U^T U = K_ZZ + delta I (delta = 1e-12 of its trace) the system in w = U beta is

    .. math:: (U^{-T} K^T S (K - 1 \mu^T) U^{-1} + I/C)\,w = U^{-T} K^T S (y - \bar y),

    the primal system of the fixed-size model. ``tol`` is about its relative residual, in the
    Euclidean norm and in that of the inverse preconditioner, which is about the relative error of
    the model in the norm that it minimises: both have to be as small. Two things
    differ from the paper. The mean is projected out, so that the bias is exact. And the
    preconditioner is the same matrix for a sample of rows and the prototypes, all of equal weight,
    where the paper has the prototypes alone: see `preconditioner_rows`.

    Directions in which K_ZZ has less than delta are damped. The direct route (`solve_primal`) drops
    those below sqrt(eps / (10 m)) of the trace instead, which the rounding of its moments requires
    for: where K_ZZ has such directions, the two models differ on rows far from all prototypes.

    The outputs are columns that share every pass; a column that has converged leaves it. At the
    end the residual is computed anew, and where rounding has parted the recurrence from it, the
    iteration starts again from there, up to five times. Each iteration costs a pass (n m (2 d + 4
    k) operations) and 4 m^2 k; memory is that of the two arguments and 6 m k numbers.
    """
    sums = rows.sums
    xp = get_namespace(sums.cross)
    columns = np.arange(sums.cross.shape[1]) if columns is None else np.asarray(columns)
    mean, centre, rhs = _right_side(xp, sums, columns)
    system = _System(xp, rows, space, mean, np.asarray(C, dtype=np.float64), columns)
    rhs = space.lower(rhs)
    every = np.arange(len(columns))
    scale = np.maximum(system.norms(rhs, space.precondition(rhs, columns)), _TINY)
    X, R, history = xp.zeros_like(rhs), rhs, list[float]()
    for _ in range(1 + _RESTARTS):
        X = X + _descend(system, R, scale, 0.9 * tol, max_iter, history, on_iteration)
        R = rhs - system.product(X, every)
        norms = system.norms(R, space.precondition(R, columns))
        residual = float(np.max(norms / scale, initial=0.0))
        if residual <= tol or len(history) >= max_iter:
            break
    advice = f"Raise max_iter ({max_iter}), tol or the rows of the preconditioner"
    if len(history) < max_iter:
        advice = "Rounding leaves no more digits: raise tol"
    advice += " (solver=PCG(...) of lssvm.solvers), lower C, or use solver='cholesky'."
    how = f"Conjugate gradients stopped after {len(history)} iterations"
    status = warn_unsolved(how, residual, tol, advice)
    coef = space.lift(X)
    intercept = centre - xp.sum(mean * coef, axis=0)
    return PCGSolution(coef, intercept, status, residual, len(history), history)


def _right_side(xp: Any, sums: Sums, columns: IntArray) -> tuple[Array, Array, Array]:
    """Return the means of K (m, 1 or k), of the targets (k,) and K^T S (y - mean) (m, k)."""
    at = xp.asarray(columns, device=device(sums.cross))
    border, weight = sums.border, sums.weight
    if border.shape[1] > 1:
        border, weight = xp.take(border, at, axis=1), xp.take(weight, at, axis=0)
    if not bool(xp.all(weight > 0)):
        raise InvalidInputError("A training set is empty: use more rows, or fewer classes.")
    target = xp.take(sums.target, at, axis=0) / weight
    rhs = xp.take(sums.cross, at, axis=1) - border * target[None, :]
    return border / weight[None, :], target + xp.take(sums.offset, at, axis=0), rhs


@dataclass(frozen=True, eq=False)
class _System:
    """The matrix of the primal system, one for each output."""

    xp: Any
    rows: NormalProducts
    space: FeatureSpace
    mean: Array
    C: FloatArray
    columns: IntArray

    def product(self, V: Array, at: IntArray) -> Array:
        """Return the products for V (m, a), whose columns are the outputs ``columns[at]``."""
        xp = self.xp
        beta, mean = self.space.lift(V), self.mean
        if mean.shape[1] > 1:
            mean = self.take(mean, at)
        columns = self.columns[at]
        G = self.rows.product(beta, -xp.sum(mean * beta, axis=0), columns)
        ridge = xp.asarray(1.0 / self.C[columns], dtype=V.dtype, device=device(V))
        return self.space.lower(G) + V * ridge[None, :]

    def take(self, A: Array | None, at: IntArray) -> Array:
        """Return some columns; None of None."""
        return None if A is None else self.xp.take(A, self.xp.asarray(at, device=device(A)), axis=1)

    def dots(self, A: Array, B: Array) -> Array:
        """Return the inner products of the columns."""
        return self.xp.sum(A * B, axis=0)

    def norms(self, R: Array, Z: Array) -> FloatArray:
        """Return the two norms of residuals R, preconditioned Z, in main memory: shape (2, a)."""
        squares = self.xp.stack([self.dots(R, R), self.dots(R, Z)])
        return np.sqrt(np.asarray(to_numpy(squares), dtype=np.float64))


def _descend(
    system: _System,
    R: Array,
    scale: FloatArray,
    tol: float,
    max_iter: int,
    history: list[float],
    on_iteration: OnIteration,
) -> Array:
    """Run the recurrences from zero for the right-hand sides R (m, k); return the solutions."""
    xp, k = system.xp, R.shape[1]
    active, relative = np.arange(k), np.zeros(k)
    solved: dict[int, Array] = {}
    x, r, P, before = xp.zeros_like(R), R, None, None
    began = len(history)
    while True:
        z = system.space.precondition(r, system.columns[active])
        relative[active] = np.max(system.norms(r, z) / scale[:, active], axis=0)
        if len(history) > began:
            history[-1] = float(np.max(relative))
            if on_iteration is not None:
                on_iteration(len(history), history[-1])
        left = relative[active] > tol
        if not left.all():
            solved.update({int(active[i]): x[:, int(i)] for i in np.flatnonzero(~left)})
            stay, active = np.flatnonzero(left), active[left]
            if not active.size:
                break
            x, r, z, P, before = (system.take(A, stay) for A in (x, r, z, P, before))
        if len(history) >= max_iter:
            solved.update({int(j): x[:, i] for i, j in enumerate(active)})
            break
        rho = system.dots(r, z)[None, :]
        P = z if P is None else z + P * (rho / before)
        HP = system.product(P, active)
        curvature = system.dots(P, HP)[None, :]
        if not np.all(to_numpy(curvature) > 0):
            raise NotPositiveDefiniteError(
                f"A direction p with p^T H p = {np.min(to_numpy(curvature)):.1e} was met: the "
                "kernel or the targets are not finite. Scale the features (StandardScaler), or "
                "lower C, degree or gamma."
            )
        x, r, before = x + rho / curvature * P, r - rho / curvature * HP, rho
        history.append(np.inf)
    return xp.stack([solved[j] for j in range(k)], axis=1)


def preconditioner_rows(n: int, m: int, d: int, k: int = 1) -> int:
    """Return how many rows a preconditioner has besides the prototypes.

    Four times the number of prototypes as far as that costs no more than 60 iterations, twelve
    times as far as it costs no more than 20, and no more than there are. On 20,000 rows of
    Covertype with m = 1,000 (two widths, C = 1 and 100) the prototypes alone, as in [Rudi2017],
    took 39 to 130 iterations to a residual of 1e-6, twice as many rows with them at most 38, four
    times as many at most 29, eight times as many at most 21.
    """
    iteration = n * (d + k + FUNCTION) / max(m, 1)
    return int(min(n, max(min(each * m, most * iteration) for each, most in _SAMPLES)))
