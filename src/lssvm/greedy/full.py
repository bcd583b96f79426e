r"""FSALS: the best of all rows joins the basis, one at a time (algorithm 1 of [Jiao2007]_)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg.blas import dtrsm

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import NotPositiveDefiniteError
from lssvm.greedy.columns import ColumnStore, Search
from lssvm.greedy.path import NOT_DEFINITE, Trace

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

    Notes
    -----
    The n x size product of each step would be bound by memory. So a block of up to 32 steps is
    tried out on the 256 most promising rows; then the columns and residuals of all these steps are
    computed for all rows by matrix products, and the steps are kept up to the first at which a row
    outside would have been better. Each kept step is thus that of algorithm 1. Time n m^2 + n m d
    for m steps, memory n m numbers.
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
        self.active, self.held = search.usable.copy(), search.held
        self.held_weight = search.weight[self.held]
        self.scalars, self.trace = _Scalars(), Trace()
        self.steps = _STEPS
        self.tie = _TIE if columns.dtype == np.float64 else 1e-5

    def run(self) -> Trace:
        """Take steps until something says stop."""
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
        kept, stop = self._judge(rows, gain, error)
        self.trace.support.extend(rows[:kept].tolist())
        self.trace.objective.extend(objective[:kept].tolist())
        for t in range(kept):
            self.trace.record(error[t], R[t, self.held], self.held_weight)
        stop = self.trace.out_of_patience(self.settings.patience) or stop
        self._advance(rows[:kept], new[:kept], wy[:kept], w1[:kept])
        self.steps = min(_STEPS, max(2, 2 * kept))
        return stop

    def _judge(self, rows: IntArray, gain: FloatArray, error: FloatArray) -> tuple[int, bool]:
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
