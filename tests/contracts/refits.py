"""Cross-validation as anybody would write it: refits on the training rows of every fold."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.metrics import get_scorer
from tests.contracts.inputs import Rows, folds
from tests.contracts.running import learn, scheduler

from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR
from lssvm.tuning import GridSearch, PositionFolds

Splits = list[tuple[NDArray[np.intp], NDArray[np.intp]]]

GAMMAS = (0.15, 0.6)
TUNERS = ("dual-host", "fixed-host", "fixed-strict", "fixed-scan", "fixed-dask")
"""Families that tune by folds, on the engines that they have."""


def tuned(tuner: str, data: Rows, splits: Any, **options: Any) -> Any:
    """Return a model with C = 2 whose gamma was chosen among `GAMMAS` on given splits.

    A scan deals its own folds, by position, as many as there are splits.
    """
    family, engine = tuner.split("-")
    classes = data.task.startswith("classes")
    search = GridSearch(gamma=GAMMAS)
    common: dict[str, Any] = {"C": 2.0, "gamma": "cv", "search": search, "cv": splits, **options}
    if family == "dual":
        model = (LSSVC if classes else LSSVR)(**common)
    else:
        model = (FixedSizeLSSVC if classes else FixedSizeLSSVR)(selection=basis(data), **common)
    if engine == "strict":
        model.set_params(device="cpu")
    if engine in ("scan", "dask"):
        model.set_params(cv=len(splits))
    with scheduler(engine):
        return learn(model, "fit", engine, data.X, data.y, given_weight(data))


def given_weight(data: Rows) -> Any:
    """Return the weights, None where all are one."""
    return None if np.all(data.weight == 1.0) else data.weight


def basis(data: Rows) -> NDArray[np.float64]:
    """Return prototypes that are no rows of the data, so that every refit has the same."""
    return np.asarray(data.X[::6] + 0.01)


def splits_of(tuner: str, n: int, count: int = 4) -> Splits:
    """Return the splits that `tuned` uses: given ones, or those of a scan."""
    if tuner.endswith(("scan", "dask")):
        return [(train, test) for train, test in PositionFolds(count).split(np.zeros((n, 1)))]
    return folds(n, count)


_REFITS: dict[bytes, Any] = {}  # engines of a family have refits in common


def refit(model: Any, data: Rows, gamma: float, rows: NDArray[np.intp]) -> Any:
    """Return a plain model of the host at given parameters, fitted to some rows."""
    plain = clone(model).set_params(gamma=gamma, cv=10, search="path", scoring=None)
    if "device" in plain.get_params():
        plain.set_params(device=None)
    weight = given_weight(data)
    given = data.X[rows], data.y[rows], None if weight is None else weight[rows]
    key = hashlib.sha256(pickle.dumps((type(plain), plain.get_params(), given))).digest()
    if key not in _REFITS:
        _REFITS[key] = plain.fit(*given)
    return _REFITS[key]


def fold_scores(
    model: Any, data: Rows, gamma: float, splits: Splits, scoring: Any, *, weighted: bool = True
) -> list[float]:
    """Return the score of a refit on every fold."""
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    weight = given_weight(data) if weighted else None
    scores = []
    for train, test in splits:
        extra = {} if weight is None else {"sample_weight": weight[test]}
        fitted = refit(model, data, gamma, train)
        scores.append(float(scorer(fitted, data.X[test], data.y[test], **extra)))
    return scores


def pooled_score(model: Any, data: Rows, gamma: float, splits: Splits, scoring: Any) -> float:
    """Return the score of the outputs of all refits taken together."""
    tests = np.concatenate([test for _, test in splits])
    parts = [refit(model, data, gamma, train) for train, _ in splits]
    outputs = "decision_function" if data.task.startswith("classes") else "predict"
    values = [
        getattr(part, outputs)(data.X[test]) for part, (_, test) in zip(parts, splits, strict=True)
    ]
    told = Told(np.concatenate(values))
    weight = given_weight(data)
    extra = {} if weight is None else {"sample_weight": weight[tests]}
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    return float(scorer(told, data.X[tests], data.y[tests], **extra))


class Told(RegressorMixin, BaseEstimator):
    """Answers with outputs that are known already."""

    def __init__(self, values: Any = None) -> None:
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Any:
        return self.values

    def decision_function(self, X: Any) -> Any:
        return self.values


def scores_of(model: Any) -> dict[float, float]:
    """Return the cross-validated score of every gamma."""
    results = model.cv_results_
    return dict(zip(map(float, results["param_gamma"]), results["mean_test_score"], strict=True))


def margin(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Minus the root mean squared distance of decision values from 0.3: any change shows in it.

    Not a mean over rows, so that averaging folds is not the same as pooling them.
    """
    values = np.asarray(estimator.decision_function(X))
    if values.ndim == 1:
        values = values[:, None]
    distance = ((values - 0.3 * (1.0 + np.arange(values.shape[1]))) ** 2).sum(axis=1)
    return -float(np.sqrt(np.average(distance, weights=sample_weight)))


def unweighted(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return `margin` whatever the weights."""
    return margin(estimator, X, y)


def check_scores(model: Any, expected: Callable[[float], float], tolerance: float = 1e-7) -> None:
    """Assert that the scores of all gammas are the expected ones, and the best was taken."""
    found = scores_of(model)
    assert sorted(found) == sorted(GAMMAS)
    for gamma, score in found.items():
        np.testing.assert_allclose(score, expected(gamma), rtol=tolerance, atol=tolerance)
    assert float(model.gamma_) == max(found, key=lambda gamma: found[gamma])
