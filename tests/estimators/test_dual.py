"""`LSSVC` and `LSSVR`: exactness, weights, codes, tuning, reductions, bad input."""

import warnings
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_val_score
from tests.oracles.dual import kkt_classification, kkt_regression, rbf
from tests.oracles.pruning import prune_loop

from lssvm import LSSVC, LSSVR, GreedyLSSVC, GreedyLSSVR, scan
from lssvm._core.errors import MemoryBudgetError
from lssvm.codes import Coding
from lssvm.datasets import load_ripley
from lssvm.kernels import RBF
from lssvm.reductions import L0, Prune
from lssvm.solvers import SMO, ConjugateGradient
from lssvm.tuning import GridSearch, PathSearch

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3))
y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=90)
binary = np.where(y > 0, "yes", "no")
labels = np.digitize(y, [-0.6, 0.0, 0.6])
new = rng.normal(size=(25, 3))


def outputs(model):
    """Return the outputs of all binary problems for new rows, from the record."""
    return model.record_.outputs({"none": new})


TIGHT = {"cg": ConjugateGradient(tol=1e-9, preconditioner="nystrom"), "smo": SMO(tol=1e-9)}


class TestExactness:
    def test_classifier_solves_3_5(self):
        model = LSSVC(C=7.0, gamma=0.4).fit(X, binary)
        signs = np.where(binary == "yes", 1.0, -1.0)
        alpha, b = kkt_classification(rbf(X, X, 0.4), signs, 7.0)
        np.testing.assert_allclose(model.dual_coef_[:, 0], alpha * signs, atol=1e-8)
        np.testing.assert_allclose(model.intercept_, b, atol=1e-8)
        np.testing.assert_allclose(
            model.decision_function(new), rbf(new, X, 0.4) @ (alpha * signs) + b, atol=1e-8
        )

    @pytest.mark.parametrize("solver", ["auto", "cholesky", "cg", "smo"])
    def test_regressor_solves_3_32(self, solver):
        model = LSSVR(C=7.0, gamma=0.4, solver=TIGHT.get(solver, solver)).fit(X, y)
        alpha, b = kkt_regression(rbf(X, X, 0.4), y, 7.0)
        np.testing.assert_allclose(model.dual_coef_[:, 0], alpha, atol=1e-6)
        np.testing.assert_allclose(model.predict(new), rbf(new, X, 0.4) @ alpha + b, atol=1e-6)
        assert model.solver_ == ("cholesky" if solver == "auto" else solver)
        assert model.residual_ < 1e-8 and model.n_iter_ >= 1

    def test_several_outputs_are_columns(self):
        Y = np.column_stack([y, X[:, 1]])
        both = LSSVR(C=3.0).fit(X, Y)
        for j in range(2):
            one = LSSVR(C=3.0).fit(X, Y[:, j])
            np.testing.assert_allclose(both.predict(new)[:, j], one.predict(new), atol=1e-10)

    def test_shift_of_the_targets_moves_only_the_bias(self):
        one, two = LSSVR(C=3.0).fit(X, y), LSSVR(C=3.0).fit(X, y + 100.0)
        np.testing.assert_allclose(one.dual_coef_, two.dual_coef_, atol=1e-9)
        np.testing.assert_allclose(two.intercept_ - one.intercept_, 100.0)

    @pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "matern"])
    def test_sparse_input(self, kernel):
        thin = np.where(np.abs(X) > 0.8, X, 0.0)
        dense = LSSVC(kernel=kernel).fit(thin, labels)
        lean = LSSVC(kernel=kernel).fit(sparse.csr_matrix(thin), labels)
        np.testing.assert_allclose(
            dense.decision_function(new), lean.decision_function(sparse.csr_matrix(new)), atol=1e-7
        )

    def test_precomputed_and_callable(self):
        plain = LSSVC(C=2.0, gamma=0.4).fit(X, labels)
        given = LSSVC(C=2.0, kernel="precomputed").fit(rbf(X, X, 0.4), labels)
        called = LSSVC(C=2.0, kernel=lambda A, B: rbf(A, B, 0.4)).fit(X, labels)
        wanted = plain.decision_function(new)
        np.testing.assert_allclose(given.decision_function(rbf(new, X, 0.4)), wanted, atol=1e-8)
        np.testing.assert_allclose(called.decision_function(new), wanted, atol=1e-8)
        made = LSSVC(C=2.0, kernel=RBF(0.4)).fit(X, labels)
        np.testing.assert_allclose(made.decision_function(new), wanted, atol=1e-8)

    def test_float32(self):
        model = LSSVC().fit(X.astype(np.float32), labels)
        assert model.dual_coef_.dtype == np.float32
        assert (
            np.mean(model.predict(X.astype(np.float32)) == LSSVC().fit(X, labels).predict(X)) > 0.98
        )

    def test_ard(self):
        gamma = np.array([1.0, 0.0, 0.0])
        model = LSSVR(C=100.0, gamma=gamma).fit(X, y)
        moved = new + np.array([0.0, 5.0, -3.0])
        np.testing.assert_allclose(model.predict(new), model.predict(moved), atol=1e-9)


