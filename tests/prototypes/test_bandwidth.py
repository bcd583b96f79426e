"""The plug-in bandwidth against the double sum, a published value, and its fall-backs."""

import numpy as np
import pytest
from tests.oracles import plugin_bandwidth as oracle
from tests.oracles import prototypes as printed

from lssvm._core.errors import InvalidInputError
from lssvm.prototypes import plug_in_bandwidth
from lssvm.prototypes.bandwidth import _column, _equation, _newton, rule_of_thumb_bandwidth

# Annual precipitation of 70 cities of the USA (inches), the set `precip` of R
PRECIP = [67, 54.7, 7, 48.5, 14, 17.2, 20.7, 13, 43.4, 40.2, 38.9, 54.5, 59.8, 48.3, 22.9, 11.5]
PRECIP += [34.4, 35.1, 38.7, 30.8, 30.6, 43.1, 56.8, 40.8, 41.8, 42.5, 31, 31.7, 30.2, 25.9, 49.2]
PRECIP += [37, 35.9, 15, 30.2, 7.2, 36.2, 45.5, 7.8, 33.4, 36.1, 40.2, 42.7, 42.5, 16.2, 39, 35]
PRECIP += [37, 31.4, 37.6, 39.9, 36.2, 42.8, 46.4, 24.7, 49.1, 46, 35.9, 7.8, 48.2, 15.2, 32.5]
PRECIP += [44.7, 42.6, 38.8, 17.4, 40.8, 29.1, 14.6, 59.2]


def columns():
    rng = np.random.default_rng(11)
    return {
        "normal": rng.standard_normal(250),
        "bimodal": np.append(rng.normal(-3, 0.3, 150), rng.normal(3, 0.5, 150)),
        "skewed": np.exp(rng.standard_normal(250)),
        "small": rng.standard_normal(30),
        "precip": np.array(PRECIP),
    }


@pytest.mark.parametrize("name", columns())
def test_equals_the_direct_solution(name):
    x = columns()[name]
    found = plug_in_bandwidth(x[:, None], tol=1e-6)
    assert found.method == ("plug-in",)
    assert found.reason == ("",)
    assert found.value[0] == pytest.approx(oracle.plug_in_bandwidth(x), rel=1e-5)
    assert plug_in_bandwidth(x[:, None]).value[0] == pytest.approx(found.value[0], rel=1e-3)


def test_published_value():
    # R's bw.SJ(precip, method = "ste") is 3.9318; it divides by n (n - 1) and bins the data
    assert plug_in_bandwidth(np.array(PRECIP)[:, None]).value[0] == pytest.approx(3.9318, rel=0.015)


def test_two_modes_need_less_smoothing_than_the_normal_reference():
    x = columns()["bimodal"]
    reference = x.std() * (4 / (3 * x.size)) ** 0.2
    assert plug_in_bandwidth(x[:, None]).value[0] < 0.3 * reference


def test_integer_weights_equal_repeated_rows():
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.standard_normal(200), rng.integers(0, 4, 200), rng.gamma(1, 1, 200)])
    weight = rng.integers(0, 4, 200)
    weighted = plug_in_bandwidth(X, sample_weight=weight)
    repeated = plug_in_bandwidth(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.value, repeated.value, rtol=1e-10)
    assert weighted.method == repeated.method
    assert weighted.reason == repeated.reason
    assert not np.allclose(weighted.value, plug_in_bandwidth(X).value, rtol=1e-3)


def test_scales_and_shifts_with_the_data():
    x = columns()["skewed"][:, None]
    base = plug_in_bandwidth(x).value
    np.testing.assert_allclose(plug_in_bandwidth(1e3 * x - 7e3).value, 1e3 * base, rtol=1e-6)
    np.testing.assert_allclose(plug_in_bandwidth(x.astype(np.float32)).value, base, rtol=1e-3)


def test_constant_column_gets_one():
    X = np.column_stack([np.full(50, 7.0), np.linspace(0, 1, 50)])
    found = plug_in_bandwidth(X)
    assert found.value[0] == 1.0
    assert found.method[0] == "normal-reference"
    assert "constant" in found.reason[0]
    assert found.constant.tolist() == [True, False]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (np.tile([0.0, 1.0], 100), "only 2 distinct values"),
        (np.append(np.zeros(150), np.linspace(1, 2, 50)), "holds 75 %"),
        (np.round(4 * np.random.default_rng(0).standard_normal(3000)), "spacing"),
    ],
)
def test_discrete_columns_take_the_normal_reference(column, reason):
    found = plug_in_bandwidth(column[:, None])
    assert found.method == ("normal-reference",)
    assert reason in found.reason[0]
    expected = column.std() * (4 / (3 * column.size)) ** 0.2
    assert found.value[0] == pytest.approx(expected, rel=1e-12)


