"""Predictions for rows, and scikit-learn's metrics of them with 95 % intervals."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.stats import t
from sklearn import config_context, metrics
from sklearn.calibration import calibration_curve

from lssvm._core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.plots.base import (
    Estimator,
    class_positions,
    class_scores,
    fitted_model,
    has_method,
    nameless_rows,
)
from lssvm.plots.rows import SampledRows, classifies, slow_to_calibrate, support_size
from lssvm.report.text import UNKNOWN, number, percent, quoted

COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)
INTERVAL_WORK = 4e9  # multiplications for the intervals of one coverage


class Predictions:
    """What is known of rows: arrays with an entry for every row, or None where it is not known."""

    predicted: Any
    weight: FloatArray | None

    def __len__(self) -> int:
        return len(self.predicted)

    def take(self, rows: IntArray) -> Self:
        """Return some rows."""
        return self.joined([self], lambda column: column[0][rows])

    def joined(self, others: Sequence[Self], change: Callable[[list[Any]], Any]) -> Self:
        """Return the predictions with arrays made of those of others; None stays None."""
        values = {name: [vars(one)[name] for one in others] for name in vars(self)}
        for shared in ("classes", "names", "positive"):
            values.pop(shared, None)
        changed = {
            name: None if any(v is None for v in arrays) else change(arrays)
            for name, arrays in values.items()
        }
        return type(self)(**(vars(self) | changed))


@dataclass(frozen=True, eq=False)
class ClassPredictions(Predictions):
    """True and predicted classes of rows.

    Attributes
    ----------
    classes : array of shape (q,)
    labels, predicted : int arrays of shape (n,)
        True and predicted classes as positions in ``classes``.
    probability : array of shape (n, q) or None
    scores : array of shape (n, q) or None
        Larger is more likely; two columns of opposite sign for two classes.
    weight : array of shape (n,) or None
    positive : int, default=1
        The class of two that precision, recall, curves and costs are about; see `positive_class`.
    """

    classes: AnyArray
    labels: IntArray
    predicted: IntArray
    probability: FloatArray | None
    scores: FloatArray | None
    weight: FloatArray | None
    positive: int = 1

    def name(self, c: int, length: int = 24) -> str:
        """Return the name of a class in quotation marks."""
        return quoted(self.classes[c], length)

    @property
    def right(self) -> BoolArray:
        """Which rows are of the predicted class, shape (n,)."""
        return np.asarray(self.labels == self.predicted)

    @property
    def ranking(self) -> FloatArray | None:
        """What rows are ranked by, shape (n, q): probabilities for several classes, if any."""
        if self.scores is None or (len(self.classes) > 2 and self.probability is not None):
            return self.probability
        return self.scores


@dataclass(frozen=True, eq=False)
class NumberPredictions(Predictions):
    """True and predicted numbers of rows.

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

    def output(self, j: int) -> NumberPredictions:
        """Return the predictions of one output."""
        Y, predicted = self.Y[:, [j]], self.predicted[:, [j]]
        return NumberPredictions(Y, predicted, self.weight, self.names[j : j + 1])


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
    def inside(self) -> BoolArray:
        """Which targets are inside, shape (n, k)."""
        return (self.ends[..., 0] <= self.Y) & (self.Y <= self.ends[..., 1])

    @property
    def width(self) -> FloatArray:
        """Mean width for each output, shape (k,)."""
        return np.asarray((self.ends[..., 1] - self.ends[..., 0]).mean(axis=0))


def positive_class(classes: AnyArray, y: Any, pos_label: Any = None) -> int:
    """Return the position of the positive class: the one named, else the rarer of two.

    Parameters
    ----------
    classes : array of shape (q,)
    y : array of shape (n,)
        Classes of the training rows; where both are as frequent, the second one is positive.
    pos_label : object or None, default=None
        One of the two classes, or how it is written.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.measures import positive_class
    >>> classes = np.array(["bad", "good"])
    >>> positive_class(classes, ["good", "bad", "good"]), positive_class(classes, [], "good")
    (0, 1)
    """
    if pos_label is None:
        if len(classes) != 2:
            return 1
        y = np.asarray(y)
        return int(np.count_nonzero(y == classes[0]) >= np.count_nonzero(y == classes[1]))
    known = [written_label(label) for label in classes.tolist()]
    if len(classes) != 2 or written_label(pos_label) not in known:
        raise InvalidInputError(
            f"The positive class {pos_label!r} is not usable: it has to be one of two classes, and "
            f"those of the model are {', '.join(known[:12])}{', ...' if len(known) > 12 else ''}."
        )
    return known.index(written_label(pos_label))


