"""The section of the size: error against the number of support vectors."""

from __future__ import annotations

import numpy as np

from lssvm.reductions import SparsityPath
from lssvm.report.charts import Chart, alone
from lssvm.report.formats import count, percent
from lssvm.report.markup import tag, why
from lssvm.report.model_facts import sparsity_path, support_size
from lssvm.report.page import Section
from lssvm.report.predictions import as_columns
from lssvm.report.subject import Subject

ROWS = 1000  # rows that greedy models of every size are measured on
STEPS = 14


def sizes(subject: Subject) -> Section | None:
    """Return the section of the size; None where the model cannot say."""
    if hasattr(subject.model, "truncate") and getattr(subject.model, "paths_", None):
        body = _greedy(subject)
    else:
        path = sparsity_path(subject.model)
        body = None if path is None else _fixed(subject, path)
    return None if body is None else Section("size", "How small it can get", "Size", body)


def _fixed(subject: Subject, path: SparsityPath) -> list[object]:
    n, chosen, largest = support_size(subject.model), path.chosen, int(path.sizes[-1])
    low, high = path.mean - path.std_error, path.mean + path.std_error
    title = "Cross-validated squared error against the number of support vectors"
    ends = [*low, *high]
    chart = Chart(title, path.sizes, ends, "support vectors", "squared error", x_log=True)
    chart.band(path.sizes, low, high)
    chart.rule(y=path.limit, title="the smallest error plus one standard error")
    chart.line(path.sizes, path.mean).dots(path.sizes, path.mean, size=5.0)
    at = float(path.mean[np.flatnonzero(path.sizes == chosen)[0]])
    chart.star(float(chosen), at, f"{chosen} support vectors")
    subject.facts["sparsity"] = {
        "sizes": path.sizes.tolist(),
        "error": path.mean.tolist(),
        "std_error": path.std_error.tolist(),
        "chosen": chosen,
    }
    words = [
        f"The model is a sum over {count(n)} support vectors. Fewer make it smaller and faster. "
        f"{count(chosen)} of {count(largest)} would do: that is the smallest number whose "
        "cross-validated error is within one standard error of the best",
        ", and this model has been reduced to it.",
    ]
    if n > chosen:
        code = tag("code", 'reduction="spfs"')
        words[1:] = [f" ({percent(chosen / largest)} of the size). Fit with ", code]
        words.append(" to have that model.")
    caption = (
        "Cross-validated squared error of the outputs against the number of support vectors; the "
        "dashed line is the best plus one standard error."
    )
    legend = [("sa line", "mean"), ("sa area", "one standard error")]
    legend.append(("sb star", f"{count(chosen)} support vectors"))
    return [why(*words), alone(chart, caption, legend)]


def _greedy(subject: Subject) -> list[object] | None:
    """Measure a greedy model at every size on the rows of the report."""
    model, paths = subject.model, getattr(subject.model, "paths_", [])
    longest = max(len(path.support) for path in paths)
    steps = np.unique(np.geomspace(1, max(longest, 1), STEPS).round().astype(int))
    if subject.test is None or len(steps) < 3 or model is not subject.estimator:
        return None
    some = subject.test.some(ROWS)
    given, error = some.given(model), []
    for size in steps:
        predicted = np.asarray(model.truncate(int(size)).predict(given))  # type: ignore[attr-defined]
        wrong = predicted != some.y
        if not subject.classification:
            wrong = (predicted.reshape(len(some), -1) - as_columns(some.y)) ** 2
        mean = float(np.mean(wrong))
        error.append(mean if subject.classification else float(np.sqrt(mean)))
    what = "share of wrong rows" if subject.classification else "root mean squared error"
    across = "basis functions per problem"
    chart = Chart(f"{what} against {across}", steps, error, across, what, x_log=True)
    chart.line(steps, error).dots(steps, error, size=5.0)
    subject.facts["sparsity"] = {"sizes": steps.tolist(), "error": error}
    words = (
        f"The model was built one basis function at a time and stopped at {count(longest)}; "
        "truncate(n) gives the smaller ones."
    )
    caption = f"{what.capitalize()} on {count(len(some))} test rows against the size of the model."
    return [why(words), alone(chart, caption)]
