"""`lssvm predict`, `evaluate`, `info` and `export`: what a model file is used for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from lssvm._core.errors import InvalidInputError
from lssvm.cli.console import ENDINGS, Output, percent, shown, table_writer
from lssvm.cli.models import (
    Loaded,
    Model,
    as_given,
    is_classifier,
    last_step,
    learned,
    load_model,
    model_blocks,
    model_scan,
    prepared_table,
)
from lssvm.cli.options import OUTPUT, TARGET, DataFile, General, ModelFile, Reading, option

if TYPE_CHECKING:
    from lssvm.cli.tables import Table
    from lssvm.data import Scan
    from lssvm.report.measures import ClassPredictions, NumberPredictions

NewRows = Annotated[
    str, Argument(metavar="DATA", help="New rows: CSV, Parquet or Arrow; - is stdin.")
]


@dataclass(frozen=True)
class Written:
    """What is written in addition to the predictions, and where."""

    out: str = option("-", "CSV, Parquet, Arrow; - is stdout", "FILE", OUTPUT)
    proba: bool = option(False, "Add the probability of every class.", names=("--proba",))
    interval: float | None = option(
        None,
        "Add intervals that hold a new value with this probability, such as 0.9 (classes: sets).",
        "COVERAGE",
    )
    keep: list[str] = option((), "Copy a column of the input (* is all).", "COLUMN")  # noqa: RUF009
    check: bool = option(
        False,
        "Report what differs from the training rows: new categories, shifted columns, far rows.",
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

    Rows are read block by block and need not fit in memory. The columns of the model are found by
    their names; other columns are ignored. A file appears when it is complete.
    """
    from lssvm.cli.checking import RowCheck
    from lssvm.cli.tables import check_writable, open_input
    from lssvm.plots.base import WithIntervals, has_probabilities

    out, interval = written.out, written.interval
    if general.json and out == "-":
        raise InvalidInputError("--json describes a file of predictions: give -o FILE.")
    check_writable(out, ENDINGS, (data, model), stdout=True)
    stored = load_model(model)
    loaded, reading = stored.model, stored.reading(reading)
    if written.proba and not (is_classifier(loaded) and has_probabilities(loaded)):
        raise InvalidInputError("--proba needs a classifier with calibrated probabilities.")
    if interval is not None and not 0.0 < interval < 1.0:
        raise InvalidInputError(f"--interval {interval} is not usable: give a number below 1.")
    last = last_step(loaded)
    able = has_probabilities(last) if is_classifier(loaded) else isinstance(last, WithIntervals)
    if interval is not None and not able:
        kind = type(last_step(loaded)).__name__
        raise InvalidInputError(f"--interval is not possible with a {kind}: it has no intervals.")
    rows = 0
    with open_input(data, reading, general.output.note) as table:
        scanned, kept = model_scan(loaded, table, None), _Kept(table, list(written.keep))
        check = RowCheck(loaded) if written.check else None
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


_RANKED = 1_000_000  # rows up to which they are ranked by scores, beyond by probabilities


@dataclass(frozen=True)
class Measured:
    """What is measured."""

    target: str | None = option(None, "Column to compare with.", names=TARGET)
    weight: str | None = option(None, "Column of sample weights.")
    positive: str | None = option(
        None,
        "Of two classes, the one that precision and recall are about; that of `train`.",
        "CLASS",
    )
    held_out: bool = option(
        False, "Only the rows that `train` held out of this same file.", names=("--held-out",)
    )


def evaluate(
    model: ModelFile, data: DataFile, reading: Reading, general: General, measured: Measured
) -> None:
    """Measure a model on rows with a known target.

    Rows the model was trained on make it look better than it is; --held-out leaves them out.
    """
    from lssvm.cli.tables import open_input

    loaded = load_model(model)
    with open_input(data, loaded.reading(reading), general.output.note) as table:
        rows = model_scan(loaded.model, table, loaded.target(measured.target), measured.weight)
        held = loaded.parts(table, rows)[1] if measured.held_out else rows
        if held is None:
            raise InvalidInputError(
                f"--held-out needs the file that the model was trained on, with rows held out "
                f"(train --test): {data} is another one, or none were."
            )
        metrics = measure(loaded.model, held, measured.positive or loaded.card.get("positive"))
    show_metrics(general.output, metrics)
    for line in headlines(metrics, "held-out" if measured.held_out else ""):
        general.output.line(line)
    general.output.result({"model": model, "data": data, **metrics})


