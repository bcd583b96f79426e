"""Loops over pairs of rows that NumPy and SciPy lack, compiled by numba where it is installed.

City-block distances, the kernels exp(-distance) and their expansions in tiles that stay in the
cache, and the slopes of the Laplacian. The rows of the basis lie transposed, so that the innermost
loop runs over consecutive numbers and LLVM vectorises it. Every function returns None where numba
is missing or the work is too little to load it for; the caller then computes by NumPy and SciPy,
with the same result to 1e-12, or to single precision where the inputs have it. numba is loaded at
the first call that is worth it, and what it compiles is kept on disk.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from lssvm._core.arrays import Array, FloatArray
from lssvm._core.blocks import slices

_WORTH = 5e7  # differences: SciPy takes 30 ms for them; to load numba takes half a second, once
_ROWS, _COLUMNS = 128, 256  # of a tile
_CLOSE = 1e-6  # squared distances below this share of the squared norms are computed anew
_LEVELS = 8  # columns of two values from which on a matrix product is faster than differences

AddTo: TypeAlias = Callable[[FloatArray, FloatArray], None]
"""Adds the outputs of rows (n, d) to an array (n, k)."""


# --- loops: plain Python that numba compiles ------------------------------------------------------


def _add_differences(x: Any, ZT: Any, total: Any) -> None:
    """Add ||x - z||_1 to ``total`` (m,) for the columns z of ``ZT``, four features a pass."""
    d, m = ZT.shape
    odd = d % 4
    for f in range(odd):
        x0, z0 = x[f], ZT[f]
        for j in range(m):
            total[j] += abs(x0 - z0[j])
    for f in range(odd, d, 4):
        x0, x1, x2, x3 = x[f], x[f + 1], x[f + 2], x[f + 3]
        z0, z1, z2, z3 = ZT[f], ZT[f + 1], ZT[f + 2], ZT[f + 3]
        for j in range(m):
            first, second = abs(x0 - z0[j]) + abs(x1 - z1[j]), abs(x2 - z2[j]) + abs(x3 - z3[j])
            total[j] += first + second


def _replace_by_exponential(t: Any, power: Any, bits: Any, numbers: Any, terms: Any) -> None:
    """Replace ``t`` (m,) by exp(-t), t >= 0, within one unit in the last place.

    exp(-t) = 2^n exp(-r) with abs(r) <= ln(2) / 2: a polynomial in r, and n moved into the bits
    of the exponent. ``bits`` are the integers of ``power`` (m,), room for 2^n. To add ``magic``
    rounds to an integer (its last digit counts ones) and adds the bias of the exponent.
    """
    largest, per_octave, magic, high, low, shift = numbers
    for j in range(len(t)):
        value = largest if t[j] > largest else t[j]
        t[j] = value
        power[j] = value * per_octave + magic
    for j in range(len(t)):
        n = power[j] - magic
        r = (t[j] + n * high) + n * low
        value = terms[len(terms) - 1]
        for q in range(len(terms) - 2, -1, -1):
            value = value * r + terms[q]
        t[j] = value
    for j in range(len(t)):
        bits[j] = bits[j] << shift
    for j in range(len(t)):
        t[j] = t[j] * power[j]


def _cityblock_tile(X: Any, ZT: Any, out: Any, first: int) -> None:
    """Write the distances of X (n, d) to the columns of ZT into ``out``, from ``first`` on."""
    for i in range(len(X)):
        total = out[i][first : first + ZT.shape[1]]
        total[:] = 0
        _add_differences(X[i], ZT, total)


def _laplacian_tile(
    X: Any, ZT: Any, out: Any, begun: bool, power: Any, bits: Any, numbers: Any, terms: Any
) -> None:
    """Write exp(-distance) into ``out`` (n, w); ``begun``: ``out`` has a part of the distance."""
    for i in range(len(X)):
        if not begun:
            out[i][:] = 0
        _add_differences(X[i], ZT, out[i])
        _replace_by_exponential(out[i], power, bits, numbers, terms)


def _exponential_tile(
    X: Any, xx: Any, ZT: Any, zz: Any, out: Any, power: Any, bits: Any, numbers: Any, terms: Any
) -> None:
    """Replace -2 x'z in ``out`` (n, w) by exp(-||x - z||); ``xx`` and ``zz`` are squared norms."""
    for i in range(len(X)):
        t, square, near = out[i], xx[i], 0
        for j in range(len(t)):
            norms = square + zz[j]
            t[j] += norms
            near += t[j] < _CLOSE * norms
        if near:
            for j in range(len(t)):
                if t[j] < _CLOSE * (square + zz[j]):
                    t[j] = 0.0
                    for f in range(X.shape[1]):
                        t[j] += (X[i, f] - ZT[f, j]) ** 2
        for j in range(len(t)):
            t[j] = math.sqrt(t[j])
        _replace_by_exponential(t, power, bits, numbers, terms)


