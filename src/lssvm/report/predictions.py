"""What a model says about rows it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.plots.fitted import Predictor, class_positions, fitted_model
from lssvm.report.model_facts import predicts_classes, slow_to_calibrate, support_size
from lssvm.report.sample import SampledRows

COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)
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

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: IntArray) -> ClassPredictions:
        """Return some rows."""
        return replace(self, **_columns([self], lambda column: column[0][rows]))

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

    def __len__(self) -> int:
        return len(self.Y)

    def take(self, rows: IntArray) -> NumberPredictions:
        """Return some rows."""
        return replace(self, **_columns([self], lambda column: column[0][rows]))

    def output(self, j: int) -> NumberPredictions:
        """Return the predictions of one output."""
        Y, predicted = self.Y[:, [j]], self.predicted[:, [j]]
        return NumberPredictions(Y, predicted, self.weight, self.names[j : j + 1])


def _columns(predictions: Sequence[Any], change: Callable[[list[Any]], Any]) -> dict[str, Any]:
    """Return what becomes of everything that predictions have for each row; None stays None."""
    names = [f.name for f in fields(predictions[0]) if f.name not in ("classes", "names")]
    values = {name: [getattr(each, name) for each in predictions] for name in names}
    return {k: None if any(v is None for v in each) else change(each) for k, each in values.items()}


@dataclass(frozen=True, eq=False)
class Intervals:
    """Prediction intervals of some rows.

    Attributes
    ----------
    coverage : float
    ends : array of shape (n, k, 2)
    Y : array of shape (n, k)
    weight : array of shape (n,) or None
    """

    coverage: float
    ends: FloatArray
    Y: FloatArray
    weight: FloatArray | None = None

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which targets are inside, shape (n, k)."""
        return (self.ends[..., 0] <= self.Y) & (self.Y <= self.ends[..., 1])

    @property
    def width(self) -> FloatArray:
        """Mean width for each output, shape (k,)."""
        return np.asarray((self.ends[..., 1] - self.ends[..., 0]).mean(axis=0))


def predict_classes(
    estimator: Predictor,
    given: Any,
    y: Any,
    classes: NDArray[Any],
    weight: FloatArray | None,
    *,
    scores: bool = True,
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
    scores : bool, default=True
        Whether to ask for ``decision_function`` too.
    """
    labels = class_positions(y, classes, len(y))
    own = np.searchsorted(classes, getattr(estimator, "classes_", classes))
    probability = raw = None
    with nameless_rows():
        decided = np.searchsorted(classes, np.asarray(estimator.predict(given)))
        if hasattr(estimator, "predict_proba") and not slow_to_calibrate(fitted_model(estimator)):
            with suppress(InvalidInputError):  # nothing to calibrate on
                said = np.asarray(estimator.predict_proba(given))
                probability = np.zeros((len(labels), len(classes)))
                probability[:, own] = said
        if scores and hasattr(estimator, "decision_function"):
            decision = np.asarray(estimator.decision_function(given), dtype=np.float64)
            if decision.ndim == 1:
                decision = np.column_stack([-decision, decision])
            raw = np.full((len(labels), len(classes)), decision.min() - 1.0)
            raw[:, own] = decision
    return ClassPredictions(classes, labels, decided, probability, raw, weight)


@contextmanager
def nameless_rows() -> Iterator[None]:
    """Let rows come without the names of their columns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield


def row_losses(estimator: Predictor, given: Any, y: Any) -> FloatArray:
    """Return 0 or 1 for a class, squared errors in deviations of the targets for numbers, (n,)."""
    with nameless_rows():
        predicted = np.asarray(estimator.predict(given))
    if predicts_classes(estimator):
        return np.asarray(predicted != y, dtype=np.float64)
    Y = as_columns(y)
    deviation = Y.std(axis=0)
    scaled = (predicted.reshape(Y.shape) - Y) / np.where(deviation > 0, deviation, 1.0)
    return np.asarray((scaled**2).mean(axis=1))


def predict_numbers(
    estimator: Predictor, given: Any, y: Any, weight: FloatArray | None, names: tuple[str, ...]
) -> NumberPredictions:
    """Ask a regressor for its predictions of rows."""
    with nameless_rows():
        predicted = np.asarray(estimator.predict(given), dtype=np.float64)
    Y = as_columns(y)
    return NumberPredictions(Y, predicted.reshape(Y.shape), weight, output_names(names, Y.shape[1]))


def join_predictions(predictions: Sequence[Any]) -> Any:
    """Return predictions of the same kind one after the other."""
    return replace(predictions[0], **_columns(predictions, np.concatenate))


def as_columns(y: Any) -> FloatArray:
    """Return targets as numbers, shape (n, k)."""
    array = np.asarray(y)
    try:
        return array.astype(np.float64).reshape(len(array), -1)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"The target holds {array.dtype}, but a regression predicts numbers: {error}."
        ) from error


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


def predict_rows(estimator: Predictor, rows: SampledRows) -> ClassPredictions | NumberPredictions:
    """Return the predictions of an estimator for rows beside their targets.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVC
    >>> from lssvm.report.predictions import predict_rows
    >>> from lssvm.report.sample import SampledRows
    >>> X, y = np.arange(6.0)[:, None], np.array([0, 0, 0, 1, 1, 1])
    >>> model = LSSVC(C=10.0, gamma=1.0).fit(X, y)
    >>> predict_rows(model, SampledRows.read(model, (X, y))).decided.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    given = rows.given(estimator)
    if predicts_classes(estimator):
        classes = np.asarray(getattr(estimator, "classes_", ()))
        return predict_classes(estimator, given, rows.y, classes, rows.weight)
    return predict_numbers(estimator, given, rows.y, rows.weight, rows.target)


def predict_intervals(estimator: Predictor, rows: SampledRows) -> list[Intervals]:
    """Return intervals of several coverages for some rows; none where the model gives none.

    Notes
    -----
    Rows are as many as `INTERVAL_WORK` allows, from 200 to 2,000: a row costs the square of the
    number of support vectors.
    """
    model = fitted_model(estimator)
    some = rows.some(int(np.clip(INTERVAL_WORK / support_size(model) ** 2, 200, 2000)))
    given = some.given(estimator) if model is estimator else some.inner(estimator)
    return model_intervals(model, given, as_columns(some.y), some.weight)


def model_intervals(
    model: Predictor, given: Any, Y: FloatArray, weight: FloatArray | None
) -> list[Intervals]:
    """Return intervals of several coverages for rows with targets Y (n, k)."""
    if not hasattr(model, "predict_interval"):
        return []
    intervals = []
    for coverage in COVERAGES:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # too few rows: the interval is infinite
                ends = np.asarray(model.predict_interval(given, coverage), dtype=np.float64)
        except InvalidInputError:  # a loss or a reduction without intervals
            return []
        ends = ends.reshape(*Y.shape, 2)
        if np.all(np.isfinite(ends)):
            intervals.append(Intervals(coverage, ends, Y, weight))
    return intervals
