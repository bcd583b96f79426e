"""NARX against loops and dense solves, inside scikit-learn's tools, and on bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.utils.estimator_checks import check_estimator
from tests.oracles import narx as oracle

from lssvm import LSSVR, NARX, FixedSizeLSSVR, GreedyLSSVR
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm.datasets import load_laser
from lssvm.fitting.series import Calibration, SeriesResiduals
from lssvm.tuning import GridSearch


class Recorder(RegressorMixin, BaseEstimator):
    """Keeps what it was fitted with and predicts the mean."""

    def fit(self, X, y):
        self.X_, self.y_ = X, y
        return self

    def predict(self, X):
        return np.full(len(X), self.y_.mean())


def wave(n=120, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(float(n))
    return 10 + 3 * np.sin(0.7 * t) + np.cos(1.9 * t) + 0.05 * rng.standard_normal(n)


def units(values):
    return values.mean(axis=0), values.std(axis=0)


@pytest.mark.parametrize(
    ("lags", "exog_lags", "differencing"), [(3, 0, 0), (1, 4, 0), (2, 1, 1), (2, 6, 2)]
)
def test_rows_equal_those_of_the_loops(lags, exog_lags, differencing):
    y, X = wave(), np.random.default_rng(1).normal(size=(120, 2)) * [1.0, 50.0]
    model = NARX(Recorder(), lags, exog_lags, differencing).fit(y, X)
    rows, targets = oracle.lag_rows(y, X, lags, exog_lags, differencing)
    mean, scale = units(np.diff(y, n=differencing))
    input_mean, input_scale = units(X)
    rows[:, :lags] = (rows[:, :lags] - mean) / scale
    rows[:, lags:] = (rows[:, lags:] - np.tile(input_mean, exog_lags + 1)) / np.tile(
        input_scale, exog_lags + 1
    )
    np.testing.assert_allclose(model.estimator_.X_, rows, atol=1e-12)
    np.testing.assert_allclose(model.estimator_.y_, (targets - mean) / scale, atol=1e-12)


@pytest.mark.parametrize("differencing", [0, 1])
def test_forecast_and_prediction_equal_dense_solves_and_loops(differencing):
    y, C, gamma, lags = wave(150), 30.0, 0.2, 4
    train, later = y[:130], y[130:]
    model = NARX(LSSVR(C, gamma=gamma), lags, differencing=differencing).fit(train)
    mean, scale = units(np.diff(train, n=differencing))
    rows, targets = oracle.lag_rows(train, lags=lags, differencing=differencing)
    rows, targets = (rows - mean) / scale, (targets - mean) / scale
    alpha, b = oracle.solve(rows, targets, C, gamma)
    run = oracle.free_run(
        rows, alpha, b, gamma, (rows_after(train, lags, differencing) - mean) / scale, 20
    )
    expected = run * scale + mean
    if differencing:
        expected = train[-1] + np.cumsum(expected)
    np.testing.assert_allclose(model.forecast(20), expected, rtol=1e-6)

    new, _ = oracle.lag_rows(y, lags=lags, differencing=differencing)
    new = (new[-20:] - mean) / scale
    one_step = (oracle.rbf(new, rows, gamma) @ alpha + b) * scale + mean
    if differencing:
        one_step = one_step + y[129:149]
    np.testing.assert_allclose(model.predict(later), one_step, rtol=1e-6)


def rows_after(y, lags, differencing):
    """Return the latest differences, the newest first."""
    return np.diff(y, n=differencing)[::-1][:lags]


def test_the_first_step_of_a_forecast_is_the_one_step_prediction():
    y = wave()
    model = NARX(LSSVR(30.0), 5).fit(y[:100])
    np.testing.assert_allclose(model.forecast(1), model.predict(y[100:])[:1])


def test_history_takes_the_place_of_the_training_series():
    y = wave(160)
    model = NARX(LSSVR(30.0), 5, differencing=1).fit(y[:100])
    longer = model.predict(y[100:])[40:]
    np.testing.assert_allclose(model.predict(y[140:], history=y[:140]), longer)
    np.testing.assert_allclose(model.predict(y[140:], history=y[134:140]), longer)
    same = model.forecast(7, history=y[:100])
    np.testing.assert_allclose(same, model.forecast(7))
    assert not np.allclose(model.forecast(7, history=y[:103]), same)


def test_inputs_and_differences_of_an_exact_linear_series_are_learned():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(90, 2)), np.zeros(90)
    y[:2] = 5.0, 6.0
    for t in range(2, 90):  # a differenced ARX(1) with one past input
        change = 0.5 * (y[t - 1] - y[t - 2]) + X[t, 0] - 0.4 * X[t - 1, 1] + 0.1
        y[t] = y[t - 1] + change
    model = NARX(LinearRegression(), 1, 1, 1).fit(y[:60], X[:60])
    np.testing.assert_allclose(model.forecast(30, X[60:]), y[60:], atol=1e-8)
    np.testing.assert_allclose(model.predict(y[60:], X[60:]), y[60:], atol=1e-8)
    np.testing.assert_allclose(
        model.forecast(30, X[60:], history=y[50:60], X_history=X[50:60]), y[60:], atol=1e-8
    )
    assert model.score(y[60:], X[60:]) == pytest.approx(1.0)
    assert model.n_exog_ == 2


def test_second_differences_continue_a_parabola():
    t = np.arange(40.0)
    model = NARX(LinearRegression(), 2, differencing=2).fit(3 + t**2)
    np.testing.assert_allclose(model.forecast(5), 3 + np.arange(40.0, 45.0) ** 2, rtol=1e-9)


def test_several_series_share_a_model_and_rows_never_span_two():
    first, second = wave(60), 2 * wave(80, seed=3)
    model = NARX(Recorder(), 3).fit([first, second])
    mean, scale = units(np.concatenate([first, second]))
    rows = np.concatenate([oracle.lag_rows(y, lags=3)[0] for y in (first, second)])
    np.testing.assert_allclose(model.estimator_.X_, (rows - mean) / scale)
    assert model.n_series_ == 2


def test_several_series_are_continued_each_by_itself():
    first, second = wave(60), wave(80, seed=3)
    inputs = [np.arange(60.0) % 7, np.arange(80.0) % 7]
    model = NARX(LSSVR(30.0), 3, 1, horizon=5).fit([first[:50], second[:70]], cut(inputs))
    future = [inputs[0][50:, None], inputs[1][70:, None]]
    values, ends = model.forecast(10, future, return_interval=True)
    assert values.shape == (2, 10)
    assert ends.shape == (2, 10, 2)
    alone = model.forecast(10, future[1], history=second[:70], X_history=inputs[1][:70])
    np.testing.assert_allclose(values[1], alone)
    later = [first[50:], second[70:]]
    predicted = model.predict(later, future)
    assert [len(p) for p in predicted] == [10, 10]
    np.testing.assert_allclose([p[0] for p in predicted], values[:, 0])
    pieces = [
        model.forecast(5, x[a : a + 5], history=y[: n + a], X_history=u[: n + a])
        for y, u, n, x in ((first, inputs[0], 50, future[0]), (second, inputs[1], 70, future[1]))
        for a in (0, 5)
    ]
    expected = r2_score(np.concatenate(later), np.concatenate(pieces))
    assert model.score(later, future) == pytest.approx(expected)


def cut(inputs):
    return [inputs[0][:50], inputs[1][:70]]


def test_free_run_tuning_minimises_the_loss_of_refits():
    y, lags, horizon = wave(90), 3, 8
    grid = GridSearch(C=[0.1, 10.0, 1e3], gamma=[0.02, 0.3])
    model = NARX(LSSVR("cv", gamma="cv"), lags, horizon=horizon, n_origins=4, search=grid).fit(y)
    rows, targets = oracle.lag_rows((y - y.mean()) / y.std(), lags=lags)
    starts = np.linspace(0, len(targets) - horizon, 4).round().astype(int)
    for params, score in zip(
        model.cv_results_["params"], model.cv_results_["mean_test_score"], strict=True
    ):
        losses = []
        for s in starts:
            out = np.arange(s, min(s + horizon + lags, len(targets)))
            truth = targets[s : s + horizon]
            losses.append(
                oracle.free_run_loss(rows, targets, *params.values(), rows[s], truth, out)
            )
        assert -score == pytest.approx(np.mean(losses), rel=1e-5)
    best = model.cv_results_["params"][int(np.argmax(model.cv_results_["mean_test_score"]))]
    assert (model.estimator_.C_, model.estimator_.gamma_) == (best["C"], best["gamma"])
    assert model.best_score_ == max(model.cv_results_["mean_test_score"])


def test_rolling_origins_see_only_the_past():
    y, lags, horizon, C, gamma = wave(61), 2, 6, 20.0, 0.3
    model = NARX(
        LSSVR("cv", gamma=gamma),
        lags,
        validation="rolling-origin",
        horizon=horizon,
        n_origins=3,
        search=GridSearch(C=[C]),
    ).fit(y)
    rows, targets = oracle.lag_rows((y - y.mean()) / y.std(), lags=lags)
    n = len(targets)
    losses = [
        oracle.free_run_loss(
            rows, targets, C, gamma, rows[s], targets[s : s + horizon], np.arange(s, n)
        )
        for s in np.linspace(n // 2, n - horizon, 3).round().astype(int)
    ]
    assert -model.best_score_ == pytest.approx(np.mean(losses), rel=1e-5)


def test_one_step_validation_is_the_estimators_own():
    y = wave(80)
    model = NARX(LSSVR("cv", gamma="cv"), 3, validation="one-step").fit(y)
    rows, targets = oracle.lag_rows((y - y.mean()) / y.std(), lags=3)
    own = LSSVR("cv", gamma="cv").fit(rows, targets)
    assert model.estimator_.C_ == pytest.approx(own.C_)
    assert not hasattr(model, "cv_results_")


def test_only_what_is_open_is_tuned():
    y = wave(80)
    model = NARX(LSSVR("cv", kernel="linear"), 3).fit(y)
    assert model.estimator_.kernel == "linear"
    assert model.best_score_ <= 0
    model.set_params(estimator=LSSVR(5.0)).fit(y)
    assert model.estimator_.C_ == 5.0
    assert not hasattr(model, "best_score_")


# -- scikit-learn ---------------------------------------------------------------------------------


def test_score_free_runs_through_pieces_of_the_horizon():
    y = wave(160)
    model = NARX(LSSVR(30.0), 4, horizon=25).fit(y[:100])
    pieces = [model.forecast(n, history=y[:s]) for s, n in ((100, 25), (125, 25), (150, 10))]
    assert model.score(y[100:]) == pytest.approx(r2_score(y[100:], np.concatenate(pieces)))
    one = NARX(LSSVR(30.0), 4, horizon=1).fit(y[:100])
    assert one.score(y[100:]) == pytest.approx(r2_score(y[100:], one.predict(y[100:])))


def test_searches_over_time_series_splits():
    y = wave(160)
    grid = {"lags": [1, 6], "estimator__C": [1e-3, 100.0]}
    search = GridSearchCV(NARX(LSSVR()), grid, cv=TimeSeriesSplit(3), error_score="raise").fit(y)
    assert search.best_params_ == {"lags": 6, "estimator__C": 100.0}
    train, test = list(TimeSeriesSplit(3).split(y))[1]
    one = NARX(LSSVR(100.0), 6).fit(y[train])
    results = search.cv_results_
    assert results["split1_test_score"][search.best_index_] == pytest.approx(one.score(y[test]))
    assert search.best_estimator_.forecast(3).shape == (3,)


def test_searches_with_inputs_and_with_a_scorer_of_ones_own():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 1)), np.zeros(120)
    for t in range(1, 120):
        y[t] = 0.6 * y[t - 1] + X[t, 0]

    def last_value(model, y, X):
        return -abs(model.forecast(len(y), X)[-1] - y[-1])

    for scoring in (None, last_value):
        search = GridSearchCV(
            NARX(LinearRegression(), 1),
            {"exog_lags": [0, 2]},
            cv=TimeSeriesSplit(3),
            scoring=scoring,
            error_score="raise",
        ).fit(y, X)
        assert search.best_score_ > (0.999 if scoring is None else -1e-6)


def test_parameters_are_scikit_learns():
    model = NARX(LSSVR(2.0), lags=7, differencing=1)
    copy = clone(model)
    assert copy.get_params()["estimator__C"] == 2.0
    assert copy.set_params(lags=9, estimator__C=3.0).get_params()["lags"] == 9
    assert (model.lags, model.estimator.C) == (7, 2.0)
    y = wave(60)
    fitted = clone(copy).fit(y)
    assert fitted.estimator.C == 3.0 and not hasattr(fitted.estimator, "dual_coef_")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # says that checks with tables do not apply to a series
        results = check_estimator(NARX(LSSVR(), 2), on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []


def test_series_and_frames_of_pandas_and_columns():
    y, X = wave(60), np.arange(60.0) % 5
    index = pd.date_range("2020-01-01", periods=60)
    plain = NARX(LSSVR(10.0), 3).fit(y, X)
    framed = NARX(LSSVR(10.0), 3).fit(pd.Series(y, index), pd.DataFrame({"x": X}, index))
    column = NARX(LSSVR(10.0), 3).fit(y[:, None], X[:, None])
    future = np.zeros(4)
    for other in (framed, column):
        np.testing.assert_allclose(other.forecast(4, future), plain.forecast(4, future))
    listed = NARX(LSSVR(10.0), 3).fit(y.tolist())
    assert listed.forecast(2).shape == (2,)


# -- intervals ------------------------------------------------------------------------------------


def autoregression(n, seed, phi=0.8):
    rng = np.random.default_rng(seed)
    y = np.zeros(n)
    for t in range(1, n):
        y[t] = phi * y[t - 1] + rng.standard_normal()
    return y


def test_intervals_contain_the_truth_at_the_stated_rate():
    y = autoregression(3400, 0)
    model = NARX(LinearRegression(), 2, horizon=8, n_origins=60, n_paths=40).fit(y[:400])
    origins = np.arange(400, 3390, 30)
    truth = np.stack([y[origin : origin + 8] for origin in origins])
    for coverage in (0.8, 0.9):
        ends = np.stack(
            [model.forecast(8, None, True, coverage, history=y[:origin])[1] for origin in origins]
        )
        inside = (ends[:, :, 0] <= truth) & (truth <= ends[:, :, 1])
        assert abs(inside.mean() - coverage) < 0.04
        assert np.all(np.abs(inside.mean(axis=0) - coverage) < 0.1)  # at every step


@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_intervals_of_differenced_series_cover_what_they_promise(coverage):
    inside = []
    for seed in range(24):
        y = np.cumsum(0.2 + np.random.default_rng(seed).normal(size=108))
        model = NARX(LSSVR(0.01, gamma=0.01), 4, differencing=1, horizon=8).fit(y[:100])
        ends = model.predict_interval(8, coverage=coverage)
        inside.append((ends[:, 0] <= y[100:]) & (y[100:] <= ends[:, 1]))
    assert coverage - 0.05 < np.mean(inside) < coverage + 0.1


def test_too_few_stretches_for_a_coverage_widen_the_intervals():
    rows = np.zeros((12, 1))
    residuals = SeriesResiduals(rows, np.zeros(12), np.arange(12))
    ratios = np.abs(np.random.default_rng(0).normal(size=(4, 3)))
    known = Calibration(residuals, np.ones(3), ratios)
    wide = known.factors(0.95, 3)
    assert np.all(wide >= ratios.max()) and np.all(wide >= known.factors(0.6, 3))
    np.testing.assert_allclose(known.factors(0.95, 5)[2:], wide[2])


def test_intervals_widen_with_the_horizon_and_with_the_coverage():
    y = np.cumsum(np.random.default_rng(1).standard_normal(300))
    model = NARX(LinearRegression(), 1, differencing=1, horizon=20).fit(y)
    values, ends = model.forecast(20, return_interval=True, coverage=0.9)
    assert ends.shape == (20, 2)
    assert np.all((ends[:, 0] < values) & (values < ends[:, 1]))
    width = np.diff(ends)[:, 0]
    assert width[-5:].mean() > 2 * width[0]
    _, narrow = model.forecast(20, return_interval=True, coverage=0.5)
    assert np.all(np.diff(narrow)[:, 0] < width)
    again = model.forecast(20, return_interval=True, coverage=0.9)[1]
    np.testing.assert_array_equal(again, ends)
    other = NARX(LinearRegression(), 1, differencing=1, horizon=20, random_state=1).fit(y)
    assert not np.array_equal(other.forecast(20, return_interval=True, coverage=0.9)[1], ends)
    assert model.forecast(30, return_interval=True)[1].shape == (30, 2)


def test_intervals_have_the_units_of_the_series():
    y = autoregression(200, 2)
    small = NARX(LSSVR(1.0), 2, horizon=5).fit(y).forecast(5, return_interval=True)
    large = NARX(LSSVR(1.0), 2, horizon=5).fit(1e3 * y + 7).forecast(5, return_interval=True)
    np.testing.assert_allclose(large[0], 1e3 * small[0] + 7, rtol=1e-6)
    np.testing.assert_allclose(large[1], 1e3 * small[1] + 7, rtol=1e-5)


def test_a_refit_per_stretch_gives_the_intervals_of_the_closed_form():
    class Refitted(LSSVR):  # not the plain class, so every stretch is refitted
        pass

    y = autoregression(120, 3)
    one = NARX(LSSVR(2.0, gamma=0.1), 2, horizon=5, n_origins=5).fit(y)
    other = NARX(Refitted(2.0, gamma=0.1), 2, horizon=5, n_origins=5).fit(y)
    np.testing.assert_allclose(
        one.forecast(5, return_interval=True)[1],
        other.forecast(5, return_interval=True)[1],
        rtol=1e-6,
    )


def test_a_greedy_model_inside():
    y = wave(150)
    inner = GreedyLSSVR(100.0, gamma=0.1, epsilon=0.05)
    model = NARX(inner, 4, n_origins=3, n_paths=10).fit(y[:130])
    values, ends = model.forecast(20, return_interval=True)
    assert r2_score(y[130:], values) > 0.9 and ends.shape == (20, 2)
    assert len(model.estimator_.support_) < 126 and not hasattr(inner, "support_")


def test_a_fixed_size_model_inside():
    y = wave(150)
    model = NARX(FixedSizeLSSVR(30, C=100.0, gamma=0.1, random_state=0), 4, n_origins=3).fit(
        y[:130]
    )
    values, ends = model.forecast(20, return_interval=True)
    assert r2_score(y[130:], values) > 0.9
    assert ends.shape == (20, 2)


# -- the record -----------------------------------------------------------------------------------


def test_attributes_are_those_of_the_record():
    y = wave(90)
    grid = GridSearch(C=[1.0, 100.0], gamma=[0.05, 0.3])
    model = NARX(LSSVR("cv", gamma="cv"), 3, search=grid, horizon=7).fit([y[:80], y[:60]])
    record = model.record_
    assert record.regressor is model.estimator_ and record.horizon == model.horizon_ == 7
    assert record.listed and len(record.ends) == model.n_series_ == 2
    assert record.layout.n_exog == model.n_exog_ == 0
    assert record.tuning.cv_results is model.cv_results_
    assert record.tuning.result.point is None
    with pytest.raises(InvalidInputError, match="missing"):
        model.fit(np.full(90, np.nan))
    for name in ("record_", "estimator_", "cv_results_", "best_score_"):
        assert not hasattr(model, name)
    with pytest.raises(NotFittedError):
        model.forecast(3)


def test_the_record_is_calibrated_once():
    model = NARX(LSSVR(2.0, gamma=0.1), 2, horizon=5, n_origins=4, n_paths=6).fit(wave(80))
    before = model.record_
    model.forecast(5)
    assert model.record_ is before and before.calibration is None
    _, ends = model.forecast(5, return_interval=True)
    first = model.record_
    np.testing.assert_array_equal(model.forecast(5, return_interval=True)[1], ends)
    assert before.calibration is None and model.record_ is first


def test_forms_keep_what_their_forecasts_need():
    model = NARX(LSSVR("cv", gamma="cv"), 2, horizon=5, n_origins=4, n_paths=6).fit(wave(80))
    fresh = model.record_
    values, ends = model.forecast(5, return_interval=True)
    whole = model.record_
    assert whole.stripped("all") is whole

    model.record_ = fresh.stripped("prediction")  # calibrates when it is asked
    assert model.record_.plan is not None
    np.testing.assert_array_equal(model.forecast(5, return_interval=True)[1], ends)
    model.record_ = whole.stripped("prediction")  # has been calibrated: no training rows
    assert model.record_.plan is None
    np.testing.assert_array_equal(model.forecast(5, return_interval=True)[1], ends)
    for record in (fresh, whole):
        model.record_ = record.stripped("support")
        assert model.record_.plan is None and model.record_.calibration is None
        assert model.record_.tuning.cv_results is None
        assert model.record_.tuning.best_score == model.best_score_
        np.testing.assert_array_equal(model.forecast(5), values)
        with pytest.raises(InvalidInputError, match="keep='support'"):
            model.forecast(5, return_interval=True)


# -- the laser ------------------------------------------------------------------------------------


def test_one_step_errors_choose_another_model_of_the_santa_fe_laser():
    """The model of free runs is asked for 0.08 where the page on time series is run."""
    y = load_laser().target.astype(float)
    truth = y[1000:1100]
    assert NARX().lags == 50
    one_step = NARX(LSSVR("cv", gamma="cv", cv="loo"), validation="one-step").fit(y[:1000])
    assert ((one_step.forecast(100) - truth) ** 2).mean() / truth.var() > 0.3


# -- bad input ------------------------------------------------------------------------------------


def with_nan(n, place):
    y = wave(n)
    y[place] = np.nan
    return y


@pytest.mark.parametrize(
    ("y", "X", "message"),
    [
        (wave(40), None, r"y has 40 values, but lags=50, .* need at least 52"),
        (wave(51), None, "give a longer series, or fewer lags"),
        ([wave(90), wave(20)], None, r"y\[1\] has 20 values"),
        (with_nan(90, 17), None, r"y has a missing or infinite value \(nan\) at position 17"),
        ([wave(90), with_nan(90, 3)], None, r"y\[1\] has a missing .* at position 3"),
        (np.full(90, np.inf), None, "missing or infinite"),
        (wave(90), with_nan(90, 5), r"X has a missing .* in row 5, column 0"),
        (wave(90), np.zeros((89, 2)), "give a table of 90 rows"),
        (np.zeros((90, 2)), wave(90), r"The series comes first.*fit\(y, X\)"),
        (["a", "b"], None, "not an array of numbers"),
        ([], None, r"shape \(0,\)"),
        ([wave(90), wave(90)], wave(90), "X is not a list"),
        ([wave(90), wave(90)], [wave(90)], "one table of inputs per series"),
        ([wave(90), wave(90)], [wave(90), np.zeros((90, 2))], "give all of them the same"),
    ],
)
def test_bad_series_are_refused(y, X, message):
    with pytest.raises(InvalidInputError, match=message):
        NARX(LSSVR()).fit(y, X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lags": 0}, "lags=0"),
        ({"lags": 2.5}, "lags=2.5"),
        ({"exog_lags": -1}, "exog_lags=-1"),
        ({"differencing": True}, "differencing=True"),
        ({"horizon": 0}, "horizon=0"),
        ({"n_origins": 0}, "n_origins=0"),
        ({"n_paths": 1}, "n_paths=1"),
        ({"validation": "loo"}, "validation='loo' is not known"),
        ({"horizon": 58}, "horizon=58 is too long to be validated"),
        ({"estimator": LSSVR("cv", kernel="precomputed")}, "cannot tune kernel='precomputed'"),
        ({"search": "best"}, "search='best' is not known"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        NARX(**{"lags": 3, **parameters}).fit(wave(60))


@pytest.mark.parametrize("steps", [0, -3, 2.0, "ten", True])
def test_a_horizon_that_is_no_positive_number_is_refused(steps):
    with pytest.raises(InvalidInputError, match="give a whole number >= 1"):
        NARX(LSSVR(), 3).fit(wave(60)).forecast(steps)


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.1, 95, np.nan, "0.9", True])
def test_a_coverage_outside_zero_and_one_is_refused(coverage):
    model = NARX(LSSVR(), 3).fit(wave(60))
    with pytest.raises(InvalidInputError, match=r"coverage=.* between 0 and 1"):
        model.forecast(5, return_interval=True, coverage=coverage)


def test_continuations_that_do_not_fit_are_refused():
    y, X = wave(60), np.zeros((60, 2))
    with pytest.raises(NotFittedError):
        NARX().forecast(3)
    plain, driven = NARX(LSSVR(), 3).fit(y), NARX(LSSVR(), 3).fit(y, X)
    for call, message in (
        (lambda: plain.forecast(5, np.zeros((5, 1))), "X_future has 1 columns .* trained with 0"),
        (lambda: driven.forecast(5), "X_future has 0 columns .* trained with 2"),
        (lambda: driven.forecast(5, np.zeros((4, 2))), "give a table of 5 rows"),
        (lambda: driven.forecast(5, np.full((5, 2), np.nan)), "X_future has a missing"),
        (lambda: driven.predict(y), "X has 0 columns .* trained with 2"),
        (lambda: plain.predict(with_nan(9, 2)), "missing"),
        (lambda: plain.forecast(5, history=y[:2]), "the model looks back 3"),
        (lambda: plain.forecast(5, X_history=X), "without history"),
        (lambda: plain.predict([y, y]), "y has 2 series but 1 are to be continued"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            call()
    several = NARX(LSSVR(), 3).fit([y, y], [X, X])
    with pytest.raises(InvalidInputError, match="a list of 2 tables"):
        several.forecast(5, np.zeros((5, 2)))


def test_a_forecast_that_diverges_is_finite_and_warns():
    y = 1.5 ** np.arange(40.0)
    model = NARX(LinearRegression(), 1).fit(y)
    with pytest.warns(NumericalWarning, match="diverged"):
        assert np.isfinite(model.forecast(500)).all()


def test_a_constant_series_stays_what_it_is():
    values, ends = NARX(LSSVR(), 2).fit(np.full(40, 7.0)).forecast(5, return_interval=True)
    np.testing.assert_allclose(values, 7.0)
    np.testing.assert_allclose(ends, 7.0, atol=1e-6)


def test_relevance_of_lags():
    rng = np.random.default_rng(0)
    series = [0.5, 0.1, -0.3]
    for _ in range(200):
        series.append(0.9 * np.sin(2.0 * series[-2]) + 0.05 * rng.normal())
    model = NARX(LSSVR("cv", gamma="ard", cv=4), lags=4).fit(np.array(series))
    shares = model.estimator_.feature_relevance_
    assert shares.max() > 0.8
    assert np.isfinite(model.forecast(5)).all()


@pytest.mark.filterwarnings("error")
def test_inputs_that_are_too_large_are_refused_and_small_ones_are_not():
    y, u = np.sin(np.arange(40.0)), np.cos(np.arange(43.0))[:, None]
    with pytest.raises(InvalidInputError, match="X has values of magnitude"):
        NARX(LSSVR(), 3, exog_lags=1).fit(y, 1e200 * u[:40])
    found = [NARX(LSSVR(), 3).fit(y, c * u[:40]).forecast(3, c * u[40:]) for c in (1.0, 1e-30)]
    np.testing.assert_allclose(*found, rtol=1e-6)
    with pytest.raises(InvalidInputError, match="X_future has values of magnitude"):
        NARX(LSSVR(), 3).fit(y, u[:40]).forecast(3, 1e200 * u[40:])
