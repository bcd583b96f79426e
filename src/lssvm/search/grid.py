"""The full grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.search.base import Search
from lssvm.search.recorder import Recorder
from lssvm.search.space import Space


@dataclass(frozen=True)
class GridSearch(Search):
    """Evaluate every pair of a grid.

    Cost: one call of :meth:`~lssvm.tuning.Objective.at` per value of gamma, with all values of
    C in one call of :meth:`~lssvm.tuning.Point.losses`.

    Parameters
    ----------
    C : array-like of shape (c,) or None, default=None
        Values of C; None: 10 values over the range of the space, one per decade by default.
    gamma : array-like of shape (g,) or None, default=None
        Kernel parameters; None: 9 values over the range of the space around its start, one per
        decade by default.
    checkpoint, on_interrupt
        Of every search, see `Search`.

    Notes
    -----
    Only what the space leaves open is searched: a value fixed there stands in for its axis. Values
    are kept as tuples of floats; given values may lie outside the ranges of the space.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from lssvm.tuning import Losses
    >>> from lssvm.search.space import Space
    >>> from lssvm.search.grid import GridSearch
    >>> point = SimpleNamespace(losses=lambda C: Losses((C - 2)[:, None] ** 2, np.ones(1), 0 * C))
    >>> objective = SimpleNamespace(at=lambda gamma: point)
    >>> result = GridSearch(C=[1, 2, 4], gamma=[0.1, 0.5]).run(objective, Space())
    >>> result.C, result.gamma, result.n_evaluations
    (2.0, 0.1, 6)
    """

    C: ArrayLike | None = None
    gamma: ArrayLike | None = None

    def __post_init__(self) -> None:
        for name in ("C", "gamma"):
            given = getattr(self, name)
            if given is None:
                continue
            try:
                values = np.atleast_1d(np.asarray(given, dtype=np.float64))
            except (TypeError, ValueError):
                values = np.empty(0)
            usable = values.ndim == 1 and values.size > 0
            if not usable or not (np.isfinite(values) & (values > 0)).all():
                raise InvalidInputError(
                    f"{name}={given!r} is not an axis of a grid: give positive numbers in one "
                    "dimension, or None for the default."
                )
            object.__setattr__(self, name, tuple(values.tolist()))

    @classmethod
    def ding2011(cls) -> GridSearch:
        """Return the 13 x 11 grid of [Ding2011, Section 7.2].

        gamma is 2^-15, 2^-13, ..., 2^9. The paper's mu is 2^-15, 2^-13, ..., 2^5 and C = 1 / mu
        ([Ding2011, eq. (1)]), so C is 2^-5, ..., 2^15.

        Examples
        --------
        >>> from lssvm.search.grid import GridSearch
        >>> grid = GridSearch.ding2011()
        >>> len(grid.gamma), len(grid.C), grid.C[0], grid.C[-1]
        (13, 11, 0.03125, 32768.0)
        """
        return cls(C=2.0 ** np.arange(-5, 16, 2), gamma=2.0 ** np.arange(-15, 10, 2))

    def _search(self, record: Recorder, space: Space, rng: np.random.Generator) -> None:
        C = space.C_grid(10) if self.C is None or not space.tune_C else np.array(self.C)
        gammas: FloatArray | list[float | None]
        if not space.tune_gamma:
            gammas = [space.gamma]
        elif self.gamma is None:
            gammas = space.gamma_start * np.geomspace(*space.gamma_range, num=9)
        else:
            gammas = np.array(self.gamma)
        record.planned = len(gammas) * len(C)
        for gamma in gammas:
            record.evaluate("grid", gamma, C)
