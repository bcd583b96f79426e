"""Files with named columns: read in batches of Arrow arrays, and written block by block.

A written file is there when it is complete, or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from lssvm._core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from lssvm._core.atomic import replacing
from lssvm._core.blocks import slices
from lssvm._core.errors import InvalidInputError, library
from lssvm.data.csv_files import CsvFile, CsvOptions
from lssvm.data.number_text import NumberReading, word_remedy
from lssvm.data.raw import SHEETS, RawBlock, Reader, Schema, TextColumn, file_place, stacked
from lssvm.data.sheets import open_json_lines, open_sheet

_ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "ipc": (".arrow", ".feather", ".ipc"),
    "csv": (".csv", ".tsv", ".txt"),
    "excel": SHEETS,
    "jsonl": (".jsonl", ".ndjson"),
}
FORMATS = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings}
_TURNED = 2048  # rows that are turned from columns at a time: they stay in the cache


def need_pyarrow() -> Any:
    """Import pyarrow, or say how to get it."""
    return library("pyarrow", "Parquet, Arrow and CSV files are read with pyarrow", "[files]")


@dataclass(frozen=True, eq=False)
class ArrowReader(Reader):
    """Files of one format with the same columns.

    Parameters
    ----------
    files : sequence of str
    kind : {"parquet", "ipc", "csv", "excel", "jsonl"}
    target : tuple of str
        Columns of the target; may be empty.
    weight : str or None
    columns : tuple of str or None
        Columns of the features; None: all but those of target and weight.
    csv : CsvOptions
        How CSV files are read.
    skip : bool, default=False
        Leave out rows without a target, in place of an error.
    """

    files: Sequence[str]
    kind: str
    target: tuple[str, ...]
    weight: str | None
    columns: tuple[str, ...] | None
    csv: CsvOptions = field(default_factory=CsvOptions)
    skip: bool = False

    @cached_property
    def schema(self) -> Schema:
        """The columns of features, as the first file has them."""
        return self._schema(self.open_file(self.files[0]), self.files[0], self.columns)

    @cached_property
    def _outcome(self) -> Schema:
        """The columns of target and weight, as the first file has them."""
        return self._schema(self.open_file(self.files[0]), self.files[0], self._others)

    def choose(self, names: tuple[str, ...], kinds: Mapping[str, str]) -> ArrowReader:
        """Return a reader of these columns, which CSV files are to hold numbers or text in."""
        expected = {n: kinds[n] for n in names if kinds.get(n) in ("number", "text")}
        csv = replace(self.csv, types={**self.csv.types, **expected})
        return replace(self, columns=names, csv=csv)

    @property
    def _others(self) -> tuple[str, ...]:
        return (*self.target, *([] if self.weight is None else [self.weight]))

    def _check(self, data: Any, file: str) -> None:
        """Raise where a file has other columns than the first one."""
        self.schema.check(self._schema(data, file, self.schema.names), file)
        if self._others:
            self._outcome.check(self._schema(data, file, self._others), file)

    def count(self) -> int:
        """Return the number of rows; Parquet and Arrow files know it, CSV is read for it."""
        return sum(self._count(file) for file in self.files)

    def _count(self, file: str) -> int:
        data = self.open_file(file)
        self._check(data, file)
        if self.skip and self.target:
            batches = data.batches(list(self.target), 65_536)
            return int(self._guard(file, lambda: sum(self._known(b).sum() for b in batches)))
        return int(self._guard(file, data.count))

    def _known(self, batch: Any) -> BoolArray:
        """Return which rows of a batch have a target."""
        missing = [batch.column(name).is_null(nan_is_null=True) for name in self.target]
        known: BoolArray = ~np.any([np.asarray(column) for column in missing], axis=0)
        return known

    def blocks(self, batch_rows: int) -> Iterator[RawBlock]:
        """Yield the rows of all files in order."""
        start = 0
        for file in self.files:
            data = self.open_file(file)
            self._check(data, file)
            inside = 0
            for batch in self._batches(data, file, batch_rows):
                batch_size = batch.num_rows
                rows = np.arange(batch.num_rows)
                if self.skip and self.target:
                    rows = rows[self._known(batch)]
                    batch = batch.take(rows) if len(rows) < batch.num_rows else batch
                if len(rows):
                    yield self._block(batch, start, file, inside, rows)
                start, inside = start + len(rows), inside + batch_size
            if inside == 0:
                raise InvalidInputError(f"{file} is empty: it has no rows. Remove it.")

    # -- one file --------------------------------------------------------------------------------

    def open_file(self, file: str) -> Any:
        """Return what reads one file in batches."""
        need_pyarrow()
        return self._guard(file, lambda: _OPEN[self.kind](file, self.csv))

    @property
    def description(self) -> str:
        """How the first file is read, where that is not as one would expect."""
        return str(getattr(self.open_file(self.files[0]), "description", ""))

    def _guard(self, file: str, read: Any) -> Any:
        import pyarrow as pa

        try:
            return read()
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(
                f"{file} cannot be read as {_TITLE[self.kind]}: {_short(error)}. The file is "
                "truncated, empty, or not of that format."
            ) from error

    def _schema(self, data: Any, file: str, columns: tuple[str, ...] | None) -> Schema:
        types = {field.name: field.type for field in data.schema}
        for name in (*self._others, *(columns or ())):
            if name not in types:
                raise InvalidInputError(
                    f"{file} has no column {name!r}; it has {sorted(types)}. Give files with the "
                    "same columns, or name the ones to use with target= and columns=."
                )
        if columns is None:
            columns = tuple(name for name in types if name not in self._others)
        if not columns:
            raise InvalidInputError(f"{file} has no columns of features: {sorted(types)}.")
        doubts = getattr(data, "doubts", {})
        for name in columns:
            if name in doubts:
                raise _doubtful(name, doubts[name], file)
        texts = {name for name, kind in self.csv.types.items() if kind == "text"}
        kinds = ["text" if n in texts else kind_of_type(n, types[n], file) for n in columns]
        zones = [(n, zone_of_type(types[n])) for n, k in zip(columns, kinds, strict=True)]
        kept = tuple((n, zone) for n, zone in zones if zone is not None and n not in texts)
        return Schema(columns, tuple(kinds), kept)

    def _batches(self, data: Any, file: str, batch_rows: int) -> Iterator[Any]:
        import pyarrow as pa

        names = list(dict.fromkeys([*self.schema.names, *self._others]))
        try:
            yield from (batch for batch in data.batches(names, batch_rows) if batch.num_rows)
        except InvalidInputError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            column = self._culprit(data, names)
            raise InvalidInputError(
                f"{file} cannot be read{column}: {_short(error)}. Repair that file, or leave the "
                "column out with columns=."
            ) from error

    @staticmethod
    def _culprit(data: Any, names: list[str]) -> str:
        """Find the column that cannot be read, by reading one after the other."""
        import pyarrow as pa

        for name in names:
            try:
                for _ in data.batches([name], 65_536):
                    pass
            except (pa.ArrowException, OSError, ValueError):
                return f" in column {name!r}"
        return ""

    def _block(self, batch: Any, start: int, file: str, inside: int, rows: IntArray) -> RawBlock:
        targets = [_target(batch.column(name), name, file, inside) for name in self.target]
        runs = np.flatnonzero(np.append(True, np.diff(rows) != 1))  # where they begin
        return RawBlock(
            self.schema,
            *_features(batch, self.schema),
            stacked(targets),
            None if self.weight is None else column_numbers(batch.column(self.weight)),
            start,
            tuple((int(i), file, inside + int(rows[i])) for i in runs),
        )


class _Parquet:
    """A Parquet file, decoded page by page: a row group may be larger than memory.

    pyarrow's dataset scanner decodes whole row groups, and reads some ahead.
    """

    def __init__(self, file: str, options: CsvOptions) -> None:
        from pyarrow import parquet

        self.file = parquet.ParquetFile(file, pre_buffer=False, buffer_size=2**16)
        self.schema = self.file.schema_arrow

    def count(self) -> int:
        return int(self.file.metadata.num_rows)

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        yield from self.file.iter_batches(batch_size=rows, columns=names, use_threads=False)


class _Ipc:
    """An Arrow file, read record batch by record batch."""

    def __init__(self, file: str, options: CsvOptions) -> None:
        import pyarrow as pa

        self.name = file
        with pa.OSFile(file) as handle:
            reader = pa.ipc.open_file(handle)
            self.schema, self.parts = reader.schema, reader.num_record_batches

    def count(self) -> int:
        return sum(batch.num_rows for batch in self.batches(self.schema.names[:1], 65_536))

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        import pyarrow as pa

        fields = [self.schema.get_field_index(name) for name in names]
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        with pa.OSFile(self.name) as handle:
            reader = pa.ipc.open_file(handle, options=options)
            for i in range(self.parts):
                batch = reader.get_batch(i)
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)


_OPEN: dict[str, Any] = {"parquet": _Parquet, "ipc": _Ipc, "csv": CsvFile}
_OPEN |= {"excel": open_sheet, "jsonl": open_json_lines}
_TITLE = {"parquet": "Parquet", "ipc": "an Arrow file", "csv": "CSV"}
_TITLE |= {"excel": "a workbook", "jsonl": "JSON lines"}


def _doubtful(name: str, doubt: NumberReading, file: str) -> InvalidInputError:
    others = "" if doubt.count == 1 else f" and {doubt.count - 1} more of the rows looked at"
    assert doubt.word is not None
    return InvalidInputError(
        f"Column {name!r} holds numbers, but {doubt.word!r} in {file_place(file, doubt.row)}"
        f"{others}: repair it, or {word_remedy(name, doubt.word)}."
    )


def _features(batch: Any, schema: Schema) -> tuple[FloatArray, tuple[TextColumn, ...]]:
    numbers = np.empty((batch.num_rows, len(schema.numbers)))
    columns = [column_numbers(batch.column(name)) for name in schema.numbers]
    for part in slices(batch.num_rows if columns else 0, _TURNED):
        numbers[part] = np.array([column[part] for column in columns]).T
    return numbers, tuple(column_text(batch.column(name)) for name in schema.texts)


def kind_of_type(name: str, type: Any, where: str) -> str:
    """Return what a column of an Arrow type holds, as a `Schema` calls it."""
    import pyarrow as pa

    t = pa.types
    if t.is_dictionary(type):
        return kind_of_type(name, type.value_type, where)
    if t.is_string(type) or t.is_large_string(type) or t.is_string_view(type):
        return "text"
    kinds = {"boolean": (t.is_boolean,), "date": (t.is_date, t.is_timestamp)}
    kinds |= {"duration": (t.is_duration, t.is_time)}  # a time of the day is a part of it
    kinds |= {"number": (t.is_integer, t.is_floating, t.is_decimal, t.is_null)}
    for kind, tests in kinds.items():  # null: a column without a single value
        if any(test(type) for test in tests):
            return kind
    raise InvalidInputError(
        f"Column {name!r} of {where} has the type {type}, which is neither a number nor text. "
        "Convert it, or leave it out with columns=."
    )


def zone_of_type(type: Any) -> str | None:
    """Return the time zone of a type of dates."""
    zone = getattr(type, "tz", None)
    return None if zone is None else str(zone)


def column_numbers(column: Any) -> FloatArray:
    """Return the numbers of an Arrow column, dates and durations in days; NaN where missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        if zone_of_type(column.type) is not None:
            column = pc.local_timestamp(column)  # by the clock of the zone
        column = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        return column_numbers(column) / 86_400e6
    if pa.types.is_duration(column.type) or pa.types.is_time(column.type):
        micros = pa.duration("us") if pa.types.is_duration(column.type) else pa.time64("us")
        return column_numbers(column.cast(micros, safe=False).cast(pa.int64())) / 86_400e6
    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=not pa.types.is_integer(column.type))
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def column_text(column: Any) -> TextColumn:
    """Return the texts of an Arrow column."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if not pa.types.is_string(column.type.value_type):  # numbers or dates that are names
        column = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.string()))
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    levels = tuple(column.dictionary.to_pylist())
    return TextColumn(codes, tuple("" if level is None else str(level) for level in levels))


def _target(column: Any, name: str, file: str, inside: int) -> AnyArray:
    import pyarrow as pa

    if column.null_count:
        row = inside + int(np.flatnonzero(np.asarray(column.is_null()))[0])
        raise InvalidInputError(
            f"The target {name!r} is missing in {file_place(file, row)}: remove such rows."
        )
    kind = kind_of_type(name, column.type, file)
    if kind in ("date", "duration"):
        raise InvalidInputError(
            f"The target {name!r} of {file} holds {kind}s: give numbers or classes."
        )
    if kind == "text":
        text = column_text(column)
        return np.array(text.levels)[text.codes]
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _short(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__


WRITES = (".parquet", ".arrow", ".csv", ".npy")


def write_table(parts: Iterable[Mapping[str, AnyArray]], path: str) -> str:
    """Write columns block by block.

    Parameters
    ----------
    parts : iterable of mappings from names to arrays of shape (b,) or (b, k)
        A column of shape (b, k) becomes k columns ``name_0``, ``name_1``, ...
    path : str
        Parquet, Arrow, CSV or .npy by its ending (.npy: one column).

    Returns
    -------
    str
        The path.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from lssvm.data.arrow import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = write_table([{"p": np.ones(2)}, {"p": np.zeros(1)}],
    ...                        os.path.join(folder, "p.npy"))
    ...     np.load(name)
    array([1., 1., 0.])
    """
    ending = os.path.splitext(path)[1].lower()
    if ending not in WRITES:
        raise InvalidInputError(f"out={path!r} has to end in one of {', '.join(WRITES)}.")
    with replacing(path) as name:
        if ending == ".npy":
            _write_array(parts, name)
        else:
            _write_arrow(parts, name, ending)
    return path


def _write_array(parts: Iterable[Mapping[str, AnyArray]], name: str) -> None:
    column = np.concatenate([values for part in parts for values in part.values()])
    with open(name, "wb") as handle:
        np.save(handle, column, allow_pickle=False)


def _write_arrow(parts: Iterable[Mapping[str, AnyArray]], name: str, ending: str) -> None:
    pa = need_pyarrow()
    writer = None
    try:
        for part in parts:
            columns: dict[str, Any] = {}
            for key, values in part.items():
                if values.ndim == 1:
                    columns[key] = values
                else:
                    columns |= {f"{key}_{j}": values[:, j] for j in range(values.shape[1])}
            table = pa.table({key: pa.array(values) for key, values in columns.items()})
            writer = _writer(name, ending, table.schema) if writer is None else writer
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _writer(name: str, ending: str, schema: Any) -> Any:
    import pyarrow as pa

    if ending == ".parquet":
        from pyarrow import parquet

        return parquet.ParquetWriter(name, schema)
    if ending == ".csv":
        from pyarrow import csv

        return csv.CSVWriter(name, schema)
    return pa.ipc.new_file(name, schema)
