"""Parts on a device give the numbers of the host: torch on the CPU here, the same on a GPU."""

from types import SimpleNamespace

import numpy as np
import pytest

from lssvm import LSSVMClassifier, LSSVMRegressor
from lssvm._core.arrays import find_device
from lssvm._core.errors import MemoryBudgetError
from lssvm.kernels import Metric
from lssvm.kernels.metric import IDENTITY
from lssvm.kernels.warp import Warp
from lssvm.local import DeviceLeaves, LeafEngine, LeafTask, Rows, Setting, fit_local, grow_tree
from lssvm.local.device import between
from lssvm.local.engine import SlopesAt

pytestmark = pytest.mark.torch
DISTANCES = ("sqeuclidean", "euclidean", "cityblock")
HOST = LeafEngine()


@pytest.fixture
def device():
    pytest.importorskip("torch")
    import torch

    return DeviceLeaves(find_device(torch.device("cpu"), torch.empty(0), dispatch=True))


def task(n, distance, *, repeats=True, seed=0):
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, 4))
    X[:, 3] = X[:, 3] > 0  # two values: a product instead of differences
    if repeats and n > 12:
        X[5] = X[7] = X[0]
        X[9] = X[8]
        X[11] = X[10]
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * rng.normal(size=(n, 2))
    return LeafTask(Rows(X, Y, rng.uniform(0.5, 2.0, n)), distance, Setting(3.0, 0.3))


@pytest.mark.parametrize("distance", DISTANCES)
def test_parts_of_several_sizes_are_those_of_the_host(device, distance):
    tasks = [task(n, distance) for n in (60, 61, 58, 40, 2, 1)]
    for mine, theirs in zip(device.fit(tasks, tries=6), HOST.fit(tasks, tries=6), strict=True):
        assert mine.setting == theirs.setting
        assert mine.error == pytest.approx(theirs.error, rel=1e-9, abs=1e-12)
        for name in ("coef", "intercept", "left_out"):
            np.testing.assert_allclose(
                getattr(mine.fit, name), getattr(theirs.fit, name), rtol=1e-6, atol=1e-8
            )


@pytest.mark.parametrize("distance", DISTANCES)
def test_factors_that_are_inverted_by_halves_are_those_of_the_host(device, distance, monkeypatch):
    monkeypatch.setattr("lssvm.local.device._HALVED", 70)
    tasks = [task(n, distance) for n in (300, 299, 130, 71)]
    for mine, theirs in zip(device.fit(tasks, tries=2), HOST.fit(tasks, tries=2), strict=True):
        assert mine.setting == theirs.setting
        for name in ("coef", "intercept", "left_out"):
            np.testing.assert_allclose(
                getattr(mine.fit, name), getattr(theirs.fit, name), rtol=1e-3, atol=1e-4
            )


def test_halves_that_are_not_definite_get_jitter(device, monkeypatch):
    monkeypatch.setattr("lssvm.local.device._HALVED", 70)
    rng = np.random.default_rng(0)
    sound, flat = rng.normal(size=(200, 1)), np.arange(200.0)[:, None] * 1e-9
    tasks = [
        LeafTask(Rows(X, np.ones((200, 1)), np.ones(200)), "sqeuclidean", Setting(1e18, 1e-3))
        for X in (sound, flat)
    ]
    with pytest.warns(UserWarning, match="smaller C"):
        leaves = device.fit(tasks)
    assert all(np.isfinite(leaf.fit.coef).all() for leaf in leaves)


def test_city_block_distances_of_equal_rows_are_zero():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X = torch.tensor(1e3 * rng.normal(size=(2, 40, 5)))
    X[:, :, 2] = (X[:, :, 2] > 0).double()
    D = between(X, X, "cityblock")
    assert float(D.diagonal(dim1=1, dim2=2).abs().max()) == 0.0
    np.testing.assert_allclose(D, (X[:, :, None] - X[:, None]).abs().sum(dim=3), atol=1e-11)


@pytest.mark.parametrize(
    ("count", "room", "threads"), [(5, 9.0, 4), (5, 2.5, 2), (5, 0.1, 1), (1, 0.1, 4)]
)
def test_log_odds_are_computed_by_the_host_within_the_memory_budget(
    count, room, threads, monkeypatch
):
    used, fit = [], LeafEngine.fit
    monkeypatch.setattr(
        LeafEngine, "fit", lambda self, *a, **o: used.append(self.threads) or fit(self, *a, **o)
    )
    one = task(40, "sqeuclidean")
    rows = Rows(one.rows.X, np.sign(one.rows.Y[:, :1]), one.rows.weight)
    tasks = [LeafTask(rows, "sqeuclidean", Setting(3.0, 0.3, "logistic"))] * count
    limit = int(2 * room * 16 * 40**2)  # half of it is for two matrices on every thread
    limited = DeviceLeaves(SimpleNamespace(limit=limit))
    object.__setattr__(limited, "threads", 4)
    for mine, theirs in zip(limited.fit(tasks), HOST.fit(tasks), strict=True):
        np.testing.assert_array_equal(mine.fit.left_out, theirs.fit.left_out)
    assert used[0] == threads


