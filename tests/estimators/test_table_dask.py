"""The model for tables where Dask has the rows: parts are tasks of the cluster."""

import os

import numpy as np
import pytest

from lssvm import LSSVMRegressor
from lssvm.estimators import table_fit
from lssvm.local import ClusterLeaves, LeafEngine, LeafTask, Rows, Setting

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

CHOSEN = {"preset": "fast", "kernel": "rbf", "scaling": "standardised", "leaf_size": 300}


def tasks(count=6, n=80):
    rng = np.random.default_rng(0)
    out = []
    for _ in range(count):
        X = rng.normal(size=(n, 3))
        Y = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(n, 1))
        out.append(LeafTask(Rows(X, Y, np.ones(n)), "euclidean", Setting(3.0, 0.3)))
    return out


def test_parts_of_a_cluster_are_those_of_the_host(client):
    todo = tasks()
    seen = []
    got = ClusterLeaves(1, client).fit(todo, tries=4, finished=lambda i, leaf: seen.append(i))
    assert seen == list(range(6))
    for mine, theirs in zip(got, LeafEngine().fit(todo, tries=4), strict=True):
        assert mine.setting == theirs.setting
        np.testing.assert_allclose(mine.fit.coef, theirs.fit.coef, rtol=1e-8, atol=1e-10)


def test_a_killed_worker_changes_nothing(client_of_processes):
    todo = tasks(12, 300)
    expected = LeafEngine().fit(todo, tries=4)
    pids = list(client_of_processes.run(os.getpid).values())

    def kill(number, leaf):
        if number == 1:
            os.kill(pids[0], 9)

    got = ClusterLeaves(1, client_of_processes).fit(todo, tries=4, finished=kill)
    for mine, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine.fit.coef, theirs.fit.coef, rtol=1e-8, atol=1e-10)


def test_dask_rows_give_the_model_of_the_array(client, monkeypatch):
    monkeypatch.setattr(table_fit, "MANY", 3500)
    monkeypatch.setattr(table_fit, "SAMPLE", 3000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=4000)
    inside = LSSVMRegressor(**CHOSEN).fit(X, y)
    with client.as_current():
        rows = da.from_array(X, chunks=(1000, 3))
        outside = LSSVMRegressor(**CHOSEN).fit(rows, da.from_array(y, chunks=1000))
        new = rng.normal(size=(50, 3))
        predicted = outside.predict(da.from_array(new, chunks=(25, 3)))
    np.testing.assert_allclose(outside.predict(new), inside.predict(new), atol=1e-8)
    np.testing.assert_allclose(np.asarray(predicted), inside.predict(new), atol=1e-8)