class TestWeights:
    counts = rng.integers(0, 4, size=90)

    @pytest.mark.parametrize(
        "model",
        [
            LSSVC(C=2.0),
            LSSVC(C="cv", gamma="cv", cv=4, multiclass="ova"),
            LSSVC(C="cv", cv="loo"),
            LSSVC(class_weight="balanced", multiclass=Coding(targets="fisher")),
            LSSVC(kernel="linear", reduction="l0", C=5.0),
            LSSVC(multiclass="ova", solver=ConjugateGradient(preconditioner="nystrom", tol=1e-10)),
        ],
        ids=repr,
    )
    def test_weights_are_repetitions(self, model):
        weighted = model.fit(X, labels, self.counts).decision_function(new)
        repeated = np.repeat(np.arange(90), self.counts)
        again = model.fit(X[repeated], labels[repeated]).decision_function(new)
        np.testing.assert_allclose(weighted, again, atol=1e-6)

    def test_zero_weight_removes_the_row(self):
        weight = (np.arange(90) % 3 > 0).astype(float)
        model = LSSVR().fit(X, y, weight)
        np.testing.assert_array_equal(model.support_, np.flatnonzero(weight))
        np.testing.assert_allclose(
            model.predict(new), LSSVR().fit(X[weight > 0], y[weight > 0]).predict(new), atol=1e-10
        )

    def test_zero_weight_in_a_precomputed_kernel(self):
        K, weight = rbf(X, X, 0.4), (np.arange(90) % 3 > 0).astype(float)
        model = LSSVR(kernel="precomputed").fit(K, y, weight)
        wanted = LSSVR(gamma=0.4).fit(X[weight > 0], y[weight > 0]).predict(new)
        np.testing.assert_allclose(model.predict(rbf(new, X, 0.4)), wanted, atol=1e-9)

    def test_class_weight_is_sample_weight(self):
        by_class = LSSVC(class_weight={"yes": 3.0}).fit(X, binary)
        by_row = LSSVC().fit(X, binary, np.where(binary == "yes", 3.0, 1.0))
        np.testing.assert_allclose(by_class.dual_coef_, by_row.dual_coef_, atol=1e-12)


class TestTargets:
    def test_fisher_and_general_targets(self):
        n1, n2 = np.sum(binary == "yes"), np.sum(binary == "no")
        fisher = LSSVC(multiclass=Coding(targets="fisher")).fit(X, binary)
        pair = LSSVC(multiclass=Coding(targets=(90 / n1, 90 / n2))).fit(X, binary)
        values = np.where(binary == "yes", 90 / n1, -90 / n2)
        regression = LSSVR().fit(X, values)
        np.testing.assert_allclose(fisher.dual_coef_, regression.dual_coef_, atol=1e-10)
        np.testing.assert_allclose(fisher.dual_coef_, pair.dual_coef_, atol=1e-12)


