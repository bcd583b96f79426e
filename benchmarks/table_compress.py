"""Small models from large ones: ``compress(200)`` and the model for tables it was made of.

Every set of the study, split as there; test error and time of prediction of both models, one record
a set and split. With ``--share`` real tables of up to 20,000 rows are compressed to that share of
their training rows. Results are appended as they come; a rerun skips what is there::

    python -m benchmarks.table_compress --data DIR
    python -m benchmarks.table_compress --data DIR --share 0.05 --threads 1
    python -m benchmarks.table_compress --table          # the tables alone
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
MOST_OF_SHARE = 13_334  # training rows: two thirds of 20,000
WANTED = 1.0  # per cent of the measure that a share may lose


def measure(
    folder: Path,
    name: str,
    seed: int,
    preset: str,
    share: float | None = None,
    threads: int | None = None,
) -> dict[str, Any] | None:
    """Return the errors of both models on the test rows, or None for too few or too many rows."""
    split = sets.split(folder, name, seed)
    n = len(split.y_train)
    if n > MOST_OF_SHARE if share else not LEAST <= n <= MOST:
        return None
    classes = split.task == "classes"
    kind = LSSVMClassifier if classes else LSSVMRegressor
    begin = time.process_time()
    large = kind(preset, n_jobs=threads).fit(split.X_train, split.y_train)
    fitted = time.process_time()
    size = max(1, round(share * n)) if share else SIZE
    small = large.compress(size)
    record: dict[str, Any] = {"n": n, "task": split.task, "size": size}
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
    everything = list(records.read(path).values())
    rows = [r for r in everything if r["method"] == "compress"]
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
    for method in dict.fromkeys(r["method"] for r in everything if r["method"] != "compress"):
        lines += share_lines([r for r in everything if r["method"] == method])
    return "\n".join(lines) + "\n"


def share_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the section of models that are a share of their rows, by the measure's own loss."""
    lines = [
        "",
        f"## Compressed to {rows[0]['share']:.0%} of the rows",
        "",
        "Real tables. Accuracy or R2 on test rows, and the share of it that is lost, in per cent.",
        "",
        "| set | rows | vectors | large | small | lost | seconds | prediction, times faster |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    few = 0
    for r in rows:
        large, small = (1.0 - r[f"{word}_error"] / 100.0 for word in ("large", "small"))
        lost = 100.0 * (large - small) / large
        few += lost <= WANTED
        lines.append(
            f"| {r['set']} | {r['n']} | {r['size']} | {large:.4f} | {small:.4f} | {lost:+.2f} "
            f"| {r['compress_cpu']:.1f} | {r['large_predict_s'] / r['small_predict_s']:.1f} |"
        )
    return [*lines, "", f"At most {WANTED:g} % lost on {few} of {len(rows)} tables."]


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of Parquet files")
    parser.add_argument("--sets", nargs="+", help="default: the study, with --share real tables")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--preset", default="balanced")
    parser.add_argument("--share", type=float, help="of the training rows, in place of 200")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--table", action="store_true", help="only write the table")
    results = Path(__file__).parent / "results" / "table_compress.jsonl"
    parser.add_argument("--out", type=Path, default=results)
    asked = parser.parse_args()
    if not asked.table:
        if asked.data is None:
            parser.error("--data is needed: the folder of the Parquet files")
        records.repair(asked.out)
        done = records.read(asked.out)
        method = f"compress {asked.share:g}" if asked.share else "compress"
        for seed in asked.seeds:
            for name in asked.sets or (sets.TABLES if asked.share else sets.STUDY):
                if (name, seed, method) in done:
                    continue
                found = measure(asked.data, name, seed, asked.preset, asked.share, asked.threads)
                if found is not None:
                    head = {"set": name, "randomisation": seed, "method": method}
                    head |= {"share": asked.share} if asked.share else {}
                    records.append(asked.out, head | {"preset": asked.preset} | found)
    asked.out.with_suffix(".md").write_text(table(asked.out), encoding="utf-8")


if __name__ == "__main__":
    main()
