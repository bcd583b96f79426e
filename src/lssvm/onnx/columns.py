"""Raw columns as ONNX operators: from the inputs of a model to its features."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from lssvm._core.arrays import AnyArray
from lssvm._core.errors import InvalidInputError
from lssvm.data import Preparation
from lssvm.data.encodings import DateEncoding, LevelEncoding, NumberEncoding
from lssvm.data.preparation import PreparedTable
from lssvm.onnx.graph import ML, Graph, ModelGraph, Tensor, Value, element_type


def column_inputs(ready: Preparation, dtype: np.dtype[np.floating]) -> list[Value]:
    """Return one input for each raw column, under its own name."""
    kinds = {"text": element_type(object)}
    names = [name or f"column_{j}" for j, name in enumerate(ready.schema.names)]
    number = element_type(dtype)
    pairs = zip(names, ready.schema.kinds, strict=True)
    return [Value(n, kinds.get(k, number), (1,)) for n, k in pairs]


def add_preparation(graph: Graph, ready: Preparation, inputs: list[Value], missing: str) -> Tensor:
    """Add `Preparation.transform`: from the columns (n, 1) to the features (n, d).

    Parameters
    ----------
    graph : Graph
    ready : Preparation
    inputs : list of Value
        What `column_inputs` returned.
    missing : str
        The string that stands for a missing one.
    """
    features: list[Tensor] = []
    seen, categories = 0, iter(ready.categories)
    every = zip(inputs, ready.schema.names, ready.schema.kinds, strict=True)
    for text, some in groupby(every, key=lambda column: column[2] == "text"):
        columns = {name: graph.tensor(value.name) for value, name, _ in some}
        if not text:  # those that follow one another together
            which = slice(seen, seen + len(columns))
            features.append(_add_standardised(ready, graph.concat(list(columns.values())), which))
            seen = which.stop
            continue
        for name, column in columns.items():
            if levels := next(categories):
                features.append(_add_text(name, column, levels, missing))
    return graph.concat(features)


def _add_standardised(ready: Preparation, x: Tensor, which: slice) -> Tensor:
    if ready.fill is not None:
        x = x.graph.node("Where", x.is_nan(), ready.fill[None, which], x)
    mean, scale = ready.mean[which], ready.scale[which]
    if np.any(mean != 0.0):
        x = x - mean[None, :]
    return x / scale[None, :] if np.any(scale != 1.0) else x


def _add_text(name: str, value: Tensor, levels: tuple[str | None, ...], missing: str) -> Tensor:
    graph, texts = value.graph, [missing if level is None else level for level in levels]
    if len(set(texts)) < len(texts):
        raise InvalidInputError(
            f"Column {name!r} has missing values and the string {missing!r} among its categories, "
            "but strings of ONNX cannot be missing: choose another string for a missing value "
            "with missing=."
        )
    hot = graph.node("OneHotEncoder", value, domain=ML, cats_strings=texts, zeros=1)
    return hot.reshape(-1, len(texts)).cast(graph.dtype)


def open_tables(
    tables: Sequence[PreparedTable], dtype: Any, missing: str, *, together: bool = False
) -> tuple[ModelGraph, list[Value], list[Tensor]]:
    """Begin a graph with several ways to prepare the same columns.

    Parameters
    ----------
    tables : sequence of PreparedTable
    dtype : float64 or float32
    missing : str
        The string that stands for a missing one.
    together : bool, default=False
        Whether columns that all are numbers are one input ``X`` of shape (n, n_columns).

    Returns
    -------
    graph : ModelGraph
    inputs : list of Value
        One of shape (n, 1) for each used column under its own name: strings for categories; numbers
        in ``dtype`` (NaN is missing), booleans as 0 and 1, durations in days; dates in float64, as
        days since 1970 by the clock of their time zone.
    features : list of Tensor
        The value (n, d) of every table.
    """
    kinds = {"category": element_type(object), "date": element_type(np.float64)}
    used = {c.name: c for table in tables for c in table.columns if c.encoding is not None}
    together = together and all(isinstance(c.encoding, NumberEncoding) for c in used.values())
    if together:
        inputs = [Value("X", element_type(dtype), (len(tables[0].columns),))]
    else:
        inputs = [
            Value(c.name, kinds.get(c.kind, element_type(dtype)), (1,)) for c in used.values()
        ]
    graph = ModelGraph(dtype, taken=[value.name for value in inputs])
    prepared = []
    for table in tables:
        features = []
        for place, column in enumerate(table.columns):
            encoding = column.encoding
            if isinstance(encoding, LevelEncoding):
                add = _add_booleans if column.kind == "boolean" else _add_levels
                features.append(add(encoding, graph.tensor(column.name), missing))
            elif isinstance(encoding, DateEncoding):
                features.append(_add_dates(encoding, graph.tensor(column.name, np.float64)))
            elif isinstance(encoding, NumberEncoding):
                x = graph.tensor("X").columns([place]) if together else graph.tensor(column.name)
                features.append(_add_numbers(encoding, x))
        prepared.append(graph.concat(features))
    return graph, inputs, prepared


def _add_numbers(encoding: NumberEncoding, x: Tensor) -> Tensor:
    graph, unknown, side = x.graph, x.is_nan(), encoding.indicator
    x = graph.node("Where", unknown, encoding.fill, x)
    if len(encoding.grid):
        x = _add_interpolation(encoding.grid, encoding.scores, x)
    x = ((x - encoding.mean) / encoding.scale).cast(graph.dtype)
    return graph.concat([x, graph.node("Where", unknown, side, -side)]) if side > 0 else x


def _add_interpolation(grid: AnyArray, scores: AnyArray, x: Tensor) -> Tensor:
    """Interpolate linearly, constant beyond the ends: n times the grid in memory."""
    graph = x.graph
    if len(grid) == 1:
        return x * 0.0 + scores[None, :]
    x = graph.node("Max", graph.node("Min", x, grid[-1]), grid[0])
    if len(grid) == 2:
        interval = (x * 0.0).cast(np.int64)
    else:
        interval = graph.node("GreaterOrEqual", x, grid[None, 1:-1]).cast(np.int64).sums()  # (n, 1)
    slopes = np.diff(scores) / np.diff(grid)
    left, low, slope = (
        graph.node("Gather", graph.real(values, x.dtype), interval)
        for values in (grid[:-1], scores[:-1], slopes)
    )
    return low + slope * (x - left)


def _add_levels(encoding: LevelEncoding, column: Tensor, missing: str) -> Tensor:
    if missing in encoding.levels:
        raise InvalidInputError(
            f"Column {column.name!r} has the string {missing!r} among its categories, which is to "
            "stand for a missing one: choose another string with missing=."
        )
    n_levels = len(encoding.levels)
    place = column.graph.node(
        "LabelEncoder",
        column,
        domain=ML,
        keys_strings=[*encoding.levels, missing],
        values_int64s=[*range(n_levels), n_levels + 1],
        default_int64=n_levels,
    )
    return _look_up([encoding.values, encoding.unseen, encoding.missing], place)


def _add_booleans(encoding: LevelEncoding, column: Tensor, missing: str) -> Tensor:
    place = column.graph.node("Where", column.is_nan(), 2.0, column).cast(np.int64)
    return _look_up([encoding.values, encoding.missing], place)


def _look_up(rows: list[AnyArray], place: Tensor) -> Tensor:
    return place.graph.node("Gather", np.vstack(rows), place.reshape(-1), axis=0)


def _add_dates(encoding: DateEncoding, days: Tensor) -> Tensor:
    graph, unknown = days.graph, days.is_nan()
    features = [_add_numbers(encoding.position, days)]
    days = graph.node("Where", unknown, 0.0, days)
    phases = {"year": _year_phase, "week": _week_phase, "day": _day_phase}
    for cycle in encoding.cycles:
        angle = phases[cycle](days) * (2.0 * np.pi)
        # A cosine is a sine a quarter turn on: older runtimes have no Cos of float64.
        turns = (angle, angle + np.pi / 2.0)
        waves = (graph.node("Sin", turn.cast(graph.dtype)) for turn in turns)
        features += [graph.node("Where", unknown, 0.0, wave) for wave in waves]
    return graph.concat(features)


def _floor(value: Tensor) -> Tensor:
    return value.graph.node("Floor", value)


def _day_phase(days: Tensor) -> Tensor:
    return days - _floor(days)


def _week_phase(days: Tensor) -> Tensor:
    monday = _floor(days) + 3.0  # the 1st of January 1970 is a Thursday
    return (monday - _floor(monday / 7.0) * 7.0) * (1.0 / 7.0)


def _year_phase(days: Tensor) -> Tensor:
    """Return the day of the year over the days of that year, in the Gregorian calendar."""
    node, day = days.graph.node, _floor(days)
    year = _floor(day / 365.2425) + 1970.0  # at most one year off
    year = node("Where", node("Less", day, _year_start(year)), year - 1.0, year)
    late = node("GreaterOrEqual", day, _year_start(year + 1.0))
    year = node("Where", late, year + 1.0, year)
    begin = _year_start(year)
    return (day - begin) / (_year_start(year + 1.0) - begin)


def _year_start(year: Tensor) -> Tensor:
    """Return the days from 1970 to the 1st of January of a year."""
    # One more for each leap year in between: 4 divides it, and not 100, or 400.
    fourths, centuries = _floor((year - 1969.0) / 4.0), _floor((year - 1901.0) / 100.0)
    return (year - 1970.0) * 365.0 + fourths - centuries + _floor((year - 1601.0) / 400.0)
