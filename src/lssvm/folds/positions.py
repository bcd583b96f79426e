"""Folds by the position of a row: for data that come in blocks, and for arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lssvm._core.arrays import IntArray
from lssvm._core.errors import InvalidInputError, not_usable
from lssvm._core.random import hash_positions


@dataclass(frozen=True)
class PositionFolds:
    """Rows are dealt to folds by a seeded hash of their position.

    Blocks, files and threads do not matter: a row is in the same fold however the data were cut.
    Other than folds by content, equal rows may come into different folds.

    Parameters
    ----------
    n_folds : int, default=10
        How many folds.
    seed : int, default=0
        Of the random numbers; the same seed gives the same result.

    Notes
    -----
    Folds differ in size by about the square root of it. What ``cv=10`` is for a `lssvm.Scan`; give
    it as ``cv`` to have the same folds of an array.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import PositionFolds
    >>> folds = PositionFolds(3)
    >>> folds.assign(np.arange(6))
    array([1, 0, 2, 2, 0, 2])
    >>> len(list(folds.split(np.zeros((6, 1)))))
    3
    """

    n_folds: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.n_folds, (int, np.integer)) or self.n_folds < 2:
            raise not_usable("n_folds", self.n_folds, "give at least 2.")

    @property
    def n_cells(self) -> int:
        """Number of parts that rows are assigned to."""
        return self.n_folds

    @property
    def n_test(self) -> int:
        """Number of parts, the first ones, that are left out in turn."""
        return self.n_folds

    def assign(self, positions: IntArray) -> IntArray:
        """Return the fold of each position."""
        return (hash_positions(positions, self.seed) % np.uint64(self.n_folds)).astype(np.intp)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_folds

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield training and test rows, as scikit-learn's splitters do."""
        fold = self.assign(np.arange(len(X)))
        for v in range(self.n_folds):
            yield np.flatnonzero(fold != v), np.flatnonzero(fold == v)


@dataclass(frozen=True)
class PositionHoldout:
    """A share of the rows, by a seeded hash of their position, is held out for validation.

    Parameters
    ----------
    share : float, default=0.25
        Between 0 and 1.
    seed : int, default=0
        Of the random numbers; the same seed gives the same result.

    Notes
    -----
    [DeBrabanter2010]_, algorithm 4, for data of which one validation set is enough. What
    ``cv=0.25`` is for a `lssvm.Scan`.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import PositionHoldout
    >>> (train, test), = PositionHoldout(0.25).split(np.zeros((1000, 1)))
    >>> len(test) / 1000
    0.247
    """

    share: float = 0.25
    seed: int = 0
    n_cells: ClassVar[int] = 2  # held out, and the rest
    n_test: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise InvalidInputError(
                f"A held-out share of {self.share!r} is not usable: give a number between 0 and 1."
            )

    def assign(self, positions: IntArray) -> IntArray:
        """Return 0 for the positions held out, 1 for the others."""
        limit = np.uint64(int(self.share * 2.0**53) << 11)
        return (hash_positions(positions, self.seed) >= limit).astype(np.intp)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return 1."""
        return 1

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield training and test rows, as scikit-learn's splitters do."""
        rest = self.assign(np.arange(len(X)))
        yield np.flatnonzero(rest == 1), np.flatnonzero(rest == 0)
