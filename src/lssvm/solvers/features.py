"""The fixed-size model in feature space: QR factors of Nystrom features add as moments do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate as running
from operator import add

import numpy as np
from scipy.linalg import svd

from lssvm._core.arrays import FloatArray, IntArray, float_rows, pick
from lssvm.kernels import Kernel
from lssvm.solvers.moments import Cells, NystromMap, Piece, nystrom_map
from lssvm.solvers.primal import Bias


@dataclass(frozen=True, eq=False)
class Factor:
    r"""The square root of moments: R of the QR factorisation of rows sqrt(s) [1, phi(x), y].

    Moments hold squares, in which the directions of small eigenvalues drown in rounding; R holds
    the features themselves, so that twice as many digits of their spectrum are left. Factors of
    disjoint rows add: R of two is that of the one above the other.

    Attributes
    ----------
    R : array of shape (q, 1 + r + k)
        Upper trapezoidal, q <= 1 + r + k.
    k : int
        Number of targets.
    weight : float
    n : int
    """

    R: FloatArray
    k: int
    weight: float = 0.0
    n: int = 0

    @classmethod
    def of(cls, F: FloatArray, Y: FloatArray, weight: FloatArray | None) -> Factor:
        """Factorise features (n, r) and targets (n, k): 2 n (r + k)^2 operations."""
        rows = np.column_stack([np.ones(len(F)), F, Y])
        if weight is not None:
            rows *= np.sqrt(weight)[:, None]
        mass = float(len(F) if weight is None else weight.sum())
        return cls(_triangle(rows), Y.shape[1], mass, len(F))

    def __add__(self, other: Factor) -> Factor:
        R = _triangle(np.vstack([self.R, other.R]))
        return Factor(R, self.k, self.weight + other.weight, self.n + other.n)

    @property
    def rank(self) -> int:
        """Number of features r."""
        return int(self.R.shape[1]) - 1 - self.k

    def solve(self, C: FloatArray, bias: Bias = "free") -> tuple[FloatArray, FloatArray]:
        """Return weights of the features (c, r, k) and intercepts (c, k) for every C.

        [DeBrabanter2010, eq. (7)] by one singular value decomposition. The constant is the first
        column, so that below the first row of R stands the problem whose bias is eliminated.
        """
        R, r = self.R, self.rank
        top, left = int(bias == "free"), int(bias != "penalised")
        U, s, Vt = svd(R[top:, left : 1 + r], full_matrices=False, check_finite=False)
        shrunk = s / (s**2 + 1.0 / np.asarray(C, dtype=np.float64)[:, None])  # (c, q)
        W = Vt.T @ (shrunk[:, :, None] * (U.T @ R[top:, 1 + r :]))
        if bias == "free":
            return W, (R[0, 1 + r :] - R[0, 1 : 1 + r] @ W) / R[0, 0]
        if bias == "penalised":
            return W[:, 1:], W[:, 0]
        return W, np.zeros((len(W), self.k))

    def squared_error(self, W: FloatArray, b: FloatArray) -> FloatArray:
        """Return the sums (c, k) of squared errors of models on the rows."""
        r = self.rank
        error = self.R[:, 1 + r :] - self.R[:, :1] * b[:, None, :] - self.R[:, 1 : 1 + r] @ W
        return np.asarray(np.einsum("cqk,cqk->ck", error, error))


def _triangle(rows: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.qr(rows, mode="r"))


def feature_map(kernel: Kernel, Z: FloatArray) -> NystromMap:
    """Return the map of eq. (5) that keeps all directions which rounding of the kernel leaves."""
    return nystrom_map(kernel, Z, tol=float(np.finfo(np.float64).eps))


def stream_factors(
    kernel: Kernel, Z: FloatArray, map: NystromMap, pieces: Iterable[Piece], n_cells: int, k: int
) -> list[Factor]:
    """Return the factors of cells of rows, updated piece by piece [DeBrabanter2010, algorithm 4].

    2 n m (r + k) operations for the features and as many times r + k for the factors.
    """
    cells = [Factor(np.zeros((0, 1 + map.rank + k)), k) for _ in range(n_cells)]
    Z = float_rows(Z)
    for piece in pieces:
        F = np.asarray(kernel(float_rows(piece.X), Z)) @ map.T
        for c in np.unique(piece.cell).tolist():
            rows = np.flatnonzero(piece.cell == c)
            cells[c] = cells[c] + Factor.of(F[rows], piece.Y[rows], pick(piece.weight, rows))
    return cells


@dataclass(eq=False)
class FoldFactors:
    """The factors of every fold, and of what is left for training without it."""

    layout: Cells
    cells: Sequence[Factor]

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.layout.test)

    @cached_property
    def _sums(self) -> tuple[list[Factor], list[Factor]]:
        """Of the first cells that make up all rows, and of the last ones."""
        all_rows = [self.cells[i] for i in self.layout.whole[0]]
        return list(running(all_rows, add)), list(running(all_rows[::-1], add))[::-1]

    @property
    def whole(self) -> Factor:
        """The factor of all rows."""
        return self._sums[0][-1]

    def groups(self, k: int) -> list[IntArray]:
        """Return all columns: they share their training rows."""
        return [np.arange(k)]

    def training(self, v: int) -> Factor:
        """Return the factor of the training rows of a fold, added up from those of the others."""
        if self.layout.train is not None:
            return self.cells[self.layout.train[v][0]]
        at = self.layout.whole[0].index(self.layout.test[v][0])
        first, last = self._sums
        return reduce(add, [*first[max(0, at - 1) : at], *last[at + 1 : at + 2]])

    def testing(self, v: int) -> Factor:
        """Return the factor of the test rows of a fold."""
        return self.cells[self.layout.test[v][0]]

    def test_weight(self) -> FloatArray:
        """Return the weights of the folds' test rows, shape (v,)."""
        return np.array([self.testing(v).weight for v in range(self.n_folds)])

    def test_rows(self) -> IntArray:
        """Return the numbers of the folds' test rows, shape (v,)."""
        return np.array([self.testing(v).n for v in range(self.n_folds)], dtype=np.intp)
