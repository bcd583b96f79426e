"""The output code: which class is -1, 0 or +1 in which binary problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class Code:
    r"""A multi-class output code: one row (code word) per class, one column per binary problem.

    Section 3.2 of [Suykens2002] solves a problem with :math:`n_C` classes as :math:`n_y` binary
    problems: class :math:`i` gets the code word :math:`[y_i^{(1)}; \dots; y_i^{(n_y)}]`, and a zero
    entry says that the rows of that class take no part in that binary problem.

    Parameters
    ----------
    matrix : array-like of shape (n_classes, n_problems)
        Entries -1, 0 and +1; stored as a read-only int8 array.
    name : str, default="custom"
        What the code is called in reports.

    Attributes
    ----------
    n_classes : int
        Number of classes (rows).
    n_problems : int
        Number of binary problems (columns).
    shares_rows : bool
        True if there is no zero entry: every binary problem then uses every row, so that all
        problems are columns of the right-hand side of one linear system.

    Raises
    ------
    InvalidInputError
        If an entry is not -1, 0 or +1, a column lacks one of the signs, two columns are equal or
        complementary (they pose the same binary problem), or two classes never have opposite signs.

    Notes
    -----
    That two code words differ is not enough when there are zeros: [+1, 0] and [+1, +1] differ, yet
    no binary problem learns to tell the two classes apart. The check asks for opposite signs in at
    least one column; for codes without zeros this is the same as distinct code words.

    Time is O(n_classes^2 n_problems), memory O(n_classes n_problems).

    Examples
    --------
    >>> from lssvm.codes import Code
    >>> code = Code([[-1, -1], [-1, 1], [1, 1]])
    >>> code.n_classes, code.n_problems, code.shares_rows
    (3, 2, True)
    """

    matrix: NDArray[np.int8]  # (n_classes, n_problems)
    name: str = "custom"

    def __post_init__(self) -> None:
        matrix = _as_sign_matrix(self.matrix)
        _check_columns(matrix)
        _check_code_words(matrix)
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)

    @property
    def n_classes(self) -> int:
        """Number of classes, the rows of ``matrix``."""
        return int(self.matrix.shape[0])

    @property
    def n_problems(self) -> int:
        """Number of binary problems, the columns of ``matrix``."""
        return int(self.matrix.shape[1])

    @property
    def shares_rows(self) -> bool:
        """True if every binary problem uses the rows of every class."""
        return bool(np.all(self.matrix != 0))

    def groups(self) -> list[IntArray]:
        """Return the columns of the problems that use the same classes, in ascending order."""
        columns_of: dict[bytes, list[int]] = {}
        for column, used in enumerate((self.matrix != 0).T):
            columns_of.setdefault(used.tobytes(), []).append(column)
        return [np.array(columns, dtype=np.intp) for columns in columns_of.values()]


@dataclass(frozen=True, eq=False)
class ProblemGroup:
    """Binary problems that use the same rows, to be solved together.

    Parameters
    ----------
    columns : ndarray of shape (n_columns,)
        The columns of the code matrix, ascending.
    rows : ndarray of shape (n_rows,) or None
        The rows of the training data, ascending; None means all of them.

    Examples
    --------
    >>> from lssvm.codes import groups, one_vs_one
    >>> groups(one_vs_one(3), [0, 2, 1, 0])[0].rows
    array([0, 2, 3])
    """

    columns: IntArray
    rows: IntArray | None


def targets(code: Code, labels: ArrayLike) -> FloatArray:
    """Return the targets of all binary problems.

    Parameters
    ----------
    code : Code
        The output code.
    labels : array-like of shape (n,)
        Class numbers, integers in 0 .. n_classes - 1.

    Returns
    -------
    ndarray of shape (n, n_problems)
        The code word of every row's class: -1, +1, or 0 where the row takes no part.

    Notes
    -----
    Time and memory are O(n n_problems). These are the :math:`y_k^{(i)}` of
    [Suykens2002, eq. (3.9)].

    Examples
    --------
    >>> from lssvm.codes import one_vs_all, targets
    >>> targets(one_vs_all(3), [2, 0])
    array([[-1., -1.,  1.],
           [ 1., -1., -1.]])
    """
    return code.matrix.astype(np.float64)[_as_labels(code, labels)]


def groups(code: Code, labels: ArrayLike) -> list[ProblemGroup]:
    """Split the binary problems into groups that use the same rows.

    Parameters
    ----------
    code : Code
        The output code.
    labels : array-like of shape (n,)
        Class numbers, integers in 0 .. n_classes - 1.

    Returns
    -------
    list of ProblemGroup
        One group, with ``rows=None``, when ``code.shares_rows``. Otherwise one group for each set
        of columns with the same zero pattern, in the order of their first columns: for one-vs-one,
        one group per pair of classes. A class without a row in ``labels`` contributes nothing.

    Notes
    -----
    This is the decomposition of the block-diagonal system [Suykens2002, eq. (3.12)]; blocks that
    have the same rows, and hence the same matrix once the labels are moved to the right-hand side,
    are kept together. Time and memory are O(n log n) plus the rows returned (for one-vs-one,
    n (n_classes - 1) in all).

    Examples
    --------
    >>> from lssvm.codes import groups, one_vs_all, one_vs_one
    >>> [group.rows.tolist() for group in groups(one_vs_one(3), [0, 1, 2, 1])]
    [[0, 1, 3], [0, 2], [1, 2, 3]]
    >>> groups(one_vs_all(3), [0, 1, 2, 1])
    [ProblemGroup(columns=array([0, 1, 2]), rows=None)]
    """
    numbers = _as_labels(code, labels)
    order = np.argsort(numbers, kind="stable")
    starts = np.searchsorted(numbers[order], np.arange(1, code.n_classes))
    members = np.split(order, starts)  # per class, its rows in ascending order
    parted = []
    for columns in code.groups():
        classes = np.flatnonzero(code.matrix[:, columns[0]])
        rows = None
        if len(classes) < code.n_classes:
            rows = np.sort(np.concatenate([members[c] for c in classes]), kind="stable")
        parted.append(ProblemGroup(columns, rows))
    return parted


def _as_labels(code: Code, labels: ArrayLike) -> IntArray:
    array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidInputError(
            f"labels have shape {array.shape} and type {array.dtype}, but class numbers are "
            "needed, a one-dimensional array of integers: encode the classes as 0, 1, ... first."
        )
    if array.size and (array.min() < 0 or array.max() >= code.n_classes):
        raise InvalidInputError(
            f"labels run from {array.min()} to {array.max()}, but the code has {code.n_classes} "
            f"classes: give class numbers in 0 .. {code.n_classes - 1}."
        )
    return array.astype(np.intp, copy=False)


def _as_sign_matrix(matrix: ArrayLike) -> NDArray[np.int8]:
    try:
        array = np.asarray(matrix)
    except ValueError:  # rows of different length
        array = np.empty(0, dtype=object)
    if array.ndim != 2 or array.dtype.kind not in "iuf" or array.shape[0] < 2 or array.size == 0:
        raise InvalidInputError(
            f"A code matrix of shape {array.shape} and type {array.dtype} is not usable: give "
            "numbers of shape (n_classes, n_problems) with at least two classes and one problem."
        )
    if not np.isin(array, (-1, 0, 1)).all():
        raise InvalidInputError(
            "A code matrix holds other entries than -1, 0 and +1: use -1 and +1 for the two sides "
            "of a binary problem and 0 for a class that takes no part in it."
        )
    return np.array(array, dtype=np.int8, order="C")


def _check_columns(matrix: NDArray[np.int8]) -> None:
    one_sided = np.flatnonzero((matrix.min(axis=0) > -1) | (matrix.max(axis=0) < 1))
    if one_sided.size:
        raise InvalidInputError(
            f"Column {one_sided[0]} of the code matrix does not hold both -1 and +1, so it is no "
            "binary problem: remove it, or put at least one class on each side."
        )
    first = np.argmax(matrix != 0, axis=0)
    oriented = matrix * matrix[first, np.arange(matrix.shape[1])]  # first non-zero entry is +1
    seen: dict[bytes, int] = {}
    for column, entries in enumerate(oriented.T):
        earlier = seen.setdefault(entries.tobytes(), column)
        if earlier != column:
            raise InvalidInputError(
                f"Columns {earlier} and {column} of the code matrix are equal or complementary: "
                "they pose the same binary problem twice. Remove one of them."
            )


def _check_code_words(matrix: NDArray[np.int8]) -> None:
    positive = (matrix > 0).astype(np.float32)
    negative = (matrix < 0).astype(np.float32)
    step = 1 + 2**18 // len(matrix)
    for start in range(0, len(matrix), step):
        rows = slice(start, start + step)
        # (step, n_classes): columns with opposite signs in the two classes
        opposed = positive[rows] @ negative.T + negative[rows] @ positive.T
        together = np.argwhere(opposed == 0) + np.array([start, 0])
        together = together[together[:, 0] < together[:, 1]]
        if len(together):
            i, j = together[0]
            raise InvalidInputError(
                f"Classes {i} and {j} have opposite signs in no column of the code matrix, so "
                "nothing tells them apart: add a column with -1 for one of them and +1 for the "
                "other."
            )
