"""Exact models and their leave-one-out outputs against dense solves and refits."""

import numpy as np
import pytest
from tests.oracles.local import dense_solution

from lssvm._core.errors import NotPositiveDefiniteError
from lssvm.local.leaf import EqualRows
from lssvm.solvers import solve_exact
from lssvm.solvers.exact import ALONE, ExactPath, Repeats, _solve_blocks

rng = np.random.default_rng(0)


def problem(n=40, k=2):
    X = rng.normal(size=(n, 3))
    K = np.exp(-0.3 * np.sqrt(((X[:, None] - X) ** 2).sum(-1)))
    return K, rng.normal(size=(n, k)), rng.uniform(0.3, 3.0, n)


def refit_without(K, Y, noise, group):
    keep = np.setdiff1d(np.arange(len(K)), group)
    coef, intercept = dense_solution(K[np.ix_(keep, keep)], Y[keep], noise[keep])
    return K[np.ix_(group, keep)] @ coef + intercept


@pytest.mark.parametrize("n", [2, 5, 40, 300])
def test_solution(n):
    K, Y, weight = problem(n)
    noise = 1 / (7.0 * weight)
    coef, intercept = dense_solution(K, Y, noise)
    for fit in (solve_exact(K.copy(), Y, noise), ExactPath.of(K, Y, weight).at(7.0)):
        np.testing.assert_allclose(fit.coef, coef, atol=1e-10)
        np.testing.assert_allclose(fit.intercept, intercept, atol=1e-10)


@pytest.mark.parametrize("order", ["C", "F"])
def test_left_out_rows(order):
    K, Y, weight = problem()
    noise = 1 / (50.0 * weight)
    expected = np.vstack([refit_without(K, Y, noise, np.array([i])) for i in range(len(K))])
    fit = solve_exact(np.array(K, order=order), Y, noise)
    np.testing.assert_allclose(fit.left_out, expected, atol=1e-9)
    np.testing.assert_allclose(ExactPath.of(K, Y, weight).at(50.0).left_out, expected, atol=1e-9)


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_left_out_of_folds(grouped):
    """Rows of a fold by the model without it, others by the model without the fold and them."""
    K, Y, weight = problem()
    labels = np.r_[0, 0, 0, 1, 1, np.arange(2, 37)] if grouped else np.arange(40)
    folds = np.array([[0, 1, 2, 39], [10, 11, 3, 20]])  # the second takes a row of a group
    Cs = np.array([0.1, 50.0])
    found = ExactPath.of(K, Y, weight, Repeats.of(labels)).left_out_of_folds(Cs, [folds])[0]
    assert found.shape == (2, 2, 40, 2)
    for C, outputs in zip(Cs, found, strict=True):
        noise = 1 / (C * weight)
        for fold, shown in zip(folds, outputs, strict=True):
            np.testing.assert_allclose(shown[fold], refit_without(K, Y, noise, fold), atol=1e-9)
            for i in np.setdiff1d(np.arange(40), fold):
                own = np.union1d(fold, np.flatnonzero(labels == labels[i]))
                expected = refit_without(K, Y, noise, own)[own == i][0]
                np.testing.assert_allclose(shown[i], expected, atol=1e-9)


def test_nothing_is_said_where_no_row_is_left():
    K, Y, weight = problem(3)
    alone = ExactPath.of(K, Y, weight).left_out_of_folds(np.ones(1), [np.array([[0, 1]])])[0][0, 0]
    np.testing.assert_allclose(alone, [Y[2], Y[2], [0, 0]], atol=1e-12)
    paired = ExactPath.of(K, Y, weight, Repeats.of(np.array([0, 1, 1])))
    np.testing.assert_array_equal(
        paired.left_out_of_folds(np.ones(1), [np.array([[0]])])[0][0, 0, 1:], np.zeros((2, 2))
    )
    np.testing.assert_array_equal(
        paired.left_out_of_folds(np.ones(1), [np.array([[0, 1, 2]])])[0], np.zeros((1, 1, 3, 2))
    )


def test_left_out_groups():
    K, Y, weight = problem()
    labels = np.r_[np.zeros(3), np.ones(4), np.arange(2, 35)][rng.permutation(40)]
    repeats = Repeats.of(labels)
    assert sorted(len(group) for group in repeats.members) == [3, 4]
    noise = 1 / (5.0 * weight)
    expected = np.empty_like(Y)
    for label in np.unique(labels):
        group = np.flatnonzero(labels == label)
        expected[group] = refit_without(K, Y, noise, group)
    np.testing.assert_allclose(
        solve_exact(K.copy(), Y, noise, repeats).left_out, expected, atol=1e-9
    )
    path = ExactPath.of(K, Y, weight, repeats)
    np.testing.assert_allclose(path.at(5.0).left_out, expected, atol=1e-9)