def test_rounding_well_below_the_bandwidth_does_not_matter():
    x = np.random.default_rng(2).standard_normal(3000)
    rounded = plug_in_bandwidth(np.round(x, 2)[:, None])
    assert rounded.method == ("plug-in",)
    assert rounded.value[0] == pytest.approx(plug_in_bandwidth(x[:, None]).value[0], rel=0.02)


def test_far_outlier_does_not_change_the_bandwidth():
    x = np.random.default_rng(2).standard_normal(2000)
    with_outlier = plug_in_bandwidth(np.append(x, 1e9)[:, None])
    assert with_outlier.method == ("plug-in",)
    assert with_outlier.value[0] == pytest.approx(plug_in_bandwidth(x[:, None]).value[0], rel=0.02)


def test_derivative_of_the_equation():
    equation = _equation(_column(columns()["bimodal"], None, 0), 1e-9)
    for t in (-3.0, -1.0, 0.5):
        slope = (equation(t + 1e-4)[0] - equation(t - 1e-4)[0]) / 2e-4
        assert equation(t)[1] == pytest.approx(slope, rel=1e-5)


def test_newton_stays_in_the_bracket():
    def steep(t):  # Newton's steps overshoot and oscillate
        return np.arctan(20 * (t + 2.7)), 20 / (1 + 400 * (t + 2.7) ** 2)

    assert _newton(steep, 0.0, 1e-6) == pytest.approx(np.exp(-2.7), rel=1e-6)
    assert np.isnan(_newton(lambda t: (1.0, 1.0), 0.0, 1e-6))


def test_unsolvable_equation_falls_back(monkeypatch):
    def refuse(equation, t, tol):
        return np.nan

    monkeypatch.setattr("lssvm.prototypes.bandwidth._newton", refuse)
    found = plug_in_bandwidth(columns()["normal"][:, None])
    assert found.method == ("normal-reference",)
    assert "no solution" in found.reason[0]


def test_unattainable_accuracy_falls_back():
    found = plug_in_bandwidth(columns()["normal"][:, None], tol=1e-15)
    assert found.method == ("normal-reference",)
    assert "accuracy" in found.reason[0]


def test_sample_of_the_rows_is_scaled_to_the_full_size():
    X = np.random.default_rng(4).standard_normal((20_000, 1))
    full = plug_in_bandwidth(X).value[0]
    part = plug_in_bandwidth(X, max_rows=2000, random_state=0).value[0]
    assert part == pytest.approx(full, rel=0.1)
    assert part != full
    assert part == plug_in_bandwidth(X, max_rows=2000, random_state=0).value[0]


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match="Column 1"):
        plug_in_bandwidth(np.array([[0.0, 1.0], [1.0, np.nan], [2.0, 3.0]]))
    with pytest.raises(InvalidInputError, match="two-dimensional"):
        plug_in_bandwidth(np.zeros(5))
    with pytest.raises(InvalidInputError, match="tol"):
        plug_in_bandwidth(np.zeros((5, 1)), tol=0.0)
    with pytest.raises(InvalidInputError, match="sample_weight"):
        plug_in_bandwidth(np.zeros((5, 1)), sample_weight=np.zeros(5))


@pytest.mark.parametrize("d", [1, 2, 5, 30])
def test_rule_of_thumb_is_best_for_a_normal_density(d):
    X = np.random.default_rng(d).standard_normal((200, d)) * np.arange(1, d + 1)
    found = rule_of_thumb_bandwidth(X)
    np.testing.assert_allclose(found.value, printed.rule_of_thumb(X), rtol=1e-12)
    assert found.method == ("rule-of-thumb",) * d
    # one dimension: the normal reference, (4/3)^(1/5) sigma n^(-1/5)
    single = (4 / 3) ** 0.2 * X[:, 0].std() * 200**-0.2
    assert rule_of_thumb_bandwidth(X[:, :1]).value[0] == pytest.approx(single, rel=1e-12)


def test_rule_of_thumb_leaves_constant_columns_out_and_counts_weights():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    with_constant = np.column_stack([X, np.full(60, 3.0)])
    found = rule_of_thumb_bandwidth(with_constant)
    np.testing.assert_allclose(found.value, [*rule_of_thumb_bandwidth(X).value, 1.0], rtol=1e-12)
    assert found.constant.tolist() == [False, False, True]
    weight = rng.integers(0, 3, 60)
    repeated = rule_of_thumb_bandwidth(np.repeat(X, weight, axis=0))
    counted = rule_of_thumb_bandwidth(X, sample_weight=weight)
    np.testing.assert_allclose(counted.value, repeated.value, rtol=1e-12)
    with pytest.raises(InvalidInputError, match="not finite"):
        rule_of_thumb_bandwidth(np.array([[1.0], [np.nan]]))
