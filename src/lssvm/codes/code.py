"""The output code: which class is -1, 0 or +1 in which binary problem."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lssvm._core.arrays import AnyArray, Array, FloatArray, IntArray, device, get_namespace
from lssvm._core.errors import InvalidInputError, not_known
from lssvm._core.random import RandomState, as_generator


@dataclass(frozen=True, eq=False)
class Code:
    r"""A multi-class output code: one row (code word) per class, one column per binary problem.

    Section 3.2 of [Suykens2002] solves a problem with :math:`n_C` classes as :math:`n_y` binary
    problems: class :math:`i` gets the code word :math:`[y_i^{(1)}; \dots; y_i^{(n_y)}]`, and a zero
    entry means that the rows of that class are not part of that binary problem.

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
    no binary problem learns to separate the two classes. The check requires opposite signs in at
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
class Coding:
    """How classes become targets, and outputs become classes and probabilities.

    What a classifier takes as ``multiclass``; a code alone stands for ``Coding(code)``.

    Parameters
    ----------
    code : str, array or Code, default="auto"
        Output code: "auto", "ovo", "ova", "moc", "moc-counting" or "ecoc", see `make_code`.
    decoding : {"hamming", "loss"} or None, default=None
        From outputs to classes; None takes votes for one-vs-one and loss decoding otherwise.
    targets : {"label", "fisher"} or (t1, t2), default="label"
        Targets +1 and -1; "fisher" takes +N/N1 and -N/N2 (section 3.3 of [Suykens2002]_), a
        pair +t1 and -t2 of eq. (3.23). Greedy models have the first.
    threshold : {"zero", "midpoint", "cv"}, default="zero"
        Threshold between the two classes of a binary problem. "midpoint" (dual models only) is
        half-way between the mean outputs of the two classes (section 3.3.1 of [Suykens2002]_). "cv"
        has the fewest errors of out-of-fold outputs: those of the tuning, or in a dual model of
        leave-one-out; a fixed-size model needs a tuned C or gamma, folds of several rows,
        calibration and no reduction. Both help where the classes have different shapes or sizes.
    calibration : {"auto", "sigmoid", "isotonic"} or None, default="auto"
        How `predict_proba` turns scores of rows that the model had not seen into probabilities;
        "auto" takes the sigmoid for fewer than 1,000 rows, else the better of the two. None: there
        is no `predict_proba`.
    loss : "squared" or lssvm.solvers.DifferentiableLoss, default="squared"
        What the binary problems minimise, such as ``Logistic()``; probabilities are then not
        calibrated, and the targets are "label". Greedy models have the first.

    Examples
    --------
    >>> from lssvm import LSSVC
    >>> from lssvm.codes import Coding
    >>> from lssvm.datasets import load_balance
    >>> balance = load_balance()
    >>> model = LSSVC(multiclass=Coding("ova", targets="fisher", calibration=None))
    >>> model = model.fit(balance.data, balance.target)
    >>> model.code_.name, hasattr(model, "predict_proba")
    ('ova', False)
    """

    code: Any = "auto"
    decoding: str | None = None
    targets: Any = "label"
    threshold: str = "zero"
    calibration: str | None = "auto"
    loss: Any = "squared"

    @classmethod
    def of(cls, multiclass: Any) -> Coding:
        """Return what ``multiclass`` of an estimator stands for.

        Parameters
        ----------
        multiclass : str, array, Code or Coding
            As given to an estimator.
        """
        return multiclass if isinstance(multiclass, cls) else cls(multiclass)

    @property
    def is_auto(self) -> bool:
        """Whether no output code is named."""
        return isinstance(self.code, str) and self.code == "auto"

    def is_open(self, n_classes: int) -> bool:
        """Return whether data are to choose the code for so many classes.

        Parameters
        ----------
        n_classes : int
            Number of classes.
        """
        return self.is_auto and ONE_VS_ONE_UP_TO < n_classes <= PAIRS_UP_TO


