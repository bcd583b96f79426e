"""Intervals of fixed-size models are calibrated on rows that are no prototypes."""

import numpy as np
import pytest

from lssvm import FixedSizeLSSVR


def coverage(seed, m, gamma, C, n=300):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n + 1000, 2))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.standard_normal(n + 1000)
    model = FixedSizeLSSVR(m, C=C, gamma=gamma, random_state=seed, cv=5).fit(X[:n], y[:n])
    low, high = model.predict_interval(X[n:], coverage=0.9).T
    return np.mean((low <= y[n:]) & (y[n:] <= high))


@pytest.mark.parametrize(("gamma", "C"), [(0.3, 1e3), (3.0, 1e3), (30.0, 1e3), (3.0, "cv")])
def test_few_prototypes_cover_what_is_asked_for(gamma, C):
    covered = [coverage(seed, 40, gamma, C) for seed in range(6)]
    assert np.mean(covered) == pytest.approx(0.9, abs=0.025)
    assert max(covered) < 0.96


def test_a_model_of_all_rows_still_has_intervals():
    assert coverage(0, 300, 0.3, 10.0) == pytest.approx(0.9, abs=0.05)
