"""The fixed-size classifier compared with the fastest peers, both sides in one run.

Cases::

    adult   a tuned fit (m = 500) against one untuned fit of scikit-learn-intelex's SVC
    magic   a tuned fit (m = 1,000) against a 10 x 10 GridSearchCV of that SVC
    neo     tuned fits against neo-ls-svm on binary data sets, accuracy and time

Needs ``pip install scikit-learn-intelex neo-ls-svm``. Run with::

    python -m benchmarks.peers --data DIR [adult] [magic] [neo] --out benchmarks/results/peers.json

``--points`` cells of the 10 x 10 grid are timed (drawn so that every C and every gamma comes
equally often) and the time of all 100 is taken from them in proportion; 100 runs them all.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import cross_val_score

from benchmarks.study.data_2010 import load_2010, split_2010
from lssvm import FixedSizeLSSVC

NEO_SETS = ("acr", "bld", "gcr", "hea", "ion", "pid", "snr", "ttt", "wbc", "spa", "mgt", "adu")


def timed(model: Any, X: Any, y: Any) -> float:
    """Return the seconds that a fit takes."""
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def percent(model: Any, X: Any, y: Any) -> float:
    """Return the test accuracy in per cent."""
    return 100.0 * float(np.mean(np.asarray(model.predict(X)) == y))


def adult_case(data: Path, repeats: int) -> dict[str, Any]:
    """Adult: tuned against one untuned fit."""
    from sklearnex.svm import SVC

    part = split_2010(load_2010(data, "adu"), 0)
    ours, theirs = [], []
    for _ in range(repeats):
        model, peer = FixedSizeLSSVC(500, selection="renyi", random_state=0), SVC()
        ours.append(timed(model, part.X_train, part.y_train))
        theirs.append(timed(peer, part.X_train, part.y_train))
    return {
        "rows": len(part.y_train),
        "ours_tuned_s": min(ours),
        "svc_untuned_s": min(theirs),
        "ours_accuracy": percent(model, part.X_test, part.y_test),
        "svc_accuracy": percent(peer, part.X_test, part.y_test),
        "ratio": min(theirs) / min(ours),
        "wanted": "> 1, at better accuracy",
    }


def magic_case(data: Path, repeats: int, points: int) -> dict[str, Any]:
    """Magic: tuned against a grid search."""
    from sklearnex.svm import SVC

    part = split_2010(load_2010(data, "mgt"), 0)
    d = part.X_train.shape[1]
    grid_C, grid_gamma = np.geomspace(1e-2, 1e4, 10), np.geomspace(1e-2, 10.0, 10) / d
    ours = []
    for _ in range(repeats):
        model = FixedSizeLSSVC(1000, selection="renyi", random_state=0)
        ours.append(timed(model, part.X_train, part.y_train))
    # Diagonals of the grid: every ten cells hold each C and each gamma once.
    cells = [(i, (i + shift) % 10) for shift in (0, 5, 2, 7, 1, 3, 4, 6, 8, 9) for i in range(10)]
    best, seconds = (-np.inf, 0.0, 0.0), 0.0
    for i, j in cells[:points]:
        start = time.perf_counter()
        scores = cross_val_score(
            SVC(C=grid_C[i], gamma=grid_gamma[j]), part.X_train, part.y_train, cv=5
        )
        seconds += time.perf_counter() - start
        best = max(best, (float(scores.mean()), float(grid_C[i]), float(grid_gamma[j])))
    peer = SVC(C=best[1], gamma=best[2])
    final = timed(peer, part.X_train, part.y_train)
    whole = seconds * 100 / points + final
    return {
        "rows": len(part.y_train),
        "ours_tuned_s": min(ours),
        "cells_timed": points,
        "grid_search_s": whole,
        "ours_accuracy": percent(model, part.X_test, part.y_test),
        "svc_accuracy": percent(peer, part.X_test, part.y_test),
        "ratio": whole / min(ours),
        "wanted": ">= 20",
    }


def neo_case(data: Path, seeds: int) -> dict[str, Any]:
    """Binary sets: accuracy and time of both, averaged over random splits of 2/3 and 1/3."""
    from neo_ls_svm import NeoLSSVM

    rows = []
    for name in NEO_SETS:
        found: dict[str, list[float]] = {"ours": [], "neo": [], "ours_s": [], "neo_s": []}
        for seed in range(seeds if name != "adu" else 1):
            X_train, y_train, X_test, y_test = _split(data, name, seed)
            # Both as they come, each with its own default size.
            for key, model in (
                ("ours", FixedSizeLSSVC(selection="renyi", random_state=seed)),
                ("neo", NeoLSSVM(random_state=seed)),
            ):
                found[f"{key}_s"].append(timed(model, X_train, y_train))
                found[key].append(percent(model, X_test, y_test))
        rows.append({"set": name, "rows": len(y_train)} | {k: _mean(v) for k, v in found.items()})
    return {
        "sets": rows,
        "better": sum(r["ours"] > r["neo"] for r in rows),
        "better_in_no_more_time": sum(
            r["ours"] > r["neo"] and r["ours_s"] <= r["neo_s"] for r in rows
        ),
        "of": len(rows),
        "wanted": "better in no more time on most",
    }


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def _split(data: Path, name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """Return standardised parts of 2/3 and 1/3 of the rows."""
    import pandas as pd

    from benchmarks.study.data_2010 import encode_2010, standardised

    known = encode_2010(pd.read_parquet(data / f"{name}.parquet"), name)
    order = np.random.default_rng(seed).permutation(len(known.y))
    train, test = np.split(order, [2 * len(order) // 3])
    X_train, X_test = standardised(known.X[train], known.X[test], known.attribute)
    return X_train, known.y[train], X_test, known.y[test]


def main() -> None:
    """Run the cases and write their figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=["adult", "magic", "neo"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cases = {
        "adult": lambda: adult_case(options.data, options.repeats),
        "magic": lambda: magic_case(options.data, options.repeats, options.points),
        "neo": lambda: neo_case(options.data, options.seeds),
    }
    found: dict[str, Any] = {}
    if options.out and options.out.exists():
        found = json.loads(options.out.read_text())
    for name in options.cases:
        found[name] = cases[name]()
        print(name, json.dumps(found[name]), flush=True)
    found["machine"] = {"python": platform.python_version(), "machine": platform.machine()} | {
        peer: importlib.metadata.version(peer)
        for peer in ("scikit-learn", "scikit-learn-intelex", "neo-ls-svm")
    }
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
