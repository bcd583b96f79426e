"""``gamma="ard"``: one gamma per feature, found by the evidence and kept by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.namespace import is_sparse
from lssvm.criteria.ard import find_relevance, sample_rows
from lssvm.criteria.ard_evidence import DualRelevance, FixedRelevance
from lssvm.estimators._validation import check_C
from lssvm.kernels import Kernel, has_gamma, make_kernel

T = TypeVar("T")

TUNED = ("cv_results_", "best_score_", "n_evaluations_", "tuning_result_")
"""What tuning leaves on an estimator."""

DUAL_ROWS, FIXED_ROWS, FIXED_PROTOTYPES = 1000, 5000, 300
"""The search for relevance sees so many distinct rows, and so many prototypes, at most."""

POWERS = (1.0, 0.5)
"""How far cross-validation may go from one gamma (0) to what the evidence has found (1)."""

KERNELS = ("matern", "rbf")


class RelevanceMixin(BaseEstimator):
    """Base of the estimators that know ``gamma="ard"``.

    While ``_scales`` (d,) is set, every gamma stands for gamma times these factors.
    """

    _scales: FloatArray | None = None

    def _asks_relevance(self) -> bool:
        return isinstance(self.gamma, str) and self.gamma == "ard"

    def _tunes_gamma(self) -> bool:
        named = isinstance(self.gamma, str) and self.gamma in ("cv", "ard")
        return named and has_gamma(self.kernel)

    def _by_feature(self, gamma: Any) -> Any:
        """Return the values of the features from their common factor; others as they are."""
        if self._scales is None or gamma is None or np.ndim(gamma) > 0:
            return gamma
        return gamma * self._scales

    def _check_relevance(self) -> None:
        """Begin a fit; raise where relevance cannot be found."""
        self._scales = None
        if not self._asks_relevance():
            return
        if not (isinstance(self.kernel, str) and self.kernel in KERNELS):
            raise InvalidInputError(
                f"gamma='ard' cannot be used with kernel={self.kernel!r}: choose one of {KERNELS}, "
                "or another gamma."
            )
        if getattr(self, "tuning", "joint") != "joint":
            raise InvalidInputError(
                f"gamma='ard' finds one set of values for all outputs, so tuning={self.tuning!r} "
                "cannot be used with it: use tuning='joint'."
            )

    def _tune_relevance(
        self,
        evidence: DualRelevance | FixedRelevance,
        gamma: float,
        C: float,
        tuned: T,
        tune: Callable[[], T],
    ) -> T:
        """Search from (C, gamma), tune again with what was found, and keep the better model."""
        found = find_relevance(evidence, gamma, C, tune_C=check_C(self.C) is None)
        spread = _variances(evidence.X, evidence.weight)
        best, scales, record = tuned, None, self._tuning_record()
        evaluations = int(record["n_evaluations_"])
        for power in POWERS:
            factors = (found.gamma / gamma) ** power
            # the mean distance between rows stays as it was, and with it the range of gamma
            self._scales = factors * (spread.sum() / max(float(factors @ spread), 1e-300))
            again = tune()
            evaluations += int(self._tuning_record()["n_evaluations_"])
            if self.best_score_ > record["best_score_"] or (
                scales is None and self.best_score_ == record["best_score_"]
            ):
                best, scales, record = again, self._scales, self._tuning_record()
        self._scales = scales
        for name, value in record.items():
            setattr(self, name, value)
        self.n_evaluations_ = evaluations
        return best

    def _tuning_record(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in TUNED}

    def _store_relevance(self, X: Any, weight: FloatArray | None) -> None:
        """Set ``feature_relevance_``: shares of the features in the mean exponent of the kernel."""
        if self._asks_relevance():
            share = np.broadcast_to(self.gamma_, (X.shape[1],)) * _variances(X, weight)
            total = float(share.sum())
            self.feature_relevance_ = share / total if total > 0 else np.zeros(len(share))


def _variances(X: Any, weight: FloatArray | None) -> FloatArray:
    """Return the weighted variance of every feature, shape (d,)."""
    n = X.shape[0]
    s = np.full(n, 1.0 / n) if weight is None else np.asarray(weight) / np.sum(weight)
    if is_sparse(X):
        mean = np.asarray(s @ X).ravel()
        squares = np.asarray(s @ X.multiply(X).tocsr()).ravel()
        return np.asarray(np.maximum(squares - mean**2, 0.0))
    mean = s @ X
    return np.asarray(s @ (X - mean) ** 2)


def _class_targets(problem: Any, rows: Any) -> FloatArray:
    """Return the targets whose evidence is looked at: of classes, one output each."""
    if problem.labels is None:
        return np.asarray(problem.Y[rows], dtype=np.float64)
    every = np.arange(problem.labels.max() + 1)
    codes = np.where(problem.labels[rows][:, None] == every, 1.0, -1.0)
    return codes[:, 1:] if codes.shape[1] == 2 else codes


def _sample(
    model: Any, problem: Any, weight: FloatArray | None, size: int
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return features, targets and weights of the rows that the search sees."""
    X = problem.X
    rows = sample_rows(X, size, model._seed)
    part = X[rows].toarray() if is_sparse(X) else X[rows]
    targets = _class_targets(problem, rows)
    return np.asarray(part, np.float64), targets, None if weight is None else weight[rows]


