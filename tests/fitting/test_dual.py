"""The recipe of the dual model without an estimator, and what its record keeps."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from lssvm import LSSVC, LSSVR
from lssvm._core.errors import InvalidInputError
from lssvm._core.progress import Listener
from lssvm.backends.host import Host
from lssvm.backends.rows import Rows
from lssvm.codes import Coding
from lssvm.fitting.dual import DualSettings, fit_dual
from lssvm.kernels.factory import KernelChoice
from lssvm.tasks import Classes, Numbers
from lssvm.tuning import GridSearch, PathSearch
from lssvm.tuning.dual import DualObjective

rng = np.random.default_rng(0)
X, new = rng.normal(size=(60, 2)), rng.normal(size=(9, 2))
y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=60)
labels = np.digitize(y, [-0.4, 0.5])
weight = rng.uniform(0.5, 2.0, size=60)
GRID = GridSearch([0.5, 5.0], [0.3, 1.0])
HERE = Host(2**30, 1)


def settings(**given):
    asked = {"C": None, "choice": KernelChoice("rbf", "cv"), "cv": 4, "search": GRID}
    return DualSettings(**{**asked, "scoring": None, "seed": 0, **given})


def silent(event):
    pass


class TestWithoutAnEstimator:
    def test_numbers(self):
        told = []
        rows = Rows(X, y[:, None], weight, sample_weight=weight)
        fit = fit_dual(rows, Numbers(1), settings(), Listener(told.append))
        model = LSSVR("cv", gamma="cv", cv=4, search=GRID).fit(X, y, weight)
        np.testing.assert_allclose(fit.outputs({"none": new})[:, 0], model.predict(new), rtol=1e-12)
        assert (fit.expansion.C[0], fit.state.gamma) == (model.C_, model.gamma_)
        assert told[-1]["stage"] == "done"

    @pytest.mark.parametrize("options", [{}, {"targets": "fisher", "class_weight": "balanced"}])
    def test_classes_and_given_splits(self, options):
        task = Classes.of(np.array(["a", "b", "c"]), multiclass="ovo", **options)
        table = task.table(task.counts(labels, weight))
        own = weight * table.factors[labels]
        splits = [(np.arange(30), np.arange(30, 60)), (np.arange(20, 60), np.arange(20))]
        rows = Rows(X, table.looked_up(labels), own, labels, sample_weight=weight)
        fit = fit_dual(rows, task, settings(cv=splits), Listener(silent))
        coding = Coding("ovo", targets=options.get("targets", "label"))
        model = LSSVC("cv", gamma="cv", cv=splits, search=GRID, multiclass=coding)
        model.set_params(class_weight=options.get("class_weight"))
        model.fit(X, task.classes[labels], weight)
        assert (fit.expansion.C[0], fit.state.gamma) == (model.C_, model.gamma_)
        np.testing.assert_array_equal(task.predict(fit.outputs({"none": new})), model.predict(new))
        held = fit.calibration.out_of_fold(fit, HERE)
        np.testing.assert_array_equal(held.labels, labels[[*range(30, 60), *range(20)]])

    def test_the_settings_of_an_estimator(self):
        ask = DualSettings.of(
            LSSVR(3.0, kernel="linear", reduction="l0", search=PathSearch(per_output=True))
        )
        assert (ask.C, ask.separate, ask.tunes, ask.reduction_text) == (3.0, True, False, "'l0'")


class TestCheckpoint:
    def test_a_stopped_fit_goes_on(self, tmp_path):
        def stop(event):
            if event["n_evaluations"] >= 2:
                raise KeyboardInterrupt

        file, whole = tmp_path / "search.jsonl", LSSVR("cv", gamma="cv", cv=4, search=GRID)
        search = replace(GRID, checkpoint=file)
        rows = Rows(X, y[:, None], caller_data=(X, y))
        with pytest.raises(KeyboardInterrupt):
            fit_dual(rows, Numbers(1), settings(search=search), Listener(stop))
        points = []
        at = DualObjective.at
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                DualObjective, "at", lambda self, gamma: points.append(gamma) or at(self, gamma)
            )
            again = LSSVR("cv", gamma="cv", cv=4, search=search).fit(X, y)
        whole.fit(X, y)
        assert len(points) == 1  # of the two kernel parameters one is in the file
        assert (again.C_, again.gamma_) == (whole.C_, whole.gamma_)
        np.testing.assert_array_equal(
            again.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"]
        )

    def test_another_problem_is_refused(self, tmp_path):
        search = replace(GRID, checkpoint=tmp_path / "search.jsonl")
        model = LSSVR("cv", gamma="cv", cv=4, search=search).fit(X, y)
        model.fit(X, y)
        for change in ({"cv": 5}, {"fit_intercept": False}):
            with pytest.raises(ValueError, match="checkpoint"):
                LSSVR("cv", gamma="cv", **{"cv": 4, "search": search, **change}).fit(X, y)
        with pytest.raises(ValueError, match="checkpoint"):
            model.fit(X, y + 0.1 * X[:, 1])
        with pytest.raises(InvalidInputError, match="per_output=False"):
            LSSVR("cv", search=replace(search, per_output=True)).fit(X, y)

    def test_later_searches_of_a_fit_leave_it_alone(self, tmp_path):
        spoiled = y + 9.0 * (np.arange(60) % 7 == 0)
        search = replace(GRID, checkpoint=tmp_path / "search.jsonl")
        for options in ({"loss": "huber"}, {"gamma": "ard"}):
            file = tmp_path / f"{next(iter(options))}.jsonl"
            own = {"gamma": "cv", **options}
            model = LSSVR("cv", cv=4, search=replace(search, checkpoint=file), **own)
            plain = LSSVR("cv", cv=4, search=GRID, **own).fit(X, spoiled)
            for _ in range(2):
                model.fit(X, spoiled)
                np.testing.assert_array_equal(model.predict(new), plain.predict(new))


@pytest.mark.parametrize("form", ["prediction", "support"])
class TestForms:
    """What a file of a form keeps of a record gives the same numbers, or says what is missing."""

    def stored(self, model, form):
        small = copy(model)
        small._publish(model.record_.stripped(form))
        return small

    @pytest.mark.parametrize("C", [2.0, "cv"])
    def test_intervals(self, form, C):
        model = LSSVR(C, gamma=0.5, cv=4).fit(X, y, weight)
        small = self.stored(model, form)
        np.testing.assert_array_equal(small.predict(new), model.predict(new))
        if form == "prediction":
            np.testing.assert_array_equal(small.predict_interval(new), model.predict_interval(new))
            return
        assert small.record_.calibration.X.shape[0] == len(small.record_.calibration.Y) == 0
        with pytest.raises(InvalidInputError, match="keep='support'"):
            small.predict(new, return_std=True)

    @pytest.mark.parametrize("C", [2.0, "cv"])
    def test_probabilities(self, form, C):
        model = LSSVC(C, gamma=0.5, cv=4).fit(X, labels, weight)
        small = self.stored(model, form)
        np.testing.assert_array_equal(small.predict(new), model.predict(new))
        if form == "prediction" and C != "cv":
            np.testing.assert_array_equal(small.predict_proba(new), model.predict_proba(new))
            return
        if form == "prediction":  # the file holds the maps that the scores have made
            assert small.record_.calibration.held_out is None
            return
        assert (
            small.record_.calibration.held_out is None
            and len(small.record_.calibration.labels) == 0
        )
        with pytest.raises(InvalidInputError, match="keep='support'"):
            small.predict_proba(new)

    def test_what_has_no_error_bars_keeps_no_rows(self, form):
        for options in ({"loss": "huber"}, {"reduction": "prune"}):
            model = LSSVR(2.0, gamma=0.5, **options).fit(X, y)
            calibration = model.record_.stripped(form).calibration
            assert calibration.X.shape[0] == len(calibration.Y) == len(calibration.parts) == 0


def test_scores_of_classes_stand_for_the_rows():
    for options in ({"C": "cv", "cv": 4}, {"C": 2.0, "reduction": "prune"}):
        calibration = LSSVC(gamma=0.5, **options).fit(X, labels).record_.calibration
        assert calibration.parts == [] and calibration.X.shape[0] == 0
        assert calibration.held_out.shape == (60, 3) and sorted(calibration.held_out_rows) == list(
            range(60)
        )


def test_error_bars_do_not_factorise_twice(monkeypatch):
    from lssvm.solvers import Cholesky

    calls, plain = [], Cholesky.factorise
    model = LSSVR(2.0, gamma=0.5).fit(X, y)
    monkeypatch.setattr(
        Cholesky, "factorise", lambda self, system: calls.append(1) or plain(self, system)
    )
    model.predict_interval(new)
    model.predict(new, return_std=True)
    assert len(calls) == 1


def test_a_record_can_be_read_and_changed_by_others():
    fit = LSSVR(2.0, gamma=0.5).fit(X, y).record_
    one = fit.expansion
    twice = fit.solved(coef=2.0 * one.coef, intercept=2.0 * one.intercept)
    np.testing.assert_allclose(twice.outputs({"none": new}), 2.0 * fit.outputs({"none": new}))
