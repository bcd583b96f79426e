"""The average outer product of gradients and the map that it makes."""

import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError
from lssvm.kernels import RBF, Exponential, Laplacian, Linear, Metric
from lssvm.kernels.metric import IDENTITY, mean_outer_product

rng = np.random.default_rng(0)
X, Z, coef = rng.normal(size=(30, 4)), rng.normal(size=(9, 4)), rng.normal(size=(9, 2))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kernel", [RBF(0.3), Exponential(0.5), Laplacian(0.2)])
def test_sum_of_outer_products(kernel, threads):
    weight = rng.uniform(size=30)
    slopes = kernel.gradient(X, Z, coef)
    expected = sum(
        w / weight.sum() * np.outer(g, g)
        for w, row in zip(weight, slopes, strict=True)
        for g in row
    )
    M = mean_outer_product(kernel, X, Z, coef, weight=weight, threads=threads)
    np.testing.assert_allclose(M, expected, atol=1e-12)
    diagonal = mean_outer_product(kernel, X, Z, coef, weight=weight, shape="diagonal")
    np.testing.assert_allclose(diagonal, np.diag(expected), atol=1e-12)


def test_gradients_are_of_the_inputs():
    """Through a map the gradients are still those with respect to the inputs."""
    A = Metric(rng.normal(size=(4, 4)))
    step = 1e-6
    slopes = np.empty((30, 2, 4))
    for i, move in enumerate(step * np.eye(4)):
        above = Exponential(0.4)(A.apply(X + move), A.apply(Z)) @ coef
        slopes[:, :, i] = (above - Exponential(0.4)(A.apply(X - move), A.apply(Z)) @ coef) / (
            2 * step
        )
    expected = np.einsum("nki,nkj->ij", slopes, slopes) / 30
    M = mean_outer_product(Exponential(0.4), A.apply(X), A.apply(Z), coef, metric=A)
    np.testing.assert_allclose(M, expected, atol=1e-7)


def test_equivariant_under_rotations():
    """Rotated inputs have the rotated metric, and so the same distances."""
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    M = mean_outer_product(Exponential(0.4), X, Z, coef)
    turned = mean_outer_product(Exponential(0.4), X @ Q, Z @ Q, coef)
    np.testing.assert_allclose(turned, Q.T @ M @ Q, atol=1e-12)
    U, V = Metric.of(M).apply(X), Metric.of(turned).apply(X @ Q)
    np.testing.assert_allclose(U @ U.T, V @ V.T, atol=1e-10)


def test_map_squares_to_the_normalised_matrix():
    G = rng.normal(size=(20, 4))
    M = G.T @ G
    np.testing.assert_allclose(Metric.of(M).matrix(4), M / M.diagonal().mean(), atol=1e-12)
    np.testing.assert_allclose(
        Metric.of(M.diagonal()).matrix(4), np.diag(M.diagonal()) / M.diagonal().mean()
    )
    np.testing.assert_array_equal(Metric.of(np.zeros((4, 4))).apply(X), X)
    np.testing.assert_array_equal(IDENTITY.matrix(3), np.eye(3))


def test_unused_features_vanish():
    weights = np.array([[1.0], [0.0], [0.0]])
    M = mean_outer_product(Linear(), X[:, :3], np.eye(3), weights, shape="diagonal")
    np.testing.assert_array_equal(Metric.of(M).map, [np.sqrt(3.0), 0.0, 0.0])


def test_unknown_shape():
    with pytest.raises(InvalidInputError, match="diagonal"):
        mean_outer_product(Linear(), X, Z, coef, shape="round")
