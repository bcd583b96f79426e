"""Categories: indicators and their distances, pools, encodings by the target."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.model_selection import KFold
from tests.oracles import preparation as oracle

from lssvm._core.errors import ColumnWarning, InvalidInputError
from lssvm.data import preparation
from lssvm.data.columns import read_table
from lssvm.data.folds import assign_folds
from lssvm.preparation import TablePreparation

SQRT2 = np.sqrt(2.0)


def many_levels(n=300, n_levels=40, seed=0, classes=0):
    rng = np.random.default_rng(seed)
    level = rng.integers(0, n_levels, n)
    effect = rng.normal(size=n_levels)[level]
    y = effect + rng.normal(size=n)
    if classes:
        y = np.digitize(y, np.linspace(-1, 1, classes - 1))
    table = {"town": [f"t{i}" for i in level], "x": rng.normal(size=n)}
    return table, y


def test_levels_have_one_feature_each_and_the_same_distance():
    prepared = TablePreparation(rare=1).fit({"job": ["a", "b", "c", "a"]})
    Z = prepared.transform({"job": ["a", "b", "c"]})
    assert prepared.get_feature_names_out().tolist() == ["job=a", "job=b", "job=c"]
    np.testing.assert_allclose(pdist(Z), SQRT2)
    half = TablePreparation(rare=1, category_scale=0.5).fit({"job": ["a", "b", "c", "a"]})
    np.testing.assert_allclose(pdist(half.transform({"job": ["a", "b", "c"]})), SQRT2 / 2)


def test_two_levels_and_booleans_share_a_feature_at_the_same_distance():
    prepared = TablePreparation(rare=1).fit({"sex": ["f", "m", "m"], "new": [True, False, True]})
    Z = prepared.transform({"sex": ["f", "m"], "new": [True, False]})
    assert prepared.get_feature_names_out().tolist() == ["sex=m", "new"]
    np.testing.assert_allclose(np.abs(np.diff(Z, axis=0)), SQRT2)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-15)
    assert Z[0, 1] > 0 > Z[0, 0]


def test_rare_levels_are_pooled_and_unknown_ones_join_them():
    job = ["a"] * 6 + ["b"] * 5 + ["c"] * 2 + ["d"]
    prepared = TablePreparation(rare=5).fit({"job": job})
    assert prepared.get_feature_names_out().tolist() == ["job=a", "job=b", "job=(rare)"]
    Z = prepared.transform({"job": ["c", "d", "never met", None]})
    np.testing.assert_array_equal(Z, np.tile([0.0, 0.0, 1.0], (4, 1)))
    assert "2 of them pooled" in prepared.report_["why"][0]
    share = TablePreparation(rare=0.2).fit({"job": job})
    assert share.get_feature_names_out().tolist() == prepared.get_feature_names_out().tolist()


def test_without_a_pool_unknown_levels_are_zero_and_counted():
    prepared = TablePreparation(rare=1).fit({"job": ["a", "b", "c"], "n": [1.0, 2.0, 4.0]})
    new = {"job": ["x", "a", "x", "y", None], "n": [1.0] * 5}
    np.testing.assert_array_equal(prepared.transform(new)[[0, 2, 3, 4], :3], 0.0)
    assert prepared.unseen(new) == {"job": {"x": 2, "y": 1}}
    assert prepared.unseen({"job": ["a"], "n": [1.0]}) == {}


def test_missing_categories_are_a_level_of_their_own():
    prepared = TablePreparation(rare=1).fit({"job": ["a", None, "b", np.nan, "b"]})
    names = ["job=a", "job=b", "job=(missing)"]
    assert prepared.get_feature_names_out().tolist() == names
    np.testing.assert_array_equal(prepared.transform({"job": [None]}), [[0.0, 0.0, 1.0]])


def test_missing_booleans_are_in_the_middle_and_marked():
    prepared = TablePreparation().fit({"new": [True, None, False]})
    assert prepared.get_feature_names_out().tolist() == ["new", "new=(missing)"]
    side = np.sqrt(0.5)
    expected = [[side, -side], [0.0, side], [-side, -side]]
    np.testing.assert_allclose(prepared.transform({"new": [True, None, False]}), expected)


@pytest.mark.parametrize(("weighted", "smoothing"), [(False, "auto"), (False, 3.0), (True, 3.0)])
def test_encodings_are_those_of_a_refit_for_every_row(smoothing, weighted):
    table, y = many_levels(120)
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 3, len(y)) if weighted else np.ones(len(y), dtype=int)
    preparation = TablePreparation(
        max_levels=10, smoothing=smoothing, cv=KFold(6, shuffle=True, random_state=0)
    )
    fold = np.empty(len(y), dtype=int)
    for f, (_, test) in enumerate(preparation.cv.split(y)):
        fold[test] = f
    Z = preparation.fit_transform(table, y, sample_weight=weight)
    assert preparation.get_feature_names_out().tolist() == ["town:target", "x"]
    m = None if smoothing == "auto" else smoothing
    # The scale of weights means nothing: smoothing counts rows of mean weight.
    m = None if m is None else m * weight.sum() / np.count_nonzero(weight)
    expected = oracle.out_of_fold_encoding(table["town"], y, weight, fold, m)
    assert np.std(expected) > 0.3
    np.testing.assert_allclose(Z[:, 0], expected, atol=1e-10)


def test_new_rows_are_encoded_by_all_training_rows():
    table, y = many_levels(120)
    prepared = TablePreparation(max_levels=10).fit(table, y)
    effects = oracle.shrunken_means(table["town"], y, None)
    Z = prepared.transform(table)
    np.testing.assert_allclose(Z[:, 0], [effects[t] for t in table["town"]], atol=1e-10)
    new = prepared.transform({"town": ["elsewhere", None], "x": [0.0, 0.0]})
    np.testing.assert_array_equal(new[:, 0], 0.0)


def test_folds_are_those_of_assign_folds():
    table, y = many_levels(200)
    rows = np.column_stack([column.as_numbers() for column in read_table(table).columns])
    fold = assign_folds(rows, 5, targets=y, by_rank=True).numbers(200)
    assert np.bincount(fold).tolist() == [40] * 5
    Z = TablePreparation(max_levels=10, cv=5).fit_transform(table, y)
    expected = oracle.out_of_fold_encoding(table["town"], y, np.ones(200), fold, None)
    np.testing.assert_allclose(Z[:, 0], expected, atol=1e-10)


def test_no_row_sees_its_own_target():
    table, y = many_levels(80, n_levels=15)
    preparation = TablePreparation(max_levels=5)
    Z = preparation.fit_transform(table, y)
    changed = 0
    for i in range(len(y)):
        other = y.copy()
        other[i] += 100.0
        moved = preparation.fit_transform(table, other)
        np.testing.assert_allclose(moved[i], Z[i], atol=1e-9)
        changed += np.abs(moved - Z).max() > 0.01
    assert changed == len(y)  # it is seen by others


def test_classes_have_one_feature_each_but_the_first():
    table, y = many_levels(200, classes=4)
    labels = np.array(["low", "mid", "high", "top"])[y]
    preparation = TablePreparation(max_levels=10, cv=KFold(5))
    Z = preparation.fit_transform(table, labels)
    names = [f"town:target={c}" for c in ("low", "mid", "top")]
    assert preparation.get_feature_names_out().tolist() == [*names, "x"]
    fold = np.repeat(np.arange(5), 40)
    for j, label in enumerate(("low", "mid", "top")):
        y01 = (labels == label).astype(float)
        expected = oracle.out_of_fold_encoding(table["town"], y01, np.ones(200), fold, None)
        np.testing.assert_allclose(Z[:, j], expected, atol=1e-10)


def test_several_numeric_targets_have_a_feature_each():
    table, y = many_levels(200)
    Y = np.column_stack([y, -3 * y + 1])
    both = TablePreparation(max_levels=10).fit_transform(table, Y)
    one = TablePreparation(max_levels=10).fit_transform(table, y)
    assert both.shape == (200, 3)
    np.testing.assert_allclose(both[:, 1], -both[:, 0], atol=1e-9)
    np.testing.assert_allclose(np.abs(both[:, 0]).mean(), np.abs(one[:, 0]).mean(), rtol=0.2)


def test_what_y_holds_can_be_said():
    table, y = many_levels(200)
    counts = np.round(5 + 3 * y).astype(int)
    assert TablePreparation(max_levels=10).fit(table, counts).prepared_.n_features > 5
    said = TablePreparation(max_levels=10, target="numbers").fit(table, counts)
    assert said.get_feature_names_out().tolist() == ["town:target", "x"]
    with pytest.raises(InvalidInputError, match="not numbers"):
        TablePreparation(max_levels=10, target="numbers").fit(table, ["a", "b"] * 100)


def test_levels_without_effect_stay_small():
    noise, signal = [], []
    for seed in range(20):
        table, y = many_levels(1000, n_levels=100, seed=seed)
        other = np.random.default_rng(seed + 100).normal(size=1000)
        noise.append(TablePreparation().fit_transform(table, other)[:, 0].std())
        signal.append(TablePreparation().fit_transform(table, y)[:, 0].std())
    assert min(signal) > 0.95
    assert np.median(noise) < 0.25


def test_noise_encoded_out_of_fold_does_not_predict_its_target():
    correlations = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        table, _ = many_levels(400, n_levels=60, seed=seed)
        y = rng.normal(size=400)
        z = TablePreparation(smoothing=1.0).fit_transform(table, y)[:, 0]
        correlations.append(np.corrcoef(z, y)[0, 1])
    assert np.mean(correlations) < 2 / np.sqrt(400 * 40)  # in sight of y it would be 0.3 or more
    in_sight = TablePreparation(smoothing=1.0).fit(table, y).transform(table)[:, 0]
    assert np.corrcoef(in_sight, y)[0, 1] > 0.3


def test_equal_rows_and_groups_share_a_fold():
    table, y = many_levels(200)
    groups = np.repeat(np.arange(40), 5)
    preparation = TablePreparation(max_levels=10)
    Z = preparation.fit_transform(table, y, groups=groups)
    for group in (0, 17):
        other = y.copy()
        other[groups == group] += 50.0
        moved = preparation.fit_transform(table, other, groups=groups)
        np.testing.assert_allclose(moved[groups == group], Z[groups == group], atol=1e-9)
    with pytest.raises(InvalidInputError, match="groups has shape"):
        preparation.fit(table, y, groups=groups[:5])


def test_copies_of_a_table_tell_nothing_of_its_targets():
    """Three copies of noise, one target changed: levels must not know the targets of their rows."""
    rng = np.random.default_rng(0)
    level, x = np.tile(rng.integers(0, 60, 150), 3), np.tile(rng.normal(size=150), 3)
    y = np.tile(rng.normal(size=150), 3)
    y[0] += 0.5
    Z = TablePreparation().fit_transform({"town": [f"t{i}" for i in level], "x": x}, y)
    assert abs(np.corrcoef(Z[:, 0], y)[0, 1]) < 0.3
    single = TablePreparation().fit_transform(
        {"town": [f"t{i}" for i in level[:150]], "x": x[:150]},
        y[150:300],
        sample_weight=np.full(150, 3.0),
    )
    same = TablePreparation().fit_transform(
        {"town": [f"t{i}" for i in level], "x": x}, y[np.r_[150:300].tolist() * 3]
    )
    np.testing.assert_allclose(same[:150], single, atol=1e-9)


def test_a_few_columns_of_a_wide_table_tell_that_rows_differ(monkeypatch):
    hashed, hash_rows = [], preparation.hash_rows

    def counting(*given, **options):
        hashed.append(1)
        return hash_rows(*given, **options)

    monkeypatch.setattr(preparation, "hash_rows", counting)
    own = np.random.default_rng(0)
    X, y = own.integers(0, 2, size=(60, 400)), own.normal(size=(60, 1))
    rows = [[*range(60)] * copies for copies in (1, 3)]
    tables = [read_table(X[some].astype(float)) for some in rows]
    weights = [
        preparation._weight_of_a_row(table, y[some], np.ones(len(some)))
        for table, some in zip(tables, rows, strict=True)
    ]
    assert weights == [1.0, 3.0]
    assert len(hashed) == 65 + 1 + 400 + 1  # 64 columns, the next one and targets; all of copies


def test_rows_that_repeat_by_nature_are_assigned_one_by_one():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 60, 3000)
    p = rng.uniform(size=60)[level]
    y = (rng.uniform(size=3000) < p).astype(int)
    Z = TablePreparation().fit_transform({"town": [f"t{i}" for i in level]}, y)
    # Were equal rows kept together, no level would ever be seen by its own rows: all 0.
    assert np.corrcoef(Z[:, 0], p)[0, 1] > 0.9


def test_order_of_rows_and_columns_changes_nothing():
    table, y = many_levels(300)
    order = np.random.default_rng(3).permutation(300)
    shuffled = {name: np.asarray(table[name])[order] for name in ("x", "town")}
    Z = TablePreparation(max_levels=10).fit_transform(table, y)
    moved = TablePreparation(max_levels=10).fit_transform(shuffled, y[order])
    np.testing.assert_allclose(moved[:, ::-1], Z[order], atol=1e-9)


def test_without_targets_the_most_frequent_levels_are_kept():
    rng = np.random.default_rng(0)
    town = [f"t{min(i, 19)}" for i in rng.geometric(0.2, 500)]
    prepared = TablePreparation(max_levels=4, rare=1).fit({"town": town})
    names = prepared.get_feature_names_out().tolist()
    assert names == ["town=t1", "town=t2", "town=t3", "town=t4", "town=(rare)"]


def test_one_class_encodes_nothing():
    table, _ = many_levels(100)
    preparation = TablePreparation(max_levels=5)
    with pytest.warns(UserWarning, match="'town': it has many levels"):
        assert preparation.fit_transform(table, ["same"] * 100).shape == (100, 1)
    assert "one class" in preparation.report_["why"][0]
    with pytest.raises(InvalidInputError, match="'town': it has many levels"):
        preparation.fit({"town": table["town"]}, ["same"] * 100)


def test_bad_targets_are_errors():
    table, y = many_levels(100)
    preparation = TablePreparation(max_levels=5)
    with pytest.raises(InvalidInputError, match="y has NaN"):
        preparation.fit(table, np.where(np.arange(100) == 3, np.nan, y))
    with pytest.raises(InvalidInputError, match="y has missing values"):
        preparation.fit(table, ["a", None] * 50)
    with pytest.raises(InvalidInputError, match="99 targets"):
        preparation.fit(table, y[:99])
    with pytest.raises(InvalidInputError, match="every row once"):
        TablePreparation(max_levels=5, cv=[([0], [1])]).fit(table, y)


@pytest.mark.parametrize(("trained", "new"), [("1", 1.0), ("1.0", 1), ("1", "1.0"), ("1.0", "1")])
def test_whole_numbers_are_the_same_levels_as_text_and_as_floats(trained, new):
    table = {"code": [trained, "other", "third"] * 10}
    preparation = TablePreparation().fit(table)
    want = preparation.transform({"code": [trained]})
    np.testing.assert_array_equal(preparation.transform({"code": [new]}), want)


def test_long_texts_are_cut_in_messages():
    """A cell may hold a letter of many pages."""
    seen, new = (np.array([f"{i} {word} " + "so on " * 500 for i in "123"] * 10) for word in "ab")
    preparation = TablePreparation().fit({"job": seen})
    with pytest.warns(ColumnWarning, match=r"'1 a so on .*\.\.\.', '2 a so on ") as warned:
        preparation.transform({"job": new})
    assert len(str(warned[0].message)) < 500
    with pytest.warns(ColumnWarning, match=r"'job': it is '1 a so on .*\.\.\.' in every") as warned:
        TablePreparation().fit({"job": seen[[0] * 9], "age": np.arange(9.0)})
    assert len(str(warned[0].message)) < 200
    with pytest.raises(
        InvalidInputError, match=r"different kinds \('1 a so on .*\.\.\.' in row"
    ) as bad:
        TablePreparation().fit({"job": [seen[0], 1.5] * 5})
    assert len(str(bad.value)) < 400


def test_a_column_of_unseen_levels_warns():
    preparation = TablePreparation().fit({"job": ["cook", "smith", "pilot"] * 10})
    with pytest.warns(ColumnWarning, match="Column 'job' has no value seen in training .*'nurse'"):
        preparation.transform({"job": ["nurse", "judge"] * 5})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        preparation.transform({"job": ["nurse"] * 9 + ["cook"]})
        preparation.transform({"job": [None] * 9})


@pytest.mark.parametrize(("values", "classes"), [(50, True), (51, False)])
def test_up_to_50_whole_numbers_are_classes(values, classes):
    town = [f"t{i}" for i in range(60)] * 10
    y = np.arange(600) % values
    names = TablePreparation().fit({"town": town, "x": np.sin(np.arange(600.0))}, y)
    encoded = [n for n in names.get_feature_names_out() if n.startswith("town")]
    assert len(encoded) == (values - 1 if classes else 1)
