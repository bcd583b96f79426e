"""The section of what would help, from what the other sections have found."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lssvm.report.comparison import TABLE
from lssvm.report.markup import Section, number, percent, short, tag, why
from lssvm.report.measures import Z95
from lssvm.report.model_facts import is_table
from lssvm.report.subject import Subject

ONE_SIDED = 0.9  # share of one class from which on weights of the classes help
LEADING = 0.6  # part of all importance in a quarter of the columns from which on ARD may help
COLUMNS = 4  # columns below which that says nothing


def suggestions(subject: Subject, advice: str | None) -> list[str]:
    """Return what would help, the most telling first; every line says what it was seen from.

    Parameters
    ----------
    subject : Subject
        With the facts of the other sections.
    advice : str or None
        What the learning curve says.
    """
    found = [*_data(subject), *_models(subject), *_settings(subject)]
    if advice is not None:
        found.append(advice)
    if subject.test is None:
        found.append("Test rows would say how good the model is on rows that chose nothing.")
    return found or ["Nothing that was looked at would clearly help."]


def helping(subject: Subject, advice: str | None) -> Section:
    """Return the section of suggestions."""
    lines = suggestions(subject, advice)
    subject.facts["suggestions"] = lines
    items = tag("ul", [tag("li", line) for line in lines], class_="notes")
    words = "What the figures above point to, the most telling first."
    return Section("help", "What would help", "What helps", [why(words), items])


def _data(subject: Subject) -> Iterator[str]:
    data = subject.facts.get("data", {})
    leaks = list(data.get("suspected_leaks", ()))
    if leaks:
        yield (
            f"Leave out “{short(leaks[0], 40)}”, or make sure that it is known in time: it "
            "predicts the target alone."
        )
    for name in list(data.get("suspected_ids", ()))[:1]:
        yield f"Leave out “{short(name, 40)}”: it numbers the rows."
    useless = [n for n, gain in subject.facts.get("importance", {}).items() if gain < 0]
    if len(useless) >= 3:
        some = ", ".join(f"“{short(name, 24)}”" for name in useless[-3:])
        yield (
            f"{len(useless)} columns are no better than noise when shuffled (such as {some}): try "
            "without them."
        )


def _models(subject: Subject) -> Iterator[str]:
    compared = subject.facts.get("comparison", {})
    kind = "Classifier" if subject.classification else "Regressor"
    table = compared.get(TABLE)
    if table is not None and table["gain"] < -Z95 * table["std_error"]:
        yield (
            f"The model for tables, LSSVM{kind}(), was better by {number(-100 * table['gain'])} "
            "points with its fast settings: use it."
        )
    elif not is_table(subject.model) and any(
        one["gain"] < -Z95 * one["std_error"] for one in compared.values()
    ):
        yield (
            f"Another model was clearly better: try the model for tables, LSSVM{kind}(), which "
            "chooses among kernels and learns a metric."
        )
    preset = subject.model.get_params(deep=False).get("preset")
    if is_table(subject.model) and preset != "best":
        yield f'LSSVM{kind}("best") tries more configurations, in several times the time.'


def _settings(subject: Subject) -> Iterator[str]:
    params = subject.model.get_params(deep=False)
    gains = np.array([max(v, 0.0) for v in subject.facts.get("importance", {}).values()])
    gamma = params.get("gamma")
    ard = isinstance(gamma, str) and gamma == "ard"
    if (
        "gamma" in params
        and params.get("kernel") == "rbf"
        and not ard
        and not isinstance(gamma, np.ndarray)
    ):
        few = max(1, len(gains) // 4)
        lead = float(np.sort(gains)[::-1][:few].sum() / gains.sum()) if gains.sum() > 0 else 0.0
        if len(gains) >= COLUMNS and lead > LEADING:
            yield (
                f"{percent(lead, 0)} of the importance is in {few} of {len(gains)} columns: "
                'gamma="ard" gives every column a width of its own.'
            )
    if not subject.classification:
        return
    if subject.facts.get("baseline_accuracy", 0.0) > ONE_SIDED and not params.get("class_weight"):
        yield 'Most rows are of one class: class_weight="balanced" makes the others count.'
    code = getattr(subject.model, "code_", None)
    classes = len(subject.classes.classes)
    if code is not None and classes > 2 and code.n_problems < classes:
        yield (
            f"{classes} classes are told apart by {code.n_problems} binary problems: "
            'multiclass="ova" or "ecoc" has more of them, and is often more accurate.'
        )