def _ordered_tile(
    X: Any, ZT: Any, K: Any, first: int, coef: Any, w: Any, less: Any, most: Any
) -> None:
    """Add sums of K_ij coef_kj over z_jf < x_if and over z_jf <= x_if, both of shape (n, k, d)."""
    n, d = X.shape
    m = ZT.shape[1]
    odd = d % 2
    for i in range(n):
        x, values = X[i], K[i][first : first + m]
        for k in range(len(coef)):
            c = coef[k]
            for j in range(m):
                w[j] = values[j] * c[j]
            for f in range(odd):
                x0, z0, a0, b0 = x[f], ZT[f], 0.0, 0.0
                for j in range(m):
                    a0 += w[j] if z0[j] < x0 else 0.0
                    b0 += w[j] if z0[j] <= x0 else 0.0
                less[i, k, f] += a0
                most[i, k, f] += b0
            for f in range(odd, d, 2):
                x0, x1, z0, z1 = x[f], x[f + 1], ZT[f], ZT[f + 1]
                a0, a1, b0, b1 = 0.0, 0.0, 0.0, 0.0
                for j in range(m):
                    a0 += w[j] if z0[j] < x0 else 0.0
                    b0 += w[j] if z0[j] <= x0 else 0.0
                    a1 += w[j] if z1[j] < x1 else 0.0
                    b1 += w[j] if z1[j] <= x1 else 0.0
                less[i, k, f] += a0
                most[i, k, f] += b0
                less[i, k, f + 1] += a1
                most[i, k, f + 1] += b1


@dataclass(frozen=True)
class Loops:
    """The loops over tiles, compiled."""

    cityblock: Callable[..., None]
    laplacian: Callable[..., None]
    exponential: Callable[..., None]
    ordered: Callable[..., None]


_loading = threading.Lock()


def loops() -> Loops | None:
    """Return the compiled loops, or None where numba is missing or does not fit this NumPy."""
    with _loading:  # threads that need them at the same time load them once
        return _loops()


@cache
def _loops() -> Loops | None:
    try:
        from numba import njit
        from numba.extending import register_jitable
    except ImportError:
        return None
    fused = {"contract"}  # products and sums in one rounding: no other order, no lost NaN
    for part in (_add_differences, _replace_by_exponential):
        register_jitable(fastmath=fused)(part)

    def compiled(function: Callable[..., None], fastmath: set[str]) -> Callable[..., None]:
        try:
            return njit(cache=True, nogil=True, fastmath=fastmath)(function)  # type: ignore[no-any-return]
        except RuntimeError:  # nowhere to keep what is compiled
            return njit(nogil=True, fastmath=fastmath)(function)  # type: ignore[no-any-return]

    return Loops(
        compiled(_cityblock_tile, fused),
        compiled(_laplacian_tile, fused),
        compiled(_exponential_tile, fused),
        compiled(_ordered_tile, fused | {"reassoc", "nsz"}),  # a sum in the lanes of a vector
    )


# --- the exponential in both precisions -----------------------------------------------------------

