"""What a recipe for tables learns from, and how its rows are drawn and assigned to folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lssvm._core.arrays import AnyArray, FloatArray, IntArray
from lssvm._core.blocks import run_stream
from lssvm._core.random import hash_positions, rank_hashes
from lssvm.data.dataset import Dataset
from lssvm.data.folds import (
    are_observations,
    fold_numbers,
    hash_rows,
    observation_weight,
)
from lssvm.data.preparation import Learned
from lssvm.data.sampling import draw_rows
from lssvm.fitting.record import Scaling
from lssvm.kernels import Metric
from lssvm.kernels.metric import IDENTITY
from lssvm.local import Rows


@dataclass(frozen=True, eq=False)
class Problem:
    """Numbers to learn from.

    Attributes
    ----------
    inputs : mapping from "standardised", "quantiles" to arrays of shape (n, d)
        The rows, prepared in each way.
    Y : array of shape (n, k)
        Targets: -1 and 1 for every class, or centred numbers of variance 1.
    weight : array of shape (n,)
        Weights of the rows.
    labels : int array of shape (n,) or None
        Rows of one label are left out together.
    classes : int array of shape (n,) or None
        Class numbers, so that samples are stratified.
    scored : array of shape (n,) or None
        Weights that scores are taken with; None: ``weight``. Weights of classes are not in it.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting import Problem
    >>> Problem({"standardised": np.ones((4, 1))}, np.ones((4, 1)), np.ones(4)).n
    4
    """

    inputs: Mapping[Scaling, FloatArray]
    Y: FloatArray
    weight: FloatArray
    labels: IntArray | None = None
    classes: IntArray | None = None
    scored: FloatArray | None = None

    @property
    def score_weight(self) -> FloatArray:
        """Weights of the rows in scores, shape (n,)."""
        return self.weight if self.scored is None else self.scored

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.Y)

    def rows(
        self, scaling: Scaling, metric: Metric = IDENTITY, chosen: IntArray | None = None
    ) -> Rows:
        """Return (some of) the rows mapped by a metric.

        Parameters
        ----------
        scaling : {"standardised", "quantiles"}
            Of the inputs.
        metric : Metric, default=IDENTITY
            That they are mapped by.
        chosen : int array of shape (m,), optional
            Numbers of the rows; by default all.
        """
        at: Any = slice(None) if chosen is None else chosen
        labels = None if self.labels is None else self.labels[at]
        X = metric.apply(self.inputs[scaling][at])
        return Rows(X, self.Y[at], self.weight[at], labels)

    def sample(self, size: int, random: np.random.Generator) -> IntArray:
        """Return sorted numbers of some rows, classes in proportion.

        Parameters
        ----------
        size : int
            How many rows.
        random : Generator
        """
        keys = hash_positions(np.arange(self.n), int(random.integers(2**63)))
        return draw_rows(keys, size, self.classes)

    def folds(self, n_folds: int, random: np.random.Generator) -> IntArray:
        """Return the fold of every row: classes in proportion, what belongs together shares one.

        Parameters
        ----------
        n_folds : int
            How many folds, at most.
        random : Generator
        """
        together = self.rows(next(iter(self.inputs))).together()
        keys = hash_positions(together, int(random.integers(2**63)))
        return fold_numbers(keys, n_folds, self.classes)[0].astype(np.intp)

    def divided(self, by: float) -> Problem:
        """Return the problem with its weights divided by a number.

        Parameters
        ----------
        by : float
            Larger than 0.
        """
        scored = None if self.scored is None else self.scored / by
        return replace(self, weight=self.weight / by, scored=scored)

    def merged(self) -> Problem:
        """Return the problem with copies of a row as one row of their weight, in a fixed order.

        So a weight of 2 is the row twice, and the order of the rows changes nothing. Copies have
        equal inputs and targets. Observations of a few categories (`are_observations`) stay.
        """
        inputs = row_numbers(np.column_stack(list(self.inputs.values())))
        place = row_numbers(np.column_stack([inputs[:, None], self.Y]))
        if self.labels is not None:  # equal rows of several groups
            pairs = place * (self.labels.max() + 1) + self.labels
            place = np.unique(pairs, return_inverse=True)[1].ravel()
        first = np.unique(place, return_index=True)[1]
        counted = observation_weight(self.n, self.weight, self.classes)[0]
        if are_observations(inputs, self.Y, self.weight, counted):
            order = np.argsort(place, kind="stable").astype(np.intp)
            return subset(self, order)
        weight = np.asarray(np.bincount(place, self.weight), dtype=np.float64)
        scored = None if self.scored is None else np.bincount(place, self.scored).astype(np.float64)
        return replace(subset(self, first.astype(np.intp)), weight=weight, scored=scored)


@dataclass(frozen=True, eq=False)
class TableBlock:
    """Some of all rows, prepared.

    Attributes
    ----------
    inputs : mapping from scalings to arrays of shape (n, d)
    Y : array of shape (n, k)
    weight : array of shape (n,)
    start : int
        Position of the first row.
    """

    inputs: Mapping[Scaling, FloatArray]
    Y: FloatArray
    weight: FloatArray
    start: int


Encode = Callable[[AnyArray, FloatArray], tuple[FloatArray, FloatArray]]
"""From targets and weights to (Y, weight)."""


@dataclass(frozen=True, eq=False)
class AllRows:
    """All rows of a table of very many, prepared block by block.

    Attributes
    ----------
    data : Dataset
    encode : callable
        From targets and weights to (Y, weight).
    sample : int array of shape (m,)
        Positions of the rows that everything else is chosen by, ascending.
    budget, threads : int
        Bytes of memory and threads that may be used.
    learned : mapping from scalings to Learned
        How the columns are prepared.
    scale : float
        What weights are divided by.
    """

    data: Dataset
    encode: Encode
    sample: IntArray
    budget: int
    threads: int
    learned: Mapping[Scaling, Learned] = field(default_factory=dict)
    scale: float = 1.0

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.data.n_rows

    def blocks(self, scalings: Sequence[Scaling]) -> Iterator[TableBlock]:
        """Yield all rows in order with the scalings that are asked for."""

        def work(block: Any) -> TableBlock:
            at = np.arange(block.start, block.start + len(block))
            X = {name: self.learned[name].transform(block, at) for name in scalings}
            weight = np.ones(len(block)) if block.weight is None else block.weight
            assert block.target is not None
            Y, weight = self.encode(block.target, weight)
            return TableBlock(X, Y, weight / self.scale, block.start)

        return run_stream(work, self.data.blocks(), self.threads)


def subset(problem: Problem, rows: IntArray) -> Problem:
    """Return the problem of some rows."""
    return Problem(
        {name: X[rows] for name, X in problem.inputs.items()},
        problem.Y[rows],
        problem.weight[rows],
        None if problem.labels is None else problem.labels[rows],
        None if problem.classes is None else problem.classes[rows],
        None if problem.scored is None else problem.scored[rows],
    )


def row_numbers(table: FloatArray) -> IntArray:
    """Return a number for every row (n,): equal rows share it, others are in a fixed order.

    Neither order nor units of the columns change that order.
    """
    _, first, number = np.unique(hash_rows(table), return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.intp)
    place[np.argsort(rank_hashes(table[first]), kind="stable")] = np.arange(len(first))
    return place[number.ravel()]
