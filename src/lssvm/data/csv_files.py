"""CSV files: how their text is cut into fields, and what the fields of a column hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lssvm._core.errors import InvalidInputError

KINDS = ("number", "integer", "text")


@dataclass(frozen=True)
class CsvOptions:
    """What a CSV file does not say itself.

    Attributes
    ----------
    delimiter : str or None
        One character between two fields; None: a tab in files ending in .tsv, else a comma.
    null_values : tuple of str
        Texts that mean "missing", beside pyarrow's (the empty one, NA, NaN, null, ...).
    types : mapping from str to {"number", "integer", "text"}
        What columns hold; the others are judged by the first megabyte of the file. "text" also
        makes numbers of Parquet and Arrow files names.

    Examples
    --------
    >>> from lssvm.data.csv_files import CsvOptions
    >>> CsvOptions(delimiter=";", null_values=("?",)).delimiter
    ';'
    """

    delimiter: str | None = None
    null_values: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise InvalidInputError(
                f"delimiter={self.delimiter!r} is not usable: give one character, such as ';'."
            )
        wrong = sorted(set(self.types.values()) - set(KINDS))
        if wrong:
            raise InvalidInputError(f"types has {wrong}: a column holds one of {list(KINDS)}.")


class CsvFile:
    """A CSV file, parsed a megabyte at a time.

    Parameters
    ----------
    file : str
    options : CsvOptions
    """

    def __init__(self, file: str, options: CsvOptions) -> None:
        import pyarrow as pa
        from pyarrow import csv

        self.name, self.options = file, options
        base = file[:-3] if file.endswith(".gz") else file
        delimiter = options.delimiter or ("\t" if base.endswith(".tsv") else ",")
        self.parse = csv.ParseOptions(delimiter=delimiter)
        self.nulls = [*csv.ConvertOptions().null_values, *options.null_values]
        convert = csv.ConvertOptions(null_values=self.nulls)
        with csv.open_csv(file, parse_options=self.parse, convert_options=convert) as reader:
            found = reader.schema
        self.integers = {f.name for f in found if pa.types.is_integer(f.type)}
        self.schema = pa.schema([pa.field(f.name, self._type(f)) for f in found])

    def _type(self, field: Any) -> Any:
        import pyarrow as pa

        kind = self.options.types.get(field.name)
        if kind == "text":
            return pa.string()
        if kind == "integer":
            return pa.int64()
        # Whole numbers, or nothing at all, among the first rows do not mean that all are.
        number = pa.types.is_integer(field.type) or pa.types.is_null(field.type)
        if number or (kind == "number" and not pa.types.is_boolean(field.type)):
            return pa.float64()
        return field.type

    def count(self) -> int:
        """Return the number of rows, which the file is read for."""
        return sum(batch.num_rows for batch in self.batches(self.schema.names[:1], 65_536))

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        """Yield the columns ``names`` in batches of at most ``rows`` rows."""
        from pyarrow import csv

        convert = csv.ConvertOptions(
            column_types={name: self.schema.field(name).type for name in names},
            include_columns=names,
            null_values=self.nulls,
            strings_can_be_null=True,
        )
        with csv.open_csv(self.name, parse_options=self.parse, convert_options=convert) as reader:
            for batch in reader:
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)
