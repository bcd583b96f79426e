"""Measure how time, memory and scratch space of the model for tables grow with the rows of a file.

    python -m benchmarks.table_growth --work FOLDER [--sizes 100000,1000000,10000000] [--threads 2]

Every size is a Parquet file of 28 generated columns in FOLDER and a process of its own, which fits
`LSSVMRegressor` with default settings and a memory budget to a scan of the file. Its error on
50,000 new rows is compared with that of 500 prototypes of the same rows. The peak of memory is
that of the whole process; scratch space is looked at twice a second.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chapter3 import describe_run
from benchmarks.gpu_tables import smooth
from benchmarks.growth import exponent, memory
from benchmarks.study import records
from lssvm import FixedSizeLSSVR, LSSVMRegressor, scan
from lssvm._core.blocks import n_threads

SIZES = (100_000, 1_000_000, 10_000_000)
NEW_ROWS, BLOCK = 50_000, 100_000
OUTPUT = Path("benchmarks/results/table_growth.jsonl")
TABLE = Path("benchmarks/results/table_growth.md")


def write_file(path: Path, n: int) -> None:
    """Write n rows in row groups of 100,000, the same first rows for every n."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    writer = None
    for start in range(0, n, BLOCK):
        X, y = smooth(BLOCK, 1000 + start // BLOCK)
        names = [f"x{j}" for j in range(X.shape[1])]
        block = pa.table([*X[: n - start].T, y[: n - start]], names=[*names, "y"])
        writer = writer or parquet.ParquetWriter(path, block.schema)
        writer.write_table(block)
    assert writer is not None
    writer.close()


def measure(path: Path, threads: int, budget: str) -> dict[str, Any]:
    """Fit the rows of a file in this process; return seconds, bytes and errors."""
    rows, truth = smooth(NEW_ROWS, 1)
    new = {f"x{j}": column for j, column in enumerate(rows.T)}
    model = LSSVMRegressor(n_jobs=threads, memory_budget=budget, random_state=0)
    clocks = time.perf_counter(), time.process_time()
    model.fit(scan(path, "y"))
    seconds, processor = time.perf_counter() - clocks[0], time.process_time() - clocks[1]
    peak = memory("VmHWM")
    spread = float(np.var(truth))
    begin = time.perf_counter()
    error = 100.0 * float(np.mean((model.predict(new) - truth) ** 2)) / spread
    predicted = time.perf_counter() - begin
    peer = FixedSizeLSSVR(500, selection="renyi", n_jobs=threads, random_state=0)
    begin = time.perf_counter()
    peer.fit(scan(path, "y"))
    peer_seconds = time.perf_counter() - begin
    return {
        "seconds": seconds,
        "processor_seconds": processor,
        "peak_bytes": peak,
        "error": error,
        "predict_seconds": predicted,
        "leaf_size": model.leaf_size_,
        "summary": model.summary_,
        "prototypes_error": 100.0 * float(np.mean((peer.predict(rows) - truth) ** 2)) / spread,
        "prototypes_seconds": peer_seconds,
    }


def bytes_of(folder: Path) -> int:
    """Return the bytes of all files below a folder; what vanishes meanwhile is not counted."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).stat().st_size
            except FileNotFoundError:
                continue
    return total


def watched(command: list[str], scratch: Path) -> tuple[str, int]:
    """Run a command with its temporary files in ``scratch``; return its output and their peak."""
    scratch.mkdir(exist_ok=True)
    peak, done = 0, threading.Event()

    def look() -> None:
        nonlocal peak
        while not done.wait(0.5):
            peak = max(peak, bytes_of(scratch))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        environment = os.environ | {"TMPDIR": str(scratch)}
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    finally:
        done.set()
        watcher.join()
    if found.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {found.returncode}")
    return found.stdout, peak


def run(options: argparse.Namespace) -> None:
    """Measure what the output does not hold yet."""
    records.repair(options.out)
    done = set(records.read(options.out))
    records.append(options.out, {"run": describe_run(max(options.sizes))})
    options.work.mkdir(parents=True, exist_ok=True)
    for n in options.sizes:
        key = ("smooth", n, f"table model, {options.budget}")
        if key in done:
            continue
        path = options.work / f"smooth-{n}.parquet"
        write_file(path, n)
        limits = ["--threads", str(options.threads), "--budget", options.budget]
        command = [sys.executable, "-m", "benchmarks.table_growth", "--case", str(path), *limits]
        printed, scratch = watched(command, options.work / "scratch")
        head = dict(zip(("set", "randomisation", "method"), key, strict=True))
        settings = {
            "threads": options.threads,
            "budget": options.budget,
            "file_bytes": path.stat().st_size,
            "scratch_bytes": scratch,
        }
        records.append(options.out, head | settings | json.loads(printed.splitlines()[-1]))
        path.unlink()
        print(*key, printed.strip(), flush=True)


def table(path: Path) -> str:
    """Return the table of a file of results as Markdown."""
    results = records.read(path)
    keys = sorted(results, key=lambda key: key[1])
    sizes, found = [key[1] for key in keys], [results[key] for key in keys]
    lines = [HEAD]
    for n, r in zip(sizes, found, strict=True):
        lines.append(
            f"| {n:,} | {r['seconds'] / 60:.1f} | {r['processor_seconds'] / 60:.1f} "
            f"| {r['leaf_size']:,} | {r['budget']} | {r['peak_bytes'] / 1e9:.2f} GB "
            f"| {r['scratch_bytes'] / 1e9:.2f} GB | {r['error']:.1f} "
            f"| {r['prototypes_error']:.1f} |"
        )
    different = sorted(set(sizes))
    if len(different) > 1:
        slopes = [
            exponent(
                different,
                [
                    min(r[name] for n, r in zip(sizes, found, strict=True) if n == d)
                    for d in different
                ],
            )
            for name in ("seconds", "processor_seconds")
        ]
        lines += [
            "",
            f"Exponent of the time: {slopes[0]:.2f}; of the processor time: {slopes[1]:.2f} (of a "
            "size the shortest run).",
        ]
    return "\n".join(lines) + "\n"


HEAD = """# Growth of the model for tables with the rows of a file

`python -m benchmarks.table_growth --work FOLDER`

Wanted: an exponent of at most 1.05 from 10^5 to 10^7 rows; 10^7 rows in at most 12 minutes with a
peak of 3 GB. Generated rows of 28 columns from a Parquet file, default settings, two threads, every
size in a process of its own; minutes, rows of a part, `memory_budget`, the peak of the process, and
the error 100 (1 - R2) on 50,000 new rows and that of 500 prototypes of the same rows.

| rows | minutes | processor minutes | part | budget | peak | scratch | error | 500 prototypes |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--work", type=Path, help="folder for the files and for scratch space")
    parser.add_argument("--threads", type=int, default=n_threads(None))
    parser.add_argument("--budget", default="2.3GB", help="memory_budget of the model")
    parser.add_argument("--out", type=Path, default=OUTPUT)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--case", type=Path, help="measure the rows of this file, print JSON")
    options = parser.parse_args(arguments)
    if options.case is not None:
        print(json.dumps(measure(options.case, options.threads, options.budget)))
        return
    if options.work is None:
        parser.error("--work is needed: a folder with a few GB of room")
    options.sizes = options.sizes or list(SIZES)
    run(options)
    options.table.write_text(table(options.out), encoding="utf-8")


if __name__ == "__main__":
    main()
