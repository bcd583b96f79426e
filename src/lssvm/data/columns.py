"""Tables in memory as typed columns: data frames of any library, mappings and arrays.

Whatever the table is, a column comes out as one of five kinds: numbers, booleans, categories, dates
or durations. What is none of these, or a mixture, is an error that names the column.
"""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import AnyArray, BoolArray, FloatArray, is_sparse
from lssvm._core.blocks import as_bytes, require
from lssvm._core.errors import InvalidInputError, shown
from lssvm.data.dates import DateStyle, date_style, parse_dates, times_of_day

KINDS = ("number", "boolean", "category", "date", "duration", "empty")
"""What a column can hold; "empty" is a column of missing values, which fits every kind."""

PLURALS = {
    "number": "numbers",
    "boolean": "booleans",
    "category": "text or categories",
    "date": "dates",
    "duration": "durations",
    "empty": "nothing but missing values",
}

DAY = np.timedelta64(1, "D")
_FIRST_DATE, _NO_DATE = 19000101, 21000000  # numbers between them may be dates


@dataclass(frozen=True, eq=False)
class RawColumn:
    """One column of a table.

    Attributes
    ----------
    name : str
        As in the table, or x0, x1 and so on.
    kind : str
        One of `KINDS`.
    values : array of shape (n,)
        float64 with NaN where missing (numbers, booleans as 0 and 1, durations in days, "empty");
        datetime64[us] with NaT (dates, by the clock of ``zone``); the position of the level, -1
        where missing (categories).
    levels : tuple of str
        The different strings of a category, sorted; in their own order where they have one.
    zone : str or None
        Time zone of dates that have one.
    ordered : bool
        Whether the levels have an order of their own.

    Examples
    --------
    >>> from lssvm.data.columns import read_table
    >>> job = read_table({"job": ["smith", None, "cook"]}).columns[0]
    >>> job.kind, job.levels, job.values.tolist(), job.missing.tolist()
    ('category', ('cook', 'smith'), [1, -1, 0], [False, True, False])
    """

    name: str
    kind: str
    values: AnyArray
    levels: tuple[str, ...] = ()
    zone: str | None = None
    ordered: bool = False
    _dates: dict[tuple[str, bool], RawColumn | None] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> BoolArray:
        """Whether each row's value is missing."""
        if self.kind == "category":
            return np.asarray(self.values < 0)
        return np.asarray(np.isnat(self.values) if self.kind == "date" else np.isnan(self.values))

    def numbers(self) -> FloatArray:
        """Return numbers, booleans and durations as they are, dates as days since 1970."""
        if self.kind == "date":
            days = self.values.astype(np.int64) / 86_400e6
            return np.where(np.isnat(self.values), np.nan, days)
        return np.asarray(self.values, dtype=np.float64)

    def as_numbers(self) -> FloatArray:
        """Return one number for every value, equal for equal values; NaN where missing."""
        if self.kind == "category":
            return np.where(self.values < 0, np.nan, self.values.astype(np.float64))
        if self.kind == "date":
            micros = self.values.astype(np.int64).astype(np.float64)
            return np.where(np.isnat(self.values), np.nan, micros)
        return np.where(np.isnan(self.values), np.nan, self.values + 0.0)  # -0 is 0

    def date_style(self) -> DateStyle | None:
        """Return how texts, or numbers such as 20240131, are written as dates; None: one is not."""
        if self.kind == "number":
            known = self.values[~np.isnan(self.values)]
            if not len(known) or not (known.min() >= _FIRST_DATE and known.max() < _NO_DATE):
                return None
            month, day = known // 100 % 100, known % 100
            dated = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
            dated &= known == np.floor(known)
            return date_style(self.as_category().levels) if dated.all() else None
        return None if self.kind != "category" or self.ordered else date_style(self.levels)

    def as_time_of_day(self) -> RawColumn | None:
        """Return texts such as 10:29 as parts of a day; None where one is something else."""
        parts = None if self.kind != "category" or self.ordered else times_of_day(self.levels)
        if parts is None:
            return None
        return RawColumn(self.name, "duration", np.append(parts, np.nan)[self.values])

    def as_dates(self, order: str, zoned: bool = False) -> RawColumn | None:
        """Return texts, or numbers such as 20240131, as dates; None where one is none.

        They are read once.
        """
        if (order, zoned) not in self._dates:
            self._dates[order, zoned] = self._read_dates(order, zoned)
        return self._dates[order, zoned]

    def _read_dates(self, order: str, zoned: bool) -> RawColumn | None:
        texts = self if self.kind == "category" else self.as_category()
        dates = parse_dates(texts.levels, order, zoned)
        if dates is None or not len(dates):
            return None
        table = np.append(dates, np.datetime64("NaT", "us"))
        return RawColumn(self.name, "date", table[texts.values], zone="UTC" if zoned else None)

    def as_category(self) -> RawColumn:
        """Return numbers as the names that they are written by: 1 and 1.0 are '1'."""
        return category_column(self.name, [None if v != v else v for v in self.values.tolist()])

    def in_order(self, levels: Sequence[Any]) -> RawColumn:
        """Return a category with levels of this order; raise where it has another one."""
        wanted = tuple(level_text(level) for level in levels)
        if len(set(wanted)) < len(wanted):
            raise InvalidInputError(f"ordered= names a level of column {self.name!r} twice.")
        if self.kind == "empty":
            return self
        column = self if self.kind == "category" else self.as_category()
        place = {level: i for i, level in enumerate(wanted)}
        other = [level for level in column.levels if level not in place]
        if other:
            raise InvalidInputError(
                f"Column {self.name!r} has the level {other[0]!r}, which ordered= does not name: "
                f"it has {list(wanted)}. Add it where it belongs, or make it missing (None)."
            )
        table = np.array([*(place[level] for level in column.levels), -1], dtype=np.intp)
        return RawColumn(self.name, "category", table[column.values], wanted, ordered=True)

    def take(self, rows: Any) -> RawColumn:
        """Return some rows, with the levels that occur there.

        Parameters
        ----------
        rows : slice or int array
            Positions.
        """
        values = self.values[rows]
        if self.kind != "category":
            return RawColumn(self.name, self.kind, values, zone=self.zone)
        there = np.bincount(values[values >= 0], minlength=len(self.levels)) > 0
        if not there.any():
            return RawColumn(self.name, "empty", np.full(len(values), np.nan))
        if self.ordered:
            return RawColumn(self.name, "category", values, self.levels, ordered=True)
        place = np.append(np.cumsum(there) - 1, -1)
        levels = tuple(level for level, used in zip(self.levels, there, strict=True) if used)
        return RawColumn(self.name, "category", place[values], levels)


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns of the same length.

    Attributes
    ----------
    columns : tuple of RawColumn
        In the order of the table.
    named : bool
        Whether the columns brought names of their own; those of an array are x0, x1 and so on.
    n_rows : int
        How many rows there are.
    place : callable
        From the number of a row to words for where it is, such as a line of a file.

    Examples
    --------
    >>> from lssvm.data.columns import read_table
    >>> table = read_table([[1.5, "cook"], [2.5, "smith"]])
    >>> table.names, [column.kind for column in table.columns], table.named
    (('x0', 'x1'), ['number', 'category'], False)
    """

    columns: tuple[RawColumn, ...]
    named: bool
    n_rows: int
    place: Callable[[int], str] = "row {}".format
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(column.name for column in self.columns))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n_rows, len(self.columns)

    def select(self, names: Sequence[str]) -> RawTable:
        """Return some columns by their names."""
        known = dict(zip(self.names, self.columns, strict=True))
        return replace(self, columns=tuple(known[name] for name in names if name in known))

    def in_order(self, ordered: Mapping[str, Sequence[Any]]) -> RawTable:
        """Return the table with levels of some columns in an order of their own."""
        columns = tuple(
            column.in_order(ordered[column.name]) if column.name in ordered else column
            for column in self.columns
        )
        return replace(self, columns=columns)

    def take(self, rows: Any) -> RawTable:
        """Return some rows.

        Parameters
        ----------
        rows : slice or int array
            Positions.
        """
        columns = tuple(column.take(rows) for column in self.columns)
        n_rows = len(columns[0]) if columns else len(np.arange(self.n_rows)[rows])
        return RawTable(columns, self.named, n_rows)


def moments_of(days: FloatArray) -> NDArray[np.datetime64]:
    """Return days since 1970 as dates, NaN as NaT."""
    known = ~np.isnan(days)
    micros = np.round(np.where(known, days, 0.0) * 86_400e6).astype(np.int64)
    return np.where(known, micros.astype("datetime64[us]"), np.datetime64("NaT", "us"))


def date_text(day: float) -> str:
    """Return days since 1970 as text, with a time of day where there is one."""
    return str(np.datetime_as_string(moments_of(np.array([day]))[0], unit="auto"))


def read_table(
    X: Any, columns: Iterable[str] | None = None, zones: Mapping[str, str | None] | None = None
) -> RawTable:
    """Return the typed columns of a table.

    Parameters
    ----------
    X : data frame (pandas, polars, ...), Arrow table, mapping from names to columns, or array
        An array has shape (n, columns); one of objects, or a list of rows, may mix kinds.
    columns : iterable of str, optional
        The columns to read, of a table with names. None: all.
    zones : mapping from names to time zones, optional
        By whose clock dates with a time zone are read; None: their own.

    Returns
    -------
    RawTable

    Notes
    -----
    O(n) time for each column. Numbers are copied where they are not float64, or not one after the
    other in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.columns import read_table
    >>> table = {"age": [30, None], "since": np.array(["2024-01-01", "NaT"], "datetime64[D]")}
    >>> [(column.name, column.kind) for column in read_table(table).columns]
    [('age', 'number'), ('since', 'date')]
    """
    if isinstance(X, RawTable):
        return X if columns is None else X.select(list(columns))
    named = named_columns(X)
    if named is None:
        return _read_array(X)
    names = list(named) if columns is None else [name for name in columns if name in named]
    zones = {} if zones is None else zones
    read = [read_column(name, named[name], zones.get(name)) for name in names]
    lengths = {column.name: len(column) for column in read}
    if len(set(lengths.values())) > 1:
        raise InvalidInputError(f"The columns of X differ in length: {lengths}.")
    n_rows = len(read[0]) if read else _length(X)
    return RawTable(tuple(read), True, n_rows)


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a table, None for an array, which has none.

    Examples
    --------
    >>> from lssvm.data.columns import column_names
    >>> column_names({"age": [30]}), column_names([[30]])
    (('age',), None)
    """
    if isinstance(X, RawTable):
        return X.names if X.named else None
    frame = _frame(X)
    if frame is None:
        return None
    names = list(frame) if isinstance(frame, Mapping) else frame.columns
    return tuple(_unique({str(name): None for name in names}, len(names)))


