import itertools
import math

import numpy as np
import pytest
from tests.oracles.codes import (
    column_separation,
    counted_words,
    labels_can_differ,
    row_separation,
)

import lssvm.codes
from lssvm._core.errors import InvalidInputError
from lssvm.codes import (
    error_correcting,
    make_code,
    minimum_output,
    one_vs_all,
    one_vs_one,
)


def test_exports_are_sorted_and_exist():
    assert lssvm.codes.__all__ == sorted(lssvm.codes.__all__)
    assert all(hasattr(lssvm.codes, name) for name in lssvm.codes.__all__)


def test_one_vs_one_has_the_columns_of_the_text():
    # [Suykens2002, section 3.2]: [-1; +1; 0], [-1; 0; +1] and [0; -1; +1]
    columns = one_vs_one(3).matrix.T
    np.testing.assert_array_equal(columns, [[-1, 1, 0], [-1, 0, 1], [0, -1, 1]])


@pytest.mark.parametrize("k", [3, 4, 7, 26])
def test_one_vs_one_has_every_pair_in_order(k):
    code = one_vs_one(k)
    pairs = list(itertools.combinations(range(k), 2))
    assert code.n_problems == len(pairs)
    for column, (i, j) in zip(code.matrix.T, pairs, strict=True):
        assert (column[i], column[j], np.count_nonzero(column)) == (-1, 1, 2)


@pytest.mark.parametrize("k", [3, 4, 26])
def test_one_vs_all_is_one_class_against_the_rest(k):
    code = one_vs_all(k)
    assert code.matrix.shape == (k, k)
    assert np.all(np.diag(code.matrix) == 1)
    assert code.matrix.sum() == k - k * (k - 1)


