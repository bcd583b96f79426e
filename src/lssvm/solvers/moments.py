"""The moments of a set of rows; they add and subtract."""

from __future__ import annotations

import itertools
import operator
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.linalg import eigh

from lssvm._core.arrays import (
    Array,
    FloatArray,
    IntArray,
    check_gram,
    device,
    float_rows,
    get_namespace,
    is_foreign,
    is_numpy,
    take_rows,
    take_square,
    to_numpy,
)
from lssvm._core.blocks import block_rows, require, run_blocks, run_stream, slices, small_problem
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError, NumericalWarning
from lssvm._core.lapack import add_gram, congruence, mirror
from lssvm.data import ArraySource, RowSource
from lssvm.data.folds import Folds
from lssvm.kernels import Kernel
from lssvm.tasks import Classes

_ARRAYS = ("gram", "border", "cross", "target", "squares")


@dataclass(frozen=True, eq=False)
class Moments:
    r"""Weighted second moments of z(x) = [k(x), 1] and the targets y of a set of rows.

    Attributes
    ----------
    gram : array of shape (m, m)
        :math:`\sum_i s_i k(x_i) k(x_i)^T` with :math:`k(x) = K(x, Z)`.
    border : array of shape (m,)
        :math:`\sum_i s_i k(x_i)`, the last row of the gram of z.
    cross : array of shape (m, k)
        :math:`\sum_i s_i k(x_i) y_i^T`.
    target : array of shape (k,)
        :math:`\sum_i s_i y_i`.
    squares : array of shape (k,)
        :math:`\sum_i s_i y_i^2`.
    weight : float
        :math:`\sum_i s_i`.
    n : int
        Rows counted.
    shift : array of shape (m,) or None
        Constants that were subtracted: k(x) above is then K(x, Z) - shift. A kernel whose values
        hardly vary (small gamma) would lose its digits in the gram otherwise; the bias of a model
        takes the shift up exactly. None: nothing was subtracted. `plain` undoes it.

    The moments of a union are the sum, those of what is left without some rows the difference
    ([DeBrabanter2010], eqs. (20), (21) and (24)). Memory m^2 + m (k + 1) numbers.
    """

    gram: FloatArray
    border: FloatArray
    cross: FloatArray
    target: FloatArray
    squares: FloatArray
    weight: float
    n: int
    shift: FloatArray | None = None

    @classmethod
    def of(cls, K: FloatArray, Y: FloatArray, weight: FloatArray | None = None) -> Moments:
        """Return the moments of kernel rows ``K`` (n, m) and targets ``Y`` (n, k)."""
        s = np.ones(len(K)) if weight is None else weight
        SK = K * s[:, None]
        return cls(SK.T @ K, SK.sum(0), SK.T @ Y, s @ Y, s @ Y**2, float(s.sum()), len(K))

    @classmethod
    def zero(cls, m: int, k: int, shift: FloatArray | None = None) -> Moments:
        """Return the moments of no rows."""
        z = np.zeros
        return cls(z((m, m)), z(m), z((m, k)), z(k), z(k), 0.0, 0, shift)

    @classmethod
    def of_sums(cls, gram: Array, side: Array, corner: Array, n: int, shift: Array) -> Moments:
        """Return the moments from sums of K^T K, K^T [Y, 1] and [Y, 1]^T [Y, 1] over n rows."""
        xp = get_namespace(gram)
        views = (side[:, -1], side[:, :-1], corner[-1, :-1], xp.linalg.diagonal(corner)[:-1])
        border, cross, target, squares = (xp.asarray(view, copy=True) for view in views)
        return cls(gram, border, cross, target, squares, float(corner[-1, -1]), n, shift)

    @property
    def size(self) -> int:
        """Number of prototypes m."""
        return int(self.gram.shape[0])

    def __sizeof__(self) -> int:
        # Dask, Ray and others ask for it to decide what to move where.
        arrays = [self.shift, *(getattr(self, name) for name in _ARRAYS)]
        return 200 + sum(int(array.nbytes) for array in arrays if array is not None)

    def __add__(self, other: Any) -> Moments:
        return self._combined(other, operator.add)  # type: ignore[no-any-return]

    def __radd__(self, other: Any) -> Moments:
        # sum() starts from 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: Any) -> Moments:
        return self._combined(other, operator.sub)  # type: ignore[no-any-return]

    def _combined(self, other: Any, combine: Callable[[Any, Any], Any]) -> Any:
        if not isinstance(other, Moments):
            return NotImplemented
        alike = self.shift is other.shift or np.array_equal(
            np.zeros(self.size) if self.shift is None else to_numpy(self.shift),
            np.zeros(self.size) if other.shift is None else to_numpy(other.shift),
        )
        if self.cross.shape != other.cross.shape or not alike:
            raise InvalidInputError(
                f"Moments of shapes {self.cross.shape} and {other.cross.shape} do not add: they "
                "need the same prototypes and the same targets."
            )
        names = (*_ARRAYS, "weight", "n")
        return replace(self, **{x: combine(getattr(self, x), getattr(other, x)) for x in names})

    def prefix(self, size: int) -> Moments:
        """Return the moments for the first ``size`` prototypes only."""
        return self.subset(np.arange(size))

    def subset(self, index: IntArray) -> Moments:
        """Return the moments for some prototypes only, in the order given."""
        return replace(
            self,
            gram=take_square(self.gram, index),
            border=take_rows(self.border, index),
            cross=take_rows(self.cross, index),
            shift=None if self.shift is None else take_rows(self.shift, index),
        )

    def outputs(self, columns: IntArray) -> Moments:
        """Return the moments for some targets only."""
        cross = self.cross
        return replace(
            self,
            cross=cross[:, columns] if is_numpy(cross) else take_rows(cross.T, columns).T,
            target=take_rows(self.target, columns),
            squares=take_rows(self.squares, columns),
        )

    def shifted(self, shift: FloatArray | None) -> Moments:
        """Return the moments of K(x, Z) - ``shift`` (m,); None: of K(x, Z) itself."""
        zero = np.zeros(self.size)
        change = (zero if self.shift is None else self.shift) - (zero if shift is None else shift)
        if not np.any(change):
            return self
        border = self.border + self.weight * change
        gram = self.gram + np.outer(change, self.border) + np.outer(border, change)
        cross = self.cross + np.outer(change, self.target)
        return replace(self, gram=gram, border=border, cross=cross, shift=shift)

    def plain(self) -> Moments:
        """Return the moments of K(x, Z) itself, the shift undone."""
        return self.shifted(None)

    def mapped(self, gram: FloatArray, T: FloatArray) -> Moments:
        """Return the moments of the features T^T k(x), given their gram."""
        if is_numpy(gram):
            gram = np.tril(gram) + np.tril(gram, -1).T
        shift = None if self.shift is None else T.T @ self.shift
        border, cross = T.T @ self.border, T.T @ self.cross
        return replace(self, gram=gram, border=border, cross=cross, shift=shift)

    def scaled(self, factor: float, targets: FloatArray | None = None) -> Moments:
        """Return the moments with all weights multiplied by ``factor``."""
        moments = self
        if targets is not None:
            factors = targets
            if not is_numpy(self.border):
                factors = get_namespace(self.border).asarray(targets, device=device(self.border))
            cross = self.border[:, None] * factors[None, :]
            target, squares = self.weight * factors, self.weight * factors**2
            moments = replace(self, cross=cross, target=target, squares=squares)
        if factor == 1.0:
            return moments  # which whoever changes arrays has to copy
        scaled = {name: factor * getattr(moments, name) for name in (*_ARRAYS, "weight")}
        return replace(moments, **scaled)

    def on_host(self) -> Moments:
        """Return the same as NumPy arrays, where they are on a device."""
        if is_numpy(self.gram):
            return self
        arrays: dict[str, Any] = {name: to_numpy(getattr(self, name)) for name in _ARRAYS}
        return replace(self, shift=None if self.shift is None else to_numpy(self.shift), **arrays)

    def squared_error(self, coef: Array, intercept: Array) -> Array:
        r"""Return the weighted sum of squared errors of candidates, without a pass over the data.

        .. math:: \sum_i s_i (y_i - \alpha^T k(x_i) - b)^2
        """
        xp, (c, m, k) = get_namespace(coef), coef.shape
        columns = xp.permute_dims(coef, (1, 0, 2))
        flat = xp.reshape(columns, (m, c * k))
        if self.shift is not None:
            intercept = intercept + xp.reshape(self.shift @ flat, (c, k))
        fitted = xp.reshape(self.gram @ flat, (m, c, k)) - 2.0 * self.cross[:, None, :]
        quadratic = xp.sum(columns * fitted, axis=0)
        linear = 2.0 * intercept * (xp.reshape(self.border @ flat, (c, k)) - self.target)
        return self.squares + quadratic + linear + self.weight * intercept**2


