"""The first pass of a fit: rows, classes, preparation and a uniform sample, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.random import hash_positions
from lssvm.data.prepare import Learner, Preparation
from lssvm.data.raw import RawBlock, check_rows

MAX_CLASSES = 1000
_SALT = 0x5A3D1E7B  # the sample must not follow the folds, which are hashed with the seed
PER_CLASS = 20  # rows of each class that a sample has at least, where there are so many


@dataclass(frozen=True, eq=False)
class Survey:
    """What one pass has told about a data set.

    Attributes
    ----------
    n_rows : int
        Rows of positive weight.
    preparation : Preparation or None
        None where the numbers are taken as they are.
    mean, variance : arrays of shape (d,)
        Of the prepared features.
    classes : array of shape (n_classes,) or None
        Labels in ascending order, where they were asked for.
    counts : array of shape (n_classes,) or None
        Total weight of each class.
    sample : RawBlock
        Rows drawn uniformly, in the order of the data.
    positions : int array
        Where the rows of the sample stand among all rows.
    """

    n_rows: int
    preparation: Preparation | None
    mean: FloatArray
    variance: FloatArray
    classes: NDArray[Any] | None
    counts: FloatArray | None
    sample: RawBlock
    positions: IntArray

    @property
    def complete(self) -> bool:
        """Whether the sample holds all rows."""
        return len(self.positions) == self.n_rows


def survey(data: Any, size: int, *, seed: int = 0, classes: bool = False) -> Survey:
    """Pass once over a data set.

    Parameters
    ----------
    data : Scan
        With a target.
    size : int
        Rows of the sample.
    seed : int, default=0
    classes : bool, default=False
        Whether the target holds class labels, of which the sample then has at least 20 rows each.

    Returns
    -------
    Survey

    Notes
    -----
    The sample are the rows whose positions have the smallest hashes: it depends on the seed
    and the rows, not on how they were cut into blocks or files. O(n d) time; memory of two samples.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import scan
    >>> from lssvm.data.survey import survey
    >>> found = survey(scan(np.arange(20.0)[:, None], target=np.arange(20) % 2), 5, classes=True)
    >>> found.n_rows, found.counts, len(found.sample)
    (20, array([10., 10.]), 20)
    """
    work = partial(_survey_rows, size=size, seed=seed, classes=classes)
    counted: _Counted = data.reduce(work, _Counted.merged)
    return counted.survey(data.prepare)


def _survey_rows(data: Any, size: int, seed: int, classes: bool) -> _Counted:
    counted = _Counted(Learner(data), _Smallest(size), _Labels() if classes else None)
    for block in data.blocks():
        counted.add(block, seed)
    return counted


@dataclass
class _Counted:
    """What is known after some of the rows; that of all rows is merged from parts."""

    learner: Learner
    kept: _Smallest
    tally: _Labels | None
    n: int = 0
    total: float = 0.0

    def __sizeof__(self) -> int:  # Dask asks for it to decide what to move where
        return sum(part[0].numbers.nbytes for part in self.kept.parts)

    def add(self, block: RawBlock, seed: int) -> None:
        positions = np.arange(block.start, block.start + len(block))
        check_rows(block)
        if block.weight is not None:
            used = np.flatnonzero(block.weight > 0)
            block, positions = block.take(used), positions[used]
            if len(used) == 0:
                return
        self.learner.add(block)
        hashes = hash_positions(positions, seed + _SALT)
        self.n += len(block)
        self.total += float(len(block) if block.weight is None else block.weight.sum())
        if self.tally is not None:
            self.tally.add(block, positions, hashes)
        self.kept.add(block, positions, hashes)

    def merged(self, other: _Counted) -> _Counted:
        tally = self.tally
        if tally is not None and other.tally is not None:
            tally = tally.merged(other.tally)
        return _Counted(
            self.learner.merged(other.learner),
            self.kept.merged(other.kept),
            tally,
            self.n + other.n,
            self.total + other.total,
        )

    def survey(self, prepare: bool) -> Survey:
        if self.n == 0:
            raise InvalidInputError("All weights are zero: at least one row needs a positive one.")
        learner, tally = self.learner, self.tally
        mean, variance = learner.feature_moments(self.total)
        parts = [self.kept.result()]
        if tally is not None:
            parts += [part.result() for part in tally.samples.values()]
        sample, positions = _union(parts)
        return Survey(
            self.n,
            learner.preparation() if prepare else None,
            mean if prepare else learner.mean,
            variance if prepare else learner.squares / learner.weight,
            None if tally is None else tally.classes(),
            None if tally is None else tally.counts(),
            sample,
            positions,
        )


class _Smallest:
    """The rows with the smallest hashes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.parts: list[tuple[RawBlock, IntArray, NDArray[np.uint64]]] = []
        self.count = 0
        self.limit = np.uint64(2**64 - 1)

    def add(self, block: RawBlock, positions: IntArray, hashes: NDArray[np.uint64]) -> None:
        rows = np.flatnonzero(hashes <= self.limit)
        if len(rows) == 0:
            return
        self.parts.append((block.take(rows), positions[rows], hashes[rows]))
        self.count += len(rows)
        if self.count > 2 * self.size:
            self._shrink()

    def _shrink(self) -> None:
        block = RawBlock.join([part[0] for part in self.parts])
        positions = np.concatenate([part[1] for part in self.parts])
        hashes = np.concatenate([part[2] for part in self.parts])
        if len(hashes) > self.size:
            rows = np.sort(np.argpartition(hashes, self.size - 1)[: self.size])
            block, positions, hashes = block.take(rows), positions[rows], hashes[rows]
            self.limit = hashes.max()
        self.parts, self.count = [(block, positions, hashes)], len(positions)

    def merged(self, other: _Smallest) -> _Smallest:
        """Return those of both."""
        both = _Smallest(self.size)
        both.parts, both.count = self.parts + other.parts, self.count + other.count
        if both.parts:
            both._shrink()
        return both

    def result(self) -> tuple[RawBlock, IntArray]:
        self._shrink()
        return self.parts[0][:2]


