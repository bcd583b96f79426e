"""The sections of the fit: configurations, tuning, learning curve, prototypes and size."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from lssvm._core.arrays import IntArray
from lssvm.fitting.table_record import TableFit, seconds_of_stages, why_not
from lssvm.plots import PrototypesDisplay, SparsityDisplay, TuningSurfaceDisplay
from lssvm.plots.base import class_positions, fitted_attributes
from lssvm.plots.charts import Band, Chart, Line, Points, Star
from lssvm.plots.plane import project
from lssvm.plots.rows import (
    basis,
    feature_names_of,
    is_table,
    parameters_of,
    preparation_of,
    sparsity_path,
    support_size,
    table_record,
)
from lssvm.plots.tuning import KEYS, losses_or_scores
from lssvm.report import html
from lssvm.report.measures import as_columns
from lssvm.report.refits import LearningCurve, Subject, learning_curve
from lssvm.report.text import UNKNOWN, duration, number, percent, short
from lssvm.tuning.search import TuningResult


def tuning(subject: Subject) -> html.Section | None:
    """Return the section of the tuning; None where nothing was tuned."""
    subject.facts["parameters"] = {
        name: value if isinstance(value, int) else np.asarray(value, dtype=float).tolist()
        for name, value in parameters_of(subject.model).items()
        if name != "solver"
    }
    fitted = fitted_attributes(subject.model)
    results, search = fitted.get("cv_results_"), tuning_result(subject.model)
    if results is None:
        return None
    if search is not None and search.interrupted:
        subject.notes.append("Tuning was interrupted; the best parameters so far were used.")
    if isinstance(results, list):
        text = f"Each of the {len(results)} binary problems was tuned separately, with its own C "
        text += "and gamma."
        return html.Section("tuning", "How it was tuned", "Tuning", text)
    if set(KEYS) <= set(results):
        _note_edges(subject, TuningSurfaceDisplay(results))
    body = [search_figure(results), _sizes(subject)]
    return html.Section("tuning", "How it was tuned", "Tuning", _search_summary(subject), body)


def tuning_result(model: object) -> TuningResult | None:
    """Return the record of a search; None where nothing was searched, or each problem by itself."""
    result = fitted_attributes(model).get("tuning_result_")
    return result if isinstance(result, TuningResult) else None


def search_figure(results: dict[str, Any]) -> html.Markup | None:
    """Return the scores of a search over C and gamma, or along one of them."""
    if not set(KEYS) <= set(results):  # leave-one-out along C
        C, scores = (np.asarray(results.get(key, ())) for key in ("param_C", "mean_test_score"))
        if len(C) < 2:
            return None
        (values, kind), best = losses_or_scores(scores), int(np.argmax(scores))
        order = np.argsort(C)
        marks = [Line(C[order], values[order]), Star(C[best], values[best], "chosen", "text")]
        title = f"Leave-one-out {kind} against C"
        chart = Chart(title, "C", kind, marks, x_log=True)
        caption = f"{title}. Chosen: C = {number(C[best])}."
        return html.figure(chart, caption, height=270, alone=True)
    display = TuningSurfaceDisplay(results)
    if not display.tuned:
        return None
    chart, (values, _), best = display.chart(), losses_or_scores(display.scores), display.best_index
    chosen = [f"{name} = {number(vars(display)[name][best])}" for name in display.tuned]
    ends = f"from {number(values.min())} to {number(values.max())}"
    caption = f"{chart.title}, {ends}. Chosen: {', '.join(chosen)}."
    return html.figure(chart, caption, alone=True)


def _note_edges(subject: Subject, display: TuningSurfaceDisplay) -> None:
    for name in display.tuned:
        values = vars(display)[name]
        known, best = values[np.isfinite(values)], values[display.best_index]
        if np.unique(known).size >= 3 and best in (known.max(), known.min()):
            end = "largest" if best >= known.max() else "smallest"
            subject.notes.append(
                f"The chosen {name} = {number(best)} is the {end} that was tried: the best one may "
                "lie further out."
            )


def _search_summary(subject: Subject) -> str:
    settings, search = subject.model.get_params(deep=False), tuning_result(subject.model)
    fitted = fitted_attributes(subject.model)
    tried = fitted.get("n_evaluations_", len(fitted["cv_results_"]["mean_test_score"]))
    text = (
        "C sets how closely the model follows the training rows, gamma how far one row reaches. "
        f"{tried:,} settings were tried"
    )
    if search is not None and search.seconds > 0:
        text += f" in {duration(search.seconds)}"
    cv = settings.get("cv")
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        text += f", each by {cv}-fold cross-validation on the training rows alone"
    text, score = f"{text}. ", float(fitted.get("best_score_", np.nan))
    if settings.get("scoring") is not None or not np.isfinite(score):
        return text
    if subject.classification:
        right = 1.0 + score if score <= 0.0 else score
        return f"{text}The chosen one is right for {percent(right)} of the held-out rows."
    loss, name = -score, "loss"
    if settings.get("loss", "squared") == "squared" and loss >= 0:
        loss, name = float(np.sqrt(loss)), "root mean squared error"
    return f"{text}The {name} of the chosen one on held-out rows is {number(loss)}."


def _sizes(subject: Subject) -> html.Markup | None:
    """Return the table of numbers of prototypes, where these were tuned."""
    results = fitted_attributes(subject.model).get("size_results_")
    if not results:
        return None
    values, kind = losses_or_scores(np.asarray(results["mean_test_score"]))
    lines = zip(results["n_prototypes"], values, results["std_test_score"], strict=True)
    rows = [[f"{m:,}", number(v), number(d)] for m, v, d in lines]
    head = ["Prototypes", f"Cross-validated {kind}", "Deviation over folds"]
    chosen = parameters_of(subject.model)["n_prototypes"]
    return html.table(f"How many prototypes? {chosen:,} were chosen.", head, rows)


def configurations(subject: Subject) -> html.Section | None:
    """Return the section of the configurations of a model for tables; None for other models."""
    record = table_record(subject.model)
    if record is None:
        return None
    tried = fitted_attributes(subject.model)["configurations_"]
    keys = ("kernel", "scaling", "rounds", "error", "weight", "seconds", "stage", "warped")
    lines = sorted(zip(*(tried[key] for key in keys), strict=True), key=lambda line: -line[4])
    subject.facts["configurations"] = {key: list(tried[key]) for key in keys}
    rows = []
    for kernel, scaling, rounds, error, weight, seconds, stage, warped in lines:
        share = number(weight) if weight > 0 else f"dropped after {stage}"
        metric = f"{rounds} round{'s' if rounds > 1 else ''}" if rounds else "none"
        metric += " of a warp" if warped else ""
        known = percent(1.0 - error) if error < 1.0 else UNKNOWN
        name = f"{kernel} on {scaling}" + (", prototypes" if stage == "prototypes" else "")
        rows.append([name, share, known, metric, duration(seconds)])
    used, largest = len(record.local_members), fitted_attributes(subject.model)["leaf_size_"]
    text = (
        f"{record.n_tried:,} configurations (a kernel on one kind of inputs) were tried, and "
        f"{used:,} {'is' if used == 1 else 'are'} in the stack, by their weights. The leaves of "
        f"the model hold at most {largest:,} rows each. "
        + ("Prototypes are another model of all rows. " if "prototypes" in tried["stage"] else "")
        + ("Metrics" if any(tried["rounds"]) else "No metrics")
        + " were learned, decided by the error on held-out rows."
    )
    caption = "Configurations, with the explained variance of held-out rows."
    head = ["Configuration", "Weight", "Explained", "Metric", "Time"]
    body = [html.table(caption, head, rows), *_steps(subject, record)]
    return html.Section("configurations", "What was tried", "Configurations", text, body)


def _steps(subject: Subject, record: TableFit) -> list[html.Markup]:
    """Return the time of every stage, and what further steps would bring, or brought."""
    assert record.tuning is not None
    steps = record.tuning.steps
    spent = {stage: time for stage, time in seconds_of_stages(steps).items() if time > 0}
    if not spent:
        return []
    subject.facts["steps"] = [
        {
            "stage": step.stage,
            "step": step.what,
            "gain": step.gain if np.isfinite(step.gain) else None,
            "cost": step.cost,
            "seconds": step.seconds,
            "taken": step.taken,
        }
        for step in steps
    ]
    lines = [(stage, time, duration(time)) for stage, time in spent.items()]
    caption = f"What the {duration(sum(spent.values()))} of the fit were spent on."
    body = [html.bar_table(caption, ["Stage", "", "Time"], lines)]
    further = [
        [step.what, why, gain.replace("%", " %") or UNKNOWN]
        for step in steps
        for why, gain in why_not(step)
    ]
    if further:
        caption = "What the next steps would gain, or gained: the fall of the held-out loss."
        body.append(html.table(caption, ["Step", "Why it is not in the model", "Gain"], further))
    return body


def learning(subject: Subject) -> html.Section | None:
    """Return the section of the learning curve; None where there are too few rows."""
    curve = None
    if subject.has_features:
        curve = learning_curve(subject.estimator, subject.train, subject.test)
    if curve is None:
        return None
    metric = "share of wrong rows" if subject.classification else "error (deviations of the target)"
    how = "with the same parameters"
    if is_table(subject.model):
        how = "each with only the configuration of largest weight"
    caption = (
        f"Copies of the model, {how}, fitted to parts of the training rows and measured on "
        f"{curve.n_test:,} {'held-out' if curve.held_out else 'test'} rows; the band is a 95 % "
        f"interval.{' The last point is this model.' if curve.ends_in_model else ''}"
    )
    subject.facts["learning_curve"] = {
        "rows": curve.sizes.tolist(),
        "error": curve.error.tolist(),
        "std_error": curve.spread.tolist(),
    }
    body = [learning_figure(curve, "training rows", metric, caption)]
    return html.Section("learning", "Would more rows help?", "Learning", curve.verdict(), body)


def learning_figure(curve: LearningCurve, across: str, measure: str, caption: str) -> html.Markup:
    """Return a learning curve with its band; sizes whose names would overlap have no tick."""
    sizes, ticks = curve.sizes, list[tuple[float, str]]()
    span = float(np.log(sizes[-1] / sizes[0]))
    for size in sizes[::-1]:
        if not ticks or np.log(ticks[-1][0] / size) > 0.13 * span:
            ticks.append((float(size), f"{size:,}"))
    points = Points(sizes, curve.error, size=6.0)
    marks = [Band(sizes, curve.ends), Line(sizes, curve.error), points]
    title = f"{measure} against {across}"
    chart = Chart(title, across, measure, marks, x_log=True, x_ticks=ticks)
    return html.figure(chart, caption, height=270, alone=True)


ROWS = 2000
PROTOTYPES = 1000
PARTS = 5  # steps of colour for a target


def prototypes(subject: Subject) -> html.Section | None:
    """Return the section of the prototypes; None where all rows are, or none."""
    basis_rows = basis(subject.model)
    if basis_rows is None or not subject.has_features or basis_rows[1].shape[1] < 2:
        return None
    title, Z, support = basis_rows
    if len(Z) >= 0.9 * subject.train.n_rows and title == "support vectors":
        return None  # every row is a support vector: there is nothing to see
    rows = subject.train.subsample(ROWS)
    X = rows.model_features(subject.estimator)
    if X.shape[1] != Z.shape[1]:
        return None
    names = feature_names_of(subject.estimator, X.shape[1])
    if preparation_of(subject.estimator) is not None:
        names = tuple(f"{name} (scaled)" for name in names)
    points, places, axes = project(X, Z, names)
    labels, classes = _groups(subject, rows.y)
    groups = _prototype_groups(subject, support)
    drawn = np.arange(len(places))
    if len(places) > PROTOTYPES:
        drawn = np.random.default_rng(0).choice(len(places), PROTOTYPES, replace=False)
    display = PrototypesDisplay(
        points=points,
        prototypes=places[drawn],
        names=axes,
        labels=labels,
        prototype_labels=groups[drawn],
        classes=classes,
        ordered=not subject.classification,
    )
    small = "" if rows.complete else f" ({len(rows):,} of them are drawn)"
    text = (
        f"The model compares new rows with {len(Z):,} {title} taken from the "
        f"{subject.train.n_rows:,} training rows{small}."
    )
    plane = ", projected to the plane in which the rows vary most" if len(names) > 2 else ""
    caption = f"Training rows (pale) and {title} (ringed){plane}."
    body = [html.figure(display.chart(), caption, height=340, alone=True)]
    return html.Section("prototypes", f"Where the {title} lie", title.capitalize(), text, body)


def _groups(subject: Subject, target: Any) -> tuple[IntArray, Any]:
    """Return the class of every row, or the fifth that its target is in, and their names."""
    if subject.classification:
        classes = subject.classes.classes
        names = [short(name, 24) for name in classes]
        return class_positions(target, classes, len(target)), names
    y, every = as_columns(target)[:, 0], as_columns(subject.train.y)[:, 0]
    edges = np.unique(np.quantile(every, np.linspace(0, 1, PARTS + 1)))
    if len(edges) < 3:
        return np.zeros(len(y), dtype=np.intp), ["rows"]
    names = [f"{number(a)} to {number(b)}" for a, b in pairwise(edges)]
    names[0] = f"{short(subject.numbers.names[0], 24)}: {names[0]}"
    group = np.searchsorted(edges, y, side="right") - 1
    return np.clip(group, 0, len(edges) - 2).astype(np.intp), names


def _prototype_groups(subject: Subject, support: IntArray) -> IntArray:
    """Return the groups of the prototypes; -1 where their rows are not at hand."""
    train = subject.train
    where = np.minimum(np.searchsorted(train.positions, support), len(train) - 1)
    known = (support >= 0) & (train.positions[where] == support)
    return np.where(known, _groups(subject, train.y[where])[0], -1)


MEASURED = 1000  # rows that greedy models of every size are measured on
STEPS = 14


def sizes(subject: Subject) -> html.Section | None:
    """Return the section of the size; None where errors of smaller models are not known."""
    greedy = fitted_attributes(subject.model).get("paths_")
    parts = _greedy(subject) if greedy else _reduced(subject)
    return None if parts is None else html.Section("size", "How small it can get", "Size", *parts)


def _reduced(subject: Subject) -> tuple[Any, list[html.Markup]] | None:
    path, n = sparsity_path(subject.model), support_size(subject.model)
    if path is None:
        return None
    chosen, largest = path.chosen, int(path.sizes[-1])
    subject.facts["sparsity"] = {
        "sizes": path.sizes.tolist(),
        "error": path.mean.tolist(),
        "std_error": path.std_error.tolist(),
        "chosen": chosen,
    }
    text = [
        f"The model is a sum over {n:,} support vectors. Fewer make it smaller and faster. "
        f"{chosen:,} of {largest:,} are enough: the smallest number whose cross-validated error is "
        "within one standard error of the best",
        ", and this model has been reduced to it.",
    ]
    if n > chosen:
        code = html.tag("code", 'reduction="spfs"')
        text[1:] = [f" ({percent(chosen / largest)} of the size). Fit with ", code]
        text.append(" to get that model.")
    chart = SparsityDisplay(path, name="").chart()
    caption = f"{chart.title}; the dashed line is the best plus one standard error."
    return text, [html.figure(chart, caption, alone=True)]


def _greedy(subject: Subject) -> tuple[Any, list[html.Markup]] | None:
    """Measure a greedy model at every size on the rows of the report."""
    model, paths = subject.model, fitted_attributes(subject.model)["paths_"]
    longest = max(len(path.support) for path in paths)
    steps = np.unique(np.geomspace(1, max(longest, 1), STEPS).round().astype(int))
    if subject.test is None or len(steps) < 3 or model is not subject.estimator:
        return None
    sample = subject.test.subsample(MEASURED)
    inputs, error = sample.inputs(model), []
    for size in steps:
        predicted = np.asarray(model.truncate(int(size)).predict(inputs))
        if subject.classification:
            error.append(float(np.mean(predicted != sample.y)))
        else:
            residual = predicted.reshape(len(sample), -1) - as_columns(sample.y)
            error.append(float(np.sqrt(np.mean(residual**2))))
    measure = "share of wrong rows" if subject.classification else "root mean squared error"
    across = "basis functions per problem"
    marks = [Line(steps, error), Points(steps, error, size=5.0)]
    chart = Chart(f"{measure} against {across}", across, measure, marks, x_log=True)
    subject.facts["sparsity"] = {"sizes": steps.tolist(), "error": error}
    text = (
        f"The model was built one basis function at a time and stopped at {longest:,}; truncate(n) "
        "gives the smaller ones."
    )
    caption = f"{measure.capitalize()} on {len(sample):,} test rows against the size of the model."
    return text, [html.figure(chart, caption, alone=True)]
