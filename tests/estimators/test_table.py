"""The estimators for tables: frames as they come, scikit-learn's rules, honest scores, updates."""

import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator
from tests.preparation.texts import reviews
from threadpoolctl import threadpool_info, threadpool_limits

from lssvm import LSSVC, LSSVR, load, save
from lssvm._core.errors import InvalidInputError, Stopped
from lssvm._core.progress import listening
from lssvm.estimators.table import LSSVMClassifier, LSSVMRegressor
from lssvm.fitting import compression
from lssvm.fitting.table_record import Problem, summary
from lssvm.kernels import MetricKernel
from lssvm.preparation import TablePreparation
from lssvm.preparation.transformer import fit_features

rng = np.random.default_rng(0)
X = rng.normal(size=(160, 3))
y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=160)
labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.4, 0.4])]
new = rng.normal(size=(300, 3))


ONE = {"scaling": "standardised", "kernel": "rbf", "metric": None, "n_jobs": 1}
TWO = {"scaling": "standardised", "kernel": ["rbf", "laplacian"], "n_jobs": 1}  # with a metric


@pytest.mark.parametrize("kind", [LSSVMClassifier, LSSVMRegressor])
def test_scikit_learn(kind):
    """With everything by default."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(kind(), on_fail=None, on_skip=None)
    failed = [(r["check_name"], str(r["exception"])) for r in results if r["status"] == "failed"]
    assert failed == []
    assert sum(r["status"] == "passed" for r in results) > 50


@pytest.fixture(scope="module")
def regressor():
    return LSSVMRegressor(n_jobs=1).fit(X, y)


@pytest.fixture(scope="module")
def classifier():
    return LSSVMClassifier(n_jobs=1).fit(X, labels)


class TestRegressor:
    def test_predictions_and_score(self, regressor):
        observed = np.sin(2 * new[:, 0]) + 0.1 * np.random.default_rng(5).normal(size=300)
        r2 = regressor.score(new, observed)
        assert r2 > 0.9 and abs(regressor.best_score_ - r2) < 0.08

    def test_what_it_says(self, regressor):
        assert regressor.feature_importances_.argmax() == 0
        assert regressor.feature_importances_.sum() == pytest.approx(1.0)
        table = regressor.configurations_
        assert len(table["kernel"]) >= 6 and sum(w > 0 for w in table["weight"]) >= 1
        assert "out-of-sample error" in regressor.summary_
        assert regressor.metric_.shape == (3, 3)

    def test_numbers_in_what_it_says(self):
        """One model is no models, a gain of nothing has no sign, thousands have a comma."""
        X = np.random.default_rng(0).normal(size=(2200, 2))
        model = LSSVMRegressor("fast", leaf_size=1100, n_trees=1, **ONE).fit(X, X[:, 0])
        steps = {step.stage: step.what for step in model.record_.tuning.steps}
        assert steps["screening"].startswith("1 configuration on ")
        assert steps["stack"] == "weights of 1 model"
        assert steps["all rows"] == "1 configuration in leaves of at most 1,100 rows"
        lines = model.summary_.splitlines()
        assert lines[0] == "1 configuration for 2,200 rows, in 2 leaves of at most 1,100 rows."
        for gain, text in ((-1e-7, "0.00%"), (0.0123, "1.23%"), (-7e6, "below -1,000%")):
            step = replace(model.record_.tuning.steps[0], gain=gain, seconds=0.0, taken=False)
            fit = replace(model.record_, tuning=replace(model.record_.tuning, steps=(step,)))
            assert summary(fit).endswith(f"gain {text} of the loss.")
        few = model.compress(8)
        assert "8 support vectors in place of 2,200 kept rows" in few.summary_

    def test_a_metric_of_several_rounds_has_the_setting_of_the_folds(self):
        """Without noise C grows in every round, for all rows as in folds.

        Scores and intervals come from the folds: they hold only for a model of the same kind.
        """
        X = np.random.default_rng(0).normal(size=(300, 10))
        model = LSSVMRegressor(**ONE | {"metric": "auto"}).fit(X, X[:, 0] ** 2)
        (member,) = model.record_.members
        assert model.configurations_["rounds"][0] > 2
        assert member.local.leaves[0].squares.mean() < 3.0 * (1.0 - model.best_score_)
        low, high = model.predict_interval(X, coverage=0.9).T
        assert np.mean((low <= X[:, 0] ** 2) & (X[:, 0] ** 2 <= high)) > 0.85

    def test_intervals_cover(self, regressor):
        """Over data sets: that of one of so few rows varies by some hundredths."""
        inside = []
        for seed in range(8):
            own = np.random.default_rng(seed)
            A = own.normal(size=(1160, 3))
            t = np.sin(2 * A[:, 0]) + 0.1 * own.normal(size=1160)
            model = LSSVMRegressor("fast", **ONE).fit(A[:160], t[:160])
            low, high = model.predict_interval(A[160:], 0.9).T
            inside.append(np.mean((low <= t[160:]) & (t[160:] <= high)))
        assert np.mean(inside) == pytest.approx(0.9, abs=0.03)
        with pytest.raises(InvalidInputError, match="coverage"):
            regressor.predict_interval(new, 1.5)

    def test_intervals_follow_the_noise(self):
        """One exact model: noisy regions get wide intervals, quiet ones narrow, both cover."""
        own = np.random.default_rng(3)
        A = own.uniform(-1, 1, (4000, 2))
        noise = np.where(A[:, 0] > 0, 1.0, 0.1)
        t = np.sin(3 * A[:, 1]) + noise * own.normal(size=4000)
        one = {"scaling": "standardised", "kernel": "rbf", "metric": None, "n_jobs": 1}
        model = LSSVMRegressor("fast", **one).fit(A[:700], t[:700])
        low, high = model.predict_interval(A[700:], 0.9).T
        inside, width = (t[700:] >= low) & (t[700:] <= high), high - low
        loud = A[700:, 0] > 0
        assert 0.87 < inside.mean() < 0.95
        assert inside[loud].mean() > 0.82 and inside[~loud].mean() > 0.87
        assert 2.5 < width[loud].mean() < 4.2 and width[~loud].mean() < 0.35 * width[loud].mean()

    def test_equal_noise_gets_equal_intervals(self):
        own = np.random.default_rng(4)
        A = own.uniform(-1, 1, (300, 2))
        t = np.sin(3 * A[:, 1]) + 0.2 * own.normal(size=300)
        one = {"scaling": "standardised", "kernel": "rbf", "metric": None, "n_jobs": 1}
        model = LSSVMRegressor("fast", **one).fit(A, t)
        widths = np.ptp(model.predict_interval(A[:50]), axis=1)
        np.testing.assert_allclose(widths, widths[0])

    def test_without_noise_nothing_is_complained_about(self):
        own = np.random.default_rng(0)
        A = own.uniform(-3, 3, (300, 2))
        model = LSSVMRegressor("fast", **ONE).fit(A, np.sin(A[:, 0]) + A[:, 1])
        assert model.best_score_ > 0.99

    def test_several_targets(self):
        model = LSSVMRegressor("fast", **TWO).fit(X, np.column_stack([y, 5 + 3 * y]))
        out = model.predict(new)
        assert out.shape == (300, 2)
        np.testing.assert_allclose(out[:, 1], 5 + 3 * out[:, 0], atol=0.2)
        assert model.predict_interval(new[:4]).shape == (4, 2, 2)

    def test_shift_and_scale_of_the_target(self):
        a = LSSVMRegressor("fast", **TWO).fit(X, y).predict(new)
        b = LSSVMRegressor("fast", **TWO).fit(X, 1e6 * y + 1e7).predict(new)
        np.testing.assert_allclose((b - 1e7) / 1e6, a, atol=1e-6)

    def test_scoring(self):
        score = LSSVMRegressor("fast", scoring="neg_mean_absolute_error", **TWO).fit(X, y)
        assert -0.3 < score.best_score_ < 0


class TestClassifier:
    def test_predictions_and_score(self, classifier):
        truth = np.array(["low", "middle", "high"])[
            np.digitize(np.sin(2 * new[:, 0]) + 0.1 * rng.normal(size=300), [-0.4, 0.4])
        ]
        accuracy = np.mean(classifier.predict(new) == truth)
        assert accuracy > 0.75 and abs(accuracy - classifier.best_score_) < 0.12

    def test_probabilities(self, classifier):
        p = classifier.predict_proba(new)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        np.testing.assert_array_equal(
            classifier.classes_[p.argmax(axis=1)], classifier.predict(new)
        )
        sets = classifier.predict_set(new, 0.95)
        assert sets.shape == p.shape and sets.any(axis=1).all()
        assert classifier.decision_function(new).shape == (300, 3)

    def test_class_weight(self):
        rare = np.where(X[:, 0] + 0.8 * rng.normal(size=160) > 1.2, "rare", "common")
        plain = LSSVMClassifier("fast", **ONE).fit(X, rare)
        heavy = LSSVMClassifier("fast", class_weight={"rare": 8.0}, **ONE).fit(X, rare)
        given = LSSVMClassifier("fast", **ONE).fit(
            X, rare, sample_weight=np.where(rare == "rare", 8.0, 1.0)
        )
        assert np.mean(heavy.predict(new) == "rare") > np.mean(plain.predict(new) == "rare")
        np.testing.assert_allclose(heavy.decision_function(new), given.decision_function(new))

    def test_scoring_by_probabilities(self):
        two = np.where(y > 0, "yes", "no")
        model = LSSVMClassifier("fast", scoring="roc_auc", **TWO).fit(X, two)
        assert 0.9 < model.best_score_ <= 1.0
        loss = LSSVMClassifier("fast", scoring="neg_log_loss", **ONE).fit(X, two)
        assert -0.7 < loss.best_score_ < 0

    def test_one_class_is_refused(self):
        with pytest.raises(InvalidInputError, match="at least two classes"):
            LSSVMClassifier("fast").fit(X, ["a"] * 160)


def test_frames_as_they_come():
    pandas = pytest.importorskip("pandas")
    n = 240
    town = rng.choice(["Delft", "Gent", "Leuven"], n)
    size = rng.normal(size=n)
    frame = pandas.DataFrame(
        {
            "town": town,
            "size": np.where(rng.uniform(size=n) < 0.1, np.nan, size),
            "when": pandas.Timestamp("2020-01-01") + pandas.to_timedelta(np.arange(n), unit="D"),
            "open": rng.uniform(size=n) > 0.5,
            "same": 1,
        }
    )
    t = np.where(town == "Gent", 2.0, 0.0) + size
    model = LSSVMRegressor("fast", kernel="rbf", n_jobs=1).fit(frame, t)
    assert model.best_score_ > 0.8
    assert set(model.feature_names_in_) == set(frame.columns)
    assert set(np.argsort(model.feature_importances_)[-2:]) == {0, 1}
    shuffled = frame[["open", "same", "size", "when", "town"]]
    np.testing.assert_allclose(model.predict(shuffled), model.predict(frame))
    with pytest.raises(ValueError, match="town"):
        model.predict(frame.drop(columns="town"))


def test_groups_that_cannot_be_left_out():
    A, t = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60.0)
    with pytest.raises(InvalidInputError, match="at least 2 groups"):
        LSSVMRegressor("fast", **ONE).fit(A, t, groups=np.zeros(60))
    weight = np.repeat([1.0, 0.0], 30)
    with pytest.raises(InvalidInputError, match="at least 2 groups"):
        LSSVMClassifier("fast").fit(A, t > 12, sample_weight=weight, groups=t // 30)
    with pytest.raises(InvalidInputError, match="groups has 3 entries"):
        LSSVMRegressor("fast", **ONE).fit(A, t, groups=np.zeros(3))


@pytest.mark.parametrize("seed", range(4))
def test_two_groups_are_two_folds(seed):
    """Whatever the draw, each is judged by a model of the other."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(22, 3))
    group = rng.permutation(np.repeat([0, 1], [14, 8]))
    model = LSSVMRegressor("fast", random_state=seed, **ONE).fit(A, A[:, 0] + group, groups=group)
    assert np.all(np.isfinite(model.predict_interval(A[:3], coverage=0.5)))
    problem = Problem({"standardised": A}, A[:, :1], np.ones(22), group)
    for draw in range(20):
        folds = problem.folds(5, np.random.default_rng(draw))
        assert {len(np.unique(folds[group == g])) for g in (0, 1)} == {1}
        assert len(np.unique(folds)) == 2


