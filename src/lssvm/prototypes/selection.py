"""What a selection rule is given and what it returns; the simplest rule draws at random."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from lssvm._core.arrays import Device, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm.data.folds import hash_rows

if TYPE_CHECKING:
    from lssvm.prototypes.bandwidth import Bandwidth

Keys = npt.NDArray[np.uint64]


def as_rows(X: npt.ArrayLike) -> FloatArray:
    """Return X as a two-dimensional array of floats (float32 and float64 are kept)."""
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.size == 0:
        raise InvalidInputError(
            f"X has shape {rows.shape}; a non-empty two-dimensional array (rows, features) is "
            "needed, so reshape a single feature with X.reshape(-1, 1)."
        )
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    return rows


def random_order(
    n: int, size: int, rng: np.random.Generator, weight: FloatArray | None
) -> IntArray:
    """Draw ``size`` of n rows without replacement, one after the other, weights as probabilities.

    Rows of weight 0 are never drawn. With weights, exponential variables divided by the weights
    are sorted. Time and memory O(n); O(size) without weights where size is below n / 50.
    """
    if weight is None:
        return rng.choice(n, min(size, n), replace=False).astype(np.intp, copy=False)
    positive = np.flatnonzero(weight > 0.0)
    wait = rng.standard_exponential(positive.size) / weight[positive]
    if size < positive.size:
        nearest = np.argpartition(wait, size)[:size]
        positive, wait = positive[nearest], wait[nearest]
    return positive[np.argsort(wait)]


def draw_distinct(
    X: FloatArray,
    size: int,
    rng: np.random.Generator,
    weight: FloatArray | None = None,
    rows: IntArray | None = None,
    taken: Keys | None = None,
) -> IntArray:
    """Draw rows with different contents at random, in random order."""
    n = X.shape[0] if rows is None else rows.size
    row_weight = weight if weight is None or rows is None else weight[rows]
    for tried in (min(2 * size, n), n):
        order = random_order(n, tried, rng, row_weight)
        drawn = order if rows is None else rows[order]
        keys = hash_rows(X[drawn])
        first = np.sort(np.unique(keys, return_index=True)[1])
        if taken is not None:
            first = first[~np.isin(keys[first], taken)]
        drawn = drawn[first]
        if drawn.size >= size or tried == n:
            break
    return drawn[:size]


def class_quotas(weights: FloatArray, size: int, limits: IntArray) -> IntArray:
    """Share ``size`` places among classes in proportion to their weights."""
    if limits.sum() <= size:
        return limits.copy()
    least = np.minimum(limits, 1)
    if least.sum() >= size:
        quotas = np.zeros_like(limits)
        quotas[np.argsort(-np.where(least > 0, weights, -1.0), kind="stable")[:size]] = 1
        return quotas
    low, high = 0.0, float(limits.max() / weights[limits > 0].min())
    for _ in range(200):  # bisection to the last bit
        factor = 0.5 * (low + high)
        if np.clip(factor * weights, least, limits).sum() < size:
            low = factor
        else:
            high = factor
    shares = np.clip(high * weights, least, limits)
    quotas = np.floor(shares + 1e-9).astype(np.intp)
    remainder = np.where(quotas < limits, shares - quotas, -1.0)
    quotas[np.argsort(-remainder, kind="stable")[: size - int(quotas.sum())]] += 1
    return quotas


def interleaved(parts: list[IntArray]) -> IntArray:
    """Return the rows of all classes in the order of `interleave`."""
    sequence = interleave(np.array([part.size for part in parts], dtype=np.intp))
    rows = np.empty(sequence.size, dtype=np.intp)
    for c, part in enumerate(parts):
        rows[sequence == c] = part
    return rows


def interleave(quotas: IntArray) -> IntArray:
    """Order places so that every prefix shares them about as the whole does."""
    classes = np.repeat(np.arange(quotas.size), quotas)
    nth = np.concatenate([np.arange(q) for q in quotas]) if quotas.size else classes
    due = np.where(nth == 0, -1.0, (nth + 0.5) / np.maximum(quotas[classes], 1))
    return classes[np.lexsort((-quotas[classes], due))]


@dataclass(frozen=True, eq=False)
class Selection:
    """Which rows became prototypes, and how.

    Attributes
    ----------
    indices : ndarray of int, shape (m,)
        Rows of X, each once. **Every prefix is a selection**: ``indices[:k]`` is what the rule
        holds for a good set of k, so that sizes can be compared on nested sets. How the order
        arises is a rule's own business (see there). -1 where rows were given that need not be
        rows of X.
    entropy_trace : ndarray of shape (n_swaps + 1,)
        Quadratic Renyi entropy at the start and after every swap; empty for rules without.
    n_trials : int
        Candidates that were considered.
    n_swaps : int
        Candidates that were taken.
    bandwidth : Bandwidth or None
        Bandwidths of the entropy kernel.
    rows : ndarray of shape (m, d) or None
        The prototypes themselves, where rows were given.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.prototypes import select_prototypes
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> select_prototypes(X, 3, [4, 0, 2]).prototypes(X, 2).tolist()
    [[4.0], [0.0]]
    """

    indices: IntArray
    entropy_trace: FloatArray = field(default_factory=lambda: np.empty(0))
    n_trials: int = 0
    n_swaps: int = 0
    bandwidth: Bandwidth | None = None
    rows: FloatArray | None = None

    def prototypes(self, X: npt.ArrayLike, size: int | None = None) -> FloatArray:
        """Return the prototypes, or the first ``size`` of them, as rows: shape (m, d).

        Parameters
        ----------
        X : array of shape (n, d)
            The rows that were selected from.
        size : int, optional
            How many prototypes; by default all.
        """
        if self.rows is not None:
            return self.rows[:size]
        return np.asarray(np.asarray(X)[self.indices[:size]])


class Kernel(Protocol):
    """What the rules need of a kernel."""

    def __call__(self, X: FloatArray, Z: FloatArray, /) -> FloatArray:
        """Return the kernel of all pairs, shape (n, m)."""

    def diag(self, X: FloatArray, /) -> FloatArray:
        """Return the kernel of each row with itself, shape (n,)."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rows to select prototypes from, checked, and the number of prototypes.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        The rows.
    size : int
        How many to select, at most n.
    rng : numpy.random.Generator
        Source of randomness.
    weight : ndarray of shape (n,) or None
        Sample weights; rows of weight 0 may not be selected.
    labels : ndarray of int, shape (n,), or None
        Class of each row, 0 to k-1, for selections that keep the shares of the classes.
    kernel : Kernel or None
        The model's kernel, for rules that need one.
    engine : Device or None
        The device for large computations; None: NumPy.

    Examples
    --------
    A custom rule is any class with a method ``select``:

    >>> import numpy as np
    >>> from lssvm.prototypes import Selection, select_prototypes
    >>> class Largest:
    ...     def select(self, candidates):
    ...         return Selection(np.argsort(-candidates.X.sum(axis=1))[: candidates.size])
    >>> select_prototypes(np.array([[1.0], [5.0], [3.0]]), 2, Largest()).indices.tolist()
    [1, 2]
    """

    X: FloatArray
    size: int
    rng: np.random.Generator
    weight: FloatArray | None = None
    labels: IntArray | None = None
    kernel: Kernel | None = None
    engine: Device | None = None

    @property
    def count(self) -> float:
        """The sample size: rows, or the sum of the weights."""
        return float(self.X.shape[0]) if self.weight is None else float(self.weight.sum())

    def class_rows(self) -> tuple[list[IntArray], FloatArray]:
        """Return the rows of positive weight of each class and the weight of each class."""
        assert self.labels is not None
        k = int(self.labels.max()) + 1
        small = np.uint16 if k < 2**16 else np.intp  # sorted in linear time
        order = np.argsort(self.labels.astype(small), kind="stable")
        if self.weight is not None:
            order = order[self.weight[order] > 0.0]
        members = np.split(order, np.searchsorted(self.labels[order], np.arange(1, k)))
        mass = np.bincount(self.labels, self.weight, minlength=k).astype(np.float64)
        return members, mass

    def draw(self) -> IntArray:
        """Draw distinct rows at random, within classes where there are labels.

        A prefix of the result is such a draw of fewer rows. Fewer than ``size`` rows come back,
        with a warning, if there are not as many distinct ones of positive weight.
        """
        if self.labels is None:
            drawn = draw_distinct(self.X, self.size, self.rng, self.weight)
        else:
            drawn = self._draw_within_classes()
        warn_if_short(self.size, drawn.size, "distinct rows of positive weight")
        return drawn

    def _draw_within_classes(self) -> IntArray:
        members, mass = self.class_rows()
        limits = np.array([rows.size for rows in members], dtype=np.intp)
        while True:
            quotas = class_quotas(mass, self.size, limits)
            taken = np.empty(0, dtype=np.uint64)
            parts = []
            for rows, quota in zip(members, quotas, strict=True):
                drawn = draw_distinct(self.X, int(quota), self.rng, self.weight, rows, taken)
                parts.append(drawn)
                taken = np.append(taken, hash_rows(self.X[drawn]))
            sizes = np.array([part.size for part in parts], dtype=np.intp)
            if (sizes == quotas).all():
                return interleaved(parts)
            limits = np.where(sizes < quotas, sizes, limits)


@runtime_checkable
class Rule(Protocol):
    """A way to select prototypes.

    Examples
    --------
    >>> from lssvm.prototypes import RenyiEntropy
    >>> callable(RenyiEntropy().select)
    True
    """

    def select(self, candidates: Candidates) -> Selection:
        """Select ``candidates.size`` rows of ``candidates.X``, or fewer with a warning.

        Parameters
        ----------
        candidates : Candidates
            The rows, the number of prototypes and the random generator.
        """


def warn_if_short(wanted: int, selected: int, of_what: str) -> None:
    """Warn that fewer prototypes were selected than requested."""
    if selected < wanted:
        warnings.warn(
            f"n_prototypes={wanted} was reduced to {selected}: the data has no more {of_what}. "
            f"Give n_prototypes={selected} or less to silence this.",
            NumericalWarning,
            stacklevel=2,
        )


def as_labels(y: npt.ArrayLike, n: int) -> IntArray:
    """Turn integer class labels into codes 0 to k-1."""
    labels = np.asarray(y)
    if labels.shape != (n,) or labels.dtype.kind not in "iub":
        raise InvalidInputError(
            f"y has shape {labels.shape} and type {labels.dtype}; integer class labels of shape "
            f"({n},) are needed to select within classes. Encode the labels, or leave y out."
        )
    codes = labels.astype(np.intp, copy=False)
    if codes.min() >= 0 and codes.max() < n:  # in linear time
        present = np.bincount(codes) > 0
        return codes if present.all() else (np.cumsum(present) - 1)[codes]
    return np.unique(codes, return_inverse=True)[1].astype(np.intp, copy=False)


@dataclass(frozen=True)
class Uniform:
    """Draw distinct rows at random, with the sample weights as probabilities.

    Notes
    -----
    The baseline of [DeBrabanter2010, table 1]. With labels every class gets its share of the
    prototypes by weight, at least one. The order is the order of the draw, classes interleaved: a
    prefix is such a draw of fewer rows. Time O(n), memory O(n) at most.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.prototypes import Uniform, select_prototypes
    >>> X = np.arange(10.0).reshape(-1, 1)
    >>> y = np.array([0] * 8 + [1] * 2)
    >>> chosen = select_prototypes(X, 5, Uniform(), y=y, random_state=0)
    >>> np.bincount(y[chosen.indices]).tolist()
    [4, 1]
    """

    def select(self, candidates: Candidates) -> Selection:
        """Select prototypes, see `select_prototypes`."""
        return Selection(candidates.draw())
