"""Sections of a regressor: predictions beside the truth, residuals, coverage of intervals."""

from __future__ import annotations

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.report.charts import Chart, figure
from lssvm.report.markup import Markup, join, table, tag
from lssvm.report.measures import coverage_measures
from lssvm.report.predictions import Intervals, NumberPredictions
from lssvm.report.scales import number, percent, short
from lssvm.report.subject import Section, Subject
from lssvm.report.summary import shown, span

DOTS = 2000
OUTPUTS = 6  # outputs that are drawn


def errors(subject: Subject) -> Section:
    """Return the section of predicted against true values and residuals."""
    found: NumberPredictions = subject.found
    n, k = found.Y.shape
    rows = np.arange(n)
    if n > DOTS:
        rows = np.sort(np.random.default_rng(0).choice(n, DOTS, replace=False))
    pictures = []
    for j in range(min(k, OUTPUTS)):
        y, f = found.Y[rows, j], found.predicted[rows, j]
        pictures.append(_beside(y, f, found.names[j], k))
        if k == 1:
            pictures += [_residuals(y, f), _spread(found.Y[:, 0] - found.predicted[:, 0])]
    said = f" {DOTS:,} rows drawn at random are shown." if n > DOTS else ""
    words = f"Points on the dashed line are predicted exactly.{said}"
    if k > OUTPUTS:
        words += f" The first {OUTPUTS} of {k} outputs are drawn."
    body = join([tag("p", words, class_="why"), tag("div", pictures, class_="pictures")])
    return Section("errors", "Where it is right and wrong", "Errors", body)


def _beside(y: FloatArray, f: FloatArray, name: str, k: int) -> Markup:
    low, high = _limits(np.concatenate([y, f]))
    chart = Chart(
        f"Predicted against true values of {short(name, 40)}",
        y,
        f,
        "true",
        "predicted",
        x_limits=(low, high),
        y_limits=(low, high),
    )
    ends = [low, high]
    chart.dots(y, f, 0, size=5.0, opacity=0.4)
    chart.line(ends, ends, None, dashed=True, width=1.3, opacity=0.7)
    label = "Predicted against true values" + (f": {short(name, 40)}." if k > 1 else ".")
    return figure(chart.svg(), label)


def _limits(values: FloatArray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    edge = 0.03 * (high - low) or 0.5 * (abs(low) or 1.0)
    return low - edge, high + edge


def _residuals(y: FloatArray, f: FloatArray) -> Markup:
    chart = Chart("Errors against predicted values", f, y - f, "predicted", "true minus predicted")
    chart.dots(f, y - f, 0, size=5.0, opacity=0.4).rule(y=0.0)
    edges = np.unique(np.quantile(f, np.linspace(0, 1, 9)))
    if len(edges) > 3 and len(f) >= 80:
        which = np.clip(np.searchsorted(edges, f, side="right") - 1, 0, len(edges) - 2)
        groups = [np.flatnonzero(which == g) for g in range(len(edges) - 1)]
        groups = [g for g in groups if len(g)]
        x = [float(np.median(f[g])) for g in groups]
        middle = [float(np.median((y - f)[g])) for g in groups]
        chart.line(x, middle, 1, width=2.6)
        key = [("s1 line", "median of an eighth of the rows")]
    else:
        key = []
    return figure(
        chart.svg(), "Errors against predictions: a bend would be something still to learn.", key
    )


def _spread(error: FloatArray) -> Markup:
    low, high = np.quantile(error, [0.005, 0.995])
    if not high > low:
        low, high = float(error.min()) - 0.5, float(error.max()) + 0.5
    bins = int(np.clip(np.sqrt(len(error)), 8, 30))
    counts, edges = np.histogram(np.clip(error, low, high), bins, (low, high))
    chart = Chart(
        "How errors are distributed",
        edges,
        [0, *counts],
        "true minus predicted",
        "rows",
        y_zero=True,
    )
    chart.bars(edges, counts, 0)
    middle, deviation = float(np.median(error)), float(error.std())
    if deviation > 0:
        x = np.linspace(low, high, 80)
        density = np.exp(-0.5 * ((x - error.mean()) / deviation) ** 2)
        density *= len(error) * (edges[1] - edges[0]) / (deviation * np.sqrt(2 * np.pi))
        chart.line(x, density, 1, width=1.8)
    caption = f"How errors are distributed (median {number(middle)})."
    if error.min() < low or error.max() > high:
        caption += " The outermost bars also hold what lies beyond them."
    return figure(
        chart.svg(), caption, [("s0 square", "errors"), ("s1 line", "normal of the same spread")]
    )


def coverage(subject: Subject, intervals: list[Intervals]) -> Section | None:
    """Return the section of prediction intervals."""
    if not intervals:
        return None
    k = intervals[0].Y.shape[1]
    chart = Chart(
        "Share of rows inside the intervals against the share that was promised",
        [0, 1],
        [0, 1],
        "promised",
        "inside",
        x_limits=(0.45, 1.02),
        y_limits=(0.3, 1.02),
        x_names=[(c, percent(c, 0)) for c in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)],
        y_names=[(c, percent(c, 0)) for c in (0.4, 0.6, 0.8, 1.0)],
    )
    chart.line([0.45, 1.0], [0.45, 1.0], None, dashed=True, width=1.2, opacity=0.5)
    rows, keys = [], []
    names = subject.found.names
    for j in range(k):
        found = coverage_measures(intervals, j)
        for promised, measure, width in found:
            if j < OUTPUTS:
                chart.line([promised] * 2, [measure.low, measure.high], j, width=1.4, opacity=0.6)
            label = percent(promised, 0) if k == 1 else f"{short(names[j], 24)}, {promised:.0%}"
            rows.append([label, shown(measure), span(measure), number(width)])
            if promised == 0.95 and not measure.low <= 0.95 <= measure.high:
                few = measure.high < 0.95
                subject.notes.append(
                    f"The 95 % intervals{'' if k == 1 else ' of ' + short(names[j], 24)} hold "
                    f"{shown(measure)} of the rows, {'less' if few else 'more'} than promised: the "
                    "test rows may differ from the training rows."
                )
        x, y = [f[0] for f in found], [f[1].value for f in found]
        if j < OUTPUTS:
            chart.line(x, y, j).dots(x, y, j, size=8.0)
            keys.append((f"s{j} line", short(names[j], 24)))
    n = len(intervals[0].Y)
    picture = figure(
        chart.svg(),
        f"Coverage on {n:,} rows with 95 % intervals (Wilson): on the dashed line a promise is "
        "kept.",
        keys if k > 1 else [],
    )
    words = (
        "Beside each prediction the model can give an interval. A 95 % interval should hold 95 % "
        "of new rows; narrower is better, as long as the promise is kept."
    )
    head = ["Promised", "Inside", "95 % interval", "Mean width"]
    body = join(
        [
            tag("p", words, class_="why"),
            tag("div", picture, class_="alone"),
            table("Coverage and width of the prediction intervals.", head, rows),
        ]
    )
    return Section("intervals", "Can its intervals be trusted?", "Intervals", body)
