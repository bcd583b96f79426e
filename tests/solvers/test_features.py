"""The fixed-size model in feature space: QR factors, and the fits that are made of them."""

import numpy as np
import pytest
from sklearn.model_selection import KFold
from tests.oracles import fixed_size as oracle

from lssvm import FixedSizeLSSVC, FixedSizeLSSVR, load, save, scan
from lssvm._core.errors import InvalidInputError
from lssvm.kernels import RBF
from lssvm.solvers.features import Factor, feature_map
from lssvm.tuning import GridSearch, PathSearch, PositionFolds

rng = np.random.default_rng(0)
F, Y, S = rng.normal(size=(60, 5)), rng.normal(size=(60, 2)) + 3.0, rng.uniform(0.2, 3.0, 60)
CS = np.array([0.01, 1.0, 1e4])


def smooth(n, seed):
    """Near-noiseless rows of two columns."""
    X = np.random.default_rng(seed).uniform(-3, 3, size=(n, 2))
    f = np.sin(2 * X[:, 0]) * np.cos(1.5 * X[:, 1]) + 0.5 * np.sin(X[:, 0] * X[:, 1])
    return X, f + 1e-4 * np.random.default_rng(seed + 5).normal(size=n)


def error(model, n=500):
    X, y = smooth(n, 1)
    return np.sqrt(np.mean((model.predict(X) - y) ** 2)) / y.std()


@pytest.mark.parametrize("weight", [None, S])
@pytest.mark.parametrize("bias", ["free", "penalised", "none"])
def test_factors_of_parts_solve_the_printed_systems(weight, bias):
    parts = [slice(0, 3), slice(3, 40), slice(40, 60)]
    cut = [Factor.of(F[p], Y[p], None if weight is None else weight[p]) for p in parts]
    factor = cut[0] + cut[1] + cut[2]
    W, b = factor.solve(CS, bias)
    for i, C in enumerate(CS):
        if bias == "none":
            s = np.ones(60) if weight is None else weight
            w = np.linalg.solve(F.T @ (s[:, None] * F) + np.eye(5) / C, F.T @ (s[:, None] * Y))
            expected = w, np.zeros(2)
        else:
            expected = (oracle.ridge if bias == "free" else oracle.printed_ridge)(F, Y, C, weight)
        np.testing.assert_allclose(W[i], expected[0], atol=1e-10)
        np.testing.assert_allclose(b[i], expected[1], atol=1e-10)
    errors = (Y - F @ W - b[:, None]) ** 2
    mass = np.ones(60) if weight is None else weight
    np.testing.assert_allclose(factor.squared_error(W, b), mass @ errors, rtol=1e-9)
    assert (factor.n, factor.weight) == (60, pytest.approx(mass.sum()))


@pytest.mark.parametrize(
    "cv", [KFold(5), [(np.arange(50, 150), np.arange(40)), (np.arange(90), np.arange(90, 150))]]
)
def test_cross_validation_is_algorithm_3(cv):
    X, y = smooth(150, 0)
    search = GridSearch([0.1, 10.0], [2.0])
    model = FixedSizeLSSVR(
        selection=X[:12], solver="features", fit_intercept="penalised", cv=cv, search=search
    ).fit(X, y)
    K_zz = oracle.rbf(X[:12], X[:12], 2.0)
    features = oracle.features(oracle.rbf(X, X[:12], 2.0), K_zz, 0.0)
    splits = list(cv.split(X)) if isinstance(cv, KFold) else cv
    for i, params in enumerate(model.cv_results_["params"]):
        if isinstance(cv, KFold):
            tests = [test for _, test in splits]
            left = oracle.fast_cross_validation(features, y[:, None], params["C"], tests)
        else:
            fits = [oracle.printed_ridge(features[a], y[a, None], params["C"]) for a, _ in splits]
            left = [
                y[b, None] - features[b] @ w - c
                for (_, b), (w, c) in zip(splits, fits, strict=True)
            ]
        for v, residual in enumerate(left):
            score = model.cv_results_[f"split{v}_test_score"][i]
            assert score == pytest.approx(-np.mean(residual**2), rel=1e-9)


