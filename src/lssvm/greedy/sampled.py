r"""PFSALS: the best of a few random rows joins the basis (algorithm 2 of [Jiao2007]_)."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtpsv

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import slices
from lssvm._core.errors import NotPositiveDefiniteError
from lssvm.greedy.columns import KernelColumns, Search
from lssvm.greedy.path import NOT_DEFINITE, Trace

_WIDTH = 512  # columns per piece of a store
_PENDING = 64  # basis functions whose columns are computed together


class PackedCholesky:
    """A Cholesky factor that grows by one row at a time, without a copy per solve.

    Its rows stand one after the other, which is BLAS's packed upper storage of the transpose.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.greedy.sampled import PackedCholesky
    >>> factor = PackedCholesky()
    >>> factor.append(np.empty(0), 2.0)
    >>> factor.append(np.array([1.0]), 3.0)
    >>> factor.solve(np.array([2.0, 4.0]))
    array([1., 1.])
    """

    def __init__(self) -> None:
        self.size = 0
        self._packed = np.empty(64)

    def append(self, row: FloatArray, pivot: float) -> None:
        """Add the row [row, pivot] with ``row`` of shape (size,)."""
        start = self.size * (self.size + 1) // 2
        end = start + self.size + 1
        if end > len(self._packed):
            grown = np.empty(max(end, 2 * len(self._packed)))
            grown[:start] = self._packed[:start]
            self._packed = grown
        self._packed[start : end - 1] = row
        self._packed[end - 1] = pivot
        self.size += 1

    def solve(self, right: FloatArray) -> FloatArray:
        """Return G^-1 right, shape (size,); size^2 operations."""
        return self._solve(right, 1)

    def solve_transposed(self, right: FloatArray) -> FloatArray:
        """Return G^-T right, shape (size,); size^2 operations."""
        return self._solve(right, 0)

    def _solve(self, right: FloatArray, trans: int) -> FloatArray:
        if self.size == 0:
            return np.empty(0)
        return np.asarray(dtpsv(self.size, self._packed, right, trans=trans))

    def dense(self) -> FloatArray:
        """Return the factor as a lower triangular matrix (size, size)."""
        G = np.zeros((self.size, self.size))
        G[np.tril_indices(self.size)] = self._packed[: self.size * (self.size + 1) // 2]
        return G


class RowStore:
    """Kernel columns kept row by row, so that all of them are quickly read at a few rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.greedy.columns import KernelColumns
    >>> from lssvm.greedy.sampled import RowStore
    >>> from lssvm.solvers import DualSystem
    >>> store = RowStore(KernelColumns(DualSystem(Linear(), np.eye(3), np.eye(3), 1.0)))
    >>> store.append(np.array([2, 0]))
    >>> store.size, store.take(np.array([0]))[0]
    (2, array([[0., 1.]]))
    """

    def __init__(self, columns: KernelColumns) -> None:
        self._columns = columns
        self._width = max(1, min(_WIDTH, columns.limit))
        self._pieces: list[FloatArray] = []
        self.size = 0

    def append(self, index: IntArray) -> None:
        """Compute and keep the columns of some rows, as far as the limit allows."""
        index = index[: self._columns.limit - self.size]
        while len(index):
            at = self.size % self._width
            if at == 0:
                self._pieces.append(np.empty((self._columns.n, self._width), self._columns.dtype))
            part, piece = index[: self._width - at], self._pieces[-1]
            self._columns.fill(part, piece[:, at : at + len(part)])
            self.size, index = self.size + len(part), index[len(part) :]

    def take(self, rows: IntArray) -> list[FloatArray]:
        """Return the kept columns at some rows in pieces of shape (len(rows), at most 512)."""
        spans = slices(self.size, self._width)
        return [
            piece[rows][:, : span.stop - span.start]
            for span, piece in zip(spans, self._pieces, strict=True)
        ]

    def product(self, A: FloatArray) -> FloatArray:
        """Return the kept columns times ``A`` (size, k), shape (n, k)."""
        out = np.zeros((self._columns.n, A.shape[1]))
        for span, piece in zip(slices(self.size, self._width), self._pieces, strict=True):
            out += piece[:, : span.stop - span.start] @ A[span].astype(piece.dtype, copy=False)
        return out


class _Problem:
    """One column of the targets: its basis, factor and coefficients."""

    def __init__(self, y: FloatArray, bias: bool, prefit: bool) -> None:
        self.y, self.bias, self.prefit = y, bias, prefit
        self.factor = PackedCholesky()
        self._slots = np.empty(64, dtype=np.intp)
        self._w = np.empty((2, 64))  # G^-1 y and G^-1 1
        self.b = 0.0
        self.trace = Trace()

    @property
    def slots(self) -> IntArray:
        return self._slots[: self.factor.size]

    def add(self, row: int, slot: int, k: FloatArray, H: float) -> FloatArray:
        """Add a basis function; ``k`` (size,) are its kernel values. Returns the coefficients."""
        size = self.factor.size
        if size == len(self._slots):
            self._slots = np.concatenate([self._slots, np.empty_like(self._slots)])
            self._w = np.concatenate([self._w, np.empty_like(self._w)], axis=1)
        g = self.factor.solve(k)
        square = H - float(g @ g)  # 1/lambda of [Jiao2007, eq. (15)], for the definite part
        if not square > 0:
            raise NotPositiveDefiniteError(NOT_DEFINITE)
        d = math.sqrt(square)
        done = self._w[:, :size] @ g
        self._w[0, size] = (self.y[row] - done[0]) / d
        self._w[1, size] = (1.0 - done[1]) / d if self.bias else 0.0
        self._slots[size] = slot
        self.factor.append(g, d)  # [Jiao2007, eq. (18)]
        w = self._w[:, : size + 1]
        products = w @ w.T
        self.b = float(products[0, 1] / products[1, 1]) if self.bias else 0.0
        self.trace.support.append(row)
        self.trace.objective.append(-0.5 * float(products[0, 0] - self.b * products[0, 1]))
        return self.factor.solve_transposed(w[0] - self.b * w[1])  # [Jiao2007, eq. (17)]

    def curvature(self, H: FloatArray, K: FloatArray) -> FloatArray:
        """Return what divides r^2 for rows with kernel values K (m, size)."""
        if not self.prefit or self.factor.size == 0:
            return H
        Z = solve_triangular(self.factor.dense(), K.T, lower=True, check_finite=False)
        least = np.finfo(np.float64).eps * H  # of a row that the basis spans rounding is left
        h = np.maximum(H - np.einsum("ij,ij->j", Z, Z), least)
        if self.bias:
            w1 = self._w[1, : self.factor.size]
            h = h + (1.0 - w1 @ Z) ** 2 / (w1 @ w1)
        return np.asarray(h)  # [Jiao2007, eq. (23)]


class SampledSearch:
    """All problems of algorithm 2 side by side.

    Every step draws one random order of the rows; each problem looks at the first ``candidates`` of
    them that are not in its basis yet, a uniform draw from its set Q. The kernel values between
    these rows and all basis functions are gathered once for all problems, and their residuals are
    one product.

    Notes
    -----
    Per step and problem size^2 operations for the factor, and candidates x size for the residual.
    Kernel columns of new basis functions are computed over all rows, 64 at a time, while the budget
    lasts; later ones are evaluated at the candidates, step by step.
    """

    def __init__(
        self, search: Search, Y: FloatArray, rng: np.random.Generator, *, want_fitted: bool
    ) -> None:
        self.on_event, self.want_fitted = search.on_event, want_fitted
        columns, settings = search.columns, search.settings
        self.columns, self.Y, self.settings, self.rng = columns, Y, settings, rng
        self.H, self.pool, self.held = search.H, np.flatnonzero(search.usable), search.held
        self.held_weight = search.weight[self.held]
        self.problems = [_Problem(y, search.bias, settings.prefit) for y in Y.T]
        self.in_basis = np.zeros((columns.n, Y.shape[1]), dtype=bool)
        self.slot_of = np.full(columns.n, -1, dtype=np.intp)
        self.order: list[int] = []  # the row of each slot
        self.store = RowStore(columns)  # columns of the first slots
        self.A = np.zeros((64, Y.shape[1]))  # coefficients per slot and problem

    def run(self) -> list[Trace]:
        """Take steps until every problem has stopped."""
        running = self._step(self.pool, np.arange(len(self.problems)), first=True)
        while len(running):
            running = self._step(self._draw(running), running)
            late = self.order[self.store.size :]
            if len(late) >= _PENDING and self.store.size < self.columns.limit:
                self.store.append(np.array(late, dtype=np.intp))
            if self.on_event is not None and len(running):
                p = int(running[0])
                self.on_event(self.problems[p].trace.event(p))
        if self.want_fitted:
            self._fit_all()
        return [problem.trace for problem in self.problems]

    def _fit_all(self) -> None:
        """Evaluate the final models at all rows."""
        kept, many = self.store.size, len(self.order)
        fitted = self.store.product(self.A[:kept])
        for part in slices(many - kept, 512):
            late = np.array(self.order[kept + part.start : kept + part.stop], dtype=np.intp)
            A = self.A[kept + part.start : kept + part.stop]
            fitted += (A.T @ self.columns.compute(late)).T
        for p, problem in enumerate(self.problems):
            problem.trace.fitted = fitted[:, p] + problem.b

    def _draw(self, running: IntArray) -> IntArray:
        """Draw rows until every running problem has its candidates (or there are no more)."""
        n, wanted = len(self.pool), self.settings.candidates or len(self.pool)
        taken = max(self.problems[p].factor.size for p in running)
        share = taken / n  # of the rows drawn that a problem cannot use
        many = min(n, math.ceil((wanted + 4.0 * math.sqrt(wanted * share)) / (1.0001 - share)))
        while True:
            rows: IntArray = self.pool[self.rng.choice(n, many, replace=False)]
            free = (~self.in_basis[rows][:, running]).sum(axis=0)
            left = n - np.array([self.problems[p].factor.size for p in running])
            if many == n or np.all(free >= np.minimum(wanted, left)):
                return rows
            many = min(n, 2 * many)

    def _step(self, rows: IntArray, running: IntArray, *, first: bool = False) -> IntArray:
        looked = rows if len(self.held) == 0 else np.concatenate([rows, self.held])
        parts = self._kernel(looked)
        R = -self.Y[np.ix_(looked, running)]
        R += [self.problems[p].b for p in running]
        done = 0
        for part in parts:
            A = self.A[done : done + part.shape[1], running]
            R += part @ A.astype(part.dtype, copy=False)
            done += part.shape[1]
        m = len(rows)
        free = ~self.in_basis[rows][:, running]
        if not first:
            free &= np.cumsum(free, axis=0) <= (self.settings.candidates or m)
        size = np.where(free, np.abs(R[:m]), 0.0)  # [Jiao2007, eq. (28)]
        gain = size**2 / self.H[rows][:, None]  # [Jiao2007, eq. (30)]
        left: list[int] = []
        largest: list[float] = size.max(axis=0).tolist()
        some: list[bool] = np.asarray(free.any(axis=0)).tolist()
        best = np.argmax(np.where(free, gain, -1.0), axis=0)
        K = np.hstack(parts)[:m] if self.settings.prefit and parts else np.empty((m, 0))
        for c, p in enumerate(running):
            problem = self.problems[p]
            if self.settings.prefit:
                curvature = problem.curvature(self.H[rows], K[:, problem.slots])
                best[c] = np.argmax(np.where(free[:, c], size[:, c] ** 2 / curvature, -1.0))
            if problem.factor.size:
                problem.trace.record(largest[c], R[m:, c], self.held_weight)
            if problem.trace.stops(self.settings, largest[c], some[c]):
                continue
            self._add(int(p), problem, rows, parts, int(best[c]))
            left.append(int(p))
        return np.array(left, dtype=np.intp)

    def _add(
        self, p: int, problem: _Problem, rows: IntArray, parts: list[FloatArray], j: int
    ) -> None:
        row = int(rows[j])
        k = np.concatenate([part[j] for part in parts]) if parts else np.empty(0)
        k = k[problem.slots].astype(np.float64, copy=False)
        if self.slot_of[row] < 0:
            self.slot_of[row] = len(self.order)
            self.order.append(row)
            if len(self.order) > len(self.A):
                self.A = np.concatenate([self.A, np.zeros_like(self.A)])
        coef = problem.add(row, int(self.slot_of[row]), k, float(self.H[row]))
        self.A[problem.slots, p] = coef
        self.in_basis[row, p] = True

    def _kernel(self, rows: IntArray) -> list[FloatArray]:
        """Return K between rows and all slots in pieces of some slots, (len(rows), ...)."""
        parts = self.store.take(rows)
        late = self.order[self.store.size :]
        if late:
            parts.append(self.columns.block(rows, np.array(late, dtype=np.intp)))
        return parts
