"""Orders of the columns: unbiased, exact in sum, with honest standard errors."""

from __future__ import annotations

import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError
from lssvm.explanations import Contrast, Effort, Expansion, Term, shapley_values
from lssvm.kernels import Exponential, Laplacian, Matern
from tests.oracles.shapley import shapley


def setting(d, kernel=None, seed=0):
    random = np.random.default_rng(seed)
    X, R = random.normal(size=(3, d)), random.normal(size=(4, d))
    Z, coef = random.normal(size=(30, d)), random.normal(size=(30, 2))
    return X, R, Expansion(kernel or Exponential(0.6), Z, coef, np.ones(2))


def function(f):
    return lambda rows: f.evaluate(rows, budget=10**8, threads=1)


def test_few_columns_are_exact_by_all_coalitions():
    X, R, f = setting(5, Matern(0.4))
    found = shapley_values([Term(Contrast.of(X, R), f)])
    np.testing.assert_allclose(found.values, shapley(function(f), X, R), atol=1e-12)
    assert not found.errors.any()


def test_sampled_values_lie_within_their_standard_errors():
    X, R, f = setting(10)
    effort = Effort(n_permutations=20, seed=3)
    found = shapley_values([Term(Contrast.of(X, R), f)], effort=effort)
    truth = shapley(function(f), X, R)
    assert np.all(found.errors > 0)
    z = (found.values - truth) / found.errors
    assert np.abs(z).max() < 5.0
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.6
    sums = found.base + found.values.sum(axis=1)
    np.testing.assert_allclose(sums, function(f)(X), atol=1e-12)


def test_errors_shrink_with_the_root_of_the_orders():
    X, R, f = setting(10)
    few, many = (
        shapley_values([Term(Contrast.of(X, R), f)], effort=Effort(n_permutations=s)).errors.mean()
        for s in (8, 30)
    )
    assert 0.35 < many / few < 0.75


def test_antithetic_orders_are_exact_for_pairs_of_columns():
    """A sum of products of two columns has no more to sample."""
    random = np.random.default_rng(0)
    M = random.normal(size=(9, 9))
    X, R = random.normal(size=(2, 9)), random.normal(size=(3, 9))
    term = Term(Contrast.of(X, R), lambda rows: ((rows @ M) * rows).sum(axis=1, keepdims=True))
    found = shapley_values([term], effort=Effort(n_permutations=2))
    truth = shapley(lambda rows: ((rows @ M) * rows).sum(axis=1, keepdims=True), X, R)
    np.testing.assert_allclose(found.values, truth, atol=1e-10)
    assert found.errors.max() < 1e-10


def test_only_what_is_not_exact_is_sampled():
    X, R, f = setting(10)
    exact = Expansion(Laplacian(0.3), f.basis, f.coef, np.zeros(2))
    rows = Contrast.of(X, R)
    mixed = shapley_values([Term(rows, exact), Term(rows, f)])
    apart = [shapley_values([Term(rows, g)]) for g in (exact, f)]
    np.testing.assert_allclose(mixed.values, apart[0].values + apart[1].values, atol=1e-13)
    np.testing.assert_array_equal(mixed.errors, apart[1].errors)


def test_the_seed_decides():
    X, R, f = setting(10)
    rows = [Term(Contrast.of(X, R), f)]
    a, b, c = (shapley_values(rows, effort=Effort(seed=s)).values for s in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert np.any(a != c)


def test_one_order_is_refused():
    X, R, f = setting(10)
    with pytest.raises(InvalidInputError, match="n_permutations=1 is not usable"):
        shapley_values([Term(Contrast.of(X, R), f)], effort=Effort(n_permutations=1))
