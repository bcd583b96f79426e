r"""What can be explained: kernel expansions and other functions, which add up.

First exact Shapley values of expansions in product kernels, then those of any function of rows: all
coalitions where they are few, otherwise permutations.

A product kernel :math:`K(x, z) = \prod_l k_l(x_l, z_l)` is evaluated at a row whose columns S are
those of x and whose other columns are those of a background row r. With
:math:`u_l = k_l(x_l, z_l)` and :math:`w_l = k_l(r_l, z_l)` the Shapley value of column i, the mean
over all orders of its step from r to x, is the integral

.. math::

    \varphi_i = \sum_j a_j (u_i - w_i) \int_0^1 \prod_{l \ne i} (t u_l + (1 - t) w_l) \, dt

(the diagonal of the multilinear extension, [Owen1972]_). The integrand is a polynomial of degree
d - 1, so that a Gauss-Legendre rule gives it exactly: no sum over 2^d coalitions, no cancellation
as in recursions of elementary symmetric polynomials (all factors are positive), O(d^2) work for a
triple of row, background row and support vector, and O(d^1.5) to rounding. That product kernels
have such values in polynomial time was shown by [Mohammadi2025]_ for a game in which the factors of
absent columns are 1; here absent columns take the values of background rows.

How many nodes the rule needs: on [-1, 1] the integrands are products of d factors
:math:`1 + \tau h_l` with :math:`|h_l| \le 1`: a rule of d/2 nodes is exact. Far fewer suffice to
rounding. On the ellipse around the interval whose half axes sum to :math:`e^s` (foci at its ends) a
factor is at most :math:`1 + |h_l| \cosh s`, and Chebyshev coefficients of an integrand that is at
most M there are at most :math:`2 M e^{-ks}`. A rule of q nodes is exact up to degree 2q - 1; for
every even degree beyond, integral and rule of a Chebyshev polynomial differ by at most 2 + 2/15
(q >= 2). So the error, in units of the largest value of the product on the interval, is at most

.. math::

    \frac{64}{15} \frac{e^{-2qs}}{1 - e^{-2s}} \prod_l \frac{1 + |h_l| \cosh s}{1 + |h_l|}

for every s > 0. The logarithm of a factor is concave in :math:`|h_l|`: the mean of the
:math:`|h_l|` stands for all of them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from lssvm._core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from lssvm._core.blocks import run_blocks, slices
from lssvm._core.errors import InvalidInputError, library, not_known
from lssvm.kernels import RBF, Kernel, Laplacian, Linear, Metric, NonStationary, Precomputed
from lssvm.kernels.base import evaluate_expansion
from lssvm.kernels.metric import IDENTITY

_ELLIPSES = np.linspace(0.05, 9.0, 180)  # s
_COSH = np.cosh(_ELLIPSES)
_LEADING = np.log(64.0 / 15.0) - np.log1p(-np.exp(-2.0 * _ELLIPSES))


def n_nodes(n_factors: int, mean_size: float = 1.0, error: float = 2.0**-52) -> int:
    """Return how many nodes integrate a product of factors 1 + tau h_l."""
    exact = (n_factors + 1) // 2
    size = min(max(mean_size, 0.0), 1.0)
    growth = n_factors * (np.log1p(size * _COSH) - np.log1p(size))
    needed = int(np.ceil(np.min((_LEADING + growth - np.log(error)) / (2.0 * _ELLIPSES))))
    few = max(1, min(exact, needed))
    return few + few % 2


@cache
def rule(n: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the Gauss-Legendre rule on [-1, 1], each of shape (n,)."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights


@dataclass(frozen=True, eq=False)
class Contrast:
    """Rows, background rows, and which column every feature belongs to.

    Attributes
    ----------
    X : array of shape (n, d)
        Rows to explain.
    background : array of shape (B, d)
        What absent features are taken from.
    owner : int array of shape (d,)
        The column of every feature, 0 to p - 1: features of the same column, such as the levels of
        a category, are present or absent together.
    n_columns : int
        Number p of columns.
    """

    X: FloatArray
    background: FloatArray
    owner: IntArray
    n_columns: int

    @classmethod
    def of(
        cls,
        X: FloatArray,
        background: FloatArray,
        owner: IntArray | None = None,
        n_columns: int | None = None,
    ) -> Contrast:
        """Return the rows with features on their own, or with those of an owner together."""
        if X.ndim != 2 or background.ndim != 2 or X.shape[1] != background.shape[1]:
            raise InvalidInputError(
                f"Rows of shape {X.shape} and background rows of shape {background.shape} have no "
                "common features: give two tables of the same columns."
            )
        if not len(background):
            raise InvalidInputError("There is no background row: give at least one.")
        if owner is None:
            owner = np.arange(X.shape[1], dtype=np.intp)
        return cls(
            np.asarray(X, dtype=np.float64),
            np.asarray(background, dtype=np.float64),
            owner,
            int(owner.max(initial=-1)) + 1 if n_columns is None else n_columns,
        )

    def mixed(self, rows: IntArray, backgrounds: IntArray, present: BoolArray) -> FloatArray:
        """Return rows of which some columns are a background row's."""
        return np.where(present[:, self.owner], self.X[rows], self.background[backgrounds])

    def among(self, columns: IntArray) -> Contrast:
        """Return the same rows with columns numbered by their place among ``columns`` (sorted)."""
        return Contrast(self.X, self.background, np.searchsorted(columns, self.owner), len(columns))

    def against(self, size: int) -> Contrast:
        """Return the rows with so many of the background rows, evenly spaced."""
        if size >= len(self.background):
            return self
        chosen = np.linspace(0, len(self.background) - 1, size).round().astype(np.intp)
        return Contrast(self.X, self.background[chosen], self.owner, self.n_columns)

    def summed(self, values: FloatArray) -> FloatArray:
        """Return values of features (..., d) summed over the features of every column, (..., p)."""
        out = np.zeros((*values.shape[:-1], self.n_columns))
        for feature, column in enumerate(self.owner):
            out[..., column] += values[..., feature]
        return out


