"""The L0 reduction against the plain loop over its printed system."""

import numpy as np
import pytest
from tests.oracles.dual import l0_loop, rbf

from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm.reductions import L0, Prune
from lssvm.reductions.l0 import L0System, reduce_l0, strongest
from lssvm.solvers.moments import Moments

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 2))
Q = rbf(X, X[:15], 0.5)
y = np.sin(2 * X[:, 0])
weight = rng.uniform(0.5, 2.0, size=200)


@pytest.mark.parametrize("iterations", [1, 2, 5])
@pytest.mark.parametrize("weights", [np.ones(200), weight], ids=["plain", "weighted"])
def test_equals_the_printed_loop(iterations, weights):
    start = rng.normal(size=15)
    alpha, b = l0_loop(Q, y, 3.0, start, iterations, weights)
    settings = L0(max_iter=iterations, tol=0.0, threshold=0.0)
    got = reduce_l0(Moments.of(Q, y[:, None], weights), start[:, None], 3.0, settings)
    full = np.zeros(15)
    full[got.support] = got.coef[:, 0]
    np.testing.assert_allclose(full, alpha, atol=1e-7)
    np.testing.assert_allclose(got.intercept, b, atol=1e-7)
    assert got.iterations == iterations


def test_irrelevant_functions_leave():
    Z = rng.normal(size=(300, 30))
    target = 2.0 * Z[:, [3]] - Z[:, [7]] + 5.0
    got = reduce_l0(Moments.of(Z, target, np.ones(300)), np.ones((30, 1)), 100.0)
    np.testing.assert_array_equal(got.support, [3, 7])
    np.testing.assert_allclose(got.coef[:, 0], [2.0, -1.0], atol=1e-2)


def test_joint_sparsity():
    Z = rng.normal(size=(300, 30))
    target = np.column_stack([Z[:, 3], Z[:, 7]])
    got = reduce_l0(Moments.of(Z, target, np.ones(300)), np.ones((30, 2)), 100.0)
    np.testing.assert_array_equal(got.support, [3, 7])


def test_nothing_left_keeps_one_and_warns():
    with pytest.warns(NumericalWarning, match="dropped every support vector"):
        got = reduce_l0(Moments.of(Q, np.zeros((200, 1)), np.ones(200)), np.ones((15, 1)), 1.0)
    assert len(got.support) == 1


@pytest.mark.parametrize("settings", [{"step": 0.0}, {"step": 1.0}, {"level": 0.0}, {"level": 2.0}])
def test_bad_pruning_settings(settings):
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        Prune(**settings)
    with pytest.raises(InvalidInputError, match="'previous'"):
        Prune(against="before")


def test_the_strongest_function_explains_most_alone_whatever_its_unit():
    rng = np.random.default_rng(3)
    y = rng.normal(size=(200, 1))
    Q = np.column_stack(
        [1e3 * rng.normal(size=200), 1e-3 * y[:, 0], y[:, 0] + rng.normal(size=200)]
    )
    Q = Q + 5.0  # an intercept takes that up
    explained = [np.corrcoef(column, y[:, 0])[0, 1] ** 2 for column in Q.T]
    assert np.argmax(explained) == 1
    assert strongest([L0System.of(Moments.of(Q, y), np.array([0]))]) == 1


def test_constant_functions_explain_nothing_however_heavy_the_rows():
    """Rounding of their products with the targets grows without end otherwise."""
    flat = np.full((40, 2), 0.7)
    heavy = Moments.of(flat, rng.normal(size=(40, 1)), 1e9 * rng.uniform(1.0, 2.0, 40))
    assert np.all(L0System.of(heavy, np.array([0])).c == 0.0)
    with pytest.warns(NumericalWarning, match="dropped every support vector"):
        got = reduce_l0(heavy, np.full((2, 1), 1e10), 10.0)
    assert np.all(np.isfinite(got.coef)) and np.all(np.isfinite(got.intercept))
