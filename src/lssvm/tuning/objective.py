"""What an objective promises a search: losses of a path of C at one kernel parameter.

An objective is expensive per kernel parameter and cheap per value of C: :meth:`Objective.at` does
the data pass and the factorisation, :meth:`Point.losses` reads a whole path of C from it.

Then what objectives with folds share: out-of-fold predictions with the losses that are made of
them, and what problems are trained with in every fold (rows, targets and weights).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray, is_int, pick, times
from lssvm._core.errors import InvalidInputError
from lssvm.backends.rows import Rows
from lssvm.data.folds import (
    Folds,
    PositionHoldout,
    assign_folds,
    content_holdout,
    restrict_folds,
    splitter_folds,
)
from lssvm.tasks import Classes, ClassTable, Loss, RowLoss, ScorerLoss, SquaredError, Targets

POOL_ABOVE = 50
"""With more folds than this losses that are means over rows are pooled into one."""
SCORED_ROWS = 3
"""Scores of folds are averaged; all rows are one where a fold has fewer rows, or lacks a class
that the score needs."""


def pools(loss: Loss, sizes: IntArray, targets: Iterable[Targets] = ()) -> bool:
    """Return whether the rows of all folds are scored as one, instead of fold by fold."""
    if isinstance(loss, RowLoss):
        return len(sizes) > POOL_ABOVE
    few = bool(np.any((sizes > 0) & (sizes < SCORED_ROWS)))
    return few or (isinstance(loss, ScorerLoss) and not all(map(loss.defined, targets)))


@dataclass(frozen=True)
class Losses:
    """Cross-validated losses of a path of C at one kernel parameter; lower is better.

    Parameters
    ----------
    fold : ndarray of shape (c, v)
        Loss of each of c values of C on each of v folds. Use minus a score for a score.
    weight : ndarray of shape (v,)
        Non-negative weights of the folds that sum to one. A fold of weight zero is ignored, even
        where its loss is not a number.
    tie : ndarray of shape (c,)
        A smooth second loss (such as the mean squared error) that decides between equal means.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import Losses
    >>> losses = Losses(fold=np.array([[1.0, 3.0]]), weight=np.array([0.5, 0.5]), tie=np.zeros(1))
    >>> losses.mean, losses.std
    (array([2.]), array([1.]))
    """

    fold: FloatArray
    weight: FloatArray
    tie: FloatArray

    def __post_init__(self) -> None:
        for name in ("fold", "weight", "tie"):
            value = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, value)
        rows, folds = self.fold.shape if self.fold.ndim == 2 else (-1, -1)
        if self.weight.shape != (folds,) or self.tie.shape != (rows,):
            raise InvalidInputError(
                f"Losses got fold {self.fold.shape}, weight {self.weight.shape} and tie "
                f"{self.tie.shape}: give (c, v), (v,) and (c,)."
            )
        if np.any(self.weight < 0) or not np.isclose(self.weight.sum(), 1.0):
            raise InvalidInputError(
                f"Losses got fold weights {self.weight}: give non-negative weights that sum to 1."
            )

    @classmethod
    def single(cls, loss: FloatArray, tie: FloatArray | None = None) -> Losses:
        """Return losses (c,) of one fold; what has no finite tie loss has no finite loss.

        Parameters
        ----------
        loss : array of shape (c,)
            Loss of every candidate.
        tie : array of shape (c,), optional
            What decides between equal losses; by default the loss itself.
        """
        tie = loss if tie is None else tie
        finite = np.isfinite(tie)
        loss = np.where(finite, loss, np.inf)
        return cls(loss[:, None], np.ones(1), np.where(finite, tie, np.inf))

    @classmethod
    def joined(cls, pieces: Sequence[Losses]) -> Losses:
        """Return the losses of several stretches of a path of C.

        Parameters
        ----------
        pieces : sequence of Losses
            Stretch after stretch, of the same folds.
        """
        fold, tie = (np.concatenate([getattr(p, name) for p in pieces]) for name in ("fold", "tie"))
        return cls(fold, pieces[0].weight, tie)

    @property
    def mean(self) -> FloatArray:
        """Weighted mean over the folds, shape (c,), to 13 digits: beyond them, equals are equal."""
        # A plain sum, not a BLAS product: a row's mean must not depend on its neighbours.
        mean: FloatArray = (self._weighed * self.weight).sum(axis=1)
        size = np.where(np.isfinite(mean) & (mean != 0), np.abs(mean), 1.0)
        unit = 10.0 ** np.clip(12.0 - np.floor(np.log10(size)), -290.0, 290.0)
        rounded = np.round(mean * unit) / unit
        return np.where(np.isfinite(rounded), rounded, mean)

    @property
    def std(self) -> FloatArray:
        """Weighted standard deviation over the folds, shape (c,)."""
        with np.errstate(invalid="ignore", over="ignore"):  # an infinite loss has no deviation
            deviation = self._weighed - self.mean[:, None]
            std: FloatArray = np.sqrt((deviation**2 * self.weight).sum(axis=1))
        return std

    @property
    def _weighed(self) -> FloatArray:
        return np.where(self.weight > 0, self.fold, 0.0)


class Point(Protocol):
    """What was factorised at one kernel parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import Losses
    >>> class Bowl:
    ...     def losses(self, C):
    ...         loss = (np.log(C) - 1.0) ** 2
    ...         return Losses(loss[:, None], np.ones(1), loss)
    >>> Bowl().losses(np.array([1.0])).mean
    array([1.])
    """

    def losses(self, C: FloatArray) -> Losses:
        """Return the losses of the values ``C``, shape (c,), without another data pass.

        Parameters
        ----------
        C : array of shape (c,)
            Regularisation, one value for each candidate.
        """
        ...


class Objective(Protocol):
    """A criterion that a search minimises.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import Losses, PathSearch, Space
    >>> class Bowl:
    ...     def at(self, gamma):
    ...         self.gamma = gamma
    ...         return self
    ...
    ...     def losses(self, C):
    ...         loss = np.log(C) ** 2 + np.log(self.gamma) ** 2
    ...         return Losses(loss[:, None], np.ones(1), loss)
    >>> result = PathSearch().run(Bowl(), Space(gamma_start=3.0))
    >>> bool(result.loss < 0.05)
    True
    """

    def at(self, gamma: float | None) -> Point:
        """Do the expensive part at one kernel parameter; None where the kernel has none.

        Parameters
        ----------
        gamma : float or None
            Parameter of the kernel; None where it has none.
        """
        ...


@dataclass(frozen=True)
class Predictions:
    """Out-of-fold predictions of all folds, one fold after the other.

    Attributes
    ----------
    values : array of shape (c, t, k)
        c candidates, t rows of all folds, k outputs; what is not finite rules a candidate out.
    starts : int array of shape (v + 1,)
        Where each fold begins, and the end.
    """

    values: FloatArray
    starts: IntArray

    @classmethod
    def zeros(cls, folds: Folds, c: int, k: int) -> Predictions:
        """Return room for c candidates; zero is what a problem without training rows predicts."""
        starts = np.cumsum([0, *(len(rows) for rows in folds.test)])
        return cls(np.zeros((c, int(starts[-1]), k)), starts)

    def fold(self, v: int) -> FloatArray:
        """Return a view of the predictions of fold ``v``."""
        return self.values[:, self.starts[v] : self.starts[v + 1]]


@dataclass(frozen=True, eq=False)
class FoldScorer:
    """What out-of-fold predictions are compared with."""

    targets: Targets
    folds: Folds
    loss: Loss
    trained: Targets | None = None

    def losses_in_passes(
        self, predict: Callable[[FloatArray], Predictions], C: FloatArray, budget: int
    ) -> Losses:
        """Return the losses of a path of C; several passes if predictions would not fit."""
        n, k = self.targets.Y.shape
        at_once = max(1, int(0.1 * budget) // (8 * n * (4 * k + 4)))
        pieces = [
            self.losses(predict(np.asarray(C[i : i + at_once], dtype=float)))
            for i in range(0, len(C), at_once)
        ]
        return Losses.joined(pieces)

    def losses(self, out: Predictions) -> Losses:
        """Return the losses of predictions; the squared error decides between equals."""
        tests, loss, squares = self.folds.test, self.loss, SquaredError()
        definite = np.isfinite(out.values).all(axis=(1, 2))
        out.values[~definite] = 0.0
        sizes = np.array([len(rows) for rows in tests])
        if pools(loss, sizes, map(self.targets.take, tests)):
            known, trained = self._known(np.concatenate(tests), slice(None))
            losses, share = loss(out.values, known)[:, None], np.ones(1)
            tie = squares(out.values, trained)
        else:
            spans = [slice(*ends) for ends in zip(out.starts[:-1], out.starts[1:], strict=True)]
            all_targets = [self._known(rows, span) for rows, span in zip(tests, spans, strict=True)]
            parts = [out.values[:, span] for span in spans]
            both = list(zip(parts, all_targets, strict=True))
            losses = np.stack([loss(part, known) for part, (known, _) in both], 1)
            mass = np.array([_mass(known) for known, _ in all_targets])
            share = mass / mass.sum()
            tie = np.stack([squares(part, trained) for part, (_, trained) in both], 1) @ share
            if not isinstance(loss, RowLoss):
                share = np.full(len(tests), 1.0 / len(tests))
        finite = definite & np.isfinite(tie)
        losses[~finite] = np.inf
        return Losses(losses, share, np.where(finite, tie, np.inf))

    def _known(self, rows: IntArray, span: slice) -> tuple[Targets, Targets]:
        """Return what the loss and the squared error compare some rows with."""
        known = self.targets.take(rows)
        if self.trained is None:
            return known, known
        Y = self.trained.Y[span]
        return replace(known, Y=Y), Targets(Y, known.labels, pick(self.trained.weight, span))


def _mass(targets: Targets) -> float:
    return float(len(targets.Y) if targets.weight is None else targets.weight.sum())


@dataclass(frozen=True)
class Group:
    """Binary problems that are trained on the same rows and so share one factorisation.

    Attributes
    ----------
    columns : int array of shape (k,)
        Their columns among all problems.
    rows : int array or None
        The training rows they use; None for all.
    """

    columns: IntArray
    rows: IntArray | None = None


@dataclass(frozen=True, eq=False)
class FoldTargets:
    """Targets and weights of classes that follow from the training rows of each fold."""

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
        weight = np.ones(len(self.labels)) if self.sample_weight is None else self.sample_weight
        return [
            (np.array(v), np.sqrt(weight * self.tables[self.fold[v[0]]].factors[self.labels]))
            for v in same.values()
        ]

    def restricted(self, folds: IntArray, rows: IntArray, columns: IntArray) -> FoldTargets:
        """Return the same for some folds, rows and problems."""
        tables = [replace(table, targets=table.targets[:, columns]) for table in self.tables]
        labels, weight = self.labels[rows], pick(self.sample_weight, rows)
        part = replace(self, labels=labels, sample_weight=weight)
        return replace(part, tables=tables, fold=self.fold[folds])

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

    def targets(self, folds: Folds) -> Targets:
        """Return targets and weights of the test rows as their folds have them, fold by fold."""
        rows = np.concatenate(folds.test)
        table_of = np.repeat(self.fold, [len(test) for test in folds.test])
        targets = np.stack([table.targets for table in self.tables])
        factors = np.stack([table.factors for table in self.tables])
        labels = self.labels[rows]
        row_weight = pick(self.sample_weight, rows)
        weight = times(row_weight, factors[table_of, labels] if np.any(factors != 1.0) else None)
        return Targets(targets[table_of, labels], labels, weight)


SPECTRAL = ("aic", "bic", "cp", "evidence", "gcv", "rk")
"""The criteria that come from the spectrum alone."""


CRITERIA = (*SPECTRAL, "press")
"""What ``scoring`` may name besides scikit-learn's scorers."""