def written_label(label: Any) -> str:
    """Return a class as text: 1, not 1.0."""
    return f"{label:g}" if isinstance(label, float) else str(label)


def predict_classes(
    estimator: Estimator,
    X: Any,
    y: Any,
    classes: AnyArray,
    weight: FloatArray | None,
    *,
    scores: bool = True,
) -> ClassPredictions:
    """Return the classes, probabilities and scores that a classifier predicts for rows.

    Parameters
    ----------
    estimator : classifier
    X : any
        Rows as it takes them.
    y : array of shape (n,)
    classes : array of shape (q,)
        All classes; those of the estimator may be fewer.
    weight : array of shape (n,) or None
    scores : bool, default=True
        Whether to compute ``decision_function`` too.
    """
    labels = class_positions(y, classes, len(y))
    model = fitted_model(estimator)
    known = np.searchsorted(classes, model.classes_)
    probability = raw = None
    with nameless_rows():
        decided = np.searchsorted(classes, np.asarray(estimator.predict(X)))
        if has_method(estimator, "predict_proba") and not slow_to_calibrate(model):
            with suppress(InvalidInputError):  # nothing to calibrate on
                probability = np.zeros((len(labels), len(classes)))
                probability[:, known] = estimator.predict_proba(X)
        if scores and has_method(estimator, "decision_function"):
            decision = class_scores(estimator.decision_function(X))
            raw = np.full((len(labels), len(classes)), decision.min() - 1.0)
            raw[:, known] = decision
    return ClassPredictions(classes, labels, decided, probability, raw, weight)


def losses(predicted: Any, y: Any, classes: bool, weight: FloatArray | None = None) -> FloatArray:
    """Return 0 or 1 for a class, squared errors over the variance of numbers, shape (n,)."""
    if classes:
        return np.asarray(np.asarray(predicted) != y, dtype=np.float64)
    Y = as_columns(y)
    variance = np.average((Y - np.average(Y, 0, weight)) ** 2, 0, weight)
    error = (np.asarray(predicted, dtype=np.float64).reshape(Y.shape) - Y) ** 2
    return np.asarray((error / np.where(variance > 0, variance, 1.0)).mean(axis=1))


def row_losses(estimator: Estimator, X: Any, y: Any) -> FloatArray:
    """Return the `losses` of an estimator on rows."""
    with nameless_rows():
        return losses(estimator.predict(X), y, classifies(estimator))


def log_losses(probability: FloatArray, labels: IntArray) -> FloatArray:
    """Return minus the logarithm of the probability of the true class of each row, shape (n,)."""
    P = np.clip(probability, np.finfo(np.float64).eps, None)
    return np.asarray(np.log(P.sum(axis=1)) - np.log(P[np.arange(len(labels)), labels]))


def row_shares(n: int, weight: FloatArray | None) -> FloatArray:
    """Return the part that each of n rows has in a weighted mean, shape (n,)."""
    return np.full(n, 1.0 / n) if weight is None else weight / weight.sum()


def mean_and_error(values: FloatArray, weight: FloatArray | None) -> tuple[float, float]:
    """Return a weighted mean and its standard error."""
    share = row_shares(len(values), weight)
    mean = float(share @ values)
    return mean, float(np.sqrt(share**2 @ (values - mean) ** 2))


def predict_numbers(
    estimator: Estimator, X: Any, y: Any, weight: FloatArray | None, names: tuple[str, ...]
) -> NumberPredictions:
    """Return the numbers that a regressor predicts for rows."""
    with nameless_rows():
        predicted = np.asarray(estimator.predict(X), dtype=np.float64)
    Y = as_columns(y)
    return NumberPredictions(Y, predicted.reshape(Y.shape), weight, output_names(names, Y.shape[1]))


