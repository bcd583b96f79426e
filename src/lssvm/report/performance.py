"""The sections of figures and errors: summary, classes, scores, costs, numbers, intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.report.charts import N_COLOURS, Chart, alone, figure, pictures
from lssvm.report.markup import (
    UNKNOWN,
    Markup,
    Section,
    count,
    listing,
    more,
    number,
    percent,
    short,
    table,
    tag,
    tiles,
    why,
)
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
    finite,
    mean_and_error,
    number_measures,
    proportion_interval,
    ranking_curves,
    row_shares,
    shown,
    span,
)
from lssvm.report.refits import copy_size
from lssvm.report.subject import (
    Subject,
    basis,
    n_prototypes,
    parameters_of,
    support_size,
    table_record,
)

FEW = 200  # test rows below which intervals are wide
TILES = ("accuracy", "balanced_accuracy", "roc_auc", "f1")


def as_fact(measure: Measure) -> dict[str, Any]:
    """Return a figure in types that JSON knows."""
    ends = {"low": finite(measure.low), "high": finite(measure.high)}
    return {"value": finite(measure.value), **ends, "interval": measure.method}


def summary(subject: Subject, intervals: list[Intervals]) -> tuple[list[Any], Section]:
    """Return the first sentence of the page and the section of figures."""
    first, body = _classes(subject) if subject.classification else _numbers(subject, intervals)
    return first, Section("figures", "How good it is", "Figures", body)


def answer(subject: Subject, first: list[Any], advice: str | None) -> Markup:
    """Return the three sentences at the top: how good, by what, and what would help.

    Parameters
    ----------
    subject : Subject
        With the facts that the sections have found.
    first : list
        The first sentence.
    advice : str or None
        What the learning curve says.
    """
    spans = subject.facts.get("importance_interval", {}).items()
    names = [f"“{short(name, 30)}”" for name, (low, _) in spans if low > 0][:3]
    second = f" It depends most on {listing(names)}." if names else ""
    leaking = list(subject.facts.get("data", {}).get("suspected_leaks", ()))
    third = advice or "There were too few rows, or none to spare, to see whether more would help."
    if leaking:
        third = (
            f"But “{short(leaking[0], 30)}” alone predicts the target, which looks like a leak: "
            "check that before anything else."
        )
    return tag("p", *first, second, " ", third, class_="lead")


def _classes(subject: Subject) -> tuple[list[Any], list[Any]]:
    found = subject.classes
    measures = [m for m in class_measures(found) if np.isfinite(m.value)]
    accuracy, (baseline, usual) = measures[0], baseline_accuracy(found)
    name = short(found.classes[usual], 30)
    first = [
        "This model predicts the ",
        tag("strong", f"{len(found.classes)} classes of {short(subject.target, 40)}"),
        " and is right for ",
        tag("strong", shown(accuracy)),
        f" of {subject.rows_said} (95 % interval {span(accuracy)}); always predicting "
        f"“{name}”, the most frequent class, is right for {percent(baseline)}.",
    ]
    better = (found.labels != usual).astype(np.float64) - (found.labels != found.decided)
    gain, error = mean_and_error(better, found.weight)
    if gain <= Z95 * error:
        ends = " to ".join(number(100.0 * (gain + side * Z95 * error)) for side in (-1, 1))
        subject.notes.append(
            f"The accuracy is not clearly higher than that of always predicting “{name}”: the "
            f"difference is {number(100.0 * gain)} points (95 % interval {ends})."
        )
    if baseline > 0.9:
        subject.notes.append(
            f"{percent(baseline)} of the rows are of one class, so the accuracy is not "
            "informative: see the balanced accuracy and the precision-recall curve, and consider "
            'class_weight="balanced".'
        )
    subject.facts["metrics"] = {m.key: as_fact(m) for m in measures}
    subject.facts["baseline_accuracy"] = baseline
    leading = [m for m in measures if m.key in TILES]
    caption = (
        "Figures; 95 % intervals: accuracy by Wilson's score interval, the others by jackknife "
        "over rows."
    )
    return first, [_tiles(subject, leading), _explained(subject), figure_table(caption, measures)]


def _numbers(subject: Subject, intervals: list[Intervals]) -> tuple[list[Any], list[Any]]:
    found = subject.numbers
    k, mean = found.Y.shape[1], partial(np.average, axis=0, weights=found.weight)
    each = [number_measures(found, j) for j in range(k)]
    base = mean(np.abs(found.Y - mean(found.Y)))
    subject.facts["baseline_mae"] = base.tolist()
    usual = [interval for interval in intervals if interval.coverage == 0.95]
    covered = [[measure for _, measure, _ in coverage_measures(usual, j)] for j in range(k)]
    facts = [{m.key: as_fact(m) for m in own} for own in each]
    for own, inside in zip(facts, covered, strict=True):
        own |= zip(["coverage_95"], map(as_fact, inside), strict=False)
    r2 = [m for own in each for m in own if m.key == "r2" and np.isfinite(m.value)]
    average = float(np.mean([m.value for m in r2])) if r2 else np.nan
    explained = ["explains ", tag("strong", percent(max(average, 0.0))), " of the variance"]
    if k > 1:
        numbers = tag("strong", f"{k} numbers at once")
        first = ["This model predicts ", numbers, " and on average over them ", *explained]
        first.append(f" of {subject.rows_said}.")
        subject.facts["metrics"] = {"r2": {"value": average}}
        subject.facts["outputs"] = dict(zip(found.names, facts, strict=True))
        return first, [_explained(subject), _outputs(found.names, each)]
    mae = next(m for m in each[0] if m.key == "mae")
    first = [
        "This model predicts ",
        tag("strong", short(subject.target, 40)),
        ", is off by ",
        tag("strong", shown(mae)),
        f" on average (95 % interval {span(mae)}) on {subject.rows_said}, and ",
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
    listed = figure_table("Figures; 95 % intervals: all by jackknife over rows.", each[0])
    return first, [_tiles(subject, leading), _explained(subject), listed]


def _tiles(subject: Subject, measures: list[Measure]) -> Markup:
    kept, record = basis(subject.model), table_record(subject.model)
    what = "Support vectors" if kept is None else kept[0].capitalize()
    size, rows = count(support_size(subject.model)), f"of {count(subject.train.n_rows)} rows"
    if record is not None:
        what, size = "Configurations", count(len(record.local_members))
        rows = f"of {count(record.n_tried)} that were tried"
    return tiles([*((m.name, shown(m), span(m)) for m in measures), (what, size, rows)])


def _explained(subject: Subject) -> Markup:
    checked, model = len(subject.checked), subject.model
    if checked < FEW:
        subject.notes.append(
            f"There are only {count(checked)} rows to measure on, so the intervals are wide: "
            "smaller differences are not meaningful."
        )
    if subject.test is not None:
        if not subject.test.complete:
            subject.notes.append(
                f"The figures come from {count(checked)} test rows drawn at random from "
                f"{count(subject.test.n_rows)}."
            )
        return why("All figures are measured on test rows that were not used in the fit.")
    subject.notes.append(
        "There were no test rows: all figures are cross-validated on training rows."
    )
    if np.size(parameters_of(model).get("C", 1.0)) > 1:
        subject.notes.append(
            "Every binary problem of the model has its own C; the cross-validated copies have "
            "their median for all, so that the model itself may be better."
        )
    size, whole = copy_size(model), n_prototypes(model)
    if size is not None and whole is not None and size < whole:
        subject.notes.append(
            f"The cross-validated copies have {count(size)} prototypes, not {count(whole)}, to "
            "save time: the model itself is better."
        )
    if table_record(model) is not None:
        subject.notes.append(
            "The cross-validated copies have only the configuration of largest weight, to save "
            "time: the model itself is better."
        )
    used = "all" if checked == subject.train.n_rows else "some"
    return why(
        f"No test rows were given. Instead, {used} training rows ({count(checked)}) were split "
        "into 5 folds, and each fold was predicted by a copy of the model, with the same "
        "parameters, that was fitted to the others. As the parameters were chosen on these rows, "
        "the figures are slightly too good: use a test set."
    )


def figure_table(caption: str, measures: list[Measure]) -> Markup:
    """Return the table of figures with their intervals."""
    rows = ([[m.name, tag("small", m.meaning)], shown(m), span(m)] for m in measures)
    return table(caption, ["Figure", "Value", "95 % interval"], rows)


def _outputs(names: tuple[str, ...], each: list[list[Measure]]) -> Markup:
    rows = [
        [short(name, 40), *[[shown(m), tag("small", span(m))] for m in found]]
        for name, found in zip(names, each, strict=True)
    ]
    head = ["Output", *[m.name for m in each[0]]]
    return table("Figures of every output; 95 % intervals by jackknife over rows.", head, rows)


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
            f"No test row is of class {', '.join(untested[:8])}"
            f"{' and others' if len(untested) > 8 else ''}: whether the model finds such rows was "
            "not tested, and means over classes do not include them."
        )
    matrix = _matrix(counts, names)
    words = (
        "Each line is a true class, each column a predicted class. The stronger the colour, the "
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
    head = ["true \\ predicted", *[short(name, length) for name in names]]
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
        "precision the share of right ones among those predicted as it, AUC the area under the "
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
        "that are calibrated agree with observed frequencies."
    )
    body = [why(words), pictures(*drawn)]
    return Section("scores", "Scores and probabilities", "Scores", body)


def _ranking_pictures(found: ClassPredictions) -> list[Markup]:
    q = len(found.classes)
    columns = [found.positive] if q == 2 else list(range(q))
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
        one, label = curves[found.positive], short(found.classes[found.positive], 30)
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
        c = found.positive
        p, hit = found.probability[:, c], found.labels == c
        said = f"probability of “{short(found.classes[c], 20)}”"
        colours = (f"s{c}", f"s{1 - c}")
        names = [short(found.classes[k], 24) for k in (c, 1 - c)]
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
            f"The probabilities are off by {percent(error)} on average: use them to rank rows, not "
            "as frequencies."
        )
    chart = Chart.unit("Calibration curve", said, "observed frequency", diagonal=True)
    colour = colours[0] if two else "sa"
    for m, s, n in zip(mean, share, sizes, strict=True):
        ends = proportion_interval(np.arange(n) < round(s * n))[1:]
        chart.line([m, m], ends, colour, width=1.4, opacity=0.6)
    chart.line(mean, share, colour).dots(mean, share, colour, size=8.0)
    caption = (
        "Calibration: groups of about equally many rows, with 95 % intervals (Wilson). On the "
        f"dashed line probabilities equal frequencies; the mean gap is {percent(error)}."
    )
    edges, title = np.linspace(0.0, 1.0, 21), "How often each probability was predicted"
    bars = [np.histogram(p[which], edges)[0] for which in (hit, ~hit)]
    often = Chart(title, [0, 1], [0, *bars[0], *bars[1]], said, "rows", y_zero=True)
    for heights, colour in zip(bars, colours, strict=True):
        often.bars(edges, heights, colour, 0.6)
    keys = [(f"{colour} square", name) for colour, name in zip(colours, names, strict=True)]
    words = f"{title}, {'by true class' if two else 'right and wrong'}."
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
        Rows whose probability (or score) of the positive class is above one are predicted as it.
    false_alarms, misses : arrays of shape (t,)
        Shares of all rows.
    default : (float, float)
        False alarms and misses of what the model decides itself.
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


def thresholds(found: ClassPredictions) -> Thresholds | None:
    """Return what every threshold does; None without scores or with other than two classes.

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
    p = found.probability if found.probability is not None else found.scores
    if len(found.classes) != 2 or p is None or len(np.unique(found.labels)) < 2:
        return None
    score, truth = p[:, found.positive], found.labels == found.positive
    weight = row_shares(len(truth), found.weight)
    grid = np.linspace(0.0, 1.0, POINTS)
    if found.probability is None:
        grid = np.linspace(float(score.min()), float(score.max()), POINTS)
    said = score[None, :] > grid[:, None]
    alarms = (said & ~truth) @ weight
    misses = (~said & truth) @ weight
    decided = found.decided == found.positive
    default = (float((decided & ~truth) @ weight), float((~decided & truth) @ weight))
    return Thresholds(grid, alarms, misses, default, float(truth @ weight))


