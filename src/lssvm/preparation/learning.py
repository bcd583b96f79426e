"""From a table, its targets and weights to a `PreparedTable`: every column in turn, then folds."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.data.folds import assign_folds, splitter_folds
from lssvm.preparation.categories import (
    LevelWeights,
    Targets,
    learn_indicators,
    learn_target_encoding,
    out_of_fold,
    read_targets,
)
from lssvm.preparation.encodings import (
    CYCLES,
    HALF,
    DateEncoding,
    LevelEncoding,
    NumberEncoding,
    days,
    phase,
)
from lssvm.preparation.numbers import Distinct, learn_normal_scores, learn_standardised
from lssvm.preparation.record import PreparedColumn, PreparedTable, check_finite
from lssvm.preparation.tables import RawColumn, RawTable
from lssvm.preparation.text_dates import ORDERS, date_order

FEW_ROWS = 20
"""Text that is different in each of fewer rows than these may still be a category."""

NEARLY_ALL = 0.9
"""Share of different values from which on a column of text tells rows apart, not kinds of rows."""

LONG = 40
"""Characters, on average, from which on text is taken for sentences."""

_NUMBER = re.compile(r"[+-]?[$€£]? ?\d[\d., ']*(?:e[+-]?\d+)? ?[%$€£]?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}( .*)?")


@dataclass(frozen=True)
class PreparationSettings:
    """What can be chosen about a preparation; see `TablePreparation` for the meanings."""

    numbers: str | Mapping[str, str] = "standardised"
    rare: float = 5
    max_levels: int = 50
    category_scale: float = 1.0
    smoothing: float | None = None
    target: str = "auto"
    cv: Any = 10
    drop: bool = True
    parse_dates: bool = True
    seed: int = 0

    def method(self, column: str) -> str:
        """Return how the numbers of a column are scaled."""
        if isinstance(self.numbers, str):
            return self.numbers
        return self.numbers.get(column, "standardised")


@dataclass(frozen=True, eq=False)
class Learned:
    """A record, and the out-of-fold features of the training rows where they differ from it.

    Attributes
    ----------
    prepared : PreparedTable
    encoded : dict from position of the column to array of shape (n, k)
        Columns that are encoded by the target.
    """

    prepared: PreparedTable
    encoded: dict[int, FloatArray]


def learn(
    table: RawTable, y: Any, weight: FloatArray | None, groups: Any, settings: PreparationSettings
) -> Learned:
    """Learn how to prepare tables like this one.

    Parameters
    ----------
    table : RawTable
    y : array of shape (n,) or (n, k), or None
        Only columns with many levels need it.
    weight : array of shape (n,) or None
        A weight of 2 is the row twice, a weight of 0 no row.
    groups : array of shape (n,) or None
        Rows of a group are never encoded by each other's targets.
    settings : PreparationSettings
    """
    n = table.n_rows
    for column in table.columns:
        check_finite(column)
    inside, counts = table, None
    if weight is not None:
        counts = _as_counts(weight[weight > 0])
        inside = table if len(counts) == n else table.take(np.flatnonzero(weight > 0))
    learner = Learner(settings, counts, inside.n_rows, y is not None)
    columns = [learner.column(column) for column in inside.columns]
    many = [
        j for j, column in enumerate(columns) if column.kind == "category" and column.done == ""
    ]
    encoded: dict[int, FloatArray] = {}
    if many:
        w = np.ones(n) if weight is None else _as_counts(weight)
        targets = read_targets(y, n, settings.target, w > 0)
        used = [j for j, column in enumerate(columns) if column.done != "left out"]
        fold = _folds([table.columns[j] for j in used], w, y, targets, groups, settings)
        if not targets.suffixes:
            why = "it has many levels, and y has one class only to encode them by"
            for j in many:
                columns[j] = PreparedColumn(columns[j].name, "category", None, "left out", why)
            many = []
        for j in many:
            columns[j], encoded[j] = _encode_by_target(
                columns[j], table.columns[j], w, targets, settings, fold
            )
    if all(column.encoding is None for column in columns):
        reasons = "; ".join(f"{column.name!r}: {column.why}" for column in columns[:10])
        raise InvalidInputError(
            f"No column of X is usable (n_samples={n}): {reasons}. Give columns that vary, or "
            "keep them all with drop=False."
        )
    return Learned(PreparedTable(tuple(columns), table.named), encoded)


def _as_counts(weight: FloatArray) -> FloatArray:
    """Return weights that add up to at least the number of rows, so that they count as rows do."""
    factor = np.count_nonzero(weight) / weight.sum()
    return weight * factor if factor > 1 else weight


def _folds(
    columns: list[RawColumn],
    weight: FloatArray,
    y: Any,
    targets: Targets,
    groups: Any,
    settings: PreparationSettings,
) -> IntArray:
    n, cv = len(weight), settings.cv
    if not isinstance(cv, int):
        splits = cv.split(np.zeros((n, 1)), y, groups) if hasattr(cv, "split") else cv
        return splitter_folds(splits, n).numbers(n)
    if groups is not None and np.shape(groups) != (n,):
        raise InvalidInputError(
            f"groups has shape {np.shape(groups)} but X has {n} rows: give one group for each row."
        )
    labels = None if groups is None else np.asarray(groups).astype(str)
    rows = np.column_stack([column.as_numbers() for column in columns])
    if not _two_units(rows, weight, labels):
        return np.zeros(n, dtype=np.intp)
    folds = assign_folds(
        rows,
        cv,
        targets=targets.values,
        weight=weight,
        groups=labels,
        seed=settings.seed,
        by_rank=True,
    )
    return folds.numbers(n)


def _two_units(rows: FloatArray, weight: FloatArray, groups: Any) -> bool:
    """Whether there are two rows that differ, or two groups, to be in different folds."""
    some = (rows if groups is None else groups)[weight > 0]
    return len(some) > 0 and bool(
        np.any((some != some[0]) & ~((some != some) & (some[0] != some[0])))
    )


def _encode_by_target(
    plan: PreparedColumn,
    column: RawColumn,
    weight: FloatArray,
    targets: Targets,
    settings: PreparationSettings,
    fold: IntArray,
) -> tuple[PreparedColumn, FloatArray]:
    counts = LevelWeights.of(column, weight)
    encoding = learn_target_encoding(counts, weight, targets, settings.smoothing)
    held = out_of_fold(counts, weight, targets, settings.smoothing, fold)
    done = f"encoded by the target, {_features(encoding.width)}"
    return PreparedColumn(plan.name, plan.kind, encoding, done, plan.why), held


def _features(count: int) -> str:
    return f"{count} feature" + "s" * (count != 1)


class Learner:
    """Decides what becomes of each column; remembers the columns it has met.

    Parameters
    ----------
    settings : PreparationSettings
    weight : array of shape (n,) or None
        Positive; as many as rows.
    n_rows : int
    supervised : bool
        Whether there are targets to encode levels by.
    """

    def __init__(
        self,
        settings: PreparationSettings,
        weight: FloatArray | None,
        n_rows: int,
        supervised: bool,
    ) -> None:
        self.settings, self.weight, self.supervised = settings, weight, supervised
        self.total = float(n_rows) if weight is None else float(weight.sum())
        self.n_rows = n_rows
        self.met: dict[bytes, str] = {}

    def column(self, column: RawColumn) -> PreparedColumn:
        """Return what becomes of a column; ``done`` is empty where targets have to be encoded."""
        order = ""
        if column.kind == "category" and self.settings.parse_dates:
            order = date_order(column.levels) or ""
            column = column.as_dates(order) or column if order else column
        if column.kind == "empty":
            return self._left_out(column, "all its values are missing")
        if self.settings.drop:
            digest = hashlib.blake2b(
                "\0".join([column.kind, *column.levels]).encode("utf-8", "replace")
            )
            digest.update(column.as_numbers().tobytes())
            twin = self.met.setdefault(digest.digest(), column.name)
            if twin != column.name:
                return self._left_out(column, f"it equals column {twin!r}")
        if column.kind == "category":
            return self._category(column)
        if column.kind == "boolean":
            return self._boolean(column)
        if column.kind == "date":
            return self._date(column, order)
        return self._number(column)

    def _left_out(self, column: RawColumn, why: str) -> PreparedColumn:
        return PreparedColumn(column.name, column.kind, None, "left out", why)

    def _indicator(self, missing: BoolArray) -> float:
        return HALF * self.settings.category_scale if missing.any() else 0.0

    def _distinct(self, x: FloatArray, missing: BoolArray) -> Distinct:
        weight = self.weight
        if missing.any():
            x, weight = x[~missing], None if weight is None else weight[~missing]
        return Distinct.of(x, weight)

    def _scaled(self, column: RawColumn, distinct: Distinct, indicator: float) -> NumberEncoding:
        if self.settings.method(column.name) == "quantiles":
            return learn_normal_scores(distinct, indicator)
        return learn_standardised(distinct, indicator)

    def _number(self, column: RawColumn) -> PreparedColumn:
        missing = column.missing
        distinct = self._distinct(column.values, missing)
        indicator = self._indicator(missing)
        if self.settings.drop:
            if distinct.constant and not indicator:
                return self._left_out(column, f"it is {distinct.values[0]:g} in every row")
            if not indicator and column.kind == "number" and self._numbers_rows(distinct):
                return self._left_out(column, "it numbers the rows: an id says nothing of new rows")
        encoding = self._scaled(column, distinct, indicator)
        done = "normal scores" if len(encoding.grid) else "standardised"
        why = f"{len(distinct.values):,} different {column.kind}s"
        if column.kind == "duration":
            why += ", in days"
        return PreparedColumn(column.name, column.kind, encoding, *_with_holes(done, why, encoding))

    def _numbers_rows(self, distinct: Distinct) -> bool:
        """Whether the numbers are those of a running number, from 0 or 1 on, with some gaps."""
        values, n = distinct.values, len(distinct.values)
        if n < 10 or n != round(self.total) or np.any(values != np.floor(values)):
            return False
        if values[0] in (0, 1) and values[-1] - values[0] == n - 1:
            return True
        return bool(n >= 50 and values[0] >= 0 and values[-1] < 2.5 * n)

    def _boolean(self, column: RawColumn) -> PreparedColumn:
        missing = column.missing
        observed = column.values[~missing]
        if self.settings.drop and not missing.any() and np.all(observed == observed[0]):
            return self._left_out(column, f"it is {bool(observed[0])} in every row")
        side = HALF * self.settings.category_scale
        values, unknown = np.array([[-side], [side]]), np.zeros(1)
        suffixes: tuple[str, ...] = ("",)
        why = "true is above, false below 0"
        if missing.any():
            values = np.column_stack([values, [-side, -side]])
            unknown = np.array([0.0, side])
            suffixes = ("", "=(missing)")
            why += "; some are missing"
        unseen = np.zeros(len(suffixes))
        encoding = LevelEncoding(("False", "True"), values, unknown, unseen, suffixes)
        done = f"two levels, {_features(encoding.width)}"
        return PreparedColumn(column.name, column.kind, encoding, done, why)

    def _date(self, column: RawColumn, order: str) -> PreparedColumn:
        missing = column.missing
        distinct = self._distinct(days(column.values), missing)
        indicator = self._indicator(missing)
        span = float(distinct.values[-1] - distinct.values[0])
        if self.settings.drop and span == 0 and not indicator:
            return self._left_out(column, "it is the same date in every row")
        observed = column.values[~missing]
        cycles = tuple(
            cycle
            for cycle, length in CYCLES.items()
            if span > length and np.ptp(phase(observed, cycle)) > 0
        )
        position = self._scaled(column, distinct, indicator)
        encoding = DateEncoding(position, cycles, column.zone, order)
        done = "position in days" + "".join(f", cycle of the {cycle}" for cycle in cycles)
        why = f"{span:,.0f} days" + (f", written as {ORDERS[order]}" if order else "")
        done, why = _with_holes(done, why, encoding.position)
        return PreparedColumn(column.name, column.kind, encoding, done, why)

    def _category(self, column: RawColumn) -> PreparedColumn:
        settings = self.settings
        weight = np.ones(self.n_rows) if self.weight is None else self.weight
        counts = LevelWeights.of(column, weight)
        levels = [column.levels[i] for i in np.flatnonzero(counts.weight[:-1])]
        observed = self.total - float(counts.weight[-1])
        if settings.drop:
            reason = self._tells_rows_apart(levels, counts, observed)
            if reason:
                return self._left_out(column, reason)
        hint = _looks_like_something_else(column.name, levels)
        why = f"{len(levels):,} level" + "s" * (len(levels) != 1) + hint
        if len(levels) > settings.max_levels and self.supervised:
            why += f", more than max_levels={settings.max_levels}"
            return PreparedColumn(column.name, column.kind, None, "", why)
        rare = settings.rare if settings.rare >= 1 else settings.rare * self.total
        encoding = learn_indicators(counts, rare, settings.max_levels, settings.category_scale)
        if encoding is None:
            if len(levels) == 1 and counts.weight[-1] == 0:
                return self._left_out(column, f"it is {levels[0]!r} in every row")
            return self._left_out(column, f"every level is rare (in fewer than {rare:g} rows)")
        n_pooled = len(levels) + bool(counts.weight[-1]) - _n_kept(encoding)
        if n_pooled:
            why += f", {n_pooled:,} of them pooled"
        done = f"indicators, {_features(encoding.width)}"
        return PreparedColumn(column.name, column.kind, encoding, done, why)

    @staticmethod
    def _tells_rows_apart(levels: list[str], counts: LevelWeights, observed: float) -> str:
        share = len(levels) / observed
        if observed < FEW_ROWS:
            return ""
        if len(levels) == round(observed):
            return "every value is different: an id or a name says nothing of new rows"
        length = sum(map(len, levels)) / len(levels)
        if length >= LONG and share > NEARLY_ALL / 2:
            return (
                f"free text of {length:.0f} characters on average, {share:.0%} of the values "
                "different: turn it into numbers first, for example with TfidfVectorizer"
            )
        if share > NEARLY_ALL:
            return f"{share:.0%} of the values are different: an id or a name"
        return ""


def _n_kept(encoding: LevelEncoding) -> int:
    """Return how many levels have features of their own."""
    width = encoding.width if encoding.width > 1 else 2
    return width - any(suffix == "=(rare)" for suffix in encoding.suffixes)


def _with_holes(done: str, why: str, encoding: NumberEncoding) -> tuple[str, str]:
    if encoding.indicator > 0:
        done += ", missing ones filled and marked"
        why += f"; missing ones get the median, {encoding.fill:g}"
    return done, why


def _looks_like_something_else(name: str, levels: list[str]) -> str:
    """Warn where text looks like numbers or dates, and return a remark for the report."""
    some = levels[:: max(1, len(levels) // 1000)]
    share = NEARLY_ALL * len(some)
    signs = set(".,%$€£")
    numbers = [t for t in some if _NUMBER.fullmatch(t.strip())]
    dates = [t for t in some if _DATE.fullmatch(t.strip())]
    for found, what, remedy in (
        (dates, "dates", "pandas.to_datetime"),
        (numbers, "numbers", "pandas.to_numeric, decimal commas made points"),
    ):
        if len(found) < max(share, 2) or (
            what == "numbers" and not any(signs & {*t} for t in some)
        ):
            continue
        warnings.warn(
            f"Column {name!r} has {what} written as text ({found[0]!r}): they are used as "
            f"categories. If they are {what}, convert them first ({remedy}).",
            UserWarning,
            stacklevel=2,
        )
        return f" that look like {what} written as text"
    return ""
