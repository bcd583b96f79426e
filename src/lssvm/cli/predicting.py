"""`lssvm predict`: a model on new rows, from files or pipes to files or pipes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from lssvm._core.errors import InvalidInputError
from lssvm.cli.models import Model, is_classifier, last_step, load_model, model_blocks, model_scan
from lssvm.cli.option_groups import option
from lssvm.cli.options import OUTPUT, General, ModelFile, Reading
from lssvm.cli.writing import ENDINGS, table_writer

if TYPE_CHECKING:
    from lssvm.cli.tables import Table


NewRows = Annotated[
    str, Argument(metavar="DATA", help="New rows: CSV, Parquet or Arrow; - is stdin.")
]


@dataclass(frozen=True)
class Written:
    """What is written beside the predictions, and where."""

    out: str = option("-", "CSV, Parquet, Arrow; - is stdout", "FILE", OUTPUT)
    proba: bool = option(False, "Add the probability of every class.", names=("--proba",))
    interval: float | None = option(
        None,
        "Add intervals that hold a new value so often, such as 0.9 (classes: sets).",
        "COVERAGE",
    )
    keep: list[str] = option((), "Copy a column of the input (* is all).", "COLUMN")  # noqa: RUF009
    check: bool = option(
        False,
        "Say what is unlike the training rows: new categories, shifted columns, far rows.",
        names=("--check",),
    )
    escape: bool = option(
        True,
        "Put ' before text in CSV that spreadsheets would run.",
        names=("--escape/--no-escape",),
    )


def predict(
    model: ModelFile, data: NewRows, reading: Reading, general: General, written: Written
) -> None:
    """Predict new rows with a model.

    Block by block: they need not fit in memory. The columns of the model are found by their names;
    others are not looked at. A file appears when it is complete.
    """
    from lssvm.cli.checking import RowCheck
    from lssvm.cli.tables import check_writable, open_input

    out, interval = written.out, written.interval
    if general.json and out == "-":
        raise InvalidInputError("--json tells about a file of predictions: give -o FILE.")
    check_writable(out, ENDINGS, (data, model), stdout=True)
    loaded = load_model(model).model
    if written.proba and not (is_classifier(loaded) and hasattr(loaded, "predict_proba")):
        raise InvalidInputError("--proba needs a classifier with calibrated probabilities.")
    if interval is not None and not 0.0 < interval < 1.0:
        raise InvalidInputError(f"--interval {interval} is not usable: give a number below 1.")
    wanted = "predict_set" if is_classifier(loaded) else "predict_interval"
    if interval is not None and not hasattr(last_step(loaded), wanted):
        kind = type(last_step(loaded)).__name__
        raise InvalidInputError(f"--interval is not possible with a {kind}: it has no intervals.")
    rows = 0
    with open_input(data, reading, general.output.note) as table:
        scanned, kept = model_scan(loaded, table, None), _Kept(table, list(written.keep))
        check = RowCheck(loaded, scanned.schema) if written.check else None
        with table_writer(out, escape=written.escape) as write:
            for block, X in model_blocks(loaded, scanned):
                write(kept.take(len(block)) | predicted(loaded, X, written.proba, interval))
                rows += len(block)
                if check is not None:
                    check.add(block)
    general.output.note(f"lssvm: {rows:,} rows predicted" + ("" if out == "-" else f" into {out}"))
    for line in () if check is None else check.lines():
        general.output.note(f"lssvm: check: {line}")
    found = {} if check is None else {"check": check.result()}
    general.output.result({"model": model, "data": data, "output": out, "rows": rows, **found})


def predicted(model: Model, X: Any, proba: bool, interval: float | None) -> dict[str, Any]:
    """Return the columns of predictions for one block."""
    import numpy as np

    columns: dict[str, Any] = {"prediction": np.asarray(model.predict(X))}
    own = last_step(model)
    inner = X if own is model else model[:-1].transform(X)  # type: ignore[index]
    names = [str(label) for label in model.classes_.tolist()] if is_classifier(model) else []
    if proba:
        columns |= {f"p_{name}": p for name, p in zip(names, model.predict_proba(X).T, strict=True)}
    if interval is not None and names:
        inside = own.predict_set(inner, coverage=interval).tolist()
        columns["set"] = np.array(["|".join(compress(names, row)) for row in inside])
    elif interval is not None:
        columns["lower"], columns["upper"] = own.predict_interval(inner, coverage=interval).T
    return columns


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
        self._left: list[Any] = []

    def take(self, rows: int) -> dict[str, Any]:
        """Return the next rows."""
        if not self.names:
            return {}
        import pyarrow as pa

        while sum(table.num_rows for table in self._left) < rows:
            self._left.append(pa.Table.from_batches([next(self._batches)]))
        whole = pa.concat_tables(self._left)
        self._left = [whole.slice(rows)]
        return {name: whole.slice(0, rows).column(name) for name in self.names}
