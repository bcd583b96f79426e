"""Sections of a classifier: its mistakes, how its scores behave, and what a threshold costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.report.charts import N_COLOURS, Chart, figure, pictures
from lssvm.report.formats import UNKNOWN, count, number, percent, short
from lssvm.report.markup import Markup, Section, more, table, tag, why
from lssvm.report.measures import (
    ClassPredictions,
    calibration_bins,
    class_table,
    confusion,
    proportion_interval,
    ranking_curves,
    row_shares,
)
from lssvm.report.subject import Subject

SMALL = 8  # classes from which on the table of confusions is set smaller
CURVES = 6  # classes whose curves are named; more are drawn thin
MISTAKES = 8


def mistakes(subject: Subject) -> Section:
    """Return the section of the confusion matrix."""
    counts, names = confusion(subject.classes), [str(label) for label in subject.classes.classes]
    subject.facts |= {"classes": names, "confusion_matrix": counts.tolist()}
    untested = [f"“{short(names[c], 24)}”" for c in np.flatnonzero(counts.sum(axis=1) == 0)]
    if untested:
        subject.notes.append(
            f"No row to measure on is of class {', '.join(untested[:8])}"
            f"{' and others' if len(untested) > 8 else ''}: whether the model finds such rows was "
            "not tested, and means over classes leave them out."
        )
    matrix = _matrix(counts, names)
    words = (
        "Each line is a true class, each column what the model said. The stronger the colour, the "
        "larger the share of the line; the diagonal is right."
    )
    tables = [_pairs(counts, names), _by_class(subject)]
    body = [matrix, pictures(*tables)] if len(names) > SMALL else [pictures(matrix, *tables)]
    return Section("classes", "Where it is right and wrong", "Mistakes", [why(words), *body])


def _matrix(counts: FloatArray, names: list[str]) -> Markup:
    small = len(names) > SMALL
    length = 6 if small else 16
    rows = []
    for i, name in enumerate(names):
        line: list[Any] = [short(name, length + 8)]
        for j, value in enumerate(counts[i]):
            share, amount = float(value / max(counts[i].sum(), 1e-300)), _amount(value)
            words: Any = [amount, tag("small", percent(share, 0))]
            if small:
                words = amount if value else ""
            title = f"{short(name, 30)} predicted as {short(names[j], 30)}: {amount}"
            colour = "sa" if i == j else "wrong"
            line.append(tag("td", words, style=f"--v:{share:.3f}", class_=colour, title=title))
        rows.append(line)
    title = "Confusion matrix: rows of each class by the class that was predicted."
    head = ["true \\ said", *[short(name, length) for name in names]]
    return table(title, head, rows, class_="confusion small" if small else "confusion")


def _amount(value: float) -> str:
    return count(int(value)) if float(value).is_integer() else number(value)


def _pairs(counts: FloatArray, names: list[str]) -> Markup | None:
    """Return the most frequent mistakes, where there are more than two classes."""
    off = counts - np.diag(np.diag(counts))
    rows = []
    for place in np.argsort(-off, axis=None, kind="stable")[:MISTAKES]:
        i, j = divmod(int(place), len(names))
        if off[i, j] > 0:
            mistake = f"{short(names[i], 24)} taken for {short(names[j], 24)}"
            share = float(off[i, j] / counts[i].sum())
            rows.append([mistake, _amount(off[i, j]), percent(share)])
    if len(names) < 3 or not rows:
        return None
    return table("The most frequent mistakes.", ["Mistake", "Rows", "Of that class"], rows)


def _by_class(subject: Subject) -> Markup:
    rows, facts = [], {}
    for c, entry in enumerate(class_table(subject.classes)):
        name, (low, high) = str(entry.pop("class")), entry["recall_interval"]
        curves = ranking_curves(subject.classes, c)
        facts[name] = entry | {"roc_auc": None if curves is None else curves["auc"]}
        recall, precision, auc = (
            np.nan if facts[name][key] is None else facts[name][key]
            for key in ("recall", "precision", "roc_auc")
        )
        span = f"{percent(low, 0)} to {percent(high, 0)}" if entry["rows"] else UNKNOWN
        said, size = [percent(recall), tag("small", span)], _amount(entry["rows"])
        rows.append([short(name, 40), size, said, percent(precision), number(auc)])
    subject.facts["per_class"] = facts
    made = table(
        "By class: recall is the share of its rows that were found (95 % interval by Wilson), "
        "precision the share of right ones among those said to be of it, AUC the area under the "
        "ROC curve against the others.",
        ["Class", "Rows", "Recall", "Precision", "AUC"],
        rows,
    )
    return made if len(rows) <= SMALL else more("By class", made)


def rankings(subject: Subject) -> Section | None:
    """Return the section of ROC, precision-recall and calibration curves."""
    drawn = []
    if subject.classes.ranking is not None:
        drawn = [*_ranking_pictures(subject.classes), *_probability_pictures(subject)]
    if not drawn:
        return None
    words = (
        "A score that ranks well lets you choose how many false alarms to accept; probabilities "
        "that are calibrated can be taken at their word."
    )
    body = [why(words), pictures(*drawn)]
    return Section("scores", "Scores and probabilities", "Scores", body)


def _ranking_pictures(found: ClassPredictions) -> list[Markup]:
    q = len(found.classes)
    columns = [1] if q == 2 else list(range(q))
    curves = {c: made for c in columns if (made := ranking_curves(found, c)) is not None}
    if not curves:
        return []
    named = len(curves) <= CURVES
    charts = {
        "roc": Chart.unit("ROC curve", "false positive rate", "true positive rate", diagonal=True),
        "precision": Chart.unit("Precision-recall curve", "recall", "precision"),
    }
    grid = np.linspace(0, 1, 101)
    for key, chart in charts.items():
        for c, made in curves.items():
            style: dict[str, Any] = {} if named else {"width": 1.0, "opacity": 0.45}
            chart.line(*_thin(*made[key]), f"s{c % N_COLOURS}" if named else "sa", **style)
        if not named:
            steps = [np.interp(grid, *made[key]) for made in curves.values()]
            chart.line(grid, np.mean(steps, axis=0), "sb", width=2.6)
    if q == 2:
        one, label = curves[1], short(found.classes[1], 30)
        charts["precision"].rule(y=one["share"], title="share of the class")
        said = [
            f"ROC curve for “{label}”, area {number(one['auc'])}; the dashed line is guessing.",
            f"Precision-recall curve for “{label}”, average precision "
            f"{number(one['average_precision'])}; the dashed line is guessing.",
        ]
        keys = []
    else:
        mean = number(float(np.mean([made["auc"] for made in curves.values()])))
        each = "each class against the others"
        said = [
            f"ROC curves, {each}, mean area {mean}; the dashed line is guessing.",
            f"Precision-recall curves, {each}.",
        ]
        keys = [(f"s{c % N_COLOURS} line", short(found.classes[c], 24)) for c in curves]
        keys = keys if named else [("sa line", "each class"), ("sb line", "mean")]
    return [figure(c.svg(), words, keys) for c, words in zip(charts.values(), said, strict=True)]


def _thin(x: FloatArray, y: FloatArray, most: int = 250) -> tuple[FloatArray, FloatArray]:
    """Return a curve with no more points than a screen shows."""
    if len(x) <= most:
        return x, y
    steps = np.concatenate(([0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))))
    keep = np.searchsorted(steps, np.linspace(0, steps[-1], most))
    keep = np.unique(np.append(keep, len(x) - 1))
    return x[keep], y[keep]


def _probability_pictures(subject: Subject) -> list[Markup]:
    found = subject.classes
    if found.probability is None:
        return []
    two = len(found.classes) == 2
    if two:
        p, hit = found.probability[:, 1], found.labels == 1
        said = f"probability of “{short(found.classes[1], 20)}”"
        colours, names = ("s1", "s0"), [short(label, 24) for label in found.classes[::-1]]
    else:
        p, hit = found.probability.max(axis=1), found.probability.argmax(axis=1) == found.labels
        said = "probability of the predicted class"
        colours, names = ("sa", "wrong"), ["right", "wrong"]
    mean, share, sizes = calibration_bins(p, hit)
    error = float(np.average(np.abs(mean - share), weights=sizes))
    subject.facts["calibration_error"] = error
    # Groups of few rows are off by chance: about this much where probabilities are right.
    chance = float(np.average(np.sqrt(2 / np.pi * mean * (1 - mean) / sizes), weights=sizes))
    if error > 0.03 + 1.5 * chance:
        subject.notes.append(
            f"The probabilities are off by {percent(error)} on average: rank rows by them, but do "
            "not take them at their word."
        )
    chart = Chart.unit("Calibration curve", said, "how often it was so", diagonal=True)
    colour = colours[0] if two else "sa"
    for m, s, n in zip(mean, share, sizes, strict=True):
        ends = proportion_interval(np.arange(n) < round(s * n))[1:]
        chart.line([m, m], ends, colour, width=1.4, opacity=0.6)
    chart.line(mean, share, colour).dots(mean, share, colour, size=8.0)
    caption = (
        "Calibration: groups of about equally many rows, with 95 % intervals (Wilson). On the "
        f"dashed line, probabilities can be taken at their word; the mean gap is {percent(error)}."
    )
    edges, title = np.linspace(0.0, 1.0, 21), "How often each probability was said"
    bars = [np.histogram(p[which], edges)[0] for which in (hit, ~hit)]
    often = Chart(title, [0, 1], [0, *bars[0], *bars[1]], said, "rows", y_zero=True)
    for heights, colour in zip(bars, colours, strict=True):
        often.bars(edges, heights, colour, 0.6)
    keys = [(f"{colour} square", name) for colour, name in zip(colours, names, strict=True)]
    words = f"{title}, by what was true."
    return [figure(chart.svg(), caption), figure(often.svg(), words, keys)]


RATIOS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # cost of a miss over that of a false alarm
DRAWN = (0.2, 1.0, 5.0)
POINTS = 201


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What happens at every threshold.

    Attributes
    ----------
    thresholds : array of shape (t,)
        Rows whose probability (or score) of the second class is above one are said to be of it.
    false_alarms, misses : arrays of shape (t,)
        Shares of all rows.
    default : (float, float)
        False alarms and misses of what the model decides itself.
    positive : float
        Share of the second class.
    """

    thresholds: FloatArray
    false_alarms: FloatArray
    misses: FloatArray
    default: tuple[float, float]
    positive: float

    def cost(self, ratio: float) -> FloatArray:
        """Return the cost of a row at every threshold: one a false alarm, ``ratio`` a miss."""
        return np.asarray(self.false_alarms + ratio * self.misses)


