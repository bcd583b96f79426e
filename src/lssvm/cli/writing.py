"""Tables that commands write: CSV, Parquet or Arrow, block by block, to a file or a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

ENDINGS = (".csv", ".parquet", ".arrow")
_RUN = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet takes cells that begin so for formulas


def escaped(value: Any) -> Any:
    """Return a cell of text that no spreadsheet runs: with an apostrophe before what it would.

    Examples
    --------
    >>> from lssvm.cli.writing import escaped
    >>> escaped("=1+1"), escaped("a=b"), escaped("-1.5"), escaped(None)
    ("'=1+1", 'a=b', '-1.5', None)
    """
    if not isinstance(value, str) or not value.startswith(_RUN):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value  # a number that is kept as it was written


@contextmanager
def table_writer(out: str, *, escape: bool = True) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Give a function that writes columns; a file appears when it is complete.

    Parameters
    ----------
    out : str
        CSV, Parquet or Arrow by its ending; - is CSV on standard output.
    escape : bool, default=True
        Whether cells of text and names in CSV that begin with =, +, -, @, a tab or a carriage
        return get an apostrophe before them.
    """
    from lssvm._core.atomic import replacing

    if out == "-":
        yield _TableFile(sys.stdout, ".csv", escape).write
        sys.stdout.flush()
        return
    with replacing(out) as name:
        file = _TableFile(name, os.path.splitext(out)[1].lower(), escape)
        try:
            yield file.write
        finally:
            file.close()


class _TableFile:
    """A table that grows by blocks."""

    def __init__(self, where: Any, ending: str, escape: bool) -> None:
        self.where, self.ending, self.escape = where, ending, escape
        self._schema: Any = None
        self._file: Any = None

    def write(self, columns: Mapping[str, Any]) -> None:
        """Add rows."""
        import pyarrow as pa

        if self.ending == ".csv":
            self._write_csv(columns)
            return
        table = pa.table({name: _arrow(values) for name, values in columns.items()})
        if self._file is None:
            from pyarrow import parquet

            kind = parquet.ParquetWriter if self.ending == ".parquet" else pa.ipc.new_file
            self._schema, self._file = table.schema, kind(self.where, table.schema)
        self._file.write_table(table.cast(self._schema))

    def _write_csv(self, columns: Mapping[str, Any]) -> None:
        import csv

        say = escaped if self.escape else (lambda value: value)
        rows: list[Any] = []
        if self._file is None:
            self._file = self.where
            if isinstance(self.where, str):
                self._file = open(self.where, "w", encoding="utf-8", newline="")
            rows.append(columns)
        lists = map(_listed, columns.values())
        rows += zip(*lists, strict=True)
        csv.writer(self._file, lineterminator="\n").writerows(map(say, row) for row in rows)

    def close(self) -> None:
        """End the file; standard output stays open."""
        if self._file is not None and isinstance(self.where, str):
            self._file.close()


def _listed(values: Any) -> Any:
    if hasattr(values, "to_pylist"):
        return values.to_pylist()
    return values.tolist() if hasattr(values, "tolist") else values


def _arrow(values: Any) -> Any:
    import pyarrow as pa

    if hasattr(values, "combine_chunks"):
        return values
    return pa.array(values.astype(object) if values.dtype.kind == "U" else values)
