"""Scikit-learn's callbacks hear of the tuning and may stop it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from lssvm import (
    LSSVC,
    LSSVR,
    NARX,
    FixedSizeLSSVC,
    FixedSizeLSSVR,
    GreedyLSSVC,
    GreedyLSSVR,
    LSSVMRegressor,
)
from lssvm.estimators import base as callbacks
from lssvm.tuning import GridSearch, PathSearch

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 2))
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(40)
labels = (y > 0).astype(int)
GRID = GridSearch(C=[0.1, 1.0, 10.0], gamma=[0.1, 1.0])

callback = pytest.importorskip("sklearn.callback", reason="came with scikit-learn 1.9")


class Listener:
    """Write down what is heard; ask for a stop after some evaluations."""

    def __init__(self, most=None):
        self.heard, self.most, self.open, self.fitted = [], most, [], None

    def setup(self, estimator, context):
        self.heard.append("setup")

    def teardown(self, estimator, context):
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.heard.append(f"begin {context.task_name}")
        self.open.append(context)
        self.X, self.y = X, y

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        assert self.open.pop() is context  # every task ends, the inner before the outer
        self.heard.append(f"end {context.task_name}")
        self.fitted = fitted_estimator
        return self.most is not None and self.heard.count("end evaluate") >= self.most


MODELS = [
    LSSVC("cv", gamma="cv", search=GRID, cv=3),
    LSSVR("cv", gamma="cv", search=GRID, cv=3),
    FixedSizeLSSVC(9, search=GRID, cv=3),
    FixedSizeLSSVR(9, search=GRID, cv=3),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_evaluation_is_a_task(model):
    listener = Listener()
    target = labels if hasattr(model, "multiclass") else y
    assert model.set_callbacks(listener) is model
    model.fit(X, target)
    tasks = ["begin evaluate", "end evaluate"] * 6
    assert listener.heard == [
        "setup", "begin fit", "begin tune", *tasks, "end tune", "end fit", "teardown"
    ]  # fmt: skip
    assert listener.X is X and listener.y is target
    assert listener.open == []
    np.testing.assert_array_equal(listener.fitted.predict(X), model.predict(X))
    model.set_callbacks()
    model.fit(X, target)
    assert listener.heard.count("begin fit") == 1


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_callback_can_stop_the_tuning_without_a_warning(model):
    listener = Listener(most=2)
    model.set_callbacks(listener)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, labels if hasattr(model, "multiclass") else y)
    model.set_callbacks()
    assert listener.heard.count("end evaluate") == 2
    assert listener.heard[-1] == "teardown"
    assert model.n_evaluations_ == 3  # all values of C at the first gamma come at once
    assert model.tuning_result_.interrupted
    assert model.gamma_ == 0.1


def test_a_stop_ends_one_search_and_the_next_one_runs():
    listener = Listener(most=2)
    model = LSSVR("cv", gamma="cv", search=GRID, cv=3, loss="huber").set_callbacks(listener)
    model.fit(X, y)
    assert listener.heard.count("begin tune") == 3  # tuned again twice, each stopped at once


@pytest.mark.parametrize(
    "model",
    [
        LSSVC(),
        FixedSizeLSSVR(9, C=1.0, gamma=1.0),
        GreedyLSSVC(),
        GreedyLSSVR(C="cv"),
        NARX(LSSVR(), lags=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_fit_without_tuning_is_one_task(model):
    listener = Listener()
    model.set_callbacks(listener)
    model.fit(*((y,) if isinstance(model, NARX) else (X, labels)))
    assert listener.heard == ["setup", "begin fit", "end fit", "teardown"]


def test_a_series_model_reports_its_tuning():
    listener = Listener()
    model = NARX(lags=3, horizon=4, n_origins=3, search=GRID).set_callbacks(listener)
    model.fit(y=y)
    assert listener.heard.count("end evaluate") == 6
    assert listener.open == []


@pytest.mark.parametrize("most", [None, 2])
def test_stages_of_a_model_for_tables_are_tasks_and_can_be_stopped(most):
    listener = Listener(most)
    model = LSSVMRegressor("fast", n_jobs=1).set_callbacks(listener).fit(X, y)
    assert listener.open == [] and listener.heard[-2:] == ["end fit", "teardown"]
    assert listener.heard.count("end tune") == listener.heard.count("begin tune") > 0
    tried = listener.heard.count("end evaluate")
    assert tried == 2 if most else tried > 4
    assert model.record_.state.interrupted == (most is not None)
    assert np.isfinite(model.predict(X)).all()


def test_a_search_that_needs_more_than_it_planned_goes_on():
    listener = Listener()
    model = LSSVR("cv").set_callbacks(listener)
    context = model._init_callback_context(max_subtasks=None)
    teller = callbacks._CallbackListener(model, context, X, y)
    for count in (2, 5):
        teller({"stage": "path", "n_evaluations": count, "planned": 3})
    teller({"stage": "done", "n_evaluations": 5, "planned": 5})
    assert listener.heard.count("begin tune") == 2
    assert listener.heard.count("end evaluate") == 5
    assert listener.open == []


def test_tasks_end_and_callbacks_are_torn_down_where_a_fit_fails():
    listener = Listener()
    with pytest.raises(ValueError, match="not known"):
        LSSVC("cv", cv=3, search=GRID, solver="nothing").set_callbacks(listener).fit(X, labels)
    assert listener.heard[-1] == "teardown"
    assert listener.heard.count("begin tune") == listener.heard.count("end tune")


class Passed(Listener):
    """A listener that grid searches pass on to their estimators."""

    max_propagation_depth = None


def test_a_grid_search_passes_callbacks_on():
    from sklearn.model_selection import GridSearchCV

    listener = Passed()
    search = GridSearchCV(LSSVC("cv", cv=3, search=PathSearch(n_C=5)), {"gamma": [0.1, 1.0]}, cv=2)
    search.set_callbacks(listener).fit(X, labels)
    assert listener.heard.count("begin tune") == 5
    assert listener.open == []


def test_the_progress_bar_of_scikit_learn_runs(capsys):
    pytest.importorskip("rich")
    model = FixedSizeLSSVC(9, search=GRID, cv=3).set_callbacks(callback.ProgressBar())
    model.fit(X, labels)
    assert "tune" in capsys.readouterr().out


def test_scores_of_the_fitted_model_can_be_monitored():
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = LSSVC().set_callbacks(monitor).fit(X, labels)
    (row,) = monitor.get_logs().data
    assert row["accuracy"] == model.score(X, labels)
