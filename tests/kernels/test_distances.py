"""Distances in matrix products against distances by differences."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lssvm._core.errors import InvalidInputError
from lssvm.kernels.radial import DISTANCES, distances, fill_distances

rng = np.random.default_rng(1)
NUMBERS = rng.normal(size=(300, 6)) * [1, 10, 0.1, 1, 5, 1] + 40.0
LEVELS = np.column_stack([rng.integers(0, 2, (300, 6)) * 1.7 - 0.3, rng.normal(size=(300, 2))])
SAME = np.vstack([NUMBERS[:50], NUMBERS[:50], NUMBERS[:50] + 1e-9])
SETS = {"numbers": NUMBERS, "levels": LEVELS, "same": SAME, "one": np.ones((5, 2))}


@pytest.mark.parametrize("kind", DISTANCES)
@pytest.mark.parametrize("name", SETS)
def test_values(name, kind):
    X = SETS[name]
    expected = cdist(X, X[::2], kind)
    np.testing.assert_allclose(distances(X, X[::2], kind), expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("kind", DISTANCES)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_filled_is_symmetric(kind, threads, dtype):
    X = np.vstack([NUMBERS, NUMBERS * 0.9])
    out = fill_distances(X, kind, np.empty((600, 600), dtype), threads=threads)
    tolerance = 1e-5 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(out, cdist(X, X, kind), rtol=tolerance)
    np.testing.assert_allclose(out, out.T, rtol=1e-12)
    half = fill_distances(X, kind, np.zeros((600, 600), dtype), threads=threads, half=True)
    np.testing.assert_allclose(np.triu(half), np.triu(out), rtol=tolerance, atol=1e-12)


def test_blocks_do_not_change_the_values_much():
    X = LEVELS
    whole = distances(X, X, "cityblock")
    np.testing.assert_allclose(distances(X[:3], X, "cityblock"), whole[:3], rtol=1e-12, atol=1e-12)


def test_unknown():
    with pytest.raises(InvalidInputError, match="choose one of"):
        distances(NUMBERS, NUMBERS, "cosine")


def test_columns_of_two_values_far_from_zero_are_exact():
    rng = np.random.default_rng(2)
    low, gap = rng.normal(size=6) * 1e3, 10.0 ** rng.uniform(-4, 1, size=6)
    X = low + gap * rng.integers(0, 2, size=(200, 6))
    whole = distances(X, X, "cityblock")
    np.testing.assert_allclose(whole, cdist(X, X, "cityblock"), rtol=1e-9, atol=1e-9)
