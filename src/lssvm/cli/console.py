"""Standard output, standard error, progress, and tables written block by block."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from lssvm._core.atomic import replacing
from lssvm._core.errors import Stopped, printable
from lssvm._core.progress import listening

LONGEST = 10_000  # letters of a line


@dataclass(frozen=True)
class Output:
    """Standard output and standard error of a command.

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
    def prints(self) -> bool:
        """Whether tables and lines are written."""
        return not self.json and not self.quiet

    def note(self, text: str) -> None:
        """Write a line to standard error."""
        if not self.quiet:
            sys.stderr.write(f"lssvm: {printable(text, LONGEST)}\n")

    def line(self, text: str) -> None:
        """Write a line of the result."""
        if self.prints:
            sys.stdout.write(f"{printable(text, LONGEST)}\n")

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        left: Sequence[int] = (0,),
    ) -> None:
        """Write a table; the columns ``left`` hold words."""
        if not self.prints:
            return
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for j, name in enumerate(columns):
            side: Any = "left" if j in left else "right"
            table.add_column(printable(name), justify=side, overflow="fold")
        for row in rows:
            table.add_row(*[printable(shown(value), LONGEST) for value in row])
        console = Console(file=sys.stdout, markup=False, highlight=False)
        console.width = console.width if console.is_terminal else 120
        with console.capture() as text:
            console.print(table)
        lines = [line.rstrip() for line in text.get().splitlines()]
        heading = [printable(title, LONGEST)] if title else []
        sys.stdout.write("\n".join([*heading, *lines, "", ""]))

    def result(self, values: Mapping[str, Any]) -> None:
        """Write the JSON object, with --json."""
        if self.json:
            from lssvm.io.files import plain_json

            made = plain_json(values, "the result", unknown=str)
            sys.stdout.write(json.dumps(made, allow_nan=False) + "\n")