def total(parts: Iterable[Moments]) -> Moments:
    """Return the sum of moments, added in the order given."""
    todo = iter(parts)
    first = next(todo)
    xp, weight, n = get_namespace(first.gram), first.weight, first.n
    sums = {name: xp.asarray(getattr(first, name), copy=True) for name in _ARRAYS}
    for moments in todo:
        for name in _ARRAYS:
            sums[name] += getattr(moments, name)
        weight, n = weight + moments.weight, n + moments.n
    return replace(first, weight=weight, n=n, **sums)


_NOT_FINITE = (
    "The kernel between prototypes is not finite: scale the features (StandardScaler), or lower "
    "degree or gamma."
)
_FACTORED = 12_000  # prototypes above which the eigenvectors of K(Z, Z) take too long on a GPU
_ITERATIONS = 8
_NOISE = 0.1  # rounding of the gram in any direction, in units of eps n (measured)


@dataclass(frozen=True, eq=False)
class NystromMap:
    r"""The map :math:`\varphi(x) = T^T k(x)` with :math:`k(x) = K(x, Z)`.

    Attributes
    ----------
    T : array of shape (m, r)
        :math:`U \Lambda^{-1/2}` of the eigenpairs that were kept: :math:`T^T K_{ZZ} T = I`.
    eigenvalues : array of shape (r,)
        Descending.
    cut : float
        Eigenvalues up to this one were dropped.

    Features whose inner products reproduce the kernel between prototypes; the model
    :math:`w^T \varphi(x) + b` is the expansion with coefficients :math:`T w` on the prototypes.
    """

    T: FloatArray
    eigenvalues: FloatArray
    cut: float

    @property
    def rank(self) -> int:
        """Number of features r."""
        return int(self.T.shape[1])

    def transform(self, K: FloatArray) -> FloatArray:
        """Return the features (n, r) of rows given by their kernel values ``K`` (n, m)."""
        return np.asarray(K @ self.T)  # [DeBrabanter2010, eq. (5)]

    def on_host(self) -> NystromMap:
        """Return the same as NumPy arrays, where they are on a device."""
        return NystromMap(to_numpy(self.T), to_numpy(self.eigenvalues), self.cut)

    def whiten(self, gram: FloatArray) -> FloatArray:
        """Return :math:`T^T G T` for a symmetric ``gram`` G (m, m), shape (r, r).

        With G = L + L^T (L lower triangular, half the diagonal) it is
        :math:`(L^T T)^T T + T^T (L^T T)`: a triangular product and a symmetric rank-2r update,
        3 m^3 operations instead of 4. Only the lower triangle is filled.
        """
        if not is_numpy(self.T):
            T = get_namespace(self.T).permute_dims(self.T, (1, 0))
            return T @ (gram @ self.T)  # type: ignore[no-any-return]
        half = np.array(gram, order="F")
        half[np.diag_indices_from(half)] *= 0.5
        return congruence(half, np.asfortranarray(self.T))


