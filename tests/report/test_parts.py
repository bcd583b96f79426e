"""The parts of a page: markup, scales, pictures, rows, refits."""

from __future__ import annotations

import re
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.inspection import permutation_importance
from sklearn.metrics import log_loss
from tests.report import cases
from tests.report.pages import Page

from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, scan
from lssvm.plots import TuningSurfaceDisplay
from lssvm.plots.charts import (
    SHAPES,
    Band,
    Bars,
    Chart,
    HeatMap,
    Line,
    Points,
    Rule,
    Star,
    Words,
)
from lssvm.plots.plane import project
from lssvm.plots.rows import SampledRows
from lssvm.report import refits, write_report
from lssvm.report.columns import leaks, shuffle_importance
from lssvm.report.html import (
    Markup,
    Scale,
    escape,
    figure,
    nice_ticks,
    plain,
    style,
    svg,
    table,
    tag,
)
from lssvm.report.performance import error_histogram
from lssvm.report.refits import copy_size, learning_curve, out_of_fold, tuned_copy
from lssvm.report.text import number, percent, short


@given(st.text())
@settings(max_examples=60, deadline=None)
def test_any_text_is_text_again_in_the_page(text):
    page = Page(tag("p", text, title=text))
    (words,) = page.attributes("p", "title")
    assert words == page.text.replace("\r", "\n") or words == page.text
    assert [name for name, _ in page.tags] == ["p"]


def test_markup_stays_and_text_does_not():
    assert escape(Markup("<b>")) == "<b>"
    assert escape("<b>") == "&lt;b&gt;"
    assert tag("p", ["a<", [tag("i", "b")], None]) == "<p>a&lt;<i>b</i></p>"
    assert plain(tag("p", "x < y & z")) == "x < y & z"


def test_a_table_has_headings_and_a_caption():
    page = Page(table("what & why", ["a", "b"], [["x", 1], ["y", 2]]))
    assert page.attributes("th", "scope") == ["col", "col", "row", "row"]
    assert page.attributes("div", "aria-label") == ["what & why"]


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (-3.2, 1e6), (1e-9, 3e-9), (999.5, 1000.5), (-5.0, -4.9)]
)
def test_ticks_are_inside_and_neither_few_nor_many(low, high):
    ticks = nice_ticks(low, high)
    assert 2 <= len(ticks) <= 9
    assert all(low <= tick <= high for tick in ticks)
    steps = np.diff(ticks)
    np.testing.assert_allclose(steps, steps[0], rtol=1e-6)


def test_a_logarithmic_scale_names_powers():
    scale = Scale.of([0.001, 1e6], 0, 100, log=True)
    names = [name for _, name in scale.ticks()]
    assert "0.001" in names or "0.01" in names
    (first, second), names = zip(*Scale.of([2.0, 9.0], 0, 100, log=True).ticks(), strict=True)
    assert (first, second) == pytest.approx((2.0, 5.0)) and names == ("2", "5")


@pytest.mark.parametrize("values", [[3.0, 3.0], [np.nan, np.inf], [], [0.0]])
def test_a_scale_of_nothing_is_still_a_scale(values):
    scale = Scale.of(values, 0.0, 100.0)
    assert scale.high > scale.low
    assert np.isfinite(scale(1.0))


def test_words_for_numbers():
    assert [number(v) for v in (0, 1.0, 12345.678, 1e-7, -0.5)] == [
        "0",
        "1",
        "12,346",
        "1.00e\u221207",
        "\u22120.500",
    ]
    assert [number(v) for v in (0.9999, 50.96, 51, 999.96)] == ["1.00", "51.0", "51", "1000"]
    assert [number(v) for v in (2005.0, 10_000)] == ["2005", "10,000"]
    assert percent(0.9999, 0) == "> 99 %"
    assert short("abc", 3) == "abc"


