"""The errors and warnings of the library.

::

    LSSVMError
    ├── InvalidInputError        (ValueError)              data or a parameter is not usable
    │   └── NotPositiveDefiniteError                       a kernel matrix is indefinite
    ├── MemoryBudgetError        (MemoryError, ValueError) refused before anything is allocated
    ├── MissingDependencyError   (ImportError)             an extra is not installed
    ├── ModelFileError           (ValueError)              a model file is not usable
    └── ScratchError             (OSError)                 no room for rows on their way to parts

    NumericalWarning      (UserWarning)   the answer is right for a slightly changed problem
    ConvergenceWarning    (UserWarning)   an iteration stopped before its tolerance
    ScaleWarning          (UserWarning)   columns on such different scales that some do not count

Every message states what was passed, what is needed and what to change.
"""

from __future__ import annotations

import importlib
import inspect
import unicodedata
from typing import Any


class LSSVMError(Exception):
    """Root of all errors raised by the library."""


class InvalidInputError(LSSVMError, ValueError):
    """Data or a parameter that cannot be used."""


def not_usable(name: str, value: object, needed: str) -> InvalidInputError:
    """Return the error of a parameter with a value that cannot be used."""
    return InvalidInputError(f"{name}={value!r} is not usable: {needed}")


def not_known(name: str, value: object, known: str) -> InvalidInputError:
    """Return the error of a parameter that has to be one of some words."""
    return InvalidInputError(f"{name}={value!r} is not known: {known}")


class NotPositiveDefiniteError(InvalidInputError):
    """A kernel matrix whose regularised system is not positive definite."""


class MemoryBudgetError(LSSVMError, MemoryError, ValueError):
    """An array that would not fit into the memory budget; nothing was allocated."""


class MissingDependencyError(LSSVMError, ImportError):
    """An optional library that a call needs is not installed."""


def install(name: str) -> str:
    """Return the command that installs a library, or an extra of this package such as "[plots]"."""
    return f"pip install '.{name}' in a clone of lssvm" if name[0] == "[" else f"pip install {name}"


def library(module: str, needed: str, name: str, otherwise: str = "") -> Any:
    """Import an optional library, or raise with what needs it and the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        message = f"{needed}, which is not installed: {install(name)}{otherwise}."
        raise MissingDependencyError(message) from error


class ModelFileError(LSSVMError, ValueError):
    """A model file that is corrupt, hostile or of an unknown format."""


class ScratchError(LSSVMError, OSError):
    """A scratch folder that cannot hold the rows of a data set."""


class Stopped(Exception):
    """Raised by a callback to end a search or a fit with the best result so far."""


class NumericalWarning(UserWarning):
    """The system was changed slightly (jitter, fewer prototypes) to keep it solvable."""


class ConvergenceWarning(UserWarning):
    """An iterative method stopped before it reached its tolerance."""


class ColumnWarning(UserWarning):
    """Columns of a table are dropped, or read in a way that is a guess."""


class ScaleWarning(UserWarning):
    """Columns differ in scale so much that a kernel with one width does not see the small ones."""


def level_of_caller() -> int:
    """Return the level of the line that has called this package, for a warning about it."""
    frame, level, inner = inspect.currentframe(), 0, ("lssvm", "sklearn", "contextlib")
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] in inner:
        frame, level = frame.f_back, level + 1
    return level


# Control characters, format characters (direction marks, zero widths), surrogates, code points
# without a character, and the two separators that break a line.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})


def printable(text: object, limit: int = 200) -> str:
    """Write a name for a message: what a terminal would obey or hide becomes an escape.

    Names of files, columns and labels come from other people. An escape sequence in one could
    repaint the screen, a direction mark could show a name in another order than it has.
    """
    whole = text if isinstance(text, str) else str(text)
    printed = "".join(map(_visible, whole[:limit]))
    return printed if len(whole) <= limit else printed + "..."


def shown(value: object, limit: int = 40) -> str:
    """Write a value for a message, such as text in quotation marks; long ones are cut.

    Examples
    --------
    >>> from lssvm._core.errors import shown
    >>> shown("blue"), shown(1.5), shown("a cell may hold a whole letter", 10)
    ("'blue'", '1.5', "'a cell may...'")
    """
    if not isinstance(value, str):
        return printable(repr(value), limit)
    return repr(value if len(value) <= limit else value[:limit] + "...")


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN:
        return character
    return character.encode("unicode_escape").decode("ascii")
