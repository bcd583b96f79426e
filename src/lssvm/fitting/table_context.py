"""What stands around the numbers of a model for tables: raw columns before, answers behind."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.data.preparation import PreparedTable
from lssvm.fitting.configurations import Inputs
from lssvm.tasks import Classes, Numbers
from lssvm.uncertainty import Probabilities, Residuals


@dataclass(frozen=True, eq=False)
class TableContext:
    """From raw tables to the inputs of a `TableFit`, and from its outputs to answers.

    Attributes
    ----------
    prepared : dict from inputs to PreparedTable
        How raw columns become the inputs of every kind.
    texts : bool
        Whether the columns have names that are texts, as ``feature_names_in_`` takes them.
    task : Classes or Numbers
        What outputs mean.
    shift, scale : arrays of shape (k,)
        A target is scale * output + shift; 0 and 1 for classes.
    weight_scale : float
        Mean weight of the rows, by which weights were divided.
    seed : int
        What the preparation dealt its folds with.
    n_rows : int
        Rows that were fitted, equal ones together.
    importances : array of shape (n_columns,)
        Of the columns; they sum to one.
    best_score : float
        From rows that were left out.
    calibration : Probabilities, Residuals or None
        From held-out outputs to probabilities and sets, or to intervals.
    nearby : int
        Training rows near a row whose errors say how wide its interval is; 0: those of its part.

    Examples
    --------
    >>> from lssvm.fitting import TableContext
    >>> list(TableContext.__dataclass_fields__)[:3]
    ['prepared', 'texts', 'task']
    """

    prepared: dict[Inputs, PreparedTable]
    texts: bool
    task: Classes | Numbers
    shift: FloatArray
    scale: FloatArray
    weight_scale: float
    seed: int
    n_rows: int
    importances: FloatArray
    best_score: float = float("nan")
    calibration: Probabilities | Residuals | None = None
    nearby: int = 0

    @property
    def n_columns(self) -> int:
        """Number of raw columns."""
        return len(self.any_prepared.columns)

    @property
    def any_prepared(self) -> PreparedTable:
        """One of the preparations: all are of the same raw columns."""
        return next(iter(self.prepared.values()))

    def stripped(self, form: str) -> TableContext:
        """Return what a file of this form keeps: "support" has no sets and no intervals.

        Parameters
        ----------
        form : {"all", "prediction", "support"}
            All, what prediction and intervals need, or what prediction needs.
        """
        if form != "support":
            return self
        known, none = self.calibration, np.empty(0)
        if isinstance(known, Probabilities):
            return replace(self, calibration=replace(known, threshold=none, weight=none))
        return replace(self, calibration=None)
