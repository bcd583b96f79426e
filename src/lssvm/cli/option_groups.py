"""Groups of options as dataclasses, which several commands share."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

import typer

INTERRUPTED = 130


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
    parameters = []
    for name, given in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _of(groups[name])
        else:
            parameters.append(_keyword(name, hints[name], given.default))

    @wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{f.name: values.pop(f.name) for f in _given(group, values)})
        session = getattr(values.get("general"), "session", None)
        try:
            with nullcontext() if session is None else session():
                command(**values)
        except KeyboardInterrupt as error:
            sys.stderr.write("lssvm: interrupted\n")
            raise typer.Exit(INTERRUPTED) from error

    required = [p for p in parameters if p.default is inspect.Parameter.empty]
    others = [p for p in parameters if p.default is not inspect.Parameter.empty]
    run.__signature__ = inspect.Signature([*required, *others])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    del run.__wrapped__  # or the signature of the command itself would be found
    return run


def _given(group: Any, values: dict[str, Any]) -> list[Any]:
    return [f for f in fields(group) if f.name in values]


def _keyword(name: str, hint: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=hint)


def _of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    empty = inspect.Parameter.empty
    found = []
    for f in fields(group):
        default = empty if f.default is MISSING else f.default
        if f.default_factory is not MISSING:
            default = f.default_factory()
        found.append(_keyword(f.name, hints[f.name], default))
    return found
