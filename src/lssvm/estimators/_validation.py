"""Checks of parameters and weights that all estimators share."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm._core.namespace import is_sparse
from lssvm._core.random import RandomState, as_generator
from lssvm._core.threads import slices
from lssvm.folds.content import (
    Folds,
    content_folds,
    content_holdout,
    hash_rows,
    restrict_folds,
    splitter_folds,
)

_CHUNK = 65_536  # rows looked at at a time
_COUNTED = 200_000  # rows that are counted one by one


def check_weight(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    """Return sample weights as an array (n,), None when all are one."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise InvalidInputError(
            f"sample_weight has shape {weight.shape} but X has {n} rows: give one weight per row. "
            "(Sample weights must be 1D array or scalar.)"
        )
    if not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise InvalidInputError(
            "sample_weight has negative, NaN or infinite values: weights must be finite and >= 0."
        )
    if not np.any(weight > 0):
        raise InvalidInputError(
            "sample_weight is zero for every row: at least one row must have a positive weight."
        )
    return None if np.all(weight == 1.0) else weight


def check_kernel_matrix(X: Any) -> None:
    """Raise if ``X`` cannot be the kernel matrix of the training rows."""
    if X.shape[0] != X.shape[1]:
        raise InvalidInputError(
            f"kernel='precomputed' needs a square kernel matrix of the training rows but X has "
            f"shape {X.shape}."
        )
    scale = float(np.max(np.abs(X), initial=0.0))
    if not np.allclose(X, X.T, rtol=1e-7, atol=1e-10 * scale):
        raise InvalidInputError(
            "kernel='precomputed' needs a symmetric kernel matrix but X differs from its "
            "transpose: pass K with K[i, j] = K[j, i], for example (K + K.T) / 2."
        )


def check_C(C: Any) -> float | None:
    """Return C as a number, or None for "cv"."""
    if isinstance(C, str) and C == "cv":
        return None
    if isinstance(C, (int, float, np.number)) and type(C) is not bool:
        value = float(C)
        if np.isfinite(value) and value > 0:
            return value
    raise InvalidInputError(
        f"C={C!r} is not usable: give a finite number > 0, or 'cv' to choose it by "
        "cross-validation."
    )


def check_option(name: str, value: Any, options: tuple[str, ...]) -> None:
    """Raise if ``value`` is not one of ``options``."""
    if value not in options:
        raise InvalidInputError(f"{name}={value!r} is not known: choose one of {options}.")


