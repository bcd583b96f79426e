"""How folds and classes become the cells of one pass, and cells become training sets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import run_blocks
from lssvm.data.folds import Folds
from lssvm.moments.moments import Moments, total
from lssvm.moments.nystrom import NystromMap
from lssvm.tasks import Classes


def assemble(
    task: Classes, parts: Sequence[Moments], columns: IntArray, counts: FloatArray
) -> Moments:
    """Return the moments of some binary problems from those of the classes.

    Parameters
    ----------
    task : Classes
    parts : list of Moments
        One per class, without targets.
    columns : int array
        Problems that are trained on the same classes.
    counts : array of shape (n_classes,)
        Weight of the classes in the training rows, from which targets and class weights follow.

    Returns
    -------
    Moments
    """
    table = task.table(counts)
    used = np.flatnonzero(task.code.matrix[:, columns[0]]).tolist()
    return total(parts[c].scaled(float(table.factors[c]), table.targets[c, columns]) for c in used)


@dataclass(frozen=True, eq=False)
class Cells:
    """Which rows a pass reads in which order, and what its cells are.

    Attributes
    ----------
    order : int array or None
        Rows in the order of the pass, cell after cell. None: in their own order, as those of a
        stream.
    cells : list of slice
    test : list of list of int
        Cells of each fold's test rows, one per class.
    train : list of list of int or None
        The same for training rows where a splitter gave them; None: all but the test rows.
    whole : list of list of int
        Per class, the cells that make up all rows.
    """

    order: IntArray | None
    cells: list[slice]
    test: list[list[int]]
    train: list[list[int]] | None
    whole: list[list[int]]


def make_cells(
    folds: Folds | None, n: int, labels: IntArray | None = None, n_classes: int = 0
) -> Cells:
    """Cut the rows into cells: folds, and classes within folds where labels are given.

    Parameters
    ----------
    folds : Folds or None
        None: one cell per class.
    n : int
        Rows.
    labels : int array of shape (n,) or None, default=None
        Class numbers; None: classes are not kept apart.
    n_classes : int, default=0

    Returns
    -------
    Cells

    Notes
    -----
    Folds that do not overlap are read once, with what is left over (the training rows of a holdout)
    as one more cell. Folds that overlap, or training sets that are not the complement of their test
    sets, are cells of their own and are read as often as they come.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments.cells import make_cells
    >>> from lssvm.tuning import Folds
    >>> make_cells(Folds([np.array([2, 0]), np.array([1])]), 3).cells
    [slice(0, 2, None), slice(2, 3, None)]
    """
    if folds is None and labels is None:
        return Cells(None, [slice(0, n)], [], None, [[0]])
    parts: list[IntArray] = []

    def add(rows: IntArray) -> list[int]:
        rows = rows if np.all(rows[1:] > rows[:-1]) else np.sort(rows)  # memory is read forwards
        pieces = [rows]
        if labels is not None:
            pieces = [rows[labels[rows] == c] for c in range(n_classes)]
        parts.extend(pieces)
        return list(range(len(parts) - len(pieces), len(parts)))

    test = [] if folds is None else [add(rows) for rows in folds.test]
    train = None
    if folds is not None and folds.train is not None:
        train = [add(rows) for rows in folds.train]
    if train is not None:
        whole = []
    elif (rest := _left_over(folds, n)) is None:
        whole = [[cell] for cell in add(np.arange(n))]
    else:
        once = [*test, add(rest)] if len(rest) or not test else test
        whole = [list(column) for column in zip(*once, strict=True)]
    stops = np.cumsum([0, *map(len, parts)]).tolist()
    cells = [slice(start, stop) for start, stop in itertools.pairwise(stops)]
    return Cells(np.concatenate(parts), cells, test, train, whole)


def stream_cells(n_parts: int, n_test: int, n_classes: int) -> Cells:
    """Return the layout of a stream: cell number = part * n_classes + class.

    Parameters
    ----------
    n_parts : int
        Parts that rows are dealt to.
    n_test : int
        How many of them, the first ones, are left out in turn.
    n_classes : int
        1 where classes are not kept apart.

    Examples
    --------
    >>> from lssvm.moments.cells import stream_cells
    >>> layout = stream_cells(3, 3, 2)
    >>> layout.test, layout.whole
    ([[0, 1], [2, 3], [4, 5]], [[0, 2, 4], [1, 3, 5]])
    """
    number = np.arange(n_parts * n_classes).reshape(n_parts, n_classes)
    return Cells(None, [], number[:n_test].tolist(), None, number.T.tolist())


def _left_over(folds: Folds | None, n: int) -> IntArray | None:
    """Return the rows that are in no fold; None where a row is in several."""
    seen = np.zeros(n, dtype=bool)
    count = 0
    for rows in [] if folds is None else folds.test:
        seen[rows] = True
        count += len(rows)
    if np.count_nonzero(seen) < count:
        return None
    small: Any = np.int32 if n < 2**31 else np.intp
    return np.flatnonzero(~seen).astype(small) if count < n else np.empty(0, dtype=small)


@dataclass(frozen=True, eq=False)
class FoldMoments:
    """The moments of every fold, and what is left for training without it.

    Targets and weights that depend on how many rows a class has follow the training rows of each
    fold, as they would if the model were fitted to those rows alone.

    Attributes
    ----------
    layout : Cells
    cells : list of Moments
    task : Classes or None
        What problems are assembled by, where the cells are those of classes.
    """

    layout: Cells
    cells: list[Moments]
    task: Classes | None = None

    @classmethod
    def without_folds(cls, whole: list[Moments], task: Classes | None) -> FoldMoments:
        """Return the moments of all rows (per class where there is a task), of no folds."""
        everyone = [[i] for i in range(len(whole))]
        return cls(Cells(np.empty(0, dtype=np.intp), [], [], None, everyone), whole, task)

    def with_whole(self, whole: list[Moments]) -> FoldMoments:
        """Return the same with the moments of all rows, where the cells do not make them up."""
        added = [[len(self.cells) + i] for i in range(len(whole))]
        return replace(self, layout=replace(self.layout, whole=added), cells=[*self.cells, *whole])

    def on_host(self) -> FoldMoments:
        """Return the same as NumPy arrays, where they are on a device."""
        return replace(self, cells=[cell.on_host() for cell in self.cells])

    @cached_property
    def whole(self) -> list[Moments]:
        """Per class, the moments of all rows."""
        return [total(self.cells[i] for i in members) for members in self.layout.whole]

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.layout.test)

    def groups(self, k: int) -> list[IntArray]:
        """Return the columns that share their training rows."""
        return [np.arange(k)] if self.task is None else self.task.groups()

    def training(self, v: int | None, columns: IntArray) -> Moments:
        """Return the moments of the training rows of a fold (None: all rows)."""
        if v is None:
            return self._join(self.whole, columns, None)
        if self.layout.train is not None:
            return self._join([self.cells[i] for i in self.layout.train[v]], columns, v)
        left = self._join(self.whole, columns, v)  # [DeBrabanter2010, eqs. (20) and (21)]
        return left - self.testing(v, columns)

    def testing(self, v: int, columns: IntArray) -> Moments:
        """Return the moments of the test rows of a fold that belong to these problems."""
        return self._join([self.cells[i] for i in self.layout.test[v]], columns, v)

    def is_tested(self, columns: IntArray) -> bool:
        """Return whether any fold has test rows of these problems."""
        used = [0] if self.task is None else np.flatnonzero(self.task.code.matrix[:, columns[0]])
        return any(self.cells[members[c]].weight > 0 for members in self.layout.test for c in used)

    def test_weight(self) -> FloatArray:
        """Return the weights of the folds' test rows, class weights included, shape (v,)."""
        factors = np.ones(1) if self.task is None else self.task.table(self._counts(None)).factors
        weights = [[self.cells[i].weight for i in members] for members in self.layout.test]
        return np.asarray(np.reshape(weights, (-1, len(factors))) @ factors, dtype=np.float64)

    def test_rows(self) -> IntArray:
        """Return the numbers of the folds' test rows, shape (v,)."""
        counts = [sum(self.cells[i].n for i in members) for members in self.layout.test]
        return np.array(counts, dtype=np.intp)

    def _counts(self, v: int | None) -> FloatArray:
        """Return the weight of each class in the training rows of a fold."""
        if v is not None and self.layout.train is not None:
            return np.array([self.cells[i].weight for i in self.layout.train[v]])
        counts = np.array([part.weight for part in self.whole])
        if v is not None:
            counts = counts - np.array([self.cells[i].weight for i in self.layout.test[v]])
            pairs = zip(self.whole, self.layout.test[v], strict=True)
            counts = np.where([whole.n > self.cells[i].n for whole, i in pairs], counts, 0.0)
        return counts

    def _join(self, parts: list[Moments], columns: IntArray, v: int | None) -> Moments:
        if self.task is None:
            return parts[0]
        return assemble(self.task, parts, columns, self._counts(v))

    def mapped(self, map: NystromMap, threads: int) -> FoldMoments:
        """Return the same for the features of a Nystrom map: 3 m^3 operations per cell."""

        def work(cell: Moments) -> Moments:
            return cell.mapped(map.whiten(cell.gram), map.T)

        return replace(self, cells=run_blocks(work, self.cells, threads))

    def prefix(self, size: int) -> FoldMoments:
        """Return the same for the first ``size`` prototypes."""
        return replace(self, cells=[cell.prefix(size) for cell in self.cells])
