"""Numbers whose repeated values are encoded by the target, where these stand out."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import lssvm
from lssvm import FixedSizeLSSVR, LSSVMRegressor
from lssvm._core.errors import ModelFileError
from lssvm.data.encodings import FEWEST_ROWS, ValueEncoding, values_stand_out
from lssvm.data.preparation import PreparedTable
from lssvm.io.models import check_prepared
from lssvm.onnx import to_onnx
from lssvm.preparation import TablePreparation

N = FEWEST_ROWS


def codes(n=N, seed=0, missing=False):
    """Return numbers whose values mean something of their own, and one that is smooth."""
    rng = np.random.default_rng(seed)
    code, age = rng.integers(0, 60, n) * 7.0, rng.integers(18, 90, n).astype(float)
    effect = rng.normal(size=60)
    y = effect[(code / 7).astype(int)] + np.sin(age / 15.0) + 0.5 * rng.normal(size=n)
    if missing:
        code[::10] = np.nan
    return pd.DataFrame({"code": code, "age": age}), y


def prepared(X, y, **options):
    preparation = TablePreparation(**options)
    return preparation, preparation.fit_transform(X, y)


def test_codes_are_encoded_and_smooth_numbers_are_not():
    X, y = codes()
    preparation, features = prepared(X, y)
    assert list(preparation.get_feature_names_out()) == ["code", "code:target", "age"]
    assert features.shape == (N, 3)
    assert "encoded by the target" in preparation.report_["done"][0]


def test_features_are_those_of_the_same_numbers_as_categories():
    X, y = codes(missing=True)
    as_text = X.assign(code=X["code"].map(lambda v: None if np.isnan(v) else f"c{v}"))
    fold = np.random.default_rng(9).integers(0, 5, N)
    cv = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(5)]
    values, features = prepared(X, y, cv=cv)
    levels, expected = prepared(as_text, y, cv=cv)
    place = list(values.get_feature_names_out()).index("code:target")
    np.testing.assert_allclose(features[:, place], expected[:, 0], atol=1e-12)
    new = values.transform(X)[:, place]
    np.testing.assert_allclose(new, levels.transform(as_text)[:, 0], atol=1e-12)


def test_unseen_values_are_interpolated():
    X, y = codes()
    preparation, _ = prepared(X, y)
    new = pd.DataFrame({"code": [0.0, 3.5, 7.0, -9.0], "age": 30.0})
    low, middle, high, below = preparation.transform(new)[:, 1]
    assert middle == pytest.approx((low + high) / 2)
    assert below == low


@pytest.mark.parametrize("what", ["noise", "few rows", "off", "no target", "four targets"])
def test_values_that_do_not_stand_out_are_numbers(what):
    X, y = codes(n=N - 1 if what == "few rows" else N)
    if what == "noise":
        y = np.random.default_rng(1).normal(size=N)
    if what == "four targets":
        y = np.column_stack([y] * 4)
    options = {"encode_values": False} if what == "off" else {}
    preparation = TablePreparation(**options).fit(X, None if what == "no target" else y)
    assert list(preparation.get_feature_names_out()) == ["code", "age"]


@pytest.mark.parametrize(
    ("n", "n_levels", "explained", "expected"),
    [
        (10_000, 64, 0.1, True),
        (10_000, 64, 0.015, False),  # more than 0.3 % of the variance, and hardly above chance
        (200_000, 64, 0.002, False),  # clearly above chance, and too little
        (10_000, 3_000, 0.0, False),  # few rows of a value: their own targets would predict them
    ],
)
def test_values_stand_out_where_the_gain_is_clear_and_not_too_small(
    n, n_levels, explained, expected
):
    rng = np.random.default_rng(0)
    level = np.arange(n) % n_levels
    effect = np.sqrt(explained) * np.where(level % 2, 1.0, -1.0)  # neighbours cancel out
    Y = effect[:, None] + np.sqrt(1.0 - explained) * rng.normal(size=(n, 1))
    fold = rng.integers(0, 5, n)
    assert values_stand_out(level, np.ones(n), Y, fold) == expected


def test_a_weight_of_two_is_the_row_twice():
    X, y = codes()
    weight = np.random.default_rng(2).integers(1, 3, N)
    twice = np.repeat(np.arange(N), weight)
    weighted = TablePreparation().fit(X, y, sample_weight=weight)
    repeated = TablePreparation().fit(X.iloc[twice], y[twice])
    new, _ = codes(500, seed=3)
    np.testing.assert_allclose(weighted.transform(new), repeated.transform(new), atol=1e-8)


def test_no_row_sees_its_own_target():
    X, y = codes()
    _, features = prepared(X, y)
    y[5] += 100.0
    _, changed = prepared(X, y)
    same_fold = np.isclose(features[:, 1], changed[:, 1]) & (X["code"] == X["code"][5])
    assert same_fold[5] and not same_fold[X["code"] == X["code"][5]].all()


def test_records_files_and_graphs_hold_them(tmp_path):
    X, y = codes(missing=True)
    preparation, _ = prepared(X, y)
    again = PreparedTable.from_record(preparation.prepared_.to_record())
    new, _ = codes(300, seed=4, missing=True)
    np.testing.assert_array_equal(again.transform(new), preparation.transform(new))
    model = make_pipeline(TablePreparation(), FixedSizeLSSVR(40, C=1.0, gamma=0.3)).fit(X, y)
    lssvm.save(model, tmp_path / "model.lssvm")
    expected = model.predict(new)
    np.testing.assert_array_equal(lssvm.load(tmp_path / "model.lssvm").predict(new), expected)
    graph = to_onnx(model).SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    feeds = {one.name: new[[one.name]].to_numpy() for one in session.get_inputs()}
    np.testing.assert_allclose(session.run(None, feeds)[0].ravel(), expected, rtol=1e-8)


@pytest.mark.parametrize("change", ["order", "effects", "unknown", "endings"])
def test_records_that_do_not_fit_together_are_refused(change):
    preparation, _ = prepared(*codes())
    column, other = preparation.prepared_.columns
    encoding = column.encoding
    assert isinstance(encoding, ValueEncoding)
    wrong = {
        "order": {"values": encoding.values[::-1]},
        "effects": {"effects": encoding.effects[1:]},
        "unknown": {"unknown": np.zeros(2)},
        "endings": {"endings": ()},
    }[change]
    damaged = replace(column, encoding=replace(encoding, **wrong))
    with pytest.raises(ModelFileError, match="does not fit together"):
        check_prepared(replace(preparation.prepared_, columns=(damaged, other)))


def test_models_for_tables_use_them():
    X, y = codes(n=N + 2000)
    model = LSSVMRegressor(preset="fast", random_state=0).fit(X[:N], y[:N])
    assert model.record_.any_prepared.encoded_by_target == ["code"]
    assert model.score(X[N:], y[N:]) > 0.8  # of at most 0.86
    assert abs(model.best_score_ - model.score(X[N:], y[N:])) < 0.03
