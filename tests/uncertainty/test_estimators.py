"""Intervals, probabilities and sets of the public classes."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, TimeSeriesSplit

from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm.codes import Coding
from lssvm.tuning import GridSearch, PathSearch

iris = load_iris()
wide = make_classification(
    600, 6, n_informative=4, n_redundant=0, n_classes=3, class_sep=0.8, random_state=0
)
moons = make_moons(400, noise=0.35, random_state=0)

REGRESSORS = [
    LSSVR(10.0, gamma=1.0),
    LSSVR("cv", gamma="cv"),
    FixedSizeLSSVR(40, C=10.0, gamma=1.0),
    FixedSizeLSSVR(40),
    FixedSizeLSSVR("cv"),
    FixedSizeLSSVR(40, cv="loo"),
    FixedSizeLSSVR(40, reduction="spfs"),
    FixedSizeLSSVR(40, scoring="evidence"),
]
CLASSIFIERS = [
    LSSVC(10.0, gamma=0.3),
    LSSVC("cv", gamma="cv"),
    LSSVC("cv", multiclass="ova"),
    LSSVC(10.0, gamma=0.3, multiclass="ecoc"),
    LSSVC("cv", search=PathSearch(per_output=True)),
    LSSVC(10.0, gamma=0.3, reduction="prune"),
    FixedSizeLSSVC(60, C=10.0, gamma=0.3),
    FixedSizeLSSVC(60),
    FixedSizeLSSVC(60, multiclass="ova"),
    FixedSizeLSSVC(60, C=10.0, gamma=0.3, multiclass="moc", class_weight="balanced"),
    FixedSizeLSSVC("cv", cv="loo", multiclass="ova"),
    FixedSizeLSSVC(60, reduction="spfs"),
    FixedSizeLSSVC(60, reduction="sd"),
    FixedSizeLSSVC(60, scoring="gcv"),
    GreedyLSSVC(10.0, gamma=0.3),
    GreedyLSSVC("cv", gamma=0.3, multiclass="ovo"),
    GreedyLSSVC(10.0, gamma=0.3, criterion="kmp", max_support=40),
]


def sample(n, seed):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-3, 3, size=(n, 1))
    return X, np.sin(X[:, 0]) + 0.3 * generator.standard_t(4, size=n)


@pytest.mark.parametrize("model", REGRESSORS, ids=repr)
def test_intervals_cover_as_often_as_they_promise(model):
    X, y = sample(400, 1)
    new, truth = sample(4000, 2)
    model = clone(model).fit(X, y)
    widths = []
    for coverage in (0.5, 0.9, 0.95):
        low, high = model.predict_interval(new, coverage=coverage).T
        chance = 2.5 * np.sqrt(coverage * (1 - coverage) / 400) + 0.005
        assert np.mean((low <= truth) & (truth <= high)) == pytest.approx(coverage, abs=chance)
        widths.append(np.mean(high - low))
    assert widths == sorted(widths)
    np.testing.assert_allclose(
        pickle.loads(pickle.dumps(model)).predict_interval(new[:5], 0.95).T, [low[:5], high[:5]]
    )


def test_intervals_use_the_folds_of_the_tuning():
    """Rows of a group are nearly equal: only folds that keep groups together see the spread."""
    generator = np.random.default_rng(0)
    group = np.repeat(np.arange(40), 10)
    X = generator.normal(size=(40, 3))[group] + 1e-3 * generator.normal(size=(400, 3))
    y = generator.normal(size=40)[group] + 0.1 * generator.normal(size=400)
    splits = list(GroupKFold(10).split(X, y, group))
    for make in (LSSVR("cv", gamma=1.0), FixedSizeLSSVR(60, gamma=1.0, selection="kmeans")):
        blind = make.fit(X, y).predict_interval(X, 0.9)
        aware = make.set_params(cv=splits).fit(X, y).predict_interval(X, 0.9)
        assert np.mean(np.diff(aware)) > 3 * np.mean(np.diff(blind))


def test_probabilities_use_the_folds_of_the_tuning():
    generator = np.random.default_rng(1)
    group = np.repeat(np.arange(60), 5)
    X = generator.normal(size=(60, 4))[group] + 1e-3 * generator.normal(size=(300, 4))
    y = generator.integers(2, size=60)[group]  # rows of a group have the same label, of no meaning
    splits = list(GroupKFold(6).split(X, y, group))
    for make in (LSSVC("cv", gamma="cv"), FixedSizeLSSVC(100)):
        blind = make.fit(X, y).predict_proba(X).max(axis=1).mean()
        aware = make.set_params(cv=splits).fit(X, y).predict_proba(X).max(axis=1).mean()
        assert blind > 0.9 and aware < 0.75


def test_splits_that_do_not_test_every_row():
    X, y = sample(120, 3)
    for model in (LSSVR("cv", cv=TimeSeriesSplit(4)), FixedSizeLSSVR(30, cv=TimeSeriesSplit(4))):
        assert np.all(np.isfinite(model.fit(X, y).predict_interval(X)))


def test_few_rows_and_constant_targets():
    X, y = sample(12, 4)
    with pytest.warns(NumericalWarning, match="infinite"):
        ends = LSSVR().fit(X, y).predict_interval(X, 0.95)
    assert np.all(ends == [-np.inf, np.inf])
    X, _ = sample(60, 4)
    for model in (LSSVR(), FixedSizeLSSVR(20, C=1.0, gamma=1.0)):
        ends = model.fit(X, np.full(60, 7.0)).predict_interval(X, 0.9)
        np.testing.assert_allclose(ends, 7.0, atol=1e-6)


@pytest.mark.parametrize("coverage", [0.0, 1.0, 1.5, -1])
def test_coverage_outside_the_unit_interval(coverage):
    X, y = sample(40, 5)
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        LSSVR().fit(X, y).predict_interval(X, coverage)
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        LSSVC().fit(X, y > 0).predict_set(X, coverage)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)
@pytest.mark.parametrize("data", [wide, moons], ids=["three", "two"])
def test_probabilities_agree_with_predict_and_mean_something(model, data):
    X, y = data
    train, test = slice(0, 300), slice(300, None)
    model = clone(model)
    if len(np.unique(y)) == 2 and model.multiclass in ("ova", "moc", "ecoc"):
        model.set_params(multiclass="auto")
    model.fit(X[train], y[train])
    before = dict(vars(model))
    p = model.predict_proba(X[test])
    assert vars(model) == before
    assert p.shape == (len(X) - 300, len(model.classes_))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.all((p > 0) & (p < 1))
    assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(X[test]))
    share = np.bincount(y[train]) / 300
    chance = -np.log(share[y[test]]).mean()
    assert log_loss(y[test], p) < 0.9 * chance
    np.testing.assert_allclose(model.predict_log_proba(X[test]), np.log(p))
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).predict_proba(X[test]), p)
    sets = model.predict_set(X[test], coverage=0.9)
    assert sets.dtype == bool and sets.shape == p.shape
    assert sets[np.arange(len(sets)), y[test]].mean() > 0.82
    few = model.predict_set(X[test], coverage=0.2)  # not empty, and never without that of predict
    assert few[np.arange(len(few)), p.argmax(axis=1)].all()


def test_two_classes_are_ranked_as_by_the_scores():
    X, y = moons
    for model in (LSSVC(), LSSVC(multiclass=Coding(calibration="isotonic")), FixedSizeLSSVC(40)):
        model.fit(X, y)
        order = np.argsort(model.decision_function(X))
        assert np.all(np.diff(model.predict_proba(X)[order, 1]) >= 0)


def test_probabilities_of_all_rows_as_prototypes_are_those_of_the_dual_model():
    X, y = wide[0][:120], wide[1][:120]
    dual = LSSVC(2.0, gamma=2.0).fit(X, y)
    fixed = FixedSizeLSSVC(120, C=2.0, gamma=2.0).fit(X, y)
    np.testing.assert_allclose(fixed.predict_proba(X), dual.predict_proba(X), atol=1e-6)


def test_a_row_does_not_calibrate_itself():
    """Without overlap a near-interpolating model fits its own rows perfectly, but not new ones."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(300, 5)), generator.integers(2, size=300)
    for model in (LSSVC(1e4, gamma=1.0), FixedSizeLSSVC(300, C=1e4, gamma=1.0)):
        p = model.fit(X, y).predict_proba(generator.normal(size=(200, 5)))
        assert p.max(axis=1).mean() < 0.65  # labels are noise


