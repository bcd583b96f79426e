from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from tests.plots.dense import DenseLSSVC

from lssvm._core.errors import InvalidInputError, MissingDependencyError
from lssvm.plots import TuningSurfaceDisplay


def results(C, gamma, score, stage=None):
    score = np.asarray(score, dtype=float)
    rank = np.empty(score.size, dtype=np.int32)
    rank[np.argsort(-score, kind="stable")] = np.arange(1, score.size + 1)
    return {
        "param_C": np.asarray(C, dtype=float),
        "param_gamma": np.asarray(gamma, dtype=float),
        "mean_test_score": score,
        "std_test_score": 0.1 * np.ones(score.size),
        "rank_test_score": rank,
        "stage": np.full(score.size, "grid") if stage is None else np.asarray(stage),
    }


@pytest.fixture
def searched():
    """Return three batches of four values of C; the third has the best pair."""
    gamma = np.repeat([1.0, 10.0, 0.1], 4)
    C = np.tile([1.0, 10.0, 100.0, 1000.0], 3)
    loss = [0.5, 0.3, 0.4, 0.6, 0.9, 0.7, 0.8, 0.9, 0.4, 0.3, 0.1, 0.2]
    return results(C, gamma, -np.array(loss), ["coarse"] * 8 + ["refine"] * 4)


def test_the_star_marks_the_chosen_pair(searched):
    display = TuningSurfaceDisplay(searched).plot()
    assert display.best_index == 10
    assert (display.best_.get_xdata()[0], display.best_.get_ydata()[0]) == (2.0, -1.0)
    assert display.best_.get_label() == "chosen: C = 100, gamma = 0.1"
    assert display.figure_ is display.ax_.figure


def test_the_path_joins_the_best_pairs_after_each_batch(searched):
    display = TuningSurfaceDisplay(searched).plot()
    # the second batch was no better than the first
    np.testing.assert_array_equal(display.path, [1, 10])
    np.testing.assert_allclose(display.path_.get_xydata(), [[1.0, 0.0], [2.0, -1.0]])


def test_the_profile_joins_the_best_C_of_every_gamma(searched):
    display = TuningSurfaceDisplay(searched).plot()
    np.testing.assert_array_equal(display.profile, [10, 1, 5])
    np.testing.assert_allclose(display.profile_.get_ydata(), [-1.0, 0.0, 1.0])
    pairs = {key: values[[0, 1, 2, 4]] for key, values in searched.items()}
    assert TuningSurfaceDisplay(pairs).plot().profile_ is None


def test_a_search_that_asks_pair_by_pair_has_a_path_of_improvements():
    loss = np.array([5.0, 6.0, 4.0, 4.5, 1.0])
    display = TuningSurfaceDisplay(results([1, 10, 3, 5, 2], [1, 2, 3, 4, 5], -loss))
    np.testing.assert_array_equal(display.path, [0, 2, 4])


def test_every_stage_has_marks_of_its_own(searched):
    display = TuningSurfaceDisplay(searched).plot()
    marks = {line.get_label(): line for line in display.ax_.lines}
    assert marks["coarse"].get_marker() != marks["refine"].get_marker()
    assert len(marks["coarse"].get_xdata()) == 8
    np.testing.assert_allclose(marks["refine"].get_ydata(), -1.0)


def test_minus_a_loss_is_shown_as_a_loss_and_a_score_as_a_score(searched):
    shown = TuningSurfaceDisplay(searched).plot()
    assert shown.colorbar_.ax.get_ylabel() == "cross-validated loss"
    levels = shown.surface_.levels
    assert levels[0] <= 0.1
    assert levels[-1] >= 0.9
    searched["mean_test_score"] = 1.0 + searched["mean_test_score"]
    scores = TuningSurfaceDisplay(searched).plot()
    assert scores.colorbar_.ax.get_ylabel() == "cross-validated score"
    assert scores.surface_.cmap.name != shown.surface_.cmap.name  # dark stays good


def test_losses_of_several_magnitudes_have_a_logarithmic_scale(searched):
    searched["mean_test_score"] = -np.geomspace(1e-3, 1e3, 12)
    display = TuningSurfaceDisplay(searched).plot()
    np.testing.assert_allclose(np.diff(np.log10(display.surface_.levels)), 6.0 / 13.0)
    assert display.surface_.levels[[0, -1]].tolist() == [1e-3, 1e3]
    display.figure_.canvas.draw()


def test_equal_losses_are_a_plane(searched):
    searched["mean_test_score"] = -np.ones(12)
    assert TuningSurfaceDisplay(searched).plot().surface_ is not None


@pytest.mark.parametrize(
    ("C", "gamma", "name"),
    [
        ([1, 10, 100], [np.nan] * 3, "C"),
        ([1, 10, 100], [0.5] * 3, "C"),
        ([2.0] * 3, [1, 10, 100], "gamma"),
    ],
)
def test_one_tuned_parameter_is_a_curve(C, gamma, name):
    display = TuningSurfaceDisplay(results(C, gamma, [-3.0, -1.0, -2.0])).plot()
    assert display.surface_ is display.path_ is display.colorbar_ is None
    assert display.ax_.get_xlabel() == name
    assert display.ax_.get_ylabel() == "cross-validated loss"
    curve = display.ax_.lines[0]
    np.testing.assert_allclose(curve.get_xydata(), [[0, 3], [1, 1], [2, 2]])
    assert (display.best_.get_xdata()[0], display.best_.get_ydata()[0]) == (1.0, 1.0)
    (band,) = display.ax_.collections
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(3.1)


def test_pairs_without_a_finite_score_are_left_out(searched):
    searched["mean_test_score"][[0, 5]] = -np.inf, np.nan
    display = TuningSurfaceDisplay(searched).plot()
    assert display.scores.size == 10
    assert (display.C[display.best_index], display.gamma[display.best_index]) == (100.0, 0.1)


def test_an_estimator_gives_its_own_results(two_blobs, searched):
    model = DenseLSSVC().fit(*two_blobs)
    with pytest.raises(InvalidInputError, match='fit it with C="cv"'):
        TuningSurfaceDisplay.from_estimator(model)
    model.cv_results_ = searched
    display = TuningSurfaceDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.C, searched["param_C"])
    other = TuningSurfaceDisplay.from_estimator(model, ax=display.figure_.add_subplot())
    assert other.figure_ is display.figure_
    model.cv_results_ = [searched, searched]
    with pytest.raises(InvalidInputError, match="its 2 binary problems separately"):
        TuningSurfaceDisplay.from_estimator(model)
    with pytest.raises(NotFittedError):
        TuningSurfaceDisplay.from_estimator(DenseLSSVC())


def test_results_that_span_no_surface_are_refused(searched):
    with pytest.raises(InvalidInputError, match="no stage"):
        TuningSurfaceDisplay({key: searched[key] for key in searched if key != "stage"})
    with pytest.raises(InvalidInputError, match="The 3 evaluated pairs"):
        TuningSurfaceDisplay(results([1, 10, 100], [1, 10, 100], [1, 2, 3])).plot()
    with pytest.raises(InvalidInputError, match="None of the 12 scores"):
        TuningSurfaceDisplay({**searched, "mean_test_score": np.full(12, np.nan)})


def test_without_matplotlib_the_extra_is_named(searched, without_matplotlib):
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[plots\]'"):
        TuningSurfaceDisplay(searched).plot()
