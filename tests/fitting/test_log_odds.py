"""Leaves of the model for tables that minimise the log loss of two classes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.metrics import log_loss

from lssvm import LSSVMClassifier, LSSVMRegressor, load, save
from lssvm.estimators import table_fit
from lssvm.estimators.table_fit import settings_of
from lssvm.fitting import Problem, TableSettings, fit_table, log_odds
from lssvm.fitting.log_odds import log_odds_pay
from lssvm.fitting.table_record import Configuration
from lssvm.fitting.table_work import Clock
from lssvm.local import LeafEngine

MEAN = 0.7
ONE = {"kernel": "rbf", "scaling": "standardised", "random_state": 0, "n_jobs": 1}


def two_normals(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of two normal distributions whose log-odds are linear: saturated at most rows."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    return random.normal(size=(n, 8)) + MEAN * (2 * y[:, None] - 1), y


def losses_of(model) -> set[str]:
    return {
        leaf.setting.loss for member in model.record_.local_members for leaf in member.local.leaves
    }


@pytest.fixture(scope="module")
def fitted() -> LSSVMClassifier:
    return LSSVMClassifier(**ONE).fit(*two_normals(1600, 0))


def test_log_odds_rank_rows_better_than_squared_errors(fitted, monkeypatch):
    monkeypatch.setattr(
        table_fit, "settings_of", lambda *a: replace(settings_of(*a), logistic=False)
    )
    squared = LSSVMClassifier(**ONE).fit(*two_normals(1600, 0))
    assert losses_of(fitted) == {"logistic"}
    assert losses_of(squared) == {"squared"}
    X, y = two_normals(4000, 1)
    true = 2.0 * MEAN * X.sum(axis=1)
    before, after = (model.predict_proba(X) for model in (squared, fitted))
    assert log_loss(y, after) < log_loss(y, before)
    ranks = [rankdata(true), *(rankdata(P[:, 1]) for P in (before, after))]
    agreement = np.corrcoef(ranks)[0, 1:]
    assert 1.0 - agreement[1] < 0.8 * (1.0 - agreement[0])


def two_bananas(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of two classes, each a mixture of two normal distributions in the plane."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    means = np.array([[-0.7, 0.3], [0.3, 0.3], [-0.3, 0.7], [0.4, 0.7]])
    return means[2 * y + random.integers(0, 2, n)] + np.sqrt(0.03) * random.normal(size=(n, 2)), y


def test_few_rows_have_log_odds_where_the_stack_uses_them(monkeypatch):
    model = LSSVMClassifier(**ONE).fit(*two_bananas(600, 4))
    assert "logistic" in losses_of(model)
    few = LSSVMClassifier(**ONE).fit(*two_bananas(240, 4))  # folds fit everything again
    assert losses_of(few) == {"squared"}
    monkeypatch.setattr(
        table_fit, "settings_of", lambda *a: replace(settings_of(*a), logistic=False)
    )
    squared = LSSVMClassifier(**ONE).fit(*two_bananas(600, 4))
    X, y = two_bananas(5000, 1)
    before, after = (log_loss(y, one.predict_proba(X)) for one in (squared, model))
    assert after < 0.995 * before


def test_the_step_is_listed(fitted):
    steps = [step for step in fitted.record_.tuning.steps if step.stage == "log loss"]
    assert steps
    assert all(np.isfinite(step.gain) for step in steps)


def test_log_odds_are_stored_and_changed_by_updates(fitted, tmp_path):
    X, y = two_normals(4000, 1)
    save(fitted, tmp_path / "model.lssvm", keep="all")
    model = load(tmp_path / "model.lssvm")
    expected = fitted.decision_function(X[:50])
    np.testing.assert_array_equal(model.decision_function(X[:50]), expected)
    model.partial_fit(X[1000:1040], y[1000:1040])
    assert losses_of(model) == {"logistic"}
    assert np.abs(model.decision_function(X[:50]) - expected).max() > 1e-4
    model.forget(X[1000:1040], y[1000:1040])
    np.testing.assert_allclose(model.decision_function(X[:50]), expected, atol=1e-6)


def test_numbers_and_several_classes_have_squared_errors():
    X, y = two_normals(1600, 0)
    three = LSSVMClassifier(random_state=0, preset="fast").fit(X, y + (X[:, 0] > 2.5))
    number = LSSVMRegressor(random_state=0, preset="fast").fit(X, X[:, 0])
    assert losses_of(three) == losses_of(number) == {"squared"}


def test_leaves_of_one_class_do_not_decide():
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 4))
    y = (X[:, 0] + 0.3 * random.normal(size=2000) > 2.0).astype(int)  # rare: in one leaf or two
    model = LSSVMClassifier("fast", **ONE, leaf_size=250).fit(X, y)
    mixed = [np.ptp(leaf.rows.Y) > 0 for leaf in model.record_.members[0].local.leaves]
    assert not mixed[len(mixed) // 2]  # the leaf in the middle has one class
    assert losses_of(model) == {"logistic"}


@pytest.mark.parametrize("trial", [0.0, 1.0])
def test_a_time_limit_holds_while_leaves_are_fitted_again(trial):
    now = [0.0]

    class Slow(LeafEngine):
        def fit(self, tasks, *, draft=False, **options):
            if not tasks or tasks[0].start.loss == "squared":
                return super().fit(tasks, draft=draft, **options)
            leaves = []
            for task in tasks:
                leaves += super().fit([task], draft=draft, **options)
                now[0] += trial if draft else 1.0
            return leaves

    X, y = two_normals(1600, 0)
    signs = 2.0 * y[:, None] - 1.0
    problem = Problem({"standardised": X}, signs, np.ones(1600), classes=y)
    kind = (Configuration("standardised", "rbf"),)
    ask = {"configurations": kind, "rounds": 0, "leaf_size": 60}

    def losses_within(limit: float | None) -> set[str]:
        now[0] = 0.0
        settings = TableSettings.preset("fast", **ask, engine=Slow())
        fit = fit_table(problem, settings, Clock(limit, lambda: now[0]), lambda event: None)
        return {leaf.setting.loss for leaf in fit.members[0].local.leaves}

    assert losses_within(None) == losses_within(1e3) == {"logistic"}
    assert losses_within(10.0) == {"squared"}
    assert now[0] <= 10.0


def test_rows_that_made_no_metric_decide_by_the_log_loss_whatever_the_scorer():
    random = np.random.default_rng(0)
    Y = np.where(random.random(400) < 0.5, 1.0, -1.0)[:, None]
    good, bad = Y + random.normal(size=Y.shape), random.normal(size=Y.shape)
    flattered = np.where(np.arange(400)[:, None] < 200, 9.0 * Y, bad)  # by a metric of these rows
    problem = SimpleNamespace(n=400, Y=Y, weight=np.ones(400))
    work = SimpleNamespace(problem=problem, folds=np.arange(400) % 5)
    plan, learner = SimpleNamespace(learned=np.arange(200)), SimpleNamespace(rounds=1)

    def pays(before, after):
        return log_odds_pay(work, plan, [(learner, None, before)], [(learner, None, after)])

    assert pays(bad, good)
    assert not pays(good, bad)
    assert not pays(good, flattered)
    assert not pays(bad, flattered)  # equal where no metric was made
    chance = random.normal(size=Y.shape)
    assert not pays(bad, chance) and not pays(chance, bad)  # a gain within its standard error


@pytest.mark.parametrize("rejected", ["by the trial", "by the loss of all rows", "by the stack"])
def test_what_was_tried_and_not_kept_is_shown(rejected, monkeypatch):
    if rejected == "by the stack":
        monkeypatch.setattr(log_odds, "log_odds_pay", lambda *given: False)
    worse = {"by the trial": 2, "by the loss of all rows": 4}.get(rejected)
    scale, calls = log_odds.log_odds_scale, []

    def scaled(*given):  # before and after: of the trial, then of all rows
        calls.append(1)
        stack, loss = scale(*given)
        return stack, 2.0 * loss if len(calls) == worse else loss

    monkeypatch.setattr(log_odds, "log_odds_scale", scaled)
    model = LSSVMClassifier("fast", **ONE).fit(*two_normals(1600, 0))
    assert losses_of(model) == {"squared"}
    *trial, step = [step for step in model.record_.tuning.steps if step.stage == "log loss"]
    assert len(trial) == (rejected == "by the trial") and all(t.seconds > 0 for t in trial)
    assert not step.taken and (step.gain > 0) == (rejected == "by the stack")
    start = "- not worth its cost" if rejected == "by the trial" else "- tried, not kept"
    line = f"{start}: {step.what}, gain {step.gain:.2%} of the loss."
    assert line in model.summary_.splitlines()
    assert (step.seconds > 0) == (rejected != "by the trial")


def test_half_of_a_single_leaf_may_tell_that_all_rows_are_not_worth_it(monkeypatch):
    asked = []

    def pays(work, plan, before, after, errors):
        known = np.flatnonzero(np.isfinite(after[0][2][:, 0]))
        asked.append((errors, len(known)))
        return False

    monkeypatch.setattr(log_odds, "log_odds_pay", pays)
    model = LSSVMClassifier(**ONE).fit(*two_normals(1600, 0))
    assert losses_of(model) == {"squared"}
    assert len(model.record_.local_members[0].local.leaves) == 1
    assert asked == [(log_odds._HALF_ERRORS, 1000)]  # not asked again of all rows: none was fitted
    trial, step = [step for step in model.record_.tuning.steps if step.stage == "log loss"]
    assert not trial.taken and trial.seconds > 0.0
    assert not step.taken and step.gain > 0 and step.seconds == 0.0
