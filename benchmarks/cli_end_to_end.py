"""The command line on real tables with categories and missing values, as far as onnxruntime.

For every set: Parquet to CSV, ``lssvm train``, ``evaluate``, ``predict`` and ``export``, then the
ONNX file is run on the same rows and its labels and probabilities are compared with those of
``predict``. Each command is a process of its own. Adult has missing values; in the other two, 5 %
of all values are taken away at random. Run with::

    python -m benchmarks.cli_end_to_end --data DIR --sets gcr,acr     # seconds
    python -m benchmarks.cli_end_to_end --data DIR                    # with Adult: a minute

A set whose line is in the results already is not run again.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from pyarrow import parquet

from lssvm import load

SETS = {"gcr": "German credit", "acr": "Australian credit", "adu": "Adult"}
HOLES = {"gcr": 0.05, "acr": 0.05, "adu": 0.0}
MISSING = ("", "?")
BLOCK = 4096  # rows that onnxruntime sees at once
OUT = Path("benchmarks/results/cli_end_to_end.jsonl")


def write_table(source: Path, path: Path, holes: float) -> list[dict[str, str]]:
    """Write a set as CSV, some values left out; return its rows as text."""
    table = parquet.read_table(source)
    table = table.drop([name for name in ("split",) if name in table.column_names])
    rng = np.random.default_rng(0)
    rows = [{name: str(v) for name, v in row.items()} for row in table.to_pylist()]
    for row in rows:
        gone = rng.uniform(size=len(row)) < holes
        row.update({n: "" for n, g in zip(row, gone, strict=True) if g and n != "target"})
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return rows


def lssvm(*words: Any) -> tuple[dict[str, Any], float]:
    """Run a command; return what it says and its seconds of processor time."""
    start = processor()
    command = [sys.executable, "-m", "lssvm", *map(str, words), "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {answer.returncode}\n{answer.stderr}")
    return json.loads(answer.stdout), processor() - start


def processor() -> float:
    """Return the processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_onnx(path: Path, kinds: dict[str, str], rows: list[dict[str, str]]) -> dict[str, Any]:
    """Return the outputs of an ONNX file for rows as text."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    parts = []
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        feed: dict[str, Any] = {}
        for name, kind in kinds.items():
            texts = ["" if row[name] in MISSING else row[name] for row in block]
            if kind == "number":
                feed[name] = np.array([[float(t) if t else np.nan] for t in texts])
            else:
                feed[name] = np.array([[t] for t in texts], dtype=object)
        parts.append(session.run(names, feed))
    return {name: np.concatenate([p[i] for p in parts]) for i, name in enumerate(names)}


def run_set(name: str, data: Path, folder: Path) -> dict[str, Any]:
    """Run all commands on one set."""
    table, model = folder / f"{name}.csv", folder / f"{name}.lssvm"
    rows = write_table(data / f"{name}.parquet", table, HOLES[name])
    trained, seconds = lssvm("train", table, "--target", "target", "-o", model)
    again, _ = lssvm("evaluate", model, table, "--held-out")
    _, predicting = lssvm("predict", model, table, "-o", folder / "p.csv", "--proba")
    exported, _ = lssvm("export", model, folder / "m.onnx")
    with open(folder / "p.csv", newline="", encoding="utf-8") as file:
        predicted = list(csv.DictReader(file))
    kinds = lssvm("info", model)[0]["columns"]
    found = run_onnx(folder / "m.onnx", kinds, rows)
    labels = [str(label) for label in found["label"].tolist()]
    classes = [str(label) for label in load(model).classes_.tolist()]
    p = np.array([[float(row[f"p_{c}"]) for c in classes] for row in predicted])
    return {
        "set": name,
        "title": SETS[name],
        "rows": len(rows),
        "columns": len(kinds),
        "text_columns": sum(kind == "text" for kind in kinds.values()),
        "missing_values": sum(value in MISSING for row in rows for value in row.values()),
        "test_rows": trained["test"]["rows"],
        "accuracy": trained["test"]["accuracy"],
        "accuracy_interval": trained["test"]["accuracy_interval"],
        "evaluate_agrees": again["accuracy"] == trained["test"]["accuracy"],
        "train_processor_seconds": seconds,
        "predict_processor_seconds": predicting,
        "model_bytes": trained["bytes"],
        "onnx_bytes": exported["bytes"],
        "labels_differ": sum(a != b["prediction"] for a, b in zip(labels, predicted, strict=True)),
        "largest_difference": float(np.abs(found["probabilities"] - p).max()),
    }


def write_page(lines: list[dict[str, Any]], path: Path) -> None:
    """Write the results as a table."""
    text = [
        "# The command line, end to end",
        "",
        "`lssvm train`, `evaluate`, `predict` and `export` on tables with categories and missing",
        "values; then onnxruntime on the same rows. Defaults everywhere, accuracy on the fifth of",
        "the rows that `train` holds out. Seconds are processor time of whole processes.",
        "",
        "| set | rows | columns (text) | missing | accuracy (95 %) | train, s | predict, s "
        "| model, kB | ONNX, kB | labels that differ | largest difference of probabilities |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for line in lines:
        low, high = line["accuracy_interval"]
        text.append(
            f"| {line['title']} | {line['rows']:,} | {line['columns']} ({line['text_columns']}) "
            f"| {line['missing_values']:,} | {line['accuracy']:.1%} ({low:.1%} to {high:.1%}) "
            f"| {line['train_processor_seconds']:.1f} | {line['predict_processor_seconds']:.1f} "
            f"| {line['model_bytes'] / 1024:.0f} | {line['onnx_bytes'] / 1024:.0f} "
            f"| {line['labels_differ']} | {line['largest_difference']:.1e} |"
        )
    path.write_text("\n".join(text) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the Parquet files")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    lines = []
    if options.out.exists():
        lines = [json.loads(line) for line in options.out.read_text().splitlines()]
    done = {line["set"] for line in lines}
    for name in [n for n in options.sets.split(",") if n not in done]:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(run_set(name, options.data.resolve(), Path(folder)))
        with open(options.out, "a", encoding="utf-8") as file:
            file.write(json.dumps(lines[-1]) + "\n")
            file.flush()
            os.fsync(file.fileno())
        print(json.dumps(lines[-1]))
    write_page(lines, options.out.with_suffix(".md"))
    if any(line["labels_differ"] for line in lines):
        raise SystemExit("labels differ")


if __name__ == "__main__":
    main()
