"""Progress events on standard error, for ``verbose``."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

_LISTENERS: list[Callable[[dict[str, Any]], None]] = []


@contextmanager
def listening(listener: Callable[[dict[str, Any]], None]) -> Iterator[None]:
    """Have every event reported to a function too, whatever ``verbose`` is."""
    _LISTENERS.append(listener)
    try:
        yield
    finally:
        _LISTENERS.remove(listener)


class Progress:
    """Write what a search reports: a line that is rewritten, or lines in a log."""

    def __init__(self, verbose: int, stream: TextIO | None = None) -> None:
        self.verbose = verbose
        self.stream = sys.stderr if stream is None else stream
        self._last = -1.0
        self._printed = 0  # length of the text on the line that is rewritten

    def __call__(self, event: dict[str, Any]) -> None:
        """Report one event."""
        for listener in _LISTENERS:
            listener(event)
        if self.verbose < 1:
            return
        now = time.monotonic()
        final = event.get("stage") in ("done", "interrupted")
        if self.verbose == 1 and not final and now - self._last < 1.0:
            return
        self._last = now
        notebook = type(self.stream).__module__.partition(".")[0] == "ipykernel"
        live = self.verbose == 1 and (notebook or self.stream.isatty())
        text = f"lssvm: {event['text']}" if "text" in event else _line(event, live and not final)
        if live:
            self._rewrite(text, notebook, final)
        else:
            self.stream.write(f"{text}\n")
        self.stream.flush()

    def _rewrite(self, text: str, notebook: bool, final: bool) -> None:
        if notebook:  # no control codes: what was longer is overwritten by blanks
            self.stream.write("\r" + text.ljust(self._printed))
        else:  # a line that wraps could not be rewritten
            text = text[: max(shutil.get_terminal_size().columns - 1, 20)]
            self.stream.write(f"\r\x1b[2K{text}")
        self._printed = len(text)
        if final:
            self.stream.write("\n")
            self._printed = 0


def _line(event: dict[str, Any], bar: bool) -> str:
    """Return an event of a search as a line of text."""
    count, planned = int(event.get("n_evaluations", 0)), int(event.get("planned") or 0)
    text = f"lssvm: {event.get('stage')}, "
    if planned and bar:
        done = min(10, 10 * count // planned)
        text += f"[{'#' * done}{'.' * (10 - done)}] "
    text += f"{count}{f'/{planned}' if planned else ''} evaluations"
    if event.get("best_loss") is not None:
        text += f", best score {-event['best_loss']:.6g} at C={event['best_C']:.4g}"
        if event.get("best_gamma") is not None:
            text += f", gamma={event['best_gamma']:.4g}"
    elapsed = float(event.get("elapsed", 0.0))
    text += f", {duration(elapsed)}"
    if 0 < count < planned and elapsed >= 1.0:  # a plan is the most that a search may need
        text += f", at most {duration(elapsed * (planned - count) / count)} left"
    return text


def duration(seconds: float) -> str:
    """Return a time for people."""
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Listener:
    """What long work reports its progress to."""

    def __init__(
        self,
        on_event: Callable[[dict[str, Any]], None],
        was_stopped: Callable[[], bool] | None = None,
    ) -> None:
        self.on_event = on_event
        self._was_stopped = was_stopped

    @property
    def stopped(self) -> bool:
        """Whether the listener has requested a stop."""
        return self._was_stopped is not None and self._was_stopped()
