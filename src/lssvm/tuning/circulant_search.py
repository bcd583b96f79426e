"""Search with circulant matrices, then a few exact evaluations around what they chose."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from lssvm._core.errors import InvalidInputError, NumericalWarning, Stopped
from lssvm.solvers import CirculantSolver
from lssvm.solvers.circulant import check_kernel
from lssvm.tuning.annealing import Box, walk_simplex
from lssvm.tuning.circulant_objective import CirculantObjective
from lssvm.tuning.dual import DualObjective
from lssvm.tuning.grid import GridSearch
from lssvm.tuning.objective import Objective
from lssvm.tuning.search import Recorder, Search, Space, TuningResult, whole
from lssvm.tuning.spectral import SpectralObjective

EDGE = float(np.log(4.0))  # of the first simplex: one step of the grid of [Ding2011, Section 7.2]
FEWEST = 64  # fewer rows are searched exactly
REACH = 1e3  # how far the refinement may go, as a factor


@dataclass(frozen=True)
class CirculantSearch(Search):
    """Narrow the search with circulant kernel matrices, then evaluate exactly.

    Parameters
    ----------
    search : Search or None, default=None
        What runs on the approximate objective. None is a grid of 13 kernel parameters and 11
        values of C over the ranges of the space; ``GridSearch.ding2011()`` is the paper's.
    refine : int, default=20
        Number of exact evaluations around the pair that was chosen; the best of them is the
        answer, and the approximate one is kept beside it. 0 takes the approximate answer, and the
        search stores no kernel matrix.
    levels : {1, 2, 3}, default=2
        Sides of the lattice that rows are laid on.
    layout : {"sorted", "plain"}, default="sorted"
        How, see `lssvm.solvers.lay_rows`.
    wrap : {"mean", "sum", "set"}, default="mean"
        Of the circulant matrices, see `lssvm.solvers.CirculantSolver`;
        ``layout="plain", wrap="set"`` is the print.
    checkpoint, on_interrupt
        Of every search, see `Search`.

    Notes
    -----
    Algorithm 2 of [Ding2011]_. The criterion is that of the estimator: t-fold cross-validation (the
    paper's experiments), leave-one-out (``cv="loo"`` or ``scoring="press"``), R(K) of eqs. (27) to
    (29), generalised cross-validation or evidence. All but t-fold cross-validation cost O(n log n)
    per pair; that one predicts left-out rows with the true kernel, n^2 (d + c k) per gamma.

    The refinement is a simplex search ([DeBrabanter2010]_, section 6.3) in (log C, log gamma) that
    starts with steps of a factor 4: optima lie in valleys along which C and gamma change
    together, where steps in one of them at a time get stuck. It costs about n^3 operations per
    pair.

    Rows with weights, and fewer than 64 rows, are searched exactly from the start, with a warning
    for weights. Values of C for which a circulant matrix is not positive definite are left
    out of the search.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (200, 1))
    >>> y = np.sinc(X[:, 0]) + 0.1 * rng.standard_normal(200)
    >>> model = LSSVR("cv", gamma="cv", cv=5, search="circulant").fit(X, y)
    >>> model.tuning_result_.n_evaluations, model.tuning_result_.approximate.n_evaluations
    (20, 143)
    """

    search: Search | None = None
    refine: int = 20
    levels: int = 2
    layout: str = "sorted"
    wrap: str = "mean"

    def __post_init__(self) -> None:
        usable = whole(self.refine) and self.refine >= 0
        other = self.search is None or (
            isinstance(self.search, Search) and not isinstance(self.search, CirculantSearch)
        )
        if not usable or not other:
            raise InvalidInputError(
                f"{self!r} cannot search: give a whole number refine >= 0 and another search "
                "inside, an instance such as PathSearch(), or None."
            )
        self._solver.check()

    @property
    def _solver(self) -> CirculantSolver:
        return CirculantSolver(self.levels, self.layout, self.wrap)

    def _search(self, record: Recorder, space: Space, rng: np.random.Generator) -> None:
        gammas = space.gamma_start * np.geomspace(*space.gamma_range, num=13)
        inner = self.search or GridSearch(C=space.C_grid(11), gamma=gammas)
        gamma = space.gamma_start if space.tune_gamma else space.gamma
        approximate = _approximate(record.objective, self._solver, gamma)
        refines = self.refine > 0
        if approximate is None or not (space.tune_C or space.tune_gamma):
            approximate, refines = record.objective, False
        if not refines:
            record.objective = approximate
            inner._search(record, space, rng)
            return
        first = Recorder(approximate, on_event=record.on_event, counted_rows=space.counted_rows)
        try:
            inner._search(first, space, rng)
        except (KeyboardInterrupt, Stopped):
            if first.has_finite:  # the best so far is an answer, if an approximate one
                record.objective = approximate
                record.leave_checkpoint()
                record.evaluate("interrupted", first.best.gamma, np.array([first.best.C]))
            raise
        # Without its point, which holds the training rows and what no file can keep.
        record.approximate = replace(first.result(interrupted=False), point=None)
        record.planned = self.refine
        self._refine(record, space, record.approximate)

    def _refine(self, record: Recorder, space: Space, chosen: TuningResult) -> None:
        """Walk from the chosen pair to better ones."""
        low, high = space.C_range
        wider = replace(space, C_range=(min(low, chosen.C / REACH), max(high, chosen.C * REACH)))
        if space.tune_gamma and chosen.gamma is not None:
            around = (1.0 / REACH, REACH)
            wider = replace(wider, gamma_start=chosen.gamma, gamma_range=around)
        box = Box(record, wider)
        tuned = [chosen.C] * space.tune_C + [chosen.gamma] * space.tune_gamma
        start = np.log(np.array(tuned, dtype=np.float64))
        corners = [start, *(start + EDGE * np.eye(box.dimension))][: self.refine]
        box.start([box.evaluate("refine", corner) for corner in corners])
        if self.refine > len(corners):
            walk_simplex(box, "refine", start, EDGE, self.refine)


def _approximate(
    objective: Objective, solver: CirculantSolver, gamma: float | None
) -> Objective | None:
    """Return the approximate objective; None where rows are too few or have weights."""
    if not isinstance(objective, (DualObjective, SpectralObjective)):
        raise InvalidInputError(
            "search='circulant' replaces the kernel matrix in the cross-validation of LSSVC and "
            "LSSVR. There is none for fixed-size models or where NARX validates free-running: use "
            "'path', 'grid', 'shrinking' or 'csa'."
        )
    check_kernel(objective.kernel(gamma))  # whatever the rows: no error depends on their number
    if objective.system.root_weight is not None:
        warnings.warn(
            "A circulant matrix cannot hold sample weights or class weights: the search is exact.",
            NumericalWarning,
            stacklevel=2,
        )
        return None
    if objective.system.n < FEWEST:
        return None
    if isinstance(objective, SpectralObjective):
        return replace(objective, solver=solver)
    return CirculantObjective(objective, solver)
