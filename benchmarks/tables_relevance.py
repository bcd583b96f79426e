"""Tables of the results of `benchmarks.relevance`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.study import records

LOSSES = ("huber", "absolute", "weighted")
WAYS = ("cv", "ard", "diagonal", "full")
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
        "## One gamma per feature, and metrics",
        "",
        "Test error (root mean square in units of the target's spread; error rate for classes), "
        'means over the random splits: one gamma (`gamma="cv"`), one per feature (`gamma="ard"`, '
        "by evidence), and one with a metric learned from gradients "
        '(`MetricKernel("rbf", "diagonal")`, `MetricKernel("rbf", "full")`). In brackets: seconds '
        "of processor time for a fit. "
        "`kept`: the part of the fits in which cross-validation preferred one gamma per feature.",
        "",
    ]
    for model in ("dual", "fixed", "larger dual"):
        names = [
            n for n in dict.fromkeys(r["set"] for r in rows) if len(_pick(rows, n, f"{model} cv"))
        ]
        if not names:
            continue
        lines += [
            f"### {model} model",
            "",
            "| set | rows | d | splits | one gamma | ard | kept | diagonal | full |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        lower = dict.fromkeys(WAYS[1:], 0)
        beats = dict.fromkeys(WAYS[2:], 0)
        times: dict[str, list[float]] = {way: [] for way in WAYS}
        for name in names:
            first = next(r for r in rows if r["set"] == name and r["method"] == f"{model} cv")
            errors = {way: _pick(rows, name, f"{model} {way}") for way in WAYS}
            count = min(len(e) for e in errors.values() if len(e))
            means = {way: e[:count].mean() for way, e in errors.items() if len(e)}
            cells = []
            for way in WAYS:
                seconds = _pick(rows, name, f"{model} {way}", "seconds")
                cells.append("" if way not in means else f"{means[way]:.4f} ({seconds.mean():.2f})")
                if way in means:
                    times[way].append(float(seconds.mean()))
                    if way in lower:
                        lower[way] += bool(means[way] < means["cv"])
                    if way in beats and "ard" in means:
                        beats[way] += bool(means[way] <= means["ard"])
            kept = _pick(rows, name, f"{model} ard", "kept")
            cells.insert(2, f"{kept.mean():.2f}" if len(kept) else "")
            lines.append(
                f"| {name} | {first['n']} | {first['d']} | {count} | {' | '.join(cells)} |"
            )
        told = [f"{way} {count}" for way, count in lower.items() if times[way]]
        lines += ["", f"Error below that of one gamma, of {len(names)} sets: {', '.join(told)}."]
        told = [f"{way} {count}" for way, count in beats.items() if times[way]]
        if told:
            lines += [f"Error at most that of ard: {', '.join(told)}."]
        base = np.array(times["cv"])
        ratios = [
            f"{way} {np.median(np.array(t) / base):.1f}"
            for way, t in times.items()
            if way != "cv" and len(t) == len(base)
        ]
        if ratios:
            lines += [f"Median time over that of one gamma: {', '.join(ratios)}."]
        lines += [""]
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
