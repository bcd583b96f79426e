"""The moments of a set of rows; they add and subtract."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lssvm._core.arrays import (
    Array,
    FloatArray,
    IntArray,
    device,
    get_namespace,
    is_numpy,
    take_rows,
    take_square,
    to_numpy,
)
from lssvm._core.errors import InvalidInputError

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
        """Return the moments of kernel rows ``K`` (n, m) and targets ``Y`` (n, k).

        Parameters
        ----------
        K : array of shape (n, m)
            Kernel values of the rows and the prototypes.
        Y : array of shape (n, k)
            Targets.
        weight : array of shape (n,), optional
            Weights of the rows; by default all are one.
        """
        s = np.ones(len(K)) if weight is None else weight
        SK = K * s[:, None]
        return cls(SK.T @ K, SK.sum(0), SK.T @ Y, s @ Y, s @ Y**2, float(s.sum()), len(K))

    @classmethod
    def zero(cls, m: int, k: int, shift: FloatArray | None = None) -> Moments:
        """Return the moments of no rows.

        Parameters
        ----------
        m : int
            Number of prototypes.
        k : int
            Number of targets.
        shift : array of shape (m,), optional
            What is subtracted from kernel values; by default nothing.
        """
        z = np.zeros
        return cls(z((m, m)), z(m), z((m, k)), z(k), z(k), 0.0, 0, shift)

    @classmethod
    def of_sums(cls, gram: Array, side: Array, corner: Array, n: int, shift: Array) -> Moments:
        """Return the moments from sums of K^T K, K^T [Y, 1] and [Y, 1]^T [Y, 1] over n rows.

        Parameters
        ----------
        gram : array of shape (m, m)
            Sum of K^T K.
        side : array of shape (m, k + 1)
            Sum of K^T [Y, 1].
        corner : array of shape (k + 1, k + 1)
            Sum of [Y, 1]^T [Y, 1].
        n : int
            Rows counted.
        shift : array of shape (m,)
            What was subtracted from kernel values.
        """
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
        """Return the moments for the first ``size`` prototypes only.

        Parameters
        ----------
        size : int
            How many prototypes stay.
        """
        return self.subset(np.arange(size))

    def subset(self, index: IntArray) -> Moments:
        """Return the moments for some prototypes only, in the order given.

        Parameters
        ----------
        index : int array of shape (m',)
            Numbers of the prototypes that stay.
        """
        return replace(
            self,
            gram=take_square(self.gram, index),
            border=take_rows(self.border, index),
            cross=take_rows(self.cross, index),
            shift=None if self.shift is None else take_rows(self.shift, index),
        )

    def outputs(self, columns: IntArray) -> Moments:
        """Return the moments for some targets only.

        Parameters
        ----------
        columns : int array of shape (q,)
            Numbers of the targets that stay.
        """
        cross = self.cross
        return replace(
            self,
            cross=cross[:, columns] if is_numpy(cross) else take_rows(cross.T, columns).T,
            target=take_rows(self.target, columns),
            squares=take_rows(self.squares, columns),
        )

    def shifted(self, shift: FloatArray | None) -> Moments:
        """Return the moments of K(x, Z) - ``shift`` (m,); None: of K(x, Z) itself.

        Parameters
        ----------
        shift : array of shape (m,) or None
            What is to be subtracted from kernel values.

        Notes
        -----
        Exact but for rounding, which is that of the larger of the two grams. O(m^2).
        """
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
        """Return the moments of the features T^T k(x), given their gram.

        Parameters
        ----------
        gram : array of shape (r, r)
            T^T gram T; its lower triangle is read.
        T : array of shape (m, r)
            From kernel values to features.
        """
        if is_numpy(gram):
            gram = np.tril(gram) + np.tril(gram, -1).T
        shift = None if self.shift is None else T.T @ self.shift
        border, cross = T.T @ self.border, T.T @ self.cross
        return replace(self, gram=gram, border=border, cross=cross, shift=shift)

    def scaled(self, factor: float, targets: FloatArray | None = None) -> Moments:
        """Return the moments with all weights multiplied by ``factor``.

        Parameters
        ----------
        factor : float
            Of the weights.
        targets : array of shape (k,), optional
            New targets, the same for every row, as those of the rows of one class are.
        """
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

        Parameters
        ----------
        coef : array of shape (c, m, k)
            Coefficients of every candidate.
        intercept : array of shape (c, k)
            Bias of every candidate.

        Returns
        -------
        array of shape (c, k)

        Notes
        -----
        2 m^2 c k operations.
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
    """Return the sum of moments, added in the order given.

    Parameters
    ----------
    parts : iterable of Moments
        At least one; of the same prototypes and targets.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Moments, total
    >>> total([Moments.of(np.eye(2), np.ones((2, 1)))] * 3).n
    6
    """
    todo = iter(parts)
    first = next(todo)
    xp, weight, n = get_namespace(first.gram), first.weight, first.n
    sums = {name: xp.asarray(getattr(first, name), copy=True) for name in _ARRAYS}
    for moments in todo:
        for name in _ARRAYS:
            sums[name] += getattr(moments, name)
        weight, n = weight + moments.weight, n + moments.n
    return replace(first, weight=weight, n=n, **sums)
