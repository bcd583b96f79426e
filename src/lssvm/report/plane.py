"""The section of the prototypes: where they lie among the rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.plots.fitted import class_positions
from lssvm.report.charts import N_COLOURS, SHAPES, Chart, figure
from lssvm.report.markup import join, tag
from lssvm.report.predictions import as_columns
from lssvm.report.scales import count, number, percent, short
from lssvm.report.subject import Section, Subject

ROWS = 2000
PROTOTYPES = 1000
PARTS = 5  # steps of colour for a target
MANY = 8  # classes from which on their names stand in the picture


def plane(subject: Subject) -> Section | None:
    """Return the section of the prototypes; None where all rows are, or none."""
    model = subject.model
    Z = getattr(model, "prototypes_", getattr(model, "support_vectors_", None))
    support = np.asarray(getattr(model, "support_", ()))
    if Z is None or not subject.has_features or len(support) == 0 or np.shape(Z)[1] < 2:
        return None
    Z = np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=np.float64)
    if len(Z) >= 0.9 * subject.train.n_rows and not hasattr(model, "prototypes_"):
        return None  # every row is a support vector: there is nothing to see
    rows = subject.train.some(ROWS)
    X = rows.inner(subject.estimator)
    if X.shape[1] != Z.shape[1]:
        return None
    points, places, names = project(X, Z, _names(subject, X.shape[1]))
    groups, keys = _groups(subject, rows.y)
    own = _own_groups(subject, support)
    what = "prototypes" if hasattr(model, "prototypes_") else "support vectors"
    chart = Chart(
        f"Rows and {what} in the plane",
        np.concatenate([points[:, 0], places[:, 0]]),
        np.concatenate([points[:, 1], places[:, 1]]),
        names[0],
        names[1],
        height=340,
    )
    styles = [key for key, _ in keys]
    for g, style in enumerate(styles):
        inside = groups == g
        x, y = points[inside].T
        chart.dots(x, y, _colour(style), size=4.0, shape=_shape(style), opacity=0.3)
    if len(places) > PROTOTYPES:
        keep = np.random.default_rng(0).choice(len(places), PROTOTYPES, replace=False)
        places, own = places[keep], None if own is None else own[keep]
    _draw_prototypes(chart, places, own, styles)
    if subject.classification and len(styles) > MANY:
        for g, (_, name) in enumerate(keys):
            inside = groups == g
            if inside.any():
                x, y = np.median(points[inside], axis=0)
                chart.text(float(x), float(y), short(name, 8))
    small = "" if rows.complete else f" ({count(len(rows))} of them are drawn)"
    words = (
        f"The model compares new rows with {count(len(Z))} {what} taken from the "
        f"{count(subject.train.n_rows)} training rows{small}."
    )
    legend = [*keys, ("sp ring" if own is None else "s7 ring", what)]
    caption = f"Training rows (pale) and {what} (ringed)" + (
        ", projected to the plane in which the rows vary most." if names[2] else "."
    )
    picture = tag("div", figure(chart.svg(), caption, legend), class_="alone")
    body = join([tag("p", words, class_="why"), picture])
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
    >>> from lssvm.report.plane import project
    >>> project(np.eye(2), np.zeros((1, 2)), ("a", "b"))[2]
    ('a', 'b', False)
    """
    if X.shape[1] == 2:
        return X, Z, (names[0], names[1], False)
    centre = X.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(X.T))
    basis = vectors[:, ::-1][:, :2]
    basis = basis * np.sign(basis[np.abs(basis).argmax(axis=0), [0, 1]])
    share = np.maximum(values[::-1], 0.0) / max(float(values.sum()), 1e-300)
    said = [f"component {i + 1} ({percent(float(share[i]), 0)} of variance)" for i in range(2)]
    return (X - centre) @ basis, (Z - centre) @ basis, (said[0], said[1], True)


def _names(subject: Subject, d: int) -> tuple[str, ...]:
    if hasattr(subject.estimator, "preparation_"):
        names = subject.estimator.preparation_.feature_names
        scaled = not np.allclose(subject.estimator.preparation_.scale, 1.0)
        return tuple(f"{name} (scaled)" if scaled else name for name in names)
    names = subject.train.schema.names
    return names if len(names) == d else tuple(f"x{j}" for j in range(d))


def _groups(subject: Subject, target: Any) -> tuple[IntArray, list[tuple[str, str]]]:
    """Return the group of every row, and style and name of the groups."""
    if subject.classification:
        classes = subject.found.classes
        labels = class_positions(target, classes, len(target))
        return labels, [(_style(c), short(name, 24)) for c, name in enumerate(classes)]
    y = as_columns(target)[:, 0]
    every = as_columns(subject.train.y)[:, 0]
    edges = np.unique(np.quantile(every, np.linspace(0, 1, PARTS + 1)))
    if len(edges) < 3:
        return np.zeros(len(y), dtype=np.intp), [("s0 dot", "rows")]
    which = np.clip(np.searchsorted(edges, y, side="right") - 1, 0, len(edges) - 2)
    name = subject.found.names[0]
    keys = [
        (f"q{round(g * (PARTS - 1) / max(len(edges) - 2, 1))} dot", f"{number(a)} to {number(b)}")
        for g, (a, b) in enumerate(pairwise(edges))
    ]
    keys[0] = (keys[0][0], f"{short(name, 24)}: {keys[0][1]}")
    return which.astype(np.intp), keys


def _style(c: int) -> str:
    shape = SHAPES[(c // N_COLOURS) % len(SHAPES)]
    return f"s{c % N_COLOURS} {shape}"


def _colour(style: str) -> str:
    return style.split(" ")[0]


def _shape(style: str) -> str:
    return style.split(" ")[1]


def _own_groups(subject: Subject, support: IntArray) -> IntArray | None:
    """Return the groups of the prototypes, where their rows are at hand."""
    if (support < 0).any():
        return None
    where = np.searchsorted(subject.train.positions, support)
    where = np.minimum(where, len(subject.train) - 1)
    if np.any(subject.train.positions[where] != support):
        return None
    return _groups(subject, subject.train.y[where])[0]


def _draw_prototypes(
    chart: Chart, places: FloatArray, own: IntArray | None, styles: list[str]
) -> None:
    size = 6.0 if len(places) <= 300 else 4.5
    if own is None:
        chart.dots(places[:, 0], places[:, 1], "sp", size=size, outlined=True)
        return
    for g, style in enumerate(styles):
        inside = own == g
        if inside.any():
            x, y = places[inside].T
            chart.dots(x, y, _colour(style), size=size, shape=_shape(style), outlined=True)
