"""One cross-validation at fixed parameters: the simple implementation against algorithm 3."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, solve

Array = NDArray[np.float64]


def _rbf(X: Array, Z: Array, gamma: float) -> Array:
    squares = (X**2).sum(axis=1)[:, None] - 2.0 * X @ Z.T + (Z**2).sum(axis=1)
    return np.asarray(np.exp(-gamma * np.maximum(squares, 0.0)))


def _map(Z: Array, gamma: float) -> Array:
    values, vectors = eigh(_rbf(Z, Z, gamma))
    keep = values > 1e-10 * values[-1]
    return np.asarray(vectors[:, keep] / np.sqrt(values[keep]))


def _features(X: Array, Z: Array, T: Array, gamma: float) -> Array:
    return np.column_stack([_rbf(X, Z, gamma) @ T, np.ones(len(X))])


def _ridge(q: int, C: float) -> Array:
    return np.diag(np.r_[np.full(q - 1, 1.0 / C), 0.0])


def simple_cv(
    X: Array, y: Array, Z: Array, folds: list[NDArray[np.intp]], C: float, gamma: float
) -> float:
    """Return the cross-validated mean squared error; features and system again for every fold.

    What [DeBrabanter2010, section 7.1] calls the simple implementation, in plain NumPy.
    """
    total = 0.0
    for test in folds:
        train = np.setdiff1d(np.arange(len(y)), test)
        T = _map(Z, gamma)
        F = _features(X[train], Z, T, gamma)
        w = solve(F.T @ F + _ridge(F.shape[1], C), F.T @ y[train], assume_a="pos")
        errors = y[test] - _features(X[test], Z, T, gamma) @ w
        total += float(errors @ errors)
    return total / len(y)


def printed_cv(
    X: Array, y: Array, Z: Array, folds: list[NDArray[np.intp]], C: float, gamma: float
) -> float:
    """Return the same number by algorithm 3 in plain NumPy: one C, the fold subtracted."""
    F = _features(X, Z, _map(Z, gamma), gamma)
    A, c = F.T @ F + _ridge(F.shape[1], C), F.T @ y
    total = 0.0
    for test in folds:
        part = F[test]
        w = solve(A - part.T @ part, c - part.T @ y[test], assume_a="pos")
        errors = y[test] - part @ w
        total += float(errors @ errors)
    return total / len(y)


def fast_cv(
    X: Array,
    y: Array,
    Z: Array,
    folds: list[NDArray[np.intp]],
    C: float,
    gamma: float,
    by_features: bool = False,
) -> float:
    """Return the same number from the moments, or the QR factors, of the folds, one thread."""
    from lssvm.backends.rows import Rows
    from lssvm.data.folds import Folds
    from lssvm.kernels import RBF
    from lssvm.tasks import SquaredError
    from lssvm.tuning.fixed_size import FixedSizeObjective

    Y = y[:, None]
    objective = FixedSizeObjective(
        RBF, Rows(X, Y), Z, Folds(folds), SquaredError(), by_features=by_features
    )
    return float(objective.at(gamma).losses(np.array([C])).mean[0])


ROUTES: dict[str, Callable[..., float]] = {
    "simple": simple_cv,
    "optimized": fast_cv,
    "algorithm 3": printed_cv,
    "features": partial(fast_cv, by_features=True),
}


def measure_cv(
    route: str, X: Array, y: NDArray[Any], m: int, v: int, seed: int
) -> dict[str, float]:
    """Time one cross-validation with random prototypes and folds, C = 10 and gamma = 1/d."""
    rng = np.random.default_rng(seed)
    Z = X[rng.choice(len(y), m, replace=False)]
    folds = np.array_split(rng.permutation(len(y)), v)
    target = y.astype(float) if y.dtype.kind == "f" else 2.0 * y - 1.0
    start, cpu = time.perf_counter(), time.process_time()
    loss = ROUTES[route](X, target, Z, folds, 10.0, 1.0 / X.shape[1])
    return {
        "seconds": round(time.perf_counter() - start, 5),
        "cpu_seconds": round(time.process_time() - cpu, 5),
        "loss": loss,
    }
