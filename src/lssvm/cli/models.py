"""Models on the command line: the rows that they take, how they are fitted, and their files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lssvm._core.errors import InvalidInputError, ModelFileError
from lssvm.cli.console import FitProgress, Output

if TYPE_CHECKING:
    from lssvm.cli.tables import Table
    from lssvm.data import Scan
    from lssvm.data.raw import Schema
    from lssvm.preparation import PreparedTable

_TYPES = {"number": "number", "boolean": "number", "category": "text", "date": "text"}


class Model(Protocol):
    """A fitted estimator of this library."""

    def predict(self, X: Any) -> Any:
        """Return the predictions of rows."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters."""

    def __getattr__(self, name: str) -> Any:
        """Return what a model of its kind has learned."""


def is_classifier(model: Model) -> bool:
    """Say whether a model predicts classes."""
    return hasattr(model, "classes_")


def last_step(model: Model) -> Model:
    """Return the model itself, which may stand at the end of a pipeline."""
    steps: Any = getattr(model, "steps", None)
    return model if steps is None else steps[-1][1]


def reads_scans(model: Model) -> bool:
    """Say whether a model is fitted to a scan; it reads the rows into memory only if they fit."""
    from lssvm.estimators import FixedSizeLSSVC, FixedSizeLSSVR, LSSVMClassifier, LSSVMRegressor

    kinds = FixedSizeLSSVC | FixedSizeLSSVR | LSSVMClassifier | LSSVMRegressor
    return isinstance(model, kinds)


def prepared_table(model: Model) -> PreparedTable | None:
    """Return how a model prepares tables; None where it takes numbers, or prepares scans."""
    if hasattr(model, "preparations_"):
        ready: Any = model.preparations_  # all of the same columns; this one shows a shift
        found: PreparedTable = ready.get("standardised", next(iter(ready.values()))).prepared_
        return found
    steps: Any = getattr(model, "steps", None)
    return None if steps is None else getattr(steps[0][1], "prepared_", None)


def takes_tables(model: Model) -> bool:
    """Say whether the methods of a model take columns with names."""
    return hasattr(model, "preparations_") or hasattr(model, "steps")


def needed_columns(model: Model) -> tuple[str, ...]:
    """Return the columns that a model reads."""
    ready = prepared_table(model)
    names = tuple(str(name) for name in getattr(model, "feature_names_in_", ()))
    if ready is not None and ready.named:
        names = ready.used
    if not names:
        raise InvalidInputError(
            "The model was fitted to columns without names, so they cannot be found in a file: "
            "fit it to a table with named columns, or use it from Python."
        )
    return names


def column_types(model: Model) -> dict[str, str]:
    """Return how the columns of a model are to be read from CSV."""
    if hasattr(model, "preparation_"):
        schema = model.preparation_.schema
        return dict(zip(schema.names, schema.kinds, strict=True))
    ready = prepared_table(model)
    columns = () if ready is None else ready.columns
    return {column.name: _TYPES[column.kind] for column in columns if column.kind in _TYPES}


def model_scan(model: Model, table: Table, target: str | None, weight: str | None = None) -> Scan:
    """Return the columns of a table that a model reads, typed as in its training."""
    names = needed_columns(model)
    table.need(names, ", which the model needs")
    types = {name: kind for name, kind in column_types(model).items() if name in names}
    if target is not None:
        table.need([target], ", the target")
        if target in names:
            raise InvalidInputError(
                f"The column {target!r} cannot be the target: the model learns from it."
            )
        types[target] = target_type(model)
    if weight is not None:
        table.need([weight], ", the weight")
    return table.scan(target, names, weight, types)


def target_type(model: Model) -> str:
    """Return how the target of a model is to be read from CSV."""
    if not is_classifier(model):
        return "number"
    kind = model.classes_.dtype.kind
    return "integer" if kind in "iu" else "number" if kind in "bf" else "text"


def model_blocks(model: Model, data: Scan) -> Iterator[tuple[Any, Any]]:
    """Yield blocks of raw rows, with what the methods of the model take for them."""
    plain = not hasattr(model, "preparation_") and not takes_tables(model)
    if plain and data.schema.texts:
        raise InvalidInputError(
            f"The columns {list(data.schema.texts)} hold text, which the model cannot read."
        )
    for block in data.blocks():
        yield block, as_given(model, block, data.schema)


def as_given(model: Model, block: Any, schema: Schema) -> Any:
    """Return a block of raw rows as the methods of the model take them."""
    if hasattr(model, "preparation_"):
        return block
    return as_columns(block, schema) if takes_tables(model) else block.numbers


def as_columns(block: Any, schema: Schema) -> Any:
    """Return the columns of raw rows as an Arrow table; dates are text."""
    import pyarrow as pa

    found = dict(zip(schema.numbers, block.numbers.T, strict=True))
    for name, text in zip(schema.texts, block.texts, strict=True):
        levels = pa.array([*text.levels, None], pa.string())
        found[name] = levels.take(pa.array(text.codes % len(levels)))
    return pa.table({name: found[name] for name in schema.names})


def fit_scan(model: Model, data: Scan, output: Output, classes: bool, groups: Any = None) -> bool:
    """Fit a model to the rows of a scan while its progress is shown; say whether it was stopped.

    The models for large data take the scan; for the others, and for groups, all rows are read.

    Parameters
    ----------
    model : estimator
    data : Scan
    output : Output
    classes : bool
        Whether classes are predicted.
    groups : array of shape (n,) or None, default=None
        Rows of one group are left out together; for models that have all rows in memory.
    """
    from lssvm.data.raw import RawBlock

    fit: Any = model.fit
    with FitProgress(output, classes, last_step(model).get_params().get("scoring")) as progress:
        if groups is None and reads_scans(model):
            fit(data)
            return progress.stopped
        whole = RawBlock.join(list(data.blocks()))
        steps: Any = getattr(model, "steps", None)
        last = "" if steps is None else f"{steps[-1][0]}__"
        options = {}
        if whole.weight is not None:
            options[f"{last}sample_weight"] = whole.weight
        if groups is not None:
            options[f"{last}groups"] = groups
            if steps is not None:  # what is encoded by the target is encoded without the group
                options[f"{steps[0][0]}__groups"] = groups
        fit(as_columns(whole, data.schema), whole.target, **options)
    return progress.stopped


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model out of its file.

    Attributes
    ----------
    model : estimator
    card : dict
        What was saved beside it (``metrics=``); empty for models that were saved from Python.
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
    >>> from lssvm.cli.models import checked
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
