"""Orders of the columns: unbiased, exact in sum, with honest standard errors."""

from __future__ import annotations

import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError
from lssvm.explanations import Contrast, Effort, Expansion, Term, shapley_values
from lssvm.kernels import RBF, Exponential, Laplacian, Matern
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


def test_background_rows_and_orders_are_as_many_as_the_work_allows(monkeypatch):
    rng = np.random.default_rng(0)
    X, R = rng.normal(size=(4, 6)), rng.normal(size=(100, 6))
    term = Term(Contrast.of(X, R), lambda rows: rows[:, :1] * rows[:, 1:2], 500)
    asked = Effort(None, bound_background=True)
    seen = []
    for work in (1e12, 20 * term.work(False), 1.0):
        monkeypatch.setattr("lssvm.explanations.expansion.WORK", work)
        orders, (bounded,) = asked.bounded([term], False)
        seen.append((orders, len(bounded.rows.background)))
        found = shapley_values([term], effort=asked)
        exact = X[:, 0] * X[:, 1] - found.base[0]
        np.testing.assert_allclose(found.values.sum(axis=(1, 2)), exact, atol=1e-12)
    assert seen == [(10, 100), (2, 10), (2, 10)]
    assert Effort(7).bounded([term], False)[0] == 7
    assert len(Effort(7).bounded([term], False)[1][0].rows.background) == 100


def test_progress_is_reported_to_the_end():
    rng = np.random.default_rng(0)
    X, R = rng.normal(size=(9, 3)), rng.normal(size=(20, 3))
    basis, coef = rng.normal(size=(5, 3)), rng.normal(size=(5, 1))
    for kernel in (RBF(0.1), Matern(0.1)):
        term = Term(Contrast.of(X, R), Expansion(kernel, basis, coef, np.zeros(1)))
        seen: list = []
        effort = Effort(2, report=lambda *done, seen=seen: seen.append(done))
        shapley_values([term], effort=effort)
        assert seen[-1][0] == seen[-1][1] and len(seen) == len(set(seen))
