"""`lssvm predict`: a model on new rows, from files or pipes to files or pipes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lssvm._core.errors import InvalidInputError
from lssvm.cli.options import General, ModelFile, Reading
from lssvm.cli.writing import ENDINGS, table_writer

if TYPE_CHECKING:
    from lssvm.cli.model_rows import Model
    from lssvm.cli.tables import Table


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
    escape: Annotated[
        bool,
        typer.Option(
            "--escape/--no-escape", help="Put ' before text in CSV that spreadsheets would run."
        ),
    ] = True,
) -> None:
    """Predict new rows with a model.

    Block by block: they need not fit in memory. The columns of the model are found by their names;
    others are not looked at. A file appears when it is complete.
    """
    from lssvm.cli.model_cards import load_model
    from lssvm.cli.model_rows import is_classifier, model_blocks, model_scan
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
        with table_writer(out, escape=escape) as write:
            for block, X in model_blocks(loaded, rowset):
                columns = kept.take(len(block))
                columns |= predicted(loaded, X, proba, interval)
                write(columns)
                rows += len(block)
    general.output.note(f"lssvm: {rows:,} rows predicted" + ("" if out == "-" else f" into {out}"))
    general.output.result({"model": model, "data": data, "output": out, "rows": rows})


def predicted(model: Model, X: Any, proba: bool, interval: float | None) -> dict[str, Any]:
    """Return the columns of predictions for one block."""
    import numpy as np

    from lssvm.cli.model_rows import is_classifier

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
        self._batches = table.raw_batches(names) if names else iter(())
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
