r"""PFSALS: the best of a few random rows joins the basis (algorithm 2 of [Jiao2007]_)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtpsv, dtrsm

from lssvm._core.arrays import BoolArray, FloatArray, IntArray, check_gram
from lssvm._core.blocks import slices
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError, not_known, not_usable
from lssvm._core.random import RandomState, as_generator
from lssvm.greedy.path import (
    NOT_DEFINITE,
    ColumnStore,
    Greedy,
    GreedyPath,
    KernelColumns,
    OnEvent,
    Search,
    Trace,
    best_size,
    cholesky,
    left_out_errors,
    solve_size,
    support_gram,
)
from lssvm.solvers import DualSystem

_WIDTH = 512  # columns per piece of a store
_PENDING = 64  # basis functions whose columns are computed together


class PackedCholesky:
    """A Cholesky factor that grows by one row at a time, without a copy per solve.

    Its rows stand one after the other, which is BLAS's packed upper storage of the transpose.
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
    """Kernel columns kept row by row, so that all of them are quickly read at a few rows."""

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
    """

    def __init__(
        self, search: Search, Y: FloatArray, rng: np.random.Generator, *, want_fitted: bool
    ) -> None:
        self.on_event, self.want_fitted = search.on_event, want_fitted
        columns, settings = search.columns, search.settings
        self.columns, self.Y, self.settings, self.rng = columns, Y, settings, rng
        self.H, self.pool, self.held_out = search.H, np.flatnonzero(search.usable), search.held_out
        self.held_out_weight = search.weight[self.held_out]
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
        scanned = rows if len(self.held_out) == 0 else np.concatenate([rows, self.held_out])
        parts = self._kernel(scanned)
        R = -self.Y[np.ix_(scanned, running)]
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
                problem.trace.record(largest[c], R[m:, c], self.held_out_weight)
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


_HOT = 256  # rows among which a block of steps is tried out
_STEPS = 32  # steps tried out at most before all rows are looked at
_TIE = 1e-10  # gains that differ by less, relatively, are equal (float32: 1e-5)


@dataclass
class _Scalars:
    """Inner products of G^-1 y and G^-1 1, from which bias and objective follow."""

    yy: float = 0.0
    y1: float = 0.0
    s11: float = 0.0

    def add(self, wy: float, w1: float) -> None:
        self.yy += wy * wy
        self.y1 += wy * w1
        self.s11 += w1 * w1

    @property
    def bias(self) -> float:
        return self.y1 / self.s11 if self.s11 > 0 else 0.0

    @property
    def objective(self) -> float:
        return -0.5 * (self.yy - self.y1 * self.bias)


class FullSearch:
    r"""One problem of algorithm 1, in the Newton basis of its Cholesky factor.

    With H = K + ridge on the support P, H = G G^T and V = K[:, P] G^-T, the residual of eq. (28) is

    .. math:: r = (V w_y - y) - b (V w_1 - 1), \qquad w_y = G^{-1} y_P, \quad w_1 = G^{-1} 1,
              \quad b = w_1^T w_y / w_1^T w_1,

    and a new basis function s adds one column v = (K[:, s] - V V[s]^T) / d to V with
    d^2 = H_ss - ||V[s]||^2: eq. (15)-(18) for the definite part of the system. (The bordered
    matrix itself is indefinite, so that eq. (18) cannot hold for it as printed; its border is
    eliminated instead.) Everything else is O(n) per step, the curvature of prefitting (eq. (23))
    included:

    .. math:: h_i = H_{ii} - \|V_i\|^2 + (1 - V_i^T w_1)^2 / w_1^T w_1 .
    """

    def __init__(self, search: Search, y: FloatArray, limit: int, number: int = 0) -> None:
        self.on_event, self.number = search.on_event, number
        self.columns, self.settings, self.bias = search.columns, search.settings, search.bias
        columns, self.H = search.columns, search.H
        self.uniform = bool(np.all(self.H == self.H[0]))  # then the largest error gains most
        self.least = float(search.ridge.min())  # no row outside the basis has a smaller curvature
        self.V = ColumnStore(columns.n, columns.dtype, limit)
        self.y = y
        self.Fy, self.F1 = -y.astype(np.float64), np.full(columns.n, -1.0)
        self.q = np.zeros(columns.n)
        self.active, self.held_out = search.usable.copy(), search.held_out
        self.held_out_weight = search.weight[self.held_out]
        self.scalars, self.trace = _Scalars(), Trace()
        self.steps = _STEPS
        self.tie = _TIE if columns.dtype == np.float64 else 1e-5

    def run(self) -> Trace:
        """Take steps until a rule stops the run."""
        trace, most = self.trace, self.settings.max_support
        while self.active.any():
            if not trace.support and np.max(np.abs(self.Fy[self.active])) <= self.settings.epsilon:
                trace.status = "epsilon"
                break
            limit = self.V.limit if most is None else min(most, self.V.limit)
            if self.V.size >= limit:
                trace.status = "max_support" if limit == most else "memory"
                break
            if self._accept(*self._try(min(self.steps, limit - self.V.size))):
                break
            if self.on_event is not None:
                self.on_event(trace.event(self.number))
        trace.fitted = self._residual() + self.y  # of rows outside the basis
        return trace

    def _residual(self) -> FloatArray:
        return np.asarray(self.Fy - self.scalars.bias * self.F1 if self.bias else self.Fy)

    def _curvature(self, H: FloatArray, q: FloatArray, F1: FloatArray, s11: Any) -> FloatArray:
        """Return what divides r^2: eq. (30), or (23) with prefitting."""
        if not self.settings.prefit:
            return H
        if not self.bias:
            return np.asarray(np.maximum(H - q, self.least))
        if np.ndim(s11) == 0 and s11 == 0.0:
            return H  # one function alone gets the coefficient 0: choose by eq. (30)
        return np.asarray(np.maximum(H - q + F1**2 / s11, self.least))  # [Jiao2007, eq. (23)]

    def _hot(self) -> IntArray:
        """Return the rows of largest gain, ascending; of equals the first ones."""
        gain = self._residual() ** 2 / self._curvature(self.H, self.q, self.F1, self.scalars.s11)
        gain[~self.active] = -1.0
        if self.active.sum() <= _HOT:
            return np.flatnonzero(self.active)
        cut = np.partition(gain, len(gain) - _HOT)[len(gain) - _HOT]
        above = np.flatnonzero(gain > cut)
        equal = np.flatnonzero(gain == cut)[: _HOT - len(above)]
        return np.sort(np.concatenate([above, equal]))

    def _try(self, steps: int) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Take steps among the hot rows only: rows, block of the factor, w_y, w_1."""
        hot = self._hot()
        size, steps = self.V.size, min(steps, len(hot))
        V = np.empty((size + steps, len(hot)))
        V[:size] = self.V.rows(hot)
        H, Fy, F1 = self.H[hot], self.Fy[hot], self.F1[hot]
        q = np.einsum("ij,ij->j", V[:size], V[:size])
        column = self.columns.near(hot)
        left = np.ones(len(hot))
        scalars = replace(self.scalars)
        picked = np.empty(steps, dtype=np.intp)
        wy, w1 = np.empty(steps), np.empty(steps)
        for t in range(steps):
            r = Fy - scalars.bias * F1 if self.bias else Fy
            curvature = self._curvature(H, q, F1, scalars.s11)
            gain = np.where(left > 0, r * r / curvature, -1.0)  # 0 where all is explained
            j = int(np.argmax(gain))  # [Jiao2007, eq. (30)]
            at = size + t
            square = H[j] - q[j]  # 1/lambda of eq. (15), for the definite part
            if not square > 0:
                raise NotPositiveDefiniteError(NOT_DEFINITE)
            d = np.sqrt(square)
            v = (column(int(hot[j])) - V[:at, j] @ V[:at]) / d  # [Jiao2007, eq. (18)]
            v[j] = d
            wy[t], w1[t] = -Fy[j] / d, -F1[j] / d if self.bias else 0.0
            V[at] = v
            Fy, q = Fy + wy[t] * v, q + v * v
            if self.bias:
                F1 = F1 + w1[t] * v
            scalars.add(wy[t], w1[t])
            left[j], picked[t] = 0.0, j
        return hot[picked], V[size:, picked].T, wy, w1

    def _accept(self, rows: IntArray, G: FloatArray, wy: FloatArray, w1: FloatArray) -> bool:
        """Keep the steps that algorithm 1 would have taken; say whether to stop."""
        steps = len(rows)
        W = self.columns.columns(rows)
        if self.V.size:
            W -= self.V.combine(self.V.rows(rows).T)
        new = dtrsm(1.0, G, W.T, side=1, lower=1, trans_a=1, overwrite_b=1).T  # (steps, n)
        scalars, states = replace(self.scalars), []
        for t in range(steps):
            scalars.add(wy[t], w1[t])
            states.append((scalars.bias, scalars.s11, scalars.objective))
        b, s11, objective = (np.array(column) for column in zip(*states, strict=True))
        lower = np.tril(np.ones((steps, steps)))
        R = (lower * (wy - b[:, None] * w1)) @ new  # row t: the residual after step t, eq. (28)
        R += self.Fy
        if self.bias:
            R -= b[:, None] * self.F1
        gain = R * R  # of every row after every step
        gain *= self.active
        for t in range(steps):
            gain[t:, rows[t]] = 0.0
        error = np.sqrt(gain.max(axis=1))
        if self.settings.prefit:
            q = self.q + lower @ (new * new)
            F1 = self.F1 + (lower * w1) @ new
            gain /= self._curvature(self.H, q, F1, s11[:, None])
        elif not self.uniform:
            gain /= self.H
        kept, stop = self._scorer(rows, gain, error)
        self.trace.support.extend(rows[:kept].tolist())
        self.trace.objective.extend(objective[:kept].tolist())
        for t in range(kept):
            self.trace.record(error[t], R[t, self.held_out], self.held_out_weight)
        stop = self.trace.out_of_patience(self.settings.patience) or stop
        self._advance(rows[:kept], new[:kept], wy[:kept], w1[:kept])
        self.steps = min(_STEPS, max(2, 2 * kept))
        return stop

    def _scorer(self, rows: IntArray, gain: FloatArray, error: FloatArray) -> tuple[int, bool]:
        """Return how many steps stand, and whether eq. (31) holds after the last of them."""
        best = error**2 if self.uniform and not self.settings.prefit else gain.max(axis=1)
        left, steps = int(self.active.sum()), len(rows)
        for t in range(steps):
            if error[t] <= self.settings.epsilon and left > t + 1:  # [Jiao2007, eq. (31)]
                self.trace.status = "epsilon"
                return t + 1, True
            if t + 1 < steps and gain[t, rows[t + 1]] < best[t] * (1.0 - self.tie):
                return t + 1, False
        return steps, False

    def _advance(self, rows: IntArray, new: FloatArray, wy: FloatArray, w1: FloatArray) -> None:
        self.V.append(new)
        self.Fy += wy @ new
        if self.bias:
            self.F1 += w1 @ new
        if self.settings.prefit:
            self.q += np.einsum("ij,ij->j", new, new)
        self.active[rows] = False
        for t in range(len(rows)):
            self.scalars.add(wy[t], w1[t])