class _Labels:
    """Class labels with their weights, and some rows of each."""

    def __init__(self) -> None:
        self.samples: dict[Any, _Smallest] = {}
        self.weights: dict[Any, float] = {}

    def add(self, block: RawBlock, positions: IntArray, hashes: NDArray[np.uint64]) -> None:
        y = block.target
        assert y is not None
        if y.ndim == 2:
            raise InvalidInputError("A classifier needs one target, but several were given.")
        if y.dtype.kind == "f" and np.any(y != np.floor(y)):
            raise InvalidInputError(
                "Unknown label type: the target has fractions, so it is no class label. Use "
                "FixedSizeLSSVR for numbers."
            )
        labels, codes = np.unique(y, return_inverse=True)
        sums = np.bincount(codes, block.weight, minlength=len(labels))
        for i, label in enumerate(labels.tolist()):
            self.weights[label] = self.weights.get(label, 0.0) + float(sums[i])
            rows = np.flatnonzero(codes == i)
            found = self.samples.setdefault(label, _Smallest(PER_CLASS))
            rows = rows[hashes[rows] <= found.limit]
            if len(rows):
                found.add(block.take(rows), positions[rows], hashes[rows])
        self._check(block)

    def _check(self, block: RawBlock | None = None) -> None:
        if len(self.weights) > MAX_CLASSES:
            where = "" if block is None else f" up to {block.place(len(block) - 1)}"
            raise InvalidInputError(
                f"The target has more than {MAX_CLASSES} different labels{where}: use "
                "FixedSizeLSSVR for numbers."
            )

    def merged(self, other: _Labels) -> _Labels:
        """Return what both have seen."""
        both = _Labels()
        both.weights, both.samples = dict(self.weights), dict(self.samples)
        for label, weight in other.weights.items():
            both.weights[label] = both.weights.get(label, 0.0) + weight
            mine, its = self.samples.get(label), other.samples[label]
            both.samples[label] = its if mine is None else mine.merged(its)
        both._check()
        return both

    def classes(self) -> NDArray[Any]:
        """Return the labels in ascending order."""
        return np.unique(np.array(list(self.weights)))

    def counts(self) -> FloatArray:
        """Return their weights."""
        return np.array([self.weights[label] for label in self.classes().tolist()])


def _union(parts: list[tuple[RawBlock, IntArray]]) -> tuple[RawBlock, IntArray]:
    """Join samples, every row once, in the order of the data."""
    block = RawBlock.join([part for part, _ in parts])
    positions, first = np.unique(np.concatenate([p for _, p in parts]), return_index=True)
    return block.take(first), positions
