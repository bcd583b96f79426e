"""`lssvm predict`: a model on new rows, from files or pipes to files or pipes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lssvm._core.errors import InvalidInputError
from lssvm.cli.options import General, ModelFile, Reading

if TYPE_CHECKING:
    from lssvm.cli.tables import Table

ENDINGS = (".csv", ".parquet", ".arrow")


def predict(
    model: ModelFile,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="New rows: CSV, Parquet or Arrow; - is stdin.")
    ],
    reading: Reading,
    general: General,
    out: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="CSV, Parquet, Arrow; - is stdout"),
    ] = "-",
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of every class.")
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="COVERAGE",
            help="Add intervals that hold a new value so often, such as 0.9 (classes: sets).",
        ),
    ] = None,
    keep: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="Copy a column of the input (* is all)."),
    ] = (),  # type: ignore[assignment]
) -> None:
    """Predict new rows with a model.

    Block by block: they need not fit in memory. The columns of the model are found by their names;
    others are not looked at. A file appears when it is complete.
    """
    from lssvm.cli.cards import load_model
    from lssvm.cli.measuring import is_classifier, model_blocks, model_scan
    from lssvm.cli.tables import check_writable, open_input

    if general.json and out == "-":
        raise InvalidInputError("--json tells about a file of predictions: give -o FILE.")
    check_writable(out, ENDINGS, (data, model), stdout=True)
    loaded = load_model(model).model
    if proba and not (is_classifier(loaded) and hasattr(loaded, "predict_proba")):
        raise InvalidInputError("--proba needs a classifier with calibrated probabilities.")
    if interval is not None and not 0.0 < interval < 1.0:
        raise InvalidInputError(f"--interval {interval} is not usable: give a number below 1.")
    rows = 0
    with open_input(data, reading) as table:
        rowset = model_scan(loaded, table, None)
        kept = _Kept(table, list(keep))
        with _writer(out) as write:
            for block, X in model_blocks(loaded, rowset):
                columns = kept.take(len(block))
                columns |= predicted(loaded, X, proba, interval)
                write(columns)
                rows += len(block)
    general.output.note(f"lssvm: {rows:,} rows predicted" + ("" if out == "-" else f" into {out}"))
    general.output.result({"model": model, "data": data, "output": out, "rows": rows})


def predicted(model: Any, X: Any, proba: bool, interval: float | None) -> dict[str, Any]:
    """Return the columns of predictions for one block."""
    import numpy as np

    from lssvm.cli.measuring import is_classifier

    found: dict[str, Any] = {"prediction": np.asarray(model.predict(X))}
    if proba:
        p = model.predict_proba(X)
        found |= {f"p_{label}": p[:, j] for j, label in enumerate(model.classes_.tolist())}
    if interval is None:
        return found
    if is_classifier(model):
        inside = model.predict_set(X, coverage=interval)
        names = [str(label) for label in model.classes_.tolist()]
        found["set"] = np.array(
            ["|".join(n for n, i in zip(names, row, strict=True) if i) for row in inside.tolist()]
        )
    else:
        ends = model.predict_interval(X, coverage=interval)
        found |= {"lower": ends[:, 0], "upper": ends[:, 1]}
    return found


class _Kept:
    """Columns of the input, as they stand there, in step with the blocks of predictions."""

    def __init__(self, table: Table, names: list[str]) -> None:
        names = table.names if "*" in names else names
        table.need(names, ", which is to be kept")
        clash = [n for n in names if n in ("prediction", "lower", "upper", "set")]
        if clash:
            raise InvalidInputError(
                f"The column {clash[0]!r} cannot be kept: predictions have a column of that name."
            )
        self.names = names
        self._batches = _raw_batches(table, names) if names else iter(())
        self._left: Any = None

    def take(self, rows: int) -> dict[str, Any]:
        """Return the next rows."""
        if not self.names:
            return {}
        import pyarrow as pa

        parts = [] if self._left is None else [self._left]
        while sum(part.num_rows for part in parts) < rows:
            parts.append(pa.Table.from_batches([next(self._batches)]))
        whole = pa.concat_tables(parts)
        self._left = whole.slice(rows)
        return {name: whole.slice(0, rows).column(name) for name in self.names}


def _raw_batches(table: Table, names: list[str]) -> Iterator[Any]:
    """Yield columns of all files with the types they have there (CSV: as text)."""
    from dataclasses import replace

    from lssvm.blocks.arrow import FORMATS, ArrowReader
    from lssvm.blocks.opening import ending, find_files

    files = find_files(table.path)
    csv = replace(table.csv, null_values=(), types=dict.fromkeys(names, "text"))
    reader = ArrowReader(files, FORMATS[ending(files[0])], (), None, None, csv)
    for file in files:
        for batch in reader._open(file).batches(names, 65_536):
            if batch.num_rows:
                yield batch


@contextmanager
def _writer(out: str) -> Iterator[Any]:
    """Give a function that writes columns to a file or to standard output."""
    from lssvm._core.atomic import replacing

    if out == "-":
        yield _TableFile(sys.stdout, ".csv").write
        sys.stdout.flush()
        return
    with replacing(out) as name:
        file = _TableFile(name, os.path.splitext(out)[1].lower())
        try:
            yield file.write
        finally:
            file.close()


class _TableFile:
    """A table that grows by blocks."""

    def __init__(self, where: Any, ending: str) -> None:
        self.where, self.ending = where, ending
        self._schema: Any = None
        self._file: Any = None

    def write(self, columns: dict[str, Any]) -> None:
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

    def _write_csv(self, columns: dict[str, Any]) -> None:
        import csv

        if self._file is None:
            named = isinstance(self.where, str)
            self._file = (
                open(self.where, "w", encoding="utf-8", newline="") if named else self.where
            )
            csv.writer(self._file, lineterminator="\n").writerow(columns)
        lists = [_listed(values) for values in columns.values()]
        csv.writer(self._file, lineterminator="\n").writerows(zip(*lists, strict=True))

    def close(self) -> None:
        """End the file; standard output stays open."""
        if self._file is not None and isinstance(self.where, str):
            self._file.close()


def _listed(values: Any) -> list[Any]:
    return values.to_pylist() if hasattr(values, "to_pylist") else values.tolist()  # type: ignore[no-any-return]


def _arrow(values: Any) -> Any:
    import pyarrow as pa

    if hasattr(values, "combine_chunks"):
        return values
    return pa.array(values.astype(object) if values.dtype.kind == "U" else values)
