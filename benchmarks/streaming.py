"""Files larger than memory: peak memory, throughput, and what tuning on a sample costs.

Rows are generated, written as Parquet files of a million rows, and read back. Every figure is a
ratio of two numbers measured in the same run. Run with::

    python -m benchmarks.streaming                               # 1 and 10 million rows
    python -m benchmarks.streaming --rows 100000 1000000         # smaller
    python -m benchmarks.streaming throughput --rows 200000 0    # one case
    python -m benchmarks.streaming sets --data folder            # tuning on real data
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import lssvm.estimators.opening as scan_opening
from lssvm import FixedSizeLSSVC, scan
from lssvm._core.blocks import n_threads
from lssvm._core.random import seed_of
from lssvm.backends.rows import ScanRows
from lssvm.data import ArraySource
from lssvm.data.folds import Folds
from lssvm.data.preparation import PreparationSettings, learn
from lssvm.kernels import RBF
from lssvm.solvers.moments import accumulate, make_cells
from lssvm.tuning import PositionFolds

FEATURES = 28
PER_FILE = 1_000_000
SETS = ("adu", "mgt", "ftc", "shu", "spa")
RESULTS = Path(__file__).parent / "results"

FIT = """
import json, sys, time
from lssvm import FixedSizeLSSVC, scan
from lssvm._core.blocks import peak_memory
folder, prototypes, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
data = scan(folder, target="y")
start = time.perf_counter()
model = FixedSizeLSSVC(prototypes, selection="renyi", n_jobs=threads, random_state=0).fit(data)
fitted = time.perf_counter() - start
model.predict(data, out=folder + "/../predictions.parquet")
print(json.dumps({
    "rows": data.n_rows, "fit_seconds": fitted, "score": model.score(data),
    "peak_mb": peak_memory() / 1e6,
}))
"""


def make_rows(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, FEATURES))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2 - 0.5
    return X, (score + 0.3 * rng.standard_normal(n) > 0).astype(np.int64)


def write_rows(folder: Path, n: int) -> str:
    """Write ``n`` rows as Parquet files and return their folder."""
    folder.mkdir()
    for i, start in enumerate(range(0, n, PER_FILE)):
        X, y = make_rows(min(PER_FILE, n - start), i)
        table = pa.table({f"x{j}": X[:, j] for j in range(FEATURES)} | {"y": y})
        pq.write_table(table, folder / f"part{i:04d}.parquet")
    return str(folder)


def memory_case(folders: list[str], prototypes: int, threads: int) -> dict[str, Any]:
    """Measure the peak memory of a tuned fit and of predictions, in a process of its own."""
    found = []
    for folder in folders:
        command = [sys.executable, "-c", FIT, folder, str(prototypes), str(threads)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found.append(json.loads(out))
    ratio = found[-1]["peak_mb"] / found[0]["peak_mb"]
    return {"fits": found, "ratio": ratio, "wanted": "<= 1.2"}


def throughput_case(
    folder: str,
    prototypes: int,
    repeats: int,
    threads: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Time the moments of ten folds, from Parquet and from arrays in memory."""
    data = scan(folder, target="y")
    drawn = data.sample(1000)
    settings = PreparationSettings(target="classes")
    ready = learn(drawn.block.table, drawn.block.target, None, None, settings)

    def encode(block: Any) -> tuple[Any, Any]:
        return block.target[:, None].astype(float), np.zeros(len(block), dtype=np.intp)

    ready = replace(ready, positions=drawn.positions)
    rows = ScanRows(data, ready, encode, 1, threads=threads)
    pieces = list(rows.pieces())
    X = np.concatenate([piece.X for piece in pieces])
    Y = np.concatenate([piece.Y for piece in pieces])
    del pieces
    folds, kernel, Z = PositionFolds(10), RBF(1.0 / FEATURES), X[:prototypes].copy()
    fold = folds.assign(np.arange(len(X)))
    layout = make_cells(Folds([np.flatnonzero(fold == v) for v in range(10)]), len(X))
    source = ArraySource(X, Y, None, layout.order)
    times: dict[str, list[float]] = {"memory": [], "parquet": []}
    for _ in range(repeats):
        start = clock()
        inside = accumulate(kernel, source, Z, layout.cells, threads=threads)
        times["memory"].append(clock() - start)
        start = clock()
        streamed = rows.moments(kernel, Z, folds, None).cells
        times["parquet"].append(clock() - start)
    difference = max(
        float(np.abs(a.gram - b.gram).max() / np.abs(a.gram).max())
        for a, b in zip(inside, streamed, strict=True)
    )
    best = {name: min(values) for name, values in times.items()}
    return {
        "rows": len(X),
        **best,
        "difference": difference,
        "ratio": best["memory"] / best["parquet"],
        "wanted": ">= 0.7",
    }


def tuning_case(n: int, prototypes: int, threads: int) -> dict[str, Any]:
    """Compare the search on a sample, then at three gammas on all rows, with that on all rows."""
    X, y = make_rows(n + 100_000, 77)
    train, test = (X[:n], y[:n]), (X[n:], y[n:])
    found: dict[str, Any] = {"rows": n}
    for name in ("stream", "full"):
        # The same prototypes, so that only the tuning differs.
        model = FixedSizeLSSVC(selection=X[:prototypes], n_jobs=threads, random_state=0)
        start = time.perf_counter()
        if name == "stream":
            model.fit(scan(X[:n], target=y[:n], prepare=False))
        else:
            model.set_params(cv=PositionFolds(10, seed_of(model.random_state))).fit(*train)
        found[name] = {
            "seconds": time.perf_counter() - start,
            "C": model.C_,
            "gamma": model.gamma_,
            "cv_score": model.best_score_,
            "test_score": model.score(*test),
        }
    found["ratio"] = found["stream"]["seconds"] / found["full"]["seconds"]
    return found


