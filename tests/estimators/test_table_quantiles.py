"""Quantiles, two-sided intervals and the scale of the target of the regressor for tables."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_pinball_loss, r2_score

from lssvm import LSSVMRegressor, load, save
from lssvm._core.errors import InvalidInputError, NumericalWarning

FAST = {"preset": "fast", "kernel": "rbf", "n_jobs": 1}
ONE = FAST | {"scaling": "standardised", "metric": None}
LOG = ONE | {"target_scale": "log"}


def skewed(rng, n):
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.6 * (rng.exponential(size=n) - 1.0)


def unequal_and_skewed(rng, n):
    X = rng.uniform(-2, 2, (n, 3))
    width = 0.2 + 0.4 * (X[:, 1] + 2.0)
    return X, np.sin(2 * X[:, 0]) + width * (rng.gamma(1.0, size=n) - 1.0)


def heavy(rng, n):
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.4 * rng.standard_t(2.5, n)


def products(rng, n):
    """Targets whose factors are smooth, and multiplied by a noise of 10 %."""
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.exp(2.0 * X[:, 0] + 1.5 * X[:, 1] + 0.1 * rng.normal(size=n))


def within_chance(values, wanted):
    """Return whether the mean is within two standard errors of what is wanted."""
    values = np.asarray(values)
    return abs(values.mean() - wanted) <= 2.0 * values.std(ddof=1) / np.sqrt(len(values))


@pytest.mark.parametrize("draw", [skewed, unequal_and_skewed, heavy])
def test_both_tails_of_new_rows_are_missed_equally_often(draw):
    below, above = [], []
    for seed in range(10):
        rng = np.random.default_rng([11, seed])
        model = LSSVMRegressor(**FAST).fit(*draw(rng, 300))
        new, truth = draw(rng, 2000)
        low, high = model.predict_interval(new, 0.8).T
        below.append(np.mean(truth < low))
        above.append(np.mean(truth > high))
    assert within_chance(below, 0.1), below
    assert within_chance(above, 0.1), above


def test_new_groups_are_covered():
    def draw(rng, n_groups, size):
        group = np.repeat(np.arange(n_groups), size)
        X = rng.normal(size=(n_groups, 3))[group] + 0.5 * rng.normal(size=(len(group), 3))
        y = np.sin(2 * X[:, 0]) + rng.normal(size=n_groups)[group]
        return X, y + 0.3 * rng.normal(size=len(group)), group

    inside = []
    for seed in range(10):
        rng = np.random.default_rng([12, seed])
        X, y, group = draw(rng, 30, 10)
        new, truth, _ = draw(rng, 1000, 2)
        low, high = LSSVMRegressor(**ONE).fit(X, y, groups=group).predict_interval(new, 0.9).T
        inside.append(np.mean((low <= truth) & (truth <= high)))
    assert np.mean(inside) > 0.88, inside


def test_quantiles():
    rng = np.random.default_rng(0)
    X, y = unequal_and_skewed(rng, 500)
    new, truth = unequal_and_skewed(rng, 3000)
    model = LSSVMRegressor(**ONE).fit(X, y)
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    Q = model.predict_quantile(new, levels)
    assert Q.shape == (3000, 5) and np.all(np.diff(Q, axis=1) >= 0)
    np.testing.assert_array_equal(model.predict_quantile(new, 0.25), Q[:, 1])
    np.testing.assert_array_equal(model.predict_interval(new, 0.9), Q[:, [0, 4]])
    np.testing.assert_allclose((truth[:, None] <= Q).mean(axis=0), levels, atol=0.05)
    ours = trees = 0.0
    for j, level in enumerate(levels):
        other = HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0)
        trees += mean_pinball_loss(truth, other.fit(X, y).predict(new), alpha=level)
        ours += mean_pinball_loss(truth, Q[:, j], alpha=level)
    assert ours < 0.98 * trees


def test_quantiles_of_several_targets_have_one_more_axis():
    rng = np.random.default_rng(1)
    X, y = skewed(rng, 200)
    model = LSSVMRegressor(**ONE).fit(X, np.column_stack([y, -2.0 * y]))
    Q = model.predict_quantile(X[:7], [0.1, 0.5, 0.9])
    assert Q.shape == (7, 2, 3) and model.predict_quantile(X[:7], 0.5).shape == (7, 2)
    np.testing.assert_allclose(Q[:, 1, ::2], -2.0 * Q[:, 0, ::-2], rtol=1e-6)


@pytest.mark.parametrize("level", [0.0, 1.0, "0.5", None, [0.5, 1.5]])
def test_levels_outside_the_unit_interval(level):
    rng = np.random.default_rng(1)
    model = LSSVMRegressor(**ONE).fit(*skewed(rng, 100))
    with pytest.raises(InvalidInputError, match="q="):
        model.predict_quantile(rng.normal(size=(2, 3)), level)


def test_levels_that_need_more_rows_are_infinite():
    rng = np.random.default_rng(1)
    model = LSSVMRegressor(**ONE).fit(*skewed(rng, 100))
    with pytest.warns(NumericalWarning, match="too few for quantiles"):
        ends = model.predict_quantile(rng.normal(size=(2, 3)), [1e-4, 0.5])
    assert np.all(ends[:, 0] == -np.inf) and np.isfinite(ends[:, 1]).all()


@pytest.fixture(scope="module")
def model():
    return LSSVMRegressor(**LOG).fit(*products(np.random.default_rng(2), 300))


@pytest.fixture(scope="module")
def new():
    return products(np.random.default_rng(3), 2000)


class TestLogarithms:
    def test_they_help(self, model, new):
        plain = LSSVMRegressor(**ONE).fit(*products(np.random.default_rng(2), 300))
        assert "Logarithms" in model.summary_ and "Logarithms" not in plain.summary_
        assert model.score(*new) > plain.score(*new)

    def test_predictions_are_means_in_the_unit_of_the_target(self, model, new):
        predicted = model.predict(new[0])
        assert predicted.mean() == pytest.approx(new[1].mean(), rel=0.02)
        assert model.score(*new) == pytest.approx(r2_score(new[1], predicted))
        assert model.best_score_ == pytest.approx(model.score(*new), abs=0.01)

    def test_exponentials_of_noise_are_corrected_for(self):
        rng = np.random.default_rng(4)
        X = rng.uniform(-1, 1, (2500, 2))
        y = np.exp(X[:, 0] + 0.8 * rng.normal(size=2500))
        model = LSSVMRegressor(**LOG).fit(X[:500], y[:500])
        ratio = y[500:].mean() / model.predict(X[500:]).mean()
        assert ratio == pytest.approx(1.0, abs=0.08)
        assert model.record_.task.smearing[0] == pytest.approx(np.exp(0.32), rel=0.15)

    def test_intervals(self, model, new):
        low, high = model.predict_interval(new[0], 0.9).T
        assert np.all(low > 0)
        assert np.mean((low <= new[1]) & (new[1] <= high)) == pytest.approx(0.9, abs=0.03)

    def test_files(self, model, new, tmp_path):
        save(model, tmp_path / "model.lssvm", keep="prediction")
        loaded = load(tmp_path / "model.lssvm")
        np.testing.assert_array_equal(loaded.predict(new[0]), model.predict(new[0]))
        ends = loaded.predict_quantile(new[0], [0.1, 0.9])
        np.testing.assert_array_equal(ends, model.predict_quantile(new[0], [0.1, 0.9]))

    def test_onnx(self, model, new, tmp_path):
        runtime = pytest.importorskip("onnxruntime")
        import lssvm.onnx

        lssvm.onnx.export(model, tmp_path / "model.onnx")
        session = runtime.InferenceSession(tmp_path / "model.onnx")
        (entry,) = session.get_inputs()
        kind = np.float32 if entry.type == "tensor(float)" else np.float64
        (values,) = session.run(None, {entry.name: new[0].astype(kind)})
        np.testing.assert_allclose(values.ravel(), model.predict(new[0]), rtol=1e-5)

    def test_explanations_add_up_to_the_logarithm(self, model, new):
        some = new[0][:4]
        found = model.explain(some)
        total = np.asarray(found.values).reshape(4, -1).sum(axis=1) + found.base_values.ravel()
        np.testing.assert_allclose(total, np.log(model.predict(some)), atol=1e-6)

    def test_a_small_model(self, model, new):
        small = model.compress(40)
        assert small.score(*new) > 0.97
        assert small.best_score_ == pytest.approx(small.score(*new), abs=0.02)

    def test_rows_are_learned_and_forgotten(self, new):
        X, y = products(np.random.default_rng(2), 300)
        model = LSSVMRegressor(**LOG).fit(X, y)
        before = model.predict(new[0])
        model.partial_fit(new[0][:50], new[1][:50])
        assert not np.allclose(model.predict(new[0]), before, rtol=1e-6)
        model.forget(new[0][:50], new[1][:50])
        np.testing.assert_allclose(model.predict(new[0]), before, rtol=1e-6)
        with pytest.raises(InvalidInputError, match="not positive in 1 of 2 rows"):
            model.partial_fit(new[0][:2], [1.0, -1.0])

    def test_the_unit_of_the_target_changes_nothing(self, model, new):
        X, y = products(np.random.default_rng(2), 300)
        other = LSSVMRegressor(**LOG).fit(X, 1e6 * y).predict(new[0])
        np.testing.assert_allclose(other, 1e6 * model.predict(new[0]), rtol=1e-6)

    def test_auto_takes_them_where_held_out_rows_gain(self, model, new, tmp_path):
        own = np.random.default_rng(2)
        X, y = products(own, 300)
        auto = LSSVMRegressor(**ONE, target_scale="auto").fit(X, y)
        np.testing.assert_array_equal(auto.predict(new[0]), model.predict(new[0]))
        first, *others = auto.record_.tuning.steps
        assert first.stage == "target scale" and first.taken and first.gain > 0.1
        assert first.seconds > 0 and "target scale" not in {step.stage for step in others}
        # Skewed, but the noise is added: logarithms would make small targets count most.
        bent = np.exp(1.5 * X[:, 0]) + 0.1 * own.uniform(size=300)
        for target in (bent, y - y.mean()):  # and not positive
            auto = LSSVMRegressor(**ONE, target_scale="auto").fit(X, target)
            plain = LSSVMRegressor(**ONE).fit(X, target)
            np.testing.assert_array_equal(auto.predict(X), plain.predict(X))
            assert ("tried, not kept: logarithms" in auto.summary_) == (target is bent)
        save(auto, tmp_path / "model.lssvm")
        assert load(tmp_path / "model.lssvm").target_scale == "auto"

    def test_auto_counts_for_the_time_limit_and_for_very_many_rows(self, monkeypatch):
        from lssvm.estimators import table_fit

        limits = []

        class Noted(table_fit.Clock):
            def __init__(self, limit=None):
                super().__init__(limit)
                limits.append((limit, self))

        monkeypatch.setattr(table_fit, "Clock", Noted)
        X, y = products(np.random.default_rng(2), 300)
        options = ONE | {"target_scale": "auto"}
        model = LSSVMRegressor(**options, time_limit=800.0).fit(X, y)
        assert [limit for limit, _ in limits] == [100.0, 100.0, 800.0]
        assert limits[2][1].started < limits[1][1].started  # the time of trials is spent
        assert model.record_.tuning.steps[1].stage == "preparation"
        monkeypatch.setattr(table_fit, "MANY", 250)
        many = LSSVMRegressor(**options).fit(X, y)
        assert many.record_.tuning.steps[0].taken and "Logarithms" in many.summary_

    def test_what_has_no_logarithm_is_refused(self):
        rng = np.random.default_rng(0)
        with pytest.raises(InvalidInputError, match="target_scale='identity'"):
            LSSVMRegressor(target_scale="log").fit(*skewed(rng, 50))
        X, y = products(rng, 50)
        y[[4, 7]] = 0.0
        with pytest.raises(InvalidInputError, match="in 2 of 50 rows, the first in row 4"):
            LSSVMRegressor(**LOG).fit(X, y)
        assert np.all(LSSVMRegressor(**LOG).fit(X, y, y).predict(X) > 0)  # of weight 0
        with pytest.raises(InvalidInputError, match="target_scale"):
            LSSVMRegressor(target_scale="sqrt").fit(*products(rng, 50))


@pytest.mark.parametrize("n", [180, 390])
def test_a_local_error_is_that_of_a_quarter_of_the_rows_at_most(n):
    """Of 50 rows in 180 it would not be local."""
    own = np.random.default_rng(0)
    A = own.normal(size=(n, 1))
    t = np.where(A[:, 0] > 0.0, 2.0, 0.05) * own.normal(size=n)
    one = {"scaling": "standardised", "kernel": "rbf", "metric": None}
    model = LSSVMRegressor("fast", n_jobs=1, **one).fit(A, t)
    assert 0 < 4 * model.record_.calibrated.nearby <= n
