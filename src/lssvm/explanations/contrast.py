"""What is explained: rows against background rows, feature by feature or in groups of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class Contrast:
    """Rows, background rows, and which column every feature belongs to.

    Attributes
    ----------
    X : array of shape (n, d)
        Rows to explain.
    background : array of shape (B, d)
        What absent features are taken from.
    owner : int array of shape (d,)
        The column of every feature, 0 to p - 1: features of the same column, such as the levels of
        a category, are present or absent together.
    n_columns : int
        Number p of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.explanations import Contrast
    >>> rows = Contrast.of(np.ones((1, 3)), np.zeros((2, 3)))
    >>> rows.mixed(np.array([0]), np.array([1]), np.array([[True, False, True]]))
    array([[1., 0., 1.]])
    """

    X: FloatArray
    background: FloatArray
    owner: IntArray
    n_columns: int

    @classmethod
    def of(
        cls,
        X: FloatArray,
        background: FloatArray,
        owner: IntArray | None = None,
        n_columns: int | None = None,
    ) -> Contrast:
        """Return the rows with features on their own, or with those of an owner together.

        ``n_columns`` counts columns without features too; None: up to the last one that has some.
        """
        if X.ndim != 2 or background.ndim != 2 or X.shape[1] != background.shape[1]:
            raise InvalidInputError(
                f"Rows of shape {X.shape} and background rows of shape {background.shape} have no "
                "common features: give two tables of the same columns."
            )
        if not len(background):
            raise InvalidInputError("There is no background row: give at least one.")
        if owner is None:
            owner = np.arange(X.shape[1], dtype=np.intp)
        return cls(
            np.asarray(X, dtype=np.float64),
            np.asarray(background, dtype=np.float64),
            owner,
            int(owner.max(initial=-1)) + 1 if n_columns is None else n_columns,
        )

    def mixed(self, rows: IntArray, backgrounds: IntArray, present: BoolArray) -> FloatArray:
        """Return rows of which some columns are a background row's.

        Parameters
        ----------
        rows, backgrounds : int arrays of shape (N,)
        present : bool array of shape (N, p)
            Which columns are those of the row itself.

        Returns
        -------
        array of shape (N, d)
        """
        return np.where(present[:, self.owner], self.X[rows], self.background[backgrounds])

    def among(self, columns: IntArray) -> Contrast:
        """Return the same rows with columns numbered by their place among ``columns`` (sorted)."""
        owner = np.searchsorted(columns, self.owner)
        return Contrast(self.X, self.background, owner, len(columns))

    def summed(self, values: FloatArray) -> FloatArray:
        """Return values of features (..., d) summed over the features of every column, (..., p)."""
        out = np.zeros((*values.shape[:-1], self.n_columns))
        for feature, column in enumerate(self.owner):
            out[..., column] += values[..., feature]
        return out
