"""Parts on a cluster: time with one, two and four workers, bytes moved, and a cost model.

The workers are processes of this machine with one thread each; exact models of equal parts are
their tasks, as `LSSVMRegressor` sends them where Dask has the rows. The model of the time is

    seconds = max(parts x seconds of a part / workers at a time, bytes moved / bandwidth),

with the seconds of a part on one thread of this process, the bytes that the library's notes name,
and the bandwidth of sending an array to a worker and back, all measured in the same run. Run with::

    python -m benchmarks.cluster_parts                  # 48 parts of 1,000 rows, 28 columns
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from benchmarks.cluster import sent
from benchmarks.gpu_tables import smooth
from lssvm._core.blocks import one_blas_thread
from lssvm.local import ClusterLeaves, LeafEngine, LeafTask, Rows, Setting

TRIES = 3
RESULTS = Path(__file__).parent / "results"


def make_tasks(n_leaves: int, size: int) -> list[LeafTask]:
    """Return parts of generated rows."""
    X, y = smooth(n_leaves * size, 0)
    rows = Rows(X.astype(np.float32), y[:, None], np.ones(len(y)))
    parts = (np.arange(p * size, (p + 1) * size) for p in range(n_leaves))
    return [LeafTask(rows.take(part), "cityblock", Setting(100.0, 0.05)) for part in parts]


def bytes_of(task: LeafTask) -> int:
    """Return what goes to a worker and comes back: the rows twice, and two arrays of outputs."""
    (n, d), k = task.rows.X.shape, task.rows.Y.shape[1]
    return n * (2 * (4 * d + 8 * k + 8) + 16 * k)


def echo(array: Any) -> Any:
    return array + 1.0


def bandwidth(client: Client) -> float:
    """Return bytes per second of an array on its way to a worker and back."""
    array = np.ones(4_000_000)
    client.submit(echo, array, pure=False).result()
    begin = time.perf_counter()
    client.submit(echo, array, pure=False).result()
    return 2 * array.nbytes / (time.perf_counter() - begin)


def case(tasks: list[LeafTask], workers: int, alone: float, expected: Any) -> dict[str, Any]:
    """Return seconds of all parts on so many workers, measured and by the model."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
        engine = ClusterLeaves(1, client)
        engine.fit(tasks[:workers], tries=1)  # the workers import the library
        speed = bandwidth(client)
        before = sent(client)
        begin = time.perf_counter()
        leaves = engine.fit(tasks, tries=TRIES)
        seconds = time.perf_counter() - begin
        between = sent(client) - before
    moved = sum(bytes_of(task) for task in tasks)
    at_a_time = min(workers, os.cpu_count() or 1)
    differences = [
        np.abs(a.fit.coef - b.fit.coef).max() / np.abs(b.fit.coef).max()
        for a, b in zip(leaves, expected, strict=True)
    ]
    return {
        "workers": workers,
        "parts": len(tasks),
        "leaf_size": len(tasks[0].rows.X),
        "one_process": alone,
        "seconds": seconds,
        "model": max(alone / at_a_time, moved / speed),
        "moved_mb": moved / 1e6,
        "between_workers_mb": between / 1e6,
        "bandwidth_mb_s": speed / 1e6,
        "difference": float(max(differences)),
    }


def write_page(results: dict[str, Any], path: Path) -> None:
    """Write the cases as Markdown."""
    lines = [
        "# Parts on a cluster",
        "",
        "Written by `python -m benchmarks.cluster_parts`.",
        f"{results['machine']}, {os.cpu_count()} cores; workers are processes with one thread.",
        f"Load average {results['load']:.1f} at the start.",
        "",
        "| workers | parts | rows of a part | one process, s | cluster, s | by the model, s "
        "| moved, MB | between workers, MB | MB/s | largest relative difference |",
        "| ---: " * 10 + "|",
    ]
    lines += [
        f"| {r['workers']} | {r['parts']} | {r['leaf_size']:,} | {r['one_process']:.1f} | "
        f"{r['seconds']:.1f} | {r['model']:.1f} | {r['moved_mb']:.1f} | "
        f"{r['between_workers_mb']:.1f} | {r['bandwidth_mb_s']:.0f} | {r['difference']:.0e} |"
        for r in results["cases"]
    ]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=int, default=48)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": platform.platform(), "load": os.getloadavg()[0]}
    tasks = make_tasks(options.parts, options.size)
    begin = time.perf_counter()
    with one_blas_thread():
        expected = LeafEngine(1).fit(tasks, tries=TRIES)
    alone = time.perf_counter() - begin
    results["cases"] = []
    for workers in options.workers:
        results["cases"].append(case(tasks, workers, alone, expected))
        print(json.dumps(results["cases"][-1]), flush=True)
    text = json.dumps(results, indent=2) + "\n"
    (options.out / "cluster_parts.json").write_text(text, encoding="utf-8")
    write_page(results, options.out / "cluster_parts.md")


if __name__ == "__main__":
    main()
