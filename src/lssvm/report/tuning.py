"""The sections of the search: configurations, tuning, learning curve, prototypes and size."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.plots import TuningSurfaceDisplay
from lssvm.plots.base import class_positions, fitted_attributes
from lssvm.plots.tuning import KEYS, as_shown
from lssvm.reductions import SparsityPath
from lssvm.report.charts import N_COLOURS, SHAPES, Chart, alone, embedded
from lssvm.report.markup import (
    UNKNOWN,
    Markup,
    Section,
    count,
    duration,
    number,
    percent,
    short,
    table,
    tag,
    why,
)
from lssvm.report.measures import as_columns
from lssvm.report.refits import LearningCurve, learning_curve
from lssvm.report.subject import (
    SearchFacts,
    Subject,
    basis,
    inner_names,
    is_table,
    parameters_of,
    preparation_of,
    search_facts,
    sparsity_path,
    support_size,
    table_record,
)

SMALL = 0.1  # part of the loss that a gain has to be below to be none


def tuning(subject: Subject) -> Section | None:
    """Return the section of the tuning; None where nothing was tuned."""
    subject.facts["parameters"] = {
        name: value if isinstance(value, int) else np.asarray(value, dtype=float).tolist()
        for name, value in parameters_of(subject.model).items()
        if name != "solver"
    }
    search = search_facts(subject.model)
    if search is None:
        return None
    if search.interrupted:
        subject.notes.append("Tuning was interrupted; the best parameters so far were used.")
    results = search.results
    if isinstance(results, list):
        words = (
            f"Each of the {len(results)} binary problems was tuned separately, by its own C and "
        )
        return Section("tuning", "How it was tuned", "Tuning", [why(f"{words}gamma.")])
    body: list[Any] = [why(_words(subject, search))]
    if set(KEYS) <= set(results):
        display = TuningSurfaceDisplay(results)
        _edge_notes(subject, display)
        tuned = [np.unique(v[np.isfinite(v)]).size > 1 for v in (display.C, display.gamma)]
        if all(tuned) and _spans(display):
            body.append(surface(display))
        elif any(tuned):
            name, values = ("C", display.C) if tuned[0] else ("gamma", display.gamma)
            shown = values, display.scores, display.best_index, display.spread
            body.append(_curve(name, "Cross-validated", *shown))
    else:
        C, scores = (np.asarray(results.get(k, ())) for k in ("param_C", "mean_test_score"))
        if len(C) > 1:
            body.append(_curve("C", "Leave-one-out", C, scores, int(np.argmax(scores)), None))
    body.append(_sizes(subject))
    return Section("tuning", "How it was tuned", "Tuning", body)


def configurations(subject: Subject) -> Section | None:
    """Return the section of the configurations of a model for tables; None for other models."""
    tried, record = (
        fitted_attributes(subject.model).get("configurations_"),
        table_record(subject.model),
    )
    if tried is None or record is None:
        return None
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
    used = len(record.local_members)
    words = (
        f"{count(record.n_tried)} configurations (a kernel on one kind of inputs) were tried, and "
        f"{count(used)} {'is' if used == 1 else 'are'} in the stack, by their weights. The leaves "
        f"of the model hold at most {count(subject.model.leaf_size_)} rows each. "  # type: ignore[attr-defined]
        + ("Prototypes are another model of all rows. " if "prototypes" in tried["stage"] else "")
        + ("Metrics" if any(tried["rounds"]) else "No metrics")
        + " were learned, decided by the error on held-out rows."
    )
    caption = "Configurations, with the explained variance of held-out rows."
    head = ["Configuration", "Weight", "Explained", "Metric", "Time"]
    body = [why(words), table(caption, head, rows)]
    return Section("configurations", "What was tried", "Configurations", body)


def _words(subject: Subject, search: SearchFacts) -> str:
    settings, score = subject.model.get_params(deep=False), search.best_score
    words = (
        "C sets how closely the model follows the training rows, gamma how far one row reaches. "
        f"{count(search.evaluations)} settings were tried"
    )
    if search.seconds > 0:
        words += f" in {duration(search.seconds)}"
    cv = settings.get("cv")
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        words += f", each by {cv}-fold cross-validation on the training rows alone"
    words += ". "
    if settings.get("scoring") is not None or not np.isfinite(score):
        return words
    if subject.classification:
        right = 1.0 + score if score <= 0.0 else score
        return f"{words}The chosen one is right for {percent(right)} of the held-out rows."
    loss, what = -score, "loss"
    if settings.get("loss", "squared") == "squared" and loss >= 0:
        loss, what = float(np.sqrt(loss)), "root mean squared error"
    return f"{words}The {what} of the chosen one on held-out rows is {number(loss)}."


def _spans(display: TuningSurfaceDisplay) -> bool:
    logs = np.log10(np.column_stack([display.C, display.gamma]))
    return bool(np.linalg.matrix_rank(logs - logs[0], tol=1e-6) == 2)


def surface(display: TuningSurfaceDisplay) -> Markup:
    """Return the picture that `lssvm.plots` draws of a search: a surface, or a curve."""
    values, name = as_shown(display.scores)
    best = display.best_index
    chosen = f"C = {number(display.C[best])}, gamma = {number(display.gamma[best])}"
    caption = (
        f"Cross-validated {name} over C and gamma, from {number(values.min())} to "
        f"{number(values.max())}. Chosen: {chosen}."
    )
    return embedded(display, caption)


def _curve(
    name: str, how: str, x: FloatArray, scores: FloatArray, best: int, spread: FloatArray | None
) -> Markup:
    values, what = as_shown(scores)
    title = f"{how} {what} against {name}"
    order = np.argsort(x)
    chart = Chart(title, x, values, name, what, x_log=True, height=270)
    legend = [("sa line", "mean over folds"), ("sb star", "chosen")]
    if spread is not None and np.isfinite(spread).any():
        known = order[np.isfinite(spread[order])]
        chart.band(x[known], (values - spread)[known], (values + spread)[known])
        legend.insert(1, ("sa area", "one deviation"))
    chart.line(x[order], values[order]).dots(x, values, size=4.0)
    chart.star(float(x[best]), float(values[best]), "chosen")
    return alone(chart, f"{title}. Chosen: {name} = {number(x[best])}.", legend)


def _edge_notes(subject: Subject, display: TuningSurfaceDisplay) -> None:
    for name, values in (("C", display.C), ("gamma", display.gamma)):
        known, best = values[np.isfinite(values)], values[display.best_index]
        if np.unique(known).size < 3 or best not in (known.max(), known.min()):
            continue
        end = "largest" if best >= known.max() else "smallest"
        subject.notes.append(
            f"The chosen {name} = {number(best)} is the {end} that was tried: the best one may lie "
            "further out."
        )


def _sizes(subject: Subject) -> Markup | None:
    """Return the table of numbers of prototypes, where these were tuned."""
    found = fitted_attributes(subject.model).get("size_results_")
    if not found:
        return None
    values, what = as_shown(np.asarray(found["mean_test_score"]))
    lines = zip(found["n_prototypes"], values, found["std_test_score"], strict=True)
    rows = [[count(m), number(v), number(d)] for m, v, d in lines]
    head = ["Prototypes", f"Cross-validated {what}", "Deviation over folds"]
    chosen = count(parameters_of(subject.model)["n_prototypes"])
    return table(f"How many prototypes? {chosen} were chosen.", head, rows)


def learning(subject: Subject) -> Section | None:
    """Return the section of the learning curve; None where there are too few rows."""
    if not subject.has_features:
        return None
    curve = learning_curve(subject.estimator, subject.train, subject.test)
    if curve is None:
        return None
    subject.facts["learning_curve"] = {
        "rows": curve.sizes.tolist(),
        "error": curve.error.tolist(),
        "std_error": curve.spread.tolist(),
    }
    what = "share of wrong rows" if subject.classification else "error (deviations of the target)"
    low = np.maximum(curve.error - 1.96 * curve.spread, 0.0)
    high = curve.error + 1.96 * curve.spread
    axes = (f"{what} against training rows", curve.sizes, [*low, *high], "training rows", what)
    chart = Chart(*axes, x_log=True, height=270, x_names=_ticks(curve))
    chart.band(curve.sizes, low, high).line(curve.sizes, curve.error)
    chart.dots(curve.sizes, curve.error, size=6.0)
    how = "with the same parameters"
    if is_table(subject.model):
        how = "each with only the configuration of largest weight"
    caption = (
        f"Copies of the model, {how}, fitted to parts of the training rows and "
        f"measured on {count(curve.n_test)} {'held-out' if curve.held_out else 'test'} rows; the "
        f"band is a 95 % interval.{' The last point is this model.' if curve.ends_in_model else ''}"
    )
    body = [why(verdict(curve)), alone(chart, caption)]
    return Section("learning", "Would more rows help?", "Learning", body)


def verdict(curve: LearningCurve) -> str:
    """Say what the end of a learning curve means.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.tuning import verdict
    >>> from lssvm.report.refits import LearningCurve
    >>> sizes, error = np.array([10, 20, 40, 80, 160]), np.array([0.5, 0.4, 0.3, 0.2, 0.1])
    >>> verdict(LearningCurve(sizes, error, 0.01 * error, 0.2, 0.02, 0.1, 100, False))
    'The error was still falling from 40 to 160 rows: more rows would probably help.'
    """
    step = f"from {count(curve.sizes[-3])} to {count(curve.sizes[-1])} rows"
    low, high = (curve.gain + side * 2.0 * curve.gain_spread for side in (-1, 1))
    if low > 0:
        return f"The error was still falling {step}: more rows would probably help."
    if high < 0:
        return (
            f"The error rose {step}: the parameters suit fewer rows, or the later rows differ from "
            "the earlier ones. Tune again before looking for more rows."
        )
    if high <= SMALL * curve.loss:
        return f"The error no longer fell {step}: more rows of the same kind would hardly help."
    return (
        f"The error changed {step} by less than its uncertainty: these rows do not show whether "
        "more would help."
    )


def _ticks(curve: LearningCurve) -> list[tuple[float, str]]:
    """Return the sizes as ticks, without those whose names would overlap."""
    ticks: list[tuple[float, str]] = []
    span = float(np.log(curve.sizes[-1] / curve.sizes[0]))
    for size in curve.sizes[::-1]:
        if not ticks or np.log(ticks[-1][0] / size) > 0.13 * span:
            ticks.append((float(size), count(size)))
    return ticks


ROWS = 2000
PROTOTYPES = 1000
PARTS = 5  # steps of colour for a target
MANY = 8  # classes from which on their names stand in the picture


def prototypes(subject: Subject) -> Section | None:
    """Return the section of the prototypes; None where all rows are, or none."""
    kept = basis(subject.model)
    if kept is None or not subject.has_features or kept[1].shape[1] < 2:
        return None
    what, Z, support = kept
    if len(Z) >= 0.9 * subject.train.n_rows and what == "support vectors":
        return None  # every row is a support vector: there is nothing to see
    rows = subject.train.some(ROWS)
    X = rows.inner(subject.estimator)
    if X.shape[1] != Z.shape[1]:
        return None
    points, places, names = project(X, Z, _names(subject, X.shape[1]))
    groups, keys = _groups(subject, rows.y)
    own = _own_groups(subject, support)
    both = np.concatenate([points, places])
    title = f"Rows and {what} in the plane"
    chart = Chart(title, both[:, 0], both[:, 1], names[0], names[1], height=340)
    styles = [tuple(key.split(" ")) for key, _ in keys]  # colour and shape
    for g, (colour, shape) in enumerate(styles):
        x, y = points[groups == g].T
        chart.dots(x, y, colour, size=4.0, shape=shape, opacity=0.3)
    if len(places) > PROTOTYPES:
        keep = np.random.default_rng(0).choice(len(places), PROTOTYPES, replace=False)
        places, own = places[keep], None if own is None else own[keep]
    size = 6.0 if len(places) <= 300 else 4.5
    if own is None:
        own, styles = np.zeros(len(places), dtype=np.intp), [("sp", "dot")]
    for g, (colour, shape) in enumerate(styles):
        x, y = places[own == g].T
        chart.dots(x, y, colour, size=size, shape=shape, outlined=True)
    if subject.classification and len(keys) > MANY:
        for g in np.unique(groups):
            x, y = np.median(points[groups == g], axis=0)
            chart.text(float(x), float(y), short(keys[g][1], 8))
    small = "" if rows.complete else f" ({count(len(rows))} of them are drawn)"
    words = (
        f"The model compares new rows with {count(len(Z))} {what} taken from the "
        f"{count(subject.train.n_rows)} training rows{small}."
    )
    legend = [*keys, ("sp ring", what)]
    caption = f"Training rows (pale) and {what} (ringed)" + (
        ", projected to the plane in which the rows vary most." if names[2] else "."
    )
    body = [why(words), alone(chart, caption, legend)]
    return Section("prototypes", f"Where the {what} lie", what.capitalize(), body)


def project(
    X: FloatArray, Z: FloatArray, names: tuple[str, ...]
) -> tuple[FloatArray, FloatArray, tuple[str, str, bool]]:
    """Return rows and prototypes in the plane of the first two principal components.

    Parameters
    ----------
    X : array of shape (n, d)
    Z : array of shape (m, d)
    names : tuple of d str

    Returns
    -------
    points : array of shape (n, 2)
    places : array of shape (m, 2)
    axes : (str, str, bool)
        Names of the axes, and whether they are components rather than the two features.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.tuning import project
    >>> project(np.eye(2), np.zeros((1, 2)), ("a", "b"))[2]
    ('a', 'b', False)
    """
    if X.shape[1] == 2:
        return X, Z, (names[0], names[1], False)
    components = PCA(2, svd_solver="full").fit(X)
    x, y = (
        f"component {i + 1} ({percent(float(share), 0)} of variance)"
        for i, share in enumerate(components.explained_variance_ratio_)
    )
    return components.transform(X), components.transform(Z), (x, y, True)


def _names(subject: Subject, d: int) -> tuple[str, ...]:
    names = inner_names(subject.estimator, d)
    scaled = preparation_of(subject.estimator) is not None
    return tuple(f"{name} (scaled)" for name in names) if scaled else names


def _groups(subject: Subject, target: Any) -> tuple[IntArray, list[tuple[str, str]]]:
    """Return the group of every row, and style (colour and shape) and name of the groups."""
    if subject.classification:
        classes = subject.classes.classes
        keys = [
            (f"s{c % N_COLOURS} {SHAPES[(c // N_COLOURS) % len(SHAPES)]}", short(name, 24))
            for c, name in enumerate(classes)
        ]
        return class_positions(target, classes, len(target)), keys
    y, every = as_columns(target)[:, 0], as_columns(subject.train.y)[:, 0]
    edges = np.unique(np.quantile(every, np.linspace(0, 1, PARTS + 1)))
    if len(edges) < 3:
        return np.zeros(len(y), dtype=np.intp), [("sa dot", "rows")]
    which = np.clip(np.searchsorted(edges, y, side="right") - 1, 0, len(edges) - 2)
    keys = [
        (f"q{round(g * (PARTS - 1) / max(len(edges) - 2, 1))} dot", f"{number(a)} to {number(b)}")
        for g, (a, b) in enumerate(pairwise(edges))
    ]
    keys[0] = (keys[0][0], f"{short(subject.numbers.names[0], 24)}: {keys[0][1]}")
    return which.astype(np.intp), keys


def _own_groups(subject: Subject, support: IntArray) -> IntArray | None:
    """Return the groups of the prototypes, where their rows are at hand."""
    if (support < 0).any():
        return None
    where = np.searchsorted(subject.train.positions, support)
    where = np.minimum(where, len(subject.train) - 1)
    if np.any(subject.train.positions[where] != support):
        return None
    return _groups(subject, subject.train.y[where])[0]


MEASURED = 1000  # rows that greedy models of every size are measured on
STEPS = 14


def sizes(subject: Subject) -> Section | None:
    """Return the section of the size; None where the model cannot say."""
    if fitted_attributes(subject.model).get("paths_"):
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
        f"{count(chosen)} of {count(largest)} are enough: the smallest number whose "
        "cross-validated error is within one standard error of the best",
        ", and this model has been reduced to it.",
    ]
    if n > chosen:
        code = tag("code", 'reduction="spfs"')
        words[1:] = [f" ({percent(chosen / largest)} of the size). Fit with ", code]
        words.append(" to get that model.")
    caption = (
        "Cross-validated squared error of the outputs against the number of support vectors; the "
        "dashed line is the best plus one standard error."
    )
    legend = [("sa line", "mean"), ("sa area", "one standard error")]
    legend.append(("sb star", f"{count(chosen)} support vectors"))
    return [why(*words), alone(chart, caption, legend)]


def _greedy(subject: Subject) -> list[object] | None:
    """Measure a greedy model at every size on the rows of the report."""
    model, paths = subject.model, fitted_attributes(subject.model)["paths_"]
    longest = max(len(path.support) for path in paths)
    steps = np.unique(np.geomspace(1, max(longest, 1), STEPS).round().astype(int))
    if subject.test is None or len(steps) < 3 or model is not subject.estimator:
        return None
    some = subject.test.some(MEASURED)
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