@pytest.mark.parametrize("shape", SHAPES)
def test_pictures_hold_what_was_drawn(shape):
    cells = np.array([[0.0, 0.0, 1.0], [np.nan, 1.0, 1.0]])
    marks = [
        HeatMap(np.linspace(0, 1, 4), np.linspace(0, 1, 3), values=cells, ends=("lo", "hi")),
        Points([0.1, 0.5, np.nan], [0.2, 0.9, 0.3], colour=2, shape=shape, outlined=True),
        Band([0, 1], ([0, 0], [1, 1])),
        Rule(0.5, None),
        Bars([0, 0.5, 1], [1, 0.5]),
        Words([0.5], [0.5], texts=["<w>"]),
    ]
    chart = Chart("p", "x", "y", marks)
    page = Page(svg(chart))
    marks = [d for d in page.attributes("path", "d") if d.count("M") == 2 and "V" not in d]
    assert marks, "the two finite points are in one path"
    assert "<w>" in page.text
    assert "lo" in page.text and "nan" not in svg(chart)


def test_the_legend_names_the_labelled_marks_by_their_symbols():
    marks = [
        Line([0, 1], [0, 1], "rising", 3),
        Line([0, 1], [1, 0], "falling", "text", dashed=True),
        Points([0.5], [0.5], "ringed", 1, outlined=True),
        Band([0, 1], ([0, 0], [1, 1])),
        Star(0.5, 0.5, "chosen", "wrong"),
    ]
    page = Page(figure(Chart("t", "x", "y", marks), "c"))
    symbols = page.attributes("span", "class")
    assert symbols == ["key s3 line", "key text dash", "key s1 ring", "key wrong star"]
    assert all(word in page.text for word in ("rising", "falling", "ringed", "chosen"))


def test_the_values_of_a_chart_are_those_of_its_marks():
    chart = Chart("t", "x", "y", [Rule(None, 3.0), Band([1, 2], ([0, 1], [4, 5]))])
    assert chart.values("x").tolist() == [1, 2] and chart.values("y").max() == 5
    assert Chart("t", "x", "y", []).values("x").size == 0


def test_points_outside_the_axes_stay_in_the_picture():
    line = Line([-9, 9], [-9, 9])
    chart = Chart("p", "x", "y", [line], x_limits=(0, 1), y_limits=(0, 1))
    (d,) = [d for d in Page(svg(chart)).attributes("path", "d") if "L" in d]
    places = np.array(d[1:].replace("L", " ").split(), dtype=float)
    assert places.min() >= 0
    assert places.max() <= 400


def test_the_principal_plane_is_that_of_the_largest_variance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)) * [1.0, 5.0, 0.1, 3.0]
    points, places, (x, _) = project(X, X[:3], ("a", "b", "c", "d"))
    assert x.startswith("principal component 1")
    np.testing.assert_allclose(points[:3], places)
    spread = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[:2]
    np.testing.assert_allclose(np.sqrt((points**2).sum(axis=0)), spread)


def test_rows_of_a_scan_are_those_the_model_takes():
    case = cases.prepared()
    rows = SampledRows.read(case.model, case.test)
    assert rows.target == ("outcome",)
    np.testing.assert_array_equal(
        case.model.predict(rows.inputs(case.model)), case.model.predict(case.test)
    )
    back = np.arange(len(rows))[::-1]
    shuffled = rows.permuted("job", back)
    np.testing.assert_array_equal(shuffled.block.texts[0].codes, rows.block.texts[0].codes[::-1])
    np.testing.assert_array_equal(shuffled.block.numbers, rows.block.numbers)
    shuffled = rows.permuted("income", back)
    here = rows.schema.numbers.index("income")
    expected = rows.block.numbers.copy()
    expected[:, here] = expected[::-1, here]
    np.testing.assert_array_equal(shuffled.block.numbers, expected)
    assert shuffled.block.texts[0] is rows.block.texts[0]


