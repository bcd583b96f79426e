"""Prototypes by randomly pivoted Cholesky factorisation of the kernel matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.linalg import solve_triangular

from lssvm._core.errors import InvalidInputError
from lssvm.prototypes.sampling import Array, Indices, Rows, class_quotas, random_order
from lssvm.prototypes.selection import Kernel, Selection, Task, warn_if_short

_BLOCK = 64
_RANK = 1e-12


@dataclass(frozen=True)
class RPCholesky:
    """Select pivots with probabilities proportional to what the kernel matrix has left there.

    Each pivot is drawn with probability proportional to the diagonal of the residual
    K - K_S (K_SS)^-1 K_S^T, times the sample weight: rows that the prototypes represent badly. The
    expected trace of the residual is close to the best of its rank.

    Parameters
    ----------
    max_rows : int, default=20000
        With more rows, a uniform sample of so many is factorised; the memory is 8 max_rows m bytes.

    Notes
    -----
    Randomly pivoted Cholesky of Chen, Epperly, Tropp and Webber (Communications on Pure and Applied
    Mathematics, 2025), in the block form with rejection sampling of Epperly, Tropp and Webber
    (2024): candidates are drawn 64 at a time from the present diagonal, each is accepted with
    probability (diagonal after the ones before it) / (diagonal when drawn), and all accepted
    columns are eliminated by matrix products. The pivots have exactly the distribution of
    one-by-one draws. It needs the kernel of the model (``select_prototypes(..., kernel=...)``).

    Rows whose residual is below 1e-12 of their diagonal count as represented, so duplicates are
    never taken and a kernel of low rank gives fewer prototypes, with a warning. With labels, a
    class that has its share of prototypes takes no more. The order is the order of the pivots: a
    prefix is a run with fewer (shares of classes hold for the whole set only).

    Time O(n m^2) with the kernel's own, memory O(n m), n at most ``max_rows``.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.prototypes import RPCholesky, select_prototypes
    >>> class Linear:
    ...     def __call__(self, X, Z):
    ...         return X @ Z.T
    ...     def diag(self, X):
    ...         return (X**2).sum(axis=1)
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> select_prototypes(X, 3, RPCholesky(), kernel=Linear(), random_state=0).indices.size
    3
    """

    max_rows: int = 20_000

    def select(self, task: Task) -> Selection:
        """Select prototypes, see `select_prototypes`."""
        if task.kernel is None:
            raise InvalidInputError(
                "rule='rpcholesky' needs the kernel of the model: give kernel=, an object with "
                "kernel(X, Z) and kernel.diag(X)."
            )
        usable = None if task.weight is None else (task.weight > 0.0).astype(np.float64)
        rows = np.sort(random_order(task.X.shape[0], self.max_rows, task.rng, usable))
        labels = np.zeros(rows.size, dtype=np.intp) if task.labels is None else task.labels[rows]
        weight = np.ones(rows.size) if task.weight is None else task.weight[rows]
        size = min(task.size, rows.size)
        mass = np.bincount(labels, weight).astype(np.float64)
        room = class_quotas(mass, size, np.bincount(labels))
        X = task.X[rows].astype(np.float64)  # residuals in float32 are mostly rounding
        pivots, trials = _factorise(X, weight, labels, room, task.kernel, task.rng)
        warn_if_short(task.size, pivots.size, "rows that the kernel can tell apart")
        return Selection(rows[pivots], n_trials=trials, n_swaps=pivots.size)


def _factorise(
    X: Rows, weight: Array, labels: Indices, room: Indices, kernel: Kernel, rng: Generator
) -> tuple[Indices, int]:
    """Return the pivots and how many candidates were drawn."""
    n, m = X.shape[0], int(room.sum())
    room = room.copy()
    factor = np.empty((n, m))
    residual = np.array(kernel.diag(X), dtype=np.float64)
    negligible = _RANK * residual
    pivots = np.empty(0, dtype=np.intp)
    trials = 0
    while pivots.size < m:
        chance = np.cumsum(weight * residual * (room[labels] > 0))
        if not chance[-1] > 0.0:
            break
        drawn = np.searchsorted(chance, rng.random(_BLOCK) * chance[-1], side="right")
        drawn = np.minimum(drawn, n - 1)
        trials += drawn.size
        known = factor[:, : pivots.size]
        block = np.asarray(kernel(X[drawn], X[drawn]), dtype=np.float64)
        block -= known[drawn] @ known[drawn].T
        level = rng.random(drawn.size) * residual[drawn]
        accepted, lower = _reject(block, level, negligible[drawn], labels[drawn], room)
        if accepted.size == 0:  # rounding: what was drawn has nothing left
            residual[drawn] = 0.0
            continue
        new = drawn[accepted]
        columns = np.asarray(kernel(X, X[new]), dtype=np.float64) - known @ known[new].T
        part = solve_triangular(lower, columns.T, lower=True, check_finite=False).T
        factor[:, pivots.size : pivots.size + new.size] = part
        residual -= np.einsum("ij,ij->i", part, part)
        residual[residual <= negligible] = 0.0
        residual[new] = 0.0
        pivots = np.append(pivots, new)
    return pivots, trials


def _reject(
    block: Array, level: Array, negligible: Array, labels: Indices, room: Indices
) -> tuple[Indices, Array]:
    """Accept candidates in turn; return their positions and the Cholesky factor of their block.

    ``block`` is destroyed and ``room`` counted down.
    """
    accepted: list[int] = []
    columns = np.zeros_like(block)
    for j in range(level.size):
        left = block[j, j]
        if left <= max(level[j], negligible[j]) or room[labels[j]] == 0:
            continue
        column = block[:, j] / math.sqrt(left)
        block -= np.outer(column, column)
        columns[:, len(accepted)] = column
        accepted.append(j)
        room[labels[j]] -= 1
    chosen = np.array(accepted, dtype=np.intp)
    return chosen, np.tril(columns[chosen, : chosen.size])
