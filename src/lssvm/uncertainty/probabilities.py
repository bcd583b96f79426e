"""Probabilities and prediction sets of a classifier from its out-of-fold scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.codes import Code, decode
from lssvm.uncertainty.calibration import Calibrator, fit_calibrator
from lssvm.uncertainty.coupling import agree_with, couple_pairs
from lssvm.uncertainty.intervals import conformal_quantile

PAIR_FLOOR = 1e-7
"""No class of a pair is less probable than this."""


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """What models said about rows that they had not seen.

    Attributes
    ----------
    scores : array of shape (t, k)
        Outputs of all problems; NaN where a problem has nothing to say.
    labels : int array of shape (t,)
        Class numbers.
    weight : array of shape (t,) or None

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.uncertainty import OutOfFold
    >>> OutOfFold(np.zeros((3, 1)), np.array([0, 1, 1])).weight is None
    True
    """

    scores: FloatArray
    labels: IntArray
    weight: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Calibrated probabilities of a classifier with an output code.

    Attributes
    ----------
    code : Code
    decoding : str or None
        How the classifier decodes.
    maps : list of Calibrator
        One per binary problem (two classes, one-vs-one), or one per class.
    threshold : Quantiles of 1 - p(true class) over the out-of-fold rows, sorted, shape (t,)
    weight : array of shape (t,)
        Weights in the same order.

    Notes
    -----
    Two classes: the map of the one problem. One-vs-one: a map for each pair, fitted on its two
    classes, and `couple_pairs`. Other codes: a map of each class's decoded score against all other
    classes, normalised. At the end `agree_with` makes the largest probability that of the class
    that `decision` names, so that probabilities never contradict `predict`; least squares scores
    estimate 2 p - 1, so few rows change.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.codes import make_code
    >>> from lssvm.uncertainty import OutOfFold, calibrate
    >>> scores = np.linspace(-1, 1, 100)[:, None]
    >>> labels = (scores[:, 0] > 0).astype(int)
    >>> model = calibrate(OutOfFold(scores, labels), make_code("auto", 2, 0))
    >>> bool(model.of(np.array([[0.9]]), np.array([1]))[0, 1] > 0.9)
    True
    """

    code: Code
    decoding: str | None
    maps: list[Calibrator]
    threshold: FloatArray
    weight: FloatArray

    def of(self, raw: FloatArray, decided: IntArray) -> FloatArray:
        """Return the probabilities of the classes, shape (n, K).

        Parameters
        ----------
        raw : array of shape (n, k)
            Outputs of all problems.
        decided : int array of shape (n,)
            What the classifier predicts.
        """
        return agree_with(_free(self.code, self.decoding, self.maps, raw), decided)

    def sets(self, raw: FloatArray, decided: IntArray, coverage: float) -> NDArray[np.bool_]:
        """Return which classes belong to the prediction set of each row, shape (n, K)."""
        p = self.of(raw, decided)
        limit = conformal_quantile(self.threshold, self.weight, coverage)
        chosen = 1.0 - p <= limit
        chosen[np.arange(len(p)), decided] = True
        return np.asarray(chosen)


def calibrate(
    table: OutOfFold, code: Code, decoding: str | None = None, method: str = "auto"
) -> Probabilities:
    """Fit the maps from scores to probabilities.

    Parameters
    ----------
    table : OutOfFold
    code : Code
    decoding : {"hamming", "loss"} or None, default=None
    method : {"auto", "sigmoid", "isotonic"}, default="auto"
        See `fit_calibrator`.

    Returns
    -------
    Probabilities

    Notes
    -----
    O(t log t) per problem, and O(t K^3) for the pairs of K classes.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.codes import one_vs_all
    >>> from lssvm.uncertainty import OutOfFold, calibrate
    >>> labels = np.arange(30) % 3
    >>> table = OutOfFold(np.where(np.eye(3)[labels] > 0, 0.9, -0.9), labels)
    >>> p = calibrate(table, one_vs_all(3)).of(table.scores[:1], labels[:1])
    >>> bool(p[0].argmax() == 0), p.sum().round(6)
    (True, np.float64(1.0))
    """
    labels = table.labels
    weight = np.ones(len(labels)) if table.weight is None else table.weight
    matrix = code.matrix
    maps: list[Calibrator] = []
    if by_problem(code):
        for column, score in zip(matrix.T, table.scores.T, strict=True):
            used = column[labels] != 0
            positive = column[labels[used]] > 0
            maps.append(fit_calibrator(score[used], positive, weight[used], method))
    else:
        scores = np.asarray(decode(code, table.scores, decoding))
        maps = [
            fit_calibrator(scores[:, c], labels == c, weight, method) for c in range(code.n_classes)
        ]
    good = np.all(np.isfinite(table.scores), axis=1)
    if not np.any(good):
        raise InvalidInputError(
            "There is no row that every problem was tried on without having seen it: give more "
            "rows, or more rows of each class."
        )
    p = _free(code, decoding, maps, table.scores[good])
    lack = 1.0 - p[np.arange(len(p)), labels[good]]
    order = np.argsort(lack, kind="stable")
    return Probabilities(code, decoding, maps, lack[order], weight[good][order])


def by_problem(code: Code) -> bool:
    """Say whether every binary problem separates one class from one other.

    Examples
    --------
    >>> from lssvm.codes import one_vs_all, one_vs_one
    >>> from lssvm.uncertainty.probabilities import by_problem
    >>> by_problem(one_vs_one(4)), by_problem(one_vs_all(4))
    (True, False)
    """
    plus, minus = (code.matrix > 0).sum(axis=0), (code.matrix < 0).sum(axis=0)
    K = code.n_classes
    return bool(np.all(plus == 1) and np.all(minus == 1) and code.n_problems == K * (K - 1) // 2)


def _free(code: Code, decoding: str | None, maps: list[Calibrator], raw: FloatArray) -> FloatArray:
    """Return the probabilities before they are made to agree with a decision, shape (n, K)."""
    K = code.n_classes
    if not by_problem(code):
        scores = np.asarray(decode(code, raw, decoding))
        p = np.column_stack([maps[c](scores[:, c]) for c in range(K)])
        return np.asarray(p / p.sum(axis=1, keepdims=True))
    pairs = np.full((len(raw), K, K), 0.5)
    for map, column, score in zip(maps, code.matrix.T, raw.T, strict=True):
        plus, minus = int(np.argmax(column)), int(np.argmin(column))
        p = np.clip(map(score), PAIR_FLOOR, 1.0 - PAIR_FLOOR)
        pairs[:, plus, minus], pairs[:, minus, plus] = p, 1.0 - p
    if K == 2:
        return np.asarray(pairs[:, [0, 1], [1, 0]])
    return couple_pairs(pairs)