def test_a_sample_of_a_scan_is_uniform_and_in_order():
    X = np.arange(20_000.0)[:, None]
    model = LSSVC(1.0, gamma=1.0).fit(X[:4], [0, 1, 0, 1])
    rows = SampledRows.read(model, scan(X, target=np.arange(20_000) % 2), limit=500)
    assert len(rows) == 500
    assert not rows.complete
    np.testing.assert_array_equal(rows.positions, rows.block.numbers[:, 0])
    assert abs(rows.positions.mean() - 10_000) < 1_200


def test_out_of_fold_predictions_are_those_of_fits_without_the_rows():
    X, y = cases.curve(40)
    model = LSSVR(5.0, gamma=0.5).fit(X, y)
    found, rows = out_of_fold(model, SampledRows.read(model, (X, y)))
    assert sorted(rows.positions) == list(range(40))
    inside = np.flatnonzero(rows.positions < 40)
    for i in inside[:3]:
        same = np.abs(found.predicted[i, 0] - model.predict(X[[rows.positions[i]]])[0])
        assert same > 1e-9  # the model itself has seen the row
    assert np.mean((found.predicted - found.Y) ** 2) < np.var(y)
    np.testing.assert_array_equal(found.Y[:, 0], y[rows.positions])


def test_a_copy_has_the_chosen_parameters():
    case = cases.one_vs_one()
    copy = tuned_copy(case.model, 1000)
    assert copy.C == np.median(case.model.C_)
    assert copy.gamma == case.model.gamma_
    assert copy.n_prototypes == copy_size(case.model) == 20
    assert tuned_copy(case.model, 10).n_prototypes == 10
    small = tuned_copy(cases.reduced().model, 1000)
    assert small.reduction is None
    np.testing.assert_array_equal(small.selection, cases.reduced().model.prototypes_)


def test_many_pairs_of_classes_make_smaller_copies(monkeypatch):
    case = cases.one_vs_one()
    monkeypatch.setattr(refits, "COPY_WORK", 3 * 12.5**3)
    assert copy_size(case.model) == tuned_copy(case.model, 1000).n_prototypes == 12
    assert learning_curve(case.model, SampledRows.read(case.model, case.train), None) is None
    assert copy_size(cases.dual_classifier().model) is None


def test_the_learning_curve_ends_in_the_model_itself():
    case = cases.regression()
    rows = [SampledRows.read(case.model, part) for part in (case.train, case.test)]
    curve = learning_curve(case.model, *rows)
    assert curve.sizes.tolist() == [10, 17, 27, 45, 75, 150]
    X, y = case.test
    error = np.sqrt(np.mean((case.model.predict(X) - y) ** 2)) / y.std()
    assert curve.error[-1] == pytest.approx(error)
    assert curve.error[0] > curve.error[-1]


def test_few_rows_have_no_learning_curve():
    X, y = cases.curve(12)
    model = LSSVR(5.0, gamma=0.5).fit(X, y)
    assert learning_curve(model, SampledRows.read(model, (X, y)), None) is None


@pytest.mark.parametrize("together", [1, 100])
def test_shuffling_is_the_permutation_importance_of_scikit_learn(monkeypatch, together):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(60, 3)), rng.uniform(0.5, 2.0, size=60)
    y = X[:, 0] + 0.3 * X[:, 1] ** 2
    model = LSSVR(10.0, gamma=0.3).fit(X, y, sample_weight=weight)
    monkeypatch.setattr("lssvm.report.columns.NUMBERS", together * X.size)
    rows = SampledRows.read(model, scan(X, target=y, weight=weight))
    found = shuffle_importance(model, rows)

    def score(model, X, y):
        return -np.average((model.predict(X) - y) ** 2, weights=weight) / y.var()

    theirs = permutation_importance(model, X, y, scoring=score, n_repeats=200, random_state=0)
    order = [int(name[1:]) for name in found.names]
    assert order == np.argsort(-theirs.importances_mean).tolist() and found.repeats == 30
    error = 4 * theirs.importances_std / np.sqrt(30)
    assert np.all(np.abs(found.mean - theirs.importances_mean[order]) < error[order] + 1e-12)


