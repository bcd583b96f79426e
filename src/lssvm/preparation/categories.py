"""What is learned of categories: indicators of levels, and targets encoded out of fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lssvm._core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.preparation.encodings import HALF, LevelEncoding
from lssvm.preparation.tables import RawColumn, is_missing

FEW_CLASSES = 50
"""Whole numbers with at most so many different values are classes, unless told otherwise."""

SMALLEST_SCALE = 0.1
"""An encoded target is not blown up more than to this share of the target's own deviation."""


@dataclass(frozen=True, eq=False)
class Targets:
    """What levels are encoded by: numbers, or one column of 0 and 1 for every class but the first.

    Attributes
    ----------
    values : array of shape (n, k)
    suffixes : tuple of str
    """

    values: FloatArray
    suffixes: tuple[str, ...]


def read_targets(y: Any, n_rows: int, kind: str, counted: BoolArray) -> Targets:
    """Return y as numbers.

    Parameters
    ----------
    y : array of shape (n,) or (n, k)
    n_rows : int
    kind : {"auto", "classes", "numbers"}
        "auto": text, booleans and whole numbers with at most 50 different values are classes.
    counted : bool array of shape (n,)
        The rows of positive weight; classes that no such row has do not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.preparation.categories import read_targets
    >>> read_targets(["no", "yes", "no"], 3, "auto", np.ones(3, dtype=bool)).values.ravel().tolist()
    [0.0, 1.0, 0.0]
    """
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim not in (1, 2) or len(labels) != n_rows:
        raise InvalidInputError(
            f"y has shape {labels.shape} but X has {n_rows} rows: give one target for each row."
        )
    if labels.dtype.kind in "OUT" and any(is_missing(v) for v in set(labels.ravel().tolist())):
        raise InvalidInputError("y has missing values: leave out the rows without a target.")
    if kind == "auto":
        kind = "classes" if _looks_like_classes(labels[counted]) else "numbers"
    if kind == "numbers":
        return _numeric_targets(labels)
    if labels.ndim == 2:
        raise InvalidInputError(
            f"y has shape {labels.shape}, but classes are given in one column: give shape "
            f"({n_rows},)."
        )
    if labels.dtype == object:
        labels = labels.astype(str)
    classes = np.unique(labels[counted])
    if len(classes) < 2:
        return Targets(np.zeros((n_rows, 0)), ())
    values = (labels[:, None] == classes[None, 1:]).astype(np.float64)
    return Targets(values, tuple(f":target={label}" for label in classes[1:].tolist()))


def _looks_like_classes(labels: AnyArray) -> bool:
    if labels.ndim == 2:
        return False
    if labels.dtype.kind not in "iuf":
        return not (labels.dtype == object and all(isinstance(v, int | float) for v in labels))
    with np.errstate(invalid="ignore"):
        whole = bool(np.all(labels == np.floor(labels)))
    return whole and len(np.unique(labels)) <= FEW_CLASSES


def _numeric_targets(labels: AnyArray) -> Targets:
    try:
        values = labels.astype(np.float64).reshape(len(labels), -1)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"y has values that are no numbers ({error}): give numbers, or target='classes'."
        ) from error
    if not np.all(np.isfinite(values)):
        raise InvalidInputError(
            "y has NaN or infinite values: leave out the rows without a target."
        )
    k = values.shape[1]
    values = values - values.mean(
        axis=0
    )  # effects are differences: nothing is to cancel in squares
    return Targets(values, tuple(":target" + ("" if k == 1 else str(j)) for j in range(k)))


@dataclass(frozen=True, eq=False)
class LevelWeights:
    """The levels that occur, by their weights; the last one stands for missing values."""

    column: RawColumn
    codes: IntArray  # missing ones are the last level
    weight: FloatArray  # (levels + 1,)

    @classmethod
    def of(cls, column: RawColumn, weight: FloatArray) -> LevelWeights:
        """Add up the weights of the rows of every level."""
        n_levels = len(column.levels)
        codes = np.where(column.values < 0, n_levels, column.values)
        total = np.bincount(codes, weight, minlength=n_levels + 1)
        return cls(column, codes, np.asarray(total, dtype=np.float64))

    @property
    def n_levels(self) -> int:
        """Number of levels that occur, missing ones not counted."""
        return int(np.count_nonzero(self.weight[:-1]))


def learn_indicators(
    counts: LevelWeights, rare: float, most: int, scale: float
) -> LevelEncoding | None:
    """Return one feature for every level, rare ones pooled; None where all rows are alike.

    Parameters
    ----------
    counts : LevelWeights
    rare : float
        Levels of less weight are pooled.
    most : int
        No more levels than these, the most frequent ones, have features of their own (and missing
        values).
    scale : float
        Two levels are sqrt(2) times this apart: with three or more, every level has a feature that
        is ``scale`` where the level is there; with two, one feature is +- sqrt(1/2) ``scale``.

    Notes
    -----
    A missing value is a level like the others where it occurs. Levels that are not in the table,
    and missing values where there were none, are in the pool; without a pool they are 0 everywhere.
    """
    weight, levels = counts.weight, counts.column.levels
    order = np.argsort(-weight[:-1], kind="stable")
    keep = weight >= max(rare, np.finfo(float).tiny)
    keep[order[most:]] = False
    pooled = (weight > 0) & ~keep
    kept = np.flatnonzero(keep)
    names = [f"={levels[i]}" if i < len(levels) else "=(missing)" for i in kept]
    names += ["=(rare)"] * bool(pooled.any())
    if len(names) < 2:
        return None
    sides = np.eye(len(names)) * scale
    if len(names) == 2:
        sides, names = np.array([[-HALF], [HALF]]) * scale, names[1:]
    unseen = sides[-1] if pooled.any() else np.zeros(len(names))
    table = np.tile(unseen, (len(levels) + 1, 1))
    table[kept] = sides[: len(kept)]
    present = np.flatnonzero(weight[:-1] > 0)
    return LevelEncoding(
        tuple(levels[i] for i in present), table[present], table[-1], unseen, tuple(names)
    )


