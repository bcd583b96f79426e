"""An exact dual model of the rows of one leaf, and the local search for its C and gamma."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal, Self, TypeAlias

import numpy as np
from scipy.special import expit, log_expit

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import slices
from lssvm._core.errors import NotPositiveDefiniteError
from lssvm.data.folds import are_observations, observation_weight
from lssvm.kernels.base import evaluate_expansion
from lssvm.kernels.radial import KERNEL_OF, Distance, distances, fill_distances
from lssvm.solvers import ExactFit, solve_exact
from lssvm.solvers.exact import ALONE, Repeats, refine_exact
from lssvm.solvers.logistic import MAX_LOG_ODDS, linearised, smoothed_targets, solve_logistic

_MIN_GAIN = 1e-3  # share of the error by which a step of the search has to lower it
_ENTRIES = 2**20  # distances in a block
_ROWS = 128  # of a block of a triangle
_SINGLE_MIN_ROWS = 200  # below which single precision saves no time
_CONDITION = 2e6  # up to which single precision gives leave-one-out outputs to three digits
_LOGISTIC_CONDITION = 1e5  # the same of log-odds, of C times the sum of the curvatures of rows
_BUDGET = 2**28  # bytes of kernel values at most while outputs are computed
_NOTHING = np.empty(0)
_MERGED_MIN_ROWS = 100  # below which merging equal rows saves no time
_MERGED = 0.9  # share of distinct rows up to which they are merged
_SUMMED = 2**17  # numbers that are summed at a time: they fit into the cache


LeafLoss: TypeAlias = Literal["squared", "logistic"]


@dataclass(frozen=True)
class Setting:
    """The hyperparameters of a leaf: K = exp(-gamma distance), 1/2 w'w + C/2 sum s e^2.

    Attributes
    ----------
    C, gamma : float
        Regularisation, and the inverse width of the kernel.
    loss : {"squared", "logistic"}, default="squared"
        Loss of a row. "logistic" is for two classes, and outputs are then log-odds:
        1/2 w'w + C sum s log(1 + exp(-y f)).

    Examples
    --------
    >>> from lssvm.local import Setting
    >>> Setting(1.0, 0.5).times(4.0, 0.5)
    Setting(C=4.0, gamma=0.25, loss='squared')
    """

    C: float
    gamma: float
    loss: LeafLoss = "squared"

    def times(self, C: float, gamma: float) -> Setting:
        """Return the setting with both multiplied.

        Parameters
        ----------
        C, gamma : float
            Factors.
        """
        return replace(self, C=self.C * C, gamma=self.gamma * gamma)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with targets, ready for an exact model.

    Attributes
    ----------
    X : array of shape (n, d)
        Inputs mapped by the metric, in float64, or in float32 where there are very many rows;
        computations are in float64.
    Y : array of shape (n, k)
        Targets.
    weight : array of shape (n,)
        Weights of the rows, larger than 0.
    labels : array of shape (n,) or None
        Rows of the same label are left out together; None: equal rows are.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import Rows
    >>> Rows(np.zeros((3, 1)), np.ones((3, 1)), np.ones(3)).take(np.array([0, 2])).X.shape
    (2, 1)
    """

    X: FloatArray
    Y: FloatArray
    weight: FloatArray
    labels: IntArray | None = None

    def take(self, rows: IntArray) -> Rows:
        """Return some of the rows.

        Parameters
        ----------
        rows : int array of shape (m,)
            Which rows.
        """
        labels = None if self.labels is None else self.labels[rows]
        return Rows(self.X[rows], self.Y[rows], self.weight[rows], labels)

    def joined(self, other: Rows) -> Rows:
        """Return these rows followed by the others, with labels if both have them.

        Parameters
        ----------
        other : Rows
            With the same features and outputs.
        """
        labels = None
        if self.labels is not None and other.labels is not None:
            labels = np.concatenate([self.labels, other.labels])
        return Rows(
            np.vstack([self.X, other.X.astype(self.X.dtype)]),
            np.vstack([self.Y, other.Y]),
            np.concatenate([self.weight, other.weight]),
            labels,
        )

    def repeats(self) -> Repeats:
        """Return which rows are left out together."""
        if self.labels is not None:
            return Repeats.of(self.labels)
        return EqualRows.among(self.X, self.Y, self.weight).repeats()

    def together(self) -> IntArray:
        """Return a number for every row (n,), the same for rows that are left out together."""
        numbers = np.arange(len(self.X), dtype=np.intp)
        for group in self.repeats().members:
            numbers[group] = group[0]
        return numbers


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
    >>> from lssvm.local.leaf import EqualRows
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
        # Sums of products modulo 2^64: equal rows have equal ones. So have some others, such as
        # rows of -1 and 1, whose bits differ in one place only.
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
        place, count = place.ravel(), observation_weight(len(X), weight)[0]
        alone = len(first) < len(X) and are_observations(place, Y, weight, count)
        return cls(first, place, alone)

    def repeats(self) -> Repeats:
        """Return which rows are left out together."""
        together = not self.alone and len(self.first) < len(self.place)
        return Repeats.of(self.place) if together else ALONE


