"""Exact Shapley values against all coalitions, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError
from lssvm.explanations import (
    Contrast,
    Effort,
    Expansion,
    Term,
    expansion,
    factor_exponents,
    shapley_values,
)
from lssvm.explanations.expansion import product_values
from lssvm.kernels import RBF, Exponential, Laplacian, Linear, Metric, NonStationary, Precomputed
from tests.oracles.shapley import interactions, shapley

KERNELS = {
    "rbf": lambda d: RBF(0.5),
    "rbf narrow": lambda d: RBF(30.0),
    "one gamma each": lambda d: RBF(np.linspace(0.0, 2.0, d)),
    "laplacian": lambda d: Laplacian(0.7),
    "laplacian, one gamma each": lambda d: Laplacian(np.linspace(0.0, 2.0, d)),
    "nonstationary": lambda d: NonStationary(0.5),
    "linear": lambda d: Linear(),
}


def problem(d, m=40, n=2, n_background=3, k=2, seed=0):
    random = np.random.default_rng(seed)
    X, R = random.normal(size=(n, d)), random.normal(size=(n_background, d))
    R[0, : d // 2] = X[0, : d // 2]  # columns that a row and a background row share
    return X, R, random.normal(size=(m, d)), random.normal(size=(m, k))


def value(f, X):
    return f.evaluate(X, budget=10**8, threads=1)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("d", [1, 2, 3, 6, 10])
def test_values_are_those_of_all_coalitions(kernel, d):
    X, R, Z, coef = problem(d)
    f = Expansion(KERNELS[kernel](d), Z, coef, np.array([1.0, -2.0]))
    found = shapley_values([Term(Contrast.of(X, R), f)])
    truth = shapley(lambda rows: value(f, rows), X, R)
    np.testing.assert_allclose(found.values, truth, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), value(f, X), atol=1e-12)
    assert not found.errors.any()


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_groups_of_features_are_present_or_absent_together(kernel):
    X, R, Z, coef = problem(7)
    owner = np.array([0, 2, 1, 2, 4, 0, 4])  # column 3 has no feature
    f = Expansion(KERNELS[kernel](7), Z, coef, np.zeros(2))
    found = shapley_values([Term(Contrast.of(X, R, owner, 6), f)])
    truth = shapley(lambda rows: value(f, rows), X, R, [[0, 5], [2], [1, 3], [], [4, 6], []])
    np.testing.assert_allclose(found.values, truth, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kernel", ["rbf", "one gamma each", "laplacian", "linear"])
def test_interactions_are_those_of_all_coalitions(kernel):
    X, R, Z, coef = problem(5)
    f = Expansion(KERNELS[kernel](5), Z, coef, np.zeros(2))
    found = shapley_values([Term(Contrast.of(X, R), f)], interactions=True)
    pairs = 2.0 * found.interactions
    own = np.arange(5)
    pairs[:, own, own] = 0.0
    truth = interactions(lambda rows: value(f, rows), X, R)
    np.testing.assert_allclose(pairs, truth, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.interactions.sum(axis=2), found.values, atol=1e-12)


def test_a_diagonal_metric_stays_a_product():
    X, R, Z, coef = problem(6)
    metric = Metric(np.array([0.0, 0.5, 1.0, 2.0, 0.1, 1.0]))
    f = Expansion(Laplacian(0.4), metric.apply(Z), coef, np.zeros(2), metric)
    assert f.exact
    found = shapley_values([Term(Contrast.of(X, R), f)])
    truth = shapley(lambda rows: value(f, rows), X, R)
    np.testing.assert_allclose(found.values, truth, rtol=0, atol=1e-10)


def test_a_full_metric_is_no_product_but_a_linear_kernel_stays_linear():
    X, R, Z, coef = problem(4)
    metric = Metric(np.random.default_rng(1).normal(size=(4, 4)))
    assert not Expansion(RBF(1.0), Z, coef, np.zeros(2), metric).exact
    assert not Expansion(Exponential(1.0), Z, coef, np.zeros(2)).exact
    f = Expansion(Linear(), metric.apply(Z), coef, np.zeros(2), metric)
    found = shapley_values([Term(Contrast.of(X, R), f)])
    truth = shapley(lambda rows: value(f, rows), X, R)
    np.testing.assert_allclose(found.values, truth, rtol=0, atol=1e-10)


def test_a_precomputed_kernel_is_linear_in_the_columns_of_its_matrix():
    random = np.random.default_rng(2)
    K, R, coef = random.random((2, 5)), random.random((3, 5)), random.normal(size=(3, 1))
    f = Expansion(Precomputed(), np.array([0, 3, 4]), coef, np.zeros(1))
    found = shapley_values([Term(Contrast.of(K, R), f)])
    truth = shapley(lambda rows: value(f, rows), K, R)
    np.testing.assert_allclose(found.values, truth, rtol=0, atol=1e-12)


def test_terms_add_up():
    X, R, Z, coef = problem(5)
    one, two = (Expansion(k, Z, coef, np.ones(2)) for k in (RBF(0.3), Laplacian(0.2)))
    rows = Contrast.of(X, R)
    both = shapley_values([Term(rows, one), Term(rows, two)])
    apart = [shapley_values([Term(rows, f)]) for f in (one, two)]
    np.testing.assert_allclose(both.values, apart[0].values + apart[1].values, atol=1e-14)
    np.testing.assert_allclose(both.base, apart[0].base + apart[1].base, atol=1e-14)


def test_rows_that_are_their_background_have_no_values():
    X, _, Z, coef = problem(4)
    f = Expansion(RBF(1.0), Z, coef, np.zeros(2))
    assert not shapley_values([Term(Contrast.of(X[:1], X[:1]), f)]).values.any()


def test_many_columns_neither_overflow_nor_lose_the_sum():
    random = np.random.default_rng(3)
    d, m = 1500, 20
    X, R, Z = (random.normal(size=(n, d)) for n in (2, 2, m))
    for gamma in (1e-4, 1.0 / d, 0.05):
        f = Expansion(RBF(gamma), Z, np.ones((m, 1)), np.zeros(1))
        found = shapley_values([Term(Contrast.of(X, R), f)])
        assert np.all(np.isfinite(found.values))
        scale = np.abs(value(f, X)).max()
        missing = found.base + found.values.sum(axis=1) - value(f, X)
        assert np.abs(missing).max() <= 1e-11 * max(scale, 1e-300)


def test_rows_far_from_all_support_vectors_are_explained_too():
    X, R = np.full((1, 3), 100.0), np.zeros((1, 3))
    f = Expansion(RBF(1.0), np.full((1, 3), 0.1), np.ones((1, 1)), np.zeros(1))
    found = shapley_values([Term(Contrast.of(X, R), f)])
    np.testing.assert_allclose(found.values[0, :, 0], -value(f, R)[0, 0] / 3, rtol=1e-12)


def test_threads_and_blocks_do_not_change_the_values(monkeypatch):
    X, R, Z, coef = problem(6, m=600, n=9, n_background=20)
    f = Expansion(RBF(0.2), Z, coef, np.zeros(2))
    terms = [Term(Contrast.of(X, R), f)]
    one = shapley_values(terms)
    two = shapley_values(terms, effort=Effort(threads=3))
    np.testing.assert_array_equal(one.values, two.values)
    monkeypatch.setattr(expansion, "_ROOM", 64)
    monkeypatch.setattr(expansion, "_WIDTH", 70)
    monkeypatch.setattr(expansion, "_CHUNK", 4)
    np.testing.assert_allclose(shapley_values(terms).values, one.values, atol=1e-13)


def test_work_is_linear_in_rows_background_rows_and_support_vectors():
    seen = []
    exponents = factor_exponents(RBF(0.1))

    def counting(x, Z):
        seen.append(Z.size)
        return exponents(x, Z)

    def work(n, n_background, m):
        seen.clear()
        X, R, Z, coef = problem(5, m=m, n=n, n_background=n_background, k=1)
        product_values(counting, Contrast.of(X, R), Z, coef)
        return sum(seen)

    base = work(8, 16, 512)
    assert work(16, 16, 512) == 2 * base
    assert work(8, 32, 512) == 2 * base
    assert work(8, 16, 1024) == 2 * base


def test_what_cannot_be_explained_is_said():
    X, R, Z, coef = problem(4)
    f = Expansion(Exponential(1.0), Z, coef, np.zeros(2))
    with pytest.raises(InvalidInputError, match="interactions=True needs a model that is exact"):
        shapley_values([Term(Contrast.of(X, R), f)], interactions=True)
    with pytest.raises(InvalidInputError, match="no background row"):
        Contrast.of(X, R[:0])
    with pytest.raises(InvalidInputError, match="no common features"):
        Contrast.of(X, R[:, :2])
