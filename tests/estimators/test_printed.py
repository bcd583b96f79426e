"""What the papers print, as options of the estimators, against plain NumPy from their text."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from tests.oracles import dual as dual_oracle
from tests.oracles import fixed_size as fixed_oracle
from tests.oracles import greedy as greedy_oracle
from tests.oracles import plugin_bandwidth as plugin_oracle
from tests.oracles import prototypes as prototypes_oracle

import lssvm
from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC, GreedyLSSVR
from lssvm._core.errors import InvalidInputError
from lssvm.codes import Coding
from lssvm.data.folds import hash_rows
from lssvm.tuning import (
    CirculantSearch,
    CoupledAnnealing,
    GridSearch,
    PathSearch,
    PositionFolds,
    ShrinkingGridSearch,
)


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
    options = {"multiclass": Coding(multiclass, targets=targets), "fit_intercept": "penalised"}
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


@pytest.mark.parametrize("weighted", [False, True])
def test_without_a_bias_all_rows_as_prototypes_are_the_dual_model(weighted):
    X, y = numbers()
    s = np.random.default_rng(1).uniform(0.2, 3.0, len(X)) if weighted else None
    options = {"C": 2.0, "gamma": 0.3, "fit_intercept": False}
    fixed = FixedSizeLSSVR(selection=X, **options).fit(X, y, s)
    dual = LSSVR(**options).fit(X, y, s)
    new = numbers(30, seed=5)[0]
    assert fixed.intercept_ == 0.0
    np.testing.assert_allclose(fixed.predict(new), dual.predict(new), atol=1e-6)


BIASES = pytest.mark.parametrize("bias", ["penalised", False])


@BIASES
@pytest.mark.parametrize("solver", ["cholesky", "eigen", "tridiagonal"])
@pytest.mark.parametrize("multiclass", ["ova", "ovo"])
def test_bound_bias_is_tuned_by_refits_with_it(multiclass, solver, bias):
    X, y = classes()
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    options = {"selection": X[:12], "multiclass": multiclass, "fit_intercept": bias}
    search = GridSearch([0.05, 2.0, 50.0], [0.5])
    C = "cv" if multiclass == "ova" else 2.0
    model = FixedSizeLSSVC(C=C, cv=cv, search=search, solver=solver, **options).fit(X, y)
    results = model.cv_results_
    for i, params in enumerate(results["params"]):
        for v, (train, test) in enumerate(cv.split(X, y)):
            refit = FixedSizeLSSVC(**({"C": C} | params), **options).fit(X[train], y[train])
            score = refit.score(X[test], y[test])
            assert results[f"split{v}_test_score"][i] == pytest.approx(score)


@BIASES
def test_bound_bias_follows_rows_that_come_and_go_on_any_engine(tmp_path, bias):
    X, y = classes(k=2)
    options = {"selection": X[:12], "C": 0.05, "gamma": 0.5, "fit_intercept": bias}
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


@BIASES
def test_bound_bias_refuses_what_has_a_free_one(bias):
    X, y = numbers()
    for options in ({"reduction": "spfs"}, {"loss": "huber"}, {"scoring": "gcv", "C": "cv"}):
        asked = {"C": 1.0, "gamma": 0.3, "fit_intercept": bias} | options
        with pytest.raises(InvalidInputError, match="free bias"):
            FixedSizeLSSVR(20, **asked).fit(X, y)
    fixed = {"C": 1.0, "gamma": 0.3, "fit_intercept": bias}
    with pytest.raises(InvalidInputError, match="moments"):
        FixedSizeLSSVR(20, **fixed, solver="pcg").fit(X, y)
    with pytest.raises(InvalidInputError, match="several rows"):
        FixedSizeLSSVR(20, gamma=0.3, cv="loo", fit_intercept=bias).fit(X, y)
    with pytest.raises(InvalidInputError, match="no posterior"):
        FixedSizeLSSVR(20, **fixed).fit(X, y).predict(X, return_std=True)
    with pytest.raises(InvalidInputError, match="penalised"):
        FixedSizeLSSVR(20, C=1.0, gamma=0.3, fit_intercept="none").fit(X, y)


# -- a (C, gamma) for every binary problem, eq. (3.13) of [Suykens2002] ----------------------------

CS, GAMMAS = [0.05, 1.0, 30.0], [0.3, 1.0, 4.0]
SQUARES = "neg_mean_squared_error"


@pytest.mark.parametrize("by_error", [True, False], ids=["error", "squares"])
@pytest.mark.parametrize("multiclass", ["ovo", "ova", "moc-counting"])
def test_every_problem_is_tuned_by_refits_of_its_own_rows(multiclass, by_error):
    X, y = classes(n=150, seed=3)
    cv = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
    search, scoring = GridSearch(CS, GAMMAS, per_output=True), None if by_error else SQUARES
    options = {"selection": X[:15], "cv": cv, "search": search, "scoring": scoring}
    model = FixedSizeLSSVC(multiclass=multiclass, **options).fit(X, y)
    k = model.code_.n_problems
    assert len(model.tuning_result_) == k
    Cs, gammas = np.broadcast_to(model.C_, k), np.broadcast_to(model.gamma_, k)
    for j, column in enumerate(model.code_.matrix.T):
        side = column[y].astype(float)
        table = fixed_oracle.tuned_alone(X, side, X[:15], cv, CS, GAMMAS, by_error)
        results = model.tuning_result_[j].cv_results
        for C, gamma, score in zip(
            results["param_C"], results["param_gamma"], results["mean_test_score"], strict=True
        ):
            expected = table[GAMMAS.index(gamma), CS.index(C)]
            assert score == pytest.approx(1 - expected if by_error else -expected, abs=1e-7)
        if not by_error:
            a, b = np.unravel_index(np.argmin(table), table.shape)
            assert (Cs[j], gammas[j]) == (CS[b], GAMMAS[a])
        used = np.flatnonzero(side)
        gamma = float(gammas[j])
        K_zz = fixed_oracle.rbf(X[:15], X[:15], gamma)
        F = fixed_oracle.features(fixed_oracle.rbf(X, X[:15], gamma), K_zz, 1e-9)
        w, b = fixed_oracle.ridge(F[used], side[used, None], float(Cs[j]))
        K = fixed_oracle.rbf(X, X[:15], gamma)
        outputs = K @ model.dual_coef_[:, j] + model.intercept_[j]
        np.testing.assert_allclose(outputs, (F @ w + b)[:, 0], atol=1e-6)


def test_problems_that_differ_get_different_parameters():
    # the first class is told from the rest by a plane, the others by fine stripes
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(400, 2))
    y = np.where(X[:, 1] > 0.5, 0, 1 + (np.sin(6 * X[:, 0]) > 0))
    options = {"multiclass": [[1, 0], [-1, 1], [-1, -1]], "cv": 5, "random_state": 0}
    model = FixedSizeLSSVC(80, search=PathSearch(per_output=True), scoring=SQUARES, **options).fit(
        X, y
    )
    plane, stripes = model.gamma_
    assert stripes > 1.2 * plane
    assert model.score(X, y) > 0.9
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    with pytest.raises(InvalidInputError, match="per_output"):
        model.partial_fit(X[:5], y[:5])


def test_annealing_searches_both_parameters_of_every_problem():
    X, y = classes(n=120)
    search = CoupledAnnealing(starters=3, evaluations=18, simplex=8)
    model = FixedSizeLSSVC(25, multiclass="ovo", cv=4, search=replace(search, per_output=True)).fit(
        X, y
    )
    for result in model.tuning_result_:
        assert len(np.unique(result.cv_results["param_C"])) > 10
        assert len(np.unique(result.cv_results["param_gamma"])) > 10
    assert len(set(model.C_.tolist())) > 1


@pytest.mark.parametrize(
    "options",
    [
        {"multiclass": "ovo"},
        {"multiclass": Coding("ovo", targets="fisher"), "class_weight": "balanced"},
    ],
    ids=str,
)
def test_separate_tuning_is_the_same_on_every_engine(options, tmp_path):
    pd, strict = pytest.importorskip("pandas"), pytest.importorskip("array_api_strict")
    X, y = classes(n=200)
    search = GridSearch(CS, GAMMAS, per_output=True)
    settings = options | {"selection": X[:15], "search": search, "cv": 4}
    host = FixedSizeLSSVC(15, **settings).fit(X, y)
    there = FixedSizeLSSVC(15, **settings | {"selection": np.arange(15)})
    there.fit(strict.asarray(X), strict.asarray(y))
    np.testing.assert_allclose(np.asarray(there.dual_coef_), host.dual_coef_, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(there.C_), host.C_)

    frame = pd.DataFrame(X, columns=["a", "b"]).assign(target=y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    scan = lssvm.scan(tmp_path / "rows.csv", target="target", prepare=False)
    by_position = PositionFolds(4, 0)
    streamed = FixedSizeLSSVC(15, **settings | {"cv": by_position}).fit(scan)
    part = by_position.assign(np.arange(len(X)))
    folds = [(np.flatnonzero(part != v), np.flatnonzero(part == v)) for v in range(4)]
    local = FixedSizeLSSVC(15, **settings | {"cv": folds}).fit(X, y)
    np.testing.assert_allclose(streamed.dual_coef_, local.dual_coef_, atol=1e-6)
    np.testing.assert_array_equal(streamed.C_, local.C_)


def test_leaving_rows_out_one_by_one_and_several_targets():
    X, y = classes(n=60)
    single = [np.array([i]) for i in range(60)]
    folds = [(np.setdiff1d(np.arange(60), test), test) for test in single]
    model = FixedSizeLSSVC(
        selection=X[:10],
        cv="loo",
        multiclass="ovo",
        search=GridSearch(CS, [0.5], per_output=True),
        scoring=SQUARES,
    ).fit(X, y)
    for j, column in enumerate(model.code_.matrix.T):
        side = column[y].astype(float)
        kept = [(train, test) for train, test in folds if side[test[0]] != 0]
        table = fixed_oracle.tuned_alone(X, side, X[:10], kept, CS, [0.5], by_error=False)
        scores = model.tuning_result_[j].cv_results["mean_test_score"]
        np.testing.assert_allclose(np.sort(-scores), np.sort(table[0]), atol=1e-6)
    assert model.predict_proba(X).shape == (60, 3)

    X, y = numbers(150)
    Y = np.column_stack([y, np.sin(9 * X[:, 0])])
    both = FixedSizeLSSVR(60, search=PathSearch(per_output=True), cv=5, random_state=0).fit(X, Y)
    alone = [FixedSizeLSSVR(60, cv=5, random_state=0).fit(X, Y[:, j]) for j in range(2)]
    np.testing.assert_allclose(both.gamma_, [model.gamma_ for model in alone], rtol=1e-12)
    np.testing.assert_allclose(both.predict(X)[:, 1], alone[1].predict(X), atol=1e-6)
    with pytest.raises(InvalidInputError, match="per_output"):
        both.predict(X, return_std=True)


@pytest.mark.parametrize(
    "options",
    [{"n_prototypes": "cv"}, {"gamma": "ard"}, {"reduction": "spfs"}, {"scoring": "f1_macro"},
     {"scoring": "gcv"}, {"solver": "pcg"}],
    ids=str,
)  # fmt: skip
def test_separate_tuning_refuses_what_tunes_all_outputs_together(options):
    X, y = classes(n=60)
    with pytest.raises(InvalidInputError, match="per_output"):
        FixedSizeLSSVC(**{"n_prototypes": 10, "search": PathSearch(per_output=True)} | options).fit(
            X, y
        )


@pytest.mark.parametrize("multiclass", ["ovo", "moc"])
def test_the_dual_model_tunes_problems_by_error_or_squared_error(multiclass):
    X, y = classes(n=90)
    cv = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    options = {"multiclass": multiclass, "cv": cv}
    search = GridSearch(CS, GAMMAS, per_output=True)
    model = LSSVC("cv", gamma="cv", search=search, scoring=SQUARES, **options).fit(X, y)
    k = model.code_.n_problems
    for j, column in enumerate(model.code_.matrix.T):
        side = column[y].astype(float)
        table = fixed_oracle.tuned_alone(X, side, X, cv, CS, GAMMAS, by_error=False)
        a, b = np.unravel_index(np.argmin(table), table.shape)
        chosen = np.broadcast_to(model.C_, k)[j], np.broadcast_to(model.gamma_, k)[j]
        assert chosen == (CS[b], GAMMAS[a])
    with pytest.raises(InvalidInputError, match="squared error"):
        LSSVC("cv", gamma="cv", search=search, scoring="f1_macro", **options).fit(X, y)


# -- the width of greedy models by cross-validation, [Jiao2007, section VII-C] ---------------------


@pytest.mark.parametrize("C", [4.0, "cv"])
def test_gamma_of_a_greedy_model_is_tuned_by_growing_in_every_fold(C):
    X, y = classes(n=80, k=2, seed=1)
    cv = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
    model = GreedyLSSVC(C, gamma="cv", cv=cv, epsilon=0.6).fit(X, y)
    results = model.cv_results_
    assert len(np.unique(results["param_gamma"])) >= 5
    side, grown_at = 2.0 * y - 1.0, None if C == 4.0 else 8.0
    # at the start all rows promise the same: the first in the order of their content is taken
    ordered = [(train[np.argsort(hash_rows(X[train]))], test) for train, test in cv]
    for i in np.linspace(0, len(results["params"]) - 1, 8).astype(int):
        pair = results["param_gamma"][i], results["param_C"][i]
        expected = greedy_oracle.cross_validated(X, side, *pair, ordered, 0.6, grown_at)
        assert results["mean_test_score"][i] == pytest.approx(expected, abs=1e-6)
    chosen = {"C": model.C_, "gamma": model.gamma_, "epsilon": 0.6}
    if C == 4.0:
        again = GreedyLSSVC(**chosen).fit(X, y)
        np.testing.assert_allclose(
            model.decision_function(X), again.decision_function(X), atol=1e-9
        )
    assert model.best_score_ >= results["mean_test_score"].max() - 0.06
    assert model.predict_proba(X).shape == (80, 2)


@pytest.mark.parametrize("C, gamma", [(4.0, 0.7), ("cv", 0.7), (4.0, "cv")])
@pytest.mark.parametrize("open_one", ["epsilon", "max_support"])
def test_epsilon_and_size_of_a_greedy_model_are_tuned_by_growing_in_every_fold(open_one, C, gamma):
    X, y = classes(n=70, k=2, seed=1)
    cv = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
    stop = {"epsilon": 0.4} | {open_one: "cv"}
    model = GreedyLSSVC(C, gamma=gamma, cv=cv, **stop).fit(X, y)
    chosen = {"epsilon": 0.4, "max_support": None}
    chosen[open_one] = getattr(model, f"{open_one}_")
    again = GreedyLSSVC(model.C_, gamma=model.gamma_, **chosen).fit(X, y)
    if C == 4.0:
        outputs = again.decision_function(X)
        np.testing.assert_allclose(model.decision_function(X), outputs, atol=1e-9)
    # no other value has fewer errors in folds that grow their bases by the printed algorithm
    ordered = [(train[np.argsort(hash_rows(X[train]))], test) for train, test in cv]
    grown_at = None if C == 4.0 else 8.0

    def share(value):
        stop = {"epsilon": value} if open_one == "epsilon" else {"epsilon": 0.4, "size": value}
        point = X, 2.0 * y - 1.0, model.gamma_, model.C_, ordered
        return greedy_oracle.cross_validated(*point, grown_at=grown_at, **stop)

    found = share(chosen[open_one])
    others = (0.05, 0.2, 0.4, 0.6, 0.9) if open_one == "epsilon" else (1, 3, 10)
    assert all(share(value) <= found + 1e-9 for value in others)
    assert model.best_score_ == pytest.approx(found, abs=0.06 if gamma == "cv" else 1e-9)


def test_what_epsilon_and_size_by_cross_validation_need():
    X, y = numbers(100)
    model = GreedyLSSVR(50.0, gamma=0.3, epsilon="cv", max_support="cv", cv=4).fit(X, y)
    assert model.score(*numbers(100, seed=4)) > 0.9
    assert 0 < model.epsilon_ <= 0.9 * np.std(y) and "epsilon_" in vars(model)
    with pytest.raises(InvalidInputError, match="max_support='cv'"):
        GreedyLSSVR(epsilon="cv", criterion="kmp").fit(X, y)
    pursuit = GreedyLSSVR(50.0, gamma=0.3, max_support="cv", criterion="kmp", cv=4).fit(X, y)
    assert 1 <= pursuit.max_support_ <= 100 and pursuit.score(X, y) > 0.9


@pytest.mark.parametrize("criterion", ["kmp", "sggp"])
def test_gamma_of_pursuits_and_of_several_classes(criterion):
    X, y = classes(n=120, k=3)
    options = {"criterion": criterion, "max_support": 12, "cv": 4, "random_state": 0}
    model = GreedyLSSVC("cv", gamma="cv", class_weight="balanced", **options).fit(X, y)
    wide = GreedyLSSVC("cv", gamma=30.0, class_weight="balanced", **options).fit(X, y)
    new, labels = classes(n=300, k=3, seed=9)
    assert model.score(new, labels) > wide.score(new, labels) + 0.02
    assert 0.01 < model.gamma_ < 10


def test_gamma_of_a_greedy_regressor_and_what_is_refused():
    X, y = numbers(100)
    model = GreedyLSSVR(50.0, gamma="cv", epsilon=0.1, cv=4).fit(X, y)
    assert model.score(*numbers(100, seed=4)) > 0.9
    best = model.cv_results_["mean_test_score"].max()
    assert model.best_score_ == pytest.approx(best)
    with pytest.raises(InvalidInputError, match="ard"):
        GreedyLSSVR(gamma="ard").fit(X, y)
    with pytest.raises(InvalidInputError, match="cv"):
        GreedyLSSVR(gamma="cv", kernel=lambda A, B: A @ B.T).fit(X, y)


# -- other targets, eqs. (3.22)-(3.23), and what their identity says ------------------------------


@pytest.mark.parametrize("targets", ["fisher", (2.0, 0.5)], ids=str)
def test_targets_are_those_of_the_dual_system(targets):
    X, y = classes(n=90, k=2)
    plus, minus, n = np.sum(y == 1), np.sum(y == 0), len(y)
    t1, t2 = (n / plus, n / minus) if targets == "fisher" else targets
    alpha, b = dual_oracle.kkt_regression(dual_oracle.rbf(X, X, 0.5), np.where(y, t1, -t2), 3.0)
    new = classes(n=40, seed=7)[0]
    model = LSSVC(3.0, gamma=0.5, multiclass=Coding(targets=targets)).fit(X, y)
    expected = dual_oracle.rbf(new, X, 0.5) @ alpha + b
    np.testing.assert_allclose(model.decision_function(new), expected, atol=1e-8)


@pytest.mark.parametrize("targets", ["fisher", (2.0, 0.5)], ids=str)
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_other_targets_move_only_the_threshold_where_the_bias_is_free(C, targets):
    X, y = classes(n=120, k=2)
    plus, minus, n = np.sum(y == 1), np.sum(y == 0), len(y)
    t1, t2 = (n / plus, n / minus) if targets == "fisher" else targets
    a, c = (t1 + t2) / 2, (t1 - t2) / 2
    new = classes(n=50, seed=7)[0]
    options = {"C": C, "gamma": 0.5}
    for kind, more in ((LSSVC, {}), (FixedSizeLSSVC, {"selection": X[:20]})):
        label = kind(**options, **more).fit(X, y).decision_function(new)
        coded = kind(**options, **more, multiclass=Coding(targets=targets))
        other = coded.fit(X, y).decision_function(new)
        np.testing.assert_allclose(other, a * label + c, atol=1e-6)
    bias = {"fit_intercept": "penalised", "selection": X[:20]}
    label = FixedSizeLSSVC(**options, **bias).fit(X, y).decision_function(new)
    coded = FixedSizeLSSVC(**options, **bias, multiclass=Coding(targets=targets))
    other = coded.fit(X, y).decision_function(new)
    assert np.abs(other - (a * label + c)).max() > 1e-4  # a constant is not free there


# -- thresholds of the dual model, section 3.3.1 ---------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", ["label", "fisher"])
def test_the_midpoint_is_half_way_between_the_projected_means(targets, weighted):
    X, y = classes(n=120, k=2)
    s = np.random.default_rng(1).uniform(0.5, 2.0, 120) if weighted else None
    n1, n2 = (np.sum(y == c) if s is None else s[y == c].sum() for c in (1, 0))
    t1, t2 = ((n1 + n2) / n1, (n1 + n2) / n2) if targets == "fisher" else (1.0, 1.0)
    K = dual_oracle.rbf(X, X, 0.5)
    alpha, b = dual_oracle.kkt_regression(K, np.where(y, t1, -t2), 3.0, s)
    z = K @ alpha + b
    means = [np.average(z[y == c], weights=None if s is None else s[y == c]) for c in (0, 1)]
    coding = Coding(targets=targets, threshold="midpoint")
    model = LSSVC(3.0, gamma=0.5, multiclass=coding).fit(X, y, s)
    np.testing.assert_allclose(model.decision_function(X), z - np.mean(means), atol=1e-7)
    np.testing.assert_allclose(np.abs(model.threshold_), abs(np.mean(means)), atol=1e-7)
    plain = LSSVC(3.0, gamma=0.5, multiclass=Coding(threshold="midpoint")).fit(X, y, s)
    agree = plain.predict(X) == model.predict(X)  # Fisher's targets only move the threshold
    assert agree.all()
    # the shifted scores of left-out rows are what probabilities are made of
    assert np.mean((model.predict_proba(X)[:, 1] > 0.5) == model.predict(X)) > 0.9


@pytest.mark.parametrize("tuned", [False, True])
def test_the_threshold_of_the_fewest_out_of_fold_errors(tuned):
    rng = np.random.default_rng(2)
    X = np.vstack([rng.normal(0, 0.4, (150, 2)), rng.normal(0.9, 1.6, (50, 2))])
    y = np.repeat([0, 1], [150, 50])
    cv = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    options = {"search": GridSearch([1.0], [0.05]), "cv": cv} if tuned else {}
    C, gamma = ("cv", "cv") if tuned else (1.0, 0.05)
    moved = LSSVC(C, gamma=gamma, multiclass=Coding(threshold="cv"), **options).fit(X, y)
    folds = cv if tuned else [(np.delete(np.arange(200), i), np.array([i])) for i in range(200)]
    side, scores = 2.0 * y - 1.0, np.empty(200)
    predicted = dual_oracle.refit_predictions(dual_oracle.rbf(X, X, 0.05), side, 1.0, folds)
    for (_, test), values in zip(folds, predicted, strict=True):
        scores[test] = values
    shares = [np.mean((scores > cut) != (side > 0)) for cut in np.linspace(-1.5, 1.5, 601)]
    sign = model_sign(moved)
    found = np.mean((scores > sign * moved.threshold_[0]) != (side > 0))
    zero, best = np.mean((scores > 0) != (side > 0)), min(shares)
    assert found <= best + 0.5 * np.sqrt(best * (1 - best) / 200) + 1e-9 < zero
    plain = LSSVC(1.0, gamma=0.05).fit(X, y)
    shifted = plain.decision_function(X) - sign * moved.threshold_[0]
    np.testing.assert_allclose(moved.decision_function(X), shifted, atol=1e-7)
    with pytest.raises(InvalidInputError, match="threshold"):
        LSSVC(multiclass=Coding(threshold="best")).fit(X, y)


def model_sign(model):
    """Return whether the output of two classes is that of the second class."""
    return float(model.code_.matrix[1, 0])


# -- the whole printed methods by one name ---------------------------------------------------------


def test_the_method_of_2002_is_the_refined_grid_for_every_problem():
    X, y = classes(n=60)
    cv = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    model = LSSVC.suykens2002(cv=cv)
    assert model.get_params()["multiclass"] == "ovo"
    assert LSSVC.suykens2002().cv == 10 and isinstance(model.search, ShrinkingGridSearch)
    model.fit(X, y)
    first_C = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50, 100, 500, 1000]  # Gamma_0
    widths = np.array([0.5, 5, 10, 15, 25, 50, 100, 250, 500]) * np.sqrt(2)  # Sigma_0
    for j, column in enumerate(model.code_.matrix.T):
        results, side = model.tuning_result_[j].cv_results, column[y].astype(float)
        first = results["param_C"][:99], np.round(results["param_gamma"][:99], 9)
        pairs = set(zip(*first, strict=True))
        assert pairs == {(C, g) for C in first_C for g in np.round(widths**-2.0, 9)}
        for i in (0, 30, 98):
            C, gamma = results["param_C"][i], results["param_gamma"][i]
            table = fixed_oracle.tuned_alone(X, side, X, cv, [C], [gamma], by_error=True)
            assert results["mean_test_score"][i] == pytest.approx(1 - table[0, 0], abs=1e-6)
        assert len(results["param_C"]) > 99  # refined
    numbers_model = LSSVR.suykens2002(cv=3).fit(*numbers(80))
    assert numbers_model.score(*numbers(80, seed=3)) > 0.8


def test_the_method_of_2010_is_algorithm_5():
    X, y = classes(n=90, k=2)
    cv = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    model = FixedSizeLSSVC.debrabanter2010(12, cv=cv, random_state=0).fit(X, y)
    chosen = model.selection_
    for column, h in zip(X.T, chosen.bandwidth.value, strict=True):  # algorithm 2
        assert h == pytest.approx(plugin_oracle.plug_in_bandwidth(column), rel=5e-3)
    final = prototypes_oracle.renyi_entropy(model.prototypes_, chosen.bandwidth.value)
    assert chosen.entropy_trace[-1] == pytest.approx(final, abs=1e-9)  # algorithm 1
    assert (np.diff(chosen.entropy_trace) > 0).all()
    results = model.tuning_result_.cv_results
    stages, counts = np.unique(results["stage"], return_counts=True)
    made = dict(zip(stages.tolist(), counts.tolist(), strict=True))
    assert (made["starters"], made["annealing"]) == (5, 85) and 1 <= made["simplex"] <= 70
    side, Z = 2.0 * y - 1.0, model.prototypes_
    for i in (0, 40, 120):  # algorithm 3 with eq. (7), every fold refitted
        C, gamma = results["param_C"][i], results["param_gamma"][i]
        wrong = 0
        for train, test in cv:
            outputs = printed_fixed(X[train], side[train, None], Z, X[test], C, gamma)[:, 0]
            wrong += np.sum((outputs > 0) != (side[test] > 0))
        assert results["mean_test_score"][i] == pytest.approx(1 - wrong / 90, abs=0.012)
    C, gamma = float(np.ravel(model.C_)[0]), float(np.ravel(model.gamma_)[0])
    expected = printed_fixed(X, side[:, None], Z, X, C, gamma)[:, 0]
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-5)
    regressor = FixedSizeLSSVR.debrabanter2010(15, cv=3, random_state=0).fit(*numbers(90))
    assert regressor.score(*numbers(90, seed=3)) > 0.7


@pytest.mark.parametrize("reduction", ["spfs-printed", "ssd-printed", "sv-l0-printed"])
def test_the_method_of_2014_is_its_algorithms(reduction):
    X, y = classes(n=120, k=2)
    model = FixedSizeLSSVC.mall2014(reduction, "2 sqrt(n)", cv=3, random_state=0).fit(X, y)
    assert model.n_prototypes_ == prototypes_oracle.root_size(2, 120)
    np.testing.assert_allclose(
        model.selection_.bandwidth.value, prototypes_oracle.rule_of_thumb(X), rtol=1e-12
    )
    assert model.n_evaluations_ == 25
    # the letter of algorithms 3 and 4 follows from prototypes, C and gamma
    given = {"C": model.C_, "gamma": model.gamma_, "selection": model.selection_.indices}
    again = FixedSizeLSSVC(model.n_prototypes_, reduction=reduction, **given).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), again.decision_function(X), atol=1e-6)
    assert 1 <= len(model.support_) <= model.n_prototypes_


@pytest.mark.parametrize("sampled", [False, True])
def test_the_method_of_2007_tunes_all_free_parameters(sampled):
    X, y = classes(n=60, k=2, seed=1)
    cv = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    model = GreedyLSSVC.jiao2007(sampled=sampled, cv=cv).fit(X, y)
    assert (model.candidates, model.multiclass) == (146 if sampled else None, "ova")
    assert model.epsilon_ in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    ordered = [(train[np.argsort(hash_rows(X[train]))], test) for train, test in cv]
    pair = X, 2.0 * y - 1.0, model.gamma_, model.C_, ordered
    share = greedy_oracle.cross_validated(*pair, model.epsilon_, grown_at=8.0)
    assert model.best_score_ == pytest.approx(share, abs=0.06)


def test_the_method_of_2011_is_algorithm_2():
    X, y = classes(n=80, k=2)
    model = LSSVC.ding2011()
    assert model.cv == 5 and model.search == CirculantSearch.ding2011()
    model.fit(X, y)
    assert model.n_evaluations_ == 143
    K = dual_oracle.rbf(X, X, model.gamma_)
    alpha, b = dual_oracle.kkt_regression(K, 2.0 * y - 1.0, model.C_)
    np.testing.assert_allclose(model.decision_function(X), K @ alpha + b, atol=1e-6)