def test_groups_are_left_out_together(device):
    one = task(30, "euclidean", repeats=False)
    rows = Rows(one.rows.X, one.rows.Y, one.rows.weight, np.arange(30) // 3)
    tasks = [LeafTask(rows, "euclidean", one.start)]
    mine, theirs = device.fit(tasks)[0], HOST.fit(tasks)[0]
    np.testing.assert_allclose(mine.fit.left_out, theirs.fit.left_out, atol=1e-9)
    alone = HOST.fit([one])[0]
    assert not np.allclose(mine.fit.left_out, alone.fit.left_out)


@pytest.mark.parametrize("distance", DISTANCES)
def test_outputs_routes_and_gradients(device, distance):
    rng = np.random.default_rng(3)
    rows = task(200, distance).rows
    new = np.vstack([rng.normal(size=(50, 4)), rows.X[:5]])
    host = fit_local(rows, distance, Setting(3.0, 0.3), leaf_size=60)
    on = fit_local(rows, distance, Setting(3.0, 0.3), leaf_size=60, engine=device)
    np.testing.assert_allclose(on.outputs(new, engine=device), host.outputs(new), atol=1e-8)
    np.testing.assert_array_equal(
        device.route(host.partitions[0].tree, new), host.partitions[0].tree.route(new)
    )
    leaves = host.leaves
    for metric in (IDENTITY, Metric(rng.uniform(size=4)), Metric(rng.normal(size=(4, 4)))):
        at = SlopesAt(leaves, distance, metric, 2)
        for shape in ("full", "diagonal"):
            np.testing.assert_allclose(
                device.outer_product(at, shape),
                HOST.outer_product(at, shape),
                rtol=1e-9,
                atol=1e-12,
            )


def test_slopes_of_features_with_several_values_and_warps_are_those_of_the_host(device):
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=80), rng.integers(3, size=80), rng.integers(9, size=80)])
    rows = Rows(np.column_stack([X, np.ones(80)]), rng.normal(size=(80, 2)), np.ones(80))
    leaves = fit_local(rows, "cityblock", Setting(3.0, 0.3), leaf_size=80).leaves
    knots = np.sort(rng.normal(size=(4, 6)), axis=1)
    knots[1, 3:], knots[2] = knots[1, 3], knots[2, 0]  # with fewer knots, the last is repeated
    values = np.cumsum(rng.uniform(0.1, 2.0, size=(4, 6)), axis=1)
    values[1, 3:], values[2] = values[1, 3], values[2, 0]
    warp = Warp(knots, values)
    for metric in (IDENTITY, Metric(rng.uniform(size=4)), Metric(None, warp)):
        mine, theirs = (
            engine.squared_slopes(SlopesAt(leaves, "cityblock", metric, 2))
            for engine in (device, HOST)
        )
        for name in ("at", "right", "left"):
            np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=1e-9)
    assert not np.allclose(mine.right[:, 1], mine.left[:, 1])
    new = 3 * rng.normal(size=(100, 4))
    for metric in (Metric(None, warp), Metric(rng.uniform(size=4), warp)):
        np.testing.assert_allclose(device.mapped(metric, new), metric.apply(new), atol=1e-12)


def test_a_matrix_that_is_not_definite_gets_jitter_and_a_warning(device):
    X = np.zeros((8, 1))
    X[:, 0] = np.arange(8) * 1e-9
    rows = Rows(X, np.ones((8, 1)), np.ones(8))
    with pytest.warns(UserWarning, match="smaller C"):
        leaf = device.fit([LeafTask(rows, "sqeuclidean", Setting(1e18, 1.0))])[0]
    assert np.isfinite(leaf.fit.coef).all()


def test_a_batch_is_halved_where_memory_runs_out(device, monkeypatch):
    asked = []
    original = DeviceLeaves._together

    def failing(self, tasks, batch, tries, stop):
        asked.append(len(batch))
        if len(batch) > 2:
            raise MemoryError
        return original(self, tasks, batch, tries, stop)

    monkeypatch.setattr(DeviceLeaves, "_together", failing)
    tasks = [task(20, "euclidean", seed=i) for i in range(5)]
    leaves = device.fit(tasks)
    assert asked == [5, 2, 3, 1, 2]
    for leaf, own in zip(leaves, tasks, strict=True):
        assert leaf.rows is own.rows
    monkeypatch.setattr(DeviceLeaves, "_together", lambda *a: (_ for _ in ()).throw(MemoryError()))
    with pytest.raises(MemoryBudgetError, match="smaller leaf_size"):
        device.fit(tasks[:1])


def test_large_trees_are_grown_from_some_rows(monkeypatch):
    monkeypatch.setattr("lssvm.local.model._SAMPLED", 500)
    X = np.random.default_rng(0).normal(size=(2000, 3))
    sizes = [len(rows) for rows in grow_tree(X, 250).rows_by_leaf(X)]
    assert sum(sizes) == 2000
    assert 150 < min(sizes) and max(sizes) < 400


@pytest.mark.parametrize("n", [150, 2600])
def test_the_table_model_is_the_same_on_a_device(n):
    pytest.importorskip("torch")
    import torch

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    chosen = {"preset": "fast", "kernel": "rbf", "scaling": "standardised", "leaf_size": 400}
    place = torch.device("cpu:0")
    host = LSSVMClassifier(**chosen).fit(X, y)
    device = LSSVMClassifier(**chosen, device=place).fit(X, y)
    tol = {"atol": 1e-4}  # metrics come from drafts, of single precision on the host
    np.testing.assert_allclose(device.predict_proba(X[:50]), host.predict_proba(X[:50]), **tol)
    # Of a linear target several C are as good as each other, and rounding decides.
    z = np.sin(3 * X[:, 0]) * X[:, 1] + 0.3 * rng.normal(size=n)
    host = LSSVMRegressor(**chosen).fit(X, z)
    device = LSSVMRegressor(**chosen, device=place).fit(X, z)
    np.testing.assert_allclose(device.predict(X[:50]), host.predict(X[:50]), **tol)
