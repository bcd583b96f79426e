"""`lssvm predict --check`: whether new rows are like those that a model has learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lssvm._core.arrays import FloatArray, is_sparse
from lssvm.cli.models import as_given, last_step, learned, prepared_table
from lssvm.data.encodings import NumberEncoding
from lssvm.data.preparation import PreparedTable
from lssvm.kernels import RBF, Exponential, Kernel, Laplacian, Matern

if TYPE_CHECKING:
    from lssvm.cli.models import Model

_SOME = 2000  # rows of a basis whose neighbours are looked for
_SHIFT = 0.5  # standard deviations that a mean may differ by, and three of its own
_FAR = 2.0  # times the distance of the loneliest row of training to its neighbour
_SHOWN = 5


@dataclass
class RowCheck:
    """Counts what is unlike the training rows, block by block.

    Parameters
    ----------
    model : fitted model
    """

    model: Model

    def __post_init__(self) -> None:
        self.rows = self.far = 0
        self.first_far: int | None = None
        self.unseen: dict[str, Counter[str]] = {}
        self._sums, self._counts = Counter[str](), Counter[str]()
        self._prepared = prepared_table(self.model)
        self._nearest = nearest_of(self.model)

    def add(self, block: Any) -> None:
        """Look at a block of raw rows."""
        if self._prepared is not None:
            self._add_table(self._prepared, block.table)
        if self._nearest is not None:
            far = self._nearest(as_given(self.model, block))
            if self.first_far is None and far.any():
                self.first_far = self.rows + int(np.flatnonzero(far)[0])
            self.far += int(far.sum())
        self.rows += len(block)

    def _add_table(self, prepared: PreparedTable, columns: Any) -> None:
        table = prepared.read(columns)
        for name, levels in prepared.unseen(table).items():
            self._new(name, levels)
        X = prepared.transform(table)
        at = 0
        for column, raw in zip(
            [c for c in prepared.columns if c.encoding is not None], table.columns, strict=True
        ):
            if isinstance(column.encoding, NumberEncoding):
                values = np.where(raw.missing, np.nan, X[:, at])
                self._count((column.name,), values[:, None])
            at += column.width

    def _count(self, names: tuple[str, ...], Z: FloatArray) -> None:
        there = np.isfinite(Z)
        for counter, values in ((self._sums, np.where(there, Z, 0.0)), (self._counts, there)):
            counter.update(dict(zip(names, values.sum(axis=0).tolist(), strict=True)))

    def _new(self, name: str, levels: Mapping[str, int]) -> None:
        if levels:
            self.unseen.setdefault(name, Counter()).update(levels)

    @property
    def shifted(self) -> dict[str, float]:
        """Columns of numbers whose mean differs from that of training, in deviations."""
        means = {n: self._sums[n] / c for n, c in self._counts.items() if c}
        limits = {n: _SHIFT + 3.0 / np.sqrt(self._counts[n]) for n in means}
        return {name: mean for name, mean in means.items() if abs(mean) > limits[name]}

    def result(self) -> dict[str, Any]:
        """Return what was found, in types that JSON knows."""
        return {
            "unseen_categories": {name: dict(found) for name, found in self.unseen.items()},
            "shifted_columns": self.shifted,
            "far_rows": self.far if self._nearest is not None else None,
            "first_far_row": self.first_far,
        }

    def lines(self) -> list[str]:
        """Say what was found, a line each."""
        said = []
        for name, found in self.unseen.items():
            some = ", ".join(repr(level) for level, _ in found.most_common(_SHOWN))
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            said.append(
                f"column {name!r} has categories that training has not seen, in "
                f"{found.total():,} rows: {some}{more}"
            )
        for name, mean in self.shifted.items():
            way = "above" if mean > 0 else "below"
            said.append(
                f"column {name!r} is shifted: its mean is {abs(mean):.1f} standard deviations "
                f"{way} that of training"
            )
        if self.far:
            said.append(
                f"{self.far:,} of {self.rows:,} rows are far from all training rows (the first is "
                f"row {(self.first_far or 0) + 1}): their predictions are guesses"
            )
        return said or ["the rows are like those of training"]


def _spread(kernel: Kernel, X: Any, Z: Any, itself: bool = False) -> FloatArray:
    """Return minus the logarithm of the largest kernel value of each row, shape (n,)."""
    K = np.asarray(kernel(X, Z), dtype=np.float64)
    if itself:
        np.fill_diagonal(K, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(K.max(axis=1)))


def _limit(kernel: Kernel, Z: Any) -> float:
    """Return how far a row may be from the rows Z: twice as far as they are from each other."""
    some = Z[:: max(1, len(Z) // _SOME)]
    alone = _spread(kernel, some, some, itself=True) if len(some) > 1 else np.zeros(1)
    alone = alone[np.isfinite(alone)]
    power = 2.0 if isinstance(kernel, RBF) else 1.0  # of the distance in the exponent
    return float(_FAR**power * alone.max()) if len(alone) else np.inf


def nearest_of(model: Model) -> Callable[[Any], Any] | None:
    """Return what says of rows, as the model takes them, whether they are far from its basis.

    None where the kernel is no distance. The largest kernel value of a row with any row of the
    basis is what a prediction computes anyway.
    """
    own: Any = last_step(model)
    local = own.record_.local_members  # they keep all rows; prototypes are some of them
    # Quantiles end where the training rows end: only the others show what is beyond.
    open_ones = [one for one in local if one.scaling != "quantiles"]
    member = max(open_ones or local, key=lambda one: one.weight)
    leaves, tree = member.leaves(), member.trees[0]
    if not isinstance(leaves[0].kernel, RBF | Exponential | Laplacian | Matern):
        return None
    rows_of = [leaf.basis.toarray() if is_sparse(leaf.basis) else leaf.basis for leaf in leaves]
    limits = [_limit(leaf.kernel, Z) for leaf, Z in zip(leaves, rows_of, strict=True)]

    def far(given: Any) -> Any:
        X = given if own is model else model[:-1].transform(given)  # type: ignore[index]
        if "preparations_" in learned(own):
            X = own.preparations_[member.scaling].transform(X)
        elif "preparation_" in learned(own):
            X = own.preparation_.transform(X)
        mapped = member.metric.apply(np.asarray(X, dtype=np.float64))
        leaf_of = np.zeros(len(mapped), dtype=np.intp) if tree is None else tree.route(mapped)
        found = np.zeros(len(mapped), dtype=bool)
        for number in np.unique(leaf_of):
            rows = np.flatnonzero(leaf_of == number)
            spread = _spread(leaves[number].kernel, mapped[rows], rows_of[number])
            found[rows] = spread > limits[number]
        return found

    return far
