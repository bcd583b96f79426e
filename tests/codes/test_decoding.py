import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.oracles import codes as oracle

from lssvm._core.arrays import to_numpy
from lssvm._core.errors import InvalidInputError
from lssvm.codes import (
    Code,
    decode,
    error_correcting,
    make_code,
    minimum_output,
    one_vs_all,
    one_vs_one,
)

NAMES = ["ovo", "ova", "moc", "ecoc"]
LOSSES = ["linear", "squared", "exponential"]
DECODINGS = [(None, None), ("hamming", None), ("loss", None), *(("loss", loss) for loss in LOSSES)]
TERNARY = Code([[-1, 0, 1, 1], [1, -1, 0, 1], [1, 1, 1, -1], [0, 1, -1, -1]])


def random_scores(code, n=25, seed=0):
    scores = np.random.default_rng(seed).normal(size=(n, code.n_problems))
    scores[::5, 0] = 0.0  # a binary problem that does not decide
    return scores


def all_codes():
    named = [make_code(name, k, random_state=0) for name in NAMES for k in (3, 4, 5, 9)]
    return [*named, TERNARY]


def with_tie_break(matrix, scores):
    confidence = oracle.confidences(matrix, scores)
    return confidence / (4 * (1 + np.abs(confidence))) - oracle.hamming_distances(matrix, scores)


@pytest.mark.parametrize("code", all_codes(), ids=lambda code: f"{code.name}{code.n_classes}")
def test_decoding_equals_plain_loops(code):
    scores = random_scores(code)
    matrix = code.matrix.tolist()
    np.testing.assert_allclose(
        decode(code, scores, "hamming"), with_tie_break(matrix, scores), rtol=1e-12, atol=1e-12
    )
    for loss in LOSSES:
        np.testing.assert_allclose(
            decode(code, scores, "loss", loss),
            -oracle.loss_sums(matrix, scores, loss),
            rtol=1e-12,
            atol=1e-12,
        )


@pytest.mark.parametrize("code", all_codes(), ids=lambda code: f"{code.name}{code.n_classes}")
def test_default_is_votes_for_codes_with_zeros_and_linear_loss_otherwise(code):
    scores = random_scores(code)
    expected = decode(code, scores, "loss", "linear")
    if not code.shares_rows:
        expected = decode(code, scores, "hamming")
    np.testing.assert_array_equal(decode(code, scores), expected)
    np.testing.assert_array_equal(
        decode(code, scores, loss="squared"), decode(code, scores, "loss", "squared")
    )


