"""Reports with few repetitions, for tests of what is on a page."""

from __future__ import annotations

from typing import Any

ROUGH = {
    "comparison.TREES": 5,
    "forecast.INTERVAL_RUNS": 2,
    "forecast.RUNS": 6,
    "importance.REPEATS": (2, 4),
    "measures.GROUPS": (3, 4),
    "refits.SIZES": 4,
    "shapes.CELLS": 6,
    "shapes.POINTS": 8,
}


def make_rough(patch: Any) -> None:
    """Let intervals, curves, shuffled columns and trees be rough: they have their own tests."""
    for name, value in ROUGH.items():
        patch.setattr(f"lssvm.report.{name}", value)
