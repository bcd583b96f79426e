"""Weights of a stack against brute force, and outputs that have not seen a row's target."""

import numpy as np
import pytest
from scipy.optimize import nnls

from lssvm.fitting.stacking import StackRule, combine, cross_stack, fit_stack

rng = np.random.default_rng(0)
Y = rng.normal(size=(80, 2))
ONES = np.ones(80)
F = [Y + 0.5 * rng.normal(size=Y.shape), 0.5 * Y + rng.normal(size=Y.shape), -Y]


def stack_weights(outputs, Y, weight=None, plain=None):
    weight = np.ones(len(Y)) if weight is None else weight
    stack = fit_stack(outputs, Y, weight, "squared", plain)
    assert not stack.offset.any()
    return stack.weights


def test_weights_are_non_negative_least_squares():
    weight = rng.uniform(0.5, 2, 80)
    root = np.sqrt(np.repeat(weight, 2))
    A = np.column_stack([root * G.ravel() for G in F])
    expected = nnls(A, root * Y.ravel())[0]
    np.testing.assert_allclose(stack_weights(F, Y, weight), expected, atol=2e-3)
    assert stack_weights(F, Y, weight)[2] == 0.0


def test_rows_without_output_are_left_out():
    G = [f.copy() for f in F]
    G[1][:40] = np.nan
    expected = stack_weights([f[40:] for f in F], Y[40:])
    np.testing.assert_allclose(stack_weights(G, Y), expected, atol=1e-12)


def test_equal_models_share():
    w = stack_weights([F[0], F[0].copy()], Y)
    assert w[0] > 0.1 and abs(w[0] - w[1]) < 1e-6
    np.testing.assert_array_equal(
        stack_weights([np.zeros((5, 1))] * 2, np.ones((5, 1))), [0.5, 0.5]
    )


@pytest.mark.parametrize("noise, share", [(1.8, 0.5), (0.75, None), (0.1, 0.0)])
def test_plain_models_are_a_safe_half_unless_the_gain_is_no_chance(noise, share):
    errors = np.random.default_rng(1).normal(size=(3, *Y.shape))
    models = [Y + noise * errors[0], Y + errors[1], Y + errors[2]]
    plain, best = np.array([0.0, *stack_weights(models[1:], Y)]), stack_weights(models, Y)

    def error(weights):
        return ((Y - combine(models, weights)) ** 2).sum()

    ratio = error(best) / error(plain)
    expected = min(max(2.0 * ratio - 1.0, 0.0), 0.5)
    assert 0.0 < expected < 0.5 if share is None else expected == share
    found = stack_weights(models, Y, None, np.array([False, True, True]))
    np.testing.assert_allclose(found, expected * plain + (1.0 - expected) * best)


def test_crossed_weights_have_not_seen_the_fold():
    folds = np.arange(80) % 4
    before = cross_stack(F, Y, ONES, folds, StackRule())
    changed = Y.copy()
    changed[folds == 1] += 100.0
    after = cross_stack(F, changed, ONES, folds, StackRule())
    np.testing.assert_array_equal(after[folds == 1], before[folds == 1])
    assert np.abs(after[folds == 2] - before[folds == 2]).max() > 1e-3
    weights = stack_weights([f[folds != 1] for f in F], Y[folds != 1])
    np.testing.assert_allclose(before[folds == 1], combine(F, weights)[folds == 1])


@pytest.mark.parametrize("q", [2, 5])
def test_models_that_say_the_same_share_the_weight_of_one(q):
    y = np.random.default_rng(0).normal(size=(40, 1))
    np.testing.assert_allclose(stack_weights([y] * q, y), 1.0 / q, rtol=1e-9)
