"""The options that commands share: groups as dataclasses, and options from a TOML file."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any, ClassVar, get_type_hints

import typer
from typer import Argument
from typer.core import TyperCommand

from lssvm._core.errors import InvalidInputError
from lssvm.cli.console import Output, plain_warnings

INTERRUPTED = 130
TESTING = "Test and report"
MODEL = "Model"
TUNING = "Settings (the table model needs none; most take the fixed-size model instead)"
FILES = "How text files are read (detected by default)"
GENERAL = "In general"
HEADINGS = ("Arguments", "Options", TESTING, MODEL, TUNING, FILES, GENERAL)


def option(
    default: Any, text: str, metavar: str | None = None, names: tuple[str, ...] = (), **rules: Any
) -> Any:
    """Return a field of a group: an option with its default and what the help says of it.

    Parameters
    ----------
    default : object
        `dataclasses.MISSING`: the option has to be given.
    text : str
    metavar : str, optional
    names : tuple of str, default=()
        Such as ``("--target", "-t")``; none: the name of the field.
    **rules : object
        More of what ``typer.Option`` takes, such as ``min``.
    """
    info = typer.Option(*names, metavar=metavar, help=text, **rules)
    return field(default=default, metadata={"option": info})


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command in which every parameter that is a dataclass has become its fields.

    The `General` options among them decide how warnings are told while the command runs.

    Examples
    --------
    >>> import inspect
    >>> from dataclasses import dataclass
    >>> from lssvm.cli.options import expand
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: int
    ...     height: int = 1
    >>> def draw(size: Size) -> None:
    ...     print(size)
    >>> list(inspect.signature(expand(draw)).parameters), expand(draw)(width=2)
    Size(width=2, height=1)
    (['width', 'height'], None)
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {n: h for n, h in hints.items() if inspect.isclass(h) and is_dataclass(h)}
    parameters: list[Parameter] = []
    for name, given in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _of(groups[name])
        else:
            parameters.append(given.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            given = {f.name: values.pop(f.name) for f in fields(group) if f.name in values}
            values[name] = group(**given)
        general = values.get("general")
        try:
            with general.session() if isinstance(general, General) else nullcontext():
                command(**values)
        except KeyboardInterrupt as error:
            sys.stderr.write("lssvm: interrupted\n")
            raise typer.Exit(INTERRUPTED) from error

    parameters.sort(key=lambda p: p.default is not Parameter.empty)  # the required ones first
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    del run.__wrapped__  # or the signature of the command itself would be found
    return run


class GroupedCommand(TyperCommand):
    """A command whose help lists options under the headings of their groups.

    A group is a dataclass; its ``heading`` is a class variable. Groups without one come first.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then the options heading by heading, in the order of `HEADINGS`."""
        sections: dict[str, list[Any]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                heading = vars(parameter).get("rich_help_panel") or kind
                sections.setdefault(heading, []).append(record)
        for heading in [*HEADINGS, *(name for name in sections if name not in HEADINGS)]:
            if sections.get(heading):
                with formatter.section(heading):
                    formatter.write_dl(sections[heading])


def _of(group: Any) -> list[Parameter]:
    hints, heading = get_type_hints(group), _heading(group)
    for f in fields(group):
        if heading is not None and "option" in f.metadata:
            f.metadata["option"].rich_help_panel = heading
    return [
        Parameter(
            f.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if f.default is MISSING else f.default,
            annotation=Annotated[hints[f.name], f.metadata.get("option", typer.Option())],
        )
        for f in fields(group)
    ]


def _heading(group: Any) -> str | None:
    """Return the heading of a group of options, that of the class it extends included."""
    return next((vars(c)["heading"] for c in group.__mro__ if "heading" in vars(c)), None)


def defaults_from(path: str, context: typer.Context) -> dict[str, Any]:
    """Return the settings of a file as defaults of the options of a command.

    Parameters
    ----------
    path : str
        A TOML file whose keys are the long names of options, ``class-weight`` or ``class_weight``.
    context : typer.Context
        Of the command.
    """
    import tomllib

    try:
        with open(path, "rb") as file:
            given = tomllib.load(file)
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} is not TOML: {error}.") from error
    names: dict[str, str] = {}
    for parameter in context.command.params:
        if parameter.param_type_name == "option" and parameter.name:
            for option in parameter.opts:
                names[option.lstrip("-").replace("-", "_").lower()] = parameter.name
    names.pop("config", None)
    settings = {}
    for key, value in given.items():
        name = names.get(key.replace("-", "_").lower())
        if name is None:
            raise typer.BadParameter(
                f"{path} sets {key!r}, which is not an option of this command; options are "
                f"{', '.join(sorted(n.replace('_', '-') for n in names if len(n) > 1))}."
            )
        settings[name] = _value(value)
    return settings


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [str(item) for item in value]
    return value if isinstance(value, bool) else str(value)


OUTPUT = ("--output", "-o")
TARGET = ("--target", "-t")
DataFile = Annotated[
    str,
    Argument(
        metavar="DATA",
        help="CSV, TSV, Excel, JSON lines, Parquet or Feather, a folder, a pattern in quotes, or "
        "- for standard input.",
    ),
]
ModelFile = Annotated[str, Argument(metavar="MODEL", help="A model file (.lssvm).")]


def _read_config(context: typer.Context, path: str | None) -> str | None:
    if path is not None:
        context.default_map = {**(context.default_map or {}), **defaults_from(path, context)}
    return path


@dataclass(frozen=True)
class General:
    """What every command takes."""

    heading: ClassVar[str] = GENERAL

    json: bool = option(False, "One JSON object on stdout.", names=("--json",))
    quiet: bool = option(False, "Print only errors.", names=("--quiet", "-q"))
    config: str | None = option(
        None,
        "Options from a TOML file; the command line wins.",
        "FILE.toml",
        callback=_read_config,
        is_eager=True,
    )

    @property
    def output(self) -> Output:
        """Where to write."""
        return Output(self.json, self.quiet)

    def session(self) -> AbstractContextManager[None]:
        """Tell warnings in a line each, or not at all."""
        return plain_warnings(self.output)


@dataclass(frozen=True)
class Seeded(General):
    """What every command that draws at random takes."""

    seed: int = option(0, "Seed: same seed, same model.", min=0)


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    heading: ClassVar[str] = FILES

    delimiter: str | None = option(None, "Between the fields of CSV.", "CHAR")
    missing: list[str] = option(  # noqa: RUF009
        ("?",), "A further text that means 'missing', as NA does; may be repeated.", "TEXT"
    )
    decimal: str | None = option(None, "The decimal sign.", ".|,")
    thousands: str | None = option(None, "Between thousands.", "CHAR")
    encoding: str | None = option(None, "Of text files, such as cp1252.")

    @property
    def separator(self) -> str | None:
        """The delimiter; a backslash and a t, or the word tab, stand for a tab."""
        return "\t" if self.delimiter in ("\\t", "tab") else self.delimiter


@dataclass(frozen=True)
class Columns:
    """Which columns are what."""

    target: str = option(MISSING, "Column to predict.", names=TARGET)
    weight: str | None = option(None, "Column of sample weights.")
    drop: list[str] = option((), "Leave a column out; may be repeated.", "COLUMN")  # noqa: RUF009
    category: list[str] = option(  # noqa: RUF009
        (), "The numbers of a column are names of categories.", "COLUMN"
    )
    task: str = option("auto", "By default judged by the target.", "auto|classification|regression")


def read_orders(given: Sequence[str]) -> dict[str, list[str]]:
    """Return the levels of ordered categories.

    Examples
    --------
    >>> from lssvm.cli.options import read_orders
    >>> read_orders(["size=S,M,L"])
    {'size': ['S', 'M', 'L']}
    """
    orders = {}
    for text in given:
        name, sign, levels = text.partition("=")
        found = [level.strip() for level in levels.split(",")]
        if not (name and sign and all(found) and len(found) > 1):
            raise InvalidInputError(
                f"--ordered {text} is not usable: give COLUMN=LOW,...,HIGH, as in size=S,M,L."
            )
        orders[name.strip()] = found
    return orders


@dataclass(frozen=True)
class Modelling:
    """Which model."""

    heading: ClassVar[str] = MODEL

    kind: str = option(
        "auto",
        "auto: the table model; fixed-size where an option of its own is given or there are "
        "more than 2,000,000 rows.",
        "auto|table|fixed-size|dual|greedy",
        ("--model",),
    )
    preset: str | None = option(
        None, "How much the table model tries; balanced.", "fast|balanced|best"
    )
    time_limit: float | None = option(
        None, "Seconds that fitting the table model should stay below.", "SECONDS", min=0.0
    )
    ordered: list[str] = option(  # noqa: RUF009
        (), "Levels of a column from low to high; may be repeated.", "COLUMN=LOW,...,HIGH"
    )


@dataclass(frozen=True)
class Fitting:
    """How a model is tuned; None: as the model has it."""

    heading: ClassVar[str] = TUNING

    prototypes: str | None = option(
        None, "Number of basis functions; auto.", "auto|cv|N|'6 sqrt(n)'"
    )
    kernel: str | None = option(None, "Kernel; rbf.", "rbf|linear|poly|laplacian|matern")
    C: str | None = option(None, "Regularisation; cv: tuned.", "cv|NUMBER", ("--C",))
    gamma: str | None = option(None, "Width of the kernel; cv: tuned.", "cv|ard|scale|NUMBER")
    selection: str | None = option(
        None, "Rule for prototypes; random.", "random|renyi|kmeans|rpcholesky"
    )
    cv: str | None = option(None, "Folds (10), or a share that is held out once.", "FOLDS|SHARE")
    search: str | None = option(
        None, "How C and gamma are searched; path.", "path|grid|shrinking|csa"
    )
    scoring: str | None = option(None, "Any scorer of scikit-learn, such as roc_auc.")
    tuning: str | None = option(
        None, "C and gamma of all outputs together, or of each by itself; joint.", "joint|separate"
    )
    intercept: str | None = option(
        None, "The bias: free, penalised like a weight, or none; free.", "free|penalised|none"
    )
    multiclass: str | None = option(
        None, "How several classes are coded; auto.", "auto|ovo|ova|moc|moc-counting|ecoc"
    )
    reduction: str | None = option(
        None,
        "Leave out prototypes after training; prune and l0: support vectors of the dual model.",
        "spfs|ssd|sv-l0|sd|spfs-printed|ssd-printed|sv-l0-printed|prune|l0",
    )
    support: int | None = option(None, "How many a reduction leaves.", "N", min=1)
    class_weight: str | None = option(None, "Classes count the same (classes only).", "balanced")
    loss: str | None = option(None, "Loss (numbers only).", "squared|huber|absolute|weighted")
    device: str | None = option(None, "cpu or cuda.")
    memory: str | None = option(None, "Memory budget, such as '2 GB'.", "BYTES")
    jobs: int | None = option(None, "Threads; by default all cores.", min=1)