def test_the_column_that_decides_is_found_among_many(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 80))
    y = X[:, 70] > 0
    monkeypatch.setattr("lssvm.report.columns.REPEATS", (2, 5))
    model = LSSVC(1.0, kernel="linear").fit(X, y)
    found = shuffle_importance(model, SampledRows.read(model, (X, y)))
    assert found.names[0] == "x70"
    assert (found.tried, found.all) == (60, 80)
    assert found.mean[0] > 5 * np.abs(found.mean[1:]).max()


def test_a_column_matters_by_the_log_loss_where_no_prediction_changes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 2))
    y = np.where(rng.random(1200) < 0.06 * (1.0 + np.tanh(2.0 * X[:, 0])), "bad", "good")
    model = LSSVC(0.1, gamma=0.1).fit(X, y)
    assert set(model.predict(X)) == {"good"}  # the accuracy would say that no column matters
    rows = SampledRows.read(model, (X, y))
    found = shuffle_importance(model, rows)
    assert found.loss == "log loss" and found.names[0] == "x0"
    assert found.mean[0] > 3 * found.error[0] and abs(found.mean[1]) < found.mean[0] / 3

    def loss(model, X, y):
        return -log_loss(y, model.predict_proba(X))

    theirs = permutation_importance(model, X, y, scoring=loss, n_repeats=30, random_state=1)
    assert found.mean[0] == pytest.approx(theirs.importances_mean[0], rel=0.15)
    assert found.error[0] < theirs.importances_mean[0]


def shades(dark):
    """Return the colours of the style sheet by name."""
    light, black = re.split(r"@media screen and \(prefers-color-scheme: dark\)", str(style()))[:2]
    found = dict(re.findall(r"--(\w[\w-]*): (#[0-9a-f]{6})", light))
    return found | dict(re.findall(r"--(\w[\w-]*): (#[0-9a-f]{6})", black)) if dark else found


def contrast(a, b):
    """Return the contrast of two colours as WCAG 2 defines it."""

    def luminance(colour):
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_words_and_lines_stand_out(dark):
    colours = shades(dark)
    for words in ("text", "soft", "accent"):
        for ground in ("page", "card", "note", "code"):
            assert contrast(colours[words], colours[ground]) >= 4.5, (words, ground)
    for line in ["wrong", *(f"c{i}" for i in range(8)), *(f"q{i}" for i in range(5))]:
        assert contrast(colours[line], colours["card"]) >= 3.0, line
    part = 0.42 if dark else 0.52
    assert f"--mix: {part:.0%}" in style()
    for fill in ("accent", "wrong"):  # the strongest cells of the confusion matrix
        mixed = [
            round(part * int(colours[fill][i : i + 2], 16) + (1 - part) * int(ground, 16))
            for i, ground in ((i, colours["code"][i : i + 2]) for i in (1, 3, 5))
        ]
        cell = "#" + "".join(f"{value:02x}" for value in mixed)
        assert contrast(colours["text"], cell) >= 4.5, fill


def test_errors_beyond_the_bars_are_said_to_be_in_the_outermost():
    far = np.append(np.linspace(-1, 1, 400), 30.0)
    assert "outermost bars" in str(error_histogram(far))
    assert "outermost bars" not in str(error_histogram(np.repeat([-1.0, 1.0], 200)))


def frame_with_faults(n=240):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    frame = pd.DataFrame({"a": rng.normal(size=n), "number": np.arange(n) + 1000})
    frame["paid_back"] = np.where(y == 1, 1.0, 0.0) * 250 + rng.uniform(size=n)
    frame["kind"] = np.array(["x", "y"])[rng.integers(2, size=n)]
    frame["fixed"] = 3.0
    frame.loc[::10, "a"] = np.nan
    frame["y"] = np.where(y == 1, "yes", "no")
    return frame


