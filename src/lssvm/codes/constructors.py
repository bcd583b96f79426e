"""The output codes of the literature, by number of classes."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lssvm._core.errors import InvalidInputError
from lssvm._core.random import RandomState, as_generator
from lssvm.codes.code import Code

_EXHAUSTIVE_UP_TO = 7  # classes: 2^6 - 1 = 63 binary problems
ONE_VS_ONE_UP_TO = 10
"""Classes up to which "auto" is one-vs-one: 45 binary problems, each on a fifth of the rows."""
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
            f"to tell the classes apart and only 2^{k - 1} - 1 different ones exist. Give an "
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
        one-vs-one for up to 10 classes and one-vs-all for more (classifiers that are asked for
        "auto" then try both on a sample). An array is checked as in `Code`.
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
