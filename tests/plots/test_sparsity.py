import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lssvm import FixedSizeLSSVC, FixedSizeLSSVR
from lssvm._core.errors import InvalidInputError
from lssvm.plots import SparsityDisplay
from lssvm.reductions import FixedSizeL0

X = np.random.default_rng(0).normal(size=(150, 2))
y = np.sin(2.0 * X[:, 0])
SETTINGS = {"gamma": 1.0, "cv": 4, "n_jobs": 1}


def test_line_band_and_choice_are_those_of_the_path():
    model = FixedSizeLSSVR(20, reduction="spfs", **SETTINGS)
    display = SparsityDisplay.from_estimator(make_pipeline(StandardScaler(), model).fit(X, y))
    path = model.sparsity_path()
    np.testing.assert_array_equal(display.line_.get_xdata(), path.sizes)
    np.testing.assert_array_equal(display.line_.get_ydata(), path.mean)
    assert display.chosen_.get_xdata() == [len(model.support_)]
    corners = display.band_.get_paths()[0].vertices
    at = corners[corners[:, 0] == path.sizes[2]][:, 1]
    np.testing.assert_allclose(at.max() - at.min(), 2 * path.std_error[2])
    assert display.ax_.get_xscale() == "log"
    assert display.legend_.get_texts()[0].get_text().startswith("FixedSizeLSSVR: ")


def test_several_models_share_the_axes():
    first = SparsityDisplay.from_estimator(FixedSizeLSSVR(20, **SETTINGS).fit(X, y), name="one")
    other = FixedSizeLSSVR(10, **SETTINGS).fit(X, y)
    second = SparsityDisplay.from_estimator(other, name="two", ax=first.ax_)
    assert second.ax_ is first.ax_
    assert second.line_.get_color() != first.line_.get_color()
    assert second.chosen_.get_marker() != first.chosen_.get_marker()
    assert len(second.legend_.get_texts()) == 2


def test_one_output_at_a_time():
    labels = np.digitize(y, [-0.5, 0.5])
    model = FixedSizeLSSVC(20, reduction=FixedSizeL0(joint=False), multiclass="ova", **SETTINGS)
    model.fit(X, labels)
    display = SparsityDisplay.from_estimator(model, output=2)
    np.testing.assert_array_equal(display.line_.get_ydata(), model.sparsity_path()[2].mean)
    for output in (None, 3):
        with pytest.raises(InvalidInputError, match="number from 0 to 2"):
            SparsityDisplay.from_estimator(model, output=output)


def test_what_has_no_path_is_refused():
    with pytest.raises(InvalidInputError, match="no sparsity_path"):
        SparsityDisplay.from_estimator(Ridge().fit(X, y))
    with pytest.raises(InvalidInputError, match="one path at a time"):
        SparsityDisplay([1, 2, 3])