def test_groups_are_left_out_together():
    """Copies with a little noise leak unless they are said to belong together."""
    base = np.repeat(rng.normal(size=(40, 3)), 3, axis=0)
    A = base + 1e-3 * rng.normal(size=base.shape)
    t = np.repeat(rng.normal(size=40), 3)
    leaking = LSSVMRegressor("fast", **ONE).fit(A, t)
    honest = LSSVMRegressor("fast", **ONE).fit(A, t, groups=np.repeat(np.arange(40), 3))
    assert leaking.best_score_ > 0.8 and honest.best_score_ < 0.2


def test_updates():
    model = LSSVMRegressor("fast", **TWO).fit(X[:140], y[:140])
    before = model.predict(new)
    model.partial_fit(X[140:], y[140:])
    assert np.abs(model.predict(new) - before).max() > 1e-6
    model.forget(X[140:], y[140:])
    np.testing.assert_allclose(model.predict(new), before, atol=1e-7)
    with pytest.raises(InvalidInputError, match="not among"):
        model.forget(X[140:], y[140:])
    classes = LSSVMClassifier("fast", **ONE).fit(X[:140], labels[:140])
    classes.partial_fit(X[140:], labels[140:]).forget(X[:3], labels[:3])
    with pytest.raises(InvalidInputError, match="not seen"):
        classes.partial_fit(X[:1], ["strange"])


