"""From what a caller gives to training rows and a task: every fit begins here.

First arrays as scikit-learn checks them, with errors that say what to do here.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, check_magnitude, check_weight
from lssvm._core.errors import InvalidInputError, NumericalWarning, ScaleWarning
from lssvm._core.random import RandomState
from lssvm.backends.rows import Rows
from lssvm.data.scanning import Scan
from lssvm.fitting.input_metric import check_metric, metric_of
from lssvm.fitting.record import Resources
from lssvm.fitting.settings import (
    KernelChoice,
    KernelParameters,
    UsesResources,
    better_code,
    check_C,
    class_rows,
    is_open,
    resources_of,
)
from lssvm.kernels import Metric
from lssvm.tasks import Classes, Numbers, Task
from lssvm.tasks.targets import check_order, distinct_labels


def validated(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return what `sklearn.utils.validation.validate_data` returns.

    Missing and infinite values, and numbers whose squares would leave the range of floating-point
    numbers, are errors that name the column and say what to do.

    Parameters
    ----------
    estimator : estimator
    X : array or data frame of shape (n, d)
    y : array, default="no_validation"
        By default there is no target to check: rows to predict, which may be as small as they like.
    **options
        As scikit-learn takes them.

    Returns
    -------
    X, or X and y
    """
    alone = isinstance(y, str) and y == "no_validation"
    try:
        checked = validate_data(estimator, X, y, **options)
    except ValueError as error:
        text = str(error)
        if text.startswith("Input X contains"):
            raise _not_finite(X, text) from error
        if text.startswith("Input y contains"):
            raise InvalidInputError(
                f"{_first_sentence(text)} A model needs a target for every row: leave out the rows "
                "without one."
            ) from error
        raise
    change = "bring its columns to one scale (sklearn.preprocessing.StandardScaler)"
    check_magnitude(checked if alone else checked[0], "X", change, small=alone)
    return checked


def _not_finite(X: Any, text: str) -> InvalidInputError:
    """Return the error of a missing or infinite value, with its place."""
    missing = "NaN" in text
    change = (
        "Remove such rows, fill the gaps (sklearn.impute.SimpleImputer in a Pipeline before the "
        "model; lssvm.scan(..., missing='impute') for files), or use LSSVMClassifier or "
        "LSSVMRegressor, which take tables with missing values."
        if missing
        else "Remove such rows, or replace the infinite values by finite ones."
    )
    return InvalidInputError(f"{_first_sentence(text)}{_place(X, missing)} {change}")


def _first_sentence(text: str) -> str:
    return text.splitlines()[0].split(". ")[0].rstrip(".") + "."


def _place(X: Any, missing: bool) -> str:
    """Return the first place of a value that is missing, or infinite."""
    try:
        numbers = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return ""
    if numbers.ndim != 2:
        return ""
    bad = np.argwhere(np.isnan(numbers) if missing else ~np.isfinite(numbers))
    if len(bad) == 0:
        return ""
    row, column = bad[0].tolist()
    names = list(getattr(X, "columns", ()))
    name = repr(str(names[column])) if names else str(column)
    return f" The first is in row {row}, column {name}."


class Classifier(UsesResources, Protocol):
    """A classifier: its parameters say what y means."""

    C: Any
    multiclass: Any
    decoding: str | None
    class_weight: Any
    random_state: RandomState


def map_given(rows: Rows, metric: Any, choice: KernelChoice, seed: int) -> tuple[Rows, Metric]:
    """Return rows after the metric that a parameter asks for, and the metric."""
    found = metric_of(check_metric(metric, choice), rows, choice, seed)
    return mapped_rows(rows, found), found


def mapped_rows(rows: Rows, metric: Metric) -> Rows:
    """Return rows, and what a splitter sees of them, after a metric."""
    if metric.map is None:
        return rows
    X, given = metric.map_rows(rows.X), rows.given
    if given is not None:
        given = X if given[0] is rows.X else metric.map_rows(given[0]), given[1]
    return replace(rows, X=X, given=given)


def refuse_scan(estimator: object, X: Any) -> None:
    """Refuse data that are read in blocks, where all rows are needed at once."""
    if isinstance(X, Scan):
        name = type(estimator).__name__
        instead = "FixedSizeLSSVC" if is_classifier(estimator) else "FixedSizeLSSVR"
        raise InvalidInputError(
            f"{name} takes arrays, as it needs all rows at once, but X is a scan, which is "
            f"read in blocks: use {instead}, which reads scans, or give arrays X and y."
        )


