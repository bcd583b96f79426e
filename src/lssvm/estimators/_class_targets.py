"""Targets and weights that follow from the classes of a fixed-size classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.codes import Code
from lssvm.estimators._validation import class_weights
from lssvm.moments import Moments
from lssvm.moments.cells import ClassTable


class ClassTargets:
    """Mixed into `FixedSizeLSSVC`: ``targets`` and ``class_weight``."""

    targets: Any
    class_weight: Any
    classes_: NDArray[Any]
    code_: Code

    def _splits_classes(self) -> bool:
        """Say whether targets and weights follow from the class, also when rows are added."""
        return (
            not self.code_.shares_rows
            or (isinstance(self.targets, str) and self.targets == "fisher")
            or (isinstance(self.class_weight, str) and self.class_weight == "balanced")
        )

    def _table(self, labels: IntArray, counts: FloatArray) -> ClassTable:
        """Return targets and weight factors of the classes from their total weights."""
        everyone = np.arange(len(self.classes_))
        factors = class_weights(self.class_weight, self.classes_, everyone, counts)
        factors = np.ones(len(everyone)) if factors is None else factors
        if not np.all(factors > 0):
            raise InvalidInputError(
                "class_weight is zero for a whole class: give every class a positive weight, or "
                "remove its rows."
            )
        codes = self.code_.matrix.astype(np.float64)
        return ClassTable(labels, self._scale_targets(codes, counts * factors), factors)

    def _table_of(self, whole: list[Moments]) -> ClassTable:
        counts = np.array([part.weight for part in whole])
        if not np.all(counts > 0) or min(part.n for part in whole) < 1:
            raise InvalidInputError(
                "forget would leave a class without rows: keep at least one row of each class."
            )
        return self._table(np.empty(0, dtype=np.intp), counts)

    def _scale_targets(self, codes: FloatArray, counts: FloatArray) -> NDArray[np.float64]:
        """Turn the codes (n_classes, k) of -1, 0, +1 into targets."""
        if isinstance(self.targets, str) and self.targets == "label":
            return np.asarray(codes, dtype=np.float64)
        if isinstance(self.targets, str) and self.targets == "fisher":
            n_plus, n_minus = counts @ (codes > 0), counts @ (codes < 0)
            total = n_plus + n_minus  # [Suykens2002, section 3.4.2]: targets -N/N2, +N/N1
            return np.where(codes > 0, total / n_plus, np.where(codes < 0, -total / n_minus, 0.0))
        if isinstance(self.targets, (tuple, list)) and len(self.targets) == 2:
            t1, t2 = (float(t) for t in self.targets)
            if t1 > 0 and t2 > 0:
                return np.where(codes > 0, t1, np.where(codes < 0, -t2, 0.0))
        raise InvalidInputError(
            f"targets={self.targets!r} is not usable: choose 'label', 'fisher', or a pair (t1, t2) "
            "of positive numbers for the targets +t1 and -t2."
        )
