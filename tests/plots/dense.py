"""A small LS-SVM classifier with the fitted attributes that the pictures read."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class DenseLSSVC(ClassifierMixin, BaseEstimator):
    """Solve the bordered system once for all classes, one against all."""

    def __init__(self, C=1.0, gamma=1.0):
        self.C = C
        self.gamma = gamma

    def _kernel(self, X):
        distance = ((np.asarray(X)[:, None, :] - self.support_vectors_) ** 2).sum(axis=2)
        return np.exp(-self.gamma * distance)

    def fit(self, X, y):
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.support_vectors_ = np.asarray(X, dtype=float)
        n = len(self.support_vectors_)
        self.support_ = np.arange(n)
        self.classes_, label = np.unique(y, return_inverse=True)
        Y = np.where(label[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        Y = Y[:, 1:] if len(self.classes_) == 2 else Y
        system = np.zeros((n + 1, n + 1))
        system[0, 1:] = system[1:, 0] = 1.0
        system[1:, 1:] = self._kernel(X) + np.eye(n) / self.C
        solution = np.linalg.solve(system, np.vstack([np.zeros((1, Y.shape[1])), Y]))
        self.intercept_, self.dual_coef_ = solution[0], solution[1:]
        return self

    def keep(self, rows):
        """Keep only these support vectors."""
        self.support_ = self.support_[rows]
        self.support_vectors_ = self.support_vectors_[rows]
        self.dual_coef_ = self.dual_coef_[rows]
        return self

    def decision_function(self, X):
        if hasattr(self, "feature_names_in_"):
            assert list(X.columns) == list(self.feature_names_in_)
        f = self._kernel(X) @ self.dual_coef_ + self.intercept_
        return f[:, 0] if f.shape[1] == 1 else f

    def predict(self, X):
        f = self.decision_function(X)
        return self.classes_[(f > 0).astype(int) if f.ndim == 1 else f.argmax(axis=1)]
