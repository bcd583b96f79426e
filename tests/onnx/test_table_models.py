"""The models for tables: raw columns, metrics, parts, stacks and probabilities are in the file."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.onnx.running import run
from tests.onnx.test_tables import feed, new_rows, rentals, target

from lssvm import LSSVMClassifier, LSSVMRegressor
from lssvm._core.errors import InvalidInputError
from lssvm.datasets import load_balance
from lssvm.kernels import Metric
from lssvm.local import grow_tree
from lssvm.onnx import to_onnx
from lssvm.onnx.models import tree_paths

rng = np.random.default_rng(0)
X = rng.normal(size=(2560, 3))
signal = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2 + 0.1 * rng.normal(size=len(X))
new = np.vstack([rng.normal(size=(60, 3)), 8.0 * np.eye(3)])  # and far away


@pytest.mark.parametrize("kernel", ["rbf", "exponential", "laplacian"])
def test_parts_of_two_trees(kernel):
    model = LSSVMRegressor(
        "fast", kernel=kernel, leaf_size=300, n_trees=2, scaling="standardised", n_jobs=1
    ).fit(X, signal)
    for member in model.record_.members:
        assert len(member.local.partitions) == 2 and len(member.local.leaves) >= 9
    found = run(model, new)
    np.testing.assert_allclose(found["prediction"][:, 0], model.predict(new), atol=1e-8)
    one = run(model, new[:1])  # most parts have no row
    np.testing.assert_allclose(one["prediction"][:, 0], model.predict(new[:1]), atol=1e-8)


def test_prototypes_beside_parts():
    model = LSSVMRegressor("fast", kernel="laplacian", leaf_size=300, n_prototypes=200, n_jobs=1)
    model.fit(X, np.abs(X).sum(axis=1))
    assert [m.in_leaves for m in model.record_.members].count(False) == 1
    found = run(model, new)
    np.testing.assert_allclose(found["prediction"][:, 0], model.predict(new), atol=1e-8)


def test_a_metric_is_part_of_the_file():
    rows = np.column_stack([X, rng.normal(size=(len(X), 4))])  # columns that do not matter
    new = np.column_stack([globals()["new"], np.ones((63, 4))])
    model = LSSVMRegressor("fast", kernel="rbf", leaf_size=300, n_jobs=1).fit(rows, signal)
    maps = [member.metric for member in model.record_.members]
    assert any(isinstance(one, Metric) and one.map is not None for one in maps)
    found = run(model, new)
    np.testing.assert_allclose(found["prediction"][:, 0], model.predict(new), atol=1e-8)


def test_a_warp_is_part_of_the_file():
    step = np.where(X[:, 0] > 0.5, 2.0, 0.0) + 0.05 * X[:, 1] + 0.05 * rng.normal(size=len(X))
    model = LSSVMRegressor("fast", kernel="laplacian", leaf_size=300, n_jobs=1).fit(X, step)
    assert any(member.metric.warp is not None for member in model.record_.members)
    found = run(model, new)
    np.testing.assert_allclose(found["prediction"][:, 0], model.predict(new), atol=1e-8)


@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-7), ("float32", 2e-2)])
def test_classes_from_every_kind_of_column(dtype, atol):
    frame, rows = rentals(), new_rows()
    labels = np.array(["low", "middle", "high"])[np.digitize(target(frame), [0.6, 1.4])]
    model = LSSVMClassifier("fast", metric=None, n_jobs=1).fit(frame, labels)
    used = {member.scaling for member in model.record_.members}
    given = feed(rows, dtype)
    names = {c.name for n in used for c in model.preparations_[n].prepared_.columns if c.encoding}
    found = run(model, {name: given[name] for name in names}, dtype=dtype)
    if dtype == "float64":
        assert found["label"].tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(found["scores"], model.decision_function(rows), atol=atol)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), atol=5 * atol)


def test_two_classes_and_a_small_model():
    two = signal > 0.4
    model = LSSVMClassifier("fast", kernel=["rbf", "laplacian"], n_jobs=1).fit(X[:300], two[:300])
    for one in (model, model.compress(20)):
        found = run(one, new)
        assert found["label"].tolist() == one.predict(new).tolist()
        np.testing.assert_allclose(found["scores"][:, 0], one.decision_function(new), atol=1e-8)
        np.testing.assert_allclose(found["probabilities"], one.predict_proba(new), atol=1e-7)
    assert list(run(model, new)) == ["label", "probabilities", "scores"]
    assert list(run(model, new, probabilities=False)) == ["label", "scores"]


def test_classes_whose_probabilities_take_the_outputs_of_the_others():
    balance = load_balance()
    model = LSSVMClassifier("fast", n_jobs=1).fit(balance.data, balance.target)
    assert model.record_.calibrated.decoding == "softmax"
    found = run(model, balance.data[:100])
    assert found["label"].tolist() == model.predict(balance.data[:100]).tolist()
    expected = model.predict_proba(balance.data[:100])
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-7)


def test_paths_lead_where_rows_go():
    tree = grow_tree(X, 300)
    turns = np.where(X @ tree.directions.T > tree.thresholds, 1.0, -1.0)
    paths = tree_paths(tree)
    agreed = turns @ paths == np.abs(paths).sum(axis=0)
    assert (agreed.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(agreed.argmax(axis=1), tree.route(X))


def test_refusals():
    model = LSSVMRegressor("fast", kernel="rbf", metric=None, n_jobs=1).fit(X[:60], signal[:60])
    with pytest.raises(InvalidInputError, match="interval"):
        to_onnx(model, interval=0.9)
    with pytest.raises(InvalidInputError, match="regressor"):
        to_onnx(model, probabilities=True)
    with pytest.raises(InvalidInputError, match="without a pipeline"):
        to_onnx(make_pipeline(StandardScaler(), model).fit(X[:60], signal[:60]), X=X[:3])
