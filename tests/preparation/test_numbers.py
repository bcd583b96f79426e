"""Columns of numbers: standardised, normal scores, missing values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri
from tests.oracles import preparation as oracle

from lssvm._core.errors import InvalidInputError
from lssvm.data.encodings import GRID, Distinct, learn_normal_scores
from lssvm.preparation import TablePreparation

RNG = np.random.default_rng(0)


def test_standardised_numbers_have_mean_0_and_deviation_1():
    X = RNG.normal(5.0, [0.1, 1e6, 1e-9], (200, 3))
    Z = TablePreparation().fit_transform(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-6)  # 5 has no more digits
    np.testing.assert_allclose(Z.std(axis=0), 1.0, rtol=1e-8)
    np.testing.assert_allclose(Z, (X - X.mean(axis=0)) / X.std(axis=0), atol=1e-6)


def test_normal_scores_are_those_of_the_oracle():
    x = np.concatenate([RNG.lognormal(size=60), [0.5] * 20, [7.0] * 3])
    weight = RNG.integers(1, 4, len(x))
    Z = TablePreparation("quantiles").fit_transform(x[:, None], sample_weight=weight)
    np.testing.assert_allclose(Z[:, 0], oracle.normal_scores(x, weight), atol=1e-12)


def test_many_different_numbers_are_interpolated_closely_and_in_order():
    x = np.concatenate([RNG.lognormal(2.0, 2.0, 40_000), np.zeros(15_000), np.full(500, 3.0)])
    distinct = Distinct.of(x, None)
    assert len(distinct.values) > 20 * GRID
    encoding = learn_normal_scores(distinct, 0.0)
    assert len(encoding.grid) < 4 * GRID
    out = np.empty((len(x), 1))
    encoding.encode_values(x, out)
    order = np.argsort(x, kind="stable")
    assert np.all(np.diff(out[order, 0]) >= 0)
    # The exact scores by ranks of all numbers.
    rank = (np.searchsorted(x[order], x, "left") + np.searchsorted(x[order], x, "right")) / 2
    exact = np.clip(ndtri(rank / len(x)), -3.0, 3.0)
    exact = (exact - exact.mean()) / exact.std()
    np.testing.assert_allclose(out[:, 0], exact, atol=6.0 / GRID)
    np.testing.assert_allclose([out.mean(), out.std()], [0.0, 1.0], atol=1e-9)


def test_scores_are_monotone_and_clipped_outside_the_training_range():
    x = RNG.lognormal(size=500)
    prepared = TablePreparation("quantiles").fit(x[:, None])
    ends = prepared.transform([[x.min()], [x.max()]]).ravel()
    far = prepared.transform([[-1e9], [1e9]]).ravel()
    np.testing.assert_array_equal(far, ends)
    line = prepared.transform(np.linspace(-1, x.max() + 1, 5000)[:, None]).ravel()
    assert np.all(np.diff(line) >= 0)
    assert np.abs(line).max() < 3.3


def test_scores_do_not_change_under_monotone_maps():
    x = RNG.normal(size=300)
    one = TablePreparation("quantiles").fit_transform(x[:, None])
    other = TablePreparation("quantiles").fit_transform(np.exp(3 * x)[:, None])
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_columns_can_be_scaled_in_different_ways():
    table = {"a": RNG.lognormal(size=50), "b": RNG.lognormal(size=50)}
    mixed = TablePreparation({"b": "quantiles"}).fit(table)
    assert mixed.report_["done"] == ["standardised", "normal scores"]
    plain = TablePreparation().fit_transform(table)
    scores = TablePreparation("quantiles").fit_transform(table)
    Z = mixed.transform(table)
    np.testing.assert_array_equal(Z, np.column_stack([plain[:, 0], scores[:, 1]]))


@pytest.mark.parametrize("numbers", ["standardised", "quantiles"])
def test_missing_numbers_get_the_median_and_a_mark(numbers):
    x = np.array([3.0, np.nan, 1.0, 10.0, np.nan, 2.0])
    prepared = TablePreparation(numbers).fit({"x": x, "full": np.arange(6.0) ** 2})
    Z = prepared.transform({"x": x, "full": np.arange(6.0) ** 2})
    assert prepared.get_feature_names_out().tolist() == ["x", "x=(missing)", "full"]
    median = prepared.transform({"x": [2.5], "full": [0.0]})[0, 0]
    np.testing.assert_array_equal(Z[[1, 4], 0], median)
    side = np.sqrt(0.5)
    np.testing.assert_allclose(Z[:, 1], np.where(np.isnan(x), side, -side))
    # A column that was complete in training is filled, and nothing says so.
    late = prepared.transform({"x": [1.0], "full": [None]})
    full = prepared.transform({"x": [1.0], "full": [(4.0 + 9.0) / 2]})
    np.testing.assert_array_equal(late, full)


def test_the_median_of_weighted_numbers_is_that_of_the_repeated_ones():
    for trial in range(30):
        rng = np.random.default_rng(trial)
        x = rng.integers(0, 6, 9).astype(float)
        weight = rng.integers(1, 4, 9).astype(float)
        expected = np.median(oracle.repeated(x, weight))
        assert Distinct.of(x, weight).median() == expected
        assert Distinct.of(oracle.repeated(x, weight), None).median() == expected


def test_huge_and_tiny_numbers_do_not_overflow():
    x = np.array([-1e300, 0.0, 1e300, 5e299])
    for column in (x, x / 1e200 / 1e300 / 1e90):
        Z = TablePreparation().fit_transform(column[:, None])
        assert np.all(np.isfinite(Z))
        np.testing.assert_allclose(Z.std(), 1.0, rtol=1e-6)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_numbers_are_errors_that_name_column_and_row(value):
    table = {"a": [1.0, 2.0, 3.0], "b": [1.0, 5.0, value]}
    with pytest.raises(InvalidInputError, match=r"'b' has an infinite value .* in row 2"):
        TablePreparation().fit(table)
    with pytest.raises(InvalidInputError, match=r"'b' has an infinite value .* in row 2"):
        TablePreparation().fit(table, sample_weight=[1, 1, 0])
    prepared = TablePreparation().fit({"a": [1.0, 2.0], "b": [1.0, 5.0]})
    with pytest.raises(InvalidInputError, match="'b' has an infinite value"):
        prepared.transform(table)


def test_durations_are_numbers_of_days():
    table = {"wait": np.array([12, 36, 24], dtype="timedelta64[h]")}
    prepared = TablePreparation().fit(table)
    assert prepared.report_["kind"] == ["duration"]
    expected = TablePreparation().fit_transform({"wait": [0.5, 1.5, 1.0]})
    np.testing.assert_allclose(prepared.transform(table), expected, atol=1e-12)


def test_scores_never_fall_where_weights_are_rounding():
    """Quantiles of neighbouring numbers may fall, and a file with such scores is refused."""
    values = np.arange(8.0)
    for share in np.random.default_rng(0).uniform(0.05, 0.95, 1000):
        weight = np.array([share, *[np.spacing(share)] * 6, 1.0 - share])
        encoding = learn_normal_scores(Distinct(values, weight), 0.0)
        assert np.all(np.diff(encoding.scores) >= 0.0)
