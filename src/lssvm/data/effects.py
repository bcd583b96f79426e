"""Effects of levels in a linear mixed model of the target, learned from moments, out of fold.

The target is an intercept, a ridge regression on the features of the other columns, a random effect
for every level of every category with effects, and noise. In contrast to the mean targets of
levels, the effects repeat neither each other nor what the other features explain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.data.encodings import SMALLEST_SCALE, LevelWeights

RIDGE = 1e-3
"""Penalty on the coefficients of the other features, per row."""

MOST_FEATURES = 300
"""With more other features no effects are learned: O(n d^2) would be most of the time."""

MOST_COLUMNS = 30
"""No more columns than these, those with the most levels, have effects."""

MOST_TARGETS = 5
"""With more targets (classes but one) no effects are learned: they are too noisy."""

FOLDS = 3
"""Effects are learned in fewer folds than mean targets.

The indicators name the level of a row, and the effect of a level is the lower in a fold the higher
the targets of its own rows are: that is what a model could learn of rows that it leaves out, in
proportion to the number of folds times the number of levels.
"""

FIRST_RATIO = 10.0
"""The ratio of variances at which their estimation begins."""

RATIOS = (0.1, 1e6)
"""The smallest and the largest estimated ratio."""

STEPS = 12
"""Steps of the estimation of the variances."""

TOLERANCE = 1e-11
"""Relative residual of the equations."""


@dataclass(frozen=True, eq=False)
class MixedMoments:
    """Sums over rows that a mixed model is fitted to.

    Attributes
    ----------
    fixed : array of shape (d + 1, d + 1)
        F'WF; F has a column of ones and the d other features.
    mixed : array of shape (levels, d + 1)
        D'WF; D has an indicator for every level of every column.
    levels : sparse array of shape (levels, levels)
        D'WD: the weight of the rows in which two levels occur together.
    counts : array of shape (levels,)
        The weight of every level.
    cross : array of shape (d + 1 + levels, k)
        [F D]'WY.
    squares : array of shape (k,)
        The diagonal of Y'WY.
    """

    fixed: FloatArray
    mixed: FloatArray
    levels: csr_array
    counts: FloatArray
    cross: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, F: FloatArray, D: csr_array, weight: FloatArray, Y: FloatArray) -> MixedMoments:
        """Add up rows: O(n (d^2 + d J + J^2 + k (d + J))) time for J columns of levels."""
        W, Dt = weight[:, None], D.T.tocsr()
        WD = csr_array(
            (D.data * np.repeat(weight, np.diff(D.indptr)), D.indices, D.indptr), D.shape
        )
        return cls(
            F.T @ (W * F),
            Dt @ (W * F),
            Dt @ WD,
            Dt @ weight,
            np.vstack([F.T @ (W * Y), Dt @ (W * Y)]),
            (W * Y**2).sum(axis=0),
        )

    def __sub__(self, other: MixedMoments) -> MixedMoments:
        """Take away rows."""
        counts = self.counts - other.counts
        counts[counts < 1e-9 * self.counts] = 0.0  # what rounding has left
        return MixedMoments(
            self.fixed - other.fixed,
            self.mixed - other.mixed,
            self.levels - other.levels,
            counts,
            self.cross - other.cross,
            self.squares - other.squares,
        )

    def solve(self, ratios: FloatArray, start: FloatArray) -> FloatArray:
        """Solve the mixed model equations [Henderson1975] for given variances.

        Parameters
        ----------
        ratios : array of shape (levels, k)
            The variance of the noise divided by that of the effects.
        start : array of shape (d + 1 + levels, k)
            An approximation.

        Returns
        -------
        array of shape (d + 1 + levels, k)
            Intercept, coefficients of the features, effects of the levels.

        Notes
        -----
        Conjugate gradients, preconditioned by the block of the features and by the diagonal of the
        levels: O(k (d^2 + d levels + pairs of levels that occur together)) time for each iteration.
        """
        d = len(self.fixed)
        F = self.fixed + RIDGE * self.fixed[0, 0] * np.diag(np.arange(d) > 0)
        factor, diagonal = cho_factor(F), self.counts[:, None] + ratios

        def product(V: FloatArray) -> FloatArray:
            b, u = V[:d], V[d:]
            below = self.mixed @ b + self.levels @ u + ratios * u
            return np.vstack([F @ b + self.mixed.T @ u, below])

        def preconditioned(V: FloatArray) -> FloatArray:
            return np.vstack([cho_solve(factor, V[:d]), V[d:] / diagonal])

        X = start.copy()
        R = self.cross - product(X)
        direction = preconditioned(R)
        size = (R * direction).sum(axis=0)
        limit = TOLERANCE * np.linalg.norm(self.cross, axis=0)
        for _ in range(len(X)):
            if np.all(np.linalg.norm(R, axis=0) <= limit):
                break
            image = product(direction)
            curvature = (direction * image).sum(axis=0)
            step = size / np.where(curvature > 0, curvature, np.inf)
            X += step * direction
            R -= step * image
            Z = preconditioned(R)
            before, size = size, (R * Z).sum(axis=0)
            direction = Z + size / np.where(before > 0, before, np.inf) * direction
        return X

    def effects(self, begin: IntArray) -> FloatArray:
        """Return the scaled effects of all levels.

        Parameters
        ----------
        begin : int array of shape (J,)
            The first level of every column.

        Returns
        -------
        array of shape (levels, k)
            0 for a level without weight. The scale of a column is the deviation of its effects over
            the rows, but at least a tenth of the target's own: what explains nothing stays small.

        Notes
        -----
        Restricted maximum likelihood by fixed-point iteration [MacKay1992]: the variance of the
        effects is their sum of squares divided by their degrees of freedom, the sum of
        W / (W + ratio), in which every level counts by itself.
        """
        total, d = self.fixed[0, 0], len(self.fixed)
        if total <= 0:
            return np.zeros((len(self.counts), len(self.squares)))
        counts = self.counts[:, None]
        column = np.repeat(np.arange(len(begin)), np.diff(begin, append=len(counts)))
        ratios = np.full((len(begin), len(self.squares)), FIRST_RATIO)
        solution = self.solve(ratios[column], np.zeros_like(self.cross))
        for _ in range(STEPS):
            noise = np.maximum(self.squares - (solution * self.cross).sum(axis=0), 0.0) / total
            freedom = np.add.reduceat(counts / (counts + ratios[column]), begin)
            squares = np.add.reduceat(solution[d:] ** 2, begin)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.clip(np.nan_to_num(noise * freedom / squares, nan=RATIOS[1]), *RATIOS)
            solution = self.solve(ratios[column], solution)
        effects = np.where(counts > 0, solution[d:], 0.0)
        spread = np.add.reduceat(counts * effects**2, begin) / total
        around = self.squares / total - (self.cross[0] / total) ** 2
        scale = np.sqrt(np.maximum(spread, SMALLEST_SCALE**2 * np.maximum(around, 0.0)))
        return effects / np.where(scale > 0, scale, 1.0)[column]


def learn_effects(
    columns: list[LevelWeights],
    features: FloatArray,
    weight: FloatArray,
    targets: FloatArray,
    fold: IntArray,
) -> tuple[list[FloatArray], FloatArray]:
    """Return the effects of the levels of every column, and those of the rows out of fold.

    Parameters
    ----------
    columns : list of LevelWeights
        J categories.
    features : array of shape (n, d)
        Those of the other columns.
    weight : array of shape (n,)
    targets : array of shape (n, k)
    fold : int array of shape (n,)
        Joined to `FOLDS`.

    Returns
    -------
    learned : list of arrays of shape (levels + 1, k)
        The last level stands for missing values.
    held_out : array of shape (J, n, k)
        The effects of the levels of every row in a model of the other folds: the moments of all
        rows less those of its own fold.
    """
    begin = np.cumsum([0, *(len(column.weight) for column in columns)])
    codes = np.column_stack([c.codes + b for c, b in zip(columns, begin[:-1], strict=True)])
    n = len(features)
    ends = np.arange(n + 1) * len(columns)
    D = csr_array((np.ones(codes.size), codes.ravel(), ends), shape=(n, begin[-1]))
    F = np.column_stack([np.ones(n), features])
    largest = float(np.max(np.abs(targets)))
    Y = targets / 2.0 ** np.floor(np.log2(largest or 1.0))  # no square overflows
    total = MixedMoments.of(F, D, weight, Y)
    held_out = np.empty((len(columns), *targets.shape))
    fold = fold % FOLDS
    for f in np.unique(fold):
        rows = np.flatnonzero(fold == f)
        others = total - MixedMoments.of(F[rows], D[rows], weight[rows], Y[rows])
        held_out[:, rows] = others.effects(begin[:-1])[codes[rows].T]
    return np.split(total.effects(begin[:-1]), begin[1:-1]), held_out