Exponents = Callable[[FloatArray, FloatArray], FloatArray]
"""From the features x (d,) of a row and Z (d, m) to the logarithms (d, m) of the factors."""

_LOWEST = -350.0  # logarithm of a factor below which nothing is left of a product
_NEGLIGIBLE = 2.0**-53  # of the largest term, all terms that are left out together
_CHUNK = 64  # factors that are multiplied before they are scaled
_ROWS, _BACKGROUND = 4, 16  # rows and background rows of a block
_WIDTH = 2**14  # factors of a block at one node
_ROOM = 2**17  # and at all nodes that are looked at together


def factor_exponents(kernel: Kernel) -> Exponents | None:
    """Return the logarithms of the factors of a product kernel, None for another kernel."""
    if isinstance(kernel, RBF):
        return lambda x, Z: -_columns(kernel.gamma, len(x)) * (x[:, None] - Z) ** 2
    if isinstance(kernel, Laplacian):
        return lambda x, Z: -_columns(kernel.gamma, len(x)) * np.abs(x[:, None] - Z)
    if isinstance(kernel, NonStationary) and kernel.lengths is None:
        return lambda x, Z: _nonstationary(x[:, None], Z, _columns(kernel.gamma, len(x)))
    return None


def _columns(gamma: FloatArray | float, d: int) -> FloatArray:
    return np.broadcast_to(np.asarray(gamma, dtype=np.float64), (d,))[:, None]


def _nonstationary(x: FloatArray, Z: FloatArray, gamma: FloatArray) -> FloatArray:
    a, b = (1.0 + np.abs(x)) ** 2, (1.0 + np.abs(Z)) ** 2  # 2 gamma sigma^2
    both = a + b
    return np.asarray(0.5 * np.log(2.0 * np.sqrt(a * b) / both) - 2.0 * gamma * (x - Z) ** 2 / both)


class ProductValues(NamedTuple):
    """Sums over background rows.

    Attributes
    ----------
    values : array of shape (n, p, k)
    interactions : array of shape (n, p, p, k), or (n, p, p, 0) where nobody asked for them
        The diagonal is of no meaning.
    """

    values: FloatArray
    interactions: FloatArray

    @classmethod
    def zeros(cls, n: int, p: int, k: int, interactions: bool) -> ProductValues:
        """Return what sums begin with."""
        return cls(np.zeros((n, p, k)), np.zeros((n, p, p, k if interactions else 0)))


