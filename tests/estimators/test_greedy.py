"""`GreedyLSSVC` and `GreedyLSSVR`: the full machine, truncation, weights, codes, bad input."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from tests.oracles.dual import rbf
from tests.oracles.greedy import bordered_solve, leave_one_out

from lssvm import LSSVC, LSSVR, GreedyLSSVC, GreedyLSSVR
from lssvm._core.errors import ConvergenceWarning, InvalidInputError
from lssvm.backends.host import Host
from lssvm.codes import Coding
from lssvm.fitting.greedy import C_GRID, GreedyCalibrationData, GreedyState
from lssvm.kernels import Matern

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 3))
y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=150)
binary = np.where(y > 0, "yes", "no")
labels = np.digitize(y, [-0.6, 0.0, 0.6])
new = rng.normal(size=(40, 3))

RUNS = [
    {},
    {"candidates": 25},
    {"prefit": True},
    {"criterion": "kmp"},
    {"criterion": "sggp", "candidates": 25, "prefit": True},
]


class TestTheorem2:
    @pytest.mark.parametrize("options", [{}, {"candidates": 30}, {"prefit": True}])
    def test_epsilon_zero_is_the_full_classifier(self, options):
        for target, code in ((binary, "ova"), (labels, "ova"), (labels, "ovo")):
            full = LSSVC(C=5.0, gamma=0.5, multiclass=code).fit(X, target)
            greedy = GreedyLSSVC(C=5.0, gamma=0.5, epsilon=0.0, multiclass=code, **options)
            greedy.fit(X, target)
            np.testing.assert_allclose(
                greedy.decision_function(new), full.decision_function(new), atol=1e-6
            )
            np.testing.assert_allclose(greedy.dual_coef_, full.dual_coef_, atol=1e-6)
            assert greedy.support_.tolist() == list(range(150))

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_epsilon_zero_is_the_full_regressor(self, fit_intercept):
        Y, weight = np.column_stack([y, X[:, 1] + 30.0]), rng.uniform(0.2, 3.0, 150)
        options = {"C": 5.0, "gamma": 0.5, "fit_intercept": fit_intercept}
        full = LSSVR(**options).fit(X, Y, weight)
        greedy = GreedyLSSVR(epsilon=0.0, **options).fit(X, Y, weight)
        np.testing.assert_allclose(greedy.predict(new), full.predict(new), atol=1e-6)


class TestModel:
    @pytest.mark.parametrize("options", RUNS)
    def test_attributes(self, options):
        model = GreedyLSSVC(C=5.0, max_support=30, **options).fit(X, labels)
        assert model.dual_coef_.shape == (len(model.support_), 4)
        np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
        assert model.n_iter_ == max(len(path.support) for path in model.paths_) <= 30
        for j, path in enumerate(model.paths_):
            assert np.all(np.diff(path.objective) <= 1e-12)
            used = np.flatnonzero(model.dual_coef_[:, j])
            assert set(model.support_[used]) <= set(path.support.tolist())
        raw = rbf(new, model.support_vectors_, model.gamma_) @ model.dual_coef_ + model.intercept_
        assert np.mean(model.classes_[raw.argmax(axis=1)] == model.predict(new)) == 1.0
        assert model.score(X, labels) > 0.6

    def test_it_is_the_machine_of_its_support(self):
        model = GreedyLSSVR(C=5.0, gamma=0.5, epsilon=0.2).fit(X, y)
        small = LSSVR(C=5.0, gamma=0.5).fit(X[model.support_], y[model.support_])
        assert 5 < len(model.support_) < 120 and model.paths_[0].status == "epsilon"
        np.testing.assert_allclose(model.predict(new), small.predict(new), atol=1e-8)
        rest = np.setdiff1d(np.arange(150), model.support_)
        assert np.abs(model.predict(X[rest]) - y[rest]).max() <= 0.2

    def test_a_shift_of_the_targets_moves_the_bias(self):
        one, two = (GreedyLSSVR(C=5.0, epsilon=0.2).fit(X, y + shift) for shift in (0.0, 50.0))
        assert one.support_.tolist() == two.support_.tolist()
        np.testing.assert_allclose(one.predict(new) + 50.0, two.predict(new), atol=1e-9)

    def test_more_epsilon_is_sparser(self):
        sizes = [len(GreedyLSSVC(5.0, epsilon=e).fit(X, binary).support_) for e in (0.3, 0.6, 0.9)]
        assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[2]

    def test_order_of_the_rows_does_not_matter(self):
        order = rng.permutation(150)
        for options in ({}, {"candidates": 20}, {"validation_fraction": 0.3}):
            one = GreedyLSSVR(5.0, random_state=1, **options).fit(X, y)
            two = GreedyLSSVR(5.0, random_state=1, **options).fit(X[order], y[order])
            np.testing.assert_allclose(one.predict(new), two.predict(new), atol=1e-9)

    @pytest.mark.parametrize("options", RUNS)
    def test_a_weight_of_two_is_the_row_twice(self, options):
        times = rng.integers(0, 4, 150)
        model = GreedyLSSVR(5.0, epsilon=0.2, gamma=0.5, max_support=40, **options)
        one = clone(model).fit(X, y, sample_weight=times)
        two = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
        np.testing.assert_allclose(one.predict(new), two.predict(new), atol=1e-8)

    def test_held_out_rows(self):
        noisy = y + 0.5 * rng.normal(size=150)
        model = GreedyLSSVR(50.0, epsilon=0.0, validation_fraction=0.3, random_state=0)
        model.fit(X, noisy)
        path = model.paths_[0]
        assert len(model.support_) < 105 and path.held_out[-1] == path.held_out.min()

    def test_class_weight(self):
        plain = GreedyLSSVC(1.0, epsilon=0.0).fit(X, binary)
        heavy = GreedyLSSVC(1.0, epsilon=0.0, class_weight={"yes": 9.0}).fit(X, binary)
        same = GreedyLSSVC(1.0, epsilon=0.0).fit(X, binary, np.where(binary == "yes", 9.0, 1.0))
        assert heavy.decision_function(new).mean() > plain.decision_function(new).mean()
        np.testing.assert_allclose(heavy.decision_function(new), same.decision_function(new))


class TestInput:
    def test_frames_sparse_and_precomputed(self):
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        want = GreedyLSSVC(5.0, gamma=0.5).fit(X, labels)
        got = GreedyLSSVC(5.0, gamma=0.5).fit(frame, pd.Series(labels))
        assert list(got.feature_names_in_) == ["a", "b", "c"]
        np.testing.assert_array_equal(got.predict(frame), want.predict(X))
        thin = GreedyLSSVC(5.0, gamma=0.5).fit(sparse.csr_matrix(X), labels)
        np.testing.assert_allclose(
            thin.decision_function(sparse.csr_matrix(new)), want.decision_function(new), atol=1e-8
        )
        K = GreedyLSSVR(5.0, kernel="precomputed", epsilon=0.2).fit(rbf(X, X, 0.5), y)
        direct = GreedyLSSVR(5.0, gamma=0.5, epsilon=0.2).fit(X, y)
        np.testing.assert_allclose(K.predict(rbf(new, X, 0.5)), direct.predict(new), atol=1e-8)
        np.testing.assert_allclose(
            K.truncate(9).predict(rbf(new, X, 0.5)), direct.truncate(9).predict(new), atol=1e-8
        )

    def test_precomputed_with_rows_of_no_weight(self):
        weight = rng.integers(0, 3, 150).astype(float)
        K = GreedyLSSVR(5.0, kernel="precomputed", epsilon=0.2).fit(rbf(X, X, 0.5), y, weight)
        direct = GreedyLSSVR(5.0, gamma=0.5, epsilon=0.2).fit(X, y, weight)
        assert np.all(weight[K.support_] > 0)
        for one, two in ((K, direct), (K.truncate(5), direct.truncate(5))):
            np.testing.assert_allclose(one.predict(rbf(new, X, 0.5)), two.predict(new), atol=1e-8)

    def test_targets_within_epsilon_need_no_basis(self):
        model = GreedyLSSVR(epsilon=5.0).fit(X, y + 7.0)
        np.testing.assert_allclose(model.predict(new), np.mean(y) + 7.0)
        assert not model.dual_coef_.any() and model.paths_[0].status == "epsilon"
        np.testing.assert_allclose(model.truncate(3).predict(new), model.predict(new))

    def test_float32_stays(self):
        model = GreedyLSSVR(5.0, gamma=0.5, epsilon=0.2).fit(X.astype(np.float32), y)
        double = GreedyLSSVR(5.0, gamma=0.5, epsilon=0.2).fit(X, y)
        assert model.predict(new.astype(np.float32)).dtype == np.float32
        assert np.abs(model.predict(new.astype(np.float32)) - double.predict(new)).mean() < 0.05

    def test_a_kernel_without_gamma_takes_that_of_the_model(self):
        model = GreedyLSSVR(5.0, kernel=Matern(nu=2.5), gamma=0.5, epsilon=0.2).fit(X, y)
        whole = GreedyLSSVR(5.0, kernel=Matern(0.5, nu=2.5), epsilon=0.2).fit(X, y)
        np.testing.assert_array_equal(model.predict(new), whole.predict(new))
        assert model.gamma_ == 0.5 and whole.gamma_ is None

    def test_pickles_and_searches(self):
        model = GreedyLSSVC(5.0, candidates=20).fit(X, labels)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(new), model.predict(new))
        search = GridSearchCV(GreedyLSSVC(), {"gamma": [0.01, 0.5], "C": [1.0, 10.0]}, cv=3)
        assert search.fit(X, binary).best_params_["gamma"] == 0.5

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"C": -1.0}, "C=-1.0"),
            ({"C": "loo"}, "'cv'"),
            ({"gamma": "ard"}, "ard"),
            ({"gamma": "ard"}, "gamma='ard' is not available here"),
            ({"gamma": "wide"}, "gamma='wide' is not available here: .*'cv' or an array"),
            ({"gamma": -2.0}, "gamma"),
            ({"kernel": "cubic"}, "kernel='cubic'"),
            ({"epsilon": -0.5}, "epsilon"),
            ({"criterion": "omp"}, "criterion"),
            ({"candidates": 0}, "candidates"),
            ({"max_support": 0}, "max_support"),
            ({"validation_fraction": 1.5}, "validation_fraction"),
            ({"validation_fraction": True}, "validation_fraction=True"),
            ({"validation_fraction": 1e-9}, "leaves none"),
            ({"memory_budget": "lots"}, "memory_budget"),
        ],
    )
    def test_bad_parameters(self, options, match):
        for model, target in ((GreedyLSSVC(**options), binary), (GreedyLSSVR(**options), y)):
            with pytest.raises(InvalidInputError, match=match):
                model.fit(X, target)

    def test_bad_data(self):
        with pytest.raises(InvalidInputError, match="2 classes"):
            GreedyLSSVC().fit(X, np.ones(150))
        with pytest.raises(InvalidInputError, match="whole class"):
            GreedyLSSVC(class_weight={"yes": 0.0}).fit(X, binary)
        with pytest.raises(InvalidInputError, match="negative"):
            GreedyLSSVR().fit(X, y, -np.ones(150))
        with pytest.raises(InvalidInputError, match="square"):
            GreedyLSSVR(kernel="precomputed").fit(X, y)
        with pytest.raises(InvalidInputError, match="below 1"):
            GreedyLSSVC(epsilon=1.0).fit(X, binary)
        with pytest.raises(InvalidInputError, match="decoding"):
            GreedyLSSVC(multiclass=Coding(decoding="votes")).fit(X, labels)

    def test_memory_warns(self):
        with pytest.warns(ConvergenceWarning, match="memory_budget"):
            model = GreedyLSSVR(5.0, epsilon=0.0, memory_budget=8 * 150 * 30).fit(X, y)
        assert len(model.support_) == 12

    def test_verbose_reports(self, capsys):
        for options in RUNS:
            GreedyLSSVR(verbose=2, max_support=12, epsilon=0.0, **options).fit(X, y)
            assert "problem 1, " in capsys.readouterr().err
        GreedyLSSVR().fit(X, y)
        assert capsys.readouterr().err == ""


class TestTruncate:
    @pytest.mark.parametrize("options", RUNS)
    def test_equals_a_shorter_run(self, options):
        long = GreedyLSSVC(5.0, epsilon=0.2, random_state=3, max_support=60, **options)
        long.fit(X, labels)
        before = long.decision_function(new)
        for size in (1, 7, 20):
            short = clone(long).set_params(max_support=size).fit(X, labels)
            cut = long.truncate(size)
            np.testing.assert_allclose(
                cut.decision_function(new), short.decision_function(new), atol=1e-8
            )
            assert cut.support_.tolist() == short.support_.tolist() and cut.n_iter_ == size
            np.testing.assert_allclose(cut.paths_[1].objective, short.paths_[1].objective)
            again = cut.truncate(max(1, size // 2))
            assert len(again.paths_[0].support) == max(1, size // 2)
        np.testing.assert_array_equal(long.decision_function(new), before)

    def test_more_than_there_is(self):
        model = GreedyLSSVR(5.0).fit(X, y)
        np.testing.assert_array_equal(model.truncate(10**6).predict(new), model.predict(new))
        with pytest.raises(InvalidInputError, match="n=0"):
            model.truncate(0)


class TestRecord:
    def test_attributes_are_those_of_the_record(self):
        model = GreedyLSSVC("cv", gamma=0.5, max_support=12).fit(X, labels)
        fit = model.record_
        assert isinstance(fit.state, GreedyState) and isinstance(
            fit.calibration, GreedyCalibrationData
        )
        assert model.dual_coef_ is fit.expansion.coef and model.support_ is fit.state.support
        assert list(fit.state.paths) == model.paths_
        table = fit.calibration.held_out
        assert table.scores.shape == (150, 4) and table.labels.tolist() == labels.tolist()
        clone(model)  # parameters are as they were given
        model.set_params(C=1.0).fit(X, binary)
        assert not hasattr(model, "cv_results_") and not hasattr(model, "best_score_")

    def test_smaller_forms_predict_and_cannot_be_truncated(self):
        model = GreedyLSSVC("cv", gamma=0.5, max_support=12).fit(X, labels)
        for form in ("support", "prediction"):
            small = model.record_.stripped(form)
            assert small.calibration.held_out is None and small.state.paths == ()
            published = small.state.published(small)
            assert published["n_iter_"] == 12 and published["best_score_"] == model.best_score_
            assert "paths_" not in published and "cv_results_" not in published
            rows = {"none": new}
            np.testing.assert_array_equal(small.outputs(rows), model.record_.outputs(rows))
            cut = clone(model)
            cut.n_features_in_ = 3
            cut._publish(small)
            np.testing.assert_array_equal(cut.predict(new), model.predict(new))
            with pytest.raises(InvalidInputError, match=f"keep={form!r}"):
                cut.truncate(3)
        assert model.record_.stripped("all") is model.record_

    def test_a_greedy_model_has_no_error_bars(self):
        model = GreedyLSSVR(5.0).fit(X, y)
        assert not hasattr(model, "predict_interval") and not hasattr(model, "noise_variance_")
        for ask in (
            model.record_.calibration.posteriors,
            model.record_.calibration.residuals,
        ):
            with pytest.raises(InvalidInputError, match="no error bars"):
                ask(model.record_, Host(2**30, 1))

    def test_a_fit_that_fails_leaves_no_model(self):
        model = GreedyLSSVC().fit(X, labels)
        with pytest.raises(InvalidInputError, match="2 classes"):
            model.fit(X, np.ones(150))
        assert not hasattr(model, "record_") and not hasattr(model, "support_")

    def test_probabilities_need_what_was_left_out(self):
        bare = GreedyLSSVC(5.0, multiclass=Coding(calibration=None)).fit(X, labels)
        assert not hasattr(bare, "predict_proba")
        with pytest.raises(InvalidInputError, match="calibration=None"):
            bare.set_params(multiclass=Coding(calibration="auto")).predict_proba(new)


class TestChoiceOfC:
    def test_leave_one_out_equals_refits(self):
        model = GreedyLSSVR("cv", gamma=0.5, epsilon=0.3).fit(X, y)
        P = model.paths_[0].support
        K, centred = rbf(X, X, 0.5), y - y.mean()
        scores = [
            -np.mean((leave_one_out(K, centred, np.full(150, 1 / C), P) - centred) ** 2)
            for C in C_GRID
        ]
        np.testing.assert_allclose(model.cv_results_["mean_test_score"], scores, atol=1e-9)
        assert model.C_ == C_GRID[np.argmax(scores)] and model.best_score_ == max(
            model.cv_results_["mean_test_score"]
        )
        b, alpha, _ = bordered_solve(K, centred, np.full(150, 1 / model.C_), P)
        expected = rbf(new, X[P], 0.5) @ alpha + b + y.mean()
        np.testing.assert_allclose(model.predict(new), expected, atol=1e-8)

    @pytest.mark.parametrize("criterion", ["kmp", "sggp"])
    @pytest.mark.parametrize("bias", [True, False])
    def test_ridge_leave_one_out_equals_refits(self, criterion, bias):
        weight = rng.uniform(0.5, 2.0, 150)
        options = {"gamma": 0.5, "criterion": criterion, "max_support": 10, "epsilon": 0.0}
        model = GreedyLSSVR("cv", fit_intercept=bias, **options).fit(X, y, weight)
        P, K = model.paths_[0].support, rbf(X, X, 0.5)
        D = np.eye(10) if criterion == "kmp" else K[np.ix_(P, P)]

        def refit(rows, C):
            s, Phi = weight[rows], K[np.ix_(rows, P)]
            Phi = np.column_stack([Phi, np.ones(len(rows))]) if bias else Phi
            penalty = np.zeros((Phi.shape[1],) * 2)
            penalty[:10, :10] = D / C
            return np.linalg.solve(Phi.T @ (s[:, None] * Phi) + penalty, Phi.T @ (s * y[rows]))

        def predict(i, w):
            return K[i, P] @ w[:10] + (w[10] if bias else 0.0)

        C = C_GRID[8]
        errors = [
            (predict(i, refit(np.delete(np.arange(150), i), C)) - y[i]) ** 2 for i in range(150)
        ]
        want = -np.average(errors, weights=weight)
        assert model.cv_results_["mean_test_score"][8] == pytest.approx(want, abs=1e-7)
        w = refit(np.arange(150), model.C_)
        expected = rbf(new, X[P], 0.5) @ w[:10] + (w[10] if bias else 0.0)
        np.testing.assert_allclose(model.predict(new), expected, atol=1e-5)
        short = GreedyLSSVR(model.C_, fit_intercept=bias, **options)
        assert len(model.truncate(4).support_) == 4 == len(short.fit(X, y).truncate(4).support_)

    @pytest.mark.parametrize("code", ["ova", "ovo"])
    def test_classes(self, code):
        model = GreedyLSSVC("cv", gamma=0.5, multiclass=code).fit(X, labels)
        assert model.C_ in C_GRID and 0.5 < model.best_score_ <= 1.0
        assert model.best_score_ == model.cv_results_["mean_test_score"].max()
        assert model.score(X, labels) >= model.best_score_


class TestGroups:
    """Rows of a group are left out together."""

    batch = np.arange(150) // 3
    splits = tuple(GroupKFold(5).split(X, y, batch))

    def outside(self, target, C, gamma=0.5):
        """Return what models of the other folds say, their bases chosen at C = 8."""
        out = np.empty(150)
        for train, test in self.splits:
            chosen = GreedyLSSVR(C=8.0, gamma=gamma, epsilon=0.2).fit(X[train], target[train])
            rows = train[chosen.support_]
            small = LSSVR(C=C, gamma=gamma).fit(X[rows], target[rows])
            out[test] = small.predict(X[test])
        return out

    def test_C_is_that_of_the_folds(self):
        model = GreedyLSSVR(C="cv", gamma=0.5, epsilon=0.2, cv=GroupKFold(5))
        model.fit(X, y, groups=self.batch)
        errors = [np.mean((self.outside(y, C) - y) ** 2) for C in C_GRID]
        np.testing.assert_allclose(-model.cv_results_["mean_test_score"], errors, rtol=1e-6)
        assert model.C_ == C_GRID[int(np.argmin(errors))]
        assert model.best_score_ == pytest.approx(-min(errors))

    def test_probabilities_come_from_the_other_groups(self):
        model = GreedyLSSVC(C=8.0, gamma=0.5, epsilon=0.2, cv=GroupKFold(5))
        model.fit(X, binary, groups=self.batch)
        told = np.sort(model.record_.calibration.held_out.scores[:, 0])  # in any order
        signs = np.where(binary == "yes", 1.0, -1.0)
        np.testing.assert_allclose(told, np.sort(self.outside(signs, 8.0)), atol=1e-6)
        alone = np.sort(clone(model).fit(X, binary).record_.calibration.held_out.scores[:, 0])
        assert np.abs(told - alone).max() > 0.01

    def test_copies_in_a_group_do_not_help(self):
        truth = np.random.default_rng(1).choice([-1.0, 1.0], 50)[self.batch]  # nothing to learn
        place = X[3 * self.batch] + 0.01 * X
        honest = GreedyLSSVC(C="cv", gamma="cv", epsilon=0.5, cv=5)
        honest.fit(place, truth, groups=self.batch)
        fooled = clone(honest).fit(place, truth)
        assert honest.best_score_ < 0.8 < 0.99 < fooled.best_score_


def test_no_warnings_in_plain_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in RUNS:
            model = GreedyLSSVC(max_support=20, **options).fit(X, labels)
            assert len(model.predict(new)) == 40