def named_columns(X: Any) -> dict[str, Any] | None:
    """Return the columns of a table by their names, as they are; None for an array."""
    frame = _frame(X)
    if frame is None:
        return None
    if isinstance(frame, Mapping):
        return _unique({str(name): values for name, values in frame.items()}, len(frame))
    pairs = zip(frame.columns, frame.iter_columns(), strict=True)
    return _unique({str(name): column for name, column in pairs}, len(frame.columns))


def _frame(X: Any) -> Mapping[Any, Any] | nw.DataFrame[Any] | None:
    """Return a mapping or a data frame, None for an array."""
    if is_sparse(X):
        return None
    if isinstance(X, Mapping):
        return X
    try:
        native = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise InvalidInputError(
            f"Two columns of X have the same name: rename one of them. ({error})"
        ) from error
    if isinstance(native, nw.LazyFrame):
        raise InvalidInputError(
            f"X is a {type(X).__name__} that cannot be read before it is computed: give a data "
            "frame in memory (.collect(), .compute())."
        )
    return native if isinstance(native, nw.DataFrame) else None


def _unique(columns: dict[str, Any], count: int) -> dict[str, Any]:
    if len(columns) < count:
        raise InvalidInputError(
            "Two columns of X have the same name (as text): rename one of them. The names are "
            f"{sorted(columns)}."
        )
    if not columns:
        raise InvalidInputError(
            "X has 0 feature(s) (shape=(n, 0)) while a minimum of 1 is required."
        )
    return columns


