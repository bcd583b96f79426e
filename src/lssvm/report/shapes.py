"""The section of shapes: what the leading columns do to the answers, one by one and in pairs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.data.raw import TextColumn
from lssvm.plots.fitted import Predictor, class_scores, fitted_model
from lssvm.report.charts import Chart, figure, pictures
from lssvm.report.formats import count, number, percent, short
from lssvm.report.markup import Markup, Section, why
from lssvm.report.measures import nameless_rows
from lssvm.report.model_facts import classifies, prediction_work, slow_to_calibrate
from lssvm.report.sample import SampledRows
from lssvm.report.subject import Subject

WORK = 6e9  # operations that the pictures may take
ROWS = (20, 100)  # rows that the answers are averaged over
COLUMNS = 4  # columns that are drawn
POINTS = 20  # values of a column
CATEGORIES = 8
CELLS = 14  # values of each column of a pair
LINES = 6  # classes or outputs with a line of their own
STEPS = 12  # shades of a pair
NARROW = 6  # letters of a category under a picture


@dataclass(frozen=True, eq=False)
class Grid:
    """Values of a column that are tried.

    Attributes
    ----------
    name : str
    values : list of float or str
    places : array of shape (g,)
        Where they stand on an axis: the values themselves, or 0, 1, 2 and so on.
    text : bool
    """

    name: str
    values: list[Any]
    places: FloatArray
    text: bool

    @classmethod
    def of(cls, rows: SampledRows, name: str, most: int) -> Grid | None:
        """Return values between the 2 % and 98 % quantiles, or the most frequent categories.

        None where a column has fewer than two values.
        """
        column = rows.columns()[name]
        if isinstance(column, TextColumn):
            often = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))
            order = np.argsort(-often, kind="stable")[: min(most, CATEGORIES)]
            levels = [column.levels[i] for i in order if often[i]]
            return cls(name, levels, np.arange(len(levels)) + 0.0, True) if levels[1:] else None
        known = column[np.isfinite(column)]
        different = np.unique(known)
        if len(different) < 2:
            return None
        values = different
        if len(different) > most:
            values = np.linspace(np.quantile(known, 0.02), np.quantile(known, 0.98), most)
            values = (
                values if values[-1] > values[0] else np.linspace(different[0], different[-1], most)
            )
        return cls(name, values.tolist(), values, False)

    @property
    def names(self) -> list[tuple[float, str]] | None:
        """Names of the places on an axis, where they are categories."""
        if not self.text:
            return None
        return [
            (i, short(value, NARROW)) for i, value in zip(self.places, self.values, strict=True)
        ]


def answers(estimator: Predictor, given: Any) -> tuple[FloatArray, str]:
    """Return what a model says about rows, (n, q), and what that is.

    Returns
    -------
    values : array of shape (n, q)
        A column for every class (of two classes too) or every output.
    what : {"probability", "score", "value"}
    """
    with nameless_rows():
        if not classifies(estimator):
            values = np.asarray(estimator.predict(given), dtype=np.float64)
            return values.reshape(len(values), -1), "value"
        if hasattr(estimator, "predict_proba") and not slow_to_calibrate(fitted_model(estimator)):
            with suppress(InvalidInputError):  # nothing to calibrate on
                return np.asarray(estimator.predict_proba(given)), "probability"
        return class_scores(getattr(estimator, "decision_function")(given)), "score"  # noqa: B009


def partial_dependence(
    estimator: Predictor, rows: SampledRows, grids: list[Grid]
) -> tuple[FloatArray, str]:
    """Return the answers of rows with every combination of values put into some columns.

    Parameters
    ----------
    estimator : Predictor
    rows : SampledRows
        m rows, whose other columns stay as they are.
    grids : list of Grid

    Returns
    -------
    values : array of shape (g1, ..., m, q)
    what : str

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.report.sample import SampledRows
    >>> from lssvm.report.shapes import Grid, partial_dependence
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> model = LSSVR(100.0, gamma=0.1).fit(X, 2 * X[:, 0])
    >>> rows = SampledRows.read(model, (X, 2 * X[:, 0]))
    >>> made, what = partial_dependence(model, rows, [Grid.of(rows, "x0", 5)])
    >>> bool(np.all(np.diff(made.mean(axis=1)[:, 0]) > 0)), made.shape, what
    (True, (5, 80, 1), 'value')
    """
    sizes, m = [len(grid.values) for grid in grids], len(rows)
    places = np.indices(sizes).reshape(len(sizes), -1)
    every = rows.take(np.tile(np.arange(m), places.shape[1]))
    values = {
        grid.name: np.repeat(np.array(grid.values, dtype=object)[at], m).tolist()
        for grid, at in zip(grids, places, strict=True)
    }
    found, what = answers(estimator, every.replaced(values).given(estimator))
    return found.reshape(*sizes, m, -1), what


def shapes(subject: Subject) -> Section | None:
    """Return the section of partial dependence; None where no column can be varied."""
    if not subject.has_features:
        return None
    leading = list(subject.facts.get("importance") or subject.train.schema.names)[:COLUMNS]
    evaluations = COLUMNS * POINTS + 2 * CELLS * CELLS // 3
    work = prediction_work(subject.model, len(subject.train.schema.names)) * evaluations
    rows = subject.train.some(int(np.clip(WORK / work, *ROWS)), seed=2)
    grids = [grid for name in leading if (grid := Grid.of(subject.train, name, POINTS))]
    if not grids:
        return None
    facts: dict[str, Any] = {}
    drawn = [_one(subject, rows, grid, facts) for grid in grids]
    coarse = [Grid.of(subject.train, grid.name, CELLS) for grid in grids[:3]]
    first, *rest = [grid for grid in coarse if grid is not None]
    drawn += [_two(subject, rows, [first, other]) for other in rest]
    subject.facts["partial_dependence"] = facts
    words = (
        f"One column at a time is set to each of its values in {count(len(rows))} training rows, "
        "and the answers are averaged: the line. The band holds the middle half of the rows. A "
        "flat line is a column that does nothing by itself; a wide band, one that works together "
        "with others. Combinations that never occur are tried too."
    )
    body = [why(words), pictures(*drawn)]
    return Section("shapes", "What the leading columns do", "Shapes", body)


def _lines(subject: Subject, values: FloatArray) -> list[int]:
    """Return the classes or outputs that are drawn: the second of two, else those that vary."""
    q = values.shape[-1]
    if subject.classification and q == 2:
        return [1]
    moves = np.ptp(values.mean(axis=-2).reshape(-1, q), axis=0)
    return sorted(np.argsort(-moves, kind="stable")[:LINES].tolist())


def _named(subject: Subject, j: int) -> str:
    names = subject.classes.classes if subject.classification else subject.numbers.names
    return short(names[j], 24)


def _said(subject: Subject, what: str, lines: list[int]) -> str:
    if what == "value":
        one = len(subject.numbers.names) == 1
        return short(subject.target, 30) if one else "predicted"
    return f"{what} of “{_named(subject, lines[0])}”" if len(lines) == 1 else what


def _one(subject: Subject, rows: SampledRows, grid: Grid, facts: dict[str, Any]) -> Markup:
    values, what = partial_dependence(subject.estimator, rows, [grid])  # (g, m, q)
    lines = _lines(subject, values)
    mean, (low, high) = values.mean(axis=1), np.quantile(values, [0.25, 0.75], axis=1)
    facts[grid.name] = {"values": grid.values, "mean": mean[:, lines].tolist()}
    name, said = short(grid.name, 40), _said(subject, what, lines)
    drawn = np.concatenate([mean[:, lines], low[:, lines], high[:, lines]])
    title = f"{said} against {name}"
    limits = (-0.02, 1.02) if what == "probability" else None
    chart = Chart(title, grid.places, drawn, name, said, x_names=grid.names, y_limits=limits)
    keys = []
    for j in lines:
        colour = f"s{j % 8}" if subject.classification or len(lines) > 1 else "sa"
        if grid.text:
            for x, a, b in zip(grid.places, low[:, j], high[:, j], strict=True):
                chart.line([x, x], [a, b], colour, width=5.0, opacity=0.25)
            chart.dots(grid.places, mean[:, j], colour, size=8.0)
        else:
            if len(lines) <= 2:
                chart.band(grid.places, low[:, j], high[:, j], colour)
            chart.line(grid.places, mean[:, j], colour)
        keys.append((f"{colour} {'dot' if grid.text else 'line'}", _named(subject, j)))
    caption = f"{said[:1].upper()}{said[1:]} as “{name}” varies, all else as it is."
    if grid.text and any(len(str(value)) > NARROW for value in grid.values):
        caption += f" From left: {', '.join(short(value, 20) for value in grid.values)}."
    return figure(chart.svg(), caption, keys if len(lines) > 1 else ())


def _two(subject: Subject, rows: SampledRows, pair: list[Grid]) -> Markup:
    some = rows.some(max(ROWS[0], len(rows) // 3), seed=3)
    values, what = partial_dependence(subject.estimator, some, pair)
    j = _lines(subject, values.reshape(-1, *values.shape[2:]))[0]
    mean = values.mean(axis=2)[..., j].T  # rows of the picture are the second column
    x, y = pair
    said = _said(subject, what, [j])
    names = [short(grid.name, 40) for grid in pair]
    title = f"{said} over {names[0]} and {names[1]}"
    edges = [_edges(grid.places) for grid in pair]
    ends = [(float(e[0]), float(e[-1])) for e in edges]
    axes: dict[str, Any] = {"x_limits": ends[0], "y_limits": ends[1]}
    axes |= {"x_names": x.names, "y_names": y.names}
    chart = Chart(title, x.places, y.places, names[0], names[1], **axes)
    low, high = float(mean.min()), float(mean.max())
    levels = np.floor(STEPS * (mean - low) / ((high - low) or 1.0)).clip(0, STEPS - 1)
    colour = f"s{j % 8}" if subject.classification else "sa"
    chart.cells(edges[0], edges[1], levels.astype(np.intp), colour)
    say = percent if what == "probability" else number
    caption = (
        f"{said[:1].upper()}{said[1:]} over “{names[0]}” and “{names[1]}”: from {say(low)} (pale) "
        f"to {say(high)} (strong)."
    )
    return figure(chart.svg(), caption)


def _edges(places: FloatArray) -> FloatArray:
    """Return the ends of cells around places."""
    middle = (places[1:] + places[:-1]) / 2
    first, last = 2 * places[0] - middle[0], 2 * places[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])
