"""Many cases in one test: a failure says which one it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def case(*what: Any) -> Iterator[None]:
    """Add the case to the message of whatever goes wrong."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in the case {', '.join(map(str, what))}")
        raise
