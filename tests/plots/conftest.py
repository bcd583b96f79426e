"""Draw into memory, and close every figure after its test."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def memory_backend():
    matplotlib.use("Agg")
    yield
    plt.close("all")


@pytest.fixture
def without_matplotlib(monkeypatch):
    """Make every import of matplotlib fail, as where the extra is not installed."""
    import sys

    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def blobs():
    """Return three clouds of 20 rows each, in the plane, with string labels."""
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0]], 20, axis=0)
    return centres + 0.6 * rng.normal(size=(60, 2)), np.repeat(["a", "b", "c"], 20)


@pytest.fixture
def two_blobs(blobs):
    """Return the first two clouds."""
    X, y = blobs
    return X[:40], y[:40]
