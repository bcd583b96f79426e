"""What all searches share: how a run is started, interrupted, continued and recorded."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from lssvm._core.arrays import FloatArray, OnEvent
from lssvm._core.errors import InvalidInputError, Stopped
from lssvm._core.random import RandomState, as_generator
from lssvm.criteria.base import Objective
from lssvm.search.checkpoint import Checkpoint
from lssvm.search.recorder import Recorder
from lssvm.search.space import Space, TuningResult


@dataclass(frozen=True, kw_only=True)
class Search(ABC):
    """A rule that decides which pairs (C, gamma) are evaluated.

    A search is a frozen dataclass of its settings and implements :meth:`_search`; everything else
    (memory of what was evaluated, events, checkpoint, interruption, record) is shared.

    Parameters
    ----------
    checkpoint : str, path-like or None, default=None
        File that keeps every evaluation. Where it exists, its evaluations are replayed instead of
        computed, and the answer is that of a run that was never stopped, bit for bit; a run with
        ``random_state=None`` takes the seed of the file.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: it ends the fit with a KeyboardInterrupt, as in any library, or the search
        with the best pair so far.

    Examples
    --------
    >>> from lssvm.tuning import GridSearch, PathSearch, Search
    >>> issubclass(PathSearch, Search) and issubclass(GridSearch, Search)
    True
    """

    checkpoint: str | os.PathLike[str] | None = field(default=None, repr=False, compare=False)
    on_interrupt: str = field(default="raise", repr=False, compare=False)
    stochastic: ClassVar[bool] = False
    """Whether the search draws random numbers."""

    def run(
        self,
        objective: Objective,
        space: Space,
        *,
        random_state: RandomState = None,
        on_event: OnEvent | None = None,
        fingerprint: str = "",
        resume: bool = True,
    ) -> TuningResult:
        """Search for the best pair.

        Who listens to the search may stop it (`lssvm._core.errors.Stopped`), and so may Ctrl-C with
        ``on_interrupt="keep"``: the best pair so far is the answer then, unless nothing was
        evaluated yet.

        Parameters
        ----------
        objective : Objective
            What is minimised.
        space : Space
            What is tuned, and where.
        random_state : int, Generator, RandomState or None, default=None
            Seed of the annealing; the other searches draw nothing.
        on_event : callable or None, default=None
            Called with a dict after every batch of evaluations, see
            :class:`~lssvm.search.recorder.Recorder`.
        fingerprint : str, default=""
            Whatever else the losses depend on (data, kernel, folds, scoring). A checkpoint with
            another fingerprint, search, space or seed is refused.
        resume : bool, default=True
            Whether the checkpoint is used; not where a fit searches a second time.

        Returns
        -------
        TuningResult
        """
        if self.on_interrupt not in ("raise", "keep"):
            raise InvalidInputError(
                f"on_interrupt={self.on_interrupt!r} is not known: choose 'raise' or 'keep'."
            )
        seed = int(as_generator(random_state).integers(2**63 - 1)) if self.stochastic else 0
        store = None
        if self.checkpoint is not None and resume:
            settings: dict[str, str | int] = {
                "search": repr(self),
                "space": repr(space),
                "fingerprint": fingerprint,
                "seed": seed,
            }
            store = Checkpoint(self.checkpoint, settings, ("seed",) if random_state is None else ())
            seed = int(store.settings["seed"])
        record = Recorder(
            objective, on_event=on_event, checkpoint=store, counted_rows=space.counted_rows
        )
        interrupted = False
        try:
            self._search(record, space, np.random.default_rng(seed))
        except (KeyboardInterrupt, Stopped) as error:
            kept = isinstance(error, Stopped) or self.on_interrupt == "keep"
            if not record.has_finite or not kept:
                raise
            interrupted = True
        return record.result(interrupted=interrupted)

    @abstractmethod
    def _search(self, record: Recorder, space: Space, rng: np.random.Generator) -> None:
        """Ask ``record`` for evaluations until satisfied."""


def whole(*values: object) -> bool:
    """Say whether all of some settings are whole numbers."""
    return all(hasattr(value, "__index__") for value in values)


def zoom(values: FloatArray, best: int, n: int) -> FloatArray:
    """Return a finer set around one element of an increasing set.

    Parameters
    ----------
    values : ndarray of shape (k,)
        Increasing positive values, k >= 2.
    best : int
        Index of the element.
    n : int
        Number of new values on either side, evenly spaced in the logarithm and strictly inside
        the neighbours. At an end of the set the missing neighbour is the mirror image (in the
        logarithm) of the other one.

    Returns
    -------
    ndarray of shape (2 n + 1,)
        Increasing; the middle is ``values[best]``.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.search.base import zoom
    >>> zoom(np.array([1.0, 100.0, 400.0]), 1, 1)
    array([ 10., 100., 200.])
    """
    centre = values[best]
    left = values[best - 1] if best > 0 else centre**2 / values[best + 1]
    right = values[best + 1] if best + 1 < len(values) else centre**2 / values[best - 1]
    below = np.geomspace(left, centre, n + 2)[1:-1]
    above = np.geomspace(centre, right, n + 2)[1:-1]
    return np.concatenate([below, [centre], above])