class TestCodes:
    @pytest.mark.parametrize("multiclass", ["auto", "ovo", "ova", "moc", "ecoc"])
    @pytest.mark.parametrize("per_output", [False, True])
    def test_every_code_learns(self, multiclass, per_output):
        search = PathSearch(per_output=per_output)
        model = LSSVC("cv", gamma="cv", multiclass=multiclass, search=search, cv=5)
        model.fit(X, labels)
        k = model.code_.n_problems
        assert model.score(X, labels) > 0.8 and model.dual_coef_.shape[1] == k
        scores = model.decision_function(new)
        assert scores.shape == (25, 4)
        np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(new))
        if per_output:
            assert np.shape(model.C_) == (k,) and np.shape(model.gamma_) == (k,)
            assert len(model.cv_results_) == k

    def test_separate_parameters_solve_each_problem_with_its_own(self):
        model = LSSVC(
            "cv", gamma="cv", multiclass="ova", search=PathSearch(per_output=True), cv=5
        ).fit(X, labels)
        for j in range(4):
            one = LSSVC(model.C_[j], gamma=model.gamma_[j]).fit(X, labels == j)
            np.testing.assert_allclose(outputs(model)[:, j], one.decision_function(new), atol=1e-8)

    def test_one_vs_one_trains_on_pairs(self):
        model = LSSVC(C=3.0, gamma=0.4, multiclass="ovo").fit(X, labels)
        first = np.isin(labels, [0, 1])
        pair = LSSVC(C=3.0, gamma=0.4).fit(X[first], labels[first])
        np.testing.assert_allclose(
            np.abs(outputs(model)[:, 0]), np.abs(pair.decision_function(new)), atol=1e-9
        )

    def test_given_code(self):
        code = np.array([[1, 1, -1], [1, -1, 1], [-1, 1, 1], [-1, -1, -1]])
        assert LSSVC(multiclass=code).fit(X, labels).score(X, labels) > 0.6

    @pytest.mark.parametrize("decoding", ["hamming", "loss"])
    def test_decodings(self, decoding):
        model = LSSVC(multiclass=Coding("ecoc", decoding=decoding), C=10.0).fit(X, labels)
        assert model.score(X, labels) > 0.7


class TestTuning:
    @pytest.mark.parametrize("cv", [5, "loo", StratifiedKFold(4)], ids=["5", "loo", "splitter"])
    @pytest.mark.parametrize("search", ["path", "grid", "shrinking"])
    def test_tuned_beats_the_default(self, cv, search):
        model = LSSVC("cv", gamma="cv", cv=cv, search=search).fit(X, binary)
        assert model.score(X, binary) > 0.85
        results = model.cv_results_
        chosen = int(np.argmin(results["rank_test_score"]))
        assert results["param_C"][chosen] == model.C_
        best = results["mean_test_score"].max()
        band = 0.5 * np.sqrt(best * (1 - best) / 90)
        assert results["mean_test_score"][chosen] == pytest.approx(model.best_score_)
        tied = results["mean_test_score"] >= best - band - 1e-12
        assert results["mean_tie_score"][chosen] == results["mean_tie_score"][tied].max()

    def test_annealing(self):
        model = LSSVR("cv", gamma="cv", cv=5, search="csa", random_state=1).fit(X, y)
        other = LSSVR("cv", gamma="cv", cv=5, search="path", random_state=1).fit(X, y)
        assert model.best_score_ == pytest.approx(other.best_score_, rel=0.02)

    def test_best_score_is_the_cross_validated_accuracy(self):
        folds = StratifiedKFold(5)
        model = LSSVC("cv", gamma="cv", cv=folds).fit(X, labels)
        fixed = LSSVC(model.C_, gamma=model.gamma_)
        predicted = cross_val_predict(fixed, X, labels, cv=folds)
        assert model.best_score_ == pytest.approx(np.mean(predicted == labels))

    @pytest.mark.parametrize(
        "scoring", ["roc_auc", "balanced_accuracy", make_scorer(balanced_accuracy_score)]
    )
    def test_any_scorer(self, scoring):
        folds = StratifiedKFold(4)
        grid = GridSearch([0.1, 10.0], [0.1, 1.0])
        model = LSSVC("cv", gamma="cv", cv=folds, scoring=scoring, search=grid).fit(X, binary)
        fixed = LSSVC(model.C_, gamma=model.gamma_)
        score = cross_val_score(fixed, X, binary, cv=folds, scoring=scoring).mean()
        assert model.best_score_ == pytest.approx(score, abs=1e-9)

    def test_only_one_parameter(self):
        assert LSSVR("cv", gamma=0.3).fit(X, y).gamma_ == 0.3
        assert LSSVR(2.0, gamma="cv").fit(X, y).C_ == 2.0
        assert LSSVR("cv", kernel="linear", gamma="cv").fit(X, y).gamma_ is None

    def test_same_seed_same_model(self):
        one, two = (LSSVC("cv", gamma="cv", random_state=3).fit(X, labels) for _ in range(2))
        assert one.C_ == two.C_ and np.array_equal(one.dual_coef_, two.dual_coef_)

    def test_precomputed(self):
        model = LSSVR("cv", kernel="precomputed", cv="loo").fit(rbf(X, X, 0.4), y)
        assert model.C_ == pytest.approx(LSSVR("cv", gamma=0.4, cv="loo").fit(X, y).C_, rel=0.3)

    def test_verbose_reports(self, capsys):
        LSSVR("cv", gamma="cv", verbose=1).fit(X, y)
        assert "best score" in capsys.readouterr().err

    def test_ripley(self):
        data = load_ripley()
        model = LSSVC("cv", gamma="cv").fit(data.data[data.train], data.target[data.train])
        assert model.score(data.data[data.test], data.target[data.test]) > 0.9


