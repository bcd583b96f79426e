"""What is written where: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lssvm._core.text import printable

LONGEST = 10_000  # letters of a line


@dataclass(frozen=True)
class Output:
    """The three ways of a command to speak.

    Parameters
    ----------
    json : bool
        Results are one JSON object; tables and lines are not written.
    quiet : bool
        Notes, tables and lines are not written.

    Examples
    --------
    >>> from lssvm.cli.console import Output
    >>> Output(json=True, quiet=False).result({"accuracy": 0.5, "rows": 3})
    {"accuracy": 0.5, "rows": 3}
    >>> Output(json=False, quiet=False).line("accuracy 0.5")
    accuracy 0.5
    """

    json: bool
    quiet: bool

    @property
    def speaks(self) -> bool:
        """Whether people read standard output."""
        return not self.json and not self.quiet

    def note(self, text: str) -> None:
        """Write a line to standard error."""
        if not self.quiet:
            sys.stderr.write(f"{printable(text, LONGEST)}\n")

    def line(self, text: str) -> None:
        """Write a line of the result."""
        if self.speaks:
            sys.stdout.write(f"{printable(text, LONGEST)}\n")

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        left: Sequence[int] = (0,),
    ) -> None:
        """Write a table; the columns ``left`` hold words."""
        if not self.speaks:
            return
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for j, name in enumerate(columns):
            side: Any = "left" if j in left else "right"
            made.add_column(printable(name), justify=side, overflow="fold")
        for row in rows:
            made.add_row(*[printable(shown(value), LONGEST) for value in row])
        console = Console(file=sys.stdout, markup=False, highlight=False)
        console.width = console.width if console.is_terminal else 120
        with console.capture() as text:
            console.print(made)
        lines = [line.rstrip() for line in text.get().splitlines()]
        heading = [printable(title, LONGEST)] if title else []
        sys.stdout.write("\n".join([*heading, *lines, "", ""]))

    def result(self, values: Mapping[str, Any]) -> None:
        """Write the JSON object, where one was asked for."""
        if self.json:
            sys.stdout.write(json.dumps(plain(values), allow_nan=False) + "\n")


def shown(value: Any) -> str:
    """Return a value as a table shows it.

    Examples
    --------
    >>> from lssvm.cli.console import shown
    >>> shown(0.123456), shown(12345678.0), shown(None), shown("a"), shown(7)
    ('0.1235', '1.235e+07', '', 'a', '7')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def plain(value: Any) -> Any:
    """Return a value in types that JSON knows; what is not a finite number becomes null.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.cli.console import plain
    >>> plain({"a": np.array([1.0, np.nan]), "b": np.int64(3), "c": (True, "x")})
    {'a': [1.0, None], 'b': 3, 'c': [True, 'x']}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


@contextmanager
def plain_warnings(output: Output) -> Iterator[None]:
    """Write every warning as one line, each text once."""
    told: set[str] = set()

    def show(message: Any, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in told:
            told.add(text)
            output.note(f"lssvm: warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.showwarning = show
        yield
