"""The pictures of the library's own estimators."""

from __future__ import annotations

import numpy as np
import pytest

from lssvm import LSSVC, LSSVR, FixedSizeLSSVC
from lssvm.plots import BoundaryDisplay, SupportSpectrumDisplay, TuningSurfaceDisplay


@pytest.mark.parametrize("multiclass", ["ovo", "ova", "moc", "ecoc"])
def test_every_output_code_can_be_shown(blobs, multiclass):
    X, y = blobs
    model = LSSVC(multiclass=multiclass, random_state=0).fit(X, y)
    display = BoundaryDisplay.from_estimator(model, X, y, grid_resolution=50)
    sizes = np.concatenate([disks.get_sizes() for disks in display.support_points_])
    norms = np.linalg.norm(model.dual_coef_, axis=1)
    np.testing.assert_allclose(sizes, 150.0 * norms / norms.max())
    grid = np.column_stack([axis.ravel() for axis in display.grid])
    shown = model.classes_[display.scores.argmax(axis=2)].ravel()
    np.testing.assert_array_equal(shown, model.predict(grid))


def test_a_frame_with_other_columns_can_be_shown(two_blobs):
    pandas = pytest.importorskip("pandas")
    X, y = two_blobs
    frame = pandas.DataFrame({"u": X[:, 0], "v": X[:, 1], "w": X[:, 0] * X[:, 1]})
    model = LSSVC().fit(frame, y)
    display = BoundaryDisplay.from_estimator(model, frame, y, features=("w", "u"))
    assert display.ax_.get_xlabel() == "w"


def test_a_pruned_model_shows_what_is_left(two_blobs):
    X, y = two_blobs
    model = LSSVC(reduction="prune", random_state=0).fit(X, y)
    n_sv = len(model.support_)
    assert n_sv < 40
    display = BoundaryDisplay.from_estimator(model, X, y)
    assert sum(len(disks.get_offsets()) for disks in display.support_points_) == n_sv
    assert sum(len(dots.get_offsets()) for dots in display.points_) == 40 - n_sv
    assert SupportSpectrumDisplay.from_estimator(model).values.size == n_sv


@pytest.mark.parametrize("search", ["path", "grid", "csa"])
def test_every_search_has_a_surface(two_blobs, search):
    X, y = two_blobs
    model = LSSVC(C="cv", gamma="cv", cv=3, search=search, random_state=0).fit(X, y)
    display = TuningSurfaceDisplay.from_estimator(model)
    best = display.best_index
    assert (display.C[best], display.gamma[best]) == (model.C_, model.gamma_)
    assert display.path[-1] == best
    assert np.diff(display.path).min(initial=1) > 0
    assert display.surface_ is not None


@pytest.mark.parametrize("search", ["path", "grid", "shrinking", "csa"])
def test_every_search_of_a_fixed_size_model_has_a_surface_and_a_path(blobs, search):
    X, y = blobs
    model = FixedSizeLSSVC(15, cv=3, search=search, multiclass="ova", random_state=0).fit(X, y)
    display = TuningSurfaceDisplay.from_estimator(model)
    best = display.best_index
    assert (display.C[best], display.gamma[best]) == (model.C_, model.gamma_)
    assert display.path[-1] == best
    assert display.surface_ is not None
    if search == "csa":  # one C at a gamma: there is no best one of several
        assert display.profile_ is None
        return
    gammas = np.log10(np.unique(model.cv_results_["param_gamma"]))
    np.testing.assert_allclose(display.profile_.get_ydata(), gammas)
    for position in display.profile:
        same = display.gamma == display.gamma[position]
        assert display.scores[position] == display.scores[same].max()


def test_a_regressor_with_a_linear_kernel_has_a_curve(two_blobs):
    X, _ = two_blobs
    model = LSSVR(C="cv", kernel="linear", cv=3, random_state=0).fit(X, X[:, 0] + X[:, 1] ** 2)
    display = TuningSurfaceDisplay.from_estimator(model)
    assert display.surface_ is None
    assert display.best_.get_xdata()[0] == np.log10(model.C_)