def test_class_weights_move_the_probabilities_with_the_decision():
    X, y = moons
    rare = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:30]]
    for make in (LSSVC(), FixedSizeLSSVC(40, C=1.0, gamma=1.0)):
        plain = make.fit(X[rare], y[rare]).predict_proba(X)[:, 1].mean()
        even = make.set_params(class_weight="balanced").fit(X[rare], y[rare]).predict_proba(X)
        assert even[:, 1].mean() > plain + 0.1


def test_no_calibration_no_probabilities():
    for kind in (LSSVC, FixedSizeLSSVC, GreedyLSSVC):
        model = kind(multiclass=Coding(calibration=None))
        model.fit(*moons)
        assert not hasattr(model, "predict_proba") and not hasattr(model, "predict_set")
        assert model.predict(moons[0]).shape == (400,)
    with pytest.raises(InvalidInputError, match="calibration"):
        LSSVC(multiclass=Coding(calibration="beta")).fit(*moons)


def test_a_truncated_model_has_no_rows_to_calibrate_on():
    model = GreedyLSSVC(10.0, gamma=1.0).fit(*moons)
    with pytest.raises(InvalidInputError, match="max_support"):
        model.truncate(10).predict_proba(moons[0])
    assert model.predict_proba(moons[0]).shape == (400, 2)