def measure(model: Model, data: Scan, positive: Any = None) -> dict[str, Any]:
    """Return the metrics of a model on rows with a target, as `metrics_of` does.

    Parameters
    ----------
    model : fitted model
    data : Scan
    positive : object or None, default=None
        The positive class of two; None: the rarer one of these rows.

    Notes
    -----
    The rows are read block by block; memory of a block, and of 8 (q + 3) bytes a row for q classes
    or 16 for numbers.
    """
    import numpy as np

    from lssvm.report.measures import join_predictions, predict_classes, predict_numbers

    parts: list[Any] = []
    unknown: list[Any] = []  # weights of rows whose class the model has not seen
    ranked = data.n_rows <= _RANKED
    for block, X in model_blocks(model, data):
        if not is_classifier(model):
            parts.append(predict_numbers(model, X, block.target, block.weight, ()))
            continue
        known = np.isin(block.target, model.classes_)
        if not known.all():
            weight = np.ones(len(block)) if block.weight is None else block.weight
            unknown.append(weight[~known])
            block = block.take(np.flatnonzero(known))
        if len(block):
            X, classes = as_given(model, block), np.asarray(model.classes_)
            parts.append(
                predict_classes(model, X, block.target, classes, block.weight, scores=ranked)
            )
    if not parts:
        raise InvalidInputError("No row to measure on has a class that the model knows.")
    found = join_predictions(parts)
    return metrics_of(found, np.concatenate([np.empty(0), *unknown]), positive)


def metrics_of(
    found: ClassPredictions | NumberPredictions, unknown: Any = (), positive: Any = None
) -> dict[str, Any]:
    """Return metrics, those of the report, in types that JSON knows.

    Parameters
    ----------
    found : ClassPredictions or NumberPredictions
    unknown : array, default=()
        Weights of rows whose class the model has not seen: they count as wrong.
    positive : object or None, default=None
        The positive class of two; None: the rarer one.

    Returns
    -------
    dict
        Classes: ``accuracy`` with an interval of 95 %, ``baseline`` (that of the most frequent
        class), the figures of `lssvm.report.measures.class_figures`, ``confusion`` and per-class
        figures. Numbers: those of `NUMBER_FIGURES`, ``bias`` and ``baseline_rmse`` (that of the
        mean).
    """
    from dataclasses import replace

    import numpy as np

    from lssvm.report import measures

    total = float(len(found)) if found.weight is None else float(found.weight.sum())
    others = float(np.sum(unknown))
    if total + others == 0:
        raise InvalidInputError("The rows to measure on have a total weight of zero.")
    if isinstance(found, measures.NumberPredictions):
        y, off = found.Y[:, 0], found.predicted[:, 0] - found.Y[:, 0]
        mean = np.average(y, weights=found.weight)
        return {
            "rows": len(found),
            **measures.figures(measures.NUMBER_FIGURES, found),
            "bias": float(np.average(off, weights=found.weight)),
            "baseline_rmse": float(np.sqrt(np.average((y - mean) ** 2, weights=found.weight))),
        }
    known = found.classes[found.labels]
    found = replace(found, positive=measures.positive_class(found.classes, known, positive))
    hits, weight = found.labels == found.decided, found.weight
    if len(unknown):
        weight = np.append(np.ones(len(found)) if weight is None else weight, unknown)
        hits = np.append(hits, np.zeros(len(unknown), dtype=bool))
    share, low, high = measures.proportion_interval(hits, weight)
    two = len(found.classes) == 2
    return {
        "rows": len(found) + len(unknown),
        "accuracy": share,
        "accuracy_interval": (low, high),
        "error": 1.0 - share,
        "baseline": measures.baseline_accuracy(found)[0] * total / (total + others),
        **({"positive": measures.written_label(found.classes[found.positive])} if two else {}),
        **measures.figures(measures.class_figures(found), found),
        **({"rows_of_unknown_classes": others} if others else {}),
        "classes": measures.class_table(found),
        "confusion": measures.confusion(found).tolist(),
    }


def headlines(metrics: dict[str, Any], kind: str = "") -> list[str]:
    """Return the lines that say how good a model is, next to the simplest one.

    Examples
    --------
    >>> from lssvm.cli.predicting import headlines
    >>> headlines({"rmse": 2.5, "baseline_rmse": 8.0, "r2": 0.91, "rows": 100}, "held-out")
    ['R2 0.910, RMSE 2.5 on 100 held-out rows (predicting the mean: RMSE 8)']
    """
    rows = f"on {metrics['rows']:,} {kind} rows".replace("  ", " ")
    if "accuracy" not in metrics:
        return [
            f"R2 {metrics['r2']:.3f}, RMSE {shown(float(metrics['rmse']))} {rows} (predicting the "
            f"mean: RMSE {shown(float(metrics['baseline_rmse']))})"
        ]
    low, high = map(percent, metrics["accuracy_interval"])
    unknown = metrics.get("rows_of_unknown_classes")
    first = (
        f"accuracy {percent(metrics['accuracy'])} (95 % interval {low} to {high}) {rows} "
        f"(most frequent class: {percent(metrics['baseline'])})"
    ) + ("; some have classes that the model has not seen" if unknown else "")
    if "positive" not in metrics or not {"precision", "recall"} <= set(metrics):
        return [first]
    ranked = f", ROC AUC {metrics['roc_auc']:.3f}" if "roc_auc" in metrics else ""
    return [
        first,
        f"class {metrics['positive']!r}: precision {percent(metrics['precision'])}, recall "
        f"{percent(metrics['recall'])}{ranked}",
    ]


