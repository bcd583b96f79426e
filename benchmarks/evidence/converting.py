"""Records of `benchmarks.table_accuracy` as records of this study.

Their split and preparation are the same. They say nothing about versions, machine, probabilities or
memory, and their times are of a busy machine: ``converted`` marks them, the report takes their
errors alone, and a run measures them anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.evidence import records
from benchmarks.evidence.sets import task_of


def convert(old: Path, out: Path) -> int:
    """Append what the old file has and the new one has not; return how many records."""
    known = records.read(out)
    written = 0
    for text in old.read_text(encoding="utf-8").splitlines():
        record = converted(json.loads(text))
        if (record["set"], record["method"], record["seed"]) not in known.by_key:
            records.append(out, record)
            written += 1
    return written


def converted(line: dict[str, Any]) -> dict[str, Any]:
    """Return a record from a line of the old file."""
    kept = ("set", "method", "seed", "n", "d", "error")
    times = ("fit_s", "fit_cpu", "predict_s", "predict_cpu")
    return {name: line[name] for name in kept} | {
        "status": records.OK,
        "task": task_of(line["set"]),
        "n_test": line["n"] // 2,  # a third of all, up to one row
        **{name: line[name] for name in times},
        "converted": True,
    }