def test_precomputed_kernel_needs_tuning_for_probabilities():
    X, y = moons
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    with pytest.raises(InvalidInputError, match="C='cv'"):
        LSSVC(kernel="precomputed").fit(K, y).predict_proba(K)
    options = {"search": GridSearch([2.0], [1.0]), "cv": KFold(5)}
    ours = LSSVC("cv", kernel="precomputed", **options).fit(K, y)
    wanted = LSSVC("cv", gamma=1.0, **options).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(K), wanted.predict_proba(X), atol=1e-6)
    tuned = LSSVC("cv", kernel="precomputed").fit(K, y)  # whatever the search has kept
    assert log_loss(y, tuned.predict_proba(K)) < 0.6


@pytest.mark.parametrize("scoring", ["roc_auc_ovr", "neg_log_loss", "neg_brier_score"])
def test_scorers_of_probabilities_in_a_grid_search(scoring):
    search = GridSearchCV(LSSVC(), {"C": [1e-3, 1.0]}, scoring=scoring, cv=3)
    if scoring == "neg_brier_score":
        search.fit(*moons)
    else:
        search.fit(iris.data, iris.target)
    assert search.best_params_ == {"C": 1.0}
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


def test_forgotten_rows_leave_no_trace_in_the_calibration():
    X, y = moons
    Z = X[:30]
    model = FixedSizeLSSVC(C=1.0, gamma=1.0, selection=Z).fit(X[:300], y[:300])
    wanted = model.predict_proba(X)
    model.fit(X, y).forget(X[300:], y[300:])
    np.testing.assert_allclose(model.predict_proba(X), wanted, atol=1e-8)


def test_many_rows_are_sampled_by_content():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(12_000, 2))
    y = X[:, 0] ** 2 + 0.1 * generator.normal(size=12_000)
    order = generator.permutation(12_000)
    a = FixedSizeLSSVR(20, C=10.0, gamma=0.5, selection=X[:20]).fit(X, y)
    b = FixedSizeLSSVR(20, C=10.0, gamma=0.5, selection=X[:20]).fit(X[order], y[order])
    assert a.record_.calibration.sample.X.shape == (5000, 2)
    np.testing.assert_allclose(a.predict_interval(X[:9]), b.predict_interval(X[:9]), atol=1e-8)
