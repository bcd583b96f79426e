"""Scores of held-out outputs, and what they decide and calibrate: probabilities and intervals."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, get_scorer, r2_score
from sklearn.utils import ClassifierTags

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, tie_scores
from lssvm._core.errors import InvalidInputError
from lssvm.fitting.record import Step
from lssvm.fitting.table_record import Problem, TableFit, local_error
from lssvm.fitting.table_work import Clock
from lssvm.tasks import Classes, Numbers
from lssvm.uncertainty import OutOfFold, Probabilities, Residuals, calibrate, scaled_residuals
from lssvm.uncertainty.probabilities import calibrate_log_odds

_NEARBY = (25, 50, 100, 200)  # training rows that a local error is the average of
_SPENT = 0.7  # of the time limit: then there is no time for nearby rows
_EVEN = 1e-3  # range of log-odds below which they say nothing
_ENOUGH = 100  # rows below which there are no local errors
_OUTPUTS = 400_000  # outputs that probabilities are made of when that share is spent: a second


def read_scorer(scoring: Any) -> Callable[..., float] | None:
    """Return scikit-learn's scorer of a name, a scorer as it is, and None for None.

    Examples
    --------
    >>> from lssvm.fitting.table_scoring import read_scorer
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
    other_classes : bool, default=True
        Whether the probability of one of several classes may depend on the outputs of the others.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting.table_scoring import ClassScorer
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
    other_classes: bool = True

    @property
    def chooses(self) -> bool:
        """Whether a score was given."""
        return self.scoring is not None

    def loss(self, outputs: FloatArray, rows: IntArray) -> float:
        """Return the score with a minus sign, infinite where it has no value."""
        try:
            score = self.score(outputs, rows)
        except ValueError:  # a class that these rows have not
            return np.inf
        return np.inf if np.isnan(score) else -score

    def score(self, outputs: FloatArray, rows: IntArray) -> float:
        """Return the score of outputs (m, k) for some rows (m,); NaN for ranks without a class."""
        labels, weight = self.labels[rows], self.weight[rows]
        scorer = read_scorer(self.scoring)
        if scorer is None:
            return float(accuracy_score(labels, self.task.decide(outputs), sample_weight=weight))
        if self.ranks and len(np.unique(labels)) < len(self.task.classes):
            return float("nan")
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
        known = HeldOut(
            {
                "predict": lambda: classes[self.task.decide(outputs)],
                "predict_proba": lambda: self.calibrated(outputs, rows).of(outputs, None),
                "decision_function": lambda: outputs[:, 0] if outputs.shape[1] == 1 else outputs,
            },
            classes,
        )
        return known.score_by(scorer, classes[self.labels[rows]], self.weight[rows])

    @cached_property
    def ranks(self) -> bool:
        """Whether the scorer looks at probabilities or decision values, and not at decisions."""
        scorer = read_scorer(self.scoring)
        if scorer is None:
            return False
        called: list[str] = []
        n = 2 * len(self.task.classes)
        labels = np.arange(n) % len(self.task.classes)
        even = np.full((n, len(self.task.classes)), 1.0 / len(self.task.classes))
        # Scorers with pos_label=1 refuse other names before they ask for anything.
        for classes in (self.task.classes, np.arange(len(self.task.classes))):

            def decided(classes: AnyArray = classes) -> AnyArray:
                called.append("predict")
                return np.asarray(classes[labels])

            known = HeldOut(
                {
                    "predict": decided,
                    "predict_proba": lambda: even,
                    "decision_function": lambda: even[:, 0] if even.shape[1] == 2 else even,
                },
                classes,
            )
            with suppress(ValueError, TypeError):
                known.score_by(scorer, classes[labels], np.ones(n))
        return not called

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

        Of two classes the threshold is moved to one of 21 quantiles of the outputs, in the middle
        between two rows; of several classes the logarithms of their shares are taken off the
        log-odds, in quarters.
        """
        labels, k = self.labels[rows], outputs.shape[1]
        if self.ranks:
            return np.zeros(k)
        if k == 1:
            places = _between_rows(outputs[:, 0], np.linspace(0.0, 1.0, 23)[1:-1])
            shifts = [np.zeros(1), *(-np.array([t]) for t in places[np.argsort(np.abs(places))])]
        else:
            share = np.bincount(labels, self.weight[rows], minlength=k) + 1e-9
            shifts = [-a * np.log(share / share.sum()) for a in (0.0, 0.25, 0.5, 0.75, 1.0)]
        losses = tie_scores(np.array([self.loss(outputs + one, rows) for one in shifts]))
        best = int(np.argmin(losses))
        clear = np.isfinite(losses[best]) and losses[best] < losses[0] - 1e-12
        return shifts[best] if clear else shifts[0]

    def calibrated(self, outputs: FloatArray, rows: IntArray, threads: int = 1) -> Probabilities:
        """Return the maps from outputs of some rows to probabilities."""
        # Log-odds that hardly vary are rounding: a slope would make probabilities of it.
        even = np.ptp(outputs, axis=0) < _EVEN if len(outputs) else np.zeros(0)
        outputs = np.where(even, 0.0, outputs) if even.any() else outputs
        table = OutOfFold(outputs, self.labels[rows], self.weight[rows])
        code = self.task.code
        if code.n_classes > 2 and self.other_classes:
            known = calibrate_log_odds(table, code, threads)
        else:
            decoding = None if code.n_classes == 2 else "argmax"
            known = calibrate(table, code, decoding, threads=threads)
        # Decisions that a score has moved need not be those of the largest probability.
        return replace(known, agrees=not self.chooses)

    def calibrate(
        self, fit: TableFit, problem: Problem, clock: Clock, threads: int = 1
    ) -> TableFit:
        """Return the fit with the score and the probabilities of its held-out outputs."""
        outputs, rows = known_outputs(fit, learned=True)
        if clock.over(_SPENT):
            step = -(-outputs.size // _OUTPUTS)
            outputs, rows = outputs[::step], rows[::step]
        maps = self.calibrated(outputs, rows, threads)
        return with_score(fit, self.score(*known_outputs(fit)), maps)


def _between_rows(values: FloatArray, levels: FloatArray) -> FloatArray:
    """Return quantiles of values (n,), each in the middle between two different values.

    Rounding would decide on the side of a row that is a quantile itself.
    """
    tied = tie_scores(values)
    distinct = np.unique(tied)
    lower = np.searchsorted(distinct, np.quantile(tied, levels, method="lower"))
    lower = np.minimum(lower, len(distinct) - 2)
    return (distinct[lower] + distinct[lower + 1]) / 2.0 if len(distinct) > 1 else distinct[:0]


@dataclass(frozen=True, eq=False)
class NumberScorer:
    """Scores of the outputs of a regressor.

    Attributes
    ----------
    task : Numbers
        With the units of the targets.
    targets : array of shape (n, k)
    weight : array of shape (n,)
    scoring : str, callable or None
        A scorer of scikit-learn; None is R2 without its bias (`held_out_r2`), and the mean squared
        error as a loss.
    labels : int array of shape (n,) or None
        Groups of the rows, whose targets may depend on each other.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting.table_scoring import NumberScorer
    >>> from lssvm.tasks import Numbers
    >>> scorer = NumberScorer(Numbers(1), np.array([[1.0], [3.0]]), np.ones(2))
    >>> scorer.score(np.array([[1.0], [2.0]]), np.arange(2))
    0.75
    """

    task: Numbers
    targets: FloatArray
    weight: FloatArray
    scoring: Any = None
    labels: IntArray | None = None

    @property
    def chooses(self) -> bool:
        """Whether a score was given."""
        return self.scoring is not None

    @property
    def ranks(self) -> bool:
        """Whether outputs need one scale: numbers have it."""
        return False

    def loss(self, outputs: FloatArray, rows: IntArray) -> float:
        """Return the mean squared error, or the chosen score with a minus sign."""
        if self.chooses:
            return -self.score(outputs, rows)
        gap = self.targets[rows] - self.task.mean(outputs)
        return float(np.average((gap**2).mean(axis=1), weights=self.weight[rows]))

    def score(self, outputs: FloatArray, rows: IntArray) -> float:
        """Return the score of outputs (m, k) for some rows (m,); NaN for fewer than two."""
        targets, weight = self.targets[rows], self.weight[rows]
        if len(targets) < 2:
            return float("nan")
        scorer = read_scorer(self.scoring)
        if scorer is None:
            labels = None if self.labels is None else self.labels[rows]
            return held_out_r2(targets, self.task.mean(outputs), weight, labels)
        targets = targets[:, 0] if self.task.single else targets
        known = HeldOut({"predict": lambda: self.task.predict(outputs)})
        return known.score_by(scorer, targets, weight)

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

    def calibrate(
        self, fit: TableFit, problem: Problem, clock: Clock, threads: int = 1
    ) -> TableFit:
        """Return the fit with the score and the residuals of its held-out outputs."""
        outputs, rows = known_outputs(fit)
        gap, weight = problem.Y[rows] - outputs, problem.weight[rows]
        nearby, local = _local_scale(fit, problem, gap, rows, clock)
        groups = None if problem.labels is None else problem.labels[rows]
        residuals = scaled_residuals(gap, local, weight, groups)
        residuals = replace(residuals, nearby=nearby, two_sided=True)
        scorer = self.smeared(outputs, rows)
        return with_score(replace(fit, task=scorer.task), scorer.score(outputs, rows), residuals)

    def smeared(self, outputs: FloatArray, rows: IntArray) -> NumberScorer:
        """Return the scorer whose task predicts means of targets that were learned as logarithms.

        Exponentials of held-out outputs (m, k) are multiplied by the number that makes their
        squared error smallest, in the manner of [Duan1983]_.
        """
        task = self.task
        if task.smearing is None or not len(rows):
            return self
        values, weight = task.in_units(outputs), self.weight[rows][:, None]
        products = weight * values * self.targets[rows]
        factor = products.sum(axis=0) / (weight * values**2).sum(axis=0)
        return replace(self, task=replace(task, smearing=factor))


def make_scorer(
    problem: Problem, task: Classes | Numbers, scoring: Any, other_classes: bool = True
) -> ClassScorer | NumberScorer:
    """Return what scores held-out outputs of a problem."""
    if isinstance(task, Classes):
        assert problem.classes is not None
        return ClassScorer(task, problem.classes, problem.score_weight, scoring, other_classes)
    return NumberScorer(task, task.in_units(problem.Y), problem.weight, scoring, problem.labels)


def choose_target_scale(
    targets: FloatArray, score: Callable[[bool], float], scoring: Any = None
) -> Step | None:
    """Return the step that takes logarithms of the targets, or has tried to.

    Logarithms are tried where targets are positive and skewed, and taken where held-out rows score
    better with them.

    Parameters
    ----------
    targets : array of shape (n, k)
        Of rows of positive weight.
    score : callable
        Fits without logarithms (False) or with them (True), and returns the score of held-out rows.
    scoring : str, callable or None
        What the score is; None for R2.

    Returns
    -------
    Step or None
        None where logarithms are not tried.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting.table_scoring import choose_target_scale
    >>> prices = np.exp(np.random.default_rng(0).normal(size=(100, 1)))
    >>> step = choose_target_scale(prices, lambda log: 0.8 if log else 0.6)
    >>> step.taken, round(step.gain, 2)
    (True, 0.5)
    >>> choose_target_scale(np.log(prices), lambda log: 0.8) is None
    True
    """
    if not _skewed(targets):
        return None
    begin = time.monotonic()
    plain, log = score(False), score(True)
    # A score without an upper end has no loss that falls by a share.
    gain = (log - plain) / (1.0 - plain) if scoring is None and plain < 1.0 else np.nan
    took = time.monotonic() - begin
    return Step("target scale", "logarithms of the target", gain, 0.0, took, log > plain)


def _skewed(targets: FloatArray) -> bool:
    """Return whether all targets (n, k) are positive and less skewed as logarithms."""
    if not (targets > 0).all():
        return False
    both = []
    for values in (targets, np.log(targets)):
        z = values - values.mean(axis=0)
        spread = np.sqrt(np.mean(z**2, axis=0))
        both.append(np.abs(np.mean((z / np.where(spread > 0, spread, 1.0)) ** 3, axis=0)))
    return bool((both[1] < both[0]).all())


def known_outputs(fit: TableFit, *, learned: bool = False) -> tuple[FloatArray, IntArray]:
    """Return the held-out outputs (m, k) that are known, and the numbers of their rows.

    Those of rows that made a metric are among them only where ``learned`` is true.
    """
    held_out = fit.state.held_out
    known = np.asarray(np.isfinite(held_out).all(axis=1))
    if not learned:
        known[fit.state.learned] = False
    rows = np.flatnonzero(known)
    return held_out[rows], rows


def with_score(fit: TableFit, score: float, calibrated: Probabilities | Residuals) -> TableFit:
    """Return the fit with the score of held-out rows, and with what they calibrate."""
    assert fit.tuning is not None
    return replace(fit, tuning=replace(fit.tuning, best_score=score), calibrated=calibrated)


def _local_scale(
    fit: TableFit, problem: Problem, gap: FloatArray, rows: IntArray, clock: Clock
) -> tuple[int, FloatArray]:
    """Return how many nearby rows a local error is made of, and the local errors (m, k) of rows.

    Parameters
    ----------
    fit : Fit
    problem : Problem
        Its n rows, or a sample of very many.
    gap : array of shape (m, k)
        Held-out residuals of some of them.
    rows : int array of shape (m,)
    clock : Clock
        Without time for nearby rows it is the error of the leaves.

    Notes
    -----
    The choice is the largest likelihood of normal residuals whose standard deviation is the local
    error times a constant; nearby rows have to gain two standard errors over the leaves.
    """
    n, weight = len(fit.state.held_out), problem.weight[rows]
    tiny = np.finfo(np.float64).eps ** 2  # of the variance: rounding

    def unlikely(local: FloatArray) -> FloatArray:
        square = np.maximum(local**2, tiny)
        ratio = gap**2 / square
        constant = np.maximum(np.average(ratio, axis=0, weights=weight), tiny)
        return np.asarray((ratio / constant + np.log(square * constant)).sum(axis=1))

    in_leaves = all(member.in_leaves for member in fit.members)
    known = in_leaves and all(one.rows for m in fit.members for one in m.local.partitions)
    error = local_error(fit, None if known or not problem.inputs else problem.inputs, n)
    flat = np.broadcast_to(error[rows], gap.shape)
    best, chosen, local = np.zeros(len(gap)), 0, flat
    if len(gap) < _ENOUGH or not known:
        return chosen, local
    base = unlikely(flat)
    if clock.over(_SPENT):
        return chosen, local
    counts = [c for c in _NEARBY if 4 * c <= len(gap)]
    for count, errors in zip(counts, local_error(fit, None, n, counts), strict=True):
        near = errors[rows]
        gain = base - unlikely(near)
        if gain.mean() > max(best.mean(), 2.0 * gain.std() / np.sqrt(len(gain))):
            best, chosen, local = gain, count, near
    return chosen, local


def held_out_r2(
    targets: FloatArray, predicted: FloatArray, weight: FloatArray, labels: IntArray | None = None
) -> float:
    r"""Estimate R2 on new rows from held-out predictions, without the bias of a ratio of few rows.

    Parameters
    ----------
    targets, predicted : arrays of shape (n, k)
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
    >>> from lssvm.fitting.table_scoring import held_out_r2
    >>> y = np.array([[0.0], [0.0], [4.0], [4.0]])
    >>> others = (y.sum() - y) / 3  # the mean of the other rows
    >>> round(held_out_r2(y, others, np.ones(4)), 12)
    -0.333333333333
    """
    groups = (
        np.arange(len(targets)) if labels is None else np.unique(labels, return_inverse=True)[1]
    )
    n_groups = int(groups.max()) + 1

    def by_group(values: FloatArray) -> FloatArray:
        total = np.zeros((n_groups, values.shape[1]))
        np.add.at(total, groups, weight[:, None] * values)
        return total

    deviation = targets - np.average(targets, axis=0, weights=weight)
    a, b = by_group((targets - predicted) ** 2), by_group(deviation**2)
    W = by_group(np.ones((len(targets), 1)))
    if n_groups < 2 or not np.all(b.sum(axis=0) > 0.0) or not np.all(a.sum(axis=0) > 0.0):
        return float(r2_score(targets, predicted, sample_weight=weight))
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
    >>> from lssvm.fitting.table_scoring import HeldOut
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
        with np.errstate(invalid="ignore"):  # what has no value is NaN
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
