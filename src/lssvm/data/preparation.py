"""From raw columns to features: what was learned of a table, how it is learned, what is reported.

A `PreparedTable` is a frozen record, and the pure function from raw rows to features that it
defines. `learn` makes one from a table, its targets and weights: every column in turn, then folds.
Every model takes its features from here; rows that are not prepared are numbers as they are.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from lssvm._core.arrays import LARGEST, BoolArray, FloatArray, IntArray
from lssvm._core.errors import ColumnWarning, InvalidInputError, level_of_caller, shown
from lssvm.data.columns import (
    PLURALS,
    RawColumn,
    RawTable,
    check_finite,
    column_names,
    date_text,
    read_table,
)
from lssvm.data.dates import ORDERS, DateStyle
from lssvm.data.encodings import (
    CYCLES,
    FEWEST_ROWS,
    HALF,
    DateEncoding,
    Distinct,
    Encoding,
    LevelEncoding,
    LevelWeights,
    NumberEncoding,
    Targets,
    ValueEncoding,
    days,
    learn_indicators,
    learn_normal_scores,
    learn_ordered,
    learn_standardised,
    learn_target_encoding,
    learn_value_encoding,
    may_number_rows,
    out_of_fold,
    phase,
    predicts,
    read_dates,
    read_targets,
)
from lssvm.data.folds import (
    assign_folds,
    hash_rows,
    observation_weight,
    repeats_by_nature,
    splitter_folds,
)
from lssvm.data.number_text import other_than_text
from lssvm.data.raw import RawBlock
from lssvm.data.text import TextEncoding, is_text, learn_supervised_text, learn_text

FORMAT = 1

_ENCODINGS: dict[str, type[Encoding]] = {
    kind.way: kind
    for kind in (NumberEncoding, ValueEncoding, LevelEncoding, DateEncoding, TextEncoding)
}


@dataclass(frozen=True, eq=False)
class PreparedColumn:
    """A column of the training table, and what becomes of it.

    Attributes
    ----------
    name : str
        As in the table.
    kind : str
        One of `lssvm.data.columns.KINDS`, or "text": categories whose words are used.
    encoding : Encoding or None
        None: the column is left out.
    done, why : str
        In words, for people.
    guess : str
        What was assumed and may be wrong, with what to do then; empty: nothing.

    Examples
    --------
    >>> from lssvm.data.preparation import PreparedColumn
    >>> PreparedColumn("id", "number", None, "dropped", "it numbers the rows").width
    0
    """

    name: str
    kind: str
    encoding: Encoding | None
    done: str
    why: str
    guess: str = ""

    @property
    def width(self) -> int:
        """Number of features."""
        return 0 if self.encoding is None else self.encoding.width

    def with_values(self, encoding: ValueEncoding) -> PreparedColumn:
        """Return a column of numbers whose values are encoded by the target as well."""
        done = f"{self.done}, and encoded by the target, {_features(len(encoding.endings))}"
        why = f"{self.why}; rows of a value are more alike than the values next to it suggest"
        return replace(self, encoding=encoding, done=done, why=why)


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """Everything that was learned of a table: a frozen record of strings, numbers and arrays.

    Attributes
    ----------
    columns : tuple of PreparedColumn
        Those of the training table, in its order.
    named : bool
        Whether the training table had names of its own.

    Examples
    --------
    >>> from lssvm.data.preparation import PreparedTable
    >>> from lssvm.preparation import TablePreparation
    >>> rows = {"age": [20, 40, 60], "job": ["cook", "smith", "smith"]}
    >>> learned = TablePreparation(rare=1).fit(rows).prepared_
    >>> again = PreparedTable.from_record(learned.to_record())
    >>> again.feature_names
    ('age', 'job=smith')
    >>> again.transform({"job": ["cook"], "age": [40]}).round(3).tolist()
    [[0.0, -0.707]]
    """

    columns: tuple[PreparedColumn, ...]
    named: bool
    _used: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        used = tuple(j for j, column in enumerate(self.columns) if column.encoding is not None)
        object.__setattr__(self, "_used", used)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the training table."""
        return tuple(column.name for column in self.columns)

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that features are made of."""
        return tuple(self.columns[j].name for j in self._used)

    @property
    def kinds(self) -> dict[str, str]:
        """What every column holds, as a `Schema` calls it."""
        return {c.name: "text" if c.kind == "category" else c.kind for c in self.columns}

    @property
    def dropped(self) -> dict[str, str]:
        """The columns that no feature is made of, with the reasons."""
        return {column.name: column.why for column in self.columns if column.encoding is None}

    @property
    def encoded_by_target(self) -> list[str]:
        """The columns that are encoded by the target, for rows of the fit out of fold."""
        pairs = ((c.name, c.encoding.suffixes) for c in self.columns if c.encoding is not None)
        starts = (":target", ":effect")
        return [n for n, suffixes in pairs if any(s.startswith(starts) for s in suffixes)]

    @property
    def guesses(self) -> dict[str, str]:
        """What was assumed of columns and may be wrong, with what to do then."""
        return {column.name: column.guess for column in self.columns if column.guess}

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return sum(column.width for column in self.columns)

    @property
    def sources(self) -> IntArray:
        """For every feature the position of its column in the training table, shape (d,)."""
        return np.repeat(np.arange(len(self.columns)), [column.width for column in self.columns])

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features; those that would be there twice are numbered."""
        return self.names_of(self.names)

    def names_of(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the features where the columns have other names.

        Parameters
        ----------
        columns : tuple of str
            One name for each column of the training table.
        """
        names: dict[str, None] = {}
        for name, column in zip(columns, self.columns, strict=True):
            for suffix in () if column.encoding is None else column.encoding.suffixes:
                full, i = f"{name}{suffix}", 1
                while full in names:
                    i += 1
                    full = f"{name}{suffix}#{i}"
                names[full] = None
        return tuple(names)

    def read(self, X: Any) -> RawTable:
        """Return the used columns of a table like the training table.

        Columns of a table with names are found by name, in any order, and others are not looked at;
        those of an array by position. Raises an `InvalidInputError` that names the column where one
        is missing or holds something else than in training.

        Parameters
        ----------
        X : data frame, Arrow table, mapping from names to columns, array or RawBlock
            Columns are found by name, where they have names.
        """
        X = X.table if isinstance(X, RawBlock) else X
        names = column_names(X) if self.named else None
        if names is None:
            table = read_table(X)
            if len(table.columns) != len(self.columns):
                raise InvalidInputError(
                    f"X has {len(table.columns)} features, but TablePreparation is expecting "
                    f"{len(self.columns)} features as input: {list(self.names)}."
                )
            return self.used_columns(table)
        missing = [name for name in self.used if name not in names]
        if missing:
            raise InvalidInputError(
                f"X has no columns {missing}, which the preparation was fitted with; it has "
                f"{sorted(names)}. Add them; where their values are not known, as missing "
                "ones (NaN or None)."
            )
        encodings = [(self.columns[j].name, self.columns[j].encoding) for j in self._used]
        zones = {n: e.zone for n, e in encodings if isinstance(e, DateEncoding)}
        return self._as_trained(read_table(X, self.used, zones))

    def with_dates(self, table: RawTable) -> RawTable:
        """Return all columns, those that were dates or durations in training as such."""
        trained = {column.name: column for column in self.columns}
        if not (self.named and table.named):
            trained = dict(zip(table.names, self.columns, strict=False))
        columns = tuple(
            _as_trained(trained[column.name], column, table.place)
            if column.name in trained and trained[column.name].kind in ("date", "duration")
            else column
            for column in table.columns
        )
        return replace(table, columns=columns)

    def used_columns(self, table: RawTable) -> RawTable:
        """Return the used ones of all columns of a table, as `transform` takes them.

        Parameters
        ----------
        table : RawTable
            With all columns of the training table.
        """
        return self._as_trained(replace(table, columns=tuple(table.columns[j] for j in self._used)))

    def _as_trained(self, table: RawTable) -> RawTable:
        pairs = zip(self._used, table.columns, strict=True)
        columns = tuple(_as_trained(self.columns[j], column, table.place) for j, column in pairs)
        return replace(table, columns=columns, named=self.named)

    def transform(self, X: Any) -> FloatArray:
        """Turn raw rows into features: a pure function of the record and of every single row.

        Parameters
        ----------
        X : table as `read` takes it
            Rows to turn into features.

        Returns
        -------
        array of shape (n, d)

        Notes
        -----
        O(n d) time; no copy of the rows besides the result.
        """
        scaled = self._scaled(X) if isinstance(X, RawBlock) else None
        return self.encode(self.read(X)) if scaled is None else scaled

    @cached_property
    def _units(self) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Fill, mean and scale of the used columns, where all are standardised numbers."""
        encodings = [self.columns[j].encoding for j in self._used]
        numbers = [e for e in encodings if isinstance(e, NumberEncoding)]
        if len(numbers) < len(encodings) or any(len(e.grid) or e.width > 1 for e in numbers):
            return None
        fill, mean, scale = np.array([(e.fill, e.mean, e.scale) for e in numbers]).T
        return fill, mean, scale

    def _scaled(self, block: RawBlock) -> FloatArray | None:
        """Return the features of rows of numbers at once; None where `encode` has to look."""
        names, kinds = block.schema.names, block.schema.kinds
        by_name = self.named and block.schema.named
        there = set(self.used) <= set(names) if by_name else len(names) == len(self.columns)
        if self._units is None or not there or kinds.count("number") < len(kinds):
            return None
        used = [names.index(name) for name in self.used] if by_name else list(self._used)
        X = block.numbers if used == list(range(len(names))) else block.numbers[:, used]
        fill, mean, scale = self._units
        with np.errstate(over="ignore", invalid="ignore"):
            X = np.where(np.isnan(X), fill, X) if np.isnan(X.sum()) else X
            X = X - mean
            X /= scale
        inside = X.max(initial=0.0) <= LARGEST and X.min(initial=0.0) >= -LARGEST
        return X if inside else None

    def encode(self, table: RawTable) -> FloatArray:
        """Return the features of rows that `read` returned, shape (n, d)."""
        out = np.empty((table.n_rows, self.n_features))
        at = 0
        for j, column in zip(self._used, table.columns, strict=True):
            encoding = self.columns[j].encoding
            assert encoding is not None
            encoding.encode(column, out[:, at : at + encoding.width])
            at += encoding.width
        return out

    def unseen(self, X: Any) -> dict[str, dict[str, int]]:
        """Count the levels that training has not seen: column, level, number of rows.

        Parameters
        ----------
        X : table as `read` takes it
            Rows to look at.
        """
        table = self.read(X)
        counts: dict[str, dict[str, int]] = {}
        for j, column in zip(self._used, table.columns, strict=True):
            encoding = self.columns[j].encoding
            if not isinstance(encoding, LevelEncoding) or column.kind != "category":
                continue
            rows = np.bincount(column.values[column.values >= 0], minlength=len(column.levels))
            pairs = zip(column.levels, rows.tolist(), strict=True)
            new = {level: n for level, n in pairs if n and encoding.place_of(level) < 0}
            if new:
                counts[self.columns[j].name] = new
        return counts

    def warn_of_columns(self) -> None:
        """Warn once, of all columns that are dropped (but by the user) or read by a guess."""
        dropped = [f"{name!r}: {why}" for name, why in self.dropped.items() if why != NAMED]
        texts = ["Columns of X are dropped. " + _listed(dropped)] if dropped else []
        texts += [f"Column {name!r}: {guess}." for name, guess in self.guesses.items()]
        if texts:
            warnings.warn(" ".join(texts), ColumnWarning, stacklevel=level_of_caller())

    def warn_of_unseen(self, table: RawTable) -> None:
        """Warn where no value of a column, in five rows or more, was seen in training."""
        for j, column in zip(self._used, table.columns, strict=True):
            encoding = self.columns[j].encoding
            if not isinstance(encoding, LevelEncoding) or column.kind != "category":
                continue
            places = encoding.positions(column)
            if np.sum(places == -2) >= FEW_UNSEEN and not np.any(places >= 0):
                known, new = (", ".join(map(shown, c.levels[:5])) for c in (encoding, column))
                warnings.warn(
                    f"Column {self.columns[j].name!r} has no value seen in training ({known}), "
                    f"but {new}: it does not help to predict these rows. Write its values as they "
                    "were in training.",
                    ColumnWarning,
                    stacklevel=level_of_caller(),
                )

    def to_record(self) -> dict[str, Any]:
        """Return nested dicts and lists of strings, numbers and arrays: nothing needs pickle."""
        columns = [
            asdict(column, dict_factory=_with_lists)
            | {"way": None if column.encoding is None else column.encoding.way}
            for column in self.columns
        ]
        return {"format": FORMAT, "named": self.named, "columns": columns}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> PreparedTable:
        """Return what `to_record` has written.

        Parameters
        ----------
        record : mapping
            As `to_record` returned it.
        """
        if record.get("format") != FORMAT:
            raise InvalidInputError(
                f"The record has format {record.get('format')!r}, but this version reads format "
                f"{FORMAT}: use the version of lssvm that wrote it."
            )
        columns = []
        for entry in record["columns"]:
            values = {key: value for key, value in entry.items() if key != "way"}
            if entry["way"] is not None:
                values["encoding"] = _restored(_ENCODINGS[entry["way"]], entry["encoding"])
            columns.append(PreparedColumn(**values))
        return cls(tuple(columns), bool(record["named"]))


FEW_UNSEEN = 5
"""Rows with unknown levels of a column, and no known one, from which on there is a warning."""


def _listed(texts: list[str]) -> str:
    """Return the first twenty texts as a sentence."""
    more = f"; and {len(texts) - 20} more" if len(texts) > 20 else ""
    return "; ".join(texts[:20]) + more + "."


def _with_lists(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields}


def _restored(kind: type[Encoding], record: Mapping[str, Any]) -> Encoding:
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
    }
    if kind is DateEncoding:
        values["position"] = _restored(NumberEncoding, values["position"])
    if kind is ValueEncoding:
        values["number"] = _restored(NumberEncoding, values["number"])
    if kind is TextEncoding and values["level_encoding"] is not None:
        values["level_encoding"] = _restored(LevelEncoding, values["level_encoding"])
    return kind(**values)