def resolved_by_moments(m: int) -> float:
    """Return the eigenvalue, in units of the trace, above which moments resolve a direction."""
    return float(np.sqrt(_NOISE * np.finfo(np.float64).eps / m))


def nystrom_map(
    kernel: Kernel, Z: FloatArray, *, tol: float | None = None, gram: FloatArray | None = None
) -> NystromMap:
    r"""Build the Nystrom map of a kernel on prototypes.

    [DeBrabanter2010], eq. (5). The printed map divides by the square root of every eigenvalue.
    The gram :math:`G = K_{nm}^T K_{nm}` that it is applied to carries a rounding error of about
    :math:`\epsilon n / 10` in every direction (once near-constant kernels are shifted, see
    `lssvm.solvers.moments.Moments`), which becomes :math:`\epsilon n / (10 \lambda)` after the map,
    while the signal in a direction of eigenvalue :math:`\lambda` is about
    :math:`(n / m) \lambda` (G is about (n/m) K^2 where the prototypes represent the rows). The
    default keeps the directions whose signal exceeds the error,
    :math:`\lambda^2 > \epsilon m / 10` for a kernel with unit diagonal; n cancels. What is dropped
    contributed at most :math:`C n \lambda / m` to the fit.

    About 9 m^3 operations, 3 m^2 numbers at the peak. With torch on a device, more than 12,000
    prototypes are mapped by the Cholesky factor of K(Z, Z) instead: features with the same inner
    products. Where an eigenvalue is below what would be dropped, that much is added to all.
    """
    m = int(np.shape(Z)[0])
    tol = resolved_by_moments(m) if tol is None else tol
    if is_foreign(Z):
        return _device_map(kernel(Z, Z) if gram is None else gram, tol)
    Z = float_rows(Z)
    K = np.array(kernel(Z, Z), dtype=np.float64) if gram is None else np.array(gram)
    if not np.all(np.isfinite(K)):
        raise InvalidInputError(_NOT_FINITE)
    check_gram(np.diagonal(K))
    trace = float(np.trace(K))
    with small_problem(m):
        lam, U = eigh(K.T, overwrite_a=True, check_finite=False, driver="evd")
    keep, cut = _kept(lam, trace, tol)
    if len(keep) == 0:  # a kernel that is zero on the prototypes: no features, the bias is left
        return NystromMap(np.zeros((m, 0)), np.zeros(0), cut)
    T = np.asfortranarray(U[:, keep] / np.sqrt(lam[keep]))
    return NystromMap(T, lam[keep], cut)


