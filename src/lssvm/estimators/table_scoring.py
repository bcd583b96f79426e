"""Scores of outputs for rows that were not seen: what models for tables report and choose by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, get_scorer, r2_score
from sklearn.utils import ClassifierTags

from lssvm._core.arrays import AnyArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.tasks import Classes
from lssvm.uncertainty import OutOfFold, Probabilities, calibrate


def read_scorer(scoring: Any) -> Callable[..., float] | None:
    """Return scikit-learn's scorer of a name, a scorer as it is, and None for None.

    Examples
    --------
    >>> from lssvm.estimators.table_scoring import read_scorer
    >>> read_scorer(None) is None, callable(read_scorer("roc_auc"))
    (True, True)
    """
    if scoring is None or callable(scoring):
        return scoring  # type: ignore[no-any-return]
    try:
        return get_scorer(scoring)  # type: ignore[no-any-return]
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"scoring={scoring!r} is not usable: give the name of a scorer of scikit-learn, a "
            "scorer, or None."
        ) from error


def decide(outputs: FloatArray) -> IntArray:
    """Return class numbers: the sign of one output, the largest of several.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.estimators.table_scoring import decide
    >>> decide(np.array([[0.2], [-0.1]])).tolist(), decide(np.array([[0.1, 0.3]])).tolist()
    ([1, 0], [1])
    """
    if outputs.shape[1] == 1:
        return np.asarray(outputs[:, 0] > 0, dtype=np.intp)
    return np.asarray(outputs.argmax(axis=1), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class ClassScorer:
    """Scores of the outputs of a classifier.

    Attributes
    ----------
    task : Classes
    labels : int array of shape (n,)
        Class numbers of the rows.
    weight : array of shape (n,)
    scoring : str, callable or None
        A scorer of scikit-learn; None is the accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.estimators.table_scoring import ClassScorer
    >>> from lssvm.tasks import Classes
    >>> task = Classes.of(np.array(["no", "yes"]), multiclass="ova")
    >>> scorer = ClassScorer(task, np.array([0, 1, 1]), np.ones(3), "recall_macro")
    >>> scorer.score(np.array([[-1.0], [0.5], [-0.5]]), np.arange(3))
    0.75
    """

    task: Classes
    labels: IntArray
    weight: FloatArray
    scoring: Any = None

    @property
    def chooses(self) -> bool:
        """Whether a score was given."""
        return self.scoring is not None

    def loss(self, outputs: FloatArray, rows: IntArray) -> float:
        """Return the score with a minus sign, infinite where it has no value."""
        try:
            return -self.score(outputs, rows)
        except ValueError:  # a class that these rows have not
            return np.inf

    def score(self, outputs: FloatArray, rows: IntArray) -> float:
        """Return the score of outputs (m, k) for some rows (m,)."""
        labels, weight = self.labels[rows], self.weight[rows]
        decided = decide(outputs)
        scorer = read_scorer(self.scoring)
        if scorer is None:
            return float(accuracy_score(labels, decided, sample_weight=weight))
        try:
            return self._score_by(scorer, self.task.classes, outputs, rows)
        except ValueError:  # scorers with pos_label=1 take class numbers only
            return self._score_by(scorer, np.arange(len(self.task.classes)), outputs, rows)

    def _score_by(
        self,
        scorer: Callable[..., float],
        classes: AnyArray,
        outputs: FloatArray,
        rows: IntArray,
    ) -> float:
        """Return the value of a scorer that knows the classes by these names."""
        decided = decide(outputs)
        known = HeldOut(
            {
                "predict": lambda: classes[decided],
                "predict_proba": lambda: self.calibrated(outputs, rows).of(outputs, None),
                "decision_function": lambda: outputs[:, 0] if outputs.shape[1] == 1 else outputs,
            },
            classes,
        )
        return known.score_by(scorer, classes[self.labels[rows]], self.weight[rows])

    @property
    def _decides(self) -> bool:
        """Whether the scorer looks at decisions, and not at probabilities or decision values."""
        scorer = read_scorer(self.scoring)
        if scorer is None:
            return True
        asked: list[str] = []
        n = 2 * len(self.task.classes)
        labels = np.arange(n) % len(self.task.classes)
        even = np.full((n, len(self.task.classes)), 1.0 / len(self.task.classes))

        def decided() -> AnyArray:
            asked.append("predict")
            return self.task.classes[labels]

        known = HeldOut(
            {
                "predict": decided,
                "predict_proba": lambda: even,
                "decision_function": lambda: even[:, 0] if even.shape[1] == 2 else even,
            },
            self.task.classes,
        )
        with suppress(ValueError, TypeError):  # scorers with pos_label=1 take class numbers only
            known.score_by(scorer, self.task.classes[labels], np.ones(n))
        return bool(asked)

    def check(self) -> None:
        """Raise where the scorer cannot score this problem."""
        rows = np.arange(len(self.labels), dtype=np.intp)
        values = np.random.default_rng(0).normal(size=(len(rows), self.task.code.n_problems))
        try:
            self.score(values, rows)
        except (ValueError, TypeError) as error:
            raise InvalidInputError(
                f"scoring={self.scoring!r} cannot score {len(self.task.classes)} classes: {error} "
                "Choose another scorer, for several classes one such as 'roc_auc_ovr', "
                "'balanced_accuracy' or 'neg_log_loss'."
            ) from error

    def decision_shift(self, outputs: FloatArray, rows: IntArray) -> FloatArray:
        """Return what is added to outputs (m, k) so that decisions have the best score, (k,).

        Of two classes the threshold is moved to one of 21 quantiles of the outputs; of several
        classes the logarithms of their shares are taken off the log-odds, in quarters.
        """
        labels, k = self.labels[rows], outputs.shape[1]
        if not self._decides:
            return np.zeros(k)
        if k == 1:
            places = np.quantile(outputs[:, 0], np.linspace(0.0, 1.0, 23)[1:-1])
            shifts = [np.zeros(1), *(-np.array([t]) for t in places[np.argsort(np.abs(places))])]
        else:
            share = np.bincount(labels, self.weight[rows], minlength=k) + 1e-9
            shifts = [-a * np.log(share / share.sum()) for a in (0.0, 0.25, 0.5, 0.75, 1.0)]
        losses = [self.loss(outputs + one, rows) for one in shifts]
        best = int(np.argmin(losses))
        clear = np.isfinite(losses[best]) and losses[best] < losses[0] - 1e-12
        return shifts[best] if clear else shifts[0]

    def calibrated(self, outputs: FloatArray, rows: IntArray) -> Probabilities:
        """Return the maps from outputs of some rows to probabilities."""
        table = OutOfFold(outputs, self.labels[rows], self.weight[rows])
        return calibrate(table, self.task.code, None if outputs.shape[1] == 1 else "argmax")


@dataclass(frozen=True, eq=False)
class NumberScorer:
    """Scores of the outputs of a regressor.

    Attributes
    ----------
    targets : array of shape (n, k)
    shift, scale : arrays of shape (k,)
        A prediction is scale * output + shift.
    weight : array of shape (n,)
    single : bool
        Whether targets are one column without a second axis.
    scoring : str, callable or None
        A scorer of scikit-learn; None is R2 without its bias (`held_out_r2`), and the mean squared
        error as a loss.
    labels : int array of shape (n,) or None
        Groups of the rows, whose targets may depend on each other.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.estimators.table_scoring import NumberScorer
    >>> scorer = NumberScorer(np.array([[1.0], [3.0]]), np.zeros(1), np.ones(1), np.ones(2), True)
    >>> scorer.score(np.array([[1.0], [2.0]]), np.arange(2))
    0.75
    """

    targets: FloatArray
    shift: FloatArray
    scale: FloatArray
    weight: FloatArray
    single: bool
    scoring: Any = None
    labels: IntArray | None = None

    @property
    def chooses(self) -> bool:
        """Whether a score was given."""
        return self.scoring is not None

    def loss(self, outputs: FloatArray, rows: IntArray) -> float:
        """Return the mean squared error, or the score that was asked for with a minus sign."""
        if self.chooses:
            return -self.score(outputs, rows)
        gap = self.targets[rows] - self.predicted(outputs)
        return float(np.average((gap**2).mean(axis=1), weights=self.weight[rows]))

    def score(self, outputs: FloatArray, rows: IntArray) -> float:
        """Return the score of outputs (m, k) for some rows (m,); NaN for fewer than two."""
        truth, predicted, weight = self.targets[rows], self.predicted(outputs), self.weight[rows]
        if len(truth) < 2:
            return float("nan")
        scorer = read_scorer(self.scoring)
        if scorer is None:
            labels = None if self.labels is None else self.labels[rows]
            return held_out_r2(truth, predicted, weight, labels)
        if self.single:
            truth, predicted = truth[:, 0], predicted[:, 0]
        return HeldOut({"predict": lambda: predicted}).score_by(scorer, truth, weight)

    def check(self) -> None:
        """Raise where the scorer cannot score this problem."""
        rows = np.arange(len(self.targets), dtype=np.intp)
        try:
            self.score(np.zeros_like(self.targets), rows)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"scoring={self.scoring!r} cannot score these targets: {error} Choose another one."
            ) from error

    def decision_shift(self, outputs: FloatArray, rows: IntArray) -> FloatArray:
        """Return zeros: predictions of numbers are not moved."""
        return np.zeros(outputs.shape[1])

    def predicted(self, outputs: FloatArray) -> FloatArray:
        """Return outputs (m, k) in the units of the targets."""
        return np.asarray(outputs * self.scale + self.shift)


def held_out_r2(
    truth: FloatArray, predicted: FloatArray, weight: FloatArray, labels: IntArray | None = None
) -> float:
    r"""Estimate R2 on new rows from held-out predictions, without the bias of a ratio of few rows.

    Parameters
    ----------
    truth, predicted : arrays of shape (n, k)
        Targets, and predictions by models that had not seen them; the mean over k is returned.
    weight : array of shape (n,)
        Larger than 0.
    labels : int array of shape (n,), optional
        Groups of rows whose targets may depend on each other; by default every row is alone.

    Notes
    -----
    R2 of new rows is :math:`1 - E[e^2] / \operatorname{var} y`. Held-out errors estimate the
    numerator without bias, but ``r2_score`` of the same rows is too small by terms of order 1/n:

    1. The squares about the mean of the same rows are too small, for they have made that mean:
       a fold's mean as prediction gets about -2/n where new rows say -1/n. Half the squared
       difference of two independent rows has the expectation :math:`\operatorname{var} y` whatever
       their weights, so its weighted mean over all pairs of rows of different groups has it, too.
       With :math:`W` the total weight, :math:`W_g` that of a group, and :math:`S, S_g` the weighted
       sums of squares about the mean of all rows and of the group, it is
       :math:`(W S - \sum_g W_g S_g) / (W^2 - \sum_g W_g^2)`; for single rows of weight one the
       familiar :math:`S / (n - 1)`.
    2. A ratio of two unbiased means is not unbiased. With a and b the sums of the weighted squared
       errors and deviations of a group, and G groups, the expansion of a quotient around its
       expectations gives :math:`E[\bar a / \bar b] = E a / E b \, (1 + c_{bb} - c_{ab})` up to
       terms of :math:`G^{-2}`, where :math:`c_{ab} = \operatorname{cov}(a, b) / (G \bar a \bar b)`.
       Beale's estimate takes it away as :math:`(1 + c_{ab}) / (1 + c_{bb})`, which stays between
       bounds where single rows decide everything ([Tin1965]_). Where the mean is predicted, a and b
       are proportional and nothing changes.

    Both vanish as 1/n. Accuracy is a mean over rows, and needs neither.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.estimators.table_scoring import held_out_r2
    >>> y = np.array([[0.0], [0.0], [4.0], [4.0]])
    >>> others = (y.sum() - y) / 3  # the mean of the other rows
    >>> round(held_out_r2(y, others, np.ones(4)), 12)
    -0.333333333333
    """
    groups = np.arange(len(truth)) if labels is None else np.unique(labels, return_inverse=True)[1]
    n_groups = int(groups.max()) + 1

    def by_group(values: FloatArray) -> FloatArray:
        total = np.zeros((n_groups, values.shape[1]))
        np.add.at(total, groups, weight[:, None] * values)
        return total

    deviation = truth - np.average(truth, axis=0, weights=weight)
    a, b = by_group((truth - predicted) ** 2), by_group(deviation**2)
    W = by_group(np.ones((len(truth), 1)))
    if n_groups < 2 or not np.all(b.sum(axis=0) > 0.0) or not np.all(a.sum(axis=0) > 0.0):
        return float(r2_score(truth, predicted, sample_weight=weight))
    within = b - by_group(deviation) ** 2 / W
    pairs = W.sum() * b.sum(axis=0) - (W * within).sum(axis=0)
    variance = pairs / (W.sum() ** 2 - (W**2).sum())
    ratio = a.sum(axis=0) / W.sum() / variance
    a, b = a / a.mean(axis=0) - 1.0, b / b.mean(axis=0) - 1.0
    count = n_groups * (n_groups - 1)
    ratio *= (1.0 + (a * b).sum(axis=0) / count) / (1.0 + (b * b).sum(axis=0) / count)
    return float(1.0 - ratio.mean())


class HeldOut(BaseEstimator):
    """A stand-in whose predictions are known: what scorers see of held-out rows.

    Parameters
    ----------
    predictions : mapping from "predict", "predict_proba", ... to functions that return the result
    classes : array of shape (n_classes,), optional
        For a classifier.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics import get_scorer
    >>> from lssvm.estimators.table_scoring import HeldOut
    >>> known = HeldOut({"predict": lambda: np.array([0, 1])}, np.array([0, 1]))
    >>> known.score_by(get_scorer("accuracy"), np.array([0, 0]), np.ones(2))
    0.5
    """

    def __init__(
        self, predictions: Mapping[str, Callable[[], Any]], classes: AnyArray | None = None
    ) -> None:
        self.predictions = predictions
        self.classes = classes
        if classes is not None:
            self.classes_ = classes

    def score_by(self, scorer: Callable[..., float], y: Any, weight: FloatArray) -> float:
        """Return the score of the known predictions for targets y (n,), weights (n,)."""
        # Functions of people's own need not know weights where there are none.
        weights = {"sample_weight": weight} if np.ptp(weight) > 0 else {}
        return float(scorer(self, np.zeros((len(y), 1)), y, **weights))

    def predict(self, X: Any) -> Any:
        """Return the held-out predictions."""
        return self.predictions["predict"]()

    def predict_proba(self, X: Any) -> Any:
        """Return the held-out probabilities."""
        return self.predictions["predict_proba"]()

    def decision_function(self, X: Any) -> Any:
        """Return the held-out decision values."""
        return self.predictions["decision_function"]()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.classes is None else "classifier"
        tags.classifier_tags = None if self.classes is None else ClassifierTags()
        return tags
