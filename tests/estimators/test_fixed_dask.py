"""The fixed-size model on Dask: the model of the arrays, wherever the rows are, whoever dies."""

import os
import pickle
import signal
import threading
import time
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import lssvm.estimators.opening as scan_opening
from lssvm import FixedSizeLSSVC, FixedSizeLSSVR, scan
from lssvm._core.errors import InvalidInputError, MemoryBudgetError
from lssvm.estimators.opening import stripped
from lssvm.tuning import PositionFolds

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.dask

N = 2500
rng = np.random.default_rng(0)
X = rng.standard_normal((N, 3))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(N)
label = np.array(["high", "low", "mid"])[np.digitize(y, [-0.5, 0.7])]
Z = X[::50]
frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
    kind=np.array(["n", "s"])[rng.integers(0, 2, N)], late=label, w=rng.integers(0, 3, N) / 1.0
)


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    """Let the sample be smaller than the data: the passes are taken over the partitions."""
    monkeypatch.setattr(scan_opening, "SAMPLE_ROWS", 1000)


def same(found, expected):
    np.testing.assert_allclose(found.C_, expected.C_, rtol=1e-12)
    np.testing.assert_array_equal(found.gamma_, expected.gamma_)
    np.testing.assert_array_equal(found.support_, expected.support_)
    scale = np.abs(expected.dual_coef_).max()
    np.testing.assert_allclose(found.dual_coef_, expected.dual_coef_, rtol=0, atol=1e-8 * scale)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_dask_arrays_give_the_model_of_the_arrays_without_a_cluster(scheduler):
    import dask

    rows, target = da.from_array(X, chunks=(400, 2)), da.from_array(y, chunks=700)
    with dask.config.set(scheduler=scheduler):
        found = FixedSizeLSSVR(selection=Z, gamma=0.3).fit(rows, target)
        same(found, FixedSizeLSSVR(selection=Z, gamma=0.3, cv=PositionFolds(10)).fit(X, y))
        assert found.score(rows, target) == pytest.approx(found.score(X, y), rel=1e-12)
        predicted = found.predict(rows)
        assert isinstance(predicted, da.Array) and predicted.chunks == (rows.chunks[0],)
        np.testing.assert_allclose(predicted, found.predict(X), rtol=1e-12, atol=1e-12)


def sent(client):
    """Count the names of all that the workers have sent so far."""

    def names(dask_worker):
        return [str(key) for one in dask_worker.transfer_outgoing_log for key in one["keys"]]

    return Counter(name for found in client.run(names).values() for name in found)


@pytest.mark.parametrize("workers", [1, 3])
def test_tuned_gamma_and_prototypes_are_those_of_the_stream(workers, client):
    addresses = list(client.scheduler_info(n_workers=-1)["workers"])[:workers]
    rows = client.persist(da.from_array(X, chunks=(400, 3)), workers=addresses)
    with client.as_current():
        distributed.wait(rows)
    before = sent(client)
    with client.as_current():
        found = FixedSizeLSSVC(40, multiclass="ova").fit(rows, label)
        moved = sent(client) - before
        assert all(name.startswith(("_step", "_merge", "_same")) for name in moved)  # no rows
        assert found.score(rows, label) == pytest.approx(found.score(X, label), rel=1e-12)
    same(found, FixedSizeLSSVC(40, multiclass="ova").fit(scan(X, label, prepare=False)))


def test_the_frame_and_its_files_on_a_client_give_the_model_of_the_scan(
    client_of_processes, tmp_path
):
    client = client_of_processes
    for i, start in enumerate(range(0, N, 600)):
        frame[start : start + 600].to_parquet(tmp_path / f"part{i}.parquet")
    options = {"target": "late", "weight": "w"}
    expected = FixedSizeLSSVC(40, gamma=0.3).fit(scan(frame, **options))
    files = scan(tmp_path / "*.parquet", client=client, **options)
    parts = dd.from_pandas(frame, npartitions=4)
    assert files.n_rows == N and files.distributed
    for data in (files, scan(parts, client=client, **options)):
        found = FixedSizeLSSVC(40, gamma=0.3).fit(data)
        same(found, expected)
        assert found.preparation_.feature_names == expected.preparation_.feature_names
        assert found.score(data) == pytest.approx(expected.score(scan(frame, **options)))
    lazy = found.predict(files)
    assert isinstance(lazy, da.Array) and lazy.chunks == ((600, 600, 600, 600, 100),)
    np.testing.assert_array_equal(client.compute(lazy).result(), expected.predict(frame))
    series = found.predict(parts)
    assert series.npartitions == parts.npartitions
    known = pd.Series(expected.predict(frame), index=frame.index, name="prediction")
    pd.testing.assert_series_equal(client.compute(series).result(), known)
    written = found.predict(files, out=tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(written), expected.predict(frame))


