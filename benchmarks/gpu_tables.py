"""The model for tables on a GPU: Covertype, 50,000 rows, ten million rows.

Needs a CUDA device and torch; the package need not be installed::

    PYTHONPATH=src python3 -m benchmarks.gpu_tables covertype --data folder --out gpu_tables.jsonl
    PYTHONPATH=src python3 -m benchmarks.gpu_tables smooth --rows 50000 10000000

``--device none`` computes the same with NumPy; ``--profile`` prints where the time goes. The case
"peers" fits CatBoost and LightGBM with their defaults to the same rows of Covertype.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lssvm import FixedSizeLSSVR, LSSVMClassifier, LSSVMRegressor

TEST_ROWS = 50_000


def covertype_rows(folder: Path) -> tuple[Any, Any, Any, Any]:
    """Return inputs, classes, and the numbers of training and test rows."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(folder / "ftc.parquet")
    columns = [name for name in table.column_names if name != "target"]
    X = np.column_stack([table[name].to_numpy() for name in columns]).astype(float)
    order = np.random.default_rng(0).permutation(len(X))
    return X, table["target"].to_numpy(), order[TEST_ROWS:], order[:TEST_ROWS]


def peers(args: argparse.Namespace, name: str) -> dict[str, Any]:
    """Fit a peer with its defaults to the same rows."""
    X, y, train, test = covertype_rows(args.data)
    model: Any
    if name == "catboost":
        from catboost import CatBoostClassifier

        model = CatBoostClassifier(verbose=0, allow_writing_files=False)
    else:
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(verbose=-1)
    began = time.perf_counter()
    model.fit(X[train], y[train])
    fitted = time.perf_counter()
    error = 100.0 * float(np.mean(np.ravel(model.predict(X[test])) != y[test]))
    return {"case": f"covertype, {name}", "rows": len(train), "error": error} | {
        "fit_s": fitted - began,
        "predict_s": time.perf_counter() - fitted,
    }


def covertype(args: argparse.Namespace) -> dict[str, Any]:
    """Fit all seven classes of Covertype with default settings; 50,000 random rows are held out."""
    X, y, train, test = covertype_rows(args.data)
    model = LSSVMClassifier(args.preset, device=args.device, verbose=1)
    began = time.perf_counter()
    model.fit(X[train], y[train])
    fitted = time.perf_counter()
    error = 100.0 * float(np.mean(model.predict(X[test]) != y[test]))
    return {
        "case": "covertype",
        "rows": len(train),
        "features": X.shape[1],
        "error": error,
        "best_score": float(model.best_score_),
        "fit_s": fitted - began,
        "predict_s": time.perf_counter() - fitted,
        "leaf_size": model.leaf_size_,
        "summary": model.summary_,
    }


def smooth(n: int, seed: int) -> tuple[Any, Any]:
    """Return 28 columns and a target that is smooth in eight of them, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 28))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + np.abs(X[:, 2]) + X[:, 3] * X[:, 4]
    y += np.cos(3 * X[:, 5]) + (X[:, 6] > 0) * X[:, 7] + 0.3 * rng.normal(size=n)
    return X, y


def of_size(n: int, args: argparse.Namespace) -> dict[str, Any]:
    """Fit a smooth target of n rows, compared with 500 prototypes of the same rows."""
    X, y = smooth(n, 0)
    new, truth = smooth(TEST_ROWS, 1)
    model = LSSVMRegressor(args.preset, device=args.device, verbose=1)
    began = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    spread = float(np.var(truth))
    error = 100.0 * float(np.mean((model.predict(new) - truth) ** 2)) / spread
    predicted = time.perf_counter()
    peer = FixedSizeLSSVR(500, selection="renyi", device=args.device).fit(X, y)
    done = time.perf_counter()
    return {
        "case": "smooth",
        "rows": n,
        "features": X.shape[1],
        "error": error,
        "fit_s": fitted - began,
        "predict_s": predicted - fitted,
        "leaf_size": model.leaf_size_,
        "summary": model.summary_,
        "prototypes_error": 100.0 * float(np.mean((peer.predict(new) - truth) ** 2)) / spread,
        "prototypes_fit_s": done - predicted,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="+", choices=["covertype", "smooth", "peers"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000])
    parser.add_argument("--preset", default="balanced")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    args.device = None if args.device == "none" else args.device
    if args.device is not None:
        import torch

        torch.zeros(1, device=args.device)  # the start of the device is not measured
    profile = cProfile.Profile()
    for case in args.cases:
        runs: dict[str, list[Callable[[], dict[str, Any]]]] = {
            "covertype": [partial(covertype, args)],
            "smooth": [partial(of_size, n, args) for n in args.rows],
            "peers": [partial(peers, args, name) for name in ("catboost", "lightgbm")],
        }
        for run in runs[case]:
            if args.profile:
                profile.enable()
            record = run() | {"preset": args.preset, "device": args.device}
            profile.disable()
            record["peak_GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(json.dumps(record, indent=1), flush=True)
            if args.out is not None:
                with args.out.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    if args.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(28)


if __name__ == "__main__":
    main()
