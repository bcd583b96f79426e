"""The first words of a report: the answer in three sentences, and the figures behind it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from lssvm.report.formats import count, listing, number, percent, short, shown, span
from lssvm.report.markup import Markup, Section, table, tag, tiles, why
from lssvm.report.measures import (
    Intervals,
    Measure,
    baseline_accuracy,
    class_measures,
    coverage_measures,
    finite,
    number_measures,
)
from lssvm.report.model_facts import basis, n_prototypes, parameters_of, support_size, table_record
from lssvm.report.refits import copy_size
from lssvm.report.subject import Subject

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
    gains = subject.facts.get("importance", {}).items()
    names = [f"“{short(name, 30)}”" for name, gain in gains if gain > 0][:3]
    second = f" It leans most on {listing(names)}."
    if not names:
        kept = count(support_size(subject.model))
        second = f" It compares new rows with {kept} rows that it has kept."
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
        "This model tells the ",
        tag("strong", f"{len(found.classes)} classes of {short(subject.target, 40)}"),
        " apart and is right for ",
        tag("strong", shown(accuracy)),
        f" of {subject.rows_said} (95 % interval {span(accuracy)}), where always answering "
        f"“{name}”, the most frequent class, would be right for {percent(baseline)}.",
    ]
    if accuracy.low <= baseline:
        subject.notes.append(
            f"The model is not clearly better than always answering “{name}”: the interval of its "
            f"accuracy ({span(accuracy)}) reaches down to {percent(baseline)}. Other columns, or "
            "more rows, may help."
        )
    if baseline > 0.9:
        subject.notes.append(
            f"{percent(baseline)} of the rows are of one class, so the accuracy says little: look "
            "at the balanced accuracy and at the precision-recall curve, and consider "
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
        f"; always answering the mean would be off by {number(base[0])}.",
    ]
    subject.facts["metrics"] = facts[0]
    if r2 and r2[0].low <= 0:
        subject.notes.append(
            "The model is not clearly better than always answering the mean: the interval of the "
            "explained variance reaches zero. Other columns, or more rows, may help."
        )
    leading = [m for m in (*each[0][:3], *covered[0]) if np.isfinite(m.value)]
    listed = figure_table("Figures; 95 % intervals: all by jackknife over rows.", each[0])
    return first, [_tiles(subject, leading), _explained(subject), listed]


def _tiles(subject: Subject, measures: list[Measure]) -> Markup:
    kept, record = basis(subject.model), table_record(subject.model)
    what = "Support vectors" if kept is None else kept[0].capitalize()
    size, rows = count(support_size(subject.model)), f"of {count(subject.train.n_rows)} rows"
    if record is not None:
        what, size = "Configurations", count(len(record.used))
        rows = f"of {count(len(record.trials))} that were tried"
    return tiles([*((m.name, shown(m), span(m)) for m in measures), (what, size, rows)])


def _explained(subject: Subject) -> Markup:
    checked, model = len(subject.checked), subject.model
    if checked < FEW:
        subject.notes.append(
            f"There are only {count(checked)} rows to measure on, so the intervals are wide: "
            "differences within them mean nothing."
        )
    if subject.test is not None:
        if not subject.test.complete:
            subject.notes.append(
                f"The figures come from {count(checked)} test rows drawn at random from "
                f"{count(subject.test.n_rows)}."
            )
        return why("All figures come from test rows that took no part in the fit.")
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
            "The cross-validated copies have the heaviest configuration alone, to save time: the "
            "model itself is better."
        )
    used = "all" if checked == subject.train.n_rows else "some"
    return why(
        f"No test rows were given. Instead, {used} training rows ({count(checked)}) were dealt "
        "into 5 folds, and each fold was predicted by a copy of the model, with the same "
        "parameters, that was fitted to the others. As the parameters were chosen on these rows, "
        "the figures are slightly too good: a test set tells more."
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