def thresholds(found: ClassPredictions) -> Thresholds | None:
    """Return what every threshold does; None without scores or with other than two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.classification import thresholds
    >>> from lssvm.report.measures import ClassPredictions
    >>> p = np.array([0.1, 0.4, 0.6, 0.9])
    >>> both, labels = np.column_stack([1 - p, p]), np.array([0, 1, 0, 1])
    >>> made = thresholds(ClassPredictions(np.array([0, 1]), labels, p > 0.5, both, None, None))
    >>> float(made.cost(1.0).min()), made.default
    (0.25, (0.25, 0.25))
    """
    p = found.probability if found.probability is not None else found.scores
    if len(found.classes) != 2 or p is None or len(np.unique(found.labels)) < 2:
        return None
    score, truth = p[:, 1], found.labels == 1
    weight = row_shares(len(truth), found.weight)
    grid = np.linspace(0.0, 1.0, POINTS)
    if found.probability is None:
        grid = np.linspace(float(score.min()), float(score.max()), POINTS)
    said = score[None, :] > grid[:, None]
    alarms = (said & ~truth) @ weight
    misses = (~said & truth) @ weight
    decided = found.decided == 1
    default = (float((decided & ~truth) @ weight), float((~decided & truth) @ weight))
    return Thresholds(grid, alarms, misses, default, float(truth @ weight))


