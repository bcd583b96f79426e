"""Cross-validated error against the number of support vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class SparsityPath:
    """How the cross-validated error falls with the number of support vectors.

    Attributes
    ----------
    sizes : int array of shape (s,)
        Ascending numbers of support vectors; the last is the number of prototypes.
    mean : array of shape (s,)
        Cross-validated mean squared error of the outputs, averaged over them.
    std_error : array of shape (s,)
        Its standard error over the folds.
    C : array of shape (s, k)
        The regularisation of every output at every size, chosen on the same folds.
    order : int array of shape (m,)
        Prototypes from the last to the first that leaves: those of any size are its beginning.
    constant : float
        The error without any support vector, of the bias alone.
    chosen : int
        The smallest size whose error is within one standard error of the smallest error.

    Notes
    -----
    The trade-off of section V of [Mall2014]_, measured on left-out rows of the training set rather
    than on the test set.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.reductions import SparsityPath
    >>> path = SparsityPath(np.array([1, 2, 3]), np.array([0.9, 0.31, 0.3]), np.full(3, 0.02),
    ...                     np.ones((3, 1)), np.array([2, 0, 1]), 1.0)
    >>> path.chosen, path.support(2)
    (2, array([0, 2]))
    """

    sizes: IntArray
    mean: FloatArray
    std_error: FloatArray
    C: FloatArray
    order: IntArray
    constant: float

    @property
    def best(self) -> int:
        """The size of the smallest error."""
        return int(self.sizes[np.argmin(self.mean)])

    @property
    def limit(self) -> float:
        """The smallest error plus its standard error."""
        i = int(np.argmin(self.mean))
        return float(self.mean[i] + self.std_error[i])

    @property
    def chosen(self) -> int:
        """The smallest size whose error is within one standard error of the smallest error."""
        return int(self.sizes[np.argmax(self.mean <= self.limit)])

    @property
    def supports(self) -> list[IntArray]:
        """The numbers of the prototypes that are left at every size, ascending."""
        return [self.support(int(size)) for size in self.sizes]

    def support(self, size: int) -> IntArray:
        """Return the numbers of the ``size`` prototypes that leave last, ascending."""
        return np.sort(self.order[:size])

    def C_at(self, size: int) -> FloatArray:
        """Return the C (k,) of a size: that of the nearest size of the path."""
        distance = np.abs(np.log(self.sizes) - np.log(size))
        return np.asarray(self.C[np.argmin(distance)])


def path_sizes(m: int, ratio: float = 0.75) -> IntArray:
    """Return the sizes of a path: from m downwards, each three quarters of the one before.

    Examples
    --------
    >>> from lssvm.reductions.sparsity import path_sizes
    >>> path_sizes(10)
    array([ 1,  2,  3,  4,  6,  8, 10])
    """
    sizes = [m]
    while sizes[-1] > 1:
        sizes.append(min(sizes[-1] - 1, round(sizes[-1] * ratio)))
    return np.array(sizes[::-1], dtype=np.intp)