# exp(-r) for |r| <= ln(2) / 2: interpolation at Chebyshev points, relative error 5e-18 and 3e-9.
_TERMS = {
    np.dtype(np.float64): (
        *(1.0, -1.0, 0.5000000000000019, -0.1666666666666668, 0.04166666666648795),
        *(-0.008333333333319589, 0.0013888888952352863, -0.00019841269890076403),
        *(2.4801485441561313e-05, -2.755724088722987e-06, 2.763265472252779e-07),
        -2.5110049204818658e-08,
    ),
    np.dtype(np.float32): (
        *(1.0, -1.0000000377388714, 0.5000000047146057, -0.16666415414041177),
        *(0.04166635277111221, -0.008375134774624326, 0.0013941118895837),
    ),
}
# ln(2) in two numbers: products of the first with small integers are exact.
_LOGARITHM = {
    np.dtype(np.float64): (6.93147180369123816490e-01, 1.90821492927058770002e-10),
    np.dtype(np.float32): (0.693359375, -2.12194440e-4),
}


@cache
def _exponential_of(dtype: np.dtype[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the numbers and the polynomial of `_replace_by_exponential`, in the given precision.

    Beyond the largest exponent the result stays at the smallest normal number.
    """
    about = np.finfo(dtype)
    digits, bias = int(about.nmant), int(about.maxexp) - 1
    numbers = (
        *(-about.minexp * math.log(2.0), -1.0 / math.log(2.0), 1.5 * 2.0**digits + bias),
        *_LOGARITHM[dtype],
    )
    shift = np.dtype(f"i{dtype.itemsize}").type(digits)
    return (*map(dtype.type, numbers), shift), tuple(map(dtype.type, _TERMS[dtype]))


# --- tiles ----------------------------------------------------------------------------------------


def _worth(differences: int) -> Loops | None:
    """Return the loops if so many differences are worth it; their number alone decides.

    What has been loaded before does not: the same call gives the same digits.
    """
    return loops() if differences >= _WORTH else None


def _transposed(Z: FloatArray) -> list[tuple[slice, FloatArray]]:
    """Return the tiles of a basis (m, d), each of shape (d, w)."""
    return [(part, np.ascontiguousarray(Z[part].T)) for part in slices(len(Z), _COLUMNS)]


def cityblock(X: FloatArray, Z: FloatArray, pairs: int | None = None) -> FloatArray | None:
    """Return the sums of absolute differences (n, m) in the type of both sets of rows, or None.

    ``pairs`` are those of all matrices of which this is a block.
    """
    (n, d), m = X.shape, len(Z)
    if (run := _worth(d * (n * m if pairs is None else pairs))) is None:
        return None
    X, out = np.ascontiguousarray(X), np.empty((n, m), dtype=X.dtype)
    for part, ZT in _transposed(Z):
        run.cityblock(X, ZT, out, part.start)
    return out


def ordered_sums(
    K: FloatArray, X: FloatArray, Z: FloatArray, coef: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return sums of K_ij coef_jk over z_jf < x_if and over z_jf <= x_if, (n, k, d) each, or None.

    None where it is not worth it.
    """
    (n, d), m, k = X.shape, len(Z), coef.shape[1]
    if (run := _worth(8 * n * m * k * d)) is None:  # NumPy takes eight times as long
        return None
    less, most, room = np.zeros((n, k, d)), np.zeros((n, k, d)), np.empty(_COLUMNS)
    X, K = (np.ascontiguousarray(A, dtype=np.float64) for A in (X, K))
    for part, ZT in _transposed(np.asarray(Z, dtype=np.float64)):
        c = np.ascontiguousarray(coef[part].T, dtype=np.float64)
        run.ordered(X, ZT, K, part.start, c, room, less, most)
    return less, most


def expansion(
    distance: str, Z: FloatArray, coef: FloatArray, *, pairs: int, dtype: Any = np.float64
) -> AddTo | None:
    """Return what adds sum_j exp(-d(x, z_j)) coef_j to outputs of blocks of rows, or None.

    ``distance`` is "cityblock" or "euclidean" (for squares matrix products are as fast); ``pairs``
    are all the kernel values that will be needed; ``dtype`` is the precision of city-block
    distances. n m (d + k) operations in tiles: nothing of n m numbers is kept.
    """
    if (run := _worth(pairs * Z.shape[1])) is None:
        return None
    if distance == "euclidean":
        return _euclidean(run, Z, coef)
    return _absolute(run, np.dtype(dtype), Z, coef)


def _rooms(dtype: Any) -> tuple[FloatArray, FloatArray, Array]:
    """Return room for a tile, for powers of two, and the same powers as integers."""
    power = np.empty(_COLUMNS, dtype=dtype)
    return np.empty(_ROWS * _COLUMNS, dtype=dtype), power, power.view(f"i{power.itemsize}")


def _absolute(run: Loops, dtype: Any, Z: FloatArray, coef: FloatArray) -> AddTo:
    """Return the expansion of exp(-||x - z||_1)."""
    Z = np.asarray(Z, dtype=dtype)
    low, high = Z.min(axis=0), Z.max(axis=0)
    levels = ((Z == low) | (Z == high)).all(axis=0)
    gap = np.where(high > low, high - low, 1.0)
    tiles = [(ZT, coef[part]) for part, ZT in _transposed(Z)]
    numbers, terms = _exponential_of(dtype)

    @cache
    def products(few: bytes) -> list[tuple[FloatArray, FloatArray]]:
        """Return (x - z)^2 / gap of some columns as factors, and the other columns of the tiles."""
        chosen = np.frombuffer(few, dtype=bool)
        halves = []
        for ZT, _ in tiles:
            B = ((ZT - low[:, None]) / np.sqrt(gap)[:, None])[chosen]
            squares = np.einsum("ij,ij->j", B, B)
            factor = np.vstack([-2.0 * B, np.ones_like(squares), squares]).astype(dtype)
            halves.append((factor, np.ascontiguousarray(ZT[~chosen])))
        return halves

    def add(X: FloatArray, out: FloatArray) -> None:
        X = np.ascontiguousarray(X, dtype=dtype)
        few = levels & ((X == low) | (X == high)).all(axis=0) if levels.any() else levels
        begun = bool(few.sum() >= _LEVELS)
        if begun:
            A = (X[:, few] - low[few]) / np.sqrt(gap[few])
            squares = np.einsum("ij,ij->i", A, A)
            A = np.column_stack([A, squares, np.ones_like(squares)]).astype(dtype)
            X, halves = np.ascontiguousarray(X[:, ~few]), products(few.tobytes())
        room, power, bits = _rooms(dtype)
        for rows in slices(len(X), _ROWS):
            for number, (ZT, c) in enumerate(tiles):
                w = len(c)
                K = room[: (rows.stop - rows.start) * w].reshape(-1, w)
                if begun:
                    factor, ZT = halves[number]
                    np.matmul(A[rows], factor, out=K)
                run.laplacian(X[rows], ZT, K, begun, power[:w], bits[:w], numbers, terms)
                out[rows] += K @ c

    return add


def _euclidean(run: Loops, Z: FloatArray, coef: FloatArray) -> AddTo:
    """Return the expansion of exp(-||x - z||)."""
    Z = np.asarray(Z, dtype=np.float64)
    centre = Z.mean(axis=0)  # a common offset costs no digits
    tiles = [
        (ZT, -2.0 * ZT, np.einsum("ij,ij->j", ZT, ZT), coef[part])
        for part, ZT in _transposed(Z - centre)
    ]
    numbers, terms = _exponential_of(np.dtype(np.float64))

    def add(X: FloatArray, out: FloatArray) -> None:
        X = np.ascontiguousarray(X - centre)
        xx = np.einsum("ij,ij->i", X, X)
        room, power, bits = _rooms(np.float64)
        for rows in slices(len(X), _ROWS):
            for ZT, factor, zz, c in tiles:
                w = len(c)
                K = room[: (rows.stop - rows.start) * w].reshape(-1, w)
                np.matmul(X[rows], factor, out=K)
                run.exponential(X[rows], xx[rows], ZT, zz, K, power[:w], bits[:w], numbers, terms)
                out[rows] += K @ c

    return add
