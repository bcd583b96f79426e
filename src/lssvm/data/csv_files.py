"""CSV files: how they are written, how they are cut into fields, and what the fields hold.

First a file's encoding, its delimiter and where its header is (`recognise`); then its reader.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

from lssvm._core.errors import InvalidInputError, not_usable
from lssvm.data.number_text import (
    DECIMALS,
    MISSING,
    THOUSANDS,
    NumberReading,
    NumberStyle,
    describe_styles,
    preferred_decimal,
    recognise_numbers,
    recognise_style,
    styles,
    trimmed,
    word_remedy,
)

DELIMITERS = (",", ";", "\t", "|")
_SAMPLE = 2**20  # bytes that are looked at
_WHOLE = 2**24  # bytes up to which all of a file is looked at for its encoding
_LINES = 200
_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
# Letters and signs of western Europe, as Windows-1252 has them.
_WESTERN = set(bytes([*range(0xC0, 0x100), 0x80, 0x85, *range(0x91, 0x98), 0x99]).decode("cp1252"))
_WESTERN |= set(bytes([0x8A, 0x8C, 0x8E, 0x9A, 0x9C, 0x9E, *range(0xA0, 0xC0)]).decode("cp1252"))
TITLES = {
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8 with a byte order mark",
    "cp1252": "Windows-1252",
    "latin-1": "Latin-1",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32": "UTF-32",
}
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class Dialect:
    """How a text file of fields is written.

    Attributes
    ----------
    encoding : str
        As Python calls it.
    delimiter : str
    skipped : int
        Lines before the header: empty ones, and ``sep=;`` as Excel writes it.
    names : tuple of str
        The columns, without spaces around their names; those without one are called by their
        position.
    quoted : bool
        Whether there are quotes, so that a field may go over several lines.
    expected : str
        The delimiter that the name of the file lets expect.
    """

    encoding: str
    delimiter: str
    skipped: int
    names: tuple[str, ...]
    quoted: bool
    expected: str = ","

    @property
    def differences(self) -> list[str]:
        """What is not as one would expect, in words."""
        words = []
        if self.encoding != "utf-8":
            words.append(TITLES.get(self.encoding, self.encoding))
        if self.delimiter != self.expected:
            words.append(f"fields separated by {_NAMES.get(self.delimiter, repr(self.delimiter))}")
        return words


def open_bytes(file: str) -> Any:
    """Open a file, which may be compressed."""
    return gzip.open(file, "rb") if file.endswith(".gz") else open(file, "rb")


def file_stamp(file: str) -> tuple[int, int, int]:
    """Return what changes with a file: what was seen of it holds as long as this is the same."""
    try:
        state = os.stat(file)
    except OSError:
        return 0, 0, 0
    return state.st_mtime_ns, state.st_size, state.st_ino


def recognise(file: str, encoding: str | None, delimiter: str | None) -> Dialect:
    r"""Look at the first lines of a file.

    Parameters
    ----------
    file : str
    encoding, delimiter : str or None
        What is known already; None: recognised.

    Raises
    ------
    InvalidInputError
        Where it is no text, or empty.

    Examples
    --------
    >>> import os, tempfile
    >>> from lssvm.data.csv_files import recognise
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "a.csv")
    ...     with open(name, "w", encoding="cp1252") as handle:
    ...         _ = handle.write("Größe;Preis\n1,5;2\n")
    ...     found = recognise(name, None, None)
    >>> found.encoding, found.delimiter, found.names
    ('cp1252', ';', ('Größe', 'Preis'))
    """
    try:
        with open_bytes(file) as handle:
            head = handle.read(_SAMPLE)
            rest = handle.read(_WHOLE) if encoding is None else b""
    except (OSError, EOFError) as error:
        raise InvalidInputError(f"{file} cannot be read: {error}.") from error
    if not head.strip():
        raise InvalidInputError(f"{file} is empty: its first line has to name the columns.")
    encoding = encoding or _encoding(head + rest, file)
    text = _decoded(head, encoding, file)
    if "\0" in text:
        raise InvalidInputError(f"{file} is not CSV: there are zero bytes in it.")
    lines = text.splitlines(keepends=True)
    if len(head) == _SAMPLE and len(lines) > 1:
        lines.pop()  # it may be cut
    skipped = 0
    while skipped < len(lines) and not lines[skipped].strip():
        skipped += 1
    if skipped == len(lines):
        raise InvalidInputError(f"{file} is empty: its first line has to name the columns.")
    first = lines[skipped].strip()
    if first.lower().startswith("sep=") and len(first) <= 5:
        delimiter = delimiter or (first[4:] or "\t")
        skipped += 1
    kept = lines[skipped : skipped + _LINES]
    base = file[:-3] if file.endswith(".gz") else file
    expected = "\t" if base.lower().endswith(".tsv") else ","
    delimiter = delimiter or _delimiter(kept, expected)
    header = next(csv.reader(kept, delimiter=delimiter), [])
    names = tuple(name.strip() or f"column {j + 1}" for j, name in enumerate(header))
    for j, name in enumerate(names):
        if name in names[:j]:
            raise InvalidInputError(
                f"{file} has two columns of the name {name!r}, the columns {names.index(name) + 1} "
                f"and {j + 1} of line {skipped + 1}: rename one of them."
            )
    return Dialect(encoding, delimiter, skipped, names, '"' in text, expected)


def records(file: str, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the records behind the header with the line each of them begins in; slow.

    Lines are counted from 1 as editors do, empty ones too, which are no records.
    """
    with (
        open_bytes(file) as handle,
        io.TextIOWrapper(handle, encoding=dialect.encoding, errors="replace", newline="") as text,
    ):
        for _ in range(dialect.skipped):
            text.readline()
        reader = csv.reader(text, delimiter=dialect.delimiter)
        next(reader, None)
        before = reader.line_num
        for fields in reader:
            line, before = before + 1, reader.line_num
            if fields:
                yield dialect.skipped + line, fields


