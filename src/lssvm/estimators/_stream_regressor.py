"""What `FixedSizeLSSVR` does with rows that are read in blocks."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.memory import peak_memory
from lssvm._core.progress import Progress
from lssvm.criteria.fixed_stream import StreamRows
from lssvm.criteria.losses import Criterion
from lssvm.criteria.row_losses import AbsoluteRows, StoredScores
from lssvm.data.raw import RawBlock
from lssvm.data.scanning import is_stream
from lssvm.estimators._stream_score import spread, summed
from lssvm.estimators.fixed_stream import (
    StreamUpdate,
    first_pass,
    sample_rows,
    stream_problem,
    update_rows,
)


class StreamedRegressor:
    """Mixed into the regressor: fit, update and score from a scan."""

    dual_coef_: FloatArray
    loss: str
    verbose: int
    scoring: Any
    _in_memory: Any
    _scored: Any
    _fit_problem: Any

    def _fit_stream(self, data: Any, y: Any, sample_weight: Any) -> None:
        data, found = first_pass(self, data, y, sample_weight, classes=False)
        X, target, weight = sample_rows(found)
        Y = _targets(found.sample)
        sample = self._in_memory(X, Y[:, 0] if target.ndim == 1 else Y, weight, np.arange(len(X)))
        rows = StreamRows(
            data, found.preparation, _encode, Y.shape[1], on_event=Progress(int(self.verbose))
        )
        loss: Any = None if self.loss == "squared" else AbsoluteRows()
        if self.scoring is not None:
            loss = StoredScores(self._scorer)
        self._single = target.ndim == 1
        self._fit_problem(stream_problem(self, sample, found, rows, None, loss))
        self.peak_memory_ = peak_memory()

    def _scorer(self, Y: FloatArray, labels: Any, weight: FloatArray | None) -> Criterion:
        rows = np.arange(len(Y))[:, None]  # a scorer sees row numbers in place of features
        return self._scored(rows, Y, weight)  # type: ignore[no-any-return]

    def _stream_update(self, X: Any, y: Any, sample_weight: Any) -> StreamUpdate:
        """Return rows to add or remove."""
        data, preparation = update_rows(self, X, y, sample_weight)
        k = self.dual_coef_.shape[1]
        rows = StreamRows(data, preparation, partial(_encode_known, n_outputs=k), k)
        return StreamUpdate(rows, None, 0)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R^2.

        Parameters
        ----------
        X : array-like of shape (n, d), Scan, RowSource, Dask array or data frame
            A scan brings its own target and weights.
        y : array-like of shape (n,) or (n, n_outputs)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        if is_stream(X):
            check_is_fitted(self)
            found = summed(self, X, y, sample_weight, spread, operator.add)
            return float(found.r_squared())
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]


def _targets(block: RawBlock) -> FloatArray:
    assert block.target is not None
    if block.target.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"The target holds text in {block.place(0)}, but a regression needs numbers: use "
            "FixedSizeLSSVC for labels."
        )
    return np.asarray(block.target, dtype=np.float64).reshape(len(block), -1)


def _encode(block: RawBlock) -> tuple[FloatArray, IntArray]:
    return _targets(block), np.zeros(len(block), dtype=np.intp)


def _encode_known(block: RawBlock, n_outputs: int) -> tuple[FloatArray, IntArray]:
    Y, labels = _encode(block)
    if Y.shape[1] != n_outputs:
        raise InvalidInputError(
            f"y has {Y.shape[1]} outputs but the model was fitted with {n_outputs}: give as many."
        )
    return Y, labels
