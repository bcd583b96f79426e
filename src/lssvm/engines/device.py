"""Rows on a device: a GPU of torch or CuPy, or any other array-API namespace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm._core.device import Device
from lssvm._core.errors import InvalidInputError
from lssvm._core.namespace import Array, to_numpy
from lssvm.engines.base import AnyFolds, Expansion, Rows
from lssvm.engines.device_blocks import DeviceBlocks, Named
from lssvm.engines.device_expansion import check_device_kernel, expand_on_device, use_outputs
from lssvm.engines.device_moments import accumulate_on_device
from lssvm.engines.host import HostRows, row_block
from lssvm.folds.content import Folds, count_observations, hash_rows
from lssvm.folds.positions import PositionFolds, PositionHoldout
from lssvm.kernels import Kernel
from lssvm.moments.cells import FoldMoments
from lssvm.solvers.pcg_rows import KernelProducts, RowBlock
from lssvm.tasks import Classes, RowLoss, Truth

SELECTED_ON_HOST = 2000
"""Prototypes up to which copies to and from a device take longer than their entropies on a host."""


@dataclass(frozen=True, eq=False)
class DeviceRows(Rows):
    """Rows that a device computes with: kept there where they fit, else copied in blocks.

    Parameters
    ----------
    host : HostRows
        Targets, weights and labels, and the features where they came from main memory.
    device : Device
    X : array or None, default=None
        The features, where they came on the device.
    """

    host: HostRows
    device: Device
    X: Array | None = None
    threads: int = 1

    @cached_property
    def blocks(self) -> DeviceBlocks:
        """The rows as blocks on the device."""
        host = self.host
        columns: dict[str, Any] = {"Y": host.Y, "weight": host.weight, "labels": host.labels}
        columns["loss_weight"] = host.truth.weight
        used = {name: column for name, column in columns.items() if column is not None}
        return DeviceBlocks(self.device, host.X if self.X is None else self.X, used)

    @property
    def n_rows(self) -> int:
        """Rows there are."""
        return self.host.n_rows

    @property
    def n_outputs(self) -> int:
        """Targets of a row, k."""
        return self.host.n_outputs

    @property
    def budget(self) -> int:
        """Bytes that may be used on the device."""
        free = self.device.free_bytes()
        return int(0.7 * free) if self.device.limit is None else free

    @property
    def content(self) -> Any:
        """The features, where they can be hashed fastest."""
        kept = self.blocks.kept if self.device.is_torch else None
        return self.host.X if kept is None else kept["X"]

    @property
    def sample(self) -> HostRows:
        """The rows in main memory."""
        return self.host

    @property
    def on_device(self) -> bool:
        """Another library than NumPy computes."""
        return True

    def check(self, loss: str, criterion: str | None) -> None:
        """Refuse other losses than the squares, and criteria without folds."""
        if loss != "squared" or criterion is not None:
            raise InvalidInputError(
                f"loss={loss!r} with scoring={criterion!r} is not available on a device: give "
                "loss='squared' and scoring=None or a scorer, or device=None."
            )

    def selector(self, size: int) -> Device | None:
        """Return the device for many prototypes: copies of few take longer than their entropies."""
        return self.device if size > SELECTED_ON_HOST else None

    def usable_folds(self, folds: PositionFolds | PositionHoldout) -> Folds:
        """Return the folds by position of these rows that can be trained on and tested."""
        return self.host.usable_folds(folds)

    def gamma_scale(self) -> float:
        """Return gamma="scale" of the rows."""
        return self.host.gamma_scale()

    def spread(self) -> float:
        """Return the sum of the variances of the features."""
        return self.host.spread()

    def n_observations(self) -> int:
        """Return the number of different rows, or of all where fewer than half are different."""
        return count_observations(self.content)

    def moments(
        self,
        kernel: Kernel,
        Z: FloatArray,
        folds: AnyFolds | None = None,
        task: Classes | None = None,
    ) -> FoldMoments:
        """Return the moments of every fold, on the device."""
        check_device_kernel(kernel)
        layout = self.host.layout(folds, task)
        k = self.n_outputs if task is None else 0
        cells = accumulate_on_device(
            kernel, self.blocks, Z, layout.order, layout.cells, n_targets=k
        )
        return FoldMoments(replace(layout, order=None), cells, task)

    def leaves_out(self, folds: AnyFolds) -> bool:
        """Refuse to leave out single rows."""
        if self.host.leaves_out(folds):
            raise InvalidInputError(
                "Leaving out single rows is not available on a device: give cv=10 or another "
                "number of folds of several rows, or device=None."
            )
        return False

    def sums(
        self, kernel: Kernel, Z: FloatArray, models: list[Expansion], folds: AnyFolds, loss: RowLoss
    ) -> FloatArray:
        """Return sums (c, v) of a loss over the test rows of each fold by that fold's models."""
        assert isinstance(folds, Folds)
        xp, sums = self.device.xp, []
        for model, rows in zip(models, folds.test, strict=True):
            total = np.zeros(int(model.coef.shape[0]))

            def use(outputs: Array, block: Named, total: FloatArray = total) -> None:
                outputs = xp.permute_dims(outputs, (1, 0, 2))
                truth = Truth(block["Y"], block.get("labels"), block.get("loss_weight"))
                values = loss.rows(outputs, truth)
                if truth.weight is not None:
                    values = xp.matmul(values, truth.weight[:, None])
                total += to_numpy(xp.sum(values, axis=1))

            blocks = self.blocks.in_order(np.sort(rows), ["Y", "labels", "loss_weight"])
            use_outputs(kernel, self.device, blocks, Z, *model, use)
            sums.append(total)
        return np.stack(sums, 1)

    def outputs(
        self, kernel: Kernel, Z: FloatArray, models: list[Expansion], folds: AnyFolds
    ) -> Iterator[tuple[FloatArray, Truth]]:
        """Yield, fold by fold, the outputs (c, t, k) of its models for its test rows."""
        assert isinstance(folds, Folds)
        for model, rows in zip(models, folds.test, strict=True):
            at = np.argsort(rows, kind="stable")
            out = np.empty((int(model.coef.shape[0]), len(rows), int(model.coef.shape[2])))
            done = 0

            def use(outputs: Array, block: Named, at: IntArray = at, out: FloatArray = out) -> None:
                nonlocal done
                some = at[done : done + int(outputs.shape[0])]
                out[:, some] = np.moveaxis(to_numpy(outputs), 1, 0)
                done += len(some)

            use_outputs(kernel, self.device, self.blocks.in_order(rows[at]), Z, *model, use)
            yield out, self.host.truth.take(rows)

    def outputs_at_once(self, n_models: int) -> int:
        """Return of how many models the outputs of all rows can be held at a time."""
        return self.host.outputs_at_once(n_models)

    def evaluate(
        self, kernel: Kernel, X: FloatArray, Z: FloatArray, coef: FloatArray, intercept: FloatArray
    ) -> FloatArray:
        """Return the outputs (t, k) of one model."""
        return expand_on_device(self.device, kernel, X, Z, coef, intercept)

    def products(
        self, kernel: Kernel, Z: FloatArray, task: Classes | None, *, keep: bool
    ) -> KernelProducts:
        """Return what conjugate gradients need of the rows."""
        check_device_kernel(kernel)
        return super().products(kernel, Z, task, keep=keep)

    def row_blocks(self, task: Classes | None) -> Iterator[RowBlock]:
        """Yield the rows as conjugate gradients take them, with the targets of classes."""
        table = self.host.table(task)
        if task is not None:
            table = replace(table, targets=self.put(table.targets), factors=self.put(table.factors))
        for block in self.blocks.in_order(None, ["Y", "weight", "labels"]):
            weight, labels = block.get("weight"), block.get("labels")
            yield row_block(block["X"], block["Y"], weight, labels, task, table)

    def reweighted(self, *args: Any, **options: Any) -> tuple[FloatArray, FloatArray, int]:
        """Refuse: weights of rows are computed on the host."""
        raise InvalidInputError(
            "Only loss='squared' is available on a device: give it, or device=None."
        )

    def put(self, array: Any) -> Array:
        """Return the numbers on the device."""
        return self.device.put(np.asarray(array, dtype=np.float64))

    def has_room(self, n_bytes: int) -> bool:
        """Return whether so much memory of the device is free."""
        return self.device.free_bytes() >= n_bytes

    def tested(self, folds: AnyFolds) -> Folds:
        """Return the folds themselves."""
        return self.host.tested(folds)

    def holds(self, keys: Any, seed: int) -> BoolArray:
        """Return which of some hashes of rows are among the rows."""
        return np.isin(keys, hash_rows(self.content, seed))