def is_criterion(scoring: Any) -> bool:
    """Say whether ``scoring`` names a criterion of this library."""
    return isinstance(scoring, str) and scoring in CRITERIA


def check_criterion(scoring: str, C: float | None) -> None:
    """Raise where a criterion cannot choose C."""
    if scoring == "rk" and C is None:
        raise InvalidInputError(
            "scoring='rk' cannot choose C: R(K) falls as C grows, for any kernel. Give a number "
            "for C, or use scoring='gcv', 'press' or 'evidence'."
        )


def make_folds(cv: Any, seed: int, rows: Rows, *, positions: bool = False) -> Folds:
    """Turn ``cv`` into folds of rows."""
    data: tuple[Any, Any] = (rows.X, None) if rows.caller_data is None else rows.caller_data
    n, numbers = data[0].shape[0], rows.row_numbers
    loo, share = isinstance(cv, str) and cv == "loo", isinstance(cv, (float, np.floating))
    if isinstance(cv, range):
        cv = PositionHoldout(rows=(cv.start, cv.stop))
    if is_int(cv) and cv < 2:
        raise InvalidInputError(f"cv={cv!r} is not usable: give at least 2 folds, or 'loo'.")
    if loo or is_int(cv) or (share and 0.0 < cv < 1.0):
        content = numbers[:, None] + 1.0 if positions else rows.content
        known = rows.observed() | {"seed": seed}
        if share:
            return content_holdout(content, float(cv), **known)
        if loo:
            return assign_folds(content, None, **known)
        return assign_folds(content, int(cv), **known)
    if not isinstance(cv, str) and (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        grouped = (*data, rows.groups) if rows.groups is not None else data
        splits = cv.split(*grouped) if hasattr(cv, "split") else cv
        folds = restrict_folds(splitter_folds(splits, n), numbers, n)
        if not any(len(test) < len(numbers) or folds.train for test in folds.test):
            raise InvalidInputError(
                "No split of cv has training and test rows of positive weight: give splits that "
                "have both."
            )
        return folds
    raise InvalidInputError(
        f"cv={cv!r} is not usable: give a number of folds, a share between 0 and 1 to hold out, "
        "'loo', a scikit-learn splitter, or an iterable of (train, test) indices."
    )
