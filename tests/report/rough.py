"""Reports with few repetitions, for tests of what is on a page."""

from __future__ import annotations

from typing import Any

ROUGH = {
    "fitting.table.NESTED": 0,  # copies of models for tables are judged by their own folds
    "report.comparison.TREES": 5,
    "report.forecast.INTERVAL_RUNS": 2,
    "report.forecast.RUNS": 6,
    "report.columns.REPEATS": (2, 4),
    "report.measures.GROUPS": (3, 4),
    "report.refits.SIZES": 4,
    "report.columns.CELLS": 6,
    "report.columns.POINTS": 8,
}


def make_rough(patch: Any) -> None:
    """Let intervals, curves, shuffled columns and trees be rough: they have their own tests."""
    for name, value in ROUGH.items():
        patch.setattr(f"lssvm.{name}", value)
