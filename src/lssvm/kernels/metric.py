r"""The metric of the inputs: a linear map A, so that a kernel sees :math:`(x A, z A)`.

A is learned from gradients of a fitted model f: features, or directions, along which f does not
change are shortened, those along which it does are stretched. With the average outer product of
gradients

.. math::

    M = \frac{1}{n} \sum_i \sum_j \nabla f_j(x_i) \nabla f_j(x_i)^T

and :math:`A A^T = M` the distance becomes :math:`(x - z)^T M (x - z)` (recursive feature machines,
[Radhakrishnan2024]_).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from lssvm._core.arrays import (
    Device,
    FloatArray,
    IntArray,
    device,
    get_namespace,
    is_foreign,
    is_sparse,
)
from lssvm._core.blocks import run_blocks, slices
from lssvm._core.errors import InvalidInputError, not_known
from lssvm.kernels.base import Kernel
from lssvm.kernels.radial import RBF, Laplacian, distances, ordered_sums
from lssvm.kernels.warp import SquaredSlopes, Warp

Shape: TypeAlias = Literal["diagonal", "full"]

_ENTRIES = 2**22  # numbers of a block of gradients
_OUTPUTS = 8  # beyond which slopes are those of random sums of outputs


@dataclass(frozen=True, eq=False)
class Metric:
    """A linear map of the inputs.

    Attributes
    ----------
    map : array of shape (d, r), (d,) or None
        A, or its diagonal; None leaves the inputs unchanged. r is d, or the rank of M where that is
        far smaller.
    warp : Warp or None
        A monotone map of every feature that comes first.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Metric
    >>> Metric(np.array([1.0, 0.0])).apply(np.array([[3.0, 4.0]]))
    array([[3., 0.]])
    >>> Metric().apply(np.ones((1, 2)))
    array([[1., 1.]])
    """

    map: FloatArray | None = None
    warp: Warp | None = None

    @property
    def by_feature(self) -> bool:
        """Whether every feature is mapped by itself."""
        return self.map is None or self.map.ndim == 1

    @classmethod
    def of(cls, M: FloatArray) -> Metric:
        """Return the map of a matrix M (d, d) or of its diagonal (d,), scaled to mean diagonal 1.

        A matrix of zeros (nothing changes the output) gives the identity.

        Parameters
        ----------
        M : array of shape (d, d) or (d,)
            Symmetric and positive semi-definite, or its diagonal.
        """
        diagonal = M if M.ndim == 1 else M.diagonal()
        mean = float(diagonal.mean()) if len(diagonal) else 0.0
        if not mean > 0.0 or not np.isfinite(mean):
            return cls()
        if M.ndim == 1:
            return cls(np.sqrt(np.maximum(M / mean, 0.0)))
        values, vectors = np.linalg.eigh(M / mean)
        root = np.sqrt(np.maximum(values, 0.0))
        return cls(np.asarray((vectors * root) @ vectors.T))

    def apply(self, X: FloatArray) -> FloatArray:
        """Return x A for every row of X (n, d).

        Parameters
        ----------
        X : array of shape (n, d)
            Rows.
        """
        if self.warp is not None:
            X = self.warp.apply(X)
        if self.map is None:
            return X
        return np.asarray(X * self.map if self.map.ndim == 1 else X @ self.map)

    def map_rows(self, X: Any) -> Any:
        """Return x A for rows of any array library, in its own type, or sparse rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Rows.
        """
        if self.warp is not None:
            X = self.warp.apply(X)
        if self.map is None:
            return X
        if is_sparse(X):
            A = self.map.astype(X.dtype)
            return X.multiply(A[None, :]).tocsr() if A.ndim == 1 else X @ A
        if not is_foreign(X):
            A = self.map.astype(X.dtype if X.dtype.kind == "f" else np.float64)
            return X * A if A.ndim == 1 else X @ A
        xp = get_namespace(X)
        if not xp.isdtype(X.dtype, "real floating"):
            X = xp.astype(X, xp.float64)
        A = Device(xp, device(X)).put(self.map, X.dtype)
        return X * A if self.map.ndim == 1 else X @ A

    def unmap(self, Z: Any) -> Any:
        """Return inputs that the map sends to Z (n, d).

        Features that a diagonal map leaves out are 0; a full one is inverted in the sense of least
        squares.

        Parameters
        ----------
        Z : array of shape (n, d)
            Mapped rows.
        """
        if self.warp is not None:
            return self.warp.invert(Metric(self.map).unmap(Z))
        if self.map is None:
            return Z
        if self.map.ndim == 2:
            return np.asarray(Z @ np.linalg.pinv(self.map))
        seen = self.map != 0
        inverse = np.where(seen, 1.0 / np.where(seen, self.map, 1.0), 0.0)
        if is_sparse(Z):
            return Z.multiply(inverse[None, :]).tocsr()
        return np.asarray(Z * inverse)

    def back(self, gradients: FloatArray) -> FloatArray:
        """Return gradients with respect to (warped) x from those with respect to x A, (..., d).

        Parameters
        ----------
        gradients : array of shape (..., d)
            With respect to the mapped inputs.
        """
        if self.map is None:
            return gradients
        return np.asarray(gradients * self.map if self.map.ndim == 1 else gradients @ self.map.T)

    def published(self, d: int, *, full: bool = False) -> FloatArray:
        """Return M = A A^T (d, d), or its diagonal (d,) where A is diagonal, unless ``full``.

        Parameters
        ----------
        d : int
            Number of features.
        full : bool, default=False
            Whether a matrix is returned where there is no map.
        """
        if self.map is None:
            return np.eye(d) if full else np.ones(d)
        return np.asarray(self.map**2) if self.map.ndim == 1 else self.matrix(d)

    def matrix(self, d: int) -> FloatArray:
        """Return M = A A^T, shape (d, d).

        Parameters
        ----------
        d : int
            Number of features.
        """
        if self.map is None:
            return np.eye(d)
        return np.diag(self.map**2) if self.map.ndim == 1 else np.asarray(self.map @ self.map.T)


IDENTITY = Metric()
"""The inputs unchanged."""


def low_rank(G: FloatArray) -> Metric:
    """Return the metric of M = G^T G for gradients G (r, d) with r < d: O(r^2 d) time."""
    values, vectors = np.linalg.eigh(G @ G.T)
    kept = values > 1e-12 * max(float(values[-1]), 0.0)
    if not kept.any():
        return IDENTITY
    A = G.T @ vectors[:, kept]  # its columns are the eigenvectors of M times their roots
    return Metric(np.asarray(A * np.sqrt(G.shape[1] / float(np.einsum("ij,ij->", A, A)))))


@dataclass(frozen=True, eq=False)
class MetricKernel:
    """A kernel of mapped inputs, K(xA, zA), as an estimator takes it.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        Of the mapped inputs. C and gamma of the estimator are those of mapped inputs too.
    metric : {"diagonal", "full"} or array of shape (d,) or (d, d), default="diagonal"
        The map A, or its diagonal: given, or learned from gradients of a model
        ([Radhakrishnan2024]_) in at most 4 rounds, which are scored on other rows. If the gain is
        not clear, the inputs are not changed. A round costs m^3/3 + n m d operations for m <=
        2,000 and n <= 4,000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.kernels import MetricKernel
    >>> X = np.random.default_rng(0).normal(size=(120, 3))
    >>> model = LSSVR(C=100.0, kernel=MetricKernel("rbf", "diagonal")).fit(X, np.sin(2 * X[:, 0]))
    >>> int(np.argmax(model.metric_))
    0
    """

    kernel: Any = "rbf"
    metric: Any = "diagonal"


def slopes_of(
    kernel: Kernel,
    X: FloatArray,
    Z: FloatArray,
    coef: FloatArray,
    metric: Metric,
    rows_in_Z: IntArray | None,
) -> list[FloatArray]:
    """Return the slopes (n, k, d) along the (warped) inputs, of one side or of both.

    Under a full map they are derivatives: its rows do not show which inputs are tied.
    """
    steps = Steps.among(Z) if rows_in_Z is not None and metric.by_feature else None
    if steps is None or rows_in_Z is None:
        return [metric.back(kernel.gradient(X, Z, coef))]
    return [metric.back(side) for side in one_sided_slopes(kernel, X, Z, coef, rows_in_Z, steps)]


Slopes: TypeAlias = Callable[
    [Kernel, FloatArray, FloatArray, FloatArray, Metric, IntArray | None], list[FloatArray]
]
"""A function as `slopes_of`."""


def mean_outer_product(
    kernel: Kernel,
    X: FloatArray,
    Z: FloatArray,
    coef: FloatArray,
    *,
    metric: Metric = IDENTITY,
    shape: Shape = "full",
    weight: FloatArray | None = None,
    threads: int = 1,
    rows_in_Z: IntArray | None = None,
    slopes_by: Slopes = slopes_of,
) -> FloatArray:
    """Return the average outer product of the slopes of an expansion.

    ``rows_in_Z`` are the rows of Z that those of X are: they are left out of their own slopes, and
    features of few values have one-sided slopes (`one_sided_slopes`). ``slopes_by`` computes the
    slopes, by default `slopes_of`.
    """
    if shape not in ("full", "diagonal"):
        raise not_known("metric", shape, "choose 'full' or 'diagonal'.")
    n, d = X.shape[0], _n_inputs(X, metric)
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()

    def block(part: slice) -> FloatArray:
        total = np.zeros(d if shape == "diagonal" else (d, d))
        few = _fewer_outputs(coef, part.start)
        rows = None if rows_in_Z is None else rows_in_Z[part]
        sides = slopes_by(kernel, X[part], Z, few, metric, rows)
        for slopes in sides:
            flat = (slopes * np.sqrt(share[part] / len(sides))[:, None, None]).reshape(-1, d)
            total += np.einsum("ij,ij->j", flat, flat) if shape == "diagonal" else flat.T @ flat
        return total

    rows = _block_rows(coef.shape[1], d, len(Z))
    return np.asarray(np.sum(run_blocks(block, slices(n, rows), threads), axis=0))


def gradient_rows(
    kernel: Kernel,
    X: FloatArray,
    Z: FloatArray,
    coef: FloatArray,
    *,
    metric: Metric,
    weight: FloatArray,
    rows_in_Z: IntArray | None,
    slopes_by: Slopes = slopes_of,
) -> FloatArray:
    """Return slopes times the roots of their weights, one row each, so that G^T G is their sum."""
    d = _n_inputs(X, metric)
    few = _fewer_outputs(coef, 0)
    sides = slopes_by(kernel, X, Z, few, metric, rows_in_Z)
    root = np.sqrt(weight / len(sides))[:, None, None]
    return np.concatenate([(slopes * root).reshape(-1, d) for slopes in sides])


def squared_slopes(
    kernel: Kernel,
    X: FloatArray,
    Z: FloatArray,
    coef: FloatArray,
    *,
    metric: Metric,
    weight: FloatArray,
    rows_in_Z: IntArray | None,
    threads: int = 1,
    slopes_by: Slopes = slopes_of,
) -> SquaredSlopes:
    """Return squared slopes along the inputs of a metric that maps every feature by itself."""
    n, d = X.shape

    def block(part: slice) -> FloatArray:
        rows = None if rows_in_Z is None else rows_in_Z[part]
        few = _fewer_outputs(coef, part.start)
        sides = slopes_by(kernel, X[part], Z, few, metric, rows)
        return np.array([(side**2).sum(axis=1) for side in (sides[0], sides[-1])])

    rows = _block_rows(coef.shape[1], d, len(Z))
    squares = np.concatenate(run_blocks(block, slices(n, rows), threads), axis=1)
    at = np.asarray(metric.unmap(X))
    if metric.warp is not None:
        squares = squares * metric.warp.slopes(at) ** 2
    return SquaredSlopes(at, squares[0], squares[1], weight)


def _block_rows(k: int, d: int, m: int) -> int:
    return int(np.clip(_ENTRIES // max(min(k, _OUTPUTS) * d, m), 1, 512))


def _fewer_outputs(coef: FloatArray, seed: int) -> FloatArray:
    """Return coefficients (m, q) of random sums of outputs, where there are many of these.

    With signs s the mean of the squared slope of sum_k s_k f_k is the sum of the squared slopes of
    all f_k; q sums estimate it, others in every block of rows.
    """
    k = coef.shape[1]
    if k <= _OUTPUTS:
        return coef
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(k, _OUTPUTS))
    return np.asarray(coef @ signs / np.sqrt(_OUTPUTS))


def _n_inputs(X: FloatArray, metric: Metric) -> int:
    return X.shape[1] if metric.map is None else len(metric.map)


@dataclass(frozen=True, eq=False)
class Steps:
    """Features of few values, and the gaps between these.

    Attributes
    ----------
    features : int array of shape (f,)
    levels : tuple of f arrays
        The values, increasing.
    """

    features: IntArray
    levels: tuple[FloatArray, ...]

    @classmethod
    def among(cls, Z: FloatArray) -> Steps | None:
        """Return the features of 2 to `MOST_LEVELS` values, or None where there are none."""
        levels = [(j, np.unique(Z[:, j])) for j in range(Z.shape[1])]
        most = min(MOST_LEVELS, len(Z) // 4)
        few = [(j, values) for j, values in levels if 2 <= len(values) <= most]
        if not few:
            return None
        return cls(np.array([j for j, _ in few], dtype=np.intp), tuple(v for _, v in few))


MOST_LEVELS = 25
"""Values up to which a feature is discrete."""


def one_sided_slopes(
    kernel: Kernel,
    X: FloatArray,
    Z: FloatArray,
    coef: FloatArray,
    rows_in_Z: IntArray,
    steps: Steps,
) -> tuple[FloatArray, FloatArray]:
    r"""Return slopes to the next larger and the next smaller value of features with few values.

    The expansion :math:`f_{-i}` without the row itself is compared at :math:`x_i` and at the row
    moved to the neighbouring value of a feature, over the distance of both: what tied rows
    contribute changes too, which a derivative does not see. A row at the end of a feature has one
    neighbour, whose slope counts for both sides; other features keep their derivative. Kernels that
    are products over features change by a factor, for the Laplacian one of two: O(n m k d) time.
    The exponential kernel is linearised in the squared distance; it and the Gaussian kernel take
    O(n m k v) time for features of v values in all.

    Parameters
    ----------
    kernel : RBF, Exponential or Laplacian
        With one gamma.
    X : array of shape (n, d)
    Z : array of shape (m, d)
    coef : array of shape (m, k)
    own : int array of shape (n,)
        The row of Z that each row of X is.
    steps : Steps

    Returns
    -------
    right, left : arrays of shape (n, k, d)
    """
    if isinstance(kernel, Laplacian):
        differences, right = _laplacian_steps(kernel, X, Z, coef, rows_in_Z, steps)
    else:
        differences, right = _steps_by_level(kernel, X, Z, coef, rows_in_Z, steps)
    left = right.copy()
    for feature, levels, difference in zip(steps.features, steps.levels, differences, strict=True):
        place = np.searchsorted(levels, X[:, feature])
        for out, step in ((right, 1), (left, -1)):
            # At an end of the feature the other side is the only one.
            to = place + np.where((place + step >= 0) & (place + step < len(levels)), step, -step)
            gap = (levels[to] - X[:, feature])[:, None]
            out[:, :, feature] = difference(place, to) / gap
    return right, left


FARTHEST = 30.0
"""Scaled distance beyond which the sum of the kernel values on the far side is rounding only."""

Difference: TypeAlias = Callable[[IntArray, IntArray], FloatArray]
"""From the levels of the rows in a feature and those moved to (n,) to changes (n, k)."""


def _laplacian_steps(
    kernel: Laplacian,
    X: FloatArray,
    Z: FloatArray,
    coef: FloatArray,
    rows_in_Z: IntArray,
    steps: Steps,
) -> tuple[Iterator[Difference], FloatArray]:
    """Return changes of the expansion, feature by feature, and its derivatives (n, k, d).

    A point on the near side of a row that moves by t along a feature changes by exp(-gamma t) - 1,
    one on the far side by exp(gamma t) - 1; there is none between.
    """
    gamma = float(kernel.gamma)
    K = kernel.values(X, Z)
    K[np.arange(len(X)), rows_in_Z] = 0.0
    less, most = ordered_sums(K, X, Z, coef)
    total = K @ coef

    def difference(feature: int, levels: FloatArray, place: IntArray, to: IntArray) -> FloatArray:
        up = (to > place)[:, None]
        moved = gamma * np.abs(levels[to] - levels[place])[:, None]
        behind = np.where(up, most[:, :, feature], total - less[:, :, feature])
        moved = np.minimum(moved, FARTHEST)
        return np.asarray(np.expm1(-moved) * behind + np.expm1(moved) * (total - behind))

    differences = (
        partial(difference, int(feature), levels)
        for feature, levels in zip(steps.features, steps.levels, strict=True)
    )
    return differences, -gamma * (less + most - total[:, :, None])


def _steps_by_level(
    kernel: Kernel,
    X: FloatArray,
    Z: FloatArray,
    coef: FloatArray,
    rows_in_Z: IntArray,
    steps: Steps,
) -> tuple[Iterator[Difference], FloatArray]:
    """Return changes of the expansion, by sums over the rows of every level, and derivatives."""
    K, change = _change_by_level(kernel, X, Z)
    K[np.arange(len(X)), rows_in_Z] = 0.0

    def difference(
        changes: FloatArray, sums: FloatArray, place: IntArray, to: IntArray
    ) -> FloatArray:
        return np.asarray(np.einsum("iv,ivk->ik", changes[place, to], sums))

    differences = (
        partial(difference, change(levels), sums)
        for levels, sums in zip(steps.levels, _sums_by_level(K, Z, coef, steps), strict=True)
    )
    return differences, kernel.gradient(X, Z, coef)


def _change_by_level(
    kernel: Kernel, X: FloatArray, Z: FloatArray
) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    """Return W (n, m) and a function from levels to c (v, v, v), so that W c is a change of K.

    c[a, b, z] is for a row that moves from level a to b of a feature, and a point at level z.
    """
    gamma = float(kernel.gamma)  # type: ignore[attr-defined]

    def gaps(levels: FloatArray) -> FloatArray:
        gap = (levels[:, None] - levels) ** 2
        return np.asarray(gap[None, :, :] - gap[:, None, :])

    def factors(levels: FloatArray) -> FloatArray:
        # A larger factor would be infinite, for kernel values that are rounded to 0.
        largest = np.log(np.finfo(levels.dtype).max) - 1.0
        return np.asarray(np.expm1(np.minimum(-gamma * gaps(levels), largest)))

    if isinstance(kernel, RBF):
        return np.asarray(kernel(X, Z)), factors
    D = distances(X, Z, "euclidean")
    W = np.divide(-0.5 * gamma * np.exp(-gamma * D), D, out=np.zeros_like(D), where=D > 0)
    return W, gaps


_ENTRIES = 2**22
"""Numbers of a matrix that marks the levels of several features."""


def _sums_by_level(
    K: FloatArray, Z: FloatArray, coef: FloatArray, steps: Steps
) -> Iterator[FloatArray]:
    """Yield sum_j K_ij coef_jk over the rows j of every level, (n, v, k), feature by feature.

    One matrix product for several features.
    """
    m, k = coef.shape
    counts = np.array([len(levels) for levels in steps.levels])
    part = np.cumsum(counts) * m * k // _ENTRIES
    for chosen in np.split(np.arange(len(counts)), np.flatnonzero(np.diff(part)) + 1):
        marks = [Z[:, [steps.features[i]]] == steps.levels[i] for i in chosen]
        marked = np.concatenate(marks, axis=1)[:, :, None] * coef[:, None, :]
        sums = (K @ marked.reshape(m, -1)).reshape(len(K), -1, k)
        yield from np.split(sums, np.cumsum(counts[chosen])[:-1], axis=1)


SHAPES: tuple[Shape, ...] = ("diagonal", "full")
"""Metrics that can be learned."""


def read_metric(metric: Any) -> Metric | Shape:
    """Return the map that is given as an array, or the shape of a learned one."""
    if isinstance(metric, str):
        if metric not in SHAPES:
            raise InvalidInputError(
                f"metric={metric!r} is not known: give 'diagonal' or 'full' to have one learned, "
                "an array of shape (d,) or (d, d), or None."
            )
        return "diagonal" if metric == "diagonal" else "full"
    try:
        values = np.asarray(metric, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(())
    square = values.ndim == 2 and values.shape[0] == values.shape[1]
    if not (values.ndim == 1 or square) or not np.all(np.isfinite(values)) or not values.any():
        raise InvalidInputError(
            f"metric={metric!r} is not usable: give finite numbers, not all 0, of shape (d,) or "
            "(d, d), 'diagonal', 'full' or None."
        )
    return Metric(values)


def check_length(metric: Metric, d: int, what: str) -> None:
    """Refuse a metric of other than d features; ``what`` names them in the message."""
    if metric.map is not None and len(metric.map) != d:
        raise InvalidInputError(
            f"metric has {len(metric.map)} rows but {what}: give an array of shape ({d},) or "
            f"({d}, {d})."
        )
