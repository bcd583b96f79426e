"""Huber and absolute loss for the fixed-size model on rows that are read in blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray
from lssvm.data import Block
from lssvm.kernels import Kernel
from lssvm.kernels.base import Evaluate
from lssvm.moments import Moments, NystromMap, Piece, accumulate_stream
from lssvm.solvers.primal import solve_primal
from lssvm.solvers.reweighting import MAX_ITER, TOLERANCE, robust_weights, warn_unsettled


@dataclass(frozen=True, eq=False)
class _Sweep:
    """One pass: weights that follow from the residuals of a model, and how far it has moved."""

    kernel: Kernel
    Z: FloatArray
    models: FloatArray  # (m, 2): the model and the one before it
    intercepts: FloatArray  # (2,)
    loss: str
    scale: float
    limits: dict[str, int]

    def __call__(self, pieces: Iterable[Piece]) -> tuple[Moments, float, int]:
        """Return reweighted moments, the squared change of the predictions, and the rows."""
        source = partial(_Reweighted, sweep=self, values=self.kernel.against(self.Z), moved=[])
        (moments,) = accumulate_stream(
            self.kernel, pieces, self.Z, 1, 1, source=source, **self.limits
        )
        moved: list[tuple[float, int]] = source.keywords["moved"]
        return moments, math.fsum(change for change, _ in moved), sum(n for _, n in moved)


@dataclass(frozen=True, eq=False)
class _Reweighted:
    """Rows of a stream as a `RowSource` whose weights are robust ones."""

    rows: Piece
    sweep: _Sweep
    values: Evaluate
    moved: list[tuple[float, int]]
    n_targets: int = 1

    @property
    def n_rows(self) -> int:
        return len(self.rows.X)

    def read(self, part: slice) -> Block:
        X, Y, weight = self.rows.X[part], self.rows.Y[part], self.rows.weight
        fitted = np.asarray(self.values(X)) @ self.sweep.models + self.sweep.intercepts
        self.moved.append((float(np.sum((fitted[:, 0] - fitted[:, 1]) ** 2)), len(X)))
        factors = robust_weights(Y[:, 0] - fitted[:, 0], self.sweep.loss, self.sweep.scale)
        return Block(X, Y, factors if weight is None else factors * weight[part], part.start)


def _added(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def solve_reweighted_stream(
    kernel: Kernel,
    reduce: Callable[[Callable[[Iterable[Piece]], Any], Callable[[Any, Any], Any]], Any],
    Z: NDArray[Any],
    map: NystromMap,
    C: float,
    loss: str,
    scale: float,
    start: tuple[FloatArray, FloatArray],
    *,
    budget: int = 2**31,
    threads: int = 1,
    tol: float = TOLERANCE,
    max_iter: int = MAX_ITER,
) -> tuple[FloatArray, FloatArray, int]:
    """Minimise what `solve_reweighted` minimises, without rows in memory.

    Parameters
    ----------
    kernel : Kernel
    reduce : callable
        ``reduce(work, combine)`` applies ``work`` to all rows, an iterable of pieces in one cell
        with one target, or to parts of the rows, and combines the results; once per pass.
    Z : array of shape (m, d)
    map : NystromMap
    C : float
    loss : {"huber", "absolute"}
    scale : float
        Robust standard deviation of the residuals of the start, which is that of a sample.
    start : (array of shape (m, 1), array of shape (1,))
        Coefficients and intercept of the least squares model.
    budget, threads : int
    tol : float, default=1e-3
    max_iter : int, default=100

    Returns
    -------
    coef : array of shape (m, 1)
    intercept : array of shape (1,)
    iterations : int

    Notes
    -----
    One pass of n m^2 operations per iteration and one more at the end; every pass evaluates the
    last two models, from which residuals and the change of the predictions follow.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import nystrom_map
    >>> from lssvm.kernels import Linear
    >>> from lssvm.moments import Piece
    >>> from lssvm.solvers.reweighting_stream import solve_reweighted_stream
    >>> X = np.arange(9.0)[:, None]
    >>> y = X.copy()
    >>> y[8] = 100.0
    >>> rows = np.arange(9)
    >>> start = (np.array([[5.0]]), np.array([0.0]))
    >>> piece = Piece(X, y, None, 0 * rows, rows, 0 * rows)
    >>> coef, b, _ = solve_reweighted_stream(
    ...     Linear(), lambda work, combine: work([piece]), np.eye(1),
    ...     nystrom_map(Linear(), np.eye(1)), 1e6, "absolute", 10.0, start)
    >>> coef.round(2)
    array([[1.]])
    """
    Z = np.asarray(Z, dtype=np.float64)
    model = before = start
    if scale == 0.0:
        return *start, 0
    change, limits = np.inf, {"budget": budget, "threads": threads}
    for iteration in range(max_iter + 1):
        models = np.column_stack([model[0], before[0]])
        intercepts = np.concatenate([model[1], before[1]])
        sweep = _Sweep(kernel, Z, models, intercepts, loss, scale, limits)
        moments, changes, count = reduce(sweep, _added)
        change = math.sqrt(changes / max(count, 1))
        if iteration > 0 and change <= tol * scale:
            return *model, iteration
        if iteration < max_iter:
            before, model = model, solve_primal(moments, map, C)
    warn_unsettled(loss, change / scale, max_iter)
    return *model, max_iter
