"""The default search: a line search over the kernel parameter with the whole path of C inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.tuning.annealing import CoupledAnnealing
from lssvm.tuning.circulant import CirculantSearch
from lssvm.tuning.grid import GridSearch, ShrinkingGridSearch
from lssvm.tuning.search import (
    Recorder,
    Search,
    Space,
    TuningResult,
    chance_band,
    selection_order,
    whole,
    zoom,
)

Key = tuple[float, float]  # mean loss and tie loss of the best C

DECADE = float(np.log(10.0))
GOLDEN = (3.0 - 5.0**0.5) / 2.0
_CLIMBS = 4  # doublings of gamma
FINE = 4  # finer values of C on either side of the best one


@dataclass(frozen=True)
class PathSearch(Search):
    """Bracket and refine the kernel parameter; at each one, take the best C of a path.

    A point (one kernel parameter) is expensive, a value of C is not. So the search is a line search
    for the profile f(u) = min over C of the loss at gamma = gamma_start exp(u):

    1. four points a factor 10 apart, ``gamma_start`` first, then either side, then the smaller
       side once more (smooth targets want a small gamma with a large C);
    2. another factor 10 outwards from an end that lies lower than its neighbour; from the best
       point as long as it is at the end; up to the limit;
    3. where there are several valleys, one step of parabolic interpolation into each, so that they
       are compared near their floors;
    4. parabolic interpolation around the best point, with a golden section step where the parabola
       has no use or the bracket did not halve in two steps, until the neighbours are
       nearer than ``tol`` or ``max_points`` is reached, or, where rows are counted, both neighbours
       are within half a standard error of the best point.

    At each point the losses of ``n_C`` values of C, evenly spaced in log C, are followed by those
    of 8 values between the neighbours of the best one (not where rows are counted, as by an
    accuracy: the half standard error that counts as equal is wider than a step). Points are
    compared by mean loss, then by the tie loss: a plateau of a misclassification rate has a slope
    of the tie loss.

    Cost: at most ``max_points`` calls of :meth:`~lssvm.tuning.Objective.at`, each with
    ``n_C + 8`` cheap evaluations. Where gamma is not tuned, one call.

    Parameters
    ----------
    n_C : int, default=60
        Number of values of C in the coarse path.
    max_points : int, default=12
        Largest number of kernel parameters.
    tol : float, default=0.5
        Largest distance in log gamma between the best point and its neighbours at which refinement
        ends. Interpolation puts the best point much nearer to the minimum than that.
    checkpoint, on_interrupt
        Of every search, see `Search`.

    Notes
    -----
    Replaces the search over pairs of [DeBrabanter2010, Section 6.3]: there an evaluation of any
    pair costs the same; here all values of C come with the kernel parameter.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from lssvm.tuning import Losses
    >>> from lssvm.tuning.search import Space
    >>> from lssvm.tuning.path import PathSearch
    >>> def at(gamma):
    ...     def losses(C):
    ...         loss = (np.log(C) - 2.0) ** 2 + (np.log(gamma) + 1.0) ** 2
    ...         return Losses(fold=loss[:, None], weight=np.ones(1), tie=loss)
    ...     return SimpleNamespace(losses=losses)
    >>> result = PathSearch().run(SimpleNamespace(at=at), Space())
    >>> bool(abs(np.log(result.gamma) + 1.0) < 0.1), result.n_points <= 12
    (True, True)
    """

    n_C: int = 60
    max_points: int = 12
    tol: float = 0.5

    def __post_init__(self) -> None:
        usable = whole(self.n_C, self.max_points) and self.n_C >= 2 and self.max_points >= 1
        if not usable or not self.tol > 0:
            needed = "give n_C >= 2, max_points >= 1 and tol > 0"
            raise InvalidInputError(f"{self!r} cannot search: {needed}.")

    def _search(self, record: Recorder, space: Space, rng: np.random.Generator) -> None:
        fine = 2 * FINE if space.counted_rows is None else 0
        per_point = self.n_C + fine if space.tune_C else 1
        if not space.tune_gamma:
            record.planned = per_point
            self._path(record, space, "path", space.gamma)
            return
        record.planned = per_point * self.max_points
        low, high = (float(limit) for limit in np.log(space.gamma_range))

        def profile(stage: str, u: float) -> Key:
            return self._path(record, space, stage, space.gamma_start * float(np.exp(u)))

        line = _Line(profile, self.max_points, low, high, space.counted_rows)
        for step in (0.0, -1.0, 1.0, -2.0):
            line.probe("coarse", step * DECADE)
        for u in line.descents():
            line.probe("expand", u)
        while line.best in line.ends and line.probe("expand", line.outwards(line.best)):
            pass
        for u in line.valleys():
            line.probe("valley", u)
        while line.width > self.tol and not line.flat and line.probe("refine", line.inwards()):
            pass

    def _path(self, record: Recorder, space: Space, stage: str, gamma: float | None) -> Key:
        """Evaluate the path of C at one kernel parameter and return the best key."""
        coarse = space.C_grid(self.n_C)
        losses = record.evaluate(stage, gamma, coarse)
        keys = [(losses.mean, losses.tie)]
        if space.tune_C and space.counted_rows is None:
            fine = zoom(coarse, int(selection_order(*keys[0], coarse, coarse)[0]), FINE)
            fine = fine[(fine >= coarse[0]) & (fine <= coarse[-1])]
            losses = record.evaluate(stage, gamma, fine)
            keys.append((losses.mean, losses.tie))
        values: FloatArray = np.concatenate(keys, axis=1)  # (2, number of C)
        mean, tie = np.where(np.isnan(values), np.inf, values)
        best = selection_order(mean, tie, mean, mean)[0]
        return float(mean[best]), float(tie[best])


class _Line:
    """The profile over u = log(gamma / gamma_start), as far as it is known."""

    def __init__(
        self,
        profile: Callable[[str, float], Key],
        budget: int,
        low: float,
        high: float,
        counted_rows: int | None,
    ) -> None:
        self._counted_rows = counted_rows
        self._profile = profile
        self._budget = budget
        self._low, self._high = low, high
        self._known: dict[float, Key] = {}
        self._widths: list[float] = []

    def probe(self, stage: str, u: float) -> bool:
        """Evaluate at ``u``, moved to the limits; False where known or the budget is spent."""
        u = min(max(u, self._low), self._high)
        if u in self._known or len(self._known) >= self._budget:
            return False
        self._known[u] = self._profile(stage, u)
        self._order = sorted(self._known)
        # Among equals the one nearest to the centre: a plateau is no reason to walk away.
        self._best = min(range(len(self._order)), key=lambda i: (self._key(i), abs(self._order[i])))
        return True

    def _key(self, i: int) -> Key:
        return self._known[self._order[i]]

    @property
    def best(self) -> float:
        """The best point."""
        return self._order[self._best]

    @property
    def ends(self) -> tuple[float, float]:
        """The outermost points."""
        return self._order[0], self._order[-1]

    def outwards(self, end: float) -> float:
        """Return the next point beyond an end."""
        return end + (-DECADE if end == self._order[0] else DECADE)

    def descents(self) -> list[float]:
        """Return the next point beyond each end that is lower than its neighbour."""
        if len(self._order) < 2:
            return []
        low = [self._key(i) < self._key(j) for i, j in ((0, 1), (-1, -2))]
        return [self.outwards(end) for end, lower in zip(self.ends, low, strict=True) if lower]

    @property
    def _around(self) -> list[float]:
        """The best point so far, and its neighbours."""
        return self._order[max(self._best - 1, 0) : self._best + 2]

    @property
    def width(self) -> float:
        """The wider gap between the best point and its neighbours."""
        return float(np.max(np.diff(self._around), initial=0.0))

    @property
    def flat(self) -> bool:
        """Whether the neighbours of the best point differ from it by no more than chance."""
        around, best = self._around, self._known[self.best][0]
        if self._counted_rows is None or len(around) < 3:
            return False
        band = chance_band(best, self._counted_rows)
        return all(self._known[u][0] <= best + band for u in around)

    def valleys(self) -> list[float]:
        """Return one interpolated point for each local minimum, where there are several."""
        keys = [self._known[u] for u in self._order]
        inner = range(1, len(keys) - 1)
        lowest = [i for i in inner if i == self._best or keys[i] < min(keys[i - 1], keys[i + 1])]
        return [self._step(i) for i in lowest] if len(lowest) > 1 else []

    def inwards(self) -> float:
        """Return the next point of the refinement around the best one."""
        self._widths.append(self.width)
        stalled = len(self._widths) > 2 and self._widths[-1] > 0.5 * self._widths[-3]
        return self._golden(self._best) if stalled else self._step(self._best)

    def _step(self, i: int) -> float:
        """Return the vertex of the parabola at point ``i``, or the golden section without one."""
        vertex = self._vertex(i)
        return self._golden(i) if vertex is None else vertex

    def _golden(self, i: int) -> float:
        """Return the golden section of the wider gap beside point ``i``."""
        u = self._order[i]
        left = u - self._order[i - 1] if i > 0 else 0.0
        right = self._order[i + 1] - u if i + 1 < len(self._order) else 0.0
        return u + GOLDEN * (right if right >= left else -left)

    def _vertex(self, i: int) -> float | None:
        """Return the minimum of the parabola through point ``i`` and its neighbours, if any.

        It is kept a tenth of the wider gap away from the point, so that the bracket shrinks.
        """
        if not 0 < i < len(self._order) - 1:
            return None
        u = np.array(self._order[i - 1 : i + 2])
        mean, tie = np.array([self._key(j) for j in (i - 1, i, i + 1)]).T
        f: FloatArray = tie if (mean == mean[1]).all() else mean
        if not np.isfinite(f).all():
            return None
        left, right = u[1] - u[0], u[2] - u[1]
        slope_left, slope_right = (f[1] - f[0]) / left, (f[2] - f[1]) / right
        if not slope_right > slope_left:
            return None
        # zero of the slope, which is linear between the middles of the two gaps
        vertex = u[1] - left / 2 - slope_left * (u[2] - u[0]) / 2 / (slope_right - slope_left)
        away = 0.1 * max(left, right)
        if abs(vertex - u[1]) < away:
            vertex = u[1] + away * (1.0 if right >= left else -1.0)
        inside = min(max(vertex, u[0] + 0.1 * left), u[2] - 0.1 * right)
        return float(inside) if inside != u[1] else None


@dataclass(frozen=True)
class ListedPathSearch(PathSearch):
    """Evaluate the whole path of C at each of some kernel parameters.

    For objectives whose points are dear, such as passes over a large file: where to look was found
    out on a sample.
    """

    gammas: tuple[float, ...] = ()
    climbs: bool = False

    def _search(self, record: Recorder, space: Space, rng: np.random.Generator) -> None:
        record.planned = len(self.gammas) * (self.n_C if space.tune_C else 1)
        keys = [self._path(record, space, "listed", gamma) for gamma in self.gammas]
        gamma = self.gammas[-1] if self.gammas else np.inf
        for _ in range(_CLIMBS if self.climbs else 0):
            gamma *= 2.0
            if gamma > space.gamma_bounds[1]:
                return
            keys.append(self._path(record, space, "climb", gamma))
            if keys[-1] > min(keys):
                return


def best_gammas(result: TuningResult, n: int) -> tuple[float, ...]:
    """Return the ``n`` best kernel parameters of a search, the best one first.

    Two that agree in three digits count as one.
    """
    order = np.argsort(result.cv_results["rank_test_score"])
    gammas: dict[str, float] = {}
    for gamma in result.cv_results["param_gamma"][order].tolist():
        gammas.setdefault(f"{gamma:.3g}", gamma)
    return tuple(gammas.values())[:n]


SEARCHES: dict[str, type[Search]] = {
    "path": PathSearch,
    "grid": GridSearch,
    "shrinking": ShrinkingGridSearch,
    "csa": CoupledAnnealing,
    "circulant": CirculantSearch,
}


def make_search(search: str | Search) -> Search:
    """Return the search of that name with its default settings, or the instance itself.

    Parameters
    ----------
    search : {"path", "grid", "shrinking", "csa", "circulant"} or Search
        A name or an instance.

    Returns
    -------
    Search

    Examples
    --------
    >>> from lssvm.tuning.path import make_search
    >>> make_search("shrinking")
    ShrinkingGridSearch(i_max=3)
    """
    if isinstance(search, Search):
        return search
    if isinstance(search, str) and search in SEARCHES:
        return SEARCHES[search]()
    names = ", ".join(repr(name) for name in SEARCHES)
    raise InvalidInputError(
        f"search={search!r} is not known: give one of {names}, or an instance such as "
        "PathSearch(n_C=30)."
    )
