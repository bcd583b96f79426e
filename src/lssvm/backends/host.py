"""What a recipe may ask of rows, wherever they are and whoever computes; rows in main memory.

The engines are values behind these verbs: `HostRows` (arrays in memory), `DeviceRows` (a GPU, or
any array-API namespace) and `ScanRows` (blocks of a file, or sums of the scans of a cluster's
workers). They give the same numbers; nothing else asks where rows are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from lssvm._core.arrays import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    float_rows,
    get_namespace,
    is_sparse,
    take_rows,
)
from lssvm._core.blocks import run_blocks, slices
from lssvm._core.device import Device
from lssvm.data.folds import Folds, PositionFolds, PositionHoldout, count_observations, hash_rows
from lssvm.data.source import ArraySource, LookedUp
from lssvm.kernels import Kernel
from lssvm.kernels.base import evaluate_expansion
from lssvm.kernels.dot import variances
from lssvm.kernels.factory import resolve_gamma
from lssvm.moments import NystromMap, accumulate, nystrom_map
from lssvm.moments.moments import Cells, FoldMoments, make_cells
from lssvm.solvers.pcg import KernelProducts, RowBlock
from lssvm.solvers.reweighting import solve_reweighted
from lssvm.tasks import Classes, RowLoss, Truth

AnyFolds: TypeAlias = Folds | PositionFolds | PositionHoldout


class Expansion(NamedTuple):
    """Models of one kernel: coefficients (c, m, k) and intercepts (c, k)."""

    coef: Array
    intercept: Array


class FoldModels(NamedTuple):
    """The models of every fold, on the same prototypes (m, d), for rows that they have not seen."""

    kernel: Kernel
    Z: FloatArray
    models: list[Expansion]
    folds: AnyFolds


class Rows(Protocol):
    """Training rows of one task; what is written out here holds where all are in main memory."""

    @property
    def threads(self) -> int:
        """Threads that may be used."""

    @property
    def n_rows(self) -> int:
        """Rows there are."""
        return int(self.sample.n_rows)

    @property
    def n_outputs(self) -> int:
        """Targets of a row, k."""
        return int(self.sample.n_outputs)

    @property
    def budget(self) -> int:
        """Bytes that may be used where the computations are."""

    @property
    def sample(self) -> Any:
        """Rows in main memory (`HostRows`): all of them, or some."""

    @property
    def content(self) -> Any:
        """All rows, wherever they are, for hashes of what they hold."""
        return self.sample.X

    @property
    def rereads(self) -> bool:
        """Whether another pass over the rows costs no more than its computations."""
        return True

    @property
    def on_device(self) -> bool:
        """Whether arrays other than NumPy's are computed with."""
        return False

    def check(self, loss: str, criterion: str | None) -> None:
        """Refuse a loss, or a criterion without folds, that is not available for these rows.

        Parameters
        ----------
        loss : str
            Loss that the model is to minimise.
        criterion : str or None
            Criterion without folds that tuning is to minimise; None: there are folds.
        """
        return None

    def selector(self, size: int) -> Device | None:
        """Return the device that so many prototypes are worth selecting on; None: the host.

        Parameters
        ----------
        size : int
            Prototypes to be selected.
        """
        return None

    def usable_folds(self, folds: PositionFolds | PositionHoldout) -> AnyFolds:
        """Return folds by position as the other verbs take them.

        Parameters
        ----------
        folds : PositionFolds or PositionHoldout
            Folds by the positions of the rows.
        """
        return self.sample.usable_folds(folds)  # type: ignore[no-any-return]

    def gamma_scale(self) -> float:
        """Return gamma="scale" of all rows."""
        return float(self.sample.gamma_scale())

    def spread(self) -> float:
        """Return the sum of the variances of the features: the mean diagonal of a linear kernel."""
        return float(self.sample.spread())

    def n_observations(self) -> int:
        """Return the number of different rows, or of all where rows repeat by nature."""
        return count_observations(self.content)

    def moments(
        self, kernel: Kernel, Z: FloatArray, folds: AnyFolds | None, task: Classes | None
    ) -> FoldMoments:
        """Return the moments of every fold, per class where a task puts them together.

        Parameters
        ----------
        kernel : Kernel
            The kernel.
        Z : array of shape (m, d)
            Prototypes.
        folds : folds or None
            As `usable_folds` returns them; None: the moments of all rows only.
        task : Classes or None
            Puts moments of classes together; None: the targets are those of the rows.
        """

    def leaves_out(self, folds: AnyFolds) -> bool:
        """Return whether folds are left out in closed form rather than by moments.

        Parameters
        ----------
        folds : folds
            As `usable_folds` returns them.
        """
        return False

    def sums(self, held: FoldModels, loss: RowLoss) -> FloatArray:
        """Return sums (c, v) of a loss over the test rows of each fold by that fold's models.

        Parameters
        ----------
        held : FoldModels
            The c models of every fold, and folds as `usable_folds` returns them.
        loss : RowLoss
            What is summed.
        """

    def outputs(self, held: FoldModels) -> Iterator[tuple[FloatArray, Truth]]:
        """Yield, fold by fold, the outputs (c, t, k) of its models for its test rows.

        Parameters
        ----------
        held : FoldModels
            The c models of every fold, and folds as `usable_folds` returns them.
        """

    def outputs_at_once(self, n_models: int) -> int:
        """Return of how many models the outputs of all rows can be held at a time.

        Parameters
        ----------
        n_models : int
            Models there are.
        """
        return int(self.sample.outputs_at_once(n_models))

    def evaluate(
        self, kernel: Kernel, X: FloatArray, Z: FloatArray, coef: FloatArray, intercept: FloatArray
    ) -> FloatArray:
        """Return the outputs (t, k) of one model for some rows in main memory.

        Parameters
        ----------
        kernel : Kernel
            The kernel.
        X : array of shape (t, d)
            Rows.
        Z : array of shape (m, d)
            Prototypes.
        coef : array of shape (m, k)
            Coefficients on the prototypes.
        intercept : array of shape (k,)
            Bias of every output.
        """
        limits = {"budget": self.budget, "threads": self.threads}
        return evaluate_expansion(kernel, X, Z, coef, intercept, **limits)

    def row_blocks(self, task: Classes | None) -> Iterator[RowBlock]:
        """Yield the rows as conjugate gradients take them, with the targets of classes.

        Parameters
        ----------
        task : Classes or None
            Gives the targets of the classes; None: the targets are those of the rows.
        """

    def products(
        self, kernel: Kernel, Z: FloatArray, task: Classes | None, *, keep: bool
    ) -> KernelProducts:
        """Return what conjugate gradients need of the rows.

        Parameters
        ----------
        kernel : Kernel
            The kernel.
        Z : array of shape (m, d)
            Prototypes.
        task : Classes or None
            Gives the targets of the classes; None: the targets are those of the rows.
        keep : bool
            Whether the kernel matrix is kept from the first pass on.
        """
        return KernelProducts(
            kernel,
            lambda: self.row_blocks(task),
            self.put(Z),
            self.n_outputs,
            offset=self.put(self.sample.target_offset()),
            keep=keep,
            threads=self.threads,
        )

    def reweighted(
        self,
        kernel: Kernel,
        Z: FloatArray,
        map: NystromMap,
        C: float,
        loss: str,
        start: tuple[FloatArray, FloatArray],
        output: int,
    ) -> tuple[FloatArray, FloatArray, int]:
        """Minimise another loss than the squares for one output; also return the steps.

        Parameters
        ----------
        kernel : Kernel
            The kernel.
        Z : array of shape (m, d)
            Prototypes.
        map : NystromMap
            From kernel values to features.
        C : float
            Regularisation.
        loss : {"huber", "absolute", "weighted"}
            What is minimised.
        start : (array of shape (m, 1), array of shape (1,))
            Coefficients and intercept of the least squares model.
        output : int
            Number of the output.
        """

    def map(self, kernel: Kernel, Z: FloatArray) -> NystromMap:
        """Return the Nystrom map of prototypes, computed where the rows are.

        Parameters
        ----------
        kernel : Kernel
            The kernel.
        Z : array of shape (m, d)
            Prototypes.
        """
        return nystrom_map(kernel, self.put(Z))

    def put(self, array: Any) -> Array:
        """Return an array where the computations are.

        Parameters
        ----------
        array : array
            Of NumPy.
        """
        return array

    def has_room(self, n_bytes: int) -> bool:
        """Return whether so much may be kept where the computations are.

        Parameters
        ----------
        n_bytes : int
            How much.
        """
        return True

    def tested(self, folds: AnyFolds) -> Folds:
        """Return the folds of the rows of the sample.

        Parameters
        ----------
        folds : folds
            As `usable_folds` returns them.
        """
        return self.sample.tested(folds)  # type: ignore[no-any-return]

    def holds(self, keys: Any, seed: int) -> BoolArray:
        """Return which of some hashes of rows are among the rows.

        Parameters
        ----------
        keys : int array of shape (t,)
            Hashes of rows.
        seed : int
            That they were hashed with.
        """
        return np.isin(keys, hash_rows(self.content, seed))