def product_values(
    exponents: Exponents,
    rows: Contrast,
    Z: FloatArray,
    coef: FloatArray,
    *,
    interactions: bool = False,
    threads: int = 1,
    report: Callable[[int, int], None] | None = None,
) -> ProductValues:
    """Return the Shapley values of sum_j coef_j prod_l k_l(x_l, z_jl), averaged over background."""
    used = np.unique(rows.owner)
    total = ProductValues.zeros(len(rows.X), rows.n_columns, coef.shape[1], interactions)
    if len(used) < rows.n_columns:  # columns without features
        how: dict[str, Any] = {"interactions": interactions, "report": report}
        part = product_values(exponents, rows.among(used), Z, coef, threads=threads, **how)
        total.values[:, used] = part.values
        total.interactions[:, used[:, None], used] = part.interactions
        return total
    work = _Work(exponents, rows, Z, coef, interactions)
    jobs = [
        (block, against)
        for block in slices(len(rows.X), _ROWS)
        for against in slices(len(rows.background), _BACKGROUND)
    ]
    done = zip(jobs, run_blocks(work, jobs, threads), strict=True)
    for number, ((block, _), part) in enumerate(done, start=1):
        for sums, values in zip(total, part, strict=True):
            sums[block] += values
        if report is not None:
            report(number, len(jobs))
    return ProductValues(*(sums / len(rows.background) for sums in total))


@dataclass(frozen=True, eq=False)
class _Pair:
    """The factors of a row and background rows at a block of support vectors."""

    columns: IntArray  # those that differ, (a,)
    h: FloatArray  # (u - w) / (u + w), (a, m)
    half: FloatArray  # (u + w) / 2, (a, m)
    common: FloatArray  # product of the factors of the other columns, (m,)
    coef: FloatArray  # (m, k)
    spread: float  # largest mean of |h| over the columns


