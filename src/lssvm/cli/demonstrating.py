"""`lssvm demo` and `lssvm datasets`: something to try it on."""

from __future__ import annotations

import os
from typing import Annotated, Any

from typer import Argument, Option

from lssvm._core.errors import InvalidInputError
from lssvm.cli.options import Columns, Fitting, General, Modelling, Reading, Seeded
from lssvm.cli.predicting import Written, predict
from lssvm.cli.training import Testing, train
from lssvm.cli.writing import table_writer

DEMO = "german_credit"
MODEL = Modelling()  # as it comes


def datasets(
    general: General,
    name: Annotated[
        str | None, Argument(metavar="[NAME]", help="Which one to write; none: list them.")
    ] = None,
    out: Annotated[
        str, Option("--output", "-o", metavar="FILE.csv", help="Where to; - is stdout.")
    ] = "-",
) -> None:
    """List the bundled data sets, or write one."""
    from lssvm import datasets as bundled
    from lssvm.cli.tables import check_writable

    if name is not None:
        if general.json and out == "-":
            raise InvalidInputError("--json tells about a file that is written: give -o FILE.")
        check_writable(out, (".csv",), stdout=True)
        rows = write_dataset(name, out)
        into = "" if out == "-" else f" into {out}"
        general.output.note(f"lssvm: {rows:,} rows of {name} written{into}")
        if out != "-":
            general.output.result({"name": name, "rows": rows, "output": out})
        return
    listed = []
    for known in bundled.list_datasets():
        loaded = getattr(bundled, f"load_{known}")()
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
    general.output.table(
        "lssvm datasets NAME -o FILE.csv writes one; its target is the column 'target'",
        columns,
        [[str(entry[key]).split(". ")[0] for key in columns] for entry in listed],
        left=(0, 3, 4),
    )
    general.output.result({"datasets": listed})


def write_dataset(name: str, out: str) -> int:
    """Write a bundled data set as CSV, classes by their names; return the rows."""
    from lssvm import datasets as bundled

    if name not in bundled.list_datasets():
        raise InvalidInputError(
            f"There is no data set {name!r}: give one of {', '.join(bundled.list_datasets())}."
        )
    import numpy as np

    loaded = getattr(bundled, f"load_{name}")()
    target = loaded.target
    if loaded.target_names:
        _, codes = np.unique(target, return_inverse=True)
        target = np.array(loaded.target_names)[codes]
    columns = zip(loaded.feature_names, loaded.data.T, strict=True)
    with table_writer(out) as write:
        write({**{name: _plain(values) for name, values in columns}, "target": target})
    return len(target)


def demo(
    general: Seeded,
    folder: Annotated[
        str, Argument(metavar="[FOLDER]", help="Where the files go; made where it is not.")
    ] = "demo-output",
) -> None:
    """Train on bundled data.

    Leaves a model, a report and predictions in a folder and prints an accuracy line.
    """
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"{folder} cannot be made a folder: {error.strerror or error}."
        ) from error
    data, model, report, predictions = (
        os.path.join(folder, name)
        for name in ("credit.csv", "credit.lssvm", "report.html", "predictions.csv")
    )
    write_dataset(DEMO, data)
    general.output.line(f"$ lssvm train {data} --target target -o {model} --report {report}")
    testing = Testing(report=report)
    asked = Columns(target="target"), model, Reading(), MODEL, Fitting(), general, testing
    train(data, *asked)
    general.output.line(f"$ lssvm predict {model} {data} --proba -o {predictions}")
    quiet = General(json=False, quiet=general.quiet or general.json)
    predict(model, data, Reading(), quiet, Written(predictions, proba=True))
    general.output.line(f"look at {report} with a browser")


def _plain(values: Any) -> list[Any]:
    return [int(v) if isinstance(v, float) and v.is_integer() else v for v in values.tolist()]
