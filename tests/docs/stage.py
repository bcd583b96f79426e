"""What the pages of the documentation take for granted: data of one's own, libraries, files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

_NUMBERS = """
import numpy as np

X = np.random.default_rng(0).uniform(-2.0, 2.0, (60, 2))
y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(60)
X_new = X[:5] + 0.1
"""

_CLASSES = (
    _NUMBERS
    + """
y = np.where(y > 0, "up", "down")
"""
)

_FLIGHTS = """
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pathlib import Path

Path("flights").mkdir()
rng = np.random.default_rng(0)


def write(path, n, **more):
    columns = {"hour": rng.uniform(0, 24, n), "wind": rng.normal(size=n)}
    columns["late"] = columns["hour"] / 12 + columns["wind"] > 1
    pq.write_table(pa.table(columns), path)


for path in ("flights/a.parquet", "flights/b.parquet", "flights-2025.parquet", "tomorrow.parquet"):
    write(path, 150)
"""

_SERIES = """
import numpy as np

t = np.arange(320)
y1, y2 = np.sin(0.4 * t), np.cos(0.3 * t)
y = y1 + 0.05 * np.random.default_rng(0).standard_normal(320)
X, X_future = np.cos(0.1 * t)[:, None], np.cos(0.1 * np.arange(320, 332))[:, None]
"""

_CREDIT = """
import csv

from lssvm.datasets import load_german_credit

credit = load_german_credit()
with open("credit.csv", "w", newline="") as file:
    table = csv.writer(file)
    table.writerow([*credit.feature_names, "target"])
    for row, label in zip(credit.data, credit.target):
        table.writerow([*row, ("good", "bad")[label - 1]])
"""

_FITTED = (
    _CLASSES
    + """
from lssvm import FixedSizeLSSVC

model, new_rows = FixedSizeLSSVC(20, C=1.0, gamma=1.0).fit(X, y), X_new
"""
)

_MANY_ROWS = """
import numpy as np

X = np.random.default_rng(0).uniform(-2.0, 2.0, (10_500, 2))
Y = np.sin(2 * X[:, :1])
"""

SETUPS = {
    "fixed_size": _CLASSES,
    "greedy": _CLASSES,
    "many_prototypes": _MANY_ROWS,
    "model_files": _FITTED,
    "quickstart": _CREDIT,
    "relevance": _NUMBERS,
    "robust": _NUMBERS,
    "sparse": _CLASSES,
    "scaling": _FLIGHTS,
    "streaming": _FLIGHTS,
    "time_series": _SERIES,
    "tuning": _CLASSES,
    "uncertainty": _NUMBERS,
}
"""Code that runs before a page: the X and y of the reader, and the files that he has."""

NEEDS = {
    "model_files": ("rich", "sklearn.callback"),
    "onnx": ("onnxruntime", "skl2onnx"),
    "preparation": ("pandas",),
    "report": ("pandas",),
    "scaling": ("pyarrow",),
    "streaming": ("pyarrow",),
    "tables": ("pandas",),
}
"""Libraries without which a page cannot run."""

SKIPPED = {
    "cluster": {'Client("tcp://scheduler:8786")': "no such machine; test_fixed_dask.py runs it"},
    "gpu": {'device="cuda"': "needs a GPU; test_fixed_device.py runs it with torch on the CPU"},
    "many_prototypes": {"20_000": "takes gigabytes and minutes; tests/solvers runs it smaller"},
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
