"""Thresholds of the fixed-size classifier, moved by cross-validation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.criteria.closed_form import is_criterion
from lssvm.criteria.threshold import best_threshold
from lssvm.estimators._validation import check_option

_NO_OUTPUTS = (
    "threshold='cv' needs the out-of-fold outputs of a cross-validated C or gamma: give C='cv' "
    "with scoring=None or a scorer, folds of several rows, calibration='auto' and no reduction, or "
    "threshold='zero'."
)


class ThresholdMixin:
    """Mixed into the classifier: ``threshold`` and ``threshold_``."""

    C: Any
    gamma: Any
    n_prototypes: Any
    scoring: Any
    reduction: Any
    calibration: Any
    threshold: str
    intercept_: FloatArray
    _sample: Any
    _class_table: Any
    _forget_fit: Any

    def _check_threshold(self) -> None:
        """Raise before the fit where it would not leave out-of-fold outputs."""
        check_option("threshold", self.threshold, ("zero", "cv"))
        tuned = "cv" in [v for v in (self.C, self.gamma, self.n_prototypes) if isinstance(v, str)]
        fits = self.reduction is None and self.calibration is not None
        if self.threshold == "cv" and not (tuned and fits and not is_criterion(self.scoring)):
            raise InvalidInputError(_NO_OUTPUTS)

    def _move_thresholds(self) -> None:
        """Choose the thresholds on out-of-fold outputs and take them off the intercepts."""
        sample = self._sample
        if sample is None or sample.held is None or sample.labels is None:
            self._forget_fit()
            raise InvalidInputError(_NO_OUTPUTS)
        table, weight = self._class_table(), sample.weight
        if table is not None:  # else the weights are in the rows
            weight = table.factors[sample.labels] * (1.0 if weight is None else weight)
        moved = [
            best_threshold(scores, targets, weight)
            for scores, targets in zip(sample.held.T, sample.Y.T, strict=True)
        ]
        self.threshold_ = np.array(moved)
        self._sample = replace(sample, held=sample.held - self.threshold_)
        self.intercept_ = self._moved(self.intercept_)

    def _moved(self, intercept: FloatArray) -> FloatArray:
        """Take the thresholds off the intercepts."""
        return np.asarray(intercept - self.threshold_)
