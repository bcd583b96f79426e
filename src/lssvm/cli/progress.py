"""Live progress of a fit, and what Ctrl-C does to it."""

from __future__ import annotations

import math
import signal
import sys
import time
from contextlib import ExitStack, suppress
from typing import Any

from lssvm._core.errors import Stopped
from lssvm._core.progress import listening
from lssvm.cli.console import Output

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
        if "text" in event:  # of the table model, which says itself what it does
            self._show(done, planned, event["text"])
        else:
            self._show(done, planned, "solving" if over else f"tuning ({stage})", self._error(best))
        if self.stopped and not over:
            raise Stopped

    def _error(self, loss: float | None) -> str:
        if loss is None or not math.isfinite(loss):
            return ""
        if self.scoring is not None:
            return f"best {self.scoring} {-loss:.4g}"
        if self.classes:
            return f"best error {1.0 + loss:.2%}"
        return f"best RMSE {math.sqrt(max(loss, 0.0)):.4g}"

    def _show(self, done: int | None, planned: int | None, what: str, best: str = "") -> None:
        if self._bar is not None:
            told: dict[str, Any] = {"note": what}
            if done is not None:
                told = {"description": what, "completed": done, "total": planned, "best": best}
            self._bar.update(self._bar.task_ids[0], **{"note": "", **told})
            return
        now = time.monotonic()
        if now - self._last >= _LINE_EVERY:
            self._last = now
            if ", " in what:  # it says how far it is
                self.output.note(f"lssvm: {what}")
                return
            of = f" {done} of at most {planned} evaluations" if done else ""
            tail = f", {best}" if best else ""
            self.output.note(f"lssvm: {what}{of}{tail}, {now - self._start:.0f} s")

    def _interrupt(self, *_: Any) -> None:
        again, self.stopped = self.stopped, True
        if again or not self.has_model:
            raise KeyboardInterrupt
        if self._searching:
            raise Stopped  # the search ends with what is best so far
        self.output.note("lssvm: solving with the best parameters so far; Ctrl-C again gives up")


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
