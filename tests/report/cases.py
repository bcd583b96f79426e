"""Fitted models with their rows, one of every kind that a report has to take."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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


class Case(NamedTuple):
    model: Any
    train: Any
    test: Any


def rows(n: int, q: int, seed: int = 0) -> tuple[Any, Any]:
    """Return points of q classes around as many centres."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(scale=2.5, size=(q, 4))
    y = np.arange(n) % q
    return centres[y] + rng.normal(size=(n, 4)), y


def curve(n: int, k: int = 1, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 3))
    Y = np.column_stack([np.sin((j + 1) * X[:, 0]) + X[:, 1] for j in range(k)])
    Y = Y + 0.2 * rng.normal(size=Y.shape)
    return X, Y[:, 0] if k == 1 else Y


def table(n: int, seed: int = 0) -> Any:
    """Return columns of numbers and text, some missing, and a target of two strings."""
    X, y = rows(n, 2, seed)
    frame = pd.DataFrame(X, columns=["age", "income", "<b>hours</b>", "a & b"])
    frame["job"] = np.array(["cook", "smith", "<script>alert(1)</script>"])[np.arange(n) % 3]
    frame.loc[::7, "age"] = np.nan
    frame["outcome"] = np.where(y == 1, "<script>yes</script>", 'no" onload="x')
    return frame


@cache
def binary() -> Case:
    train, test = rows(120, 2), rows(80, 2, 1)
    return Case(FixedSizeLSSVC(25, cv=5).fit(*train), train, test)


@cache
def prepared() -> Case:
    train, test = table(150), table(90, 1)
    data = scan(train, target="outcome")
    model = FixedSizeLSSVC(20, cv=3, random_state=0).fit(data)
    return Case(model, data, scan(test, target="outcome"))


@cache
def many_classes() -> Case:
    train, test = rows(182, 26), rows(130, 26, 1)
    letters = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    train, test = (train[0], letters[train[1]]), (test[0], letters[test[1]])
    return Case(FixedSizeLSSVC(60, C=10.0, gamma=0.1, multiclass="ova").fit(*train), train, test)


@cache
def one_vs_one() -> Case:
    train, test = rows(90, 3), rows(60, 3, 1)
    return Case(FixedSizeLSSVC(20, cv=3, multiclass="ovo").fit(*train), train, test)


@cache
def regression() -> Case:
    train, test = curve(150), curve(100, seed=1)
    model = FixedSizeLSSVR(30, cv=5, solver="cholesky")  # with moments, for the section of sizes
    return Case(model.fit(*train), train, test)


@cache
def outputs() -> Case:
    train, test = curve(120, 2), curve(80, 2, 1)
    return Case(FixedSizeLSSVR(30, C=10.0, gamma=0.5).fit(*train), train, test)


@cache
def dual_classifier() -> Case:
    train, test = rows(60, 2), rows(50, 2, 1)
    return Case(LSSVC(C="cv", gamma="cv", cv=3).fit(*train), train, test)


@cache
def dual_regressor() -> Case:
    train, test = curve(80), curve(60, seed=1)
    return Case(LSSVR(10.0, gamma="ard", cv=3).fit(*train), train, test)


@cache
def greedy_classifier() -> Case:
    train, test = rows(90, 3), rows(60, 3, 1)
    return Case(GreedyLSSVC(C="cv", gamma=0.1).fit(*train), train, test)


@cache
def greedy_regressor() -> Case:
    train, test = curve(90), curve(60, seed=1)
    return Case(GreedyLSSVR(10.0, gamma=0.5).fit(*train), train, test)


@cache
def pipeline() -> Case:
    train, test = rows(90, 2), rows(60, 2, 1)
    names = ["a", "b", "c", "d"]
    train = pd.DataFrame(train[0], columns=names), train[1]
    test = pd.DataFrame(test[0], columns=names), test[1]
    model = make_pipeline(StandardScaler(), LSSVC(10.0, gamma=0.3)).fit(*train)
    return Case(model, train, test)


@cache
def reduced() -> Case:
    train, test = rows(150, 2), rows(80, 2, 1)
    return Case(FixedSizeLSSVC(40, cv=5, reduction="spfs").fit(*train), train, test)


@cache
def bare() -> Case:
    """Return a classifier without probabilities, with a linear kernel in closed form."""
    train, test = rows(80, 2), rows(50, 2, 1)
    model = FixedSizeLSSVC(kernel="linear", C=1.0, multiclass=Coding(calibration=None)).fit(*train)
    return Case(model, train, test)


@cache
def robust() -> Case:
    train, test = curve(80), curve(60, seed=1)
    return Case(FixedSizeLSSVR(20, C=10.0, gamma=0.5, loss="huber").fit(*train), train, test)


def mixed(n: int, seed: int = 0) -> Any:
    """Return numbers, categories, dates and booleans, and what follows from them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "job": pd.Categorical(rng.choice(["cook", "smith", "pilot"], n)),
            "since": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.integers(0, 700, n), unit="D"),
            "member": rng.random(n) > 0.5,
        }
    )
    frame.loc[::9, "age"] = np.nan
    level = frame["age"].fillna(0.0) + frame["member"] + (frame["job"] == "cook")
    return frame, level.to_numpy(dtype=float) + 0.2 * rng.normal(size=n)


@cache
def table_classifier() -> Case:
    (train, t), (test, s) = mixed(150), mixed(90, 1)
    model = LSSVMClassifier("fast", scaling="standardised", kernel=["rbf", "laplacian"])
    y, z = (np.where(values > 0.7, "yes", "no") for values in (t, s))
    return Case(model.fit(train, y), (train, y), (test, z))


@cache
def table_regressor() -> Case:
    train, test = curve(120), curve(80, seed=1)
    model = LSSVMRegressor("fast", scaling="standardised", kernel="laplacian")
    return Case(model.fit(*train), train, test)


@cache
def forecast() -> Case:
    """Return a forecasting model; its rows are series."""
    t = np.arange(260)
    y = 5 + 2 * np.sin(2 * np.pi * t / 12) + 0.1 * np.random.default_rng(0).normal(size=260)
    model = NARX(LSSVR(100.0, gamma=0.01), lags=12, horizon=24).fit(y[:200])
    return Case(model, y[:200], y[200:])


CASES = {
    case.__name__: case
    for case in (
        binary,
        prepared,
        many_classes,
        one_vs_one,
        regression,
        outputs,
        dual_classifier,
        dual_regressor,
        greedy_classifier,
        greedy_regressor,
        pipeline,
        reduced,
        bare,
        robust,
        table_classifier,
        table_regressor,
    )
}
