"""``gamma="ard"``: one gamma per feature, found by the evidence and kept by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from lssvm._core.arrays import FloatArray, is_sparse
from lssvm._core.blocks import require
from lssvm.backends.host import HostRows
from lssvm.fitting.record import Tuning
from lssvm.kernels.dot import variances
from lssvm.tuning.relevance import DualRelevance, FixedRelevance, find_relevance, sample_rows

DUAL_ROWS, FIXED_ROWS, FIXED_PROTOTYPES = 500, 2000, 150
"""The search for relevance sees so many distinct rows, and so many prototypes, at most."""

POWERS = (1.0, 0.5)
"""How far cross-validation may go from one gamma (0) to what the evidence has found (1)."""


class Tuned(Protocol):
    """What tuning has chosen, a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def tuning(self) -> Tuning | None:
        """The record of the search."""


T = TypeVar("T", bound=Tuned)


def spread_gamma(
    evidence: DualRelevance | FixedRelevance,
    gamma: float,
    C: float,
    tuned: T,
    tune: Callable[[FloatArray], T],
    *,
    tune_C: bool,
) -> T:
    """Search for the widths of features, tune again with them, and keep the better model.

    Parameters
    ----------
    evidence : DualRelevance or FixedRelevance
    gamma, C : float
        Where the search begins: what tuning has chosen for all features.
    tuned : object
        What was tuned, with its record.
    tune : callable
        From factors of gamma by feature (d,) to what is tuned with them.
    tune_C : bool
        Whether C is searched too.

    Returns
    -------
    best : object
        ``tuned``, or what ``tune`` has returned, with the evaluations of all searches.
    """
    relevance = find_relevance(evidence, gamma, C, tune_C=tune_C)
    spread = variances(evidence.X, evidence.weight)
    best, (score, evaluations) = tuned, _score(tuned)
    for power in POWERS:
        factors = (relevance.gamma / gamma) ** power
        # the mean distance between rows stays as it was, and with it the range of gamma
        again = tune(factors * (spread.sum() / max(float(factors @ spread), 1e-300)))
        new, more = _score(again)
        evaluations += more
        if new > score or (best is tuned and new == score):
            best, score = again, new
    assert best.tuning is not None
    return replace(best, tuning=replace(best.tuning, n_evaluations=evaluations))


def _score(tuned: Tuned) -> tuple[float, int]:
    assert tuned.tuning is not None
    return tuned.tuning.best_score, tuned.tuning.n_evaluations


def relevance_sample(
    rows: HostRows, weight: FloatArray | None, size: int, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return features, targets and weights of the rows that the search sees.

    Of classes it sees one output each, whatever the code; ``weight`` has those of classes in it.
    Copies are one row of their weight, and rows stand in the order of their values, so that neither
    repeating nor shuffling rows changes a digit.
    """
    some = sample_rows(rows.X, size, seed)
    X = dense_rows(rows.X[some], rows.budget)
    if rows.labels is None:
        Y = np.asarray(rows.Y[some], dtype=np.float64)
    else:
        Y = np.where(rows.labels[some][:, None] == np.arange(rows.labels.max() + 1), 1.0, -1.0)
        Y = Y[:, 1:] if Y.shape[1] == 2 else Y
    given = np.ones(len(Y)) if weight is None else weight[some]
    table, place = np.unique(np.column_stack([X, Y]), axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), given)
    d = X.shape[1]
    even = weight is None and len(table) == len(given)
    return table[:, :d], table[:, d:], None if even else total


def dense_rows(X: Any, budget: int) -> Any:
    """Return some rows as an array, as derivatives by every feature need them."""
    if not is_sparse(X):
        return X
    require(
        4 * 8 * X.shape[0] * X.shape[1],
        budget,
        what=f"gamma='ard' with {X.shape[0]:,} rows of {X.shape[1]:,} sparse features made dense",
        advice="Use one gamma, fewer features, or raise memory_budget.",
    )
    return X.toarray()


def shares(gamma: Any, X: Any, weight: FloatArray | None) -> FloatArray:
    """Return the shares (d,) of the features in the mean exponent of the kernel."""
    share = np.broadcast_to(gamma, (X.shape[1],)) * variances(X, weight)
    total = float(share.sum())
    return share / total if total > 0 else np.zeros(len(share))
