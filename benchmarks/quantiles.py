"""Quantiles of new targets compared with CatBoost and LightGBM, which minimise the pinball loss.

`LSSVMRegressor.predict_quantile` of the default model; CatBoost with its own categories, once with
``loss_function="MultiQuantile:alpha=..."`` and once with ``"Quantile:alpha=..."``, one model a
level; LightGBM with ``objective="quantile"``, one model a level. All else as by default, on one
thread; splits as in the evidence. Results are appended as they come; a rerun skips what is there::

    python -m benchmarks.quantiles --data DIR
    python -m benchmarks.quantiles --table          # the table alone
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.evidence import measures, sets
from benchmarks.study import records
from lssvm import LSSVMRegressor

Array = NDArray[np.float64]

SETS = (
    "carseats bho solder ccs ames slid_wages nmes_visits computers nox kin8nm deliveries "
    "yrbss_weight earnings78 bike_hour"
).split()
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def _ours(split: sets.Split, seed: int) -> Callable[[], Array]:
    model = LSSVMRegressor(n_jobs=1, random_state=seed).fit(split.X_train, split.y_train)
    return lambda: model.predict_quantile(split.X_test, LEVELS)


def _catboost_of(split: sets.Split, seed: int, loss: str) -> Any:
    from catboost import CatBoostRegressor

    from benchmarks.evidence.peers import Framed

    model = CatBoostRegressor(
        loss_function=loss, random_seed=seed, thread_count=1, verbose=0, allow_writing_files=False
    )
    return Framed(model, named="cat_features").fit(split.X_train, split.y_train)


def _catboost(split: sets.Split, seed: int) -> Callable[[], Array]:
    model = _catboost_of(split, seed, f"MultiQuantile:alpha={','.join(map(str, LEVELS))}")
    return lambda: np.asarray(model.predict(split.X_test))


def _catboost_each(split: sets.Split, seed: int) -> Callable[[], Array]:
    models = [_catboost_of(split, seed, f"Quantile:alpha={level}") for level in LEVELS]
    return lambda: np.column_stack([model.predict(split.X_test) for model in models])


def _lightgbm(split: sets.Split, seed: int) -> Callable[[], Array]:
    from lightgbm import LGBMRegressor

    A, B = sets.numeric(split.X_train, split.X_test)
    kind = {"objective": "quantile", "random_state": seed, "n_jobs": 1, "verbose": -1}
    models = [LGBMRegressor(alpha=level, **kind).fit(A, split.y_train) for level in LEVELS]
    return lambda: np.column_stack([model.predict(B) for model in models])


def _constant(split: sets.Split, seed: int) -> Callable[[], Array]:
    found = np.quantile(split.y_train, LEVELS)
    return lambda: np.tile(found, (len(split.y_test), 1))


METHODS = {
    "lssvm": _ours,
    "catboost": _catboost,
    "catboost-each": _catboost_each,
    "lightgbm": _lightgbm,
    "constant": _constant,
}
"""From a split and a seed to what predicts quantiles of its test rows, shape (n, levels)."""


def pinball(truth: Array, predicted: Array) -> Array:
    """Return the mean pinball loss of every level."""
    above = truth[:, None] - predicted
    return np.maximum(np.multiply(LEVELS, above), np.subtract(LEVELS, 1.0) * above).mean(axis=0)


def measure(folder: Path, name: str, seed: int, method: str) -> dict[str, Any]:
    """Return losses of the levels, and coverage and mean width of the interval between its ends."""
    split = sets.split(folder, name, seed)
    truth = np.asarray(split.y_test, dtype=np.float64)
    start = time.process_time()
    predict = METHODS[method](split, seed)
    seconds = time.process_time() - start
    predicted = predict()
    low, high = predicted[:, 0], predicted[:, -1]
    return {
        "n": len(split.y_train),
        "n_test": len(truth),
        "pinball": pinball(truth, predicted).tolist(),
        "coverage": measures.coverage(truth, low, high),
        "width": float(np.mean(high - low)),
        "fit_cpu": seconds,
    }


def table(path: Path) -> str:
    """Return the records as tables in Markdown."""
    found = records.read(path)
    splits = [s for s in {key[:2] for key in found} if all((*s, m) in found for m in METHODS)]
    splits.sort(key=lambda s: (found[*s, "lssvm"]["n"], s))
    peers = ("lssvm", "catboost", "catboost-each", "lightgbm")
    titles = ("ours", "CatBoost", "CatBoost, each", "LightGBM")

    def values(key: str, method: str) -> Array:
        return np.array([found[*split, method][key] for split in splits])

    losses = {m: values("pinball", m) for m in METHODS}  # (splits, levels)
    unit = losses["constant"].mean(axis=1)
    lines = [
        "# Quantiles",
        "",
        "Written by `python -m benchmarks.quantiles --table`: pinball loss on test rows, mean of "
        f"the levels {', '.join(map(str, LEVELS))}, in per cent of that of the training rows' "
        "quantiles; share of test rows between 0.05 and 0.95; processor seconds of the fit.",
        "",
        f"| set | rows | {' | '.join(titles)} | inside: {' | '.join(titles)} "
        f"| seconds: {' | '.join(titles)} |",
        "|---|---:|" + "---:|" * (3 * len(peers)),
    ]
    for i, (name, seed) in enumerate(splits):
        cells = [f"{100 * losses[m][i].mean() / unit[i]:.1f}" for m in peers]
        cells += [f"{100 * found[name, seed, m]['coverage']:.0f}" for m in peers]
        cells += [f"{found[name, seed, m]['fit_cpu']:.1f}" for m in peers]
        lines.append(f"| {name} | {found[name, seed, 'lssvm']['n']} | {' | '.join(cells)} |")
    lines += [
        "",
        "Geometric mean of our loss over theirs (below 1: ours is smaller), and on how many "
        f"of {len(splits)} splits ours is smaller:",
        "",
        "| compared with | all levels | " + " | ".join(map(str, LEVELS)) + " |",
        "|---|" + "---:|" * (1 + len(LEVELS)),
    ]
    for method, title in zip(peers[1:], titles[1:], strict=True):
        both = [np.column_stack([L.mean(axis=1), L]) for L in (losses["lssvm"], losses[method])]
        ratio = both[0] / both[1]
        cells = [
            f"{np.exp(np.log(column).mean()):.3f} ({np.sum(column < 1)})" for column in ratio.T
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    off = [100 * np.mean(np.abs(values("coverage", m) - 0.9)) for m in peers]
    lines += [
        "",
        "Mean distance of the share inside from 90 %: "
        + ", ".join(f"{t} {v:.1f}" for t, v in zip(titles, off, strict=True))
        + " points.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of Parquet files")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--table", action="store_true", help="only write the table")
    results = Path(__file__).parent / "results" / "quantiles.jsonl"
    parser.add_argument("--out", type=Path, default=results)
    asked = parser.parse_args()
    if not asked.table:
        if asked.data is None:
            parser.error("--data is needed: the folder of the Parquet files")
        records.repair(asked.out)
        done = records.read(asked.out)
        for seed in asked.seeds:
            for name in asked.sets:
                for method in asked.methods:
                    if (name, seed, method) not in done:
                        head = {"set": name, "randomisation": seed, "method": method}
                        record = head | measure(asked.data, name, seed, method)
                        records.append(asked.out, record)
    asked.out.with_suffix(".md").write_text(table(asked.out), encoding="utf-8")


if __name__ == "__main__":
    main()
