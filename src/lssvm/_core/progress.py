"""Progress events on standard error, for people who asked with ``verbose``."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO


class Progress:
    """Write what a search reports as one line that is rewritten, or as lines in a log.

    Parameters
    ----------
    verbose : int
        0 writes nothing, 1 at most one line a second, 2 every event.
    stream : text stream, optional
        Standard error by default.

    Examples
    --------
    >>> import io
    >>> from lssvm._core.progress import Progress
    >>> stream = io.StringIO()
    >>> Progress(2, stream)({"stage": "path", "n_evaluations": 3, "best_loss": -0.9,
    ...                      "best_C": 1.0, "best_gamma": 0.5, "elapsed": 0.2})
    >>> stream.getvalue().strip()
    'lssvm: path, 3 evaluations, best score 0.9 at C=1, gamma=0.5, 0.2 s'
    """

    def __init__(self, verbose: int, stream: TextIO | None = None) -> None:
        self.verbose = verbose
        self.stream = sys.stderr if stream is None else stream
        self._last = -1.0

    def __call__(self, event: dict[str, Any]) -> None:
        """Report one event."""
        if self.verbose < 1:
            return
        now = time.monotonic()
        final = event.get("stage") in ("done", "interrupted")
        if self.verbose == 1 and not final and now - self._last < 1.0:
            return
        self._last = now
        if "text" in event:
            self._write(f"lssvm: {event['text']}", final)
            return
        planned = event.get("planned")
        count = event.get("n_evaluations", 0)
        text = f"lssvm: {event.get('stage')}, {count}{f'/{planned}' if planned else ''} evaluations"
        if event.get("best_loss") is not None:
            text += f", best score {-event['best_loss']:.6g} at C={event['best_C']:.4g}"
            if event.get("best_gamma") is not None:
                text += f", gamma={event['best_gamma']:.4g}"
        self._write(f"{text}, {event.get('elapsed', 0.0):.1f} s", final)

    def _write(self, text: str, final: bool) -> None:
        live = self.stream.isatty() and self.verbose == 1
        self.stream.write(f"\r\x1b[2K{text}" if live else f"{text}\n")
        if live and final:
            self.stream.write("\n")
        self.stream.flush()
