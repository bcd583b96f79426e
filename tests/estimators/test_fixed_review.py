"""What users may do to the fixed-size estimators that went wrong once."""

import copy

import numpy as np
import pytest

from lssvm import LSSVC, FixedSizeLSSVC, FixedSizeLSSVR
from lssvm._core.errors import InvalidInputError
from lssvm.codes import Coding
from lssvm.solvers.reweighting import residual_scale
from lssvm.tuning import PathSearch, Space


def rows(n=90, classes=0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    score = X[:, 0] + 0.5 * np.sin(2.0 * X[:, 1]) + 0.3 * rng.standard_normal(n)
    if not classes:
        return X, score
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"gamma": 0.1}, {"gamma": 1.0}),
        ({}, {"loss": "absolute"}),
        ({}, {"cv": [(np.arange(60), np.arange(60, 90))]}),
    ],
)
def test_a_checkpoint_of_another_regressor_is_refused(first, then, tmp_path):
    X, y = rows()
    path = tmp_path / "search.jsonl"
    FixedSizeLSSVR(10, search=PathSearch(checkpoint=path), **first).fit(X, y)
    with pytest.raises(InvalidInputError, match="other settings"):
        FixedSizeLSSVR(10, search=PathSearch(checkpoint=path), **then).fit(X, y)


@pytest.mark.parametrize(
    "then",
    [
        {"C": 100.0},
        {"multiclass": Coding(decoding="loss")},
        {"class_weight": {0: 9.0}},
        {"multiclass": "ova"},
    ],
)
def test_a_checkpoint_of_another_classifier_is_refused(then, tmp_path):
    X, y = rows(classes=3)
    path = tmp_path / "search.jsonl"
    FixedSizeLSSVC(10, cv=3, search=PathSearch(checkpoint=path)).fit(X, y)
    with pytest.raises(InvalidInputError, match="other settings"):
        FixedSizeLSSVC(10, cv=3, search=PathSearch(checkpoint=path), **then).fit(X, y)


def test_a_folder_is_no_checkpoint(tmp_path):
    with pytest.raises(InvalidInputError, match="is a folder"):
        FixedSizeLSSVR(10, search=PathSearch(checkpoint=tmp_path)).fit(*rows())


def test_balanced_weights_move_the_threshold_as_equal_ones_by_class_do():
    X, y = rows(200, 4)
    y = (y == 3).astype(int)
    count = np.bincount(y)
    weights = {c: len(y) / (2.0 * count[c]) for c in (0, 1)}
    options = {"kernel": "linear", "multiclass": Coding(threshold="cv")}
    balanced = FixedSizeLSSVC(class_weight="balanced", **options).fit(X, y)
    given = FixedSizeLSSVC(class_weight=weights, **options).fit(X, y)
    np.testing.assert_allclose(balanced.threshold_, given.threshold_, atol=1e-10)


def test_a_threshold_that_cannot_be_moved_is_refused_before_the_fit(monkeypatch):
    X, y = rows(classes=2)
    monkeypatch.setattr(
        "lssvm.estimators.fixed_size.fit_fixed_size", lambda *_: pytest.fail("was fitted")
    )
    for options in (
        {"C": 1.0, "gamma": 1.0},
        {"scoring": "gcv"},
        {"multiclass": Coding(threshold="cv", calibration=None)},
    ):
        with pytest.raises(InvalidInputError, match="threshold='cv' needs"):
            FixedSizeLSSVC(10, **{"multiclass": Coding(threshold="cv")} | options).fit(X, y)


def test_rows_that_were_never_learned_are_named_where_it_shows():
    X, y = rows()
    model = FixedSizeLSSVR(10, C=1.0, gamma=0.3).fit(X, y)
    before = model.predict(X)
    with pytest.raises(InvalidInputError, match="has not learned"):
        model.forget(np.repeat(X[:1], 60, 0), np.repeat(y[:1], 60))
    np.testing.assert_array_equal(model.predict(X), before)


def test_an_update_that_ends_in_its_last_step_changes_nothing(monkeypatch):
    X, y = rows(classes=2)
    model = FixedSizeLSSVC(10, gamma=0.3, multiclass=Coding(threshold="cv"), kernel="rbf").fit(X, y)
    before = copy.deepcopy(model)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("lssvm.fitting.fixed_size.CalibrationSample.take", stop)
    with pytest.raises(KeyboardInterrupt):
        model.forget(X[:5], y[:5])
    np.testing.assert_array_equal(model.intercept_, before.intercept_)
    np.testing.assert_array_equal(model.dual_coef_, before.dual_coef_)
    assert model.moments_[0].n == before.moments_[0].n


