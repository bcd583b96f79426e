"""What a reduction adds to a tuned fit, and what it saves in prediction.

Every figure is a ratio of two times measured in the same run; the sides take turns and the smallest
time of each counts. Processor time (all threads together) is given beside wall time, because it
does not depend on what else the machine does. Run with::

    python -m benchmarks.reduction_speed --out benchmarks/results/reduction_speed.json
    python -m benchmarks.reduction_speed regression --scale 0.1 --repeats 1
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.fixed_size_speed import make_data
from lssvm import FixedSizeLSSVC, FixedSizeLSSVR
from lssvm._core.blocks import n_threads
from lssvm.reductions import FixedSizeL0

OUTPUT = Path("benchmarks/results/reduction_speed.json")


def best_of(repeats: int, *sides: Callable[[], Any]) -> tuple[list[float], list[float]]:
    """Return the smallest wall and processor time of each side, the sides taking turns."""
    wall: list[list[float]] = [[] for _ in sides]
    processor: list[list[float]] = [[] for _ in sides]
    for _ in range(repeats):
        for i, side in enumerate(sides):
            start, begin = time.perf_counter(), time.process_time()
            side()
            wall[i].append(time.perf_counter() - start)
            processor[i].append(time.process_time() - begin)
    return [min(times) for times in wall], [min(times) for times in processor]


def models(kind: str, m: int, threads: int) -> dict[str, Any]:
    """Return the tuned estimators: without a reduction, and with each."""
    make = FixedSizeLSSVR if kind == "regression" else FixedSizeLSSVC
    return {
        str(reduction): make(m, reduction=reduction, n_jobs=threads, selection="random")
        for reduction in (None, "spfs", "sv-l0", "ssd")
    }


def fit_case(kind: str, n: int, d: int, m: int, repeats: int, threads: int) -> dict[str, Any]:
    """Time a tuned fit without and with reductions."""
    X, Y = make_data(n, d)
    y = Y[:, 0] if kind == "regression" else (Y[:, 0] > 0).astype(int)
    fitted = models(kind, m, threads)
    sides = [lambda model=model: model.fit(X, y) for model in fitted.values()]
    wall, processor = best_of(repeats, *sides)
    return {
        "n": n,
        "m": m,
        "support": {name: len(model.support_) for name, model in fitted.items()},
        "wall_seconds": dict(zip(fitted, wall, strict=True)),
        "processor_seconds": dict(zip(fitted, processor, strict=True)),
        "wall_ratios": {name: t / wall[0] for name, t in zip(fitted, wall, strict=True)},
        "ratios": {name: t / processor[0] for name, t in zip(fitted, processor, strict=True)},
        "wanted": "<= 1.1",
    }


def predict_case(n: int, d: int, m: int, repeats: int, threads: int) -> dict[str, Any]:
    """Time predictions with m' of m support vectors."""
    X, Y = make_data(n, d)
    settings = {"C": 10.0, "gamma": 1.0 / d, "selection": "random", "n_jobs": threads}
    train, target = X[:20_000], Y[:20_000, 0]
    whole = FixedSizeLSSVR(m, **settings).fit(train, target)
    out = []
    for part in (m // 2, m // 5, m // 10):
        small = FixedSizeLSSVR(m, reduction=FixedSizeL0("spfs", size=part), **settings).fit(
            train, target
        )
        wall, processor = best_of(repeats, lambda: whole.predict(X), lambda s=small: s.predict(X))
        out.append(
            {
                "support": part,
                "wall_seconds": wall,
                "processor_seconds": processor,
                "of_proportion_wall": wall[0] / wall[1] / (m / part),
                "of_proportion": processor[0] / processor[1] / (m / part),
            }
        )
    return {"n": n, "m": m, "sizes": out, "wanted": "of_proportion >= 0.7"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = ("regression", "classification", "predict")
    parser.add_argument("cases", nargs="*", default=names, help=f"any of {names}")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--out", type=Path, default=None, help="file for the results, JSON")
    options = parser.parse_args()
    threads, n = n_threads(options.threads), int(100_000 * options.scale)
    results: dict[str, Any] = {
        "machine": platform.platform(),
        "processor": platform.processor(),
        "threads": threads,
        "scale": options.scale,
        "date": time.strftime("%Y-%m-%d"),
    }
    for name in options.cases:
        if name == "predict":
            results[name] = predict_case(n, 10, 500, options.repeats, threads)
        else:
            results[name] = fit_case(name, n, 10, 500, options.repeats, threads)
        print(name, json.dumps(results[name]), flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
