"""A constant added to y and a unit of X change nothing in fixed-size models."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.model_selection import KFold

from lssvm import FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVR, load, save, scan
from lssvm._core.errors import NumericalWarning
from lssvm.tuning import PathSearch

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (400, 2))
y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.standard_normal(400)
y = np.round(y * 2**20) / 2**20  # y + OFFSET is exact: nothing but the offset changes
T = rng.uniform(-2, 2, (50, 2))
OFFSET = 1e8


def as_scan(X, y):
    return (scan(X, target=y, prepare=False),)


@pytest.mark.parametrize("rows", ["arrays", "scan"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"C": 10.0, "gamma": 0.5},
        {"cv": 0.3, "gamma": 0.5},
        {"reduction": "spfs"},
        {"reduction": "ssd", "gamma": 0.5},
        {"loss": "huber", "C": 10.0, "gamma": 0.5},
        {"solver": "pcg", "C": 10.0, "gamma": 0.5},
        {"scoring": "neg_mean_absolute_error", "gamma": 0.5},
        {"kernel": "linear"},
    ],
    ids=repr,
)
def test_an_offset_of_the_targets_changes_nothing(options, rows):
    if rows == "scan" and options.get("reduction") == "ssd":
        pytest.skip("tuned on the prototypes, as with arrays")
    given = as_scan if rows == "scan" else lambda X, y: (X, y)
    settings = {"n_prototypes": 40, "cv": 5} | options
    plain = FixedSizeLSSVR(**settings).fit(*given(X, y))
    moved = FixedSizeLSSVR(**settings).fit(*given(X, y + OFFSET))
    np.testing.assert_allclose(moved.C_, plain.C_, rtol=1e-9)
    np.testing.assert_allclose(moved.predict(T) - OFFSET, plain.predict(T), atol=1e-6)


def test_an_offset_with_separate_tuning_of_several_targets():
    options = {"n_prototypes": 40, "cv": 5, "search": PathSearch(per_output=True)}
    Y, far = np.column_stack([y, X[:, 1] ** 2 + y]), np.array([OFFSET, -300.0])
    Y = np.round(Y * 2**20) / 2**20
    plain = FixedSizeLSSVR(**options).fit(X, Y)
    moved = FixedSizeLSSVR(**options).fit(X, Y + far)
    np.testing.assert_allclose(moved.C_, plain.C_, rtol=1e-9)
    np.testing.assert_allclose(moved.predict(T) - far, plain.predict(T), atol=1e-6)


@pytest.mark.parametrize("rows", ["arrays", "scan"])
def test_targets_of_a_penalised_bias_stay_as_they_are(rows):
    given = as_scan if rows == "scan" else lambda X, y: (X, y)
    options = {"C": 1e-3, "gamma": 0.5, "selection": X[:30], "fit_intercept": "penalised"}
    model = FixedSizeLSSVR(30, **options).fit(*given(X[:300], y[:300] + 1000.0))
    K, gram = (np.exp(-0.5 * cdist(A, X[:30], "sqeuclidean")) for A in (X, X[:30]))

    def printed(n):  # eq. (7), in the prototypes' coefficients: the bias has the ridge of a weight
        A = np.column_stack([K[:n], np.ones(n)])
        ridge = np.zeros((31, 31))
        ridge[:30, :30], ridge[30, 30] = gram / 1e-3, 1 / 1e-3
        beta = np.linalg.lstsq(A.T @ A + ridge, A.T @ (y[:n] + 1000.0), rcond=None)[0]
        return np.column_stack([np.exp(-0.5 * cdist(T, X[:30], "sqeuclidean")), np.ones(50)]) @ beta

    assert np.abs(printed(300) - 1000.0).min() > 1.0  # shrunk, which centring would undo
    np.testing.assert_allclose(model.predict(T), printed(300), rtol=1e-6)
    model.partial_fit(*given(X[300:], y[300:] + 1000.0))
    np.testing.assert_allclose(model.predict(T), printed(400), rtol=1e-6)


@pytest.mark.parametrize(
    "model",
    [FixedSizeLSSVR(10, C=1.0, gamma=0.3, fit_intercept="penalised"), GreedyLSSVR(10, gamma=0.3)],
    ids=["penalised", "greedy"],
)
def test_targets_far_from_zero_that_are_not_centred_are_told(model):
    with pytest.warns(NumericalWarning, match="subtract a constant") as told:
        model.fit(X, y + OFFSET)
    assert any(one.filename == __file__ for one in told)


def test_scorers_see_the_targets_themselves():
    model = FixedSizeLSSVR(30, gamma=0.5, cv=5, scoring="neg_mean_absolute_percentage_error")
    near, far = (model.fit(X, y + offset).best_score_ for offset in (10.0, 1000.0))
    assert near / far == pytest.approx(100, rel=0.2)


def test_intervals_and_deviations_with_an_offset():
    plain, moved = (FixedSizeLSSVR(40, C=10.0, gamma=0.5).fit(X, y + o) for o in (0.0, OFFSET))
    np.testing.assert_allclose(
        moved.predict_interval(T) - OFFSET, plain.predict_interval(T), atol=1e-6
    )
    one, other = (model.predict(T, return_std=True)[1] for model in (plain, moved))
    np.testing.assert_allclose(other, one, rtol=1e-6)


@pytest.mark.parametrize("rows", ["arrays", "scan"])
def test_rows_come_and_go_with_an_offset(rows, tmp_path):
    given = as_scan if rows == "scan" else lambda X, y: (X, y)
    options = {"C": 10.0, "gamma": 0.5, "selection": X[:30]}
    first, late = np.arange(300), np.arange(300, 400)
    whole = FixedSizeLSSVR(30, **options).fit(X, y + OFFSET)
    model = FixedSizeLSSVR(30, **options).fit(*given(X[first], y[first] + OFFSET))
    half = model.predict(T)
    save(model, tmp_path / "model.lssvm", keep="all")
    model = load(tmp_path / "model.lssvm")
    model.partial_fit(*given(X[late], y[late] + OFFSET + 5.0))
    model.forget(*given(X[late], y[late] + OFFSET + 5.0))
    np.testing.assert_allclose(model.predict(T), half, atol=1e-5, rtol=0)
    model.partial_fit(*given(X[late], y[late] + OFFSET))
    np.testing.assert_allclose(model.predict(T), whole.predict(T), atol=1e-5, rtol=0)


@pytest.mark.parametrize("cls", [FixedSizeLSSVR, FixedSizeLSSVC])
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_C_of_a_linear_model_is_searched_in_units_of_the_kernel(cls, factor):
    noisy = np.column_stack([X, rng.standard_normal((400, 20))])
    target = y if cls is FixedSizeLSSVR else np.digitize(y, [-0.4, 0.4])
    folds = KFold(5)  # those by content follow the unit of X
    one, other = (
        cls(kernel="linear", cv=folds).fit(scale * noisy, target) for scale in (1.0, factor)
    )
    np.testing.assert_allclose(np.asarray(other.C_) * factor**2, one.C_, rtol=1e-6)
    assert other.best_score_ == pytest.approx(one.best_score_, rel=1e-6)
    read = cls(kernel="linear", cv=5).fit(scan(factor * noisy, target=target))
    assert read.best_score_ == pytest.approx(one.best_score_, abs=0.05)
    assert np.isfinite(np.atleast_1d(other.sparsity_path().mean)).all()
