"""What a greedy run leaves behind: the order of the basis functions, and the model at any size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import LinAlgError, eigh, solve_triangular
from scipy.linalg import cholesky as dense_cholesky

from lssvm._core.arrays import BoolArray, FloatArray, IntArray, is_sparse
from lssvm._core.blocks import run_blocks, slices
from lssvm._core.errors import NotPositiveDefiniteError
from lssvm.kernels import RBF
from lssvm.kernels.base import evaluate_expansion
from lssvm.solvers import DualSystem
from lssvm.solvers.exact import EigenState

NOT_DEFINITE = (
    "The kernel matrix of the selected rows is not positive definite, even with 1/C on its "
    "diagonal. Use a positive definite kernel such as 'rbf', or lower C, or pass the rows as "
    "float64."
)
OnEvent = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Greedy:
    """Settings of the greedy approximation."""

    epsilon: float = 0.5
    criterion: str = "fsals"
    candidates: int | None = None
    prefit: bool = False
    max_support: int | None = None
    patience: int = 50


@dataclass(frozen=True)
class GreedyPath:
    """The run of one problem: one entry per basis function, in the order of selection.

    Attributes
    ----------
    support : int array of shape (m,)
        Rows, the first selected first.
    objective : array of shape (m,)
        The loss after each step; it never rises.
    error : array of shape (m,)
        The largest error among the rows looked at after each step: what eq. (31) compares.
    held_out : array of shape (m,) or (0,)
        Mean squared error on the held-out rows after each step.
    status : {"epsilon", "exhausted", "max_support", "held_out", "memory"}
        Why it stopped.
    coef : array of shape (m,)
        Of the basis functions.
    intercept : float
        Zero without a bias.
    targets : array of shape (m,)
        Right-hand side of the systems: y at the support, or K^T y.
    offsets : array of shape (m,) or None
        For "kmp" and "sggp" with a bias: means of the basis functions, so that
        b = mean - offsets' coef.
    mean : float
        Mean target, used with ``offsets``.
    bordered : bool
        Whether the bias is the border of the system (eq. (13)).
    factor : array of shape (m, m) or None
        Lower Cholesky factor of the system where it does not follow from the support alone.
    left_out : array of shape (n,) or None
        Leave-one-out predictions of all rows, where requested.
    """

    support: IntArray
    objective: FloatArray
    error: FloatArray
    held_out: FloatArray
    status: str
    coef: FloatArray
    intercept: float
    targets: FloatArray
    offsets: FloatArray | None = None
    mean: float = 0.0
    bordered: bool = True
    factor: FloatArray | None = None
    left_out: FloatArray | None = None

    def at(self, size: int, factor: FloatArray) -> tuple[FloatArray, float]:
        """Return coefficients (size,) and bias of the model of the first ``size`` functions.

        The leading part of the factor is that of the smaller system, so that a size costs size^2
        operations.
        """
        return solve_size(
            factor[:size, :size],
            self.targets[:size],
            bordered=self.bordered,
            offsets=None if self.offsets is None else self.offsets[:size],
            mean=self.mean,
        )

    def cut(self, size: int, coef: FloatArray, intercept: float) -> GreedyPath:
        """Return the path of the first ``size`` functions, with the solution of `at`."""
        names = ("support", "objective", "error", "held_out", "targets")
        changed: dict[str, Any] = {name: getattr(self, name)[:size] for name in names}
        if self.offsets is not None:
            changed["offsets"] = self.offsets[:size]
        if self.factor is not None:
            changed["factor"] = self.factor[:size, :size]
        if size < len(self.support):
            changed["status"] = "max_support"
        return replace(self, coef=coef, intercept=intercept, left_out=None, **changed)


def solve_size(
    factor: FloatArray,
    targets: FloatArray,
    *,
    bordered: bool,
    offsets: FloatArray | None = None,
    mean: float = 0.0,
) -> tuple[FloatArray, float]:
    """Solve one subproblem from its Cholesky factor."""
    w = solve_triangular(factor, targets, lower=True)
    if not bordered:
        coef = solve_triangular(factor, w, lower=True, trans=1)
        return coef, 0.0 if offsets is None else float(mean - offsets @ coef)
    u = solve_triangular(factor, np.ones(len(targets)), lower=True)
    b = float(u @ w / (u @ u))
    return solve_triangular(factor, w - b * u, lower=True, trans=1), b  # [Jiao2007, eq. (16)]


def left_out_errors(
    factor: FloatArray, coef: FloatArray, bordered: bool, y: FloatArray
) -> FloatArray:
    """Return the leave-one-out errors of the rows of a basis, alpha_i / R_ii, shape (m,).

    m^3/3 operations for the inverse of the factor. Nothing is left of a basis of one with a bias:
    the model is 0 and the error is y.
    """
    if bordered and len(coef) == 1:
        return y
    inverse = solve_triangular(factor, np.eye(len(coef)), lower=True, overwrite_b=True)
    diagonal = np.einsum("ij,ij->j", inverse, inverse)  # of H^-1
    if bordered:
        eta = inverse.T @ inverse.sum(axis=1)  # H^-1 1
        diagonal = diagonal - eta**2 / eta.sum()
    return np.asarray(coef / diagonal)  # [Jiao2007, eq. (13)]: R_ii of the bordered inverse


def cholesky(matrix: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor (m, m) in float64, m^3/3 operations."""
    matrix = np.asarray(matrix, dtype=np.float64)
    try:
        return np.asarray(dense_cholesky(matrix, lower=True, check_finite=False))
    except LinAlgError as error:
        raise NotPositiveDefiniteError(NOT_DEFINITE) from error


