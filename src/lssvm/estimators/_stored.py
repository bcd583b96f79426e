"""What a model that was loaded from a file may have been stored without."""

from __future__ import annotations

from typing import Any

from lssvm._core.errors import InvalidInputError

FORMS = ("support", "prediction", "all")
"""How much of a model a file holds, from least to all; see `lssvm.save`."""


def stored_form(model: Any) -> str:
    """Return how much of the model there is: "all" unless it came from a file with less."""
    return str(getattr(model, "_stored", "all"))


def need_stored(model: Any, form: str, what: str) -> None:
    """Raise where ``what`` was asked of a model that was stored with less than ``form``."""
    kept = stored_form(model)
    if FORMS.index(kept) < FORMS.index(form):
        raise InvalidInputError(
            f"{what} cannot be had from this model: it was loaded from a file that was saved with "
            f"keep={kept!r}. Save the fitted model with keep={form!r}."
        )
