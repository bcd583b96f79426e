"""The Santa Fe laser of [Suykens2002, figure 3.6]: free runs of 100 steps and their intervals.

Every model is trained on 1,000 values and forecasts the 100 that follow; nothing is chosen on what
follows. The first origin is that of the figure and of the competition. Run with::

    python -m benchmarks.santa_fe --data folder                    # 20 origins: about 15 minutes
    python -m benchmarks.santa_fe --data folder --origins 1000     # the figure only

``folder`` holds ``santafe_a.parquet`` with the columns ``t`` and ``target``. Measurements are
appended to ``benchmarks/results/santa_fe.jsonl``; what is there is not measured again. The tables
are written beside it as Markdown.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from lssvm import LSSVR, NARX

TRAIN, STEPS, LAGS = 1000, 100, 50
ORIGINS = tuple(range(1000, 9931, 470))  # 20
COVERAGES = (0.8, 0.9, 0.95)
RESULTS = Path(__file__).parent / "results" / "santa_fe.jsonl"


def kernel_ridge() -> Any:
    """Return scikit-learn's kernel ridge regression on a grid, 10-fold cross-validation."""
    grid = {"alpha": np.geomspace(1e-6, 1.0, 13), "gamma": np.geomspace(2e-3, 0.5, 9)}
    return GridSearchCV(
        KernelRidge(kernel="rbf"), grid, cv=10, scoring="neg_mean_squared_error", n_jobs=1
    )


METHODS: dict[str, Callable[[], NARX]] = {
    "free-run": lambda: NARX(lags=LAGS),
    "rolling-origin": lambda: NARX(lags=LAGS, validation="rolling-origin"),
    "one-step": lambda: NARX(lags=LAGS, validation="one-step"),
    "one-step, leave-one-out": lambda: NARX(
        LSSVR("cv", gamma="cv", cv="loo"), lags=LAGS, validation="one-step"
    ),
    "one-step, 51 lags": lambda: NARX(lags=LAGS + 1, validation="one-step"),
    "free-run, 51 lags": lambda: NARX(lags=LAGS + 1),
    "scikit-learn KernelRidge": lambda: NARX(kernel_ridge(), lags=LAGS),
}
ONCE = "free-run, trained once"  # before the first origin; later origins are its history
WITH_INTERVALS = ("free-run", ONCE)


def measure(y: Any, origin: int, method: str, models: dict[str, NARX]) -> dict[str, Any]:
    """Train before an origin and forecast what follows."""
    first = ORIGINS[0] if method == ONCE else origin
    train, truth = y[first - TRAIN : first], y[origin : origin + STEPS]
    start = time.process_time()
    if method == ONCE:
        model = models.get(ONCE) or METHODS["free-run"]().fit(train)
        models[ONCE] = model
    else:
        model = METHODS[method]().fit(train)
    fitted = time.process_time()
    forecast = model.forecast(STEPS, history=y[origin - TRAIN : origin])
    inner = getattr(model.estimator_, "best_estimator_", model.estimator_)
    record: dict[str, Any] = {
        "origin": origin,
        "method": method,
        "nmse": float(((forecast - truth) ** 2).mean() / truth.var()),
        "C": float(getattr(inner, "C_", 1.0 / getattr(inner, "alpha", 1.0))),
        "gamma": float(getattr(inner, "gamma_", getattr(inner, "gamma", np.nan))),
        "cpu_seconds": round(fitted - start, 2),
    }
    if method in WITH_INTERVALS:
        for coverage in COVERAGES:
            _, ends = model.forecast(
                STEPS, None, True, coverage, history=y[origin - TRAIN : origin]
            )
            inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
            record[f"inside_{coverage}"] = float(inside.mean())
            record[f"width_{coverage}"] = float(np.diff(ends).mean() / train.std())
        record["interval_cpu_seconds"] = round(time.process_time() - fitted, 2)
    return record


def tables(records: list[dict[str, Any]]) -> str:
    """Return the measurements as Markdown."""
    lines = [
        "# Santa Fe laser: 1,000 training values, free runs of 100 steps",
        "",
        "`python -m benchmarks.santa_fe`. NMSE is the mean squared error divided by the variance",
        "of the 100 values; CPU seconds are those of tuning and fitting.",
        "",
        "| tuned by | NMSE at 1,000 (figure 3.6) | C | gamma | origins | median NMSE "
        "| mean of min(NMSE, 2) | worst | better than free-run at | CPU s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    ours = {r["origin"]: r["nmse"] for r in records if r["method"] == "free-run"}
    for method in (*METHODS, ONCE):
        own = [r for r in records if r["method"] == method]
        if not own:
            continue
        nmse = np.array([r["nmse"] for r in own])
        first = [r for r in own if r["origin"] == ORIGINS[0]]
        head = (
            f"{first[0]['nmse']:.3f} | {first[0]['C']:.3g} | {first[0]['gamma']:.3g}"
            if first
            else "- | - | -"
        )
        seconds = np.mean([r["cpu_seconds"] for r in own])
        shared = [r for r in own if method != "free-run" and r["origin"] in ours]
        wins = sum(r["nmse"] < ours[r["origin"]] for r in shared)
        better = f"{wins} of {len(shared)}" if shared else "-"
        lines.append(
            f"| {method} | {head} | {len(own)} | {np.median(nmse):.3f} | "
            f"{np.minimum(nmse, 2).mean():.3f} | {nmse.max():.2f} | {better} | {seconds:.1f} |"
        )
    for method in WITH_INTERVALS:
        lines += interval_table(method, [r for r in records if r["method"] == method])
    return "\n".join(lines) + "\n"


def interval_table(method: str, records: list[dict[str, Any]]) -> list[str]:
    """Return how often intervals contain the truth, over all origins."""
    count = len(records)
    if count == 0:
        return []
    lines = [
        "",
        f"## Intervals, {method}: {count} origins x {STEPS} steps",
        "",
        "| stated coverage | inside | lowest origin | origins below | mean width / std of series |",
        "| --- | --- | --- | --- | --- |",
    ]
    for coverage in COVERAGES:
        inside = np.array([r[f"inside_{coverage}"] for r in records])
        width = np.mean([r[f"width_{coverage}"] for r in records])
        lines.append(
            f"| {coverage:.0%} | {inside.mean():.1%} | {inside.min():.0%} | "
            f"{np.count_nonzero(inside < coverage)} of {count} | {width:.2f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with santafe_a.parquet")
    parser.add_argument("--origins", default=",".join(map(str, ORIGINS)))
    parser.add_argument(
        "--methods", default=";".join((*METHODS, ONCE)), help="separated by semicolons"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    import pandas as pd

    frame = pd.read_parquet(options.data / "santafe_a.parquet").sort_values("t")
    y = frame["target"].to_numpy(dtype=float)
    records = []
    if options.out.exists():
        lines = options.out.read_text(encoding="utf-8").splitlines()
        records = [json.loads(line) for line in lines]
    done = {(r["origin"], r["method"]) for r in records}
    models: dict[str, NARX] = {}
    for method in options.methods.split(";"):
        for origin in map(int, options.origins.split(",")):
            if (origin, method) in done:
                continue
            records.append(measure(y, origin, method, models))
            print(json.dumps(records[-1]), flush=True)
            with options.out.open("a", encoding="utf-8") as handle:
                handle.write(json.dumps(records[-1]) + "\n")
    records.sort(key=lambda r: (r["method"], r["origin"]))
    options.out.with_suffix(".md").write_text(tables(records), encoding="utf-8")


if __name__ == "__main__":
    main()
