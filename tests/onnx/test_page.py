"""The code of the page about ONNX runs as printed."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "onnx.rst").read_text(encoding="utf-8")
BLOCKS = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", PAGE)


@pytest.fixture
def in_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_runs(in_empty_folder):
    assert len(BLOCKS) == 5
    names = {}
    for block in BLOCKS:
        exec(compile(textwrap.dedent(block), "onnx.rst", "exec"), names)
    written = sorted(path.name for path in in_empty_folder.iterdir())
    assert written == ["columns.onnx", "model.onnx", "pipeline.onnx", "step.onnx"]
    wrong = names["label"] != names["ripley"].target[names["ripley"].test]
    assert wrong.mean() < 0.12
    assert abs(names["past"][-1] - names["narx"].forecast(10)[-1]) < 1e-9
