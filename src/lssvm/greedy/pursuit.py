r"""Kernel matching pursuit and the sparse greedy Gaussian process, by the same greedy scheme."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm._core.blocks import slices
from lssvm._core.magnitudes import check_gram
from lssvm.greedy.columns import ColumnStore, KernelColumns
from lssvm.greedy.path import Greedy, GreedyPath, OnEvent, Trace, best_size
from lssvm.greedy.sampled import PackedCholesky
from lssvm.solvers import DualSystem

_SPANNED = 1e-11  # of a function's squared length: less than this outside the basis is rounding


class Pursuit:
    r"""Greedy minimisation of the squared loss over a growing basis.

    The losses of [Jiao2007]_, eqs. (36) and (37), are 1/2 a^T S a - t^T a with

    .. math:: S = K^T K + D / C, \qquad t = K^T y, \qquad D = I \text{ (kmp) or } K \text{ (sggp)},

    the loss of FSALS with another matrix and other targets: the same gains and the same growing
    Cholesky factor serve. With a bias, the columns of K and y are centred; with weights the
    products are weighted.

    Notes
    -----
    Where the print has a regularisation parameter of its own, it is 1/C here, so that "sggp" is
    the primal LS-SVM 1/2 w'w + C/2 sum e^2 restricted to the basis. Sparse greedy Gaussian
    processes choose by prefitting: ``prefit=True``. Time n^2 per step with all rows as candidates
    (the n x n kernel matrix is stored when half the budget can hold it, else recomputed), or
    n (size + candidates d) with some, times size with prefitting.
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
        self.held = np.flatnonzero(~usable)
        self.held_weight = weight[self.held]
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
        """Take steps for one column of targets until something says stop."""
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
            trace.record(error, self.residual[parent.held], parent.held_weight)
        return trace.stops(parent.settings, error, bool(self.free.any()))

    def step(self, rows: IntArray) -> None:
        """Add the best of ``rows`` to the basis and solve again.

        A row whose function the basis spans to rounding already is set aside instead.
        """
        parent, weighted = self.parent, self.parent.w * self.residual
        everything = len(parent.curvature) > 0
        if everything:
            gradient, curvature = parent._correlate(weighted)[rows], parent.curvature[rows]
            gone = self.gone[rows] if parent.settings.prefit else 0.0
            K = None
        else:
            K = parent.columns.compute(rows).T.astype(np.float64, copy=False)
            gradient = K.T @ weighted
            curvature = parent._diagonal(K) + parent.penalty[rows] / parent.C
            gone = self._explained(rows, K) if parent.settings.prefit else 0.0
        if parent.settings.criterion == "sggp":
            fitted = (self.y - self.residual)[rows] - self.b
            gradient = gradient - fitted / parent.C
        spanned = curvature - gone <= _SPANNED * curvature
        if spanned.all():
            self.free[rows] = False
            return
        left = np.where(spanned, 1.0, curvature - gone)
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
