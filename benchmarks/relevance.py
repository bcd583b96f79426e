"""One gamma per feature and learned metrics beside one gamma; robust losses beside the squared one.

Relevance: ten data sets, several random splits, ``gamma="ard"`` and a ``MetricKernel``, diagonal
and full, compared with ``gamma="cv"`` for the dual and the fixed-size model, on the same rows; the
part "larger" does so for the dual model with 1,500 training rows. Robust: every regression set with
20 % of its training targets replaced by gross outliers, each loss beside the squared loss on the
same rows with and without the outliers. Times are seconds of processor time. Results are appended
as they come; a rerun skips what is there::

    python -m benchmarks.relevance --data DIR
    python -m benchmarks.relevance --data DIR --sets bho --seeds 1 --parts relevance   # a short run
    python -m benchmarks.relevance --table                                             # the tables
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.study import records
from benchmarks.study.frames import Drawn, draw, load
from benchmarks.tables_relevance import write_tables
from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR
from lssvm.kernels import MetricKernel

REGRESSION = ("bho", "ccs", "kin8nm", "bike_hour", "protein")
CLASSIFICATION = ("mgt", "rae_image", "rae_german", "thy", "veh")
N_TRAIN, N_TEST, PROTOTYPES = 300, 1000, 100
N_LARGER = 1500
WAYS = ("cv", "ard", "diagonal", "full")
LOSSES = ("huber", "absolute", "weighted")
SHARE, SIZE = 0.2, (5.0, 15.0)  # outliers: part of the rows, distance in standard deviations


def relevance_methods(regression: bool) -> dict[str, Callable[[], Any]]:
    """Return the estimators that are compared, by name."""
    dual, fixed = (LSSVR, FixedSizeLSSVR) if regression else (LSSVC, FixedSizeLSSVC)
    methods: dict[str, Callable[[], Any]] = {}
    for word in WAYS:
        use = {"gamma": "ard" if word == "ard" else "cv", "n_jobs": 1}
        use |= {} if word in ("cv", "ard") else {"kernel": MetricKernel("rbf", word)}
        methods[f"dual {word}"] = lambda use=use: dual("cv", **use)
        methods[f"fixed {word}"] = lambda use=use: fixed(PROTOTYPES, selection="renyi", **use)
    return methods


def robust_methods() -> dict[str, tuple[Callable[[], Any], bool]]:
    """Return the estimators that are compared, and whether they see outliers, by name."""
    makers: dict[str, Callable[[str], Any]] = {
        "dual": lambda loss: LSSVR("cv", gamma="cv", loss=loss, n_jobs=1),
        "fixed": lambda loss: FixedSizeLSSVR(PROTOTYPES, selection="renyi", loss=loss, n_jobs=1),
    }
    methods: dict[str, tuple[Callable[[], Any], bool]] = {}
    for name, make in makers.items():
        methods[f"{name} clean"] = (lambda make=make: make("squared"), False)
        for loss in ("squared", *LOSSES):
            methods[f"{name} {loss}"] = (lambda make=make, loss=loss: make(loss), True)
    return methods


def spoil(y: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Move a part of the targets up, by 5 to 15 of their standard deviations."""
    rng = np.random.default_rng(1000 + seed)
    rows = rng.permutation(len(y))[: int(SHARE * len(y))]
    out = y.copy()
    out[rows] += y.std() * rng.uniform(*SIZE, size=len(rows))
    return out


def measure(model: Any, data: Drawn, y: NDArray[Any], regression: bool) -> dict[str, Any]:
    """Fit and return the test error: root mean square in units of the spread, or the error rate."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.X_train, y)
    seconds = time.process_time() - start
    predicted = model.predict(data.X_test)
    if regression:
        difference = predicted - data.y_test
        error = float(np.sqrt(np.mean(difference**2)) / data.y_test.std())
    else:
        error = float(np.mean(predicted != data.y_test))
    shares = getattr(model, "feature_relevance_", None)
    record: dict[str, Any] = {"error": error, "seconds": seconds}
    if shares is not None:
        record |= {"shares": np.round(shares, 3).tolist(), "kept": bool(np.ndim(model.gamma_) == 1)}
    return record


def run(options: argparse.Namespace) -> None:
    """Measure what is not in the file yet."""
    records.repair(options.out)
    done = records.read(options.out)
    versions = {name: importlib.metadata.version(name) for name in ("numpy", "scipy")}
    head = {"versions": versions, "python": platform.python_version(), "cores": os.cpu_count()}
    records.append(options.out, {"run": head})
    for seed in range(options.seeds):
        for name in options.sets:
            regression = name in REGRESSION
            rows = load(options.data, name, regression=regression)
            small, larger = (draw(rows, seed, n, N_TEST) for n in (N_TRAIN, N_LARGER))
            todo: dict[str, tuple[Callable[[], Any], Drawn, Any, str]] = {}
            for key, make in relevance_methods(regression).items():
                if "relevance" in options.parts:
                    todo[key] = (make, small, small.y_train, "relevance")
                if "larger" in options.parts and key.startswith("dual"):
                    todo[f"larger {key}"] = (make, larger, larger.y_train, "relevance")
            if "robust" in options.parts and regression:
                spoiled = spoil(small.y_train, seed)
                for key, (make, outliers) in robust_methods().items():
                    y = spoiled if outliers else small.y_train
                    todo[f"robust {key}"] = (make, small, y, "robust")
            for key, (make, data, y, part) in todo.items():
                if (name, seed, key) in done:
                    continue
                record = {"set": name, "randomisation": seed, "method": key, "part": part}
                record |= {"n": len(data.y_train), "d": data.X_train.shape[1]}
                records.append(options.out, record | measure(make(), data, y, regression))


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of Parquet files")
    parser.add_argument("--sets", type=lambda s: s.split(","), default=REGRESSION + CLASSIFICATION)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--parts", type=lambda s: s.split(","), default=["relevance", "robust"])
    parser.add_argument("--table", action="store_true", help="only write the tables")
    results = Path(__file__).parent / "results" / "relevance.jsonl"
    parser.add_argument("--out", type=Path, default=results)
    options = parser.parse_args()
    if not options.table:
        if options.data is None:
            parser.error("--data is needed: the folder of the Parquet files")
        run(options)
    write_tables(options.out)


if __name__ == "__main__":
    main()
