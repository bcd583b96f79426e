"""One-vs-one on many rows: every pair of classes is a system of its own in every fold.

With k classes and v folds that is v k (k - 1) / 2 systems for each kernel parameter: 450 for ten
classes, 3,250 for 26. Two things are then enough: some of the folds, each of which still trains on
all other rows, and a search for the kernel parameter with few prototypes.
"""

from __future__ import annotations

import numpy as np

from lssvm.backends.host import AnyFolds
from lssvm.data.folds import Folds

MANY_SYSTEMS = 100
"""Systems of pairs and folds above which less is computed."""
TESTED_ROWS = 2_000
"""Rows in the folds that are left out, at least."""
TESTED_FOLDS = 2
"""Folds that are left out, at least."""
SEARCHED_PROTOTYPES = 200
"""Prototypes, the first of all, that the kernel parameter is searched with."""


SEARCHED_TOGETHER = 300
"""The same where all outputs share one system."""


def enough_folds(folds: AnyFolds, n_pairs: int) -> AnyFolds:
    """Return the folds that are left out: some of them where pairs and rows are many.

    Parameters
    ----------
    folds : Folds, PositionFolds or PositionHoldout
        Folds of positions, and those of a splitter, stay as they are.
    n_pairs : int
        Systems of each fold.

    Returns
    -------
    AnyFolds
        At least two folds with at least 2,000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting.fixed_pairs import enough_folds
    >>> from lssvm.tuning import Folds
    >>> ten = Folds(np.split(np.arange(8_000), 10))
    >>> len(enough_folds(ten, 45)), len(enough_folds(ten, 3))
    (3, 10)
    """
    if not isinstance(folds, Folds) or folds.train is not None:
        return folds
    if n_pairs * len(folds) <= MANY_SYSTEMS:
        return folds
    tested = np.cumsum([len(test) for test in folds.test])
    enough = max(TESTED_FOLDS, 1 + int(np.searchsorted(tested, TESTED_ROWS)))
    return Folds(folds.test[:enough])


def searched_prototypes(m: int, n_pairs: int) -> int:
    """Return with how many of m prototypes the kernel parameter is searched.

    A pass of n rows takes n m^2 operations: where there are many prototypes, few of them are enough
    to see about which width is best.

    Parameters
    ----------
    m : int
    n_pairs : int
        Systems of each fold; 1 where all outputs share one.

    Examples
    --------
    >>> from lssvm.fitting.fixed_pairs import searched_prototypes
    >>> searched_prototypes(428, 45), searched_prototypes(428, 3), searched_prototypes(250, 45)
    (200, 428, 250)
    >>> searched_prototypes(900, 1)
    300
    """
    few = SEARCHED_PROTOTYPES if n_pairs > 10 else SEARCHED_TOGETHER
    return few if m >= 2 * few else m
