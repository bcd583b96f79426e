"""The sections of the prototypes and of the size.

Where prototypes lie among the rows, and error against the number of support vectors.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.plots.fitted import class_positions
from lssvm.reductions import SparsityPath
from lssvm.report.charts import N_COLOURS, SHAPES, Chart, alone
from lssvm.report.formats import count, number, percent, short
from lssvm.report.markup import Section, tag, why
from lssvm.report.measures import as_columns
from lssvm.report.model_facts import basis, inner_names, preparation_of, sparsity_path, support_size
from lssvm.report.subject import Subject

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
    >>> from lssvm.report.prototypes import project
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
    names, ready = inner_names(subject.estimator, d), preparation_of(subject.estimator)
    scaled = ready is not None and not np.allclose(ready.scale, 1.0)
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
