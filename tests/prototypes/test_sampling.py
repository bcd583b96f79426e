"""Draws of distinct rows, shares of classes, interleaving."""

import numpy as np
import pytest

from lssvm.data.folds import hash_rows
from lssvm.prototypes.selection import (
    class_quotas,
    draw_distinct,
    interleave,
    random_order,
)


def test_keys_depend_on_content_only():
    X = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [0.0, 3.0], [-0.0, 3.0]])
    keys = hash_rows(X)
    assert keys[0] == keys[2]
    assert keys[3] == keys[4]
    assert np.unique(keys).size == 3
    np.testing.assert_array_equal(keys, hash_rows(X.astype(np.float32)))


def test_keys_of_a_grid_of_small_integers_do_not_collide():
    X = np.stack(np.meshgrid(*[np.arange(12.0)] * 4), axis=-1).reshape(-1, 4)
    assert np.unique(hash_rows(X)).size == 12**4


@pytest.mark.parametrize("weighted", [False, True])
def test_draw_finds_every_distinct_row_however_many_duplicates(weighted):
    rng = np.random.default_rng(0)
    X = np.append(np.zeros(5000), np.arange(1.0, 10.0))[:, None]
    weight = np.ones(X.shape[0]) if weighted else None
    drawn = draw_distinct(X, 10, rng, weight=weight)
    assert sorted(X[drawn, 0]) == list(range(10))
    assert draw_distinct(X, 50, rng, weight=weight).size == 10


def test_draw_respects_rows_taken_and_weights():
    rng = np.random.default_rng(0)
    X = np.arange(20.0)[:, None]
    weight = np.ones(20)
    weight[5] = 0.0
    rows = np.arange(4, 9)
    drawn = draw_distinct(X, 9, rng, weight=weight, rows=rows, taken=hash_rows(X[[7]]))
    assert sorted(drawn) == [4, 6, 8]


def test_first_draw_has_probability_proportional_to_weight():
    rng = np.random.default_rng(0)
    weight = np.array([1.0, 0.0, 2.0, 5.0])
    first = [random_order(4, 1, rng, weight)[0] for _ in range(4000)]
    np.testing.assert_allclose(np.bincount(first) / 4000, weight / 8, atol=0.03)


@pytest.mark.parametrize("seed", range(5))
def test_quotas_add_up_and_are_proportional(seed):
    rng = np.random.default_rng(seed)
    limits = rng.integers(1, 60, 6)
    weights = limits * rng.uniform(0.5, 2, 6)
    for size in range(6, limits.sum() + 3):
        quotas = class_quotas(weights, size, limits)
        assert quotas.sum() == min(size, limits.sum())
        assert (quotas >= 1).all()
        assert (quotas <= limits).all()
        free = (quotas > 1) & (quotas < limits)
        share = quotas[free] / weights[free]
        if free.sum() > 1:
            assert np.ptp(share) <= 2.0 / weights[free].min()


def test_quotas_without_enough_places_go_to_the_heaviest():
    quotas = class_quotas(np.array([1.0, 5.0, 3.0, 9.0]), 2, np.array([4, 4, 4, 0]))
    assert quotas.tolist() == [0, 1, 1, 0]


def test_interleaved_prefixes_keep_the_shares():
    quotas = np.array([60, 30, 10, 1])
    sequence = interleave(quotas)
    assert np.bincount(sequence).tolist() == quotas.tolist()
    assert sorted(sequence[:4]) == [0, 1, 2, 3]
    for k in range(10, 101):
        np.testing.assert_allclose(
            np.bincount(sequence[:k], minlength=4), k * quotas / 101, atol=2.5
        )