def line_of(file: str, dialect: Dialect, row: int) -> int:
    """Return the line of a row that is counted from 0; slow."""
    record = next(islice(records(file, dialect), row, None), None)
    return row + 2 + dialect.skipped if record is None else record[0]


def _decoded(head: bytes, encoding: str, file: str) -> str:
    import codecs

    try:
        return codecs.getincrementaldecoder(encoding)().decode(head)
    except LookupError as error:
        raise InvalidInputError(
            f"encoding={encoding!r} is not known: give one such as utf-8, cp1252, latin-1 or "
            "utf-16."
        ) from error
    except UnicodeDecodeError as error:
        line = head[: error.start].count(b"\n") + 1
        raise InvalidInputError(
            f"Line {line} of {file} is not {TITLES.get(encoding, encoding)}: {error.reason}. Name "
            "its encoding (--encoding, encoding= of CsvOptions), such as cp1252 or utf-16."
        ) from error


def _encoding(content: bytes, file: str) -> str:
    for mark, name in _MARKS:
        if content.startswith(mark) and not (name == "utf-16" and len(content) % 2):
            return name
    for name, first in (("utf-16-le", 1), ("utf-16-be", 0)):
        half = content[first:4096:2]
        if len(half) > 4 and half.count(0) > 0.7 * len(half):
            return name
    import codecs

    try:
        codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        return _single_bytes(content, file)
    return "utf-8"


def _single_bytes(content: bytes, file: str) -> str:
    lines = [line for line in content.splitlines() if not line.isascii()][:400]
    sample = b"\n".join(lines)[:32_768]
    try:
        letters = {letter for letter in sample.decode("cp1252") if not letter.isascii()}
        if letters <= _WESTERN:
            return "cp1252"
    except UnicodeDecodeError:
        pass
    if b"\0" in sample:
        raise InvalidInputError(f"{file} is not CSV: there are zero bytes in it.")
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        best = None
    else:
        best = from_bytes(sample).best()
    if best is None:
        raise InvalidInputError(
            f"{file} is not CSV in UTF-8, and its encoding is not recognised: name it "
            "(--encoding, encoding= of CsvOptions), such as cp1252 or latin-1."
        )
    return str(best.encoding).replace("_", "-")


def _delimiter(lines: list[str], expected: str) -> str:
    """Return the delimiter that cuts most lines into as many fields as the header."""

    def score(sign: str) -> tuple[float, bool, int]:
        try:
            rows = [row for row in csv.reader(lines, delimiter=sign) if row]
        except csv.Error:
            return 0.0, False, 0
        width = len(rows[0])
        if width < 2:
            return 0.0, sign == expected, 1
        same = sum(len(row) == width for row in rows) / len(rows)
        return round(same, 1), sign == expected, width

    return max(DELIMITERS, key=score)


