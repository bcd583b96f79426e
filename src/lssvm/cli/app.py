"""The program `lssvm`: its commands, the demo, and the exit codes of errors."""

from __future__ import annotations

import os
import re
import sys
from typing import Annotated, Any

import typer
from typer import Argument, Option
from typer.core import TyperGroup

from lssvm._core.errors import InvalidInputError, LSSVMError, printable
from lssvm._core.version import __version__
from lssvm.cli.comparing import compare
from lssvm.cli.console import LONGEST, Output, shown, table_writer
from lssvm.cli.forecasting import forecast
from lssvm.cli.options import (
    INTERRUPTED,
    Columns,
    Fitting,
    General,
    GroupedCommand,
    Modelling,
    Reading,
    Seeded,
    expand,
)
from lssvm.cli.predicting import Written, evaluate, export, info, predict
from lssvm.cli.training import Testing, reduce, train, tune

DEMO = (("concrete", "the strength of concrete"), ("german_credit", "who repays a credit"))
MODEL = Modelling()  # the default


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
            raise InvalidInputError("--json describes a file that is written: give -o FILE.")
        check_writable(out, (".csv",), stdout=True)
        rows = write_dataset(name, out)
        into = "" if out == "-" else f" into {out}"
        general.output.note(f"lssvm: {rows:,} rows of {name} written{into}")
        if out != "-":
            general.output.result({"name": name, "rows": rows, "output": out})
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

    loaded = vars(bundled)[f"load_{name}"]()
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
    """Train on two bundled data sets.

    The strength of concrete (numbers, with intervals and what each column adds) and German credit
    (two classes, where little can be learned). A model, a report and predictions of each are left
    in a folder.
    """
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"{folder} cannot be made a folder: {error.strerror or error}."
        ) from error
    output = general.output
    for name, what in DEMO:
        data, model, report, predictions = (
            os.path.join(folder, f"{name}{ending}")
            for ending in (".csv", ".lssvm", ".html", "-predictions.csv")
        )
        write_dataset(name, data)
        output.line(f"# {name}: {what}")
        output.line(f"$ lssvm train {data} --target target -o {model} --report {report}")
        asked = Columns(target="target"), model, Reading(), MODEL, Fitting(), general
        train(data, *asked, Testing(report=report))
        classes = name == DEMO[1][0]
        extra = "--proba" if classes else "--interval 0.9"
        output.line(f"$ lssvm predict {model} {data} {extra} -o {predictions}")
        quiet = General(json=False, quiet=general.quiet or general.json)
        wanted = Written(predictions, proba=classes, interval=None if classes else 0.9)
        predict(model, data, Reading(), quiet, wanted)
        if not classes:
            explain_first(model, data, output)
        output.line(f"open {report} in a browser")


def explain_first(model: str, data: str, output: Output) -> None:
    """Show what every column adds to the prediction of the first row of a file."""
    import numpy as np

    from lssvm.cli.models import as_given, load_model, model_scan
    from lssvm.cli.tables import open_table

    loaded: Any = load_model(model).model
    rows = model_scan(loaded, open_table(data, Reading()), None)
    first = next(rows.blocks()).take(np.arange(1))
    found = loaded.explain(as_given(loaded, first), n_background=50)
    order = np.argsort(-np.abs(found.values[0]))
    base, total = float(found.base_values[0]), float(found.prediction[0])
    output.table(
        f"What the first row's columns add to the mean prediction {shown(base)}: {shown(total)}",
        ["column", "value", "adds"],
        [
            [found.feature_names[j], shown(float(found.data[0, j])), f"{found.values[0, j]:+.1f}"]
            for j in order
        ],
    )


def _plain(values: Any) -> list[Any]:
    return [int(v) if isinstance(v, float) and v.is_integer() else v for v in values.tolist()]


_USAGE = typer.BadParameter.__base__  # every error of the parser
BAD_INPUT = 2
_PYTHON = re.compile(  # what to do in Python is not what to do here
    r", or leave the column out with columns="
    r"| \(csv=CsvOptions\(null_values=\(.*?,\)\)\)| \(types=\{.*?\}\)|, encoding= of CsvOptions"
)


class Commands(TyperGroup):
    """The commands, with every error that input can cause told in one line."""

    def main(self, *args: Any, standalone_mode: bool = True, **kwargs: Any) -> Any:
        """Run a command; exit with 0, 2 or 130. A traceback is a bug of ours."""
        kwargs["standalone_mode"] = False
        sys.exit(self._guarded(*args, **kwargs))

    def _guarded(self, *args: Any, **kwargs: Any) -> int:
        try:
            code = super().main(*args, **kwargs)
            sys.stdout.flush()
            return code if isinstance(code, int) else 0
        except _USAGE as error:  # type: ignore[misc]
            context = vars(error).get("ctx")
            path = context.command_path if context is not None else "lssvm"
            return _fail(f"{error.format_message()} See {path} --help.")
        except typer.Abort:
            return INTERRUPTED
        except BrokenPipeError:  # whoever read our output has seen enough
            sys.stderr.close()
            return 1
        except (LSSVMError, OSError, ValueError, MemoryError) as error:  # about what was given
            text = str(error) or type(error).__name__
            if isinstance(error, OSError) and error.strerror:
                text = f"{f'{error.filename}: ' if error.filename else ''}{error.strerror}."
            return _fail(text)


def _fail(text: str) -> int:
    text = " ".join(_PYTHON.sub("", text).split())
    sys.stderr.write(f"lssvm: error: {printable(text, LONGEST)}\n")
    return BAD_INPUT


app = typer.Typer(
    cls=Commands,
    name="lssvm",
    help="Least squares support vector machines of any size: from a CSV file to a tuned model.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"lssvm {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


COMMANDS = (train, predict, evaluate, tune, reduce, info, export, compare, forecast, demo, datasets)
for _command in COMMANDS:
    app.command(name=_command.__name__, cls=GroupedCommand)(expand(_command))