def learn_target_encoding(
    counts: LevelWeights, weight: FloatArray, targets: Targets, smoothing: float | None
) -> LevelEncoding:
    """Return the mean target of every level, drawn towards the mean of all: `level_effects`."""
    sums = _sums_of_cells(counts.codes, weight, targets.values, len(counts.weight))
    squares = weight @ targets.values**2
    effects = level_effects(counts.weight, sums, squares, smoothing)
    levels = counts.column.levels
    present = np.flatnonzero(counts.weight[:-1] > 0)
    return LevelEncoding(
        tuple(levels[i] for i in present),
        effects[present],
        effects[-1],
        np.zeros(len(targets.suffixes)),
        targets.suffixes,
    )


def out_of_fold(
    counts: LevelWeights,
    weight: FloatArray,
    targets: Targets,
    smoothing: float | None,
    fold: IntArray,
) -> FloatArray:
    """Return for every row what `learn_target_encoding` on the other folds makes of it.

    Returns
    -------
    array of shape (n, k)

    Notes
    -----
    Sums over the other folds are the total less the fold's own: O(n k + folds levels k) time.
    """
    n_folds, n_levels = int(fold.max()) + 1, len(counts.weight)
    cells = fold * n_levels + counts.codes
    weights = np.bincount(cells, weight, minlength=n_folds * n_levels).reshape(n_folds, n_levels)
    sums = _sums_of_cells(cells, weight, targets.values, n_folds * n_levels)
    sums = sums.reshape(n_folds, n_levels, -1)
    squares = _sums_of_cells(fold, weight, targets.values**2, n_folds)
    effects = np.empty_like(sums)
    for f in range(n_folds):
        others = np.arange(n_folds) != f
        effects[f] = level_effects(
            weights[others].sum(axis=0),
            sums[others].sum(axis=0),
            squares[others].sum(axis=0),
            smoothing,
        )
    return np.asarray(effects[fold, counts.codes])


def _sums_of_cells(
    cells: IntArray, weight: FloatArray, values: FloatArray, n_cells: int
) -> FloatArray:
    sums = [np.bincount(cells, weight * y, minlength=n_cells) for y in values.T]
    return np.column_stack(sums) if sums else np.empty((n_cells, 0))


def level_effects(
    weight: FloatArray, sums: FloatArray, squares: FloatArray, smoothing: float | None
) -> FloatArray:
    """Return how far the mean target of every level is from the mean of all, shrunken and scaled.

    Parameters
    ----------
    weight : array of shape (levels,)
        W_l, the weight of every level.
    sums : array of shape (levels, k)
        S_l, the weighted sums of the targets.
    squares : array of shape (k,)
        The weighted sum of their squares.
    smoothing : float or None
        m; None: estimated for each target.

    Returns
    -------
    array of shape (levels, k)
        W_l / (W_l + m) (S_l / W_l - mean) / scale; 0 for a level without weight. The scale is the
        deviation of these effects over the rows, but at least a tenth of the target's own: what
        tells nothing stays small.

    Notes
    -----
    The shrinkage is that of the best linear predictor of a level's mean when levels have means of
    variance t and rows vary about them with variance s: m = s / t, both estimated by moments from
    the sums of squares between and within levels. Where levels differ by no more than chance makes
    them (t <= 0), all effects are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.preparation.categories import level_effects
    >>> effects = level_effects(np.full(2, 8.0), np.array([[8.0], [0.0]]), np.array([8.0]), 0.0)
    >>> effects.ravel().tolist()
    [1.0, -1.0]
    """
    effects = np.zeros_like(sums)
    total = float(weight.sum())
    there = weight > 0
    if total <= 0 or not there.any():
        return effects
    W = weight[there][:, None]
    mean = sums[there].sum(axis=0) / total
    differences = sums[there] / W - mean
    between = (W * differences**2).sum(axis=0)
    around = np.maximum(squares - total * mean**2, 0.0)  # of all rows about their mean
    if smoothing is None:
        m = _estimated_smoothing(W[:, 0], total, between, np.maximum(around - between, 0.0))
    else:
        m = np.full(len(mean), float(smoothing))
    shrunken = np.where(np.isinf(m), 0.0, W / (W + np.where(np.isinf(m), 1.0, m))) * differences
    spread = np.sqrt((W * shrunken**2).sum(axis=0) / total)
    scale = np.maximum(spread, SMALLEST_SCALE * np.sqrt(around / total))
    effects[there] = shrunken / np.where(scale > 0, scale, 1.0)
    return effects


def _estimated_smoothing(
    W: FloatArray, total: float, between: FloatArray, within: FloatArray
) -> FloatArray:
    n_levels = len(W)
    free = total - n_levels
    spread = total - float(W @ W) / total
    if free <= 0 or spread <= 0:
        return np.full(len(between), np.inf)  # one row a level, or one level: nothing can be told
    s = within / free
    t = (between - (n_levels - 1) * s) / spread
    return np.where(t > 0, s / np.where(t > 0, t, 1.0), np.inf)
