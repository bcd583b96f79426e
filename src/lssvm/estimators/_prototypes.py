"""How many prototypes a fixed-size model has, and which rows they are."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.device import is_foreign
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm._core.namespace import to_numpy
from lssvm._core.random import hash_positions
from lssvm._core.threads import slices
from lssvm.estimators._problem import FixedProblem
from lssvm.prototypes import Selection, select_prototypes

SELECTED_FROM = 100_000
"""About so many rows, drawn by their positions, are what prototypes are selected from."""

_CHUNK = 65_536  # rows looked at at a time
RARE = 1000  # a class of fewer rows takes part with all of them


class PrototypeMixin(BaseEstimator):
    """Base of the fixed-size models: chooses rows."""

    n_prototypes: Any
    kernel: Any
    selection: Any
    _seed: int
    _kernel_at: Any  # from gamma to a kernel

    def _n_prototypes(self, n: int) -> int:
        value = self.n_prototypes
        if isinstance(value, str) and value in ("auto", "cv"):
            size = int(np.clip(5.0 * np.sqrt(n), 200, 1000))
            return min(n, size if value == "auto" else 2 * size)
        if is_int(value) and value >= 1:
            return int(value)
        raise InvalidInputError(
            f"n_prototypes={value!r} is not usable: give a positive int, 'auto' (a rule in the "
            "number of rows), or 'cv' to choose it by cross-validation."
        )

    def _prototypes(
        self, problem: FixedProblem, gamma: Any
    ) -> tuple[FloatArray, IntArray, Selection | None]:
        """Return the prototypes (m, d), the caller's rows they are, and how they were chosen."""
        X = problem.X
        n, d = problem.n_rows, X.shape[1]
        size = self._n_prototypes(n)
        if isinstance(self.kernel, str) and self.kernel == "linear" and d <= n:
            # Features in closed form: the kernel with the unit vectors is the row itself.
            return np.eye(d), np.empty(0, dtype=np.intp), None
        rule = to_numpy(self.selection) if is_foreign(self.selection) else self.selection
        if n <= size and isinstance(rule, str) and rule in ("renyi", "random", "uniform"):
            # All distinct rows, in an order that depends on their content alone.
            _, first = np.unique(X, axis=0, return_index=True)
            if is_int(self.n_prototypes) and len(first) < size:
                warnings.warn(
                    f"n_prototypes={size} was reduced to {len(first)}: there are no more distinct "
                    f"rows of positive weight. Give n_prototypes={len(first)} or less.",
                    NumericalWarning,
                    stacklevel=4,
                )
            selection = Selection(first.astype(np.intp))
        else:
            gamma = problem.scale() if gamma is None else gamma
            given = isinstance(rule, (list, tuple, np.ndarray))
            rows = _some_rows(problem, size, self._seed) if isinstance(rule, str) else slice(None)
            with warnings.catch_warnings():
                if not is_int(self.n_prototypes):
                    warnings.simplefilter("ignore", NumericalWarning)  # the size was ours
                X = problem.given[0] if given else X  # given indices count rows of weight zero
                rule = _at_hand(rule, problem) if given else rule
                selection = select_prototypes(
                    X[rows],
                    None if given and isinstance(self.n_prototypes, str) else size,
                    rule,
                    y=None if given or problem.labels is None else problem.labels[rows],
                    sample_weight=None if given or problem.weight is None else problem.weight[rows],
                    kernel=self._kernel_at(gamma),
                    engine=problem.selects_on(size),
                    random_state=self._seed,
                )
            if not isinstance(rows, slice):
                found = selection.indices
                selection = replace(selection, indices=np.where(found >= 0, rows[found], -1))
        Z = np.array(selection.prototypes(X), dtype=np.float64)  # the caller's may change
        support = selection.indices
        if problem.support is not None and len(X) == len(problem.support):
            support = np.where(support >= 0, problem.support[support], -1)
        return Z, support, selection


def _at_hand(chosen: Any, problem: FixedProblem) -> Any:
    """Return given row numbers of a stream as those of the rows that are kept of it."""
    if problem.folds is None or problem.support is None or np.ndim(chosen) != 1:
        return chosen
    numbers = np.asarray(chosen)
    lost = np.setdiff1d(numbers, problem.support)
    if len(lost):
        raise InvalidInputError(
            f"selection names the rows {lost[:5].tolist()}, which are not among the "
            f"{len(problem.support)} rows of positive weight that are kept of those read in "
            "blocks: give the prototypes themselves, an array of shape (m, d)."
        )
    return np.searchsorted(problem.support, numbers)


def _some_rows(problem: FixedProblem, size: int, seed: int) -> Any:
    """Return the rows to select from: all, or of very many a draw by their positions.

    Not by their content: that takes all of equal rows or none, and many of them leave no room.
    """
    n, most = len(problem.X), max(SELECTED_FROM, 20 * size)
    if n <= most:
        return slice(None)
    limit = np.uint64(most / n * 2.0**64)
    rows = np.concatenate([_below(limit, part, seed) for part in slices(n, _CHUNK)])
    if problem.labels is None:
        return rows
    count = np.bincount(problem.labels[rows], minlength=int(problem.labels.max()) + 1)
    rare = []
    for c in np.flatnonzero(count < RARE):
        own = np.flatnonzero(problem.labels == c)
        rare.append(own[np.argsort(hash_positions(own, seed), kind="stable")[:RARE]])
    return np.unique(np.concatenate([rows, *rare]))


def _below(limit: np.uint64, part: slice, seed: int) -> IntArray:
    positions = np.arange(part.start, part.stop)
    return positions[hash_positions(positions, seed) < limit]


def is_int(value: Any) -> bool:
    """Say whether a parameter is a whole number (True is none)."""
    return isinstance(value, (int, np.integer)) and type(value) is not bool
