r"""Is ``best_score_`` of the model for tables what new rows say? Many small generated data sets.

Every set is drawn anew: a few numeric columns, categories, missing values, repeated rows; targets
that depend on some columns, or on none. The difference between ``best_score_`` and the score of
2,000 new rows is averaged over the sets and compared with its standard error.

    python benchmarks/table_honesty.py --sets 200
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from lssvm import LSSVMClassifier, LSSVMRegressor

FRESH = 2000
KINDS = ("numbers", "classes", "noise", "coins")


def draw(kind: str, n: int, seed: int) -> tuple[dict[str, Any], np.ndarray, Any, np.ndarray]:
    """Return columns and targets of n rows to fit and of many new ones."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    total, d = n + FRESH, int(rng.integers(2, 6))
    A = rng.normal(size=(total, d)) ** rng.choice([1, 1, 3], d)
    level = rng.integers(0, 4, total)
    slopes, effects = rng.normal(size=d), rng.normal(size=4)
    B = np.tanh(A)  # targets of long tails would make R2 itself a biased figure
    f = np.sin(2 * B @ slopes) + B[:, 0] * slopes[0] + effects[level] + 0.5 * rng.normal(size=total)
    if kind in ("noise", "coins"):
        f = rng.normal(size=total)
    y = f if kind in ("numbers", "noise") else np.where(f > np.median(f), "high", "low")
    A[rng.uniform(size=A.shape) < 0.05] = np.nan
    columns = {f"x{j}": A[:, j] for j in range(d)} | {"level": np.array(list("abcd"))[level]}
    first = {name: column[:n] for name, column in columns.items()}
    rest = {name: column[n:] for name, column in columns.items()}
    return first, y[:n], rest, y[n:]


def measure(kind: str, n: int, seed: int, preset: str) -> dict[str, Any]:
    X, y, new, truth = draw(kind, n, seed)
    make = LSSVMRegressor if kind in ("numbers", "noise") else LSSVMClassifier
    model = make(preset, n_jobs=1, random_state=seed).fit(X, y)
    return dict(kind=kind, n=n, seed=seed, preset=preset, said=model.best_score_,
                true=float(model.score(new, truth)))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="seed of the first set")
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--out", type=Path, default=None)
    asked = parser.parse_args()
    for number, kind in enumerate(KINDS):
        each = asked.sets // len(KINDS) + (number < asked.sets % len(KINDS))
        seeds = range(asked.first, asked.first + each)
        records = [measure(kind, asked.rows, seed, asked.preset) for seed in seeds]
        gap = np.array([r["said"] - r["true"] for r in records])
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        print(f"{kind}: {each} sets, said - true {gap.mean():+.4f}, standard error {error:.4f}, "
              f"true {np.mean([r['true'] for r in records]):.3f}", flush=True)  # fmt: skip
        if asked.out is not None:
            with asked.out.open("a") as out:
                out.writelines(json.dumps(r) + "\n" for r in records)


if __name__ == "__main__":
    main()
