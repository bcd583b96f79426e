"""From raw columns to numbers on one scale: standardised, one-hot, nothing missing.

Then the first pass of a fit (`survey`): rows, classes, preparation and a uniform sample, in bounded
memory.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, check_magnitude
from lssvm._core.errors import InvalidInputError
from lssvm._core.random import hash_positions
from lssvm.data.plain import raw_block
from lssvm.data.raw import RawBlock, Schema, check_rows


@dataclass(frozen=True, eq=False)
class Preparation:
    """A learned preparation that converts raw columns into features.

    Attributes
    ----------
    schema : Schema
        Raw columns.
    mean, scale : arrays of shape (p,)
        Of the columns of numbers: a feature is (x - mean) / scale. 0 and 1 where nothing is scaled.
    fill : array of shape (p,) or None
        What stands for a missing number; None: a missing value is an error.
    categories : tuple of tuples of str or None
        Strings of each column of text, one feature of 0 and 1 each; None stands for a missing one.
        A string that is not among them gives zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import scan
    >>> from lssvm.data import Preparation
    >>> table = {"age": np.array([20.0, 40.0]), "job": np.array(["cook", "smith"])}
    >>> ready = Preparation.learn(scan(table))
    >>> ready.feature_names, ready.transform({"age": [30.0], "job": ["smith"]}).tolist()
    (('age', 'job=cook', 'job=smith'), [[0.0, 0.0, 1.0]])
    """

    schema: Schema
    mean: FloatArray
    scale: FloatArray
    fill: FloatArray | None
    categories: tuple[tuple[str | None, ...], ...]
    _places: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Where the features of every raw column begin, those of numbers and those of texts.
        sizes, number = map(len, self.categories), np.array(self.schema.kinds) != "text"
        starts = np.cumsum([0, *(1 if one else next(sizes) for one in number)])
        places = starts[:-1][number], starts[:-1][~number].tolist(), int(starts[-1])
        object.__setattr__(self, "_places", places)

    @classmethod
    def learn(cls, data: Any) -> Preparation:
        """Learn from one pass over a `Scan`, by its options.

        Parameters
        ----------
        data : Scan
            Rows to learn from.
        """
        learner = Learner(data)
        for block in data.blocks():
            learner.add(block)
        return learner.preparation()

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self._places[2])

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features: the column, or column=string."""
        names: list[str] = []
        categories = iter(self.categories)
        for name, kind in zip(self.schema.names, self.schema.kinds, strict=True):
            if kind != "text":
                names.append(name)
            else:
                names += [f"{name}={'' if c is None else c}" for c in next(categories)]
        return tuple(names)

    def transform(self, data: Any) -> FloatArray:
        """Convert raw rows into features.

        Parameters
        ----------
        data : RawBlock, data frame, Arrow table, mapping from names to columns, or array
            With the raw columns (an array: in their order).

        Returns
        -------
        array of shape (n, d)

        Notes
        -----
        O(n d) time; no copy of the rows besides the result.
        """
        block = data if isinstance(data, RawBlock) else raw_block(data, self.schema)
        numbers = _filled(block, self.schema, self.fill)
        places, texts, d = self._places
        if not texts and len(places) == d:
            return (numbers - self.mean) / self.scale
        X = np.zeros((len(block), d))
        X[:, places] = (numbers - self.mean) / self.scale
        for j, (column, first) in enumerate(zip(block.texts, texts, strict=True)):
            known = {c: i for i, c in enumerate(self.categories[j])}
            absent = known.get(None, -1)
            if self.fill is None and np.any(column.codes < 0):
                row = int(np.flatnonzero(column.codes < 0)[0])
                raise _missing(self.schema.texts[j], block.place(row))
            table = np.array([known.get(level, -1) for level in column.levels] + [absent])
            codes = table[column.codes]
            rows = np.flatnonzero(codes >= 0)
            X[rows, first + codes[rows]] = 1.0
        return X

    def to_dict(self) -> dict[str, Any]:
        """Return everything exactly, in JSON types."""
        return {
            "names": list(self.schema.names),
            "kinds": list(self.schema.kinds),
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "fill": None if self.fill is None else self.fill.tolist(),
            "categories": [list(levels) for levels in self.categories],
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Preparation:
        """Return what `to_dict` has written.

        Parameters
        ----------
        state : mapping
            As `to_dict` returned it.
        """
        fill = state["fill"]
        return cls(
            Schema(tuple(state["names"]), tuple(state["kinds"])),
            np.array(state["mean"], dtype=np.float64),
            np.array(state["scale"], dtype=np.float64),
            None if fill is None else np.array(fill, dtype=np.float64),
            tuple(tuple(levels) for levels in state["categories"]),
        )


def _filled(block: RawBlock, schema: Schema, fill: FloatArray | None) -> FloatArray:
    """Return the numbers of a block, those that are missing filled in, or raise."""
    numbers = block.numbers
    finite = np.isfinite(numbers)
    if finite.all():
        return numbers
    infinite = np.isinf(numbers)
    if infinite.any():
        row, column = (int(i[0]) for i in np.nonzero(infinite))
        raise InvalidInputError(
            f"Column {schema.numbers[column]!r} has an infinite value (inf) in "
            f"{block.place(row)}: replace it by a number, or remove the row."
        )
    if fill is None:
        row, column = (int(i[0]) for i in np.nonzero(~finite))
        raise _missing(schema.numbers[column], block.place(row))
    return np.where(finite, numbers, fill)


def _missing(column: str, place: str) -> InvalidInputError:
    return InvalidInputError(
        f"Column {column!r} has a missing value (NaN) in {place}: remove such rows, or scan the "
        "training data with missing='impute'."
    )


class Learner:
    """Collects what a `Preparation` needs, block by block.

    Parameters
    ----------
    data : Scan
        Its options are obeyed; its blocks are given to `add`.

    Notes
    -----
    Means and variances of blocks are merged, so that nothing cancels. Rows of weight zero
    do not count, a weight of 2 counts as the row twice. Memory does not grow with the rows.
    """

    def __init__(self, data: Any) -> None:
        self.schema, self.standardise = data.schema, data.standardise
        self.missing, self.max_categories = data.missing, data.max_categories
        p = len(self.schema.numbers)
        self.weight = np.zeros(p)
        self.mean = np.zeros(p)
        self.squares = np.zeros(p)  # sum of s (x - mean)^2
        self.seen: list[dict[str | None, float]] = [{} for _ in self.schema.texts]

    def add(self, block: RawBlock) -> None:
        """Count a block."""
        s = np.ones(len(block)) if block.weight is None else block.weight
        self._add_numbers(block, s)
        for name, counts, column in zip(self.schema.texts, self.seen, block.texts, strict=True):
            sums = np.bincount(column.codes + 1, s, minlength=len(column.levels) + 1)
            for level, weight in zip((None, *column.levels), sums.tolist(), strict=True):
                if weight > 0:
                    counts[level] = counts.get(level, 0.0) + weight
            if None in counts and self.missing == "refuse":
                row = int(np.flatnonzero(column.codes < 0)[0])
                raise _missing(name, block.place(row))
            self._check_categories(name, counts, block)

    def _check_categories(
        self, name: str, counts: dict[str | None, float], block: RawBlock | None = None
    ) -> None:
        if len(counts) > self.max_categories:
            where = "" if block is None else f" up to {block.place(len(block) - 1)}"
            raise InvalidInputError(
                f"Column {name!r} has more than max_categories={self.max_categories} different "
                f"strings{where}. Leave it out with columns=, or raise max_categories."
            )

    def _add_numbers(self, block: RawBlock, s: FloatArray) -> None:
        x = block.numbers
        finite = np.isfinite(x)
        if not finite.all():
            fill = None if self.missing == "refuse" else np.zeros(x.shape[1])
            x = _filled(block, self.schema, fill)
            S = s[:, None] * finite
        else:
            S = s[:, None]
        check_magnitude(x, "A column of numbers", "divide it by a constant", small=True)
        weight = np.broadcast_to(S.sum(axis=0), self.weight.shape)
        inner = np.where(weight > 0, weight, 1.0)
        mean = (S * x).sum(axis=0) / inner
        squares = (S * (x - mean) ** 2).sum(axis=0)
        self._merge_numbers(weight, mean, squares)

    def _merge_numbers(self, weight: FloatArray, mean: FloatArray, squares: FloatArray) -> None:
        both = self.weight + weight
        step = np.where(both > 0, mean - self.mean, 0.0)
        share = weight / np.where(both > 0, both, 1.0)
        self.squares = self.squares + squares + step**2 * self.weight * share
        self.mean, self.weight = self.mean + step * share, both

    def merged(self, other: Learner) -> Learner:
        """Return what both have counted."""
        new = copy.copy(self)
        new._merge_numbers(other.weight, other.mean, other.squares)
        new.seen = []
        for name, mine, its in zip(self.schema.texts, self.seen, other.seen, strict=True):
            counts = {level: mine.get(level, 0.0) + its.get(level, 0.0) for level in mine | its}
            self._check_categories(name, counts)
            new.seen.append(counts)
        return new

    def preparation(self) -> Preparation:
        """Return what was learned."""
        p = len(self.mean)
        mean, scale = np.zeros(p), np.ones(p)
        if self.standardise:
            mean = self.mean
            deviation = self._deviation()
            # What rounding leaves of a large constant must not outweigh the other columns.
            scale = np.where(deviation > 0, deviation, np.maximum(1.0, 1e-9 * np.abs(mean)))
        fill = self.mean.copy() if self.missing == "impute" else None
        categories = tuple(
            tuple(sorted(counts, key=lambda level: ("", "") if level is None else ("s", level)))
            for counts in self.seen
        )
        return Preparation(self.schema, mean, scale, fill, categories)

    def _deviation(self) -> FloatArray:
        deviation = np.sqrt(self.squares / np.where(self.weight > 0, self.weight, 1.0))
        # Rounding in a column that is constant is no variation.
        constant = deviation <= 1e-12 * np.abs(self.mean)
        return np.where(constant, 0.0, deviation)

    def feature_moments(self, total: float) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the prepared features, given the total weight."""
        ready = self.preparation()
        places, texts, d = ready._places
        mean, variance = np.zeros(d), np.zeros(d)
        share = self.weight / total  # missing ones are filled with the mean
        mean[places] = (self.mean - ready.mean) / ready.scale
        variance[places] = share * (self._deviation() / ready.scale) ** 2
        for first, levels, counts in zip(texts, ready.categories, self.seen, strict=True):
            part = np.array([counts[level] for level in levels]) / total
            mean[first : first + len(levels)] = part
            variance[first : first + len(levels)] = part * (1.0 - part)
        return mean, variance


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
    classes: AnyArray | None
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
    >>> from lssvm.data.prepare import survey
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

    def classes(self) -> AnyArray:
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
