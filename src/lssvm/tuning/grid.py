"""Grids: the full one, and the one of [Suykens2002]_ that shrinks around the best point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.tuning.search import Recorder, Search, Space, whole, zoom


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
    >>> from lssvm.tuning.search import Space
    >>> from lssvm.tuning.grid import GridSearch
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
        >>> from lssvm.tuning.grid import GridSearch
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


SIGMA_0 = (0.5, 5.0, 10.0, 15.0, 25.0, 50.0, 100.0, 250.0, 500.0)  # times sqrt(n_features)
GAMMA_0 = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0)  # our C


@dataclass(frozen=True)
class ShrinkingGridSearch(Search):
    r"""Search a grid, then ``i_max`` times a finer one around the best pair.

    Cost: 9 calls of :meth:`~lssvm.tuning.Objective.at` for the initial grid and 4 for each
    finer one (the best point is kept), each with 11 values of C.

    Parameters
    ----------
    i_max : int, default=3
        Number of refinements.
    checkpoint, on_interrupt
        Of every search, see `Search`.

    Notes
    -----
    "LS-SVM tuning - grid search algorithm", [Suykens2002, Section 3.4.2], steps 2 to 4; the splits
    of steps 1 and 2 belong to the objective.

    ======================== =====================================================
    paper                    here
    ======================== =====================================================
    :math:`\sigma`           ``gamma`` = :math:`1/\sigma^2`
    :math:`\gamma`           ``C``
    :math:`n` (inputs)       ``space.n_features``
    ======================== =====================================================

    The chapter leaves the "locally refined grid" open. Here it lies strictly inside the neighbours
    of the optimum, evenly spaced in the logarithm on either side: 5 kernel parameters (the spacing
    shrinks by 3 each time) and 11 values of C (by 6), the optimum included. At an end of the set
    the missing neighbour is mirrored, so the grid can move outwards.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from lssvm.tuning import Losses
    >>> from lssvm.tuning.search import Space
    >>> from lssvm.tuning.grid import ShrinkingGridSearch
    >>> def at(gamma):
    ...     def losses(C):
    ...         loss = (np.log(C) - 2.0) ** 2 + (np.log(gamma) + 3.0) ** 2
    ...         return Losses(fold=loss[:, None], weight=np.ones(1), tie=loss)
    ...     return SimpleNamespace(losses=losses)
    >>> result = ShrinkingGridSearch().run(SimpleNamespace(at=at), Space(n_features=4))
    >>> bool(abs(np.log(result.gamma) + 3.0) < 0.1)
    True
    """

    i_max: int = 3

    def __post_init__(self) -> None:
        if not whole(self.i_max) or self.i_max < 0:
            raise InvalidInputError(f"i_max={self.i_max!r}: give the number of refinements, >= 0.")

    def _search(self, record: Recorder, space: Space, rng: np.random.Generator) -> None:
        sigma = np.array(SIGMA_0) * np.sqrt(space.n_features)  # [Suykens2002, 3.4.2, step 2]
        gammas: FloatArray | None = np.sort(1.0 / sigma**2) if space.tune_gamma else None
        C = np.array(GAMMA_0) if space.C is None else np.array([space.C])
        first = (9 if space.tune_gamma else 1) * C.size
        finer = (5 if space.tune_gamma else 1) * C.size
        record.planned = first + self.i_max * finer
        for i in range(self.i_max + 1):
            if gammas is None:
                record.evaluate(f"grid {i}", space.gamma, C)
            else:
                middle = gammas.size // 2
                for gamma in np.roll(gammas, -middle):  # from the middle, whose point is alive
                    record.evaluate(f"grid {i}", gamma, C)
            best = record.best  # [Suykens2002, 3.4.2, step 3]
            if space.tune_C:
                C = zoom(C, int(np.flatnonzero(C == best.C)[0]), 5)
            if gammas is not None:
                gammas = zoom(gammas, int(np.flatnonzero(gammas == best.gamma)[0]), 2)