def sets_case(folder: Path, prototypes: int, threads: int) -> list[dict[str, Any]]:
    """Compare the two searches on data sets, with an eighth of the training rows as the sample."""
    found = []
    for name in SETS:
        frame = pd.read_parquet(folder / f"{name}.parquet")
        frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))[:40_000]]
        n = int(0.7 * len(frame))
        train, test = frame.iloc[:n].reset_index(drop=True), frame.iloc[n:]
        scan_opening.SAMPLE_ROWS = n // 8
        model = FixedSizeLSSVC(prototypes, selection="renyi", n_jobs=threads, random_state=0)
        start = time.perf_counter()
        model.fit(scan(train, target="target"))
        middle = time.perf_counter()
        ready = model.preparation_
        full = FixedSizeLSSVC(selection=model.prototypes_, n_jobs=threads, random_state=0)
        full.set_params(cv=PositionFolds(10, seed_of(full.random_state)))
        full.fit(ready.transform(train), train["target"])
        end = time.perf_counter()
        answers = {
            "stream": (model, model.predict(test), middle - start),
            "full": (full, full.predict(ready.transform(test)), end - middle),
        }
        row: dict[str, Any] = {"set": name, "rows": n, "features": ready.n_features}
        for key, (fitted, predicted, seconds) in answers.items():
            row[key] = {
                "seconds": seconds,
                "gamma": fitted.gamma_,
                "cv_score": fitted.best_score_,
                "test_score": float(np.mean(predicted == test["target"].to_numpy())),
            }
        found.append(row)
    return found


def write_page(results: dict[str, Any], path: Path) -> None:
    """Write the results for people."""
    lines = [
        "# Files larger than memory",
        "",
        f"{results['machine']}, {results['threads']} threads,",
    ]
    lines += [f"{FEATURES} features, {results['prototypes']} prototypes."]
    lines += [f"Load average {results['load']:.0f} at the start: ratios count, not seconds.", ""]
    if "memory" in results:
        lines += [
            "| rows | tuned fit, s | accuracy | peak memory, MB |",
            "| --- | --- | --- | --- |",
        ]
        lines += [
            f"| {r['rows']:,} | {r['fit_seconds']:.1f} | {r['score']:.4f} | {r['peak_mb']:.0f} |"
            for r in results["memory"]["fits"]
        ]
        lines += ["", f"Peak memory ratio {results['memory']['ratio']:.2f} (wanted <= 1.2).", ""]
    if "throughput" in results:
        r = results["throughput"]
        lines += [
            f"Moments of ten folds, {r['rows']:,} rows: {r['memory']:.2f} s from memory, "
            f"{r['parquet']:.2f} s from Parquet, throughput ratio {r['ratio']:.2f} "
            "(wanted >= 0.7).",
            "",
        ]
    if "tuning" in results:
        r = results["tuning"]
        lines += [
            f"Tuning on {r['rows']:,} rows: gamma searched on a sample of 50,000 and three values "
            "tried on all rows, against the full search on all rows with the same prototypes.",
            "",
            "| search | seconds | C | gamma | CV accuracy | test accuracy |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        lines += [
            f"| {name} | {r[name]['seconds']:.1f} | {r[name]['C']:.3g} | {r[name]['gamma']:.3g} | "
            f"{r[name]['cv_score']:.4f} | {r[name]['test_score']:.4f} |"
            for name in ("stream", "full")
        ]
        lines += [""]
    if "sets" in results:
        lines += [
            "The same on data sets, 70 % of at most 40,000 rows for training, an eighth of these "
            "as the sample, 200 prototypes. Test accuracy:",
            "",
            "| set | rows | features | gamma: sample, full | sample, then all rows | full search |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        lines += [
            f"| {r['set']} | {r['rows']:,} | {r['features']} | {r['stream']['gamma']:.3g}, "
            f"{r['full']['gamma']:.3g} | {r['stream']['test_score']:.4f} | "
            f"{r['full']['test_score']:.4f} |"
            for r in results["sets"]
        ]
        lines += [""]
    path.write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = ("memory", "throughput", "tuning", "sets")
    parser.add_argument("cases", nargs="*", default=names[:3], help=f"any of {names}")
    parser.add_argument("--data", type=Path, default=None, help="folder of data sets, for sets")
    parser.add_argument("--rows", type=int, nargs=2, default=[1_000_000, 10_000_000])
    parser.add_argument("--tuning-rows", type=int, default=200_000)
    parser.add_argument("--prototypes", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--folder", default=None, help="where the files go; a temporary one else")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    threads, m = n_threads(options.threads), options.prototypes
    path = options.out / "streaming.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    results |= {
        "machine": platform.platform(),
        "threads": threads,
        "prototypes": m,
        "load": os.getloadavg()[0],
    }
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folders = []
        if {"memory", "throughput"} & set(options.cases):
            wanted = options.rows if "memory" in options.cases else options.rows[:1]
            folders = [write_rows(Path(temporary) / f"rows{n}", n) for n in wanted]
        cases = {
            "memory": lambda: memory_case(folders, m, threads),
            "throughput": lambda: throughput_case(folders[0], m, options.repeats, threads),
            "sets": lambda: sets_case(options.data, 200, threads),
            "tuning": lambda: tuning_case(options.tuning_rows, m, threads),
        }
        for name in options.cases:
            results[name] = cases[name]()
            print(name, json.dumps(results[name]), flush=True)
            path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
            write_page(results, options.out / "streaming.md")


if __name__ == "__main__":
    main()