def _as_trained(
    trained: PreparedColumn, column: RawColumn, place: Callable[[int], str]
) -> RawColumn:
    """Return the column as one of the trained kind, or say what is wrong with it."""
    kind = "category" if trained.kind == "text" else trained.kind
    encoding = trained.encoding
    if isinstance(encoding, DateEncoding):
        column = read_dates(column, encoding)
    if kind == "duration":
        column = column.as_time_of_day() or column
    if column.kind in (kind, "empty"):
        check_finite(column, place)
        if isinstance(encoding, DateEncoding) and column.kind == "date":
            if (encoding.zone is None) != (column.zone is None):
                raise InvalidInputError(
                    f"Column {trained.name!r} has dates with time zone {column.zone!r}, but "
                    f"{encoding.zone!r} in training: give dates with a time zone in both, or in "
                    "none."
                )
        return column
    if kind == "number" and column.kind == "boolean":
        return RawColumn(column.name, "number", column.values)
    if kind == "category" and column.kind in ("number", "boolean"):
        named = column.as_category()
        known = isinstance(encoding, LevelEncoding) and np.any(encoding.positions(named) >= 0)
        if trained.kind == "text" or known:
            return named
    if kind == "boolean" and column.kind == "number":
        observed = column.values[~np.isnan(column.values)]
        if np.all((observed == 0) | (observed == 1)):
            return RawColumn(column.name, "boolean", column.values)
    example = ""
    if column.kind == "category":
        row = int(np.flatnonzero(column.values >= 0)[0])
        example = f" ({column.levels[column.values[row]]!r} in {place(row)})"
    remedy = {
        "number": "turn its values into numbers (pandas.to_numeric), decimal commas into points",
        "date": "turn its values into dates (pandas.to_datetime)",
        "category": "turn its values into the text they had in training (.astype(str))",
        "boolean": "turn its values into True and False",
        "duration": "turn its values into durations (pandas.to_timedelta)",
    }[kind]
    raise InvalidInputError(
        f"Column {trained.name!r} has {PLURALS[column.kind]}{example}, but had {PLURALS[kind]} in "
        f"training: {remedy}."
    )


