"""Explicit trend functions, eqs. (3.67) and (3.68) of [Suykens2002]."""

import numpy as np
import pytest
from tests.oracles.dual import rbf
from tests.oracles.gaussian_process import evidence, restricted_evidence, with_trend

import lssvm
from lssvm import LSSVR, FixedSizeLSSVR
from lssvm._core.errors import InvalidInputError
from lssvm.kernels import RBF, Linear, Matern, Trend, make_kernel
from lssvm.kernels.factory import has_gamma

rng = np.random.default_rng(0)
X, new = rng.normal(size=(40, 2)), 2.0 * rng.normal(size=(15, 2))
y = 3.0 + 2.0 * X[:, 0] - X[:, 1] + np.sin(3 * X[:, 0]) + 0.05 * rng.normal(size=40)


def waves(A):
    return np.column_stack([np.sin(A[:, 0]), np.cos(A[:, 0]), A[:, 1] ** 3])


def quadratic(A):
    return np.column_stack([A, A[:, 0] ** 2, A[:, 0] * A[:, 1], A[:, 1] ** 2])


FUNCTIONS = {
    "constant": lambda A: np.ones((len(A), 1)),
    "linear": lambda A: A,
    "quadratic": quadratic,
    "waves": waves,
}


def spread(q, full):
    if not full:
        return 2.5, 2.5 * np.eye(q)
    root = np.random.default_rng(q).normal(size=(q, q))
    return root @ root.T, root @ root.T


@pytest.mark.parametrize("full", [False, True], ids=["number", "matrix"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_model_is_the_predictive_mean_of_the_random_function(name, full):
    f = FUNCTIONS[name]
    F, F_new = f(X), f(new)
    given, S = spread(F.shape[1], full)
    kernel = Trend(RBF(0.7), waves if name == "waves" else name, given)
    expectation = np.linspace(-1, 1, F.shape[1])
    R, R_new = rbf(X, X, 0.7), rbf(new, X, 0.7)
    expected, a = with_trend(F, F_new, R, R_new, S, expectation, y, 20.0)

    model = LSSVR(20.0, kernel=kernel, fit_intercept=False)
    model.fit(X, y - kernel.mean(X, expectation))
    found = model.predict(new) + kernel.mean(new, expectation)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    coefficients = kernel.coefficients(model.support_vectors_, model.dual_coef_)[:, 0]
    np.testing.assert_allclose(expectation + coefficients, a, atol=1e-8)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_diagonal_and_blocks(name):
    f = FUNCTIONS[name]
    given, S = spread(f(X).shape[1], True)
    kernel = Trend(Matern(0.4), waves if name == "waves" else name, given)
    expected = f(X) @ S @ f(new).T + Matern(0.4)(X, new)
    np.testing.assert_allclose(kernel(X, new), expected, rtol=1e-12)
    out = np.empty((40, 15))
    np.testing.assert_allclose(kernel(X, new, out), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X, X)), rtol=1e-12)


@pytest.mark.parametrize("name", ["constant", "linear", "quadratic"])
def test_gradient_is_that_of_finite_differences(name):
    given, _ = spread(FUNCTIONS[name](X).shape[1], True)
    kernel, coef, h = Trend(RBF(0.3), name, given), rng.normal(size=(40, 2)), 1e-6
    found = kernel.gradient(new, X, coef)
    for j in range(2):
        step = h * np.eye(2)[j]
        slope = (kernel(new + step, X) - kernel(new - step, X)) @ coef / (2 * h)
        np.testing.assert_allclose(found[:, :, j], slope, rtol=1e-5, atol=1e-5)


def test_gamma_of_the_estimator_reaches_the_kernel_inside(tmp_path):
    open_kernel = Trend(RBF(None), "linear", 5.0)
    assert has_gamma(open_kernel) and not has_gamma(Trend(Linear()))
    assert make_kernel(open_kernel, gamma=0.4).gamma == 0.4
    model = LSSVR("cv", gamma="cv", kernel=open_kernel, cv=5).fit(X, y)
    assert model.record_.expansion.kernel.gamma == model.gamma_
    fixed = FixedSizeLSSVR(20, kernel=open_kernel, cv=5).fit(X, y)
    assert fixed.predict([[30.0, 0.0]])[0] > 30  # follows the trend where RBF would not
    lssvm.save(model, tmp_path / "trend.lssvm")
    again = lssvm.load(tmp_path / "trend.lssvm")
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    strict = pytest.importorskip("array_api_strict")
    there = np.asarray(open_kernel.with_gamma(0.4)(strict.asarray(X), strict.asarray(new)))
    np.testing.assert_allclose(there, open_kernel.with_gamma(0.4)(X, new), rtol=1e-12)


@pytest.mark.parametrize(
    "given",
    [
        ("rbf",),
        (RBF(1.0), "cubic"),
        (RBF(1.0), 3),
        (RBF(1.0), "linear", -1.0),
        (RBF(1.0), "linear", np.array([[1.0, 2.0], [2.0, 1.0]])),
        (Trend(RBF(1.0)),),
    ],
    ids=str,
)
def test_what_is_no_trend_is_refused(given):
    with pytest.raises(InvalidInputError):
        Trend(*given)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InvalidInputError, match="one row and column"):
        Trend(RBF(1.0), "linear", np.eye(3))(X, X)
    with pytest.raises(InvalidInputError, match="per row"):
        Trend(RBF(1.0), lambda A: A[:, 0])(X, X)
    with pytest.raises(InvalidInputError, match="gradient"):
        Trend(RBF(1.0), waves).gradient(X, X, np.ones((40, 1)))


@pytest.mark.parametrize("bias", [True, False])
def test_the_covariance_of_the_trend_and_the_noise_have_the_largest_evidence(bias):
    rng = np.random.default_rng(1)
    rows = rng.uniform(-2, 2, size=(60, 2))
    target = 3.0 * rows[:, 0] + np.sin(3 * rows[:, 1]) + 0.2 * rng.normal(size=60) + 4.0 * bias
    kernel, C = Trend(RBF(1.0), "linear").learned(rows, target, bias=bias)
    S = kernel.covariance

    def value(variances, C):
        K = RBF(1.0)(rows, rows) + rows @ np.diag(variances) @ rows.T
        return (restricted_evidence if bias else evidence)(K, target, C)[0]

    best = value(np.diag(S), C)
    for factor in (0.8, 1.25):
        assert value(np.diag(S) * [factor, 1.0], C) < best
        assert value(np.diag(S), C * factor) < best
    assert S[0, 0] > 3 * S[1, 1]  # the second column has no trend
    model = LSSVR(C, kernel=kernel, fit_intercept=bias).fit(rows, target)
    far = np.array([[6.0, 0.0]])
    assert model.predict(far)[0] == pytest.approx(18.0 + 4.0 * bias, abs=2.0)