def costs(subject: Subject) -> Section | None:
    """Return the section of costs over thresholds; None where there is nothing to choose."""
    made = thresholds(subject.classes)
    if made is None:
        return None
    label, other = (short(subject.classes.classes[c], 24) for c in (1, 0))
    what = "probability" if subject.classes.probability is not None else "score"
    axis = f"threshold on the {what} of “{label}”"
    title = f"False alarms and misses against the {axis}"
    heights = [0, *made.false_alarms, *made.misses]
    shares = Chart(title, made.thresholds, heights, axis, "share of all rows", y_zero=True)
    shares.line(made.thresholds, made.false_alarms, "s0")
    shares.line(made.thresholds, made.misses, "s1")
    keys = [
        ("s0 line", f"false alarms: “{other}” said to be “{label}”"),
        ("s1 line", f"misses: “{label}” said to be “{other}”"),
    ]
    drawn = [figure(shares.svg(), f"What a {axis} does.", keys), _curves(made, axis)]
    rows, facts = [], {}
    for ratio in RATIOS:
        cost = made.cost(ratio)
        best = _middle(cost)
        own = made.default[0] + ratio * made.default[1]
        recall, precision = _rates(made, best)
        facts[f"{ratio:g}"] = {
            "threshold": float(made.thresholds[best]),
            "cost": float(cost[best]),
            "cost_of_the_model": own,
        }
        trivial = min(1.0 - made.positive, ratio * made.positive)
        costs_of_100 = [number(100.0 * float(each)) for each in (cost[best], own, trivial)]
        cut, shares_said = number(float(made.thresholds[best])), map(percent, (recall, precision))
        rows.append([_ratio(ratio), cut, *costs_of_100, *shares_said])
    subject.facts["costs"] = facts
    head = ["A miss costs", "Threshold", "Cost", "By default", "One answer", "Recall", "Precision"]
    caption = [
        "Costs of 100 rows in units of a false alarm: at the threshold with the smallest cost, by ",
        "what the model decides itself, and by always giving the cheaper of the two answers.",
    ]
    words = (
        f"A false alarm says “{label}” where “{other}” is true, a miss the other way round. Find "
        "the line of what a miss costs you: its threshold is where to cut. Thresholds were chosen "
        "on the rows that the costs are measured on, so that they are slightly too good."
    )
    body: list[Any] = [why(words), pictures(*drawn), table(tag("span", *caption), head, rows)]
    return Section("costs", "What a threshold costs", "Costs", body)


