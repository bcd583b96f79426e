"""Groups of options as dataclasses, which several commands share."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import MISSING, field, fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

INTERRUPTED = 130
TESTING = "Test and report"
MODEL = "Model"
TUNING = "Settings (the table model needs none; most take the fixed-size model instead)"
FILES = "How text files are read (recognised where nothing is said)"
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
    >>> from lssvm.cli.option_groups import expand
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
        session = getattr(values.get("general"), "session", None)
        try:
            with nullcontext() if session is None else session():
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
                heading = getattr(parameter, "rich_help_panel", None) or kind
                sections.setdefault(heading, []).append(record)
        for heading in [*HEADINGS, *(name for name in sections if name not in HEADINGS)]:
            if sections.get(heading):
                with formatter.section(heading):
                    formatter.write_dl(sections[heading])


def _of(group: Any) -> list[Parameter]:
    hints, heading = get_type_hints(group), getattr(group, "heading", None)
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
