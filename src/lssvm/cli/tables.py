"""Files with named columns: opened and checked, the task detected, rows held out."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.random import hash_positions
from lssvm.cli.options import Columns, Reading
from lssvm.data import CsvOptions, Scan, scan
from lssvm.data.arrow import FORMATS, ArrowReader, kind_of_type
from lssvm.data.csv_files import DELIMITERS, CsvFile
from lssvm.data.raw import SCANNED, check_rows
from lssvm.data.scanning import ending, find_files
from lssvm.data.sheets import TableFile, check_names
from lssvm.report.measures import written_label

_SHOWN = 12  # names of columns in a message


@dataclass(frozen=True)
class Table:
    """A data set in files with named columns.

    Attributes
    ----------
    path : str
    kinds : mapping from str to str
        For every column what a `Schema` calls it, or the type that is none of these.
    csv : CsvOptions
    integers : set of str
        Columns of numbers that CSV writes without a decimal point, as far as it was looked at.
    reading : str
        How it is read, where that is unusual.
    dates : set of str
        Columns of dates and times.
    """

    path: str
    kinds: Mapping[str, str]
    csv: CsvOptions = field(repr=False)
    integers: frozenset[str] = frozenset()
    reading: str = ""
    dates: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.kinds)

    def need(self, names: Sequence[str], purpose: str) -> None:
        """Raise where one of some columns is not there."""
        for name in names:
            if name not in self.kinds:
                near = difflib.get_close_matches(name, self.names, 1)
                similar = f" Did you mean {near[0]!r}?" if near else ""
                raise InvalidInputError(
                    f"{self.path} has no column {name!r}{purpose}.{similar} "
                    f"It has {short_list(self.names)}."
                )

    def with_categories(self, names: Sequence[str]) -> Table:
        """Return the table with columns of numbers that are names of categories."""
        texts = dict.fromkeys(names, "text")
        csv = replace(self.csv, types={**self.csv.types, **texts})
        return replace(self, kinds={**self.kinds, **texts}, csv=csv)

    def scan(
        self,
        target: str | None = None,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        types: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Scan:
        """Return a scan of it."""
        csv = replace(self.csv, types={**self.csv.types, **(types or {})})
        data = scan(
            self.path,
            target=target,
            columns=None if columns is None else list(columns),
            weight=weight,
            csv=csv,
            **options,
        )
        reader: Any = data.reader  # rows without a target are skipped
        return data if target is None else replace(data, reader=replace(reader, skip=True))

    def raw_batches(self, names: Sequence[str], nulls: tuple[str, ...] = ()) -> Iterator[Any]:
        """Yield columns of all files with the types they have there (CSV: as text)."""
        files = find_files(self.path)
        csv = replace(self.csv, null_values=nulls, types=dict.fromkeys(names, "text"))
        reader = ArrowReader(files, FORMATS[ending(files[0])], (), None, None, csv)
        for file in files:
            batches = reader.open_file(file).batches(list(names), 65_536)
            yield from (batch for batch in batches if batch.num_rows)

    def column(self, name: str) -> Any:
        """Return one column of all rows as an Arrow array."""
        import pyarrow as pa

        self.need([name], "")
        parts = [b.column(name) for b in self.raw_batches([name], self.csv.null_values)]
        if not parts:
            raise InvalidInputError(f"{self.path} has no rows.")
        return pa.chunked_array(parts)

    def known(self, target: str) -> BoolArray:
        """Return which rows have a target, shape (n,)."""
        return ~np.asarray(self.column(target).is_null(nan_is_null=True), dtype=bool)


def open_table(path: str, reading: Reading, note: Callable[[str], None] | None = None) -> Table:
    """Open files with named columns and look at their header.

    Parameters
    ----------
    path : str
    reading : Reading
    note : callable, optional
        Takes a line about how they are read, where that is unusual.

    Raises
    ------
    InvalidInputError
        Where there is no such file, it cannot be read, or its fields are not separated as
        expected.
    """
    if not os.path.exists(path) and not any(sign in path for sign in "*?["):
        raise InvalidInputError(f"There is no file {path}.")
    files = find_files(path)
    kind = ending(files[0])
    if kind not in FORMATS:
        raise InvalidInputError(
            f"{files[0]} cannot be used: give a file that ends in one of {', '.join(FORMATS)}."
        )
    csv = CsvOptions(
        "\t" if reading.delimiter in ("\\t", "tab") else reading.delimiter,
        tuple(reading.missing),
        decimal=reading.decimal,
        thousands=reading.thousands,
        encoding=reading.encoding,
    )
    first = ArrowReader(files, FORMATS[kind], (), None, None, csv).open_file(files[0])
    check_names(files[0], first.schema.names)
    kinds: dict[str, str] = {}
    for column in first.schema:
        kinds[column.name] = str(column.type)
        with suppress(InvalidInputError):
            kinds[column.name] = kind_of_type(column.name, column.type, path)
    dates = frozenset(n for n, kind in kinds.items() if kind == "date")
    if isinstance(first, CsvFile):
        _check_delimiter(files[0], first.seen.dialect.delimiter, list(kinds))
    written = first if isinstance(first, CsvFile | TableFile) else None  # text, or a sheet
    integers, how = (set(), "") if written is None else (written.integers, str(written.description))
    if note is not None and how:
        note(f"{os.path.basename(files[0])} is read as {how}")
    return Table(path, kinds, csv, frozenset(integers), how, dates)


@contextmanager
def open_input(
    path: str, reading: Reading, note: Callable[[str], None] | None = None
) -> Iterator[Table]:
    """Open a table; '-' is standard input, CSV or Parquet, kept in a temporary file meanwhile."""
    if path != "-":
        yield open_table(path, reading, note)
        return
    # Windows does not delete files that are still mapped.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        raw = os.path.join(folder, "standard input")
        with open(raw, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        with open(raw, "rb") as file:
            kind = ".parquet" if file.read(4) == b"PAR1" else ".csv"
        name = os.path.join(folder, f"stdin{kind}")
        os.rename(raw, name)
        yield open_table(name, reading, note)


def check_writable(
    path: str | None, endings: Sequence[str] = (), inputs: Sequence[str] = (), stdout: bool = False
) -> None:
    """Raise where a file could not be written, or is one of the inputs; nothing is left behind.

    Examples
    --------
    >>> from lssvm.cli.tables import check_writable
    >>> check_writable("no such folder/model.lssvm")
    Traceback (most recent call last):
    ...
    lssvm._core.errors.InvalidInputError: ...no such folder/model.lssvm cannot be written: ...
    """
    if path is None or (stdout and path == "-"):
        return
    if path == "-":
        raise InvalidInputError("- (standard output) cannot be used here: give the name of a file.")
    if endings and os.path.splitext(path)[1].lower() not in endings:
        raise InvalidInputError(f"{path} has to end in {' or '.join(endings)}.")
    folder = os.path.dirname(os.path.abspath(path))
    reason = ""
    if any(os.path.exists(p) and os.path.realpath(p) == os.path.realpath(path) for p in inputs):
        reason = "it is the input"
    elif os.path.isdir(path):
        reason = "it is a folder"
    elif not os.path.isdir(folder):
        reason = f"there is no folder {folder}"
    elif os.path.exists(path) and not os.access(path, os.W_OK):
        reason = "the file there may not be changed"
    else:
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            reason = error.strerror or str(error)
    if reason:
        raise InvalidInputError(f"{path} cannot be written: {reason}.")


def short_list(names: Sequence[str]) -> str:
    """Return names for a message, the first dozen of them.

    Examples
    --------
    >>> from lssvm.cli.tables import short_list
    >>> short_list(["a", "b"])
    "'a', 'b'"
    """
    text = ", ".join(repr(name) for name in names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{text} and {more} more" if more > 0 else text


def _check_delimiter(file: str, delimiter: str, names: Sequence[str]) -> None:
    """Raise where the header seems to have another delimiter than the one that is used."""
    best = max(DELIMITERS, key=names[0].count)
    if len(names) == 1 and names[0].count(best) and best != delimiter:
        shown = "\\t" if best == "\t" else best
        raise InvalidInputError(
            f"{file} is one column when it is cut at {delimiter!r}: its fields seem to be "
            f"separated by {best!r}. Give --delimiter '{shown}'."
        )


WAYS = ("class", "row", "group", "time")
_SALT = 0x3C6EF372  # the parts must not follow the folds, which are hashed with the seed


@dataclass(frozen=True)
class HoldOut:
    """A rule that finds the same rows again in the same file.

    Parameters
    ----------
    share : float
        Of the rows (of each class, of the groups) that are held out.
    seed : int
    by : {"class", "row", "group", "time"}
        The same share of every class; rows at random; whole groups; the last rows.
    column : str or None
        Classes, groups or times.
    """

    share: float
    seed: int
    by: str = "row"
    column: str | None = None

    @classmethod
    def of_card(cls, card: Mapping[str, Any]) -> HoldOut | None:
        """Return the rule in the card of a model; None where there is none to believe."""
        entry = card.get("held_out")
        if not isinstance(entry, dict) or set(entry) != {"share", "seed", "by", "column"}:
            return None
        share, seed, by, column = (entry[key] for key in ("share", "seed", "by", "column"))
        good = (
            isinstance(share, float) and 0.0 < share < 1.0 and by in WAYS,
            isinstance(seed, int) and seed >= 0 and isinstance(column, str | None),
        )
        return cls(share, seed, by, column) if all(good) else None

    def words(self) -> str:
        """Return which rows these are."""
        return {
            "class": "the same share of every class",
            "row": "drawn at random",
            "group": f"whole groups of {self.column!r}",
            "time": f"the last ones by {self.column!r}",
        }[self.by]

    def split(self, table: Table, whole: Scan, target: str) -> tuple[Scan, Scan | None]:
        """Return the rows to train on and those held out; None where one of both has none."""
        held = self.rows(table, whole, target)
        if not 0 < held.sum() < len(held):
            return whole, None
        return whole.split(self.share, seed=self.seed, rows=held)

    def rows(self, table: Table, whole: Scan, target: str) -> BoolArray:
        """Return which rows are held out, of those with a target, shape (n,)."""
        if self.by == "row" or self.column is None:
            return stratified(np.zeros(whole.n_rows, dtype=np.intp), self.share, self.seed)
        if self.by == "time":
            return last_rows(as_times(self._values(table, target), self.column), self.share)
        labels = np.unique(self.codes(table, target), return_inverse=True)[1]
        if self.by == "class":
            return stratified(labels, self.share, self.seed)
        return whole_groups(labels, self.share, self.seed, self.column)

    def train_groups(self, table: Table, whole: Scan, target: str) -> IntArray | None:
        """Return the groups of the rows that are not held out; None without groups."""
        if self.by != "group":
            return None
        return self.codes(table, target)[~self.rows(table, whole, target)]

    def codes(self, table: Table, target: str) -> IntArray:
        """Return the values of the column as numbers, of the rows with a target; -1: missing."""
        values = self._values(table, target).combine_chunks().dictionary_encode()
        return np.asarray(values.indices.fill_null(-1))

    def _values(self, table: Table, target: str) -> Any:
        import pyarrow as pa

        return table.column(str(self.column)).filter(pa.array(table.known(target)))


def stratified(labels: IntArray, share: float, seed: int) -> BoolArray:
    """Return rows held out, the share of every class; a class of one or two is trained on.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.cli.tables import stratified
    >>> labels = np.repeat([0, 1, 2], [80, 15, 1])
    >>> np.bincount(labels[stratified(labels, 0.2, 0)], minlength=3).tolist()
    [16, 3, 0]
    """
    n = len(labels)
    order = np.lexsort((hash_positions(np.arange(n), seed + _SALT), labels))
    sizes = np.bincount(labels)
    rank = np.empty(n, dtype=np.intp)
    rank[order] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray(rank < np.floor(share * sizes + 0.5)[labels])


def whole_groups(groups: IntArray, share: float, seed: int, name: str) -> BoolArray:
    """Return rows held out, the rows of a group all or none."""
    if groups.max() < 1:
        raise InvalidInputError(f"--group {name} has one value only: at least two are needed.")
    splitter = GroupShuffleSplit(1, test_size=share, random_state=seed)
    _, test = next(splitter.split(groups, groups=groups))
    return np.isin(np.arange(len(groups)), test)


def last_rows(times: FloatArray, share: float) -> BoolArray:
    """Return the rows with the latest times; equal times count in their order."""
    last = np.argsort(times, kind="stable")[len(times) - round(share * len(times)) :]
    return np.isin(np.arange(len(times)), last)


def as_times(values: Any, name: str) -> FloatArray:
    """Return a column of numbers, dates or ISO texts of dates as numbers that can be ordered."""
    import pyarrow as pa

    if values.null_count:
        raise InvalidInputError(f"--time {name} has missing values: every row needs a time.")
    for kind in (pa.float64(), pa.timestamp("us"), pa.date32()):
        try:
            numbers = values.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        plain = numbers if kind == pa.float64() else numbers.cast(pa.int64(), safe=False)
        return np.asarray(plain, dtype=np.float64)
    raise InvalidInputError(
        f"--time {name} holds {values.type}, such as {values[0].as_py()!r}: numbers or dates like "
        "2024-12-31 or 2024-12-31T23:59:59 are needed."
    )


FEW = 20  # different whole numbers up to which a target is taken for classes
_MANY = 1000  # different values up to which a target is counted
_MANY_TEXTS = 100  # different texts beyond which --task has to name classes
_NAMELESS = re.compile(r"column \d+")


@dataclass(frozen=True)
class Inspection:
    """The result of a pass over a data set.

    Attributes
    ----------
    table : Table
    target : str
    weight : str or None
    features : tuple of str
        The columns to learn from.
    dropped : mapping from str to str
        Columns that cannot be used, and why.
    n_rows : int
    task : {"classification", "regression"}
    reason : str
        Why this task.
    labels : mapping from label to int, or None
        Rows of each class.
    types : mapping from str to str
        How the target is to be read from CSV.
    without : int
        Rows without a target, which are skipped.
    """

    table: Table
    target: str
    weight: str | None
    features: tuple[str, ...]
    dropped: Mapping[str, str]
    n_rows: int
    task: str
    reason: str
    labels: Mapping[Any, int] | None
    types: Mapping[str, str]
    without: int

    @property
    def classes(self) -> bool:
        """Whether classes are predicted."""
        return self.task == "classification"

    def scan(self) -> Scan:
        """Return the data set with these columns."""
        return self.table.scan(self.target, self.features, self.weight, self.types)

    def rule(
        self, share: float, seed: int, group: str | None = None, time: str | None = None
    ) -> HoldOut:
        """Return the rule by which rows are held out: by group or time, else by class."""
        if group is not None or time is not None:
            return HoldOut(share, seed, "time" if group is None else "group", group or time)
        return HoldOut(share, seed, *(("class", self.target) if self.classes else ()))

    def positive(self, label: str | None) -> str | None:
        """Return the positive class of two: the one given, else the rarer; None for others."""
        sizes = {written_label(each): n for each, n in (self.labels or {}).items()}
        if label is not None and (len(sizes) != 2 or label not in sizes):
            have = "numbers" if self.labels is None else short_list(list(sizes))
            raise InvalidInputError(
                f"--positive {label} has to be one of two classes, but the target {self.target!r} "
                f"has {have}."
            )
        if label is not None or len(sizes) != 2:
            return label
        return min(sorted(sizes, reverse=True), key=lambda each: sizes[each])

    def summary(self) -> str:
        """Return the line about what was detected."""
        into = "" if self.labels is None else f" into {len(self.labels)} classes"
        return (
            f"{self.task} of {self.target!r}{into} ({self.reason}), {self.n_rows:,} rows, "
            f"{len(self.features)} columns"
        )


def inspect_table(table: Table, columns: Columns) -> Inspection:
    """Pass once over a data set.

    Parameters
    ----------
    table : Table
    columns : Columns

    Raises
    ------
    InvalidInputError
        Where a column is not there, a column of features has no values or infinite ones, or the
        target is missing, has one value only, or does not go with the task.

    Notes
    -----
    O(n d) time, memory of a block and of the different strings of the columns.
    """
    target, weight = columns.target, columns.weight
    table.need([target], ", which is to be predicted")
    table.need([*([weight] if weight else []), *columns.drop, *columns.category], "")
    table = table.with_categories([n for n in columns.category if n != target])
    if table.kinds[target] not in ("number", "boolean", "text"):
        raise InvalidInputError(
            f"The target {target!r} has the type {table.kinds[target]}: numbers or text are needed."
        )
    if weight is not None and table.kinds[weight] != "number":
        raise InvalidInputError(f"The weight {weight!r} holds {table.kinds[weight]}, not numbers.")
    if target == weight or target in columns.drop:
        raise InvalidInputError(f"The target {target!r} cannot be dropped or be the weight.")
    others = {n: k for n, k in table.kinds.items() if n not in (target, weight, *columns.drop)}
    features = [name for name, kind in others.items() if kind in SCANNED]
    dropped = {n: f"its type is {kind}" for n, kind in others.items() if n not in features}
    if not features:
        raise InvalidInputError(
            f"{table.path} has no column to learn from besides the target {target!r}."
        )
    facts = _Facts(table, target, features)
    try:
        for block in table.scan(target, features, weight).blocks():
            facts.add(block)
    except InvalidInputError as error:
        if facts.rows or table.known(target).any():
            raise
        text = f"No row of {table.path} has a target: the column {target!r} is empty."
        raise InvalidInputError(text) from error
    dropped |= facts.check()
    used = tuple(name for name in features if name not in dropped)
    if not used:
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in dropped.items())
        raise InvalidInputError(f"No column is left to learn from: {reasons}.")
    task, reason = _task(columns.task, facts)
    _check_labels(target, facts, task)
    labels = facts.labels if task == "classification" else None
    types, without = {target: facts.type(task)}, len(table.known(target)) - facts.rows
    chosen = (table, target, weight, used, dropped)
    return Inspection(*chosen, facts.rows, task, reason, labels, types, without)


class _Facts:
    """What is counted block by block."""

    def __init__(self, table: Table, target: str, features: list[str]) -> None:
        self.table, self.target = table, target
        self.numbers = [n for n in features if table.kinds[n] != "text"]
        self.texts = [n for n in features if n not in self.numbers]
        self.rows = 0
        self.present = dict.fromkeys(features, 0)
        self.labels: Counter[Any] | None = Counter()
        self.whole = True
        self.dtype = "f"

    def add(self, block: Any) -> None:
        """Look at rows."""
        check_rows(block)
        self.rows += len(block)
        counts = np.isfinite(block.numbers).sum(axis=0)
        for name, count in zip(self.numbers, counts.tolist(), strict=True):
            self.present[name] += count
        for name, column in zip(self.texts, block.texts, strict=True):
            self.present[name] += int(np.sum(column.codes >= 0))
        y = block.target
        self.dtype = y.dtype.kind
        if self.dtype == "f":
            self.whole = self.whole and bool(np.all(y == np.floor(y)))
        if self.labels is not None:
            self.labels.update(y.tolist())
            self.labels = self.labels if len(self.labels) <= _MANY else None

    def check(self) -> dict[str, str]:
        """Return the columns that cannot be used, and why."""
        empty = [name for name, count in self.present.items() if count == 0]
        nameless = {name for name in empty if _NAMELESS.fullmatch(name)}
        reasons = "all its values are missing", "it has neither a name nor values"
        return {name: reasons[name in nameless] for name in empty}

    def type(self, task: str) -> str:
        """Return how the target is to be read from CSV."""
        if self.dtype not in "biuf":
            return "text"
        whole = self.target in self.table.integers and task == "classification"
        return "integer" if whole and self.whole else "number"


def _task(task: str, facts: _Facts) -> tuple[str, str]:
    words = facts.dtype not in "biuf"
    if task != "auto":
        if task == "regression" and words:
            raise InvalidInputError(
                f"--task regression needs numbers, but the target {facts.target!r} holds text."
            )
        return task, "as asked"
    if words:
        if facts.labels is None or len(facts.labels) > _MANY_TEXTS:
            n = f"more than {_MANY}" if facts.labels is None else str(len(facts.labels))
            raise InvalidInputError(
                f"The target {facts.target!r} holds {n} different texts, as names or notes do: "
                "give --task classification if they are classes, or another --target."
            )
        return "classification", "text"
    if facts.dtype == "b":
        return "classification", "true or false"
    if facts.labels is not None and facts.whole and len(facts.labels) <= FEW:
        return "classification", f"{len(facts.labels)} different whole numbers"
    return "regression", "numbers"


def _check_labels(target: str, facts: _Facts, task: str) -> None:
    classes, labels = task == "classification", facts.labels
    problem = None
    if classes and labels is None:
        problem = (
            f"more than {_MANY} different values, too many for classes: give --task regression, or "
            "another --target."
        )
    elif classes and not facts.whole:
        problem = "fractions, so it is not a class: give --task regression."
    elif classes and any(isinstance(x, float) and abs(x) >= 2**53 for x in labels or ()):
        problem = (
            "whole numbers of more than 15 digits, which numbers cannot distinguish: write "
            "them as text, with a letter in front."
        )
    elif labels is not None and len(labels) < 2:
        problem = (
            f"one {'class' if classes else 'value'} only, {next(iter(labels))!r}: there is nothing "
            "to learn. Give rows of at least two, or another --target."
        )
    if problem is not None:
        raise InvalidInputError(f"The target {target!r} has {problem}")