def costs(subject: Subject) -> Section | None:
    """Return the section of costs over thresholds; None where there is nothing to choose."""
    made = thresholds(subject.classes)
    if made is None:
        return None
    positive = subject.classes.positive
    label, other = (short(subject.classes.classes[c], 24) for c in (positive, 1 - positive))
    what = "probability" if subject.classes.probability is not None else "score"
    axis = f"threshold on the {what} of “{label}”"
    title = f"False alarms and misses against the {axis}"
    heights = [0, *made.false_alarms, *made.misses]
    shares = Chart(title, made.thresholds, heights, axis, "share of all rows", y_zero=True)
    shares.line(made.thresholds, made.false_alarms, f"s{1 - positive}")
    shares.line(made.thresholds, made.misses, f"s{positive}")
    keys = [
        (f"s{1 - positive} line", f"false alarms: “{other}” predicted as “{label}”"),
        (f"s{positive} line", f"misses: “{label}” predicted as “{other}”"),
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
    head = ["A miss costs", "Threshold", "Cost", "By default", "One class", "Recall", "Precision"]
    caption = [
        "Costs of 100 rows in units of a false alarm: at the threshold with the smallest cost, by ",
        "the decisions of the model, and by always predicting the cheaper class.",
    ]
    words = (
        f"A false alarm predicts “{label}” where “{other}” is true, a miss the reverse. Find "
        "the row of the table with your cost of a miss; it has the best threshold. Thresholds were "
        "chosen on the rows that costs are measured on, so these are slightly too good."
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
    title = "Share of rows inside the intervals against the nominal coverage"
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
                    f"{'less' if measure.high < 0.95 else 'more'} than nominal: the test rows may "
                    "differ from the training rows."
                )
        x, y = [f[0] for f in found], [f[1].value for f in found]
        if j < OUTPUTS:
            chart.line(x, y, colour).dots(x, y, colour, size=8.0)
            keys.append((f"s{j} line", name))
    caption = (
        f"Coverage on {count(len(intervals[0].Y))} rows with 95 % intervals (Wilson): on the "
        "dashed line the coverage is nominal."
    )
    words = (
        "The model can give an interval with each prediction. A 95 % interval should hold 95 % "
        "of new rows; narrower is better at the same coverage."
    )
    head = ["Nominal", "Inside", "95 % interval", "Mean width"]
    listed = table("Coverage and width of the prediction intervals.", head, rows)
    body = [why(words), alone(chart, caption, keys if k > 1 else []), listed]
    return Section("intervals", "Can its intervals be trusted?", "Intervals", body)