# -- learning ----------------------------------------------------------------------------------

DROPPED = "dropped"
"""What is done with a column of which no feature is made."""

NAMED = "drop= names it"
"""Why a column is dropped that the user names."""

FEW_ROWS = 20
"""Text that is different in each of fewer rows than these may still be a category."""

NEARLY_ALL = 0.9
"""Share of different values from which on a column of text identifies rows, not kinds of rows."""

LONG = 40
"""Characters, on average, from which on text is taken for sentences."""


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
    dropped: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    ordered: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    parse_dates: bool = True
    encode_values: bool = True
    seed: int = 0

    def may_drop(self, column: str) -> bool:
        """Whether a column is dropped where it is of no use."""
        return self.drop and column not in self.keep

    def check_names(self, names: Sequence[str]) -> None:
        """Raise where a column is named that the table does not have."""
        for option in ("dropped", "keep", "ordered"):
            wrong = [name for name in getattr(self, option) if name not in names]
            if wrong:
                raise InvalidInputError(
                    f"{option.replace('dropped', 'drop')}= names the columns {wrong}, but the "
                    f"table has {list(names)}: name some of these."
                )

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
    encoded : dict from position of the column to array of shape (m, k)
        Columns that are encoded by the target.
    positions : int array of shape (m,)
        Of the training rows among all rows, ascending.
    fold : int array of shape (m,) or None
        Folds of columns that are encoded by the target, where there are any.
    """

    prepared: PreparedTable
    encoded: dict[int, FloatArray]
    positions: IntArray
    fold: IntArray | None = None

    @classmethod
    def of(cls, prepared: PreparedTable, features: FloatArray, positions: IntArray) -> Learned:
        """Return a record with the out-of-fold features (m, d) of its training rows."""
        encoded = [prepared.names.index(name) for name in prepared.encoded_by_target]
        return cls(prepared, {j: features[:, prepared.sources == j] for j in encoded}, positions)

    def transform(self, rows: Any, positions: IntArray) -> FloatArray:
        """Return the features of some of all rows; those of training rows are out of fold.

        Parameters
        ----------
        rows : block of a data set
        positions : int array of shape (n,)
            Of the rows among all rows.
        """
        table: FloatArray = rows.features(self.prepared)
        if not self.encoded or not len(self.positions):
            return table
        place = np.searchsorted(self.positions, positions).clip(max=len(self.positions) - 1)
        there = np.flatnonzero(self.positions[place] == positions)
        for j, held_out in self.encoded.items():
            table[np.ix_(there, self.prepared.sources == j)] = held_out[place[there]]
        return table


def learn(
    table: RawTable,
    y: Any,
    weight: FloatArray | None,
    groups: Any,
    settings: PreparationSettings,
    known: Learned | None = None,
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
    known : Learned, optional
        What was learned of the same rows with the same settings, except for the scaling of numbers:
        folds, texts and levels that are encoded by the target are taken from it.
    """
    n = table.n_rows
    settings.check_names(table.names)
    table = table.in_order(settings.ordered)
    for column in table.columns:
        check_finite(column, table.place)
    w = np.ones(n) if weight is None else weight
    used = np.flatnonzero(w > 0)
    inside = table if len(used) == n else table.take(used)
    inner = None if y is None else read_targets(y, n, settings.target, w > 0).values[used]
    w = w / _weight_of_a_row(inside, inner, w[used])
    counts = None if np.all(w == 1.0) else w[used]
    learner = Learner(settings, counts, inside.n_rows, y is not None, inner)
    columns = [learner.column(column) for column in inside.columns]
    many = [j for j, column in enumerate(columns) if column.done == ""]
    may = y is not None and settings.encode_values and inside.n_rows >= FEWEST_ROWS
    numbers = [j for j, c in enumerate(columns) if may and isinstance(c.encoding, NumberEncoding)]
    encoded: dict[int, FloatArray] = {}
    fold = None if known is None else known.fold
    if many or numbers:
        targets = read_targets(y, n, settings.target, w > 0)
        if fold is None:
            certain = [j for j, c in enumerate(columns) if c.done != DROPPED and c.kind != "text"]
            kept = [table.columns[j] for j in certain or many]
            fold = _folds(kept, w, y, targets, groups, settings)
        if not targets.suffixes:
            why = "it has many levels, and y has one class only to encode them by"
            for j in many:
                columns[j] = PreparedColumn(columns[j].name, "category", None, DROPPED, why)
            many = []
        if known is not None:
            for j in many:
                columns[j] = known.prepared.columns[j]
                encoded |= {j: known.encoded[j]} if j in known.encoded else {}
            many = []
        for j in many:
            encode = _encode_text if columns[j].kind == "text" else _encode_by_target
            columns[j], held_out = encode(columns[j], table.columns[j], w, targets, settings, fold)
            encoded |= {} if held_out is None else {j: held_out}
        for j in numbers:
            plan, x = columns[j], table.columns[j].values
            assert isinstance(plan.encoding, NumberEncoding)
            found = learn_value_encoding(plan.encoding, x, w, targets, settings.smoothing, fold)
            if found is not None:
                columns[j], encoded[j] = plan.with_values(found[0]), found[1]
    if all(column.encoding is None for column in columns):
        reasons = "; ".join(f"{column.name!r}: {column.why}" for column in columns[:10])
        raise InvalidInputError(
            f"No column of X is usable (n_samples={n}): {reasons}. Give columns that vary, or "
            "keep them all with drop=False, some with keep=."
        )
    return Learned(PreparedTable(tuple(columns), table.named), encoded, np.arange(n), fold)


