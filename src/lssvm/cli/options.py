"""The options that commands share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import typer

from lssvm.cli.console import Output, plain_warnings

DataFile = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, Parquet or Arrow file, a folder of them, or a pattern in quotes.",
    ),
]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model file (.lssvm).")]
ReportFile = Annotated[
    str | None, typer.Option("--report", metavar="FILE", help="Write an HTML report.")
]
TestShare = Annotated[
    float | None,
    typer.Option("--test", min=0.0, max=0.9, help="Share of the rows held out (0.2); 0: none."),
]


def _read_config(context: typer.Context, path: str | None) -> str | None:
    if path is not None:
        from lssvm.cli.config import defaults_from

        context.default_map = {**(context.default_map or {}), **defaults_from(path, context)}
    return path


@dataclass(frozen=True)
class General:
    """What every command takes."""

    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.toml",
            callback=_read_config,
            is_eager=True,
            help="Options from a TOML file; the command line wins.",
        ),
    ] = None

    @property
    def output(self) -> Output:
        """Where to write."""
        return Output(self.json, self.quiet)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Tell warnings in a line each, or not at all."""
        with plain_warnings(self.output):
            yield


@dataclass(frozen=True)
class Seeded(General):
    """What every command that draws at random takes."""

    seed: Annotated[int, typer.Option(min=0, help="Seed: same seed, same model.")] = 0


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    delimiter: Annotated[
        str | None,
        typer.Option(metavar="CHAR", help="Between the fields of CSV; a comma, a tab in .tsv."),
    ] = None
    missing: Annotated[
        list[str],
        typer.Option(
            metavar="TEXT", help="A text that means 'missing' in CSV, beside the empty one and NA."
        ),
    ] = ("?",)  # type: ignore[assignment]

    @property
    def separator(self) -> str | None:
        """The delimiter; a backslash and a t, or the word tab, stand for a tab."""
        return "\t" if self.delimiter in ("\\t", "tab") else self.delimiter


@dataclass(frozen=True)
class Columns:
    """Which columns are what."""

    target: Annotated[str, typer.Option("--target", "-t", help="Column to predict.")]
    weight: Annotated[str | None, typer.Option(help="Column of sample weights.")] = None
    drop: Annotated[
        list[str], typer.Option(metavar="COLUMN", help="Leave a column out; may be repeated.")
    ] = ()  # type: ignore[assignment]
    category: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="The numbers of a column are names of categories."),
    ] = ()  # type: ignore[assignment]
    task: Annotated[
        str,
        typer.Option(
            metavar="auto|classification|regression", help="By default judged by the target."
        ),
    ] = "auto"


@dataclass(frozen=True)
class Fitting:
    """The model and how it is tuned."""

    prototypes: Annotated[
        str, typer.Option(metavar="auto|cv|N", help="Number of basis functions.")
    ] = "auto"
    kernel: Annotated[
        str, typer.Option(metavar="rbf|linear|poly|laplacian|matern", help="Kernel.")
    ] = "rbf"
    C: Annotated[
        str, typer.Option("--C", metavar="cv|NUMBER", help="Regularisation; cv: tuned.")
    ] = "cv"
    gamma: Annotated[
        str, typer.Option(metavar="cv|ard|scale|NUMBER", help="Width of the kernel; cv: tuned.")
    ] = "cv"
    selection: Annotated[
        str, typer.Option(metavar="renyi|random|kmeans|rpcholesky", help="Rule for prototypes.")
    ] = "renyi"
    cv: Annotated[
        str, typer.Option(metavar="FOLDS|SHARE", help="Folds, or a share that is held out once.")
    ] = "10"
    search: Annotated[
        str, typer.Option(metavar="path|grid|shrinking|csa", help="How C and gamma are searched.")
    ] = "path"
    scoring: Annotated[
        str | None, typer.Option(help="Any scorer of scikit-learn, such as roc_auc.")
    ] = None
    reduction: Annotated[
        str | None,
        typer.Option(metavar="spfs|ssd|sv-l0|sd", help="Leave out prototypes after training."),
    ] = None
    support: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many a reduction leaves.")
    ] = None
    class_weight: Annotated[
        str | None, typer.Option(metavar="balanced", help="Classes count the same (classes only).")
    ] = None
    loss: Annotated[
        str | None,
        typer.Option(metavar="squared|huber|absolute|weighted", help="Loss (numbers only)."),
    ] = None
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None
    memory: Annotated[
        str | None, typer.Option(metavar="BYTES", help="Memory budget, such as '2 GB'.")
    ] = None
    jobs: Annotated[int | None, typer.Option(min=1, help="Threads; by default all cores.")] = None
