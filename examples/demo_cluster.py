"""Train on a cluster of worker processes, run by ``make demo-cluster``.

The address of a scheduler may be given: ``python demo_cluster.py tcp://host:8786``. Without it a
cluster of two workers is started on this machine. The rows are generated on the workers. Only
moments and a sample are moved; the last line of the output shows how much.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, get_task_stream, wait

from lssvm import FixedSizeLSSVC

ROWS, CHUNK, FEATURES, PROTOTYPES, FOLDS = 200_000, 20_000, 8, 200, 5


def make_chunk(seed: np.ndarray) -> np.ndarray:
    """Return rows of features and, in the last column, their class."""
    rng = np.random.default_rng(int(seed[0, 0]))
    X = rng.standard_normal((CHUNK, FEATURES))
    score = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(CHUNK)
    return np.column_stack([X, score > 0])


def make_rows(first_seed: int, rows: int) -> tuple[da.Array, da.Array]:
    """Return a Dask array of features and one of classes; nothing is computed yet."""
    seeds = da.arange(first_seed, first_seed + rows // CHUNK, chunks=1)[:, None]
    chunks = ((CHUNK,) * (rows // CHUNK), (FEATURES + 1,))
    table = seeds.map_blocks(make_chunk, dtype=float, chunks=chunks, meta=np.empty((0, 0)))
    return table[:, :FEATURES], table[:, FEATURES].astype(int)


def sent(client: Client) -> dict[str, int]:
    """Return the bytes that every worker has sent so far."""
    return client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)


def train(client: Client) -> None:
    X, y = client.persist(make_rows(0, ROWS))
    wait([X, y])
    before, began = sent(client), time.perf_counter()
    with get_task_stream(client) as stream:
        model = FixedSizeLSSVC(PROTOTYPES, cv=FOLDS, random_state=0).fit(X, y)
    took, after = time.perf_counter() - began, sent(client)
    X_new, y_new = make_rows(10_000, 5 * CHUNK)
    print(f"{ROWS:,} rows of {FEATURES} features, {PROTOTYPES} prototypes, {FOLDS} folds")
    print(f"C = {model.C_:.3g} and gamma = {model.gamma_:.3g}, tuned and fitted in {took:.1f} s")
    print(f"accuracy on {5 * CHUNK:,} new rows: {model.score(X_new, y_new):.4f}")
    busy: dict[str, float] = defaultdict(float)
    for task in stream.data:
        for step in task["startstops"]:
            if step["action"] == "compute":
                busy[task["worker"]] += step["stop"] - step["start"]
    for worker in sorted(after):
        moved = after[worker] - before.get(worker, 0)
        print(f"worker {worker}: {busy[worker]:.1f} s of work, {moved / 1e6:.1f} MB sent")
    cells = 8 * FOLDS * PROTOTYPES**2 / 1e6
    print(f"(the moments of a pass are {cells:.1f} MB, the rows {8 * X.size / 1e6:.1f} MB)")


def main() -> None:
    if len(sys.argv) > 1:
        with Client(sys.argv[1]) as client:
            train(client)
        return
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(silence_logs=50, **options) as cluster, Client(cluster) as client:
        train(client)


if __name__ == "__main__":
    main()