_SPANNED = 1e-11  # of a function's squared length: less than this outside the basis is rounding


class Pursuit:
    r"""Greedy minimisation of the squared loss over a growing basis.

    The losses of [Jiao2007], eqs. (36) and (37), are 1/2 a^T S a - t^T a with

    .. math:: S = K^T K + D / C, \qquad t = K^T y, \qquad D = I \text{ (kmp) or } K \text{ (sggp)},

    the loss of FSALS with another matrix and other targets: the same gains and the same growing
    Cholesky factor serve. With a bias, the columns of K and y are centred; with weights the
    products are weighted.
    """

    def __init__(
        self,
        system: DualSystem,
        settings: Greedy,
        *,
        usable: BoolArray,
        weight: FloatArray,
        on_event: OnEvent | None = None,
    ) -> None:
        self.system, self.settings, self.usable = system, settings, usable
        self.on_event = on_event
        self.n, self.C, self.bias = system.n, system.C, system.bias
        self.w = np.where(usable, weight, 0.0)
        self.total = float(self.w.sum())
        self.held_out = np.flatnonzero(~usable)
        self.held_out_weight = weight[self.held_out]
        self.columns = KernelColumns(system, share=0.2)
        diagonal = system.kernel_diagonal()
        check_gram(diagonal)
        self.penalty = np.ones(self.n)  # the diagonal of D
        if settings.criterion == "sggp":
            self.penalty = diagonal.astype(np.float64)
        self.K: FloatArray | None = None
        self.curvature = np.empty(0)
        if settings.candidates is None:
            self._look_at_all()

    def _look_at_all(self) -> None:
        """Store the kernel matrix where it fits, and find the curvature of every row."""
        if self.n**2 * self.system.dtype.itemsize <= 0.5 * self.system.budget:
            self.K = np.empty((self.n, self.n), self.system.dtype)
            for part in slices(self.n, 1024):
                self.K[part] = self.columns.block(part, np.arange(self.n))
        self.curvature = np.empty(self.n)
        for part in slices(self.n, 512):
            K = self._some(part)
            self.curvature[part] = self._diagonal(K) + self.penalty[part] / self.C

    def _some(self, part: slice) -> FloatArray:
        """Return columns of the kernel matrix, shape (n, len)."""
        if self.K is not None:
            return self.K[:, part]
        return self.columns.compute(np.arange(part.start, part.stop)).T

    def _correlate(self, v: FloatArray) -> FloatArray:
        """Return K v, shape (n,)."""
        if self.K is not None:
            return np.asarray(self.K @ v.astype(self.K.dtype, copy=False), dtype=np.float64)
        return np.concatenate([self._some(part).T @ v for part in slices(self.n, 512)])

    def _mean(self, K: FloatArray) -> FloatArray:
        """Return the weighted means of columns (n, m), zero without a bias."""
        return self.w @ K / self.total if self.bias else np.zeros(K.shape[1])

    def _diagonal(self, K: FloatArray) -> FloatArray:
        """Return the squared lengths of the centred columns (n, m)."""
        return np.asarray(self.w @ (K * K) - self.total * self._mean(K) ** 2)

    def run(self, y: FloatArray, rng: np.random.Generator, number: int = 0) -> GreedyPath:
        """Take steps for one column of targets until a rule stops the run."""
        one = _Run(self, y)
        while not one.stops():
            if self.on_event is not None and one.trace.error:
                self.on_event(one.trace.event(number))
            rows = np.flatnonzero(one.free)
            many = self.settings.candidates
            if many is not None and many < len(rows) and one.trace.support:
                rows = np.sort(rng.choice(rows, many, replace=False))
            one.step(rows)
        return one.path()


