"""Rows on a cluster: time with one and two workers, bytes moved, and whether the sums are the same.

The workers are processes of this machine with one thread each; the rows lie in their memory. Timed
is a pass for the moments of ten folds, against the same pass in this process on one thread, and
counted is what the workers have sent. Run with::

    python -m benchmarks.cluster                        # 200,000 and 800,000 rows, 500 prototypes
    python -m benchmarks.cluster --rows 50000 100000 --prototypes 100
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from lssvm import scan
from lssvm.backends.rows import ScanRows
from lssvm.kernels import RBF
from lssvm.tuning import PositionFolds

FEATURES, CHUNK, FOLDS = 28, 25_000, 10
RESULTS = Path(__file__).parent / "results"


def make_rows(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, FEATURES))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)


def encode(block: Any) -> tuple[Any, Any]:
    return block.target[:, None].astype(float), np.zeros(len(block), dtype=np.intp)


def timed_pass(data: Any, Z: Any, repeats: int) -> tuple[float, Any]:
    """Return the shortest time of a pass on one thread (per worker), and the moments."""
    rows = ScanRows(data, None, encode, 1, budget=2**33)
    kernel, times = RBF(1.0 / FEATURES), list[float]()
    for _ in range(repeats):
        began = time.perf_counter()
        found = rows.moments(kernel, Z, PositionFolds(FOLDS), None).cells
        times.append(time.perf_counter() - began)
    return min(times), found


def sent(client: Client) -> int:
    found = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    return sum(found.values())


def case(n: int, workers: int, prototypes: int, repeats: int) -> dict[str, Any]:
    X, y = make_rows(n)
    Z = X[:prototypes].copy()
    alone, expected = timed_pass(scan(X, target=y, prepare=False), Z, repeats)
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
        shared = client.scatter([X[i : i + CHUNK] for i in range(0, n, CHUNK)])
        targets = client.scatter([y[i : i + CHUNK] for i in range(0, n, CHUNK)])
        sizes = [min(CHUNK, n - i) for i in range(0, n, CHUNK)]
        rows, goals = (
            client.persist(
                da.concatenate([da.from_delayed(f, (b, *tail), float) for f, b in pairs])
            )
            for tail, pairs in (
                ((FEATURES,), list(zip(shared, sizes, strict=True))),
                ((), list(zip(targets, sizes, strict=True))),
            )
        )
        wait([rows, goals])
        data = scan(rows, target=goals, prepare=False)
        timed_pass(data, Z, 1)  # the workers import the library
        before = sent(client)
        seconds, found = timed_pass(data, Z, repeats)
        moved = (sent(client) - before) / repeats
    differences = [
        float(np.abs(a.gram - b.gram).max() / np.abs(b.gram).max())
        for a, b in zip(found, expected, strict=True)
    ]
    return {
        "rows": n,
        "workers": workers,
        "prototypes": prototypes,
        "seconds": seconds,
        "one_process": alone,
        "speed": alone / seconds,
        "moved_mb": moved / 1e6,
        "moments_mb": 8e-6 * FOLDS * prototypes**2,
        "rows_mb": 8e-6 * n * FEATURES,
        "difference": max(differences),
    }


def write_page(results: dict[str, Any], path: Path) -> None:
    lines = [
        "# Rows on a cluster",
        "",
        f"{results['machine']}, {os.cpu_count()} cores; workers are processes with one thread,",
        f"{FEATURES} features, a pass for the moments of {FOLDS} folds on rows in their memory.",
        f"Load average {results['load']:.0f} at the start: ratios count, not seconds.",
        "",
        "| rows | workers | one process, s | cluster, s | speed | sent, MB | moments of a pass, MB "
        "| rows, MB | largest relative difference of a gram |",
        "| --- " * 9 + "|",
    ]
    lines += [
        f"| {r['rows']:,} | {r['workers']} | {r['one_process']:.2f} | {r['seconds']:.2f} | "
        f"{r['speed']:.2f} | {r['moved_mb']:.1f} | {r['moments_mb']:.1f} | {r['rows_mb']:.0f} | "
        f"{r['difference']:.0e} |"
        for r in results["cases"]
    ]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 800_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--prototypes", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": platform.platform(), "load": os.getloadavg()[0]}
    results["cases"] = []
    for n in options.rows:
        for workers in options.workers:
            found = case(n, workers, options.prototypes, options.repeats)
            results["cases"].append(found)
            print(json.dumps(found), flush=True)
    text = json.dumps(results, indent=2) + "\n"
    (options.out / "cluster.json").write_text(text, encoding="utf-8")
    write_page(results, options.out / "cluster.md")


if __name__ == "__main__":
    main()
