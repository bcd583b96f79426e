"""Compiled loops of the Laplacian and exponential kernels against NumPy and SciPy, one thread.

    python -m benchmarks.fused_kernels --out benchmarks/results/fused_kernels.json

Both routes take turns; figures are processor seconds, the smallest of five turns. What numba takes
to load, and to compile where nothing is kept yet, is measured in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from sklearn.datasets import make_classification
from threadpoolctl import threadpool_limits

from benchmarks.evidence.machine import state
from lssvm import LSSVMClassifier
from lssvm.kernels import Exponential, Kernel, Laplacian, compiled
from lssvm.kernels.base import evaluate_expansion
from lssvm.kernels.metric import mean_outer_product
from lssvm.kernels.radial import fill_distances

COMPILED = compiled.loops


def routes(work: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Return the times of both routes, taken in turns, and how far their results are apart."""
    times: dict[str, list[float]] = {"scipy_s": [], "compiled_s": []}
    results = {}
    for turn in range(repeats + 1):  # the first one warms up
        for name, loops in (("scipy_s", lambda: None), ("compiled_s", COMPILED)):
            compiled.loops = loops
            begin = time.process_time()
            results[name] = work()
            if turn:
                times[name].append(time.process_time() - begin)
    compiled.loops = COMPILED
    pure, fast = (np.asarray(results[name], dtype=float) for name in ("scipy_s", "compiled_s"))
    best = {name: min(values) for name, values in times.items()}
    difference = float(np.abs(fast - pure).max() / np.abs(pure).max())
    return best | {"ratio": best["scipy_s"] / best["compiled_s"], "difference": difference}


def expansion(kernel: Kernel, n: int, m: int, d: int, dtype: Any = np.float64) -> Callable[[], Any]:
    """Return the outputs of random rows for a basis of random rows."""
    random = np.random.default_rng(0)
    X, Z = (random.normal(size=(rows, d)).astype(dtype) for rows in (n, m))
    coef, intercept = random.normal(size=(m, 1)).astype(dtype), np.zeros(1, dtype)
    use = {"budget": 10**9, "threads": 1}
    return lambda: evaluate_expansion(kernel, X, Z, coef, intercept, **use)


def slopes(n: int, d: int) -> Callable[[], Any]:
    """Return the diagonal of the mean outer product of gradients of a Laplacian expansion."""
    random = np.random.default_rng(0)
    X, coef = random.normal(size=(n, d)), random.normal(size=(n, 1))
    return lambda: mean_outer_product(Laplacian(1.0 / d), X, X, coef, shape="diagonal")


def training_distances(n: int, d: int) -> Callable[[], Any]:
    """Return the city-block distances of all pairs of rows."""
    X, out = np.random.default_rng(0).normal(size=(n, d)), np.empty((n, n))
    return lambda: fill_distances(X, "cityblock", out).copy()


def classifier(n: int, rows: int, d: int, **parameters: Any) -> Callable[[], Any]:
    """Return the probabilities of new rows by a model for tables."""
    X, y = make_classification(n + rows, d, n_informative=d // 2, random_state=0)
    model = LSSVMClassifier(preset="fast", n_jobs=1, random_state=0, **parameters)
    model.fit(X[:n], y[:n])
    return lambda: model.predict_proba(X[n:])


LOAD = """
import time
from lssvm.kernels import compiled
import numpy as np
begin = time.process_time()
X, coef = np.ones((3000, 6)), np.ones((3000, 1))
add = compiled.expansion("cityblock", X, coef, pairs=9_000_000)
add(X, np.zeros((3000, 1)))
print(time.process_time() - begin)
"""


def loading() -> dict[str, float]:
    """Return the seconds of a first expansion: compiled, and taken from where that is kept."""
    with tempfile.TemporaryDirectory() as folder:
        use = os.environ | {"NUMBA_CACHE_DIR": folder}
        run = [sys.executable, "-c", LOAD]
        first, *later = (
            float(subprocess.run(run, env=use, check=True, capture_output=True).stdout)
            for _ in range(4)
        )
    return {"compiled_s": first, "kept_s": min(later)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    small, large = (2000, 2000, 30), (5134, 5900, 70)
    cases: dict[str, Callable[[], Callable[[], Any]]] = {
        "Laplacian, 2,000 x 2,000 x 30": lambda: expansion(Laplacian(0.05), *small),
        "the same in float32": lambda: expansion(Laplacian(0.05), *small, np.float32),
        "Laplacian, 5,134 x 5,900 x 70": lambda: expansion(Laplacian(0.02), *large),
        "exponential, 2,000 x 2,000 x 30": lambda: expansion(Exponential(0.1), *small),
        "exponential, 5,134 x 5,900 x 70": lambda: expansion(Exponential(0.1), *large),
        "slopes of the Laplacian, 3,000 x 3,000 x 20": lambda: slopes(3000, 20),
        "city-block distances of 2,500 rows x 30": lambda: training_distances(2500, 30),
        "LSSVMClassifier, 5,000 rows from 10,000 x 20": lambda: classifier(10_000, 5000, 20),
        "the same, Laplacian kernel only": lambda: classifier(10_000, 5000, 20, kernel="laplacian"),
    }
    record: dict[str, Any] = state() | {"numba": numba.__version__, "cases": {}}
    with threadpool_limits(1):
        for name, make in cases.items():
            record["cases"][name] = values = routes(make(), chosen.repeats)
            shown = ", ".join(f"{key} {value:.3g}" for key, value in values.items())
            print(f"{name}: {shown}", flush=True)
    record["loading"] = loading()
    print("loading:", record["loading"])
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
