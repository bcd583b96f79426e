import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lssvm._core.errors import InvalidInputError
from lssvm.codes import Code, make_code, one_vs_all, one_vs_one
from lssvm.codes.code import groups, targets

MIXED = [  # columns 0 and 3 share a zero pattern, column 2 has no zero
    [-1, 0, -1, +1],
    [+1, -1, +1, +1],
    [+1, +1, -1, -1],
    [0, +1, +1, 0],
]


def test_matrix_is_a_read_only_copy_of_signs():
    given_matrix = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    code = Code(given_matrix)
    given_matrix[:] = 0
    assert code.matrix.dtype == np.int8
    np.testing.assert_array_equal(code.matrix, [[-1, -1], [-1, 1], [1, 1]])
    assert (code.n_classes, code.n_problems, code.name) == (3, 2, "custom")
    with pytest.raises(ValueError, match="read-only"):
        code.matrix[0, 0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        code.name = "other"


def test_shares_rows_only_without_zeros():
    assert one_vs_all(4).shares_rows
    assert not one_vs_one(4).shares_rows
    assert one_vs_one(2).shares_rows
    assert not Code(MIXED).shares_rows


def test_pickle_keeps_the_code():
    code = pickle.loads(pickle.dumps(one_vs_one(4)))
    np.testing.assert_array_equal(code.matrix, one_vs_one(4).matrix)
    assert code.name == "ovo"


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([-1, 1], "shape"),
        ([[-1, 1]], "at least two classes"),
        (np.empty((3, 0)), "one problem"),
        ([["a"], ["b"]], "type"),
        ([[-1, 1], [1]], "not usable"),
        ([[-1], [2]], "other entries"),
        ([[-1], [0.5]], "other entries"),
        ([[-1], [np.nan]], "other entries"),
        ([[-1, 1], [1, 1], [0, 1]], "Column 1"),
        ([[-1, 0], [1, 1], [1, 1]], "Column 1"),
        ([[-1, -1, -1], [-1, 1, -1], [1, 1, 1]], "Columns 0 and 2"),
        ([[-1, -1, 1], [-1, 1, 1], [1, 1, -1]], "Columns 0 and 2"),
        ([[0, -1, 0], [-1, 1, 1], [1, 1, -1]], "Columns 0 and 2"),
        ([[-1, -1], [1, 1], [1, 1], [-1, 1]], "Classes 1 and 2"),
        ([[1, 0], [1, 1], [-1, -1]], "Classes 0 and 1"),  # distinct words, but nobody tells
    ],
)
def test_bad_matrices_are_refused(matrix, message):
    with pytest.raises(InvalidInputError, match=message):
        Code(matrix)


def test_targets_are_the_code_words():
    code = Code(MIXED)
    result = targets(code, np.array([2, 0, 3, 2], dtype=np.uint8))
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, [MIXED[2], MIXED[0], MIXED[3], MIXED[2]])
    assert targets(code, np.empty(0, dtype=int)).shape == (0, 4)


def test_columns_with_one_zero_pattern_form_one_group():
    labels = np.array([3, 0, 1, 2, 0, 3])
    found = groups(Code(MIXED), labels)
    assert [group.columns.tolist() for group in found] == [[0, 3], [1], [2]]
    assert found[0].rows.tolist() == [1, 2, 3, 4]
    assert found[1].rows.tolist() == [0, 2, 3, 5]
    assert found[2].rows is None


def test_one_vs_one_has_a_group_per_pair_even_if_a_class_is_absent():
    found = groups(one_vs_one(3), [0, 2, 2])
    assert [group.rows.tolist() for group in found] == [[0], [0, 1, 2], [1, 2]]


@settings(deadline=None)
@given(
    k=st.integers(2, 7),
    name=st.sampled_from(["ovo", "ova", "moc", "ecoc"]),
    data=st.data(),
)
def test_groups_cover_exactly_the_rows_with_a_target(k, name, data):
    labels = np.array(data.draw(st.lists(st.integers(0, k - 1), max_size=30)), dtype=int)
    code = make_code(name, k)
    taken = np.zeros((len(labels), code.n_problems), dtype=int)
    for group in groups(code, labels):
        rows = np.arange(len(labels)) if group.rows is None else group.rows
        assert np.all(np.diff(rows) > 0)
        taken[np.ix_(rows, group.columns)] += 1
    np.testing.assert_array_equal(taken, targets(code, labels) != 0)
    if code.shares_rows:
        assert len(groups(code, labels)) == 1


@pytest.mark.parametrize("function", [targets, groups])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 3], "0 .. 2"),
        ([-1, 1], "0 .. 2"),
        ([0.0, 1.0], "integers"),
        (["a", "b"], "integers"),
        ([[0, 1]], "shape"),
        ([True, False], "integers"),
    ],
)
def test_bad_labels_are_refused(function, labels, message):
    with pytest.raises(InvalidInputError, match=message):
        function(one_vs_all(3), labels)
