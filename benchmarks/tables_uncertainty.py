"""Tables of the results of `benchmarks.uncertainty`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.study import records

TARGET = 0.015  # coverage may be off by this much
ECE = 0.02


def write_tables(path: Path) -> None:
    """Write ``path`` with the ending .md: intervals, then probabilities."""
    results = records.read(path)
    runs = records.read_runs(path)
    lines = ["# Intervals and probabilities", ""]
    if runs:
        last = runs[-1]
        versions = ", ".join(f"{k} {v}" for k, v in last["versions"].items())
        lines += [f"Python {last['python']}, {versions}, {last['cores']} cores.", ""]
    regression = [r for r in results.values() if "rmse" in r]
    classification = [r for r in results.values() if "rmse" not in r]
    if regression:
        lines += _intervals(regression)
    if classification:
        lines += _probabilities(classification)
    path.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _intervals(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## Prediction intervals",
        "",
        "Means over the random splits; widths, interval scores and errors in units of the spread "
        "of the target. The interval score adds 2/(1 - c) times what an observation misses its "
        "interval by: smaller is better. A coverage that is off by more than 1.5 points is marked "
        "with *. Times are seconds of processor time.",
        "",
    ]
    for name in dict.fromkeys(r["set"] for r in rows):
        part = [r for r in rows if r["set"] == name]
        lines += [
            f"### {name}",
            "",
            "| method | rows | splits | coverage 90 % | 95 % | width 90 % | 95 % | score 95 % "
            "| rmse | seconds |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        for method in dict.fromkeys(r["method"] for r in part):
            own = [r for r in part if r["method"] == method]
            cover = []
            for c in (0.9, 0.95):
                value = _mean(own, f"coverage_{c:g}")
                cover.append(f"{100 * value:.1f}{'*' if abs(value - c) > TARGET else ''}")
            cells = [method, str(own[0]["n"]), str(len(own)), *cover]
            cells += [f"{_mean(own, key):.3f}" for key in ("width_0.9", "width_0.95")]
            cells += [f"{_mean(own, key):.3f}" for key in ("score_0.95", "rmse")]
            lines.append("| " + " | ".join([*cells, f"{_mean(own, 'seconds'):.2f}"]) + " |")
        lines.append("")
    kept: dict[str, list[str]] = {}
    for method in dict.fromkeys(r["method"] for r in rows):
        for name in dict.fromkeys(r["set"] for r in rows if r["method"] == method):
            own = [r for r in rows if r["set"] == name and r["method"] == method]
            gaps = [abs(_mean(own, f"coverage_{c:g}") - c) for c in (0.9, 0.95)]
            kept.setdefault(method, []).append(name if max(gaps) <= TARGET else "")
    lines += ["Sets on which both coverages are within 1.5 points:", ""]
    lines += [
        f"- {method}: {sum(map(bool, names))} of {len(names)}" for method, names in kept.items()
    ]
    return [*lines, ""]


def _probabilities(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## Probabilities",
        "",
        "FixedSizeLSSVC with 300 prototypes, tuned inside every fit; `CalibratedClassifierCV` with "
        "5 folds around the same model. ECE: expected calibration error, 15 bins of P(class 1). "
        "Time of fit and of all predictions, relative to the fit without probabilities.",
        "",
    ]
    for name in dict.fromkeys(r["set"] for r in rows):
        part: dict[str, list[dict[str, Any]]] = {}
        for r in (r for r in rows if r["set"] == name):
            part.setdefault(r["method"], []).append(r)
        first = next(iter(part.values()))
        plain = _seconds(part.get("fit without probabilities", first))
        lines += [
            f"### {name} ({first[0]['n']:,} training rows, splits: {len(first)})",
            "",
            "| method | log loss | Brier | ECE | accuracy | seconds | time | sets 90 %: coverage, "
            "size | sets 95 % |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for method, own in part.items():
            losses = ("log_loss", "brier", "ece", "accuracy")
            cells = [method, *(f"{_mean(own, k):.4f}" if k in own[0] else "" for k in losses)]
            cells += [f"{_seconds(own):.1f}", f"{_seconds(own) / plain:.2f}"]
            for c in ("0.9", "0.95"):
                known = f"set_coverage_{c}" in own[0]
                pair = (f"set_coverage_{c}", f"set_size_{c}")
                cells.append(", ".join(f"{_mean(own, key):.3f}" for key in pair) if known else "")
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return lines


def _seconds(rows: list[dict[str, Any]]) -> float:
    return _mean(rows, "fit") + _mean(rows, "predict")


def _mean(rows: list[dict[str, Any]], key: str) -> float:
    return float(np.mean([r[key] for r in rows]))
