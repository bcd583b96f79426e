"""What was learned of a table, and the pure function from raw rows to features that it defines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.preparation.encodings import DateEncoding, Encoding, LevelEncoding, NumberEncoding
from lssvm.preparation.tables import PLURALS, RawColumn, RawTable, column_names, read_table
from lssvm.preparation.text_dates import ORDERS, parse_dates

FORMAT = 1

_ENCODINGS: dict[str, type[Encoding]] = {
    kind.way: kind for kind in (NumberEncoding, LevelEncoding, DateEncoding)
}


@dataclass(frozen=True, eq=False)
class PreparedColumn:
    """A column of the training table, and what becomes of it.

    Attributes
    ----------
    name : str
        As in the table.
    kind : str
        One of `lssvm.preparation.KINDS`.
    encoding : Encoding or None
        None: the column is left out.
    done, why : str
        In words, for people.

    Examples
    --------
    >>> from lssvm.preparation import PreparedColumn
    >>> PreparedColumn("id", "number", None, "left out", "it numbers the rows").width
    0
    """

    name: str
    kind: str
    encoding: Encoding | None
    done: str
    why: str

    @property
    def width(self) -> int:
        """Number of features."""
        return 0 if self.encoding is None else self.encoding.width


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
    >>> from lssvm.preparation import PreparedTable, TablePreparation
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
        X : data frame, Arrow table, mapping from names to columns, or array
            Columns are found by name, where they have names.
        """
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

    def used_columns(self, table: RawTable) -> RawTable:
        """Return the used ones of all columns of a table, as `transform` takes them.

        Parameters
        ----------
        table : RawTable
            With all columns of the training table.
        """
        columns = tuple(table.columns[j] for j in self._used)
        return self._as_trained(RawTable(columns, table.named, table.n_rows))

    def _as_trained(self, table: RawTable) -> RawTable:
        pairs = zip(self._used, table.columns, strict=True)
        columns = tuple(_as_trained(self.columns[j], column) for j, column in pairs)
        return RawTable(columns, self.named, table.n_rows)

    def transform(self, X: Any) -> FloatArray:
        """Turn raw rows into features: a pure function of the record and of every single row.

        Parameters
        ----------
        X : RawTable that `read` returned, or a table as `read` takes it
            Rows to turn into features.

        Returns
        -------
        array of shape (n, d)

        Notes
        -----
        O(n d) time; no copy of the rows besides the result.
        """
        table = X if isinstance(X, RawTable) else self.read(X)
        out = np.empty((table.n_rows, self.n_features))
        at = 0
        for j, column in zip(self._used, table.columns, strict=True):
            encoding = self.columns[j].encoding
            assert encoding is not None
            encoding.encode(column, out[:, at : at + encoding.width])
            at += encoding.width
        return out

    def unseen(self, X: Any) -> dict[str, dict[str, int]]:
        """Count the levels that training has not met: column, level, number of rows.

        Parameters
        ----------
        X : table as `read` takes it
            Rows to look at.
        """
        table = X if isinstance(X, RawTable) else self.read(X)
        counts: dict[str, dict[str, int]] = {}
        for j, column in zip(self._used, table.columns, strict=True):
            encoding = self.columns[j].encoding
            if not isinstance(encoding, LevelEncoding) or column.kind != "category":
                continue
            known = set(encoding.levels)
            rows = np.bincount(column.values[column.values >= 0], minlength=len(column.levels))
            pairs = zip(column.levels, rows.tolist(), strict=True)
            new = {level: count for level, count in pairs if count and level not in known}
            if new:
                counts[self.columns[j].name] = new
        return counts

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


def _with_lists(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields}


def _restored(kind: type[Encoding], record: Mapping[str, Any]) -> Encoding:
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
    }
    if kind is DateEncoding:
        values["position"] = _restored(NumberEncoding, values["position"])
    return kind(**values)


def _as_trained(trained: PreparedColumn, column: RawColumn) -> RawColumn:
    """Return the column as one of the trained kind, or say what is wrong with it."""
    kind = trained.kind
    if isinstance(trained.encoding, DateEncoding) and trained.encoding.order:
        column = _read_dates(column, trained.encoding.order)
    if column.kind in (kind, "empty"):
        check_finite(column)
        encoding = trained.encoding
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
    if kind == "boolean" and column.kind == "number":
        observed = column.values[~np.isnan(column.values)]
        if np.all((observed == 0) | (observed == 1)):
            return RawColumn(column.name, "boolean", column.values)
    example = ""
    if column.kind == "category":
        row = int(np.flatnonzero(column.values >= 0)[0])
        example = f" ({column.levels[column.values[row]]!r} in row {row})"
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


def _read_dates(column: RawColumn, order: str) -> RawColumn:
    if column.kind != "category":
        return column
    dates = column.as_dates(order)
    if dates is None:
        wrong = next(level for level in column.levels if parse_dates([level], order) is None)
        raise InvalidInputError(
            f"Column {column.name!r} has the text {wrong!r}, but had dates written as "
            f"{ORDERS[order]} in training: write it in the same way, or make it missing (None)."
        )
    return dates


def check_finite(column: RawColumn) -> None:
    """Raise where a number is infinite."""
    if column.kind in ("number", "duration"):
        infinite = np.isinf(column.values)
        if infinite.any():
            row = int(np.flatnonzero(infinite)[0])
            raise InvalidInputError(
                f"Column {column.name!r} has an infinite value ({column.values[row]}) in row "
                f"{row}: replace it by a number or by a missing value (NaN), or leave the row out."
            )