class _Run:
    """One problem: basis, factor, predictions."""

    def __init__(self, parent: Pursuit, y: FloatArray) -> None:
        self.parent, self.y = parent, y
        self.mean = float(parent.w @ y / parent.total) if parent.bias else 0.0
        self.free = parent.usable.copy()
        self.basis = ColumnStore(parent.n, np.float64, parent.n)  # K[:, P]
        self.reduced = ColumnStore(parent.n, np.float64, parent.n)  # S[:, P] G^-T, for prefitting
        self.gone = np.zeros(parent.n)  # squares of its rows
        self.factor = PackedCholesky()
        self.targets: list[float] = []
        self.w_t: list[float] = []
        self.offsets: list[float] = []
        self.coef, self.b = np.empty(0), self.mean
        self.residual = y - self.mean
        self.trace = Trace()

    def stops(self) -> bool:
        parent, trace = self.parent, self.trace
        error = float(np.max(np.abs(self.residual[self.free]), initial=0.0))
        if len(trace.error) < len(trace.support):
            trace.record(error, self.residual[parent.held_out], parent.held_out_weight)
        return trace.stops(parent.settings, error, bool(self.free.any()))

    def step(self, rows: IntArray) -> None:
        """Add the best of ``rows`` to the basis and solve again.

        A row whose function the basis spans to rounding already is set aside instead.
        """
        parent, weighted = self.parent, self.parent.w * self.residual
        everything = len(parent.curvature) > 0
        if everything:
            gradient, curvature = parent._correlate(weighted)[rows], parent.curvature[rows]
            explained = self.gone[rows] if parent.settings.prefit else 0.0
            K = None
        else:
            K = parent.columns.compute(rows).T.astype(np.float64, copy=False)
            gradient = K.T @ weighted
            curvature = parent._diagonal(K) + parent.penalty[rows] / parent.C
            explained = self._explained(rows, K) if parent.settings.prefit else 0.0
        if parent.settings.criterion == "sggp":
            fitted = (self.y - self.residual)[rows] - self.b
            gradient = gradient - fitted / parent.C
        spanned = curvature - explained <= _SPANNED * curvature
        if spanned.all():
            self.free[rows] = False
            return
        left = np.where(spanned, 1.0, curvature - explained)
        j = int(np.argmax(np.where(spanned, -1.0, gradient**2 / left)))
        row = int(rows[j])
        column = parent.columns.compute(rows[j : j + 1])[0] if K is None else K[:, j]
        self._add(row, column.astype(np.float64, copy=False), everything)

    def _explained(self, rows: IntArray, K: FloatArray) -> FloatArray:
        """Return s_i^T S_PP^-1 s_i for candidates with columns K (n, m)."""
        if not self.trace.support:
            return np.zeros(len(rows))
        S = self._products(K, rows)
        Z = solve_triangular(self.factor.dense(), S, lower=True, check_finite=False)
        return np.asarray(np.einsum("ij,ij->j", Z, Z))

    def _products(self, K: FloatArray, rows: IntArray) -> FloatArray:
        """Return S between the basis and columns K (n, m), shape (size, m)."""
        parent = self.parent
        S = self.basis.correlate(parent.w[:, None] * K)
        S -= parent.total * np.outer(self.offsets, parent._mean(K))
        if parent.settings.criterion == "sggp":
            S += self.basis.rows(rows) / parent.C
        return S

    def _add(self, row: int, column: FloatArray, everything: bool) -> None:
        parent = self.parent
        mean = float(parent._mean(column[:, None])[0])
        s = self._products(column[:, None], np.array([row]))[:, 0]
        square = float(parent._diagonal(column[:, None])[0] + parent.penalty[row] / parent.C)
        g = self.factor.solve(s)
        self.free[row] = False
        if square - float(g @ g) <= _SPANNED * square:
            return
        d = (square - float(g @ g)) ** 0.5
        target = float(column @ (parent.w * (self.y - self.mean)))  # the mean of y - mean is 0
        if everything and parent.settings.prefit:
            self._reduce(row, column, mean, g, d)
        self.factor.append(g, d)
        self.targets.append(target)
        self.w_t.append((target - float(g @ self.w_t)) / d)
        self.offsets.append(mean)
        self.basis.append(column[None, :])
        w_t = np.asarray(self.w_t)
        self.coef = self.factor.solve_transposed(w_t)
        self.b = self.mean - float(np.asarray(self.offsets) @ self.coef)
        self.residual = self.y - self.basis.combine(self.coef[None, :])[0] - self.b
        self.trace.support.append(row)
        self.trace.objective.append(-0.5 * float(w_t @ w_t))

    def _reduce(self, row: int, column: FloatArray, mean: float, g: FloatArray, d: float) -> None:
        """Add the new column of S[:, P] G^-T over all rows: what prefitting has to subtract."""
        parent = self.parent
        z = parent._correlate(parent.w * (column - mean))
        if parent.settings.criterion == "sggp":
            z = z + column / parent.C
        if self.reduced.size:
            z = z - self.reduced.combine(g[None, :])[0]
        z = z / d
        self.reduced.append(z[None, :])
        self.gone += z * z

    def path(self) -> GreedyPath:
        size = best_size(self.trace, self.parent.settings.patience)
        factor, offsets = self.factor.dense()[:size, :size], np.array(self.offsets[:size])
        w_t, coef = np.asarray(self.w_t[:size]), np.empty(0)
        if size:
            coef = solve_triangular(factor, w_t, lower=True, trans=1)
        return GreedyPath(
            **self.trace.cut(size),
            coef=coef,
            intercept=self.mean - float(offsets @ coef),
            targets=np.array(self.targets[:size]),
            offsets=offsets,
            mean=self.mean,
            bordered=False,
            factor=factor,
        )


