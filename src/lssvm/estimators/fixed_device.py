"""The fixed-size model on a device: the problem of a fit whose passes run there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.device import Device
from lssvm._core.errors import InvalidInputError
from lssvm._core.namespace import Array
from lssvm.criteria.fixed_device import DeviceObjective
from lssvm.engines.device_blocks import DeviceBlocks
from lssvm.engines.device_expansion import check_device_kernel, expand_on_device
from lssvm.engines.device_moments import accumulate_on_device
from lssvm.estimators._problem import FixedProblem
from lssvm.kernels import Kernel
from lssvm.moments import Moments, NystromMap, nystrom_map
from lssvm.moments.cells import make_cells
from lssvm.solvers import Rows

SELECTED_ON_HOST = 2000
"""Prototypes up to which copies to and from a device take longer than their entropies on a host."""


@dataclass
class DeviceProblem(FixedProblem):
    """A problem whose passes and systems are computed on a device.

    What depends on the content of single rows (folds, the draw of prototypes and of rows kept for
    calibration) uses the copy of the rows on the host.
    """

    on_host: ClassVar[bool] = False
    engine: Device = field(kw_only=True)
    on_device: Array | None = field(default=None, kw_only=True)  # the rows, where they came so

    @classmethod
    def of(cls, problem: FixedProblem, engine: Device, X: Array | None) -> DeviceProblem:
        """Return a problem as one on a device; ``X`` are all rows that were given."""
        if X is not None and problem.support is not None:
            X = engine.xp.take(X, engine.put(problem.support), axis=0)
        known = {f.name: getattr(problem, f.name) for f in fields(problem)}
        return cls(**known, engine=engine, on_device=X)

    @cached_property
    def rows(self) -> DeviceBlocks:
        """The rows on their way to the device."""
        columns = {"Y": self.Y, "weight": self.weight, "labels": self.labels}
        used = {name: column for name, column in columns.items() if column is not None}
        return DeviceBlocks(self.engine, self.X if self.on_device is None else self.on_device, used)

    @property
    def content(self) -> Any:
        """The rows on the device, where torch keeps them there."""
        kept = self.rows.kept if self.engine.is_torch else None
        return self.X if kept is None else kept["X"]

    def objective(self, kernel: Any, Z: FloatArray, folds: Any, *rest: Any) -> Any:
        """Return what tuning minimises."""
        C_grid, _, _, *method = rest
        return DeviceObjective(
            kernel,
            self.X,
            self.Y,
            Z,
            folds,
            self.criterion(),
            self.weight,
            self.table,
            C_grid,
            self.budget(0),
            1,
            *method,
            rows=self.rows,
        )

    def budget(self, given: Any) -> int:
        """Return the bytes that may be taken on the device."""
        free = self.engine.free_bytes()
        return int(0.7 * free) if self.engine.limit is None else free

    def accumulate(
        self, kernel: Kernel, Z: FloatArray, *, budget: int, threads: int
    ) -> list[Moments]:
        """Return the moments of all rows, per class where there is a table."""
        check_device_kernel(kernel)
        layout = make_cells(None, len(self.X), self.table)
        k = self.Y.shape[1] if self.table is None else 0
        return accumulate_on_device(kernel, self.rows, Z, layout.order, layout.cells, n_targets=k)

    def selects_on(self, size: int) -> Any:
        """Return the device where there is much to compute; few prototypes take NumPy less."""
        return self.engine if size > SELECTED_ON_HOST else None

    def put(self, array: Any) -> Any:
        """Return an array of numbers on the device, in float64."""
        return self.engine.put(np.asarray(array, dtype=np.float64))

    def map(self, kernel: Kernel, Z: FloatArray) -> NystromMap:
        """Return the Nystrom map on the device."""
        return nystrom_map(kernel, self.put(Z))

    def passes(self) -> Iterator[Rows]:
        """Begin a pass over all rows for conjugate gradients."""
        xp, table = self.engine.xp, self.table
        factors, targets = (None, None) if table is None else (table.factors, table.targets)
        for _, block in self.rows.blocks(None, [slice(0, self.n_rows)], [*self.rows.columns]):
            Y, weight = block["Y"], block.get("weight")
            if table is not None:
                labels = xp.astype(block["labels"], xp.int64)
                own = xp.take(self.put(factors), labels, axis=0)
                weight = own if weight is None else weight * own
                Y = xp.take(self.put(targets), labels, axis=0)
                if len(self.groups) > 1:
                    weight = weight[:, None] * xp.astype(Y != 0, Y.dtype)
            yield Rows(block["X"], Y, weight)

    def evaluate(
        self, kernel: Kernel, X: FloatArray, Z: FloatArray, *model: FloatArray, **options: Any
    ) -> FloatArray:
        """Return K(X, Z) coef + intercept for the coefficients and intercepts of ``model``."""
        return expand_on_device(self.engine, kernel, X, Z, *model)

    def solve_robust(self, *args: Any, **options: Any) -> Any:
        """Refuse losses other than the squared error."""
        raise InvalidInputError(
            "Only loss='squared' is available on a device: give it, or device=None."
        )