class _Work:
    """Shapley values of blocks of rows against blocks of background rows."""

    def __init__(
        self, exponents: Exponents, rows: Contrast, Z: FloatArray, coef: FloatArray, pairs: bool
    ) -> None:
        order = np.argsort(rows.owner, kind="stable")
        owner = rows.owner[order]
        self.X, self.R = rows.X[:, order], rows.background[:, order]
        self.Z = np.ascontiguousarray(Z[:, order].T)
        self.coef = np.asarray(coef, dtype=np.float64)
        self.exponents, self.p, self.interactions = exponents, rows.n_columns, pairs
        self.starts = np.searchsorted(owner, np.arange(self.p))
        self.alone = len(owner) == self.p
        self.size = np.abs(coef).max(axis=1)
        self.local = threading.local()

    def __call__(self, job: tuple[slice, slice]) -> ProductValues:
        X, R = self.X[job[0]], self.R[job[1]]
        m, k = self.coef.shape
        values, pairs = total = ProductValues.zeros(len(X), self.p, k, self.interactions)
        least = self._thresholds(X, R)
        width = int(np.clip(_WIDTH // self.p, 128, 4096))
        together = [self._batches(x, R, max(1, width // m)) for x in X]
        for block in slices(m, width):
            W = np.stack([self._factors(r, block) for r in R], axis=1)  # (p, B, m)
            for i, x in enumerate(X):
                u = self._factors(x, block)
                for columns, some in together[i]:
                    pair = self._pair(u, W[:, some], columns, block, least[i, some])
                    if pair is None:
                        continue
                    one, two = self._integrate(pair)
                    values[i, pair.columns] += one
                    pairs[i][np.ix_(pair.columns, pair.columns)] += two
        return total

    def _batches(self, x: FloatArray, R: FloatArray, size: int) -> list[tuple[IntArray, IntArray]]:
        """Return background rows that differ from x in the same columns, at most ``size`` at once.

        Few support vectors are not worth the calls for one background row alone.
        """
        differ = x != R
        if not self.alone:
            differ = np.logical_or.reduceat(differ, self.starts, axis=1)
        kinds, kind_of_row = np.unique(differ, axis=0, return_inverse=True)
        return [
            (np.flatnonzero(kind), rows[part])
            for number, kind in enumerate(kinds)
            if kind.any()
            for rows in [np.flatnonzero(kind_of_row.ravel() == number)]
            for part in slices(len(rows), size)
        ]

    def _factors(self, x: FloatArray, block: slice) -> FloatArray:
        """Return the factors of the columns at some support vectors, shape (p, m)."""
        logarithms = self.exponents(x, self.Z[:, block])
        if not self.alone:
            logarithms = np.add.reduceat(logarithms, self.starts, axis=0)
        np.maximum(logarithms, _LOWEST, out=logarithms)
        return np.asarray(np.exp(logarithms, out=logarithms))

    def _thresholds(self, X: FloatArray, R: FloatArray) -> FloatArray:
        """Return the size of a term below which it is left out, for every pair (n, B)."""
        largest = []
        for rows in (X, R):
            most = np.zeros(len(rows))
            for block in slices(self.Z.shape[1], 4096):
                for i, x in enumerate(rows):
                    total = self.exponents(x, self.Z[:, block]).sum(axis=0)
                    term = float((np.exp(total) * self.size[block]).max())
                    most[i] = max(most[i], term)
            largest.append(most)
        share = _NEGLIGIBLE / self.Z.shape[1]
        return np.asarray(share * np.maximum(largest[0][:, None], largest[1]))

    def _pair(
        self, u: FloatArray, W: FloatArray, columns: IntArray, block: slice, least: FloatArray
    ) -> _Pair | None:
        """Return what differs between a row and some others, at the support vectors that matter.

        The support vectors (m,) of all b background rows W (p, b, m) lie side by side.
        """
        common = np.ones(u.shape[1])
        if len(columns) < self.p:
            same = np.setdiff1d(np.arange(self.p), columns, assume_unique=True)
            np.multiply.reduce(u[same], axis=0, out=common)
            u, W = u[columns], W[columns]
        u = u[:, None, :]
        half = u + W
        h = (u - W) / half
        half *= 0.5
        size = np.multiply.reduce(np.maximum(u, W), axis=0) * (common * self.size[block])
        near = (size > least[:, None]).ravel()
        a, b, m = h.shape
        h, half = h.reshape(a, b * m), half.reshape(a, b * m)
        common, coef = np.tile(common, b), np.tile(self.coef[block], (b, 1))
        if not near.all():
            if not near.any():
                return None
            h, half, common, coef = h[:, near], half[:, near], common[near], coef[near]
        spread = float(np.abs(h).sum(axis=0).max()) / a
        return _Pair(columns, h, half, common, coef, spread)

    def _buffer(self, shape: tuple[int, ...]) -> FloatArray:
        """Return this thread's room for a block of factors, kept as fresh pages cost time."""
        needed = int(np.prod(shape))
        room: FloatArray | None = getattr(self.local, "room", None)
        if room is None or len(room) < needed:
            room = self.local.room = np.empty(needed)
        return np.asarray(room[:needed].reshape(shape))

    def _integrate(self, pair: _Pair) -> tuple[FloatArray, FloatArray]:
        """Return values (a, k) and interactions (a, a, k) of a row against background rows.

        A factor is t u + (1 - t) w = (u + w)/2 (1 + tau h) with tau = 2 t - 1 and
        1 + tau h = tau (h + 1/tau): one addition each. Columns go in chunks between which the
        product is scaled, so that it stays the product of true factors, which are at most 1.
        """
        a, m = pair.h.shape
        nodes, weights = rule(n_nodes(a, pair.spread))
        step = max(1, _ROOM // (a * m))
        total = np.zeros((a, m))
        pairs = np.zeros((a, a, pair.coef.shape[1] if self.interactions else 0))
        for part in slices(len(nodes), step):
            tau = nodes[part, None]
            F = np.add(pair.h, (1.0 / tau)[:, None], out=self._buffer((len(tau), a, m)))
            P = np.multiply(pair.common, weights[part, None] / tau)
            for chunk in slices(a, _CHUNK):
                P *= np.multiply.reduce(F[:, chunk], axis=1)
                P *= tau ** (chunk.stop - chunk.start)
                P *= np.multiply.reduce(pair.half[chunk], axis=0)
            if self.interactions:
                pairs += _pairs_of(pair, F, P / tau)
            np.divide(P[:, None, :], F, out=F)
            total += np.add.reduce(F, axis=0)
        total *= pair.h
        return np.asarray(total @ pair.coef), pairs


def _pairs_of(pair: _Pair, F: FloatArray, P: FloatArray) -> FloatArray:
    """Return 2 sum_j a_j h_i h_l sum_t P / (F_i F_l), shape (a, a, k)."""
    a, k = len(pair.h), pair.coef.shape[1]
    out = np.zeros((a, a, k))
    for factors, product in zip(F, P, strict=True):
        Y = pair.h / factors
        left = Y * (2.0 * product)
        for output in range(k):
            out[:, :, output] += (left * pair.coef[:, output]) @ Y.T
    return out


@dataclass(frozen=True, eq=False)
class Explanation:
    """What every column adds to the outputs of some rows.

    ``base_values`` plus the sum of ``values`` over the columns is what the model says.

    Attributes
    ----------
    values : array of shape (n, p) or (n, p, k)
        Shapley values of the columns; with a last axis for several outputs.
    base_values : array of shape (n,) or (n, k)
        Mean output of the background rows.
    data : array of shape (n, p)
        The rows, as they were given.
    feature_names : tuple of str
        Names of the p columns.
    output_names : tuple of str
        Names of the k outputs: classes or targets; for two classes the second.
    errors : array of the shape of ``values``
        Standard errors: 0 where values are exact.
    interactions : array of shape (n, p, p) or (n, p, p, k), or None
        Where they were asked for: half the interaction of two columns, and on the diagonal what
        is left for the column itself. Rows sum to ``values``.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = LSSVR(C=10.0, gamma=0.2).fit(X, X[:, 0] + X[:, 1] * X[:, 2])
    >>> found = model.explain(X[:5])
    >>> bool(np.allclose(found.prediction, model.predict(X[:5]))), found.exact
    (True, True)
    """

    values: FloatArray
    base_values: FloatArray
    data: AnyArray
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    errors: FloatArray
    interactions: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Explanation:
        """Return the explanation of some of the rows; one row stays a table."""
        index = np.atleast_1d(np.arange(len(self))[rows])
        return self._part(index, data=self.data[index])

    def _part(self, index: Any, **others: Any) -> Explanation:
        arrays = ("values", "base_values", "errors", "interactions")
        values = {name: getattr(self, name) for name in arrays}
        parts: dict[str, Any] = {n: None if a is None else a[index] for n, a in values.items()}
        return replace(self, **parts, **others)

    @property
    def exact(self) -> bool:
        """Whether nothing was sampled."""
        return not np.any(self.errors)

    @property
    def prediction(self) -> FloatArray:
        """What is explained, shape (n,) or (n, k)."""
        return np.asarray(self.base_values + self.values.sum(axis=1))

    @property
    def importances(self) -> FloatArray:
        """Mean size of the values of every column, shape (p,) or (p, k)."""
        return np.asarray(np.abs(self.values).mean(axis=0))

    def output(self, which: int | str = 0) -> Explanation:
        """Return the explanation of one of several outputs.

        Parameters
        ----------
        which : int or str, default=0
            Number or name of the output.

        Returns
        -------
        Explanation
            With ``values`` of shape (n, p).
        """
        names = self.output_names
        if isinstance(which, str):
            if which not in names:
                raise not_known("output", which, f"choose one of {', '.join(names)}.")
            which = names.index(which)
        if not -len(names) <= which < len(names):
            raise InvalidInputError(
                f"output={which!r} is not there: the model has {len(names)} outputs, "
                f"{', '.join(names)}."
            )
        if self.values.ndim == 2:
            return self
        return self._part((..., which), output_names=(names[which],))

    def to_shap(self) -> Any:
        """Return a ``shap.Explanation``, for the plots of `shap`.

        Returns
        -------
        shap.Explanation

        Raises
        ------
        MissingDependencyError
            Where `shap` is not installed.
        """
        otherwise = ", or draw with lssvm.plots (WaterfallDisplay, BeeswarmDisplay)"
        shap = library("shap", "Explanation.to_shap needs shap", "shap", otherwise)
        several = self.values.ndim == 3
        return shap.Explanation(
            values=self.values,
            base_values=self.base_values,
            data=self.data,
            feature_names=list(self.feature_names),
            output_names=list(self.output_names) if several else None,
            error_std=self.errors,
        )


Report: TypeAlias = Callable[[int, int], None]
"""Takes how much of a term is done, of how much."""


def _silent(done: int, of: int) -> None:
    pass


Mixed: TypeAlias = Callable[[IntArray, IntArray, BoolArray], FloatArray]
"""From rows (N,), background rows (N,) and present columns (N, p) to outputs (N, k)."""

_BATCH = 16_384  # rows that are evaluated at a time


def sampled_values(
    evaluate: Mixed,
    shape: tuple[int, int, int],
    n_permutations: int,
    random: np.random.Generator,
    report: Report = _silent,
) -> tuple[FloatArray, FloatArray]:
    """Return Shapley values of a function, averaged over background rows.

    Along an order columns change one by one from the background row's value to the row's; every
    order's steps add up to the difference of the two outputs, so the sums are exact whatever the
    orders are. An order and its reverse make antithetic pairs ([Mitchell2022]): effects of pairs
    of columns cancel in their mean. All background rows are used equally often, and standard errors
    are those of the orders within them.

    2 B s (p - 1) evaluations for every row with s orders; where 2^p - 2 is not more than
    2 s (p - 1), all coalitions are evaluated in their place and the values are exact.
    """
    if n_permutations < 2:
        raise InvalidInputError(
            f"n_permutations={n_permutations!r} is not usable: give at least 2, as the differences "
            "between orders make the standard errors."
        )
    n, n_background, p = shape
    if n == 0:
        raise InvalidInputError("There is no row to explain: give at least one.")
    every = p < 60 and 2**p - 2 <= 2 * n_permutations * max(p - 1, 1)
    per_pair = 2**p if every else 2 * n_permutations * (p + 1)
    size = max(1, _BATCH // per_pair)
    first = np.zeros(1, dtype=np.intp)
    k = evaluate(first, first, np.ones((1, p), dtype=bool)).shape[1]
    total, squares = np.zeros((n, p, k)), np.zeros((n, p, k))
    for block in slices(n * n_background, size):
        i, b = np.divmod(np.arange(block.start, block.stop, dtype=np.intp), n_background)
        if every:
            value = _all_coalitions(evaluate, i, b, p)
            variance = np.zeros_like(value)
        else:
            value, variance = _orders(evaluate, i, b, p, n_permutations, random)
        np.add.at(total, i, value)
        np.add.at(squares, i, variance)
        report(block.stop, n * n_background)
    return total / n_background, np.sqrt(squares) / n_background


def _all_coalitions(evaluate: Mixed, i: IntArray, b: IntArray, p: int) -> FloatArray:
    """Return the Shapley values of pairs of rows from all coalitions, shape (N, p, k)."""
    present = (np.arange(2**p)[:, None] >> np.arange(p)) % 2 == 1  # (2^p, p)
    n, s = len(i), len(present)
    v = evaluate(np.repeat(i, s), np.repeat(b, s), np.tile(present, (n, 1))).reshape(n, s, -1)
    size = present.sum(axis=1)
    # The weight of a coalition in the value of a member, and of one that is not.
    inside = np.array([1.0 / (p * math.comb(p - 1, c - 1)) if c else 0.0 for c in size])
    outside = np.array([1.0 / (p * math.comb(p - 1, c)) if c < p else 0.0 for c in size])
    weights = np.where(present, inside[:, None], -outside[:, None])  # (2^p, p)
    return np.asarray(np.einsum("nsk,sp->npk", v, weights))


def _orders(
    evaluate: Mixed, i: IntArray, b: IntArray, p: int, s: int, random: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return means over antithetic pairs of orders and their variances, each (N, p, k)."""
    n = len(i)
    rank = np.argsort(random.random((n, s, p)), axis=2)
    rank = np.stack([rank, p - 1 - rank], axis=2)  # (n, s, 2, p): an order and its reverse
    inner = np.arange(1, p)[:, None]
    present = rank[:, :, :, None, :] < inner  # (n, s, 2, p - 1, p)
    each = 2 * s * (p - 1)
    between = evaluate(np.repeat(i, each), np.repeat(b, each), present.reshape(-1, p))
    k = between.shape[1]
    none, all_ = np.zeros((n, p), dtype=bool), np.ones((n, p), dtype=bool)
    v = np.empty((n, s, 2, p + 1, k))
    v[:, :, :, 1:-1] = between.reshape(n, s, 2, p - 1, k)
    v[:, :, :, 0] = evaluate(i, b, none)[:, None, None]
    v[:, :, :, -1] = evaluate(i, b, all_)[:, None, None]
    steps = np.take_along_axis(np.diff(v, axis=3), rank[..., None], axis=3)  # (n, s, 2, p, k)
    pairs = steps.mean(axis=2)
    return pairs.mean(axis=1), pairs.var(axis=1, ddof=1) / s


@dataclass(frozen=True, eq=False)
class Expansion:
    """A kernel expansion f(x) = sum_j coef_j K(x A, z_j) + intercept.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    basis : array of shape (m, d)
        The points z, after the metric; column numbers (m,) for a precomputed kernel.
    coef : array of shape (m, k)
        Coefficients, a column for each output.
    intercept : array of shape (k,)
        What is added to every output.
    metric : Metric, default=IDENTITY
        The map A of the inputs.
    """

    kernel: Kernel
    basis: FloatArray
    coef: FloatArray
    intercept: FloatArray
    metric: Metric = IDENTITY

    @property
    def linear(self) -> bool:
        """Whether it is linear in its inputs."""
        return isinstance(self.kernel, (Linear, Precomputed))

    @property
    def exact(self) -> bool:
        """Whether its Shapley values have polynomial cost: linear, or a product over inputs."""
        straight = self.metric.map is None or self.metric.map.ndim == 1
        return self.linear or (straight and factor_exponents(self.kernel) is not None)

    def evaluate(self, X: FloatArray, *, budget: int, threads: int) -> FloatArray:
        """Return the outputs (n, k) of rows (n, d)."""
        function, rows = (self.basis, self.coef, self.intercept), self.metric.apply(X)
        return evaluate_expansion(self.kernel, rows, *function, budget=budget, threads=threads)

    def slopes(self, d: int) -> FloatArray:
        """Return the slopes (d, k) of a linear expansion."""
        if isinstance(self.kernel, Precomputed):
            out = np.zeros((d, self.coef.shape[1]))
            np.add.at(out, np.asarray(self.basis, dtype=np.intp), self.coef)
            return out
        slopes = np.asarray(self.basis, dtype=np.float64).T @ self.coef
        if self.metric.map is None:
            return slopes
        straight = self.metric.map.ndim == 1
        A = self.metric.map
        return np.asarray(A[:, None] * slopes if straight else A @ slopes)


Function: TypeAlias = Callable[[FloatArray], FloatArray]
"""From rows (n, d) to outputs (n, k)."""


@dataclass(frozen=True, eq=False)
class Term:
    """A part of what is explained, in the features that it sees.

    Attributes
    ----------
    rows : Contrast
        Rows and background rows in these features.
    function : Expansion or callable
        An `Expansion`, or any function from rows (n, d) to outputs (n, k).
    size : int, default=1000
        Rows that such a function compares each row with.
    """

    rows: Contrast
    function: Expansion | Function
    size: int = 1000

    @property
    def exact(self) -> bool:
        """Whether its Shapley values have polynomial cost."""
        return isinstance(self.function, Expansion) and self.function.exact

    def work(self, interactions: bool) -> float:
        """Return about how many operations a background row takes, for an order if sampled."""
        n, d = self.rows.X.shape
        p, f = self.rows.n_columns, self.function
        m = len(f.basis) if isinstance(f, Expansion) else self.size
        if isinstance(f, Expansion) and f.exact:
            each = 4.0 * p * (1 if f.linear else n_nodes(p)) * (p if interactions else 1)
            return float(n * m * each)
        return float(n * m * 2.0 * max(p - 1, 1) * (d / 8 + 6.0))


@dataclass(frozen=True)
class Effort:
    """What explaining may cost.

    Attributes
    ----------
    n_permutations : int or None, default=10
        Orders of the columns for a row and a background row, where values are sampled; None: at
        most 10, as many as `WORK` allows.
    bound_background : bool, default=False
        Whether there are only as many background rows as `WORK` allows.
    seed : int, default=0
        Of the random numbers; the same seed gives the same result.
    budget : int, default=10**9
        Bytes.
    threads : int, default=1
        How many threads compute.
    report : callable, optional
        Takes how much of a term is done, of how much.
    """

    n_permutations: int | None = 10
    bound_background: bool = False
    seed: int = 0
    budget: int = 10**9
    threads: int = 1
    report: Report = _silent

    def bounded(self, terms: Sequence[Term], interactions: bool) -> tuple[int, list[Term]]:
        """Return orders, and terms with background rows, that do not take more than `WORK`."""
        exact, sampled = (
            sum(term.work(interactions) for term in terms if term.exact is kind)
            for kind in (True, False)
        )
        size = len(terms[0].rows.background)
        orders = self.n_permutations
        if orders is None:
            room = WORK / size - exact
            orders = int(np.clip(room / sampled, *ORDERS)) if sampled else ORDERS[1]
        if self.bound_background:
            size = int(np.clip(WORK / (exact + orders * sampled), min(size, ROWS[0]), size))
        return orders, [Term(term.rows.against(size), term.function, term.size) for term in terms]


@dataclass(frozen=True, eq=False)
class ShapleyValues:
    """Values of the columns, outputs of the background rows and standard errors.

    Attributes
    ----------
    values : array of shape (n, p, k)
        What each of p columns adds to each of k outputs, for n rows.
    base : array of shape (k,)
        Mean output of the background rows.
    errors : array of shape (n, p, k)
        Zero where values are exact.
    interactions : array of shape (n, p, p, k) or None
        Half the interaction of two columns, and on the diagonal what is left of a column's value:
        rows sum to `values`.
    """

    values: FloatArray
    base: FloatArray
    errors: FloatArray
    interactions: FloatArray | None = None


WORK = 1e10  # operations, about five seconds of a core
ORDERS = (2, 10)  # at least, and at most, of the columns for a background row
ROWS = (10, 100)  # background rows, at least and at most; they matter more than orders
DEFAULT = Effort()
"""Ten orders, one thread."""


def shapley_values(
    terms: Sequence[Term], *, interactions: bool = False, effort: Effort = DEFAULT
) -> ShapleyValues:
    """Return the Shapley values of a sum of terms."""
    if len(terms[0].rows.X) == 0:
        raise InvalidInputError("There is no row to explain: give at least one.")
    n_permutations, terms = effort.bounded(terms, interactions)
    exact = [term for term in terms if term.exact]
    others = [term for term in terms if not term.exact]
    if interactions and others:
        raise InvalidInputError(
            "interactions=True needs a model that is exact: a kernel that is a product over the "
            "columns (rbf, laplacian) or linear, and decision values that count no votes. Choose "
            "such a kernel and, for several classes, decoding='loss'; or leave interactions out."
        )
    base = np.sum([_outputs(term, term.rows.background, effort).mean(axis=0) for term in terms], 0)
    first = terms[0].rows
    n, p, k = len(first.X), first.n_columns, len(base)
    values, errors = np.zeros((n, p, k)), np.zeros((n, p, k))
    pairs = np.zeros((n, p, p, k if interactions else 0))
    for term in exact:
        assert isinstance(term.function, Expansion)
        one, two = _exact_values(term.rows, term.function, interactions, effort)
        values += one
        pairs += two
    if others:
        used = np.unique(np.concatenate([term.rows.owner for term in others]))
        narrow = [Term(term.rows.among(used), term.function) for term in others]

        def evaluate(rows: IntArray, backgrounds: IntArray, present: BoolArray) -> FloatArray:
            parts = [_outputs(t, t.rows.mixed(rows, backgrounds, present), effort) for t in narrow]
            return np.asarray(np.sum(parts, axis=0))

        shape, random = (n, len(first.background), len(used)), np.random.default_rng(effort.seed)
        sampled = sampled_values(evaluate, shape, n_permutations, random, effort.report)
        values[:, used] += sampled[0]
        errors[:, used] = sampled[1]
    return ShapleyValues(values, base, errors, _halved(pairs, values) if interactions else None)


def _outputs(term: Term, X: FloatArray, effort: Effort) -> FloatArray:
    if isinstance(term.function, Expansion):
        return term.function.evaluate(X, budget=effort.budget, threads=effort.threads)
    return np.asarray(term.function(X), dtype=np.float64)


def _exact_values(
    rows: Contrast, f: Expansion, interactions: bool, effort: Effort
) -> tuple[FloatArray, FloatArray | float]:
    """Return values (n, p, k) and interactions (n, p, p, k) of one expansion."""
    if f.linear:
        steps = rows.X - rows.background.mean(axis=0)
        each = steps[:, None, :] * f.slopes(rows.X.shape[1]).T  # (n, k, d)
        return rows.summed(each).transpose(0, 2, 1), 0.0
    exponents = factor_exponents(f.kernel)
    assert exponents is not None
    mapped = Contrast(
        f.metric.apply(rows.X), f.metric.apply(rows.background), rows.owner, rows.n_columns
    )
    Z = np.asarray(f.basis, dtype=np.float64)
    how: dict[str, Any] = {"interactions": interactions, "report": effort.report}
    return product_values(exponents, mapped, Z, f.coef, threads=effort.threads, **how)


def _halved(pairs: FloatArray, values: FloatArray) -> FloatArray:
    """Return half of every interaction, and on the diagonal what rows need to sum to the values."""
    p = pairs.shape[1]
    out = pairs / 2.0
    diagonal = np.arange(p)
    out[:, diagonal, diagonal] = 0.0
    out[:, diagonal, diagonal] = values - out.sum(axis=2)
    return np.asarray(out)
