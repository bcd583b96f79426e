"""The sections of metrics and errors: summary, classes, scores, costs, numbers, intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.plots.charts import Bars, Chart, Colour, Line, Mark, Points, Rule, Whiskers
from lssvm.plots.rows import basis, n_prototypes, parameters_of, support_size, table_record
from lssvm.report import html
from lssvm.report.measures import (
    Z95,
    ClassPredictions,
    Intervals,
    Measure,
    baseline_accuracy,
    calibration_bins,
    class_measures,
    class_table,
    confusion,
    coverage_measures,
    mean_and_error,
    number_measures,
    proportion_interval,
    ranking_curves,
    row_shares,
)
from lssvm.report.refits import Subject, copy_size
from lssvm.report.text import UNKNOWN, listing, number, percent, quoted, short

FEW = 200  # test rows below which intervals are wide
TILES = ("accuracy", "balanced_accuracy", "roc_auc", "f1")
GUIDE: dict[str, Any] = {"colour": "text", "opacity": 0.5, "dashed": True, "width": 1.2}


def summary(subject: Subject, intervals: list[Intervals]) -> tuple[list[Any], html.Section]:
    """Return the first sentence of the page and the section of metrics."""
    if subject.classification:
        first, leading, listed = _classes(subject)
    else:
        first, leading, listed = _numbers(subject, intervals)
    about = html.paragraph(_how_measured(subject))
    body = [_tiles(subject, leading) if leading else None, about, listed]
    return first, html.Section("figures", "How good it is", "Metrics", None, body)


def lead(subject: Subject, first: list[Any], advice: str | None) -> html.Markup:
    """Return the sentences at the top: how good, by which columns, and what would help.

    Parameters
    ----------
    subject : Subject
        With the facts of all sections.
    first : list
        The first sentence.
    advice : str or None
        The conclusion from the learning curve.
    """
    spans = subject.facts.get("importance_interval", {}).items()
    names = [quoted(name, 30) for name, (low, _) in spans if low > 0][:3]
    second = f" It depends most on {listing(names)}." if names else ""
    leaking = list(subject.facts.get("data", {}).get("suspected_leaks", ()))
    third = advice or "There were too few rows to see whether more rows would help."
    if leaking:
        third = (
            f"But {quoted(leaking[0], 30)} alone predicts the target, which looks like a leak: "
            "check that before anything else."
        )
    return html.tag("p", *first, second, " ", third, class_="lead")


def _classes(subject: Subject) -> tuple[list[Any], list[Measure], html.Markup]:
    predictions = subject.classes
    measures = [m for m in class_measures(predictions) if np.isfinite(m.value)]
    accuracy, (baseline, usual) = measures[0], baseline_accuracy(predictions)
    name = quoted(predictions.classes[usual], 30)
    first = [
        "This model predicts the ",
        html.tag("strong", f"{len(predictions.classes)} classes of {short(subject.target, 40)}"),
        " and is right for ",
        html.tag("strong", accuracy.shown),
        f" of {subject.evaluated} (95 % interval {accuracy.span}); always predicting {name}, the "
        f"most frequent class, is right for {percent(baseline)}.",
    ]
    better = predictions.right - (predictions.labels == usual).astype(np.float64)
    gain, error = mean_and_error(better, predictions.weight)
    if gain <= Z95 * error:
        ends = " to ".join(number(100.0 * (gain + side * Z95 * error)) for side in (-1, 1))
        subject.notes.append(
            f"The accuracy is not clearly higher than that of always predicting {name}: the "
            f"difference is {number(100.0 * gain)} points (95 % interval {ends})."
        )
    if baseline > 0.9:
        subject.notes.append(
            f"{percent(baseline)} of the rows are of one class, so the accuracy is not "
            "informative: see the balanced accuracy and the precision-recall curve, and consider "
            'class_weight="balanced".'
        )
    subject.facts["metrics"] = {m.key: m.fact for m in measures}
    subject.facts["baseline_accuracy"] = baseline
    caption = (
        "Metrics; 95 % intervals: accuracy by Wilson's score interval, the others by jackknife "
        "over rows."
    )
    return first, [m for m in measures if m.key in TILES], metrics_table(caption, measures)


def _numbers(
    subject: Subject, intervals: list[Intervals]
) -> tuple[list[Any], list[Measure], html.Markup]:
    predictions = subject.numbers
    k, mean = predictions.Y.shape[1], partial(np.average, axis=0, weights=predictions.weight)
    each = [number_measures(predictions, j) for j in range(k)]
    base = mean(np.abs(predictions.Y - mean(predictions.Y)))
    subject.facts["baseline_mae"] = base.tolist()
    usual = [interval for interval in intervals if interval.coverage == 0.95]
    covered = [[measure for _, measure, _ in coverage_measures(usual, j)] for j in range(k)]
    facts = [{m.key: m.fact for m in measures} for measures in each]
    for entry, inside in zip(facts, covered, strict=True):
        entry |= {f"{m.key}_95": m.fact for m in inside}
    r2 = [m for measures in each for m in measures if m.key == "r2" and np.isfinite(m.value)]
    average = float(np.mean([m.value for m in r2])) if r2 else np.nan
    explained = ["explains ", html.tag("strong", percent(max(average, 0.0))), " of the variance"]
    if k > 1:
        numbers = html.tag("strong", f"{k} numbers at once")
        first = ["This model predicts ", numbers, " and on average over them ", *explained]
        subject.facts["metrics"] = {"r2": {"value": average}}
        subject.facts["outputs"] = dict(zip(predictions.names, facts, strict=True))
        rows = [
            [short(name, 40), *[[m.shown, html.tag("small", m.span)] for m in measures]]
            for name, measures in zip(predictions.names, each, strict=True)
        ]
        caption = "Metrics of every output; 95 % intervals by jackknife over rows."
        listed = html.table(caption, ["Output", *[m.name for m in each[0]]], rows)
        return [*first, f" of {subject.evaluated}."], [], listed
    mae = next(m for m in each[0] if m.key == "mae")
    first = [
        "This model predicts ",
        html.tag("strong", short(subject.target, 40)),
        ", is off by ",
        html.tag("strong", mae.shown),
        f" on average (95 % interval {mae.span}) on {subject.evaluated}, and ",
        *explained,
        f"; always predicting the mean is off by {number(base[0])}.",
    ]
    subject.facts["metrics"] = facts[0]
    if r2 and r2[0].low <= 0:
        subject.notes.append(
            "The model is not clearly better than always predicting the mean: the interval of the "
            "explained variance reaches zero."
        )
    leading = [m for m in (*each[0][:3], *covered[0]) if np.isfinite(m.value)]
    caption = "Metrics; 95 % intervals by jackknife over rows."
    return first, leading, metrics_table(caption, each[0])


def _tiles(subject: Subject, measures: list[Measure]) -> html.Markup:
    basis_rows, record = basis(subject.model), table_record(subject.model)
    name = "Support vectors" if basis_rows is None else basis_rows[0].capitalize()
    size, rows = f"{support_size(subject.model):,}", f"of {subject.train.n_rows:,} rows"
    if record is not None:
        name, size = "Configurations", f"{len(record.local_members):,}"
        rows = f"of {record.n_tried:,} that were tried"
    return html.tiles([*((m.name, m.shown, m.span) for m in measures), (name, size, rows)])


def _how_measured(subject: Subject) -> str:
    """Return how the metrics were computed, and note what limits them."""
    checked, model, notes = len(subject.checked), subject.model, subject.notes
    if checked < FEW:
        notes.append(
            f"There are only {checked:,} rows to measure on, so the intervals are wide: "
            "smaller differences are not meaningful."
        )
    if subject.test is not None:
        if not subject.test.complete:
            notes.append(
                f"The metrics come from {checked:,} test rows drawn at random from "
                f"{subject.test.n_rows:,}."
            )
        return "All metrics are computed on test rows that were not used in the fit."
    notes.append("There were no test rows: all metrics are cross-validated on training rows.")
    if np.size(parameters_of(model).get("C", 1.0)) > 1:
        notes.append(
            "Every binary problem of the model has its own C; the cross-validated copies have "
            "their median for all, so that the model itself may be better."
        )
    size, whole = copy_size(model), n_prototypes(model)
    if size is not None and whole is not None and size < whole:
        notes.append(
            f"The cross-validated copies have {size:,} prototypes, not {whole:,}, to "
            "save time: the model itself is better."
        )
    if table_record(model) is not None:
        notes.append(
            "The cross-validated copies have only the configuration of largest weight, to save "
            "time: the model itself is better."
        )
    used = "all" if checked == subject.train.n_rows else "some"
    return (
        f"No test rows were given. Instead, {used} training rows ({checked:,}) were split "
        "into 5 folds, and each fold was predicted by a copy of the model, with the same "
        "parameters, that was fitted to the others. As the parameters were chosen on these rows, "
        "the metrics are slightly too good: use a test set."
    )


def metrics_table(caption: str, measures: list[Measure]) -> html.Markup:
    """Return the table of metrics with their intervals."""
    rows = ([[m.name, html.tag("small", m.meaning)], m.shown, m.span] for m in measures)
    return html.table(caption, ["Metric", "Value", "95 % interval"], rows)


SMALL = 8  # classes from which on the table of confusions is set smaller
CURVES = 6  # classes whose curves are named; more are drawn thin
MISTAKES = 8


def mistakes(subject: Subject) -> html.Section:
    """Return the section of the confusion matrix."""
    counts, names = confusion(subject.classes), [str(label) for label in subject.classes.classes]
    subject.facts |= {"classes": names, "confusion_matrix": counts.tolist()}
    untested = [quoted(names[c], 24) for c in np.flatnonzero(counts.sum(axis=1) == 0)]
    if untested:
        subject.notes.append(
            f"No test row is of class {', '.join(untested[:8])}"
            f"{' and others' if len(untested) > 8 else ''}: whether the model finds such rows was "
            "not tested, and means over classes do not include them."
        )
    text = (
        "Each line is a true class, each column a predicted class. The stronger the colour, the "
        "larger the share of the line; the diagonal is right."
    )
    matrix = _confusion_table(counts, names)
    tables = [_mistakes(counts, names), _by_class(subject)]
    if len(names) <= SMALL:
        matrix, tables = html.pictures(matrix, *tables), []
    body = [matrix, html.pictures(*tables) if tables else None]
    return html.Section("classes", "Where it is right and wrong", "Mistakes", text, body)


def _confusion_table(counts: FloatArray, names: list[str]) -> html.Markup:
    small = len(names) > SMALL
    length = 6 if small else 16
    rows = []
    for i, name in enumerate(names):
        line: list[Any] = [short(name, length + 8)]
        for j, value in enumerate(counts[i]):
            share, amount = float(value / max(counts[i].sum(), 1e-300)), _amount(value)
            text: Any = [amount, html.tag("small", percent(share, 0))]
            if small:
                text = amount if value else ""
            title = f"{short(name, 30)} predicted as {short(names[j], 30)}: {amount}"
            colour = "main" if i == j else "wrong"
            line.append(html.tag("td", text, style=f"--v:{share:.3f}", class_=colour, title=title))
        rows.append(line)
    title = "Confusion matrix: rows of each class by the class that was predicted."
    head = ["true \\ predicted", *[short(name, length) for name in names]]
    return html.table(title, head, rows, class_="confusion small" if small else "confusion")


def _amount(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else number(value)


def _mistakes(counts: FloatArray, names: list[str]) -> html.Markup | None:
    """Return the most frequent mistakes, where there are more than two classes."""
    off = counts - np.diag(np.diag(counts))
    largest = np.argsort(-off, axis=None, kind="stable")[:MISTAKES]
    pairs = [(i, j) for i, j in np.transpose(np.unravel_index(largest, off.shape)) if off[i, j] > 0]
    if len(names) < 3 or not pairs:
        return None
    rows = []
    for i, j in pairs:
        mistake = f"{short(names[i], 24)} taken for {short(names[j], 24)}"
        rows.append([mistake, _amount(off[i, j]), percent(off[i, j] / counts[i].sum())])
    return html.table("The most frequent mistakes.", ["Mistake", "Rows", "Of that class"], rows)


def _by_class(subject: Subject) -> html.Markup:
    rows, facts = [], {}
    for c, entry in enumerate(class_table(subject.classes)):
        name, (low, high) = str(entry.pop("class")), entry["recall_interval"]
        curves = ranking_curves(subject.classes, c)
        facts[name] = entry | {"roc_auc": None if curves is None else curves["auc"]}
        shares = [facts[name][key] for key in ("recall", "precision", "roc_auc")]
        recall, precision, auc = (np.nan if share is None else share for share in shares)
        span = f"{percent(low, 0)} to {percent(high, 0)}" if entry["rows"] else UNKNOWN
        values = [[percent(recall), html.tag("small", span)], percent(precision), number(auc)]
        rows.append([short(name, 40), _amount(entry["rows"]), *values])
    subject.facts["per_class"] = facts
    caption = (
        "By class: recall is the share of its rows that were found (95 % interval by Wilson), "
        "precision the share of right ones among those predicted as it, AUC the area under the "
        "ROC curve against the others."
    )
    table = html.table(caption, ["Class", "Rows", "Recall", "Precision", "AUC"], rows)
    return table if len(rows) <= SMALL else html.details("By class", table)


def rankings(subject: Subject) -> html.Section | None:
    """Return the section of ROC, precision-recall and calibration curves."""
    predictions = subject.classes
    drawn = [*_ranking_pictures(predictions), *_probability_pictures(subject)]
    if not drawn:
        return None
    text = (
        "A score that ranks well lets you choose how many false alarms to accept; probabilities "
        "that are calibrated agree with observed frequencies."
    )
    body = [html.pictures(*drawn)]
    return html.Section("scores", "Scores and probabilities", "Scores", text, body)


def _shares(title: str, x: str, y: str, marks: list[Mark]) -> Chart:
    """Return a chart of two shares."""
    ends = (-0.02, 1.02)
    return Chart(f"{title}: {y} against {x}", x, y, marks, x_limits=ends, y_limits=ends)


def _measured(x: Any, y: Any, ends: FloatArray, colour: Colour, label: str = "") -> list[Mark]:
    """Return measured points with their intervals, joined by a line."""
    points = Points(x, y, colour=colour, size=8.0)
    return [Whiskers(x, ends, colour=colour), Line(x, y, label, colour), points]


def _ranking_pictures(predictions: ClassPredictions) -> list[html.Markup]:
    two = len(predictions.classes) == 2
    columns = [predictions.positive] if two else range(len(predictions.classes))
    curves = {c: curve for c in columns if (curve := ranking_curves(predictions, c)) is not None}
    if not curves:
        return []
    area = number(np.mean([curve["auc"] for curve in curves.values()]))
    roc, precision = (_class_curves(predictions, curves, key) for key in ("roc", "precision"))
    roc.insert(0, Line([0, 1], [0, 1], **GUIDE))
    each = "each class against the others"
    captions = [
        f"ROC curves, {each}, mean area {area}; the dashed line is guessing.",
        f"Precision-recall curves, {each}.",
    ]
    if two:
        one, label = curves[predictions.positive], predictions.name(predictions.positive, 30)
        precision.append(Rule(None, one["share"]))
        captions = [
            f"ROC curve for {label}, area {area}; the dashed line is guessing.",
            f"Precision-recall curve for {label}, average precision "
            f"{number(one['average_precision'])}; the dashed line is guessing.",
        ]
    charts = (
        _shares("ROC curve", "false positive rate", "true positive rate", roc),
        _shares("Precision-recall curve", "recall", "precision", precision),
    )
    return [html.figure(chart, text) for chart, text in zip(charts, captions, strict=True)]


def _class_curves(predictions: ClassPredictions, curves: dict[int, Any], key: str) -> list[Mark]:
    """Return the curve of every class, or thin ones with their mean where there are many."""
    if len(curves) <= CURVES:
        several = len(predictions.classes) > 2
        names = {c: short(predictions.classes[c], 24) if several else "" for c in curves}
        return [Line(*_thin_out(*curve[key]), names[c], c) for c, curve in curves.items()]
    grid = np.linspace(0, 1, 101)
    mean = np.mean([np.interp(grid, *curve[key]) for curve in curves.values()], axis=0)
    thin = [
        Line(*_thin_out(*curve[key]), "" if i else "each class", opacity=0.45, width=1.0)
        for i, curve in enumerate(curves.values())
    ]
    return [*thin, Line(grid, mean, "mean", "text", width=2.6)]


def _thin_out(x: FloatArray, y: FloatArray, most: int = 250) -> tuple[FloatArray, FloatArray]:
    """Return a curve with no more points than a screen shows."""
    if len(x) <= most:
        return x, y
    steps = np.concatenate(([0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))))
    keep = np.searchsorted(steps, np.linspace(0, steps[-1], most))
    keep = np.unique(np.append(keep, len(x) - 1))
    return x[keep], y[keep]


def _probability_pictures(subject: Subject) -> list[html.Markup]:
    predictions = subject.classes
    if predictions.probability is None:
        return []
    colours: list[Colour]
    if len(predictions.classes) == 2:
        c = predictions.positive
        p, hit = predictions.probability[:, c], predictions.labels == c
        across, by = f"probability of {quoted(predictions.classes[c], 20)}", "by true class"
        colours, names = [c, 1 - c], [short(predictions.classes[k], 24) for k in (c, 1 - c)]
    else:
        p = predictions.probability.max(axis=1)
        hit = predictions.probability.argmax(axis=1) == predictions.labels
        across, by = "probability of the predicted class", "right and wrong"
        colours, names = ["main", "wrong"], ["right", "wrong"]
    mean, share, sizes = calibration_bins(p, hit)
    error = float(np.average(np.abs(mean - share), weights=sizes))
    subject.facts["calibration_error"] = error
    # Groups of few rows are off by chance: about this much where probabilities are right.
    chance = float(np.average(np.sqrt(2 / np.pi * mean * (1 - mean) / sizes), weights=sizes))
    if error > 0.03 + 1.5 * chance:
        subject.notes.append(
            f"The probabilities are off by {percent(error)} on average: use them to rank rows, not "
            "as frequencies."
        )
    pairs = zip(share, sizes, strict=True)
    ends = np.transpose([proportion_interval(np.arange(n) < round(s * n))[1:] for s, n in pairs])
    marks = [Line([0, 1], [0, 1], **GUIDE), *_measured(mean, share, ends, colours[0])]
    caption = (
        "Calibration: groups of about equally many rows, with 95 % intervals (Wilson). On the "
        f"dashed line probabilities equal frequencies; the mean gap is {percent(error)}."
    )
    edges, title = np.linspace(0.0, 1.0, 21), "How often each probability was predicted"
    bars = [
        Bars(edges, np.histogram(p[rows], edges)[0], name, colour, 0.6)
        for rows, name, colour in zip([hit, ~hit], names, colours, strict=True)
    ]
    often = Chart(title, across, "rows", bars, y_zero=True)
    curve = _shares("Calibration curve", across, "observed frequency", marks)
    return [html.figure(curve, caption), html.figure(often, f"{title}, {by}.")]


RATIOS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # cost of a miss over that of a false alarm
DRAWN = (0.2, 1.0, 5.0)
POINTS = 201


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The errors at every threshold.

    Attributes
    ----------
    thresholds : array of shape (t,)
        Rows whose probability (or score) of the positive class is above one are predicted as it.
    false_alarms, misses : arrays of shape (t,)
        Shares of all rows.
    default : (float, float)
        False alarms and misses of the decisions of the model.
    positive : float
        Share of the positive class.
    """

    thresholds: FloatArray
    false_alarms: FloatArray
    misses: FloatArray
    default: tuple[float, float]
    positive: float

    def cost(self, ratio: float) -> FloatArray:
        """Return the cost of a row at every threshold: one a false alarm, ``ratio`` a miss."""
        return np.asarray(self.false_alarms + ratio * self.misses)

    def best(self, ratio: float) -> int:
        """Return the position of the smallest cost: the middle of the first run of equal ones."""
        cost = self.cost(ratio)
        equal = np.flatnonzero(cost <= cost.min() + 1e-12)
        run = equal[: int(np.argmax(np.append(np.diff(equal) > 1, True))) + 1]
        return int(run[len(run) // 2])


def thresholds(predictions: ClassPredictions) -> Thresholds | None:
    """Return the errors at every threshold; None without scores or with other than two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.performance import thresholds
    >>> from lssvm.report.measures import ClassPredictions
    >>> p = np.array([0.1, 0.4, 0.6, 0.9])
    >>> both, labels = np.column_stack([1 - p, p]), np.array([0, 1, 0, 1])
    >>> made = thresholds(ClassPredictions(np.array([0, 1]), labels, p > 0.5, both, None, None))
    >>> float(made.cost(1.0).min()), made.default
    (0.25, (0.25, 0.25))
    """
    p = predictions.probability if predictions.probability is not None else predictions.scores
    if len(predictions.classes) != 2 or p is None or len(np.unique(predictions.labels)) < 2:
        return None
    score, truth = p[:, predictions.positive], predictions.labels == predictions.positive
    low, high = (0.0, 1.0) if predictions.probability is not None else (score.min(), score.max())
    grid = np.linspace(low, high, POINTS)
    weight = row_shares(len(truth), predictions.weight)
    predicted = np.vstack([score > grid[:, None], predictions.predicted == predictions.positive])
    alarms, misses = (predicted & ~truth) @ weight, (~predicted & truth) @ weight
    default = float(alarms[-1]), float(misses[-1])
    return Thresholds(grid, alarms[:-1], misses[:-1], default, float(truth @ weight))


def costs(subject: Subject) -> html.Section | None:
    """Return the section of costs over thresholds; None where there is nothing to choose."""
    choices = thresholds(subject.classes)
    if choices is None:
        return None
    c = subject.classes.positive
    label, other = (quoted(subject.classes.classes[k], 24) for k in (c, 1 - c))
    scale = "probability" if subject.classes.probability is not None else "score"
    axis, cuts = f"threshold on the {scale} of {label}", choices.thresholds
    shares: list[Mark] = [
        Line(cuts, choices.false_alarms, f"false alarms: {other} predicted as {label}", 1 - c),
        Line(cuts, choices.misses, f"misses: {label} predicted as {other}", c),
    ]
    title = f"False alarms and misses against the {axis}"
    errors = Chart(title, axis, "share of all rows", shares, y_zero=True)
    rows, facts = [], {}
    for ratio in RATIOS:
        cost, best = choices.cost(ratio), choices.best(ratio)
        default = choices.default[0] + ratio * choices.default[1]
        facts[f"{ratio:g}"] = {
            "threshold": float(cuts[best]),
            "cost": float(cost[best]),
            "cost_of_the_model": default,
        }
        trivial = min(1.0 - choices.positive, ratio * choices.positive)
        costs_of_100 = [number(100.0 * each) for each in (cost[best], default, trivial)]
        hits = choices.positive - float(choices.misses[best])
        predicted = hits + float(choices.false_alarms[best])
        precision = hits / predicted if predicted > 0 else np.nan
        recall = percent(hits / choices.positive)
        rows.append([_ratio(ratio), number(cuts[best]), *costs_of_100, recall, percent(precision)])
    subject.facts["costs"] = facts
    head = ["A miss costs", "Threshold", "Cost", "By default", "One class", "Recall", "Precision"]
    caption = (
        "Costs of 100 rows in units of a false alarm: at the threshold with the smallest cost, by "
        "the decisions of the model, and by always predicting the cheaper class."
    )
    text = (
        f"A false alarm predicts {label} where {other} is true, a miss the reverse. Find the row "
        "of the table with your cost of a miss; it has the best threshold. Thresholds were "
        "chosen on the rows that costs are measured on, so these are slightly too good."
    )
    drawn = html.figure(errors, f"Errors against the {axis}."), _cost_curves(choices, axis)
    body = [html.pictures(*drawn), html.table(caption, head, rows)]
    return html.Section("costs", "What a threshold costs", "Costs", text, body)


def _cost_curves(choices: Thresholds, axis: str) -> html.Markup:
    marks: list[Mark] = []
    for ratio, colour in zip(DRAWN, ("q0", "q2", "q4"), strict=True):
        cost, best = choices.cost(ratio), choices.best(ratio)
        marks.append(Line(choices.thresholds, cost, f"a miss costs {_ratio(ratio)}", colour))
        marks.append(Points(choices.thresholds[best], cost[best], colour=colour, size=9.0))
    largest = max(float(choices.cost(ratio).max()) for ratio in DRAWN)
    ends = (0.0, 1.04 * min(largest, 2.5 * float(choices.cost(1.0).max())))
    title = f"Cost of a row against the {axis}"
    chart = Chart(title, axis, "cost of a row", marks, y_limits=ends)
    return html.figure(chart, "Cost of a row; the points are the smallest ones.")


def _ratio(ratio: float) -> str:
    if ratio == 1:
        return "as much as a false alarm"
    return f"{ratio:g} times as much" if ratio > 1 else f"{1 / ratio:g} times less"


DOTS = 2000
OUTPUTS = 6  # outputs that are drawn


def errors(subject: Subject) -> html.Section:
    """Return the section of predicted against true values and residuals."""
    predictions = subject.numbers
    n, k = predictions.Y.shape
    rows = np.sort(np.random.default_rng(0).choice(n, min(n, DOTS), replace=False))
    drawn = []
    for j in range(min(k, OUTPUTS)):
        y, f = predictions.Y[rows, j], predictions.predicted[rows, j]
        title = "Predicted against true values"
        title += f" of {short(predictions.names[j], 40)}" if k > 1 else ""
        low, high = min(y.min(), f.min()), max(y.max(), f.max())
        edge = 0.03 * (high - low) or 0.5 * (abs(low) or 1.0)
        ends = (low - edge, high + edge)
        marks = [Points(y, f, size=5.0, opacity=0.4), Line(ends, ends, **GUIDE)]
        axes: dict[str, Any] = {"x_limits": ends, "y_limits": ends}
        drawn.append(html.figure(Chart(title, "true", "predicted", marks, **axes), f"{title}."))
        if k == 1:
            residuals = predictions.Y[:, 0] - predictions.predicted[:, 0]
            drawn += [_residuals(y, f), error_histogram(residuals)]
    text = "Points on the dashed line are predicted exactly."
    text += f" {DOTS:,} rows drawn at random are shown." if n > DOTS else ""
    text += f" The first {OUTPUTS} of {k} outputs are drawn." if k > OUTPUTS else ""
    body = [html.pictures(*drawn)]
    return html.Section("errors", "Where it is right and wrong", "Errors", text, body)


def _residuals(y: FloatArray, f: FloatArray) -> html.Markup:
    marks: list[Mark] = [Points(f, y - f, size=5.0, opacity=0.4), Rule(None, 0.0)]
    edges = np.unique(np.quantile(f, np.linspace(0, 1, 9)))
    if len(edges) > 3 and len(f) >= 80:
        group = np.clip(np.searchsorted(edges, f, side="right") - 1, 0, len(edges) - 2)
        groups = [group == g for g in np.unique(group)]
        x, middle = ([float(np.median(v[g])) for g in groups] for v in (f, y - f))
        marks.append(Line(x, middle, "median of an eighth of the rows", "text", width=2.6))
    title = "Errors against predicted values"
    chart = Chart(title, "predicted", "true minus predicted", marks)
    caption = "Errors against predictions: a bend would be something still to learn."
    return html.figure(chart, caption)


def error_histogram(error: FloatArray) -> html.Markup:
    """Return how errors are distributed, compared with the normal curve of the same spread."""
    low, high = np.quantile(error, [0.005, 0.995])
    if not high > low:
        low, high = float(error.min()) - 0.5, float(error.max()) + 0.5
    bins = int(np.clip(np.sqrt(len(error)), 8, 30))
    counts, edges = np.histogram(np.clip(error, low, high), bins, (low, high))
    marks: list[Mark] = [Bars(edges, counts, "errors")]
    deviation = float(error.std())
    if deviation > 0:
        x = np.linspace(low, high, 80)
        density = np.exp(-0.5 * ((x - error.mean()) / deviation) ** 2)
        density *= len(error) * (edges[1] - edges[0]) / (deviation * np.sqrt(2 * np.pi))
        marks.append(Line(x, density, "normal of the same spread", "text", width=1.8))
    title = "How errors are distributed"
    caption = f"{title} (median {number(np.median(error))})."
    if error.min() < low or error.max() > high:
        caption += " The outermost bars also hold what lies beyond them."
    return html.figure(Chart(title, "true minus predicted", "rows", marks, y_zero=True), caption)


def coverage(subject: Subject, intervals: list[Intervals]) -> html.Section | None:
    """Return the section of prediction intervals."""
    if not intervals:
        return None
    names = subject.numbers.names
    rows = []
    marks: list[Mark] = [Line([0.45, 1.0], [0.45, 1.0], **GUIDE)]
    for j, full in enumerate(names):
        one = len(names) == 1
        colour, name = ("main", "") if one else (j, short(full, 24))
        covered = coverage_measures(intervals, j)
        for nominal, measure, width in covered:
            label = f"{name} {percent(nominal, 0)}".strip()
            rows.append([label, measure.shown, measure.span, number(width)])
            if nominal == 0.95 and not measure.low <= 0.95 <= measure.high:
                subject.notes.append(
                    f"The 95 % intervals{name and ' of '}{name} hold {measure.shown} of the rows, "
                    f"{'less' if measure.high < 0.95 else 'more'} than nominal: the test rows may "
                    "differ from the training rows."
                )
        if j < OUTPUTS:
            x, y = [f[0] for f in covered], [f[1].value for f in covered]
            ends = np.transpose([(f[1].low, f[1].high) for f in covered])
            marks += _measured(x, y, ends, colour, name)
    axes: dict[str, Any] = {
        "x_limits": (0.45, 1.02),
        "y_limits": (0.3, 1.02),
        "x_ticks": [(c, percent(c, 0)) for c in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)],
        "y_ticks": [(c, percent(c, 0)) for c in (0.4, 0.6, 0.8, 1.0)],
    }
    title = "Share of rows inside the intervals against the nominal coverage"
    chart = Chart(title, "nominal", "inside", marks, **axes)
    caption = (
        f"Coverage on {len(intervals[0].Y):,} rows with 95 % intervals (Wilson): on the "
        "dashed line the coverage is nominal."
    )
    text = (
        "The model can give an interval with each prediction. A 95 % interval should hold 95 % "
        "of new rows; narrower is better at the same coverage."
    )
    head = ["Nominal", "Inside", "95 % interval", "Mean width"]
    listed = html.table("Coverage and width of the prediction intervals.", head, rows)
    body = [html.figure(chart, caption, alone=True), listed]
    return html.Section("intervals", "Can its intervals be trusted?", "Intervals", text, body)
