"""What the pages of the documentation take for granted: libraries, and what cannot run here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

NEEDS = {
    "model_files": ("rich", "sklearn.callback"),
    "onnx": ("onnxruntime", "skl2onnx"),
    "papers": ("pyarrow",),
    "preparation": ("pandas",),
    "quickstart": ("pandas", "pyarrow"),
    "report": ("pandas",),
    "scaling": ("pyarrow",),
    "streaming": ("pyarrow",),
    "tables": ("pandas",),
}
"""Libraries without which a page cannot run."""

SKIPPED = {
    "cluster": {'Client("tcp://scheduler:8786")': "no such machine; test_fixed_dask.py runs it"},
    "gpu": {'device="cuda"': "needs a GPU; test_fixed_device.py runs it with torch on the CPU"},
}
"""Words of the blocks that cannot run here, and why."""


def _onnx(names: dict[str, Any], folder: Path) -> None:
    written = sorted(path.name for path in folder.iterdir())
    assert written == ["columns.onnx", "model.onnx", "pipeline.onnx", "step.onnx"]
    wrong = names["label"] != names["ripley"].target[names["ripley"].test]
    assert wrong.mean() < 0.12
    assert abs(names["past"][-1] - names["narx"].forecast(10)[-1]) < 1e-9


def _tables(names: dict[str, Any], folder: Path) -> None:
    assert abs(names["model"].best_score_ - 0.75) < 0.05
    assert names["strength"].best_score_ > 0.85
    assert 0.84 < names["inside"] < 0.96


def _time_series(names: dict[str, Any], folder: Path) -> None:
    """The Santa Fe laser is forecast as in the figure."""
    truth, ends = names["laser"][1000:1100], names["interval"]
    assert ((names["forecast"] - truth) ** 2).mean() / truth.var() <= 0.08
    assert ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean() >= 0.85


CHECKS: dict[str, Callable[[dict[str, Any], Path], None]] = {
    "onnx": _onnx,
    "tables": _tables,
    "time_series": _time_series,
}
"""What has to be so when a page has run."""
