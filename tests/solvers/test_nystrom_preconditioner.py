"""The Nystrom preconditioner against dense inverses, and what it saves."""

import numpy as np
import pytest
from tests.oracles.iterative import nystrom_inverse, rbf

from lssvm._core.errors import InvalidInputError, MemoryBudgetError, NotPositiveDefiniteError
from lssvm.kernels import RBF, Linear, Precomputed
from lssvm.solvers.base import DualSystem, Status
from lssvm.solvers.cg import ConjugateGradient, default_landmarks, nystrom_preconditioner


def rows(n=80, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_inverse_of_the_approximation(weighted):
    X = rows()
    weights = np.random.default_rng(1).uniform(0.2, 3, len(X)) if weighted else np.ones(len(X))
    root = np.sqrt(weights)
    system = DualSystem(RBF(0.5), X, X, C=5.0, root_weight=root if weighted else None)
    P = nystrom_preconditioner(system, n_landmarks=20, random_state=3)
    index = np.sort(np.random.default_rng(3).choice(len(X), size=20, replace=False))
    K = root[:, None] * rbf(X, X, 0.5) * root
    expected = nystrom_inverse(K, index, P.delta)
    np.testing.assert_allclose(P(np.eye(len(X))), expected, rtol=1e-6, atol=1e-8)
    left_out = K - (np.linalg.inv(expected) - P.delta * np.eye(len(X)))
    assert P.delta == pytest.approx(1 / 5.0 + np.trace(left_out) / len(X), rel=1e-6)


def test_all_rows_as_landmarks_invert_the_matrix():
    X = rows(n=40)
    system = DualSystem(RBF(0.5), X, X, C=5.0)
    P = nystrom_preconditioner(system, n_landmarks=40)
    H = rbf(X, X, 0.5) + np.eye(40) / 5.0
    np.testing.assert_allclose(P(H), np.eye(40), atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_repeated_rows_and_low_rank_do_no_harm(dtype):
    X = np.repeat(rows(n=20), 4, axis=0).astype(dtype)
    for kernel in (RBF(0.5), Linear()):
        system = DualSystem(kernel, X, X, C=10.0)
        P = nystrom_preconditioner(system, n_landmarks=60)
        V = np.random.default_rng(0).standard_normal((len(X), 2))
        # 60 of 80 rows meet every distinct one, so the approximation is exact.
        np.testing.assert_allclose(
            P(system.product(V)), V, atol=1e-6 if dtype == np.float64 else 1e-2
        )


def test_it_takes_a_fifth_of_the_passes_where_the_matrix_is_ill_conditioned():
    X = rows(n=600, d=4)
    Y = np.sin(X[:, :1]) + 0.1 * rows(n=600, d=1, seed=5)
    system = DualSystem(RBF(0.1), X, X, C=1e3)
    plain = ConjugateGradient(max_iter=5000)
    helped = ConjugateGradient(preconditioner="nystrom", n_landmarks=150)
    first = plain.solve(plain.factorise(system), Y)
    second = helped.solve(helped.factorise(system), Y)
    assert first.status is second.status is Status.SOLVED
    assert 5 * second.iterations <= first.iterations
    np.testing.assert_allclose(second.alpha, first.alpha, atol=1e-3 * np.abs(first.alpha).max())


def test_landmarks_follow_the_random_state():
    X = rows()
    system = DualSystem(RBF(0.5), X, X, C=5.0)
    first, again = (nystrom_preconditioner(system, 10, random_state=7).B for _ in range(2))
    other = nystrom_preconditioner(system, 10, random_state=8).B
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_the_default_number_keeps_to_rows_and_budget():
    def number(n, **options):
        X = np.zeros((n, 1), options.pop("dtype", np.float64))
        return default_landmarks(DualSystem(RBF(1.0), X, X, C=1.0, **options))

    assert number(50) == 50
    assert number(40_000) == 3200
    small = number(40_000, budget=10**8)
    assert small < 3200
    assert 40_000 * small * 8 + 24 * small**2 <= 0.7 * 10**8
    assert 40_000 * (small + 2) * 8 + 24 * (small + 2) ** 2 > 0.7 * 10**8
    assert number(40_000, budget=10**8, dtype=np.float32) < small
    assert number(40_000, budget=1) == 1


def test_a_number_that_does_not_fit_is_refused():
    X = rows()
    with pytest.raises(MemoryBudgetError, match="Lower n_landmarks"):
        nystrom_preconditioner(DualSystem(RBF(0.5), X, X, C=5.0, budget=1000), 10)
    for number in (0, 81):
        with pytest.raises(InvalidInputError, match=f"n_landmarks={number} is"):
            nystrom_preconditioner(DualSystem(RBF(0.5), X, X, C=5.0), number)


def test_an_indefinite_kernel_is_refused():
    K = np.array([[1.0, 3.0], [3.0, 1.0]])
    with pytest.raises(NotPositiveDefiniteError, match="landmarks"):
        nystrom_preconditioner(DualSystem(Precomputed(), K, np.arange(2), C=1.0), 2)
