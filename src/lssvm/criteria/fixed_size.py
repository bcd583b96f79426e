"""Exact cross-validation of the fixed-size model from the moments of the folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.threads import run_blocks, slices, small_problem
from lssvm.criteria.base import Losses
from lssvm.criteria.dual import POOL_ABOVE
from lssvm.criteria.fixed_leave_out import leave_out_predictions
from lssvm.criteria.losses import Criterion, RowCriterion, SquaredError
from lssvm.data import ArraySource
from lssvm.folds.content import Folds
from lssvm.kernels import Kernel
from lssvm.moments import Moments, NystromMap, accumulate, nystrom_map
from lssvm.moments.cells import Cells, ClassTable, FoldMoments, make_cells
from lssvm.solvers.primal import PrimalSystem, primal_system

_BLOCK = 1024
_FLOOR = 1e-10  # squared errors, relative to the variance of the targets, that count as zero
_MANY = 20  # more folds than this, of equal rows each, are left out in closed form


@dataclass(frozen=True, eq=False)
class FixedSizeObjective:
    r"""The cross-validated loss of a fixed-size model as a function of (C, gamma).

    Parameters
    ----------
    kernel : callable
        From gamma to a `Kernel`.
    X : array of shape (n, d)
    Y : array of shape (n, k)
        Targets of all problems (not read where there is a table).
    Z : array of shape (m, d)
        Prototypes.
    folds : Folds
    criterion : Criterion
        Sees the out-of-fold predictions of all problems.
    weight : array of shape (n,) or None, default=None
        Without the factors of a table.
    table : ClassTable or None, default=None
        Where targets and weights are per class: the pass then keeps the moments of every class,
        from which any pair of classes is put together.
    C_grid : array of shape (c,) or None, default=None
        Where problems are trained on different rows (one-vs-one) each gets its own C of this grid,
        that of the smallest cross-validated squared error; `FixedSizePoint.losses` then takes one
        value of C and does not look at it.
    budget, threads : int
    method : {"auto", "cholesky", "eigen", "tridiagonal"}, default="auto"
        How the systems of a path are solved, see `lssvm.solvers.primal.PrimalSystem.solve`.

    Notes
    -----
    [DeBrabanter2010]_, algorithm 3. `at` takes one pass (n m^2) for the moments of all v folds,
    one Nystrom map (9 m^3), and per fold 3 m^3 to carry the moments of its training rows into
    feature space and 4/3 m^3 to reduce them to tridiagonal form. A value of C then costs 4 m^2 k
    per fold. Squared errors come from the moments of the fold; any other criterion takes one more
    pass of 2 n m (d + c k) operations for the predictions of all c values of C at once. The printed
    algorithm solves v systems for one value of C.

    More than 20 folds of equal rows (leave-one-out) take one eigendecomposition and one
    more pass instead ([Cawley2004]_).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.tuning import SquaredError, content_folds
    >>> from lssvm.criteria.fixed_size import FixedSizeObjective
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> Y = np.sin(X)
    >>> objective = FixedSizeObjective(RBF, X, Y, X[::10], content_folds(X, 5), SquaredError(Y))
    >>> losses = objective.at(1.0).losses(np.array([1e-3, 1e3]))
    >>> bool(losses.mean[1] < losses.mean[0])
    True
    """

    kernel: Callable[[float | None], Kernel]
    X: NDArray[Any]
    Y: Any
    Z: NDArray[Any]
    folds: Folds
    criterion: Criterion
    weight: FloatArray | None = None
    table: ClassTable | None = None
    C_grid: FloatArray | None = None
    budget: int = 2**31
    threads: int = 1
    method: str = "auto"

    @cached_property
    def layout(self) -> Cells:
        """The cells of the pass: one per fold and class, or per class for leave-one-out."""
        return make_cells(None if self.leave_out else self.folds, len(self.X), self.table)

    @cached_property
    def leave_out(self) -> bool:
        """Whether the folds are single rows (or equal ones) to be left out in closed form."""
        if self.folds.train is not None or len(self.folds) <= _MANY:
            return False
        several = [rows for rows in self.folds.test if len(rows) > 1]
        return all(bool(np.all(self.X[rows] == self.X[rows[0]])) for rows in several)

    @property
    def n_problems(self) -> int:
        """Number of outputs k."""
        return int(self.Y.shape[1] if self.table is None else self.table.targets.shape[1])

    def at(self, gamma: float | None) -> FixedSizePoint:
        """Accumulate the moments of all folds at ``gamma`` and carry them into feature space."""
        kernel = self.kernel(gamma)
        Y = self.Y if self.table is None else np.zeros((len(self.X), 0))
        source = ArraySource(self.X, Y, self.weight, self.layout.order)
        cells = accumulate(
            kernel,
            source,
            self.Z,
            self.layout.cells,
            budget=self.budget,
            threads=self.threads,
        )
        layout = replace(self.layout, order=None)  # 4 bytes a row, of no further use
        return FixedSizePoint(self, kernel, self.Z, FoldMoments(layout, cells, self.table), gamma)


@dataclass(eq=False)
class FixedSizePoint:
    """A fixed-size model at one kernel parameter, for every C.

    Attributes
    ----------
    objective : FixedSizeObjective
    kernel : Kernel
    Z : array of shape (m, d)
    moments : FoldMoments
    gamma : float or None
    C_of : array of shape (k,) or None
        The C of every problem where each has its own; filled by `losses`.
    """

    objective: FixedSizeObjective
    kernel: Kernel
    Z: NDArray[Any]
    moments: FoldMoments
    gamma: float | None = None
    C_of: FloatArray | None = None
    _systems: list[PrimalSystem] | None = field(default=None, repr=False)
    _fold_models: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False)

    @cached_property
    def map(self) -> NystromMap:
        """The Nystrom map of the prototypes."""
        return nystrom_map(self.kernel, self.Z)

    @property
    def whole(self) -> list[Moments]:
        """The moments of all rows, per class where there is a table."""
        return self.moments.whole

    def prefix(self, size: int) -> FixedSizePoint:
        """Return the point for the first ``size`` prototypes, from the same moments."""
        return type(self)(
            self.objective, self.kernel, self.Z[:size], self.moments.prefix(size), self.gamma
        )

    def losses(self, C: FloatArray) -> Losses:
        """Return the losses of a path of C."""
        groups = self.moments.groups(self.objective.n_problems)
        C = np.asarray(C, dtype=np.float64)
        with small_problem(len(self.Z)):
            if len(groups) > 1:
                return self._separate(groups)
            if self.objective.leave_out:
                return self._leave_out_losses(C, groups[0])
            return self._joint(C, groups[0])

    def fold_models(self, C: float) -> tuple[FloatArray, FloatArray] | None:
        """Return coefficients (v, m, k) and intercepts (v, k) of the models of all folds.

        Where every problem has its own C those are at it. None where rows are left out in closed
        form. Without another pass over the data.
        """
        if self.objective.leave_out:
            return None
        groups = self.moments.groups(self.objective.n_problems)
        if len(groups) > 1:
            if self._fold_models is None:
                self.losses(np.ones(1))
            return self._fold_models
        solved = [
            system.solve(np.array([C]), self.objective.method) for system in self._folds(groups[0])
        ]
        return np.concatenate([coef for coef, _ in solved]), np.concatenate([b for _, b in solved])

    # -- one C for all problems ------------------------------------------------------------------

    def _folds(self, columns: IntArray) -> list[PrimalSystem]:
        """Return the systems of the training rows of all folds."""
        if self._systems is None:
            _ = self.map
            self._systems = run_blocks(
                lambda v: primal_system(self.moments.training(v, columns), self.map),
                range(len(self.moments.layout.test)),
                self.objective.threads,
            )
        return self._systems

    def _joint(self, C: FloatArray, columns: IntArray) -> Losses:
        objective = self.objective
        folds = range(len(objective.folds))
        systems = self._folds(columns)
        gather = len(objective.folds) > POOL_ABOVE and not objective.criterion.pooled
        inner = 1 if objective.criterion.pooled else objective.threads
        largest = max(len(rows) for rows in objective.folds.test)
        if isinstance(objective.criterion, RowCriterion):
            largest = min(largest, _BLOCK)
        row_bytes = 8 * len(columns) * (4 * len(self.Z) + 3 * largest) * objective.threads
        step = int(max(1, min(len(C), 0.25 * objective.budget // row_bytes)))

        def judge(v: int) -> tuple[FloatArray, FloatArray]:
            parts = [
                self._judge(v, C[i : i + step], columns, systems[v], inner, gather)
                for i in range(0, len(C), step)
            ]
            errors, losses = zip(*parts, strict=True)
            return np.concatenate(errors), np.concatenate(losses)

        judged = run_blocks(judge, folds, objective.threads if inner == 1 else 1)
        if gather:
            return self._pooled([predictions for _, predictions in judged])
        return self._losses(
            np.stack([loss for _, loss in judged], 1), np.stack([se for se, _ in judged], 1)
        )

    def _judge(
        self,
        v: int,
        C: FloatArray,
        columns: IntArray,
        system: PrimalSystem,
        threads: int,
        gather: bool,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the squared errors (c,) and losses (c,), or predictions, of one fold."""
        criterion = self.objective.criterion
        coef, b = system.solve(C, self.objective.method)
        errors = _squared(self.moments.testing(v, columns), coef, b)
        if isinstance(criterion, SquaredError):
            return errors, errors
        if isinstance(criterion, RowCriterion):
            return errors, self._mean_loss(v, coef, b, criterion)
        predictions = self._predict(v, coef, b, threads)
        if gather:
            return errors, predictions
        return errors, criterion(predictions, self.objective.folds.test[v])

    def _outputs(self, coef: FloatArray, b: FloatArray) -> Callable[[IntArray], FloatArray]:
        """Return the function from some rows to the outputs of all candidates, shape (c, t, k)."""
        c, m, k = coef.shape
        flat = np.ascontiguousarray(np.moveaxis(coef, 1, 0)).reshape(m, c * k)
        Z = np.asarray(self.Z, dtype=np.float64)

        def outputs(rows: IntArray) -> FloatArray:
            X = np.asarray(self.objective.X[rows], dtype=np.float64)
            values = (np.asarray(self.kernel(X, Z)) @ flat).reshape(-1, c, k)
            return np.asarray(np.moveaxis(values, 1, 0) + b[:, None, :])

        return outputs

    def _mean_loss(
        self, v: int, coef: FloatArray, b: FloatArray, criterion: RowCriterion
    ) -> FloatArray:
        """Return the losses (c,) of a fold without keeping the predictions of its rows."""
        outputs, rows = self._outputs(coef, b), self.objective.folds.test[v]
        weight = criterion.weight
        total, mass = np.zeros(len(coef)), 0.0
        for part in slices(len(rows), _BLOCK):
            some = rows[part]
            share = np.ones(len(some)) if weight is None else weight[some]
            total += criterion.rows(outputs(some), some) @ share
            mass += float(share.sum())
        return criterion.finish(total / mass)

    def _predict(self, v: int, coef: FloatArray, b: FloatArray, threads: int) -> FloatArray:
        """Return the predictions of all candidates for a fold, shape (c, t, k)."""
        outputs, rows = self._outputs(coef, b), self.objective.folds.test[v]
        out = np.empty((coef.shape[0], len(rows), coef.shape[2]))

        def fill(part: slice) -> None:
            out[:, part] = outputs(rows[part])

        run_blocks(fill, slices(len(rows), _BLOCK), threads)
        return out

    def _sizes(self) -> FloatArray:
        objective = self.objective
        weight = objective.weight
        if objective.table is not None:
            factors = objective.table.factors
            if np.any(factors != 1.0):
                own = factors[objective.table.labels]
                weight = own if weight is None else weight * own
        tests = objective.folds.test
        return np.array([len(r) if weight is None else weight[r].sum() for r in tests], float)

    def _losses(self, losses: FloatArray, errors: FloatArray) -> Losses:
        sizes = self._sizes()
        share = sizes / sizes.sum()
        tie = (errors * share).sum(axis=1)
        if not self.objective.criterion.pooled:
            share = np.full(len(sizes), 1.0 / len(sizes))
        if len(sizes) > POOL_ABOVE:
            losses, share = (losses * share).sum(axis=1, keepdims=True), np.ones(1)
        losses = np.where(np.isfinite(tie)[:, None], losses, np.inf)
        return Losses(losses, share, np.where(np.isfinite(tie), tie, np.inf))

    def _pooled(self, predictions: FloatArray | list[FloatArray]) -> Losses:
        """Return the losses of the predictions of all rows at once."""
        objective = self.objective
        if isinstance(predictions, list):
            rows = np.concatenate(objective.folds.test)
            predictions = np.concatenate(predictions, axis=1)
        else:
            rows = np.arange(len(objective.X))
        loss = objective.criterion(predictions, rows)
        weight = objective.weight
        Y = np.asarray(objective.Y)
        if objective.table is not None:
            labels, factors = objective.table.labels, objective.table.factors
            Y = objective.table.targets[labels]
            weight = factors[labels] if weight is None else weight * factors[labels]
        tie = SquaredError(Y, weight)(predictions, rows)
        loss = np.where(np.isfinite(tie), loss, np.inf)
        return Losses(loss[:, None], np.ones(1), np.where(np.isfinite(tie), tie, np.inf))

    def _leave_out_losses(self, C: FloatArray, columns: IntArray) -> Losses:
        """Return leave-out losses, some values of C at a time where predictions would not fit."""
        row_bytes = 8 * len(self.objective.X) * (4 * len(columns) + 2)
        step = int(max(1, min(len(C), 0.25 * self.objective.budget // row_bytes)))
        parts = [
            self._pooled(self._leave_out(C[i : i + step], columns)) for i in range(0, len(C), step)
        ]
        return Losses(
            np.concatenate([part.fold for part in parts]),
            parts[0].weight,
            np.concatenate([part.tie for part in parts]),
        )

    def _leave_out(self, C: FloatArray, columns: IntArray) -> FloatArray:
        """Return leave-out predictions of some problems for all rows, shape (c, n, k)."""
        objective = self.objective
        moments = self.moments.training(None, columns)
        Y, weight = np.asarray(objective.Y), objective.weight
        if objective.table is not None:
            labels = objective.table.labels
            Y = objective.table.targets[np.ix_(labels, columns)]
            used = objective.table.factors[labels] * (Y[:, 0] != 0)
            weight = used if weight is None else weight * used
        return leave_out_predictions(
            self.kernel,
            objective.X,
            Y,
            self.Z,
            objective.folds.test,
            moments,
            self.map,
            C,
            weight,
            threads=objective.threads,
        )

    # -- problems on different rows: each its own C ----------------------------------------------

    def _separate(self, groups: list[IntArray]) -> Losses:
        objective = self.objective
        grid = np.asarray(objective.C_grid, dtype=np.float64)
        k = objective.n_problems
        if objective.leave_out:
            self.C_of = np.empty(k)
            out = np.empty((1, len(objective.X), k))
            assert objective.table is not None
            Y = objective.table.targets[objective.table.labels]
            for columns in groups:
                predictions = self._leave_out(grid, columns)
                used = np.flatnonzero(Y[:, columns[0]])
                tie = SquaredError(Y[:, columns], objective.weight)(predictions[:, used], used)
                best = int(np.argmin(np.where(np.isfinite(tie), tie, np.inf)))
                self.C_of[columns], out[:, :, columns] = grid[best], predictions[best]
            return self._pooled(out)
        coef, b, squares = self._choose_all(groups)
        if isinstance(objective.criterion, SquaredError):
            return self._losses(squares, squares)
        criterion = objective.criterion

        def judge(i: int) -> FloatArray:
            own, threshold = coef[i : i + 1], b[i : i + 1]
            if isinstance(criterion, RowCriterion):
                return self._mean_loss(i, own, threshold, criterion)
            return criterion(self._predict(i, own, threshold, 1), objective.folds.test[i])

        losses = run_blocks(judge, range(len(objective.folds)), objective.threads)
        return self._losses(np.stack(losses, 1), squares)

    def _choose_all(self, groups: list[IntArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Choose a C for every group; return the models of all folds and their squared errors."""
        objective = self.objective
        grid = np.asarray(objective.C_grid, dtype=np.float64)
        k, v = objective.n_problems, len(self.moments.layout.test)
        self.C_of = np.empty(k)
        # The map is linear: once per cell instead of once per fold and pair.
        features = self.moments.mapped(self.map, objective.threads)
        coef, b, ties = np.empty((v, self.map.T.shape[0], k)), np.empty((v, k)), np.empty((v, k))

        def choose(columns: IntArray) -> None:
            chosen = self._choose(features, grid, columns)
            self.C_of[columns], coef[:, :, columns] = chosen[0], chosen[1]  # type: ignore[index]
            b[:, columns], ties[:, columns] = chosen[2], chosen[3][:, None]

        run_blocks(choose, groups, objective.threads)
        self._fold_models = coef, b
        return coef, b, ties.mean(axis=1)[None]

    def _choose(
        self, moments: FoldMoments, grid: FloatArray, columns: IntArray
    ) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """Choose the C of some problems by their squared error; return it with all fold models."""
        folds = range(len(self.moments.layout.test))
        systems, errors = [], []
        weight = np.array([moments.testing(v, columns).weight for v in folds])
        for v in folds:
            training = moments.training(v, columns)
            if training.n == 0:  # all rows of these classes are in the fold
                coef = np.zeros((len(grid), self.map.rank, len(columns)))
                b = np.zeros((len(grid), len(columns)))
            else:
                system = primal_system(training, None)
                coef, b = system.solve(grid, self.objective.method)
            errors.append(_squared(moments.testing(v, columns), coef, b))
            systems.append((coef, b))
        mean = np.stack(errors, 1) @ (weight / weight.sum())
        best = int(np.argmin(mean))
        coefs = np.stack([self.map.T @ coef[best] for coef, _ in systems])
        intercepts = np.stack([b[best] for _, b in systems])
        return float(grid[best]), coefs, intercepts, np.stack(errors, 1)[best]


def _squared(test: Moments, coef: FloatArray, b: FloatArray) -> FloatArray:
    """Return the mean squared errors on a fold from its moments, shape (c,)."""
    if not test.weight > 0:  # no row of these classes in the fold
        return np.zeros(len(b))
    errors = test.squared_error(coef, b) / test.weight
    variance = test.squares / test.weight - (test.target / test.weight) ** 2
    # Below this an error is rounding, which must not decide between values of C.
    errors = np.maximum(errors, _FLOOR * np.maximum(variance, 0.0)).mean(axis=1)
    return np.asarray(np.where(np.isnan(errors), np.inf, errors))
