"""Stacks: weights of several models, fitted to their held-out outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import expit, log_expit, logsumexp

from lssvm._core.arrays import BoolArray, FloatArray, IntArray, tie_scores
from lssvm._core.blocks import run_blocks

StackLoss: TypeAlias = Literal["squared", "log"]

_RIDGE = 1e-3  # penalty towards equal weights, as a share of the mean square of the outputs
_PRIOR = 0.5  # penalty of the log loss towards its start, in rows of mean weight
_MOST_ROWS = 20_000  # that the weights of a log loss are fitted to


@dataclass(frozen=True, eq=False)
class Stack:
    """A weighted sum of models.

    Attributes
    ----------
    weights : array of shape (q,)
        Non-negative.
    offset : array of shape (k,)
        Added to the sum; 0 for squared errors.
    """

    weights: FloatArray
    offset: FloatArray

    def outputs(self, outputs: Sequence[FloatArray]) -> FloatArray:
        """Return the stacked outputs (n, k) from those of all models."""
        return combine(outputs, self.weights) + self.offset


def combine(outputs: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    """Return the weighted sum of outputs, shape (n, k)."""
    total = np.zeros(outputs[0].shape)
    for w, F in zip(weights, outputs, strict=True):
        if w:
            total += w * F
    return total


def known_rows(outputs: Sequence[FloatArray]) -> BoolArray:
    """Return which rows have known (finite) outputs of all models, shape (n,)."""
    return np.asarray(np.all([np.isfinite(F).all(axis=1) for F in outputs], axis=0))


def row_losses(outputs: FloatArray, Y: FloatArray, loss: StackLoss) -> FloatArray:
    """Return the loss of every row, shape (n,): squared errors, or the log loss of the classes.

    Classes are -1 and 1 in one column, or the column that is 1 of several.
    """
    if loss == "squared":
        gap = Y - outputs
        return np.asarray(np.einsum("ij,ij->i", gap, gap))
    if Y.shape[1] == 1:
        return -np.asarray(log_expit(Y[:, 0] * outputs[:, 0]))
    return np.asarray(logsumexp(outputs, axis=1) - (outputs * (Y > 0)).sum(axis=1))


def mean_loss(outputs: FloatArray, Y: FloatArray, weight: FloatArray, loss: StackLoss) -> float:
    """Return the weighted mean of the losses of rows whose outputs are known."""
    good = np.isfinite(outputs).all(axis=1)
    return float(np.average(row_losses(outputs[good], Y[good], loss), weights=weight[good]))


def rows_that_count(losses: FloatArray, weight: FloatArray) -> float:
    """Return by how many rows of equal loss a mean of losses (n,) would vary as much.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting.stacking import rows_that_count
    >>> rows_that_count(np.array([0.0, 0.0, 2.0, 2.0]), np.ones(4))
    2.0
    """
    parts = weight * losses
    return float(parts.sum() ** 2 / max(parts @ parts, np.finfo(np.float64).tiny))


def fit_stack(
    outputs: Sequence[FloatArray],
    Y: FloatArray,
    weight: FloatArray,
    loss: StackLoss = "squared",
    plain: BoolArray | None = None,
) -> Stack:
    r"""Return the stack with the smallest loss of held-out outputs.

    Parameters
    ----------
    outputs : sequence of q arrays of shape (n, k)
        Held-out outputs of the models; rows with a NaN are not used.
    Y : array of shape (n, k)
        Targets; -1 and 1 for the log loss.
    weight : array of shape (n,)
        Weights of the rows.
    loss : {"squared", "log"}
        What is minimised.
    plain : bool array of shape (q,), optional
        Models to fall back on. The result is the mean of two stacks, of all models and of these
        alone, which halves the damage if the others look better by chance. If all models together
        have less than three quarters of the squared error of these, that is hardly chance: the
        share of the second stack falls, to 0 where they have half of it or less.

    Notes
    -----
    Squared errors: non-negative least squares on the q x q normal equations ([LawsonHanson1995]_),
    one weight per model for all outputs ([Breiman1996]_). A tiny penalty towards equal weights
    decides between models with the same outputs; if all outputs are rounding errors, the weights
    are equal.

    Log loss: with :math:`f = \sum_m w_m f_m + b` the loss :math:`-\log \sigma(y f)`, of several
    classes the cross-entropy of the softmax of f, is convex in (w, b); it is minimised subject to
    :math:`w \ge 0` with a weak penalty towards the weights of squared errors times their best
    scale. The outputs are log-odds. O(n k q) time for each of some tens of steps.
    """
    q, k = len(outputs), Y.shape[1]
    if plain is not None and plain.any() and not plain.all():
        chosen = [F for F, p in zip(outputs, plain, strict=True) if p]
        plain_stack = fit_stack(chosen, Y, weight, loss)
        plain_weights = np.zeros(q)
        plain_weights[plain] = plain_stack.weights
        full_stack = fit_stack(outputs, Y, weight, loss)
        known = known_rows(outputs)
        # How much better all models are is measured by squared errors for either loss.
        least_squares = [_nonnegative(chosen, Y, weight), _nonnegative(outputs, Y, weight)]
        squares = [
            weight[known] @ row_losses(combine(F, w)[known], Y[known], "squared")
            for F, w in zip((chosen, outputs), least_squares, strict=True)
        ]
        ratio = squares[1] / max(squares[0], np.finfo(np.float64).tiny)
        share = float(np.clip(2.0 * ratio - 1.0, 0.0, 0.5))
        return Stack(
            share * plain_weights + (1.0 - share) * full_stack.weights,
            share * plain_stack.offset + (1.0 - share) * full_stack.offset,
        )
    weights = np.ones(1) if q == 1 else _nonnegative(outputs, Y, weight)
    if loss == "squared":
        return Stack(weights, np.zeros(k))
    return _log_stack(outputs, Y, weight, weights)


def _nonnegative(outputs: Sequence[FloatArray], Y: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the non-negative weights of the smallest squared error."""
    q = len(outputs)
    if q == 1:
        return np.ones(1)
    good = known_rows(outputs)
    root = np.sqrt(weight[good])[:, None]
    F = np.column_stack([(root * F[good]).ravel() for F in outputs])
    y = (root * Y[good]).ravel()
    gram, cross = F.T @ F, F.T @ y
    size = float(gram.diagonal().mean())
    if not size > (1e-12**2) * float(y @ y):  # rounding errors only
        return np.full(q, 1.0 / q)
    ridge = _RIDGE * size / max(np.sqrt(len(y)), 1.0)
    gram = gram + ridge * np.eye(q)
    cross = cross + ridge / q
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 1e-12 * values[-1])
    root_gram = (vectors * np.sqrt(values)).T
    right = (vectors / np.sqrt(values)).T @ cross
    weights = np.asarray(nnls(root_gram, right)[0])
    return weights if weights.any() else np.full(q, 1.0 / q)


