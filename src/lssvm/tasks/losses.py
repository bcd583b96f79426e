"""How held-out outputs are scored, and losses that coefficients may minimise.

First losses of rows, then scikit-learn's scorers, then losses in the place of the squares.

A loss holds no data. What it compares outputs with are `Targets`: numbers, class numbers and
weights of the same rows, wherever they are (arrays of NumPy, or of a device). Scores that differ by
rounding alone are tied.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer

from lssvm._core.arrays import Array, FloatArray, IntArray, get_namespace, pick, tie_scores
from lssvm._core.errors import InvalidInputError, not_known, not_usable


@dataclass(frozen=True, eq=False)
class Targets:
    """What is known of some rows."""

    Y: Array
    labels: Array | None = None
    weight: Array | None = None
    sample_weight: FloatArray | None = None
    X: Any = None

    def take(self, rows: IntArray) -> Targets:
        """Return what is known of some of the rows."""
        columns = (self.Y, self.labels, self.weight, self.sample_weight, self.X)
        return Targets(*(pick(column, rows) for column in columns))


class Loss(Protocol):
    """From the outputs of c models on t rows to c numbers; lower is better."""

    def __call__(self, outputs: Array, targets: Targets) -> FloatArray:
        """Return the losses (c,) of outputs of shape (c, t, k)."""


@runtime_checkable
class RowLoss(Protocol):
    """A loss that is a mean over rows, so that sums over blocks of rows are enough."""

    def __call__(self, outputs: Array, targets: Targets) -> FloatArray:
        """Return the losses (c,) of outputs of shape (c, t, k)."""
        values, weight = self.rows(outputs, targets), targets.weight
        mean = values.mean(axis=1) if weight is None else values @ weight / weight.sum()
        return self.finish(np.asarray(mean))

    def rows(self, outputs: Array, targets: Targets) -> Array:
        """Return a number for each row, shape (c, t)."""

    def finish(self, mean: FloatArray) -> FloatArray:
        """Turn weighted means of those numbers into losses."""
        return mean


@dataclass(frozen=True)
class SquaredError(RowLoss):
    """Mean squared error over rows and outputs."""

    def rows(self, outputs: FloatArray, targets: Targets) -> FloatArray:
        """Return the mean squares of each row, shape (c, t)."""
        xp = get_namespace(outputs)
        return xp.mean((outputs - targets.Y[None, ...]) ** 2, axis=2)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class AbsoluteError(RowLoss):
    """Mean absolute error over rows and outputs: a few wrong targets do not decide."""

    def rows(self, outputs: FloatArray, targets: Targets) -> FloatArray:
        """Return the mean absolute errors of each row, shape (c, t)."""
        xp = get_namespace(outputs)
        return xp.mean(xp.abs(outputs - targets.Y[None, ...]), axis=2)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Misclassification(RowLoss):
    """Minus the share of rows whose class is right."""

    decide: Callable[[Array], Array]

    def rows(self, outputs: Array, targets: Targets) -> Array:
        """Return 1 where a row is right, shape (c, t)."""
        xp = get_namespace(outputs)
        c, t, k = outputs.shape
        decided = xp.reshape(self.decide(xp.reshape(outputs, (c * t, k))), (c, t))
        labels = xp.astype(targets.labels, decided.dtype)[None, :]
        return xp.astype(decided == labels, outputs.dtype)

    def finish(self, mean: FloatArray) -> FloatArray:
        """Return minus the share; `lssvm.tuning.Losses` takes equal means of folds for equal."""
        return -mean


class _Answers(BaseEstimator):
    """An estimator whose answers are known already, for scorers to ask."""

    def __init__(self, prediction: Any = None, scores: Any = None) -> None:
        self.prediction = prediction
        self.scores = scores

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Any:
        return self.prediction


class _NumberAnswers(RegressorMixin, _Answers):
    pass


class _ClassAnswers(ClassifierMixin, _Answers):
    classes_: Any

    def decision_function(self, X: Any) -> Any:
        return self.scores


class Answering(Protocol):
    """The part of a task that a scorer needs."""

    @property
    def classes(self) -> Any:
        """Class labels; None for numbers."""

    def predict(self, raw: Any) -> Any:
        """Return predictions (t,) from outputs (t, k)."""

    def scores(self, raw: Any) -> Any:
        """Return decision values from outputs (t, k)."""

    def original_targets(self, targets: Targets) -> Any:
        """Return the targets as the caller gave them."""


class ScorerLoss:
    """Minus a score of scikit-learn."""

    def __init__(self, scoring: Any, task: Answering) -> None:
        try:
            self.scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
        except ValueError as error:
            raise InvalidInputError(f"scoring={scoring!r} is not known. {error}") from error
        if not callable(self.scorer):
            raise InvalidInputError(
                f"scoring={scoring!r} is not usable: give the name of a scikit-learn scorer or a "
                "callable scorer(estimator, X, y)."
            )
        self.task = task

    def __call__(self, outputs: FloatArray, targets: Targets) -> FloatArray:
        """Return the losses (c,)."""
        losses = np.empty(len(outputs))
        y = self.task.original_targets(targets)
        X = np.arange(len(targets.Y))[:, None] if targets.X is None else targets.X
        extra = {} if targets.sample_weight is None else {"sample_weight": targets.sample_weight}
        for i, raw in enumerate(outputs):
            if not np.all(np.isfinite(raw)):
                losses[i] = np.inf
                continue
            if self.task.classes is None:
                answers: _Answers = _NumberAnswers(self.task.predict(raw))
            else:
                answers = _ClassAnswers(self.task.predict(raw), tie_scores(self.task.scores(raw)))
                answers.classes_ = self.task.classes
            losses[i] = -self._score(answers, X, y, extra)
        return losses

    def defined(self, targets: Targets) -> bool:
        """Return whether rows that may lack a class have a score."""
        classes, y = self.task.classes, self.task.original_targets(targets)
        if classes is None or len(np.unique(y)) in (0, len(classes)):
            return True
        with warnings.catch_warnings(action="error", category=UndefinedMetricWarning):
            warnings.filterwarnings("error", "No positive class", UserWarning)
            try:
                return bool(np.isfinite(self(np.zeros((1, *targets.Y.shape)), targets)[0]))
            except (UserWarning, InvalidInputError):
                return False

    def _score(self, answers: _Answers, X: Any, y: Any, extra: dict[str, Any]) -> float:
        try:
            return float(self.scorer(answers, X, y, **extra))
        except AttributeError as error:
            raise InvalidInputError(
                f"The scorer {self.scorer!r} asks for what the model does not give ({error}). Use "
                "a scorer of predictions or decision values."
            ) from error
        except (TypeError, ValueError) as error:
            if extra and isinstance(error, TypeError):
                raise InvalidInputError(
                    f"The scorer {self.scorer!r} cannot be used with sample weights ({error}). Use "
                    "one that takes sample_weight, or fit without weights."
                ) from error
            raise InvalidInputError(
                f"The scorer {self.scorer!r} cannot score these targets ({error}). Choose another "
                "one."
            ) from error


LOSSES = ("squared", "huber", "absolute", "weighted")
"""The losses that the regressors know by name."""


class DifferentiableLoss:
    r"""A loss L in the place of the squares; subclass it for one of your own.

    The model minimises :math:`\tfrac12 w^T w + C \sum_i s_i L(e_i)` (eq. (3.51) of [Suykens2002]_;
    squares are :math:`L(e) = e^2/2`), so that :math:`\alpha_i = C s_i L'(e_i)`, eqs. (3.52)-(3.53).
    For numbers :math:`e = y - f(x)`; for classes :math:`e = 1 - y f(x)` with y = 1 or -1, the error
    of eq. (3.1). A regressor takes it as ``loss``, a classifier as ``Coding(loss=...)``; C and
    gamma are then tuned as those of the least squares model.

    Notes
    -----
    L has to be convex. Every step solves one least squares problem with the weights
    :math:`h_i = L''(e_i)` and the targets :math:`f_i + L'(e_i)/h_i`; where the objective does not
    fall, the curvature is raised and the step is taken again.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.solvers import DifferentiableLoss
    >>> class LogCosh(DifferentiableLoss):
    ...     def value(self, error):
    ...         return np.logaddexp(error, -error)
    ...
    ...     def derivative(self, error):
    ...         return np.tanh(error)
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> y[7] = 30.0
    >>> model = LSSVR(100.0, gamma=1.0, loss=LogCosh()).fit(X, y)
    >>> bool(np.median(np.abs(model.predict(X) - np.sin(X[:, 0]))) < 0.1)
    True
    """

    for_classes: ClassVar[bool | None] = None  # True: classes only; False: numbers only

    def value(self, error: FloatArray) -> FloatArray:
        """Return L of errors, element by element.

        Parameters
        ----------
        error : array of shape (n,)
            Errors of rows.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method 'value': write one.")

    def derivative(self, error: FloatArray) -> FloatArray:
        """Return L' of errors, element by element.

        Parameters
        ----------
        error : array of shape (n,)
            Errors of rows.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method 'derivative': write one.")

    def curvature(self, error: FloatArray) -> FloatArray:
        """Return L'' of errors, or another positive curvature; by default by differences.

        Parameters
        ----------
        error : array of shape (n,)
            Errors of rows.
        """
        step = 1e-5 * np.maximum(1.0, np.abs(error))
        rise = self.derivative(error + step) - self.derivative(error - step)
        return np.asarray(rise / (2.0 * step))


@dataclass(frozen=True)
class Pinball(DifferentiableLoss):
    r"""The loss of a quantile: :math:`q e` where e > 0, :math:`(q - 1) e` where e < 0.

    The model of a regressor estimates the quantile of the targets given the inputs.

    Parameters
    ----------
    quantile : float, default=0.5
        q, between 0 and 1.
    width : float, default=1e-2
        Errors below this size have a parabola, which makes the loss differentiable; in units of y.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.solvers import Pinball
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(size=200)
    >>> upper = LSSVR(1.0, gamma=0.3, loss=Pinball(0.9)).fit(X, y)
    >>> bool(0.85 < np.mean(y < upper.predict(X)) < 0.95)
    True
    """

    quantile: float = 0.5
    width: float = 1e-2
    for_classes: ClassVar[bool | None] = False

    def __post_init__(self) -> None:
        if not (0.0 < self.quantile < 1.0 and self.width > 0.0):
            needed = "give a quantile between 0 and 1, and a positive width."
            raise not_usable("Pinball", (self.quantile, self.width), needed)

    def value(self, error: FloatArray) -> FloatArray:
        """Return the loss.

        Parameters
        ----------
        error : array of shape (n,)
            Errors of rows.
        """
        size = np.abs(error)
        near = 0.5 * (error**2 / self.width + self.width)
        even = np.where(size < self.width, near, size)
        return np.asarray(0.5 * even + (self.quantile - 0.5) * error)

    def derivative(self, error: FloatArray) -> FloatArray:
        """Return its derivative.

        Parameters
        ----------
        error : array of shape (n,)
            Errors of rows.
        """
        return np.asarray(0.5 * np.clip(error / self.width, -1.0, 1.0) + self.quantile - 0.5)

    def curvature(self, error: FloatArray) -> FloatArray:
        """Return the curvature of a parabola that touches the loss and lies above it.

        Parameters
        ----------
        error : array of shape (n,)
            Errors of rows.
        """
        return np.asarray(0.5 / np.maximum(np.abs(error), self.width))


@dataclass(frozen=True)
class Logistic(DifferentiableLoss):
    r"""The loss of logistic regression, :math:`\log(1 + e^{-y f})`, for classes.

    Examples
    --------
    >>> from lssvm import LSSVC
    >>> from lssvm.codes import Coding
    >>> from lssvm.datasets import load_ripley
    >>> from lssvm.solvers import Logistic
    >>> ripley = load_ripley()
    >>> X, y = ripley.data[ripley.train], ripley.target[ripley.train]
    >>> model = LSSVC(1.0, gamma=5.0, multiclass=Coding(loss=Logistic())).fit(X, y)
    >>> bool(model.score(X, y) > 0.85)
    True
    """

    for_classes: ClassVar[bool | None] = True

    def value(self, error: FloatArray) -> FloatArray:
        """Return the loss.

        Parameters
        ----------
        error : array of shape (n,)
            1 - y f of rows.
        """
        return np.asarray(np.logaddexp(0.0, error - 1.0))

    def derivative(self, error: FloatArray) -> FloatArray:
        """Return its derivative.

        Parameters
        ----------
        error : array of shape (n,)
            1 - y f of rows.
        """
        return np.asarray(special.expit(error - 1.0))

    def curvature(self, error: FloatArray) -> FloatArray:
        """Return its second derivative.

        Parameters
        ----------
        error : array of shape (n,)
            1 - y f of rows.
        """
        return np.asarray(special.expit(error - 1.0) * special.expit(1.0 - error))


def check_loss(loss: Any, classes: bool) -> None:
    """Refuse a loss that is not known, or not one for such targets."""
    if isinstance(loss, DifferentiableLoss):
        if loss.for_classes not in (None, classes):
            needed = "classes" if loss.for_classes else "numbers as targets"
            raise not_usable("loss", loss, f"it needs {needed}.")
    elif loss not in (("squared",) if classes else LOSSES):
        known = "'squared'" if classes else f"one of {LOSSES}"
        needed = f"choose {known}, or a lssvm.solvers.DifferentiableLoss."
        raise not_known("loss", loss, needed)


def loss_name(loss: str | DifferentiableLoss) -> str:
    """Return what a record calls a loss."""
    return loss if isinstance(loss, str) else type(loss).__name__


def best_threshold(
    scores: FloatArray, targets: FloatArray, weight: FloatArray | None = None
) -> float:
    """Return the threshold of the fewest errors, or one as good that is nearer to zero.

    Targets of +1 and -1 put the threshold of a least squares classifier half-way between the
    classes, which is best only where both have the same shape. Choosing the cut by its errors is
    the advice of [Hastie2009], section 4.3, for linear discriminants; here the outputs are those
    of models that did not see the rows. Among the cuts whose weight of errors lies within half a
    standard error of the smallest, the one nearest to zero is taken: as for C and gamma, what
    cannot be told apart is decided by least squares.

    Time O(n log n), memory O(n).
    """
    used = np.flatnonzero(np.isfinite(scores) & (targets != 0))
    mass = np.ones(len(used)) if weight is None else np.asarray(weight, dtype=np.float64)[used]
    positive = targets[used] > 0
    if not (positive.any() and not positive.all()):
        return 0.0
    order = np.argsort(scores[used], kind="stable")
    values, signed = scores[used][order], np.where(positive, mass, -mass)[order]
    errors = mass[~positive].sum() + np.concatenate([[0.0], np.cumsum(signed)])
    share = np.maximum(errors / mass.sum(), 0.0)
    ties = np.concatenate([[False], values[1:] == values[:-1], [False]])  # no cut between equals
    share[ties] = np.inf
    smallest = float(share.min())
    n_effective = mass.sum() ** 2 / (mass**2).sum()
    alike = share <= smallest + 0.5 * np.sqrt(smallest * (1.0 - smallest) / n_effective) + 1e-12
    if alike[np.searchsorted(values, 0.0, side="right")]:
        return 0.0
    cuts = np.concatenate([[values[0] - 1.0], (values[1:] + values[:-1]) / 2, [values[-1] + 1.0]])
    return float(cuts[alike][np.argmin(np.abs(cuts[alike]))])


def middle_threshold(
    outputs: FloatArray, targets: FloatArray, weight: FloatArray | None = None
) -> float:
    """Return the point half-way between the mean outputs of two classes [Suykens2002, 3.3.1]."""
    mass = np.ones(len(targets)) if weight is None else weight
    sides = [mass * (targets > 0), mass * (targets < 0)]
    if not all(side.sum() > 0 for side in sides):
        return 0.0
    return float(0.5 * sum(side @ outputs / side.sum() for side in sides))


# -- scores as sums over blocks of rows ------------------------------------------------------------


def hits(task: Answering, blocks: Iterable[tuple[Any, FloatArray]]) -> FloatArray:
    """Return the weight of the rows whose class is right, and of all."""
    right = total = 0.0
    for block, raw in blocks:
        hit = task.predict(raw) == block.target
        weight = np.ones(len(hit)) if block.weight is None else block.weight
        right, total = right + float(weight @ hit), total + float(weight.sum())
    return np.array([right, total])


@dataclass(frozen=True, eq=False)
class Spread:
    """Weight, means and squares of targets, and squares of residuals: they add."""

    weight: float
    mean: FloatArray
    squares: FloatArray
    residual: FloatArray

    def __add__(self, other: Spread) -> Spread:
        if self.weight == 0.0 or other.weight == 0.0:
            return other if self.weight == 0.0 else self
        total, step = self.weight + other.weight, other.mean - self.mean
        return Spread(
            total,
            self.mean + step * other.weight / total,
            self.squares + other.squares + step**2 * self.weight * other.weight / total,
            self.residual + other.residual,
        )

    def r_squared(self) -> float:
        """Return the mean over outputs, as scikit-learn's `r2_score`."""
        safe = np.where(self.squares > 0, self.squares, 1.0)
        ratio = np.where(self.squares > 0, self.residual / safe, self.residual > 0)
        return float(np.mean(1.0 - ratio))


def spread_of(blocks: Iterable[tuple[Any, FloatArray]]) -> Spread:
    """Return the spread of the targets and of what the outputs leave of it."""
    total = Spread(0.0, np.zeros(1), np.zeros(1), np.zeros(1))
    for block, raw in blocks:
        Y = np.asarray(block.target, dtype=np.float64).reshape(len(raw), -1)
        s = np.ones(len(Y)) if block.weight is None else block.weight
        weight = float(s.sum())
        if weight > 0.0:
            mean = s @ Y / weight
            total += Spread(weight, mean, s @ (Y - mean) ** 2, s @ (Y - raw) ** 2)
    return total
