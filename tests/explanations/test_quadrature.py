"""Nodes of the rule: enough for the error that is promised, and not many more."""

from __future__ import annotations

import numpy as np
import pytest

from lssvm.explanations.expansion import n_nodes, rule


def exact_integral(h):
    """Integrate prod (1 + tau h_l) over [-1, 1] by its coefficients."""
    coefficients = np.array([1.0])
    for one in h:
        coefficients = np.convolve(coefficients, [1.0, one])
    return sum(2.0 * c / (k + 1) for k, c in enumerate(coefficients) if k % 2 == 0)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 30, 60])
@pytest.mark.parametrize("size", [0.02, 0.3, 1.0])
def test_the_rule_integrates_products_to_rounding(d, size):
    random = np.random.default_rng(d)
    h = random.uniform(-size, size, d)
    if size == 1.0:
        h = np.sign(h)  # the hardest: factors that vanish at an end
    nodes, weights = rule(n_nodes(d + 1, float(np.abs(h).mean())))
    found = weights @ np.prod(1.0 + nodes[:, None] * h, axis=1)
    largest = np.prod(1.0 + np.abs(h))
    assert abs(found - exact_integral(h)) <= 20 * 2.0**-52 * largest


@pytest.mark.parametrize("d", [1, 2, 5, 10, 51, 200, 1000])
def test_there_are_never_more_nodes_than_an_exact_rule_needs(d):
    assert n_nodes(d) <= d // 2 + 2
    assert n_nodes(d) % 2 == 0  # none at zero
    assert n_nodes(d, 0.01) <= n_nodes(d)


def test_work_grows_less_than_quadratically_in_the_columns():
    work = [d * n_nodes(d) for d in (50, 100, 200, 400, 800)]
    growth = np.log2(np.divide(work[1:], work[:-1]))
    assert np.all(growth <= 2.0)
    assert growth[-1] < 1.6
