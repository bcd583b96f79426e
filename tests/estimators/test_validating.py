"""Data that cannot be computed with: an answer that is right, or an error that says what to do."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold

from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC, GreedyLSSVR, scan
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm.kernels import Polynomial
from lssvm.tuning import GridSearch

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
y = X[:, 0] + 0.1 * rng.normal(size=80)
labels = np.where(X[:, 0] + 0.3 * rng.normal(size=80) > 0, "a", "b")
CLASSIFIERS = [LSSVC(), FixedSizeLSSVC(20, C=1.0, gamma=0.5), GreedyLSSVC(max_support=20)]
REGRESSORS = [
    LSSVR(),
    FixedSizeLSSVR(20, C=1.0, gamma=0.5),
    GreedyLSSVR(max_support=20, epsilon=0.0),  # which has the unit of y
]


@pytest.fixture(autouse=True)
def only_documented_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        yield


def outputs(model, X):
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)


# -- missing values --------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=lambda m: type(m).__name__)
def test_missing_features_are_named_with_what_to_do_here(model):
    target = labels if model in CLASSIFIERS else y
    bad = pd.DataFrame(X, columns=["a", "b", "c"])
    bad.loc[7, "b"] = np.nan
    with pytest.raises(InvalidInputError, match=r"X contains NaN.*row 7, column 'b'") as caught:
        model.fit(bad, target)
    said = str(caught.value)
    assert "SimpleImputer" in said and "lssvm.scan" in said and "LSSVMClassifier" in said
    assert "HistGradient" not in said
    model.fit(X, target)
    with pytest.raises(InvalidInputError, match=r"X contains NaN.*row 7, column 1"):
        model.predict(bad.to_numpy())


def test_infinite_features_and_missing_targets_are_other_errors():
    bad = X.copy()
    bad[3, 2] = np.inf
    with pytest.raises(InvalidInputError, match=r"X contains infinity.*row 3, column 2"):
        LSSVR().fit(bad, y)
    with pytest.raises(InvalidInputError, match=r"y contains NaN.*leave out the rows"):
        LSSVR().fit(X, np.where(np.arange(80) == 5, np.nan, y))


# -- magnitudes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("scale", [1e150, 1e300, 1e-150, 1e-300])
def test_targets_beyond_the_numbers_are_refused(model, scale):
    with pytest.raises(InvalidInputError, match=r"y has values of magnitude .*TransformedTarget"):
        model.fit(X, y * scale)


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("scale", [1e50, 1e-50])
def test_targets_of_any_other_unit_give_the_same_model(model, scale):
    expected = model.fit(X, y).predict(X)
    np.testing.assert_allclose(model.fit(X, y * scale).predict(X) / scale, expected, rtol=1e-6)


def test_targets_of_a_scan_and_features_have_a_range_too():
    with pytest.raises(InvalidInputError, match="target has values of magnitude"):
        FixedSizeLSSVR(10, C=1.0, gamma=1.0).fit(scan(X, target=y * 1e200))
    with pytest.raises(InvalidInputError, match=r"X has values of magnitude .*StandardScaler"):
        LSSVC().fit(X * 1e200, labels)
    model = LSSVC().fit(X, labels)
    with pytest.raises(InvalidInputError, match="X has values of magnitude"):
        model.predict(X * 1e200)
    assert model.predict(X * 1e-200).shape == (80,)


@pytest.mark.parametrize("C", [1e30, 1e-30, 1e10])
@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=lambda m: type(m).__name__)
def test_any_C_gives_finite_outputs_between_the_limits(model, C):
    target = labels if model in CLASSIFIERS else y
    weight = np.full(80, 1e12) if C == 1e10 else None
    fitted = model.__class__(**{**model.get_params(), "C": C}).fit(X, target, sample_weight=weight)
    found = outputs(fitted, X)
    assert np.all(np.isfinite(found))
    if C == 1e-30 and model in REGRESSORS:
        np.testing.assert_allclose(found, found[0])  # nothing but the intercept is left
        assert abs(found[0] - y.mean()) < 0.05
    if C == 1e30 and isinstance(model, LSSVR):
        np.testing.assert_allclose(found, y, atol=1e-6)  # interpolates


@pytest.mark.parametrize("C", [1e300, 1e-300])
@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=lambda m: type(m).__name__)
def test_C_and_weights_have_a_range(model, C):
    target = labels if model in CLASSIFIERS else y
    with pytest.raises(InvalidInputError, match=r"C=1e.300 is not usable"):
        model.__class__(**{**model.get_params(), "C": C}).fit(X, target)
    with pytest.raises(InvalidInputError, match="sample_weight has values from"):
        model.fit(X, target, sample_weight=np.where(np.arange(80) == 3, C, 1.0))


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("seed", range(3))
def test_weights_of_eighteen_decades_give_probabilities(model, seed):
    weight = 10.0 ** np.random.default_rng(seed).uniform(-9, 9, 80)
    found = model.fit(X, labels, sample_weight=weight).predict_proba(X)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


# -- nothing to learn from -------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_a_single_row_of_zeros_is_an_error_to_tune_and_an_intercept_to_fit(kernel):
    with pytest.raises(InvalidInputError, match="needs at least 2 distinct rows"):
        FixedSizeLSSVR(kernel=kernel).fit(np.zeros((1, 3)), [0])
    model = FixedSizeLSSVR(1, kernel=kernel, C=1.0, gamma=1.0).fit(np.zeros((1, 3)), [2.0])
    assert model.predict(np.zeros((1, 3))) == pytest.approx([2.0])


@pytest.mark.parametrize("criterion", ["fsals", "kmp", "sggp"])
def test_constant_features_give_greedy_models_of_the_mean(criterion):
    ones = np.ones((80, 3))
    found = GreedyLSSVR(criterion=criterion).fit(ones, y).predict(ones)
    np.testing.assert_allclose(found, y.mean(), atol=1e-6)
    shares = GreedyLSSVC(criterion=criterion).fit(ones, labels).predict_proba(ones)
    assert np.all(np.isfinite(shares)) and np.ptp(shares[:, 0]) < 1e-12


# -- reductions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LSSVC, LSSVR])
def test_kernels_of_nearly_equal_columns_are_reduced(model):
    target = labels if model is LSSVC else y
    fitted = model(C=1e6, gamma=1e-8, reduction="l0").fit(X, target)
    found = outputs(fitted, X)
    assert np.all(np.isfinite(found))
    assert len(fitted.support_) < 80


def test_a_fixed_size_model_of_nearly_equal_columns_is_reduced():
    fitted = FixedSizeLSSVC(20, C=1e6, gamma=1e-8, reduction="sv-l0").fit(X, labels)
    assert np.all(np.isfinite(fitted.decision_function(X)))


@pytest.mark.parametrize(
    "model",
    [
        LSSVC(kernel="linear"),
        LSSVR(kernel="poly", gamma=1e30),
        LSSVC("cv", kernel="poly", gamma=1e30, cv=3),
        FixedSizeLSSVC(5, kernel=Polynomial(degree=5), gamma=1e6, C=1.0),
        GreedyLSSVR(kernel="poly", gamma=1e6, criterion="sggp"),
        GreedyLSSVR(kernel="poly", gamma=1e6),
        GreedyLSSVC(kernel="poly", gamma=1e6, candidates=5, prefit=True),
    ],
    ids=str,
)
def test_kernels_of_huge_values_are_refused(model):
    target = labels if hasattr(model, "decision_function") else y
    with pytest.raises(InvalidInputError, match=r"kernel has values of .*StandardScaler"):
        model.fit(X * 1e28, target)


@pytest.mark.parametrize("candidates", [None, 5])
def test_kernels_of_huge_values_in_single_precision_are_refused(candidates):
    small = X.astype(np.float32)
    for model, target in ((GreedyLSSVC, labels), (GreedyLSSVR, y)):
        with pytest.raises(InvalidInputError, match=r"kernel has values of .*StandardScaler"):
            model(kernel="poly", gamma=1e30, candidates=candidates).fit(small, target)


# -- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LSSVC(), FixedSizeLSSVC(20), LSSVR(), FixedSizeLSSVR(20)])
def test_the_message_on_a_bad_gamma_names_all_there_are(model):
    target = labels if hasattr(model, "decision_function") else y
    with pytest.raises(InvalidInputError, match=r"'scale', 'auto', .*'cv' .*'ard'"):
        model.set_params(gamma="wide").fit(X, target)


@pytest.mark.parametrize("cls", [LSSVR, FixedSizeLSSVR])
def test_a_scorer_without_weights_is_refused_only_where_there_are_some(cls):
    def worst(truth, predicted):
        return -np.abs(truth - predicted).max()

    folds = list(KFold(4).split(X))
    options = {"gamma": 0.1, "scoring": make_scorer(worst), "cv": folds}
    model = cls(C="cv", search=GridSearch(C=[1.0], gamma=[0.1]), **options)
    refits = [cls(C=1.0, gamma=0.1).fit(X[a], y[a]).predict(X[b]) for a, b in folds]
    scores = [worst(y[b], refit) for (_, b), refit in zip(folds, refits, strict=True)]
    tolerance = 1e-6 if cls is LSSVR else 0.1  # the prototypes of a fold are those of all rows
    assert model.fit(X, y).best_score_ == pytest.approx(np.mean(scores), rel=tolerance)
    with pytest.raises(InvalidInputError, match="cannot be used with sample weights"):
        model.fit(X, y, sample_weight=np.arange(1.0, 81.0))


@pytest.mark.parametrize("model", [LSSVR(), FixedSizeLSSVR(20)])
def test_numbers_whose_sum_overflows_are_refused_without_a_warning(model):
    huge = np.where(X > 0.0, 1.7e308, -1.7e308)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInputError, match="too large to compute with"):
            model.fit(huge, y)


@pytest.mark.parametrize(
    ("model", "scoring"),
    [
        (LSSVC(C="cv"), "jaccard"),
        (LSSVC(C="cv"), "recall_samples"),
        (FixedSizeLSSVC(20), "neg_mean_absolute_percentage_error"),
        (LSSVR(C="cv"), "f1_macro"),
        (FixedSizeLSSVR(20), "recall"),
        (FixedSizeLSSVR(20), "neg_root_mean_squared_log_error"),
    ],
)
def test_scorers_of_other_targets_are_refused_with_their_reason(model, scoring):
    target = np.array(["a", "b", "c"])[np.arange(80) % 3] if "LSSVC" in str(model) else y - 3.0
    with pytest.raises(InvalidInputError, match=r"cannot score these targets .+ another one"):
        model.set_params(scoring=scoring, cv=3).fit(X, target)


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_missing_labels_are_named(model, gap):
    missing = labels.astype(object)
    missing[5] = gap
    for y in (missing, missing.tolist(), pd.Series(missing)):
        with pytest.raises(InvalidInputError, match=r"labels of 1 of 80 rows are missing.*row 5"):
            model.fit(X, y)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_missing_numbers_of_classes_are_named(model):
    missing = np.arange(80.0) % 2
    missing[5] = np.nan
    for y in (missing, pd.Series(missing), pd.Series(missing).astype("Int64")):
        with pytest.raises(InvalidInputError, match=r"labels of 1 of 80 rows are missing.*row 5"):
            model.fit(X, y)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_labels_of_several_types_are_named(model):
    for y in ([1, "a"] * 40, np.array([1, "a"] * 40, dtype=object)):
        with pytest.raises(InvalidInputError, match=r"types \['number', 'str'\]"):
            model.fit(X, y)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_nullable_labels_are_those_of_plain_columns(model):
    plain = (labels == "a").astype(int)
    for kind in ("Int64", "boolean", "string"):
        model.fit(X, pd.Series(plain).astype("boolean" if kind == "boolean" else "Int64"))
        expected = model.predict(X).astype(int)
        model.fit(X, pd.Series(plain).astype(kind))
        assert list(map(int, model.predict(X))) == expected.tolist()
        assert model.classes_.dtype.kind == {"Int64": "i", "boolean": "b"}.get(kind, "O")


# -- the scale of weights --------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [7.0, 1e-3])
def test_the_scale_of_weights_means_nothing_for_probabilities_and_intervals(scale):
    weight = rng.uniform(0.5, 2.0, size=80)
    for kind in (LSSVC, FixedSizeLSSVC):
        one = kind(C=2.0, gamma=0.3).fit(X, labels, weight).predict_proba(X)
        other = kind(C=2.0 / scale, gamma=0.3).fit(X, labels, scale * weight).predict_proba(X)
        np.testing.assert_allclose(other, one, atol=1e-6)
    interval = LSSVR(C=2.0 / scale).fit(X, y, scale * weight).predict_interval(X, 0.9)
    assert np.all(np.isfinite(interval))
