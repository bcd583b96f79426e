"""Density functionals: the linear-time value against the double sum."""

import numpy as np
import pytest
from tests.oracles.plugin_bandwidth import functional

from lssvm._core.errors import InvalidInputError
from lssvm.prototypes.bandwidth import DensityFunctionals


def samples():
    rng = np.random.default_rng(3)
    return {
        "normal": rng.standard_normal(300),
        "shifted": 1e6 + rng.standard_normal(300),
        "heavy tails": rng.standard_cauchy(300),
        "skewed": np.exp(1.5 * rng.standard_normal(300)),
        "two far narrow modes": np.append(rng.normal(0, 0.02, 150), rng.normal(50, 0.02, 150)),
        "two points": np.array([0.0, 0.7]),
    }


@pytest.mark.parametrize("name", samples())
@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-7])
def test_relative_error_is_within_the_tolerance(name, tol):
    x = np.sort(samples()[name])
    psi = DensityFunctionals(x, np.full(x.size, 1 / x.size), tol)
    for order in (4, 6):
        for bandwidth in (0.5, 0.06, 2.0):
            expected = functional(x, order, bandwidth)
            assert psi(order, bandwidth) == pytest.approx(expected, rel=tol)


def test_bound_on_the_error_holds():
    rng = np.random.default_rng(0)
    x = np.sort(rng.standard_normal(300))
    psi = DensityFunctionals(x, np.full(300, 1 / 300), 1e-2)
    for order in (4, 6):
        expected = functional(x, order, 0.2)
        psi(order, 0.2)
        value, bound = psi._evaluate(order, 0.2)
        assert abs(value - abs(expected)) <= bound <= 1e-2 * abs(expected)


def test_weights_are_repetitions():
    x = np.array([-1.0, 0.2, 0.5, 3.0])
    counts = np.array([3, 1, 5, 2])
    psi = DensityFunctionals(x, counts / counts.sum(), 1e-9)
    assert psi(4, 0.4) == pytest.approx(functional(np.repeat(x, counts), 4, 0.4), rel=1e-9)


def test_signs_are_those_of_psi():
    x = np.sort(np.random.default_rng(1).standard_normal(200))
    psi = DensityFunctionals(x, np.full(200, 1 / 200), 1e-3)
    assert psi(4, 0.5) > 0 > psi(6, 0.5)


def test_unattainable_accuracy_is_refused_before_a_large_grid_is_made():
    x = np.arange(20_000.0)
    psi = DensityFunctionals(x, np.full(20_000, 1 / 20_000), 1e-3)
    with pytest.raises(InvalidInputError, match="cells"):
        psi(4, 1e-5)
