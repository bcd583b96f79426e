"""Waterfall, beeswarm, dependence and interactions show the numbers of the explanation."""

from __future__ import annotations

import sys
from datetime import date
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn import inspection as sklearn_inspection
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from lssvm import LSSVC, LSSVR, FixedSizeLSSVR, LSSVMClassifier, scan
from lssvm._core.errors import InvalidInputError, MissingDependencyError
from lssvm.codes import Coding
from lssvm.explanations import Explanation
from lssvm.plots import (
    BeeswarmDisplay,
    DependenceDisplay,
    InteractionDisplay,
    PartialDependenceDisplay,
    WaterfallDisplay,
)
from lssvm.plots.explanations import swarm

DISPLAYS = (BeeswarmDisplay, DependenceDisplay, InteractionDisplay, WaterfallDisplay)
X = np.random.default_rng(0).normal(size=(60, 4))
Y = 2 * X[:, 0] * X[:, 2] + X[:, 1]


@pytest.fixture(scope="module")
def model():
    return LSSVR(C=100.0, gamma=0.1).fit(X, Y)


@pytest.fixture(scope="module")
def explanation(model):
    return model.explain(X[:30], interactions=True)


def made(data, errors=0.0):
    """Return an explanation of two columns, the first of which is given."""
    n = len(data)
    values = np.column_stack([np.linspace(-1, 1, n), np.zeros(n)])
    table = np.empty((n, 2), dtype=object)
    table[:, 0], table[:, 1] = data, np.arange(float(n))
    names, full = ("a", "b"), np.full((n, 2), errors)
    return Explanation(values, np.zeros(n), table, names, ("prediction",), full)


def test_a_waterfall_goes_from_the_base_to_the_prediction(explanation, model):
    display = WaterfallDisplay(explanation, 3).plot()
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in display.bars_]
    assert bars[-1][0] == pytest.approx(explanation.base_values[3])
    assert bars[0][1] == pytest.approx(model.predict(X[3:4])[0])
    for above, below in pairwise(bars):
        assert above[0] == pytest.approx(below[1])
    widths = np.array([bar.get_width() for bar in display.bars_])
    np.testing.assert_allclose(widths, explanation.values[3][display.order])
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels[0].startswith(f"x{display.order[0]} = ")


def test_columns_beyond_the_limit_are_added_up(explanation):
    display = WaterfallDisplay(explanation, 0, limit=2).plot()
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels[1] == "3 others"
    rest = explanation.values[0][display.order[1:]].sum()
    assert display.bars_[1].get_width() == pytest.approx(rest)


def test_sampled_values_have_whiskers():
    assert not WaterfallDisplay(made([1.0, 2.0])).plot().ax_.collections
    assert WaterfallDisplay(made([1.0, 2.0], errors=0.1)).plot().ax_.collections


def test_a_beeswarm_has_a_point_for_every_row_and_column(explanation):
    display = BeeswarmDisplay(explanation, limit=3).plot()
    assert len(display.points_) == 3
    for place, (points, column) in enumerate(zip(display.points_, display.order, strict=False)):
        offsets = points.get_offsets()
        np.testing.assert_allclose(offsets[:, 0], explanation.values[:, column])
        assert np.all(np.abs(offsets[:, 1] - place) <= 0.38 + 1e-12)
    assert display.order[-1] == 3  # the column that says nothing


def test_equal_values_are_set_side_by_side():
    offsets = swarm(np.zeros(5), 1.0)
    assert len(set(offsets.round(6))) == 5
    assert offsets.mean() == pytest.approx(0.0)


def test_a_dependence_finds_the_column_it_works_with(explanation, model):
    for found in (explanation, model.explain(X)):
        display = DependenceDisplay(found, 0).plot()
        assert display.colour == 2
        (points,) = display.points_
        np.testing.assert_allclose(points.get_offsets()[:, 0], found.data[:, 0])
        np.testing.assert_allclose(points.get_offsets()[:, 1], found.values[:, 0])
    assert DependenceDisplay(explanation).column == int(np.argmax(explanation.importances))


def test_texts_dates_and_holes_are_drawn():
    texts = made(["b", "a", None, "b"])
    display = DependenceDisplay(texts, "a").plot()
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["a", "b", "missing"]
    coloured = DependenceDisplay(texts, "b", colour="a").plot()
    assert [t.get_text() for t in coloured.legend_.get_texts()] == ["a", "b", "missing"]
    dates = made([date(2024, 1, 1), None, date(2025, 1, 1), date(2026, 1, 1)])
    assert DependenceDisplay(dates, "a").plot().points_[0].get_offsets().shape == (4, 2)
    for one in (texts, dates):
        assert len(BeeswarmDisplay(one).plot().points_) == 2


def test_interactions_are_whole_and_the_diagonal_is_what_is_left(explanation):
    display = InteractionDisplay(explanation, limit=3).plot()
    pairs = explanation.interactions
    assert display.strength[0, 2] == pytest.approx(2 * np.abs(pairs[:, 0, 2]).mean())
    assert display.strength[1, 1] == pytest.approx(np.abs(pairs[:, 1, 1]).mean())
    shown = np.asarray(display.image_.get_array().filled(np.nan))
    assert shown.shape == (3, 3)
    assert np.isnan(np.diag(shown)).all()


