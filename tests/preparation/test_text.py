"""Sentences and names: n-grams of words and characters, where they predict."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import RidgeCV
from tests.preparation.texts import job_titles, product_names, reviews

from lssvm import LSSVMClassifier, LSSVMRegressor
from lssvm._core.errors import ColumnWarning, InvalidInputError
from lssvm.data import text as text_module
from lssvm.data.columns import read_table
from lssvm.data.text import BUCKETS, LONGEST, hashed_n_grams, is_text, learn_text
from lssvm.preparation import TablePreparation

pytestmark = pytest.mark.filterwarnings("ignore::lssvm._core.errors.ColumnWarning")

N = 300
PAY = np.random.default_rng(7).normal(size=2 * N)


def table(texts):
    return {"pay": PAY[: len(texts)], "text": list(texts)}


def halves(texts, y):
    return (table(texts[:N]), y[:N]), ({"pay": PAY[N:], "text": list(texts[N:])}, y[N:])


@pytest.mark.parametrize(
    ("make", "least"), [(reviews, 0.3), (job_titles, 0.6), (product_names, 0.6)]
)
def test_text_explains_held_out_targets_that_are_lost_where_it_is_dropped(make, least):
    texts, y = make(2 * N)
    y = y + np.sin(2 * PAY)
    train, (X, truth) = halves(texts, y)
    errors = {}
    for drop in (True, ["text"]):
        model = LSSVMRegressor(drop=drop, random_state=0, n_jobs=1).fit(*train)
        errors[drop is True] = np.mean((model.predict(X) - truth) ** 2)
    assert errors[False] - errors[True] > least * errors[False]


def test_classes_of_reviews_are_predicted():
    texts, y = reviews(2 * N)
    labels = np.where(y > 0, "liked", "disliked")
    train, (X, truth) = halves(texts, labels)
    model = LSSVMClassifier(random_state=0, n_jobs=1).fit(*train)
    assert model.score(X, truth) > 0.75
    assert "column 'text': 300 different texts" in model.summary_
    names = model.preparations_["standardised"].get_feature_names_out().tolist()
    assert names == ["pay", *(f"text:text{i}" for i in range(15)), "text:text:target=liked"]


def test_titles_that_repeat_keep_their_levels():
    titles, y = job_titles(2000, seed=3)
    pay = np.random.default_rng(4).normal(size=2000)
    preparation = TablePreparation()
    inside = preparation.fit_transform({"title": titles, "pay": pay}, y)
    names = preparation.get_feature_names_out().tolist()
    assert names[0] == "title:target" and names[-2] == "title:text:target"
    assert preparation.report_["kind"] == ["text", "number"]
    correlations = [np.corrcoef(inside[:, j], y)[0, 1] for j in (0, -2)]
    assert correlations[1] > correlations[0] > 0.5
    new = {"title": ["chief surgeon of the harbour", "trainee cook, port"], "pay": [0.0, 0.0]}
    fresh = preparation.transform(new)
    assert fresh[0, -2] > 1 > -1 > fresh[1, -2]  # words of new levels are known
    np.testing.assert_array_equal(fresh[:, 0], 0.0)


def meaningless(kind, n):
    rng = np.random.default_rng(0)
    if kind == "letters":
        return ["".join(map(chr, 97 + rng.integers(26, size=12))) for _ in range(n)]
    if kind == "hashes":
        return ["".join(rng.choice(list("0123456789abcdef"), 32)) for _ in range(n)]
    return [" ".join(rng.choice(["sun", "moon", "star", "sky", "cloud"], 9)) for _ in range(n)]


@pytest.mark.parametrize("kind", ["letters", "hashes", "words"])
def test_text_that_does_not_predict_is_dropped(kind):
    texts = meaningless(kind, N)
    with pytest.warns(ColumnWarning, match="'text'.* do not predict|'text'.*an id or a name"):
        preparation = TablePreparation().fit(table(texts), PAY[N:])
    assert preparation.report_["done"][1] == "dropped"
    inside = TablePreparation(keep=["text"]).fit(table(texts), PAY[N:])
    assert inside.report_["done"][1] != "dropped"


def test_features_of_training_rows_are_out_of_fold():
    texts = meaningless("words", N)
    preparation = TablePreparation(keep=["text"])
    y = PAY[N:]
    inside = preparation.fit_transform(table(texts), y)
    at = preparation.get_feature_names_out().tolist().index("text:text:target")
    whole = preparation.transform(table(texts))
    of_others, with_own = (np.corrcoef(X[:, at], y)[0, 1] for X in (inside, whole))
    assert of_others < 0 < 0.1 < with_own
    components = np.arange(1, at)
    np.testing.assert_allclose(inside[:, components], whole[:, components], atol=1e-12)


def test_components_are_those_of_an_exact_decomposition():
    texts, _ = reviews(200)
    column = read_table({"text": list(texts)}).columns[0]
    out = np.empty((200, 15))
    learn_text(column, np.ones(200)).encode(column, out)
    owner, bucket = hashed_n_grams(column.levels)
    counts = np.zeros((200, BUCKETS))
    np.add.at(counts, (owner, bucket), 1.0)
    frequency = (counts > 0).sum(axis=0)
    kept = (frequency >= 2) & (frequency < 200)
    X = counts[:, kept] * (np.log(201.0 / (1.0 + frequency[kept])) + 1.0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    exact = U[:, :15] * s[:15]
    exact -= exact.mean(axis=0)
    exact /= np.sqrt(exact.var(axis=0).sum())
    exact = exact[column.values]
    sides = np.sign((exact[:, :3] * out[:, :3]).sum(axis=0))
    np.testing.assert_allclose(out[:, :3], exact[:, :3] * sides, atol=0.02)
    assert out.var(axis=0).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("the Quick brown fox", {"analyzer": "word", "ngram_range": (1, 2)}),
        ("the Quick brown fox the fox", {"analyzer": "char_wb", "ngram_range": (2, 4)}),
        ("Ärzte und Straßen", {"analyzer": "char_wb", "ngram_range": (2, 4)}),
        ("東京 は 大きい 都市", {"analyzer": "char_wb", "ngram_range": (2, 4)}),
    ],
)
def test_n_grams_are_those_of_scikit_learn(text, options):
    words = options["analyzer"] == "word"
    pattern = {"token_pattern": r"(?u)\b\w+\b"} if words else {}
    counts = CountVectorizer(**options, **pattern).fit_transform([text]).toarray().ravel()
    _, bucket = hashed_n_grams([text])
    ours = np.unique(bucket[(bucket < BUCKETS // 2) == words], return_counts=True)[1]
    assert sorted(ours) == sorted(counts)


def test_blocks_of_texts_have_the_n_grams_of_each_text():
    texts = ["", "one", "  two words ", "!?", "one", "a\ud800b", "x" * (LONGEST + 50)]
    owner, bucket = hashed_n_grams(texts)
    for i, text in enumerate(texts):
        alone = hashed_n_grams([text])[1]
        np.testing.assert_array_equal(np.sort(bucket[owner == i]), np.sort(alone))
    assert not np.any(owner == 0)
    np.testing.assert_array_equal(
        hashed_n_grams(["x" * LONGEST])[1], hashed_n_grams(["x" * (LONGEST + 50)])[1]
    )


def test_what_is_text_and_what_is_a_code():
    assert is_text(["head cook", "smith"]) and is_text(["東京は大きい", "京都は古い"])
    assert not is_text(["n1365", "n366"]) and not is_text(["2024-01-01 10:00"])
    assert not is_text(["", ""])


def test_unusual_texts_have_finite_features():
    texts, y = reviews(N)
    preparation = TablePreparation().fit(table(texts), y)
    strange = ["", " ", "\ud800 lone", "z" * 10**6, "ﷺ" * 3000, "\0", "qqq", "GREAT", "gréat", "12"]
    out = preparation.transform({"pay": PAY[:10], "text": strange})
    assert np.all(np.isfinite(out))
    np.testing.assert_array_equal(out[[0, 1, 5], 1:], 0.0)
    lower = preparation.transform({"pay": PAY[:1], "text": ["great"]})
    np.testing.assert_array_equal(out[7, 1:], lower[0, 1:])
    numbers = preparation.transform({"pay": PAY[:2], "text": [12.0, 13.0]})
    np.testing.assert_array_equal(numbers[0, 1:], out[9, 1:])


def test_2000_characters_of_a_text_are_read():
    texts, y = reviews(N)
    preparation = TablePreparation().fit(table(texts), y)
    start = "the food was fine " * 200
    ends = ["", " great great", " awful awful awful"]
    for length, same in ((2000, True), (1980, False)):
        long = [start[:length] + end for end in ends]
        out = preparation.transform({"pay": PAY[:3], "text": long})[:, 1:]
        assert np.array_equal(out[0], out[1]) is np.array_equal(out[0], out[2]) is same


def test_singular_vectors_come_from_10000_texts_at_most(monkeypatch):
    assert text_module._FIT_TEXTS == 10_000
    monkeypatch.setattr(text_module, "_FIT_TEXTS", 70)
    seen, leading = [], text_module._leading_vectors

    def counted(blocks, weight):
        seen.append(sum(block.shape[0] for block in blocks))
        return leading(blocks, weight)

    monkeypatch.setattr(text_module, "_leading_vectors", counted)
    texts, y = reviews(N)
    TablePreparation().fit(table(texts), y)
    assert len(set(texts)) > 100 and seen and max(seen) <= 70


def test_bytes_are_text():
    texts, y = reviews(N)
    raw = [text.encode() for text in texts]
    given = [TablePreparation().fit_transform(table(one), y) for one in (texts, raw, np.array(raw))]
    np.testing.assert_array_equal(given[0], given[1])
    np.testing.assert_array_equal(given[0], given[2])
    assert read_table({"a": [b"\xff", None]}).columns[0].levels == ("\\xff",)


def test_missing_texts_are_marked():
    texts, y = reviews(N)
    texts[::7] = None
    preparation = TablePreparation()
    inside = preparation.fit_transform(table(texts), y)
    names = preparation.get_feature_names_out().tolist()
    assert names[-1] == "text=(missing)"
    np.testing.assert_array_equal(inside[::7, 1:-1], 0.0)
    np.testing.assert_array_equal(inside[:, -1] > 0, np.arange(N) % 7 == 0)
    empty = preparation.transform({"pay": PAY[:3], "text": [None] * 3})
    np.testing.assert_array_equal(empty[:, 1:-1], 0.0)
    assert np.all(empty[:, -1] > 0)


def test_a_column_without_words_is_not_text():
    with pytest.warns(ColumnWarning, match="all its values are missing"):
        TablePreparation().fit({"pay": PAY[:N], "text": [None] * N}, PAY[:N])
    signs = ["!" * (1 + i) for i in range(N)]
    done = TablePreparation().fit(table(signs), PAY[:N]).report_["done"]
    assert done[1] == "dropped"
    with pytest.raises(InvalidInputError, match="do not predict"):
        TablePreparation().fit({"text": meaningless("words", N)}, PAY[:N])


def test_without_targets_sentences_are_used_and_names_are_not():
    texts, _ = reviews(N)
    report = TablePreparation().fit(table(texts)).report_
    assert report["features"] == [1, 15]
    names, _ = product_names(N)
    assert TablePreparation().fit(table(names)).report_["done"][1] == "dropped"


def test_weights_are_repeated_rows_and_order_does_not_matter():
    texts, y = reviews(N)
    weight = np.random.default_rng(1).integers(0, 3, N)
    some = np.repeat(np.arange(N), weight)
    weighted = TablePreparation().fit(table(texts), y, sample_weight=weight)
    repeated = TablePreparation().fit({"pay": PAY[some], "text": texts[some]}, y[some])
    X = table(texts)
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-8)
    order = np.random.default_rng(2).permutation(N)
    shuffled = TablePreparation().fit({"pay": PAY[order], "text": texts[order]}, y[order])
    plain = TablePreparation().fit(X, y)
    np.testing.assert_allclose(plain.transform(X), shuffled.transform(X), atol=1e-8)
    again = TablePreparation().fit(X, y)
    np.testing.assert_array_equal(plain.transform(X), again.transform(X))


def test_blocks_give_the_features_of_the_whole():
    texts, y = reviews(N)
    preparation = TablePreparation().fit(table(texts), y)
    whole = preparation.transform(table(texts))
    blocks = [
        preparation.transform({"pay": PAY[i : i + 60], "text": texts[i : i + 60]})
        for i in range(0, N, 60)
    ]
    np.testing.assert_array_equal(np.vstack(blocks), whole)
    again = TablePreparation.from_record(preparation.to_record())
    np.testing.assert_array_equal(again.transform(table(texts)), whole)


def test_the_score_is_near_that_of_a_ridge_regression_on_all_words():
    texts, y = reviews(2 * N)
    preparation = TablePreparation().fit(table(texts[:N]), y[:N])
    new = preparation.transform({"pay": PAY[N:], "text": texts[N:]})
    words = CountVectorizer().fit(texts[:N])
    ridge = RidgeCV(np.logspace(-2, 3, 11)).fit(words.transform(texts[:N]).toarray(), y[:N])
    reference = ridge.predict(words.transform(texts[N:]).toarray())
    ours = np.corrcoef(new[:, -1], y[N:])[0, 1]
    assert ours > np.corrcoef(reference, y[N:])[0, 1] - 0.1


@pytest.mark.parametrize("make", [reviews, job_titles])
def test_rows_that_are_not_learned_from_have_the_features_of_new_rows(make, monkeypatch):
    texts, y = make(2 * N)
    monkeypatch.setattr("lssvm.data.text.MOST_TEXTS", 120)
    preparation = TablePreparation()
    X = {"pay": PAY, "text": list(texts)}
    inside, new = preparation.fit_transform(X, y), preparation.transform(X)
    assert preparation.report_["kind"][1] == "text"
    at = preparation.get_feature_names_out().tolist().index("text:text:target")
    same = np.abs(inside[:, at] - new[:, at]) < 1e-12
    distinct = len(set(texts[~same]))
    assert 0 < distinct <= 120 < len(set(texts[same]))
    assert np.corrcoef(inside[:, at], y)[0, 1] > 0.6


def test_a_column_that_is_text_is_announced():
    texts, y = reviews(N)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        preparation = TablePreparation().fit(table(texts), y)
    assert any("'text': 300 different texts" in str(one.message) for one in caught)
    assert preparation.report_["kind"] == ["number", "text"]
    assert "name the column in drop=" in preparation.prepared_.guesses["text"]
    assert not TablePreparation(keep=["text"]).fit(table(texts), y).prepared_.guesses
