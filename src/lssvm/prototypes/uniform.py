"""Prototypes drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

from lssvm.prototypes.selection import Selection, Task


@dataclass(frozen=True)
class Uniform:
    """Draw distinct rows at random, with the sample weights as probabilities.

    Notes
    -----
    The baseline of [DeBrabanter2010, table 1]. With labels every class gets its share of the
    prototypes by weight, at least one. The order is the order of the draw, classes interleaved: a
    prefix is such a draw of fewer rows. Time O(n), memory O(n) at most.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.prototypes import Uniform, select_prototypes
    >>> X = np.arange(10.0).reshape(-1, 1)
    >>> y = np.array([0] * 8 + [1] * 2)
    >>> chosen = select_prototypes(X, 5, Uniform(), y=y, random_state=0)
    >>> np.bincount(y[chosen.indices]).tolist()
    [4, 1]
    """

    def select(self, task: Task) -> Selection:
        """Select prototypes, see `select_prototypes`."""
        return Selection(task.draw())
