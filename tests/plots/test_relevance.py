from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lssvm import LSSVR
from lssvm._core.errors import InvalidInputError
from lssvm.plots import RelevanceDisplay


def labels(display):
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def test_bars_fall_and_keep_their_names():
    display = RelevanceDisplay([0.2, 0.5, 0.3], ["a", "b", "c"]).plot()
    assert labels(display) == ["b", "c", "a"]
    assert [bar.get_width() for bar in display.bars_] == [0.5, 0.3, 0.2]
    bottom, top = display.ax_.get_ylim()
    assert bottom > top  # the largest is at the top


def test_many_features_are_added_up():
    display = RelevanceDisplay(np.full(30, 1 / 30), limit=10).plot()
    assert labels(display)[-1] == "20 others"
    assert display.bars_[-1].get_width() == pytest.approx(2 / 3)
    assert len(display.bars_) == 11


def test_from_a_pipeline():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    pipeline = make_pipeline(StandardScaler(), LSSVR(10.0, gamma="ard", cv=3))
    pipeline.fit(X, np.sin(2 * X[:, 2]))
    display = RelevanceDisplay.from_estimator(pipeline)
    assert labels(display)[0] == "x2"
    named = RelevanceDisplay.from_estimator(pipeline, names=["u", "v", "w"], ax=display.ax_)
    assert named.ax_ is display.ax_ and labels(named)[0] == "w"


def test_bad_input():
    with pytest.raises(InvalidInputError, match="feature_relevance_"):
        RelevanceDisplay.from_estimator(LSSVR().fit([[0.0], [1.0]], [0.0, 1.0]))
    with pytest.raises(InvalidInputError, match="shape"):
        RelevanceDisplay([[0.1]])
    with pytest.raises(InvalidInputError, match="2 names"):
        RelevanceDisplay([0.1], ["a", "b"])
    with pytest.raises(InvalidInputError, match="limit"):
        RelevanceDisplay([0.1], limit=0)
