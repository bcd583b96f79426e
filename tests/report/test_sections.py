"""Shapes, explained rows, costs, comparison, suggestions, models for tables, forecasts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from tests.report import cases
from tests.report.pages import Page
from tests.report.rough import make_rough

from lssvm import (
    LSSVC,
    LSSVR,
    NARX,
    FixedSizeLSSVC,
    LSSVMClassifier,
    LSSVMRegressor,
)
from lssvm._core.errors import InvalidInputError
from lssvm.fitting.record import Step
from lssvm.plots.plane import Grid, partial_dependence, project, responses
from lssvm.plots.rows import SampledRows
from lssvm.preparation import TablePreparation
from lssvm.report import write_report
from lssvm.report.columns import explanation
from lssvm.report.comparison import TABLE, as_matrix, compare, suggestions
from lssvm.report.forecast import (
    COVERAGES,
    compared_runs,
    free_runs,
    interval_runs,
    mean_with_interval,
    read_series,
    same_model,
    series_curve,
)
from lssvm.report.measures import ClassPredictions
from lssvm.report.performance import thresholds
from lssvm.report.refits import read_subject
from lssvm.report.text import duration, plus_minus


def subject(name):
    case = cases.CASES[name]()
    return read_subject(case.model, case.train, case.test)


# -- shapes ----------------------------------------------------------------------------------------


def test_partial_dependence_is_the_mean_over_rows_with_one_column_replaced():
    X, y = cases.curve(60)
    model = LSSVR(10.0, gamma=0.5).fit(X, y)
    rows = SampledRows.read(model, (X, y)).take(np.arange(12))
    grids = [Grid.of(rows, "x0", 5), Grid.of(rows, "x2", 3)]
    found, what = partial_dependence(model, rows, grids)
    assert found.shape == (5, 3, 12, 1) and what == "value"
    for i, a in enumerate(grids[0].values):
        for j, b in enumerate(grids[1].values):
            changed = X[:12].copy()
            changed[:, 0], changed[:, 2] = a, b
            np.testing.assert_allclose(found[i, j, :, 0], model.predict(changed), atol=1e-10)


def test_categories_are_tried_from_the_most_frequent_on():
    case = cases.prepared()
    rows = SampledRows.read(case.model, case.train)
    grid = Grid.of(rows, "job", 20)
    assert grid.text and set(grid.values) == {"cook", "smith", "<script>alert(1)</script>"}
    found, what = partial_dependence(case.model, rows.take(np.arange(9)), [grid])
    assert what == "probability"
    np.testing.assert_allclose(found.sum(axis=-1), 1.0)


def test_a_constant_column_has_no_grid():
    X, y = np.column_stack([np.ones(30), np.arange(30.0)]), np.arange(30.0)
    rows = SampledRows.read(LSSVR(1.0, gamma=1.0).fit(X, y), (X, y))
    assert Grid.of(rows, "x0", 5) is None
    assert len(Grid.of(rows, "x1", 5).values) == 5


def test_answers_fall_back_on_scores():
    case = cases.bare()
    values, what = responses(case.model, case.test[0])
    assert what == "score"
    np.testing.assert_allclose(values[:, 1], case.model.decision_function(case.test[0]))


# -- rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["prepared", "pipeline", "table_classifier", "dual_regressor"])
def test_explanations_add_up_to_what_the_model_says(name):
    about = subject(name)
    found = explanation(about, [0, 3, 5])
    some = about.checked.take([0, 3, 5]).inputs(about.estimator)
    if about.classification:
        np.testing.assert_allclose(found.prediction, about.estimator.decision_function(some))
    else:
        np.testing.assert_allclose(found.prediction, about.estimator.predict(some))


# -- costs -----------------------------------------------------------------------------------------


def test_costs_are_those_of_counting_at_every_threshold():
    rng = np.random.default_rng(0)
    p, labels = rng.random(200), rng.integers(0, 2, 200)
    weight = rng.integers(1, 4, 200).astype(float)
    both = np.column_stack([1 - p, p])
    found = ClassPredictions(np.array(["a", "b"]), labels, (p > 0.5) * 1, both, None, weight)
    made = thresholds(found)
    for at in (0, 57, 100, 200):
        cut = made.thresholds[at]
        cost = sum(
            w * (1.0 if label == 0 else 5.0)
            for value, label, w in zip(p, labels, weight, strict=True)
            if (value > cut) != bool(label)
        )
        assert made.cost(5.0)[at] == pytest.approx(cost / weight.sum())
    assert made.default[0] + made.default[1] == pytest.approx(made.cost(1.0)[100])


def test_three_classes_have_no_thresholds():
    assert thresholds(subject("one_vs_one").classes) is None


# -- comparison and suggestions --------------------------------------------------------------------


def test_the_comparison_counts_the_same_rows(monkeypatch):
    about = subject("binary")
    assert TABLE not in {one.name for one in compare(about)}  # of so few rows
    monkeypatch.setattr("lssvm.report.comparison.FEW", 100)
    found = {one.name: one for one in compare(about)}
    y = about.checked.y
    share = max(np.mean(y == label) for label in np.unique(about.train.y))
    usual = found["the most frequent class"]
    assert found[TABLE].value > usual.value
    assert usual.value == pytest.approx(np.mean(y == 0)) or usual.value == pytest.approx(share)
    own = about.estimator.score(*cases.binary().test)
    assert usual.value + usual.gain == pytest.approx(own)


def test_texts_have_the_codes_of_the_training_rows():
    case = cases.prepared()
    train, test = (SampledRows.read(case.model, data) for data in (case.train, case.test))
    X = as_matrix(test, train)
    levels = train.block.texts[0].levels
    job = test.block.texts[0]
    for row in range(5):
        assert levels[int(X[row, -1])] == job.levels[job.codes[row]]


def test_a_leak_comes_first_and_a_one_sided_target_is_named():
    rng = np.random.default_rng(0)
    y = (np.arange(240) % 20 == 0).astype(int)
    X = np.column_stack([y + 0.01 * rng.normal(size=240), rng.normal(size=(240, 3))])
    model = FixedSizeLSSVC(20, C=1.0, gamma=0.1).fit(X, y)
    about = read_subject(model, (X, y), (X, y))
    about.facts |= {
        "data": {"suspected_leaks": {"x0": 1.0}, "suspected_ids": ["x3"]},
        "baseline_accuracy": 0.95,
        "importance_interval": {"x0": (0.4, 0.6), "x1": (-0.1, 0.1), "x2": (-1, 0), "x3": (-2, -1)},
    }
    lines = suggestions(about, "More rows.")
    assert "“x0”" in lines[0] and "“x3”" in lines[1]
    assert any('gamma="ard"' in line for line in lines)
    assert [line for line in lines if "falls when" in line] == [
        "The loss falls when “x3” is shuffled: try without it."
    ]
    assert any('class_weight="balanced"' in line for line in lines)
    assert lines[-1] == "More rows."


def test_few_binary_problems_for_many_classes_are_named():
    X, y = cases.rows(120, 6)
    model = LSSVC(1.0, gamma=0.1, multiclass="moc").fit(X, y)
    lines = suggestions(read_subject(model, (X, y), (X, y)), None)
    assert any('multiclass="ova"' in line for line in lines)


# -- models for tables -----------------------------------------------------------------------------


def test_dates_booleans_and_categories_come_back_as_the_model_took_them():
    case = cases.table_classifier()
    rows = SampledRows.read(case.model, case.test)
    np.testing.assert_allclose(
        case.model.decision_function(rows.inputs(case.model)),
        case.model.decision_function(case.test[0]),
    )


def test_an_array_of_text_and_numbers_has_a_report(tmp_path, monkeypatch):
    make_rough(monkeypatch)
    frame, t = cases.mixed(90)
    X = frame[["age", "job"]].astype(object).to_numpy()
    y = np.where(t > 0.7, "yes", "no")
    model = LSSVMClassifier("fast", scaling="standardised", kernel="laplacian").fit(X, y)
    facts = write_report(model, tmp_path / "r.html", train=(X, y), test=(X, y))
    assert set(facts["importance"]) == {"x0", "x1"}
    assert facts["configurations"]["kernel"] == ["laplacian"]
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "laplacian on standardised" in page.text


def test_a_setting_that_makes_frames_of_features_changes_no_report(tmp_path, monkeypatch):
    make_rough(monkeypatch)
    frame, t = cases.mixed(90)
    X = frame[["age", "job"]]
    asked = {"scaling": "standardised", "kernel": "rbf", "metric": None}
    model = LSSVMRegressor("fast", **asked).fit(X, t)
    points = np.random.default_rng(0).normal(size=(2, 9, 3))
    found = []
    for setting in ("default", "pandas"):
        with config_context(transform_output=setting):
            facts = write_report(model, tmp_path / "r.html", train=(X, t), test=(X, t))
            places = project(*points, ("a", "b", "c"))
        found.append((facts["comparison"], facts["metrics"], np.array(places[:2]).tolist()))
    assert found[0] == found[1]


def test_a_pipeline_that_prepares_dates_and_booleans_has_a_report(tmp_path, monkeypatch):
    make_rough(monkeypatch)
    frame, t = cases.mixed(90)
    model = make_pipeline(TablePreparation(), LSSVR(1.0, gamma=0.1)).fit(frame, t)
    rows = SampledRows.read(model, (frame, t))
    np.testing.assert_allclose(model.predict(rows.inputs(model)), model.predict(frame))
    facts = write_report(model, tmp_path / "r.html", train=(frame, t), test=(frame, t))
    assert set(facts["importance"]) == set(frame.columns)


def test_prototypes_beside_parts_have_a_line_of_their_own(tmp_path, monkeypatch):
    make_rough(monkeypatch)
    monkeypatch.setattr("lssvm.fitting.table.SMALL", 250)  # fewer rows are not cut into parts
    X = np.random.default_rng(1).normal(size=(300, 3))
    y = X[:, 0] + np.abs(X[:, 1])
    model = LSSVMRegressor(
        "fast", scaling="standardised", kernel="laplacian", leaf_size=80, n_prototypes=60
    ).fit(X, y)
    assert "prototypes" in model.configurations_["stage"]
    write_report(model, tmp_path / "r.html", train=(X, y), test=(X, y))
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert page.text.count("laplacian on standardised, prototypes") == 1
    assert "Prototypes are another model of all rows." in page.text
    # The tile, the section and the summary count the same.
    words = "1 configurations (a kernel on one kind of inputs) were tried, and 1 is in the stack"
    assert words.replace("1 configurations", f"{model.record_.n_tried} configurations") in page.text
    assert model.summary_.startswith("1 configuration ")
    tile = page.text.split("Configurations 1 of ")[1]
    assert tile.startswith(f"{model.record_.n_tried} that were tried")


def test_what_the_time_was_spent_on_and_what_more_would_gain_is_told(tmp_path, monkeypatch):
    make_rough(monkeypatch)
    X, y = cases.curve(120)
    model = LSSVMRegressor(
        "fast", scaling="standardised", kernel=["laplacian", "rbf"], metric=None
    ).fit(X, y)
    fit = model.record_
    more = (
        Step("leaf size", "trial of 200 rows in place of 100", np.nan, 0.0, 1.0, False),
        Step("leaf size", "200 rows in place of 100", 0.0123, 3.0, 0.0, False),
        Step("metric", "rbf on standardised, metric, round 1", -0.5, 3.0, 60.0, False),
        Step("leaf size", "400 rows in place of 200", np.inf, 9.0, 0.0, False),
    )
    steps = (*fit.tuning.steps, *more)
    model.record_ = replace(fit, tuning=replace(fit.tuning, steps=steps))
    facts = write_report(model, tmp_path / "r.html", train=(X, y), test=(X, y))
    assert [line["step"] for line in facts["steps"]] == [step.what for step in steps]
    assert [line["gain"] for line in facts["steps"][-4:]] == [None, 0.0123, -0.5, None]
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    seconds = sum(step.seconds for step in steps)
    assert f"What the {duration(seconds)} of the fit were spent on." in page.text
    assert "metric 1 min" in page.text and "screening" in page.text
    for line in (
        "200 rows in place of 100 not worth its cost 1.23 %",
        "rbf on standardised, metric, round 1 tried, not kept -50.00 %",
        "400 rows in place of 200 not tried for its time \u2013",
    ):
        assert line in page.text
    assert "trial of" not in page.text


def test_a_warp_is_drawn_where_the_prediction_changes(tmp_path, monkeypatch):
    make_rough(monkeypatch)
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.uniform(0, 100, 1200), rng.normal(size=(1200, 2))])
    y = np.tanh((X[:, 0] - 70) / 2) + 0.3 * X[:, 1] + 0.01 * rng.normal(size=1200)
    asked = {"kernel": "laplacian", "scaling": "standardised", "preset": "fast"}
    model = LSSVMRegressor(**asked).fit(X, y)
    assert model.configurations_["warped"][0]
    some = X[:150], y[:150]
    facts = write_report(model, tmp_path / "r.html", train=some, test=some)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Where along a column the prediction changes" in text and "of a warp" in text
    warp = facts["warps"]["x0"]
    middle = np.convolve(warp["edges"], [0.5, 0.5], "valid")
    assert abs(middle[np.argmax(warp["slope"])] - 70) < 8
    assert np.average(warp["slope"], weights=np.diff(warp["edges"])) == pytest.approx(1.0)


# -- forecasts -------------------------------------------------------------------------------------


def wave(n=260):
    return np.concatenate(cases.forecast()[1:])[:n]


@pytest.fixture(scope="module")
def narx():
    return cases.forecast().model


@pytest.mark.parametrize("held_out", [False, True])
def test_a_forecast_has_a_report_as_full_as_a_classifiers(narx, tmp_path, held_out, monkeypatch):
    make_rough(monkeypatch)
    y = wave()
    test = None if held_out else y[200:]
    options = {"title": "<b>waves</b>", "seconds": {"fit": 1.5}}
    facts = write_report(narx, tmp_path / "r.html", train=y[:200], test=test, **options)
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    expected = {"figures", "forecast", "errors", "intervals", "comparison", "data", "columns"}
    assert expected | {"learning", "help", "reproduce"} <= set(page.sections)
    assert "<b>waves</b>" in page.text
    json.dumps(facts, allow_nan=False)
    assert facts["data"]["season"] == 12 and facts["seconds"] == {"fit": 1.5}
    assert facts["metrics"]["mae"]["value"] < 0.5
    assert len(facts["learning_curve"]["values"]) >= 5
    assert ("no test values" in page.text) is held_out


def test_runs_begin_at_true_values_and_go_on_by_themselves(narx):
    y = wave()
    past, test = read_series(y[:200]), read_series(y[200:])
    runs = free_runs(narx, past, test, 24)
    origin = int(runs.origins[2])
    by_hand = narx.forecast(24, history=y[: 200 + origin])
    np.testing.assert_allclose(runs.forecast[2], by_hand)
    np.testing.assert_array_equal(runs.truth[2], y[200 + origin : 224 + origin])


@pytest.mark.parametrize(("n", "shown"), [(63, False), (64, True)])
def test_a_series_of_twice_the_shortest_part_has_a_learning_curve(narx, n, shown):
    y = wave()  # the shortest part: 12 lags and 20 rows
    curve = series_curve(narx, read_series(y[200 - n : 200]), read_series(y[200:]), 24)
    assert (curve is not None) == shown


def test_simple_rules_are_what_they_say(narx):
    y = wave()
    past, test = read_series(y[:200]), read_series(y[200:])
    runs = free_runs(narx, past, test, 24)
    found = compared_runs(narx, past, test, runs)
    origin = int(runs.origins[1])
    known, steps = y[: 200 + origin], np.arange(1, 25)
    slope = (known[-1] - known[0]) / (len(known) - 1)
    expected = {
        "repeating the last value": np.full(24, known[-1]),
        "continuing the straight line": known[-1] + slope * steps,
        "repeating the last 12 values": np.tile(known[-12:], 2),
    }
    assert set(found) == {*expected, "linear autoregression (ridge)"}
    for name, values in expected.items():
        np.testing.assert_allclose(found[name].forecast[1], values)
        np.testing.assert_array_equal(found[name].truth, runs.truth)


def test_inputs_and_lists_of_series():
    y, X = wave(120), np.arange(120.0)[:, None]
    model = NARX(LSSVR(10.0, gamma=0.01), lags=4, horizon=10).fit(y[:90], X[:90])
    runs = free_runs(model, read_series((y[:90], X[:90])), read_series((y[90:], X[90:])), 10)
    assert np.isfinite(runs.forecast).all()
    with pytest.raises(InvalidInputError, match="about one series"):
        read_series([y, y])
    assert same_model(NARX(lags=3).fit(y[:40])).get_params()["estimator__C"] > 0


def test_a_mean_of_one_run_has_no_interval():
    assert np.isnan(mean_with_interval(np.array([2.0]))[1])
    mean, low, high = mean_with_interval(np.array([1.0, 2.0, 3.0]))
    assert (mean, round(low, 3), round(high, 3)) == (2.0, -0.484, 4.484)


# -- words -----------------------------------------------------------------------------------------


def test_uncertainty_decides_the_digits():
    assert plus_minus(12.3456, 0.0321) == "12.346 ± 0.032"
    assert plus_minus(-3.0, 12.0) == "\u22123 ± 12"
    assert plus_minus(0.5, 0.0, sign=True) == "+0.500"
    assert duration(0.9999) == "1.0 s"
    assert duration(59.99) == "1 min 0 s"


def test_frames_of_pandas_keep_missing_values():
    frame = pd.DataFrame(
        {"a": [1.0, np.nan, 3.0], "when": pd.to_datetime(["2024-01-01", None, "2024-03-01"])}
    )
    rows = SampledRows.read(cases.table_classifier().model, (frame, np.array(["yes", "no", "no"])))
    assert rows.schema.kinds == ("number", "date")
    assert np.isnan(rows.block.numbers[1]).all() and np.isfinite(rows.block.numbers[::2]).all()


def test_all_coverages_of_a_forecast_are_those_of_its_intervals(monkeypatch):
    monkeypatch.setattr("lssvm.report.forecast.INTERVAL_RUNS", 1)
    model, train, test = cases.forecast()
    series = [read_series(values) for values in (train, test)]
    found = interval_runs(model, *series, free_runs(model, *series, 24))
    assert [each.coverage for each in found] == list(COVERAGES)
    for each in found:
        ends = model.predict_interval(24, coverage=each.coverage, history=train)
        np.testing.assert_allclose(each.ends, ends[None], rtol=1e-12)
        np.testing.assert_array_equal(each.Y, test[None, :24])


def test_dropped_columns_and_guesses_are_notes_of_the_page(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    words = [f"{v:.2f}" if i % 5 else "n/k" for i, v in enumerate(x)]
    frame = pd.DataFrame({"x": x, "one": "a", "mixed": words})
    model = LSSVMRegressor("fast").fit(frame, x)
    facts = write_report(model, tmp_path / "r.html", train=(frame, x), test=(frame, x))
    assert any(note.startswith("Column 'one' is dropped: ") for note in facts["notes"])
    assert any(note.startswith("Column 'mixed': ") for note in facts["notes"])
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "one = " not in text  # a column that was dropped adds nothing
