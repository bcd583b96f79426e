"""Prototypes in the plane, the trace of their entropy, and the error against their number."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.plots.dense import DenseLSSVC

from lssvm import LSSVC, FixedSizeLSSVC, FixedSizeLSSVR
from lssvm._core.errors import InvalidInputError, MissingDependencyError
from lssvm.plots import EntropyTraceDisplay, PrototypeCurveDisplay, PrototypesDisplay


@pytest.fixture
def model(blobs):
    return FixedSizeLSSVC(12, C=1.0, gamma=1.0, selection="renyi", random_state=0).fit(*blobs)


def offsets(markers):
    return np.concatenate([part.get_xydata() for part in markers])


def test_the_prototypes_are_drawn_where_they_lie_in_their_classes(blobs, model):
    X, y = blobs
    display = PrototypesDisplay.from_estimator(model, X, y)
    np.testing.assert_array_equal(display.prototypes, X[model.support_])
    drawn = offsets(display.prototypes_)
    assert {tuple(row) for row in drawn} == {tuple(row) for row in model.prototypes_}
    assert len(offsets(display.points_)) == 60
    for number, disks in enumerate(display.prototypes_):
        own = X[model.support_[y[model.support_] == model.classes_[number]]]
        np.testing.assert_array_equal(disks.get_xydata(), own)
    assert [text.get_text() for text in display.legend_.get_texts()] == ["a", "b", "c"]
    assert display.legend_.get_title().get_text() == "12 prototypes among\n60 rows"
    assert len({disks.get_marker() for disks in display.prototypes_}) == 3


def test_without_classes_the_rows_are_grey(blobs, model):
    display = PrototypesDisplay.from_estimator(model, blobs[0], legend=False)
    assert display.legend_ is None
    assert len(display.points_) == len(display.prototypes_) == 1
    rows, chosen = (to_rgb(part[0].get_color()) for part in (display.points_, display.prototypes_))
    assert np.ptp(rows) == 0.0
    assert np.ptp(chosen) > 0.1


def test_more_features_are_projected_as_the_model_sees_them(blobs):
    X, y = blobs
    wide = np.column_stack([X, 100.0 * X[:, 0] - X[:, 1], X**2])
    pipeline = make_pipeline(StandardScaler(), FixedSizeLSSVC(12, C=1.0, gamma=1.0)).fit(wide, y)
    display = PrototypesDisplay.from_estimator(pipeline, wide, y)
    rows = StandardScaler().fit_transform(wide)
    _, _, axes = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    expected = (rows - rows.mean(axis=0)) @ axes[:2].T
    np.testing.assert_allclose(np.abs(display.points), np.abs(expected), atol=1e-8)
    np.testing.assert_allclose(display.prototypes, display.points[pipeline[-1].support_])
    share = (expected.var(axis=0) / rows.var(axis=0).sum() * 100).round().astype(int)
    assert display.ax_.get_xlabel() == f"principal component 1 ({share[0]} % of the variance)"


def test_two_features_are_shown_in_their_own_units(blobs):
    pandas = pytest.importorskip("pandas")
    X, y = blobs
    frame = pandas.DataFrame({"u": X[:, 0], "v": 50.0 * X[:, 1], "w": X[:, 0] * X[:, 1]})
    pipeline = make_pipeline(StandardScaler(), FixedSizeLSSVC(12, C=1.0, gamma=1.0)).fit(frame, y)
    display = PrototypesDisplay.from_estimator(pipeline, frame, y, features=("w", "v"))
    expected = frame[["w", "v"]].to_numpy()[pipeline[-1].support_]
    np.testing.assert_array_equal(display.prototypes, expected)
    assert display.ax_.get_ylabel() == "v"


def test_given_prototypes_need_not_be_rows(blobs):
    X, y = blobs
    given = X[:6] + 0.5
    model = FixedSizeLSSVC(selection=given, C=1.0, gamma=1.0).fit(X, y)
    display = PrototypesDisplay.from_estimator(model, X, y, features=(1, 0))
    np.testing.assert_array_equal(display.prototypes, given[:, ::-1])
    assert [text.get_text() for text in display.legend_.get_texts()][-1] == "not a training row"
    pipeline = make_pipeline(StandardScaler(), FixedSizeLSSVC(selection=given, C=1.0, gamma=1.0))
    with pytest.raises(InvalidInputError, match="not rows of X"):
        PrototypesDisplay.from_estimator(pipeline.fit(X, y), X, y)


def test_many_rows_are_thinned_but_not_the_prototypes(blobs, model):
    X, y = blobs
    display = PrototypesDisplay.from_estimator(model, X, y, max_rows=30)
    assert len(offsets(display.points_)) == 30
    assert len(offsets(display.prototypes_)) == 12
    assert display.n_rows == 60


def test_models_without_prototypes_are_refused(blobs, model):
    X, y = blobs
    with pytest.raises(InvalidInputError, match="no prototypes_"):
        PrototypesDisplay.from_estimator(LSSVC().fit(X, y), X, y)
    linear = FixedSizeLSSVC(kernel="linear", C=1.0).fit(X, y)
    with pytest.raises(InvalidInputError, match="linear kernel in closed form"):
        PrototypesDisplay.from_estimator(linear, X, y)
    with pytest.raises(InvalidInputError, match="X has 5 rows"):
        PrototypesDisplay.from_estimator(model, X[:5], y[:5])
    with pytest.raises(InvalidInputError, match=r"classes \['z'\]"):
        PrototypesDisplay.from_estimator(model, X, np.full(60, "z"))
    with pytest.raises(NotFittedError):
        PrototypesDisplay.from_estimator(FixedSizeLSSVC(), X, y)


def test_the_trace_is_that_of_the_selection(model):
    display = EntropyTraceDisplay.from_estimator(model, name="one")
    swaps, entropy = display.line_.get_data()
    np.testing.assert_array_equal(entropy, model.selection_.entropy_trace)
    np.testing.assert_array_equal(swaps, np.arange(model.selection_.n_swaps + 1))
    second = EntropyTraceDisplay([0.0, 1.0], name="two").plot(display.ax_)
    assert second.line_.get_linestyle() != display.line_.get_linestyle()
    words = [text.get_text() for text in second.legend_.get_texts()]
    trials = model.selection_.n_trials
    assert words[0] == f"one: {model.selection_.n_swaps} exchanges in {trials:,} trials"
    assert words[1] == "two: 1 exchanges"


def test_a_selection_without_entropy_has_no_trace(blobs):
    random = FixedSizeLSSVC(12, selection="random", C=1.0, gamma=1.0).fit(*blobs)
    with pytest.raises(InvalidInputError, match="did not select its prototypes by entropy"):
        EntropyTraceDisplay.from_estimator(random)
    with pytest.raises(InvalidInputError, match="no selection_"):
        EntropyTraceDisplay.from_estimator(DenseLSSVC().fit(blobs[0][:40], blobs[1][:40]))
    for values in ([], [[1.0]], [np.nan]):
        with pytest.raises(InvalidInputError, match="entropy_trace"):
            EntropyTraceDisplay(values)


def test_the_curve_of_a_model_that_chose_its_size(blobs):
    X, y = blobs
    model = FixedSizeLSSVC("cv", gamma=1.0, cv=4, random_state=0).fit(X, y)
    display = PrototypeCurveDisplay.from_estimator(model, baseline=0.75)
    results = model.size_results_
    sizes, errors = display.line_.get_data()
    np.testing.assert_array_equal(sizes, results["n_prototypes"])
    np.testing.assert_allclose(errors, 100.0 * (1.0 - results["mean_test_score"]))
    np.testing.assert_allclose(display.spread, 50.0 * results["std_test_score"])  # four folds
    assert display.best_.get_xdata()[0] == model.n_prototypes_
    (line,) = [line for line in display.ax_.lines if line.get_label() == "full model"]
    assert line.get_ydata()[0] == 25.0


def test_the_curve_of_a_regressor_shows_the_loss(blobs):
    X, _ = blobs
    model = FixedSizeLSSVR("cv", gamma=1.0, cv=4).fit(X, X[:, 0] * X[:, 1])
    display = PrototypeCurveDisplay.from_estimator(model)
    np.testing.assert_allclose(display.errors, -model.size_results_["mean_test_score"])
    assert display.ax_.get_ylabel() == "cross-validated loss"


def test_scores_of_a_scorer_are_shown_as_they_are(blobs):
    X, y = blobs
    model = FixedSizeLSSVC("cv", gamma=1.0, cv=4, scoring="balanced_accuracy").fit(X, y)
    display = PrototypeCurveDisplay.from_estimator(model)
    np.testing.assert_allclose(display.errors, model.size_results_["mean_test_score"])
    assert display.ax_.get_ylabel() == "cross-validated score"


def test_the_curve_on_test_rows_is_that_of_single_fits(blobs):
    X, y = blobs
    rows, test = np.arange(0, 60, 2), np.arange(1, 60, 2)
    model = make_pipeline(StandardScaler(), FixedSizeLSSVC(C=1.0, gamma=1.0, selection="random"))
    display = PrototypeCurveDisplay.from_estimator(
        model, X[rows], y[rows], test=(X[test], y[test]), sizes=[8, 4], random_states=(0, 1)
    )
    expected = []
    for size in (4, 8):
        for seed in (0, 1):
            model[-1].set_params(n_prototypes=size, random_state=seed)
            expected.append(1.0 - model.fit(X[rows], y[rows]).score(X[test], y[test]))
    expected = 100.0 * np.reshape(expected, (2, 2))
    np.testing.assert_array_equal(display.sizes, [4, 8])
    np.testing.assert_allclose(display.errors, expected.mean(axis=1))
    np.testing.assert_allclose(display.spread, expected.std(axis=1, ddof=1))
    assert display.best_ is None
    other = PrototypeCurveDisplay([2, 16], [1.0, 2.0], name="two").plot(display.ax_)
    assert other.line_.get_marker() != display.line_.get_marker()
    assert other.ax_.get_xticks().tolist() == [2, 4, 8, 16]


def test_a_curve_needs_sizes_that_were_compared(blobs, model):
    with pytest.raises(InvalidInputError, match='n_prototypes="cv"'):
        PrototypeCurveDisplay.from_estimator(model)
    with pytest.raises(InvalidInputError, match="needs X and y"):
        PrototypeCurveDisplay.from_estimator(model, test=blobs, sizes=[4])
    for sizes, errors in (([], []), ([1, 2], [1.0]), ([1, 2], [1.0, np.inf])):
        with pytest.raises(InvalidInputError, match="one finite error"):
            PrototypeCurveDisplay(sizes, errors)


def test_without_matplotlib_the_extra_is_named(blobs, model, without_matplotlib):
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[plots\]'"):
        PrototypesDisplay.from_estimator(model, *blobs)
    for display in (EntropyTraceDisplay([1.0]), PrototypeCurveDisplay([1], [1.0])):
        with pytest.raises(MissingDependencyError, match=r"pip install '\.\[plots\]'"):
            display.plot()
