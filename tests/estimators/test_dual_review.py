"""Cases at the edge of what the dual estimators accept, each against a direct computation."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import (
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_score,
)

from lssvm import LSSVC, LSSVR
from lssvm._core.errors import InvalidInputError, MemoryBudgetError, NumericalWarning
from lssvm.codes import Coding
from lssvm.kernels import RBF, Laplacian, Precomputed
from lssvm.solvers import SMO, ConjugateGradient
from lssvm.tuning import GridSearch, PathSearch

rng = np.random.default_rng(0)
X, new = rng.normal(size=(60, 3)), rng.normal(size=(11, 3))
y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
labels = np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])
binary = (X[:, 0] > 0).astype(int)
weight = (np.arange(60) % 3 > 0) * rng.uniform(0.5, 2.0, size=60)
GRID = GridSearch([0.1, 10.0], [0.1, 1.0])


def gram(A, B):
    return np.exp(-0.4 * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def test_two_classes_under_a_given_code():
    usual, turned = LSSVC(), LSSVC(multiclass=np.array([[1], [-1]]))
    np.testing.assert_allclose(
        turned.fit(X, binary).decision_function(new),
        usual.fit(X, binary).decision_function(new),
        atol=1e-12,
    )
    assert turned.score(X, binary) == usual.score(X, binary) > 0.9


@pytest.mark.parametrize("target", [binary, labels], ids=["two", "three"])
def test_unknown_decoding_is_refused_by_fit(target):
    with pytest.raises(InvalidInputError, match="decoding"):
        LSSVC(multiclass=Coding(decoding="nearest")).fit(X, target)


def test_a_second_fit_forgets_the_first():
    model = LSSVR("cv", gamma=0.4, search=GRID).fit(X, y)
    assert model.n_evaluations_ == 2
    model.set_params(C=1.0, kernel="precomputed").fit(gram(X, X), y)
    left = {"cv_results_", "best_score_", "n_evaluations_", "support_vectors_"} & set(vars(model))
    assert left == set()


@pytest.mark.parametrize(
    "solver",
    ["cholesky", ConjugateGradient(tol=1e-9, preconditioner="nystrom"), SMO(tol=1e-9)],
    ids=str,
)
def test_a_part_of_a_precomputed_matrix(solver):
    scale = 1.0 + np.arange(60)  # a diagonal that differs from row to row
    K, K_new = gram(X, X) * np.outer(scale, scale), gram(new, X) * scale
    model = LSSVR(kernel="precomputed", solver=solver).fit(K, y, weight)
    kept = np.flatnonzero(weight)
    small = LSSVR(kernel="precomputed").fit(K[np.ix_(kept, kept)], y[kept], weight[kept])
    np.testing.assert_allclose(model.predict(K_new), small.predict(K_new[:, kept]), atol=1e-6)
    pairs = LSSVC(kernel="precomputed", solver=solver).fit(gram(X, X), labels)
    wanted = LSSVC(gamma=0.4).fit(X, labels).decision_function(new)
    np.testing.assert_allclose(pairs.decision_function(gram(new, X)), wanted, atol=1e-6)


@pytest.mark.parametrize("solver", ["cholesky", "cg", "smo"])
def test_an_offset_of_the_targets_goes_into_the_bias(solver):
    model = LSSVR(C=100.0, solver=solver).fit(X, y + 1e6)
    wanted = LSSVR(C=100.0).fit(X, y).predict(new)
    np.testing.assert_allclose(model.predict(new) - 1e6, wanted, atol=1e-5)


def test_kernel_objects_are_taken_like_names():
    with pytest.raises(InvalidInputError, match="square"):
        LSSVR(kernel=Precomputed()).fit(gram(X, new), y)
    assert LSSVR(kernel=Precomputed()).__sklearn_tags__().input_tags.pairwise
    by_object = LSSVR(kernel=RBF(0.4)).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(
        by_object.predict(new), LSSVR(gamma=0.4).fit(X, y).predict(new), atol=1e-10
    )
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        LSSVR(kernel=Laplacian(0.4)).fit(sparse.csr_matrix(X), y)
    with pytest.raises(InvalidInputError, match="gamma='cv'"):
        LSSVR(kernel=RBF(0.4), gamma="cv").fit(X, y)


class TestScoring:
    @pytest.mark.parametrize("scoring", ["r2", "neg_mean_absolute_error"])
    def test_many_repeated_folds_are_averaged(self, scoring):
        folds = RepeatedKFold(n_splits=5, n_repeats=11, random_state=0)
        model = LSSVR("cv", gamma="cv", cv=folds, scoring=scoring, search=GRID).fit(X, y)
        fixed = LSSVR(model.C_, gamma=model.gamma_)
        scores = cross_val_score(fixed, X, y, cv=folds, scoring=scoring)
        assert model.best_score_ == pytest.approx(scores.mean(), abs=1e-9)

    def test_accuracy_is_that_of_refits(self):
        folds = ShuffleSplit(3, test_size=0.3, random_state=0)
        model = LSSVC("cv", gamma="cv", cv=folds, search=GRID).fit(X, labels)
        scores = cross_val_score(LSSVC(model.C_, gamma=model.gamma_), X, labels, cv=folds)
        assert model.best_score_ == pytest.approx(scores.mean(), abs=1e-8)

    def test_leave_one_out_of_a_few_rows_pools_its_predictions(self):
        model = LSSVR("cv", gamma=0.4, cv="loo", scoring="r2", search=GRID).fit(X[:20], y[:20])
        squared = LSSVR("cv", gamma=0.4, cv="loo", search=GRID).fit(X[:20], y[:20])
        assert model.C_ == squared.C_
        assert model.best_score_ == pytest.approx(1 + squared.best_score_ / y[:20].var())

    def test_scorers_see_no_class_weights(self):
        folds = TimeSeriesSplit(3)
        model = LSSVC("cv", gamma="cv", cv=folds, search=GRID, class_weight={0: 5.0}, scoring="f1")
        model.fit(X, binary)
        fixed = LSSVC(model.C_, gamma=model.gamma_, class_weight={0: 5.0})
        scores = cross_val_score(fixed, X, binary, cv=folds, scoring="f1")
        assert model.best_score_ == pytest.approx(scores.mean(), abs=1e-9)

    @pytest.mark.parametrize("per_output", [False, True])
    @pytest.mark.parametrize(
        "options",
        [
            {"multiclass": Coding(targets="fisher")},
            {"class_weight": "balanced"},
            {"multiclass": Coding(targets="fisher"), "cv": "loo"},
        ],
        ids=str,
    )
    def test_classes_are_counted_in_the_training_rows(self, options, per_output):
        """Folds that hold most rows of one class leave few of them to count."""
        uneven = np.flatnonzero((binary == 1) | (np.arange(60) % 3 == 0))
        A, c = X[uneven] + 0.8 * rng.normal(size=(len(uneven), 3)), binary[uneven]
        order = np.argsort(c + 0.3 * rng.normal(size=len(c)))
        parts = np.array_split(order, len(c) if "cv" in options else 5)
        splits = [(np.setdiff1d(order, test), test) for test in parts]
        given = {"cv": splits, **options}
        search = replace(GRID, per_output=per_output)
        model = LSSVC("cv", gamma="cv", search=search, **given).fit(A, c)
        fixed = LSSVC(np.ravel(model.C_)[0], gamma=np.ravel(model.gamma_)[0], **options)
        right = [fixed.fit(A[rows], c[rows]).predict(A[test]) == c[test] for rows, test in splits]
        row = np.ones(len(c))
        if "class_weight" in options:
            row = (len(c) / (2 * np.bincount(c)))[c]
        wanted = np.average(np.concatenate(right), weights=row[np.concatenate(parts)])
        assert model.best_score_ == pytest.approx(wanted, abs=1e-8)

    def test_unusable_scorers_are_explained(self):
        with pytest.raises(InvalidInputError, match="predict_proba"):
            LSSVC("cv", scoring="neg_log_loss").fit(X, binary)
        with pytest.raises(InvalidInputError, match="sample weights"):
            LSSVR("cv", scoring=lambda model, X, y: 0.0).fit(X, y, weight)


class TestSplits:
    @pytest.mark.parametrize(
        ("cv", "word"),
        [
            ([([0, 1], [99])], "60 rows"),
            ([1, 2], "pair"),
            ([(np.arange(30, 60), np.arange(30))], "positive weight"),
        ],
    )
    def test_bad_splits(self, cv, word):
        with pytest.raises(InvalidInputError, match=word):
            LSSVR("cv", cv=cv).fit(X, y, (np.arange(60) < 30).astype(float))

    def test_a_pair_of_classes_may_miss_in_a_training_set(self):
        order = np.argsort(labels)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = LSSVC("cv", gamma=0.4, cv=TimeSeriesSplit(4), multiclass="ovo")
            model.fit(X[order], labels[order])
        assert np.all(np.isfinite(model.decision_function(new)))

    def test_pruning_judges_only_rows_that_were_tested(self):
        model = LSSVR(10.0, gamma=0.4, reduction="prune", cv=TimeSeriesSplit(4)).fit(X, y)
        folds = TimeSeriesSplit(4)
        scores = cross_val_score(
            LSSVR(10.0, gamma=0.4), X, y, cv=folds, scoring="neg_mean_squared_error"
        )
        assert model.reduction_path_[0].steps[0].loss == pytest.approx(-scores.mean())

    def test_training_sets_of_their_own_count_in_the_budget(self):
        folds = ShuffleSplit(40, train_size=0.5, test_size=0.2, random_state=0)
        with pytest.raises(MemoryBudgetError, match="fewer splits"):
            LSSVR("cv", cv=folds, memory_budget=10 * 60 * 60 * 8).fit(X, y)


def test_tuning_that_does_not_fit_gives_advice_that_helps():
    with pytest.raises(MemoryBudgetError, match="numbers for C and gamma"):
        LSSVR("cv", solver="cg", memory_budget=60 * 60 * 8).fit(X, y)


def test_indefinite_matrices_are_tuned_without_a_warning():
    K = gram(X, X) - 0.6 * np.eye(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LSSVC("cv", kernel="precomputed", multiclass="ovo").fit(K, labels)
        assert 1.0 / model.C_ > 0.5
        with pytest.raises(InvalidInputError, match="finite loss"):
            LSSVR("cv", kernel="precomputed").fit(-1e6 * gram(X, X), y)


def test_separate_tuning_counts_the_rows_of_its_own_problem():
    pair = labels < 2
    model = LSSVC(
        "cv", gamma=0.4, cv="loo", multiclass="ovo", search=PathSearch(per_output=True)
    ).fit(X, labels)
    alone = LSSVC("cv", gamma=0.4, cv="loo").fit(X[pair], labels[pair])
    column = int(np.flatnonzero(np.all(model.code_.matrix[:2] != 0, axis=0))[0])
    assert model.C_[column] == alone.C_


def test_distances_of_huge_columns_keep_their_digits():
    model = LSSVR(1.0, gamma=1.0).fit(X * 1e12, y)  # so far apart that K is the identity
    np.testing.assert_allclose(model.predict(X * 1e12), (y + y.mean()) / 2, atol=1e-12)


@pytest.mark.parametrize("scale", [1e4, 1e6, 1e12])
def test_a_ridge_lost_in_rounding_is_replaced_and_told(scale):
    A = np.column_stack([X, np.ones(60)])
    wanted = np.column_stack([new, np.ones(11)]) @ np.linalg.lstsq(A, y, rcond=None)[0]
    with pytest.warns(NumericalWarning, match="Lower C"):
        model = LSSVR(1e6, kernel="linear").fit(X * scale, y)
    np.testing.assert_allclose(model.predict(new * scale), wanted, atol=0.02)


@pytest.mark.parametrize("scale", [1.0, 1e8, 1e12])
def test_the_factorisation_of_tuning_is_used_only_where_it_is_accurate(scale):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        tuned = LSSVR("cv", kernel="linear", search=GRID).fit(X * scale, y)
        fixed = LSSVR(tuned.C_, kernel="linear").fit(X * scale, y)
    assert tuned.solver_ == ("eigen" if scale == 1.0 else "cholesky")
    np.testing.assert_allclose(tuned.predict(new * scale), fixed.predict(new * scale), atol=1e-8)


def test_the_solution_of_tuning_takes_an_offset():
    tuned = LSSVR("cv", gamma=0.4, search=GRID).fit(X, y + 1e8)
    wanted = LSSVR(tuned.C_, gamma=0.4).fit(X, y).predict(new)
    np.testing.assert_allclose(tuned.predict(new) - 1e8, wanted, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_range_of_C_follows_the_scale_of_a_linear_kernel(scale):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    y = X @ np.array([1.0, -2.0, 0.5]) + 0.1 * rng.normal(size=60)
    plain = LSSVR("cv", kernel="linear", cv=KFold(5)).fit(X, y)
    scaled = LSSVR("cv", kernel="linear", cv=KFold(5)).fit(scale * X, y)
    np.testing.assert_allclose(scaled.predict(scale * X), plain.predict(X), atol=1e-6)
    given = LSSVR("cv", kernel="precomputed").fit(scale**2 * X @ X.T, y)
    assert given.score(scale**2 * X @ X.T, y) > 0.98
