"""How much time a fit may take, and what it has taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lssvm._core.errors import Stopped


@dataclass
class Clock:
    """A time limit and the speed that was measured so far.

    Attributes
    ----------
    limit : float or None
        Seconds; None for no limit. Without a limit nothing depends on measured times, so that the
        same data give the same model.

    Examples
    --------
    >>> from lssvm.fitting.clock import Clock
    >>> Clock(None).over(0.5), Clock(0.0).over(0.5)
    (False, True)
    """

    limit: float | None = None
    now: Callable[[], float] = time.monotonic
    started: float = field(init=False)
    operations: float = 0.0
    seconds: float = 0.0
    stopped: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.started = self.now()

    def spent(self) -> float:
        """Return the seconds since the start."""
        return self.now() - self.started

    def over(self, share: float) -> bool:
        """Say whether that share of the limit is spent.

        Raises
        ------
        Stopped
            After `stop`: who works on another thread is to end.
        """
        if self.stopped:
            raise Stopped
        return self.limit is not None and self.spent() >= share * self.limit

    def stop(self) -> None:
        """Have everyone who asks for the time end."""
        self.stopped = True

    def go_on(self) -> None:
        """Take `stop` back, for who finishes what was begun."""
        self.stopped = False

    def measured(self, operations: float, seconds: float) -> None:
        """Note that so many operations took so many seconds."""
        self.operations += operations
        self.seconds += seconds

    def affordable(self, operations: float, share: float) -> float:
        """Return how many of the wanted operations fit into a share of the time that is left."""
        if self.limit is None or not self.seconds:
            return operations
        left = max(self.limit - self.spent(), 0.0) * share
        return min(operations, left * self.operations / self.seconds)
