"""The path of C at kernel parameters that are already known to be good."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lssvm.search.path import PathSearch
from lssvm.search.recorder import Recorder
from lssvm.search.space import Space, TuningResult


@dataclass(frozen=True)
class ListedPathSearch(PathSearch):
    """Evaluate the whole path of C at each of some kernel parameters.

    For objectives whose points are dear, such as passes over a large file: where to look was found
    out on a sample.

    Parameters
    ----------
    gammas : tuple of float
    n_C : int, default=60

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from lssvm.tuning import Losses
    >>> from lssvm.search.space import Space
    >>> from lssvm.search.listed import ListedPathSearch
    >>> def at(gamma):
    ...     def losses(C):
    ...         loss = (np.log(C) - 2.0) ** 2 + (np.log(gamma) + 1.0) ** 2
    ...         return Losses(fold=loss[:, None], weight=np.ones(1), tie=loss)
    ...     return SimpleNamespace(losses=losses)
    >>> result = ListedPathSearch(gammas=(0.3, 1.0)).run(SimpleNamespace(at=at), Space())
    >>> result.gamma, result.n_points
    (0.3, 2)
    """

    gammas: tuple[float, ...] = ()

    def _search(self, record: Recorder, space: Space, rng: np.random.Generator) -> None:
        record.planned = len(self.gammas) * (self.n_C if space.tune_C else 1)
        for gamma in self.gammas:
            self._path(record, space, "listed", gamma)


def best_gammas(result: TuningResult, n: int) -> tuple[float, ...]:
    """Return the ``n`` best kernel parameters of a search, the best one first.

    Two that agree in three digits count as one.
    """
    order = np.argsort(result.cv_results["rank_test_score"])
    found: dict[str, float] = {}
    for gamma in result.cv_results["param_gamma"][order].tolist():
        found.setdefault(f"{gamma:.3g}", gamma)
    return tuple(found.values())[:n]
