"""Tables of the results of `benchmarks.relevance`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.study import records

LOSSES = ("huber", "absolute", "weighted")
ALLOWED = 1.3  # of the clean fit's error


def write_tables(path: Path) -> None:
    """Write ``path`` with the ending .md: relevance, then robust losses."""
    rows = list(records.read(path).values())
    lines = ["# Relevance of features, and robust losses", ""]
    runs = records.read_runs(path)
    if runs:
        versions = ", ".join(f"{k} {v}" for k, v in runs[-1]["versions"].items())
        lines += [f"Python {runs[-1]['python']}, {versions}, {runs[-1]['cores']} cores.", ""]
    if any(r["part"] == "relevance" for r in rows):
        lines += _relevance([r for r in rows if r["part"] == "relevance"])
    if any(r["part"] == "robust" for r in rows):
        lines += _robust([r for r in rows if r["part"] == "robust"])
    path.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _pick(rows: list[dict[str, Any]], name: str, method: str, key: str = "error") -> Any:
    found = sorted((r for r in rows if (r["set"], r["method"]) == (name, method)), key=_seed)
    return np.array([r[key] for r in found])


def _seed(row: dict[str, Any]) -> int:
    return int(row["randomisation"])


def _relevance(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## One gamma per feature",
        "",
        "Test error (root mean square in units of the target's spread; error rate for classes), "
        "means over the random splits, with the standard error of the mean difference; `kept` is "
        "the part of the fits in which cross-validation preferred one gamma per feature.",
        "",
    ]
    names = list(dict.fromkeys(r["set"] for r in rows))
    for model in ("dual", "fixed"):
        lines += [
            f"### {model} model",
            "",
            '| set | rows | d | splits | gamma="cv" | gamma="ard" | difference | kept | seconds cv '
            "| seconds ard |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        lower = whole = 0
        for name in names:
            cv, ard = (_pick(rows, name, f"{model} {gamma}") for gamma in ("cv", "ard"))
            count = min(len(cv), len(ard))
            if count == 0:
                continue
            cv, ard = cv[:count], ard[:count]
            first = next(r for r in rows if r["set"] == name)
            gap = ard - cv
            spread = gap.std(ddof=1) / np.sqrt(count) if count > 1 else float("nan")
            whole += 1
            lower += bool(gap.mean() < 0)
            seconds = [_pick(rows, name, f"{model} {g}", "seconds").mean() for g in ("cv", "ard")]
            kept = _pick(rows, name, f"{model} ard", "kept").mean()
            lines.append(
                f"| {name} | {first['n']} | {first['d']} | {count} | {cv.mean():.4f} "
                f"| {ard.mean():.4f} | {gap.mean():+.4f} ± {spread:.4f} | {kept:.2f} "
                f"| {seconds[0]:.2f} | {seconds[1]:.2f} |"
            )
        lines += ["", f"Lower with one gamma per feature on {lower} of {whole} sets.", ""]
    return lines


def _robust(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## 20 % gross outliers in the training targets",
        "",
        "Test error (root mean square in units of the target's spread, on clean targets) divided "
        "by that of the squared loss without outliers, means over the random splits. More than "
        f"{ALLOWED} is marked with *.",
        "",
        "| model | set | splits | clean error | squared | " + " | ".join(LOSSES) + " |",
        "|---|---|---|---|---|" + "---|" * len(LOSSES),
    ]
    for model in ("dual", "fixed"):
        for name in dict.fromkeys(r["set"] for r in rows):
            clean = _pick(rows, name, f"robust {model} clean")
            cells = []
            for loss in ("squared", *LOSSES):
                error = _pick(rows, name, f"robust {model} {loss}")
                count = min(len(clean), len(error))
                ratio = error[:count].mean() / clean[:count].mean() if count else float("nan")
                cells.append(f"{ratio:.2f}{'*' if ratio > ALLOWED and loss != 'squared' else ''}")
            lines.append(
                f"| {model} | {name} | {len(clean)} | {clean.mean():.4f} | "
                + " | ".join(cells)
                + " |"
            )
    return [*lines, ""]
