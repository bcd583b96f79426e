"""The moments of a set of rows; they add and subtract."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.namespace import (
    Array,
    device,
    get_namespace,
    is_numpy,
    take_rows,
    take_square,
    to_numpy,
)


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

    Notes
    -----
    The moments of a union are the sum, those of what is left without some rows the difference
    ([DeBrabanter2010]_, eqs. (20), (21) and (24)). Memory m^2 + m (k + 1) numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Moments
    >>> K, Y = np.eye(2), np.array([[1.0], [3.0]])
    >>> both = Moments.of(K, Y)
    >>> (both - Moments.of(K[:1], Y[:1])).target, (both + both).n, sum([both, both, both]).n
    (array([3.]), 4, 6)
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

    @property
    def size(self) -> int:
        """Number of prototypes m."""
        return int(self.gram.shape[0])

    def __sizeof__(self) -> int:
        # Dask, Ray and others ask for it to decide what to move where.
        arrays = (self.gram, self.border, self.cross, self.target, self.squares, self.shift)
        return 200 + sum(array.nbytes for array in arrays if array is not None)

    def __add__(self, other: Any) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        self._match(other)
        return Moments(
            self.gram + other.gram,
            self.border + other.border,
            self.cross + other.cross,
            self.target + other.target,
            self.squares + other.squares,
            self.weight + other.weight,
            self.n + other.n,
            self.shift,
        )

    def __radd__(self, other: Any) -> Moments:
        # sum() starts from 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: Any) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        self._match(other)
        return Moments(
            self.gram - other.gram,
            self.border - other.border,
            self.cross - other.cross,
            self.target - other.target,
            self.squares - other.squares,
            self.weight - other.weight,
            self.n - other.n,
            self.shift,
        )

    def _match(self, other: Moments) -> None:
        alike = self.shift is other.shift or np.array_equal(
            np.zeros(self.size) if self.shift is None else to_numpy(self.shift),
            np.zeros(self.size) if other.shift is None else to_numpy(other.shift),
        )
        if self.cross.shape != other.cross.shape or not alike:
            raise InvalidInputError(
                f"Moments of shapes {self.cross.shape} and {other.cross.shape} do not add: they "
                "need the same prototypes and the same targets."
            )

    def prefix(self, size: int) -> Moments:
        """Return the moments for the first ``size`` prototypes only."""
        return self._part(slice(size), (slice(size), slice(size)))

    def subset(self, index: NDArray[np.intp]) -> Moments:
        """Return the moments for some prototypes only, in the order given."""
        if is_numpy(self.gram):
            return self._part(index, np.ix_(index, index))
        return Moments(
            take_square(self.gram, index),
            take_rows(self.border, index),
            take_rows(self.cross, index),
            self.target,
            self.squares,
            self.weight,
            self.n,
            None if self.shift is None else take_rows(self.shift, index),
        )

    def _part(self, rows: Any, square: Any) -> Moments:
        return Moments(
            self.gram[square],
            self.border[rows],
            self.cross[rows, ...],
            self.target,
            self.squares,
            self.weight,
            self.n,
            None if self.shift is None else self.shift[rows],
        )

    def outputs(self, columns: NDArray[np.intp]) -> Moments:
        """Return the moments for some targets only."""
        return Moments(
            self.gram,
            self.border,
            self.cross[:, columns] if is_numpy(self.cross) else take_rows(self.cross.T, columns).T,
            take_rows(self.target, columns),
            take_rows(self.squares, columns),
            self.weight,
            self.n,
            self.shift,
        )

    def shifted(self, shift: FloatArray | None) -> Moments:
        """Return the moments of K(x, Z) - ``shift`` (m,); None: of K(x, Z) itself.

        Notes
        -----
        Exact but for rounding, which is that of the larger of the two grams. O(m^2).
        """
        zero = np.zeros(self.size)
        change = (zero if self.shift is None else self.shift) - (zero if shift is None else shift)
        if not np.any(change):
            return self
        border = self.border + self.weight * change
        return Moments(
            self.gram + np.outer(change, self.border) + np.outer(border, change),
            border,
            self.cross + np.outer(change, self.target),
            self.target,
            self.squares,
            self.weight,
            self.n,
            shift,
        )

    def plain(self) -> Moments:
        """Return the moments of K(x, Z) itself, the shift undone."""
        return self.shifted(None)

    def mapped(self, gram: FloatArray, T: FloatArray) -> Moments:
        """Return the moments of the features T^T k(x), given their gram.

        Parameters
        ----------
        gram : array of shape (r, r)
            T^T gram T; its lower triangle is read.
        T : array of shape (m, r)
        """
        if is_numpy(gram):
            gram = np.tril(gram) + np.tril(gram, -1).T
        return Moments(
            gram,
            T.T @ self.border,
            T.T @ self.cross,
            self.target,
            self.squares,
            self.weight,
            self.n,
            None if self.shift is None else T.T @ self.shift,
        )

    def scaled(self, factor: float, targets: FloatArray | None = None) -> Moments:
        """Return the moments with all weights multiplied by ``factor``.

        Parameters
        ----------
        factor : float
        targets : array of shape (k,), optional
            New targets, the same for every row, as those of the rows of one class are.
        """
        if targets is None:
            cross, target, squares = self.cross, self.target, self.squares
        else:
            own = _alike(targets, self.border)
            cross = self.border[:, None] * own[None, :]
            target, squares = self.weight * own, self.weight * own**2
        return Moments(
            factor * self.gram,
            factor * self.border,
            factor * cross,
            factor * target,
            factor * squares,
            factor * self.weight,
            self.n,
            self.shift,
        )

    def on_host(self) -> Moments:
        """Return the same as NumPy arrays, where they are on a device."""
        if is_numpy(self.gram):
            return self
        return Moments(
            to_numpy(self.gram),
            to_numpy(self.border),
            to_numpy(self.cross),
            to_numpy(self.target),
            to_numpy(self.squares),
            self.weight,
            self.n,
            None if self.shift is None else to_numpy(self.shift),
        )

    def squared_error(self, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        r"""Return the weighted sum of squared errors of candidates, without a pass over the data.

        .. math:: \sum_i s_i (y_i - \alpha^T k(x_i) - b)^2

        Parameters
        ----------
        coef : array of shape (c, m, k)
        intercept : array of shape (c, k)

        Returns
        -------
        array of shape (c, k)

        Notes
        -----
        2 m^2 c k operations.
        """
        c, m, k = coef.shape
        flat = np.ascontiguousarray(np.moveaxis(coef, 1, 0)).reshape(m, c * k)
        fitted = (self.gram @ flat).reshape(m, c, k)
        columns = flat.reshape(m, c, k)
        if self.shift is not None:
            intercept = intercept + np.einsum("mck,m->ck", columns, self.shift)
        quadratic = np.einsum("mck,mck->ck", columns, fitted - 2.0 * self.cross[:, None, :])
        shift = np.einsum("mck,m->ck", columns, self.border)
        linear = 2.0 * intercept * (shift - self.target)
        return np.asarray(self.squares + quadratic + linear + self.weight * intercept**2)


def total(parts: Iterable[Moments]) -> Moments:
    """Return the sum of moments, added in the order given.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Moments, total
    >>> total([Moments.of(np.eye(2), np.ones((2, 1)))] * 3).n
    6
    """
    todo = iter(parts)
    first = next(todo)
    copy = _copier(first.gram)
    gram, border, cross = copy(first.gram), copy(first.border), copy(first.cross)
    target, squares, weight, n = copy(first.target), copy(first.squares), first.weight, first.n
    for part in todo:
        gram += part.gram
        border += part.border
        cross += part.cross
        target += part.target
        squares += part.squares
        weight, n = weight + part.weight, n + part.n
    return Moments(gram, border, cross, target, squares, weight, n, first.shift)


def _copier(like: Array) -> Callable[[Array], Array]:
    if is_numpy(like):
        return np.copy
    return partial(get_namespace(like).asarray, copy=True)


def _alike(values: FloatArray, like: Array) -> Array:
    """Return ``values`` where ``like`` is."""
    if is_numpy(like):
        return values
    return get_namespace(like).asarray(values, device=device(like))
