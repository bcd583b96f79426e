"""Weights of several models from their outputs for rows that they had not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from lssvm._core.arrays import BoolArray, FloatArray, IntArray

_SHARED = 1e-3  # pull towards the mean model, as a share of the mean square of the outputs


def stack_weights(
    outputs: Sequence[FloatArray],
    Y: FloatArray,
    weight: FloatArray | None = None,
    plain: BoolArray | None = None,
) -> FloatArray:
    """Return the non-negative weights whose combination of outputs is closest to the targets.

    Parameters
    ----------
    outputs : sequence of q arrays of shape (n, k)
        Outputs for rows that the models had not seen; rows with a NaN are left out.
    Y : array of shape (n, k)
        Targets.
    weight : array of shape (n,), optional
        Weights of the rows; None: all are one.
    plain : bool array of shape (q,), optional
        Models to fall back on: the result is the mean of the weights of all models and of those of
        these alone, which halves the damage where the others look better by chance. Where all
        models leave less than three quarters of the squared error of these, that is no chance:
        these count for less, and for nothing where it is less than half.

    Returns
    -------
    array of shape (q,)
        1 for a single model.

    Notes
    -----
    Non-negative least squares on the q x q normal equations ([LawsonHanson1995]_), one weight per
    model for all outputs ([Breiman1996]_): O(n k q^2) time. A tiny pull towards equal weights
    decides between models that say the same.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting import stack_weights
    >>> y = np.array([[1.0], [-1.0], [2.0]])
    >>> stack_weights([y, -y], y).round(3)
    array([1., 0.])
    """
    if len(outputs) == 1:
        return np.ones(1)
    if plain is not None and plain.any() and not plain.all():
        safe = np.zeros(len(outputs))
        chosen = [F for F, p in zip(outputs, plain, strict=True) if p]
        safe[plain] = stack_weights(chosen, Y, weight)
        best = stack_weights(outputs, Y, weight)
        ratio = _squared_error(outputs, best, Y, weight) / _squared_error(outputs, safe, Y, weight)
        share = float(np.clip(2.0 * ratio - 1.0, 0.0, 0.5))
        return share * safe + (1.0 - share) * best
    good = np.all([np.isfinite(F).all(axis=1) for F in outputs], axis=0)
    w = np.ones(len(Y)) if weight is None else weight
    root = np.sqrt(w[good])[:, None]
    F = np.column_stack([(root * F[good]).ravel() for F in outputs])
    y = (root * Y[good]).ravel()
    q = F.shape[1]
    gram, cross = F.T @ F, F.T @ y
    size = float(gram.diagonal().mean())
    if not size > 0.0:
        return np.full(q, 1.0 / q)
    ridge = _SHARED * size / max(np.sqrt(len(y)), 1.0)
    gram = gram + ridge * np.eye(q)
    cross = cross + ridge / q
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 1e-12 * values[-1])
    root_gram = (vectors * np.sqrt(values)).T
    right = (vectors / np.sqrt(values)).T @ cross
    found = np.asarray(nnls(root_gram, right)[0])
    return found if found.any() else np.full(q, 1.0 / q)


def _squared_error(
    outputs: Sequence[FloatArray], weights: FloatArray, Y: FloatArray, weight: FloatArray | None
) -> float:
    """Return the squared error of a combination, larger than 0, over rows that all models know."""
    gap = (Y - combine(outputs, weights)) ** 2
    known = np.all([np.isfinite(F).all(axis=1) for F in outputs], axis=0)
    of_rows = gap[known].sum(axis=1)
    total = of_rows.sum() if weight is None else weight[known] @ of_rows
    return max(float(total), np.finfo(np.float64).tiny)


def combine(outputs: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    """Return the weighted sum of outputs, shape (n, k).

    Parameters
    ----------
    outputs : sequence of q arrays of shape (n, k)
        Of the models.
    weights : array of shape (q,)
        Of the models.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting import combine
    >>> combine([np.ones((1, 1)), np.zeros((1, 1))], np.array([0.25, 0.75]))
    array([[0.25]])
    """
    total = np.zeros(outputs[0].shape)
    for w, F in zip(weights, outputs, strict=True):
        if w:
            total += w * F
    return total


def most_used(weights: FloatArray) -> IntArray:
    """Return the numbers of the models with a weight that counts, the largest first.

    Parameters
    ----------
    weights : array of shape (q,)
        Of the models.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting.stacking import most_used
    >>> most_used(np.array([0.2, 0.0, 0.7, 0.01])).tolist()
    [2, 0]
    """
    order = np.argsort(-weights, kind="stable")
    return np.asarray(order[weights[order] > 0.02 * weights.sum()], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class StackRule:
    """How models are chosen and weighed.

    Attributes
    ----------
    plain : bool array of shape (q,) or None
        See `stack_weights`.
    at_most : int or None
        Models that may have a weight.
    loss : callable or None
        From outputs (m, k) and the numbers of their rows (m,) to a loss that is not the squared
        error: the models are ordered by it, and of the stacks of the best one, the best two and so
        on the one with the smallest loss is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting import StackRule
    >>> y = np.array([[1.0], [-1.0], [2.0]])
    >>> StackRule(at_most=1).weights([0.9 * y, y + 0.5], y)
    array([1., 0.])
    """

    plain: BoolArray | None = None
    at_most: int | None = None
    loss: Callable[[FloatArray, IntArray], float] | None = None

    def weights(
        self,
        outputs: Sequence[FloatArray],
        Y: FloatArray,
        weight: FloatArray | None = None,
        rows: IntArray | None = None,
    ) -> FloatArray:
        """Return the weights (q,) of q models.

        Parameters
        ----------
        outputs : sequence of q arrays of shape (n, k)
            Of every model for the same rows.
        Y : array of shape (n, k)
            Targets of the rows.
        weight : array of shape (n,), optional
            Weights of the rows; by default all are one.
        rows : int array of shape (n,), optional
            Row numbers, for ``loss``; 0 to n - 1 where not given.
        """
        q = len(outputs)
        size = q if self.at_most is None else min(self.at_most, q)
        if self.loss is None:
            found = self._of(np.arange(q, dtype=np.intp), outputs, Y, weight)
            if np.count_nonzero(found) <= size:
                return found
            chosen = np.sort(np.argsort(-found, kind="stable")[:size])
            return self._of(chosen.astype(np.intp), outputs, Y, weight)
        good = np.flatnonzero(np.all([np.isfinite(F).all(axis=1) for F in outputs], axis=0))
        own = good if rows is None else rows[good]
        known = [F[good] for F in outputs]
        order = np.argsort([self._loss(F, own) for F in known], kind="stable").astype(np.intp)
        tried = [self._of(order[:m], outputs, Y, weight) for m in range(1, size + 1)]
        losses = [self._loss(combine(known, w), own) for w in tried]
        # Of equally good stacks the largest: averages vary less.
        return tried[max(m for m in range(size) if losses[m] <= min(losses))]

    def _of(
        self,
        chosen: IntArray,
        outputs: Sequence[FloatArray],
        Y: FloatArray,
        weight: FloatArray | None,
    ) -> FloatArray:
        """Return the weights of some models, 0 for the others."""
        plain = None if self.plain is None else self.plain[chosen]
        weights = np.zeros(len(outputs))
        weights[chosen] = stack_weights([outputs[i] for i in chosen], Y, weight, plain)
        return weights

    def _loss(self, outputs: FloatArray, rows: IntArray) -> float:
        assert self.loss is not None
        found = float(self.loss(outputs, rows))
        return found if np.isfinite(found) else np.inf


def cross_stack(
    outputs: Sequence[FloatArray],
    Y: FloatArray,
    weight: FloatArray | None,
    folds: IntArray,
    rule: StackRule | None = None,
) -> FloatArray:
    """Return stacked outputs whose weights have not seen the row's target, shape (n, k).

    Parameters
    ----------
    outputs : sequence of q arrays of shape (n, k)
        Outputs for rows that the models had not seen.
    Y : array of shape (n, k)
        Targets.
    weight : array of shape (n,) or None
        Weights of the rows; None: all are one.
    folds : int array of shape (n,)
        Models are chosen and weighed for the rows of a fold by the other folds.
    rule : StackRule, optional
        How weights are chosen; None: the default.

    Returns
    -------
    array of shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting import cross_stack
    >>> y = np.arange(8.0)[:, None]
    >>> cross_stack([y], y, None, np.arange(8) % 2).round(2).ravel()
    array([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    rule = StackRule() if rule is None else rule
    out = np.full(Y.shape, np.nan)
    for v in np.unique(folds):
        inside, outside = folds == v, np.flatnonzero(folds != v)
        w = None if weight is None else weight[outside]
        weights = np.full(len(outputs), 1.0 / len(outputs))
        if len(outside):
            weights = rule.weights([F[outside] for F in outputs], Y[outside], w, outside)
        out[inside] = combine([F[inside] for F in outputs], weights)
    return out