_FEW_PAIRS = 50  # different rows, below which copies count
_SOME = 64  # columns that are looked at in any case


def _weight_of_a_row(table: RawTable, targets: FloatArray | None, weight: FloatArray) -> float:
    """Return the weight that counts as one row: neither its scale nor copies of rows count.

    Copies share inputs and targets, and are one row of their weight; where there are ten or more
    of each (`repeats_by_nature`), or fewer than 50 rows that differ, they are rows like others.
    """
    rows = np.zeros(table.n_rows, dtype=np.uint64)
    for j, column in enumerate(table.columns):
        rows += hash_rows(column.as_numbers()[:, None], seed=j)
        # Further columns of a wide table change nothing where all rows differ already.
        if j >= _SOME and j.bit_count() == 1 and len(np.unique(rows)) == len(rows):
            break
    count = observation_weight(len(rows), weight)[0]
    if targets is not None and not repeats_by_nature(len(np.unique(rows)), count):
        pairs = len(np.unique(rows + hash_rows(targets, seed=len(table.columns))))
        count = max(float(pairs), min(count, float(_FEW_PAIRS)))
    return float(weight.sum()) / count


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
    held_out = out_of_fold(counts, weight, targets, settings.smoothing, fold)
    done = f"encoded by the target, {_features(encoding.width)}"
    if is_text(column.levels):
        levels = (encoding, held_out)
        text = learn_supervised_text(column, weight, targets, fold, levels=levels)
        if text is not None:
            return _text_column(column, text[0], settings), text[1]
    return replace(plan, encoding=encoding, done=done), held_out