_CRITERIA = ("fsals", "kmp", "sggp")


def greedy_paths(
    system: DualSystem,
    Y: FloatArray,
    settings: Greedy | None = None,
    *,
    held_out: BoolArray | None = None,
    random_state: RandomState = 0,
    on_event: OnEvent | None = None,
    left_out: bool = False,
) -> list[GreedyPath]:
    """Build sparse models of several targets, one basis function at a time.

    Algorithms 1 (FSALS) and 2 (PFSALS) of [Jiao2007], and the losses of kernel matching pursuit
    and of the sparse greedy Gaussian process (eqs. (36) and (37)) in the same scheme: the row whose
    kernel function promises the largest fall of the loss joins the basis, and the coefficients of
    the whole basis are solved for again.
    """
    settings = settings or Greedy()
    check_settings(settings)
    n = system.n
    usable = np.ones(n, dtype=bool) if held_out is None else ~np.asarray(held_out, dtype=bool)
    if not usable.any():
        raise InvalidInputError("Every row is held out: leave at least one to learn from.")
    Y = np.asarray(Y, dtype=np.float64)
    weight = np.ones(n) if system.root_weight is None else system.root_weight.astype(float) ** 2
    rng = as_generator(random_state)
    if settings.criterion != "fsals":
        pursuit = Pursuit(system, settings, usable=usable, weight=weight, on_event=on_event)
        draws = rng.spawn(Y.shape[1])
        return [pursuit.run(y, draws[j], j) for j, y in enumerate(Y.T)]
    ridge = 1.0 / (system.C * weight)  # 1/(2 gamma) of [Jiao2007, eq. (12)]
    diagonal = system.kernel_diagonal()
    check_gram(diagonal)
    H = diagonal.astype(np.float64) + ridge
    columns = KernelColumns(system, share=0.4 if settings.candidates is None else 0.8)
    search = Search(columns, ridge, H, settings, system.bias, usable, weight, on_event)
    if settings.candidates is None:
        limit = min(n, max(1, int(0.4 * system.budget / (n * system.dtype.itemsize))))
        traces = [FullSearch(search, y, limit, j).run() for j, y in enumerate(Y.T)]
    else:
        traces = SampledSearch(search, Y, rng, want_fitted=left_out).run()
    return [_finish(search, trace, y, left_out) for trace, y in zip(traces, Y.T, strict=True)]