def count_rows(X: Any) -> int:
    """Return the number of rows of a table or an array, whatever it is."""
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    if isinstance(X, Mapping):
        return max((len(column) for column in X.values()), default=0)
    if hasattr(X, "__len__"):
        return len(X)
    if hasattr(X, "__array__"):
        return len(np.asarray(X))
    raise InvalidInputError(
        f"X is a {type(X).__name__}: give a data frame, an Arrow table, a mapping of columns or an "
        "array of shape (n, d)."
    )


def _length(X: Any) -> int:
    values = next(iter(X.values())) if isinstance(X, Mapping) else X
    return int(values.shape[0]) if is_sparse(values) else len(values)


def _read_array(X: Any) -> RawTable:
    X = _dense(X) if is_sparse(X) else X
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if not isinstance(X, np.ndarray) and array.dtype.kind in "US" and not hasattr(X, "__array__"):
        array = np.array(X, dtype=object)  # numbers in rows that also hold text stay numbers
    if array.dtype.kind == "c":
        raise InvalidInputError("Complex data not supported: X has complex numbers.")
    if array.ndim != 2:
        raise InvalidInputError(
            f"Expected 2D array, got {array.ndim}D array instead: X has shape {array.shape}. "
            "Reshape your data: X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is "
            "one row."
        )
    n, p = array.shape
    if p == 0:
        raise InvalidInputError(
            f"X has 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required."
        )
    return RawTable(tuple(_from_array(f"x{j}", array[:, j]) for j in range(p)), False, n)