def _kept(lam: FloatArray, trace: float, tol: float) -> tuple[IntArray, float]:
    """Return which eigenvalues (ascending) are kept, largest first, and the cut."""
    cut = tol * max(trace, 0.0)
    if lam[0] < -1e3 * cut or trace <= 0.0:
        warnings.warn(
            f"The kernel is not positive semidefinite on the prototypes (eigenvalue {lam[0]:.3g}, "
            f"largest {lam[-1]:.3g}): negative directions are dropped.",
            NumericalWarning,
            stacklevel=3,
        )
    return np.flatnonzero(lam > cut)[::-1], cut


def _device_map(K: Array, tol: float) -> NystromMap:
    """Return the map on the device of ``K`` (m, m)."""
    xp, m = get_namespace(K), int(K.shape[0])
    if not bool(xp.all(xp.isfinite(K))):
        raise InvalidInputError(_NOT_FINITE)
    trace = float(xp.linalg.trace(K))
    if m > _FACTORED and hasattr(xp.linalg, "solve_triangular"):
        return _factor_map(K, tol * max(trace, 0.0))
    lam, U = xp.linalg.eigh(K)
    keep, cut = _kept(to_numpy(lam), trace, tol)
    first = m - len(keep)  # ascending: what is kept comes last
    U, lam = xp.flip(U[:, first:], axis=1), xp.flip(lam[first:])
    return NystromMap(U / xp.sqrt(lam)[None, :], lam, cut)


def _factor_map(K: Array, cut: float) -> NystromMap:
    """Return the map by the Cholesky factor of K: the same inner products, not the same axes.

    Where K is singular to the precision that is left (an eigenvalue below ``cut``), ``cut`` is
    added to its diagonal.
    """
    torch = get_namespace(K)
    factor, info = torch.linalg.cholesky_ex(K)
    if int(info) != 0 or _smallest(torch, factor) < cut:
        K = K.clone()
        K.diagonal().add_(cut)
        factor, info = torch.linalg.cholesky_ex(K)
        if int(info) != 0:
            raise NotPositiveDefiniteError(
                "The kernel is not positive definite on the prototypes: use another kernel, or at "
                f"most {_FACTORED} prototypes, whose negative directions are dropped."
            )
        warnings.warn(
            f"The kernel between {K.shape[0]} prototypes is singular to rounding; {cut:.3g} was "
            "added to its diagonal. A larger gamma or fewer prototypes avoid that.",
            NumericalWarning,
            stacklevel=4,
        )
    diagonal = factor.diagonal() ** 2
    eye = torch.eye(K.shape[0], dtype=K.dtype, device=K.device)
    return NystromMap(torch.linalg.solve_triangular(factor.T, eye, upper=True), diagonal, cut)


def _smallest(torch: Any, factor: Array) -> float:
    """Estimate the smallest eigenvalue of L L^T by inverse iteration."""
    vector = torch.ones((factor.shape[0], 1), dtype=factor.dtype, device=factor.device)
    vector[::2] = -1.0
    size = 1.0
    for _ in range(_ITERATIONS):
        vector = vector / torch.linalg.vector_norm(vector)
        vector = torch.cholesky_solve(vector, factor)
        size = float(torch.linalg.vector_norm(vector))
    return 1.0 / size


def assemble(
    task: Classes, parts: Sequence[Moments], columns: IntArray, counts: FloatArray
) -> Moments:
    """Return the moments of some binary problems from those of the classes."""
    table = task.table(counts)
    used = np.flatnonzero(task.code.matrix[:, columns[0]]).tolist()
    return total(parts[c].scaled(float(table.factors[c]), table.targets[c, columns]) for c in used)


@dataclass(frozen=True, eq=False)
class Cells:
    """Which rows a pass reads in which order, and what its cells are.

    Attributes
    ----------
    order : int array or None
        Rows in the order of the pass, cell after cell. None: in their own order, as those of a
        stream.
    cells : list of slice
    test : list of list of int
        Cells of each fold's test rows, one per class.
    train : list of list of int or None
        The same for training rows where a splitter gave them; None: all but the test rows.
    whole : list of list of int
        Per class, the cells that make up all rows.
    """

    order: IntArray | None
    cells: list[slice]
    test: list[list[int]]
    train: list[list[int]] | None
    whole: list[list[int]]