def test_a_leak_an_identifier_and_holes_are_named(tmp_path):
    frame = pd.concat([frame_with_faults(), frame_with_faults().iloc[:5]])
    data = scan(frame, target="y")
    model = FixedSizeLSSVC(15, C=1.0, gamma=0.1, random_state=0).fit(data)
    facts = write_report(model, tmp_path / "r.html", train=data)
    found = facts["data"]
    assert set(found["suspected_leaks"]) == {"paid_back"}
    assert found["suspected_leaks"]["paid_back"] > 0.98
    assert found["constant"] == ["fixed"]
    assert found["duplicates"] == 5
    assert found["missing"] == {"a": pytest.approx(25 / 245)}
    lead = Page((tmp_path / "r.html").read_text(encoding="utf-8")).text
    assert "“paid_back” alone predicts the target" in lead[: lead.index("How good it is")]
    data = scan(frame_with_faults().drop(columns="paid_back"), target="y")
    model = FixedSizeLSSVC(15, C=1.0, gamma=0.1, random_state=0).fit(data)
    found = write_report(model, tmp_path / "r.html", train=data)["data"]
    assert found["suspected_ids"] == ["number"] and found["suspected_leaks"] == {}


def test_a_number_that_follows_from_one_column_is_a_leak_too():
    X, y = cases.curve(300)
    X = np.column_stack([X, np.exp(y)])
    rows = SampledRows.read(LSSVR(1.0, gamma=0.1).fit(X, y), (X, y))
    assert set(leaks(rows, False)) == {"x3"}
    assert leaks(rows.take(np.arange(20)), False) == {}  # too few rows to suspect anything


def test_nearly_all_rows_of_one_class_are_no_leak():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.arange(400) % 100 == 0
    rows = SampledRows.read(LSSVC(1.0, gamma=0.1).fit(X, y), (X, y))
    assert leaks(rows, True) == {}


@pytest.mark.parametrize(
    ("gain", "spread", "words"),
    [
        (0.10, 0.02, "still falling"),
        (0.03, 0.02, "do not show"),
        (0.01, 0.02, "do not show"),
        (0.01, 0.01, "no longer fell"),
        (-0.01, 0.02, "no longer fell"),
        (-0.10, 0.02, "rose"),
    ],
)
def test_the_sentence_follows_the_learning_curve(gain, spread, words):
    sizes, error = np.array([10, 20, 40, 80, 160]), np.full(5, 0.3)
    ends = (gain - 2 * spread, gain + 2 * spread)
    curve = refits.LearningCurve(sizes, error, 0.02 * error, ends, 0.3, 100, False)
    assert words in curve.verdict() and "from 40 to 160 rows" in curve.verdict()
    assert "a longer past" in curve.verdict("values", "a longer past")


def test_a_class_has_one_colour_in_every_picture(tmp_path):
    case = cases.binary()
    write_report(case.model, tmp_path / "r.html", train=case.train, test=case.test)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    keys = re.findall(r'<span class="key (s\d)[^"]*"[^>]*></span> ([01])</li>', text)
    assert set(keys) == {("s0", "0"), ("s1", "1")}
    assert len(keys) >= 4  # the histogram and the plane
    scores = text[text.index('id="scores"') : text.index('id="costs"')]
    assert 'class="ln s1"' in scores and 'class="ln s0"' not in scores  # curves of class 1


def test_a_search_is_drawn_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    results = LSSVC(C="cv", gamma="cv", cv=3, search="grid").fit(X, y).cv_results_
    display = TuningSurfaceDisplay(results)
    page = Page(figure(display.chart(), "c"))
    assert ("best so far" in page.text) == (len(display.path) > 1)
    assert "grid" in page.text and "chosen: C = " in page.text
    shades = [found for _, found in page.tags if "cell" in (found.get("class") or "")]
    assert len(shades) == 12 and sum(len(found["d"]) > 100 for found in shades) > 3
    display.path = display.path[-1:]
    assert "best so far" not in figure(display.chart(), "c")