def join_predictions(predictions: Sequence[Any]) -> Any:
    """Return predictions of the same kind one after the other."""
    return predictions[0].joined(predictions, np.concatenate)


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
    >>> from lssvm.report.measures import output_names
    >>> output_names(("price",), 1), output_names((), 2)
    (('price',), ('output 1', 'output 2'))
    """
    if len(names) == k:
        return names
    return ("the target",) if k == 1 else tuple(f"output {j + 1}" for j in range(k))


def predict_rows(estimator: Estimator, rows: SampledRows) -> Predictions:
    """Return the predictions of an estimator for rows, with their targets.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVC
    >>> from lssvm.report.measures import predict_rows
    >>> from lssvm.plots.rows import SampledRows
    >>> X, y = np.arange(6.0)[:, None], np.array([0, 0, 0, 1, 1, 1])
    >>> model = LSSVC(C=10.0, gamma=1.0).fit(X, y)
    >>> predict_rows(model, SampledRows.read(model, (X, y))).predicted.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    X = rows.inputs(estimator)
    if classifies(estimator):
        classes = np.asarray(fitted_model(estimator).classes_)
        return predict_classes(estimator, X, rows.y, classes, rows.weight)
    return predict_numbers(estimator, X, rows.y, rows.weight, rows.target)


def predict_intervals(estimator: Estimator, rows: SampledRows) -> list[Intervals]:
    """Return intervals of several coverages for some rows; none where the model gives none.

    Notes
    -----
    Rows are as many as `INTERVAL_WORK` allows, from 200 to 2,000: a row costs the square of the
    number of support vectors.
    """
    model = fitted_model(estimator)
    sample = rows.subsample(int(np.clip(INTERVAL_WORK / support_size(model) ** 2, 200, 2000)))
    return model_intervals(model, sample.model_inputs(estimator), sample)


def model_intervals(model: Estimator, X: Any, rows: SampledRows) -> list[Intervals]:
    """Return intervals of several coverages for rows, which the model takes as ``X``."""
    if not has_method(model, "predict_interval"):
        return []
    intervals, Y = [], as_columns(rows.y)
    for coverage in COVERAGES:
        try:
            # too few rows: the interval is infinite
            with warnings.catch_warnings(action="ignore"):
                ends = np.asarray(model.predict_interval(X, coverage), dtype=np.float64)
        except InvalidInputError:  # a loss or a reduction without intervals
            return []
        ends = ends.reshape(*Y.shape, 2)
        if np.all(np.isfinite(ends)):
            intervals.append(Intervals(coverage, ends, Y, rows.weight))
    return intervals


Z95 = 1.959963984540054
GROUPS = (10, 20)  # of rows, for the jackknife
WORK = 2e6  # rows times classes of all groups that are not too many
BINS = 10  # groups of a calibration curve


@dataclass(frozen=True)
class Measure:
    """A metric with its interval.

    Attributes
    ----------
    key : str
        Name for programs.
    name : str
        Name in texts.
    value, low, high : float
    method : str
        How the interval was computed: "Wilson" or "jackknife".
    share : bool
        Whether it is shown as per cent.
    meaning : str
        Its meaning, in a few words.
    """

    key: str
    name: str
    value: float
    low: float
    high: float
    method: str
    share: bool = False
    meaning: str = ""

    @property
    def shown(self) -> str:
        """The value, as text."""
        return percent(self.value) if self.share else number(self.value)

    @property
    def span(self) -> str:
        """The interval, as text."""
        write = percent if self.share else number
        known = math.isfinite(self.low)
        return f"{write(self.low)} to {write(self.high)}" if known else UNKNOWN

    @property
    def fact(self) -> dict[str, Any]:
        """Value, interval and method, in types of JSON."""
        ends = {"low": finite(self.low), "high": finite(self.high)}
        return {"value": finite(self.value), **ends, "interval": self.method}


class Metric(NamedTuple):
    """Name, meaning, function and range of a metric, and whether it is shown as per cent."""

    name: str
    meaning: str
    compute: Callable[[Any], float]
    low: float = 0.0
    high: float = 1.0
    share: bool = False


# -- shares and intervals --------------------------------------------------------------------------


