"""The average outer product of gradients and the map that it makes."""

import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError
from lssvm.kernels import RBF, Exponential, Laplacian, Linear, Metric
from lssvm.kernels.metric import (
    IDENTITY,
    Steps,
    gradient_rows,
    low_rank,
    mean_outer_product,
    one_sided_slopes,
    squared_slopes,
)

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


KINDS = {"rbf": RBF, "laplacian": Laplacian, "exponential": Exponential}


def tied(gap, n=40):
    """Return rows with a feature of four values, one of two, and two that are continuous."""
    own = np.random.default_rng(3)
    levels = gap * np.array([0.0, 1.0, 1.5, 4.0])
    first, second = own.choice(levels, n), own.choice([-gap, gap], n)
    Z = np.column_stack([first, own.normal(size=n), second, own.normal(size=n)])
    return Z, own.normal(size=(n, 2))


def moved_slopes(kernel, Z, coef, j):
    """Return what the expansion without a row changes by to the next values, over the distance."""
    levels = np.unique(Z[:, j])
    slopes = np.empty((2, len(Z), coef.shape[1]))
    for i, row in enumerate(Z):
        others = np.delete(np.arange(len(Z)), i)
        at = int(np.searchsorted(levels, row[j]))
        neighbours = [levels[p] for p in (at + 1, at - 1) if 0 <= p < len(levels)]
        for side in range(2):
            to = row.copy()
            to[j] = neighbours[min(side, len(neighbours) - 1)]
            K = kernel(np.array([row, to]), Z[others])
            slopes[side, i] = (K[1] - K[0]) @ coef[others] / (to[j] - row[j])
    return slopes


@pytest.mark.parametrize(
    ("kind", "gap", "tolerance"),
    [("rbf", 1.0, 1e-12), ("laplacian", 1.0, 1e-12), ("exponential", 1e-4, 5e-5)],
)
def test_slopes_at_ties_are_differences_without_the_row(kind, gap, tolerance):
    kernel, (Z, coef) = KINDS[kind](0.4), tied(gap)
    steps = Steps.among(Z)
    assert steps is not None
    assert steps.features.tolist() == [0, 2]
    some = np.arange(0, 40, 3)
    gradient = kernel.gradient(Z[some], Z, coef)
    sides = one_sided_slopes(kernel, Z[some], Z, coef, some, steps)
    for j in (0, 2):
        expected = moved_slopes(kernel, Z, coef, j)[:, some]
        np.testing.assert_allclose(np.array(sides)[:, :, :, j], expected, atol=tolerance)
    for side in sides:  # other features keep their derivative
        np.testing.assert_allclose(side[:, :, [1, 3]], gradient[:, :, [1, 3]], rtol=1e-12)
    assert np.abs(sides[0][:, :, 0] - sides[1][:, :, 0]).max() > 10 * tolerance


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slopes_to_a_rare_value_far_away_are_finite(dtype):
    """Kernel values between the levels are rounded to 0, by a factor that would be infinite."""
    Z = np.column_stack([np.repeat([0.0, 55.0], [39, 1]), tied(1.0)[0][:, 1]]).astype(dtype)
    steps = Steps.among(Z)
    assert steps is not None
    kernel, coef = RBF(0.4), tied(1.0)[1].astype(dtype)
    slopes = one_sided_slopes(kernel, Z, Z, coef, np.arange(40), steps)[0][:, :, 0]
    near = kernel(Z, Z) - np.eye(40)  # what a row moves away from
    np.testing.assert_allclose(slopes, -(near @ coef) / 55.0, atol=1e-6)


def test_ties_make_a_feature_discrete():
    Z = np.column_stack([np.arange(120.0) % v for v in (1, 2, 25, 26)] + [np.arange(120.0)])
    steps = Steps.among(Z)
    assert steps is not None
    assert steps.features.tolist() == [1, 2]
    np.testing.assert_array_equal(steps.levels[0], [0.0, 1.0])
    assert Steps.among(Z[:, [0, 3, 4]]) is None
    assert Steps.among(Z[:7]) is None  # fewer than four rows a value


def test_the_outer_product_is_that_of_both_sides():
    kernel, (Z, coef) = Laplacian(0.4), tied(1.0)
    own, weight = np.arange(40), np.linspace(1.0, 2.0, 40)
    sides = [kernel.gradient(Z, Z, coef).copy() for _ in range(2)]
    for j in (0, 2):
        for side, slopes in zip(sides, moved_slopes(kernel, Z, coef, j), strict=True):
            side[:, :, j] = slopes
    share = weight / weight.sum()
    expected = sum(np.einsum("n,nki,nkj->ij", share / 2, s, s) for s in sides)
    scale = Metric(np.array([2.0, 0.5, 1.0, 3.0]))
    for metric in (IDENTITY, scale):
        factor = 1.0 if metric.map is None else np.outer(metric.map, metric.map)
        M = mean_outer_product(kernel, Z, Z, coef, metric=metric, weight=weight, rows_in_Z=own)
        np.testing.assert_allclose(M, expected * factor, atol=1e-12)
    G = gradient_rows(kernel, Z, Z, coef, metric=IDENTITY, weight=weight, rows_in_Z=own)
    np.testing.assert_allclose(G.T @ G, weight.sum() * expected, atol=1e-11)
    slopes = squared_slopes(kernel, Z, Z, coef, metric=scale, weight=weight, rows_in_Z=own)
    np.testing.assert_allclose(slopes.at * scale.map, Z)
    for found, side in zip((slopes.right, slopes.left), sides, strict=True):
        np.testing.assert_allclose(found, ((side * scale.map) ** 2).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(slopes.means, np.diag(expected) * scale.map**2)


def test_without_ties_a_row_has_no_slope_of_its_own():
    """Derivatives of these kernels at a row itself are zero: leaving it out changes nothing."""
    assert Steps.among(X) is None
    coef = rng.normal(size=(30, 2))
    with_own = mean_outer_product(RBF(0.3), X, X, coef, rows_in_Z=np.arange(30))
    np.testing.assert_allclose(with_own, mean_outer_product(RBF(0.3), X, X, coef), atol=1e-14)


@pytest.mark.parametrize("rank", [1, 5])
def test_a_metric_of_few_gradients_has_the_distances_of_the_full_matrix(rank):
    G = np.random.default_rng(0).normal(size=(rank, 12))
    rows = np.random.default_rng(1).normal(size=(20, 12))
    few, full = low_rank(G), Metric.of(G.T @ G)
    assert few.map is not None
    assert few.map.shape == (12, rank)
    maps = [one.apply(rows) for one in (few, full)]
    a, b = (((U[:, None] - U) ** 2).sum(axis=2) for U in maps)
    np.testing.assert_allclose(a, b, atol=1e-10)
    np.testing.assert_allclose(few.matrix(12), full.matrix(12), atol=1e-12)
    slopes = np.random.default_rng(2).normal(size=(20, rank))
    np.testing.assert_allclose(few.back(slopes), slopes @ few.map.T)


def test_gradients_that_repeat_have_their_rank_and_zeros_no_metric():
    G = np.random.default_rng(0).normal(size=(2, 9))
    few = low_rank(np.vstack([G, G, 0.5 * G]))
    assert few.map is not None
    assert few.map.shape == (9, 2)
    assert low_rank(np.zeros((3, 9))) is IDENTITY
