"""Options from a TOML file."""

from __future__ import annotations

from typing import Any

import typer


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
        if getattr(parameter, "param_type_name", "") == "option" and parameter.name:
            for option in parameter.opts:
                names[option.lstrip("-").replace("-", "_").lower()] = parameter.name
    names.pop("config", None)
    settings = {}
    for key, value in given.items():
        name = names.get(key.replace("-", "_").lower())
        if name is None:
            raise typer.BadParameter(
                f"{path} sets {key!r}, which is no option of this command; options are "
                f"{', '.join(sorted(n.replace('_', '-') for n in names if len(n) > 1))}."
            )
        settings[name] = _value(value)
    return settings


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [str(item) for item in value]
    return value if isinstance(value, bool) else str(value)
