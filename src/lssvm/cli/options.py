"""The commands and their options, as dataclasses whose docstrings are the help.

A parameter of a docstring is ``name : METAVAR`` with its help below; words with | between them are
the only values that an option takes. Nothing heavy is imported here.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from importlib import import_module
from inspect import Parameter
from typing import Annotated, Any, ClassVar, TypeAlias, get_type_hints

import typer
from typer.core import TyperCommand

from lssvm._core.errors import InvalidInputError
from lssvm.cli.console import Output, plain_warnings

INTERRUPTED = 130
HEADINGS = (
    "Arguments",
    "Options",
    "Test and report",
    "Model",
    "Settings (the table model needs none; most take the fixed-size model instead)",
    "How text files are read (detected by default)",
    "In general",
)
OUTPUT = ("--output", "-o")
TARGET = ("--target", "-t")
TIME = ("--time",)

Texts: TypeAlias = list[str]
"""An option that may be repeated."""


def option(default: Any, *names: str, **rules: Any) -> Any:
    """Return a field that is an option with other names, or with rules.

    Parameters
    ----------
    default : object
        `dataclasses.MISSING`: the option is required.
    *names : str
        Such as ``"--target", "-t"``; none: the name of the field.
    **rules : object
        More of what ``typer.Option`` takes, such as ``min``.
    """
    return field(default=default, metadata={"names": names, "rules": rules})


def argument(default: Any = MISSING) -> Any:
    """Return a field that is an argument."""
    return field(default=default, metadata={"argument": True})


def documented(group: type) -> dict[str, tuple[str | None, str]]:
    """Return metavar and help of the parameters that a class documents.

    Examples
    --------
    >>> from lssvm.cli.options import Seeded, documented
    >>> documented(Seeded)["seed"]
    (None, 'Seed: same seed, same model.')
    """
    section = inspect.cleandoc(group.__doc__ or "").partition("----------\n")[2] + "\n"
    entries = re.findall(r"^(\w+)(?: : (.+))?\n((?: {4}.+\n)+)", section, re.MULTILINE)
    return {name: (metavar or None, " ".join(text.split())) for name, metavar, text in entries}


def _read_config(context: typer.Context, path: str | None) -> str | None:
    if path is not None:
        context.default_map = {**(context.default_map or {}), **defaults_from(path, context)}
    return path


@dataclass(frozen=True, kw_only=True)
class General:
    """What every command takes; a command is a dataclass, and its function has the same name.

    Parameters
    ----------
    json
        One JSON object on stdout.
    quiet
        Print only errors.
    config : FILE.toml
        Options from a TOML file; the command line wins.
    """

    heading: ClassVar[str] = HEADINGS[6]
    module: ClassVar[str]  # where the function of the command is

    json: bool = option(False, "--json")
    quiet: bool = option(False, "--quiet", "-q")
    config: str | None = option(None, callback=_read_config, is_eager=True)

    @property
    def output(self) -> Output:
        """Where to write."""
        return Output(self.json, self.quiet)


@dataclass(frozen=True, kw_only=True)
class Seeded(General):
    """What every command that draws at random takes.

    Parameters
    ----------
    seed
        Seed: same seed, same model.
    """

    seed: int = option(0, min=0)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files are read.

    Parameters
    ----------
    delimiter : CHAR
        Between the fields of CSV.
    missing : TEXT
        A further text that means 'missing', as NA does; may be repeated.
    decimal : .|,
        The decimal sign.
    thousands : CHAR
        Between thousands.
    encoding
        Of text files, such as cp1252.
    """

    heading: ClassVar[str] = HEADINGS[5]

    delimiter: str | None = None
    missing: Texts = ("?",)  # type: ignore[assignment]
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns are what.

    Parameters
    ----------
    target
        Column to predict.
    weight
        Column of sample weights.
    drop : COLUMN
        Leave a column out; may be repeated.
    category : COLUMN
        The numbers of a column are names of categories.
    task : auto|classification|regression
        By default decided by the target.
    """

    target: str = option(MISSING, *TARGET)
    weight: str | None = None
    drop: Texts = ()  # type: ignore[assignment]
    category: Texts = ()  # type: ignore[assignment]
    task: str = "auto"


@dataclass(frozen=True, kw_only=True)
class Modelling:
    """Which model.

    Parameters
    ----------
    kind : auto|table|fixed-size|dual|greedy
        auto: the table model; fixed-size where an option of its own is given or there are more
        than 2,000,000 rows.
    preset : fast|balanced|best
        How much the table model tries; balanced.
    time_limit : SECONDS
        Seconds that fitting the table model should stay below.
    ordered : COLUMN=LOW,...,HIGH
        Levels of a column from low to high; may be repeated.
    """

    heading: ClassVar[str] = HEADINGS[3]

    kind: str = option("auto", "--model")
    preset: str | None = None
    time_limit: float | None = option(None, min=0.0)
    ordered: Texts = ()  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """How a model is tuned; None: the default of the model.

    Parameters
    ----------
    prototypes : auto|cv|N|'6 sqrt(n)'
        Number of basis functions; auto.
    kernel : rbf|linear|poly|laplacian|matern|nonstationary|exponential
        Kernel; rbf.
    C : cv|NUMBER
        Regularisation; cv: tuned.
    gamma : cv|ard|scale|NUMBER
        Width of the kernel; cv: tuned.
    selection : random|renyi|kmeans|rpcholesky
        Rule for prototypes; random.
    cv : FOLDS|SHARE
        Folds (10), or a share that is held out once.
    search : path|grid|shrinking|csa
        How C and gamma are searched; path.
    scoring
        Any scorer of scikit-learn, such as roc_auc.
    tuning : joint|separate
        C and gamma of all outputs together, or of each by itself; joint.
    intercept : free|penalised|none
        The bias: free, penalised like a weight, or none; free.
    multiclass : auto|ovo|ova|moc|moc-counting|ecoc
        How several classes are coded; auto.
    reduction : spfs|ssd|sv-l0|sd|spfs-printed|ssd-printed|sv-l0-printed|prune|l0
        Remove prototypes after training; prune and l0: support vectors of the dual model.
    support : N
        How many a reduction leaves.
    class_weight : balanced
        Classes count the same (classes only).
    loss : squared|huber|absolute|weighted
        Loss (numbers only).
    device
        cpu or cuda.
    memory : BYTES
        Memory budget, such as '2 GB'.
    jobs
        Threads; by default all cores.
    """

    heading: ClassVar[str] = HEADINGS[4]

    prototypes: str | None = None
    kernel: str | None = None
    C: str | None = option(None, "--C")
    gamma: str | None = None
    selection: str | None = None
    cv: str | None = None
    search: str | None = None
    scoring: str | None = None
    tuning: str | None = None
    intercept: str | None = None
    multiclass: str | None = None
    reduction: str | None = None
    support: int | None = option(None, min=1)
    class_weight: str | None = None
    loss: str | None = None
    device: str | None = None
    memory: str | None = None
    jobs: int | None = option(None, min=1)


@dataclass(frozen=True, kw_only=True)
class Testing:
    """Which rows a model is tested on, and what becomes of the tested model.

    Parameters
    ----------
    report : FILE
        Write an HTML report.
    test
        Share of the rows held out (0.2); 0: none.
    test_data : FILE
        Rows to test on, instead of --test.
    group : COLUMN
        Rows with the same value are held out together.
    by_time : COLUMN
        The last rows by this column are held out.
    positive : CLASS
        Of two classes, the one that precision, recall, curves and costs are about; the rarer.
    refit
        Fit the tested model again, to all rows.
    """

    heading: ClassVar[str] = HEADINGS[2]

    report: str | None = None
    test: float | None = option(None, min=0.0, max=0.9)
    test_data: str | None = None
    group: str | None = None
    by_time: str | None = option(None, *TIME)
    positive: str | None = None
    refit: bool = option(False, "--refit")


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """The rows of most commands.

    Parameters
    ----------
    data : DATA
        CSV, TSV, Excel, JSON lines, Parquet or Feather, a folder, a pattern in quotes, or - for
        standard input.
    """

    data: str = argument()


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """The model of most commands.

    Parameters
    ----------
    model : MODEL
        A model file (.lssvm).
    """

    model: str = argument()


@dataclass(frozen=True, kw_only=True)
class Train(DataFile, Columns, Testing, Modelling, Fitting, Reading, Seeded):
    """Train a tuned, tested model on a file.

    As in: lssvm train data.csv -t price -o price.lssvm --report price.html

    The target decides between classification and regression. Columns may hold text, dates and
    missing values; how they are encoded is stored in the model file. The default is the model for
    tables, a stack of exact models that needs no settings; --model chooses another. A fifth of the
    rows (the same share of every class) is held out to test the model; below 100 rows the metrics
    are cross-validated. Ctrl-C saves the best model so far (exit code 130).

    Parameters
    ----------
    out : FILE
        Where the model is written; .onnx: as ONNX.
    """

    module: ClassVar[str] = "training"

    out: str = option(MISSING, *OUTPUT)


@dataclass(frozen=True, kw_only=True)
class Tune(DataFile, Columns, Fitting, Reading, Seeded):
    """Search for the best C and gamma.

    Of the fixed-size model, by cross-validation on all rows of a file; the best settings are
    listed, with how they were found. A model is written only where -o asks for one.

    Parameters
    ----------
    out : FILE
        Write the model, too.
    best
        How many settings are listed.
    """

    module: ClassVar[str] = "training"

    out: str | None = option(None, *OUTPUT)
    best: int = option(10, min=1)


@dataclass(frozen=True, kw_only=True)
class Reduce(DataFile, ModelFile, Reading, General):
    """Make a model smaller.

    DATA is the file that the model was trained on; the rows that were held out are held out again.
    A model for tables becomes a sparse model of --support vectors that follows it (`compress`). A
    fixed-size model is reduced, with the error against the number of support vectors; without
    --support the smallest model whose cross-validated squared error is within one standard error
    of the best is taken.

    Parameters
    ----------
    out : FILE
        Where the smaller model goes.
    support : N
        Support vectors to keep; by default chosen by cross-validation (model for tables: 200).
    method : spfs|ssd|sv-l0|spfs-printed|ssd-printed|sv-l0-printed
        How prototypes of a fixed-size model are removed; spfs.
    target
        Column to predict.
    """

    module: ClassVar[str] = "training"

    out: str = option(MISSING, *OUTPUT)
    support: int | None = option(None, min=1)
    method: str | None = None
    target: str | None = option(None, *TARGET)


@dataclass(frozen=True, kw_only=True)
class Predict(ModelFile, Reading, General):
    """Predict new rows with a model.

    Rows are read block by block and need not fit in memory. The columns of the model are found by
    their names; other columns are ignored. A file appears when it is complete.

    Parameters
    ----------
    data : DATA
        New rows: CSV, Parquet or Arrow; - is stdin.
    out : FILE
        CSV, Parquet, Arrow; - is stdout
    proba
        Add the probability of every class.
    interval : COVERAGE
        Add intervals that hold a new value with this probability, such as 0.9 (classes: sets).
    keep : COLUMN
        Copy a column of the input (* is all).
    check
        Report what differs from the training rows: new categories, shifted columns, far rows.
    escape
        Put ' before text in CSV that spreadsheets would run.
    """

    module: ClassVar[str] = "predicting"

    data: str = argument()
    out: str = option("-", *OUTPUT)
    proba: bool = option(False, "--proba")
    interval: float | None = None
    keep: Texts = ()  # type: ignore[assignment]
    check: bool = option(False, "--check")
    escape: bool = option(True, "--escape/--no-escape")


@dataclass(frozen=True, kw_only=True)
class Evaluate(DataFile, ModelFile, Reading, General):
    """Measure a model on rows with a known target.

    Rows the model was trained on make it look better than it is; --held-out leaves them out.

    Parameters
    ----------
    target
        Column to compare with.
    weight
        Column of sample weights.
    positive : CLASS
        Of two classes, the one that precision and recall are about; that of `train`.
    held_out
        Only the rows that `train` held out of this same file.
    """

    module: ClassVar[str] = "predicting"

    target: str | None = option(None, *TARGET)
    weight: str | None = None
    positive: str | None = None
    held_out: bool = option(False, "--held-out")


@dataclass(frozen=True, kw_only=True)
class Info(ModelFile, General):
    """Show what a model file contains."""

    module: ClassVar[str] = "predicting"


@dataclass(frozen=True, kw_only=True)
class Export(ModelFile, General):
    """Write a model as ONNX for other programs.

    The preparation of its columns is part of it: it has an input for every raw column.

    Parameters
    ----------
    out : MODEL.onnx
        The ONNX file to write.
    """

    module: ClassVar[str] = "predicting"

    out: str = argument()


@dataclass(frozen=True, kw_only=True)
class Compare(DataFile, Columns, Reading, Seeded):
    """Compare with scikit-learn and boosted trees.

    All models are tested on the same held-out rows and see the same prepared columns, except for
    the model for tables, which prepares the raw columns itself. The models of lssvm tune
    themselves; SVC is tuned over a small grid up to 2,000 rows and has its defaults beyond,
    Nystroem + Ridge chooses among three widths and nine penalties. Gradient boosting of
    scikit-learn, and of CatBoost, LightGBM and XGBoost where these are installed, has its defaults.

    Parameters
    ----------
    test
        Share of the rows to test on.
    rows
        At most so many rows are read, drawn at random.
    """

    module: ClassVar[str] = "comparing"

    test: float = option(0.3, min=0.05, max=0.9)
    rows: int = option(20_000, min=50)


@dataclass(frozen=True, kw_only=True)
class Forecast(DataFile, Reading, Seeded):
    """Forecast a time series, with intervals.

    The series is predicted from its own past, at least a season of it; dates continue the calendar
    of the file. As a check the last values are forecast from those before them and compared with
    simple forecasts: the last value, the last season, and the line through the first and the last
    value (drift).

    Parameters
    ----------
    column
        The series.
    by_time : COLUMN
        The column of dates; by default the only one there is.
    season : N
        Steps of a season; by default that of the dates, or of the series.
    horizon
        How many values to forecast.
    lags
        Past values in a row; by default 50, or fewer, and at least a season.
    last
        Learn from so many of the last values only.
    differencing
        How often the series is differenced first.
    coverage
        Share of the values that intervals are to hold.
    out : FILE
        Write the forecast: .csv, .parquet.
    report : FILE
        Write an HTML report.
    test
        Also forecast the last values, as a check.
    """

    module: ClassVar[str] = "forecasting"

    column: str = option(MISSING, "--column", "-c")
    by_time: str | None = option(None, *TIME)
    season: int | None = option(None, min=2)
    horizon: int = option(24, min=1)
    lags: int | None = option(None, min=1)
    last: int | None = option(None, min=10)
    differencing: int = option(0, min=0, max=3)
    coverage: float = 0.9
    out: str | None = option(None, *OUTPUT)
    report: str | None = None
    test: bool = option(True, "--test/--no-test")


@dataclass(frozen=True, kw_only=True)
class Demo(Seeded):
    """Train on two bundled data sets.

    The strength of concrete (numbers, with intervals and what each column adds) and German credit
    (two classes, where little can be learned). A model, a report and predictions of each are left
    in a folder.

    Parameters
    ----------
    folder : [FOLDER]
        Where the files go; made where it does not exist.
    """

    module: ClassVar[str] = "demo"

    folder: str = argument("demo-output")


@dataclass(frozen=True, kw_only=True)
class Datasets(General):
    """List the bundled data sets, or write one.

    Parameters
    ----------
    name : [NAME]
        Which one to write; none: list them.
    out : FILE.csv
        Where to; - is stdout.
    """

    module: ClassVar[str] = "demo"

    name: str | None = argument(None)
    out: str = option("-", *OUTPUT)


COMMANDS: tuple[type[General], ...] = (Train, Predict, Evaluate, Tune, Reduce, Info, Export)
COMMANDS += (Compare, Forecast, Demo, Datasets)


def as_function(command: type[General]) -> Callable[..., None]:
    """Return the function that typer calls: it makes the options and runs the command.

    Examples
    --------
    >>> import inspect
    >>> from lssvm.cli.options import Info, as_function
    >>> list(inspect.signature(as_function(Info)).parameters)
    ['model', 'json', 'quiet', 'config']
    """
    name, hints = command.__name__.lower(), get_type_hints(command)
    parameters, choices = [], {}
    for one in fields(command):
        group = next(c for c in command.__mro__ if one.name in inspect.get_annotations(c))
        metavar, text = documented(group)[one.name]
        rules: dict[str, Any] = {"metavar": metavar, "help": text, **one.metadata.get("rules", {})}
        names = one.metadata.get("names", ())
        if one.metadata.get("argument"):
            info: Any = typer.Argument(**rules)
        else:
            headings = [vars(c)["heading"] for c in group.__mro__ if "heading" in vars(c)]
            panel = None if group is command or not headings else headings[0]
            info = typer.Option(*names, rich_help_panel=panel, **rules)
        if re.fullmatch(r"[a-z][a-z0-9-]*(\|[a-z][a-z0-9-]*)*", metavar or ""):
            choices[one.name] = (*names, f"--{one.name.replace('_', '-')}")[0], str(metavar)
        hint: Any = Annotated[hints[one.name], info]
        entry = Parameter(one.name, Parameter.KEYWORD_ONLY, annotation=hint)
        parameters.append(entry if one.default is MISSING else entry.replace(default=one.default))

    def run(**values: Any) -> None:
        for option, (written, words) in choices.items():
            value = values[option]
            if value is not None and value not in words.split("|"):
                known = words.replace("|", ", ")
                raise InvalidInputError(f"{written} {value} is not known: give one of {known}.")
        lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
        options = command(**(values | lists))
        try:
            with plain_warnings(options.output):
                vars(import_module(f"lssvm.cli.{command.module}"))[name](options)
        except KeyboardInterrupt as error:
            sys.stderr.write("lssvm: interrupted\n")
            raise typer.Exit(INTERRUPTED) from error

    parameters.sort(key=lambda p: p.default is not Parameter.empty)  # the required ones first
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__name__ = name
    run.__doc__ = inspect.cleandoc(command.__doc__ or "").partition("\n\nParameters\n")[0]
    return run


class GroupedCommand(TyperCommand):
    """A command whose help lists options under the headings of their groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then the options heading by heading, in the order of `HEADINGS`."""
        sections: dict[str, list[Any]] = {heading: [] for heading in HEADINGS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                sections[vars(parameter).get("rich_help_panel") or kind].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


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
            entries = tomllib.load(file)
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} is not TOML: {error}.") from error
    names = {
        name.lstrip("-").replace("-", "_").lower(): str(parameter.name)
        for parameter in context.command.params
        if parameter.param_type_name == "option" and parameter.name != "config"
        for name in parameter.opts
    }
    settings = {}
    for key, value in entries.items():
        name = names.get(key.replace("-", "_").lower())
        if name is None:
            raise typer.BadParameter(
                f"{path} sets {key!r}, which is not an option of this command; options are "
                f"{', '.join(sorted(n.replace('_', '-') for n in names if len(n) > 1))}."
            )
        texts = [str(item) for item in value] if isinstance(value, list) else str(value)
        settings[name] = value if isinstance(value, bool) else texts
    return settings
