"""Weights of a stack against brute force, and outputs that have not seen a row's target."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize, nnls
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from lssvm.fitting.stacking import StackRule, combine, cross_stack, fit_stack, mean_loss

rng = np.random.default_rng(0)
Y = rng.normal(size=(80, 2))
ONES = np.ones(80)
F = [Y + 0.5 * rng.normal(size=Y.shape), 0.5 * Y + rng.normal(size=Y.shape), -Y]


def stack_weights(outputs, Y, weight=None, plain=None):
    weight = np.ones(len(Y)) if weight is None else weight
    stack = fit_stack(outputs, Y, weight, "squared", plain)
    assert not stack.offset.any()
    return stack.weights


def test_weights_are_non_negative_least_squares():
    weight = rng.uniform(0.5, 2, 80)
    root = np.sqrt(np.repeat(weight, 2))
    A = np.column_stack([root * G.ravel() for G in F])
    expected = nnls(A, root * Y.ravel())[0]
    np.testing.assert_allclose(stack_weights(F, Y, weight), expected, atol=2e-3)
    assert stack_weights(F, Y, weight)[2] == 0.0


def test_rows_without_output_are_left_out():
    G = [f.copy() for f in F]
    G[1][:40] = np.nan
    expected = stack_weights([f[40:] for f in F], Y[40:])
    np.testing.assert_allclose(stack_weights(G, Y), expected, atol=1e-12)


def test_equal_models_share():
    w = stack_weights([F[0], F[0].copy()], Y)
    assert w[0] > 0.1 and abs(w[0] - w[1]) < 1e-6
    np.testing.assert_array_equal(
        stack_weights([np.zeros((5, 1))] * 2, np.ones((5, 1))), [0.5, 0.5]
    )


@pytest.mark.parametrize("noise, share", [(1.8, 0.5), (0.75, None), (0.1, 0.0)])
def test_plain_models_are_a_safe_half_unless_the_gain_is_no_chance(noise, share):
    errors = np.random.default_rng(1).normal(size=(3, *Y.shape))
    models = [Y + noise * errors[0], Y + errors[1], Y + errors[2]]
    plain, best = np.array([0.0, *stack_weights(models[1:], Y)]), stack_weights(models, Y)

    def error(weights):
        return ((Y - combine(models, weights)) ** 2).sum()

    ratio = error(best) / error(plain)
    expected = min(max(2.0 * ratio - 1.0, 0.0), 0.5)
    assert 0.0 < expected < 0.5 if share is None else expected == share
    found = stack_weights(models, Y, None, np.array([False, True, True]))
    np.testing.assert_allclose(found, expected * plain + (1.0 - expected) * best)


def test_crossed_weights_have_not_seen_the_fold():
    folds = np.arange(80) % 4
    before = cross_stack(F, Y, ONES, folds, StackRule())
    changed = Y.copy()
    changed[folds == 1] += 100.0
    after = cross_stack(F, changed, ONES, folds, StackRule())
    np.testing.assert_array_equal(after[folds == 1], before[folds == 1])
    assert np.abs(after[folds == 2] - before[folds == 2]).max() > 1e-3
    weights = stack_weights([f[folds != 1] for f in F], Y[folds != 1])
    np.testing.assert_allclose(before[folds == 1], combine(F, weights)[folds == 1])


@pytest.mark.parametrize("q", [2, 5])
def test_models_that_say_the_same_share_the_weight_of_one(q):
    y = np.random.default_rng(0).normal(size=(40, 1))
    np.testing.assert_allclose(stack_weights([y] * q, y), 1.0 / q, rtol=1e-9)


def log_problem(k, n=3000, seed=2):
    """Return targets and outputs of three models, the last one worse than a guess."""
    own = np.random.default_rng(seed)
    if k == 1:
        f = own.normal(size=(n, 1)) * 1.5 - 0.7
        Y = np.where(own.uniform(size=(n, 1)) < expit(f), 1.0, -1.0)
    else:
        f = own.normal(size=(n, k)) * 1.5 + np.array([0.8, 0.0, -0.8])[:k]
        drawn = (f + own.gumbel(size=f.shape)).argmax(axis=1)
        Y = np.where(drawn[:, None] == np.arange(k), 1.0, -1.0)
    f = f - f.mean(axis=0)
    models = [f / 3 + 0.2 * own.normal(size=f.shape), np.tanh(f) + 0.5 * own.normal(size=f.shape)]
    return Y, [*models, -f + own.normal(size=f.shape)], own.uniform(0.5, 2.0, n)


def best_log_loss(Y, models, weight):
    """Return weights and offset of the smallest log loss by numeric derivatives."""
    q, k = len(models), Y.shape[1]

    def loss(p):
        f = sum(w * F for w, F in zip(p[:q], models, strict=True)) + p[q:]
        if k == 1:
            rows = np.log1p(np.exp(-Y[:, 0] * f[:, 0]))
        else:
            rows = -np.log((softmax(f, axis=1) * (Y > 0)).sum(axis=1))
        return np.average(rows, weights=weight)

    bounds = [(0.0, None)] * q + [(None, None)] * k
    found = minimize(loss, np.r_[np.ones(q), np.zeros(k)], bounds=bounds, method="SLSQP", tol=1e-12)
    return found.x[:q], found.x[q:], found.fun


@pytest.mark.parametrize("k", [1, 3])
def test_log_loss_is_the_smallest_of_non_negative_weights(k):
    Y, models, weight = log_problem(k)
    w, b, smallest = best_log_loss(Y, models, weight)
    stack = fit_stack(models, Y, weight, "log")
    outputs = stack.outputs(models)
    assert smallest <= mean_loss(outputs, Y, weight, "log") < smallest + 1e-5
    np.testing.assert_allclose(stack.weights, w, atol=0.02)
    assert stack.weights[2] == 0.0 and stack.weights[:2].min() > 0.2
    gap = stack.offset - b
    np.testing.assert_allclose(gap - gap.mean() * (k > 1), 0.0, atol=0.01)
    start = fit_stack(models, Y, weight).outputs(models)
    assert mean_loss(start, Y, weight, "log") > smallest + 0.01  # squared errors want another scale


def test_two_classes_are_a_logistic_regression():
    Y, models, weight = log_problem(1)
    A = np.column_stack([F[:, 0] for F in models[:2]])
    expected = LogisticRegression(C=1e6).fit(A, Y[:, 0] > 0, sample_weight=weight)
    stack = fit_stack(models[:2], Y, weight, "log")
    np.testing.assert_allclose(stack.weights, expected.coef_[0], rtol=0.01)
    np.testing.assert_allclose(stack.offset, expected.intercept_, atol=0.01)
    p = expit(stack.outputs(models[:2])[:, 0])
    assert mean_loss(stack.outputs(models[:2]), Y, weight, "log") == pytest.approx(
        log_loss(Y[:, 0] > 0, p, sample_weight=weight)
    )
    one = fit_stack(models[:1], Y, weight, "log")
    alone = LogisticRegression(C=1e6).fit(A[:, :1], Y[:, 0] > 0, sample_weight=weight)
    np.testing.assert_allclose(one.weights, alone.coef_[0], rtol=0.01)
    np.testing.assert_allclose(one.offset, alone.intercept_, atol=0.01)


def test_several_classes_share_their_weights():
    """One weight per model for all classes: outputs of permuted classes are permuted."""
    Y, models, weight = log_problem(3)
    turned = [2, 0, 1]
    stack = fit_stack(models, Y, weight, "log")
    other = fit_stack([F[:, turned] for F in models], Y[:, turned], weight, "log")
    np.testing.assert_allclose(other.weights, stack.weights, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(
        other.outputs([F[:, turned] for F in models]),
        stack.outputs(models)[:, turned],
        atol=5e-3,
    )
    p = np.asarray(softmax(stack.outputs(models), axis=1))
    found = mean_loss(stack.outputs(models), Y, weight, "log")
    assert found == pytest.approx(log_loss(Y.argmax(axis=1), p, sample_weight=weight))


def test_classes_that_are_separated_do_not_run_away():
    y = np.repeat([-1.0, 1.0], 30)[:, None]
    stack = fit_stack([y, 0.5 * y], y, np.ones(60), "log")
    assert 3.0 < stack.outputs([y, 0.5 * y])[-1, 0] < 60.0
    assert mean_loss(stack.outputs([y, 0.5 * y]), y, np.ones(60), "log") < 0.05


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("loss", ["squared", "log"])
def test_outputs_that_are_rounding_get_no_large_weights(loss, k):
    Y, models, weight = log_problem(k, 300)
    noise = 1e-15 * np.random.default_rng(0).normal(size=(2, *Y.shape))
    for rounding in (list(noise), list(noise[:1]), list(0.0 * noise)):
        stack = fit_stack(rounding, Y, weight, loss)
        np.testing.assert_allclose(stack.weights, 1.0 / len(rounding))
        if loss == "log":
            share = np.average(Y > 0, axis=0, weights=weight)
            expected = np.log(share / (1 - share)) if k == 1 else np.log(share)
            np.testing.assert_allclose(stack.offset, expected)
    mixed = fit_stack([models[0], noise[0]], Y, weight, loss)
    alone = fit_stack(models[:1], Y, weight, loss)
    assert mixed.weights[1] < 10.0
    found = mean_loss(mixed.outputs([models[0], noise[0]]), Y, weight, loss)
    assert found <= mean_loss(alone.outputs(models[:1]), Y, weight, loss) + 1e-3


def test_noise_keeps_the_shares_of_the_classes():
    """Outputs that tell nothing: the weight is small, the offset the log-odds of the shares."""
    own = np.random.default_rng(0)
    y = np.where(own.uniform(size=(4000, 1)) < 0.2, 1.0, -1.0)
    stack = fit_stack([own.normal(size=(4000, 1))], y, np.ones(4000), "log")
    assert 0.0 <= stack.weights[0] < 0.1
    share = np.mean(y > 0)
    np.testing.assert_allclose(stack.offset, np.log(share / (1 - share)), atol=0.02)


def test_a_limit_on_the_number_of_models():
    Y, models, weight = log_problem(3)
    rows = np.arange(len(Y))
    one = StackRule("log", at_most=1).fit(models, Y, weight, rows)
    assert np.count_nonzero(one.weights) == 1
    best = int(np.argmax(fit_stack(models, Y, weight, "log").weights))
    alone = fit_stack([models[best]], Y, weight, "log")
    np.testing.assert_allclose(one.outputs(models), alone.outputs([models[best]]))


def test_scores_that_differ_by_rounding_are_equal():
    """Then the first model comes first, and the largest stack is taken."""
    Y, models, weight = log_problem(3)
    rounding = iter(range(2 * len(models)))
    rule = StackRule("log", scorer=lambda outputs, rows: 0.3 + 1e-15 * next(rounding))
    stack = rule.fit(models, Y, weight, np.arange(len(Y)))
    full = fit_stack(models, Y, weight, "log")
    np.testing.assert_allclose(stack.weights, full.weights)


def test_stacks_without_a_score_are_not_taken():
    """The scorer knows one model alone: the others, and stacks of more, have no value."""
    Y, models, weight = log_problem(3)
    kept = fit_stack([models[1]], Y, weight, "log").outputs([models[1]])
    for none in (np.nan, -np.inf, np.inf):

        def scorer(outputs, rows, none=none):
            known = any(np.allclose(outputs, one) for one in (models[1], kept))
            return 0.3 if known else none

        stack = StackRule("log", scorer=scorer).fit(models, Y, weight, np.arange(len(Y)))
        assert np.flatnonzero(stack.weights).tolist() == [1], none


def test_a_scorer_orders_models_and_shifts_decisions():
    own = np.random.default_rng(0)
    y = np.where(own.uniform(size=(500, 1)) < 0.1, 1.0, -1.0)
    models = [y + own.normal(size=y.shape), y + 3.0 * own.normal(size=y.shape)]
    rows = np.arange(500)[::-1]
    truth, seen = y[::-1, 0], []  # by the numbers of the rows

    def misses(outputs, rows):
        wrong = np.sign(outputs[:, 0]) != truth[rows]
        return np.mean(wrong[truth[rows] > 0]) + np.mean(wrong[truth[rows] < 0])

    def shift(outputs, rows):
        seen.append(rows)
        places = np.quantile(outputs, np.linspace(0.0, 1.0, 51))
        return -places[[np.argmin([misses(outputs - t, rows) for t in places])]]

    rule = StackRule("log", scorer=misses, shift=shift)
    plain, moved = (
        replace(rule, shift=s).fit(models, y, np.ones(500), rows) for s in (None, shift)
    )
    before = misses(plain.outputs(models), rows)
    assert misses(moved.outputs(models), rows) < 0.7 * before
    assert moved.offset[0] > plain.offset[0] + 1.0
    assert all(np.array_equal(each, rows) for each in seen)
    # Decisions of a fold are shifted by the others alone.
    folds = np.arange(500) % 4
    crossed = cross_stack(models, y, np.ones(500), folds, replace(rule, scorer=None, shift=None))
    assert misses(crossed, rows) == pytest.approx(before, abs=0.05)
    rows = np.arange(500)
    truth = y[:, 0]
    seen.clear()
    crossed = cross_stack(models, y, np.ones(500), folds, rule)
    assert {len(each) for each in seen} == {375}
    assert misses(crossed, rows) < 0.8 * before


def test_folds_without_known_rows_take_the_mean():
    folds = np.arange(80) % 2
    G = [f.copy() for f in F]
    G[0][folds == 1] = np.nan
    out = cross_stack(G, Y, ONES, folds, StackRule())
    np.testing.assert_allclose(out[folds == 0], sum(F)[folds == 0] / 3.0)
    assert np.isnan(out[folds == 1]).all()


@pytest.mark.parametrize("common", [False, True])
def test_outputs_of_folds_rank_noise_as_chance_does_on_one_scale(common):
    """The offset of a fold tells what classes it has: the area of noise must be one half."""
    areas = []
    for seed in range(60):
        own = np.random.default_rng([3, seed])
        t = np.where(own.uniform(size=(60, 1)) < 0.5, 1.0, -1.0)
        folds = own.permutation(60) % 10
        rule = StackRule("log", common_scale=common)
        out = cross_stack([own.normal(size=t.shape)], t, np.ones(60), folds, rule)
        areas.append(roc_auc_score(t[:, 0] > 0, out[:, 0]))
    error = np.std(areas) / np.sqrt(len(areas))
    if common:
        assert abs(np.mean(areas) - 0.5) < 2.0 * error
    else:
        assert np.mean(areas) < 0.5 - 4.0 * error


def test_the_common_scale_moves_whole_folds():
    """Within a fold outputs keep their order; its own targets have no part in them."""
    own = np.random.default_rng(4)
    t = np.where(own.uniform(size=(40, 3)) < 0.4, 1.0, -1.0)
    G = [own.normal(size=t.shape) for _ in range(2)]
    folds, weight = np.arange(40) % 4, own.uniform(0.5, 2.0, 40)
    G[0][5] = np.nan
    plain = cross_stack(G, t, weight, folds, StackRule())
    common = cross_stack(G, t, weight, folds, StackRule(common_scale=True))
    others = np.where((folds == 0)[:, None], -t, t)  # other targets of the first fold
    changed = cross_stack(G, others, weight, folds, StackRule(common_scale=True))

    def steps(outputs, v):
        rows = np.flatnonzero((folds == v) & (np.arange(40) != 5))
        return np.diff(outputs[rows], axis=0)

    for v in range(4):
        factor = steps(common, v) / steps(plain, v)
        assert factor[0, 0] > 0.0
        np.testing.assert_allclose(factor, factor[0, 0])
    factor = steps(changed, 0) / steps(common, 0)
    np.testing.assert_allclose(factor, factor[0, 0])
    assert np.isnan(common[5]).all() and np.isfinite(np.delete(common, 5, axis=0)).all()


@pytest.mark.parametrize("k", [1, 3])
def test_rows_of_which_none_is_known_leave_the_shares_of_the_classes(k):
    """Equal rows are held out together: nothing is known of any of them."""
    t = np.where(np.arange(12)[:, None] % 4 == np.arange(k), 1.0, -1.0)
    stack = fit_stack([np.full(t.shape, np.nan)], t, np.ones(12), "log")
    share = stack.offset if k > 1 else np.array([stack.offset[0], 0.0])
    wanted = [0.25, 0.75] if k == 1 else [1.0 / 3.0] * 3
    np.testing.assert_allclose(softmax(share), wanted)
