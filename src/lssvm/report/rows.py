"""The section of single rows: why the model said what it said, about typical and wrong ones."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm.explanations import Explanation
from lssvm.report.charts import N_COLOURS, pictures
from lssvm.report.formats import number, percent, plus_minus, short
from lssvm.report.markup import Markup, Section, signed_table, why
from lssvm.report.measures import losses, nameless_rows
from lssvm.report.model_facts import inner_names
from lssvm.report.subject import Subject

WORST = 3
TYPICAL = 2
BACKGROUND = 20
ORDERS = 4
SHOWN = 7  # columns of a row that are listed
WIDE = 60  # columns beyond which sampling would take too long


def explained_rows(subject: Subject) -> Section | None:
    """Return the section of explanations; None where the model has none."""
    if not subject.has_features or not hasattr(subject.model, "explain"):
        return None
    typical, worst = _chosen(subject)
    rows = [*typical, *worst]
    found = explanation(subject, rows)
    if found is None:
        return None
    said = [f"Typical row {i + 1}" for i in range(len(typical))]
    said += [
        f"Wrong row {i + 1}" if subject.classification else f"Row far off {i + 1}"
        for i in range(len(worst))
    ]
    drawn = [
        _table(subject, found, i, row, name)
        for i, (row, name) in enumerate(zip(rows, said, strict=True))
    ]
    what = "score" if subject.classification else "prediction"
    words = (
        f"What each column adds to the {what} of a row, beginning with the mean {what} of "
        f"{BACKGROUND} training rows (Shapley values). "
        + ("They are exact" if found.exact else "They are sampled, and the ± is a standard error")
        + f"; with the mean they add up to the {what}. The wrong rows are those on which the model "
        "was surest, or furthest off: look for values that cannot be right."
    )
    return Section("rows", "Why it said so", "Rows", [why(words), pictures(*drawn)])


def explanation(subject: Subject, rows: list[int]) -> Explanation | None:
    """Return the explanation of some of the rows that figures come from."""
    model, background = subject.model, subject.train.some(BACKGROUND, seed=4)
    both = subject.checked.take(rows), background
    given, against = (some.seen(subject.estimator) for some in both)
    with suppress(InvalidInputError), nameless_rows():
        found: Explanation = model.explain(  # type: ignore[attr-defined]
            given, against, n_background=BACKGROUND, n_permutations=ORDERS
        )
        return found
    return None


def _chosen(subject: Subject) -> tuple[list[int], list[int]]:
    """Return rows in the middle and at the end of what the model gets wrong."""
    if not subject.classification:
        found = subject.numbers
        order = np.argsort(losses(found.predicted, found.Y, classes=False), kind="stable")
        middle = len(order) // 2
        return order[middle : middle + TYPICAL].tolist(), order[::-1][:WORST].tolist()
    classes = subject.classes
    sure = classes.probability if classes.probability is not None else classes.ranking
    sure = np.zeros((len(classes), len(classes.classes))) if sure is None else sure
    own = sure[np.arange(len(classes)), classes.decided]
    right = classes.decided == classes.labels
    wrong = np.flatnonzero(~right)
    worst = wrong[np.argsort(-own[wrong], kind="stable")][:WORST].tolist()
    typical = []
    for c in np.argsort(-np.bincount(classes.labels), kind="stable")[:TYPICAL]:
        good = np.flatnonzero(right & (classes.labels == c))
        if len(good):
            typical.append(int(good[np.argsort(own[good], kind="stable")[len(good) // 2]]))
    return typical, worst


def _table(subject: Subject, found: Explanation, i: int, row: int, name: str) -> Markup:
    j, positive, negative = _output(subject, row)
    part = found[i].output(j) if found.values.ndim == 3 else found[i]
    values, errors = part.values[0], part.errors[0]
    order = np.argsort(-np.abs(values), kind="stable")
    shown, rest = order[:SHOWN], order[SHOWN:]
    names = list(part.feature_names)
    if subject.model is not subject.estimator:
        names = list(inner_names(subject.estimator, len(names)))
    added = [
        (f"{short(names[k], 28)} = {_value(part.data[0, k])}", float(values[k]), float(errors[k]))
        for k in shown
    ]
    if len(rest):
        added.append((f"{len(rest)} other columns", float(values[rest].sum()), 0.0))
    lines = [(what, value, plus_minus(value, error, sign=True)) for what, value, error in added]
    base, total = float(part.base_values[0]), float(part.prediction[0])
    where = int(subject.checked.positions[row]) + 1
    kind = "training" if subject.test is None else "test"
    caption = (
        f"{name}: {kind} row {where}, {_verdict(subject, row, j)} From {number(base)} to "
        f"{number(total)}."
    )
    return signed_table(caption, ["Column", "", "Adds"], lines, (positive, negative))


def _output(subject: Subject, row: int) -> tuple[int, str, str]:
    """Return the output that is explained, and the colours of what speaks for and against it."""
    if not subject.classification:
        return 0, "sa", "sb"
    if len(subject.classes.classes) == 2:
        return 0, "s1", "s0"
    c = int(subject.classes.decided[row])
    return c, f"s{c % N_COLOURS}", "sb"


def _verdict(subject: Subject, row: int, j: int) -> str:
    if not subject.classification:
        true, said = (values[row, 0] for values in (subject.numbers.Y, subject.numbers.predicted))
        return f"predicted {number(said)}, true {number(true)}."
    found = subject.classes
    decided, label = (short(found.classes[each[row]], 24) for each in (found.decided, found.labels))
    sure = ""
    if found.probability is not None:
        sure = f" ({percent(float(found.probability[row, found.decided[row]]))} sure)"
    speaks = short(found.classes[1], 24) if len(found.classes) == 2 else decided
    return f"said to be “{decided}”{sure}, truly “{label}”. Bars to the right speak for “{speaks}”."


def _value(value: Any) -> str:
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return "missing"
    if isinstance(value, (float, int, np.number)) and not isinstance(value, bool):
        return number(float(value))
    return short(value, 20)
