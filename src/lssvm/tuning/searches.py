"""Searches for C and gamma: a path and a bracket, grids, annealing with a simplex."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from lssvm._core.arrays import FloatArray, is_sparse
from lssvm._core.errors import ConvergenceWarning, InvalidInputError
from lssvm._core.progress import Listener
from lssvm._core.random import seed_of
from lssvm.codes import Coding
from lssvm.kernels.factory import KernelChoice, KernelParameters
from lssvm.tasks import Classes, Task
from lssvm.tasks.losses import DifferentiableLoss, check_loss
from lssvm.tuning.objective import Objective
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
    checkpoint, on_interrupt, per_output
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
    >>> from lssvm.tuning.searches import PathSearch
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
    name: ClassVar[str] = "path"
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
        """Return the golden section of the wider gap next to point ``i``."""
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
    checkpoint, on_interrupt, per_output
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
    >>> from lssvm.tuning.searches import GridSearch
    >>> point = SimpleNamespace(losses=lambda C: Losses((C - 2)[:, None] ** 2, np.ones(1), 0 * C))
    >>> objective = SimpleNamespace(at=lambda gamma: point)
    >>> result = GridSearch(C=[1, 2, 4], gamma=[0.1, 0.5]).run(objective, Space())
    >>> result.C, result.gamma, result.n_evaluations
    (2.0, 0.1, 6)
    """

    C: ArrayLike | None = None
    gamma: ArrayLike | None = None
    name: ClassVar[str] = "grid"

    def __post_init__(self) -> None:
        for name in ("C", "gamma"):
            axis = getattr(self, name)
            if axis is None:
                continue
            try:
                values = np.atleast_1d(np.asarray(axis, dtype=np.float64))
            except (TypeError, ValueError):
                values = np.empty(0)
            usable = values.ndim == 1 and values.size > 0
            if not usable or not (np.isfinite(values) & (values > 0)).all():
                raise InvalidInputError(
                    f"{name}={axis!r} is not an axis of a grid: give positive numbers in one "
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
        >>> from lssvm.tuning.searches import GridSearch
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
    checkpoint, on_interrupt, per_output
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
    >>> from lssvm.tuning.searches import ShrinkingGridSearch
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
    name: ClassVar[str] = "shrinking"

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


NEVER = 1e100  # energy of a pair without a finite loss


def walk_simplex(box: Box, stage: str, start: FloatArray, edge: float, evaluations: int) -> None:
    """Walk downhill from ``start``, shape (dimension,), by the method of Nelder and Mead."""

    def energy(x: FloatArray) -> float:
        return box.energy(stage, box.reflect(x))

    options: Any = {
        "initial_simplex": np.vstack([start, start + edge * np.eye(box.dimension)]),
        "maxfev": evaluations,
        "xatol": 0.0,
        "fatol": 0.0,
    }
    minimize(energy, start, method="Nelder-Mead", options=options)


class Box:
    """The tuned coordinates, (log C, log gamma) or one of them, and the energy on them."""

    def __init__(self, record: Recorder, space: Space) -> None:
        bounds = [space.C_range] * space.tune_C + [space.gamma_bounds] * space.tune_gamma
        limits = np.log(np.array(bounds).reshape(-1, 2))
        self.low = limits[:, 0]
        self.width = limits[:, 1] - limits[:, 0]
        self.dimension = len(bounds)
        self.scale = 1.0
        self._tie_scale = 1.0
        self._record = record
        self._space = space

    def evaluate(self, stage: str, x: FloatArray) -> tuple[float, float]:
        """Return mean and tie loss at ``x``, shape (dimension,)."""
        space = self._space
        C = float(np.exp(x[0])) if space.C is None else space.C
        gamma = float(np.exp(x[-1])) if space.tune_gamma else space.gamma
        losses = self._record.evaluate(stage, gamma, np.array([C]))
        return float(losses.mean[0]), float(losses.tie[0])

    def start(self, losses: list[tuple[float, float]]) -> None:
        """Fix the scales of the energy from the starters."""
        mean, tie = np.array([pair for pair in losses if np.isfinite(pair).all()]).reshape(-1, 2).T
        if mean.size:
            self.scale = float(np.std(mean)) or float(np.abs(mean).max()) or 1.0
            self._tie_scale = float(np.median(np.abs(tie))) or 1.0

    def energy(self, stage: str, x: FloatArray) -> float:
        """Return the energy at ``x``: the mean loss, on plateaus with a slope of the tie loss."""
        mean, tie = self.evaluate(stage, x)
        if not np.isfinite(mean):
            return NEVER
        slope = tie / (self._tie_scale + abs(tie)) if np.isfinite(tie) else 1.0
        return mean + 1e-6 * self.scale * slope

    def reflect(self, x: FloatArray) -> FloatArray:
        """Return ``x``, shape (..., dimension), reflected at the walls; unchanged inside them."""
        t = (x - self.low) / self.width
        folded = 1.0 - np.abs(1.0 - np.mod(t, 2.0))
        return np.where((t >= 0.0) & (t <= 1.0), x, self.low + self.width * folded)


ALPHA = 0.05  # change of the acceptance temperature, [DeBrabanter2010, Algorithm 6, step 1]
VARIANCE = 0.99  # share of the largest possible variance, [DeBrabanter2010, Algorithm 6, step 1]
T_0 = 0.5  # initial generation temperature, in widths of the box
EDGE = 0.5  # edge of the initial simplex, in log C and log gamma


@dataclass(frozen=True)
class CoupledAnnealing(Search):
    r"""Anneal several coupled states in (log C, log gamma), then refine the best by Nelder-Mead.

    Cost: ``evaluations + simplex`` pairs, each with its own kernel parameter and hence its own call
    of :meth:`~lssvm.tuning.Objective.at` where gamma is tuned.

    Parameters
    ----------
    starters : int, default=5
        Number q of coupled states.
    evaluations : int, default=90
        Number of pairs evaluated by the annealing, the starting ones included.
    simplex : int, default=70
        Number of pairs evaluated by the simplex search after it. It is spent whole, unless the
        simplex shrinks to rounding (in one dimension) or meets a pair again at the walls.
    checkpoint, on_interrupt, per_output
        Of every search, see `Search`.

    Notes
    -----
    [DeBrabanter2010, Section 6.3, Appendix and Algorithm 6]; 90 + 70 evaluations and 5 starters are
    those of its Section 8.

    ==================================== =========================================================
    paper                                here
    ==================================== =========================================================
    :math:`\Theta = \{x_i\}`, q          ``states``, ``starters``
    :math:`y_i = x_i + \varepsilon_i`    ``probes``: a Cauchy step, reflected into the box
    :math:`E`                            mean loss, with a millionth part of the tie loss
    :math:`\rho`                         inside :func:`acceptance`
    :math:`T_k = T_0 / (k + 1)`          ``T_0 / (k + 1)``, in widths of the box
    :math:`T_k^{ac}`                     ``temperature``
    ==================================== =========================================================

    Deviations from the paper, and why:

    - The coupling term is printed with :math:`E(y_i)` under a sum over :math:`x_i \in \Theta`;
      according to the text it comprises the energies of the current states, so :math:`E(x_i)` is
      used.
    - The printed variance :math:`\frac{1}{q} \sum A^2 - \frac{1}{q^2}` is one only of numbers that
      sum to one, and its bound :math:`(q-1)/q^2` (in step 1) holds for those. So it is taken
      over the shares :math:`\exp(-E(x_i)/T^{ac}) / \rho` of the current states.
    - Exponentials are evaluated as differences of energies, so they cannot overflow.
    - The initial acceptance temperature is the standard deviation of the energies of the starters:
      the search does not change when the loss is multiplied by a number.
    - One inner iteration (G = 1) per temperature: 90 evaluations are 18 sweeps of 5.

    Where only one of C and gamma is tuned, the search is one-dimensional; where none is, the one
    pair is evaluated.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from lssvm.tuning import Losses
    >>> from lssvm.tuning.search import Space
    >>> from lssvm.tuning.searches import CoupledAnnealing
    >>> def at(gamma):
    ...     def losses(C):
    ...         loss = (np.log(C) - 2.0) ** 2 + (np.log(gamma) + 1.0) ** 2
    ...         return Losses(fold=loss[:, None], weight=np.ones(1), tie=loss)
    ...     return SimpleNamespace(losses=losses)
    >>> result = CoupledAnnealing().run(SimpleNamespace(at=at), Space(), random_state=0)
    >>> bool(abs(np.log(result.gamma) + 1.0) < 0.01), result.n_evaluations
    (True, 160)
    """

    starters: int = 5
    evaluations: int = 90
    simplex: int = 70
    name: ClassVar[str] = "csa"
    stochastic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        usable = whole(self.starters, self.evaluations, self.simplex)
        if not usable or self.starters < 2 or self.evaluations < self.starters or self.simplex < 0:
            raise InvalidInputError(
                f"{self!r} cannot search: give whole numbers, starters >= 2, evaluations >= "
                "starters and simplex >= 0."
            )

    def _search(self, record: Recorder, space: Space, rng: np.random.Generator) -> None:
        box = Box(record, space)
        if not box.dimension:
            record.planned = 1
            box.evaluate("fixed", np.empty(0))
            return
        record.planned = self.evaluations + self.simplex
        best = self._anneal(box, rng)
        if self.simplex:
            walk_simplex(box, "simplex", best, EDGE, self.simplex + 1)  # the start is known

    def _anneal(self, box: Box, rng: np.random.Generator) -> FloatArray:
        """Return the best state of the annealing, shape (dimension,)."""
        q = self.starters
        states = box.low + box.width * rng.random((q, box.dimension))
        box.start([box.evaluate("starters", state) for state in states])
        E = np.array([box.energy("starters", state) for state in states])
        best: FloatArray = states[np.argmin(E)].copy()
        E_best = E.min()
        temperature = box.scale
        sweeps = -(-(self.evaluations - q) // q)
        for k in range(sweeps):
            n = min(q, self.evaluations - q * (k + 1))  # the last sweep may be a part
            steps = np.tan(np.pi * (rng.random((q, box.dimension)) - 0.5))
            spread = box.width * T_0 / (k + 1)  # [DeBrabanter2010, Algorithm 6, step 21]
            probes = box.reflect(states + spread * steps)[:n]  # [DeBrabanter2010, Alg. 6, step 3]
            r = rng.random(q)[:n]
            E_probes = np.array([box.energy("annealing", probe) for probe in probes])
            accepted = E_probes <= E[:n]  # [DeBrabanter2010, Algorithm 6, step 5]
            A = acceptance(E_probes, E, temperature)  # [DeBrabanter2010, Algorithm 6, step 8]
            accepted |= A > r  # [DeBrabanter2010, Algorithm 6, step 9]
            if E_probes.min() < E_best:
                best, E_best = probes[np.argmin(E_probes)], E_probes.min()
            states[:n][accepted], E[:n][accepted] = probes[accepted], E_probes[accepted]
            wanted = VARIANCE * (q - 1) / q**2  # [DeBrabanter2010, Algorithm 6, step 1]
            low = acceptance_variance(E, temperature) < wanted
            # [DeBrabanter2010, Algorithm 6, steps 16 to 19]
            temperature *= 1 - ALPHA if low else 1 + ALPHA
        return best


def acceptance(E_probes: FloatArray, E_states: FloatArray, temperature: float) -> FloatArray:
    r"""Return the probabilities with which worse probes are accepted.

    :math:`A_i = e^{-E(y_i)/T} / (e^{-E(y_i)/T} + \rho)` with
    :math:`\rho = \sum_j e^{-E(x_j)/T}`, [DeBrabanter2010, Appendix], evaluated as
    :math:`1 / (1 + \sum_j e^{(E(y_i) - E(x_j))/T})`.
    """
    differences = (E_probes[:, None] - E_states[None, :]) / temperature  # (n, q)
    A: FloatArray = expit(-logsumexp(differences, axis=1))  # [DeBrabanter2010, Appendix]
    return A


def acceptance_variance(E_states: FloatArray, temperature: float) -> float:
    r"""Return the variance of the shares of the current states in the coupling term.

    :math:`\frac{1}{q} \sum_i A_i^2 - \frac{1}{q^2}` with :math:`A_i = e^{-E(x_i)/T} / \rho`,
    [DeBrabanter2010, Appendix]. It is between 0 (equal energies) and :math:`(q-1)/q^2`.
    """
    q = E_states.size
    A = softmax(-E_states / temperature)
    return float(np.mean(A**2) - 1.0 / q**2)  # [DeBrabanter2010, Appendix]


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
    >>> from lssvm.tuning.searches import make_search
    >>> make_search("shrinking")
    ShrinkingGridSearch(i_max=3)
    """
    if isinstance(search, Search):
        return search
    known = {kind.name: kind for kind in Search.__subclasses__() if kind.name}
    if isinstance(search, str) and search in known:
        return known[search]()
    names = ", ".join(map(repr, known))
    raise InvalidInputError(
        f"search={search!r} is not known: give one of {names}, or an instance such as "
        "PathSearch(n_C=30)."
    )


# -- settings of fits that tune ------------------------------------------------------------------

LEAST_C, MOST_C = 1e-30, 1e30  # float32 has numbers up to 1e38
SQUARES = "neg_mean_squared_error"
"""The scoring by which outputs that are tuned by themselves are scored by their squared errors."""


def check_C(C: Any) -> float | None:
    """Return C as a number, or None for "cv"."""
    if isinstance(C, str) and C == "cv":
        return None
    if isinstance(C, (int, float, np.number)) and type(C) is not bool:
        value = float(C)
        if LEAST_C <= value <= MOST_C:
            return value
    raise InvalidInputError(
        f"C={C!r} is not usable: give a finite number > 0 (from {LEAST_C:g} to {MOST_C:g}, beyond "
        "which no number of a system would be left), or 'cv' to choose it by cross-validation."
    )


def check_option(name: str, value: Any, options: tuple[str, ...]) -> None:
    """Refuse what is not among the options."""
    if value not in options:
        raise InvalidInputError(f"{name}={value!r} is not known: choose one of {options}.")


class TunedParameters(KernelParameters, Protocol):
    """The parameters of estimators that tune C and gamma."""

    reduction: Any
    cv: Any
    search: Any
    scoring: Any
    solver: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class TunedSettings:
    """Settings of all fits that tune C and gamma.

    Attributes
    ----------
    C : float or None
        None: to be chosen.
    choice : KernelChoice
    cv : int, float, "loo", splitter or iterable
    search : Search
    scoring : str, callable or None
    seed : int
    solver : str or solver object
    loss : str or DifferentiableLoss
        What the coefficients minimise.
    separate : bool
        Whether each output has its own C and gamma.
    """

    C: float | None
    choice: KernelChoice
    cv: Any
    search: Search
    scoring: Any
    seed: int
    solver: Any = "auto"
    loss: str | DifferentiableLoss = "squared"
    separate: bool = False

    @staticmethod
    def read(estimator: TunedParameters) -> dict[str, Any]:
        """Return these settings of an estimator, checked."""
        loss = getattr(estimator, "loss", None)
        classes = loss is None  # of which the code has the loss
        if classes:
            loss = Coding.of(getattr(estimator, "multiclass", "auto")).loss
        check_loss(loss, classes=classes)
        if loss != "squared" and estimator.reduction is not None:
            raise InvalidInputError(
                f"reduction={estimator.reduction!r} belongs to squared loss, which loss={loss!r} "
                "is not: use loss='squared', or no reduction."
            )
        search = make_search(estimator.search)
        return {
            "C": check_C(estimator.C),
            "choice": KernelChoice.of(estimator),
            "cv": estimator.cv,
            "search": search,
            "scoring": estimator.scoring,
            "seed": seed_of(estimator.random_state),
            "solver": estimator.solver,
            "loss": loss,
            "separate": search.per_output,
        }

    @property
    def robust_rounds(self) -> int:
        """How often a robust model is tuned again: the first parameters were those of outliers."""
        return 2 if isinstance(self.loss, str) and self.loss != "squared" else 0

    def reweights(self, lowered: bool) -> bool:
        """Return whether coefficients are still to be reweighted.

        ``lowered``: tuning has left the weights of "weighted" on the rows.
        """
        return self.loss != "squared" and not (self.loss == "weighted" and lowered)

    def run_search(
        self, objective: Objective, space: Space, callback: Listener, **more: Any
    ) -> TuningResult:
        """Search, and warn where a person has cut it short."""
        use = {"random_state": self.seed, "on_event": callback.on_event, **more}
        result = self.search.run(objective, space, **use)
        if result.interrupted and not callback.stopped:
            warnings.warn(
                "Tuning was interrupted; the best parameters found so far are used.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return result

    def fingerprint(self, arrays: Sequence[Any], task: Task, *more: Any) -> str:
        """Return a digest of the data and of the settings that the losses of a search follow from.

        Two searches with equal fingerprints may share a checkpoint.
        """
        choice = self.choice
        settings = [self.C, choice.gamma, choice.kernel, *more]
        settings += [self.cv, self.scoring, self.loss, self.seed]
        if isinstance(task, Classes):
            settings += [task.code.matrix, task.decoding, task.targets, task.class_weight]
        digest = hashlib.sha256()
        for array in arrays:
            if is_sparse(array):
                array = np.concatenate([array.data, array.indices, array.indptr])
            if array is not None:
                digest.update(np.ascontiguousarray(array).data.cast("B"))
        digest.update(repr([_exact(value) for value in settings]).encode())
        return digest.hexdigest()


def _exact(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_exact(entry) for entry in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def usual_C_range(rows: Any, choice: KernelChoice) -> tuple[float, float]:
    """Return between which C is searched: a linear kernel is as large as the rows are spread."""
    unit = rows.spread() if choice.name == "linear" else 1.0
    unit = unit if np.isfinite(unit) and unit > 0 else 1.0
    low, high = Space().C_range
    return low / unit, high / unit
