"""Which rows become the prototypes of a fixed-size model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from lssvm._core.arrays import FloatArray, IntArray, float_rows, is_sparse, to_numpy
from lssvm._core.blocks import slices
from lssvm._core.device import is_foreign
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm._core.random import hash_positions
from lssvm.backends.host import HostRows, Rows
from lssvm.fitting.fixed_settings import FixedSettings, number_of_prototypes
from lssvm.fitting.settings import is_int
from lssvm.prototypes import RenyiEntropy, Selection, Uniform, select_prototypes
from lssvm.tasks.weights import pick

SELECTED_FROM = 100_000
"""About so many rows, drawn by their positions, are what prototypes are selected from."""
SPARSE_FEATURES = 1000
"""Sparse features up to which a linear kernel needs no prototypes."""
HASHED = 64
"""Columns that sparse features are hashed to for the choice of prototypes."""
_CHUNK = 65_536  # rows looked at at a time
RARE = 1000  # a class of fewer rows takes part with all of them


@dataclass(frozen=True, eq=False)
class Prototypes:
    """The prototypes of a fit.

    Attributes
    ----------
    Z : array of shape (m, d)
    support : int array of shape (m,)
        Rows of the caller's data that they are; -1 for given rows, empty for the linear kernel.
    selection : Selection or None
        How they were chosen; None for the linear kernel in closed form.
    """

    Z: FloatArray
    support: IntArray
    selection: Selection | None

    def first(self, size: int) -> Prototypes:
        """Return the first ``size`` of them."""
        return Prototypes(self.Z[:size], self.support[:size], self.selection)


def choose_prototypes(rows: Rows, ask: FixedSettings, gamma: Any) -> Prototypes:
    """Choose the prototypes [DeBrabanter2010, algorithm 1].

    Parameters
    ----------
    rows : Rows
    ask : FixedSettings
    gamma : float, array or None
        Of the kernel that some rules need; None: "scale".

    Returns
    -------
    Prototypes
    """
    sample: HostRows = rows.sample
    X, n = sample.X, rows.n_rows
    size, d = number_of_prototypes(ask.n_prototypes, n), int(X.shape[1])
    most = SPARSE_FEATURES if is_sparse(X) else n
    if ask.choice.name == "linear" and d <= min(n, most):  # the features are the inputs
        return Prototypes(np.eye(d), np.empty(0, dtype=np.intp), None)
    rule = to_numpy(ask.selection) if is_foreign(ask.selection) else ask.selection
    named = isinstance(rule, str) and rule in ("renyi", "random", "uniform")
    given = isinstance(rule, (list, tuple, np.ndarray))
    if is_sparse(X) and not (named or given or isinstance(rule, (RenyiEntropy, Uniform))):
        raise InvalidInputError(
            f"selection={rule!r} cannot choose among sparse rows: use 'renyi' or 'random', give "
            "the numbers of rows, or X.toarray()."
        )
    if given:
        X = X if sample.given is None else sample.given[0]  # indices count rows of weight zero
        asked = None if isinstance(ask.n_prototypes, str) else size
        among = np.zeros((1, d)) if np.ndim(rule) == 2 else _hashed(X, ask.seed)
        selection = select_prototypes(among, asked, _at_hand(rule, sample))
    elif n <= size and named and not is_sparse(X):
        selection = _all_rows(X, size, asked=is_int(ask.n_prototypes))
    else:
        every = not isinstance(rule, str) and not is_sparse(X)
        some = slice(None) if every else _some_rows(sample, size, ask.seed)
        gamma = rows.gamma_scale() if gamma is None else gamma
        with warnings.catch_warnings():
            if not is_int(ask.n_prototypes):
                warnings.simplefilter("ignore", NumericalWarning)  # the size was ours
            selection = select_prototypes(
                _hashed(X[some], ask.seed),
                size,
                rule,
                y=pick(sample.labels, some),
                sample_weight=pick(sample.weight, some),
                kernel=ask.choice.at(gamma),
                engine=rows.selector(size),
                random_state=ask.seed,
            )
        if not isinstance(some, slice):
            chosen = selection.indices
            selection = replace(selection, indices=np.where(chosen >= 0, some[chosen], -1))
    support = selection.indices
    if is_sparse(X) and selection.rows is None:
        Z = float_rows(X[support])
    else:
        Z = np.array(selection.prototypes(X), dtype=np.float64)  # the caller's may change
    if sample.positions is not None and X.shape[0] == len(sample.positions):
        support = np.where(support >= 0, sample.positions[support], -1)
    return Prototypes(Z, support, selection)


def _hashed(X: Any, seed: int) -> Any:
    """Return rows to choose from; sparse ones dense, their features hashed to few columns.

    A feature is added to one of `HASHED` columns, with a random sign: distances between rows stay
    about what they are.
    """
    if not is_sparse(X):
        return X
    d, rng = X.shape[1], np.random.default_rng(seed)
    if d <= HASHED:
        return np.asarray(X.toarray(), dtype=np.float64)
    places, signs = rng.integers(HASHED, size=d), rng.choice([-1.0, 1.0], size=d)
    table = csr_array((signs, places, np.arange(d + 1)), shape=(d, HASHED))
    return np.asarray((float_rows(X) @ table).toarray())


def _all_rows(X: Any, size: int, *, asked: bool) -> Selection:
    _, first = np.unique(X, axis=0, return_index=True)
    if asked and len(first) < size:
        warnings.warn(
            f"n_prototypes={size} was reduced to {len(first)}: there are no more distinct rows of "
            f"positive weight. Give n_prototypes={len(first)} or less.",
            NumericalWarning,
            stacklevel=4,
        )
    return Selection(first.astype(np.intp))


def _at_hand(rule: Any, sample: HostRows) -> Any:
    """Return given row numbers as those of the sample, where rows are read in blocks."""
    if not sample.by_position or sample.positions is None or np.ndim(rule) != 1:
        return rule
    numbers = np.asarray(rule)
    lost = np.setdiff1d(numbers, sample.positions)
    if len(lost):
        raise InvalidInputError(
            f"selection names the rows {lost[:5].tolist()}, which are not among the "
            f"{len(sample.positions)} rows of positive weight that are kept of those read in "
            "blocks: give the prototypes themselves, an array of shape (m, d)."
        )
    return np.searchsorted(sample.positions, numbers)


def _some_rows(sample: HostRows, size: int, seed: int) -> Any:
    """Return the rows that prototypes are selected from: all, or some of very many."""
    n, most = sample.n_rows, max(SELECTED_FROM, 20 * size)
    if n <= most:
        return slice(None)
    limit = np.uint64(most / n * 2.0**64)
    blocks = [np.arange(part.start, part.stop) for part in slices(n, _CHUNK)]
    rows = np.concatenate([block[hash_positions(block, seed) < limit] for block in blocks])
    if sample.labels is None:
        return rows
    count = np.bincount(sample.labels[rows], minlength=int(sample.labels.max()) + 1)
    rare = []
    for c in np.flatnonzero(count < RARE):
        own = np.flatnonzero(sample.labels == c)
        rare.append(own[np.argsort(hash_positions(own, seed), kind="stable")[:RARE]])
    return np.unique(np.concatenate([rows, *rare]))
