"""One line where columns differ in scale so much that some do not count."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lssvm import (
    LSSVC,
    LSSVR,
    NARX,
    FixedSizeLSSVC,
    FixedSizeLSSVR,
    GreedyLSSVC,
    LSSVMClassifier,
    scan,
)
from lssvm._core.errors import ScaleWarning


def rows(factor, n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * [1.0, factor, 1.0]
    return pd.DataFrame(X, columns=["age", "pay", "kids"]), (X[:, 0] > 0).astype(int)


MODELS = [
    LSSVC(),
    LSSVR(),
    FixedSizeLSSVC(10, C=1.0, gamma=0.1),
    FixedSizeLSSVR(10, C=1.0, gamma=0.1),
    GreedyLSSVC(),
    LSSVC(kernel="linear"),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_more_than_a_hundredfold_is_said_once(model):
    X, y = rows(500.0)
    with pytest.warns(ScaleWarning) as caught:
        model.fit(X, y)
    (one,) = caught
    text = str(one.message)
    assert text.startswith("'pay' of X varies more than 100 times as much as 'kids'")
    assert "StandardScaler" in text and "\n" not in text and one.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(*rows(50.0))
        model.predict(X)


def test_nothing_is_said_where_scales_do_not_matter_or_are_seen_to():
    X, y = rows(1e6)
    rare = np.zeros((60, 1))
    rare[7] = 1.0
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        make_pipeline(StandardScaler(), LSSVC()).fit(X, y)
        LSSVMClassifier("fast").fit(X, y)
        LSSVC(gamma=[1.0, 1e-12, 1.0]).fit(X, y)
        LSSVC(kernel="precomputed").fit(X.to_numpy() @ X.to_numpy().T, y)
        FixedSizeLSSVC(10, C=1.0, gamma=0.1).fit(scan(X.assign(y=y), "y"))
        LSSVC().fit(np.hstack([rows(1.0)[0], rare, np.ones((60, 1))]), y)
        series = 1e6 * np.sin(np.arange(80.0))
        NARX(lags=4).fit(series, X=np.random.default_rng(1).normal(size=(80, 1)))
    assert [one for one in said if issubclass(one.category, ScaleWarning)] == []


def test_a_scan_that_is_not_standardised():
    X, y = rows(1e6)
    with pytest.warns(ScaleWarning, match="'pay' of X varies more than"):
        FixedSizeLSSVC(10, C=1.0, gamma=1e-12).fit(scan(X.assign(y=y), "y", prepare=False))
