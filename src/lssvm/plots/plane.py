"""The plane of two features: its grid, its rows, and the class scores over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError

PADDING = 0.06  # of the range of the rows, on every side


@dataclass(frozen=True)
class Plane:
    """A grid over two features of a data set; the other features are held at their means.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
        The rows of the data set in the plane.
    names : (str, str)
        Names of the two features.
    grid : (ndarray of shape (r, r), ndarray of shape (r, r))
        Coordinates of the grid.
    rows : ndarray or DataFrame of shape (r^2, d)
        The grid as rows of the data set, in the container the data came in.

    Examples
    --------
    >>> from lssvm.plots.plane import Plane
    >>> plane = Plane.of([[0.0, 5.0, 1.0], [1.0, 7.0, 2.0]], (2, 0), 3)
    >>> plane.names, plane.rows[0]
    (('feature 2', 'feature 0'), array([-0.06,  6.  ,  0.94]))
    """

    points: FloatArray
    names: tuple[str, str]
    grid: tuple[FloatArray, FloatArray]
    rows: Any

    @classmethod
    def of(cls, X: Any, features: tuple[int | str, int | str] | None, resolution: int) -> Plane:
        """Lay a grid of ``resolution`` points in each direction over two features of X."""
        if resolution < 2:
            raise InvalidInputError(f"grid_resolution={resolution!r}: give a whole number >= 2.")
        columns = list(getattr(X, "columns", ()))
        data = _numbers(X)
        first, second = _two_features(features, columns, data.shape[1])
        points = data[:, [first, second]]
        low, high = points.min(axis=0), points.max(axis=0)
        padding = PADDING * np.where(high > low, high - low, 1.0)
        ends = np.linspace(low - padding, high + padding, resolution)  # (r, 2)
        xx, yy = np.meshgrid(ends[:, 0], ends[:, 1])
        rows = np.tile(data.mean(axis=0), (resolution**2, 1))
        rows[:, first], rows[:, second] = xx.ravel(), yy.ravel()
        x, y = (str(columns[i]) if columns else f"feature {i}" for i in (first, second))
        # an estimator fitted on named columns wants to see them again
        table = type(X)(dict(zip(columns, rows.T, strict=True))) if columns else rows
        return cls(points, (x, y), (xx, yy), table)


def class_scores(decision: ArrayLike, shape: tuple[int, int]) -> FloatArray:
    """Return the scores of all classes on the grid, shape (r, r, n_classes).

    Parameters
    ----------
    decision : array-like of shape (r^2,) or (r^2, n_classes)
        What ``decision_function`` gave: one column means two classes with scores -f and f.
    shape : (int, int)
        Shape of the grid.

    Examples
    --------
    >>> from lssvm.plots.plane import class_scores
    >>> class_scores([1.0, 2.0], (1, 2))
    array([[[-1.,  1.],
            [-2.,  2.]]])
    """
    f = np.asarray(decision, dtype=np.float64)
    if f.ndim == 1 or f.shape[1] == 1:
        f = np.column_stack([-f.ravel(), f.ravel()])
    return f.reshape(*shape, f.shape[1])


def _numbers(X: Any) -> FloatArray:
    try:
        data = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            "X has entries that are not numbers, and a plane needs two numerical features: encode "
            "X first and fit the model on the encoded columns."
        ) from error
    if data.ndim != 2 or len(data) == 0 or not np.isfinite(data).all():
        raise InvalidInputError(
            f"X has shape {data.shape} and {np.count_nonzero(~np.isfinite(data))} entries that "
            "are not finite: give the (n, d) training data, n >= 1, without missing values."
        )
    return data


def _two_features(
    features: tuple[int | str, int | str] | None, columns: list[Any], d: int
) -> tuple[int, int]:
    """Return the positions of the two features."""
    if d < 2:
        raise InvalidInputError(f"X has {d} feature and a plane needs two: add a feature.")
    if features is None and d > 2:
        raise InvalidInputError(
            f"X has {d} features and a plane shows two: name them with features=(i, j); the other "
            "ones are then held at their means."
        )
    features = (0, 1) if features is None else features
    if isinstance(features, str) or len(features) != 2:
        raise InvalidInputError(f"features={features!r}: give a pair (i, j), as a tuple.")
    positions = [columns.index(name) if name in columns else name for name in features]
    if any(isinstance(i, bool) or i not in range(d) for i in positions):
        known = f"a name from {columns} or " if columns else ""
        raise InvalidInputError(
            f"features={features!r} is not in X: give {known}a position from 0 to {d - 1} for each."
        )
    first, second = (int(i) for i in positions)
    if first == second:
        raise InvalidInputError(f"features={features!r} names one feature twice: give two.")
    return first, second
