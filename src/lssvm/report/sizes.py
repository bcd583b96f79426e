"""The section of the size: error against the number of support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm.report.charts import Chart, figure
from lssvm.report.markup import join, tag
from lssvm.report.predictions import as_columns
from lssvm.report.scales import count, percent
from lssvm.report.subject import Section, Subject, support_size

WORK = 2e10  # operations of a sparsity path that are not too many
ROWS = 1000  # rows that greedy models of every size are measured on
STEPS = 14


def sizes(subject: Subject) -> Section | None:
    """Return the section of the size; None where the model cannot say."""
    model = subject.model
    if hasattr(model, "truncate") and getattr(model, "paths_", None):
        return _greedy(subject)
    path = _sparsity(model)
    return None if path is None else _fixed(subject, path)


def _sparsity(model: Any) -> Any:
    if not hasattr(model, "sparsity_path"):
        return None
    if not getattr(model, "sparsity_paths_", None):
        kept = getattr(model, "_kept", None)
        if kept is None:
            return None
        groups = max(1, len(getattr(model, "moments_", [0])))
        if 15.0 * kept.n_folds * len(kept.Z) ** 3 * groups > WORK:
            return None
    try:
        found = model.sparsity_path()
    except InvalidInputError:
        return None
    return None if isinstance(found, list) else found


def _fixed(subject: Subject, path: Any) -> Section:
    n = support_size(subject.model)
    chosen, largest = path.chosen, int(path.sizes[-1])
    chart = Chart(
        "Cross-validated squared error against the number of support vectors",
        path.sizes,
        [*(path.mean - path.std_error), *(path.mean + path.std_error)],
        "support vectors",
        "squared error",
        x_log=True,
    )
    chart.band(path.sizes, path.mean - path.std_error, path.mean + path.std_error)
    chart.rule(y=path.limit, title="the smallest error plus one standard error")
    chart.line(path.sizes, path.mean).dots(path.sizes, path.mean, 0, size=5.0)
    at = float(path.mean[np.flatnonzero(path.sizes == chosen)[0]])
    chart.star(float(chosen), at, 1, f"{chosen} support vectors")
    subject.facts["sparsity"] = {
        "sizes": path.sizes.tolist(),
        "error": path.mean.tolist(),
        "std_error": path.std_error.tolist(),
        "chosen": chosen,
    }
    words = [
        f"The model is a sum over {count(n)} support vectors. Fewer make it smaller and faster. ",
        f"{count(chosen)} of {count(largest)} would do: that is the smallest number whose "
        "cross-validated error is within one standard error of the best",
    ]
    if n > chosen:
        words.append(f" ({percent(chosen / largest)} of the size). Fit with ")
        words.append(tag("code", 'reduction="spfs"'))
        words.append(" to have that model.")
    else:
        words.append(", and this model has been reduced to it.")
    caption = (
        "Cross-validated squared error of the outputs against the number of support vectors; the "
        "dashed line is the best plus one standard error."
    )
    legend = [
        ("s0 line", "mean"),
        ("s0 area", "one standard error"),
        ("s1 star", f"{count(chosen)} support vectors"),
    ]
    picture = tag("div", figure(chart.svg(), caption, legend), class_="alone")
    body = join([tag("p", words, class_="why"), picture])
    return Section("size", "How small it can get", "Size", body)


def _greedy(subject: Subject) -> Section | None:
    """Measure a greedy model at every size on the rows of the report."""
    model, estimator = subject.model, subject.estimator
    longest = max(len(path.support) for path in model.paths_)
    steps = np.unique(np.geomspace(1, max(longest, 1), STEPS).round().astype(int))
    if subject.test is None or len(steps) < 3 or model is not estimator:
        return None
    some = subject.test.some(ROWS)
    given = some.given(estimator)
    error = []
    for size in steps:
        small = model.truncate(int(size))
        predicted = np.asarray(small.predict(given))
        if subject.classification:
            error.append(float(np.mean(predicted != some.y)))
        else:
            Y = as_columns(some.y)
            error.append(float(np.sqrt(np.mean((predicted.reshape(Y.shape) - Y) ** 2))))
    what = "share of wrong rows" if subject.classification else "root mean squared error"
    chart = Chart(
        f"{what} against basis functions per problem",
        steps,
        error,
        "basis functions per problem",
        what,
        x_log=True,
    )
    chart.line(steps, error).dots(steps, error, 0, size=5.0)
    words = (
        f"The model was built one basis function at a time and stopped at {count(longest)}; "
        "truncate(n) gives the smaller ones."
    )
    subject.facts["sparsity"] = {"sizes": steps.tolist(), "error": error}
    caption = f"{what.capitalize()} on {len(some):,} test rows against the size of the model."
    picture = tag("div", figure(chart.svg(), caption), class_="alone")
    body = join([tag("p", words, class_="why"), picture])
    return Section("size", "How small it can get", "Size", body)
