"""Held-out parts of a scan: every row on one side, the same however the data are cut."""

import numpy as np
import pytest

from lssvm import FixedSizeLSSVC, FixedSizeLSSVR, scan
from lssvm._core.errors import InvalidInputError

rng = np.random.default_rng(0)
X = rng.normal(size=(30_000, 2))


def rows_of(data):
    return np.concatenate([block.numbers for block in data.blocks()])


def test_every_row_is_in_one_part_and_the_share_is_met():
    rest, held = scan(X, target=np.arange(len(X))).split(0.2)
    positions = [np.concatenate([b.target for b in part.blocks()]) for part in (rest, held)]
    np.testing.assert_array_equal(np.sort(np.concatenate(positions)), np.arange(len(X)))
    assert (rest.n_rows, held.n_rows) == tuple(len(part) for part in positions)
    assert abs(held.n_rows / len(X) - 0.2) < 0.01
    np.testing.assert_array_equal(rows_of(held), X[positions[1]])


def test_blocks_count_their_rows_from_zero_without_a_gap():
    _, held = scan(X).split(0.5)
    start = 0
    for block in held.blocks():
        assert block.start == start
        start += len(block)
    assert start == held.n_rows


def test_the_split_depends_on_the_seed_and_not_on_the_batches():
    parts = [rows_of(scan(X, batch_rows=b).split(0.3, seed=s)[1]) for b, s in ((7, 1), (9999, 1))]
    np.testing.assert_array_equal(*parts)
    assert len(rows_of(scan(X).split(0.3, seed=2)[1])) != len(parts[0])


def test_the_part_is_independent_of_the_folds():
    from lssvm.tuning import PositionFolds

    _, held = scan(X, target=np.arange(len(X))).split(0.1, seed=0)
    positions = np.concatenate([block.target for block in held.blocks()])
    counts = np.bincount(PositionFolds(10, 0).assign(positions), minlength=10)
    assert counts.min() > 0.7 * len(positions) / 10


def test_parts_of_named_columns_are_found_by_name():
    table = {"a": X[:200, 0], "b": X[:200, 1], "y": (X[:200, 0] > 0).astype(int)}
    rest, held = scan(table, "y").split(0.25)
    assert rest.named
    model = FixedSizeLSSVC(15, C=10.0, gamma=0.5).fit(rest)
    swapped = scan({"y": table["y"], "b": table["b"], "a": table["a"]}, "y").split(0.25)[1]
    np.testing.assert_array_equal(model.predict(held), model.predict(swapped))
    assert model.score(held) > 0.9


def test_a_model_of_a_part_is_that_of_its_rows():
    y = X[:300, 0] * X[:300, 1]
    rest, held = scan(X[:300], target=y).split(0.3)
    own = np.concatenate([block.target for block in rest.blocks()])
    by_part = FixedSizeLSSVR(20, C=10.0, gamma=0.5).fit(rest)
    by_rows = FixedSizeLSSVR(20, C=10.0, gamma=0.5).fit(scan(rows_of(rest), target=own))
    np.testing.assert_array_equal(by_part.predict(held), by_rows.predict(held))


def test_an_error_names_the_part_its_row_is_counted_in():
    bad = X[:50].copy()
    bad[:, 1] = np.inf
    rest, held = scan(bad, target=np.arange(50.0)).split(0.5)
    with pytest.raises(InvalidInputError, match="row 0 of the part that is not held out"):
        FixedSizeLSSVR(5, C=1.0, gamma=1.0).fit(rest)
    with pytest.raises(InvalidInputError, match="row 0 of the held-out part"):
        FixedSizeLSSVR(5, C=1.0, gamma=1.0).fit(held)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 2.0])
def test_a_share_that_leaves_nothing_is_refused(share):
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        scan(X).split(share)
