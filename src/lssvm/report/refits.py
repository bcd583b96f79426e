"""The same model fitted again to parts of the rows: out-of-fold figures and the learning curve."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.folds.content import content_folds
from lssvm.plots.fitted import class_positions, fitted_model
from lssvm.report.predictions import (
    MANY,
    ClassPredictions,
    Intervals,
    NumberPredictions,
    as_columns,
    is_classification,
    model_intervals,
    n_systems,
    predict_classes,
    predict_numbers,
)
from lssvm.report.rows import Rows

FOLDS = 5
FOLD_ROWS = 3000  # rows that take part in the folds
CURVE_ROWS = 4000
COPY_WORK = 1e9  # systems times prototypes cubed of a copy, about a second
CURVE_TEST = 1000  # rows that a point of the learning curve is measured on


def copy_size(model: Any) -> int | None:
    """Return the most prototypes that copies of a model have; None where it has none.

    Fewer than the model has only where there are so many pairs of classes that fits are slow.
    """
    m = getattr(model, "n_prototypes_", None)
    if m is None:
        return None
    return min(int(m), int((COPY_WORK / n_systems(model)) ** (1 / 3)))


def tuned_copy(estimator: Any, n: int, *, calibrate: bool = True) -> Any:
    """Return an unfitted copy with the chosen parameters as fixed ones, for about n rows.

    Parameters
    ----------
    estimator : object
        Fitted: a model of lssvm, or a pipeline that ends in one.
    n : int
        Rows it will be fitted to: it has no more prototypes.
    calibrate : bool, default=True
        Whether a classifier gets probabilities.

    Notes
    -----
    Where every binary problem has its own C, the copy has their median for all. A reduced model
    keeps its support vectors as prototypes instead of being reduced again.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.report.refits import tuned_copy
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> tuned_copy(LSSVR("cv", cv=4, gamma=1.0).fit(X, np.sin(X[:, 0])), 10).C > 0
    True
    """
    model = fitted_model(estimator)
    params = clone(model).get_params(deep=False)
    changes: dict[str, Any] = {"verbose": 0, "checkpoint": None, "threshold": "zero"}
    C, gamma = getattr(model, "C_", None), getattr(model, "gamma_", None)
    if C is not None:
        changes["C"] = float(np.median(C))
    if gamma is not None:
        # Tuned for every problem by itself there are as many values as problems, not as features.
        separate = params.get("tuning") == "separate"
        changes["gamma"] = float(np.median(gamma)) if separate else gamma
    if "n_prototypes" in params and len(model.support_):
        reduced = params.get("reduction") is not None
        changes["n_prototypes"] = min(copy_size(model) or n, n)
        if reduced:
            changes |= {"n_prototypes": "auto", "selection": np.asarray(model.prototypes_)}
        elif not isinstance(params["selection"], str):
            changes["selection"] = "random"
    changes |= {"reduction": None, "n_support": None}
    if not calibrate or n_systems(model) > MANY:
        changes["calibration"] = None
    small = clone(model).set_params(**{k: v for k, v in changes.items() if k in params})
    if not isinstance(estimator, Pipeline):
        return small
    pipeline = clone(estimator)
    pipeline.steps[-1] = (pipeline.steps[-1][0], small)
    return pipeline


def fit_copy(estimator: Any, rows: Rows, *, calibrate: bool = True) -> Any:
    """Return a copy with the same parameters, fitted to other rows."""
    copy = tuned_copy(estimator, len(rows), calibrate=calibrate)
    name = "sample_weight"
    if isinstance(copy, Pipeline):
        name = f"{copy.steps[-1][0]}__{name}"
    options = {} if rows.weight is None else {name: rows.weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say was said when the model was fitted
        return copy.fit(rows.features(estimator), rows.y, **options)


def out_of_fold(estimator: Any, rows: Rows) -> tuple[Any, Rows]:
    """Predict each of some rows by a copy that was fitted without it.

    Parameters
    ----------
    estimator : object
    rows : Rows
        Training rows; at most 3,000 of them are used.

    Returns
    -------
    predictions : ClassPredictions or NumberPredictions
    rows : Rows
        The rows that took part.

    Notes
    -----
    Five fits at the chosen parameters. Equal rows share a fold. The parameters were chosen on the
    same rows, so that the figures are slightly too good.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.report.refits import out_of_fold
    >>> from lssvm.report.rows import Rows
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> model = LSSVR(100.0, gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> found, _ = out_of_fold(model, Rows.read(model, (X, np.sin(X[:, 0]))))
    >>> bool(np.abs(found.Y - found.predicted).max() < 0.1)
    True
    """
    some = rows.some(FOLD_ROWS)
    classes = np.asarray(estimator.classes_) if is_classification(estimator) else None
    labels = None if classes is None else class_positions(some.y, classes, len(some))
    folds = content_folds(some.codes(), min(FOLDS, len(some)), labels=labels, seed=0)
    parts, tested = [], []
    for test in folds.test:
        train = np.setdiff1d(np.arange(len(some)), test)
        if len(test) == 0 or len(train) < 2:
            continue
        if labels is not None and len(np.unique(labels[train])) < 2:
            continue
        copy = fit_copy(estimator, some.take(train))
        left = some.take(test)
        X, weight = left.features(estimator), left.weight if some.weight is not None else None
        if weight is None and some.weight is not None:
            weight = left.block.weight
        if classes is not None:
            parts.append(predict_classes(copy, X, left.y, classes, weight))
        else:
            parts.append(predict_numbers(copy, X, left.y, weight, rows.target))
        tested.append(test)
    return _join(parts), some.take(np.concatenate(tested))


def _join(parts: list[Any]) -> ClassPredictions | NumberPredictions:
    def together(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        return None if any(value is None for value in values) else np.concatenate(values)

    names = ["labels", "decided", "probability", "scores", "weight"]
    if isinstance(parts[0], NumberPredictions):
        names = ["Y", "predicted", "weight"]
    found: ClassPredictions | NumberPredictions = replace(
        parts[0], **{name: together(name) for name in names}
    )
    return found


def held_out_intervals(estimator: Any, rows: Rows) -> list[Intervals]:
    """Return the intervals of a fifth of some rows by a copy that was fitted to the others."""
    if not hasattr(fitted_model(estimator), "predict_interval") or len(rows) < 20:
        return []
    order = np.random.default_rng(0).permutation(min(len(rows), FOLD_ROWS))
    some, cut = rows.some(FOLD_ROWS), len(order) // 5
    copy = fit_copy(estimator, some.take(np.sort(order[cut:])))
    left = some.take(np.sort(order[:cut]))
    X = left.features(estimator)
    if isinstance(copy, Pipeline) and len(copy.steps) > 1:
        X = copy[:-1].transform(X)
    return model_intervals(fitted_model(copy), X, as_columns(left.y))


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Error against the number of training rows.

    Attributes
    ----------
    sizes : int array of shape (s,)
    error, spread : arrays of shape (s,)
        Share of wrong rows, or root of the mean squared error over the target's deviation; its
        standard error.
    n_test : int
        Rows it was measured on.
    held_out : bool
        Whether these were held out of the training rows.
    """

    sizes: IntArray
    error: FloatArray
    spread: FloatArray
    n_test: int
    held_out: bool


def learning_curve(estimator: Any, train: Rows, test: Rows | None) -> LearningCurve | None:
    """Fit copies to ever larger parts of the training rows.

    Parameters
    ----------
    estimator : object
    train : Rows
    test : Rows or None
        None: a fifth of the training rows is held out, or 1,000 rows where that is less.

    Returns
    -------
    LearningCurve or None
        None where there are too few rows.

    Notes
    -----
    Parts are nested, at most 4,000 rows; the last point is the model itself where ``test`` is
    given. Fits of at most n/16, n/8, n/4 and n/2 rows together cost about as much as one of n.
    """
    model = fitted_model(estimator)
    if copy_size(model) not in (None, getattr(model, "n_prototypes_", None)):
        return None  # the copies would be other models
    rng = np.random.default_rng(0)
    order = rng.permutation(len(train))
    if test is None:
        n_test = min(len(train) // 5, CURVE_TEST)
        checked, order = train.take(np.sort(order[:n_test])), order[n_test:]
    else:
        checked = test.some(CURVE_TEST)
    top = min(len(order), CURVE_ROWS)
    sizes = sorted({top // 16, top // 8, top // 4, top // 2} | ({top} if test is None else set()))
    sizes = [size for size in sizes if size >= 10]
    if len(sizes) < 2 or len(checked) < 10:
        return None
    found = []
    for size in sizes:
        part = train.take(np.sort(order[:size]))
        if is_classification(estimator) and len(np.unique(part.y)) < 2:
            continue
        copy = fit_copy(estimator, part, calibrate=False)
        found.append((size, *_error(copy, checked.features(estimator), checked)))
    if test is not None:
        found.append((train.n_rows, *_error(estimator, checked.given(estimator), checked)))
    counts, error, spread = (np.array(column) for column in zip(*found, strict=True))
    return LearningCurve(counts, error, spread, len(checked), test is None)


def _error(estimator: Any, given: Any, rows: Rows) -> tuple[float, float]:
    """Return the error of an estimator on rows, and its standard error."""
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    weight = weight / weight.sum()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        predicted = np.asarray(estimator.predict(given))
    if is_classification(estimator):
        wrong = (predicted != rows.y).astype(np.float64)
        share = float(weight @ wrong)
        return share, float(np.sqrt(share * (1.0 - share) * (weight @ weight)))
    Y = np.asarray(rows.y, dtype=np.float64).reshape(len(rows), -1)
    deviation = Y.std(axis=0)
    scaled = (predicted.reshape(Y.shape) - Y) / np.where(deviation > 0, deviation, 1.0)
    squares = (scaled**2).mean(axis=1)
    mean = float(weight @ squares)
    spread = float(np.sqrt(weight**2 @ (squares - mean) ** 2))
    root = float(np.sqrt(mean))
    return root, spread / (2.0 * root) if root > 0 else 0.0
