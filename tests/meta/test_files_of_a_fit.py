"""How many files of ours a reader meets who follows one fit; the limits only ever go down."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import lssvm

HOME = str(Path(lssvm.__file__).parent)
MOST_FILES = {"LSSVC": 27, "FixedSizeLSSVC": 32, "LSSVMClassifier": 34}


def files_entered(estimator: Any, X: np.ndarray, y: np.ndarray) -> set[str]:
    """Return the files of the package whose functions a fit calls, in any thread."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        if name.startswith(HOME) and frame.f_code.co_name != "<module>":
            files.add(name[len(HOME) + 1 :])

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        estimator.fit(X, y)
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return files


@pytest.mark.parametrize("name", MOST_FILES)
def test_a_fit_passes_through_few_files(name):
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    tuned = {} if name == "LSSVMClassifier" else {"C": "cv", "gamma": "cv"}
    files = files_entered(getattr(lssvm, name)(random_state=0, **tuned), X, y)
    assert len(files) <= MOST_FILES[name], sorted(files)
    assert "tasks/targets.py" in files  # else nothing was followed