def _log_stack(
    outputs: Sequence[FloatArray], Y: FloatArray, weight: FloatArray, start: FloatArray
) -> Stack:
    """Return the stack of the smallest log loss, near the scaled weights of squared errors."""
    rows = np.flatnonzero(known_rows(outputs))
    if not len(rows):  # as where all rows are equal, and so held out together
        return Stack(start, _shares(np.asarray(Y > 0, dtype=np.float64), weight / weight.sum()))
    rows = rows[:: max(1, -(-len(rows) // _MOST_ROWS))]
    F = np.stack([F[rows] for F in outputs])  # (q, n, k)
    Y, share = Y[rows], weight[rows] / weight[rows].sum()
    q, k = len(F), Y.shape[1]
    prior = _PRIOR / max(len(rows), 1)
    binary = k == 1
    target = np.asarray(Y > 0, dtype=np.float64)

    def losses(f: FloatArray) -> tuple[float, FloatArray]:
        if binary:
            p, each = expit(f), row_losses(f, Y, "log")
        else:
            below = f - f.max(axis=1, keepdims=True)
            p = np.exp(below)
            total = p.sum(axis=1, keepdims=True)
            p, each = p / total, np.log(total[:, 0]) - (below * target).sum(axis=1)
        return float(share @ each), share[:, None] * (p - target)

    base = np.tensordot(start, F, axes=1)  # (n, k)
    scale = float(np.sqrt(np.average((base**2).mean(axis=1), weights=share)))
    if not scale > 1e-12:  # rounding errors only: the shares of the classes are all that is known
        return Stack(start, _shares(target, share))

    def scaled_loss(p: FloatArray) -> tuple[float, FloatArray]:
        value, slope = losses(p[0] * base + p[1:])
        pull = prior * (p[0] - 2.0) / 4.0
        gradient = np.concatenate([[float((slope * base).sum()) + pull], slope.sum(axis=0)])
        return value + prior * (p[0] - 2.0) ** 2 / 8.0, gradient

    def minimised(
        f: Callable[[FloatArray], tuple[float, FloatArray]], x: FloatArray, positive: int
    ) -> FloatArray:
        least = 1e-3 if positive == 1 else 0.0  # small where nothing was learned, but positive
        bounds = [(least, 1e3)] * positive + [(-50.0, 50.0)] * (len(x) - positive)
        return np.asarray(minimize(f, x, jac=True, method="L-BFGS-B", bounds=bounds).x)

    first = minimised(scaled_loss, np.concatenate([[2.0], np.zeros(k)]), 1)
    factor, offset = first[:1], first[1:]
    if q == 1:
        return Stack(factor, offset)
    start_weights = factor[0] * start

    def stack_loss(p: FloatArray) -> tuple[float, FloatArray]:
        value, slope = losses(np.tensordot(p[:q], F, axes=1) + p[q:])
        change = p[:q] - start_weights
        gradient = np.concatenate(
            [(F * slope).sum(axis=(1, 2)) + prior * change, slope.sum(axis=0)]
        )
        return value + 0.5 * prior * float(change @ change), gradient

    p = minimised(stack_loss, np.concatenate([start_weights, offset]), q)
    weights = np.where(p[:q] > 1e-3 * p[:q].max(), p[:q], 0.0)
    return Stack(weights, p[q:]) if weights.any() else Stack(start_weights, offset)


def _shares(target: FloatArray, share: FloatArray) -> FloatArray:
    """Return the log-odds of the classes' shares of the weight."""
    p = np.clip(share @ target, 1e-9, 1.0 - 1e-9)
    return np.asarray(np.log(p / (1.0 - p)) if len(p) == 1 else np.log(p))


def most_used(weights: FloatArray) -> IntArray:
    """Return the numbers of the models with more than 2 % of the weight, the largest first."""
    order = np.argsort(-weights, kind="stable")
    return np.asarray(order[weights[order] > 0.02 * weights.sum()], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class StackRule:
    """How models are chosen and weighted.

    Attributes
    ----------
    loss : {"squared", "log"}
        See `fit_stack`.
    plain : bool array of shape (q,) or None
        See `fit_stack`.
    at_most : int or None
        Number of models that may have a weight.
    scorer : callable or None
        From outputs (m, k) and the numbers of their rows (m,) to a value that is minimised in place
        of the loss: the models are ordered by it, and of the stacks of the best one, the best two
        and so on, the one with the smallest value is taken.
    shift : callable or None
        From stacked outputs (m, k) and the numbers of their rows to the shift (k,) of the outputs
        whose decisions the scorer likes best.
    common_scale : bool
        Whether outputs of several folds are brought to one scale, see `on_common_scale`.
    """

    loss: StackLoss = "squared"
    plain: BoolArray | None = None
    at_most: int | None = None
    scorer: Callable[[FloatArray, IntArray], float] | None = None
    shift: Callable[[FloatArray, IntArray], FloatArray] | None = None
    common_scale: bool = False

    def fit(
        self,
        outputs: Sequence[FloatArray],
        Y: FloatArray,
        weight: FloatArray,
        rows: IntArray,
    ) -> Stack:
        """Return the stack of q models from outputs (n, k) for the rows with these numbers (n,)."""
        q = len(outputs)
        size = q if self.at_most is None else min(self.at_most, q)
        if self.scorer is None:
            stack = self._stack_of(np.arange(q, dtype=np.intp), outputs, Y, weight)
            if np.count_nonzero(stack.weights) <= size:
                return stack
            chosen = np.sort(np.argsort(-stack.weights, kind="stable")[:size])
            return self._stack_of(chosen.astype(np.intp), outputs, Y, weight)
        good = np.flatnonzero(known_rows(outputs))
        known, numbers = [F[good] for F in outputs], rows[good]
        order = np.argsort(self._scores(known, numbers), kind="stable").astype(np.intp)
        tried = [self._stack_of(order[:m], outputs, Y, weight) for m in range(1, size + 1)]
        if self.shift is not None:
            tried = [
                replace(one, offset=one.offset + self.shift(one.outputs(known), numbers))
                for one in tried
            ]
        scores = self._scores([one.outputs(known) for one in tried], numbers)
        # Of equally good stacks the largest: averages vary less.
        return tried[int(np.flatnonzero(scores == scores.min())[-1])]

    def _stack_of(
        self, chosen: IntArray, outputs: Sequence[FloatArray], Y: FloatArray, weight: FloatArray
    ) -> Stack:
        """Return the stack of some models, the others with weight 0."""
        plain = None if self.plain is None else self.plain[chosen]
        few = fit_stack([outputs[i] for i in chosen], Y, weight, self.loss, plain)
        weights = np.zeros(len(outputs))
        weights[chosen] = few.weights
        return Stack(weights, few.offset)

    def _scores(self, outputs: Sequence[FloatArray], rows: IntArray) -> FloatArray:
        """Return the values of the scorer (q,), equal where they differ by rounding."""
        assert self.scorer is not None
        values = np.array([float(self.scorer(F, rows)) for F in outputs])
        return tie_scores(np.where(np.isfinite(values), values, np.inf))


def cross_stack(
    outputs: Sequence[FloatArray],
    Y: FloatArray,
    weight: FloatArray,
    folds: IntArray,
    rule: StackRule,
    threads: int = 1,
) -> FloatArray:
    """Return stacked outputs (n, k) whose weights were fitted without the row.

    For the rows of a fold, models are chosen and weighted on the other folds, several folds at a
    time on threads.
    """
    out = np.full(Y.shape, np.nan)

    def stack_for(v: int) -> tuple[IntArray, FloatArray, float] | None:
        inside, outside = np.flatnonzero(folds == v), np.flatnonzero(folds != v)
        scale = None
        if not len(outside) or not known_rows([F[outside] for F in outputs]).any():
            stack = Stack(np.full(len(outputs), 1.0 / len(outputs)), np.zeros(Y.shape[1]))
        else:
            stack = rule.fit([F[outside] for F in outputs], Y[outside], weight[outside], outside)
            outer = stack.outputs([F[outside] for F in outputs])
            scale = (inside, *mean_and_spread(outer, weight[outside]))
        out[inside] = stack.outputs([F[inside] for F in outputs])
        return scale

    operations = 1e3 * Y.size * len(outputs)
    found = run_blocks(stack_for, np.unique(folds).tolist(), threads, operations=operations)
    scales = [scale for scale in found if scale is not None]
    return on_common_scale(out, scales) if rule.common_scale and scales else out


def mean_and_spread(outputs: FloatArray, weight: FloatArray) -> tuple[FloatArray, float]:
    """Return the mean (k,) of known outputs (m, k), and their root mean square deviation."""
    good = np.isfinite(outputs).all(axis=1)
    mean = np.average(outputs[good], axis=0, weights=weight[good])
    return mean, float(np.sqrt(mean_loss(outputs - mean, 0.0 * outputs, weight, "squared")))


def on_common_scale(
    outputs: FloatArray, scales: Sequence[tuple[IntArray, FloatArray, float]]
) -> FloatArray:
    """Return outputs (n, k) of the stacks of several folds with one mean and spread.

    Parameters
    ----------
    outputs : array of shape (n, k)
    scales : sequence of (rows, mean, spread)
        Rows of a fold; mean and spread of the outputs of its stack for the rows outside.

    Notes
    -----
    Stacks differ a little in offset and scale, in the opposite direction of the targets of their
    folds: a fold with many positives gets a stack that was fitted to fewer. The outputs of all
    folds together would therefore rank rows worse than those of any one stack. The targets of a
    fold play no part in its scale.
    """
    out = outputs.copy()
    middle = np.mean([mean for _, mean, _ in scales], axis=0)
    common = np.mean([spread for _, _, spread in scales])
    for rows, mean, spread in scales:
        out[rows] = middle + (outputs[rows] - mean) * (common / spread if spread > 0.0 else 1.0)
    return out