def _kernel_of(model: Any) -> Callable[[FloatArray], Kernel]:
    return lambda gamma: make_kernel(model.kernel, gamma=gamma, nu=model.nu)


def spread_dual(
    model: Any,
    problem: Any,
    system: Any,
    folds: Any,
    C: float | None,
    C_of: FloatArray,
    gamma_of: list[Any],
    point: Any,
) -> Any:
    """Give every feature of a tuned dual model a gamma of its own; change C_of and gamma_of."""

    def tune() -> tuple[FloatArray, list[Any], Any]:
        values, widths = C_of.copy(), list(gamma_of)
        again = model._tune(problem, system, folds, C, None, True, values, widths)
        return values, widths, again

    sample = _sample(model, problem, problem.weight, DUAL_ROWS)
    evidence = DualRelevance(_kernel_of(model), *sample, bias=bool(model.fit_intercept))
    tuned = (C_of.copy(), list(gamma_of), point)
    C_of[:], gamma_of[:], point = model._tune_relevance(
        evidence, float(gamma_of[0]), float(C_of[0]), tuned, tune
    )
    return point


def spread_fixed(model: Any, problem: Any, Z: FloatArray, C: float | None, tuned: T) -> T:
    """Give every feature of a tuned fixed-size model a gamma of its own."""
    weight = problem.weight
    if problem.table is not None:
        factor = problem.table.factors[problem.labels]
        weight = factor if weight is None else weight * factor
    X, Y, own = _sample(model, problem, weight, FIXED_ROWS)
    evidence = FixedRelevance(_kernel_of(model), X, Y, Z[:FIXED_PROTOTYPES], own)
    start: Any = tuned
    found: T = model._tune_relevance(
        evidence,
        start.gamma,
        float(np.exp(np.mean(np.log(start.C_of)))),
        tuned,
        lambda: model._tune(problem, Z, C, None, True, False, again=True),
    )
    return found


def tune_fixed(
    model: Any,
    problem: Any,
    Z: FloatArray,
    C: float | None,
    gamma: Any,
    tune_gamma: bool,
    size_by_cv: bool,
) -> tuple[Any, Any]:
    """Tune a fixed-size model as often as its loss and its gamma ask for it.

    Returns what was chosen, and the problem with the weights of a robust loss. Rows that are read
    in blocks keep their weights.
    """
    tuned, used = model._tune(problem, Z, C, gamma, tune_gamma, size_by_cv), problem
    for _ in range(model._robust_rounds() if problem.in_memory else 0):
        used = model._weigh_down(problem, used, Z[: tuned.size], tuned)
        tuned = model._tune(used, Z, C, gamma, tune_gamma, size_by_cv, again=True)
    if model._asks_relevance():
        tuned = spread_fixed(model, used, Z[: tuned.size], C, tuned)
    return tuned, used
