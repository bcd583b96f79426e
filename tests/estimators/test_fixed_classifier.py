from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_score
from tests.outputs import raw_outputs

from lssvm import LSSVC
from lssvm._core.errors import InvalidInputError
from lssvm.codes import Coding
from lssvm.estimators.fixed_size import FixedSizeLSSVC
from lssvm.kernels import Polynomial
from lssvm.tuning import GridSearch


def data(n=180, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    cuts = np.linspace(-0.6, 0.6, classes - 1) if classes > 2 else [0.0]
    return X, np.digitize(score, cuts)


@pytest.mark.parametrize(
    ("options", "threshold"), [({"C": 3.0}, "zero"), ({"C": "cv", "cv": 3}, "cv")], ids=str
)
def test_a_given_code_may_call_the_first_of_two_classes_plus(options, threshold):
    X, y = data()
    plain, turned = (
        FixedSizeLSSVC(60, gamma=0.2, multiclass=Coding(code, threshold=threshold), **options)
        for code in ("auto", [[1], [-1]])
    )
    plain.fit(X, y), turned.fit(X, y)
    assert turned.score(X, y) > 0.8
    np.testing.assert_allclose(turned.decision_function(X), plain.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(turned.predict_proba(X), plain.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {"multiclass": "ovo"},
        {"multiclass": "ova"},
        {"multiclass": Coding("ova", targets="fisher")},
        {"multiclass": Coding("ovo", targets=(1.0, 2.0)), "class_weight": "balanced"},
        {"multiclass": "ova", "class_weight": {1: 3.0}},
        {"multiclass": Coding("ova", targets="fisher"), "class_weight": "balanced"},
    ],
    ids=str,
)
def test_all_rows_as_prototypes_is_the_dual_model(classes, options):
    X, y = data(classes=classes)
    s = np.random.default_rng(1).random(len(X)) + 0.1
    options = {"C": 3.0, "gamma": 0.2, **options}
    fixed = FixedSizeLSSVC(len(X), **options).fit(X, y, s)
    dual = LSSVC(solver="cholesky", **options).fit(X, y, s)
    new = data(50, seed=2)[0]
    np.testing.assert_allclose(fixed.decision_function(new), dual.decision_function(new), atol=1e-6)
    np.testing.assert_array_equal(fixed.predict(new), dual.predict(new))


def test_cross_validated_accuracy_equals_refits():
    X, y = data(200)
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    model = FixedSizeLSSVC(selection=X[:30], cv=cv, search=GridSearch()).fit(X, y)
    results = model.cv_results_
    for i in np.linspace(0, len(results["params"]) - 1, 9).astype(int):
        params = results["params"][i]
        for v, (train, test) in enumerate(cv.split(X, y)):
            refit = FixedSizeLSSVC(selection=X[:30], **params).fit(X[train], y[train])
            assert results[f"split{v}_test_score"][i] == pytest.approx(
                refit.score(X[test], y[test])
            )


@pytest.mark.parametrize("multiclass", ["auto", "ova", "moc"])
def test_tuning_finds_a_good_model_by_itself(multiclass):
    X, y = data(700, classes=3)
    model = FixedSizeLSSVC(60, multiclass=multiclass).fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) > 0.72
    assert model.decision_function(X).shape == (700, 3)


def test_pairs_have_their_own_C():
    X, y = data(400, classes=4)
    model = FixedSizeLSSVC(40, multiclass="ovo").fit(X, y)
    assert model.C_.shape == (6,)
    assert len(set(model.C_)) > 1
    assert np.isnan(model.cv_results_["param_C"]).all()


def test_a_pair_is_a_model_of_its_two_classes():
    X, y = data(400, classes=4)
    options = {"selection": X[:40], "C": 10.0, "gamma": 0.1}
    model = FixedSizeLSSVC(multiclass="ovo", **options).fit(X, y)
    used = np.isin(y, [1, 3])
    matrix = model.code_.matrix
    column = int(np.flatnonzero((matrix[1] == -1) & (matrix[3] == 1))[0])
    pair = FixedSizeLSSVC(**options).fit(X[used], y[used])
    np.testing.assert_allclose(
        raw_outputs(pair, X)[:, 0], raw_outputs(model, X)[:, column], rtol=1e-7, atol=1e-8
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"multiclass": "ova"},
        {"multiclass": Coding("ova", targets="fisher"), "class_weight": "balanced"},
    ],
    ids=str,
)
def test_adding_and_forgetting_rows_equal_a_refit(options):
    X, y = data(300, classes=3)
    labels = np.array(["a", "b", "c"])[y]
    s = np.random.default_rng(4).random(300) + 0.5
    options = {"selection": X[:25], "gamma": 0.1, "C": 10.0, **options}
    model = FixedSizeLSSVC(**options).fit(X[:200], labels[:200], s[:200])
    model.partial_fit(X[200:], labels[200:], sample_weight=s[200:])
    whole = FixedSizeLSSVC(**options).fit(X, labels, s)
    np.testing.assert_allclose(raw_outputs(model, X), raw_outputs(whole, X), atol=1e-8)
    model.forget(X[:200], labels[:200], s[:200])
    part = FixedSizeLSSVC(**options).fit(X[200:], labels[200:], s[200:])
    np.testing.assert_allclose(raw_outputs(model, X), raw_outputs(part, X), atol=1e-6)
    with pytest.raises(InvalidInputError, match="not seen"):
        model.partial_fit(X[:2], ["a", "d"])
    with pytest.raises(InvalidInputError, match="classes"):
        model.partial_fit(X[:2], ["a", "b"], classes=["a", "b"])
    np.testing.assert_allclose(raw_outputs(model, X), raw_outputs(part, X), atol=1e-6)