def open_classes(
    estimator: Classifier,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    groups: Any = None,
    task: Classes | None = None,
    by_class: bool = False,
    sparse: bool = False,
) -> tuple[Rows, Classes]:
    """Check arrays of a classifier.

    Parameters
    ----------
    estimator : classifier
        Whose parameters `multiclass`, `decoding`, `targets` and `class_weight` say what y means.
    X, y, sample_weight, groups
        As the caller gave them.
    task : Classes or None, default=None
        What the model has learned, where further rows are opened; None: a new fit.
    by_class : bool, default=False
        Whether the recipe keeps moments per class, where the task asks for that: weights of rows
        are then without those of classes, and targets are looked up.
    sparse : bool, default=False
        Whether X may be a sparse matrix.

    Returns
    -------
    rows : Rows
    task : Classes
    """
    X, y = _validated(estimator, X, y, task, sparse)
    y = column_or_1d(y, warn=True)
    check_order(y)
    check_classification_targets(y)
    given, weight = (X, y), check_weight(sample_weight, X.shape[0])
    X, y, weight, positions = _positive(X, y, weight)
    if task is None:
        task = task_of(estimator, distinct_labels(y))
    rows = class_rows(task, X, task.numbers(y), weight, resources_of(estimator), by_class=by_class)
    groups = check_groups(groups, given[0].shape[0])
    return replace(rows, positions=positions, given=given, groups=groups), task


def check_groups(groups: Any, n: int) -> AnyArray | None:
    """Return groups as an array of n entries, none of them missing."""
    if groups is None:
        return None
    array = np.asarray(column_or_1d(groups))
    missing = array != array  # NaN is not equal to itself
    if array.shape[0] != n or np.any(missing) or any(entry is None for entry in array):
        raise InvalidInputError(
            f"groups has {array.shape[0]} entries, {int(np.sum(missing))} of them NaN, but X has "
            f"{n} rows: give one group for every row, and none that is missing."
        )
    return array


def _validated(
    estimator: Any, X: Any, y: Any, task: Task | None, sparse: bool, **options: Any
) -> tuple[Any, Any]:
    layout = {"accept_sparse": "csr"} if sparse else {"order": "C"}  # rows are read in blocks
    reset, dtype = task is None, [np.float64, np.float32]
    X, y = validated(estimator, X, y, reset=reset, dtype=dtype, **layout, **options)
    if reset:
        warn_of_scales(estimator, X, getattr(estimator, "feature_names_in_", None))
    return X, y


_SCALES = 100.0  # how many times as much one column may vary as another
_LOOKED_AT = 10_000  # rows