def _dense(X: Any) -> NDArray[Any]:
    """Return a sparse matrix as columns of numbers: every column is prepared, zeros and all."""
    n, p = X.shape
    require(
        3 * 8 * n * p,
        as_bytes(None),
        what=f"A sparse matrix of {n:,} rows and {p:,} columns, whose columns are prepared dense,",
        advice="Use FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC or GreedyLSSVR, which keep it "
        "sparse, or fewer columns (sklearn.feature_selection, TruncatedSVD).",
    )
    return np.asarray(X.toarray())


def read_column(name: str, values: Any, zone: str | None = None) -> RawColumn:
    """Return a typed column; dates with a time zone go by the clock of ``zone``, or their own."""
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _from_series(name, series, zone)
    if isinstance(values, np.ndarray):
        return _from_array(name, values)
    if isinstance(values, Sequence) and not isinstance(values, str):
        return _from_objects(name, list(values))
    return _from_array(name, np.asarray(values))


def _from_series(name: str, series: nw.Series[Any], zone: str | None) -> RawColumn:
    dtype = series.dtype
    if dtype == nw.Boolean or dtype.is_numeric():
        if not dtype.is_integer():  # Arrow casts no integer that a float would round
            series = series.cast(nw.Float64())
        values = np.asarray(series.to_numpy(), dtype=np.float64)
        return RawColumn(name, "boolean" if dtype == nw.Boolean else "number", values)
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        column = category_column(name, series.to_list())
        order = _category_order(series.to_native())
        return column if order is None else column.in_order(order)
    if dtype == nw.Date:
        series, dtype = series.cast(nw.Datetime("us")), nw.Datetime("us")
    if isinstance(dtype, nw.Datetime):
        time_zone = dtype.time_zone
        if time_zone is not None:
            series = series.dt.convert_time_zone(zone or time_zone).dt.replace_time_zone(None)
        return RawColumn(
            name, "date", _as_dates(series.to_numpy()), (), time_zone and (zone or time_zone)
        )
    if isinstance(dtype, nw.Duration):
        return RawColumn(name, "duration", np.asarray(series.to_numpy()) / DAY)
    if dtype == nw.Object:
        return _from_objects(name, series.to_list())
    if series.is_null().all():
        return RawColumn(name, "empty", np.full(len(series), np.nan))
    array = np.asarray(series.to_native())
    if array.dtype.kind in "biufmM":  # such as the sparse columns of pandas
        return _from_array(name, array)
    known = getattr(series.to_native(), "dtype", dtype) if dtype == nw.Unknown else dtype
    raise _unusable(name, str(known))