KINDS = ("number", "integer", "text")


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV file is read, where the detected format is wrong.

    Attributes
    ----------
    delimiter : str or None
        One character between two fields; None: recognised among commas, semicolons, tabs and bars.
    null_values : tuple of str
        Texts that mean "missing", in addition to pyarrow's (the empty string, NA, NaN, null, ...).
    types : mapping from str to {"number", "integer", "text"}
        Types of columns; the others are detected in the first megabyte of the file. "text" also
        makes numbers and dates of Parquet and Arrow files names.
    decimal : {".", ","} or None
        The decimal sign; None: recognised.
    thousands : {",", ".", " ", "'"} or None
        What groups thousands; None: recognised.
    encoding : str or None
        As Python calls it, such as "cp1252"; None: recognised.

    Notes
    -----
    Spaces around fields do not count. Digits behind a leading zero (007) are text. Currency signs
    are removed from numbers, 12 % is 0.12, (7) and 7- are -7. Dates stay text or dates.

    Examples
    --------
    >>> from lssvm.data.csv_files import CsvOptions
    >>> CsvOptions(delimiter=";", null_values=("?",)).delimiter
    ';'
    """

    delimiter: str | None = None
    null_values: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise not_usable("delimiter", self.delimiter, "give one character, such as ';'.")
        wrong = sorted(set(self.types.values()) - set(KINDS))
        if wrong:
            raise InvalidInputError(f"types has {wrong}: a column holds one of {list(KINDS)}.")
        if self.decimal is not None and self.decimal not in DECIMALS:
            raise InvalidInputError(f"decimal={self.decimal!r} is not usable: give '.' or ','.")
        if self.thousands is not None and self.thousands not in THOUSANDS[1:]:
            raise not_usable("thousands", self.thousands, f"give one of {THOUSANDS[1:]}.")
        if self.thousands is not None and self.decimal is not None:
            NumberStyle(self.decimal, self.thousands)  # refuses one sign for both

    @property
    def nulls(self) -> tuple[str, ...]:
        """All texts that mean "missing"."""
        return (*MISSING, *(text.strip() for text in self.null_values))


@dataclass(frozen=True, eq=False)
class Seen:
    """What the first megabyte of a CSV file has shown.

    Attributes
    ----------
    dialect : Dialect
    arrow_names : tuple of str
        What pyarrow calls the columns.
    types : tuple of pyarrow.DataType
        What pyarrow takes them for.
    readings : mapping from str to NumberReading
        What the texts of the columns are.
    decimal : str
        The decimal sign of columns that leave it open.
    """

    dialect: Dialect
    arrow_names: tuple[str, ...]
    types: tuple[Any, ...]
    readings: Mapping[str, NumberReading]
    decimal: str


class CsvFile:
    """A CSV file, parsed a megabyte at a time.

    Parameters
    ----------
    file : str
    options : CsvOptions

    Attributes
    ----------
    schema : pyarrow.Schema
    integers : set of str
        Columns whose numbers have no fractions, as far as it was looked at.
    doubts : mapping from str to NumberReading
        Columns of numbers but for a word.
    """

    def __init__(self, file: str, options: CsvOptions) -> None:
        import pyarrow as pa

        self.name, self.options = file, options
        self.seen = look(file, options)
        self.arrow_names = dict(zip(self.seen.dialect.names, self.seen.arrow_names, strict=True))
        types = dict(zip(self.arrow_names, self.seen.types, strict=True))
        readings = self.seen.readings
        self.integers = {n for n, t in types.items() if pa.types.is_integer(t)}
        self.integers -= {name for name, one in readings.items() if one.coded}
        self.doubts = {
            name: one
            for name, one in readings.items()
            if one.word is not None and name not in options.types
        }
        self.schema = pa.schema([pa.field(n, self._type(n, t)) for n, t in types.items()])

    @property
    def description(self) -> str:
        """How the file is read, where that is not as one would expect."""
        return describe(
            self.seen, [n for n in self.arrow_names if self.options.types.get(n) != "text"]
        )

    def _type(self, name: str, inferred: Any) -> Any:
        import pyarrow as pa

        kind, reading = self.options.types.get(name), self.seen.readings.get(name)
        if kind in ("text", "integer"):
            return pa.string() if kind == "text" else pa.int64()
        if kind is None and reading is not None and (reading.coded or reading.word is not None):
            return pa.string()
        # Whole numbers, or nothing at all, among the first rows do not mean that all are.
        number = pa.types.is_integer(inferred) or pa.types.is_null(inferred)
        if number or (kind == "number" and not pa.types.is_boolean(inferred)):
            return pa.float64()
        if reading is not None and reading.style is not None and not pa.types.is_boolean(inferred):
            return pa.float64()
        return inferred

    def _style(self, name: str, careful: bool) -> NumberStyle | None:
        """Return how the numbers of a column are written; None: pyarrow can read it."""
        import pyarrow as pa

        kind = self.schema.field(name).type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            return None
        inferred = self.seen.types[list(self.arrow_names).index(name)]
        reading = self.seen.readings.get(name)
        tried = styles(self.options.decimal, self.options.thousands, self.seen.decimal)
        style = tried[0] if reading is None or reading.style is None else reading.style
        readable = not pa.types.is_string(inferred) and not careful
        return None if readable and style.plain else style

    def count(self) -> int:
        """Return the number of rows, which the file is read for."""
        return sum(batch.num_rows for batch in self.batches(self.schema.names[:1], 65_536))

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        """Yield the columns ``names`` in batches of at most ``rows`` rows."""
        import pyarrow as pa

        done, fault = 0, None
        for careful in (False, True):  # what pyarrow takes for no number may be one to people
            try:
                for batch in self._parsed(names, done, careful):
                    done += batch.num_rows
                    for first in range(0, batch.num_rows, rows):
                        yield batch.slice(first, rows)
                return
            except (pa.ArrowException, UnicodeError) as error:
                fault = fault or error
        assert fault is not None
        raise self._explained(fault, names) from fault

    def _parsed(self, names: list[str], skip: int, careful: bool) -> Iterator[Any]:
        """Yield batches without the first ``skip`` rows; careful: all numbers from their text."""
        import pyarrow as pa
        from pyarrow import csv

        kinds = {name: self.schema.field(name).type for name in names}
        written = {name: self._style(name, careful) for name in names}
        texts = {n for n in names if written[n] is not None or pa.types.is_string(kinds[n])}
        nulls = list(self.options.nulls)
        convert = csv.ConvertOptions(
            column_types={
                self.arrow_names[n]: pa.string() if n in texts else kinds[n] for n in names
            },
            include_columns=[self.arrow_names[name] for name in names],
            null_values=nulls,
            strings_can_be_null=True,
        )
        schema = pa.schema([pa.field(name, kinds[name]) for name in names])
        start = 0
        with _reader(self.name, self.seen.dialect, convert) as reader:
            for batch in reader:
                first, start = start, start + batch.num_rows
                batch = batch.slice(max(0, skip - first))
                if batch.num_rows == 0:
                    continue
                columns = []
                for name, column in zip(names, batch.columns, strict=True):
                    if name in texts:
                        column = trimmed(column, nulls)
                    if (style := written[name]) is not None:
                        at = start - batch.num_rows
                        column = self._numbers(column, style, name, at).cast(kinds[name])
                    columns.append(column)
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _numbers(self, texts: Any, style: NumberStyle, name: str, start: int) -> Any:
        row = style.first_other(texts)
        if row >= 0:
            text = texts[row].as_py()
            raise self.no_number(name, text, line_of(self.name, self.seen.dialect, start + row))
        return style.parse(texts)

    def no_number(self, name: str, text: str, line: int) -> InvalidInputError:
        """Return the error about a text where numbers are expected."""
        return InvalidInputError(
            f"Line {line} of {self.name} has {text!r} in column {name!r}, where numbers are "
            f"expected: repair that line, or {word_remedy(name, text)}."
        )

    def _explained(self, error: Exception, names: Sequence[str]) -> InvalidInputError:
        """Return the error that names the line; the file is read for it, slowly."""
        import pyarrow as pa

        dialect, nulls = self.seen.dialect, set(self.options.nulls)
        place = {name: j for j, name in enumerate(self.arrow_names)}
        tests = {
            name: _reads(self.schema.field(name).type)
            for name in names
            if not pa.types.is_string(self.schema.field(name).type)
        }
        for line, fields in records(self.name, dialect):
            if len(fields) != len(self.arrow_names):
                return _misfit(self.name, dialect, line, len(fields))
            for name, reads in tests.items():
                text = fields[place[name]].strip()
                if text not in nulls and not reads(text):
                    return self.no_number(name, text, line)
            if any("\ufffd" in text for text in fields):
                title = TITLES.get(dialect.encoding, dialect.encoding)
                return InvalidInputError(
                    f"Line {line} of {self.name} is not {title}: name the encoding of the file "
                    "(--encoding, encoding= of CsvOptions), such as cp1252 or latin-1."
                )
        reason = str(error).splitlines()[0].rstrip(".")
        return InvalidInputError(f"{self.name} cannot be read as CSV: {reason}.")


def _reads(kind: Any) -> Callable[[str], bool]:
    import pyarrow as pa

    def reads(text: str) -> bool:
        try:
            pa.array([text]).cast(kind)
        except pa.ArrowException:
            return False
        return True

    return reads


def look(file: str, options: CsvOptions) -> Seen:
    """Look at the first megabyte of a CSV file, once as long as it does not change."""
    written = (options.encoding, options.delimiter, options.decimal, options.thousands)
    return _look(file, file_stamp(file), written, options.nulls)


@lru_cache(maxsize=256)
def _look(
    file: str,
    stamp: tuple[int, int, int],
    written: tuple[str | None, str | None, str | None, str | None],
    nulls: tuple[str, ...],
) -> Seen:
    import pyarrow as pa
    from pyarrow import csv

    encoding, delimiter, decimal, thousands = written
    dialect = recognise(file, encoding, delimiter)
    try:
        with _reader(file, dialect, csv.ConvertOptions(null_values=list(nulls))) as reader:
            schema = reader.schema
        plain = csv.ConvertOptions(
            column_types={name: pa.string() for name in schema.names}, strings_can_be_null=False
        )
        with _reader(file, dialect, plain) as reader:
            batch = next(iter(reader), None)
    except (pa.ArrowException, UnicodeError) as error:
        raise _first_lines(file, dialect, error) from error
    if batch is None:
        columns = [pa.array([], pa.string()) for _ in schema.names]
    else:
        columns = [trimmed(column, nulls) for column in batch.columns]
    names = dialect.names
    open_ones = [
        column
        for column, kind in zip(columns, schema.types, strict=True)
        if pa.types.is_string(kind) or pa.types.is_floating(kind)
    ]
    prefer = decimal or preferred_decimal(open_ones, dialect.delimiter)
    tried = styles(decimal, thousands, prefer)
    readings = {}
    for name, column, kind in zip(names, columns, schema.types, strict=True):
        if pa.types.is_string(kind):
            readings[name] = recognise_numbers(column, tried)
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
            readings[name] = recognise_style(column, tried)
    return Seen(dialect, tuple(schema.names), tuple(schema.types), readings, prefer)


def _misfit(file: str, dialect: Dialect, line: int, fields: int) -> InvalidInputError:
    return InvalidInputError(
        f"Line {line} of {file} has {fields} fields, but line {dialect.skipped + 1} names "
        f"{len(dialect.names)} columns: repair or remove that line (a field that holds "
        f"{dialect.delimiter!r} has to stand in quotes)."
    )


def _first_lines(file: str, dialect: Dialect, error: Exception) -> InvalidInputError:
    """Return the error that names the line of a record that is too long or too short."""
    for line, fields in records(file, dialect):
        if len(fields) != len(dialect.names):
            return _misfit(file, dialect, line, len(fields))
    if "Empty CSV file" in str(error):
        return InvalidInputError(f"{file} is empty: its first line has to name the columns.")
    reason = str(error).splitlines()[0].rstrip(".")
    return InvalidInputError(f"{file} cannot be read as CSV: {reason}.")


def _reader(file: str, dialect: Dialect, convert: Any) -> Any:
    from pyarrow import csv

    utf8 = dialect.encoding in ("utf-8", "utf-8-sig")  # pyarrow knows the mark
    encoding = "utf8" if utf8 else dialect.encoding
    read = csv.ReadOptions(skip_rows=dialect.skipped, encoding=encoding)
    parse = csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=dialect.quoted)
    return csv.open_csv(file, read_options=read, parse_options=parse, convert_options=convert)


def describe(seen: Seen, names: Sequence[str]) -> str:
    """Say how a file is read, where that is not as one would expect; "" where it is.

    Parameters
    ----------
    seen : Seen
    names : sequence of str
        The columns that may hold numbers.
    """
    words = seen.dialect.differences
    used = [
        seen.readings[n] for n in names if n in seen.readings and seen.readings[n].style is not None
    ]
    words += describe_styles(one.style for one in used if one.style is not None)
    signs = sorted({sign for one in used for sign in one.signs})
    if signs:
        words.append(f"{' and '.join(signs)} signs")
    return ", ".join(words)


def csv_place(file: str, row: int) -> str:
    """Say in which line of a CSV file a row is, as editors count; slow.

    Parameters
    ----------
    file : str
    row : int
        Counted from 0, without the header.
    """
    try:
        return f"line {line_of(file, recognise(file, None, None), row)} of {file}"
    except (InvalidInputError, OSError):
        return f"line {row + 2} of {file}"
