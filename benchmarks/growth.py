"""Measure how time and memory of the fixed-size model grow with the number of rows.

    python -m benchmarks.growth [--sizes 50000,200000] [--repeats 3] [--threads 2]

Every size runs in a process of its own on generated rows: a plain fit (C and gamma given) and a fit
that tunes itself, of a classifier and of a regressor. The time is the smallest of the repeats, the
memory the peak of the first fit less what was in use before it (the rows among it).
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chapter3 import describe_run
from benchmarks.study import records
from lssvm import FixedSizeLSSVC, FixedSizeLSSVR
from lssvm._core.blocks import n_threads

SIZES = (50_000, 100_000, 200_000, 400_000, 800_000, 1_600_000)
FEATURES, PROTOTYPES = 10, 150
FITS = ("plain", "tuned")
KINDS = ("classifier", "regressor")
OUTPUT = Path("benchmarks/results/growth.jsonl")
TABLE = Path("benchmarks/results/growth.md")


def make_rows(n: int, kind: str) -> tuple[Any, Any]:
    """Return n rows and their targets, the same first rows for every n."""
    rng = np.random.default_rng(0)
    X, y = np.empty((n, FEATURES)), np.empty(n)
    for start in range(0, n, 50_000):
        part = slice(start, min(start + 50_000, n))
        rows = rng.standard_normal((50_000, FEATURES + 1))[: part.stop - start]
        X[part] = rows[:, :-1]
        y[part] = np.sin(rows[:, 0]) + rows[:, 1] * rows[:, 2] + 0.3 * rows[:, -1]
    return X, (y > 0).astype(np.int8) if kind == "classifier" else y


def memory(field: str) -> int:
    """Return VmRSS or VmHWM of this process in bytes (Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def reset_peak() -> None:
    """Make VmHWM start again from what is in use now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def measure(n: int, kind: str, fit: str, threads: int, repeats: int) -> dict[str, Any]:
    """Fit in this process; return seconds and bytes."""
    options: dict[str, Any] = {"n_jobs": threads, "random_state": 0}
    if fit == "plain":
        options |= {"C": 1.0, "gamma": 0.05}
    model: Any = (FixedSizeLSSVC if kind == "classifier" else FixedSizeLSSVR)(
        PROTOTYPES, selection="renyi", **options
    )
    model.fit(*make_rows(2_000, kind))  # loads libraries and starts threads
    X, y = make_rows(n, kind)
    before = memory("VmRSS")
    reset_peak()
    wall, processor = [], []
    peak = 0
    for _ in range(repeats):
        clocks = time.perf_counter(), time.process_time()
        model.fit(X, y)
        wall.append(time.perf_counter() - clocks[0])
        processor.append(time.process_time() - clocks[1])
        peak = peak or memory("VmHWM")
    return {
        "seconds": min(wall),
        "processor_seconds": min(processor),
        "bytes": peak - before,
        "input_bytes": X.nbytes + y.nbytes,
        "gammas": len(np.unique(model.cv_results_["param_gamma"])) if fit == "tuned" else 0,
    }


def key_of(n: int, kind: str, fit: str) -> tuple[str, int, str]:
    """Return the key of a result."""
    return f"{kind}, {fit}", n, "fixed size"


def run(options: argparse.Namespace) -> None:
    """Measure what the output does not hold yet, every size in a process of its own."""
    records.repair(options.out)
    done = set(records.read(options.out))
    records.append(options.out, {"run": describe_run(max(options.sizes))})
    for n in options.sizes:
        for kind in KINDS:
            for fit in FITS:
                key = key_of(n, kind, fit)
                if key in done:
                    continue
                case = ["--case", str(n), kind, fit]
                limits = ["--repeats", str(options.repeats), "--threads", str(options.threads)]
                command = [sys.executable, "-m", "benchmarks.growth", *case, *limits]
                found = subprocess.run(command, capture_output=True, text=True, check=True)
                head = dict(zip(("set", "randomisation", "method"), key, strict=True))
                settings = {"threads": options.threads, "repeats": options.repeats}
                records.append(options.out, head | settings | json.loads(found.stdout))
                print(*key, found.stdout.strip(), flush=True)


def exponent(sizes: list[int], values: list[float]) -> float:
    """Return the slope of log(value) over log(size)."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def table(path: Path) -> str:
    """Return the table of a file of results as Markdown."""
    results = records.read(path)
    lines = [HEAD]
    for kind in KINDS:
        for fit in FITS:
            keys = sorted(
                (key for key in results if key[0] == f"{kind}, {fit}"), key=lambda key: key[1]
            )
            if len(keys) < 2:
                continue
            lines += [
                f"## {kind}, {fit} fit",
                "",
                "| rows | seconds | processor seconds | values of gamma | input | peak beyond it "
                "| bytes per row |",
                "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            ]
            found = [results[key] for key in keys]
            sizes = [key[1] for key in keys]
            for n, r in zip(sizes, found, strict=True):
                lines.append(
                    f"| {n:,} | {r['seconds']:.2f} | {r['processor_seconds']:.2f} "
                    f"| {r['gammas'] or '-'} | {r['input_bytes'] / 1e6:.0f} MB "
                    f"| {r['bytes'] / 1e6:.1f} MB | {r['bytes'] / n:.0f} |"
                )
            slopes = [
                exponent(sizes, [r[name] for r in found])
                for name in ("seconds", "processor_seconds")
            ]
            each = [
                (found[-1]["bytes"] - found[0]["bytes"]) / (sizes[-1] - sizes[0]),
                found[-1]["input_bytes"] / sizes[-1],
            ]
            lines += [
                "",
                f"Exponent of the time: {slopes[0]:.3f}; of the processor time: {slopes[1]:.3f}. "
                f"Memory beyond the input grows by {each[0]:.0f} bytes a row; the input has "
                f"{each[1]:.0f}.",
                "",
            ]
    return "\n".join(lines)


HEAD = f"""# Growth of the fixed-size model with the number of rows

`python -m benchmarks.growth`

Wanted: an exponent of at most 1.05 from 50,000 to 1,600,000 rows, and a peak of memory that does
not grow beyond the input. Generated rows, d = {FEATURES}, m = {PROTOTYPES}, entropy selection,
every size in a process of its own; the tuned fit is the estimator's default (ten folds). Where the
machine had other work, the processor time is the one to look at.
"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=n_threads(None))
    parser.add_argument("--out", type=Path, default=OUTPUT)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--case", nargs=3, help="rows, kind and fit: measure this one, print JSON")
    options = parser.parse_args(arguments)
    if options.case is not None:
        n, kind, fit = options.case
        print(json.dumps(measure(int(n), kind, fit, options.threads, options.repeats)))
        return
    options.sizes = options.sizes or list(SIZES)
    run(options)
    options.table.write_text(table(options.out), encoding="utf-8")


if __name__ == "__main__":
    main()