def show_metrics(output: Output, metrics: dict[str, Any]) -> None:
    """Write metrics as tables."""
    single = {k: value for k, value in metrics.items() if isinstance(value, (int, float))}
    output.table(
        "", ["metric", "value"], [[key.replace("_", " "), value] for key, value in single.items()]
    )
    classes = metrics.get("classes", ())
    if not classes:
        return
    columns = ["class", "precision", "recall"]
    heads = [f"called {entry['class']}" for entry in classes] if len(classes) <= 12 else []
    rows = [
        [*(entry[key] for key in columns), *(f"{count:g}" for count in counts[: len(heads)])]
        for entry, counts in zip(classes, metrics["confusion"], strict=True)
    ]
    output.table("", [*columns, *heads], rows)


def info(model: ModelFile, general: General) -> None:
    """Show what a model file contains."""
    loaded, output = load_model(model), general.output
    facts = describe(model, loaded)
    rows = [[name.replace("_", " "), _text(value)] for name, value in facts.items()]
    output.table(os.path.basename(model), ["", ""], rows, left=(0, 1))
    test = loaded.card.get("test")
    if isinstance(test, dict):
        for line in headlines(test, str(loaded.card.get("tested") or "held-out")):
            output.line(f"test {line}")
    output.result({**facts, "card": loaded.card})


def describe(path: str, loaded: Loaded) -> dict[str, Any]:
    """Return what is known about a model."""
    from lssvm.io import read_header

    whole, card, header = loaded.model, loaded.card, read_header(path)
    model = last_step(whole)
    fitted = learned(model)
    vectors = fitted.get("support_vectors_")
    facts: dict[str, Any] = {
        "bytes": os.path.getsize(path),
        "model": type(model).__name__,
        "kernel": str(model.get_params(deep=False).get("kernel", "")),
        "C": fitted.get("C_"),
        "gamma": fitted.get("gamma_"),
        "support_vectors": None if vectors is None else len(vectors),
        "prototypes": fitted.get("n_prototypes_"),
    }
    for name in ("task", "target", "data", "rows", "cv_score", "cv_score_name", "seconds", "seed"):
        facts[name] = card.get(name)
    if "classes_" in fitted:
        facts["classes"] = model.classes_.tolist()
    ready = prepared_table(whole)
    if "configurations_" in fitted:
        lines = model.summary_.splitlines()
        facts["chosen"] = [line.strip().removeprefix("- ").rstrip(".") for line in lines]
    if ready is not None:
        used = [column for column in ready.columns if column.encoding is not None]
        facts["columns"] = {column.name: column.kind for column in used}
        facts["features"] = ready.n_features
    elif "feature_names_in_" in fitted:
        facts["columns"] = dict.fromkeys(map(str, model.feature_names_in_), "number")
    for name in ("format", "version", "schema_sha256"):
        facts[name] = header.get(name)
    return {name: value for name, value in facts.items() if value is not None}


def export(
    model: ModelFile,
    out: Annotated[str, Argument(metavar="MODEL.onnx", help="The ONNX file to write.")],
    general: General,
) -> None:
    """Write a model as ONNX for other programs.

    The preparation of its columns is part of it: it has an input for every raw column.
    """
    from lssvm.cli.tables import check_writable

    check_writable(out, (".onnx",), (model,))
    write_onnx(load_model(model).model, out)
    size = os.path.getsize(out)
    general.output.line(f"{out} written ({size / 1024:.1f} kB)")
    general.output.result({"model": model, "output": out, "bytes": size})


def write_onnx(model: Model | None, out: str) -> None:
    """Write a model as ONNX; without one, raise where that would not be possible."""
    from lssvm.onnx import export as write
    from lssvm.onnx.graph import need_onnx

    need_onnx()
    if model is not None:
        write(model, out)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} ({kind})" for name, kind in value.items())
    if isinstance(value, list):
        items = [str(item) for item in value]
        return ("; " if any(", " in item for item in items) else ", ").join(items)
    if isinstance(value, float):
        return shown(value)
    return str(value)
