"""Exact cross-validation of the fixed-size model on a device of any array library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.namespace import Array, get_namespace, to_numpy
from lssvm.criteria.base import Losses
from lssvm.criteria.dual import POOL_ABOVE
from lssvm.criteria.fixed_size import FixedSizeObjective, FixedSizePoint
from lssvm.criteria.losses import AbsoluteError, Misclassification, RowCriterion, SquaredError
from lssvm.engines.device_blocks import DeviceBlocks, Named
from lssvm.engines.device_expansion import check_device_kernel, use_outputs
from lssvm.engines.device_moments import accumulate_on_device
from lssvm.moments import NystromMap, nystrom_map
from lssvm.moments.cells import FoldMoments
from lssvm.solvers.primal_batch import PrimalBatch, primal_batch, squared_errors

RowLosses = Callable[[Array, Named], Array]


@dataclass(frozen=True, eq=False)
class DeviceObjective(FixedSizeObjective):
    """The cross-validated loss of a fixed-size model, computed on a device.

    Parameters
    ----------
    rows : DeviceBlocks
        The rows of the base, with the columns "Y", and "weight" and "labels" where there are any.

    Notes
    -----
    `FixedSizeObjective` with another engine: one pass on the device for the moments of all folds,
    the systems of all folds and values of C there in batches
    (`lssvm.solvers.primal_batch.PrimalBatch`), and for criteria other than the squared error one
    more pass that brings back the losses alone. Criteria that it does not know (scorers) see
    predictions on the host. ``threads`` and ``budget`` are those of the device.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm._core.device import Device
    >>> from lssvm._core.namespace import get_namespace
    >>> from lssvm.engines.device_blocks import DeviceBlocks
    >>> from lssvm.kernels import RBF
    >>> from lssvm.tuning import SquaredError, content_folds
    >>> from lssvm.criteria.fixed_device import DeviceObjective
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> Y = np.sin(X)
    >>> rows = DeviceBlocks(Device(get_namespace(X), "cpu"), X, {"Y": Y})
    >>> objective = DeviceObjective(
    ...     RBF, X, Y, X[::10], content_folds(X, 5), SquaredError(Y), rows=rows)
    >>> losses = objective.at(1.0).losses(np.array([1e-3, 1e3]))
    >>> bool(losses.mean[1] < losses.mean[0])
    True
    """

    rows: DeviceBlocks = field(kw_only=True)

    def at(self, gamma: float | None) -> DevicePoint:
        """Accumulate the moments of all folds at ``gamma`` on the device."""
        if self.leave_out:
            raise InvalidInputError(
                "Leaving out single rows is not available on a device: give cv=10 or another "
                "number of folds of several rows, or device=None."
            )
        kernel = self.kernel(gamma)
        check_device_kernel(kernel)
        cells = accumulate_on_device(
            kernel,
            self.rows,
            self.Z,
            self.layout.order,
            self.layout.cells,
            n_targets=0 if self.table is not None else self.Y.shape[1],
        )
        layout = replace(self.layout, order=None)
        return DevicePoint(self, kernel, self.Z, FoldMoments(layout, cells, self.table), gamma)


class DevicePoint(FixedSizePoint):
    """A fixed-size model at one kernel parameter, for every C, on a device."""

    objective: DeviceObjective

    @cached_property
    def map(self) -> NystromMap:
        """The Nystrom map of the prototypes, on the device."""
        Z = np.asarray(self.Z, dtype=np.float64)
        return nystrom_map(self.kernel, self.objective.rows.engine.put(Z))

    def fold_models(self, C: float) -> tuple[FloatArray, FloatArray] | None:
        """Return coefficients (v, m, k) and intercepts (v, k) of the models of all folds."""
        groups = self.moments.groups(self.objective.n_problems)
        if len(groups) > 1:
            return super().fold_models(C)
        coef, b = self._batch(groups[0]).solve(np.array([C]), self.objective.method)
        return to_numpy(coef)[:, 0], to_numpy(b)[:, 0]

    def losses(self, C: FloatArray) -> Losses:
        """Return the losses of a path of C; where memory is short its systems are not kept."""
        found = super().losses(C)
        cells, folds = len(self.moments.cells), len(self.moments.layout.test)
        another = 8 * len(self.Z) ** 2 * (cells + 2 * folds + 4)
        if self.objective.rows.engine.free_bytes() < another:
            self._systems = None
            self.__dict__.pop("map", None)
        return found

    def _batch(self, columns: IntArray) -> PrimalBatch:
        """Return the systems of the training rows of all folds."""
        found: Any = self._systems
        if found is None:
            folds = range(len(self.moments.layout.test))
            training = [self.moments.training(v, columns) for v in folds]
            found = self._systems = primal_batch(training, self.map)  # type: ignore[assignment]
        batch: PrimalBatch = found
        return batch

    def _joint(self, C: FloatArray, columns: IntArray) -> Losses:
        objective = self.objective
        criterion = objective.criterion
        coef, b = self._batch(columns).solve(C, objective.method)
        folds = range(len(objective.folds))
        errors = np.stack([self._errors(v, columns, coef[v, ...], b[v, ...]) for v in folds], 1)
        if isinstance(criterion, SquaredError):
            return self._losses(errors, errors)
        losses = []
        for v in folds:
            if isinstance(criterion, RowCriterion):
                losses.append(self._mean_loss(v, coef[v, ...], b[v, ...], criterion))
            else:
                losses.append(self._predict(v, coef[v, ...], b[v, ...], 1))
        if isinstance(criterion, RowCriterion):
            return self._losses(np.stack(losses, 1), errors)
        if len(folds) > POOL_ABOVE and not criterion.pooled:
            return self._pooled(losses)
        scored = [criterion(losses[v], objective.folds.test[v]) for v in folds]
        return self._losses(np.stack(scored, 1), errors)

    def _errors(self, v: int, columns: IntArray, coef: Array, b: Array) -> FloatArray:
        """Return the mean squared errors (c,) on a fold."""
        test = self.moments.testing(v, columns)
        if not test.weight > 0:  # no row of these classes in the fold
            return np.zeros(int(b.shape[0]))
        errors = to_numpy(squared_errors(test, coef, b)).mean(axis=1)
        return np.asarray(np.where(np.isnan(errors), np.inf, errors))

    # -- passes ------------------------------------------------------------------------------------

    def _pass(
        self, v: int, coef: Array, b: Array, names: list[str], use: Callable[[Array, Named], None]
    ) -> None:
        """Let ``use`` see the outputs (b, c, k) of a fold; each row once, in any order."""
        layout = self.objective.layout
        cells = [layout.cells[i] for i in layout.test[v]]
        use_outputs(
            self.kernel, self.objective.rows, self.Z, coef, b, layout.order, cells, names, use
        )

    def _mean_loss(self, v: int, coef: Array, b: Array, criterion: RowCriterion) -> FloatArray:
        """Return the losses (c,) of a fold; of its rows only sums leave the device."""
        rows, table = self.objective.rows, self.objective.table
        xp, loss = rows.engine.xp, _row_losses(criterion)
        wanted: list[str] = ["weight"]
        wanted += ["Y"] if isinstance(criterion, AbsoluteError) else ["labels"]
        if loss is None:
            return self._mean_on_host(v, coef, b, criterion)
        factors = None if table is None else rows.engine.put(table.factors)
        names = [name for name in wanted if name in rows.columns]
        total, mass = np.zeros(int(coef.shape[0])), 0.0

        def use(outputs: Array, block: Named) -> None:
            nonlocal total, mass
            n = int(outputs.shape[0])
            share = xp.ones(n, dtype=outputs.dtype, device=rows.engine.device)
            if "weight" in block:
                share = share * block["weight"]
            if factors is not None:
                share = share * xp.take(factors, xp.astype(block["labels"], xp.int64), axis=0)
            part = to_numpy(xp.matmul(share[None, :], loss(outputs, block)))[0]
            total, mass = total + part, mass + float(xp.sum(share))

        self._pass(v, coef, b, names, use)
        return criterion.finish(total / mass)

    def _mean_on_host(self, v: int, coef: Array, b: Array, criterion: RowCriterion) -> FloatArray:
        """Return the losses of a criterion that is not written for devices."""
        rows = self.objective.folds.test[v]
        share = np.ones(len(rows)) if criterion.weight is None else criterion.weight[rows]
        losses = criterion.rows(self._predict(v, coef, b, 1), rows)
        return criterion.finish(losses @ share / share.sum())

    def _predict(self, v: int, coef: Array, b: Array, threads: int) -> FloatArray:
        """Return the predictions of all candidates for a fold on the host, shape (c, t, k)."""
        rows = self.objective.folds.test[v]
        at = np.argsort(rows, kind="stable")
        out = np.empty((int(coef.shape[0]), len(rows), int(coef.shape[2])))
        done = 0

        def use(outputs: Array, block: Named) -> None:
            nonlocal done
            part = at[done : done + int(outputs.shape[0])]
            out[:, part] = np.moveaxis(to_numpy(outputs), 1, 0)
            done += len(part)

        cells = [slice(0, len(rows))]
        use_outputs(self.kernel, self.objective.rows, self.Z, coef, b, rows[at], cells, [], use)
        return out

    # -- problems on different rows: each its own C ----------------------------------------------

    def _choose(
        self, moments: FoldMoments, grid: FloatArray, columns: IntArray
    ) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """Choose the C of some problems by their squared error; return it with all fold models."""
        folds = range(len(self.moments.layout.test))
        tests = [moments.testing(v, columns) for v in folds]
        weight = np.array([test.weight for test in tests])
        training = [moments.training(v, columns) for v in folds]
        used = [v for v in folds if training[v].n > 0]  # else all rows of the classes are in it
        engine = self.objective.rows.engine
        coef = engine.zeros(len(folds), len(grid), self.map.rank, len(columns))
        b = engine.zeros(len(folds), len(grid), len(columns))
        solved = primal_batch([training[v] for v in used], None).solve(grid, self.objective.method)
        for i, v in enumerate(used):
            coef[v, ...], b[v, ...] = solved[0][i, ...], solved[1][i, ...]
        errors = np.stack(
            [
                np.zeros(len(grid))
                if not test.weight > 0
                else to_numpy(squared_errors(test, coef[v, ...], b[v, ...])).mean(axis=1)
                for v, test in enumerate(tests)
            ],
            1,
        )
        errors = np.where(np.isnan(errors), np.inf, errors)
        best = int(np.argmin(errors @ (weight / weight.sum())))
        on_prototypes = engine.xp.matmul(self.map.T, coef[:, best, ...])
        return float(grid[best]), to_numpy(on_prototypes), to_numpy(b[:, best, :]), errors[best]


def _row_losses(criterion: RowCriterion) -> RowLosses | None:
    """Return the losses (b, c) of outputs (b, c, k), for criteria that are known."""
    if isinstance(criterion, AbsoluteError):
        return _absolute
    if isinstance(criterion, Misclassification):
        decide = criterion.decide

        def right(outputs: Array, block: Named) -> Array:
            xp = get_namespace(outputs)
            n, c, k = outputs.shape
            decided = xp.reshape(decide(xp.reshape(outputs, (n * c, k))), (n, c))
            labels = xp.astype(block["labels"], decided.dtype)[:, None]
            return xp.astype(decided == labels, outputs.dtype)

        return right
    return None


def _absolute(outputs: Array, block: Named) -> Array:
    xp = get_namespace(outputs)
    return xp.mean(xp.abs(outputs - block["Y"][:, None, :]), axis=2)
