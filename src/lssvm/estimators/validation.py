"""Checks of arrays against what an estimator takes, with errors that name the place."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import column_or_1d, validate_data

from lssvm._core.arrays import AnyArray, Array, check_magnitude, get_namespace
from lssvm._core.device import same_place
from lssvm._core.errors import InvalidInputError, ScaleWarning

if TYPE_CHECKING:
    from lssvm.estimators.opening import Estimator


def validated(estimator: Estimator, X: Any, y: Any = "no_validation", **options: Any) -> Any:
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
        "model; files are filled by lssvm.scan), or use LSSVMClassifier or "
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


_SCALES = 100.0  # how many times as much one column may vary as another
_LOOKED_AT = 10_000  # rows


def warn_of_scales(estimator: Estimator, X: Any, names: Any = None) -> None:
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
        stacklevel=level_of_caller(),
    )


def level_of_caller() -> int:
    """Return the level of the line that has called this package, for a warning about it."""
    frame, level, inner = inspect.currentframe(), 0, ("lssvm", "sklearn", "contextlib")
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] in inner:
        frame, level = frame.f_back, level + 1
    return level


def check_on_device(estimator: Estimator, X: Array) -> Array:
    """Check rows on a device against those of the fit, without bringing them to the host."""
    name, d = type(estimator).__name__, estimator.n_features_in_
    xp = get_namespace(X)
    if X.ndim != 2 or X.shape[1] != d:
        raise InvalidInputError(
            f"X has shape {tuple(X.shape)} but {name} was fitted with {d} features: give an array "
            f"of shape (n, {d})."
        )
    if X.shape[0] == 0:
        raise InvalidInputError("X has no rows: give at least one.")
    if not xp.isdtype(X.dtype, "real floating"):
        X = xp.astype(X, xp.float64)
    if not bool(xp.all(xp.isfinite(X))):
        raise InvalidInputError("X has NaN or infinity: impute or drop those rows.")
    return X


def check_namespace(estimator: Estimator, X: Any, method: str) -> None:
    """Refuse another library than that of the fit, as scikit-learn's dispatch asks for."""
    supported = estimator.__sklearn_tags__().array_api_support
    if not get_config()["array_api_dispatch"] or not supported:
        return
    if same_place(X, estimator.dual_coef_):
        return
    raise InvalidInputError(
        f"Inputs passed to {type(estimator).__name__}.{method}() must use the same "
        "namespace and the same device as those passed to fit(), as everywhere in "
        "scikit-learn with array_api_dispatch: convert X, or fit again."
    )