def test_rows_are_added_with_the_class_weights_of_the_fit():
    X, y = rows(classes=3)
    model = FixedSizeLSSVC(10, C=1.0, gamma=0.3, multiclass="ova").fit(X, y)
    plain = copy.deepcopy(model).partial_fit(X, y)
    model.set_params(class_weight="balanced").partial_fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, plain.dual_coef_)


def test_given_prototypes_are_copied():
    X, y = rows()
    Z = X[:10].copy()
    model = FixedSizeLSSVR(selection=Z, C=1.0, gamma=0.3).fit(X, y)
    before = model.predict(X)
    Z[:] = 0.0
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_share_that_leaves_no_rows_is_named():
    X, y = rows()
    for share in (0.001, 0.999):
        with pytest.raises(InvalidInputError, match=f"cv={share} of 90 distinct rows"):
            FixedSizeLSSVR(10, cv=share).fit(X, y)


@pytest.mark.parametrize("scale", [1e-58, 1e-30, 1e30, 1e58])
def test_the_unit_of_the_columns_does_not_matter(scale):
    X, y = rows()
    plain = FixedSizeLSSVR(10, C=1.0, gamma=0.25).fit(X, y)
    scaled = FixedSizeLSSVR(10, C=1.0, gamma=0.25 / scale**2).fit(X * scale, y)
    np.testing.assert_array_equal(scaled.support_, plain.support_)
    np.testing.assert_allclose(scaled.predict(X * scale), plain.predict(X), atol=1e-10)
    with pytest.raises(InvalidInputError, match="Use other units"):
        FixedSizeLSSVR(10, C=1.0, gamma=1.0).fit(X * scale**3, y)


@pytest.mark.filterwarnings("ignore:loss='absolute'")
@pytest.mark.parametrize(("loss", "tol"), [("huber", 1e-8), ("absolute", 1e-3)])
def test_weights_are_repeats_for_robust_losses(loss, tol):
    X, y = rows()
    weight = np.where(np.arange(90) < 30, 5, 1)
    many = np.repeat(np.arange(90), weight)
    options = {"selection": X[:10], "loss": loss, "C": 1.0, "gamma": 0.3}
    weighted = FixedSizeLSSVR(**options).fit(X, y, weight)
    repeated = FixedSizeLSSVR(**options).fit(X[many], y[many])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=tol)


def test_the_scale_of_residuals_counts_weights():
    residual = np.array([3.0, -1.0, 4.0, 1.5, 9.0, 2.0])
    weight = np.array([1, 3, 2, 1, 2, 3])
    expected = residual_scale(np.repeat(residual, weight))
    np.testing.assert_allclose(residual_scale(residual, weight), expected, rtol=1e-12)


def test_labels_without_an_order_are_named():
    X, _ = rows(4)
    y = np.array(["a", 1, "a", 2], dtype=object)
    with pytest.raises(InvalidInputError, match="no common order"):
        FixedSizeLSSVC(10).fit(X, y)


def test_given_indices_count_rows_of_weight_zero():
    X, y = rows()
    weight = np.r_[np.zeros(3), np.ones(87)]
    model = FixedSizeLSSVR(3, selection=[1, 5, 7], C=1.0, gamma=0.3).fit(X, y, weight)
    np.testing.assert_array_equal(model.support_, [1, 5, 7])
    np.testing.assert_array_equal(model.prototypes_, X[[1, 5, 7]])


def test_a_pair_that_no_fold_tests_takes_the_C_of_the_others():
    """Its errors are no numbers, and the smallest of none says nothing."""
    y = np.repeat([0, 1, 2], 20)
    X = np.random.default_rng(11).normal(size=(60, 2)) + y[:, None]
    cv = [(np.arange(50), np.arange(50, 60))]  # no row of the classes 0 and 1 is tested
    options = {"C": "cv", "gamma": 0.5, "multiclass": "ovo", "cv": cv}
    C = FixedSizeLSSVC(20, **options).fit(X, y).C_
    grid = Space().C_grid(60)
    assert C[0] == grid[np.abs(np.log(grid) - np.log(C[1:]).mean()).argmin()]
    for model in (FixedSizeLSSVC(20, **options), LSSVC(**options)):
        model.set_params(search=PathSearch(per_output=True))
        with pytest.raises(InvalidInputError, match="no rows of the binary problem of output 0"):
            model.fit(X, y)