def proportion_interval(hits: Any, weight: FloatArray | None = None) -> tuple[float, float, float]:
    """Return the share of weighted rows that are hits, with Wilson's 95 % score interval.

    Parameters
    ----------
    hits : bool array of shape (n,)
    weight : array of shape (n,) or None
        The interval is that of (sum w)^2 / sum w^2 rows.

    Returns
    -------
    share, low, high : float
        NaN, 0 and 1 where there is no row, or none of weight.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.measures import proportion_interval
    >>> [round(value, 3) for value in proportion_interval(np.arange(10) < 8)]
    [0.8, 0.49, 0.943]
    """
    values = np.asarray(hits, dtype=np.float64)
    if values.size == 0 or (weight is not None and weight.sum() <= 0):
        return math.nan, 0.0, 1.0
    p = float(np.average(values, weights=weight))
    n = values.size if weight is None else float(weight.sum() ** 2 / (weight @ weight))
    scale = 1.0 + Z95**2 / n
    centre = (p + Z95**2 / (2 * n)) / scale
    half = Z95 / scale * math.sqrt(max(p * (1 - p) / n + Z95**2 / (4 * n * n), 0.0))
    return p, max(0.0, centre - half), min(1.0, centre + half)


def metric_values(table: Mapping[str, Metric], predictions: Predictions) -> dict[str, float]:
    """Return the values of metrics by their keys."""
    # a class without rows, in a sample or at all
    with warnings.catch_warnings(action="ignore"), config_context(skip_parameter_validation=True):
        return {key: float(metric.compute(predictions)) for key, metric in table.items()}


def jackknife(
    table: Mapping[str, Metric], predictions: Predictions, groups: int = GROUPS[1], seed: int = 0
) -> list[Measure]:
    """Return metrics with 95 % intervals by the jackknife over groups of rows.

    Parameters
    ----------
    table : mapping from str to Metric
    predictions : ClassPredictions or NumberPredictions
    groups : int, default=20
        Rows are assigned to so many groups at random, and the metrics computed without each.
    seed : int, default=0

    Notes
    -----
    The standard error is the root of (g - 1) / g times the sum of the squared deviations of the g
    values from their mean; the interval is that error times the 97.5 % quantile of Student's t with
    g - 1 degrees of freedom to each side, cut at the metric's range. g computations of the metrics.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.measures import NUMBER_METRICS, jackknife
    >>> from lssvm.report.measures import NumberPredictions
    >>> Y = np.arange(100.0)[:, None]
    >>> predictions = NumberPredictions(Y, Y + np.where(Y % 2 == 0, 1.0, 3.0), None, ("y",))
    >>> mae = jackknife(NUMBER_METRICS, predictions)[1]
    >>> mae.key, mae.value, bool(1.6 < mae.low < 2.0 < mae.high < 2.4)
    ('mae', 2.0, True)
    """
    n, values = len(predictions), metric_values(table, predictions)
    g = min(groups, n)
    group = np.random.default_rng(seed).permutation(n) % g
    without = [metric_values(table, predictions.take(np.flatnonzero(group != j))) for j in range(g)]
    measures = []
    for key, metric in table.items():
        each = np.array([sample[key] for sample in without])
        dof = np.isfinite(each).sum() - 1
        half = math.nan
        if dof > 0:
            half = float(t.ppf(0.975, dof) * math.sqrt(dof * each[np.isfinite(each)].var()))
        low, high = (min(max(values[key] + s * half, metric.low), metric.high) for s in (-1, 1))
        how = (low, high, "jackknife", metric.share, metric.meaning)
        measures.append(Measure(key, metric.name, values[key], *how))
    return measures


# -- classes ---------------------------------------------------------------------------------------


def confusion(predictions: ClassPredictions) -> FloatArray:
    """Return the weight of rows of every class (row) by predicted class (column)."""
    both, weight = (predictions.labels, predictions.predicted), predictions.weight
    labels = np.arange(len(predictions.classes))
    counts = metrics.confusion_matrix(*both, labels=labels, sample_weight=weight)
    return np.asarray(counts, dtype=np.float64)


def tested_classes(predictions: ClassPredictions) -> list[int]:
    """Return the classes that have rows, where there are rows of other classes too."""
    classes: list[int] = np.unique(predictions.labels).tolist()
    return classes if len(classes) > 1 else []


def _ranked(metric: Callable[..., float]) -> Callable[[ClassPredictions], float]:
    """Return a metric of ranked rows: of the positive class, else the mean over classes."""

    def compute(predictions: ClassPredictions) -> float:
        ranking, classes = predictions.ranking, tested_classes(predictions)
        if ranking is None or not classes:
            return math.nan
        columns = [predictions.positive] if len(predictions.classes) == 2 else classes
        truth = predictions.labels[:, None] == np.array(columns)
        return float(metric(truth, ranking[:, columns], sample_weight=predictions.weight))

    return compute


