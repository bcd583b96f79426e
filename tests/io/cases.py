"""Fitted models of every estimator in every mode, small and fast, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from lssvm import (
    LSSVC,
    LSSVR,
    NARX,
    FixedSizeLSSVC,
    FixedSizeLSSVR,
    GreedyLSSVC,
    GreedyLSSVR,
    LSSVMClassifier,
    LSSVMRegressor,
    scan,
)
from lssvm.codes import Coding
from lssvm.kernels import RBF, Matern, Polynomial
from lssvm.reductions import FixedSizeL0, Prune
from lssvm.solvers import PCG
from lssvm.tuning import CoupledAnnealing, GridSearch, PathSearch, PositionFolds

rng = np.random.default_rng(0)
X = rng.standard_normal((70, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2 + 0.1 * rng.standard_normal(70)
TWO = (Y > 0.4).astype(int)
THREE = np.array(["low", "middle", "high"])[np.digitize(Y, [0.2, 0.9])]
PAIR = np.column_stack([Y, X[:, 2] - Y])
WEIGHT = rng.uniform(0.2, 2.0, 70)
WEIGHT[:3] = 0.0
NEW = rng.standard_normal((9, 3))
GRAM = RBF(0.5)(X, X)
SERIES = np.sin(0.4 * np.arange(90)) + 0.05 * rng.standard_normal(90)
INPUT = rng.standard_normal((90, 1))
FAST = GridSearch(C=[0.1, 1.0, 10.0], gamma=[0.03, 0.3])

TABLE = {
    "age": X[:, 0] * 10 + 40,
    "job": np.array(["cook", "smith", "clerk"])[rng.integers(3, size=70)],
    "pay": X[:, 1],
}
NEW_TABLE = {"age": [30.0, 50.0], "job": ["smith", "unknown"], "pay": [0.1, -0.3]}

MIXED: dict[str, Any] = {
    "age": np.where(rng.random(70) < 0.1, np.nan, X[:, 0]),
    "job": [None if i % 9 == 0 else ("cook", "smith", "clerk")[i % 3] for i in range(70)],
    "pay": X[:, 1],
    "town": [f"town {i % 23}" for i in range(70)],
    "member": [None if i % 11 == 0 else bool(X[i, 2] > 0) for i in range(70)],
    "when": np.datetime64("2023-11-01") + rng.integers(400, size=70).astype("timedelta64[D]"),
    "one": [1.0] * 70,
}
NEW_MIXED: dict[str, Any] = {
    "when": np.array(["2024-02-29", "NaT", "2031-01-01"], dtype="datetime64[D]"),
    "age": [0.3, np.nan, 50.0],
    "job": ["smith", "unknown", None],
    "pay": [0.1, -0.3, np.nan],
    "town": ["town 3", None, "nowhere"],
    "member": [True, None, False],
}


def rows_of(table: dict[str, Any], rows: slice) -> dict[str, Any]:
    """Return some rows of a mapping of columns."""
    return {name: values[rows] for name, values in table.items()}


def _scan(target: Any) -> Any:
    return scan({**TABLE, "y": target}, target="y")


def _mean_score(model: Any, X: Any, y: Any) -> float:
    return float(model.score(X, y))


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "dual": lambda: LSSVC().fit(X, TWO),
    "dual tuned": lambda: LSSVC("cv", gamma="cv", search=FAST).fit(X, THREE),
    "dual tuned apart": lambda: LSSVC(
        "cv", cv=3, multiclass="ova", search=PathSearch(per_output=True)
    ).fit(X, THREE),
    "dual one-vs-one": lambda: LSSVC(multiclass="ovo", kernel=Matern(nu=2.5)).fit(X, THREE),
    "dual moc": lambda: LSSVC(multiclass=Coding("moc", decoding="hamming"), kernel="laplacian").fit(
        X, THREE
    ),
    "dual code": lambda: LSSVC(multiclass=np.array([[1, 1], [1, -1], [-1, -1]])).fit(X, THREE),
    "dual pruned": lambda: LSSVC(reduction=Prune(step=0.2), cv=3).fit(X, TWO),
    "dual l0": lambda: LSSVC(reduction="l0", multiclass="ovo").fit(X, THREE),
    "dual float32": lambda: LSSVC(kernel=Polynomial(degree=2)).fit(X.astype(np.float32), TWO),
    "dual sparse": lambda: LSSVC().fit(sparse.csr_matrix(X), TWO),
    "dual precomputed": lambda: LSSVC("cv", kernel="precomputed", cv=3).fit(GRAM, TWO),
    "dual weighted": lambda: LSSVC(
        class_weight={0: 1.0, 1: 3.0}, multiclass=Coding(targets="fisher")
    ).fit(X, TWO, WEIGHT),
    "dual isotonic": lambda: LSSVC(
        multiclass=Coding(calibration="isotonic"), kernel=RBF(np.array([1.0, 0.5, 0.1]))
    ).fit(X, TWO == 1),
    "dual uncalibrated": lambda: LSSVC(
        multiclass=Coding(calibration=None), kernel="linear", gamma="auto"
    ).fit(X, TWO.astype(float)),
    "dual annealed": lambda: LSSVC("cv", gamma="cv", search=CoupledAnnealing(2, 6, 4), cv=3).fit(
        X, TWO
    ),
    "dual objects": lambda: LSSVC(solver="cg", random_state=np.random.default_rng(1)).fit(
        X, THREE.astype(object)
    ),
    "fixed": lambda: FixedSizeLSSVC(12, C=5.0, gamma=0.3).fit(X, TWO),
    "fixed tuned": lambda: FixedSizeLSSVC(12, cv=3, search=FAST).fit(X, TWO, WEIGHT),
    "fixed one-vs-one": lambda: FixedSizeLSSVC(12, multiclass="ovo", cv=3, search=FAST).fit(
        X, THREE
    ),
    "fixed balanced": lambda: FixedSizeLSSVC(
        12,
        C=2.0,
        gamma=np.array([0.1, 0.2, 0.3]),
        class_weight="balanced",
        multiclass=Coding(targets="fisher"),
    ).fit(X, THREE),
    "fixed threshold": lambda: FixedSizeLSSVC(
        12, cv=3, search=FAST, multiclass=Coding(threshold="cv")
    ).fit(X, TWO),
    "fixed sized": lambda: FixedSizeLSSVC("cv", cv=3, gamma=0.3).fit(X, TWO),
    "fixed spfs": lambda: FixedSizeLSSVC(20, cv=3, search=FAST, reduction="spfs").fit(X, TWO),
    "fixed spfs apart": lambda: FixedSizeLSSVC(
        20, C=1.0, gamma=0.3, cv=3, reduction=FixedSizeL0("spfs", joint=False)
    ).fit(X, THREE),
    "fixed ssd": lambda: FixedSizeLSSVC(20, cv=3, search=FAST, reduction="ssd").fit(X, TWO),
    "fixed sd": lambda: FixedSizeLSSVC(20, cv=3, search=FAST, reduction="sd").fit(X, TWO),
    "fixed sv-l0": lambda: FixedSizeLSSVC(20, cv=3, search=FAST, reduction="sv-l0").fit(X, TWO),
    "fixed pcg": lambda: FixedSizeLSSVC(12, cv=3, search=FAST, solver="pcg").fit(X, THREE),
    "fixed exponential": lambda: FixedSizeLSSVC(12, C=5.0, gamma=0.3, kernel="exponential").fit(
        X, TWO
    ),
    "fixed linear": lambda: FixedSizeLSSVC(kernel="linear", C=1.0).fit(X, TWO),
    "fixed scanned": lambda: FixedSizeLSSVC(12, cv=PositionFolds(3), gamma=0.2).fit(_scan(THREE)),
    "greedy": lambda: GreedyLSSVC(C=10.0).fit(X, TWO),
    "greedy tuned": lambda: GreedyLSSVC(C="cv", multiclass="ovo").fit(X, THREE),
    "greedy kmp": lambda: GreedyLSSVC(C=10.0, criterion="kmp", max_support=10).fit(X, TWO),
    "greedy sparse": lambda: GreedyLSSVC(C=10.0).fit(sparse.csr_matrix(X), THREE),
    "greedy precomputed": lambda: GreedyLSSVC(C=10.0, kernel="precomputed").fit(GRAM, TWO),
}

REGRESSORS: dict[str, Callable[[], Any]] = {
    "dual regressor": lambda: LSSVR().fit(X, Y),
    "dual regressor tuned": lambda: LSSVR("cv", gamma="cv", search=FAST, cv=3).fit(X, Y, WEIGHT),
    "dual regressor relevance": lambda: LSSVR("cv", gamma="ard", cv=3).fit(X, Y),
    "dual regressor of two": lambda: LSSVR("cv", search=PathSearch(per_output=True), cv=3).fit(
        X, PAIR
    ),
    "dual regressor robust": lambda: LSSVR(loss="huber").fit(X, Y),
    "dual regressor pruned": lambda: LSSVR(reduction="prune", cv=3).fit(X, Y),
    "dual regressor without bias": lambda: LSSVR(fit_intercept=False, kernel="nonstationary").fit(
        X, Y
    ),
    "dual regressor precomputed": lambda: LSSVR(kernel="precomputed").fit(GRAM, Y),
    "dual regressor sparse": lambda: LSSVR().fit(sparse.csr_array(X), Y),
    "dual regressor scored": lambda: LSSVR("cv", scoring=_mean_score, cv=3).fit(X, Y),
    "fixed regressor": lambda: FixedSizeLSSVR(12, C=5.0, gamma=0.3).fit(X, Y),
    "fixed regressor tuned": lambda: FixedSizeLSSVR(12, cv=3, search=FAST).fit(X, Y, WEIGHT),
    "fixed regressor pcg": lambda: FixedSizeLSSVR(12, C=5.0, gamma=0.3, solver=PCG()).fit(X, Y),
    "fixed regressor of two": lambda: FixedSizeLSSVR(12, cv=3, search=FAST).fit(X, PAIR),
    "fixed regressor robust": lambda: FixedSizeLSSVR(12, C=5.0, gamma=0.3, loss="huber").fit(X, Y),
    "fixed regressor spfs": lambda: FixedSizeLSSVR(20, cv=3, search=FAST, reduction="spfs").fit(
        X, Y
    ),
    "fixed regressor ssd": lambda: FixedSizeLSSVR(20, cv=3, search=FAST, reduction="ssd").fit(X, Y),
    "fixed regressor given": lambda: FixedSizeLSSVR(
        C=5.0, gamma=0.3, selection=[3, 1, 4, 15, 9, 2, 6]
    ).fit(X, Y),
    "fixed regressor scanned": lambda: FixedSizeLSSVR(12, cv=3, gamma=0.2).fit(_scan(Y)),
    "greedy regressor": lambda: GreedyLSSVR(C=10.0).fit(X, Y),
    "greedy regressor of two": lambda: GreedyLSSVR(C="cv", criterion="sggp", max_support=9).fit(
        X, PAIR
    ),
}

SERIES_MODELS: dict[str, Callable[[], Any]] = {
    "series": lambda: NARX(lags=4, horizon=5, n_origins=4, n_paths=5, search=FAST).fit(SERIES),
    "series with inputs": lambda: NARX(
        LSSVR(10.0, gamma=0.1), lags=3, exog_lags=1, horizon=4, n_origins=3, n_paths=4
    ).fit(SERIES, INPUT),
    "several series": lambda: NARX(
        FixedSizeLSSVR(8, C=10.0, gamma=0.1),
        lags=3,
        differencing=1,
        horizon=4,
        n_origins=3,
        n_paths=4,
    ).fit([SERIES[:50], SERIES[40:]]),
    "series table": lambda: NARX(
        LSSVMRegressor("fast", kernel="rbf", metric=None, n_jobs=1),
        lags=3,
        horizon=4,
        n_origins=3,
        n_paths=4,
    ).fit(SERIES),
    "series greedy": lambda: NARX(
        GreedyLSSVR(C=10.0, max_support=6), lags=3, horizon=4, n_origins=3, n_paths=4
    ).fit(SERIES),
}

TABLE_MODELS: dict[str, Callable[[], Any]] = {
    "table": lambda: LSSVMClassifier("fast", n_jobs=1).fit(X, TWO),
    "table mixed": lambda: LSSVMClassifier("fast", n_jobs=1).fit(MIXED, THREE, WEIGHT),
    "table parts": lambda: (
        LSSVMClassifier("fast", n_jobs=1).fit(X[:40], THREE[:40]).partial_fit(X[40:], THREE[40:])
    ),
    "table regressor": lambda: LSSVMRegressor("fast", n_jobs=1).fit(X, Y),
    "table regressor parts": lambda: (
        LSSVMRegressor("fast", n_jobs=1, n_trees=2)
        .fit(rows_of(MIXED, slice(40)), Y[:40])
        .partial_fit(rows_of(MIXED, slice(40, 70)), Y[40:])
    ),
    "table regressor of two": lambda: LSSVMRegressor(
        "balanced", kernel=["rbf", "laplacian"], random_state=np.random.default_rng(2)
    ).fit(MIXED, PAIR, groups=np.arange(70) // 2),
}

CASES = {**CLASSIFIERS, **REGRESSORS, **SERIES_MODELS, **TABLE_MODELS}


@cache
def fitted(name: str) -> Any:
    """Return the model of a case; it must not be changed."""
    return CASES[name]()


def takes_mixed(model: Any) -> bool:
    """Say whether a model for tables was fitted to the mixed columns."""
    return bool(model.n_features_in_ == len(MIXED))


def new_rows(model: Any) -> Any:
    """Return rows that the model can be asked about."""
    if hasattr(model, "preparations_"):
        return NEW_MIXED if takes_mixed(model) else NEW
    if hasattr(model, "preparation_"):
        return NEW_TABLE
    if getattr(model, "kernel", None) == "precomputed":
        return RBF(0.5)(NEW, X)
    if sparse.issparse(getattr(model.record_.main.model, "basis", None)):
        return sparse.csr_matrix(NEW)
    return NEW
