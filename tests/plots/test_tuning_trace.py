"""The traces of several searches."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from lssvm import LSSVC, LSSVR, FixedSizeLSSVR
from lssvm._core.errors import InvalidInputError
from lssvm.plots import TuningTraceDisplay

X = np.random.default_rng(0).uniform(-3, 3, (90, 1))
y = np.sinc(X[:, 0])
SETTINGS = {"C": "cv", "gamma": "cv", "cv": 5}


@pytest.fixture(scope="module")
def models():
    return {
        "grid": LSSVR(**SETTINGS, search="grid").fit(X, y),
        "circulant": LSSVR(**SETTINGS, search="circulant").fit(X, y),
        "fixed size": FixedSizeLSSVR(**SETTINGS, n_prototypes=20, search="shrinking").fit(X, y),
    }


def records(models):
    return {name: model.tuning_result_ for name, model in models.items()}


@pytest.mark.parametrize("over", ["seconds", "n_evaluations"])
def test_every_search_has_a_falling_line(models, over):
    display = TuningTraceDisplay(records(models)).plot(over=over)
    assert list(display.lines_) == list(models)
    for name, line in display.lines_.items():
        best = np.asarray(line.get_ydata())
        assert np.all(np.diff(best) <= 0)
        results = models[name].cv_results_
        assert best[-1] == pytest.approx(-np.max(results["mean_test_score"]))
        assert len(best) == len(results["mean_test_score"])


def test_accuracies_are_shown_as_scores():
    labels = (np.abs(X[:, 0]) < 1).astype(int)
    model = LSSVC(**SETTINGS, search="grid").fit(X, labels)
    display = TuningTraceDisplay.from_estimator(model, name="grid")
    best = np.asarray(display.lines_["grid"].get_ydata())
    assert np.all(np.diff(best) >= 0)
    assert best[-1] == pytest.approx(np.max(model.cv_results_["mean_test_score"]))
    assert display.ax_.get_ylabel() == "best score so far"


def test_the_approximate_part_comes_before(models):
    display = TuningTraceDisplay(records(models)).plot(over="n_evaluations")
    assert list(display.approximate_) == ["circulant"]
    before = display.approximate_["circulant"].get_xdata()
    after = display.lines_["circulant"].get_xdata()
    assert before[-1] + 1 == after[0]


def test_what_cannot_be_drawn_is_refused(models):
    with pytest.raises(InvalidInputError, match="nothing"):
        TuningTraceDisplay({})
    with pytest.raises(InvalidInputError, match="nothing"):
        TuningTraceDisplay(["path"])
    with pytest.raises(InvalidInputError, match="no TuningResult at"):
        TuningTraceDisplay({"x": models["grid"]})
    with pytest.raises(InvalidInputError, match="over"):
        TuningTraceDisplay.from_estimator(models["grid"], over="hours")
    with pytest.raises(InvalidInputError, match="fixed parameters"):
        TuningTraceDisplay.from_estimator(LSSVR().fit(X, y))
    with pytest.raises(NotFittedError):
        TuningTraceDisplay.from_estimator(LSSVR())
