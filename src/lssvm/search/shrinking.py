"""The chapter's shrinking grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.search.base import Search, whole, zoom
from lssvm.search.recorder import Recorder
from lssvm.search.space import Space

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
    >>> from lssvm.search.space import Space
    >>> from lssvm.search.shrinking import ShrinkingGridSearch
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