@dataclass(frozen=True, eq=False)
class MergedRows:
    r"""The distinct rows of some rows: an exact model of them is one of all rows.

    With :math:`S_g` the sum of the precisions :math:`p_i = C s_i` of the rows of a distinct input g
    and :math:`\bar y_g` the mean of their targets, weighted by these, the model of the distinct
    rows with the noise :math:`1 / S_g` has the same outputs, and the coefficients of the rows are
    :math:`\alpha_i = p_i (y_i - \bar y_g) + (p_i / S_g) \alpha_g`. The diagonal of P that gives
    leave-one-out outputs (see `lssvm.solvers.exact`) is
    :math:`P_{ii} = p_i (1 - p_i / S_g) + (p_i / S_g)^2 P_{gg}`. Systems of G distinct rows take
    :math:`(G / n)^3` of the time: tables of a few categories have few of them.

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
    >>> from lssvm.local.leaf import MergedRows, EqualRows
    >>> X, y = np.repeat([[0.0], [1.0]], 60, axis=0), np.arange(120.0)[:, None]
    >>> found = MergedRows.of(X, y, np.ones(120), EqualRows.among(X, y))
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
        if len(X) < _MERGED_MIN_ROWS or len(equal.first) > _MERGED * len(X):
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

        Its leave-one-out outputs are right to first order, as those of `solve_logistic` are.

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


@dataclass(frozen=True, eq=False)
class Leaf:
    """The exact model of a leaf.

    Attributes
    ----------
    rows : Rows
        The training rows of the leaf.
    setting : Setting
        C, gamma and loss.
    fit : ExactFit
        Coefficients, and leave-one-out outputs.
    error : float
        Mean squared error of its leave-one-out outputs, summed over outputs; their log loss where
        the loss is logistic.
    kept : array of shape (n, k) or (0, k), optional
        Squared leave-one-out errors of the rows, in a stripped leaf that keeps them.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import Rows, Setting, fit_leaf
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> leaf = fit_leaf(Rows(X, np.sin(X), np.ones(60)), "sqeuclidean", Setting(10.0, 0.5))
    >>> bool(leaf.error < 1e-2), leaf.outputs(X[:2], "sqeuclidean").shape
    (True, (2, 1))
    """

    rows: Rows
    setting: Setting
    fit: ExactFit
    error: float
    kept: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def squares(self) -> FloatArray:
        """Squared leave-one-out errors of its rows, shape (n, k); empty if they are not known."""
        if len(self.fit.left_out):
            return np.asarray((self.rows.Y - self.fit.left_out) ** 2)
        return self.kept

    def nearby_error(
        self, X: FloatArray | None, distance: Distance, counts: int | Sequence[int]
    ) -> FloatArray:
        """Return mean squared leave-one-out errors of the nearest rows, shape (n, k) or (c, n, k).

        Parameters
        ----------
        X : array of shape (n, d) or None
            Mapped rows; None for the rows of the leaf, each without itself.
        distance : {"sqeuclidean", "euclidean", "cityblock"}
            What the kernel is a function of.
        counts : int or sequence of c ints
            Rows that are averaged, in addition to one row of the leaf's mean error.
        """
        squares = self.squares
        n = len(squares)
        new = self.rows.X if X is None else X
        together = self.rows.together() if X is None else np.empty(0, dtype=np.intp)
        tried = [min(c, n) for c in ([counts] if isinstance(counts, int) else counts)]
        mean = squares.mean(axis=0)
        out = np.empty((len(tried), len(new), squares.shape[1]))
        for block in slices(len(new), max(1, _ENTRIES // n)):
            D = distances(new[block], self.rows.X, distance)
            if X is None:  # neither the row nor what is left out with it
                D[together[block][:, None] == together] = np.inf
            near = np.argpartition(D, max(tried) - 1, axis=1)[:, : max(tried)]
            close = np.take_along_axis(D, near, axis=1)
            if len(tried) > 1:
                order = np.argpartition(close, [c - 1 for c in tried], axis=1)
                near, close = (np.take_along_axis(one, order, axis=1) for one in (near, close))
            known = np.isfinite(close)[:, :, None]
            errors = squares[near] * known
            for A, count in zip(out, tried, strict=True):
                A[block] = errors[:, :count].sum(axis=1) + mean
                A[block] /= known[:, :count].sum(axis=1) + 1.0
        return out[0] if isinstance(counts, int) else out

    def outputs(self, X: FloatArray, distance: Distance, pairs: int | None = None) -> FloatArray:
        """Return the outputs (n, k) for mapped rows X (n, d), in blocks.

        Parameters
        ----------
        X : array of shape (n, d)
            Mapped rows.
        distance : {"sqeuclidean", "euclidean", "cityblock"}
            What the kernel is a function of.
        pairs : int, optional
            Number of kernel values of all rows of which X is a block; with many of them compiled
            loops are used.
        """
        kernel, coef, b = KERNEL_OF[distance](self.setting.gamma), self.fit.coef, self.fit.intercept
        Z = np.asarray(self.rows.X, dtype=np.float64)
        return evaluate_expansion(kernel, X, Z, coef, b, budget=_BUDGET, threads=1, pairs=pairs)

    def stripped(self, errors: bool = False) -> Leaf:
        """Return what prediction needs: without targets, weights and leave-one-out outputs.

        Parameters
        ----------
        errors : bool, default=False
            Whether the squares of the leave-one-out errors are kept.
        """
        rows = Rows(self.rows.X, self.rows.Y[:0], self.rows.weight[:0])
        fit = replace(self.fit, left_out=self.fit.left_out[:0])
        kept = self.squares if errors else self.fit.left_out[:0]
        return replace(self, rows=rows, fit=fit, kept=kept)


def fit_leaf(
    rows: Rows,
    distance: Distance,
    start: Setting,
    *,
    near: ExactFit | None = None,
    tries: int = 1,
    stop: Callable[[], bool] = lambda: False,
    D: FloatArray | None = None,
    pairs: int | None = None,
    threads: int = 1,
    draft: bool = False,
    held_out: bool = True,
) -> Leaf:
    """Fit the exact model of some rows; choose C and gamma near a start by leave-one-out.

    Parameters
    ----------
    rows : Rows
        Rows to fit.
    distance : {"sqeuclidean", "euclidean", "cityblock"}
        What the kernel is a function of.
    start : Setting
        The first C and gamma.
    near : ExactFit, optional
        A model of the same rows and gamma from which the Newton steps of a logistic one start.
    tries : int, default=1
        Settings that are tried at most, including the start; 1 keeps the start.
    stop : callable, optional
        Called before every further try; True ends the search.
    D : array of shape (n, n), optional
        The distances, where they are known.
    pairs : int, optional
        Distances of all leaves that are fitted with this one, see `fill_distances`.
    threads : int, default=1
        For the distances.
    draft : bool, default=False
        Whether the model is only compared: its coefficients may be those of single precision.
    held_out : bool, default=True
        Whether leave-one-out outputs are needed; a search always computes them.

    Returns
    -------
    Leaf
        The one with the smallest leave-one-out error; ties keep the start.

    Notes
    -----
    The search changes C by factors of 4 and gamma by factors of 2, and goes on in a direction that
    helped (see `LocalSearch`). Each try is one exponential pass and one factorisation with its
    inverse: n^3 / 3 multiplications, in single precision where :math:`n C` is far below the inverse
    of its rounding error. The coefficients of a model that is kept are then refined in double
    precision, O(n^2 k) operations a step; its leave-one-out outputs have the digits of single
    precision. Distances are computed once. n^2 numbers in double and 3 n^2 in single precision.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import Rows, Setting, fit_leaf
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> rows = Rows(X, np.sin(X), np.ones(40))
    >>> one = fit_leaf(rows, "euclidean", Setting(1.0, 1.0))
    >>> bool(fit_leaf(rows, "euclidean", Setting(1.0, 1.0), tries=5).error < one.error)
    True
    """
    given, shared = rows, D is not None
    repeats, distinct = ALONE, None
    if len(rows.X) > 1 and (shared or rows.labels is not None):
        repeats = rows.repeats()
    elif len(rows.X) > 1:
        equal = EqualRows.among(rows.X, rows.Y, rows.weight)
        distinct = MergedRows.of(rows.X, rows.Y, rows.weight, equal)
        repeats = equal.repeats() if distinct is None else ALONE
    if distinct is not None:
        rows = Rows(distinct.X, distinct.Y, distinct.weight)
    n = len(rows.X)
    bound = n if distinct is None else n * float(rows.weight.max() / given.weight.mean())

    @cache
    def double() -> FloatArray:
        """Return the distances, which drafts in single precision need not have."""
        if D is not None:
            return D
        X = np.asarray(rows.X, dtype=np.float64)
        return fill_distances(X, distance, np.empty((n, n)), threads=threads, pairs=pairs)

    if start.loss == "logistic":
        K = exponential(double(), start.gamma, np.empty((n, n)) if shared else double())
        if near is not None and distinct is not None:
            near = distinct.gathered(near)
        return fit_logistic_leaf(
            given, start, K, repeats, near, distinct, tries=tries, stop=stop, draft=draft
        )

    @cache
    def single() -> FloatArray:
        """Return the distances above the diagonal in single precision."""
        if shared or not draft:
            return double().astype(np.float32)
        X, out = np.asarray(rows.X, dtype=np.float64), np.empty((n, n), dtype=np.float32)
        return fill_distances(X, distance, out, threads=threads, half=True, pairs=pairs)

    spare: list[FloatArray] = []  # a matrix in single precision that can be overwritten
    refused: list[Setting] = []  # where single precision was not enough

    def may_be_single(setting: Setting) -> bool:
        """Return whether single precision is worth an attempt.

        n C times the most equal rows bounds the condition. The smallest eigenvalues of a Gaussian
        kernel are 0, so that it is reached; those of the other kernels are much larger than 1 / C
        where rows lie apart.
        """
        if not (n >= _SINGLE_MIN_ROWS and (draft or held_out)):
            return False
        rough = distance != "sqeuclidean"
        worse = any(s.C <= setting.C and s.gamma >= setting.gamma for s in refused)
        return setting.C * bound < _CONDITION or (rough and not worse)

    def solve(setting: Setting, held_out: bool = True) -> tuple[Leaf, FloatArray | None]:
        """Return a model, and the inverse factor where it is in single precision."""
        noise = 1.0 / (setting.C * rows.weight)
        if may_be_single(setting):
            most = np.inf if setting.C * bound < _CONDITION else _CONDITION
            K = spare.pop() if spare else np.empty_like(single())
            exponential(single(), setting.gamma, K, half=True)
            with suppress(NotPositiveDefiniteError):
                fit = solve_exact(
                    K, rows.Y, noise, repeats, quiet=True, held_out=held_out, most=most
                )
                return leaf_of(setting, fit), K
            refused.append(setting)
            spare.append(K)
        K = exponential(double(), setting.gamma, np.empty((n, n)))
        fit = solve_exact(K, rows.Y, noise, repeats, quiet=True, held_out=held_out)
        return leaf_of(setting, fit), None

    def of_all(setting: Setting, fit: ExactFit) -> ExactFit:
        if distinct is None:
            return fit
        return distinct.expanded(fit, setting.C * given.weight, given.Y, rows.Y)

    def leaf_of(setting: Setting, fit: ExactFit) -> Leaf:
        fit = of_all(setting, fit)
        fit = replace(fit, diagonal=_NOTHING)
        known = len(fit.left_out) > 0
        error = weighted_error(given.Y, fit.left_out, given.weight) if known else np.nan
        return Leaf(given, setting, fit, error)

    if tries == 1:
        best, factor = solve(start, held_out)
    else:
        search, factor = LocalSearch(start, tries), None
        while (setting := search.propose(stop)) is not None:
            leaf, new = solve(setting)
            better = search.update(leaf.error)
            if better:
                best, factor, new = leaf, new, factor
            if new is not None:
                spare.append(new)
    if draft or factor is None:
        return best
    K = exponential(double(), best.setting.gamma, np.empty((n, n)) if shared else double())
    noise = 1.0 / (best.setting.C * rows.weight)
    refined = refine_exact(
        K, rows.Y, noise, replace(best.fit, left_out=best.fit.left_out[:0]), factor
    )
    left_out = best.fit.left_out
    return replace(best, fit=replace(of_all(best.setting, refined), left_out=left_out))


def fit_logistic_leaf(
    rows: Rows,
    start: Setting,
    K: FloatArray,
    repeats: Repeats,
    near: ExactFit | None,
    distinct: MergedRows | None,
    *,
    tries: int,
    stop: Callable[[], bool],
    draft: bool,
) -> Leaf:
    """Fit kernel logistic regression to a leaf; C is chosen near the start by leave-one-out.

    The error of the leaf is the log loss of its leave-one-out outputs. With distinct rows, ``K``
    and ``near`` are those of them.
    """
    Y, weight = (rows.Y, rows.weight) if distinct is None else (distinct.Y, distinct.weight)
    search = LocalSearch(start, tries, steps=((4.0, 1.0), (0.25, 1.0)))
    while (setting := search.propose(stop)) is not None:
        curvature = weight.sum() / 4.0
        if near is not None:
            p = expit(K @ near.coef[:, 0] + near.intercept[0])
            curvature = weight @ (p * (1.0 - p))
        single = len(K) >= _SINGLE_MIN_ROWS and setting.C * curvature < _LOGISTIC_CONDITION
        fit = near = solve_logistic(
            K, Y, setting.C, weight, repeats, start=near, single=single, draft=draft
        )
        if distinct is not None:
            f = K @ fit.coef[:, 0] + fit.intercept[0]
            fit = distinct.expanded_log_odds(fit, f, setting.C, rows.Y, rows.weight)
        losses = -log_expit(rows.Y * fit.left_out).sum(axis=1)
        fit = replace(fit, diagonal=_NOTHING)
        leaf = Leaf(rows, setting, fit, float(np.average(losses, weights=rows.weight)))
        if search.update(leaf.error):
            best = leaf
    return best


def exponential(D: FloatArray, gamma: float, out: FloatArray, *, half: bool = False) -> FloatArray:
    """Return exp(-gamma D), written to ``out``; with ``half`` the triangle above the diagonal."""
    for block in slices(len(D), _ROWS if half else len(D)):
        part = out[block, block.start :] if half else out
        np.multiply(D[block, block.start :] if half else D, D.dtype.type(-gamma), out=part)
        np.exp(part, out=part)
    return out


STEPS = ((4.0, 1.0), (0.25, 1.0), (1.0, 0.5), (1.0, 2.0))
"""Factors of (C, gamma) that a local search tries in turn."""


class LocalSearch:
    """A local search from setting to setting while the leave-one-out error falls.

    Parameters
    ----------
    start : Setting
    tries : int
        Settings that may be tried.
    steps : sequence of (float, float), default=STEPS
        Factors of (C, gamma).

    Attributes
    ----------
    best : Setting
    error : float
        Its leave-one-out error.

    Examples
    --------
    >>> from lssvm.local.leaf import Setting, LocalSearch
    >>> search = LocalSearch(Setting(1.0, 1.0), tries=9)
    >>> while (setting := search.propose()) is not None:
    ...     better = search.update((setting.C - 16.0) ** 2 + 1.0)
    >>> search.best.C
    16.0
    """

    def __init__(
        self, start: Setting, tries: int, steps: Sequence[tuple[float, float]] = STEPS
    ) -> None:
        self.best, self.error = start, np.inf
        self._tries, self._seen = tries, {start}
        self._all_steps, self._steps = steps, list(steps)
        self._proposed: tuple[Setting, tuple[float, float] | None] = (start, None)
        self._updates = 0

    def propose(self, stop: Callable[[], bool] = lambda: False) -> Setting | None:
        """Return the setting to try next, or None at the end; ``stop`` ends the search early."""
        if not self._updates:
            return self._proposed[0]
        while self._steps and self._updates < self._tries and self.error > 0.0 and not stop():
            step = self._steps.pop(0)
            new = self.best.times(*step)
            if new not in self._seen:
                self._seen.add(new)
                self._proposed = new, step
                return new
        return None

    def update(self, error: float) -> bool:
        """Record the error of the proposed setting; return whether it is the best so far."""
        setting, step = self._proposed
        self._updates += 1
        if step is not None and not error < (1.0 - _MIN_GAIN) * self.error:
            return False
        self.best, self.error = setting, error
        if step is not None:
            # The same direction again, then the other axis, never straight back.
            self._steps = [step, *(s for s in self._all_steps if (s[0] == 1.0) != (step[0] == 1.0))]
        return True


def weighted_error(Y: FloatArray, outputs: FloatArray, weight: FloatArray) -> float:
    """Return the weighted mean over rows of the squared errors, summed over outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local.leaf import weighted_error
    >>> weighted_error(np.ones((2, 1)), np.zeros((2, 1)), np.ones(2))
    1.0
    """
    gap = Y - outputs
    return float(weight @ np.einsum("ij,ij->i", gap, gap) / weight.sum())
