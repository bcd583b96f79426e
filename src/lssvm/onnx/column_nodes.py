"""From raw columns to features, as ONNX operators."""

from __future__ import annotations

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm.data import Preparation
from lssvm.onnx.graph import ML, Graph, Tensor, Value, element_type


def column_inputs(ready: Preparation, dtype: np.dtype[np.floating]) -> list[Value]:
    """Return one input for each raw column, under its own name."""
    kinds = {"number": element_type(dtype), "text": element_type(object)}
    names = [name or f"column_{j}" for j, name in enumerate(ready.schema.names)]
    return [Value(n, kinds[k], (1,)) for n, k in zip(names, ready.schema.kinds, strict=True)]


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
    parts: list[Tensor] = []
    numbers: list[Tensor] = []  # columns of numbers that follow one another
    seen = 0  # of the columns of numbers
    categories = iter(ready.categories)

    def finish() -> None:
        nonlocal numbers, seen
        if numbers:
            which = slice(seen, seen + len(numbers))
            parts.append(_add_numbers(ready, graph.concat(numbers), which))
            numbers, seen = [], which.stop

    for value, name, kind in zip(inputs, ready.schema.names, ready.schema.kinds, strict=True):
        column = graph.tensor(value.name)
        if kind == "number":
            numbers.append(column)
            continue
        finish()
        if levels := next(categories):
            parts.append(_add_text(name, column, levels, missing))
    finish()
    return graph.concat(parts)


def _add_numbers(ready: Preparation, x: Tensor, which: slice) -> Tensor:
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