class TestReductions:
    def test_prune_drops_rows_and_keeps_the_accuracy(self):
        full = LSSVC("cv", gamma="cv").fit(X, binary)
        small = LSSVC("cv", gamma="cv", reduction="prune").fit(X, binary)
        assert len(small.support_) < 80
        assert small.score(X, binary) > full.score(X, binary) - 0.06
        steps = small.reduction_path_[0].steps
        assert steps[0].n_rows == 90 and all(a.n_rows > b.n_rows for a, b in pairwise(steps))

    def test_prune_level_and_retuning(self):
        strict = LSSVC("cv", gamma="cv", reduction=Prune(level=0.2)).fit(X, binary)
        loose = LSSVC("cv", gamma="cv", reduction=Prune(level=0.01)).fit(X, binary)
        retuned = LSSVC("cv", gamma="cv", reduction=Prune(level=0.2, retune=True)).fit(X, binary)
        assert len(loose.support_) <= len(strict.support_)
        assert len(retuned.support_) <= len(strict.support_)
        with pytest.raises(ValueError, match="something to tune"):
            LSSVC(reduction=Prune(retune=True)).fit(X, binary)

    @pytest.mark.parametrize("by", ["size", "sign"])
    @pytest.mark.parametrize("against", ["full", "previous"])
    def test_pruning_is_the_loop_of_section_3_7_by_refits(self, against, by):
        settings = Prune(step=0.1, level=0.2, against=against, by=by)
        cv = StratifiedKFold(5, shuffle=True, random_state=1)
        signs = np.where(binary == "yes", 1.0, -1.0)
        model = LSSVC(C=3.0, gamma=0.6, cv=cv, reduction=settings).fit(X, binary)
        folds = [test for _, test in cv.split(X, binary)]
        how = {"previous": against == "previous", "signed": by == "sign"}
        kept, steps = prune_loop(rbf(X, X, 0.6), signs, 3.0, folds, 0.2, 0.1, **how)
        np.testing.assert_array_equal(model.support_, kept)
        path = model.reduction_path_[0].steps
        assert [step.n_rows for step in path[1:]] == [n for n, _ in steps]
        np.testing.assert_allclose([s.p_value for s in path[1:]], [p for _, p in steps], atol=1e-9)

    def test_pruning_by_sign_keeps_rows_near_the_boundary_and_needs_classes(self):
        plain, signed = (
            LSSVC(C=3.0, gamma=0.6, reduction=Prune(level=0.3, by=by)).fit(X, binary)
            for by in ("size", "sign")
        )
        far = [np.abs(model.decision_function(model.support_vectors_)) for model in (plain, signed)]
        assert far[1].max() < far[0].max() - 0.1
        with pytest.raises(ValueError, match="needs classes"):
            LSSVR(C=3.0, gamma=0.6, reduction=Prune(by="sign")).fit(X, X[:, 0])
        with pytest.raises(ValueError, match="'size' or 'sign'"):
            Prune(by="alpha")

    def test_against_the_step_before_pruning_goes_further(self):
        cv = StratifiedKFold(5, shuffle=True, random_state=1)
        full, previous = (
            LSSVC(C=3.0, gamma=0.6, cv=cv, reduction=Prune(level=0.2, against=against)).fit(
                X, binary
            )
            for against in ("full", "previous")
        )
        assert len(previous.support_) < len(full.support_)

    def test_prune_multiclass_and_regression(self):
        several = LSSVC(C=10.0, reduction="prune", multiclass="ovo").fit(X, labels)
        assert len(several.reduction_path_) == 6
        line = np.linspace(-5, 5, 80)[:, None]
        smooth = LSSVR(C=100.0, gamma=0.5, reduction="prune").fit(line, np.sinc(line[:, 0]))
        assert len(smooth.support_) < 80

    @pytest.mark.parametrize("multiclass", ["ovo", "ova"])
    def test_l0(self, multiclass):
        model = LSSVC("cv", gamma="cv", multiclass=multiclass, reduction="l0").fit(X, labels)
        used = np.count_nonzero(model.dual_coef_, axis=0)
        everyone = np.count_nonzero(LSSVC(multiclass=multiclass).fit(X, labels).dual_coef_, axis=0)
        assert used.mean() < 0.9 * everyone.mean() and model.score(X, labels) > 0.75
        assert model.support_vectors_.shape == (len(model.support_), 3)

    def test_settings_are_used(self):
        few = LSSVR(C=10.0, reduction=L0(max_iter=1)).fit(X, y)
        many = LSSVR(C=10.0, reduction=L0(max_iter=50)).fit(X, y)
        assert len(many.support_) < len(few.support_)
        with pytest.raises(ValueError, match="reduction"):
            LSSVR(reduction="half").fit(X, y)


