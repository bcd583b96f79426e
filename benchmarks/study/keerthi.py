"""A support vector machine of few basis functions, Keerthi, Chapelle and DeCoste (2006).

The peer of [Mall2014]: squared hinge loss in the primal, over a basis that grows by the function
which lowers the objective most, and Newton's method for all coefficients. No implementation in
Python is known to us; this one follows the paper "Building support vector machines with reduced
classifier complexity", Journal of Machine Learning Research 7.
"""

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import rbf_kernel

CANDIDATES = 59  # one of the best 5 % with a probability of 95 %
_RIDGE = 1e-10


class ReducedSVM(ClassifierMixin, BaseEstimator):
    """min 1/2 w'w + C/2 sum max(0, 1 - y o)^2 over w = sum_J beta_j phi(x_j), two classes 0, 1."""

    def __init__(self, size: int, C: float = 1.0, gamma: float = 1.0, seed: int = 0) -> None:
        self.size, self.C, self.gamma, self.seed = size, C, gamma, seed

    def fit(self, X: Any, y: Any) -> "ReducedSVM":
        """Let the basis grow to its size; all coefficients are solved for as it doubles by 1.3."""
        self.classes_ = np.unique(y)
        rng, sign = np.random.default_rng(self.seed), np.where(y == self.classes_[1], 1.0, -1.0)
        chosen: list[int] = []
        K = np.empty((len(X), self.size))  # of all rows and the basis
        self.support_vectors_, output = X[:0], np.zeros(len(X))
        beta, refit = np.zeros(0), 1
        for m in range(min(self.size, len(X))):
            left = np.setdiff1d(np.arange(len(X)), chosen)
            tried = rng.choice(left, min(CANDIDATES, len(left)), replace=False)
            columns = rbf_kernel(X, X[tried], gamma=self.gamma)
            best = tried[int(np.argmax(self._gains(columns, sign, output, K[tried, :m] @ beta)))]
            chosen.append(int(best))
            K[:, m] = columns[:, np.flatnonzero(tried == best)[0]]
            beta = np.append(beta, 0.0)
            beta[m] = self._step(K[:, m], sign, output, K[best, :m] @ beta[:m])
            output = K[:, : m + 1] @ beta
            if m + 1 >= refit or m + 1 == self.size:
                refit = int(np.ceil(1.3 * (m + 1))) if m else 2
                beta = solve_coefficients(K[:, : m + 1], K[chosen, : m + 1], sign, self.C, beta)
                output = K[:, : m + 1] @ beta
        self.support_, self.dual_coef_ = np.array(chosen), beta
        self.support_vectors_ = X[chosen]
        return self

    def _gains(self, columns: Any, sign: Any, output: Any, inner: Any) -> Any:
        """Return how far one step in each new coefficient lowers the objective (p,)."""
        error = np.maximum(0.0, 1.0 - sign * output) * sign
        slope = self.C * (columns.T @ error) - inner
        active = (error != 0).astype(float)
        return slope**2 / (1.0 + self.C * (columns**2).T @ active)

    def _step(self, column: Any, sign: Any, output: Any, inner: float) -> float:
        """Return the new coefficient alone, by five steps of Newton."""
        value = 0.0
        for _ in range(5):
            error = np.maximum(0.0, 1.0 - sign * (output + value * column)) * sign
            slope = self.C * float(column @ error) - inner - value
            curve = 1.0 + self.C * float(column[error != 0] @ column[error != 0])
            value += slope / curve
        return value

    def decision_function(self, X: Any) -> Any:
        """Return the outputs (n,)."""
        return rbf_kernel(X, self.support_vectors_, gamma=self.gamma) @ self.dual_coef_

    def predict(self, X: Any) -> Any:
        """Return the classes (n,)."""
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def solve_coefficients(K: Any, gram: Any, sign: Any, C: float, start: Any) -> Any:
    """Minimise 1/2 b'Gb + C/2 sum max(0, 1 - y K b)^2 by Newton's method with a line search."""
    beta = np.array(start, dtype=float)

    def objective(b: Any) -> float:
        slack = np.maximum(0.0, 1.0 - sign * (K @ b))
        return float(0.5 * b @ gram @ b + 0.5 * C * slack @ slack)

    value = objective(beta)
    for _ in range(50):
        active = sign * (K @ beta) < 1.0
        H = gram + C * K[active].T @ K[active]
        H[np.diag_indices_from(H)] += _RIDGE * np.trace(H) / len(H)
        target = cho_solve(cho_factor(H), C * K[active].T @ sign[active])
        step = 1.0
        while objective(beta + step * (target - beta)) > value and step > 1e-6:
            step *= 0.5
        beta = beta + step * (target - beta)
        new = objective(beta)
        if value - new <= 1e-10 * abs(value):
            break
        value = new
    return beta
