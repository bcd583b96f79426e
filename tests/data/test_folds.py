"""Folds by content: duplicates, order, stratification, splitters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import KFold

from lssvm._core.errors import InvalidInputError
from lssvm._core.random import mix_bits, rank_hashes
from lssvm.data.folds import (
    DistinctRows,
    Folds,
    assign_folds,
    content_holdout,
    hash_rows,
    smallest_hashes,
    splitter_folds,
)
from lssvm.tuning import PositionFolds, PositionHoldout

rng = np.random.default_rng(0)
X = np.round(rng.normal(size=(300, 3)), 1)


def assignment(folds, n):
    fold = np.full(n, -1)
    for v, rows in enumerate(folds.test):
        assert np.all(fold[rows] == -1)
        fold[rows] = v
    assert np.all(fold >= 0)
    return fold


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 12), st.integers(0, 10**6))
def test_equal_rows_share_a_fold_and_order_does_not_matter(v, seed):
    rows = np.vstack([X, X[:50]])
    order = np.random.default_rng(seed).permutation(len(rows))
    fold = assignment(assign_folds(rows, v, seed=seed), len(rows))
    np.testing.assert_array_equal(fold[300:], fold[:50])
    shuffled = assignment(assign_folds(rows[order], v, seed=seed), len(rows))
    np.testing.assert_array_equal(shuffled, fold[order])


def test_folds_are_balanced_and_stratified():
    rows = rng.normal(size=(403, 2))
    labels = (np.arange(403) < 61).astype(int)
    folds = assign_folds(rows, 10, labels=labels)
    sizes = [len(t) for t in folds.test]
    ones = [labels[t].sum() for t in folds.test]
    assert max(sizes) - min(sizes) <= 1 and max(ones) - min(ones) <= 1


def test_seed_changes_the_folds():
    one, two = (assignment(assign_folds(X, 5, seed=s), 300) for s in (0, 1))
    assert np.any(one != two)


def test_one_distinct_row_at_a_time():
    folds = assign_folds(np.array([[1.0], [2.0], [1.0]]), None)
    assert sorted(len(t) for t in folds.test) == [1, 2]


def test_hash_of_sparse_and_signed_zero():
    rows = np.array([[0.0, 1.0, -0.0], [2.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    dense = hash_rows(rows, 7)
    np.testing.assert_array_equal(dense, hash_rows(sparse.csr_matrix(rows), 7))
    assert len(set(dense)) == 3
    assert hash_rows(np.array([[0.0]]))[0] == hash_rows(np.array([[-0.0]]))[0]


def test_hash_sees_the_column():
    assert len(set(hash_rows(np.eye(6)))) == 6


def test_too_few_distinct_rows():
    assert len(assign_folds(np.array([[1.0], [2.0], [1.0]]), 10)) == 2
    with pytest.raises(InvalidInputError, match="distinct rows"):
        assign_folds(np.ones((20, 2)), 5)


def test_splitters_are_used_as_they_are():
    folds = splitter_folds(KFold(3).split(X), 300)
    assert folds.train is None
    np.testing.assert_array_equal(folds.test[0], np.arange(100))
    mask = np.arange(300) < 10
    uneven = splitter_folds([(mask, ~mask), (np.arange(5), np.arange(7, 9))], 300)
    assert uneven.train is not None and len(uneven.train[0]) == 10
    for bad in ([], [([], [1])], [([1], [])]):
        with pytest.raises(InvalidInputError, match="split"):
            splitter_folds(bad, 300)


def test_a_holdout_is_by_content_and_stratified():
    X = rng.standard_normal((400, 2))
    labels = (np.arange(400) % 10 == 0).astype(np.intp)
    (held,) = content_holdout(X, 0.25, labels=labels).test
    assert len(held) == 100
    assert labels[held].sum() == 10
    twice = np.concatenate([X, X])
    (both,) = content_holdout(twice, 0.25, labels=np.tile(labels, 2)).test
    assert set(both.tolist()) == set(held.tolist()) | set((held + 400).tolist())


def test_a_holdout_without_rows_is_an_error():
    with pytest.raises(InvalidInputError, match="2 distinct rows"):
        content_holdout(np.ones((5, 1)), 0.25)
    with pytest.raises(InvalidInputError, match="to test on"):
        content_holdout(np.arange(5.0)[:, None], 0.01)


def test_position_folds_do_not_depend_on_the_cut():
    folds = PositionFolds(4, seed=3)
    whole = folds.assign(np.arange(1000))
    parts = [folds.assign(np.arange(start, start + 100)) for start in range(0, 1000, 100)]
    assert (np.concatenate(parts) == whole).all()
    assert np.bincount(whole).min() > 200
    assert (PositionFolds(4, seed=4).assign(np.arange(1000)) != whole).any()
    tests = [test for _, test in folds.split(np.zeros((1000, 1)))]
    assert (np.sort(np.concatenate(tests)) == np.arange(1000)).all()


def test_a_share_of_positions_is_held_out():
    ((train, test),) = PositionHoldout(0.3, seed=1).split(np.zeros((20_000, 1)))
    assert abs(len(test) / 20_000 - 0.3) < 0.015
    assert len(np.intersect1d(train, test)) == 0
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        PositionHoldout(1.0)
    with pytest.raises(InvalidInputError, match="at least 2"):
        PositionFolds(1)


def test_folds_of_very_many_rows_follow_the_hash_alone(monkeypatch):
    monkeypatch.setattr("lssvm.data.folds._LARGE", 500)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2000, 3))
    X[1000:1400] = X[:400]
    folds = assign_folds(X, 5, labels=rng.integers(2, size=2000))
    assert np.array_equal(np.sort(np.concatenate(folds.test)), np.arange(2000))
    fold = np.empty(2000, dtype=int)
    for v, rows in enumerate(folds.test):
        fold[rows] = v
    assert np.array_equal(fold[1000:1400], fold[:400])
    assert min(len(rows) for rows in folds.test) > 320
    order = rng.permutation(2000)
    moved = np.empty(2000, dtype=int)
    for v, rows in enumerate(assign_folds(X[order], 5).test):
        moved[order[rows]] = v
    assert np.array_equal(moved, fold)


def test_folds_of_few_contents_are_dealt_one_by_one(monkeypatch):
    monkeypatch.setattr("lssvm.data.folds._LARGE", 10)
    X = np.repeat(np.arange(3.0), 700)[:, None]
    assert [len(rows) for rows in assign_folds(X, 3).test] == [700, 700, 700]


def test_rows_of_zeros_are_not_the_first_of_a_draw():
    rows = np.concatenate([np.zeros((500, 1)), np.arange(1.0, 501.0)[:, None]])
    assert hash_rows(rows)[0] == 0
    _, drawn = smallest_hashes(rows, 50)
    assert len(np.unique(rows[drawn])) == 50


@pytest.mark.parametrize("size", [1, 7, 40, 500])
def test_smallest_hashes_are_those_of_a_full_sort(size, monkeypatch):
    monkeypatch.setattr("lssvm.data.folds._CHUNK", 16)
    rng = np.random.default_rng(4)
    X = rng.integers(20, size=(200, 2)).astype(float)  # most rows differ
    among = rng.random(200) < 0.8
    hashes, rows = smallest_hashes(X, size, 5, among)
    candidates = np.flatnonzero(among)
    every = hash_rows(X, 5)[candidates]
    rank = mix_bits(every + np.uint64(0x9E3779B97F4A7C15))
    order = np.argsort(every, kind="stable")
    if len(order) > size:
        order = order[rank[order] <= np.sort(rank)[size - 1]]
    assert np.array_equal(rows, candidates[order])
    assert np.array_equal(hashes, every[order])


def fold_numbers(X, n_folds=5, **known):
    return assign_folds(X, n_folds, **known).numbers(len(X))


def test_by_rank_neither_order_nor_units_of_columns_matter():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((90, 4)), rng.integers(0, 3, 90)])
    X[5, 2] = np.nan
    fold = fold_numbers(X, by_rank=True)
    np.testing.assert_array_equal(fold_numbers(X[:, [3, 0, 4, 2, 1]], by_rank=True), fold)
    np.testing.assert_array_equal(fold_numbers(X * 3.7 + 11.0, by_rank=True), fold)
    order = rng.permutation(90)
    np.testing.assert_array_equal(fold_numbers(X[order], by_rank=True), fold[order])
    assert np.any(fold_numbers(X, by_rank=True, seed=1) != fold)
    assert np.ptp(np.bincount(fold)) == 0


@pytest.mark.parametrize("by_rank", [False, True])
def test_a_row_repeated_or_of_weight_zero_moves_no_other(by_rank):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 3))
    fold = fold_numbers(X, by_rank=by_rank)
    twice = fold_numbers(np.vstack([X, X[:25], X[:25]]), by_rank=by_rank)
    np.testing.assert_array_equal(twice, np.concatenate([fold, fold[:25], fold[:25]]))
    more = np.vstack([X, rng.standard_normal((20, 3)), X[:5]])
    weight = np.concatenate([np.ones(60), np.zeros(25)])
    with_zeros = fold_numbers(more, by_rank=by_rank, weight=weight)
    np.testing.assert_array_equal(with_zeros[:60], fold)
    np.testing.assert_array_equal(with_zeros[80:], fold[:5])


def test_swapped_values_are_another_row_by_rank():
    X = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [3.0, 1.0]])
    hashes = rank_hashes(X)
    assert hashes[0] == hashes[2] and len(np.unique(hashes)) == 3


@pytest.mark.parametrize("n", [1, 40])
def test_ranks_of_many_columns_are_those_of_their_distinct_values(n, monkeypatch):
    rng = np.random.default_rng(3)
    X = np.round(rng.standard_normal((n, 30)), 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    ranks = [np.unique(x, return_inverse=True)[1].ravel() for x in X.T]
    expected = rank_hashes(np.column_stack(ranks).astype(float), seed=5)
    for entries in (1, 7 * n, 2**17):  # numbers that are hashed at a time
        monkeypatch.setattr("lssvm._core.random._ENTRIES", entries)
        np.testing.assert_array_equal(rank_hashes(X, seed=5), expected)
        np.testing.assert_array_equal(rank_hashes(X, 5, np.ones(n, dtype=bool)), expected)


def test_numbers_of_folds_that_do_not_hold_every_row_once():
    with pytest.raises(InvalidInputError, match="tests 3 rows of 3, or some of them twice"):
        Folds([np.array([0, 1]), np.array([1])]).numbers(3)


def test_no_more_different_rows_are_counted_than_rows(monkeypatch):
    monkeypatch.setattr("lssvm.data.folds._COUNTED", 50)
    for seed in range(20):
        counted = DistinctRows()
        counted.add(hash_rows(np.arange(60.0)[:, None], seed))
        assert 30 < counted.n_distinct() <= 60