def make_cells(
    folds: Folds | None, n: int, labels: IntArray | None = None, n_classes: int = 0
) -> Cells:
    """Cut the rows into cells: folds, and classes within folds where labels are given."""
    if folds is None and labels is None:
        return Cells(None, [slice(0, n)], [], None, [[0]])
    parts: list[IntArray] = []

    def add(rows: IntArray) -> list[int]:
        rows = rows if np.all(rows[1:] > rows[:-1]) else np.sort(rows)  # memory is read forwards
        pieces = [rows]
        if labels is not None:
            pieces = [rows[labels[rows] == c] for c in range(n_classes)]
        parts.extend(pieces)
        return list(range(len(parts) - len(pieces), len(parts)))

    test = [] if folds is None else [add(rows) for rows in folds.test]
    train = None
    if folds is not None and folds.train is not None:
        train = [add(rows) for rows in folds.train]
    if train is not None:
        whole = []
    elif (rest := _left_over(folds, n)) is None:
        whole = [[cell] for cell in add(np.arange(n))]
    else:
        once = [*test, add(rest)] if len(rest) or not test else test
        whole = [list(column) for column in zip(*once, strict=True)]
    stops = np.cumsum([0, *map(len, parts)]).tolist()
    cells = [slice(start, stop) for start, stop in itertools.pairwise(stops)]
    return Cells(np.concatenate(parts), cells, test, train, whole)


def stream_cells(n_parts: int, n_test: int, n_classes: int) -> Cells:
    """Return the layout of a stream: cell number = part * n_classes + class."""
    number = np.arange(n_parts * n_classes).reshape(n_parts, n_classes)
    return Cells(None, [], number[:n_test].tolist(), None, number.T.tolist())


def _left_over(folds: Folds | None, n: int) -> IntArray | None:
    """Return the rows that are in no fold; None where a row is in several."""
    seen = np.zeros(n, dtype=bool)
    count = 0
    for rows in [] if folds is None else folds.test:
        seen[rows] = True
        count += len(rows)
    if np.count_nonzero(seen) < count:
        return None
    small: Any = np.int32 if n < 2**31 else np.intp
    return np.flatnonzero(~seen).astype(small) if count < n else np.empty(0, dtype=small)


@dataclass(frozen=True, eq=False)
class FoldMoments:
    """The moments of every fold, and what is left for training without it.

    Targets and weights that depend on how many rows a class has follow the training rows of each
    fold, as they would if the model were fitted to those rows alone.

    Attributes
    ----------
    layout : Cells
    cells : list of Moments
    task : Classes or None
        What problems are assembled by, where the cells are those of classes.
    """

    layout: Cells
    cells: list[Moments]
    task: Classes | None = None

    @classmethod
    def without_folds(cls, whole: list[Moments], task: Classes | None) -> FoldMoments:
        """Return the moments of all rows (per class where there is a task), of no folds."""
        everyone = [[i] for i in range(len(whole))]
        return cls(Cells(np.empty(0, dtype=np.intp), [], [], None, everyone), whole, task)

    def with_whole(self, whole: list[Moments]) -> FoldMoments:
        """Return the same with the moments of all rows, where the cells do not make them up."""
        added = [[len(self.cells) + i] for i in range(len(whole))]
        return replace(self, layout=replace(self.layout, whole=added), cells=[*self.cells, *whole])

    def on_host(self) -> FoldMoments:
        """Return the same as NumPy arrays, where they are on a device."""
        return replace(self, cells=[cell.on_host() for cell in self.cells])

    @cached_property
    def whole(self) -> list[Moments]:
        """Per class, the moments of all rows."""
        return [total(self.cells[i] for i in members) for members in self.layout.whole]

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.layout.test)

    def groups(self, k: int) -> list[IntArray]:
        """Return the columns that share their training rows."""
        return [np.arange(k)] if self.task is None else self.task.groups()

    def training(self, v: int | None, columns: IntArray) -> Moments:
        """Return the moments of the training rows of a fold (None: all rows)."""
        if v is None:
            return self._join(self.whole, columns, None)
        if self.layout.train is not None:
            return self._join([self.cells[i] for i in self.layout.train[v]], columns, v)
        left = self._join(self.whole, columns, v)  # [DeBrabanter2010, eqs. (20) and (21)]
        return left - self.testing(v, columns)

    def testing(self, v: int, columns: IntArray) -> Moments:
        """Return the moments of the test rows of a fold that belong to these problems."""
        return self._join([self.cells[i] for i in self.layout.test[v]], columns, v)

    def is_tested(self, columns: IntArray) -> bool:
        """Return whether any fold has test rows of these problems."""
        used = [0] if self.task is None else np.flatnonzero(self.task.code.matrix[:, columns[0]])
        return any(self.cells[members[c]].weight > 0 for members in self.layout.test for c in used)

    def test_weight(self) -> FloatArray:
        """Return the weights of the folds' test rows, class weights included, shape (v,)."""
        factors = np.ones(1) if self.task is None else self.task.table(self._counts(None)).factors
        weights = [[self.cells[i].weight for i in members] for members in self.layout.test]
        return np.asarray(np.reshape(weights, (-1, len(factors))) @ factors, dtype=np.float64)

    def test_rows(self) -> IntArray:
        """Return the numbers of the folds' test rows, shape (v,)."""
        counts = [sum(self.cells[i].n for i in members) for members in self.layout.test]
        return np.array(counts, dtype=np.intp)

    def _counts(self, v: int | None) -> FloatArray:
        """Return the weight of each class in the training rows of a fold."""
        if v is not None and self.layout.train is not None:
            return np.array([self.cells[i].weight for i in self.layout.train[v]])
        counts = np.array([part.weight for part in self.whole])
        if v is not None:
            counts = counts - np.array([self.cells[i].weight for i in self.layout.test[v]])
            pairs = zip(self.whole, self.layout.test[v], strict=True)
            counts = np.where([whole.n > self.cells[i].n for whole, i in pairs], counts, 0.0)
        return counts

    def _join(self, parts: list[Moments], columns: IntArray, v: int | None) -> Moments:
        if self.task is None:
            return parts[0]
        return assemble(self.task, parts, columns, self._counts(v))

    def mapped(self, map: NystromMap, threads: int) -> FoldMoments:
        """Return the same for the features of a Nystrom map: 3 m^3 operations per cell."""

        def work(cell: Moments) -> Moments:
            return cell.mapped(map.whiten(cell.gram), map.T)

        return replace(self, cells=run_blocks(work, self.cells, threads))

    def prefix(self, size: int) -> FoldMoments:
        """Return the same for the first ``size`` prototypes."""
        return replace(self, cells=[cell.prefix(size) for cell in self.cells])


