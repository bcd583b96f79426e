"""What `FixedSizeLSSVC` does with rows that are read in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.memory import peak_memory
from lssvm._core.namespace import get_namespace
from lssvm._core.progress import Progress
from lssvm.codes import Code, decode
from lssvm.criteria.fixed_stream import StreamRows
from lssvm.criteria.losses import Criterion
from lssvm.criteria.row_losses import StoredScores, WrongRows
from lssvm.data.raw import RawBlock
from lssvm.data.scanning import is_stream
from lssvm.estimators._scoring import ScorerCriterion
from lssvm.estimators._stream_score import hits, summed
from lssvm.estimators._validation import class_numbers, distinct_values
from lssvm.estimators.fixed_stream import (
    StreamUpdate,
    first_pass,
    sample_rows,
    stream_problem,
    update_rows,
)
from lssvm.moments.cells import ClassTable


@dataclass(frozen=True, eq=False)
class Decide:
    """From outputs (t, k) to class numbers (t,); small, so that it can be sent to workers."""

    code: Code
    decoding: str | None

    def __call__(self, raw: Any) -> Any:
        xp = get_namespace(raw)  # tuning may have the outputs on a device
        if len(self.code.matrix) == 2:
            return xp.astype(raw[:, 0] * float(self.code.matrix[1, 0]) > 0, xp.int64)
        return xp.argmax(decode(self.code, raw, self.decoding), axis=1)


@dataclass(frozen=True, eq=False)
class Encode:
    """From the labels of a block to targets and class numbers."""

    classes: NDArray[Any]
    targets: FloatArray

    def __call__(self, block: RawBlock) -> tuple[FloatArray, IntArray]:
        labels = known_numbers(block.target, self.classes, f" in the block of {block.place(0)}")
        return self.targets[labels], labels


def known_numbers(y: Any, classes: NDArray[Any], where: str = "") -> Any:
    """Return class numbers; raise for labels that the model has not seen."""
    unseen = np.setdiff1d(distinct_values(y), classes)
    if len(unseen):
        raise InvalidInputError(
            f"y has labels {unseen.tolist()}{where} that the model has not seen; it knows "
            f"{classes.tolist()}. Leave those rows out, or fit again with all classes."
        )
    return class_numbers(classes, y)


class StreamedClassifier:
    """Mixed into the classifier: fit, update and score from a scan."""

    classes_: NDArray[Any]
    code_: Code
    decoding: str | None
    scoring: Any
    verbose: int
    _set_classes: Any
    _problem: Any
    _fit_problem: Any
    _table: Any
    _splits_classes: Any
    _finish: Any

    def _fit_stream(self, data: Any, y: Any, sample_weight: Any) -> None:
        data, found = first_pass(self, data, y, sample_weight, classes=True)
        assert found.classes is not None and found.counts is not None
        self._set_classes(found.classes)
        X, target, weight = sample_rows(found)
        labels = np.searchsorted(self.classes_, target).astype(np.intp)
        sample = self._problem((X, target), X, target, labels, weight, np.arange(len(X)))
        table, rows = self._stream_rows(data, found.preparation, found.counts)
        loss = (
            WrongRows(Decide(self.code_, self.decoding))
            if self.scoring is None
            else StoredScores(self._scorer)
        )
        self._fit_problem(stream_problem(self, sample, found, rows, table, loss))
        self.peak_memory_ = peak_memory()

    def _stream_rows(
        self, data: Any, preparation: Any, counts: FloatArray
    ) -> tuple[ClassTable | None, StreamRows]:
        """Return the class table, where classes are kept apart, and the rows of a pass."""
        table = self._table(np.empty(0, dtype=np.intp), counts)
        encode = Encode(self.classes_, table.targets)
        k, told = table.targets.shape[1], Progress(int(self.verbose))
        if self._splits_classes():
            return table, StreamRows(data, preparation, encode, k, on_event=told)
        factors = table.factors if np.any(table.factors != 1.0) else None
        return None, StreamRows(data, preparation, encode, k, factors, told)

    def _scorer(self, Y: FloatArray, labels: IntArray, weight: FloatArray | None) -> Criterion:
        rows = np.arange(len(labels))[:, None]  # a scorer sees row numbers in place of features
        y = self.classes_[labels]
        return ScorerCriterion(self.scoring, rows, y, self._finish, self.classes_, weight)

    def _stream_update(self, X: Any, y: Any, sample_weight: Any) -> StreamUpdate:
        """Return rows to add or remove."""
        data, preparation = update_rows(self, X, y, sample_weight)
        counts = np.ones(len(self.classes_))  # targets of classes follow from all moments
        table, rows = self._stream_rows(data, preparation, counts)
        return StreamUpdate(rows, table, 0 if table is None else len(self.classes_))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy.

        Parameters
        ----------
        X : array-like of shape (n, d), Scan, RowSource, Dask array or data frame
            A scan brings its own target and weights.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        if is_stream(X):
            check_is_fitted(self)
            right, total = summed(self, X, y, sample_weight, hits, np.add)
            return float(right / total)
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]
