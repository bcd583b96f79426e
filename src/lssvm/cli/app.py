"""The program `lssvm`: its commands, and the exit codes of errors."""

from __future__ import annotations

import io
import re
import sys
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from lssvm._core.errors import LSSVMError, printable
from lssvm._core.version import __version__
from lssvm.cli.console import LONGEST
from lssvm.cli.options import COMMANDS, INTERRUPTED, GroupedCommand, as_function

BAD_INPUT = 2
_USAGE = typer.BadParameter.__base__  # every error of the parser
_PYTHON = re.compile(  # advice for Python, which is another one here
    r", or leave the column out with columns="
    r"| \(csv=CsvOptions\(null_values=\(.*?,\)\)\)| \(types=\{.*?\}\)|, encoding= of CsvOptions"
)


class Commands(TyperGroup):
    """The commands; every error that input can cause is one line."""

    def main(self, *args: Any, standalone_mode: bool = True, **kwargs: Any) -> Any:
        """Run a command; exit with 0, 1, 2 or 130. A traceback is a bug of ours."""
        kwargs["standalone_mode"] = False
        sys.exit(self._guarded(*args, **kwargs))

    def _guarded(self, *args: Any, **kwargs: Any) -> int:
        if sys.platform == "win32" and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # files and pipes get a code page there
        try:
            code = super().main(*args, **kwargs)
            sys.stdout.flush()
            return code if isinstance(code, int) else 0
        except _USAGE as error:  # type: ignore[misc]
            context = vars(error).get("ctx")
            path = context.command_path if context is not None else "lssvm"
            text = error.format_message()
            return _fail(f"{text}{'' if text[-1:] in '.?' else '.'} See {path} --help.")
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


for _command in map(as_function, COMMANDS):
    app.command(name=_command.__name__, cls=GroupedCommand)(_command)
