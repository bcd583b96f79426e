"""`lssvm evaluate`: how good a model is on rows with a known target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lssvm.cli.options import DataFile, General, ModelFile, Reading

if TYPE_CHECKING:
    from lssvm.cli.console import Output


def evaluate(
    model: ModelFile,
    data: DataFile,
    reading: Reading,
    general: General,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column to compare with.")
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Column of sample weights.")] = None,
    held_out: Annotated[
        bool,
        typer.Option("--held-out", help="Only the rows that `train` held out of this same file."),
    ] = False,
) -> None:
    """Measure a model on rows with a known target.

    Rows the model was trained on make it look better than it is; --held-out leaves them away.
    """
    from lssvm._core.errors import InvalidInputError
    from lssvm.cli.cards import load_model
    from lssvm.cli.measuring import headline, measure, model_scan
    from lssvm.cli.tables import open_input

    loaded = load_model(model)
    output = general.output
    with open_input(data, reading) as table:
        rows = model_scan(loaded.model, table, loaded.target(target), weight)
        if held_out:
            _, held = loaded.parts(rows)
            if held is None:
                raise InvalidInputError(
                    f"--held-out needs the file that the model was trained on, with rows held out "
                    f"(train --test): {data} is another one, or none were."
                )
            rows = held
        metrics = measure(loaded.model, rows)
    show_metrics(output, metrics)
    output.line(headline(metrics, held_out))
    output.result({"model": model, "data": data, **metrics})


def show_metrics(output: Output, metrics: dict[str, Any]) -> None:
    """Write metrics as tables."""
    single = [
        [name.replace("_", " "), value]
        for name, value in metrics.items()
        if isinstance(value, (int, float))
    ]
    output.table("", ["metric", "value"], single)
    if "classes" not in metrics:
        return
    labels = [str(entry["class"]) for entry in metrics["classes"]]
    rows = [
        [
            entry["class"],
            entry["precision"],
            entry["recall"],
            *[f"{count:g}" for count in counts],
        ]
        for entry, counts in zip(metrics["classes"], metrics["confusion"], strict=True)
    ]
    if len(labels) <= 12:
        heads = [f"called {label}" for label in labels]
    else:
        heads, rows = [], [row[:3] for row in rows]
    output.table("", ["class", "precision", "recall", *heads], rows)