def test_forgetting_a_whole_class_is_refused():
    X, y = data(100, classes=3)
    model = FixedSizeLSSVC(20, C=1.0, gamma=0.1, multiclass="ovo").fit(X, y)
    with pytest.raises(InvalidInputError, match="class"):
        model.forget(X[y == 1], y[y == 1])


@pytest.mark.parametrize("multiclass", ["ovo", "ova"])
def test_weights_are_repeats(multiclass):
    X, y = data(180, classes=3)
    s = np.random.default_rng(3).integers(0, 3, len(X))  # most rows differ when they are repeated
    options = {"selection": X[:25], "gamma": 0.1, "multiclass": multiclass}
    weighted = FixedSizeLSSVC(**options).fit(X, y, s)
    repeated = FixedSizeLSSVC(**options).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    np.testing.assert_allclose(raw_outputs(weighted, X), raw_outputs(repeated, X), atol=1e-6)


@pytest.mark.parametrize("multiclass", ["ovo", "ova"])
def test_number_of_prototypes_by_cross_validation(multiclass):
    X, y = data(300, classes=3)
    model = FixedSizeLSSVC("cv", gamma=0.1, cv=4, multiclass=multiclass).fit(X, y)
    assert model.n_prototypes_ in model.size_results_["n_prototypes"]
    refit = FixedSizeLSSVC(
        selection=model.prototypes_, gamma=0.1, C=float(np.ravel(model.C_)[0])
    ).fit(X, y)
    assert refit.dual_coef_.shape[0] == model.dual_coef_.shape[0]
    assert model.best_score_ == pytest.approx(model.size_results_["mean_test_score"].max())


def test_scorers_see_out_of_fold_decisions():
    X, y = data(200)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    options = {"selection": X[:30], "gamma": 0.1, "C": 10.0}
    search = GridSearch(gamma=(0.1, 0.4))
    tuned = {**options, "gamma": "cv", "search": search, "cv": folds, "scoring": "roc_auc"}
    model = FixedSizeLSSVC(**tuned).fit(X, y)
    for gamma, score in zip(
        model.cv_results_["param_gamma"], model.cv_results_["mean_test_score"], strict=True
    ):
        refits = FixedSizeLSSVC(**{**options, "gamma": float(gamma)})
        expected = cross_val_score(refits, X, y, cv=folds, scoring="roc_auc").mean()
        assert score == pytest.approx(expected, rel=1e-9)


def test_rare_classes_survive_cross_validation():
    X, y = data(120, classes=3)
    y[y == 2] = 1
    y[:2] = 2
    model = FixedSizeLSSVC(30, gamma=0.1, multiclass="ovo").fit(X, y)
    assert np.isfinite(model.dual_coef_).all()


def test_one_class_and_zero_class_weight_are_refused():
    X, y = data(50)
    with pytest.raises(InvalidInputError, match="one class"):
        FixedSizeLSSVC().fit(X, np.ones(50))
    with pytest.raises(InvalidInputError, match="class_weight"):
        FixedSizeLSSVC(class_weight={0: 0.0}).fit(X, y)


def test_rates_that_cannot_be_told_apart_are_decided_by_the_squared_error():
    X, y = data(n=300, seed=3)
    y = np.where(np.random.default_rng(0).random(300) < 0.2, 1 - y, y)  # noise: a wide plateau
    grid = GridSearch(C=np.geomspace(1e-2, 1e3, 12), gamma=np.geomspace(0.02, 1.0, 5))
    model = FixedSizeLSSVC(40, search=grid, cv=5, random_state=0).fit(X, y)
    results = model.cv_results_
    rate, tie = results["mean_test_score"], results["mean_tie_score"]
    best = rate.max()
    alike = rate >= best - 0.5 * np.sqrt(best * (1 - best) / len(y))
    chosen = np.argmin(results["rank_test_score"])
    assert alike.sum() > 1
    assert tie[chosen] == tie[alike].max() > tie[np.argmax(rate)]
    scored = FixedSizeLSSVC(40, search=grid, cv=5, random_state=0, scoring="accuracy").fit(X, y)
    assert scored.best_score_ == pytest.approx(best)  # a scorer is taken at its word


