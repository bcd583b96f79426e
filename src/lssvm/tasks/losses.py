"""How held-out outputs are scored: losses of rows, and scikit-learn's scorers.

A loss holds no data. What it compares outputs with are `Targets`: numbers, class numbers and
weights of the same rows, wherever they are (arrays of NumPy, or of a device). Scores that differ by
rounding alone are tied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer

from lssvm._core.arrays import Array, FloatArray, IntArray, get_namespace, pick
from lssvm._core.errors import InvalidInputError

SAME = 1e-9
"""Scores that differ by less than this part of the largest are the same, but for rounding."""


def tie_scores(scores: FloatArray) -> FloatArray:
    """Return scores of which those that differ by rounding alone are equal.

    Equal rows get the same score, but for the last digits, which depend on where a row stands and
    on its own target: whatever ranks rows must not see them.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 2:
        return np.column_stack([tie_scores(column) for column in values.T])
    good = np.flatnonzero(np.isfinite(values))
    if len(good) < 2:
        return values
    order = good[np.argsort(values[good], kind="stable")]
    ordered = values[order]
    least = SAME * max(abs(ordered[0]), abs(ordered[-1]))
    starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > least)
    if len(starts) == len(order):
        return values
    out = values.copy()
    out[order] = np.repeat(ordered[starts], np.diff(starts, append=len(order)))
    return out


@dataclass(frozen=True, eq=False)
class Targets:
    """What is known of some rows."""

    Y: Array
    labels: Array | None = None
    weight: Array | None = None
    sample_weight: FloatArray | None = None
    X: Any = None

    def take(self, rows: IntArray) -> Targets:
        """Return what is known of some of the rows."""
        columns = (self.Y, self.labels, self.weight, self.sample_weight, self.X)
        return Targets(*(pick(column, rows) for column in columns))


class Loss(Protocol):
    """From the outputs of c models on t rows to c numbers; lower is better."""

    def __call__(self, outputs: Array, targets: Targets) -> FloatArray:
        """Return the losses (c,) of outputs of shape (c, t, k)."""


@runtime_checkable
class RowLoss(Protocol):
    """A loss that is a mean over rows, so that sums over blocks of rows are enough."""

    def __call__(self, outputs: Array, targets: Targets) -> FloatArray:
        """Return the losses (c,) of outputs of shape (c, t, k)."""
        values, weight = self.rows(outputs, targets), targets.weight
        mean = values.mean(axis=1) if weight is None else values @ weight / weight.sum()
        return self.finish(np.asarray(mean))

    def rows(self, outputs: Array, targets: Targets) -> Array:
        """Return a number for each row, shape (c, t)."""

    def finish(self, mean: FloatArray) -> FloatArray:
        """Turn weighted means of those numbers into losses."""
        return mean


@dataclass(frozen=True)
class SquaredError(RowLoss):
    """Mean squared error over rows and outputs."""

    def rows(self, outputs: FloatArray, targets: Targets) -> FloatArray:
        """Return the mean squares of each row, shape (c, t)."""
        xp = get_namespace(outputs)
        return xp.mean((outputs - targets.Y[None, ...]) ** 2, axis=2)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class AbsoluteError(RowLoss):
    """Mean absolute error over rows and outputs: a few wrong targets do not decide."""

    def rows(self, outputs: FloatArray, targets: Targets) -> FloatArray:
        """Return the mean absolute errors of each row, shape (c, t)."""
        xp = get_namespace(outputs)
        return xp.mean(xp.abs(outputs - targets.Y[None, ...]), axis=2)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Misclassification(RowLoss):
    """Minus the share of rows whose class is right."""

    decide: Callable[[Array], Array]

    def rows(self, outputs: Array, targets: Targets) -> Array:
        """Return 1 where a row is right, shape (c, t)."""
        xp = get_namespace(outputs)
        c, t, k = outputs.shape
        decided = xp.reshape(self.decide(xp.reshape(outputs, (c * t, k))), (c, t))
        labels = xp.astype(targets.labels, decided.dtype)[None, :]
        return xp.astype(decided == labels, outputs.dtype)

    def finish(self, mean: FloatArray) -> FloatArray:
        """Return minus the share; `lssvm.tuning.Losses` takes equal means of folds for equal."""
        return -mean


class _Answers(BaseEstimator):
    """An estimator whose answers are known already, for scorers to ask."""

    def __init__(self, prediction: Any = None, scores: Any = None) -> None:
        self.prediction = prediction
        self.scores = scores

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Any:
        return self.prediction


class _NumberAnswers(RegressorMixin, _Answers):
    pass


class _ClassAnswers(ClassifierMixin, _Answers):
    classes_: Any

    def decision_function(self, X: Any) -> Any:
        return self.scores


class Answering(Protocol):
    """The part of a task that a scorer needs."""

    @property
    def classes(self) -> Any:
        """Class labels; None for numbers."""

    def predict(self, raw: Any) -> Any:
        """Return predictions (t,) from outputs (t, k)."""

    def scores(self, raw: Any) -> Any:
        """Return decision values from outputs (t, k)."""

    def truth_of(self, targets: Targets) -> Any:
        """Return the targets as the caller gave them."""


class ScorerLoss:
    """Minus a score of scikit-learn."""

    def __init__(self, scoring: Any, task: Answering) -> None:
        try:
            self.scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
        except ValueError as error:
            raise InvalidInputError(f"scoring={scoring!r} is not known. {error}") from error
        if not callable(self.scorer):
            raise InvalidInputError(
                f"scoring={scoring!r} is not usable: give the name of a scikit-learn scorer or a "
                "callable scorer(estimator, X, y)."
            )
        self.task = task

    def __call__(self, outputs: FloatArray, targets: Targets) -> FloatArray:
        """Return the losses (c,)."""
        losses = np.empty(len(outputs))
        y = self.task.truth_of(targets)
        X = np.arange(len(targets.Y))[:, None] if targets.X is None else targets.X
        extra = {} if targets.sample_weight is None else {"sample_weight": targets.sample_weight}
        for i, raw in enumerate(outputs):
            if not np.all(np.isfinite(raw)):
                losses[i] = np.inf
                continue
            if self.task.classes is None:
                answers: _Answers = _NumberAnswers(self.task.predict(raw))
            else:
                answers = _ClassAnswers(self.task.predict(raw), tie_scores(self.task.scores(raw)))
                answers.classes_ = self.task.classes
            losses[i] = -self._score(answers, X, y, extra)
        return losses

    def _score(self, answers: _Answers, X: Any, y: Any, extra: dict[str, Any]) -> float:
        try:
            return float(self.scorer(answers, X, y, **extra))
        except AttributeError as error:
            raise InvalidInputError(
                f"The scorer {self.scorer!r} asks for what the model does not give ({error}). Use "
                "a scorer of predictions or decision values."
            ) from error
        except TypeError as error:
            if not extra:
                raise
            raise InvalidInputError(
                f"The scorer {self.scorer!r} cannot be used with sample weights ({error}). Use one "
                "that takes sample_weight, or fit without weights."
            ) from error
