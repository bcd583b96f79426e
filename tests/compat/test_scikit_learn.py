"""scikit-learn's own checks, and its tools on our estimators."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC, GreedyLSSVR
from lssvm.kernels import Polynomial
from lssvm.solvers import SMO
from lssvm.tuning import GridSearch

FEW = GridSearch(C=[0.3, 3.0, 30.0], gamma=[0.05, 0.5])
ESTIMATORS = [
    LSSVC(),
    LSSVR(),
    FixedSizeLSSVC(20, cv=3, search=FEW),
    FixedSizeLSSVR(20, cv=3, search=FEW),
    GreedyLSSVC(),
    GreedyLSSVR(),
]
"""One of each class, for all checks; models of tables and of series have theirs elsewhere."""

WAYS = [
    LSSVC(multiclass="ova", solver="cg"),
    LSSVR(solver=SMO(tol=1e-8)),
    LSSVC(C="cv", gamma="cv", cv=3, search=FEW),
    LSSVR(C="cv", gamma="cv", cv=3, search=FEW),
    LSSVC(reduction="l0"),
    LSSVC(kernel="poly", multiclass="ecoc"),
    GreedyLSSVC(C="cv", candidates=20, multiclass="ovo", prefit=True),
    GreedyLSSVR(criterion="sggp", prefit=True, max_support=10),
    GreedyLSSVC(criterion="kmp", candidates=20),
    FixedSizeLSSVC(20, gamma="scale", cv=3, search=FEW, reduction="spfs"),
    FixedSizeLSSVR(20, gamma="scale", cv=3, search=FEW, reduction="ssd"),
    LSSVC(solver="circulant"),
    LSSVR(solver="circulant"),
    LSSVC(C="cv", gamma="cv", cv=3, search="circulant"),
    LSSVR(C="cv", gamma="cv", scoring="gcv", search=FEW),
    LSSVC(C="cv", gamma="cv", scoring="press", search=FEW),
    LSSVR(C="cv", gamma="cv", scoring="evidence", search=FEW),
    FixedSizeLSSVR(20, scoring="evidence", search=FEW),
    LSSVR(C="cv", gamma="ard", cv=2, search=FEW),
    FixedSizeLSSVC(20, gamma="ard", cv=2, search=FEW),
    LSSVR(loss="huber"),
    FixedSizeLSSVR(20, gamma="scale", cv=2, search=FEW, loss="huber"),
    LSSVC(kernel="nonstationary"),
    FixedSizeLSSVC(20, gamma="scale", cv=3, search=FEW, solver="pcg"),
    FixedSizeLSSVR(C=10.0, gamma="scale", solver="pcg"),
]
"""Other ways to fit them, for the checks of what fitting gives."""

OF_A_FIT = {
    "check_all_zero_sample_weights_error",
    "check_class_weight_classifiers",
    "check_classifiers_one_label",
    "check_classifiers_one_label_sample_weights",
    "check_classifiers_train",
    "check_dict_unchanged",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_readonly_memmap_input",
    "check_regressor_multioutput",
    "check_regressors_int",
    "check_regressors_train",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weights_not_overwritten",
}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_check_estimator(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"}
    if not hasattr(estimator_checks, "NamespaceAndDevice"):  # older ones want labels as tensors
        failed.pop("check_array_api_input", None)
    assert failed == {}
    names = {r["check_name"] for r in results if r["status"] == "passed"}
    assert "check_sample_weight_equivalence_on_dense_data" in names
    assert len(names) > 45


@pytest.mark.parametrize("estimator", WAYS, ids=repr)
def test_checks_of_what_fitting_gives(estimator):
    passed = set()
    for model, check in estimator_checks_generator(estimator):
        name = check.func.__name__
        if name in passed or name not in OF_A_FIT:
            continue  # those of training come again with arrays that may not be written
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(model)
        passed.add(name)
    own = "regressor" if is_classifier(estimator) else "class"  # of the other task
    there = {name for name in OF_A_FIT if hasattr(estimator_checks, name)}  # older ones have fewer
    assert {name for name in there - passed if own not in name} == set()


iris = load_iris()


def test_clone_keeps_parameters():
    model = LSSVC(C=3.0, gamma="cv", search="grid")
    assert clone(model).get_params() == model.get_params()


def test_grid_search_and_pipeline():
    pipeline = make_pipeline(StandardScaler(), LSSVC(multiclass="ova"))
    search = GridSearchCV(pipeline, {"lssvc__C": [0.1, 10.0], "lssvc__gamma": [0.1, 1.0]}, cv=3)
    assert search.fit(iris.data, iris.target).best_score_ > 0.93
    assert cross_val_score(pipeline, iris.data, iris.target, cv=5).min() > 0.85


def test_metadata_routing():
    weight = np.where(iris.target == 0, 2.0, 1.0)
    with config_context(enable_metadata_routing=True):
        model = LSSVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"C": [1.0, 10.0]}, cv=3)
        search.fit(iris.data, iris.target, sample_weight=weight)
    assert search.best_estimator_.C in (1.0, 10.0)


def test_data_frames_in():
    frame = pd.DataFrame(iris.data, columns=iris.feature_names)
    labels = pd.Series(iris.target_names[iris.target], name="kind")
    model = LSSVC().fit(frame, labels)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert set(model.predict(frame)) <= set(labels)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={frame.columns[0]: "other"}))


def test_frames_through_a_pipeline_with_set_output():
    frame = pd.DataFrame(iris.data, columns=iris.feature_names)
    pipeline = make_pipeline(StandardScaler(), LSSVR()).set_output(transform="pandas")
    pipeline.fit(frame, iris.target.astype(float))
    assert list(pipeline[-1].feature_names_in_) == list(frame.columns)


def test_kernel_ridge_is_reproduced_without_the_bias():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.normal(size=(80, 2))
    weight = rng.uniform(0.5, 2.0, size=80)
    for kernel, options in (("rbf", {"gamma": 0.3}), ("poly", {"gamma": 0.3, "degree": 2})):
        ours = LSSVR(C=5.0, kernel=kernel, gamma=0.3, fit_intercept=False)
        if kernel == "poly":
            ours.set_params(kernel=Polynomial(degree=2))
        ours.fit(X, y, weight)
        theirs = KernelRidge(alpha=0.2, kernel=kernel, coef0=1.0, **options).fit(X, y, weight)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-8)
        np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-7)


def test_tuning_equals_grid_search_on_the_same_folds():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(70, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=70)
    C, gamma, folds = [0.1, 1.0, 30.0], [0.05, 0.5], KFold(5, shuffle=True, random_state=0)
    ours = LSSVR("cv", gamma="cv", cv=folds, search=GridSearch(C, gamma)).fit(X, y)
    theirs = GridSearchCV(
        LSSVR(), {"C": C, "gamma": gamma}, cv=folds, scoring="neg_mean_squared_error"
    ).fit(X, y)
    assert theirs.best_params_ == {"C": ours.C_, "gamma": ours.gamma_}
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-10)
