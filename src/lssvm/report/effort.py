"""The section of the effort: would more rows help, and where did the time go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lssvm.report.charts import Chart, figure
from lssvm.report.columns import bar_table
from lssvm.report.markup import Markup, join, tag
from lssvm.report.refits import LearningCurve, learning_curve
from lssvm.report.scales import count, duration
from lssvm.report.subject import Section, Subject


def learning(subject: Subject) -> Section | None:
    """Return the section of the learning curve; None where there are too few rows."""
    if not subject.has_features:
        return None
    curve = learning_curve(subject.estimator, subject.train, subject.test)
    if curve is None:
        return None
    subject.facts["learning_curve"] = {
        "rows": [int(n) for n in curve.sizes],
        "error": [float(e) for e in curve.error],
        "std_error": [float(s) for s in curve.spread],
    }
    body = [tag("p", _words(curve), class_="why"), _picture(subject, curve)]
    return Section("learning", "Would more rows help?", "Learning", join(body))


def _words(curve: LearningCurve) -> str:
    fall = float(curve.error[-2] - curve.error[-1])
    noise = 2.0 * float(np.hypot(curve.spread[-2], curve.spread[-1]))
    step = f"from {count(curve.sizes[-2])} to {count(curve.sizes[-1])} rows"
    if fall > noise:
        return f"The error was still falling {step}: more rows would probably help."
    if fall > 0.25 * noise:
        return f"The error fell a little {step}, within its uncertainty: more rows may help."
    return f"The error no longer fell {step}: more rows of the same kind would hardly help."


def _picture(subject: Subject, curve: LearningCurve) -> Markup:
    what = "share of wrong rows" if subject.classification else "error (deviations of the target)"
    low, high = curve.error - 1.96 * curve.spread, curve.error + 1.96 * curve.spread
    chart = Chart(
        f"{what} against training rows",
        curve.sizes,
        [*np.maximum(low, 0.0), *high],
        "training rows",
        what,
        x_log=True,
        height=270,
        x_names=_ticks(curve),
    )
    chart.band(curve.sizes, np.maximum(low, 0.0), high)
    chart.line(curve.sizes, curve.error).dots(curve.sizes, curve.error, 0, size=6.0)
    kind = "held-out" if curve.held_out else "test"
    last = "" if curve.held_out else " The last point is this model."
    caption = (
        f"Copies of the model, with the same parameters, fitted to parts of the training rows and "
        f"measured on {count(curve.n_test)} {kind} rows; the band is a 95 % interval.{last}"
    )
    return tag("div", figure(chart.svg(), caption), class_="alone")


def _ticks(curve: LearningCurve) -> list[tuple[float, str]]:
    """Return the sizes as ticks, without those whose names would overlap."""
    found: list[tuple[float, str]] = []
    span = float(np.log(curve.sizes[-1] / curve.sizes[0]))
    for size in curve.sizes[::-1]:
        if not found or np.log(found[-1][0] / size) > 0.13 * span:
            found.append((float(size), count(size)))
    return found


def time_spent(subject: Subject, seconds: Mapping[str, float] | None) -> Section | None:
    """Return the section of the time; None where nobody took it."""
    stages = {str(name): float(value) for name, value in (seconds or {}).items()}
    record = getattr(subject.model, "tuning_result_", None)
    if not stages and record is not None and not isinstance(record, list):
        stages = {"search for C and gamma": float(record.seconds)}
    if not stages:
        return None
    subject.facts["seconds"] = stages
    rows: list[tuple[Any, float, str]] = [(n, s, duration(s)) for n, s in stages.items()]
    caption = f"Time spent, {duration(sum(stages.values()))} in all."
    if len(rows) == 1:
        caption = "By stage."
    return Section("time", "Time spent", "Time", bar_table(caption, ["Stage", "", "Time"], rows))
