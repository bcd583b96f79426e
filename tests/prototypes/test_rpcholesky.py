"""Randomly pivoted Cholesky: distribution of the pivots, quality, rank."""

import numpy as np
import pytest
from tests.oracles import prototypes as oracle

from lssvm._core.errors import NumericalWarning
from lssvm.prototypes import RPCholesky, select_prototypes


class Gaussian:
    def __call__(self, X, Z):
        return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2))

    def diag(self, X):
        return np.ones(X.shape[0])


class Linear:
    def __call__(self, X, Z):
        return X @ Z.T

    def diag(self, X):
        return (X**2).sum(axis=1)


def test_pivots_are_distributed_as_one_by_one_draws():
    X = np.array([[0.0], [0.35], [0.75], [1.5]])
    weight = np.array([30.0, 1.0, 1.0, 2.0])
    runs = 1200
    rng = np.random.default_rng(0)
    counts = np.zeros((4, 4))
    for _ in range(runs):
        first, second = select_prototypes(
            X, 2, "rpcholesky", sample_weight=weight, kernel=Gaussian(), random_state=rng
        ).indices
        counts[first, second] += 1
    expected = oracle.probabilities_of_two_pivots(Gaussian()(X, X), weight)
    np.testing.assert_allclose(counts / runs, expected, atol=0.04)


def test_residual_is_close_to_the_best_and_below_that_of_chance():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 0.3, (400, 2)), rng.uniform(-4, 4, (100, 2))])
    K = Gaussian()(X, X)
    best = np.linalg.eigvalsh(K)[:-100].sum()

    def mean_trace(rule):
        chosen = [
            select_prototypes(X, 100, rule, kernel=Gaussian(), random_state=seed).indices
            for seed in range(4)
        ]
        return np.mean([oracle.residual_trace(K, indices) for indices in chosen])

    pivoted = mean_trace("rpcholesky")
    assert pivoted < 10 * best
    assert pivoted < 0.1 * mean_trace("random")


def test_prefix_is_a_selection_of_fewer():
    X = np.random.default_rng(1).uniform(-3, 3, (300, 2))
    K = Gaussian()(X, X)
    chosen = select_prototypes(X, 60, "rpcholesky", kernel=Gaussian(), random_state=0).indices
    traces = [oracle.residual_trace(K, chosen[:k]) for k in (10, 30, 60)]
    assert traces[0] > 2 * traces[1] > 4 * traces[2] > 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_low_rank_gives_fewer_prototypes_with_a_warning(dtype):
    X = np.random.default_rng(0).standard_normal((100, 3)).astype(dtype)
    with pytest.warns(NumericalWarning, match="reduced to 3"):
        chosen = select_prototypes(X, 10, "rpcholesky", kernel=Linear(), random_state=0)
    K = X.astype(np.float64) @ X.T.astype(np.float64)
    assert oracle.residual_trace(K, chosen.indices) < 1e-10 * np.trace(K)


def test_rows_beyond_the_limit_are_sampled():
    X = np.random.default_rng(0).standard_normal((500, 2))
    seen = []

    class Watched(Gaussian):
        def diag(self, X):
            seen.append(X.shape[0])
            return super().diag(X)

    chosen = select_prototypes(X, 20, RPCholesky(max_rows=80), kernel=Watched(), random_state=0)
    assert seen == [80]
    assert np.unique(chosen.indices).size == 20
    assert chosen.indices.max() > 80
