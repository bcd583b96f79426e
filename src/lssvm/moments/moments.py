"""The moments of a set of rows; they add and subtract."""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

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
    is_numpy,
    take_rows,
    take_square,
    to_numpy,
)
from lssvm._core.blocks import run_blocks, small_problem
from lssvm._core.device import is_foreign
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError, NumericalWarning
from lssvm._core.lapack import congruence
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
            own = targets
            if not is_numpy(self.border):
                own = get_namespace(self.border).asarray(targets, device=device(self.border))
            cross = self.border[:, None] * own[None, :]
            target, squares = self.weight * own, self.weight * own**2
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


def nystrom_map(
    kernel: Kernel, Z: FloatArray, *, tol: float | None = None, gram: FloatArray | None = None
) -> NystromMap:
    r"""Build the Nystrom map of a kernel on prototypes.

    [DeBrabanter2010], eq. (5). The printed map divides by the square root of every eigenvalue.
    The gram :math:`G = K_{nm}^T K_{nm}` that it is applied to carries a rounding error of about
    :math:`\epsilon n / 10` in every direction (once near-constant kernels are shifted, see
    `lssvm.moments.Moments`), which becomes :math:`\epsilon n / (10 \lambda)` after the map,
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
    if tol is None:
        tol = float(np.sqrt(_NOISE * np.finfo(np.float64).eps / m))
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
            f"largest {lam[-1]:.3g}): negative directions are left out.",
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
                f"most {_FACTORED} prototypes, whose negative directions are left out."
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