def test_updates_with_class_weights():
    weights = {"low": 3.0, "middle": 1.0, "high": 0.5}
    kind = {**ONE, "class_weight": weights}
    model = LSSVMClassifier("fast", **kind).fit(X[:140], labels[:140])
    given = LSSVMClassifier("fast", **ONE)
    given.fit(X[:140], labels[:140], sample_weight=[weights[name] for name in labels[:140]])
    model.partial_fit(X[140:], labels[140:])
    given.partial_fit(X[140:], labels[140:], sample_weight=[weights[name] for name in labels[140:]])
    np.testing.assert_allclose(model.decision_function(new), given.decision_function(new))
    model.forget(X[:5], labels[:5])
    balanced = LSSVMClassifier("fast", **{**kind, "class_weight": "balanced"}).fit(X, labels)
    with pytest.raises(InvalidInputError, match="balanced"):
        balanced.partial_fit(X[:3], labels[:3])


def test_updates_with_columns_encoded_by_the_target():
    own = np.random.default_rng(0)
    town = own.integers(0, 60, 400)
    frame = {"town": np.array([f"town {i}" for i in town]), "x": own.normal(size=400)}
    t = np.sin(town) + frame["x"]
    more = {name: column[:4] for name, column in frame.items()}
    model = LSSVMRegressor("fast", **ONE).fit(frame, t)
    before = model.predict(frame)
    model.partial_fit(more, t[:4] + 1.0)
    assert np.abs(model.predict(frame) - before).max() > 1e-3
    model.forget(more, t[:4] + 1.0)
    np.testing.assert_allclose(model.predict(frame), before, atol=1e-8)
    with pytest.raises(InvalidInputError, match=r"town.*encoded by the target"):
        model.forget(more, t[:4])


