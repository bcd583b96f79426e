"""Small models from large ones: ``compress(200)`` and the model for tables it was made of.

Every set of the study, split as there; test error and time of prediction of both models, one record
a set and split. Results are appended as they come; a rerun skips what is there::

    python -m benchmarks.table_compress --data DIR
    python -m benchmarks.table_compress --table          # the table alone
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evidence import measures, sets
from benchmarks.study import records
from lssvm import LSSVMClassifier, LSSVMRegressor

SIZE = 200
LEAST = 300  # training rows: fewer are not worth it
MOST = 40_000


def measure(folder: Path, name: str, seed: int, preset: str) -> dict[str, Any] | None:
    """Return the errors of both models on the test rows, or None where there are too few rows."""
    split = sets.split(folder, name, seed)
    if not LEAST <= len(split.y_train) <= MOST:
        return None
    classes = split.task == "classes"
    kind = LSSVMClassifier if classes else LSSVMRegressor
    begin = time.process_time()
    large = kind(preset).fit(split.X_train, split.y_train)
    fitted = time.process_time()
    small = large.compress(SIZE)
    record: dict[str, Any] = {"n": len(split.y_train), "task": split.task}
    record |= {"fit_cpu": fitted - begin, "compress_cpu": time.process_time() - fitted}
    for word, model in (("large", large), ("small", small)):
        begin = time.perf_counter()
        predicted = model.predict(split.X_test)
        record[f"{word}_predict_s"] = time.perf_counter() - begin
        error = measures.error_of_classes if classes else measures.error_of_numbers
        record[f"{word}_error"] = float(error(split.y_test, predicted))
        record[f"{word}_score"] = float(model.best_score_)
    return record


def table(path: Path) -> str:
    """Return the records as a table in Markdown."""
    rows = list(records.read(path).values())
    lines = [
        f"# Compressed to {SIZE} support vectors",
        "",
        "Written by `python -m benchmarks.table_compress --table`. Errors on test rows: per cent "
        "of wrong classes, or 100 (1 - R2); means over the splits.",
        "",
        "| set | rows | splits | preset | large | small | loss | prediction, times faster |",
        "|---|---:|---:|---|---:|---:|---:|---:|",
    ]
    losses: list[float] = []
    classes: list[bool] = []
    for name in dict.fromkeys(r["set"] for r in rows):
        own = [r for r in rows if r["set"] == name]
        large, small = (np.mean([r[f"{w}_error"] for r in own]) for w in ("large", "small"))
        faster = np.median([r["large_predict_s"] / r["small_predict_s"] for r in own])
        losses.append(float(small - large))
        lines.append(
            f"| {name} | {own[0]['n']} | {len(own)} | {own[0]['preset']} | {large:.2f} "
            f"| {small:.2f} | {small - large:+.2f} | {faster:.1f} |"
        )
        classes.append(own[0]["task"] == "classes")
    good, accuracy = np.array(losses) <= 1.0, np.array(classes, dtype=bool)
    lines += [
        "",
        f"At most one point lost on {good.sum()} of {len(good)} sets, {good[accuracy].sum()} of "
        f"the {accuracy.sum()} with classes.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of Parquet files")
    parser.add_argument("--sets", nargs="+", default=list(sets.STUDY))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--preset", default="balanced")
    parser.add_argument("--table", action="store_true", help="only write the table")
    results = Path(__file__).parent / "results" / "table_compress.jsonl"
    parser.add_argument("--out", type=Path, default=results)
    asked = parser.parse_args()
    if not asked.table:
        if asked.data is None:
            parser.error("--data is needed: the folder of the Parquet files")
        records.repair(asked.out)
        done = records.read(asked.out)
        for seed in asked.seeds:
            for name in asked.sets:
                if (name, seed, "compress") in done:
                    continue
                found = measure(asked.data, name, seed, asked.preset)
                if found is not None:
                    head = {"set": name, "randomisation": seed, "method": "compress"}
                    records.append(asked.out, head | {"preset": asked.preset} | found)
    asked.out.with_suffix(".md").write_text(table(asked.out), encoding="utf-8")


if __name__ == "__main__":
    main()
