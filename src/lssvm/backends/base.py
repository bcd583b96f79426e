"""Who computes: the few products that every model needs of a machine, on arrays.

A backend knows nothing of estimators, files or clusters. `lssvm.backends.host.Host` computes on
threads of this machine, `lssvm.backends.device.Torch` on a device of torch (or of another library
of the array-API standard); both have the same verbs and return the same numbers. A scan, or rows on
a cluster, are data whose ``reduce`` runs the host's verbs where the blocks are
(`lssvm.backends.rows.ScanRows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from lssvm._core.arrays import Array, FloatArray, IntArray, get_namespace, take_rows
from lssvm._core.device import Device
from lssvm.data.folds import Folds, PositionFolds, PositionHoldout
from lssvm.kernels import Kernel
from lssvm.moments import Moments
from lssvm.moments.moments import Cells
from lssvm.solvers.pcg import RowBlock

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


class Backend(Protocol):
    """A machine that computes with rows: `Host` or `Torch`."""

    @property
    def threads(self) -> int:
        """Threads of the host that may be used."""

    @property
    def device(self) -> Device | None:
        """The device that computes; None: the host."""

    @property
    def budget(self) -> int:
        """Bytes that may be used where it computes."""

    def has_room(self, n_bytes: int) -> bool:
        """Return whether so much more may be kept there."""

    def check(
        self,
        loss: str = "squared",
        criterion: str | None = None,
        *,
        kernel: Kernel | None = None,
        leaves_out: bool = False,
    ) -> None:
        """Raise for a loss, criterion or kernel, or single rows left out, that it cannot do."""

    def put(self, array: Any) -> Array:
        """Return an array of NumPy where the computations are."""

    def load(self, X: Any, columns: dict[str, Any]) -> Any:
        """Return rows as the verbs below take them, kept where they are computed if they fit."""

    def content(self, data: Any) -> Array | None:
        """Return loaded features that are hashed faster than those in main memory, if any."""

    def moments(
        self, kernel: Kernel, data: Any, Z: FloatArray, layout: Cells, n_targets: int
    ) -> list[Moments]:
        """Return the moments of the cells of loaded rows, in one pass."""

    def outputs(
        self, kernel: Kernel, X: Any, Z: FloatArray, coef: FloatArray, intercept: FloatArray
    ) -> FloatArray:
        """Return K(X, Z) coef + intercept (n, k) as an array of NumPy."""

    def fold_outputs(
        self,
        data: Any,
        held_out: FoldModels,
        columns: tuple[str, ...],
        use: Callable[[int, IntArray, Array, Named], Result],
    ) -> Iterator[tuple[int, Result]]:
        """Yield (v, what ``use`` returns) for blocks of the test rows of every fold v.

        ``use(v, at, outputs, block)`` gets places among the fold's test rows, outputs (c, b, k) of
        its models, and the named columns.
        """

    def row_blocks(self, data: Any, columns: tuple[str, ...]) -> Iterator[Named]:
        """Yield all rows in their order, with those of the named columns that there are."""


def row_block(X: Any, Y: Any, weight: Any, labels: Any, task: Any, table: Any) -> RowBlock:
    """Return rows as conjugate gradients take them, with the targets and weights of classes."""
    if task is None:
        return RowBlock(X, Y, weight)
    factor, Y = take_rows(table.factors, labels), take_rows(table.targets, labels)
    weight = factor if weight is None else weight * factor
    if len(task.groups()) > 1:
        weight = weight[:, None] * get_namespace(Y).astype(Y != 0, Y.dtype)
    return RowBlock(X, Y, weight)
