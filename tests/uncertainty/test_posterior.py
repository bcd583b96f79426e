"""Error bars against eq. (3.60), scikit-learn and refits, and the two models against each other."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF as SklearnRBF
from sklearn.gaussian_process.kernels import ConstantKernel
from tests.oracles.dual import kkt_regression, rbf
from tests.oracles.gaussian_process import predict, predict_with_bias

from lssvm import LSSVR, FixedSizeLSSVR
from lssvm._core.errors import InvalidInputError, MemoryBudgetError, NumericalWarning
from lssvm.kernels import RBF
from lssvm.solvers import DualSystem
from lssvm.tuning import PathSearch
from lssvm.uncertainty import DualPosterior

rng = np.random.default_rng(0)
X = rng.normal(size=(50, 2))
y = np.sin(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=50) + 5.0
T = 1.5 * rng.normal(size=(11, 2))
C, gamma = 20.0, 0.7
K, k_star, k_both = rbf(X, X, gamma), rbf(T, X, gamma), rbf(T, T, gamma)


def test_equation_3_60():
    model = LSSVR(C, gamma=gamma, fit_intercept=False).fit(X, y)
    scale = C * model.noise_variance_
    mean, cov = predict(K, k_star, k_both, y, C)
    np.testing.assert_allclose(model.predict(T), mean, atol=1e-10)
    np.testing.assert_allclose(model.predict(T, return_cov=True)[1], scale * cov, atol=1e-10)
    std = model.predict(T, return_std=True)[1]
    np.testing.assert_allclose(std, np.sqrt(scale * np.diagonal(cov)), atol=1e-10)


def test_scikit_learn_without_the_bias():
    model = LSSVR(C, gamma=gamma, fit_intercept=False).fit(X, y)
    scale = C * model.noise_variance_
    kernel = ConstantKernel(scale) * SklearnRBF(1.0 / np.sqrt(2.0 * gamma))
    theirs = GaussianProcessRegressor(kernel, alpha=scale / C, optimizer=None).fit(X, y)
    for option in ({"return_std": True}, {"return_cov": True}):
        ours, wanted = model.predict(T, **option), theirs.predict(T, **option)
        np.testing.assert_allclose(ours[0], wanted[0], atol=1e-9)
        np.testing.assert_allclose(ours[1], wanted[1], atol=1e-9)


def test_equation_3_60_with_the_bias():
    model = LSSVR(C, gamma=gamma).fit(X, y)
    mean, cov = predict_with_bias(K, k_star, k_both, y, C)
    relative = model.predict(T, return_cov=True)[1] / (C * model.noise_variance_)
    np.testing.assert_allclose(relative, cov, atol=1e-10)
    np.testing.assert_allclose(model.predict(T), mean, atol=1e-9)


def test_noise_variance_is_the_minimum_of_the_objective_over_the_freedom():
    model = LSSVR(C, gamma=gamma).fit(X, y)
    e, alpha = y - model.predict(X), model.dual_coef_[:, 0]
    assert model.noise_variance_ == pytest.approx((e @ e + alpha @ K @ alpha / C) / 49)


def test_noise_variance_finds_the_noise():
    x = np.linspace(0, 6, 600)[:, None]
    noisy = np.sin(x[:, 0]) + 0.3 * np.random.default_rng(1).normal(size=600)
    for model in (LSSVR("cv", gamma="cv"), FixedSizeLSSVR(50)):
        assert model.fit(x, noisy).noise_variance_ == pytest.approx(0.09, rel=0.1)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_fixed_size_model_equals_the_dual_one_when_all_rows_are_prototypes(weighted):
    weight = rng.uniform(0.5, 2.0, size=50) if weighted else None
    dual = LSSVR(C, gamma=5.0).fit(X, y, weight)  # a kernel matrix of full rank, to rounding
    fixed = FixedSizeLSSVR(50, C=C, gamma=5.0).fit(X, y, weight)
    assert fixed.noise_variance_ == pytest.approx(dual.noise_variance_, rel=1e-8)
    for option in ({"return_std": True}, {"return_cov": True}):
        ours, wanted = fixed.predict(T, **option)[1], dual.predict(T, **option)[1]
        np.testing.assert_allclose(ours, wanted, atol=1e-8)
    np.testing.assert_allclose(fixed.predict_interval(T), dual.predict_interval(T), atol=1e-7)


def test_a_weight_of_two_is_the_row_twice():
    weight = np.ones(50)
    weight[:20] = 2.0
    twice = np.r_[np.arange(50), np.arange(20)]
    for make in (LSSVR(C, gamma=gamma), FixedSizeLSSVR(40, C=C, gamma=gamma, selection=X[:40])):
        a = make.fit(X, y, weight)
        noise, std, ends = (
            a.noise_variance_,
            a.predict(T, return_std=True)[1],
            a.predict_interval(T),
        )
        b = make.fit(X[twice], y[twice])
        assert b.noise_variance_ == pytest.approx(noise, rel=1e-8)
        np.testing.assert_allclose(b.predict(T, return_std=True)[1], std, rtol=1e-6)
        np.testing.assert_allclose(b.predict_interval(T), ends, rtol=1e-6)


def test_error_bars_grow_away_from_the_data_and_stay_below_the_prior():
    far = np.array([[30.0, 30.0]])
    for model in (LSSVR(C, gamma=gamma), FixedSizeLSSVR(20, C=C, gamma=gamma)):
        model.fit(X, y)
        at_data = model.predict(X, return_std=True)[1]
        away = model.predict(far, return_std=True)[1]
        assert np.all(at_data < away)
        assert away[0] ** 2 >= C * model.noise_variance_  # the prior, and the bias


@pytest.mark.parametrize("bias", [True, False])
def test_leave_out_against_refits(bias):
    weight = rng.uniform(0.5, 2.0, size=50)
    folds = [np.array([0]), np.array([1, 2, 3]), *(np.array([i]) for i in range(4, 50))]
    system = DualSystem(RBF(gamma), X, X, C, np.sqrt(weight), bias=bias)
    posterior = DualPosterior(system, y[:, None])
    predictions, variance = posterior.leave_out(folds)
    for test in folds[:6]:
        train = np.setdiff1d(np.arange(50), test)
        part = DualPosterior(system.subset(train), y[train, None])
        alpha, b = part.expansion()
        np.testing.assert_allclose(predictions[test], K[np.ix_(test, train)] @ alpha + b, atol=1e-8)
        np.testing.assert_allclose(variance[test], part.variance(X[test]), atol=1e-8)
        if bias:
            wanted = kkt_regression(K[np.ix_(train, train)], y[train], C, weight[train])
            np.testing.assert_allclose(alpha[:, 0], wanted[0], atol=1e-8)


def test_fixed_leave_out_against_refits():
    weight = rng.uniform(0.5, 2.0, size=50)
    Z = X[:15]
    model = FixedSizeLSSVR(C=C, gamma=gamma, selection=Z).fit(X, y, weight)
    posterior = model._posteriors()[0][1]
    folds = [np.array([i]) for i in range(50)]
    predictions, variance = posterior.leave_out(X, y[:, None], folds, weight)
    for i in (0, 20, 49):
        train = np.delete(np.arange(50), i)
        part = FixedSizeLSSVR(C=C, gamma=gamma, selection=Z).fit(X[train], y[train], weight[train])
        assert predictions[i, 0] == pytest.approx(part.predict(X[[i]])[0], abs=1e-8)
        other = part._posteriors()[0][1]
        assert variance[i] == pytest.approx(other.variance(X[[i]])[0], abs=1e-8)


def test_several_outputs_have_their_own_scale():
    Y = np.column_stack([y, 10.0 * y, -y])
    for make in (LSSVR(C, gamma=gamma), FixedSizeLSSVR(30, C=C, gamma=gamma)):
        single = make.fit(X, y).predict(T, return_std=True)[1]
        one = make.predict_interval(T)
        std = make.fit(X, Y).predict(T, return_std=True)[1]
        np.testing.assert_allclose(std, np.column_stack([single, 10 * single, single]), rtol=1e-6)
        assert make.noise_variance_.shape == (3,)
        assert make.predict(T, return_cov=True)[1].shape == (11, 11, 3)
        ends = make.predict_interval(T)
        assert ends.shape == (11, 3, 2)
        np.testing.assert_allclose(ends[:, 1], 10.0 * one, rtol=1e-6)
        np.testing.assert_allclose(ends[:, 2], -one[:, ::-1], rtol=1e-6)


def test_outputs_tuned_by_themselves():
    Y = np.column_stack([y, rng.normal(size=50)])
    model = LSSVR("cv", gamma="cv", search=PathSearch(per_output=True), cv=5).fit(X, Y)
    std = model.predict(T, return_std=True)[1]
    for j in range(2):
        own = LSSVR(float(model.C_[j]), gamma=float(model.gamma_[j])).fit(X, Y[:, j])
        np.testing.assert_allclose(std[:, j], own.predict(T, return_std=True)[1], rtol=1e-5)
    assert np.all(np.isfinite(model.predict_interval(T)))


def test_sparse_rows_and_single_precision():
    from scipy.sparse import csr_matrix

    wanted = LSSVR(C, gamma=gamma).fit(X, y).predict(T, return_std=True)[1]
    sparse = LSSVR(C, gamma=gamma).fit(csr_matrix(X), y)
    np.testing.assert_allclose(sparse.predict(csr_matrix(T), return_std=True)[1], wanted, rtol=1e-6)
    assert np.all(np.isfinite(sparse.predict_interval(csr_matrix(T))))
    short = LSSVR(C, gamma=gamma).fit(X.astype(np.float32), y)
    std = short.predict(T.astype(np.float32), return_std=True)[1]
    np.testing.assert_allclose(std, wanted, rtol=1e-3)


def test_a_pickle_holds_no_factor():
    model = LSSVR(C, gamma=gamma).fit(X, y)
    before, ends = len(pickle.dumps(model)), model.predict_interval(T)
    after = pickle.dumps(model)
    assert len(after) < before + 8 * 50 * 20  # the factor has 50 * 50 numbers
    np.testing.assert_allclose(pickle.loads(after).predict_interval(T), ends)
    np.testing.assert_allclose(
        pickle.loads(after).predict(T, return_std=True)[1], model.predict(T, return_std=True)[1]
    )


def test_what_has_no_error_bars_says_so():
    with pytest.raises(InvalidInputError, match="Ask for one"):
        LSSVR().fit(X, y).predict(T, return_std=True, return_cov=True)
    with pytest.raises(InvalidInputError, match="reduction=None"):
        LSSVR(reduction="l0").fit(X, y).predict(T, return_std=True)
    with pytest.raises(InvalidInputError, match="posterior"):
        FixedSizeLSSVR(10, reduction="sd", cv=3).fit(X, y).predict(T, return_std=True)
    with pytest.raises(InvalidInputError, match="precomputed"):
        LSSVR(kernel="precomputed").fit(K, y).predict(k_star, return_std=True)
    with pytest.raises(InvalidInputError, match="squared"):
        FixedSizeLSSVR(10, C=1.0, gamma=1.0, loss="huber").fit(X, y).predict_interval(T)
    with pytest.raises(MemoryBudgetError, match="return_std"):
        model = LSSVR(C, gamma=gamma, memory_budget="150 kB").fit(X, y)
        model.predict(np.zeros((500, 2)), return_cov=True)


def test_what_has_no_noise_estimate_has_no_such_attribute():
    assert not hasattr(LSSVR(), "noise_variance_")
    assert hasattr(LSSVR().fit(X, y), "noise_variance_")
    reduced = LSSVR(reduction="l0").fit(X, y)
    assert not hasattr(reduced, "noise_variance_")
    assert "LSSVR" in reduced._repr_html_()


def test_error_bars_follow_rows_that_are_added_and_forgotten():
    Z = X[:15]
    whole = FixedSizeLSSVR(C=C, gamma=gamma, selection=Z).fit(X, y)
    wanted, ends = whole.predict(T, return_std=True)[1], whole.predict_interval(T)
    part = FixedSizeLSSVR(C=C, gamma=gamma, selection=Z).fit(X[:30], y[:30])
    assert not np.allclose(part.predict(T, return_std=True)[1], wanted)
    part.partial_fit(X[30:], y[30:])
    np.testing.assert_allclose(part.predict(T, return_std=True)[1], wanted, rtol=1e-6)
    whole.fit(np.r_[X, T], np.r_[y, np.full(11, 40.0)]).forget(T, np.full(11, 40.0))
    np.testing.assert_allclose(whole.predict(T, return_std=True)[1], wanted, rtol=1e-6)
    np.testing.assert_allclose(whole.predict_interval(T), ends, rtol=1e-6)


def test_rows_of_which_all_of_the_weight_leaves_are_left_out_without_cancellation():
    """Where a row's own weight is all that counts, 1 - r h is rounding unless it is written so."""
    X = np.random.default_rng(5).normal(size=(12, 2))
    y = np.sin(X[:, :1])
    system = DualSystem(RBF(3.0), X, X, 1e10, np.full(12, 3e4), bias=False)
    posterior = DualPosterior(system, y)
    folds = [np.array([i]) for i in range(12)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)  # of the jitter
        left, variance = posterior.leave_out(folds, np.ones(12))
        plain, spread = posterior.leave_out(folds)
    np.testing.assert_allclose(left, plain, rtol=1e-9)
    np.testing.assert_allclose(variance, spread, rtol=1e-6, atol=1e-9)