def _encode_text(
    plan: PreparedColumn,
    column: RawColumn,
    weight: FloatArray,
    targets: Targets,
    settings: PreparationSettings,
    fold: IntArray,
) -> tuple[PreparedColumn, FloatArray | None]:
    side = HALF * settings.category_scale if column.missing[weight > 0].any() else 0.0
    may_drop = settings.may_drop(plan.name)
    text = learn_supervised_text(column, weight, targets, fold, indicator=side, always=not may_drop)
    if text is not None:
        return _text_column(column, text[0], settings), text[1]
    plan = replace(plan, kind="category")
    if not may_drop:
        return _encode_by_target(plan, column, weight, targets, settings, fold)
    why = f"{plan.why}, and its words do not predict the target"
    return replace(plan, done=DROPPED, why=why), None


def _text_column(
    column: RawColumn, encoding: TextEncoding, settings: PreparationSettings
) -> PreparedColumn:
    done = "text, n-grams of words and characters"
    done += ", encoded by the target" if encoding.level_encoding is not None else ""
    done += f", {_features(encoding.width)}"
    length = sum(map(len, column.levels)) / len(column.levels)
    why = f"{len(column.levels):,} different texts of {length:.0f} characters on average"
    guess = ""
    if settings.may_drop(column.name):
        guess = f"{why} are used by their words. If these mean nothing for new rows, name the "
        guess += "column in drop=, otherwise in keep="
    return PreparedColumn(column.name, "text", encoding, done, why, guess)


