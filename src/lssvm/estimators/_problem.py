"""Everything that a fit of the fixed-size model needs after its input has been checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.memory import as_bytes
from lssvm.criteria.fixed_size import FixedSizeObjective
from lssvm.criteria.losses import Criterion
from lssvm.data import ArraySource
from lssvm.estimators._validation import n_distinct
from lssvm.folds.content import Folds, hash_rows
from lssvm.kernels import Kernel, evaluate_expansion, resolve_gamma
from lssvm.moments import Moments, NystromMap, accumulate, nystrom_map
from lssvm.moments.cells import ClassTable, make_cells
from lssvm.solvers.reweighting import solve_reweighted


@dataclass
class FixedProblem:
    """Everything that a fit needs after its input has been checked."""

    given: tuple[Any, Any]  # X and y as the caller gave them, which is what a splitter sees
    X: NDArray[Any]
    Y: Any  # array of shape (n, k), or what it is looked up in
    weight: FloatArray | None
    labels: IntArray | None
    table: ClassTable | None
    support: IntArray | None  # rows of the caller's X that have a positive weight; None: all
    criterion: Callable[[], Criterion]
    folds: Folds | None = None  # where they do not follow from cv
    sample: FixedProblem | None = None  # rows in memory, where the others are read in blocks
    lowered: bool = False  # whether a robust loss has changed the weights
    in_memory: ClassVar[bool] = True
    on_host: ClassVar[bool] = True

    @property
    def n_rows(self) -> int:
        """Rows there are."""
        return len(self.X)

    @property
    def content(self) -> Any:
        """The rows where they are hashed fastest."""
        return self.X

    def scale(self) -> float:
        """Return gamma="scale"."""
        return float(resolve_gamma("scale", self.X, self.weight))

    def objective(self, kernel: Any, Z: FloatArray, folds: Any, *rest: Any) -> Any:
        """Return what tuning minimises."""
        return FixedSizeObjective(
            kernel, self.X, self.Y, Z, folds, self.criterion(), self.weight, self.table, *rest
        )

    def n_distinct(self) -> int:
        """Return the number of rows that differ."""
        return n_distinct(self.content, False)

    def accumulate(
        self, kernel: Kernel, Z: FloatArray, *, budget: int, threads: int
    ) -> list[Moments]:
        """Return the moments of all rows, per class where there is a table."""
        layout = make_cells(None, len(self.X), self.table)
        Y = self.Y if self.table is None else np.zeros((len(self.X), 0))
        source = ArraySource(self.X, Y, self.weight, layout.order)
        return accumulate(kernel, source, Z, layout.cells, budget=budget, threads=threads)

    def budget(self, given: Any) -> int:
        """Return the memory budget in bytes."""
        return as_bytes(given)

    def selects_on(self, size: int) -> Any:
        """Return what computes the choice of ``size`` prototypes; None: NumPy."""
        return None

    def put(self, array: Any) -> Any:
        """Return an array where the work is done."""
        return array

    def map(self, kernel: Kernel, Z: FloatArray) -> NystromMap:
        """Return the Nystrom map of the prototypes."""
        return nystrom_map(kernel, Z)

    def evaluate(
        self, kernel: Kernel, X: FloatArray, Z: FloatArray, *model: FloatArray, **options: Any
    ) -> FloatArray:
        """Return K(X, Z) coef + intercept for the coefficients and intercepts of ``model``."""
        return evaluate_expansion(kernel, X, Z, *model, **options)

    def solve_robust(
        self,
        kernel: Kernel,
        Z: FloatArray,
        map: Any,
        C: float,
        loss: str,
        start: Any,
        j: int,
        *,
        budget: int,
        threads: int,
    ) -> tuple[FloatArray, FloatArray, int]:
        """Replace squared loss by another for output ``j``, from its least squares model."""
        y = self.Y[:, [j]]
        return solve_reweighted(
            kernel, self.X, y, Z, map, C, loss, start, self.weight, budget=budget, threads=threads
        )

    def tested(self, point: Any) -> Any:
        """Return the folds of the rows in memory at a point of the tuning."""
        return point.objective.folds

    def holds(self, keys: NDArray[np.uint64], seed: int) -> NDArray[np.bool_]:
        """Say which of some hashes of rows are among the rows."""
        return np.isin(keys, hash_rows(self.content, seed))

    @property
    def groups(self) -> list[IntArray]:
        """Columns that are trained on the same rows."""
        return [np.arange(self.Y.shape[1])] if self.table is None else self.table.groups()