BLOCK = 1024  # rows whose kernel values are still near when the product reads them
_CHUNK = 8192  # rows added up before they are added to their cell; few: threads end together


def accumulate(
    kernel: Kernel,
    source: RowSource | ArraySource,
    Z: FloatArray,
    cells: Sequence[slice] | None = None,
    *,
    budget: int = 2**31,
    threads: int = 1,
) -> list[Moments]:
    """Return the moments of consecutive cells of rows, in one pass.

    [DeBrabanter2010], algorithm 4 and eqs. (22)-(24), for any number of folds at once. n m^2
    operations for the symmetric products, 2 n m d for the kernel, n m evaluations of its scalar
    function; memory m^2 per cell and 2 m^2 + 1,000 m per thread. K (n, m) is never stored.

    Where kernel values vary little (their mean over the prototypes is more than a quarter of the
    diagonal), the column means of K(Z, Z) are subtracted first: see `Moments.shift`.

    Rows are added in chunks that depend on the cells alone, and chunks in their order: neither the
    number of threads nor their timing changes a bit of the result.
    """
    Z = float_rows(Z)
    m, k = Z.shape[0], source.n_targets
    cells = [slice(0, source.n_rows)] if cells is None else list(cells)
    one = _Pass(kernel, Z, len(cells), k, budget, threads, pairs=source.n_rows * m)

    def work(chunk: tuple[int, slice]) -> tuple[int, int, RowSums]:
        cell, part = chunk
        return cell, part.stop - part.start, one.sums(source, part)

    chunks = [(i, part) for i, cell in enumerate(cells) for part in _even(cell, _CHUNK)]
    if threads <= 1 or len(chunks) <= 1:
        return one.moments(map(work, chunks))
    operations = source.n_rows * m * (m + Z.shape[1])
    return one.moments(run_stream(work, chunks, threads, operations=operations))


@dataclass(frozen=True, eq=False)
class RowSums:
    """Sums over rows of K^T K, K^T [Y, 1] and [Y, 1]^T [Y, 1]."""

    gram: FloatArray  # (m, m), its upper triangle
    side: FloatArray  # (m, k + 1)
    corner: FloatArray  # (k + 1, k + 1)

    @classmethod
    def room(cls, m: int, k: int) -> RowSums:
        """Return room for sums; only the gram is zero."""
        return cls(np.zeros((m, m)), np.empty((m, k + 1)), np.empty((k + 1, k + 1)))

    def add(self, other: RowSums) -> None:
        """Add other sums to these."""
        np.add(self.gram, other.gram, out=self.gram)
        np.add(self.side, other.side, out=self.side)
        np.add(self.corner, other.corner, out=self.corner)

    def moments(self, n: int, shift: FloatArray | None) -> Moments:
        """Return the moments that n rows have given."""
        return Moments.of_sums(mirror(self.gram), self.side, self.corner, n, shift)