def test_pipelines_and_several_outputs():
    classes = np.array(["a", "b", "c"])[np.digitize(Y, [-1.0, 1.0])]
    model = make_pipeline(
        StandardScaler(), LSSVC(gamma=0.1, multiclass=Coding(decoding="loss"))
    ).fit(X, classes)
    for display in DISPLAYS:
        drawn = display.from_estimator(model, X[:6], background=X[10:14], output="b")
        assert drawn.explanation.output_names == ("b",)
    assert "score of 'b'" in WaterfallDisplay.from_estimator(model, X, output="b").ax_.get_xlabel()


@pytest.mark.parametrize("display", DISPLAYS)
def test_what_is_missing_is_said(display, model):
    with pytest.raises(InvalidInputError, match=r"from_estimator needs X, the rows to explain"):
        display.from_estimator(model)
    with pytest.raises(InvalidInputError, match="SVC has no explain"):
        display.from_estimator(SVC().fit(X, Y > 0), X)
    with pytest.raises(InvalidInputError, match="in place of an explanation"):
        display(X)


def test_without_matplotlib_the_extra_is_named(model, without_matplotlib):
    with pytest.raises(MissingDependencyError, match=r"\.\[plots\]"):
        BeeswarmDisplay.from_estimator(model, X)


def test_what_is_drawn_is_handed_over_to_shap(explanation, monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", SimpleNamespace(Explanation=SimpleNamespace))
    handed = BeeswarmDisplay(explanation).to_shap()
    np.testing.assert_array_equal(handed.values, explanation.values)
    assert handed.feature_names == list(explanation.feature_names)
    (row,) = WaterfallDisplay(explanation, 3).to_shap().values
    np.testing.assert_array_equal(row, explanation.values[3])


def test_columns_that_add_nothing_are_not_drawn():
    labels = [label for label, _, _ in WaterfallDisplay(made([5.0, 2.0])).rows(["u", "v"])]
    assert labels == ["u = 5"]


def test_partial_dependence_of_a_model_that_was_fitted_to_a_scan():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=80), "job": rng.choice(["cook", "smith"], 80)})
    data = scan(frame.assign(y=2.0 * frame.age + (frame.job == "cook")), target="y")
    model = FixedSizeLSSVR(20, C=10.0, gamma=0.1).fit(data)
    display = PartialDependenceDisplay.from_estimator(model, frame, column="age", n_points=5)
    by_hand = [model.predict(frame.assign(age=value)).mean() for value in display.values]
    np.testing.assert_allclose(display.line_.get_ydata(), by_hand, rtol=1e-12)
    with pytest.raises(InvalidInputError, match="fewer than two values"):
        PartialDependenceDisplay.from_estimator(model, frame.assign(age=1.0), column="age")


def test_wishes_that_cannot_be_met(model, explanation):
    with pytest.raises(InvalidInputError, match="row=99 is not there"):
        WaterfallDisplay(explanation, 99)
    with pytest.raises(InvalidInputError, match="column='z' is not there"):
        DependenceDisplay(explanation, "z")
    with pytest.raises(InvalidInputError, match="has no interactions"):
        InteractionDisplay(model.explain(X[:2]))
    for display in (BeeswarmDisplay, WaterfallDisplay, InteractionDisplay):
        with pytest.raises(InvalidInputError, match="limit=0 is not usable"):
            display(explanation, limit=0)


@pytest.mark.parametrize("column", ["age", "job"])
def test_partial_dependence_is_that_of_scikit_learn(column):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=90), "job": rng.choice(["cook", "smith"], 90)})
    y = np.where(frame.age + (frame.job == "cook") > 0.2 * rng.normal(size=90), "yes", "no")
    frame.loc[::9, "age"] = np.nan
    model = LSSVMClassifier("fast").fit(frame, y)
    display = PartialDependenceDisplay.from_estimator(model, frame, column=column, n_points=6)
    mean, known = [], frame[frame[column].notna()]
    for value in display.values:
        changed = known.assign(**{column: value})
        mean.append(model.predict_proba(changed)[:, 1].mean())
    np.testing.assert_allclose(display.line_.get_ydata(), mean, rtol=1e-12)
    assert display.ax_.get_ylabel() == "probability of yes" and len(display.responses) == len(known)
    if column == "job":
        assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["cook", "smith"]
    if column == "job" and tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7):
        return  # it does not take columns of text
    theirs = sklearn_inspection.PartialDependenceDisplay.from_estimator(
        model,
        known,
        [column],
        categorical_features=["job"],
        grid_resolution=6,
        percentiles=(0.02, 0.98),
    )
    np.testing.assert_allclose(theirs.pd_results[0]["average"][0], mean, rtol=1e-12)
    with pytest.raises(InvalidInputError, match="no column 'wage'"):
        PartialDependenceDisplay.from_estimator(model, frame, column="wage")
