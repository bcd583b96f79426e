from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from tests.plots.dense import DenseLSSVC

from lssvm._core.errors import InvalidInputError, MissingDependencyError
from lssvm.plots import BoundaryDisplay


def areas(display):
    return np.concatenate([disks.get_sizes() for disks in display.support_points_])


def places(collections):
    return np.concatenate([np.asarray(disks.get_offsets()) for disks in collections])


def test_areas_are_proportional_to_the_support_values(two_blobs):
    X, y = two_blobs
    model = DenseLSSVC().fit(X, y)
    display = BoundaryDisplay.from_estimator(model, X, y, max_size=80.0)
    alpha = np.abs(model.dual_coef_[:, 0])  # rows are sorted by class
    np.testing.assert_allclose(areas(display), 80.0 * alpha / alpha.max())
    np.testing.assert_array_equal(places(display.support_points_), X)
    assert len(places(display.points_)) == 0


def test_several_outputs_count_by_their_norm(blobs):
    X, y = blobs
    model = DenseLSSVC().fit(X, y)
    norm = np.linalg.norm(model.dual_coef_, axis=1)
    display = BoundaryDisplay.from_estimator(model, X, y, max_size=1.0)
    np.testing.assert_allclose(areas(display), norm / norm.max())


def test_rows_that_are_no_support_vectors_are_small_dots(two_blobs):
    X, y = two_blobs
    kept = np.arange(0, 40, 3)
    model = DenseLSSVC().fit(X, y).keep(kept)
    display = BoundaryDisplay.from_estimator(model, X, y)
    np.testing.assert_array_equal(places(display.support_points_), X[kept])
    np.testing.assert_array_equal(places(display.points_), np.delete(X, kept, axis=0))
    assert {float(size) for dots in display.points_ for size in dots.get_sizes()} == {9.0}


@pytest.mark.parametrize("n_classes", [2, 3])
def test_regions_agree_with_the_predictions(blobs, n_classes):
    X, y = (part[: 20 * n_classes] for part in blobs)
    model = DenseLSSVC(gamma=0.5).fit(X, y)
    display = BoundaryDisplay.from_estimator(model, X, y, grid_resolution=60)
    assert len(display.regions_) == len(display.boundaries_) == n_classes
    predicted = model.predict(X)
    for c, region in enumerate(display.regions_):
        (outline,) = region.get_paths()
        inside = outline.contains_points(X)
        # rows within a grid cell of the boundary may fall on either side of the drawn one
        assert (inside == (predicted == model.classes_[c])).mean() > 0.95


def test_the_boundary_is_where_the_decision_function_is_zero(two_blobs):
    X, y = two_blobs
    model = DenseLSSVC().fit(X, y)
    display = BoundaryDisplay.from_estimator(model, X, y)
    line = display.boundaries_[0].get_paths()[0].vertices
    assert len(line) > 10
    assert np.abs(model.decision_function(line)).max() < 0.01


def test_a_class_that_is_never_predicted_has_no_region(blobs):
    X, y = blobs
    model = DenseLSSVC().fit(X, y)
    model.intercept_[2] -= 100.0
    display = BoundaryDisplay.from_estimator(model, X, y)
    assert len(display.regions_) == 2
    assert len(display.support_points_) == 3


def test_one_region_everywhere_has_no_boundary(two_blobs):
    X, y = two_blobs
    model = DenseLSSVC().fit(X, y)
    model.intercept_ = model.intercept_ + 100.0
    display = BoundaryDisplay.from_estimator(model, X, y)
    assert (len(display.regions_), len(display.boundaries_)) == (1, 0)


def test_the_legend_names_the_classes_and_three_sizes_at_most(blobs):
    X, y = blobs
    display = BoundaryDisplay.from_estimator(DenseLSSVC().fit(X, y), X, y)
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts[:4] == ["a", "b", "c", "boundary"]
    assert 1 <= sum("alpha" in text for text in texts) <= 3
    assert (
        BoundaryDisplay.from_estimator(DenseLSSVC().fit(X, y), X, y, legend=False).legend_ is None
    )


