"""Files with named columns, as the command line opens them: checked before anything is read."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lssvm._core.arrays import BoolArray
from lssvm._core.errors import InvalidInputError
from lssvm.cli.options import Reading
from lssvm.data import CsvOptions, Scan, scan
from lssvm.data.arrow import FORMATS, ArrowReader, kind_of_type
from lssvm.data.csv_files import DELIMITERS, CsvFile
from lssvm.data.scanning import ending, find_files
from lssvm.data.sheets import check_names

_SHOWN = 12  # names of columns in a message


@dataclass(frozen=True)
class Table:
    """A data set in files with named columns.

    Attributes
    ----------
    path : str
    kinds : mapping from str to str
        For every column "number" or "text", or the type that is neither.
    csv : CsvOptions
    integers : set of str
        Columns of numbers that CSV writes without a decimal point, as far as it was looked at.
    told : str
        How it is read, where that is not as one would expect.
    dates : set of str
        Columns of dates and times.
    """

    path: str
    kinds: Mapping[str, str]
    csv: CsvOptions = field(repr=False)
    integers: frozenset[str] = frozenset()
    told: str = ""
    dates: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.kinds)

    def need(self, names: Sequence[str], what: str) -> None:
        """Raise where one of some columns is not there."""
        for name in names:
            if name not in self.kinds:
                near = difflib.get_close_matches(name, self.names, 1)
                similar = f" Did you mean {near[0]!r}?" if near else ""
                raise InvalidInputError(
                    f"{self.path} has no column {name!r}{what}.{similar} "
                    f"It has {short_list(self.names)}."
                )

    def with_categories(self, names: Sequence[str]) -> Table:
        """Return the table with columns of numbers that are names of categories."""
        texts = dict.fromkeys(names, "text")
        csv = replace(self.csv, types={**self.csv.types, **texts})
        return replace(self, kinds={**self.kinds, **texts}, csv=csv)

    def scan(
        self,
        target: str | None = None,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        types: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Scan:
        """Return a scan of it."""
        csv = replace(self.csv, types={**self.csv.types, **(types or {})})
        made = scan(
            self.path,
            target=target,
            columns=None if columns is None else list(columns),
            weight=weight,
            missing="impute",
            csv=csv,
            **options,
        )
        reader: Any = made.reader  # rows without a target are left out
        return made if target is None else replace(made, reader=replace(reader, skip=True))

    def raw_batches(self, names: Sequence[str], nulls: tuple[str, ...] = ()) -> Iterator[Any]:
        """Yield columns of all files with the types they have there (CSV: as text)."""
        files = find_files(self.path)
        csv = replace(self.csv, null_values=nulls, types=dict.fromkeys(names, "text"))
        reader = ArrowReader(files, FORMATS[ending(files[0])], (), None, None, csv)
        for file in files:
            batches = reader.open_file(file).batches(list(names), 65_536)
            yield from (batch for batch in batches if batch.num_rows)

    def column(self, name: str) -> Any:
        """Return one column of all rows as an Arrow array."""
        import pyarrow as pa

        self.need([name], "")
        parts = [b.column(name) for b in self.raw_batches([name], self.csv.null_values)]
        if not parts:
            raise InvalidInputError(f"{self.path} has no rows.")
        return pa.chunked_array(parts)

    def known(self, target: str) -> BoolArray:
        """Return which rows have a target, shape (n,)."""
        return ~np.asarray(self.column(target).is_null(nan_is_null=True), dtype=bool)


def open_table(path: str, reading: Reading, say: Callable[[str], None] | None = None) -> Table:
    """Open files with named columns and look at their header.

    Parameters
    ----------
    path : str
    reading : Reading
    say : callable, optional
        Takes the line that says how they are read, where that is not as one would expect.

    Raises
    ------
    InvalidInputError
        Where there is no such file, it cannot be read, or its fields are not separated as
        expected.
    """
    if not os.path.exists(path) and not any(sign in path for sign in "*?["):
        raise InvalidInputError(f"There is no file {path}.")
    files = find_files(path)
    kind = ending(files[0])
    if kind not in FORMATS:
        raise InvalidInputError(
            f"{files[0]} cannot be used: give a file that ends in one of {', '.join(FORMATS)}."
        )
    csv = CsvOptions(
        reading.separator,
        tuple(reading.missing),
        decimal=reading.decimal,
        thousands=reading.thousands,
        encoding=reading.encoding,
    )
    first = ArrowReader(files, FORMATS[kind], (), None, None, csv).open_file(files[0])
    check_names(files[0], first.schema.names)
    kinds: dict[str, str] = {}
    for column in first.schema:
        kinds[column.name] = str(column.type)
        with suppress(InvalidInputError):
            kinds[column.name] = kind_of_type(column.name, column.type, path)
    dates = frozenset(n for n, kind in kinds.items() if kind.startswith(("date", "timestamp")))
    if isinstance(first, CsvFile):
        _check_delimiter(files[0], first.seen.dialect.delimiter, list(kinds))
    integers, told = getattr(first, "integers", ()), str(getattr(first, "told", ""))
    if say is not None and told:
        say(f"lssvm: {os.path.basename(files[0])} is read as {told}")
    return Table(path, kinds, csv, frozenset(integers), told, dates)


@contextmanager
def open_input(
    path: str, reading: Reading, say: Callable[[str], None] | None = None
) -> Iterator[Table]:
    """Open a table; '-' is standard input, CSV or Parquet, kept in a temporary file meanwhile."""
    if path != "-":
        yield open_table(path, reading, say)
        return
    with tempfile.TemporaryDirectory() as folder:
        raw = os.path.join(folder, "standard input")
        with open(raw, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        with open(raw, "rb") as file:
            kind = ".parquet" if file.read(4) == b"PAR1" else ".csv"
        name = os.path.join(folder, f"stdin{kind}")
        os.rename(raw, name)
        yield open_table(name, reading, say)


def check_writable(
    path: str | None, endings: Sequence[str] = (), inputs: Sequence[str] = (), stdout: bool = False
) -> None:
    """Raise where a file could not be written, or is one of the inputs; nothing is left behind.

    Examples
    --------
    >>> from lssvm.cli.tables import check_writable
    >>> check_writable("no such folder/model.lssvm")
    Traceback (most recent call last):
    ...
    lssvm._core.errors.InvalidInputError: ...no such folder/model.lssvm cannot be written: ...
    """
    if path is None or (stdout and path == "-"):
        return
    if path == "-":
        raise InvalidInputError("- (standard output) cannot be used here: give the name of a file.")
    if endings and os.path.splitext(path)[1].lower() not in endings:
        raise InvalidInputError(f"{path} has to end in {' or '.join(endings)}.")
    folder = os.path.dirname(os.path.abspath(path))
    reason = ""
    if any(os.path.exists(p) and os.path.realpath(p) == os.path.realpath(path) for p in inputs):
        reason = "it is the input"
    elif os.path.isdir(path):
        reason = "it is a folder"
    elif not os.path.isdir(folder):
        reason = f"there is no folder {folder}"
    elif os.path.exists(path) and not os.access(path, os.W_OK):
        reason = "the file there may not be changed"
    else:
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            reason = error.strerror or str(error)
    if reason:
        raise InvalidInputError(f"{path} cannot be written: {reason}.")


def short_list(names: Sequence[str]) -> str:
    """Return names for a message, the first dozen of them.

    Examples
    --------
    >>> from lssvm.cli.tables import short_list
    >>> short_list(["a", "b"])
    "'a', 'b'"
    """
    text = ", ".join(repr(name) for name in names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{text} and {more} more" if more > 0 else text


def _check_delimiter(file: str, delimiter: str, names: Sequence[str]) -> None:
    """Raise where the header seems to have another delimiter than the one that was said."""
    best = max(DELIMITERS, key=names[0].count)
    if len(names) == 1 and names[0].count(best) and best != delimiter:
        shown = "\\t" if best == "\t" else best
        raise InvalidInputError(
            f"{file} is one column when it is cut at {delimiter!r}: its fields seem to be "
            f"separated by {best!r}. Give --delimiter '{shown}'."
        )