@pytest.mark.parametrize(("gamma", "C"), [(0.1, 1e8), (0.3, 1e7)])
def test_features_resolve_what_moments_cannot(gamma, C):
    X, y = smooth(1000, 0)
    options = {"selection": X[:200], "C": C, "gamma": gamma}
    moments = FixedSizeLSSVR(solver="cholesky", **options).fit(X, y)
    features = FixedSizeLSSVR(solver="features", **options).fit(X, y)
    auto = FixedSizeLSSVR(**options).fit(X, y)
    assert error(features) < 0.6 * error(moments)
    K_zz = oracle.rbf(X[:200], X[:200], gamma)
    rank = feature_map(RBF(gamma), X[:200]).rank
    cut = np.linalg.eigvalsh(K_zz)[-rank - 1]
    printed = oracle.features(oracle.rbf(X, X[:200], gamma), K_zz, cut)
    w, b = oracle.ridge(printed, y[:, None], C)
    new = smooth(500, 1)[0]
    expected = oracle.features(oracle.rbf(new, X[:200], gamma), K_zz, cut) @ w + b
    np.testing.assert_allclose(features.predict(new), expected[:, 0], atol=1e-3)
    np.testing.assert_array_equal(auto.predict(new), features.predict(new))
    assert (moments.solver_, features.solver_, auto.solver_) == ("direct", "features", "features")


def test_features_are_taken_where_conditioning_asks_for_them(tmp_path):
    X, y = smooth(1000, 0)
    options = {"selection": X[:200], "cv": 4, "search": PathSearch(max_points=7)}
    plain = FixedSizeLSSVR(solver="cholesky", **options).fit(X, y)
    auto = FixedSizeLSSVR(**options).fit(X, y)
    assert auto.solver_ == "features" and auto.best_score_ > plain.best_score_
    assert len(np.unique(auto.cv_results_["param_gamma"])) <= 3
    assert len(auto.sample_results_["params"]) > 3
    std = auto.predict(X[:5], return_std=True)[1]
    assert np.all(std > 0) and auto.predict_interval(X[:5]).shape == (5, 2)
    save(auto, tmp_path / "m.lssvm", keep="all")
    again = load(tmp_path / "m.lssvm")
    np.testing.assert_array_equal(again.predict(X), auto.predict(X))
    again.partial_fit(X[:50], y[:50]).forget(X[:50], y[:50])
    assert error(again) < 2 * error(plain)
    noisy = FixedSizeLSSVR(**options).fit(X, y + np.random.default_rng(3).normal(size=1000))
    assert noisy.solver_ == "direct"


def test_features_equal_moments_where_both_resolve_all(tmp_path):
    X, y = smooth(300, 0)
    options = {"selection": X[:15], "search": GridSearch([1.0, 30.0], [3.0])}
    folds = PositionFolds(4, 0)
    fits = {}
    for solver in ("cholesky", "features"):
        for cv, data in ((folds, scan(X, target=y, prepare=False)), (4, X)):
            model = FixedSizeLSSVR(solver=solver, cv=cv, **options)
            fits[solver, cv == 4] = model.fit(data, *([y] if cv == 4 else []))
    for known in (True, False):
        one, two = fits["cholesky", known], fits["features", known]
        np.testing.assert_allclose(two.predict(X), one.predict(X), atol=1e-9)
        scores = [m.cv_results_["mean_test_score"] for m in (one, two)]
        np.testing.assert_allclose(scores[0], scores[1], rtol=1e-9)
    classes = FixedSizeLSSVC(solver="features", multiclass="ova", cv=4, **options)
    same = FixedSizeLSSVC(solver="cholesky", multiclass="ova", cv=4, **options)
    labels = np.digitize(y, [-0.3, 0.3])
    found, wanted = (m.fit(X, labels).decision_function(X) for m in (classes, same))
    np.testing.assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [{"reduction": "spfs"}, {"loss": "huber"}, {"scoring": "gcv", "C": "cv"},
         {"cv": "loo", "C": "cv"},
     {"n_prototypes": "cv"}],
    ids=str,
)  # fmt: skip
def test_what_needs_moments_is_refused(options):
    X, y = smooth(60, 0)
    settings = {"n_prototypes": 10, "C": 1.0, "gamma": 0.5, "solver": "features"} | options
    with pytest.raises(InvalidInputError, match=r"moments|several rows"):
        FixedSizeLSSVR(**settings).fit(X, y)
    with pytest.raises(InvalidInputError, match="one system"):
        FixedSizeLSSVC(10, C=1.0, gamma=0.5, solver="features").fit(X, np.digitize(y, [-0.5, 0.5]))
