"""What a method gets and what it gives back."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """The training part of one randomisation.

    Parameters
    ----------
    X, y
        Standardised inputs (n, d) and class codes (n,). The rows are in random order, so the first
        rows are a random subset.
    categorical
        Flags of the categorical attributes, shape (d,).
    fit_rows
        Kernel machines are trained on the first `fit_rows` rows.
    tuning_rows
        Parameters are cross-validated on the first `tuning_rows` rows.
    """

    X: Array
    y: NDArray[np.int64]
    categorical: NDArray[np.bool_]
    fit_rows: int
    tuning_rows: int


class Classifier(Protocol):
    """Anything that predicts class codes."""

    def predict(self, X: Array) -> Any:
        """Return the class codes of the rows of `X`."""


@dataclass(frozen=True)
class Trained:
    """A trained classifier and what there is to record about it."""

    model: Classifier
    record: dict[str, Any] = field(default_factory=dict)