def test_equal_rows_do_not_leak():
    """The output of a row whose copy stays in the model knows its target; together they do not."""
    X = np.repeat(rng.normal(size=(30, 2)), 2, axis=0)[:45]
    X = np.vstack([X, rng.normal(size=(30, 2))])
    y = np.repeat(rng.normal(size=30), 2)[:45]
    y = np.r_[y, rng.normal(size=30)][:, None]
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1) * 5)
    leaking = solve_exact(K.copy(), y, np.full(75, 1e-3)).left_out
    honest = solve_exact(K.copy(), y, np.full(75, 1e-3), EqualRows.among(X, y).repeats()).left_out
    twins = slice(0, 44)
    assert np.mean((leaking[twins] - y[twins]) ** 2) < 0.1
    assert np.mean((honest[twins] - y[twins]) ** 2) > 0.5


def test_equal_rows_are_observations_where_targets_of_a_few_categories_differ():
    X, y = rng.integers(0, 2, (50, 2)).astype(float), rng.normal(size=(50, 1))
    assert EqualRows.among(X, y).alone and EqualRows.among(X, y).repeats() is ALONE
    copies = X @ [[1.0], [2.0]]
    assert len(EqualRows.among(X, copies).repeats().members) == 4
    few = np.vstack([rng.normal(size=(9, 2)), np.zeros((2, 2))])
    assert len(EqualRows.among(few, y[:11]).repeats().members) == 1
    minus = np.array([[0.0], [-0.0], [1.0], [2.0]])
    assert [group.tolist() for group in EqualRows.among(minus, y[:4]).repeats().members] == [[0, 1]]


def test_weights_are_repeats():
    """A weight of two is the row twice, left out together."""
    K, Y, _ = problem(12, 1)
    twice = np.r_[np.arange(12), [3, 3, 7]]
    weight = np.ones(12)
    weight[3], weight[7] = 3, 2
    weighted = solve_exact(K.copy(), Y, 1 / (4.0 * weight))
    repeated = solve_exact(
        K[np.ix_(twice, twice)].copy(), Y[twice], np.full(15, 0.25), Repeats.of(twice)
    )
    np.testing.assert_allclose(repeated.left_out[:12], weighted.left_out, atol=1e-9)
    np.testing.assert_allclose(repeated.intercept, weighted.intercept, atol=1e-10)


def test_one_row_and_constant_targets():
    fit = solve_exact(np.ones((1, 1)), np.array([[3.0]]), np.ones(1))
    assert fit.intercept[0] == pytest.approx(3.0) and fit.left_out[0, 0] == 0.0
    K, _, _ = problem(20)
    constant = solve_exact(K, np.full((20, 1), -1.0), np.ones(20))
    np.testing.assert_allclose(constant.left_out, -1.0)
    np.testing.assert_allclose(constant.coef, 0.0, atol=1e-12)


def test_indefinite():
    with pytest.raises(NotPositiveDefiniteError, match="smaller C"):
        solve_exact(np.array([[1.0, 5.0], [5.0, 1.0]]), np.ones((2, 1)), np.full(2, 1e-3))


@pytest.mark.parametrize("grouped", [False, True])
def test_left_out_rows_of_many_C(grouped):
    K, Y, weight = problem(30)
    repeats = Repeats.of(np.arange(30) // 3 * (np.arange(30) < 21)) if grouped else ALONE
    path = ExactPath.of(K, Y, weight, repeats)
    Cs = np.array([0.01, 1.0, 300.0])
    for C, left_out in zip(Cs, path.left_out(Cs), strict=True):
        np.testing.assert_allclose(left_out, path.at(C).left_out, atol=1e-10)
        alone = next(i for i in range(30) if not any(i in g for g in repeats.members) or grouped)
        group = next((g for g in repeats.members if alone in g), np.array([alone]))
        expected = refit_without(K, Y, 1 / (C * weight), group)
        np.testing.assert_allclose(left_out[group], expected, atol=1e-8)


def test_a_condition_that_the_pivots_show_is_refused():
    A = np.diag([1.0, 1e-3, 1e-3])
    inverse = np.diagonal(np.linalg.inv(A)).sum()  # 2,001
    Y, noise = np.ones((3, 1)), np.full(3, 1e-9)
    solve_exact(A.astype(np.float32), Y, noise, most=1.01 * inverse)
    with pytest.raises(NotPositiveDefiniteError, match="condition of 2e\\+03"):
        solve_exact(A.astype(np.float32), Y, noise, most=0.99 * inverse)


def test_groups_that_are_singular_have_the_solution_of_least_norm():
    random = np.random.default_rng(0)
    A = random.normal(size=(3, 2, 2))
    regular, right = A @ A.transpose(0, 2, 1) + np.eye(2), random.normal(size=(3, 2, 1))
    expected = np.array([np.linalg.inv(B) @ r for B, r in zip(regular, right, strict=True)])
    np.testing.assert_allclose(_solve_blocks(regular, right), expected, rtol=1e-12)
    singular = np.concatenate([regular[:2], [np.ones((2, 2))]])
    expected[2] = right[2].sum() / 4.0
    np.testing.assert_allclose(_solve_blocks(singular, right), expected, rtol=1e-12)