bad_X = {
    "nan": (np.where(np.arange(270).reshape(90, 3) == 4, np.nan, X), "NaN"),
    "inf": (np.where(np.arange(270).reshape(90, 3) == 4, np.inf, X), "infinity"),
    "empty": (np.empty((0, 3)), "minimum of 1"),
    "lengths": (X[:50], "inconsistent"),
}


class TestBadInput:
    @pytest.mark.parametrize("name", bad_X)
    @pytest.mark.parametrize("estimator", [LSSVC(), LSSVR()], ids=repr)
    def test_bad_rows(self, name, estimator):
        rows, word = bad_X[name]
        target = binary if isinstance(estimator, LSSVC) else y
        with pytest.raises(ValueError, match=word):
            estimator.fit(rows, target)

    @pytest.mark.parametrize(
        ("parameters", "word"),
        [
            ({"C": 0.0}, "C="),
            ({"C": -1.0}, "C="),
            ({"C": np.nan}, "C="),
            ({"C": "large"}, "cv"),
            ({"kernel": "gauss"}, "rbf"),
            ({"gamma": "wide"}, "gamma"),
            ({"gamma": -2.0}, "gamma"),
            ({"solver": "qr"}, "cholesky"),
            ({"search": "luck", "C": "cv"}, "path"),
            ({"cv": 1, "C": "cv"}, "folds"),
            ({"cv": "twice", "C": "cv"}, "loo"),
            ({"scoring": "beauty", "C": "cv"}, "scoring"),
            ({"memory_budget": "some"}, "memory_budget"),
            ({"n_jobs": 0}, "n_jobs"),
            ({"random_state": "x"}, "random_state"),
        ],
    )
    def test_bad_parameters(self, parameters, word):
        with pytest.raises(ValueError, match=word):
            LSSVC(**parameters).fit(X, binary)

    @pytest.mark.parametrize(
        ("parameters", "word"),
        [
            ({"multiclass": "pairs"}, "ovo"),
            ({"multiclass": Coding(targets="fish")}, "targets"),
            ({"multiclass": Coding(threshold="best")}, "threshold"),
            ({"multiclass": Coding(targets=(1.0, -1.0))}, "positive"),
            ({"class_weight": {"maybe": 2.0}}, "maybe"),
            ({"class_weight": {"yes": 0.0}}, "whole class"),
            ({"class_weight": "even"}, "balanced"),
        ],
    )
    def test_bad_classifier_parameters(self, parameters, word):
        with pytest.raises(ValueError, match=word):
            LSSVC(**parameters).fit(X, binary)

    def test_one_class(self):
        with pytest.raises(ValueError, match="only one class"):
            LSSVC().fit(X, np.ones(90))
        with pytest.raises(ValueError, match="only one class"):
            LSSVC().fit(X, binary, (binary == "yes").astype(float))

    @pytest.mark.parametrize(
        "weight", [-np.ones(90), np.zeros(90), np.ones(3), np.full(90, np.nan)]
    )
    def test_bad_weights(self, weight):
        with pytest.raises(ValueError, match="sample_weight"):
            LSSVR().fit(X, y, weight)

    def test_precomputed_must_be_square_and_symmetric(self):
        with pytest.raises(ValueError, match="square"):
            LSSVR(kernel="precomputed").fit(rbf(X, X[:50], 1.0), y)
        K = rbf(X, X, 1.0)
        K[3, 4] += 1.0
        with pytest.raises(ValueError, match="symmetric"):
            LSSVR(kernel="precomputed").fit(K, y)

    @pytest.mark.parametrize("kernel", ["laplacian", "precomputed"])
    def test_sparse_where_it_is_not_taken(self, kernel):
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            LSSVR(kernel=kernel).fit(sparse.csr_matrix(X), y)

    @pytest.mark.parametrize("estimator", [LSSVC(), LSSVR(), GreedyLSSVC(), GreedyLSSVR()])
    def test_scans_are_for_the_fixed_size_models(self, estimator):
        reads = "FixedSize" + type(estimator).__name__.removeprefix("Greedy")
        with pytest.raises(ValueError, match=f"takes arrays.* scan.*{reads}"):
            estimator.fit(scan(X, target=y))

    def test_a_fit_that_fails_leaves_no_model(self):
        model = LSSVR().fit(X, y)
        with pytest.raises(ValueError, match="C="):
            model.set_params(C=-1.0).fit(X, y)
        with pytest.raises(NotFittedError):
            model.predict(new)

    def test_budget_is_refused_with_advice(self):
        big = np.zeros((20_000, 1))
        with pytest.raises(MemoryBudgetError, match=r"solver='cg'.*FixedSizeLSSVC"):
            LSSVR(solver="cholesky", memory_budget="100 MB").fit(big, np.arange(20_000.0))

    @pytest.mark.parametrize(
        "rows",
        [
            np.ones((90, 3)),
            np.repeat(X[:9], 10, axis=0),
            X * np.array([1e12, 1.0, 1e-12]),
            X + 1e12,
            np.column_stack([X[:, :2], np.full(90, 1e12)]),
        ],
        ids=["constant", "duplicates", "scales", "offset", "constant-column"],
    )
    def test_awkward_rows_give_finite_models_or_errors(self, rows):
        kernels = ("rbf", "linear", "poly", "laplacian", "matern")
        for kernel, C in product(kernels, (1.0, 1e8, "cv")):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    model = LSSVR(C, kernel=kernel, cv=5).fit(rows, y)
                except ValueError as error:
                    assert str(error), (kernel, C)
                    continue
                assert np.all(np.isfinite(model.predict(rows))), (kernel, C)
                assert np.all(np.isfinite(model.predict(new))), (kernel, C)


def test_auto_takes_conjugate_gradients_when_the_matrix_does_not_fit():
    rows = rng.normal(size=(600, 2))
    model = LSSVR(memory_budget=600 * 600 * 4).fit(rows, rows[:, 0])
    assert model.solver_ == "cg"
    wanted = LSSVR().fit(rows, rows[:, 0]).predict(rows)
    np.testing.assert_allclose(model.predict(rows), wanted, atol=1e-5)


def test_a_solver_object_is_used():
    model = LSSVR(solver=ConjugateGradient(tol=1e-10)).fit(X, y)
    assert model.solver_ == "cg"
    np.testing.assert_allclose(model.predict(new), LSSVR().fit(X, y).predict(new), atol=1e-7)


def test_non_convergence_warns():
    with pytest.warns(UserWarning, match="max_iter"):
        LSSVR(C=1e6, solver=ConjugateGradient(max_iter=1)).fit(X, y)