def test_it_draws_on_the_axes_it_is_given(two_blobs):
    X, y = two_blobs
    figure, ax = plt.subplots()
    display = BoundaryDisplay.from_estimator(DenseLSSVC().fit(X, y), X, y, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    again = display.plot()
    assert again.ax_ is not ax


def test_the_other_features_are_held_at_their_means(two_blobs):
    X, y = two_blobs
    wide = np.column_stack([X[:, 0], 5.0 + np.arange(40) / 40, X[:, 1]])
    model = DenseLSSVC().fit(wide, y)
    display = BoundaryDisplay.from_estimator(model, wide, y, features=(2, 0), grid_resolution=7)
    x, y_ = display.grid
    rows = np.column_stack([y_.ravel(), np.full(49, wide[:, 1].mean()), x.ravel()])
    np.testing.assert_allclose(display.scores[:, :, 1].ravel(), model.decision_function(rows))
    np.testing.assert_array_equal(places(display.support_points_), wide[:, [2, 0]])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("feature 2", "feature 0")


def test_a_frame_keeps_its_names(two_blobs):
    pandas = pytest.importorskip("pandas")
    X, y = two_blobs
    frame = pandas.DataFrame({"u": X[:, 0], "v": X[:, 1], "w": 0.5})
    model = DenseLSSVC().fit(frame, y)  # refuses rows without the names
    display = BoundaryDisplay.from_estimator(model, frame, y, features=("v", "u"))
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("v", "u")


def test_a_pipeline_shows_the_rows_before_its_steps(two_blobs):
    X, y = two_blobs
    pipeline = make_pipeline(StandardScaler(), DenseLSSVC()).fit(100.0 * X, y)
    display = BoundaryDisplay.from_estimator(pipeline, 100.0 * X, y)
    np.testing.assert_array_equal(places(display.support_points_), 100.0 * X)
    line = display.boundaries_[0].get_paths()[0].vertices
    assert np.abs(pipeline.decision_function(line)).max() < 0.01


def test_a_support_vector_machine_can_be_shown_too(two_blobs):
    X, y = two_blobs
    model = SVC(C=10.0).fit(X, y)
    display = BoundaryDisplay.from_estimator(model, X, y)
    largest = np.abs(model.dual_coef_).max()
    np.testing.assert_allclose(
        np.sort(areas(display)), np.sort(150.0 * np.abs(model.dual_coef_[0]) / largest)
    )


def test_support_values_of_zero_are_drawn_without_a_size(two_blobs):
    X, y = two_blobs
    model = DenseLSSVC().fit(X, y)
    model.dual_coef_ = 0.0 * model.dual_coef_
    model.intercept_ = np.ones(1)
    assert not areas(BoundaryDisplay.from_estimator(model, X, y)).any()


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (None, r"3 features and a plane shows two: name them with features=\(i, j\)"),
        ((0, 3), "position from 0 to 2"),
        ((-1, 0), "position from 0 to 2"),
        ((0, "u"), "is not in X"),
        ((0, True), "is not in X"),
        ((1, 1), "one feature twice"),
        ((0, 1, 2), r"a pair \(i, j\)"),
        ("uv", r"a pair \(i, j\)"),
    ],
)
def test_features_that_are_no_pair_are_refused(two_blobs, features, message):
    X, y = two_blobs
    wide = np.column_stack([X, X[:, 0]])
    model = DenseLSSVC().fit(wide, y)
    with pytest.raises(InvalidInputError, match=message):
        BoundaryDisplay.from_estimator(model, wide, y, features=features)


def test_a_single_feature_is_refused(two_blobs):
    X, y = two_blobs
    model = DenseLSSVC().fit(X[:, :1], y)
    with pytest.raises(InvalidInputError, match="1 feature and a plane needs two"):
        BoundaryDisplay.from_estimator(model, X[:, :1], y)


def test_an_unfitted_model_is_refused(two_blobs):
    with pytest.raises(NotFittedError):
        BoundaryDisplay.from_estimator(DenseLSSVC(), *two_blobs)


@pytest.mark.parametrize(
    ("model", "missing"),
    [
        (SVR(), "no decision_function and no classes_"),
        (KNeighborsClassifier(), "no decision_function"),
        (LogisticRegression(), "no support_ and no dual_coef_"),
    ],
)
def test_a_model_without_what_is_shown_is_refused(two_blobs, model, missing):
    X, y = two_blobs
    model.fit(X, np.unique(y, return_inverse=True)[1])
    with pytest.raises(InvalidInputError, match=f"{type(model).__name__} has {missing}"):
        BoundaryDisplay.from_estimator(model, X, y)


def test_a_precomputed_kernel_is_refused(two_blobs):
    X, y = two_blobs
    model = SVC(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(InvalidInputError, match="SVC has a precomputed kernel"):
        BoundaryDisplay.from_estimator(model, X @ X.T, y, features=(0, 1))


def test_other_data_than_the_training_data_are_refused(two_blobs):
    X, y = two_blobs
    model = DenseLSSVC().fit(X, y)
    with pytest.raises(InvalidInputError, match="X has 10 rows, but row 39 is a support vector"):
        BoundaryDisplay.from_estimator(model, X[:10], y[:10])
    with pytest.raises(InvalidInputError, match=r"y has shape \(39,\), but X has 40 rows"):
        BoundaryDisplay.from_estimator(model, X, y[:-1])
    with pytest.raises(InvalidInputError, match=r"classes \['z'\]"):
        BoundaryDisplay.from_estimator(model, X, np.where(y == "a", "z", y))


@pytest.mark.parametrize(
    ("entry", "message"), [(np.nan, "1 entries that are not finite"), ("x", "not numbers")]
)
def test_data_that_have_no_place_in_a_plane_are_refused(two_blobs, entry, message):
    X, y = two_blobs
    broken = X.astype(object)
    broken[3, 1] = entry
    with pytest.raises(InvalidInputError, match=message):
        BoundaryDisplay.from_estimator(DenseLSSVC().fit(X, y), broken, y)


def test_a_grid_of_one_point_is_refused(two_blobs):
    X, y = two_blobs
    with pytest.raises(InvalidInputError, match="grid_resolution=1"):
        BoundaryDisplay.from_estimator(DenseLSSVC().fit(X, y), X, y, grid_resolution=1)


def test_without_matplotlib_the_extra_is_named(two_blobs, without_matplotlib):
    X, y = two_blobs
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[plots\]'"):
        BoundaryDisplay.from_estimator(DenseLSSVC().fit(X, y), X, y)
