"""One entry point for all selection rules."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lssvm._core.device import Device
from lssvm._core.errors import InvalidInputError, NumericalWarning, not_known, not_usable
from lssvm._core.random import RandomState, as_generator
from lssvm.prototypes.kmeans import KMeans
from lssvm.prototypes.renyi import RenyiEntropy
from lssvm.prototypes.rpcholesky import RPCholesky
from lssvm.prototypes.sampling import Rows, as_rows
from lssvm.prototypes.selection import (
    Kernel,
    Rule,
    Selection,
    Task,
    Uniform,
    as_labels,
    warn_if_short,
)
from lssvm.tasks.weights import check_weight

RuleLike: TypeAlias = str | Rule | Callable[..., Any] | npt.ArrayLike

RULES: dict[str, type[RenyiEntropy] | type[Uniform] | type[KMeans] | type[RPCholesky]] = {
    "renyi": RenyiEntropy,
    "random": Uniform,
    "uniform": Uniform,
    "kmeans": KMeans,
    "rpcholesky": RPCholesky,
}


def select_prototypes(
    X: npt.ArrayLike,
    n_prototypes: int | None,
    rule: RuleLike = "renyi",
    *,
    y: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    kernel: Kernel | None = None,
    engine: Device | None = None,
    random_state: RandomState = None,
) -> Selection:
    """Choose the rows of X that become prototypes.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Training rows.
    n_prototypes : int or None
        How many. More than there are distinct rows of positive weight are reduced, with a warning.
        None only where ``rule`` is an array: all of it.
    rule : str, rule object, callable or array, default="renyi"
        ``"renyi"`` (`RenyiEntropy`), ``"random"`` or ``"uniform"`` (`Uniform`), ``"kmeans"``
        (`KMeans`), ``"rpcholesky"`` (`RPCholesky`), an object of one of these classes, or of any
        class with the method ``select(task)``;
        a function ``rule(X, n_prototypes, random_state)`` with an int as last argument that returns
        indices of rows or rows; or such indices, shape (m,), or rows, shape (m, d), themselves, of
        which the first ``n_prototypes`` are taken.
    y : array-like of int, shape (n,), optional
        Class labels: every class gets its share of the prototypes by weight, at least one. Not
        used with functions and arrays.
    sample_weight : array-like of shape (n,), optional
        Rows are drawn with probabilities proportional to these; rows of weight 0 are never chosen.
        Not used with functions and arrays.
    kernel : object, optional
        The model's kernel, with ``kernel(X, Z)`` and ``kernel.diag(X)``: needed by
        ``"rpcholesky"``, and by no other rule.
    engine : Device, optional
        What computes the entropies of ``"renyi"``: a device, worth it from some thousand prototypes
        on. By default NumPy.
    random_state : int, Generator, RandomState or None
        The same seed gives the same selection.

    Returns
    -------
    Selection
        Its ``indices`` are in an order of which every prefix is a selection.

    Notes
    -----
    [DeBrabanter2010, sections 4 and 5]. Costs are given with the rules; none but ``"rpcholesky"``
    uses memory of order n m.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.prototypes import select_prototypes
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> select_prototypes(X, 20, "renyi", random_state=0).prototypes(X).shape
    (20, 3)
    >>> select_prototypes(X, 2, [7, 5, 3]).indices.tolist()
    [7, 5]
    """
    rows = as_rows(X)
    if isinstance(rule, str):
        if rule not in RULES:
            raise not_known("rule", rule, f"give one of {sorted(RULES)}.")
        rule = RULES[rule]()
    rng = as_generator(random_state)
    if isinstance(rule, Rule):
        task = _task(rows, _size(n_prototypes), y, sample_weight, kernel, rng)
        return rule.select(replace(task, engine=engine))
    if callable(rule):
        size = _size(n_prototypes)
        return _given(rows, rule(rows, size, int(rng.integers(2**31))), size)
    return _given(rows, rule, None if n_prototypes is None else _size(n_prototypes))


def _size(n_prototypes: object) -> int:
    """Check the number of prototypes."""
    whole = isinstance(n_prototypes, numbers.Integral) and not isinstance(n_prototypes, bool)
    if not whole or int(n_prototypes) < 1:  # type: ignore[call-overload]
        raise not_usable("n_prototypes", n_prototypes, "give a positive int.")
    return int(n_prototypes)  # type: ignore[call-overload, no-any-return]


def _task(
    X: Rows,
    size: int,
    y: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
    kernel: Kernel | None,
    rng: np.random.Generator,
) -> Task:
    """Check the data."""
    n = X.shape[0]
    weight = check_weight(sample_weight, n)
    labels = None if y is None else as_labels(y, n)
    usable = n if weight is None else int(np.count_nonzero(weight))
    if labels is not None:
        classes = np.count_nonzero(np.bincount(labels, weight))
        if size < classes:
            warnings.warn(
                f"n_prototypes={size} is less than the {classes} classes: only the heaviest "
                f"classes get a prototype. Give n_prototypes={classes} or more, or leave y out.",
                NumericalWarning,
                stacklevel=3,
            )
    if size > usable:
        warn_if_short(size, usable, "rows of positive weight")
    return Task(X, min(size, usable), rng, weight, labels, kernel)


def _given(X: Rows, chosen: npt.ArrayLike, size: int | None) -> Selection:
    """Take over indices or rows that somebody else chose."""
    array = np.asarray(chosen)
    n, d = X.shape
    if array.ndim == 2 and array.shape[1] == d and array.shape[0] > 0:
        rows = as_rows(array)[:size]
        selection = Selection(np.full(rows.shape[0], -1), rows=rows)
    elif array.ndim == 1 and array.size > 0 and array.dtype.kind in "iu":
        if array.min() < 0 or array.max() >= n or np.unique(array).size < array.size:
            raise InvalidInputError(
                f"The given indices of prototypes range from {array.min()} to {array.max()} with "
                f"{np.unique(array).size} different ones of {array.size}; different row numbers "
                f"from 0 to {n - 1} are needed."
            )
        selection = Selection(array.astype(np.intp)[:size])
    else:
        raise InvalidInputError(
            f"Prototypes were given with shape {array.shape} and type {array.dtype}; needed are "
            f"integer row numbers, shape (m,), or rows, shape (m, {d})."
        )
    if size is not None and array.shape[0] < size:
        raise InvalidInputError(
            f"n_prototypes={size} but only {array.shape[0]} prototypes were given; give more, or "
            f"n_prototypes={array.shape[0]} or less."
        )
    return selection
