"""Coverage and width of intervals, and calibration of probabilities, beside peers.

Intervals: 20 random splits of every regression set; LSSVR and FixedSizeLSSVR beside
scikit-learn's Gaussian process and `neo-ls-svm` (where it is installed), all on the same rows.
Probabilities: Adult and Magic, 3 splits; FixedSizeLSSVC beside `CalibratedClassifierCV` around
the same model. Times are seconds of processor time, since a run may share its machine. Results
are appended as they come; a rerun skips what is there::

    python -m benchmarks.uncertainty --data DIR
    python -m benchmarks.uncertainty --data DIR --sets bho --splits 2      # a short run
    python -m benchmarks.uncertainty --table                               # only the tables
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics import brier_score_loss, log_loss

from benchmarks.study import records
from benchmarks.tables_uncertainty import write_tables
from lssvm import LSSVR, FixedSizeLSSVC, FixedSizeLSSVR
from lssvm.codes import Coding

REGRESSION = ("diabetes", "bho", "ccs", "kin8nm", "bike_hour", "protein", "santafe_a")
CLASSIFICATION = ("adu", "mgt")
SMALL, LARGE, TEST = 400, 4000, 1000  # rows
COVERAGES = (0.9, 0.95)
PROTOTYPES = 300
N_CLASSIFIED = 3  # splits of the classification sets; the first is the official one


def load_regression(folder: Path, name: str) -> tuple[Any, Any]:
    """Return X (n, d) and y (n,) of a regression set."""
    if name == "diabetes":
        return load_diabetes(return_X_y=True)
    import pandas as pd

    frame = pd.read_parquet(folder / f"{name}.parquet")
    y = frame.pop("target").to_numpy(dtype=float)
    if name == "santafe_a":  # the next value from the last 20, on the first 3,000 points
        series, lags = y[:3000], 20
        return np.lib.stride_tricks.sliding_window_view(series, lags)[:-1], series[lags:]
    frame = frame.drop(columns=[c for c in ("split", "instant", "dteday") if c in frame])
    if name == "bike_hour":  # hour 23 is next to hour 0
        hour = frame.pop("hr").to_numpy(dtype=float) * np.pi / 12.0
        frame = frame.assign(sin=np.sin(hour), cos=np.cos(hour))
    return frame.to_numpy(dtype=float), y


def load_classification(folder: Path, name: str, split: int) -> tuple[Any, Any, Any, Any]:
    """Return X_train, y_train, X_test, y_test: complete rows, strings as indicators."""
    import pandas as pd

    frame = pd.read_parquet(folder / f"{name}.parquet")
    frame = frame[~(frame.isna() | frame.eq("?")).any(axis=1)]
    y = np.unique(frame.pop("target").to_numpy().astype(str), return_inverse=True)[1]
    given = frame.pop("split").to_numpy() if "split" in frame else None
    X = pd.get_dummies(frame, dtype=float).to_numpy(dtype=float)
    if given is not None and split == 0:
        train, test = np.flatnonzero(given == "train"), np.flatnonzero(given == "test")
    else:
        order = np.random.default_rng(split).permutation(len(y))
        train, test = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]
    X_train, X_test = standardise(X[train], X[test])
    return X_train, y[train], X_test, y[test]


def standardise(train: Any, test: Any) -> tuple[Any, Any]:
    """Scale both by the mean and spread of the training rows."""
    mean, spread = train.mean(axis=0), train.std(axis=0)
    spread[spread == 0] = 1.0
    return (train - mean) / spread, (test - mean) / spread


def conformal(make: Callable[[], Any]) -> Callable[..., Any]:
    """Return a method that fits a model of ours and asks for its intervals."""

    def run(X: Any, y: Any, new: Any) -> Any:
        model = make().fit(X, y)
        return model.predict(new), [model.predict_interval(new, c) for c in COVERAGES]

    return run


def gaussian_process(X: Any, y: Any, new: Any) -> Any:
    """Fit scikit-learn's process by its evidence; the noise is part of its kernel."""
    from scipy.stats import norm

    kernel = ConstantKernel() * RBF(np.sqrt(X.shape[1])) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)
    mean, std = model.predict(new, return_std=True)
    ends = [norm.ppf(0.5 + c / 2.0) for c in COVERAGES]
    return mean, [np.column_stack([mean - z * std, mean + z * std]) for z in ends]


def neo(X: Any, y: Any, new: Any) -> Any:
    """Fit `neo-ls-svm` as it comes."""
    from neo_ls_svm import NeoLSSVM

    model = NeoLSSVM().fit(X, y)
    ends = [np.asarray(model.predict_interval(new, coverage=c)) for c in COVERAGES]
    return np.asarray(model.predict(new)), ends


INTERVALS: dict[str, tuple[int, Callable[..., Any]]] = {
    "LSSVR": (SMALL, conformal(lambda: LSSVR("cv", gamma="cv"))),
    "FixedSizeLSSVR": (SMALL, conformal(lambda: FixedSizeLSSVR(selection="renyi"))),
    "GaussianProcessRegressor": (SMALL, gaussian_process),
    "neo-ls-svm": (SMALL, neo),
    "FixedSizeLSSVR, 4000 rows": (LARGE, conformal(lambda: FixedSizeLSSVR(selection="renyi"))),
}