def _curves(made: Thresholds, axis: str) -> Any:
    every = np.concatenate([made.cost(ratio) for ratio in DRAWN])
    title = f"Cost of a row against the {axis}"
    top = float(min(every.max(), 2.5 * made.cost(1.0).max()))
    chart = Chart(title, made.thresholds, [0, top], axis, "cost of a row", y_zero=True)
    keys = []
    for ratio, colour in zip(DRAWN, ("q0", "q2", "q4"), strict=True):
        cost = made.cost(ratio)
        best = _middle(cost)
        chart.line(made.thresholds, cost, colour)
        chart.dots(made.thresholds[[best]], cost[[best]], colour, size=9.0)
        keys.append((f"{colour} line", f"a miss costs {_ratio(ratio)}"))
    return figure(chart.svg(), "Cost of a row; the dots are the smallest ones.", keys)


def _middle(cost: FloatArray) -> int:
    """Return the middle of the first run of smallest costs."""
    best = np.flatnonzero(cost <= cost.min() + 1e-12)
    run = best[: int(np.argmax(np.append(np.diff(best) > 1, True))) + 1]
    return int(run[len(run) // 2])


def _ratio(ratio: float) -> str:
    times = ratio if ratio >= 1 else 1 / ratio
    if ratio == 1:
        return "as much as a false alarm"
    return f"{times:g} times {'as much' if ratio > 1 else 'less'}"


def _rates(made: Thresholds, at: int) -> tuple[float, float]:
    found = made.positive - float(made.misses[at])
    said = found + float(made.false_alarms[at])
    return found / made.positive, found / said if said > 0 else float("nan")
