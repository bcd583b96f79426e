"""A two-class model whose threshold is moved to where its out-of-fold errors are fewest.

Least squares targets put the threshold half-way between the classes only where both have the same
shape. Hastie, Tibshirani and Friedman (The Elements of Statistical Learning, section 4.3) choose
the cut that makes the fewest errors; here it is chosen on predictions that their rows took no part
in.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict


@dataclass(frozen=True)
class Moved:
    """A fitted classifier with classes 0 and 1 and its threshold."""

    model: Any
    threshold: float

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the class codes of the rows of `X`."""
        return (self.model.decision_function(X) > self.threshold).astype(np.int64)


def best_threshold(scores: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """Return the threshold nearest to zero whose errors cannot be told from the fewest.

    That is, lie within half a standard error of the smallest number.
    """
    order = np.argsort(scores)
    sorted_scores, positive = scores[order], y[order] == 1
    errors = np.sum(~positive) + np.concatenate([[0], np.cumsum(np.where(positive, 1, -1))])
    low, high = sorted_scores[0] - 1.0, sorted_scores[-1] + 1.0
    cuts = np.concatenate([[low], (sorted_scores[1:] + sorted_scores[:-1]) / 2, [high]])
    fewest = float(errors.min())
    alike = cuts[errors <= fewest + 0.5 * np.sqrt(fewest * (1.0 - fewest / len(y)))]
    return float(alike[np.argmin(np.abs(alike))])


def move_threshold(model: Any, X: NDArray[np.float64], y: NDArray[np.int64]) -> Moved:
    """Move the threshold of a tuned and fitted model; its parameters stay as they are."""
    fixed = clone(model).set_params(C=model.C_)
    if model.gamma_ is not None:
        fixed.set_params(gamma=model.gamma_)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    scores = cross_val_predict(fixed, X, y, cv=folds, method="decision_function")
    return Moved(model, best_threshold(scores, y))