@dataclass(frozen=True, eq=False)
class ProblemGroup:
    """Binary problems that use the same rows, to be solved together."""

    columns: IntArray
    rows: IntArray | None


def targets(code: Code, labels: ArrayLike) -> FloatArray:
    """Return the targets of all binary problems.

    Time and memory are O(n n_problems). These are the :math:`y_k^{(i)}` of
    [Suykens2002, eq. (3.9)].
    """
    return code.matrix.astype(np.float64)[_as_labels(code, labels)]


def groups(code: Code, labels: ArrayLike) -> list[ProblemGroup]:
    """Split the binary problems into groups that use the same rows.

    This is the decomposition of the block-diagonal system [Suykens2002, eq. (3.12)]; blocks that
    have the same rows, and hence the same matrix once the labels are moved to the right-hand side,
    are kept together. Time and memory are O(n log n) plus the rows returned (for one-vs-one,
    n (n_classes - 1) in all).
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
            f"Column {one_sided[0]} of the code matrix does not have both -1 and +1, so it is not "
            "a binary problem: remove it, or put at least one class on each side."
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
                "nothing distinguishes them: add a column with -1 for one of them and +1 for the "
                "other."
            )


_EXHAUSTIVE_UP_TO = 7  # classes: 2^6 - 1 = 63 binary problems
ONE_VS_ONE_UP_TO = 10
"""Classes up to which "auto" is one-vs-one: 45 binary problems, each on a fifth of the rows."""
PAIRS_UP_TO = 60
"""Classes beyond which pairs are not tried: 1,770 binary problems."""
_POOL = 1024  # candidate columns from which a random code is put together


def one_vs_one(k: int) -> Code:
    """Return the code with one binary problem for each pair of classes.

    Parameters
    ----------
    k : int
        Number of classes, at least 2.

    Returns
    -------
    Code
        k (k - 1) / 2 columns, in the order (0, 1), (0, 2), ..., (k - 2, k - 1). Column (i, j) is -1
        for class i, +1 for class j and 0 for all others, which take no part.

    Notes
    -----
    [Suykens2002, section 3.2]. Its example for three classes, [-1; +1; 0], [-1; 0; +1] and
    [0; -1; +1], lists the *columns* of this code. They are called code words there, but read as
    rows they would give binary problems with one sign only. Time and memory are O(k^3).

    Examples
    --------
    >>> from lssvm.codes import one_vs_one
    >>> one_vs_one(3).matrix
    array([[-1, -1,  0],
           [ 1,  0, -1],
           [ 0,  1,  1]], dtype=int8)
    """
    k = _check_n_classes(k)
    if k == 2:
        return _binary()
    first, second = np.triu_indices(k, 1)
    column = np.arange(len(first))
    matrix = np.zeros((k, len(first)), dtype=np.int8)
    matrix[first, column] = -1
    matrix[second, column] = 1
    return Code(matrix, "ovo")


def one_vs_all(k: int) -> Code:
    """Return the code with one binary problem per class: that class (+1) against the rest (-1).

    Parameters
    ----------
    k : int
        Number of classes, at least 2.

    Returns
    -------
    Code
        k columns; the single column [-1, +1] for k = 2, where the second would be its complement.

    Notes
    -----
    [Suykens2002, section 3.2]. Time and memory are O(k^3) and O(k^2).

    Examples
    --------
    >>> from lssvm.codes import one_vs_all
    >>> one_vs_all(3).matrix
    array([[ 1, -1, -1],
           [-1,  1, -1],
           [-1, -1,  1]], dtype=int8)
    """
    k = _check_n_classes(k)
    if k == 2:
        return _binary()
    return Code(2 * np.eye(k, dtype=np.int8) - 1, "ova")


def minimum_output(k: int, *, balanced: bool = True) -> Code:
    r"""Return the shortest code: ceil(log2(k)) binary problems.

    Parameters
    ----------
    k : int
        Number of classes, at least 2.
    balanced : bool, default=True
        Whether words are chosen so that every problem has as many classes on one side as on the
        other. False counts in binary: class i has the digits of i,
        :math:`i = \sum_s 2^{n_y - s} (y_i^{(s)} + 1) / 2`.

    Returns
    -------
    Code
        ceil(log2(k)) columns. Each has, balanced, as many classes on one side as on the other (one
        more if k is odd).

    Notes
    -----
    Minimum output coding, MOC [Suykens2002, section 3.2]. The text leaves open which k of the
    2^n_y words are used. Here half of them are the complements of the other half, which balances
    every column, and that half is chosen word by word: the next word is the v with the smallest
    sum of (u . v)^2 over the words u so far. Its columns are thereby nearly uncorrelated, where
    binary counting gives almost equal ones (for k = 2^r + 1, two that differ in one class). Which
    is better depends on the classes: a column is as hard as the classes on its sides are alike.
    Time is O(k^2 log k).

    Examples
    --------
    >>> from lssvm.codes import minimum_output
    >>> minimum_output(5).matrix
    array([[-1, -1, -1],
           [-1, -1,  1],
           [-1,  1, -1],
           [ 1,  1,  1],
           [ 1,  1, -1]], dtype=int8)
    >>> minimum_output(3, balanced=False).matrix
    array([[-1, -1],
           [-1,  1],
           [ 1, -1]], dtype=int8)
    """
    k = _check_n_classes(k)
    if k == 2:
        return _binary()
    n_problems = (k - 1).bit_length()  # ceil(log2(k))
    if not balanced:
        return Code(_binary_digits(np.arange(k), n_problems), "moc-counting")
    words = _binary_digits(np.arange(2 ** (n_problems - 1)), n_problems)  # those that start with -1
    signs = words.astype(np.float64)
    likeness = np.zeros(len(words))
    chosen: list[int] = []
    for _ in range((k + 1) // 2):
        chosen.append(int(np.argmin(likeness)))
        likeness += (signs @ signs[chosen[-1]]) ** 2
        likeness[chosen[-1]] = np.inf
    return Code(np.vstack([words[chosen], -words[chosen[: k // 2]]]), "moc")


def error_correcting(
    k: int, n_problems: int | None = None, random_state: RandomState = None
) -> Code:
    """Return an error-correcting code: redundant binary problems, far-apart code words.

    Parameters
    ----------
    k : int
        Number of classes, at least 2.
    n_problems : int or None, default=None
        Number of columns, from ceil(log2(k)) to 2^(k - 1) - 1. None means all 2^(k - 1) - 1
        different columns for up to 7 classes, and ceil(10 log2(k)) columns for more.
    random_state : int, Generator, RandomState or None, default=None
        Decides the columns when they are not all used.

    Returns
    -------
    Code
        A code without zeros. Decoding by Hamming distance corrects floor((d - 1) / 2) wrong binary
        answers, where d is the smallest distance between two code words; the exhaustive code has
        d = 2^(k - 2).

    Notes
    -----
    Error-correcting output codes are described in [Suykens2002, section 3.2] and come from
    [Dietterich1995], whose exhaustive code this is. It asks of a code that both its rows and its
    columns (also their complements) be far apart, since binary classifiers of similar columns make
    the same errors.

    Otherwise the code starts with the columns of `minimum_output` under a random order of the
    classes, so that all code words differ, and grows column by column. Each step takes, among all
    columns or about 1000 random balanced ones, the column c with the smallest

        sum_{i != j} w_ij c_i c_j / sum_{i != j} w_ij + max_l abs(c . c_l) / k,  w_ij = exp(-d_ij),

    where d_ij is the distance of the code words so far and c_l are the columns so far: the first
    term separates the closest pairs of classes, the second keeps away from the columns there are.
    With k = 30 and 50 columns this gives a distance of about 22; the best of 1000 random codes, the
    usual recipe, has 16.

    Time is O(n_problems k^2 max(1024, 8 n_problems)), memory O(k max(1024, 8 n_problems) + k^2).

    Examples
    --------
    >>> from lssvm.codes import error_correcting
    >>> error_correcting(4).matrix
    array([[ 1,  1,  1,  1,  1,  1,  1],
           [-1, -1, -1, -1,  1,  1,  1],
           [-1, -1,  1,  1, -1, -1,  1],
           [-1,  1, -1,  1, -1,  1, -1]], dtype=int8)
    >>> error_correcting(20, random_state=0).n_problems
    44
    """
    k = _check_n_classes(k)
    most = 2 ** (k - 1) - 1
    if n_problems is None:
        n_problems = most if k <= _EXHAUSTIVE_UP_TO else math.ceil(10 * math.log2(k))
    least = (k - 1).bit_length()  # ceil(log2(k))
    if not _is_integer(n_problems) or not least <= n_problems <= most:
        raise InvalidInputError(
            f"n_problems={n_problems!r} is not usable for {k} classes: {least} columns are needed "
            f"to distinguish the classes and only 2^{k - 1} - 1 different ones exist. Give an "
            "integer in between, or None."
        )
    if k == 2:
        return _binary()
    if n_problems == most:
        return Code(_all_columns(k), "ecoc")
    return Code(_grow(k, int(n_problems), as_generator(random_state)), "ecoc")


def make_code(name: str | ArrayLike | Code, k: int, random_state: RandomState = None) -> Code:
    """Return the code that a name, an array or a code stands for.

    Parameters
    ----------
    name : str, array-like of shape (k, n_problems) or Code
        "ovo" is `one_vs_one`, "ova" is `one_vs_all`, "moc" is `minimum_output`, "moc-counting" the
        same by binary counting (``balanced=False``) and "ecoc" is `error_correcting`. "auto" is
        one-vs-one for up to 10 classes and one-vs-all for more (classifiers with "auto" then
        compare both on a sample). An array is checked as in `Code`.
    k : int
        Number of classes, at least 2. With two classes every name gives the one column [-1, +1].
    random_state : int, Generator, RandomState or None, default=None
        Used by "ecoc" with more than 7 classes.

    Returns
    -------
    Code

    Notes
    -----
    One-vs-one gave the best average accuracy in the comparison of [Suykens2002, section 3.2 and
    Table 3.4]. Time and memory are those of the code that is named.

    Examples
    --------
    >>> from lssvm.codes import make_code
    >>> make_code("auto", 3).name, make_code("auto", 26).name, make_code("ecoc", 2).name
    ('ovo', 'ova', 'binary')
    """
    k = _check_n_classes(k)
    if isinstance(name, str):
        if name == "auto":
            name = "ovo" if k <= ONE_VS_ONE_UP_TO else "ova"
        if name == "ecoc":
            return error_correcting(k, random_state=random_state)
        constructors: dict[str, Callable[[int], Code]] = {
            "ovo": one_vs_one,
            "ova": one_vs_all,
            "moc": minimum_output,
            "moc-counting": partial(minimum_output, balanced=False),
        }
        if name in constructors:
            return constructors[name](k)
        raise InvalidInputError(
            f"The output code {name!r} is not known: use 'auto', 'ovo', 'ova', 'moc', "
            "'moc-counting', 'ecoc', a Code, or an array of shape (n_classes, n_problems) with "
            "entries -1, 0 and +1."
        )
    code = name if isinstance(name, Code) else Code(cast("NDArray[np.int8]", name))
    if code.n_classes != k:
        raise InvalidInputError(
            f"The output code has {code.n_classes} rows but there are {k} classes: give a matrix "
            "with one row per class."
        )
    return code


def _check_n_classes(k: int) -> int:
    if not _is_integer(k) or k < 2:
        raise InvalidInputError(
            f"An output code for {k!r} classes is not possible: the number of classes must be an "
            "integer of at least 2. Check that the labels hold more than one class."
        )
    return int(k)


def _is_integer(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _binary() -> Code:
    return Code(np.array([[-1], [1]], dtype=np.int8), "binary")


def _binary_digits(values: NDArray[np.integer[Any]], n_digits: int) -> NDArray[np.int8]:
    """Write integers in binary, most significant digit first, with digits -1 and +1."""
    digits = (values[:, None] >> np.arange(n_digits - 1, -1, -1)) & 1
    return (2 * digits - 1).astype(np.int8)  # (n_values, n_digits)


def _all_columns(k: int) -> NDArray[np.int8]:
    """Return all (k, 2^(k-1) - 1) columns up to complement, as [Dietterich1995] orders them."""
    rest = _binary_digits(np.arange(2 ** (k - 1) - 1), k - 1).T
    return np.vstack([np.ones_like(rest[:1]), rest])


def _candidates(k: int, n_problems: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return (n_candidates, k) columns in random order: all there are, or random balanced ones."""
    size = max(_POOL, 8 * n_problems)
    if 2 ** (k - 1) - 1 <= size:
        return rng.permutation(_all_columns(k).T.astype(np.float32), axis=0)
    balanced = np.where(np.arange(k) < k // 2, 1, -1).astype(np.float32)
    return rng.permuted(np.tile(balanced, (size, 1)), axis=1)


def _grow(k: int, n_problems: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Put an error-correcting code together, column by column; see `error_correcting`."""
    start = minimum_output(k).matrix[rng.permutation(k)].astype(np.float32)
    pool = _candidates(k, n_problems, rng)
    agreement = start @ start.T  # (k, k): columns so far minus twice the distance of two words
    closest = np.abs(pool @ start).max(axis=1)  # (n_candidates,): k for a column we have already
    columns = list(start.T)
    np.fill_diagonal(agreement, -np.inf)
    while len(columns) < n_problems:
        weight = np.exp((agreement - agreement.max()) / 2)  # 1 for the closest pairs, 0 for i = j
        cost = np.sum(pool @ weight * pool, axis=1) / weight.sum() + closest / k
        cost[closest == k] = np.inf
        column = pool[np.argmin(cost)]
        columns.append(column)
        agreement += np.outer(column, column)
        closest = np.maximum(closest, np.abs(pool @ column))
    return np.column_stack(columns).astype(np.int8)


_LOSSES: dict[str, Callable[[Array, Array], Array]] = {  # L(z) of the margin z = m s
    "exponential": lambda xp, z: xp.exp(-z),
    "linear": lambda xp, z: -z,
    "squared": lambda xp, z: (1.0 - z) ** 2,
}


def decode(
    code: Code, scores: Array, decoding: str | None = None, loss: str | None = None
) -> Array:
    r"""Return class scores; the class with the largest score is the prediction.

    Parameters
    ----------
    code : Code
        The output code.
    scores : array of shape (n, n_problems)
        Latent outputs of the binary problems, before the sign; a floating-point array of any
        library that follows the array-API standard.
    decoding : {"hamming", "loss"} or None, default=None
        How code words are compared with the scores. None means "loss" for codes without zeros
        (one-vs-all, minimum output, error-correcting) or when a loss is given, and "hamming" for
        codes with zeros (one-vs-one: votes).
    loss : {"linear", "squared", "exponential"} or None, default=None
        For ``decoding="loss"`` only; None means "linear".

    Returns
    -------
    array of shape (n, n_classes)
        Higher is better. Same library, device and floating-point type as ``scores``.

    Notes
    -----
    With :math:`m_{jl}` the code entries and :math:`s_l` the scores:

    *Hamming* [Suykens2002, section 3.2]: minus the number of columns in which sign(s) and the code
    word differ; for one-vs-one, minus the number of duels the class lost. To break ties, the summed
    confidence :math:`c_j = \sum_l m_{jl} s_l` is added as :math:`c_j / (4 (1 + |c_j|))`, which is
    monotone and stays in (-1/4, 1/4): it never outweighs half a vote, the smallest difference.

    *Loss* [Allwein2000]: minus :math:`\sum_l L(m_{jl} s_l)` with :math:`L(z) = -z` (linear),
    :math:`(1 - z)^2` (squared, the loss the binary problems were trained with) or
    :math:`\exp(-z)`. For a code without zeros linear and squared loss give the same labels, since
    :math:`\sum_l (1 - m_{jl} s_l)^2 = \sum_l (1 + s_l^2) - 2 \sum_l m_{jl} s_l`, and for one-vs-all
    both give the argmax of the scores. Linear is the default because its class scores can also be
    compared between rows.

    A zero entry, and a score of exactly zero, cost what is in the middle (half a vote, L(0)), as in
    [Allwein2000]; otherwise the class with the most zeros would be favoured. A term that all code
    words have in common is omitted, so zeros cost nothing if every class has equally many. For
    codes with zeros prefer linear to squared loss, which lets a right answer above 1 count against
    the classes that take part in the problem.

    For minimum output coding the two decodings agree whenever sign(s) is a code word, always if the
    number of classes is a power of two: there is no redundancy to use. If sign(s) is none of
    the code words, loss decoding gives up the least certain columns and Hamming decoding the
    fewest; up to 32 classes the labels still agree.

    With a single binary problem the class scores are -s and +s under every decoding.

    Time is O(n n_problems n_classes), memory O(n (n_problems + n_classes)).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.codes import decode, one_vs_all, one_vs_one
    >>> decode(one_vs_all(3), np.array([[0.5, -1.0, -1.0]]))
    array([[ 2.5, -0.5, -0.5]])
    >>> votes = decode(one_vs_one(3), np.array([[-1.0, 0.2, -1.0]]))  # each class wins one duel
    >>> votes.argmax(axis=1)
    array([0])
    """
    xp = get_namespace(scores)
    _check_scores(code, scores, xp)
    decoding, loss = _choose(code, decoding, loss)

    def from_numpy(values: AnyArray) -> Array:
        return xp.asarray(values.astype(np.float32), dtype=scores.dtype, device=device(scores))

    words = from_numpy(code.matrix.T)  # (n_problems, n_classes)
    if code.n_problems == 1:
        return scores @ words
    filled = np.count_nonzero(code.matrix, axis=1)  # (n_classes,)
    if decoding == "hamming":
        confidence = scores @ words
        lost = (int(filled.max()) - xp.sign(scores) @ words) / 2.0
        return confidence / (4.0 * (1.0 + xp.abs(confidence))) - lost
    evaluate = _LOSSES[loss]
    cost = evaluate(xp, scores) @ from_numpy(code.matrix.T > 0)
    cost = cost + evaluate(xp, -scores) @ from_numpy(code.matrix.T < 0)
    return -(cost + float(evaluate(np, 0.0)) * from_numpy(filled.max() - filled))


def _choose(code: Code, decoding: str | None, loss: str | None) -> tuple[str, str]:
    if decoding is None:
        decoding = "loss" if code.shares_rows or loss is not None else "hamming"
    if decoding not in ("hamming", "loss"):
        raise not_known("decoding", decoding, "use 'hamming', 'loss' or None to decide by code.")
    if decoding == "hamming" and loss is not None:
        raise InvalidInputError(
            f"loss={loss!r} has no meaning for decoding='hamming': drop it or use decoding='loss'."
        )
    if loss is not None and loss not in _LOSSES:
        raise not_known("loss", loss, f"use one of {sorted(_LOSSES)}.")
    return decoding, loss or "linear"


def _check_scores(code: Code, scores: Array, xp: Array) -> None:
    if scores.ndim != 2 or scores.shape[1] != code.n_problems:
        raise InvalidInputError(
            f"scores have shape {tuple(scores.shape)}, but the code has {code.n_problems} binary "
            f"problems: give an array of shape (n, {code.n_problems}), one column per problem."
        )
    if not xp.isdtype(scores.dtype, "real floating"):
        raise InvalidInputError(
            f"scores are of type {scores.dtype}, but latent outputs are needed: give a "
            "floating-point array, not labels."
        )