def _log_loss(predictions: ClassPredictions) -> float:
    assert predictions.probability is not None
    losses = log_losses(predictions.probability, predictions.labels)
    return float(np.average(losses, weights=predictions.weight))


def _brier(predictions: ClassPredictions) -> float:
    q, weight = len(predictions.classes), predictions.weight
    truth = np.eye(q)[predictions.labels]
    each = float(metrics.mean_squared_error(truth, predictions.probability, sample_weight=weight))
    return each if q == 2 else q * each


def _classed(metric: Callable[..., float], **options: Any) -> Callable[[ClassPredictions], float]:
    return lambda f: metric(f.labels, f.predicted, sample_weight=f.weight, **options)


def class_metrics(predictions: ClassPredictions) -> dict[str, Metric]:
    """Return the metrics that these predictions have, the most informative first.

    Those of probabilities and of ranked rows are omitted where there are none, or where a class
    is not tested against another one.
    """
    two = len(predictions.classes) == 2
    mean = "" if two else " (mean over classes)"
    label = predictions.name(predictions.positive, 20) if two else ""
    options: dict[str, Any] = {"average": "macro"}
    if two:
        options = {"average": "binary", "pos_label": predictions.positive}
    recall, precision, f1 = (
        _classed(metric, zero_division=0.0, **options)
        for metric in (metrics.recall_score, metrics.precision_score, metrics.f1_score)
    )
    balanced, mcc = map(_classed, (metrics.balanced_accuracy_score, metrics.matthews_corrcoef))
    balance, text = "mean recall of the classes", "share of those predicted that are right"
    of = f" of {label}" if two else ""
    rows = f"rows of {label}" if two else "rows of a class"
    table = {
        "balanced_accuracy": Metric("Balanced accuracy", balance, balanced, share=True),
        "recall": Metric(f"Recall{mean or of}", f"share of the {rows} found", recall, share=True),
        "precision": Metric(f"Precision{mean or of}", text, precision, share=True),
        "f1": Metric(f"F1{mean or of}", "harmonic mean of precision and recall", f1),
        "mcc": Metric("Matthews correlation", "0 is guessing, 1 is perfect", mcc, low=-1.0),
    }
    if predictions.ranking is not None and tested_classes(predictions):
        text = "how well rows are ranked; 0.5 is guessing"
        table["roc_auc"] = Metric(f"ROC AUC{mean}", text, _ranked(metrics.roc_auc_score))
        text, area = "area under the precision-recall curve", metrics.average_precision_score
        table["average_precision"] = Metric(f"Average precision{mean}", text, _ranked(area))
    if predictions.probability is not None:
        text = "of the probabilities; smaller is better"
        table["log_loss"] = Metric("Log loss", text, _log_loss, high=math.inf)
        table["brier"] = Metric("Brier score", f"squared error {text}", _brier, high=2.0)
    return table


def class_measures(predictions: ClassPredictions) -> list[Measure]:
    """Return the metrics of a classifier with their intervals, the accuracy first.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.measures import class_measures
    >>> from lssvm.report.measures import ClassPredictions
    >>> labels, decided = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    >>> predictions = ClassPredictions(np.array(["a", "b"]), labels, decided, None, None, None)
    >>> [(m.key, round(m.value, 3)) for m in class_measures(predictions)][:2]
    [('accuracy', 0.75), ('balanced_accuracy', 0.75)]
    """
    ends = proportion_interval(predictions.right, predictions.weight)
    first = Measure("accuracy", "Accuracy", *ends, "Wilson", True, "rows that are right")
    groups = int(np.clip(WORK / (len(predictions) * len(predictions.classes)), *GROUPS))
    groups = GROUPS[0] if len(predictions.classes) > 2 * GROUPS[0] else groups
    return [first, *jackknife(class_metrics(predictions), predictions, groups)]


def class_table(predictions: ClassPredictions) -> list[dict[str, Any]]:
    """Return rows, recall (with interval) and precision of every class; None where unknown."""
    each = np.arange(len(predictions.classes))
    options = {"labels": each, "sample_weight": predictions.weight, "zero_division": np.nan}
    both = predictions.labels, predictions.predicted
    precision, _, _, rows = metrics.precision_recall_fscore_support(*both, **options)
    table = []
    for c, name in enumerate(predictions.classes.tolist()):
        rows_of_class = predictions.take(np.flatnonzero(predictions.labels == c))
        hits, weight = rows_of_class.predicted == c, rows_of_class.weight
        recall, low, high = proportion_interval(hits, weight)
        entry = {"class": name, "rows": float(rows[c]), "precision": finite(float(precision[c]))}
        table.append(entry | {"recall": finite(recall), "recall_interval": (low, high)})
    return table


