"""What a fit for tables is judged by: the loss of outputs for rows that were not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.fitting.problem import Problem
from lssvm.local.leaf import weighted_error


class Judge(Protocol):
    """How good outputs are, the smaller the better.

    Attributes
    ----------
    decides : bool
        Whether the loss chooses configurations and stacks; if not, squared errors do and the loss
        is only reported.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting import Judge, Problem, SquaredErrors
    >>> judge: Judge = SquaredErrors(Problem({}, np.ones((2, 1)), np.ones(2)))
    >>> judge.loss(np.zeros((1, 1)), np.array([1]))
    1.0
    """

    @property
    def decides(self) -> bool:
        """Whether the loss chooses."""

    def loss(self, outputs: FloatArray, rows: IntArray) -> float:
        """Return the loss of outputs (m, k) for some rows (m,) of a problem.

        Parameters
        ----------
        outputs : array of shape (m, k)
            Outputs for the rows.
        rows : int array of shape (m,)
            Numbers of the rows.
        """


@dataclass(frozen=True, eq=False)
class SquaredErrors:
    """The mean squared error, summed over outputs.

    Attributes
    ----------
    problem : Problem
        The rows that are judged.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting import Problem, SquaredErrors
    >>> problem = Problem({}, np.array([[1.0], [3.0]]), np.ones(2))
    >>> SquaredErrors(problem).loss(np.zeros((2, 1)), np.array([0, 1]))
    5.0
    """

    problem: Problem

    @property
    def decides(self) -> bool:
        """Squared errors choose anyway."""
        return False

    def loss(self, outputs: FloatArray, rows: IntArray) -> float:
        """Return the loss of outputs (m, k) for some rows (m,) of a problem."""
        return weighted_error(self.problem.Y[rows], outputs, self.problem.weight[rows])
