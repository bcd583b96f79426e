"""Maps from scores to probabilities, coupling, and conformal quantiles."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from tests.oracles.gaussian_process import coupling_loss, platt_loss

from lssvm import LSSVC
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm.codes import make_code, one_vs_one
from lssvm.uncertainty import (
    Isotonic,
    OutOfFold,
    Sigmoid,
    agree_with,
    calibrate,
    check_coverage,
    conformal_quantile,
    couple_pairs,
    fit_calibrator,
    fit_sharpness,
    fit_sigmoid,
    scaled_residuals,
    sharpened,
)
from lssvm.uncertainty.probabilities import (
    FEW_ROWS,
    calibrate_log_odds,
    is_skewed,
    odds_against_others,
)

rng = np.random.default_rng(0)


def draw(n, slope=3.0, offset=-0.5):
    scores = rng.uniform(-2, 2, size=n)
    return scores, rng.uniform(size=n) < 1 / (1 + np.exp(-(slope * scores + offset)))


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e8])
def test_sigmoid_is_the_minimum(unit):
    scores, positive = draw(300)
    weight = rng.uniform(0.1, 3.0, size=300)
    ours = fit_sigmoid(unit * scores, positive, weight)
    best = minimize(
        lambda v: platt_loss(*v, scores, positive, weight), [1.0, 0.0], tol=1e-12, method="BFGS"
    )
    np.testing.assert_allclose([ours.slope * unit, ours.offset], best.x, rtol=1e-4)


def test_sigmoid_of_separated_constant_and_reversed_scores():
    positive = np.arange(20) >= 10
    apart = fit_sigmoid(np.where(positive, 1.0, -1.0), positive, np.ones(20))
    assert apart(np.array([1.0]))[0] == pytest.approx(11 / 12, abs=1e-6)
    assert fit_sigmoid(np.zeros(20), positive, np.ones(20)) == Sigmoid(0.0, 0.0)
    assert fit_sigmoid(np.where(positive, -1.0, 1.0), positive, np.ones(20)).slope == 0.0


def test_isotonic_is_monotone_open_and_right():
    scores = rng.uniform(-1, 1, size=20000)
    truth = np.clip((1 + scores) / 2, 0.02, 0.9)  # levels off, as no sigmoid does
    positive = rng.uniform(size=20000) < truth
    map = fit_calibrator(scores, positive)
    assert isinstance(map, Isotonic)
    grid = np.linspace(-1.5, 1.5, 500)
    p = map(grid)
    assert np.all(np.diff(p) >= 0)
    assert 0.0 < p[0] and p[-1] < 1.0
    inner = np.linspace(-0.95, 0.95, 50)
    assert np.abs(map(inner) - np.clip((1 + inner) / 2, 0.02, 0.9)).max() < 0.05
    sigmoid = fit_calibrator(scores, positive, method="sigmoid")
    assert np.abs(sigmoid(inner) - np.clip((1 + inner) / 2, 0.02, 0.9)).max() > 0.05


def test_few_rows_take_the_sigmoid_and_weights_count_as_rows():
    scores, positive = draw(500)
    assert isinstance(fit_calibrator(scores, positive), Sigmoid)
    for method in ("sigmoid", "isotonic"):
        twice = np.r_[np.arange(500), np.arange(100)]
        weight = np.where(np.arange(500) < 100, 2.0, 1.0)
        a = fit_calibrator(scores, positive, weight, method)
        b = fit_calibrator(scores[twice], positive[twice], None, method)
        np.testing.assert_allclose(a(scores), b(scores), rtol=1e-6)


def test_what_is_not_finite_is_left_out():
    scores, positive = draw(100)
    a = fit_calibrator(np.r_[scores, np.nan, np.inf], np.r_[positive, True, False])
    np.testing.assert_allclose(a(scores), fit_calibrator(scores, positive)(scores))


def test_unknown_method():
    with pytest.raises(InvalidInputError, match="sigmoid"):
        fit_calibrator(np.zeros(3), np.ones(3, dtype=bool), method="beta")


def test_coupling_is_the_minimum_on_the_simplex():
    K = 4
    r = rng.uniform(0.05, 0.95, size=(K, K))
    pairs = np.triu(r, 1) + np.tril(1 - r.T, -1)
    ours = couple_pairs(pairs[None])[0]
    assert ours.sum() == pytest.approx(1.0)
    value = coupling_loss(ours, pairs)
    for _ in range(200):
        other = np.maximum(ours + 0.02 * rng.normal(size=K), 0)
        assert coupling_loss(other / other.sum(), pairs) > value


def test_coupling_recovers_consistent_pairs():
    p = rng.dirichlet(np.ones(6), size=40) + 1e-3
    p /= p.sum(axis=1, keepdims=True)
    pairs = p[:, :, None] / (p[:, :, None] + p[:, None, :])
    np.testing.assert_allclose(couple_pairs(pairs), p, atol=1e-8)


def test_agreement_is_the_nearest():
    p = rng.dirichlet(np.ones(5), size=200)
    decided = rng.integers(5, size=200)
    ours = agree_with(p, decided)
    assert np.array_equal(ours.argmax(axis=1), decided)
    np.testing.assert_allclose(ours.sum(axis=1), 1.0)
    assert np.all(ours >= 0)
    same = p.argmax(axis=1) == decided
    assert np.array_equal(ours[same], p[same])
    distance = np.linalg.norm(ours - p, axis=1)
    for _ in range(300):  # no other vector that agrees is nearer
        other = rng.dirichlet(np.ones(5), size=200) * 0.05 + ours * 0.95
        good = other.argmax(axis=1) == decided
        assert np.all(np.linalg.norm(other - p, axis=1)[good] > distance[good] - 1e-8)


def test_ties_go_to_the_decided_class():
    p = np.array([[0.5, 0.5], [0.5, 0.5]])
    assert np.array_equal(agree_with(p, np.array([0, 1])).argmax(axis=1), [0, 1])


def test_pairs_of_classes_are_calibrated_on_their_own_rows():
    labels = np.repeat(np.arange(3), 50)
    code = one_vs_one(3)
    scores = code.matrix[labels] + rng.normal(size=(150, 3))
    table = OutOfFold(scores, labels)
    spoiled = scores.copy()
    spoiled[code.matrix[labels] == 0] = 99.0  # what a pair says about other classes
    a, b = calibrate(table, code), calibrate(OutOfFold(spoiled, labels), code)
    assert a.maps == b.maps


def test_weights_of_rows_of_several_classes_count_as_rows():
    random = np.random.default_rng(5)
    labels, code = random.integers(3, size=60), make_code("ova", 3, 0)
    scores = np.eye(3)[labels] + random.normal(size=(60, 3))
    scores[:10, 1] = scores[:10, 2]  # the largest score may be either
    weight = random.integers(3, size=60)
    order = random.permutation(np.repeat(np.arange(60), weight))
    rounded = scores[order] * (1.0 + 1e-14 * random.normal(size=(len(order), 3)))
    a = calibrate(OutOfFold(scores, labels, weight.astype(float)), code)
    b = calibrate(OutOfFold(rounded, labels[order]), code)
    new = random.normal(size=(20, 3))
    assert a.sharpness == pytest.approx(b.sharpness, rel=1e-9)
    np.testing.assert_allclose(a.of(new, None), b.of(new, None), rtol=1e-7)


def test_sets_cover_and_are_never_empty():
    random = np.random.default_rng(2)
    n = 20_000
    labels = random.integers(4, size=2 * n)
    raw = np.eye(4)[labels] * 2 - 1 + random.normal(scale=1.5, size=(2 * n, 4))
    half = slice(0, n)
    model = calibrate(OutOfFold(raw[half], labels[half]), make_code("ova", 4, 0))
    new, truth = raw[n:], labels[n:]
    for coverage in (0.8, 0.9, 0.97):
        sets = model.sets(new, new.argmax(axis=1), coverage)
        assert np.all(sets.any(axis=1))
        assert sets[np.arange(n), truth].mean() == pytest.approx(coverage, abs=0.02)
    assert model.sets(new, new.argmax(axis=1), 0.97).sum() > sets.shape[0]


def test_conformal_quantile_counts_the_new_value():
    values = np.arange(1.0, 100.0)  # 99 of them
    for coverage in (0.5, 0.9, 0.99):
        assert conformal_quantile(values, np.ones(99), coverage) == round(100 * coverage)
    assert conformal_quantile(values, np.ones(99), 0.995) == np.inf
    assert conformal_quantile(values, np.full(99, 2.0), 0.9) == 90.0


def test_many_residuals_are_thinned_without_moving_the_quantiles():
    e = rng.standard_t(3, size=(50_000, 1))
    few = scaled_residuals(e, np.ones_like(e))
    assert len(few.values[0]) == 10_000
    assert few.weight[0].sum() == pytest.approx(50_000)
    wanted = conformal_quantile(np.sort(np.abs(e[:, 0])), np.ones(50_000), 0.95)
    assert few.factor(0.95, 0)[1] == pytest.approx(wanted, rel=0.01)


def test_too_few_residuals_give_infinite_ends_and_a_warning():
    few = scaled_residuals(np.ones((5, 1)), np.ones((5, 1)))
    with pytest.warns(NumericalWarning, match="too few"):
        assert few.factor(0.95, 0) == (-np.inf, np.inf)


def order_statistic(values, level):
    """Return the value that a new one is below with probability ``level``, by counting."""
    n = len(values)
    below = int(np.ceil(level * (n + 1) - 1e-9))
    return np.sort(values)[below - 1] if below <= n else np.inf


def test_quantiles_of_skewed_residuals_are_order_statistics_of_each_side():
    e = np.random.default_rng(3).exponential(size=(499, 1)) - 1.0
    r = replace(scaled_residuals(e, np.ones_like(e)), two_sided=True)
    levels = [0.02, 0.1, 0.4, 0.5, 0.6, 0.9, 0.99]
    wanted = [-order_statistic(-e[:, 0], 1 - q) for q in levels[:3]]
    wanted += [order_statistic(e[:, 0], q) for q in levels[3:]]
    np.testing.assert_array_equal(r.quantiles(levels, 0), wanted)
    assert r.factor(0.8, 0) == (wanted[1], wanted[5])
    fine = r.quantiles(np.linspace(1e-4, 1 - 1e-4, 2001), 0)
    assert np.all(np.diff(fine[np.isfinite(fine)]) >= 0)
    assert np.all(np.diff(np.isfinite(fine).astype(int)[:1000]) >= 0)


def test_quantiles_of_others_are_symmetric():
    e = np.random.default_rng(3).exponential(size=(499, 1)) - 1.0
    for r in (
        scaled_residuals(e, np.ones_like(e)),
        replace(scaled_residuals(e[:60], np.ones((60, 1))), two_sided=True),
        replace(scaled_residuals(np.vstack([e, -e]), np.ones((998, 1))), two_sided=True),
    ):
        low, middle, high = r.quantiles([0.1, 0.5, 0.9], 0)
        assert (low, middle) == (-high, 0.0)
        assert high == pytest.approx(order_statistic(np.abs(r.values[0]), 0.8))


def test_skewness_is_seen_in_skewed_residuals_only():
    rng = np.random.default_rng(5)
    ones = np.ones(400)
    falsely = [is_skewed(rng.standard_t(3, 400), ones) for _ in range(300)]
    assert np.mean(falsely) < 0.08
    assert all(is_skewed(rng.exponential(size=400) - 1.0, ones) for _ in range(20))
    assert all(is_skewed(1.0 - rng.exponential(size=400), ones) for _ in range(20))


def test_groups_are_the_observations():
    e = np.random.default_rng(6).normal(size=(600, 1))
    same = scaled_residuals(e, np.ones_like(e), None, np.arange(600) // 20)
    assert same.weight[0].sum() == pytest.approx(30)
    sizes = np.array([300, 100, 100, 50, 50, *[10] * 100])
    e = np.random.default_rng(6).normal(size=(sizes.sum(), 1))
    other = scaled_residuals(e, np.ones_like(e), None, np.repeat(np.arange(len(sizes)), sizes))
    assert other.weight[0].sum() == pytest.approx(max(20, sizes.sum() ** 2 / (sizes**2).sum()))
    few = scaled_residuals(e, np.ones_like(e), None, np.arange(len(e)) % 3)
    assert few.weight[0].sum() == pytest.approx(20)
    assert np.isfinite(few.factor(0.95, 0)).all()
    alone = scaled_residuals(e, np.ones_like(e), None, np.arange(len(e)))
    np.testing.assert_allclose(alone.weight[0], 1.0)


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.1, 95, "0.9", None, True, np.nan])
def test_coverage_outside_the_unit_interval(coverage):
    with pytest.raises(InvalidInputError, match="coverage"):
        check_coverage(coverage)


def test_a_sigmoid_is_the_logistic_function_of_a_line_through_the_share_of_the_rarer_class():
    rng = np.random.default_rng(4)
    positive = np.arange(1000) < 100  # one in ten
    scores = np.where(positive, 0.5, -0.5) + rng.normal(size=1000)
    sigmoid = fit_sigmoid(scores, positive, np.ones(1000))
    line = sigmoid.slope * scores + sigmoid.offset
    np.testing.assert_allclose(sigmoid(scores), 1.0 / (1.0 + np.exp(-line)), rtol=1e-12)
    assert sigmoid(scores).mean() == pytest.approx(0.1, abs=0.005)  # a likelihood keeps the share


@pytest.mark.parametrize("seed", range(5))
def test_weights_of_eighteen_decades_give_a_sigmoid(seed):
    rng = np.random.default_rng(seed)
    positive = rng.random(60) < 0.5
    scores = np.where(positive, 1.0, -1.0) + rng.normal(size=60)
    sigmoid = fit_sigmoid(scores, positive, 10.0 ** rng.uniform(-9, 9, 60))
    assert np.all(np.isfinite([sigmoid.slope, sigmoid.offset])) and sigmoid.slope >= 0


@pytest.mark.parametrize(
    ("scores", "positive", "weight"),
    [
        ([0.1, -1.9, -1.9], [0, 1, 1], [1e5, 0.1, 1e7]),
        (
            [0.5, -0.1, -0.1, 0.5, 0.5, 0.3, -1.4],
            [0, 1, 0, 1, 1, 0, 0],
            10.0 ** np.arange(-6, 8, 2),
        ),
        ([-0.3, 1.1, 0.3, 0.9, 0.3, 0.5, 0.1], [1, 1, 1, 0, 0, 1, 0], [10, 1e9, 0, 0, 1e5, 0, 0]),
    ],
)
def test_heavy_rows_leave_a_curvature_of_one_direction_only(scores, positive, weight):
    # the determinant of the second derivatives is lost to rounding
    known = np.array(positive, dtype=bool)
    sigmoid = fit_sigmoid(np.array(scores), known, np.array(weight, dtype=float))
    assert np.all(np.isfinite(sigmoid(np.array(scores)))) and sigmoid.slope >= 0


class TestSharpness:
    """The power that normalised probabilities of several classes are raised to."""

    @staticmethod
    def drawn(t, n=4000, seed=0):
        random = np.random.default_rng(seed)
        p = random.dirichlet(np.ones(4), size=n)
        true = p**t / (p**t).sum(axis=1, keepdims=True)
        labels = (true.cumsum(axis=1) < random.uniform(size=(n, 1))).sum(axis=1)
        return p, labels

    @pytest.mark.parametrize("t", [0.5, 1.0, 2.5])
    def test_the_power_is_found(self, t):
        p, labels = self.drawn(t)
        found = fit_sharpness(p, labels)
        assert found == pytest.approx(t, rel=0.1)
        grid = np.exp(np.linspace(-2.0, 2.0, 4001))
        losses = [
            -np.log(sharpened(p, g)[np.arange(len(p)), labels]).sum() + 0.5 * np.log(g) ** 2
            for g in grid[::20]
        ]
        assert found == pytest.approx(grid[::20][int(np.argmin(losses))], rel=0.03)

    def test_a_weight_of_two_is_the_row_twice(self):
        p, labels = self.drawn(2.0, n=60)
        weight = np.random.default_rng(1).integers(1, 4, size=60)
        rows = np.repeat(np.arange(60), weight)
        assert fit_sharpness(p, labels, weight.astype(float)) == pytest.approx(
            fit_sharpness(p[rows], labels[rows]), rel=1e-10
        )

    def test_few_rows_that_are_all_right_are_not_certain(self):
        p = np.tile([0.6, 0.3, 0.1], (5, 1))
        assert 1.0 < fit_sharpness(p, np.zeros(5, dtype=int)) < 4.0
        np.testing.assert_array_equal(sharpened(p, 1.0), p)

    def test_new_rows_are_the_better_for_it(self):
        random = np.random.default_rng(0)
        X = random.normal(size=(2300, 2))
        labels = np.digitize(X[:, 0] + 0.1 * random.normal(size=2300), [-0.6, 0.0, 0.6])
        model = LSSVC(10.0, gamma=1.0, multiclass="ova").fit(X[:300], labels[:300])
        p, truth = model.predict_proba(X[300:]), labels[300:]
        sharpness = model._probabilities().sharpness
        assert sharpness > 1.1
        before = sharpened(p, 1.0 / sharpness)
        losses = [-np.log(q[np.arange(2000), truth]).mean() for q in (p, before)]
        assert losses[0] < 0.98 * losses[1]


def test_the_output_of_one_class_does_not_move_the_others():
    """As where the offset of a rare class differs between stacks of folds and that of all rows."""
    draws = np.random.default_rng(3)
    labels = np.repeat([0, 1, 2], [1500, 480, 20])
    scores = 4.0 * np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    scores += draws.normal(size=scores.shape)
    new = scores - np.array([0.0, 0.0, 30.0])
    common = labels < 2
    median = {}
    for decoding in (None, "argmax"):
        p = calibrate(OutOfFold(scores, labels), make_code("ova", 3), decoding).of(new, None)
        median[decoding] = np.median(p[np.arange(2000), labels][common])
    assert median["argmax"] > 0.99 > 0.7 > median[None]


def test_log_odds_against_the_others_are_those_of_the_softmax():
    outputs = np.random.default_rng(0).normal(size=(50, 4))
    p = softmax(outputs, axis=1)
    np.testing.assert_allclose(odds_against_others(outputs), np.log(p / (1.0 - p)), rtol=1e-9)
    sure = np.array([[800.0, 0.0, 0.0], [800.0, 760.0, 0.0], [5.0, 5.0, 5.0]])
    expected = [[800.0 - np.log(2.0), -800.0, -800.0], [40.0, -40.0, -800.0], [-np.log(2.0)] * 3]
    np.testing.assert_allclose(odds_against_others(sure), expected, rtol=1e-12)
    before = sure.copy()
    odds_against_others(sure)
    np.testing.assert_array_equal(sure, before)


def draws_of_three_classes(n, seed):
    """Return labels, and outputs that are log-probabilities plus what all classes share."""
    draws = np.random.default_rng(seed)
    logs = 2.0 * draws.normal(size=(n, 3))
    chance = np.cumsum(softmax(logs, axis=1), axis=1)
    return (draws.random((n, 1)) > chance[:, :2]).sum(axis=1), logs, 4.0 * draws.normal(size=(n, 1))


def test_other_outputs_count_where_rows_that_were_not_fitted_to_say_so():
    code = make_code("ova", 3)
    (labels, logs, shared), (truth, logs_of_new, shared_of_new) = (
        draws_of_three_classes(n, seed) for n, seed in ((600, 5), (4000, 6))
    )
    found = calibrate_log_odds(OutOfFold(logs + shared, labels), code)
    assert found.decoding == "softmax"
    p = found.of(logs_of_new + shared_of_new, None)
    best = -np.log(softmax(logs_of_new, axis=1)[np.arange(4000), truth]).mean()
    assert -np.log(p[np.arange(4000), truth]).mean() < 1.02 * best
    # Few rows do not choose, and where every output speaks for its own class there is no gain.
    few = OutOfFold((logs + shared)[:FEW_ROWS], labels[:FEW_ROWS])
    assert calibrate_log_odds(few, code).decoding == "argmax"
    draws = np.random.default_rng(7)
    alone = 2.0 * (labels[:, None] == np.arange(3)) + draws.normal(size=(600, 3))
    assert calibrate_log_odds(OutOfFold(alone**3, labels), code).decoding == "argmax"


def test_rows_without_outputs_or_weight_choose_nothing():
    code, (labels, logs, shared) = make_code("ova", 3), draws_of_three_classes(600, 5)
    weight = np.random.default_rng(8).integers(1, 3, 600).astype(float)
    plain = calibrate_log_odds(OutOfFold(logs + shared, labels, weight), code)
    scores = np.vstack([logs + shared, np.full((20, 3), np.nan), 50.0 * logs[:20]])
    longer = np.concatenate([labels, labels[:40]])
    more = OutOfFold(scores, longer, np.concatenate([weight, np.ones(20), np.zeros(20)]))
    again = calibrate_log_odds(more, code)
    assert again.decoding == plain.decoding == "softmax"
    np.testing.assert_allclose(again.of(logs, None), plain.of(logs, None), atol=1e-12)


def test_sharpness_is_that_of_other_rows():
    """Maps of classes of few rows look certain for their own rows."""
    draws = np.random.default_rng(4)
    labels = draws.integers(0, 20, 300)
    scores = draws.normal(size=(300, 20)) + 1.5 * (labels[:, None] == np.arange(20))
    new = draws.integers(0, 20, 5000)
    fresh = draws.normal(size=(5000, 20)) + 1.5 * (new[:, None] == np.arange(20))
    maps = calibrate(OutOfFold(scores, labels), make_code("ova", 20), "argmax")

    def loss(sharpness):
        p = replace(maps, sharpness=sharpness).of(fresh, None)
        return -np.mean(np.log(p[np.arange(5000), new]))

    own = fit_sharpness(replace(maps, sharpness=1.0).of(scores, None), labels)
    assert maps.sharpness < own and loss(maps.sharpness) < loss(own)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_the_scale_of_weights_that_count_nothing_means_nothing(method):
    own = np.random.default_rng(9)
    scores, weight = own.normal(size=80), own.uniform(0.5, 2.0, 80)
    positive = scores + own.normal(size=80) > 0
    once, scaled = (fit_calibrator(scores, positive, w, method) for w in (weight, 40.0 * weight))
    np.testing.assert_allclose(once(scores), scaled(scores), rtol=1e-6)
    # Whole numbers count: as many rows more say more.
    many = fit_calibrator(scores, positive, np.full(80, 40.0), method)
    assert (
        np.abs(many(scores) - fit_calibrator(scores, positive, None, method)(scores)).max() > 1e-3
    )


def test_scores_that_say_nothing_give_the_share_of_the_class():
    positive = np.arange(30) < 6
    found = fit_calibrator(np.zeros(30), positive, None, "sigmoid")
    np.testing.assert_allclose(found(np.array([-1.0, 0.0, 1.0])), 7.0 / 32.0)
    worse = fit_calibrator(np.where(positive, -1.0, 1.0), positive, None, "sigmoid")
    np.testing.assert_allclose(worse(np.array([-1.0, 1.0])), 7.0 / 32.0)