_BLOCK = 1024  # rows whose outputs are computed at a time
_CHUNK = 8192  # rows of a part of a pass of conjugate gradients
_MANY = 20  # more folds than this, of equal rows each, are left out in closed form


@dataclass(frozen=True, eq=False)
class HostRows(Rows):
    """Rows of arrays.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Rows.
    Y : array of shape (n, k), or what it is looked up in
        Targets.
    weight : array of shape (n,) or None, default=None
        Weights of the rows in the fit; without class weights where moments are kept per class.
    labels : int array of shape (n,) or None, default=None
        Class numbers.
    loss_weight : array of shape (n,) or None, default=None
        Weights in losses, class weights included; None: as in the fit.
    sample_weight : array of shape (n,) or None, default=None
        Weights as the caller gave them, which is what a scorer sees.
    positions : int array of shape (n,) or None, default=None
        Rows of the caller's data that these are; None: all, in order.
    given : tuple or None, default=None
        X and y as the caller gave them, which is what a splitter sees.
    groups : array or None, default=None
        Groups of the caller's rows; rows of a group are left out together.
    centre : array of shape (k,) or None, default=None
        What was taken off the targets, which Y is without.
    by_position : bool, default=False
        Whether folds follow positions, as those of rows that are read in blocks do.
    budget, threads : int
        Memory budget in bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.backends.host import HostRows
    >>> from lssvm.kernels import Linear
    >>> X = np.arange(4.0)[:, None]
    >>> HostRows(X, 2 * X).moments(Linear(), np.eye(1), None, None).whole[0].plain().cross
    array([[28.]])
    """

    X: FloatArray
    Y: FloatArray | LookedUp
    weight: FloatArray | None = None
    labels: IntArray | None = None
    loss_weight: FloatArray | None = None
    sample_weight: FloatArray | None = None
    positions: IntArray | None = None
    given: tuple[Any, Any] | None = None
    groups: FloatArray | None = None
    centre: FloatArray | None = None
    by_position: bool = False
    budget: int = 2**31
    threads: int = 1

    @property
    def n_rows(self) -> int:
        """Rows there are."""
        return int(self.X.shape[0])

    @property
    def n_outputs(self) -> int:
        """Targets of a row, k."""
        return int(self.Y.shape[1])

    @property
    def sample(self) -> HostRows:
        """All rows."""
        return self

    @property
    def truth(self) -> Truth:
        """What is known of all rows, for losses."""
        weight = self.weight if self.loss_weight is None else self.loss_weight
        return Truth(self.Y, self.labels, weight, self.sample_weight, self.X)

    @cached_property
    def row_numbers(self) -> IntArray:
        """Rows of the caller's data that these are."""
        return np.arange(self.n_rows) if self.positions is None else self.positions

    def observed(self) -> dict[str, Any]:
        """Return what tells rows of the same content apart, as `assign_folds` takes it."""
        return {
            "labels": self.labels,
            "targets": np.asarray(self.Y) if self.labels is None else None,
            "weight": self.sample_weight,
            "groups": None if self.groups is None else self.groups[self.row_numbers],
        }

    def usable_folds(self, folds: PositionFolds | PositionHoldout) -> Folds:
        """Return the folds by position of these rows that can be trained on and tested."""
        part = folds.assign(self.row_numbers)
        tests = [np.flatnonzero(part == v) for v in range(folds.n_test)]
        return Folds([test for test in tests if 0 < len(test) < len(part)])

    def gamma_scale(self) -> float:
        """Return gamma="scale" of the rows."""
        return float(resolve_gamma("scale", self.X, self.weight))

    def spread(self) -> float:
        """Return the sum of the variances of the features: the mean diagonal of a linear kernel."""
        return float(variances(self.X, self.sample_weight).sum())  # weights not those of classes

    def moments(
        self, kernel: Kernel, Z: FloatArray, folds: AnyFolds | None, task: Classes | None
    ) -> FoldMoments:
        """Return the moments of every fold in one pass: n m^2 + 2 n m d operations."""
        layout = self.layout(folds, task)
        Y = self.Y if task is None else np.zeros((self.n_rows, 0))
        source = ArraySource(self.X, Y, self.weight, layout.order)
        cells = accumulate(
            kernel, source, Z, layout.cells, budget=self.budget, threads=self.threads
        )
        return FoldMoments(replace(layout, order=None), cells, task)  # 4 bytes a row

    def layout(self, folds: AnyFolds | None, task: Classes | None) -> Cells:
        """Return the cells of a pass: folds, and classes where moments are kept per class.

        Parameters
        ----------
        folds : Folds or None
            None: all rows are one cell, or one per class.
        task : Classes or None
            Moments are kept for each of its classes; None: for all rows together.
        """
        assert folds is None or isinstance(folds, Folds)
        if task is None:
            return make_cells(folds, self.n_rows)
        return make_cells(folds, self.n_rows, self.labels, task.n_classes)

    def leaves_out(self, folds: AnyFolds) -> bool:
        """Return whether there are many folds, each of one row or of equal ones."""
        assert isinstance(folds, Folds)
        if folds.train is not None or len(folds) <= _MANY:
            return False
        several = [rows for rows in folds.test if len(rows) > 1]
        if is_sparse(self.X):
            keys = hash_rows(self.X) if several else np.empty(0)
            return all(bool(np.all(keys[rows] == keys[rows[0]])) for rows in several)
        return all(bool(np.all(self.X[rows] == self.X[rows[0]])) for rows in several)

    def sums(self, held: FoldModels, loss: RowLoss) -> FloatArray:
        """Return sums (c, v) of a loss over the test rows of each fold by that fold's models."""
        (kernel, Z, models, folds), truth = held, self.truth
        assert isinstance(folds, Folds)

        def add(v: int) -> FloatArray:
            outputs, rows = _block_outputs(kernel, self.X, Z, models[v]), folds.test[v]
            total = np.zeros(len(models[v].coef))
            for part in slices(len(rows), _BLOCK):
                some = truth.take(rows[part])
                weight = np.ones(len(rows[part])) if some.weight is None else some.weight
                total += loss.rows(outputs(rows[part]), some) @ weight
            return total

        operations = self.X.shape[0] * Z.shape[0] * (self.X.shape[1] + models[0].coef[:, 0].size)
        found = run_blocks(add, range(len(folds)), self.threads, operations=operations)
        return np.stack(found, 1)

    def outputs(self, held: FoldModels) -> Iterator[tuple[FloatArray, Truth]]:
        """Yield, fold by fold, the outputs (c, t, k) of its models for its test rows."""
        kernel, Z, models, folds = held
        assert isinstance(folds, Folds)
        for model, rows in zip(models, folds.test, strict=True):
            evaluate = _block_outputs(kernel, self.X, Z, model)
            out = np.empty((model.coef.shape[0], len(rows), model.coef.shape[2]))

            def fill(part: slice, rows: IntArray = rows, out: FloatArray = out) -> None:
                out[:, part] = evaluate(rows[part])  # noqa: B023

            run_blocks(fill, slices(len(rows), _BLOCK), self.threads)
            yield out, self.truth.take(rows)

    def outputs_at_once(self, n_models: int) -> int:
        """Return of how many models the outputs of all rows can be held at a time."""
        each = 3 * 8 * self.n_rows * self.n_outputs
        return int(max(1, min(n_models, 0.25 * self.budget // each)))

    def row_blocks(self, task: Classes | None) -> Iterator[RowBlock]:
        """Yield the rows as conjugate gradients take them, with the targets of classes."""
        table = self.table(task)
        for part in slices(self.n_rows, int(np.clip(self.n_rows // 16, 1024, _CHUNK))):
            weight = None if self.weight is None else self.weight[part]
            labels = None if self.labels is None else self.labels[part]
            yield row_block(self.X[part], self.Y[part], weight, labels, task, table)

    def table(self, task: Classes | None) -> Any:
        """Return targets and weights of the classes, where moments would be kept per class.

        Parameters
        ----------
        task : Classes or None
            None: there are no classes, and no table.
        """
        if task is None:
            return None
        assert self.labels is not None
        return task.table(task.counts(self.labels, self.weight))

    def target_offset(self) -> FloatArray:
        """Return what is taken off the targets for the sake of rounding: their mean."""
        if self.labels is not None:
            return np.zeros(self.n_outputs)
        return np.asarray(np.average(self.Y, axis=0, weights=self.weight), dtype=np.float64)

    def reweighted(
        self,
        kernel: Kernel,
        Z: FloatArray,
        map: NystromMap,
        C: float,
        loss: str,
        start: tuple[FloatArray, FloatArray],
        output: int,
        **options: Any,
    ) -> tuple[FloatArray, FloatArray, int]:
        """Minimise another loss than the squares for one output; also return the steps.

        Parameters
        ----------
        **options : Any
            Further arguments of `lssvm.solvers.reweighting.solve_reweighted`.
        """
        options |= {"budget": self.budget, "threads": self.threads}
        y = self.Y[:, [output]]
        return solve_reweighted(kernel, self.X, y, Z, map, C, loss, start, self.weight, **options)

    def tested(self, folds: AnyFolds) -> Folds:
        """Return the folds themselves."""
        assert isinstance(folds, Folds)
        return folds


def _block_outputs(kernel: Kernel, X: FloatArray, Z: FloatArray, model: Expansion) -> Any:
    c, m, k = model.coef.shape
    flat = np.ascontiguousarray(np.moveaxis(model.coef, 1, 0)).reshape(m, c * k)
    Z = float_rows(Z)

    def outputs(rows: IntArray) -> FloatArray:
        block = float_rows(X[rows])
        values = (np.asarray(kernel(block, Z)) @ flat).reshape(-1, c, k)
        return np.asarray(np.moveaxis(values, 1, 0) + model.intercept[:, None, :])

    return outputs


def row_block(X: Any, Y: Any, weight: Any, labels: Any, task: Any, table: Any) -> RowBlock:
    """Return rows as conjugate gradients take them, with the targets and weights of classes."""
    if task is None:
        return RowBlock(X, Y, weight)
    factor, Y = take_rows(table.factors, labels), take_rows(table.targets, labels)
    weight = factor if weight is None else weight * factor
    if len(task.groups()) > 1:
        weight = weight[:, None] * get_namespace(Y).astype(Y != 0, Y.dtype)
    return RowBlock(X, Y, weight)
