"""Approximate cross-validation of the dual model with circulant kernel matrices."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm._core.blocks import block_rows, run_blocks, slices
from lssvm._core.errors import InvalidInputError, NumericalWarning, Stopped
from lssvm.kernels import Kernel
from lssvm.solvers import CirculantSolver
from lssvm.solvers.circulant import Circulant, Lattice, check_kernel, lay_rows
from lssvm.tuning.dual import DualObjective
from lssvm.tuning.objective import Losses, Objective, Predictions
from lssvm.tuning.search import Recorder, Search, Space, TuningResult, whole
from lssvm.tuning.searches import Box, GridSearch, walk_simplex
from lssvm.tuning.spectral import SpectralObjective

_MANY = 20  # more folds than this: rows are left out one by one in closed form


@dataclass(frozen=True)
class _Part:
    """The training rows of one group without one fold (or all: leave-one-out), on a lattice."""

    rows: IntArray
    columns: IntArray
    lattice: Lattice
    Y: FloatArray  # targets of the columns at the places of the lattice
    fold: int | None


@dataclass(frozen=True)
class CirculantObjective:
    """An approximate cross-validated loss of a dual model as a function of (C, gamma).

    Algorithm 2 of [Ding2011]. The training rows of every fold are laid on a lattice once. At each
    gamma `at` computes the first row of each circulant matrix and its transform; all values of C
    and all outputs follow from one transform of the targets: O(t n (log n + c k log n)) for t folds
    and c values of C. Left-out rows are predicted with the true kernel (section 4), which
    takes n^2 (d + c k) operations per gamma that the complexity printed in section 6 leaves out;
    they are done in blocks and nothing of size (n, n) is stored.

    More than 20 folds (leave-one-out) come from the inverse's diagonal in the closed form of
    [Cawley2004] for single rows, with U in place of the kernel matrix: O(c k n log n) and no
    kernel matrix at all. The diagonal is the same for all rows, so that leave-one-out and
    generalised cross-validation agree for a circulant matrix.

    A value of C for which a circulant matrix is not positive definite has the loss infinity, but
    for a solver that inverts such matrices too.
    """

    exact: DualObjective
    solver: CirculantSolver = field(default_factory=CirculantSolver)

    def at(self, gamma: float | None) -> CirculantPoint:
        """Transform the first rows of the circulant matrices at ``gamma``."""
        kernel = self.exact.kernel(gamma)
        check_kernel(kernel)
        matrices = [Circulant.of(kernel, part.lattice, self.solver.wrap) for part in self.parts]
        return CirculantPoint(self, kernel, matrices)

    @cached_property
    def parts(self) -> list[_Part]:
        """The lattices of all groups and folds; they do not depend on gamma."""
        folds, everyone = self.exact.folds, np.arange(self.exact.system.n)
        parts = []
        for group in self.exact.solved_for[1]:
            members = everyone if group.rows is None else np.sort(group.rows)
            if folds.train is None and len(folds) > _MANY:
                parts.append(self._part(members, group.columns, None))
                continue
            for v, test in enumerate(folds.test):
                if folds.train is None:
                    rows = np.setdiff1d(members, test)
                else:
                    rows = folds.train[v][np.isin(folds.train[v], members)]
                if len(rows):
                    parts.append(self._part(rows, group.columns, v))
        return parts

    def _part(self, rows: IntArray, columns: IntArray, fold: int | None) -> _Part:
        X = self.exact.system.rows[rows]
        lattice = lay_rows(X, levels=self.solver.levels, layout=self.solver.layout)
        Y = self.exact.solved_for[0][np.ix_(rows, columns)]
        return _Part(rows, columns, lattice, lattice.spread(Y), fold)


@dataclass(frozen=True)
class CirculantPoint:
    """An approximate dual model at one kernel parameter, for every C."""

    objective: CirculantObjective
    kernel: Kernel
    matrices: list[Circulant]

    def solvable(self, C: FloatArray) -> BoolArray:
        """Say for each C (c,) whether all circulant matrices plus I/C can be inverted."""
        shift, any_sign = 1.0 / np.asarray(C, dtype=float), self.objective.solver.indefinite
        each = [matrix.solvable(shift, any_sign) for matrix in self.matrices]
        return np.asarray(np.all(each, axis=0))

    def losses(self, C: FloatArray) -> Losses:
        """Return the losses of a path of C."""
        exact = self.objective.exact
        return exact.scorer.losses_in_passes(self.predictions, C, exact.system.budget)

    def predictions(self, C: FloatArray) -> Predictions:
        """Return the out-of-fold predictions of all candidates C (c,)."""
        exact = self.objective.exact
        out = Predictions.zeros(exact.folds, len(C), exact.solved_for[0].shape[1])
        for part, matrix in zip(self.objective.parts, self.matrices, strict=True):
            beta, b = _solve(part, matrix, C, exact.system.bias)
            if part.fold is None:
                self._leave_one_out(part, matrix, C, beta, b, out)
            else:
                places = np.arange(out.starts[part.fold], out.starts[part.fold + 1])
                self._predict(part, beta, b, out, places)
        out = exact.combine(out)
        out.values[~self.solvable(C)] = np.inf
        return out

    def _predict(
        self, part: _Part, beta: FloatArray, b: FloatArray, out: Predictions, places: IntArray
    ) -> None:
        """Predict tested rows with the true kernel, in blocks."""
        system, rows = self.objective.exact.system, np.concatenate(self.objective.exact.folds.test)
        alpha, Z = part.lattice.gather(beta.reshape(len(beta), -1)), system.basis[part.rows]
        each, n = 24 * len(part.rows) * system.threads, len(places)
        size = block_rows(each, system.budget, n_rows=max(n, 1), at_most=512)

        def fill(block: slice) -> None:
            K = np.asarray(self.kernel(system.rows[rows[places[block]]], Z))
            predicted = np.moveaxis((K @ alpha).reshape(len(K), *b.shape) + b, 1, 0)
            out.values[:, places[block][:, None], part.columns] = predicted

        run_blocks(fill, slices(n, size), system.threads)

    def _leave_one_out(
        self,
        part: _Part,
        matrix: Circulant,
        C: FloatArray,
        beta: FloatArray,
        b: FloatArray,
        out: Predictions,
    ) -> None:
        """Leave out single rows in closed form; other rows are outside the group."""
        system, rows = self.objective.exact.system, np.concatenate(self.objective.exact.folds.test)
        place = np.full(system.n, -1, dtype=np.intp)
        place[part.rows] = part.lattice.first()
        inside = place[rows] >= 0
        diagonal = inverse_diagonal(matrix, C, system.bias)  # (c,)
        at = place[rows[inside]]
        e = beta[at] / diagonal[:, None]  # [Cawley2004]
        Y = part.Y.reshape(len(beta), -1)[at]
        values = np.moveaxis(Y[:, None, :] - e, 1, 0)
        out.values[:, np.flatnonzero(inside)[:, None], part.columns] = values
        if not np.all(inside):
            self._predict(part, beta, b, out, np.flatnonzero(~inside))


def inverse_diagonal(matrix: Circulant, C: FloatArray, bias: bool) -> FloatArray:
    """Return the one value on the diagonal of the inverse, for all C (c,).

    Of (U + I/C)^-1, or with a bias of the lower right block of the bordered matrix's inverse.
    Constant vectors are eigenvectors of U, so the bias removes the part 1/(N (v_0 + 1/C)).
    """
    d = 1.0 / (matrix.eigenvalues.ravel()[:, None] + 1.0 / np.asarray(C, dtype=float))
    return np.asarray((d.sum(axis=0) - (d[0] if bias else 0.0)) / len(d))


def _solve(
    part: _Part, matrix: Circulant, C: FloatArray, bias: bool
) -> tuple[FloatArray, FloatArray]:
    """Solve for all C and targets: support values at the places (N, c, k) and b (c, k)."""
    N, k = len(part.lattice.places), part.Y.shape[-1]
    shift = 1.0 / np.asarray(C, dtype=float)
    # Constant vectors are eigenvectors: rho = 1/(v_0 + mu), so b is the mean and nu - rho b the
    # solution for what is left of the targets.
    b = part.Y.reshape(N, k).mean(axis=0) if bias else np.zeros(k)  # [Ding2011, eq. (10)]
    beta = matrix.solve(part.Y - b, shift).reshape(N, len(shift), k)
    return beta, np.broadcast_to(b, (len(shift), k))


EDGE = float(np.log(4.0))  # of the first simplex: one step of the grid of [Ding2011, Section 7.2]
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
        answer, and the approximate one is kept as well. 0 takes the approximate answer, and the
        search stores no kernel matrix.
    levels : {1, 2, 3}, default=2
        Sides of the lattice that rows are laid on.
    layout : {"sorted", "plain"}, default="sorted"
        How, see `lssvm.solvers.circulant.lay_rows`.
    wrap : {"mean", "sum", "set"}, default="mean"
        Of the circulant matrices, see `lssvm.solvers.CirculantSolver`.
    indefinite : bool, default=False
        Whether values of C for which a circulant matrix is not positive definite take part in
        t-fold cross-validation, as eq. (17) prints it.
    min_rows : int, default=64
        Fewer rows are searched exactly from the start, without a warning: an eigendecomposition of
        so few costs no more than the transforms. ``tuning_result_.approximate`` is then None.
    checkpoint, on_interrupt, per_output
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

    Rows with weights, and fewer than ``min_rows`` rows, are searched exactly from the start, with a
    warning for weights. Values of C for which a circulant matrix is not positive definite are
    skipped by the search. `ding2011` follows the paper.

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
    indefinite: bool = False
    min_rows: int = 64
    name: ClassVar[str] = "circulant"

    @classmethod
    def ding2011(cls, levels: int = 2) -> CirculantSearch:
        """Return algorithm 2 of [Ding2011]_ as printed, on the grid of its section 7.2.

        Rows in their given order, eqs. (13) and (17), no exact evaluations, any number of rows.

        Parameters
        ----------
        levels : {1, 2, 3}, default=2
            Levels of the circulant matrices, on which the paper does not decide.
        """
        grid = GridSearch.ding2011()
        return cls(grid, 0, levels, "plain", "set", indefinite=True, min_rows=0)

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
        return CirculantSolver(
            self.levels, self.layout, self.wrap, None, self.min_rows, self.indefinite
        )

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
    if objective.system.n < solver.min_rows:
        return None
    if isinstance(objective, SpectralObjective):
        return replace(objective, solver=solver)
    return CirculantObjective(objective, solver)