def check_settings(settings: Greedy) -> None:
    """Raise `InvalidInputError` for settings that cannot be used."""
    if settings.criterion not in _CRITERIA:
        raise not_known("criterion", settings.criterion, f"choose one of {_CRITERIA}.")
    epsilon = settings.epsilon
    number = isinstance(epsilon, (int, float, np.number)) and not isinstance(epsilon, bool)
    if not number or not 0 <= epsilon < np.inf:
        raise not_usable("epsilon", epsilon, "give a finite number >= 0.")
    for name in ("candidates", "max_support", "patience"):
        value, limit = getattr(settings, name), ", or None for no limit"
        limit = "" if name == "patience" else limit
        if value is None and limit:
            continue
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise not_usable(name, value, f"give a whole number >= 1{limit}.")


def support_factor(system: DualSystem, support: IntArray) -> FloatArray:
    """Return the lower Cholesky factor of K + 1/(C s) on the support, shape (m, m), in float64."""
    ridge = 1.0 / (system.C * np.asarray(system.u)[support] ** 2)
    return cholesky(support_gram(system, support) + np.diag(ridge))


def change_C(system: DualSystem, path: GreedyPath, C: float, criterion: str) -> GreedyPath:
    """Return the path with its coefficients solved again at another C, on the same basis."""
    if len(path.support) == 0:
        return path
    if path.factor is None:
        coef, b = path.at(len(path.support), support_factor(replace(system, C=C), path.support))
        return replace(path, coef=coef, intercept=b, left_out=None)
    m = len(path.support)
    D = support_gram(system, path.support) if criterion == "sggp" else np.eye(m)
    factor = cholesky(path.factor @ path.factor.T + D * (1.0 / C - 1.0 / system.C))
    coef, b = path.at(m, factor)
    return replace(path, coef=coef, intercept=b, factor=factor)


def _finish(search: Search, trace: Trace, y: FloatArray, left_out: bool) -> GreedyPath:
    size, bias = best_size(trace, search.settings.patience), search.bias
    kept = trace.cut(size)
    support = kept["support"]
    coef, intercept, others = np.empty(0), 0.0, None
    if size:
        K = search.columns.block(support, support)
        factor = cholesky(K + np.diag(search.ridge[support]))
        coef, intercept = solve_size(factor, y[support], bordered=bias)
        if left_out and size == len(trace.support) and trace.fitted is not None:
            others = trace.fitted
            others[support] = y[support] - left_out_errors(factor, coef, bias, y[support])
    solved = {"coef": coef, "intercept": intercept, "targets": y[support], "left_out": others}
    return GreedyPath(**kept, **solved, bordered=bias)
