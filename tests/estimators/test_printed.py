"""What the papers print, as options of the estimators, against plain NumPy written from the text."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from tests.oracles import fixed_size as fixed_oracle
from tests.oracles import prototypes as prototypes_oracle

import lssvm
from lssvm import FixedSizeLSSVC, FixedSizeLSSVR
from lssvm._core.errors import InvalidInputError
from lssvm.tuning import GridSearch


def numbers(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n) + 2.0


def classes(n=180, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    score = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n)
    return X, np.digitize(score, np.linspace(-0.7, 0.7, k - 1) if k > 2 else [0.2])


@pytest.mark.parametrize("k, n", [(1, 120), (2, 120), (3, 100), (2.5, 100), (20, 50)])
def test_number_of_prototypes_is_the_ceiling_of_k_roots(k, n):
    # [Mall2014, section IV-A]: M = ceil(k sqrt(N))
    X, y = numbers(n)
    model = FixedSizeLSSVR(f"{k} sqrt(n)", C=1.0, gamma=0.3).fit(X, y)
    assert model.n_prototypes_ == min(n, prototypes_oracle.root_size(k, n))


@pytest.mark.parametrize("asked", ["sqrt", "0 sqrt(n)", "-1 sqrt(n)", "3 sqrt(m)"])
def test_other_rules_of_the_number_of_prototypes_are_refused(asked):
    with pytest.raises(InvalidInputError, match="sqrt"):
        FixedSizeLSSVC(asked, C=1.0, gamma=0.3).fit(*classes())


# -- the penalised bias, eq. (7) of [DeBrabanter2010] ---------------------------------------------


def printed_fixed(X, Y, Z, new, C, gamma, weight=None):
    """Outputs of eq. (7) for new rows."""
    K_zz, cut = fixed_oracle.rbf(Z, Z, gamma), 1e-9
    F = fixed_oracle.features(fixed_oracle.rbf(X, Z, gamma), K_zz, cut)
    w, b = fixed_oracle.printed_ridge(F, Y, C, weight)
    return fixed_oracle.features(fixed_oracle.rbf(new, Z, gamma), K_zz, cut) @ w + b


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.01, 3.0, 1e4])
def test_penalised_bias_is_equation_7(C, weighted):
    X, y = numbers()
    s = np.random.default_rng(1).uniform(0.2, 3.0, len(X)) if weighted else None
    new = numbers(30, seed=5)[0]
    model = FixedSizeLSSVR(selection=X[:15], C=C, gamma=0.3, fit_intercept="penalised")
    model.fit(X, y, s)
    expected = printed_fixed(X, y[:, None], X[:15], new, C, 0.3, s)[:, 0]
    np.testing.assert_allclose(model.predict(new), expected, atol=1e-7)
    free = FixedSizeLSSVR(selection=X[:15], C=C, gamma=0.3).fit(X, y, s)
    if C < 1:  # the targets have a mean of 2: the free bias takes it, the penalised one cannot
        assert free.intercept_ > model.intercept_ + 0.2


@pytest.mark.parametrize("multiclass", ["ova", "ovo", "moc-counting"])
@pytest.mark.parametrize("targets", ["label", "fisher"])
def test_penalised_bias_of_classes(multiclass, targets):
    X, y = classes()
    options = {"multiclass": multiclass, "targets": targets, "fit_intercept": "penalised"}
    model = FixedSizeLSSVC(selection=X[:12], C=2.0, gamma=0.5, **options).fit(X, y)
    for j, column in enumerate(model.code_.matrix.T):
        used = np.flatnonzero(column[y])
        side = column[y[used]].astype(float)
        if targets == "fisher":
            plus, minus = np.sum(side > 0), np.sum(side < 0)
            side = np.where(side > 0, len(used) / plus, -len(used) / minus)
        expected = printed_fixed(X[used], side[:, None], X[:12], X, 2.0, 0.5)
        K = fixed_oracle.rbf(X, X[:12], 0.5)
        outputs = K @ model.dual_coef_[:, [j]] + model.intercept_[j]
        np.testing.assert_allclose(outputs, expected, atol=1e-7)


@pytest.mark.parametrize("solver", ["cholesky", "eigen", "tridiagonal"])
@pytest.mark.parametrize("multiclass", ["ova", "ovo"])
def test_penalised_bias_is_tuned_by_refits_with_it(multiclass, solver):
    X, y = classes()
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    options = {"selection": X[:12], "multiclass": multiclass, "fit_intercept": "penalised"}
    search = GridSearch([0.05, 2.0, 50.0], [0.5])
    C = "cv" if multiclass == "ova" else 2.0
    model = FixedSizeLSSVC(C=C, cv=cv, search=search, solver=solver, **options).fit(X, y)
    results = model.cv_results_
    for i, params in enumerate(results["params"]):
        for v, (train, test) in enumerate(cv.split(X, y)):
            refit = FixedSizeLSSVC(**({"C": C} | params), **options).fit(X[train], y[train])
            score = refit.score(X[test], y[test])
            assert results[f"split{v}_test_score"][i] == pytest.approx(score)


def test_penalised_bias_follows_rows_that_come_and_go_on_any_engine(tmp_path):
    X, y = classes(k=2)
    options = {"selection": X[:12], "C": 0.05, "gamma": 0.5, "fit_intercept": "penalised"}
    whole = FixedSizeLSSVC(12, **options).fit(X, y)
    grown = FixedSizeLSSVC(12, **options).fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    np.testing.assert_allclose(grown.decision_function(X), whole.decision_function(X), atol=1e-9)
    less = FixedSizeLSSVC(12, **options).fit(X, y).forget(X[100:], y[100:])
    part = FixedSizeLSSVC(12, **options).fit(X[:100], y[:100])
    np.testing.assert_allclose(less.decision_function(X), part.decision_function(X), atol=1e-9)

    strict = pytest.importorskip("array_api_strict")
    device = FixedSizeLSSVC(12, **options | {"selection": np.arange(12)})
    device.fit(strict.asarray(X), strict.asarray(y))
    outputs = np.asarray(device.decision_function(strict.asarray(X)))
    np.testing.assert_allclose(outputs, whole.decision_function(X), atol=1e-8)

    lssvm.save(whole, tmp_path / "model.lssvm", keep="all")
    again = lssvm.load(tmp_path / "model.lssvm").partial_fit(X[:20], y[:20])
    both = FixedSizeLSSVC(12, **options).fit(np.vstack([X, X[:20]]), np.append(y, y[:20]))
    np.testing.assert_allclose(again.decision_function(X), both.decision_function(X), atol=1e-8)


def test_penalised_bias_refuses_what_has_a_free_one():
    X, y = numbers()
    for options in ({"reduction": "spfs"}, {"loss": "huber"}, {"scoring": "gcv", "C": "cv"}):
        asked = {"C": 1.0, "gamma": 0.3, "fit_intercept": "penalised"} | options
        with pytest.raises(InvalidInputError, match="free bias"):
            FixedSizeLSSVR(20, **asked).fit(X, y)
    fixed = {"C": 1.0, "gamma": 0.3, "fit_intercept": "penalised"}
    with pytest.raises(InvalidInputError, match="moments"):
        FixedSizeLSSVR(20, **fixed, solver="pcg").fit(X, y)
    with pytest.raises(InvalidInputError, match="several rows"):
        FixedSizeLSSVR(20, gamma=0.3, cv="loo", fit_intercept="penalised").fit(X, y)
    with pytest.raises(InvalidInputError, match="no posterior"):
        FixedSizeLSSVR(20, **fixed).fit(X, y).predict(X, return_std=True)
    with pytest.raises(InvalidInputError, match="penalised"):
        FixedSizeLSSVR(20, C=1.0, gamma=0.3, fit_intercept=False).fit(X, y)