@pytest.mark.parametrize("k", [*range(3, 34), 65, 100, 129])
def test_minimum_output_is_short_distinct_and_balanced(k):
    code = minimum_output(k)
    assert code.n_problems == math.ceil(math.log2(k))
    assert len(np.unique(code.matrix, axis=0)) == k
    assert np.all(np.abs(code.matrix.sum(axis=0)) == k % 2)
    assert column_separation(code.matrix) >= max(1, k // 4)


@pytest.mark.parametrize("k", [*range(3, 18), 26, 100])
def test_minimum_output_by_counting_has_the_binary_digits(k):
    code = minimum_output(k, balanced=False)
    np.testing.assert_array_equal(code.matrix, counted_words(k))
    assert code.name == make_code("moc-counting", k).name == "moc-counting"
    np.testing.assert_array_equal(code.matrix, make_code("moc-counting", k).matrix)


def test_counting_and_balancing_differ_where_the_words_do():
    # three classes, two problems: counting sets {0, 1} against {2}, then {0, 2} against {1}
    assert minimum_output(3, balanced=False).matrix.T.tolist() == [[-1, -1, 1], [-1, 1, -1]]
    assert not np.array_equal(minimum_output(3).matrix, counted_words(3))


def test_text_counts_of_minimum_output():
    # Table 3.2 of [Suykens2002]: iri 3 classes 2 bits, ims 7 classes 3 bits, usp 10 classes 4 bits
    assert [minimum_output(k).n_problems for k in (3, 7, 10)] == [2, 3, 4]


@pytest.mark.parametrize("k", range(3, 8))
def test_exhaustive_code_has_all_columns_and_the_known_distance(k):
    code = error_correcting(k)
    assert code.n_problems == 2 ** (k - 1) - 1
    assert row_separation(code.matrix) == 2 ** (k - 2)
    assert column_separation(code.matrix) >= 1
    np.testing.assert_array_equal(code.matrix, error_correcting(k, random_state=3).matrix)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("k", range(8, 31))
def test_random_code_separates_rows_and_columns(k, seed):
    code = error_correcting(k, random_state=seed)
    assert code.n_problems == math.ceil(10 * math.log2(k))
    assert code.shares_rows
    assert row_separation(code.matrix) >= 0.4 * code.n_problems
    assert column_separation(code.matrix) >= max(1, k // 5)
    if k > 11:  # up to there candidates are all columns, balanced or not
        assert np.all(np.abs(code.matrix.sum(axis=0)) == k % 2)


@pytest.mark.parametrize("k", [8, 15, 30])
def test_random_code_beats_the_best_of_many_random_codes(k):
    code = error_correcting(k, random_state=0)
    shape = (300, k, code.n_problems)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=shape)
    agreement = signs @ signs.transpose(0, 2, 1) - 2 * code.n_problems * np.eye(k)
    best_random = ((code.n_problems - agreement.max(axis=(1, 2))) / 2).max()
    assert row_separation(code.matrix) > best_random


def test_random_code_is_decided_by_random_state():
    for n_problems in (None, 4):  # 4 columns: the order of the classes is all that is random
        codes = [error_correcting(12, n_problems, random_state=seed).matrix for seed in (5, 5, 6)]
        np.testing.assert_array_equal(codes[0], codes[1])
        assert not np.array_equal(codes[0], codes[2])


@pytest.mark.parametrize("k", [3, 4, 5, 9, 12, 20])
def test_every_possible_number_of_problems_works(k):
    shortest, most = math.ceil(math.log2(k)), 2 ** (k - 1) - 1
    for n_problems in sorted({shortest, min(most, shortest + 1), min(most - 1, 300)}):
        code = error_correcting(k, n_problems, random_state=0)
        assert code.matrix.shape == (k, n_problems)
    assert error_correcting(12, 2**11 - 1).n_problems == 2**11 - 1


@pytest.mark.parametrize(("k", "n_problems"), [(5, 2), (5, 16), (9, 3), (4, 2.5), (4, "5")])
def test_impossible_number_of_problems_is_refused(k, n_problems):
    with pytest.raises(InvalidInputError, match="n_problems"):
        error_correcting(k, n_problems)


@pytest.mark.parametrize("name", ["auto", "ovo", "ova", "moc", "moc-counting", "ecoc"])
def test_two_classes_are_one_problem(name):
    code = make_code(name, 2)
    np.testing.assert_array_equal(code.matrix, [[-1], [1]])
    assert (code.name, code.shares_rows) == ("binary", True)


@pytest.mark.parametrize("build", [one_vs_one, one_vs_all, minimum_output, error_correcting])
def test_constructors_give_one_problem_for_two_classes(build):
    np.testing.assert_array_equal(build(2).matrix, [[-1], [1]])


@pytest.mark.parametrize(
    ("name", "k", "expected"),
    [
        ("auto", 10, one_vs_one(10)),
        ("auto", 11, one_vs_all(11)),
        ("ovo", 12, one_vs_one(12)),
        ("ova", 3, one_vs_all(3)),
        ("moc", 6, minimum_output(6)),
        ("ecoc", 5, error_correcting(5)),
        ("ecoc", 9, error_correcting(9, random_state=4)),
    ],
)
def test_names(name, k, expected):
    code = make_code(name, k, random_state=4)
    np.testing.assert_array_equal(code.matrix, expected.matrix)
    assert code.name == expected.name


def test_own_matrices_and_codes_are_taken():
    matrix = [[-1, -1], [-1, 1], [1, 1]]
    code = make_code(matrix, 3)
    np.testing.assert_array_equal(code.matrix, matrix)
    assert make_code(code, 3) is code


@pytest.mark.parametrize(
    ("name", "k", "message"),
    [
        ("ovr", 3, "'ovr' is not known"),
        ("ova", 1, "at least 2"),
        ("ova", 2.0, "at least 2"),
        ("ova", True, "at least 2"),
        (one_vs_all(3), 4, "3 rows"),
        ([[-1], [1]], 3, "2 rows"),
        ([[-1, 1], [1]], 2, "not usable"),
        ([[-1, 5], [1, 1]], 2, "other entries"),
        (None, 2, "not usable"),
    ],
)
def test_bad_requests_are_refused(name, k, message):
    with pytest.raises(InvalidInputError, match=message):
        make_code(name, k)


def test_minimum_output_leaves_loss_decoding_no_choice_up_to_32_classes():
    assert not any(labels_can_differ(minimum_output(k).matrix.tolist()) for k in range(3, 33))
    assert labels_can_differ(minimum_output(33).matrix.tolist())
    assert labels_can_differ([[1, -1, -1], [-1, 1, 1]])  # scores -2, -0.1, -0.1