def class_weights(
    class_weight: Any, classes: NDArray[Any], labels: NDArray[np.intp], weight: Any
) -> NDArray[np.float64] | None:
    """Return the factor each row gets from its class, shape (n,), None when all are one.

    "balanced" gives every class the same total weight, counted with the sample weights, so that
    a weight of 2 still equals the row twice.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(labels, weights=weight, minlength=len(classes))
        factors = counts.sum() / (len(classes) * counts)
    elif isinstance(class_weight, dict):
        unknown = [key for key in class_weight if key not in classes.tolist()]
        if unknown:
            raise InvalidInputError(
                f"class_weight names {unknown!r}, which are not among the classes "
                f"{classes.tolist()!r}: use the labels found in y."
            )
        factors = np.array([float(class_weight.get(c, 1.0)) for c in classes.tolist()])
        if not np.all(np.isfinite(factors)) or np.any(factors < 0):
            raise InvalidInputError("class_weight values must be finite and >= 0.")
    else:
        raise InvalidInputError(
            f"class_weight={class_weight!r} is not usable: give a dict from label to weight, "
            "'balanced', or None."
        )
    return np.asarray(factors[labels])


def check_order(y: NDArray[Any]) -> None:
    """Raise where labels cannot be sorted: text beside numbers or None."""
    if y.dtype != object:
        return
    try:
        np.unique(y)
    except TypeError as error:
        raise InvalidInputError(
            f"The labels in y have no common order ({error}): give labels of one type, for example "
            "y.astype(str)."
        ) from error


def warn_of_offset(Y: NDArray[np.float64]) -> None:
    """Warn where second moments of the targets have few digits left for their variation."""
    spread = Y.std(axis=0)
    if np.any((spread > 0) & (np.abs(Y.mean(axis=0)) > 1e6 * spread)):
        warnings.warn(
            "The targets vary by less than a millionth of their mean, so that rounding shows in "
            "the cross-validated errors: subtract a constant from y before the fit.",
            NumericalWarning,
            stacklevel=5,
        )


def seed_of(random_state: RandomState) -> int:
    """Return the seed of folds, searches and landmarks; a fixed one for None."""
    if random_state is None:
        return 0
    return int(as_generator(random_state).integers(2**31 - 1))


def make_folds(
    cv: Any,
    X: Any,
    y: Any,
    rows: NDArray[np.intp],
    *,
    labels: NDArray[np.intp] | None,
    seed: int,
    positions: bool,
) -> Folds:
    """Turn ``cv`` into folds of the rows ``rows`` of ``X``.

    A number, a share to hold out or "loo" assigns rows by content (by position where rows have no
    content of their own, as with a precomputed kernel); a splitter or an iterable of splits is used
    as it is.
    """
    n = X.shape[0]
    content = rows[:, None] + 1.0 if positions else X[rows]
    if isinstance(cv, str) and cv == "loo":
        return content_folds(content, None, seed=seed)
    if isinstance(cv, (int, np.integer)) and type(cv) is not bool:
        if cv < 2:
            raise InvalidInputError(f"cv={cv!r} is not usable: give at least 2 folds, or 'loo'.")
        return content_folds(content, int(cv), labels=labels, seed=seed)
    if isinstance(cv, (float, np.floating)) and 0.0 < cv < 1.0:
        return content_holdout(content, float(cv), labels=labels, seed=seed)
    if not isinstance(cv, str) and (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        splits = cv.split(X, y) if hasattr(cv, "split") else cv
        folds = restrict_folds(splitter_folds(splits, n), rows, n)
        if not any(len(test) < len(rows) or folds.train for test in folds.test):
            raise InvalidInputError(
                "No split of cv has training and test rows of positive weight: give splits that "
                "have both."
            )
        return folds
    raise InvalidInputError(
        f"cv={cv!r} is not usable: give a number of folds, a share between 0 and 1 to hold out, "
        "'loo', a scikit-learn splitter, or an iterable of (train, test) indices."
    )


def n_distinct(rows: Any, precomputed: bool) -> int:
    """Count the rows that differ: the same for a weight of 2 and for the row twice.

    Of very many different ones, the 200,000 smallest hashes tell how dense they lie.
    """
    n = int(rows.shape[0])
    if precomputed:
        return n
    if n <= _COUNTED or is_sparse(rows):
        return len(np.unique(hash_rows(rows)))
    hashes = np.empty(0, dtype=np.uint64)
    for part in slices(n, max(_CHUNK, _COUNTED)):
        new = hash_rows(rows[part])
        if len(hashes) > _COUNTED:
            new = new[new < hashes[-1]]
        hashes = np.unique(np.concatenate([hashes, new]))[: _COUNTED + 1]
    if len(hashes) <= _COUNTED:
        return len(hashes)
    return min(n, round(_COUNTED * (2.0**64 / float(hashes[-1]))))


def distinct_values(y: Any) -> Any:
    """Return the different values, ascending; O(n) time, little memory."""
    found = [np.unique(y[part]) for part in slices(len(y), _CHUNK)]
    return np.unique(np.concatenate(found)) if found else np.unique(y)


def class_numbers(classes: Any, y: Any) -> Any:
    """Return where every label stands among the classes, in 2 bytes each where they suffice."""
    numbers = np.empty(len(y), dtype=np.int16 if len(classes) < 2**15 else np.intp)
    for part in slices(len(y), _CHUNK):
        numbers[part] = np.searchsorted(classes, y[part])
    return numbers


def class_totals(labels: Any, weight: Any, n_classes: int) -> Any:
    """Return the number of rows of every class, or their weight."""
    total = np.zeros(n_classes)
    for part in slices(len(labels), _CHUNK):
        own = None if weight is None else weight[part]
        total += np.bincount(labels[part], own, minlength=n_classes)
    return total


def loss_settings(model: Any) -> list[Any]:
    """Return the parameters that the losses of a fixed-size search depend on."""
    names = ["C", "gamma", "kernel", "degree", "coef0", "nu", "cv", "scoring", "loss"]
    names += ["multiclass", "decoding", "targets", "class_weight"]
    return [_exact(getattr(model, name, None)) for name in names]


def _exact(value: Any) -> Any:
    """Return something whose text tells all; that of a long array leaves numbers out."""
    if isinstance(value, (list, tuple)):
        return [_exact(entry) for entry in value]
    return value.tolist() if isinstance(value, np.ndarray) else value