@dataclass
class Trace:
    """What is recorded while a problem runs."""

    support: list[int] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    status: str = "exhausted"
    fitted: FloatArray | None = None  # (n,), after the last step

    def record(self, error: float, held_out: FloatArray, weight: FloatArray) -> None:
        """Record the largest error after a step, and the mean square of the held-out ones."""
        self.error.append(float(error))
        if len(held_out):
            self.held_out.append(float(np.average(held_out**2, weights=weight)))

    def stops(self, settings: Greedy, error: float, left: bool) -> bool:
        """Say whether to stop, and keep why; ``left``: whether there are rows to choose from."""
        if not left:
            self.status = "exhausted"
        elif error <= settings.epsilon:  # [Jiao2007, eq. (31)]
            self.status = "epsilon"
        elif settings.max_support is not None and len(self.support) >= settings.max_support:
            self.status = "max_support"
        elif not self.out_of_patience(settings.patience):
            return False
        return True

    def out_of_patience(self, patience: int) -> bool:
        """Say whether the smallest held-out loss lies at least ``patience`` steps back."""
        over = len(self.held_out) - 1 - int(np.argmin(self.held_out or [0.0])) >= patience
        self.status = "held_out" if over else self.status
        return over

    def cut(self, size: int) -> dict[str, Any]:
        """Return the first ``size`` steps, as fields of a `GreedyPath`."""
        return {
            "support": np.array(self.support[:size], dtype=np.intp),
            "objective": np.array(self.objective[:size]),
            "error": np.array(self.error[:size]),
            "held_out": np.array(self.held_out[:size]),
            "status": self.status,
        }

    def event(self, number: int) -> dict[str, Any]:
        """Say how far the problem of that number is, for a progress report."""
        error = f", largest error {self.error[-1]:.4g}" if self.error else ""
        return {"text": f"problem {number + 1}, {len(self.support)} basis functions{error}"}


def best_size(trace: Trace, patience: int) -> int:
    """Return how many steps of a run count: all, or those up to the best on held-out rows."""
    losses = np.asarray(trace.held_out)
    if len(losses) == 0:
        return len(trace.support)
    best = 0
    for t in range(len(losses)):
        if losses[t] < losses[best]:
            best = t
        if t - best >= patience:
            break
    return best + 1


def support_gram(system: DualSystem, support: IntArray) -> FloatArray:
    """Return the kernel matrix of the support, without weights, shape (m, m), in float64."""
    K = system.kernel(system.rows[support], system.basis[support])
    return np.asarray(K, dtype=np.float64)


Rows = IntArray | slice