def warn_of_scales(estimator: Any, X: Any, names: Any = None) -> None:
    """Warn where columns differ in scale so much that the small ones do not count.

    Parameters
    ----------
    estimator : estimator
        Nothing is said where its kernel has a width for each feature, or takes no features.
    X : array of shape (n, d)
    names : array of str, optional
        Of the columns.

    Notes
    -----
    The largest standard deviation is compared with the smallest one, which for rare indicators is
    taken to be at least a tenth of the range.
    """
    gamma: Any = getattr(estimator, "gamma", None)
    own = not isinstance(getattr(estimator, "kernel", "rbf"), str) or np.ndim(gamma) > 0
    if own or estimator.kernel == "precomputed" or (isinstance(gamma, str) and gamma == "ard"):
        return
    if not isinstance(X, np.ndarray) or X.shape[0] < 2 or X.shape[1] < 2:
        return
    some = X[:: max(1, len(X) // _LOOKED_AT)]
    spread, extent = some.std(axis=0), np.ptp(some, axis=0)
    lowest = np.where(extent > 0, np.maximum(spread, 0.1 * extent), np.inf)
    large, small = int(np.argmax(spread)), int(np.argmin(lowest))
    if not spread[large] > _SCALES * lowest[small]:
        return
    which = [f"column {j}" if names is None else repr(str(names[j])) for j in (large, small)]
    times = 10 ** int(np.log10(spread[large] / lowest[small]))
    warnings.warn(
        f"{which[0]} of X varies more than {times:,} times as much as {which[1]}, which therefore "
        "hardly counts in the kernel: standardise the columns "
        "(make_pipeline(StandardScaler(), model)), or use LSSVMClassifier or LSSVMRegressor.",
        ScaleWarning,
        stacklevel=_level_of_caller(),
    )


def _level_of_caller() -> int:
    """Return the level of the line that has called this package, for a warning about it."""
    frame, level, inner = inspect.currentframe(), 0, ("lssvm", "sklearn", "contextlib")
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] in inner:
        frame, level = frame.f_back, level + 1
    return level


def task_of(estimator: Classifier, classes: AnyArray) -> Classes:
    """Return the task that the parameters of a classifier describe."""
    return Classes.of(
        classes,
        multiclass=estimator.multiclass,
        decoding=estimator.decoding,
        targets=getattr(estimator, "targets", "label"),
        class_weight=estimator.class_weight,
        random_state=estimator.random_state,
    )


def with_better_code(
    estimator: KernelParameters,
    rows: Rows,
    task: Task,
    choice: KernelChoice,
    *,
    by_class: bool,
    counts: FloatArray | None = None,
) -> tuple[Rows, Task]:
    """Return rows and task with the better code, where there are many classes and none was named.

    The parameters are those of `class_rows` and `better_code`.
    """
    named = getattr(estimator, "multiclass", None)
    if not isinstance(task, Classes) or not is_open(named, task, choice):
        return rows, task
    better = better_code(rows, task, choice, check_C(estimator.C))
    if better is task:
        return rows, task
    assert rows.labels is not None
    data = (rows.X, rows.labels, rows.sample_weight, Resources(rows.budget, rows.threads))
    own = class_rows(better, *data, by_class=by_class, counts=counts)
    return replace(rows, Y=own.Y, weight=own.weight, loss_weight=own.loss_weight), better


def open_numbers(
    estimator: UsesResources,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    groups: Any = None,
    task: Numbers | None = None,
    sparse: bool = False,
    by_moments: bool = True,
    centred: bool = False,
    centre: FloatArray | None = None,
) -> tuple[Rows, Numbers]:
    """Check arrays of a regressor; the parameters are those of `open_classes`.

    ``by_moments`` says that squares of the targets are summed, which an offset costs digits:
    ``centred`` takes about the weighted means off the targets of a new fit, ``centre`` (k,) is what
    is taken off those of further rows.
    """
    X, y = _validated(estimator, X, y, task, sparse, multi_output=True, y_numeric=True)
    y = np.asarray(y, dtype=np.float64)
    given, weight = (X, y), check_weight(sample_weight, X.shape[0])
    X, y, weight, positions = _positive(X, y, weight)
    Y = y.reshape(len(y), -1)
    change = "standardise it (sklearn.compose.TransformedTargetRegressor)"
    check_magnitude(Y, "y", change, dtype=X.dtype)
    if task is None:
        task = Numbers(Y.shape[1], y.ndim == 1)
        centre = target_centre(Y, weight) if centred else None
    if by_moments and not centred:
        _warn_of_offset(Y)
    Y = task.check_outputs(Y)
    rows = number_rows(X, Y, weight, resources_of(estimator), centre)
    groups = check_groups(groups, given[0].shape[0])
    return replace(rows, positions=positions, given=given, groups=groups), task


def target_centre(Y: FloatArray, weight: FloatArray | None) -> FloatArray | None:
    """Return about the weighted means (k,) of targets; None where they are near 0, or overflow.

    In steps of a power of two above 8 standard deviations: a sample has the same as all rows, and
    nothing is taken off that costs no digits.
    """
    with np.errstate(all="ignore"):
        mean = np.average(Y, axis=0, weights=weight)
        spread = np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=weight))
        step = 2.0 ** np.ceil(np.log2(8.0 * spread))
        centre = np.where(spread > 1e-12 * np.abs(mean), step * np.round(mean / step), mean)
    centre = np.where(np.isfinite(centre), centre, 0.0)
    return centre if np.any(centre != 0.0) else None


def number_rows(
    X: Any,
    Y: FloatArray,
    weight: FloatArray | None,
    resources: Resources,
    centre: FloatArray | None = None,
) -> Rows:
    """Return rows with numbers as targets, less their centre."""
    return Rows(
        X,
        Y if centre is None else Y - centre,
        weight,
        sample_weight=weight,
        centre=centre,
        budget=resources.budget,
        threads=resources.threads,
    )


def _positive(
    X: Any, y: Any, weight: FloatArray | None
) -> tuple[Any, Any, FloatArray | None, IntArray | None]:
    """Leave out rows of weight zero, which are as if they were not there."""
    if weight is None:
        return X, y, None, None
    positions = np.flatnonzero(weight > 0)
    return X[positions], y[positions], weight[positions], positions


def _warn_of_offset(Y: FloatArray) -> None:
    spread = Y.std(axis=0)
    if np.any((spread > 0) & (np.abs(Y.mean(axis=0)) > 1e6 * spread)):
        warnings.warn(
            "The targets vary by less than a millionth of their mean, so that rounding shows in "
            "the cross-validated errors: subtract a constant from y before the fit.",
            NumericalWarning,
            stacklevel=_level_of_caller(),
        )