def skewed(n=600, classes=2, seed=0):
    """Return classes of different shapes: a narrow one and wide ones to one side of it."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    wide = rng.exponential(4.0, n) + 0.5
    X = np.column_stack([rng.normal(0.0, 0.3, n), rng.normal(0.0, 0.3, n)])
    for c in range(1, classes):
        X[y == c, c - 1] = wide[y == c]
    return X, y


@pytest.mark.parametrize("classes", [2, 3])
def test_threshold_by_cross_validation(classes):
    X, y = skewed(classes=classes)
    kernel = {"kernel": Polynomial(degree=1, coef0=0.0), "gamma": 1.0}
    options = kernel | {"multiclass": "ovo", "random_state": 0}
    plain = FixedSizeLSSVC(**options).fit(X[:300], y[:300])
    moved = clone(plain).set_params(multiclass=Coding("ovo", threshold="cv"))
    moved.fit(X[:300], y[:300])
    np.testing.assert_array_equal(plain.threshold_, 0.0)
    assert np.any(moved.threshold_ != 0)
    np.testing.assert_allclose(moved.intercept_, plain.intercept_ - moved.threshold_)
    np.testing.assert_array_equal(moved.dual_coef_, plain.dual_coef_)
    assert moved.score(X[300:], y[300:]) > plain.score(X[300:], y[300:]) + 0.02
    # probabilities follow the moved outputs
    assert np.mean(moved.predict_proba(X).argmax(1) == moved.predict(X)) > 0.9
    # rows that come and go leave the thresholds where they are
    thresholds = moved.threshold_.copy()
    before = moved.intercept_.copy()
    moved.partial_fit(X[300:350], y[300:350]).forget(X[300:350], y[300:350])
    np.testing.assert_array_equal(moved.threshold_, thresholds)
    np.testing.assert_allclose(moved.intercept_, before, atol=1e-8)


def test_threshold_needs_out_of_fold_outputs():
    X, y = skewed(100)
    for options in (
        {"C": 1.0, "gamma": 0.1},
        {"multiclass": Coding(threshold="cv", calibration=None)},
        {"reduction": "spfs"},
    ):
        model = FixedSizeLSSVC(20, **{"multiclass": Coding(threshold="cv")} | options)
        with pytest.raises(InvalidInputError, match="threshold='cv' needs"):
            model.fit(X, y)
        assert not hasattr(model, "dual_coef_")
    with pytest.raises(InvalidInputError, match="threshold='best'"):
        FixedSizeLSSVC(20, multiclass=Coding(threshold="best")).fit(X, y)


@pytest.mark.parametrize("multiclass", ["auto", "ova"])
def test_classes_may_come_with_later_rows(multiclass):
    X, y = data(300, classes=4)
    first = np.isin(y, np.unique(y)[:2])
    options = {"C": 1.0, "gamma": 0.5}
    model = FixedSizeLSSVC(20, multiclass=multiclass, **options)
    model.partial_fit(X[first], y[first], classes=np.unique(y))
    assert set(model.predict(X)) <= set(y[first])
    model.partial_fit(X[~first], y[~first])
    whole = FixedSizeLSSVC(selection=model.prototypes_, multiclass="ova", **options).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-9)


def test_classes_that_cannot_come_later_are_refused():
    X, y = data(300, classes=3)
    some = y != y[0]
    for options in (
        {"multiclass": "ovo"},
        {"class_weight": "balanced"},
        {"multiclass": Coding(targets="fisher")},
    ):
        with pytest.raises(InvalidInputError, match="The first rows have none of the classes"):
            FixedSizeLSSVC(10, **options).partial_fit(X[some], y[some], classes=np.unique(y))
    with pytest.raises(InvalidInputError, match="not among classes"):
        FixedSizeLSSVC(10).partial_fit(X, y, classes=np.unique(y[some]))


def test_updates_of_several_threads_are_all_learned():
    X, y = data(600)
    options = {"C": 1.0, "gamma": 0.5}
    model = FixedSizeLSSVC(15, **options).fit(X[:100], y[:100])
    with ThreadPoolExecutor(8) as pool:
        parts = [slice(start, start + 10) for start in range(100, 600, 10)]
        list(pool.map(lambda part: model.partial_fit(X[part], y[part]), parts))
    assert sum(part.n for part in model.moments_) == 600
    whole = FixedSizeLSSVC(selection=model.prototypes_, **options).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-8)
