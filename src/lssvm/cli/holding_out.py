"""Which rows are held out of the training: by class, by group or by time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.random import hash_positions
from lssvm.cli.tables import Table
from lssvm.data import Scan

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

    def told(self) -> str:
        """Say which rows these are."""
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
    >>> from lssvm.cli.holding_out import stratified
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
            found = values.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        plain = found if kind == pa.float64() else found.cast(pa.int64(), safe=False)
        return np.asarray(plain, dtype=np.float64)
    raise InvalidInputError(
        f"--time {name} holds {values.type}, such as {values[0].as_py()!r}: numbers or dates like "
        "2024-12-31 or 2024-12-31T23:59:59 are needed."
    )