def test_a_frame_and_a_series_are_taken_as_they_are(client):
    numbers = dd.from_pandas(frame[["a", "b", "c"]], npartitions=3)
    target, weight = (dd.from_pandas(part, npartitions=3) for part in (frame["late"], frame["w"]))
    with client.as_current():
        found = FixedSizeLSSVC(selection=Z, gamma=0.3).fit(numbers, target, weight)
        assert found.score(numbers, target, weight) == pytest.approx(
            found.score(frame[["a", "b", "c"]], label, frame["w"])
        )
        scores = found.decision_function(numbers)
        assert scores.compute().shape == (N, 3)
    assert not hasattr(found, "preparation_")
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    fitted = FixedSizeLSSVC(selection=Z, gamma=0.3, cv=PositionFolds(10))
    same(found, fitted.fit(frame[["a", "b", "c"]], label, frame["w"]))


@pytest.mark.parametrize(
    "options",
    [{"loss": "huber", "C": 1.0}, {"scoring": "neg_mean_absolute_error"}, {"reduction": "spfs"}],
    ids=str,
)
def test_every_kind_of_pass_is_that_of_the_stream(options):
    rows, target = da.from_array(X, chunks=(400, 3)), da.from_array(y, chunks=400)
    found = FixedSizeLSSVR(selection=Z, gamma=0.3, **options).fit(rows, target)
    same(
        found,
        FixedSizeLSSVR(selection=Z, gamma=0.3, **options).fit(scan(X, y, prepare=False)),
    )


def test_a_model_of_a_scan_takes_text_of_a_frame_everywhere():
    columns = ["a", "b", "kind"]
    model = FixedSizeLSSVC(20, C=1.0, gamma=0.3, selection="renyi")
    model.fit(scan(frame, target="late", columns=columns))
    rows, target = (dd.from_pandas(frame[name], npartitions=3) for name in (columns, "late"))
    assert model.score(rows, target) == model.score(frame[columns], label)
    expected = model.predict_proba(frame[columns])
    np.testing.assert_allclose(model.predict_proba(rows), expected, rtol=0, atol=1e-12)
    twice = pickle.loads(pickle.dumps(model)).partial_fit(rows, target)
    model.partial_fit(frame[columns], label)
    np.testing.assert_allclose(twice.dual_coef_, model.dual_coef_, rtol=0, atol=1e-8)
    with pytest.raises(InvalidInputError, match=r"kind.*hold text, but numbers are needed"):
        FixedSizeLSSVC(20).fit(rows, target)
    numbers = FixedSizeLSSVC(20, C=1.0, gamma=0.3).fit(X, label)
    with pytest.raises(InvalidInputError, match=r"kind.*hold text"):
        numbers.score(rows, target)


def test_rows_on_dask_are_added_and_forgotten():
    rows, target = da.from_array(X, chunks=(400, 3)), da.from_array(label, chunks=400)
    first = FixedSizeLSSVC(selection=Z, C=1.0, gamma=0.3).fit(X[:2000], label[:2000])
    before = first.dual_coef_.copy()
    first.partial_fit(rows[2000:], target[2000:])
    whole = FixedSizeLSSVC(selection=Z, C=1.0, gamma=0.3).fit(X, label)
    np.testing.assert_allclose(first.dual_coef_, whole.dual_coef_, rtol=1e-7, atol=1e-7)
    first.forget(rows[2000:], target[2000:])
    np.testing.assert_allclose(first.dual_coef_, before, rtol=1e-6, atol=1e-6)


