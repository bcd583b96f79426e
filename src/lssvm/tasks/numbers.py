"""The task of predicting numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.tasks.losses import AbsoluteError, Loss, ScorerLoss, SquaredError, Truth


@dataclass(frozen=True)
class Numbers:
    """Targets are numbers, one or several a row.

    Parameters
    ----------
    n_outputs : int
        Numbers a row, k.
    single : bool, default=True
        Whether y was one-dimensional, and predictions are to be.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tasks import Numbers
    >>> Numbers(1).predict(np.array([[2.0], [3.0]]))
    array([2., 3.])
    """

    n_outputs: int
    single: bool = True

    @property
    def classes(self) -> None:
        """There are none."""
        return None

    @property
    def per_class(self) -> bool:
        """Whether moments are summed class by class."""
        return False

    def groups(self) -> list[IntArray]:
        """Return the outputs that are trained on the same rows: all."""
        return [np.arange(self.n_outputs)]

    def loss(self, scoring: Any, loss: str = "squared", centre: FloatArray | None = None) -> Loss:
        """Return what tuning minimises; ``centre`` (k,) was taken off targets and outputs.

        Parameters
        ----------
        scoring : str, callable or None
            A scorer of scikit-learn; None: the mean error that ``loss`` names.
        loss : str, default="squared"
            What the model minimises: "squared" is judged by squares, all others by absolute errors.
        centre : array of shape (k,), optional
            What was taken off targets and outputs; by default nothing.
        """
        if scoring is None:
            return SquaredError() if loss == "squared" else AbsoluteError()
        return ScorerLoss(scoring, self if centre is None else _Centred(self, centre))

    def predict(self, raw: FloatArray) -> FloatArray:
        """Return predictions of shape (t,) or (t, k).

        Parameters
        ----------
        raw : array of shape (t, k)
            Outputs.
        """
        return raw[:, 0] if self.single else raw

    def scores(self, raw: FloatArray) -> FloatArray:
        """Return what a scorer may ask for beside predictions: the outputs.

        Parameters
        ----------
        raw : array of shape (t, k)
            Outputs.
        """
        return raw

    def truth_of(self, truth: Truth) -> FloatArray:
        """Return targets as scorers take them.

        Parameters
        ----------
        truth : Truth
            What is known of the rows.
        """
        return np.asarray(truth.Y[:, 0] if self.n_outputs == 1 else truth.Y)

    def check_outputs(self, Y: FloatArray) -> FloatArray:
        """Return targets of further rows, of shape (n, k).

        Parameters
        ----------
        Y : array of shape (n, k)
            Targets of the further rows.
        """
        if Y.shape[1] != self.n_outputs:
            raise InvalidInputError(
                f"y has {Y.shape[1]} outputs but the model was fitted with {self.n_outputs}: give "
                "as many."
            )
        return Y


@dataclass(frozen=True, eq=False)
class _Centred:
    """Numbers that a constant was taken off, as a scorer is to see them: with it."""

    task: Numbers
    centre: FloatArray
    classes: None = None

    def predict(self, raw: FloatArray) -> FloatArray:
        return self.task.predict(raw + self.centre)

    def scores(self, raw: FloatArray) -> FloatArray:
        return raw + self.centre

    def truth_of(self, truth: Truth) -> FloatArray:
        return self.task.truth_of(replace(truth, Y=truth.Y + self.centre))