def shown(value: Any) -> str:
    """Return a value as a table shows it.

    Examples
    --------
    >>> from lssvm.cli.console import shown
    >>> shown(0.123456), shown(22340.4), shown(None), shown("a"), shown(7)
    ('0.1235', '22,340', '', 'a', '7')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
    return str(value)


def percent(share: float) -> str:
    """Return a share as per cent, to one digit behind the point.

    Examples
    --------
    >>> from lssvm.cli.console import percent
    >>> percent(0.72), percent(1.0)
    ('72.0 %', '100.0 %')
    """
    return f"{100.0 * share:.1f} %"


@contextmanager
def plain_warnings(output: Output) -> Iterator[None]:
    """Write every warning as one line, each text once."""
    seen: set[str] = set()

    def show(message: Any, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in seen:
            seen.add(text)
            output.note(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.showwarning = show
        yield


_LINE_EVERY = 5.0  # seconds between two lines where there is no terminal


class FitProgress:
    """Shows how far a fit is; used as a context manager around ``fit``.

    The first Ctrl-C ends the tuning with the best parameters so far; where the tuning is over, the
    model is solved to the end. A second one gives up.

    Parameters
    ----------
    output : Output
    classes : bool
        Whether the score of a search without ``scoring`` is an accuracy.
    scoring : str or None

    Attributes
    ----------
    stopped : bool
        Whether there was a Ctrl-C.
    has_model : bool
        Whether a search has found parameters.
    """

    def __init__(self, output: Output, classes: bool, scoring: str | None) -> None:
        self.output, self.classes, self.scoring = output, classes, scoring
        self.stopped = self.has_model = self._searching = False
        self._bar: Any = None

    def __enter__(self) -> FitProgress:
        self._start = self._last = time.monotonic()
        with ExitStack() as stack:
            stack.enter_context(listening(self))
            if not self.output.quiet and sys.stderr.isatty():
                self._bar = stack.enter_context(_bar())
                self._bar.add_task("reading", total=None, best="", note="")
            with suppress(ValueError):  # not in the main thread: nobody presses Ctrl-C there
                before = signal.signal(signal.SIGINT, self._interrupt)
                stack.callback(signal.signal, signal.SIGINT, before)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def __call__(self, event: dict[str, Any]) -> None:
        """Take an event of the library."""
        stage = event.get("stage")
        if stage is None:
            self._show(None, None, event.get("text", ""))
            return
        over = stage in ("done", "interrupted")
        self._searching = not over
        best = event.get("best_loss")
        self.has_model = self.has_model or (best is not None and math.isfinite(best))
        done, planned = event.get("n_evaluations", 0), event.get("planned") or None
        if "text" in event:  # of the table model
            self._show(done, planned, event["text"])
        else:
            self._show(done, planned, "solving" if over else f"tuning ({stage})", self._error(best))
        if self.stopped and not over:
            raise Stopped

    def _error(self, loss: float | None) -> str:
        if loss is None or not math.isfinite(loss):
            return ""
        if self.scoring is not None:
            return f"best {self.scoring} {shown(-loss)}"
        if self.classes:
            return f"best error {percent(1.0 + loss)}"
        return f"best RMSE {shown(math.sqrt(max(loss, 0.0)))}"

    def _show(self, done: int | None, planned: int | None, stage: str, best: str = "") -> None:
        if self._bar is not None:
            fields: dict[str, Any] = {"note": stage}
            if done is not None:
                fields = {"description": stage, "completed": done, "total": planned, "best": best}
            self._bar.update(self._bar.task_ids[0], **{"note": "", **fields})
            return
        now = time.monotonic()
        if now - self._last >= _LINE_EVERY:
            self._last = now
            if ", " in stage:  # with the progress in it
                self.output.note(f"{stage}")
                return
            of = f" {done} of at most {planned} evaluations" if done else ""
            tail = f", {best}" if best else ""
            self.output.note(f"{stage}{of}{tail}, {now - self._start:.0f} s")

    def _interrupt(self, *_: Any) -> None:
        again, self.stopped = self.stopped, True
        if again or not self.has_model:
            raise KeyboardInterrupt
        if self._searching:
            raise Stopped  # the search ends with what is best so far
        self.output.note("solving with the best parameters so far; Ctrl-C again gives up")


def _bar() -> Any:
    from rich import progress
    from rich.console import Console

    return progress.Progress(
        progress.SpinnerColumn(),
        "{task.description}",
        progress.BarColumn(),
        "{task.fields[best]}",
        "{task.fields[note]}",
        progress.TimeElapsedColumn(),
        "left",
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


ENDINGS = (".csv", ".parquet", ".arrow")
_RUN = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet takes cells that begin so for formulas


def escaped(value: Any) -> Any:
    """Return a cell of text that no spreadsheet runs: with an apostrophe before what it would.

    Examples
    --------
    >>> from lssvm.cli.console import escaped
    >>> escaped("=1+1"), escaped("a=b"), escaped("-1.5"), escaped(None)
    ("'=1+1", 'a=b', '-1.5', None)
    """
    if not isinstance(value, str) or not value.startswith(_RUN):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value  # a number that is kept as it was written


@contextmanager
def table_writer(out: str, *, escape: bool = True) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Give a function that writes columns; a file appears when it is complete.

    Parameters
    ----------
    out : str
        CSV, Parquet or Arrow by its ending; - is CSV on standard output.
    escape : bool, default=True
        Whether cells of text and names in CSV that begin with =, +, -, @, a tab or a carriage
        return get an apostrophe before them.
    """
    import csv

    import pyarrow as pa
    from pyarrow import parquet

    ending = ".csv" if out == "-" else os.path.splitext(out)[1].lower()
    cell = escaped if escape else (lambda value: value)
    with ExitStack() as stack:
        where: Any = sys.stdout if out == "-" else stack.enter_context(replacing(out))
        if ending == ".csv" and out != "-":
            where = stack.enter_context(open(where, "w", encoding="utf-8", newline=""))
        file: Any = None
        schema: Any = None  # of the first rows

        def write(columns: Mapping[str, Any]) -> None:
            nonlocal file, schema
            if ending == ".csv":
                rows: list[Any] = [columns] if file is None else []
                file = file or csv.writer(where, lineterminator="\n")
                rows += zip(*map(_as_list, columns.values()), strict=True)
                file.writerows(map(cell, row) for row in rows)
                return
            table = pa.table({name: _as_arrow(values) for name, values in columns.items()})
            if file is None:
                make = parquet.ParquetWriter if ending == ".parquet" else pa.ipc.new_file
                schema = table.schema
                file = stack.enter_context(make(where, schema))
            file.write_table(table.cast(schema))

        yield write
    sys.stdout.flush()


def _as_list(values: Any) -> Any:
    if type(values).__module__.startswith("pyarrow"):
        return values.to_pylist()
    return values if isinstance(values, list) else values.tolist()


def _as_arrow(values: Any) -> Any:
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        return values
    return pa.array(values.astype(object) if values.dtype.kind == "U" else values)