def test_workers_killed_in_two_passes_change_nothing(client_of_processes, tmp_path):
    log = tmp_path / "read"
    log.touch()
    parts = 6

    def slow(block, log=str(log)):
        with open(log, "a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(0.15)
        return block

    def read():
        return log.read_text().split()

    def kill():
        for number in (3, parts + 3):  # in the survey, then in a pass of the tuning
            while len(read()) < number and not done.is_set():
                time.sleep(0.01)
            if not done.is_set():
                os.kill(int(read()[number - 1]), signal.SIGKILL)
                killed.append(number)

    killed, done = [], threading.Event()
    rows = da.from_array(X, chunks=(-(-N // parts), 3)).map_blocks(slow, dtype=float, meta=X[:0])
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with client_of_processes.as_current():
            found = FixedSizeLSSVC(selection=Z, gamma=0.3, multiclass="ova").fit(rows, label)
    finally:
        done.set()
        killer.join()
    assert len(killed) == 2
    fitted = FixedSizeLSSVC(selection=Z, gamma=0.3, multiclass="ova", cv=PositionFolds(10))
    same(found, fitted.fit(X, label))


def test_what_is_wrong_with_a_partition_is_named(client):
    bad = X.copy()
    bad[1003, 1] = np.nan
    rows = da.from_array(bad, chunks=(400, 3))
    with (
        client.as_current(),
        pytest.raises(InvalidInputError, match=r"'x1'.*row 203 of partition 2"),
    ):
        FixedSizeLSSVR(selection=Z).fit(rows, y)
    with pytest.raises(InvalidInputError, match="y has 2499 rows but X has 2500"):
        FixedSizeLSSVR().fit(rows, y[1:])
    with pytest.raises(InvalidInputError, match="no target to learn"):
        FixedSizeLSSVR().fit(rows)
    with pytest.raises(InvalidInputError, match=r"\['kind'\] hold text"):
        FixedSizeLSSVC().fit(*(dd.from_pandas(frame[c], npartitions=2) for c in (["kind"], "late")))


def test_a_task_that_has_no_room_is_refused():
    rows, target = da.from_array(X, chunks=(400, 3)), da.from_array(y, chunks=400)
    with pytest.raises(MemoryBudgetError, match="50 prototypes in 10 cells"):
        FixedSizeLSSVR(selection=Z, gamma=0.3, memory_budget="2 MB").fit(rows, target)


def test_what_is_sent_to_predict_is_small():
    model = FixedSizeLSSVR(selection=Z, C=1.0, gamma=0.3).fit(X, y)
    sent = stripped(model.record_)
    assert len(pickle.dumps(sent)) < 8 * (Z.size + 4 * len(Z)) + 5000 < len(pickle.dumps(model))
    lazy = model.predict(da.from_array(X[:10], chunks=(5, 3)))
    assert len(pickle.dumps(lazy)) < len(pickle.dumps(model))
    np.testing.assert_allclose(lazy.compute(), model.predict(X[:10]), rtol=1e-12)


def test_a_client_that_is_closed_is_named(tmp_path):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model = FixedSizeLSSVC(10, C=1.0, gamma=0.5)
    options = {"n_workers": 1, "processes": False, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(**options) as cluster:
        client = distributed.Client(cluster, set_as_default=False)
        data = scan(tmp_path / "rows.csv", target="late", client=client)
        rows = scan(
            da.from_array(X, chunks=500), target=da.from_array(y, chunks=500), client=client
        )
        client.close()
        for given in (data, rows):
            with pytest.raises(InvalidInputError, match=r"Dask client is clos.*open client"):
                model.fit(given)
        with pytest.raises(InvalidInputError, match="Dask client is clos"):
            scan(tmp_path / "rows.csv", target="late", client=client)


def test_a_client_that_is_closed_during_a_pass_is_named():
    options = {"n_workers": 1, "processes": False, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(**options) as cluster:
        client = distributed.Client(cluster, set_as_default=False)
        data = scan(da.from_array(X, chunks=500), client=client)
        pass_over = data.stream(len_of)
        next(pass_over)
        client.close()
        with pytest.raises(InvalidInputError, match="Dask client is clos"):
            list(pass_over)


def len_of(part):
    return sum(len(block) for block in part.blocks())
