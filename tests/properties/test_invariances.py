"""What may be done to the training data without changing a model: promised, and kept."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.meta.tree import ROOT
from tests.properties.invariances import (
    FAMILIES,
    TOLERANCE,
    TRANSFORMATIONS,
    applies,
    differences,
)

from lssvm import LSSVMClassifier, LSSVMRegressor


def promises():
    for transformation in TRANSFORMATIONS:
        for family, problems in FAMILIES.items():
            for name in problems:
                if not applies(transformation, family, name):
                    continue
                yield transformation, family, name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("transformation", "family", "name"), list(promises()))
def test_the_model_is_the_same(transformation, family, name):
    if transformation == "a frame of polars":
        pytest.importorskip("polars")
    if transformation == "a table of Arrow":
        pytest.importorskip("pyarrow")
    far = differences(family, name, transformation)
    assert far and max(far.values()) <= TOLERANCE, far


def texts(n):
    """Return a table with texts and many categories, whose features differ by rounding, and y."""
    X = (rng := np.random.default_rng(42)).normal(size=(n, 4))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.4 * rng.normal(size=n)
    words = [
        f"{'good fine' if u > 0 else 'bad poor'} {'big' if v > 0 else 'small'} w{int(abs(9 * u))}"
        for u, v in X[:, [0, 2]]
    ]
    towns = [f"t{int(u)}" for u in 20.0 * X[:, 2] + rng.integers(0, 3, n)]
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "town": towns, "words": words}), y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n", "classes"), [(300, 3), (2000, 2)])
def test_features_of_texts_differ_by_rounding_alone(n, classes):
    """Single precision, slopes and calibration would make much of it."""
    X, y = texts(n + 20)
    y = np.digitize(y, [-0.5, 0.5][: classes - 1])
    new, X, y = X[n:], X[:n], y[:n]
    twice = np.random.default_rng(n).random(n) < 0.3
    rows = np.r_[np.arange(n), np.flatnonzero(twice)]
    one = LSSVMClassifier("fast", n_jobs=1).fit(X, y, 1.0 + twice)
    two = LSSVMClassifier("fast", n_jobs=1).fit(X.iloc[rows], y[rows])
    np.testing.assert_allclose(two.predict_proba(new), one.predict_proba(new), atol=TOLERANCE)
    assert two.best_score_ == pytest.approx(one.best_score_, abs=TOLERANCE)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("classes", [1, 2])
def test_rounding_that_grows_in_single_precision_stays_small(classes):
    """Metrics of several rounds and log-odds, of enough rows for single precision."""
    X = (rng := np.random.default_rng(3)).normal(size=(700, 4))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=700)
    y = y if classes == 1 else y > 0.3
    weight = rng.uniform(0.5, 2.0, 700)
    model = LSSVMRegressor(n_jobs=1) if classes == 1 else LSSVMClassifier(n_jobs=1)
    method = "predict_interval" if classes == 1 else "predict_proba"
    found = [
        getattr(clone(model).fit(rows, y, scale * weight), method)(rows[:100])
        for rows, scale in ((X, 1.0), (X, 7.0), (3.7 * X[:, ::-1] + 11.0, 1.0))
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-3 * np.ptp(found[0]))


def test_the_page_lists_what_is_promised():
    text = (ROOT / "docs" / "invariances.rst").read_text(encoding="utf-8")
    rows = re.findall(r"^   \* - (.+)\n     - (.+)\n     - ?(.*)$", text, flags=re.MULTILINE)
    shown = {what: (families, why) for what, families, why in rows[1:]}
    assert shown == {t.name: (t.families, t.unless) for t in TRANSFORMATIONS.values()}
