r"""Rows with equal inputs merged into one: an exact model of the distinct rows is the same model.

With :math:`S_g` the sum of the precisions :math:`p_i = C s_i` of the rows of a distinct input g and
:math:`\bar y_g` the mean of their targets, weighted by these, the model of the distinct rows with
the noise :math:`1 / S_g` has the same outputs, and the coefficients of the rows are
:math:`\alpha_i = p_i (y_i - \bar y_g) + (p_i / S_g) \alpha_g`. The diagonal of P that gives
leave-one-out outputs (see `lssvm.solvers.exact`) is
:math:`P_{ii} = p_i (1 - p_i / S_g) + (p_i / S_g)^2 P_{gg}`. Systems of G distinct rows take
:math:`(G / n)^3` of the time: tables of a few categories have few of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import slices
from lssvm.data.folds import are_observations, observation_weight
from lssvm.solvers.exact import ALONE, ExactFit, Repeats
from lssvm.solvers.logistic import MAX_LOG_ODDS, linearised, smoothed_targets

_MIN_ROWS = 100  # below which there is no time to be saved
_SUMMED = 2**17  # numbers that are summed at a time: they fit into the cache
_WORTH = 0.9  # share of distinct rows up to which they are merged


@dataclass(frozen=True, eq=False)
class EqualRows:
    """Which rows have equal inputs.

    Attributes
    ----------
    first : int array of shape (G,)
        The first row of every distinct one.
    place : int array of shape (n,)
        Which distinct row each row is.
    alone : bool
        Whether equal rows are observations, which are left out one by one, and not copies, which
        are left out together (see `lssvm.data.folds.are_observations`).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local.distinct import EqualRows
    >>> found = EqualRows.among(np.array([[1.0], [2.0], [1.0]]), np.ones((3, 1)))
    >>> found.place, found.repeats().members
    (array([0, 1, 0]), (array([0, 2]),))
    """

    first: IntArray
    place: IntArray
    alone: bool

    @classmethod
    def among(cls, X: FloatArray, Y: FloatArray, weight: FloatArray | None = None) -> Self:
        """Return the equal rows of X (n, d) with targets Y (n, k)."""
        # A sum of products modulo 2^64: equal rows have equal sums, and few others do.
        factors = np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64)
        sums = np.empty(len(X), dtype=np.uint64)
        for part in slices(len(X), max(1, _SUMMED // max(X.shape[1], 1))):
            flat = np.ascontiguousarray(X[part] + 0.0)  # -0 is 0
            bits = flat.view(f"u{flat.dtype.itemsize}").astype(np.uint64, copy=False)
            sums[part] = bits @ factors
        ordered = np.sort(sums)
        if (ordered[1:] != ordered[:-1]).all():  # in much less time than the places take
            every = np.arange(len(X), dtype=np.intp)
            return cls(every, every, alone=False)
        _, first, place = np.unique(sums, return_index=True, return_inverse=True)
        if len(first) < len(X) and (X[first[place]] != X).any():
            flat = np.ascontiguousarray(X + 0.0)
            keys = flat.view(np.dtype((np.void, flat.dtype.itemsize * X.shape[1]))).ravel()
            _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        n_observations = observation_weight(len(X), weight)[0]
        alone = len(first) < len(X) and are_observations(sums, Y, weight, n_observations)
        return cls(first, place.ravel(), alone)

    def repeats(self) -> Repeats:
        """Return which rows are left out together."""
        together = not self.alone and len(self.first) < len(self.place)
        return Repeats.of(self.place) if together else ALONE


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The distinct rows of some rows, with what an exact model of all of them needs.

    Attributes
    ----------
    X : array of shape (G, d)
    Y : array of shape (G, k)
        Mean targets.
    weight : array of shape (G,)
        Sums of weights.
    equal : EqualRows

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local.distinct import DistinctRows, EqualRows
    >>> X, y = np.repeat([[0.0], [1.0]], 60, axis=0), np.arange(120.0)[:, None]
    >>> found = DistinctRows.of(X, y, np.ones(120), EqualRows.among(X, y))
    >>> found.Y.ravel(), found.weight, found.equal.alone
    (array([29.5, 89.5]), array([60., 60.]), True)
    """

    X: FloatArray
    Y: FloatArray
    weight: FloatArray
    equal: EqualRows

    @classmethod
    def of(cls, X: FloatArray, Y: FloatArray, weight: FloatArray, equal: EqualRows) -> Self | None:
        """Return the distinct rows, or None where merging saves little."""
        if len(X) < _MIN_ROWS or len(equal.first) > _WORTH * len(X):
            return None
        total = np.bincount(equal.place, weight)
        means = _sums(equal.place, weight[:, None] * Y) / total[:, None]
        return cls(X[equal.first], means, total, equal)

    def gathered(self, fit: ExactFit) -> ExactFit:
        """Return a model of all rows as one of the distinct rows."""
        return ExactFit(_sums(self.equal.place, fit.coef), fit.intercept, fit.left_out[:0])

    def expanded(
        self, fit: ExactFit, precision: FloatArray, targets: FloatArray, means: FloatArray
    ) -> ExactFit:
        """Return the model with coefficients and leave-one-out outputs of all rows.

        Parameters
        ----------
        fit : ExactFit
            Of the distinct rows; where it has no leave-one-out outputs, neither has the result.
        precision : array of shape (n,)
            The inverse noise of the rows.
        targets : array of shape (n, k)
        means : array of shape (G, k)
            Means of the targets, weighted by the precision.
        """
        place = self.equal.place
        share = precision / np.bincount(place, precision)[place]
        coef = precision[:, None] * (targets - means[place]) + share[:, None] * fit.coef[place]
        left_out = fit.left_out
        if len(left_out) and self.equal.alone:
            diagonal = precision * (1.0 - share) + share**2 * fit.diagonal[place]
            left_out = targets - coef / diagonal[:, None]
        elif len(left_out):
            left_out = left_out[place]
        return ExactFit(coef, fit.intercept, left_out)

    def expanded_log_odds(
        self, fit: ExactFit, outputs: FloatArray, C: float, Y: FloatArray, weight: FloatArray
    ) -> ExactFit:
        """Return `expanded` for a model of log-odds, by the LS-SVM of its last Newton step.

        Parameters
        ----------
        fit : ExactFit
            Of the distinct rows.
        outputs : array of shape (G,)
            Its log-odds.
        C : float
        Y : array of shape (n, 1)
            -1 and 1.
        weight : array of shape (n,)
        """
        target = smoothed_targets(Y[:, 0], weight)
        z, noise = linearised(outputs[self.equal.place], target, C * weight)
        target = smoothed_targets(self.Y[:, 0], self.weight)
        means, _ = linearised(outputs, target, C * self.weight)
        whole = self.expanded(fit, 1.0 / noise, z[:, None], means[:, None])
        return replace(whole, left_out=np.clip(whole.left_out, -MAX_LOG_ODDS, MAX_LOG_ODDS))


def _sums(place: IntArray, values: FloatArray) -> FloatArray:
    return np.column_stack([np.bincount(place, column) for column in values.T])
