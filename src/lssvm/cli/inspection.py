"""A first look at a data set: what can be learned from it, and what stands in the way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm.cli.holding_out import HoldOut
from lssvm.cli.options import Columns
from lssvm.cli.tables import Table, short_list
from lssvm.data import Scan
from lssvm.data.raw import check_rows

FEW = 20  # different whole numbers up to which a target is taken for classes
_MANY = 1000  # different values up to which a target is counted
_MANY_TEXTS = 100  # different texts beyond which somebody has to say that they are classes
_NAMELESS = re.compile(r"column \d+")
TASKS = ("auto", "classification", "regression")


@dataclass(frozen=True)
class Inspection:
    """What a pass over a data set has found.

    Attributes
    ----------
    table : Table
    target : str
    weight : str or None
    features : tuple of str
        The columns to learn from.
    left_out : mapping from str to str
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
        Rows without a target, which are left out.
    max_categories : int
        Most different strings of a column of text.
    """

    table: Table
    target: str
    weight: str | None
    features: tuple[str, ...]
    left_out: Mapping[str, str]
    n_rows: int
    task: str
    reason: str
    labels: Mapping[Any, int] | None
    types: Mapping[str, str]
    without: int
    max_categories: int

    @property
    def classes(self) -> bool:
        """Whether classes are predicted."""
        return self.task == "classification"

    def scan(self) -> Scan:
        """Return the data set with these columns."""
        return self.table.scan(
            self.target, self.features, self.weight, self.types, max_categories=self.max_categories
        )

    def rule(
        self, share: float, seed: int, group: str | None = None, time: str | None = None
    ) -> HoldOut:
        """Return the rule by which rows are held out: by group or time, else by class."""
        if group is not None or time is not None:
            return HoldOut(share, seed, "time" if group is None else "group", group or time)
        return HoldOut(share, seed, *(("class", self.target) if self.classes else ()))

    def told(self) -> str:
        """Return the line that says what was detected."""
        into = "" if self.labels is None else f" into {len(self.labels)} classes"
        return (
            f"{self.task} of {self.target!r}{into} ({self.reason}), {self.n_rows:,} rows, "
            f"{len(self.features)} columns"
        )


def inspect_table(table: Table, columns: Columns, anything: bool = False) -> Inspection:
    """Pass once over a data set.

    Parameters
    ----------
    table : Table
    columns : Columns
    anything : bool, default=False
        Whether the model takes dates, and text of any number of different strings.

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
    if columns.task not in TASKS:
        raise InvalidInputError(f"--task {columns.task} is not known: give {', '.join(TASKS)}.")
    table.need([target], ", which is to be predicted")
    table.need([*([weight] if weight else []), *columns.drop, *columns.category], "")
    dates = [name for name in table.dates if anything and name not in (target, weight)]
    table = table.with_categories([*(n for n in columns.category if n != target), *dates])
    most = 2**31 if anything else columns.max_categories
    if table.kinds[target] not in ("number", "text"):
        raise InvalidInputError(
            f"The target {target!r} has the type {table.kinds[target]}: numbers or text are needed."
        )
    if weight is not None and table.kinds[weight] != "number":
        raise InvalidInputError(f"The weight {weight!r} holds {table.kinds[weight]}, not numbers.")
    if target == weight or target in columns.drop:
        raise InvalidInputError(f"The target {target!r} cannot be dropped or be the weight.")
    others = {n: k for n, k in table.kinds.items() if n not in (target, weight, *columns.drop)}
    features = [name for name, kind in others.items() if kind in ("number", "text")]
    left_out = {
        n: "it holds dates (the table model keeps it: --model table)"
        if n in table.dates
        else f"its type is {kind}"
        for n, kind in others.items()
        if n not in features
    }
    if not features:
        raise InvalidInputError(
            f"{table.path} has no column to learn from beside the target {target!r}."
        )
    facts = _Facts(table, target, features, most)
    try:
        for block in table.scan(target, features, weight).blocks():
            facts.add(block)
    except InvalidInputError as error:
        if facts.rows or table.known(target).any():
            raise
        text = f"No row of {table.path} has a target: the column {target!r} is empty."
        raise InvalidInputError(text) from error
    left_out |= facts.check()
    kept = tuple(name for name in features if name not in left_out)
    if not kept:
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in left_out.items())
        raise InvalidInputError(f"No column is left to learn from: {reasons}.")
    task, reason = _task(columns.task, facts)
    _check_labels(target, facts, task)
    labels = facts.labels if task == "classification" else None
    types, without = {target: facts.type(task)}, len(table.known(target)) - facts.rows
    chosen = (table, target, weight, kept, left_out)
    return Inspection(*chosen, facts.rows, task, reason, labels, types, without, most)


