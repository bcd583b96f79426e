"""`lssvm evaluate`: how good a model is on rows with a known target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lssvm._core.errors import InvalidInputError
from lssvm.cli.console import Output
from lssvm.cli.models import Model, as_given, is_classifier, load_model, model_blocks, model_scan
from lssvm.cli.option_groups import option
from lssvm.cli.options import TARGET, DataFile, General, ModelFile, Reading

if TYPE_CHECKING:
    from lssvm.data import Scan
    from lssvm.report.measures import ClassPredictions, NumberPredictions

_RANKED = 1_000_000  # rows up to which they are ranked by scores, beyond by probabilities


@dataclass(frozen=True)
class Measured:
    """What is measured."""

    target: str | None = option(None, "Column to compare with.", names=TARGET)
    weight: str | None = option(None, "Column of sample weights.")
    held_out: bool = option(
        False, "Only the rows that `train` held out of this same file.", names=("--held-out",)
    )


def evaluate(
    model: ModelFile, data: DataFile, reading: Reading, general: General, measured: Measured
) -> None:
    """Measure a model on rows with a known target.

    Rows the model was trained on make it look better than it is; --held-out leaves them away.
    """
    from lssvm.cli.tables import open_input

    loaded = load_model(model)
    with open_input(data, reading, general.output.note) as table:
        rows = model_scan(loaded.model, table, loaded.target(measured.target), measured.weight)
        held = loaded.parts(table, rows)[1] if measured.held_out else rows
        if held is None:
            raise InvalidInputError(
                f"--held-out needs the file that the model was trained on, with rows held out "
                f"(train --test): {data} is another one, or none were."
            )
        metrics = measure(loaded.model, held)
    show_metrics(general.output, metrics)
    general.output.line(headline(metrics, "held-out" if measured.held_out else ""))
    general.output.result({"model": model, "data": data, **metrics})


def measure(model: Model, data: Scan) -> dict[str, Any]:
    """Return the metrics of a model on rows with a target, as `metrics_of` does.

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
            X, classes = as_given(model, block, data.schema), np.asarray(model.classes_)
            parts.append(
                predict_classes(model, X, block.target, classes, block.weight, scores=ranked)
            )
    if not parts:
        raise InvalidInputError("No row to measure on has a class that the model knows.")
    return metrics_of(join_predictions(parts), np.concatenate([np.empty(0), *unknown]))


def metrics_of(found: ClassPredictions | NumberPredictions, unknown: Any = ()) -> dict[str, Any]:
    """Return metrics, those of the report, in types that JSON knows.

    Parameters
    ----------
    found : ClassPredictions or NumberPredictions
    unknown : array, default=()
        Weights of rows whose class the model has not seen: they count as wrong.

    Returns
    -------
    dict
        Classes: ``accuracy`` with an interval of 95 %, ``baseline`` (of always saying the most
        frequent class), the figures of `lssvm.report.measures.class_figures`, ``confusion`` and
        per-class figures. Numbers: those of `NUMBER_FIGURES`, ``bias`` and ``baseline_rmse`` (of
        always saying the mean).
    """
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
    hits, weight = found.labels == found.decided, found.weight
    if len(unknown):
        weight = np.append(np.ones(len(found)) if weight is None else weight, unknown)
        hits = np.append(hits, np.zeros(len(unknown), dtype=bool))
    share, low, high = measures.proportion_interval(hits, weight)
    return {
        "rows": len(found) + len(unknown),
        "accuracy": share,
        "accuracy_interval": (low, high),
        "error": 1.0 - share,
        "baseline": measures.baseline_accuracy(found)[0] * total / (total + others),
        **measures.figures(measures.class_figures(found), found),
        **({"rows_of_unknown_classes": others} if others else {}),
        "classes": measures.class_table(found),
        "confusion": measures.confusion(found).tolist(),
    }


def headline(metrics: dict[str, Any], kind: str = "") -> str:
    """Return the one line that says how good a model is.

    Examples
    --------
    >>> from lssvm.cli.evaluating import headline
    >>> headline({"rmse": 2.5, "baseline_rmse": 8.0, "r2": 0.91, "rows": 100}, "held-out")
    'RMSE 2.5, R2 0.91 on 100 held-out rows (always saying the mean: RMSE 8)'
    """
    rows = f"on {metrics['rows']:,} {kind} rows".replace("  ", " ")
    if "accuracy" not in metrics:
        return (
            f"RMSE {metrics['rmse']:.4g}, R2 {metrics['r2']:.3g} {rows} (always saying the mean: "
            f"RMSE {metrics['baseline_rmse']:.4g})"
        )
    low, high = metrics["accuracy_interval"]
    unknown = metrics.get("rows_of_unknown_classes")
    return (
        f"accuracy {metrics['accuracy']:.1%} (95 % interval {low:.1%} to {high:.1%}) {rows} "
        f"(always saying the same class: {metrics['baseline']:.1%})"
    ) + ("; some have classes that the model has not seen" if unknown else "")


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
