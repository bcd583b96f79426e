"""Rows in the partitions of Dask: the blocks, positions and errors of a plain scan."""

import operator

import numpy as np
import pandas as pd
import pytest

from lssvm import scan
from lssvm._core.errors import InvalidInputError
from lssvm.data import cluster
from lssvm.data.cluster import (
    SPLIT,
    Part,
    Recipe,
    inlined,
    map_in_order,
    map_reduce,
    task_resources,
)
from lssvm.data.dataset import open_dataset
from lssvm.data.preparation import PreparationSettings, learn

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.dask

N = 1000
rng = np.random.default_rng(0)
frame = pd.DataFrame(
    {
        "a": rng.standard_normal(N),
        "b": np.array(["x", "y", None])[rng.integers(0, 3, N)],
        "w": rng.integers(0, 3, N) / 1.0,
        "y": rng.integers(0, 4, N),
    }
)
X = rng.standard_normal((N, 3))


def rows_of(data):
    blocks = list(data.blocks())
    assert blocks[0].start == 0
    return np.concatenate([b.numbers for b in blocks]), np.concatenate([b.target for b in blocks])


@pytest.mark.parametrize("number", [1, 2, SPLIT, 3 * SPLIT + 5])
@pytest.mark.parametrize("threads", [1, 3, 40])
def test_every_part_is_added_once(number, threads):
    parts = [Part(i, 0, 1, (dask.delayed(2**i),)) for i in range(number)]
    with dask.config.set(num_workers=threads, scheduler="synchronous"):
        assert map_reduce(parts, lambda part: part.values[0], operator.add) == 2**number - 1
        found = list(map_in_order(parts, lambda part: (part.number, part.values[0])))
    assert found == [(i, 2**i) for i in range(number)]


def test_parts_go_to_the_workers_that_hold_them(monkeypatch):
    parts = [Part(i, 0, 1, ()) for i in range(10)]
    workers = {"one": (1, 0), "two": (3, 0), "idle": (1, 0)}
    holders = [["one"], ["two"], ["gone"], ["one", "two"], *([[]] * 6)]
    monkeypatch.setattr(cluster, "workers_of", lambda client: workers)
    monkeypatch.setattr(cluster, "_holders", lambda parts, client: holders)
    placed = {
        address: [part.number for group in groups for part in group]
        for address, groups in cluster.placed(parts, None).items()
    }
    assert sorted(number for found in placed.values() for number in found) == list(range(10))
    assert 0 in placed["one"] and 1 in placed["two"] and 3 in placed["one"] + placed["two"]
    assert len(cluster.placed(parts, None)["two"]) == 3
    assert placed["idle"]


def test_only_what_parts_share_is_computed_apart_from_them():
    rows = da.from_array(X, chunks=(400, 3)) + 1.0
    parts = [Part(i, 0, 1, (v,)) for i, v in enumerate(rows.to_delayed().ravel())]
    found = inlined(parts)
    assert all(isinstance(part.values[0], Recipe) for part in found)
    np.testing.assert_array_equal(found[2].values[0].compute(), X[800:] + 1.0)
    mean = rows - rows.mean(axis=0)
    parts = [Part(i, 0, 1, (v,)) for i, v in enumerate(mean.to_delayed().ravel())]
    assert inlined(parts) == parts


