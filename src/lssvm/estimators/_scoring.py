"""Scikit-learn scorers and losses per row as criteria on out-of-fold predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError


@dataclass(frozen=True)
class RowLossCriterion:
    """The mean of a loss per row."""

    row_loss: Callable[[FloatArray, FloatArray], FloatArray]  # predictions, targets -> per row
    Y: FloatArray
    pooled: bool = True

    def __call__(self, predictions: FloatArray, rows: NDArray[np.intp]) -> FloatArray:
        """Return the mean loss of each candidate, shape (c,)."""
        return np.array([float(self.row_loss(p, self.Y[rows]).mean()) for p in predictions])


class _Answers(BaseEstimator):
    """A fitted estimator that answers with predictions made before."""

    def __init__(self, prediction: Any = None, scores: Any = None) -> None:
        self.prediction = prediction
        self.scores = scores

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Any:
        """Return the stored predictions."""
        return self.prediction


class _RegressorAnswers(RegressorMixin, _Answers):
    pass


class _ClassifierAnswers(ClassifierMixin, _Answers):
    classes_: Any

    def decision_function(self, X: Any) -> Any:
        """Return the stored class scores."""
        return self.scores


class ScorerCriterion:
    """Minus the score that a scikit-learn scorer gives to out-of-fold predictions.

    Parameters
    ----------
    scoring : str or callable
    X, y : the training data, as the scorer is to see them
    finish : callable
        From raw outputs (t, k) to (prediction, decision values or None).
    classes : array or None
        Of a classifier.
    weight : array of shape (n,) or None
        Passed to the scorer as ``sample_weight`` when there are weights.
    """

    pooled = False

    def __init__(
        self,
        scoring: Any,
        X: Any,
        y: Any,
        finish: Callable[[FloatArray], tuple[Any, Any]],
        classes: Any,
        weight: FloatArray | None,
    ) -> None:
        try:
            self.scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
        except ValueError as error:
            raise InvalidInputError(f"scoring={scoring!r} is not known. {error}") from error
        if not callable(self.scorer):
            raise InvalidInputError(
                f"scoring={scoring!r} is not usable: give the name of a scikit-learn scorer or a "
                "callable scorer(estimator, X, y)."
            )
        self.X, self.y, self.finish, self.classes, self.weight = X, y, finish, classes, weight

    def __call__(self, predictions: FloatArray, rows: NDArray[np.intp]) -> FloatArray:
        """Return minus the score of each candidate, shape (c,)."""
        extra = {} if self.weight is None else {"sample_weight": self.weight[rows]}
        losses = np.empty(len(predictions))
        for i, raw in enumerate(predictions):
            if not np.all(np.isfinite(raw)):
                losses[i] = np.inf
                continue
            prediction, scores = self.finish(raw)
            if self.classes is None:
                answers: Any = _RegressorAnswers(prediction)
            else:
                answers = _ClassifierAnswers(prediction, scores)
                answers.classes_ = self.classes
            losses[i] = -self._score(answers, rows, extra)
        return losses

    def _score(self, answers: _Answers, rows: NDArray[np.intp], extra: dict[str, Any]) -> float:
        try:
            return float(self.scorer(answers, self.X[rows], self.y[rows], **extra))
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
