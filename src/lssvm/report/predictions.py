"""What a model says about rows it has not seen."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.plots.fitted import class_positions, fitted_model
from lssvm.report.rows import Rows

COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)
MANY = 64  # pairs of classes
INTERVAL_WORK = 4e9  # multiplications for the intervals of one coverage


@dataclass(frozen=True, eq=False)
class ClassPredictions:
    """Classes of rows beside what a classifier says.

    Attributes
    ----------
    classes : array of shape (q,)
    labels, decided : int arrays of shape (n,)
        True and predicted classes as positions in ``classes``.
    probability : array of shape (n, q) or None
    scores : array of shape (n, q) or None
        Larger is more likely; two columns of opposite sign for two classes.
    weight : array of shape (n,) or None
    """

    classes: NDArray[Any]
    labels: IntArray
    decided: IntArray
    probability: FloatArray | None
    scores: FloatArray | None
    weight: FloatArray | None

    @property
    def ranking(self) -> FloatArray | None:
        """What rows are ranked by, shape (n, q): probabilities for several classes, if any."""
        if self.scores is None or (len(self.classes) > 2 and self.probability is not None):
            return self.probability
        return self.scores


@dataclass(frozen=True, eq=False)
class NumberPredictions:
    """Targets of rows beside what a regressor says.

    Attributes
    ----------
    Y, predicted : arrays of shape (n, k)
    weight : array of shape (n,) or None
    names : tuple of str
        Of the outputs.
    """

    Y: FloatArray
    predicted: FloatArray
    weight: FloatArray | None
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Prediction intervals of some rows.

    Attributes
    ----------
    coverage : float
    ends : array of shape (n, k, 2)
    Y : array of shape (n, k)
    """

    coverage: float
    ends: FloatArray
    Y: FloatArray

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which targets are inside, shape (n, k)."""
        return (self.ends[..., 0] <= self.Y) & (self.Y <= self.ends[..., 1])

    @property
    def width(self) -> FloatArray:
        """Mean width for each output, shape (k,)."""
        return np.asarray((self.ends[..., 1] - self.ends[..., 0]).mean(axis=0))


def is_classification(estimator: Any) -> bool:
    """Say whether an estimator predicts classes."""
    return bool(is_classifier(fitted_model(estimator)))


def n_systems(model: Any) -> int:
    """Return how many linear systems a model has: one per pair of classes in one-vs-one."""
    code = getattr(model, "code_", None)
    return 1 if code is None or code.shares_rows else int(code.n_problems)


def slow_to_calibrate(model: Any) -> bool:
    """Say whether probabilities would take very long: a pass over the rows for each of many pairs.

    The scores of a tuned model are at hand.
    """
    return n_systems(model) > MANY and not hasattr(model, "tuning_result_")


def predict_classes(
    estimator: Any, given: Any, y: Any, classes: Any, weight: Any
) -> ClassPredictions:
    """Ask a classifier for everything it can say about rows.

    Parameters
    ----------
    estimator : classifier
    given : any
        Rows as it takes them.
    y : array of shape (n,)
    classes : array of shape (q,)
        All classes; those of the estimator may be fewer.
    weight : array of shape (n,) or None
    """
    labels = class_positions(y, classes, len(y))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        own = np.searchsorted(classes, estimator.classes_)
        decided = np.searchsorted(classes, np.asarray(estimator.predict(given)))
        probability = scores = None
        if hasattr(estimator, "predict_proba") and not slow_to_calibrate(fitted_model(estimator)):
            with suppress(InvalidInputError):  # nothing to calibrate on
                said = np.asarray(estimator.predict_proba(given))
                probability = np.zeros((len(labels), len(classes)))
                probability[:, own] = said
        if hasattr(estimator, "decision_function"):
            raw = np.asarray(estimator.decision_function(given), dtype=np.float64)
            raw = np.column_stack([-raw, raw]) if raw.ndim == 1 else raw
            scores = np.full((len(labels), len(classes)), raw.min() - 1.0)
            scores[:, own] = raw
    return ClassPredictions(classes, labels, decided, probability, scores, weight)


def predict_numbers(estimator: Any, given: Any, y: Any, weight: Any, names: Any) -> Any:
    """Ask a regressor for its predictions of rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        predicted = np.asarray(estimator.predict(given), dtype=np.float64)
    Y = as_columns(y)
    return NumberPredictions(Y, predicted.reshape(Y.shape), weight, output_names(names, Y.shape[1]))


def as_columns(y: Any) -> FloatArray:
    """Return targets as numbers, shape (n, k)."""
    array = np.asarray(y)
    try:
        found = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"The target holds {array.dtype}, but a regression predicts numbers: {error}."
        ) from error
    return found.reshape(len(found), -1)


def output_names(names: tuple[str, ...], k: int) -> tuple[str, ...]:
    """Return the names of the outputs.

    Examples
    --------
    >>> from lssvm.report.predictions import output_names
    >>> output_names(("price",), 1), output_names((), 2)
    (('price',), ('output 1', 'output 2'))
    """
    if len(names) == k:
        return names
    return ("the target",) if k == 1 else tuple(f"output {j + 1}" for j in range(k))


def predict_rows(estimator: Any, rows: Rows) -> ClassPredictions | NumberPredictions:
    """Return the predictions of an estimator for rows beside their targets.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVC
    >>> from lssvm.report.predictions import predict_rows
    >>> from lssvm.report.rows import Rows
    >>> X, y = np.arange(6.0)[:, None], np.array([0, 0, 0, 1, 1, 1])
    >>> model = LSSVC(C=10.0, gamma=1.0).fit(X, y)
    >>> predict_rows(model, Rows.read(model, (X, y))).decided.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    given = rows.given(estimator)
    if is_classification(estimator):
        classes = np.asarray(estimator.classes_)
        return predict_classes(estimator, given, rows.y, classes, rows.weight)
    found: NumberPredictions = predict_numbers(estimator, given, rows.y, rows.weight, rows.target)
    return found


def predict_intervals(estimator: Any, rows: Rows) -> list[Intervals]:
    """Return intervals of several coverages for some rows; none where the model gives none.

    Notes
    -----
    Rows are as many as `INTERVAL_WORK` allows, from 200 to 2,000: a row costs the square of the
    number of support vectors.
    """
    model = fitted_model(estimator)
    some = rows.some(_interval_rows(model))
    given = some.given(estimator) if model is estimator else some.inner(estimator)
    return model_intervals(model, given, as_columns(some.y))


def _interval_rows(model: Any) -> int:
    m = len(np.atleast_1d(model.dual_coef_))
    return int(np.clip(INTERVAL_WORK / max(m, 1) ** 2, 200, 2000))


def model_intervals(model: Any, given: Any, Y: FloatArray) -> list[Intervals]:
    """Return intervals of several coverages for rows with targets Y (n, k)."""
    if not hasattr(model, "predict_interval"):
        return []
    found = []
    for coverage in COVERAGES:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # too few rows: the interval is infinite
                ends = np.asarray(model.predict_interval(given, coverage), dtype=np.float64)
        except InvalidInputError:  # a loss or a reduction without intervals
            return []
        ends = ends.reshape(*Y.shape, 2)
        if np.all(np.isfinite(ends)):
            found.append(Intervals(coverage, ends, Y))
    return found
