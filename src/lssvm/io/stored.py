"""Pipelines and transformers as a file holds them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lssvm.io.known import Model


@dataclass(frozen=True)
class StoredTransformer:
    """A transformer as a file holds it.

    Attributes
    ----------
    name : str
        Of the step.
    kind : str
        The name of its class, "passthrough" or "drop".
    parameters : dict
        Those of the constructor that matter after the fit.
    fitted : dict
        What it has learned, by public names.
    parts : list of StoredTransformer
        The steps of a pipeline, the parts of a `ColumnTransformer`.
    columns : dict or None
        The columns of such a part: a list, a slice, or one.
    """

    name: str
    kind: str
    parameters: dict[str, Any]
    fitted: dict[str, Any]
    parts: list[StoredTransformer]
    columns: dict[str, Any] | None = None

    def with_columns(self, columns: dict[str, Any]) -> StoredTransformer:
        """Return it as a part of a `ColumnTransformer`."""
        return replace(self, columns=columns)


@dataclass(frozen=True)
class StoredPipeline:
    """A pipeline as a file holds it.

    Attributes
    ----------
    steps : list of StoredTransformer
    name : str
        Of the last step.
    model : Model
    """

    steps: list[StoredTransformer]
    name: str
    model: Model
