"""Warps of single features: maps and their inverses, and where slopes put the scale."""

import numpy as np
import pytest

from lssvm.kernels import Laplacian, Metric
from lssvm.kernels.metric import squared_slopes
from lssvm.kernels.warp import N_BINS, SquaredSlopes, Warp, learn_warp

rng = np.random.default_rng(0)

# Three pieces; two pieces and repeated knots; a feature of one value.
KNOTS = np.array([[-1.0, 0.0, 2.0, 3.0], [0.0, 1.0, 5.0, 5.0], [7.0, 7.0, 7.0, 7.0]])
VALUES = np.array([[0.0, 2.0, 3.0, 3.5], [10.0, 10.5, 14.5, 14.5], [7.0, 7.0, 7.0, 7.0]])
WARP = Warp(KNOTS, VALUES)
X = np.column_stack([rng.uniform(-4, 6, 200), rng.uniform(-3, 9, 200), rng.uniform(5, 9, 200)])


def test_pieces_are_linear_and_go_on_beyond_the_knots():
    at = np.array([[-3.0, -2.0, 6.0], [-0.5, 0.5, 7.0], [1.0, 3.0, 8.0], [5.0, 9.0, 9.0]])
    expected = [[-4.0, 9.0, 6.0], [1.0, 10.25, 7.0], [2.5, 12.5, 8.0], [4.5, 18.5, 9.0]]
    np.testing.assert_allclose(WARP.apply(at), expected)
    np.testing.assert_allclose(
        WARP.slopes(at), [[2.0, 0.5, 1.0], [2.0, 0.5, 1.0], [0.5, 1.0, 1.0], [0.5, 1.0, 1.0]]
    )
    np.testing.assert_allclose(WARP.apply(KNOTS.T), VALUES.T)


def test_the_inverse_undoes_the_map():
    np.testing.assert_allclose(WARP.invert(WARP.apply(X)), X, atol=1e-12)
    np.testing.assert_allclose(WARP.apply(WARP.invert(X)), X, atol=1e-12)
    metric = Metric(np.array([2.0, 3.0, 0.5]), WARP)
    np.testing.assert_allclose(metric.apply(X), WARP.apply(X) * metric.map)
    np.testing.assert_allclose(metric.unmap(metric.apply(X)), X, atol=1e-12)
    assert metric.by_feature


def test_the_map_increases_with_its_slopes():
    ordered = np.sort(X, axis=0)
    assert (np.diff(WARP.apply(ordered), axis=0) > 0).all()
    step = 1e-7
    numeric = (WARP.apply(X + step) - WARP.apply(X - step)) / (2 * step)
    np.testing.assert_allclose(WARP.slopes(X), numeric, rtol=1e-6)


def bent(n=4000):
    """Return rows of two features, with slopes of 5 beyond 0.5 of the first one, elsewhere 0."""
    rows = np.random.default_rng(1).uniform(-1, 1, (n, 2))
    squares = np.column_stack([np.where(rows[:, 0] > 0.5, 25.0, 0.0), np.zeros(n)])
    return rows, SquaredSlopes(rows, squares, squares, np.ones(n))


def test_a_warp_stretches_where_the_function_changes():
    rows, slopes = bent()
    warp = learn_warp(slopes, rows)
    assert warp is not None
    assert (np.diff(warp.knots, axis=1) >= 0).all() and (np.diff(warp.values, axis=1) >= 0).all()
    scale = warp.slopes(np.array([[-0.5, 0.0], [0.8, 0.0]]))
    assert scale[1, 0] > 2.5 * scale[0, 0] > 0 and scale[1, 0] > 10 * scale[0, 1] > 0
    # The bins' mean squared slope over that of all features, a little shrunk to the feature's mean.
    expected = 5.0 / np.sqrt(slopes.means.mean())
    assert 0.95 * expected < scale[1, 0] < expected
    square = warp.slopes(rows) ** 2
    assert square.mean() == pytest.approx(1.0, abs=0.05)
    np.testing.assert_allclose(warp.invert(warp.apply(rows)), rows, atol=1e-9)


def test_without_slopes_there_is_no_warp():
    rows, slopes = bent(50)
    zeros = np.zeros((50, 2))
    assert learn_warp(SquaredSlopes(rows, zeros, zeros, slopes.weight), rows) is None


