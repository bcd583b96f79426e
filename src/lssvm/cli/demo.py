"""`lssvm demo` and `lssvm datasets`: the bundled data sets."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from lssvm import datasets as bundled
from lssvm._core.errors import InvalidInputError
from lssvm.cli.console import Output, shown, table_writer
from lssvm.cli.models import load_model, model_rows, model_scan
from lssvm.cli.options import Datasets, Demo, Predict, Reading, Train
from lssvm.cli.predicting import predict
from lssvm.cli.tables import check_writable, open_table
from lssvm.cli.training import train

DEMO = {"concrete": "the strength of concrete", "german_credit": "who repays a credit"}
PRESET = None  # the default


def datasets(options: Datasets) -> None:
    """List the bundled data sets, or write one."""
    output, name, out = options.output, options.name, options.out
    if name is not None:
        if options.json and out == "-":
            raise InvalidInputError("--json describes a file that is written: give -o FILE.")
        check_writable(out, (".csv",), stdout=True)
        rows = write_dataset(name, out)
        output.note(f"{rows:,} rows of {name} written{'' if out == '-' else f' into {out}'}")
        if out != "-":
            output.result({"name": name, "rows": rows, "output": out})
        return
    listed = []
    for known in bundled.list_datasets():
        loaded = vars(bundled)[f"load_{known}"]()
        classes = len(loaded.target_names)
        listed.append(
            {
                "name": known,
                "rows": len(loaded.target),
                "columns": len(loaded.feature_names),
                "target": "target",
                "predicts": f"{classes} classes" if classes else "numbers",
                "description": loaded.description,
            }
        )
    columns = ["name", "rows", "columns", "predicts", "description"]
    rows_of_text = [[str(entry[key]).split(". ")[0] for key in columns] for entry in listed]
    title = "lssvm datasets NAME -o FILE.csv writes one; its target is the column 'target'"
    output.table(title, columns, rows_of_text, left=(0, 3, 4))
    output.result({"datasets": listed})


def write_dataset(name: str, out: str) -> int:
    """Write a bundled data set as CSV, classes by their names; return the number of rows."""
    if name not in bundled.list_datasets():
        raise InvalidInputError(
            f"There is no data set {name!r}: give one of {', '.join(bundled.list_datasets())}."
        )
    loaded = vars(bundled)[f"load_{name}"]()
    target = loaded.target
    if loaded.target_names:
        target = np.array(loaded.target_names)[np.unique(target, return_inverse=True)[1]]
    columns: dict[str, Any] = {}
    for feature, values in zip(loaded.feature_names, loaded.data.T, strict=True):
        whole = [isinstance(v, float) and v.is_integer() for v in values.tolist()]
        numbers = zip(values.tolist(), whole, strict=True)
        columns[feature] = [int(v) if is_whole else v for v, is_whole in numbers]
    with table_writer(out) as write:
        write(columns | {"target": target})
    return len(target)


def demo(options: Demo) -> None:
    """Train on two bundled data sets."""
    folder, output = options.folder, options.output
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise InvalidInputError(f"{folder} cannot be made a folder: {reason}.") from error
    for name, subject in DEMO.items():
        endings = ".csv", ".lssvm", ".html", "-predictions.csv"
        files = [os.path.join(folder, f"{name}{ending}") for ending in endings]
        data, model, report, predictions = files
        write_dataset(name, data)
        output.line(f"# {name}: {subject}")
        output.line(f"$ lssvm train {data} --target target -o {model} --report {report}")
        general: dict[str, Any] = {k: vars(options)[k] for k in ("json", "quiet", "seed")}
        written: dict[str, Any] = {"data": data, "out": model, "report": report}
        train(Train(target="target", preset=PRESET, **written, **general))
        classes = name == "german_credit"
        extra = "--proba" if classes else "--interval 0.9"
        output.line(f"$ lssvm predict {model} {data} {extra} -o {predictions}")
        wanted: dict[str, Any] = {"proba": classes, "interval": None if classes else 0.9}
        quiet = options.quiet or options.json
        predict(Predict(model=model, data=data, out=predictions, quiet=quiet, **wanted))
        if not classes:
            explain_first(model, data, output)
        output.line(f"open {report} in a browser")


def explain_first(model: str, data: str, output: Output) -> None:
    """Show what every column adds to the prediction of the first row of a file."""
    loaded: Any = load_model(model).model
    rows = model_scan(loaded, open_table(data, Reading()), None)
    first = next(rows.blocks()).take(np.arange(1))
    explained = loaded.explain(model_rows(loaded, first), n_background=50)
    base, total = float(explained.base_values[0]), float(explained.prediction[0])
    names, data, values = explained.feature_names, explained.data[0], explained.values[0]
    order = np.argsort(-np.abs(values))
    output.table(
        f"What the first row's columns add to the mean prediction {shown(base)}: {shown(total)}",
        ["column", "value", "adds"],
        [[names[j], shown(float(data[j])), f"{values[j]:+.1f}"] for j in order],
    )
