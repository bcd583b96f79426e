"""A uniform sample of rows in one pass, with what is counted on the way: rows, classes, weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import AnyArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.random import hash_positions
from lssvm.data.raw import RawBlock, check_rows

MAX_CLASSES = 1000
_SALT = 0x5A3D1E7B  # the sample must not follow the folds, which are hashed with the seed
PER_CLASS = 20  # rows of each class that a sample has at least, where there are so many


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows that were drawn from a data set, and what was counted in all of it.

    Attributes
    ----------
    block : RawBlock or TableRows
        Rows drawn uniformly, in the order of the data.
    positions : int array of shape (m,)
        Where they stand among all rows, ascending.
    n_rows : int
        Rows of positive weight.
    classes : array of shape (n_classes,) or None
        Labels in ascending order, of a sample for a classifier.
    counts : array of shape (n_classes,) or None
        Total weight of each class.
    sizes : array of shape (n_classes,) or None
        Rows of each class.
    """

    block: Any
    positions: IntArray
    n_rows: int
    classes: AnyArray | None
    counts: FloatArray | None
    sizes: FloatArray | None

    @property
    def complete(self) -> bool:
        """Whether the sample holds all rows."""
        return len(self.positions) == self.n_rows


class Sampler:
    """Draws rows block by block; samples of parts of the rows are merged.

    The rows drawn are those whose positions have the smallest hashes: the sample depends on the
    seed and the rows, not on how they were cut into blocks or files. O(n) time; memory of two
    samples.
    """

    def __init__(self, size: int, seed: int, classes: bool) -> None:
        self.seed, self.n_rows = seed, 0
        self.drawn = _Smallest(size)
        self.labels = _Labels() if classes else None

    def __sizeof__(self) -> int:  # Dask uses it to decide what to move where
        return sum(part[0].numbers.nbytes for part in self.drawn.parts)

    def add(self, blocks: Iterable[RawBlock]) -> Sampler:
        """Draw from the rows of positive weight of some blocks."""
        for block in blocks:
            check_rows(block)
            positions = np.arange(block.start, block.start + len(block))
            if block.weight is not None:
                used = np.flatnonzero(block.weight > 0)
                block, positions = block.take(used), positions[used]
            if len(block):
                hashes = hash_positions(positions, self.seed + _SALT)
                self.n_rows += len(block)
                if self.labels is not None:
                    self.labels.add(block, positions, hashes)
                self.drawn.add(block, positions, hashes)
        return self

    def merged(self, other: Sampler) -> Sampler:
        """Return what both have drawn."""
        both = Sampler(self.drawn.size, self.seed, False)
        both.n_rows, both.drawn = self.n_rows + other.n_rows, self.drawn.merged(other.drawn)
        if self.labels is not None and other.labels is not None:
            both.labels = self.labels.merged(other.labels)
        return both

    def sample(self) -> Sample:
        """Return the sample."""
        if self.n_rows == 0:
            raise InvalidInputError("All weights are zero: at least one row needs a positive one.")
        labels, parts = self.labels, [self.drawn.result()]
        if labels is None:
            return Sample(*_union(parts), self.n_rows, None, None, None)
        parts += [part.result() for part in labels.samples.values()]
        return Sample(*_union(parts), self.n_rows, *labels.counted())


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
    """Class labels with their weights and numbers of rows, and some rows of each."""

    def __init__(self) -> None:
        self.samples: dict[Any, _Smallest] = {}
        self.totals: dict[Any, FloatArray] = {}

    def add(self, block: RawBlock, positions: IntArray, hashes: NDArray[np.uint64]) -> None:
        y = block.target
        assert y is not None
        if y.ndim == 2:
            raise InvalidInputError("A classifier needs one target, but several were given.")
        if y.dtype.kind == "f" and np.any(y != np.floor(y)):
            raise InvalidInputError(
                "Unknown label type: the target has fractions, so it is not a class label. Use a "
                "regressor, such as FixedSizeLSSVR, for numbers."
            )
        labels, codes, sizes = np.unique(y, return_inverse=True, return_counts=True)
        sums = np.column_stack([np.bincount(codes, block.weight), sizes])
        for i, label in enumerate(labels.tolist()):
            self.totals[label] = self.totals.get(label, 0.0) + sums[i]
            rows = np.flatnonzero(codes == i)
            smallest = self.samples.setdefault(label, _Smallest(PER_CLASS))
            rows = rows[hashes[rows] <= smallest.limit]
            if len(rows):
                smallest.add(block.take(rows), positions[rows], hashes[rows])
        self._check(block)

    def _check(self, block: RawBlock | None = None) -> None:
        if len(self.totals) > MAX_CLASSES:
            where = "" if block is None else f" up to {block.place(len(block) - 1)}"
            raise InvalidInputError(
                f"The target has more than {MAX_CLASSES} different labels{where}: use a "
                "regressor, such as FixedSizeLSSVR, for numbers."
            )

    def merged(self, other: _Labels) -> _Labels:
        """Return what both have seen."""
        both = _Labels()
        both.totals, both.samples = dict(self.totals), dict(self.samples)
        for label, total in other.totals.items():
            both.totals[label] = both.totals.get(label, 0.0) + total
            mine, its = self.samples.get(label), other.samples[label]
            both.samples[label] = its if mine is None else mine.merged(its)
        both._check()
        return both

    def counted(self) -> tuple[AnyArray, FloatArray, FloatArray]:
        """Return the labels in ascending order, their weights and their numbers of rows."""
        classes = np.unique(np.array(list(self.totals)))
        weights, sizes = np.array([self.totals[label] for label in classes.tolist()]).T
        return classes, weights, sizes


def _union(parts: list[tuple[RawBlock, IntArray]]) -> tuple[RawBlock, IntArray]:
    """Join samples, every row once, in the order of the data."""
    block = RawBlock.join([part for part, _ in parts])
    positions, first = np.unique(np.concatenate([p for _, p in parts]), return_index=True)
    return block.take(first), positions