def intervals(folder: Path, name: str, split: int, method: str) -> dict[str, Any] | None:
    """Return coverage and width of one method on one split; None where rows are too few."""
    X, y = load_regression(folder, name)
    size, run = INTERVALS[method]
    if size == LARGE and len(y) < LARGE + 1000:
        return None
    order = np.random.default_rng(split).permutation(len(y))
    n = min(size, int(0.8 * len(y)))
    train, test = order[:n], order[n : n + TEST]
    A, B = standardise(X[train], X[test])
    start = time.process_time()
    mean, ends = run(A, y[train], B)
    seconds = time.process_time() - start
    spread, truth = float(y.std()), y[test]
    out = {
        "n": n,
        "seconds": seconds,
        "rmse": float(np.sqrt(np.mean((truth - mean) ** 2))) / spread,
    }
    for c, pair in zip(COVERAGES, ends, strict=True):
        low, high = pair[:, 0], pair[:, 1]
        out[f"coverage_{c:g}"] = float(np.mean((low <= truth) & (truth <= high)))
        out[f"width_{c:g}"] = float(np.mean(high - low)) / spread
        miss = np.maximum(low - truth, 0.0) + np.maximum(truth - high, 0.0)
        out[f"score_{c:g}"] = float(np.mean(high - low + 2.0 / (1.0 - c) * miss)) / spread
    return out


def calibration_error(p: Any, y: Any, bins: int = 15) -> float:
    """Return the expected calibration error of P(class 1) over bins of equal width."""
    place = np.minimum((p * bins).astype(int), bins - 1)
    gap = np.bincount(place, p - y, minlength=bins)
    return float(np.sum(np.abs(gap)) / len(y))


def model(calibration: str | None = "auto") -> FixedSizeLSSVC:
    """Return the classifier of the comparison."""
    return FixedSizeLSSVC(PROTOTYPES, selection="renyi", multiclass=Coding(calibration=calibration))


PROBABILITIES: dict[str, Callable[[], Any]] = {
    "fit without probabilities": lambda: model(None),
    "FixedSizeLSSVC": model,
    "FixedSizeLSSVC, sigmoid": lambda: model("sigmoid"),
    "CalibratedClassifierCV, sigmoid": lambda: CalibratedClassifierCV(model(None), cv=5),
    "CalibratedClassifierCV, isotonic": lambda: CalibratedClassifierCV(
        model(None), method="isotonic", cv=5
    ),
    "CalibratedClassifierCV, sigmoid, no ensemble": lambda: CalibratedClassifierCV(
        model(None), cv=5, ensemble=False
    ),
    "CalibratedClassifierCV, isotonic, no ensemble": lambda: CalibratedClassifierCV(
        model(None), method="isotonic", cv=5, ensemble=False
    ),
}


def probabilities(folder: Path, name: str, split: int, method: str) -> dict[str, Any]:
    """Return losses, calibration error and times of one method."""
    X, y, new, truth = load_classification(folder, name, split)
    start = time.process_time()
    fitted = PROBABILITIES[method]().fit(X, y)
    middle = time.process_time()
    out: dict[str, Any] = {"n": len(y), "fit": middle - start}
    if not hasattr(fitted, "predict_proba"):
        fitted.predict(new)
        return out | {"predict": time.process_time() - middle}
    P = fitted.predict_proba(new)
    out["predict"] = time.process_time() - middle
    out |= {
        "log_loss": log_loss(truth, P),
        "brier": brier_score_loss(truth, P[:, 1]),
        "ece": calibration_error(P[:, 1], truth),
        "accuracy": float(np.mean(P.argmax(axis=1) == truth)),
    }
    if hasattr(fitted, "predict_set"):
        for c in COVERAGES:
            sets = fitted.predict_set(new, c)
            out[f"set_coverage_{c:g}"] = float(np.mean(sets[np.arange(len(truth)), truth]))
            out[f"set_size_{c:g}"] = float(sets.sum(axis=1).mean())
    return out


def describe() -> dict[str, Any]:
    """Return what the numbers depend on besides the code."""
    versions = {}
    for package in ("numpy", "scipy", "scikit-learn", "neo-ls-svm"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "versions": versions,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the Parquet files")
    parser.add_argument("--sets", default=",".join((*REGRESSION, *CLASSIFICATION)))
    parser.add_argument("--methods", default="", help="separated by semicolons; all by default")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/uncertainty.jsonl"))
    parser.add_argument("--table", action="store_true", help="only write the tables")
    options = parser.parse_args()
    if not options.table:
        run(options)
    write_tables(options.out)


def run(options: argparse.Namespace) -> None:
    records.repair(options.out)
    done = records.read(options.out)
    records.append(options.out, {"run": describe()})
    chosen = [m for m in options.methods.split(";") if m]
    for split in range(options.splits):
        for name in options.sets.split(","):
            regression = name in REGRESSION
            if not regression and split >= N_CLASSIFIED:
                continue
            measure = intervals if regression else probabilities
            for method in INTERVALS if regression else PROBABILITIES:
                if (name, split, method) in done or (chosen and method not in chosen):
                    continue
                if method.startswith("neo") and not installed("neo-ls-svm"):
                    continue
                result = measure(options.data, name, split, method)
                if result is not None:
                    key = {"set": name, "randomisation": split, "method": method}
                    records.append(options.out, key | result)
                    print(name, split, method, result, flush=True)


def installed(package: str) -> bool:
    """Say whether a peer is there."""
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    main()