def test_a_feature_of_few_values_has_a_piece_for_every_gap():
    """The slope to the right belongs to the gap above a value, that to the left below it."""
    levels = np.array([0.0, 1.0, 3.0])
    at = np.repeat(levels, 1000)[:, None]
    right = np.repeat([4.0, 0.0, 0.0], 1000)[:, None]  # the function changes from 0 to 1 alone
    left = np.repeat([4.0, 4.0, 0.0], 1000)[:, None]
    warp = learn_warp(SquaredSlopes(at, right, left, np.ones(3000)), at)
    assert warp is not None
    np.testing.assert_array_equal(warp.knots, levels[None])
    first, second = np.diff(warp.values[0]) / np.diff(levels)
    assert first > 5 * second
    constant = np.column_stack([at[:, 0], np.ones(3000)])
    both = [np.column_stack([side[:, 0], np.zeros(3000)]) for side in (right, left)]
    two = learn_warp(SquaredSlopes(constant, *both, np.ones(3000)), constant)
    assert two is not None
    np.testing.assert_array_equal(two.apply(constant)[:, 1], np.ones(3000))


def test_weights_of_rows_count():
    rows, slopes = bent(2000)
    other = rows[:, 0] < -0.5
    squares = slopes.right + np.where(other, 25.0, 0.0)[:, None] * [1.0, 0.0]
    heavy = np.where(other, 1e-6, 1.0)
    warps = [
        learn_warp(SquaredSlopes(rows, squares, squares, weight), rows)
        for weight in (np.ones(2000), heavy)
    ]
    ends = [w.slopes(np.array([[-0.8, 0.0], [0.8, 0.0]]))[:, 0] for w in warps]
    assert ends[0][0] == pytest.approx(ends[0][1], rel=0.1) and ends[1][0] < 0.8 * ends[1][1]


def test_a_second_warp_is_that_of_the_inputs():
    """Slopes of a model of warped rows are taken back to the inputs, where knots are quantiles."""
    rows = np.random.default_rng(2).uniform(-1, 1, (150, 2))
    coef = np.random.default_rng(3).normal(size=(150, 1))
    knots = np.array([[-1.0, 0.0, 1.0]] * 2)
    metric = Metric(None, Warp(knots, np.array([[0.0, 3.0, 4.0], [0.0, 1.0, 2.0]])))
    Z, own = metric.apply(rows), np.arange(150)
    slopes = squared_slopes(
        Laplacian(0.5), Z, Z, coef, metric=metric, weight=np.ones(150), rows_in_Z=own
    )
    np.testing.assert_allclose(slopes.at, rows, atol=1e-12)
    step = 1e-7
    for j, move in enumerate(step * np.eye(2)):
        K = [Laplacian(0.5)(metric.apply(rows + s * move), Z) for s in (1.0, -1.0)]
        numeric = (K[0] - K[1]) @ coef / (2 * step)
        np.testing.assert_allclose(slopes.right[:, j], numeric[:, 0] ** 2, rtol=1e-4, atol=1e-6)
    joined = SquaredSlopes.joined([slopes, slopes])
    assert joined.at.shape == (300, 2)
    np.testing.assert_allclose(joined.means, slopes.means)
    warp = learn_warp(slopes, rows)
    assert warp is not None
    assert warp.knots.shape == (2, N_BINS + 1)


@pytest.mark.parametrize("levels", [6, 200])  # with a piece for every gap, and in quantile bins
def test_a_warp_does_not_see_rounding(levels):
    rng = np.random.default_rng(3)
    rows = rng.integers(1, levels, size=(900, 2)) / 7.0
    right, left = rng.random((2, 900, 2))
    dusty = [rows + 1e-15 * rng.normal(size=rows.shape) for _ in range(2)]
    clean = learn_warp(SquaredSlopes(rows, right, left, np.ones(900)), rows)
    other = learn_warp(SquaredSlopes(dusty[0], right, left, np.ones(900)), dusty[1])
    new = rng.uniform(0.0, levels / 7.0, size=(50, 2))
    np.testing.assert_allclose(other.apply(new), clean.apply(new), rtol=1e-9)