def _category_order(values: Any) -> list[Any] | None:
    """Return the categories in their order, where a column of pandas or Arrow has one."""
    categories: Any = getattr(values, "cat", None)
    if getattr(categories, "ordered", False):
        return list(categories.categories)
    if getattr(getattr(values, "type", None), "ordered", False):  # a dictionary of Arrow
        return list(values.unify_dictionaries().chunk(0).dictionary.to_pylist())
    return None


def _as_dates(values: Any) -> NDArray[np.datetime64]:
    return np.asarray(values).astype("datetime64[us]")


def _from_array(name: str, array: AnyArray) -> RawColumn:
    if array.ndim != 1:
        raise InvalidInputError(
            f"Column {name!r} has shape {array.shape}: a column has one value in each row."
        )
    kind = array.dtype.kind
    if kind == "b":
        return RawColumn(name, "boolean", array.astype(np.float64))
    if kind in "iuf":
        return RawColumn(name, "number", np.ascontiguousarray(array, dtype=np.float64))
    if kind == "M":
        return RawColumn(name, "date", _as_dates(array))
    if kind == "m":
        return RawColumn(name, "duration", array / DAY)
    if kind in "OSUT":
        return _from_objects(name, array.tolist())
    if kind == "c":
        raise InvalidInputError(f"Complex data not supported: column {name!r} is complex.")
    raise _unusable(name, str(array.dtype))


def _unusable(name: str, what: str) -> InvalidInputError:
    return InvalidInputError(
        f"Column {name!r} has values of type {what}; usable are numbers, booleans, text, "
        "categories, dates and durations. Turn the column into one of these, or leave it out."
    )


