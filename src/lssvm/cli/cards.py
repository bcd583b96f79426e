"""Model files with what the command line has to remember about a model."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from lssvm._core.errors import ModelFileError


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model out of its file.

    Attributes
    ----------
    model : estimator
    card : dict
        What `save_model` was given; empty for models that were saved from Python.
    """

    model: Any
    card: dict[str, Any]

    def target(self, given: str | None) -> str:
        """Return the column of the target: the one given, else that of the training."""
        name = given or self.card.get("target")
        if not isinstance(name, str):
            raise ModelFileError("The model file does not say what its target is: give --target.")
        return name


def save_model(model: Any, path: str, card: dict[str, Any]) -> None:
    """Save a model with its card."""
    from lssvm.cli.console import plain
    from lssvm.io import save

    save(model, path, metrics=plain(card))


def load_model(path: str) -> Loaded:
    """Load a model with its card."""
    from lssvm.io import load, read_header

    if not os.path.isfile(path):
        raise ModelFileError(f"There is no model file {path}.")
    model = load(path)
    card = read_header(path).get("metrics")
    return Loaded(model, card if isinstance(card, dict) else {})