@pytest.mark.parametrize("k", [3, 5, 8])
def test_one_vs_one_counts_votes(k):
    scores = np.random.default_rng(k).normal(size=(200, k * (k - 1) // 2))
    class_scores = decode(one_vs_one(k), scores)
    votes = oracle.pairwise_votes(k, scores)
    assert np.all(np.abs(class_scores - (votes - (k - 1))) < 0.25)
    np.testing.assert_array_equal(np.rint(class_scores), votes - (k - 1))


def test_ties_go_to_the_larger_summed_confidence():
    # 1 beats 0, 2 beats 1, 0 beats 2: one vote each
    scores = np.array([[0.1, -2.0, 1.0], [2.0, -0.5, 0.3], [0.1, -0.2, 5.0]])
    assert np.all(oracle.pairwise_votes(3, scores) == 1)
    np.testing.assert_array_equal(decode(one_vs_one(3), scores).argmax(axis=1), [0, 1, 2])


@settings(deadline=None)
@given(arrays(np.float64, (5, 6), elements=st.floats(-1e6, 1e6)))
def test_tie_break_never_outweighs_a_vote(scores):
    scores[0, 0] = 0.0
    class_scores = decode(one_vs_one(4), scores)
    distances = oracle.hamming_distances(one_vs_one(4).matrix.tolist(), scores)
    chosen = np.take_along_axis(distances, class_scores.argmax(axis=1)[:, None], axis=1)
    np.testing.assert_array_equal(chosen[:, 0], distances.min(axis=1))


@pytest.mark.parametrize("loss", LOSSES)
def test_one_vs_all_loss_decoding_is_the_argmax_of_the_scores(loss):
    scores = np.random.default_rng(1).normal(size=(500, 6))
    class_scores = decode(one_vs_all(6), scores, "loss", loss)
    np.testing.assert_array_equal(class_scores.argmax(axis=1), scores.argmax(axis=1))


@pytest.mark.parametrize("name", ["ova", "moc", "ecoc"])
def test_linear_and_squared_loss_give_the_same_labels_without_zeros(name):
    code = make_code(name, 9, random_state=0)
    scores = np.random.default_rng(2).normal(size=(500, code.n_problems))
    linear, squared = (decode(code, scores, loss=loss).argmax(axis=1) for loss in LOSSES[:2])
    np.testing.assert_array_equal(linear, squared)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("k", [4, 8, 16, 64])
def test_full_minimum_output_code_has_nothing_to_correct(k, loss):
    code = minimum_output(k)
    scores = np.random.default_rng(k).normal(size=(500, code.n_problems))
    labels = decode(code, scores, "hamming").argmax(axis=1)
    np.testing.assert_array_equal(labels, decode(code, scores, "loss", loss).argmax(axis=1))
    np.testing.assert_array_equal(code.matrix[labels], np.sign(scores))


@pytest.mark.parametrize("k", [*range(3, 33), 40, 100])
def test_minimum_output_labels_agree_between_decodings(k):
    code = minimum_output(k)
    scores = np.random.default_rng(k).normal(size=(500, code.n_problems))
    by_hamming = decode(code, scores, "hamming").argmax(axis=1)
    by_loss = decode(code, scores, "loss").argmax(axis=1)
    is_code_word = np.all(code.matrix[by_hamming] == np.sign(scores), axis=1)
    assert is_code_word.any()
    same = by_hamming == by_loss
    assert np.all(same if k <= 32 else same[is_code_word])


@pytest.mark.parametrize("decoding, loss", DECODINGS)
def test_binary_class_scores_are_minus_and_plus_the_score(decoding, loss):
    scores = np.array([[0.3], [-2.0]])
    for name in NAMES:
        class_scores = decode(make_code(name, 2), scores, decoding, loss)
        np.testing.assert_array_equal(class_scores, [[-0.3, 0.3], [2.0, -2.0]])
    flipped = decode(Code([[1], [-1]]), scores, decoding, loss)
    np.testing.assert_array_equal(flipped, [[0.3, -0.3], [-2.0, 2.0]])


@settings(deadline=None)
@given(
    name=st.sampled_from(["auto", *NAMES]),
    k=st.integers(2, 13),
    seed=st.integers(0, 5),
    scale=st.floats(0.01, 10),
    how=st.sampled_from(DECODINGS),
)
def test_perfect_scores_decode_to_their_own_label(name, k, seed, scale, how):
    code = make_code(name, k, random_state=seed)
    if how[1] == "squared" and not code.shares_rows:
        scale = 1.0  # squared loss punishes scores beyond 1, but zero entries do not pay for that
    class_scores = decode(code, scale * code.matrix, *how)
    np.testing.assert_array_equal(class_scores.argmax(axis=1), np.arange(k))


ALL_COLUMNS = [c for c in itertools.product((-1, 0, 1), repeat=4) if min(c) == -1 and max(c) == 1]
UNLIKE_COLUMNS = [c for c in ALL_COLUMNS if next(entry for entry in c if entry) == 1]


@settings(deadline=None)
@given(
    columns=st.lists(st.sampled_from(UNLIKE_COLUMNS), min_size=4, max_size=9, unique=True),
    how=st.sampled_from(DECODINGS),
)
def test_perfect_scores_decode_to_their_own_label_for_any_code(columns, how):
    try:
        code = Code(np.transpose(columns))
    except InvalidInputError:
        assume(False)
    class_scores = decode(code, code.matrix.astype(float), *how)
    np.testing.assert_array_equal(class_scores.argmax(axis=1), np.arange(4))


@settings(deadline=None)
@given(k=st.integers(4, 12), label=st.integers(0, 3), data=st.data())
def test_hamming_decoding_corrects_errors_up_to_half_the_distance(k, label, data):
    code = error_correcting(k, random_state=0)
    correctable = (oracle.row_separation(code.matrix) - 1) // 2
    wrong = data.draw(
        st.lists(st.integers(0, code.n_problems - 1), max_size=correctable, unique=True)
    )
    scores = code.matrix[[label]].astype(float)
    scores[0, wrong] *= -1
    assert decode(code, scores, "hamming").argmax() == label


def test_a_class_with_many_zeros_is_not_favoured():
    code = Code([[1, 1, 1, 1, 1], [-1, 1, -1, 1, -1], [1, -1, 1, 1, -1], [-1, 0, 0, -1, 0]])
    scores = np.array([[1.0, 1.0, -1.0, -1.0, 1.0]])  # against class 0: 2 of 5, class 3: 1 of 2
    distances = -np.rint(2 * decode(code, scores, "hamming")) / 2
    np.testing.assert_array_equal(distances, [[2.0, 3.0, 4.0, 2.5]])


@pytest.mark.parametrize("how", DECODINGS)
@pytest.mark.parametrize("code", [one_vs_one(4), one_vs_all(4), TERNARY, make_code("ova", 2)])
@pytest.mark.parametrize(
    "library", [pytest.param("torch", marks=pytest.mark.torch), "array_api_strict"]
)
def test_other_array_libraries_give_the_same(library, code, how):
    xp = pytest.importorskip(library)
    scores = random_scores(code)
    result = decode(code, xp.asarray(scores), *how)
    assert type(result) is type(xp.asarray(scores))
    assert result.dtype == xp.float64
    np.testing.assert_allclose(to_numpy(result), decode(code, scores, *how), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("how", DECODINGS)
def test_float32_stays_float32(how):
    scores = random_scores(TERNARY)
    single = decode(TERNARY, scores.astype(np.float32), *how)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, decode(TERNARY, scores, *how), atol=1e-5)


def test_float32_tie_break_survives_many_classes():
    code = one_vs_one(60)
    scores = np.full((3, code.n_problems), -1.0, dtype=np.float32)  # the first of each pair wins,
    scores[:, 1] = 1.0  # only 2 beats 0: classes 0, 1 and 2 lose one duel each
    for row in range(3):
        pair = np.flatnonzero((code.matrix[row] != 0) & (code.matrix[10] != 0))
        scores[row, pair] = -1.5  # and the class with the number of the row wins one more clearly
    np.testing.assert_array_equal(decode(code, scores).argmax(axis=1), [0, 1, 2])


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (np.ones((2, 4)), {}, "one column per problem"),
        (np.ones(3), {}, "shape"),
        (np.ones((2, 3), dtype=int), {}, "floating-point"),
        (np.ones((2, 3)), {"decoding": "votes"}, "'votes' is not known"),
        (np.ones((2, 3)), {"loss": "hinge"}, "'hinge' is not known"),
        (np.ones((2, 3)), {"decoding": "hamming", "loss": "linear"}, "no meaning"),
    ],
)
def test_bad_requests_are_refused(scores, options, message):
    with pytest.raises(InvalidInputError, match=message):
        decode(one_vs_all(3), scores, **options)
