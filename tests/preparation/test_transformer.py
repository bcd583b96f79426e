"""The transformer: scikit-learn's rules, new rows, weights, blocks and records."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

from lssvm._core.errors import InvalidInputError
from lssvm.data.preparation import PreparedTable
from lssvm.io.records import decode, encode
from lssvm.preparation import TablePreparation

ISO = "datetime64[m]"


def people(n=300, seed=0):
    """A table with every kind of column, and its targets."""
    rng = np.random.default_rng(seed)
    town = rng.integers(0, 70, n)
    age = rng.normal(40.0, 12.0, n)
    y = rng.normal(size=70)[town] + age / 20 + 0.3 * rng.normal(size=n)
    columns = {
        "age": np.where(rng.uniform(size=n) < 0.1, np.nan, age),
        "income": rng.lognormal(10.0, 1.0, n),
        "job": rng.choice(["cook", "smith", "pilot", None], n, p=[0.5, 0.3, 0.15, 0.05]),
        "town": np.array([f"town {i}" for i in town], dtype=object),
        "member": rng.uniform(size=n) < 0.3,
        "since": np.datetime64("2020-01-01T00:00") + rng.integers(0, 2_000_000, n),
        "wait": rng.integers(0, 1000, n).astype("timedelta64[h]"),
    }
    return columns, y


def rows(columns, which):
    return {name: values[which] for name, values in columns.items()}


@pytest.mark.parametrize(
    "preparation",
    [
        TablePreparation(),
        TablePreparation("quantiles", drop=False),
        TablePreparation(rare=1, smoothing=1.0, cv=3),
    ],
)
def test_scikit_learns_checks(preparation):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(preparation, on_fail=None, on_skip=None)
    failed = {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"}
    if not hasattr(estimator_checks, "NamespaceAndDevice"):  # older ones give all of them sparse X
        failed.pop("check_sample_weight_equivalence_on_sparse_data", None)
    assert failed == {}
    assert len(results) > 40


@pytest.mark.parametrize("numbers", ["standardised", "quantiles"])
def test_blocks_give_the_numbers_of_the_whole(numbers):
    columns, y = people(500)
    sample = np.arange(0, 500, 2)
    preparation = TablePreparation(numbers).fit(rows(columns, sample), y[sample])
    whole = preparation.transform(columns)
    for size in (1, 7, 130):
        cuts = [slice(i, i + size) for i in range(0, 500, size)]
        blocks = [preparation.transform(rows(columns, cut)) for cut in cuts]
        np.testing.assert_array_equal(np.vstack(blocks), whole)
    assert np.all(np.isfinite(whole))


def test_a_record_is_plain_and_gives_the_same_numbers():
    columns, y = people()
    preparation = TablePreparation("quantiles").fit(columns, y)
    record = preparation.to_record()

    def plain(value):
        if isinstance(value, dict):
            return all(type(k) is str and plain(v) for k, v in value.items())
        if isinstance(value, list):
            return all(plain(v) for v in value)
        if isinstance(value, np.ndarray):
            return value.dtype == np.float64
        return value is None or type(value) in (str, float, int, bool)

    assert plain(record)
    new, _ = people(100, seed=1)
    expected = preparation.transform(new)
    again = TablePreparation.from_record(record)
    np.testing.assert_array_equal(again.transform(new), expected)
    assert again.get_feature_names_out().tolist() == preparation.get_feature_names_out().tolist()
    assert again.report_ == preparation.report_
    assert again.unseen(new) == preparation.unseen(new)
    # As model files store values: JSON and arrays.
    tree, arrays = encode(record, {})
    stored = json.loads(json.dumps(tree))
    read = PreparedTable.from_record(decode(stored, arrays, {}, 10**6))
    np.testing.assert_array_equal(read.transform(new), expected)


def test_a_record_of_another_format_is_refused():
    record = TablePreparation().fit([[1.0], [2.0]]).to_record()
    with pytest.raises(InvalidInputError, match="format 99"):
        TablePreparation.from_record(record | {"format": 99})


@pytest.mark.parametrize("numbers", ["standardised", "quantiles"])
def test_a_weight_of_2_is_the_row_twice_and_0_is_no_row(numbers):
    columns, y = people(250)
    rng = np.random.default_rng(5)
    weight = rng.integers(0, 3, 250)
    twice = np.repeat(np.arange(250), weight)
    preparation = TablePreparation(numbers, max_levels=20)
    weighted = clone(preparation).fit(columns, y, sample_weight=weight)
    repeated = clone(preparation).fit(rows(columns, twice), y[twice])
    assert weighted.report_ == repeated.report_
    new, _ = people(100, seed=1)
    np.testing.assert_allclose(weighted.transform(new), repeated.transform(new), atol=1e-9)
    Z = clone(preparation).fit_transform(columns, y, sample_weight=weight)
    expected = clone(preparation).fit_transform(rows(columns, twice), y[twice])
    np.testing.assert_allclose(Z[twice], expected, atol=1e-9)


def test_small_weights_count_as_rows_do():
    columns, y = people()
    one = TablePreparation().fit(columns, y)
    small = TablePreparation().fit(columns, y, sample_weight=np.full(300, 1e-4))
    assert one.report_ == small.report_
    np.testing.assert_allclose(one.transform(columns), small.transform(columns), atol=1e-9)


def test_names_of_features_and_their_columns():
    columns, y = people()
    preparation = TablePreparation().fit(columns, y)
    assert preparation.get_feature_names_out().tolist() == [
        "age",
        "age=(missing)",
        "income",
        "job=cook",
        "job=pilot",
        "job=smith",
        "job=(missing)",
        "town:target",
        "member",
        "since",
        "since:year_sin",
        "since:year_cos",
        "since:week_sin",
        "since:week_cos",
        "since:day_sin",
        "since:day_cos",
        "wait",
    ]
    sources = preparation.prepared_.sources.tolist()
    assert sources == [0, 0, 1, 2, 2, 2, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5, 6]
    assert preparation.report_["features"] == [2, 1, 4, 1, 1, 7, 1]


def test_names_that_would_be_there_twice_are_numbered():
    table = {"a": ["x", "y", "z=1", "w"] * 2, "a=z": ["1", "2", "3", "4"] * 2}
    names = TablePreparation(rare=1).fit(table).get_feature_names_out().tolist()
    assert names == ["a=w", "a=x", "a=y", "a=z=1", "a=z=1#2", "a=z=2", "a=z=3", "a=z=4"]


def test_set_output_makes_frames():
    pd = pytest.importorskip("pandas")
    columns, y = people()
    frame = pd.DataFrame(columns, index=np.arange(300) + 7)
    out = TablePreparation().set_output(transform="pandas").fit_transform(frame, y)
    assert out.columns.tolist()[:3] == ["age", "age=(missing)", "income"]
    assert out.index.tolist() == frame.index.tolist()
    assert set(out.dtypes) == {np.dtype("float64")}


def test_in_a_pipeline_with_cross_validation():
    pd = pytest.importorskip("pandas")
    columns, y = people()
    model = make_pipeline(TablePreparation(), LogisticRegression())
    scores = cross_val_score(model, pd.DataFrame(columns), y > np.median(y), cv=5)
    assert scores.mean() > 0.75


def test_columns_are_found_by_name_and_others_ignored():
    columns, y = people()
    preparation = TablePreparation().fit(columns, y)
    expected = preparation.transform(columns)
    other = {"more": np.arange(300), **{name: columns[name] for name in reversed(columns)}}
    np.testing.assert_array_equal(preparation.transform(other), expected)
    del other["town"], other["age"]
    with pytest.raises(InvalidInputError, match=r"no columns \['age', 'town'\]"):
        preparation.transform(other)


def test_columns_that_were_dropped_are_not_needed():
    table = {"a": [1.0, 2.0, 4.0], "constant": [1.0, 1.0, 1.0]}
    with pytest.warns(UserWarning, match="'constant': it is 1 in every row"):
        preparation = TablePreparation().fit(table)
    assert preparation.transform({"a": [2.0]}).shape == (1, 1)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("age", ["3,5", "4"], r"'age' has text or categories \('3,5' in row 0\).*had numbers"),
        ("age", np.array(["2024-01-01"] * 2, ISO), "'age' has dates, but had numbers"),
        ("job", [1.0, 2.0], "'job' has numbers, but had text or categories"),
        ("since", ["soon", None], "'since' has text .*to_datetime"),
        ("member", [0.0, 2.0], "'member' has numbers, but had booleans"),
        ("wait", [1.0, 2.0], "'wait' has numbers, but had durations"),
    ],
)
def test_columns_that_hold_something_else_are_errors(column, values, message):
    columns, y = people()
    preparation = TablePreparation().fit(columns, y)
    new = rows(columns, slice(0, 2)) | {column: values}
    with pytest.raises(InvalidInputError, match=message):
        preparation.transform(new)


def test_columns_that_are_missing_altogether_or_booleans_as_numbers_are_taken():
    columns, y = people()
    preparation = TablePreparation().fit(columns, y)
    nothing = {name: [None, None] for name in columns}
    Z = preparation.transform(nothing)
    assert np.all(np.isfinite(Z))
    new = rows(columns, slice(0, 5))
    expected = preparation.transform(new)
    given = preparation.transform(new | {"member": new["member"].astype(int)})
    np.testing.assert_array_equal(given, expected)
    flags = TablePreparation().fit({"x": [0, 1, 1, 2]})
    np.testing.assert_array_equal(flags.transform({"x": [True]}), flags.transform({"x": [1]}))


def test_arrays_and_tables_in_place_of_each_other_warn():
    columns = {"a": [1.0, 2.0, 5.0], "b": [3.0, 1.0, 1.0]}
    X = np.column_stack(list(columns.values()))
    expected = TablePreparation().fit_transform(X)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        by_position = TablePreparation().fit(columns).transform(X)
    np.testing.assert_array_equal(by_position, expected)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        by_position = TablePreparation().fit(X).transform(columns)
    np.testing.assert_array_equal(by_position, expected)
    with pytest.raises(InvalidInputError, match=r"X has 1 features, but .* expecting 2"):
        TablePreparation().fit(X).transform(X[:, :1])


@pytest.mark.parametrize(
    "parameters",
    [
        {"numbers": "ranks"},
        {"numbers": {"a": "ranks"}},
        {"rare": -1},
        {"rare": "few"},
        {"max_levels": 0},
        {"category_scale": 0},
        {"smoothing": -1.0},
        {"smoothing": "much"},
        {"target": "text"},
        {"cv": 1},
        {"cv": "loo"},
        {"random_state": -1},
    ],
)
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(InvalidInputError, match=name):
        TablePreparation(**parameters).fit([[1.0], [2.0]])


def test_the_seed_deals_other_folds():
    columns, y = people()
    one, same, other = (
        TablePreparation(random_state=seed).fit_transform(columns, y) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0.01


def test_several_scalings_read_a_frame_once(monkeypatch):
    import pandas as pd

    from lssvm.data import preparation
    from lssvm.preparation.transformer import Scalings

    draws = np.random.default_rng(0)
    X = pd.DataFrame({"a": draws.normal(size=80), "b": draws.choice(["x", "y", "z"], 80)})
    both = {name: TablePreparation(name).fit(X) for name in ("standardised", "quantiles")}
    calls, read = [], preparation.read_table
    monkeypatch.setattr(preparation, "read_table", lambda *args: calls.append(1) or read(*args))
    features = Scalings(both).transform(X)
    assert len(calls) == 1
    for name, one in both.items():
        np.testing.assert_array_equal(features[name], one.transform(X))