def is_missing(value: Any) -> bool:
    """Say whether a Python value is None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    if isinstance(value, Decimal):
        return value.is_nan()  # a signalling NaN cannot be compared
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA is neither equal to itself nor not
        return type(value).__name__ == "NAType"


def _from_objects(name: str, values: list[Any]) -> RawColumn:
    types = set(map(type, values))
    if types == {str}:
        return category_column(name, values)
    odd = {t for t in types if not issubclass(t, str | bool | int)}  # these are never missing
    if odd:
        values = [None if type(v) in odd and is_missing(v) else v for v in values]
        types = set(map(type, values)) - {type(None)}
    if not types:
        return RawColumn(name, "empty", np.full(len(values), np.nan))
    if all(issubclass(t, bytes) for t in types):
        values = [v if v is None else v.decode("utf-8", "backslashreplace") for v in values]
        return category_column(name, values)
    if all(issubclass(t, str) for t in types):
        return category_column(name, values)
    if all(issubclass(t, bool | np.bool_) for t in types):
        return RawColumn(name, "boolean", _as_floats(values))
    if all(issubclass(t, numbers.Real | Decimal | np.bool_) for t in types):
        return RawColumn(name, "number", _as_floats(values))
    if all(issubclass(t, datetime.date | np.datetime64) for t in types):
        return _from_date_objects(name, values)
    if types == {datetime.time}:
        return category_column(name, values).as_time_of_day() or category_column(name, values)
    if all(issubclass(t, datetime.timedelta | np.timedelta64) for t in types):
        return RawColumn(name, "duration", np.array(values, dtype="timedelta64[us]") / DAY)
    raise _mixture(name, values, types)


def _from_date_objects(name: str, values: list[Any]) -> RawColumn:
    zoned = {getattr(v, "tzinfo", None) is not None for v in values if v is not None}
    if len(zoned) > 1:
        raise InvalidInputError(
            f"Column {name!r} has dates with a time zone and dates without one: give all of them "
            "one, for example with pandas.to_datetime(..., utc=True)."
        )
    zone = None
    if zoned == {True}:
        utc, zone = datetime.UTC, "UTC"
        values = [None if v is None else v.astimezone(utc).replace(tzinfo=None) for v in values]
    return RawColumn(name, "date", np.array(values, dtype="datetime64[us]"), zone=zone)


def _as_floats(values: list[Any]) -> FloatArray:
    try:
        return np.array(values, dtype=np.float64)  # None becomes NaN
    except OverflowError:
        return np.array([np.nan if v is None else _as_float(v) for v in values])


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _mixture(name: str, values: list[Any], types: set[type]) -> InvalidInputError:
    plain = (str, numbers.Real, Decimal, np.bool_, datetime.date, datetime.timedelta)
    known: tuple[type, ...] = (*plain, np.datetime64, np.timedelta64)
    others = sorted(t.__name__ for t in types if not issubclass(t, known))
    if others:
        return _unusable(name, " and ".join(others))
    examples: dict[type, tuple[int, Any]] = {}
    for row, value in enumerate(values):
        if value is not None:
            examples.setdefault(type(value), (row, value))
    listed = " and ".join(f"{shown(value)} in row {row}" for row, value in examples.values())
    return InvalidInputError(
        f"Column {name!r} mixes values of different kinds ({listed}). If the text stands for a "
        "missing value, make it missing (None or NaN); if the column is a code, make all of it "
        "text (.astype(str))."
    )


def level_text(value: Any) -> str:
    """Return the name of a level: whole numbers without a point, text that can be stored."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value)) if abs(float(value)) < 2**53 else str(value)
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:  # halves of surrogate pairs are not text
        text = text.encode("utf-8", "backslashreplace").decode()
    return text


def category_column(name: str, values: list[Any]) -> RawColumn:
    """Return a column of categories from any values; None and NaN are missing."""
    try:
        distinct = set(values)
    except TypeError as error:
        raise _unusable(name, f"that cannot be compared ({error})") from error
    text = {value: level_text(value) for value in distinct if not is_missing(value)}
    if not text:
        return RawColumn(name, "empty", np.full(len(values), np.nan))
    levels = sorted(set(text.values()))
    code = {level: i for i, level in enumerate(levels)}
    table = dict.fromkeys(distinct, -1) | {value: code[level] for value, level in text.items()}
    codes = np.fromiter(map(table.__getitem__, values), dtype=np.intp, count=len(values))
    return RawColumn(name, "category", codes, tuple(levels))


def check_finite(column: RawColumn, place: Callable[[int], str]) -> None:
    """Raise where a number is infinite."""
    if column.kind in ("number", "duration"):
        infinite = np.isinf(column.values)
        if infinite.any():
            row = int(np.flatnonzero(infinite)[0])
            raise InvalidInputError(
                f"Column {column.name!r} has an infinite value ({column.values[row]}) in "
                f"{place(row)}: replace it by a number or by a missing value (NaN), or leave the "
                "row out."
            )