class _Pass:
    """One pass over rows: what chunks of them give is added to their cells, in their order."""

    def __init__(
        self,
        kernel: Kernel,
        Z: FloatArray,
        n_cells: int,
        n_targets: int,
        budget: int,
        threads: int,
        stored: int = 0,
        pairs: int | None = None,
    ) -> None:
        m = Z.shape[0]
        require(
            8 * (m * (m + n_targets + 1) * (n_cells + 2 * threads) + stored),
            budget,
            what=f"The moments of {m} prototypes in {n_cells} cells (folds and classes)",
            advice="Lower n_prototypes, use fewer folds or multiclass='ova', or raise "
            "memory_budget.",
        )
        self.shape, self.n_cells = (m, n_targets), n_cells
        self.rows = block_rows(8 * 2 * m * threads, budget, n_rows=BLOCK, at_most=BLOCK)
        self.shift, self.values = kernel_shift(kernel, Z), kernel.against_many(Z, pairs)
        self.local = threading.local()
        self.spares: list[RowSums] = []  # room that was used before: fresh pages cost time

    def sums(self, source: RowSource | ArraySource, rows: slice) -> RowSums:
        """Return the sums of one chunk of rows, on any thread."""
        if not hasattr(self.local, "buffer"):
            self.local.buffer = np.empty((self.rows, self.shape[0]))
        try:
            sums = self.spares.pop()
        except IndexError:
            sums = RowSums.room(*self.shape)
        sums.side.fill(0.0)
        sums.corner.fill(0.0)
        for i, part in enumerate(_even(rows, self.rows)):
            block = source.read(part)
            view = self.local.buffer[: block.X.shape[0]]
            K = self.values(block.X, out=view)
            if self.shift is not None:
                K = np.subtract(K, self.shift, out=view)
            Y = np.ones((len(K), block.Y.shape[1] + 1))
            Y[:, :-1] = block.Y
            if block.weight is not None:
                root = np.sqrt(block.weight)[:, None]
                K = np.multiply(K, root, out=view)
                Y *= root
            elif not K.flags.c_contiguous or K.dtype != np.float64:
                K = np.ascontiguousarray(K, dtype=np.float64)
            np.add(sums.side, (Y.T @ K).T, out=sums.side)  # [DeBrabanter2010, eq. (23)]
            add_gram(sums.gram, K, new=i == 0)
            np.add(sums.corner, Y.T @ Y, out=sums.corner)
        return sums

    def moments(self, chunks: Iterable[tuple[int, int, RowSums]]) -> list[Moments]:
        """Return the moments of the cells, from cell, number of rows and sums of all chunks."""
        cells: list[RowSums | None] = [None] * self.n_cells
        count = [0] * self.n_cells
        for cell, n, sums in chunks:
            total, count[cell] = cells[cell], count[cell] + n
            if total is None:
                cells[cell] = sums
            else:
                total.add(sums)
                self.spares.append(sums)
        return [
            Moments.zero(*self.shape, self.shift) if sums is None else sums.moments(n, self.shift)
            for sums, n in zip(cells, count, strict=True)
        ]


