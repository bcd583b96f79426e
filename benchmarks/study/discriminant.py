"""Quadratic discriminant analysis with shrunken covariance matrices."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from sklearn.base import BaseEstimator, ClassifierMixin

Array = NDArray[np.float64]


class ShrunkenQDA(ClassifierMixin, BaseEstimator):
    """Gaussian classes with covariance (1 - r) S_c + r I.

    scikit-learn's class computes the same where it runs, but refuses classes with fewer rows than
    attributes (`snr`) whatever the shrinkage.

    Parameters
    ----------
    shrinkage
        The amount r, above 0 and at most 1.
    """

    def __init__(self, shrinkage: float = 0.01) -> None:
        self.shrinkage = shrinkage

    def fit(self, X: Array, y: Any) -> "ShrunkenQDA":
        """Estimate mean and covariance of every class."""
        self.classes_, counts = np.unique(y, return_counts=True)
        self.log_prior_ = np.log(counts / len(y))
        self.means_ = [X[y == c].mean(axis=0) for c in self.classes_]
        unit = np.eye(X.shape[1])
        self.roots_ = [
            cholesky(
                (1 - self.shrinkage) * np.atleast_2d(np.cov(X[y == c].T)) + self.shrinkage * unit,
                lower=True,
            )
            for c in self.classes_
        ]
        return self

    def predict(self, X: Array) -> Any:
        """Return the class of the largest posterior."""
        scores = []
        for prior, mean, root in zip(self.log_prior_, self.means_, self.roots_, strict=True):
            z = solve_triangular(root, (X - mean).T, lower=True)
            scores.append(prior - 0.5 * np.sum(z**2, axis=0) - np.log(np.diag(root)).sum())
        return self.classes_[np.argmax(scores, axis=0)]
