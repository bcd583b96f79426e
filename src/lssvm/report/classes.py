"""Sections of a classifier: which classes are mistaken for which, and how scores behave."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.report.charts import Chart, figure
from lssvm.report.markup import Markup, join, table, tag
from lssvm.report.measures import confusion, ranking_curves, wilson
from lssvm.report.predictions import ClassPredictions
from lssvm.report.scales import UNKNOWN, count, number, percent, short
from lssvm.report.subject import Section, Subject

SMALL = 8  # classes from which on the table of confusions is set smaller
BINS = 10
CURVES = 6  # classes whose curves are named; more are drawn thin
MISTAKES = 8


def mistakes(subject: Subject) -> Section:
    """Return the section of the confusion matrix."""
    found: ClassPredictions = subject.found
    counts = confusion(found)
    names = [str(label) for label in found.classes]
    subject.facts["classes"] = names
    subject.facts["confusion_matrix"] = counts.tolist()
    body = [
        tag(
            "p",
            "Each line is a true class, each column what the model said. The stronger the colour, "
            "the larger the share of the line; the diagonal is right.",
            class_="why",
        ),
        _matrix(counts, names) if len(names) > SMALL else None,
        tag(
            "div",
            None if len(names) > SMALL else _matrix(counts, names),
            _pairs(counts, names),
            _by_class(subject, counts, names),
            class_="pictures",
        ),
    ]
    return Section("classes", "Where it is right and wrong", "Mistakes", join(body))


def _matrix(counts: FloatArray, names: list[str]) -> Markup:
    small = len(names) > SMALL
    length = 6 if small else 16
    sums = counts.sum(axis=1)
    rows = []
    for i, name in enumerate(names):
        cells = []
        for j, value in enumerate(counts[i]):
            share = float(value / sums[i]) if sums[i] > 0 else 0.0
            text: Any = "" if small and value == 0 else _amount(value)
            if not small:
                text = [text, tag("small", percent(share, 0))]
            cells.append(
                tag(
                    "td",
                    text,
                    style=f"--v:{share:.3f}",
                    class_="s0" if i == j else "s1",
                    title=f"{short(name, 30)} predicted as {short(names[j], 30)}: "
                    f"{_amount(value)} ({percent(share)})",
                )
            )
        rows.append(tag("tr", tag("th", short(name, length + 8), scope="row"), cells))
    head = tag(
        "tr",
        tag("th", "true \\ said", scope="col"),
        [tag("th", short(name, length), scope="col") for name in names],
    )
    inner = tag(
        "table",
        tag("caption", "Confusion matrix: rows of each class by the class that was predicted."),
        tag("thead", head),
        tag("tbody", rows),
        class_="confusion small" if small else "confusion",
    )
    return tag(
        "div", inner, class_="scroll", tabindex="0", role="region", aria_label="Confusion matrix"
    )


def _amount(value: float) -> str:
    return count(int(value)) if float(value).is_integer() else number(value)


def _pairs(counts: FloatArray, names: list[str]) -> Markup | None:
    """Return the most frequent mistakes, where there are more than two classes."""
    off = counts - np.diag(np.diag(counts))
    order = np.argsort(-off, axis=None, kind="stable")[:MISTAKES]
    rows = []
    for place in order:
        i, j = divmod(int(place), len(names))
        if off[i, j] <= 0:
            break
        share = percent(float(off[i, j] / counts[i].sum()))
        said = f"{short(names[i], 24)} taken for {short(names[j], 24)}"
        rows.append([said, _amount(off[i, j]), share])
    if len(names) < 3 or not rows:
        return None
    head = ["Mistake", "Rows", "Of that class"]
    return table("The most frequent mistakes.", head, rows)


def _by_class(subject: Subject, counts: FloatArray, names: list[str]) -> Markup:
    found = subject.found
    true, said, right = counts.sum(axis=1), counts.sum(axis=0), np.diag(counts)
    rows, facts = [], {}
    for c, name in enumerate(names):
        recall = float(right[c] / true[c]) if true[c] > 0 else np.nan
        precision = float(right[c] / said[c]) if said[c] > 0 else np.nan
        low, high = wilson(float(right[c]), float(true[c]))
        curves = ranking_curves(found, c)
        auc = np.nan if curves is None else curves["auc"]
        facts[name] = {
            "rows": float(true[c]),
            "recall": None if np.isnan(recall) else recall,
            "precision": None if np.isnan(precision) else precision,
            "roc_auc": None if np.isnan(auc) else auc,
        }
        said_span = f"{100 * low:.0f} to {100 * high:.0f} %" if true[c] > 0 else UNKNOWN
        rows.append(
            [
                short(name, 40),
                _amount(true[c]),
                [percent(recall), tag("small", said_span)],
                percent(precision),
                number(auc),
            ]
        )
    subject.facts["per_class"] = facts
    made = table(
        "By class: recall is the share of its rows that were found (95 % interval by Wilson), "
        "precision the share of right ones among those said to be of it, AUC the area under the "
        "ROC curve against the others.",
        ["Class", "Rows", "Recall", "Precision", "AUC"],
        rows,
    )
    return made if len(names) <= SMALL else tag("details", tag("summary", "By class"), made)


def rankings(subject: Subject) -> Section | None:
    """Return the section of ROC, precision-recall and calibration curves."""
    found: ClassPredictions = subject.found
    if found.ranking is None:
        return None
    pictures = [*_ranking_pictures(found), *_probability_pictures(subject)]
    if not pictures:
        return None
    words = (
        "A score that ranks well lets you choose how many false alarms to accept; probabilities "
        "that are calibrated can be taken at their word."
    )
    body = join([tag("p", words, class_="why"), tag("div", pictures, class_="pictures")])
    return Section("scores", "Scores and probabilities", "Scores", body)


def _ranking_pictures(found: ClassPredictions) -> list[Markup]:
    q = len(found.classes)
    columns = [1] if q == 2 else list(range(q))
    curves = {c: made for c in columns if (made := ranking_curves(found, c)) is not None}
    if not curves:
        return []
    named = q == 2 or len(curves) <= CURVES
    roc = Chart(
        "ROC curve: true positive rate against false positive rate",
        [0, 1],
        [0, 1],
        "false positive rate",
        "true positive rate",
        x_limits=(-0.02, 1.02),
        y_limits=(-0.02, 1.02),
    )
    roc.line([0, 1], [0, 1], None, dashed=True, width=1.2, opacity=0.5)
    pr = Chart(
        "Precision-recall curve",
        [0, 1],
        [0, 1],
        "recall",
        "precision",
        x_limits=(-0.02, 1.02),
        y_limits=(-0.02, 1.02),
    )
    keys = []
    for c, made in curves.items():
        colour = 0 if q == 2 else c if named else 0
        style: dict[str, Any] = {} if named else {"width": 1.0, "opacity": 0.45}
        roc.line(*_thin(*made["roc"]), colour, **style)
        pr.line(*_thin(*made["precision"]), colour, **style)
        if named:
            keys.append((f"s{colour} line", short(found.classes[c], 24)))
    if q == 2:
        one = curves[1]
        pr.rule(y=one["share"], title="share of the class")
        label = short(found.classes[1], 30)
        return [
            figure(
                roc.svg(),
                f"ROC curve for “{label}”, area {number(one['auc'])}; the dashed line is guessing.",
            ),
            figure(
                pr.svg(),
                f"Precision-recall curve for “{label}”, average precision "
                f"{number(one['average_precision'])}; the dashed line is guessing.",
            ),
        ]
    areas = [made["auc"] for made in curves.values()]
    mean = float(np.mean(areas))
    grid = np.linspace(0, 1, 101)
    middle = np.mean([np.interp(grid, *made["roc"]) for made in curves.values()], axis=0)
    if not named:
        roc.line(grid, middle, 1, width=2.6)
        keys = [("s0 line", "each class"), ("s1 line", "mean")]
        steps = [np.interp(grid, *made["precision"]) for made in curves.values()]
        pr.line(grid, np.mean(steps, axis=0), 1, width=2.6)
    each = f"each class against the others, mean area {number(mean)}"
    return [
        figure(roc.svg(), f"ROC curves, {each}; the dashed line is guessing.", keys),
        figure(pr.svg(), "Precision-recall curves, each class against the others.", keys),
    ]


def _thin(x: FloatArray, y: FloatArray, most: int = 250) -> tuple[FloatArray, FloatArray]:
    """Return a curve with no more points than a screen shows."""
    if len(x) <= most:
        return x, y
    steps = np.concatenate(([0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))))
    keep = np.unique(np.searchsorted(steps, np.linspace(0, steps[-1], most)))
    keep = np.unique(np.append(keep, len(x) - 1))
    return x[keep], y[keep]


def calibration_bins(p: FloatArray, hit: FloatArray) -> list[tuple[float, float, int]]:
    """Return mean probability, share of hits and size of groups of about equally many rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.classes import calibration_bins
    >>> calibration_bins(np.repeat([0.2, 0.8], 10), np.repeat([0.0, 1.0], 10))
    [(0.2, 0.0, 10), (0.8, 1.0, 10)]
    """
    groups = int(np.clip(len(p) // 20, 2, BINS))
    edges = np.unique(np.quantile(p, np.linspace(0, 1, groups + 1)))
    which = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, max(len(edges) - 2, 0))
    found = []
    for g in range(max(len(edges) - 1, 1)):
        inside = which == g
        if inside.any():
            mean, share = float(p[inside].mean()), float(hit[inside].mean())
            found.append((round(mean, 12), share, int(inside.sum())))
    return found


def _probability_pictures(subject: Subject) -> list[Markup]:
    found: ClassPredictions = subject.found
    if found.probability is None:
        return []
    two = len(found.classes) == 2
    if two:
        p, hit = found.probability[:, 1], (found.labels == 1).astype(np.float64)
        said = f"probability of “{short(found.classes[1], 20)}”"
    else:
        p = found.probability.max(axis=1)
        hit = (found.probability.argmax(axis=1) == found.labels).astype(np.float64)
        said = "probability of the predicted class"
    bins = calibration_bins(p, hit)
    sizes = np.array([n for *_, n in bins])
    gaps = np.array([abs(mean - share) for mean, share, _ in bins])
    error = float(sizes @ gaps / sizes.sum())
    subject.facts["calibration_error"] = error
    # Groups of few rows are off by chance: about this much where probabilities are right.
    chance = float(sum(n * np.sqrt(2 / np.pi * m * (1 - m) / n) for m, _, n in bins) / sizes.sum())
    if error > 0.03 + 1.5 * chance:
        subject.notes.append(
            f"The probabilities are off by {percent(error)} on average: rank rows by them, but do "
            "not take them at their word."
        )
    chart = Chart(
        "Calibration curve: how often it happened against the probability that was said",
        [0, 1],
        [0, 1],
        said,
        "how often it was so",
        x_limits=(-0.02, 1.02),
        y_limits=(-0.02, 1.02),
    )
    chart.line([0, 1], [0, 1], None, dashed=True, width=1.2, opacity=0.5)
    for mean, share, n in bins:
        chart.line([mean, mean], wilson(share * n, n), 0, width=1.4, opacity=0.6)
    x, y = [b[0] for b in bins], [b[1] for b in bins]
    chart.line(x, y, 0).dots(x, y, 0, size=8.0)
    caption = (
        f"Calibration: groups of about equally many rows, with 95 % intervals (Wilson). On the "
        f"dashed line, probabilities can be taken at their word; the mean gap is {percent(error)}."
    )
    return [figure(chart.svg(), caption), _histogram(found, p, hit, said, two)]


def _histogram(
    found: ClassPredictions, p: FloatArray, hit: FloatArray, said: str, two: bool
) -> Markup:
    edges = np.linspace(0.0 if two else min(0.0, float(p.min())), 1.0, 21)
    yes = np.histogram(p[hit == 1], edges)[0].astype(np.float64)
    no = np.histogram(p[hit == 0], edges)[0].astype(np.float64)
    chart = Chart(
        "How often each probability was said", [0, 1], [0, *yes, *no], said, "rows", y_zero=True
    )
    chart.bars(edges, yes, 0, 0.6).bars(edges, no, 1, 0.6)
    names = (
        [short(found.classes[1], 24), short(found.classes[0], 24)] if two else ["right", "wrong"]
    )
    caption = "How often each probability was said, by what was true."
    return figure(chart.svg(), caption, [("s0 square", names[0]), ("s1 square", names[1])])