_WIDTH = 512  # columns per piece of a store


class ColumnStore:
    """Columns over all rows, one after the other: grows without copying what is there."""

    def __init__(self, n: int, dtype: Any, limit: int) -> None:
        self.n, self.dtype, self.limit, self.size = n, np.dtype(dtype), limit, 0
        self._width = max(1, min(_WIDTH, limit))
        self._pieces: list[FloatArray] = []

    def append(self, block: FloatArray) -> None:
        """Add columns (m, n); the caller keeps to the limit."""
        done, m = 0, block.shape[0]
        while done < m:
            at = self.size % self._width
            if at == 0:
                self._pieces.append(np.empty((self._width, self.n), self.dtype))
            take = min(m - done, self._width - at)
            self._pieces[-1][at : at + take] = block[done : done + take]
            done, self.size = done + take, self.size + take

    def _used(self) -> list[tuple[slice, FloatArray]]:
        spans = slices(self.size, self._width)
        return [
            (span, piece[: span.stop - span.start])
            for span, piece in zip(spans, self._pieces, strict=True)
        ]

    def rows(self, index: IntArray) -> FloatArray:
        """Return the entries of all columns at some rows, shape (size, len(index))."""
        parts = [np.take(piece, index, axis=1) for _, piece in self._used()]
        return np.concatenate(parts) if parts else np.empty((0, len(index)), self.dtype)

    def column(self, slot: int) -> FloatArray:
        """Return one column, shape (n,)."""
        return np.asarray(self._pieces[slot // self._width][slot % self._width])

    def combine(self, factors: FloatArray) -> FloatArray:
        """Return combinations of the columns with ``factors`` (m, size), shape (m, n)."""
        out = np.zeros((factors.shape[0], self.n), self.dtype)
        for span, piece in self._used():
            if span.start == 0:
                np.matmul(factors[:, span], piece, out=out)
            else:
                out += factors[:, span] @ piece
        return out

    def correlate(self, right: FloatArray) -> FloatArray:
        """Return the inner products of the columns with ``right`` (n, m), shape (size, m)."""
        out = np.empty((self.size, right.shape[1]), self.dtype)
        for span, piece in self._used():
            np.matmul(piece, right, out=out[span])
        return out


@dataclass(frozen=True, eq=False)
class Search:
    """What the problems of a search by algorithm 1 or 2 have in common.

    Attributes
    ----------
    columns : KernelColumns
    ridge : array of shape (n,)
        1/(C s_i), what is added to the diagonal of the kernel matrix.
    H : array of shape (n,)
        The diagonal of the system, K_ii + ridge.
    settings : Greedy
    bias : bool
    usable : bool array of shape (n,)
        Rows that may be chosen; the others are held out.
    weight : array of shape (n,)
    on_event : callable or None
    """

    columns: KernelColumns
    ridge: FloatArray
    H: FloatArray
    settings: Greedy
    bias: bool
    usable: BoolArray
    weight: FloatArray
    on_event: OnEvent | None = None

    @property
    def held_out(self) -> IntArray:
        """Rows that are held out."""
        return np.flatnonzero(~self.usable)


class KernelColumns:
    """Kernel values between training rows; whole columns are kept while the budget lasts."""

    def __init__(self, system: DualSystem, share: float = 0.4) -> None:
        self.n, self.dtype, self.threads = system.n, system.dtype, system.threads
        self._system = system
        self.limit = min(self.n, int(share * system.budget / (self.n * self.dtype.itemsize)))
        self.store = ColumnStore(self.n, self.dtype, self.limit)
        self._slot = np.full(self.n, -1, dtype=np.intp)  # where a kept column is
        self._gaussian = _extended(system)

    def block(self, rows: Rows, index: IntArray) -> FloatArray:
        """Return K(rows, index) from the kernel, shape (len(rows), len(index))."""
        if self._gaussian is None:
            system = self._system
            return np.asarray(system.kernel(system.rows[rows], system.basis[index]), self.dtype)
        exponents = self._gaussian[rows] @ _partners(self._gaussian[index]).T
        return np.asarray(np.exp(exponents, out=exponents))

    def near(self, rows: IntArray) -> Callable[[int], FloatArray]:
        """Return a function that gives single columns at some rows, shape (len(rows),)."""
        extended = None if self._gaussian is None else self._gaussian[rows]

        def column(row: int) -> FloatArray:
            slot = int(self._slot[row])
            if slot >= 0:
                return self.store.column(slot)[rows]
            if extended is None or self._gaussian is None:
                return self.block(rows, np.array([row]))[:, 0]
            exponents = extended @ _partners(self._gaussian[row : row + 1])[0]
            return np.asarray(np.exp(exponents, out=exponents))

        return column

    def columns(self, index: IntArray) -> FloatArray:
        """Return whole columns, shape (len(index), n), and keep those that are new."""
        out = np.empty((len(index), self.n), self.dtype)
        slots = self._slot[index]
        for j in np.flatnonzero(slots >= 0):
            out[j] = self.store.column(int(slots[j]))
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            fresh = self.compute(index[missing])
            out[missing] = fresh
            keep = min(len(missing), self.store.limit - self.store.size)
            self._slot[index[missing[:keep]]] = self.store.size + np.arange(keep)
            self.store.append(fresh[:keep])
        return out

    def compute(self, index: IntArray) -> FloatArray:
        """Compute whole columns, shape (len(index), n), without keeping them."""
        out = np.empty((len(index), self.n), self.dtype)
        self.fill(index, out.T)
        return out

    def fill(self, index: IntArray, out: FloatArray) -> None:
        """Write whole columns into ``out`` (n, len(index)), rows shared out among the threads."""
        partners = None if self._gaussian is None else _partners(self._gaussian[index])

        def work(part: slice) -> None:
            if partners is None or self._gaussian is None:
                out[part] = self.block(part, index)
                return
            exponents = partners @ self._gaussian[part].T  # the long side inside: faster
            out[part] = np.exp(exponents, out=exponents).T

        run_blocks(work, slices(self.n, 2048), self.threads if self.n > 2048 else 1)


def _extended(system: DualSystem) -> FloatArray | None:
    """Return rows [2 x, -x'x, 1] of the scaled centred data, None where K is not of that form.

    Their product with the partners [z, 1, -z'z] is -gamma ||x - z||^2.
    """
    X = system.rows
    if not isinstance(system.kernel, RBF) or is_sparse(X) or not isinstance(X, np.ndarray):
        return None
    n, d = X.shape
    out = np.empty((n, d + 2), X.dtype)
    scaled = out[:, :d]
    np.subtract(X, X.mean(axis=0), out=scaled)
    scaled *= np.sqrt(np.asarray(system.kernel.gamma, dtype=X.dtype))
    squares = np.einsum("ij,ij->i", scaled, scaled)
    if np.max(squares, initial=0.0) * np.finfo(X.dtype).eps > 1e-3:
        return None  # the differences would have no digits left
    scaled *= 2.0
    out[:, d], out[:, d + 1] = -squares, 1.0
    return out


def _partners(rows: FloatArray) -> FloatArray:
    """Turn extended rows [2 x, -x'x, 1] into [x, 1, -x'x]."""
    out = np.empty_like(rows)
    np.multiply(rows[:, :-2], 0.5, out=out[:, :-2])
    out[:, -2], out[:, -1] = 1.0, rows[:, -2]
    return out


@dataclass(frozen=True, eq=False)
class Observations:
    """Single observations of rows that were merged because they are equal.

    Attributes
    ----------
    member : int array of shape (t,)
        The merged row of each observation.
    y : array of shape (t,)
        Its own target.
    share : array of shape (t,)
        Its part of the weight of the merged row.
    """

    member: IntArray
    y: FloatArray
    share: FloatArray

    def left_out(self, fitted: FloatArray, leverage: FloatArray) -> FloatArray:
        """Return the outputs (c, t) without each observation, from those of the rows (c, n)."""
        fitted, leverage = fitted[:, self.member], leverage[:, self.member]
        left = np.maximum(1.0 - self.share * leverage, np.finfo(float).eps)
        return np.asarray(self.y - (self.y - fitted) / left)


def greedy_leave_one_out(
    system: DualSystem,
    y: FloatArray,
    path: GreedyPath,
    Cs: FloatArray,
    criterion: str = "fsals",
    observations: Observations | None = None,
) -> FloatArray:
    """Predict every row by the model that has not seen it, at each of several values of C.

    A model of "fsals" is the LS-SVM of the rows P. Rows outside P take no part in it, so its
    prediction is their leave-one-out prediction; for a row of P the residual is
    alpha_i / (R)_ii with R the inverse of the bordered matrix (eq. (13) of [Jiao2007]). "kmp" and
    "sggp" are ridge regressions on all rows with a fixed basis: the residual divided by one minus
    the leverage. One eigendecomposition serves all C: 10 m^3 + n m (d + c) operations, or n m^2
    more for "kmp" and "sggp". What leaving a row out would change in the selection of the basis is
    not accounted for.
    """
    Cs, y = np.asarray(Cs, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(path.support) == 0:
        n = len(y) if observations is None else len(observations.y)
        return np.full((len(Cs), n), path.intercept)
    if criterion == "fsals":
        left_out, fitted, leverage = _dual(system, y, path, Cs)
    else:
        left_out, fitted, leverage = _primal(system, y, path, Cs, criterion)
    return left_out if observations is None else observations.left_out(fitted, leverage)


Outputs: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
"""What is predicted without each row, what with it, and its leverage, each of shape (c, n)."""


def _dual(system: DualSystem, y: FloatArray, path: GreedyPath, Cs: FloatArray) -> Outputs:
    P, leverage = path.support, np.zeros((len(Cs), len(y)))
    u = np.asarray(system.u, dtype=np.float64)[P]
    scaled = u[:, None] * support_gram(system, path.support) * u
    solved = EigenState.of(scaled, u, system.bias).positive().bordered(Cs, (u * y[P])[:, None])
    coef, b, own = u[:, None] * solved.beta[:, :, 0], solved.b[:, 0], np.zeros((len(Cs), len(P)))
    if len(P) > 1 or not system.bias:  # nothing is left of a basis of one: the model is 0
        own = y[P] - (solved.row_errors()[:, :, 0] / u[:, None]).T
    leverage[:, P] = 1.0 - solved.diagonal().T / Cs[:, None]
    limits = {"budget": system.budget, "threads": system.threads}
    fitted = evaluate_expansion(system.kernel, system.rows, system.basis[P], coef, b, **limits).T
    left_out = fitted.copy()
    left_out[:, P] = own
    return left_out, fitted, leverage


def _primal(
    system: DualSystem, y: FloatArray, path: GreedyPath, Cs: FloatArray, criterion: str
) -> Outputs:
    w = np.asarray(system.u, dtype=np.float64) ** 2
    total = float(w.sum())
    Phi = np.asarray(system.kernel(system.rows, system.basis[path.support]), dtype=np.float64)
    mean = float(w @ y / total) if system.bias else 0.0
    if system.bias:
        Phi = Phi - w @ Phi / total
    A = Phi.T @ (w[:, None] * Phi)
    if criterion == "sggp":  # (A + D/C) a = t as an ordinary eigenproblem of L^-1 A L^-T, D = L L^T
        D = support_gram(system, path.support)
        L = cholesky(D + np.diag(np.full(len(D), 1e-12 * np.trace(D))))
        A = solve_triangular(L, solve_triangular(L, A, lower=True).T, lower=True)
        Phi = solve_triangular(L, Phi.T, lower=True).T
    values, Q = eigh(0.5 * (A + A.T), check_finite=False)
    Phi = Phi @ Q
    t, squares = Phi.T @ (w * (y - mean)), Phi * Phi
    inverse = 1.0 / (np.maximum(values, 0.0)[:, None] + 1.0 / Cs)  # (m, c)
    fitted = Phi @ (inverse * t[:, None]) + mean
    leverage = w[:, None] * (squares @ inverse) + (w[:, None] / total if system.bias else 0.0)
    residual = (y[:, None] - fitted) / np.maximum(1.0 - leverage, np.finfo(float).eps)
    return (y[:, None] - residual).T, fitted.T, leverage.T
