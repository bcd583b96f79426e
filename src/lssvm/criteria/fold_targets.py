"""What problems are trained with, in every fold: their rows, targets and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.criteria.out_of_fold import Predictions
from lssvm.folds.content import Folds
from lssvm.tasks import Classes, ClassTable, Truth
from lssvm.tasks.weights import pick, times


@dataclass(frozen=True)
class Group:
    """Binary problems that are trained on the same rows and so share one factorisation.

    Attributes
    ----------
    columns : int array of shape (k,)
        Their columns among all problems.
    rows : int array or None
        The training rows they use; None for all.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import Group
    >>> Group(np.array([0, 1])).rows is None
    True
    """

    columns: IntArray
    rows: IntArray | None = None


@dataclass(frozen=True, eq=False)
class FoldTargets:
    """Targets and weights of classes that follow from the training rows of each fold.

    Parameters
    ----------
    tables : list of ClassTable
        The different ones.
    fold : int array of shape (v,)
        Which of them each fold has.
    labels : int array of shape (n,)
    sample_weight : array of shape (n,) or None
        Weights without those of classes.
    fisher, balanced : bool
        Whether targets, and whether weights, follow from how many rows the classes have.

    Notes
    -----
    What a model predicts is linear in its targets, and these are the indicators of the classes
    times a small table. So the indicators are solved for, once for all folds, and each fold's
    predictions are multiplied by its own table. Weights are not linear: folds whose class weights
    differ need factorisations of their own.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tasks import Classes
    >>> from lssvm.criteria.fold_targets import FoldTargets
    >>> from lssvm.tuning import Folds
    >>> task = Classes.of(np.arange(2), multiclass="auto", targets="fisher")
    >>> folds = Folds([np.array([2, 3]), np.array([0])])
    >>> targets = FoldTargets.of(task, np.array([0, 0, 1, 1, 1, 1]), None, folds)
    >>> [targets.tables[i].targets.ravel().tolist() for i in targets.fold]
    [[-2.0, 2.0], [-5.0, 1.25]]
    """

    tables: list[ClassTable]
    fold: IntArray
    labels: IntArray
    sample_weight: FloatArray | None
    fisher: bool
    balanced: bool

    @classmethod
    def of(
        cls, task: Classes, labels: IntArray, sample_weight: FloatArray | None, folds: Folds
    ) -> FoldTargets | None:
        """Return them for all folds; None where nothing depends on how many rows a class has."""
        if not (task.fisher or task.balanced):
            return None
        everyone, rows_of = task.counts(labels, sample_weight), task.counts(labels, None)
        all_counts = []
        for v, test in enumerate(folds.test):
            rows = test if folds.train is None else folds.train[v]
            counts = task.counts(labels[rows], pick(sample_weight, rows))
            if folds.train is None:
                left = rows_of > task.counts(labels[rows], None)
                counts = np.where(left, everyone - counts, 0.0)
            all_counts.append(counts)
        different, fold = np.unique(all_counts, axis=0, return_inverse=True)
        tables, fold = [task.table(counts) for counts in different], fold.ravel()
        return cls(tables, fold, labels, sample_weight, task.fisher, task.balanced)

    def root_weights(self) -> list[tuple[IntArray, FloatArray | None]]:
        """Return the folds that share their weights, and the roots (n,) of these."""
        same: dict[bytes, list[int]] = {}
        for v, i in enumerate(self.fold):
            same.setdefault(self.tables[i].factors.tobytes(), []).append(v)
        own = np.ones(len(self.labels)) if self.sample_weight is None else self.sample_weight
        return [
            (np.array(v), np.sqrt(own * self.tables[self.fold[v[0]]].factors[self.labels]))
            for v in same.values()
        ]

    def restricted(self, folds: IntArray, rows: IntArray, columns: IntArray) -> FoldTargets:
        """Return the same for some folds, rows and problems."""
        tables = [replace(table, targets=table.targets[:, columns]) for table in self.tables]
        labels, weight = self.labels[rows], pick(self.sample_weight, rows)
        own = replace(self, labels=labels, sample_weight=weight)
        return replace(own, tables=tables, fold=self.fold[folds])

    def indicators(self, groups: Sequence[Group]) -> tuple[FloatArray, list[Group]]:
        """Return targets (n, k') that are 1 for one class, and the groups of these columns."""
        blocks, coded, start = [], [], 0
        for group in groups:
            classes = self._classes(group)
            blocks.append(self.labels[:, None] == classes)
            coded.append(Group(np.arange(start, start + len(classes)), group.rows))
            start += len(classes)
        return np.concatenate(blocks, axis=1).astype(np.float64), coded

    def _classes(self, group: Group) -> IntArray:
        """Return the classes that take part in the problems of a group."""
        used = [table.targets[:, group.columns[0]] != 0 for table in self.tables]
        return np.flatnonzero(np.any(used, axis=0))

    def combine(
        self, out: Predictions, groups: Sequence[Group], coded: Sequence[Group]
    ) -> Predictions:
        """Return what is predicted of the targets, given what is predicted of the indicators."""
        k = self.tables[0].targets.shape[1]
        values = np.zeros((*out.values.shape[:2], k))
        table_of = np.repeat(self.fold, np.diff(out.starts))
        for i, table in enumerate(self.tables):
            places = np.flatnonzero(table_of == i)
            for group, code in zip(groups, coded, strict=True):
                part = table.targets[np.ix_(self._classes(group), group.columns)]
                with np.errstate(invalid="ignore"):  # what is not definite is infinite
                    product = out.values[:, places[:, None], code.columns] @ part
                values[:, places[:, None], group.columns] = product
        return Predictions(values, out.starts)

    def truth(self, folds: Folds) -> Truth:
        """Return targets and weights of the test rows as their folds have them, fold by fold."""
        rows = np.concatenate(folds.test)
        table_of = np.repeat(self.fold, [len(test) for test in folds.test])
        targets = np.stack([table.targets for table in self.tables])
        factors = np.stack([table.factors for table in self.tables])
        labels = self.labels[rows]
        own = pick(self.sample_weight, rows)
        weight = times(own, factors[table_of, labels] if np.any(factors != 1.0) else None)
        return Truth(targets[table_of, labels], labels, weight)
