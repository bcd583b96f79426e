"""``gamma="ard"`` on the estimators."""

import numpy as np
import pytest
from scipy import sparse

from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR
from lssvm._core.errors import InvalidInputError
from lssvm.tuning import PathSearch


def regression(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    return X, np.sin(2 * X[:, 4]) + X[:, 11] ** 2 / 2 + 0.1 * rng.normal(size=n)


X, y = regression(150)
X_TEST, y_TEST = regression(300, 1)
LABELS, LABELS_TEST = np.digitize(y, [0.3, 1.0]), np.digitize(y_TEST, [0.3, 1.0])


@pytest.mark.parametrize(
    ("one", "each"),
    [
        (LSSVR("cv", gamma="cv", cv=5), LSSVR("cv", gamma="ard", cv=5)),
        (FixedSizeLSSVR(60, cv=5), FixedSizeLSSVR(60, gamma="ard", cv=5)),
        (LSSVR(100.0, kernel="matern", gamma="cv", cv=5),
         LSSVR(100.0, kernel="matern", gamma="ard", cv=5)),
    ],
    ids=["dual", "fixed", "matern"],
)  # fmt: skip
def test_a_function_of_two_of_twenty_features(one, each):
    one.fit(X, y), each.fit(X, y)
    assert set(np.argsort(each.feature_relevance_)[-2:]) == {4, 11}
    assert each.feature_relevance_.sum() == pytest.approx(1.0)
    assert each.gamma_.shape == (20,)
    assert each.best_score_ > one.best_score_
    assert each.n_evaluations_ > one.n_evaluations_
    errors = [np.mean((m.predict(X_TEST) - y_TEST) ** 2) for m in (one, each)]
    assert errors[1] < 0.25 * errors[0]
    assert not hasattr(one, "feature_relevance_")


@pytest.mark.parametrize(
    "model", [LSSVC("cv", gamma="ard", cv=5), FixedSizeLSSVC(60, gamma="ard", cv=5)], ids=repr
)
def test_three_classes(model):
    model.fit(X, LABELS)
    assert set(np.argsort(model.feature_relevance_)[-2:]) == {4, 11}
    assert model.score(X_TEST, LABELS_TEST) > 0.75


def test_shares_do_not_depend_on_the_units_of_a_feature():
    A = X[:80, [4, 11, 0]]
    units = np.array([1.0, 3.0, 0.5])
    one = LSSVR(100.0, gamma="ard", cv=4).fit(A, y[:80])
    two = LSSVR(100.0, gamma="ard", cv=4).fit(A * units, y[:80])
    # the search begins at equal gammas, so the answers are close, not equal
    np.testing.assert_allclose(one.feature_relevance_, two.feature_relevance_, atol=0.1)
    shares = one.gamma_ * A.var(axis=0)
    np.testing.assert_allclose(one.feature_relevance_, shares / shares.sum(), rtol=1e-10)


def test_the_model_is_that_of_its_gammas():
    (X, y), (X_TEST, _) = regression(80), regression(80, 1)
    model = LSSVR("cv", gamma="ard", cv=3).fit(X, y)
    refit = LSSVR(model.C_, gamma=model.gamma_).fit(X, y)
    np.testing.assert_allclose(model.predict(X_TEST), refit.predict(X_TEST), atol=1e-6)
    _, std = model.predict(X_TEST, return_std=True)
    np.testing.assert_allclose(std, refit.predict(X_TEST, return_std=True)[1], atol=1e-6)
    fixed = FixedSizeLSSVR(30, gamma="ard", cv=3).fit(X, y)
    options = {"selection": fixed.prototypes_, "C": fixed.C_, "gamma": fixed.gamma_}
    np.testing.assert_allclose(
        fixed.predict(X_TEST), FixedSizeLSSVR(**options).fit(X, y).predict(X_TEST), atol=1e-6
    )


def test_noise_keeps_one_gamma_or_scores_no_worse():
    rng = np.random.default_rng(5)
    A, noise = rng.normal(size=(60, 6)), rng.normal(size=60)
    one = LSSVR("cv", gamma="cv", cv=5).fit(A, noise)
    each = LSSVR("cv", gamma="ard", cv=5).fit(A, noise)
    assert each.best_score_ >= one.best_score_
    if np.ndim(each.gamma_) == 0:
        assert each.gamma_ == one.gamma_ and each.C_ == one.C_


def test_a_second_fit_forgets_the_first():
    model = LSSVR("cv", gamma="ard", cv=3).fit(X[:80], y[:80])
    before = model.predict(X_TEST)
    model.fit(X[:80], y[:80])
    np.testing.assert_array_equal(before, model.predict(X_TEST))
    model.set_params(gamma="scale").fit(X[:80], y[:80])
    assert np.ndim(model.gamma_) == 0 and not hasattr(model, "feature_relevance_")


def test_sparse_rows():
    dense = LSSVR(10.0, gamma="ard", cv=4).fit(X[:60], y[:60])
    thin = LSSVR(10.0, gamma="ard", cv=4).fit(sparse.csr_matrix(X[:60]), y[:60])
    np.testing.assert_allclose(dense.feature_relevance_, thin.feature_relevance_, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (LSSVR(kernel="linear", gamma="ard"), "kernel='linear'"),
        (LSSVC(kernel="poly", gamma="ard"), "kernel='poly'"),
        (FixedSizeLSSVR(kernel="laplacian", gamma="ard"), "kernel='laplacian'"),
        (LSSVR(gamma="ard", search=PathSearch(per_output=True)), "per_output=False"),
    ],
    ids=["linear", "poly", "laplacian", "separate"],
)
def test_what_cannot_be_had(model, match):
    with pytest.raises(InvalidInputError, match=match):
        model.fit(X[:30], LABELS[:30])
