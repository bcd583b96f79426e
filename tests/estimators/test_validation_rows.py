"""Validation rows of the caller: a range, a column, a file [DeBrabanter2010, algorithm 4]."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import PredefinedSplit

from lssvm import FixedSizeLSSVC, FixedSizeLSSVR, load, save, scan
from lssvm._core.errors import InvalidInputError
from lssvm.tuning import GridSearch

rng = np.random.default_rng(0)
X = rng.normal(size=(240, 2))
Y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=240)
LABELS = (Y > 0).astype(int)
FOLD = rng.integers(-1, 3, 240)
OPTIONS = {"selection": X[:20], "search": GridSearch([0.1, 1.0, 10.0], [0.2, 1.0])}


def by_refits(kind, y, splits):
    return kind(cv=splits, **OPTIONS).fit(X, y)


def check(model, expected):
    names = ["mean_test_score", "param_C", "param_gamma"]
    for name in names:
        np.testing.assert_allclose(model.cv_results_[name], expected.cv_results_[name], rtol=1e-7)
    np.testing.assert_allclose(model.dual_coef_, expected.dual_coef_, atol=1e-5)


@pytest.fixture
def files(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=["a", "b"]).assign(fold=FOLD, y=Y, label=LABELS)
    for name, part in {"all": table, "train": table[:180], "valid": table[180:]}.items():
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(("kind", "y"), [(FixedSizeLSSVR, Y), (FixedSizeLSSVC, LABELS)])
def test_a_range_of_rows(kind, y):
    held_out = [(np.r_[0:150, 200:240], np.arange(150, 200))]
    expected = by_refits(kind, y, held_out)
    for data in ((X, y), (scan(X, target=y, prepare=False),)):
        check(kind(cv=range(150, 200), **OPTIONS).fit(*data), expected)


def test_a_column_of_fold_numbers(files):
    splits = [(np.flatnonzero(v != FOLD), np.flatnonzero(v == FOLD)) for v in range(3)]
    expected = by_refits(FixedSizeLSSVR, Y, splits)
    data = scan(files / "all.csv", target="y", columns=["a", "b", "fold"], prepare=False)
    model = FixedSizeLSSVR(cv="fold", **OPTIONS).fit(data)
    check(model, expected)
    assert model.n_features_in_ == 2
    save(model, files / "m.lssvm")
    inside = pd.DataFrame(X, columns=["a", "b"])
    found = load(files / "m.lssvm").predict(data)
    np.testing.assert_allclose(found, model.predict(inside), atol=1e-9)
    for target in (scan(X, target=Y, prepare=False),):
        check(FixedSizeLSSVR(cv=PredefinedSplit(FOLD), **OPTIONS).fit(target), expected)


def test_a_validation_file(files):
    expected = by_refits(FixedSizeLSSVR, Y, [(np.arange(180), np.arange(180, 240))])
    use = {"target": "y", "columns": ["a", "b"], "prepare": False}
    train, valid = scan(files / "train.csv", **use), scan(files / "valid.csv", **use)
    model = FixedSizeLSSVR(cv=valid, **OPTIONS).fit(train)
    check(model, expected)
    assert sum(part.n for part in model.moments_) == 240


def test_what_is_no_validation_set_is_refused(files):
    data = scan(files / "all.csv", target="y", columns=["a", "b"], prepare=False)
    with pytest.raises(InvalidInputError, match="not a column"):
        FixedSizeLSSVR(cv="fold", **OPTIONS).fit(data)
    with pytest.raises(InvalidInputError, match="column of folds"):
        FixedSizeLSSVR(cv="a", **OPTIONS).fit(data)
    with pytest.raises(InvalidInputError, match="range of rows"):
        FixedSizeLSSVR(cv=range(9, 3), **OPTIONS).fit(data)
