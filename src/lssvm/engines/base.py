"""What a recipe may ask of rows, wherever they are and whoever computes.

The engines are values behind these verbs: `HostRows` (arrays in memory), `DeviceRows` (a GPU, or
any array-API namespace) and `ScanRows` (blocks of a file, or sums of the scans of a cluster's
workers). They give the same numbers; nothing else asks where rows are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

from lssvm._core.arrays import BoolArray, FloatArray
from lssvm._core.device import Device
from lssvm._core.namespace import Array
from lssvm.folds.content import Folds
from lssvm.folds.positions import PositionFolds, PositionHoldout
from lssvm.kernels import Kernel, evaluate_expansion
from lssvm.moments import Moments, NystromMap, nystrom_map
from lssvm.moments.cells import FoldMoments
from lssvm.solvers.pcg import KernelProducts, RowBlock
from lssvm.tasks import Classes, RowLoss, Truth

AnyFolds: TypeAlias = Folds | PositionFolds | PositionHoldout


class Expansion(NamedTuple):
    """Models of one kernel: coefficients (c, m, k) and intercepts (c, k)."""

    coef: Array
    intercept: Array


class Rows(Protocol):
    """Training rows of one task; what is written out here holds for arrays of NumPy."""

    @property
    def threads(self) -> int:
        """Threads that may be used."""

    @property
    def n_rows(self) -> int:
        """Rows there are."""

    @property
    def n_outputs(self) -> int:
        """Targets of a row, k."""

    @property
    def budget(self) -> int:
        """Bytes that may be used where the computations are."""

    @property
    def sample(self) -> Any:
        """Rows in main memory (`HostRows`): all of them, or some."""

    @property
    def rereads(self) -> bool:
        """Whether another pass over the rows costs no more than its computations."""
        return True

    @property
    def on_device(self) -> bool:
        """Whether arrays other than NumPy's are computed with."""
        return False

    def check(self, loss: str, criterion: str | None) -> None:
        """Refuse a loss, or a criterion without folds, that is not available for these rows."""
        return None

    def selector(self, size: int) -> Device | None:
        """Return the device that so many prototypes are worth selecting on; None: the host."""
        return None

    def usable_folds(self, folds: PositionFolds | PositionHoldout) -> AnyFolds:
        """Return folds by position as the other verbs take them."""

    def gamma_scale(self) -> float:
        """Return gamma="scale" of all rows."""

    def spread(self) -> float:
        """Return the sum of the variances of the features: the mean diagonal of a linear kernel."""

    def n_observations(self) -> int:
        """Return the number of different rows, or of all where fewer than half are different."""

    def moments(
        self, kernel: Kernel, Z: FloatArray, folds: AnyFolds | None, task: Classes | None
    ) -> FoldMoments:
        """Return the moments of every fold, per class where a task puts them together."""

    def leaves_out(self, folds: AnyFolds) -> bool:
        """Return whether folds are left out in closed form rather than by moments."""
        return False

    def leave_out(
        self,
        kernel: Kernel,
        Z: FloatArray,
        folds: AnyFolds,
        moments: Moments,
        map: NystromMap,
        C: FloatArray,
        targets: FloatArray | None,
        weight: FloatArray | None,
    ) -> FloatArray:
        """Return predictions (c, n, k) for rows by models without their fold."""
        raise AssertionError("asked of rows whose folds are not left out in closed form")

    def sums(
        self, kernel: Kernel, Z: FloatArray, models: list[Expansion], folds: AnyFolds, loss: RowLoss
    ) -> FloatArray:
        """Return sums (c, v) of a loss over the test rows of each fold by that fold's models."""

    def outputs(
        self, kernel: Kernel, Z: FloatArray, models: list[Expansion], folds: AnyFolds
    ) -> Iterator[tuple[FloatArray, Truth]]:
        """Yield, fold by fold, the outputs (c, t, k) of its models for its test rows."""

    def outputs_at_once(self, n_models: int) -> int:
        """Return of how many models the outputs of all rows can be held at a time."""

    def evaluate(
        self, kernel: Kernel, X: FloatArray, Z: FloatArray, coef: FloatArray, intercept: FloatArray
    ) -> FloatArray:
        """Return the outputs (t, k) of one model for some rows in main memory."""
        limits = {"budget": self.budget, "threads": self.threads}
        return evaluate_expansion(kernel, X, Z, coef, intercept, **limits)

    def row_blocks(self, task: Classes | None) -> Iterator[RowBlock]:
        """Yield the rows as conjugate gradients take them, with the targets of classes."""

    def products(
        self, kernel: Kernel, Z: FloatArray, task: Classes | None, *, keep: bool
    ) -> KernelProducts:
        """Return what conjugate gradients need of the rows."""
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
        """Minimise another loss than the squares for one output; also return the steps."""

    def map(self, kernel: Kernel, Z: FloatArray) -> NystromMap:
        """Return the Nystrom map of prototypes, computed where the rows are."""
        return nystrom_map(kernel, self.put(Z))

    def put(self, array: Any) -> Array:
        """Return an array where the computations are."""
        return array

    def has_room(self, n_bytes: int) -> bool:
        """Return whether so much may be kept where the computations are."""
        return True

    def tested(self, folds: AnyFolds) -> Folds:
        """Return the folds of the rows of the sample."""

    def holds(self, keys: Any, seed: int) -> BoolArray:
        """Return which of some hashes of rows are among the rows."""
