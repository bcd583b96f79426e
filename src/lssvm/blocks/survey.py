"""The first pass of a fit: rows, classes, preparation and a uniform sample, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.errors import InvalidInputError
from lssvm._core.random import hash_positions
from lssvm.blocks.prepare import Learner, Preparation
from lssvm.blocks.raw import RawBlock, check_rows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

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
    >>> from lssvm.blocks.survey import survey
    >>> found = survey(scan(np.arange(20.0)[:, None], target=np.arange(20) % 2), 5, classes=True)
    >>> found.n_rows, found.counts, len(found.sample)
    (20, array([10., 10.]), 20)
    """
    learner = Learner(data)
    kept = _Smallest(size)
    tally = _Labels() if classes else None
    n, total = 0, 0.0
    for block in data.blocks():
        positions = np.arange(block.start, block.start + len(block))
        check_rows(block)
        if block.weight is not None:
            used = np.flatnonzero(block.weight > 0)
            block, positions = block.take(used), positions[used]
            if len(used) == 0:
                continue
        learner.add(block)
        hashes = hash_positions(positions, seed + _SALT)
        n, total = n + len(block), total + _weight(block)
        if tally is not None:
            tally.add(block, positions, hashes)
        kept.add(block, positions, hashes)
    if n == 0:
        raise InvalidInputError("All weights are zero: at least one row needs a positive one.")
    mean, variance = learner.feature_moments(total)
    parts = [kept.result()]
    if tally is not None:
        parts += [part.result() for part in tally.samples.values()]
    sample, positions = _union(parts)
    return Survey(
        n,
        learner.preparation() if data.prepare else None,
        mean if data.prepare else learner.mean,
        variance if data.prepare else learner.squares / learner.weight,
        None if tally is None else tally.classes(),
        None if tally is None else tally.counts(),
        sample,
        positions,
    )


def _weight(block: RawBlock) -> float:
    return float(len(block)) if block.weight is None else float(block.weight.sum())


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
        if len(self.weights) > MAX_CLASSES:
            raise InvalidInputError(
                f"The target has more than {MAX_CLASSES} different labels up to "
                f"{block.place(len(block) - 1)}: use FixedSizeLSSVR for numbers."
            )

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