def test_parameters_are_checked():
    for wrong in (
        {"preset": "slow"},
        {"scaling": "ranks"},
        {"kernel": []},
        {"metric": "round"},
        {"metric": [1.0, 2.0]},
        {"metric": np.zeros(3)},
        {"leaf_size": 0},
        {"time_limit": -1},
    ):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            LSSVMRegressor(**{"preset": "fast", **wrong}).fit(X, y)


def test_chosen_ingredients_and_clone():
    model = LSSVMRegressor("fast", scaling="standardised", kernel="rbf", metric=None, n_jobs=1)
    model = clone(model).fit(X, y)
    assert set(model.configurations_["kernel"]) == {"rbf"}
    assert set(model.configurations_["scaling"]) == {"standardised"}
    assert list(model.preparations_) == ["standardised"]
    np.testing.assert_array_equal(model.metric_, np.eye(3))
    assert cross_val_score(model, X, y, cv=3).mean() > 0.7


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_the_shape_of_learned_metrics(kernel):
    random = np.random.default_rng(0)
    A = random.normal(size=(300, 4))
    t = np.sin(2.0 * A[:, 0] + 2.0 * A[:, 1]) + 0.05 * random.normal(size=300)
    learned = {}
    for shape in ("diagonal", "full"):
        model = LSSVMRegressor("fast", **{**ONE, "kernel": kernel, "metric": shape}).fit(A, t)
        learned[shape] = model.metric_ / model.metric_[0, 0]
    np.testing.assert_array_equal(learned["diagonal"], np.diag(np.diag(learned["diagonal"])))
    assert learned["diagonal"][0, 0] > 5.0 * learned["diagonal"][2, 2]
    assert learned["full"][0, 1] > 0.5  # along the sum of both


