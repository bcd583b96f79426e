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
from lssvm.data.columns import RawColumn, read_column
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
    """Return what a column holds, as a `Schema` calls it."""
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if kind is None:  # an Arrow column
        from lssvm.data.arrow import kind_of_type

        return kind_of_type("", values.type, "the table")
    known = {"b": "boolean", "i": "number", "u": "number", "f": "number"}
    known |= {"M": "date", "m": "duration"}
    if kind == "O" and len(values) and not hasattr(values, "cat"):  # Python's own values
        found = read_column(str(getattr(values, "name", "")), values).kind
        return "text" if found in ("category", "empty") else found
    return known.get(kind, "text")


def frame_numbers(name: str, values: Any) -> FloatArray:
    """Return the numbers of a column of a data frame."""
    if (
        hasattr(values, "to_numpy")
        and getattr(getattr(values, "dtype", None), "kind", "O") in "iuf"
    ):
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    column = _typed(name, values)
    if column.kind == "category":
        try:
            return np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"Column {name!r} has values that are no numbers ({error}), but the model expects "
                "numbers there."
            ) from error
    return column.numbers()


def _typed(name: str, values: Any) -> RawColumn:
    if not hasattr(values, "dtype"):  # an Arrow column
        from lssvm.data.arrow import column_numbers, column_text, kind_of_type

        if kind_of_type(name, values.type, "the table") == "text":
            return column_text(values).column(name)
        return RawColumn(name, "number", column_numbers(values))
    return read_column(name, values)


def _text(values: Any) -> TextColumn:
    if hasattr(values, "cat"):  # categories are few: no string is looked at twice
        levels = TextColumn.of(list(values.cat.categories))
        codes = np.append(levels.codes, -1)[np.asarray(values.cat.codes, dtype=np.intp)]
        return TextColumn(codes, levels.levels)
    return TextColumn.of_column(_typed("", values))


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
        kinds = tuple(kind_of_values(found[name]) for name in names)
        zones = [(n, _zone(found[n])) for n, k in zip(names, kinds, strict=True) if k == "date"]
        return Schema(names, kinds, tuple((n, zone) for n, zone in zones if zone is not None))

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


def _zone(values: Any) -> str | None:
    """Return the time zone of a column of dates."""
    if hasattr(values, "type"):  # an Arrow column
        zone = values.type.tz if hasattr(values.type, "tz") else None
    else:
        zone = getattr(values.dtype, "tz", None)
        if getattr(values.dtype, "kind", "") == "O":
            zone = read_column("", values).zone
    return None if zone is None else str(zone)


def frame_target(name: str, values: Any, first: int = 0) -> AnyArray:
    """Return the targets of a column of a data frame, which may not be missing."""
    kind = kind_of_values(values)
    if kind in ("date", "duration"):
        raise InvalidInputError(f"The target {name!r} holds {kind}s: give numbers or classes.")
    if kind != "text":
        array = np.asarray(values)
        missing = np.isnan(frame_numbers(name, values)) if array.dtype.kind not in "biu" else None
    else:
        text = _text(values)
        array, missing = np.array([*text.levels, ""])[text.codes], text.codes < 0
    if missing is not None and missing.any():
        row = first + int(np.flatnonzero(missing)[0])
        raise InvalidInputError(f"The target {name!r} is missing in row {row}: remove such rows.")
    return array
