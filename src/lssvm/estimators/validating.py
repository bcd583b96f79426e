"""Arrays as scikit-learn checks them, with errors that say what to do here."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from lssvm._core.errors import InvalidInputError
from lssvm._core.magnitudes import check_magnitude


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
