"""Model files with what the command line has to remember about a model."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lssvm._core.errors import ModelFileError
from lssvm.cli.console import plain

if TYPE_CHECKING:
    from lssvm.cli.model_rows import Model
    from lssvm.cli.tables import Table
    from lssvm.data import Scan


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model out of its file.

    Attributes
    ----------
    model : estimator
    card : dict
        What `save_model` was given; empty for models that were saved from Python.
    """

    model: Model
    card: dict[str, Any]

    def target(self, given: str | None) -> str:
        """Return the column of the target: the one given, else that of the training."""
        name = given or self.card.get("target")
        if not isinstance(name, str):
            raise ModelFileError("The model file does not say what its target is: give --target.")
        return name

    def parts(self, table: Table, rows: Scan) -> tuple[Scan, Scan | None]:
        """Return the rows that the model was trained on and those that were held out.

        None where none were held out, or the data are others than those of the training.
        """
        from lssvm.cli.holding_out import HoldOut

        rule = HoldOut.of_card(self.card)
        if rule is None or self.card.get("refit") or rows.n_rows != self.card.get("rows"):
            return rows, None
        return rule.split(table, rows, self.target(None))


def save_model(model: Model, path: str, card: dict[str, Any]) -> None:
    """Save a model with its card."""
    from lssvm.io import save

    save(model, path, metrics=plain(card))


def load_model(path: str) -> Loaded:
    """Load a model with its card."""
    from lssvm.io import load, read_header

    if not os.path.isfile(path):
        raise ModelFileError(f"There is no model file {path}.")
    model = load(path)
    card = read_header(path).get("metrics")
    return Loaded(model, checked(card) if isinstance(card, dict) else {})


def checked(card: dict[str, Any]) -> dict[str, Any]:
    """Return a card without the entries that are not what we would have written: anybody may.

    Examples
    --------
    >>> from lssvm.cli.model_cards import checked
    >>> checked({"target": "y", "seed": "0", "test_share": 0.2, "note": "mine"})
    {'target': 'y', 'test_share': 0.2, 'note': 'mine'}
    """
    return {k: value for k, value in card.items() if k not in _KINDS or _KINDS[k](value)}


def _text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _measured(value: Any) -> bool:
    if not isinstance(value, dict):
        return value is None
    if "accuracy" not in value:
        return all(_number(value.get(n)) for n in ("rows", "rmse", "r2", "baseline_rmse"))
    ends = value.get("accuracy_interval")
    pair = isinstance(ends, (list, tuple)) and len(ends) == 2 and all(map(_number, ends))
    return pair and all(_number(value.get(n)) for n in ("rows", "accuracy", "baseline"))


_KINDS: dict[str, Any] = {
    "target": _text,
    "tested": _text,
    "weight": _text,
    "seed": lambda value: isinstance(value, int) and value >= 0,
    "test_share": lambda value: _number(value) and 0.0 <= value < 1.0,
    "test": _measured,
}
