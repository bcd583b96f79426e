"""How a text file of fields is written: its encoding, its delimiter and where its header is."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lssvm._core.errors import InvalidInputError

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
    def told(self) -> list[str]:
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
    >>> from lssvm.data.dialects import recognise
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
    found = next(islice(records(file, dialect), row, None), None)
    return row + 2 + dialect.skipped if found is None else found[0]


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
