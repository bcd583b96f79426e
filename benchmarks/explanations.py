"""Exact explanations compared with shap's KernelExplainer: time, and distance from the true values.

One model, 100 rows, 50 columns, 1,000 support vectors, 20 background rows, two threads, for three
kernels. `shap`'s KernelExplainer explains the first of the rows with its default number of samples,
as it comes (ten columns get values other than 0) and with values for all columns; its time for 100
rows is that of the rows explained, times 100 over their number. The truth is ours, checked by two
other routes: sums against predictions, and values of some rows, against one background row each, by
elementary symmetric polynomials in long double.
Run with::

    python -m benchmarks.explanations

It writes ``results/explanations.json`` and ``results/explanations.md``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np

from lssvm import LSSVR
from lssvm.explanations import Explanation

RESULTS = Path(__file__).parent / "results" / "explanations.json"
ROWS, COLUMNS, SUPPORT, BACKGROUND = 100, 50, 1000, 20
WAYS: dict[str, dict[str, Any]] = {"as it comes": {}, "all columns": {"l1_reg": False}}
KERNELS = {"rbf": 1.0 / COLUMNS, "laplacian": 1.0 / COLUMNS, "rbf, narrow": 5.0 / COLUMNS}


def fitted(kernel: str, gamma: float) -> tuple[LSSVR, np.ndarray, np.ndarray]:
    """Return a model of generated data, new rows and background rows."""
    random = np.random.default_rng(0)
    X = random.normal(size=(SUPPORT, COLUMNS))
    y = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3]) + 0.1 * random.normal(size=SUPPORT)
    model = LSSVR(C=10.0, kernel=kernel, gamma=gamma, n_jobs=2).fit(X, y)
    new = random.normal(size=(ROWS, COLUMNS))
    return model, new, X[:BACKGROUND]


def by_symmetric_polynomials(
    model: LSSVR, x: np.ndarray, background: np.ndarray, kernel: str, gamma: float
) -> np.ndarray:
    """Return the values of one row by elementary symmetric polynomials in long double."""
    Z, a = np.asarray(model.support_vectors_), np.asarray(model.dual_coef_)[:, 0]
    power = 1 if kernel == "laplacian" else 2
    d, total = len(x), np.zeros(len(x), dtype=np.longdouble)
    fact = [math.factorial(s) for s in range(d + 1)]
    weight = np.array(
        [np.longdouble(fact[s]) * fact[d - s - 1] / fact[d] for s in range(d)], dtype=np.longdouble
    )
    for r in background:
        U = np.exp(-gamma * np.abs(x - Z).astype(np.longdouble) ** power)  # (m, d)
        W = np.exp(-gamma * np.abs(r - Z).astype(np.longdouble) ** power)
        for i in range(d):
            e = np.zeros((len(Z), d), dtype=np.longdouble)  # coalitions of s others
            e[:, 0] = 1.0
            for j in range(d):
                if j != i:
                    moved = e[:, :-1] * U[:, j, None]
                    e *= W[:, j, None]
                    e[:, 1:] += moved
            total[i] += (a * (U[:, i] - W[:, i])) @ (e @ weight)
    return np.asarray(total / len(background), dtype=np.float64)


def ours(
    model: LSSVR, new: np.ndarray, background: np.ndarray, repeats: int
) -> tuple[Explanation, float, float]:
    """Return the explanation, wall clock and processor time: the least of some runs."""
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        found = model.explain(new, background)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return found, min(walls), min(cpus)


def theirs(
    model: LSSVR, new: np.ndarray, background: np.ndarray, options: dict[str, Any]
) -> tuple[np.ndarray, float, float]:
    """Return shap's values of some rows, wall clock and processor time."""
    import shap

    explainer = shap.KernelExplainer(model.predict, background)
    np.random.seed(0)  # noqa: NPY002 - what shap draws from
    wall, cpu = time.perf_counter(), time.process_time()
    values = explainer.shap_values(new, silent=True, **options)
    return np.asarray(values), time.perf_counter() - wall, time.process_time() - cpu


def compare(repeats: int, explained: int, checked: int) -> list[dict[str, Any]]:
    """Return a record for every kernel and every way."""
    records: list[dict[str, Any]] = []
    for name, gamma in KERNELS.items():
        kernel = name.partition(",")[0]
        model, new, background = fitted(kernel, gamma)
        found, wall, cpu = ours(model, new, background, repeats)
        scale = float(np.abs(found.values).max())
        missing = np.abs(found.prediction - model.predict(new)).max()
        wrong = 0.0
        for i in range(checked):  # each against a background row of its own
            one = background[i % BACKGROUND][None]
            truth = by_symmetric_polynomials(model, new[i], one, kernel, gamma)
            error = np.abs(truth - model.explain(new[i : i + 1], one).values[0])
            wrong = max(wrong, float(error.max()))
        shared = {"kernel": name, "gamma": gamma, "largest_value": scale}
        records.append(
            shared
            | {
                "way": "lssvm, exact",
                "rows": ROWS,
                "seconds_100_rows": wall,
                "processor_100_rows": cpu,
                "error": wrong,
                "sum_error": float(missing),
            }
        )
        for way, options in WAYS.items():
            values, wall, cpu = theirs(model, new[:explained], background, options)
            error = np.abs(values - found.values[:explained])
            records.append(
                shared
                | {
                    "way": f"shap KernelExplainer, {way}",
                    "rows": explained,
                    "seconds_100_rows": wall * 100 / explained,
                    "processor_100_rows": cpu * 100 / explained,
                    "error": float(error.max()),
                    "mean_error": float(error.mean()),
                    "mean_size": float(np.abs(found.values[:explained]).mean()),
                }
            )
    return records


def table(records: list[dict[str, Any]]) -> str:
    """Return the records as a table for people."""
    lines = [
        "| kernel | way | s for 100 rows | processor s | largest error | largest value |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {r['kernel']} | {r['way']} | {r['seconds_100_rows']:.2f} | "
        f"{r['processor_100_rows']:.2f} | {r['error']:.1e} | {r['largest_value']:.2f} |"
        for r in records
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--explained", type=int, default=5, help="rows that shap explains")
    parser.add_argument("--checked", type=int, default=1, help="rows checked in long double")
    args = parser.parse_args()
    import shap

    records = compare(args.repeats, args.explained, args.checked)
    machine = {
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0],
        "numpy": np.__version__,
        "shap": shap.__version__,
    }
    document = {"machine": machine, "sizes": [ROWS, COLUMNS, SUPPORT, BACKGROUND]}
    RESULTS.write_text(json.dumps(document | {"records": records}, indent=1) + "\n")
    RESULTS.with_suffix(".md").write_text(table(records))
    print(table(records))


if __name__ == "__main__":
    main()
