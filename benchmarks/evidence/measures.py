"""What is measured: errors, calibration, intervals, time, size. Plain functions of arrays."""

from __future__ import annotations

import io
import pickle
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
T = TypeVar("T")

BINS = 15
"""Bins of equal width for the calibration error."""


def error_of_classes(truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return the share of wrong classes in per cent."""
    return 100.0 * float(np.mean(truth != predicted))


def error_of_numbers(truth: Array, predicted: Array) -> float:
    """Return 100 (1 - R2)."""
    return 100.0 * float(np.sum((truth - predicted) ** 2) / np.sum((truth - truth.mean()) ** 2))


def log_loss(codes: NDArray[np.intp], probabilities: Array) -> float:
    """Return the mean of -log p(true class); a class that training had not (-1) has p = 1e-15."""
    there = codes >= 0
    p = np.where(there, probabilities[np.arange(len(codes)), np.where(there, codes, 0)], 0.0)
    return float(-np.mean(np.log(np.clip(p, 1e-15, 1.0))))


def area_above_curve(codes: NDArray[np.intp], probabilities: Array) -> float:
    """Return one minus the area under the ROC curve of the second of two classes."""
    from sklearn.metrics import roc_auc_score

    return 1.0 - float(roc_auc_score(codes == 1, probabilities[:, 1]))


def calibration_error(codes: NDArray[np.intp], probabilities: Array, bins: int = BINS) -> float:
    """Return the expected calibration error of the most likely class.

    Rows are put into bins of equal width by the largest probability; the error is the mean, over
    rows, of the distance between the mean of these probabilities and the share of right classes in
    the row's bin.
    """
    sure = probabilities.max(axis=1)
    right = (probabilities.argmax(axis=1) == codes).astype(float)
    place = np.minimum((sure * bins).astype(int), bins - 1)
    gap = np.bincount(place, sure - right, minlength=bins)
    return float(np.abs(gap).sum() / len(codes))


def coverage(truth: Array, low: Array, high: Array) -> float:
    """Return the share of truths inside their intervals."""
    return float(np.mean((truth >= low) & (truth <= high)))


def timed(work: Callable[[], T]) -> tuple[T, float, float]:
    """Return the result, wall seconds and processor seconds of this process (all its threads)."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = work()
    return value, time.perf_counter() - wall, time.process_time() - cpu


def one_row_seconds(predict: Callable[[Any], Any], row: Any, repeats: int = 20) -> float:
    """Return the median wall seconds of predicting one row, after a warm-up."""
    predict(row)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        predict(row)
        times.append(time.perf_counter() - start)
        if sum(times) > 2.0:
            break
    return float(np.median(times))


def stored_bytes(model: object) -> int | None:
    """Return the size of the pickled model, None where it cannot be pickled."""
    counted = _Counter()
    try:
        pickle.dump(model, counted, protocol=5)
    except Exception:  # a peer may raise anything here
        return None
    return counted.size


class _Counter(io.RawIOBase):
    """A file that counts bytes and keeps none."""

    size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        size = len(memoryview(data).cast("B")) if not isinstance(data, bytes) else len(data)
        self.size += size
        return size


def peak_megabytes() -> float:
    """Return the largest resident memory that this process has had."""
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3 / 1.024)
