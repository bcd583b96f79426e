from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.svm import SVC
from tests.plots.dense import DenseLSSVC

from lssvm._core.errors import InvalidInputError, MissingDependencyError
from lssvm.plots import SupportSpectrumDisplay


def test_the_spectrum_is_sorted_from_large_to_small(two_blobs):
    model = DenseLSSVC().fit(*two_blobs)
    display = SupportSpectrumDisplay.from_estimator(model)
    rank, values = display.line_.get_data()
    np.testing.assert_array_equal(rank, np.arange(1, 41))
    np.testing.assert_array_equal(values, np.sort(np.abs(model.dual_coef_[:, 0]))[::-1])
    assert display.figure_ is display.ax_.figure


def test_relative_values_start_at_one(two_blobs):
    model = DenseLSSVC(C=7.0).fit(*two_blobs)
    absolute = SupportSpectrumDisplay.from_estimator(model).line_.get_ydata()
    relative = SupportSpectrumDisplay.from_estimator(model, relative=True).line_.get_ydata()
    np.testing.assert_allclose(relative, absolute / absolute[0])


def test_several_models_share_the_axes_and_differ_in_colour_and_dash(two_blobs):
    first = SupportSpectrumDisplay.from_estimator(DenseLSSVC().fit(*two_blobs), name="one")
    second = SupportSpectrumDisplay.from_estimator(SVC().fit(*two_blobs), ax=first.ax_)
    assert second.ax_ is first.ax_
    assert second.line_.get_color() != first.line_.get_color()
    assert second.line_.get_linestyle() != first.line_.get_linestyle()
    names = [text.get_text() for text in second.legend_.get_texts()]
    n_sv = len(SVC().fit(*two_blobs).support_)
    assert names == ["one: 40 support vectors", f"SVC: {n_sv} support vectors"]


def test_a_larger_spectrum_on_the_same_axes_is_not_cut():
    first = SupportSpectrumDisplay([1.0, 0.5]).plot()
    SupportSpectrumDisplay([4.0, 3.0, 2.0]).plot(first.ax_)
    first.figure_.canvas.draw()
    (left, right), (bottom, top) = first.ax_.get_xlim(), first.ax_.get_ylim()
    assert (left, bottom) == (0.0, 0.0)
    assert right > 3.0
    assert top > 4.0


def test_zeros_are_drawn_but_are_no_support_vectors():
    display = SupportSpectrumDisplay([0.0, -3.0, 1.0]).plot()
    np.testing.assert_array_equal(display.line_.get_ydata(), [3.0, 1.0, 0.0])
    assert display.line_.get_label() == "model: 2 support vectors"
    assert SupportSpectrumDisplay([0.0]).plot(relative=True).line_.get_ydata() == [0.0]


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]], [1.0, np.nan]])
def test_values_that_are_no_spectrum_are_refused(values):
    with pytest.raises(InvalidInputError, match="one finite number per support vector"):
        SupportSpectrumDisplay(values)


def test_a_model_without_support_values_is_refused(two_blobs):
    with pytest.raises(NotFittedError):
        SupportSpectrumDisplay.from_estimator(DenseLSSVC())
    ridge = Ridge().fit(two_blobs[0], np.arange(40))
    with pytest.raises(InvalidInputError, match="Ridge has no support_ and no dual_coef_"):
        SupportSpectrumDisplay.from_estimator(ridge)


def test_coefficients_that_do_not_fit_the_support_vectors_are_refused(two_blobs):
    model = DenseLSSVC().fit(*two_blobs)
    model.support_ = model.support_[:7]
    with pytest.raises(InvalidInputError, match=r"shape \(40, 1\) for 7 support vectors"):
        SupportSpectrumDisplay.from_estimator(model)


def test_without_matplotlib_the_extra_is_named(without_matplotlib):
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[plots\]'"):
        SupportSpectrumDisplay([1.0]).plot()
