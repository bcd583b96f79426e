"""Files that are read as a whole: sheets of Excel and OpenDocument, and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any

from lssvm._core.errors import InvalidInputError, library
from lssvm.data.csv_files import CsvOptions, file_stamp, open_bytes
from lssvm.data.number_text import (
    NumberReading,
    NumberStyle,
    describe_styles,
    preferred_decimal,
    recognise_numbers,
    styles,
    trimmed,
    word_remedy,
)


class TableFile:
    """Columns of Python values, typed as those of a CSV file are.

    Parameters
    ----------
    file : str
    options : CsvOptions
    place : str
        What a row is called in messages, such as "row".
    found : Columns
        Names and lists of values (strings, numbers, booleans, dates or None) of the columns, the
        number of the first row there, and how it is read.

    Attributes
    ----------
    schema : pyarrow.Schema
    integers : set of str
        Columns whose numbers have no fractions.
    doubts : mapping from str to NumberReading
        Columns of numbers but for a word.
    description : str
        How it is read, where that is not as one would expect.
    """

    def __init__(self, file: str, options: CsvOptions, place: str, content: Columns) -> None:
        import pyarrow as pa

        names, columns, self.first, described = content
        self.name, self.options, self.place = file, options, place
        self.integers: set[str] = set()
        self.doubts: dict[str, NumberReading] = {}
        self._styles: set[NumberStyle] = set()
        made = [self._column(n, c) for n, c in zip(names, columns, strict=True)]
        texts = [column for column in made if pa.types.is_string(column.type)]
        self._tried = styles(
            options.decimal, options.thousands, options.decimal or preferred_decimal(texts, None)
        )
        made = [self._recognised(n, c) for n, c in zip(names, made, strict=True)]
        self.table = pa.table(dict(zip(names, made, strict=True)))
        self.schema = self.table.schema
        self.description = ", ".join(filter(None, [described, *describe_styles(self._styles)]))

    def _column(self, name: str, values: list[Any]) -> Any:
        """Return a column as Arrow has it: numbers, booleans, dates, or trimmed text."""
        import pyarrow as pa

        nulls = set(self.options.nulls)
        values = [None if isinstance(v, str) and v.strip() in nulls else v for v in values]
        kinds = {type(v) for v in values} - {type(None)}
        if not kinds:
            return pa.nulls(len(values), pa.null())
        if self.options.types.get(name) != "text":
            if kinds <= {bool}:
                return pa.array(values, pa.bool_())
            if kinds <= {int, float}:
                if all(v is None or float(v).is_integer() for v in values):
                    self.integers.add(name)
                return pa.array([None if v is None else float(v) for v in values], pa.float64())
            if kinds <= {date, datetime}:
                return pa.array(values, pa.timestamp("us"))
        return trimmed(pa.array([_text(v) for v in values], pa.string()), self.options.nulls)

    def _recognised(self, name: str, column: Any) -> Any:
        import pyarrow as pa

        kind = self.options.types.get(name)
        if not pa.types.is_string(column.type) or kind == "text":
            whole = kind == "integer" and pa.types.is_floating(column.type)
            return column.cast(pa.int64()) if whole else column
        reading = recognise_numbers(column, self._tried)
        if kind in ("number", "integer") and reading.style is None:
            reading = NumberReading(self._tried[0])
            row = self._tried[0].first_other(column)
            if row >= 0:
                text = column[row].as_py()
                raise InvalidInputError(
                    f"{self.place.capitalize()} {row + self.first} of {self.name} has {text!r} in "
                    f"column {name!r}, where numbers are expected: repair it, or "
                    f"{word_remedy(name, text)}."
                )
        if reading.style is not None:
            self._styles.add(reading.style)
            column = reading.style.parse(column)
            return column.cast(pa.int64()) if kind == "integer" else column
        if reading.word is not None:
            self.doubts[name] = reading
        return column

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.table.num_rows)

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        """Yield the columns ``names`` in batches of at most ``rows`` rows."""
        yield from self.table.select(names).to_batches(max_chunksize=rows)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


Columns = tuple[tuple[str, ...], tuple[list[Any], ...], int, str]  # names, values, first row, text


def open_sheet(file: str, options: CsvOptions) -> TableFile:
    """Read the first sheet of a workbook: its first row with a value names the columns."""
    return TableFile(file, options, "row", _sheet(file, file_stamp(file)))


@lru_cache(maxsize=2)
def _sheet(file: str, stamp: tuple[int, int, int]) -> Columns:
    needed, otherwise = f"{file} is read with python-calamine", ", or save the sheet as CSV"
    calamine = library("python_calamine", needed, "[files]", otherwise)
    try:
        workbook = calamine.CalamineWorkbook.from_path(file)
        title = workbook.sheet_names[0]
        rows = workbook.get_sheet_by_index(0).to_python(skip_empty_area=False)
    except (calamine.CalamineError, OSError, IndexError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InvalidInputError(
            f"{file} cannot be read as a workbook: {reason}. Save it again, or as CSV."
        ) from error
    cells = [[_cell(value) for value in row] for row in rows]
    head = next((i for i, row in enumerate(cells) if any(v is not None for v in row)), None)
    if head is None:
        raise InvalidInputError(f"{file} is empty: the first row of its first sheet names columns.")
    used = [j for j in range(len(cells[head])) if any(row[j] is not None for row in cells[head:])]
    names = [str(_text(cells[head][j]) or f"column {j + 1}").strip() for j in used]
    check_names(file, names)
    body = cells[head + 1 :]
    while body and all(value is None for value in body[-1]):
        body.pop()
    description = (
        f"the sheet {title!r} of {len(workbook.sheet_names)}"
        if len(workbook.sheet_names) > 1
        else ""
    )
    return tuple(names), tuple([row[j] for row in body] for j in used), head + 2, description


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, time):
        return value.isoformat()
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value.total_seconds() / 86_400 if isinstance(value, timedelta) else value


def check_names(file: str, names: Sequence[str]) -> None:
    """Raise where two columns have the same name."""
    twice = [name for j, name in enumerate(names) if name in names[:j]]
    if twice:
        raise InvalidInputError(
            f"{file} has two columns of the name {twice[0]!r}: rename one of them."
        )


def open_json_lines(file: str, options: CsvOptions) -> TableFile:
    """Read a file with one JSON object a line; what an object does not have is missing."""
    return TableFile(file, options, "line", _json_lines(file, file_stamp(file)))


@lru_cache(maxsize=2)
def _json_lines(file: str, stamp: tuple[int, int, int]) -> Columns:
    records: list[dict[str, Any]] = []
    names: dict[str, None] = {}
    with open_bytes(file) as handle:
        for number, line in enumerate(handle, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                raise InvalidInputError(
                    f"Line {number} of {file} is not JSON: {error}. Every line has to be one "
                    'object, such as {"age": 30, "job": "cook"}.'
                ) from error
            if not isinstance(record, dict):
                raise InvalidInputError(
                    f"Line {number} of {file} is a {type(record).__name__}, not an object: every "
                    'line has to be one such as {"age": 30, "job": "cook"}.'
                )
            records.append(record)
            names.update(dict.fromkeys(record))
    if not names:
        raise InvalidInputError(f"{file} is empty: it has no objects with columns.")
    stripped = [name.strip() for name in names]
    check_names(file, stripped)
    columns = tuple([_plain(record.get(name)) for record in records] for name in names)
    return tuple(stripped), columns, 1, ""


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (list, dict)) else value
