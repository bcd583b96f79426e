r"""Exact Shapley values of expansions in product kernels.

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

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm._core.blocks import run_blocks, slices
from lssvm._core.errors import InvalidInputError
from lssvm.kernels import RBF, Kernel, Laplacian, NonStationary

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
        owner = np.searchsorted(columns, self.owner)
        return Contrast(self.X, self.background, owner, len(columns))

    def against(self, size: int) -> Contrast:
        """Return the rows with so many of the background rows, evenly spaced."""
        if size >= len(self.background):
            return self
        some = np.linspace(0, len(self.background) - 1, size).round().astype(np.intp)
        return Contrast(self.X, self.background[some], self.owner, self.n_columns)

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
        found = product_values(exponents, rows.among(used), Z, coef, threads=threads, **how)
        total.values[:, used] = found.values
        total.interactions[:, used[:, None], used] = found.interactions
        return total
    work = _Work(exponents, rows, Z, coef, interactions)
    jobs = [
        (some, against)
        for some in slices(len(rows.X), _ROWS)
        for against in slices(len(rows.background), _BACKGROUND)
    ]
    done = zip(jobs, run_blocks(work, jobs, threads), strict=True)
    for number, ((some, _), found) in enumerate(done, start=1):
        for sums, own in zip(total, found, strict=True):
            sums[some] += own
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
        least = self._least(X, R)
        width = int(np.clip(_WIDTH // self.p, 128, 4096))
        together = [self._alike(x, R, max(1, width // m)) for x in X]
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

    def _alike(self, x: FloatArray, R: FloatArray, size: int) -> list[tuple[IntArray, IntArray]]:
        """Return background rows that differ from x in the same columns, at most ``size`` at once.

        Few support vectors are not worth the calls for one background row alone.
        """
        differ = x != R
        if not self.alone:
            differ = np.logical_or.reduceat(differ, self.starts, axis=1)
        kinds, which = np.unique(differ, axis=0, return_inverse=True)
        return [
            (np.flatnonzero(kind), rows[part])
            for number, kind in enumerate(kinds)
            if kind.any()
            for rows in [np.flatnonzero(which.ravel() == number)]
            for part in slices(len(rows), size)
        ]

    def _factors(self, x: FloatArray, block: slice) -> FloatArray:
        """Return the factors of the columns at some support vectors, shape (p, m)."""
        logarithms = self.exponents(x, self.Z[:, block])
        if not self.alone:
            logarithms = np.add.reduceat(logarithms, self.starts, axis=0)
        np.maximum(logarithms, _LOWEST, out=logarithms)
        return np.asarray(np.exp(logarithms, out=logarithms))

    def _least(self, X: FloatArray, R: FloatArray) -> FloatArray:
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

    def _room(self, shape: tuple[int, ...]) -> FloatArray:
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
            F = np.add(pair.h, (1.0 / tau)[:, None], out=self._room((len(tau), a, m)))
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
