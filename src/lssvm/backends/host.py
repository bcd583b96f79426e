"""Computations on threads of this machine, with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from lssvm._core.arrays import (
    Array,
    FloatArray,
    IntArray,
    find_device,
    float_rows,
    get_namespace,
    take_rows,
)
from lssvm._core.blocks import as_bytes, n_threads, run_blocks, slices
from lssvm.data.dataset import Dataset
from lssvm.data.folds import Folds, PositionFolds, PositionHoldout
from lssvm.data.raw import ArraySource
from lssvm.kernels import Kernel
from lssvm.kernels.base import evaluate_expansion
from lssvm.solvers.moments import Cells, Moments, accumulate
from lssvm.solvers.pcg import RowBlock

if TYPE_CHECKING:
    from lssvm.backends.device import Backend

AnyFolds: TypeAlias = Folds | PositionFolds | PositionHoldout
Named: TypeAlias = dict[str, Array]
"""Rows of a block: "X" and other columns by their names."""
Result = TypeVar("Result")


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


def row_block(X: Any, Y: Any, weight: Any, labels: Any, task: Any, table: Any) -> RowBlock:
    """Return rows as conjugate gradients take them, with the targets and weights of classes."""
    if task is None:
        return RowBlock(X, Y, weight)
    factor, Y = take_rows(table.factors, labels), take_rows(table.targets, labels)
    weight = factor if weight is None else weight * factor
    if len(task.groups()) > 1:
        weight = weight[:, None] * get_namespace(Y).astype(Y != 0, Y.dtype)
    return RowBlock(X, Y, weight)


CHUNK = 8192
"""Rows of a block of a pass of conjugate gradients, at most."""
_BLOCK = 1024  # rows whose outputs are computed at a time
_CHEAP = 10**10  # operations of a pass up to which features are tried unrequested


class HostData(NamedTuple):
    """Rows in main memory."""

    X: Any
    columns: dict[str, Any]


@dataclass(frozen=True)
class Host:
    """The host: ``budget`` bytes of memory, ``threads`` threads with one BLAS thread each."""

    budget: int = 2**31
    threads: int = 1
    device: ClassVar[None] = None
    prefers_moments: ClassVar[bool] = False  # conjugate gradients may be the better way

    def has_room(self, n_bytes: int) -> bool:
        """Return True: budgets are checked before."""
        return True

    def check(self, *loss: Any, **needs: Any) -> None:
        """Refuse nothing."""

    def check_data(self, data: Dataset, *, added: bool = False) -> None:
        """Refuse nothing."""

    def sample_size(self, data: Dataset, size: int, budget: int) -> int:
        """Return ``size``: the others are read in blocks."""
        return size

    def is_cheap(self, operations: float) -> bool:
        """Return whether they take less than a second or so."""
        return operations <= _CHEAP

    def native(self, X: Any) -> None:
        """Return None: the host computes with arrays of NumPy."""
        return

    def put(self, array: Any) -> Any:
        """Return the array."""
        return array

    def load(self, X: Any, columns: dict[str, Any]) -> HostData:
        """Return the rows as they are."""
        return HostData(X, columns)

    def content(self, data: HostData) -> None:
        """Return None: rows are hashed in main memory."""
        return

    def moments(
        self, kernel: Kernel, data: HostData, Z: FloatArray, layout: Cells, n_targets: int
    ) -> list[Moments]:
        """Return the moments of cells in one pass: n m^2 + 2 n m d operations."""
        X, columns = data
        Y = columns["Y"] if n_targets else np.zeros((X.shape[0], 0))
        source = ArraySource(X, Y, columns.get("weight"), layout.order)
        return accumulate(kernel, source, Z, layout.cells, budget=self.budget, threads=self.threads)

    def outputs(
        self, kernel: Kernel, X: Any, Z: FloatArray, coef: FloatArray, intercept: FloatArray
    ) -> FloatArray:
        """Return K(X, Z) coef + intercept, shape (n, k)."""
        limits = {"budget": self.budget, "threads": self.threads}
        return evaluate_expansion(kernel, X, Z, coef, intercept, **limits)

    def fold_outputs(
        self,
        data: HostData,
        held_out: FoldModels,
        columns: tuple[str, ...],
        use: Callable[[int, IntArray, FloatArray, Named], Result],
    ) -> Iterator[tuple[int, Result]]:
        """Yield what ``use`` makes of blocks of the test rows of every fold, on all threads."""
        (kernel, Z, models, folds), X = held_out, data.X
        assert isinstance(folds, Folds)
        used = {name: data.columns[name] for name in columns if name in data.columns}
        evaluate = [_block_outputs(kernel, X, Z, model) for model in models]

        def work(job: tuple[int, slice]) -> tuple[int, Result]:
            v, part = job
            rows, at = folds.test[v][part], np.arange(part.start, part.stop)
            block = {name: column[rows] for name, column in used.items()}
            return v, use(v, at, evaluate[v](rows), block)

        jobs = [(v, p) for v, rows in enumerate(folds.test) for p in slices(len(rows), _BLOCK)]
        operations = X.shape[0] * Z.shape[0] * (X.shape[1] + models[0].coef[:, 0].size)
        return iter(run_blocks(work, jobs, self.threads, operations=operations))

    def row_blocks(self, data: HostData, columns: tuple[str, ...]) -> Iterator[Named]:
        """Yield all rows in their order, with those of the named columns that there are."""
        n = int(data.X.shape[0])
        used = {name: data.columns[name] for name in columns if name in data.columns}
        for part in slices(n, int(np.clip(n // 16, 1024, CHUNK))):
            yield {"X": data.X[part]} | {name: column[part] for name, column in used.items()}


class UsesResources(Protocol):
    """An estimator with limits of memory and threads."""

    memory_budget: Any
    n_jobs: int | None


def host_of(estimator: UsesResources) -> Host:
    """Return this machine with the memory and the threads that an estimator may use."""
    return Host(as_bytes(estimator.memory_budget), n_threads(estimator.n_jobs))


def find_backend(
    name: Any, X: Any, *, dispatch: bool, limit: int | None, budget: int, threads: int
) -> Backend:
    """Return what computes with rows X: a device, or the host.

    Parameters
    ----------
    name : str, torch.device or None
        As the parameter ``device`` of an estimator names it.
    X : array or None
        The rows, where they are arrays.
    dispatch : bool
        Whether arrays of other libraries are computed with where they are.
    limit : int or None
        Bytes that may be used on a device; None: most of what is free.
    budget, threads : int
        Memory of the host in bytes, and its threads.
    """
    place = find_device(name, X, dispatch=dispatch and X is not None)
    if place is None:
        return Host(budget, threads)
    from lssvm.backends.device import Torch  # which builds on this module

    return Torch(replace(place, limit=limit))


def _block_outputs(kernel: Kernel, X: Any, Z: FloatArray, model: Expansion) -> Any:
    c, m, k = model.coef.shape
    flat = np.ascontiguousarray(np.moveaxis(model.coef, 1, 0)).reshape(m, c * k)
    Z = float_rows(Z)

    def outputs(rows: IntArray) -> FloatArray:
        block = float_rows(X[rows])
        values = (np.asarray(kernel(block, Z)) @ flat).reshape(-1, c, k)
        return np.asarray(np.moveaxis(values, 1, 0) + model.intercept[:, None, :])

    return outputs
