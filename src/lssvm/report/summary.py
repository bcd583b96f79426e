"""The first words of a report: what was learned and how good it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm.report.markup import Markup, join, table, tag
from lssvm.report.measures import (
    Measure,
    class_measures,
    confusion,
    coverage_measures,
    number_measures,
)
from lssvm.report.predictions import Intervals
from lssvm.report.refits import copy_size
from lssvm.report.scales import UNKNOWN, count, number, percent, short
from lssvm.report.subject import Section, Subject, support_size

FEW = 200  # test rows below which intervals are wide


def shown(measure: Measure) -> str:
    """Return the value of a figure as people write it.

    Examples
    --------
    >>> from lssvm.report.measures import Measure
    >>> from lssvm.report.summary import shown, span
    >>> figure = Measure("accuracy", "Accuracy", 0.8631, 0.84, 0.88, "Wilson", True)
    >>> shown(figure), span(figure)
    ('86.3 %', '84.0 % to 88.0 %')
    """
    return percent(measure.value) if measure.share else _say(measure, measure.value)


def span(measure: Measure) -> str:
    """Return the interval of a figure."""
    if not np.isfinite(measure.low):
        return UNKNOWN
    return f"{_say(measure, measure.low)} to {_say(measure, measure.high)}"


def _say(measure: Measure, value: float) -> str:
    if measure.share:
        return f"{100 * value:.1f} %"
    if measure.key in ("rmse", "mae", "median_absolute_error") or abs(value) >= 10:
        return number(value)
    return f"{value:.3f}".replace("-", "\u2212")


def as_fact(measure: Measure) -> dict[str, Any]:
    """Return a figure in types that JSON knows."""
    ends = {"low": _finite(measure.low), "high": _finite(measure.high)}
    return {"value": _finite(measure.value), **ends, "interval": measure.method}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def summary(subject: Subject, intervals: list[Intervals]) -> tuple[Markup, Section]:
    """Return the sentence at the top of the page and the section of figures."""
    if subject.classification:
        return _classes(subject)
    return _numbers(subject, intervals)


def _classes(subject: Subject) -> tuple[Markup, Section]:
    found = subject.found
    measures = class_measures(found)
    accuracy = measures[0]
    table_of = confusion(found)
    shares = table_of.sum(axis=1) / table_of.sum()
    usual = int(np.argmax(shares))
    baseline = float(shares[usual])
    name, q = str(found.classes[usual]), len(found.classes)
    lead = tag(
        "p",
        "This model tells the ",
        tag("strong", f"{q} classes of {short(subject.target, 40)}"),
        " apart. It is right for ",
        tag("strong", percent(accuracy.value)),
        f" of {subject.rows_said} (95 % interval {span(accuracy)}). Always answering "
        f"“{short(name, 30)}”, the most frequent class, would be right for {percent(baseline)}.",
        class_="lead",
    )
    _class_notes(subject, accuracy, baseline, name)
    subject.facts["metrics"] = {m.key: as_fact(m) for m in measures}
    subject.facts["baseline_accuracy"] = baseline
    first = [m for m in measures if m.key in ("accuracy", "balanced_accuracy", "roc_auc", "f1")]
    body = join([_tiles(subject, first), _explained(subject), _table(subject, measures, "Figures")])
    return lead, Section("figures", "How good it is", "Figures", body)


def _class_notes(subject: Subject, accuracy: Measure, baseline: float, name: str) -> None:
    if accuracy.low <= baseline:
        subject.notes.append(
            f"The model is not clearly better than always answering “{short(name, 30)}”: the "
            f"interval of its accuracy ({span(accuracy)}) reaches down to {percent(baseline)}. "
            "Other columns, or more rows, may help."
        )
    if baseline > 0.9:
        subject.notes.append(
            f"{percent(baseline)} of the rows are of one class, so the accuracy says little: look "
            "at the balanced accuracy and at the precision-recall curve, and consider "
            'class_weight="balanced".'
        )


def _numbers(subject: Subject, intervals: list[Intervals]) -> tuple[Markup, Section]:
    found = subject.found
    k = found.Y.shape[1]
    each = [number_measures(found, j) for j in range(k)]
    weight = np.ones(len(found.Y)) if found.weight is None else found.weight
    mean = weight @ found.Y / weight.sum()
    base = weight @ np.abs(found.Y - mean) / weight.sum()
    mae, r2 = each[0][1], each[0][2]
    covered = [_at(coverage_measures(intervals, j), 0.95) for j in range(k)]
    facts = []
    for own, inside in zip(each, covered, strict=True):
        fact = {m.key: as_fact(m) for m in own}
        if inside is not None:
            fact["coverage_95"] = as_fact(inside)
        facts.append(fact)
    if k == 1:
        lead = tag(
            "p",
            "This model predicts ",
            tag("strong", short(subject.target, 40)),
            ". On average it is off by ",
            tag("strong", number(mae.value)),
            f" (95 % interval {span(mae)}) on {subject.rows_said}, and explains ",
            tag("strong", percent(max(r2.value, 0.0))),
            f" of the variance. Always answering the mean would be off by {number(base[0])}.",
            class_="lead",
        )
        subject.facts["metrics"] = facts[0]
        tiles = [*each[0][:3], *([covered[0]] if covered[0] is not None else [])]
        body = join(
            [_tiles(subject, tiles), _explained(subject), _table(subject, each[0], "Figures")]
        )
        if r2.low <= 0:
            subject.notes.append(
                "The model is not clearly better than always answering the mean: the interval of "
                "the explained variance reaches zero. Other columns, or more rows, may help."
            )
    else:
        average = float(np.nanmean([m[2].value for m in each]))
        lead = tag(
            "p",
            "This model predicts ",
            tag("strong", f"{k} numbers at once"),
            ". On average over them it explains ",
            tag("strong", percent(max(average, 0.0))),
            f" of the variance of {subject.rows_said}.",
            class_="lead",
        )
        subject.facts["metrics"] = {"r2": {"value": average}}
        subject.facts["outputs"] = {
            name: fact for name, fact in zip(found.names, facts, strict=True)
        }
        body = join([_explained(subject), _outputs(found.names, each)])
    subject.facts["baseline_mae"] = [float(b) for b in base]
    return lead, Section("figures", "How good it is", "Figures", body)


def _at(found: list[tuple[float, Measure, float]], coverage: float) -> Measure | None:
    for promised, measure, _ in found:
        if promised == coverage:
            name = f"Inside the {percent(coverage, 0)} interval"
            return Measure(**{**vars(measure), "name": name})
    return None


def _tiles(subject: Subject, measures: list[Measure]) -> Markup:
    tiles = [
        tag(
            "div",
            tag("dt", m.name),
            tag("dd", tag("div", shown(m), class_="value"), tag("div", span(m), class_="range")),
            class_="tile",
        )
        for m in measures
    ]
    size = support_size(subject.model)
    what = "Prototypes" if hasattr(subject.model, "prototypes_") else "Support vectors"
    tiles.append(
        tag(
            "div",
            tag("dt", what),
            tag(
                "dd",
                tag("div", count(size), class_="value"),
                tag("div", f"of {count(subject.train.n_rows)} rows", class_="range"),
            ),
            class_="tile",
        )
    )
    return tag("dl", tiles, class_="tiles")


def _explained(subject: Subject) -> Markup:
    if subject.test is None:
        used = "all" if len(subject.checked) == subject.train.n_rows else "some"
        words = (
            f"No test rows were given. Instead, {used} training rows "
            f"({count(len(subject.checked))}) were dealt into 5 folds, and each fold was predicted "
            "by a copy of the model, with the same parameters, that was fitted to the others. As "
            "the parameters were chosen on these rows, the figures are slightly too good: a test "
            "set tells more."
        )
        subject.notes.append(
            "There were no test rows: all figures are cross-validated on training rows."
        )
        if np.size(getattr(subject.model, "C_", 1.0)) > 1:
            subject.notes.append(
                "Every binary problem of the model has its own C; the cross-validated copies have "
                "their median for all, so that the model itself may be better."
            )
        size = copy_size(subject.model)
        if size is not None and size < subject.model.n_prototypes_:
            subject.notes.append(
                f"The cross-validated copies have {count(size)} prototypes, not "
                f"{count(subject.model.n_prototypes_)}, to save time: the model itself is better."
            )
    else:
        words = "All figures come from test rows that took no part in the fit."
        if not subject.test.complete:
            subject.notes.append(
                f"The figures come from {count(len(subject.checked))} test rows drawn at random "
                f"from {count(subject.test.n_rows)}."
            )
    if len(subject.checked) < FEW:
        subject.notes.append(
            f"There are only {count(len(subject.checked))} rows to measure on, so the intervals "
            "are wide: differences within them mean nothing."
        )
    return tag("p", words, class_="why")


def _table(subject: Subject, measures: list[Measure], title: str) -> Markup:
    methods = {m.method for m in measures}
    said = []
    if "Wilson" in methods:
        said.append("accuracy by Wilson's score interval")
    if "bootstrap" in methods:
        said.append(f"{'the others' if said else 'all'} by bootstrap over rows")
    return table(
        f"{title}; 95 % intervals: {', '.join(said)}.",
        ["Figure", "Value", "95 % interval"],
        ([[m.name, tag("small", m.meaning)], shown(m), span(m)] for m in measures),
    )


def _outputs(names: tuple[str, ...], each: list[list[Measure]]) -> Markup:
    head = ["Output", *[m.name for m in each[0]]]
    rows = [
        [short(name, 40), *[[shown(m), tag("small", span(m))] for m in found]]
        for name, found in zip(names, each, strict=True)
    ]
    return table("Figures of every output; 95 % intervals by bootstrap over rows.", head, rows)