class _Facts:
    """What is counted block by block."""

    def __init__(self, table: Table, target: str, features: list[str], most: int) -> None:
        self.table, self.target, self.most = table, target, most
        self.numbers = [n for n in features if table.kinds[n] == "number"]
        self.strings: dict[str, set[str]] = {n: set() for n in features if n not in self.numbers}
        self.rows = 0
        self.present = dict.fromkeys(features, 0)
        self.labels: Counter[Any] | None = Counter()
        self.whole = True
        self.dtype = "f"

    def add(self, block: Any) -> None:
        """Look at rows."""
        check_rows(block)
        self.rows += len(block)
        infinite = np.isinf(block.numbers)
        if infinite.any():
            row, column = (int(i[0]) for i in np.nonzero(infinite))
            raise InvalidInputError(
                f"Column {self.numbers[column]!r} has an infinite value in {block.place(row)}: "
                "replace it by a number, or leave the column out with --drop."
            )
        counts = np.isfinite(block.numbers).sum(axis=0)
        for name, count in zip(self.numbers, counts.tolist(), strict=True):
            self.present[name] += count
        for (name, strings), column in zip(self.strings.items(), block.texts, strict=True):
            known = column.codes[column.codes >= 0]
            self.present[name] += len(known)
            if len(strings) <= min(self.most, _MANY):
                strings.update(column.levels[code] for code in np.unique(known))
        y = block.target
        self.dtype = y.dtype.kind
        if self.dtype == "f":
            self.whole = self.whole and bool(np.all(y == np.floor(y)))
        if self.labels is not None:
            self.labels.update(y.tolist())
            self.labels = self.labels if len(self.labels) <= _MANY else None

    def check(self) -> dict[str, str]:
        """Return the columns that cannot be used; raise for those without a value."""
        empty = [name for name, count in self.present.items() if count == 0]
        nameless = [name for name in empty if _NAMELESS.fullmatch(name)]
        named = [name for name in empty if name not in nameless]
        if named:
            raise InvalidInputError(
                f"{self.table.path} has columns without a single value: {short_list(named)}. Leave "
                f"them out with --drop, as in --drop {named[0]}."
            )
        many = (
            f"text with more than {self.most} different strings (keep it with --max-categories "
            "N, or with --model table, which takes any)"
        )
        return {
            **dict.fromkeys(nameless, "it has neither a name nor values"),
            **{name: many for name, strings in self.strings.items() if len(strings) > self.most},
        }

    def type(self, task: str) -> str:
        """Return how the target is to be read from CSV."""
        if self.dtype not in "biuf":
            return "text"
        whole = self.target in self.table.integers and task == "classification"
        return "integer" if whole and self.whole else "number"


def _task(asked: str, facts: _Facts) -> tuple[str, str]:
    words = facts.dtype not in "biuf"
    if asked != "auto":
        if asked == "regression" and words:
            raise InvalidInputError(
                f"--task regression needs numbers, but the target {facts.target!r} holds text."
            )
        return asked, "as asked"
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
        problem = "fractions, so it is no class: give --task regression."
    elif classes and any(isinstance(x, float) and abs(x) >= 2**53 for x in labels or ()):
        problem = (
            "whole numbers of more than 15 digits, which cannot be told apart as numbers: write "
            "them as text, with a letter in front."
        )
    elif labels is not None and len(labels) < 2:
        problem = (
            f"one {'class' if classes else 'value'} only, {next(iter(labels))!r}: there is nothing "
            "to learn. Give rows of at least two, or another --target."
        )
    if problem is not None:
        raise InvalidInputError(f"The target {target!r} has {problem}")
