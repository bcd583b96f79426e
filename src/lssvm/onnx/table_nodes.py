"""A prepared table as ONNX operators: from raw columns to features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.errors import InvalidInputError
from lssvm.onnx.graph import ML, Graph, ModelGraph, Value, element_type
from lssvm.preparation import DateEncoding, LevelEncoding, NumberEncoding, PreparedTable


def open_table(
    prepared: PreparedTable, dtype: Any, missing: str
) -> tuple[ModelGraph, list[Value], str]:
    """Begin a graph with a prepared table.

    Parameters
    ----------
    prepared : PreparedTable
    dtype : float64 or float32
    missing : str
        The string that stands for a missing one.

    Returns
    -------
    graph : ModelGraph
    inputs : list of Value
        One of shape (n, 1) for each used column under its own name: strings for categories; numbers
        in ``dtype`` (NaN is missing), booleans as 0 and 1, durations in days; dates in float64, as
        days since 1970 by the clock of their time zone.
    features : str
        The value (n, d).
    """
    used = [column for column in prepared.columns if column.encoding is not None]
    kinds = {"category": element_type(object), "date": element_type(np.float64)}
    inputs = [Value(c.name, kinds.get(c.kind, element_type(dtype)), (1,)) for c in used]
    graph = ModelGraph(dtype, taken=[value.name for value in inputs])
    parts = []
    for column in used:
        encoding = column.encoding
        if isinstance(encoding, LevelEncoding):
            if column.kind == "boolean":
                parts.append(_add_booleans(graph, encoding, column.name))
            else:
                parts.append(_add_levels(graph, encoding, column.name, missing))
        elif isinstance(encoding, DateEncoding):
            parts.append(_add_dates(graph, encoding, column.name))
        elif isinstance(encoding, NumberEncoding):
            parts.append(_add_numbers(graph, encoding, column.name, graph.dtype))
    return graph, inputs, parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)


def _add_numbers(graph: Graph, encoding: NumberEncoding, x: str, dtype: Any) -> str:
    def real(values: Any) -> str:
        return graph.constant(np.asarray(values, dtype=dtype))

    unknown = graph.node("IsNaN", x)
    x = graph.node("Where", unknown, real([[encoding.fill]]), x)
    if len(encoding.grid):
        x = _add_interpolation(graph, encoding.grid, encoding.scores, x, real)
    x = graph.node("Sub", x, real([[encoding.mean]]))
    x = graph.cast(graph.node("Div", x, real([[encoding.scale]])), graph.dtype)
    if encoding.indicator <= 0:
        return x
    sides = [graph.real([[side]]) for side in (encoding.indicator, -encoding.indicator)]
    return graph.node("Concat", x, graph.node("Where", unknown, *sides), axis=1)


def _add_interpolation(
    graph: Graph, grid: NDArray[Any], scores: NDArray[Any], x: str, real: Any
) -> str:
    """Interpolate linearly, constant beyond the ends: n times the grid in memory."""
    if len(grid) == 1:
        return graph.node("Add", graph.node("Mul", x, real([[0.0]])), real(scores[None, :]))
    x = graph.node("Max", graph.node("Min", x, real([[grid[-1]]])), real([[grid[0]]]))
    if len(grid) == 2:
        interval = graph.cast(graph.node("Mul", x, real([[0.0]])), np.int64)
    else:
        passed = graph.node("GreaterOrEqual", x, real(grid[None, 1:-1]))
        interval = graph.row_sums(graph.cast(passed, np.int64))  # (n, 1)
    left, low = (graph.node("Gather", real(v[:-1]), interval) for v in (grid, scores))
    slope = graph.node("Gather", real(np.diff(scores) / np.diff(grid)), interval)
    return graph.node("Add", low, graph.node("Mul", slope, graph.node("Sub", x, left)))


def _add_levels(graph: Graph, encoding: LevelEncoding, name: str, missing: str) -> str:
    if missing in encoding.levels:
        raise InvalidInputError(
            f"Column {name!r} has the string {missing!r} among its categories, which is to stand "
            "for a missing one: choose another string with missing=."
        )
    n_levels = len(encoding.levels)
    place = graph.node(
        "LabelEncoder",
        name,
        domain=ML,
        keys_strings=[*encoding.levels, missing],
        values_int64s=[*range(n_levels), n_levels + 1],
        default_int64=n_levels,
    )
    return _look_up(graph, [encoding.values, encoding.unseen, encoding.missing], place)


def _add_booleans(graph: Graph, encoding: LevelEncoding, name: str) -> str:
    known = graph.node("Where", graph.node("IsNaN", name), graph.real([[2.0]]), name)
    place = graph.cast(known, np.int64)
    return _look_up(graph, [encoding.values, encoding.missing], place)


def _look_up(graph: Graph, rows: list[NDArray[Any]], place: str) -> str:
    flat = graph.node("Reshape", place, graph.integers([-1]))
    return graph.node("Gather", graph.real(np.vstack(rows)), flat, axis=0)


def _add_dates(graph: Graph, encoding: DateEncoding, days: str) -> str:
    parts = [_add_numbers(graph, encoding.position, days, np.float64)]
    unknown = graph.node("IsNaN", days)
    zero = graph.constant(np.zeros((1, 1)))
    days = graph.node("Where", unknown, zero, days)
    phases = {"year": _year_phase, "week": _week_phase, "day": _day_phase}
    for cycle in encoding.cycles:
        turn = graph.constant(np.array([[2.0 * np.pi]]))
        angle = graph.cast(graph.node("Mul", phases[cycle](graph, days), turn), graph.dtype)
        for wave in ("Sin", "Cos"):
            value = graph.node(wave, angle)
            parts.append(graph.node("Where", unknown, graph.real([[0.0]]), value))
    return graph.node("Concat", *parts, axis=1)


def _whole(graph: Graph, value: str, divisor: float) -> str:
    """Return the whole number of times that ``divisor`` goes into a value."""
    share = graph.node("Div", value, graph.constant(np.array([[divisor]])))
    return graph.node("Floor", share)


def _plus(graph: Graph, value: str, number: float) -> str:
    return graph.node("Add", value, graph.constant(np.array([[number]])))


def _times(graph: Graph, value: str, number: float) -> str:
    return graph.node("Mul", value, graph.constant(np.array([[number]])))


def _day_phase(graph: Graph, days: str) -> str:
    return graph.node("Sub", days, graph.node("Floor", days))


def _week_phase(graph: Graph, days: str) -> str:
    monday = _plus(graph, graph.node("Floor", days), 3.0)  # the 1st of January 1970 is a Thursday
    rest = graph.node("Sub", monday, _times(graph, _whole(graph, monday, 7.0), 7.0))
    return _times(graph, rest, 1.0 / 7.0)


def _year_phase(graph: Graph, days: str) -> str:
    """Return the day of the year over the days of that year, in the Gregorian calendar."""
    day = graph.node("Floor", days)
    year = _plus(graph, _whole(graph, day, 365.2425), 1970.0)  # at most one year off
    early = graph.node("Less", day, _year_start(graph, year))
    year = graph.node("Where", early, _plus(graph, year, -1.0), year)
    late = graph.node("GreaterOrEqual", day, _year_start(graph, _plus(graph, year, 1.0)))
    year = graph.node("Where", late, _plus(graph, year, 1.0), year)
    begin = _year_start(graph, year)
    length = graph.node("Sub", _year_start(graph, _plus(graph, year, 1.0)), begin)
    return graph.node("Div", graph.node("Sub", day, begin), length)


def _year_start(graph: Graph, year: str) -> str:
    """Return the days from 1970 to the 1st of January of a year."""
    start = _times(graph, _plus(graph, year, -1970.0), 365.0)
    # One more for each leap year in between: 4 divides it, and not 100, or 400.
    for first, every, sign in (
        (1969.0, 4.0, "Add"),
        (1901.0, 100.0, "Sub"),
        (1601.0, 400.0, "Add"),
    ):
        start = graph.node(sign, start, _whole(graph, _plus(graph, year, -first), every))
    return start
