r"""Error and time of the model for tables and of its peers, default settings, one split per seed.

Every record is one line of JSON: set, method, seed, error in per cent (regression: 100 (1 - R2)),
seconds of wall clock and of processor time for fit and predict. Records that the output file
already has are not computed again, so that a run can be broken off and taken up.

    python benchmarks/table_accuracy.py --data DIR --out results.jsonl --sets spa let \
        --methods table catboost
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

SETS = (
    "iri win snr hea bld ion bho bal acr wbc pid veh ttt gcr ccs cmc rae_image ims spa wav "
    "rae_banana opt lan kin8nm pen bike_hour mgt let protein adu shu"
).split()
REGRESSION = {"bho", "ccs", "kin8nm", "bike_hour", "protein"}
LEFT_OUT = {"split", "instant"}


def load(folder: Path, name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the columns and the target of a set, rows in the order of the file."""
    table = pd.read_parquet(folder / f"{name}.parquet")
    y = table.pop("target").to_numpy()
    table = table[[c for c in table.columns if c not in LEFT_OUT and table[c].nunique() > 1]]
    if "dteday" in table:
        days = pd.to_datetime(table["dteday"])
        table = table.assign(dteday=(days - days.min()).dt.days)
    return table, y


def numeric(train: pd.DataFrame, test: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers with missing ones filled by the median, categories one-hot, of both parts."""
    columns = []
    for name in train:
        a, b = train[name], test[name]
        if pd.api.types.is_numeric_dtype(a) and not isinstance(a.dtype, pd.CategoricalDtype):
            median = float(a.median())
            columns.append((a.fillna(median).to_numpy(float), b.fillna(median).to_numpy(float)))
            continue
        a, b = a.astype(str), b.astype(str)
        columns += [
            ((a == level).to_numpy(float), (b == level).to_numpy(float))
            for level in sorted(a.unique())
        ]
    A, B = (np.column_stack([pair[i] for pair in columns]) for i in (0, 1))
    return A, B


def peer(name: str, regression: bool, seed: int) -> Any:
    """Return an estimator with its default settings."""
    if name == "catboost":
        import catboost

        kind = catboost.CatBoostRegressor if regression else catboost.CatBoostClassifier
        return kind(verbose=0, random_seed=seed, thread_count=2, allow_writing_files=False)
    if name == "lightgbm":
        import lightgbm

        kind = lightgbm.LGBMRegressor if regression else lightgbm.LGBMClassifier
        return kind(verbose=-1, random_state=seed, n_jobs=2)
    if name == "histgb":
        from sklearn import ensemble

        kind = (
            ensemble.HistGradientBoostingRegressor
            if regression
            else ensemble.HistGradientBoostingClassifier
        )
        return kind(random_state=seed)
    if name.startswith("table"):
        from lssvm.estimators.table_classifier import LSSVMClassifier
        from lssvm.estimators.table_regressor import LSSVMRegressor

        preset = name.partition("-")[2] or "balanced"
        return (LSSVMRegressor if regression else LSSVMClassifier)(preset=preset, random_state=seed)
    raise SystemExit(f"method {name!r} is not known")


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    value = work()
    return value, time.perf_counter() - wall, time.process_time() - cpu


def measure(folder: Path, name: str, method: str, seed: int) -> dict[str, Any]:
    table, y = load(folder, name)
    regression = name in REGRESSION
    # Classes numbered in the order in which they appear: the split depends on it.
    codes = None if regression else pd.factorize(y)[0]
    a, b, ya, yb = train_test_split(table, y, test_size=1 / 3, random_state=seed, stratify=codes)
    frames = method.startswith("table") and "numeric" not in method
    A, B = (a, b) if frames else numeric(a, b)
    if not regression and not frames:
        classes = np.unique(y)
        ya, yb = np.searchsorted(classes, ya), np.searchsorted(classes, yb)
    model = peer(method, regression, seed)
    _, wall, cpu = timed(lambda: model.fit(A, ya))
    predicted, wall_p, cpu_p = timed(lambda: np.asarray(model.predict(B)).ravel())
    if regression:
        error = 100 * float(np.sum((yb - predicted) ** 2) / np.sum((yb - yb.mean()) ** 2))
    else:
        error = 100 * float(np.mean(yb != predicted))
    record = dict(set=name, method=method, seed=seed, n=len(ya), d=A.shape[1], error=error,
                  fit_s=wall, fit_cpu=cpu, predict_s=wall_p, predict_cpu=cpu_p)  # fmt: skip
    if hasattr(model, "summary_"):
        record["best_score"] = float(model.best_score_)
        record["summary"] = str(model.summary_)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--methods", nargs="*", default=["table"])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    asked = parser.parse_args()
    done = set()
    if asked.out.exists():
        for line in asked.out.read_text().splitlines():
            record = json.loads(line)
            done.add((record["set"], record["method"], record["seed"]))
    for seed in asked.seeds:
        for name in asked.sets:
            for method in asked.methods:
                if (name, method, seed) in done:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    record = measure(asked.data, name, method, seed)
                with asked.out.open("a") as out:
                    out.write(json.dumps(record) + "\n")
                shown = [
                    f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}"
                    for k, v in record.items()
                    if k != "summary"
                ]
                print(" ".join(shown), flush=True)


if __name__ == "__main__":
    main()
