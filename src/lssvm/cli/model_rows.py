"""The rows of a file as a model takes them: its columns, typed as in its training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from lssvm._core.errors import InvalidInputError

if TYPE_CHECKING:
    from lssvm.cli.tables import Table
    from lssvm.data import Scan


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


def needed_columns(model: Model) -> tuple[str, ...]:
    """Return the columns that a model reads."""
    names = tuple(str(name) for name in getattr(model, "feature_names_in_", ()))
    if not names:
        raise InvalidInputError(
            "The model was fitted to columns without names, so they cannot be found in a file: "
            "fit it to a table with named columns, or use it from Python."
        )
    return names


def model_scan(model: Model, table: Table, target: str | None, weight: str | None = None) -> Scan:
    """Return the columns of a table that a model reads, typed as in its training."""
    names = needed_columns(model)
    table.need(names, ", which the model needs")
    types = {}
    if hasattr(model, "preparation_"):
        schema = model.preparation_.schema
        types = dict(zip(schema.names, schema.kinds, strict=True))
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
    if not hasattr(model, "preparation_") and data.schema.texts:
        raise InvalidInputError(
            f"The columns {list(data.schema.texts)} hold text, which the model cannot read."
        )
    for block in data.blocks():
        yield block, as_given(model, block)


def as_given(model: Model, block: Any) -> Any:
    """Return a block of raw rows as the methods of the model take them."""
    return block if hasattr(model, "preparation_") else block.numbers
