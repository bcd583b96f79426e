"""Tables in memory (data frames, Arrow tables, mappings of columns, arrays) as raw rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from lssvm._core.arrays import AnyArray, FloatArray
from lssvm._core.blocks import slices
from lssvm._core.errors import InvalidInputError
from lssvm.data.raw import RawBlock, Reader, Schema, TextColumn, stacked


def is_frame(data: Any) -> bool:
    """Say whether ``data`` is a table with named columns."""
    return isinstance(data, Mapping) or hasattr(data, "columns") or hasattr(data, "column_names")


def frame_columns(data: Any) -> dict[str, Any]:
    """Return the columns of a table by name, as NumPy arrays or what can be turned into one."""
    if isinstance(data, Mapping):
        return {str(name): np.asarray(values) for name, values in data.items()}
    if hasattr(data, "column_names") and not hasattr(data, "dtypes"):  # an Arrow table
        return {name: data.column(name) for name in data.column_names}
    return {str(name): data[name] for name in data.columns}


def kind_of_values(values: Any) -> str:
    """Return whether a column holds numbers or text."""
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if kind is None:  # an Arrow column
        from lssvm.data.arrow import kind_of_type

        return kind_of_type("", values.type, "the table")
    return "number" if kind in "biuf" else "text"


def frame_numbers(name: str, values: Any) -> FloatArray:
    """Return the numbers of a column of a data frame."""
    if not hasattr(values, "dtype"):
        from lssvm.data.arrow import column_numbers, kind_of_type

        if kind_of_type(name, values.type, "the table") == "number":
            return column_numbers(values)
    elif hasattr(values, "to_numpy") and getattr(values.dtype, "kind", "O") in "biuf":
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"Column {name!r} has values that are no numbers ({error}), but the model expects "
            "numbers there."
        ) from error


def _text(values: Any) -> TextColumn:
    if not hasattr(values, "dtype"):
        from lssvm.data.arrow import column_text

        return column_text(values)
    if hasattr(values, "cat"):  # categories are few: no string is looked at twice
        levels = tuple(str(level) for level in values.cat.categories)
        return TextColumn(np.asarray(values.cat.codes, dtype=np.intp), levels)
    if hasattr(values, "notna"):  # what is missing may be a value of pandas that is no bool
        values = values.astype(object).where(values.notna(), None)
    return TextColumn.of(np.asarray(values, dtype=object).tolist())


def raw_block(data: Any, schema: Schema) -> RawBlock:
    """Return the columns of ``schema`` of a table in memory.

    Parameters
    ----------
    data : data frame, Arrow table, mapping from names to arrays, or array of shape (n, columns)
        An array has the columns of the schema in their order.
    schema : Schema

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.frames import raw_block
    >>> from lssvm.data.raw import Schema
    >>> schema = Schema(("age", "job"), ("number", "text"))
    >>> raw_block({"job": ["cook", "smith"], "age": [30, 40]}, schema).texts[0].levels
    ('cook', 'smith')
    """
    if is_frame(data):
        columns = frame_columns(data)
        missing = [name for name in schema.names if name not in columns]
        if missing:
            raise InvalidInputError(
                f"The table has no columns {missing}; it has {sorted(columns)}. Give the columns "
                "that the model was fitted with."
            )
    else:
        array = np.asarray(data)
        if array.ndim != 2 or array.shape[1] != len(schema.names):
            raise InvalidInputError(
                f"X has shape {array.shape}, but the model was fitted with {len(schema.names)} "
                f"columns: {list(schema.names)}. (X has "
                f"{array.shape[1] if array.ndim == 2 else 1} features.)"
            )
        columns = {name: array[:, j] for j, name in enumerate(schema.names)}
    return _block_of(columns, schema)


def _block_of(columns: Mapping[str, Any], schema: Schema) -> RawBlock:
    numbers = [frame_numbers(name, columns[name]) for name in schema.numbers]
    texts = tuple(_text(columns[name]) for name in schema.texts)
    n = len(numbers[0]) if numbers else len(texts[0].codes)
    stacked = np.column_stack(numbers) if numbers else np.empty((n, 0))
    return RawBlock(np.asarray(stacked, dtype=np.float64), texts, None, None, 0)


@dataclass(frozen=True, eq=False)
class FrameReader(Reader):
    """A table in memory.

    Parameters
    ----------
    data : data frame, Arrow table, or mapping from names to arrays
    target : tuple of str
    weight : str or None
    columns : tuple of str or None
    """

    data: Any
    target: tuple[str, ...]
    weight: str | None
    columns: tuple[str, ...] | None
    named: ClassVar[bool] = True

    @cached_property
    def _found(self) -> dict[str, Any]:
        return frame_columns(self.data)

    @cached_property
    def schema(self) -> Schema:
        """The columns of features."""
        found = self._found
        names = self.columns
        if names is None:
            names = tuple(n for n in found if n not in self.target and n != self.weight)
        wanted = [*names, *self.target, *([] if self.weight is None else [self.weight])]
        missing = [name for name in wanted if name not in found]
        if missing or not names:
            raise InvalidInputError(
                f"The table has no columns {missing}; it has {sorted(found)}. Name some of these."
            )
        return Schema(names, tuple(kind_of_values(found[name]) for name in names))

    def count(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self._found.values())))

    def blocks(self, batch_rows: int) -> Iterator[RawBlock]:
        """Yield the rows in order."""
        columns, name = self._found, self.weight
        whole = replace(
            _block_of(columns, self.schema),
            target=stacked([frame_target(name, columns[name]) for name in self.target]),
            weight=None if name is None else frame_numbers(name, columns[name]),
            places=((0, "the table", 0),),
        )
        for part in slices(len(whole), batch_rows):
            yield whole.cut(part.start, part.stop)


def frame_target(name: str, values: Any, first: int = 0) -> AnyArray:
    """Return the targets of a column of a data frame, which may not be missing."""
    if kind_of_values(values) == "number":
        array = np.asarray(values)
        missing = np.isnan(frame_numbers(name, values)) if array.dtype.kind not in "biu" else None
    else:
        text = _text(values)
        array, missing = np.array([*text.levels, ""])[text.codes], text.codes < 0
    if missing is not None and missing.any():
        row = first + int(np.flatnonzero(missing)[0])
        raise InvalidInputError(f"The target {name!r} is missing in row {row}: remove such rows.")
    return array