class TestInterruption:
    """Ctrl-C and who listens, at every step of a fit from raw columns."""

    @staticmethod
    def steps(make):
        events = []
        with listening(events.append):
            make().fit(X[:60], labels[:60])
        return [event["stage"] for event in events]

    @staticmethod
    def make():
        kernels = ["rbf", "laplacian"]
        return LSSVMClassifier("fast", kernel=kernels, scaling="standardised", n_jobs=1)

    @staticmethod
    def at(step, error):
        count = iter(range(1, 1000))

        def listener(event):
            if next(count) == step:
                raise error

        return listening(listener)

    def test_ctrl_c(self):
        stages = self.steps(self.make)
        assert stages[0] == "preparation" and stages[-1] == "done"
        usable = []
        for step in range(1, len(stages) + 1):
            model = self.make()
            with self.at(step, KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
                model.fit(X[:60], labels[:60])
            usable.append(hasattr(model, "record_"))
            if usable[-1]:
                assert set(model.predict(new)) <= set(labels) and "interrupted" in model.summary_
                assert model.best_score_ > 0.5 and len(model.predict_proba(new)) == 300
            else:
                assert not [name for name in vars(model) if name.endswith("_")]
        # From the first model of all rows on there is one.
        assert usable == sorted(usable) and not usable[stages.index("screening")] and usable[-1]

    def test_an_earlier_model_stays(self):
        model = LSSVMClassifier("fast", kernel="rbf", n_jobs=1).fit(X[60:], labels[60:])
        before = model.predict(new)
        with self.at(3, KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
            model.fit(X[:60], labels[:60])
        np.testing.assert_array_equal(model.predict(new), before)

    def test_a_stop_gives_a_model(self):
        for step in range(1, len(self.steps(self.make))):
            model = self.make()
            with self.at(step, Stopped):
                model.fit(X[:60], labels[:60])
            assert model.record_.state.interrupted and set(model.predict(new)) <= set(labels)

    @pytest.mark.parametrize("copies", [1, 2])
    def test_of_many_columns_less_is_computed_where_no_time_is_left(self, copies):
        rng = np.random.default_rng(0)
        A = np.tile(rng.normal(size=(1600 // copies, 300)), (copies, 1))
        b = A[:, 0] + 0.1 * np.tile(rng.normal(size=1600 // copies), copies)
        model = LSSVMRegressor(time_limit=1e-9, n_jobs=1).fit(A, b)
        assert sum(len(leaf.rows.X) for leaf in model.record_.main.local.leaves) == 1600 // copies
        assert model.score(A, b) > 0.2 and model.feature_importances_.sum() == pytest.approx(1.0)

    def test_a_tiny_time_limit_gives_a_model(self):
        model = LSSVMClassifier(time_limit=1e-9, n_jobs=1).fit(X, labels)
        assert list(model.preparations_) == ["standardised"]
        assert np.mean(model.predict(X) == labels) > 0.6

    def test_progress_says_what_is_tried(self, capsys):
        LSSVMRegressor("fast", verbose=2, n_jobs=1).fit(X, y)
        shown = capsys.readouterr().err
        for words in ("preparation: quantiles, 2 of 2", "laplacian on quantiles", "best loss so"):
            assert words in shown


def test_scoring_chooses():
    """A score that wants the worst gets another model than squared errors."""

    def worst(model, A, t):
        return float(np.mean(np.abs(model.predict(A) - t)))

    plain, odd = (LSSVMRegressor("fast", scoring=s, n_jobs=1).fit(X, y) for s in (None, worst))
    used = [np.array(m.configurations_["weight"]) > 0 for m in (plain, odd)]
    error = [m.configurations_["error"][0] for m in (plain, odd)]
    assert used[1].sum() <= 2 and error[1] > 1.5 * error[0]
    assert odd.best_score_ > 0.05
    with pytest.raises(InvalidInputError, match="scoring"):
        LSSVMRegressor("fast", scoring="beauty").fit(X, y)


class TestCompression:
    def test_classes(self, classifier):
        few = classifier.compress(12)
        assert type(few) is LSSVMClassifier and few.get_params() == classifier.get_params()
        (member,) = few.record_.members
        assert member.expansion.basis.shape == (12, 3)
        assert np.mean(few.predict(new) == classifier.predict(new)) > 0.85
        assert few.predict_proba(new).shape == (300, 3)
        assert few.predict_set(new).any(axis=1).all()
        assert few.best_score_ < classifier.best_score_ + 0.05
        for words in ("12 support vectors", "held-out score", "1,000 rows take"):
            assert words in few.summary_

    def test_a_path_of_sizes(self, regressor):
        truth = np.sin(2 * new[:, 0])
        path = regressor.compress([3, 10, 40])
        error = [np.mean((model.predict(new) - truth) ** 2) for model in path]
        assert error[2] < error[0] / 3 and error[2] < 0.1 * truth.var()
        score = [model.best_score_ for model in path]
        assert score == sorted(score)
        observed = truth + 0.1 * rng.normal(size=300)
        low, high = path[2].predict_interval(new, 0.9).T
        assert 0.82 < np.mean((low <= observed) & (observed <= high)) < 0.99

    def test_files(self, classifier, tmp_path):
        few = classifier.compress(8)
        save(few, tmp_path / "few")
        again = load(tmp_path / "few")
        np.testing.assert_array_equal(again.predict_proba(new), few.predict_proba(new))
        assert again.summary_ == few.summary_

    def test_what_cannot_be(self, regressor):
        few = regressor.compress(5)
        with pytest.raises(InvalidInputError, match="compressed"):
            few.partial_fit(X, y)
        with pytest.raises(InvalidInputError, match="compressed"):
            few.compress(3)
        with pytest.raises(InvalidInputError, match="n_support"):
            regressor.compress(0)
        changed = LSSVMRegressor("fast", **ONE).fit(X[:140], y[:140]).partial_fit(X[140:], y[140:])
        with pytest.raises(InvalidInputError, match="partial_fit or forget"):
            changed.compress(5)

    def test_many_rows(self):
        own = np.random.default_rng(0)
        A = own.uniform(-3, 3, (2600, 2))
        t = np.where(np.sin(A[:, 0]) * A[:, 1] > 0, "a", "b")
        model = LSSVMClassifier("fast", leaf_size=300, **ONE).fit(A[:2500], t[:2500])
        few = model.compress(60)
        assert few.score(A[2500:], t[2500:]) > model.score(A[2500:], t[2500:]) - 0.08

    @pytest.mark.parametrize(("n_classes", "n"), [(2, 1600), (2, 900), (3, 900)])  # 1,600: log-odds
    def test_outputs_of_many_rows_are_learned_as_log_odds(self, n_classes, n, monkeypatch):
        monkeypatch.setattr(compression, "_MANY", 800)
        own = np.random.default_rng(2)
        A = own.normal(size=(n + 1000, 3))
        value = 3.0 * np.sin(2.0 * A[:, 0]) + 2.0 * A[:, 1] * A[:, 2] + own.logistic(size=len(A))
        t = np.digitize(value, [0.0] if n_classes == 2 else [-1.0, 1.5])
        model = LSSVMClassifier("fast", **ONE).fit(A[:n], t[:n])
        few = model.compress(80)
        P = [one.predict_proba(A[n:]) for one in (few, model)]
        assert log_loss(t[n:], P[0]) < log_loss(t[n:], P[1]) + 0.03

    def test_the_width_follows_the_outputs_whatever_their_scale(self, classifier, monkeypatch):
        monkeypatch.setattr(compression, "_MANY", 10)
        fit, folds = classifier.record_, np.arange(len(X)) % 4
        teacher = compression.Teacher.of(fit)

        def chosen(scale):
            scaled, own = (
                replace(teacher, held_out=scale * teacher.held_out),
                np.random.default_rng(0),
            )
            return compression.choose_width(fit, scaled, 12, folds, own)

        assert chosen(0.05) == chosen(1.0) == chosen(20.0)


@pytest.mark.parametrize(("n", "signal"), [(50, 0.0), (50, 1.0), (110, 0.0)])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_score_is_what_new_rows_say(kind, signal, n):
    """Over small sets the score is unbiased within its standard error, and chance for noise."""
    gaps, said = [], []
    for seed in range(24):
        own = np.random.default_rng([seed, n])
        A = own.normal(size=(n + 600, 3))
        t = signal * np.sin(2 * A[:, 0]) + 0.7 * own.normal(size=len(A))
        if kind == "classes":
            t = np.where(t > 0, "a", "b")
        make = LSSVMClassifier if kind == "classes" else LSSVMRegressor
        model = make("fast", **ONE, random_state=seed).fit(A[:n], t[:n])
        said.append(model.best_score_)
        gaps.append(model.best_score_ - model.score(A[n:], t[n:]))
    assert abs(np.mean(gaps)) < 2.6 * np.std(gaps) / np.sqrt(24) + 0.01
    if not signal and kind == "classes":
        assert abs(np.mean(said) - 0.5) < 3 * np.std(said) / np.sqrt(24)


class TestEveryIngredientOff:
    """One kernel, one scale, no metric, one part: the dual models to the last digits."""

    @staticmethod
    def setting(model):
        (member,) = model.record_.members
        (leaf,) = member.local.leaves
        if isinstance(model, LSSVMRegressor):
            assert member.weight == 1.0 and not model.record_.offset.any()
        prepared = model.preparations_["standardised"].transform
        return {"C": leaf.setting.C, "gamma": leaf.setting.gamma}, prepared

    @pytest.mark.parametrize("kernel", ["rbf", "exponential", "laplacian"])
    def test_lssvr(self, kernel):
        model = LSSVMRegressor("fast", **{**ONE, "kernel": kernel}).fit(X, 3.0 * y + 7.0)
        setting, prepared = self.setting(model)
        plain = LSSVR(kernel=kernel, **setting).fit(prepared(X), 3.0 * y + 7.0)
        np.testing.assert_allclose(model.predict(new), plain.predict(prepared(new)), atol=1e-8)

    @pytest.mark.parametrize(
        "given", [np.array([3.0, 0.5, 0.0]), np.triu(np.ones((3, 3)))], ids=["diagonal", "full"]
    )
    def test_a_given_metric(self, given, tmp_path):
        model = LSSVMRegressor("fast", **{**ONE, "metric": given}).fit(X, y)
        setting, prepared = self.setting(model)
        plain = LSSVR(kernel=MetricKernel("rbf", given), **setting).fit(prepared(X), y)
        np.testing.assert_allclose(model.predict(new), plain.predict(prepared(new)), atol=1e-8)
        root = np.diag(given) if given.ndim == 1 else given
        np.testing.assert_allclose(model.metric_, root @ root.T)
        save(model, tmp_path / "model.lssvm")
        again = load(tmp_path / "model.lssvm")
        np.testing.assert_array_equal(again.predict(new), model.predict(new))

    @pytest.mark.parametrize("classes", [2, 3])
    def test_lssvc(self, classes):
        names = labels if classes == 3 else np.where(y > 0, "yes", "no")
        model = LSSVMClassifier("fast", **ONE).fit(X, names)
        setting, prepared = self.setting(model)
        some = model.classes_ if classes == 3 else model.classes_[1:]
        plain = [
            LSSVC(**setting).fit(prepared(X), names == one).decision_function(prepared(new))
            for one in some
        ]
        # Scaled and shifted to log-odds, by one scale for all classes.
        expected = model.record_.members[0].weight * np.transpose(plain) + model.record_.offset
        found = model.record_.outputs({"standardised": prepared(new)})
        np.testing.assert_allclose(found, expected, atol=1e-7)
        if classes == 2:
            np.testing.assert_array_equal(model.decision_function(new), found[:, 0])
        number = (expected[:, 0] > 0).astype(int) if classes == 2 else expected.argmax(axis=1)
        np.testing.assert_array_equal(model.predict(new), model.classes_[number])


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (np.ones(2), "class_weight=.* is not usable"),
        ("heavy", "class_weight='heavy' is not usable"),
        ({"x": 2.0}, "not among the classes"),
        ({"yes": "much"}, "not numbers"),
        ({"yes": -1.0}, "finite and >= 0"),
    ],
    ids=str,
)
def test_weights_of_classes_that_cannot_be_used(given, match):
    A = np.random.default_rng(0).normal(size=(40, 2))
    t = np.where(A[:, 0] > 0, "yes", "no")
    with pytest.raises(InvalidInputError, match=match):
        LSSVMClassifier("fast", class_weight=given).fit(A, t)
    model = LSSVMClassifier("fast", **ONE).fit(A, t)
    if not isinstance(given, str):
        with pytest.raises(InvalidInputError, match=match):
            model.set_params(class_weight=given).partial_fit(A[:3], t[:3])


@pytest.mark.parametrize("n", [480, 2600])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_fit_keeps_blas_on_one_thread(n, n_jobs):
    X = np.random.default_rng(0).normal(size=(n, 3))
    seen = []

    def look(event):
        if event["stage"] == "screening":
            seen.extend(b["num_threads"] for b in threadpool_info() if b["user_api"] == "blas")
            raise Stopped

    with threadpool_limits(2, "blas"), listening(look):
        LSSVMRegressor("fast", **{**ONE, "n_jobs": n_jobs}).fit(X, np.sin(X[:, 0]))
        after = {b["num_threads"] for b in threadpool_info() if b["user_api"] == "blas"}
    assert set(seen) == {1}
    assert after == {2}


@pytest.mark.parametrize("n", [12, 150])
def test_targets_that_do_not_vary(n):
    model = LSSVMRegressor("fast", n_jobs=1).fit(X[:n], np.full(n, 3.3))  # warnings are errors
    np.testing.assert_allclose(model.predict_interval(new[:5], 0.8), 3.3)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_few_rows_can_be_compressed(n):
    small = LSSVMRegressor("fast", **ONE).fit(X[:n], y[:n]).compress()
    assert np.isfinite(small.predict(new)).all()
    small = LSSVMClassifier("fast", **ONE).fit(X[:n], np.arange(n) % 2).compress()
    assert np.isfinite(small.predict_proba(new)).all()


def test_the_largest_numbers():
    ends = np.where(np.arange(120).reshape(40, 3) % 7 == 0, 1.7e308, -1.7e308)
    model = LSSVMClassifier("fast", n_jobs=1).fit(ends, np.arange(40) % 2)
    assert np.isfinite(model.decision_function(ends)).all()
    model = LSSVMRegressor("fast", **ONE).fit(X[:40], y[:40])
    far = np.vstack([np.full(3, 1e308), np.full(3, -1.7e308)])
    assert np.isfinite(model.predict(far)).all()


@pytest.mark.parametrize("kind", [LSSVMClassifier, LSSVMRegressor])
def test_targets_of_no_columns(kind):
    with pytest.raises(InvalidInputError, match=r"y has shape \(30, 0\)"):
        kind("fast", **ONE).fit(X[:30], np.empty((30, 0)))


def test_intervals_are_calibrated_within_the_time_limit(monkeypatch):
    from lssvm.fitting import table_scoring
    from lssvm.fitting.table_work import Clock

    asked = []

    class Late(Clock):
        def over(self, share):
            asked.append(share)
            return share == table_scoring._SPENT

    rows, values = rng.normal(size=(300, 2)), rng.normal(size=300)
    values *= 1.0 + 5.0 * (rows[:, 0] > 0)
    plain = LSSVMRegressor("fast", **ONE).fit(rows, values)
    monkeypatch.setattr("lssvm.estimators.table_fit.Clock", Late)
    late = LSSVMRegressor("fast", **ONE).fit(rows, values)
    assert plain.record_.calibrated.nearby > 0
    assert late.record_.calibrated.nearby == 0 and asked[-1] == table_scoring._SPENT


@pytest.mark.parametrize(("seconds", "scalings"), [(1.0, 2), (2.0, 1)])
def test_a_scaling_that_would_take_too_long_is_left_out(seconds, scalings, monkeypatch):
    from lssvm.estimators import table_fit
    from lssvm.fitting.table_work import Clock

    spent = [0.0]

    def slow(*given):
        spent[0] += seconds
        return fit_features(*given)

    monkeypatch.setattr(table_fit, "fit_features", slow)
    monkeypatch.setattr(table_fit, "Clock", lambda limit: Clock(limit, lambda: spent[0]))
    both = ONE | {"scaling": "auto"}
    model = LSSVMRegressor("fast", time_limit=10.0, **both).fit(X[:60], y[:60])
    assert len(model.record_.prepared) == scalings and spent[0] == scalings * seconds


def test_importances_of_many_features_look_at_fewer_rows(monkeypatch):
    from lssvm.fitting import table_record

    looked = []

    def counting(kernel, rows, *others, **options):
        looked.append(len(rows))
        return slopes(kernel, rows, *others, **options)

    slopes = table_record.mean_outer_product
    monkeypatch.setattr(table_record, "mean_outer_product", counting)
    fit = LSSVMRegressor("fast", **ONE).fit(X[:60], y[:60]).record_
    many, looked[:] = max(looked), []
    monkeypatch.setattr(table_record, "_PRODUCTS", 20 * fit.members[0].leaves()[0].basis.size)
    few = table_record.column_importances(fit)
    assert many == 60 and max(looked) == 20
    assert few.argmax() == 0 and few.sum() == pytest.approx(1.0)
    looked[:] = []
    assert table_record.column_importances(fit, share=0.02).argmax() == 0 and max(looked) == 12


@pytest.mark.parametrize("kind", [LSSVMClassifier, LSSVMRegressor])
def test_a_setting_that_makes_frames_of_features_changes_nothing(kind):
    pytest.importorskip("pandas")
    target = y[:60] if kind is LSSVMRegressor else y[:60] > 0
    plain = kind("fast", **ONE).fit(X[:60], target)
    with config_context(transform_output="pandas"):
        model = kind("fast", **ONE).fit(X[:60], target)
        np.testing.assert_array_equal(model.predict(X[:80]), plain.predict(X[:80]))
        for one in (plain, model):
            one.partial_fit(X[60:70], y[60:70] if kind is LSSVMRegressor else y[60:70] > 0)
        np.testing.assert_array_equal(model.predict(X[:80]), plain.predict(X[:80]))


@pytest.mark.filterwarnings("ignore::lssvm._core.errors.ColumnWarning")
def test_a_frame_is_read_and_learned_once_for_all_scalings(monkeypatch):
    pd = pytest.importorskip("pandas")
    from lssvm.data import preparation
    from lssvm.preparation import transformer

    texts, liking = reviews(240)
    own = np.random.default_rng(2)
    days = pd.date_range("2020-01-01", periods=240).strftime("%d.%m.%Y")
    towns = [f"town {i}" for i in own.integers(0, 60, 240)]
    frame = pd.DataFrame(
        {"remark": texts, "town": towns, "day": days, "pay": own.exponential(size=240)}
    )
    alone = {
        scaling: TablePreparation(target="numbers", numbers=scaling).fit_transform(frame, liking)
        for scaling in ("standardised", "quantiles")
    }
    calls = dict.fromkeys(("read_table", "learn_supervised_text", "_folds"), 0)

    def counted(module, name):
        function = getattr(module, name)

        def count(*given, **options):
            calls[name] += 1
            return function(*given, **options)

        monkeypatch.setattr(module, name, count)

    counted(transformer, "read_table")
    counted(preparation, "learn_supervised_text")
    counted(preparation, "_folds")
    known, tables = None, {}
    for scaling in alone:
        one = TablePreparation(target="numbers", numbers=scaling)
        tables[scaling], known = fit_features(one, frame, liking, None, None, known)
        np.testing.assert_array_equal(tables[scaling], alone[scaling])
    assert not np.array_equal(tables["standardised"], tables["quantiles"])
    once = dict(calls)
    assert once["read_table"] == once["_folds"] == 1 and once["learn_supervised_text"] > 0
    LSSVMRegressor("fast", kernel="rbf", n_jobs=1).fit(frame, liking)
    assert calls == {name: 2 * count for name, count in once.items()}


def test_importances_of_a_warp_are_slopes_along_the_columns():
    own = np.random.default_rng(1)
    rows = own.uniform(-1, 1, (1600, 3))
    target = 3 * np.tanh(6 * rows[:, 0]) + 1.4 * rows[:, 1] ** 3 + 0.05 * own.normal(size=1600)
    asked = {"kernel": "laplacian", "scaling": "standardised"}
    model = LSSVMRegressor("fast", n_jobs=1, **asked).fit(rows, target)
    assert model.configurations_["warped"][0]
    squares = np.empty(3)
    for j, step in enumerate(0.05 * rows.std(axis=0)):
        moved = step * np.eye(3)[j]
        change = model.predict(rows + moved) - model.predict(rows - moved)
        squares[j] = np.mean(change**2)
    expected = squares / squares.sum()
    np.testing.assert_allclose(model.feature_importances_, expected, atol=0.06)
    assert model.feature_importances_[2] < 0.01 < expected[1]


@pytest.mark.parametrize("metric", [None, "auto"])
def test_importances_of_the_laplacian_see_ties(metric):
    own = np.random.default_rng(1)
    two, four = own.integers(0, 2, 500), own.integers(0, 4, 500)
    rows = np.column_stack([two, four, own.normal(size=(500, 2))])
    target = rows @ [2.0, 1 / np.sqrt(1.25), 1.0, 0.0] + 0.1 * own.normal(size=500)
    asked = {"kernel": "laplacian", "scaling": "standardised", "metric": metric}
    model = LSSVMRegressor("fast", n_jobs=1, **asked).fit(rows, target)
    expected = np.array([1.0, 1.0, 1.0, 0.0]) / 3.0
    np.testing.assert_allclose(model.feature_importances_, expected, atol=0.1)


@pytest.mark.parametrize("late", [False, True])
def test_probabilities_are_made_of_some_rows_when_time_is_short(late, monkeypatch):
    from lssvm.fitting import table_scoring
    from lssvm.fitting.table_work import Clock

    class Late(Clock):
        def over(self, share):
            return late and share == table_scoring._SPENT

    monkeypatch.setattr("lssvm.estimators.table_fit.Clock", Late)
    monkeypatch.setattr(table_scoring, "_OUTPUTS", 30)
    model = LSSVMClassifier("fast", n_jobs=1).fit(X[:60], labels[:60])
    n_outputs = model.record_.state.held_out.size
    used = len(model.record_.calibrated.threshold)
    assert used == (60 if not late else -(-60 // -(-n_outputs // 30)))
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("options", "roles", "name"),
    [
        ({"kernel": None}, {}, "kernel"),
        ({"scaling": 3}, {}, "scaling"),
        ({"ordered": 3}, {}, "ordered"),
        ({}, {"sample_weight": ["a"] * 30}, "sample_weight"),
        ({}, {"groups": np.array([1, "a"] * 15, dtype=object)}, "groups"),
    ],
)
def test_options_and_roles_of_a_wrong_type_are_named(options, roles, name):
    X = np.random.default_rng(0).normal(size=(30, 1))
    with pytest.raises(InvalidInputError, match=name):
        LSSVMRegressor("fast", **options).fit(X, X[:, 0], **roles)


def test_no_levels_are_no_quantiles():
    X = np.random.default_rng(0).normal(size=(30, 1))
    with pytest.raises(InvalidInputError, match="q="):
        LSSVMRegressor("fast").fit(X, X[:, 0]).predict_quantile(X, [])


def test_threads_that_add_rows_lose_none(monkeypatch):
    model = LSSVMClassifier("fast", **ONE).fit(X[:100], labels[:100])
    n, transform = model.record_.members[0].model.n_basis, TablePreparation.transform

    def slow(self, rows):
        time.sleep(0.02)
        return transform(self, rows)

    monkeypatch.setattr(TablePreparation, "transform", slow)
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda i: model.partial_fit(X[i : i + 5], labels[i : i + 5]), range(100, 140, 5)
            )
        )
    assert model.record_.members[0].model.n_basis == n + 40