def _features(count: int) -> str:
    return f"{count} feature" + "s" * (count != 1)


class Learner:
    """Decides what becomes of each column; remembers the columns it has seen.

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
        targets: FloatArray | None = None,
    ) -> None:
        self.settings, self.weight, self.supervised = settings, weight, supervised
        self.targets = targets
        self.total = float(n_rows) if weight is None else float(weight.sum())
        self.n_rows = n_rows
        self.seen: dict[bytes, str] = {}

    def column(self, column: RawColumn) -> PreparedColumn:
        """Return what becomes of a column; ``done`` is empty where targets have to be encoded."""
        if column.name in self.settings.dropped:
            return self._dropped(column, NAMED)
        style, numeric = None, column.kind == "number"
        if self.settings.parse_dates:
            style = column.date_style()
            if style is not None:
                column = column.as_dates(style.order, style.zoned) or column
            column = column.as_time_of_day() or column
        if column.kind == "empty" or column.missing.all():
            return self._dropped(column, "all its values are missing")
        if self.settings.may_drop(column.name):
            digest = hashlib.blake2b(f"{column.kind} {column.ordered}".encode())
            digest.update("\0".join(column.levels).encode("utf-8", "surrogatepass"))
            digest.update(column.as_numbers().tobytes())
            equal = self.seen.setdefault(digest.digest(), column.name)
            if equal != column.name:
                return self._dropped(column, f"it equals column {equal!r}")
        if column.ordered:
            return self._ordered(column)
        if column.kind == "category":
            return self._category(column)
        if column.kind == "boolean":
            return self._boolean(column)
        if column.kind == "date":
            return self._date(column, style, numeric)
        return self._number(column)

    def _dropped(self, column: RawColumn, why: str) -> PreparedColumn:
        return PreparedColumn(column.name, column.kind, None, DROPPED, why)

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
        if self.settings.may_drop(column.name):
            if distinct.constant and not indicator:
                return self._dropped(column, f"it is {distinct.values[0]:g} in every row")
            if may_number_rows(column) and len(distinct.values) == round(self.total):
                if self.targets is not None and not predicts(column.values, self.targets):
                    why = "it numbers the rows, and rows next to each other are not alike: an id"
                    return self._dropped(column, why)
        encoding = self._scaled(column, distinct, indicator)
        done = "normal scores" if len(encoding.grid) else "standardised"
        why = f"{len(distinct.values):,} different {column.kind}s"
        if column.kind == "duration":
            why += ", in days"
        return PreparedColumn(column.name, column.kind, encoding, *_with_nans(done, why, encoding))

    def _ordered(self, column: RawColumn) -> PreparedColumn:
        encoding = learn_ordered(column, self.weight, self._indicator(column.missing))
        if encoding is None:
            return self._dropped(column, "it has one level in every row")
        words = f"places of the levels, {_features(encoding.width)}"
        order = " < ".join(column.levels[:12]) + (" < ..." if len(column.levels) > 12 else "")
        return PreparedColumn(column.name, column.kind, encoding, words, order)

    def _boolean(self, column: RawColumn) -> PreparedColumn:
        missing = column.missing
        observed = column.values[~missing]
        may_drop = self.settings.may_drop(column.name)
        if may_drop and not missing.any() and np.all(observed == observed[0]):
            return self._dropped(column, f"it is {bool(observed[0])} in every row")
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

    def _date(self, column: RawColumn, style: DateStyle | None, numeric: bool) -> PreparedColumn:
        missing = column.missing
        distinct = self._distinct(days(column.values), missing)
        indicator = self._indicator(missing)
        span = float(distinct.values[-1] - distinct.values[0])
        if self.settings.may_drop(column.name) and span == 0 and not indicator:
            return self._dropped(column, "it is the same date in every row")
        observed = column.values[~missing]
        months = bool(np.all(observed == observed.astype("datetime64[M]")))  # no days of the week
        cycles = tuple(
            cycle
            for cycle, length in CYCLES.items()
            if span > length and np.ptp(phase(observed, cycle)) > 0
            if not (months and cycle == "week" and len(distinct.values) > 2)
        )
        position = self._scaled(column, distinct, indicator)
        encoding = DateEncoding(position, cycles, column.zone, "" if style is None else style.order)
        done = "position in days" + "".join(f", cycle of the {cycle}" for cycle in cycles)
        guess = ""
        if style is not None and style.ambiguous:
            guess = f"no value distinguishes day and month: they are read as {ORDERS[style.order]}"
            guess += ". If that is wrong, write them as 2024-12-31"
        elif numeric:
            guess = "the numbers are read as dates, year, month, day. If they are codes, put a "
            guess += "letter in front"
        why = f"{span:,.0f} days" + ("" if style is None else f", {style.describe()}")
        done, why = _with_nans(done, why, position, date_text(position.fill))
        return PreparedColumn(column.name, column.kind, encoding, done, why, guess)

    def _category(self, column: RawColumn) -> PreparedColumn:
        settings = self.settings
        weight = np.ones(self.n_rows) if self.weight is None else self.weight
        counts = LevelWeights.of(column, weight)
        levels = [column.levels[i] for i in np.flatnonzero(counts.weight[:-1])]
        observed = self.total - float(counts.weight[-1])
        reason = self._looks_like_id(levels, observed)
        if reason and is_text(levels):
            if self.supervised:
                return PreparedColumn(column.name, "text", None, "", reason)
            text = learn_text(column, weight, self._indicator(column.missing))
            sentences = sum(map(len, levels)) >= LONG * len(levels)
            if text is not None and (sentences or not settings.may_drop(column.name)):
                return _text_column(column, text, settings)
        other = other_than_text(column.levels, counts.weight[:-1])
        if reason and settings.may_drop(column.name):
            also = "" if other is None else f". They are {other[0]}. {other[1]}"
            return self._dropped(column, reason + also)
        guess = "" if other is None else f"{other[0]} are used as categories. {other[1]}"
        why = f"{len(levels):,} level" + "s" * (len(levels) != 1)
        if len(levels) > settings.max_levels and self.supervised:
            why += f", more than max_levels={settings.max_levels}"
            return PreparedColumn(column.name, column.kind, None, "", why, guess)
        rare = settings.rare if settings.rare >= 1 else settings.rare * self.total
        encoding = learn_indicators(counts, rare, settings.max_levels, settings.category_scale)
        if encoding is None:
            if len(levels) == 1 and counts.weight[-1] == 0:
                return self._dropped(column, f"it is {shown(levels[0])} in every row")
            return self._dropped(column, f"every level is rare (in fewer than {rare:g} rows)")
        n_pooled = len(levels) + bool(counts.weight[-1]) - encoding.n_kept
        if n_pooled:
            why += f", {n_pooled:,} of them pooled"
        done = f"indicators, {_features(encoding.width)}"
        return PreparedColumn(column.name, column.kind, encoding, done, why, guess)

    @staticmethod
    def _looks_like_id(levels: list[str], observed: float) -> str:
        share = len(levels) / observed
        if observed < FEW_ROWS:
            return ""
        if len(levels) == round(observed):
            return "every value is different: an id or a name has no information about new rows"
        length = sum(map(len, levels)) / len(levels)
        if length >= LONG and share > NEARLY_ALL / 2:
            return (
                f"free text of {length:.0f} characters on average, {share:.0%} of the values "
                "different"
            )
        if share > NEARLY_ALL:
            return f"{int(100 * share)}% of the values are different: an id or a name"
        return ""


def _with_nans(done: str, why: str, encoding: NumberEncoding, fill: str = "") -> tuple[str, str]:
    if encoding.indicator > 0:
        done += ", missing ones filled and marked"
        why += f"; missing ones get the median, {fill or format(encoding.fill, 'g')}"
    return done, why