def test_a_task_gets_its_share_of_the_worker(monkeypatch):
    monkeypatch.setattr(cluster, "workers_of", lambda client: {"a": (4, 8 * 10**9), "b": (1, 0)})
    assert task_resources(10**12, "client") == int(0.7 * 2 * 10**9 // 3)
    assert task_resources(10**6, "client") == 10**6 // 15  # b shares that of the model
    with dask.config.set(num_workers=2, scheduler="threads"):
        assert task_resources(600) == 100


def test_an_array_is_read_as_the_plain_one():
    y = np.arange(N)
    data = scan(da.from_array(X, chunks=(170, 2)), target=da.from_array(y, chunks=300))
    assert data.n_rows == N and data.distributed and not data.named and open_dataset(data) is data
    numbers, target = rows_of(data)
    np.testing.assert_array_equal(numbers, X)
    np.testing.assert_array_equal(target, y)
    inside = scan(da.from_array(X, chunks=(170, 3)), target=1)
    np.testing.assert_array_equal(rows_of(inside)[1], X[:, 1])
    assert inside.schema.names == ("x0", "x1")


def test_unknown_and_empty_partitions_are_counted():
    rows = da.from_array(X, chunks=(100, 3))
    kept = rows[rows[:, 0] > 1.5]
    assert np.isnan(kept.chunks[0][0])
    data = open_dataset(kept, kept[:, 1])
    assert data.n_rows == np.count_nonzero(X[:, 0] > 1.5)
    np.testing.assert_array_equal(rows_of(data)[0], X[X[:, 0] > 1.5])
    fewer = rows.rechunk((200, 3))
    with pytest.raises(InvalidInputError, match="10 chunks but X has 5"):
        open_dataset(fewer[fewer[:, 0] > 1.5], kept[:, 1])
    none = open_dataset(rows[rows[:, 0] > 99.0], rows[rows[:, 0] > 99.0][:, 1])
    with pytest.raises(InvalidInputError, match="all partitions are empty"):
        none.sample(10)


def test_the_sample_is_that_of_the_plain_scan():
    options = {"target": "y", "weight": "w"}
    one = scan(frame, **options).sample(100, classes=True)
    parts = scan(dd.from_pandas(frame, npartitions=7), **options)
    other = parts.sample(100, classes=True)
    np.testing.assert_array_equal(one.positions, other.positions)
    np.testing.assert_array_equal(one.block.numbers, other.block.numbers)
    np.testing.assert_array_equal(one.block.target, other.block.target)
    np.testing.assert_array_equal(one.classes, other.classes)
    np.testing.assert_array_equal(one.counts, other.counts)
    assert one.n_rows == other.n_rows == np.count_nonzero(frame["w"])
    settings = PreparationSettings(target="classes")
    ready = [
        learn(drawn.block.table, drawn.block.target, drawn.block.weight, None, settings).prepared
        for drawn in (one, other)
    ]
    np.testing.assert_array_equal(ready[0].transform(frame), ready[1].transform(frame))


def test_limits_hold_over_all_partitions():
    table = pd.DataFrame({"a": np.arange(1200.0), "b": np.arange(1200).astype(str)})
    with pytest.raises(InvalidInputError, match="more than 1000 different labels"):
        scan(dd.from_pandas(table, 4), "b").sample(10, classes=True)


def test_what_is_wrong_is_said_with_the_partition():
    def spoil(part):
        return part.assign(a=part["a"].astype(str)) if part.index[0] > 500 else part

    wrong = dd.from_pandas(frame, npartitions=4).map_partitions(spoil, meta=frame[:0])
    with pytest.raises(InvalidInputError, match="Column 'a' of partition 3 holds texts"):
        scan(wrong, target="y", columns=["a"]).sample(10)
    missing = frame.assign(y=frame["y"].where(frame.index != 777))
    with pytest.raises(InvalidInputError, match=r"partition 3.*'y' is missing in row 27"):
        scan(dd.from_pandas(missing, npartitions=4), target="y", columns=["a"]).sample(10)
    with pytest.raises(InvalidInputError, match="2 partitions but X has 4"):
        open_dataset(dd.from_pandas(frame[["a"]], 4), dd.from_pandas(frame["y"], 2))
    with pytest.raises(InvalidInputError, match="Dask series with the same partitions"):
        open_dataset(dd.from_pandas(frame[["a"]], 4), frame["y"])
    with pytest.raises(InvalidInputError, match="no columns"):
        _ = scan(dd.from_pandas(frame, 4), target="z").schema
    with pytest.raises(InvalidInputError, match="not usable: give a dask"):
        scan(X, client="tcp://somewhere")
