"""From raw columns to features, as ONNX operators."""

from __future__ import annotations

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm.data import Preparation
from lssvm.onnx.graph import ML, Graph, Value, element_type


def column_inputs(ready: Preparation, dtype: np.dtype[np.floating]) -> list[Value]:
    """Return one input for each raw column, under its own name."""
    kinds = {"number": element_type(dtype), "text": element_type(object)}
    names = [name or f"column_{j}" for j, name in enumerate(ready.schema.names)]
    return [Value(n, kinds[k], (1,)) for n, k in zip(names, ready.schema.kinds, strict=True)]


def add_preparation(graph: Graph, ready: Preparation, inputs: list[Value], missing: str) -> str:
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
    parts: list[str] = []
    numbers: list[str] = []  # columns of numbers that follow one another
    seen = 0  # of the columns of numbers
    categories = iter(ready.categories)

    def finish() -> None:
        nonlocal numbers, seen
        if numbers:
            parts.append(_add_numbers(graph, ready, numbers, slice(seen, seen + len(numbers))))
            numbers, seen = [], seen + len(numbers)

    for value, name, kind in zip(inputs, ready.schema.names, ready.schema.kinds, strict=True):
        if kind == "number":
            numbers.append(value.name)
            continue
        finish()
        levels = next(categories)
        if levels:
            parts.append(_add_text(graph, name, value.name, levels, missing))
    finish()
    return parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)


def _add_numbers(graph: Graph, ready: Preparation, names: list[str], which: slice) -> str:
    x = names[0] if len(names) == 1 else graph.node("Concat", *names, axis=1)
    if ready.fill is not None:
        fill = graph.real(ready.fill[None, which])
        x = graph.node("Where", graph.node("IsNaN", x), fill, x)
    mean, scale = ready.mean[which], ready.scale[which]
    if np.any(mean != 0.0):
        x = graph.node("Sub", x, graph.real(mean[None, :]))
    if np.any(scale != 1.0):
        x = graph.node("Div", x, graph.real(scale[None, :]))
    return x


def _add_text(
    graph: Graph, name: str, value: str, levels: tuple[str | None, ...], missing: str
) -> str:
    texts = [missing if level is None else level for level in levels]
    if len(set(texts)) < len(texts):
        raise InvalidInputError(
            f"Column {name!r} has missing values and the string {missing!r} among its categories, "
            "but strings of ONNX cannot be missing: choose another string for a missing value "
            "with missing=."
        )
    hot = graph.node("OneHotEncoder", value, domain=ML, cats_strings=texts, zeros=1)
    hot = graph.node("Reshape", hot, graph.integers([-1, len(texts)]))
    return graph.cast(hot, graph.dtype)