def _even(span: slice, most: int) -> list[slice]:
    """Cut a span into as few slices of at most ``most`` as there can be, nearly equal.

    Multiples of 32 rows, where there are many, suit the inner loops of BLAS.
    """
    n = span.stop - span.start
    rows = -(-n // max(1, -(-n // most)))
    return slices(span.stop, max(1, min(most, -(-rows // 32) * 32)), span.start)


def kernel_shift(kernel: Kernel, Z: FloatArray) -> FloatArray | None:
    """Return what is subtracted from the kernel values; it depends on kernel and prototypes."""
    K = np.asarray(kernel(Z, Z), dtype=np.float64)
    check_gram(K.diagonal())
    mean = K.mean(axis=0)
    return mean if float(mean.mean()) > 0.25 * float(np.trace(K)) / len(K) else None


Result = TypeVar("Result")

_PACKET = 8192  # rows of a cell that are collected before they are added up
_HELD = 2**23  # numbers that packets of all cells hold, unless they would be too small


class Piece(NamedTuple):
    """Some rows of a stream, each with the cell (fold, class) it belongs to.

    Attributes
    ----------
    X : array of shape (b, d)
        Rows.
    Y : array of shape (b, k)
        Targets.
    weight : array of shape (b,) or None
        None in all pieces of a stream, or in none.
    cell : int array of shape (b,)
        Which cell each row belongs to.
    position : int array of shape (b,)
        Where the rows stand in the data.
    label : int array of shape (b,)
        Class numbers; zeros where there are no classes.
    """

    X: FloatArray
    Y: FloatArray
    weight: FloatArray | None
    cell: IntArray
    position: IntArray
    label: IntArray

    def take(self, rows: slice) -> Piece:
        """Return some of the rows."""
        return Piece(*(None if a is None else a[rows] for a in self))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Packet:
    """Rows of one cell, as they were collected from a stream."""

    number: int
    rows: Piece


def packet_rows(n_cells: int, n_features: int) -> int:
    """Return the rows of a packet: 8,192, or fewer where many cells or long rows are held."""
    return max(1024, min(_PACKET, _HELD // max(1, n_cells * n_features)))


def route(pieces: Iterable[Piece], n_cells: int) -> Iterator[Packet]:
    """Collect the rows of every cell and pass them on in packets of equal size.

    Packets depend on the order of the rows, not on the pieces they came in: sums over them have
    the same bits for every chunking. Rows of cell -1 are left out. Memory: one packet per cell.
    """
    pieces = iter(pieces)
    first = next(pieces, None)
    if first is None:
        return
    size = packet_rows(n_cells, first.X.shape[1])
    packets: list[Piece | None] = [None] * n_cells
    filled = [0] * n_cells
    for piece in chain([first], pieces):
        order = np.argsort(piece.cell, kind="stable")
        cuts = np.searchsorted(piece.cell[order], np.arange(n_cells + 1))
        for c in range(n_cells):
            begin = int(cuts[c])
            while begin < cuts[c + 1]:
                into = packets[c]
                if into is None:
                    into = packets[c] = Piece(*(_room(array, size) for array in piece))
                taken = min(size - filled[c], int(cuts[c + 1]) - begin)
                rows = order[begin : begin + taken]
                for target, values in zip(into, piece, strict=True):
                    if target is not None and values is not None:
                        _gather(values, rows, target[filled[c] : filled[c] + taken])
                filled[c], begin = filled[c] + taken, begin + taken
                if filled[c] == size:
                    yield Packet(c, into)
                    packets[c], filled[c] = None, 0
    for c, rest in enumerate(packets):
        if rest is not None:
            yield Packet(c, rest.take(slice(filled[c])))


def _gather(values: Any, rows: IntArray, out: Any) -> None:
    """Copy some rows; without a mode NumPy would fill a copy of ``out`` first."""
    if values.dtype == out.dtype:
        np.take(values, rows, axis=0, out=out, mode="clip")
    else:
        out[...] = values[rows]


def _room(array: Any, size: int) -> Any:
    return None if array is None else np.empty((size, *array.shape[1:]), dtype=array.dtype)


def accumulate_stream(
    kernel: Kernel,
    pieces: Iterable[Piece],
    Z: FloatArray,
    n_cells: int,
    n_targets: int,
    *,
    budget: int = 2**31,
    threads: int = 1,
    source: Callable[[Piece], RowSource] | None = None,
) -> list[Moments]:
    """Return the moments of cells whose rows come in any order, in one pass.

    [DeBrabanter2010], algorithm 4: blocks of rows are read, mapped and added up. There the blocks
    are of one training set; here rows are collected per cell (fold, class) first, so that one pass
    serves all folds. The operations are those of `accumulate`. Memory m^2 per cell and for each of
    ``threads + 2`` packets on the way; it does not depend on the number of rows.

    Moments add: what several workers have read is added with ``+``.
    """
    Z = np.asarray(Z, dtype=np.float64)
    m = Z.shape[0]
    stored = packet_rows(n_cells, Z.shape[1]) * Z.shape[1] * (n_cells + threads + 2)
    stored += 2 * m * (m + n_targets + 1)
    one = _Pass(kernel, Z, n_cells, n_targets, budget, threads, stored)

    def work(packet: Packet) -> tuple[int, int, RowSums]:
        rows, n = packet.rows, len(packet.rows.X)
        read = ArraySource(rows.X, rows.Y, rows.weight) if source is None else source(rows)
        return packet.number, n, one.sums(read, slice(0, n))

    return one.moments(run_stream(work, route(pieces, n_cells), threads))


def map_outputs(
    kernel: Kernel,
    pieces: Iterable[Piece],
    Z: FloatArray,
    models: Sequence[tuple[FloatArray, FloatArray]],
    use: Callable[[int, Piece, FloatArray], Result],
    *,
    threads: int = 1,
) -> Iterator[tuple[int, Result]]:
    """Evaluate the models of every cell on its rows, in one pass, and use what they say."""
    kernel_values = kernel.against(np.asarray(Z, dtype=np.float64))
    flat = []
    for coef, b in models:
        c, m, k = coef.shape
        flat.append((np.ascontiguousarray(np.moveaxis(coef, 1, 0)).reshape(m, c * k), b))

    def work(packet: Packet) -> list[tuple[int, Result]]:
        coef, b = flat[packet.number]
        results = []
        for span in slices(len(packet.rows.X), BLOCK):
            part = packet.rows.take(span)
            values = (np.asarray(kernel_values(part.X)) @ coef).reshape(-1, *b.shape)
            outputs = np.ascontiguousarray(np.moveaxis(values, 1, 0)) + b[:, None, :]
            results.append((packet.number, use(packet.number, part, outputs)))
        return results

    for results in run_stream(work, route(pieces, len(models)), threads):
        yield from results
