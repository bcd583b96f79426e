"""Huber, absolute and redescending loss, and any differentiable one, by reweighted least squares.

First rows in memory; then rows of the fixed-size model that are read in blocks.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import ConvergenceWarning, InvalidInputError, NumericalWarning
from lssvm.data import ArraySource, Block
from lssvm.kernels import Kernel
from lssvm.kernels.base import Evaluate, evaluate_expansion
from lssvm.solvers.moments import Moments, NystromMap, Piece, accumulate, accumulate_stream
from lssvm.solvers.primal import solve_primal
from lssvm.tasks.losses import DifferentiableLoss

Model = TypeVar("Model")

TOLERANCE, MAX_ITER = 1e-3, 100
"""Change of the predictions, in residual scales, and number of steps that end reweighting."""
_TUNING = 1.345  # of Huber's loss, in robust standard deviations: 95 % efficient at the normal
_MAD = 1.4826  # median absolute deviation to standard deviation of a normal
_SMALL = 1e-3  # scales below which absolute loss is a square, for the sake of the condition number
_EXACT = 1e-10  # of the largest target: residuals of that scale are rounding
_BEND, _END, _LEAST = 2.5, 3.0, 1e-4  # of the weights of [Suykens2002w]


def minimise_loss(
    solve: Callable[[FloatArray, FloatArray], tuple[Model, FloatArray]],
    y: FloatArray,
    start: tuple[Model, FloatArray],
    loss: DifferentiableLoss,
    C: float,
    weight: FloatArray | None = None,
    classes: bool = False,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> tuple[Model, FloatArray, int]:
    """Minimise 1/2 w'w + C sum s L(e) by steps of weighted least squares [Suykens2002, eq. (3.51)].

    ``solve`` takes weights and targets. At its solution alpha = C weights (targets - fitted), and
    w'w = alpha'fitted, for sum alpha = 0. For classes y is 1 or -1 and e = 1 - y f.
    """
    if classes and not np.all(np.isin(y, (-1.0, 0.0, 1.0))):
        raise InvalidInputError(
            f"loss={loss!r} needs the targets +1 and -1: use Coding(targets='label')."
        )
    s = np.ones(len(y)) if weight is None else weight
    sign = y if classes else np.ones(len(y))  # 1 - y f = y (y - f)
    unit = float(np.std(y)) or 1.0
    (model, fitted), best, raised, change = start, np.inf, 1.0, np.inf
    for step in range(max_iter):
        error = sign * (y - fitted)
        h = raised * np.maximum(loss.curvature(error), _FLAT / unit**2)
        targets = fitted + sign * loss.derivative(error) / h
        found, new = solve(s * h, targets)
        alpha = C * s * h * (targets - new)  # [Suykens2002, eq. (3.52)] where new = fitted
        objective = 0.5 * float(alpha @ new) + C * float(s @ loss.value(sign * (y - new)))
        if objective > best + 1e-12 * abs(best) and raised < 1e12:
            raised *= 4.0
            continue
        change = float(np.sqrt(np.average((new - fitted) ** 2, weights=s))) / unit
        model, fitted, best, raised = found, new, objective, max(1.0, raised / 2.0)
        if change <= tol:
            return model, fitted, step + 1
    warn_unsettled(repr(loss), change, max_iter)
    return model, fitted, max_iter


_FLAT = 1e-6  # least curvature, in units of the targets


def robust_weights(residual: FloatArray, loss: str, scale: float) -> FloatArray:
    """Return the weights that turn squared into robust loss at given residuals."""
    size = np.abs(residual)
    if loss == "huber":
        return np.asarray(np.minimum(1.0, _TUNING * scale / np.maximum(size, 1e-300)))
    if loss == "weighted":
        units = size / max(scale, 1e-300)
        return np.asarray(np.clip((_END - units) / (_END - _BEND), _LEAST, 1.0))  # [Suykens2002w]
    return np.asarray(0.5 / np.maximum(size, max(_SMALL * scale, 1e-300)))


def residual_scale(residual: FloatArray, weight: FloatArray | None = None) -> float:
    """Return the robust standard deviation of residuals: 1.4826 times their median size."""
    size = np.abs(residual).ravel()
    if weight is None:
        return float(_MAD * np.median(size))
    order = np.argsort(size)
    below = np.cumsum(weight[order])
    slack = 1e-12 * below[-1]
    middle = np.searchsorted(below, [0.5 * below[-1] - slack, 0.5 * below[-1] + slack])
    return float(_MAD * np.mean(size[order][np.minimum(middle, len(size) - 1)]))


def reweight(
    solve: Callable[[FloatArray], tuple[Model, FloatArray]],
    y: FloatArray,
    start: tuple[Model, FloatArray],
    loss: str,
    weight: FloatArray | None = None,
    *,
    tol: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    warn: bool = True,
) -> tuple[Model, FloatArray, int]:
    """Turn a solver of weighted least squares into one of a robust loss.

    The scale is that of the current residuals, by the median absolute deviation. "weighted" begins
    where "huber" ends: its weights forget what is far off, so that they need a start which outliers
    have not bent; [Suykens2002w] weights once, from the least squares model. One solve per
    iteration.
    """
    stages = [("huber", 1e-2), (loss, tol)] if loss == "weighted" else [(loss, tol)]
    (model, fitted), steps, change = start, 0, 0.0
    s = np.ones(len(y)) if weight is None else weight
    exact = _EXACT * float(np.max(np.abs(y)))
    for stage, enough in stages:
        scale = residual_scale(y - fitted, weight)
        for _ in range(max_iter):
            if stage != "absolute":  # which has no scale: it is only a unit of length here
                scale = residual_scale(y - fitted, weight)
            if scale <= exact:  # most rows are met
                change = 0.0
                break
            model, new = solve(s * robust_weights(y - fitted, stage, scale))
            change = float(np.sqrt(np.average((new - fitted) ** 2, weights=s))) / scale
            fitted, steps = new, steps + 1
            if change <= enough:
                break
    if warn and change > tol:
        warn_unsettled(loss, change, max_iter)
    return model, fitted, steps


def warn_unsettled(loss: str, change: float, max_iter: int) -> None:
    """Warn that predictions still changed, by so many residual scales, in the last step."""
    warnings.warn(
        f"loss={loss!r}: predictions still changed by {change:.2g} residual scales after "
        f"{max_iter} reweightings; the model is usable. A smaller C converges faster.",
        ConvergenceWarning,
        stacklevel=3,
    )


def solve_reweighted(
    kernel: Kernel,
    X: FloatArray,
    y: FloatArray,
    Z: FloatArray,
    map: NystromMap,
    C: float,
    loss: str | DifferentiableLoss,
    start: tuple[FloatArray, FloatArray],
    weight: FloatArray | None = None,
    *,
    classes: bool = False,
    budget: int = 2**31,
    threads: int = 1,
    tol: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    warn: bool = True,
) -> tuple[FloatArray, FloatArray, int]:
    r"""Minimise :math:`\tfrac12 w^T w + \tfrac C2 \sum_i s_i L(e_i)` for one target.

    L of an object is 2 L there: its squares are :math:`e^2 / 2`.

    The L1 remark under [DeBrabanter2010], eq. (8), which solves a quadratic programme. Reweighting
    takes one pass over the data per iteration, n m^2 operations.
    """

    def predict(coef: FloatArray, intercept: FloatArray) -> FloatArray:
        values = evaluate_expansion(kernel, X, Z, coef, intercept, budget=budget, threads=threads)
        return values[:, 0]

    repaired: list[warnings.WarningMessage] = []

    def solve(
        rows: FloatArray, y: FloatArray = y
    ) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
        source = ArraySource(X, y.reshape(-1, 1), rows)
        moments = accumulate(kernel, source, Z, budget=budget, threads=threads)[0]
        with warnings.catch_warnings(record=True) as caught:  # of these systems, the last counts
            warnings.simplefilter("always", NumericalWarning)
            coef, intercept = solve_primal(moments, map, C)
        repaired[:] = caught
        return (coef, intercept), predict(coef, intercept)

    if isinstance(loss, DifferentiableLoss):
        known = (start, predict(*start))
        model, _, steps = minimise_loss(solve, y[:, 0], known, loss, C, weight, classes)
        return *model, steps
    more: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "warn": warn}
    model, _, steps = reweight(solve, y[:, 0], (start, predict(*start)), loss, weight, **more)
    for warning in repaired:
        warnings.warn(warning.message, stacklevel=2)
    return *model, steps


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
    Z: FloatArray,
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
    """Minimise what `solve_reweighted` minimises, without rows in memory."""
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


ROUGH: dict[str, Any] = {"tol": 1e-2, "max_iter": 30, "warn": False}
"""Of the fit that only finds outlying rows."""


def lower_weights(
    Y: FloatArray, predictions: FloatArray, weight: FloatArray | None, before: FloatArray | None
) -> FloatArray:
    """Return the weights of rows (n,) for the next tuning: those that are far off count little."""
    factors = np.ones(len(Y))
    known = np.flatnonzero(np.isfinite(predictions).all(axis=1))
    known_weight = None if weight is None else weight[known]
    if len(known) == 0:  # a criterion without folds: the rows keep what the rough fit gave them
        ones = np.ones(len(Y)) if weight is None else weight
        return np.asarray(ones if before is None else before, dtype=np.float64)
    for y, values in zip(Y[known].T, predictions[known].T, strict=True):
        scale = residual_scale(y - values, known_weight)
        if scale > 0:
            far = robust_weights(y - values, "weighted", scale)
            factors[known] = np.minimum(factors[known], far)
    lowered = factors if weight is None else factors * weight
    if before is not None:
        unknown = np.setdiff1d(np.arange(len(Y)), known)
        lowered[unknown] = before[unknown]
    return lowered


def absolute_C(C: float, residual: FloatArray, weight: FloatArray | None) -> float:
    """Return the C of absolute loss that weighs as much as C did for squares."""
    return C * 2.0 * max(residual_scale(residual, weight) / 1.4826, 1e-12)
