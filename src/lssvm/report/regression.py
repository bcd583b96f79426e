"""Sections of a regressor: predictions beside the truth, residuals, coverage of intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.report.charts import N_COLOURS, Chart, alone, figure, pictures
from lssvm.report.formats import count, number, percent, short, shown, span
from lssvm.report.markup import Markup, Section, table, why
from lssvm.report.measures import Intervals, coverage_measures
from lssvm.report.subject import Subject

DOTS = 2000
OUTPUTS = 6  # outputs that are drawn


def errors(subject: Subject) -> Section:
    """Return the section of predicted against true values and residuals."""
    found = subject.numbers
    n, k = found.Y.shape
    rows = np.sort(np.random.default_rng(0).choice(n, min(n, DOTS), replace=False))
    drawn = []
    for j in range(min(k, OUTPUTS)):
        y, f = found.Y[rows, j], found.predicted[rows, j]
        drawn.append(_beside(y, f, found.names[j], k))
        if k == 1:
            drawn += [_residuals(y, f), error_histogram(found.Y[:, 0] - found.predicted[:, 0])]
    words = "Points on the dashed line are predicted exactly."
    words += f" {count(DOTS)} rows drawn at random are shown." if n > DOTS else ""
    words += f" The first {OUTPUTS} of {k} outputs are drawn." if k > OUTPUTS else ""
    body = [why(words), pictures(*drawn)]
    return Section("errors", "Where it is right and wrong", "Errors", body)


def _beside(y: FloatArray, f: FloatArray, name: str, k: int) -> Markup:
    low, high = min(y.min(), f.min()), max(y.max(), f.max())
    edge = 0.03 * (high - low) or 0.5 * (abs(low) or 1.0)
    ends = (low - edge, high + edge)
    label = f"Predicted against true values{f' of {short(name, 40)}' if k > 1 else ''}"
    chart = Chart(label, y, f, "true", "predicted", x_limits=ends, y_limits=ends)
    chart.dots(y, f, size=5.0, opacity=0.4)
    chart.line(ends, ends, "st", dashed=True, width=1.3, opacity=0.7)
    return figure(chart.svg(), f"{label}.")


def _residuals(y: FloatArray, f: FloatArray) -> Markup:
    chart = Chart("Errors against predicted values", f, y - f, "predicted", "true minus predicted")
    chart.dots(f, y - f, size=5.0, opacity=0.4).rule(y=0.0)
    edges, key = np.unique(np.quantile(f, np.linspace(0, 1, 9))), []
    if len(edges) > 3 and len(f) >= 80:
        which = np.clip(np.searchsorted(edges, f, side="right") - 1, 0, len(edges) - 2)
        groups = [np.flatnonzero(which == g) for g in np.unique(which)]
        x, middle = ([float(np.median(v[g])) for g in groups] for v in (f, y - f))
        chart.line(x, middle, "sb", width=2.6)
        key = [("sb line", "median of an eighth of the rows")]
    words = "Errors against predictions: a bend would be something still to learn."
    return figure(chart.svg(), words, key)


def error_histogram(error: FloatArray) -> Markup:
    """Return how errors are distributed, beside the normal curve of the same spread."""
    low, high = np.quantile(error, [0.005, 0.995])
    if not high > low:
        low, high = float(error.min()) - 0.5, float(error.max()) + 0.5
    bins = int(np.clip(np.sqrt(len(error)), 8, 30))
    counts, edges = np.histogram(np.clip(error, low, high), bins, (low, high))
    title, across = "How errors are distributed", "true minus predicted"
    chart = Chart(title, edges, [0, *counts], across, "rows", y_zero=True)
    chart.bars(edges, counts)
    deviation = float(error.std())
    if deviation > 0:
        x = np.linspace(low, high, 80)
        density = np.exp(-0.5 * ((x - error.mean()) / deviation) ** 2)
        density *= len(error) * (edges[1] - edges[0]) / (deviation * np.sqrt(2 * np.pi))
        chart.line(x, density, "sb", width=1.8)
    caption = f"{title} (median {number(float(np.median(error)))})."
    if error.min() < low or error.max() > high:
        caption += " The outermost bars also hold what lies beyond them."
    keys = [("sa square", "errors"), ("sb line", "normal of the same spread")]
    return figure(chart.svg(), caption, keys)


def coverage(subject: Subject, intervals: list[Intervals]) -> Section | None:
    """Return the section of prediction intervals."""
    if not intervals:
        return None
    names = subject.numbers.names
    k = len(names)
    title = "Share of rows inside the intervals against the share that was promised"
    axes: dict[str, Any] = {
        "x_limits": (0.45, 1.02),
        "y_limits": (0.3, 1.02),
        "x_names": [(c, percent(c, 0)) for c in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)],
        "y_names": [(c, percent(c, 0)) for c in (0.4, 0.6, 0.8, 1.0)],
    }
    chart = Chart(title, [0, 1], [0, 1], "promised", "inside", **axes)
    chart.line([0.45, 1.0], [0.45, 1.0], "st", dashed=True, width=1.2, opacity=0.5)
    rows, keys = [], []
    for j in range(k):
        colour = "sa" if k == 1 else f"s{j % N_COLOURS}"
        name = "" if k == 1 else short(names[j], 24)
        found = coverage_measures(intervals, j)
        for promised, measure, width in found:
            if j < OUTPUTS:
                ends = [measure.low, measure.high]
                chart.line([promised] * 2, ends, colour, width=1.4, opacity=0.6)
            label = f"{name} {percent(promised, 0)}".strip()
            rows.append([label, shown(measure), span(measure), number(width)])
            if promised == 0.95 and not measure.low <= 0.95 <= measure.high:
                subject.notes.append(
                    f"The 95 % intervals{name and ' of '}{name} hold {shown(measure)} of the rows, "
                    f"{'less' if measure.high < 0.95 else 'more'} than promised: the test rows may "
                    "differ from the training rows."
                )
        x, y = [f[0] for f in found], [f[1].value for f in found]
        if j < OUTPUTS:
            chart.line(x, y, colour).dots(x, y, colour, size=8.0)
            keys.append((f"s{j} line", name))
    caption = (
        f"Coverage on {count(len(intervals[0].Y))} rows with 95 % intervals (Wilson): on the "
        "dashed line a promise is kept."
    )
    words = (
        "Beside each prediction the model can give an interval. A 95 % interval should hold 95 % "
        "of new rows; narrower is better, as long as the promise is kept."
    )
    head = ["Promised", "Inside", "95 % interval", "Mean width"]
    listed = table("Coverage and width of the prediction intervals.", head, rows)
    body = [why(words), alone(chart, caption, keys if k > 1 else []), listed]
    return Section("intervals", "Can its intervals be trusted?", "Intervals", body)
