"""Live progress of a fit, and what Ctrl-C does to it."""

from __future__ import annotations

import math
import signal
import sys
import time
from typing import Any

from lssvm._core.errors import Stopped
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
        self.stopped = self.has_model = False
        self._searching = False
        self._last = self._start = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> FitProgress:
        from lssvm._core.progress import listening

        self._start = self._last = time.monotonic()
        self._listening = listening(self)
        self._listening.__enter__()
        if not self.output.quiet and sys.stderr.isatty():
            self._bar = _bar()
            self._bar.start()
            self._task = self._bar.add_task("reading", total=None, best="", note="")
        try:
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        except ValueError:  # not in the main thread: nobody presses Ctrl-C there
            self._before = None
        return self

    def __exit__(self, *error: Any) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        self._listening.__exit__(None, None, None)
        if self._bar is not None:
            self._bar.stop()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

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
            if done is None:
                self._bar.update(self._task, note=what)
            else:
                self._bar.update(
                    self._task, description=what, completed=done, total=planned, best=best, note=""
                )
            return
        now = time.monotonic()
        if now - self._last >= _LINE_EVERY:
            self._last = now
            of = f" {done} of at most {planned} evaluations" if done else ""
            tail = f", {best}" if best else ""
            self.output.note(f"lssvm: {what}{of}{tail}, {self.elapsed:.0f} s")

    def _interrupt(self, *_: Any) -> None:
        again, self.stopped = self.stopped, True
        if again or not self.has_model:
            raise KeyboardInterrupt
        if self._searching:
            raise Stopped  # the search ends with what is best so far
        self.output.note("lssvm: solving with the best parameters so far; Ctrl-C again gives up")


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[best]}"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