def baseline_accuracy(predictions: ClassPredictions) -> tuple[float, int]:
    """Return how often the most frequent class is right, and which one it is."""
    shares = np.bincount(predictions.labels, predictions.weight, len(predictions.classes))
    return float(shares.max() / shares.sum()), int(shares.argmax())


def ranking_curves(predictions: ClassPredictions, c: int) -> dict[str, Any] | None:
    """Return ROC and precision-recall curve of one class against the others; None without both."""
    if predictions.ranking is None or c not in tested_classes(predictions):
        return None
    truth, score, weight = predictions.labels == c, predictions.ranking[:, c], predictions.weight
    false, true, _ = metrics.roc_curve(truth, score, sample_weight=weight)
    precision, recall, _ = metrics.precision_recall_curve(truth, score, sample_weight=weight)
    area = metrics.average_precision_score(truth, score, sample_weight=weight)
    return {
        "roc": (false, true),
        "precision": (recall[::-1], precision[::-1]),
        "auc": float(metrics.auc(false, true)),
        "average_precision": float(area),
        "share": float(np.average(truth, weights=weight)),
    }


def calibration_bins(p: FloatArray, hit: BoolArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return mean probability, share of hits and size of groups of about equally many rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.measures import calibration_bins
    >>> [part.tolist() for part in calibration_bins(np.repeat([0.25, 0.75], 10), np.arange(20) > 9)]
    [[0.25, 0.75], [0.0, 1.0], [10, 10]]
    """
    groups = int(np.clip(len(p) // 20, 2, BINS))
    share, mean = calibration_curve(hit, p, n_bins=groups, strategy="quantile")
    edges = np.quantile(p, np.linspace(0, 1, groups + 1)[1:-1])
    sizes = np.bincount(np.searchsorted(edges, p), minlength=groups)
    return mean, share, sizes[sizes > 0]


# -- numbers ---------------------------------------------------------------------------------------


def _error(metric: Callable[..., float]) -> Callable[[NumberPredictions], float]:
    return lambda f: metric(f.Y, f.predicted, sample_weight=f.weight)


_RMSE, _MAE = _error(metrics.root_mean_squared_error), _error(metrics.mean_absolute_error)
_R2, _MEDIAN = _error(metrics.r2_score), _error(metrics.median_absolute_error)
_NEARER, _PERFECT = "half of the rows are closer", "0 is the mean, 1 is perfect"
NUMBER_METRICS = {
    "rmse": Metric("Root mean squared error", "large errors count more", _RMSE, high=math.inf),
    "mae": Metric("Mean absolute error", "how far off on average", _MAE, high=math.inf),
    "r2": Metric("Explained variance R²", _PERFECT, _R2, low=-math.inf),
    "median_absolute_error": Metric("Median absolute error", _NEARER, _MEDIAN, high=math.inf),
}


def number_measures(predictions: NumberPredictions, j: int) -> list[Measure]:
    """Return the metrics of a regressor for one output.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.measures import number_measures
    >>> from lssvm.report.measures import NumberPredictions
    >>> Y = np.arange(10.0)[:, None]
    >>> predictions = NumberPredictions(Y, Y + 1.0, None, ("y",))
    >>> {m.key: round(m.value, 3) for m in number_measures(predictions, 0)}
    {'rmse': 1.0, 'mae': 1.0, 'r2': 0.879, 'median_absolute_error': 1.0}
    """
    return jackknife(NUMBER_METRICS, predictions.output(j))


def coverage_measures(intervals: list[Intervals], j: int) -> list[tuple[float, Measure, float]]:
    """Return promised coverage, what it was, and the mean width of the intervals of one output."""
    covered = []
    for each in intervals:
        name, share = f"Inside the {100 * each.coverage:g} % interval", each.inside[:, j]
        ends = proportion_interval(share, each.weight)
        measure = Measure("coverage", name, *ends, "Wilson", True)
        covered.append((each.coverage, measure, float(each.width[j])))
    return covered


def finite(value: float) -> float | None:
    """Return a number, or None where it is not finite."""
    return float(value) if math.isfinite(value) else None
