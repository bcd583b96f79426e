"""Robust losses of the regressors: tune, weigh down what is far off, tune again, reweight."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.memory import as_bytes
from lssvm._core.threads import n_threads
from lssvm.criteria.dual import DualPoint
from lssvm.criteria.fixed_size import FixedSizePoint
from lssvm.estimators._validation import check_C, check_option
from lssvm.kernels import evaluate_expansion
from lssvm.moments import nystrom_map
from lssvm.solvers import DualSystem, solve_reweighted
from lssvm.solvers.reweighting import LOSSES, residual_scale, reweight, robust_weights

ROUNDS = 2
"""How often a regressor with a robust loss is tuned again."""

_ROUGH: dict[str, Any] = {
    "tol": 1e-2,
    "max_iter": 30,
}  # of the fit that only says which rows are far off


def check_loss(model: Any) -> None:
    """Raise where a loss is not known, or cannot be had with a reduction."""
    check_option("loss", model.loss, LOSSES)
    if model.loss != "squared" and model.reduction is not None:
        raise InvalidInputError(
            f"reduction={model.reduction!r} belongs to squared loss, which loss={model.loss!r} is "
            "not: use loss='squared', or no reduction."
        )


def lower_weights(
    Y: FloatArray, predictions: FloatArray, weight: FloatArray | None, before: FloatArray | None
) -> NDArray[np.float64]:
    """Return the weights of rows (n,) for the next tuning: those that are far off count little.

    A row is as far off as its worst output; where there is no prediction (NaN) it keeps the weight
    that it had ``before``.
    """
    factors = np.ones(len(Y))
    known = np.flatnonzero(np.isfinite(predictions).all(axis=1))
    own = None if weight is None else weight[known]
    for y, values in zip(Y[known].T, predictions[known].T, strict=True):
        scale = residual_scale(y - values, own)
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


class Rounds(BaseEstimator):
    """Base of the estimators that may be tuned again without what is far off."""

    def _robust_rounds(self) -> int:
        """Return how often: the first time the parameters still are those that outliers chose."""
        return 0 if getattr(self, "loss", "squared") == "squared" else ROUNDS


class RobustDual(Rounds):
    """Robust losses of `LSSVR`."""

    def _weigh_down(
        self,
        problem: Any,
        used: Any,
        system: DualSystem,
        C_of: FloatArray,
        gamma_of: list[Any],
        point: DualPoint | None,
    ) -> Any:
        """Return the problem with less weight on rows that the model of ``used`` is far off from.

        The first time that is Huber's model of all rows, then what cross-validation has predicted.
        """
        predictions = np.full(problem.Y.shape, np.nan)
        if not used.lowered:
            for j, y in enumerate(problem.Y.T):
                part = replace(system, kernel=self._kernel_at(gamma_of[j]), C=float(C_of[j]))
                s = np.ones(part.n) if problem.weight is None else problem.weight
                _, predictions[:, j], _ = reweight(
                    partial(self._weighted, part, y),
                    y,
                    self._weighted(part, y, s),
                    "huber",
                    problem.weight,
                    warn=False,
                    **_ROUGH,
                )
        elif point is not None:
            held = point.predictions(np.array([C_of[0]]))
            for rows, values in zip(point.objective.folds.test, held, strict=True):
                predictions[rows] = values[0]
        weight = lower_weights(problem.Y, predictions, problem.weight, used.weight)
        lowered = self._problem(problem.given, problem.X, problem.Y, weight, problem.support)
        return replace(lowered, lowered=True)

    def _weighted(
        self, part: DualSystem, y: FloatArray, rows: FloatArray
    ) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
        """Return the weighted least squares model (alpha, b) of one output and its predictions."""
        system = replace(part, root_weight=np.sqrt(rows).astype(part.dtype))
        alpha, b, _ = self._solve_system(system, y[:, None])
        values = evaluate_expansion(
            part.kernel, part.rows, part.basis, alpha, b, budget=part.budget, threads=part.threads
        )
        return (alpha, b), np.asarray(values[:, 0], dtype=np.float64)

    def _robust(
        self,
        problem: Any,
        part: DualSystem,
        Y: FloatArray,
        alpha: FloatArray,
        b: FloatArray,
        columns: IntArray,
        C_of: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        self.n_reweightings_ = 0
        if self.loss == "squared" or (self.loss == "weighted" and problem.lowered):
            return alpha, b
        weight = problem.weight
        fitted = evaluate_expansion(
            part.kernel, part.rows, part.basis, alpha, b, budget=part.budget, threads=part.threads
        )
        alpha, b, steps = alpha.copy(), b.copy(), 0
        for i, j in enumerate(columns):
            y, values = Y[:, i], np.asarray(fitted[:, i], dtype=np.float64)
            if self.loss == "absolute" and check_C(self.C) is None:
                C_of[j] = absolute_C(float(C_of[j]), y - values, weight)
            own = replace(part, C=float(C_of[j]))
            start = ((alpha[:, [i]], b[[i]]), values)
            model, _, count = reweight(partial(self._weighted, own, y), y, start, self.loss, weight)
            alpha[:, [i]], b[[i]] = model
            steps = max(steps, count)
        self.n_reweightings_ = steps
        return alpha, b


class SquaredFixed(Rounds):
    """What the fixed-size estimators do about other losses than squares: nothing."""

    def _robust(
        self,
        problem: Any,
        kernel: Any,
        Z: FloatArray,
        map: Any,
        C_of: FloatArray,
        coef: FloatArray,
        intercept: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        return coef, intercept, C_of


class RobustFixed(Rounds):
    """Robust losses of `FixedSizeLSSVR`."""

    def _weigh_down(self, problem: Any, used: Any, Z: FloatArray, tuned: Any) -> Any:
        """Return the problem with less weight on rows that the model of ``used`` is far off from.

        The first time that is Huber's model of all rows, then what cross-validation has predicted.
        """
        kernel, X = self._kernel_at(tuned.gamma), problem.X
        options = {"budget": as_bytes(self.memory_budget), "threads": n_threads(self.n_jobs)}
        predictions = np.full(problem.Y.shape, np.nan)
        if not used.lowered:
            map = nystrom_map(kernel, Z)
            coef, b = self._solve(self._accumulate(problem, kernel, Z), map, None, tuned.C_of)
            for j, C in enumerate(tuned.C_of):
                y, start = problem.Y[:, [j]], (coef[:, [j]], b[[j]])
                more: dict[str, Any] = {"warn": False, **_ROUGH, **options}
                coef[:, [j]], b[[j]], _ = solve_reweighted(
                    kernel, X, y, Z, map, float(C), "huber", start, problem.weight, **more
                )
            predictions[:] = evaluate_expansion(kernel, X, Z, coef, b, **options)
        elif isinstance(tuned.point, FixedSizePoint):
            models: Any = tuned.point.fold_models(float(tuned.C_of[0]))
            tests = [] if models is None else tuned.point.objective.folds.test
            for v, rows in enumerate(tests):
                coef, b = models[0][v], models[1][v]
                predictions[rows] = evaluate_expansion(kernel, X[rows], Z, coef, b, **options)
        weight = lower_weights(problem.Y, predictions, problem.weight, used.weight)
        lowered = self._in_memory(X, problem.Y, weight, problem.support, problem.given)
        return replace(lowered, lowered=True)

    def _robust(
        self,
        problem: Any,
        kernel: Any,
        Z: FloatArray,
        map: Any,
        C_of: FloatArray,
        coef: FloatArray,
        intercept: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        self.n_iter_ = 0
        if self.loss == "squared" or (self.loss == "weighted" and problem.lowered):
            return coef, intercept, C_of
        budget, threads = as_bytes(self.memory_budget), n_threads(self.n_jobs)
        C_of = C_of.copy()
        for j in range(len(C_of)):
            y = problem.Y[:, [j]]
            start = (coef[:, [j]], intercept[[j]])
            if self.loss == "absolute" and check_C(self.C) is None:
                fitted = evaluate_expansion(
                    kernel, problem.X, Z, *start, budget=budget, threads=threads
                )
                C_of[j] = absolute_C(float(C_of[j]), y - fitted, problem.weight)
            coef[:, [j]], intercept[[j]], steps = problem.solve_robust(
                kernel,
                Z,
                map,
                float(C_of[j]),
                self.loss,
                start,
                j,
                budget=budget,
                threads=threads,
            )
            self.n_iter_ = max(self.n_iter_, steps)
        return coef, intercept, C_of
