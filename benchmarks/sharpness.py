"""Probabilities of several classes with and without the power that sharpens them.

The model for tables, splits as in the study; log loss and calibration error on test rows of its
probabilities and of the same ones before they are raised to a power. Results are appended as they
come; a rerun skips what is there::

    python -m benchmarks.sharpness --data DIR
    python -m benchmarks.sharpness --table          # the table alone
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evidence import measures, sets
from benchmarks.study import records
from lssvm import LSSVMClassifier

SETS = ("iri", "win", "bal", "veh", "cmc", "ims", "wav", "lan")


def measure(folder: Path, name: str, seed: int, preset: str) -> dict[str, Any]:
    """Return log losses and calibration errors on the test rows of a split."""
    split = sets.split(folder, name, seed)
    model = LSSVMClassifier(preset).fit(split.X_train, split.y_train)
    codes = np.searchsorted(model.classes_, split.y_test)
    power = model.probabilities_.sharpness
    record: dict[str, Any] = {"n": len(split.y_train), "preset": preset, "power": power}
    after = model.predict_proba(split.X_test)
    model.probabilities_ = replace(model.probabilities_, sharpness=1.0)
    for word, p in (("before", model.predict_proba(split.X_test)), ("after", after)):
        record[f"{word}_log_loss"] = float(measures.log_loss(codes, p))
        record[f"{word}_ece"] = 100.0 * float(measures.calibration_error(codes, p))
    return record


def table(path: Path) -> str:
    """Return the records as a table in Markdown."""
    rows = list(records.read(path).values())
    lines = [
        "# Sharpened probabilities",
        "",
        "Written by `python -m benchmarks.sharpness --table`: log loss and calibration error (per "
        "cent) on test rows, before and after; means over the splits.",
        "",
        "| set | rows | splits | preset | power | log loss | after | error | after |",
        "|---|---:|---:|---|---:|---:|---:|---:|---:|",
    ]
    better = {"log_loss": 0, "ece": 0}
    names = list(dict.fromkeys(r["set"] for r in rows))
    for name in names:
        own = [r for r in rows if r["set"] == name]
        mean = {k: float(np.mean([r[k] for r in own])) for k in own[0] if k.endswith(("s", "ece"))}
        power = np.mean([r["power"] for r in own])
        for key in better:
            better[key] += mean[f"after_{key}"] < mean[f"before_{key}"]
        lines.append(
            f"| {name} | {own[0]['n']} | {len(own)} | {own[0]['preset']} | {power:.2f} "
            f"| {mean['before_log_loss']:.4f} | {mean['after_log_loss']:.4f} "
            f"| {mean['before_ece']:.2f} | {mean['after_ece']:.2f} |"
        )
    lines += [
        "",
        f"Smaller after: the log loss on {better['log_loss']}, the calibration error on "
        f"{better['ece']} of {len(names)} sets.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of Parquet files")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--table", action="store_true", help="only write the table")
    results = Path(__file__).parent / "results" / "sharpness.jsonl"
    parser.add_argument("--out", type=Path, default=results)
    asked = parser.parse_args()
    if not asked.table:
        if asked.data is None:
            parser.error("--data is needed: the folder of the Parquet files")
        records.repair(asked.out)
        done = records.read(asked.out)
        for seed in asked.seeds:
            for name in asked.sets:
                if (name, seed, "sharpness") not in done:
                    head = {"set": name, "randomisation": seed, "method": "sharpness"}
                    records.append(asked.out, head | measure(asked.data, name, seed, asked.preset))
    asked.out.with_suffix(".md").write_text(table(asked.out), encoding="utf-8")


if __name__ == "__main__":
    main()
